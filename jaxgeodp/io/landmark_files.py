"""Untrusted landmark files of morphometrics: .tps, .nts and .dta.

What is no number, a missing landmark, and a specimen with another number of landmarks than most become NaN: the record
then counts as the public centre.
"""

import collections
import itertools
import pathlib
import re
from collections.abc import Iterable

import numpy as np

from jaxgeodp.array_files import check_size
from jaxgeodp.checks import InputError
from jaxgeodp.io.text_files import content_of, number_in, physical_lines

_KEY = re.compile(r"\s*([A-Za-z]+)(3?)\s*=(.*)")
_COUNT = re.compile(r"\d{1,6}")
_START, _ON_CURVES, _MOST_CURVES = "LM", "POINTS", 1000
# Both coordinates of a landmark that is missing, as tpsDig writes it.
_MISSING = -1.0
_MISSING_WORDS = ("na", "nan", "n/a", ".", "?", "-", "missing", "null")
_NTS = re.compile(
    r"\s*(\d+)\s+(\d{1,9})([LBE]?)\s+(\d{1,9})([LBE]?)\s+([0-9])(?:\s+([^D\s]\S*))?(?:\s+DIM\s*=\s*(\d))?\s*",
    re.IGNORECASE,
)


def read_tps(path: pathlib.Path) -> np.ndarray:
    """Return the landmarks (n, k, m) of a .tps file, times the SCALE of each specimen.

    A specimen begins with ``LM=k`` and k lines ``x y``, or ``LM3=k`` and lines ``x y z``. Points on curves and
    outlines follow: ``CURVES=2`` or ``OUTLINES=1``, and for each ``POINTS=p`` with p lines; they count as landmarks,
    after the others. There are as many records as lines ``LM=``, and what most of them say are k and m. Landmarks at
    -1, -1 are missing; a specimen with other lines than it says is no record.

    Raises:
        ValueError: no such line, no points, or no number of points that two specimens have.
    """
    specimens = []
    for line in physical_lines(content_of(path)):
        found = _KEY.fullmatch(line)
        key = None if found is None else found[1].upper()
        if key == _START:
            specimens.append(_Specimen())
        if not specimens or line.lstrip().startswith("#"):
            continue
        if found is None:
            specimens[-1].rows.append(line)
        elif key in (_START, _ON_CURVES):
            specimens[-1].begin(bool(found[2]), _count(found[3].strip()))
        else:
            specimens[-1].end()
            if key == "SCALE":
                specimens[-1].scale = _numbers(found[3], 1)[0]
    if not specimens:
        raise InputError(f"{path}: has no line 'LM=...' or 'LM3=...', which begins every specimen of a .tps file.")
    kinds = collections.Counter(own.kind for own in specimens)
    kind = max(kinds, key=lambda one: (kinds[one], *one))
    if not sum(kind[1]):
        raise InputError(f"{path}: its specimens have no points: LM=0, and neither curves nor outlines.")
    if len(kinds) == len(specimens) > 1:
        raise InputError(
            f"{path}: no two specimens have the same number of points: digitise the same number on each outline or "
            "curve."
        )
    shape = (len(specimens), sum(kind[1]), 3 if kind[0] else 2)
    check_size(path, shape)
    points = np.full(shape, np.nan)
    for points_of_one, own in zip(points, specimens, strict=True):
        if own.kind == kind:
            own.write(points_of_one)
    return points


class _Specimen:
    """One specimen of a .tps file: blocks of points, each with its stated number of points."""

    def __init__(self):
        self.in_space, self.counts, self.blocks, self.scale = False, [], [], 1.0
        self.rows: list[str] = []

    def begin(self, in_space: bool, count: int):
        """Begin a block of points."""
        self.in_space = self.in_space or in_space
        self.rows = []
        if len(self.counts) <= _MOST_CURVES:
            self.counts.append(count)
            self.blocks.append(self.rows)

    def end(self):
        """End the block."""
        self.rows = []

    @property
    def kind(self) -> tuple[bool, tuple[int, ...]]:
        """Return whether the specimen is in space, and its number of points by block."""
        return self.in_space, tuple(self.counts)

    def write(self, points: np.ndarray):
        """Write its points into an array (k, m); missing ones stay NaN."""
        start = 0
        for count, rows in zip(self.counts, self.blocks, strict=True):
            own = _as_many(rows, count)
            if own is None:
                own = _as_many([row for row in rows if _is_point(row, points.shape[1])], count)
            if own is None:  # which of the landmarks they are is not known
                points[:] = np.nan
                return
            for point, row in zip(points[start : start + count], own, strict=True):
                point[:] = _numbers(row, len(point))
            start += count
        points[np.all(points == _MISSING, axis=1)] = np.nan
        with np.errstate(all="ignore"):
            points *= self.scale


def _as_many(rows: list[str], count: int) -> list[str] | None:
    """Return a block's lines, ``count`` of them with or without empty ones; None if neither fits."""
    rows = _without_blank_end(rows, count)
    if len(rows) != count:
        rows = [row for row in rows if row.strip()]
    return rows if len(rows) == count else None


def _without_blank_end(rows: list[str], least: int) -> list[str]:
    """Drop trailing empty lines, keeping at least ``least`` lines."""
    end = len(rows)
    while end > least and not rows[end - 1].strip():
        end -= 1
    return rows[:end]


def _is_point(row, width) -> bool:
    """Return whether a line holds ``width`` numbers or missing-value marks."""
    words = [word.rstrip(",;").lower() for word in row.replace(";", " ").split()]
    words = row.split(",") if len(words) == 1 < width else words
    return len(words) == width and all(
        word.strip() in _MISSING_WORDS or not np.isnan(number_in(word.strip(), "," if "." not in word else "."))
        for word in words
    )


def read_nts(path: pathlib.Path) -> np.ndarray:
    """Return the landmarks (n, k, m) of an .nts file of NTSYS, or a .dta file of Landmark; m is 2 or ``DIM``.

    The first line says how many specimens there are, and of how many numbers; labels follow, if it says so. A line is a
    specimen or a landmark. Where the first line says that values are missing, these are what it names, or negative
    numbers if it names nothing.

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
    check_size(path, (rows, width))
    body = lines[1:]
    wide = width + (1 if found[3].upper() in ("B", "E") else 0)
    widths = collections.Counter(len(line.split()) for line in body)
    in_parts = width % dimension == 0 and widths[dimension] > widths[wide]
    needed = rows * (width // dimension) if in_parts else rows
    labels = (rows if found[3].upper() == "L" else 0) + (width if found[5].upper() == "L" else 0)
    own = None if width % dimension else _behind_labels(body, labels, needed, dimension if in_parts else wide)
    if own is None:
        raise InputError(
            f"{path}: must hold {rows} lines of {width} numbers, as its first line states, or one landmark per line."
        )
    table = np.full((rows, width), np.nan)
    for place, specimen in enumerate(table):
        if in_parts:
            each = width // dimension
            parts = [_numbers(line, dimension) for line in own[place * each : (place + 1) * each]]
            specimen[:] = np.concatenate(parts)
            continue
        words = own[place].split()
        if wide > width:  # a label at the beginning or the end of each
            words = words[1:] if found[3] in "Bb" else words[:-1]
        specimen[:] = _numbers(words, width)
    if found[6] != "0":
        table[table < 0.0 if found[7] is None else table == number_in(found[7])] = np.nan
    return table.reshape(rows, -1, dimension)


def _behind_labels(body: list[str], labels: int, needed: int, width: int) -> list[str] | None:
    """Return the lines of numbers after the labels; None if their number does not fit."""
    if labels == 0:
        return _as_many(body, needed)
    words = list(itertools.accumulate(len(line.split()) for line in body))
    rest = body[words.index(labels) + 1 :] if labels in words else []
    if len([line for line in rest if line.strip()]) == needed:
        return _as_many(rest, needed)
    body = _without_blank_end(body, needed + 1)
    before = body[: max(len(body) - needed, 0)]
    surplus = any(len(line.split()) == width and not np.isnan(_numbers(line, width)).any() for line in before)
    return _as_many(rest, needed) if surplus or not before else body[len(before) :]


def _numbers(line: str | Iterable[str], count: int) -> list[float]:
    """Return the numbers of a line, with decimal or separating commas; NaN if their count differs."""
    words = line.split() if isinstance(line, str) else list(line)
    if len(words) == 1 and count > 1 and isinstance(line, str):
        words = line.replace(";", ",").split(",")
    if len(words) != count:
        return [np.nan] * count
    return [number_in(word.rstrip(",;"), "," if "." not in word else ".") for word in words]


def _count(text):
    return int(text) if _COUNT.fullmatch(text) else 0
