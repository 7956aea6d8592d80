"""Clusters of points about Frechet means: Lloyd's k-means with the manifold's distance."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.statistics.frechet_mean import frechet_mean
from jaxgeodp.statistics.public_points import checked


class Clusters(NamedTuple):
    """The result of `k_means`."""

    centers: jax.Array  #: the Frechet mean of each cluster, (k, \*shape)
    labels: jax.Array  #: the number of the nearest centre of each point, (n,)
    loss: jax.Array  #: the mean squared distance of points from their centres
    steps: jax.Array  #: steps of Lloyd's method that were taken


def k_means(
    manifold: Manifold, points: ArrayLike, k: int, key, weights: ArrayLike | None = None, *, max_steps: int = 100
) -> Clusters:
    """Cluster points about k Frechet means, without privacy: Lloyd's method from a start drawn by k-means++.

    Each step moves centres to the means of the points that are nearest to them, so that the loss never rises; a centre
    that no point is nearest to moves to the point that is farthest from its own. Ends when no label changes. What is
    found is a local minimum: call it with several keys (`jax.vmap` over them) and keep the least loss. Jit-compatible.

    Args:
        manifold: of the points.
        points: (n, \\*shape), n >= k; see `frechet_mean`.
        k: how many clusters.
        key: JAX random key, of the start.
        weights: (n,); see `frechet_mean`.
        max_steps: at most so many steps.

    Returns:
        Centres, labels, loss and steps.

    Raises:
        ValueError: see `frechet_mean`, or k is no number of clusters of n points.

    Example:
        >>> import jax, numpy as np
        >>> from jaxgeodp import Euclidean
        >>> from jaxgeodp.statistics import k_means
        >>> points = np.array([[0.0], [0.1], [5.0], [5.1]])
        >>> found = k_means(Euclidean(1), points, 2, jax.random.key(0))
        >>> np.sort(found.centers[:, 0]).astype(float).round(2).tolist()
        [0.05, 5.05]
    """
    points, weights = checked("k_means", manifold, points, weights)
    positive_integer("k_means", "k", k, 1)
    positive_integer("k_means", "max_steps", max_steps, 1)
    if k > len(points):
        raise InputError(f"k_means: k must be at most the number of points, {len(points)}, got {k}.")
    return _clusters(manifold, k, max_steps, points, weights / jnp.sum(weights), key)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _clusters(manifold, k, max_steps, points, weights, key):
    def squares(centers):
        return jax.vmap(lambda c: jax.vmap(lambda x: manifold.squared_dist(c, x))(points))(centers)  # (k, n)

    def labelled(centers):
        found = squares(centers)
        return jnp.argmin(found, axis=0), jnp.min(found, axis=0)

    def step(state):
        centers, labels, nearest, _, count = state
        own = labels[None, :] == jnp.arange(k)[:, None]
        empty = ~jnp.any(own & (weights > 0), axis=1)
        farthest = jnp.arange(len(points)) == jnp.argmax((weights > 0) * (1.0 + nearest))
        shares = jnp.where(empty[:, None], farthest, own * weights)
        centers = jax.vmap(lambda share: frechet_mean(manifold, points, share))(shares)
        following, nearest = labelled(centers)
        return centers, following, nearest, jnp.any(following != labels) | jnp.any(empty), count + 1

    centers = _spread_out(manifold, k, points, weights, key)
    first = (centers, *labelled(centers), jnp.bool_(True), jnp.int32(0))
    centers, labels, nearest, _, count = jax.lax.while_loop(lambda s: s[3] & (s[4] < max_steps), step, first)
    return Clusters(centers, labels, weights @ nearest, count)


def _spread_out(manifold, k, points, weights, key):
    """Starts of k-means++: each next one is a point, with probability proportional to its squared distance."""

    def pick(key, mass):
        mass = jnp.where(jnp.sum(mass) > 0, mass, weights)  # fewer distinct points than clusters
        return points[jax.random.categorical(key, jnp.log(mass))]

    def add(state, own_key):
        last, nearest = state
        nearest = jnp.minimum(nearest, jax.vmap(lambda x: manifold.squared_dist(last, x))(points))
        following = pick(own_key, weights * nearest)
        return (following, nearest), following

    first_key, *others = jax.random.split(key, k)
    first = pick(first_key, weights)
    if k == 1:
        return first[None]
    start = (first, jnp.full(len(points), jnp.inf, weights.dtype))
    _, following = jax.lax.scan(add, start, jnp.stack(others))
    return jnp.concatenate([first[None], following])
