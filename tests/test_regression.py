"""Frames that two programs agree on; moments of residuals; private geodesic regression."""

import dataclasses
import datetime
import functools
import json
import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from strategies import exhaustive, name

import jaxgeodp.inference.geodesic_fit as geodesic_fit
from jaxgeodp import SPD, Euclidean, GeodesicBall, Grassmann, Hyperbolic, PlanarShapes, Sphere
from jaxgeodp.inference import GeodesicFit, SpreadMechanism, describe, geodesic_regression
from jaxgeodp.inference.places import AlongGeodesic, frame_at
from jaxgeodp.inference.residuals import (
    Correction,
    ResidualMatrix,
    ResidualMoments,
    correction_of,
    jacobi_fields,
    moved,
)
from jaxgeodp.manifolds import Manifold
from jaxgeodp.privacy import Ledger, Release, ZeroConcentratedDP

SPACES = [Sphere(2), *exhaustive(PlanarShapes(5), Hyperbolic(2))]
TIMES = np.array([0.0, 0.5, 1.0])


def at_times(manifold, n, speed, spread, radius, seed=0):
    """Times, points that lie about a geodesic, and its points at `TIMES`."""
    times = np.random.default_rng(seed).uniform(size=n)
    origin = jnp.asarray(manifold.origin)
    middle = manifold.exp(origin, 0.2 * radius * manifold.frame(origin)[0])
    velocity = 0.5 * speed * manifold.frame(middle)[-1]

    keys = jax.random.split(jax.random.key(seed), n)
    points = _scattered(manifold, middle, velocity, spread, keys, jnp.asarray(2.0 * times - 1.0))
    return times, np.asarray(points), _points(manifold, middle, velocity, jnp.asarray(2.0 * TIMES - 1.0))


@functools.partial(jax.jit, static_argnums=0)
def _scattered(manifold, middle, velocity, spread, keys, s):
    def one(key, t):
        there = manifold.project(manifold.exp(middle, t.astype(velocity.dtype) * velocity))
        return manifold.project(manifold.exp(there, spread * manifold.random_tangent(key, there)))

    return jax.vmap(one)(keys, s)


@functools.partial(jax.jit, static_argnums=0)
def _points(manifold, middle, velocity, s):
    return jax.vmap(lambda t: manifold.exp(middle, t.astype(velocity.dtype) * velocity))(s)


def apart(manifold, first, second):
    return np.asarray(jax.vmap(manifold.dist)(jnp.asarray(first), jnp.asarray(second)))


def ball_of(manifold, radius):
    return GeodesicBall(manifold, manifold.origin, radius)


@pytest.mark.parametrize("manifold", [Sphere(2), PlanarShapes(5), Grassmann(5, 2), *exhaustive(Sphere(7))], ids=name)
def test_programs_of_other_rounding_find_the_same_frame(manifold):
    """The frame of a point whose digits differ in the last places is nearly the same."""
    for seed in range(5):
        point = manifold.random_point(jax.random.key(seed))
        moved = manifold.project(point * (1.0 + 1e-14 * np.arange(1, point.size + 1).reshape(point.shape)))
        np.testing.assert_allclose(manifold.frame(point), manifold.frame(moved), atol=1e-9)


@pytest.mark.parametrize("manifold", [Sphere(3), *exhaustive(PlanarShapes(5))], ids=name)
def test_a_description_knows_the_direction_of_spread(manifold):
    """The frame that a record states is the one in which the covariance was computed."""
    origin = jnp.asarray(manifold.origin)
    center = manifold.exp(origin, 0.05 * manifold.frame(origin)[1])
    direction = manifold.frame(center)[2]
    lengths = 0.08 * np.random.default_rng(0).normal(size=400)
    data = jax.vmap(lambda t: manifold.exp(center, t.astype(direction.dtype) * direction))(jnp.asarray(lengths))
    found = describe(np.asarray(data), manifold, mu=1e3, ball=ball_of(manifold, 0.3)).population
    carried = manifold.transport(center, jnp.asarray(found.mean), direction)
    own = manifold.coordinates(jnp.asarray(found.mean), carried, jnp.asarray(found.frame))
    assert float(own @ found.covariance @ own) > 0.95 * found.variance


def test_no_record_moves_the_moments_by_more_than_the_sensitivity_and_some_by_nearly_that():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(400, 3))
    vectors[:, 1:] /= np.linalg.norm(vectors[:, 1:], axis=1, keepdims=True)
    vectors[:, 1:] *= np.resize([1.0, 1.0, 0.4, 0.0, 9.0], 400)[:, None]
    vectors[:, 0] = np.resize([1.0, -1.0, 0.3, 7.0], 400)
    vectors[0, 2] = np.nan
    vectors[1:3] = [[1.0, 1.0, 0.0], [1.0, -1.0, 0.0]]
    vectors[3:5] = [[0.9, 0.8**0.5, 0.2**0.5], [0.2, -(0.8**0.5), -(0.2**0.5)]]
    root = math.sqrt(0.5)
    vectors[5:405:20] = [[own, sign * root, sign * root] for sign in (-1.0, 1.0) for own in np.linspace(0.55, 1.0, 10)]
    for statistic, least in ((ResidualMoments(), 0.98), (ResidualMatrix(), 0.6)):
        seen = np.stack([statistic.steps([own[None]], 0.0, 1.0).astype(float) for own in vectors])
        bound, in_all = statistic.sensitivity(2, 0.0, 1.0), statistic.l1_sensitivity(2, 0.0, 1.0)
        largest = max(np.linalg.norm(seen - own, axis=1).max() for own in seen)
        assert 0.999 * bound < largest <= bound
        assert least * in_all < max(np.abs(seen - own).sum(axis=1).max() for own in seen) <= in_all


def test_residuals_along_the_true_geodesic_are_nothing():
    times, data, _ = at_times(Sphere(2), 50, 0.8, 0.0, 0.6)
    middle = Sphere(2).exp(jnp.asarray(Sphere(2).origin), 0.12 * Sphere(2).frame(jnp.asarray(Sphere(2).origin))[0])
    velocity = 0.4 * Sphere(2).frame(middle)[-1]
    place = AlongGeodesic(middle, velocity, frame_at(Sphere(2), middle), 0.5)
    records = jnp.concatenate([jnp.asarray(times)[:, None], jnp.asarray(data)], axis=1)
    vectors = np.asarray(place.vectors(ball_of(Sphere(2), 0.6), records))
    np.testing.assert_allclose(vectors[:, 0], 2.0 * times - 1.0)
    assert np.abs(vectors[:, 1:]).max() < 1e-12
    hostile = records.at[0].set(jnp.nan).at[1, 0].set(7.0).at[2].set(1e300)
    seen = np.asarray(place.vectors(ball_of(Sphere(2), 0.6), hostile))
    assert np.all(np.isfinite(seen)) and seen[1, 0] == 1.0
    assert np.all(np.linalg.norm(seen[:, 1:], axis=1) <= 1.0 + 1e-12)
    np.testing.assert_array_equal(seen[3:], vectors[3:])


@pytest.mark.parametrize("manifold", SPACES, ids=name)
def test_with_hardly_any_noise_the_geodesic_is_found(manifold):
    """The first round alone is off by curvature, the second corrects it."""
    times, data, right = at_times(manifold, 400, 0.3, 0.0, 0.3)
    ball = ball_of(manifold, 0.3)
    fit = geodesic_regression(times, data, ball, mu=1e5)
    assert [own.record["scale"] is not None for own in fit.releases] == [True, True]
    assert apart(manifold, fit.predict(TIMES), right).max() < 2e-5
    assert fit.speed == pytest.approx(0.3, abs=1e-4)
    intercept, slope = jnp.asarray(fit.intercept), jnp.asarray(fit.slope)
    assert float(manifold.dist(manifold.exp(intercept, slope), right[-1])) < 1e-4
    first = fit.releases[0]
    correction = correction_of(ResidualMatrix(), manifold.dim, first.value, first.record["scale"], 0.3, 400)
    center = np.asarray(ball.center)
    ends = moved(center, np.zeros_like(center), frame_at(manifold, center), correction, ball)
    alone = float(manifold.dist(manifold.exp(*map(jnp.asarray, ends)), right[-1]))
    assert alone > 1e-4


@pytest.mark.exhaustive  # of speeds it is tried below, and of the moments that errors follow from
def test_errors_are_as_large_as_is_said():
    manifold, ball = Sphere(2), ball_of(Sphere(2), 0.6)
    ratios = []
    for seed in range(40):
        times, data, right = at_times(manifold, 1000, 0.6, 0.08, 0.6, seed)
        fit = geodesic_regression(times, data, ball, mu=1.0)
        ratios.append(apart(manifold, fit.predict(TIMES), right) / fit.standard_error(TIMES))
    assert np.all((0.7 < np.sqrt(np.mean(np.square(ratios), axis=0))) & (np.mean(np.square(ratios), axis=0) < 2.0))


def speeds(count, n, speed, mu, seed=0):
    """Found speeds in units of their stated errors, and p-values of no motion; residuals along the velocity only."""
    manifold, ball = Sphere(2), ball_of(Sphere(2), 0.6)
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        times = rng.uniform(size=n)
        angles = (times - 0.5) * speed + 0.08 * rng.normal(size=n)
        points = np.stack([np.sin(angles), np.zeros(n), np.cos(angles)], axis=1)
        fit = geodesic_regression(times, points, ball, mu=mu)
        found.append([(fit.speed - speed) / fit.speed_error, fit.no_motion])
    assert manifold.dim == 2
    return np.array(found).T


def test_errors_know_directions_of_residuals(monkeypatch):
    """Planted: residuals that are taken to be alike in all directions."""
    right, p = speeds(40, 2000, 0.5, 5.0)
    assert 0.7 < np.sqrt(np.mean(right**2)) < 1.3 and np.all(p < 1e-6)
    monkeypatch.setitem(geodesic_fit.STATISTICS, "mu", ResidualMoments())
    assert np.sqrt(np.mean(speeds(40, 2000, 0.5, 5.0)[0] ** 2)) > 1.3


def p_values(spreads, n, mu, count=300, radius=1.0, mutant=None):
    """Of no motion, where there is none: the last round of a fit in flat space, whose first one has found the place."""
    rng, dim, found = np.random.default_rng(0), len(spreads), []
    statistic, s_all = ResidualMatrix(), np.linspace(-1.0, 1.0, n)
    scale = math.sqrt(8.0) / n / mu
    place = GeodesicBall(Euclidean(dim), np.zeros(dim), radius)
    reach = 5.0 * np.linalg.norm(spreads)
    for _ in range(count):
        vectors = np.column_stack([s_all, rng.normal(size=(n, dim)) * spreads / reach])
        numbers = np.asarray(statistic.of_vectors(vectors)) + scale * rng.normal(size=statistic.numbers(dim))
        own = correction_of(statistic, dim, numbers, scale, reach, n)
        record = Release(numbers, {"n": n})
        widest = own.covariance if mutant == "noise hides nothing" else own.widest
        velocity = own.change[dim:]
        fit = GeodesicFit(
            place.manifold, own.change[:dim], velocity, np.eye(dim), own.covariance, widest, own.residuals, (record,)
        )
        found.append(fit.no_motion)
    return np.array(found)


@pytest.mark.parametrize(
    ("spreads", "n", "mu"),
    [
        ([0.2, 0.02, 0.02], 200, 30.0),
        ([0.05] * 6, 40, 50.0),
        ([0.2, *[0.02] * 5], 300, 30.0),
        *exhaustive(([0.05] * 6, 12, 100.0), ([0.2] * 2, 1000, 1.0), ([0.05] * 3, 10, 100.0), ([0.1], 200, 3.0)),
    ],
)
def test_the_test_of_no_motion_has_its_size(spreads, n, mu):
    """Where noise hides directions, where records are few, and where there is neither; no larger than .05."""
    assert np.mean(p_values(spreads, n, mu) < 0.05) < 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / 300)


def test_a_test_that_forgets_what_noise_hides_is_caught():
    assert np.mean(p_values([0.2, 0.02, 0.02], 200, 30.0, mutant="noise hides nothing") < 0.05) > 0.12
    assert np.mean(p_values([0.2] * 2, 1000, 3.0) < 0.05) > 0.01, "nor is it so careful that it never rejects"


def test_nothing_moves_where_nothing_does():
    """The length of a velocity that is all noise is sqrt(d) of its errors; the speed is not."""
    distances, p = speeds(60, 1000, 0.0, 1.0)
    # Releases have no key: limits that a right one of 60 passes but for a few in a million times (6 is that of the
    # largest of 60 lengths of normal vectors in the plane; it was 4, and failed once).
    assert 0.2 < np.mean(distances == 0.0) < 0.95 and np.max(distances) < 6.0 and np.mean(p < 0.05) < 0.3


def test_a_fit_whose_last_round_cannot_be_used_is_that_of_the_first_and_loads(tmp_path, monkeypatch):
    times, data, _ = at_times(Sphere(2), 1000, 0.6, 0.08, 0.6)
    real = geodesic_fit.correction_of

    def fails(statistic, dim, numbers, scale, reach, *more):
        if reach < 0.5 and len(more) > 1:
            raise np.linalg.LinAlgError("of a record")
        return real(statistic, dim, numbers, scale, reach, *more)

    monkeypatch.setattr(geodesic_fit, "correction_of", fails)
    fit = geodesic_regression(times, data, ball_of(Sphere(2), 0.6), mu=5.0)
    assert len(fit.releases) == 2 and fit.speed == pytest.approx(0.6, abs=0.2)
    fit.save(tmp_path / "fit.json")
    assert GeodesicFit.load(tmp_path / "fit.json").speed == fit.speed
    monkeypatch.setattr(geodesic_fit, "correction_of", lambda *_: 1 / 0)
    nothing = geodesic_fit.fit_of(fit.releases, ball_of(Sphere(2), 0.6))
    assert nothing.speed == 0.0 and math.isinf(nothing.speed_error) and nothing.no_motion == 1.0
    assert math.isinf(nothing.residual_sd)


def test_the_stated_covariance_is_that_of_the_noise():
    """Of released moments of many records, so that only noise counts; in the direction of the velocity, too."""
    rng, truth, scale, dim = np.random.default_rng(0), np.array([0.3, 0.1, 0.5, -0.2]), 0.02, 2
    s = rng.uniform(-1.0, 1.0, 20_000)
    w = truth[:dim] + s[:, None] * truth[dim:]
    exact = np.asarray(ResidualMoments().of_vectors(jnp.asarray(np.column_stack([s, w]))))
    draws = [
        correction_of(ResidualMoments(), dim, exact + scale * rng.normal(size=9), scale, 1.0, 10**9)
        for _ in range(2000)
    ]
    found = np.cov(np.stack([own.change for own in draws]).T)
    stated = np.mean([own.covariance for own in draws], axis=0)
    np.testing.assert_allclose(np.sqrt(np.diag(found)), np.sqrt(np.diag(stated)), rtol=0.1)
    along = truth[dim:] / np.linalg.norm(truth[dim:])
    ratio = (along @ found[dim:, dim:] @ along) / (along @ stated[dim:, dim:] @ along)
    assert 0.85 < ratio < 1.15


@pytest.mark.parametrize("manifold", [Sphere(2), *exhaustive(SPD(2), PlanarShapes(4))], ids=name)
def test_a_geodesic_that_is_slightly_off_is_corrected_but_for_the_square(manifold):
    """By Jacobi fields: a line in s would leave a share of the distance, however small."""
    origin = jnp.asarray(manifold.origin)
    frame = frame_at(manifold, manifold.origin)
    velocity, ball = 0.6 * frame[0], ball_of(manifold, 0.75)
    times = np.linspace(0.0, 1.0, 201)
    left = []
    for away in (0.05, 0.025):
        change = away * np.ones(2 * manifold.dim) / math.sqrt(2.0 * manifold.dim)
        correction = dataclasses.replace(Correction.none(manifold.dim), change=change)
        ends = moved(manifold.origin, velocity, frame, correction, ball)
        points = np.asarray(_points(manifold, *map(jnp.asarray, ends), jnp.asarray(2.0 * times - 1.0)))
        place = AlongGeodesic(manifold.origin, velocity, frame, 0.5)
        records = jnp.asarray(np.column_stack([times.astype(points.dtype), points.reshape(len(times), -1)]))
        moments = ResidualMoments().of_vectors(place.vectors(ball, records))
        fields = jacobi_fields(manifold, origin, velocity, frame)
        known = ResidualMoments(), manifold.dim, moments, 1e-12, 0.5, 10**9
        solved, straight = correction_of(*known, fields), correction_of(*known)
        left.append([np.linalg.norm(own.change - change) / away for own in (solved, straight)])
    assert left[1][0] < 0.7 * left[0][0] or left[1][0] < 5e-3, "in proportion to the distance, or nearly nothing"
    assert left[1][1] > 2.0 * left[1][0]


def test_times_that_lie_together_tell_no_speed():
    _, data, _ = at_times(Sphere(2), 400, 0.0, 0.05, 0.6)
    fit = geodesic_regression(np.full(400, 0.5), data, ball_of(Sphere(2), 0.6), mu=1e4)
    assert fit.speed == 0.0 and math.isinf(fit.speed_error) and np.all(np.isinf(fit.standard_error(TIMES)))
    assert fit.residual_sd == pytest.approx(0.05, rel=0.1)


def test_little_data_have_one_round_and_a_pure_budget_can_be_spent():
    times, data, _ = at_times(Sphere(2), 60, 0.6, 0.08, 0.6)
    ball = ball_of(Sphere(2), 0.6)
    fit = geodesic_regression(times, data, ball, mu=0.5)
    assert len(fit.releases) == 1 and np.all(fit.standard_error(TIMES) > 0.02)
    pure = geodesic_regression(times, data, ball, epsilon=500.0)
    kinds = [own.record["guarantee"] for own in pure.releases]
    assert [own["kind"] for own in kinds] == ["pure", "pure"]
    assert 499.0 < sum(own["epsilon"] for own in kinds) <= 500.0


def test_it_is_charged_once_saved_and_loaded(tmp_path):
    times, data, _ = at_times(Sphere(2), 500, 0.6, 0.08, 0.6)
    ledger = Ledger(tmp_path / "budget.db", budget=ZeroConcentratedDP(3.0))
    fit = geodesic_regression(times, data, ball_of(Sphere(2), 0.6), mu=2.0, ledger=ledger)
    assert ledger.account().releases == 1
    assert sum(own.record["guarantee"]["rho"] for own in fit.releases) == pytest.approx(2.0, rel=1e-6)
    with pytest.raises(ValueError, match="budget"):
        geodesic_regression(times, data, ball_of(Sphere(2), 0.6), mu=2.0, ledger=ledger)
    fit.save(tmp_path / "fit.json")
    with pytest.raises(FileExistsError):
        fit.save(tmp_path / "fit.json")
    created = datetime.datetime.fromisoformat(fit.releases[0].record["created"]).timestamp()
    assert (tmp_path / "fit.json").stat().st_mtime == created, "not when the work was done"
    again = GeodesicFit.load(tmp_path / "fit.json")
    np.testing.assert_array_equal(again.predict(TIMES), fit.predict(TIMES))
    assert again.residual_sd == fit.residual_sd
    (tmp_path / "fit.json").write_text("{}")
    with pytest.raises(ValueError, match="not a geodesic regression"):
        GeodesicFit.load(tmp_path / "fit.json")


@pytest.mark.parametrize("spread", [0.0, 1e150])
def test_no_fit_warns_of_what_was_released(spread):
    """With a budget for which the noise is so small that squares of it overflow or vanish."""
    ball, times = GeodesicBall(Euclidean(2), [0.0, 0.0], 1e150), np.linspace(0.0, 1.0, 400)
    data = spread * np.random.default_rng(1).normal(size=(400, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fits = [geodesic_regression(times, data, ball, epsilon=1e6) for _ in range(6)]
        # Planted: as an error, a warning ended the reading of the fit in most of 20 fits.
        told = [[fit.speed, fit.speed_error, fit.no_motion, fit.residual_sd] for fit in fits]
    assert np.all(np.isfinite([fit.covariance for fit in fits])) and np.all(np.isfinite(told))


def test_no_number_of_any_type_makes_a_warning():
    times, data, _ = at_times(Sphere(2), 60, 0.6, 0.08, 0.6)
    for kind in (np.float32, np.float16, np.float64):
        for huge in (1e300, 0.5, np.nan):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                geodesic_regression(np.append(times[1:], huge), data.astype(kind), ball_of(Sphere(2), 0.6), mu=2.0)


def test_files_that_no_fit_has_written_are_refused(tmp_path):
    times, data, _ = at_times(Sphere(2), 1000, 0.6, 0.08, 0.6)
    fit = geodesic_regression(times, data, ball_of(Sphere(2), 0.6), mu=2.0)
    fit.save(tmp_path / "fit.json")
    sound = json.loads((tmp_path / "fit.json").read_text())
    changes = [
        {"scale": None},
        {"scale": -1.0},
        {"scale": math.nan},
        {"n": -5},
        {"n": 0},
        {"value": [1.0, 2.0, 3.0]},
        {"manifold": {"name": "Sphere", "dim": 3}},
        {"n": 10**400},
        {"scale": 1e308},
        {"value": [1e200] * len(sound["rounds"][0]["value"])},
        {"value": [10**400] * len(sound["rounds"][0]["value"])},
        {"geodesic": sound["rounds"][0]["geodesic"] | {"reach": math.inf}},
        {"geodesic": sound["rounds"][0]["geodesic"] | {"middle": [0.0, 0.0, 2.0]}},
        {"frame": [1.0]},
    ]
    for change in changes:
        wrong = {"rounds": [sound["rounds"][0] | change, *sound["rounds"][1:]]}
        (tmp_path / "wrong.json").write_text(json.dumps(wrong))
        with pytest.raises(ValueError, match="not a geodesic regression"):
            GeodesicFit.load(tmp_path / "wrong.json")
    (tmp_path / "wrong.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="not a geodesic regression"):
        GeodesicFit.load(tmp_path / "wrong.json")


def test_a_manifold_of_ones_own_and_a_second_round_that_fails(monkeypatch):
    class Plane(Manifold):
        dim, shape, curvature_bounds, injectivity_radius = 2, (2,), (0.0, 0.0), math.inf

        def inner(self, point, u, v):
            return u @ v

        def exp(self, point, tangent):
            return point + tangent

        def __hash__(self):
            return 7

        def __eq__(self, other):
            return isinstance(other, Plane)

    times = np.linspace(0.0, 1.0, 500)
    data = np.stack([times - 0.5, 0.0 * times], axis=1)
    ball = GeodesicBall(Plane(), [0.0, 0.0], 0.7)
    assert geodesic_regression(times, data, ball, mu=100.0).speed == pytest.approx(1.0, abs=0.05)

    def fails(*_):
        raise FloatingPointError("of a record")

    monkeypatch.setattr("jaxgeodp.inference.regression.reach_of", fails)
    fit = geodesic_regression(times, data, ball, mu=100.0)
    assert fit.releases[1].record["scale"] is None and fit.speed == pytest.approx(1.0, abs=0.05)


def test_no_record_changes_anything_but_values():
    times, data, _ = at_times(Sphere(2), 300, 0.6, 0.08, 0.6)
    outcomes = set()
    for time, point in ((0.5, data[0]), (np.nan, data[0]), (1e300, [0.0, 0.0, -1.0]), (0.2, [np.nan] * 3)):
        own = geodesic_regression(
            np.append(times, time), np.append(data, [point], axis=0), ball_of(Sphere(2), 0.6), mu=2.0
        )
        assert all(release.record["scale"] is not None for release in own.releases)
        drop = ("value", "created", "geodesic", "frame")  # what follows from the first round
        seen = [{key: x for key, x in release.record.items() if key not in drop} for release in own.releases]
        outcomes.add(json.dumps(seen))
    assert len(outcomes) == 1


def test_calls_are_refused_in_words():
    times, data, _ = at_times(Sphere(2), 20, 0.6, 0.08, 0.6)
    ball = ball_of(Sphere(2), 0.6)
    middle = np.asarray(ball.center)
    for call, words in (
        (lambda: geodesic_regression(times, data, ball), "epsilon or mu"),
        (lambda: geodesic_regression(times, data, "ball", mu=1.0), "must be a GeodesicBall"),
        (lambda: geodesic_regression(times[1:], data, ball, mu=1.0), "times must be 20 numbers"),
        (lambda: geodesic_regression(times.astype("<U3"), data, ball, mu=1.0), r"got text of shape \(20,\)"),
        (lambda: geodesic_regression(times.astype("<U9"), data, ball, mu=1.0), r"got text of shape \(20,\)"),
        (lambda: geodesic_regression(times, data, ball, mu=1.0, ledger="x"), "geodesic_regression: ledger"),
        (lambda: geodesic_regression(times, data[:, :2], ball, mu=1.0), "shape"),
        (lambda: geodesic_regression(times[:1], data[:1], ball, mu=1.0), "10 records"),
        (lambda: geodesic_regression(times, data, ball, mu=-1.0), "mu"),
        (lambda: geodesic_regression(times, data, ball_of(Sphere(2), 1.0), mu=1.0), "Assumption 1"),
        (lambda: SpreadMechanism(ball, AlongGeodesic(middle, middle[:2], np.eye(3)[:2], 1.0), mu=1.0), "velocity"),
        (lambda: SpreadMechanism(ball, AlongGeodesic(middle, middle, np.eye(3)[:2], -1.0), mu=1.0), "reach"),
        (lambda: SpreadMechanism(ball, AlongGeodesic(middle, middle, np.eye(3), 1.0), mu=1.0), "frame must have shape"),
        (lambda: SpreadMechanism(ball, AlongGeodesic(middle, 0 * middle, np.eye(3)[:2], 1.0), mu=1.0), "go with"),
        (lambda: SpreadMechanism(ball, middle, ResidualMoments(), mu=1.0), "is not for AtPoint"),
        (lambda: geodesic_regression(times, data, ball, mu=1e-160), "must be between"),
        (lambda: describe(data, Sphere(2), mu=1e300), "must be between"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


@pytest.mark.parametrize("moment", [ResidualMoments(), ResidualMatrix()], ids=name)
def test_simulations_are_about_the_same_moments_as_integers(moment):
    """A time and a residual have a range each: both may be at its end."""
    plane = Euclidean(2)
    place = AlongGeodesic(np.zeros(2), np.array([0.5, 0.0]), frame_at(plane, np.zeros(2)), 1.0)
    mechanism = SpreadMechanism(GeodesicBall(plane, np.zeros(2), 1.0), place, moment, mu=1.0)
    rows = np.array([[1.0, 0.9, 0.0], [1.0, 0.9, 0.0], [0.0, -0.9, 0.0], [0.5, 0.2, 0.1]])
    state = mechanism.prepare(rows) + mechanism.prepare(rows[::-1])
    law = mechanism.law(8)
    with jax.enable_x64(True):
        numbers = law.numbers(jnp.asarray(np.concatenate([rows, rows])))
    units = moment.units(2, 1.0)
    np.testing.assert_allclose(numbers, np.asarray(state.sums, float) * units / 8, atol=1e-5)
