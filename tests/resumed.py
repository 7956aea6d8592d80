"""A run of tests that can be stopped and gone on with: ``pytest --exhaustive --resume=FILE``.

FILE has a line of JSON for each test that passed: its name, its seconds, and a digest of the code and versions it ran
with. The same call runs what has not passed with the code as it is now.
"""

import contextlib
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).parents[1]
FOLDERS = ("jaxgeodp", "tests", "benchmarks", "docs", "notebooks")
_MADE = ("__pycache__", ".pyc")


def digest_of_code() -> str:
    """Return a digest of all files of the project, of Python's version, all libraries' and XLA's flags."""
    libraries = sorted(f"{own.name} {own.version}" for own in importlib.metadata.distributions())
    found = hashlib.sha256(repr([platform.python_version(), libraries, os.environ.get("XLA_FLAGS")]).encode())
    paths = [path for path in ROOT.glob("*") if path.is_file()]
    paths += [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    for path in sorted(path for path in paths if not str(path).endswith(_MADE) and "__pycache__" not in path.parts):
        found.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return found.hexdigest()[:16]


def notes_in(path: pathlib.Path) -> Iterator[dict]:
    """Yield the complete notes of a file; the process may have been killed while it wrote one."""
    for line in path.read_text().splitlines() if path.exists() else ():
        with contextlib.suppress(json.JSONDecodeError):
            yield json.loads(line)


class Resumed:
    """Deselects tests that have passed before, and notes those that pass.

    The process that hands out tests reads and writes the file, and tells its workers once: all must collect the same.
    """

    def __init__(self, config: pytest.Config, path: pathlib.Path):
        self.path, self.failed, self.seconds, self.left_out = path, set(), {}, 0
        self.ran = set()
        told = getattr(config, "workerinput", None)
        self.writes = told is None
        if told is not None:
            self.passed = set(told["passed"])
            return
        self.digest = digest_of_code()
        self.earlier = {note["test"]: note["seconds"] for note in notes_in(path) if note["digest"] == self.digest}
        self.passed = set(self.earlier)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node) -> None:
        node.workerinput["passed"] = sorted(self.passed)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node) -> None:
        self.left_out = max(self.left_out, getattr(node, "workeroutput", {}).get("left_out", 0))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        done = [item for item in items if item.nodeid in self.passed]
        self.left_out = len(done)
        if not self.writes:
            config.workeroutput["left_out"] = len(done)
        config.hook.pytest_deselected(items=done)
        items[:] = [item for item in items if item.nodeid not in self.passed]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not self.writes:
            return
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.add(report.nodeid)
        if report.when == "call" and report.passed and not hasattr(report, "wasxfail"):
            self.ran.add(report.nodeid)
        if report.when == "teardown" and report.nodeid in self.ran - self.failed:
            note = {"test": report.nodeid, "seconds": round(self.seconds[report.nodeid], 2), "digest": self.digest}
            with self.path.open("a") as file:
                # A line of its own, also after one that was cut short.
                file.write(f"\n{json.dumps(note)}\n")

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.left_out:
            session.exitstatus = pytest.ExitCode.OK  # all have passed before

    def pytest_terminal_summary(self, terminalreporter) -> None:
        if not self.writes:
            return
        before, now = (sum(seconds.values()) / 60.0 for seconds in (self.earlier, self.seconds))
        passed = len(self.ran - self.failed)
        terminalreporter.write_line(
            f"{len(self.earlier)} tests had passed in {before:.1f} minutes; "
            f"{passed} passed and {len(self.failed)} failed now, in {now:.1f}."
        )
