"""Rejection that looks at a few records for each proposal, not at all of them (docs/mathematics.md, Theorem V; ours).

The exponent of the target is a sum over records. Each record's part above a known lower bound lies between 0 and a
known upper bound, so that the proposal may be accepted with the probability that a Poisson process of known rate, each
of whose events is kept with a probability that depends on one record alone, keeps none. That is the very probability
by which all records together would accept it, and the law of the draws is the same.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

# Events that are looked at together, of a whole block of proposals.
_LANES = 64


@dataclasses.dataclass(frozen=True)
class Thinning:
    """An exponent as a sum over records, for a proposal x = exp_c(v) at distance t from the centre c.

    The log density is ``certain(v, t) - sum_i w_i part(i, x, v)`` with weights w_i that sum to 1 and
    ``0 <= part(i, x, v) <= most(t)``.

    Args:
        certain: ``(v, t) -> real``.
        part: ``(i, x, v) -> real``, of one record.
        most: ``t -> real``.
        weights: (n,).
    """

    certain: Callable
    part: Callable
    most: Callable
    weights: jax.Array


def accepted(key: jax.Array, thinning: Thinning, points, tangents, distances, log_limit) -> jax.Array:
    """Whether each of a block of proposals is accepted: with probability exp(log density - log_limit).

    Args:
        key: JAX random key.
        thinning: of the target.
        points, tangents, distances: of the proposals, (B, \\*shape), (B, \\*shape) and (B,).
        log_limit: (B,), at least ``thinning.certain``.
    """
    first_key, arrival_key, events_key = jax.random.split(key, 3)
    block, dtype = distances.shape[0], distances.dtype
    certain = jax.vmap(thinning.certain)(tangents, distances) - log_limit
    # 1 - uniform lies in (0, 1]: a zero density is never accepted.
    possible = jnp.log1p(-jax.random.uniform(first_key, (block,), dtype)) <= certain
    most = jax.vmap(thinning.most)(distances)
    arrivals = jax.random.exponential(arrival_key, (block,), dtype)
    steps = jnp.cumsum(thinning.weights)
    lanes = min(_LANES, block)

    def pending(possible, arrivals):
        return possible & (arrivals <= most)

    def unfinished(state):
        return jnp.any(pending(*state[:2]))

    def one_event_each(state):
        possible, arrivals, count = state
        (own,) = jnp.nonzero(pending(possible, arrivals), size=lanes, fill_value=block)
        record_key, keep_key, next_key = jax.random.split(jax.random.fold_in(events_key, count), 3)
        share = jax.random.uniform(record_key, (lanes,), steps.dtype) * steps[-1]
        record = jnp.minimum(jnp.searchsorted(steps, share, side="right"), steps.shape[0] - 1)
        part = jax.vmap(thinning.part)(record, points[own], tangents[own])
        kept = jax.random.uniform(keep_key, (lanes,), dtype) * most[own] < part
        possible = possible.at[own].set(~kept, mode="drop")
        arrivals = arrivals.at[own].add(jax.random.exponential(next_key, (lanes,), dtype), mode="drop")
        return possible, arrivals, count + 1

    return jax.lax.while_loop(unfinished, one_event_each, (possible, arrivals, 0))[0]
