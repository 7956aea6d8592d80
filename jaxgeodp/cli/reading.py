"""Reading records and centres from files.

The *format* of a file is public and may be refused: its type, the number of records, the shape of a record (in a
.csv file: the number of columns), whether there is a header. The *content* of a record is private, so that
nothing here refuses, drops or reports one: a cell that is no number becomes NaN, a line of another width becomes
a record of NaN, and a record with a NaN is later replaced by the public centre (see `GeodesicBall.clip`).
Whatever one line of a .csv file says, the file holds as many records as it has lines. What may be refused is refused
before the file is decoded: docs/hostile_input.md.
"""

import collections
import contextlib
import math
import os
import pathlib
import re

import numpy as np

from jaxgeodp.array_files import check_size, listed, read_npy, read_npz
from jaxgeodp.checks import InputError
from jaxgeodp.cli.parquet import read_parquet
from jaxgeodp.manifolds import Manifold
from jaxgeodp.manifolds.names import check_name, points_on, records_in

_SUFFIXES = (".npy", ".npz", ".csv", ".parquet")
_LONGEST_CSV = 2**30
_LINE = re.compile(rb"[^\r\n]*(?:\r\n|[\r\n])|[^\r\n]+")


def read_records(
    path: pathlib.Path, manifold_name: str, array: str | None = None, header: bool = False
) -> tuple[Manifold, np.ndarray]:
    """The manifold and the records (n, \\*shape) of a data file, as float64 or complex128.

    Args:
        path: .npy, .npz, .csv (lines of numbers with commas between them, no quotes) or .parquet (numeric columns).
        manifold_name: a name of `manifolds.names.MANIFOLDS`, with sizes or without, or a product, whose records are
            its flat rows; `manifolds.tables` says which shapes the others have.
        array: name of the array in an .npz file with several.
        header: the first line of a .csv file holds the names of its columns. Never guessed: a guess would look
            at the first record.

    Raises:
        ValueError: unreadable file, unknown manifold, or a shape that does not fit.
    """
    try:
        check_name(manifold_name)
    except InputError as error:
        raise InputError(f"--{error}") from None
    table = _read_array(path, array, header)
    if table.ndim < 2 or table.shape[0] < 2 or 0 in table.shape:
        raise InputError(f"{path}: needs at least 2 records, one per row, but holds an array of shape {table.shape}.")
    with _about(path):
        return records_in(manifold_name, table)


def read_center(center: str, manifold: Manifold, header: bool = False) -> np.ndarray:
    """The public centre: the manifold's origin, or one point from a file in the same formats."""
    if center == "origin":
        return manifold.origin
    path = pathlib.Path(center)
    table = _read_array(path, None, header)
    points = None
    for candidate in (table[None], table):
        if candidate.ndim >= 2 and candidate.shape[0] == 1 and points is None:
            with contextlib.suppress(InputError):
                points = points_on(manifold, candidate)
    if points is None:
        raise InputError(f"--center {center}: must hold one point of {manifold}, but has shape {table.shape}.")
    projected = np.asarray(manifold.project(points[0]))
    if not np.all(np.isfinite(projected)):
        raise InputError(f"--center {center}: is not a point of {manifold}.")
    return projected


@contextlib.contextmanager
def _about(path):
    """Name the file in what is said of its table."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _read_array(path: pathlib.Path, array: str | None, header: bool) -> np.ndarray:
    suffix = path.suffix.lower()
    if suffix not in _SUFFIXES:
        raise InputError(f"{path}: unknown file type '{suffix}'; use one of {', '.join(_SUFFIXES)}.")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    try:
        table = _read(path, suffix, array, header)
    except InputError:
        raise
    except Exception:
        # The reader's own words could quote the content.
        raise InputError(
            f"{path}: cannot be read as {suffix}; check that the file is complete and of that type."
        ) from None
    with np.errstate(all="ignore"):  # a warning about an overflow would speak of the data
        return table.astype(np.complex128 if table.dtype.kind == "c" else np.float64)


def _read(path, suffix, array, header):
    if suffix == ".csv":
        return _read_csv(path, header)
    if suffix == ".parquet":
        return read_parquet(path)
    if suffix == ".npy":
        return read_npy(path)

    def choose(names: list[str]) -> str:
        chosen = names[0] if array is None and len(names) == 1 else array
        if chosen is None or chosen not in names:
            raise InputError(f"{path}: choose one of its arrays with --array: {listed(names)}.")
        return chosen

    return read_npz(path, choose)


def _read_csv(path, header):
    """One record per physical line; the width is that of the header, else of most lines."""
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > _LONGEST_CSV:
            raise InputError(f"{path}: is larger than {_LONGEST_CSV >> 30} GiB; save the numbers as .npy.")
        content = stream.read(size).removeprefix(b"\xef\xbb\xbf")
    # One line at a time, twice: a list of short lines would be many times larger than the file.
    widths = collections.Counter(map(_width, _lines(content)))
    if not widths:
        return np.empty((0, 0))
    width = _width(next(_lines(content))) if header else widths.most_common(1)[0][0]
    check_size(path, (widths.total(), width))
    table = np.full((widths.total(), width), np.nan)
    for record, line in zip(table, _lines(content), strict=True):
        if _width(line) == width:
            record[:] = [_number(cell) for cell in line.decode("utf-8", errors="replace").split(",")]
    return table[1:] if header else table


def _lines(content: bytes):
    """Bytes are split, not text: text has more line ends than \\n, \\r\\n and \\r, and may not decode."""
    return (match.group() for match in _LINE.finditer(content))


def _width(line: bytes) -> int:
    return line.count(b",") + 1


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan
