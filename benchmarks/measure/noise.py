"""Exact noise of integers by the array: how fast, and whether its law holds in a thousand million draws.

    python -m benchmarks.measure.noise [--quick] [--only additions]

The speed is that of calls for 10^6 integers with the operating system's generator, beside the sampler that draws one
by one and, where it is installed, OpenDP (pip install opendp); by one thread, and by two. Then the same draws added
to the integers of a release, which have no largest one (`privacy.grid.with_noise`), by the time of the processor. The
law is tested by chi-square: each integer a cell of its own, the rare ones together (scales 20 and 1000); or 4096
cells of about equal probability and the last 8 bits (scale 2^34 + 1). As a planted mistake the same counts are held
against the law of a scale that is one thousandth larger.
"""

import argparse
import secrets
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy import stats

from benchmarks.tools.timing import print_machine
from jaxgeodp.privacy.entropy import random_words
from jaxgeodp.privacy.grid import with_noise
from jaxgeodp.samplers.discrete import discrete_gaussian, discrete_laplace
from jaxgeodp.samplers.discrete_vectors import draws

LAWS = (discrete_laplace, discrete_gaussian)
AT_ONCE = 10**6
WIDE = 2**34 + 1


def rate(call, count, repeats=5, clock=time.perf_counter):
    """Draws a second, the median of so many calls."""
    call()
    times = []
    for _ in range(repeats):
        start = clock()
        call()
        times.append(clock() - start)
    return count / sorted(times)[repeats // 2]


def peer(law, scale):
    """OpenDP's measurement of a vector of integers, or None."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib")
    distance = dp.l2_distance(T=int) if law is discrete_gaussian else dp.l1_distance(T=int)
    domain = dp.vector_domain(dp.atom_domain(T=int))
    make = dp.m.make_gaussian if law is discrete_gaussian else dp.m.make_laplace
    return make(domain, distance, scale=float(scale))


def speeds(count):
    """Print the table of draws a second."""
    print("\n| law | scale | array, one thread | array, two threads | one by one | OpenDP |")
    print("|---|---|---|---|---|---|")
    for law in LAWS:
        for scale in (20, 1000, 2**30 + 7, WIDE):
            with ThreadPoolExecutor(2) as pool:
                own = rate(lambda law=law, scale=scale: draws(law, scale, count, random_words), count)
                both = rate(
                    lambda law=law, scale=scale: list(
                        pool.map(lambda _: draws(law, scale, count, random_words), range(2))
                    ),
                    2 * count,
                )
            few = count // 500
            single = rate(
                lambda law=law, scale=scale: [law(scale, secrets.randbelow) for _ in range(few)],  # noqa: B023
                few,
            )
            measurement = peer(law, scale)
            other = "" if measurement is None else f"{rate(lambda m=measurement: m([0] * few), few):,.0f}"  # noqa: B023
            print(f"| {law.__name__} | {scale} | {own:,.0f} | {both:,.0f} | {single:,.0f} | {other} |", flush=True)


def additions(count):
    """Print the table of draws alone, and of sums with Python's integers as releases make them."""
    print("\n| law | scale | draws a second of the processor | sums a second of the processor |\n|---|---|---|---|")
    steps = np.random.default_rng(0).integers(-(2**40), 2**40, count).astype(object)
    for law in LAWS:
        for scale in (1000, 2**30 + 7):
            alone, sums = (
                rate(call, count, clock=time.process_time)
                for call in (
                    lambda law=law, scale=scale: draws(law, scale, count, random_words),
                    lambda law=law, scale=scale: with_noise(law, steps, scale),
                )
            )
            print(f"| {law.__name__} | {scale} | {alone:,.0f} | {sums:,.0f} |", flush=True)


def narrow(law, scale):
    """Cells of draws of a small scale, and their probabilities for any scale."""
    edge = 12 * scale if law is discrete_gaussian else 60 * scale

    def probabilities(scale):
        sizes = np.abs(np.arange(-edge, edge + 1)) / scale
        found = np.exp(-(sizes**2) / 2 if law is discrete_gaussian else -sizes)
        return found / found.sum()

    return lambda found: np.bincount(np.clip(found, -edge, edge) + edge, minlength=2 * edge + 1), probabilities


def wide(law, scale):
    """Cells between quantiles of the continuous limit, whose distribution at half integers is exact to 2^-60."""
    limit = stats.norm if law is discrete_gaussian else stats.laplace
    edges = np.rint(limit.ppf(np.arange(1, 4096) / 4096) * scale).astype(np.int64)

    def probabilities(scale):
        return np.diff(np.concatenate([[0.0], limit.cdf((edges - 0.5) / scale), [1.0]]))

    return lambda found: np.bincount(np.searchsorted(edges, found, "right"), minlength=4096), probabilities


def last_bits(found):
    """How often each of the last 8 bits."""
    return np.bincount(found & 255, minlength=256)


def chi_square(counts, probabilities):
    """Statistic, degrees of freedom and p-value; cells with fewer than 20 expected draws are one."""
    expected = counts.sum() * probabilities
    kept = expected > 20
    rows = [np.append(of[kept], of[~kept].sum()) if not kept.all() else of for of in (counts, expected)]
    found = stats.chisquare(rows[0], rows[1])
    return f"{found.statistic:.1f} | {len(rows[0]) - 1} | {found.pvalue:.3g}"


def laws(count):
    """Print the table of tests."""
    print(f"\n{count:,} draws each")
    print("| law | scale | cells | chi-square | degrees | p | p of a scale 1.001 times as large | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for law in LAWS:
        for scale in (20, 1000, WIDE):
            cells, probabilities = (wide if scale == WIDE else narrow)(law, scale)
            counts, bits, start = 0, 0, time.perf_counter()
            for left in range(count, 0, -AT_ONCE):
                found = draws(law, scale, min(AT_ONCE, left), random_words)
                counts, bits = counts + cells(found), bits + last_bits(found)
            seconds = time.perf_counter() - start
            right, planted = (chi_square(counts, probabilities(own)) for own in (scale, 1.001 * scale))
            name = f"| {law.__name__} | {scale}"
            print(f"{name} | sizes | {right} | {planted.split()[-1]} | {seconds:.0f} |", flush=True)
            if scale == WIDE:
                print(f"{name} | last 8 bits | {chi_square(bits, np.full(256, 1 / 256))} | | |", flush=True)


def main():
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--only", choices=["speeds", "additions"], help="one table of speeds, and no laws")
    quick, only = vars(parser.parse_args()).values()
    print_machine()
    parts = {"speeds": speeds, "additions": additions}
    for name, part in parts.items():
        if only in (None, name):
            part(10**5 if quick else AT_ONCE)
    if only is not None:
        return
    laws(10**6 if quick else 10**9)


if __name__ == "__main__":
    main()
