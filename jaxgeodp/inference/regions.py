"""Where the population's mean lies: a parametric bootstrap of the whole private procedure (section 18).

Draws of the fitted wrapped normal law, not clipped, go through the mechanism that made the release, and the distances
of what it releases from their mean tell how far the release may be from that of the population, clipped. It is
post-processing. The variance of each replicate is that of the release with noise of its own law added, as it is not
known better.
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.compiling import called, seen_anew
from jaxgeodp.inference.population import Population, carried, reference
from jaxgeodp.locating.law import LocatedLaw
from jaxgeodp.manifolds import Manifold
from jaxgeodp.mechanisms.adaptive_law import AdaptiveLaw
from jaxgeodp.releases.law import PointLaw
from jaxgeodp.samplers.wrapped import wrapped_point
from jaxgeodp.statistics import frechet_mean

# Replicates at a time: numbers of their records.
_NUMBERS = 2**19
#: Replicates of a bootstrap.
DRAWS = 2000
#: Highest level of a region of so many.
HIGHEST = DRAWS / (1.0 + DRAWS)


@dataclasses.dataclass(frozen=True, eq=False)
class Procedure:
    """Release procedure for a mean of n records.

    Attributes:
        mechanism: for the Frechet mean.
        n: number of records.
    """

    mechanism: Any
    n: int


@dataclasses.dataclass(frozen=True, eq=False)
class ConfidenceBall:
    """The points within ``radius`` of a released mean.

    Attributes:
        manifold: of the points.
        center: the released mean.
        radius: distance.
        level: coverage that it aims at.
        target: what it covers, in words.
    """

    manifold: Manifold
    center: np.ndarray
    radius: float
    level: float
    target: str

    def contains(self, point) -> bool:
        """Return whether a point of the manifold lies within.

        Raises:
            ValueError: it is no point of the manifold.
        """
        with jax.enable_x64(True):
            shape = self.manifold.shape
            if np.shape(point) != shape or not self.manifold.belongs(jnp.asarray(point), 1e-6):
                raise InputError(f"contains: needs a point of {self.manifold}, an array of shape {shape}.")
            return bool(self.manifold.dist(jnp.asarray(seen_anew(self.center)), jnp.asarray(point)) <= self.radius)


@dataclasses.dataclass(frozen=True)
class TwoSampleTest:
    """Hold a test of the hypothesis that two populations have the same mean.

    Attributes:
        p_value: (1 + replicates at least as far apart)/(1 + replicates).
        distance: of the two released means.
        critical: distance that is exceeded with probability .05 if the means are one; infinite for less than 19 draws.
    """

    p_value: float
    distance: float
    critical: float


def ball_of(
    population: Population, procedure: Procedure, level: float, draws: int = DRAWS, seed: int = 0
) -> ConfidenceBall:
    """Return the approximate confidence ball for the population mean, by a bootstrap of the release.

    Args:
        population: fitted.
        procedure: of the mean's release.
        level: in (0, 1); from draws/(1 + draws) on the radius is infinite.
        draws: replicates, at least 2.
        seed: of the replicates; one seed for all regions makes a reader's region reproducible.
    """
    radius = _quantile(_replicated_distances(population, procedure, draws, seed), level)
    target = "the Frechet mean of the population, clipped to the ball"
    return ConfidenceBall(population.manifold, population.mean, radius, level, target)


def _quantile(values, level: float) -> float:
    """Return the order statistic that exceeds a further draw with probability ``level``; infinite for too few draws."""
    if level * (len(values) + 1) > len(values):
        return math.inf
    return float(np.quantile(values, level, method="weibull"))


@functools.lru_cache(maxsize=16)
def _replicated_distances(population: Population, procedure: Procedure, draws: int, seed: int) -> np.ndarray:
    """Return the distances of replicates from their middle: the same for all levels.

    The middle is made of the replicates, which are nearer to it than to that of their law: so Bessel's factor.
    """
    with jax.enable_x64(True):
        means = replicated_means(population, procedure, jax.random.key(seed), draws)
        near = _known(_distances(population.manifold, _middle(population, means), means))
    return math.sqrt(draws / (draws - 1.0)) * near


def _known(distances) -> np.ndarray:
    """Return distances as NumPy's, infinite where one of the points is none."""
    own = np.asarray(distances)
    return np.where(np.isnan(own), np.inf, own)


def _middle(population: Population, means) -> jax.Array:
    """Return the Frechet mean of replicates: clipping moves it away from that of the law they are drawn from."""
    found = frechet_mean(population.manifold, means)
    return jnp.where(jnp.all(jnp.isfinite(found)), found, jnp.asarray(seen_anew(population.mean)))


def compare(first, second, draws: int = DRAWS, seed: int = 0) -> TwoSampleTest:
    """Return the test of two populations, each with its procedure; ``draws`` and ``seed`` as in `ball_of`.

    Both laws are carried to a common mean, which divides the geodesic between the released ones by the sampling
    variances.
    """
    (one, _), (other, _) = first, second
    manifold = one.manifold
    weights = [max(own.variance, 1e-300) / own.n for own in (one, other)]
    share = weights[0] / sum(weights)
    with jax.enable_x64(True):
        ends = [jnp.asarray(seen_anew(own.mean)) for own in (one, other)]
        distance = float(_distances(manifold, ends[0], ends[1][None])[0])
        common = _between(manifold, *ends, share)
        means = [
            replicated_means(_moved(own, common), procedure, jax.random.key(2 * seed + place), draws)
            for place, (own, procedure) in enumerate((first, second))
        ]
        apart = _known(_pairwise(manifold, *means))
    beyond = int(np.sum(apart >= distance))
    return TwoSampleTest((1 + beyond) / (1 + draws), distance, _quantile(apart, 0.95))


def _moved(population: Population, point) -> Population:
    """Return the law about another mean, by parallel transport."""
    frame = carried(
        population.manifold, *(jnp.asarray(seen_anew(x)) for x in (population.mean, point, population.frame))
    )
    return dataclasses.replace(population, mean=np.asarray(point), frame=np.asarray(frame))


def replicated_means(population: Population, procedure: Procedure, key, draws: int) -> jax.Array:
    """Return the procedure's releases of data sets drawn from a population, (draws, \\*shape).

    Args:
        population: see there.
        procedure: of the release.
        key: JAX random key.
        draws: how many.
    """
    law = procedure.mechanism.law(procedure.n)
    numbers = procedure.n * math.prod(population.manifold.shape)
    most = int(np.clip(_NUMBERS // numbers, 1, draws))
    batch = next(size for size in range(most, 0, -1) if draws % size == 0)  # a rest would be compiled once more
    relative = population.unknown
    keys = jax.random.split(key, draws)
    own: Any = law
    if isinstance(law, LocatedLaw):
        own = law.simulation
    elif isinstance(law, AdaptiveLaw) and not law.pure:
        own = law.in_integers  # as `describe` releases it
    static = {"manifold": population.manifold, "n": procedure.n, "batch": batch}
    return called(_replicates, own, reference(population), relative, keys, options=None, **static)


@functools.partial(jax.jit, static_argnames=("manifold", "n", "batch"))
def _replicates(law, wrapped, relative, keys, manifold, n, batch):
    """Return one release per key; the law is an argument, so that another of its kind compiles nothing."""
    mean, frame, root = wrapped

    def released(key, records):
        if not isinstance(law, PointLaw):
            return law.simulate(key, records, 1)[0]
        # As `Law.simulate`, with the mean by Newton's method: nobody watches the time.
        home, points, back = law.at_home(records)
        center = frechet_mean(manifold, points)
        return home.draws(key, points, center, 1, None).mapped(back).points[0]

    def one(key):
        of_spread, of_data, of_release = jax.random.split(key, 3)
        factor = jnp.sqrt(jnp.maximum(1.0 + relative * jax.random.normal(of_spread), 0.0))
        z = jax.random.normal(of_data, (n, manifold.dim), root.dtype)
        records = jax.vmap(lambda own: wrapped_point(manifold, mean, frame, factor * root, own))(z)
        return released(of_release, records)

    return jax.lax.map(one, keys, batch_size=batch)


@functools.partial(jax.jit, static_argnums=0)
def _distances(manifold, center, points):
    return jax.vmap(lambda x: manifold.dist(center, x))(points)


@functools.partial(jax.jit, static_argnums=0)
def _pairwise(manifold, first, second):
    return jax.vmap(manifold.dist)(first, second)


@functools.partial(jax.jit, static_argnums=0)
def _between(manifold, start, end, share):
    return manifold.between(start, end, share)
