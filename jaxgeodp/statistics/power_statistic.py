"""Power means and the Frechet median as statistics of a mechanism: robust summaries through the K-norm gradient."""

import dataclasses
from typing import final

import jax
from jax.core import Tracer
from typing_extensions import override

from jaxgeodp.bounds.comparison import h_max
from jaxgeodp.bounds.growth import RadialGrowth
from jaxgeodp.bounds.power_growth import power_growth
from jaxgeodp.bounds.sensitivity import Sensitivity, power_gradient_sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.statistics.power_mean import power_gradient, power_mean_in_ball
from jaxgeodp.statistics.records import equal_weights
from jaxgeodp.statistics.statistic import Equivariant

# Beyond it the distances' powers leave the range of floating point before they mean anything.
_LARGEST_POWER = 16.0
# Least power for Gibbs mechanisms; with smaller ones the minimum takes too long to find.
_LEAST_CONVEX = 1.5
# Distances below 64 roundings of 1 count as 0, which is a hundred thousandth of this.
_LEAST_RADIUS = 1e-9
# Least share of proposals that are accepted.
_LEAST_SHARE = 1e-4


class _PowerStatistic(Equivariant):
    """Base of power means and the Frechet median; a subclass sets ``power``."""

    power: float
    of_a_set = True
    supposes = False

    def loss(self, manifold: Manifold, x, datum):
        """Return ``dist^p/p``."""
        return manifold.dist(x, datum) ** self.power / self.power

    def gradient(self, manifold, x, data):
        """Return -(1/n) sum_i dist^{p-2} log_x(x_i); a datum at x counts 0."""
        return -power_gradient(manifold, x, data, equal_weights(data), self.power)[0]

    def center(self, ball, data):
        """Return the power mean after a public number of steps."""
        return power_mean_in_ball(ball, data, self.power)

    @override
    def gradient_growth(self, manifold, center, data, farthest):
        pull = manifold.norm(center, self.gradient(manifold, center, data))
        return power_growth(manifold, center, pull, data, farthest, self.power)

    def convexity(self, ball, distance):
        """Return (p - 1) h_max s^{p-2} at the largest distance s of a record.

        Raises:
            ValueError: p is outside 1.5 to 2, or too far below 2 for so many dimensions.
        """
        self._check_convex(ball.manifold.dim)
        return self._bend(distance + ball.radius, ball.manifold.curvature_bounds[1])

    def outward_pull(self, ball, reach):
        """Return 0 from the rim of the records' ball on, where all records pull inwards; else the general bound."""
        return 0.0 if reach >= ball.radius else super().outward_pull(ball, reach)

    def hessian_growth(self, manifold, center, data, farthest, pull):
        """Return the growth of the Hessian from a bound for each record by its distance from ``center``."""
        highest = manifold.curvature_bounds[1]
        distances = jax.vmap(lambda y: manifold.dist(center, y))(data)
        return RadialGrowth(distances, farthest, lambda s: self._bend(s, highest), pull)

    def _check_convex(self, dim):
        # Across the geodesic between two clusters the loss is as much steeper as this is below 1, in all directions.
        share = (self.power - 1.0) ** (0.5 * (dim - 1))
        if not _LEAST_CONVEX <= self.power <= 2.0 or share < _LEAST_SHARE:
            raise InputError(
                f"{self.description}: GibbsMechanism needs a more convex loss: a power from 1.5 to 2 (closer to 2 in "
                "many dimensions), or SmoothedMedian."
            )

    def _bend(self, s, curvature):
        """Return a lower bound of a loss's Hessian: s^{p-2} times p - 1 along the geodesic, h_max across; both <= 1."""
        return (self.power - 1.0) * h_max(s, curvature) * s ** (self.power - 2.0)

    def gradient_sensitivity(self, ball, n, support_radius, calibration) -> Sensitivity:
        """Return the bound of Theorem G.

        Raises:
            ValueError: distances in so small a ball would count as 0.
        """
        if not isinstance(ball.radius, Tracer) and ball.radius < _LEAST_RADIUS:
            raise InputError(
                f"{type(self).__name__}: the radius {ball.radius:g} is too small, as distances below 1e-14 count as 0: "
                f"choose units in which it is at least {_LEAST_RADIUS:g}."
            )
        return power_gradient_sensitivity(ball, n, support_radius, self.power)


@final
@dataclasses.dataclass(frozen=True)
class PowerMean(_PowerStatistic):
    """The minimiser of (1/pn) sum dist(x, x_i)^p for a power p >= 1, for `KNGMechanism`.

    `GibbsMechanism` takes it for powers from 1.5 to 2 (nearer to 2 in many dimensions).

    Args:
        power: p, public, from 1 (the median) over 2 (the mean) to 16.

    Raises:
        ValueError: ``power`` is not a number from 1 to 16.
    """

    power: float

    def __post_init__(self):
        if not (isinstance(self.power, int | float) and 1 <= self.power <= _LARGEST_POWER):
            raise InputError(f"PowerMean: power must be a number of at least 1 and at most 16, got {self.power!r}.")

    @property
    def description(self):
        """Return the name with the power."""
        return f"PowerMean(power={self.power:g})"


@final
@dataclasses.dataclass(frozen=True)
class FrechetMedian(_PowerStatistic):
    """The minimiser of (1/n) sum dist(x, x_i), for `KNGMechanism`: every datum pulls with force 1.

    So one datum changes the gradient by at most 2/n, in any ball.
    """

    power = 1.0
