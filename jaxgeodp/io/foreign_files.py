"""Spreadsheets, MATLAB and HDF5 files, by libraries of ``pip install "jaxgeodp[files]"``.

What is refused is said of the file's kind alone: see `array_files`.
"""

import collections
import datetime
import importlib
import math
import os
import pathlib
import zipfile
from collections.abc import Callable

import numpy as np

from jaxgeodp.array_files import MOST_BYTES, check_size
from jaxgeodp.checks import InputError
from jaxgeodp.io.csv_files import usual_width
from jaxgeodp.io.mat_files import read_mat5
from jaxgeodp.io.text_files import number_in

Choose = Callable[[list[str]], str]
_MOST_ROWS = 2**20  # of a sheet


def read_xlsx(
    path: pathlib.Path, choose: Choose, header: bool, decimal: str = "."
) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Return a sheet's numbers (n, columns), NaN for other cells, and names in its first row with ``header``.

    Args:
        path: of a .xlsx file.
        choose: given the names of the sheets, one of them.
        header: whether its first row holds names.
        decimal: the mark in cells of text.

    Raises:
        ValueError: no such sheet, more than `MOST_BYTES`, or openpyxl is not there.
    """
    rows = _rows_of_sheet(path, choose)
    names = tuple("" if cell is None else str(cell).strip() for cell in rows[0]) if header and rows else None
    body = rows[1:] if header else rows
    widths = collections.Counter(map(len, body))
    width = len(names) if names is not None else usual_width(widths) if widths else 0
    check_size(path, (len(body), width))
    table = np.full((len(body), width), np.nan)
    for record, row in zip(table, body, strict=True):
        if len(row) <= width:  # as in a table of text, a longer one is none
            record[: len(row)] = [_number(cell, decimal) for cell in row]
    return table, names


def labels_in_xlsx(path: pathlib.Path, choose: Choose, header: bool, place: int) -> list:
    """Return the cells of a column of a sheet as labels: numbers or words, None where a cell is empty.

    Args:
        path, choose, header: see `read_xlsx`.
        place: of the column, from 0.

    Raises:
        ValueError: see `read_xlsx`.
    """
    rows = _rows_of_sheet(path, choose)[bool(header) :]
    return [_label(row[place]) if place < len(row) else None for row in rows]


def _label(cell):
    """Return a cell as a label: numbers as they are, truth values and days as a sheet and ISO 8601 write them."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if cell is None or isinstance(cell, int | float):
        return cell
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        cell = cell.date()
    return str(cell).strip() or None


def _rows_of_sheet(path, choose) -> list[list]:
    """Return the rows of a sheet without trailing empty cells, and without empty rows at the end."""
    openpyxl = _library("openpyxl", path)
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > MOST_BYTES:
            raise InputError(f"{path}: is larger than {MOST_BYTES >> 30} GiB; save the numbers as .npy.")
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        sheet = book[choose(book.sheetnames)]
        sheet.reset_dimensions()  # what the file says of them may be wrong
        rows: list[list] = []
        for row in sheet.iter_rows(values_only=True):
            rows.append(_without_end(row))
            if len(rows) > _MOST_ROWS:
                raise InputError(f"{path}: has more than {_MOST_ROWS:,} rows.")
    finally:
        book.close()
    while rows and not rows[-1]:
        rows.pop()
    return rows


def _without_end(row):
    """Return a row as a list, without trailing empty cells."""
    cells = list(row)
    while cells and cells[-1] is None:
        cells.pop()
    return cells


def _number(cell, decimal):
    if isinstance(cell, str):
        return number_in(cell.strip(), decimal)
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return np.nan
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


def read_mat(path: pathlib.Path, choose: Choose) -> np.ndarray:
    """Return an array of a .mat file of version 5 or later.

    Raises:
        ValueError: see `read_mat5` and, for version 7.3, `read_hdf5`.
    """
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        content = stream.read(MOST_BYTES) if size <= MOST_BYTES else b""
    check_size(path, (size,), 1)
    if b"MATLAB 7.3" in content[:128]:
        return read_hdf5(path, choose).T  # written by columns
    return read_mat5(path, content, choose)


def read_hdf5(path: pathlib.Path, choose: Choose) -> np.ndarray:
    """Return a data set of an HDF5 file.

    Raises:
        ValueError: no numbers, more than `MOST_BYTES`, or h5py is not there.
    """
    h5py = _library("h5py", path)
    with h5py.File(path, "r") as file:
        names: list[str] = []

        def visit(name, item):
            if isinstance(item, h5py.Dataset) and not name.startswith("#"):
                names.append(name)

        file.visititems(visit)
        found = file[choose(names)]
        if found.dtype.kind not in "iufcb":
            raise InputError(f"{path}: must hold numbers, but its data set has another type.")
        check_size(path, found.shape, 16 if found.dtype.kind == "c" else 8)
        return _numbers(path, found[()])


def _numbers(path, array):
    array = np.asarray(array)
    if array.dtype.kind not in "iufcb":
        raise InputError(f"{path}: must hold numbers, but its array has another type.")
    return array


def _library(name, path):
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(
            f'{path}: to read {path.suffix.lower()} files, install {name}: pip install "jaxgeodp[files]"; or save the '
            "numbers as .csv or .npy."
        ) from None
