"""Releases in steps: what they cost on every path, what they tell, how near they come, and planted mistakes."""

import dataclasses
import decimal
import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxgeodp as jgd
from jaxgeodp.bounds.rounding import SUPPOSED
from jaxgeodp.checks import InputError
from jaxgeodp.mechanisms import adaptive_simulation
from jaxgeodp.mechanisms.adaptive_law import AdaptiveLaw
from jaxgeodp.mechanisms.adaptive_rules import rule_for
from jaxgeodp.mechanisms.adaptive_stages import lengths, pair_lengths
from jaxgeodp.mechanisms.adaptive_walk import Count, Mean, Pairs, Spending, Whole, refine, strength_of, tried_radii
from jaxgeodp.releases.noise import Norm, Normal

SHAPES = jgd.PlanarShapes(4)
PLANE = jgd.GeodesicBall(jgd.Euclidean(2), [1.0, -1.0], 1.0)
MEAN = jgd.AdaptiveMechanism(PLANE, mu=1.0).law(500).mean
BUDGETS = [{"mu": 1.0}, {"epsilon": 1.0}]
_budgets = pytest.mark.parametrize("budget", BUDGETS, ids=lambda own: next(iter(own)))


def records(ball, offset, spread, n=500, seed=0):
    """Normal in the tangent space, in units of the radius."""
    manifold, draws = ball.manifold, np.random.default_rng(seed)
    z = draws.normal(size=(n, manifold.dim)) * spread / math.sqrt(manifold.dim)
    z[:, 0] += offset
    frame = manifold.frame(jnp.asarray(ball.center))
    return np.array(jax.vmap(lambda v: manifold.exp(ball.center, manifold.combine(ball.radius * v, frame)))(z))


# Costs -----------------------------------------------------------------------------------------------------


def asked(rule, ball, spending, answers):
    """The questions of a walk, each count answered by the next of ``answers``: True for all records, False for none."""
    steps, answers = refine(rule, ball.center, ball.radius, spending), iter(answers)
    question, found = next(steps), []
    while True:
        found.append(question)
        if isinstance(question, Mean):
            answer = np.zeros(spending.dim), np.asarray(ball.center) + 0.01
        elif isinstance(question, Whole):
            answer = None
        else:
            answer = spending.n if next(answers, True) else 0
        try:
            question = steps.send(answer)
        except StopIteration:
            return found


def all_paths(*case):
    """Each answer that is asked for both ways."""
    waiting = [()]
    while waiting:
        path = waiting.pop()
        found = asked_of(path, *case)
        if sum(isinstance(own, Count | Pairs) for own in found) > len(path):
            waiting += [(*path, True), (*path, False)]
        else:
            yield found


def some_paths(*case):
    """Counts of all records, of none, and at random."""
    draws = np.random.default_rng(0)
    for share in (1.0, 0.0, *[0.5] * 60, *[0.8] * 20, *[0.2] * 20):
        yield asked_of((draws.random(20) < share).tolist(), *case)


def asked_of(path, rule, ball, n, dim, strength, pure):
    return asked(rule, ball, Spending(n, dim, strength, pure), path)


CASES = [
    (n, dim, strength, pure, symmetric)
    for n, dim, strength in ((60, 3, 1.0), (100, 2, 1.0), (500, 10, 0.9), (10**6, 30, 0.3))
    for pure, symmetric in itertools.product((True, False), (True, False))
]


@pytest.mark.parametrize("paths", [some_paths, pytest.param(all_paths, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(("n", "dim", "strength", "pure", "symmetric"), CASES)
def test_costs_add_up_to_the_budget_on_every_path(paths, n, dim, strength, pure, symmetric):
    rule = rule_for(n, dim, strength, pure, symmetric)
    ball = jgd.GeodesicBall(jgd.Euclidean(dim), np.zeros(dim), 1.0)
    seen = list(paths(rule, ball, n, dim, strength, pure))
    assert (max(map(len, seen)) == 1) == (rule is None)
    for found in seen:
        assert sum(own.cost for own in found) == 1
        assert all(own.cost > 0 for own in found) and found[-1].cost > Fraction(3, 10)
        assert isinstance(found[-1], Mean | Whole) and len(found) <= 19
    for found in seen[:5]:
        strengths = [Fraction(strength_of(strength, pure, own.cost)) for own in found]
        total = sum(strengths) if pure else sum(own**2 for own in strengths)
        budget = Fraction(strength) if pure else Fraction(strength) ** 2
        assert budget * (1 - Fraction(1, 10**9)) < total <= budget * (1 + Fraction(1, 10**15))


def test_a_count_that_is_not_paid_is_seen(monkeypatch):
    pay = Spending.pay
    monkeypatch.setattr(Spending, "pay", lambda self, cost: pay(self, cost) if cost > Fraction(1, 50) else cost)
    rule = rule_for(500, 2, 1.0, False, False)
    assert any(sum(own.cost for own in found) > 1 for found in some_paths(rule, PLANE, 500, 2, 1.0, False))


@pytest.mark.parametrize(("n", "dim", "made"), [(230, 30, False), (10**6, 30, True)])
def test_middle_means_are_made_only_while_enough_is_left(n, dim, made):
    """Of 230 records first mean, pairs and count take .407 of the budget, and a middle mean asks for .6."""
    rule, ball = rule_for(n, dim, 1.0, True, True), jgd.GeodesicBall(jgd.Euclidean(dim), np.zeros(dim), 1.0)
    left = []
    for found in some_paths(rule, ball, n, dim, 1.0, True):
        spent = [Fraction(0), *itertools.accumulate(own.cost for own in found)]
        means = [place for place, own in enumerate(found) if isinstance(own, Mean)]
        left += [1 - spent[place] for place in means[1:-1]]
    assert bool(left) == made and all(own >= Fraction(3, 5) for own in left)


def test_radii_are_the_same_in_programs():
    for error in (1e-4, 0.02, 0.3, 2.0):
        own = tried_radii(np, 0.7, error)
        other = np.asarray(tried_radii(jnp, 0.7, jnp.asarray(error)))
        assert own[-1] == 0.7 and np.all(np.diff(own) > 0) and np.allclose(other[: len(own)], own)
        assert np.all(other[len(own) - 1 :] == 0.7) and len(own) <= 32  # five counts find one of them


def test_what_a_stage_sees_moves_by_what_it_pays_for():
    """One record is in one pair, and counts once; a mean moves by 2 clip/n at most."""
    data = records(PLANE, 0.3, 0.5, 41)
    for place, other in itertools.product((0, 20, 39, 40), (PLANE.center, np.array([1.0, 0.0]))):
        changed = np.array(data)
        changed[place] = other
        for radius in (0.1, 0.5, 1.0):
            first, second = (int(np.sum(pair_lengths(MEAN, own) <= radius)) for own in (data, changed))
            assert abs(first - second) <= 1
    law = jgd.AdaptiveMechanism(PLANE, mu=1.0).law(41).mean
    ends = [np.tile(PLANE.center, (41, 1)) for _ in range(2)]
    ends[0][3], ends[1][3] = np.array([51.0, -1.0]), np.array([-49.0, -1.0])
    first, second = (np.asarray(law.at_home(own)[0].location(law.at_home(own).records, None)) for own in ends)
    moved = np.linalg.norm(first - second)
    assert 2.0 / 41 * (1 - 1e-6) < moved <= 2.0 / 41


def test_few_records_are_released_once():
    for n, budget in ((40, {"mu": 1.0}), (100, {"epsilon": 1.0}), (500, {"epsilon": 0.05})):
        law = jgd.AdaptiveMechanism(PLANE, **budget).law(n)
        assert law.rule is None and law.terms.more["one release"]
    assert jgd.AdaptiveMechanism(PLANE, mu=1.0).law(60).rule is not None


def test_draws_of_one_release_lie_about_the_mean_with_its_noise():
    data = np.tile([0.4, -0.2], (40, 1))
    draws = np.asarray(jgd.AdaptiveMechanism(PLANE, mu=1.0).simulate(jax.random.key(0), data, 4000))
    scale = jgd.TangentGaussian(PLANE, 1.0).scale(40)
    np.testing.assert_allclose(draws.mean(axis=0), data[0], atol=6.0 * scale / np.sqrt(4000))
    np.testing.assert_allclose(draws.std(axis=0), scale, rtol=0.08)


# Draws -----------------------------------------------------------------------------------------------------


def errors(mechanism, data, num, key=0):
    """Distances of draws from the mean of the records in the ball."""
    manifold = mechanism.ball.manifold
    mean = jgd.frechet_mean(manifold, mechanism.ball.clip(data))
    return np.asarray(jax.vmap(manifold.dist, (None, 0))(mean, mechanism.simulate(jax.random.key(key), data, num)))


def one_release(ball, budget):
    return jgd.WrappedGaussian(ball, 1.0) if "mu" in budget else jgd.WrappedLaplace(ball, 1.0)


@_budgets
def test_narrow_records_are_told_far_better_and_filled_balls_as_well(budget):
    """The ratios of a table in docs/mathematics.md, section 21, with room for 300 draws."""
    mechanism = jgd.AdaptiveMechanism(PLANE, **budget)
    most = {(0.5, 0.15): 0.45 if "mu" in budget else 0.7, (0.6, 0.05): 0.2 if "mu" in budget else 0.4, (0.0, 1.0): 1.2}
    for (offset, spread), limit in most.items():
        data = records(PLANE, offset, spread)
        ratio = errors(mechanism, data, 300).mean() / errors(one_release(PLANE, budget), data, 300).mean()
        assert ratio < limit, (offset, spread, ratio)


@_budgets
def test_releases_have_the_law_of_simulations(budget):
    """Of 60 releases; with the noise of the last step halved they would not."""
    data = records(PLANE, 0.5, 0.15)
    mechanism = jgd.AdaptiveMechanism(PLANE, **budget)
    mean = data.mean(axis=0)
    found = [np.linalg.norm(mechanism.release(data).value - mean) for _ in range(60)]
    simulated = errors(mechanism, data, 2000)
    assert stats.ks_2samp(found, simulated).pvalue > 1e-3
    assert stats.ks_2samp(np.array(found) / 2, simulated).pvalue < 1e-3


@pytest.mark.parametrize(
    "ball",
    [
        jgd.GeodesicBall(jgd.Sphere(2), [0.6, 0.0, 0.8], 0.5),
        pytest.param(jgd.GeodesicBall(jgd.SPD(2), [[2.0, 0.5], [0.5, 1.0]], 1.5), marks=pytest.mark.exhaustive),
        pytest.param(
            jgd.GeodesicBall(jgd.PlanarShapes(4), jgd.PlanarShapes(4).origin, 0.3), marks=pytest.mark.exhaustive
        ),
    ],
    ids=lambda ball: str(ball.manifold),
)
@_budgets
def test_values_are_points_on_curved_spaces_and_nearer_than_one_release(ball, budget):
    data = records(ball, 0.5, 0.12)
    mechanism = jgd.AdaptiveMechanism(ball, **budget)
    ratio = errors(mechanism, data, 200).mean() / errors(one_release(ball, budget), data, 200).mean()
    assert ratio < (0.55 if "mu" in budget else 0.85)
    release = mechanism.release(data)
    assert bool(ball.manifold.belongs(release.value))


@_budgets
def test_the_record_tells_every_stage_and_broken_records_tell_nothing(budget):
    data = records(PLANE, 0.5, 0.15)
    data[3] = np.nan
    data[4] = np.inf
    data[5] = 1e300
    strong = {name: 10.0 * own for name, own in budget.items()}  # with hardly a wrong turn
    record = jgd.AdaptiveMechanism(PLANE, **strong).release(data).record
    stages = record["steps"]
    assert sum(own["share"] for own in stages) == pytest.approx(1.0) and stages[-1]["asked"].startswith("mean")
    assert {"mean", "records"} <= {own["asked"] for own in stages}
    assert ("pairs" in {own["asked"] for own in stages}) == ("epsilon" in budget)
    assert "Theorem V2" in record["guarantee"]["theorem"] and record["symmetric"] is False
    assert np.allclose(stages[-1]["center"], record["value"])


@_budgets
def test_a_count_of_all_or_none_leads_somewhere(monkeypatch, budget):
    """Every path ends with a point: counts are forced, as no data would."""
    mechanism, data = jgd.AdaptiveMechanism(PLANE, **budget), records(PLANE, 0.5, 0.15)
    law = mechanism.law(500)
    for answer in (-(10.0**9), 10.0**9):
        own = type(law).answered

        def forced(self, question, given, programs, own=own, answer=answer):
            found, told = own(self, question, given, programs)
            return (answer if isinstance(question, Count | Pairs) else found), told

        with monkeypatch.context() as patched:
            patched.setattr(type(law), "answered", forced)
            release = mechanism.release(data)
        assert np.all(np.isfinite(release.value))


# Noise -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", [Fraction(1, 100), Fraction(1, 2)])
@_budgets
def test_each_stage_has_the_noise_that_its_cost_pays_for(budget, cost):
    """About a released centre on a curved space; half of the noise would be half of what is found."""
    ball, pure = jgd.GeodesicBall(jgd.Sphere(2), [0.6, 0.0, 0.8], 0.5), "epsilon" in budget
    data, law = records(ball, 0.3, 0.3), jgd.AdaptiveMechanism(ball, **budget).law(500)
    programs = law.programs(jax.ShapeDtypeStruct(data.shape, data.dtype))
    clipped = programs["clip"](ball, data)
    strength = float(cost) if pure else math.sqrt(cost)
    center = np.asarray(ball.manifold.exp(ball.center, 0.2 * ball.manifold.frame(jnp.asarray(ball.center))[0]))
    of_mean, of_count = (math.sqrt(3.0), math.sqrt(2.0)) if pure else (1.0, 1.0)  # deviations of noise of scale 1
    for question, scale, deviation in (
        (Mean(center, 0.1, 0.7, cost), 2 * 0.1 / 500 / strength, of_mean),
        (Whole(None, (0.0, 1.0), cost), 2 * 0.5 / 500 / strength, of_mean),
        (Count(center, 0.2, cost), 1.0 / strength, of_count),
        (Pairs(0.2, cost), 1.0 / strength, of_count),
    ):
        answers = [law.answered(question, clipped, programs) for _ in range(300)]
        found = np.array([own[0] if isinstance(question, Mean) else own for own, _ in answers])
        if isinstance(question, Whole):
            frame = ball.manifold.frame(jnp.asarray(ball.center))
            found = np.stack([ball.manifold.coordinates(ball.center, own, frame) for own in found - found.mean(axis=0)])
        assert np.allclose(np.std(found, axis=0), scale * deviation, rtol=0.2), question
        said = answers[0][1]["scale"]
        assert scale * (1 - 1e-9) <= said <= scale * 1.02


@_budgets
def test_a_program_walks_as_a_release_does(monkeypatch, budget):
    """With noise that is the same each time, over many paths."""
    monkeypatch.setattr(Norm, "draw", _planted)
    monkeypatch.setattr(Normal, "draw", _planted)
    ways = set()
    for place, wave in enumerate((0.0, 1.0, 2.0)):
        ball = jgd.GeodesicBall(jgd.Euclidean(2), [0.1 * place, 0.0], 1.0)  # other programs for other noise

        def off(radius, wave=wave):
            return 0.12 * 500 * jnp.sin(777.0 * radius + wave) if wave else 0.0

        def count(told, key, center, radius, share, off=off):
            inside = lengths(told.law.mean, center, told.records) <= radius
            return told.n * jnp.mean(inside) + off(radius)

        def pairs(told, key, radius, share):
            return (told.n // 2) * jnp.mean(pair_lengths(told.law.mean, told.records) <= radius)

        def answered(law, question, given, programs, own=AdaptiveLaw.answered, off=off):
            answer, told = own(law, question, given, programs)
            if isinstance(question, Pairs):
                answer = float(np.sum(np.asarray(programs["pairs"](law.mean, given)) <= question.radius))
            elif isinstance(question, Count):
                found = programs["lengths"](law.mean, jnp.asarray(question.center), given)
                answer = float(np.sum(np.asarray(found) <= question.radius) + off(question.radius))
            return answer, told

        with monkeypatch.context() as patched:
            patched.setattr(adaptive_simulation.SimulatedStages, "count", count)
            patched.setattr(adaptive_simulation.SimulatedStages, "pairs", pairs)
            patched.setattr(AdaptiveLaw, "answered", answered)
            jax.clear_caches()
            law = jgd.AdaptiveMechanism(ball, **budget, symmetric=place == 2).law(500)
            ready = law.ready(jax.ShapeDtypeStruct((500, 2), np.float64))
            for offset, spread in ((0.0, 1.0), (0.3, 0.5), (0.5, 0.35), (0.5, 0.15), (0.6, 0.05), (0.2, 0.001)):
                data = records(ball, offset, spread)
                told, simulated = ready(data), law.simulate(jax.random.key(0), data, 1)[0]
                assert np.allclose(told.value, simulated, atol=1e-8), (wave, offset, spread)
                ways.add(tuple(step["asked"] for step in told.entries["steps"]))
    jax.clear_caches()
    assert len(ways) >= 5


def _planted(noise, key, num, dim, dtype):
    return jnp.stack([1.1 * jnp.sin(jnp.arange(1, dim + 1, dtype=dtype))] * num)


def test_pairs_are_of_records_in_a_secret_order(monkeypatch):
    """In the order of this file each record is paired with its like; a law that kept it would tell so."""
    data = np.tile([[1.6, -1.0], [0.4, -1.0]], (125, 1))
    data = np.concatenate([data, data])
    mechanism = jgd.AdaptiveMechanism(PLANE, epsilon=20.0)
    near = [mechanism.release(data).record["steps"][0] for _ in range(3)]
    assert all(own["asked"] == "pairs" and own["count"] < 180 for own in near)
    monkeypatch.setattr(AdaptiveLaw, "order_matters", False)
    assert mechanism.release(data).record["steps"][0]["count"] > 240


def test_a_filled_cap_states_the_sensitivity_of_its_mean_and_what_is_supposed():
    cap = jgd.GeodesicBall(jgd.Sphere(2), [0.0, 0.0, 1.0], 0.75)
    data = records(cap, 0.0, 1.0, 2000)
    steps, once = jgd.AdaptiveMechanism(cap, mu=1.0), jgd.WrappedGaussian(cap, 1.0)
    record, last = steps.release(data).record, once.law(2000)
    assert record["filled"]["value"] == last.terms.sensitivity > record["sensitivity"]["value"]
    assert SUPPOSED in record["filled"]["formula"] and record["steps"][-1]["asked"] == "mean of all"
    left = strength_of(1.0, False, 1 - sum(Fraction(str(own["share"])) for own in record["steps"][:-1]))
    assert record["steps"][-1]["scale"] == pytest.approx(last.terms.sensitivity / left, rel=1e-6)
    few = jgd.AdaptiveMechanism(cap, mu=0.02).release(data).record
    assert few["one release"] and few["sensitivity"]["value"] == few["filled"]["value"]
    assert few["sensitivity"]["formula"] == few["filled"]["formula"]  # of logarithms, whose noise is less
    on_grid = steps.release(data, numerics="grid").record["filled"]["grid"]
    assert "logarithms" in on_grid["statistic"] and on_grid["value"] == record["sensitivity"]["value"]


def test_strengths_that_noise_cannot_be_seen_at_are_refused():
    data = records(PLANE, 0.5, 0.15)
    for budget in ({"mu": 1e14}, {"mu": 1e30}, {"epsilon": 1e14}, {"epsilon": 1e25}):
        with pytest.raises(InputError, match="below the rounding error"):
            jgd.AdaptiveMechanism(PLANE, **budget).release(data)
    for budget in ({"mu": 1e-30}, {"epsilon": 1e-30}, {"mu": 1e5}, {"epsilon": 1e5}):
        assert np.all(np.isfinite(jgd.AdaptiveMechanism(PLANE, **budget).release(data).value))


def test_a_setting_of_decimals_changes_nothing():
    data = records(PLANE, 0.5, 0.15)
    with decimal.localcontext() as setting:
        setting.prec, setting.traps[decimal.Inexact] = 2, True
        steps = jgd.AdaptiveMechanism(PLANE, epsilon=1.0).release(data).record["steps"]
    assert all(own["scale"] >= 1.0 / own["share"] * (1 - 1e-9) for own in steps if own["asked"] in ("pairs", "records"))


def test_wrong_turns_become_rare():
    """A narrow cluster is hardly ever taken for a filled ball where n is large; once in eight before, whatever n is."""
    data = records(PLANE, 0.5, 0.02, 5000)
    far = 0.5 * np.mean(errors(one_release(PLANE, {"epsilon": 1.0}), data, 200))
    assert np.mean(errors(jgd.AdaptiveMechanism(PLANE, epsilon=1.0), data, 200) > far) < 0.07


def test_few_records_have_two_means_without_a_question_where_symmetry_is_supposed():
    space = jgd.GeodesicBall(jgd.Euclidean(3), np.zeros(3), 1.0)
    half = 0.2 * np.random.default_rng(0).normal(size=(30, 3))
    data = np.concatenate([half, -half]) + np.array([0.5, 0.0, 0.0])
    mechanism = jgd.AdaptiveMechanism(space, epsilon=1.0, symmetric=True)
    steps = mechanism.release(data).record["steps"]
    assert [own["asked"] for own in steps] == ["mean", "mean"] and [own["clip"] for own in steps] == [0.5, 0.25]
    assert [own["share"] for own in steps] == [0.4, 0.6] and not mechanism.law(60).order_matters
    assert [own["scale"] for own in steps] == pytest.approx([2 * 0.5 / (60 * 0.4), 2 * 0.25 / (60 * 0.6)], rel=1e-6)
    released = [np.linalg.norm(mechanism.release(data).value - data.mean(axis=0)) for _ in range(150)]
    simulated = errors(mechanism, data, 2000)
    assert np.mean(released) == pytest.approx(np.mean(simulated), rel=0.15)
    assert np.mean(simulated) < 0.85 * np.mean(errors(one_release(space, {"epsilon": 1.0}), data, 2000))
    assert jgd.AdaptiveMechanism(space, epsilon=1.0).law(60).rule is None  # supposing nothing, one release


def test_options_are_answered():
    data = records(PLANE, 0.5, 0.15)
    mechanism = jgd.AdaptiveMechanism(PLANE, epsilon=2.0)
    assert mechanism.release(data, adjacency="add-remove").record["count"]["value"] > 0
    assert mechanism.release(data, persons=np.arange(500) // 2).record["n"] == 250
    for wrong in ({"weights": np.ones(500)}, {"numerics": "grid"}, {"delta": 1e-6}):  # pairs are no sum of records
        with pytest.raises(InputError, match="AdaptiveMechanism"):
            mechanism.release(data, **wrong)
    with pytest.raises(InputError, match="density"):
        mechanism.log_density(PLANE.center, data)
    for wrong in ({}, {"epsilon": 1.0, "mu": 1.0}, {"epsilon": -1.0}, {"mu": 1.0, "symmetric": "no"}):
        with pytest.raises(InputError):
            jgd.AdaptiveMechanism(PLANE, **wrong)


# Audits ----------------------------------------------------------------------------------------------------


def largest_loss(mechanism, pair, num, bins=12):
    """A lower bound (99.9 %) of the loss between two data sets, by draws in cells of the first coordinate."""
    draws = [np.asarray(mechanism.simulate(jax.random.key(3 + k), own, num))[:, 0] for k, own in enumerate(pair)]
    edges = np.quantile(np.concatenate(draws), np.linspace(0, 1, bins + 1)[1:-1])
    counts = [np.bincount(np.searchsorted(edges, own), minlength=bins) for own in draws]
    best = 0.0
    for first, second in (counts, counts[::-1]):
        low = stats.beta.ppf(1e-3 / bins, first, num - first + 1)
        high = stats.beta.ppf(1 - 1e-3 / bins, second + 1, num - second)
        best = max(best, float(np.max(np.log(np.maximum(np.nan_to_num(low), 1e-12)) - np.log(high))))
    return best


@pytest.mark.parametrize("num", [4_000, pytest.param(200_000, marks=pytest.mark.exhaustive)])
@_budgets
def test_no_draws_contradict_the_promise_and_too_little_noise_is_caught(budget, num):
    """One record jumps from end to end, about a narrow cluster to which the last step is fitted."""
    line = jgd.GeodesicBall(jgd.Euclidean(1), [0.0], 1.0)
    pair = [np.full((200, 1), 0.45) for _ in range(2)]
    pair[0][7], pair[1][7] = -1.0, 1.0
    law = jgd.AdaptiveMechanism(line, **({"epsilon": 2.0} if "epsilon" in budget else budget)).law(200)
    assert law.rule is not None
    promised = 2.0 if "epsilon" in budget else largest_loss_of_normal(1.0)
    assert largest_loss(law, pair, num) <= promised
    assert largest_loss(dataclasses.replace(law, strength=5.0 * law.strength), pair, num) > promised


def largest_loss_of_normal(mu, bins=12):
    """Of N(0, 1) against N(mu, 1) by any set of at least this probability under their mixture."""
    share = 2.0 / bins  # a cell has 1/bins under the mixture: at most this under one of them
    tails = np.linspace(1e-3, share, 400)
    other = stats.norm.cdf(stats.norm.ppf(tails) - mu)
    return float(np.max(np.log(tails / other)[tails + other >= share - 1e-9]))
