"""Vectors in the tangent space at the public centre, and how noise is added to them on a grid."""

import abc
import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.compiling import compiled_ahead, compiled_in_blocks
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.privacy import grid
from jaxgeodp.releases.integers import Integers, Noisy, Sums
from jaxgeodp.releases.noise import RotationInvariant
from jaxgeodp.releases.vector import Summary, VectorLaw, at_home
from jaxgeodp.statistics.records import points_and_weights

#: Largest distance of draws in units of 1/sqrt|k_min|: hyperboloid coordinates are right to e^(2 * 15) rounding errors.
LARGEST_REACH = 15.0
#: Of records.
MEAN_OF_LOGARITHMS = "mean of the logarithms at the public centre"


class TangentSummary(Summary):
    """Coordinates in an orthonormal frame of the tangent space at the public centre."""

    #: How many numbers the vector has; None for the dimension.
    rank: Any = None
    #: How much longer a tangent vector can be than the vector that stands for it.
    stretch: Any = 1.0

    def spread(self, vector: jax.Array) -> jax.Array:
        """Return the coordinates of the tangent vector that a vector stands for: linear, by default the identity."""
        return vector

    def gathered(self, coordinates: jax.Array) -> tuple[jax.Array, jax.Array | float]:
        """Return the vector that `spread` takes to these coordinates, and the log of the volume it gives to a unit."""
        return coordinates, 0.0

    @override
    def clipped(self, ball, data):
        return ball.clip(data)

    @override
    def carried(self, ball, data):
        return at_home(ball, data)

    @override
    def to_value(self, ball, vector):
        manifold, center, frame = framed(ball, vector.dtype)
        return manifold.project(manifold.exp(center, manifold.combine(self.spread(vector), frame)))

    @override
    def to_vector(self, ball, x):
        manifold, center, frame = framed(ball, real_dtype(x))
        if math.isfinite(manifold.injectivity_radius):
            raise InputError(
                f"log_density: there is no density on {manifold}, where several noise vectors lead to one point."
            )
        tangent = manifold.log(center, x)
        vector, log_volume = self.gathered(manifold.coordinates(center, tangent, frame))
        return vector, log_volume + manifold.log_det_exp(center, tangent)

    def as_point(self, ball, value):
        """Return the value itself, and True."""
        return value, jnp.asarray(True)


class MeanOfVectors(TangentSummary):
    """The mean of vectors of bounded length, one for each record."""

    def center(self, ball, points):
        """Return None: no Frechet mean is needed."""
        return None

    @abc.abstractmethod
    def vector(self, ball: GeodesicBall, x: jax.Array) -> jax.Array:
        """Return the vector of one clipped record, no longer than `size` but for rounding."""

    @abc.abstractmethod
    def about(self, ball: GeodesicBall, point: jax.Array, bound: Any) -> tuple["MeanOfVectors", GeodesicBall]:
        """Return the summary about another point, for vectors up to a bound, and the ball there that clips the records.

        Args:
            ball: of this one.
            point: in the ball.
            bound: of the vectors' length.
        """

    @abc.abstractmethod
    def apart(self, ball: GeodesicBall, x: jax.Array, y: jax.Array | None = None) -> jax.Array:
        """Return the length of the difference of two records' vectors before shortening, or about it; of one record,
        the length of its own. Not finite where it is not known."""


@dataclasses.dataclass(frozen=True)
class MeanOfLogarithms(MeanOfVectors):
    """The mean of the records' logarithms."""

    @override
    def vector(self, ball, x):
        manifold, center, frame = framed(ball, real_dtype(x))
        return manifold.coordinates(center, manifold.log(center, x), frame)

    @override
    def location(self, ball, points, center):
        points, weights = points_and_weights(points)
        manifold, center, frame = framed(ball, real_dtype(points))
        return manifold.coordinates(center, manifold.log_moments(center, points, weights)[0], frame)

    @override
    def about(self, ball, point, bound):
        return self, GeodesicBall.tree_unflatten(ball.manifold, (point, bound))

    @override
    def apart(self, ball, x, y=None):
        return ball.manifold.dist(jnp.asarray(ball.center).astype(x.dtype) if y is None else y, x)


class Framed(NamedTuple):
    """A tangent space with coordinates."""

    manifold: Manifold
    center: jax.Array
    frame: jax.Array  #: orthonormal, at the centre


def framed(ball, dtype) -> Framed:
    """Return the tangent space at the centre, in real precision ``dtype``."""
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
        program: from the shape of records to a compiled function that makes the integers of private records.
        supposed: what is supposed, for theorem and note; empty where nothing is.
    """

    sensitivity: int
    step: float
    formula: str
    program: Callable[[jax.ShapeDtypeStruct], Callable[[Any], np.ndarray]]
    supposed: str = ""


@dataclasses.dataclass(frozen=True)
class TangentGrid(Integers):
    """Release of a vector in the tangent space in integers.

    Attributes:
        law: of the release in floating point.
        noise: the law's.
        steps: the vector in integers.
    """

    law: VectorLaw
    noise: RotationInvariant
    steps: Steps

    def continuous(self) -> VectorLaw:
        """Return the law with real-valued noise that the integer noise approximates."""
        law, steps = self.law, self.steps
        dim = vector_length(law)
        noise, _ = self.noise.on_grid(dim, steps.sensitivity, steps.step, law.terms.strength)
        return dataclasses.replace(law, noise=self.noise.continuous, scale=noise.scale * steps.step)

    @override
    def sums(self, shape):
        return self.steps.program(shape)

    def noisy(self, shape):
        """Return the integer noise for n records of this shape, and the post-processing.

        Raises:
            ValueError: the noise would reach points that double precision cannot hold (negative curvature).
        """
        law, steps = self.law, self.steps
        dim = vector_length(law)
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


def vector_length(law) -> int:
    """Return the number of coordinates of the vector of a `VectorLaw` in the tangent space."""
    return law.summary.rank or law.ball.manifold.dim


def with_grid(law: VectorLaw, noise: RotationInvariant, steps: Callable[[VectorLaw], Steps]) -> VectorLaw:
    """Return the law with its release in integers, which ``steps`` makes of the law.

    Raises:
        ValueError: the noise would reach points that double precision cannot hold (negative curvature).
    """
    _check_reach(law, law.scale, noise.reach(vector_length(law)))
    return dataclasses.replace(law, on_grid=lambda own: TangentGrid(own, noise, steps(own)))


def sum_on_grid(law: VectorLaw, formula: str) -> Steps:
    """Return the vector as a sum of integers over the records, each in a ball of vectors."""
    summary = law.summary if isinstance(law.summary, MeanOfVectors) else MeanOfLogarithms()
    sums = VectorSums(law.ball, law.terms.mechanism, summary)
    return Steps(2 * grid.STEPS, summary.size(law.ball) / grid.STEPS / law.terms.n, formula, sums.program)


@dataclasses.dataclass(frozen=True, eq=False)
class VectorSums(Sums):
    """Sums of vectors, each on the grid.

    Args:
        ball: of the records.
        owner: whom a refusal names.
        summary: of the vectors.
    """

    ball: GeodesicBall
    owner: str
    summary: MeanOfVectors = MeanOfLogarithms()
    largest = grid.STEPS

    @override
    def shape(self, record):
        return (self.summary.rank or self.ball.manifold.dim,)

    @override
    def program(self, shape):
        summary, ball = self.summary, self.ball
        program = compiled_in_blocks(self.owner, vectors_of, summary, ball, shape)
        return lambda points: grid.sum_on_grid(program(summary, ball, points), summary.size(ball))


def _check_reach(law, scale, lengths):
    manifold, terms, summary = law.ball.manifold, law.terms, law.summary
    root = manifold.coordinate_growth
    if root <= 0:
        return
    room = (LARGEST_REACH / root - summary.size(law.ball) * summary.stretch) / summary.stretch
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
def vectors_of(summary, ball, points):
    """Return the vectors of clipped records, (n, length)."""
    return jax.vmap(functools.partial(summary.vector, ball.at_home))(ball.clip_to_home(points))
