"""Conformal maps onto the disk: exact cases, the Newton energy, folds, Moebius maps, and public faces."""

import os
from pathlib import Path

import numpy as np
import pytest
from meshes import bent_disk, flat_disk, spherical_cap
from threadpoolctl import threadpool_limits

from jaxgeodp.checks import InputError
from jaxgeodp.meshes import boundary_newton, conformal, unfolding
from jaxgeodp.meshes.conformal import METHODS, arc_length_angles, disk_conformal_map
from jaxgeodp.meshes.distortion import angle_distortion, beltrami, flips
from jaxgeodp.meshes.laplacian import Dirichlet, cotangent_laplacian
from jaxgeodp.meshes.mesh import Mesh
from jaxgeodp.meshes.moebius import moebius_center

every_method = pytest.mark.parametrize("method", METHODS)


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """As in `disk_conformal_map`: small matrices, and other tests run beside."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield


def moebius(z, a, turn=1.0):
    return np.exp(1j * turn) * (z - a) / (1 - np.conj(a) * z)


# The Laplacian --------------------------------------------------------------------------------------------------


def test_laplacian_is_symmetric_with_rows_of_sum_zero():
    matrix = cotangent_laplacian(Mesh(*bent_disk(6))).toarray()
    np.testing.assert_array_equal(matrix, matrix.T)
    np.testing.assert_allclose(matrix.sum(axis=1), 0.0, atol=1e-12)
    # Semidefinite, and 0 for constants alone.
    values = np.linalg.eigvalsh(matrix)
    assert abs(values[0]) < 1e-12 < 1e-3 < values[1]


def test_laplacian_by_hand():
    mesh = Mesh([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]])
    expected = [[1, -0.5, 0, -0.5], [-0.5, 1, -0.5, 0], [0, -0.5, 1, -0.5], [-0.5, 0, -0.5, 1]]
    np.testing.assert_allclose(cotangent_laplacian(mesh).toarray(), expected, atol=1e-15)


def test_negative_cotangents_are_kept():
    # An edge between angles whose sum exceeds pi has a positive entry; Delaunay triangles, stretched, have such edges.
    vertices, faces = flat_disk(8, jitter=0.45)
    entries = cotangent_laplacian(Mesh(vertices * [4.0, 1.0, 1.0], faces)).toarray()
    np.fill_diagonal(entries, 0.0)
    assert entries.max() > 0.1


def test_dirichlet_energy_of_linear_functions_is_the_area():
    mesh = Mesh(*flat_disk(7, jitter=0.4))
    laplacian = cotangent_laplacian(mesh)
    for slope in ([1.0, 0.0], [0.6, -0.8]):
        u = mesh.vertices[:, :2] @ slope
        assert u @ laplacian @ u == pytest.approx(mesh.area, rel=1e-12)
        # Harmonic inside, as linear functions are.
        np.testing.assert_allclose((laplacian @ u)[mesh.interior], 0.0, atol=1e-12)


def test_harmonic_functions_and_schur_complement():
    mesh = Mesh(*bent_disk(6))
    laplacian = cotangent_laplacian(mesh)
    problem = Dirichlet(laplacian, mesh.boundary)
    values = np.random.default_rng(0).normal(size=(2, len(mesh.boundary)))
    u = problem.fill(values[0] + 1j * values[1])
    np.testing.assert_array_equal(u[mesh.boundary], values[0] + 1j * values[1])
    np.testing.assert_allclose((laplacian @ u)[mesh.interior], 0.0, atol=1e-11)
    np.testing.assert_allclose(problem.fill(values[1]), u.imag, atol=1e-12)
    assert values[0] @ problem.schur @ values[0] == pytest.approx(u.real @ laplacian @ u.real, rel=1e-10)


@pytest.mark.parametrize("rings", [2, 6])
def test_schur_complement_by_elimination_is_that_by_solves(monkeypatch, rings):
    mesh = Mesh(*bent_disk(rings))
    eliminated = Dirichlet(cotangent_laplacian(mesh), mesh.boundary)
    assert eliminated._last_block() is not None
    monkeypatch.setattr("jaxgeodp.meshes.laplacian._COLUMNS", 5)
    monkeypatch.setattr(Dirichlet, "_last_block", lambda _: None)
    solved = Dirichlet(cotangent_laplacian(mesh), mesh.boundary)
    np.testing.assert_allclose(eliminated.schur, solved.schur, atol=1e-13)


# The Newton energy ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def boundary_problem():
    mesh = Mesh(*bent_disk(5))
    angles = arc_length_angles(mesh) + 0.05 * np.random.default_rng(1).uniform(-1, 1, len(mesh.boundary))
    return mesh, Dirichlet(cotangent_laplacian(mesh), mesh.boundary), angles


def test_energy_is_dirichlet_energy_minus_area(boundary_problem):
    mesh, problem, angles = boundary_problem
    z = problem.fill(np.exp(1j * angles))
    laplacian = cotangent_laplacian(mesh)
    dirichlet = 0.5 * (np.conj(z) @ laplacian @ z).real
    loop = z[mesh.boundary]
    area = 0.5 * np.sum((np.conj(loop) * np.roll(loop, -1)).imag)
    assert boundary_newton.energy(problem.schur, angles) == pytest.approx(dirichlet - area, abs=1e-12)


@pytest.mark.parametrize("weight", [0.0, 0.02])
def test_gradient_and_hessian_against_finite_differences(boundary_problem, weight):
    _, problem, angles = boundary_problem
    step = 1e-5
    shifts = step * np.eye(len(angles))

    def slope(function):
        ahead = np.array([function(problem.schur, angles + shift, weight) for shift in shifts])
        behind = np.array([function(problem.schur, angles - shift, weight) for shift in shifts])
        return (ahead - behind) / (2 * step)

    gradient = boundary_newton.gradient(problem.schur, angles, weight)
    assert np.abs(gradient).max() > 0.01
    np.testing.assert_allclose(slope(boundary_newton.energy), gradient, atol=1e-8)
    hessian = boundary_newton.hessian(problem.schur, angles, weight)
    np.testing.assert_allclose(slope(boundary_newton.gradient), hessian, atol=1e-7)


def test_newton_ends_in_few_steps_at_a_lower_energy(boundary_problem):
    _, problem, angles = boundary_problem
    log = []
    found = boundary_newton.newton_angles(problem.schur, angles, monitor=lambda *state: log.append(state))
    energies, slopes, weights = np.array(log).T
    assert len(log) <= 7 and slopes[-1] < 1e-9 < slopes[0] and np.all(weights == 0)
    assert np.all(np.diff(energies) < 1e-13) and 0 <= energies[-1] < 0.5 * energies[0]
    gaps = boundary_newton.gaps(found)
    assert np.all(gaps > 0) and gaps.sum() == pytest.approx(2 * np.pi)
    # The last step is quadratic.
    assert slopes[-1] < 10 * slopes[-2] ** 1.5


def test_newton_from_far_away_finds_the_same_map_up_to_moebius():
    """In the limit of fine meshes: on a mesh, Moebius maps change the energy a little."""
    differences = []
    for rings in (6, 18):
        mesh = Mesh(*bent_disk(rings))
        problem = Dirichlet(cotangent_laplacian(mesh), mesh.boundary)
        angles = arc_length_angles(mesh)
        near, far = (
            problem.fill(np.exp(1j * boundary_newton.newton_angles(problem.schur, start)))
            for start in (angles, angles + 0.6 * np.sin(angles))
        )
        assert np.abs(far - near).max() > 0.2
        differences.append(np.abs(moebius_center(far, 0, 5) - moebius_center(near, 0, 5)).max())
    assert differences[0] < 0.05 and differences[1] < 0.3 * differences[0]


def test_barrier_keeps_angles_in_order_on_a_rough_boundary():
    vertices, faces = bent_disk(20)
    mesh = Mesh(vertices + 0.05 * np.random.default_rng(0).normal(size=vertices.shape), faces)
    schur = Dirichlet(cotangent_laplacian(mesh), mesh.boundary).schur
    log = []
    angles = boundary_newton.newton_angles(schur, arc_length_angles(mesh), monitor=lambda *state: log.append(state))
    _, slopes, weights = np.array(log).T
    assert slopes[weights == 0].min() > 1e-3, "the mesh is too smooth to need the barrier"
    assert slopes[-1] < 1e-9 and weights[-1] > 0
    assert boundary_newton.gaps(angles).min() > 0
    newton, fast = (angle_distortion(mesh, disk_conformal_map(mesh, method)) for method in ("newton", "fast"))
    assert newton < 1.1 * fast


def test_newton_says_when_it_fails(boundary_problem, monkeypatch):
    _, problem, angles = boundary_problem
    monkeypatch.setattr(boundary_newton, "STEPS", 1)
    with pytest.raises(InputError, match=r"found no conformal boundary.*method='linear'"):
        boundary_newton.newton_angles(problem.schur, angles)


# The maps -------------------------------------------------------------------------------------------------------


@every_method
def test_flat_disk_maps_to_itself(method):
    vertices, faces = flat_disk(12, jitter=0.3)
    mesh = Mesh(vertices, faces)
    z = disk_conformal_map(mesh, method)
    truth = vertices[:, 0] + 1j * vertices[:, 1]
    tolerance = {"newton": 1e-9, "fast": 5e-3, "linear": 5e-3}[method]
    np.testing.assert_allclose(moebius_center(z, 0, 1), moebius_center(truth, 0, 1), atol=tolerance)
    assert angle_distortion(mesh, z) < 100 * tolerance


@every_method
def test_spherical_cap_maps_stereographically(method):
    errors = []
    for rings in (12, 24, 48):
        vertices, faces, truth = spherical_cap(rings)
        z = disk_conformal_map(Mesh(vertices, faces), method)
        up = len(vertices) - 6 * rings + rings
        errors.append(np.abs(moebius_center(z, 0, up) - moebius_center(truth, 0, up)).max())
    rate = {"newton": 3.0, "fast": 1.5, "linear": 1.5}[method]
    assert errors[0] < 5e-3
    assert errors[1] < errors[0] / rate and errors[2] < errors[1] / rate


@every_method
def test_map_of_a_bent_disk(method):
    mesh = Mesh(*bent_disk(16))
    z = disk_conformal_map(mesh, method)
    np.testing.assert_allclose(np.abs(z[mesh.boundary]), 1.0, atol=1e-12)
    assert np.all(np.abs(z[mesh.interior]) < 1.0)
    assert len(flips(mesh, z)) == 0
    # Fixing the boundary by arc length alone is clearly worse.
    harmonic = Dirichlet(cotangent_laplacian(mesh), mesh.boundary).fill(np.exp(1j * arc_length_angles(mesh)))
    assert angle_distortion(mesh, z) < 0.75 * angle_distortion(mesh, harmonic)


@every_method
def test_map_depends_on_shape_alone(method):
    """Turned, moved, scaled, with other vertex numbers: the same map up to a Moebius map."""
    vertices, faces = bent_disk(10)
    random = np.random.default_rng(2)
    z = moebius_center(disk_conformal_map(Mesh(vertices, faces), method), 0, 3)
    axes = np.linalg.qr(random.normal(size=(3, 3)))[0]
    axes *= np.sign(np.linalg.det(axes))
    same = disk_conformal_map(Mesh(37.0 * vertices @ axes.T + [5.0, -8.0, 2.0], faces), method)
    np.testing.assert_allclose(moebius_center(same, 0, 3), z, atol=1e-7)
    order = random.permutation(len(vertices))
    mesh = Mesh(vertices[np.argsort(order)], order[faces])
    renumbered = moebius_center(disk_conformal_map(mesh, method)[order], 0, 3)
    np.testing.assert_allclose(renumbered, z, atol={"newton": 1e-3}.get(method, 1e-6))


def test_unknown_method_and_mesh_without_inner_vertex():
    with pytest.raises(InputError, match="'newton', 'fast' or 'linear', got 'slow'"):
        disk_conformal_map(Mesh(*flat_disk(2)), "slow")
    with pytest.raises(InputError, match="every vertex lies on the boundary"):
        disk_conformal_map(Mesh(np.eye(3), [[0, 1, 2]]))


def test_boundary_out_of_order_is_put_in_order():
    arc = np.linspace(0, 2 * np.pi, 9)[:-1]
    folded = arc.copy()
    folded[3] = folded[2] - 0.1
    mended = conformal._in_order(folded, arc)
    assert boundary_newton.gaps(mended).min() > 0
    kept = arc + 0.1 * np.sin(arc)
    np.testing.assert_allclose(conformal._in_order(np.angle(np.exp(1j * kept)), arc), kept, atol=1e-12)


# Folds ----------------------------------------------------------------------------------------------------------


def test_folds_are_removed_near_them_only():
    vertices, faces = flat_disk(10, jitter=0.2)
    mesh = Mesh(vertices, faces)
    z = vertices[:, 0] + 1j * vertices[:, 1]
    folded = z.copy()
    folded[60] += 0.15
    assert len(flips(mesh, folded)) > 0
    found = unfolding.unfold(mesh, folded)
    assert len(flips(mesh, found)) == 0
    moved = np.flatnonzero(found != folded)
    assert 60 in moved and len(moved) < 60
    np.testing.assert_array_equal(found[mesh.boundary], folded[mesh.boundary])


def test_folds_everywhere_are_removed():
    mesh = Mesh(*bent_disk(8))
    z = 0.5 * np.random.default_rng(0).normal(size=(len(mesh.vertices), 2)) @ [1, 1j]
    z[mesh.boundary] = np.exp(1j * arc_length_angles(mesh))
    assert len(flips(mesh, z)) > 50
    assert len(flips(mesh, unfolding.unfold(mesh, z))) == 0


def test_map_without_folds_stays_as_it_is():
    mesh = Mesh(*flat_disk(5))
    z = mesh.vertices[:, 0] + 1j * mesh.vertices[:, 1]
    np.testing.assert_array_equal(unfolding.unfold(mesh, z), z)


def test_folds_that_cannot_be_removed_are_named():
    mesh = Mesh(*flat_disk(5))
    z = mesh.vertices[:, 0] - 1j * mesh.vertices[:, 1]
    with pytest.raises(InputError, match=r"triangle \d+ stays folded"):
        unfolding.unfold(mesh, z)


@every_method
def test_mesh_whose_harmonic_map_folds(method, monkeypatch):
    vertices, faces = bent_disk(14)
    rough = np.abs(vertices[:, 0]) < 0.4
    vertices[:, 2] += rough / 14 * np.random.default_rng(0).normal(size=len(vertices))
    mesh = Mesh(vertices, faces)
    assert len(flips(mesh, disk_conformal_map(mesh, method))) == 0
    monkeypatch.setattr(conformal, "unfold", lambda mesh, z: z)
    assert len(flips(mesh, disk_conformal_map(mesh, method))) > 0


# Quality --------------------------------------------------------------------------------------------------------


def test_angle_distortion_of_a_stretched_square():
    mesh = Mesh([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]])
    z = np.array([0, np.sqrt(3), np.sqrt(3) + 1j, 1j])
    # 90, 45, 45 degrees become 90, 30, 60.
    assert angle_distortion(mesh, z) == pytest.approx(10.0, rel=1e-12)
    assert angle_distortion(mesh, (2 - 1j) * mesh.vertices @ [1, 1j, 0]) == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(InputError, match="for each of 4 vertices"):
        angle_distortion(mesh, z[:3])


def test_beltrami_coefficient_of_an_affine_map():
    mesh = Mesh(*flat_disk(5, jitter=0.3))
    w = mesh.vertices @ [1, 1j, 0]
    a, b = 1.3 - 0.4j, 0.2 + 0.5j
    first = w[mesh.faces[:, 1]] - w[mesh.faces[:, 0]]
    turn = first / np.abs(first)
    # In a frame turned by t: f = a t u + b conj(t u).
    np.testing.assert_allclose(beltrami(mesh, a * w + b * np.conj(w)), b * np.conj(turn) / (a * turn), atol=1e-12)
    np.testing.assert_allclose(np.abs(beltrami(mesh, b * w + a * np.conj(w))), abs(a / b), rtol=1e-9)


def test_flips_are_the_triangles_turned_over():
    mesh = Mesh(*flat_disk(4))
    w = mesh.vertices @ [1, 1j, 0]
    assert len(flips(mesh, w)) == 0
    np.testing.assert_array_equal(flips(mesh, np.conj(w)), np.arange(len(mesh.faces)))
    w[mesh.faces[5]] = 0.0
    assert 5 in flips(mesh, w)


# Moebius maps ---------------------------------------------------------------------------------------------------


def test_moebius_center_puts_landmarks_in_place():
    random = np.random.default_rng(3)
    z = np.sqrt(random.uniform(size=50)) * np.exp(2j * np.pi * random.uniform(size=50))
    z[:10] /= np.abs(z[:10])
    w = moebius_center(z, 20, 30)
    assert w[20] == 0
    assert abs(w[30].real) < 1e-15 and w[30].imag > 0
    np.testing.assert_allclose(np.abs(w[:10]), 1.0)
    # It is a Moebius map: cross ratios stay.
    ratios = [(p[11] - p[12]) * (p[13] - p[14]) / ((p[11] - p[14]) * (p[13] - p[12])) for p in (z, w)]
    assert ratios[0] == pytest.approx(ratios[1])
    # And forgets any Moebius map before.
    np.testing.assert_allclose(moebius_center(moebius(z, 0.5 - 0.3j, 2.0), 20, 30), w, atol=1e-13)


@pytest.mark.parametrize(
    ("nose", "up", "sentence"),
    [
        (5, 2, "nose must be a vertex number from 0 to 4, got 5"),
        (0, -1, "up must be a vertex number from 0 to 4, got -1"),
        (0.5, 1, "nose must be a vertex number"),
        (3, 3, "coincide"),
        (4, 1, "vertex 4 lies on the boundary"),
    ],
)
def test_moebius_center_refuses(nose, up, sentence):
    with pytest.raises(InputError, match=sentence):
        moebius_center(np.array([0, 0.1, 0.2j, -0.3, 1.0]), nose, up)


# Public faces ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def faces():
    folder = os.environ.get("JAXGEODP_PUBLIC_DATA")
    if not folder or not (Path(folder) / "ict_face_patch.npz").is_file():
        pytest.skip("JAXGEODP_PUBLIC_DATA does not name a folder with ict_face_patch.npz (ICT FaceKit, not shipped)")
    with np.load(Path(folder) / "ict_face_patch.npz") as data:
        random = np.random.default_rng(0)
        weights = np.clip(random.normal(size=(3, len(data["modes"]))), -2, 2)
        shapes = data["mean"] + np.tensordot(weights, data["modes"].astype(float), 1)
        return [Mesh(shape, data["faces"]) for shape in shapes]


@pytest.mark.parametrize(("method", "most"), [("newton", 1.3), ("fast", 1.3), ("linear", 1.4)])
def test_faces_keep_their_angles(faces, method, most):
    for mesh in faces:
        z = disk_conformal_map(mesh, method)
        assert angle_distortion(mesh, z) <= most
        assert len(flips(mesh, z)) == 0
        assert np.abs(beltrami(mesh, z)).max() < 1
