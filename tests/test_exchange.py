"""Guarantees and records in the words of other libraries: dp-accounting's events, OpenDP's measurements."""

import dataclasses
import json
import sys

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp
from strategies import exhaustive

from jaxgeodp import Euclidean, GeodesicBall, KNGMechanism, TangentLaplace, WrappedGaussian, release_groups
from jaxgeodp.privacy import (
    ApproximateDP,
    GaussianDP,
    NotProven,
    PureDP,
    Release,
    ZeroConcentratedDP,
    compose,
    dp_event,
    loss_distribution,
    opendp_measurement,
)

DELTA = 1e-6
BALL = GeodesicBall(Euclidean(2), np.zeros(2), 1.0)
DATA = np.zeros((60, 2))


@pytest.mark.parametrize("mu", [0.1, *exhaustive(0.3, 1.0, 3.0)])
def test_no_accountant_counts_less_than_a_gaussian_guarantee(mu):
    exact = GaussianDP(mu).to_approximate(DELTA).epsilon
    for relation in dp_accounting.NeighboringRelation:
        for accountant in (pld.PLDAccountant(relation), rdp.RdpAccountant(neighboring_relation=relation)):
            assert accountant.compose(dp_event(GaussianDP(mu))).get_epsilon(DELTA) >= exact * (1 - 1e-9)
    tight = pld.PLDAccountant().compose(dp_event(GaussianDP(mu))).get_epsilon(DELTA)
    assert tight <= exact + 1e-3
    less = dp_accounting.GaussianDpEvent(1.1 / mu)
    assert pld.PLDAccountant().compose(less).get_epsilon(DELTA) < exact, "an event of less noise is told apart"
    assert dp_event(GaussianDP(mu)).noise_multiplier <= 1 / mu


def test_events_of_pure_and_concentrated_guarantees_compose():
    accountant = rdp.RdpAccountant(np.linspace(1.01, 200.0, 20_000))
    for _ in range(50):
        accountant.compose(dp_event(PureDP(0.1)))
    accountant.compose(dp_event(ZeroConcentratedDP(0.05)))
    together = compose([*[PureDP(0.1)] * 50, ZeroConcentratedDP(0.05)])
    assert together == ZeroConcentratedDP(0.3)
    epsilon = accountant.get_epsilon(DELTA)
    # Of a finite number of orders the best is hardly worse than that of all.
    assert 1.0 <= epsilon / together.to_approximate(DELTA).epsilon < 1.0001
    assert dp_event(PureDP(0.1)).rho == PureDP(0.1).to_zcdp().rho >= 0.005


def test_events_that_no_accountant_may_count():
    for accountant in (pld.PLDAccountant(), rdp.RdpAccountant()):
        assert not accountant.supports(dp_event(ApproximateDP(1.0, 1e-6)))
        assert accountant.compose(dp_event(NotProven("epsilon = 1"))).get_epsilon(DELTA) == np.inf
    with pytest.raises(TypeError, match="is not a guarantee"):
        dp_event(1.0)


def test_loss_distributions_compose_with_those_of_others():
    ours = loss_distribution(PureDP(0.5))
    assert ours.get_delta_for_epsilon(0.5) == pytest.approx(0.0, abs=1e-12)
    randomized_response = (np.exp(0.5) - np.exp(0.4)) / (1 + np.exp(0.5))
    assert ours.get_delta_for_epsilon(0.4) == pytest.approx(randomized_response, rel=1e-3)
    theirs = pld.privacy_loss_distribution.from_gaussian_mechanism(2.0, value_discretization_interval=1e-4)
    both = loss_distribution(GaussianDP(0.5)).compose(theirs).get_epsilon_for_delta(DELTA)
    assert both == pytest.approx(GaussianDP(np.sqrt(0.5)).to_approximate(DELTA).epsilon, abs=1e-3)
    assert loss_distribution(ApproximateDP(1.0, 1e-5)).get_delta_for_epsilon(1.0) == pytest.approx(1e-5, rel=1e-6)
    with pytest.raises(ValueError, match="no dominating pair"):
        loss_distribution(ZeroConcentratedDP(0.1))


@pytest.mark.parametrize(
    ("mechanism", "arguments", "metric", "measure", "d_out", "size"),
    [
        (KNGMechanism(BALL, 0.5), {}, "change_one_distance", "max_divergence", 0.5, 60),
        (TangentLaplace(BALL, 0.5), {"persons": np.arange(60) // 3}, "change_one_distance", "max_divergence", 0.5, 20),
        (WrappedGaussian(BALL, 2.0), {}, "change_one_distance", "zero_concentrated_divergence", 2.0, 60),
        (WrappedGaussian(BALL, 2.0), {"adjacency": "add-remove"}, "symmetric_distance", None, 2.0, None),
        (KNGMechanism(BALL, 0.5), {"delta": 1e-6}, "change_one_distance", "fixed_smoothed_max_divergence", None, 60),
    ],
    ids=["pure", "persons", "gdp", "add-remove", "approximate"],
)
def test_a_record_as_opendp_writes_measurements(mechanism, arguments, metric, measure, d_out, size, tmp_path):
    release = mechanism.release(DATA, **arguments)
    release.save(tmp_path / "release.json")
    document = opendp_measurement(Release.load(tmp_path / "release.json"))
    assert document == json.loads(json.dumps(opendp_measurement(release)))
    parts = document["__kwargs__"]
    assert document["__function__"] == "make_user_measurement"
    assert parts["input_metric"]["__function__"] == metric
    assert measure in (None, parts["output_measure"]["__function__"])
    (pair,) = parts["privacy_map"]
    promised = release.record["guarantee"]
    assert pair["d_in"] == 1
    assert pair["d_out"] == ([promised["epsilon"], promised["delta"]] if "delta" in promised else d_out)
    assert parts["input_domain"]["__kwargs__"]["size"] == size
    assert document["record"]["guarantee"]["theorem"] == promised["theorem"]
    np.testing.assert_array_equal(document["release"], release.value)


def test_the_guarantee_of_a_release_is_that_of_its_record():
    """On a grid, with a delta and under add-remove it is another one than the mechanism's."""
    kinds = {
        "idealized": (WrappedGaussian(BALL, 0.5), {}, GaussianDP(0.5)),
        "grid": (WrappedGaussian(BALL, 0.5), {"numerics": "grid"}, ZeroConcentratedDP(0.125)),
        "delta": (KNGMechanism(BALL, 0.5), {"delta": 1e-6}, ApproximateDP(0.5, 1e-6)),
    }
    for mechanism, arguments, promised in kinds.values():
        assert mechanism.release(DATA, **arguments).guarantee == promised
    release = TangentLaplace(BALL, 0.5).release(DATA)
    for wrong in (
        {"kind": "pure"},
        {"kind": "pure", "epsilon": "1"},
        {"kind": "pure", "epsilon": -1.0},
        {"kind": "no"},
        1,
    ):
        with pytest.raises(ValueError, match=r"guarantee|epsilon"):
            dataclasses.replace(release, record=release.record | {"guarantee": wrong}).guarantee  # noqa: B018
    assert dataclasses.replace(
        release, record=release.record | {"guarantee": NotProven("1-DP").record("a chain")}
    ).guarantee == NotProven("1-DP")


def test_what_needs_a_package_says_which(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    for call in (lambda: dp_event(PureDP(1.0)), lambda: loss_distribution(PureDP(1.0))):
        with pytest.raises(ValueError, match=r"dp-accounting: pip install 'jaxgeodp\[accounting\]'"):
            call()


def test_groups_and_what_is_no_release_are_no_measurement():
    groups = release_groups(TangentLaplace(BALL, 0.5), DATA, np.arange(60) % 3, [0, 1, 2])
    for release in groups.values():
        with pytest.raises(ValueError, match="no metric for groups"):
            opendp_measurement(release)
    for nothing in (None, {}, TangentLaplace(BALL, 0.5)):
        with pytest.raises(ValueError, match="needs a Release"):
            opendp_measurement(nothing)
    with pytest.raises(ValueError, match="mu must be at most 50"):
        loss_distribution(GaussianDP(1000.0))
    assert compose([PureDP(1.0), GaussianDP(60.0)], delta=1e-6).epsilon > 1800.0, "by addition"


def test_what_promises_nothing_is_no_measurement():
    release = TangentLaplace(BALL, 0.5).release(DATA)
    for guarantee in (NotProven("epsilon = 1").record("a chain"), {"kind": "not private"}):
        with pytest.raises(ValueError, match="OpenDP has no measure"):
            opendp_measurement(dataclasses.replace(release, record=release.record | {"guarantee": guarantee}))
    for neighbours in ("in distance 1", "replace-one (within distance 0.1)", None):
        other = release.record | {"guarantee": release.record["guarantee"] | {"adjacency": neighbours}}
        with pytest.raises(ValueError, match="no metric for neighbours"):
            opendp_measurement(dataclasses.replace(release, record=other))
