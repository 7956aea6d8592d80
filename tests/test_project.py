"""The project file and what all commands have in common: --quiet, --json, panels and examples of the help."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

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
        ("manifold = ", "is not a valid TOML file"),
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
    wrong = ("nothing.csv", "spheer", "x,q", "subjekt", "wind")  # asked again
    answers = [wrong[0], "data.csv", "y", "", wrong[1], "sphere", wrong[2], "x-z", wrong[3], "", wrong[4], ""]
    answers += ["ball.json", "budget.db", "own"]
    result = run("init", text="\n".join(answers) + "\n")
    assert result.exit_code == 0, result.output
    assert "Its columns: id, x, y, z" in result.output and "jaxgeodp ledger init budget.db" in result.output
    text = (folder / "jaxgeodp.toml").read_text()
    assert 'columns = "x-z"' in text and "header = true" in text and "person" not in text
    assert run("init", text="\n").exit_code == 2, "it exists"
    # What it says is to be done next can be done.
    np.save("public.npy", DIRECTIONS[:40])
    pathlib.Path("public.csv").write_text("x,y,z\n" + "\n".join(",".join(map(str, row)) for row in DIRECTIONS[:40]))
    assert run("ball", "public.csv", "--n", 200, "--epsilon", 1, "--out", "ball.json").exit_code == 0
    assert run("check").exit_code == 0
    assert run("plan", "--n", 200, "--epsilon", 1, "--draws", 20, "--json").exit_code == 0
    assert run("ledger", "init", "budget.db", "--epsilon", 1, "--dataset", "own").exit_code == 0
    assert run("release", "--epsilon", 1, "--mechanism", "tangent", "--out", "out.json").exit_code == 0
    (folder / "jaxgeodp.toml").unlink()
    result = run("init", text="nothing.csv\n")
    assert result.exit_code == 2 and "the input ended before" in result.output
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


def test_a_project_fails_closed(folder):
    (folder / "jaxgeodp.toml").write_text(PROJECT)
    result = run("ball", "./data.csv", "--n", 50, "--epsilon", 1, "--out", "ball.json")
    assert result.exit_code == 2 and "is the private data file of jaxgeodp.toml" in words_of(result)
    (folder / "jaxgeodp.toml").write_text(f'person = "id"\n{PROJECT}')
    result = run("describe", "--mu", 1, "--out", "described")
    assert result.exit_code == 2 and "jaxgeodp describe has no --person" in words_of(result)
    assert run("check").exit_code == 0
    for line, words in (("epsilon = true", "must be text or a number"), ("header = 'yes'", "must be true or false")):
        text = PROJECT.replace("epsilon = 0.5", "epsilon = 0.4" if "header" in line else line)
        text = text.replace("header = true", line) if "header" in line else text
        (folder / "jaxgeodp.toml").write_text(text)
        result = run("release", "--out", "out.json")
        assert result.exit_code == 2 and words in words_of(result), result.output
    (folder / "jaxgeodp.toml").write_text(PROJECT + "json = true\n")
    assert run("release", "--out", "out.json").exit_code == 2
    (folder / "jaxgeodp.toml").write_text("is = no = toml")
    assert run("release", "--help").exit_code == 0
    assert not (folder / "out.json").exists()


def test_completion_is_told_nothing_of_a_project(folder, monkeypatch):
    """A shell evaluates what completion prints."""
    (folder / "jaxgeodp.toml").write_text('data = "x; touch injected; echo"\n')
    command = shutil.which("jaxgeodp", path=str(pathlib.Path(sys.executable).parent))
    assert command is not None
    own = {"_TYPER_COMPLETE_ARGS": "jaxgeodp check --man", "_JAXGEODP_COMPLETE": "complete_zsh"}
    answer = subprocess.run([command], env=os.environ | own, capture_output=True, text=True, check=False)
    assert "touch" not in answer.stdout and "From" not in answer.stdout and "--manifold" in answer.stdout


def test_the_report_of_other_data_stays(folder):
    np.save("data.npy", DIRECTIONS)
    own = ("--manifold", "sphere", "--center", "center.csv", "--radius", 0.7)
    assert run("check", "data.npy", *own).exit_code == 0
    assert run("check", "data.csv", *own, "--header", "--columns", "x-z").exit_code == 2
    os.mkfifo("pipe.txt")
    result = run("check", "data.npy", *own, "--out", "pipe.txt")
    assert result.exit_code == 2 and "not a regular file" in result.output
