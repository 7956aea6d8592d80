"""Population that an attacker is supposed to know: public records, or moments estimated from records."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.privacy.published import Base
from jaxgeodp.pytrees import Pytree
from jaxgeodp.samplers.wrapped import wrapped_point
from jaxgeodp.statistics.frechet_mean import frechet_mean


def usable_points(owner, name, manifold, records, least) -> tuple[np.ndarray, np.ndarray]:
    """Return the valid records, projected onto the manifold, and their indices."""
    kind = "complex128" if manifold.dtype_kind == "complex" else "float64"
    array = np.asarray(records)
    if array.shape[1:] != tuple(manifold.shape):  # no point has the shape ()
        raise InputError(
            f"{owner}: {name} must have shape (n, {', '.join(map(str, manifold.shape))}), got {array.shape}."
        )
    array = array.astype(kind)
    finite = np.isfinite(array).reshape(len(array), -1).all(axis=1)
    filled = np.where(finite.reshape(-1, *[1] * len(manifold.shape)), array, np.asarray(manifold.origin, kind))
    points, usable = (np.asarray(found) for found in _projected(manifold, jnp.asarray(filled)))
    usable = usable & finite
    if usable.sum() < least:
        raise InputError(f"{owner}: {name} must be at least {least} points of {manifold}.")
    return points[usable], np.flatnonzero(usable)


@functools.partial(jax.jit, static_argnums=0)
def _projected(manifold, array):
    points = jax.vmap(manifold.project)(array)
    usable = jnp.isfinite(points).reshape(len(points), -1).all(axis=1) & jax.vmap(manifold.admissible)(array)
    return points, usable


@dataclasses.dataclass(frozen=True)
class SupposedLaw(Pytree, leaves=("base", "root", "points")):
    """The population: a wrapped normal law, or public records.

    Attributes:
        base: mean of the population, with a frame.
        root: of the covariance there; None for public records.
        points: public records; None for a wrapped normal law.
    """

    base: Base
    root: Any
    points: Any

    def draw(self, key, n: int) -> jax.Array:
        """Return n independent records."""
        if self.points is not None:
            return self.points[jax.random.randint(key, (n,), 0, self.points.shape[0])]
        z = jax.random.normal(key, (n, self.root.shape[1]), self.root.dtype)
        base = self.base
        return jax.vmap(lambda own: wrapped_point(base.manifold, base.point, base.frame, self.root, own))(z)


def supposed_law(owner, manifold, points, population) -> tuple[SupposedLaw, str]:
    """Return the law of public records, or else the law fitted to the records; and who knows what, in words."""
    if population is None:
        return fitted_law(manifold, points), "mean and covariance of the population, as estimated from these records"
    own = usable_points(owner, "population", manifold, population, 2 * manifold.dim)[0]
    own = own[np.random.default_rng(0).permutation(len(own))]  # of which the first ones are a sample
    return SupposedLaw(_base(manifold, own), None, jnp.asarray(own)), f"{len(own)} public records of the population"


def _base(manifold, points) -> Base:
    mean = frechet_mean(manifold, jnp.asarray(points))
    return Base(manifold, mean, manifold.frame(mean))


def fitted_law(manifold, points) -> SupposedLaw:
    """Return the wrapped normal law with the mean and the shrunk covariance of records."""
    base = _base(manifold, points)
    vectors = np.asarray(_coordinates(base, jnp.asarray(points)))
    values, axes = np.linalg.eigh(_shrunk(vectors))
    return SupposedLaw(base, jnp.asarray(axes * np.sqrt(np.maximum(values, 0.0))), None)


def _shrunk(vectors) -> np.ndarray:
    """Return the covariance, shrunk towards a multiple of the identity (Chen, Wiesel, Eldar & Hero 2010), so that
    few records determine no direction exactly."""
    n, dim = vectors.shape
    covariance = np.cov(vectors, rowvar=False).reshape(dim, dim)
    trace, square = np.trace(covariance), np.sum(covariance**2)
    below = (n + 1.0 - 2.0 / dim) * (square - trace**2 / dim)
    share = min(((1.0 - 2.0 / dim) * square + trace**2) / below, 1.0) if dim > 1 and below > 0.0 else 0.0
    return (1.0 - share) * covariance + share * trace / dim * np.eye(dim)


@jax.jit
def _coordinates(base, points):
    return jax.vmap(base.coordinates)(points)
