"""The Riemannian Laplace mechanism (Reimherr, Bharath & Soto, NeurIPS 2021)."""

import dataclasses
from typing import final

import numpy as np
from typing_extensions import override

from jaxgeodp.bounds.rounding import of_computed_mean
from jaxgeodp.domains.records import record_count
from jaxgeodp.mechanisms.calibrated import CalibratedMechanism, terms_of
from jaxgeodp.releases.density import DensityLaw, PublicBounds, Target, check_existence, check_representable
from jaxgeodp.statistics.statistic import FrechetMean, Statistic


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LaplaceMechanism(CalibratedMechanism):
    """Density exp(-dist(x, s)/sigma) around the statistic s, on the whole manifold.

    sigma = sensitivity/epsilon on a homogeneous manifold, where the normalising constant is the same around
    every point (their Theorem 1); otherwise twice that. On manifolds of negative curvature sigma must be
    below 1/volume growth, else the distribution does not exist and `law` refuses.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        epsilon: privacy parameter, in (0, inf).
        statistic: what is summarised, one whose minimiser has a known sensitivity: the Frechet mean, by default. For
            others there is `KNGMechanism`.
        calibration: "tight" (default), "theorem", the papers' sensitivity, or "paper", which is "theorem" here but
            makes no claim (see `KNGMechanism`).

    Raises:
        ValueError: see `BallMechanism`; unknown calibration.

    Example:
        >>> from jaxgeodp import GeodesicBall, LaplaceMechanism, SPD
        >>> mechanism = LaplaceMechanism(GeodesicBall(SPD(2), SPD(2).origin, 1.5), epsilon=1.0)
        >>> round(mechanism.scale(50), 6)
        0.06
    """

    @override
    def law(self, n, shape=()):
        n = record_count(n)
        papers = "theorem" if self.calibration == "paper" else self.calibration
        sensitivity = self.statistic.minimizer_sensitivity(self.ball, n, papers)
        if self.calibration != "paper":
            sensitivity = of_computed_mean(sensitivity, self.ball, n)
        homogeneous = self.ball.manifold.homogeneous
        scale = (1.0 if homogeneous else 2.0) * sensitivity.value / self.epsilon
        check_existence(type(self).__name__, self.ball, n, self.epsilon, scale, None)
        reason = "sensitivity/epsilon, homogeneous manifold" if homogeneous else "2 sensitivity/epsilon"
        terms = terms_of(self, n, sensitivity, f"Reimherr et al. 2021, Theorem 1: scale = {reason}")
        return DensityLaw(Distance(self.statistic), self.ball, scale, None, terms, n)


@dataclasses.dataclass(frozen=True)
class Distance(Target):
    """The distance from the statistic's minimiser."""

    statistic: Statistic
    radial = True
    proposals = 256

    @override
    def at_home(self, ball):
        return Distance(self.statistic.at_home(ball))

    def center(self, ball, points):
        """Return the minimiser."""
        return self.statistic.minimizer(ball, points)

    @override
    def potential(self, ball, x, center, points):
        return ball.manifold.dist(center, x)

    def growth(self, ball, center, points, scale, support):
        """Return the distance itself."""
        return 1.0

    def public_bounds(self, ball, support, temperature):
        """Return the distance itself."""
        return PublicBounds(1.0, np.asarray) if isinstance(self.statistic, FrechetMean) else None

    def temperature(self, scale):
        """Return the scale."""
        return scale

    @override
    def check(self, law):
        check_representable(law)
