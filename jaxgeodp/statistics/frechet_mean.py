"""The Frechet mean: the minimiser of F(x) = (1/2) sum_i w_i dist(x, x_i)^2.

Descent, -grad F(x) being the weighted sum of logarithms (`Manifold.log_moments`). Gradient steps below 2/L make F fall
(descent lemma); L bounds the Hessian: 1 where the curvature is not negative, else s sqrt|k| coth(s sqrt|k|) at the
root-mean-square distance s of the data, which falls along the iteration (docs/mathematics.md, section 5). A release
takes steps of 1/L, as many as public quantities say; `frechet_mean` takes Newton steps where the manifold knows the
Hessian (`Manifold.newton_moments`) and Barzilai-Borwein steps elsewhere, until the gradient norm is at rounding level.
"""

import dataclasses
import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from typing_extensions import override

from jaxgeodp.bounds.comparison import h_max, h_min
from jaxgeodp.domains.geodesic_ball import GeodesicBall, assumption_limit
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.statistics.implicit import Equation, implicit_derivative
from jaxgeodp.statistics.public_points import checked, checked_point, explained
from jaxgeodp.statistics.records import WeightedRecords, log_moments, points_and_weights

_STEP_LIMIT = 2000
# So many steps in a row without a gradient smaller than all before are rounding. Gradients of other steps than
# Newton's, which count ten times, may rise for a while.
_PATIENCE, _OF_NEWTON = 100, 10
_TINY = 1e-30
# The distance to the exact minimiser at which the mean of a release stops, in units of the ball's radius.
_RELEASE_TOLERANCE = 1e-12


def frechet_mean(manifold: Manifold, points: ArrayLike, weights: ArrayLike | None = None) -> jax.Array:
    """Return the Frechet mean of points, differentiable in points and weights by the implicit function theorem.

    Iterates until the gradient norm is at rounding level. The data should lie in a ball that satisfies
    Assumption 1 (see `GeodesicBall`): then the mean is unique. Otherwise a stationary point is returned;
    `certified_distance` tells whether it is the mean.

    Args:
        manifold: of the points.
        points: (n, \\*shape), n >= 1, points of the manifold to within 1e-5 of their size; public, or of research, as
            what is wrong with them is said. Batched by `jax.vmap`.
        weights: (n,), nonnegative, not all zero; equal by default. Scaled to sum to 1.

    Returns:
        A point of shape ``shape``.

    Raises:
        ValueError: the shapes do not fit, the values are no points or weights, or the manifold's exponential map has
            no derivative at 0.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxgeodp import Sphere, frechet_mean
        >>> frechet_mean(Sphere(2), jnp.eye(3))
        Array([0.577..., 0.577..., 0.577...], dtype=float32)
    """
    points, weights = checked("frechet_mean", manifold, points, weights)
    return explained("frechet_mean", manifold, _implicit_mean(manifold, points, weights / jnp.sum(weights)))


def certified_distance(
    manifold: Manifold, mean: ArrayLike, points: ArrayLike, weights: ArrayLike | None = None
) -> jax.Array:
    """Return an upper bound of the distance from ``mean`` to the true Frechet mean (in exact arithmetic).

    |grad F(mean)| over the strong-convexity constant h_max(2 s, k_max) of the ball of radius
    s = max_i dist(mean, x_i); infinite if that ball violates Assumption 1, so that nothing is certified.

    Args:
        manifold: of the points.
        mean: any point, shape ``shape``, mostly from `frechet_mean`.
        points: (n, \\*shape); see `frechet_mean`.
        weights: (n,); see `frechet_mean`.

    Returns:
        A real number, shape (), in units of the manifold's distance.

    Raises:
        ValueError: see `frechet_mean`.
    """
    points, weights = checked("certified_distance", manifold, points, weights)
    mean = checked_point("certified_distance", "mean", manifold, mean)
    weights = weights / jnp.sum(weights)
    total, _ = manifold.log_moments(mean, points, weights)
    farthest = jnp.max(jax.vmap(lambda x: manifold.dist(mean, x))(points))
    highest = manifold.curvature_bounds[1]
    convexity = 1.0
    if highest > 0:
        angle = jnp.maximum(2.0 * farthest * math.sqrt(highest), 1e-6)
        convexity = angle / jnp.tan(angle)
    return jnp.where(farthest < assumption_limit(manifold), manifold.norm(mean, total) / convexity, jnp.inf)


def mean_in_ball(ball: GeodesicBall, points) -> jax.Array:
    """Return the Frechet mean of points in a ball, by a number of steps that depends on public quantities only.

    Descent from the centre, each iterate kept in the ball, to within 1e-12 radii of the exact minimiser
    (docs/mathematics.md, Proposition 1); nothing is read off the data to decide when to stop.

    Args:
        points: (n, \\*shape) or `WeightedRecords`, all within the ball (see `GeodesicBall.clip`).
    """
    manifold = ball.manifold
    steps, step_size = descent_schedule(manifold, ball.radius)
    points, weights = points_and_weights(points)
    known = steps if isinstance(steps, int) else None
    return _descend_in_ball(manifold, known, ball, (steps, step_size), points, weights)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _descend_in_ball(manifold, known, ball, schedule, points, weights):
    steps, step_size = schedule
    center = jnp.asarray(ball.center, points.dtype)

    def step(_, x):
        total, _ = log_moments(manifold, x, WeightedRecords(points, weights))
        return ball.pull_inside(manifold.project(manifold.exp(x, step_size * total)))

    # Without a known number of steps the loop has no reverse derivative; the rule below needs none.
    return jax.lax.fori_loop(0, steps if known is None else known, step, center)


@_descend_in_ball.defjvp
def _descend_in_ball_jvp(manifold, known, primals, tangents):
    mean = _descend_in_ball(manifold, known, *primals)
    return mean, implicit_derivative(_OfMean(manifold), mean, primals[2:], tangents[2:])


@dataclasses.dataclass(frozen=True)
class _OfMean(Equation):
    """Logarithms sum to 0; points and weights are the data."""

    manifold: Manifold

    @override
    def slope(self, x, z, *data):
        return -x.seen(self.manifold.log_moments(x(z), *data)[0])

    @override
    def hessian(self, minimizer, *data):
        return self.manifold.mean_hessian(minimizer, *data)


def descent_schedule(manifold: Manifold, radius):
    """Number and size of the steps of `mean_in_ball`, from public quantities.

    With h <= Hess F <= L along the iteration, steps of 1/L contract F - min F by 1 - h/L each.
    """
    k_min, k_max = manifold.curvature_bounds
    smoothness = h_min(radius, k_min)
    convexity = 1.0 - (1.0 - h_max(2.0 * radius, k_max)) / 4.0
    contraction = 1.0 - convexity / smoothness
    traced = isinstance(contraction, jax.Array)
    xp = jnp if traced else np
    steps = xp.ceil(xp.log(convexity * _RELEASE_TOLERANCE**2) / xp.log(xp.maximum(contraction, _TINY))) + 1
    return steps.astype(int) if traced else int(steps), 1.0 / smoothness


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
@functools.partial(jax.jit, static_argnums=0)
def _implicit_mean(manifold, points, weights):
    return _descend(manifold, points, weights)


def _descend(manifold: Manifold, points: jax.Array, weights: jax.Array) -> jax.Array:
    """Descend until the gradient norm is at rounding level."""
    precision = jnp.finfo(real_dtype(points)).eps
    lowest, highest = manifold.curvature_bounds
    bend = max(abs(lowest), abs(highest))
    one = jnp.ones((), weights.dtype)
    far = one * jnp.inf

    def unfinished(state):
        # Rounding keeps the norm from falling further: stop there, not at a level that n may make unreachable.
        stalled = (state.norm >= state.previous_norm) & (state.norm < 1e4 * precision * state.scale)
        known = state.next_norm <= 0.5 * precision * state.scale
        # Of matrices of large condition logarithms are rounded by far more than points are.
        going = (state.steps < _STEP_LIMIT) & (state.waited < _PATIENCE)
        # A norm that is NaN ends it, too.
        return (state.norm > 3.0 * precision * state.scale) & ~known & ~stalled & going

    def step(state: "_Descent") -> "_Descent":
        total, square, direction, rate = manifold.newton_moments(state.point, points, weights)
        norm = manifold.norm(state.point, total)
        slope = manifold.inner(state.point, direction, total)
        length = manifold.norm(state.point, direction)
        # Where the Hessian is nearly singular, indefinite or NaN, its direction is not one to go.
        usable = slope > 0.01 * norm * length
        direction = jnp.where(usable, direction, total)
        slope, length = jnp.where(usable, slope, norm**2), jnp.where(usable, length, norm)
        square = jnp.maximum(square, 0.0)  # rounding
        longest = 1.9 * slope / jnp.maximum(_smoothness(lowest, square) * length**2, _TINY)
        if rate is None:
            size = jnp.clip(_secant_size(manifold, state, total), jnp.minimum(0.5, longest), longest)
            next_norm = far
        else:
            margin = jnp.where(usable, 1.0 - rate, 0.0)
            local = margin * slope / jnp.maximum(math.sqrt(bend) * length**3, _TINY)
            size = jnp.minimum(1.0, jnp.maximum(longest, local))
            # What the Hessian leaves, and its change along the step (docs/mathematics.md, section 5).
            left = rate * norm + bend * jnp.sqrt(square) * length**2
            next_norm = jnp.where(usable & (size == 1.0), left, far)
        following = manifold.project(manifold.exp(state.point, size * direction))
        scale = jnp.sqrt(square) + jnp.linalg.norm(state.point.reshape(-1))
        waited = jnp.where(norm < state.least, 0, state.waited + (1 if rate is None else _OF_NEWTON))
        return _Descent(
            following, state.point, direction, slope, size, norm, state.norm, next_norm, scale,
            jnp.minimum(norm, state.least), waited, state.steps + 1,
        )  # fmt: skip

    start = manifold.mean_start(points, weights)
    first = _Descent(start, start, jnp.zeros_like(start), 0.0 * one, one, far, far, far, one, far, 0, 0)
    return jax.lax.while_loop(unfinished, step, first).point


def _secant_size(manifold: Manifold, state: "_Descent", total: jax.Array) -> jax.Array:
    """Barzilai-Borwein: the inverse curvature seen along the last step, in units of the direction; 1 at first."""
    carried = manifold.transport(state.previous, state.point, state.direction)
    change = state.slope - manifold.inner(state.point, carried, total)
    positive = change > 0
    return jnp.where((state.steps > 0) & positive, state.size * state.slope / jnp.where(positive, change, 1.0), 1.0)


class _Descent(NamedTuple):
    point: jax.Array
    previous: jax.Array  # the point before, with
    direction: jax.Array  # the direction taken from it,
    slope: jax.Array  # its inner product with minus the gradient,
    size: jax.Array  # the multiple of it taken,
    norm: jax.Array  # and the gradient norm
    previous_norm: jax.Array
    next_norm: jax.Array  # a bound of the gradient norm at the point, from the one before
    scale: jax.Array  # size of the numbers that rounding is relative to
    least: jax.Array  # the smallest gradient norm so far
    waited: int | jax.Array  # what has been counted of `_PATIENCE` since then
    steps: int | jax.Array


def _smoothness(lowest: float, square: jax.Array) -> jax.Array | float:
    """h_min at the root-mean-square distance; 1, a guess, where the curvature is not known."""
    if lowest >= 0 or math.isinf(lowest):
        return 1.0
    angle = jnp.sqrt(-lowest * square)
    safe = jnp.where(angle > 1e-3, angle, 1.0)
    return jnp.where(angle > 1e-3, safe / jnp.tanh(safe), 1.0)


@_implicit_mean.defjvp
def _implicit_mean_jvp(manifold, primals, tangents):
    mean = _implicit_mean(manifold, *primals)
    return mean, implicit_derivative(_OfMean(manifold), mean, primals, tangents)
