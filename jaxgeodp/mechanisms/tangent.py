"""The mean of logarithms at the public centre plus noise, and what all noise in that tangent space has in common."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.compiling import compiled_ahead, compiled_in_blocks
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.records import record_count
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.guarantee import PureDP
from jaxgeodp.releases.integers import Integers, Noisy, Sums
from jaxgeodp.releases.noise import Norm, RotationInvariant
from jaxgeodp.releases.vector import Summary, VectorLaw, at_home, vector_law
from jaxgeodp.statistics.records import points_and_weights

# Largest distance of draws in units of 1/sqrt|k_min|: hyperboloid coordinates are right to e^(2 * 15) rounding errors.
_LARGEST_REACH = 15.0


@final
@dataclasses.dataclass(frozen=True, eq=False)
class TangentLaplace(BallMechanism):
    """exp_p0( mean of log_p0 x_i + noise ): sensitivity 2r/n whatever the curvature, but biased unless it is 0.

    The noise has the density exp(-|z|/sigma) in the tangent space at the public centre p0, sigma = 2r/(n epsilon): the
    K-norm mechanism of the Euclidean norm (Hardt & Talwar 2010), so that a release is epsilon-DP. The number of
    steps of a release does not depend on the data.

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

    @property
    @override
    def sums(self) -> "VectorSums":
        return VectorSums(self.ball, type(self).__name__)

    def law(self, n, shape=()):
        """See `Mechanism.law`; the noise may reach points that double precision cannot hold (negative curvature)."""
        n = record_count(n)
        sensitivity = Sensitivity(2.0 * self.ball.radius / n, "2r/n, diameter of a ball of the tangent space")
        described = "mean of the logarithms at the public centre"
        law = vector_law(self, n, MeanOfLogarithms(), Norm(), sensitivity, self.epsilon, described)
        return with_grid(law, Norm(), lambda own: sum_on_grid(own, sensitivity.formula))


class TangentSummary(Summary):
    """Coordinates in an orthonormal frame of the tangent space at the public centre."""

    @override
    def clipped(self, ball, data):
        return ball.clip(data)

    @override
    def carried(self, ball, data):
        return at_home(ball, data)

    @override
    def to_value(self, ball, vector):
        manifold, center, frame = framed(ball, vector.dtype)
        return manifold.project(manifold.exp(center, manifold.combine(vector, frame)))

    @override
    def to_vector(self, ball, x):
        manifold, center, frame = framed(ball, real_dtype(x))
        if math.isfinite(manifold.injectivity_radius):
            raise InputError(
                f"log_density: no density on {manifold}: noise vectors of several lengths meet in a point."
            )
        tangent = manifold.log(center, x)
        return manifold.coordinates(center, tangent, frame), manifold.log_det_exp(center, tangent)

    def as_point(self, ball, value):
        """Itself."""
        return value, jnp.asarray(True)


@dataclasses.dataclass(frozen=True)
class MeanOfLogarithms(TangentSummary):
    """The mean of the records' logarithms."""

    def center(self, ball, points):
        """None."""
        return None

    @override
    def location(self, ball, points, center):
        points, weights = points_and_weights(points)
        manifold, center, frame = framed(ball, real_dtype(points))
        return manifold.coordinates(center, manifold.log_moments(center, points, weights)[0], frame)


class Framed(NamedTuple):
    """A tangent space with coordinates."""

    manifold: Manifold
    center: jax.Array
    frame: jax.Array  #: orthonormal, at the centre


def framed(ball, dtype) -> Framed:
    """The tangent space at the centre, in real precision ``dtype``."""
    manifold = ball.manifold
    kind = jnp.result_type(dtype, jnp.complex64) if manifold.dtype_kind == "complex" else dtype
    center = jnp.asarray(ball.center, kind)
    return Framed(manifold, center, manifold.frame(center))


# On a grid ------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Steps:
    """The vector in integers.

    Attributes:
        sensitivity: by which one record moves it at most, in steps.
        step: length of a step.
        formula: of the sensitivity.
        program: for records of a shape, what makes the integers of private records, compiled.
        supposed: what is supposed, for theorem and note; empty where nothing is.
    """

    sensitivity: int
    step: float
    formula: str
    program: Callable[[jax.ShapeDtypeStruct], Callable[[Any], np.ndarray]]
    supposed: str = ""


@dataclasses.dataclass(frozen=True)
class TangentGrid(Integers):
    """How a vector in the tangent space is released in integers.

    Attributes:
        law: of the release in floating point.
        noise: the law's.
        steps: the vector in integers.
    """

    law: VectorLaw
    noise: RotationInvariant
    steps: Steps

    def continuous(self) -> VectorLaw:
        """The law with noise of real numbers that is like that of integers."""
        law, steps = self.law, self.steps
        noise, _ = self.noise.on_grid(law.ball.manifold.dim, steps.sensitivity, steps.step, law.terms.strength)
        return dataclasses.replace(law, noise=self.noise.continuous, scale=noise.scale * steps.step)

    @override
    def sums(self, shape):
        return self.steps.program(shape)

    def noisy(self, shape):
        """See `Integers.noisy`.

        Raises:
            ValueError: the noise would reach points that double precision cannot hold (negative curvature).
        """
        law, steps, dim = self.law, self.steps, self.law.ball.manifold.dim
        terms = law.terms
        if law.scale != terms.sensitivity / terms.strength or terms.guarantee != self.noise.guarantee(terms.strength):
            raise InputError(f"{terms.mechanism}: numerics='grid' needs the scale and the guarantee of its theorem.")
        noise, guarantee = self.noise.on_grid(dim, steps.sensitivity, steps.step, law.terms.strength)
        scale = noise.scale * steps.step
        _check_reach(law, scale, self.noise.reach_on_grid(dim))
        discrete = self.noise.discrete
        value_of = compiled_ahead(law.terms.mechanism, _value_of, law, jax.ShapeDtypeStruct((dim,), jnp.float64))
        terms = dataclasses.replace(
            law.terms,
            guarantee=guarantee,
            sensitivity=steps.sensitivity * steps.step,
            formula=f"{steps.formula}; {steps.sensitivity} steps of the grid",
            theorem=", ".join(filter(None, ["docs/mathematics.md, Theorem N", steps.supposed])),
            sampler=grid.sampler(discrete, [dim], [noise.scale]),
        )
        note = "; ".join(filter(None, [grid.NOTE, steps.supposed]))

        def value(integers):
            return value_of(law, steps.step * grid.with_noise(discrete, integers, noise.scale))

        return Noisy(terms, scale, note, value)


def with_grid(law: VectorLaw, noise: RotationInvariant, steps: Callable[[VectorLaw], Steps]) -> VectorLaw:
    """The law, with its way of being released in integers: ``steps`` of the law as it then is.

    Raises:
        ValueError: the noise would reach points that double precision cannot hold (negative curvature).
    """
    _check_reach(law, law.scale, noise.reach(law.ball.manifold.dim))
    return dataclasses.replace(law, on_grid=lambda own: TangentGrid(own, noise, steps(own)))


def sum_on_grid(law: VectorLaw, formula: str) -> Steps:
    """The vector as a sum of integers over the records, each in a ball of the tangent space."""

    sums = VectorSums(law.ball, law.terms.mechanism)
    return Steps(2 * grid.STEPS, law.ball.radius / grid.STEPS / law.terms.n, formula, sums.program)


@dataclasses.dataclass(frozen=True, eq=False)
class VectorSums(Sums):
    """Of logarithms at the centre, each on the grid of the tangent space.

    Args:
        ball: of the records.
        owner: whom a refusal names.
    """

    ball: GeodesicBall
    owner: str

    @property
    @override
    def largest(self):
        return grid.STEPS

    @override
    def shape(self, record):
        return (self.ball.manifold.dim,)

    @override
    def program(self, shape):
        vectors_of = compiled_in_blocks(self.owner, _coordinates, self.ball, shape)
        return lambda points: grid.sum_on_grid(vectors_of(self.ball, points), self.ball.radius)


def _check_reach(law, scale, lengths):
    manifold, terms = law.ball.manifold, law.terms
    root = manifold.coordinate_growth
    room = _LARGEST_REACH / root - law.ball.radius if root > 0 else math.inf
    if scale * lengths > room:
        raise InputError(
            f"{terms.mechanism}: with n={terms.n}, radius={law.ball.radius:g} the scale {scale:.4g} is too large for "
            f"double precision on {manifold}, which needs at most {max(room, 0.0) / lengths:.4g}: raise the privacy "
            "parameter or n, or lower the radius."
        )


@jax.jit
def _value_of(law, vector):
    home, _, back = law.at_home(jnp.asarray(law.ball.center)[None])
    return back(law.summary.to_value(home.ball, vector))


@jax.jit
def _coordinates(ball, points):
    """Of the logarithms of clipped records, (n, d)."""
    points = ball.clip_to_home(points)
    manifold, center, frame = framed(ball.at_home, real_dtype(points))
    return jax.vmap(lambda x: manifold.coordinates(center, manifold.log(center, x), frame))(points)
