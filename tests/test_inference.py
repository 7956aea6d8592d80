"""Second moments, their privacy and integers; what describe charges and says; regions, tests, geodesics, synthesis."""

import dataclasses
import functools
import itertools
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure
from scipy import stats
from strategies import cap, exhaustive, name
from typer.testing import CliRunner

from jaxgeodp import (
    SPD,
    Euclidean,
    FrechetMedian,
    GeodesicBall,
    Hyperbolic,
    KNGMechanism,
    LaplaceMechanism,
    PlanarShapes,
    Rotations,
    Sphere,
    TangentLaplace,
)
from jaxgeodp.cli import app
from jaxgeodp.cli.compare import of_other_balls
from jaxgeodp.inference import (
    Description,
    FrechetVariance,
    SpreadMechanism,
    TangentCovariance,
    confidence_ball,
    describe,
    principal_geodesics,
    synthesize,
    two_sample_test,
)
from jaxgeodp.inference.against_center import expected_square
from jaxgeodp.inference.chain import split
from jaxgeodp.inference.known_noise import EntryNoise, MatrixNoise, noise_of
from jaxgeodp.inference.population import Population, geodesics_of, nearest_of_sum, population_of, shape_of
from jaxgeodp.inference.regions import Procedure, ball_of, replicated_means
from jaxgeodp.inference.shares import shares_of
from jaxgeodp.inference.unclipped import unclipped
from jaxgeodp.io import read
from jaxgeodp.mechanisms import AdaptiveMechanism, TangentGaussian, WrappedGaussian
from jaxgeodp.pictures import draw_record
from jaxgeodp.privacy import GaussianDP, Ledger, PureDP, Release, ZeroConcentratedDP, compose
from jaxgeodp.privacy.release import record_digest
from jaxgeodp.samplers import WrappedNormal

SPACES = [Sphere(2), *exhaustive(SPD(2), Hyperbolic(2), PlanarShapes(4), Rotations(), Euclidean(1))]
BALL = GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.5)
# Records of most descriptions: one set of programs, and a bootstrap draws so many 2000 times for each region.
N = 60


def scattered(manifold, spread, n, seed=0):
    return np.asarray(_scattered(manifold, n, spread, seed))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _scattered(manifold, n, spread, seed):
    origin = jnp.asarray(manifold.origin)
    keys = jax.random.split(jax.random.key(seed), n)
    return jax.vmap(lambda k: manifold.exp(origin, spread * manifold.random_tangent(k, origin)))(keys)


# Moments --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", SPACES, ids=name)
@pytest.mark.parametrize("statistic", [FrechetVariance(), TangentCovariance()], ids=["variance", "covariance"])
def test_no_record_moves_a_moment_by_more_than_the_sensitivity_and_some_by_nearly_that(space, statistic):
    """In integers, as they are released; records in all directions at all distances, beyond the rim and none."""
    ball, n = GeodesicBall(space, space.origin, 0.3), 2
    center = jnp.asarray(space.origin)
    frame = np.asarray(space.frame(center))
    about = np.asarray(space.exp(center, 0.2 * jnp.asarray(frame[0])))
    mechanism = SpreadMechanism(ball, about, statistic, mu=1.0)
    nearest, farthest = mechanism.reaches
    assert nearest == 0.0 and farthest == pytest.approx(0.5)
    directions = np.random.default_rng(0).normal(size=(60, space.dim))
    directions[:1] = np.eye(space.dim)[0]
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    lengths = np.resize([0.3, 0.3, 0.1, 0.0, 5.0], 60)
    vectors = np.concatenate([lengths[:, None] * directions * farthest / 0.3, np.full((1, space.dim), np.nan)])
    vectors = np.concatenate([vectors, -vectors, farthest * np.eye(space.dim)])
    seen = np.stack([statistic.steps([own[None]], nearest, farthest).astype(float) for own in vectors])
    apart = np.linalg.norm(seen[:, None] - seen[None], axis=-1)
    bound = statistic.sensitivity(space.dim, nearest, farthest)
    assert 0.97 * bound < apart.max() <= bound
    law = mechanism.law(n)
    assert law.terms.sensitivity == pytest.approx(bound * float(statistic.units(space.dim, farthest)[0]) / n)


@pytest.mark.parametrize("statistic", [FrechetVariance(), TangentCovariance()], ids=["variance", "covariance"])
def test_releases_are_the_moment_plus_noise_of_the_scale(statistic):
    data = scattered(Sphere(2), 0.1, 50)
    mechanism = SpreadMechanism(BALL, BALL.center, statistic, mu=1.0)
    law = mechanism.law(50)
    exact = np.asarray(law.numbers(data))
    by_hand = np.array([Sphere(2).coordinates(BALL.center, Sphere(2).log(BALL.center, x), law_frame()) for x in data])
    moment = by_hand.T @ by_hand / 50
    expected = [np.trace(moment)] if statistic == FrechetVariance() else moment[np.triu_indices(2)]
    np.testing.assert_allclose(exact, expected, rtol=1e-9)
    with jax.enable_x64(True):
        draw = law.grid(jax.ShapeDtypeStruct(data.shape, data.dtype)).draw
        more = 300 // len(expected) - 1
        values = [mechanism.release(data, numerics="grid").value, *(draw(data) for _ in range(more))]
    numbers = np.stack([np.asarray(statistic.to_numbers(np.asarray(value))) for value in values])
    noise = ((numbers - exact) / np.asarray(law.scale)).ravel()
    # The sum of squares tells a wrong scale better than four times as many numbers do in the other test.
    squares, chi2 = np.sum(noise**2), stats.chi2(len(noise))
    assert min(stats.kstest(noise, "norm").pvalue, chi2.cdf(squares), chi2.sf(squares)) > 1e-4
    assert max(chi2.sf(2.0 * squares), chi2.cdf(0.5 * squares)) < 1e-4, "planted"
    assert mechanism.guarantee == ZeroConcentratedDP(0.5)
    with pytest.raises(ValueError, match="numerics='grid'"):
        mechanism.release(data)


def law_frame():
    return jnp.asarray(Sphere(2).frame(jnp.asarray(BALL.center)))


def test_laplace_noise_of_a_matrix_has_independent_entries():
    mechanism = SpreadMechanism(BALL, BALL.center, TangentCovariance(), epsilon=2.0)
    record = mechanism.release(scattered(Sphere(2), 0.1, 50), numerics="grid").record
    assert record["guarantee"]["kind"] == "pure" and record["guarantee"]["epsilon"] == 2.0
    assert record["scale"] == pytest.approx(math.sqrt(3) * record["sensitivity"]["value"] / 2.0, rel=1e-6)


def test_calls_of_moments_are_refused_in_words():
    for call, words in (
        (lambda: SpreadMechanism(BALL, BALL.center), "epsilon or mu"),
        (lambda: SpreadMechanism(BALL, BALL.center, epsilon=1.0, mu=1.0), "epsilon or mu"),
        (lambda: SpreadMechanism(BALL, [1.0, 0.0, 0.0], mu=1.0), "must lie in the ball"),
        (lambda: SpreadMechanism(GeodesicBall(Sphere(2), BALL.center, 1.0), BALL.center, mu=1.0), "Assumption 1"),
        (lambda: describe(np.eye(3), Sphere(2)), "epsilon or mu"),
        (lambda: describe(np.eye(3), "sphere", mu=1.0), "needs a Manifold"),
        (lambda: describe(np.eye(3), Sphere(2), mu=1.0, ball=0.5), "GeodesicBall or None"),
        (lambda: describe(np.eye(3), Sphere(2), mu=-1.0), "mu"),
        (lambda: describe(np.eye(3), Sphere(3), mu=1.0, ball=BALL), "ball must be on the manifold"),
        (lambda: describe(np.ones((5, 2)), Sphere(2), mu=1.0, ball=BALL), "shape"),
        (lambda: describe(np.tile(BALL.center, (39, 1)), Sphere(2), mu=1.0, ball=BALL), "at least 40 records"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_calls_of_readers_are_refused_in_words(described):
    geodesics = principal_geodesics(described)
    for call, words in (
        (lambda: confidence_ball(None), "Description or a Release"),
        (lambda: confidence_ball(described, "0.9"), "number from 0 to 1"),
        (lambda: confidence_ball(described, 1.0), "between 0 and 1"),
        (lambda: two_sample_test(described, described.mean), "made by describe"),
        (lambda: principal_geodesics(described.mean), "made by describe"),
        (lambda: principal_geodesics(described, 0.999), "at most 0.9985, as there are 2000 replicates"),
        (lambda: synthesize(described, 3, 0), "random key"),
        (lambda: synthesize(described, 3, None), "random key"),
        (lambda: synthesize(described, 0, jax.random.key(0)), "at least 1"),
        (lambda: geodesics.along(True, [0.0]), "whole number"),
        (lambda: geodesics.along(0.5, [0.0]), "whole number"),
        (lambda: described.region.contains([0.0, 0.0, 2.0]), "needs a point"),
        (lambda: described.region.contains([0.0, 1.0]), "needs a point"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    assert synthesize(described, np.int64(3), jax.random.PRNGKey(0)).shape == (3, 3)


def test_files_of_several_descriptions_are_refused(described, tmp_path):
    """Each file belongs to the others: of another release, or changed by hand."""
    other = describe(scattered(Sphere(2), 0.1, N, seed=5), Sphere(2), mu=5.0, ball=BALL)
    for part in ("mean", "variance", "covariance"):
        described.save(folder := tmp_path / part)
        assert Description.load(folder).mean.record == described.mean.record
        getattr(other, part).save(folder / f"{part}.json")
        with pytest.raises(ValueError, match="exactly one description"):
            Description.load(folder)
    described.save(folder := tmp_path / "edited")
    text = json.loads((folder / "mean.json").read_text())
    (folder / "mean.json").write_text(json.dumps(text | {"n": 30_000}))
    with pytest.raises(ValueError, match="exactly one description"):
        Description.load(folder)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("description", lambda own: own["strengths"].update(mean=100.0)),
        ("description", lambda own: own.update(located=True)),
        ("description", lambda own: own.update(parameter="epsilon")),
        ("description", lambda own: own["guarantee"].update(adjacency="all is well")),
        ("mean", lambda own: own.update(value=[0.0, 0.0, 5.0])),
        ("mean", lambda own: own.update(scale=-1.0)),
        ("mean", lambda own: own["ball"].update(radius=9.0)),
        ("mean", lambda own: own.update(n="400")),
        ("variance", lambda own: own.update(n=7)),
        ("variance", lambda own: own.update(value=1e308)),
        ("variance", lambda own: own.update(value=[1.0, 2.0])),
        ("covariance", lambda own: own.update(value=[[1.0, 2.0], [0.0, 1.0]])),
        ("covariance", lambda own: own.update(value=[[1.0, 2.0, 3.0]] * 2)),
        ("covariance", lambda own: own["manifold"].update(curvature=2.0)),
    ],
)
def test_files_that_no_description_wrote_are_refused(part, change, described, tmp_path):
    """Even if somebody has made the digests anew."""
    described.save(tmp_path)
    document = json.loads((tmp_path / f"{part}.json").read_text())
    change(document)
    (tmp_path / f"{part}.json").write_text(json.dumps(document))
    public = json.loads((tmp_path / "description.json").read_text())
    if part != "description":
        public["records"][part] = record_digest(document)
        (tmp_path / "description.json").write_text(json.dumps(public))
    with pytest.raises(ValueError, match="exactly one description"):
        Description.load(tmp_path)


@pytest.mark.parametrize("space", [Sphere(2), *exhaustive(SPD(2), Hyperbolic(2), PlanarShapes(4))], ids=name)
def test_what_a_ball_cuts_off_is_put_back(space):
    """Moments of clipped draws of a known law give the law; without that it has less spread than was seen."""
    origin = jnp.asarray(space.origin)
    frame = np.asarray(space.frame(origin))
    truth = np.diag(np.linspace(0.1, 0.25, space.dim) ** 2)
    z = np.random.default_rng(1).normal(size=(20_000, space.dim)) @ np.sqrt(truth)
    points = jax.jit(jax.vmap(lambda own: space.exp(origin, space.combine(own, frame))))(z)
    for radius, least in ((1.5 * float(np.sqrt(np.trace(truth))), 0.02), (float(np.sqrt(np.trace(truth))), 0.2)):
        ball = GeodesicBall(space, origin, radius)
        kept = jax.jit(
            jax.vmap(lambda x, ball=ball: space.coordinates(origin, space.log(origin, ball.clipped_one(x)), frame))
        )(points)
        seen = np.cov(np.asarray(kept).T)
        known = Population(space, np.asarray(origin), frame, seen, float(np.trace(seen)), 0.0, EntryNoise(0.0), 10**6)
        found = unclipped(known, ball)
        assert np.trace(seen) < (1.0 - least) * np.trace(truth), "planted: clipping matters"
        np.testing.assert_allclose(np.trace(found.law), np.trace(truth), rtol=0.04)
        share = float(np.mean(np.linalg.norm(z, axis=1) > radius))
        assert found.clipped == pytest.approx(share, abs=0.02)
    wide = unclipped(known, GeodesicBall(space, origin, 3.0 * radius))
    np.testing.assert_allclose(wide.law, seen, atol=1e-4)
    # Of a law that noise makes as wide as the ball nothing is told, and about a mean outside nothing is put back.
    noisy = unclipped(dataclasses.replace(known, covariance=ball.radius**2 * np.eye(space.dim)), ball)
    assert noisy.wider
    assert noisy.clipped <= 2.0 / 3.0 or np.allclose(noisy.law, noisy.covariance)
    away = space.exp(origin, 1.1 * ball.radius * jnp.asarray(frame[0]))
    assert unclipped(dataclasses.replace(known, mean=np.asarray(away)), ball).law is None


@pytest.mark.parametrize(("mu", "fails"), [(1e10, ()), (0.05, ()), (2.0, (1,)), (2.0, (2,)), (2.0, (1, 2))])
def test_every_description_that_was_released_is_read_again(mu, fails, tmp_path, monkeypatch):
    """With hardly any noise, or much of it; and where one or both of the spreads could not be computed."""
    from jaxgeodp.inference import description as module

    real, calls = module.nearest_in_ball, []

    def nearest(*arguments):
        calls.append(0)
        if len(calls) in fails:
            raise FloatingPointError("planted")
        return real(*arguments)

    monkeypatch.setattr(module, "nearest_in_ball", nearest)
    describe(scattered(Sphere(2), 0.1, 60), Sphere(2), mu=mu, ball=BALL).save(tmp_path)
    assert Description.load(tmp_path).has_spread == (not fails)


def test_a_centre_that_no_ball_is_about_is_read_again(tmp_path):
    space, n = Hyperbolic(2), 3000
    center = space.exp(jnp.asarray(space.origin), 16.5 * space.frame(jnp.asarray(space.origin))[0])
    found = describe(np.broadcast_to(np.asarray(center), (n, 3)), space, mu=20.0, domain=15.0)
    found.save(tmp_path)
    assert Description.load(tmp_path).mean.record["ball"] == found.mean.record["ball"]


def test_a_spread_that_noise_hides_is_no_number(tmp_path):
    """60 records of standard deviation .2 at mu = .05: some releases are below what noise makes of none."""
    space, rng = Euclidean(1), np.random.default_rng(0)
    ball = GeodesicBall(space, np.zeros(1), 1.0)
    for _ in range(20):
        found = describe(0.2 * rng.normal(size=(60, 1)), space, mu=0.05, ball=ball)
        if found.population.hidden:
            break
    assert found.population.hidden and found.population.most_variance > 0.04
    with pytest.raises(ValueError, match="noise hides"):
        synthesize(found, 10, jax.random.key(0))
    found.save(tmp_path / "out")
    words = " ".join(run("show", tmp_path / "out").output.split())
    assert "hidden by its noise" in words and "their noise hides them" in words
    clear = describe(0.2 * rng.normal(size=(600, 1)), space, mu=2.0, ball=ball)
    assert not clear.population.hidden and clear.population.most_variance > 0.04


def test_one_direction_keeps_the_variance_that_it_has():
    """Noise of all directions, and a spread of one: scaling what is positive to the trace takes a third of it."""
    rng, dim, kept = np.random.default_rng(0), 12, []
    for _ in range(200):
        noise = 0.12 * rng.normal(size=(dim, dim)) / math.sqrt(dim)
        matrix = np.diag([1.0] + [0.0] * (dim - 1)) + (noise + noise.T) / math.sqrt(2.0)
        shape, _ = shape_of(matrix, 0.12**2 * (dim + 1), 1.0 / dim)
        values = np.linalg.eigvalsh(matrix)
        scaled = np.maximum(values, 0.0) / np.maximum(values, 0.0).sum()
        kept.append([np.linalg.eigvalsh(shape)[-1], scaled[-1]])
        assert np.trace(shape) == pytest.approx(1.0) and np.linalg.eigvalsh(shape)[0] > -1e-12
    right, wrong = np.mean(kept, axis=0)
    assert right > 0.82 and wrong < 0.75


def test_the_nearest_numbers_of_a_sum_are_nearest():
    rng = np.random.default_rng(0)
    for _ in range(50):
        values, total = rng.normal(size=6), rng.uniform(0.1, 3.0)
        found = nearest_of_sum(values, total)
        assert found.min() >= 0.0 and found.sum() == pytest.approx(total)
        others = rng.dirichlet(np.ones(6), 500) * total
        assert np.linalg.norm(found - values) <= np.linalg.norm(others - values, axis=1).min() + 1e-12
    # A sum that rounding hides beside the numbers.
    assert np.all(np.isfinite(nearest_of_sum(np.array([1.0, -1.0]), 1e-20)))


# Describe -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def described():
    return describe(scattered(Sphere(2), 0.1, N), Sphere(2), mu=5.0, ball=BALL)


def test_a_description_costs_its_budget_and_is_right(tmp_path):
    data = scattered(Sphere(2), 0.1, 800)
    ledger = Ledger(tmp_path / "budget.db", budget=ZeroConcentratedDP(3.0))
    found = describe(data, Sphere(2), mu=2.0, ball=BALL, ledger=ledger)
    assert ledger.account().releases == 1
    assert found.guarantee["rho"] == pytest.approx(2.0, rel=1e-6) and found.guarantee["rho"] <= 2.0
    parts = [release.record["guarantee"]["rho"] for release in found.releases.values()]
    assert math.fsum(parts) <= found.guarantee["rho"] * (1 + 1e-12)
    assert float(found.variance.value) == pytest.approx(0.02, rel=0.25)
    np.testing.assert_allclose(found.population.covariance, 0.01 * np.eye(2), atol=0.003)
    assert found.variance.record["about"] == found.mean.record["value"]
    with pytest.raises(ValueError, match="budget"):
        describe(data, Sphere(2), mu=2.0, ball=BALL, ledger=ledger)
    assert ledger.account().releases == 1


def test_no_record_changes_anything_but_values():
    def seen(data):
        found = describe(data, Sphere(2), mu=1.0, ball=BALL)
        drop = ("value", "created", "about", "frame", "sensitivity", "scale")  # what follows from the released mean
        records = [release.record for release in found.releases.values()]
        return json.dumps([{key: own for key, own in record.items() if key not in drop} for record in records])

    usual = scattered(Sphere(2), 0.1, 60)
    outcomes = set()
    for hostile in (usual[0], -BALL.center, np.full(3, np.nan), np.full(3, 1e300)):
        outcomes.add(seen(np.concatenate([usual[1:], [hostile]])))
    assert len(outcomes) == 1


@pytest.mark.parametrize("space", [Hyperbolic(2), *exhaustive(SPD(2), Sphere(2), PlanarShapes(5))], ids=name)
def test_where_no_ball_is_known_one_is_found(space):
    spread = 0.2 if space in (SPD(2), Hyperbolic(2)) else 0.05
    found = describe(scattered(space, spread, 3000), space, mu=1.0)
    assert "stages" in found.mean.record and found.covariance.record["ball"] == found.mean.record["ball"]
    assert float(found.variance.value) == pytest.approx(space.dim * spread**2, rel=0.3)


def test_a_description_is_saved_and_loaded(described, tmp_path):
    described.save(tmp_path / "out")
    with pytest.raises(FileExistsError):
        described.save(tmp_path / "out")
    times = {(tmp_path / "out" / f"{name}.json").stat().st_mtime for name in ("mean", "description")}
    assert len(times) == 1, "they state when the work began, not when it was done"
    again = Description.load(tmp_path / "out")
    assert again.region.radius == described.region.radius
    np.testing.assert_array_equal(again.population.covariance, described.population.covariance)
    whole = (tmp_path / "out" / "covariance.json").read_text()
    (tmp_path / "out" / "covariance.json").write_text(whole.replace('"scale"', '"sc"'))
    with pytest.raises(ValueError, match="exactly one description"):
        Description.load(tmp_path / "out")
    (tmp_path / "out" / "covariance.json").write_text(whole)
    text = (tmp_path / "out" / "description.json").read_text()
    assert '"rho": 1' in text
    (tmp_path / "out" / "description.json").write_text(text.replace('"rho": 1', '"rho": 2'))
    with pytest.raises(ValueError, match="exactly one description"):
        Description.load(tmp_path / "out")
    (tmp_path / "out" / "description.json").write_text("{}")
    with pytest.raises(ValueError, match="exactly one description"):
        Description.load(tmp_path / "out")


@pytest.mark.parametrize("parameter", ["epsilon", "mu"])
def test_shares_are_all_of_the_budget_and_never_more(parameter):
    few, many = (shares_of(parameter, 1.0, n, 3) for n in (50, 10**6))
    assert sum(few) == sum(many) == 100 and min(*few, *many) > 0
    assert few[0] < many[0], "few records: the noise of the matrix is what is large"
    for strength in (0.1, 0.2, 0.3, 0.7, 1.0, 3.1):
        whole = PureDP(strength) if parameter == "epsilon" else GaussianDP(strength).to_zcdp()
        for shares in itertools.product((38, 55, 68, 93), (2, 5, 15, 30), (5, 2, 30, 17)):
            own = [100 - shares[1] - shares[2], *shares[1:]]
            parts = split(parameter, strength, own)
            kinds = [PureDP(part) if parameter == "epsilon" else GaussianDP(part).to_zcdp() for part in parts]
            name = "epsilon" if parameter == "epsilon" else "rho"
            assert getattr(compose(kinds), name) <= getattr(whole, name)


def test_the_whole_of_a_pure_budget_can_be_spent(tmp_path):
    line = GeodesicBall(Euclidean(1), [0.0], 1.0)
    ledger = Ledger(tmp_path / "budget.db", budget=PureDP(0.2))
    data = np.random.default_rng(0).normal(size=(100, 1)) * 0.3
    found = describe(data, Euclidean(1), epsilon=0.2, ball=line, ledger=ledger)
    assert found.guarantee["kind"] == "pure" and 0.199 < found.guarantee["epsilon"] <= 0.2
    assert found.region.radius > 0.0


def test_a_pure_description_has_the_smaller_noise_and_its_reader_knows(tmp_path):
    """Of one number (a line, in the test above) both are the same, and integers need no exact arithmetic."""
    data = scattered(Sphere(2), 0.1, 200)
    found = describe(data, Sphere(2), epsilon=3.0, ball=BALL)
    assert "Theorem X" in found.covariance.record["guarantee"]["theorem"]
    assert "integers" in found.variance.record["sampler"]["exactness"]
    assert isinstance(found.population.noise, MatrixNoise)
    found.save(tmp_path / "out")
    again = Description.load(tmp_path / "out")
    assert again.population.noise == found.population.noise
    np.testing.assert_array_equal(principal_geodesics(again).intervals, principal_geodesics(found).intervals)


@pytest.mark.parametrize("way", ["gaussian", "laplace", "hull"])
def test_a_record_says_what_its_noise_is_like(way):
    ball, n, dim = GeodesicBall(Euclidean(3), np.zeros(3), 1.0), 50, 3
    mechanism = SpreadMechanism(ball, ball.center, **{"mu" if way == "gaussian" else "epsilon": 1.0})
    data, law = np.zeros((n, dim)), mechanism.law(n)
    record = mechanism.release(data, numerics="idealized" if way == "hull" else "grid").record
    with jax.enable_x64(True):
        drawn = (law if way == "hull" else law.grid.continuous()).simulate(jax.random.key(1), jnp.asarray(data), 3000)
    squares, norms = np.sum(np.asarray(drawn) ** 2, axis=(1, 2)), np.linalg.norm(drawn, 2, axis=(1, 2))
    agree = {}
    for other in (noise_of(record), EntryNoise(record["scale"]), EntryNoise(2.0 * record["scale"], laplace=True)):
        close = abs(squares.mean() - other.mean_square(dim)) < 5.0 * squares.std() / math.sqrt(len(squares))
        agree[other] = close and stats.ks_2samp(norms, np.linalg.norm(other.matrices(3000, dim), 2, axis=(1, 2))).pvalue
    assert agree.pop(noise_of(record)) > 1e-6 and all(pvalue < 1e-6 for pvalue in agree.values())


def test_a_mean_outside_the_ball_has_a_spread_about_a_point_of_it():
    """Matrices of condition e^18, little budget: the mean is often outside."""
    turn = np.array([[math.cos(0.7), -math.sin(0.7)], [math.sin(0.7), math.cos(0.7)]])
    center = turn @ np.diag([math.exp(9.0), math.exp(-9.0)]) @ turn.T
    ball = GeodesicBall(SPD(2), center, 0.1)
    for _ in range(6):
        found = describe(np.stack([center] * 40), SPD(2), mu=0.05, ball=ball)
        assert found.variance.record["scale"] is not None and found.covariance.record["scale"] is not None


def test_what_could_not_be_computed_says_so(monkeypatch):
    def fails(ball, point):
        raise FloatingPointError("of a record")

    monkeypatch.setattr("jaxgeodp.inference.description.nearest_in_ball", fails)
    found = describe(scattered(Sphere(2), 0.1, 60), Sphere(2), mu=1.0, ball=BALL)
    assert (
        found.variance.record["scale"] is None and "could not be computed" in found.variance.record["sampler"]["name"]
    )
    assert float(found.variance.value) == 0.0 and not np.any(found.covariance.value)
    with pytest.raises(ValueError, match="could not be computed"):
        found.region  # noqa: B018 - it raises


# What a reader makes of it --------------------------------------------------------------------------------


def test_regions_cover_the_truth_and_shrink_with_n(described, monkeypatch):
    region = described.region
    # Another level is another quantile of the same replicates.
    monkeypatch.setattr("jaxgeodp.inference.regions.replicated_means", None)
    assert region.contains([0.0, 0.0, 1.0]) and not region.contains([0.0, 0.6, 0.8])
    # Sampling alone: .95 quantile of a Rayleigh law, of the scale of n records with the variance that is told.
    assert 1.0 < region.radius / (math.sqrt(described.population.variance / 2 / N) * 2.4477) < 1.5
    assert confidence_ball(described, 0.5).radius < region.radius
    alone = confidence_ball(described.mean)
    assert alone.radius < region.radius and alone.target == "the Frechet mean of the clipped records"
    for level in (1.0, 0.9996):
        with pytest.raises(ValueError, match="level"):
            confidence_ball(described, level)


def test_a_region_names_what_it_covers():
    ball = GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.7)
    data = np.tile([[0.0, 0.0, 1.0], [0.6, 0.0, 0.8]], (20, 1))
    for mechanism, target in (
        (KNGMechanism(ball, 2.0, statistic=FrechetMedian()), "the Frechet median of the clipped records"),
        (TangentLaplace(ball, 2.0), "the mean of the logarithms at the public centre of the clipped records"),
        (LaplaceMechanism(ball, 2.0), "the Frechet mean of the clipped records"),
    ):
        assert confidence_ball(mechanism.release(data)).target == target
    mechanism = LaplaceMechanism(ball, 2.0)
    weighted = mechanism.release(data, weights=1.0 + np.arange(40) % 2)
    assert confidence_ball(weighted).target == "the weighted Frechet mean of the clipped records"
    of_persons = mechanism.release(data, persons=np.arange(40) // 2)
    assert confidence_ball(of_persons).target == "the Frechet mean of the clipped persons (one point each)"


def test_few_replicates_cover_as_often_as_many():
    """Distances of a known normal law are Rayleigh; an interpolated quantile about the mean of a few is caught."""
    space, n, spread, draws = Euclidean(2), 40, 0.1, 19
    covariance = spread**2 * np.eye(2)
    known = Population(space, np.zeros(2), np.eye(2), covariance, 2 * spread**2, 0.0, EntryNoise(0.0), 10**12)
    procedure = Procedure(WrappedGaussian(GeodesicBall(space, np.zeros(2), 1.0), 1e6), n)
    radii = []
    for seed in range(150):
        with jax.enable_x64(True):
            means = np.asarray(replicated_means(known, procedure, jax.random.key(seed), draws))
        usual = np.quantile(np.linalg.norm(means - means.mean(axis=0), axis=1), 0.95)
        radii.append([ball_of(known, procedure, 0.95, draws, seed).radius, usual])
    right, wrong = np.mean(1.0 - np.exp(-0.5 * n * np.square(radii) / spread**2), axis=0)
    assert abs(right - 0.95) < 0.015 and wrong < 0.92


@pytest.mark.parametrize(
    ("spreads", "n", "mu"),
    [
        ([0.2, 0.02, 0.02], 40, 100.0),
        *exhaustive(([0.25, 0.001, 0.001, 0.001], 400, 3.0), ([0.2], 40, 100.0), ([0.25] * 3, 200, 1.0)),
    ],
)
def test_intervals_hold_all_variances_together(spreads, n, mu):
    """Of releases of the two parts, made into a population as `describe` does; half as wide is caught."""
    dim, held, rng = len(spreads), np.zeros(2), np.random.default_rng(0)
    space, truth = Euclidean(dim), np.sort(np.square(spreads))[::-1]
    ball = GeodesicBall(space, np.zeros(dim), 1.0)
    parts = [SpreadMechanism(ball, ball.center, own(), mu=mu) for own in (FrechetVariance, TangentCovariance)]
    records = [own.release(np.zeros((n, dim)), numerics="grid").record for own in parts]
    for _ in range(60):
        data = rng.normal(size=(n, dim)) * spreads
        data -= data.mean(axis=0)
        of_variance, of_matrix = (own.scale(n) for own in parts)
        noise = of_matrix * rng.normal(size=(dim, dim)) / np.where(np.eye(dim) > 0, 1.0, 1.4)
        matrix = data.T @ data / n + np.triu(noise) + np.triu(noise, 1).T
        variance = float(np.sum(data**2) / n + of_variance * rng.normal())
        mean = Release(np.zeros(dim), {"n": n})
        both = (Release(np.asarray(value), record) for value, record in zip((variance, matrix), records, strict=True))
        found = geodesics_of(population_of(space, mean, *both, 0.0), 0.95, 300)
        middle, half = found.intervals.mean(axis=1), 0.5 * np.diff(found.intervals, axis=1)[:, 0]
        held += [np.all(np.abs(truth - middle) <= half), np.all(np.abs(truth - middle) <= 0.5 * half)]
    assert held[0] >= 54 > held[1]


def test_a_spread_that_could_not_be_computed_is_said(tmp_path, monkeypatch):
    """Nothing is refused after the charge: the mean is there, and the report says what is not."""
    monkeypatch.setattr("jaxgeodp.inference.description.nearest_in_ball", lambda *_: 1 / 0)
    np.save(tmp_path / "data.npy", scattered(Sphere(2), 0.1, 60))
    options = ["--manifold", "sphere", "--center", "origin", "--radius", "0.5", "--mu", "1"]
    result = CliRunner().invoke(app, ["describe", str(tmp_path / "data.npy"), *options, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0 and "could not be computed" in " ".join(result.output.split())
    assert (tmp_path / "out" / "report.html").exists()


def test_matrices_of_a_report_have_one_scale_and_say_how_far_they_are(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "jaxgeodp.pictures.description.picture_of", lambda record, share=1.0: drawn.append(record) or b""
    )
    np.save(tmp_path / "data.npy", np.exp(np.random.default_rng(0).normal(0.0, 0.3, (N, 2)))[:, :, None] * np.eye(2))
    options = ["--manifold", "spd", "--center", "origin", "--radius", "1.5", "--mu", "200"]
    result = CliRunner().invoke(app, ["describe", str(tmp_path / "data.npy"), *options, "--out", str(tmp_path / "out")])
    assert result.exit_code == 0 and "for all of them together, at level 0.95" in " ".join(result.output.split())
    title = (tmp_path / "out" / "report.html").read_text().split("How far the mean may be off")[1].split("<")[0]
    times = int(title.split("; ")[1].split(" times")[0])
    assert times > 1
    for place, words in (
        (0, f"rim of the region, {times} times as far"),
        (3, "-2 standard deviations"),
        (6, "-2 standard deviations"),
    ):
        along = drawn[place : place + 3]
        assert len({record["limit"] for record in along}) == 1
        assert max(np.linalg.norm(record["value"], 2) for record in along) == pytest.approx(along[0]["limit"])
        draw_record(along[0], figure := Figure())
        assert figure.axes[0].get_title() == words
        assert figure.axes[0].images[0].get_clim()[1] == along[0]["limit"]
    rim = [SPD(2).dist(np.asarray(record["value"]), np.asarray(drawn[1]["value"])) for record in drawn[:3:2]]
    found = Description.load(tmp_path / "out")
    np.testing.assert_allclose(rim, times * found.region.radius, rtol=1e-5)
    assert times == round(0.75 * math.sqrt(principal_geodesics(found).variances[0]) / found.region.radius)


def test_equal_means_are_not_told_apart_and_others_are(described):
    same = describe(scattered(Sphere(2), 0.1, N, 5), Sphere(2), mu=5.0, ball=BALL)
    turned = scattered(Sphere(2), 0.1, N, 6) @ np.array([[1, 0, 0], [0, 0.98, -0.199], [0, 0.199, 0.98]])
    other = describe(turned, Sphere(2), mu=5.0, ball=BALL)
    assert two_sample_test(described, same, draws=400).p_value > 0.01
    assert two_sample_test(described, other, draws=400).p_value == pytest.approx(1 / 401)
    few, more = (two_sample_test(described, other, draws=draws).critical for draws in (18, 19))
    assert math.isinf(few) and math.isfinite(more)  # 5 % of 18 are less than one


def test_principal_geodesics_and_synthetic_records():
    space, n = Euclidean(3), 4000
    data = np.random.default_rng(0).normal(size=(n, 3)) * [0.3, 0.1, 0.05]
    found = describe(data, space, mu=3.0, ball=GeodesicBall(space, np.zeros(3), 1.2))
    own = principal_geodesics(found)
    assert abs(own.directions[0] @ [1.0, 0.0, 0.0]) > 0.99
    assert own.intervals[0, 0] < 0.09 < own.intervals[0, 1] and own.shares[0] > 0.8
    np.testing.assert_allclose(own.along(0, [0.0])[0], found.mean.value, atol=1e-12)
    made = synthesize(found, 5000, jax.random.key(0))
    np.testing.assert_allclose(np.cov(made.T), found.population.covariance, atol=0.01)
    with pytest.raises(ValueError, match="place"):
        own.along(3, [0.0])
    with pytest.raises(ValueError, match="at least 1"):
        synthesize(found, 0, jax.random.key(0))


def test_noise_alone_gives_no_spread():
    """A matrix of noise is drawn to a multiple of the identity, whose trace is the variance."""
    space = Euclidean(6)
    ball = GeodesicBall(space, np.zeros(6), 1.0)
    found = describe(np.zeros((60, 6)), space, mu=1.0, ball=ball)
    values = np.linalg.eigvalsh(found.population.covariance)
    assert values.min() >= -1e-12 and values.sum() == pytest.approx(found.population.variance)
    raw = np.linalg.eigvalsh(np.asarray(found.covariance.value))
    assert raw.min() < 0.0, "as released, it is no covariance"
    with pytest.raises(ValueError, match="same point"):
        other = SpreadMechanism(ball, 0.1 * np.ones(6), TangentCovariance(), mu=1.0)
        population_of(space, found.mean, found.variance, other.release(np.zeros((60, 6)), numerics="grid"), 0.0)


# The wrapped normal law -----------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [Sphere(2), *exhaustive(SPD(2), Hyperbolic(2), Rotations())], ids=name)
def test_the_wrapped_normal_law_has_its_density(space):
    """Of draws, and of the density; on the sphere its integral by areas of cells is 1."""
    mean = cap(space, jnp.asarray(space.origin), 0.5, 1, 3)[0]
    covariance = jnp.diag(jnp.linspace(0.04, 0.09, space.dim))
    law = WrappedNormal(space, mean, covariance)
    draws = law.sample(jax.random.key(0), (4000,))
    assert bool(jnp.all(law.support(draws)))
    vectors = jax.vmap(lambda x: space.coordinates(mean, space.log(mean, x), law.frame))(draws)
    lengths = jnp.linalg.norm(vectors @ jnp.diag(1.0 / jnp.sqrt(jnp.diagonal(covariance))), axis=1)
    assert stats.kstest(np.asarray(lengths), stats.chi(space.dim).cdf).pvalue > 1e-6
    normal = stats.multivariate_normal(np.zeros(space.dim), np.asarray(covariance)).logpdf(np.asarray(vectors))
    volume = jax.vmap(lambda v: space.log_det_exp(mean, space.combine(v, law.frame)))(vectors)
    np.testing.assert_allclose(law.log_prob(draws), normal - np.asarray(volume), atol=1e-8)
    if space == Sphere(2):
        t, angles = ((np.arange(m) + 0.5) * end / m for m, end in ((300, math.pi), (200, 2.0 * math.pi)))
        flat = [np.outer(np.sin(t), turn) for turn in (np.cos(angles), np.sin(angles))]
        flat.append(np.outer(np.cos(t), np.ones_like(angles)))
        density = np.exp(np.asarray(law.log_prob(jnp.asarray(np.stack(flat, -1)))))
        total = np.sum(density * np.sin(t)[:, None]) * math.pi / 300 * 2.0 * math.pi / 200
        assert total == pytest.approx(1.0, abs=2e-3) and float(law.tail) < 0.02
    with pytest.raises(ValueError, match="shape"):
        WrappedNormal(space, mean, jnp.eye(space.dim + 1))


# The command ----------------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_file_becomes_records_and_a_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wide = np.random.default_rng(0).normal(size=(N, 3)) * [0.2, 0.02, 0.0] + [0.0, 0.0, 1.0]
    np.save("data.npy", wide / np.linalg.norm(wide, axis=1, keepdims=True))
    own = ("describe", "data.npy", "--manifold", "sphere", "--center", "origin", "--radius", 0.5)
    result = run(*own, "--mu", 10, "--out", "out")
    assert result.exit_code == 0 and "within" in result.output, result.output
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 7 and "standard deviation" in page
    assert "Principal geodesic 2 is not drawn, as noise hides it" in page, "a tenth of the first"
    again = Description.load(tmp_path / "out")
    assert f"{again.region.radius:.4g}" in page
    assert "Theorem N" in page and "guarantee is for the program" in page and "replace-one" in page
    # What has been released makes the same page again, and records that are nobody's.
    shown = run("show", "out", "--html", "again.html")
    assert shown.exit_code == 0 and (tmp_path / "again.html").read_text() == page, shown.output
    for file in ("made.npy", "made.parquet", "made.csv"):
        assert run("synthesize", "out", "--out", file, "--n", 50, "--seed", 3).exit_code == 0
    made = np.load("made.npy")
    np.testing.assert_array_equal(made, np.stack(list(pq.read_table("made.parquet").to_pydict().values()), axis=1))
    assert made.shape == (50, 3) and run("synthesize", "out", "--out", "made.txt").exit_code == 2
    np.testing.assert_array_equal(made, read("made.csv", Sphere(2), header=True, columns="x0-x2"))
    # A loaded mean tells its error, and two descriptions are compared.
    assert again.mean.expected_error.radius == pytest.approx(confidence_ball(again.mean).radius, rel=1e-12)
    assert 0.0 < confidence_ball(again.mean).radius < again.region.radius
    describe(np.load("data.npy"), Sphere(2), mu=15.0, ball=BALL).save(tmp_path / "other")
    compared = run("compare", "out", "other")
    assert compared.exit_code == 0 and f"of {N} and {N} records" in compared.output, compared.output
    assert float(compared.output.split("p-value:")[1].split()[0]) > 0.001
    for folder, words in (("out", "the same description"), ("out/mean.json", "is a file")):
        refused = run("compare", "out", folder)
        assert refused.exit_code == 2 and words in " ".join(refused.output.split()), refused.output
    assert run("compare", "out", "nowhere").exit_code == 1
    assert run("show", "out/covariance.json").exit_code == 0
    assert run("show", "out/covariance.json", "--html", "c.html").exit_code == 0
    for wrong, words in (
        (("--mu", 1, "--out", "out"), "exists"),
        (("--mu", 1, "--epsilon", 1, "--out", "other"), "give either --epsilon or --mu"),
        (("--out", "other"), "give either --epsilon or --mu"),
    ):
        refused = run(*own, *wrong)
        assert refused.exit_code == 2 and words in " ".join(refused.output.split()), refused.output


def test_groups_that_were_clipped_to_other_balls_are_compared_with_a_caution():
    """The same 200 records, described with a small ball and a large one, have means that differ significantly."""
    small, large = ({"ball": {"center": [0.0, 0.0, 1.0], "radius": radius}} for radius in (0.048, 0.6))
    assert of_other_balls(small, dict(small)) is None
    caution = of_other_balls(small, large)
    assert caution is not None and "radii 0.048 and 0.6" in caution and "one public ball" in caution


# Means in steps -----------------------------------------------------------------------------------------


def test_in_a_wide_ball_the_mean_is_released_in_steps_and_its_region_is_narrower(tmp_path, monkeypatch):
    line = Euclidean(2)
    ball = GeodesicBall(line, np.zeros(2), 10.0)
    data = np.random.default_rng(0).normal([3.0, 1.0], 0.5, (300, 2))
    ledger = Ledger(tmp_path / "book.db", budget=ZeroConcentratedDP(0.5))
    found = describe(data, line, mu=1.0, ball=ball, ledger=ledger)
    assert found.mean.record["mechanism"] == "AdaptiveMechanism" and found.guarantee["rho"] <= 0.5
    assert "integers" in found.mean.record["numerics"]["note"]
    monkeypatch.setattr("jaxgeodp.inference.mechanism_of_mean.steps_that_gain", lambda *_, **__: None)
    once = describe(data, line, mu=1.0, ball=ball)
    assert once.mean.record["mechanism"] == "WrappedGaussian"
    assert found.region.radius < 0.75 * once.region.radius
    found.save(tmp_path / "found")
    assert Description.load(tmp_path / "found").region.radius == found.region.radius


@pytest.mark.parametrize("budget", [{"mu": 1.0}, *exhaustive({"epsilon": 1.0})])
def test_the_noise_of_steps_is_known_from_their_record(budget):
    """Of records without spread, whose mean is moved by noise alone."""
    ball, n = GeodesicBall(Euclidean(2), np.zeros(2), 1.0), 1000
    data = np.tile([0.4, 0.2], (n, 1)) + 0.05 * np.random.default_rng(0).normal(size=(n, 2))
    mechanism = AdaptiveMechanism(ball, **budget)
    releases = [mechanism.release(data) for _ in range(40)]
    squares = [np.sum((own.value - data.mean(axis=0)) ** 2) for own in releases]
    stated = [expected_square(own, 2, *budget) for own in releases]
    assert 0.5 < np.mean(stated) / np.mean(squares) < 1.5
    if "mu" in budget:
        assert np.mean(stated) < 0.5 * expected_square(TangentGaussian(ball, 1.0).release(data), 2, "mu")


def test_steps_that_no_release_has_are_refused(tmp_path):
    ball = GeodesicBall(Euclidean(2), np.zeros(2), 10.0)
    found = describe(np.random.default_rng(0).normal([3.0, 1.0], 0.5, (300, 2)), Euclidean(2), mu=1.0, ball=ball)
    last = found.mean.record["steps"][-1]
    for place, steps in enumerate(([], [last | {"scale": -1.0}], [last | {"asked": "nothing"}], "none", None)):
        record = found.mean.record | {"steps": steps}
        named = found.public["records"] | {"mean": record_digest(record)}
        mean = Release(found.mean.value, record)
        folder = tmp_path / str(place)
        dataclasses.replace(found, mean=mean, public=found.public | {"records": named}).save(folder)
        with pytest.raises(ValueError, match="does not hold exactly one description"):
            Description.load(folder)


def test_replicates_of_steps_are_released_as_in_integers():
    """A filled ball is then released as a mean of logarithms, with its noise."""
    law = AdaptiveMechanism(GeodesicBall(Hyperbolic(2), Hyperbolic(2).origin, 1.0), mu=1.0).law(100)
    assert law.whole.scale > law.in_integers.whole.scale == law.mean.scale
