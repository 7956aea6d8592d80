"""An adaptive release whose records are elsewhere: the stages of one in one place, for no more budget."""

import dataclasses
import pickle
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from strategies import exhaustive
from test_adaptive_grid import CAP, PLANE, SHAPE, records
from test_rounds import check_fallbacks, finished

import jaxgeodp.locating.steps as steps_module
from jaxgeodp import SPD, AdaptiveMechanism, Correlations, Euclidean, GeodesicBall, Ledger, Release, Shape
from jaxgeodp.checks import InputError
from jaxgeodp.locating import SearchInRounds
from jaxgeodp.locating.stages import StageMechanism
from jaxgeodp.mechanisms.adaptive_walk import Count
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.decimals import written
from jaxgeodp.releases import merged

N = 500


CASES = [(CAP, None, 0.05), (CAP, SHAPE, 0.35), (PLANE, None, 1.0), *exhaustive((PLANE, None, 0.05), (CAP, None, 1.0))]


@pytest.mark.parametrize(("ball", "shape", "spread"), CASES)
def test_rounds_ask_and_find_what_one_place_does(ball, shape, spread, monkeypatch):
    monkeypatch.setattr(grid, "with_noise", lambda draw, steps, scale: np.asarray(steps, float))
    data = records(ball, spread)
    data[5] = np.nan
    mechanism = AdaptiveMechanism(ball, mu=1.0, shape=shape)
    one = mechanism.release(data, numerics="grid")
    found, again = (finished(SearchInRounds(mechanism, N), *own) for own in ((data, 1), (data[::-1], 3)))
    assert len(found.releases) == len(one.record["steps"]) > 2
    for release, told in zip(found.releases, one.record["steps"], strict=True):
        own = told["count"] if told["asked"] == "records" else told.get("center", one.value)
        np.testing.assert_allclose(release.value, own, rtol=1e-12, atol=1e-15)
        assert release.record["search"].get("radius") == told.get("radius")
    np.testing.assert_allclose(found.releases[-1].value, one.value, rtol=1e-12, atol=1e-15)
    for first, second in zip(found.releases, again.releases, strict=True):
        np.testing.assert_array_equal(first.value, second.value)


@pytest.mark.parametrize("spread", [0.05, 1.0])
def test_all_stages_fit_into_the_budget(spread, tmp_path, monkeypatch):
    mechanism, data = AdaptiveMechanism(CAP, mu=1.1), records(CAP, spread)
    whole = mechanism.guarantee.to_zcdp()
    ledger = Ledger(tmp_path / "budget.db", whole)
    search = finished(SearchInRounds(mechanism, N), data, 2, ledger)
    assert search.guarantees == tuple(release.guarantee for release in search.releases)
    total = sum(Fraction(written(own.rho)) for own in search.guarantees)
    assert 0.999999 * Fraction(written(whole.rho)) < total <= Fraction(written(whole.rho))
    assert ledger.account().releases == len(search.releases)
    # What noise there is keeps what is promised.
    for release in search.releases:
        own = release.record
        assert (own["sensitivity"]["value"] / own["scale"]) ** 2 / 2.0 <= release.guarantee.rho
    # Planted: a last release with all of the budget.
    monkeypatch.setattr(steps_module, "float_below", lambda exact, power=1: whole.rho if power == 1 else mechanism.mu)
    with pytest.raises(InputError, match="left of its budget"):
        finished(SearchInRounds(mechanism, N), data, 1, Ledger(tmp_path / "other.db", whole))


def test_workers_and_files_carry_the_stages(tmp_path):
    """By pickle and JSON, in single precision, as JAX is elsewhere."""
    mechanism, data, number = AdaptiveMechanism(CAP, mu=1.0), records(CAP, 1.0), 0
    search = SearchInRounds(mechanism, N)
    with jax.enable_x64(False):
        while search.now is not None:
            there, number = pickle.loads(pickle.dumps(search.now)), number + 1
            state = merged([there.prepare(data[:200]), search.now.prepare(data[200:])])
            search.now.finish(state).save(tmp_path / f"{number}.json")
            search = pickle.loads(pickle.dumps(search)).after(Release.load(tmp_path / f"{number}.json"))
    loaded = [Release.load(tmp_path / f"{k}.json") for k in range(1, number + 1)]
    assert SearchInRounds(mechanism, N, loaded).now is None
    assert search.releases[-1].record["search"]["shares"] and len(loaded[0].record["vector"]) == 2
    for wrong in (loaded[1:], [*loaded, loaded[-1]], [loaded[0]] * 2, ["file"]):
        with pytest.raises(InputError, match="not that of stage"):
            SearchInRounds(mechanism, N, wrong)
    for value in (np.full(3, np.nan), np.zeros(2), np.array([2.0, 0.0, 0.0])):
        with pytest.raises(InputError, match="no value that stage 1"):
            SearchInRounds(mechanism, N, [dataclasses.replace(loaded[0], value=value)])
    for value in ([1.0, 0.0, 0.0], [0.0, 0.0, -1.0]):  # points, but not of the ball
        with pytest.raises(InputError, match="no value that stage 1"):
            SearchInRounds(mechanism, N, [dataclasses.replace(loaded[0], value=np.array(value))])
    for vector in (None, ["x"], [1.0], [np.nan, 0.0], [10**400, 0], ["1.0", "0.0"], [True, False], [0.0, True]):
        record = loaded[0].record | {"vector": vector}
        with pytest.raises(InputError, match="no value that stage 1"):
            SearchInRounds(mechanism, N, [dataclasses.replace(loaded[0], record=record)])
    for value in (np.array(np.nan), np.zeros(1), np.array(7)):
        with pytest.raises(InputError, match="no value that stage 2"):
            SearchInRounds(mechanism, N, [loaded[0], dataclasses.replace(loaded[1], value=value)])


def test_what_is_released_in_place_of_no_answer_is_like_an_answer():
    check_fallbacks(SearchInRounds(AdaptiveMechanism(CAP, mu=1.0), N), records(CAP, 0.05))


@pytest.mark.parametrize(
    ("manifold", "clip", "place"),
    [
        (Euclidean(2), 2.0, [1.5, 0.0]),
        *exhaustive((SPD(2), 2.0, 4.0 * np.eye(2)), (SPD(2), 7.0, 20.0), (Correlations(3), 5.0, 8.0)),
    ],
)
def test_a_shape_reaches_beyond_the_radius(manifold, clip, place):
    """Also to matrices whose eigenvalues have a ratio of e^30: no stage is refused after it was charged."""
    ball = GeodesicBall(manifold, manifold.origin, 0.5)
    shape = Shape(ball.center, manifold.frame(jnp.asarray(ball.center)), clip)
    origin, far = jnp.asarray(manifold.origin), np.array(place)
    if far.ndim == 0:  # a distance
        far = np.asarray(manifold.exp(origin, place * manifold.frame(origin)[0]))
    found = finished(
        SearchInRounds(AdaptiveMechanism(ball, mu=1.0, shape=shape), N), np.tile(far, (N, *[1] * far.ndim)), 2
    )
    centers = [own.value for own in found.releases if own.record["search"].get("clip")]
    away = [float(manifold.dist(jnp.asarray(ball.center), jnp.asarray(own))) for own in centers]
    assert len(centers) > 1 and max(away) > 1.0
    released = jnp.asarray(found.releases[-1].value)
    assert np.ndim(place) == 0 or float(manifold.dist(jnp.asarray(far), released)) < 0.3


def test_sums_of_a_count_are_no_larger_than_of_all_records():
    """Else sites could send any sum for their number of records."""
    count = Count(np.asarray(CAP.center), 0.1, Fraction(1, 100))
    mechanism = AdaptiveMechanism(CAP, mu=1.0)
    stage = StageMechanism(mechanism.domain, steps_module.StepStage(mechanism, N, count, 0.1), N, 2)
    state = stage.prepare(records(CAP, 0.05))
    assert 0.0 <= float(stage.finish(state).value) <= 1.2 * N
    with pytest.raises(InputError, match="can have the sums"):
        stage.finish(dataclasses.replace(state, sums=np.full_like(state.sums, 10**7)))


def test_few_records_have_one_stage_and_others_are_refused():
    few = SearchInRounds(AdaptiveMechanism(CAP, mu=0.5), 60)
    assert finished(few, records(CAP, 0.5, 60), 2).releases[0].record["search"]["shares"] == [0.0, 1.0]
    for mechanism, words in (
        (AdaptiveMechanism(CAP, epsilon=1.0), "not sums over records; give mu"),
        (CAP, "LocatedMechanism or an"),
    ):
        with pytest.raises(InputError, match=words):
            SearchInRounds(mechanism, N)
    own = SearchInRounds(AdaptiveMechanism(CAP, mu=1.0), N).now
    with pytest.raises(InputError, match="for 500 records, got 499"):
        own.finish(own.prepare(records(CAP, 0.5, 499)))
    other = SearchInRounds(AdaptiveMechanism(CAP, mu=1.0), N + 1).now
    with pytest.raises(InputError, match="with the same parameters"):
        other.finish(own.prepare(records(CAP, 0.5, N)))
