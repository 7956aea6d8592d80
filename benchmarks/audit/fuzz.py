"""Fuzz of every reader and of commands, guided by coverage: what changes a valid file until something else happens.

    python -m benchmarks.audit.fuzz [--minutes 60] [--only WORD] [--seed 0] [--folder FOLDER]

Atheris 3 (libFuzzer for Python) changes bytes, keeps what reaches new branches of jaxgeodp and trimesh, and starts from
valid files. Targets and what they may do stand in `fuzz_targets.py`. A finding is an exception that is no refusal, a
command that ends otherwise than with 0, 2 or a sentence about the system, a call of more than 20 s, more than 2 GiB of
memory, or a process that dies. It is made smaller while it stays the same finding, and written to FOLDER/findings.
Inputs that reached something are kept in FOLDER/corpus: the same call goes on from there.

Needs pip install -e ".[abuse]".
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.tools.lines import add_row, rows_of

SECONDS, MEGABYTES = 20, 2048
#: Seconds in which a finding is made smaller, and tries at most.
SMALLER, TRIES = 5.0, 1000


class Finding(NamedTuple):
    """Something that no reader may do."""

    signature: str  #: the same for the same mistake
    words: str


# One input ---------------------------------------------------------------------------------------------------


class Judge:
    """Calls a target with contents of files, each in an empty folder."""

    def __init__(self, call: Callable[[pathlib.Path], object], suffix: str, refusals: tuple[type[Exception], ...]):
        self.call, self.suffix, self.refusals = call, suffix, refusals

    def __call__(self, content: bytes) -> Finding | None:
        """None where it did what it may."""
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            path = pathlib.Path(folder) / f"file{self.suffix}"
            path.write_bytes(content)
            try:
                self.call(path)
            except self.refusals:
                return None
            except (Exception, SystemExit) as error:
                return _found(error)
        return None

    def smaller(self, content: bytes, signature: str) -> bytes:
        """A short input with the same finding: pieces are left out while it stays, ever shorter ones."""
        end, tries, length = time.monotonic() + SMALLER, 0, max(1, len(content) // 2)
        while length:
            start = 0
            while start < len(content):
                if time.monotonic() > end or tries > TRIES:
                    return content
                tries += 1
                shorter = content[:start] + content[start + length :]
                found = self(shorter)
                if found is not None and found.signature == signature:
                    content = shorter
                else:
                    start += length
            length //= 2
        return content


def _found(error) -> Finding:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "jaxgeodp" in frame.filename]
    at = f"{pathlib.Path(frames[-1].filename).name}:{frames[-1].name}" if frames else ""
    # Of a command the sentence tells which; numbers and names in it do not.
    told = re.sub(r"[^a-zA-Z ]", "", str(error))[:80] if type(error).__name__ == "WrongEnd" else ""
    return Finding(f"{type(error).__name__} {at} {told}".strip(), "".join(traceback.format_exception(error)))


# In a process of its own -------------------------------------------------------------------------------------


def instrumented():
    """The targets, of modules that tell Atheris which branches are reached."""
    import atheris

    with atheris.instrument_imports(include=["jaxgeodp", "trimesh", "benchmarks.audit.fuzz_targets"]):
        from benchmarks.audit import fuzz_targets
    return fuzz_targets.TARGETS | fuzz_targets.PLANTED


def fuzz(name: str, target, folder: pathlib.Path, seconds: float, seed: int) -> None:
    """Fuzz one target; this ends the process."""
    import atheris

    from jaxgeodp.checks import InputError

    judge = Judge(target.call, target.suffix, (InputError, OSError))
    corpus, findings, end = folder / "corpus" / name, folder / "findings", time.monotonic() + seconds
    for place in (corpus, findings):
        place.mkdir(parents=True, exist_ok=True)
    if not any(corpus.iterdir()):
        for number, content in enumerate(target.seeds()):
            (corpus / f"seed-{number}").write_bytes(content)
    known = {json.loads(path.read_text())["signature"] for path in findings.glob(f"{name}-*.json")}

    last = _last(folder, name)

    def one(content):
        last.write_bytes(content)  # a process may die of it
        found = judge(content)
        if found is not None and found.signature not in known:
            known.add(found.signature)
            _keep(findings, name, judge.smaller(content, found.signature), found)

    left = max(1, round(end - time.monotonic()))
    limits = [f"-max_total_time={left}", f"-timeout={SECONDS}", f"-rss_limit_mb={MEGABYTES}", f"-seed={seed + 1}"]
    more = ["-print_final_stats=1", f"-report_slow_units={SECONDS}", f"-artifact_prefix={findings}/{name}-"]
    atheris.Setup([sys.argv[0], *limits, *more, str(corpus)], one)
    atheris.Fuzz()


def _last(folder, name):
    """Where the input is that a process has in hand."""
    return folder / "logs" / f"{name}.last"


def _keep(findings, name, content, found):
    stem = f"{name}-{hashlib.sha256(found.signature.encode()).hexdigest()[:8]}"
    (findings / f"{stem}.bin").write_bytes(content)
    (findings / f"{stem}.json").write_text(json.dumps({"target": name, **found._asdict()}, indent=1))


# All of them -------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """What one process has done."""

    target: str
    inputs: int
    seconds: float
    branches: int
    megabytes: int
    stopped: str  #: by what, if not by the time


def run(name: str, target, folder: pathlib.Path, seconds: float, seed: int) -> Run:
    """Fuzz a target for so long in a forked process, which need not import everything again; JAX has not started."""
    begin, log_file = time.monotonic(), folder / "logs" / f"{name}.txt"
    log_file.parent.mkdir(exist_ok=True)
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        with open(log_file, "wb") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        try:
            fuzz(name, target, folder, seconds, seed)
        finally:
            os._exit(1)  # it ends itself
    _, status = os.waitpid(process, 0)
    log = log_file.read_text(errors="replace")
    inputs = [int(number) for number in re.findall(r"^#(\d+)\t", log, re.MULTILINE)]
    memory = [int(number) for number in re.findall(r"rss: (\d+)Mb", log)]
    branches = [int(number) for number in re.findall(r"cov: (\d+) ", log)]
    stopped = "" if status == 0 else (re.findall(r"ERROR: libFuzzer: (.*)", log) or [log[-300:]])[-1]
    if stopped and _last(folder, name).exists():
        words = stopped.strip().splitlines()[-1]
        _keep(folder / "findings", name, _last(folder, name).read_bytes(), Finding(f"the process ended: {words}", log))
    most = [max(numbers, default=0) for numbers in (inputs, branches, memory)]
    return Run(name, most[0], time.monotonic() - begin, most[1], most[2], stopped)


def table(runs: list[Run], findings: pathlib.Path) -> str:
    """Target by target."""
    lines = ["| target | inputs | seconds | branches reached | most memory | findings |", "|---|---|---|---|---|---|"]
    for name in dict.fromkeys(run.target for run in runs):
        own = [run for run in runs if run.target == name]
        inputs, seconds = sum(run.inputs for run in own), sum(run.seconds for run in own)
        branches, memory = max(run.branches for run in own), max(run.megabytes for run in own)
        found = sum(1 for _ in findings.glob(f"{name}-*.json"))
        lines.append(f"| {name} | {inputs:,} | {seconds:.0f} | {branches} | {memory} MiB | {found} |")
    lines.append(f"| all | {sum(run.inputs for run in runs):,} | {sum(run.seconds for run in runs):.0f} | | | |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="in all")
    parser.add_argument("--only", default="", help="targets whose name holds this word; planted: planted mistakes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("fuzz"))
    options = parser.parse_args()
    targets = instrumented()
    options.folder.mkdir(parents=True, exist_ok=True)
    folder = options.folder.resolve()
    planted = options.only == "planted"
    names = [name for name in targets if options.only in name and name.startswith("planted") == planted]
    log = folder / "runs.jsonl"
    for place, name in enumerate(names):
        end, seed = time.monotonic() + 60.0 * options.minutes / len(names), options.seed + place
        while (left := end - time.monotonic()) > 1.0:
            done = run(name, targets[name], folder, left, seed)
            seed += len(names)  # what ended it would be the next to end it
            add_row(log, done._asdict())
            print(f"{place + 1}/{len(names)} {done}", file=sys.stderr)
            if not done.inputs:
                break
    runs = [Run(**row) for row in rows_of(log)]
    print(table(runs, folder / "findings"), "\n")
    for path in sorted((folder / "findings").glob("*.json")):
        found = json.loads(path.read_text())
        print(f"{found['target']}: {found['signature']} ({path.with_suffix('.bin').name})")
    for done in runs:
        if done.stopped:
            print(f"{done.target}: {done.stopped}")


if __name__ == "__main__":
    main()
