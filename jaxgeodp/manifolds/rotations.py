"""Rotations of three-dimensional space, SO(3), with the rotation angle as distance.

The unit quaternions +-u of a rotation make SO(3) a sphere of radius 2 (curvature 1/4) with antipodes
identified. A quaternion is read off a matrix without a branch that differentiation could feel: the entries of
4 u u' are linear in the matrix, and the column of its largest diagonal entry is a multiple of u. Everything
is then accurate for all angles up to and at pi, the cut locus. Tangent vectors are 3 x 3 matrices p A, A
skew, with <u, v> = tr(u'v)/2, the inner product of the rotation vectors of A.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.manifolds.analytic import angle_over_sine, angle_over_sine_of_cosine, sinc_sqrt, squared_angle
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.manifolds.operations import fact, operation
from jaxgeodp.manifolds.radial import tangent_line

# A record whose columns are further from orthonormal holds a scale or something else; entries of two decimals do not.
_LARGEST_DEVIATION = 0.02


@dataclasses.dataclass(frozen=True)
class Rotations(Manifold):
    """Rotations of space; points are rotation matrices (3, 3), and the distance is the rotation angle in radians.

    ``project`` takes the nearest rotation of any matrix (Kabsch). Tangent vectors at p are matrices p A, A skew, with
    <u, v> = tr(u'v)/2.
    """

    dim = 3
    shape = (3, 3)
    homogeneous = True
    curvature_bounds = (0.25, 0.25)
    curvature_trace = 0.5
    injectivity_radius = math.pi
    diameter = math.pi

    @fact
    def origin(self) -> np.ndarray:
        """Return the identity."""
        return np.eye(3)

    @operation
    def inner(self, point, u, v) -> jax.Array:
        """Return ``tr(u'v)/2``."""
        return 0.5 * jnp.sum(u * v)

    @operation
    def exp(self, point, tangent) -> jax.Array:
        """Return ``p (I + sin(t)/t A + (1 - cos t)/t^2 A^2)``, A = p'v (Rodrigues)."""
        return point @ _rotation(_vector(point.T @ tangent))

    @operation
    def log(self, p, q) -> jax.Array:
        """Return ``p A``, A the rotation vector of p'q as a skew matrix; one of two choices at angle pi."""
        unit = _quaternion(p.T @ q)
        cosine, axis = unit[0], unit[1:]
        return p @ _skew(2.0 * angle_over_sine(jnp.sum(axis**2), cosine) * axis)

    @operation
    def squared_dist(self, p, q) -> jax.Array:
        """Return the squared rotation angle of p'q, from its quaternion by atan2."""
        unit = _quaternion(p.T @ q)
        return 4.0 * squared_angle(jnp.sum(unit[1:] ** 2), unit[0])

    @operation
    def transport(self, p, q, tangent) -> jax.Array:
        """Return ``p S A S`` for v = p A, with S the rotation half way from I to p'q."""
        unit = _quaternion(p.T @ q)
        half = _rotation(angle_over_sine(jnp.sum(unit[1:] ** 2), unit[0]) * unit[1:])
        return p @ half @ (p.T @ tangent) @ half

    @operation
    def log_moments(self, base, points, weights) -> tuple[jax.Array, jax.Array]:
        """Return the moments by two matrix-vector products on the quaternions, a sphere up to sign."""
        here = _quaternion(base)
        quaternions = jax.vmap(_quaternion)(points)
        cosine = quaternions @ here
        sign = jnp.where(cosine < 0, -1.0, 1.0)
        cosine = jnp.abs(cosine)
        ratio = 2.0 * angle_over_sine_of_cosine(cosine)
        total = (weights * ratio * sign) @ quaternions
        # conj(here) total: its vector part is the rotation vector of the sum in the frame of base.
        vector = here[0] * total[1:] - total[0] * here[1:] - jnp.cross(here[1:], total[1:])
        return base @ _skew(vector), weights @ (ratio**2 * (1.0 - cosine**2))

    extrinsic_radius = math.sqrt(3.0)

    def extrinsic(self, point):
        """Return the nine entries of the matrix."""
        return point.reshape(9)

    def from_extrinsic(self, vector):
        """Return the nearest rotation."""
        return self.project(vector.reshape(3, 3))

    def ambient_radius(self, center, radius):
        """Return ``2 sqrt(2) sin(r/2)``, as |P - Q| = 2 sqrt(2) sin(angle/2)."""
        return 2.0 * math.sqrt(2.0) * math.sin(radius / 2.0)

    def home(self, center) -> jax.Array:
        """Return the identity."""
        return jnp.eye(3, dtype=center.dtype)

    @operation
    def to_home(self, center, point) -> jax.Array:
        """Return ``c'x``."""
        return center.T @ point

    @operation
    def from_home(self, center, point) -> jax.Array:
        """Return ``c y``."""
        return center @ point

    @operation
    def project(self, x) -> jax.Array:
        """Return the rotation with the largest tr(r'x) (Davenport's q-method); NaN where it is not unique."""
        rotation, unique = nearest_rotation(x)
        return jnp.where(unique, rotation, jnp.nan)

    @operation
    def deviation(self, x: jax.Array | np.ndarray) -> jax.Array:
        """Return the largest absolute entry of ``x'x - 1``; at least 1 for a reflection."""
        moved: jax.Array = jnp.max(jnp.abs(x.T @ x - jnp.eye(3, dtype=x.dtype)))
        turns: jax.Array = jnp.sum(jnp.cross(x[0], x[1]) * x[2]) > 0
        return jnp.where(turns, moved, jnp.maximum(moved, 1.0))

    @operation
    def admissible(self, x) -> jax.Array:
        """Return whether ``x'x`` is within .02 of the identity and the determinant positive."""
        return self.deviation(x) <= _LARGEST_DEVIATION

    @operation
    def to_tangent(self, point, v) -> jax.Array:
        """Return ``p (p'v - v'p)/2``."""
        turned = point.T @ v
        return point @ (0.5 * (turned - turned.T))

    @operation
    def frame(self, point) -> jax.Array:
        """Return ``p`` times the generators of the rotations about the three axes."""
        return jax.vmap(lambda axis: point @ _skew(axis))(jnp.eye(3, dtype=point.dtype))

    @operation
    def random_tangent(self, key, point) -> jax.Array:
        """Draw ``p`` times a skew matrix with a standard normal rotation vector."""
        return point @ _skew(jax.random.normal(key, (3,), real_dtype(point)))

    @operation
    def random_point(self, key) -> jax.Array:
        """Draw a uniform rotation: a normal quaternion, scaled."""
        normal = jax.random.normal(key, (4,))
        return _rotation_of_quaternion(normal / jnp.sqrt(jnp.sum(normal**2)))

    @operation
    def log_det_exp(self, point, tangent) -> jax.Array:
        """Return ``2 log(sin(t/2)/(t/2))``, minus infinity from t = pi on."""
        return self._radial_log_det(self.inner(point, tangent, tangent))

    def volume_envelope(self, lower, upper) -> tuple[jax.Array, jax.Array]:
        """Return the tangent line at the middle: the log-determinant is radial and concave."""
        return tangent_line(lambda t: self._radial_log_det(t**2), lower, upper)

    def _radial_log_det(self, squared: jax.Array) -> jax.Array:
        inside = squared < math.pi**2
        return jnp.where(inside, 2.0 * jnp.log(sinc_sqrt(0.25 * jnp.where(inside, squared, 1.0))), -jnp.inf)


# A gap between the two largest eigenvalues below this many rounding errors leaves the nearest rotation undecided.
_DEGENERATE = 64.0


def nearest_rotation(x) -> tuple[jax.Array, jax.Array]:
    """Return a rotation with the largest tr(r'x) for x (3, 3), and whether it is unique (Davenport's q-method).

    Its derivatives are finite, and 0 where there are several; right up to the third order.
    """
    scaled = x / jnp.maximum(jnp.max(jnp.abs(x)), jnp.finfo(x.dtype).tiny)
    form = _outer_quaternion(scaled, 0.0)
    fixed = jax.lax.stop_gradient(form)
    values, vectors = jnp.linalg.eigh(fixed)
    top, gap = vectors[:, -1], values[-1] - values[-2]
    unique = gap > _DEGENERATE * jnp.finfo(x.dtype).eps
    # Steps of Newton's method with a fixed matrix, zero in value: each carries one more order of derivatives, where
    # eigh's own rule has NaN (equal eigenvalues).
    slope = values[-1] * jnp.eye(4, dtype=x.dtype) - fixed + jnp.outer(top, top)
    inverse = jnp.linalg.inv(jnp.where(unique, slope, jnp.eye(4, dtype=x.dtype)))
    unit = top
    for _ in range(3):
        moved = form @ unit
        unit = unit + inverse @ jnp.where(unique, moved - jnp.sum(unit * moved) * unit, 0.0)
        unit = unit / jnp.sqrt(jnp.sum(unit**2))
    return _rotation_of_quaternion(unit), unique


def _skew(vector):
    x, y, z = vector
    zero = jnp.zeros_like(x)
    return jnp.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]])


def _vector(skew):
    """Return the rotation vector of a skew matrix."""
    return 0.5 * jnp.array([skew[2, 1] - skew[1, 2], skew[0, 2] - skew[2, 0], skew[1, 0] - skew[0, 1]])


def _rotation(vector):
    """Return ``I + sin(t)/t A + (1 - cos t)/t^2 A^2`` with 1 - cos t = 2 sin(t/2)^2."""
    squared = jnp.sum(vector**2)
    skew = _skew(vector)
    return (
        jnp.eye(3, dtype=vector.dtype) + sinc_sqrt(squared) * skew + 0.5 * sinc_sqrt(0.25 * squared) ** 2 * skew @ skew
    )


def _outer_quaternion(r, one):
    """Return 4 u u' for the quaternion u = (w, x, y, z) of a rotation r (``one`` = 1); linear in r."""
    trace = r[0, 0] + r[1, 1] + r[2, 2]
    w = [one + trace, r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]]
    x = [w[1], one + 2.0 * r[0, 0] - trace, r[0, 1] + r[1, 0], r[0, 2] + r[2, 0]]
    y = [w[2], x[2], one + 2.0 * r[1, 1] - trace, r[1, 2] + r[2, 1]]
    z = [w[3], x[3], y[3], one + 2.0 * r[2, 2] - trace]
    return jnp.array([w, x, y, z])


def _quaternion(rotation):
    """Return the unit quaternion with nonnegative real part."""
    form = _outer_quaternion(rotation, 1.0)
    column = form[jnp.argmax(jnp.diag(form))]
    unit = column / jnp.sqrt(jnp.sum(column**2))
    return jnp.where(unit[0] < 0, -unit, unit)


def _rotation_of_quaternion(unit) -> jax.Array:
    real, axis = unit[0], unit[1:]
    skew = _skew(axis)
    return jnp.eye(3, dtype=unit.dtype) + 2.0 * real * skew + 2.0 * skew @ skew
