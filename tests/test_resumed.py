"""A run that is stopped goes on: ``--resume`` of conftest.py, on a folder of three tests."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).parent
CONFTEST = f"""
import pathlib, sys
sys.path.insert(0, {str(TESTS)!r})
from resumed import Resumed

def pytest_configure(config):
    config.pluginmanager.register(Resumed(config, pathlib.Path("passed.jsonl")))
"""
THREE = """
import os, pytest

def test_right(): pass
def test_wrong(): assert os.path.exists("mended")
@pytest.mark.skip
def test_left(): pass
"""


@pytest.mark.parametrize("workers", ["2", pytest.param("0", marks=pytest.mark.exhaustive)])
def test_what_has_passed_is_not_run_again(tmp_path, workers):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_three.py").write_text(THREE)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}

    def run(*arguments):
        words = [sys.executable, "-m", "pytest", "-q", "-n", workers, "-c", os.devnull, "--rootdir", ".", *arguments]
        done = subprocess.run(words, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=120)
        passed = {json.loads(line)["test"] for line in notes.read_text().splitlines() if line.endswith("}")}
        return done.returncode, passed, done.stdout

    notes = tmp_path / "passed.jsonl"
    code, passed, said = run()
    assert code == 1 and passed == {"test_three.py::test_right"}, said
    with notes.open("a") as file:
        file.write('{"test": "test_thr')  # killed while it wrote
    (tmp_path / "mended").touch()
    code, passed, said = run()
    assert code == 0 and passed == {"test_three.py::test_right", "test_three.py::test_wrong"}, said
    assert "1 tests had passed" in said and "1 passed and 0 failed now" in said
    code, _, said = run("-k", "right or wrong")
    assert code == 0 and "2 tests had passed" in said and "0 passed and 0 failed now" in said
    code, _, said = run("-k", "nothing")
    assert code == 5, said  # no such test
    notes.write_text(notes.read_text().replace('"digest": "', '"digest": "0'))
    code, _, said = run("-k", "right")
    assert code == 0 and "1 passed and 0 failed now" in said
