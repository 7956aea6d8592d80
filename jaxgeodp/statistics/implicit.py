"""Derivatives of a minimiser by the implicit function theorem, and derivatives of these.

With x = exp_o(sum_j z_j e_j), o the minimiser for the data as they are and e_j an orthonormal frame there, both held
fixed, grad F(x; D) = 0 is an equation for z in a vector space: dz = -(d_z g)^{-1} d_D g, g the coordinates of the
gradient. At the data as they are z is 0 and d_z g the Hessian of F, which may be known in closed form; what depends on
z further is computed where derivatives of derivatives are asked for alone.
"""

import abc
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxgeodp.manifolds.derivatives import as_if_of
from jaxgeodp.manifolds.manifold import Manifold, real_dtype


class Equation(abc.ABC):
    """grad F(x; D) = 0 on a manifold. It holds no data: those are arguments."""

    manifold: Manifold

    @abc.abstractmethod
    def slope(self, x: "NormalCoordinates", z, *data) -> jax.Array:
        """Coordinates (dim,) that are 0 where the gradient at x(z) is: of a tangent vector there, ``x.seen`` of it."""

    def hessian(self, minimizer, *data) -> jax.Array:
        """Return the derivative of `slope` in z at the minimiser, where z is 0, (dim, dim); by default computed."""
        x = NormalCoordinates(self.manifold, minimizer, self.manifold.frame(minimizer))
        found: jax.Array = jax.jacfwd(lambda z: self.slope(x, z, *data))(x.zero)
        return found

    def knows(self, *data) -> jax.Array | bool:
        """Tell whether the theorem applies; if not, the caller has another derivative, and this one is only finite."""
        return True


class NormalCoordinates(NamedTuple):
    """x(z), a point of the manifold."""

    manifold: Manifold
    origin: jax.Array
    frame: jax.Array

    def __call__(self, z) -> jax.Array:
        """The point."""
        return self.manifold.exp(self.origin, self.manifold.combine(z, self.frame))

    @property
    def zero(self):
        """The z of the origin."""
        return jnp.zeros(self.manifold.dim, real_dtype(self.origin))

    def seen(self, vector):
        """Inner products of an array at a point near the origin, made tangent there, with the frame."""
        return self.manifold.coordinates(self.origin, self.manifold.to_tangent(self.origin, vector), self.frame)


def implicit_derivative(equation: Equation, minimizer, primals, tangents) -> jax.Array:
    """Return the tangent vector at ``minimizer``, the solution for the data ``primals``, along their ``tangents``."""
    origin = jax.lax.stop_gradient(minimizer)
    frame = jax.lax.stop_gradient(equation.manifold.frame(origin))
    z = _solution(equation, origin, frame, *primals)
    change = _change(equation, origin, frame, z, primals, tangents)
    return equation.manifold.combine(change, _carried_frame(equation.manifold, origin, frame, z))


def _change(equation, origin, frame, z, primals, tangents):
    x = NormalCoordinates(equation.manifold, origin, frame)
    _, change = jax.jvp(lambda *data: equation.slope(x, z, *data), tuple(primals), tuple(tangents))
    jacobian = _jacobian(equation, origin, frame, z, *primals)
    return -jnp.linalg.solve(jnp.where(equation.knows(*primals), jacobian, jnp.eye(len(z), dtype=z.dtype)), change)


# Three functions of z, whose value is known at 0.


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _solution(equation, origin, frame, *data):
    """z for the data."""
    return as_if_of(jnp.zeros(equation.manifold.dim, real_dtype(origin)), origin, frame, *data)


@_solution.defjvp
def _solution_jvp(equation, primals, tangents):
    origin, frame, *data = primals
    z = _solution(equation, *primals)
    return z, _change(equation, origin, frame, z, data, tangents[2:])


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _jacobian(equation, origin, frame, z, *data):
    """The derivative of the slope in z."""
    return as_if_of(equation.hessian(origin, *data), origin, frame, z, *data)


@_jacobian.defjvp
def _jacobian_jvp(equation, primals, tangents):
    origin, frame, *rest = primals
    x = NormalCoordinates(equation.manifold, origin, frame)
    derivative = jax.jacfwd(lambda z, *data: equation.slope(x, z, *data))
    return _jacobian(equation, *primals), jax.jvp(derivative, tuple(rest), tuple(tangents[2:]))[1]


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _carried_frame(manifold, origin, frame, z):
    """The derivatives of x in z."""
    return as_if_of(frame, origin, z)


@_carried_frame.defjvp
def _carried_frame_jvp(manifold, primals, tangents):
    origin, frame, z = primals

    def carried(z):
        tangent = manifold.combine(z, frame)
        return jax.vmap(lambda e: jax.jvp(lambda v: manifold.exp(origin, v), (tangent,), (e,))[1])(frame)

    return _carried_frame(manifold, *primals), jax.jvp(carried, (z,), (tangents[2],))[1]
