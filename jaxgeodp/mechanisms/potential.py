"""The exponent of the Gibbs mechanism: a mean loss and a public barrier, and how fast they grow (ours)."""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.bounds.comparison import h_max, h_min
from jaxgeodp.bounds.gibbs import Barrier, PotentialGrowth, pull_within
from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.manifolds.manifold import real_dtype
from jaxgeodp.mechanisms.few_records import of_few_records
from jaxgeodp.pytrees import Pytree
from jaxgeodp.releases.density import PublicBounds, Target
from jaxgeodp.statistics.records import points_and_weights
from jaxgeodp.statistics.statistic import FrechetMean, Statistic

# Largest distance in units of 1/sqrt|k_min|: condition exp(2 * 10) of a matrix costs 9 of 16 digits.
_LARGEST_REACH = 10.0
# Steps to the minimiser of F + W, at most; and how far from it they end, in radii, or in units of rounding.
_STEPS, _PRECISION, _ROUNDINGS = 1000, 1e-9, 64.0
_SUPPOSED = (
    "supposed: the minimum of F + W is found to 1e-9 radii or 64 units of rounding, in steps whose number depends on "
    "the data"
)
# Steps that do not come nearer to the minimiser, before others are taken.
_VAIN = 30
# The first step, and the shortest, in units of the longest.
_SHORTEST = 1e-6
# With fewer records all are looked at, as in plans, whose programs are smaller so.
_FEW_RECORDS = 65
# Losses of single records that a draw may need, where little is known of them: some minutes.
_MOST_LOSSES = 2e11


class _Descent(NamedTuple):
    x: Any
    last: jax.Array  # the point before
    last_gradient: jax.Array
    size: Any  # of the step from x
    best: jax.Array
    least_pull: jax.Array  # at the best point
    vain: Any  # steps since it was found
    count: Any


@dataclasses.dataclass(frozen=True)
class Potential(Target, Pytree, leaves=("start", "end", "wall", "ridge")):
    """The mean loss of the statistic, and a barrier.

    Args:
        start: where the barrier begins, in units of the ball's radius; None for no barrier.
        end: where the support does, in the same units; None if there is none.
        wall: see `Barrier`.
        ridge: see `Barrier`; None for none.
    """

    statistic: Statistic
    start: float | None
    end: float | None
    wall: float
    ridge: float | None
    radial = False
    proposals = 16

    @override
    def at_home(self, ball):
        return dataclasses.replace(self, statistic=self.statistic.at_home(ball))

    def center(self, ball, points):
        """Return a point near the minimiser; any point is valid."""
        manifold, statistic = ball.manifold, self.statistic
        reach = math.inf if self.end is None else self.end * ball.radius
        # The centre of an envelope lies inside the support.
        inner = ball if self.end is None else GeodesicBall.tree_unflatten(manifold, (ball.center, reach))
        center = inner.pull_inside(statistic.start(ball, points))
        least = jnp.asarray(self._least(ball, inner.radius), real_dtype(center))
        shortest, longest = _SHORTEST / least, 1.0 / least
        smooth = self._smoothness(ball, inner.radius)
        safe = shortest if smooth is None else 1.0 / smooth
        most = _STEPS if smooth is None else self._most_steps(ball, inner.radius, smooth)

        tolerance = self._tolerance(ball, inner.radius, center.dtype)

        def gradient(x):
            slope = statistic.gradient(manifold, x, points)
            return slope if self.start is None else slope + self.barrier(ball).gradient(manifold, _center(ball, x), x)

        def pull_of(x, slope):
            return pull_within(manifold, _center(ball, x), reach, x, slope)[0]

        def unfinished(state):
            return (state.least_pull > tolerance) & (state.count < most)

        def step(state):
            # Barzilai and Borwein: the inverse of the curvature along the last step. When that has not helped for long,
            # steps of gradient descent from the best point, which is sure where F + W is smooth.
            x, last, last_gradient, size, best, least_pull, vain, count = state
            own = gradient(x)
            gone = manifold.transport(last, x, manifold.log(last, x))
            change = manifold.inner(x, gone, own - manifold.transport(last, x, last_gradient))
            seen = manifold.inner(x, gone, gone) / jnp.where(change > 0, change, 1.0)
            size = jnp.asarray(jnp.where(change > 0, jnp.clip(seen, shortest, longest), size))
            pull = pull_of(x, own)
            better = pull < least_pull
            best, least_pull = jnp.where(better, x, best), jnp.minimum(pull, least_pull)
            useless = jnp.asarray(jnp.where(better & (vain < _VAIN), 0, vain + 1))
            back = (useless == _VAIN) & (smooth is not None)
            size = jnp.where((useless >= _VAIN) & (smooth is not None), safe, size)
            following = inner.pull_inside(manifold.project(manifold.exp(x, size * -own)))
            return _Descent(jnp.where(back, best, following), x, own, size, best, least_pull, useless, count + 1)

        first = gradient(center)
        start = inner.pull_inside(manifold.project(manifold.exp(center, shortest * -first)))
        state = _Descent(start, center, first, shortest, center, pull_of(center, first), 0, 0)
        return jax.lax.while_loop(unfinished, step, state).best

    def _smoothness(self, ball, reach):
        """Return an upper bound of the Hessian of F + W within ``reach``, where one of F is known."""
        own = self.statistic.largest_hessian(ball, reach)
        if own is None:
            return None
        added = 0.0 if self.start is None else self.barrier(ball).largest_bend(reach, ball.manifold.curvature_bounds[0])
        return own + added

    def _tolerance(self, ball, reach, dtype):
        """Return the gradient norm at which descent stops: gradients have the rounding of coordinates."""
        manifold, eps = ball.manifold, float(jnp.finfo(dtype).eps)
        size = float(np.linalg.norm(manifold.origin))
        bend = jnp.exp(2.0 * jnp.minimum(ball.radius * manifold.coordinate_growth, 50.0))
        return self._least(ball, reach) * jnp.maximum(_PRECISION * ball.radius, _ROUNDINGS * eps * size * bend)

    def _most_steps(self, ball, reach, smooth):
        """Return a number of steps of gradient descent that is enough in flat space, and about enough elsewhere."""
        ratio = smooth / self._least(ball, reach)
        log = math.log if isinstance(ratio, float) else jnp.log
        return _STEPS + 2.0 * (math.log(1.0 / _PRECISION) + log(ratio)) * ratio

    def potential(self, ball, x, center, points):
        """Return F + W."""
        value = self.statistic.value(ball.manifold, x, points)
        if self.start is None:
            return value
        return value + self.barrier(ball).value(ball.manifold.dist(_center(ball, x), x))

    def level(self, ball, center, points):
        """Return psi at the centre."""
        return self.potential(ball, center, center, points)

    @override
    def growth(self, ball, center, points, scale, support):
        manifold, statistic = ball.manifold, self.statistic
        reach = math.inf if support is None else support.radius
        slope = statistic.gradient(manifold, center, points)
        pull = manifold.norm(center, slope)
        growth = statistic.hessian_growth(manifold, center, points, reach + ball.radius, pull)
        away, barrier = manifold.dist(_center(ball, center), center), self.barrier(ball)
        if self.start is not None:
            slope = slope + barrier.gradient(manifold, _center(ball, center), center)
        least = jnp.asarray(self._least(ball, reach), pull.dtype)
        temperature = jnp.asarray(self.temperature(scale), pull.dtype)
        steepest, offset = pull_within(manifold, _center(ball, center), reach, center, slope)

        def added(t):
            return jnp.zeros_like(t) if self.start is None else barrier.bend(jnp.maximum(away - t, 0.0), reach)

        return PotentialGrowth(growth, added, least, steepest, offset, temperature, manifold)

    def spares(self, ball, n):
        """Return whether the growth is that of the least Hessian alone, which is known for each record."""
        lowest, highest = ball.manifold.curvature_bounds
        known = isinstance(self.statistic, FrechetMean) and highest <= 0.0 and math.isfinite(lowest)
        return known and self.start is None and n >= _FEW_RECORDS

    @override
    def thinning(self, ball, center, points, scale, support):
        records, weights = points_and_weights(points)
        if not self.spares(ball, records.shape[0]):
            return None
        temperature = jnp.asarray(self.temperature(scale), real_dtype(center))
        return of_few_records(ball.manifold, center, records, weights, temperature)

    def public_bounds(self, ball, support, temperature):
        """Return bounds for the Frechet mean, from the least and the largest Hessian of F + W; None for others."""
        if not isinstance(self.statistic, FrechetMean):
            return None
        manifold, r = ball.manifold, ball.radius
        lowest, reach = manifold.curvature_bounds[0], math.inf if support is None else support.radius

        def upper(t):
            t = np.atleast_1d(t)
            added = 0.0 if self.start is None else self.barrier(ball).largest_bend(reach, lowest)
            bend = np.array([h_min(2.0 * r + x, lowest) for x in t]) + added
            return 0.5 * bend * t**2

        def nothing(t):
            return jnp.zeros_like(t)

        least = jnp.asarray(self._least(ball, reach))
        pull, none = self._tolerance(ball, reach, least.dtype), jnp.zeros(())
        growth = PotentialGrowth(None, nothing, least, pull, none, jnp.asarray(temperature), manifold)
        return PublicBounds(growth, upper, _SUPPOSED)

    def temperature(self, scale):
        """Return 1/k."""
        return scale

    def magnitude(self, law):
        """Return the largest loss times the amplification of rounding at the farthest points."""
        farthest = _farthest(law)
        steepest = 0.5 * law.terms.n * law.terms.sensitivity
        return 0.5 * steepest * farthest * math.exp(2.0 * farthest * law.ball.manifold.coordinate_growth)

    def check(self, law):
        """Refuse what reaches points whose coordinates double precision cannot hold."""
        manifold, terms = law.ball.manifold, law.terms
        if _farthest(law) * manifold.coordinate_growth > _LARGEST_REACH:
            raise InputError(
                f"GibbsMechanism: with n={terms.n}, mu={terms.strength:g}, radius={law.ball.radius:g} the noise is too "
                f"large for double precision on {manifold}: raise mu or n, or lower radius."
            )
        self._check_convexity(law)

    def _check_convexity(self, law):
        """Refuse, without `Statistic.hessian_growth`, draws whose expected cost is too large or unknown.

        Gradient descent finds the minimiser of a smooth F + W. Proposals spread as the least convexity m allows, draws
        as a Hessian of ``smoothness`` at most does, or as exp(-2 k L t), L the longest gradient: a share
        (m/Hessian)^(d/2) is accepted, nearly.
        """
        statistic, terms, dim = self.statistic, law.terms, law.ball.manifold.dim
        if type(statistic).hessian_growth is not Statistic.hessian_growth:
            return
        reach = math.inf if law.support is None else law.support.radius
        smooth = self._smoothness(law.ball, reach)
        if smooth is None or law.support is None:
            raise InputError(
                f"GibbsMechanism: the expected number of proposals is not bounded for {statistic.description}: a "
                "statistic without hessian_growth needs an attribute smoothness, an upper bound of the Hessian, and a "
                "bounded support."
            )
        least, bend = float(self._least(law.ball, reach)), (terms.n * terms.sensitivity) ** 2 / law.scale
        share = min(least / min(smooth, bend), 1.0) ** (0.5 * dim)
        losses = terms.n * (1.0 / max(share, 1e-300) + self._most_steps(law.ball, reach, smooth))
        if losses > _MOST_LOSSES:
            raise InputError(
                f"GibbsMechanism: with n={terms.n}, mu={terms.strength:g} a draw in {dim} dimensions might need "
                f"{losses:.1g} losses of single records, as {statistic.description} may have so large a Hessian: give "
                "it a smaller smoothness or a larger convexity_bound, or lower n."
            )

    def _start(self, ball, reach):
        """Return the distance from the centre up to which F is convex without the barrier."""
        return reach if self.start is None else self.start * ball.radius

    def _least(self, ball, reach):
        """Return a lower bound of the Hessian of F + W within ``reach`` of the centre."""
        least = self.statistic.convexity(ball, self._start(ball, reach))
        return least if self.ridge is None else least + self.ridge * h_max(reach, ball.manifold.curvature_bounds[1])

    def barrier(self, ball) -> Barrier:
        """Return W, for a ball at home."""
        statistic, highest, start = self.statistic, ball.manifold.curvature_bounds[1], self._start(ball, math.inf)
        ridge = 0.0 if self.ridge is None else self.ridge
        return Barrier(start, highest, lambda t: statistic.convexity(ball, t), self.wall, ridge)


def _farthest(law):
    """Return a distance between record and release that few releases exceed."""
    manifold, spread = law.ball.manifold, math.sqrt(law.scale)
    bulk = spread * (math.sqrt(manifold.dim) + 6.0 + manifold.volume_growth * spread)
    return law.ball.radius + (bulk if law.support is None else law.support.radius)


def _center(ball, point):
    return jnp.asarray(ball.center, point.dtype)
