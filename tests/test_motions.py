"""Rigid motions, and the ways in which rotations are written, beyond the laws of every manifold (`test_manifolds`)."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from strategies import exhaustive
from typer.testing import CliRunner

from jaxgeodp import (
    GeodesicBall,
    GibbsMechanism,
    KNGMechanism,
    LaplaceMechanism,
    Release,
    RiemannianGaussian,
    RigidMotions,
    Rotations,
    TangentGaussian,
    WrappedLaplace,
    frechet_mean,
)
from jaxgeodp.checks import InputError
from jaxgeodp.cli.app import app
from jaxgeodp.io import read
from jaxgeodp.testing import LAWS, check_mechanism

POSES = RigidMotions(2.0)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def poses(count, seed=0, spread=0.2):
    """Near a pose that is not the origin."""
    random = np.random.default_rng(seed)
    turns = Rotation.from_rotvec([0.3, -0.5, 1.0]) * Rotation.from_rotvec(random.normal(0.0, spread, (count, 3)))
    places = np.array([10.0, -4.0, 2.0]) + random.normal(0.0, 2.0 * spread, (count, 3))
    return np.concatenate([turns.as_matrix(), places[:, :, None]], axis=2)


SHORT = ("points_belong", "round_trips", "minimal_geodesics", "parallel_transport", "volume", "going_home")


@pytest.mark.parametrize("law", SHORT)
def test_law(law):
    LAWS[law](POSES, "float64")


# Geometry -----------------------------------------------------------------------------------------------


def test_the_distance_is_that_of_angle_and_translation_and_invariant_under_changes_of_the_world_frame():
    first, second, world = poses(3)
    angle = np.linalg.norm(Rotation.from_matrix(first[:, :3].T @ second[:, :3]).as_rotvec())
    expected = math.hypot(angle, np.linalg.norm(first[:, 3] - second[:, 3]) / 2.0)
    assert POSES.dist(first, second) == pytest.approx(expected, abs=1e-12)

    def moved(pose):
        return np.concatenate([world[:, :3] @ pose[:, :3], world[:, :3] @ pose[:, 3:] + world[:, 3:]], axis=1)

    assert POSES.dist(moved(first), moved(second)) == pytest.approx(expected, abs=1e-12)


def test_the_mean_is_the_mean_rotation_beside_the_mean_position():
    records = poses(40)
    mean = np.asarray(frechet_mean(POSES, records))
    np.testing.assert_allclose(mean[:, :3], frechet_mean(Rotations(), records[:, :, :3]), atol=1e-12)
    np.testing.assert_allclose(mean[:, 3], records[:, :, 3].mean(axis=0), atol=1e-12)
    square = np.concatenate([records, np.broadcast_to([[[0.0, 0.0, 0.0, 1.0]]], (40, 1, 4))], axis=1)
    np.testing.assert_allclose(frechet_mean(POSES, square), mean, atol=1e-14)


def test_blocks_that_hold_a_scale_or_a_reflection_are_no_points():
    pose = poses(1)[0]
    assert POSES.admissible(pose + 1e-6)
    scaled = np.concatenate([1.01 * pose[:, :3], pose[:, 3:]], axis=1)
    mirrored = np.concatenate([-pose[:, :3], pose[:, 3:]], axis=1)
    for other in (scaled, mirrored, pose * np.nan, np.where(np.arange(4) == 3, np.inf, pose)):
        assert not POSES.admissible(other)
    perspective = np.concatenate([pose, [[0.0, 0.0, 0.1, 1.0]]])
    clipped = GeodesicBall(POSES, pose, 1.0).clip(perspective[None])
    np.testing.assert_allclose(clipped[0], pose, atol=1e-14)


@pytest.mark.parametrize("length", [0.0, -1.0, math.nan, "long"])
def test_a_length_that_is_none_is_refused(length):
    with pytest.raises(InputError, match="RigidMotions: length"):
        RigidMotions(length)


# Mechanisms ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda ball: TangentGaussian(ball, 1.0),
        *exhaustive(
            lambda ball: LaplaceMechanism(ball, 1.0),
            lambda ball: KNGMechanism(ball, 1.0),
            lambda ball: WrappedLaplace(ball, 1.0),
            lambda ball: GibbsMechanism(ball, 1.0),
        ),
    ],
)
def test_mechanisms_keep_their_promises(make):
    check_mechanism(make(GeodesicBall(POSES, poses(1)[0], 0.5)))


def test_mechanisms_without_a_proof_are_refused():
    with pytest.raises(InputError):
        RiemannianGaussian(GeodesicBall(POSES, poses(1)[0], 0.5), 1.0).law(100)
    with pytest.raises(InputError, match=r"1\.57"):
        LaplaceMechanism(GeodesicBall(POSES, poses(1)[0], 1.6), 1.0)


# Files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chart", ["wxyz", "xyzw", "rotvec"])
@pytest.mark.parametrize("translated", [False, True])
def test_quaternions_and_rotation_vectors_are_read_as_they_are_said(tmp_path, chart, translated):
    turns, random = Rotation.random(20, random_state=0), np.random.default_rng(0)
    if chart == "rotvec":
        numbers = turns.as_rotvec() * (1.0 + 2.0 * math.pi / np.linalg.norm(turns.as_rotvec(), axis=1, keepdims=True))
        numbers[0], turns = 0.0, Rotation.concatenate([Rotation.identity(), turns[1:]])
    else:
        numbers = turns.as_quat(scalar_first=chart == "wxyz") * random.choice([-3.0, 1e-200, 2e100], (20, 1))
    places = random.normal(size=(20, 3))
    table = np.concatenate([places, numbers], axis=1) if translated else numbers
    np.save(tmp_path / "turns.npy", table)
    records = read(tmp_path / "turns.npy", "rigidmotions(2.5)" if translated else "rotations", chart=chart)
    np.testing.assert_allclose(records[:, :, :3], turns.as_matrix(), atol=1e-14)
    if translated:
        np.testing.assert_array_equal(records[:, :, 3], places)


def test_records_that_are_no_rotations_become_no_points_and_raise_nothing(tmp_path):
    np.save(
        tmp_path / "turns.npy", [[0.0, 0.0, 0.0, 0.0], [np.nan, 1.0, 0.0, 0.0], [np.inf, 1.0, 0.0, 0.0], [1.0, 0, 0, 0]]
    )
    records = read(tmp_path / "turns.npy", "rotations", chart="wxyz")
    assert np.asarray(jax.vmap(Rotations().admissible)(jnp.asarray(records))).tolist() == [False, False, False, True]


def test_poses_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run, records = CliRunner().invoke, poses(400)
    quaternions = Rotation.from_matrix(records[:, :, :3]).as_quat()
    np.savetxt("poses.csv", np.concatenate([records[:, :, 3], quaternions], axis=1), delimiter=",")
    np.savetxt("center.csv", [[10.0, -4.0, 2.0, *Rotation.from_rotvec([0.3, -0.5, 1.0]).as_quat()]], delimiter=",")
    said = run(app, ["check", "poses.csv", "--manifold", "rigidmotions(2)"])
    assert said.exit_code == 2 and "need --as" in " ".join(said.output.split())
    said = run(app, ["check", "poses.csv", "--manifold", "rigidmotions", "--as", "xyzw"])
    assert said.exit_code == 2 and "the length that counts as a radian" in " ".join(said.output.split())
    said = run(app, ["check", "poses.csv", "--manifold", "rigidmotions(2)", "--as", "degrees"])
    assert said.exit_code == 2 and "of it one of matrix, affine, wxyz" in " ".join(said.output.split())
    options = ["--manifold", "rigidmotions(2)", "--as", "xyzw", "--center", "center.csv", "--radius", "0.9"]
    said = run(app, ["release", "poses.csv", *options, "--mu", "1", "--out", "mean.json", "--plot", "mean.png"])
    assert said.exit_code == 0, said.output
    value = Release.load("mean.json").as_array()
    assert POSES.dist(value, frechet_mean(POSES, records)) < 0.1
    assert (tmp_path / "mean.png").stat().st_size > 5_000
