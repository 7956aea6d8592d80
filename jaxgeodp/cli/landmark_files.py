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
from jaxgeodp.cli.csv_files import content_of, number_in

_START = re.compile(r"\s*LP(3?)\s*=\s*(\d{1,9})\s*", re.IGNORECASE)
_NTS = re.compile(
    r"\s*(\d+)\s+(\d{1,9})([LBE]?)\s+(\d{1,9})([LBE]?)\s+([01])(?:\s+([^D\s]\S*))?(?:\s+DIM\s*=\s*(\d))?\s*",
    re.IGNORECASE,
)


def read_tps(path: pathlib.Path) -> np.ndarray:
    """The landmarks (n, k, 2) of a .tps file: after each line ``LP=k``, k lines ``x y``. Scales are of no account.

    Raises:
        ValueError: no line ``LP=``, or landmarks in space.
    """
    lines = content_of(path).decode("utf-8", errors="replace").splitlines()
    starts = [(row, found) for row, line in enumerate(lines) if (found := _START.fullmatch(line))]
    if not starts:
        raise InputError(f"{path}: has no line 'LP=...', with which every specimen of a .tps file begins.")
    if any(found[1] for _, found in starts):
        raise InputError(f"{path}: holds landmarks in space (LP3=); planar shapes need LP=.")
    count = collections.Counter(int(found[2]) for _, found in starts).most_common(1)[0][0]
    check_size(path, (len(starts), count, 2))
    points = np.full((len(starts), count, 2), np.nan)
    for specimen, (row, found) in zip(points, starts, strict=True):
        if int(found[2]) == count:
            for point, line in zip(specimen, lines[row + 1 : row + 1 + count], strict=False):
                point[:] = _pair(line)
    return points


def read_nts(path: pathlib.Path) -> np.ndarray:
    """The landmarks (n, k, 2) of an .nts file of NTSYS, a specimen per row; negative numbers are missing.

    Raises:
        ValueError: no rectangular matrix of planar landmarks, or another number of numbers than its first line says.
    """
    lines = content_of(path).decode("utf-8", errors="replace").splitlines()
    # Comments stand first, each in a line that begins with a quote.
    lines = list(itertools.dropwhile(lambda line: not line.strip() or line.lstrip().startswith(('"', "'")), lines))
    found = _NTS.fullmatch(lines[0]) if lines else None
    if found is None or found[1] != "1":
        raise InputError(f"{path}: must begin with a line such as '1 167L 16 1 -999 DIM=2' after its comments.")
    if found[8] not in (None, "2"):
        raise InputError(f"{path}: holds landmarks in {found[8]} dimensions; planar shapes need DIM=2.")
    rows, width = int(found[2]), int(found[4])
    check_size(path, (rows, width))
    words = [word for line in lines[1:] for word in line.split()]
    labels = (rows if found[3] else 0) + (width if found[5] else 0)
    if len(words) != labels + rows * width or width % 2:
        raise InputError(f"{path}: does not hold the {rows} rows of {width} numbers that its first line promises.")
    table = np.array([number_in(word) for word in words[labels:]]).reshape(rows, width)
    missing = table < 0.0
    if found[6] == "1" and found[7] is not None:
        missing |= table == number_in(found[7])
    return np.where(missing, np.nan, table).reshape(rows, -1, 2)


def _pair(line):
    words = line.split()
    return [number_in(word) for word in words] if len(words) == 2 else np.nan
