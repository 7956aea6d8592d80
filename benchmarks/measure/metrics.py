"""Three metrics on SPD matrices: what a private mean in each is off, in the affine-invariant distance.

    python -m benchmarks.measure.metrics [--quick]

Records are Wishart matrices with 3 k degrees of freedom about a matrix of condition 10. Each metric has the smallest
ball about its own mean that holds all records, and the whole budget: `LaplaceMechanism` for epsilon = 1, and for mu = 1
`GibbsMechanism`, which in a flat metric is the Gaussian mechanism. Errors are distances from the affine-invariant mean;
in brackets that of the metric's own mean without any noise.
"""

import argparse

import jax
import numpy as np

import jaxgeodp as jgd
from benchmarks.tools.timing import print_machine, print_table

METRICS = (jgd.SPD, jgd.LogEuclidean, jgd.LogCholesky)


def wishart(size, n):
    """Records, (n, size, size)."""
    rng = np.random.default_rng(size)
    root = np.linalg.qr(rng.normal(size=(size, size)))[0] * np.geomspace(1.0, np.sqrt(10.0), size)
    draws = root @ rng.normal(size=(n, size, 3 * size))
    return draws @ draws.swapaxes(1, 2) / (3 * size)


def error(size, metric, n, strength, draws):
    """Mean distance of releases, and that of the mean, from the affine-invariant mean; and the ball's radius."""
    space, own, data = jgd.SPD(size), metric(size), wishart(size, n)
    truth, mean = jgd.frechet_mean(space, data), jgd.frechet_mean(own, data)
    radius = 1.001 * float(jax.jit(jax.vmap(lambda x: own.dist(mean, x)))(data).max())
    ball = jgd.GeodesicBall(own, mean, radius)
    mechanism = (jgd.LaplaceMechanism if strength == "epsilon" else jgd.GibbsMechanism)(ball, 1.0)
    values = mechanism.simulate(jax.random.key(0), data, draws)
    distances = jax.jit(jax.vmap(lambda x: space.dist(truth, x)))(values)
    return float(distances.mean()), float(space.dist(truth, mean)), radius


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one size, few draws: a test of the script")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print_machine()
    rows = []
    for size in (2,) if arguments.quick else (2, 3, 6):
        for n in (200,) if arguments.quick else (200, 2000):
            for strength in ("epsilon", "mu"):
                row = [f"{size}", f"{n}", f"{strength} = 1"]
                for metric in METRICS:
                    try:
                        found, apart, radius = error(size, metric, n, strength, 20 if arguments.quick else 500)
                        row.append(f"{found:.4f} ({apart:.4f}; r = {radius:.2f})")
                    except ValueError:
                        row.append("no such law")
                rows.append(row)
    print_table("Error (of the mean itself; radius)", ["size", "n", "budget", *(m.__name__ for m in METRICS)], rows)


if __name__ == "__main__":
    main()
