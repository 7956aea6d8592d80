"""What the running time of a release tells about two neighbours, with and without a fixed number of proposals.

    python -m benchmarks.audit.release_time [--quick]

The neighbours are chosen to differ in the acceptance of the rejection sampler as much as one record can make them.
Releases of the two are interleaved. The advantage is that of the best threshold: probability of guessing right, less
1/2, times 2 (0: time tells nothing; 1: it tells all); critical value: the Kolmogorov-Smirnov test's at 1e-6.

On the grid the time could tell about the noise, and so, together with the value, about the records. Two more tables:
how the time of one number of noise depends on its size, and what value and time tell together of two neighbours.
"""

import argparse
import functools
import math
import secrets
import time
from typing import NamedTuple
from unittest import mock

import numpy as np
from scipy import stats

from benchmarks.audit.audited import WithCost, laplace_by_coin_tosses, noise_on_a_line
from benchmarks.tools.timing import print_machine
from jaxgeodp import Euclidean, GeodesicBall, Hyperbolic, KNGMechanism, LaplaceMechanism, Sphere, TangentLaplace
from jaxgeodp.privacy import adversarial_neighbours
from jaxgeodp.releases import density, noise
from jaxgeodp.samplers.discrete import discrete_gaussian, discrete_laplace

N = 2


class Sizes(NamedTuple):
    """How many."""

    releases: int = 1500
    noises: int = 20_000
    pairs: int = 150_000


def times(releases, mechanism, pair, **options):
    """Seconds of releases, (releases, 2)."""
    for data in pair:
        mechanism.release(data, **options)
    seconds = np.empty((releases, 2))
    order = np.random.default_rng(0).integers(2, size=releases)
    for row, first in zip(seconds, order, strict=True):
        for which in (first, 1 - first):
            start = time.perf_counter()
            mechanism.release(pair[which], **options)
            row[which] = time.perf_counter() - start
    return seconds


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few of all: a test of the script")
    sizes = Sizes(30, 300, 15_000) if parser.parse_args().quick else Sizes()
    print_machine()
    critical = stats.kstwobign.isf(1e-6) * math.sqrt(2.0 / sizes.releases)
    print(
        f"n = {N}, {sizes.releases} releases of each of two neighbours; advantages above {critical:.3f} are no chance"
    )
    print("| mechanism | mode | median ms | median ms, neighbour | 99 % ms | 99 % ms, neighbour | advantage |")
    print("|---|---|---|---|---|---|---|")
    sphere = GeodesicBall(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.7)
    hyperbolic = GeodesicBall(Hyperbolic(3), np.array([1.0, 0.0, 0.0, 0.0]), 1.5)
    naive = KNGMechanism(hyperbolic, 20.0)
    one = functools.partial(density.rejection_sample, proposal_limit=1)
    single = mock.patch.object(density.DensityLaw, "_block", lambda *_: 1)
    with single, mock.patch.object(density, "rejection_sample", one):
        print_row(sizes.releases, "PLANTED: a call per proposal, " + label(naive), "default", naive, "centre", {})
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
        print_row(sizes.releases, label(mechanism), mode, mechanism, name, options)
    print_noise(sizes.noises)
    print_value_and_time(sizes.pairs)


def print_noise(noises):
    """Microseconds of single numbers of noise, as an affine function of their size.

    The slowest hundredth is left out: the machine did something else.
    """
    print(f"\n{noises} numbers of noise; mean time of the processor, and what the clock says")
    print("| sampler | scale | us, processor | us, median | us per scale of size | us more if negative |")
    print("|---|---|---|---|---|---|")
    for law in (laplace_by_coin_tosses, discrete_laplace, discrete_gaussian):
        for exponent in (28, 34, 40):
            scale = 2**exponent + 12345
            begun = time.thread_time()
            noise, seconds = np.array([_timed(law, scale) for _ in range(noises)]).T
            processor = (time.thread_time() - begun) / noises
            kept = seconds < np.quantile(seconds, 0.99)
            slopes = [_slope(of[kept], 1e6 * seconds[kept]) for of in (np.abs(noise), (noise < 0).astype(float))]
            planted = "PLANTED: " if law is laplace_by_coin_tosses else ""
            print(
                f"| {planted}{law.__name__} | 2^{exponent} | {1e6 * processor:.1f} | {1e6 * np.median(seconds):.1f} | "
                + " | ".join(f"{slope:.3f} ± {error:.3f}" for slope, error in slopes)
                + " |",
                flush=True,
            )


def _timed(law, scale):
    start = time.perf_counter()
    noise = law(scale, secrets.randbelow)
    return noise / scale, time.perf_counter() - start


def _slope(x, y):
    """Least squares, and its standard error."""
    line = stats.linregress(x, y)
    return line.slope, line.stderr


def print_value_and_time(pairs):
    """Lower bounds on epsilon, where 1 is promised, from values, from times, and from both together."""
    line = TangentLaplace(GeodesicBall(Euclidean(1), np.zeros(1), 1.0), 1.0)
    pair = adversarial_neighbours(line.ball, N)["edge"]
    print("\nvalue and time of releases on the grid together, on a line; promised: epsilon = 1; level 1e-6")
    print("| sampler | timed | pairs | value | time | value and time | verdict |")
    print("|---|---|---|---|---|---|---|")
    for law in (laplace_by_coin_tosses, discrete_laplace):
        name = f"PLANTED: {law.__name__}" if law is laplace_by_coin_tosses else law.__name__
        print_found(name, "noise", noise_on_a_line(line, pair, law, time.perf_counter, pairs))
        with mock.patch.object(noise, "discrete_laplace", law):
            for data in pair:
                line.release(data, numerics="grid")

            def draw(which):
                return line.release(pair[which], numerics="grid").value[0]

            print_found(name, "release", WithCost(line.guarantee, pair, draw, time.perf_counter, pairs // 10))


def print_found(name, timed, drawn):
    value, cost, both = (drawn.audit(**cells) for cells in ({"costs": 1}, {"values": 1}, {}))
    verdict = "broken" if both.violated else "not contradicted"
    bounds = " | ".join(f"{found.lower_bound:.3f}" for found in (value, cost, both))
    print(f"| {name} | {timed} | {drawn.served.shape[1]} | {bounds} | {verdict} |", flush=True)


def label(mechanism):
    return f"{type(mechanism).__name__} on {mechanism.ball.manifold}"


def print_row(releases, title, mode, mechanism, name, options):
    start, end = adversarial_neighbours(mechanism.ball, N)[name]
    pair = (start, np.concatenate([start[:-1], start[:1]]) if name == "centre" else end)
    seconds = times(releases, mechanism, pair, **options)
    advantage = stats.ks_2samp(*seconds.T).statistic
    row = (*1e3 * np.median(seconds, axis=0), *1e3 * np.quantile(seconds, 0.99, axis=0))
    print(f"| {title} | {mode} | {' | '.join(f'{x:.2f}' for x in row)} | {advantage:.3f} |", flush=True)


if __name__ == "__main__":
    main()
