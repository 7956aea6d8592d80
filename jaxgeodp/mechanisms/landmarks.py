"""The baseline of the papers on planar shapes: noise on the landmarks."""

import dataclasses
import math
from typing import final

import jax
import jax.numpy as jnp
from typing_extensions import override

from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.domains.records import record_count
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.privacy.guarantee import PureDP
from jaxgeodp.releases.noise import Coordinates
from jaxgeodp.releases.vector import Carried, Summary, VectorLaw, vector_law
from jaxgeodp.statistics.records import WeightedRecords, average, points_and_weights

_THEOREM = "Laplace mechanism with epsilon/(2k) for each of the 2k coordinates, sequential composition"


@final
@dataclasses.dataclass(frozen=True, eq=False)
class LandmarkLaplace(BallMechanism):
    """The mean configuration plus independent Laplace noise of every coordinate of every landmark.

    The baseline of Soto et al. 2022 (supplement 2.5.2), with public bounds in place of those they read off the data:
    epsilon is shared evenly by the 2k coordinates, so that a release is epsilon-DP. The value is a configuration (k,),
    complex, not a normed shape.

    Args:
        ball: the public ball that holds the data, on planar shapes.
        epsilon: privacy parameter, in (0, inf).
        align: rotate every shape to the public centre first, after which a coordinate is known within 2 sin(r/2);
            without, only within sqrt((k-1)/k), as for any centred configuration of norm 1.

    Raises:
        ValueError: see `BallMechanism`; another manifold.
    """

    epsilon: float
    align: bool = True

    def __post_init__(self):
        super().__post_init__()
        self._landmarks()  # raises where there are none

    def _landmarks(self) -> int:
        manifold = self.ball.manifold
        if manifold.landmark_dimension != 2:
            raise InputError(f"LandmarkLaplace: needs planar shapes, got {manifold}.")
        return manifold.shape[0]

    @property
    def guarantee(self) -> PureDP:
        """Return epsilon-DP."""
        return Coordinates().guarantee(self.epsilon)

    @override
    def law(self, n, shape=()) -> VectorLaw:
        n = record_count(n)
        k, r = self._landmarks(), self.ball.radius
        reach = 2.0 * math.sin(r / 2.0) if self.align else math.sqrt((k - 1) / k)
        formula = "2k times 4 sin(r/2)/n" if self.align else "2k times 2 sqrt((k-1)/k)/n"
        sensitivity = Sensitivity(2.0 * k * 2.0 * reach / n, f"{formula}, the sum of the coordinates' ranges")
        statistic = "mean configuration of the landmarks"
        law = vector_law(self, n, LandmarkMean(self.align), Coordinates(), sensitivity, self.epsilon, statistic)
        return dataclasses.replace(law, terms=dataclasses.replace(law.terms, theorem=_THEOREM))


@dataclasses.dataclass(frozen=True)
class LandmarkMean(Summary):
    """The real parts of the mean configuration, then the imaginary ones.

    Args:
        align: rotate every shape to the centre first.
    """

    align: bool

    def clipped(self, ball, data):
        """Clip records into the ball. Without ``align``, each clipped record keeps the rotation of the raw one."""
        if self.align:
            return ball.clip(data)
        shapes = ball.clip(data)
        turned: jax.Array = jax.vmap(lambda x, raw: ball.manifold.aligned(raw, x))(shapes, jnp.nan_to_num(data))
        return jnp.where(jnp.isfinite(turned), turned, shapes)

    def carried(self, ball, data):
        """Return ball and records unmoved: all configurations have norm 1."""
        return Carried(ball, self.clipped(ball, data), lambda x: x, lambda value: value)

    def center(self, ball, points):
        """Return None: no Frechet mean is needed."""
        return None

    @override
    def location(self, ball, points, center):
        points, weights = points_and_weights(points)
        if self.align:
            center = jnp.asarray(ball.center, points.dtype)
            points = jax.vmap(lambda x: ball.manifold.aligned(center, x))(points)
        mean = average(WeightedRecords(points, weights))
        return jnp.concatenate([mean.real, mean.imag])

    @override
    def to_value(self, ball, vector):
        (k,) = ball.manifold.shape
        return jax.lax.complex(vector[:k], vector[k:])

    @override
    def to_vector(self, ball, x):
        return jnp.concatenate([x.real, x.imag]), 0.0

    def as_point(self, ball, value):
        """Return the configuration's shape, and True: a configuration is a shape up to its size."""
        return ball.manifold.project(value), jnp.asarray(True)
