"""The papers' claims: how verdicts are reached, and the settings as printed. Notebooks run `jaxgeodp reproduce`."""

import math

import jax
import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

from jaxgeodp import LaplaceMechanism, frechet_mean
from jaxgeodp.cli import app
from jaxgeodp.experiments import run_replicates
from jaxgeodp.experiments.reproduction.run import (
    FAILS,
    HOLDS,
    OPEN,
    Cell,
    Estimate,
    Run,
    all_of,
    by_sizes,
    compare,
    ratio,
    within,
)
from jaxgeodp.experiments.reproduction.settings import (
    EmbeddedMean,
    laplace_at_radius,
    matrix_data,
    sphere_data,
)
from jaxgeodp.experiments.shapes import crossings, smooth_outline
from jaxgeodp.files import only_writer


def test_verdicts_follow_from_standard_errors():
    low, high = Estimate(1.0, 0.01), Estimate(1.1, 0.01)
    assert compare(low, high) == HOLDS
    assert compare(high, low) == FAILS
    assert compare(low, Estimate(1.03, 0.01)) == OPEN
    assert all_of([HOLDS, OPEN, FAILS]) == FAILS
    assert all_of([HOLDS, OPEN]) == OPEN
    assert all_of([HOLDS, HOLDS]) == HOLDS
    assert by_sizes((20, 40, 60), [FAILS, HOLDS, HOLDS]) == "holds: n = 40, 60; does not hold: n = 20"
    assert by_sizes((20, 40), [OPEN, OPEN]) == OPEN
    assert within(low, 0.9, 1.1) == HOLDS
    assert within(low, 1.02, 2.0) == OPEN
    assert within(low, 1.1, 2.0) == FAILS
    assert ratio(high, low).mean == pytest.approx(1.1)
    assert ratio(high, low).error == pytest.approx(1.1 * math.hypot(0.01 / 1.1, 0.01))


def test_an_estimate_is_mean_and_standard_error():
    values = np.random.default_rng(0).exponential(size=1000)
    estimate = Estimate.of(values)
    assert estimate.mean == values.mean()
    assert estimate.error == pytest.approx(stats.sem(values))
    assert estimate.scaled(-2.0) == Estimate(-2.0 * estimate.mean, 2.0 * estimate.error)


def test_crossings_are_counted():
    circle = np.exp(2j * np.pi * np.arange(30) / 30)
    assert crossings(circle) == 0
    eight = np.array([0, 1 + 1j, 1, 1j])
    assert crossings(eight) == 1
    # A random polygon against a plain double loop over pairs of sides.
    x = np.random.default_rng(1).normal(size=(12, 2)) @ [1, 1j]

    def crossed(i, j):
        start, other, side, across = x[i], x[j], x[(i + 1) % 12] - x[i], x[j] - x[(j + 1) % 12]
        matrix = [[side.real, across.real], [side.imag, across.imag]]
        s, t = np.linalg.solve(matrix, [(other - start).real, (other - start).imag])
        return 0 < s < 1 and 0 < t < 1

    pairs = [(i, j) for i in range(12) for j in range(i + 2, 12) if (i, j) != (0, 11)]
    assert crossings(x) == sum(crossed(i, j) for i, j in pairs) > 0


def test_smoothing_keeps_circles_and_removes_zigzags():
    turns = 2j * np.pi * np.arange(60) / 60
    smooth = smooth_outline(np.exp(turns), 1.5)
    np.testing.assert_allclose(smooth, abs(smooth[0]) * np.exp(turns), atol=1e-12)
    assert 0.95 < abs(smooth[0]) < 1.0
    assert np.abs(smooth_outline((-1.0) ** np.arange(60) + 0j, 1.5)).max() < 1e-3
    # Local linear, not local constant: an odd number of landmarks has an uneven window, a line must stay a line.
    np.testing.assert_allclose(smooth_outline(np.full(61, 2.0 + 1j), 3.0), 2.0 + 1j, atol=1e-12)
    with pytest.raises(ValueError, match="bandwidth"):
        smooth_outline(smooth, 0.0)


def test_the_baseline_as_printed_is_the_embedded_mean_and_claims_nothing():
    data = sphere_data()
    points = data.records(jax.random.key(0), 30)
    mechanism = EmbeddedMean(data.ball, 1.0)
    mean = frechet_mean(data.ball.manifold, points)
    law = mechanism.law(30)
    np.testing.assert_allclose(law.location(points, mean) + data.ball.center, mean, atol=1e-15)
    record = mechanism.guarantee.record("")
    assert record["kind"] == "not proven"
    assert EmbeddedMean(data.ball, 0.5).scale(100) == pytest.approx(2 * (math.pi / 8) / 50)
    assert EmbeddedMean(matrix_data().ball, 1.0).scale(100) == pytest.approx(2 * math.expm1(1.5) / 100)
    # Reference number of the specification of this experiment: mean distance 2 scale, 1.74 / n with h at r.
    assert 2 * 100 * laplace_at_radius(data.ball, 100, 1.0) == pytest.approx(1.74, abs=0.02)


def test_quick_runs_have_few_replicates():
    assert Run(quick=True).count(10_000) == 333
    assert Run().count(10_000) == 10_000
    assert set(Run(quick=True).sizes) < set(Run().sizes)


def test_reproduce_refuses_unknown_papers_and_used_folders(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for arguments, message in (
        (["reproduce", "kng", "--out", str(tmp_path / "new")], "the paper must be one of laplace-2021"),
        (["reproduce", "kng-2022", "--out", str(tmp_path)], "is not an empty folder"),
    ):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 2
        assert message in " ".join(result.output.split())
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    (tmp_path / "new").mkdir()
    with only_writer(tmp_path / "new"):
        result = CliRunner().invoke(app, ["reproduce", "kng-2022", "--quick", "--out", str(tmp_path / "new")])
    assert result.exit_code == 2 and "another process is writing" in " ".join(result.output.split())


def test_cells_are_run_once_with_the_larger_count_and_listed_in_order():
    data, run = sphere_data(), Run(say=lambda text: None)
    mechanism = LaplaceMechanism(data.ball, 1.0)
    cells = [Cell("Laplace", "tight", mechanism, data, n, count) for n, count in ((20, 40), (30, 40), (20, 50))]
    rows = run.errors(cells)
    assert [row["n"] for row in rows] == [20, 30, 20]
    assert [row["replicates"] for row in rows] == [50, 40, 50]
    assert [row["n"] for row in run.numbers] == [20, 30]
    direct = run_replicates(mechanism, data, 20, 50, 0, "Sphere(dim=2, curvature=1.0): Laplace, tight, n=20, 1")
    assert rows[0]["euclidean"] == Estimate.of(direct.euclidean)
    assert run.errors(cells[:1]) == rows[:1]
    assert len(run.numbers) == 2
