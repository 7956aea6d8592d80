"""``-``: the standard input and output in place of files; and what commands in groups have in common with others."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxgeodp.cli import app
from jaxgeodp.io import read
from jaxgeodp.privacy import Release

RNG = np.random.default_rng(0)
DIRECTIONS = np.array([0.0, 0.0, 1.0]) + 0.2 * RNG.normal(size=(200, 3))
TABLE = "".join(",".join(map(repr, map(float, row))) + "\n" for row in DIRECTIONS)
BALL = ("--manifold", "sphere", "--center", "center.csv", "--radius", "0.7")
linux = pytest.mark.skipif(sys.platform != "linux", reason="files in memory are of Linux")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("data.csv").write_text(TABLE)
    pathlib.Path("center.csv").write_text("0,0,1\n")
    return tmp_path


def piped(*arguments, text=""):
    return subprocess.run(
        [sys.executable, "-m", "jaxgeodp", *map(str, arguments)], input=text, capture_output=True, text=True
    )


def run(*arguments):
    return CliRunner().invoke(app, [str(word) for word in arguments])


def test_a_closed_standard_output_is_refused_before_the_charge(folder):
    assert run("ledger", "init", "budget.db", "--mu", 1).exit_code == 0
    words = ("release", "data.csv", *BALL, "--mu", "0.5", "--out", "-", "--ledger", "budget.db")
    closed = f"import os, sys; os.close(1); os.execv(sys.executable, [sys.executable, '-m', 'jaxgeodp', *{words!r}])"
    done = subprocess.run([sys.executable, "-c", closed], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and "the standard output is closed" in done.stderr
    assert run("ledger", "show", "budget.db").output.splitlines()[1].split()[-3:] == ["0", "0", "replace-one"]


@linux
def test_records_come_and_a_release_goes_through_pipes(folder):
    (folder / "data.csv").unlink()
    assert run("ledger", "init", "budget.db", "--mu", 1).exit_code == 0
    done = piped(
        *("release", "-", *BALL, "--mu", 0.5, "--mechanism", "tangent-gaussian", "--out", "-", "--ledger", "budget.db"),
        text=TABLE,
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)  # and nothing else
    assert record["n"] == 200 and record["guarantee"]["mu"] == 0.5 and done.stderr == ""
    assert sorted(path.name for path in folder.iterdir()) == ["budget.db", "center.csv"]
    told = piped("show", "-", "--csv", "-", text=done.stdout)
    assert told.returncode == 0, told.stderr
    np.testing.assert_array_equal(np.array(told.stdout.split(","), float), record["value"])
    assert f"n = {record['n']}" in piped("show", "-", text=done.stdout).stdout
    (folder / "out.json").write_text(done.stdout)
    assert Release.load("out.json").record == record


@linux
def test_records_that_are_sent_count_as_those_of_a_file(folder):
    words = *BALL, "--out"
    sent, named = piped("check", "-", *words, "sent.txt", text=TABLE), run("check", "data.csv", *words, "named.txt")
    assert sent.returncode == named.exit_code == 0
    assert sent.stdout.splitlines()[2:-1] == [
        line.replace("data.csv", "standard-input.csv") for line in named.output.splitlines()[2:-1]
    ]


@linux
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("check", "-", *BALL), "--out is needed"),
        (
            ("ball", "-", "--manifold", "sphere", "--n", 9, "--mu", 1, "--out", "-"),
            "--out -: the standard output cannot be used",
        ),
        (("release", "-", *BALL, "--mu", 1, "--out", "-", "--json"), "leave out one"),
        (
            (
                "release",
                "data.csv",
                *BALL,
                "--mu",
                1,
                "--mechanism",
                "tangent-gaussian",
                "--out",
                "-",
                "--group",
                "1",
                "--groups",
                "a,b",
            ),
            "each group has a record",
        ),
    ],
)
def test_what_has_no_place_in_a_pipe_is_refused(folder, words, said):
    done = piped(*words, text=TABLE)
    assert done.returncode == 2 and said in " ".join(done.stderr.split()), done.stderr
    assert {path.name for path in folder.iterdir()} == {"data.csv", "center.csv"}


@linux
def test_nothing_that_is_sent_is_an_empty_file(folder):
    done = piped("release", "-", *BALL, "--mu", 1, "--out", "out.json")
    assert done.returncode == 2 and "standard-input.csv" in done.stderr and not pathlib.Path("out.json").exists()


@linux
def test_nothing_of_the_standard_input_is_on_a_disk(folder, tmp_path_factory):
    from jaxgeodp.cli.streams import given_file

    place = tmp_path_factory.mktemp("temporary")
    script = (
        "import pathlib, tempfile\n"
        f"tempfile.tempdir = {str(place)!r}\n"
        "from jaxgeodp.cli.streams import given_file\n"
        "path = given_file(pathlib.Path('-'), '.csv')\n"
        "assert path.is_symlink() and str(path.readlink()).startswith('/proc/')\n"
        "assert path.read_bytes() == path.read_bytes() == b'x' * 3_000_000\n"
    )
    done = subprocess.run([sys.executable, "-c", script], input="x" * 3_000_000, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not list(place.iterdir())
    assert given_file(pathlib.Path("data.csv"), ".csv") == pathlib.Path("data.csv")
    assert len(read("data.csv", "sphere")) == 200


def test_a_project_can_be_left_out(folder):
    (folder / "jaxgeodp.toml").write_text('manifold = "sphere"\ncenter = "center.csv"\nradius = 0.7\nperson = "1"\n')
    result = run("check", "data.csv", "--manifold", "euclidean", "--no-project")
    assert result.exit_code == 0 and "Euclidean(dim=3)" in result.output and "jaxgeodp.toml" not in result.output
    (folder / "jaxgeodp.toml").write_text('[check]\n"no-project" = true\n')
    assert run("check", "data.csv", "--manifold", "euclidean").exit_code == 2


def test_commands_in_groups_are_quiet_and_tell_as_json(folder):
    assert run("ledger", "init", "budget.db", "--epsilon", 2, "--quiet").output == ""
    told = json.loads(run("ledger", "show", "budget.db", "--json").output)
    assert told["budgets"][0]["budget"] == {"epsilon": 2.0} and told["budgets"][0]["releases"] == 0
    assert run("site", "key", "one", "--out", ".", "--quiet").output == ""
    assert (folder / "one.pub").is_file()
    assert run("ledger", "export", "budget.db", "--out", "all.csv", "--quiet").output == ""
