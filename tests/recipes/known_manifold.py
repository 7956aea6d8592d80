"""What knows a manifold after its recipe; `tests/test_recipes.py` runs it in a copy of the package."""

import json

import numpy as np
import pytest
from jaxgeodp.manifolds.scales import Scales
from typer.testing import CliRunner

from jaxgeodp.cli.app import app
from jaxgeodp.manifolds.names import manifold_named, manifold_of

RECORDS = np.exp(np.random.default_rng(0).uniform(-0.5, 0.5, (50, 2)))


def run(*arguments):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    return result.output


def test_by_its_name():
    assert manifold_named("scales(2)") == Scales(2)
    assert manifold_named("scales(2) * sphere(1)").manifolds[0] == Scales(2)


def test_by_the_command_line(tmp_path):
    np.save(tmp_path / "data.npy", RECORDS)
    own = ("--manifold", "scales", "--radius", 1.0, "--epsilon", 20, "--mechanism", "tangent")
    run("release", tmp_path / "data.npy", *own, "--out", tmp_path / "release.json")
    record = json.loads((tmp_path / "release.json").read_text())
    assert manifold_of(record["manifold"]) == Scales(2) and np.all(np.array(record["value"]) > 0)
    assert "scales" in run("release", "--help")


@pytest.mark.exhaustive
def test_by_plans():
    assert "WrappedLaplace" in run("plan", "--manifold", "scales(2)", "--radius", 1, "--epsilon", 2, "--n", 50)
