"""Expected error of every mechanism against radius, number of records and dimension: a table and a figure.

    python -m benchmarks.measure.errors [--quick] [--out errors.png]

Errors are mean distances from the Frechet mean of public reference records, times n epsilon/(2r), so that the Euclidean
K-norm mechanism in R^d has the error d: what is above it is lost to curvature and calibration. Distances of values off
the manifold (dashed) are those of the ambient space.
"""

import argparse
import math

import jax
import matplotlib.pyplot as plt

from benchmarks.tools.timing import print_machine, print_table
from jaxgeodp import SPD, GeodesicBall, GibbsMechanism, PlanarShapes, Sphere
from jaxgeodp.mechanisms import plan_mechanisms
from jaxgeodp.pictures import color_of
from jaxgeodp.releases.expected import SPREAD, errors_of, reference_records

# Title, axis, and (value on the axis, manifold, radius, n).
PANELS = [
    ("S^2, n = 100", "radius", [(r, Sphere(2), r, 100) for r in (0.1, 0.2, 0.39, 0.55, 0.7)]),
    ("S^2, r = 0.39", "records", [(n, Sphere(2), 0.39, n) for n in (10, 30, 100, 1000)]),
    ("S^d, r = 0.39, n = 500", "dimension", [(d, Sphere(d), 0.39, 500) for d in (2, 5, 10, 20)]),
    ("SPD(2), n = 100", "radius", [(r, SPD(2), r, 100) for r in (0.5, 1.0, 1.5, 2.0)]),
    ("SPD(k), r = 1, n = 500", "dimension", [(SPD(k).dim, SPD(k), 1.0, 500) for k in (2, 3, 4)]),
    ("shapes, r = 0.19, n = 1600", "dimension", [(2 * k - 4, PlanarShapes(k), 0.19, 1600) for k in (4, 10, 26, 50)]),
]

# Manifold, radius, n, of what a public barrier is worth.
BARRIERS = [
    *((f"S^2, radius {r:g}", Sphere(2), r, 100) for r in (0.4, 0.6, 0.7, 0.76)),
    *((f"shapes, k = 8, radius {r:g}", PlanarShapes(8), r, 1600) for r in (0.19, 0.3, 0.35, 0.37)),
]
GAUSSIAN = ("gibbs", "wrapped-gaussian", "gaussian")

# Dashed: values off the manifold.
OFF = ("EuclideanLaplace", "LandmarkLaplace", "LandmarkLaplace (unaligned)")
# Numbers in a decade that have room beside an axis of so many times its beginning.
FACTORS = {8.0: (1, 1.5, 2, 3, 5, 7), 40.0: (1, 2, 5), math.inf: (1, 3)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one value per panel, few draws: a test of the script")
    parser.add_argument("--out", default="errors.png", help="the figure to write")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print_machine()
    figure, axes = plt.subplots(2, 3, figsize=(13, 7.5), layout="constrained")
    for axis, (title, label, cells) in zip(axes.flat, PANELS, strict=True):
        cells = cells[:1] if arguments.quick else cells
        errors, notes = {}, {}
        for column, (_, manifold, radius, n) in enumerate(cells):
            ball = GeodesicBall(manifold, manifold.origin, radius)
            for plan in plan_mechanisms(ball, n, 1.0, mu=1.0, draws=20 if arguments.quick else 500):
                unit = 2.0 * radius / n
                errors.setdefault(plan.mechanism, [None] * len(cells))[column] = plan.error / unit
                scale = plan.scale**0.5 if plan.mechanism == "GibbsMechanism" else plan.scale  # 1/k is a variance
                notes.setdefault(plan.mechanism, [None] * len(cells))[column] = scale / unit
        heads = [f"{label} {value:g}" for value, *_ in cells]
        rows = [
            [name, *(f"{e:.3g} ({s:.3g})" for e, s in zip(values, notes[name], strict=True))]
            for name, values in sorted(errors.items())
        ]
        print_table(
            f"{title}, epsilon = mu = 1: error and, in brackets, scale, times n/(2r)", ["mechanism", *heads], rows
        )
        for name, values in sorted(errors.items()):
            style = "o--" if name in OFF else "o-"
            axis.plot([cell[0] for cell in cells], values, style, color=color_of(name), markersize=3, label=name)
        axis.set(title=title, xlabel=label, ylabel="mean error n/(2r)", yscale="log")
        axis.set_xscale("log" if label != "radius" else "linear")
        axis.minorticks_off()
        axis.set_xticks([cell[0] for cell in cells], [f"{cell[0]:g}" for cell in cells])
        low, high = axis.get_ylim()
        factors = next(own for most, own in FACTORS.items() if high / low < most)
        ticks = [f * 10.0**p for p in range(4) for f in factors if 0.9 * low < f * 10.0**p < 1.1 * high]
        axis.set_yticks(ticks, [f"{t:g}" for t in ticks])
        jax.clear_caches()  # each compiled program holds memory maps, of which a process may have 65,530
    handles = {}
    for axis in axes.flat:
        handles.update(dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True)))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(arguments.out, dpi=110)
    print(f"\nwrote {arguments.out}")
    cells = BARRIERS[:1] if arguments.quick else BARRIERS
    print_table(
        "What a public barrier is worth, mu = 1: error times n/(2r)",
        ["", "with", "without", "gain", "best other", "over the best other"],
        [barrier_row(*cell, 20 if arguments.quick else 500) for cell in cells],
    )


def barrier_row(title, manifold, radius, n, draws):
    """Errors of the Gibbs mechanism with and without a barrier, and of the best other Gaussian mechanism."""
    ball, unit = GeodesicBall(manifold, manifold.origin, radius), 2.0 * radius / n
    plans = {own.name: own.error / unit for own in plan_mechanisms(ball, n, mu=1.0, draws=draws, names=GAUSSIAN)}
    own = plans.pop("gibbs")
    bare = GibbsMechanism(ball, 1.0, support_radius=radius, barrier_radius=radius)
    errors = errors_of(bare.law(n), *reference_records(ball, SPREAD), draws, True)
    without = float(errors.mean()) / unit
    best = min((error for error in plans.values() if error == error), default=float("nan"))
    jax.clear_caches()
    return [title, *(f"{value:.3g}" for value in (own, without, without / own, best, own / best))]


if __name__ == "__main__":
    main()
