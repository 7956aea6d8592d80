"""Mutation testing of the parts that guarantees rest on: small mistakes are planted, and tests must notice each.

    python -m benchmarks.audit.mutation [--minutes 60] [--processes 2] [--sample 20] [--only WORD] [--folder FOLDER]
    python -m benchmarks.audit.mutation --again        # first those that are left without a reason, by more tests

Of every file the first mutants of a random order (`mutants.py`) are tried, as many as ``--sample`` says; 10000 are all.
Those that earlier runs have tried are in ``mutants.json`` (`mutation_state.py`), which each run goes on with and writes
again: a whole round, of some 20,000 mutants, can be many runs. Each is tried in a copy of the project, by
the tests that run its line, those first that are done soonest; the first failure kills it. Which tests run which line
is measured once, by `coverage`, one context for each test, file of tests by file of tests.

Why not a library: cosmic-ray 8.7 starts a command for each mutant, which imports JAX and looks for tests each time,
has one command for all files, and changes the checkout; mutmut 3.8 leaves out what is not in a function and all
functions with decorators, which is most of what `jax.jit` and dataclasses touch. Neither removes a check, nor swaps
rounding up for rounding down. Here one process has imported JAX (not started it) and forks for every mutant, so that a
mutant takes 5 to 11 s; compiled programs come from where tests/conftest.py keeps them.

What was found stands in FOLDER/mutants-CODE.jsonl, too, a line a mutant, and the map of tests in FOLDER/tests.jsonl:
the same call goes on where it was killed, but that ``--again`` begins again. A file of tests that has changed is
measured again; where many lines of source have moved, take a new folder. `coverage` is needed (pip install -e
".[abuse]").
"""

import argparse
import ast
import compileall
import contextlib
import hashlib
import importlib
import itertools
import json
import os
import pathlib
import py_compile
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

import pytest

from benchmarks.audit import mutation_state
from benchmarks.audit.mutants import Mutant, mutants_of, sample
from benchmarks.tools.lines import add_row, rows_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
PARTS = tuple(f"jaxgeodp/{part}" for part in ("privacy", "bounds", "releases", "mechanisms", "locating"))
#: Seconds of tests, as measured once, that one mutant gets, and how many tests at most.
PATIENCE, MOST_TESTS = 40.0, 80
SEED = 0  #: of the order of mutants
#: Seconds in which tests of one file begin that are measured; and what a mutant gets beyond the time of its tests.
LONGEST, SPARE = 180.0, 30.0
#: What is left without a reason gets so many times as many tests.
FURTHER = 5
_LEFT_OUT = shutil.ignore_patterns(".git", "__pycache__", "*_cache", ".hypothesis", ".venv", "build", "dist")
# They start mutants or processes for minutes.
_NOT_RUN = ("test_abuse.py", "test_examples.py", "test_notebooks.py", "test_arena.py", "test_deadlock.py")
MOST_BYTES = 2**33


# Processes ---------------------------------------------------------------------------------------------------


class Child:
    """A forked process in a copy of the project, which leaves what it has found as JSON."""

    def __init__(self, copy: pathlib.Path, work: Callable[[], dict], seconds: float):
        self.copy, self.place, self.end = copy, copy / ".found.json", time.monotonic() + seconds
        self.place.unlink(missing_ok=True)
        sys.stdout.flush()
        self.process = os.fork()
        if self.process == 0:
            self._run(work)

    def _run(self, work):
        code = 1
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nothing, stream)
            os.chdir(self.copy)
            kept = self.copy / ".kept"
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir()
            os.environ |= {"XDG_CACHE_HOME": str(kept), "PYTHONPATH": str(self.copy)}
            sys.path.insert(0, str(self.copy))
            forget_what_it_has(self.copy)
            self.place.write_text(json.dumps(work()))
            code = 0
        finally:
            os._exit(code)

    def found(self) -> dict | None:
        """What it has left; None while it works."""
        done, _ = os.waitpid(self.process, os.WNOHANG)
        if not done and time.monotonic() < self.end:
            return None
        self.kill(bool(done))
        if not done:
            return {"outcome": "timed out"}
        return json.loads(self.place.read_text()) if self.place.exists() else {"outcome": "killed", "by": "the process"}

    def kill(self, done: bool = False) -> None:
        """End it, if it is not done, and what it has started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process, signal.SIGKILL)
        if not done:
            os.waitpid(self.process, 0)


@contextlib.contextmanager
def copied(root: pathlib.Path, number: int) -> Iterator[list[pathlib.Path]]:
    """Fresh copies of a project, with bytecode: to compile it is a third of what a mutant costs.

    Python compares a digest of each source with that in its bytecode: a planted mistake can have size and time of what
    it replaces.
    """
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        places = [pathlib.Path(folder) / f"copy-{k}" for k in range(number)]
        shutil.copytree(root, places[0], ignore=_LEFT_OUT, symlinks=True)
        compileall.compile_dir(places[0], quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        for place in places[1:]:
            shutil.copytree(places[0], place, symlinks=True)
        yield places


def forget_what_it_has(folder: pathlib.Path) -> None:
    """Forget all modules that a folder, or its tests, have too: they are imported anew, each from its own copy."""
    for name in list(sys.modules):
        own = name.partition(".")[0]
        if (folder / own / "__init__.py").exists() or (folder / "tests" / f"{own}.py").exists():
            del sys.modules[name]


def import_what_tests_import() -> None:
    """Once for all forks, with the settings of the tests; JAX is not started."""
    kept = list(sys.path)
    sys.path.insert(0, str(ROOT / "tests"))
    importlib.import_module("conftest")
    shutil.rmtree(os.environ["XDG_CACHE_HOME"])  # each fork has its own
    os.environ["PYTEST_XDIST_WORKER"] = "mutation"  # the conftest of a copy inherits these settings
    for name in ("coverage", "hypothesis", "numpyro", "optax", "pyarrow.parquet", "scipy.special", "scipy.stats"):
        importlib.import_module(name)
    sys.path[:] = kept


class Job(NamedTuple):
    """What a process does in a copy."""

    key: Any
    work: Callable[[], dict]
    seconds: float  #: at most
    prepare: Callable[[pathlib.Path], Callable[[], object]] = lambda copy: lambda: None  #: returns what undoes it


# Tests in a process ------------------------------------------------------------------------------------------


class Chosen:
    """A plugin of pytest: runs these tests in this order, and notes what fails first and how long each takes.

    Args:
        order: names of tests; None for all.
        begin: told the name of each test.
        seconds: no test begins after them.
    """

    def __init__(
        self,
        order: list[str] | None = None,
        begin: Callable[[str], object] = lambda name: None,
        seconds: float = float("inf"),
    ):
        self.order, self.begin, self.end = order, begin, time.monotonic() + seconds
        self.failed: list[str] = []
        self.passed: dict[str, float] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, session, config, items):
        self.session = session
        if self.order is not None:
            known = {item.nodeid: item for item in items}
            items[:] = [known[name] for name in self.order if name in known]

    def pytest_runtest_logstart(self, nodeid, location):
        self.begin(nodeid)

    def pytest_runtest_logfinish(self, nodeid, location):
        if time.monotonic() > self.end:
            self.session.shouldstop = "the time is over"

    def pytest_collectreport(self, report):
        if report.failed:
            self.failed.append(report.nodeid or "import")

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.append(report.nodeid)
        elif report.when == "call" and report.passed:
            self.passed[report.nodeid] = report.duration


def run_tests(files: Iterable[str], plugin: Chosen, *options: str) -> None:
    """In this process, without caches and without other processes."""
    pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *options, *files], plugins=[plugin])


def tried(tests: list[str]) -> dict:
    """What becomes of the mutant that this copy holds."""
    plugin = Chosen(tests)
    run_tests(dict.fromkeys(test.split("::")[0] for test in tests), plugin, "-x")
    if plugin.failed:
        return {"outcome": "killed", "by": plugin.failed[0]}
    return {"outcome": "survived", "tests": len(plugin.passed)}


def measured(file: str, parts: tuple[str, ...]) -> dict:
    """Which tests of a file pass, how long each takes, and which lines each runs, as far as time allows."""
    import coverage

    here = pathlib.Path.cwd()
    watch = coverage.Coverage(data_file=None, config_file=False, include=[f"{here}/{part}/*" for part in parts])
    plugin = Chosen(None, watch.switch_context, LONGEST)
    watch.start()
    run_tests([file], plugin)
    watch.stop()
    data, lines = watch.get_data(), {}
    for path in data.measured_files():
        own = {line: [name for name in names if name] for line, names in data.contexts_by_lineno(path).items()}
        lines[str(pathlib.Path(path).relative_to(here))] = {line: names for line, names in own.items() if names}
    good = {name: seconds for name, seconds in plugin.passed.items() if name not in plugin.failed}
    return {"seconds": good, "lines": lines, "failed": plugin.failed}


# The map of tests --------------------------------------------------------------------------------------------


def files_of_tests(root: pathlib.Path, near_to: Iterable[str]) -> list[str]:
    """Those first that import most from these parts."""
    modules, weights = [part.replace("/", ".") for part in near_to], {}
    for path in sorted((root / "tests").rglob("test_*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
        near = [len(node.names) for node in imports if any(node.module.startswith(module) for module in modules)]
        if path.name not in _NOT_RUN:
            weights[path.relative_to(root).as_posix()] = sum(near)
    return sorted(weights, key=lambda name: -weights[name])


class Tests:
    """Which tests run which lines, from the lines of tests.jsonl."""

    def __init__(self, rows: list[dict]):
        self.seconds = {name: taken for row in rows for name, taken in row["seconds"].items()}
        self.lines: dict[tuple[str, int], set[str]] = {}
        self.files: dict[str, set[str]] = {}
        for file, lines in (item for row in rows for item in row["lines"].items()):
            for line, names in lines.items():
                good = {name for name in names if name in self.seconds}
                self.lines.setdefault((file, int(line)), set()).update(good)
                self.files.setdefault(file, set()).update(good)

    def of(self, mutant: Mutant, times: int = 1) -> list[str]:
        """The tests of a mutant, within so many times `PATIENCE`: those that run its statement; then others of the same
        files of tests that run its file, as what JAX has traced once in a process runs no line again.

        What stands outside of functions is run when it is imported, for all tests that run the file.
        """
        beside = self.files.get(mutant.file, set())
        runs = {t for line in range(mutant.first, mutant.last + 1) for t in self.lines.get((mutant.file, line), ())}
        if mutant.first:
            files = {name.split("::")[0] for name in runs}
            beside = {name for name in beside if name.split("::")[0] in files}
        order = sorted(runs, key=self.seconds.__getitem__) + sorted(beside - runs, key=self.seconds.__getitem__)
        taken, most = itertools.accumulate(self.seconds[name] for name in order), times * PATIENCE
        chosen = [t for t, until in zip(order, taken, strict=True) if until <= most or t == order[0]]
        return chosen[: times * MOST_TESTS]

    def limit(self, tests: list[str]) -> float:
        """Seconds after which a mutant has hung."""
        return SPARE + 2.0 * sum(self.seconds[name] for name in tests)


# Work --------------------------------------------------------------------------------------------------------


def last_rows(path: pathlib.Path) -> list[dict]:
    """Of each mutant what was found last."""
    return list({row["name"]: row for row in rows_of(path)}.values())


def in_processes(jobs: Iterable[Job], copies: list[pathlib.Path], end: float, note: Callable[..., object]) -> None:
    """Run jobs in free copies until the time is over; ``note(key, found, seconds)`` of each that has ended."""
    free, at_work, waiting = list(copies), [], list(jobs)
    try:
        while at_work or (waiting and time.monotonic() < end):
            while free and waiting and time.monotonic() < end:
                job, copy = waiting.pop(0), free.pop()
                undo, start = job.prepare(copy), time.monotonic()
                at_work.append((job, Child(copy, job.work, min(job.seconds, end - start)), undo, start))
            for entry in list(at_work):
                job, child, undo, start = entry
                if (found := child.found()) is not None:
                    undo()
                    at_work.remove(entry)
                    free.append(child.copy)
                    # What was stopped because the time is over has no outcome.
                    if found.get("outcome") != "timed out" or time.monotonic() < end:
                        note(job.key, found, time.monotonic() - start)
            time.sleep(0.02)
    finally:
        for _, child, _, _ in at_work:
            child.kill()


def planted(mutant: Mutant) -> Callable[[pathlib.Path], Callable[[], object]]:
    """Puts it into a copy; what that returns takes it out again."""

    def prepare(copy):
        path = copy / mutant.file
        content = path.read_bytes()
        path.write_bytes(mutant.applied(content))
        return lambda: path.write_bytes(content)

    return prepare


def measure_all(path: pathlib.Path, root: pathlib.Path, near_to: Iterable[str], copies, end: float) -> Tests:
    """The map of tests, as far as it is not there yet, beginning with those near to these parts."""
    files = files_of_tests(root, near_to)
    codes = {file: hashlib.sha256((root / file).read_bytes()).hexdigest()[:16] for file in files}

    def note(file, found, seconds):
        if "seconds" not in found:
            found = {"seconds": {}, "lines": {}, "failed": [found["outcome"]]}
        add_row(path, {"file": file, "code": codes[file], "taken": seconds, **found})
        print(f"{file}: {len(found['seconds'])} tests, {seconds:.0f} s", file=sys.stderr)

    def rows():
        return {row["file"]: row for row in rows_of(path) if row.get("code") == codes.get(row["file"])}

    known = rows()
    jobs = [Job(file, lambda f=file: measured(f, PARTS), 3.0 * LONGEST) for file in files if file not in known]
    in_processes(jobs, copies, end, note)
    return Tests(list(rows().values()))


def try_all(
    path: pathlib.Path,
    chosen: dict[str, list[Mutant]],
    tests: Tests,
    copies,
    end: float,
    again: Collection[str] = (),
) -> None:
    """All mutants that have not been tried, and those named in ``again``, the files in turns."""
    known = {row["name"]: row for row in rows_of(path) if row["name"] not in again}
    turns = itertools.zip_longest(*chosen.values())
    mutants = [mutant for turn in turns for mutant in turn if mutant is not None]
    given = {mutant: tests.of(mutant, FURTHER if mutant.name in again else 1) for mutant in mutants}
    # More tests may be measured than when a mutant survived.
    left = [m for m, own in given.items() if m.name not in known or known[m.name].get("given") not in (None, len(own))]
    done = itertools.count(1)

    def note(mutant, found, seconds):
        noticed = found["outcome"] in ("killed", "timed out")
        row = {**mutant._asdict(), **found, "given": None if noticed else len(given[mutant])}
        add_row(path, {"name": mutant.name, "seconds": round(seconds, 2), **row})
        print(f"{next(done)}/{len(left)} {found['outcome']}: {mutant.name}", file=sys.stderr)

    jobs = []
    for mutant in left:
        own = given[mutant]
        work = (lambda own=own: tried(own)) if own else (lambda: {"outcome": "no test"})
        jobs.append(Job(mutant, work, tests.limit(own), planted(mutant)))
    in_processes(jobs, copies, end, note)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="in all, of which the map of tests gets half")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--sample", type=int, default=20, help="mutants of each file")
    parser.add_argument("--only", default="", help="files whose path holds this word")
    parser.add_argument("--again", action="store_true", help="first what is left without a reason")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("mutation"))
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    folder = options.folder.resolve()
    files = sorted(path for part in PARTS for path in (ROOT / part).rglob("*.py") if options.only in str(path))
    names = [str(path.relative_to(ROOT)) for path in files]
    sources = {name: (ROOT / name).read_bytes() for name in names}
    orders = {name: sample(name, source, len(mutants_of(name, source)), SEED) for name, source in sources.items()}
    kept = mutation_state.read(mutation_state.PATH)
    state = {name: mutation_state.of_file(kept, name, sources[name], len(own)) for name, own in orders.items()}
    again = mutation_state.unexplained(state) if options.again else set()
    chosen = {
        name: [own for own in order if own.name in again] + order[state[name]["tried"] : options.sample]
        for name, order in orders.items()
    }
    found = folder / f"mutants-{mutation_state.code_of(b''.join(sources.values()))}.jsonl"  # of this code alone
    begin = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # with what it has started
    import_what_tests_import()
    with copied(ROOT, options.processes) as copies:
        near_to = sorted({"/".join(name.split("/")[:2]) for name in names})
        tests = measure_all(folder / "tests.jsonl", ROOT, near_to, copies, begin + 30.0 * options.minutes)
        try_all(found, chosen, tests, copies, begin + 60.0 * options.minutes, again)
    outcomes = {row["name"]: row["outcome"] for row in last_rows(found)}
    state = {name: mutation_state.gone_on(state[name], own, outcomes) for name, own in orders.items()}
    # Another run may have written of other files; files that are gone do not count.
    state = {
        name: own for name, own in (mutation_state.read(mutation_state.PATH) | state).items() if (ROOT / name).exists()
    }
    mutation_state.write(mutation_state.PATH, state)
    print("\n".join([mutation_state.table(state), "", *sorted(mutation_state.unexplained(state))]))


if __name__ == "__main__":
    main()
