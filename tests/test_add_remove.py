"""Releases that hide how many records there are, and groups: what adding, removing or moving a record may change."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import exhaustive
from typer.testing import CliRunner

from jaxgeodp import (
    SPD,
    Euclidean,
    GeodesicBall,
    Hyperbolic,
    KNGMechanism,
    LaplaceMechanism,
    Sphere,
    TangentLaplace,
    WrappedGaussian,
)
from jaxgeodp.cli.app import app
from jaxgeodp.cli.group_options import as_word
from jaxgeodp.domains.points_in_ball import PointsInBall
from jaxgeodp.privacy import ApproximateDP, Ledger, PureDP
from jaxgeodp.privacy.ledger import contents
from jaxgeodp.privacy.release import record_digest
from jaxgeodp.releases.add_remove import Counting, hidden_count, in_places
from jaxgeodp.releases.drafts import Request, raw_records
from jaxgeodp.releases.groups import release_groups
from jaxgeodp.releases.ways import way_of
from jaxgeodp.statistics import frechet_mean

LINE = GeodesicBall(Euclidean(1), [0.0], 1.0)
MECHANISM = TangentLaplace(LINE, 1.0)


def hidden(mechanism=MECHANISM, times=1, delta=0.0, numerics="idealized"):
    import jax

    way = way_of("test", delta, numerics)
    with jax.enable_x64(True):
        record = jax.ShapeDtypeStruct(mechanism.ball.manifold.shape, np.float64)
        return hidden_count(Request(mechanism, way, "add-remove"), record, times)


# The law of a release, exactly ----------------------------------------------------------------------------


def joint_log_density(release, records, values, most, count_scale=None):
    """Log of the density of (places, value), (most, len(values)), averaged over the orders of the priorities.

    All records but one are equal, so that the orders matter in which each record comes first once.
    """
    counting, n = release.counting, len(records)
    scale = counting.scale if count_scale is None else count_scale
    noise = range(-400 * scale, 400 * scale + 1)
    mass = {z: math.exp(-abs(z) / scale) for z in noise} if scale else {0: 1.0}
    total, places = sum(mass.values()), {}
    for z, weight in mass.items():
        m = counting.places(n + z)
        places[m] = places.get(m, 0.0) + weight / total
    orders = [np.roll(np.arange(n), shift) for shift in range(max(n, 1))]
    result = np.full((most, len(values)), -np.inf)
    for m in range(counting.least, most):
        scale_m = release.mechanism.law(m).scale
        chosen = np.array(
            [in_places(np.asarray(records, float)[:, None], order, np.arange(m))[:, 0] for order in orders]
        )
        means = np.nan_to_num(chosen).mean(axis=1)  # a record of NaN counts as the centre
        density = np.mean(np.exp(-np.abs(values - means[:, None]) / scale_m) / (2 * scale_m), axis=0)
        with np.errstate(divide="ignore"):
            result[m] = np.log(places.get(m, 0.0)) + np.log(density)
    return result


def largest_ratio(release, fewer, more, **planted):
    """The largest log ratio of two neighbours' laws, both ways."""
    values, most = np.linspace(-3.0, 3.0, 61), 130
    one, other = (joint_log_density(release, records, values, most, **planted) for records in (fewer, more))
    with np.errstate(invalid="ignore"):
        difference = np.abs(one - other)
    return np.max(difference[~np.isnan(difference)])


NEIGHBOURS = [([-1.0] * 60, [-1.0] * 60 + [1.0]), ([1.0] * 3, [1.0] * 3 + [-1.0]), ([], [1.0])]


def with_short_count(release):
    """Nothing is taken off the count, so that few records make several numbers of places likely."""
    import dataclasses

    return dataclasses.replace(release, counting=dataclasses.replace(release.counting, below=0))


@pytest.mark.parametrize("fewer, more", NEIGHBOURS)
def test_one_record_more_changes_the_law_by_epsilon_at_most(fewer, more):
    for release in (hidden(), with_short_count(hidden())):
        assert largest_ratio(release, fewer, more) <= 1.0 + 1e-9
    assert largest_ratio(with_short_count(hidden()), *NEIGHBOURS[0]) > 0.95, "the bound is nearly reached"


def test_the_same_number_of_records_costs_no_count():
    ratio = largest_ratio(with_short_count(hidden()), [-1.0] * 59 + [1.0], [-1.0] * 60)
    assert 0.7 < ratio <= 0.9 + 1e-9


def test_a_count_with_too_little_noise_is_found():
    release = with_short_count(hidden())
    assert release.counting.scale == 10
    assert largest_ratio(release, *NEIGHBOURS[0], count_scale=3) > 1.1
    assert largest_ratio(release, *NEIGHBOURS[0], count_scale=0) == np.inf, "n without noise"


def test_groups_charged_once_under_replace_one_are_found():
    """A record moves from one group to the other; noise and counts of the groups are independent."""

    def moved(times):
        release = with_short_count(hidden(times=times))
        one, other = ([-1.0] * 60, [-1.0] * 60 + [1.0]), ([1.0] * 60, [1.0] * 60 + [-1.0])
        return largest_ratio(release, *one) + largest_ratio(release, *other)

    assert 0.9 < moved(times=2) <= 1.0 + 1e-9
    assert moved(times=1) > 1.8, "planted: charged once"


# Places ---------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 12), st.randoms())
def test_one_record_more_changes_one_place_at_most(n, at, places, random):
    at = min(at, n)
    # No two are equal: an order is a uniform permutation.
    records, (own, *priorities) = np.arange(1.0, n + 1.0)[:, None], random.sample(range(1000), n + 1)
    more, slots = np.insert(records, at, 99.0, axis=0), np.array(random.sample(range(places), places))
    one = in_places(records, np.argsort(priorities), slots)[:, 0]
    other = in_places(more, np.argsort(np.insert(priorities, at, own)), slots)[:, 0]
    assert len(one) == len(other) == places
    one, other = (sorted(np.nan_to_num(values).tolist()) for values in (one, other))
    gone, come = list(one), []
    for value in other:
        gone.remove(value) if value in gone else come.append(value)
    assert len(gone) == len(come) <= 1


def test_places_are_seldom_more_than_records():
    for scale in (1, 4, 10, 100):
        counting = hidden().counting
        counting = Counting(scale, math.ceil(scale * math.log(10.0)), 2, 2**24)
        beyond = sum(math.exp(-abs(z) / scale) for z in range(counting.below + 1, 200 * scale))
        total = sum(math.exp(-abs(z) / scale) for z in range(-200 * scale, 200 * scale + 1))
        assert beyond / total < 0.05
        assert counting.places(-(10**6)) == 2


# Releases -------------------------------------------------------------------------------------------------


def points(n, seed=0):
    return np.random.default_rng(seed).uniform(-0.5, 0.5, size=(n, 1))


def test_any_number_of_records_is_released():
    for data in ([], points(0), points(1), points(2), points(200)):
        record = MECHANISM.release(data, adjacency="add-remove").record
        assert record["n"] >= 2 and record["guarantee"]["epsilon"] == 1.0
        assert record["guarantee"]["adjacency"] == "add-remove"
        count = record["count"]
        assert record["n"] == max(count["least"], count["value"] - 24)
        assert record["sensitivity"]["value"] == pytest.approx(2.0 / record["n"])
        assert "Theorem O" in record["guarantee"]["theorem"]


def test_the_value_is_about_the_mean_of_the_records():
    data = 0.5 + 0.01 * points(2000)
    values = [MECHANISM.release(data, adjacency="add-remove").value[0] for _ in range(3)]
    np.testing.assert_allclose(values, 0.5, atol=0.03)


@pytest.mark.parametrize(
    "mechanism",
    [
        LaplaceMechanism(GeodesicBall(Hyperbolic(2), Hyperbolic(2).origin, 1.5), 1.0),
        *exhaustive(LaplaceMechanism(GeodesicBall(SPD(2), SPD(2).origin, 1.5), 1.0)),
        KNGMechanism(GeodesicBall(Sphere(2), Sphere(2).origin, 0.5), 2.0),
        WrappedGaussian(GeodesicBall(Sphere(2), Sphere(2).origin, 0.5), 1.0),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_few_places_are_never_refused(mechanism):
    """Laws that do not exist for small n have a least number of places, found before the charge."""
    release = mechanism.release(np.empty((0, *mechanism.ball.manifold.shape)), adjacency="add-remove")
    assert release.value.shape == mechanism.ball.manifold.shape
    assert release.record["guarantee"] | {"theorem": ""} == mechanism.guarantee.record("") | {"adjacency": "add-remove"}


def test_ways_add_up():
    assert hidden(delta=1e-6, mechanism=LaplaceMechanism(LINE, 1.0)).guarantee == ApproximateDP(1.0, 1e-6)
    rho = hidden(WrappedGaussian(LINE, 1.0), numerics="grid").guarantee.rho
    assert rho == pytest.approx(0.5 * (1 / 16 + WRAPPED_REST**2), abs=1e-12) and rho <= 0.5


WRAPPED_REST = hidden(WrappedGaussian(LINE, 1.0)).mechanism.mu


def test_persons_may_be_any_number():
    data, whose = points(9), list("aaabbbccc")
    record = MECHANISM.release(data, persons=whose, adjacency="add-remove").record
    assert record["unit"] == "person" and record["guarantee"]["adjacency"] == "add-remove (all of a person)"
    assert MECHANISM.release([], persons=[], adjacency="add-remove").record["n"] >= 2
    assert MECHANISM.release(data, persons=["a"] * 9, adjacency="add-remove").record["n"] >= 2


def test_each_persons_record_is_their_mean():
    """Far more noise-free persons than places matter not: all persons are alike here."""
    data = np.tile([[0.2], [0.6]], (500, 1))
    record = MECHANISM.release(data, persons=np.arange(1000) // 2, adjacency="add-remove").record
    assert abs(record["value"][0] - 0.4) < 0.1 and record["n"] < 650


def test_calls_are_refused_before_the_charge(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", PureDP(1.0))
    for call, words in (
        (lambda: MECHANISM.release(points(5), ledger, adjacency="substitution"), "adjacency must be"),
        (lambda: KNGMechanism(LINE, 1.0, calibration="paper").release(points(5), adjacency="add-remove"), "by one"),
        (lambda: MECHANISM.release(np.zeros((5, 2)), ledger, adjacency="add-remove"), "must have shape"),
        (lambda: MECHANISM.release(points(5), ledger, persons=[1], adjacency="add-remove"), "one label for each"),
        (lambda: release_groups(MECHANISM, points(5), ["a"] * 5, [], ledger), "public names"),
        (lambda: release_groups(MECHANISM, points(5), ["a"] * 5, "ab", ledger), "public names"),
        (lambda: release_groups(MECHANISM, points(5), ["a"] * 5, ["a", "a"], ledger), "twice"),
        (lambda: release_groups(MECHANISM, points(5), ["a"] * 5, [None], ledger), "words or numbers"),
        (lambda: release_groups(MECHANISM, points(5), ["a"] * 4, ["a"], ledger), "labels must hold one label"),
        (lambda: release_groups(MECHANISM, points(5), ["a"] * 5, ["a"], ledger, adjacency="x"), "adjacency must be"),
        (lambda: release_groups(MECHANISM, points(5), ["a"] * 5, ["a"], ledger, persons=[1]), "persons must hold one"),
        (lambda: release_groups(MECHANISM, points(5), ["a"] * 5, ["a"], ledger, groups_per_person=1), "needs persons"),
        (
            lambda: release_groups(
                MECHANISM, points(5), ["a"] * 5, ["a"], ledger, persons=["p"] * 5, groups_per_person=0
            ),
            "at least 1",
        ),
        (lambda: LaplaceMechanism(LINE, 1.0).release(points(5), numerics="grid", adjacency="add-remove"), "grid"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    assert ledger.account().releases == 0


# Groups ---------------------------------------------------------------------------------------------------


def test_groups_are_released_each_from_its_own_records(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", PureDP(1.0))
    data = np.concatenate([np.full((800, 1), -0.5), np.full((900, 1), 0.5), np.full((500, 1), 0.9)])
    labels = np.array(["low"] * 800 + ["high"] * 900 + ["other"] * 500)
    releases = release_groups(MECHANISM, data, labels, ["low", "high", "empty"], ledger)
    assert list(releases) == ["low", "high", "empty"]
    for name, mean, n in (("low", -0.5, 800), ("high", 0.5, 900)):
        record = releases[name].record
        assert abs(record["value"][0] - mean) < 0.05 and abs(record["n"] - n) < 250
        assert record["group"] == {"name": name, "of": ["low", "high", "empty"]}
        assert record["guarantee"]["adjacency"] == "add-remove (all groups together)"
    (account,), (entry,) = contents(ledger.path)
    assert account.spent == {"epsilon": 1.0} and entry["adjacency"] == "add-remove"
    import hashlib

    digests = "".join(record_digest(release.record) for release in releases.values())
    assert entry["record"] == hashlib.sha256(digests.encode()).hexdigest()


def test_groups_under_replace_one_have_half_each():
    releases = release_groups(MECHANISM, points(50), [1, 2] * 25, [1, 2], adjacency="replace-one")
    for release in releases.values():
        assert release.record["guarantee"]["epsilon"] == 1.0
        assert release.record["scale"] == pytest.approx(2.0 / release.record["n"] / 0.45)
        assert release.record["count"]["scale"] == 20
    whole = release_groups(WrappedGaussian(LINE, 1.0), points(50), [1, 2] * 25, [1, 2], adjacency="replace-one")
    assert whole[1].record["guarantee"]["mu"] <= 1.0
    parts = release_groups(
        LaplaceMechanism(LINE, 1.0), points(8), [1, 2] * 4, [1, 2], adjacency="replace-one", delta=1e-6
    )
    assert parts[1].record["guarantee"]["delta"] == 1e-6


# Persons in groups ----------------------------------------------------------------------------------------

WHOSE = ["a", "a", "b", "b", "b", "c", "c", "d"]
WHERE = [0, 1, 0, 0, 2, 1, 9, 0]  # 9 is no group; b is in two groups, c in one


def test_a_person_has_one_record_in_each_group(seen):
    data = 0.1 * np.arange(8.0)[:, None]
    releases = release_groups(MECHANISM, data, WHERE, [0, 1, 2], persons=WHOSE)
    assert [releases[group].record["count"]["value"] for group in (0, 1, 2)] == [3, 2, 1]
    placed = [sorted(own[~np.isnan(own)].tolist()) for own in seen["placed"]]
    # The fewest places are 2, so that one of three persons is left out of the first group.
    assert len(placed[0]) == 2 and all(np.isclose([0.0, 0.25, 0.7], own).any() for own in placed[0])
    np.testing.assert_allclose(placed[1], [0.1, 0.5], atol=1e-9)
    np.testing.assert_allclose(placed[2], [0.4], atol=1e-9)


def test_somebody_in_more_groups_than_one_may_be_in_is_in_none(seen):
    data = 0.1 * np.arange(8.0)[:, None]
    releases = release_groups(MECHANISM, data, WHERE, [0, 1, 2], persons=WHOSE, groups_per_person=1)
    assert [releases[group].record["count"]["value"] for group in (0, 1, 2)] == [1, 1, 0]


@pytest.mark.parametrize(
    ("adjacency", "most", "times"),
    [
        *(("add-remove", None, 3), ("add-remove", 1, 1), ("add-remove", 2, 2), ("add-remove", 7, 3)),
        *(("replace-one", None, 3), ("replace-one", 1, 2), ("replace-one", 2, 3)),
    ],
)
def test_persons_share_the_budget_of_the_groups_that_they_may_be_in(adjacency, most, times):
    releases = release_groups(
        MECHANISM, points(8), WHERE, [0, 1, 2], persons=WHOSE, adjacency=adjacency, groups_per_person=most
    )
    for release in releases.values():
        record = release.record
        assert record["guarantee"]["epsilon"] <= 1.0 and record["unit"] == "person"
        assert record["guarantee"]["adjacency"] == f"{adjacency} (all of a person; all groups together)"
        assert "Theorems O and W" in record["guarantee"]["theorem"]
        assert record["group"]["of_one_person_at_most"] == min(most or 3, 3)
        assert times * (record["count"]["left"]["epsilon"] + 1 / record["count"]["scale"]) == pytest.approx(
            1.0, rel=1e-9
        )
        assert 10 * times <= record["count"]["scale"] <= 10 * times + 1


def touched(whose, where, others_whose, others_where, most):
    """How many groups' records differ, of which each names who they are made of."""

    def groups_of(whose, where):
        from jaxgeodp.releases.groups import memberships

        names, numbers = np.unique(np.array(whose), return_inverse=True)
        own, groups = memberships(numbers, np.array(where, int), most)
        found = {}
        for record, unit in enumerate(own):
            if groups[unit] >= 0:
                found.setdefault((groups[unit], names[numbers[record]]), []).append(record)
        return {
            group: sorted((who, sum(whose[k] == who for k in own)) for (g, who), own in found.items() if g == group)
            for group in range(4)
        }

    one, other = groups_of(whose, where), groups_of(others_whose, others_where)
    return sum(one[group] != other[group] for group in one)


@settings(max_examples=200, deadline=None)
@given(st.data(), st.integers(1, 4))
def test_a_person_touches_no_more_groups_than_are_paid_for(data, most):
    """All of a person, or one record, there or not; all of a person replaced."""
    draw = data.draw
    rest = draw(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(-1, 3)), max_size=8))
    mine, others = (draw(st.lists(st.integers(-1, 3), max_size=5)) for _ in range(2))

    def with_person(own):
        return [who for who, _ in rest] + ["p"] * len(own), [where for _, where in rest] + own

    assert touched(*with_person(mine), *with_person([]), most) <= most
    assert touched(*with_person(mine), *with_person(mine[:-1]), most) <= most
    assert touched(*with_person(mine), *with_person(others), most) <= min(2 * most, 4)


def test_a_person_in_both_groups_charged_once_is_found():
    """The exact law of two groups that share a person, who is there or not."""

    def both(times):
        release = with_short_count(hidden(times=times))
        return sum(largest_ratio(release, [own] * 60, [own] * 60 + [-own]) for own in (-1.0, 1.0))

    assert 0.9 < both(times=2) <= 1.0 + 1e-9
    assert both(times=1) > 1.8, "planted: parallel composition, as if nobody were in two groups"


def test_persons_of_groups_are_summarised_after_the_charge_by_one_program(tmp_path, monkeypatch):
    order, shapes = [], []
    original, charge = PointsInBall.of_persons, Ledger.charge

    def watched(self, owner, shape):
        summaries = original(self, owner, shape)

        def seen(records, places, count):
            order.append("records")
            shapes.append((records.shape, count))
            return summaries(records, places, count)

        return seen

    monkeypatch.setattr(PointsInBall, "of_persons", watched)
    monkeypatch.setattr(Ledger, "charge", lambda *given, **more: (order.append("charge"), charge(*given, **more))[1])
    ledgers = [Ledger(tmp_path / "budget.db", PureDP(2.5), own) for own in ("one", "other")]
    for ledger, adjacency, whose in zip(ledgers, ("add-remove", "replace-one"), (WHOSE, ["a"] * 8), strict=True):
        release_groups(MECHANISM, points(8), WHERE, [0, 1, 2], ledger, persons=whose, adjacency=adjacency)
    assert order == ["charge", "records"] * 2 and shapes == [((8, 1), 9)] * 2
    release_groups(MECHANISM, [], [], [0, 1, 2], persons=[])
    accounts, entries = contents(ledgers[0].path)
    assert [account.spent["epsilon"] for account in accounts] == pytest.approx([1.0, 1.0])
    # Of persons no more is said than by a single release: a record that is replaced may become another person's.
    assert [own["adjacency"] for own in entries] == ["add-remove", "replace-one"]


def test_a_ledger_does_not_add_what_does_not_add_up(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", PureDP(10.0))
    MECHANISM.release(points(20), ledger, adjacency="add-remove")  # holds for both
    release_groups(MECHANISM, points(20), [1, 2] * 10, [1, 2], ledger)
    with pytest.raises(ValueError, match="cannot be added"):
        MECHANISM.release(points(20), ledger)
    with pytest.raises(ValueError, match="cannot be added"):
        ledger.check(PureDP(0.1))
    assert ledger.account().adjacency == "add-remove"
    MECHANISM.release(points(20), ledger, adjacency="add-remove")
    release_groups(MECHANISM, points(20), [1, 2] * 10, [1, 2], ledger, adjacency="replace-one")
    assert ledger.account().releases == 4
    other = Ledger(tmp_path / "budget.db", PureDP(10.0), "other")
    MECHANISM.release(points(20), other)
    with pytest.raises(ValueError, match="cannot be added"):
        release_groups(MECHANISM, points(20), [1, 2] * 10, [1, 2], other)
    with pytest.raises(ValueError, match="adjacency must be"):
        other.charge(PureDP(0.1), "x", adjacency="neither")
    assert other.account().releases == 1


# Command line ---------------------------------------------------------------------------------------------


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(1)
    lines = [f"{x:.3f},{y:.3f},{'ab'[k % 2]},{k // 3}" for k, (x, y) in enumerate(rng.uniform(-0.3, 0.3, (90, 2)))]
    (tmp_path / "data.csv").write_text("x,y,sort,who\n" + "\n".join(lines) + "\n")
    return tmp_path / "data.csv"


USUAL = (
    "--header",
    "--manifold",
    "euclidean",
    "--radius",
    1,
    "--epsilon",
    1,
    "--mechanism",
    "tangent",
    "--columns",
    "x,y",
)


def test_a_file_of_one_record_is_released_as_one_of_two_is(tmp_path):
    """Where their number is private; where it is public, one record is refused."""
    for lines in (1, 2):
        (tmp_path / "data.csv").write_text("x,y\n" + "0.1,0.2\n" * lines)
        words = ("release", tmp_path / "data.csv", *USUAL, "--out", tmp_path / "out.json", "--overwrite")
        hidden, public = run(*words, "--adjacency", "add-remove"), run(*words)
        assert hidden.exit_code == 0, hidden.output
        assert public.exit_code == (2 if lines == 1 else 0)


def test_release_of_groups(table, tmp_path):
    out = tmp_path / "release.json"
    done = run("release", table, *USUAL, "--group", "sort", "--groups", "a,b", "--out", out)
    assert done.exit_code == 0, done.output
    records = [json.loads((tmp_path / f"release-{name}.json").read_text()) for name in "ab"]
    assert [record["group"]["name"] for record in records] == ["a", "b"] and not out.exists()
    again = run("release", table, *USUAL, "--group", "sort", "--groups", "a,c", "--out", out)
    assert again.exit_code == 2 and "exists" in again.output and not (tmp_path / "release-c.json").exists()


def test_release_of_groups_of_persons(table, tmp_path):
    """Each of the 30 has 3 records, in both groups."""
    own = (*USUAL, "--group", "sort", "--groups", "a,b", "--person", "who", "--out", tmp_path / "r.json", "--overwrite")
    for more, most, scale in (((), 2, 20), (("--groups-per-person", 1), 1, 10)):
        done = run("release", table, *own, *more)
        assert done.exit_code == 0 and "places for persons" in " ".join(done.output.split()), done.output
        record = json.loads((tmp_path / "r-a.json").read_text())
        assert record["unit"] == "person" and record["count"]["scale"] == scale
        assert record["group"] == {"name": "a", "of": ["a", "b"], "of_one_person_at_most": most}
        assert record["guarantee"]["epsilon"] == 1.0


def test_release_with_a_private_number(table, tmp_path):
    done = run("release", table, *USUAL, "--adjacency", "add-remove", "--person", "who", "--out", tmp_path / "r.json")
    assert done.exit_code == 0, done.output
    record = json.loads((tmp_path / "r.json").read_text())
    assert record["unit"] == "person" and f"n = {record['n']} places for persons" in " ".join(done.output.split())


@pytest.mark.parametrize(
    "more, words",
    [
        (["--group", "sort"], "must be given together"),
        (["--groups", "a"], "must be given together"),
        (["--group", "sort", "--groups", "a,../b"], "becomes a file name"),
        (["--group", "sort", "--groups", "a,A"], "differ only in capitals"),
        (["--group", "sort", "--groups", "a", "--groups-per-person", "1"], "needs --person"),
        (["--groups-per-person", "1"], "needs --group"),
        (["--group", "sort", "--groups", "a", "--person", "who", "--groups-per-person", "0"], "at least 1"),
        (["--group", "sort", "--groups", "a", "--expect-n", "90"], "keeps private"),
        (["--adjacency", "add-remove", "--expect-n", "90"], "keeps private"),
        (["--adjacency", "add-remove", "--mechanism", "auto"], "name a mechanism"),
        (["--adjacency", "swap"], "must be replace-one or add-remove"),
        (["--group", "size", "--groups", "a"], "no column of that name"),
        (["--group", "sort", "--groups", "a", "--plot", "x.png"], "--plot is for one release"),
        (["--group", "x", "--groups", "a"], "not a coordinate"),
    ],
)
def test_what_contradicts_is_refused(table, tmp_path, more, words):
    done = run("release", table, *USUAL, "--out", tmp_path / "r.json", *more)
    assert done.exit_code == 2 and words in " ".join(done.output.split()), done.output
    assert not list(tmp_path.glob("*.json"))


def test_labels_are_words_as_written():
    assert [
        as_word(label) for label in (None, b"a ", " a", 7, 7.0, 7.5, np.int64(3), math.nan, math.inf, True, np.False_)
    ] == [*(None, "a", "a", "7", "7", "7.5", "3", None, "inf", "True", "False")]


def test_a_record_that_is_none_counts_as_the_centre():
    data = np.full((400, 1), 0.5)
    data[::2] = np.nan
    value = MECHANISM.release(data, adjacency="add-remove").value
    assert abs(float(value[0]) - 0.25) < 0.1
    assert raw_records(MECHANISM, data).shape == (400, 1)
    assert frechet_mean(Euclidean(1), np.array([[0.0], [0.5]])) == 0.25


# What the release itself does ----------------------------------------------------------------------------


@pytest.fixture
def seen(monkeypatch):
    """The scales that the count's noise is drawn with, and which records stand in places; the noise is 0."""
    from jaxgeodp.releases import add_remove

    calls = {"scales": [], "placed": [], "orders": [], "places": [], "noise": 0}

    def noise(draw, steps, scale):
        calls["scales"].append((draw.__name__, scale))
        return np.asarray(steps, float) + calls["noise"]

    def placed(records, order, places):
        calls["orders"].append(order)
        calls["places"].append(places)
        result = in_places(records, order, places)
        calls["placed"].append(result)
        return result

    monkeypatch.setattr(add_remove, "with_noise", noise)
    monkeypatch.setattr(add_remove, "in_places", placed)
    return calls


def test_the_count_has_the_noise_that_is_paid_for(seen):
    MECHANISM.release(points(60), adjacency="add-remove")
    TangentLaplace(LINE, 0.5).release(points(60), adjacency="add-remove")
    assert seen["scales"] == [("discrete_laplace", 10), ("discrete_laplace", 20)]


def test_orders_are_new_and_know_nothing_of_the_records(seen):
    data = np.sort(points(60), axis=0)
    for _ in range(40):
        MECHANISM.release(data, adjacency="add-remove")
    kept = np.array([np.isin(data[:, 0], placed[:, 0]) for placed in seen["placed"]])
    assert kept.sum(axis=1).tolist() == [36] * 40
    # Each record is kept in .6 of all releases: neither the first ones of the file nor the smallest always.
    assert np.all((kept.mean(axis=0) > 0.15) & (kept.mean(axis=0) < 0.97))
    for orders, count in ((seen["orders"], 60), (seen["places"], 36)):
        assert all(sorted(own) == list(range(count)) for own in orders)
        ranks = np.argsort(orders, axis=1)
        assert np.all(np.abs(ranks.mean(axis=0) - 0.5 * (count - 1)) < 0.26 * count), "no place is preferred"


def test_records_of_different_numbers_make_the_same_record(seen):
    """N + 7 records and a noise that is 7 less: nothing but the value may differ."""
    one = MECHANISM.release(points(60), adjacency="add-remove").record
    seen["noise"] = -7
    other = MECHANISM.release(points(67), adjacency="add-remove").record
    value, created = one.pop("value"), one.pop("created")
    assert value != other.pop("value") and created <= other.pop("created")
    assert one == other


def test_nobody_is_no_person(seen):
    record = MECHANISM.release(points(90), persons=np.arange(90) // 2, adjacency="add-remove").record
    assert record["count"]["value"] == 45


def test_what_is_refused_after_the_charge_is_released_with_the_least(seen, monkeypatch):
    law = TangentLaplace.law

    def refusing(self, n, shape=()):
        if n > 30:
            raise MemoryError if n > 60 else ValueError("too many")
        return law(self, n, shape)

    monkeypatch.setattr(TangentLaplace, "law", refusing)
    for n in (40, 60, 95):
        record = MECHANISM.release(points(n), adjacency="add-remove").record
        assert record["n"] == min(n - 24, 30) and record["count"]["most"] == 30
    monkeypatch.setattr("jaxgeodp.releases.add_remove.most_places", lambda *given: 2**24)  # nobody knew
    for n in (40, 60, 95):
        record = MECHANISM.release(points(n), adjacency="add-remove").record
        assert record["n"] == (n - 24 if n - 24 <= 30 else record["count"]["least"])


def test_a_law_that_is_refused_for_many_records_is_released_with_as_many_as_it_has():
    """Noise for more is too small: there are at most so many places, by public numbers."""
    cap = GeodesicBall(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.7)
    mechanism = KNGMechanism(cap, 1e10)
    data = np.tile(cap.center, (9000, 1))
    with pytest.raises(ValueError, match="too small"):
        mechanism.release(data)
    record = mechanism.release(data, adjacency="add-remove").record
    most = record["count"]["most"]
    assert record["n"] == most and 50 < most < 9000
    mechanism.release(data[: int(0.99 * most)])  # so many are not refused


def test_a_call_that_no_number_of_records_mends_is_refused_at_once():
    """Each number was compiled for before: minutes."""
    compiled = []
    mechanism = LaplaceMechanism(GeodesicBall(Euclidean(2), np.zeros(2), 1.0), 1e16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jaxgeodp.releases.density.compiled_ahead", lambda *given, **more: compiled.append(given))
        with pytest.raises(ValueError, match="too small"):
            mechanism.release(np.zeros((300, 2)), adjacency="add-remove")
        with pytest.raises(ValueError, match="must not replace"):
            release_groups(MECHANISM, points(6), ["a"] * 6, ["a"], more={"n": 1})
    assert not compiled


def test_a_budget_whose_count_needs_the_memory_of_a_machine_is_refused(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", PureDP(1.0))
    with pytest.raises(ValueError, match="raise the privacy parameter"):
        TangentLaplace(LINE, 1e-9).release(points(20), ledger, adjacency="add-remove")
    assert ledger.account().releases == 0


@pytest.mark.parametrize("groups", [5, "ab", b"ab", {}, [], None, np.eye(2), (name for name in "ab"), np.array(1.0)])
def test_groups_that_are_no_list_of_names_are_refused(groups):
    with pytest.raises(ValueError, match="groups must be the public names"):
        release_groups(MECHANISM, points(6), ["a"] * 6, groups)


def test_labels_that_no_group_can_have_are_refused():
    for labels, groups in ((np.arange(6), ["1", "2"]), (np.array(["1"] * 6), [1, 2]), (np.array([b"a"] * 6), ["a"])):
        with pytest.raises(ValueError, match="use one type for both"):
            release_groups(MECHANISM, points(6), labels, groups)

    class Odd(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            raise RuntimeError("odd")

    releases = release_groups(MECHANISM, points(6), ["x", Odd("x"), "y", "y", "y", "y"], np.array(["x", "y"]))
    assert list(releases) == ["x", "y"]


def test_the_page_says_what_is_promised(tmp_path):
    pages = {}
    for name, release in {
        "group": release_groups(MECHANISM, points(60), [1, 2] * 30, [1, 2])[1],
        "both": release_groups(MECHANISM, points(60), [1, 2] * 30, [1, 2], adjacency="replace-one")[1],
        "one": MECHANISM.release(points(60), adjacency="add-remove"),
        "whose": release_groups(MECHANISM, points(60), [1, 2] * 30, [1, 2], persons=[*range(20)] * 3)[1],
    }.items():
        release.save(tmp_path / f"{name}.json")
        done = run("show", tmp_path / f"{name}.json", "--html", tmp_path / f"{name}.html")
        assert done.exit_code == 0 and "places" in done.output
        assert ("SHA-256" in done.output) == (name != "one")
        pages[name] = " ".join((tmp_path / f"{name}.html").read_text().split())
    together = "for the releases of all groups together"
    assert f"one record is added or taken out, {together}" in pages["group"]
    assert f"one record is replaced by another, {together}" in pages["both"]
    assert f"one person is added or taken out, {together}" in pages["whose"]
    assert "when one record is added or taken out<" in pages["one"]
    assert "epsilon: 0.9" in pages["one"] and "epsilon: 0.45" in pages["both"] and "places for records" in pages["one"]


def test_the_parts_of_groups_are_no_more_and_said_to_be_no_less_than_all_together():
    """Counts: of all groups that a person may be in; delta: split so that the parts never add up to more."""
    labels, persons = [1, 2, 3] * 10, [str(place // 3) for place in range(30)]
    releases = release_groups(MECHANISM, points(30), labels, [1, 2, 3], persons=persons, groups_per_person=2)
    for release in releases.values():
        count = release.record["count"]
        assert count["guarantee"]["epsilon"] == pytest.approx(2.0 / count["scale"], rel=1e-12)
        assert count["guarantee"]["adjacency"] == release.record["guarantee"]["adjacency"]
    for groups in ([1, 2, 3], [1, 2, 3, 4, 5]):
        found = release_groups(LaplaceMechanism(LINE, 1.0), points(30), labels, groups, persons=persons, delta=1e-5)
        assert 0.99e-5 < found[1].record["guarantee"]["delta"] <= 1e-5
