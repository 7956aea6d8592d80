"""Releases, ledgers and sweeps for hours, with processes that are killed and start again.

    python -m benchmarks.audit.soak [--hours 2] [--processes 3] [--seed 0] [--folder FOLDER]

Three things go on at once, in processes of their own:

- a crowd of processes makes releases from one ledger, is killed at random (SIGKILL), and replaced; every ledger is
  examined as in `ledger_faults.py`: no charge is lost or spent twice, nothing is drawn without one;
- one process makes releases for all the time, of several mechanisms and ways: its memory, open files and threads are
  looked at every half second and must be flat to 1 % after a warm-up;
- `jaxgeodp sweep` is killed at random and called again until it is done: its files must be those of a sweep that
  nobody has killed, byte for byte.
"""

import argparse
import dataclasses
import os
import pathlib
import random
import select
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

from benchmarks.audit import ledger_faults
from benchmarks.audit.ledger_faults import EPSILON, PLENTY, Child, Count, plain_release, release_loop, tangent_release
from jaxgeodp import GeodesicBall, LaplaceMechanism, Ledger, Sphere, TangentLaplace

#: Seconds between two kills in the crowd, on average, and of one ledger.
BETWEEN_KILLS, ROUND = 2.0, 60.0
#: Of the time, which is not looked at; and how much more memory, files or threads may be in use at the end.
WARM_UP, FLAT = 0.25, 0.01
#: Kills of one sweep: after that it may end.
MOST_KILLS = 4
SWEEP = """manifold = "sphere"
size = 2
radius = 0.4
mechanisms = ["wrapped", "tangent"]
n = [10, 20, 40]
epsilon = [1.0]
replicates = 3000
seed = {seed}
"""


def steady_release():
    """Releases of several mechanisms and ways in turns, of records that are others each time."""
    ball = GeodesicBall(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.4)
    tangent, laplace = TangentLaplace(ball, EPSILON), LaplaceMechanism(ball, EPSILON)
    source, turns = np.random.default_rng(0), [0]

    def release(ledger):
        turns[0] += 1
        data = source.normal(size=(20, 3)) + np.array([0.0, 0.0, 3.0])
        if turns[0] % 3 == 0:
            return laplace.release(data, ledger)
        return tangent.release(data, ledger, numerics=("idealized", "grid")[turns[0] % 3 - 1])

    return release


# The crowd ---------------------------------------------------------------------------------------------------


class Crowd:
    """Processes on one ledger, some of which are killed and replaced.

    Args:
        folder: of the ledgers.
        works: what each process makes releases with.
        source: of random numbers.
    """

    def __init__(self, folder, works, source):
        self.folder, self.works, self.source = folder, works, source
        self.count, self.kills = Count("a crowd on one ledger, killed at random"), 0
        self.begin()

    def begin(self):
        """A new ledger."""
        self.path = self.folder / f"crowd-{self.count.trials}.db"
        Ledger(self.path, PLENTY)
        self.done, self.until = [], time.monotonic() + ROUND
        self.children = [Child(release_loop, self.path, make=work) for work in self.works]
        self.next_kill = time.monotonic()

    def tick(self):
        """Listen; and kill, or examine, if it is time."""
        listen(self.children)
        if time.monotonic() > self.next_kill:
            self.next_kill = time.monotonic() + self.source.expovariate(1.0 / BETWEEN_KILLS)
            place = self.source.randrange(len(self.children))
            if self.children[place].all("H"):
                self.done.append(self.children[place].kill())
                self.children[place] = Child(release_loop, self.path, make=self.works[place])
                self.kills += 1
        if time.monotonic() > self.until:
            self.end()
            self.begin()

    def end(self):
        """Kill all, and compare the ledger with what was told."""
        self.done += [child.kill() for child in self.children]
        for child in self.done:
            if child.all("E"):
                raise AssertionError(child.all("E"))
        ledger_faults.examine(self.count, self.path, self.done)
        self.count.trials += 1
        for file in self.folder.glob(f"{self.path.name}*"):
            file.unlink()


def listen(children):
    """Take what children have told, so that none waits until somebody does."""
    readers = {child.reader: child for child in children}
    ready, _, _ = select.select(list(readers), [], [], 0.0)
    for reader in ready:
        readers[reader].told += os.read(reader, 65536)


# The long-lived process ----------------------------------------------------------------------------------------


@dataclasses.dataclass
class Use:
    """What a process has in use, over time."""

    megabytes: list[float] = dataclasses.field(default_factory=list)
    files: list[int] = dataclasses.field(default_factory=list)
    threads: list[int] = dataclasses.field(default_factory=list)

    def look(self, process: int) -> None:
        """Once more."""
        place = pathlib.Path("/proc") / str(process)
        pages = int((place / "statm").read_text().split()[1])
        self.megabytes.append(pages * os.sysconf("SC_PAGE_SIZE") / 2**20)
        self.files.append(len(os.listdir(place / "fd")))
        self.threads.append(len(os.listdir(place / "task")))

    def growth(self, name: str) -> float:
        """How much more there is in the last tenth than in the first tenth after the warm-up, by medians."""
        numbers = getattr(self, name)
        numbers = numbers[int(WARM_UP * len(numbers)) :]
        tenth = max(1, len(numbers) // 10)
        first, last = statistics.median(numbers[:tenth]), statistics.median(numbers[-tenth:])
        return last / first - 1.0


class Steady:
    """A process that makes releases for all the time."""

    def __init__(self, folder, make=steady_release):
        self.path, self.use = folder / "steady.db", Use()
        self.count, self.next_look = Count("one process for all the time"), 0.0
        Ledger(self.path, PLENTY)
        self.child = Child(release_loop, self.path, make=make)

    def tick(self):
        """Listen and look."""
        listen([self.child])
        if self.child.told and time.monotonic() > self.next_look:
            self.next_look = time.monotonic() + 0.5
            self.use.look(self.child.pid)

    def end(self):
        """Kill it, and compare its ledger with what it has told."""
        self.child.kill()
        if self.child.all("E"):
            raise AssertionError(self.child.all("E"))
        ledger_faults.examine(self.count, self.path, [self.child])
        self.count.trials += 1


# Sweeps ----------------------------------------------------------------------------------------------------------


class Sweeps:
    """Sweeps, each by itself and then killed and resumed; one process at a time."""

    def __init__(self, folder, source):
        self.folder, self.source = folder, source
        self.done, self.kills, self.resumed, self.differing = 0, 0, 0, []
        self.seconds = float("inf")  # of a sweep that nobody kills and whose programs are kept
        self.begin()

    def begin(self):
        """The next sweep, uninterrupted."""
        self.own_kills, self.phase = 0, "alone"
        (self.folder / "sweep.toml").write_text(SWEEP.format(seed=self.done))
        self.start()

    def start(self):
        """A process of the command; where it is to be killed, when."""
        words = ["-m", "jaxgeodp", "sweep", str(self.folder / "sweep.toml"), "--out", str(self.folder / self.phase)]
        self.process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.started, self.kill_at = time.monotonic(), float("inf")
        if self.phase == "killed" and self.own_kills < MOST_KILLS:
            self.kill_at = self.started + self.source.uniform(0.3, 1.0) * self.seconds

    def tick(self):
        """Kill it if it is time; start what is next if it has ended."""
        if time.monotonic() > self.kill_at and self.process.poll() is None:
            self.stop()
            self.kills, self.own_kills = self.kills + 1, self.own_kills + 1
            self.start()
            self.resumed += 1
        elif self.process.poll() is not None:
            _, words = self.process.communicate()
            if self.process.returncode:
                raise AssertionError(words.decode())
            if self.phase == "alone":
                self.seconds, self.phase = min(self.seconds, time.monotonic() - self.started), "killed"
                self.start()
            else:
                self.compare()
                self.begin()

    def compare(self):
        """All files of both folders."""
        self.differing += differing(self.folder / "alone", self.folder / "killed")
        self.done += 1
        for name in ("alone", "killed"):
            os.rename(self.folder / name, self.folder / f"{name}-{self.done}")

    def stop(self):
        """Kill what is at work."""
        self.process.kill()
        self.process.communicate()

    end = stop


def differing(first: pathlib.Path, second: pathlib.Path) -> list[str]:
    """The files that only one of two folders holds, or that have other bytes."""
    one, other = (
        {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (first, second)
    )
    return [name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name)]


# All together ------------------------------------------------------------------------------------------------


def report(crowd: Crowd, steady: Steady, sweeps: Sweeps) -> tuple[str, bool]:
    """The tables, and whether all is as it must be."""
    lines = ["| releases | ledgers | kills | attempts | entries | charges lost | spent twice | drawn uncharged |"]
    lines.append("|---" * 8 + "|")
    right = not sweeps.differing
    for count, kills in ((crowd.count, crowd.kills), (steady.count, 0)):
        bad = count.charges_lost, count.spent_twice, count.drawn_uncharged + count.over_budget
        right = right and not any(bad)
        cells = (count.fault, count.trials, kills, count.attempts, count.entries, *bad)
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += ["", "| in use | after the warm-up | at the end | growth |", "|---|---|---|---|"]
    for name in ("megabytes", "files", "threads"):
        numbers, growth = getattr(steady.use, name), steady.use.growth(name)
        right = right and growth <= FLAT
        first = numbers[int(WARM_UP * len(numbers))]
        lines.append(f"| {name} | {first:.1f} | {numbers[-1]:.1f} | {growth:+.2%} |")
    files = "the same bytes" if not sweeps.differing else f"other bytes: {', '.join(sweeps.differing)}"
    lines += ["", f"{sweeps.done} sweeps, {sweeps.kills} kills, {sweeps.resumed} times resumed: {files}."]
    return "\n".join(lines), right


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--processes", type=int, default=3, help="of the crowd")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=pathlib.Path, default=None, help="where the ledgers and sweeps lie")
    options = parser.parse_args()
    if options.folder is not None:
        options.folder.mkdir(parents=True, exist_ok=True)
    end, next_words = time.monotonic() + 3600.0 * options.hours, 0.0
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder, source = pathlib.Path(name), random.Random(options.seed)
        works = [tangent_release if number % 2 else _plain for number in range(options.processes)]
        parts = [Crowd(folder, works, source), Steady(folder), Sweeps(folder, source)]
        try:
            while time.monotonic() < end:
                for part in parts:
                    part.tick()
                if time.monotonic() > next_words:
                    next_words = time.monotonic() + 30.0
                    told = f"{parts[0].count.entries} entries examined, {parts[0].kills} kills, {parts[2].done} sweeps"
                    print(f"{(end - time.monotonic()) / 60.0:.0f} minutes left: {told}", file=sys.stderr)
                time.sleep(0.02)
        finally:
            for part in parts:
                part.end()
        words, right = report(*parts)
    print(words)
    sys.exit(0 if right else 1)


def _plain():
    return plain_release


if __name__ == "__main__":
    main()
