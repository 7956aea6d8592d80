"""Repair of raw triangle meshes into a `Mesh`, with a report of all changes."""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph
from scipy.spatial import KDTree

from jaxgeodp.checks import InputError
from jaxgeodp.meshes.connectivity import (
    boundary_half_edges,
    boundary_loops,
    first_equal,
    half_edges,
    neighbours,
    split_vertices,
)
from jaxgeodp.meshes.mesh import Mesh, check_manifold, check_one_part, flat_triangles, mesh_arrays

_OWNER = "repair"
# Flat triangles are mended in rounds, each of which may leave new ones.
_ROUNDS = 20
# Scan vertices closer than this fraction of the median edge are merged.
_NEAR = 1e-3


class RepairReport(NamedTuple):
    """What `repair` changed: counts, all 0 if nothing was changed."""

    merged_vertices: int  #: at the same place as an earlier one, or with ``scan`` nearly so
    dropped_triangles: int  #: with a repeated corner, with the corners of an earlier one, or flat on the boundary
    swapped_edges: int  #: the longest edge of a flat triangle, replaced by the other diagonal of its two triangles
    turned_triangles: int  #: oriented against most others
    filled_holes: int  #: boundary loops that were closed
    ears: int  #: triangles with two edges on the boundary, cut off
    dropped_vertices: int  #: left without a triangle
    cut_triangles: int  #: of smaller parts and smaller fans, with ``scan``
    made_triangles: int  #: for points that had none
    numbering: np.ndarray  #: new number of each old vertex, -1 where it was dropped, shape (V_old,)

    def counts(self) -> dict[str, int]:
        """Return all fields but the numbering."""
        return {name: value for name, value in self._asdict().items() if name != "numbering"}

    def __repr__(self):
        return f"RepairReport({', '.join(f'{name}={value}' for name, value in self.counts().items())})"


def repair(vertices, faces, fill_holes: bool = False, scan: bool = False) -> tuple[Mesh, RepairReport]:
    """Make a `Mesh` of vertices and triangles.

    Vertices at the same place are merged; triangles without area are dropped or re-cut; all triangles are turned to the
    orientation of most; holes are filled on request; triangles that hang on the boundary by one edge ("ears") are cut
    off, as no conformal map can keep their angles; unused vertices are dropped. The order of vertices stays.

    Args:
        vertices: (V, 3), finite.
        faces: (F, 3) vertex numbers.
        fill_holes: close every boundary loop but the longest by triangles around its centroid.
        scan: do more, as raw scans need it. Vertices nearer than a thousandth of the median edge are merged; of
            parts that do not hang together by edges of two triangles, the one with the largest area is kept (what
            stands on the surface by an edge is cut off), and of several fans at a vertex the largest.

    Returns:
        The mesh, and what was changed; ``report.numbering`` takes vertex numbers of the input to those of the mesh.

    Raises:
        ValueError: the surface is not a disk, and these means cannot make it one. Vertex numbers in the sentence are
            those of the input (of the result for what is found at the end).

    Example:
        >>> from jaxgeodp.surfaces import repair
        >>> corners = [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, 1], [1, 0, 0]]
        >>> repair(corners, [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 4, 5]])
        (Mesh(5 vertices, 4 triangles), RepairReport(merged_vertices=1, dropped_triangles=0, swapped_edges=0, \
turned_triangles=1, filled_holes=0, ears=0, dropped_vertices=0, cut_triangles=0, \
made_triangles=0))
    """
    vertices, faces = mesh_arrays(_OWNER, vertices, faces)
    old_count, triangle_count = len(vertices), len(faces)
    same = _first_near(vertices, faces) if scan else first_equal(vertices)
    merged = int(np.sum(same != np.arange(old_count)))
    faces, swapped = _mend_flat(vertices, _distinct(same[faces]))
    _not_empty(faces, "every triangle lacks area; check the file and its units")
    dropped = triangle_count - len(faces)
    faces, cut = _without_scraps(vertices, faces) if scan else (faces, 0)
    check_manifold(_OWNER, faces)
    check_one_part(_OWNER, old_count, faces)
    faces, turned = _oriented(faces)
    vertices, faces, holes = _filled(vertices, faces) if fill_holes else (vertices, faces, 0)
    faces, ears = _without_ears(faces)
    _not_empty(faces, "it is a strip without inner vertices, all triangles hang on the boundary; refine it")
    used = np.unique(faces)
    numbers = np.full(len(vertices), -1)
    numbers[used] = np.arange(len(used))
    report = RepairReport(
        merged_vertices=merged,
        dropped_triangles=dropped,
        swapped_edges=swapped,
        turned_triangles=turned,
        filled_holes=holes,
        ears=ears,
        dropped_vertices=int(np.sum(numbers[np.unique(same)] < 0)),
        cut_triangles=cut,
        made_triangles=0,
        numbering=numbers[same],
    )
    return Mesh(vertices[used], numbers[faces]), report


def _not_empty(faces, reason):
    if len(faces) == 0:
        raise InputError(f"repair: the repaired mesh has no triangles: {reason}.")


def _distinct(faces):
    """Drop triangles with a repeated corner, and duplicates."""
    faces = faces[np.all(faces != np.roll(faces, -1, axis=1), axis=1)]
    return faces[first_equal(np.sort(faces, axis=1)) == np.arange(len(faces))]


def _first_near(vertices, faces):
    """Return for each vertex the first vertex of its cluster of nearly coincident ones."""
    sides = np.linalg.norm(vertices[faces] - vertices[np.roll(faces, -1, axis=1)], axis=2)
    sides = sides[(sides > 0) & np.isfinite(sides)]
    reach = _NEAR * float(np.median(sides)) if len(sides) else 0.0
    pairs = KDTree(vertices).query_pairs(reach, output_type="ndarray")
    graph = sparse.coo_array((np.ones(len(pairs)), pairs.T), shape=(len(vertices), len(vertices)))
    part = csgraph.connected_components(graph, directed=False)[1]
    return np.unique(part, return_index=True)[1][part]


def _without_scraps(vertices, faces):
    """Keep only the largest part and each vertex's largest fan; return also the number of cut triangles."""
    count, before = len(faces), len(faces) + 1
    while 0 < len(faces) < before:
        before = len(faces)
        faces = _without_fans(_largest_part(vertices, faces))
    return faces, count - len(faces)


def _without_fans(faces):
    """Drop all but the largest fan of each vertex with several."""
    while len(split := split_vertices(faces)):
        smaller = [_smaller_fans(faces, vertex) for vertex in split]
        faces = np.delete(faces, np.unique(np.concatenate(smaller)), axis=0)
    return faces


def _smaller_fans(faces, vertex):
    """Return the numbers of the triangles around a vertex outside its largest fan."""
    around = np.flatnonzero(np.any(faces == vertex, axis=1))
    others = np.array([[corner for corner in face if corner != vertex] for face in faces[around]])
    # Two triangles of a fan share another vertex, which no third one has: as `split_vertices` has it.
    _, place, counts = np.unique(others, return_inverse=True, return_counts=True)
    others = np.where(counts[place.reshape(others.shape)] == 2, others, -1)
    same = (others[:, None, :, None] == others[None, :, None]) & (others[:, None, :, None] >= 0)
    pairs = np.argwhere(np.any(same, axis=(2, 3)))
    graph = sparse.coo_array((np.ones(len(pairs)), pairs.T), shape=(len(around), len(around)))
    fan = csgraph.connected_components(graph, directed=False)[1]
    return around[fan != np.argmax(np.bincount(fan))]


def _largest_part(vertices, faces):
    """Keep the part of largest area, connected by edges of exactly two triangles, so that fins are cut off."""
    pairs = neighbours(faces) // 3
    graph = sparse.coo_array((np.ones(len(pairs)), pairs.T), shape=(len(faces), len(faces)))
    part = csgraph.connected_components(graph, directed=False)[1]
    a, b, c = np.moveaxis(vertices[faces], 1, 0)
    areas = np.bincount(part, np.linalg.norm(np.cross(b - a, c - a), axis=1))
    return faces[part == np.argmax(areas)]


def _mend_flat(vertices, faces):
    """Remove flat triangles: give each one's middle vertex to the neighbour across its longest edge.

    Dropping it alone would leave a slit. The neighbour is cut in two from the middle vertex; without a neighbour, the
    boundary runs through the middle vertex.
    """
    swapped = 0
    for _ in range(_ROUNDS):
        flat = flat_triangles(vertices, faces)
        if len(flat) == 0:
            return faces, swapped
        partner = _partners(faces)
        touched, dropped, added = set(), [], []
        for triangle in flat:
            corners = vertices[faces[triangle]]
            longest = int(np.argmax(np.linalg.norm(np.roll(corners, -1, axis=0) - corners, axis=1)))
            other = partner.get(3 * int(triangle) + longest)
            group = {int(triangle)} if other is None else {int(triangle), other // 3}
            if touched & group:
                continue
            touched |= group
            dropped += group
            if other is not None:
                start, end, middle = np.roll(faces[triangle], -longest)
                tip = faces[other // 3][(other + 2) % 3]
                added += [[start, tip, middle], [tip, end, middle]]
                swapped += 1
        faces = np.concatenate([np.delete(faces, dropped, axis=0), np.reshape(added, (-1, 3)).astype(faces.dtype)])
        faces = _distinct(faces)
    raise InputError("repair: triangles without area remain that cannot be repaired; remesh the surface.")


def _partners(faces):
    """Map each interior half-edge to its opposite half-edge."""
    pairs = neighbours(faces).tolist()
    return {a: b for a, b in pairs} | {b: a for a, b in pairs}


def _oriented(faces):
    """Orient all triangles like the majority; return also the number of turned ones."""
    count = len(faces)
    pairs = neighbours(faces)
    starts = half_edges(faces)[:, 0]
    against = starts[pairs[:, 0]] == starts[pairs[:, 1]]
    first, second = (pairs // 3).T
    # Each triangle in both orientations; those that agree are joined.
    rows = np.concatenate([first, first + count])
    columns = np.concatenate([np.where(against, second + count, second), np.where(against, second, second + count)])
    graph = sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(2 * count, 2 * count))
    part = csgraph.connected_components(graph, directed=False)[1]
    if part[0] == part[count]:
        raise InputError(
            "repair: the surface has only one side, like a Moebius strip, and cannot be oriented; cut it where it "
            "passes through itself."
        )
    turned = part[:count] != part[0]
    if 2 * turned.sum() > count:
        turned = ~turned
    return np.where(turned[:, None], faces[:, ::-1], faces), int(turned.sum())


def _filled(vertices, faces):
    """Close all boundary loops but the longest, by a triangle or a fan around the centroid; count them."""
    loops = boundary_loops(faces)
    lengths = [np.linalg.norm(vertices[loop] - vertices[np.roll(loop, -1)], axis=1).sum() for loop in loops]
    holes = [loop for k, loop in enumerate(loops) if k != int(np.argmax(lengths))] if loops else []
    for loop in holes:
        if len(loop) == 3:
            faces = np.concatenate([faces, [loop[::-1]]])
            continue
        hub = len(vertices)
        vertices = np.concatenate([vertices, [vertices[loop].mean(axis=0)]])
        # The surface lies left of the loop, the fan right of it.
        fan = np.stack([np.roll(loop, -1), loop, np.full(len(loop), hub)], axis=1)
        faces = np.concatenate([faces, fan])
    return vertices, faces, len(holes)


def _without_ears(faces):
    """Drop triangles with two boundary edges until none is left; return also their number."""
    count = len(faces)
    while len(faces):
        border = np.bincount(boundary_half_edges(faces) // 3, minlength=len(faces))
        if not np.any(border > 1):
            break
        faces = faces[border < 2]
    return faces, count - len(faces)
