"""A search for the constants of `AdaptiveMechanism`, one at a time; the tables of docs/mathematics.md, section 21.

    python -m benchmarks.measure.constants --folder constants [--draws 8] [--seed 1] [--every 1] [--only WORDS ...]
    python -m benchmarks.measure.constants --folder constants --tables

The rule as it is committed, and the same with one constant changed, walk about reference populations in flat space:
each of four laws at each of some offsets and spreads, in 2 to 30 dimensions, n from 50 to 2000, epsilon or mu 1.
Records and noise are drawn with seeds that `plan_in_steps` does not use; noise is the same for all rules, so that rules
are compared release by release. For each change it says

- the geometric mean over all cells of error over that of one release about the public centre, and by how much it
  differs from that of the committed rule, with its standard error;
- the largest ratio. As the largest of many noisy numbers is too large, the three cells with the largest ones walk once
  more with other noise, `AGAIN` times as often: of the committed rule and of changes that gain. Of others it is only
  what was walked first, and is held against no ceiling.

By default no ratio may be above 1.1. Who supposes symmetry promises normal or heavy-tailed records, which may have
1.25; only cells enter there whose rule is not the default's.

What has been walked is kept in the folder; a run that was stopped goes on where it was. Changes that gain should
be tried again with another ``--seed``: the best of many is better by chance, too.
"""

import argparse
import contextlib
import functools
import itertools
import json
import math
import pathlib
import time
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple
from unittest import mock

import numpy as np

from benchmarks.tools.lines import add_row, rows_of
from jaxgeodp.mechanisms import adaptive_rules as rules
from jaxgeodp.mechanisms.populations import Population, error_of_one, errors_in_steps

LAWS, SYMMETRIC_LAWS = ("normal", "skew", "heavy tails", "clusters"), ("normal", "heavy tails")
OFFSETS, SPREADS = (0.2, 0.6), (0.5, 0.35, 0.2, 0.1, 0.05)
DIMENSIONS, NUMBERS = (2, 3, 6, 10, 30), (50, 200, 500, 2000)
CEILINGS = {"default": 1.1, "symmetric": 1.25}
WORST, AGAIN = 3, 25  # how many cells walk again, and how many times as often
GAIN, CLEAR = 0.02, 3.0  # a change by this share, beyond this many standard errors


class Group(NamedTuple):
    """Cells whose constants are looked for together."""

    budget: str  #: epsilon or mu
    supposed: str  #: default or symmetric

    @property
    def pure(self) -> bool:
        return self.budget == "epsilon"

    def rule(self, n: int, dim: int) -> rules.Rule | None:
        return rules.rule_for(n, dim, 1.0, self.pure, self.supposed == "symmetric")


# Those with the most cells come last.
GROUPS = [
    Group(*own) for own in (("epsilon", "default"), ("epsilon", "symmetric"), ("mu", "symmetric"), ("mu", "default"))
]


class Size(NamedTuple):
    """Of a run."""

    draws: int  #: of each cell
    seed: int
    every: int = 1  #: of all cells, one of so many


class Cell(NamedTuple):
    number: int  #: of all cells of all groups, for seeds
    population: Population
    dim: int
    n: int

    @property
    def words(self) -> str:
        return f"{self.population.words}, d = {self.dim}, n = {self.n}"


@functools.cache
def cells_of(group: Group, every: int = 1) -> list[Cell]:
    """Those in which the committed rule makes steps, and of symmetric rules those that are not the default's.

    Of all of them one of ``every``: prime to the number of populations, so that all of them are met.
    """
    symmetric, default = group.supposed == "symmetric", Group(group.budget, "default")
    populations = list(enumerate(itertools.product(LAWS, OFFSETS, SPREADS)))
    found = []
    for place, (dim, n) in enumerate(itertools.product(DIMENSIONS, NUMBERS)):
        own = group.rule(n, dim)
        if own is None or (symmetric and own == default.rule(n, dim)):
            continue
        for number, (law, offset, spread) in populations:
            if not symmetric or law in SYMMETRIC_LAWS:
                cell = Cell(place * len(populations) + number, Population(offset, spread, law), dim, n)
                found.append(cell)
    return [cell for cell in found if cell.number % every == 0]


class Change(NamedTuple):
    """Of one constant: of a field of a rule, or of a number that `adaptive_rules` names."""

    constant: str
    words: str
    field: Callable[[rules.Rule], rules.Rule] | None = None
    named: tuple[tuple[str, object], ...] = ()
    kinds: tuple[str, ...] = ("mu", "epsilon", "two means")  #: of rules that have this constant

    def __str__(self):
        return f"{self.constant} {self.words}".strip()


def times(constant: str, field: str, factors, most=math.inf, kinds=("mu", "epsilon", "two means")):
    """A field of rules times each factor."""

    def changed(factor, rule):
        old = getattr(rule, field)
        if isinstance(old, Fraction):
            cost = old * Fraction(str(factor))
            return rule._replace(**{field: cost if cost <= most else Fraction(str(most))})
        new = [min(factor * own, most) for own in (old if isinstance(old, tuple) else [old])]
        return rule._replace(**{field: tuple(new) if isinstance(old, tuple) else new[0]})

    return [
        Change(constant, f"× {factor:g}", lambda rule, factor=factor: changed(factor, rule), kinds=kinds)
        for factor in factors
    ]


def outside(factor):
    """The share of records that a radius need not hold, times a factor."""
    return Change(
        "share q held by a radius, 1 − q",
        f"× {factor:g}",
        lambda rule: rule._replace(kept=min(1.0 - factor * (1.0 - rule.kept), 0.9999)),
        kinds=("mu", "epsilon"),
    )


def named(constant: str, name: str, values, kinds=("mu", "epsilon", "two means")):
    """A number of `adaptive_rules` set to each of some values."""
    return [Change(constant, f"→ {float(value):.3g}", named=((name, value),), kinds=kinds) for value in values]


# Named numbers that the walk itself reads, not what makes a rule.
IN_WALK = ("MIDDLES", "KNOWN", "LEFT", "FIRST_BIAS", "BIAS", "STEP", "NOISE", "TOO_NEAR")
COMMITTED = Change("as committed", "")
BOTH, MU, EPSILON, TWO = ("mu", "epsilon"), ("mu",), ("epsilon",), ("two means",)
# Costs stay such that all paths can be paid: a first mean costs at most half, as middle ones need .6 that is left.
CHANGES = [
    COMMITTED,
    *times("first mean, share", "first", (0.5, 2.0), 0.5, BOTH),
    *times("middle mean, share", "middle", (0.5, 1.5), kinds=BOTH),
    *times("count, share", "counting", (0.5, 2.0), kinds=BOTH),
    *times("pairs, share", "pairs", (0.5, 2.0), kinds=EPSILON),
    outside(0.5),
    outside(2.0),
    *times("last clip f", "reach", (0.9, 1.1), kinds=BOTH),
    *times("slope J", "slope", (0.9, 1.1), kinds=BOTH),
    *times("filled", "filled", (0.85, 1.15), kinds=BOTH),
    *times("first clip", "first_clip", (0.8, 1.25), 1.0, BOTH),
    *times("pair radius", "pair_radius", (0.8, 1.25), kinds=EPSILON),
    *times("radius before one is found", "start", (0.75, 1.25), 1.0, EPSILON),
    *times("ladder of radii", "ladder", (0.8, 1.25), kinds=EPSILON),
    *named("middle means at most", "MIDDLES", (1,), BOTH),
    *named("middle means at most", "MIDDLES", (3,), MU),
    *named("V d/R² that asks for a middle mean", "KNOWN", (0.01, 0.04), MU),
    *named("steps between radii", "STEP", (2.0**0.125, 2.0**0.5), MU),
    *named("least radius over the centre's error", "NOISE", (0.45, 1.0), MU),
    *named("least radius over the centre's error", "TOO_NEAR", (0.8, 1.7), EPSILON),
    *named("left for a middle mean", "LEFT", (Fraction(7, 10),), EPSILON),
    *named("bias of a first centre", "FIRST_BIAS", (0.025, 0.1)),
    *named("bias of a further centre", "BIAS", (0.01, 0.04), BOTH),
    *named("least nμ with steps", "FEW", (100.0,), MU),
    *named("nμ from which on no symmetry is supposed", "MANY", (100.0, 600.0), MU),
    *named("most that pairs and a count cost", "DEAR", (0.06, 0.2), BOTH[1:]),
    *named("least nε over d with questions", "FEW_PER_DIMENSION", (15.0, 100.0), (*EPSILON, *TWO)),
    *named("least share of pairs and of a count", "LEAST_SHARE", (0.01, 0.04), EPSILON),
    *named("largest nμ/d with symmetry", "SYMMETRIC", (100.0, 150.0), MU),
    *named("largest nε with symmetry, d = 2", "SYMMETRIC_PURE", (300.0,), EPSILON),
    *times("two means: first, share", "first", (0.75, 1.25), kinds=TWO),
    *times("two means: first clip", "first_clip", (0.8, 1.25), kinds=TWO),
    *times("two means: last clip", "reach", (0.8, 1.25), kinds=TWO),
    *times("two means: slope J", "slope", (0.8, 1.25), kinds=TWO),
]


def changed_rule(group: Group, change: Change, n: int, dim: int, committed: rules.Rule | None) -> rules.Rule | None:
    """What the change makes of a rule; call it within `constants_of`."""
    if change.named:
        return group.rule(n, dim)
    left = change.field is None or kind_of(group, committed) not in change.kinds
    return committed if left else change.field(committed)


def kind_of(group: Group, rule: rules.Rule | None) -> str:
    return "two means" if rule is not None and rule.fixed else group.budget


@contextlib.contextmanager
def constants_of(change: Change):
    """`adaptive_rules` with the named numbers of a change."""
    with contextlib.ExitStack() as stack:
        for name, value in change.named:
            stack.enter_context(mock.patch.object(rules, name, value))
        yield


def walked(group: Group, cell: Cell, rule: rules.Rule | None, size: Size) -> np.ndarray:
    """Errors of releases over the expected one of a single release, (draws,)."""
    records = cell.population.records(cell.dim, 1000 + 10_000 * size.seed + cell.number)
    noise = [np.random.default_rng([size.seed, cell.number, k]) for k in range(size.draws)]
    errors = errors_in_steps(rule, records, cell.n, 1.0, group.pure, noise)
    return errors / error_of_one(cell.n, cell.dim, 1.0, group.pure)


def rules_of(group: Group, change: Change, every: int = 1) -> dict[tuple[int, int], rules.Rule | None]:
    """What a change makes of the rules by n and dimension, of those that it touches."""
    before = {(cell.n, cell.dim): group.rule(cell.n, cell.dim) for cell in cells_of(group, every)}
    with constants_of(change):
        after = {place: changed_rule(group, change, *place, rule) for place, rule in before.items()}
    in_walk = bool(change.named) and change.named[0][0] in IN_WALK
    return {
        place: after[place]
        for place, rule in before.items()
        if change is COMMITTED or after[place] != rule or (in_walk and kind_of(group, rule) in change.kinds)
    }


def run_change(group: Group, change: Change, committed: dict, size: Size) -> dict | None:
    """What is kept of a change; None where it changes nothing.

    Args:
        group, change: which.
        committed: what was kept of the committed rule; empty when it walks itself.
        size: of the run.
    """
    touched = rules_of(group, change, size.every)
    if not touched:
        return None
    cells, ratios, base = cells_of(group, size.every), {}, committed.get("ratios", {})
    again = Size(AGAIN * size.draws, size.seed + 500)
    with constants_of(change):
        for cell in cells:
            if (cell.n, cell.dim) in touched:
                found = walked(group, cell, touched[cell.n, cell.dim], size)
                ratios[str(cell.number)] = [float(f"{own:.5g}") for own in found]
        means = {cell: np.mean(ratios.get(str(cell.number), base.get(str(cell.number)))) for cell in cells}
        worst = sorted(means, key=lambda cell: -means[cell])[:WORST]
        kept = {"ratios": ratios, "worst": [], "again": False}
        if committed:
            cell = worst[0]
            kept["worst"] = [told(cell, ratios.get(str(cell.number), base.get(str(cell.number))))]
        if not committed or found_of(kept, committed).verdict(math.inf) == "gains":
            kept["again"], kept["worst"] = True, []
            for cell in worst:
                rule = touched.get((cell.n, cell.dim), group.rule(cell.n, cell.dim))
                kept["worst"].append(told(cell, walked(group, cell, rule, again)))
    return kept


def told(cell: Cell, ratios) -> tuple[str, float, float]:
    """A cell, the mean of its ratios, and its standard error."""
    return cell.words, float(np.mean(ratios)), float(np.std(ratios, ddof=1) / math.sqrt(len(ratios)))


def said(group: Group, change: Change) -> str:
    return f"{group.budget}, {group.supposed}: {change}"


class Found(NamedTuple):
    """What a change comes to."""

    mean: float  #: geometric, over all cells
    changed: float  #: over that of the committed rule
    error: float  #: its standard error
    largest: float
    largest_error: float
    where: str
    again: bool  #: whether the largest was walked again

    def verdict(self, ceiling: float) -> str:
        sure = CLEAR * self.error
        if self.again and self.largest - CLEAR * self.largest_error > ceiling:
            return f"above {ceiling:g}"
        if self.changed < 1.0 - GAIN and self.changed < 1.0 - sure:
            return "gains" if self.largest <= ceiling else f"gains, but not surely below {ceiling:g}"
        if self.changed > 1.0 + GAIN and self.changed > 1.0 + sure:
            return "loses"
        if abs(self.changed - 1.0) > sure:
            return "a little less" if self.changed < 1.0 else "a little more"
        return "the same"


def found_of(kept: dict, committed: dict) -> Found:
    """Both with ratios of the same draws of the same cells."""
    numbers = committed["ratios"].keys()
    logs, differences, variances = [], [], []
    for number in numbers:
        base = np.array(committed["ratios"][number])
        own = np.array(kept["ratios"].get(number, base))
        logs.append(math.log(np.mean(own)))
        differences.append(math.log(np.mean(own) / np.mean(base)))
        variances.append(np.var(own / np.mean(own) - base / np.mean(base), ddof=1) / len(own))
    where, largest, largest_error = max(kept["worst"], key=lambda own: own[1])
    return Found(
        math.exp(np.mean(logs)),
        math.exp(np.mean(differences)),
        math.sqrt(np.sum(variances)) / len(logs),
        largest,
        largest_error,
        where,
        kept["again"],
    )


def read(folder: pathlib.Path, size: Size) -> dict:
    """What was kept of runs of this size, by group and change."""
    found = {}
    for own in rows_of(folder / "constants.jsonl"):
        if own["size"] == list(size):
            found[own["budget"], own["supposed"], own["change"]] = own["kept"]
    return found


def print_tables(found: dict) -> None:
    for group in GROUPS:
        if (*group, str(COMMITTED)) not in found:
            continue
        committed = found[*group, str(COMMITTED)]
        ceiling = CEILINGS[group.supposed]
        print(
            f"\n{group.budget}, {group.supposed}; {len(committed['ratios'])} cells, none should be above {ceiling:g}\n"
        )
        print("| constant | changed by | geometric mean | over the committed | largest | where | verdict |")
        print("|---|---|---|---|---|---|---|")
        for change in CHANGES:
            kept = found.get((*group, str(change)))
            if kept is not None:
                own = found_of(kept, committed)
                over = "" if change is COMMITTED else f"{own.changed:.3f} ± {own.error:.3f}"
                largest = f"{own.largest:.2f} ± {own.largest_error:.2f}{'' if own.again else ' (not again)'}"
                verdict = own.verdict(ceiling) if change is not COMMITTED or "above" in own.verdict(ceiling) else ""
                row = change.constant, change.words, f"{own.mean:.3f}", over, largest, own.where, verdict
                print("| " + " | ".join(row) + " |")


def print_summary(found: dict) -> None:
    """One table: by how much each change changes the geometric mean; in bold what gains."""
    groups = [group for group in GROUPS if (*group, str(COMMITTED)) in found]
    heads = [f"{'ε' if group.pure else 'μ'}, {group.supposed}" for group in groups]
    print("\n| constant | changed by | " + " | ".join(heads) + " |")
    print("|---" * (len(groups) + 2) + "|")
    for change in CHANGES[1:]:
        row = []
        for group in groups:
            kept = found.get((*group, str(change)))
            own = None if kept is None else found_of(kept, found[*group, str(COMMITTED)])
            told = "" if own is None else f"{own.changed:.3f} ± {own.error:.3f}"
            row.append(f"**{told}**" if own and own.verdict(math.inf) == "gains" else told)
        if any(row):
            print("| " + " | ".join([change.constant, change.words, *row]) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("constants"))
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="of all cells, one of so many; 3, 7, 9 or 11")
    parser.add_argument("--only", nargs="*", default=[""], help="groups and changes whose names contain one of these")
    parser.add_argument("--tables", action="store_true", help="walk no more, and print what there is")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    size = Size(asked.draws, asked.seed, asked.every)
    found = read(asked.folder, size)
    wanted = [own for own in itertools.product(GROUPS, CHANGES) if any(word in said(*own) for word in asked.only)]
    groups = {group for group, _ in wanted}
    for group, change in itertools.product(GROUPS, CHANGES):
        key, compared = (*group, str(change)), change is COMMITTED and group in groups
        if asked.tables or key in found or not (compared or (group, change) in wanted):
            continue
        begin = time.process_time()
        committed = {} if change is COMMITTED else found[*group, str(COMMITTED)]
        kept = run_change(group, change, committed, size)
        if kept is None:
            continue
        line = {"budget": group.budget, "supposed": group.supposed, "change": str(change), "size": size, "kept": kept}
        add_row(asked.folder / "constants.jsonl", line)
        found[key] = json.loads(json.dumps(kept))
        own = found_of(found[key], found[*group, str(COMMITTED)])
        line = f"{own.changed:.3f} ± {own.error:.3f}, largest {own.largest:.2f} ± {own.largest_error:.2f}"
        print(f"{said(group, change)}: {line} ({time.process_time() - begin:.1f} s)", flush=True)
    print_tables(found)
    print_summary(found)


if __name__ == "__main__":
    main()
