"""Searches whose records are elsewhere: the questions and answers of a search in one place, for no more budget."""

import dataclasses
import pickle

import jax
import numpy as np
import pytest
from strategies import exhaustive, only_at_the_origin
from test_locating import records_on
from typer.testing import CliRunner

from jaxgeodp import (
    SPD,
    Euclidean,
    Hyperbolic,
    LocatedMechanism,
    PlanarShapes,
    Product,
    Release,
    Sphere,
)
from jaxgeodp.checks import InputError
from jaxgeodp.cli import app
from jaxgeodp.locating import SearchInRounds
from jaxgeodp.locating import rounds as rounds_module
from jaxgeodp.privacy import grid
from jaxgeodp.releases import merged
from jaxgeodp.releases.drafts import Request, drafted
from jaxgeodp.releases.states import digest_of_public
from jaxgeodp.releases.ways import FromSums
from jaxgeodp.sites import SiteKey, combined, masked

N = 1500
CASES = [
    (Hyperbolic(2), "tangent", {"epsilon": 8.0}, None),
    (Product(Sphere(2), Euclidean(2)), "tangent", {"epsilon": 20.0}, 30.0),
    *exhaustive(
        (Sphere(2), "tangent", {"epsilon": 8.0}, None),
        (SPD(2), "tangent", {"epsilon": 8.0}, None),
        (Euclidean(3), "wrapped-gaussian", {"mu": 1.0}, 30.0),
        (Euclidean(2), "wrapped", {"epsilon": 8.0}, 30.0),
    ),
]


def parts(data, blocks):
    return np.array_split(data, blocks)


def finished(search, data, blocks, ledger=None):
    """All stages, of records in so many blocks."""
    while search.now is not None:
        state = merged([search.now.prepare(block) for block in parts(data, blocks)])
        search = search.after(search.now.finish(state, ledger))
    return search


@pytest.fixture
def silent(monkeypatch):
    """No noise: what is left follows from the records."""

    def first(draw, counts, threshold, scale):
        return next((place for place, count in enumerate(counts) if count >= threshold), len(counts))

    monkeypatch.setattr(grid, "with_noise", lambda draw, steps, scale: np.asarray(steps, float))
    monkeypatch.setattr(grid, "in_secret", first)


@pytest.mark.parametrize(("space", "name", "budget", "domain"), CASES, ids=str)
def test_rounds_ask_and_find_what_a_search_in_one_place_does(space, name, budget, domain, silent):
    data = records_on(space, N)
    data = np.array(data)
    data[5] = np.nan
    mechanism = LocatedMechanism(space, name, domain=domain, **budget)
    one = mechanism.release(data, numerics="grid")
    start = SearchInRounds(mechanism, N)
    found, again = (finished(start, own, blocks) for own, blocks in ((data, 1), (data[::-1], 3)))
    stages = [release.value for release in found.releases[:-1]]
    assert len(stages) == len(one.record["stages"])
    for value, told in zip(stages, one.record["stages"], strict=True):
        np.testing.assert_array_equal(value, np.asarray(told["radius"] if "radius" in told else told["center"]))
    # What is left for the last release is not less but for the rounding of each stage's cost.
    rest = mechanism.law(N).schedule.rest
    own = getattr(found.releases[-1].guarantee, "epsilon", None)
    assert own is None or rest * (1.0 - 1e-12) < own <= rest
    assert found.ball.radius == one.record["ball"]["radius"]
    np.testing.assert_allclose(found.releases[-1].value, one.value, rtol=1e-12)
    for first, second in zip(found.releases, again.releases, strict=True):
        np.testing.assert_array_equal(first.value, second.value)


def test_sites_find_a_ball_together(tmp_path):
    """With masked states, new keys each time, and releases that are files."""
    data = records_on(Sphere(2), N)
    mechanism = LocatedMechanism(Sphere(2), "tangent", epsilon=8.0)
    search, number = SearchInRounds(mechanism, N), 0
    while search.now is not None:
        keys = [SiteKey.new(site) for site in ("north", "south")]
        public = [key.public for key in keys]
        states = [masked(search.now.prepare(own), key, public) for own, key in zip(parts(data, 2), keys, strict=True)]
        number += 1
        search.now.finish(combined(states)).save(tmp_path / f"{number}.json")
        search = search.after(Release.load(tmp_path / f"{number}.json"))
    with jax.enable_x64(True):
        assert float(Sphere(2).dist(search.releases[-1].value, np.mean(data, axis=0) / 1.0)) < 0.2
    assert search.releases[-1].record["ball"]["radius"] == search.ball.radius
    # Whoever has the files knows where the search stands.
    loaded = [Release.load(tmp_path / f"{k}.json") for k in range(1, number + 1)]
    assert SearchInRounds(mechanism, N, loaded).now is None
    assert SearchInRounds(mechanism, N, loaded[:-1]).ball.radius == search.ball.radius
    for wrong in (loaded[1:], [*loaded, loaded[-1]], [loaded[0]] * 2, [loaded[-1]], ["file"]):
        with pytest.raises(InputError, match="not that of stage"):
            SearchInRounds(mechanism, N, wrong)
    for value in (np.full(3, np.nan), np.array([2.0, 0.0, 0.0]), np.array([1.0 + 0j, 0.0, 0.0]), np.array(["x"] * 3)):
        with pytest.raises(InputError, match="no value that stage 1"):
            SearchInRounds(mechanism, N, [dataclasses.replace(loaded[0], value=value)])
    for value in (np.full(3, np.nan), None, np.zeros(2)):
        with pytest.raises(InputError, match=f"no value that stage {number}"):
            SearchInRounds(mechanism, N, [*loaded[:-1], dataclasses.replace(loaded[-1], value=value)])
    with pytest.raises(InputError, match="not that of stage 1"):
        SearchInRounds(mechanism, N, [dataclasses.replace(loaded[0], record=None)])
    with pytest.raises(InputError, match="at most"):
        SearchInRounds(mechanism, 10**400)
    # Sites that write the same numbers otherwise are in the same search.
    again = SearchInRounds(LocatedMechanism(Sphere(2, 1), "tangent", epsilon=8), np.int64(N), loaded[:1])
    assert digest_of_public(again.now) == digest_of_public(SearchInRounds(mechanism, N, loaded[:1]).now)
    # The records say what was asked, and show knows them.
    assert loaded[0].record["search"]["stage"] == 1 and loaded[1].record["search"]["radii"]
    assert loaded[-1].record["search"]["stage"] == number
    for k in range(1, number + 1):
        page = tmp_path / f"{k}.html"
        shown = CliRunner().invoke(app, ["show", f"{tmp_path / str(k)}.json", "--html", str(page)])
        assert shown.exit_code == 0, shown.output
        assert "stage" in page.read_text() and ("around a public centre" in page.read_text()) == (k < number)


@pytest.mark.parametrize(
    ("space", "domain"),
    [(Hyperbolic(2), None), *exhaustive((SPD(2), None), (PlanarShapes(5), None), (Euclidean(2), 30.0))],
    ids=str,
)
def test_workers_get_mechanisms_by_pickle(space, domain):
    """In single precision, as JAX is elsewhere: each stage is prepared and finished there."""
    search = SearchInRounds(LocatedMechanism(space, "tangent", epsilon=8.0, domain=domain), N)
    data = records_on(space, N)
    with jax.enable_x64(False):
        while search.now is not None:
            there = pickle.loads(pickle.dumps(search.now))
            assert digest_of_public(there) == digest_of_public(search.now)
            state = merged([there.prepare(data[:700]), search.now.prepare(data[700:])])
            search = pickle.loads(pickle.dumps(search))
            search = search.after(search.now.finish(state))
    assert search.releases[-1].value.shape == space.shape


@pytest.mark.parametrize("size", [100, 200, *exhaustive(400, 1000)])
@pytest.mark.parametrize("space", [Hyperbolic(2), SPD(2)], ids=str)
def test_rounds_are_refused_where_a_search_in_one_place_is(space, size):
    """By public numbers, before anything is spent."""

    def words(function):
        try:
            function()
        except InputError:
            return "refused"
        return "begins"

    mechanism = LocatedMechanism(space, "tangent", epsilon=8.0)
    shape = jax.ShapeDtypeStruct((size, *space.shape), np.float64)
    with jax.enable_x64(True):
        one = words(lambda: mechanism.law(size).grid(shape))
    assert words(lambda: SearchInRounds(mechanism, size)) == one


def test_a_centre_that_no_ball_is_about_ends_the_search(monkeypatch):
    search = SearchInRounds(LocatedMechanism(Sphere(2), "tangent", epsilon=8.0), N)
    monkeypatch.setattr(rounds_module, "GeodesicBall", only_at_the_origin(InputError))
    search = finished(search, records_on(Sphere(2), N), 1)
    assert search.now is None and search.ball is None and len(search.releases) == 2
    np.testing.assert_array_equal(search.center, search.releases[0].value)


def check_fallbacks(search, data):
    """What is released in place of no answer is like an answer: a number in place of a number, a point of a point."""
    shapes = []
    while (own := search.now) is not None:
        draft = drafted(Request(own, FromSums()), search.n, jax.ShapeDtypeStruct((3,), np.float64))(lambda: None)
        release = own.finish(own.prepare(data))
        assert np.shape(draft.fallback) == release.value.shape and np.all(np.isfinite(draft.fallback))
        if hasattr(question := getattr(getattr(own, "stage", None), "question", None), "radii"):
            assert draft.fallback == max(question.radii)
        shapes.append(release.value.shape)
        search = search.after(release)
    assert set(shapes) == {(), (3,)}


def test_what_is_released_in_place_of_no_answer_is_like_an_answer():
    search = SearchInRounds(LocatedMechanism(Sphere(2), "tangent", epsilon=8.0), N)
    check_fallbacks(search, records_on(Sphere(2), N))


def test_what_cannot_be_searched_is_refused_before_anything_is_spent():
    data = records_on(Sphere(2), N)
    for mechanism, words in (
        (LocatedMechanism(Sphere(2), epsilon=8.0), "no sum of integers"),
        (LocatedMechanism(Sphere(2), mu=1.0), "no sum of integers"),
        (LocatedMechanism(Sphere(2), "tangent", epsilon=0.01), "too few"),
        ("located", "LocatedMechanism"),
    ):
        with pytest.raises(InputError, match=words):
            SearchInRounds(mechanism, N)
    search = SearchInRounds(LocatedMechanism(Sphere(2), "tangent", epsilon=8.0), N)
    own = search.now
    with pytest.raises(InputError, match="for 1500 records, got 1499"):
        own.finish(own.prepare(data[1:]))
    with pytest.raises(InputError, match="prepare and finish"):
        own.release(data)
    with pytest.raises(InputError, match="simulate"):
        own.simulate(jax.random.key(0), data, 2)
    with pytest.raises(InputError, match="density"):
        own.log_density(data[0], data)
    with pytest.raises(InputError, match="persons= is not supported"):
        own.prepare(data, persons=np.arange(N))
    almost = finished(search, data, 1).releases[:-1]
    last = SearchInRounds(search.mechanism, N, almost).now
    with pytest.raises(InputError, match="for 1500 records, got 1499"):
        last.finish(last.prepare(data[1:]))
    with pytest.raises(InputError, match="persons= is not supported"):
        last.prepare(data, persons=np.arange(N))
    other = SearchInRounds(LocatedMechanism(Sphere(2), "tangent", epsilon=9.0), N)
    with pytest.raises(InputError, match="with the same parameters"):
        other.now.finish(own.prepare(data))
