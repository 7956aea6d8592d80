"""The K-norm gradient mechanism on manifolds (Soto, Bharath, Reimherr & Slavkovic, NeurIPS 2022)."""

import dataclasses
import math

import jax

from jaxgeodp.bounds import largest_support
from jaxgeodp.checks import InputError
from jaxgeodp.mechanisms.mechanism import Calibration, Mechanism


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass(frozen=True, eq=False)
class KNGMechanism(Mechanism):
    """Density exp(-|grad F(x; D)|/sigma), F the objective that the statistic minimises.

    sigma = 2 sensitivity/epsilon (their Theorem 1). Where the curvature is positive, the sensitivity bound
    holds only near the data and the support is a ball of radius R around the public centre; elsewhere it is
    the whole manifold unless ``support_radius`` is given. A statistic other than the Frechet mean always has a
    bounded support.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        epsilon: privacy parameter, in (0, inf).
        statistic: what is summarised.
        calibration: "tight" (default) or "theorem", the papers' sensitivity on the ball of the data.
        support_radius: R >= ball.radius, with "tight" only; default ball.radius where the curvature is
            positive or the statistic is not the Frechet mean, else no restriction.

    Raises:
        ValueError: see `Mechanism`; or the support radius is out of range.
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

    def calibrate(self, n: int) -> Calibration:
        """See `Mechanism.calibrate`.

        Raises:
            ValueError: the distribution does not exist; says what would have to change.
        """
        ball = self.ball
        radius = self.support_radius
        if radius is None and not self.statistic.may_be_unbounded(ball.manifold):
            radius = ball.radius
        support = None if radius is None else dataclasses.replace(ball, radius=radius)
        reach = math.inf if radius is None else radius
        sensitivity = self.statistic.gradient_sensitivity(ball, n, reach, self.calibration)
        scale = 2.0 * sensitivity.value / self.epsilon
        self._check_existence(n, scale, support)
        return Calibration(sensitivity, scale, support, "Soto et al. 2022, Theorem 1: scale = 2 sensitivity/epsilon")

    def _center(self, points):
        return self.statistic.center(self.ball, points)

    def _potential(self, x, center, points):
        return self.statistic.gradient_norm(self.ball.manifold, x, points)

    def _growth(self, center, points, support):
        # Without a support the growth does not depend on the distance.
        farthest = math.inf if support is None else support.radius + self.ball.radius
        return self.statistic.gradient_growth(self.ball.manifold, center, points, farthest)
