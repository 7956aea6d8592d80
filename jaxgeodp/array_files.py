"""NumPy's files, read without trust: what a header claims is compared with limits before anything is decoded.

Nothing is unpickled. No file may claim more than `MOST_BYTES` of numbers; a compressed file is refused before it is
decompressed, by the shape in its header: shapes and types are public, the size of what is compressed is not.
"""

import io
import math
import os
import pathlib
import warnings
import zipfile
from collections.abc import Callable

import numpy as np

from jaxgeodp.checks import InputError

#: Of the numbers of one file, in double precision: 4 GiB.
MOST_BYTES = 2**32
_LONGEST_HEADER = 10_000
_NAMES_SHOWN = 10


def read_npy(path: pathlib.Path) -> np.ndarray:
    """Return the array of a .npy file.

    Raises:
        ValueError: no numbers, or more than `MOST_BYTES` of them; or the file is damaged or cut short.
    """
    with open(path, "rb") as stream:
        return _array(path, stream, os.fstat(stream.fileno()).st_size)


def read_npz(path: pathlib.Path, choose: Callable[[list[str]], str]) -> np.ndarray:
    """Return one array of a .npz file.

    Args:
        path: of the file.
        choose: given the names of the arrays, one of them.

    Raises:
        ValueError: see `read_npy`.
    """
    with zipfile.ZipFile(path) as archive:
        members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
        member = members[choose(list(members))]
        # Other methods, which NumPy never writes, decompress without bounds.
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError("compressed by another method")
        with archive.open(member) as stream:
            return _array(path, stream, member.file_size)


def listed(names: list[str]) -> str:
    """Return the first names, with commas."""
    return ", ".join(names[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")


def check_size(path: pathlib.Path, shape: tuple[int, ...], number: int = 8) -> None:
    """Refuse an array whose numbers, of ``number`` bytes each, would take more than `MOST_BYTES`."""
    if math.prod(shape) * number > MOST_BYTES:
        raise InputError(
            f"{path}: declares an array of shape {_short(shape)}, which is more than {MOST_BYTES >> 30} GiB in double "
            "precision; split it, or pass an array to the Python functions."
        )


def _array(path, stream, available):
    shape, fortran, dtype = _header(stream)
    if any(type(size) is not int or size < 0 for size in shape):
        raise ValueError("a negative size")
    if dtype.kind not in "iufcb":
        # How wide a text is would tell of the longest.
        kind = "text" if dtype.kind in "US" else "objects" if dtype.kind == "O" else _short(dtype)
        raise InputError(f"{path}: must hold numbers, but its type is {kind}.")
    check_size(path, shape, 16 if dtype.kind == "c" else 8)
    size = math.prod(shape) * dtype.itemsize
    content = stream.read(size) if size <= available else b""
    if len(content) != size:
        raise ValueError("cut short")
    flat = np.frombuffer(content, dtype)
    return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


def _header(stream):
    """Return shape, order and type; NumPy would read a header of any claimed length before it refuses it."""
    start = stream.read(8)
    if start[:6] != np.lib.format.MAGIC_PREFIX or start[6:] not in (b"\x01\x00", b"\x02\x00"):
        raise ValueError("another format")
    width, parse = {
        1: (2, np.lib.format.read_array_header_1_0),
        2: (4, np.lib.format.read_array_header_2_0),
    }[start[6]]
    length = stream.read(width)
    size = int.from_bytes(length, "little")
    if len(length) != width or size > _LONGEST_HEADER:
        raise ValueError("no header")
    with warnings.catch_warnings():  # of headers by Python 2
        warnings.simplefilter("ignore")
        return parse(io.BytesIO(length + stream.read(size)))


def _short(public) -> str:
    text = str(public)
    return text if len(text) <= 60 else f"{text[:60]}..."
