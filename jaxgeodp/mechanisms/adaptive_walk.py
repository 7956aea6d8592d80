"""Control flow of an adaptive release: which question follows from the earlier answers, whoever answers them.

A question is public: it follows from the rule and from what was released (docs/mathematics.md, Theorem V2). The last
one gets all that is left of the budget.
"""

import functools
import math
from collections.abc import Generator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import jaxgeodp.mechanisms.adaptive_rules as rules
from jaxgeodp.mechanisms.adaptive_rules import Rule
from jaxgeodp.privacy.decimals import float_below, square, written


class Pairs(NamedTuple):
    """Ask how many of n//2 disjoint pairs of records are at most a radius apart. The answer is a noisy number."""

    radius: float
    cost: Fraction


class Count(NamedTuple):
    """Ask how many records are within a radius of a released centre. The answer is a noisy number."""

    center: Any
    radius: float
    cost: Fraction


class Mean(NamedTuple):
    """Ask for the mean of the logarithms at a released centre, each shortened to a clip.

    The answer is `Moved`.
    """

    center: Any
    clip: float
    gain: float
    cost: Fraction


class Moved(NamedTuple):
    """The answer to `Mean`."""

    vector: Any  #: the noisy one
    center: Any  #: moved by the gain times it, shortened to the clip


class Whole(NamedTuple):
    """Ask for the mean of all records in the public ball; the answer is the released value.

    Attributes:
        first: a vector at the public centre that was released before, or None.
        shares: of it and of the new one.
        cost: all that is left.
    """

    first: Any
    shares: tuple[float, float]
    cost: Fraction


Walk = Generator[Pairs | Count | Mean | Whole, Any, None]


@functools.lru_cache(maxsize=4096)  # fractions are slow, and walks that are simulated ask the same again and again
def strength_of(strength: float, pure: bool, share: Fraction) -> float:
    """Return the epsilon or mu of a share of the budget, rounded down."""
    exact = Fraction(written(strength)) if pure else Fraction(square(written(strength)))
    return float_below(exact * share, 1 if pure else 2)


class Spending:
    """Track the spent budget exactly, and compute the noise that a share buys.

    Args:
        n, dim: numbers of records and dimensions.
        strength, pure: epsilon, or mu.
    """

    def __init__(self, n: int, dim: int, strength: float, pure: bool):
        """Store the budget, of which nothing is spent yet."""
        self.n, self.dim, self.strength, self.pure = n, dim, strength, pure
        self.spent = Fraction(0)

    @property
    def left(self) -> Fraction:
        """Return the share of the budget that is left."""
        return 1 - self.spent

    def pay(self, cost: Fraction) -> Fraction:
        """Spend a share of the budget and return it."""
        self.spent += cost
        assert self.spent <= 1  # Theorem V2
        return cost

    def variance(self, clip: float, cost: Fraction) -> float:
        """Return the variance of the noise of a mean, in each coordinate."""
        scale = 2.0 * clip / (self.n * strength_of(self.strength, self.pure, cost))
        return scale**2 * (self.dim + 1 if self.pure else 1)


def gain_of(slope: float, center: float, noise: float) -> float:
    """Return the gain of a step, for these variances of the centre and of the noise."""
    return slope * center / (slope**2 * center + noise)


def refine(rule: Rule | None, center, reach: float, spending: Spending) -> Walk:
    """Yield the questions about records about a public centre; receive the answer to each.

    Args:
        rule: None for one release.
        center: public.
        reach: how long vectors of records there may be.
        spending: of the budget, nothing of which is spent yet.
    """
    if rule is None:
        yield Whole(None, (0.0, 1.0), spending.pay(Fraction(1)))
        return
    yield from (_fixed if rule.fixed else _pure if rule.pure else _gaussian)(rule, np.asarray(center), reach, spending)


def _gaussian(rule, public, r, spending) -> Walk:
    dim = spending.dim
    first, center = yield Mean(public, r, 1.0, spending.pay(rule.first))
    noise = spending.variance(r, rule.first)
    variance = first_variance(rule, noise, r, dim)
    radius = r
    for visit in range(rules.MIDDLES + 1):
        radii = tried_radii(np, r, math.sqrt(variance * dim))
        low, high = 0, len(radii) - 1
        while low < high:
            middle = (low + high) // 2
            count = yield Count(center, radii[middle], spending.pay(rule.counting))
            low, high = (low, middle) if count >= rule.kept * spending.n else (middle + 1, high)
        radius = float(radii[high])
        if visit == 0 and radius >= rule.filled * r:
            own = spending.variance(r, spending.left)
            shares = own / (noise + own), noise / (noise + own)
            yield Whole(first, shares, spending.pay(spending.left))
            return
        if variance * dim <= rules.KNOWN * radius**2 or visit == rules.MIDDLES:
            break
        gain = gain_of(rule.slope, variance, spending.variance(radius, rule.middle))
        _, center = yield Mean(center, radius, gain, spending.pay(rule.middle))
        variance = moved_variance(rule, variance, gain, spending.variance(radius, rule.middle), radius, dim)
    clip = min(rule.reach * radius / math.sqrt(rules.STEP), r)
    gain = gain_of(rule.slope, variance, spending.variance(clip, spending.left))
    yield Mean(center, clip, gain, spending.pay(spending.left))


def _pure(rule, public, r, spending) -> Walk:
    dim, n = spending.dim, spending.n
    near = yield Pairs(rule.pair_radius * r, spending.pay(rule.pairs))
    if near < rule.filled * (n // 2):
        yield Whole(None, (0.0, 1.0), spending.pay(spending.left))
        return
    clip = rule.first_clip * r
    _, center = yield Mean(public, clip, 1.0, spending.pay(rule.first))
    variance = first_variance(rule, spending.variance(clip, rule.first), r, dim)
    radius, middles = rule.start * r, 0
    for share in rule.ladder:
        known = share * r >= rules.TOO_NEAR * math.sqrt(variance * dim)
        if not known and middles < rules.MIDDLES and spending.left >= rules.LEFT:
            middles, clip = middles + 1, min(rule.reach * radius, r)
            noise = spending.variance(clip, rule.middle)
            gain = gain_of(rule.slope, variance, noise)
            _, center = yield Mean(center, clip, gain, spending.pay(rule.middle))
            variance = moved_variance(rule, variance, gain, noise, radius, dim)
            known = share * r >= rules.TOO_NEAR * math.sqrt(variance * dim)
        if not known:
            break
        count = yield Count(center, share * r, spending.pay(rule.counting))
        if count < rule.kept * n:
            break
        radius = share * r
    clip = min(rule.reach * radius, r)
    gain = gain_of(rule.slope, variance, spending.variance(clip, spending.left))
    yield Mean(center, clip, gain, spending.pay(spending.left))


def _fixed(rule, public, r, spending) -> Walk:
    clip = rule.first_clip * r
    _, center = yield Mean(public, clip, 1.0, spending.pay(rule.first))
    variance = first_variance(rule, spending.variance(clip, rule.first), r, spending.dim)
    gain = gain_of(rule.slope, variance, spending.variance(rule.reach * r, spending.left))
    yield Mean(center, rule.reach * r, gain, spending.pay(spending.left))


def first_variance(rule, noise, r, dim):
    """Return the variance of a centre found by a first mean: its noise, and the bias of clipping."""
    return noise + ((rules.FIRST_BIAS + 0.1 * (1.0 - rule.first_clip)) * r) ** 2 / dim


def moved_variance(rule, variance, gain, noise, radius, dim):
    """Return the variance of a centre after a step."""
    return (1.0 - gain * rule.slope) ** 2 * variance + gain**2 * noise + (rules.BIAS * radius) ** 2 / dim


def tried_radii(module, r, error):
    """Return the radii to try, ascending, from a multiple of the centre's error up to r.

    Args:
        module: NumPy, or JAX's; there as many as there can be, the last ones all r.
        r: of the public ball.
        error: of the centre.
    """
    least = module.clip(rules.NOISE * error, rules.LEAST * r, rules.MOST * r)
    most = math.ceil(math.log(1.0 / rules.LEAST) / math.log(rules.STEP)) + 1
    radii = module.minimum(least * rules.STEP ** np.arange(most + 1.0), r)
    return radii if module is not np else radii[: int(np.argmax(radii >= r)) + 1]
