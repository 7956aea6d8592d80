"""Work on many records, block by block: temporary arrays stay small, and records need not be in memory at once."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError

# Numbers that a block holds.
BLOCK = 2**20
# Of blocks of one shape, whatever the number of records: numbers, about, and the most and least records.
_NUMBERS, _MOST_ROWS, _LEAST_ROWS = 2**15, 2**11, 16


class ReadError(OSError):
    """Error that a function that reads `RecordBlocks` has raised; its words are not passed on."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class RecordBlocks:
    """Records that are read block by block, as often as a release needs: more than memory holds.

    For releases with ``numerics="grid"``, whose integers add up.

    Args:
        read: gives an iterable of arrays (m, \\*shape of a record), the same records each time; m may be any number.
            Types are public: a table whose columns are not all numbers is refused, so that what reads it fixes them.
            A release reads all of it once before it is charged, and refuses another number of records than n or
            blocks of another shape; what it raises later ends the release, so that it must not depend on a record.
        shape: (n, \\*shape of a record); n is public.
        dtype: real or complex; blocks of other numbers are converted, complex ones to real ones never.

    Raises:
        ValueError: ``read`` is no function, the shape has no records, or the type is another.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp import Euclidean, GeodesicBall, RecordBlocks, WrappedGaussian
        >>> records = RecordBlocks(lambda: (np.zeros((1000, 2)) for _ in range(5)), (5000, 2))
        >>> mechanism = WrappedGaussian(GeodesicBall(Euclidean(2), [0.0, 0.0], 1.0), mu=1.0)
        >>> mechanism.release(records, numerics="grid").record["n"]
        5000
    """

    read: Callable[[], Iterable[Any]]
    shape: tuple[int, ...]
    dtype: Any = np.float64

    def __post_init__(self):
        shape = tuple(self.shape)
        if not callable(self.read) or not shape or not all(isinstance(m, int) and m >= 0 for m in shape):
            raise InputError(
                "RecordBlocks: needs a function that returns an iterable of blocks, and the shape (n, *shape of a "
                "record)."
            )
        if np.dtype(self.dtype).kind not in "fc":
            raise InputError("RecordBlocks: dtype must be real or complex, such as float or complex.")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dtype", np.dtype(self.dtype))

    def __len__(self):
        return self.shape[0]

    def mapped(self, function: Callable[[Any], np.ndarray], shape: tuple[int, ...], dtype) -> "RecordBlocks":
        """Return the records, each block under a function; ``shape`` and ``dtype`` are those of its results."""
        return RecordBlocks(lambda: map(function, self.exactly()), (len(self), *shape), dtype)

    def exactly(self) -> Iterator[np.ndarray]:
        """Yield the blocks of one pass: n records, whatever is read, as sensitivities are those of n.

        Surplus records are left out; missing ones, and those of another shape, become NaN.

        Raises:
            ReadError: ``read`` has raised something.
        """
        left, one = len(self), self.shape[1:]
        for part in _reading(self.read):
            own = _as_block(part, one, self.dtype)
            own = np.full((len(part), *one), np.nan, self.dtype) if own is None else own
            yield own[:left]
            left -= min(len(own), left)
        while left > 0:
            yield np.full((min(left, _MOST_ROWS), *one), np.nan, self.dtype)
            left -= min(left, _MOST_ROWS)

    def check(self, owner: str) -> None:
        """Read all blocks once, and refuse what does not fit the shape.

        Raises:
            ValueError: it is not what the shape says.
            ReadError: ``read`` has raised something.
        """
        count, one = 0, self.shape[1:]
        for part in _reading(self.read):
            if _as_block(part, one, self.dtype) is None:
                raise InputError(
                    f"{owner}: RecordBlocks yields a block that is not an array of numbers of shape (m, *{one})."
                )
            count += len(part)
        if count != len(self):
            raise InputError(f"{owner}: RecordBlocks yields {count} records, not the {len(self)} stated by its shape.")
        # An iterator that is used up would give no record after the charge.
        if count > 0 and next(_reading(self.read), None) is None:
            raise InputError(
                f"{owner}: RecordBlocks yields nothing on a second pass; its function must return a new iterable on "
                "each call."
            )


def _reading(read) -> Iterator[Any]:
    try:
        for part in read():
            array = hasattr(part, "dtype") and part.shape  # a table of pandas has none, an array of Dask stays one
            yield part if array else np.atleast_1d(np.asarray(part))
    except (InputError, OSError):
        raise
    except Exception as error:
        raise ReadError(f"RecordBlocks: reading has ended with {type(error).__name__}.") from None


def _as_block(part, one, dtype) -> np.ndarray | None:
    """Return an array of records; None if it is none of numbers of their shape and kind."""
    if tuple(part.shape[1:]) != one or np.dtype(part.dtype).kind not in ("fiuc" if dtype.kind == "c" else "fiu"):
        return None
    with np.errstate(all="ignore"):  # a warning about an overflow would speak of the data
        return np.asarray(part).astype(dtype, copy=False)


def rows_at_once(shape: tuple[int, ...]) -> int:
    """Return how many records of ``shape`` a block has; a multiple of the lanes of vector instructions."""
    rows = 2 ** int(math.log2(max(_NUMBERS // max(1, math.prod(shape)), 1)))
    return min(max(rows, _LEAST_ROWS), _MOST_ROWS)


def blocks_of(records, rows: int) -> Iterator[np.ndarray]:
    """Yield an array, or `RecordBlocks`, in arrays of at most so many records; at least one, which may be empty."""
    parts = records.exactly() if isinstance(records, RecordBlocks) else [records]
    some = False
    for part in parts:
        part = np.asarray(part)
        for start in range(0, len(part), rows):
            some = True
            yield part[start : start + rows]
    if not some:
        yield np.zeros((0, *records.shape[1:]), records.dtype)


def padded(block: np.ndarray, rows: int) -> np.ndarray:
    """Return a block padded with zeros to so many rows."""
    missing = rows - len(block)
    return np.concatenate([block, np.zeros((missing, *block.shape[1:]), block.dtype)]) if missing else block


def map_in_blocks(function, records):
    """Return ``jax.vmap(function)(records)`` for a function that keeps the shape of a record; (n, \\*shape)."""
    count, size = records.shape[0], _size(records)
    if count <= 2 * size:
        return jax.vmap(function)(records)

    def one(j, result):
        start = jnp.minimum(j * size, count - size)  # the last block overlaps the one before
        block = jax.vmap(function)(jax.lax.dynamic_slice_in_dim(records, start, size))
        return jax.lax.dynamic_update_slice_in_dim(result, block.astype(records.dtype), start, 0)

    return jax.lax.fori_loop(0, math.ceil(count / size), one, jnp.zeros_like(records))


def sum_in_blocks(function, records, weights, rows: int | None = None):
    """Return ``function(records, weights)``, a sum over records (a pytree of arrays), added up over blocks.

    Args:
        rows: records per block, for a function that needs much more memory than they do.
    """
    count, size = records.shape[0], rows or _size(records)
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
    """Return the number of records per block."""
    return max(1024, BLOCK // max(1, math.prod(records.shape[1:])))
