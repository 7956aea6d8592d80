"""The arena: private means and covariances by all who have a method, at equal guarantees; where we lose, it says so.

    python benchmarks/arena.py               # the tables of docs/arena.md, minutes
    python benchmarks/arena.py --full        # larger n, dimensions to 10, other budgets: an hour
    python benchmarks/arena.py --picture     # also docs/arena.png
    python benchmarks/arena.py --quick       # two cells, to see that it runs

Who enters, by which calibration, and on which data is said in `arena_means`, `arena_covariances` and `rivals`. All keys
and seeds are fixed. Every number is a mean over replicates with its standard error.
"""

import sys
import time

import jax
import numpy as np
from arena_covariances import Vectors
from arena_covariances import scores as covariance_scores
from arena_means import SEARCH, Points
from arena_means import scores as mean_scores
from arena_scores import HEADER, by_frobenius, rows, table, verdict
from timing import print_machine, print_table

import jaxgeodp as jgd

CAP = np.pi / 8
QUICK = ("WrappedGaussian",)


def mean_cells(full: bool) -> list[Points]:
    """Of the first part."""
    spaces = [(jgd.SPD(2), 1.5), (jgd.SPD(3), 1.5), (jgd.Sphere(2), CAP), (jgd.Sphere(10), CAP)]
    if full:
        spaces += [(jgd.SPD(5), 1.5), (jgd.SPD(10), 1.5), (jgd.Sphere(2), 0.7), (jgd.Sphere(10), 0.7)]
    strengths = (0.3, 1.0) if full else (1.0,)
    return [
        Points(space, radius, n, budget, strength)
        for space, radius in spaces
        for n in ((100, 500, 5000) if full else (500,))
        for budget in ("mu", "epsilon")
        for strength in strengths
    ] + [
        *(Points(space, radius, 50, "epsilon", 1.0) for space, radius in (spaces[0], spaces[2])),
        *(Points(*spaces[own], 500, budget, 1.0, wide=True) for own in (0, 2) for budget in ("mu", "epsilon")),
    ]


def vector_cells(full: bool) -> list[Vectors]:
    """Of the second part."""
    return [
        Vectors(dim, n, condition, budget, strength)
        for dim in ((2, 5, 10) if full else (2, 5))
        for condition in ((10.0, 1e2, 1e4) if full else (10.0, 1e4))
        for n in ((1000, 4000, 20_000) if full else (4000,))
        for budget, strengths in (("rho", (0.05, 0.5)), ("epsilon", (0.3, 1.0)))
        for strength in (strengths if full else strengths[1:])
    ]


def run(means, vectors, draws: int, replicates: int, chains: int, quick: bool = False):
    """Print the table of each cell, and return all scores, by cell; if quick, of those that compile little."""
    found = []
    for cell in means:
        found.append(mean_scores(cell, draws, chains=chains if cell.n <= 50 else 0, names=QUICK if quick else None))
        _print(found[-1])
        jax.clear_caches()  # each compiled program holds memory maps, of which a process may have 65,530
    for cell in vectors:
        found.append(covariance_scores(cell, replicates, blocks=not quick))
        _print(found[-1])
        jax.clear_caches()
    return found


def _print(scores):
    print_table(str(scores[0].cell), HEADER, rows(scores))
    print(f"\n{verdict(scores)}")
    print(f"by Frobenius error {by_frobenius(scores) or 'nothing'}", flush=True)


def summary(found) -> None:
    """Print where we lose, and how often."""
    verdicts = [(str(scores[0].cell), verdict(scores)) for scores in found]
    counts = [sum(text.startswith(word) for _, text in verdicts) for word in ("we win", "even", "we lose")]
    print("\nWe win {} cells, {} are even, and we lose {}. Where we lose:\n".format(*counts))
    _print_losses(verdicts)
    print("\nWhere we lose if we are told the ball, as the others are, and do not search for one:\n")
    told = [[own for own in scores if own.method != SEARCH] for scores in found]
    _print_losses([(str(scores[0].cell), verdict(scores)) for scores in told])
    for kind in dict.fromkeys((type(scores[0].cell), scores[0].cell.budget) for scores in found):
        print("\n" + table([scores for scores in found if (type(scores[0].cell), scores[0].cell.budget) == kind]))
    print("\nEverybody's least error:\n")
    print("\n".join(f"- {cell}. {text}" for cell, text in verdicts))
    print("\nBy Frobenius error ours is:\n")
    print("\n".join(f"- {scores[0].cell}. {by_frobenius(scores)}" for scores in found if by_frobenius(scores)))


def _print_losses(verdicts):
    losses = [f"- {cell}. {text.removeprefix('we lose: ')}" for cell, text in verdicts if text.startswith("we lose")]
    print("\n".join(losses) or "nowhere")


def picture(found, path):
    """Draw the error of everybody over that of the best of ours."""
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(10, 0.42 * len(found) + 1.2), layout="constrained")
    colors = {True: "tab:blue", False: "tab:orange", None: "0.6"}
    labels = {True: "ours", False: "others", None: "no privacy, or no proof"}
    for height, scores in enumerate(reversed(found)):
        least = min(own.distance[0] for own in scores if own.ours)
        for own in scores:
            if own.method.endswith("no noise"):
                continue  # far to the left
            axis.plot(own.distance[0] / least, height, "o", color=colors[own.ours], alpha=0.75, label=labels[own.ours])
    axis.axvline(1.0, color="0.8", zorder=0)
    axis.set_xscale("log")
    axis.set_xlabel("error over that of the best of ours")
    axis.set_yticks(range(len(found)), [str(scores[0].cell) for scores in reversed(found)], fontsize=8)
    handles = dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Print all."""
    jax.config.update("jax_enable_x64", True)
    if "--quick" in sys.argv:
        means, vectors = [Points(jgd.Sphere(2), CAP, 50, "mu", 1.0)], [Vectors(2, 1000, 10.0, "rho", 0.5)]
        summary(run(means, vectors, 20, 20, 0, quick=True))
        return
    full, start = "--full" in sys.argv, time.time()
    print_machine()
    found = run(mean_cells(full), vector_cells(full), 1000 if full else 300, 1000, 20)
    summary(found)
    print(f"\n{len(found)} cells in {(time.time() - start) / 60.0:.0f} minutes")
    if "--picture" in sys.argv:
        picture(found, "docs/arena.png")


if __name__ == "__main__":
    main()
