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
from jaxgeodp.inference.population import Population
from jaxgeodp.samplers.wrapped import wrapped_point

# Draws of the law, and rounds of the fixed point, at most: it ends where no variance changes by more than a thousandth.
_DRAWS, _ROUNDS, _CLOSE = 2048, 30, 1e-3
# Share of a law that may be clipped: how wide it is if more are, hardly shows in what is left.
_MOST_CLIPPED = 2.0 / 3.0


class _Fit(NamedTuple):
    """Variances along principal directions, which share of the law is clipped, and whether it ought to be wider."""

    variances: jax.Array
    share: jax.Array
    wider: jax.Array


class _Search(NamedTuple):
    """State of the search for such variances, between two rounds."""

    turn: Any
    fitted: jax.Array
    tried: jax.Array  #: next
    goes_on: jax.Array
    wider: jax.Array


def unclipped(population: Population, ball: GeodesicBall) -> Population:
    """Return the population with ``law``, ``clipped`` and ``wider``; unchanged if the mean lies outside.

    Args:
        population: fitted to moments of clipped records.
        ball: that they were clipped to.
    """
    values, vectors = np.linalg.eigh(population.covariance)
    values = np.maximum(values, 0.0)
    own = population.mean, population.frame, vectors, values, _normal(len(values))
    with jax.enable_x64(True):
        mean, *others = (jnp.asarray(seen_anew(np.asarray(array))) for array in own)
        if not ball.distance(mean) <= ball.radius:
            return population
        fit = called(_fit, ball, mean, *others, options=None)
        widened, share, wider = np.asarray(fit.variances), float(fit.share), bool(fit.wider)
    if not np.all(np.isfinite(widened)):  # far out double precision ends
        return population
    return dataclasses.replace(population, law=(vectors * widened) @ vectors.T, clipped=share, wider=wider)


@functools.cache
def _normal(dim: int) -> np.ndarray:
    """Return quasi-random standard normal vectors, with their opposites, whose second moment is the identity."""
    from scipy.stats import norm, qmc  # only readers wait for them

    engine = qmc.Sobol(dim, scramble=False)
    engine.fast_forward(1)  # the first number is 0
    drawn = np.asarray(norm.ppf(engine.random(2 ** math.ceil(math.log2(max(_DRAWS // 2, 4 * dim))) - 1)))
    root = np.linalg.cholesky(drawn.T @ drawn / len(drawn))
    drawn = np.linalg.solve(root, drawn.T).T
    return np.concatenate([drawn, -drawn])


@jax.jit
def _fit(ball, mean, frame, vectors, seen, normal):
    manifold = ball.manifold.of_values

    def clipped(variances, z):
        point = wrapped_point(manifold, mean, frame, vectors * jnp.sqrt(variances), z)
        kept = ball.clipped_one(point)
        vector = manifold.coordinates(mean, manifold.log(mean, kept), frame)
        return vectors.T @ vector, ball.distance(point) > ball.radius

    def moments(variances):
        drawn: Any = jax.vmap(lambda z: clipped(variances, z))(normal)
        own, beyond = drawn
        return jnp.mean((own - jnp.mean(own, axis=0)) ** 2, axis=0), jnp.mean(beyond)

    def once(state):
        tried = state.tried
        left, share = moments(tried)
        fits = share <= _MOST_CLIPPED
        factor: Any = jnp.where(left > 0.0, seen / jnp.where(left > 0.0, left, 1.0), 1.0)
        following = tried * jnp.maximum(factor, 1e-3)
        changed = jnp.any(jnp.abs(following - tried) > _CLOSE * tried)
        fitted = jnp.where(fits, tried, state.fitted)
        return _Search(state.turn + 1, fitted, following, fits & changed, ~fits)

    start = _Search(0, seen, seen, jnp.asarray(True), jnp.asarray(False))
    found = jax.lax.while_loop(lambda state: (state.turn < _ROUNDS) & state.goes_on, once, start)
    return _Fit(found.fitted, moments(found.fitted)[1], found.wider)
