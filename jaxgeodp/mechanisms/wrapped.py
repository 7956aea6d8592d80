"""Noise in the tangent space at the public centre around the logarithm of the private Frechet mean."""

import dataclasses
import math
from typing import final

import jax
import numpy as np

from jaxgeodp.bounds.comparison import rauch
from jaxgeodp.bounds.rounding import SUPPOSED, of_computed_mean
from jaxgeodp.bounds.sensitivity import Sensitivity, mean_sensitivity
from jaxgeodp.compiling import compiled_ahead
from jaxgeodp.domains.records import record_count
from jaxgeodp.manifolds.manifold import real_dtype
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.mechanisms.tangent import Steps, TangentSummary, framed, sum_on_grid, with_grid
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.guarantee import GaussianDP, PureDP
from jaxgeodp.releases.noise import Norm, Normal, RotationInvariant
from jaxgeodp.releases.vector import VectorLaw, vector_law
from jaxgeodp.statistics.frechet_mean import mean_in_ball


@final
@dataclasses.dataclass(frozen=True, eq=False)
class WrappedLaplace(BallMechanism):
    """exp_p0( log_p0(private mean) + noise ), noise with density exp(-|z|/sigma) in the tangent space at the centre.

    Its centre is the Frechet mean, its shape that of the tangent space: good where the ball is small.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        epsilon: privacy parameter, in (0, inf).

    Raises:
        ValueError: see `BallMechanism`.
    """

    epsilon: float

    @property
    def guarantee(self) -> PureDP:
        """epsilon-DP."""
        return Norm().guarantee(self.epsilon)

    def law(self, n, shape=()):
        """See `Mechanism.law`; the noise may reach points that double precision cannot hold (negative curvature)."""
        return _wrapped(self, n, Norm(), self.epsilon)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class WrappedGaussian(BallMechanism):
    """exp_p0( log_p0(private mean) + normal noise ): mu-Gaussian differential privacy.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        mu: privacy parameter, in (0, inf).

    Raises:
        ValueError: see `BallMechanism`.
    """

    mu: float

    @property
    def guarantee(self) -> GaussianDP:
        """mu-GDP."""
        return Normal().guarantee(self.mu)

    def law(self, n, shape=()):
        """See `Mechanism.law`; the noise may reach points that double precision cannot hold (negative curvature)."""
        return _wrapped(self, n, Normal(), self.mu)


@dataclasses.dataclass(frozen=True)
class LogarithmOfMean(TangentSummary):
    """The logarithm of the Frechet mean."""

    def center(self, ball, points):
        """The mean."""
        return mean_in_ball(ball, points)

    def location(self, ball, points, center):
        """See `Summary.location`."""
        manifold, origin, frame = framed(ball, real_dtype(center))
        return manifold.coordinates(origin, manifold.log(origin, center), frame)


def _wrapped(mechanism, n: int, noise: RotationInvariant, strength: float) -> VectorLaw:
    ball = mechanism.ball
    n = record_count(n)
    exact = mean_sensitivity(ball, n, "tight")
    computed = of_computed_mean(exact, ball, n)
    # log_p0 stretches distances within the ball at most by Rauch's factor.
    factor = rauch(ball.radius, ball.manifold.curvature_bounds[1])

    def stretched(formula):
        formula = formula if factor == 1.0 else f"({formula}) r sqrt(k)/sin(r sqrt(k))"
        return f"{formula} (docs/mathematics.md, section 9)"

    formula, _, supposed = computed.formula.partition(";")
    sensitivity = Sensitivity(computed.value * factor, f"{stretched(formula)};{supposed}")
    law = vector_law(mechanism, n, LogarithmOfMean(), noise, sensitivity, strength, "FrechetMean")
    if ball.manifold.curvature_bounds == (0.0, 0.0):
        # The logarithm of the mean is the mean of the logarithms.
        return with_grid(law, noise, lambda own: sum_on_grid(own, stretched(exact.formula)))
    return with_grid(law, noise, _mean_on_grid)


def _mean_on_grid(law: VectorLaw) -> Steps:
    """The vector of the computed mean, rounded: two roundings by half a step in every coordinate."""
    manifold = law.ball.manifold
    step = law.terms.sensitivity / grid.STEPS
    moved = math.ceil((grid.STEPS + math.sqrt(manifold.dim)) * (1.0 + 1e-12))
    limit = math.ceil(law.ball.radius / step)

    def program(shape):
        location = compiled_ahead(law.terms.mechanism, _location_of_mean, law, shape)

        def steps_of(points):
            with np.errstate(all="ignore"):
                scaled = np.rint(np.asarray(location(law, points)) / step)
            return np.clip(np.nan_to_num(scaled, posinf=limit, neginf=-limit), -limit, limit).astype(np.int64)

        return steps_of

    return Steps(moved, step, law.terms.formula, program, SUPPOSED)


@jax.jit
def _location_of_mean(law, points):
    home, points, _ = law.at_home(points)
    return home.location(points, home.center(points))
