"""Optax on a manifold, a step at a time: for training by mini-batches.

The transformation sees coordinates in an orthonormal frame that is parallel transported along the path, so that momenta
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
    """An optax transformation of one point of a manifold, from one of vectors.

    A step of coordinates u goes to ``exp_x(sum_j u_j e_j)``, e the frame of the state at x. Each step transports the
    frame: dim vectors. The parameters that ``transform`` sees are the sum of all u so far, so that a decay of weights
    pulls back towards where it began. Jit- and vmap-compatible. For line searches, which evaluate the loss themselves,
    see `jaxgeodp.minimize`.

    Args:
        transform: any optax transformation, such as ``optax.adam(0.1)``. Lengths are in units of the manifold's
            distance.
        manifold: of the point, the parameter.

    Returns:
        ``init(point)``, and ``update(gradient, state, point, **extra)``, where ``gradient`` is what `jax.grad` gives of
        a loss of the point as an array, shape ``shape``. `optax.apply_updates` with the update gives the next point.

    Raises:
        ValueError: by ``init`` and ``update``, where an array has not the shape of a point; by ``update`` without a
            point, or with ``value_fn``.

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
        point = _point(manifold, params)
        still = jnp.zeros(manifold.dim, real_dtype(point))
        return OnManifold(manifold.frame(point), still, transform.init(still))

    def update(updates: Any, state: Any, params: Any = None, **extra: Any):
        if params is None:
            raise InputError("on_manifold: update(gradient, state, point) needs the point.")
        if "value_fn" in extra:
            raise InputError("on_manifold: a step takes no value_fn; jaxgeodp.minimize takes steps with a line search.")
        point, gradient = _point(manifold, params), jnp.asarray(updates)
        if gradient.shape != manifold.shape:
            raise InputError(f"on_manifold: a gradient must have shape {manifold.shape}, got {gradient.shape}.")
        slopes = ambient_slopes(gradient, state.frame).astype(real_dtype(point))
        move, inner = transform.update(slopes, state.state, state.moved, **extra)
        following = manifold.project(manifold.exp(point, manifold.combine(move, state.frame)))
        frame = jax.vmap(lambda e: manifold.transport(point, following, e))(state.frame)
        return following - point, OnManifold(_orthonormal(manifold, following, frame), state.moved + move, inner)

    return optax.GradientTransformationExtraArgs(init, update)


def _orthonormal(manifold, point, frame):
    """A frame that is orthonormal but for rounding, without most of it: one step towards ``G^-1/2 frame``."""
    gram = jax.vmap(lambda e: manifold.coordinates(point, e, frame))(frame)
    return jnp.tensordot((1.5 * jnp.eye(len(gram)) - 0.5 * gram).astype(frame.dtype), frame, axes=1)


def _point(manifold, params):
    point = jnp.asarray(params)
    if point.shape != manifold.shape:
        raise InputError(f"on_manifold: a point must have shape {manifold.shape} on {manifold}, got {point.shape}.")
    return point
