"""Laws that depend on the order of the records are drawn from in a secret random order (Theorems O and O2)."""

import dataclasses
import functools
import itertools
from collections import Counter

import numpy as np
import pytest
from strategies import exhaustive

from jaxgeodp import (
    SPD,
    Euclidean,
    FrechetMean,
    FrechetMedian,
    GeodesicBall,
    Hyperbolic,
    LaplaceMechanism,
    LocatedMechanism,
    Sphere,
    Statistic,
)
from jaxgeodp.checks import InputError
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.inference.spread import SpreadMechanism
from jaxgeodp.mechanisms.names import MECHANISMS, mechanism_named
from jaxgeodp.privacy import entropy
from jaxgeodp.releases import add_remove, drafts
from jaxgeodp.releases.add_remove import in_places
from jaxgeodp.releases.groups import release_groups
from jaxgeodp.releases.weights import checked_weights, weighs
from jaxgeodp.sklearn import PrivateFrechetMean

PLANE, CAP = Hyperbolic(2), GeodesicBall(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.3)


# Orders ---------------------------------------------------------------------------------------------------


def test_orders_are_uniform_where_words_are_few(monkeypatch):
    """Words of three values: nearly all draws have two equal ones, of which a plain sort would prefer the first."""
    stream = np.random.default_rng(0)
    monkeypatch.setattr(entropy, "random_words", lambda count: stream.integers(0, 3, count).astype(np.uint64))
    found = Counter(tuple(entropy.random_order(3).tolist()) for _ in range(1200))
    plain = Counter(tuple(np.argsort(stream.integers(0, 3, 3), kind="stable").tolist()) for _ in range(1200))

    def chi_squared(counts):
        return sum((counts[order] - 200) ** 2 / 200 for order in itertools.permutations(range(3)))

    assert chi_squared(found) < 30.9 < chi_squared(plain), "planted: ties as they come"


def test_an_order_has_each_place_once():
    for count in (0, 1, 2, 1000):
        assert sorted(entropy.random_order(count).tolist()) == list(range(count))


@pytest.mark.parametrize(("n", "m"), [(3, 2), (2, 3), (3, 3)])
def test_places_are_filled_alike_whatever_the_order_of_the_file(n, m):
    """By all orders and places: each list has the same probability as each other one of the same records."""
    records = np.arange(1.0, n + 1.0)[:, None]

    def law(places):
        pairs = itertools.product(itertools.permutations(range(n)), places)
        lists = [in_places(records, np.array(order), np.array(own))[:, 0] for order, own in pairs]
        return Counter(tuple(np.nan_to_num(own).tolist()) for own in lists)

    assert len(set(law(list(itertools.permutations(range(m)))).values())) == 1
    assert n >= m or len(law([tuple(range(m))])) < len(law(list(itertools.permutations(range(m)))))


# A search -------------------------------------------------------------------------------------------------


def _corners(n):
    """Three far corners, of which one has half of the records: their tree mean depends on the order."""
    directions = 2.0 * np.pi * np.arange(3) / 3.0
    tangents = 9.0 * np.stack([np.zeros(3), np.cos(directions), np.sin(directions)], axis=1)
    corners = np.stack([PLANE.exp(PLANE.origin, own) for own in tangents])
    return corners[np.tile([0, 1, 2, 2], n // 4 + 1)[:n]]


def _first_centers(data, times, monkeypatch, adjacency):
    """The place of the first centre, along the axis of the first corner; counts have no noise."""
    monkeypatch.setattr(add_remove, "with_noise", lambda draw, steps, scale: np.array([1000.0 + 60.0]))
    monkeypatch.setattr(add_remove, "BEYOND", 0.5)
    # Public, and the same each time.
    monkeypatch.setattr(LocatedMechanism, "law", functools.lru_cache(LocatedMechanism.law))
    mechanism = LocatedMechanism(PLANE, epsilon=4096.0 / len(data))  # as much noise for any number of records
    releases = [mechanism.release(data, adjacency=adjacency) for _ in range(times)]
    return np.array([np.asarray(own.record["stages"][1]["center"])[1] for own in releases])


def _told_apart(one, other):
    """The largest share of draws that some threshold puts on the right side, of both laws together."""
    cuts = np.concatenate([one, other])[:, None]
    shares = np.mean(one <= cuts, axis=1) + np.mean(other > cuts, axis=1)
    return 0.5 * max(np.max(shares), np.max(2.0 - shares))


# That records are put in order where their number is private, too, is tried below.
@pytest.mark.parametrize(("adjacency", "n"), [("replace-one", 256), *exhaustive(("add-remove", 1024))])
def test_the_first_centre_does_not_tell_how_a_file_is_sorted(adjacency, n, monkeypatch):
    """A record more in front, or a sorted file in which one value has changed, moves all others by a place."""
    data = _corners(n)
    moved = np.roll(data, 1, axis=0)
    # Two in a thousand such sixes of one law are told apart.
    one, other = (_first_centers(own, 6, monkeypatch, adjacency) for own in (data, moved))
    assert _told_apart(one, other) < 0.95
    for place in (add_remove, drafts):
        monkeypatch.setattr(place, "random_order", np.arange)
    one, other = (_first_centers(own, 3, monkeypatch, adjacency) for own in (data, moved))
    assert _told_apart(one, other) == 1.0, "planted: records stay in their order"


# All mechanisms -------------------------------------------------------------------------------------------


def _mechanisms():
    line = GeodesicBall(Euclidean(2), np.zeros(2), 1.0)
    for name, entry in MECHANISMS.items():
        # One that computes a mean and one that has none are tried where space is curved; flat space compiles faster.
        for ball in (CAP, line) if name in ("laplace", "kng") else (line, CAP):
            if entry.suits(ball.manifold):
                yield name, mechanism_named(name, ball, 2.0)
                break
    yield "located epsilon", LocatedMechanism(Sphere(2), epsilon=4.0)
    yield "located mu", LocatedMechanism(PLANE, mu=4.0)
    yield "located plane", LocatedMechanism(PLANE, epsilon=8.0)
    yield "covariance", SpreadMechanism(CAP, CAP.center, epsilon=2.0)
    yield "curves", FunctionalGaussianMechanism(PeriodicKernel(0.2), 0.01, 1.0, 2.0)


CASES = dict(_mechanisms())
CURVED = {
    f"{name} on the sphere": mechanism_named(name, CAP, 2.0)
    for name, entry in MECHANISMS.items()
    if name not in ("laplace", "kng") and entry.suits(CAP.manifold)
}
assert {"laplace", "kng", "gibbs", "tangent", "wrapped-gaussian"} <= set(CASES)


def _records(mechanism, n=240):
    stream = np.random.default_rng(3)
    if isinstance(mechanism, FunctionalGaussianMechanism):
        return 0.1 * stream.normal(size=(n, 1, 32))
    manifold = getattr(mechanism, "manifold", None) or mechanism.ball.manifold
    if isinstance(manifold, Euclidean):
        return 0.2 * stream.normal(size=(n, 2))
    if isinstance(manifold, Hyperbolic):
        return np.stack([manifold.exp(manifold.origin, np.array([0.0, *own])) for own in stream.normal(size=(n, 2))])
    points = np.array([0.0, 0.0, 1.0]) + 0.1 * stream.normal(size=(n, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


@pytest.fixture
def spied(monkeypatch):
    """Entropy that is the same for each release, a count without noise, and how often records were put in order."""
    calls = []

    def order(count):
        calls.append(count)
        return np.random.default_rng(len(calls)).permutation(count)

    def same_entropy():
        calls.clear()
        for name in ("os.urandom", "random._urandom"):
            monkeypatch.setattr(name, np.random.default_rng(7).bytes)

    for place in (add_remove, drafts):
        monkeypatch.setattr(place, "random_order", order)
    monkeypatch.setattr(add_remove, "with_noise", lambda draw, steps, scale: np.asarray(steps, float))
    return calls, same_entropy


@pytest.mark.parametrize("name", [*CASES, *exhaustive(*CURVED)])
def test_the_value_depends_on_a_set_or_records_are_put_in_order(name, spied):
    mechanism, (calls, same_entropy) = (CASES | CURVED)[name], spied
    data = _records(mechanism)
    values, orders = [], []
    for own in (data, data[::-1].copy()):
        same_entropy()
        values.append(mechanism.release(own).value)
        orders.append(list(calls))
    law = mechanism.law(len(data), data.shape[1:])
    if law.order_matters:
        assert orders == [[len(data)]] * 2
    else:
        assert orders == [[], []]
        np.testing.assert_allclose(values[0], values[1], atol=1e-6 * np.max(np.abs(values[0])))


@pytest.mark.parametrize(
    ("grouped", "persons", "name"),
    [
        (False, False, "laplace"),
        *itertools.product([False, True], [False, True], ["tangent", "located epsilon"]),
        *[(False, False, "located plane"), (False, True, "located plane")],
        *exhaustive((True, False, "located plane"), (True, True, "located plane")),
        *exhaustive((False, True, "laplace"), (True, False, "laplace"), (True, True, "laplace")),
    ],
)
def test_where_the_count_is_private_records_and_places_are_put_in_order(name, persons, grouped, spied):
    """Which record stands where is then as likely as anything else, whatever follows (see the tests of places)."""
    mechanism, (calls, same_entropy) = CASES[name], spied
    data, labels = _records(mechanism, 800), np.repeat(np.arange(400), 2)
    more = {"persons": labels} if persons else {}
    same_entropy()

    def released():
        if grouped:
            return release_groups(mechanism, data, np.repeat(["a", "b"], 400), ["a", "b"], **more)
        return {"": mechanism.release(data, adjacency="add-remove", **more)}

    if persons and isinstance(mechanism, LocatedMechanism):
        with pytest.raises(InputError, match="persons needs a public ball"):
            released()
        return
    releases = released().values()
    found = iter(calls)
    for own in releases:
        assert next(found) == own.record["count"]["value"]
        assert next(found) == own.record["n"]
        if name == "located plane":  # a draw about a tree mean: what stands in places is put in order again
            assert next(found) == own.record["n"]
    assert len(list(found)) == 0


@dataclasses.dataclass(frozen=True)
class Streamed(Statistic):
    """A mean by one's own way: the last record pulls most."""

    def loss(self, manifold, x, datum):
        return 0.5 * manifold.squared_dist(x, datum)

    def gradient_sensitivity(self, ball, n, support_radius, calibration):
        return FrechetMean().gradient_sensitivity(ball, n, support_radius, calibration)

    def minimizer(self, ball, data):
        return ball.clip(data)[-1]


def test_a_statistic_with_its_own_way_to_all_records_is_taken_to_depend_on_their_order():
    class OnlyLoss(Streamed):
        minimizer = Statistic.minimizer

    assert Streamed().order_matters and not OnlyLoss().order_matters
    assert not any(own().order_matters for own in (FrechetMean, FrechetMedian))
    law = LaplaceMechanism(CAP, 2.0).law(20)
    assert not law.order_matters
    target = dataclasses.replace(law.target, statistic=Streamed())
    ordered = dataclasses.replace(law, target=target)
    assert ordered.order_matters and weighs(law) and not weighs(ordered)
    with pytest.raises(InputError, match="does not depend on their order"):
        checked_weights("test", np.ones(20), 20).of(ordered)


def test_a_law_that_says_nothing_is_taken_to_depend_on_the_order():
    from jaxgeodp.releases.law import Law

    assert Law.order_matters is True


@pytest.mark.parametrize("space", [PLANE, *exhaustive(SPD(2))], ids=str)
def test_the_estimator_that_finds_its_ball_puts_records_in_order(space, spied):
    """`PrivateFrechetMean` without a radius, where the number of records is private."""
    calls, same_entropy = spied
    matrices = np.exp(0.2 * np.random.default_rng(0).normal(size=(800, 1, 1))) * np.eye(2)
    data = matrices if space == SPD(2) else _records(CASES["located plane"], 800)  # on the plane with programs of above
    same_entropy()
    fitted = PrivateFrechetMean(space, epsilon=8.0, adjacency="add-remove").fit(data)
    places = fitted.release_.record["n"]
    assert calls == [800, places, places]
