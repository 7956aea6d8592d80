"""Faults that a ledger must survive: what is lost, what is spent twice, what is drawn without a charge.

    python -m benchmarks.audit.ledger_faults [--json]

Children are forked, release in a loop, and tell through a pipe what they do: B before a release, D when entropy is
read, H with the hash of the record once the release is in the caller's hands. Whatever happens to them,

    attempts (B) >= entries >= draws (D), every H is an entry's hash, and the entries add up to what is spent

must hold in the file. Prints one table; ``--json`` for machines. Mounting small disks needs root, else those rows are
left out.
"""

import argparse
import collections
import contextlib
import dataclasses
import fractions
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # forked: no threads
import numpy as np

from jaxgeodp import Euclidean, GeodesicBall, TangentLaplace
from jaxgeodp.privacy import Ledger, PureDP, record_digest
from jaxgeodp.privacy.ledger import contents
from jaxgeodp.privacy.ledger_file import APPLICATION
from jaxgeodp.privacy.release import Draft, make_release

EPSILON = 0.1
PLENTY = PureDP(1e6)
PROCESSES = 8


@dataclasses.dataclass
class Count:
    """One row of the table."""

    fault: str
    trials: int = 0
    attempts: int = 0
    entries: int = 0
    handed: int = 0
    charges_lost: int = 0
    spent_twice: int = 0
    drawn_uncharged: int = 0
    over_budget: int = 0
    releases_lost: int = 0
    note: str = ""


# Children ------------------------------------------------------------------------------------------------


def tell(pipe, *words):
    os.write(pipe, (" ".join(words) + "\n").encode())


def plain_release(ledger):
    """The path of every mechanism, around noise that needs no compiler."""

    def draw():
        return np.frombuffer(os.urandom(32), dtype=np.uint32) / 2.0**32, draft

    draft = Draft(draw, 0.0, PureDP(EPSILON), "none", {"mechanism": "noise", "n": 2}, "")
    return make_release(draft, ledger)


def tangent_release():
    mechanism, data = TangentLaplace(GeodesicBall(Euclidean(1), [0.0], 1.0), EPSILON), np.zeros((4, 1))
    mechanism.release(data)  # compiled
    return lambda ledger: mechanism.release(data, ledger)


def release_loop(path, pipe, count=None, before=None, make=lambda: plain_release):
    """Releases until killed, refused or done; ``make()`` gives the release, a function of the ledger."""
    release, genuine, told = make(), os.urandom, []
    ledger = Ledger(path)

    def urandom(size):
        if not told:  # once for each release
            told.append(True)
            tell(pipe, "D")
        return genuine(size)

    os.urandom = urandom
    if before is not None:
        before()
    while count is None or count > 0:
        tell(pipe, "B")
        told.clear()
        tell(pipe, "H", record_digest(release(ledger).record))
        count = None if count is None else count - 1


def charge_loop(path, pipe):
    """Charges and settles until nothing is left."""
    ledger, drawn = Ledger(path), 0
    while True:
        tell(pipe, "B")
        entry = ledger.charge(PureDP(EPSILON), "hammer")
        tell(pipe, "D")
        drawn += 1
        name = f"{os.getpid():032x}{drawn:032x}"
        ledger.settle(entry, name)
        tell(pipe, "H", name)


def create_loop(folder, pipe):
    for number in range(10_000):
        tell(pipe, "B")
        Ledger(folder / f"{number}.db", PureDP(1.0))
        tell(pipe, "H", str(number))


class Child:
    """A forked process and what it has told."""

    def __init__(self, work, *arguments, **options):
        reader, writer = os.pipe()
        self.reader, self.told = reader, b""
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reader)
            try:
                work(*arguments, writer, **options)
            except BaseException as error:
                words = str(error) if isinstance(error, OSError | ValueError) else traceback.format_exc()
                tell(writer, "E", type(error).__name__, " ".join(words.split()))
            os._exit(0)
        os.close(writer)

    def wait_until(self, mark):
        while not any(line.startswith(mark) for line in self.lines()):
            chunk = os.read(self.reader, 65536)
            if not chunk:
                return
            self.told += chunk

    def finish(self):
        while chunk := os.read(self.reader, 65536):
            self.told += chunk
        os.close(self.reader)
        os.waitpid(self.pid, 0)
        return self

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        return self.finish()

    def lines(self):
        return self.told.decode().split("\n")[:-1]

    def all(self, mark):
        return [line.partition(" ")[2] for line in self.lines() if line.split(" ")[0] == mark]


# What must hold ------------------------------------------------------------------------------------------


def examine(count, path, children, earlier=()):
    """Compare a ledger with what the children have told."""
    accounts, entries = contents(path)
    attempts, draws = (sum(len(child.all(mark)) for child in children) for mark in "BD")
    handed = [digest for child in children for digest in child.all("H")]
    hashes = collections.Counter(entry["record"] for entry in entries if entry["record"])
    new = len(entries) - len(earlier)
    count.attempts += attempts
    count.entries += new
    count.handed += len(handed)
    count.charges_lost += sum(hashes[digest] == 0 for digest in handed)
    count.spent_twice += max(0, new - attempts) + sum(times - 1 for times in hashes.values())
    count.drawn_uncharged += max(0, draws - new)
    count.releases_lost += sum(entry["record"] is None for entry in entries[len(earlier) :])
    for account in accounts:
        own = [entry for entry in entries if entry["dataset"] == account.dataset]
        spent = sum((fractions.Fraction(str(entry["charged"]["epsilon"])) for entry in own), fractions.Fraction(0))
        right = account.releases == len(own) and fractions.Fraction(str(account.spent["epsilon"])) == spent
        count.over_budget += not right or spent > fractions.Fraction(str(account.budget.epsilon))
    return entries


def refused(child):
    """The words of a child that stopped by an error, which must be one of ours."""
    errors = child.all("E")
    if errors and not errors[0].startswith(("OSError", "PermissionError", "InputError", "BlockingIOError")):
        raise AssertionError(f"an error that is none of ours: {errors[0]}")
    return errors[0] if errors else None


# Faults --------------------------------------------------------------------------------------------------


def kills(folder, trials, compiled):
    title = "SIGKILL in a loop of releases" + (" of TangentLaplace" if compiled else "")
    count, path = Count(title), folder / f"kills-{compiled}.db"
    Ledger(path, PLENTY)
    phases, entries = collections.Counter(), []
    for _ in range(trials):
        child = Child(release_loop, path, make=tangent_release if compiled else lambda: plain_release)
        child.wait_until("H")
        time.sleep(random.uniform(0.0, 0.1))
        child.kill()
        phases[child.lines()[-1][0]] += 1
        entries = examine(count, path, [child], entries)
        count.trials += 1
    names = {"B": "before or while charging", "D": "while drawing or noting the hash", "H": "between releases"}
    count.note = "killed " + ", ".join(f"{phases[mark]} {name}" for mark, name in names.items())
    return count


def hammer(folder, trials, killing):
    title = f"{PROCESSES} processes on one ledger" + (", killed at random and replaced" if killing else "")
    count, refusals = Count(title), 0
    for trial in range(trials):
        path = folder / f"hammer-{killing}-{trial}.db"
        Ledger(path, PureDP(40.0))
        children = [Child(charge_loop, path) for _ in range(PROCESSES)]
        done = []
        for _ in range(4 * PROCESSES if killing else 0):
            time.sleep(random.uniform(0.0, 0.03))
            done.append(children.pop(random.randrange(PROCESSES)).kill())
            children.append(Child(charge_loop, path))
        done += [child.finish() for child in children]
        words = [refused(child) for child in done]
        refusals += sum(word is not None and "epsilon = 0.0 left" in word for word in words)
        if any(word and "left of its budget" not in word for word in words):
            raise AssertionError(words)
        entries = examine(count, path, done)
        if len(entries) != 400:
            raise AssertionError(f"{len(entries)} entries, not 400")
        count.trials += 1
    count.note = f"400 entries each time, {refusals} processes refused"
    return count


def creation(folder, trials):
    count, left = Count("SIGKILL while ledgers are created"), 0
    for trial in range(trials):
        place = folder / f"creation-{trial}"
        place.mkdir()
        child = Child(create_loop, place)
        child.wait_until("H")
        time.sleep(random.uniform(0.0, 0.05))
        child.kill()
        files = list(place.glob("*.db"))
        for file in files:
            if Ledger(file).budget != PureDP(1.0):
                raise AssertionError(file)
        count.charges_lost += len({f"{name}.db" for name in child.all("H")} - {file.name for file in files})
        count.attempts += len(child.all("B"))
        left += sum(1 for _ in place.glob(".part-*[!ml]"))
        count.trials += 1
        shutil.rmtree(place)
    count.note = f"every file whole or absent; {left} temporary files left behind"
    return count


def race(folder, trials):
    count = Count(f"{PROCESSES} processes create one ledger")
    for trial in range(trials):
        path = folder / f"race-{trial}.db"
        children = [Child(lambda pipe, path=path: Ledger(path, PureDP(1.0))) for _ in range(PROCESSES)]
        words = [refused(child.finish()) for child in children]
        if any(words) or [account.budget for account in contents(path)[0]] != [PureDP(1.0)]:
            raise AssertionError(words)
        count.trials += 1
    return count


def size_limits(folder, trials):
    """Files may not grow beyond a limit: writes fail half-way, at every possible place."""
    count, failures = Count("writes fail at a random file size"), collections.Counter()
    for trial in range(trials):
        path = folder / f"limit-{trial}.db"
        Ledger(path, PLENTY)
        limit = random.randrange(0, 45_000)

        def before(limit=limit):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

        first = Child(release_loop, path, count=100, before=before).finish()
        failures[(refused(first) or "none").split(";")[0].split("] ")[-1]] += 1
        entries = examine(count, path, [first])
        second = Child(release_loop, path, count=2).finish()
        if refused(second):
            raise AssertionError(second.all("E"))
        examine(count, path, [second], entries)
        count.trials += 1
    count.note = "; ".join(f"{times} x {words}" for words, times in failures.most_common())
    return count


@contextlib.contextmanager
def small_disk(folder, kilobytes):
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def full_disk(folder, trials):
    count, full = Count("full disk (tmpfs of 256 kB)"), 0
    for _ in range(trials):
        with small_disk(folder / "disk", 256) as disk:
            path, filler = disk / "b.db", disk / "filler"
            Ledger(path, PLENTY)
            with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as stream:
                room = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize - 4096 * random.randrange(0, 40)
                stream.write(bytes(max(0, room)))
            first = Child(release_loop, path, count=1500).finish()
            full += "disk is full" in (refused(first) or "")
            filler.unlink()
            entries = examine(count, path, [first])
            second = Child(release_loop, path, count=2).finish()
            if refused(second):
                raise AssertionError(second.all("E"))
            examine(count, path, [second], entries)
            count.trials += 1
    count.note = f"{full} x the disk is full; all went on when there was room"
    return count


def read_only(folder, trials):
    count, words = Count("read-only disk"), collections.Counter()
    for _ in range(trials):
        with small_disk(folder / "disk", 1024) as disk:
            path = disk / "b.db"
            Ledger(path, PLENTY)
            entries = examine(count, path, [Child(release_loop, path, count=2).finish()])
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
            child = Child(release_loop, path, count=2).finish()
            words[(refused(child) or "none").split(";")[0].split("] ")[-1]] += 1
            examine(count, path, [child], entries)
            count.trials += 1
    count.note = "; ".join(f"{times} x {what}" for what, times in words.items())
    return count


def cut(folder, trials):
    """A ledger of several hundred entries, cut short at every page and at random lengths."""
    whole = folder / "whole.db"
    ledger = Ledger(whole, PLENTY)
    for _ in range(300):
        ledger.charge(PureDP(EPSILON), "cut")
    content = whole.read_bytes()
    lengths = {*range(0, len(content), 512), *(random.randrange(len(content)) for _ in range(trials))}
    return spoiled(folder, "file cut short", [content[:length] for length in sorted(lengths)])


def foreign(folder, trials):
    import sqlite3

    other = folder / "other.db"
    with contextlib.closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE budgets (dataset TEXT)")
    disguised = folder / "disguised.db"
    with contextlib.closing(sqlite3.connect(disguised)) as connection:
        connection.execute(f"PRAGMA application_id={APPLICATION}")
        connection.execute("PRAGMA user_version=1")
        connection.execute("CREATE TABLE budgets (dataset TEXT)")
    files = [
        other.read_bytes(),
        disguised.read_bytes(),
        b"",
        b"\0" * 8192,
        b"epsilon,delta\n1,0\n",
        b"SQLite format 3\0",
    ]
    files += [
        b"SQLite format 3\0" + random.randbytes(8192),
        *(random.randbytes(random.randrange(1, 20_000)) for _ in range(trials)),
    ]
    return spoiled(folder, "foreign file", files)


def spoiled(folder, title, contents_of_files):
    count, kinds = Count(title), collections.Counter()
    for content in contents_of_files:
        path = folder / "spoiled.db"
        path.write_bytes(content)
        for attempt, arguments in ((Ledger, (path,)), (Ledger, (path, PLENTY)), (contents, (path,))):
            try:
                attempt(*arguments)
                count.charges_lost += 1  # a file that lacks some was taken for a ledger
            except (ValueError, OSError) as error:
                kinds[type(error).__name__] += 1
        count.charges_lost += path.read_bytes() != content
        count.trials += 1
        for file in folder.glob("spoiled.db*"):
            file.unlink()
    count.note = "refused: " + ", ".join(f"{times} x {kind}" for kind, times in kinds.items())
    return count


def flips(folder, trials):
    """Not promised: SQLite has no checksums."""
    whole = folder / "flips.db"
    ledger = Ledger(whole, PLENTY)
    for _ in range(300):
        ledger.settle(ledger.charge(PureDP(EPSILON), "flips"), "0" * 64)
    content, truth = whole.read_bytes(), contents(whole)
    kinds = collections.Counter()
    for _ in range(trials):
        place, bit = random.randrange(len(content)), random.randrange(8)
        path = folder / "flipped.db"
        path.write_bytes(content[:place] + bytes([content[place] ^ 1 << bit]) + content[place + 1 :])
        try:
            found = contents(path)
            same = found == truth
            kinds["no effect" if same else "other text" if found[0] == truth[0] else "other sums"] += 1
        except (ValueError, OSError):
            kinds["refused"] += 1
        for file in folder.glob("flipped.db*"):
            file.unlink()
    note = ", ".join(f"{times} {kind}" for kind, times in kinds.most_common())
    return Count("one bit flipped (not promised)", trials, note=note)


# The table -----------------------------------------------------------------------------------------------


def can_mount(folder):
    try:
        with small_disk(folder / "disk", 64):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--others", type=int, default=50, help="trials of the other faults")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--folder", type=pathlib.Path, default=None, help="where the ledgers lie")
    parser.add_argument("--fast", action="store_true", help="leave out the trials that compile")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    random.seed(options.seed)
    few = max(1, options.others // 10)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = pathlib.Path(name)
        trials = [
            lambda: kills(folder, options.kills, False),
            lambda: creation(folder, options.others),
            lambda: race(folder, options.others),
            lambda: hammer(folder, few, False),
            lambda: hammer(folder, few, True),
            lambda: size_limits(folder, options.others),
        ]
        if can_mount(folder):
            trials += [lambda: full_disk(folder, options.others), lambda: read_only(folder, few)]
        trials += [
            lambda: cut(folder, options.others),
            lambda: foreign(folder, options.others),
            lambda: flips(folder, 10 * options.others),
            *([] if options.fast else [lambda: kills(folder, options.kills, True)]),
        ]
        rows = []
        for trial in trials:
            rows.append(trial())
            if not options.json:
                print(rows[-1], file=sys.stderr)
    if options.json:
        print(json.dumps([dataclasses.asdict(row) for row in rows]))
        return
    names = [field.name for field in dataclasses.fields(Count)]
    print("| " + " | ".join(name.replace("_", " ") for name in names) + " |\n" + "|---" * len(names) + "|")
    for row in rows:
        print("| " + " | ".join(str(value) for value in dataclasses.astuple(row)) + " |")


if __name__ == "__main__":
    main()
