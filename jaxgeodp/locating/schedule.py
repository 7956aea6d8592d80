"""The public numbers of a search: how many stages, how much noise each has, at which radii it stops.

Nothing here depends on a record: all follows from the manifold, n and the privacy parameter.
"""

import dataclasses
import functools
import itertools
import math
from fractions import Fraction
from typing import NamedTuple

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import assumption_limit
from jaxgeodp.locating.centers import Noise, drawn_law
from jaxgeodp.locating.parts import Part
from jaxgeodp.manifolds import Manifold
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.decimals import float_above, float_below, square, written
from jaxgeodp.privacy.guarantee import GaussianDP, Guarantee, PureDP, ZeroConcentratedDP

#: Shares of epsilon, or of mu^2, at most, and at least where a part has no end: of all radii before the last, of all
#: centres, of the last radius. Between them as much as `_FINE_COUNTS` and `_FINE_CENTERS` ask for (all measured:
#: benchmarks/measure/locate.py).
OPEN_SHARES, COMPACT_SHARES, LEAST_SHARES = (0.08, 0.16, 0.06), (0.0, 0.12, 0.06), (0.02, 0.04, 0.02)
_NONE = (0.0, 0.0, 0.0)
# Noise of counts in units of n, and of centres in units of the radius, that need not be smaller.
_FINE_COUNTS, _FINE_CENTERS = 0.03, 0.05
# Rounds for a domain of this many units of 1/sqrt|k_min| and more; noise across the direction of a mean at distance z
# grows by sinh(z)/z.
_ROUNDS = ((6.0, 3), (3.0, 2), (0.0, 1))
# Radii of the domain that are tried, from the largest down: half steps of a factor of 2; later quarter steps.
_HALF_STEPS, _QUARTER_STEPS = 22, 48
# Of the limit of Assumption 1, the largest radius of the last ball.
_INSIDE = 0.9
# A radius may leave out this share of the records.
_LEFT_OUT = 0.25
# Up to this share it leaves out more, so that one that is missed is rare (measured: 90 % of the errors are below 2.0
# times their median in place of 2.3, on SPD(2)).
_FEW = 0.15
# Noise of a centre in units of the radius: more, and the next radius is hardly smaller (measured:
# benchmarks/measure/locate.py).
_MOST_NOISE = 0.25
# Beyond which no number of records is asked for.
_MOST_RECORDS = 10**18
# Of the noise of a radius, below which a radius that holds all records is seldom missed.
_SPREADS = 1.5


@dataclasses.dataclass(frozen=True)
class Schedule:
    """Hold the public numbers of a search: its stages, their noise and the radii at which it stops.

    Attributes:
        parts: of the manifold.
        rounds: of radius and centre on parts without end; compact parts have one centre.
        domains: radius about the origin of each part; 0 for compact ones.
        counts: scale of the discrete Laplace noise of a radius, on counts, before the last one.
        last_counts: of the last radius.
        centers: of each part, on sums of integers.
        drawn: the promise of a centre of a part without end that is a draw at the mean.
        draws: in how many rounds it is, all or none; on a grid it is a sum in all.
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
    drawn: PureDP | GaussianDP
    draws: int
    left_out: tuple[int, int]
    rest: float
    spent: PureDP | ZeroConcentratedDP

    @property
    def enough(self) -> int:
        """Return the least n for which a radius omits at most a quarter of the records and centre noise is small."""
        scales = [self.last_counts] + [self.counts] * any(part.open for part in self.parts)
        lengths = [self._length(part, noise) for part, noise in zip(self.parts, self.centers, strict=True)]
        return math.ceil(max(_SPREADS * max(scales) / _LEFT_OUT, max(lengths) / _MOST_NOISE))

    def _length(self, part, noise):
        """How long the noise of a centre is, in units of R/n where space is flat."""
        if self.draws == 0 or not part.open or isinstance(self.drawn, GaussianDP):  # as long as that of sums
            return noise.length(part.manifold.dim) / grid.STEPS
        return (1.0 if part.manifold.homogeneous else 2.0) * 2.0 * part.manifold.dim / self.drawn.epsilon

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
    drawn: bool,
) -> Schedule:
    """Return the stages for n records.

    Args:
        manifold: of the records.
        parts, domains: see `Schedule`.
        n: number of records.
        promise: `PureDP` or `GaussianDP`: the whole budget.
        shares: see `OPEN_SHARES`.
        drawn: whether centres may be draws at the mean, for a promise that is pure. Where it is not, and space is
            curved, they are in a release that is not on a grid, if such a law exists in all of the domain.

    Raises:
        ValueError: so few records, for this budget, that a search would end anywhere.
    """
    opened = [part for part in parts if part.open]
    drawn = drawn and isinstance(promise, PureDP) and bool(opened)
    most = max((_rounds(part, domain, drawn) for part, domain in zip(parts, domains, strict=True)), default=1)
    scheduled = functools.partial(_scheduled, manifold, parts, domains, promise, shares, drawn)
    for rounds, generous in itertools.product(range(most, 0, -1), (1.0, 2.0, math.inf)):
        found = scheduled(n, rounds, generous)
        if _suffices(found, n):
            return _with_draws(found, n) if isinstance(promise, GaussianDP) else found
    needed = _needed(scheduled, n)
    if needed is None and drawn:
        return schedule(manifold, parts, domains, n, promise, shares, False)
    if needed is None:
        raise InputError(
            f"LocatedMechanism: the noise of a search in the whole domain on {manifold} with n = {n} and {promise} "
            "exceeds double precision: give a smaller domain, or a public ball."
        )
    wide = "" if not opened else ", a smaller domain"
    enough = f"{needed}" if needed < 10**9 else f"{float(needed):.3g}"
    raise InputError(
        f"LocatedMechanism: n = {n} records are too few to find a ball on {manifold} with {promise}: give a public "
        f"ball{wide}, a larger privacy parameter, or {enough} records."
    )


def _rounds(part, domain, drawn) -> int:
    """Return the largest number of rounds to try; two suffice with draws, whose noise is equal at any distance."""
    if not part.open:
        return 1
    bend = domain * math.sqrt(max(0.0, -part.manifold.curvature_bounds[0]))
    return 2 if drawn else max(2, next(rounds for reach, rounds in _ROUNDS if bend >= reach))


def _suffices(plan: Schedule, n: int) -> bool:
    """Whether a search with n records finds a ball, wherever in the domain the records are."""
    return plan.enough <= n and (plan.draws == 0 or _can_draw(plan, n))


def _can_draw(plan: Schedule, n: int) -> bool:
    """Whether the law of a draw exists in all of the domain."""
    try:
        for part, domain in zip(plan.parts, plan.domains, strict=True):
            if part.open:
                drawn_law(part, plan.drawn, domain, n)
    except InputError:
        return False
    return True


def _with_draws(plan: Schedule, n: int) -> Schedule:
    """The same with centres whose noise does not grow with the distance, if there are any."""
    curved = any(part.open and part.manifold.curvature_bounds[0] < 0.0 for part in plan.parts)
    return dataclasses.replace(plan, draws=plan.rounds) if curved and _can_draw(plan, n) else plan


def _needed(scheduled, n) -> int | None:
    """The least number of records that suffices, for one round; None if there is none."""
    fewer, more = n, 2 * n
    while not _suffices(scheduled(more, 1), more):
        fewer, more = more, 2 * more
        if more > _MOST_RECORDS:
            return None
    while more - fewer > 1:
        middle = (fewer + more) // 2
        fewer, more = (fewer, middle) if _suffices(scheduled(middle, 1), middle) else (middle, more)
    return more


def _scheduled(manifold, parts, domains, promise, shares, drawn, n, rounds, generous=math.inf) -> Schedule:
    pure = isinstance(promise, PureDP)
    whole = Fraction(written(promise.epsilon)) if pure else Fraction(square(written(promise.mu)))
    shares = _Shares(*shares) if shares else _usual_shares(parts, float(whole), pure, n, rounds, generous)
    of_radii, of_centers, of_last = (Fraction(written(share)) * whole for share in shares)
    opened = sum(part.open for part in parts)
    searches = rounds * opened  # of a radius
    steps = searches + len(parts) - opened  # of a centre
    counts = _count_scale(of_radii / searches, pure) if searches else 1
    last = _count_scale(of_last, pure)
    centers = tuple(_center_noise(part, of_centers / steps, pure) for part in parts)
    spent = searches * _count_cost(counts, pure) + _count_cost(last, pure)
    # A draw costs no more than what a sum may cost; mu-GDP is mu^2/2-zCDP.
    own = float_below(of_centers / steps) if pure else float_below(of_centers / steps, 2)
    draw_promise = PureDP(own) if pure else GaussianDP(own)
    for part, noise in zip(parts, centers, strict=True):
        cost = center_cost(part, noise)
        # What a stage states is its decimal number: that is charged.
        draw = Fraction(written(own)) if pure else Fraction(square(written(own))) / 2
        spent += rounds * (max(cost, draw) if drawn or not pure else cost) if part.open else cost
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
    return Schedule(
        parts, rounds, domains, counts, last, centers, draw_promise, rounds if drawn else 0, left_out, rest, guarantee
    )


class _Shares(NamedTuple):
    radii: float  # but the last
    centers: float
    last: float


def _usual_shares(parts, whole, pure, n, rounds, generous) -> _Shares:
    """Return budget shares that suffice for n records, centres' times ``generous``, at most the default shares."""
    opened = [part for part in parts if part.open]
    closed = [part for part in parts if not part.open]
    wide, round_ones = (OPEN_SHARES if opened else _NONE), (COMPACT_SHARES if closed else _NONE)
    most = [own + other for own, other in zip(wide, round_ones, strict=True)]
    most[2] = OPEN_SHARES[2]
    if math.isinf(generous):
        return _Shares(*most)
    dim = max(part.vector_length for part in parts)
    count = 2.0 / (_FINE_COUNTS * n) if pure else 2.25 / (_FINE_COUNTS * n) ** 2
    center = 2.0 * dim / (_FINE_CENTERS * n) if pure else 4.0 * dim / (_FINE_CENTERS * n) ** 2
    steps = rounds * len(opened) + len(closed)
    wanted = (rounds * len(opened) * count / whole, steps * center / whole, count / whole)
    times = (1.0, generous, 1.0)
    enough = [scale * max(own, least) for scale, own, least in zip(times, wanted, LEAST_SHARES, strict=True)]
    return _Shares(*(round(min(pair), 4) for pair in zip(most, enough, strict=True)))


def _next_noise(dim, strength, pure):
    """The error of the next stage in units of R/n: leaving out as many records costs as much."""
    return 2.0 * dim / strength if pure else 2.0 * math.sqrt(dim / strength)


def _left_out(n, scale, next_noise):
    """Return how many records a radius may omit; larger for large n, as a missed radius costs more than records."""
    return math.ceil(max(_SPREADS * scale, min(2.0 * _SPREADS * scale, _FEW * n), min(next_noise, _LEFT_OUT * n)))


def _count_scale(share: Fraction, pure: bool) -> int:
    """Return the noise scale of AboveThreshold: epsilon is 2/scale, rho (3/scale)^2/8 (Theorem Q1)."""
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


def center_cost(part: Part, noise: Noise) -> Fraction:
    """Epsilon, or rho, of a noisy sum of integer vectors, exactly."""
    moved = 2 * grid.STEPS
    if noise.gaussian:
        return Fraction(moved**2, 2 * noise.scale**2)
    return Fraction(math.isqrt(part.vector_length * moved**2), noise.scale)


def last_radii(manifold: Manifold, domains: tuple[float, ...]) -> list[float]:
    """Radii of the last ball, ascending: in quarter steps up to the double of the domain, or Assumption 1's limit."""
    largest = min(_INSIDE * assumption_limit(manifold), 2.0 * math.hypot(*domains) if any(domains) else math.inf)
    return [largest * 2.0 ** (-j / 4.0) for j in range(_QUARTER_STEPS)][::-1]
