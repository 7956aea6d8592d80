"""The two landmarks of a face, given as vertex numbers or as places in space.

A vertex number means the same place of two faces only if their meshes are numbered alike. So numbers that are given for
all meshes count where a mesh has the template's triangles, and nowhere else; a file with landmarks of its own may be
numbered as it likes. STL files hold loose triangles and have no vertex numbers at all.
"""

import csv
import dataclasses
import operator
import pathlib
from typing import NamedTuple

import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.meshes.mesh import Mesh

# The part of all triangles that meshes numbered alike share, and how far from the surface a landmark may lie, in units
# of the root of its area.
_SHARED, _NEAR = 0.9, 0.05
_COLUMNS = ("file", "nose", "up")

#: A vertex number, a place (x, y, z) in the coordinates of the mesh, or None where a table holds neither.
Landmark = int | tuple[float, float, float] | None


class Landmarks(NamedTuple):
    """The two landmarks of a mesh."""

    nose: Landmark  #: its tip
    up: Landmark  #: above it, such as the root of the nose


@dataclasses.dataclass(frozen=True, eq=False)
class Numbering:
    """Vertex count and triangles, by which two meshes' numberings are compared."""

    count: int  #: of vertices
    triangles: np.ndarray  #: corners in increasing order, (F, 3)
    in_mesh: int  #: vertices of the mesh itself, which may have been repaired

    @classmethod
    def of(cls, mesh: Mesh, numbers=None) -> "Numbering":
        """Return the numbering of a mesh, or of its file if each file vertex's number in the mesh is given."""
        if numbers is None:
            return cls(len(mesh.vertices), np.sort(mesh.faces, axis=1), len(mesh.vertices))
        first = np.full(len(mesh.vertices), -1)
        kept = np.flatnonzero(numbers >= 0)[::-1]
        first[numbers[kept]] = kept
        triangles = first[mesh.faces]
        # A filled hole has a vertex that the file lacks.
        own = np.sort(triangles[np.all(triangles >= 0, axis=1)], axis=1)
        return cls(len(numbers), own, len(mesh.vertices))

    def agrees(self, other: "Numbering") -> bool:
        """Return whether both have equally many vertices and nearly all triangles in common."""
        if self.count != other.count:
            return False
        shared = len(np.intersect1d(_keys(self.triangles), _keys(other.triangles)))
        return shared >= _SHARED * max(len(self.triangles), len(other.triangles))


def _keys(triangles):
    rows = np.ascontiguousarray(triangles, dtype=np.int64)
    return rows.view([("", np.int64)] * 3).reshape(-1)


def place_landmark(name: str, landmark: Landmark, mesh: Mesh, numbers=None) -> int:
    """Return the vertex of a mesh at a landmark.

    Args:
        name: of the landmark, for errors.
        landmark: a vertex number of the file, or a place.
        mesh: on which it lies.
        numbers: the mesh's number of each vertex of its file, -1 where it was dropped; by default they are the same.

    Raises:
        ValueError: there is no such vertex, it was dropped, or the place is not on the surface.
    """
    if landmark is None:
        raise InputError(
            f"{name} is neither a vertex number nor three finite numbers separated by blanks; correct its line of the "
            "table."
        )
    if isinstance(landmark, tuple):
        distances = np.linalg.norm(mesh.vertices - np.asarray(landmark), axis=1)
        nearest = int(np.argmin(distances))
        if not distances[nearest] <= _NEAR * np.sqrt(mesh.area):
            raise InputError(f"the place of {name} is not on the surface; use the units and the origin of the mesh.")
        return nearest
    count = len(mesh.vertices if numbers is None else numbers)
    try:
        number = operator.index(landmark)
    except TypeError:
        number = -1
    if not 0 <= number < count:
        raise InputError(f"{name} {landmark!r} is not a vertex of the mesh, which has {count}, numbered from 0.")
    number = number if numbers is None else int(numbers[number])
    if number < 0:
        raise InputError(f"{name} {landmark} was dropped when the mesh was repaired; choose a vertex near it.")
    return number


def check_numbers(landmarks: Landmarks, file_format: str) -> None:
    """Raise ValueError for vertex numbers where the file has none."""
    if file_format.lower() == ".stl" and not all(isinstance(landmark, tuple | None) for landmark in landmarks):
        raise InputError(
            "an STL file has no vertex numbers; give its landmarks as coordinates x y z, or convert it to .ply."
        )


def read_landmarks(path) -> dict[str, Landmarks]:
    """Read landmarks by file name from a table.

    Args:
        path: of a .csv file with the columns ``file``, ``nose`` and ``up``. A landmark is a vertex number of that file,
            counted from 0, or a place ``x y z`` in its coordinates.

    What a line says of its mesh is private like the mesh: a landmark that it does not hold is None, which makes that
    mesh unusable later, and no line is read differently for what another holds.

    Raises:
        ValueError: the table has another form, or a line no name or that of another line. The sentence names the line
            and none of its values.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise InputError(f"read_landmarks: there is no file {str(path)!r}; check the path.")
    lines = path.read_text(encoding="utf-8-sig", errors="replace").split("\n")
    if tuple(cell.strip() for cell in _cells(lines[0])) != _COLUMNS:
        raise InputError(
            f"read_landmarks: the first line of {path.name!r} must be {','.join(_COLUMNS)}; correct it, in UTF-8."
        )
    found: dict[str, Landmarks] = {}
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        name, *rest = (cell.strip() for cell in _cells(line))
        if not name or "\N{REPLACEMENT CHARACTER}" in name:
            raise InputError(f"read_landmarks: line {number} of {path.name!r} must begin with a file name in UTF-8.")
        if name in found:
            raise InputError(f"read_landmarks: line {number} of {path.name!r} repeats a file; keep one line per file.")
        found[name] = Landmarks(*map(_landmark, rest)) if len(rest) == 2 else Landmarks(None, None)
    return found


def _cells(line) -> list[str]:
    """Return the cells of one line, so that an unclosed quotation mark cannot affect the next lines."""
    try:
        return next(csv.reader([line]), [""])
    except csv.Error:  # a cell beyond all limits
        return line.split(",", 1)


def _landmark(cell) -> Landmark:
    parts = cell.split()
    try:
        if len(parts) == 1 and int(parts[0]) >= 0:
            return int(parts[0])
        place = tuple(float(part) for part in parts)
    except ValueError:
        place = ()
    return place if len(place) == 3 and np.all(np.isfinite(place)) else None
