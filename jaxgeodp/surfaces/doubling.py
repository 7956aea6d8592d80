"""Conformal boundary angles by reflection, without iteration: the methods of Choi & Lui (2015) and (2018).

Both use that a conformal map of a disk extends by reflection to two copies of it glued along the boundary. Their
"linear Beltrami solver" with the coefficient of the map from the plane to the surface is the Laplacian of the surface,
so that each step is a harmonic map with some vertices fixed.
"""

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from jaxgeodp.surfaces import connectivity
from jaxgeodp.surfaces.distortion import planar_angles
from jaxgeodp.surfaces.laplacian import Dirichlet
from jaxgeodp.surfaces.mesh import Mesh

# The part of all vertices around infinity that stays fixed.
_FAR = 0.1


def fast_angles(mesh: Mesh, laplacian, harmonic) -> np.ndarray:
    """Boundary angles by the half-plane and one reflection (Choi & Lui 2015, "Fast disk conformal parameterization").

    Args:
        mesh: with V vertices and B of them on the boundary.
        laplacian: of the mesh.
        harmonic: a harmonic map onto the unit disk, (V,).

    Returns:
        (B,), in the order of the boundary, not always increasing.
    """
    first, second, apex = _best_boundary_triangle(mesh, harmonic)
    middle = harmonic[first] + harmonic[second]
    disk = harmonic * np.conj(middle) / np.abs(middle)
    # The edge goes to infinity. Its triangle covers the rest of the half-plane and stays where it is.
    plane = 1j * (1.0 + disk) / (1.0 - disk)
    held = np.unique([first, second, apex])
    straight = np.union1d(mesh.boundary, apex)
    x = Dirichlet(laplacian, held).fill(plane.real[held])
    y = Dirichlet(laplacian, straight).fill(np.where(np.isin(straight, mesh.boundary), 0.0, plane.imag[straight]))
    plane = x + 1j * y
    disk = (plane - 1j) / (plane + 1j)
    doubled, copy = _double(mesh, laplacian)
    # The centre goes to infinity in the copy; what is far out there stays fixed, and need only be finite.
    sheet = np.where(np.abs(disk) < 1e-9, 1e-9, disk)
    places = np.empty(doubled.shape[0], dtype=complex)
    places[copy] = 1.0 / np.conj(sheet)
    places[: len(disk)] = disk
    return np.angle(_hold_far(doubled, places)[mesh.boundary])


def linear_angles(mesh: Mesh, laplacian) -> np.ndarray:
    """Boundary angles by a map of the doubled mesh to the sphere (Choi & Lui 2018, "A linear formulation").

    Args:
        mesh: with B boundary vertices.
        laplacian: of the mesh.

    Returns:
        (B,), in the order of the boundary, not always increasing.
    """
    doubled, copy = _double(mesh, laplacian)
    triangle = _inner_regular_triangle(mesh)
    places = _around_triangle(mesh, doubled, copy, triangle)
    # Seen from the other pole: the triangle of the copy surrounds 0, and its mirror image infinity.
    center = np.mean(places[mesh.faces[triangle]])
    places = places - center
    places /= np.median(np.abs(places[mesh.boundary]))
    places = np.where(np.abs(places) < 1e-9, 1e-9, places)
    sphere = _to_sphere(_hold_far(doubled, 1.0 / np.conj(places)))
    seam = sphere[mesh.boundary]
    middle = seam.mean(axis=0)
    across, along, normal = np.linalg.svd(seam - middle, full_matrices=False)[2]
    angles = np.unwrap(np.arctan2((seam - middle) @ along, (seam - middle) @ across))
    inside = sphere[mesh.interior].mean(axis=0) - middle
    # Counter-clockwise seen from above, when the disk is the lower cap and the map to the sphere turns it over.
    del inside, normal
    return angles if angles[-1] > angles[0] else -angles


def _double(mesh, laplacian):
    """The Laplacian of two copies glued along the boundary, and the number in it of each vertex of the second copy."""
    count = laplacian.shape[0]
    copy = np.arange(count)
    copy[mesh.interior] = count + np.arange(len(mesh.interior))
    size = count + len(mesh.interior)
    entries = laplacian.tocoo()
    rows = np.concatenate([entries.row, copy[entries.row]])
    columns = np.concatenate([entries.col, copy[entries.col]])
    values = np.concatenate([entries.data, entries.data])
    return sparse.coo_array((values, (rows, columns)), shape=(size, size)).tocsr(), copy


def _hold_far(laplacian, places):
    """Places made harmonic, the outermost fixed."""
    held = np.argsort(np.abs(places))[-max(3, round(_FAR * len(places))) :]
    return Dirichlet(laplacian, held).fill(places[held])


def _best_boundary_triangle(mesh, disk):
    """Ends of the boundary edge, and third corner, of the boundary triangle with the least distorted angles."""
    half = connectivity.boundary_half_edges(mesh.faces)
    change = np.abs(planar_angles(mesh, disk) - mesh.angles).sum(axis=1)
    best = half[np.argmin(change[half // 3])]
    triangle, corner = mesh.faces[best // 3], best % 3
    return triangle[corner], triangle[(corner + 1) % 3], triangle[(corner + 2) % 3]


def _inner_regular_triangle(mesh):
    """The triangle nearest to equilateral among those far from the boundary."""
    graph = connectivity.adjacency(mesh.faces, len(mesh.vertices))
    depth = csgraph.dijkstra(graph, unweighted=True, indices=mesh.boundary, min_only=True)[mesh.faces].min(axis=1)
    deep = np.flatnonzero(depth >= 0.5 * depth.max())
    return deep[np.argmin(np.abs(mesh.angles[deep] - np.pi / 3.0).sum(axis=1))]


def _around_triangle(mesh, doubled, copy, triangle):
    """The double made harmonic in the plane around one triangle of the copy, which keeps its shape."""
    corners = mesh.faces[triangle]
    side = mesh.vertices[np.roll(corners, -1)] - mesh.vertices[corners]
    long, short = np.linalg.norm(side[0]), np.linalg.norm(side[2])
    shape = np.array([0.0, 1.0, short / long * np.exp(1j * mesh.angles[triangle, 0])])
    return Dirichlet(doubled, copy[corners]).fill(shape)


def _to_sphere(places):
    square = np.abs(places) ** 2
    return np.stack([2.0 * places.real, 2.0 * places.imag, square - 1.0], axis=1) / (1.0 + square)[:, None]
