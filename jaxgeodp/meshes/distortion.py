"""Distortion of a map of a mesh into the plane: angles, folds and the Beltrami coefficient."""

import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.meshes.mesh import Mesh


def angle_distortion(mesh: Mesh, z) -> float:
    """Return the mean over corners of |planar angle - surface angle|, in degrees.

    Args:
        mesh: with V vertices.
        z: complex places of the vertices, (V,).

    Raises:
        ValueError: z has another shape.
    """
    return float(np.degrees(np.mean(np.abs(planar_angles(mesh, z) - mesh.angles))))


def flips(mesh: Mesh, z) -> np.ndarray:
    """Return the numbers of the folded triangles: those without positive area in the plane.

    Args:
        mesh: with V vertices.
        z: complex places of the vertices, (V,).

    Returns:
        Integers, as many as there are such triangles; none where the map is one to one.

    Raises:
        ValueError: z has another shape.
    """
    corners = _places(mesh, z)[mesh.faces]
    doubled = np.imag(np.conj(corners[:, 1] - corners[:, 0]) * (corners[:, 2] - corners[:, 0]))
    return np.flatnonzero(~(doubled > 0))


def beltrami(mesh: Mesh, z) -> np.ndarray:
    """Return the Beltrami coefficient mu = f_wbar/f_w of each triangle, complex (F,).

    w is a coordinate of the triangle's plane with the first edge along the real axis. |mu| is 0 where the map is
    conformal, below 1 where it keeps the orientation, and (|mu| + 1)/||mu| - 1| is the ratio of its stretchings.

    Args:
        mesh: with V vertices and F triangles.
        z: complex places of the vertices, (V,).

    Raises:
        ValueError: z has another shape.
    """
    lengths = _side_lengths(mesh)
    angle = mesh.angles[:, 0]
    flat = np.stack([np.zeros(len(angle)), lengths[:, 0], lengths[:, 2] * np.exp(1j * angle)], axis=1)
    opposite = np.roll(flat, -2, axis=1) - np.roll(flat, -1, axis=1)
    values = _places(mesh, z)[mesh.faces]
    # The gradient of a corner's hat function is i times the opposite edge over twice the area.
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.sum(values * opposite, axis=1) / np.sum(values * np.conj(opposite), axis=1)


def planar_angles(mesh: Mesh, z) -> np.ndarray:
    """Return unsigned angles at the corners in the plane, in radians, (F, 3)."""
    corners = _places(mesh, z)[mesh.faces]
    turn = np.conj(np.roll(corners, -1, axis=1) - corners) * (np.roll(corners, 1, axis=1) - corners)
    return np.abs(np.angle(turn))


def _side_lengths(mesh):
    """Return the distance from each corner to the next, (F, 3)."""
    corners = mesh.vertices[mesh.faces]
    return np.linalg.norm(np.roll(corners, -1, axis=1) - corners, axis=2)


def _places(mesh, z):
    z = np.asarray(z)
    if z.shape != (len(mesh.vertices),):
        raise InputError(f"z must hold a complex number for each of {len(mesh.vertices)} vertices, got {z.shape}.")
    return z
