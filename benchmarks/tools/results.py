"""All numbers of benchmarks/README.md: each script's tables go into results/NAME.json, from which README is made.

    python -m benchmarks.tools.results run [NAME ...]  # all: 30 minutes of an idle machine; peers needs its extra
    python -m benchmarks.tools.results render          # README's tables from the files, after a change of code, too

A file says what its tables were measured on: commit, machine, versions, seconds, and a digest of the code that ran. For
the digest a small run of the script (``--quick``) is watched: the files of the package and of this folder in which a
function was called. What is no code (docstrings, comments, empty lines) is left out. When that code has changed,
``render`` says so above the tables, and a test asks for it.
"""

import argparse
import ast
import dataclasses
import datetime
import functools
import hashlib
import importlib
import importlib.metadata
import inspect
import io
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
import tokenize
from collections.abc import Iterable, Sequence

from benchmarks.tools import timing

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"
README = FOLDER / "README.md"
RESULTS = FOLDER / "results"
LIBRARIES = ("jax", "jaxlib", "numpy")
STALE = "**The code that this measures has changed since.**"


@dataclasses.dataclass(frozen=True)
class Script:
    """A benchmark: its folder, its runs (each a list of arguments), and libraries that it compares with."""

    name: str
    folder: str = "compare"
    runs: tuple[tuple[str, ...], ...] = ((),)
    libraries: tuple[str, ...] = ()
    # Its work is done by processes of its own: all code of the package may have run, and this beside the script.
    processes: bool = False
    beside: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        return f"benchmarks.{self.folder}.{self.name}"

    @property
    def path(self) -> str:
        return f"benchmarks/{self.folder}/{self.name}.py"


SCRIPTS = {
    script.name: script
    for script in (
        Script("means"),
        Script("latency", "measure", ((), ("--profile",)), processes=True),
        Script("draws"),
        Script("kernels", libraries=("jaxlie",)),
        Script("first_calls", processes=True),
        Script(
            "peers",
            libraries=("pyriemann", "torch", "geomstats", "morphomatics", "geoopt", "pymanopt"),
            processes=True,
            beside=("peers_libraries", "means"),
        ),
        Script("derivatives"),
        Script("errors", "measure", (("--out", "docs/errors.png"),)),
        Script("metrics", "measure"),
        Script("scale", "measure", processes=True),
        Script("curves", libraries=("scikit-fda",)),
    )
}


# What was measured.


def code_of(text: str) -> str:
    """A file's lines without docstrings and comments on lines of their own, and without empty lines."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str:
                end = first.end_lineno or first.lineno
                alone = not lines[first.lineno - 1][: first.col_offset].strip()
                if alone and not lines[end - 1][first.end_col_offset :].strip():
                    lines[first.lineno - 1 : end] = [""] * (end - first.lineno + 1)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
            lines[token.start[0] - 1] = ""
    return "\n".join(line for line in lines if line.strip())


def digest(files: Iterable[str], root: pathlib.Path = ROOT) -> str:
    """Of the code in files, named from ``root``; a file that is gone counts as empty."""
    found = hashlib.sha256()
    for name in sorted(files):
        path = root / name
        found.update(f"{name}\n{code_of(path.read_text()) if path.exists() else ''}\n".encode())
    return found.hexdigest()[:16]


def files_of(script: Script) -> list[str]:
    """The files whose functions a small run calls."""
    if script.processes:
        package = (str(path.relative_to(ROOT)) for path in ROOT.glob("jaxgeodp/**/*.py"))
        beside = (f"benchmarks/{script.folder}/{name}.py" for name in script.beside)
        return sorted([*package, script.path, *beside, "benchmarks/tools/profiled.py", "benchmarks/tools/timing.py"])
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "files.json"
        command = [sys.executable, "-m", "benchmarks.tools.results", "watch", script.name, str(out)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=folder, env=_environment())
        return json.loads(out.read_text())


def watch(script: Script, out: pathlib.Path) -> None:
    """Run a script with ``--quick`` and write the names of the files in which functions were called."""
    called = set()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # neither a module nor a class' body
            called.add(frame.f_code.co_filename)

    sys.argv = [script.path, "--quick"]
    module = importlib.import_module(script.module)  # what imports call is no part of what is measured
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        module.main()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    paths = (pathlib.Path(name) for name in called)
    own = {str(path.relative_to(ROOT)) for path in paths if path.is_relative_to(ROOT) and path.suffix == ".py"}
    out.write_text(json.dumps(sorted(own - {"benchmarks/tools/results.py"})))


# Runs.


def run(script: Script, load: float) -> dict:
    """All tables of a script, with what they were measured on. Raises SystemExit if it fails."""
    start, tables = time.perf_counter(), []
    for arguments in script.runs:
        command = [sys.executable, "-m", script.module, *arguments]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=_environment())
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line)
            print(line, end="", flush=True)
        if process.wait():
            raise SystemExit(f"{script.name}.py ended with exit code {process.returncode}.")
        tables += tables_in("".join(said))
    seconds = time.perf_counter() - start
    files = files_of(script)
    return {
        "command": [f"python -m {script.module} {' '.join(arguments)}".strip() for arguments in script.runs],
        "commit": _git("rev-parse", "--short", "HEAD"),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}",
        "load": round(load, 1),
        "versions": dict(_versions((*LIBRARIES, *script.libraries))),
        "seconds": round(seconds),
        "digest": digest(files),
        "measured": files,
        "tables": tables,
    }


def tables_in(text: str) -> list[dict]:
    """Markdown's tables in what a script printed, each with the line above it."""
    found, title, rows = [], "", []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
            continue
        if len(rows) > 2:
            found.append({"title": title, "header": rows[0], "rows": rows[2:]})
            title = ""
        rows, title = [], line.strip() or title
    return found


# README.


def rendered(found: dict, root: pathlib.Path = ROOT) -> str:
    """A file's tables in Markdown, with a line above them that says what they were measured on."""
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    line = f"Commit {found['commit']}, {found['date']}: {found['machine']}, {versions}; {found['seconds']:,} s."
    if found["load"] > 0.5:
        line += f" Load {found['load']} when it began."
    if digest(found["measured"], root) != found["digest"]:
        line += f" {STALE}"
    return "\n\n".join([line, *map(_markdown, found["tables"])])


def with_tables(text: str, results: dict[str, dict], root: pathlib.Path = ROOT) -> str:
    """A page with the tables of all results between their marks, ``<!-- NAME -->`` and ``<!-- /NAME -->``."""
    return marked(text, {name: rendered(found, root) for name, found in results.items()})


def marked(text: str, bodies: dict[str, str]) -> str:
    """A page with these texts between the marks of their names."""
    for name, body in bodies.items():
        mark = re.compile(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        if len(mark.findall(text)) != 1:
            raise SystemExit(f"The page has no single place for {name}: <!-- {name} --> ... <!-- /{name} -->.")
        text = mark.sub(lambda match, body=body: f"{match[1]}{body}\n{match[2]}", text)
    return text


def saved() -> dict[str, dict]:
    """All results that were kept, by name of the script."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}


def _markdown(table):
    lines = [f"| {' | '.join(row)} |" for row in (table["header"], ["---"] * len(table["header"]), *table["rows"])]
    return "\n".join([table["title"], "", *lines] if table["title"] else lines)


def _versions(names: Sequence[str]):
    for name in names:
        try:
            yield name, importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue


def _git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


@functools.cache
def _environment():
    """That of the timed scripts, which then need not start anew; the package is that of this folder."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, **timing.ENVIRONMENT, "PYTHONPATH": path}


def main():
    """Run what is asked for, or write README."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run").add_argument("names", nargs="*", metavar="NAME", help=", ".join(SCRIPTS))
    commands.add_parser("render")
    watched = commands.add_parser("watch")
    watched.add_argument("name", choices=SCRIPTS)
    watched.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.command == "watch":
        return watch(SCRIPTS[arguments.name], arguments.out)
    if arguments.command == "run":
        unknown = sorted(set(arguments.names) - set(SCRIPTS))
        if unknown:
            raise SystemExit(f"No such benchmark: {', '.join(unknown)}. There are {', '.join(SCRIPTS)}.")
        if _git("status", "--porcelain", "--", ".", ":!benchmarks/results", ":!benchmarks/README.md"):
            raise SystemExit("Commit first: numbers are of a commit.")
        RESULTS.mkdir(exist_ok=True)
        load = os.getloadavg()[0]
        for name in arguments.names or SCRIPTS:
            found = run(SCRIPTS[name], load)
            (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    README.write_text(with_tables(README.read_text(), saved()))


if __name__ == "__main__":
    main()
