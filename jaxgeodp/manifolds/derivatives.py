"""Riemannian gradient and Hessian by automatic differentiation, on any manifold.

In normal coordinates z -> exp_p(sum_i z_i e_i) with an orthonormal frame e_i, the Riemannian gradient and
Hessian of f at p are the ordinary ones at z = 0.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxgeodp.manifolds.manifold import Manifold, real_dtype


def riemannian_gradient(manifold: Manifold, fun: Callable) -> Callable:
    """Return the Riemannian gradient of a real function, as a function ``point -> tangent vector``.

    Args:
        manifold: of the points.
        fun: real function of one point, of pure JAX and differentiable.

    Returns:
        A function of one point, shape ``shape``, whose values are tangent vectors there, of the same shape. It may be
        jitted and batched by `jax.vmap`.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxgeodp import Sphere, riemannian_gradient
        >>> sphere, pole = Sphere(2), jnp.array([0.0, 0.0, 1.0])
        >>> riemannian_gradient(sphere, lambda x: x[0])(pole).round(3).tolist()
        [1.0, 0.0, 0.0]
    """

    def gradient(point):
        frame = manifold.frame(point)
        slope = jax.grad(_in_normal_coordinates(manifold, fun, point, frame))(_zero(manifold, point))
        return manifold.combine(slope, frame)

    return gradient


def riemannian_hessian(manifold: Manifold, fun: Callable) -> Callable:
    """Return the Riemannian Hessian of a real function, as a matrix in ``manifold.frame(point)``.

    Args:
        manifold: of the points.
        fun: real function of one point, of pure JAX and twice differentiable.

    Returns:
        A function of one point, shape ``shape``, whose values are symmetric matrices (dim, dim).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxgeodp import Sphere, riemannian_hessian
        >>> sphere, pole = Sphere(2), jnp.array([0.0, 0.0, 1.0])
        >>> riemannian_hessian(sphere, lambda x: x[2])(pole).round(3).tolist()
        [[-1.0, 0.0], [0.0, -1.0]]
    """

    def hessian(point):
        frame = manifold.frame(point)
        return jax.hessian(_in_normal_coordinates(manifold, fun, point, frame))(_zero(manifold, point))

    return hessian


def as_if_of(value, *arrays) -> Any:
    """Return the value with a formal dependence on arrays that it does not use.

    Under `jax.vmap` the value of a function with a derivative rule must be batched where its derivative is.
    """
    for array in arrays:
        if jnp.size(array) and not jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
            value = jnp.where(jnp.ravel(array)[0] == 0, value, value)
    return value


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def not_further(known: str, coefficients, variable):
    """Return the coefficients of a derivative, and refuse to differentiate them: they were made without the variable.

    Args:
        known: what is known, for the refusal.
        coefficients: any array.
        variable: what they depend on.

    Raises:
        TypeError: it is differentiated.
    """
    return coefficients


@not_further.defjvp
def _not_further_jvp(known, primals, tangents):
    raise TypeError(f"{known}; no more are known.")


def _in_normal_coordinates(manifold, fun, point, frame):
    return lambda z: fun(manifold.exp(point, manifold.combine(z, frame)))


def _zero(manifold, point):
    return jnp.zeros(manifold.dim, real_dtype(point))
