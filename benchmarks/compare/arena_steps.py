"""Releases in steps against two steps of gradient descent, in the arena's cells of means, on several data sets each.

    python -m benchmarks.compare.arena_steps [--data-sets 5] [--draws 200] [--quick]

The rival, which anybody could write, is told its shares and clips by other draws of the same data (36 schedules, by an
error that nobody who has to choose could know). *One release* is the best in a cell of ours and others' that release
once. *Limit* is what the best clip about the true mean would have with the whole budget, which nobody knows.
"""

import argparse
import time

import jax
import numpy as np

import jaxgeodp as jgd
from benchmarks.compare.arena import mean_cells
from benchmarks.compare.arena_descents import descent, schedules
from benchmarks.compare.arena_means import SEARCH, Points, entries, records
from benchmarks.tools.timing import print_machine

PILOTS, CLIPS = 50, 60
STEPS = ("AdaptiveMechanism", "AdaptiveMechanism, symmetric")
HEADS = ("one release", "two steps, tuned", "limit", *STEPS)


def rounds(budget: str) -> dict:
    """Two steps, the second where the first has found the records."""
    return {name: own for name, own in schedules(budget).items() if "then" in name}


def limit(cell: Points, data, truth) -> float:
    """Of the mean of logarithms at the truth, shortened to the best clip, plus noise, over how much it moves."""
    space, dim = cell.space, cell.space.dim
    frame = space.frame(truth)
    logs = np.asarray(jax.vmap(lambda x: space.coordinates(truth, space.log(truth, x), frame))(data))
    lengths, draws = np.linalg.norm(logs, axis=1), np.random.default_rng(0)
    noise = draws.normal(size=(4000, dim))
    if cell.budget == "epsilon":
        noise *= draws.gamma(dim, size=(4000, 1)) / np.linalg.norm(noise, axis=1, keepdims=True)
    least = np.inf
    for clip in np.geomspace(0.05, 2.0, CLIPS) * cell.radius:
        mean = np.mean(logs * np.minimum(1.0, clip / lengths)[:, None], axis=0)
        slope = np.mean(np.where(lengths < clip, 1.0, (1.0 - 1.0 / dim) * clip / lengths))
        values = mean + 2.0 * clip / (cell.n * cell.strength) * noise
        least = min(least, float(np.mean(np.linalg.norm(values, axis=1))) / max(slope, 1e-9))
    return least


def errors(cell: Points, data_set: int, draws: int, quick: bool) -> dict[str, float]:
    """Mean distances from the mean of one data set."""
    data = records(cell, data_set)
    truth = jgd.frechet_mean(cell.space, data)

    def error(values):
        return float(np.mean(jax.vmap(lambda x: cell.space.dist(truth, x))(values)))

    found = {}
    for place, (name, (_, mechanism)) in enumerate(entries(cell).items()):
        if (
            name == SEARCH
            or name.startswith(("ambient", "log-Euclidean"))
            or (quick and not name.startswith(("Wrapped", *STEPS)))
        ):
            continue
        try:
            found[name] = error(mechanism.simulate(jax.random.key(200 + 100 * data_set + place), data, draws))
        except ValueError:
            continue  # no such law for this n
    once = min(own for name, own in found.items() if name not in STEPS)

    def of_schedule(own, key, count):
        keys = jax.random.split(jax.random.key(key), count)
        return error(descent(cell.ball, data, cell.budget, cell.strength, own, keys))

    tried = rounds(cell.budget)
    best = min(tried.values(), key=lambda own: of_schedule(own, 6 + 100 * data_set, PILOTS))
    two = of_schedule(best, 3 + 100 * data_set, draws)
    return {"one release": once, "two steps, tuned": two, "limit": limit(cell, data, truth)} | {
        name: found.get(name, np.nan) for name in STEPS
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-sets", type=int, default=5)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="one cell, few draws: to see that it runs")
    asked = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    start, ratios = time.time(), {name: [] for name in STEPS}
    print_machine()
    print("\n| cell | " + " | ".join([*HEADS, *(f"{name}, over two steps" for name in STEPS)]) + " |")
    print("|---" * (len(HEADS) + 3) + "|")
    for cell in mean_cells(False)[: 1 if asked.quick else None]:
        draws, data_sets = (20, 1) if asked.quick else (asked.draws, asked.data_sets)
        all_found = [errors(cell, own, draws, asked.quick) for own in range(1, data_sets + 1)]
        row = []
        for name in STEPS:
            each = [found[name] / found["two steps, tuned"] for found in all_found]
            ratios[name].append(float(np.exp(np.mean(np.log(each)))))
            row.append(f"{ratios[name][-1]:.2f}")
        means = [f"{np.mean([found[name] for found in all_found]):.4f}" for name in HEADS]
        print(f"| {cell} | " + " | ".join([*means, *row]) + " |", flush=True)
        jax.clear_caches()
    for name, own in ratios.items():
        print(f"\n{name}: geometric mean {np.exp(np.mean(np.log(own))):.3f} of two steps, largest {max(own):.2f}")
    print(f"\n{(time.time() - start) / 60.0:.0f} minutes")


if __name__ == "__main__":
    main()
