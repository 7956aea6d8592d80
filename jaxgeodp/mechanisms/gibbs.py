"""The Gibbs mechanism: one draw from exp(-k F), mu-GDP for convex losses on any manifold (ours)."""

import dataclasses
import math
from typing import final

import jax
import jax.numpy as jnp

from jaxgeodp.bounds import largest_support
from jaxgeodp.bounds.gibbs import Barrier, PotentialGrowth, gibbs_rate, pull_within
from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.compiling import refused_in_words
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.records import record_count
from jaxgeodp.manifolds.manifold import real_dtype
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.releases.density import SAMPLER, DensityLaw, Target
from jaxgeodp.releases.law import Terms
from jaxgeodp.statistics.statistic import FrechetMean, Statistic

_THEOREM = "docs/mathematics.md, Theorem P: mu = k Delta/sqrt(k m + Ricci)"
_WITH_BARRIER = "docs/mathematics.md, Theorems P and P2: mu = k Delta/sqrt(k m + Ricci), with a public barrier"
# Barriers that are tried begin at these shares of the ball's radius, and supports end at these; few, as programs are
# compiled for them.
_STARTS = tuple(j / 8.0 for j in range(9))
_ENDS = (1.0, 0.75, 0.625)
# How much more a barrier pulls at the rim than F may.
_MARGIN = 1.05
# Standard deviations for which there is room between the supposed mean and the rim of the support.
_ROOM = 3.0
# A mean is supposed to be this share of the radius away from the centre, where a barrier is chosen.
_SUPPOSED = 0.5
# Largest distance in units of 1/sqrt|k_min|: condition exp(2 * 10) of a matrix costs 9 of 16 digits.
_LARGEST_REACH = 10.0
# In more, draws about records at the rim need noise that is short against the room beyond the barrier.
_FEW_DIMENSIONS = 20
# Steps from the statistic's minimiser to that of F + W, at most; and when they end, in units of the gradient.
_STEPS, _PRECISION = 1000, 1e-9
_SHORTEST = 1e-3


@final
@dataclasses.dataclass(frozen=True, eq=False)
class GibbsMechanism(BallMechanism):
    """Density exp(-k (F(x; D) + W(x))), F the objective that the statistic minimises: mu-GDP.

    k is the largest for which Theorem P proves it: it needs how much the gradient of F can change, not how much the
    minimiser can. The Frechet mean where no curvature is positive is drawn from the whole manifold, with W = 0. All
    else is drawn from a ball about the public centre, and W is a public barrier: 0 up to a distance r0 from the
    centre, and beyond it as convex as F is less so. It draws releases of data whose summary lies beyond r0 towards the
    centre.

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
        """mu-GDP."""
        return GaussianDP(self.mu)

    def law(self, n, shape=()):
        """See `Mechanism.law`."""
        n, ball = record_count(n), self.ball
        end, start, rate, sensitivity = self._chosen(n)
        if not math.isfinite(rate):
            raise InputError(
                f"GibbsMechanism: with n={n}, mu={self.mu:g}, radius={ball.radius:g} there is no k for which mu-GDP is "
                f"proven on {ball.manifold}: raise mu or n, or lower radius."
            )
        barrier = start < end
        many, wide = ball.manifold.dim > _FEW_DIMENSIONS, math.sqrt(ball.manifold.dim / rate)
        if barrier and many and wide > 0.5 * (end - start) * ball.radius:
            raise InputError(
                f"GibbsMechanism: with n={n}, mu={self.mu:g}, radius={ball.radius:g} the noise is so wide that a draw "
                f"might never be found in {ball.manifold.dim} dimensions: raise mu or n, or use WrappedGaussian."
            )
        terms = Terms(
            mechanism="GibbsMechanism",
            statistic=self.statistic.description,
            n=n,
            strength=self.mu,
            guarantee=self.guarantee,
            sensitivity=sensitivity.value,
            formula=sensitivity.formula,
            theorem=_WITH_BARRIER if barrier else _THEOREM,
            sampler=SAMPLER,
            timing="the running time depends on the data",
            more={"barrier": {"center": "as ball", "radius": start * ball.radius}} if barrier else None,
        )
        support = dataclasses.replace(ball, radius=end * ball.radius) if math.isfinite(end) else None
        target = Potential(self.statistic, start if barrier else None, end, self._wall(end, start) if barrier else 0.0)
        return DensityLaw(target, ball, 1.0 / rate, support, terms)

    @property
    def _ends(self) -> tuple[float, ...]:
        """Of supports that are tried, in units of the ball's radius."""
        if self.support_radius is not None:
            return (self.support_radius / self.ball.radius,)
        return (math.inf,) if self.statistic.may_be_unbounded(self.ball.manifold) else _ENDS

    def _chosen(self, n) -> tuple[float, float, float, Sensitivity]:
        """Where the support ends and the barrier begins, in units of the radius, k, and the gradient's sensitivity."""
        radius, found = self.ball.radius, []
        for end in self._ends:
            sensitivity = self.statistic.gradient_sensitivity(self.ball, n, end * radius, "tight")
            starts = [end, *(_STARTS if math.isfinite(end) else ())]
            if self.barrier_radius is not None:
                starts = [min(self.barrier_radius / radius, end)]
            # Without a barrier the minimum may lie at the rim, where draws are rare.
            outward = math.isfinite(end) and self.statistic.outward_pull(self.ball, end * radius) > 0.0
            starts = [start for start in dict.fromkeys(starts) if start < end or (start == end and not outward)]
            for start in starts:
                rate = self._rate(sensitivity.value, start * radius)
                roomy = len(self._ends) == 1 or end == max(self._ends) or _leaves_room(end, rate, radius)
                error = self._expected(start, end, rate) if roomy else math.inf
                found.append((error, (end, start, rate, sensitivity)))
        return min(found, key=lambda pair: pair[0])[1]

    def _rate(self, gradient, start):
        convexity = self.statistic.convexity(self.ball, start)
        return gibbs_rate(self.mu, gradient, convexity, self.ball.manifold.ricci_bound) if convexity > 0.0 else math.nan

    def _expected(self, start, end, rate):
        """The squared error for a mean at the supposed distance, where space is flat; infinite without a rate."""
        if not math.isfinite(rate):
            return math.inf
        away, radius = _SUPPOSED * self.ball.radius, self.ball.radius
        least, there = (float(self.statistic.convexity(self.ball, t)) for t in (start * radius, away))
        root = math.sqrt(max(self.ball.manifold.curvature_bounds[1], 0.0))
        pull = max(least - there, 0.0) * (math.tan(root * away) / root if root > 0.0 else away)
        pull += self._wall(end, start) * max(away - start * radius, 0.0)
        return self.ball.manifold.dim / rate + (pull / least) ** 2

    def _wall(self, end, start):
        """What keeps the minimum within the support."""
        outward = self.statistic.outward_pull(self.ball, end * self.ball.radius) if math.isfinite(end) else 0.0
        return _MARGIN * outward / ((end - start) * self.ball.radius) if outward > 0.0 else 0.0


@dataclasses.dataclass(frozen=True)
class Potential(Target):
    """The mean loss of the statistic, and a barrier.

    Args:
        start: where the barrier begins, in units of the ball's radius; None for no barrier.
        end: where the support does, in the same units; infinite if there is none.
        wall: see `Barrier`.
    """

    statistic: Statistic
    start: float | None
    end: float
    wall: float
    radial = False
    proposals = 16

    def at_home(self, ball):
        """See `Target.at_home`."""
        return dataclasses.replace(self, statistic=self.statistic.at_home(ball))

    def center(self, ball, points):
        """Near the minimiser; any point will do."""
        manifold, statistic = ball.manifold, self.statistic
        reach = self.end * ball.radius
        # The centre of an envelope lies inside the support.
        inner = ball if math.isinf(self.end) else GeodesicBall.tree_unflatten(manifold, (ball.center, reach))
        center = inner.pull_inside(statistic.center(ball, points))
        least = jnp.asarray(statistic.convexity(ball, self._start(ball, inner.radius)), real_dtype(center))
        shortest, longest = _SHORTEST / least, 1.0 / least

        def gradient(x):
            slope = statistic.gradient(manifold, x, points)
            return slope if self.start is None else slope + self.barrier(ball).gradient(manifold, _center(ball, x), x)

        def pull_of(x, slope):
            return pull_within(manifold, _center(ball, x), reach, x, slope)[0]

        def unfinished(state):
            *_, least_pull, count = state
            return (least_pull > _PRECISION * ball.radius * least) & (count < _STEPS)

        def step(state):
            # Barzilai and Borwein: the inverse of the curvature along the last step.
            x, last, last_gradient, size, best, least_pull, count = state
            own = gradient(x)
            gone = manifold.transport(last, x, manifold.log(last, x))
            change = manifold.inner(x, gone, own - manifold.transport(last, x, last_gradient))
            seen = manifold.inner(x, gone, gone) / jnp.where(change > 0, change, 1.0)
            size = jnp.where(change > 0, jnp.clip(seen, shortest, longest), size)
            pull = pull_of(x, own)
            best, least_pull = jnp.where(pull < least_pull, x, best), jnp.minimum(pull, least_pull)
            following = inner.pull_inside(manifold.project(manifold.exp(x, size * -own)))
            return following, x, own, size, best, least_pull, count + 1

        first = gradient(center)
        start = inner.pull_inside(manifold.project(manifold.exp(center, shortest * -first)))
        state = (start, center, first, shortest, center, pull_of(center, first), 0)
        return jax.lax.while_loop(unfinished, step, state)[4]

    def potential(self, ball, x, center, points):
        """F + W."""
        value = self.statistic.value(ball.manifold, x, points)
        if self.start is None:
            return value
        return value + self.barrier(ball).value(ball.manifold.dist(_center(ball, x), x))

    def level(self, ball, center, points):
        """psi at the centre."""
        return self.potential(ball, center, center, points)

    def growth(self, ball, center, points, scale, support):
        """See `PotentialGrowth`."""
        manifold, statistic = ball.manifold, self.statistic
        reach = math.inf if support is None else support.radius
        slope = statistic.gradient(manifold, center, points)
        pull = manifold.norm(center, slope)
        growth = statistic.hessian_growth(manifold, center, points, reach + ball.radius, pull)
        away, barrier = manifold.dist(_center(ball, center), center), self.barrier(ball)
        if self.start is not None:
            slope = slope + barrier.gradient(manifold, _center(ball, center), center)
        least = jnp.asarray(statistic.convexity(ball, self._start(ball, reach)), pull.dtype)
        temperature = jnp.asarray(self.temperature(scale), pull.dtype)
        steepest, offset = pull_within(manifold, _center(ball, center), reach, center, slope)

        def added(t):
            return jnp.zeros_like(t) if self.start is None else barrier.bend(jnp.maximum(away - t, 0.0), reach)

        return PotentialGrowth(growth, added, least, steepest, offset, temperature, manifold)

    def public_bounds(self, ball, support):
        """None are known."""
        return None

    def temperature(self, scale):
        """1/k."""
        return scale

    def check(self, law):
        """Refuse what reaches points whose coordinates double precision cannot hold."""
        manifold, terms = law.ball.manifold, law.terms
        spread = math.sqrt(law.scale)
        bulk = spread * (math.sqrt(manifold.dim) + 6.0 + manifold.volume_growth * spread)
        reach = law.ball.radius + (bulk if law.support is None else law.support.radius)
        if reach * manifold.coordinate_growth > _LARGEST_REACH:
            raise InputError(
                f"GibbsMechanism: with n={terms.n}, mu={terms.strength:g}, radius={law.ball.radius:g} the noise is too "
                f"large for double precision on {manifold}: raise mu or n, or lower radius."
            )

    def _start(self, ball, reach):
        """How far from the centre F is convex without help."""
        return reach if self.start is None else self.start * ball.radius

    def barrier(self, ball) -> Barrier:
        """W, for a ball at home."""
        statistic, highest = self.statistic, ball.manifold.curvature_bounds[1]
        return Barrier(self._start(ball, math.inf), highest, lambda t: statistic.convexity(ball, t), self.wall)


def _leaves_room(end, rate, radius):
    """Between the supposed mean and the rim of a support."""
    return math.isfinite(rate) and (end - _SUPPOSED) * radius > _ROOM / math.sqrt(rate)


def _largest_support(ball):
    """Farther out than a quarter of a great circle from a record no loss here is convex."""
    highest = ball.manifold.curvature_bounds[1]
    convex = 0.5 * math.pi / math.sqrt(highest) - ball.radius if highest > 0.0 else math.inf
    return min(largest_support(ball), convex)


def _center(ball, point):
    return jnp.asarray(ball.center, point.dtype)
