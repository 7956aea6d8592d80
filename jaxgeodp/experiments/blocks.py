"""Replicates in blocks, spread over all devices of all processes (`jax.distributed`), without communication."""

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxgeodp.kept_programs import forget_programs_if_many

# Bytes of records that one block of replicates may hold on a device, and blocks that are worked on side by side: what
# one leaves idle, in its many small operations, the other uses.
_BLOCK_BYTES = 2**24
_BLOCKS_AT_A_TIME = 2
_LARGEST_BLOCK = 1024


def all_devices() -> Mesh:
    """Return a mesh of all devices of all processes, with the axis "replicates"."""
    return Mesh(np.array(jax.devices()), ("replicates",))


def block_size(manifold, size: int, replicates: int) -> int:
    """Return the replicates per block: a power of 2, so that few programs are compiled, within memory."""
    width = math.prod(manifold.shape) * (16 if manifold.dtype_kind == "complex" else 8)
    most = max(1, min(_LARGEST_BLOCK, _BLOCK_BYTES // (width * size)))
    return 2 ** min(math.ceil(math.log2(replicates)), math.floor(math.log2(most)))


def in_blocks(
    work: Callable[[jax.Array], Any],
    mesh: Mesh,
    replicates: int,
    block: int,
    progress: Callable[[int], None] | None,
) -> tuple[np.ndarray, ...]:
    """Return the columns of ``work`` over all replicates, block after block, in double precision.

    Args:
        work: of the numbers of replicates, which lie on the devices: arrays with a row for each.
        mesh: the devices.
        replicates: how many.
        block: replicates at a time and device.
        progress: called with the number of replicates done since the last call.
    """
    step = mesh.size * block
    forget_programs_if_many()

    def one_block(start):
        with jax.enable_x64(True):  # a thread has a setting of its own
            return _gathered(work(_numbers(mesh, start, step)))

    parts = []
    for part in _in_order(one_block, range(0, replicates, step)):
        if progress is not None:
            progress(min(step, replicates - len(parts) * step))
        parts.append(part)
    return tuple(np.concatenate(column)[:replicates] for column in zip(*parts, strict=True))


def on_each_device(mesh: Mesh, work: Callable, replicates, common):
    """Map ``work(*one replicate, *common)`` over all replicates, the rows of ``replicates``."""
    # Not partitioned by the compiler, which would let all devices wait for each other in every loop.
    replicated, spread = PartitionSpec(), PartitionSpec("replicates")

    def share(replicates, common):
        return jax.vmap(lambda one: work(*one, *common))(replicates)

    return jax.shard_map(share, mesh=mesh, in_specs=(spread, replicated), out_specs=spread, check_vma=False)(
        replicates, common
    )


def _in_order(work: Callable[[int], Any], items: Iterable[int]) -> Iterator[Any]:
    """Yield ``work`` of each item in order, several at a time; the first alone, as it compiles."""
    first, *rest = items
    yield work(first)
    if jax.process_count() > 1:  # all processes gather the same block
        yield from map(work, rest)
        return
    pool = ThreadPoolExecutor(_BLOCKS_AT_A_TIME)
    try:
        yield from pool.map(work, rest)
    finally:
        pool.shutdown(cancel_futures=True)


def _numbers(mesh, start, count):
    """Return the numbers of the replicates, sharded over the devices."""
    sharding = NamedSharding(mesh, PartitionSpec("replicates"))
    numbers = np.arange(start, start + count, dtype=np.uint32)
    return jax.make_array_from_callback(numbers.shape, sharding, lambda index: numbers[index])


def _gathered(results):
    """Return all results on the host of every process."""
    if jax.process_count() > 1:
        from jax.experimental import multihost_utils

        results = multihost_utils.process_allgather(results, tiled=True)
    return tuple(np.asarray(column) for column in results)
