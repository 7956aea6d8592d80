"""Newton steps in a tangent space: ``H d = g`` by conjugate gradients.

The Hessian of half the mean squared distance is close to a multiple of the identity (comparison theorems bound its
spectrum), so that few steps suffice, and no factorisation: a batch of them is plain arithmetic on arrays.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

_STEPS = 6
# Of `solve_preconditioned`: relative, and a number of steps that only data of extreme spread take.
_RESIDUAL, _LARGEST = 1e-8, 30


class NewtonMoments(NamedTuple):
    """`Manifold.log_moments`, a step towards the Fréchet mean, and its quality.

    ``|total - H step| <= rate |total|``, H being the Hessian of ``(1/2) sum_i w_i dist(x, x_i)**2`` at the base.
    """

    total: jax.Array  #: ``sum_i w_i log_base(x_i)``
    square: jax.Array  #: ``sum_i w_i dist(base, x_i)**2``
    step: jax.Array  #: only a direction of the right length, where the rate is not known
    rate: jax.Array | float | None  #: 0 for Newton's step; None where nothing is known


def solve(apply: Callable, rhs: jax.Array, steps: int = _STEPS) -> tuple[jax.Array, jax.Array]:
    """Return ``(d, |g - H d|/|g|)`` for the symmetric positive definite operator ``apply`` (exact after dim steps)."""
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


def solve_preconditioned(apply: Callable, precondition: Callable, rhs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Run `solve` until the residual is below 1e-8 or rounding, for costly operators with cheap preconditioners.

    Flexible conjugate gradients (Notay 2000): the preconditioner may be another linear map each time.

    Args:
        apply: the symmetric positive definite operator H.
        precondition: nearly its inverse.
        rhs: g.
    """
    tiny = jnp.finfo(rhs.dtype).tiny
    first = jnp.sum(rhs**2)
    enough = max(_RESIDUAL, float(jnp.finfo(rhs.dtype).eps)) ** 2 * first

    def unfinished(state):
        _, residual, _, _, count = state
        return (jnp.sum(residual**2) > enough) & (count < _LARGEST)

    def step(state):
        solution, residual, direction, square, count = state
        image = apply(direction)
        curvature = jnp.sum(direction * image)
        size = jnp.sum(direction * residual) / jnp.where(jnp.abs(curvature) > tiny, curvature, 1.0)
        following = residual - size * image
        better = precondition(following)
        share = jnp.sum(better * (following - residual)) / jnp.maximum(square, tiny)
        return (
            solution + size * direction,
            following,
            better + share * direction,
            jnp.sum(better * following),
            count + 1,
        )

    direction = precondition(rhs)
    start = jnp.zeros_like(rhs), rhs, direction, jnp.sum(direction * rhs), 0
    solution, residual, *_ = jax.lax.while_loop(unfinished, step, start)
    return solution, jnp.sqrt(jnp.sum(residual**2) / jnp.maximum(first, tiny))
