"""What exact noise on a grid costs: error of releases and time, grid against idealized numerics.

    python -m benchmarks.measure.grid

Prints tables in Markdown; errors are root mean squares over releases.
"""

import math
import time

import jax
import numpy as np

from benchmarks.tools.timing import print_machine
from jaxgeodp import SPD, Euclidean, GeodesicBall, PlanarShapes, Sphere, TangentLaplace, WrappedGaussian
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel

N = 200
RELEASES = 200


def cases():
    """Name, mechanism, data, and what the error is."""
    square = np.exp(2j * math.pi * np.arange(50) / 50) / math.sqrt(50)
    balls = (
        GeodesicBall(Euclidean(1), np.zeros(1), 1.0),
        GeodesicBall(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.4),
        GeodesicBall(SPD(2), np.eye(2), 1.0),
        GeodesicBall(SPD(10), np.eye(10), 1.0),
        GeodesicBall(PlanarShapes(50), square, 0.3),
    )
    for ball in balls:
        data = np.stack([ball.center] * N)
        for mechanism in (TangentLaplace(ball, 1.0), WrappedGaussian(ball, 1.0)):
            yield str(ball.manifold), mechanism, data, lambda x, b=ball: float(b.manifold.dist(b.center, x))
    curves = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1.0, np.full(69, 0.35))
    yield "curves, J = 69, m = 80", curves, np.zeros((N, 69, 80)), lambda x: float(np.sqrt(np.mean(x**2)))


def main():
    """Print the table."""
    print_machine()
    print(
        f"n = {N}, {RELEASES} releases each, epsilon or mu = 1; root mean square error with standard error of the ratio"
    )
    print("| mechanism | on | idealized | grid | ratio | ms idealized | ms grid |")
    print("|---|---|---|---|---|---|---|")
    with jax.enable_x64(True):
        for where, mechanism, data, error in cases():
            row = []
            for numerics in ("idealized", "grid"):
                mechanism.release(data, numerics=numerics)
                start = time.perf_counter()
                values = [mechanism.release(data, numerics=numerics).value for _ in range(RELEASES)]
                milliseconds = (time.perf_counter() - start) / RELEASES * 1e3
                squares = np.array([error(value) ** 2 for value in values])
                mean = squares.mean()
                row.append((math.sqrt(mean), squares.std() / math.sqrt(RELEASES) / (2.0 * mean), milliseconds))
            (ideal, ideal_error, ideal_ms), (grid, grid_error, grid_ms) = row
            ratio = grid / ideal
            print(
                f"| {type(mechanism).__name__} | {where} | {ideal:.4g} | {grid:.4g} | {ratio:.3f} ± "
                f"{ratio * math.hypot(ideal_error, grid_error):.3f} | {ideal_ms:.1f} | {grid_ms:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
