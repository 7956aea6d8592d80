"""The arena: private means and covariances by all who have a method, at equal guarantees; where we lose, it says so.

    python -m benchmarks.compare.arena --keep FILE                  # the tables of docs/evidence/arena.md
    python -m benchmarks.compare.arena --keep FILE --folder FOLDER  # also data of others: measure.shapes_of_data
    python -m benchmarks.compare.arena --keep FILE --full           # also larger n and dimensions, another budget
    python -m benchmarks.compare.arena --keep FILE --part 0/2       # every second cell, for one of two processes
    python -m benchmarks.compare.arena --keep FILE --write          # no run: page and picture of what is there
    python -m benchmarks.compare.arena --quick                      # two cells without most of ours: that it runs

Who enters, by which calibration, and on which data is said in `arena_means`, `arena_covariances` and `rivals`. All keys
and seeds are fixed. Every number is a mean over data sets and draws with the standard error of the draws. FILE has a
line of JSON for each cell that is done, with its commit, seconds and a digest of the code: the same call runs what is
not there, or was run with other code. Processes with different parts can share it.
"""

import argparse
import dataclasses
import functools
import pathlib
import subprocess
import time
from collections.abc import Iterator

import jax
import numpy as np

import jaxgeodp as jgd
from benchmarks.compare.arena_cells import Points, given_cells, radius_of
from benchmarks.compare.arena_covariances import Vectors
from benchmarks.compare.arena_covariances import scores as covariance_scores
from benchmarks.compare.arena_means import SEARCH
from benchmarks.compare.arena_means import scores as mean_scores
from benchmarks.compare.arena_names import picture
from benchmarks.compare.arena_scores import (
    BUDGETS,
    HEADER,
    Score,
    by_frobenius,
    counts,
    overview,
    pooled,
    rows,
    table,
    verdict,
)
from benchmarks.measure.shapes_of_data import SETS
from benchmarks.tools.lines import add_row, rows_of
from benchmarks.tools.results import ROOT, digest, marked
from benchmarks.tools.timing import print_machine, print_table

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
    spaces = [(space, radius_of(space)) for space in (jgd.SPD(2), jgd.SPD(3), jgd.Sphere(2), jgd.Sphere(10))]
    matrices, _, sphere, _ = spaces
    cells = [Points(space, radius, 500, budget, 1.0) for space, radius in spaces for budget in BOTH]
    cells += [Points(*own, 50, "epsilon", 1.0) for own in (matrices, sphere)]
    cells += [Points(*own, 500, budget, 1.0, wide=True) for own in (matrices, sphere) for budget in BOTH]
    if full:
        wider = [(jgd.Sphere(2), 0.7), (jgd.Sphere(10), 0.7), (jgd.Sphere(50), radius_of(jgd.Sphere(50)))]
        longest = [(space, radius_of(space)) for space in (jgd.SPD(5), jgd.SPD(10))]
        cells += [Points(*own, 500, budget, 1.0) for own in wider for budget in BOTH]
        cells += [Points(*own, 5000, budget, 0.3) for own in (matrices, sphere) for budget in BOTH]
        cells += [Points(*own, 500, budget, 1.0) for own in longest for budget in BOTH]
    return cells


def data_sets(cell: Points, count: int) -> list[Points]:
    """Several data sets of one law; of large ones fewer."""
    large = cell.space.dim > 12 or cell.n > 1000
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
    chains = CHAINS // len(cells) if cells[0].n <= 50 and not quick else 0
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
    for kind, own in by_kind(found).items():
        print(f"\n{kind}: {counts(own)}")
        told = [[one for one in scores if not one.method.endswith(", symmetric")] for scores in own]
        print(f"without asserted symmetry: {counts(told)}")
    print("\nWhere we lose:\n")
    _print_losses(verdicts)
    print("\nWhere we lose if we are told the ball, as the others are, and do not search for one:\n")
    told = [[own for own in scores if own.method != SEARCH] for scores in found]
    _print_losses([(str(scores[0].cell), verdict(scores)) for scores in told])
    for kind, own in by_kind(found).items():
        print(f"\n{kind}\n\n{table(own)}")
    print("\n" + overview(found))
    print("\nEverybody's least error:\n")
    print("\n".join(f"- {cell}. {text}" for cell, text in verdicts))
    print("\nBy Frobenius error ours is:\n")
    print("\n".join(f"- {scores[0].cell}. {by_frobenius(scores)}" for scores in found if by_frobenius(scores)))


def by_kind(found) -> dict[str, list]:
    """The cells of each table: those of one part, one grid and one budget."""
    usual, larger = ([str(cell) for cell in mean_cells(full)] for full in (False, True))
    larger = [name for name in larger if name not in usual]
    given = [f"{name}, {BUDGETS[budget]}" for budget in BOTH for name in SETS]
    order = usual + given + [str(cell) for cell in vector_cells(True)] + larger
    kinds: dict[str, list] = {}
    for scores in sorted(found, key=lambda scores: order.index(str(scores[0].cell)) if scores[0].cell in order else -1):
        cell = str(scores[0].cell)
        part = "vectors" if "κ" in cell else "larger" if cell in larger else "normal" if cell[0] == "S" else "given"
        kinds.setdefault(f"{part} {cell.rpartition(', ')[2].partition(' ')[0]}", []).append(scores)
    return kinds


def write(found, page: pathlib.Path) -> None:
    """Put the tables into the page between their marks, and draw the picture beside it."""
    kinds = by_kind(found)
    tables = {name: f"\n{table(own)}\n" for name, own in kinds.items()}
    # Wide tables of vectors have a row a cell in the overview alone.
    first = [scores for name, own in kinds.items() if not name.startswith("larger") for scores in own]
    text = marked(page.read_text(), tables | {"overview": f"\n{overview(first)}\n"})
    page.write_text(text)
    picture(found, page.with_suffix(".png"))


def _print_losses(verdicts):
    losses = [f"- {cell}. {text.removeprefix('we lose: ')}" for cell, text in verdicts if text.startswith("we lose")]
    print("\n".join(losses) or "nowhere")


def kept(path: pathlib.Path | None) -> dict[str, list[Score]]:
    """What is done with this code, by cell."""
    found = {}
    for row in rows_of(path):
        if row.get("code") != code():
            continue
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
    row = {"cell": str(scores[0].cell), "commit": commit.strip(), "seconds": round(seconds), "code": code()}
    add_row(path, row | {"scores": values})


@functools.cache
def code() -> str:
    """A digest of what the numbers hang on."""
    paths = [*ROOT.glob("jaxgeodp/**/*.py"), *ROOT.glob("benchmarks/compare/rivals*.py")]
    paths += [path for path in ROOT.glob("benchmarks/compare/arena_*.py") if path.stem not in ("arena_names",)]
    paths.append(ROOT / "benchmarks/measure/shapes_of_data.py")
    numbers = (DATA_SETS, DRAWS, LARGE, REPLICATES, CHAINS)
    return f"{digest(str(path.relative_to(ROOT)) for path in paths)} {numbers}"


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
    for flag in ("--full", "--write", "--quick"):
        parser.add_argument(flag, action="store_true")
    asked = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    if asked.quick:
        print("Without most of ours, and with few draws: to see that it runs. Who wins means nothing here.")
        found = [
            of_means([Points(jgd.Sphere(2), np.pi / 8, 50, "mu", 1.0, data_set=k) for k in (0, 1)], 20, quick=True)
        ]
        found.append(of_vectors(Vectors(2, 1000, 10.0, "rho", 0.5), 20, quick=True))
        for scores in found:
            _print(scores)
        summary(found)
        return
    if asked.write:
        found = list(kept(asked.keep).values())
        if not found:
            raise SystemExit(f"{asked.keep} has no cell of this code: run them first.")
        return write(found, ROOT / "docs/evidence/arena.md")
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


if __name__ == "__main__":
    main()
