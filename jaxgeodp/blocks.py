"""Work on many records, block by block, so that temporary arrays stay small beside the data."""

import math

import jax
import jax.numpy as jnp

# Numbers that a block holds.
_BLOCK = 2**20


def map_in_blocks(function, records):
    """``jax.vmap(function)(records)`` for a function that keeps the shape of a record; (n, \\*shape)."""
    count, size = records.shape[0], _size(records)
    if count <= 2 * size:
        return jax.vmap(function)(records)

    def one(j, result):
        start = jnp.minimum(j * size, count - size)  # the last block overlaps the one before
        block = jax.vmap(function)(jax.lax.dynamic_slice_in_dim(records, start, size))
        return jax.lax.dynamic_update_slice_in_dim(result, block.astype(records.dtype), start, 0)

    return jax.lax.fori_loop(0, math.ceil(count / size), one, jnp.zeros_like(records))


def sum_in_blocks(function, records, weights):
    """``function(records, weights)``, a sum over records (a pytree of arrays), added up over blocks."""
    count, size = records.shape[0], _size(records)
    if count <= 2 * size:
        return function(records, weights)

    def part(j):
        start = jnp.minimum(j * size, count - size)
        own = jax.lax.dynamic_slice_in_dim(weights, start, size)
        own = jnp.where(start + jnp.arange(size) >= j * size, own, 0.0)  # counted once
        return function(jax.lax.dynamic_slice_in_dim(records, start, size), own)

    def one(j, total):
        return jax.tree_util.tree_map(jnp.add, total, part(j))

    return jax.lax.fori_loop(1, math.ceil(count / size), one, part(0))


def _size(records) -> int:
    """Records per block."""
    return max(1024, _BLOCK // max(1, math.prod(records.shape[1:])))
