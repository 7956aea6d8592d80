"""The programs that look for mistakes find planted ones: mutants, fuzz and soak (results: docs/evidence/audit.md)."""

import importlib
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap

import pytest

from benchmarks.audit import fuzz, mutants, mutation_state
from benchmarks.audit.fuzz_targets import PLANTED
from jaxgeodp.checks import InputError

ROOT = pathlib.Path(__file__).parents[1]
SOURCE = b'''
LIMIT = 3


def within(number):
    """Whether -1 < number <= LIMIT."""
    if number < 0:
        raise ValueError(f"{number} is below {1 - 1}")
    return number <= LIMIT
'''
TEST = """
from toy.limits import within

def test_within():
    assert within(2) and not within(5)
"""


def script(text, folder):
    """What a program prints as JSON; in a process without JAX's threads, from which it may fork."""
    words = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{textwrap.dedent(text)}"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    answer = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout.splitlines()[-1])


# Mutants ---------------------------------------------------------------------------------------------------------


def test_mutants_change_one_place_and_no_text():
    found = mutants.mutants_of("limits.py", SOURCE)
    changes = {(mutant.before, mutant.after) for mutant in found}
    assert {("3", "4"), ("number <= LIMIT", "(number < LIMIT)"), ("number < 0", "False")} <= changes
    assert not any("below" in mutant.before or "docstring" in mutant.before for mutant in found)
    (check,) = [mutant for mutant in found if mutant.kind == "check"]
    assert check.applied(SOURCE) == SOURCE.replace(b"if number < 0", b"if False")
    assert (check.line, check.first, check.last) == (7, 7, 7)
    assert mutants.sample("limits.py", SOURCE, 4, seed=1) == mutants.sample("limits.py", SOURCE, 4, seed=1)
    assert len({mutant.kind for mutant in mutants.sample("limits.py", SOURCE, 3, seed=0)}) == 3


def test_a_mutant_is_killed_by_a_test_that_notices_and_survives_one_that_does_not(tmp_path):
    for name, content in {
        "toy/limits.py": SOURCE,
        "toy/__init__.py": b"",
        "tests/test_limits.py": TEST.encode(),
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    found = script(
        """
        import json, pathlib, sys, time
        from benchmarks.audit import mutants, mutation
        sys.path.insert(0, "")
        import toy.limits  # a module that is here already is not what a copy tests
        root, work = pathlib.Path("."), pathlib.Path("work.jsonl")
        source = pathlib.Path("toy/limits.py").read_bytes()
        chosen = [m for m in mutants.mutants_of("toy/limits.py", source) if m.after in ("False", "(number > LIMIT)")]
        name = "tests/test_limits.py::test_within"
        tests = mutation.Tests([{"seconds": {name: 0.01}, "lines": {"toy/limits.py": {"7": [name], "9": [name]}}}])
        with mutation.copied(root, 1) as copies:
            mutation.try_all(work, {"toy/limits.py": chosen}, tests, copies, time.monotonic() + 60.0)
            mutation.try_all(work, {"toy/limits.py": chosen}, tests, copies, time.monotonic() + 60.0)
        print(json.dumps([json.loads(line) for line in work.read_text().splitlines()]))
        """,
        tmp_path,
    )
    rows = found
    outcomes = {(row["before"], row["after"]): row for row in rows}
    assert len(rows) == len(outcomes) == 2  # once each, though called twice
    killed = outcomes["number <= LIMIT", "(number > LIMIT)"]
    assert (killed["outcome"], killed["by"]) == ("killed", "tests/test_limits.py::test_within")
    assert outcomes["number < 0", "False"]["outcome"] == "survived"
    assert (tmp_path / "toy" / "limits.py").read_bytes() == SOURCE


def test_a_round_of_mutants_goes_on_where_the_last_run_ended(tmp_path):
    order = mutants.sample("jaxgeodp/toy/limits.py", SOURCE, 99, seed=0)
    file, names = order[0].file, [mutant.name for mutant in order]
    begun = mutation_state.of_file({}, file, SOURCE, len(order))
    # The third has no outcome yet, so that the fourth does not count.
    first = mutation_state.gone_on(begun, order, dict(zip(names, ("killed", "survived", None, "killed"), strict=False)))
    assert (first["tried"], first["killed"], list(first["left"])) == (2, 1, [f"{names[1]} (survived)"])
    path = tmp_path / "state.json"
    mutation_state.write(path, {file: first | {"left": {f"{names[1]} (survived)": "a reason"}}})
    kept = mutation_state.of_file(mutation_state.read(path), file, SOURCE, len(order))
    second = mutation_state.gone_on(kept, order, {names[2]: "timed out", names[3]: "no test"})
    assert (second["tried"], second["killed"], second["timed out"]) == (4, 1, 1)
    table = mutation_state.table({file: second}).splitlines()
    assert table[2] == f"| toy | {len(order)} | 4 | 1 | 1 | 2 | 1 |"
    assert mutation_state.unexplained({file: second}) == {names[3]}
    third = mutation_state.gone_on(second, order, {names[1]: "killed", names[3]: "killed"})  # tests have changed
    assert (third["killed"], list(third["left"])) == (2, [f"{names[1]} (survived)"])  # one has a reason
    assert mutation_state.of_file({file: second}, file, SOURCE + b"\n", len(order))["tried"] == 0
    assert mutation_state.read(tmp_path / "none") == {}


def test_the_page_of_mutants_has_what_is_kept():
    state, text = mutation_state.read(mutation_state.PATH), mutation_state.PAGE.read_text(encoding="utf-8")
    assert mutation_state.page(state, text) == text
    counted = re.findall(r"^\| [^|]* \| (\d+) \|$", mutation_state.table_of_left(state), re.MULTILINE)
    assert sum(map(int, counted)) == sum(len(own["left"]) for own in state.values())


def test_what_is_left_without_a_reason_is_told_one_by_one():
    reasons = {"jaxgeodp/a/b.py:3:1: 1 -> 2 (survived)": "", "jaxgeodp/a/b.py:4:1: 1 -> 2 (no test)": "by reading: x"}
    table = mutation_state.table_of_left({"jaxgeodp/a/b.py": {"left": reasons}}).splitlines()
    assert table[2:] == ["| by reading: another reason | 1 |", "| open: `a/b.py:3`, `1 -> 2` | 1 |"]


def test_lines_that_no_test_runs_are_told_apart():
    from benchmarks.audit import mutation

    name = "tests/test_limits.py::test_within"
    tests = mutation.Tests([{"seconds": {name: 0.01}, "lines": {"limits.py": {"9": [name]}}}])
    found = {mutant.line: tests.of(mutant) for mutant in mutants.mutants_of("limits.py", SOURCE)}
    # The constant is run when the module is imported, for all tests of the file.
    assert found == {2: [name], 7: [], 9: [name]}


# Fuzz ------------------------------------------------------------------------------------------------------------


def test_a_finding_is_what_no_reader_may_do_and_is_made_smaller():
    target = PLANTED["planted"]
    judge = fuzz.Judge(target.call, target.suffix, (InputError, OSError))
    found = judge(b"bug in something longer")
    assert found is not None and found.signature.startswith("KeyError") and "planted" in found.words
    assert judge(b"b") is None
    assert judge.smaller(b"bug in something longer", found.signature) == b"bu"

    def refuse(path):
        raise InputError("no.") if path.read_bytes() else FileNotFoundError

    assert fuzz.Judge(refuse, ".txt", (InputError, OSError))(b"x") is None
    assert fuzz.Judge(refuse, ".txt", (InputError,))(b"") is not None


def test_a_command_that_ends_with_an_error_that_is_none_of_ours_is_a_finding(monkeypatch):
    from benchmarks.audit import fuzz_targets

    assert "Error" in fuzz_targets.command("show", "nowhere.json")

    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(importlib.import_module("jaxgeodp.cli.show").Release, "load", fail)
    with pytest.raises(fuzz_targets.WrongEnd, match="unexpected ZeroDivisionError"):
        fuzz_targets.command("show", "nowhere.json")


@pytest.mark.exhaustive
def test_coverage_leads_to_a_planted_mistake(tmp_path):
    pytest.importorskip("atheris")
    command = [sys.executable, "-m", "benchmarks.audit.fuzz", "--only", "planted", "--minutes", "1.5"]
    answer = subprocess.run([*command, "--folder", tmp_path], cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert answer.returncode == 0 and "KeyError fuzz_targets.py" in answer.stdout
    found = {path.read_bytes()[:2] for path in (tmp_path / "findings").glob("planted-*.bin")}
    assert found == {b"bu", b"by"}  # an error, and the end of the process


# Soak ------------------------------------------------------------------------------------------------------------


def test_a_lost_charge_a_leak_and_other_bytes_are_seen(tmp_path):
    for name, content in {"alone": "1", "killed": "1"}.items():
        (tmp_path / name / "cells").mkdir(parents=True)
        (tmp_path / name / "cells" / "0.parquet").write_text(content)
    (tmp_path / "killed" / "more").write_text("")
    right, planted, growth, other = script(
        """
        import dataclasses, json, pathlib, random, time
        from benchmarks.audit import soak

        def crowd(work):
            found = soak.Crowd(pathlib.Path("."), [work, work], random.Random(0))
            while not all(child.all("H") for child in found.children):
                found.tick()
            found.end()
            return dataclasses.asdict(found.count)

        right = crowd(lambda: soak.plain_release)
        planted = crowd(lambda: lambda ledger: soak.plain_release(None))
        use = soak.Use([500.0, 100.0, 100.0, 104.0], [9, 8, 8, 8], [1, 1, 1, 1])
        growth = [use.growth(name) for name in ("megabytes", "files", "threads")]
        other = soak.differing(pathlib.Path("alone"), pathlib.Path("killed"))
        print(json.dumps([right, planted, growth, other]))
        """,
        tmp_path,
    )
    faults = ("charges_lost", "spent_twice", "drawn_uncharged", "over_budget")
    assert right["entries"] >= 2 and [right[name] for name in faults] == [0] * 4
    assert planted["charges_lost"] >= 2 and planted["drawn_uncharged"] >= 2
    assert growth == pytest.approx([0.04, 0.0, 0.0])
    assert other == ["more"]
