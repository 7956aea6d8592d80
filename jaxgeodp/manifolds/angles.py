"""Angles: the circle, and tori of several angles, flat, with points in radians that stand for all their multiples.

With w(a) in [-pi, pi] the angle a less whole turns, ``exp_p(v) = w(p + v)`` and ``log_p(q) = w(q - p)``. Within arcs
shorter than half a circle everything is as on the line.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import positive_integer
from jaxgeodp.manifolds.defaults import heaviest
from jaxgeodp.manifolds.euclidean import VectorSpace
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.manifolds.newton import NewtonMoments
from jaxgeodp.manifolds.operations import fact, operation

_TURN = 2.0 * math.pi
# Beyond so many turns the angle is lost to rounding.
_MOST_TURNS = 1e6
# Half of the arc that an angle of a record has about the centre in a wide ball: below a quarter turn.
_HALF_ARC = 0.5 * math.pi * (1.0 - 1e-9)


class _Angles(Manifold):
    """``dim`` angles; points have shape (dim,)."""

    homogeneous = True
    curvature_bounds = (0.0, 0.0)
    curvature_trace = 0.0
    injectivity_radius = math.pi

    @fact
    def shape(self) -> tuple[int, ...]:
        """(dim,)."""
        return (self.dim,)

    @fact
    def origin(self) -> np.ndarray:
        """Return the zero vector."""
        return np.zeros(self.dim)

    @fact
    def diameter(self) -> float:
        """``pi sqrt(dim)``."""
        return math.pi * math.sqrt(self.dim)

    @operation
    def inner(self, point, u, v) -> jax.Array:
        """Return ``u . v``."""
        return jnp.sum(u * v)

    @operation
    def exp(self, point, tangent) -> jax.Array:
        """Return ``w(p + v)``."""
        return _wrapped(point + tangent)

    @operation
    def log(self, p, q) -> jax.Array:
        """Return ``w(q - p)``; at a difference of exactly pi, one of the two logarithms."""
        return _wrapped(q - p)

    @operation
    def transport(self, p, q, tangent) -> jax.Array:
        """Return the tangent vector unchanged (flat)."""
        return tangent

    @operation
    def log_moments(self, base, points, weights) -> tuple[jax.Array, jax.Array]:
        """Return ``(sum w log(x_i), sum w |log(x_i)|^2)``."""
        logs = _wrapped(points - base)
        return weights @ logs, weights @ jnp.sum(logs**2, axis=-1)

    @operation
    def newton_moments(self, base, points, weights) -> NewtonMoments:
        """Use the Hessian of the squared distance, the identity wherever it exists."""
        total, square = self.log_moments(base, points, weights)
        return NewtonMoments(total, square, step=total, rate=0.0)

    @operation
    def mean_hessian(self, base, points, weights) -> jax.Array:
        """Return the identity times the sum of the weights."""
        return jnp.sum(weights) * jnp.eye(self.dim, dtype=weights.dtype)

    @operation
    def mean_start(self, points, weights) -> jax.Array:
        """Return the directions of the mean resultants; the heaviest point's angle where a resultant is nearly zero."""
        cosine, sine = weights @ jnp.cos(points), weights @ jnp.sin(points)
        known = cosine**2 + sine**2 > 0.01
        angle = jnp.arctan2(sine, jnp.asarray(jnp.where(known, cosine, 1.0)))
        return jnp.where(known, angle, heaviest(points, weights))

    @operation
    def frame(self, point) -> jax.Array:
        """Return the standard basis."""
        return jnp.eye(self.dim, dtype=real_dtype(point))

    @fact
    def extrinsic_radius(self) -> float:
        """``sqrt(dim)``."""
        return math.sqrt(self.dim)

    def extrinsic(self, point):
        """Return cosines and sines of the angles."""
        return jnp.concatenate([jnp.cos(point), jnp.sin(point)])

    def from_extrinsic(self, vector):
        """Return the angles of the pairs."""
        return jnp.arctan2(vector[self.dim :], vector[: self.dim])

    def home(self, center) -> jax.Array:
        """Return the zero vector."""
        return jnp.zeros_like(center)

    @operation
    def to_home(self, center, point) -> jax.Array:
        """Return ``w(x - c)``."""
        return _wrapped(point - center)

    @operation
    def from_home(self, center, point) -> jax.Array:
        """Return ``w(y + c)``."""
        return _wrapped(point + center)

    def as_points(self, array):
        """Return angles modulo 2 pi; a single angle needs no axis of length 1. NaN beyond a million turns."""
        array = array if self.dim > 1 or array.shape[-1:] == (1,) else array[..., None]
        if array.dtype.kind not in "fiu":
            return array
        array = 1.0 * array
        return jnp.where(jnp.abs(array) <= _MOST_TURNS * _TURN, _wrapped(array), jnp.nan)

    def aligned(self, point, x):
        """Return the representatives of the angles modulo 2 pi that are nearest to ``point``."""
        return point + _wrapped(x - point)

    @operation
    def project(self, x) -> jax.Array:
        """Return ``w(x)``."""
        return _wrapped(x)

    @operation
    def deviation(self, x) -> jax.Array:
        """Return zero, as every angle is a point; NaN beyond a million turns."""
        return jnp.where(self.admissible(x), jnp.zeros((), real_dtype(x)), jnp.nan)

    def belongs(self, x, atol: float = 1e-6) -> jax.Array:
        """Return whether all angles are finite, and at most a million turns."""
        return self.admissible(x)

    @operation
    def admissible(self, x) -> jax.Array:
        """Return whether all angles are finite and at most a million turns."""
        return jnp.all(jnp.abs(x) <= _MOST_TURNS * _TURN)

    @operation
    def to_tangent(self, point, v) -> jax.Array:
        """Return the array unchanged."""
        return v

    @operation
    def random_tangent(self, key, point) -> jax.Array:
        """Draw a standard normal vector."""
        return jax.random.normal(key, self.shape, real_dtype(point))

    @operation
    def random_point(self, key) -> jax.Array:
        """Draw uniform angles."""
        return math.pi * jax.random.uniform(key, self.shape, minval=-1.0, maxval=1.0)

    @operation
    def log_det_exp(self, point, tangent) -> jax.Array:
        """Return zero; minus infinity where an angle is pi or more."""
        return jnp.where(jnp.all(jnp.abs(tangent) < math.pi), jnp.zeros((), real_dtype(tangent)), -jnp.inf)

    def volume_envelope(self, lower, upper) -> tuple[jax.Array, jax.Array]:
        """Return the zero line."""
        return jnp.zeros_like(lower), jnp.zeros_like(lower)


@dataclasses.dataclass(frozen=True)
class Circle(_Angles):
    """Angles in radians; points have shape (1,), and an angle and the angle a turn further are one point.

    The distance is the length of the shorter arc. ``project`` takes whole turns off; a release is between -pi and pi.
    Lines in the plane, which have a period of half a turn, are `Axes`.
    """

    dim = 1


@dataclasses.dataclass(frozen=True)
class Torus(_Angles):
    """Several angles in radians, such as the dihedral angles of a chain; points have shape (dim,).

    The distance is the root of the sum of squared arcs. A ball may have any radius: from a quarter turn on its manifold
    is `UnrolledTorus`, in which each angle of a record is at most a quarter turn from the centre's.

    Args:
        dim: the number of angles.

    Raises:
        ValueError: ``dim`` is not a positive integer.
    """

    dim: int

    def __post_init__(self):
        positive_integer("Torus", "dim", self.dim, minimum=1)

    @override
    def within(self, center, radius):
        return _within(self.dim, radius)


@dataclasses.dataclass(frozen=True)
class UnrolledTorus(VectorSpace):
    """A torus cut open about the centre of a wide ball: angles in radians as vectors of R^dim; see `Torus`.

    Records come in less the whole turns that bring each angle nearest to the centre's, and one that is more than a
    quarter turn away becomes a quarter turn. Of such records the Frechet mean of the torus is the mean of the vectors
    (docs/mathematics.md, Theorem T), and all that holds in R^dim holds. A released or simulated value is a point of
    the torus, with angles between -pi and pi.

    Args:
        dim: the number of angles, at least 2.

    Raises:
        ValueError: ``dim`` is not an integer above 1.
    """

    dim: int

    def __post_init__(self):
        positive_integer("UnrolledTorus", "dim", self.dim, minimum=2)

    @property
    @override
    def whole(self):
        return Torus(self.dim)

    @property
    @override
    def geometry(self):
        return self

    @override
    def within(self, center, radius):
        return _within(self.dim, radius)

    @property
    @override
    def of_values(self):
        return Torus(self.dim)

    @override
    def released(self, value):
        return value - _TURN * (value / _TURN).round()

    @override
    def confined(self, center, x):
        return center + jnp.clip(_wrapped(x - center), -_HALF_ARC, _HALF_ARC)

    @override
    def admissible(self, x):
        return jnp.all(jnp.abs(x) <= _MOST_TURNS * _TURN)


def _within(dim, radius):
    """Return the unrolled torus for balls of radius pi/2 or more; for one angle pi/2 suffices."""
    return UnrolledTorus(dim) if dim > 1 and radius >= 0.5 * math.pi else Torus(dim)


def _wrapped(angle):
    """Return the angle modulo 2 pi, in [-pi, pi]."""
    return angle - _TURN * jnp.round(angle / _TURN)
