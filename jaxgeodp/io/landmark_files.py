"""Landmarks in the text files of morphometrics, .tps and .nts, read without trust.

What is no number, a missing landmark, and a specimen with another number of landmarks than most become NaN: the record
then counts as the public centre.
"""

import collections
import itertools
import pathlib
import re

import numpy as np

from jaxgeodp.array_files import check_size
from jaxgeodp.checks import InputError
from jaxgeodp.io.csv_files import content_of, number_in, physical_lines

_START = re.compile(r"\s*LP(3?)\s*=\s*(.*)", re.IGNORECASE)
_COUNT = re.compile(r"\d{1,6}\s*")
_NTS = re.compile(
    r"\s*(\d+)\s+(\d{1,9})([LBE]?)\s+(\d{1,9})([LBE]?)\s+([01])(?:\s+([^D\s]\S*))?(?:\s+DIM\s*=\s*(\d))?\s*",
    re.IGNORECASE,
)


def read_tps(path: pathlib.Path) -> np.ndarray:
    """The landmarks (n, k, m) of a .tps file: after each line ``LP=k``, k lines ``x y``. Scales are of no account.

    After ``LP3=k`` lines are ``x y z``. These lines are the format: there are as many records as such lines, and what
    most of them say are k and m.

    Raises:
        ValueError: no line ``LP=`` or ``LP3=``.
    """
    lines = list(physical_lines(content_of(path)))
    starts = [(row, found) for row, line in enumerate(lines) if (found := _START.fullmatch(line))]
    if not starts:
        raise InputError(f"{path}: has no line 'LP=...', with which every specimen of a .tps file begins.")
    kinds = collections.Counter((found[1], _count(found[2])) for _, found in starts)
    kind = max(kinds, key=lambda one: (kinds[one], *one))
    shape = (len(starts), kind[1], 3 if kind[0] else 2)
    check_size(path, shape)
    points = np.full(shape, np.nan)
    ends = [row for row, _ in starts[1:]] + [len(lines)]
    for specimen, (row, found), end in zip(points, starts, ends, strict=True):
        if (found[1], _count(found[2])) == kind:
            for point, line in zip(specimen, lines[row + 1 : min(row + 1 + kind[1], end)], strict=False):
                words = line.split()
                point[:] = [number_in(word) for word in words] if len(words) == len(point) else np.nan
    return points


def read_nts(path: pathlib.Path) -> np.ndarray:
    """The landmarks (n, k, m) of an .nts file of NTSYS: its last n lines, n being in its first line; m is 2 or ``DIM``.

    Where the first line says that values are missing, these are what it names, or negative numbers if it names nothing.

    Raises:
        ValueError: no matrix of landmarks in the plane or in space, or another number of lines than the first one says.
    """
    lines = list(physical_lines(content_of(path)))
    # Comments stand first, each in a line that begins with a quote.
    lines = list(itertools.dropwhile(lambda line: not line.strip() or line.lstrip().startswith(('"', "'")), lines))
    found = _NTS.fullmatch(lines[0]) if lines else None
    if found is None or found[1] != "1":
        raise InputError(f"{path}: must begin with a line such as '1 167L 16 1 -999 DIM=2' after its comments.")
    if found[8] not in (None, "2", "3"):
        raise InputError(f"{path}: holds landmarks in {found[8]} dimensions; they must have DIM=2 or DIM=3.")
    rows, width, dimension = int(found[2]), int(found[4]), int(found[8] or 2)
    labelled = "L" in (found[3] + found[5]).upper()
    if width % dimension or (len(lines) <= rows + 1 if labelled else len(lines) != rows + 1):
        raise InputError(f"{path}: does not hold {rows} lines of {width} numbers, a specimen each, as it says first.")
    check_size(path, (rows, width))
    table = np.full((rows, width), np.nan)
    for specimen, line in zip(table, lines[len(lines) - rows :], strict=True):
        words = line.split()
        if found[3] and found[3] in "BbEe" and words:  # a label at the beginning or the end of each
            words = words[1:] if found[3] in "Bb" else words[:-1]
        if len(words) == width:
            specimen[:] = [number_in(word) for word in words]
    if found[6] == "1":
        table[table < 0.0 if found[7] is None else table == number_in(found[7])] = np.nan
    return table.reshape(rows, -1, dimension)


def _count(text):
    return int(text) if _COUNT.fullmatch(text) else 0
