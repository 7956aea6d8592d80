"""Checks of points that are public, or of research: what is wrong with their values is said.

Never for private records: no exception may depend on those (`mean_in_ball` takes them). Under `jax.jit`, `jax.vmap` and
`jax.grad` nothing can be said; what is no point gives NaN there.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxgeodp.checks import InputError, short
from jaxgeodp.manifolds.manifold import Manifold, real_dtype

# Largest deviation of a point, and in units of rounding: single precision has to pass in double, too.
_DEVIATION, _ROUNDINGS = 1e-5, 100.0


def checked(owner: str, manifold: Manifold, points, weights) -> tuple[jax.Array, jax.Array]:
    """Points and weights as arrays of the right type; weights of 1 by default.

    Points in another form (`Manifold.as_points`) are projected. Concrete values are checked; the weights of traced ones
    that are no points become NaN, and so does all that is computed from them.

    Raises:
        ValueError: the shapes do not fit; a point deviates from the manifold by more than rounding; or weights are
            negative, not finite or all zero.
    """
    if not isinstance(manifold, Manifold):
        raise InputError(f"{owner}: manifold must be a Manifold, such as Sphere(2), got {short(manifold)}.")
    given = jnp.asarray(points)
    points = _in_form(manifold, given)
    if points.ndim != len(manifold.shape) + 1 or points.shape[1:] != manifold.shape or points.shape[0] == 0:
        raise InputError(f"{owner}: points must have shape (n, *{manifold.shape}), n >= 1, got {given.shape}.")
    points = jax.vmap(manifold.project)(points) if points.shape != given.shape else points
    if weights is None:
        weights = jnp.ones(points.shape[0], real_dtype(points))
    weights = jnp.asarray(weights, real_dtype(points))
    if weights.shape != points.shape[:1]:
        raise InputError(f"{owner}: weights must have shape {points.shape[:1]}, got {weights.shape}.")
    _check_weights(owner, weights)
    return points, jnp.where(_near(owner, manifold, points, "points[{}]"), weights, jnp.nan)


def checked_point(owner: str, name: str, manifold: Manifold, point) -> jax.Array:
    """Return one point, like those of `checked`; NaN if it is traced and no point."""
    given = jnp.asarray(point)
    point = _in_form(manifold, given)
    if point.shape != manifold.shape:
        raise InputError(f"{owner}: {name} must have shape {manifold.shape}, got {given.shape}.")
    point = manifold.project(point) if point.shape != given.shape else point
    return jnp.where(_near(owner, manifold, point[None], name)[0], point, jnp.nan)


def explained(owner: str, manifold: Manifold, mean) -> jax.Array:
    """Return the mean of `checked` points.

    Raises:
        ValueError: it is NaN because the manifold's exponential map has no derivative at 0.
    """
    if isinstance(mean, Tracer) or np.all(np.isfinite(np.asarray(mean))):
        return mean
    with jax.ensure_compile_time_eval():
        smooth = np.all(np.isfinite(np.asarray(_slope_of_exp(manifold, jnp.asarray(manifold.origin, mean.dtype)))))
    if not smooth:
        raise InputError(
            f"{owner}: exp of {manifold} has no finite derivative at the zero vector (look for a division by a "
            "length, or a root of one); write it with jaxgeodp.manifolds.analytic (sinc_sqrt, safe_sqrt) and try "
            "jaxgeodp.testing.check_manifold."
        )
    return mean


def _in_form(manifold, array):
    array = manifold.as_points(array)
    return array.astype(jnp.result_type(array, complex if manifold.dtype_kind == "complex" else float))


def _near(owner, manifold, points, place):
    """Which points are on the manifold, up to rounding; all of them, if they are not traced.

    Raises:
        ValueError: one is not; ``place`` says how to name it.
    """
    limit = max(_DEVIATION, _ROUNDINGS * float(jnp.finfo(points.dtype).eps))
    if isinstance(points, Tracer):
        return jax.vmap(manifold.deviation)(jax.lax.stop_gradient(points)) <= limit
    with jax.ensure_compile_time_eval():  # the mean may be part of another function that is traced
        index, deviation = map(np.asarray, _largest_deviation(manifold, points))
    place = place.format(index)
    if np.isnan(deviation):
        raise InputError(f"{owner}: {place} is not a point of {manifold} and cannot be projected; leave it out.")
    if deviation > limit:
        raise InputError(
            f"{owner}: {place} is not a point of {manifold}: its relative deviation is {deviation:.3g}, above "
            f"{limit:.3g}; project first, by manifold.project (many points by jax.vmap)."
        )
    return np.ones(points.shape[0], bool)


def _check_weights(owner, weights):
    if isinstance(weights, Tracer):
        return
    values = np.asarray(weights)
    if not (np.all(np.isfinite(values)) and np.all(values >= 0) and np.any(values > 0)):
        raise InputError(f"{owner}: weights must be finite and not negative, and not all zero.")


@functools.partial(jax.jit, static_argnums=0)
def _largest_deviation(manifold, points):
    """Where it is, and how large; NaN counts as larger than all numbers."""
    deviations = jax.vmap(manifold.deviation)(points)
    index = jnp.argmax(deviations)
    return index, deviations[index]


@functools.partial(jax.jit, static_argnums=0)
def _slope_of_exp(manifold, point):
    """The derivative of exp at the zero vector, along a frame."""
    frame = manifold.frame(point)

    def endpoint(coordinates):
        return manifold.exp(point, manifold.combine(coordinates, frame))

    return jax.jacfwd(endpoint)(jnp.zeros(manifold.dim, real_dtype(point)))
