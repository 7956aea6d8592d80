"""How long releases of very many records take, and how much memory: records that are made block by block.

    python -m benchmarks.measure.scale [--quick] [--n 10000000 ...] [--workers 2]

SPD(3) matrices about a public centre, drawn when they are read and never kept: a mean of logarithms prepared in
processes that share the work and finished once, and a search for the ball, which reads all of them in each pass. Prints
a table in Markdown: seconds, records a second, and the largest memory of any process up to then.
"""

import argparse
import concurrent.futures
import multiprocessing
import resource
import time

import numpy as np

import jaxgeodp as jgd
from jaxgeodp.engines import prepared_in_turn
from jaxgeodp.releases import merged

BLOCK = 2**17
BALL = jgd.GeodesicBall(jgd.SPD(3), np.eye(3), 1.5)
MEAN = jgd.TangentLaplace(BALL, epsilon=1.0)
SEARCH = jgd.LocatedMechanism(jgd.SPD(3), "tangent", epsilon=1.0)


def block(place, n):
    """Records of one block, always the same ones: 2^10 matrices, each moved a little, to be quick."""
    rng = np.random.default_rng(place)
    count = min(BLOCK, n - place * BLOCK)
    a = 0.2 * rng.normal(size=(1024, 3, 3))
    few = np.eye(3) + a @ a.swapaxes(1, 2)
    scales = rng.uniform(0.9, 1.1, count)
    return few[rng.integers(0, 1024, count)] * scales[:, None, None]


def blocks(n):
    return range(-(-n // BLOCK))


def share(n, own, workers):
    """The state of every so-manieth block."""
    state = prepared_in_turn(MEAN, (block(place, n) for place in blocks(n) if place % workers == own))
    return state, memory()


def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="few records: a test of the script")
    parser.add_argument("--n", type=int, nargs="+", default=[10**7])
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    print("| what | records | seconds | records a second | memory, GiB |")
    print("|---|---|---|---|---|")
    for n in [3 * BLOCK] if arguments.quick else sorted(arguments.n):
        measure(n, arguments.workers)


def measure(n, workers):
    """Print the rows of n records."""
    start = time.perf_counter()
    with concurrent.futures.ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        parts = list(pool.map(share, *zip(*[(n, own, workers) for own in range(workers)], strict=True)))
    MEAN.finish(merged(state for state, _ in parts))
    tell(f"mean of logarithms, {workers} processes", n, start, max(peak for _, peak in parts))
    start = time.perf_counter()
    records = jgd.RecordBlocks(lambda: (block(place, n) for place in blocks(n)), (n, 3, 3))
    release = SEARCH.release(records, numerics="grid")
    tell(f"search for the ball and mean, one process, {len(release.record['stages'])} stages", n, start, memory())


def tell(what, n, start, peak):
    seconds = time.perf_counter() - start
    print(f"| {what} | {n:.0e} | {seconds:.0f} | {n / seconds:.2g} | {peak:.2f} |", flush=True)


if __name__ == "__main__":
    main()
