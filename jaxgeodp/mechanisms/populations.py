"""Expected errors of releases in steps for public reference populations, from public numbers alone.

In flat space of the manifold's dimension, where the walk needs no program to be simulated (docs/mathematics.md, section
21).
"""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxgeodp.checks import epsilon_or_mu, positive_integer
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.mechanisms.adaptive_rules import Rule, rule_for
from jaxgeodp.mechanisms.adaptive_walk import Count, Mean, Moved, Pairs, Spending, Whole, refine, strength_of
from jaxgeodp.privacy.guarantee import GaussianDP, PureDP

# Records that stand for n, and simulated releases: fewer in many dimensions, where all errors are nearly as large.
_RECORDS = 512


def _draws(dim):
    return int(min(200, max(16, 6000 / dim)))


# Of clusters: the share of the larger one, and of the variance that lies between the two.
_LARGER, _BETWEEN = 0.7, 0.75


class Population(NamedTuple):
    """Records at an offset from the centre and of a spread (root mean square), in units of the radius."""

    offset: float
    spread: float
    law: str = "normal"

    @property
    def words(self) -> str:
        """Return the population in words, for tables and records."""
        return f"{self.law}, offset {self.offset:g}, spread {self.spread:g}"

    def records(self, dim: int, seed: int = 0) -> np.ndarray:
        """Return the records (m, dim) in the unit ball of R^dim that stand for n; the same for each seed."""
        draws = np.random.default_rng(seed)
        z = _LAWS[self.law](draws, dim) * self.spread / math.sqrt(dim)
        z[:, 0] += self.offset
        return z * np.minimum(1.0, 1.0 / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-300))


def _normal(draws, dim):
    half = draws.normal(size=(_RECORDS // 2, dim))
    return np.concatenate([half, -half])


def _skew(draws, dim):
    z = draws.exponential(size=(_RECORDS, dim))
    return z - z.mean(axis=0)


def _heavy(draws, dim):
    half = draws.normal(size=(_RECORDS // 2, dim)) / np.sqrt(draws.chisquare(3, size=(_RECORDS // 2, 1)))
    return np.concatenate([half, -half])


def _clusters(draws, dim):
    z = math.sqrt(1.0 - _BETWEEN) * _normal(draws, dim)
    larger = np.arange(_RECORDS) % (_RECORDS // 2) < _LARGER * (_RECORDS // 2)
    apart = math.sqrt(_BETWEEN * dim / (_LARGER * (1.0 - _LARGER)))
    z[:, min(1, dim - 1)] += apart * (np.where(larger, 1.0, 0.0) - _LARGER)
    return z


_LAWS = {"normal": _normal, "skew": _skew, "heavy tails": _heavy, "clusters": _clusters}

#: From records that fill the ball to such as fill a twentieth of it.
POPULATIONS = (
    Population(0.3, 0.5),
    Population(0.5, 0.35),
    Population(0.5, 0.15),
    Population(0.6, 0.05),
    Population(0.5, 0.35, "skew"),
    Population(0.5, 0.35, "heavy tails"),
    Population(0.5, 0.35, "clusters"),
)


# In place of one release steps are chosen where the geometric mean of their error over its is at most this, and none is
# more than that.
_BETTER, _WORSE = 0.8, 1.1


class Expected(NamedTuple):
    """Mean distances from the mean of a population's records."""

    population: Population
    steps: float
    one: float  #: of one release about the centre, with all of the budget
    center: float  #: of the public centre

    @property
    def ratio(self) -> float:
        """Return the error of steps over that of one release."""
        return self.steps / max(self.one, 1e-300)


def plan_in_steps(
    ball: GeodesicBall, n: int, epsilon: float | None = None, mu: float | None = None, symmetric: bool = False
) -> tuple[Expected, ...]:
    """Return the expected errors of `AdaptiveMechanism` and of one release, for each reference population.

    Simulated in flat space of the manifold's dimension, by 200 releases each, fewer above 30 dimensions; no data are
    needed, and it takes some seconds. One release has noise of scale 2 r/(n epsilon), or 2 r/(n mu), about the mean.

    Args:
        ball: the public ball.
        n: number of records, at least 2.
        epsilon: privacy parameter; or
        mu: of Gaussian mechanisms.
        symmetric: see `AdaptiveMechanism`.

    Returns:
        For each of `POPULATIONS` the mean distance of steps, of one release and of the public centre from the mean of
        the records in the ball; nothing where `AdaptiveMechanism` makes one release, as there are too few records.

    Raises:
        ValueError: a parameter is out of range, or not one privacy parameter.

    Example:
        >>> from jaxgeodp import GeodesicBall, Sphere
        >>> from jaxgeodp.mechanisms import plan_in_steps
        >>> found = plan_in_steps(GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.5), n=500, mu=1.0)
        >>> found[2].population.words, found[2].ratio < 0.5
        ('normal, offset 0.5, spread 0.15', True)
    """
    positive_integer("plan_in_steps", "n", n, 2)
    epsilon_or_mu("plan_in_steps", epsilon, mu)
    pure = mu is None
    strength = PureDP(epsilon).epsilon if epsilon is not None else GaussianDP(mu).mu if mu is not None else 0.0
    found = _expected_in_steps(int(n), ball.manifold.dim, strength, pure, symmetric)
    r = ball.radius
    return tuple(own._replace(steps=r * own.steps, one=r * own.one, center=r * own.center) for own in found)


def is_better(found: tuple[Expected, ...], filled: float = 1.0) -> bool:
    """Return whether steps are chosen over one release: they gain much on the whole, and hardly lose anywhere.

    Args:
        found: by `plan_in_steps`.
        filled: a ratio that flat space does not know, such as `ratio_of_logarithms`.
    """
    return bool(found) and geometric_mean(found) <= _BETTER and max(filled, *(own.ratio for own in found)) <= _WORSE


def ratio_of_logarithms(ball: GeodesicBall, scale: float, other: float, pure: bool) -> float:
    """Return the error (noise and bias) of the mean of logarithms at the centre, over the noise of the Frechet mean.

    The bias is at most the curvature times E|v|^2 |m|/3 (docs/mathematics.md, section 20), for the first of
    `POPULATIONS`; what lies along m has none.

    Args:
        ball: public.
        scale: of the noise of the former.
        other: of the latter.
        pure: whether noise has the density exp(-|z|), or is normal.
    """
    own, dim = POPULATIONS[0], ball.manifold.dim
    curvature = max(map(abs, ball.manifold.curvature_bounds)) if dim > 1 else 0.0
    bias = curvature / 3.0 * own.offset * own.spread**2 * (1.0 - 1.0 / dim) * ball.radius**3
    length = math.sqrt(dim * (dim + 1.0 if pure else 1.0))
    return math.hypot(scale * length, bias) / (other * length)


def geometric_mean(found: tuple[Expected, ...]) -> float:
    """Return the geometric mean of the ratios of errors."""
    return math.exp(sum(math.log(max(own.ratio, 1e-300)) for own in found) / len(found))


@functools.lru_cache(maxsize=64)
def _expected_in_steps(n: int, dim: int, strength: float, pure: bool, symmetric: bool) -> tuple[Expected, ...]:
    """Return the expected errors in a ball of radius 1; see `plan_in_steps`."""
    if rule_for(n, dim, strength, pure, symmetric) is None:
        return ()
    return tuple(_expected(own, n, dim, strength, pure, symmetric) for own in POPULATIONS)


def _expected(population, n, dim, strength, pure, symmetric):
    records = population.records(dim)
    rule, draws = rule_for(n, dim, strength, pure, symmetric), np.random.default_rng(1)
    errors = [errors_in_steps(rule, records, n, strength, pure, [draws]) for _ in range(_draws(dim))]
    center = float(np.linalg.norm(records.mean(axis=0)))
    return Expected(population, float(np.mean(errors)), error_of_one(n, dim, strength, pure), center)


def error_of_one(n: int, dim: int, strength: float, pure: bool) -> float:
    """Return the mean length of the noise of one release in the unit ball."""
    return 2.0 / (n * strength) * _mean_length(dim, pure)


def errors_in_steps(
    rule: Rule | None,
    records: np.ndarray,
    n: int,
    strength: float,
    pure: bool,
    draws: Sequence[np.random.Generator],
) -> np.ndarray:
    """Return the distances of simulated releases from the mean of the records, (len(draws),).

    Args:
        rule: for n records of this dimension.
        records: that stand for n, in the unit ball, (m, dim), m even.
        n: number of records.
        strength: epsilon or mu.
        pure: whether it is epsilon.
        draws: a source of noise for each release; they are made side by side.
    """
    values = _Flat(records, n, strength, pure).released(rule, draws)
    return np.linalg.norm(values - records.mean(axis=0), axis=1)


def _mean_length(dim, pure) -> float:
    """Return the mean length of noise of scale 1: of density exp(-|z|), or normal."""
    if pure:
        return float(dim)
    return math.sqrt(2.0) * math.exp(math.lgamma((dim + 1.0) / 2.0) - math.lgamma(dim / 2.0))


class _Flat:
    """Simulated answers of stages to several walks at once, about records in the unit ball, with real-valued noise."""

    def __init__(self, records, n, strength, pure):
        self.records, self.n, self.strength, self.pure = records, n, strength, pure
        self.dim, self.squares = records.shape[1], np.sum(records**2, axis=1)

    def released(self, rule, draws):
        """Return the released values, (len(draws), dim)."""
        start, values = np.zeros(self.dim), np.zeros((len(draws), self.dim))
        walks = [refine(rule, start, 1.0, Spending(self.n, self.dim, self.strength, self.pure)) for _ in draws]
        asked = {place: next(walk) for place, walk in enumerate(walks)}
        while asked:
            for kind, answered in self.kinds:
                places = [place for place, question in asked.items() if isinstance(question, kind)]
                if not places:
                    continue
                answers = answered(self, [asked.pop(place) for place in places], [draws[place] for place in places])
                for place, answer in zip(places, answers, strict=True):
                    try:
                        asked[place] = walks[place].send(answer)
                    except StopIteration:
                        values[place] = answer.center if kind is Mean else answer
        return values

    def strengths(self, questions):
        return [strength_of(self.strength, self.pure, question.cost) for question in questions]

    def noise(self, draws, scales):
        """Return one noise vector of each source, (len(draws), dim)."""
        z = np.stack([own.normal(size=self.dim) for own in draws])
        if self.pure:
            z *= np.array([[own.gamma(self.dim)] for own in draws]) / np.linalg.norm(z, axis=1, keepdims=True)
        return np.asarray(scales)[:, None] * z

    def numbers(self, questions, draws, number, shares):
        """Return noisy counts of these shares."""
        noise = np.array([own.laplace() if self.pure else own.normal() for own in draws])
        return (number * np.asarray(shares) + noise / self.strengths(questions)).tolist()

    def lengths(self, centers):
        """Return the distances of records from centres, (len(centers), m)."""
        squares = self.squares - 2.0 * centers @ self.records.T + np.sum(centers**2, axis=1, keepdims=True)
        return np.sqrt(np.maximum(squares, 1e-300))

    def pairs(self, questions, draws):
        mixed = (own.permutation(self.records) for own in draws)
        lengths = (np.linalg.norm(own[::2] - own[1::2], axis=1) for own in mixed)
        shares = [np.mean(own <= question.radius) for own, question in zip(lengths, questions, strict=True)]
        return self.numbers(questions, draws, self.n // 2, shares)

    def counts(self, questions, draws):
        radii = np.array([[question.radius] for question in questions])
        inside = self.lengths(np.stack([question.center for question in questions])) <= radii
        return self.numbers(questions, draws, self.n, np.mean(inside, axis=1))

    def means(self, questions, draws):
        centers = np.stack([question.center for question in questions])
        clips, gains = np.array([[[own.clip], [own.gain]] for own in questions]).swapaxes(0, 1)
        factors = np.minimum(1.0, clips / self.lengths(centers))
        vectors = (factors @ self.records - np.sum(factors, axis=1, keepdims=True) * centers) / len(self.records)
        vectors += self.noise(draws, 2.0 * clips[:, 0] / (self.n * np.array(self.strengths(questions))))
        shortened = vectors * np.minimum(1.0, clips / np.linalg.norm(vectors, axis=1, keepdims=True))
        moved = centers + gains * shortened
        moved /= np.maximum(1.0, np.linalg.norm(moved, axis=1, keepdims=True))
        return list(map(Moved, vectors, moved))

    def wholes(self, questions, draws):
        noise = self.noise(draws, 2.0 / (self.n * np.array(self.strengths(questions))))
        means = self.records.mean(axis=0) + noise
        return [
            (0.0 if own.first is None else own.shares[0] * own.first) + own.shares[1] * mean
            for own, mean in zip(questions, means, strict=True)
        ]

    kinds = ((Pairs, pairs), (Count, counts), (Mean, means), (Whole, wholes))
