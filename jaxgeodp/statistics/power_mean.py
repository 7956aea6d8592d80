"""Power means: minimisers of F(x) = (1/p) sum_i w_i dist(x, x_i)^p, p >= 1; p = 1 is the geometric median.

The gradient is -sum_i w_i dist^{p-2} log_x(x_i). Weiszfeld's step divides it by a bound of the second derivative of a
function above F that touches it at x, L = sum_i w_i dist_i^{p-2} max(1, p-1) h_min(dist_i), so that F falls (Fletcher,
Venkatasubramanian & Joshi 2009). At a datum x_k of weight w_k the median's F has a kink: it is the minimum if
the other terms pull with a force of at most w_k, else the step is shortened by that (Vardi & Zhang 2000).
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.statistics.frechet_mean import frechet_mean
from jaxgeodp.statistics.implicit import Equation, implicit_derivative
from jaxgeodp.statistics.public_points import checked, explained
from jaxgeodp.statistics.records import equal_weights

_STEP_LIMIT = 3000
# Steps of a release: a public number. The result is only the centre of an envelope, which need not be exact.
_RELEASE_STEPS = 60


def frechet_median(manifold: Manifold, points: ArrayLike, weights: ArrayLike | None = None) -> jax.Array:
    """Return the Frechet (geometric) median: the minimiser of sum_i w_i dist(x, x_i); see `power_mean`.

    Args:
        manifold: of the points.
        points: (n, \\*shape); see `power_mean`.
        weights: (n,), nonnegative, not all zero; equal by default.

    Returns:
        A point of shape ``shape``.

    Raises:
        ValueError: see `frechet_mean`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxgeodp import Euclidean, frechet_median
        >>> frechet_median(Euclidean(1), jnp.array([[0.0], [1.0], [100.0]])).round(6).tolist()
        [1.0]
    """
    return power_mean(manifold, points, 1.0, weights)


def power_mean(manifold: Manifold, points: ArrayLike, power: float, weights: ArrayLike | None = None) -> jax.Array:
    """Return the minimiser of sum_i w_i dist(x, x_i)^power, differentiable in points and weights (implicitly).

    The data should lie in a ball that satisfies Assumption 1 (see `GeodesicBall`), where it is unique unless power = 1
    and the data lie on one geodesic. For power < 2 a minimiser that is a datum moves with that datum alone. The
    derivative is NaN where it does not exist: a median between data on a line, power > 2 with all data at one point.
    For power < 2 with several data at the minimiser, where the derivative is not linear, it is the mean of their
    tangents. Second derivatives are those of the other data where a datum is the minimiser: right for power > 3,
    elsewhere there are none.

    Args:
        manifold: of the points.
        points: (n, \\*shape), n >= 1, points of the manifold to within 1e-5 of their size; public, or of research, as
            what is wrong with them is said. Batched by `jax.vmap`.
        power: p >= 1, a Python number.
        weights: (n,), nonnegative, not all zero; equal by default.

    Returns:
        A point of shape ``shape``.

    Raises:
        ValueError: see `frechet_mean`; or power < 1.
    """
    if not power >= 1:
        raise InputError(f"power_mean: power must be a number of at least 1, got {power!r}.")
    if power == 2:
        return frechet_mean(manifold, points, weights)
    points, weights = checked("power_mean", manifold, points, weights)
    return explained("power_mean", manifold, _minimizer(manifold, float(power), points, weights / jnp.sum(weights)))


def power_gradient(manifold: Manifold, x, points, weights, power: float) -> tuple[jax.Array, jax.Array]:
    """Return ``sum_i w_i dist^{p-2} log_x(x_i)``, minus the gradient, and distances (n,); coincident points count 0."""
    distances = jax.vmap(lambda y: manifold.dist(x, y))(points)
    apart = distances > _coincidence(points)
    factors = jnp.where(apart, jnp.where(apart, distances, 1.0) ** (power - 2.0), 0.0)
    return manifold.log_moments(x, points, weights * factors)[0], distances


def power_mean_in_ball(ball: GeodesicBall, points, power: float) -> jax.Array:
    """Return an approximate power mean of points in a ball, by a public number of steps from the centre."""
    weights = equal_weights(points)

    def step(_, x):
        total, size, _ = _weiszfeld(ball.manifold, power, x, points, weights)
        return ball.pull_inside(ball.manifold.project(ball.manifold.exp(x, size * total)))

    x = jax.lax.fori_loop(0, _RELEASE_STEPS, step, jnp.asarray(ball.center, points.dtype))
    return _nearest_if_median(ball.manifold, x, points, weights) if power == 1.0 else x


def _weiszfeld(
    manifold: Manifold, power: float, x: jax.Array, points: jax.Array, weights: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return direction, step size and the length of the smallest subgradient at x."""
    total, distances = power_gradient(manifold, x, points, weights, power)
    apart: jax.Array = distances > _coincidence(points)
    safe = jnp.where(apart, distances, 1.0)
    lowest = manifold.curvature_bounds[0]
    bend = 1.0
    if -jnp.inf < lowest < 0:
        angle = jnp.maximum(safe * (-lowest) ** 0.5, 1e-3)
        bend = angle / jnp.tanh(angle)
    smoothness = jnp.sum(jnp.where(apart, weights * safe ** (power - 2.0) * bend, 0.0)) * max(1.0, power - 1.0)
    pull = manifold.norm(x, total)
    stuck = jnp.sum(jnp.where(apart, 0.0, weights)) if power == 1.0 else 0.0
    share = jnp.maximum(0.0, 1.0 - stuck / jnp.where(pull > 0, pull, 1.0))
    return total, share / jnp.where(smoothness > 0, smoothness, 1.0), pull * share


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
@functools.partial(jax.jit, static_argnums=(0, 1))
def _minimizer(manifold, power, points, weights):
    precision = jnp.finfo(weights.dtype).eps

    def unfinished(state):
        _, _, _, norm, previous, level, count = state
        stalled = (norm >= previous) & (norm < 1e4 * precision * level)
        return (norm > 4.0 * precision * level) & ~stalled & (count < _STEP_LIMIT)

    def step(state):
        x, last, total_last, previous, _, _, count = state
        total, size, norm = _weiszfeld(manifold, power, x, points, weights)
        # Barzilai-Borwein: the inverse curvature seen along the last step, between one and almost two of Weiszfeld's.
        gone = manifold.log(last, x)
        carried = manifold.transport(last, x, total_last)
        change = manifold.inner(x, manifold.transport(last, x, gone), carried - total)
        seen = manifold.inner(last, gone, gone) / jnp.where(change > 0, change, 1.0)
        long = jnp.clip(seen, size, 1.9 * size)
        size = jnp.where((count > 0) & (change > 0) & (jnp.mod(count, 4) > 0), long, size)
        following = manifold.project(manifold.exp(x, size * total))
        level = jnp.max(jnp.abs(x)) + norm + 1.0
        return following, x, total, norm, previous, level, count + 1

    mean = manifold.log_moments(points[0], points, weights)[0]
    start = manifold.project(manifold.exp(points[0], mean))
    one = jnp.ones((), weights.dtype)
    first = (start, start, jnp.zeros_like(start), one * jnp.inf, one * jnp.inf, one, 0)
    x = jax.lax.while_loop(unfinished, step, first)[0]
    return x if power > 1.0 else _nearest_if_median(manifold, x, points, weights)


def _nearest_if_median(manifold, x, points, weights):
    """Return the datum nearest to x if it is the median, as the others pull at most with its weight; else x.

    Convergence near a datum is slow.
    """
    distances = jax.vmap(lambda y: manifold.dist(x, y))(points)
    nearest = points[jnp.argmin(distances)]
    *_, subgradient = _weiszfeld(manifold, 1.0, nearest, points, weights)
    return jnp.where(subgradient <= 0.0, nearest, x)


@_minimizer.defjvp
def _minimizer_jvp(manifold, power, primals, tangents):
    points, weights = primals
    result = _minimizer(manifold, power, *primals)
    fixed = jax.lax.stop_gradient(result)
    here = jax.vmap(lambda y: manifold.dist(fixed, y))(jax.lax.stop_gradient(points)) <= _coincidence(points)
    here = here & (jax.lax.stop_gradient(weights) > 0)
    # Below power 2 the second derivative at a datum is infinite: the minimiser moves with it, and with nothing else.
    pinned = jnp.any(here) & (power < 2.0)
    # A datum at the minimiser has no second derivative below power 2, and counts 0 above.
    data = (points, jnp.where(here, 0.0, weights), pinned.astype(weights.dtype))
    changes = (tangents[0], jnp.where(here, 0.0, tangents[1]), jnp.zeros_like(data[2]))
    tangent = implicit_derivative(_OfPowerMean(manifold, power), result, data, changes)
    share = here / jnp.maximum(jnp.sum(here), 1)
    own = jnp.tensordot(share.astype(points.dtype), tangents[0], axes=1)
    return result, jnp.where(pinned, manifold.to_tangent(result, own), tangent)


@dataclasses.dataclass(frozen=True)
class _OfPowerMean(Equation):
    """Equation of a power mean; its data are points, weights, and 1 where the minimiser is a datum."""

    manifold: Manifold
    power: float

    @override
    def slope(self, x, z, *data):
        points, weights, _ = data
        return -x.seen(power_gradient(self.manifold, x(z), points, weights, self.power)[0])

    @override
    def knows(self, *data):
        return data[-1] == 0.0


def _coincidence(points) -> np.floating:
    """Return the distance up to which points count as coincident."""
    return 64.0 * jnp.finfo(real_dtype(points)).eps
