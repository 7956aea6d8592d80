"""What the running time of a release tells about two neighbours, with and without a fixed number of proposals.

    python benchmarks/release_time.py

The neighbours are chosen to differ in the acceptance of the rejection sampler as much as one record can make them.
Releases of the two are interleaved. The advantage is that of the best threshold: probability of guessing right, less
1/2, times 2 (0: time tells nothing; 1: it tells all); critical value: the Kolmogorov-Smirnov test's at 1e-6.
"""

import functools
import math
import time
from unittest import mock

import numpy as np
from scipy import stats
from timing import print_machine

from jaxgeodp import GeodesicBall, Hyperbolic, KNGMechanism, LaplaceMechanism, Sphere, TangentLaplace
from jaxgeodp.mechanisms import density
from jaxgeodp.privacy import adversarial_neighbours

RELEASES = 1500
N = 2


def times(mechanism, pair, **options):
    """Seconds of releases, (RELEASES, 2)."""
    for data in pair:
        mechanism.release(data, **options)
    seconds = np.empty((RELEASES, 2))
    order = np.random.default_rng(0).integers(2, size=RELEASES)
    for row, first in zip(seconds, order, strict=True):
        for which in (first, 1 - first):
            start = time.perf_counter()
            mechanism.release(pair[which], **options)
            row[which] = time.perf_counter() - start
    return seconds


def main():
    """Print the table."""
    print_machine()
    critical = stats.kstwobign.isf(1e-6) * math.sqrt(2.0 / RELEASES)
    print(f"n = {N}, {RELEASES} releases of each of two neighbours; advantages above {critical:.3f} are no chance")
    print("| mechanism | mode | median ms | median ms, neighbour | 99 % ms | 99 % ms, neighbour | advantage |")
    print("|---|---|---|---|---|---|---|")
    sphere = GeodesicBall(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.7)
    hyperbolic = GeodesicBall(Hyperbolic(3), np.array([1.0, 0.0, 0.0, 0.0]), 1.5)
    naive = KNGMechanism(hyperbolic, 20.0)
    one = functools.partial(density.rejection_sample, proposal_limit=1)
    with mock.patch.object(density, "_RELEASE_BLOCK", 1), mock.patch.object(density, "rejection_sample", one):
        print_row("PLANTED: a call per proposal, " + label(naive), "default", naive, "centre", {})
    for mechanism, name, options in (
        (naive, "centre", {}),
        (naive, "centre", {"delta": 1e-6}),
        (KNGMechanism(sphere, 20.0), "centre", {}),
        (KNGMechanism(sphere, 20.0), "centre", {"delta": 1e-6}),
        (LaplaceMechanism(sphere, 1.0), "edge", {}),
        (LaplaceMechanism(sphere, 1.0), "edge", {"delta": 1e-6}),
        (TangentLaplace(sphere, 1.0), "edge", {}),
        (TangentLaplace(sphere, 1.0), "edge", {"numerics": "grid"}),
    ):
        mode = ", ".join(f"{key}={value}" for key, value in options.items()) or "default"
        print_row(label(mechanism), mode, mechanism, name, options)


def label(mechanism):
    return f"{type(mechanism).__name__} on {mechanism.ball.manifold}"


def print_row(title, mode, mechanism, name, options):
    start, end = adversarial_neighbours(mechanism.ball, N)[name]
    pair = (start, np.concatenate([start[:-1], start[:1]]) if name == "centre" else end)
    seconds = times(mechanism, pair, **options)
    advantage = stats.ks_2samp(*seconds.T).statistic
    row = (*1e3 * np.median(seconds, axis=0), *1e3 * np.quantile(seconds, 0.99, axis=0))
    print(f"| {title} | {mode} | {' | '.join(f'{x:.2f}' for x in row)} | {advantage:.3f} |", flush=True)


if __name__ == "__main__":
    main()
