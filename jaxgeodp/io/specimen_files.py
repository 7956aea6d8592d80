"""Untrusted files with the landmarks of one specimen: 3D Slicer, MeshLab and others.

What is no number, and a landmark that is not placed, is NaN. Coordinates are taken as they are: of those that count to
the left and to the back (LPS) and those that count to the right and to the front (RAS), one is turned into the other.
"""

import json
import pathlib
import re
from collections.abc import Callable

import numpy as np

from jaxgeodp.io.text_files import content_of, number_in, physical_lines

_PICKED, _ATTRIBUTE = re.compile(r"<point\b([^<>]*)>"), re.compile(r"(?<!\w)(\w+)\s*=\s*\"([^\"]*)\"")
_OF_FCSV = ("x", "y", "z")


def read_specimen(path: pathlib.Path, suffix: str) -> np.ndarray:
    """Return the landmarks (k, 3), or (k, 2), of a file of a type in `SPECIMENS`.

    Raises:
        ValueError: it cannot be read as such.
        OSError: it cannot be read.
    """
    points = SPECIMENS[suffix](content_of(path))
    if not points:
        raise ValueError("no landmarks")
    return np.array(points, float)


def labels_of_specimen(path: pathlib.Path, suffix: str) -> list[str]:
    """Return the landmark names of a file of a type in `SPECIMENS`, in order; empty if it has none.

    Raises:
        ValueError: it cannot be read as such.
        OSError: it cannot be read.
    """
    content = content_of(path)
    if suffix == ".json":
        found = json.loads(content)
        return [str(one.get("label", "")) for markup in found["markups"] for one in markup["controlPoints"]]
    if suffix == ".fcsv":
        return _labels_of_fiducials(content)
    if suffix == ".pp":
        picked = _PICKED.finditer(content.decode("utf-8", errors="replace"))
        return [dict(_ATTRIBUTE.findall(one[1])).get("name", "") for one in picked]
    return []


def _labels_of_fiducials(content):
    place, labels = None, []
    for line in physical_lines(content):
        key, _, words = line.lstrip("# ").partition("=")
        if line.startswith("#"):
            names = [word.strip() for word in words.split(",")]
            place = names.index("label") if key.strip() == "columns" and "label" in names else place
        elif line.strip() and place is not None:
            cells = line.split(",")
            labels.append(cells[place].strip() if place < len(cells) else "")
    return labels


def _of_slicer(content: bytes) -> list[list[float]]:
    """Read a .mrk.json file: the control points of its markups, in order."""
    found = json.loads(content)
    points = []
    for markup in found["markups"]:
        for one in markup["controlPoints"]:
            placed = one.get("positionStatus", "defined") == "defined"
            position = [float(x) if isinstance(x, int | float) else np.nan for x in one.get("position", ())]
            points.append(position if placed and len(position) == 3 else [np.nan] * 3)
    return points


def _of_fiducials(content: bytes) -> list[list[float]]:
    """Read a .fcsv file: id,x,y,z,..., or in the order of the line ``# columns = ``."""
    points, places = [], [1, 2, 3]
    for line in physical_lines(content):
        key, _, words = line.lstrip("# ").partition("=")
        if line.startswith("#"):
            names = [word.strip() for word in words.split(",")]
            if key.strip() == "columns" and set(_OF_FCSV) <= set(names):
                places = [names.index(axis) for axis in _OF_FCSV]
        elif line.strip():
            cells = line.split(",")
            points.append([number_in(cells[place]) if place < len(cells) else np.nan for place in places])
    return points


def _of_meshlab(content: bytes) -> list[list[float]]:
    """Read a .pp file: the active picked points."""
    points = []
    for found in _PICKED.finditer(content.decode("utf-8", errors="replace")):
        own = dict(_ATTRIBUTE.findall(found[1]))
        active = own.get("active", "1") != "0"
        points.append([number_in(own.get(axis, "")) if active else np.nan for axis in _OF_FCSV])
    return points


def _of_words(content: bytes) -> list[list[float]]:
    """Read a .lmk file: a landmark per line, from its last three words, or two if most have no more."""
    lines = [line.replace(",", " ").split() for line in physical_lines(content)]
    lines = [words for words in lines if words and not words[0].startswith("#")]
    three = sum(len(words) >= 3 and not np.isnan(number_in(words[-3])) for words in lines)
    wide = 3 if three > len(lines) / 2 else 2
    return [[number_in(word) for word in words[-wide:]] if len(words) >= wide else [np.nan] * wide for words in lines]


#: By the ends of their names.
SPECIMENS: dict[str, Callable[[bytes], list[list[float]]]] = {
    ".json": _of_slicer,
    ".fcsv": _of_fiducials,
    ".pp": _of_meshlab,
    ".lmk": _of_words,
}
