"""Wrapped normal law of a population, fitted to released moments (docs/mathematics.md, section 18).

All of it is post-processing of released numbers: whoever has the records can do it, and nothing is spent.
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError, short
from jaxgeodp.compiling import seen_anew
from jaxgeodp.inference.known_noise import KnownNoise, noise_of
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.nested_lists import from_lists
from jaxgeodp.samplers.wrapped import wrapped_point

# Of the noise of a variance, what stands for one that it hides: a matrix needs a shape, though it is nearly 0.
_HIDDEN = 1e-6
# Of the least eigenvalue of the second moment of fewer normal vectors than dimensions.
_LEAST_SHARE = 1e-12


@dataclasses.dataclass(frozen=True, eq=False)
class Population:
    """A wrapped normal law about a released mean.

    Attributes:
        manifold: of the points.
        mean: the released mean, a point.
        frame: orthonormal basis at the mean, (dim, \\*shape).
        covariance: (dim, dim) in that frame, of records clipped to the ball, positive semidefinite, without the known
            effects of noise.
        variance: its trace.
        variance_sd: standard deviation of the noise of ``variance``.
        noise: of the covariance that was released.
        n: number of records.
        kept: how much of the distance of the covariance from a multiple of the identity noise has left, 0 to 1.
        hidden: whether noise hides the variance: what was released is less than what noise alone may make of none.
        seen: the second moment as it was released, (dim, dim); ``covariance`` where it was not.
        law: covariance of the law that records are drawn from, where ``covariance`` is that of clipped ones: see
            `unclipped`.
        clipped: share of it that lies beyond the ball.
        wider: whether a still wider law would fit, of which two thirds or more were clipped.
        bound: what the variance of records in the ball cannot exceed: the square of its radius, as their Frechet mean
            is no farther from them, in mean square, than its centre.
    """

    manifold: Manifold
    mean: np.ndarray
    frame: np.ndarray
    covariance: np.ndarray
    variance: float
    variance_sd: float
    noise: KnownNoise
    n: int
    kept: float = 1.0
    hidden: bool = False
    seen: np.ndarray | None = None
    law: np.ndarray | None = None
    clipped: float = 0.0
    wider: bool = False
    bound: float = math.inf

    @property
    def most_variance(self) -> float:
        """Return a bound that the variance hardly exceeds, two standard deviations more, at most ``bound``.

        The true variance is no more than ``bound``, so that it is held as often as without that: in .953 to 1 of 300
        sets of 150 records in a small ball (docs/inference.md).
        """
        return min(self.variance + 2.0 * max(self.variance_sd, self.unknown * self.variance), self.bound)

    @property
    def unknown(self) -> float:
        """Return the standard deviation of the variance, by noise and sampling, in units of the variance."""
        if not self.variance > 0.0:
            return 0.0
        of_sample = 2.0 * float(np.sum(self.covariance**2)) / self.n
        return math.sqrt(self.variance_sd**2 + of_sample) / self.variance


def population_of(manifold: Manifold, mean, variance, covariance, mean_noise: float) -> Population:
    """Return the law that fits three releases.

    The variance, whose noise is the smallest, sets the trace, less what the noise of the mean adds to it, times
    n/(n - 1), as the mean has been fitted to the records, and at most r^2, which records in a ball of radius r cannot
    exceed. The matrix is drawn towards a multiple of the identity, so
    that it is nearly as far from that as it would be without its noise, and then to the nearest one that is positive
    semidefinite and has the trace: where few directions carry the spread, negative eigenvalues, which are noise, must
    not be set to 0 at the cost of the largest one alone.

    Args:
        manifold: of the points.
        mean, variance, covariance: releases; the last two about one point, of records clipped to the ball of their
            records.
        mean_noise: expected squared distance of the released mean from that of the records.
    """
    about = np.asarray(variance.record["about"])
    if not np.array_equal(about, np.asarray(covariance.record["about"])):
        raise InputError("population_of: variance and covariance must be about the same point.")
    dim, matrix = manifold.dim, np.asarray(covariance.value, float)
    of_variance, of_matrix = (noise_of(own.record) for own in (variance, covariance))
    variance_sd = math.sqrt(of_variance.mean_square(1))
    n = int(mean.record["n"])
    left = float(variance.value) - mean_noise
    bound = float(variance.record["ball"]["radius"]) ** 2
    trace = min(max(left, _HIDDEN * variance_sd) * n / (n - 1), bound)
    shape, kept = shape_of(matrix, of_matrix.mean_square(dim), trace / dim)
    kind = "complex128" if manifold.dtype_kind == "complex" else "float64"
    frame, mean_point = (from_lists(covariance.record[name], kind) for name in ("frame", "about"))
    target = np.asarray(mean.value)
    with jax.enable_x64(True):
        moved = np.asarray(carried(manifold, jnp.asarray(mean_point), jnp.asarray(target), jnp.asarray(frame)))
    seen = matrix - mean_noise / dim * np.eye(dim)
    spread = trace * shape, trace, variance_sd, of_matrix
    return Population(manifold, target, moved, *spread, n, kept, left <= 2.0 * variance_sd, seen, bound=bound)


def shape_of(matrix, noise: float, level: float) -> tuple[np.ndarray, float]:
    """Return a positive semidefinite matrix of trace 1, and how much of the anisotropy of a released one is not noise.

    Args:
        matrix: released, (dim, dim).
        noise: expected squared Frobenius norm of its noise.
        level: of the multiple of the identity that it is drawn towards.
    """
    dim = len(matrix)
    away = matrix - level * np.eye(dim)
    seen = float(np.sum(away**2))
    kept = math.sqrt(max(1.0 - noise / seen, 0.0)) if seen > 0.0 else 0.0
    total = level * dim
    if not total > 0.0:
        return np.eye(dim) / dim, kept
    values, vectors = np.linalg.eigh(level * np.eye(dim) + kept * away)
    return (vectors * (nearest_of_sum(values, total) / total)) @ vectors.T, kept


def nearest_of_sum(values, total: float) -> np.ndarray:
    """Return the nearest nonnegative numbers with a given positive sum: all less the same, or 0.

    Of eigenvalues, those of the nearest positive semidefinite matrix of a given trace in the Frobenius norm.

    Args:
        values: (dim,).
        total: their sum.
    """
    falling = np.sort(values)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    own: np.ndarray = np.maximum(values - excess[np.flatnonzero(falling >= excess)[-1]], 0.0)
    return own


@functools.partial(jax.jit, static_argnums=0)
def carried(manifold: Manifold, start, end, frame) -> jax.Array:
    """Return a frame after parallel transport; unchanged if the points are equal."""
    moved: jax.Array = jax.vmap(lambda own: manifold.transport(start, end, own))(frame)
    return jnp.asarray(jnp.where(manifold.dist(start, end) > 0.0, moved, frame))


def root_of(covariance) -> np.ndarray:
    """Return a matrix B with B B' = covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))


@functools.partial(jax.jit, static_argnums=(0, 5))
def draw_points(manifold: Manifold, mean, frame, root, key, n: int) -> jax.Array:
    """Return n points of a wrapped normal law, (n, \\*shape)."""
    normal = jax.random.normal(key, (n, manifold.dim), root.dtype)
    return jax.vmap(lambda z: wrapped_point(manifold, mean, frame, root, z))(normal)


@dataclasses.dataclass(frozen=True, eq=False)
class PrincipalGeodesics:
    """Geodesics through a released mean in the directions of largest spread.

    Attributes:
        manifold: of the points.
        mean: the released mean, a point.
        directions: unit tangent vectors at the mean, (dim, \\*shape), of falling variance.
        variances: along them, (dim,).
        intervals: of the variances, (dim, 2), in which all of them are with probability ``level``, nearly, for a
            wrapped normal population; not for one with wider tails, and where the ball clips, those of clipped records.
            The k-th ends at r^2/k at most, which records in a ball of radius r cannot exceed: no true variance is lost.
        level: coverage that the intervals aim at.
    """

    manifold: Manifold
    mean: np.ndarray
    directions: np.ndarray
    variances: np.ndarray
    intervals: np.ndarray
    level: float

    @property
    def hidden(self) -> np.ndarray:
        """Return which geodesics noise hides, (dim,); their intervals reach 0, their directions may be noise alone."""
        return self.intervals[:, 0] <= 0.0

    @property
    def shares(self) -> np.ndarray:
        """Return shares of the total variance."""
        total = float(np.sum(self.variances))
        return self.variances / total if total > 0.0 else np.zeros_like(self.variances)

    def along(self, place: int, deviations) -> np.ndarray:
        """Return points on one of the geodesics, (len(deviations), \\*shape).

        Args:
            place: of the geodesic, from 0.
            deviations: how far from the mean, in standard deviations, (m,).

        Raises:
            ValueError: there is no such geodesic.
        """
        if isinstance(place, bool) or not isinstance(place, int) or not 0 <= place < len(self.variances):
            raise InputError(
                f"along: place must be a whole number from 0 to {len(self.variances) - 1}, got {short(place)}."
            )
        lengths = math.sqrt(self.variances[place]) * np.asarray(deviations, float)
        with jax.enable_x64(True):
            return np.asarray(
                points_along(
                    self.manifold,
                    jnp.asarray(seen_anew(self.mean)),
                    jnp.asarray(seen_anew(self.directions[place])),
                    jnp.asarray(lengths),
                )
            )


@functools.partial(jax.jit, static_argnums=0)
def points_along(manifold: Manifold, start, vector, factors) -> jax.Array:
    """Return the points exp_start(factor vector), (len(factors), \\*shape)."""
    return jax.vmap(lambda t: manifold.project(manifold.exp(start, t.astype(vector.dtype) * vector)))(factors)


def geodesics_of(population: Population, level: float, draws: int = 2000) -> PrincipalGeodesics:
    """Return the principal geodesics of a population.

    No eigenvalue of a symmetric matrix is moved by more than the operator norm of what is added (Weyl), and those of
    the second moment of n normal vectors are those of their covariance times factors between the least and the largest
    eigenvalue of a Wishart matrix (Ostrowski): intervals follow from quantiles of these three, a third of 1 - level
    each. They hold for all eigenvalues together, and where they are equal or hidden by noise, too. The k largest
    eigenvalues add up to at most `Population.bound`, so that the k-th is at most a k-th part of it.

    Args:
        population: see there.
        level: in (0, 1).
        draws: of the bootstrap.

    Raises:
        ValueError: a third of 1 - level asks for more draws.
    """
    highest = 1.0 - 3.0 / (1.0 + draws)
    if level > highest:
        raise InputError(f"principal_geodesics: level must be at most {highest:.4f}, as there are {draws} replicates.")
    own = population
    values, vectors = np.linalg.eigh(own.covariance)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    rng, dim = np.random.default_rng(0), own.manifold.dim
    drawn = np.empty((3, draws))
    drawn[0] = np.linalg.norm(own.noise.matrices(draws, dim), 2, axis=(1, 2))
    for place in range(draws):
        factor = _wishart_root(rng, own.n - 1, dim) / math.sqrt(own.n)
        sizes = np.linalg.svd(factor, compute_uv=False) ** 2
        drawn[1:, place] = sizes[0], sizes[-1] if own.n > dim else 0.0
    tail = (1.0 - level) / 3.0
    most, largest, least = (
        float(np.quantile(of, q, method="weibull")) for of, q in zip(drawn, (1 - tail, 1 - tail, tail), strict=True)
    )
    seen = np.linalg.eigvalsh(own.covariance if own.seen is None else own.seen)[::-1]
    below, above = (seen - most) / largest, (seen + most) / max(least, _LEAST_SHARE)
    above = np.minimum(np.maximum(above, values), own.bound / np.arange(1, dim + 1))
    intervals = np.stack([np.minimum(below, values), above], axis=1).clip(min=0.0)
    directions = np.tensordot(vectors.T, own.frame, axes=1)
    return PrincipalGeodesics(own.manifold, own.mean, directions, values, intervals, level)


def _wishart_root(rng, n, dim):
    """Return A, with A A' the sum of z z' over n standard normal z in law; Bartlett's decomposition for n >= dim."""
    if n < dim:
        return rng.normal(size=(dim, n))
    lower = np.tril(rng.normal(size=(dim, dim)), -1)
    lower[np.diag_indices(dim)] = np.sqrt(rng.chisquare(n - np.arange(dim)))
    return lower


def reference(population: Population) -> Any:
    """Return mean, frame and covariance root of the law to draw from, as JAX arrays."""
    drawn = population.covariance if population.law is None else population.law
    own = population.mean, population.frame, root_of(drawn)
    return tuple(jnp.asarray(seen_anew(np.asarray(array))) for array in own)
