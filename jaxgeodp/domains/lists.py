"""Records in lists and tables of Python, of which a few are no numbers: these are taken as NaN, and not refused."""

import collections
import math
import numbers
import warnings
from typing import Any

import numpy as np

_COMMON = (float, int, bool, type(None))
#: Names of the types of what is missing: Python's, and pandas's.
_MISSING = ("NoneType", "NAType", "NaTType")


def without_words(data: Any) -> Any:
    """Return lists of records, or a table of pandas, as an array with NaN in place of what is no number.

    What one record is must not decide whether all are refused. A word is NaN; a record of another shape is all NaN.

    Returns:
        An array; the data themselves where they are of any other type, or half of the records are no numbers.
    """
    table = hasattr(data, "iloc")
    if not table and not isinstance(data, list | tuple):
        return data
    try:
        with warnings.catch_warnings():  # one would speak of the data
            warnings.simplefilter("ignore")
            array = np.asarray(data)
    except ValueError:  # of unequal lengths
        array = None
    if array is not None and (array.ndim == 0 or array.dtype.kind not in "USO"):
        return data if table else array
    source: Any = array if table else data
    rows: list[Any] = [_cells(row) for row in source]
    shapes = collections.Counter(row.shape for row in rows if row is not None)
    shape, count = shapes.most_common(1)[0] if shapes else ((), 0)
    if 2 * count <= len(rows):
        return data
    nothing = np.full(shape, None, object)
    cells = np.stack([row if row is not None and row.shape == shape else nothing for row in rows])
    other = np.fromiter((not _is_number(cell) for cell in cells.flat), bool, cells.size).reshape(cells.shape)
    spoiled = np.any(other.reshape(len(rows), -1), axis=1)
    if 2 * (count - np.sum(spoiled)) <= len(rows):
        return data
    kind = complex if any(np.iscomplexobj(cell) for cell in cells.flat if type(cell) not in _COMMON) else float
    own = (math.nan if bad else _number(cell, kind) for cell, bad in zip(cells.flat, other.flat, strict=True))
    return np.fromiter(own, kind, cells.size).reshape(cells.shape)


def _cells(row):
    try:
        return np.array(row, object)
    except ValueError:  # of arrays that do not fit together
        return None


def _is_number(cell):
    if type(cell) in _COMMON or type(cell).__name__ in _MISSING:
        return True
    if isinstance(cell, np.timedelta64):  # to NumPy an integer
        return False
    kind = getattr(getattr(cell, "dtype", None), "kind", None)
    return isinstance(cell, numbers.Number) if kind is None else kind in "biufc" and np.ndim(cell) == 0


def _number(cell, kind):
    """Return a number; NaN where there is none."""
    try:
        return math.nan if type(cell).__name__ in _MISSING else kind(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf
    except (TypeError, ValueError):
        return math.nan
