"""Releases in steps with noise that has a shape: what each stage sees, what it promises, and how near it comes."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import jaxgeodp as jgd
from jaxgeodp.checks import InputError
from jaxgeodp.cli import app
from jaxgeodp.mechanisms.adaptive_stages import about, lengths, pair_lengths, stepped
from jaxgeodp.privacy import Ledger, ZeroConcentratedDP

SPACES = [
    jgd.Sphere(2),
    *(
        pytest.param(space, marks=pytest.mark.exhaustive)
        for space in (jgd.SPD(3), jgd.PlanarShapes(5), jgd.Hyperbolic(3), jgd.Grassmann(4, 2), jgd.Rotations())
    ),
]
_spaces = pytest.mark.parametrize("space", SPACES, ids=str)


class Case:
    """A ball whose centre is anywhere, a shape of two directions, and another point of the ball."""

    def __init__(self, space):
        self.space, center = space, np.asarray(space.random_point(jax.random.key(3)))
        self.ball = jgd.GeodesicBall(space, center, 0.3)
        self.frame = np.asarray(space.frame(self.ball.center))
        self.vectors = np.stack([self.frame[0] + 0.3 * self.frame[1], 0.2 * self.frame[1]])
        self.shape = jgd.Shape(self.ball.center, self.vectors, 0.3, [0.9, 0.5])
        self.other = np.asarray(space.exp(self.ball.center, jnp.asarray(0.2 * self.frame[-1] - 0.1 * self.frame[0])))

    def records(self, num):
        z = 0.3 * np.random.default_rng(0).normal(size=(num, self.space.dim))
        combined = jax.vmap(lambda own: self.space.exp(self.ball.center, self.space.combine(own, self.frame)))
        return np.array(combined(z))

    def mechanism(self, **budget):
        return jgd.AdaptiveMechanism(self.ball, **budget, shape=self.shape)


@_spaces
def test_lengths_are_those_of_coordinates_in_the_carried_shape(space):
    """By NumPy, from the manifold's own transport and logarithm."""
    case = Case(space)
    law, data = case.mechanism(mu=1.0).law(500).mean, case.records(20)
    point = jnp.asarray(case.other)

    def coordinates(x):
        moved = [space.transport(case.ball.center, point, jnp.asarray(v)) for v in case.vectors]
        gram = np.array([[float(space.inner(point, u, v)) for v in moved] for u in moved])
        log = space.log(point, x)
        return np.linalg.solve(gram, [float(space.inner(point, u, log)) for u in moved])

    expected = [np.linalg.norm(coordinates(x)) for x in data]
    assert np.allclose(lengths(law, point, data), expected, rtol=1e-7)
    logs = [np.array([float(space.inner(case.ball.center, u, space.log(case.ball.center, x))) for u in case.vectors])
            for x in data]  # fmt: skip
    gram = np.array([[float(space.inner(case.ball.center, u, v)) for v in case.vectors] for u in case.vectors])
    z = np.linalg.solve(gram, np.array(logs).T).T
    assert np.allclose(pair_lengths(law, data), np.linalg.norm(z[:10] - z[10:], axis=1), rtol=1e-7)


@_spaces
def test_what_a_mean_at_a_released_point_sees_moves_by_what_it_pays_for(space):
    """Wherever one record lies, and whatever it is; and nearly as far for some."""
    case, clip = Case(space), 0.1
    law = about(case.mechanism(mu=1.0).law(30).mean, jnp.asarray(case.other), clip, 1.0)

    def location(data):
        home, points, _ = law.at_home(data)
        return np.asarray(home.location(points, None))

    data, ends = case.records(30), []
    axis = space.transport(case.ball.center, case.other, jnp.asarray(case.vectors[0]))
    for far in (0.29, -0.29):
        ends.append(np.array(data))
        ends[-1][4] = space.exp(jnp.asarray(case.other), far * axis)
    moved = np.linalg.norm(location(ends[0]) - location(ends[1]))
    assert 2.0 * clip / 30 * (1 - 1e-3) < moved <= 2.0 * clip / 30 * (1 + 1e-12)
    for broken in (np.nan, 1e300, 0.0):
        changed = np.array(data)
        changed[4] = broken
        assert np.linalg.norm(location(data) - location(changed)) <= 2.0 * clip / 30 * (1 + 1e-12)


@_spaces
def test_a_release_with_a_shape_is_a_point_and_says_so(space):
    case = Case(space)
    for budget in ({"mu": 2.0}, {"epsilon": 4.0}):
        mechanism = case.mechanism(**budget)
        release = mechanism.release(case.records(400))
        assert bool(space.belongs(jnp.asarray(release.value), 1e-9))
        record = release.record
        assert len(record["steps"]) > 1 and record["shape"]["clip"] == 0.3 and record["shape"]["expected"] is None
        assert record["sensitivity"]["value"] == pytest.approx((1.2 if "mu" in budget else 0.6) / 400)


def test_a_shape_of_the_whole_space_changes_nothing_in_a_plane():
    """Coordinates are then those of the plane, and a ball's first mean is wider at mu only."""
    ball = jgd.GeodesicBall(jgd.Euclidean(2), [1.0, 0.0], 1.0)
    data = np.random.default_rng(0).normal([1.3, 0.2], 0.1, (500, 2))
    shape = jgd.Shape(ball.center, np.eye(2), 1.0)
    keys = jax.random.key(0), data, 50
    with_shape = jgd.AdaptiveMechanism(ball, epsilon=1.0, shape=shape)
    assert np.allclose(with_shape.simulate(*keys), jgd.AdaptiveMechanism(ball, epsilon=1.0).simulate(*keys), atol=1e-9)


@pytest.mark.parametrize("budget", [{"mu": 1.0}, {"epsilon": 4.0}], ids=["mu", "epsilon"])
def test_releases_with_a_shape_have_the_law_of_simulations(budget):
    """Medians of each coordinate, and of how far they are from each other; a law of another shape has others."""
    ball = jgd.GeodesicBall(jgd.Euclidean(3), np.zeros(3), 1.0)
    data = np.random.default_rng(0).normal([0.2, 0.1, 0.0], [0.1, 0.02, 0.01], (300, 3))

    def spread(draws):
        return np.median(np.abs(np.asarray(draws) - data.mean(axis=0)), axis=0)

    mechanisms = [
        jgd.AdaptiveMechanism(ball, **budget, shape=jgd.Shape(ball.center, vectors, 0.6))
        for vectors in (np.diag([1.0, 0.3, 0.1]), np.diag([1.0, 1.0, 1.0]))
    ]
    released = spread([mechanisms[0].release(data).value for _ in range(150)])
    own, other = (spread(mechanism.simulate(jax.random.key(1), data, 600)) for mechanism in mechanisms)
    assert np.all(np.abs(np.log(released / own)) < 0.35)
    assert np.max(np.abs(np.log(released / other))) > 0.7


def test_steps_with_a_shape_come_nearer_than_one_release_with_it():
    space = jgd.Euclidean(10)
    deviations = 0.1 * np.geomspace(1.0, 0.05, 10)
    ball = jgd.GeodesicBall(space, np.zeros(10), 1.0)
    rng = np.random.default_rng(0)
    data, away = rng.normal(size=(500, 10)) * deviations, rng.normal(size=10) * deviations
    data = data + 2.0 * away
    shape = jgd.Shape(ball.center, np.diag(np.sqrt(deviations / deviations[0])), 1.0)

    def error(mechanism):
        draws = np.asarray(mechanism.simulate(jax.random.key(0), data, 200))
        return np.mean(np.linalg.norm(draws - data.mean(axis=0), axis=1))

    steps = error(jgd.AdaptiveMechanism(ball, mu=1.0, shape=shape))
    assert steps < 0.7 * error(jgd.TangentGaussian(ball, 1.0, shape))
    assert steps < 0.8 * error(jgd.AdaptiveMechanism(ball, mu=1.0))


def test_few_records_are_released_once_with_the_shape():
    case = Case(jgd.Sphere(2))
    steps, one = case.mechanism(mu=0.5), jgd.TangentGaussian(case.ball, 0.5, case.shape)
    assert steps.law(40).rule is None and steps.law(40).whole.scale == one.law(40).scale
    assert [own["asked"] for own in steps.release(case.records(40)).record["steps"]] == ["mean of all"]


def test_what_a_shape_does_not_go_with_is_refused():
    case = Case(jgd.Sphere(2))
    wrong: Any
    for wrong in ("round", jgd.Shape(case.other, case.vectors, 0.3), jgd.Shape(case.ball.center, 2 * [[1, 1, 1]], 0.3)):
        with pytest.raises(InputError, match="AdaptiveMechanism"):
            jgd.AdaptiveMechanism(case.ball, mu=1.0, shape=wrong)
    with pytest.raises(InputError, match="AdaptiveMechanism"):
        case.mechanism(mu=1.0).release(case.records(200), persons=np.arange(200) // 2)


def test_the_command_takes_a_ball_with_a_shape(tmp_path):
    data = np.random.default_rng(0).normal([0.1, 0.0], [0.1, 0.02], (300, 2))
    np.savetxt(tmp_path / "data.csv", data, delimiter=",")
    ball = {"manifold": {"name": "Euclidean", "dim": 2}, "center": [0.0, 0.0], "radius": 1.0}
    shape = {"vectors": [[1.0, 0.0], [0.0, 0.2]], "clip": 0.5, "gains": 1.0}
    (tmp_path / "ball.json").write_text(json.dumps(ball | {"shape": shape}))
    words = ("release", "data.csv", "--manifold", "euclidean", "--ball", "ball.json", "--mu", "1", "--mechanism")
    words = [str(tmp_path / word) if word.endswith((".csv", ".json")) else word for word in words]
    done = CliRunner().invoke(app, [*words, "adaptive", "--out", str(tmp_path / "mean.json")])
    assert done.exit_code == 0, done.output
    record = json.loads((tmp_path / "mean.json").read_text())
    assert record["mechanism"] == "AdaptiveMechanism" and record["shape"]["rank"] == 2 and len(record["steps"]) > 1


def test_a_shape_that_reaches_beyond_double_precision_is_refused_before_a_charge(tmp_path):
    """Once a step left double precision, and a release was charged and lost."""
    space = jgd.SPD(4)
    ball = jgd.GeodesicBall(space, space.origin, 1.0)
    frame, ledger = np.asarray(space.frame(space.origin)), Ledger(tmp_path / "ledger.db", ZeroConcentratedDP(100.0))
    far = jgd.AdaptiveMechanism(ball, mu=1.0, shape=jgd.Shape(ball.center, frame, 14.5))
    with pytest.raises(InputError, match="too far for double precision"):
        far.release(np.tile(np.eye(4), (50, 1, 1)), ledger)
    assert ledger.account().releases == 0
    near = jgd.AdaptiveMechanism(ball, mu=1.0, shape=jgd.Shape(ball.center, frame, 10.0))
    for numerics in ("idealized", "grid"):
        for _ in range(8):
            near.release(np.tile(np.eye(4), (50, 1, 1)), ledger, numerics=numerics).to_json()


def test_a_step_that_is_no_point_is_not_made():
    law = jgd.AdaptiveMechanism(jgd.GeodesicBall(jgd.Sphere(2), [0.0, 0.0, 1.0], 0.5), mu=1.0).law(500).mean
    center = jnp.asarray([0.0, 0.0, 1.0])
    for vector in (jnp.asarray([jnp.nan, 0.0]), jnp.asarray([jnp.inf, 0.0])):
        assert np.array_equal(stepped(law, center, 0.1, vector, 1.0), center)
    flat = jgd.AdaptiveMechanism(jgd.GeodesicBall(jgd.Euclidean(2), np.zeros(2), 0.5), mu=1.0).law(500).mean
    assert np.array_equal(stepped(flat, jnp.zeros(2), 0.1, jnp.asarray([jnp.inf, 0.0]), 1.0), np.zeros(2))


def test_a_narrow_shape_does_not_cut_off_what_was_found():
    """Records beyond the clip about the public centre, which a single release would shorten."""
    ball = jgd.GeodesicBall(jgd.Euclidean(4), np.zeros(4), 1.0)
    data = np.random.default_rng(0).normal([0.3, 0.0, 0.0, 0.0], 0.05, (500, 4))
    for clip in (0.1, 0.15, 0.2):
        mechanism = jgd.AdaptiveMechanism(ball, mu=1.0, shape=jgd.Shape(ball.center, np.eye(4), clip))
        draws = np.asarray(mechanism.simulate(jax.random.key(0), data, 50))
        assert np.mean(np.linalg.norm(draws - data.mean(axis=0), axis=1)) < 0.02


def test_a_shape_excludes_persons_whose_means_it_may_reach_beyond():
    ball = jgd.GeodesicBall(jgd.Euclidean(2), np.zeros(2), 1.0)
    shape = jgd.Shape(ball.center, np.eye(2), 1.0)
    for make in (jgd.TangentLaplace, jgd.TangentGaussian):
        assert "persons" in make(ball, 1.0).supports and "persons" not in make(ball, 1.0, shape).supports
