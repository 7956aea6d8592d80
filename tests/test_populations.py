"""Reference populations of releases in steps: what is expected, and what plan and auto make of it."""

import json
import math
from typing import Any

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

import jaxgeodp as jgd
from benchmarks.measure import constants
from jaxgeodp.checks import InputError
from jaxgeodp.cli import app
from jaxgeodp.cli.choice import Choice
from jaxgeodp.mechanisms import plan_in_steps
from jaxgeodp.mechanisms.adaptive_rules import rule_for
from jaxgeodp.mechanisms.populations import (
    POPULATIONS,
    errors_in_steps,
    geometric_mean,
    is_better,
    ratio_of_logarithms,
)
from jaxgeodp.mechanisms.steps_that_gain import steps_that_gain

PLANE = jgd.GeodesicBall(jgd.Euclidean(2), [0.0, 0.0], 2.0)


def _run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    return done.exit_code, " ".join(done.output.split())


def test_populations_are_what_they_are_called():
    for dim in (1, 2, 10):
        for own in POPULATIONS:
            records = own.records(dim)
            assert records.shape == (512, dim) and np.max(np.linalg.norm(records, axis=1)) <= 1.0 + 1e-12
            assert np.array_equal(records, own.records(dim))
            if own.law == "normal" and own.spread <= 0.15:  # none is clipped
                away = records - records.mean(axis=0)
                assert abs(math.sqrt(np.mean(np.sum(away**2, axis=1))) - own.spread) < 0.07 * own.spread
                assert np.allclose(records.mean(axis=0), own.offset * np.eye(dim)[0], atol=0.03)
    skew, heavy, clusters = (own.records(2) for own in POPULATIONS[4:])
    third = np.mean(((skew - skew.mean(axis=0)) / skew.std(axis=0)) ** 3, axis=0)
    assert np.all(third[1:] > 0.5) and np.linalg.norm(heavy, axis=1).max() > 0.999
    assert np.mean(np.abs(clusters[:, 1] - np.median(clusters[:, 1])) < 0.3) == pytest.approx(0.7, abs=0.05)


@pytest.mark.parametrize("budget", [{"mu": 1.0}, {"epsilon": 1.0}], ids=["mu", "epsilon"])
def test_errors_are_those_of_simulated_releases(budget: Any):
    """In a plane, where the walk is the mechanism's own; a population's are not those of another."""
    found = plan_in_steps(PLANE, 512, **budget)
    mechanism = jgd.AdaptiveMechanism(PLANE, **budget)
    one = (jgd.WrappedGaussian if "mu" in budget else jgd.WrappedLaplace)(PLANE, 1.0)
    for own in (found[2], found[4]):
        records = PLANE.radius * own.population.records(2)
        for given, expected in ((mechanism, own.steps), (one, own.one)):
            draws = np.asarray(given.simulate(jax.random.key(0), records, 400))
            assert np.mean(np.linalg.norm(draws - records.mean(axis=0), axis=1)) == pytest.approx(expected, rel=0.12)
        assert own.center == pytest.approx(np.linalg.norm(records.mean(axis=0)))
    assert found[2].steps < 0.8 * found[4].steps


LONG = [
    pytest.param(n, dim, budget, marks=pytest.mark.exhaustive)
    for n in (50, 200, 500, 2000, 10_000)
    for dim in (2, 6, 30)
    for budget in ("mu", "epsilon")
]


@pytest.mark.parametrize(("n", "dim", "budget"), [(500, 3, "mu"), (2000, 6, "epsilon"), *LONG])
def test_steps_are_hardly_worse_than_one_release_in_any_population(n, dim, budget):
    ball = jgd.GeodesicBall(jgd.Euclidean(dim), np.zeros(dim), 1.0)
    found = plan_in_steps(ball, n, 1.0) if budget == "epsilon" else plan_in_steps(ball, n, mu=1.0)
    if not found:
        assert (budget == "epsilon" and n <= 500) or n * 1.0 <= 50
        return
    assert max(own.ratio for own in found) < 1.1
    assert n == 50 or geometric_mean(found) < (0.8 if budget == "mu" else 0.93)


def test_who_supposes_symmetry_is_told_what_it_costs():
    ball = jgd.GeodesicBall(jgd.Euclidean(2), np.zeros(2), 1.0)
    found, other = (plan_in_steps(ball, 500, mu=1.0, symmetric=own) for own in (True, False))
    assert found[4].ratio > 1.4 and not is_better(found) and is_better(other)
    assert all(own.ratio < 1.25 for own in (*found[:4], found[5]))
    assert sum(own.ratio for own in found[:4]) < sum(own.ratio for own in other[:4])
    assert plan_in_steps(ball, 2000, mu=1.0, symmetric=True) == plan_in_steps(ball, 2000, mu=1.0)


@pytest.mark.parametrize("pure", [False, True], ids=["mu", "epsilon"])
def test_walks_side_by_side_are_those_of_one_after_another(pure):
    """Each has its own noise, and some end sooner than others."""
    records, rule = POPULATIONS[1].records(3, 5), rule_for(500, 3, 1.0, pure, False)
    assert not np.array_equal(records, POPULATIONS[1].records(3))

    def walked(seeds):
        return errors_in_steps(rule, records, 500, 1.0, pure, [np.random.default_rng(seed) for seed in seeds])

    assert np.allclose(walked(range(12)), np.concatenate([walked([seed]) for seed in range(12)]), rtol=1e-9)


def test_the_search_for_constants_knows_better_from_worse():
    """Clips of a quarter lose, and the committed rule does not differ from itself; all constants are in some cell."""
    group = constants.Group("mu", "default")
    worse = constants.Change("last clip f", "× 0.25", lambda rule: rule._replace(reach=0.25 * rule.reach))
    few = [cell for cell in constants.cells_of(group) if (cell.n, cell.dim) == (500, 3)]
    size = constants.Size(draws=4, seed=1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(constants, "cells_of", lambda group, every: few)
        patched.setattr(constants, "AGAIN", 2)
        committed = constants.run_change(group, constants.COMMITTED, {}, size)
        same, other = (
            constants.found_of(kept, committed)
            for kept in (committed, constants.run_change(group, worse, committed, size))
        )
    assert same.changed == 1.0 and same.error == 0.0 and same.verdict(1.5) == "the same"
    assert other.changed > 1.3 and other.verdict(1.5) == "loses"
    for change in constants.CHANGES:
        assert any(constants.rules_of(group, change) for group in constants.GROUPS), str(change)
    assert constants.rules.MIDDLES == 2  # nothing of a change is left


def test_few_records_have_no_steps_and_wrong_numbers_are_refused():
    assert plan_in_steps(PLANE, 40, mu=1.0) == plan_in_steps(PLANE, 100, epsilon=1.0) == ()
    wrong: Any
    for wrong in ({"n": 1, "mu": 1.0}, {"n": 50}, {"n": 50, "mu": 1.0, "epsilon": 1.0}, {"n": 50, "mu": -1.0}):
        with pytest.raises(InputError):
            plan_in_steps(PLANE, **wrong)


def test_plan_says_what_auto_takes():
    code, told = _run("plan", "--manifold", "euclidean(2)", "--radius", 2, "--n", 500, "--epsilon", 1, "--mu", 1)
    assert code == 0 and "in steps (adaptive), epsilon = 1" in told and "in steps (adaptive), mu = 1" in told
    assert "auto takes one release" in told and "auto takes steps" in told and "public centre alone" not in told
    code, told = _run("plan", "--manifold", "euclidean(100)", "--radius", 2, "--n", 60, "--epsilon", 1, "--mu", 1)
    assert code == 0 and "the public centre alone is expected to be as near for: normal, offset 0.3" in told


def test_auto_takes_steps_where_they_gain(tmp_path):
    data, out = tmp_path / "data.csv", tmp_path / "mean.json"
    np.savetxt(data, np.random.default_rng(0).normal([0.5, 0.0], 0.1, (300, 2)), delimiter=",")
    np.savetxt(tmp_path / "weights.csv", np.ones(300), delimiter=",")
    words = (
        "release",
        data,
        "--manifold",
        "euclidean",
        "--center",
        "origin",
        "--radius",
        2,
        "--overwrite",
        "--out",
        out,
    )

    def record(*more):
        code, told = _run(*words, *more)
        assert code == 0, told
        return json.loads(out.read_text())

    steps = record("--mu", 1)
    assert steps["mechanism"] == "AdaptiveMechanism" and "expected_error" not in steps
    ratios = steps["chosen"]["over_one_release"]
    assert ratios.keys() == steps["expected_errors"].keys() == {own.words for own in POPULATIONS}
    assert max(ratios.values()) <= 1.1 and all(own > 0 for own in steps["expected_errors"].values())
    for other in (
        ("--epsilon", 1),
        ("--epsilon", 20, "--numerics", "grid"),
        ("--mu", 1, "--weights", tmp_path / "weights.csv"),
    ):
        assert record(*other)["mechanism"] != "AdaptiveMechanism"
    assert record("--mu", 1, "--mechanism", "adaptive", "--symmetric")["expected_errors"] != steps["expected_errors"]
    assert "by how the records lie" in _run("show", out)[1]
    assert record("--mu", 1, "--mechanism", "adaptive", "--numerics", "grid")["guarantee"]["kind"] == "zcdp"
    grid = record("--mu", 1, "--numerics", "grid")
    assert grid["mechanism"] == "AdaptiveMechanism" and grid["guarantee"]["kind"] == "zcdp"
    assert grid["chosen"] == steps["chosen"] and len(grid["steps"]) > 1
    code, told = _run(*words, "--epsilon", 1, "--mechanism", "adaptive", "--numerics", "grid")
    assert code == 2 and "needs --mu" in told


def test_auto_takes_steps_on_the_grid_where_logarithms_have_little_bias_and_not_for_sums_of_workers():
    grid, one = (Choice("auto", None, 1.0, "mean", "tight", 0.0, numerics) for numerics in ("grid", "idealized"))
    matrices = [jgd.GeodesicBall(jgd.SPD(2), np.eye(2), radius) for radius in (0.3, 1.5)]
    taken = [type(grid.made(ball, 500)[0]) for ball in matrices]
    assert taken == [jgd.AdaptiveMechanism, jgd.WrappedGaussian]
    assert isinstance(one.made(matrices[1], 500)[0], jgd.AdaptiveMechanism)
    assert isinstance(grid.made(matrices[0], 500, in_steps=False)[0], jgd.WrappedGaussian)


def test_steps_gain_with_epsilon_too_but_not_on_the_grid():
    """On the grid only mu has steps; and where logarithms have too large a bias, none."""
    wide = jgd.GeodesicBall(jgd.Euclidean(10), np.zeros(10), 1.0)
    assert steps_that_gain(wide, 2000, epsilon=1.0) is not None
    assert steps_that_gain(wide, 2000, epsilon=1.0, grid=True) is None
    bent = jgd.GeodesicBall(jgd.Hyperbolic(5), np.eye(6)[0], 0.5)
    assert steps_that_gain(bent, 1000, mu=1.0) is not None
    assert steps_that_gain(bent, 1000, mu=1.0, grid=True) is None


@pytest.mark.parametrize("budget", ["mu", "epsilon"])
def test_a_filled_cap_of_many_records_is_released_without_the_bias_of_logarithms(budget):
    """With the mean of logarithms in its place, which has less noise, the error is more than six times that."""
    ball = jgd.GeodesicBall(jgd.Sphere(2), [0.0, 0.0, 1.0], 0.75)
    plane = ball.radius * POPULATIONS[0].records(2)
    frame = ball.manifold.frame(ball.center)
    data = jax.vmap(lambda v: ball.manifold.exp(ball.center, ball.manifold.combine(v, frame)))(plane)
    n, mean = len(data), jgd.frechet_mean(ball.manifold, data)
    mechanism: Any = jgd.AdaptiveMechanism(ball, **{budget: 10.0 if budget == "mu" else 40.0})
    draws = mechanism.simulate(jax.random.key(0), data, 50)
    errors = jax.vmap(ball.manifold.dist, (None, 0))(mean, draws)
    own = (jgd.WrappedGaussian if budget == "mu" else jgd.WrappedLaplace)(ball, 10.0 if budget == "mu" else 40.0)
    expected = own.law(n).scale * (math.sqrt(math.pi / 2.0) if budget == "mu" else 2.0)
    assert float(np.mean(errors)) < 1.3 * expected
    assert ratio_of_logarithms(ball, mechanism.law(n).mean.scale, own.law(n).scale, budget == "epsilon") > 4.0
