"""Records in lists and tables of Python, of which some are no numbers: these are taken as NaN, and not refused."""

import collections
import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

_COMMON = (float, int, bool, type(None))
#: Names of the types of what is missing: Python's, pandas's and NumPy's.
_MISSING = ("NoneType", "NAType", "NaTType", "MaskedConstant")
#: Whether records of a shape and a type, float or complex, are not refused.
Takes = Callable[[tuple[int, ...], type], bool]


def records_in_lists(data: Any, takes: Takes) -> Any:
    """Return lists of records, objects in an array, or a table of pandas as an array with NaN for what is no number.

    What one record is must not decide whether all are refused. A record is NaN that has a word, another shape, or a
    complex number where they are real. Truth values are numbers here, as None among them would make them so.

    Args:
        data: anything; what is of none of these types is returned.
        takes: says which shape a record has: of those that are taken, the commonest.

    Returns:
        An array; the data themselves, to be refused, where no record has a shape that is taken, or where there are
        several and not one is of numbers, as in a wrong column.
    """
    table, objects = hasattr(data, "iloc"), isinstance(data, np.ndarray) and data.dtype == object
    if not table and not objects and not isinstance(data, list | tuple):
        return data
    with warnings.catch_warnings():  # one would speak of the data
        warnings.simplefilter("ignore")
        array = None if _has_masks(data) else _array_of(data, None)
        if array is None or array.dtype.kind not in "biufc":
            array = _numbers_of_rows(array if table else data, array, takes)
        elif table and array.dtype.kind in "iuf":
            return data
    if array is None:
        return data
    if array.dtype.kind == "c" and not takes(array.shape[1:], complex):
        return _real(array)
    return array.astype(float) if array.dtype.kind == "b" else array


def numbers_of(cells: np.ndarray) -> np.ndarray:
    """Return an array of objects, for each of which `is_number` holds, as real numbers; complex where one of them is.

    What is missing is NaN, and what is too large infinite.
    """
    kind = complex if any(np.iscomplexobj(cell) for cell in cells.flat if type(cell) not in _COMMON) else float
    return np.fromiter((_number(cell, kind) for cell in cells.flat), kind, cells.size).reshape(cells.shape)


def is_number(cell: Any) -> bool:
    """Return whether an object is one number, or says that one is missing; a duration is none."""
    if type(cell) in _COMMON or type(cell).__name__ in _MISSING:
        return True
    if isinstance(cell, np.timedelta64):  # to NumPy an integer
        return False
    kind = getattr(getattr(cell, "dtype", None), "kind", None)
    return isinstance(cell, numbers.Number) if kind is None else kind in "biufc" and np.ndim(cell) == 0


def _array_of(data, dtype):
    """Return an array; None where parts do not fit together, or say of themselves that they are none."""
    try:
        return np.array(data, dtype) if dtype is object else np.asarray(data)
    except (jax.errors.TracerArrayConversionError, MemoryError):
        raise
    except Exception:  # it would tell of a record
        return None


def _numbers_of_rows(rows, array, takes):
    """Return rows as an array of numbers; None where they are to be refused."""
    if len(rows) == 0:
        return np.zeros(np.shape(array))
    found = [_array_of(_without_masks(row), object) for row in rows]
    shapes = collections.Counter(row.shape for row in found if row is not None)
    shape = next((own for own, _ in shapes.most_common() if takes(own, float) or takes(own, complex)), None)
    if shape is None:
        return None
    # What it is filled with is no number.
    cells = np.stack([row if row is not None and row.shape == shape else np.full(shape, "", object) for row in found])
    other = np.fromiter((not is_number(cell) for cell in cells.flat), bool, cells.size).reshape(cells.shape)
    if len(found) > 1 and np.all(np.any(other.reshape(len(found), -1), axis=1)):
        return None
    cells[other] = None
    return numbers_of(cells)


def _real(array):
    """Return complex records (n, ...) as real ones, each NaN that is not; themselves if several and all are not."""
    other = np.any((np.imag(array) != 0.0).reshape(len(array), -1), axis=1)
    if len(array) > 1 and np.all(other):
        return array
    real = np.array(np.real(array))
    real[other] = math.nan
    return real


def _without_masks(data):
    """Return data with None in place of what the masks of its arrays hide."""
    if isinstance(data, np.ma.MaskedArray):
        cells = np.array(np.ma.getdata(data), object)
        cells[np.ma.getmaskarray(data)] = None
        return cells
    return [_without_masks(own) for own in data] if _has_masks(data) else data


def _has_masks(data):
    if isinstance(data, np.ma.MaskedArray):
        return True
    return isinstance(data, list | tuple) and any(map(_has_masks, data))


def _number(cell, kind):
    """Return a number; NaN where there is none."""
    try:
        return math.nan if type(cell).__name__ in _MISSING else kind(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf
    except Exception:  # it would tell of a record
        return math.nan
