"""Records in lists and tables of Python, of which some are no numbers: these are taken as NaN, and not refused."""

import collections
import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

_COMMON = (float, int, bool, type(None))
#: Names of the types of what is missing: Python's, pandas's and NumPy's.
_MISSING = ("NoneType", "NAType", "NaTType", "MaskedConstant")
# As pandas writes a column of truth values in which one cell is a word.
_TRUTH = {word: value for value, own in enumerate(("False FALSE false", "True TRUE true")) for word in own.split()}
# Lists of more depth are of no records.
_DEEPEST = 16
#: Converts an array of records (m, \\*shape) as a domain does; None where it refuses their shape, or their type.
Converts = Callable[[np.ndarray], Any]


def records_in_lists(data: Any, converts: Converts) -> Any:
    """Return lists of records, objects in an array, or a table of pandas as an array with NaN for what is no number.

    What one record is must not decide whether all are refused. A record is NaN that has a word, a shape that is not
    taken, or a complex number where they are real. Truth values are numbers here, as None among them would make them
    so. Text that is a number counts as one in a table alone, whose columns are text if one cell of a file is a word.
    Where a domain takes several shapes, each record is converted from its own; where they remain apart, as a
    domain leaves the shape open, that of more than half of the records counts. All are in double precision, as a word
    among short floats would make all so.

    Args:
        data: anything; what is of none of these types is returned.
        converts: see `Converts`.

    Returns:
        An array; the data themselves, to be refused, where there is no such shape, or where there are several records
        and not one is of numbers, as in a wrong column.
    """
    table, objects = hasattr(data, "iloc"), isinstance(data, np.ndarray) and data.dtype == object
    if not table and not objects and not isinstance(data, list | tuple):
        return data
    with warnings.catch_warnings():  # one would speak of the data
        warnings.simplefilter("ignore")
        array = None if _has_more(data) else _array_of(data)
        if table and array is not None and array.dtype.kind in "OUST":
            array = _with_numbers_of_text(array)
        if array is None or array.dtype.kind not in "biufc":
            array = _numbers_of_rows(array if table else data, array, converts)
    if array is None:
        return data
    with np.errstate(all="ignore"):
        array = array.astype(complex if array.dtype.kind == "c" else float)
    if array.dtype.kind == "c" and converts(np.zeros((1, *array.shape[1:]), complex)) is None:
        real = _real(array)
        # As a wrong column, several are refused if not one is real.
        return array if len(array) > 1 and np.all(np.isnan(real).reshape(len(array), -1).any(axis=1)) else real
    return array


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
    try:
        kind = getattr(getattr(cell, "dtype", None), "kind", None)
        return isinstance(cell, numbers.Number) if kind is None else kind in "biufc" and np.ndim(cell) == 0
    except Exception:  # it would tell of a record
        return False


def _array_of(data):
    """Return an array; None where parts do not fit together, or say of themselves that they are none."""
    try:
        return np.asarray(data)
    except (jax.errors.TracerArrayConversionError, MemoryError):
        raise
    except Exception:  # it would tell of a record
        return None


def _with_numbers_of_text(cells):
    """Return objects (n, ...) with numbers in place of the text of one; other text stays."""
    read = np.empty(cells.size, object)
    read[:] = [_number_of_text(cell) if isinstance(cell, str) else cell for cell in cells.flat]
    return read.reshape(cells.shape)


def _number_of_text(cell):
    if cell in _TRUTH:
        return _TRUTH[cell]
    try:
        return cell if "_" in cell else float(cell)
    except ValueError:
        return cell


def _row_of(row):
    """Return a record as an array of objects; None where it is none."""
    try:
        return np.array(_without_masks(row, 0), object)
    except Exception:  # it would tell of a record
        return None


class _Alike(NamedTuple):
    """Records of one shape that a domain takes."""

    places: list[int]
    numbers: np.ndarray  #: as they were given, NaN for what is none
    shape: tuple[int, ...]  #: of a record that is converted
    good: bool  #: whether one of them at least is of numbers alone


def _numbers_of_rows(rows, array, converts):
    """Return rows as an array of numbers; None where they are to be refused."""
    if len(rows) == 0:
        return np.zeros(np.shape(array))
    groups: dict[tuple, dict[int, np.ndarray]] = collections.defaultdict(dict)
    for place, row in enumerate(map(_row_of, rows)):
        if row is not None:
            groups[row.shape][place] = row
    found = (
        _alike(list(group), np.stack(list(group.values())), converts, len(groups) > 1) for group in groups.values()
    )
    parts = [part for part in found if part is not None]
    if not parts or (len(rows) > 1 and not any(part.good for part in parts)):
        return None
    return _together(parts, len(rows), converts)


def _alike(places, cells, converts, apart) -> _Alike | None:
    """Return records of one shape, objects (m, \\*shape), as numbers; None where a domain does not take their shape.

    Args:
        places: of the records among all.
        cells: is changed.
        converts: see `Converts`.
        apart: whether there are other shapes, too: then complex records are none where they are real.
    """
    other = np.fromiter((not is_number(cell) for cell in cells.flat), bool, cells.size).reshape(cells.shape)
    good = not np.all(np.any(other.reshape(len(places), -1), axis=1))
    cells[other] = None
    own = numbers_of(cells)
    taken = {kind: converts(np.zeros((1, *cells.shape[1:]), kind)) for kind in (complex, float)}
    converted = next((one for one in taken.values() if one is not None), None)
    if converted is None:
        return None
    real = apart and taken[complex] is None and own.dtype.kind == "c"
    return _Alike(places, _real(own) if real else own, np.shape(converted)[1:], good)


def _together(parts: list[_Alike], number: int, converts):
    """Return so many records, NaN where they are in no part; None where several shapes remain, each of few.

    Those of one shape are as they were given, others as they are converted.
    """
    if len(parts) == 1:
        shape, joined = parts[0].numbers.shape[1:], [(parts[0].places, parts[0].numbers)]
    else:
        counts = collections.Counter()
        for part in parts:
            counts[part.shape] += len(part.places)
        shape, count = counts.most_common(1)[0]
        if len(counts) > 1 and 2 * count <= number:
            return None
        joined = [(part.places, np.asarray(converts(part.numbers))) for part in parts if part.shape == shape]
    whole = np.full((number, *shape), math.nan, np.result_type(*(own for _, own in joined)))
    for places, own in joined:
        whole[places] = own
    return whole


def _real(array):
    """Return complex records (n, ...) as real ones, each NaN that is not."""
    real = np.array(np.real(array))
    real[np.any((np.imag(array) != 0.0).reshape(len(array), -1), axis=1)] = math.nan
    return real


def _without_masks(data, depth):
    """Return nested lists with None in place of what the masks of their arrays hide."""
    if isinstance(data, np.ma.MaskedArray):
        cells = np.array(np.ma.getdata(data), object)
        cells[np.ma.getmaskarray(data)] = None
        return cells
    if depth > _DEEPEST:
        raise RecursionError  # `_row_of` takes it as no record
    return [_without_masks(own, depth + 1) for own in data] if isinstance(data, list | tuple) else data


def _has_more(data, depth=0):
    """Return whether nested lists have more than numbers: masks, words, of which an array may be large, or depth."""
    if isinstance(data, np.ma.MaskedArray | str | bytes | bytearray) or depth > _DEEPEST:
        return True
    return isinstance(data, list | tuple) and any(_has_more(own, depth + 1) for own in data)


def _number(cell, kind):
    """Return a number; NaN where there is none."""
    try:
        return math.nan if type(cell).__name__ in _MISSING else kind(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf
    except Exception:  # it would tell of a record
        return math.nan
