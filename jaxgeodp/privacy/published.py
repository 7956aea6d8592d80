"""Published summaries of n records, as numbers for a membership test: plain statistics, or releases.

Points become coordinates in a frame at a public base, the mean of the population; spread becomes numbers as it is.
"""

import abc
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.pytrees import Pytree
from jaxgeodp.statistics.frechet_mean import frechet_mean
from jaxgeodp.statistics.power_mean import frechet_median
from jaxgeodp.statistics.power_statistic import FrechetMedian
from jaxgeodp.statistics.statistic import FrechetMean

#: Statistics that may be published without privacy.
STATISTICS = ("mean", "median", "variance", "covariance")
_OF_SPREAD = ("variance", "covariance")
#: For no rounding: more digits than double precision has.
ALL_DIGITS = 17.0


@dataclasses.dataclass(frozen=True)
class Base(Pytree, leaves=("point", "frame")):
    """A public point with a frame."""

    manifold: Manifold
    point: Any
    frame: Any

    def coordinates(self, x) -> jax.Array:
        """Return the coordinates of a point's logarithm at the base, (dim,)."""
        logarithm = self.manifold.log(self.point, x)
        return self.manifold.coordinates(self.point, logarithm, self.frame)

    def numbers(self, name: str, value) -> jax.Array:
        """Return the numbers (p,) of a value of a statistic in `STATISTICS`."""
        if name not in _OF_SPREAD:
            return self.coordinates(self.manifold.project(value))
        return value[jnp.triu_indices(value.shape[0])] if name == "covariance" else jnp.ravel(value)

    def count(self, name: str) -> int:
        """Return how many numbers a statistic has."""
        dim = self.manifold.dim
        return {"variance": 1, "covariance": dim * (dim + 1) // 2}.get(name, dim)


@dataclasses.dataclass(frozen=True)
class Published(abc.ABC):
    """Published summary of records.

    Attributes:
        base: see the module.
        statistics: names in `STATISTICS`.
    """

    base: Base
    statistics: tuple[str, ...]

    @property
    def count(self) -> int:
        """Return how many numbers are published."""
        return sum(map(self.base.count, self.statistics))

    @property
    @abc.abstractmethod
    def parts(self) -> "tuple[Part, ...]":
        """Return the published statistics without noise and rounding, or nearly so."""

    @abc.abstractmethod
    def numbers(self, key: jax.Array, records) -> jax.Array:
        """Return the numbers that are published, (p,).

        Args:
            key: JAX random key.
            records: (n, \\*shape).
        """


@dataclasses.dataclass(frozen=True)
class Part(abc.ABC):
    """One statistic of records."""

    def prepared(self, records) -> Any:
        """Return the records in the form that `of` takes."""
        return records

    @abc.abstractmethod
    def of(self, records, weights) -> jax.Array:
        """Return the numbers of the statistic for prepared records: differentiable in the weights (n,) of sum 1."""


@dataclasses.dataclass(frozen=True)
class Statistic(Part, Pytree, leaves=("base",)):
    """A statistic of points, of `STATISTICS`."""

    base: Base
    name: str

    @override
    def of(self, records, weights):
        manifold = self.base.manifold
        if self.name in ("mean", "median"):
            return self.base.coordinates(self.point(records, weights))
        if self.name == "variance":
            mean = frechet_mean(manifold, records, weights)
            return (weights @ jax.vmap(lambda x: manifold.squared_dist(mean, x))(records))[None]
        vectors = jax.vmap(self.base.coordinates)(records)
        vectors = vectors - weights @ vectors
        return self.base.numbers(self.name, (vectors * weights[:, None]).T @ vectors)

    def point(self, records, weights) -> jax.Array:
        """Return the mean or median."""
        function = frechet_mean if self.name == "mean" else frechet_median
        return function(self.base.manifold, records, weights)


@dataclasses.dataclass(frozen=True)
class Clipped(Part):
    """A statistic of records that are clipped to a ball."""

    statistic: Statistic
    ball: GeodesicBall

    @override
    def prepared(self, records):
        return self.ball.clip(records)

    @override
    def of(self, records, weights):
        return self.statistic.of(records, weights)


@dataclasses.dataclass(frozen=True)
class Moment(Part, Pytree, leaves=("base",)):
    """The variance or covariance of vectors, about a public place."""

    base: Base
    name: str
    law: Any
    ball: GeodesicBall

    @override
    def prepared(self, records):
        return self.law.about.vectors(self.ball, records)

    @override
    def of(self, records, weights):
        moment = (records * weights[:, None]).T @ records
        return self.base.numbers(self.name, jnp.trace(moment) if self.name == "variance" else moment)


@dataclasses.dataclass(frozen=True)
class Plain(Published, Pytree, leaves=("base", "digits")):
    """Plain statistics, without privacy.

    Attributes:
        digits: significant digits of a mean or median; `ALL_DIGITS` for no rounding.
    """

    digits: Any

    @property
    @override
    def parts(self):
        return tuple(Statistic(self.base, name) for name in self.statistics)

    @override
    def numbers(self, key, records):
        n = records.shape[0]
        weights = jnp.full(n, 1.0 / n, real_dtype(records))
        numbers = []
        for part in self.parts:
            if part.name in ("mean", "median"):
                rounded = _rounded(part.point(records, weights), self.digits)
                numbers.append(self.base.coordinates(self.base.manifold.project(rounded)))
            else:
                numbers.append(part.of(records, weights))
        return jnp.concatenate(numbers)


def _rounded(value, digits):
    """Return each number rounded to so many digits of the largest."""
    if jnp.iscomplexobj(value):
        return jax.lax.complex(_rounded(value.real, digits), _rounded(value.imag, digits))
    unit = 10.0 ** (jnp.floor(jnp.log10(jnp.maximum(jnp.max(jnp.abs(value)), 1e-300))) + 1.0 - digits)
    return jnp.round(value / unit) * unit


@dataclasses.dataclass(frozen=True)
class Released(Published, Pytree, leaves=("base", "laws", "balls")):
    """Releases of the same records.

    Attributes:
        laws: a `Law` for each release; moments are about its place.
        balls: to which each of them clips; None where it finds one.
    """

    laws: tuple[Any, ...]
    balls: tuple[GeodesicBall | None, ...]

    @property
    @override
    def parts(self):
        return tuple(map(self._part, self.statistics, self.laws, self.balls))

    def _part(self, name, law, ball) -> Part:
        if name in _OF_SPREAD:
            return Moment(self.base, name, law, ball)
        own = Statistic(self.base, name)
        return own if ball is None else Clipped(own, ball)

    @override
    def numbers(self, key, records):
        keys = jax.random.split(key, len(self.laws))
        values = [law.released(law.simulate(own, records, 1)[0]) for law, own in zip(self.laws, keys, strict=True)]
        return jnp.concatenate(list(map(self.base.numbers, self.statistics, values)))


def released(owner: str, mechanisms, n: int, base: Base) -> Released:
    """Return what mechanisms publish of n records.

    Args:
        owner: for messages.
        mechanisms: see `membership`.
        n: number of records.
        base: see the module.

    Raises:
        ValueError: a mechanism is for another manifold, or of something else than `STATISTICS`.
    """
    laws, balls, names = [], [], []
    for mechanism in mechanisms:
        ball = getattr(mechanism, "ball", None)
        own = mechanism.manifold if ball is None else ball.manifold
        if own.whole != base.manifold.whole:
            raise InputError(f"{owner}: {type(mechanism).__name__} is for {own}, the records are on {base.manifold}.")
        names.append(_named(owner, mechanism))
        laws.append(mechanism.law(n))
        balls.append(ball)
    return Released(base, tuple(names), tuple(laws), tuple(balls))


# By how records describe them.
_MOMENTS = {"mean squared distance": "variance", "second moment of logarithms": "covariance"}


def _named(owner, mechanism) -> str:
    match mechanism.summarised:
        case FrechetMedian():
            return "median"
        case FrechetMean():
            return "mean"
        case None if not hasattr(mechanism, "statistic"):  # it finds its ball
            return "mean"
        case other:
            words = (mechanism.statistic if other is None else other).description
            if words not in _MOMENTS:
                raise InputError(f"{owner}: supports means, medians, variances and covariances, not '{words}'.")
            return _MOMENTS[words]
