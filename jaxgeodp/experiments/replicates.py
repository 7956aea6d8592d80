"""Many replicates of data, mean and private draw in one compiled program, for all numbers of records up to a size."""

import functools
import math
import zlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.experiments.generators import Generator
from jaxgeodp.manifolds import SPD, PlanarShapes
from jaxgeodp.manifolds.manifold import real_dtype
from jaxgeodp.mechanisms import EuclideanLaplace, LandmarkLaplace
from jaxgeodp.mechanisms.mechanism import Mechanism
from jaxgeodp.statistics import FrechetMean, frechet_mean
from jaxgeodp.statistics.records import WeightedRecords

# Bytes of records that one block of replicates may hold.
_BLOCK_BYTES = 2**25
_LARGEST_BLOCK = 4096
# Proposals per round and replicate: lanes wait for the slowest, so few; two where nearly all are accepted.
_PROPOSALS = 2


class Errors(NamedTuple):
    """What replicates measure; arrays (replicates,)."""

    distance: np.ndarray  #: geodesic distance of the released value from the Frechet mean, NaN off the manifold
    euclidean: np.ndarray  #: distance in the ambient space: of vech for matrices, after rotation for shapes
    on_manifold: np.ndarray  #: whether the value is a point of the manifold
    proposals: np.ndarray  #: proposals that the sampler made


def run_replicates(
    mechanism: Mechanism, generator: Generator, n: int, replicates: int, seed: int = 0, label: str = "", first: int = 0
) -> Errors:
    """Errors of a mechanism over independent data sets of n records each: reproducible from ``seed``.

    Replicate j depends on the seed, ``label`` and j alone, whatever the block size or the number of devices. Its data
    depend on the seed and j only, so that mechanisms are compared on the same data.

    Args:
        mechanism: for the Frechet mean.
        generator: of the records.
        n: records per data set, at least 2.
        replicates: how many.
        seed: an integer.
        label: names the stream of noise.
        first: number of the first replicate.

    Raises:
        ValueError: a number is out of range, or the mechanism is for another statistic.
    """
    positive_integer("run_replicates", "n", n, 2)
    positive_integer("run_replicates", "replicates", replicates, 1)
    statistic = getattr(mechanism, "statistic", None)
    if statistic is not None and not isinstance(statistic, FrechetMean):
        raise InputError(f"run_replicates: needs the Frechet mean, got {statistic.description}.")
    size = padded_size(n)
    block = block_size(generator.ball.manifold, size, replicates)
    key = jax.random.fold_in(jax.random.key(seed), zlib.crc32(b"data"))
    noise_key = jax.random.fold_in(jax.random.key(seed), zlib.crc32(label.encode()))
    with jax.enable_x64(True):
        calibration = mechanism.calibrate(n)
        program = mechanism._program(), generator, key, noise_key
        parts = []
        for start in range(first, first + replicates, block):
            numbers = np.arange(start, start + block, dtype=np.uint32)
            parts.append(_block(*program, numbers, n, calibration.scale, calibration.support, size))
        joined = (np.concatenate([np.asarray(x) for x in column])[:replicates] for column in zip(*parts, strict=True))
        return Errors(*joined)


def padded_size(n: int) -> int:
    """Sizes of compiled programs: powers of 4 times 32, so that at most three quarters of a program idle."""
    return 32 * 4 ** max(0, math.ceil(math.log(n / 32, 4) - 1e-9))


def block_size(manifold, size: int, replicates: int) -> int:
    """Replicates per block: equal blocks, within the bounds of memory."""
    width = math.prod(manifold.shape) * (16 if manifold.dtype_kind == "complex" else 8)
    most = max(1, min(_LARGEST_BLOCK, _BLOCK_BYTES // (width * size)))
    return math.ceil(replicates / math.ceil(replicates / most))


@functools.partial(jax.jit, static_argnames="size")
def _block(mechanism, generator, key, noise_key, numbers, n, scale, support, size):
    def replicate(number):
        points = generator.records(jax.random.fold_in(key, number), size)  # in the ball: nothing to clip
        weights = jnp.where(jnp.arange(size) < n, 1.0 / n, 0.0).astype(real_dtype(points))
        records = WeightedRecords(points, weights)
        mean = frechet_mean(mechanism.ball.manifold, *records)
        draw_key = jax.random.fold_in(noise_key, number)
        draws = mechanism._draws_around(draw_key, records, mean, scale, support, 1, _PROPOSALS)
        return Errors(*_errors(mechanism, mean, draws.points[0]), draws.proposals)

    return jax.vmap(replicate)(numbers)


def _errors(mechanism, mean, value):
    manifold = mechanism.ball.manifold
    off = isinstance(mechanism, LandmarkLaplace) or (isinstance(mechanism, EuclideanLaplace) and not mechanism.project)
    on_manifold = jnp.asarray(True)
    point = value
    if off:
        # A configuration is a shape up to its size; a symmetric matrix may be no covariance; a vector is no direction.
        on_manifold = manifold.admissible(value) if isinstance(manifold, SPD) else jnp.asarray(False)
        usable = manifold.admissible(value)
        point = manifold.project(jnp.where(usable, value, mean))
    distance = manifold.dist(mean, point)
    if off:
        known = usable if isinstance(manifold, PlanarShapes) else on_manifold
        distance = jnp.where(known, distance, jnp.nan)
    return distance, _euclidean(manifold, mean, value), on_manifold


def _euclidean(manifold, mean, value):
    if isinstance(manifold, PlanarShapes):
        overlap = jnp.vdot(mean, value)
        mean = mean * jnp.where(jnp.abs(overlap) > 0, overlap / jnp.abs(overlap), 1.0)
    difference = mean - value
    if isinstance(manifold, SPD):
        difference = difference[jnp.tril_indices(manifold.size)]  # vech
    return jnp.linalg.norm(difference.reshape(-1)).astype(real_dtype(mean))
