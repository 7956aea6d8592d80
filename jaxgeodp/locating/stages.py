"""A stage of a search as a release of its own: integers that add up, exact noise, and what follows."""

import abc
import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, final

import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.domains.domain import Domain
from jaxgeodp.locating.centers import Summed
from jaxgeodp.locating.parts import origin_of
from jaxgeodp.locating.schedule import center_cost
from jaxgeodp.locating.walk import Radius, counts_of
from jaxgeodp.manifolds import Manifold
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.nested_lists import to_lists
from jaxgeodp.privacy import above_threshold, grid
from jaxgeodp.privacy.decimals import float_above
from jaxgeodp.privacy.guarantee import PureDP, ZeroConcentratedDP
from jaxgeodp.privacy.release import Release
from jaxgeodp.releases.integers import Integers, Noisy, Sums
from jaxgeodp.releases.law import Law, Terms
from jaxgeodp.releases.mechanism import Mechanism
from jaxgeodp.releases.states import digest_of_public
from jaxgeodp.samplers.discrete import discrete_gaussian, discrete_laplace

# Of refusals and records.
_NAME = "SearchInRounds"
# Of the numbers of a point that was written and read again.
_CLOSE = 1e-6
# What a stage takes.
_OPTIONS = frozenset({"grid", "prepare"})


class Stage(Sums):
    """A question in integers; public."""

    statistic: Any  #: in words
    theorem: Any
    formula: Any  #: of the sensitivity
    sensitivity: Any  #: how far one record moves the integers: each count; the vector, in Euclidean length

    @property
    @abc.abstractmethod
    def guarantee(self) -> PureDP | ZeroConcentratedDP:
        """Return the privacy guarantee of the stage's answer."""

    @property
    @abc.abstractmethod
    def scale(self) -> int:
        """Return the scale of the integer noise."""

    @property
    @abc.abstractmethod
    def sampler(self) -> dict[str, str]:
        """Return the release-record entry of the sampler."""

    @property
    @abc.abstractmethod
    def fallback(self) -> Any:
        """Return the public answer released where none could be computed."""

    @property
    @abc.abstractmethod
    def asked(self) -> dict:
        """Return the release-record entries of the question."""

    @abc.abstractmethod
    def answer(self, n: int) -> Callable[[np.ndarray], Any]:
        """Return a compiled function from the sum for n records to the released value, or to `Told`."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class RadiusStage(Stage):
    """How far records reach about a centre.

    Args:
        question: see there.
        pure: whether epsilon is promised; else rho.
    """

    question: Radius
    pure: bool
    statistic = "radius of a ball about a released centre that holds nearly all records"
    theorem = "docs/mathematics.md, Theorem Q1"
    formula = "1, of each count, all in one direction"
    sensitivity = largest = 1

    @property
    @override
    def guarantee(self):
        return (above_threshold.pure if self.pure else above_threshold.zcdp)(self.scale)

    @property
    @override
    def scale(self):
        return self.question.scale

    @property
    @override
    def sampler(self):
        name = "the first of noisy counts above a noisy threshold, discrete_laplace (Canonne, Kamath & Steinke 2020)"
        return {"name": name, "exactness": "exact, in integers"}

    @property
    def fallback(self):
        """Return the largest radius."""
        return self.question.radii[-1]

    @property
    @override
    def asked(self):
        own = self.question
        about = {"center": to_lists(own.center), "radii": own.radii, "threshold": own.threshold}
        return about | ({} if math.isinf(own.last) else {"at_most": 2.0 * own.last})

    @override
    def shape(self, record):
        return (len(self.question.radii),)

    @override
    def program(self, shape):
        own, counts = self.question, counts_of(_NAME, self.question.part, shape)
        return lambda records: np.array(counts(own.center, records, own.radii), object)

    @override
    def answer(self, n):
        return lambda counts: self.question.answer(counts)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class CenterStage(Stage):
    """Where the middle of the records in a ball is.

    Args:
        summed: see there.
        center, radius: the ball.
    """

    summed: Summed
    center: Any
    radius: float
    statistic = "mean of integer vectors of records clipped to a released ball, as a point"
    theorem = "docs/mathematics.md, section 16 and Theorem N"
    formula = "2 R, the diameter of the ball of integers"
    sensitivity, largest = 2 * grid.STEPS, grid.STEPS

    @property
    @override
    def guarantee(self):
        cost = float_above(Fraction(center_cost(self.summed.part, self.summed.noise)))
        return ZeroConcentratedDP(cost) if self.summed.noise.gaussian else PureDP(cost)

    @property
    @override
    def scale(self):
        return self.summed.noise.scale

    @property
    @override
    def sampler(self):
        draw = discrete_gaussian if self.summed.noise.gaussian else discrete_laplace
        return grid.sampler(draw, [self.summed.part.vector_length], [self.scale])

    @property
    def fallback(self):
        """Return the origin of the part, where the search began."""
        return np.asarray(origin_of(self.summed.part))

    @property
    @override
    def asked(self):
        return {"center": to_lists(self.center), "radius": self.radius} if self.summed.part.open else {}

    @override
    def shape(self, record):
        return (self.summed.part.vector_length,)

    @override
    def program(self, shape):
        sums = self.summed.sums(_NAME, shape)
        return lambda records: sums(self.center, self.radius, records)

    @override
    def answer(self, n):
        noisy = self.summed.noisy(_NAME, n)
        return lambda steps: noisy(self.center, self.radius, steps).center


@final
@dataclasses.dataclass(frozen=True, eq=False)
class StageMechanism(Mechanism):
    """One stage of a search; `SearchInRounds` makes it.

    Args:
        points: where records lie.
        stage: see there.
        n: number of records.
        number: of the stage, from 1.
    """

    points: Domain
    stage: Stage
    n: int
    number: int

    @property
    def domain(self) -> Domain:
        """Where records lie."""
        return self.points

    @property
    @override
    def guarantee(self) -> PureDP | ZeroConcentratedDP:
        return self.stage.guarantee

    @property
    @override
    def supports(self):
        return _OPTIONS

    @property
    @override
    def sums(self) -> Stage:
        return self.stage

    def law(self, n, shape=()):
        """Return the law of this stage for n records.

        Raises:
            ValueError: another number of records than the search is for.
        """
        _check_number(n, self.n)
        stage = self.stage
        terms = Terms(
            mechanism=_NAME,
            statistic=stage.statistic,
            n=n,
            strength=0.0,
            guarantee=stage.guarantee,
            sensitivity=stage.sensitivity,
            formula=stage.formula,
            theorem=stage.theorem,
            sampler=stage.sampler,
            timing="",
            more={"search": {"stage": self.number, "digest": digest_of_public(self), **stage.asked}},
        )
        return StageLaw(stage, terms, stage.scale)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LastStage(Mechanism):
    """The release about the ball that was found; `SearchInRounds` makes it.

    Args:
        mechanism: for that ball, whose sums add up.
        n, number: see `StageMechanism`.
    """

    mechanism: BallMechanism
    n: int
    number: int

    @property
    def domain(self) -> Domain:
        """Points, which are clipped to the ball."""
        return self.mechanism.domain

    @property
    def guarantee(self) -> Any:
        """Return the guarantee of the mechanism."""
        return self.mechanism.guarantee

    @property
    @override
    def supports(self):
        return _OPTIONS & self.mechanism.supports

    @property
    @override
    def sums(self) -> Sums | None:
        return self.mechanism.sums

    @override
    def law(self, n, shape=()):
        _check_number(n, self.n)
        law: Any = self.mechanism.law(n, shape)
        more = (law.terms.more or {}) | {"search": {"stage": self.number, "digest": digest_of_public(self)}}
        return dataclasses.replace(law, terms=dataclasses.replace(law.terms, more=more))


def _check_number(given, n):
    if given != n:
        raise InputError(f"{_NAME}: the search was started for {n} records, got {given}; start it with this number.")


@dataclasses.dataclass(frozen=True, eq=False)
class StageLaw(Law):
    """The law of a `StageMechanism`, of integers only."""

    stage: Stage
    terms: Terms
    scale: int
    support = None
    order_matters = False

    @property
    def fallback(self):
        """Return the public fallback value of the stage."""
        return self.stage.fallback

    @property
    @override
    def grid(self):
        return StageGrid(self.stage, self.terms)

    @override
    def ready(self, shape):
        raise InputError(f"{_NAME}: a stage is released in integers by prepare and finish; use them.")

    @override
    def simulate(self, key, records, num):
        raise InputError(
            f"{_NAME}: a stage cannot be simulated alone; LocatedMechanism.simulate simulates all of them."
        )

    @override
    def log_density(self, x, records):
        raise InputError(f"{_NAME}: a single stage has no density.")


@dataclasses.dataclass(frozen=True, eq=False)
class StageGrid(Integers):
    """How a `StageLaw` is released."""

    stage: Stage
    terms: Terms

    @override
    def sums(self, shape):
        return self.stage.program(shape)

    @override
    def noisy(self, shape):
        answer = self.stage.answer(self.terms.n)
        return Noisy(self.terms, self.stage.scale, grid.NOTE, answer)


def is_of_stage(record: Any, mechanism: StageMechanism | LastStage) -> bool:
    """Tell whether a record is of this stage."""
    search = record.get("search") if isinstance(record, dict) else None
    return isinstance(search, dict) and search.get("digest") == digest_of_public(mechanism)


def point_of(manifold: Manifold, number: int, release: Release) -> np.ndarray:
    """Return the value of a stage, if it is a point.

    Raises:
        ValueError: it is none.
    """
    value, kind = np.asarray(release.value), "c" if manifold.dtype_kind == "complex" else "f"
    # A released centre may lie where no record counts as a point, such as a correlation matrix that is nearly singular.
    if value.shape == manifold.shape and value.dtype.kind == kind and np.all(np.isfinite(value)):
        near = np.asarray(manifold.project(jnp.asarray(value)))
        if np.allclose(near, value, rtol=_CLOSE, atol=_CLOSE * float(np.max(np.abs(value)))):
            return value
    raise no_value(number)


def no_value(number: int) -> InputError:
    """Return what is said of a release whose value its stage could not have."""
    return InputError(f"{_NAME}: release {number} has no value that stage {number} could have.")
