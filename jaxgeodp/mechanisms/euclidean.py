"""The baseline of the papers on spheres and matrices: noise in the ambient space."""

import dataclasses
import math
from typing import final

import jax
import jax.numpy as jnp
from typing_extensions import override

from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.records import record_count
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.privacy.guarantee import PureDP
from jaxgeodp.releases.noise import Norm
from jaxgeodp.releases.vector import Carried, Summary, at_home, vector_law
from jaxgeodp.statistics.records import WeightedRecords, average, points_and_weights


@final
@dataclasses.dataclass(frozen=True, eq=False)
class EuclideanLaplace(BallMechanism):
    """The arithmetic mean of matrices or unit vectors plus noise with density exp(-|z|/sigma) in their space.

    The baseline of the papers: the value, an array of the shape of a point, is in general no point of the manifold.
    Symmetric matrices get symmetric noise (Frobenius norm). sigma = 2 r_E/(n epsilon), r_E the radius of a ball of the
    ambient space that holds the public one; a release is epsilon-DP.

    Args:
        ball: the public ball that holds the data; on a sphere, Euclidean space, SPD or rotations.
        epsilon: privacy parameter, in (0, inf).
        project: release the nearest point of the manifold (not on SPD, where there may be none).

    Raises:
        ValueError: see `BallMechanism`; another manifold.
    """

    epsilon: float
    project: bool = False

    def __post_init__(self):
        super().__post_init__()
        manifold = self.ball.manifold
        self._ambient_radius()  # raises where there is none
        if self.project and not manifold.projects:
            raise InputError(
                f"EuclideanLaplace: project=True is not possible on {manifold}, where an array may have no nearest "
                "point; use project=False."
            )

    def _ambient_radius(self) -> float:
        manifold = self.ball.manifold
        radius = manifold.ambient_radius(self.ball.center, self.ball.radius)
        if radius is None:
            raise InputError(f"EuclideanLaplace: needs a sphere, Euclidean space, SPD or rotations, got {manifold}.")
        return radius

    @property
    def guarantee(self) -> PureDP:
        """Return epsilon-DP."""
        return Norm().guarantee(self.epsilon)

    @override
    def law(self, n, shape=()):
        n = record_count(n)
        formula = "2 r_E/n, r_E the radius of an ambient ball (section 9)"
        sensitivity = Sensitivity(2.0 * self._ambient_radius() / n, formula)
        statistic = "arithmetic mean in the ambient space"
        return vector_law(self, n, AmbientMean(self.project), Norm(), sensitivity, self.epsilon, statistic)


@dataclasses.dataclass(frozen=True)
class AmbientVector(Summary):
    """A mean as a vector of the ambient space, from the public centre: rounding is that of the ball's size.

    Args:
        project: values are the nearest points of the manifold.
    """

    project: bool

    @override
    def clipped(self, ball, data):
        return ball.clip(data)

    def carried(self, ball, data):
        """Return ball and records unmoved, except in flat space, where a translation carries them."""
        if _is_flat(ball.manifold) and ball.manifold.projects:
            return at_home(ball, data)
        return Carried(ball, ball.clip(data), lambda x: x, lambda value: value)

    @override
    def to_value(self, ball, vector):
        # The centre after the noise: at its size, if it is large, rounding would tell records apart that noise hides.
        value = jnp.asarray(ball.center, vector.dtype) + ball.manifold.from_ambient(vector)
        return ball.manifold.project(value) if self.project else value

    @override
    def to_vector(self, ball, x):
        if self.project and not _is_flat(ball.manifold):
            raise InputError("EuclideanLaplace: the density of a projected value is not known; use project=False.")
        return from_center(ball, x), 0.0

    def as_point(self, ball, value):
        """Return the point, if there is one: a matrix may be positive definite, a vector is hardly ever a direction."""
        if self.project:
            return value, jnp.asarray(True)
        manifold = ball.manifold
        inside: jax.Array = jnp.asarray(False) if manifold.projects else manifold.admissible(value)
        return jnp.where(inside, value, jnp.asarray(ball.center, value.dtype)), inside


@dataclasses.dataclass(frozen=True)
class AmbientMean(AmbientVector):
    """The arithmetic mean."""

    def center(self, ball, points):
        """Return None: no Frechet mean is needed."""
        return None

    @override
    def location(self, ball, points, center):
        points, weights = points_and_weights(points)
        shifted = points - jnp.asarray(ball.center, points.dtype)
        return ball.manifold.to_ambient(average(WeightedRecords(shifted, weights)))


def from_center(ball: GeodesicBall, x) -> jax.Array:
    """Return a point as a vector of the ambient space, from the centre."""
    return ball.manifold.to_ambient(x - jnp.asarray(ball.center, x.dtype))


def _is_flat(manifold):
    """Return whether points are vectors, not a circle."""
    return manifold.curvature_bounds == (0.0, 0.0) and math.isinf(manifold.injectivity_radius)
