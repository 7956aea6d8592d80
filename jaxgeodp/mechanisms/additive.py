"""Mechanisms that add noise to a vector and map the sum back: exact, loop-free, in time that data cannot change.

A subclass says which vector summarises the data, how far one record can move it, and how a vector becomes a value.
"""

import abc
import dataclasses
import functools
import math
from typing import Protocol, Self, cast

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.compiling import compiled_ahead
from jaxgeodp.mechanisms.mechanism import Calibration, Home, Mechanism
from jaxgeodp.privacy.entropy import public_key, system_key
from jaxgeodp.privacy.guarantee import Guarantee, NotProven, PureDP
from jaxgeodp.samplers.rejection import Draws
from jaxgeodp.statistics.records import WeightedRecords, average, points_and_weights

_K_NORM = "K-norm mechanism of the Euclidean norm (Hardt & Talwar 2010): scale = sensitivity/epsilon"


@dataclasses.dataclass(frozen=True, eq=False)
class AdditiveMechanism(Mechanism):
    """A vector plus noise; see the module docstring."""

    _timing = "the number of steps does not depend on the data"
    _law = "norm"  # "norm": density exp(-|z|); "gaussian"; "coordinates": exp(-sum |z_j|)

    # What a mechanism defines ------------------------------------------------------------------------

    @abc.abstractmethod
    def _sensitivity(self, n: int) -> Sensitivity:
        """How far one record can move the vector."""

    @abc.abstractmethod
    def _location(self, points, mean) -> jax.Array:
        """The vector of clipped records, which may be `WeightedRecords`, and their ``mean`` (see `_center`)."""

    @abc.abstractmethod
    def _to_value(self, vector) -> jax.Array:
        """What is released for a vector."""

    @abc.abstractmethod
    def _to_vector(self, x) -> tuple[jax.Array, jax.Array | float]:
        """The vector of a value, and the log of the volume that `_to_value` gives to a unit of vectors there."""

    @property
    def _strength(self) -> float:
        return _epsilon(self)

    _theorem = _K_NORM

    # Public ------------------------------------------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee | NotProven:
        """What one release promises."""
        return PureDP(_epsilon(self))

    def calibrate(self, n: int) -> Calibration:
        """See `Mechanism.calibrate`."""
        sensitivity = self._sensitivity(n)
        return Calibration(sensitivity, sensitivity.value / self._strength, None, self._theorem)

    def log_density(self, x, data) -> jax.Array:
        """See `Mechanism.log_density`; with respect to the volume measure where the noise is on a manifold.

        Raises:
            ValueError: several noise vectors give the same value (positive curvature), or the value is projected.
        """
        data = self._records(data)
        home, points, _ = self._home(data)
        vector, log_volume = home._to_vector(self._carried(x))
        shift = (vector - home._location(points, home._center(points))) / self.calibrate(data.shape[0]).scale
        return _log_noise(self._law, shift) - log_volume

    def simulate(self, key, data, num: int) -> jax.Array:
        """See `Mechanism.simulate`."""
        data = self._records(data)
        return _simulate(self, key, data, self.calibrate(data.shape[0]).scale, num).points

    # Machinery ---------------------------------------------------------------------------------------

    @property
    def _sampler(self):
        return {"name": f"{self._law} noise added to a vector", "exactness": "exact up to floating point"}

    def _center(self, points) -> jax.Array | None:
        """The Frechet mean, for mechanisms that need it."""
        return None

    def _home(self, data) -> Home[Self]:
        """The ambient space is where it is: means and noise do not move, but by a translation of a flat space."""
        if self._translates:
            return super()._home(data)
        return Home(self, self._clipped(data), lambda value: value)

    @property
    def _translates(self) -> bool:
        return self.ball.manifold.curvature_bounds == (0.0, 0.0) and self.ball.manifold.projects

    def _carried(self, x):
        """A value to where `_home` is."""
        return self.ball.to_home(x) if self._translates else x

    def _ready_to_draw(self, shape):
        scale = self.calibrate(shape.shape[0]).scale
        program = compiled_ahead(type(self).__name__, _simulate, self, public_key(), shape, scale, num=1)
        return lambda data: np.asarray(program(self, system_key(), data, scale).points)[0]

    def _draws_around(self, key, points, center, scale, support, num, block) -> Draws:
        location = self._location(points, center)
        location = jnp.where(jnp.isfinite(location), location, 0.0)  # before the noise, whose law must be that around 0
        noise = _noise(self._law, key, num, location.shape[0], location.dtype)
        values = jax.vmap(lambda z: self._to_value(location + jnp.asarray(scale, location.dtype) * z))(noise)
        return Draws(values, jnp.ones(()), jnp.int32(num), jnp.asarray(True))


class _Pure(Protocol):
    """A mechanism whose privacy parameter is epsilon."""

    @property
    def epsilon(self) -> float: ...


def _epsilon(mechanism: Mechanism) -> float:
    """Of a mechanism that has one: those that have not override what asks for it."""
    return cast(_Pure, mechanism).epsilon


@functools.partial(jax.jit, static_argnames="num")
def _simulate(mechanism, key, data, scale, num):
    home, points, back = mechanism._home(data)
    draws = home._draws_around(key, points, home._center(points), scale, None, num, None)
    return draws.mapped(back)


def _noise(law, key, num, dim, dtype):
    """Standard noise vectors (num, dim)."""
    direction_key, length_key = jax.random.split(key)
    if law == "coordinates":
        return jax.random.laplace(direction_key, (num, dim), dtype)
    normal = jax.random.normal(direction_key, (num, dim), dtype)
    if law == "gaussian":
        return normal
    # A uniform direction times a Gamma(dim, 1) length: dim exponentials (jax.random.gamma compiles for seconds).
    lengths = jnp.sum(jax.random.exponential(length_key, (num, dim), dtype), axis=1)
    return normal / jnp.linalg.norm(normal, axis=1, keepdims=True) * lengths[:, None]


def _log_noise(law, z):
    if law == "coordinates":
        return -jnp.sum(jnp.abs(z))
    return -0.5 * jnp.sum(z**2) if law == "gaussian" else -jnp.linalg.norm(z)


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass(frozen=True, eq=False)
class EuclideanLaplace(AdditiveMechanism):
    """The arithmetic mean of matrices or unit vectors plus noise with density exp(-|z|/sigma) in their space.

    The baseline of the papers: the value is in general no point of the manifold. Symmetric matrices get symmetric noise
    (Frobenius norm).

    Args:
        ball: the public ball that holds the data; on a sphere, Euclidean space, SPD or rotations.
        epsilon: privacy parameter, in (0, inf).
        project: release the nearest point of the manifold (not on SPD, where there may be none).

    Raises:
        ValueError: see `Mechanism`; another manifold.
    """

    epsilon: float
    project: bool = False
    _described = "arithmetic mean in the ambient space"

    def __post_init__(self):
        super().__post_init__()
        manifold = self.ball.manifold
        self._ambient_radius()  # raises where there is none
        if self.project and not manifold.projects:
            raise InputError(
                f"EuclideanLaplace: project=True is not possible on {manifold}: an array may have no nearest point."
            )

    def _sensitivity(self, n):
        return Sensitivity(2.0 * self._ambient_radius() / n, "2 r_E/n, r_E the radius of an ambient ball (section 9)")

    def _ambient_radius(self) -> float:
        manifold = self.ball.manifold
        radius = manifold.ambient_radius(self.ball.center, self.ball.radius)
        if radius is None:
            raise InputError(f"EuclideanLaplace: needs a sphere, Euclidean space, SPD or rotations, got {manifold}.")
        return radius

    def _location(self, points, mean):
        return self.ball.manifold.to_ambient(average(points))

    def _to_value(self, vector):
        value = self.ball.manifold.from_ambient(vector)
        return self.ball.manifold.project(value) if self.project else value

    def _to_vector(self, x):
        if self.project and self.ball.manifold.curvature_bounds != (0.0, 0.0):
            raise InputError("EuclideanLaplace: a projected value has no simple density.")
        return self.ball.manifold.to_ambient(x), 0.0


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass(frozen=True, eq=False)
class LandmarkLaplace(AdditiveMechanism):
    """The mean configuration plus independent Laplace noise of every coordinate of every landmark.

    The baseline of Soto et al. 2022 (supplement 2.5.2), with public bounds in place of those they read off the data:
    epsilon is shared evenly by the 2k coordinates. The value is a configuration (k,), complex, not a normed shape.

    Args:
        ball: the public ball that holds the data, on planar shapes.
        epsilon: privacy parameter, in (0, inf).
        align: rotate every shape to the public centre first, after which a coordinate is known within 2 sin(r/2);
            without, only within sqrt((k-1)/k), as for any centred configuration of norm 1.

    Raises:
        ValueError: see `Mechanism`; another manifold.
    """

    epsilon: float
    align: bool = True
    _law = "coordinates"
    _described = "mean configuration of the landmarks"
    _theorem = "Laplace mechanism with epsilon/(2k) for each of the 2k coordinates, sequential composition"

    def __post_init__(self):
        super().__post_init__()
        self._landmarks()  # raises where there are none

    def _landmarks(self) -> int:
        landmarks = self.ball.manifold.landmarks
        if landmarks is None:
            raise InputError(f"LandmarkLaplace: needs planar shapes, got {self.ball.manifold}.")
        return landmarks

    def _sensitivity(self, n):
        k, r = self._landmarks(), self.ball.radius
        reach = 2.0 * math.sin(r / 2.0) if self.align else math.sqrt((k - 1) / k)
        formula = "2k times 4 sin(r/2)/n" if self.align else "2k times 2 sqrt((k-1)/k)/n"
        return Sensitivity(2.0 * k * 2.0 * reach / n, f"{formula}, the sum of the coordinates' ranges")

    def _clipped(self, data) -> jax.Array:
        if self.align:
            return self.ball.clip(data)
        # A clipped record is turned as the raw one was: clipping aligns it with the centre.
        shapes = self.ball.clip(data)
        turned: jax.Array = jax.vmap(lambda x, raw: self.ball.manifold.aligned(raw, x))(shapes, jnp.nan_to_num(data))
        return jnp.where(jnp.isfinite(turned), turned, shapes)

    def _location(self, points, mean):
        points, weights = points_and_weights(points)
        if self.align:
            center = jnp.asarray(self.ball.center, points.dtype)
            points = jax.vmap(lambda x: self.ball.manifold.aligned(center, x))(points)
        mean = average(WeightedRecords(points, weights))
        return jnp.concatenate([mean.real, mean.imag])

    def _to_value(self, vector):
        k = self._landmarks()
        return jax.lax.complex(vector[:k], vector[k:])

    def _to_vector(self, x):
        return jnp.concatenate([x.real, x.imag]), 0.0
