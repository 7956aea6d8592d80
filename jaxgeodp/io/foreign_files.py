"""Spreadsheets, and files of MATLAB and HDF5, by libraries of others, which ``pip install "jaxgeodp[files]"`` brings.

What is refused is said of the file's kind alone: see `array_files`.
"""

import importlib
import pathlib
import zipfile
from collections.abc import Callable

import numpy as np

from jaxgeodp.array_files import MOST_BYTES, check_size
from jaxgeodp.checks import InputError

Choose = Callable[[list[str]], str]


def read_xlsx(path: pathlib.Path, choose: Choose, header: bool) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """The numbers (n, columns) of a sheet, and the names in its first row with ``header``; other cells are NaN.

    Args:
        path: of a .xlsx file.
        choose: given the names of the sheets, one of them.
        header: whether its first row holds names.

    Raises:
        ValueError: no such sheet, more than `MOST_BYTES`, or openpyxl is not there.
    """
    openpyxl = _library("openpyxl", path)
    with zipfile.ZipFile(path) as archive:
        if sum(member.file_size for member in archive.infolist()) > MOST_BYTES:
            raise InputError(f"{path}: is larger than {MOST_BYTES >> 30} GiB; save the numbers as .npy.")
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        rows = [list(row) for row in book[choose(book.sheetnames)].iter_rows(values_only=True)]
    finally:
        book.close()
    names = tuple("" if cell is None else str(cell).strip() for cell in rows[0]) if header and rows else None
    body = rows[1:] if header else rows
    width = max((len(row) for row in rows), default=0)
    check_size(path, (len(body), width))
    table = np.full((len(body), width), np.nan)
    for record, row in zip(table, body, strict=True):
        for place, cell in enumerate(row):
            if isinstance(cell, int | float) and not isinstance(cell, bool):
                record[place] = cell
    return table, names


def read_mat(path: pathlib.Path, choose: Choose) -> np.ndarray:
    """An array of a .mat file, of any version.

    Raises:
        ValueError: no numbers, more than `MOST_BYTES`; or for version 7.3, see `read_hdf5`.
    """
    import scipy.io

    with open(path, "rb") as stream:
        new = b"MATLAB 7.3" in stream.read(128)
    if new:
        return read_hdf5(path, choose).T  # written by columns
    known = {name: (shape, kind) for name, shape, kind in scipy.io.whosmat(path)}
    name = choose(list(known))
    shape, kind = known[name]
    if kind in ("struct", "cell", "char", "object", "function", "opaque", "sparse", "unknown"):
        raise InputError(f"{path}: must hold numbers, but its array is a {kind}.")
    check_size(path, tuple(shape), 16)
    return _numbers(path, scipy.io.loadmat(path, variable_names=[name])[name])


def read_hdf5(path: pathlib.Path, choose: Choose) -> np.ndarray:
    """A data set of an HDF5 file.

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
