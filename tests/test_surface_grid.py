"""Locator against brute force, exact interpolation, curves on known surfaces."""

import numpy as np
import pytest
from scipy.spatial import Delaunay

from jaxgeodp.checks import InputError
from jaxgeodp.faces.pictures import surface_from_curves
from jaxgeodp.meshes.grid import (
    DiskLocator,
    curve_points,
    polar_faces,
    polar_grid,
    polar_points,
    radial_curves,
    surface_from_grid,
)


def disk_mesh(count=300, rim=60, seed=0):
    """Random points of the disk, a rim on the circle at uneven angles, and anticlockwise triangles."""
    rng = np.random.default_rng(seed)
    inner = 0.93 * np.sqrt(rng.uniform(size=count)) * np.exp(2j * np.pi * rng.uniform(size=count))
    angles = 2.0 * np.pi * (np.arange(rim) + 0.3 * rng.uniform(-1, 1, rim)) / rim
    z = np.append(inner, np.exp(1j * angles))
    faces = Delaunay(np.stack([z.real, z.imag], axis=1)).simplices
    a, b, c = z[faces].T
    clockwise = ((b - a).conj() * (c - a)).imag < 0
    faces[clockwise] = faces[clockwise][:, ::-1]
    return z, faces


def with_flip(z, faces):
    """The same triangles after one inner vertex has jumped over the opposite edge of one of its triangles."""
    z = z.copy()
    moved = np.argmin(np.abs(z - 0.2))
    face = faces[np.flatnonzero(np.any(faces == moved, axis=1))[0]]
    others = face[face != moved]
    z[moved] += 1.3 * (z[others].mean() - z[moved])
    return z, faces


def brute_force(z, faces, point):
    """Vertices and weights of an upright triangle around the point, by trying all of them; None if there is none."""
    a, b, c = z[faces].T
    doubled = ((b - a).conj() * (c - a)).imag
    second = ((point - a).conj() * (c - a)).imag / doubled
    third = ((b - a).conj() * (point - a)).imag / doubled
    depth = np.minimum(np.minimum(second, third), 1.0 - second - third)
    best = np.argmax(np.where(doubled > 0, depth, -np.inf))
    if depth[best] < -1e-12:
        return None
    return faces[best], np.array([1.0 - second[best] - third[best], second[best], third[best]])


def random_points(count, seed=1, reach=0.98):
    rng = np.random.default_rng(seed)
    return reach * np.sqrt(rng.uniform(size=count)) * np.exp(2j * np.pi * rng.uniform(size=count))


@pytest.mark.parametrize("flip", [False, True])
def test_locator_finds_what_brute_force_finds(flip):
    z, faces = disk_mesh()
    if flip:
        z, faces = with_flip(z, faces)
        a, b, c = z[faces].T
        assert np.sum(((b - a).conj() * (c - a)).imag < 0) >= 1
    points = random_points(2000)
    points[:200] = z[np.argmin(np.abs(z - 0.2))] + 0.1 * random_points(200, seed=3)
    vertices, weights = DiskLocator(faces, z).locate(points)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)
    assert weights.min() > -1e-9
    np.testing.assert_allclose(np.sum(weights * z[vertices], axis=1), points, atol=1e-9)
    several = 0
    for point, corners, weight in zip(points, vertices, weights, strict=True):
        chosen = z[corners]
        upright = ((chosen[1] - chosen[0]).conj() * (chosen[2] - chosen[0])).imag > 0
        assert upright
        expected = brute_force(z, faces, point)
        if not flip:
            by_vertex = dict(zip(expected[0].tolist(), expected[1], strict=True))
            got = {v: w for v, w in zip(corners.tolist(), weight, strict=True) if w > 1e-9}
            assert all(abs(by_vertex.get(v, 0.0) - w) < 1e-8 for v, w in got.items())
        several += expected is not None
    assert several == len(points)


def test_interpolation_is_exact_for_linear_functions():
    z, faces = disk_mesh()
    values = np.stack([2.0 * z.real - z.imag + 0.5, z.imag], axis=1)
    points = random_points(1000)
    found = DiskLocator(faces, z).sample(values, points)
    np.testing.assert_allclose(found[:, 0], 2.0 * points.real - points.imag + 0.5, atol=1e-10)
    np.testing.assert_allclose(found[:, 1], points.imag, atol=1e-10)


def test_points_between_rim_and_circle_take_the_rim_at_their_angle():
    z, faces = disk_mesh(rim=12)
    angles = np.angle(z[-12:])
    order = np.argsort(angles)
    low, high = angles[order[3]], angles[order[4]]
    values = np.zeros(len(z))
    values[len(z) - 12 + order[4]] = 1.0
    locator = DiskLocator(faces, z)
    for share in (0.1, 0.5, 0.8):
        point = np.exp(1j * ((1 - share) * low + share * high))
        assert locator.sample(values, np.array([point]))[0] == pytest.approx(share, abs=1e-9)
        # Just inside the circle, still outside the polygon.
        assert locator.sample(values, np.array([point * (1 - 1e-4)]))[0] == pytest.approx(share, abs=1e-9)
    # A vertex of the rim itself, and the circle across the angle 0.
    np.testing.assert_allclose(locator.sample(z.real, z[-12:]), z[-12:].real, atol=1e-9)
    assert np.all(np.isfinite(locator.sample(values, np.exp(1j * np.linspace(-7, 7, 101)))))


def test_the_order_of_corners_does_not_matter():
    z, faces = disk_mesh()
    points = random_points(300)
    values = np.abs(z) ** 2
    np.testing.assert_allclose(
        DiskLocator(faces, z).sample(values, points), DiskLocator(faces[:, ::-1], z).sample(values, points), atol=1e-9
    )


def test_degenerate_triangles_are_never_chosen():
    z, faces = disk_mesh()
    faces = np.concatenate([faces, [[0, 0, 1], [2, 2, 2], [0, 0, 1]]])
    found = DiskLocator(faces, z).sample(z.real, random_points(500))
    np.testing.assert_allclose(found, random_points(500).real, atol=1e-9)


def dome(z):
    return np.stack([z.real, z.imag, 1.0 - np.abs(z) ** 2], axis=-1)


def test_polar_grid_and_curves_of_a_known_surface():
    z, faces = disk_mesh(count=6000, rim=400)
    vertices = dome(z)
    grid = polar_grid(vertices, faces, z, 12, 40)
    assert grid.shape == (12, 40, 3)
    np.testing.assert_allclose(grid, dome(polar_points(12, 40)), atol=4e-3)
    curves = radial_curves(vertices, faces, z, 7, 33)
    assert curves.shape == (7, 33, 3)
    np.testing.assert_allclose(curves, dome(curve_points(7, 33)), atol=4e-3)
    # First sample at the angle 0, the second anticlockwise of it, the last curve on the boundary.
    assert abs(curves[-1, 0, 0] - 1.0) < 1e-4
    assert curves[-1, 1, 1] > 0.1


def test_curves_of_a_plane_are_exact():
    z, faces = disk_mesh(rim=240)
    plane = np.stack([z.real, z.imag, 2.0 * z.real + 3.0 * z.imag], axis=1)
    curves = radial_curves(plane, faces, z, 6, 24)
    np.testing.assert_allclose(curves[:-1, :, 2], 2.0 * curves[:-1, :, 0] + 3.0 * curves[:-1, :, 1], atol=1e-10)
    points = curve_points(6, 24)[:-1]
    np.testing.assert_allclose(curves[:-1, :, 0] + 1j * curves[:-1, :, 1], points, atol=1e-10)


@pytest.mark.parametrize("samples", [40, 41])
def test_a_surface_from_curves_fills_its_centre(samples):
    vertices, faces = surface_from_curves(dome(curve_points(10, samples)), refine=3)
    np.testing.assert_allclose(vertices[0], [0.0, 0.0, 1.0], atol=1e-4)
    np.testing.assert_allclose(vertices[:, 2], 1.0 - vertices[:, 0] ** 2 - vertices[:, 1] ** 2, atol=1e-3)
    assert faces.max() == len(vertices) - 1
    grid_vertices, _ = surface_from_grid(dome(polar_points(10, 40)))
    np.testing.assert_allclose(grid_vertices[0], [0.0, 0.0, 1.0], atol=1e-3)


def test_polar_faces_are_an_oriented_disk():
    faces = polar_faces(5, 12)
    points = np.append(0.0, (np.arange(1, 6)[:, None] * np.exp(2j * np.pi * np.arange(12) / 12)).reshape(-1))
    a, b, c = points[faces].T
    assert np.all(((b - a).conj() * (c - a)).imag > 0)
    edges = np.unique(np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    assert len(points) - len(edges) + len(faces) == 1


def test_wrong_calls_are_refused():
    z, faces = disk_mesh()
    with pytest.raises(InputError, match="unit circle"):
        DiskLocator(faces, 0.9 * z)
    with pytest.raises(InputError, match="must refer to"):
        DiskLocator(faces, z[:-1])
    with pytest.raises(InputError, match="finite"):
        DiskLocator(faces, np.where(np.arange(len(z)) == 3, np.nan, z))
    with pytest.raises(InputError, match="finite"):
        DiskLocator(faces, z).locate(np.array([np.nan + 0j]))
    with pytest.raises(InputError, match="one row"):
        DiskLocator(faces, z).sample(np.zeros(3), random_points(2))
    with pytest.raises(InputError, match="even"):
        polar_points(10, 41)
    with pytest.raises(InputError, match="shape"):
        surface_from_curves(np.zeros((3, 4)))
