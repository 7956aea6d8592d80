"""Rejection with cheap bounds, which reads the records only where these do not decide (docs/mathematics.md, section 6).

A proposal is accepted if its uniform number is below the ratio of target and envelope. Where a lower bound of that
ratio is above the number, it is accepted, and where an upper bound is below, it is not, whatever the ratio is: the same
decisions as without the bounds (Marsaglia's squeeze, 1977), but the target is evaluated for few proposals.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp


@dataclass(frozen=True)
class Squeeze:
    """A log density, with cheap bounds.

    Args:
        log_density: ``x -> real``.
        bounds: of a proposal x = exp_c(v) at distance t from c, ``(v, t) -> (lower, upper)``; NaN where nothing is
            known.
        lanes: proposals whose log density is evaluated together.
    """

    log_density: Callable
    bounds: Callable
    lanes: int


def accepted(squeeze: Squeeze, log_uniforms, points, tangents, distances, log_limit) -> jax.Array:
    """Return which of a block of proposals are accepted: where ``log_uniforms <= log_density - log_limit``.

    Args:
        squeeze: of the target.
        log_uniforms: logarithms of the proposals' uniform numbers, (B,).
        points, tangents, distances: of the proposals, (B, \\*shape), (B, \\*shape) and (B,).
        log_limit: log of the envelope's density, (B,); infinite for what is not accepted.
    """
    block = distances.shape[0]
    lower, upper = jax.vmap(squeeze.bounds)(tangents, distances)
    accept = log_uniforms <= lower - log_limit
    pending = ~(accept | (log_uniforms > upper - log_limit))
    # One after another, filled up with an index that is none, so that there is a whole number of steps.
    steps = -(-block // squeeze.lanes)
    (order,) = jnp.nonzero(pending, size=steps * squeeze.lanes, fill_value=block)
    count = jnp.sum(pending)

    def unfinished(state):
        return state[1] < count

    def some(state):
        accept, start = state
        own = jax.lax.dynamic_slice_in_dim(order, start, squeeze.lanes)
        values = jax.vmap(squeeze.log_density)(points[own])
        met = log_uniforms[own] <= values - log_limit[own]
        return accept.at[own].set(met, mode="drop"), start + squeeze.lanes

    return jax.lax.while_loop(unfinished, some, (accept, jnp.zeros_like(count)))[0]
