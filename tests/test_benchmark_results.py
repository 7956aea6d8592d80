"""The tables of benchmarks/README.md: made from results, and told apart from those whose code has changed."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from benchmarks.tools import results

SAVED = results.saved()


def test_readme_has_the_tables_of_all_results():
    """After a change of code that was measured: ``python -m benchmarks.tools.results render``."""
    assert results.README.read_text() == results.with_tables(results.README.read_text(), SAVED)


def test_results_are_of_scripts_and_name_what_ran():
    assert set(SAVED) <= set(results.SCRIPTS)
    for name, found in SAVED.items():
        assert results.SCRIPTS[name].path in found["measured"]
        assert any(file.startswith("jaxgeodp/") for file in found["measured"])
        assert found["tables"] and all(found["versions"].get(library) for library in results.LIBRARIES)


def test_scripts_begin_with_what_they_measure_and_their_command():
    for path in results.FOLDER.glob("*/*.py"):
        lines = path.read_text().splitlines()
        assert lines[0].startswith('"""') and lines[0].rstrip('"').endswith("."), path
        if '__name__ == "__main__"' in path.read_text():
            assert lines[1] == "" and lines[2].startswith(f"    python -m benchmarks.{path.parent.name}.{path.stem}"), (
                path
            )


@pytest.fixture
def measured(tmp_path):
    """A copy of a file that was measured, its root, and a result of it."""
    name = "jaxgeodp/statistics/frechet_mean.py"
    (tmp_path / name).parent.mkdir(parents=True)
    shutil.copy(results.ROOT / name, tmp_path / name)
    found = {
        "commit": "abc1234",
        "date": "2026-01-01",
        "machine": "2 cores",
        "load": 0.0,
        "versions": {"jax": "1"},
        "seconds": 1234,
        "digest": results.digest([name], tmp_path),
        "measured": [name],
        "tables": [{"title": "Means", "header": ["", "ms"], "rows": [["S^2", "1"]]}],
    }
    return tmp_path / name, tmp_path, found


def test_a_changed_line_of_code_is_told_and_a_comment_is_not(measured):
    path, root, found = measured
    page = "before\n<!-- means -->\nold\n<!-- /means -->\nafter\n"
    first = results.with_tables(page, {"means": found}, root)
    assert first == (
        "before\n<!-- means -->\nCommit abc1234, 2026-01-01: 2 cores, jax 1; 1,234 s.\n\n"
        "Means\n\n|  | ms |\n| --- | --- |\n| S^2 | 1 |\n<!-- /means -->\nafter\n"
    )
    assert results.with_tables(first, {"means": found}, root) == first
    text = path.read_text()
    path.write_text(text.replace('"""', '"""Reworded. ', 1).replace("\n\n\n", "\n\n# A comment.\n\n", 1))
    assert path.read_text() != text
    assert results.with_tables(page, {"means": found}, root) == first
    path.write_text(text + "_LIMIT = 3\n")
    assert results.STALE in results.with_tables(page, {"means": found}, root)
    # A docstring on the line of its code, and a number sign in words, are no comments.
    for code, other in (('def f(): "doc"; return 1\n', "return 2"), ('X = """\n# 1\n"""\n', "# 2")):
        path.write_text(code)
        of_code = results.digest([found["measured"][0]], root)
        path.write_text(code.replace("return 1", other).replace("# 1", other))
        assert results.digest([found["measured"][0]], root) != of_code
    path.unlink()
    assert results.STALE in results.with_tables(page, {"means": found}, root)


def test_a_load_is_told(measured):
    _, root, found = measured
    assert "Load 2.5" in results.rendered({**found, "load": 2.5}, root)


def test_a_page_without_a_place_is_an_error(measured):
    _, root, found = measured
    with pytest.raises(SystemExit, match="no single place for means"):
        results.with_tables("no mark\n", {"means": found}, root)


def test_tables_are_found_in_what_is_printed():
    said = "load 1\n\nFirst one\n\n| a | b |\n| - | - |\n| 1 | 2 x |\n\nnote\n| c |\n|---|\n| 3 |\n| 4 |\n\n"
    said += "| empty |\n|---|\n"
    assert results.tables_in(said) == [
        {"title": "First one", "header": ["a", "b"], "rows": [["1", "2 x"]]},
        {"title": "note", "header": ["c"], "rows": [["3"], ["4"]]},
    ]


def test_names_of_no_benchmark_are_refused(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["results.py", "run", "nothing"])
    with pytest.raises(SystemExit, match="No such benchmark: nothing"):
        results.main()


QUICK = [path for path in sorted(results.FOLDER.glob("*/*.py")) if '"--quick"' in path.read_text()]
QUICK = [path for path in QUICK if path.parent.name != "tools"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", QUICK, ids=lambda path: path.stem)
def test_each_script_runs(path, tmp_path):
    """Two of them had not for days, as a mechanism was new to one, and no test calls them."""
    if path.stem == "peers":  # it compares with what is installed
        pytest.importorskip("morphomatics")
    environment = {**os.environ, "PYTHONPATH": str(results.ROOT), "MPLBACKEND": "Agg"}
    command = [sys.executable, "-W", "ignore", "-m", f"benchmarks.{path.parent.name}.{path.stem}", "--quick"]
    answer = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    missing = re.search(r"No module named '(\w+)", answer.stderr)
    if answer.returncode and missing and missing[1] not in ("jaxgeodp", "benchmarks"):
        pytest.skip(missing[0])
    assert answer.returncode == 0, answer.stderr[-2000:]


@pytest.mark.exhaustive
def test_a_small_run_is_watched(tmp_path):
    files = results.files_of(results.SCRIPTS["kernels"])
    assert {"benchmarks/compare/kernels.py", "benchmarks/tools/timing.py", "jaxgeodp/manifolds/sphere.py"} <= set(files)
    # What is imported and not called does not count.
    assert not any(file.startswith(("jaxgeodp/cli/", "jaxgeodp/privacy/", "jaxgeodp/mechanisms/")) for file in files)
    assert json.dumps(files) and all(pathlib.PurePosixPath(file).suffix == ".py" for file in files)
