"""Noise in the shape of the data: the law, what it promises, and which shapes are found."""

import dataclasses
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import jaxgeodp as jgd
from jaxgeodp import datasets
from jaxgeodp.checks import InputError
from jaxgeodp.cli import app
from jaxgeodp.domains.ellipsoid import Populations, least_error, supposed_populations
from jaxgeodp.manifolds.smoothness import smoothness

N = 40
_SPACES = [
    jgd.Sphere(2),
    *(pytest.param(space, marks=pytest.mark.exhaustive) for space in (jgd.SPD(2), jgd.PlanarShapes(4))),
]
_each = pytest.mark.parametrize("space", _SPACES, ids=str)


class Case:
    """A ball whose centre is anywhere, a shape of two directions, and records near and far and broken."""

    def __init__(self, space):
        self.space, self.center = space, np.asarray(space.random_point(jax.random.key(3)))
        self.ball = jgd.GeodesicBall(space, self.center, 0.2)
        frame = np.asarray(space.frame(self.center))
        self.vectors = np.stack([frame[0] + 0.3 * frame[1], 0.2 * frame[1]])
        self.shape = jgd.Shape(self.ball.center, self.vectors, 0.25, [0.9, 0.5])
        lengths = np.linspace(0.0, 0.6, N)[:, None] * np.linspace(-1.0, 1.0, space.dim)
        self.records = np.array(jax.vmap(lambda z: space.exp(self.center, space.combine(z, frame)))(lengths))
        self.records[7] = np.nan
        self.frame = frame

    def location(self):
        """D gains mean of shortened D^+ log, by NumPy."""
        columns = np.stack([self.coordinates(v) for v in self.vectors], axis=1)
        z = np.stack(
            [
                np.zeros(2) if np.isnan(x).any() else np.linalg.pinv(columns) @ self.coordinates(self.log(x))
                for x in self.records
            ]
        )
        lengths = np.linalg.norm(z, axis=1)
        z *= np.minimum(1.0, 0.25 / np.maximum(lengths, 1e-300))[:, None]
        return columns * self.shape.gains, z.mean(axis=0)

    def log(self, x):
        return self.space.log(self.center, x)

    def coordinates(self, v):
        return np.asarray(self.space.coordinates(self.center, jnp.asarray(v, self.center.dtype), self.frame))


@_each
def test_draws_are_noise_of_that_shape_about_the_mean_of_shortened_coordinates(space):
    case = Case(space)
    columns, mean = case.location()
    mechanism = jgd.TangentGaussian(case.ball, 2.0, case.shape)
    draws = mechanism.simulate(jax.random.key(0), case.records, 4000)
    found = np.asarray(jax.vmap(lambda x: space.coordinates(case.center, space.log(case.center, x), case.frame))(draws))
    scale = 2 * 0.25 / (N * 2.0)
    assert mechanism.scale(N) == pytest.approx(scale)
    covariance = scale**2 * columns @ columns.T
    errors = np.sqrt(np.diag(covariance) / 4000)
    assert np.all(np.abs(found.mean(axis=0) - columns @ mean) < 5.0 * errors + 1e-12)
    assert np.allclose(np.cov(found.T), covariance, atol=0.1 * np.max(covariance))


@_each
def test_records_beyond_the_radius_count_in_full_and_broken_ones_as_the_centre(space):
    case = Case(space)
    law = jgd.TangentGaussian(case.ball, 1.0, case.shape).law(N)
    home = law.at_home(case.records)
    _, mean = case.location()
    assert np.allclose(home.law.location(home.records, None), mean, atol=1e-12)


def test_without_a_shape_nothing_has_changed():
    case = Case(jgd.Sphere(2))
    law = jgd.TangentLaplace(case.ball, 1.0).law(N)
    assert law.scale == 2 * 0.2 / N and law.terms.more is None and law.ball is case.ball


@pytest.mark.parametrize("strength", [0.5, 3.0])
def test_the_largest_ratio_of_densities_is_epsilon_and_no_less_would_do(strength):
    ball = jgd.GeodesicBall(jgd.Euclidean(2), [1.0, -1.0], 1.0)
    shape = jgd.Shape(ball.center, [[2.0, 0.0], [0.1, 0.05]], 0.7, 0.6)
    mechanism = jgd.TangentLaplace(ball, strength, shape)
    columns = np.asarray(shape.vectors).T
    data = np.tile(ball.center, (5, 1))

    def neighbour(z):
        return np.concatenate([data[:4], [ball.center + columns @ z]])

    ways = [np.array([np.cos(t), np.sin(t)]) for t in np.linspace(0.0, np.pi, 5)]
    x = ball.center + 100.0 * np.stack([columns @ way for way in ways])
    density = jax.vmap(mechanism.log_density, (0, None))
    ratios = [np.max(np.abs(density(x, neighbour(50.0 * w)) - density(x, neighbour(-50.0 * w)))) for w in ways]
    assert max(ratios) == pytest.approx(strength, rel=1e-3) and max(ratios) <= strength * (1 + 1e-9)


def test_sums_of_integers_are_those_of_blocks_and_noise_has_the_rank_of_the_shape():
    case = Case(jgd.Sphere(2))
    mechanism = jgd.TangentGaussian(
        case.ball, 1.0, dataclasses.replace(case.shape, vectors=case.vectors[:1], gains=1.0)
    )
    whole = mechanism.prepare(case.records)
    parts = mechanism.prepare(case.records[:11]) + mechanism.prepare(case.records[11:])
    assert whole.sums.shape == (1,) and np.array_equal(whole.sums, parts.sums)
    release = mechanism.finish(parts)
    assert release.record["guarantee"]["rho"] == pytest.approx(0.5)
    off = case.coordinates(case.log(release.value))
    direction = case.coordinates(case.vectors[0])
    assert np.linalg.norm(off - direction * (off @ direction) / (direction @ direction)) < 1e-12


def test_what_is_not_right_with_a_shape_is_refused():
    """No region of it is known, as noise, clip and gains are other ones; persons' means would be in the ball."""
    case = Case(jgd.Sphere(2))
    mechanism = jgd.TangentLaplace(case.ball, 1.0, case.shape)
    release = mechanism.release(case.records)
    for refused in (lambda: release.expected_error, lambda: jgd.confidence_ball(release)):
        with pytest.raises(InputError):
            refused()
    with pytest.raises(InputError, match="persons"):
        mechanism.release(case.records, persons=np.arange(N))
    with pytest.raises(InputError, match="shape must be a Shape"):
        jgd.TangentLaplace(case.ball, 1.0, np.eye(3))
    rebuilt = jax.tree.map(lambda leaf: leaf, mechanism)
    object.__setattr__(rebuilt.shape, "gains", np.array(3.0))
    with pytest.raises(InputError, match="gains"):
        rebuilt.release(case.records)


def test_the_record_says_what_shape_it_was_and_what_is_supposed():
    case = Case(jgd.Sphere(2))
    record = jgd.TangentLaplace(case.ball, 1.0, case.shape).release(case.records).record
    said = record["shape"]
    assert (said["rank"], said["clip"], said["source"]) == (2, 0.25, "given")
    assert "supposed" in said and "Theorem Y" in record["sensitivity"]["formula"] and len(said["digest"]) == 64
    other = jgd.Shape(case.ball.center, case.vectors, 0.25, [0.9, 0.6])
    assert jgd.TangentLaplace(case.ball, 1.0, other).release(case.records).record["shape"]["digest"] != said["digest"]


def test_the_ball_of_records_with_a_shape_holds_all_of_its_ellipsoid():
    """However large the clip is: records are shortened in the shape's coordinates, not to a ball."""
    case = Case(jgd.Euclidean(2))
    law = jgd.TangentLaplace(case.ball, 1.0, jgd.Shape(case.ball.center, case.vectors, 3e7, [0.9, 0.5])).law(N)
    assert law.ball.radius >= 3e7 * np.linalg.norm(case.vectors, 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"point": np.array([0.0, 0.0, 1.0])}, "centre of the ball"),
        ({"point": np.zeros(2), "vectors": np.ones((1, 2))}, "array shape of points"),
        ({"vectors": np.eye(3)}, "tangent"),
        ({"vectors": "parallel"}, "independent"),
        ({"vectors": "flat"}, "1000 times"),
    ],
)
def test_a_shape_that_does_not_fit_the_ball_is_refused(change, words):
    case = Case(jgd.Sphere(2))
    first = case.vectors[0]
    special = {"parallel": np.stack([first, 2 * first]), "flat": np.stack([first, 1e-5 * case.vectors[1]])}
    change = {key: special.get(value, value) if isinstance(value, str) else value for key, value in change.items()}
    shape = dataclasses.replace(case.shape, gains=1.0, **change)
    with pytest.raises(InputError, match=words):
        jgd.TangentLaplace(case.ball, 1.0, shape)


@pytest.mark.parametrize(
    "change",
    [{"clip": 0.0}, {"clip": np.inf}, {"gains": 0.0}, {"gains": 1.1}, {"gains": [0.5] * 3}, {"point": "abc"},
     {"source": 5}, {"source": "a" * 201}, {"expected": "b"}, {"expected": np.nan}, {"vectors": [[1.0], [1.0, 2.0]]},
     {"vectors": np.zeros((0, 3))}, {"vectors": np.full((1, 3), np.nan)}, {"vectors": np.ones((2, 2))}],
)  # fmt: skip
def test_a_shape_of_wrong_numbers_is_refused(change):
    with pytest.raises(InputError, match="Shape"):
        dataclasses.replace(Case(jgd.Sphere(2)).shape, **change)


# Which shape ---------------------------------------------------------------------------------------------


def test_the_stated_error_is_that_of_populations_as_supposed():
    variances = np.array([8.0, 4.0, 2.0, 1.0, 0.5, 0.25])
    covariance = np.diag(variances / variances.sum())
    found = least_error(supposed_populations(covariance, 0.1, 0.15), 100, 1.0, True, 1e12)
    rng, errors = np.random.default_rng(5), []
    root, rank = np.sqrt(np.diag(covariance)), found.columns.shape[1]
    for _ in range(2000):
        mean = 0.1 * rng.normal(size=6) * root
        z = (mean + 0.15 * rng.normal(size=(100, 6)) * root) @ np.linalg.pinv(found.columns).T
        z *= np.minimum(1.0, found.clip / np.linalg.norm(z, axis=1))[:, None]
        way = rng.normal(size=rank)
        noise = 2 * found.clip / 100 * rng.gamma(rank) * way / np.linalg.norm(way)
        errors.append(np.sum((found.columns @ (found.gains * (z.mean(axis=0) + noise)) - mean) ** 2))
    sampling = 0.15**2 / 100  # how far the mean of 100 is from that of their population, which is not counted
    assert np.sqrt(np.mean(errors) - sampling) == pytest.approx(found.expected, rel=0.08)


def test_less_budget_takes_fewer_directions_and_draws_nearer_to_the_point():
    populations = supposed_populations(np.diag(0.5 ** np.arange(1.0, 9.0)), 0.1, 0.15)
    weak, strong = (least_error(populations, 100, strength, True, 1e12) for strength in (0.2, 20.0))
    assert weak.columns.shape[1] < strong.columns.shape[1] == 8
    assert weak.gains[0] < strong.gains[0] and weak.expected > strong.expected


def _groups(count, seed=0):
    """Populations of 100 records in 10 dimensions, with means of their own."""
    draws, root = np.random.default_rng(seed), np.sqrt(np.arange(1.0, 11.0) ** -1.5)
    return [(0.1 * draws.normal(size=10) + 0.15 * draws.normal(size=(100, 10))) * root for _ in range(count)]


@pytest.mark.parametrize("count", [2, 5])
def test_groups_are_judged_by_axes_of_others(count):
    """The stated error is that of further groups; by their own axes few groups would state a third of it."""
    stated, found = [], []
    for seed in range(20):
        own = least_error(Populations.of(_groups(count, seed)), 60, 1.0, True, 1e12)
        stated.append(own.expected**2)
        draws = np.random.default_rng(1000 + seed)
        for records in _groups(10, 500 + seed):
            z = records[:60] @ np.linalg.pinv(own.columns).T
            z *= np.minimum(1.0, own.clip / np.linalg.norm(z, axis=1))[:, None]
            way = draws.normal(size=z.shape[1])
            noise = 2 * own.clip / 60 * draws.gamma(len(way)) * way / np.linalg.norm(way)
            value = own.columns @ (own.gains * (z.mean(axis=0) + noise))
            found.append(np.sum((value - records[:60].mean(axis=0)) ** 2))
    assert np.sqrt(np.mean(stated)) == pytest.approx(np.sqrt(np.mean(found)), rel=0.15)


def test_with_many_records_hardly_any_is_clipped():
    skew = [np.random.default_rng(k).exponential(size=(200, 3)) - 1.0 + 0.1 * k for k in range(5)]
    clips = [least_error(Populations.of(skew), n, 1.0, False, 1e12).clip for n in (10, 1000, 10**6)]
    errors = [least_error(Populations.of(skew), n, 1.0, False, 1e12).expected for n in (10_000, 10**6)]
    assert clips[0] < clips[1] <= clips[2] and errors[0] < 0.01 and errors[1] < 1e-4


def test_of_one_group_there_are_all_directions_and_no_gains():
    vectors = np.random.default_rng(0).normal(size=(50, 3))
    found = least_error(Populations.of([vectors]), 100, 0.01, True, 1e12)
    assert found.columns.shape == (3, 3) and np.all(found.gains == 1.0)


def test_what_is_smooth():
    outline = np.exp(2j * np.pi * np.arange(12) / 12)
    shapes = jgd.PlanarShapes(12)
    point = np.asarray(shapes.from_landmarks(np.stack([outline.real, 2.0 * outline.imag], axis=1)))
    around, words = smoothness(shapes, point, 1.5)
    assert "outline" in words and np.trace(around) == pytest.approx(1.0) and np.linalg.eigvalsh(around)[0] > -1e-12
    scattered = np.random.default_rng(0).normal(size=(12, 2))
    point = np.asarray(shapes.from_landmarks(scattered))
    warps, words = smoothness(shapes, point, 1.5)
    assert "bending" in words and np.trace(warps) == pytest.approx(1.0)

    def variance(field):
        own = np.asarray(shapes.coordinates(point, shapes.to_tangent(point, field), shapes.frame(point)))
        return own @ warps @ own / (own @ own)

    stretched = point.real + 0j  # an affine map
    assert variance(stretched) > 3.0 * variance(np.where(np.arange(12) == 3, 1.0 + 0j, 0.0))
    matrices, words = smoothness(jgd.SPD(3), np.eye(3), 1.5)
    assert "trace" in words and np.linalg.eigvalsh(matrices)[-1] == pytest.approx(0.5)
    alike, words = smoothness(jgd.Sphere(2), np.array([0.0, 0.0, 1.0]), 1.5)
    assert np.allclose(alike, np.eye(2) / 2) and "alike" in words


@functools.cache
def _outlines(digit):
    """Template and shapes of 16 landmarks."""
    manifold = jgd.PlanarShapes(16)
    landmarks = datasets.template_outline(digit, 16), datasets.digit_outlines(digit, 16)
    return tuple(np.asarray(manifold.from_landmarks(own)) for own in landmarks)


@pytest.mark.parametrize(
    ("digit", "others"),
    [
        (2, (0, 3, 8)),
        *(pytest.param(own, tuple({*range(10)} - {own}), marks=pytest.mark.exhaustive) for own in (2, 3, 8)),
    ],
)
def test_a_mean_outline_is_told_at_half_an_epsilon(digit, others):
    manifold, (center, records) = jgd.PlanarShapes(16), _outlines(digit)
    ball, n = jgd.GeodesicBall(manifold, center, 0.3), len(records)
    mean = jgd.frechet_mean(manifold, records)
    groups, centers = [_outlines(own)[1] for own in others], [_outlines(own)[0] for own in others]
    shapes = {
        "none": None,
        "smooth": jgd.Shape.smooth(manifold, center, n, radius=0.3, epsilon=0.5),
        "groups": jgd.Shape.from_groups(manifold, center, groups, n, centers=centers, epsilon=0.5),
    }
    errors = {}
    for name, shape in shapes.items():
        draws = jgd.TangentLaplace(ball, 0.5, shape).simulate(jax.random.key(0), records, 200)
        errors[name] = float(jnp.mean(jax.vmap(manifold.dist, (None, 0))(mean, draws)))
    print(errors)
    assert errors["none"] > 0.17 and errors["smooth"] < 0.075 and errors["groups"] < 0.075
    assert shapes["smooth"].expected == pytest.approx(errors["smooth"], rel=0.4)
    assert f"{len(others)} public groups" in shapes["groups"].source and len(shapes["groups"].vectors) < 28


def test_shapes_are_refused_what_they_cannot_be_made_of():
    space, point = jgd.Sphere(2), [0.0, 0.0, 1.0]
    for more in ({}, {"epsilon": 1.0, "mu": 1.0}):
        with pytest.raises(InputError, match="epsilon or mu"):
            jgd.Shape.smooth(space, point, 10, radius=0.3, **more)
    for wrong in ({"radius": 0.0}, {"radius": 0.3, "offset": -1.0}, {"radius": 0.3, "power": np.nan}):
        with pytest.raises(InputError, match=r"Shape\.smooth"):
            jgd.Shape.smooth(space, point, 10, epsilon=1.0, **wrong)
    wrong_groups = [
        *(([], None), ([np.eye(3)], []), ([np.full((3, 3), np.nan)], None), ([np.eye(2)], None), (5, None)),
        *((["abc"], None), ([[point] * 5], None), ([np.eye(3)], [[0.0, 0.0, -1.0]])),
    ]
    for groups, centers in wrong_groups:
        with pytest.raises(InputError, match=r"group|opposite"):
            jgd.Shape.from_groups(space, point, groups, 10, centers=centers, epsilon=1.0)
    for wrong in ({"radius": 1e-200}, {"radius": 1e160}, {"n": 10**400}, {"epsilon": 1e-300}, {"power": 1e9}):
        with pytest.raises(InputError):
            jgd.Shape.smooth(space, point, **({"n": 10, "radius": 0.3, "epsilon": 1.0} | wrong))


# By the command ------------------------------------------------------------------------------------------


def _run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, done.output


@pytest.mark.parametrize("groups", [False, True])
def test_a_ball_with_a_shape_is_made_of_public_records_and_a_release_takes_it(tmp_path, groups):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(60, 2)) * [0.05, 0.02] + [1.0, 2.0]
    np.savetxt(tmp_path / "public.csv", np.column_stack([rows, np.repeat([0.0, 1.0], 30)]), delimiter=",")
    np.savetxt(tmp_path / "private.csv", rows[::2], delimiter=",")
    columns = ("--columns", "1-2", *(("--group", 3) if groups else ()))
    made = tmp_path / "ball.json"
    code, told = _run("ball", tmp_path / "public.csv", "--manifold", "euclidean", *columns, "--n", 30, "--mu", 1,
                      "--shape", "--out", made)  # fmt: skip
    assert code == 0 and "Shape:" in told, told
    shape = json.loads(made.read_text())["shape"]
    assert ("2 public groups of 60 records" if groups else "alike") in shape["source"]
    out = tmp_path / "mean.json"
    code, told = _run(
        "release", tmp_path / "private.csv", "--manifold", "euclidean", "--ball", made, "--mu", 1, "--out", out
    )
    assert code == 0 and "TangentGaussian" in told, told
    assert json.loads(out.read_text())["shape"]["source"] == shape["source"]
    for words in (("--mechanism", "wrapped-gaussian"), ("--mechanism", "gaussian")):
        code, told = _run(
            "release", tmp_path / "private.csv", "--manifold", "euclidean", "--ball", made, "--mu", 1, "--overwrite",
            *words, "--out", out,
        )  # fmt: skip
        assert code == 2 and "has a shape" in told.replace("\n", " "), told


def test_the_command_refuses_groups_without_a_shape_and_a_shape_that_is_none(tmp_path):
    np.savetxt(tmp_path / "public.csv", np.eye(3), delimiter=",")
    code, told = _run("ball", tmp_path / "public.csv", "--manifold", "sphere", "--group", 1, "--n", 30, "--mu", 1,
                      "--out", tmp_path / "ball.json")  # fmt: skip
    assert code == 2 and "--group is for --shape" in told.replace("\n", " ")
    wrong = {"manifold": {"name": "Sphere", "dim": 2, "curvature": 1.0}, "center": [0, 0, 1], "radius": 0.3}
    for shape in ({"vectors": 3}, {"vectors": [[1, 0, 0]], "clip": -1.0, "gains": 1.0}, [1]):
        (tmp_path / "ball.json").write_text(json.dumps(wrong | {"shape": shape}))
        code, told = _run("release", tmp_path / "public.csv", "--manifold", "sphere", "--ball", tmp_path / "ball.json",
                          "--mu", 1, "--out", tmp_path / "mean.json")  # fmt: skip
        assert code == 2 and "--ball" in told and not (tmp_path / "mean.json").exists(), told
