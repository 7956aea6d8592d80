"""Optax on a manifold, a step at a time: for training by mini-batches.

The transformation sees coordinates in an orthonormal frame that is parallel transported with each step, so that momenta
and moments, which are kept in these coordinates, are transported with it.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxgeodp.checks import InputError
from jaxgeodp.manifolds.defaults import ambient_slopes
from jaxgeodp.manifolds.manifold import Manifold, real_dtype

if TYPE_CHECKING:
    import optax

__all__ = ["OnManifold", "on_manifold"]


class OnManifold(NamedTuple):
    """The state of `on_manifold`."""

    frame: jax.Array  #: (dim, \*shape), orthonormal at the point
    moved: jax.Array  #: (dim,), the sum of the coordinates of all steps
    state: Any  #: that of the transformation, for parameters (dim,)


def on_manifold(transform: "optax.GradientTransformation", manifold: Manifold) -> "optax.GradientTransformation":
    """Return an optax transformation of one point of a manifold, from one of vectors.

    A step of coordinates u goes to ``exp_x(sum_j u_j e_j)``, e the frame of the state at x, and transports the frame,
    dim vectors, along the minimal geodesic: steps must be shorter than the injectivity radius. The parameters that
    ``transform`` sees are the sum of all u so far, which says how far the point is from the first one only where space
    is flat. What is adapted coordinate by coordinate, as by Adam, depends on the first frame.

    The state belongs to the point that `optax.apply_updates` gives. What scales or clips steps has to be part of
    ``transform``; what averages or replaces points has to begin anew with ``init``. Jit-compatible; for many points,
    batch ``init`` and ``update`` by `jax.vmap`. For line searches, which evaluate the loss, see `jaxgeodp.minimize`.

    Args:
        transform: an optax transformation that evaluates no loss, such as ``optax.adam(0.1)``. Lengths are in units of
            the manifold's distance.
        manifold: of the point, the parameter.

    Returns:
        ``init(point)``, and ``update(gradient, state, point, **extra)``, where ``gradient``, shape ``shape``, is what
        `jax.grad` gives of a loss of the point as an array, not the Riemannian gradient.

    Raises:
        ValueError: by ``init`` and ``update``, where an array has not the shape or the kind of numbers of a point; by
            ``update`` without a point, or with what line searches take.

    Example:
        The leading eigenvector of a matrix:

        >>> import jax, jax.numpy as jnp, optax
        >>> from jaxgeodp import Sphere
        >>> from jaxgeodp.optimize import on_manifold
        >>> a = jnp.diag(jnp.array([1.0, 2.0, 4.0]))
        >>> optimizer = on_manifold(optax.sgd(0.1), Sphere(2))
        >>> x = jnp.array([0.6, 0.0, 0.8])
        >>> state = optimizer.init(x)
        >>> for _ in range(40):
        ...     updates, state = optimizer.update(jax.grad(lambda x: -x @ a @ x)(x), state, x)
        ...     x = optax.apply_updates(x, updates)
        >>> (x.round(3) + 0.0).tolist()
        [0.0, 0.0, 1.0]
    """
    import optax

    transform = optax.with_extra_args_support(transform)

    def init(params: Any) -> OnManifold:
        point = manifold.project(_point(manifold, params))
        still = jnp.zeros(manifold.dim, real_dtype(point))
        return OnManifold(manifold.frame(point), still, transform.init(still))

    def update(updates: Any, state: Any, params: Any = None, **extra: Any):
        if params is None:
            raise InputError("on_manifold: update(gradient, state, point) needs the point.")
        if extra.keys() & {"value_fn", "grad"}:
            raise InputError(
                "on_manifold: value_fn and grad are not supported; for a line search use jaxgeodp.minimize."
            )
        given, gradient = _point(manifold, params), jnp.asarray(updates)
        if gradient.shape != manifold.shape:
            raise InputError(f"on_manifold: a gradient must have shape {manifold.shape}, got {gradient.shape}.")
        point = manifold.project(given)  # the sum of a point and an update is rounded
        slopes = ambient_slopes(gradient, state.frame).astype(real_dtype(point))
        move, inner = transform.update(slopes, state.state, state.moved, **extra)
        following = manifold.project(manifold.exp(point, manifold.combine(move, state.frame)))
        frame = jax.vmap(lambda e: manifold.transport(point, following, e))(state.frame)
        return following - given, OnManifold(frame, state.moved + move, inner)

    return optax.GradientTransformationExtraArgs(init, update)


def _point(manifold, params):
    leaves = jax.tree.leaves(params)
    if len(leaves) != 1 or leaves[0] is not params:
        raise InputError(
            "on_manifold: a point must be one array, not a tree of arrays; use a separate optimizer for other "
            "parameters."
        )
    point = jnp.asarray(params)
    if point.shape != manifold.shape:
        raise InputError(f"on_manifold: a point must have shape {manifold.shape} on {manifold}, got {point.shape}.")
    kind = jnp.complexfloating if manifold.dtype_kind == "complex" else jnp.floating
    if not jnp.issubdtype(point.dtype, kind):
        raise InputError(f"on_manifold: a point on {manifold} must have {kind.__name__} numbers, got {point.dtype}.")
    return point
