"""Private mean curves against what one would write without this library: dense eigendecomposition in NumPy.

    python -m benchmarks.compare.curves [--quick]

1000 records of 23 x 3 curves with 80 samples (the faces of Soto 2024, who report three minutes).
Both sides clip, average, smooth and add a draw of the process. NumPy decomposes the kernel matrix once per call,
as scikit-fda's basis smoothers do; scikit-fda itself draws the noise where it is installed.
"""

import argparse
import resource
import sys

import jax
import numpy as np

from benchmarks.tools.timing import (
    measure,
    milliseconds,
    print_machine,
    print_table,
    ratio,
    restart_with_fair_environment,
)
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel

CURVES, SAMPLES = 69, 80
KERNEL, PENALTY, BOUND, MU = PeriodicKernel(0.5), 0.01, 1.0, np.tile([0.2, 0.2, 0.55], 23)


def dense(data, generator, num):
    """Releases (num, J, m) by dense linear algebra."""
    n = len(data)
    angle = 2.0 * np.pi * np.arange(SAMPLES) / SAMPLES
    gap = np.abs(angle[:, None] - angle[None, :])
    kernel = np.exp(-np.minimum(gap, 2.0 * np.pi - gap) / KERNEL.length_scale)
    values, vectors = np.linalg.eigh(kernel / SAMPLES)
    values = np.maximum(values, 0.0)
    norms = np.sqrt(np.mean(data**2, axis=-1))
    mean = (data * np.minimum(1.0, BOUND / norms)[..., None]).mean(axis=0)
    smooth = ((mean @ vectors) * (values / (values + PENALTY))) @ vectors.T
    scale = 2.0 * BOUND / n * np.max(np.sqrt(values) / (values + PENALTY)) / MU
    root = vectors * np.sqrt(SAMPLES * values)
    return smooth + scale[:, None] * (generator.normal(size=(num, CURVES, SAMPLES)) @ root.T)


def process_of_skfda(num):
    """Draws of the process alone by scikit-fda: ``num`` times all curves; None where it is not installed."""
    try:
        import skfda
    except ImportError:
        return None
    # Not closed: scikit-fda has no kernel on the circle.
    covariance = skfda.misc.covariances.Exponential(length_scale=KERNEL.length_scale)
    return lambda: (
        skfda.datasets.make_gaussian_process(
            n_samples=num * CURVES, n_features=SAMPLES, start=0.0, stop=2.0 * np.pi, cov=covariance
        ).data_matrix
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes: a test of the script")
    arguments = parser.parse_args()
    restart_with_fair_environment()
    jax.config.update("jax_enable_x64", True)
    print_machine()
    records, many, repeats = (50, 20, 2) if arguments.quick else (1000, 10_000, 11)
    generator = np.random.default_rng(0)
    host = np.cumsum(generator.normal(size=(records, CURVES, SAMPLES)), axis=-1) / 10.0
    data, mechanism = jax.numpy.asarray(host), FunctionalGaussianMechanism(KERNEL, PENALTY, BOUND, MU)
    key = jax.random.key(0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    jax.block_until_ready(mechanism.simulate(key, data, many))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / (2**30 if sys.platform == "darwin" else 2**20)
    rows = []
    for num, turns in ((1, repeats), (many, min(3, repeats))):
        tasks = {
            "jaxgeodp": lambda num=num: mechanism.simulate(key, data, num),
            "NumPy, dense": lambda num=num: dense(host, generator, num),
        }
        draws = process_of_skfda(num)
        if draws is not None:
            tasks["scikit-fda, noise only"] = draws
        if num == 1:
            tasks["jaxgeodp, release() with its checks and record"] = lambda: mechanism.release(host).value
        measured = measure(tasks, turns)
        for name, one in measured.items():
            speed = "" if name == "jaxgeodp" else ratio(one, measured["jaxgeodp"])
            rows.append([f"{num:,}", name, milliseconds(one.first), milliseconds(one.median), speed])
    title = f"{records} records of {CURVES} curves, {SAMPLES} samples: clip, mean, smoothing and draws"
    print_table(title, ["draws", "", "first call", "warm", "times ours"], rows)
    print(
        f"\n{many:,} draws: {grown:.2f} GiB on top of the data; the draws are {many * CURVES * SAMPLES / 2**27:.2f} GiB"
    )


if __name__ == "__main__":
    main()
