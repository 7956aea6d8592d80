"""How long a person waits: imports, the first call of a command and later ones, against ``python -c "import jax"``.

    python -m benchmarks.measure.latency [--profile] [--quick]

Every call is a process of its own. The first call of a command finds an empty cache folder, later ones that of the
first. Calls take turns with ``import jax``; the least of the turns is printed, as wall time, as time of the processor
(which other jobs disturb less), and as ratio of wall times. ``--profile`` says where the seconds go, see `profiled.py`.
"""

import argparse
import compileall
import dataclasses
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

from benchmarks.tools.timing import print_machine, print_table

ROOT = pathlib.Path(__file__).parents[2]
PROFILED = ROOT / "benchmarks" / "tools" / "profiled.py"
RELEASE = ["release", "--epsilon", "1", "--overwrite", "--out", "release.json"]
LAPLACE = ["--mechanism", "laplace"]
MATRICES = ["spd.npy", "--manifold", "spd", "--center", "origin", "--radius", "1.5"]
PLAN = ["plan", "--manifold", "spd", "--size", "3", "--radius", "1.5", "--epsilon", "1", "--n"]
IMPORT_JAX = ["-c", "import jax"]
CHECK = "from jaxgeodp import Sphere; from jaxgeodp.testing import check_manifold; check_manifold(Sphere(2))"
COMMANDS = {
    "jaxgeodp --help": ["--help"],
    "jaxgeodp release, 1000 SPD(3)": [*RELEASE, *LAPLACE, *MATRICES],
    "... and the choice of the mechanism": [*RELEASE, *MATRICES],
    "jaxgeodp release, 200 shapes, k = 16": [
        *RELEASE, *LAPLACE, "shapes.npy", "--manifold", "shapes", "--radius", "0.3", "--center", "polygon.npy"
    ],
    "jaxgeodp plan, SPD(3)": [*PLAN, "200"],
    "jaxgeodp demo": ["demo"],
}  # fmt: skip
# Other sizes than the one whose programs are kept.
OTHER_SIZES = range(201, 300)


@dataclasses.dataclass(frozen=True)
class Cost:
    """Seconds of a process: on the clock, and of the processor, the system's work for it included."""

    wall: float
    processor: float


def write_data() -> None:
    """Invented records in the current folder: SPD(3) matrices, landmarks about a polygon, and that polygon."""
    rng = np.random.default_rng(0)
    roots = np.eye(3) + 0.2 * rng.normal(size=(1000, 3, 3))
    np.save("spd.npy", roots @ roots.transpose(0, 2, 1))
    angles = 2 * math.pi * np.arange(16) / 16
    polygon = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    np.save("polygon.npy", polygon)
    np.save("shapes.npy", polygon + 0.1 * rng.normal(size=(200, 16, 2)))


def cost(arguments: list[str], cache: pathlib.Path) -> Cost:
    """Of ``python ARGUMENTS`` with a folder for caches."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "JAXGEODP_"))}
    environment |= {"XDG_CACHE_HOME": str(cache)}
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"python {' '.join(arguments)} failed: {said}")
    return Cost(seconds, used.ru_utime + used.ru_stime)


def least(costs: list[Cost]) -> Cost:
    return Cost(min(one.wall for one in costs), min(one.processor for one in costs))


def first_and_later(arguments: list[str], caches: pathlib.Path, turns: int) -> tuple[list[Cost], list[Cost], Cost]:
    """First and later costs of a command, and the least cost of ``import jax`` between them."""
    first, later, jax_alone = [], [], []
    for _ in range(turns):
        cache = pathlib.Path(tempfile.mkdtemp(dir=caches))
        jax_alone.append(cost(IMPORT_JAX, cache))
        first.append(cost(arguments, cache))
        later.append(cost(arguments, cache))
    return first, later, least(jax_alone)


def row(name: str, first: list[Cost], later: list[Cost], jax_alone: Cost) -> list[str]:
    cells = [name]
    for costs in (first, later):
        found = least(costs) if costs else None
        cells += (
            [f"{found.wall:.2f} s", f"{found.processor:.2f} s", f"{found.wall / jax_alone.wall:.2f}x"]
            if found
            else ["-"] * 3
        )
    return cells


def measured(turns: int, commands: dict[str, list[str]], caches: pathlib.Path):
    """A row of the table after the other."""
    _, alone, jax_alone = first_and_later(IMPORT_JAX, caches, turns)
    yield row('python -c "import jax"', [], alone, jax_alone)
    yield row("import jaxgeodp", [], *first_and_later(["-c", "import jaxgeodp"], caches, turns)[1:])
    for name, arguments in commands.items():
        yield row(name, *first_and_later(["-m", "jaxgeodp", *arguments], caches, turns))
    if "jaxgeodp plan, SPD(3)" in commands:
        cache = pathlib.Path(tempfile.mkdtemp(dir=caches))
        cost(["-m", "jaxgeodp", *PLAN, "200"], cache)
        others = [cost(["-m", "jaxgeodp", *PLAN, str(n)], cache) for n in OTHER_SIZES[:turns]]
        yield row("jaxgeodp plan, another n", [], others, jax_alone)
        first, _, jax_alone = first_and_later(["-c", CHECK], caches, 1)
        yield row("check_manifold(Sphere(2))", first, [], jax_alone)


def profile(commands: dict[str, list[str]], caches: pathlib.Path):
    """Seconds by kind, of the first call of each command and of a later one."""
    for name, arguments in commands.items():
        cache = pathlib.Path(tempfile.mkdtemp(dir=caches))
        for which in ("first", "later"):
            cost([str(PROFILED), "seconds.json", *arguments], cache)
            found = json.loads(pathlib.Path("seconds.json").read_text())
            yield [name, which, *(f"{x:.2f} s" if isinstance(x, float) else str(x) for x in found.values())], found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", action="store_true", help="where the seconds of each command go")
    parser.add_argument("--quick", action="store_true", help="one turn, two commands: a test of the script")
    arguments = parser.parse_args()
    commands = dict(list(COMMANDS.items())[:2]) if arguments.quick else COMMANDS
    # As pip does when it installs: else each call compiles the whole package from its source.
    compileall.compile_dir(ROOT / "jaxgeodp", quiet=1)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    print_machine()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        write_data()
        caches = pathlib.Path(name) / "caches"
        caches.mkdir()
        if arguments.profile:
            rows, found = zip(*profile(commands, caches), strict=True)
            print_table("where the seconds go", ["", "call", *found[0]], list(rows))
        else:
            heads = [f"{call} {what}" for call in ("first", "later") for what in ("wall", "processor", "/ import jax")]
            print_table(
                "seconds until it is done", ["", *heads], list(measured(1 if arguments.quick else 3, commands, caches))
            )
        os.chdir(ROOT)


if __name__ == "__main__":
    main()
