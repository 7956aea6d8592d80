"""Arrange tables of numbers as points, by shape and type alone.

Each function returns the sizes of the manifold (see `names.MANIFOLDS`) and its points (n, \\*shape).
"""

import math

import numpy as np

from jaxgeodp.checks import InputError, many


def vectors(table):
    """Read vectors (n, d)."""
    if table.ndim != 2:
        raise InputError(f"Euclidean records must have shape (n, d), got {many(table.shape)}.")
    return (table.shape[1],), table


def directions(table):
    """Read unit vectors (n, d + 1)."""
    if table.ndim != 2 or table.shape[1] < 2:
        raise InputError(f"directions must have shape (n, d + 1) with d >= 1, got {many(table.shape)}.")
    return (table.shape[1] - 1,), table


def one_angle(table):
    """Read angles (n,) or (n, 1), in radians."""
    if table.shape[1:] not in ((), (1,)):
        raise InputError(
            f"angles on a circle must have shape (n,) or (n, 1), got {many(table.shape)}; "
            "for several angles use a torus."
        )
    return (), table.reshape(-1, 1)


def angles(table):
    """Read angles (n, k), in radians."""
    if table.ndim != 2:
        raise InputError(f"angles on a torus must have shape (n, k), got {many(table.shape)}.")
    return (table.shape[1],), table


def hyperboloid(table):
    """Read points (n, d + 1), rows x0, x1, ..., of curvature -1."""
    if table.ndim != 2 or table.shape[1] < 2:
        raise InputError(f"points of the hyperboloid must have shape (n, d + 1) with d >= 1, got {many(table.shape)}.")
    return (table.shape[1] - 1,), table


def rotations(table):
    """Read rotations (n, 3, 3), or rows of 9 numbers, x11, x12, ..."""
    if table.shape[1:] not in ((3, 3), (9,)):
        raise InputError(
            f"rotations must have shape (n, 3, 3), or rows of 9 numbers, got {many(table.shape)}; "
            "quaternions, rotation vectors and Euler angles need --as, and with a translation --manifold rigidmotions."
        )
    return (), table.reshape(-1, 3, 3)


def motions(table):
    """Read motions (n, 3, 4) or (n, 4, 4), or rows of 12 or 16 numbers, r11, r12, r13, t1, r21, ..."""
    if table.shape[1:] in ((12,), (16,)):
        table = table.reshape(len(table), -1, 4)
    if table.shape[1:] not in ((3, 4), (4, 4)):
        raise InputError(
            f"rigid motions must have shape (n, 3, 4) or (n, 4, 4), or rows of 12 or 16 numbers, got "
            f"{many(table.shape)}; translations with quaternions or rotation vectors need --as."
        )
    if table.shape[1] == 4:
        with np.errstate(all="ignore"):
            usual = np.all(np.abs(table[:, 3] - np.array([0.0, 0.0, 0.0, 1.0])) <= 1e-6, axis=1)
        table = np.where(usual[:, None, None], table[:, :3], np.nan)
    return (), table


def symmetric_matrices(table):
    """Read matrices (n, k, k), or rows of k(k+1)/2 numbers, the lower triangle by rows: x11, x21, x22, ..."""
    if table.ndim == 3 and table.shape[1] == table.shape[2]:
        return (table.shape[1],), table
    size = _size_of_triangle(table)
    matrices = np.zeros((table.shape[0], size, size), table.dtype)
    rows, columns = np.tril_indices(size)
    matrices[:, rows, columns] = table
    matrices[:, columns, rows] = table
    return (size,), matrices


def _size_of_triangle(table):
    if table.ndim == 3:
        raise InputError(
            f"SPD records must have shape (n, k, k), got {many(table.shape)}: if its last axis holds the records, move "
            "it first."
        )
    size = int((math.isqrt(8 * table.shape[-1] + 1) - 1) // 2)
    if table.ndim != 2 or size * (size + 1) // 2 != table.shape[1]:
        raise InputError(
            f"SPD records must have shape (n, k, k), or rows of k(k+1)/2 numbers, got "
            f"{many(table.shape)}; rows of all k^2 numbers need --size."
        )
    return size


def from_upper_triangles(table, diagonal: bool = True):
    """Reorder upper triangles by rows, x11, x12, x13, x22, ..., as lower triangles by rows."""
    size = _size_of_triangle(table) if diagonal else _size_without_diagonal(table)
    places = np.zeros((size, size), int)
    places[np.triu_indices(size, 0 if diagonal else 1)] = np.arange(table.shape[1])
    return table[:, places.T[np.tril_indices(size, 0 if diagonal else -1)]]


def correlations(table):
    """Read matrices (n, k, k), or rows of k(k-1)/2 numbers below the diagonal, by rows: r21, r31, r32, ..."""
    if table.ndim == 3 and table.shape[1] == table.shape[2] > 1:
        return (table.shape[1],), table
    size = _size_without_diagonal(table)
    matrices = np.ones((len(table), size, size), table.dtype)
    rows, columns = np.tril_indices(size, -1)
    matrices[:, rows, columns] = table
    matrices[:, columns, rows] = table
    return (size,), matrices


def _size_without_diagonal(table):
    size = 1 + int((math.isqrt(8 * table.shape[-1] + 1) - 1) // 2)
    if table.ndim != 2 or size * (size - 1) // 2 != table.shape[1]:
        raise InputError(
            "correlations must have shape (n, k, k), or rows of k(k-1)/2 numbers without the diagonal, got "
            f"{many(table.shape)}."
        )
    return size


def landmarks(table):
    """Read landmarks (n, k, 2), rows x1, y1, x2, y2, ..., or complex (n, k)."""
    if table.dtype.kind == "c" and table.ndim == 2 and table.shape[1] >= 3:
        return (table.shape[1],), table
    if table.ndim == 2 and table.shape[1] % 2 == 0:
        table = table.reshape(table.shape[0], -1, 2)
    if table.ndim != 3 or table.shape[2] != 2 or table.shape[1] < 3 or table.dtype.kind == "c":
        raise InputError(
            f"landmarks must have shape (n, k, 2) with k >= 3, or rows x1, y1, x2, y2, ..., got "
            f"{many(table.shape)} (for landmarks in space use shapes3d){_of_r(table)}."
        )
    # A view, not x + 1j y: arithmetic would warn of infinities, and so speak of the data.
    return (table.shape[1],), np.ascontiguousarray(table).view(np.complex128)[..., 0]


def landmarks_in_space(table):
    """Read landmarks (n, k, 3), or rows x1, y1, z1, x2, ..."""
    if table.ndim == 2 and table.shape[1] % 3 == 0:
        table = table.reshape(table.shape[0], -1, 3)
    if table.ndim != 3 or table.shape[2] != 3 or table.shape[1] < 4 or table.dtype.kind == "c":
        raise InputError(
            f"landmarks in space must have shape (n, k, 3) with k >= 4, or rows x1, y1, z1, x2, ..., got "
            f"{many(table.shape)}{_of_r(table)}."
        )
    return (table.shape[1],), table


def _of_r(table):
    """Return a hint for arrays in the order of R's geomorph and Morpho, or an empty string."""
    if table.ndim != 3 or table.shape[1] not in (2, 3) or table.shape[2] in (2, 3):
        return ""
    return "; the order (k, m, n) of R is turned by jaxgeodp.landmarks_from_r, or in R by aperm(x, c(3, 1, 2))"


def bases(table):
    """Read bases (n, N, p), with the basis of a subspace in the columns of each record."""
    if table.ndim != 3 or not 0 < table.shape[2] < table.shape[1]:
        raise InputError(
            f"subspaces must have shape (n, N, p) with p < N, a basis in columns, got {many(table.shape)}; rows of N*p "
            "numbers need grassmann(N, p)."
        )
    return (table.shape[1], table.shape[2]), table
