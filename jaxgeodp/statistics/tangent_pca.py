"""Principal components of logarithms at the Frechet mean: tangent principal component analysis."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxgeodp.checks import InputError
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.statistics.frechet_mean import frechet_mean
from jaxgeodp.statistics.public_points import checked


class TangentPCA(NamedTuple):
    """Directions of largest variance at the mean; the point of scores s is ``exp(mean, sum_j s_j directions_j)``."""

    mean: jax.Array  #: the Frechet mean, (\*shape)
    directions: jax.Array  #: orthonormal tangent vectors at the mean, (k, \*shape)
    variances: jax.Array  #: along them, descending, (k,); those of all directions add up to the mean squared distance
    scores: jax.Array  #: coordinates of the points' logarithms, (n, k)


def tangent_pca(
    manifold: Manifold, points: ArrayLike, weights: ArrayLike | None = None, *, components: int | None = None
) -> TangentPCA:
    """Principal components of the logarithms of points at their Frechet mean (Fletcher et al. 2004), without privacy.

    Jit- and vmap-compatible. The sign of a direction is that of its coordinate of largest absolute value.

    Args:
        manifold: of the points.
        points: (n, \\*shape), n >= 1; see `frechet_mean`.
        weights: (n,); see `frechet_mean`.
        components: how many, at most the smaller of n and the dimension, which is the default.

    Returns:
        Mean, directions, variances (divided by n, not n - 1) and scores.

    Raises:
        ValueError: see `frechet_mean`, or the number of components is out of range.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp import Sphere
        >>> from jaxgeodp.statistics import tangent_pca
        >>> noise = np.random.default_rng(0).normal(0.0, [0.3, 0.1, 0.0], (200, 3)) + [0.0, 0.0, 1.0]
        >>> found = tangent_pca(Sphere(2), noise / np.linalg.norm(noise, axis=1, keepdims=True))
        >>> (found.variances**0.5).round(1).tolist(), abs(found.directions[0]).round(1).tolist()
        ([0.3..., 0.1...], [1.0, 0.0, 0.0])
    """
    points, weights = checked("tangent_pca", manifold, points, weights)
    most = min(len(points), manifold.dim)
    count = most if components is None else components
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= most:
        raise InputError(f"tangent_pca: components must be an integer from 1 to {most}, got {components!r}.")
    mean = frechet_mean(manifold, points, weights)
    return _components(manifold, count, mean, points, weights / jnp.sum(weights))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _components(manifold, count, mean, points, weights):
    frame = manifold.frame(mean)
    coordinates = jax.vmap(lambda x: manifold.coordinates(mean, manifold.log(mean, x), frame))(points)
    # Of the coordinates, not of their covariance, whose small eigenvalues would be rounding.
    _, lengths, rows = jnp.linalg.svd(jnp.sqrt(weights)[:, None] * coordinates, full_matrices=False)
    rows = rows[:count]
    largest = jnp.take_along_axis(rows, jnp.argmax(jnp.abs(rows), axis=1, keepdims=True), axis=1)
    rows = jnp.where(largest < 0, -rows, rows)
    directions = jax.vmap(lambda row: manifold.combine(row, frame))(rows)
    return TangentPCA(mean, directions, lengths[:count] ** 2, coordinates @ rows.T)
