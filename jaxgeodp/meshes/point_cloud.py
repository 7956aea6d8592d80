"""Triangulation of point clouds, by a template or by the points' frontal projection.

The projection is along z, towards the viewer. Points at the lower end of long steep edges of its Delaunay
triangulation (under the nose, in the nostrils) are left out: others hide them. The triangulation fills the convex hull,
from which triangles with long edges are cut off, from the boundary inwards, as long as the rest stays a disk (the
characteristic shape of Duckham, Kulik, Worboys & Galton 2008, Pattern Recognition 41, 3224-3236, with lengths in
space).
"""

import heapq

import numpy as np
from scipy.spatial import Delaunay, KDTree, QhullError

from jaxgeodp.checks import InputError
from jaxgeodp.meshes.connectivity import edges, half_edges, neighbours
from jaxgeodp.meshes.mesh import Mesh, mesh_arrays
from jaxgeodp.meshes.repair import RepairReport, repair

# An edge leads to a hidden point if it is steeper than this and goes down by more than this many median edges.
_STEEP, _DEEP = 4.0, 2.0
# Boundary edges longer than this many median edges are cut off.
_LONG = 5.0
# Median edges longer than this many median distances to the nearest point join points that are no neighbours.
_APART = 10.0


def mesh_from_points(points, template=None, fill_holes: bool = False, scan: bool = False) -> tuple[Mesh, RepairReport]:
    """Return a mesh through points, mended by `repair`.

    Args:
        points: (V, 3), finite; without a template y is up and z towards the viewer, and points that others hide as
            seen from the front are left out.
        template: triangles (F, 3) of a mesh whose vertices correspond to the points, in the same order.
        fill_holes, scan: see `repair`.

    Returns:
        The mesh, and what was changed; ``report.numbering`` takes numbers of points to those of vertices, -1 for
        points that were left out.

    Raises:
        ValueError: shapes do not fit, points lie on a line as seen from the front, the template's triangles join points
            that are no neighbours, or the surface is not a disk.

    Example:
        >>> from jaxgeodp.surfaces import mesh_from_points
        >>> mesh_from_points([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, 1]])[0]
        Mesh(5 vertices, 4 triangles)
    """
    points = np.asarray(points)
    if points.ndim != 2 or points.shape[1:] != (3,) or len(points) < 4:
        raise InputError(f"mesh_from_points: needs at least 4 points of shape (V, 3), got {points.shape}.")
    corners = np.array([[0, 1, 2]]) if template is None else template
    points, template_triangles = mesh_arrays("mesh_from_points", points, corners)
    if template is None:
        triangles = _without_long(points, _visible(points))
    else:
        triangles = template_triangles
        _check_neighbours(points, triangles)
    mesh, report = repair(points, triangles, fill_holes, scan)
    return mesh, report._replace(made_triangles=len(triangles))


def _visible(points):
    """Triangulate the projection, leaving out all points that others hide."""
    kept = np.arange(len(points))
    while True:
        triangles = _delaunay(points, kept)
        ends, _, _ = edges(triangles)
        side = points[ends[:, 0]] - points[ends[:, 1]]
        down = np.abs(side[:, 2])
        typical = np.median(np.linalg.norm(side, axis=1))
        behind = (down > _DEEP * typical) & (down > _STEEP * np.linalg.norm(side[:, :2], axis=1))
        if not np.any(behind):
            return triangles
        hidden = np.where(side[behind, 2] < 0, ends[behind, 0], ends[behind, 1])
        kept = np.setdiff1d(kept, hidden)


def _delaunay(points, kept):
    """Triangulate the projection of some points, counter-clockwise as seen from the front."""
    flat = points[:, :2] - points[:, :2].mean(axis=0)
    try:
        triangles = kept[Delaunay(flat[kept]).simplices]
    except QhullError:
        raise InputError(
            "mesh_from_points: the points lie on a line as seen from the front; turn them so that z points out of the "
            "face."
        ) from None
    sides = flat[triangles[:, 1:]] - flat[triangles[:, :1]]
    clockwise = sides[:, 0, 0] * sides[:, 1, 1] < sides[:, 0, 1] * sides[:, 1, 0]
    return np.where(clockwise[:, None], triangles[:, ::-1], triangles)


def _check_neighbours(points, triangles):
    apart = np.median(np.linalg.norm(points[triangles] - points[np.roll(triangles, -1, axis=1)], axis=2))
    nearest = np.median(KDTree(points).query(points, k=2)[0][:, 1])
    if apart > _APART * nearest:
        raise InputError(
            "mesh_from_points: the template's triangles join points that are not neighbours; the points must be in "
            "the order of the template's vertices."
        )


def _without_long(points, triangles):
    """Cut off triangles with a long boundary edge, the longest first."""
    lengths = np.linalg.norm(points[triangles] - points[np.roll(triangles, -1, axis=1)], axis=2).reshape(-1)
    limit = _LONG * np.median(lengths)
    partner = np.full(3 * len(triangles), -1)
    first, second = neighbours(triangles).T
    partner[first], partner[second] = second, first
    # How many boundary edges start at each vertex: 1 on the boundary of a disk, 0 inside.
    border = np.bincount(half_edges(triangles)[partner < 0, 0], minlength=len(points))
    kept = np.ones(len(triangles), bool)
    waiting = [(-lengths[edge], edge) for edge in np.flatnonzero(partner < 0) if lengths[edge] > limit]
    heapq.heapify(waiting)
    while waiting and kept.sum() > 1:
        edge = heapq.heappop(waiting)[1]
        triangle = edge // 3
        corners = np.roll(triangles[triangle], -(edge % 3))
        inner = [half for half in range(3 * triangle, 3 * triangle + 3) if partner[half] >= 0]
        # With one boundary edge the tip must be inside, else the rest would hang together by it alone.
        if not kept[triangle] or not inner or (len(inner) == 2 and border[corners[2]]):
            continue
        kept[triangle] = False
        for half in range(3 * triangle, 3 * triangle + 3):
            other = partner[half]
            border[triangles[triangle, half % 3]] -= other < 0
            if other >= 0:
                partner[other] = -1
                border[triangles[other // 3, other % 3]] += 1
                if lengths[other] > limit:
                    heapq.heappush(waiting, (-lengths[other], other))
    return triangles[kept]
