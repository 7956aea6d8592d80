"""What knows a mechanism after its recipe; `tests/test_recipes.py` runs it in a copy of the package."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxgeodp import Euclidean, GeodesicBall
from jaxgeodp.cli.app import app
from jaxgeodp.mechanisms import plan_mechanisms

LINE = ("--manifold", "euclidean", "--radius", 1.5, "--epsilon", 2)


def run(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.output


def test_by_release(tmp_path):
    np.save(tmp_path / "data.npy", np.random.default_rng(0).uniform(-1.0, 1.0, (50, 1)))
    out = tmp_path / "release.json"
    run("release", tmp_path / "data.npy", *LINE, "--mechanism", "coordinates", "--out", out)
    assert json.loads(out.read_text())["mechanism"] == "CoordinateLaplace"
    assert "coordinates" in run("release", "--help")


def test_by_plans():
    (plan,) = plan_mechanisms(GeodesicBall(Euclidean(1), [0.0], 1.5), 50, 2.0, draws=50, names=("coordinates",))
    assert plan.mechanism == "CoordinateLaplace" and plan.error > 0


def test_by_sweeps(tmp_path):
    own = 'manifold = "euclidean(1)"\nradius = 1.5\nmechanisms = ["coordinates"]\n'
    (tmp_path / "sweep.toml").write_text(own + "n = [10]\nepsilon = [2.0]\nreplicates = 20\n")
    run("sweep", tmp_path / "sweep.toml", "--out", tmp_path / "results")
    assert "coordinates" in (tmp_path / "results" / "summary.csv").read_text()


def test_by_audits():
    assert "not contradicted" in run("audit", *LINE, "--size", 1, "--mechanism", "coordinates", "--draws", 2000)


@pytest.mark.exhaustive
def test_by_the_plan_of_all():
    assert "CoordinateLaplace" in run("plan", *LINE, "--size", 1, "--n", 50, "--draws", 50)
