"""Derivatives of a minimiser by the implicit function theorem.

grad F(x(D); D) = 0 gives dx = -H^{-1} d_D(grad F), H the Hessian of F at the minimiser, in an orthonormal frame there.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxgeodp.manifolds.manifold import Manifold, real_dtype


def implicit_derivative(manifold: Manifold, minimizer, objective: Callable, gradient: Callable, primals, tangents):
    """The tangent vector at ``minimizer`` along the ``tangents`` of the data.

    Args:
        minimizer: the point x(D), held fixed.
        objective: F as a function of (x, \\*data).
        gradient: the Riemannian gradient of F at ``minimizer`` as a function of (\\*data).
        primals, tangents: the data and their tangents.
    """
    frame = manifold.frame(minimizer)

    def slope(*data):
        return manifold.coordinates(minimizer, gradient(*data), frame)

    def in_normal_coordinates(z):
        return objective(manifold.exp(minimizer, manifold.combine(z, frame)), *primals)

    _, change = jax.jvp(slope, tuple(primals), tuple(tangents))
    hessian = jax.hessian(in_normal_coordinates)(jnp.zeros(manifold.dim, real_dtype(minimizer)))
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
