"""Numbers that double precision cannot hold are refused before the charge, and nothing is told after it."""

import dataclasses
import math
import warnings

import jax
import numpy as np
import pytest
from strategies import exhaustive

from jaxgeodp import (
    Euclidean,
    FrechetMedian,
    GeodesicBall,
    GibbsMechanism,
    KNGMechanism,
    LaplaceMechanism,
    PlanarShapes,
    PowerMean,
    TangentLaplace,
    WrappedGaussian,
)
from jaxgeodp.checks import InputError
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.inference import FrechetVariance, SpreadMechanism, TangentCovariance
from jaxgeodp.mechanisms.names import MECHANISMS, mechanism_named
from jaxgeodp.privacy import GaussianDP, Ledger, PureDP, ZeroConcentratedDP
from jaxgeodp.privacy.release import Draft, make_release
from jaxgeodp.samplers.envelope import radial_envelope

LINE = Euclidean(1)
_LIMITS = "beyond double precision|integer noise|too small|too large|between 1e-30|from 1e-30|rho must be a finite"


def _ball(radius, manifold=LINE):
    return GeodesicBall(manifold, np.zeros(manifold.dim), radius)


def _assert_refused(call, tmp_path, match):
    ledger = Ledger(tmp_path / "budget.db", PureDP(1e9), dataset="data")
    with pytest.raises(ValueError, match=match) as refusal:
        call(ledger)
    assert len(str(refusal.value)) < 400
    assert ledger.account().releases == 0


# Scales, sensitivities and squares ------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [1e-153, 1e-100, 1e100, 1e153])
@pytest.mark.parametrize("statistic", [FrechetVariance(), TangentCovariance()])
@pytest.mark.parametrize("rim", [179, 180])
def test_moments_whose_squares_are_lost_are_refused(radius, statistic, rim, tmp_path):
    """Scales below 2.2e-308 are flushed to 0 by programs; 180 squares of 1e153 are infinite, 179 are not."""
    mechanism = SpreadMechanism(_ball(radius), np.zeros(1), statistic, epsilon=1.0)
    data = np.full((200, 1), radius) * (np.arange(200) < rim)[:, None]
    ways = ["grid", *(["idealized"] if isinstance(statistic, TangentCovariance) else [])]
    for numerics in ways:
        _assert_refused(
            lambda own, way=numerics: mechanism.release(data, own, numerics=way), tmp_path, "beyond double precision"
        )
    _assert_refused(lambda own: mechanism.finish(mechanism.prepare(data), own), tmp_path, "beyond double precision")


@pytest.mark.parametrize("name", [name for name, entry in MECHANISMS.items() if entry.suits(LINE)])
@pytest.mark.parametrize("radius", [1e-150, 1e150])
def test_every_mechanism_is_checked_in_one_place(name, radius, tmp_path):
    def call(ledger):
        mechanism_named(name, _ball(radius), 1.0).release(np.zeros((20, 1)), ledger)

    _assert_refused(call, tmp_path, _LIMITS)


@pytest.mark.parametrize("strength", [1e-300, 1e-40, 1e40, 1e300])
def test_noise_of_integers_that_no_float_holds_is_refused(strength, tmp_path):
    data = np.zeros((20, 1))
    for make in (
        lambda: SpreadMechanism(_ball(1.0), np.zeros(1), FrechetVariance(), epsilon=strength),
        lambda: SpreadMechanism(_ball(1.0), np.zeros(1), FrechetVariance(), mu=strength),
        lambda: TangentLaplace(_ball(1.0), strength),
        lambda: WrappedGaussian(_ball(1.0), strength),
    ):
        _assert_refused(lambda own, make=make: make().release(data, own, numerics="grid"), tmp_path, _LIMITS)


def test_a_scale_that_rounding_hides_is_refused(tmp_path):
    """At epsilon = 1e15 a value would be the mean of the records, rounded."""
    for name in ("laplace", "kng", "tangent", "wrapped"):
        mechanism = mechanism_named(name, _ball(1.0, Euclidean(2)), 1e15)
        _assert_refused(
            lambda own, mechanism=mechanism: mechanism.release(np.zeros((20, 2)), own), tmp_path, "too small"
        )


def test_moments_in_floating_point_must_be_seen_beside_the_rounding(tmp_path):
    """At epsilon = 1e18 the exact moment was released each time."""
    mechanism = SpreadMechanism(_ball(1.0, Euclidean(2)), np.zeros(2), TangentCovariance(), epsilon=1e18)
    _assert_refused(lambda own: mechanism.release(np.zeros((50, 2)), own), tmp_path, "too small")


@pytest.mark.parametrize("radius", [1e-9, 1e-6, 1e9])
def test_scales_in_other_units_than_the_radius_are_not_refused(radius):
    """Of a Gibbs law the scale is a squared distance, of a median it has no unit."""
    data = radius * np.linspace(-0.5, 0.5, 1000)[:, None]
    assert abs(GibbsMechanism(_ball(radius), 1.0).release(data).value[0]) < 0.1 * radius
    plane = _ball(radius, Euclidean(2))
    points = radius * np.random.default_rng(0).uniform(-0.5, 0.5, (2100, 2))
    assert np.max(np.abs(KNGMechanism(plane, 1.0, FrechetMedian()).release(points).value)) < 0.5 * radius


@pytest.mark.parametrize("statistic", [FrechetMedian(), *exhaustive(PowerMean(1.5))])
def test_the_median_is_drawn_alike_at_every_radius(statistic, tmp_path):
    """What is nearer than 64 roundings of 1 is at the centre, whatever the ball: at 1e-14 the law was uniform."""
    points, spreads = np.random.default_rng(0).uniform(-0.5, 0.5, (300, 2)), []
    for radius in (1.0, 1e-9):
        mechanism = KNGMechanism(_ball(radius, Euclidean(2)), 20.0, statistic)
        draws = mechanism.simulate(jax.random.key(0), radius * points, 400)
        spreads.append(np.mean(np.linalg.norm(draws - np.mean(draws, axis=0), axis=1)) / radius)
    assert spreads[1] == pytest.approx(spreads[0], rel=0.2)
    small = _ball(1e-14, Euclidean(2))
    _assert_refused(
        lambda own: KNGMechanism(small, 20.0, statistic).release(1e-14 * points, own), tmp_path, "choose units"
    )


@pytest.mark.parametrize("epsilon", [1e5, 3e5, 7e5, 1e6, 1.3e7])
def test_no_privacy_parameter_makes_the_envelope_too_wide(epsilon):
    """The mass of the envelope over that of the law, a Gamma law of 28 at this scale."""
    space = PlanarShapes(16)
    scale = 1.7e-3 / epsilon
    with jax.enable_x64(True):
        envelope = radial_envelope(space, 1.0, scale, space.diameter)
        mass = np.log(np.sum(envelope.masses)) + np.max(envelope.heights)
    assert 0.0 <= mass - (math.lgamma(28.0) + 28.0 * math.log(scale)) < 0.1


@pytest.mark.exhaustive  # the masses of the envelope are those of the law above
@pytest.mark.parametrize("epsilon", [1e3, 1e6, 1e9])
def test_small_scales_in_many_dimensions_are_drawn_at_once(epsilon):
    """The envelope's tail, thousands of times as long as the bulk, held more than the bulk: none in 10 minutes."""
    space = PlanarShapes(16)
    mechanism = LaplaceMechanism(GeodesicBall(space, space.origin, 0.15), epsilon)
    draws = mechanism.law(180).simulated(jax.random.key(0), np.tile(space.origin, (180, 1)), 200)
    assert float(draws.acceptance) > 0.9
    distances = jax.vmap(lambda x: space.dist(space.origin, x))(draws.points) / mechanism.scale(180)
    # A Gamma law of 28 in flat space, which space is at this scale.
    assert abs(np.mean(distances) - 28.0) < 4.0 * np.sqrt(28.0 / 200)


# States ---------------------------------------------------------------------------------------------------

_CAP = _ball(1.0, Euclidean(3))
SUMMED = {
    "tangent": (TangentLaplace(_CAP, 1.0), np.zeros((30, 3))),
    "variance": (SpreadMechanism(_CAP, np.zeros(3), FrechetVariance(), mu=1.0), np.zeros((30, 3))),
    "covariance": (SpreadMechanism(_CAP, np.zeros(3), TangentCovariance(), mu=1.0), np.zeros((30, 3))),
    "curves": (FunctionalGaussianMechanism(PeriodicKernel(0.2), 0.01, 1.0, 1.0), np.zeros((30, 2, 32))),
}


@pytest.mark.parametrize("name", SUMMED)
def test_sums_of_another_shape_are_refused_before_the_charge(name, tmp_path):
    mechanism, data = SUMMED[name]
    state = mechanism.prepare(data)
    sums, zero = state.sums, np.zeros(1, object)
    wrong = [
        np.append(sums.ravel(), 0),
        sums.ravel()[:-1],
        np.array(0, object),
        sums[None],
        zero[:0],
        sums.ravel()[:, None],
    ]
    for own in wrong:
        if own.shape == sums.shape:
            continue
        damaged = dataclasses.replace(state, sums=own.astype(object))
        _assert_refused(lambda ledger, damaged=damaged: mechanism.finish(damaged, ledger), tmp_path, "shape")
    for words in (sums.astype(float), np.full(sums.shape, "1", object), np.full(sums.shape, None, object)):
        damaged = dataclasses.replace(state, sums=words)
        _assert_refused(lambda ledger, damaged=damaged: mechanism.finish(damaged, ledger), tmp_path, "whole numbers")
    for n in (10**400, 1):
        damaged = dataclasses.replace(state, n=n)
        _assert_refused(lambda ledger, damaged=damaged: mechanism.finish(damaged, ledger), tmp_path, "records")
    wrong = ({"record": (3.0, 3)}, {"record": 2}, {"record": (10**13,)}, {"record": (-1,)}, {"record": (1,) * 70})
    wrong += ({"sums": None}, {"sums": []}, {"parts": frozenset()}, {"parts": "abc"}, {"parts": frozenset([1])})
    for change in (*wrong, {"unit": "cat"}, {"n": 3.0}, {"n": np.int64(30)}, {"mechanism": None}):
        with pytest.raises(ValueError, match="State: "):
            dataclasses.replace(state, **change)
    for record in ((), (2,), (*state.record, 1), (0,)):
        damaged = dataclasses.replace(state, record=record)
        _assert_refused(lambda ledger, damaged=damaged: mechanism.finish(damaged, ledger), tmp_path, "shape")


def test_a_right_state_is_released(tmp_path):
    for name, (mechanism, data) in SUMMED.items():
        ledger = Ledger(tmp_path / f"{name}.db", PureDP(10.0) if name == "tangent" else ZeroConcentratedDP(10.0))
        assert np.all(np.isfinite(mechanism.finish(mechanism.prepare(data), ledger).value))


# After the charge -----------------------------------------------------------------------------------------


def test_no_warning_is_seen_after_the_charge():
    def draw():
        warnings.warn("of a record", stacklevel=1)
        return np.array([1e308]) * 10.0, draft

    draft = Draft(draw, np.zeros(1), GaussianDP(1.0), "none", {"mechanism": "Test", "n": 2}, "")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert make_release(draft, None).value.tolist() == [0.0]


@pytest.mark.parametrize("strength", [1e-31, 1e31])
@pytest.mark.parametrize("make", [LaplaceMechanism, WrappedGaussian, TangentLaplace])
def test_privacy_parameters_whose_squares_leave_double_precision_are_refused(make, strength):
    with pytest.raises(InputError, match=r"must be between 1e-30 and 1e\+30"):
        make(_ball(1.0), strength)
