"""States that an engine for large data prepares: `Mechanism.prepare` on each block, wherever it is, and their sum.

None of the engines is ours. What leaves a block is its state, which is as private as its records: the engine's network
and disks must be those that may hold them. docs/scale.md has the lines for others.
"""

from collections.abc import Callable, Iterable
from typing import Any

from jaxgeodp.checks import InputError
from jaxgeodp.releases.mechanism import Mechanism
from jaxgeodp.releases.states import State, merged

# States that are added up in one task.
_AT_ONCE = 16


def prepared_by_dask(
    mechanism: Mechanism, blocks: Any, records_of: Callable[[Any], Any] | None = None, client: Any = None
) -> State:
    """Return the state of all blocks of a Dask collection, or of any blocks that tasks can read; give it to `finish`.

    A task that is run again, as its worker was lost, counts once.

    Args:
        mechanism: whose law is a sum; see `Mechanism.prepare`.
        blocks: a Dask DataFrame, Array (in blocks along its first axis alone) or Bag, or a list of anything: arrays,
            `dask.delayed` objects, names of files.
        records_of: what makes an array (m, \\*shape of a record) of a block, such as a function that reads a file; runs
            on the worker. By default `numpy.asarray`.
        client: a `dask.distributed.Client`; by default the scheduler that Dask is set to.

    Raises:
        ValueError: no block, or see `Mechanism.prepare`.
    """
    try:
        from dask.base import compute
        from dask.delayed import delayed
    except ImportError:
        raise InputError("prepared_by_dask: needs the package dask: pip install 'jaxgeodp[dask]'.") from None
    if any(count != 1 for count in getattr(blocks, "numblocks", ())[1:]):
        raise InputError("prepared_by_dask: an Array must be chunked along its first axis only; rechunk it.")
    if hasattr(blocks, "to_delayed"):
        blocks = blocks.to_delayed()
        blocks = blocks.ravel().tolist() if hasattr(blocks, "ravel") else blocks
    one = delayed(_prepared, pure=False)
    states = [one(mechanism, block, records_of) for block in blocks]
    if not states:
        raise InputError("prepared_by_dask: the collection has no blocks; give at least one.")
    together = delayed(merged, pure=False)
    while len(states) > 1:
        states = [together(states[j : j + _AT_ONCE]) for j in range(0, len(states), _AT_ONCE)]
    return compute(states[0])[0] if client is None else client.compute(states[0]).result()


def prepared_in_turn(mechanism: Mechanism, blocks: Iterable[Any]) -> State:
    """Return the state of blocks that come in turn, such as batches of a reader: one is in memory at a time."""
    states: list[State] = []
    for block in blocks:
        states.append(mechanism.prepare(block))
        if len(states) == _AT_ONCE**2:
            states = [merged(states)]
    if not states:
        raise InputError("prepared_in_turn: there are no blocks; give at least one.")
    return merged(states)


def _prepared(mechanism, block, records_of):
    return mechanism.prepare(block if records_of is None else records_of(block))
