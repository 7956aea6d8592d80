"""Derivatives of a minimiser by the implicit function theorem.

grad F(x(D); D) = 0 gives dx = -H^{-1} d_D(grad F), H the Hessian of F at the minimiser, in an orthonormal frame there.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxgeodp.manifolds.manifold import Manifold, real_dtype


def implicit_derivative(
    manifold: Manifold, minimizer, gradient: Callable, primals, tangents, unused: bool | jax.Array = False
) -> jax.Array:
    """The tangent vector at ``minimizer`` along the ``tangents`` of the data.

    Args:
        minimizer: the point x(D), held fixed.
        gradient: the Riemannian gradient of F as a function of (x, \\*data), 0 at the minimiser: there its
            derivative in an ambient sense, made tangent, is the covariant one, the Hessian.
        primals, tangents: the data and their tangents.
        unused: where the caller has another derivative, and this one need only be finite (boolean, may be traced).
    """
    frame = manifold.frame(minimizer)

    def slope(z, *data):
        x = manifold.exp(minimizer, manifold.combine(z, frame))
        return manifold.coordinates(minimizer, manifold.to_tangent(minimizer, gradient(x, *data)), frame)

    origin = jnp.zeros(manifold.dim, real_dtype(minimizer))
    _, change = jax.jvp(lambda *data: slope(origin, *data), tuple(primals), tuple(tangents))
    hessian: jax.Array = jax.jacfwd(lambda z: slope(z, *primals))(origin)
    hessian = jnp.where(unused, jnp.eye(manifold.dim, dtype=hessian.dtype), 0.5 * (hessian + hessian.T))
    factor = jax.scipy.linalg.cho_factor(hessian)
    return manifold.combine(-jax.scipy.linalg.cho_solve(factor, change), frame)


@jax.custom_jvp
def refuse_second_derivatives(minimizer):
    """The minimiser itself; differentiating it raises TypeError.

    The derivative above holds the minimiser fixed: differentiated again it would be silently wrong.
    """
    return minimizer


@refuse_second_derivatives.defjvp
def _refuse(primals, tangents):
    raise TypeError("a minimiser's derivative was differentiated again: only first derivatives are available.")
