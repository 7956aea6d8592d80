"""The two spaces of the papers' simulations, and their Euclidean baseline as they ran it."""

import dataclasses
import math

import jax

from jaxgeodp.bounds.comparison import h_max
from jaxgeodp.domain import GeodesicBall
from jaxgeodp.experiments.generators import PolarData, WishartData
from jaxgeodp.experiments.reproduction.run import printed
from jaxgeodp.manifolds import SPD, Sphere
from jaxgeodp.mechanisms import EuclideanLaplace
from jaxgeodp.privacy.guarantee import NotProven


def sphere_data(dim: int = 2) -> PolarData:
    """Polar data in the cap of radius pi/8 (supplement 2.4.1 of Soto et al. 2022)."""
    return PolarData(GeodesicBall(Sphere(dim), Sphere(dim).origin, math.pi / 8))


def matrix_data() -> WishartData:
    """Wishart matrices within 1.5 of the identity (supplement 2.3.1)."""
    return WishartData(GeodesicBall(SPD(2), SPD(2).origin, 1.5))


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass(frozen=True, eq=False)
class EmbeddedMean(EuclideanLaplace):
    """The papers' baseline: the Frechet mean, embedded, plus Euclidean Laplace noise.

    Its sensitivity is not the one they use, 2 r_E/n, which is that of the arithmetic mean: nothing is proven.
    """

    @property
    def guarantee(self):
        """None."""
        return NotProven("the sensitivity used is that of the arithmetic mean")

    def _location(self, points, mean):
        return self.ball.manifold.to_ambient(mean)


def embedded_calibration(ball: GeodesicBall, n: int, epsilon: float):
    """2 r_E/(n epsilon): r_E = r on the sphere, e^r - 1 on matrices around the identity (supplement 2.3.3)."""
    radius = ball.radius if isinstance(ball.manifold, Sphere) else math.expm1(ball.radius)
    return printed(2.0 * radius / (n * epsilon), epsilon)


def laplace_at_radius(ball: GeodesicBall, n: int, epsilon: float):
    """2r(2 - h)/(n h epsilon) with h at r, as Soto et al. 2022 print it for KNG, instead of at 2r."""
    h = h_max(ball.radius, ball.manifold.curvature_bounds[1])
    return printed(2.0 * ball.radius * (2.0 - h) / (h * n * epsilon), epsilon)
