"""Numbers that theorems give: scales and supports of Theorem J and of the Riemannian Gaussian, and shares of proposals.

    python -m benchmarks.measure.scales [--quick]

Prints three tables of docs/mathematics.md in Markdown: sections 3 (scale and support of KNG), 11 (scale of
`RiemannianGaussian`) and 7 (share of proposals that are accepted; records within .3 r of the centre). Only the last has
random numbers; its shares are of 200 draws, of 20 where hardly any proposal is accepted.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.tools.timing import print_machine, print_table
from jaxgeodp import (
    SPD,
    FrechetMedian,
    GeodesicBall,
    Grassmann,
    Hyperbolic,
    KNGMechanism,
    PlanarShapes,
    PowerMean,
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
ACCEPTED = [(Sphere(2), 0.5), (SPD(2), 1.5), (SPD(3), 1.5), (PlanarShapes(10), 0.3)]
STATISTICS = {"median": FrechetMedian(), "p = 3": PowerMean(3.0), "p = 1.5": PowerMean(1.5)}


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


def accepted(cases, statistics, sizes):
    """The table of section 7."""
    rows = []
    for manifold, radius in cases:
        row = [f"{manifold}, r = {radius:.4g}"]
        for name, statistic in statistics.items():
            for n, epsilon in sizes:
                ball = ball_of(manifold, radius)
                law = KNGMechanism(ball, epsilon, statistic=statistic).law(n)
                few = manifold.dim > 10 and name != "median"
                share = _share(law, records_of(ball, n), jax.random.key(n), 20 if few else 200)
                row.append(f"{share:.2g}")
        rows.append(row)
    print_table(
        "Accepted",
        ["", *(f"{name}, n = {n}, ε = {epsilon:g}" for name in statistics for n, epsilon in sizes)],
        rows,
    )


def records_of(ball, n):
    """Records of which the logarithms are uniform in a ball of radius .3 r."""
    generator, dim = np.random.default_rng(0), ball.manifold.dim
    vectors = generator.normal(size=(n, dim))
    vectors *= 0.3 * ball.radius * generator.random((n, 1)) ** (1.0 / dim) / np.linalg.norm(vectors, axis=1)[:, None]
    origin = jnp.asarray(ball.center)
    frame = ball.manifold.frame(origin)
    return jax.vmap(lambda own: ball.manifold.exp(origin, ball.manifold.combine(own, frame)))(jnp.asarray(vectors))


def _share(law, records, key, num):
    home, points, _ = law.at_home(records)
    return float(jax.jit(lambda key: home.draws(key, points, home.center(points), num, 256).acceptance)(key))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the first case of each table")
    most = 1 if parser.parse_args().quick else None
    jax.config.update("jax_enable_x64", True)
    print_machine()
    calibrated(CALIBRATED[:most])
    gaussian(GAUSSIAN[:most], (10, 100, 1000)[:most])
    accepted(ACCEPTED[:most], dict(list(STATISTICS.items())[:most]), ((100, 1.0), (1000, 10.0))[:most])


if __name__ == "__main__":
    main()
