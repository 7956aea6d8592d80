"""Distances of points from a triangulated surface."""

import numpy as np
from scipy.spatial import KDTree

# Points that are worked on at once.
_BLOCK = 20_000


class MeshDistance:
    """Distances of any points from the surface of a mesh.

    The nearest point is looked for in the triangles around the nearest vertices, and exact within them.

    Args:
        vertices: (V, 3).
        faces: (F, 3).
        neighbours: how many nearest vertices are looked at.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp.meshes.distance import MeshDistance
        >>> corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
        >>> MeshDistance(corners, np.array([[0, 1, 2]]))([[0.2, 0.2, 0.5], [2.0, 0.0, 0.0]])
        array([0.5, 1. ])
    """

    def __init__(self, vertices, faces, neighbours: int = 3):
        """Sort the vertices and list the triangles around each."""
        self._vertices, self._faces = np.asarray(vertices, float), np.asarray(faces)
        self._tree, self._neighbours = KDTree(self._vertices, leafsize=16), min(neighbours, len(self._vertices))
        corner = self._faces.reshape(-1)
        order = np.argsort(corner, kind="stable")
        counts = np.bincount(corner, minlength=len(self._vertices))
        number = np.arange(len(corner)) - np.repeat(np.cumsum(counts) - counts, counts)
        # Short lists are filled with a triangle that is looked at anyway; a vertex without one has the first.
        around = np.zeros((len(self._vertices), counts.max()), int)
        around[corner[order], number] = order // 3
        missing = np.arange(counts.max()) >= counts[:, None]
        self._around = np.where(missing, around[:, :1], around)

    def __call__(self, points):
        """Return the distances (...) of points (..., 3)."""
        points = np.asarray(points, float)
        flat = points.reshape(-1, 3)
        parts = [self._block(flat[start : start + _BLOCK]) for start in range(0, len(flat), _BLOCK)]
        return np.concatenate([np.zeros(0), *parts]).reshape(points.shape[:-1])

    def _block(self, points):
        near = self._tree.query(points, self._neighbours)[1].reshape(len(points), -1)
        triangles = self._around[near].reshape(len(points), -1)
        best = np.full(len(points), np.inf)
        for column in triangles.T:
            corners = self._vertices[self._faces[column]].transpose(1, 0, 2)
            np.minimum(best, _squared_distance(points, *corners), out=best)
        return np.sqrt(best)


def _squared_distance(points, a, b, c):
    """Return squared distances of points (N, 3) from triangles a, b, c (N, 3) each, degenerate ones included."""
    edges = [_to_edge(points, start, end) for start, end in ((a, b), (b, c), (c, a))]
    normal = np.cross(b - a, c - a)
    square = np.maximum(_dot(normal, normal), 1e-300)
    offset = points - a
    second = _dot(np.cross(offset, c - a), normal) / square
    third = _dot(np.cross(b - a, offset), normal) / square
    inside = (second >= 0) & (third >= 0) & (second + third <= 1)
    return np.minimum(np.minimum.reduce(edges), np.where(inside, _dot(offset, normal) ** 2 / square, np.inf))


def _to_edge(points, start, end):
    along, offset = end - start, points - start
    share = np.clip(_dot(offset, along) / np.maximum(_dot(along, along), 1e-300), 0.0, 1.0)
    rest = offset - share[:, None] * along
    return _dot(rest, rest)


def _dot(a, b):
    return np.einsum("ni,ni->n", a, b)
