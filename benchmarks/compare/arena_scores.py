"""Errors of all who enter a cell of the arena, and who wins it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.compare.arena_names import short

#: Of tables, and the fields of a score that stand in them.
HEADER = ["method", "", "distance", "Mahalanobis", "Frobenius", "median distance", "1 in 100 beyond"]
WHO = {True: "ours", False: "", None: "no rival"}
#: Kinds of errors of matrices.
ERRORS = ("distance", "mahalanobis", "frobenius")
BUDGETS = {"mu": "μ", "epsilon": "ε", "rho": "ρ"}


class Score(NamedTuple):
    """Means over replicates, and standard errors of the means."""

    cell: Any
    method: str
    ours: bool | None  #: None for what is no rival: no privacy, or no proof of it
    distance: tuple[float, float]  #: in the affine-invariant metric, on spheres the geodesic distance
    mahalanobis: tuple[float, float] | None = None  #: of matrices
    frobenius: tuple[float, float] | None = None  #: of matrices, over the norm of the truth
    each: np.ndarray | None = None  #: distances, if replicate i of all methods is about the same data
    tail: tuple[float, float] | None = None  #: median distance of matrices, and that which 1 in 100 exceeds


def scored(cell, method: str, ours: bool | None, matrices, truth, *, paired: bool = False) -> Score:
    """Of matrices (m, d, d), against one."""
    values, vectors = np.linalg.eigh(truth)
    root = (vectors / np.sqrt(values)) @ vectors.T
    ratios = root @ matrices @ root
    eigenvalues = np.linalg.eigvalsh(ratios)
    # What double precision leaves of a condition of 1e16 and more: as far away as it can tell.
    distances = np.sqrt(np.sum(np.log(np.maximum(eigenvalues, 1e-16)) ** 2, axis=1))
    mahalanobis = np.sqrt(np.sum((eigenvalues - 1.0) ** 2, axis=1))
    frobenius = np.linalg.norm(matrices - truth, axis=(1, 2)) / np.linalg.norm(truth)
    errors = (mean_of(distances), mean_of(mahalanobis), mean_of(frobenius))
    tail = float(np.median(distances)), float(np.quantile(distances, 0.99))
    return Score(cell, method, ours, *errors, distances if paired else None, tail)


def mean_of(errors) -> tuple[float, float]:
    """The mean and its standard error."""
    errors = np.asarray(errors)
    return float(errors.mean()), float(errors.std(ddof=1) / np.sqrt(len(errors)))


def without_tails(errors) -> tuple[float, float]:
    """The mean without the tenth that is smallest and the tenth that is largest, and its standard error.

    That is the deviation of errors of which each tenth is pulled in to the nearest that is kept (Tukey & McLaughlin
    1963): what has been left out varies, too.
    """
    ordered = np.sort(np.asarray(errors))
    out = len(ordered) // 10
    kept = ordered[out : len(ordered) - out]
    pulled = np.clip(ordered, kept[0], kept[-1])
    return float(kept.mean()), float(pulled.std(ddof=1) / (0.8 * np.sqrt(len(ordered))))


def best_setting(tried: dict[str, Score], judge: Callable[[str], Score]) -> Score:
    """With the setting of each kind of error that was best when tried; that of the distance stands in the name."""
    kinds = [kind for kind in ERRORS if getattr(next(iter(tried.values())), kind) is not None]
    chosen = {kind: min(tried, key=lambda own: getattr(tried[own], kind)[0]) for kind in kinds}
    found = {own: judge(own) for own in dict.fromkeys(chosen.values())}
    others = {kind: getattr(found[chosen[kind]], kind) for kind in kinds[1:]}
    return found[chosen["distance"]]._replace(**others)


def pooled(data_sets: Sequence[Sequence[Score]]) -> list[Score]:
    """Means over several data sets, of all methods that have entered each; settings are named where they are one.

    Data sets have random keys of their own.
    """
    by_name = [{own.method.split(" [")[0]: own for own in scores} for scores in data_sets]
    found = []
    for name, first in by_name[0].items():
        if not all(name in own for own in by_name):
            continue
        each = [own[name] for own in by_name]
        errors = {kind: _pooled([getattr(own, kind) for own in each]) for kind in ERRORS if getattr(first, kind)}
        tail = tuple(map(float, np.mean([own.tail for own in each], axis=0))) if first.tail else None
        same = len({own.method for own in each}) == 1
        found.append(first._replace(method=first.method if same else name, tail=tail, **errors))
    return found


def _pooled(pairs):
    means, deviations = np.transpose(pairs)
    return float(np.mean(means)), float(np.linalg.norm(deviations) / len(deviations))


def best(scores: Sequence[Score], ours: bool, error: str = "distance") -> Score | None:
    """That with the least error, among ours or among the others."""
    entered = [own for own in scores if own.ours is ours and getattr(own, error) is not None]
    return min(entered, key=lambda own: getattr(own, error)[0], default=None)


def verdict(scores: Sequence[Score]) -> str:
    """Who wins a cell; a difference below two standard errors is none.

    Replicates about the same data are compared one by one: what the data alone are off by is the same for all.
    """
    own, other = best(scores, True), best(scores, False)
    if own is None or other is None:
        return "no contest"
    gap, error = other.distance[0] - own.distance[0], np.hypot(own.distance[1], other.distance[1])
    if own.each is not None and other.each is not None:
        gap, error = mean_of(other.each - own.each)
    word = "even" if abs(gap) <= 2.0 * error else "we win" if gap > 0 else "we lose"
    ratio = own.distance[0] / other.distance[0]
    return f"{word}: {own.method} {_digits(own.distance)}, {other.method} {_digits(other.distance)}, ratio {ratio:.2f}"


def by_frobenius(scores: Sequence[Score]) -> str:
    """What the Frobenius error, by which some of the papers judge, says of a cell."""
    own, other = best(scores, True, "frobenius"), best(scores, False, "frobenius")
    if own is None or other is None or own.frobenius is None or other.frobenius is None:
        return ""
    gap, error = other.frobenius[0] - own.frobenius[0], np.hypot(own.frobenius[1], other.frobenius[1])
    word = "even" if abs(gap) <= 2.0 * error else "less" if gap > 0 else "more"
    names = [score.method.split(" [")[0] for score in (own, other)]  # without the settings, which are for the distance
    return f"{word}: {names[0]} {_digits(own.frobenius)}, {names[1]} {_digits(other.frobenius)}"


def counts(found: Sequence[Sequence[Score]]) -> str:
    """How many cells are won, even and lost."""
    words = [verdict(scores).partition(":")[0] for scores in found]
    return f"we win {words.count('we win')}, even {words.count('even')}, we lose {words.count('we lose')}"


def rows(scores: Sequence[Score]) -> list[list[str]]:
    """Of a table: best first."""
    return [
        [
            *(own.method, WHO[own.ours]),
            *(_digits(error) for error in (own.distance, own.mahalanobis, own.frobenius)),
            *([f"{value:.4f}" for value in own.tail] if own.tail else ["", ""]),
        ]
        for own in sorted(scores, key=lambda own: own.distance[0])
    ]


def overview(found: Sequence[Sequence[Score]]) -> str:
    """Of all cells, in Markdown: the best of ours and of theirs, of the public centre, and `arena_means.limit`."""
    heads = ["cell", "ours, best", "error", "theirs, best", "error", "ratio", "centre", "limit"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for scores in found:
        own, other = best(scores, True), best(scores, False)
        if own is None or other is None:
            continue
        word, ratio = verdict(scores).partition(":")[0], own.distance[0] / other.distance[0]
        besides = [
            next((f"{one.distance[0]:.4f}" for one in scores if one.method.startswith(begins)), "")
            for begins in ("public centre", "limit")
        ]
        said = f"{ratio:.2f}" + (", even" if word == "even" else "")
        pairs = [f"{short(one.method)} | {one.distance[0]:.4f}" for one in (own, other)]
        lines.append(f"| {scores[0].cell} | {' | '.join(pairs)} | {said} | {' | '.join(besides)} |")
    return "\n".join(lines)


def table(found: Sequence[Sequence[Score]]) -> str:
    """Of several cells, in Markdown: a row a method, distances, the least of each cell in bold."""
    methods: dict[tuple[str, bool | None], list[str]] = {}
    for place, scores in enumerate(found):
        entered = [own for own in scores if own.ours is not None]
        least = min(own.distance[0] for own in entered)
        for own in scores:
            cells = methods.setdefault((short(own.method), own.ours), [""] * len(found))
            text = f"{own.distance[0]:.4f}"
            cells[place] = f"**{text}**" if own.ours is not None and own.distance[0] == least else text
    lines = ["| | " + " | ".join(str(scores[0].cell) for scores in found) + " |", "|---" * (len(found) + 1) + "|"]
    order = {True: 0, False: 1, None: 2}
    for (method, ours), cells in sorted(methods.items(), key=lambda item: order[item[0][1]]):
        name = f"ours: {method}" if ours else method
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _digits(pair):
    return f"{pair[0]:.4f} ± {pair[1]:.4f}" if pair else ""
