"""A run of tests that can be stopped and gone on with: ``pytest --exhaustive --resume FILE``.

FILE has a line of JSON for each test that passed: its name, its seconds, and a digest of the code and versions it ran
with. The same call runs what has not passed with the code as it is now.
"""

import hashlib
import importlib.metadata
import json
import pathlib
import platform

import pytest

ROOT = pathlib.Path(__file__).parents[1]
FOLDERS = ("jaxgeodp", "tests", "benchmarks", "docs", "notebooks")


def digest_of_code() -> str:
    """Return a digest of all code and pages, and of the versions of Python, JAX and NumPy."""
    found = hashlib.sha256(platform.python_version().encode())
    for library in ("jax", "jaxlib", "numpy"):
        found.update(importlib.metadata.version(library).encode())
    paths = (
        path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".md", ".ipynb"}
    )
    for path in sorted(paths):
        found.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return found.hexdigest()[:16]


class Resumed:
    """Deselects tests that have passed before, and notes those that pass.

    The process that hands out tests reads and writes the file, and tells its workers once: all must collect the same.
    """

    def __init__(self, config: pytest.Config, path: pathlib.Path):
        self.path, self.failed, self.seconds = path, set(), {}
        told = getattr(config, "workerinput", None)
        self.writes = told is None
        if told is not None:
            self.passed = set(told["passed"])
            return
        self.digest = digest_of_code()
        lines = path.read_text().splitlines() if path.exists() else []
        notes = [json.loads(line) for line in lines if line.endswith("}")]
        self.earlier = {note["test"]: note["seconds"] for note in notes if note["digest"] == self.digest}
        self.passed = set(self.earlier)

    def pytest_configure_node(self, node) -> None:
        node.workerinput["passed"] = sorted(self.passed)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        done = [item for item in items if item.nodeid in self.passed]
        config.hook.pytest_deselected(items=done)
        items[:] = [item for item in items if item.nodeid not in self.passed]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not self.writes:
            return
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.add(report.nodeid)
        if report.when == "teardown" and report.nodeid not in self.failed:
            note = {"test": report.nodeid, "seconds": round(self.seconds[report.nodeid], 2), "digest": self.digest}
            with self.path.open("a") as file:
                file.write(json.dumps(note) + "\n")

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.passed:
            session.exitstatus = pytest.ExitCode.OK  # all have passed before

    def pytest_terminal_summary(self, terminalreporter) -> None:
        if not self.writes:
            return
        before, now = (sum(seconds.values()) / 60.0 for seconds in (self.earlier, self.seconds))
        passed = len(self.seconds) - len(self.failed)
        terminalreporter.write_line(
            f"{len(self.earlier)} tests had passed in {before:.1f} minutes; "
            f"{passed} passed and {len(self.failed)} failed now, in {now:.1f}."
        )
