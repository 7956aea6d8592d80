"""Untrusted folders with one file per record.

The files are the records, in the order of their names: their number and type are public. What a file holds is private:
one that cannot be read, or holds an array of another shape than most that can, is a record of NaN.
"""

import collections
import contextlib
import pathlib
from collections.abc import Callable

import numpy as np

from jaxgeodp.array_files import MOST_BYTES, check_size
from jaxgeodp.checks import InputError
from jaxgeodp.io.text_files import suffix_of

_MOST_FILES = 10**6


def files_in(folder: pathlib.Path, known: tuple[str, ...]) -> list[pathlib.Path]:
    """Return the files of a folder by name, without hidden ones.

    Raises:
        ValueError: none, too many, folders in it, or files of several types or of a type that is not known.
    """
    files = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    if not files or len(files) > _MOST_FILES:
        raise InputError(
            f"{folder}: holds {len(files):,} files; a folder must hold 1 to {_MOST_FILES:,} files, one per record."
        )
    types = sorted({suffix_of(path) if path.is_file() else "folder" for path in files})
    if len(types) > 1 or types[0] not in known:
        raise InputError(
            f"{folder}: is a folder that holds {', '.join(repr(one) for one in types[:6])}; a folder of records holds "
            f"files of one type of {', '.join(known)}."
        )
    return files


def read_folder(files: list[pathlib.Path], read: Callable[[pathlib.Path], np.ndarray]) -> np.ndarray:
    """Return the records (n, \\*shape) of files.

    Args:
        files: see `files_in`.
        read: the array of one file; an exception stands for a record of NaN.

    Raises:
        ValueError: no file can be read, or no two have one shape.
    """
    arrays: list[np.ndarray | None] = []
    found: list[tuple[int, ...] | None] = []
    refused, held = None, 0
    for path in files:
        array = None
        try:
            array = np.asarray(read(path), np.float64)
        except InputError as error:
            refused = refused or error
        except Exception:  # a record of nothing, whatever it was
            array = None
        found.append(None if array is None else array.shape)
        # How much others hold is no reason to refuse: what is too much is read again when the shape is known.
        fits = array is not None and held + array.nbytes <= MOST_BYTES
        arrays.append(array if fits else None)
        held += array.nbytes if array is not None and fits else 0
    shapes = collections.Counter(shape for shape in found if shape is not None)
    if not shapes:
        raise refused or InputError(
            f"{files[0].parent}: no file of this folder can be read; check their type, and state their layout by the "
            "options for files."
        )
    if len(shapes) > 1 and max(shapes.values()) == 1:
        raise InputError(
            f"{files[0].parent}: no two files of this folder hold arrays of one shape; all records must have one shape."
        )
    shape = max(shapes, key=lambda own: (shapes[own], own))
    check_size(files[0].parent, (len(files), *shape))
    records = np.full((len(files), *shape), np.nan)
    for place, path in enumerate(files):
        if found[place] == shape:
            with contextlib.suppress(Exception):  # it may have changed since
                own, arrays[place] = arrays[place], None
                records[place] = np.asarray(read(path), np.float64) if own is None else own
    return records[:, 0] if records.ndim == 3 and shape[0] == 1 else records
