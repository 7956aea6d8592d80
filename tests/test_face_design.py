"""What public faces decide: bounds, design, smoothing across; the baselines; distances from a mesh; the study."""

import chex
import jax
import numpy as np
import pytest
from scipy import stats
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from jaxgeodp.experiments.face_study import face_study, points_alone, points_together, squared_error, synthetic_meshes
from jaxgeodp.faces.design import reference_folder
from jaxgeodp.meshes.distance import MeshDistance
from jaxgeodp.meshes.grid import curve_points
from jaxgeodp.surfaces import (
    FaceTemplate,
    JointGaussian,
    Mesh,
    PointwiseGaussian,
    SyntheticFaces,
    design_faces,
    norm_bounds,
    smooth_across,
    synthetic_reference,
)

GENERATOR = SyntheticFaces(rings=10)


@pytest.fixture(scope="module")
def study():
    return face_study(6, 4, generator=GENERATOR, workers=1)


def smooth_faces(n, curves=6, samples=32, seed=0, size=0.01):
    """Random smooth functions on the disk, as radial curves (n, J, m, 3)."""
    z = curve_points(curves, samples)
    basis = np.stack([np.ones_like(z.real), z.real, z.imag, (z**2).real, (z**2).imag, abs(z) ** 2])
    return size * np.einsum("nkc,kjm->njmc", np.random.default_rng(seed).normal(size=(n, 6, 3)), basis)


# The study -------------------------------------------------------------------------------------------------


def test_nothing_public_is_the_private_mean_or_depends_on_the_private_seed(study):
    mean = study.private.curves.mean(axis=0)
    spread = squared_error(study.private.curves, mean)
    assert squared_error(study.template.curves, mean) > 0.2 * spread
    assert squared_error(study.reference.curves.mean(axis=0), mean) > 0.05 * spread
    one, other = (synthetic_meshes(2, 2, seed, GENERATOR) for seed in (0, 1))
    for a, b in zip(one[:3], other[:3], strict=True):
        chex.assert_trees_all_equal(a.vertices, b.vertices)
    assert np.abs(one[3].vertices - other[3].vertices).max() > 0.5
    everybody = np.stack([mesh.vertices for mesh in synthetic_meshes(20, 5, 2024, GENERATOR)])
    apart = np.abs(everybody[:, None] - everybody[None]).max(axis=(2, 3))
    assert apart[~np.eye(26, dtype=bool)].min() > 0.5, "nobody takes part twice, by no seed"


def test_people_of_the_other_population_are_faces_without_folds():
    for mesh in synthetic_meshes(60, 2, 0, GENERATOR):
        a, b, c = mesh.vertices[mesh.faces.T]
        assert np.all(np.cross(b - a, c - a)[:, 2] > 0)


@pytest.mark.exhaustive  # tests/test_surface_mean.py has such a comparison
def test_data_are_worth_more_than_the_template_and_curves_than_points():
    study = face_study(16, 6, generator=GENERATOR, workers=1)
    mean = study.private.curves.mean(axis=0)
    many = np.tile(study.private.curves, (20, 1, 1, 1))  # the same mean of twenty times as many
    design = design_faces(study.template.curves, study.reference.curves, len(many), 3.0, steps=60)
    ours = np.mean([squared_error(x, mean) for x in design.simulate(jax.random.key(0), many, 20)])
    assert ours < 0.5 * squared_error(study.template.curves, mean)
    points = np.tile(study.private.points, (20, 1, 1))
    truth = points.mean(axis=0)
    theirs = {
        make: np.mean([squared_error(x, truth) for x in make(study, 3.0).simulate(jax.random.key(0), points, 20)])
        for make in (points_alone, points_together)
    }
    assert theirs[points_together] < 0.5 * theirs[points_alone]
    # Raw, the curves have noise that smoothing across takes away.
    raw = np.asarray(design.mechanism.simulate(jax.random.key(0), many, 20))
    assert ours < 0.95 * np.mean([squared_error(x, mean) for x in raw])


# Bounds and design -----------------------------------------------------------------------------------------


def test_bounds_are_the_largest_deviations_with_a_margin():
    reference = smooth_faces(5)
    bound = norm_bounds(np.zeros((6, 32, 3)), reference, margin=2.0)
    assert bound.shape == (6, 3)
    assert bound[2, 1] == pytest.approx(2.0 * np.sqrt(np.mean(reference[:, 2, :, 1] ** 2, axis=1)).max())


def test_the_design_spends_the_whole_budget_and_takes_bounds_in_every_form():
    template, reference = np.zeros((6, 32, 3)), smooth_faces(9)
    for bound in (None, [0.05, 0.06, 0.07], np.full((6, 3), 0.05)):
        mechanism = design_faces(template, reference, 100, 2.5, bound, steps=20).mechanism  # as in the next test
        assert 2.5 - 1e-9 < mechanism.guarantee.mu <= 2.5
        wanted = norm_bounds(template, reference) if bound is None else np.broadcast_to(bound, (6, 3))
        chex.assert_trees_all_close(np.asarray(mechanism.norm_bound), wanted)


def test_a_smoothed_release_says_so_and_keeps_its_guarantee():
    data = smooth_faces(40, seed=1)
    design = design_faces(np.zeros((6, 32, 3)), smooth_faces(9), 40, 1.0, steps=20)
    release = design.release(data)
    assert release.value.shape == (6, 32, 3)
    chex.assert_trees_all_close(np.array(release.record["value"]), release.value)
    assert release.record["post_processing"]["penalty"] == design.radial_penalty.tolist()
    assert release.record["guarantee"]["mu"] == design.guarantee.mu
    release.to_json()
    # Neighbouring curves have noise of their own, which these faces do not: smoothing is chosen.
    assert np.all(design.radial_penalty > 0)
    draws = np.asarray(design.mechanism.simulate(jax.random.key(1), data, 30))
    mean = data.mean(axis=0)
    raw, smooth = (np.mean([squared_error(x, mean) for x in y]) for y in (draws, design.smoothed(draws)))
    assert smooth < 0.8 * raw


def test_smoothing_across_keeps_what_is_straight_and_is_a_minimum():
    z = curve_points(7, 32)
    plane = np.stack([0.3 + z.real, z.imag - 2.0 * z.real, np.ones_like(z.real)], axis=-1)
    for penalty in (0.0, 1.0, [1e-2, 1e2, 1e4]):
        chex.assert_trees_all_close(smooth_across(plane, penalty), plane, atol=1e-8)
    rough = np.random.default_rng(0).normal(size=(2, 7, 31, 3))
    chex.assert_trees_all_close(smooth_across(rough, 0.0), rough, atol=1e-12)
    # Minimises |f - g|^2 + penalty |f''|^2 over the diameters.
    smooth = smooth_across(rough[:, :, :30], 2.0)

    def energy(f):
        line = np.concatenate([np.roll(f, 15, axis=2)[:, ::-1], f], axis=1)
        nodes = np.concatenate([-np.arange(7, 0, -1), np.arange(1, 8)])[:, None, None]
        slopes = np.diff(line, axis=1) / np.diff(nodes, axis=0)
        bent = 2.0 * np.diff(slopes, axis=1) / (nodes[2:] - nodes[:-2])
        # Every diameter is counted from both of its ends.
        return np.sum((f - rough[:, :, :30]) ** 2) + np.sum(bent**2)

    least = energy(smooth)
    for seed in range(3):
        step = 1e-3 * np.random.default_rng(seed).normal(size=smooth.shape)
        assert energy(smooth + step) > least
        assert energy(smooth - step) > least


def test_a_synthetic_reference_stands_for_people_around_any_template():
    mesh = Mesh(GENERATOR.template, GENERATOR.triangles)
    turn = Rotation.from_rotvec([1.0, -2.0, 0.5]).as_matrix()
    nose, up = GENERATOR.nose_tip, GENERATOR.nasion
    plain, turned = (
        FaceTemplate.from_mesh(Mesh(scale * mesh.vertices @ rotation.T, mesh.faces), nose, up, 16, 40, 6, 32)
        for scale, rotation in ((1.0, np.eye(3)), (0.01, turn))
    )
    one, other = (synthetic_reference(template, count=3) for template in (plain, turned))
    assert one.shape == (3, 6, 32, 3)
    chex.assert_trees_all_close(one @ turn.T, other, atol=1e-5)
    size = np.sqrt(np.mean(np.sum((one - plain.curves) ** 2, axis=-1)))
    assert 0.005 < size < 0.05


def test_reference_meshes_of_a_folder_and_one_that_is_none(tmp_path):
    import trimesh

    template = FaceTemplate.from_mesh(Mesh(GENERATOR.template, GENERATOR.triangles), 0, GENERATOR.nasion, 16, 40, 6, 32)
    people = np.asarray(GENERATOR.records(jax.random.key(3), 3))
    for j, vertices in enumerate(people):
        trimesh.Trimesh(vertices, GENERATOR.triangles, process=False).export(tmp_path / f"{j}.ply")
    assert reference_folder(template, tmp_path, 0, GENERATOR.nasion, workers=1).shape == (3, 6, 32, 3)
    (tmp_path / "2.ply").write_text("nothing")
    with pytest.raises(ValueError, match=r"2\.ply is not used"):
        reference_folder(template, tmp_path, 0, GENERATOR.nasion, workers=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: design_faces(np.zeros((6, 32, 3)), smooth_faces(1), 10, 1.0), "at least 2 reference faces"),
        (lambda: design_faces(np.zeros((5, 32, 3)), smooth_faces(4), 10, 1.0), "of the same curves"),
        (lambda: design_faces(np.zeros((6, 32, 3)), smooth_faces(4), 10, 0.0), "mu must be"),
        (lambda: design_faces(np.zeros((6, 32, 3)), smooth_faces(4), 10, 1.0, [1.0, 2.0]), "norm_bound must be"),
        (lambda: design_faces(np.zeros((6, 32, 3)), np.nan * smooth_faces(4), 10, 1.0), "must be finite"),
        (lambda: norm_bounds(smooth_faces(1)[0], smooth_faces(1)), "faces of other people"),
        (lambda: norm_bounds(np.zeros((6, 32, 3)), smooth_faces(2), 0.0), "margin must be"),
        (lambda: JointGaussian(np.zeros(3), 1.0, 1.0), "shape (N, 3)"),
        (lambda: JointGaussian(np.zeros((4, 3)), 0.0, 1.0), "norm_bound must be"),
        (lambda: JointGaussian(np.zeros((4, 3)), 1.0, -1.0), "mu must be"),
        (lambda: JointGaussian(np.zeros((4, 3)), 1.0, 1.0).release(np.zeros((5, 3, 3))), "shape (n, 4, 3)"),
        (lambda: JointGaussian(np.zeros((4, 3)), 1e308, 1.0).release(np.zeros((5, 4, 3))), "beyond double precision"),
    ],
)
def test_wrong_calls_are_told_in_one_sentence(make, message):
    with pytest.raises(ValueError) as refusal:
        make()
    assert message in str(refusal.value)


# One bound for a face --------------------------------------------------------------------------------------


def test_joint_noise_is_gaussian_with_the_stated_scale():
    points = np.random.default_rng(1).normal(size=(60, 3))
    data = points + 0.02 * np.random.default_rng(0).normal(size=(10, 60, 3))
    data[3, 5, 1], data[4, 6, 2], data[5, 7, 0] = np.nan, 1e9, 1e200
    mechanism = JointGaussian(points, 0.03, 2.0)
    deviations = data - points
    kept = []
    for deviation in deviations:
        size = np.sqrt(np.mean(np.sum((deviation / 1e100) ** 2, axis=-1))) * 1e100
        kept.append(np.minimum(1.0, 0.03 / size) * deviation if size < 1e150 else np.zeros_like(deviation))
    draws = np.asarray(mechanism.simulate(jax.random.key(0), data, 60))
    noise = (draws - points - np.mean(kept, axis=0)) / mechanism.scale(10)
    assert stats.kstest(noise.reshape(-1), stats.norm.cdf).pvalue > 1e-6
    assert stats.kstest(1.1 * noise.reshape(-1), stats.norm.cdf).pvalue < 1e-6
    # A face may go from the bound on one side to that on the other.
    assert 2 * 0.03 * np.sqrt(60) / 10 / mechanism.scale(10) == pytest.approx(2.0)
    release = mechanism.release(data)
    assert release.record["guarantee"]["mu"] == 2.0
    assert release.value.shape == (60, 3)


def test_one_bound_is_less_noise_than_one_for_every_number():
    deviations = 0.01 * np.random.default_rng(0).normal(size=(200, 40, 3))
    bound = np.sqrt(np.mean(np.sum(deviations**2, axis=-1), axis=-1)).max()
    joint = JointGaussian(np.zeros((40, 3)), bound, 1.0)
    alone = PointwiseGaussian(np.zeros((40, 3)), np.abs(deviations).max(axis=(0, 1)), 1.0)
    assert joint.scale(200) < 0.5 * np.min(alone.scale(200))


# Distances from a mesh -------------------------------------------------------------------------------------


def test_distances_from_a_mesh_are_those_from_its_nearest_triangle():
    vertices, faces = GENERATOR.template, GENERATOR.triangles
    random = np.random.default_rng(0)
    weights = random.dirichlet([1.0, 1.0, 1.0], 200)
    chosen = faces[random.integers(0, len(faces), 200)]
    on = np.einsum("nk,nkc->nc", weights, vertices[chosen])
    distance = MeshDistance(vertices, faces)
    chex.assert_trees_all_close(distance(on), np.zeros(200), atol=1e-10)
    # Above the inside of a triangle by a little, that is the height.
    a, b, c = (vertices[chosen[:, k]] for k in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    inside = np.min(weights, axis=1) > 0.2
    chex.assert_trees_all_close(distance(on + 0.01 * normals)[inside], np.full(inside.sum(), 0.01), atol=1e-3)
    far = on + 3.0 * random.normal(size=on.shape)
    areas = Mesh(vertices, faces).areas
    chosen = faces[random.choice(len(faces), 200_000, p=areas / areas.sum())]
    dense = np.einsum("nk,nkc->nc", random.dirichlet([1.0, 1.0, 1.0], len(chosen)), vertices[chosen])
    nearest = cKDTree(dense).query(far)[0]
    assert np.all(distance(far) < nearest + 1e-9)
    assert np.all(distance(far)[nearest > 1.0] > nearest[nearest > 1.0] - 0.5)
