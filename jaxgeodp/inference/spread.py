"""The spread of records about a public point, in integers with exact noise (docs/mathematics.md, section 18).

Records are clipped into a public ball; about a public point of it, or along a public geodesic, a moment of their
logarithms is released. A matrix under pure epsilon is also released with noise of real numbers, which is smaller.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError, epsilon_or_mu
from jaxgeodp.compiling import compiled_ahead, compiled_in_blocks
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.points_in_ball import PointsInBall
from jaxgeodp.domains.records import record_count
from jaxgeodp.inference.matrix_noise import SAMPLER, HullNoise
from jaxgeodp.inference.moments import Moment, TangentCovariance
from jaxgeodp.inference.places import AtPoint, Place, frame_at
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.entropy import public_key, system_key
from jaxgeodp.privacy.guarantee import GaussianDP, PureDP, ZeroConcentratedDP
from jaxgeodp.pytrees import Pytree
from jaxgeodp.releases.integers import Integers, Noisy, Sums
from jaxgeodp.releases.law import Law, Terms
from jaxgeodp.releases.mechanism import Mechanism
from jaxgeodp.releases.noise import Coordinates, Noise, Normal
from jaxgeodp.releases.vector import TIMING
from jaxgeodp.samplers.discrete import discrete_gaussian, discrete_laplace
from jaxgeodp.samplers.spectral_table import LARGEST


@final
@dataclasses.dataclass(frozen=True, eq=False)
class SpreadMechanism(Mechanism):
    """A second moment of n records about a public point, with exact noise of integers.

    It is released with ``numerics="grid"``, or by `Mechanism.prepare` and `Mechanism.finish`; `Mechanism.simulate` has
    noise of real numbers. The value is a number for `FrechetVariance` and a matrix (dim, dim) for `TangentCovariance`,
    in the orthonormal frame that the record has as "frame". With ``epsilon`` and up to 12 dimensions the matrix is also
    released with ``numerics="idealized"``: its noise then has the density exp(-max(tr A+, tr A-)/scale), and is
    smaller (half of that of integers in 6 dimensions: docs/inference.md); `scale`, `sensitivity` and `simulate` are
    those of this noise.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        about: a public point of the ball, such as a mean that was released; or another `Place`.
        statistic: `TangentCovariance` or `FrechetVariance`; of a geodesic `ResidualMoments` or `ResidualMatrix`.
        epsilon: privacy parameter of discrete Laplace noise, or of that of real numbers, pure; or
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
        name, given = epsilon_or_mu("SpreadMechanism", self.epsilon, self.mu)
        strength = PureDP(given).epsilon if name == "epsilon" else GaussianDP(given).mu
        object.__setattr__(self, name, strength)
        if not self.ball.satisfies_assumption:
            raise InputError(
                f"SpreadMechanism: radius {self.ball.radius:g} violates Assumption 1; choose a smaller radius."
            )
        place = self.about
        if not isinstance(place, Place):
            point = GeodesicBall(self.ball.manifold, place, self.ball.radius).center  # checks
            place = AtPoint(point, frame_at(self.ball.manifold, point))
        object.__setattr__(self, "about", place.checked(self.ball))
        dim = self.ball.manifold.dim
        if self.statistic.vector_length(dim) != place.vector_length(dim):
            raise InputError(
                f"SpreadMechanism: {type(self.statistic).__name__} is not for {type(place).__name__}: moments of "
                "residuals go with AlongGeodesic, the others with points."
            )

    @property
    def guarantee(self) -> PureDP | ZeroConcentratedDP:
        """Return epsilon-DP, or mu^2/2-zCDP."""
        if self.epsilon is not None:
            return PureDP(self.epsilon)
        assert self.mu is not None
        return GaussianDP(self.mu).to_zcdp()

    @property
    def domain(self) -> PointsInBall:
        """Return the points of the ball, with times for a geodesic."""
        return self.about.domain(self.ball)

    @property
    @override
    def sums(self) -> "MomentSums":
        return MomentSums(self.statistic, self.ball, self.about)

    @override
    def law(self, n, shape=()):
        n, dim = record_count(n), self.ball.manifold.dim
        nearest, farthest = self.reaches
        sensitivity, strength = self.statistic.sensitivity(dim, nearest, farthest), self._strength
        units = self.statistic.units(dim, farthest)
        if self.epsilon is None:
            noise = grid.gaussian_noise(sensitivity, float(units[0]), strength)
        else:
            change = self.statistic.l1_sensitivity(dim, nearest, farthest)
            noise = grid.laplace_noise(1, change, float(units[0]), strength)
        terms = Terms(
            mechanism="SpreadMechanism",
            statistic=self.statistic.description,
            n=n,
            strength=strength,
            guarantee=grid.zcdp([noise]) if self.epsilon is None else self.guarantee,
            sensitivity=sensitivity * float(units[0]) / n,
            formula=self.statistic.formula(dim),
            theorem="docs/mathematics.md, section 18 and Theorem N",
            sampler=grid.sampler(_drawn(self.epsilon), [len(units)], [noise.scale]),
            timing="",
            more=self.about.described(self.ball),
        )
        kind: Noise = Normal() if self.epsilon is None else Coordinates()
        integers = OnIntegers(noise, terms)
        scale = noise.scale * units / n
        law = SpreadLaw(self.statistic, kind, self.ball, self.about, scale, integers, self.reaches, terms)
        hull = None if self.epsilon is None else self.statistic.hull_sensitivity(dim, farthest)
        if hull is None:
            return law
        own = _of_hull(terms, hull / n)
        return dataclasses.replace(law, noise=HullNoise(), scale=hull / n / strength, terms=own)

    def sensitivity(self, n: int) -> float:
        """Return the global sensitivity for n records (replace-one) in the norm of the noise, a squared distance.

        Args:
            n: at least 2.
        """
        return self.law(n).terms.sensitivity

    def scale(self, n: int) -> float:
        """Return the noise scale: of a variance, of a matrix's diagonal entries, or of its norm; a squared distance.

        Args:
            n: at least 2.
        """
        return float(np.ravel(self.law(n).scale)[0])

    @property
    def reaches(self) -> tuple[float, float]:
        """Return the least and the largest length of a record's vector."""
        return self.about.reaches(self.ball)

    @property
    def _strength(self) -> float:
        given = self.mu if self.epsilon is None else self.epsilon
        assert given is not None
        return given


def _drawn(epsilon) -> Callable:
    return discrete_gaussian if epsilon is None else discrete_laplace


def _of_hull(terms: Terms, sensitivity: float) -> Terms:
    """Return the terms of a release with `HullNoise`, in real numbers."""
    return dataclasses.replace(
        terms,
        sensitivity=sensitivity,
        formula="b^2/n in the norm max(tr A+, tr A-), of distances up to b",
        theorem=HullNoise.theorem,
        sampler=dict(SAMPLER),
        timing=TIMING,
    )


class OnIntegers(NamedTuple):
    """Release of a moment in integers."""

    noise: grid.GridNoise  #: that is drawn
    terms: Terms  #: what its record says


@dataclasses.dataclass(frozen=True, eq=False)
class SpreadLaw(Law, Pytree, leaves=("ball", "about", "scale", "reaches"), outside=("terms", "integers")):
    """Represent the law of a released moment about a public point or geodesic, in real numbers or in integers.

    Attributes:
        statistic, ball, about: of the mechanism.
        noise: of real numbers: `HullNoise`, which is released, or what the noise of integers is like.
        scale: of each number, or of all.
        integers: see `OnIntegers`.
        reaches: least and largest distance of a record from the point.
        terms: see `Law`; of `HullNoise`, or of the noise of integers.
    """

    statistic: Moment
    noise: Noise
    ball: GeodesicBall
    about: Any
    scale: Any
    integers: OnIntegers
    reaches: tuple[float, float]
    terms: Terms
    support = None
    order_matters = False

    @property
    def fallback(self):
        """Return zero spread."""
        return np.asarray(self.value(np.zeros(self.statistic.numbers(self.ball.manifold.dim))))

    @property
    def size(self):
        """Return the largest squared length of a record's vector."""
        return self.reaches[1] ** 2

    @property
    @override
    def grid(self):
        return MomentGrid(self)

    def ready(self, shape):
        """Return a compiled draw with `HullNoise`; refuse moments that are released in integers only."""
        if not isinstance(self.noise, HullNoise):
            raise InputError(
                "SpreadMechanism: is released in integers; use numerics='grid' (real numbers are for "
                f"TangentCovariance with epsilon in at most {LARGEST} dimensions)."
            )
        about = jax.tree.map(jnp.asarray, self.about)
        vectors = compiled_in_blocks("SpreadMechanism", _vectors_within, self.ball, about, self.reaches[1], shape)
        # One program for all numbers of records; a matrix alone has this noise.
        count = jax.ShapeDtypeStruct((self.statistic.numbers(self.ball.manifold.dim),), np.float64)
        noisy = compiled_ahead("SpreadMechanism", _with_noise, self, public_key(), count)

        def draw(records):
            parts = list(vectors(self.ball, about, self.reaches[1], records))
            moment = sum(part.T @ part for part in parts) / sum(map(len, parts))
            return np.asarray(noisy(self, system_key(), np.asarray(self.statistic.to_numbers(moment))))

        return draw

    def simulate(self, key, records, num):
        """Return ``num`` independent draws with real-valued noise."""
        return _simulate(self, key, records, num=num)

    def log_density(self, x, records):
        """Return the unnormalised log density at ``x`` for real-valued noise."""
        numbers = self.statistic.to_numbers(x)
        return self.noise.log_density((numbers - self.numbers(records)) / self.scale)

    def numbers(self, records) -> jax.Array:
        """Return the exact statistic of raw records, to which noise is added."""
        vectors = self.about.vectors(self.ball, records)
        return self.statistic.of_vectors(self.about.within(vectors, self.reaches[1]))

    def value(self, numbers) -> Any:
        """Return the value: a number or a matrix."""
        return self.statistic.to_value(numbers, self.ball.manifold.dim)


@dataclasses.dataclass(frozen=True, eq=False)
class MomentSums(Sums):
    """Sum a moment of vectors about a place in integers; see `SpreadMechanism`."""

    statistic: Moment
    ball: GeodesicBall
    about: Any

    @property
    @override
    def largest(self) -> int:
        return self.statistic.largest

    @override
    def shape(self, record):
        return (self.statistic.numbers(self.ball.manifold.dim),)

    @override
    def program(self, shape):
        about = jax.tree.map(jnp.asarray, self.about)
        vectors = compiled_in_blocks("SpreadMechanism", _vectors, self.ball, about, shape)
        reaches = self.about.reaches(self.ball)
        return lambda records: self.statistic.steps(vectors(self.ball, about, records), *reaches)


@dataclasses.dataclass(frozen=True, eq=False)
class MomentGrid(Integers):
    """Release of a `SpreadLaw` in integers."""

    law: SpreadLaw

    def continuous(self) -> SpreadLaw:
        """Return the law with the real-valued noise that the integer noise approximates."""
        law, (noise, terms) = self.law, self.law.integers
        units = law.statistic.units(law.ball.manifold.dim, law.reaches[1])
        kind = law.noise if isinstance(law.noise, Normal) else Coordinates()
        return dataclasses.replace(law, noise=kind, scale=noise.scale * units / terms.n, terms=terms)

    @override
    def sums(self, shape):
        return MomentSums(self.law.statistic, self.law.ball, self.law.about).program(shape)

    @override
    def noisy(self, shape):
        law, (noise, terms) = self.law, self.law.integers
        units = law.statistic.units(law.ball.manifold.dim, law.reaches[1])
        discrete = _drawn(None if isinstance(law.noise, Normal) else terms.strength)

        def value(integers):
            noisy = grid.with_noise(discrete, integers, noise.scale)
            return np.asarray(law.value(noisy * units / terms.n))

        return Noisy(terms, noise.scale * float(units[0]) / terms.n, grid.NOTE, value)


@functools.partial(jax.jit, static_argnames="num")
def _simulate(law, key, records, num):
    numbers = law.numbers(records)
    noise = law.noise.draw(key, num, numbers.shape[0], numbers.dtype)
    return jax.vmap(lambda z: law.value(numbers + law.scale * z))(noise)


@jax.jit
def _vectors(ball, about, records):
    return about.vectors(ball, records)


@jax.jit
def _vectors_within(ball, about, farthest, records):
    return about.within(about.vectors(ball, records), farthest)


@jax.jit
def _with_noise(law, key, numbers):
    noise = law.noise.draw(key, 1, numbers.shape[0], numbers.dtype)[0]
    return law.value(numbers + law.scale * noise)
