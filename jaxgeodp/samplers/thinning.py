"""Rejection that reads only a few records for each proposal (docs/mathematics.md, Theorem V; ours).

The exponent of the target is a sum over records. Each record's part above a known lower bound lies between 0 and a
known upper bound, so that the proposal may be accepted with the probability that a Poisson process of known rate, each
of whose events is kept with a probability that depends on one record alone, keeps none. That is the very probability
by which all records together would accept it, and the law of the draws is the same.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp

# Events that are looked at together: a share of the proposals of a block, but not too few and not too many.
_SHARE, _FEWEST, _MOST = 4, 16, 512


@dataclasses.dataclass(frozen=True)
class Thinning:
    """An exponent as a sum over records, for a proposal x = exp_c(v) at distance t from the centre c.

    The log density is ``certain(v, t) - rate(t) sum_i p_i share(i, x, v, t)`` with 0 <= share <= 1, p_i being
    ``weights`` over their sum.

    Args:
        certain: ``(v, t) -> real``.
        share: ``(i, x, v, t) -> real``, of one record.
        rate: ``t -> real``, at least 0.
        weights: (n,), at least 0, not all 0.
    """

    certain: Callable
    share: Callable
    rate: Callable
    weights: jax.Array


def accepted(key: jax.Array, thinning: Thinning, points, tangents, distances, log_limit) -> jax.Array:
    """Return which of a block of proposals are accepted, with probability exp(log density - log_limit).

    A proposal at which a number is not finite is not.

    Args:
        key: JAX random key.
        thinning: of the target.
        points, tangents, distances: of the proposals, (B, \\*shape), (B, \\*shape) and (B,).
        log_limit: (B,), at least ``thinning.certain``.
    """
    first_key, arrival_key, events_key = jax.random.split(key, 3)
    block, dtype = distances.shape[0], distances.dtype
    certain = jax.vmap(thinning.certain)(tangents, distances) - log_limit
    rates = jax.vmap(thinning.rate)(distances)
    # 1 - uniform lies in (0, 1]: a zero density is never accepted.
    possible = (jnp.log1p(-jax.random.uniform(first_key, (block,), dtype)) <= certain) & jnp.isfinite(rates)
    arrivals = jax.random.exponential(arrival_key, (block,), dtype)
    steps = jnp.cumsum(thinning.weights)
    lanes = min(block, max(_FEWEST, min(block // _SHARE, _MOST)))

    def pending(possible, arrivals):
        return possible & (arrivals <= rates)

    def unfinished(state):
        return jnp.any(pending(*state[:2]))

    def one_event_each(state):
        possible, arrivals, count = state
        (own,) = jnp.nonzero(pending(possible, arrivals), size=lanes, fill_value=block)
        record_key, keep_key, next_key = jax.random.split(jax.random.fold_in(events_key, count), 3)
        place = jax.random.uniform(record_key, (lanes,), steps.dtype) * steps[-1]
        record = jnp.minimum(jnp.searchsorted(steps, place, side="right"), steps.shape[0] - 1)
        share = jax.vmap(thinning.share)(record, points[own], tangents[own], distances[own])
        left = jax.random.uniform(keep_key, (lanes,), dtype) >= share  # never for NaN
        possible = possible.at[own].set(left, mode="drop")
        arrivals = arrivals.at[own].add(jax.random.exponential(next_key, (lanes,), dtype), mode="drop")
        return possible, arrivals, count + 1

    return jax.lax.while_loop(unfinished, one_event_each, (possible, arrivals, 0))[0]
