"""The Gibbs mechanism: one draw from exp(-k F), mu-GDP for convex losses on any manifold (ours)."""

import dataclasses
import math
from typing import NamedTuple, final

import numpy as np
from typing_extensions import override

from jaxgeodp.bounds import largest_support
from jaxgeodp.bounds.comparison import h_max
from jaxgeodp.bounds.gibbs import gibbs_rate
from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.checks import InputError, number_between
from jaxgeodp.compiling import refused_in_words
from jaxgeodp.domains.records import record_count
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.mechanisms.potential import Potential
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.releases.density import SAMPLER, DensityLaw
from jaxgeodp.releases.law import Terms
from jaxgeodp.statistics.statistic import FrechetMean, Statistic

_THEOREM = "docs/mathematics.md, Theorem P: mu = k Delta/sqrt(k m + Ricci)"
_IF = "exact up to floating point, if what is supposed of the losses holds"
_WITH_BARRIER = "docs/mathematics.md, Theorems P and P2: mu = k Delta/sqrt(k m + Ricci), with a public barrier"
# Barriers that are tried begin at these shares of the ball's radius, and supports end at these; few, as programs are
# compiled for them.
_STARTS = tuple(j / 8.0 for j in range(9))
_ENDS = (1.0, 0.75, 0.625)
# Values of lambda that are tried, in units of the best in flat space.
_RIDGES = np.geomspace(2.0**-12, 2.0**12, 97)
# How much more a barrier pulls at the rim than F may.
_MARGIN = 1.05
# Of errors that count as equal.
_EQUAL = 1e-9
# Of radii.
_MOST = 1e30
# Standard deviations for which there is room between the supposed mean and the rim of the support.
_ROOM = 3.0
# A mean is supposed to be this share of the radius away from the centre, where a barrier is chosen.
_SUPPOSED = 0.5
# In more, draws about records at the rim need noise that is short against the room beyond the barrier.
_FEW_DIMENSIONS = 20


class Candidate(NamedTuple):
    """A support and a barrier that are tried, in units of the ball's radius."""

    support: float  #: where it ends
    barrier: float  #: where it begins
    sensitivity: Sensitivity  #: of the gradient
    rate: float = math.nan  #: k; NaN where there is none
    ridge: float = 0.0  #: lambda
    error: float = math.inf  #: expected, squared, or with a ridge the risk


@final
@dataclasses.dataclass(frozen=True, eq=False)
class GibbsMechanism(BallMechanism):
    """Density exp(-k (F(x; D) + W(x))), F the objective that the statistic minimises: mu-GDP.

    k is the largest for which Theorem P proves it, and the scale is 1/k: the theorem needs how much the gradient of F
    can change, not how much the minimiser can. The Frechet mean where no curvature is positive is drawn from the whole
    manifold, with W = 0. All else is drawn from a ball about the public centre, and W is a public barrier: 0 up to a
    distance r0 from the centre, and beyond it as convex as F is less so. It draws releases of data whose summary lies
    beyond r0 towards the centre. Where F is not convex enough for any k, W has (lambda/2) dist(x, p0)^2, too, p0 the
    centre of the ball, and the record says lambda: the one with the smallest bound of the expected risk.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        mu: privacy parameter, in (0, inf).
        statistic: what is summarised: one whose `Statistic.convexity` is known.
        support_radius: R, of the ball of releases, above 0.
        barrier_radius: r0, from 0 to R; R for no barrier. By default R is 5, 6 or 8 eighths of the radius of the ball
            (none where that is proven), and r0 some eighths: those with the smallest expected error for a mean half a
            radius away from the centre.

    Raises:
        ValueError: see `BallMechanism`; a radius is out of range, or nothing is known of the statistic's convexity.

    Example:
        >>> from jaxgeodp import GeodesicBall, GibbsMechanism, SPD
        >>> mechanism = GibbsMechanism(GeodesicBall(SPD(2), SPD(2).origin, 1.5), mu=1.0)
        >>> round(mechanism.scale(100) ** 0.5 / mechanism.sensitivity(100), 3)
        1.0
    """

    mu: float
    statistic: Statistic = dataclasses.field(default_factory=FrechetMean)
    support_radius: float | None = None
    barrier_radius: float | None = None

    def __post_init__(self):
        super().__post_init__()
        if not isinstance(self.statistic, Statistic):
            raise InputError(f"GibbsMechanism: statistic must be a Statistic, got {type(self.statistic).__name__}.")
        for name in ("support_radius", "barrier_radius"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, number_between("GibbsMechanism", name, given, 0.0, _MOST))
        with refused_in_words("GibbsMechanism"):
            self.statistic.check(self.ball.manifold)
            float(self.statistic.convexity(self.ball, self.ball.radius))  # refuses where none is known
        limit = _largest_support(self.ball)
        if self.support_radius is not None and not 0.0 < self.support_radius < limit:
            raise InputError(
                f"GibbsMechanism: support_radius must be above 0 and below {limit:.6g}, got {self.support_radius!r}."
            )
        if self.barrier_radius is not None:
            self._check_barrier(self.barrier_radius)

    def _check_barrier(self, barrier_radius):
        ends = [end * self.ball.radius for end in self._ends]
        if not 0.0 <= barrier_radius <= max(ends):
            raise InputError(
                f"GibbsMechanism: barrier_radius must be between 0 and the support's radius {max(ends):g}, got "
                f"{barrier_radius!r}."
            )
        outward = math.isfinite(max(ends)) and self.statistic.outward_pull(self.ball, max(ends)) > 0.0
        if outward and not barrier_radius < max(ends):
            raise InputError(
                f"GibbsMechanism: barrier_radius must be below the support's radius {max(ends):g} for "
                f"{self.statistic.description} in this support, got {barrier_radius!r}."
            )

    @property
    def guarantee(self) -> GaussianDP:
        """Return mu-GDP."""
        return GaussianDP(self.mu)

    @property
    @override
    def supports(self):
        return super().supports | ({"delta"} if isinstance(self.statistic, FrechetMean) else set())

    @override
    def law(self, n, shape=()):
        n, ball = record_count(n), self.ball
        chosen = self._chosen(n)
        end, start, rate, ridge = chosen.support, chosen.barrier, chosen.rate, chosen.ridge
        if not math.isfinite(rate):
            raise InputError(
                f"GibbsMechanism: with n={n}, mu={self.mu:g}, radius={ball.radius:g} there is no k for which mu-GDP is "
                f"proven on {ball.manifold}: raise mu or n, or lower radius."
            )
        wall = self._wall(end, start) if start < end else 0.0
        barrier = (start < end and math.isfinite(end)) or ridge > 0.0
        many, wide = ball.manifold.dim > _FEW_DIMENSIONS, math.sqrt(ball.manifold.dim / rate)
        if barrier and many and wide > 0.5 * (end - start) * ball.radius:
            raise InputError(
                f"GibbsMechanism: with n={n}, mu={self.mu:g}, radius={ball.radius:g} the noise is so wide that "
                f"rejection might never accept a draw in {ball.manifold.dim} dimensions: raise mu or n, or use "
                "WrappedGaussian."
            )
        terms = Terms(
            mechanism="GibbsMechanism",
            statistic=self._described_statistic,
            n=n,
            strength=self.mu,
            guarantee=self.guarantee,
            sensitivity=chosen.sensitivity.value,
            formula=chosen.sensitivity.formula,
            theorem=_WITH_BARRIER if barrier else _THEOREM,
            sampler=SAMPLER | ({"exactness": _IF} if self.statistic.supposes else {}),
            timing="the running time depends on the data",
            more={"barrier": _described(start * ball.radius, wall, ridge)} if barrier else None,
        )
        support = dataclasses.replace(ball, radius=end * ball.radius) if math.isfinite(end) else None
        end = end if math.isfinite(end) else None
        target = Potential(self.statistic, start if barrier else None, end, wall, ridge if ridge > 0.0 else None)
        return DensityLaw(target, ball, 1.0 / rate, support, terms, n)

    @property
    def _described_statistic(self):
        """Return the statistic's description, marked if its bounds are user-asserted."""
        own = self.statistic.description
        return f"{own}, supposed: all its bounds" if self.statistic.supposes and "supposed" not in own else own

    @property
    def _ends(self) -> tuple[float, ...]:
        """Return the support radii that are tried, in units of the ball's radius."""
        if self.support_radius is not None:
            return (self.support_radius / self.ball.radius,)
        return (math.inf,) if self.statistic.may_be_unbounded(self.ball.manifold) else _ENDS

    def _chosen(self, n) -> Candidate:
        """Return the candidate with the smallest error.

        lambda is 0 unless there is no k without it, or the loss is a user's, for which only a risk is known.
        """
        found = [self._without_ridge(own) for own in self._tried(self._ends, n)]
        if self.statistic.supposes or not any(math.isfinite(own.rate) for own in found):
            ends = self._ends if math.isfinite(max(self._ends)) else _ENDS
            found = [self._with_ridge(own) for own in self._tried(ends, n)]
        most = min(own.error for own in found) * (1.0 + _EQUAL)
        ties = [own for own in found if own.error <= most]
        return max(ties, key=lambda own: own.barrier)  # the widest flat region moves the fewest means

    def _tried(self, ends, n):
        for end in ends:
            sensitivity = self.statistic.gradient_sensitivity(self.ball, n, end * self.ball.radius, "tight")
            for start in self._starts(end):
                yield Candidate(end, start, sensitivity)

    def _starts(self, end):
        """Return the barrier radii that are tried, in units of the ball's radius."""
        starts = [end, *(_STARTS if math.isfinite(end) else ())]
        if self.barrier_radius is not None:
            starts = [min(self.barrier_radius / self.ball.radius, end)]
        # Without a barrier the minimum may lie at the rim, where draws are rare.
        outward = math.isfinite(end) and self.statistic.outward_pull(self.ball, end * self.ball.radius) > 0.0
        return [start for start in dict.fromkeys(starts) if start < end or (start == end and not outward)]

    def _rate(self, gradient, start, end, ridge):
        convexity = self.statistic.convexity(self.ball, start * self.ball.radius) + ridge * self._bend(end)
        return gibbs_rate(self.mu, gradient, convexity, self.ball.manifold.ricci_bound) if convexity > 0.0 else math.nan

    def _bend(self, end):
        """Return a lower bound of the Hessian of half the squared distance from the centre, within the support."""
        return h_max(end * self.ball.radius, self.ball.manifold.curvature_bounds[1]) if math.isfinite(end) else 1.0

    def _without_ridge(self, own: Candidate) -> Candidate:
        end, rate = own.support, self._rate(own.sensitivity.value, own.barrier, own.support, 0.0)
        roomy = len(self._ends) == 1 or end == max(self._ends) or _leaves_room(end, rate, self.ball.radius)
        return own._replace(rate=rate, error=self._expected(own.barrier, end, rate) if roomy else math.inf)

    def _with_ridge(self, own: Candidate) -> Candidate:
        """Return the candidate with the lambda of least d/k + lambda t^2/2: a bound of the expected risk.

        t is the distance of the minimiser from the centre.

        0 is among those that are tried. With a negative convexity or Ricci curvature lambda must exceed what makes up
        for them.
        """
        end, start, sensitivity = own.support, own.barrier, own.sensitivity
        manifold, away = self.ball.manifold, _SUPPOSED * self.ball.radius
        short = 2.0 * sensitivity.value * math.sqrt(max(-manifold.ricci_bound, 0.0)) / self.mu
        short -= self.statistic.convexity(self.ball, start * self.ball.radius)
        flat = sensitivity.value * math.sqrt(2.0 * manifold.dim) / (self.mu * away)  # the best where Ricci is 0
        tried = np.append(0.0, max(float(short), 0.0) / self._bend(end) + flat * _RIDGES)
        rates = [self._rate(sensitivity.value, start, end, float(ridge)) for ridge in tried]
        risks = manifold.dim / np.asarray(rates) + 0.5 * tried * away**2
        risks += self._wall(end, start) * 0.5 * max(away - start * self.ball.radius, 0.0) ** 2
        best = int(np.nanargmin(risks)) if np.any(np.isfinite(risks)) else 0
        risk = float(np.nan_to_num(risks[best], nan=math.inf))
        return own._replace(rate=rates[best], ridge=float(tried[best]), error=risk)

    def _expected(self, start, end, rate):
        """Return the squared error in flat space, for a mean at the supposed distance; infinite without a rate."""
        if not math.isfinite(rate):
            return math.inf
        away, radius = _SUPPOSED * self.ball.radius, self.ball.radius
        least, there = (float(self.statistic.convexity(self.ball, t)) for t in (start * radius, away))
        root = math.sqrt(max(self.ball.manifold.curvature_bounds[1], 0.0))
        pull = max(least - there, 0.0) * (math.tan(root * away) / root if root > 0.0 else away)
        pull += self._wall(end, start) * max(away - start * radius, 0.0)
        return self.ball.manifold.dim / rate + (pull / least) ** 2

    def _wall(self, end, start):
        """Return the barrier's wall, which keeps the minimum within the support."""
        outward = self.statistic.outward_pull(self.ball, end * self.ball.radius) if math.isfinite(end) else 0.0
        return _MARGIN * outward / ((end - start) * self.ball.radius) if outward > 0.0 else 0.0


def _leaves_room(end, rate, radius):
    """Return whether there is room between the supposed mean and the rim of a support."""
    return math.isfinite(rate) and (end - _SUPPOSED) * radius > _ROOM / math.sqrt(rate)


def _largest_support(ball):
    """Return the largest support radius: no loss here is convex beyond a quarter of a great circle from a record."""
    highest = ball.manifold.curvature_bounds[1]
    convex = 0.5 * math.pi / math.sqrt(highest) - ball.radius if highest > 0.0 else math.inf
    return min(largest_support(ball), convex)


def _described(radius, wall, ridge):
    """Return the barrier's entry of a release record."""
    named = {"wall": wall, "regularizer": ridge}
    return {"center": "as ball", "radius": radius} | {name: value for name, value in named.items() if value > 0.0}
