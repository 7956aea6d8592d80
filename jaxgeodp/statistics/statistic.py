"""What is summarised: a statistic that minimises a mean loss, with the bounds that mechanisms need."""

import dataclasses

import jax.numpy as jnp

from jaxgeodp.bounds.growth import gradient_growth
from jaxgeodp.bounds.sensitivity import Sensitivity, gradient_sensitivity, mean_sensitivity
from jaxgeodp.domain import GeodesicBall
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.statistics.frechet_mean import mean_in_ball


@dataclasses.dataclass(frozen=True)
class FrechetMean:
    """The Frechet mean: the minimiser of F(x) = (1/2n) sum dist(x, x_i)^2 over the public ball."""

    def minimizer(self, ball: GeodesicBall, points):
        """The mean of points in the ball, by a public number of steps."""
        return mean_in_ball(ball, points)

    def gradient_norm(self, manifold: Manifold, x, points):
        """|grad F(x)| = |(1/n) sum_i log_x(x_i)|, n of them at a time as matrix products."""
        return manifold.norm(x, manifold.log_moments(x, points, _equal_weights(points))[0])

    def gradient_growth(self, manifold: Manifold, minimizer, points, farthest):
        """A certified lower bound of the gradient norm as a function of the distance from the minimiser."""
        return gradient_growth(manifold, minimizer, points, _equal_weights(points), farthest)

    def gradient_sensitivity(self, ball, n, support_radius, calibration) -> Sensitivity:
        """Bound of the change of grad F between adjacent data, within ``support_radius`` of the centre."""
        return gradient_sensitivity(ball, n, support_radius, calibration)

    def minimizer_sensitivity(self, ball, n, calibration) -> Sensitivity:
        """Bound of the distance between the means of adjacent data."""
        return mean_sensitivity(ball, n, calibration)


def _equal_weights(points):
    return jnp.full(points.shape[:1], 1.0 / points.shape[0], real_dtype(points))
