"""The public numbers of a search: how many stages, how much noise each has, at which radii it stops.

Nothing here depends on a record: all follows from the manifold, n and the privacy parameter.
"""

import dataclasses
import math
from fractions import Fraction
from typing import NamedTuple

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import assumption_limit
from jaxgeodp.locating.parts import Part
from jaxgeodp.manifolds import Manifold
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.decimals import float_above, float_below, square, written
from jaxgeodp.privacy.guarantee import Guarantee, PureDP, ZeroConcentratedDP

#: Shares of epsilon, or of mu^2: of all radii before the last, of all centres, of the last radius.
OPEN_SHARES, COMPACT_SHARES = (0.08, 0.16, 0.06), (0.0, 0.12, 0.06)
# Rounds for a domain of this many units of 1/sqrt|k_min| and more; noise across the direction of a mean at distance z
# grows by sinh(z)/z.
_ROUNDS = ((6.0, 3), (3.0, 2), (0.0, 1))
# Radii of the domain that are tried, from the largest down: half steps of a factor of 2; later quarter steps.
_HALF_STEPS, _QUARTER_STEPS = 22, 48
# Of the limit of Assumption 1, the largest radius of the last ball.
_INSIDE = 0.9
# A radius may leave out this share of the records.
_LEFT_OUT = 0.25
# Noise of a centre in units of the radius: more, and the next radius is hardly smaller (measured:
# benchmarks/locate.py).
_MOST_NOISE = 0.25
# Of the noise of a radius, below which a radius that holds all records is seldom missed.
_SPREADS = 1.5


class Noise(NamedTuple):
    """Discrete noise of one stage: Laplace scale, or Gaussian sigma, in integers."""

    scale: int
    gaussian: bool = False

    def length(self, dim: int) -> float:
        """The root mean square length of a vector of such noise."""
        return self.scale * math.sqrt(dim if self.gaussian else 2.0 * dim)


@dataclasses.dataclass(frozen=True)
class Schedule:
    """See the module docstring.

    Attributes:
        parts: of the manifold.
        rounds: of radius and centre on parts without end; compact parts have one centre.
        domains: radius about the origin of each part; 0 for compact ones.
        counts: scale of the discrete Laplace noise of a radius, on counts, before the last one.
        last_counts: of the last radius.
        centers: of each part, on sums of integers.
        left_out: how many records a radius before the last, and the last one, may leave out.
        rest: the privacy parameter of the release.
        spent: by all stages before it.
    """

    parts: tuple[Part, ...]
    rounds: int
    domains: tuple[float, ...]
    counts: int
    last_counts: int
    centers: tuple[Noise, ...]
    left_out: tuple[int, int]
    rest: float
    spent: PureDP | ZeroConcentratedDP

    @property
    def enough(self) -> int:
        """Of how many records radii leave out a quarter at most, and centres have little noise."""
        scales = [self.last_counts] + [self.counts] * any(part.open for part in self.parts)
        lengths = [noise.length(part.manifold.dim) for part, noise in zip(self.parts, self.centers, strict=True)]
        return math.ceil(max(_SPREADS * max(scales) / _LEFT_OUT, max(lengths) / grid.STEPS / _MOST_NOISE))

    def radii(self, place: int) -> list[float]:
        """Radii of a part's domain, ascending."""
        return [self.domains[place] * 2.0 ** (-j / 2.0) for j in range(_HALF_STEPS)][::-1]


def schedule(
    manifold: Manifold,
    parts: tuple[Part, ...],
    domains: tuple[float, ...],
    n: int,
    promise: Guarantee,
    shares: tuple[float, float, float] | None,
) -> Schedule:
    """The stages for n records.

    Args:
        manifold: of the records.
        parts, domains: see `Schedule`.
        n: number of records.
        promise: `PureDP` or `GaussianDP`: the whole budget.
        shares: see `OPEN_SHARES`.

    Raises:
        ValueError: so few records, for this budget, that a search would end anywhere.
    """
    opened = [part for part in parts if part.open]
    if shares is None:
        kinds = ([OPEN_SHARES] if opened else []) + ([COMPACT_SHARES] if len(opened) < len(parts) else [])
        first = max(own[0] for own in kinds)
        shares = (first, sum(own[1] for own in kinds), kinds[0][2])
    most = 1
    for part, domain in zip(parts, domains, strict=True):
        bend = domain * math.sqrt(max(0.0, -part.manifold.curvature_bounds[0]))
        most = max(most, next(rounds for reach, rounds in _ROUNDS if bend >= reach)) if part.open else most
        most = max(most, 2) if part.open else most
    found = _scheduled(manifold, parts, domains, n, promise, shares, most)
    for rounds in range(most, 0, -1):
        found = _scheduled(manifold, parts, domains, n, promise, shares, rounds)
        if found.enough <= n:
            return found
    enough = f"{found.enough}" if found.enough < 10**9 else f"{float(found.enough):.3g}"
    raise InputError(
        f"LocatedMechanism: n = {n} records are too few to find a ball on {manifold} with {promise}: give a public "
        f"ball, a larger privacy parameter, or {enough} records."
    )


def _scheduled(manifold, parts, domains, n, promise, shares, rounds) -> Schedule:
    pure = isinstance(promise, PureDP)
    whole = Fraction(written(promise.epsilon)) if pure else Fraction(square(written(promise.mu)))
    of_radii, of_centers, of_last = (Fraction(written(share)) * whole for share in shares)
    opened = sum(part.open for part in parts)
    searches = rounds * opened  # of a radius
    steps = searches + len(parts) - opened  # of a centre
    counts = _count_scale(of_radii / searches, pure) if searches else 1
    last = _count_scale(of_last, pure)
    centers = tuple(_center_noise(part, of_centers / steps, pure) for part in parts)
    spent = searches * _count_cost(counts, pure) + _count_cost(last, pure)
    for part, noise in zip(parts, centers, strict=True):
        spent += (rounds if part.open else 1) * _center_cost(part, noise)
    if pure:
        rest, guarantee = float_below(whole - spent), PureDP(float_above(spent))
    else:
        rest, guarantee = float_below(whole - 2 * spent, 2), ZeroConcentratedDP(float_above(spent))
    dim, longest = manifold.dim, max(part.vector_length for part in parts)
    to_center = float(of_centers / steps)
    left_out = (
        _left_out(n, counts, _next_noise(longest, to_center, pure)) if searches else 0,
        _left_out(n, last, _next_noise(dim, rest if pure else rest**2, pure)),
    )
    return Schedule(parts, rounds, domains, counts, last, centers, left_out, rest, guarantee)


def _next_noise(dim, strength, pure):
    """The error of the next stage in units of R/n: leaving out as many records costs as much."""
    return 2.0 * dim / strength if pure else 2.0 * math.sqrt(dim / strength)


def _left_out(n, scale, next_noise):
    return math.ceil(max(_SPREADS * scale, min(next_noise, _LEFT_OUT * n)))


def _count_scale(share: Fraction, pure: bool) -> int:
    """Of AboveThreshold: epsilon is 2/scale, rho (3/scale)^2/8 (docs/mathematics.md, Theorem Q1)."""
    if pure:
        return math.ceil(2 / share)
    return math.isqrt(math.ceil(9 / (4 * share))) + 1  # share of mu^2, twice rho


def _count_cost(scale: int, pure: bool) -> Fraction:
    return Fraction(2, scale) if pure else Fraction(9, 8 * scale**2)


def _center_noise(part: Part, share: Fraction, pure: bool) -> Noise:
    """For vectors of integers that a record moves by 2 STEPS at most."""
    moved = 2 * grid.STEPS
    if pure:
        return Noise(math.ceil(math.isqrt(part.vector_length * moved**2) / share))
    return Noise(math.isqrt(math.ceil(moved**2 / share)) + 1, True)


def _center_cost(part: Part, noise: Noise) -> Fraction:
    moved = 2 * grid.STEPS
    if noise.gaussian:
        return Fraction(moved**2, 2 * noise.scale**2)
    return Fraction(math.isqrt(part.vector_length * moved**2), noise.scale)


def last_radii(manifold: Manifold, domains: tuple[float, ...]) -> list[float]:
    """Radii of the last ball, ascending: in quarter steps up to the double of the domain, or Assumption 1's limit."""
    largest = min(_INSIDE * assumption_limit(manifold), 2.0 * math.hypot(*domains) if any(domains) else math.inf)
    return [largest * 2.0 ** (-j / 4.0) for j in range(_QUARTER_STEPS)][::-1]
