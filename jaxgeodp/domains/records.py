"""Raw data as arrays: only their shape and type are looked at, never what they hold."""

import math
import operator
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError, many, short
from jaxgeodp.compiling import seen_anew
from jaxgeodp.domains.lists import is_number, numbers_of

# Numbers of records: floats hold all up to it.
_MOST = 10**15


def points_in(manifold: Any, data) -> Any:
    """Return an array of records as points that may be written in another form; see `Manifold.as_points`.

    One number is a record where many are, and not a point's only coordinate.
    """
    if data.shape == (1,) and manifold.as_points(np.zeros(2)).shape == (2, *manifold.shape):
        data = data[:, None]
    return manifold.as_points(data)


def records_of_shape(owner: str, data, shape: tuple[int, ...], kind: str, where: str) -> jax.Array:
    """Return data as an inexact array (n, \\*shape).

    Args:
        owner: whom a refusal names.
        data: an array; `host_array` makes one.
        shape: of one record.
        kind: "real" or "complex".
        where: for messages, such as "on Sphere(2)".

    Raises:
        ValueError: another shape or kind of data.
    """
    if not is_numeric(data.dtype, "fiuc" if kind == "complex" else "fiu"):
        raise InputError(f"{owner}: data must be {kind} numbers, got {kind_of_data(data)}.")
    if data.ndim != len(shape) + 1 or data.shape[1:] != shape:
        expected = ", ".join(["n", *map(str, shape)])
        raise InputError(f"{owner}: data must have shape ({expected}) {where}, got {many(data.shape)}.")
    data = jnp.asarray(data)
    return data.astype(jnp.result_type(data.dtype, complex if kind == "complex" else float))


def host_array(name: str, data) -> np.ndarray:
    """Return data as a NumPy array that JAX can hold: in the byte order of this machine, at most double precision."""
    try:
        with warnings.catch_warnings():  # one about a masked element would speak of the data
            warnings.simplefilter("ignore")
            array = np.asarray(_without_missing(data))
    except (jax.errors.TracerArrayConversionError, MemoryError):
        raise
    except Exception:  # it may tell of a record
        raise InputError(f"{name}: data must be one array of numbers; nested lists must have equal lengths.") from None
    if isinstance(data, np.ma.MaskedArray) and array.dtype.kind in "iufc":
        array = np.where(np.ma.getmaskarray(data), np.nan, array)
    elif array.dtype == object and array.ndim == 1 and all(np.ndim(value) > 0 for value in array):
        try:
            array = np.stack([np.asarray(value, np.float64) for value in array])  # as a column of a table holds arrays
        except (TypeError, ValueError):
            raise InputError(
                f"{name}: data must be one array of numbers; arrays in it must have equal shapes."
            ) from None
    elif array.dtype == object and not hasattr(data, "dtype") and all(is_number(cell) for cell in array.flat):
        array = numbers_of(array)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    double = {np.dtype(np.longdouble): np.float64, np.dtype(np.clongdouble): np.complex128}
    with np.errstate(all="ignore"):  # a warning about an overflow would speak of the data
        return seen_anew(array.astype(double.get(array.dtype, array.dtype), copy=False))


def is_numeric(dtype, kinds: str) -> bool:
    """Return whether a type is NumPy's and of these ``kinds``, or bfloat16; those of eight bits or less are not."""
    return dtype == jnp.bfloat16 or (isinstance(dtype, np.dtype) and dtype.isbuiltin != 2 and dtype.kind in kinds)


def kind_of_data(array) -> str:
    """Return the kind of data for messages: how long a text is, and how wide a number, could tell of a record."""
    kinds = {"U": "text", "S": "bytes", "b": "truth values", "O": "objects", "c": "complex numbers"}
    kinds |= {"f": "real numbers", "i": "integers", "u": "integers"}
    return kinds.get(np.dtype(array.dtype).kind, "another type")


def _without_missing(data):
    """Return a pandas table of numbers, some of them missing, with NaN for these; other data as they are."""
    kinds = getattr(data, "dtypes", None)  # of a series its type, of a frame those of its columns
    kinds = [kinds] if hasattr(kinds, "kind") else getattr(kinds, "values", [])
    nullable = any(not isinstance(kind, np.dtype) for kind in kinds) and hasattr(data, "to_numpy")
    if nullable and all(getattr(kind, "kind", "O") in "fiu" for kind in kinds):
        return data.to_numpy(dtype=float, na_value=math.nan)
    return data


def record_count(n: int) -> int:
    """Return n as an integer; refuse a number that no mechanism takes."""
    try:
        count = operator.index(n)
    except TypeError:
        raise InputError(f"a mechanism needs a number n of records that is an integer >= 2, got {n!r}.") from None
    if count < 2:
        raise InputError(f"a mechanism needs n >= 2 records, got {n}.")
    if count > _MOST:
        raise InputError(f"a mechanism takes at most {_MOST:.0e} records, got {short(count)}.")
    return count
