"""Private means of records as estimators."""

from typing import Any, Self, final

import numpy as np
from jax.typing import ArrayLike
from sklearn.base import BaseEstimator
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.domains.labels import Labels
from jaxgeodp.manifolds import Manifold
from jaxgeodp.privacy.guarantee import ADJACENCY
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.privacy.release import Release
from jaxgeodp.releases.mechanism import release_in
from jaxgeodp.releases.ways import Idealized
from jaxgeodp.releases.weights import checked_weights
from jaxgeodp.sklearn.records import least_records, mechanism_for, points_of, tagged
from jaxgeodp.sklearn.repeated_fits import counted_fit

# Of the mean of the eigenvalues: what a matrix of less than full rank is made regular by.
_SHRINKAGE = 0.01


@final
class PrivateFrechetMean(BaseEstimator):
    """The private Frechet mean of records on a manifold.

    Each `fit` is a release and spends the budget anew: so do `clone` with `fit`, and every fold of a cross-validation.
    Give a ledger wherever that may happen: it adds up, and refuses what does not fit; without one the second fit of a
    process is warned of (`RepeatedFitWarning`). Steps before it in a pipeline must treat each record by itself: what
    looks at several (scaling, PCA, CSP, whitening) is not private.

    Args:
        manifold: of the records, or its name ("spd", "sphere", "shapes", ...), whose size the data's shape tells.
        epsilon: privacy parameter of a pure release; or
        mu: that of a Gaussian one.
        center: of the public ball, a point of the manifold; by default its origin.
        radius: of the public ball, to which records are clipped; without it a ball is found privately, with a part of
            the budget (`LocatedMechanism`).
        mechanism: a name as for ``jaxgeodp release --mechanism``, such as "kng", whose parameter is epsilon or mu as
            given; "auto" is "laplace" for epsilon and "wrapped-gaussian" for mu.
        ledger: charged before anything is drawn.
        adjacency: "replace-one", for which the number of records is public, or "add-remove", which hides it, too; see
            `Mechanism.release`.

    Attributes:
        mean_: the released mean, an array of the manifold's shape.
        release_: the `Release`, with its record.
        budget_: what is promised, as in the record.
        manifold_: of the records.
        n_features_in_: of the tables that were given.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp.sklearn import PrivateFrechetMean
        >>> directions = np.tile([0.0, 0.0, 1.0], (500, 1))
        >>> model = PrivateFrechetMean("sphere", mu=1.0, center=[0.0, 0.0, 1.0], radius=0.5).fit(directions)
        >>> model.mean_.shape, model.budget_["kind"]
        ((3,), 'gdp')
    """

    mean_: np.ndarray
    release_: Release
    budget_: dict
    manifold_: Manifold

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

    def fit(
        self, X: ArrayLike, y: Any = None, persons: Labels | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Release the mean.

        Args:
            X: (n, features) or (n, \\*shape); landmarks as (n, k, 2). A record that is no point (NaN, a matrix that is
                not positive definite) becomes the public centre, and nothing says so.
            y: not used.
            persons: (n,), whose each record is: all that one person contributes is protected then. For metadata
                routing: ``set_fit_request(persons=True)``. It needs a public ball.
            sample_weight: (n,), public, positive weights of the records, which cost noise; not with persons.

        Raises:
            ValueError: see `Mechanism.release`; nothing has been charged then.
        """
        manifold, points = points_of(self, self.manifold, X, fits=True, least=least_records(self.adjacency))
        _keep(self, manifold, _released(self, manifold, points, persons, sample_weight))
        return self

    def __sklearn_is_fitted__(self):
        """Return whether a mean was released."""
        return hasattr(self, "mean_")

    @override
    def __sklearn_tags__(self):
        return tagged(super().__sklearn_tags__())


@final
class PrivateCovarianceMean(BaseEstimator):
    """The private geometric mean of covariance matrices (n, k, k), as of epochs of an EEG.

    Matrices of less than full rank are no points of the manifold of positive definite ones. So each matrix C becomes
    (1 - s) C + s (tr C/k) I, with a public s: by itself, so that neighbours stay neighbours.

    Args:
        epsilon, mu, center, radius, mechanism, ledger, adjacency: see `PrivateFrechetMean`.
        shrinkage: s, public, from 0 to 1.

    Attributes:
        mean_, release_, budget_, manifold_: see `PrivateFrechetMean`.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp.sklearn import PrivateCovarianceMean
        >>> model = PrivateCovarianceMean(mu=1.0, radius=2.0).fit(np.tile(np.eye(3), (200, 1, 1)))
        >>> model.mean_.shape
        (3, 3)
    """

    mean_: np.ndarray
    release_: Release
    budget_: dict
    manifold_: Manifold

    def __init__(
        self,
        epsilon: float | None = None,
        mu: float | None = None,
        center: ArrayLike | None = None,
        radius: float | None = None,
        mechanism: str = "auto",
        ledger: Ledger | None = None,
        shrinkage: float = _SHRINKAGE,
        adjacency: str = ADJACENCY,
    ):
        """Store the parameters unchecked, as scikit-learn requires."""
        self.epsilon = epsilon
        self.mu = mu
        self.center = center
        self.radius = radius
        self.mechanism = mechanism
        self.ledger = ledger
        self.shrinkage = shrinkage
        self.adjacency = adjacency

    def fit(self, X: ArrayLike, y: Any = None, persons: Labels | None = None) -> Self:
        """Release the mean of matrices (n, k, k); see `PrivateFrechetMean.fit`."""
        self._fit(X, persons, None)
        return self

    def mean_of(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> np.ndarray:
        """Return the private mean, as pyriemann calls a metric for means: ``MDM(metric={"mean": model.mean_of, ...})``.

        Such a classifier takes one mean for each class: their sizes and the labels are public then, and each call
        spends the budget, so that it counts as a fit for `RepeatedFitWarning`. `PrivateNearestMean` hides labels, too.

        Args:
            X: (n, k, k).
            sample_weight: (n,), public weights; equal ones are none.

        Returns:
            The mean, (k, k), which is ``mean_`` then, too.
        """
        return self._fit(X, None, sample_weight)

    def _fit(self, X, persons, weights):
        if not isinstance(self.shrinkage, int | float) or not 0.0 <= self.shrinkage <= 1.0:
            raise InputError(f"PrivateCovarianceMean: shrinkage must be from 0 to 1, got {self.shrinkage!r}.")
        share = float(self.shrinkage)
        manifold, matrices = points_of(self, "spd", X, fits=True, least=least_records(self.adjacency))
        if weights is not None:
            if self.adjacency == ADJACENCY:  # else their number would tell that of the records
                checked_weights(type(self).__name__, weights, len(matrices))
            weights = None if _are_equal(weights) else weights
        size = manifold.shape[0]
        with np.errstate(all="ignore"):  # a warning would tell of a record
            level = np.trace(matrices, axis1=1, axis2=2)[:, None, None] / size
            regular = (1.0 - share) * matrices + share * level * np.eye(size)
        more = {"shrinkage": share} if share > 0.0 else None
        _keep(self, manifold, _released(self, manifold, regular, persons, weights, more))
        return self.mean_

    def __sklearn_is_fitted__(self):
        """Return whether a mean was released."""
        return hasattr(self, "mean_")

    @override
    def __sklearn_tags__(self):
        tags = tagged(super().__sklearn_tags__())
        tags.input_tags.two_d_array = False
        return tags


def _are_equal(weights) -> bool:
    try:
        values = np.asarray(weights, float)
    except (TypeError, ValueError):
        return False
    return values.size > 0 and bool(np.ptp(values) == 0.0)


def _released(estimator, manifold, points, persons, weights=None, more=None) -> Release:
    own = mechanism_for(
        type(estimator).__name__,
        manifold,
        estimator.epsilon,
        estimator.mu,
        estimator.center,
        estimator.radius,
        estimator.mechanism,
    )
    with counted_fit(estimator.ledger, estimator.adjacency):
        return release_in(
            own,
            Idealized(),
            points,
            estimator.ledger,
            persons=persons,
            adjacency=estimator.adjacency,
            weights=weights,
            more=more,
        )


def _keep(estimator, manifold, release):
    estimator.manifold_ = manifold
    estimator.release_ = release
    estimator.budget_ = release.record["guarantee"]
    estimator.mean_ = np.asarray(release.value)
