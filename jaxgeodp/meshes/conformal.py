"""Conformal maps of a triangulated disk onto the unit disk, unique up to a Moebius map.

Every method finds the angles of the boundary vertices on the circle; the harmonic function of these values with
cotangent weights is the map, and folds are removed (`unfold`).

"newton" minimises the conformal energy over the boundary angles (`boundary_newton`); "fast" is the method of Choi & Lui
2015 (J. Sci. Comput. 65, 1065-1090), "linear" that of Choi & Lui 2018 (Adv. Comput. Math. 44, 87-114) (`doubling`).
"""

import numpy as np
from threadpoolctl import threadpool_limits

from jaxgeodp.checks import InputError
from jaxgeodp.meshes.boundary_newton import gaps, newton_angles
from jaxgeodp.meshes.doubling import fast_angles, linear_angles
from jaxgeodp.meshes.laplacian import Dirichlet, cotangent_laplacian
from jaxgeodp.meshes.mesh import Mesh
from jaxgeodp.meshes.unfolding import unfold

METHODS = ("newton", "fast", "linear")
# The smallest part of its arc length that a boundary edge keeps where a method folds the boundary.
_LEAST = 1e-3


def disk_conformal_map(mesh: Mesh, method: str = "newton") -> np.ndarray:
    """Map a mesh to the unit disk with the smallest change of angles, boundary to circle, no triangle folded.

    Args:
        mesh: a disk of V vertices, at least one of them off the boundary.
        method: "newton" minimises the conformal energy over the places of the boundary and is the most accurate;
            "fast" is the method of Choi & Lui (2015), "linear" that of Choi & Lui (2018).

    Returns:
        Complex places of the vertices, (V,); those of the boundary have absolute value 1. The map is unique up to a
        Moebius map of the disk: `moebius_center` fixes it by two landmarks.

    Raises:
        ValueError: the method is unknown, or triangles are too thin for it.

    Example:
        >>> from jaxgeodp.surfaces import Mesh, disk_conformal_map
        >>> roof = Mesh([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, 1]],
        ...             [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]])
        >>> bool(abs(disk_conformal_map(roof)[4]) < 1e-12)
        True
    """
    return unfold(mesh, folded_conformal_map(mesh, method))


def folded_conformal_map(mesh: Mesh, method: str = "newton") -> np.ndarray:
    """Return `disk_conformal_map` before its folds are removed."""
    if method not in METHODS:
        raise InputError(f"disk_conformal_map: method must be 'newton', 'fast' or 'linear', got {method!r}.")
    if len(mesh.interior) == 0:
        raise InputError(
            "disk_conformal_map: every vertex lies on the boundary; refine the mesh, as a disk needs an interior "
            "vertex."
        )
    # Sparse solves and small eigenproblems are thousands of tiny BLAS calls, which idle threads slow down many times.
    with threadpool_limits(limits=1, user_api="blas"):
        return _map(mesh, method)


def _map(mesh, method):
    laplacian = cotangent_laplacian(mesh)
    problem = Dirichlet(laplacian, mesh.boundary)
    angles = arc_length_angles(mesh)
    if method == "newton":
        angles = newton_angles(problem.schur, angles)
    elif method == "fast":
        angles = _in_order(fast_angles(mesh, laplacian, problem, angles), angles)
    else:
        angles = _in_order(linear_angles(mesh, laplacian), angles)
    return problem.fill(np.exp(1j * angles))


def arc_length_angles(mesh: Mesh) -> np.ndarray:
    """Return boundary angles proportional to arc length, (B,), from 0."""
    lengths = mesh.boundary_lengths
    return 2.0 * np.pi * np.concatenate([[0.0], np.cumsum(lengths)[:-1]]) / lengths.sum()


def _in_order(angles, arc):
    """Make angles increasing, by mixing in as little as needed of the arc-length gaps."""
    steps = np.angle(np.exp(1j * gaps(angles)))
    wanted = gaps(arc)
    turns = steps.sum() / (2.0 * np.pi)
    if round(turns) != 1:
        return arc
    short = steps < _LEAST * wanted
    if not np.any(short):
        return angles[0] + np.concatenate([[0.0], np.cumsum(steps)[:-1]])
    needed = (_LEAST * wanted - steps)[short] / (wanted - steps)[short]
    mixed = steps + needed.max() * (wanted - steps)
    return angles[0] + np.concatenate([[0.0], np.cumsum(mixed)[:-1]])
