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
    table, objects = hasattr(data, "iloc"), isinstance(data, np.ndarray) and data.dtype == object
    if not table and not objects and not isinstance(data, list | tuple):
        return data
    try:
        with warnings.catch_warnings():  # one would speak of the data
            warnings.simplefilter("ignore")
            array = np.asarray(data)
    except ValueError:  # of unequal lengths
        array = None
    if array is not None and (array.ndim == 0 or array.dtype.kind not in "USO"):
        return data if table else array
    source: Any = array if table else list(data)
    rows: list[Any] = [_cells(row) for row in source]
    shapes = collections.Counter(row.shape for row in rows if row is not None)
    shape, count = shapes.most_common(1)[0] if shapes else ((), 0)
    if 2 * count <= len(rows):
        return data
    nothing = np.full(shape, None, object)
    cells = np.stack([row if row is not None and row.shape == shape else nothing for row in rows])
    other = np.fromiter((not is_number(cell) for cell in cells.flat), bool, cells.size).reshape(cells.shape)
    spoiled = np.any(other.reshape(len(rows), -1), axis=1)
    if 2 * (count - np.sum(spoiled)) <= len(rows):
        return data
    cells[other] = None
    return numbers_of(cells)


def numbers_of(cells: np.ndarray) -> np.ndarray:
    """Return an array of objects, for each of which `is_number` holds, as real numbers; complex where one of them is.

    What is missing is NaN, and what is too large infinite.
    """
    kind = complex if any(np.iscomplexobj(cell) for cell in cells.flat if type(cell) not in _COMMON) else float
    return np.fromiter((_number(cell, kind) for cell in cells.flat), kind, cells.size).reshape(cells.shape)


def without_complex(array: np.ndarray) -> np.ndarray:
    """Return complex records (n, ...) as real ones, each NaN that is not; themselves if half of them are not."""
    other = np.any((np.imag(array) != 0.0).reshape(len(array), -1), axis=1)
    if 2 * np.sum(other) >= len(array):
        return array
    real = np.array(np.real(array))
    real[other] = math.nan
    return real


def _cells(row):
    try:
        return np.array(row, object)
    except ValueError:  # of arrays that do not fit together
        return None


def is_number(cell: Any) -> bool:
    """Return whether an object is one number, or says that one is missing; a duration is none."""
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
