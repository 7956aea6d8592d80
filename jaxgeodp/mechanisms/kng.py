"""The K-norm gradient mechanism on manifolds (Soto, Bharath, Reimherr & Slavkovic, NeurIPS 2022)."""

import dataclasses
import math
from fractions import Fraction
from typing import NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.bounds import largest_support
from jaxgeodp.bounds.comparison import h_max, h_min
from jaxgeodp.bounds.expansion import gradient_expansion
from jaxgeodp.bounds.growth import GradientGrowth
from jaxgeodp.bounds.normalizer import best_support_radius, calibrated_scale, normalizer_bound
from jaxgeodp.bounds.sensitivity import Sensitivity, paper_gradient_sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.records import record_count
from jaxgeodp.mechanisms.calibrated import CalibratedMechanism, terms_of
from jaxgeodp.privacy.decimals import float_above
from jaxgeodp.privacy.guarantee import NotProven, PureDP, ZeroConcentratedDP
from jaxgeodp.releases.density import DensityLaw, PublicBounds, Target, check_existence, check_representable
from jaxgeodp.statistics.records import points_and_weights
from jaxgeodp.statistics.statistic import FrechetMean, Statistic

_DOUBLED = "Soto et al. 2022, Theorem 1: scale = 2 sensitivity/epsilon"
_NORMALIZER = (
    "docs/mathematics.md, Theorem J (constants: Theorem L): sensitivity/scale + change of log normaliser <= epsilon"
)
_PAPER = "scale and support as in the paper's simulation, which its Theorem 1 does not cover"
# Supports stay this far inside the largest for which balls are convex.
_INSIDE = 0.999
# Evaluations of a gradient that one release may be expected to need: some minutes.
_MOST_GRADIENTS = 1e11
# With fewer records all are looked at: that takes no longer than bounds do.
_FEW_RECORDS = 65


class _Calibration(NamedTuple):
    sensitivity: Sensitivity
    scale: float
    support: GeodesicBall | None
    theorem: str


@final
@dataclasses.dataclass(frozen=True, eq=False)
class KNGMechanism(CalibratedMechanism):
    """Density exp(-|grad F(x; D)|/sigma), F the objective that the statistic minimises.

    sigma = 2 sensitivity/epsilon (their Theorem 1). For the Frechet mean on symmetric spaces (all of this library's) it
    is nearly half of that, where the records are many enough for Theorems J and L (docs/mathematics.md), which
    chooses the support, too. Where the curvature is positive, the sensitivity bound holds only near the data and the
    support is a ball of radius R around the public centre; elsewhere it may be the whole manifold. A statistic other
    than the Frechet mean always has a bounded support.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        epsilon: privacy parameter, in (0, inf).
        statistic: what is summarised: the Frechet mean by default, or a median, a power mean or a loss of one's own
            (docs/reference/statistics.md).
        calibration: "tight" (default); "theorem", the papers' sensitivity on the ball of the data; or "paper", the
            setting of the papers' simulation, which no theorem covers (the record says so): on the largest convex ball,
            as a chain started at the mean cannot go further, with scale 2 sensitivity/epsilon, except on spheres, where
            it is sensitivity/epsilon with the curvature taken at the radius.
        support_radius: R >= ball.radius, with "tight" only; chosen to make the scale smallest by default.

    Raises:
        ValueError: see `BallMechanism`; unknown calibration, or the support radius is out of range.
    """

    support_radius: float | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.support_radius is None:
            return
        limit = largest_support(self.ball)
        if self.calibration != "tight":
            raise InputError("KNGMechanism: support_radius needs calibration='tight'.")
        if not (self.ball.radius <= self.support_radius < limit and math.isfinite(self.support_radius)):
            raise InputError(
                f"KNGMechanism: support_radius must be finite, at least the ball's radius {self.ball.radius:g} and "
                f"below {limit:.6g}, got {self.support_radius!r}."
            )

    @override
    def law(self, n, shape=()):
        n = record_count(n)
        sensitivity, scale, support, theorem = self._calibrated(n)
        terms = terms_of(self, n, sensitivity, theorem)
        return DensityLaw(GradientNorm(self.statistic), self.ball, scale, support, terms, n)

    def _calibrated(self, n):
        if self.calibration == "paper":
            return self._as_in_the_paper(n)
        ball, radius = self.ball, self.support_radius
        unbounded = self.statistic.may_be_unbounded(ball.manifold)
        chosen = self._by_normalizer(n)
        if radius is None and not unbounded:
            radius = ball.radius
        reach = math.inf if radius is None else radius
        sensitivity = self.statistic.gradient_sensitivity(ball, n, reach, self.calibration)
        scale = 2.0 * sensitivity.value / self.epsilon
        if chosen is not None and chosen.scale < scale:
            return chosen
        support = self._ball(reach)
        check_existence(type(self).__name__, ball, n, self.epsilon, scale, support)
        return _Calibration(sensitivity, scale, support, _DOUBLED)

    def zcdp(self, n: int) -> ZeroConcentratedDP:
        """Return the zCDP of one release (without ``delta``) of n records: rho = (sensitivity/scale)^2/2.

        The log densities of neighbours differ by at most sensitivity/scale up and down, and by the logarithms of their
        normalising constants, which are the same everywhere: their ratio has the range 2 sensitivity/scale, of which
        rho is an eighth of the square (Cesar & Rogers 2021). It is epsilon^2/8 at scale 2 sensitivity/epsilon, and up
        to epsilon^2/2 by Theorem J.

        Args:
            n: at least 2.

        Raises:
            ValueError: see `law`; or nothing is proven.
        """
        if isinstance(self.guarantee, NotProven):
            raise InputError("KNGMechanism: nothing is proven for calibration='paper'; use 'tight' or 'theorem'.")
        calibration = self._calibrated(record_count(n))
        ratio = Fraction(calibration.sensitivity.value) / Fraction(calibration.scale)
        return ZeroConcentratedDP(min(float_above(ratio**2 / 2), PureDP(self.epsilon).to_zcdp().rho))

    def _by_normalizer(self, n):
        """Return the calibration by Theorems J and L; None where they do not apply."""
        ball, radius = self.ball, self.support_radius
        if not (self.calibration == "tight" and isinstance(self.statistic, FrechetMean)):
            return None
        limit = _INSIDE * largest_support(ball)
        if radius is None:
            radius = best_support_radius(ball.manifold, ball.radius, limit, n, float(self.epsilon))
        if radius is None:
            return None
        bound = normalizer_bound(ball, radius)
        if bound is None:
            return None
        sensitivity = self.statistic.gradient_sensitivity(ball, n, radius, "tight")
        # A plain number, as everywhere: another kind would compile all programs again.
        scale = float(calibrated_scale(bound, sensitivity.value, n, float(self.epsilon)))
        return _Calibration(sensitivity, scale, self._ball(radius), _NORMALIZER)

    def _as_in_the_paper(self, n):
        ball = self.ball
        sensitivity, factor = paper_gradient_sensitivity(ball, n)
        if not isinstance(self.statistic, FrechetMean):
            raise InputError("KNGMechanism: calibration='paper' is only for the Frechet mean.")
        support = self._ball(_INSIDE * largest_support(ball))
        scale = factor * sensitivity.value / self.epsilon
        check_existence(type(self).__name__, ball, n, self.epsilon, scale, support)
        return _Calibration(sensitivity, scale, support, _PAPER)

    def _ball(self, radius):
        return None if math.isinf(radius) else dataclasses.replace(self.ball, radius=radius)


@dataclasses.dataclass(frozen=True)
class GradientNorm(Target):
    """The norm of the gradient of the statistic's mean loss."""

    statistic: Statistic
    radial = False
    proposals = 256

    @override
    def at_home(self, ball):
        return GradientNorm(self.statistic.at_home(ball))

    @override
    def center(self, ball, points):
        return self.statistic.center(ball, points)

    @override
    def potential(self, ball, x, center, points):
        return self.statistic.gradient_norm(ball.manifold, x, points)

    @override
    def growth(self, ball, center, points, scale, support):
        # Without a support the growth does not depend on the distance.
        farthest = math.inf if support is None else support.radius + ball.radius
        return self.statistic.gradient_growth(ball.manifold, center, points, farthest)

    def bounds(self, ball, center, points, scale):
        """Return bounds by the gradient's expansion, for a mean of more than a few records (Theorem Z)."""
        records, weights = points_and_weights(points)
        if not isinstance(self.statistic, FrechetMean) or records.shape[0] < _FEW_RECORDS:
            return None
        expansion = gradient_expansion(ball.manifold, center, records, weights, scale)
        if expansion is None:
            return None

        def of_proposal(tangent, distance):
            norm, error = expansion.norm(tangent, distance)
            return jnp.maximum(norm - error, 0.0), norm + error

        return of_proposal

    def public_bounds(self, ball, support, temperature):
        """Return Theorem F's bound for the largest variance of data, r^2; from above the Hessian's bound."""
        if not isinstance(self.statistic, FrechetMean):
            return None
        manifold, r = ball.manifold, ball.radius
        lowest, highest = manifold.curvature_bounds

        def upper(t):
            return np.array([h_min(2.0 * r + x, lowest) for x in np.atleast_1d(t)]) * t

        if highest <= 0:
            return PublicBounds(1.0, upper)
        assert support is not None  # as `KNGMechanism.law` makes it where the curvature is positive
        farthest = support.radius + r
        transverse, steepest = h_max(farthest, manifold.transverse_curvature), h_max(farthest, highest)
        bend = (1.0 - transverse) / farthest**2
        offset = (transverse - steepest) / farthest**2 * r**2
        rate = (1.0 - steepest) / farthest
        growth = GradientGrowth(jnp.asarray(bend * r**2), jnp.asarray(offset), bend * h_min(farthest, lowest), rate)
        return PublicBounds(growth, upper)

    def temperature(self, scale):
        """Return the scale."""
        return scale

    def check(self, law):
        """Refuse what double precision cannot hold; where gradients may not grow, refuse draws that cost too much.

        With gradients of length G at most, which reach 0 somewhere and grow evenly, a share (scale/G)^dim of uniform
        proposals is accepted, and each costs n gradients.
        """
        check_representable(law)
        terms, statistic = law.terms, self.statistic
        known = type(statistic).gradient_growth is not Statistic.gradient_growth
        if known and self._grows(law):
            return
        largest = 0.5 * terms.n * terms.sensitivity
        work = terms.n * max(largest / law.scale, 1.0) ** law.ball.manifold.dim
        if work > _MOST_GRADIENTS:
            why = (
                "Theorem F says nothing of gradients as far out as the support ends; lower support_radius"
                if known
                else f"{statistic.description} has no gradient_growth; give it one"
            )
            raise InputError(
                f"{terms.mechanism}: with n={terms.n} and epsilon={terms.strength:g} a draw would need about "
                f"{work:.1g} gradients of single records, as {why}, or lower n or epsilon."
            )

    def _grows(self, law) -> bool:
        """Return whether Theorem F bounds gradients by more than 0 wherever draws can be; True where it is not used.

        Nor is it asked where nothing is promised, as in the papers' calibration or of a law without terms: no budget is
        lost if a draw is slow.
        """
        if law.terms is None or isinstance(law.terms.guarantee, NotProven):
            return True
        with jax.ensure_compile_time_eval():  # of public numbers, in a program, too
            bounds = self.public_bounds(law.ball, law.support, law.scale)
            if bounds is None or not isinstance(bounds.growth, GradientGrowth):
                return True
            return float(bounds.growth(law.support.radius + law.ball.radius)) > 0.0
