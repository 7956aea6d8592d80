"""The arena: private means and covariances by all who have a method, at equal guarantees; where we lose, it says so.

    python -m benchmarks.compare.arena --keep FILE                  # the tables of docs/evidence/arena.md
    python -m benchmarks.compare.arena --keep FILE --folder FOLDER  # also data of others: measure.shapes_of_data
    python -m benchmarks.compare.arena --keep FILE --full           # also larger n and dimensions, another budget
    python -m benchmarks.compare.arena --keep FILE --part 0/2       # every second cell, for one of two processes
    python -m benchmarks.compare.arena --keep FILE --picture        # draws docs/evidence/arena.png of what is there
    python -m benchmarks.compare.arena --quick                      # two cells without most of ours: that it runs

Who enters, by which calibration, and on which data is said in `arena_means`, `arena_covariances` and `rivals`. All keys
and seeds are fixed. Every number is a mean over data sets and draws with the standard error of the draws. FILE has a
line of JSON for each cell that is done, with its commit and seconds: the same call runs what is not there.
"""

import argparse
import dataclasses
import json
import pathlib
import subprocess
import time
from collections.abc import Iterator

import jax
import numpy as np

import jaxgeodp as jgd
from benchmarks.compare.arena_cells import Points, given_cells
from benchmarks.compare.arena_covariances import Vectors
from benchmarks.compare.arena_covariances import scores as covariance_scores
from benchmarks.compare.arena_means import SEARCH
from benchmarks.compare.arena_means import scores as mean_scores
from benchmarks.compare.arena_scores import HEADER, Score, by_frobenius, overview, pooled, rows, table, verdict
from benchmarks.tools.timing import print_machine, print_table

CAP = np.pi / 8
BOTH = ("mu", "epsilon")
QUICK = ("WrappedGaussian",)
# Coordinates of a data set, from which on there are fewer replicates.
MANY = 20_000
# Data sets of a cell of means and draws of each; of large cells fewer.
DATA_SETS, DRAWS, LARGE = 5, 200, 2
# Replicates of a cell of covariances, chains of the papers.
REPLICATES, CHAINS = 1000, 20


def mean_cells(full: bool) -> list[Points]:
    """Of the first part."""
    spaces = [(jgd.SPD(2), 1.5), (jgd.SPD(3), 1.5), (jgd.Sphere(2), CAP), (jgd.Sphere(10), CAP)]
    matrices, _, sphere, _ = spaces
    cells = [Points(space, radius, 500, budget, 1.0) for space, radius in spaces for budget in BOTH]
    cells += [Points(*own, 50, "epsilon", 1.0) for own in (matrices, sphere)]
    cells += [Points(*own, 500, budget, 1.0, wide=True) for own in (matrices, sphere) for budget in BOTH]
    if full:
        larger = [(jgd.SPD(5), 1.5), (jgd.SPD(10), 1.5), (jgd.Sphere(2), 0.7), (jgd.Sphere(10), 0.7)]
        larger += [(jgd.Sphere(50), CAP)]
        cells += [Points(*own, 500, budget, 1.0) for own in larger for budget in BOTH]
        cells += [Points(*own, 5000, budget, 0.3) for own in (matrices, sphere) for budget in BOTH]
    return cells


def data_sets(cell: Points, count: int) -> list[Points]:
    """Several data sets of one law; of large ones fewer."""
    large = cell.space.dim > 20 or cell.n > 1000
    return [dataclasses.replace(cell, data_set=own) for own in range(min(count, LARGE) if large else count)]


def vector_cells(full: bool) -> list[Vectors]:
    """Of the second part."""
    sizes = [(dim, 4000, condition) for dim in (2, 5) for condition in (10.0, 1e4)]
    if full:
        sizes += [(10, 4000, condition) for condition in (10.0, 1e4)]
        sizes += [(dim, 1000, 10.0) for dim in (2, 5)]
    return [Vectors(*size, budget, strength) for size in sizes for budget, strength in (("rho", 0.5), ("epsilon", 1.0))]


def of_means(cells: list, draws: int, *, quick: bool = False) -> list[Score]:
    """Scores of one cell, over its data sets; if quick, of those that compile little."""
    chains = CHAINS if cells[0].n <= 50 and not quick else 0
    return pooled([mean_scores(own, draws, chains=chains, names=QUICK if quick else None) for own in cells])


def of_vectors(cell: Vectors, replicates: int, *, quick: bool = False) -> list[Score]:
    """Scores of one cell.

    Of many long vectors there is a fifth of the replicates, and of vectors of 10 no mean of blocks, whose search takes
    seconds.
    """
    many = replicates // 5 if cell.n * cell.dim > MANY else replicates
    return covariance_scores(cell, many, blocks=not quick and cell.dim < 10)


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
    for kind in dict.fromkeys(_kind(scores) for scores in found):
        print("\n" + table([scores for scores in found if _kind(scores) == kind]))
    print("\n" + overview(found))
    print("\nEverybody's least error:\n")
    print("\n".join(f"- {cell}. {text}" for cell, text in verdicts))
    print("\nBy Frobenius error ours is:\n")
    print("\n".join(f"- {scores[0].cell}. {by_frobenius(scores)}" for scores in found if by_frobenius(scores)))


def _kind(scores):
    """Which cells stand in one table: those of one budget and of one part."""
    cell = str(scores[0].cell)
    return cell.rpartition(", ")[2].partition(" ")[0], "κ" in cell, cell.startswith(("SPD", "S^"))


def _print_losses(verdicts):
    losses = [f"- {cell}. {text.removeprefix('we lose: ')}" for cell, text in verdicts if text.startswith("we lose")]
    print("\n".join(losses) or "nowhere")


#: Of the picture: which methods have one look, by what their names begin with; the first that fits.
FAMILIES = {
    "limit": ("0.4", "|"),
    "shape": ("tab:green", "D"),
    "AdaptiveMechanism, symmetric": ("tab:blue", "v"),
    "AdaptiveMechanism": ("tab:blue", "^"),
    "LocatedMechanism": ("tab:cyan", "o"),
    "mean of blocks": ("tab:cyan", "o"),
    "rounds of CoinPress, hull": ("tab:green", "D"),
    "CoinPress": ("tab:red", "s"),
    "rounds of CoinPress, noise": ("tab:red", "s"),
    "DP-RGD": ("tab:red", "s"),
    "ambient": ("tab:brown", "x"),
    "tangent": ("tab:orange", "+"),
    "log-Euclidean": ("tab:pink", "x"),
}
NAMES = {
    "limit": "limit: the best clip about the mean",
    "shape": "ours: noise with a shape",
    "rounds of CoinPress, hull": "ours: noise with a shape",
    "AdaptiveMechanism, symmetric": "ours: steps, told symmetric",
    "AdaptiveMechanism": "ours: steps",
    "LocatedMechanism": "ours: a search, or blocks",
    "mean of blocks": "ours: a search, or blocks",
    "CoinPress": "others: tuned steps or rounds",
    "DP-RGD": "others: tuned steps or rounds",
    "rounds of CoinPress, noise": "others: tuned steps or rounds",
    "ambient": "others: ambient noise",
    "tangent": "others: tangent noise",
    "log-Euclidean": "others: log-Euclidean",
}


def picture(found, path):
    """Draw the error of everybody over that of the best of ours."""
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(10, 0.42 * len(found) + 1.6), layout="constrained")
    for height, scores in enumerate(reversed(found)):
        least = min(own.distance[0] for own in scores if own.ours)
        for own in scores:
            if own.method.endswith("no noise") or own.method.startswith("sample"):
                continue  # far to the left
            family = next((name for name in FAMILIES if own.method.startswith(name)), "")
            rest = ("tab:blue", ".") if own.ours else ("tab:orange", ".") if own.ours is False else ("0.6", ".")
            color, marker = FAMILIES.get(family, rest)
            others = {True: "ours: one release", False: "others: one release", None: "not private"}
            label = NAMES.get(family, others[own.ours])
            shift = {True: 0.12, False: -0.12, None: 0.0}[own.ours]  # who is even does not hide the other
            axis.plot(own.distance[0] / least, height + shift, marker, color=color, alpha=0.75, label=label)
    axis.axvline(1.0, color="0.8", zorder=0)
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set_xlabel("mean distance over that of the best of ours")
    axis.set_yticks(range(len(found)), [str(scores[0].cell) for scores in reversed(found)], fontsize=8)
    handles = dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)


def kept(path: pathlib.Path | None) -> dict[str, list[Score]]:
    """What is done, by cell."""
    lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
    found = {}
    for line in lines:
        row = json.loads(line)
        errors = [
            {name: tuple(own) if isinstance(own, list) else own for name, own in s.items()} for s in row["scores"]
        ]
        each = [np.array(own.pop("each")) if own.get("each") else own.pop("each", None) for own in errors]
        found[row["cell"]] = [
            Score(row["cell"], **own, each=distances) for own, distances in zip(errors, each, strict=True)
        ]
    return found


def keep(path: pathlib.Path | None, scores: list[Score], seconds: float) -> None:
    """Add a cell to the file; of distances of replicates four digits, for comparisons in pairs."""
    if path is None:
        return
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False).stdout
    values = [own._asdict() for own in scores]
    for own in values:
        del own["cell"]
        own["each"] = None if own["each"] is None else [float(f"{value:.4g}") for value in own["each"]]
    row = {"cell": str(scores[0].cell), "commit": commit.strip(), "seconds": round(seconds), "scores": values}
    with open(path, "a", encoding="utf-8") as stream:
        stream.write(json.dumps(row) + "\n")


def runs(asked) -> Iterator[tuple[str, object]]:
    """Yield the name of each cell and a function that gives its scores."""
    means = [data_sets(cell, DATA_SETS) for cell in mean_cells(asked.full)]
    means += given_cells(asked.folder, DATA_SETS) if asked.full or asked.folder else []
    for cells in means:
        yield str(cells[0]), lambda cells=cells: of_means(cells, DRAWS)
    for cell in vector_cells(asked.full):
        yield str(cell), lambda cell=cell: of_vectors(cell, REPLICATES)


def main() -> None:
    """Print all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--part", default="0/1", help="K/M: cells K, K + M, ...")
    for flag in ("--full", "--picture", "--quick"):
        parser.add_argument(flag, action="store_true")
    asked = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    if asked.quick:
        print("Without most of ours, and with few draws: to see that it runs. Who wins means nothing here.")
        found = [of_means([Points(jgd.Sphere(2), CAP, 50, "mu", 1.0, data_set=k) for k in (0, 1)], 20, quick=True)]
        found.append(of_vectors(Vectors(2, 1000, 10.0, "rho", 0.5), 20, quick=True))
        for scores in found:
            _print(scores)
        summary(found)
        return
    print_machine()
    part, parts = map(int, asked.part.split("/"))
    done, names = kept(asked.keep), []
    for place, (name, run) in enumerate(runs(asked)):
        names.append(name)
        if name in done or place % parts != part:
            continue
        start = time.time()
        done[name] = run()
        keep(asked.keep, done[name], time.time() - start)
        _print(done[name])
        jax.clear_caches()  # each compiled program holds memory maps, of which a process may have 65,530
    found = [done[name] for name in names if name in done]
    summary(found)
    if asked.picture:
        picture(found, "docs/evidence/arena.png")


if __name__ == "__main__":
    main()
