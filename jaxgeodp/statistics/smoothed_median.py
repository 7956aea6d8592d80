"""The smoothed median: as robust as the median far away, as smooth as the mean nearby."""

import dataclasses
import math
from typing import final

import jax
import jax.numpy as jnp
from jax.core import Tracer

from jaxgeodp.bounds.comparison import h_max
from jaxgeodp.bounds.growth import RadialGrowth
from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.checks import InputError, number_between
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.statistics.records import equal_weights
from jaxgeodp.statistics.statistic import Equivariant

# Steps of a release: a public number. The result is only the centre of an envelope, which need not be exact.
_STEPS = 60
# Range of widths.
_SMALLEST, _LARGEST = 1e-30, 1e30
# In units of the ball's radius: of smaller ones the minimum takes too long to find; and where records lie at two ends
# of the ball about (width^2/(s^2 + width^2))^((d-1)/2) of the proposals are accepted, s being 2 radii at most.
_LEAST_WIDTH, _LEAST_SHARE = 0.25, 1e-4


@final
@dataclasses.dataclass(frozen=True)
class SmoothedMedian(Equivariant):
    """The minimiser of (1/n) sum sqrt(dist(x, x_i)^2 + width^2), for `GibbsMechanism` and `KNGMechanism`.

    A record farther away than ``width`` pulls with a force of nearly 1, as for the median; nearer ones pull in
    proportion to their distance, so that the loss is convex enough for noise that falls like 1/n.

    Args:
        width: eta, public, above 0, in the units of distances.

    Raises:
        ValueError: ``width`` is not a finite number above 0.

    Example:
        >>> from jaxgeodp import GeodesicBall, GibbsMechanism, SmoothedMedian, Sphere
        >>> ball = GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.4)
        >>> mechanism = GibbsMechanism(ball, mu=1.0, statistic=SmoothedMedian(0.2))
        >>> round(mechanism.sensitivity(100), 4)
        0.0194
    """

    width: float
    of_a_set = True
    supposes = False

    def __post_init__(self):
        object.__setattr__(self, "width", number_between("SmoothedMedian", "width", self.width, _SMALLEST, _LARGEST))

    @property
    def description(self):
        """Return the name with the width."""
        return f"SmoothedMedian(width={self.width:g})"

    def loss(self, manifold: Manifold, x, datum):
        """Return sqrt(dist(x, datum)^2 + width^2), the loss of one record."""
        return jnp.sqrt(manifold.squared_dist(x, datum) + self.width**2)

    def gradient(self, manifold, x, data):
        """Return -(1/n) sum_i log_x(x_i)/sqrt(dist^2 + width^2)."""
        return -self._pull(manifold, x, data)[0]

    def _pull(self, manifold, x, data):
        """Return minus the gradient, and the sum of the weights of the logarithms."""
        squares = jax.vmap(lambda y: manifold.squared_dist(x, y))(data)
        weights = equal_weights(data) / jnp.sqrt(squares + self.width**2)
        return manifold.log_moments(x, data, weights)[0], jnp.sum(weights)

    def center(self, ball, data):
        """Return an approximate minimiser, after a public number of reweighted mean steps."""
        manifold = ball.manifold

        def step(_, x):
            pull, weight = self._pull(manifold, x, data)
            return ball.pull_inside(manifold.project(manifold.exp(x, pull / weight)))

        return jax.lax.fori_loop(0, _STEPS, step, jnp.asarray(ball.center, data.dtype))

    def gradient_sensitivity(self, ball: GeodesicBall, n, support_radius, calibration) -> Sensitivity:
        """Return 2/n times the largest pull of a record, s/sqrt(s^2 + width^2) at the largest distance s."""
        farthest = support_radius + ball.radius
        value = 2.0 / (n * math.hypot(1.0, self.width / farthest))
        return Sensitivity(value, "2 s/(n sqrt(s^2 + eta^2)) (docs/mathematics.md, section 17)")

    def convexity(self, ball: GeodesicBall, distance):
        """Return the bound of a loss's Hessian at a record's largest distance; refuse widths too small for drawing."""
        if not isinstance(ball.radius, Tracer):
            least = _least_width(ball.manifold.dim) * ball.radius
            if self.width < least:
                raise InputError(
                    f"{self.description}: GibbsMechanism needs a width of at least {least:.3g} in this ball of "
                    f"{ball.manifold}."
                )
        return self._bend(distance + ball.radius, ball.manifold.curvature_bounds[1])

    def outward_pull(self, ball, reach):
        """Return 0 from the rim of the records' ball on, where all records pull inwards; else the general bound."""
        return 0.0 if reach >= ball.radius else super().outward_pull(ball, reach)

    def hessian_growth(self, manifold, center, data, farthest, pull):
        """Return the growth of the Hessian from a bound for each record by its distance from ``center``."""
        highest = manifold.curvature_bounds[1]
        distances = jax.vmap(lambda y: manifold.dist(center, y))(data)
        return RadialGrowth(distances, farthest, lambda s: self._bend(s, highest), pull)

    def gradient_growth(self, manifold, center, data, farthest):
        """Return the growth of the gradient: the Hessian's lower bound, integrated."""
        pull = manifold.norm(center, self.gradient(manifold, center, data))
        return self.hessian_growth(manifold, center, data, farthest, pull)

    def _bend(self, s, curvature):
        """Return a lower bound of a loss's Hessian.

        Along and across the geodesic to a record it is 1/sqrt(s^2 + width^2) times a factor, both at most 1.
        """
        square = s**2 + self.width**2
        return self.width**2 / square * h_max(s, curvature) / square**0.5


def _least_width(dim):
    if dim == 1:
        return _LEAST_WIDTH
    ratio = _LEAST_SHARE ** (2.0 / (dim - 1))
    return max(_LEAST_WIDTH, 2.0 * math.sqrt(ratio / (1.0 - ratio)))
