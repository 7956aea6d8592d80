"""What is told of records in a ball that is small beside the noise: no more than such records can have."""

import dataclasses
import math
import warnings

import numpy as np
import pytest

from jaxgeodp import Euclidean, GeodesicBall, Sphere
from jaxgeodp.cli.description_report import report_of_new, summary_and_page
from jaxgeodp.inference import describe, principal_geodesics
from jaxgeodp.privacy import Release

RADIUS = 0.048
PLANE = Euclidean(2)
BALL = GeodesicBall(PLANE, np.zeros(2), RADIUS)


@pytest.fixture(scope="module")
def described():
    data = 0.02 * np.random.default_rng(0).normal(size=(150, 2))
    return describe(data, PLANE, mu=1.0, ball=BALL)


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch):
    """They take seconds; a page has their places."""
    monkeypatch.setattr("jaxgeodp.pictures.description.picture_of", lambda record, share=1.0: b"", raising=False)


def planted(found, variance=None, covariance=None, mean=None, scale=None):
    """The description as it would be had these values been released; with noise of the mean of another scale."""
    parts = {}
    for name, value in (("variance", variance), ("covariance", covariance), ("mean", mean)):
        own = getattr(found, name)
        record = dict(own.record)
        if name == "mean" and scale is not None:
            record["scale"] = scale
            record.pop("steps", None)  # as of one release
        parts[name] = Release(own.value if value is None else np.asarray(value, float), record)
    return dataclasses.replace(found, **parts)


def test_no_spread_is_more_than_records_in_the_ball_can_have(described):
    """Whatever noise has made of it: in all, along each principal geodesic, and at the ends of intervals."""
    for variance, matrix in ((9.0 * RADIUS**2, np.diag([60.0, 20.0])), (-(RADIUS**2), np.diag([9.0, -9.0]))):
        found = planted(described, variance, RADIUS**2 * matrix)
        population, own = found.population, principal_geodesics(found)
        assert population.variance <= RADIUS**2 >= np.trace(population.covariance) - 1e-15
        assert population.variance <= population.most_variance <= RADIUS**2
        assert np.all(own.intervals[:, 1] <= RADIUS**2 / np.array([1.0, 2.0]))
        assert np.all((own.intervals[:, 0] <= own.variances) & (own.variances <= own.intervals[:, 1] + 1e-15))
    rows, _ = summary_and_page(planted(described, 9.0 * RADIUS**2, RADIUS**2 * np.diag([60.0, 20.0])))
    assert f"root mean square distance {RADIUS:g} of the records" in rows["Spread"]
    assert f"at most about {RADIUS:g}, the radius of the ball" in rows["Spread"]


@pytest.mark.parametrize("place", ["inference.principal_geodesics", "pictures.description.picture_of"])
def test_a_summary_that_cannot_be_computed_is_no_exception(described, monkeypatch, place):
    """All has been paid for."""
    assert report_of_new(described) == summary_and_page(described)

    def broken(*_):
        warnings.warn("of what was released", stacklevel=1)
        raise ZeroDivisionError

    monkeypatch.setattr(f"jaxgeodp.{place}", broken)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows, page = report_of_new(described)
    assert rows["Summary"] == "could not be computed of what was released" and rows["Summary"] in page
    assert "rho = 0.5" in rows["Promise"] and "Spread" not in rows


def test_a_description_with_little_budget_tells_no_spread_beyond_its_ball():
    """As released, about means that lie outside: some of the released variances are more than the ball has."""
    space = Sphere(2)
    ball = GeodesicBall(space, [0.0, 0.0, 1.0], RADIUS)
    released = []
    for seed in range(6):
        data = np.random.default_rng(seed).normal(size=(150, 3)) * 0.03 + [0.0, 0.0, 1.0]
        found = describe(data / np.linalg.norm(data, axis=1, keepdims=True), space, epsilon=0.1, ball=ball)
        assert math.sqrt(found.population.most_variance) <= RADIUS * (1.0 + 1e-12)
        assert np.all(principal_geodesics(found).intervals <= RADIUS**2 * (1.0 + 1e-12))
        released.append(float(found.variance.value))
    assert max(released) > RADIUS**2


def test_the_cap_takes_no_spread_that_there_is():
    """Half of the records at each of two opposite points of the rim: all of r^2, along one direction."""
    line = Euclidean(1)
    data = np.repeat([[-1.0], [1.0]], 500, axis=0)
    found = describe(data, line, mu=20.0, ball=GeodesicBall(line, [0.0], RADIUS))
    assert found.population.variance == pytest.approx(RADIUS**2, rel=0.01)
    (low, high), *_ = principal_geodesics(found).intervals
    assert low < RADIUS**2 * (1.0 - 1e-8) <= high and RADIUS**2 * (1.0 - 1e-8) <= found.population.most_variance


@pytest.mark.parametrize(("second", "drawn"), [(0.3, 2), (0.0, 1)])
def test_no_geodesic_is_drawn_that_noise_hides(second, drawn, described):
    """One whose interval reaches 0; what its standard deviation hardly exceeds is told."""
    matrix = RADIUS**2 * np.diag([0.6, second])
    found = planted(described, np.trace(matrix), matrix)
    own = principal_geodesics(found)
    assert list(own.hidden) == [False, drawn == 1] == list(own.intervals[:, 0] == 0.0)
    rows, page = summary_and_page(found)
    assert page.count("data:image/png") == 1 + 3 + 3 * drawn
    assert ("Principal geodesic 2 is not drawn, as noise hides it" in page) == (drawn == 1)
    assert ("Along principal geodesic 2" in page) == (drawn == 2)
    most = f"number 2 is hidden by noise, standard deviation of at most {math.sqrt(own.intervals[1, 1]):.4g}"
    assert (most in rows["Principal geodesics"]) == (drawn == 1)


def test_where_noise_hides_all_geodesics_it_is_said(described):
    """A matrix that is far from a multiple of the identity, but not from 0."""
    noise = math.sqrt(described.population.noise.mean_square(2))
    found = planted(described, 4.0 * noise, np.diag([1.05 * noise, -1.05 * noise]))
    assert found.population.kept > 0.0 and not found.population.hidden and np.all(principal_geodesics(found).hidden)
    rows, page = summary_and_page(found)
    assert rows["Principal geodesics"] == "their noise hides them"
    assert "No principal geodesic is drawn, as noise hides them" in page and page.count("data:image/png") == 1


@pytest.mark.parametrize(
    ("away", "scale", "outside", "nearer"),
    [
        (2.1, 1e-9, True, True),  # the whole ball is farther from there than its centre from any of its points
        (1.5, 0.9, True, True),
        (1.1, 0.05, True, False),
        (0.5, 0.05, False, False),
        (0.5, 0.3, False, True),
        (0.9, 1.0, False, True),  # noise of the square length 2 r^2, whatever was released
    ],
)
def test_a_centre_that_is_expected_to_be_nearer_is_named(away, scale, outside, nearer, described):
    """Of a mean at a distance in units of the radius, with noise of such a standard deviation in each direction."""
    found = planted(described, mean=[away * RADIUS, 0.0], scale=scale * RADIUS)
    assert found.against_center == (outside, nearer)
    rows, page = summary_and_page(found)
    words = rows.get("Mean", "")
    assert ("outside the ball" in words) == outside
    assert ("the public centre is expected to be nearer" in words) == nearer
    assert words.startswith("outside the ball: the public centre is expected to be nearer") == (outside and nearer)
    assert (words in page) if words else "expected to be nearer" not in page


def test_the_nearer_one_is_told_rightly():
    """Of many means with noise: where the centre is named it is nearer, on average; else the mean is."""
    rng, noise = np.random.default_rng(0), 0.4 * RADIUS
    found = describe(np.zeros((40, 2)), PLANE, mu=1.0, ball=BALL)
    sums = {True: [], False: []}
    for length in (0.0, 0.2, 0.9):
        for _ in range(40):
            mean = np.array([length * RADIUS, 0.0])
            released = mean + noise * rng.normal(size=2)
            own = planted(found, mean=released, scale=noise)
            gain = np.sum((released - mean) ** 2) - np.sum(mean**2)
            sums[own.against_center.center_is_nearer].append(gain)
    assert min(map(len, sums.values())) > 20
    assert np.mean(sums[True]) > 0.0 > np.mean(sums[False])
