"""Coordinates in the tangent space at a private mean."""

import functools
from typing import Any, Self, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from typing_extensions import override

from jaxgeodp.domains.labels import Labels
from jaxgeodp.manifolds import Manifold
from jaxgeodp.privacy.guarantee import ADJACENCY
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.sklearn.frechet_mean import PrivateFrechetMean
from jaxgeodp.sklearn.records import least_records, points_of, tagged


@final
class PrivateTangentSpace(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Logarithms of records at a private Frechet mean, in coordinates of an orthonormal frame there.

    The mean, and with it the map, is private; *what `transform` returns is not*: it is the records, in other
    coordinates. A model that is published must be private, too, in these coordinates. Steps before it in a pipeline
    must treat each record by itself.

    Args:
        manifold, epsilon, mu, center, radius, mechanism, ledger, adjacency: see `PrivateFrechetMean`.

    Attributes:
        mean_, release_, budget_, manifold_: see `PrivateFrechetMean`.
        frame_: (dim, \\*shape), the orthonormal frame of the coordinates.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp.sklearn import PrivateTangentSpace
        >>> matrices = np.tile(np.eye(2), (200, 1, 1))
        >>> PrivateTangentSpace("spd", mu=1.0, radius=1.0).fit(matrices).transform(matrices).shape
        (200, 3)
    """

    def __init__(
        self,
        manifold: Manifold | str,
        epsilon: float | None = None,
        mu: float | None = None,
        center: ArrayLike | None = None,
        radius: float | None = None,
        mechanism: str = "auto",
        ledger: Ledger | None = None,
        adjacency: str = ADJACENCY,
    ):
        """Store the parameters unchecked, as scikit-learn requires."""
        self.manifold = manifold
        self.epsilon = epsilon
        self.mu = mu
        self.center = center
        self.radius = radius
        self.mechanism = mechanism
        self.ledger = ledger
        self.adjacency = adjacency

    def fit(self, X: ArrayLike, y: Any = None, persons: Labels | None = None) -> Self:
        """Release the mean; see `PrivateFrechetMean.fit`."""
        manifold, _ = points_of(self, self.manifold, X, fits=True, least=least_records(self.adjacency))
        parameters: dict[str, Any] = self.get_params(deep=False) | {"manifold": manifold}
        mean = PrivateFrechetMean(**parameters).fit(X, persons=persons)
        self.manifold_, self.mean_ = manifold, mean.mean_
        self.release_, self.budget_ = mean.release_, mean.budget_
        with jax.enable_x64(True):
            self.frame_ = np.asarray(manifold.frame(jnp.asarray(self.mean_)))
        self._n_features_out = manifold.dim
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return coordinates (n, dim) of records; NaN for one that is no point of the manifold.

        Args:
            X: (n, features) or (n, \\*shape), as for `fit`.
        """
        check_is_fitted(self)
        _, points = points_of(self, self.manifold_, X, fits=False)
        with jax.enable_x64(True):
            return np.asarray(_coordinates(self.manifold_, self.mean_, self.frame_, points))

    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """Return the points (n, \\*shape) with coordinates (n, dim); shapes as landmarks (n, k, 2).

        Args:
            X: (n, dim), as `transform` gives them.
        """
        check_is_fitted(self)
        with jax.enable_x64(True):
            points: Any = np.asarray(_points(self.manifold_, self.mean_, self.frame_, np.asarray(X, float)))
        return np.stack([points.real, points.imag], axis=-1) if np.iscomplexobj(points) else points

    def __sklearn_is_fitted__(self):
        """Return whether a mean was released."""
        return hasattr(self, "frame_")

    @override
    def __sklearn_tags__(self):
        return tagged(super().__sklearn_tags__())


@functools.partial(jax.jit, static_argnums=0)
def _coordinates(manifold, mean, frame, points):
    def one(point):
        valid = manifold.admissible(point)
        tangent = manifold.log(mean, manifold.project(jnp.where(valid, point, mean)))
        return jnp.where(valid, manifold.coordinates(mean, tangent, frame), jnp.nan)

    return jax.vmap(one)(points)


@functools.partial(jax.jit, static_argnums=0)
def _points(manifold, mean, frame, coordinates):
    return jax.vmap(lambda own: manifold.project(manifold.exp(mean, manifold.combine(own, frame))))(coordinates)
