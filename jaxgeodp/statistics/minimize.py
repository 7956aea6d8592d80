"""Riemannian minimisation of any function with any optax optimizer.

The optimizer sees coordinates in an orthonormal frame that is parallel transported along the path, so that momenta
and moments keep their meaning: with them transported, plain optax is a Riemannian optimizer. A step of coordinates u
from x goes to exp_x(sum_j u_j e_j).
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import eval_jaxpr  # pyright: ignore[reportMissingImports, reportAttributeAccessIssue]
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.statistics.implicit import Equation, implicit_derivative

if TYPE_CHECKING:
    import optax


class Minimum(NamedTuple):
    """The result of `minimize`."""

    point: jax.Array  #: (\*shape)
    value: jax.Array  #: fun(point)
    gradient_norm: jax.Array  #: length of the Riemannian gradient
    steps: jax.Array  #: number of steps taken


def minimize(
    manifold: Manifold,
    fun: Callable,
    x0,
    optimizer: "optax.GradientTransformation | None" = None,
    *,
    max_steps: int = 500,
    tolerance: float = 1e-8,
) -> Minimum:
    """Return a local minimum of a real function on a manifold.

    Jit- and vmap-compatible. The point and its value have first and second derivatives in the arrays that ``fun``
    closes over, by the implicit function theorem: those of the minimum, whatever steps led there. None in ``x0``.

    Args:
        manifold: of the points.
        fun: real function of one point, of pure JAX and differentiable.
        x0: the start, a point of shape ``shape``.
        optimizer: any optax transformation; by default `optax.lbfgs` with its line search.
        max_steps: at most so many steps.
        tolerance: stop when the gradient is shorter than this. In single precision the default may be out of
            reach.

    Returns:
        `Minimum`, after ``max_steps`` steps whether the tolerance was reached or not: look at ``gradient_norm``.

    Raises:
        ValueError: ``x0`` has not the shape of a point.

    Example:
        The leading eigenvector of a matrix:

        >>> import jax.numpy as jnp
        >>> from jaxgeodp import Sphere, minimize
        >>> a = jnp.diag(jnp.array([1.0, 2.0, 4.0]))
        >>> found = minimize(Sphere(2), lambda x: -x @ a @ x, jnp.array([0.6, 0.0, 0.8]), tolerance=1e-4)
        >>> (found.point.round(3) + 0.0).tolist()
        [0.0, 0.0, 1.0]
    """
    import optax

    x0 = jax.lax.stop_gradient(jnp.asarray(x0))
    if x0.shape != manifold.shape:
        raise InputError(f"minimize: x0 must have shape {manifold.shape} on {manifold}, got {x0.shape}.")
    x0 = x0.astype(jnp.result_type(x0, complex if manifold.dtype_kind == "complex" else float))
    optimizer = optax.with_extra_args_support(optax.lbfgs() if optimizer is None else optimizer)
    closed = jax.make_jaxpr(fun)(x0)  # with all that it closes over, numbers or not, as arguments
    equation = _OfFunction(manifold, lambda x, *data: eval_jaxpr(closed.jaxpr, data, x)[0])
    point, length, count = _descend(equation, optimizer, max_steps, tolerance, x0, *closed.consts)
    return Minimum(point, fun(point), length, count)


@dataclasses.dataclass(frozen=True, eq=False)
class _OfFunction(Equation):
    """The slope of a function of a point; the arrays that it closes over are the data."""

    manifold: Manifold
    fun: Callable

    @override
    def slope(self, x, z, *data):
        return jax.grad(lambda z: self.fun(x(z), *data))(z)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2, 3))
def _descend(equation, optimizer, max_steps, tolerance, x0, *constants):
    """The point, the length of the gradient and the number of steps."""
    manifold = equation.manifold

    def fun(x):
        return equation.fun(x, *constants)

    def local(x, frame):
        return lambda u: fun(manifold.exp(x, manifold.combine(u, frame)))

    origin = jnp.zeros(manifold.dim, real_dtype(x0))

    def unfinished(state):
        _, _, _, _, length, count = state
        return (length > tolerance) & (count < max_steps)

    def step(state):
        x, frame, total, optimizer_state, _, count = state
        near = local(x, frame)
        value, slope = jax.value_and_grad(near)(origin)
        # Coordinates accumulate: an optimizer that compares parameters (L-BFGS) sees a flat path.
        move, optimizer_state = optimizer.update(
            slope, optimizer_state, total, value=value, grad=slope, value_fn=lambda u: near(u - total)
        )
        following = manifold.project(manifold.exp(x, manifold.combine(move, frame)))
        frame = jax.vmap(lambda e: manifold.transport(x, following, e))(frame)
        length = jnp.linalg.norm(jax.grad(local(following, frame))(origin))
        return following, frame, total + move, optimizer_state, length, count + 1

    frame = manifold.frame(x0)
    length = jnp.linalg.norm(jax.grad(local(x0, frame))(origin))
    first = (x0, frame, origin, optimizer.init(origin), length, jnp.int32(0))
    point, _, _, _, length, count = jax.lax.while_loop(unfinished, step, first)
    return point, length, count


@_descend.defjvp
def _descend_jvp(equation, optimizer, max_steps, tolerance, primals, tangents):
    point, length, count = _descend(equation, optimizer, max_steps, tolerance, *primals)
    change = implicit_derivative(equation, point, primals[1:], tangents[1:])
    return (point, length, count), (change, jnp.zeros_like(length), np.zeros(count.shape, jax.dtypes.float0))
