"""Newton steps in a tangent space: ``H d = g`` by a fixed number of conjugate gradient steps.

The Hessian of half the mean squared distance is close to a multiple of the identity (comparison theorems bound its
spectrum), so that few steps suffice, and no factorisation: a batch of them is plain arithmetic on arrays.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

_STEPS = 6


def solve(apply: Callable, rhs: jax.Array, steps: int = _STEPS) -> tuple[jax.Array, jax.Array]:
    """``(d, |g - H d|/|g|)`` for the symmetric positive definite operator ``apply`` (exact after dim steps)."""
    solution, residual, direction = jnp.zeros_like(rhs), rhs, rhs
    tiny = jnp.finfo(rhs.dtype).tiny
    first = square = jnp.sum(rhs**2)
    for _ in range(steps):
        image = apply(direction)
        curvature = jnp.sum(direction * image)
        # A finished iteration divides 0 by 0.
        size = square / jnp.where(jnp.abs(curvature) > tiny, curvature, 1.0)
        solution, residual = solution + size * direction, residual - size * image
        following = jnp.sum(residual**2)
        direction = residual + following / jnp.maximum(square, tiny) * direction
        square = following
    return solution, jnp.sqrt(square / jnp.maximum(first, tiny))
