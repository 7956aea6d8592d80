"""What runs of `mutation` have found so far: a file that is kept with the project, and gone on with by later runs.

    python -m benchmarks.audit.mutation_state  # the tables of docs/evidence/mutants.md

Mutants of a file of source come in one order (`mutants.sample`), of which a run tries the next ones. Of each file the
state says which code it is of, how many mutants there are, how many of the first were tried, and which of these are
left, each with why it is no gap, or nothing. A file that has changed begins anew, and all do when `mutants.py` changes;
so a full round needs no single run.
"""

import collections
import hashlib
import json
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.audit import mutants
from benchmarks.audit.mutants import Mutant
from benchmarks.tools.results import ROOT, marked

PATH, PAGE = pathlib.Path(__file__).with_name("mutants.json"), ROOT / "docs/evidence/mutants.md"
NOTICED = ("killed", "timed out")
_KINDS = {
    "on the safe side": "a bound, a scale or a refusal is on the safe side",
    "effort only": "effort only",
    "an allowance for rounding": "an allowance for rounding, which is larger than it must be or was never needed",
    "at which radii a picture": "what a picture shows",
}
_MAKER = pathlib.Path(mutants.__file__).read_bytes()


def code_of(source: bytes) -> str:
    """Return a digest of a source and of what makes its mutants."""
    return hashlib.sha256(source + _MAKER).hexdigest()[:16]


def read(path: pathlib.Path) -> dict[str, dict[str, Any]]:
    """By file of source; nothing where there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def of_file(state: Mapping[str, dict[str, Any]], file: str, source: bytes, number: int) -> dict[str, Any]:
    """What is known of the file as it is now."""
    kept = state.get(file, {})
    empty = {"code": code_of(source), "mutants": number, "tried": 0, "killed": 0, "timed out": 0, "left": {}}
    return dict(kept) if kept.get("code") == empty["code"] else empty


def gone_on(known: dict[str, Any], order: Iterable[Mutant], outcomes: Mapping[str, str]) -> dict[str, Any]:
    """What is known of a file after a run.

    Args:
        known: before.
        order: all its mutants, in order.
        outcomes: of those that were tried, by name. One that has none ends what counts: later runs begin with it. One
            that was left, and is noticed now, is left no more.
    """
    found = {**known, "left": dict(known["left"])}
    for name, why in known["left"].items():
        outcome = outcomes.get(_mutant(name))
        if outcome in NOTICED and not why:
            del found["left"][name]
            found[outcome] += 1
    for mutant in list(order)[known["tried"] :]:
        outcome = outcomes.get(mutant.name)
        if outcome is None:
            break
        found["tried"] += 1
        if outcome in NOTICED:
            found[outcome] += 1
        else:
            found["left"][f"{mutant.name} ({outcome})"] = ""
    return found


def unexplained(state: Mapping[str, dict[str, Any]]) -> set[str]:
    """Return the names of mutants that are left without a reason."""
    return {_mutant(name) for own in state.values() for name, why in own["left"].items() if not why}


def table(state: Mapping[str, dict[str, Any]]) -> str:
    """Part by part, in Markdown."""
    heads = ["part", "mutants", "tried", "killed", "timed out", "left", "explained"]
    lines, parts = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"], {}
    for file, own in sorted(state.items()):
        sums = parts.setdefault(str(pathlib.PurePosixPath(file).parts[1]), [0] * 6)
        explained = sum(bool(why) for why in own["left"].values())
        counts = (*(own[name] for name in ("mutants", "tried", *NOTICED)), len(own["left"]), explained)
        sums[:] = [a + b for a, b in zip(sums, counts, strict=True)]
    parts["all"] = [sum(own) for own in zip(*parts.values(), strict=True)] if parts else [0] * 6
    return "\n".join([*lines, *(f"| {part} | {' | '.join(map(str, sums))} |" for part, sums in parts.items())])


def table_of_left(state: Mapping[str, dict[str, Any]]) -> str:
    """Return what is left in Markdown: how many for each reason, and each that has none yet."""
    reasons = [why for own in state.values() for why in own["left"].values() if why]
    counts = collections.Counter(_kind(why) for why in reasons)
    lines = ["| why it is no gap | mutants |", "|---|---|", *(f"| {kind} | {n} |" for kind, n in counts.most_common())]
    for name in sorted(unexplained(state)):
        place, _, change = name.partition(": ")
        file, line, _ = place.removeprefix("jaxgeodp/").split(":")
        text = change.replace("|", "\\|")
        lines.append(f"| open: `{file}:{line}`, `{text}` | 1 |")
    return "\n".join(lines)


def _kind(why: str) -> str:
    """Of a reason what several have in common."""
    if why.startswith("killed by"):
        return "a test notices it, to which it was given by hand"
    return f"by reading: {next((kind for part, kind in _KINDS.items() if part in why), 'another reason')}"


def page(state: Mapping[str, dict[str, Any]], text: str) -> str:
    """Return a page with the tables of a state between its marks."""
    return marked(text, {"score": f"\n{table(state)}\n", "left": f"\n{table_of_left(state)}\n"})


def write(path: pathlib.Path, state: Mapping[str, dict[str, Any]]) -> None:
    """Replace the file, a line a mutant that is left."""
    path.write_text(json.dumps(dict(sorted(state.items())), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _mutant(left: str) -> str:
    """Of "name (outcome)" the name."""
    return left.rpartition(" (")[0]


if __name__ == "__main__":
    PAGE.write_text(page(read(PATH), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
