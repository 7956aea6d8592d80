"""Connectivity of a triangulation: which triangles, edges and vertices meet, without coordinates.

Half-edge number 3 t + k is the edge from corner k to corner k + 1 of triangle t, in the direction of that triangle.
"""

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph


def half_edges(faces) -> np.ndarray:
    """Return the directed edges of triangles (F, 3), shape (3 F, 2)."""
    return np.stack([faces, np.roll(faces, -1, axis=1)], axis=2).reshape(-1, 2)


def edges(faces):
    """Return undirected edges (E, 2), the edge of each half-edge (3 F,), and triangles per edge (E,)."""
    ends = np.sort(half_edges(faces), axis=1)
    # One number for each pair: far faster than unique rows.
    base = np.int64(ends.max(initial=0)) + 1
    keys, edge, counts = np.unique(ends[:, 0] * base + ends[:, 1], return_inverse=True, return_counts=True)
    return np.stack(np.divmod(keys, base), axis=1), edge.reshape(-1), counts


def boundary_half_edges(faces) -> np.ndarray:
    """Return the numbers of the half-edges that no other triangle shares."""
    _, edge, counts = edges(faces)
    return np.flatnonzero(counts[edge] == 1)


def neighbours(faces) -> np.ndarray:
    """Return pairs of half-edges (E_interior, 2) that are the two sides of an edge."""
    _, edge, counts = edges(faces)
    order = np.argsort(edge, kind="stable")
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])[counts == 2]
    return np.stack([order[first], order[first + 1]], axis=1)


def boundary_loops(faces) -> list[np.ndarray]:
    """Return the boundary as closed loops of vertices, each begun at its lowest number, with the surface on the left.

    The triangles must be consistently oriented, and form one fan around each vertex.
    """
    border = half_edges(faces)[boundary_half_edges(faces)]
    following = dict(border.tolist())
    loops = []
    for start in sorted(following):
        if start not in following:
            continue
        loop, vertex = [], start
        while vertex in following:
            loop.append(vertex)
            vertex = following.pop(vertex)
        loops.append(np.array(loop))
    return loops


def split_vertices(faces) -> np.ndarray:
    """Return the vertices whose triangles form more than one fan, where parts of the surface touch."""
    pairs = neighbours(faces)
    tail = half_edges(faces)[:, 0]
    # Half-edge 3 t + k starts at corner k of triangle t, and ends at corner k + 1.
    head_corner = 3 * (np.arange(3 * len(faces)) // 3) + (np.arange(3 * len(faces)) + 1) % 3
    left, right = pairs.T
    same_way = tail[left] == tail[right]
    # Corners of the two triangles at the same vertex.
    first = np.where(same_way, right, head_corner[right])
    second = np.where(same_way, head_corner[right], right)
    rows = np.concatenate([left, head_corner[left]])
    columns = np.concatenate([first, second])
    graph = sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(tail), len(tail)))
    fan = csgraph.connected_components(graph, directed=False)[1]
    vertex_of_fan = np.zeros(fan.max(initial=-1) + 1, dtype=int)
    vertex_of_fan[fan] = tail
    vertices, counts = np.unique(vertex_of_fan, return_counts=True)
    return vertices[counts > 1]


def adjacency(faces, count: int):
    """Return the sparse adjacency matrix (count, count) of vertices, of zeros and ones."""
    pairs = edges(faces)[0]
    both = np.concatenate([pairs, pairs[:, ::-1]])
    return sparse.coo_array((np.ones(len(both)), both.T), shape=(count, count)).tocsr()


def components(faces, count: int) -> np.ndarray:
    """Return the number of the connected part in which each of ``count`` vertices lies, shape (count,)."""
    return csgraph.connected_components(adjacency(faces, count), directed=False)[1]


def first_equal(rows) -> np.ndarray:
    """Return for each row of an array (n, k) the number of the first equal row, (n,)."""
    if len(rows) == 0:
        return np.zeros(0, dtype=np.int64)
    # A stable sort: the first of each group of equal rows has the lowest number. -0 equals 0.
    order = np.lexsort(rows.T)
    new = np.any(rows[order[1:]] != rows[order[:-1]], axis=1)
    leaders = order[np.concatenate([[0], np.flatnonzero(new) + 1])]
    result = np.empty(len(rows), dtype=np.int64)
    result[order] = leaders[np.concatenate([[0], np.cumsum(new)])]
    return result
