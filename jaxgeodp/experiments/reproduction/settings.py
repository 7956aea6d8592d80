"""The two spaces of the papers' simulations, and their Euclidean baseline as they ran it."""

import dataclasses
import math

from jaxgeodp.bounds.comparison import h_max
from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.experiments.generators import PolarData, WishartData
from jaxgeodp.manifolds import SPD, Sphere
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.mechanisms.euclidean import AmbientVector, from_center
from jaxgeodp.privacy.guarantee import NotProven
from jaxgeodp.releases.noise import Norm
from jaxgeodp.releases.vector import vector_law
from jaxgeodp.statistics.frechet_mean import mean_in_ball


def sphere_data(dim: int = 2) -> PolarData:
    """Return polar data in the cap of radius pi/8 (supplement 2.4.1 of Soto et al. 2022)."""
    return PolarData(GeodesicBall(Sphere(dim), Sphere(dim).origin, math.pi / 8))


def matrix_data() -> WishartData:
    """Return Wishart matrices within 1.5 of the identity (supplement 2.3.1)."""
    return WishartData(GeodesicBall(SPD(2), SPD(2).origin, 1.5))


@dataclasses.dataclass(frozen=True, eq=False)
class EmbeddedMean(BallMechanism):
    """The papers' baseline: the Frechet mean, embedded, plus Euclidean Laplace noise.

    Its sensitivity is not the one they use, 2 r_E/n, which is that of the arithmetic mean: nothing is proven.

    Args:
        ball, epsilon, project: see `EuclideanLaplace`.
    """

    epsilon: float
    project: bool = False

    @property
    def guarantee(self):
        """Return `NotProven`, as no privacy guarantee is proven."""
        return NotProven("the sensitivity used is that of the arithmetic mean")

    def law(self, n, shape=()):
        """Return the law for n records, with the scale that the papers print."""
        manifold, radius = self.ball.manifold, self.ball.radius
        # r_E = r on the sphere, e^r - 1 on matrices around the identity (supplement 2.3.3).
        radius = radius if manifold.curvature_bounds[1] > 0 else math.expm1(radius)
        sensitivity = Sensitivity(2.0 * radius / n, "2 r_E/n, as printed")
        return vector_law(self, n, EmbeddedFrechetMean(self.project), Norm(), sensitivity, self.epsilon, "FrechetMean")


@dataclasses.dataclass(frozen=True)
class EmbeddedFrechetMean(AmbientVector):
    """The Frechet mean as a vector of the ambient space."""

    def center(self, ball, points):
        """Return the Fréchet mean."""
        return mean_in_ball(ball, points)

    def location(self, ball, points, center):
        """Return the Fréchet mean in the ambient space."""
        return from_center(ball, center)


def laplace_at_radius(ball: GeodesicBall, n: int, epsilon: float) -> float:
    """Return 2r(2 - h)/(n h epsilon) with h at r, as Soto et al. 2022 print it for KNG, instead of at 2r."""
    h = h_max(ball.radius, ball.manifold.curvature_bounds[1])
    return 2.0 * ball.radius * (2.0 - h) / (h * n * epsilon)
