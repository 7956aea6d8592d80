"""Metric differential privacy: one point, perturbed by the person whose it is (Chatzikokolakis et al., PETS 2013)."""

import dataclasses
import math
from typing import final

import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.points_in_ball import PointsInBall
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.privacy.guarantee import PureDP
from jaxgeodp.releases.density import SAMPLER, DensityLaw, PublicBounds, Target
from jaxgeodp.releases.law import Terms
from jaxgeodp.releases.mechanism import Mechanism
from jaxgeodp.statistics.statistic import FrechetMean, Statistic

# Of epsilon times the diameter: the noise keeps 4 of 16 digits.
_LARGEST = 1e12


@final
@dataclasses.dataclass(frozen=True, eq=False)
class MetricLaplace(Mechanism):
    """Density exp(-epsilon dist(x, y)) around one record y, on the whole of a compact homogeneous manifold.

    Whoever sees the released point can tell two possible records y and y' apart at most by the factor
    exp(epsilon dist(y, y')): records that are near each other are well hidden among each other, and those on opposite
    sides are not. The normalising constant is the same around every point, so that the triangle inequality proves it
    with scale 1/epsilon, and no public ball is needed. It implies pure (epsilon diameter)-DP, which is the guarantee of
    the record, and what a ledger is charged; epsilon by itself is its entry "metric". It is for one direction,
    rotation, shape or subspace at a time: a mean of n such releases has errors of the order 1/(epsilon sqrt(n)), where
    one release of the mean of n records has 1/(epsilon n).

    Args:
        manifold: of bounded diameter, homogeneous: spheres, rotations, planar shapes, Grassmann manifolds.
        epsilon: privacy parameter per unit of distance (per radian), in (0, inf).

    Raises:
        ValueError: another manifold, or epsilon is out of range.

    Example:
        >>> from jaxgeodp import MetricLaplace, Sphere
        >>> release = MetricLaplace(Sphere(2), epsilon=5.0).release([[0.0, 0.6, 0.8]])
        >>> release.value.shape
        (3,)
    """

    manifold: Manifold
    epsilon: float

    def __post_init__(self):
        if not isinstance(self.manifold, Manifold):
            raise InputError(f"MetricLaplace: manifold must be a Manifold, got {type(self.manifold).__name__}.")
        if not (self.manifold.homogeneous and math.isfinite(self.manifold.diameter)):
            raise InputError(
                f"MetricLaplace: needs a homogeneous manifold of bounded diameter, got {self.manifold}; elsewhere no "
                "finite epsilon protects a record."
            )
        object.__setattr__(self, "epsilon", PureDP(self.epsilon).epsilon)
        if self.epsilon * self.manifold.diameter > _LARGEST:
            raise InputError(
                f"MetricLaplace: with epsilon={self.epsilon:g} the noise would be smaller than the rounding of double "
                f"precision; epsilon times the diameter must be at most {_LARGEST:g}."
            )

    @property
    def domain(self) -> PointsInBall:
        """Return all points of the manifold; an invalid record becomes the origin."""
        return PointsInBall(self._everywhere, self.manifold.shape)

    @property
    def guarantee(self) -> PureDP:
        """Return pure DP for any two records."""
        above = math.nextafter(self.manifold.diameter, math.inf)  # pi is no float
        return PureDP(math.nextafter(self.epsilon * above, math.inf))

    @property
    def supports(self) -> frozenset[str]:
        """Return the option of a fixed number of proposals; all others are for many records."""
        return frozenset({"delta"})

    def law(self, n, shape=()):
        """Return the law of the perturbed record; n must be 1.

        Raises:
            ValueError: there are more records: each is to be released for itself.
        """
        if n != 1:
            raise InputError(f"MetricLaplace: perturbs one record, of shape (1, *shape of a point), got {n}.")
        terms = Terms(
            mechanism="MetricLaplace",
            statistic="the record itself",
            n=1,
            strength=self.epsilon,
            guarantee=self.guarantee,
            sensitivity=self.manifold.diameter,
            formula="diameter of the manifold",
            theorem="docs/mathematics.md, section 8: densities exp(-epsilon dist) with one normalising constant",
            sampler=SAMPLER,
            timing="the number of proposals has the same law for all data",
            promises={"metric": {"epsilon": self.epsilon, "per": "unit of distance on the manifold"}},
        )
        return DensityLaw(DistanceFromRecord(), self._everywhere, 1.0 / self.epsilon, None, terms, 1)

    @property
    def _everywhere(self):
        """Return the whole manifold as a ball, wide enough that rounding does not leave out the far end."""
        manifold = self.manifold  # itself, whatever facts hold in a ball: distances are those that the record names
        return GeodesicBall.tree_unflatten(manifold, (np.asarray(manifold.origin), 1.001 * manifold.diameter))


@dataclasses.dataclass(frozen=True)
class DistanceFromRecord(Target):
    """The distance from the only record."""

    statistic: Statistic = dataclasses.field(default_factory=FrechetMean)
    radial = True
    proposals = 64

    @property
    @override
    def takes_weights(self):
        return False

    def at_home(self, ball):
        """Return the target itself."""
        return self

    def center(self, ball, points):
        """Return the record."""
        return points[0]

    @override
    def potential(self, ball, x, center, points):
        return ball.manifold.dist(center, x)

    def growth(self, ball, center, points, scale, support):
        """Return the distance itself."""
        return 1.0

    def public_bounds(self, ball, support, temperature):
        """Return the distance itself."""
        return PublicBounds(1.0, np.asarray)

    def temperature(self, scale):
        """Return the scale."""
        return scale

    def check(self, law):
        """Accept all laws: coordinates of a compact manifold are bounded."""
