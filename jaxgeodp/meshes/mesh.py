"""A triangulated disk, validated once at construction.

Accepted is a manifold, oriented mesh of one part with Euler characteristic V - E + F = 1 and one boundary loop. A mesh
is private data: the errors here name its vertices, edges and triangles for its custodian, and never enter a release.
"""

import dataclasses
import functools

import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.meshes.connectivity import (
    boundary_loops,
    components,
    edges,
    first_equal,
    half_edges,
    neighbours,
    split_vertices,
)

#: Triangles with twice the area below this many squares of the longest edge count as without area.
FLATTEST = 1e-8
_REPAIR = "jaxgeodp.meshes.repair"


@dataclasses.dataclass(frozen=True, eq=False)
class Mesh:
    """A triangulated surface with the topology of a disk.

    Args:
        vertices: places in space (V, 3), finite, no two the same.
        faces: vertex numbers of the corners of each triangle (F, 3), counter-clockwise seen from outside.

    Raises:
        ValueError: the mesh is not a disk; the sentence names a vertex, edge or triangle that breaks it. `repair` mends
            what can be mended.

    Example:
        >>> from jaxgeodp.surfaces import Mesh
        >>> mesh = Mesh([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, 1]],
        ...             [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]])
        >>> mesh.boundary
        array([0, 1, 2, 3])
    """

    vertices: np.ndarray
    faces: np.ndarray

    def __post_init__(self):
        vertices, faces = mesh_arrays("Mesh", self.vertices, self.faces)
        _check_triangles(vertices, faces)
        _check_vertices(vertices, faces)
        check_manifold("Mesh", faces)
        _check_orientation(faces)
        _check_topology(len(vertices), faces)
        vertices.setflags(write=False)
        faces.setflags(write=False)
        object.__setattr__(self, "vertices", vertices)
        object.__setattr__(self, "faces", faces)

    def __repr__(self):
        return f"Mesh({len(self.vertices)} vertices, {len(self.faces)} triangles)"

    @functools.cached_property
    def boundary(self) -> np.ndarray:
        """Vertices of the boundary loop in order, the surface on the left; begins at the lowest number."""
        return _read_only(boundary_loops(self.faces)[0])

    @functools.cached_property
    def interior(self) -> np.ndarray:
        """Vertices off the boundary, in increasing order."""
        return _read_only(np.setdiff1d(np.arange(len(self.vertices)), self.boundary, assume_unique=True))

    @functools.cached_property
    def areas(self) -> np.ndarray:
        """Areas of the triangles, shape (F,), in the square of the unit of the vertices."""
        return _read_only(0.5 * np.linalg.norm(_normals(self.vertices, self.faces), axis=1))

    @property
    def area(self) -> float:
        """Area of the surface, in the square of the unit of the vertices."""
        return float(np.sum(self.areas))

    @property
    def centroid(self) -> np.ndarray:
        """Centroid of the surface, each triangle with its area as weight, shape (3,)."""
        return self.areas @ self.vertices[self.faces].mean(axis=1) / self.area

    @property
    def boundary_lengths(self) -> np.ndarray:
        """Lengths of the boundary edges; number k joins ``boundary[k]`` to the next."""
        loop = self.vertices[self.boundary]
        return np.linalg.norm(np.roll(loop, -1, axis=0) - loop, axis=1)

    @functools.cached_property
    def cotangents(self) -> np.ndarray:
        """Cotangents of the angles at the corners, shape (F, 3); negative at obtuse ones."""
        toward, back = _sides(self.vertices, self.faces)
        return _read_only(np.sum(toward * back, axis=2) / (2.0 * self.areas[:, None]))

    @functools.cached_property
    def angles(self) -> np.ndarray:
        """Angles at the corners, in radians, shape (F, 3)."""
        return _read_only(np.arctan2(1.0, self.cotangents))


def flat_triangles(vertices, faces) -> np.ndarray:
    """Return the numbers of the triangles without area."""
    sides = np.linalg.norm(_sides(vertices, faces)[0], axis=2)
    return np.flatnonzero(np.linalg.norm(_normals(vertices, faces), axis=1) <= FLATTEST * sides.max(axis=1) ** 2)


def mesh_arrays(owner: str, vertices, faces):
    """Return private copies as float64 (V, 3) and integers (F, 3), checked finite and in range.

    Raises:
        ValueError: they are something else.
    """
    try:
        vertices = np.array(vertices, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{owner}: vertices must be numbers, shape (V, 3).") from None
    faces = np.array(faces)
    if vertices.ndim != 2 or vertices.shape[1] != 3:
        raise InputError(f"{owner}: vertices must have shape (V, 3), got {vertices.shape}.")
    if faces.ndim != 2 or faces.shape[1] != 3 or len(faces) == 0 or faces.dtype.kind not in "iu":
        raise InputError(
            f"{owner}: faces must be integers of shape (F, 3) with at least one triangle, got {faces.dtype} "
            f"{faces.shape}; split polygons into triangles."
        )
    faces = faces.astype(np.int64)
    wild = np.flatnonzero(~np.all(np.isfinite(vertices), axis=1))
    if len(wild):
        raise InputError(f"{owner}: vertex {wild[0]} is not finite; remove it with its triangles.")
    outside = np.argwhere((faces < 0) | (faces >= len(vertices)))
    if len(outside):
        triangle, corner = outside[0]
        raise InputError(
            f"{owner}: triangle {triangle} refers to vertex {faces[triangle, corner]}, but vertices are numbered from "
            f"0 to {len(vertices) - 1}; correct the index."
        )
    return vertices, faces


def check_manifold(owner: str, faces) -> None:
    """Raise ValueError if an edge has more than two triangles or a vertex several fans."""
    pairs, _, counts = edges(faces)
    crowded = np.flatnonzero(counts > 2)
    if len(crowded):
        a, b = pairs[crowded[0]]
        raise InputError(
            f"{owner}: the edge of vertices {a} and {b} belongs to {counts[crowded[0]]} triangles instead of one or "
            "two; remove the triangles that do not belong to the surface."
        )
    split = split_vertices(faces)
    if len(split):
        raise InputError(
            f"{owner}: the triangles around vertex {split[0]} form several fans that touch only there; remove all but "
            "one, or give each fan a vertex of its own."
        )


def check_one_part(owner: str, count: int, faces) -> None:
    """Raise ValueError if the mesh is not connected."""
    part = components(faces, count)
    used = np.unique(faces)
    apart = used[part[used] != part[used[0]]]
    if len(apart):
        raise InputError(
            f"{owner}: the mesh has {len(np.unique(part[used]))} parts, with vertices {used[0]} and {apart[0]} in "
            "different ones; keep only the part that is the face."
        )


def _check_triangles(vertices, faces):
    repeated = np.flatnonzero(np.any(faces == np.roll(faces, -1, axis=1), axis=1))
    if len(repeated):
        raise InputError(f"Mesh: triangle {repeated[0]} uses a vertex twice; {_REPAIR} drops such triangles.")
    copies = first_equal(np.sort(faces, axis=1))
    second = np.flatnonzero(copies != np.arange(len(faces)))
    if len(second):
        raise InputError(
            f"Mesh: triangles {copies[second[0]]} and {second[0]} have the same corners; {_REPAIR} drops the second."
        )
    flat = flat_triangles(vertices, faces)
    if len(flat):
        raise InputError(
            f"Mesh: triangle {flat[0]} has no area, as its corners {', '.join(map(str, faces[flat[0]]))} lie on a "
            f"line; {_REPAIR} corrects such triangles."
        )


def _check_vertices(vertices, faces):
    copies = first_equal(vertices)
    second = np.flatnonzero(copies != np.arange(len(vertices)))
    if len(second):
        raise InputError(f"Mesh: vertices {copies[second[0]]} and {second[0]} coincide; {_REPAIR} merges them.")
    unused = np.setdiff1d(np.arange(len(vertices)), faces)
    if len(unused):
        raise InputError(f"Mesh: vertex {unused[0]} belongs to no triangle; {_REPAIR} drops it.")


def _check_orientation(faces):
    pairs = neighbours(faces)
    starts = half_edges(faces)[:, 0]
    against = np.flatnonzero(starts[pairs[:, 0]] == starts[pairs[:, 1]])
    if len(against):
        first, second = pairs[against[0]] // 3
        raise InputError(
            f"Mesh: triangles {first} and {second} share an edge but have opposite orientations; {_REPAIR} corrects "
            "them."
        )


def _check_topology(count, faces):
    check_one_part("Mesh", count, faces)
    loops = boundary_loops(faces)
    if not loops:
        raise InputError("Mesh: the surface is closed and has no boundary; cut it open, for a face behind the ears.")
    if len(loops) > 1:
        hole = min(loops, key=len)
        raise InputError(
            f"Mesh: the surface has {len(loops)} boundary loops instead of one, vertex {hole[0]} lies on the shortest; "
            f"{_REPAIR} with fill_holes=True closes all but the longest."
        )
    characteristic = count - len(edges(faces)[0]) + len(faces)
    if characteristic != 1:
        raise InputError(
            f"Mesh: the surface has {(1 - characteristic) // 2} handles (Euler characteristic {characteristic} instead "
            "of 1); cut them off and fill the holes."
        )


def _sides(vertices, faces):
    """Return at each corner the vectors to the next and to the previous one, each (F, 3, 3)."""
    corners = vertices[faces]
    return np.roll(corners, -1, axis=1) - corners, np.roll(corners, 1, axis=1) - corners


def _normals(vertices, faces):
    """Return the normals of triangles, each as long as twice the triangle's area."""
    a, b, c = np.moveaxis(vertices[faces], 1, 0)
    return np.cross(b - a, c - a)


def _read_only(array):
    array.setflags(write=False)
    return array
