"""Least squares of a geodesic through points at times."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from jaxgeodp.checks import InputError
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.statistics.frechet_mean import frechet_mean
from jaxgeodp.statistics.public_points import checked

# Lengths of gradients, in units of the spread of the points, to this power of the rounding unit.
_TOLERANCE = 0.6
# Parts of a step that are tried.
_SMALLEST = 1e-6


class GeodesicLine(NamedTuple):
    """A fitted geodesic: at time t it is at ``manifold.geodesic(start, velocity, t - time)``."""

    start: jax.Array  #: the point at the first of the times, (\*shape)
    velocity: jax.Array  #: tangent vector there, per unit of time, (\*shape)
    time: jax.Array  #: the first of the times
    loss: jax.Array  #: the mean squared distance of points from the geodesic at their times
    explained: jax.Array  #: one minus the loss over the mean squared distance from the Frechet mean (R squared)
    gradient_norm: jax.Array  #: length of the gradient of half the loss; nearly 0 where it has converged
    steps: jax.Array  #: steps that were taken


def geodesic_regression(
    manifold: Manifold, times: ArrayLike, points: ArrayLike, weights: ArrayLike | None = None, *, max_steps: int = 200
) -> GeodesicLine:
    """Fit a geodesic to points at times by least squared distances (Fletcher 2013), without privacy.

    Gradient steps in the point at the mean time and the velocity there, scaled as is best in a flat space, shorter
    where the loss would rise; from the line of logarithms at the Frechet mean. What is found is a local minimum. Jit-
    and vmap-compatible. `jaxgeodp.inference.geodesic_regression` is the private one.

    Args:
        manifold: of the points.
        times: (n,) real numbers, at least two of them different.
        points: (n, \\*shape), n >= 2; see `frechet_mean`.
        weights: (n,); see `frechet_mean`.
        max_steps: at most so many steps.

    Returns:
        The geodesic, its loss, and how near to a minimum it is.

    Raises:
        ValueError: see `frechet_mean`; or times are not as many as points, not finite, or all the same.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp import Sphere
        >>> from jaxgeodp.statistics import geodesic_regression
        >>> years = np.arange(2000.0, 2010.0)
        >>> angles = 0.1 * (years - 2000.0)
        >>> points = np.stack([np.sin(angles), np.zeros(10), np.cos(angles)], axis=1)
        >>> fit = geodesic_regression(Sphere(2), years, points)
        >>> np.asarray(fit.velocity).astype(float).round(2).tolist()
        [0.1, 0.0, 0.0]
    """
    points, weights = checked("geodesic_regression", manifold, points, weights)
    times = jnp.asarray(times)
    if times.shape != points.shape[:1] or times.dtype.kind not in "fiu":
        raise InputError(
            f"geodesic_regression: times must be {len(points)} real numbers, one per point, got {times.dtype} of "
            f"shape {times.shape}."
        )
    if not isinstance(times, Tracer):
        known = np.asarray(times)
        if not np.all(np.isfinite(known)) or np.ptp(known) == 0:
            raise InputError("geodesic_regression: times must be finite, and at least two of them different.")
    # Of their span: differences of years lose nothing in single precision.
    first = jnp.min(times)
    span = (jnp.max(times) - first).astype(real_dtype(points))
    shares = (times - first).astype(real_dtype(points)) / span
    found = _fitted(manifold, max_steps, shares, points, weights / jnp.sum(weights))
    return found._replace(velocity=found.velocity / span, time=first)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _fitted(manifold, max_steps, shares, points, weights):
    """With the velocity per span of the times."""
    middle = weights @ shares
    off = shares - middle
    variance = weights @ off**2

    def unfinished(state):
        return (state.gradient_norm > tolerance) & (state.size > _SMALLEST) & (state.steps < max_steps)

    def step(state: "_Search") -> "_Search":
        frame = manifold.frame(state.point)
        ahead = state.size * state.direction
        point = manifold.project(manifold.exp(state.point, manifold.combine(ahead[0], frame)))
        turned = manifold.transport(state.point, point, state.velocity + manifold.combine(ahead[1], frame))
        velocity = manifold.to_tangent(point, turned)
        loss, slope = _loss_and_slope(manifold, point, velocity, off, points, weights)
        # Of a flat space this is Newton's direction.
        direction = slope / jnp.stack([jnp.ones_like(variance), variance])[:, None]
        norm = jnp.sqrt(jnp.sum(slope * direction))
        better = loss <= state.loss * (1.0 + 4.0 * jnp.finfo(loss.dtype).eps)
        tried = _Search(point, velocity, loss, direction, norm, jnp.minimum(2.0 * state.size, 1.0), state.steps)
        kept = state._replace(size=0.25 * state.size)
        chosen = jax.tree.map(lambda new, old: jnp.where(better, new, old), tried, kept)
        return chosen._replace(steps=state.steps + 1)

    mean = frechet_mean(manifold, points, weights)
    logs = jax.vmap(functools.partial(manifold.log, mean))(points)
    spread = weights @ jax.vmap(lambda v: manifold.inner(mean, v, v))(logs)
    slope = jnp.tensordot((weights * off).astype(logs.dtype), logs, axes=1) / variance
    tolerance = jnp.finfo(weights.dtype).eps ** _TOLERANCE * jnp.sqrt(spread)
    one, none = jnp.ones_like(spread), jnp.zeros((2, manifold.dim), weights.dtype)
    first = _Search(mean, slope, jnp.inf * one, none, jnp.inf * one, one, jnp.int32(0))
    found = jax.lax.while_loop(unfinished, step, first)
    start, velocity = jax.jvp(lambda s: manifold.exp(found.point, s * found.velocity), (-middle,), (one,))
    explained = 1.0 - found.loss / spread
    return GeodesicLine(start, velocity, shares[0], found.loss, explained, found.gradient_norm, found.steps)


class _Search(NamedTuple):
    point: jax.Array  # at the mean time, with
    velocity: jax.Array  # and
    loss: jax.Array
    direction: jax.Array  # to go, in the point's frame: of the point, and of the velocity, (2, dim)
    gradient_norm: jax.Array
    size: jax.Array  # the part of the direction to be tried
    steps: jax.Array


def _loss_and_slope(manifold, point, velocity, off, points, weights):
    """The mean squared distance, and minus the gradient of its half in point and velocity, in the point's frame."""
    frame = manifold.frame(point)

    def geodesic(moves):
        base = manifold.exp(point, manifold.combine(moves[0], frame))
        turned = manifold.transport(point, base, velocity + manifold.combine(moves[1], frame))
        return jax.vmap(lambda share: manifold.exp(base, share * turned))(off)

    places, pull_back = jax.vjp(geodesic, jnp.zeros((2, manifold.dim), weights.dtype))
    residuals = jax.vmap(manifold.log)(places, points)
    loss = weights @ jax.vmap(lambda x, r: manifold.inner(x, r, r))(places, residuals)

    def covector(place, residual, weight):
        return jax.grad(lambda v: weight * manifold.inner(place, residual, v))(jnp.zeros_like(residual))

    return loss, pull_back(jax.vmap(covector)(places, residuals, weights))[0]
