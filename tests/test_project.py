"""The project file and what all commands have in common: --quiet, --json, panels and examples of the help."""

import json
import pathlib

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxgeodp.cli import app
from jaxgeodp.privacy import Ledger

RNG = np.random.default_rng(0)
DIRECTIONS = np.array([0.0, 0.0, 1.0]) + 0.2 * RNG.normal(size=(200, 3))
PROJECT = """
data = "data.csv"
manifold = "sphere"
header = true
columns = "x-z"
center = "center.csv"
radius = 0.7
ledger = "budget.db"
dataset = "own"
[release]
epsilon = 0.5
mechanism = "tangent"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{k}," + ",".join(map(repr, map(float, row))) for k, row in enumerate(DIRECTIONS))
    pathlib.Path("data.csv").write_text(f"id,x,y,z\n{rows}\n")
    pathlib.Path("center.csv").write_text("0,0,1\n")
    return tmp_path


def run(*arguments, text=None):
    return CliRunner().invoke(app, [str(word) for word in arguments], input=text)


def words_of(result):
    return " ".join(result.output.split())


def test_a_project_says_what_calls_need_not(folder):
    (folder / "jaxgeodp.toml").write_text(PROJECT)
    result = run("check")
    assert result.exit_code == 0 and "data.csv: 200 records on Sphere(dim=2" in result.output
    assert "From jaxgeodp.toml: data.csv --manifold sphere --header --columns x-z" in words_of(result)
    assert run("ledger", "init", "budget.db", "--epsilon", 1, "--dataset", "own").exit_code == 0
    result = run("release", "--out", "out.json")
    assert result.exit_code == 0, result.output
    record = json.loads((folder / "out.json").read_text())
    assert record["guarantee"]["epsilon"] == 0.5 and record["ball"]["radius"] == 0.7
    assert Ledger("budget.db", dataset="own").account().spent == {"epsilon": 0.5}
    # A call's own words win, over what they contradict, too.
    result = run(
        "release", "data.csv", "--mu", 1, "--mechanism", "tangent-gaussian", "--radius", 0.7, "--out", "b.json"
    )
    assert result.exit_code == 2 and "budget" in words_of(result), "mu is not for a ledger of epsilon"
    result = run("plan", "--n", 50, "--epsilon", 1, "--draws", 50, "--size", 2, "--json")
    plans = json.loads(result.output)
    assert plans["radius"] == 0.7 and {plan["name"] for plan in plans["plans"]} >= {"kng", "tangent"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("manifold = ", "is no TOML"),
        ("maniflod = 'sphere'", "there is no such option"),
        ("[reelase]\nepsilon = 1", "there is no such command"),
        ("[release]\nepsilonn = 1", "jaxgeodp release has no such option"),
        ("columns = [1, 2]", "must be text, a number, or true or false"),
        ("epsilon = 1e400\nradius = 'wide'", "--radius must be a number"),
    ],
)
def test_a_project_that_is_none_is_refused(folder, text, words):
    (folder / "jaxgeodp.toml").write_text(text)
    common = ("data.csv", "--manifold", "sphere", "--header", "--columns", "2-4", "--center", "center.csv")
    more = () if "radius" in text else ("--radius", 0.7)
    result = run("release", *common, *more, "--out", "out.json")
    assert result.exit_code == 2 and words in words_of(result), result.output
    assert not (folder / "out.json").exists()


def test_public_data_are_not_taken_from_the_project(folder):
    (folder / "jaxgeodp.toml").write_text(PROJECT)
    result = run("ball", "--n", 50, "--epsilon", 1, "--out", "ball.json")
    assert result.exit_code == 2 and "data" in result.output, "ball must be told its PUBLIC data"


def test_questions_make_a_project(folder):
    answers = ["data.csv", "y", "", "sphere", "x-z", "", "", "ball.json", "budget.db", "own"]
    result = run("init", text="\n".join(answers) + "\n")
    assert result.exit_code == 0, result.output
    assert "Its columns: id, x, y, z" in result.output and "jaxgeodp ledger init budget.db" in result.output
    text = (folder / "jaxgeodp.toml").read_text()
    assert 'columns = "x-z"' in text and "header = true" in text and "person" not in text
    assert run("init", text="\n").exit_code == 2, "it exists"
    (folder / "jaxgeodp.toml").unlink()
    assert run("init", text="nothing.csv\n").exit_code == 2
    assert run("init", text="data.csv\ny\n\nspheer\n").exit_code == 2
    assert not (folder / "jaxgeodp.toml").exists()


def test_quiet_and_json(folder):
    (folder / "jaxgeodp.toml").write_text(PROJECT.replace('ledger = "budget.db"\ndataset = "own"\n', ""))
    assert run("release", "--out", "a.json", "--quiet").output == ""
    found = json.loads(run("release", "--out", "b.json", "--json").output)
    assert found["releases"]["b.json"]["n"] == 200
    found = json.loads(run("show", "a.json", "--json").output)
    assert found["record"] == json.loads((folder / "a.json").read_text())
    assert found["right_at_most"] == pytest.approx(np.exp(0.5) / (1 + np.exp(0.5)))
    found = json.loads(run("check", "--json").output)
    assert found["n"] == found["usable"] == 200 and "distances" in [one["about"] for one in found["findings"]]
    result = run("release", "--out", "a.json", "--json")
    assert result.exit_code == 2 and "exists" in result.output and "{" not in result.output


def test_a_report_is_replaced_unless_somebody_wrote_in_it(folder):
    (folder / "jaxgeodp.toml").write_text(PROJECT)
    report = folder / "data-private.txt"
    assert run("check").exit_code == 0
    first = report.read_text()
    assert run("check", "--radius", 0.1, "--center", "center.csv").exit_code == 0
    assert report.read_text() != first and (report.stat().st_mode & 0o777) == 0o600
    report.write_text(report.read_text() + "note: asked the ward about record 7\n")
    result = run("check")
    assert result.exit_code == 2 and "exists" in result.output and "record 7" in report.read_text()
    report.write_text(first.replace("200 records", "201 records"))
    assert run("check").exit_code == 2, "changed within"
    assert run("check", "--overwrite").exit_code == 0 and report.read_text() == first


def test_help_has_panels_and_examples():
    result = run("release", "--help")
    panels = ("The file", "Space and public ball", "Mechanism and budget", "Output", "For example:")
    places = [result.output.index(panel) for panel in panels]
    assert places == sorted(places)
