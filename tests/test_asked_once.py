"""What the command line knows it does not ask again."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxgeodp.checks import InputError
from jaxgeodp.cli import app
from jaxgeodp.io.layout import Layout, chosen_columns

RNG = np.random.default_rng(0)
PLACES = np.array([0.1, 0.2, 1.0]) + 0.1 * RNG.normal(size=(80, 3))


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, " ".join(result.output.split())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savetxt("data.csv", PLACES, delimiter=",", header="x,y,z", comments="")
    np.savetxt("public.csv", PLACES[::-1] + 0.01, delimiter=",")
    code, said = run("ball", "public.csv", "--manifold", "sphere", "--n", 80, "--epsilon", 2, "--out", "ball.json")
    assert code == 0, said
    return tmp_path


def test_the_ball_says_the_manifold(folder):
    for words in (("check", "data.csv", "--header"), ("plan", "--n", 80, "--epsilon", 2)):
        code, said = run(*words, "--ball", "ball.json")
        assert code == 0 and "Sphere(dim=2" in said, said
    code, said = run(
        "release",
        "data.csv",
        "--header",
        "--ball",
        "ball.json",
        "--epsilon",
        2,
        "--mechanism",
        "tangent",
        "--out",
        "o.json",
    )
    assert code == 0 and "No ledger was charged" in said, said
    assert json.loads((folder / "o.json").read_text())["manifold"]["name"] == "Sphere"


def test_without_a_manifold_or_a_ball_nothing_is_done(folder):
    release = ("release", "data.csv", "--epsilon", 1, "--out", "o.json")
    for words in (("check", "data.csv"), release, ("plan", "--n", 9, "--epsilon", 1, "--radius", 0.3)):
        code, said = run(*words)
        assert code == 2 and "--manifold is needed, or --ball" in said, said
    code, said = run("ball", "public.csv", "--n", 80, "--epsilon", 2, "--out", "other.json")
    assert code == 2 and "--manifold is needed." in said, said
    (folder / "none.json").write_text("{}")
    code, said = run("check", "data.csv", "--ball", "none.json")
    assert code == 2 and "is not a file of 'jaxgeodp ball'" in said, said


def test_columns_from_one_name_to_another():
    names = ("id", "x-1", "y-1", "x-2", "y-2", "sex")
    assert chosen_columns(Layout(columns="x-1-y-2"), names, 6) == [1, 2, 3, 4]
    assert chosen_columns(Layout(columns="x-1-y-1,sex"), names, 6) == [1, 2, 5]
    for wrong, words in (("y-2-x-1", "stands before"), ("x-1-z", "neither a number"), ("x-1--", "neither a number")):
        with pytest.raises(InputError, match=words):
            chosen_columns(Layout(columns=wrong), names, 6)
