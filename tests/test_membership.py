"""What a plain mean tells of its members: tests of membership, against simulations of their own and against theory."""

import dataclasses
import json
import math
import stat

import jax
import numpy as np
import pytest
from scipy import stats
from strategies import exhaustive
from typer.testing import CliRunner

from jaxgeodp import (
    SPD,
    ApproximateDP,
    Euclidean,
    GaussianDP,
    GeodesicBall,
    LaplaceMechanism,
    PlanarShapes,
    PureDP,
    Rotations,
    Sphere,
    TangentGaussian,
    TangentLaplace,
    ZeroConcentratedDP,
    frechet_mean,
)
from jaxgeodp.cli import app
from jaxgeodp.inference import FrechetVariance, SpreadMechanism
from jaxgeodp.locating import LocatedMechanism
from jaxgeodp.privacy import membership
from jaxgeodp.privacy.power import most_area, most_power
from jaxgeodp.privacy.two_laws import told_apart
from jaxgeodp.samplers import WrappedNormal

RNG = np.random.default_rng(0)
FLAT = Euclidean(6)
RECORDS = RNG.normal(size=(10, 6)) @ np.diag([1.0, 2.0, 0.5, 1.0, 1.0, 3.0])
BALL = GeodesicBall(FLAT, np.zeros(6), 8.0)


def of_r(n, dim, draws, seed=1, scale=0.0):
    """By NumPy alone: scores of a linear test of normal records, known moments, with normal noise of a scale."""
    rng = np.random.default_rng(seed)
    scores = []
    for inside in (True, False):
        records, target = rng.normal(size=(draws, n, dim)), rng.normal(size=(draws, dim))
        if inside:
            records[:, 0] = target
        mean = records.mean(axis=1) + scale * rng.normal(size=(draws, dim))
        scores.append(n * (mean * target).sum(axis=1) - 0.5 * (target**2).sum(axis=1))
    return told_apart(*scores)


# Scores of two laws ----------------------------------------------------------------------------------------------


def test_areas_and_their_errors_are_those_of_mann_and_whitney():
    mine, theirs = RNG.normal(size=200) + 1.0, np.round(RNG.normal(size=300), 1)
    mine = np.round(mine, 1)  # with ties
    found = told_apart(mine, theirs)
    assert math.isclose(found.area, stats.mannwhitneyu(mine, theirs).statistic / 60_000, rel_tol=1e-12)
    many = [told_apart(RNG.normal(size=200) + 1.0, RNG.normal(size=300)).area for _ in range(400)]
    assert 0.85 < np.std(many) / found.area_sd < 1.2
    assert np.isclose(np.mean(many), stats.norm.cdf(1 / math.sqrt(2)), atol=0.004)
    one = told_apart(RNG.normal(size=40_000) + 1.0, RNG.normal(size=40_000))
    assert abs(one.power(0.1) - stats.norm.cdf(1.0 + stats.norm.ppf(0.1))) < 0.01
    assert np.all(np.diff(one.curve) >= 0.0) and np.all(one.curve[:, [0, -1]] == [[0, 1], [0, 1]])


@pytest.mark.parametrize("guarantee", [PureDP(0.7), GaussianDP(1.3), ApproximateDP(1.0, 0.01), ZeroConcentratedDP(0.4)])
def test_power_is_bounded_as_each_guarantee_says(guarantee):
    q = np.linspace(0.0, 1.0, 2001)
    power = most_power(guarantee, q)
    assert np.all(np.diff(power) >= -1e-12) and np.all(power >= q) and power[-1] == 1.0
    assert np.all(np.diff(power, 2) <= 1e-9), "it is concave, so that it holds for averages"
    assert 0.0 <= most_area(guarantee) - np.trapezoid(power, q) < 1e-3
    match guarantee:
        case PureDP(epsilon):  # of randomised response, which attains the bound where it bends
            assert np.isclose(most_power(guarantee, 1 / (1 + math.exp(epsilon))), 1 / (1 + math.exp(-epsilon)))
        case ApproximateDP(epsilon, delta):
            assert np.isclose(most_power(guarantee, 0.1), delta + math.exp(epsilon) * 0.1)
        case GaussianDP(mu):
            assert np.isclose(most_power(guarantee, 0.2), 1 - stats.norm.cdf(stats.norm.ppf(0.8) - mu))
        case ZeroConcentratedDP(rho):  # which normal noise of mu = sqrt(2 rho) has
            assert np.all(power >= most_power(GaussianDP(math.sqrt(2.0 * rho)), q) - 1e-12)
            assert most_power(guarantee, 0.01) < 0.11
            assert 1.0 - most_power(guarantee, 0.99) > 0.5 * (1.0 - most_power(GaussianDP(math.sqrt(2.0 * rho)), 0.99))


# Against simulations that share nothing -----------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.0, 0.6])
def test_on_flat_space_it_is_what_numpy_finds(scale):
    n, dim = 12, 6
    records = RNG.normal(size=(n, dim))
    whitened = records - records.mean(axis=0)
    values, axes = np.linalg.eigh(np.cov(whitened, rowvar=False))
    records = whitened @ axes / np.sqrt(values)  # of moments 0 and 1
    mechanisms = (
        [] if not scale else [TangentGaussian(GeodesicBall(Euclidean(dim), np.zeros(dim), 20.0), 40 / n / scale)]
    )
    seen = []
    tell = lambda *told: seen.append(told)  # noqa: E731
    found = membership(records, Euclidean(dim), mechanisms, digits=None, draws=8000, progress=tell)
    assert all(most == 6 * 8000 for _, _, most in seen) and seen[-1][1] == 6 * 8000
    of_last = [done for name, done, _ in seen if name == seen[-1][0]]
    assert of_last == sorted(of_last) and of_last[0] > 0
    own, other = found.tests[-1].told, of_r(n, dim, 200_000, scale=scale)
    assert abs(own.area - other.area) < 0.02 and own.area > other.area - 0.012  # its score knows both covariances
    d = 1.0 / math.sqrt(n * (1 + n * scale**2))
    assert abs(found.tests[-1].theory[0] - stats.norm.cdf(d * math.sqrt(dim / 2.0))) < 0.02
    if not scale:
        assert found.place == int(np.argmax(np.sum(records**2, axis=1)))
        assert found.tests[0].exposed.area > own.area


SPACES = {
    "sphere": (Sphere(2), np.array([0.0, 0.0, 1.0]), np.diag([0.09, 0.04])),
    "spd": (SPD(3), np.eye(3), np.diag([0.3, 0.1, 0.1, 0.05, 0.05, 0.02])),
    "shapes": (PlanarShapes(5), PlanarShapes(5).origin, np.diag([0.01, 0.005, 0.002, 0.002, 0.001, 0.001])),
}


@pytest.mark.parametrize("space", SPACES)
def test_on_manifolds_it_is_what_another_simulation_finds(space):
    """By a linear test in the coordinates at another point, with records of the law itself."""
    manifold, center, covariance = SPACES[space]
    n, draws = 10, 6000
    with jax.enable_x64(True):
        law = WrappedNormal(manifold, center, covariance)
        points, public = law.sample(jax.random.key(0), (n,)), law.sample(jax.random.key(1), (5000,))
        found = membership(points, manifold, population=public, digits=None, draws=draws)
        origin = points[0]
        frame = manifold.frame(origin)

        @jax.jit
        def coordinates(x):
            return jax.vmap(lambda own: manifold.coordinates(origin, manifold.log(origin, own), frame))(x)

        @jax.jit
        def means(x):
            return coordinates(jax.vmap(lambda own: frechet_mean(manifold, own))(x))

        scores, targets = [], np.resize(np.arange(n), draws)
        for inside in (True, False):
            records = law.sample(jax.random.key(2 + inside), (draws, n))
            if inside:
                records = records.at[:, 0].set(points[targets])
            scores.append(np.asarray(means(records)))
        known = np.asarray(coordinates(law.sample(jax.random.key(9), (20_000,))))
        mean, inverse = known.mean(axis=0), np.linalg.inv(np.cov(known, rowvar=False))
        away = np.asarray(coordinates(points))[targets] - mean
        weights = away @ inverse
    other = told_apart(*(np.sum((n * (own - mean) - 0.5 * away) * weights, axis=1) for own in scores))
    assert abs(found.tests[0].told.area - other.area) < 0.025
    assert abs(found.tests[0].told.area - found.tests[0].theory[0]) < 0.025
    assert found.tests[0].told.area > 0.6


@pytest.mark.parametrize(
    "statistics", [("median",), ("variance",), ("covariance",), ("mean", "variance", "covariance")]
)
def test_other_statistics_tell_as_theory_has_it(statistics):
    records = RNG.normal(size=(40, 3))
    draws = 1000 if statistics == ("median",) else 6000
    found = membership(records, Euclidean(3), statistics=statistics, digits=None, draws=draws)
    (test,) = found.tests
    assert abs(test.told.area - test.theory[0]) < 0.03 and test.told.area > 0.5 + 2 * test.told.area_sd
    assert abs(test.exposed.area - test.theory_exposed[0]) < 0.06
    if len(statistics) == 3:
        mean = membership(records, Euclidean(3), digits=None, draws=2000).tests[0]
        assert test.theory[0] > mean.theory[0] + 0.02, "together they tell more"


def test_what_is_known_of_the_population_may_be_public_records():
    records, public = RNG.normal(size=(15, 4)), RNG.normal(size=(3000, 4))
    found = membership(records, Euclidean(4), population=public, digits=None, draws=4000)
    assert "3000 public records" in found.population
    assert abs(found.tests[0].told.area - stats.norm.cdf(math.sqrt(4 / 30))) < 0.04


def test_a_record_far_from_all_others_is_told_whatever_the_others_are():
    """It must not make the covariance that it is measured in."""
    records = RNG.normal(size=(30, 3))
    records[7] = [1e3, 0.0, 0.0]
    found = membership(records, Euclidean(3), digits=None, draws=1000)
    assert found.place == 7 and found.tests[0].exposed.area > 0.999 and found.tests[0].found_exposed > 0.99


@pytest.mark.parametrize(
    ("n", "dim", "within"), [(10, 26, 0.04), (3, 3, 0.06), (50, 63, 0.03), *exhaustive((50, 100, 0.03))]
)
def test_few_records_of_many_numbers_are_told_as_the_formula_has_it(n, dim, within):
    """What the test has to learn of the law may not cost it: two covariances learned apart lose .07 and .09 here."""
    found = membership(RNG.normal(size=(n, dim)), Euclidean(dim), digits=None, draws=max(2000, 20 * dim))
    assert abs(found.tests[0].theory[0] - stats.norm.cdf(math.sqrt(dim / (2 * n)))) < 0.05
    assert abs(found.tests[0].told.area - found.tests[0].theory[0]) < within


def test_numbers_that_never_vary_cost_nothing():
    """Pixels that are black in all images: what rounding makes of them is no news of anybody."""
    public = np.abs(RNG.normal(size=(400, 12))) * (np.arange(12) < 8)
    public /= np.linalg.norm(public, axis=1, keepdims=True)
    found = membership(public[:20], Sphere(11), population=public, digits=None, draws=2000)
    assert abs(found.tests[0].told.area - found.tests[0].theory[0]) < 0.03
    assert abs(found.tests[0].theory[0] - stats.norm.cdf(math.sqrt(7 / 40))) < 0.03


def test_numbers_that_rounding_makes_constant_do_not_hide_the_others():
    """Ages beside ratios: digits are those of the largest."""
    public = RNG.normal(size=(2000, 3)) * [10.0, 10.0, 1e-4] + [50.0, 50.0, 0.5]
    plain, rounded = membership(public[:20], Euclidean(3), population=public, digits=3, draws=4000).tests
    assert plain.told.area > 0.58 and abs(rounded.told.area - stats.norm.cdf(math.sqrt(2 / 40))) < 0.04


def test_the_order_of_public_records_does_not_matter():
    records, public = RNG.normal(size=(20, 3)), RNG.normal(size=(9000, 3))
    ordered = public[np.argsort(public[:, 0])]
    one, other = (membership(records, Euclidean(3), population=p, digits=None, draws=500) for p in (public, ordered))
    assert abs(one.tests[0].theory[0] - other.tests[0].theory[0]) < 0.02


def test_the_order_of_records_does_not_matter_beside_public_ones():
    """The first of a file that is sorted are not typical of it."""
    records, public = RNG.normal(size=(1500, 3)), RNG.normal(size=(9000, 3))
    ordered = records[np.argsort(np.linalg.norm(records, axis=1))]
    one, other = (
        membership(own, Euclidean(3), population=public, digits=None, draws=500) for own in (records, ordered)
    )
    assert abs(one.tests[0].theory[0] - other.tests[0].theory[0]) < 0.003


def test_covariances_of_the_shape_of_a_point_are_no_points():
    rotations = Rotations()
    with jax.enable_x64(True):
        points = WrappedNormal(rotations, np.eye(3), 0.1 * np.eye(3)).sample(jax.random.key(0), (30,))
        found = membership(points, rotations, statistics=("covariance",), digits=None, draws=2000).tests[0]
    assert abs(found.told.area - found.theory[0]) < 0.05 and found.theory[0] > 0.55


def test_rounding_hides_what_it_takes_away():
    records = 100.0 + 1e-3 * RNG.normal(size=(10, 3))
    fine, coarse = (membership(records, Euclidean(3), digits=k, draws=1000).tests[1].told.area for k in (8, 3))
    assert fine > 0.6 and abs(coarse - 0.5) < 1e-3  # the last bits of one rounded number may differ


# Guarantees ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism", "draws"),
    [(TangentGaussian, 20_000), *exhaustive((TangentGaussian, 100_000), (TangentLaplace, 100_000))],
)
def test_no_test_exceeds_the_guarantee(mechanism, draws):
    found = membership(RECORDS, FLAT, [mechanism(BALL, 1.0)], digits=None, draws=draws)
    test = found.tests[-1]
    for told in (test.told, test.exposed):
        assert told.area < test.most[0] + 4 * told.area_sd
        q, power = told.curve
        room = 2.5 / math.sqrt(draws)  # of both shares, at the family level 1e-6
        assert np.all(power <= most_power(mechanism(BALL, 1.0).guarantee, np.minimum(q + room, 1.0)) + room)
    assert not found.violated


def test_a_tenth_of_the_noise_is_told():
    class Planted(TangentGaussian):
        def law(self, n, shape=()):
            own = super().law(n, shape)
            return dataclasses.replace(own, scale=0.1 * own.scale)

    honest = membership(RECORDS, FLAT, [TangentGaussian(BALL, 1.0)], digits=None, draws=2000)
    planted = membership(RECORDS, FLAT, [Planted(BALL, 1.0)], digits=None, draws=2000)
    assert not honest.violated and 0.0 < honest.audits[0].lower_bound < 1.0
    assert planted.violated and planted.audits[0].lower_bound > 1.5
    assert planted.tests[-1].told.area > honest.tests[-1].told.area + 0.05


def test_any_release_is_compared_on_its_manifold():
    manifold, center, covariance = SPACES["sphere"]
    points = WrappedNormal(manifold, center, covariance).sample(jax.random.key(0), (60,))
    ball = GeodesicBall(manifold, center, 0.6)
    several = [LaplaceMechanism(ball, 0.5), SpreadMechanism(ball, ball.center, FrechetVariance(), epsilon=0.5)]
    found = membership(points, manifold, several, statistics=("mean", "variance"), draws=1000)
    assert [test.published for test in found.tests] == ["mean, variance", "mean, variance, 3 digits", "release"]
    assert found.tests[-1].most == pytest.approx((1 / (1 + math.exp(-1)), 0.01 * math.e))
    assert len(found.audits) == 2 and not found.violated
    assert str(found).splitlines()[0].startswith("what is published") and len(str(found).splitlines()) == 4


# What is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"statistics": ("mode",)}, "statistics must be of"),
        ({"statistics": ()}, "at least one statistic"),
        ({"digits": 0}, "digits"),
        ({"draws": 10}, "draws"),
        ({"draws": 400, "statistics": ("covariance",)}, "at least 420"),
        ({"population": np.zeros((3, 6))}, "population must be at least 12 points"),
        ({"population": np.zeros((30, 5))}, "population must have shape"),
        ({"population": np.zeros((30, 6, 1))}, "population must have shape"),
        ({"mechanisms": [TangentGaussian(GeodesicBall(Euclidean(2), np.zeros(2), 1.0), 1.0)]}, "the records are on"),
    ],
)
def test_calls_that_make_no_sense_are_refused_in_words(words, said):
    with pytest.raises(ValueError, match=said):
        membership(RECORDS, FLAT, **words)


def test_records_that_are_no_points_are_left_out():
    spoiled = np.concatenate([RECORDS, np.full((2, 6), np.nan)])
    found = membership(spoiled, FLAT, digits=None, draws=500)
    assert (found.n, found.left_out) == (10, 2)
    first = membership(np.concatenate([spoiled[-2:], RECORDS]), FLAT, digits=None, draws=500)
    assert first.place == found.place + 2, "by its place among all"
    with pytest.raises(ValueError, match="at least 3 points"):
        membership(np.full((5, 6), np.nan), FLAT)
    sphere, center, covariance = SPACES["sphere"]
    points = np.array(WrappedNormal(sphere, center, covariance).sample(jax.random.key(0), (12,)))
    points[3] = 0.0  # finite, and no direction
    found = membership(points, sphere, digits=None, draws=500)
    assert (found.n, found.left_out) == (11, 1)


# The command ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("data.csv", RECORDS, delimiter=",")
    np.savetxt("public.csv", RNG.normal(size=(50, 6)), delimiter=",")
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, ["attack", *map(str, words)])


OWN = ("data.csv", "--manifold", "euclidean", "--draws", 500)


def test_the_report_is_for_the_custodian_alone(folder):
    result = run(*OWN, "--center", "origin", "--radius", 8, "--mu", 1, "--out", "out.txt")
    assert result.exit_code == 0, result.output
    for name in ("out.txt", "out.png"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    text = (folder / "out.txt").read_text()
    assert "Audit, of somebody who knows all other records" in text
    assert text.startswith("PRIVATE") and "release" in text and "0.760" in text and "PRIVATE" in result.output
    assert run(*OWN, "--out", "out.txt").exit_code == 2, "it exists"
    told = json.loads(run(*OWN, "--population", "public.csv", "--out", "out.txt", "--overwrite", "--json").output)
    assert told["private"] and [test["published"] for test in told["tests"]] == ["mean", "mean, 3 digits"]
    assert "50 public records" in (folder / "out.txt").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--statistic", "mode"), "--statistic must be one of"),
        (("--mechanism", "wrapped"), "give --epsilon or --mu, too"),
        (("--population", "data.csv"), "must be another file than the private one"),
        (("--epsilon", 1, "--mu", 1, "--radius", 3), "give only one of them"),
        (("--mu", 1), "a public ball is needed"),
        (("--statistic", "description", "--mechanism", "wrapped", "--epsilon", 1), "leave out --mechanism"),
        (("--population", "none.csv"), "none.csv"),
    ],
)
def test_bad_calls_write_nothing(folder, words, said):
    result = run(*OWN, *words, "--out", "out.txt")
    assert result.exit_code == 2 and said in " ".join(result.output.split()), result.output
    assert not (folder / "out.txt").exists() and not (folder / "out.png").exists()


def test_a_description_tells_more_than_its_mean(folder):
    words = ("--center", "origin", "--radius", 8, "--mu", 1, "--statistic", "description", "--out", "out.txt")
    result = run("data.csv", "--manifold", "euclidean", "--draws", 600, *words)
    assert result.exit_code == 0, result.output
    assert "mean, variance, covariance" in result.output and "release" in result.output


@pytest.mark.exhaustive
def test_searches_are_compared_too():
    points = WrappedNormal(SPD(2), np.eye(2), 0.1 * np.eye(3)).sample(jax.random.key(0), (200,))
    found = membership(points, SPD(2), [LocatedMechanism(SPD(2), mu=4.0)], digits=None, draws=200)
    assert found.tests[-1].told.area < found.tests[-1].most[0] and found.tests[-1].published == "release"
