"""The ledger: exact sums, charges before draws, refusals in one sentence, and faults that lose nothing but releases."""

import contextlib
import csv
import datetime
import decimal
import inspect
import json
import math
import os
import pathlib
import pickle
import sqlite3
import subprocess
import sys
import threading
import types
from fractions import Fraction

import numpy as np
import pytest
from decimal_tails import normal_tail
from hypothesis import given, settings
from hypothesis import strategies as st
from meshes import surface_design, surface_mechanism
from typer.testing import CliRunner

import jaxgeodp
from jaxgeodp import (
    AdaptiveMechanism,
    Euclidean,
    GeodesicBall,
    KNGMechanism,
    LaplaceMechanism,
    MetricLaplace,
    PlanarShapes,
    Sphere,
    TangentLaplace,
)
from jaxgeodp.checks import InputError
from jaxgeodp.cli import app, choice
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.mechanisms import release_by_chain
from jaxgeodp.mechanisms.names import MECHANISMS, mechanism_named
from jaxgeodp.privacy import (
    ApproximateDP,
    GaussianDP,
    Ledger,
    NotProven,
    PureDP,
    ZeroConcentratedDP,
    compose,
    ledger_file,
    record_digest,
)
from jaxgeodp.privacy.accounts import amounts
from jaxgeodp.privacy.clock import now, work_begins
from jaxgeodp.privacy.decimals import written
from jaxgeodp.privacy.ledger import add_budget, contents
from jaxgeodp.surfaces import FaceDesign, FaceMeanMechanism, JointGaussian, PointwiseGaussian

FAULTS = pathlib.Path(__file__).parents[1] / "benchmarks" / "audit" / "ledger_faults.py"
BALL = GeodesicBall(Euclidean(1), [0.0], 1.0)
ROWS = np.linspace(-1.0, 1.0, 5)[:, None]


def words_of(call, kind=InputError):
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    return text


# Sums ----------------------------------------------------------------------------------------------------


def test_ten_times_a_tenth_is_one_and_not_a_hair_more_fits(tmp_path):
    ledger = Ledger(tmp_path / "b.db", PureDP(1.0))
    for number in range(10):
        assert ledger.charge(PureDP(0.1), "by hand") == number + 1
    assert ledger.account().left == {"epsilon": 0.0} and ledger.account().spent == {"epsilon": 1.0}
    text = words_of(lambda: ledger.charge(PureDP(5e-324), "by hand"))
    assert "has epsilon = 0.0 left" in text and "asks for epsilon = 5e-324" in text and text.endswith(".")
    assert ledger.account().releases == 10


EPSILONS = st.one_of(
    st.sampled_from([0.1, 0.2, 0.3, 1 / 3, 0.7, 1e-3]),
    st.floats(5e-324, 1.0, exclude_min=False),
    st.floats(1e-12, 1e-6),
)


@settings(max_examples=15, deadline=None)
@given(costs=st.lists(EPSILONS, min_size=1, max_size=12), budget=st.floats(0.05, 2.0))
def test_charges_never_exceed_the_budget_and_are_refused_only_if_they_would(tmp_path_factory, costs, budget):
    ledger = Ledger(tmp_path_factory.mktemp("sums") / "b.db", PureDP(budget))
    spent, whole = Fraction(0), Fraction(repr(budget))
    for cost in costs:
        if spent + Fraction(repr(cost)) <= whole:
            ledger.charge(PureDP(cost), "m")
            spent += Fraction(repr(cost))
        else:
            words_of(lambda cost=cost: ledger.charge(PureDP(cost), "m"))
    left = ledger.account().left["epsilon"]
    # What is said to be left is granted, and the next float is not.
    assert Fraction(repr(left)) <= whole - spent < Fraction(repr(math.nextafter(left, math.inf)))
    words_of(lambda: ledger.check(PureDP(math.nextafter(left, math.inf))))
    if left > 0:
        ledger.charge(PureDP(left), "m")
    # In terms of the floats themselves the sum exceeds the budget by a relative 2^-53 at most.
    entries = [Fraction(entry["guarantee"]["epsilon"]) for entry in contents(ledger.path)[1]]
    assert sum(entries) <= Fraction(budget) * (1 + Fraction(3, 2**53)) + len(entries) * Fraction(5e-324)


def test_gaussian_budgets_are_spent_by_squares(tmp_path):
    ledger = Ledger(tmp_path / "b.db", GaussianDP(0.5))
    ledger.charge(GaussianDP(0.3), "m")
    assert ledger.account().left == {"mu": 0.4}
    words_of(lambda: ledger.check(GaussianDP(math.nextafter(0.4, 1.0))))
    ledger.charge(GaussianDP(0.4), "m")
    assert ledger.account().spent == {"mu": 0.5} and ledger.account().left == {"mu": 0.0}
    words_of(lambda: ledger.charge(GaussianDP(1e-200), "m"))


def test_extreme_numbers_stay_exact(tmp_path):
    largest, least = 1.7976931348623157e308, 5e-324
    ledger = Ledger(tmp_path / "b.db", GaussianDP(largest))
    for _ in range(3):
        ledger.charge(GaussianDP(least), "m")
    words_of(lambda: ledger.check(GaussianDP(largest)))
    assert ledger.account().left["mu"] == math.nextafter(largest, 0.0)
    assert ledger.account().spent["mu"] == pytest.approx(math.sqrt(3) * least, abs=2 * least)


@pytest.mark.parametrize(
    ("budget", "charges", "spent"),
    [
        (ZeroConcentratedDP(1.0), [PureDP(0.1), GaussianDP(0.2), ZeroConcentratedDP(0.3)], {"rho": 0.325}),
        (ApproximateDP(1.0, 1e-5), [PureDP(0.1), ApproximateDP(0.2, 1e-6)], {"epsilon": 0.3, "delta": 1e-6}),
        (GaussianDP(2.0), [GaussianDP(1.0), GaussianDP(1.0)], {"mu": 1.4142135623730951}),
    ],
    ids=["zcdp", "approximate", "gaussian"],
)
def test_mixed_budgets_agree_with_composition(tmp_path, budget, charges, spent):
    ledger = Ledger(tmp_path / "b.db", budget)
    for guarantee in charges:
        ledger.charge(guarantee, "m")
    assert ledger.account().spent == spent
    together = compose(charges)
    for name, number in spent.items():
        assert number == pytest.approx(getattr(together, name), rel=1e-14)


@pytest.mark.parametrize(
    ("budget", "charges"),
    [
        (PureDP(0.3), [PureDP(0.1)] * 3),
        (PureDP(1.0), [PureDP(1 / 3)] * 2 + [PureDP(0.2)]),
        (ApproximateDP(0.7, 3e-7), [ApproximateDP(0.1, 1e-7)] * 3 + [PureDP(0.4)]),
        (GaussianDP(1.1), [GaussianDP(0.1), GaussianDP(0.7), GaussianDP(0.3)]),
        (ZeroConcentratedDP(0.03), [GaussianDP(0.1), PureDP(0.2), ZeroConcentratedDP(0.005)]),
    ],
    ids=["three tenths", "thirds", "approximate", "gaussian", "mixed"],
)
def test_a_ledger_and_compose_give_the_same_sum(tmp_path, budget, charges):
    ledger = Ledger(tmp_path / "b.db", budget)
    for guarantee in charges:
        ledger.charge(guarantee, "m")
    assert ledger.account().spent == vars(compose(charges))
    # What compose says of them is granted by a budget of that size, to the last one.
    exact = Ledger(tmp_path / "b.db", compose(charges), "exact")
    for guarantee in charges:
        exact.charge(guarantee, "m")


def test_delta_runs_out_by_itself(tmp_path):
    ledger = Ledger(tmp_path / "b.db", ApproximateDP(10.0, 1e-6))
    ledger.charge(ApproximateDP(1.0, 6e-7), "m")
    assert "delta = 4e-07 left" in words_of(lambda: ledger.charge(ApproximateDP(1.0, 5e-7), "m"))
    ledger.charge(PureDP(9.0), "m")
    assert ledger.account().left == {"epsilon": 0.0, "delta": 4e-7}


@pytest.mark.parametrize("epsilon", [1e-15, 1e-10, 1e-6, 1e-3, 0.1, 0.9999, 1.0, 3.0, 20.0])
def test_what_a_pure_release_takes_of_a_gaussian_budget_is_proven_and_tight(epsilon):
    (square,) = amounts(GaussianDP, PureDP(epsilon))
    with decimal.localcontext(prec=100):
        mu, bound = square.sqrt(), 1 / (1 + decimal.Decimal(repr(epsilon)).exp())
        # mu is enough if Phi(-mu/2) is at most 1/(1 + e^epsilon).
        assert normal_tail(mu / 2) <= bound < normal_tail(mu * (1 - decimal.Decimal("3e-12")) / 2)


def test_tiny_epsilons_imply_gaussian_privacy():
    for epsilon in (5e-324, 1e-300, 1e-17, 1e-12):
        assert PureDP(epsilon).to_gdp().mu == pytest.approx(math.sqrt(math.pi / 2) * epsilon, rel=1e-9, abs=5e-324)


def test_what_has_no_conversion_is_refused(tmp_path):
    kinds = [PureDP(1.0), ApproximateDP(1.0, 1e-6), GaussianDP(1.0), ZeroConcentratedDP(1.0)]
    allowed = {(0, 0), (1, 0), (1, 1), (2, 2), (2, 0), (3, 3), (3, 0), (3, 2)}
    for i, budget in enumerate(kinds):
        ledger = Ledger(tmp_path / "b.db", budget, dataset=f"set {i}")
        for j, guarantee in enumerate(kinds):
            small = type(guarantee)(*(0.01 * value for value in vars(guarantee).values()))
            if (i, j) in allowed:
                ledger.charge(small, "m")
            else:
                text = words_of(lambda small=small, ledger=ledger: ledger.charge(small, "m"))
                assert "cannot be charged to the budget" in text and "no other conversions" in text
                assert ("ledger init --rho" in text) == isinstance(guarantee, ZeroConcentratedDP)
        for nothing in (NotProven("1-DP"), None, 1.0):
            text = words_of(lambda nothing=nothing, ledger=ledger: ledger.charge(nothing, "m"))
            assert "has no proven guarantee" in text
        assert ledger.account().releases == sum(i == k for k, _ in allowed)


# Releases ------------------------------------------------------------------------------------------------

BALLS = [BALL, *(GeodesicBall(own, own.origin, 0.3) for own in (Sphere(1), PlanarShapes(3)))]
FACE = np.random.default_rng(0).normal(size=(2, 16, 3))


def of_name(name):
    """The mechanism of a name of the registry about the first of the balls that it suits, and records there."""
    ball = next(own for own in BALLS if MECHANISMS[name].suits(own.manifold))
    return mechanism_named(name, ball, 0.5), np.stack([ball.center] * 5)


RELEASES = {
    **{name: of_name(name) for name in MECHANISMS},
    "adaptive": (AdaptiveMechanism(BALL, epsilon=0.5), ROWS),
    "metric": (MetricLaplace(Sphere(1), 0.5), np.array([[0.6, 0.8]])),
    "curves": (FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1.0, [0.3, 0.4]), np.zeros((4, 2, 16))),
    "face": (FaceMeanMechanism(FACE, 1.0, mu=0.1), np.zeros((4, 2, 16, 3))),
    "smoothed face": (FaceDesign(FaceMeanMechanism(FACE, 1.0, mu=0.1), np.ones(3)), np.zeros((4, 2, 16, 3))),
    "surface": (surface_mechanism(), np.zeros((4, 2, 16, 3))),
    "shrunk surface": (surface_design(), np.zeros((4, 2, 16, 3))),
    "points": (PointwiseGaussian(np.zeros((3, 3)), 1.0, 0.5), np.zeros((4, 3, 3))),
    "points together": (JointGaussian(np.zeros((3, 3)), 1.0, 0.5), np.zeros((4, 3, 3))),
}


@pytest.mark.parametrize("name", RELEASES)
def test_every_mechanism_charges_before_it_reads_entropy(tmp_path, monkeypatch, name):
    mechanism, data = RELEASES[name]
    ledger = Ledger(tmp_path / "b.db", ZeroConcentratedDP(10.0))
    genuine, seen = os.urandom, []

    def urandom(size):
        seen.append([entry["state"] for entry in contents(ledger.path)[1]])
        return genuine(size)

    monkeypatch.setattr(os, "urandom", urandom)
    release = mechanism.release(data, ledger)
    assert seen and all(states == ["charged"] for states in seen)
    (entry,) = contents(ledger.path)[1]
    assert entry["state"] == "released" and entry["mechanism"] == release.record["mechanism"]
    assert entry["record"] == record_digest(json.loads(release.to_json()))
    assert entry["guarantee"] == {
        key: value for key, value in release.record["guarantee"].items() if key in ("kind", "epsilon", "mu", "delta")
    }
    # Not after the draw: how long that takes may depend on the data.
    assert entry["time"] == release.record["created"]

    def fail(size):
        raise RuntimeError

    monkeypatch.setattr(os, "urandom", fail)
    with pytest.raises(RuntimeError):
        mechanism.release(data, ledger=ledger)
    assert [entry["state"] for entry in contents(ledger.path)[1]] == ["released", "charged"]
    assert ledger.account().lost == 1

    # Bad input costs nothing.
    monkeypatch.setattr(os, "urandom", genuine)
    few = data[: min(len(data) - 1, 1)]  # one record is enough for a mechanism of one record
    for wrong in (few, data[..., None], data.astype(str)):
        words_of(lambda wrong=wrong: mechanism.release(wrong, ledger))
    assert ledger.account().releases == 2
    # Neither does a budget that is too small; nothing is drawn then.
    small = Ledger(tmp_path / "b.db", ZeroConcentratedDP(1e-9), "small")
    monkeypatch.setattr(os, "urandom", fail)
    assert "'small' has rho = 1e-09 left" in words_of(lambda: mechanism.release(data, small))
    assert small.account().releases == 0
    assert "ledger must be a Ledger" in words_of(lambda: mechanism.release(data, str(ledger.path)))


def test_all_mechanisms_are_in_the_table():
    public = [getattr(jaxgeodp.mechanisms, name) for name in jaxgeodp.mechanisms.__all__]
    public += [getattr(jaxgeodp.surfaces, name) for name in jaxgeodp.surfaces.__all__]
    public += [getattr(jaxgeodp.functional, name) for name in jaxgeodp.functional.__all__]
    releasing = {kind for kind in public if hasattr(kind, "release") and not inspect.isabstract(kind)}
    assert releasing <= {type(mechanism) for mechanism, _ in RELEASES.values()}


def test_refusals_by_calibration_are_not_charged(tmp_path):
    ledger = Ledger(tmp_path / "b.db", ApproximateDP(10.0, 1e-3))
    tiny = LaplaceMechanism(GeodesicBall(jaxgeodp.SPD(2), np.eye(2), 1.0), 0.1)
    assert "raise epsilon above" in words_of(lambda: tiny.release(np.tile(np.eye(2), (2, 1, 1)), ledger))
    large = LaplaceMechanism(GeodesicBall(jaxgeodp.SPD(2), np.eye(2), 15.0), 9.0)
    assert "too large for double" in words_of(lambda: large.release(np.tile(np.eye(2), (9999, 1, 1)), ledger))
    median = KNGMechanism(BALL, 1.0, statistic=jaxgeodp.FrechetMedian())
    assert "delta= is not supported" in words_of(lambda: median.release(ROWS, ledger, delta=1e-9))
    words_of(lambda: KNGMechanism(BALL, 1.0).release(ROWS, ledger, delta=2.0))
    paper = LaplaceMechanism(BALL, 1.0, calibration="paper")
    assert "has no proven guarantee" in words_of(lambda: paper.release(ROWS, ledger))
    assert ledger.account().releases == 0
    assert "ledger" not in inspect.signature(release_by_chain).parameters


def test_a_release_in_fixed_time_charges_its_delta(tmp_path):
    ledger = Ledger(tmp_path / "b.db", ApproximateDP(1.0, 1e-6))
    KNGMechanism(BALL, 0.5).release(ROWS, ledger, delta=1e-7)
    assert ledger.account().spent == {"epsilon": 0.5, "delta": 1e-7}
    pure = Ledger(tmp_path / "b.db", PureDP(1.0), "pure")
    assert "cannot be charged" in words_of(lambda: KNGMechanism(BALL, 0.5).release(ROWS, pure, delta=1e-7))


def test_nothing_private_is_in_the_file(tmp_path):
    ledger, secret = Ledger(tmp_path / "b.db", PureDP(10.0)), 0.123456789
    data = np.full((4, 1), secret)
    release = TangentLaplace(BALL, 5.0).release(data, ledger)
    content = ledger.path.read_bytes()
    for number in (secret, float(release.value[0])):
        assert repr(number)[:8].encode() not in content and np.float64(number).tobytes() not in content


# The file ------------------------------------------------------------------------------------------------


def test_a_budget_is_given_once(tmp_path):
    path = tmp_path / "b.db"
    assert "no such ledger" in words_of(lambda: Ledger(path))
    ledger = Ledger(path, PureDP(1.0))
    assert Ledger(path, PureDP(1.0)) == Ledger(path) == ledger == pickle.loads(pickle.dumps(ledger))
    for other in (PureDP(1.1), GaussianDP(1.0), ApproximateDP(1.0, 1e-9)):
        assert "cannot be changed" in words_of(lambda other=other: Ledger(path, other))
    assert "cannot be changed" in words_of(lambda: add_budget(path, PureDP(1.0)))
    assert "'default'" in words_of(lambda: Ledger(path, dataset="other"))
    for wrong in (NotProven("x"), 1.0, "PureDP(1)", None):
        assert "budget must be" in words_of(lambda wrong=wrong: add_budget(path, wrong, "third"))
    second = add_budget(path, GaussianDP(1.0), "other")
    second.charge(GaussianDP(1.0), "m")
    assert ledger.account().releases == 0 and Ledger(path, dataset="other").account().releases == 1
    for wrong in (NotProven("x"), 1.0, "PureDP(1)"):
        assert "budget must be" in words_of(lambda wrong=wrong: Ledger(path, wrong))
    for wrong in ("", " x", "a\nb", "=1+1", "x" * 101, None, 7):
        assert "dataset must be an id" in words_of(lambda wrong=wrong: Ledger(path, PureDP(1.0), wrong))
    for wrong in ("", b"x", None, {}, "\ud800", "a\nb", "x" * 201):
        assert "mechanism must be a text" in words_of(lambda wrong=wrong: ledger.charge(PureDP(0.1), wrong))
    assert "time must be a text" in words_of(lambda: ledger.charge(PureDP(0.1), "m", 7))
    for wrong in ("short", None, b"0" * 64):
        assert "digest must be" in words_of(lambda wrong=wrong: ledger.settle(1, wrong))
    for wrong in (10**30, 0, "1"):
        assert "entry" in words_of(lambda wrong=wrong: ledger.settle(wrong, "0" * 64))
    assert ledger.account().releases == 0
    for wrong in ("x ", "a  b", "\uff41"):
        assert "cannot be mistaken for another" in words_of(lambda wrong=wrong: Ledger(path, PureDP(1.0), wrong))
    for wrong in ("", b"b.db", None, "a\0b", 3):
        assert "path must name a file" in words_of(lambda wrong=wrong: Ledger(wrong, PureDP(1.0)))
    assert "folder" in words_of(lambda: Ledger(tmp_path / "no" / "b.db", PureDP(1.0)))
    with pytest.raises(AttributeError, match=r"module 'jaxgeodp\.privacy' has no attribute 'nothing'"):
        jaxgeodp.privacy.nothing  # noqa: B018
    assert "is not a file" in words_of(lambda: Ledger(tmp_path, PureDP(1.0)))
    (tmp_path / "empty.db").touch()
    assert "empty.db is empty" in words_of(lambda: Ledger(tmp_path / "empty.db", PureDP(1.0)))
    (tmp_path / "empty.db").unlink()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["b.db"]


@pytest.mark.parametrize("name", ["a b?mode=memory#%41'.db", "Übung.db", ":memory:", "file:x.db"])
def test_any_name_of_a_file_is_that_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Ledger(name, PureDP(1.0)).charge(PureDP(1.0), "m")
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert Ledger(name).account().left == {"epsilon": 0.0}


def test_the_time_is_that_of_the_start_whatever_begins_within(monkeypatch):
    clock = types.SimpleNamespace(UTC=datetime.UTC, datetime=types.SimpleNamespace(now=lambda _: moments.pop(0)))
    moments = [datetime.datetime(2026, 1, 2, 3, minute, 59, tzinfo=datetime.UTC) for minute in (4, 5)]
    monkeypatch.setattr("jaxgeodp.privacy.clock.datetime", clock)
    with work_begins():
        started = now()
        with work_begins():
            assert now() == started == "2026-01-02T03:04+00:00"
        assert now() == started
    assert now() == "2026-01-02T03:05+00:00"


def test_a_link_is_the_same_ledger(tmp_path):
    ledger = Ledger(tmp_path / "b.db", PureDP(1.0))
    (tmp_path / "link.db").symlink_to(ledger.path)
    Ledger(tmp_path / "link.db").charge(PureDP(1.0), "m")
    assert "left of its budget" in words_of(lambda: ledger.charge(PureDP(1.0), "m"))


def test_the_file_is_what_it_should_be(tmp_path):
    ledger = Ledger(tmp_path / "b.db", PureDP(1.0))
    ledger.charge(PureDP(0.1), "m")
    with contextlib.closing(ledger_file.connected(ledger.path.as_uri())) as connection:
        settings_ = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "user_version", "application_id")
        }
        assert settings_ == {
            "journal_mode": "wal",
            "synchronous": 2,
            "foreign_keys": 1,
            "user_version": 1,
            "application_id": ledger_file.APPLICATION,
        }
        for statement in (
            "DELETE FROM releases",
            "DELETE FROM budgets",
            "UPDATE releases SET parameters = '{\"epsilon\": 0.01}'",
            "UPDATE budgets SET parameters = '{\"epsilon\": 99.0}'",
            "UPDATE releases SET record = 'short'",
            "INSERT INTO releases (dataset, kind, parameters, mechanism, time) VALUES ('ghost', 'pure', '{}', '', '')",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                connection.execute(statement)
    entry = ledger.charge(PureDP(0.1), "m")
    ledger.settle(entry, "a" * 64)
    assert "not waiting" in words_of(lambda: ledger.settle(entry, "b" * 64))
    assert "not waiting" in words_of(lambda: ledger.settle(99, "b" * 64))
    assert "not waiting" in words_of(lambda: ledger.settle(2**63 - 1, "b" * 64))
    assert "there is no entry" in words_of(lambda: ledger.settle(2**63, "b" * 64))


def spoil(path, statement):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(statement)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DROP TRIGGER releases_remain", "damaged"),
        ("DROP TRIGGER releases_remain; DELETE FROM releases WHERE id = 2", "damaged"),
        ("CREATE TABLE more (x)", "damaged"),
        ("PRAGMA user_version = 2", "version 2"),
        ("PRAGMA application_id = 0", "is not a ledger"),
        ("INSERT INTO budgets VALUES ('x', 'pure', '{\"epsilon\": -1}', '')", "damaged"),
        ("INSERT INTO budgets VALUES ('x', 'free', '{}', '')", "damaged"),
        ("INSERT INTO releases VALUES (9, 'default', 'pure', '{\"epsilon\": 0.1}', '', '', NULL)", "damaged"),
        ("INSERT INTO releases VALUES (4, 'default', 'pure', '{\"epsilon\": 0.1}', '', x'00', NULL)", "damaged"),
        ("INSERT INTO budgets VALUES ('x', 'pure', '{\"epsilon\": 1.0}', x'00')", "damaged"),
        ("INSERT INTO releases VALUES (4, 'ghost', 'pure', '{\"epsilon\": 0.1}', '', '', NULL)", "damaged"),
    ],
)
def test_a_ledger_that_somebody_edited_is_refused(tmp_path, statement, words):
    ledger = Ledger(tmp_path / "b.db", PureDP(1.0))
    for _ in range(3):
        ledger.charge(PureDP(0.1), "m")
    spoil(ledger.path, statement)
    for call in (lambda: Ledger(ledger.path), lambda: Ledger(ledger.path, PureDP(1.0)), lambda: contents(ledger.path)):
        assert words in words_of(call)


@pytest.mark.parametrize("number", [1, 3])
def test_a_missing_row_is_noticed_even_where_the_triggers_are_back(tmp_path, number):
    ledger = Ledger(tmp_path / "b.db", PureDP(1.0))
    for _ in range(3):
        ledger.charge(PureDP(0.1), "m")
    (trigger,) = [statement for statement in ledger_file.SCHEMA if "TRIGGER releases_remain" in statement]
    spoil(ledger.path, f"DROP TRIGGER releases_remain; DELETE FROM releases WHERE id = {number}; {trigger}")
    assert "damaged or cut short" in words_of(lambda: ledger.charge(PureDP(0.1), "m"))


def test_another_ledger_in_the_place_of_an_open_one_is_noticed(tmp_path):
    ledger = Ledger(tmp_path / "b.db", PureDP(1.0))
    ledger.path.unlink()
    assert "no such ledger" in words_of(lambda: ledger.charge(PureDP(0.1), "m"))
    Ledger(tmp_path / "b.db", PureDP(0.5))
    assert "was replaced after it was opened" in words_of(lambda: ledger.charge(PureDP(0.1), "m"))


def test_the_remains_of_a_ledger_are_not_overwritten(tmp_path):
    for suffix in ("-wal", "-journal"):
        remains = tmp_path / f"b.db{suffix}"
        remains.write_bytes(b"charges")
        assert "main file is missing" in words_of(lambda: Ledger(tmp_path / "b.db", PureDP(1.0)))
        assert remains.read_bytes() == b"charges"
        remains.unlink()


def test_a_locked_ledger_is_waited_for_and_given_up_with_a_sentence(tmp_path, monkeypatch):
    ledger = Ledger(tmp_path / "b.db", PureDP(1.0))
    monkeypatch.setattr(ledger_file, "PATIENCE", 0.2)
    with contextlib.closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        text = words_of(lambda: ledger.charge(PureDP(0.1), "m"), OSError)
        assert "keep the ledger locked; nothing was released" in text
        monkeypatch.setattr(ledger_file, "PATIENCE", 30.0)
        waiting = threading.Thread(target=ledger.charge, args=(PureDP(0.1), "m"))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        other.execute("ROLLBACK")
    waiting.join(30)
    assert ledger.account().releases == 1


def test_threads_share_a_ledger(tmp_path):
    ledger, granted = Ledger(tmp_path / "b.db", PureDP(3.0)), []

    def work():
        with contextlib.suppress(InputError):
            while True:
                granted.append(ledger.charge(PureDP(0.1), "m"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(granted) == list(range(1, 31)) and ledger.account().left == {"epsilon": 0.0}


def test_a_full_disk_is_a_sentence_and_costs_nothing(tmp_path, monkeypatch):
    """The database may not grow by a page; what SQLite answers is what it answers on a full disk."""
    ledger = Ledger(tmp_path / "b.db", PureDP(1e6))
    genuine = ledger_file.connected

    def small(uri):
        connection = genuine(uri)
        connection.execute("PRAGMA max_page_count=1")
        return connection

    monkeypatch.setattr(ledger_file, "connected", small)
    drawn = []
    monkeypatch.setattr(os, "urandom", lambda size: drawn.append(size) or b"\1" * size)
    with pytest.raises(OSError, match="the disk is full; nothing was released"):
        while len(drawn) < 1000:
            TangentLaplace(BALL, 0.1).release(ROWS, ledger)
    before = len(drawn)
    account = ledger.account()
    assert account.releases == before and account.lost == 0
    monkeypatch.setattr(ledger_file, "connected", genuine)
    TangentLaplace(BALL, 0.1).release(ROWS, ledger)
    assert ledger.account().releases == before + 1


WITHOUT_RIGHTS = """
import os, sys
import jaxgeodp
from jaxgeodp.privacy import Ledger, PureDP
from jaxgeodp.privacy.ledger import contents
if os.getuid() == 0:
    os.setuid(65534)
ledger = Ledger(sys.argv[1])
print(ledger.account().releases, len(contents(sys.argv[1])[1]))
for call in (lambda: ledger.charge(PureDP(0.1), "m"), lambda: Ledger(sys.argv[1], PureDP(1.0), "other")):
    try:
        call()
        print("written")
    except OSError as error:
        print(error.strerror)
"""


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs POSIX permissions")
def test_a_ledger_that_another_holds_is_not_read_beside_it(tmp_path, monkeypatch):
    """As if it were on read-only media, where nobody writes."""
    monkeypatch.setattr(ledger_file, "PATIENCE", 0.2)
    ledger = Ledger(tmp_path / "budget.db", PureDP(1.0))
    with contextlib.closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(OSError, match="nothing was read"):
            ledger.account()
    assert ledger.account().releases == 0


def test_a_read_only_ledger_is_shown_but_not_charged(tmp_path):
    folder = pathlib.Path(os.path.realpath(tmp_path)) / "disc"
    folder.mkdir()
    Ledger(folder / "b.db", PureDP(1.0)).charge(PureDP(0.1), "m")
    content = (folder / "b.db").read_bytes()
    (folder / "b.db").chmod(0o444)
    folder.chmod(0o555)
    above = [parent for parent in folder.parents if parent.stat().st_mode & 0o005 != 0o005]
    modes = [parent.stat().st_mode for parent in above]
    try:
        for parent in above:
            parent.chmod(0o755)
        command = [sys.executable, "-c", WITHOUT_RIGHTS, str(folder / "b.db")]
        done = subprocess.run(command, capture_output=True, text=True, cwd=os.getcwd())
    finally:
        for parent, mode in zip(above, modes, strict=True):
            parent.chmod(mode)
        folder.chmod(0o755)
    first, *others = done.stdout.splitlines()
    assert first == "1 1", done.stderr
    assert len(others) == 2
    for line, end in zip(others, ("nothing was released", "no budget was added"), strict=True):
        assert line.startswith("the ledger, or its folder, cannot be ") and line.endswith(end)
    assert [file.name for file in folder.iterdir()] == ["b.db"] and (folder / "b.db").read_bytes() == content


# Faults --------------------------------------------------------------------------------------------------


def faults(*options):
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, str(FAULTS), "--json", *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = {row["fault"]: row for row in json.loads(done.stdout)}
    for row in rows.values():
        lost = [row[name] for name in ("charges_lost", "spent_twice", "drawn_uncharged", "over_budget")]
        assert lost == [0, 0, 0, 0], row
    return rows


def test_faults_lose_no_charge_and_spend_nothing_twice():
    """Each kill is looked at by itself; there are two hundred below."""
    rows = faults("--kills", 4, "--others", 4, "--fast")
    assert rows["SIGKILL in a loop of releases"]["trials"] == 4
    assert rows["8 processes on one ledger"]["entries"] == 400
    assert rows["file cut short"]["trials"] > 50 and rows["foreign file"]["trials"] > 10


@pytest.mark.exhaustive
def test_two_hundred_kills_lose_no_charge():
    rows = faults("--kills", 200, "--others", 50)
    assert rows["SIGKILL in a loop of releases"]["trials"] == 200
    assert rows["SIGKILL in a loop of releases of TangentLaplace"]["trials"] == 200


# The command line ----------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def refused(result):
    text = " ".join(result.output.split())
    assert result.exit_code == 2 and text.startswith("Error: ") and text.endswith("."), result.output
    return text


def test_a_budget_through_the_command_line(tmp_path, monkeypatch):
    book, data = tmp_path / "budget.db", tmp_path / "data.npy"
    np.save(data, ROWS)
    assert run("ledger", "init", book, "--epsilon", 1).exit_code == 0
    assert run("ledger", "init", book, "--mu", 1, "--dataset", "[b]second").exit_code == 2
    assert run("ledger", "init", book, "--mu", 1, "--dataset", "second").exit_code == 0
    call = ("release", data, "--manifold", "euclidean", "--radius", 1, "--mechanism", "tangent", "--ledger", book)
    result = run(*call, "--epsilon", 0.7, "--out", tmp_path / "1.json")
    assert result.exit_code == 0, result.output
    text = refused(run(*call, "--epsilon", 0.7, "--out", tmp_path / "2.json"))
    assert "has epsilon = 0.3 left" in text and not (tmp_path / "2.json").exists()
    other = ("release", data, "--manifold", "euclidean", "--radius", 1, "--mechanism", "wrapped-gaussian")
    other = (*other, "--ledger", book, "--mu", 0.5, "--out", tmp_path / "3.json")
    assert "cannot be charged" in refused(run(*other))
    assert run(*other, "--dataset", "second").exit_code == 0
    with monkeypatch.context() as patch:
        patch.setattr(choice.Choice, "made", lambda *_, **__: pytest.fail("auto is chosen before the budget is seen"))
        auto = ("release", data, "--manifold", "euclidean", "--radius", 1, "--ledger", book, "--epsilon", 0.7)
        assert "has epsilon = 0.3 left" in refused(run(*auto, "--out", tmp_path / "2.json"))
    shown = run("ledger", "show", book).output.splitlines()
    assert [line.split()[0] for line in shown] == ["data", "default", "second"]
    assert (
        shown[1].split("  ")[0] == "default"
        and "epsilon = 0.3" in shown[1]
        and shown[1].split()[-3:] == ["1", "0", "replace-one"]
    )
    for name in ("all.csv", "all.json"):
        assert run("ledger", "export", book, "--out", tmp_path / name).exit_code == 0
        assert "exists" in refused(run("ledger", "export", book, "--out", tmp_path / name))
    rows = list(csv.DictReader((tmp_path / "all.csv").read_text().splitlines()))
    assert [row["epsilon"] + row["mu"] for row in rows] == ["0.7", "0.5"]
    assert rows[0]["record"] == record_digest(json.loads((tmp_path / "1.json").read_text()))
    document = json.loads((tmp_path / "all.json").read_text())
    assert [entry["record"] for entry in document["releases"]] == [row["record"] for row in rows]
    assert document["budgets"][1]["left"] == {"mu": 0.8660254037844386} and {
        entry["adjacency"] for entry in document["releases"]
    } == {"replace-one"}


def test_wrong_calls_are_one_sentence_and_change_nothing(tmp_path):
    book, data = tmp_path / "budget.db", tmp_path / "data.npy"
    np.save(data, ROWS)
    Ledger(book, PureDP(1.0))
    release = ("release", data, "--manifold", "euclidean", "--radius", 1, "--epsilon", 0.1)
    out = ("--out", tmp_path / "out.json")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for words, call in {
        "needs exactly one budget": ("ledger", "init", tmp_path / "new.db"),
        "needs exactly one budget:": ("ledger", "init", tmp_path / "new.db", "--epsilon", 1, "--mu", 1),
        "--epsilon with --delta": ("ledger", "init", tmp_path / "new.db", "--mu", 1, "--delta", 0.1),
        "above 0": ("ledger", "init", tmp_path / "new.db", "--epsilon", -1),
        "below 1": ("ledger", "init", tmp_path / "new.db", "--epsilon", 1, "--delta", 1.5),
        "finite": ("ledger", "init", tmp_path / "new.db", "--rho", "inf"),
        "budget already": ("ledger", "init", book, "--epsilon", 1),
        "dataset must be an id": ("ledger", "init", book, "--epsilon", 1, "--dataset", "=cmd"),
        "no such ledger": ("ledger", "show", tmp_path / "new.db"),
        "is not a ledger": ("ledger", "show", data),
        "is not a ledger of": ("ledger", "export", data, *out),
        "must end in": ("ledger", "export", book, "--out", tmp_path / "out.txt"),
        "is another file of this call": (*release, "--ledger", book, "--out", book, "--overwrite"),
        "needs --ledger": (*release, *out, "--dataset", "x"),
        "has no budget": (*release, *out, "--ledger", book, "--dataset", "x"),
        "no such ledger;": (*release, *out, "--ledger", tmp_path / "new.db"),
        "takes no --ledger": ("face", "demo", "--out", tmp_path / "faces", "--ledger", book),
    }.items():
        assert words in refused(run(*call)), words
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_failure_of_the_system_exits_with_1_and_writes_nothing(tmp_path, monkeypatch):
    np.save(tmp_path / "data.npy", ROWS)
    ledger = Ledger(tmp_path / "budget.db", PureDP(1.0))
    monkeypatch.setattr(ledger_file, "PATIENCE", 0.1)
    call = ("release", tmp_path / "data.npy", "--manifold", "euclidean", "--radius", 1, "--epsilon", 0.1)
    call = (*call, "--mechanism", "tangent", "--ledger", ledger.path, "--out", tmp_path / "out.json")
    with contextlib.closing(sqlite3.connect(ledger.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        result = run(*call)
    text = " ".join(result.output.split())
    assert result.exit_code == 1 and text.endswith("keep the ledger locked; nothing was released.")
    assert not (tmp_path / "out.json").exists() and ledger.account().releases == 0


def test_written_numbers_are_decimals():
    assert written(0.1) + written(0.2) == written(0.3)
    assert str(written(1e22)) == "1E+22"


def test_a_state_that_is_no_digest_is_refused_before_it_is_written(tmp_path):
    """What a ledger holds it must read again: one such entry, and all of it would count as damaged."""
    ledger = Ledger(tmp_path / "b.db", PureDP(1.0))
    for state in ("", "secret", "A" * 64, "a" * 63, "a" * 64 + "\n", 1):
        with pytest.raises(InputError, match="state must be 64 hexadecimal digits"):
            ledger.charge(PureDP(0.1), "m", state=state)
    ledger.charge(PureDP(0.1), "m", state="a" * 64)
    assert ledger.account().releases == 1 and len(contents(ledger.path)[1]) == 1
