"""Numbers that theorems give: scales and supports of Theorem J, and scales of the Riemannian Gaussian.

    python -m benchmarks.measure.scales [--quick]

Prints two tables of docs/mathematics.md in Markdown, sections 3 and 11. Nothing in them is random.
"""

import argparse

import jax
import numpy as np

from benchmarks.tools.timing import print_machine, print_table
from jaxgeodp import (
    SPD,
    GeodesicBall,
    Grassmann,
    Hyperbolic,
    KNGMechanism,
    PlanarShapes,
    Product,
    RiemannianGaussian,
    Rotations,
    Sphere,
)
from jaxgeodp.bounds import gradient_sensitivity

CALIBRATED = [
    (Sphere(2), np.pi / 8, 50),
    (Sphere(2), np.pi / 8, 100),
    (Sphere(2), np.pi / 8, 400),
    (PlanarShapes(50), 0.19, 1600),
    (PlanarShapes(50), 0.19, 6000),
    (PlanarShapes(10), 0.19, 400),
    (Hyperbolic(2), 1.0, 50),
    (Rotations(), 0.5, 100),
    (SPD(2), 1.0, 50),
    (SPD(2), 1.0, 100),
    (SPD(2), 1.5, 100),
    (SPD(3), 1.0, 100),
    (SPD(10), 1.0, 400),
    (Grassmann(5, 2), 0.3, 400),
    (Product(Sphere(2), SPD(2)), 0.3, 100),
]
GAUSSIAN = [(Sphere(2), 0.39), (Rotations(), 0.7), (Hyperbolic(2), 1.0), (Hyperbolic(5), 1.0)]


def ball_of(manifold, radius):
    """A ball about the origin."""
    return GeodesicBall(manifold, np.asarray(manifold.origin), radius)


def calibrated(cases):
    """The table of section 3."""
    rows = []
    for manifold, radius, n in cases:
        ball, unit = ball_of(manifold, radius), 2.0 * radius / n
        law = KNGMechanism(ball, 1.0).law(n)
        ours, theirs = (2.0 * gradient_sensitivity(ball, n, radius, name).value for name in ("tight", "theorem"))
        cells = [f"{law.scale / unit:.3f} ({law.support.radius / radius:.2f})", f"{ours / unit:.3f}"]
        rows.append([f"{manifold}, r = {radius:.4g}", str(n), *cells, f"{theirs / unit:.3f}"])
    print_table("Scale in units of 2r/n (support R/r), ε = 1", ["", "n", "Theorem J", "2Δ/ε", "paper"], rows)


def gaussian(cases, sizes):
    """The table of section 11."""
    rows = [
        [
            f"{manifold}, r = {radius:.4g}",
            *(f"{law.scale / law.terms.sensitivity:.3f}" for law in map(mechanism.law, sizes)),
        ]
        for manifold, radius in cases
        for mechanism in [RiemannianGaussian(ball_of(manifold, radius), 1.0)]
    ]
    print_table("Scale in units of Δ/μ, μ = 1", ["", *(f"n = {n}" for n in sizes)], rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the first case of each table")
    most = 1 if parser.parse_args().quick else None
    jax.config.update("jax_enable_x64", True)
    print_machine()
    calibrated(CALIBRATED[:most])
    gaussian(GAUSSIAN[:most], (10, 100, 1000)[:most])


if __name__ == "__main__":
    main()
