"""Reading records and centres from files.

The *shape* of a file is public and may be refused; the *content* of a record is private, so that nothing here
refuses or reports a value: a cell that is no number becomes NaN, and a record with a NaN is later replaced by
the public centre (see `GeodesicBall.clip`).
"""

import csv
import math
import pathlib

import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.manifolds import SPD, Euclidean, Manifold, PlanarShapes, Sphere

_SUFFIXES = (".npy", ".npz", ".csv")


def read_records(path: pathlib.Path, manifold_name: str, array: str | None = None) -> tuple[Manifold, np.ndarray]:
    """The manifold and the records (n, \\*shape) of a data file.

    Args:
        path: .npy, .npz or .csv (a first line with words in it is a header).
        manifold_name: "euclidean" (n, d); "sphere" (n, d + 1); "spd" (n, k, k) or rows of k(k+1)/2 numbers
            (lower triangle by rows: x11, x21, x22, ...); "shapes" (n, k, 2), rows x1, y1, x2, y2, ... or complex
            (n, k).
        array: name of the array in an .npz file with several.

    Raises:
        ValueError: unreadable file, unknown manifold, or a shape that does not fit.
    """
    if manifold_name not in _ARRANGE:
        raise InputError(f"--manifold must be one of {', '.join(_ARRANGE)}, got '{manifold_name}'.")
    table = _read_array(path, array)
    if table.ndim < 2 or table.shape[0] < 2 or 0 in table.shape:
        raise InputError(f"{path}: needs at least 2 records, one per row, but holds an array of shape {table.shape}.")
    return _ARRANGE[manifold_name](path, table)


def read_center(center: str, manifold: Manifold) -> np.ndarray:
    """The public centre: the manifold's origin, or one point from a file in the same formats."""
    if center == "origin":
        return manifold.origin
    name = {Euclidean: "euclidean", Sphere: "sphere", SPD: "spd", PlanarShapes: "shapes"}[type(manifold)]
    path = pathlib.Path(center)
    table = _read_array(path, None)
    found, points = None, None
    for candidate in (table[None], table):
        if candidate.ndim >= 2 and candidate.shape[0] == 1:
            try:
                found, points = _ARRANGE[name](path, candidate)
            except ValueError:
                continue
            if found == manifold:
                break
    if found != manifold:
        raise InputError(f"--center {center}: must hold one point of {manifold}, but has shape {table.shape}.")
    projected = np.asarray(manifold.project(points[0]))
    if not np.all(np.isfinite(projected)):
        raise InputError(f"--center {center}: is not a point of {manifold}.")
    return projected


def _read_array(path: pathlib.Path, array: str | None) -> np.ndarray:
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise InputError(f"{path}: unknown file type '{suffix}'; use one of {', '.join(_SUFFIXES)}.")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    try:
        table = _read_csv(path) if suffix == ".csv" else _read_numpy(path, array)
    except _RefusalError as refusal:
        raise InputError(str(refusal)) from None
    except Exception:
        # The reader's own words could quote the content.
        raise InputError(
            f"{path}: cannot be read as {suffix}; check that the file is complete and of that type."
        ) from None
    if table.dtype.kind not in "iufcb":
        raise InputError(f"{path}: must hold numbers, but its type is {table.dtype}.")
    return table


class _RefusalError(Exception):
    """A refusal in our own words, safe to print."""


def _read_numpy(path, array):
    loaded = np.load(path, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return loaded
    with loaded:
        names = list(loaded.files)
        if array is None and len(names) == 1:
            array = names[0]
        if array not in names:
            raise _RefusalError(f"{path}: choose one of its arrays with --array: {', '.join(names)}.")
        return loaded[array]


def _read_csv(path):
    with open(path, newline="", encoding="utf-8-sig") as stream:
        rows = [row for row in csv.reader(stream) if row]
    if rows and any(math.isnan(_number(cell)) and cell.strip().lower() not in ("", "nan", "na") for cell in rows[0]):
        rows = rows[1:]
    if len({len(row) for row in rows}) > 1:
        raise _RefusalError(f"{path}: all rows must have the same number of columns.")
    return np.array([[_number(cell) for cell in row] for row in rows], dtype=float)


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _euclidean(path, table):
    if table.ndim != 2:
        raise InputError(f"{path}: Euclidean records must have shape (n, d), got {table.shape}.")
    return Euclidean(table.shape[1]), table


def _sphere(path, table):
    if table.ndim != 2 or table.shape[1] < 2:
        raise InputError(f"{path}: directions must have shape (n, d + 1) with d >= 1, got {table.shape}.")
    return Sphere(table.shape[1] - 1), table


def _spd(path, table):
    if table.ndim == 3 and table.shape[1] == table.shape[2]:
        return SPD(table.shape[1]), table
    size = int((math.isqrt(8 * table.shape[-1] + 1) - 1) // 2)
    if table.ndim != 2 or size * (size + 1) // 2 != table.shape[1]:
        raise InputError(
            f"{path}: SPD records must have shape (n, k, k), or rows of k(k+1)/2 numbers, got {table.shape}."
        )
    matrices = np.zeros((table.shape[0], size, size), table.dtype)
    rows, columns = np.tril_indices(size)
    matrices[:, rows, columns] = table
    matrices[:, columns, rows] = table
    return SPD(size), matrices


def _shapes(path, table):
    if table.dtype.kind == "c" and table.ndim == 2 and table.shape[1] >= 3:
        return PlanarShapes(table.shape[1]), table
    if table.ndim == 2 and table.shape[1] % 2 == 0:
        table = table.reshape(table.shape[0], -1, 2)
    if table.ndim != 3 or table.shape[2] != 2 or table.shape[1] < 3 or table.dtype.kind == "c":
        raise InputError(
            f"{path}: landmarks must have shape (n, k, 2) with k >= 3, or rows x1, y1, x2, y2, ..., got {table.shape}."
        )
    return PlanarShapes(table.shape[1]), table[..., 0] + 1j * table[..., 1]


_ARRANGE = {"euclidean": _euclidean, "sphere": _sphere, "spd": _spd, "shapes": _shapes}
