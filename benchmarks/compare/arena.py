"""The arena: private means and covariances by all who have a method, at equal guarantees; where we lose, it says so.

    python -m benchmarks.compare.arena               # the tables of docs/evidence/arena.md, an hour of one core
    python -m benchmarks.compare.arena --full        # also larger n, dimensions to 10, another budget: hours
    python -m benchmarks.compare.arena --picture     # also docs/evidence/arena.png
    python -m benchmarks.compare.arena --quick       # two cells without most of ours, to see that it runs

Who enters, by which calibration, and on which data is said in `arena_means`, `arena_covariances` and `rivals`. All keys
and seeds are fixed. Every number is a mean over replicates with its standard error.
"""

import sys
import time

import jax
import numpy as np

import jaxgeodp as jgd
from benchmarks.compare.arena_covariances import Vectors
from benchmarks.compare.arena_covariances import scores as covariance_scores
from benchmarks.compare.arena_means import SEARCH, Points
from benchmarks.compare.arena_means import scores as mean_scores
from benchmarks.compare.arena_scores import HEADER, by_frobenius, rows, table, verdict
from benchmarks.tools.timing import print_machine, print_table

CAP = np.pi / 8
BOTH = ("mu", "epsilon")
QUICK = ("WrappedGaussian",)
# Coordinates of a data set, from which on there are fewer replicates.
MANY = 20_000


def mean_cells(full: bool) -> list[Points]:
    """Of the first part."""
    spaces = [(jgd.SPD(2), 1.5), (jgd.SPD(3), 1.5), (jgd.Sphere(2), CAP), (jgd.Sphere(10), CAP)]
    matrices, _, sphere, _ = spaces
    cells = [Points(space, radius, 500, budget, 1.0) for space, radius in spaces for budget in BOTH]
    cells += [Points(*own, 50, "epsilon", 1.0) for own in (matrices, sphere)]
    cells += [Points(*own, 500, budget, 1.0, wide=True) for own in (matrices, sphere) for budget in BOTH]
    if full:
        larger = [(jgd.SPD(5), 1.5), (jgd.Sphere(2), 0.7), (jgd.Sphere(10), 0.7)]
        cells += [Points(*own, 500, budget, 1.0) for own in larger for budget in BOTH]
        cells += [Points(*own, 5000, budget, 0.3) for own in (matrices, sphere) for budget in BOTH]
    return cells


def vector_cells(full: bool) -> list[Vectors]:
    """Of the second part."""
    sizes = [(dim, 4000, condition) for dim in (2, 5) for condition in (10.0, 1e4)]
    if full:
        sizes += [(10, 4000, condition) for condition in (10.0, 1e4)]
        sizes += [(dim, 1000, 10.0) for dim in (2, 5)]
    return [Vectors(*size, budget, strength) for size in sizes for budget, strength in (("rho", 0.5), ("epsilon", 1.0))]


def run(means, vectors, draws: int, replicates: int, chains: int, quick: bool = False):
    """Print the table of each cell, and return all scores, by cell; if quick, of those that compile little.

    Of many long vectors there is a fifth of the replicates, and of vectors of 10 no mean of blocks, whose search takes
    seconds.
    """
    found = []
    for cell in means:
        found.append(mean_scores(cell, draws, chains=chains if cell.n <= 50 else 0, names=QUICK if quick else None))
        _print(found[-1])
        jax.clear_caches()  # each compiled program holds memory maps, of which a process may have 65,530
    for cell in vectors:
        many = replicates // 5 if cell.n * cell.dim > MANY else replicates
        found.append(covariance_scores(cell, many, blocks=not quick and cell.dim < 10))
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
    lines = {True: 0.12, False: -0.12, None: 0.0}  # who is even does not hide the other
    labels = {True: "ours", False: "others", None: "no privacy, or no proof"}
    for height, scores in enumerate(reversed(found)):
        least = min(own.distance[0] for own in scores if own.ours)
        for own in scores:
            if own.method.endswith("no noise"):
                continue  # far to the left
            look = {"color": colors[own.ours], "alpha": 0.75, "label": labels[own.ours]}
            axis.plot(own.distance[0] / least, height + lines[own.ours], "o", **look)
    axis.axvline(1.0, color="0.8", zorder=0)
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set_xlabel("mean distance over that of the best of ours")
    axis.set_yticks(range(len(found)), [str(scores[0].cell) for scores in reversed(found)], fontsize=8)
    handles = dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Print all."""
    jax.config.update("jax_enable_x64", True)
    if "--quick" in sys.argv:
        print("Without most of ours, and with few draws: to see that it runs. Who wins means nothing here.")
        means, vectors = [Points(jgd.Sphere(2), CAP, 50, "mu", 1.0)], [Vectors(2, 1000, 10.0, "rho", 0.5)]
        summary(run(means, vectors, 20, 20, 0, quick=True))
        return
    full, start = "--full" in sys.argv, time.time()
    print_machine()
    found = run(mean_cells(full), vector_cells(full), 1000, 1000, 20)
    summary(found)
    print(f"\n{len(found)} cells in {(time.time() - start) / 60.0:.0f} minutes")
    if "--picture" in sys.argv:
        picture(found, "docs/evidence/arena.png")


if __name__ == "__main__":
    main()
