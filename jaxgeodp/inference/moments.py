"""The spread of records about a public point, in integers with exact noise (docs/mathematics.md, section 18).

Records are clipped into a public ball. About a public point of it, their mean squared distance is a number, and their
second moment in an orthonormal frame there a matrix; both are sums over the records, so that one record moves them by
at most 1/n of what it can be.
"""

import abc
import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.compiling import compiled_in_blocks
from jaxgeodp.domains.domain import Domain
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.points_in_ball import PointsInBall
from jaxgeodp.domains.records import record_count
from jaxgeodp.manifolds.described import to_lists
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.guarantee import GaussianDP, PureDP, ZeroConcentratedDP
from jaxgeodp.pytrees import Pytree
from jaxgeodp.releases.law import Law, Ready, Terms
from jaxgeodp.releases.mechanism import Mechanism
from jaxgeodp.releases.noise import Coordinates, Noise, Normal
from jaxgeodp.samplers.discrete import discrete_gaussian, discrete_laplace

# Steps of the grid in the largest squared distance, and in the largest distance: sums of 2^20 products fit 64 bits.
_SQUARES, _LENGTHS = 2**40, 2**20
_MOST_AT_ONCE = 2**20
# Entries of a matrix off the diagonal count 7/5 times, nearly sqrt(2), so that the Euclidean norm of all that is
# released once is nearly, and at most, 5 times the Frobenius norm.
_DIAGONAL, _OFF = 5, 7
# How much smaller than a computed distance its true value might be, relative to the largest.
_ROUNDING = 1e-9


class Moment(abc.ABC):
    """What is released of tangent vectors v_i at a public point, of lengths from a to b. A subclass has no fields.

    Attributes:
        description: for records.
    """

    description: str

    @abc.abstractmethod
    def numbers(self, dim: int) -> int:
        """How many numbers."""

    @abc.abstractmethod
    def of_vectors(self, vectors: jax.Array) -> jax.Array:
        """The numbers of vectors (n, d), as means over them."""

    @abc.abstractmethod
    def steps(self, parts, nearest: float, farthest: float) -> np.ndarray:
        """Their sum in integers: arrays of vectors that are brought into the range, each on its own."""

    @abc.abstractmethod
    def sensitivity(self, dim: int, nearest: float, farthest: float) -> int:
        """By which one record moves that, in the Euclidean norm."""

    @abc.abstractmethod
    def units(self, dim: int, farthest: float) -> np.ndarray:
        """What a step of each number is worth, per record."""

    @abc.abstractmethod
    def to_value(self, numbers: Any, dim: int) -> Any:
        """A number or a symmetric matrix."""

    @abc.abstractmethod
    def to_numbers(self, value: Any) -> jax.Array:
        """The numbers of a value."""

    @abc.abstractmethod
    def formula(self, dim: int) -> str:
        """Of the sensitivity, for records."""


@final
@dataclasses.dataclass(frozen=True)
class FrechetVariance(Moment):
    """The mean squared distance of the records from a public point: sensitivity (b^2 - a^2)/n."""

    description = "mean squared distance"

    def numbers(self, dim):
        """One."""
        return 1

    def of_vectors(self, vectors):
        """See `Moment.of_vectors`."""
        return jnp.mean(jnp.sum(vectors**2, axis=-1))[None]

    def steps(self, parts, nearest, farthest):
        """See `Moment.steps`; a vector that is not finite counts as the shortest."""
        least, total = self._least(nearest, farthest), 0
        for part in parts:
            with np.errstate(all="ignore"):
                squares = np.sum(np.square(part / farthest), axis=-1) * _SQUARES
                squares = np.rint(np.clip(np.where(np.isfinite(squares), squares, 0.0), least, _SQUARES))
            total += _exact_sum(squares.astype(np.int64))
        return np.array([total], object)

    def sensitivity(self, dim, nearest, farthest):
        """b^2 - a^2, in steps."""
        return _SQUARES - self._least(nearest, farthest)

    def units(self, dim, farthest):
        """See `Moment.units`."""
        return np.array([farthest**2 / _SQUARES])

    def to_value(self, numbers, dim):
        """The number."""
        return numbers[0]

    def to_numbers(self, value):
        """It."""
        return jnp.reshape(value, (1,))

    def formula(self, dim):
        """See `Moment.formula`."""
        return "(b^2 - a^2)/n, of distances from a to b"

    @staticmethod
    def _least(nearest, farthest):
        share = max(nearest / farthest - _ROUNDING, 0.0)
        return math.floor(share**2 * _SQUARES)


@final
@dataclasses.dataclass(frozen=True)
class TangentCovariance(Moment):
    """The second moment of the records' logarithms at a public point: sensitivity sqrt(2) b^2/n in Frobenius norm."""

    description = "second moment of logarithms"

    def numbers(self, dim):
        """Those on and above the diagonal."""
        return dim * (dim + 1) // 2

    def of_vectors(self, vectors):
        """See `Moment.of_vectors`."""
        return self.to_numbers(vectors.T @ vectors / vectors.shape[0])

    def steps(self, parts, nearest, farthest):
        """See `Moment.steps`; a vector that is not finite counts as 0."""
        total: Any = 0
        for part in parts:
            vectors = grid.to_grid(part, farthest, _LENGTHS)
            for start in range(0, len(vectors), _MOST_AT_ONCE):
                own = vectors[start : start + _MOST_AT_ONCE]
                total = total + (own.T @ own).astype(object)
        rows, columns = np.triu_indices(len(total))
        return np.where(rows == columns, _DIAGONAL, _OFF) * total[rows, columns]

    def sensitivity(self, dim, nearest, farthest):
        """5 sqrt(2) b^2, in steps; in one dimension 5 b^2."""
        square = (_DIAGONAL * _LENGTHS**2) ** 2
        return math.isqrt(square if dim == 1 else 2 * square) + 1

    def units(self, dim, farthest):
        """See `Moment.units`."""
        rows, columns = np.triu_indices(dim)
        return (farthest / _LENGTHS) ** 2 / np.where(rows == columns, _DIAGONAL, _OFF)

    def to_value(self, numbers, dim):
        """The symmetric matrix."""
        places = np.zeros((dim, dim), np.int64)
        places[np.triu_indices(dim)] = np.arange(len(numbers))
        return numbers[np.maximum(places, places.T)]

    def to_numbers(self, value):
        """What is on and above the diagonal."""
        return value[np.triu_indices(value.shape[0])]

    def formula(self, dim):
        """See `Moment.formula`."""
        return "b^2/n, of distances up to b" if dim == 1 else "sqrt(2) b^2/n in Frobenius norm, of distances up to b"


def _exact_sum(steps):
    """Of nonnegative integers below 2^41, in an integer of any size."""
    return sum(int(np.sum(steps[start : start + _MOST_AT_ONCE])) for start in range(0, len(steps), _MOST_AT_ONCE))


@final
@dataclasses.dataclass(frozen=True, eq=False)
class SpreadMechanism(Mechanism):
    """A second moment of n records about a public point, with exact noise of integers.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        about: a public point of the ball, such as a mean that was released.
        statistic: `TangentCovariance` or `FrechetVariance`.
        epsilon: privacy parameter of discrete Laplace noise, pure; or
        mu: of discrete Gaussian noise, which promises mu^2/2-zCDP.

    Raises:
        ValueError: a ball that violates Assumption 1, a point outside it, or not one privacy parameter.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp import GeodesicBall, Sphere
        >>> from jaxgeodp.inference import FrechetVariance, SpreadMechanism
        >>> ball = GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.5)
        >>> mechanism = SpreadMechanism(ball, ball.center, FrechetVariance(), mu=1.0)
        >>> round(mechanism.scale(100), 6)
        0.0025
    """

    ball: GeodesicBall
    about: Any
    statistic: Moment = dataclasses.field(default_factory=TangentCovariance)
    _: dataclasses.KW_ONLY
    epsilon: float | None = None
    mu: float | None = None

    def __post_init__(self):
        if (self.epsilon is None) == (self.mu is None):
            raise InputError("SpreadMechanism: needs epsilon or mu, and not both.")
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", PureDP(self.epsilon).epsilon)
        else:
            assert self.mu is not None
            object.__setattr__(self, "mu", GaussianDP(self.mu).mu)
        if not self.ball.satisfies_assumption:
            raise InputError(
                f"SpreadMechanism: radius {self.ball.radius:g} violates Assumption 1; choose a smaller one."
            )
        point = GeodesicBall(self.ball.manifold, self.about, self.ball.radius).center  # checks
        object.__setattr__(self, "about", point)
        if self._away > self.ball.radius * (1.0 + 5e-7):
            raise InputError("SpreadMechanism: about must lie in the ball.")

    @property
    def guarantee(self) -> PureDP | ZeroConcentratedDP:
        """epsilon-DP, or mu^2/2-zCDP."""
        if self.epsilon is not None:
            return PureDP(self.epsilon)
        assert self.mu is not None
        return GaussianDP(self.mu).to_zcdp()

    @property
    def domain(self) -> "SpreadDomain":
        """Points of the ball."""
        return SpreadDomain(PointsInBall(self.ball, self.ball.manifold.shape), self.statistic)

    def law(self, n, shape=()):
        """See `Mechanism.law`."""
        n, dim = record_count(n), self.ball.manifold.dim
        nearest, farthest = self.reaches
        sensitivity, strength = self.statistic.sensitivity(dim, nearest, farthest), self._strength
        numbers, units = self.statistic.numbers(dim), self.statistic.units(dim, farthest)
        if self.epsilon is None:
            noise = grid.gaussian_noise(sensitivity, float(units[0]), strength)
        else:
            noise = grid.laplace_noise(numbers, sensitivity, float(units[0]), strength)
        terms = Terms(
            mechanism="SpreadMechanism",
            statistic=self.statistic.description,
            n=n,
            strength=strength,
            guarantee=grid.zcdp([noise]) if self.epsilon is None else self.guarantee,
            sensitivity=sensitivity * float(units[0]) / n,
            formula=self.statistic.formula(dim),
            theorem="docs/mathematics.md, section 18 and Theorem N",
            sampler={"name": _drawn(self.epsilon).__name__ + " (Canonne, Kamath & Steinke 2020)", "exactness": _EXACT},
            timing="",
            more={"about": to_lists(self.about), "frame": to_lists(np.asarray(_frame(self.ball.manifold, self.about)))},
        )
        kind: Noise = Normal() if self.epsilon is None else Coordinates()
        return SpreadLaw(
            self.statistic, kind, self.ball, self.about, noise.scale * units / n, noise, self.reaches, terms
        )

    def sensitivity(self, n: int) -> float:
        """The global sensitivity for n records (replace-one), in Frobenius norm."""
        return self.law(n).terms.sensitivity

    def scale(self, n: int) -> float:
        """Of the noise of a variance, or of the entries on the diagonal of a matrix."""
        return float(np.asarray(self.law(n).scale)[0])

    @property
    def reaches(self) -> tuple[float, float]:
        """Least and largest distance of a record from the point."""
        return max(self._away - self.ball.radius, 0.0), self._away + self.ball.radius

    @property
    def _away(self):
        with jax.enable_x64(True):
            return min(float(_away(self.ball, jnp.asarray(self.about))), self.ball.radius * (1.0 + 1e-6))

    @property
    def _strength(self) -> float:
        given = self.mu if self.epsilon is None else self.epsilon
        assert given is not None
        return given


_EXACT = "exact, in integers"


def _drawn(epsilon) -> Callable:
    return discrete_gaussian if epsilon is None else discrete_laplace


@dataclasses.dataclass(frozen=True, eq=False)
class SpreadDomain(Domain):
    """Points in a ball, of which a number or a matrix is released.

    Args:
        points: see `PointsInBall`.
        statistic: what is released.
    """

    points: PointsInBall
    statistic: Moment

    def records(self, owner, data):
        """See `Domain.records`."""
        return self.points.records(owner, data)

    def of_persons(self, owner, shape, count):
        """See `PointsInBall.of_persons`."""
        return self.points.of_persons(owner, shape, count)

    def described(self, shape):
        """See `PointsInBall.described`."""
        return self.points.described(shape)

    def fallback(self, shape):
        """No spread."""
        dim = self.points.ball.manifold.dim
        return np.asarray(self.statistic.to_value(np.zeros(self.statistic.numbers(dim)), dim))


@dataclasses.dataclass(frozen=True, eq=False)
class SpreadLaw(Law, Pytree, leaves=("ball", "about", "scale"), outside=("terms", "integers", "reaches")):
    """See the module docstring.

    Attributes:
        statistic, ball, about: of the mechanism.
        noise: the noise of real numbers that that of integers is like.
        scale: of each number.
        integers: the noise that is drawn.
        reaches: least and largest distance of a record from the point.
        terms: see `Law`.
    """

    statistic: Moment
    noise: Noise
    ball: GeodesicBall
    about: Any
    scale: Any
    integers: grid.GridNoise
    reaches: tuple[float, float]
    terms: Terms
    support = None

    @property
    def grid(self):
        """See `Law`."""
        return self._on_grid

    def ready(self, shape):
        """Nothing: it is released in integers only."""
        raise InputError("SpreadMechanism: is released in integers; say numerics='grid'.")

    def simulate(self, key, records, num):
        """See `Law.simulate`, with noise of real numbers."""
        return _simulate(self, key, records, num)

    def log_density(self, x, records):
        """See `Law.log_density`, for noise of real numbers."""
        numbers = self.statistic.to_numbers(x)
        return self.noise.log_density((numbers - self.numbers(records)) / self.scale)

    def numbers(self, records) -> jax.Array:
        """What noise is added to, of raw records."""
        return self.statistic.of_vectors(_vectors(self.ball, self.about, records))

    def value(self, numbers) -> Any:
        """A number or a matrix."""
        return self.statistic.to_value(numbers, self.ball.manifold.dim)

    def _on_grid(self, shape):
        ball, statistic, n = self.ball, self.statistic, self.terms.n
        about = jnp.asarray(self.about)
        vectors = compiled_in_blocks(self.terms.mechanism, _vectors, ball, about, shape)
        units = statistic.units(ball.manifold.dim, self.reaches[1])
        discrete = _drawn(None if isinstance(self.noise, Normal) else self.terms.strength)

        def draw(records):
            steps = statistic.steps(vectors(ball, about, records), *self.reaches)
            noisy = grid.with_noise(discrete, steps, self.integers.scale)
            return np.asarray(self.value(noisy * units / n))

        return Ready(self.terms, self.integers.scale * float(units[0]) / n, grid.NOTE, draw)


@functools.partial(jax.jit, static_argnums=3)
def _simulate(law, key, records, num):
    numbers = law.numbers(records)
    noise = law.noise.draw(key, num, numbers.shape[0], numbers.dtype)
    return jax.vmap(lambda z: law.value(numbers + law.scale * z))(noise)


@jax.jit
def _vectors(ball, about, records):
    """Coordinates of the logarithms of raw records, clipped into the ball, at a point: (n, d)."""
    manifold = ball.manifold
    points = ball.clip(records)
    about = jnp.asarray(about, points.dtype)
    frame = manifold.frame(about)
    return jax.vmap(lambda x: manifold.coordinates(about, manifold.log(about, x), frame))(points)


@jax.jit
def _away(ball, point):
    """Distance of a point from the centre."""
    return ball.manifold.dist(jnp.asarray(ball.at_home.center), ball.to_home(point))


def _frame(manifold, about):
    with jax.enable_x64(True):
        return _framed(manifold, jnp.asarray(about))


@functools.partial(jax.jit, static_argnums=0)
def _framed(manifold, about):
    return manifold.frame(about)
