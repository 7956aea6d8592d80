"""The law whose clipped records have the moments that were released: what a ball cut off is put back, by normality.

Moments are of records clipped to a ball. A law that fits them, clipped once more, would have less spread than was
seen. Sought is the wrapped normal law, with the same principal directions, whose clipped draws have the variances that
were seen along them (docs/mathematics.md, section 18). It is post-processing.
"""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.compiling import called, seen_anew
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.inference.population import Population, carried
from jaxgeodp.samplers.wrapped import wrapped_point

# Draws of the law, and rounds of the fixed point, at most: it ends where no variance changes by more than a thousandth.
_DRAWS, _ROUNDS, _CLOSE = 2048, 30, 1e-3
# Of the radius, the largest standard deviation: of a wider law more than half would be clipped, and nothing shows it.
_WIDEST = 1.5


class _Fit(NamedTuple):
    """Variances of a law along its principal directions, and which share of it is clipped."""

    variances: jax.Array
    share: jax.Array


def unclipped(population: Population, ball: GeodesicBall) -> Population:
    """The same with ``law`` and ``clipped``.

    Args:
        population: fitted to moments of clipped records.
        ball: that they were clipped to.
    """
    values, vectors = np.linalg.eigh(population.covariance)
    values = np.maximum(values, 0.0)
    own = population.mean, population.frame, vectors, values, _normal(len(values))
    with jax.enable_x64(True):
        fit = called(_fit, ball, *(jnp.asarray(seen_anew(np.asarray(array))) for array in own), options=None)
        widened, share = np.asarray(fit.variances), float(fit.share)
    if not np.all(np.isfinite(widened)):  # far out, where double precision ends
        return population
    return dataclasses.replace(population, law=(vectors * widened) @ vectors.T, clipped=share)


@functools.cache
def _normal(dim: int) -> np.ndarray:
    """Standard normal vectors, with their opposites, whose second moment is the identity."""
    from scipy.stats import norm, qmc  # only readers wait for them

    engine = qmc.Sobol(dim, scramble=False)
    engine.fast_forward(1)  # the first number is 0
    drawn = np.asarray(norm.ppf(engine.random(2 ** math.ceil(math.log2(max(_DRAWS // 2, 4 * dim))) - 1)))
    root = np.linalg.cholesky(drawn.T @ drawn / len(drawn))
    drawn = np.linalg.solve(root, drawn.T).T
    return np.concatenate([drawn, -drawn])


@jax.jit
def _fit(ball, mean, frame, vectors, seen, normal):
    manifold = ball.manifold
    center = ball.pull_inside(mean)
    frame = carried(manifold, mean, center, frame)
    limit = jnp.maximum(seen, (_WIDEST * ball.radius) ** 2)

    def clipped(variances, z):
        point = wrapped_point(manifold, center, frame, vectors * jnp.sqrt(variances), z)
        kept = ball.clipped_one(point)
        vector = manifold.coordinates(center, manifold.log(center, kept), frame)
        return vectors.T @ vector, manifold.dist(ball.center, point) > ball.radius

    def moments(variances):
        drawn: Any = jax.vmap(lambda z: clipped(variances, z))(normal)
        own, beyond = drawn
        return jnp.mean((own - jnp.mean(own, axis=0)) ** 2, axis=0), jnp.mean(beyond)

    def once(state):
        turn, variances, _ = state
        left, _ = moments(variances)
        factor: Any = jnp.where(left > 0.0, seen / jnp.where(left > 0.0, left, 1.0), 1.0)
        wider = jnp.minimum(variances * jnp.maximum(factor, 1e-3), limit)
        return turn + 1, wider, jnp.any(jnp.abs(wider - variances) > _CLOSE * variances)

    def goes_on(state):
        turn, _, changed = state
        return (turn < _ROUNDS) & changed

    _, variances, _ = jax.lax.while_loop(goes_on, once, (0, seen, jnp.asarray(True)))
    return _Fit(variances, moments(variances)[1])
