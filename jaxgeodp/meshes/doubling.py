"""Conformal boundary angles by reflection: the methods of Choi & Lui (2015) and (2018).

Both use that a conformal map of a disk extends by reflection to two copies of it glued along the boundary. Their
"linear Beltrami solver" with the coefficient of the map from the plane to the surface is the Laplacian of the surface,
so that each step is a harmonic map with some vertices fixed.
"""

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from jaxgeodp.meshes.connectivity import adjacency, boundary_half_edges, half_edges
from jaxgeodp.meshes.distortion import beltrami, planar_angles
from jaxgeodp.meshes.laplacian import Dirichlet
from jaxgeodp.meshes.mesh import Mesh

# Parts of the vertices, around infinity, that stay fixed: in the half-plane, in a reflection, on the sphere.
_FAR_HALF_PLANE = 0.2
_FAR_REFLECTION = 0.01
_FAR_SPHERE = 0.1
_FEWEST_FAR = 100
# Further reflections stop when the distortion falls by less than this part.
_REFLECTIONS = 5
_GAIN = 0.01


def fast_angles(mesh: Mesh, laplacian, boundary_problem: Dirichlet, angles) -> np.ndarray:
    """Return boundary angles by half-plane and reflections (Choi & Lui 2015, "Fast disk conformal parameterization").

    Args:
        mesh: with V vertices and B of them on the boundary.
        laplacian: of the mesh.
        boundary_problem: of the Laplacian, with the boundary fixed.
        angles: where the boundary starts, (B,), increasing.

    Returns:
        (B,), in the order of the boundary, not always increasing.
    """
    disk = _through_half_plane(mesh, laplacian, boundary_problem.fill(np.exp(1j * angles)))
    doubled, copy = _double(mesh, laplacian)
    least = np.inf
    for _ in range(_REFLECTIONS):
        # The centre goes to infinity in the copy; what is far out there stays fixed, and need only be finite.
        places = np.empty(len(copy) + len(mesh.interior), dtype=complex)
        places[copy] = 1.0 / np.conj(_off_zero(disk))
        places[: len(disk)] = disk
        disk = _hold_far(doubled, places, _FAR_REFLECTION)[: len(disk)]
        candidate = np.angle(disk[mesh.boundary] - np.mean(disk))
        disk = boundary_problem.fill(np.exp(1j * candidate))
        distortion = np.mean(np.minimum(np.abs(beltrami(mesh, disk)), 1.0))
        last = not distortion < (1.0 - _GAIN) * least
        if distortion < least:
            angles, least = candidate, distortion
        if last:
            break
    return angles


def linear_angles(mesh: Mesh, laplacian) -> np.ndarray:
    """Return boundary angles by mapping the doubled mesh to the sphere (Choi & Lui 2018, "A linear formulation").

    Unlike the paper's, the map is made round by a linear map of the plane before it goes to the sphere (`_rounded`).

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
    places = places - np.mean(places[mesh.faces[triangle]])
    places = _rounded(laplacian, places)
    places /= np.median(np.abs(places[mesh.boundary]))
    sphere = _to_sphere(_hold_far(doubled, 1.0 / np.conj(_off_zero(places)), _FAR_SPHERE))
    # The seam is a circle of latitude for some pole, the normal of its plane: its angles are those of longitude.
    seam = sphere[mesh.boundary]
    across, along, _ = np.linalg.svd(seam - seam.mean(axis=0), full_matrices=False)[2]
    angles = np.unwrap(np.arctan2(seam @ along, seam @ across))
    return angles if angles[-1] > angles[0] else -angles


def _double(mesh, laplacian):
    """Return the Laplacian of two copies glued at the boundary, and the second copy's vertex numbers in it."""
    count = laplacian.shape[0]
    copy = np.arange(count)
    copy[mesh.interior] = count + np.arange(len(mesh.interior))
    size = count + len(mesh.interior)
    entries = laplacian.tocoo()
    rows = np.concatenate([entries.row, copy[entries.row]])
    columns = np.concatenate([entries.col, copy[entries.col]])
    values = np.concatenate([entries.data, entries.data])
    return sparse.coo_array((values, (rows, columns)), shape=(size, size)).tocsr(), copy


def _through_half_plane(mesh, laplacian, disk):
    """Make the disk map conformal in the half-plane, except near the boundary edge sent to infinity."""
    first, second = _best_boundary_edge(mesh, disk)
    middle = disk[first] + disk[second]
    disk = disk * np.conj(middle) / np.abs(middle)
    plane = 1j * (1.0 + disk) / (1.0 - disk)
    far = np.argsort(-disk.real)[: _far_count(_FAR_HALF_PLANE, len(disk))]
    far = np.setdiff1d(far, mesh.boundary)
    held, straight = np.union1d(far, [first, second]), np.union1d(far, mesh.boundary)
    height = np.where(np.isin(straight, mesh.boundary), 0.0, plane.imag[straight])
    plane = Dirichlet(laplacian, held).fill(plane.real[held]) + 1j * Dirichlet(laplacian, straight).fill(height)
    return (plane - 1j) / (plane + 1j)


def _hold_far(laplacian, places, part):
    """Make the places harmonic, with the outermost part of them fixed."""
    held = np.argsort(np.abs(places))[-_far_count(part, len(places)) :]
    return Dirichlet(laplacian, held).fill(places[held])


def _far_count(part, count):
    return max(min(_FEWEST_FAR, count // 3), round(part * count))


def _off_zero(places):
    return np.where(np.abs(places) < 1e-9, 1e-9, places)


def _best_boundary_edge(mesh, disk):
    """Return the ends of the boundary edge whose triangle has the least distorted angles."""
    half = boundary_half_edges(mesh.faces)
    change = np.abs(planar_angles(mesh, disk) - mesh.angles).sum(axis=1)
    return half_edges(mesh.faces)[half[np.argmin(change[half // 3])]]


def _inner_regular_triangle(mesh):
    """Return the triangle nearest to equilateral among those far from the boundary."""
    graph = adjacency(mesh.faces, len(mesh.vertices))
    depth = csgraph.dijkstra(graph, unweighted=True, indices=mesh.boundary, min_only=True)[mesh.faces].min(axis=1)
    deep = np.flatnonzero(depth >= 0.5 * depth.max())
    return deep[np.argmin(np.abs(mesh.angles[deep] - np.pi / 3.0).sum(axis=1))]


def _around_triangle(mesh, doubled, copy, triangle):
    """Map the double harmonically to the plane, with one triangle of the copy fixed in shape."""
    corners = mesh.faces[triangle]
    side = mesh.vertices[np.roll(corners, -1)] - mesh.vertices[corners]
    long, short = np.linalg.norm(side[0]), np.linalg.norm(side[2])
    shape = np.array([0.0, 1.0, short / long * np.exp(1j * mesh.angles[triangle, 0])])
    return Dirichlet(doubled, copy[corners]).fill(shape)


def _rounded(laplacian, places):
    """Apply the linear map of the plane that makes the first copy as conformal as possible.

    Far from the triangle its surroundings act as a dipole A/w + B/conj(w); irregular ones make B as large as A/3, and
    nothing later would undo it.
    """
    plane = np.stack([places.real, places.imag])
    sheet = plane[:, : laplacian.shape[0]]
    values, axes = np.linalg.eigh(sheet @ (laplacian @ sheet.T))
    plane = (axes / np.sqrt(values)) @ axes.T @ plane
    return plane[0] + 1j * plane[1]


def _to_sphere(places):
    square = np.abs(places) ** 2
    return np.stack([2.0 * places.real, 2.0 * places.imag, square - 1.0], axis=1) / (1.0 + square)[:, None]
