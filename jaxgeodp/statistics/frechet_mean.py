"""The Frechet mean: the minimiser of F(x) = (1/2) sum_i w_i dist(x, x_i)^2.

Gradient descent, -grad F(x) being the weighted sum of logarithms (`Manifold.log_moments`). All steps are below 2/L, so
that F falls at each (descent lemma); L bounds the Hessian: 1 where the curvature is not negative, else
s sqrt|k| coth(s sqrt|k|) at the root-mean-square distance s of the data, which falls along the iteration
(docs/mathematics.md, Proposition 1). A release takes steps of 1/L, as many as public quantities say; `frechet_mean`
takes Barzilai-Borwein steps until the gradient norm is at rounding level.
"""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxgeodp.bounds.comparison import h_max, h_min
from jaxgeodp.checks import InputError
from jaxgeodp.domain import GeodesicBall, assumption_limit
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.statistics.implicit import implicit_derivative, refuse_second_derivatives

_STEP_LIMIT = 2000
# The distance to the exact minimiser at which the mean of a release stops, in units of the ball's radius.
_RELEASE_TOLERANCE = 1e-12


def frechet_mean(manifold: Manifold, points, weights=None):
    """The Frechet mean of points, differentiable in points and weights by the implicit function theorem.

    Iterates until the gradient norm is at rounding level. The data should lie in a ball that satisfies
    Assumption 1 (see `GeodesicBall`): then the mean is unique. Otherwise a stationary point is returned;
    `certified_distance` tells whether it is the mean.

    Args:
        points: (n, \\*shape), points of the manifold. Batched by `jax.vmap`.
        weights: (n,), nonnegative, not all zero; equal by default. Scaled to sum to 1.

    Returns:
        A point of shape ``shape``.

    Raises:
        ValueError: the shapes do not fit.
        TypeError: it is differentiated twice (only first derivatives are available).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxgeodp import Sphere, frechet_mean
        >>> frechet_mean(Sphere(2), jnp.eye(3)).round(4).tolist()
        [0.5774..., 0.5774..., 0.5774...]
    """
    points, weights = checked("frechet_mean", manifold, points, weights)
    return _implicit_mean(manifold, points, weights / jnp.sum(weights))


def certified_distance(manifold: Manifold, mean, points, weights=None):
    """An upper bound of the distance from ``mean`` to the true Frechet mean (in exact arithmetic).

    |grad F(mean)| over the strong-convexity constant h_max(2 s, k_max) of the ball of radius
    s = max_i dist(mean, x_i); infinite if that ball violates Assumption 1, so that nothing is certified.
    """
    points, weights = checked("frechet_mean", manifold, points, weights)
    weights = weights / jnp.sum(weights)
    total, _ = manifold.log_moments(mean, points, weights)
    farthest = jnp.max(jax.vmap(lambda x: manifold.dist(mean, x))(points))
    highest = manifold.curvature_bounds[1]
    convexity = 1.0
    if highest > 0:
        angle = jnp.maximum(2.0 * farthest * math.sqrt(highest), 1e-6)
        convexity = angle / jnp.tan(angle)
    return jnp.where(farthest < assumption_limit(manifold), manifold.norm(mean, total) / convexity, jnp.inf)


def mean_in_ball(ball: GeodesicBall, points):
    """The Frechet mean of points in a ball, by a number of steps that depends on public quantities only.

    Descent from the centre, each iterate kept in the ball, to within 1e-12 radii of the exact minimiser
    (docs/mathematics.md, Proposition 1); nothing is read off the data to decide when to stop.

    Args:
        points: (n, \\*shape), all within the ball (see `GeodesicBall.clip`).
    """
    manifold, n = ball.manifold, points.shape[0]
    steps, step_size = descent_schedule(manifold, ball.radius)
    weights = jnp.full((n,), 1.0 / n, real_dtype(points))
    center = jnp.asarray(ball.center, points.dtype)

    def step(_, x):
        total, _ = manifold.log_moments(x, points, weights)
        return ball.pull_inside(manifold.project(manifold.exp(x, step_size * total)))

    return jax.lax.fori_loop(0, steps, step, center)


def descent_schedule(manifold: Manifold, radius: float) -> tuple[int, float]:
    """Number and size of the steps of `mean_in_ball`, from public quantities.

    With h <= Hess F <= L along the iteration, steps of 1/L contract F - min F by 1 - h/L each.
    """
    k_min, k_max = manifold.curvature_bounds
    smoothness = h_min(radius, k_min)
    convexity = 1.0 - (1.0 - h_max(2.0 * radius, k_max)) / 4.0
    contraction = 1.0 - convexity / smoothness
    if contraction <= 0.0:
        return 2, 1.0 / smoothness
    steps = math.log(convexity * _RELEASE_TOLERANCE**2) / math.log(contraction)
    return math.ceil(steps) + 1, 1.0 / smoothness


def checked(owner, manifold, points, weights):
    """Points and weights as arrays of the right type; raises ValueError where their shapes do not fit."""
    points = jnp.asarray(points)
    points = points.astype(jnp.result_type(points, complex if manifold.dtype_kind == "complex" else float))
    if points.ndim != len(manifold.shape) + 1 or points.shape[1:] != manifold.shape or points.shape[0] == 0:
        raise InputError(f"{owner}: points must have shape (n, *{manifold.shape}), n >= 1, got {points.shape}.")
    if weights is None:
        return points, jnp.ones(points.shape[0], real_dtype(points))
    weights = jnp.asarray(weights, real_dtype(points))
    if weights.shape != points.shape[:1]:
        raise InputError(f"{owner}: weights must have shape {points.shape[:1]}, got {weights.shape}.")
    return points, weights


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
@functools.partial(jax.jit, static_argnums=0)
def _implicit_mean(manifold, points, weights):
    return _descend(manifold, points, weights)


def _descend(manifold, points, weights):
    """Descend from the heaviest point until the gradient norm is at rounding level."""
    precision = jnp.finfo(real_dtype(points)).eps
    lowest = manifold.curvature_bounds[0]

    def unfinished(state):
        # Rounding keeps the norm from falling further: stop there, not at a level that n may make unreachable.
        stalled = (state.norm >= state.previous_norm) & (state.norm < 1e4 * precision * state.scale)
        return (state.norm > 2.0 * precision * state.scale) & ~stalled & (state.count < _STEP_LIMIT)

    def step(state):
        total, square = manifold.log_moments(state.point, points, weights)
        norm = manifold.norm(state.point, total)
        square = jnp.maximum(square, 0.0)  # rounding
        smoothness = _smoothness(lowest, square)
        # Barzilai-Borwein: the inverse curvature seen along the last step.
        carried = manifold.transport(state.previous, state.point, state.total)
        change = state.norm**2 - manifold.inner(state.point, carried, total)
        seen = state.size * state.norm**2 / jnp.where(change > 0, change, 1.0)
        default = 2.0 / (1.0 + smoothness)
        size = jnp.where((state.count > 0) & (change > 0), jnp.clip(seen, 0.5 * default, 1.9 / smoothness), default)
        following = manifold.project(manifold.exp(state.point, size * total))
        scale = jnp.sqrt(square) + jnp.max(jnp.abs(state.point))
        return _Descent(following, state.point, total, size, norm, state.norm, scale, state.count + 1)

    start = points[jnp.argmax(weights)]
    one = jnp.ones((), weights.dtype)
    first = _Descent(start, start, jnp.zeros_like(start), one, one * jnp.inf, one * jnp.inf, one, 0)
    return jax.lax.while_loop(unfinished, step, first).point


class _Descent(NamedTuple):
    point: jax.Array
    previous: jax.Array  # the point before, with
    total: jax.Array  # minus its gradient,
    size: jax.Array  # the step taken from it
    norm: jax.Array  # and its gradient norm
    previous_norm: jax.Array
    scale: jax.Array  # size of the numbers that rounding is relative to
    count: int


def _smoothness(lowest, square):
    """h_min at the root-mean-square distance; 1, a guess, where the curvature is not known."""
    if lowest >= 0 or math.isinf(lowest):
        return 1.0
    angle = jnp.sqrt(-lowest * square)
    safe = jnp.where(angle > 1e-3, angle, 1.0)
    return jnp.where(angle > 1e-3, safe / jnp.tanh(safe), 1.0)


@_implicit_mean.defjvp
def _implicit_mean_jvp(manifold, primals, tangents):
    mean = _implicit_mean(manifold, *primals)
    fixed = refuse_second_derivatives(mean)

    def objective(x, points, weights):
        return 0.5 * manifold.log_moments(x, points, weights)[1]

    def gradient(points, weights):
        return -manifold.log_moments(fixed, points, weights)[0]

    return mean, implicit_derivative(manifold, fixed, objective, gradient, primals, tangents)
