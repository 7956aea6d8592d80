"""Noise in the tangent space at the public centre around the logarithm of the private Frechet mean."""

import dataclasses
import math
from typing import final

import jax
import numpy as np
from typing_extensions import override

from jaxgeodp.bounds.comparison import rauch
from jaxgeodp.bounds.rounding import SUPPOSED, of_computed_mean
from jaxgeodp.bounds.sensitivity import Sensitivity, mean_sensitivity
from jaxgeodp.compiling import compiled_ahead
from jaxgeodp.domains.records import record_count
from jaxgeodp.manifolds.manifold import real_dtype
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.mechanisms.tangent_vectors import Steps, TangentSummary, VectorSums, framed, sum_on_grid, with_grid
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.guarantee import GaussianDP, PureDP
from jaxgeodp.releases.noise import Norm, Normal, RotationInvariant
from jaxgeodp.releases.vector import VectorLaw, vector_law
from jaxgeodp.statistics.frechet_mean import mean_in_ball
from jaxgeodp.statistics.mean_of_blocks import mean_of_blocks


class _Wrapped(BallMechanism):
    @property
    @override
    def supports(self):
        return super().supports | {"grid"}

    @property
    def sums(self) -> VectorSums | None:
        """Return how records become integers that add up in flat space; None on curved manifolds."""
        return VectorSums(self.ball, type(self).__name__) if _is_sum(self.ball) else None


@final
@dataclasses.dataclass(frozen=True, eq=False)
class WrappedLaplace(_Wrapped):
    """exp_p0( log_p0(private mean) + noise ), noise with density exp(-|z|/sigma) in the tangent space at the centre.

    Its centre is the Frechet mean, its shape that of the tangent space: good where the ball is small. sigma is
    sensitivity/epsilon, the sensitivity being that of the mean times what the logarithm stretches distances in the
    ball, so that a release is epsilon-DP (docs/mathematics.md, section 9).

    Args:
        ball: the public ball that holds the data (Assumption 1).
        epsilon: privacy parameter, in (0, inf).

    Raises:
        ValueError: see `BallMechanism`.
    """

    epsilon: float

    @property
    def guarantee(self) -> PureDP:
        """Return epsilon-DP."""
        return Norm().guarantee(self.epsilon)

    def law(self, n, shape=()):
        """Return the law for n records. Refused if noise may exceed double precision (negative curvature)."""
        return _wrapped(self, n, Norm(), self.epsilon)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class WrappedGaussian(_Wrapped):
    """exp_p0( log_p0(private mean) + normal noise ): mu-Gaussian differential privacy.

    The noise has standard deviation sensitivity/mu in each coordinate of the tangent space at the public centre, with
    the sensitivity of `WrappedLaplace`.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        mu: privacy parameter, in (0, inf).

    Raises:
        ValueError: see `BallMechanism`.
    """

    mu: float

    @property
    def guarantee(self) -> GaussianDP:
        """Return mu-GDP."""
        return Normal().guarantee(self.mu)

    def law(self, n, shape=()):
        """Return the law for n records. Refused if noise may exceed double precision (negative curvature)."""
        return _wrapped(self, n, Normal(), self.mu)


@dataclasses.dataclass(frozen=True)
class LogarithmOfMean(TangentSummary):
    """The logarithm of the Frechet mean."""

    def center(self, ball, points):
        """Return the mean."""
        return mean_in_ball(ball, points)

    @override
    def location(self, ball, points, center):
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
    if _is_sum(ball):
        return with_grid(law, noise, lambda own: sum_on_grid(own, stretched(exact.formula)))
    return with_grid(law, noise, mean_on_grid)


def _is_sum(ball):
    """Return whether space is flat: the logarithm of the mean is then the mean of the logarithms."""
    return ball.manifold.curvature_bounds == (0.0, 0.0)


def mean_on_grid(law: VectorLaw) -> Steps:
    """Return the mean's vector, computed in passes and rounded: for two neighbours half a step a coordinate each."""
    manifold = law.ball.manifold
    step = law.terms.sensitivity / grid.STEPS
    moved = math.ceil((grid.STEPS + math.sqrt(manifold.dim)) * (1.0 + 1e-12))
    limit = math.ceil(law.ball.radius / step)

    def program(shape):
        ball, name = law.ball, law.terms.mechanism
        mean_of = mean_of_blocks(name, ball, shape)
        location = compiled_ahead(name, _location, ball, jax.ShapeDtypeStruct(manifold.shape, shape.dtype))

        def steps_of(records):
            with np.errstate(all="ignore"):
                scaled = np.rint(np.asarray(location(ball, mean_of(records))) / step)
            return np.clip(np.nan_to_num(scaled, posinf=limit, neginf=-limit), -limit, limit).astype(np.int64)

        return steps_of

    return Steps(moved, step, law.terms.formula, program, SUPPOSED)


@jax.jit
def _location(ball, mean):
    return LogarithmOfMean().location(ball.at_home, None, mean)
