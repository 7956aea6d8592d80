"""A public ball from public data: the radius is near the best one, and the file goes where a ball is asked for."""

import functools
import json
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from strategies import exhaustive
from typer.testing import CliRunner

from jaxgeodp import (
    SPD,
    Euclidean,
    GeodesicBall,
    Hyperbolic,
    KNGMechanism,
    LaplaceMechanism,
    PlanarShapes,
    Sphere,
    TangentLaplace,
    WrappedGaussian,
    WrappedLaplace,
    frechet_mean,
)
from jaxgeodp.checks import InputError
from jaxgeodp.cli import app
from jaxgeodp.mechanisms import suggest_ball


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def scattered(manifold, center, spread, n, seed):
    """Records exp_center(v), v normal of standard deviation ``spread`` in each direction."""
    return _scattered(manifold, n, jnp.asarray(center), spread, seed)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _scattered(manifold, n, center, spread, seed):
    def record(key):
        return manifold.exp(center, spread * manifold.random_tangent(key, center))

    return jax.vmap(record)(jax.random.split(jax.random.key(seed), n))


# Public records and private people, so many in most tests: one set of programs.
M, N = 299, 100


@pytest.mark.parametrize("manifold", [Euclidean(2), *exhaustive(SPD(2))], ids=str)
def test_the_suggested_radius_is_nearly_the_best_one(manifold):
    """Private people whose mean lies half a spread away: the measured error over radii, and that at the suggestion."""
    n = N
    origin = jnp.asarray(manifold.origin)
    public = scattered(manifold, origin, 0.5, M, 0)
    found = suggest_ball(manifold, public, n, mu=1.0)
    away = manifold.exp(origin, 0.5 * 0.5 * manifold.dim**0.5 * manifold.frame(origin)[0])
    private = scattered(manifold, away, 0.5, n, 1)
    mean = frechet_mean(manifold, private)

    def error(radius):
        draws = WrappedGaussian(GeodesicBall(manifold, found.ball.center, radius), 1.0).simulate(
            jax.random.key(2), private, 2000
        )
        return float(jnp.mean(distances(draws)))

    distances = jax.jit(jax.vmap(lambda x: manifold.dist(mean, x)))
    errors = {radius: error(float(radius)) for radius in [*np.geomspace(0.2, 6.0, 12), found.ball.radius]}
    assert errors[found.ball.radius] < 1.2 * min(errors.values())
    # Radii that are too small or too large by a factor of three are worse by more than that.
    assert error(found.ball.radius / 3) > 1.2 * errors[found.ball.radius] < error(found.ball.radius * 3)
    assert float(manifold.dist(origin, jnp.asarray(found.ball.center))) < 0.15
    assert 0.5 <= found.inside <= 1.0 and found.records == M and found.mechanism


def test_radii_that_are_tried_begin_where_half_of_the_records_are():
    public = np.linspace(-1.0, 1.0, 101)[:, None]
    found = suggest_ball(Euclidean(1), public, n=100, epsilon=1.0)
    assert found.radii[0] == pytest.approx(0.5) and found.radii[-1] == pytest.approx(1.5)
    # Where more than half are one point, from a thousandth of the farthest on.
    found = suggest_ball(Euclidean(1), [[0.0]] * 6 + [[1.0]] * 4, n=100, epsilon=1.0)
    assert found.radii[0] == pytest.approx(1e-3) and found.inside == 1.0


def test_a_few_far_records_decide_nothing():
    public = np.asarray(scattered(Euclidean(2), jnp.zeros(2), 1.0, M, 0))
    usual = suggest_ball(Euclidean(2), public, N, mu=1.0)
    wild = suggest_ball(Euclidean(2), np.concatenate([public, [[1000.0, 0.0]]]), N, mu=1.0)
    assert wild.outliers == 1 and usual.outliers == 0
    assert abs(wild.ball.radius / usual.ball.radius - 1.0) < 0.3
    assert np.linalg.norm(wild.ball.center - usual.ball.center) < 0.1


def test_no_radius_is_suggested_that_all_mechanisms_refuse(monkeypatch):
    most = 1.0

    def plan(ball, *_, **__):
        if ball.radius > most:
            raise InputError("planted")
        return [types.SimpleNamespace(error=0.0, mechanism="the best")]

    monkeypatch.setattr("jaxgeodp.mechanisms.suggestion.plan_mechanisms", plan)
    public = scattered(Euclidean(2), jnp.zeros(2), 0.5, M, 0)
    found = suggest_ball(Euclidean(2), public, N, mu=1.0)
    np.testing.assert_array_equal(np.isinf(found.noise), found.radii > most)
    # Without noise the largest of the others errs least.
    assert found.ball.radius == found.radii[found.radii <= most][-1] < found.radii[-1]
    most = 0.0
    with pytest.raises(ValueError, match="planted"):
        suggest_ball(Euclidean(2), public, N, mu=1.0)


@pytest.mark.exhaustive  # one refusal of those that are planted above
def test_no_ball_is_suggested_that_a_release_refuses():
    """Far in the hyperbolic plane: radii above 10 are too large for a release."""
    manifold = Hyperbolic(2)
    tangents = np.random.default_rng(0).normal(size=(80, 2))
    tangents *= 11.0 / np.linalg.norm(tangents, axis=1, keepdims=True)
    public = jax.vmap(lambda v: manifold.exp(jnp.asarray(manifold.origin), v))(
        jnp.pad(jnp.asarray(tangents), ((0, 0), (1, 0)))
    )
    try:
        found = suggest_ball(manifold, public, 200, epsilon=1.0)
    except ValueError:
        return
    assert np.isfinite(found.error[np.searchsorted(found.radii, found.ball.radius)])
    assert found.mechanism
    mechanism = {kind.__name__: kind for kind in (LaplaceMechanism, KNGMechanism, TangentLaplace, WrappedLaplace)}
    mechanism[found.mechanism](found.ball, 1.0).release(np.asarray(public))


@pytest.mark.parametrize(
    ("manifold", "center"),
    [(Euclidean(2), [3.0, -1.0]), *exhaustive((Sphere(2), [0.0, 0.6, 0.8]))],  # where calibrating takes longer
    ids=str,
)
def test_noise_grows_and_bias_falls_with_the_radius_and_more_records_ask_for_a_larger_one(manifold, center):
    public = scattered(manifold, jnp.array(center), 0.15, M, 3)
    few, many = (suggest_ball(manifold, public, n, epsilon=1.0) for n in (50, 5000))
    assert np.all(np.diff(few.noise) > 0) and np.all(np.diff(few.bias) <= 1e-12)
    assert many.ball.radius > few.ball.radius
    gaussian = suggest_ball(manifold, public, N, mu=1.0)
    assert gaussian.mechanism in ("WrappedGaussian", "TangentGaussian", "RiemannianGaussian")


@pytest.mark.parametrize(
    ("public", "options", "words"),
    [
        (np.ones((4, 3)), {}, "all equal"),
        (np.full((4, 3), np.nan), {}, "at least two"),
        (np.ones((4, 2)), {}, "must have shape"),
        (np.eye(3), {"mu": 1.0}, "epsilon or mu"),
    ],
)
def test_what_is_wrong_is_said(public, options, words):
    with pytest.raises(ValueError, match=words):
        suggest_ball(Sphere(2), public, 10, epsilon=1.0, **options)


def test_a_ball_goes_from_public_records_to_a_release(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    np.save("public.npy", [3.0, -1.0] + 0.5 * rng.normal(size=(M, 2)))
    np.save("private.npy", [3.0, -1.0] + 0.5 * rng.normal(size=(N, 2)))
    result = run("ball", "public.npy", "--manifold", "euclidean", "--n", N, "--mu", 1, "--out", "ball.json")
    assert result.exit_code == 0 and "<- suggested" in result.output, result.output
    written = json.loads((tmp_path / "ball.json").read_text())
    assert (tmp_path / "ball.png").read_bytes().startswith(b"\x89PNG")
    own = ("release", "private.npy", "--manifold", "euclidean", "--epsilon", 1, "--mechanism", "tangent")
    _released_in(written, own, tmp_path)


@pytest.mark.exhaustive  # the same command, and landmarks have tests of their own
def test_a_ball_goes_from_public_landmarks_to_a_release(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outline = np.array([[0, 0], [2, 0.1], [2.1, 1], [0.2, 1.1]])
    rng = np.random.default_rng(0)
    np.save("public.npy", outline + 0.05 * rng.normal(size=(80, 4, 2)))
    np.save("private.npy", outline + 0.05 * rng.normal(size=(60, 4, 2)))
    result = run("ball", "public.npy", "--manifold", "shapes", "--n", 60, "--mu", 1, "--out", "ball.json")
    assert result.exit_code == 0 and "<- suggested" in result.output, result.output
    written = json.loads((tmp_path / "ball.json").read_text())
    assert (tmp_path / "ball.png").read_bytes().startswith(b"\x89PNG")
    own = ("release", "private.npy", "--manifold", "shapes", "--epsilon", 1, "--mechanism", "tangent")
    _released_in(written, own, tmp_path)
    shapes = PlanarShapes(4)
    center = np.array(written["center"]) @ [1.0, 1j]
    assert shapes.belongs(center, 1e-12)


def _released_in(written, own, folder):
    """The file of a ball is what a release takes; it and no other."""
    result = run(*own, "--ball", "ball.json", "--out", "out.json")
    assert result.exit_code == 0, result.output
    record = json.loads((folder / "out.json").read_text())
    assert record["ball"] == {"center": written["center"], "radius": written["radius"]}
    for wrong, words in {
        ("--ball", "nowhere.json"): "there is no such file",
        ("--ball", "public.npy"): "is not a file of 'jaxgeodp ball'",
        ("--ball", "ball.json", "--radius", 0.2): "leave out --center and --radius",
    }.items():
        result = run(*own, *wrong, "--out", "other.json")
        assert result.exit_code == 2 and words in " ".join(result.output.split()), result.output
    np.save("directions.npy", np.eye(3))
    result = run(
        "release", "directions.npy", "--manifold", "sphere", "--epsilon", 1, "--ball", "ball.json", "--out", "o.json"
    )
    assert result.exit_code == 2 and "on another manifold" in " ".join(result.output.split())
    assert run(*own, "--out", "other.json").exit_code == 2  # neither a radius nor a ball


def test_auto_takes_the_best_of_the_plan_and_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("data.npy", np.random.default_rng(0).normal(size=(40, 3)) * 0.1 + [0, 0, 1])
    own = ("release", "data.npy", "--manifold", "sphere", "--center", "origin", "--radius", 0.7)
    assert run(*own, "--epsilon", 1, "--out", "auto.json").exit_code == 0
    record = json.loads((tmp_path / "auto.json").read_text())
    errors = record["chosen"]["expected_errors"]
    assert record["mechanism"] == min(errors, key=errors.get)
    assert {"LaplaceMechanism", "KNGMechanism", "WrappedLaplace"} == set(errors), "TangentLaplace has another mean"
    for wrong in (
        ("--epsilon", 1, "--mu", 1),
        (),
        ("--epsilon", 1, "--statistic", "median", "--numerics", "grid"),
    ):
        assert run(*own, *wrong, "--out", "wrong.json").exit_code == 2
    refused = run(*own, "--mu", 1, "--delta", 1e-6, "--out", "wrong.json")
    assert refused.exit_code == 2 and "choose one of gibbs" in " ".join(refused.output.split())


@pytest.mark.exhaustive
def test_auto_takes_the_best_of_what_the_options_leave(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("data.npy", np.random.default_rng(0).normal(size=(40, 3)) * 0.1 + [0, 0, 1])
    own = ("release", "data.npy", "--manifold", "sphere", "--center", "origin", "--radius", 0.7)
    assert run(*own, "--epsilon", 1, "--out", "auto.json").exit_code == 0
    errors = json.loads((tmp_path / "auto.json").read_text())["chosen"]["expected_errors"]
    # The errors are those of the calibration that is released.
    assert run(*own, "--epsilon", 1, "--calibration", "theorem", "--out", "theorem.json").exit_code == 0
    theorem = json.loads((tmp_path / "theorem.json").read_text())["chosen"]["expected_errors"]
    assert set(theorem) == {"LaplaceMechanism", "KNGMechanism"}
    assert theorem["LaplaceMechanism"] > 1.5 * errors["LaplaceMechanism"]
    # What the options ask for leaves one.
    assert run(*own, "--epsilon", 1, "--statistic", "median", "--out", "median.json").exit_code == 0
    median = json.loads((tmp_path / "median.json").read_text())
    assert median["mechanism"] == "KNGMechanism" and "chosen" not in median
    assert run(*own, "--mu", 1, "--out", "mu.json").exit_code == 0
    assert json.loads((tmp_path / "mu.json").read_text())["guarantee"]["kind"] == "gdp"


def test_landmarks_become_shapes_before_anything_is_computed(monkeypatch):
    seen = []
    monkeypatch.setattr("jaxgeodp.mechanisms.suggestion.frechet_median", lambda _, points: seen.append(points) or 1 / 0)
    shapes, landmarks = PlanarShapes(4), np.random.default_rng(0).normal(size=(80, 4, 2))
    for given in (landmarks, np.asarray(shapes.from_landmarks(landmarks))):
        with pytest.raises(ZeroDivisionError):
            suggest_ball(shapes, given, n=60, mu=1.0)
    np.testing.assert_allclose(*seen, atol=1e-12)
    with pytest.raises(ValueError, match=r"shape \(m, 4\) on PlanarShapes"):
        suggest_ball(shapes, landmarks[:, :3], n=60, mu=1.0)


@pytest.mark.exhaustive  # what the median gets is compared above
def test_landmarks_are_taken_as_a_release_takes_them():
    shapes, corners = PlanarShapes(4), np.random.default_rng(0).normal(size=(4, 2))
    public = corners + 0.05 * np.random.default_rng(1).normal(size=(80, 4, 2))
    own = np.asarray(shapes.from_landmarks(public))
    as_landmarks, as_shapes = (suggest_ball(shapes, given, n=60, mu=1.0).ball for given in (public, own))
    assert as_landmarks.radius == pytest.approx(as_shapes.radius, rel=1e-12)
    with pytest.raises(ValueError, match=r"shape \(m, 4\) on PlanarShapes"):
        suggest_ball(shapes, public[:, :3], n=60, mu=1.0)
