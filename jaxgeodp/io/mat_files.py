"""Untrusted numeric arrays in MATLAB files of version 5 to 7.

SciPy's reader ends the process on some damaged files: it trusts the types of elements, and reads beyond them
(benchmarks/audit/fuzz.py found it). Here lengths and types are compared before bytes are looked at.
"""

import math
import pathlib
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from jaxgeodp.array_files import check_size
from jaxgeodp.checks import InputError

_HEADER, _TAG = 128, 8
_MATRIX, _COMPRESSED = 14, 15
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_CLASSES = {1: "cell array", 2: "struct", 3: "object", 4: "text", 5: "sparse matrix", 16: "function", 17: "object"}
_NUMBERS = range(6, 16)
# Of a matrix, with its type, sizes and name: what is read to list it.
_START = 4096
_MOST_AXES, _MOST_ELEMENTS = 32, 10_000


class _Matrix(NamedTuple):
    name: str
    kind: int  # of `_CLASSES`, or a number
    is_complex: bool
    shape: tuple[int, ...]
    body: int  # where the numbers begin


def read_mat5(path: pathlib.Path, content: bytes, choose: Callable[[list[str]], str]) -> np.ndarray:
    """Return one array of a file.

    Args:
        path: of the file, for messages.
        content: its bytes.
        choose: given the names of its arrays, one of them.

    Raises:
        ValueError: no such array, no numbers, or a damaged file.
    """
    order = {b"IM": "<", b"MI": ">"}.get(content[126:128])
    if order is None:
        raise InputError(f"{path}: is a .mat file of a version before 5; save it with -v7.")
    found: dict[str, tuple[_Matrix, Callable[[int], bytes]]] = {}
    for read in _elements(content, order):
        matrix = _matrix(read(_START), order)
        found.setdefault(matrix.name, (matrix, read))
    matrix, read = found[choose(list(found))]
    if matrix.kind not in _NUMBERS:
        kind = _CLASSES.get(matrix.kind, "thing of its own")
        raise InputError(f"{path}: must hold numbers, but its array is a {kind}.")
    check_size(path, matrix.shape, 16)
    count = math.prod(matrix.shape)
    # Each number has eight bytes at most, and parts have tags and are filled up.
    part = read(matrix.body + 2 * (8 * count + 2 * _TAG))
    real, end = _numbers(part, matrix.body, order)
    if matrix.is_complex:
        real = real + 1j * _numbers(part, end, order)[0]
    if len(real) != count:
        raise ValueError("another number of numbers than claimed")
    return real.reshape(matrix.shape[::-1]).T


def _elements(content, order) -> Iterator[Callable[[int], bytes]]:
    """Yield for each matrix a function ``most -> bytes`` that returns its first bytes, without the tag."""
    place = _HEADER
    for _ in range(_MOST_ELEMENTS):
        if place + _TAG > len(content):
            return
        kind, length = np.frombuffer(content, order + "u4", 2, place).tolist()
        inside = content[place + _TAG : place + _TAG + length]
        if len(inside) < length:
            raise ValueError("cut short")
        if kind == _COMPRESSED:
            yield lambda most, own=inside: zlib.decompressobj().decompress(own, most + _TAG)[_TAG:]
        elif kind == _MATRIX:
            yield lambda most, own=inside: own[:most]
        else:
            raise ValueError("no matrix")
        place += _TAG + length


def _matrix(start, order) -> _Matrix:
    flags, place = _element(start, 0, order)
    sizes, place = _element(start, place, order)
    name, body = _element(start, place, order)
    if flags.dtype.itemsize != 4 or len(flags) != 2 or sizes.dtype.kind != "i" or not 2 <= len(sizes) <= _MOST_AXES:
        raise ValueError("no matrix")
    shape = tuple(sizes.tolist())
    if min(shape) < 0:
        raise ValueError("a negative size")
    word = int(flags[0])
    return _Matrix(name.tobytes().decode("ascii", "replace"), word & 0xFF, bool(word & 0x800), shape, body)


def _numbers(content, place, order) -> tuple[np.ndarray, int]:
    found, end = _element(content, place, order)
    return found.astype(np.float64), end


def _element(content, place, order) -> tuple[np.ndarray, int]:
    """Return the numbers of an element, and the position of the next one."""
    if place + _TAG > len(content):
        raise ValueError("cut short")
    kind, length = np.frombuffer(content, order + "u4", 2, place).tolist()
    start = place + _TAG
    if kind >> 16:  # of four bytes at most, within the tag
        kind, length, start = kind & 0xFFFF, kind >> 16, place + 4
    if kind not in _TYPES or (start < place + _TAG and length > 4) or start + length > len(content):
        raise ValueError("no element")
    dtype = np.dtype(order + _TYPES[kind])
    end = place + _TAG if start < place + _TAG else start + length + -length % 8
    return np.frombuffer(content, dtype, length // dtype.itemsize, start), end
