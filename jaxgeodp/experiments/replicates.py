"""Replicates of data, mean and private draw in one compiled program for all n up to a size."""

import functools
import math
import zlib
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.experiments.blocks import all_devices, block_size, in_blocks, on_each_device
from jaxgeodp.experiments.generators import Generator
from jaxgeodp.locating import LocatedMechanism
from jaxgeodp.manifolds.manifold import real_dtype
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.releases.law import Law, PointLaw
from jaxgeodp.statistics import FrechetMean, frechet_mean
from jaxgeodp.statistics.records import WeightedRecords

# Proposals per round and replicate: lanes wait for the slowest, so few; two where nearly all are accepted.
_PROPOSALS = 2


class Errors(NamedTuple):
    """Distances between released values and the Fréchet mean, arrays (replicates,)."""

    distance: np.ndarray  #: geodesic distance of the released value from the Frechet mean, NaN off the manifold
    euclidean: np.ndarray  #: distance in the ambient space, of vech for matrices, after rotation for shapes
    on_manifold: np.ndarray  #: whether the value is a point of the manifold
    proposals: (
        np.ndarray
    )  #: proposals that the sampler made; 0 where the ball was found, too, and in cells of one's own


def run_replicates(
    mechanism: BallMechanism | LocatedMechanism,
    generator: Generator,
    n: int,
    replicates: int,
    seed: int = 0,
    label: str = "",
    law: PointLaw | None = None,
    block: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Errors:
    """Return a mechanism's errors over independent data sets of n records, reproducible from ``seed``.

    Replicate j depends on the seed, ``label`` and j alone; on block size and number of devices in last bits only. Its
    data depend on the seed and j only, so that mechanisms are compared on the same data, and data sets of different n
    share their first records. Runs in double precision.

    Args:
        mechanism: for the Frechet mean. One that finds its ball has a program of its own for each n.
        generator: of the records, in the mechanism's ball.
        n: records per data set, at least 2.
        replicates: how many.
        seed: an integer.
        label: names the stream of noise.
        law: another than the mechanism's own, such as one with the scale that a paper printed.
        block: replicates at a time and device; chosen to bound the memory by default.
        progress: called with the number of replicates done since the last call.

    Returns:
        Arrays (replicates,).

    Raises:
        ValueError: a number is out of range, or the mechanism is for another statistic or refuses (see its `law`).
    """
    positive_integer("run_replicates", "n", n, 2)
    positive_integer("run_replicates", "replicates", replicates, 1)
    if not isinstance(mechanism.summarised, FrechetMean | None):
        raise InputError(f"run_replicates: needs the Frechet mean, got {mechanism.summarised.description}.")
    size, mesh = padded_size(n), all_devices()
    manifold = generator.ball.manifold
    if block is None:
        block = block_size(manifold, size, math.ceil(replicates / mesh.size))
    with jax.enable_x64(True):
        key, noise_key = jax.random.split(jax.random.key(seed))
        noise_key = jax.random.fold_in(noise_key, zlib.crc32(label.encode()))
        release = _release_of(mechanism.law(n) if law is None else law, manifold, n)

        def one_block(numbers):
            # Two programs, so that all mechanisms share that of the data.
            records, means = records_of(mesh, size, numbers, (generator, key, n))
            return release(mesh, (numbers, records, means), noise_key)

        *columns, complete = in_blocks(one_block, mesh, replicates, block, progress)
        if not complete.all():
            raise InputError(
                f"run_replicates: {np.sum(~complete)} of {replicates} draws of {type(mechanism).__name__} found no "
                "accepted proposal among millions: raise n or the privacy parameter, or lower the radius."
            )
        return Errors(*columns)


def padded_size(n: int) -> int:
    """Round n up to the size of a compiled program: 128 times a power of 4."""
    return 128 * 4 ** max(0, math.ceil(math.log(n / 128, 4) - 1e-9))


@functools.partial(jax.jit, static_argnums=(0, 1))
def records_of(mesh, size, numbers, common):
    """Return padded records and their mean for each replicate."""

    def replicate(number, generator: Generator, key, n: jax.Array):
        points = generator.records(jax.random.fold_in(key, number), size)  # in the ball: nothing to clip
        weights = jnp.where(jnp.arange(size) < n, 1.0 / n, 0.0).astype(real_dtype(points))
        return WeightedRecords(points, weights), frechet_mean(generator.ball.manifold, points, weights)

    return on_each_device(mesh, replicate, (numbers,), common)


@functools.partial(jax.jit, static_argnums=0)
def released(mesh, replicates, common):
    """Return the measurements of one draw for each replicate."""

    def replicate(number, records, mean, noise_key, law):
        key = jax.random.fold_in(noise_key, number)
        draws = law.draws(key, records, mean, 1, _PROPOSALS)
        return *_errors(law, mean, draws.points[0]), draws.proposals, draws.complete

    return on_each_device(mesh, replicate, replicates, common)


def _release_of(law: Law, manifold, n):
    """Return a function that releases and measures; refuse draws beyond double precision."""
    if not isinstance(law, PointLaw):
        return functools.partial(_searches, law, manifold, n)
    law.check()
    shared = law.unsized
    return lambda mesh, replicates, noise_key: released(mesh, replicates, (noise_key, shared))


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _searches(law, manifold, n, mesh, replicates, noise_key):

    def replicate(number, records, mean, noise_key):
        value = law.simulate(jax.random.fold_in(noise_key, number), records.points[:n], 1)[0]
        found = jnp.all(jnp.isfinite(value))
        return manifold.dist(mean, value), euclidean_distance(manifold, mean, value), found, jnp.zeros((), int), found

    return on_each_device(mesh, replicate, replicates, (noise_key,))


def _errors(law, mean, value):
    """Return distance, Euclidean distance, and whether the value is on the manifold."""
    manifold = law.ball.manifold
    point, found = law.as_point(value)
    distance = jnp.where(found, manifold.dist(mean, point), jnp.nan)
    return distance, euclidean_distance(manifold, mean, value), found


def euclidean_distance(manifold, mean, value) -> jax.Array:
    """Return the distance in free coordinates: lower triangles of matrices, aligned shapes."""
    difference = manifold.aligned(value, mean) - value
    return jnp.linalg.norm(manifold.free_coordinates(difference)).astype(real_dtype(mean))
