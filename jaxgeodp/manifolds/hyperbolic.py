"""Hyperbolic space of constant curvature k < 0: one sheet of the hyperboloid <x, x> = 1/k in R^{d+1}.

<x, y> = -x_0 y_0 + x_1 y_1 + ... + x_d y_d, R = 1/sqrt|k|, x_0 > 0. With t = dist(p, q):
cosh(t/R) = k <p, q>, sinh(t/2R)^2 = |k| <q - p, q - p> / 4, which keeps the digits of small distances.
The formulas are those of the sphere with this inner product; coordinates grow like exp(t/R), so that points
at distance t from the origin are resolved to about ``eps * exp(2 t/R)``.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import negative_number, positive_integer
from jaxgeodp.manifolds.analytic import arcsinhc_sqrt, cos_sqrt, log_sinhc_sqrt, sinc_sqrt
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.manifolds.operations import fact, operation
from jaxgeodp.manifolds.radial import chord

# A record whose first coordinate is off by more, relative to it, is written in another way, such as in a ball.
_OFF = 1e-3


@dataclasses.dataclass(frozen=True)
class Hyperbolic(Manifold):
    """Hyperbolic space of dimension ``dim``; points have shape (dim + 1,), the first coordinate positive.

    Points lie on one sheet of the hyperboloid <x, x> = 1/k with <x, y> = -x_0 y_0 + x_1 y_1 + ... + x_d y_d.
    ``project`` keeps the last ``dim`` coordinates and computes the first.

    Args:
        dim: d, at least 1.
        curvature: k below 0; the origin is (R, 0, ..., 0) with R = 1/sqrt(-k).

    Raises:
        ValueError: ``dim`` is not a positive integer, or ``curvature`` not a finite number below 0.
    """

    dim: int
    curvature: float = -1.0

    homogeneous = True
    injectivity_radius = math.inf

    def __post_init__(self):
        positive_integer("Hyperbolic", "dim", self.dim, minimum=1)
        negative_number("Hyperbolic", "curvature", self.curvature)

    @fact
    def curvature_trace(self) -> float:
        """Return the Ricci curvature, (dim - 1) times the absolute curvature."""
        return (self.dim - 1) * -self.curvature

    @fact
    def shape(self) -> tuple[int, ...]:
        """(dim + 1,)."""
        return (self.dim + 1,)

    @property
    def radius(self) -> float:
        """R = 1/sqrt|curvature|."""
        return 1.0 / math.sqrt(-self.curvature)

    @fact
    def origin(self) -> np.ndarray:
        """(R, 0, ..., 0)."""
        return np.append(self.radius, np.zeros(self.dim))

    @fact
    def usual_reach(self) -> float:
        """``10/sqrt(-curvature)``."""
        return 10.0 / math.sqrt(-self.curvature)

    @fact
    def curvature_bounds(self) -> tuple[float, float]:
        """(k, k); (0, 0) for dimension 1, a line."""
        k = float(self.curvature) if self.dim > 1 else 0.0
        return (k, k)

    @fact
    def coordinate_growth(self) -> float:
        """1/R, also in dimension 1."""
        return 1.0 / self.radius

    @operation
    def inner(self, point, u, v) -> jax.Array:
        """Return ``-u_0 v_0 + u_1 v_1 + ... + u_d v_d``."""
        return jnp.sum(u * v) - 2.0 * u[0] * v[0]

    @operation
    def exp(self, point, tangent) -> jax.Array:
        """Return ``cosh(|v|/R) p + R sinh(|v|/R) v/|v|``."""
        squared = self.curvature * self.inner(point, tangent, tangent)
        return cos_sqrt(squared) * point + sinc_sqrt(squared) * tangent

    @operation
    def log(self, p, q) -> jax.Array:
        """Return ``(t/R)/sinh(t/R) (q - cosh(t/R) p)``."""
        half = self._half_sinh_squared(p, q)
        return self.to_tangent(p, _angle_over_sinh(half) * ((q - p) - 2.0 * half * p))

    @operation
    def between(self, p, q, share) -> jax.Array:
        """Return ``(sinh((1-t) a) p + sinh(t a) q)/sinh(a)`` at distance a (for R = 1)."""
        squared = -self.curvature * self.squared_dist(p, q)
        whole = sinc_sqrt(-squared)
        ours, theirs = (t * sinc_sqrt(-(t**2) * squared) / whole for t in (1.0 - share, share))
        return self.project(ours * p + theirs * q)

    @operation
    def squared_dist(self, p, q) -> jax.Array:
        """Return ``4 R^2 arsinh(|q - p|/2R)^2``."""
        half = self._half_sinh_squared(p, q)
        return -4.0 / self.curvature * half * arcsinhc_sqrt(half) ** 2

    @operation
    def transport(self, p, q, tangent) -> jax.Array:
        """Return ``v - k <q, v> / (1 + k <p, q>) (p + q)``."""
        k = self.curvature
        return tangent - k * self.inner(p, q, tangent) / (1.0 + k * self.inner(p, p, q)) * (p + q)

    @operation
    def log_moments(self, base, points, weights) -> tuple[jax.Array, jax.Array]:
        """Return the moments by two matrix-vector products: ``points @ (G p)``, then ``coefficients @ points``."""
        cosh = self.curvature * (points @ base.at[0].multiply(-1.0))
        half = 0.5 * (cosh - 1.0)
        ratio = _angle_over_sinh(half)
        squares = -4.0 / self.curvature * half * arcsinhc_sqrt(half) ** 2
        return self.to_tangent(base, (weights * ratio) @ points), weights @ squares

    def home(self, center) -> jax.Array:
        """Return (R, 0, ..., 0)."""
        return jnp.asarray(self.origin, center.dtype)

    @operation
    def to_home(self, center, point) -> jax.Array:
        """Boost the centre to the origin, accurate for points near the centre.

        Coordinates across the centre stay; the one along it would be a difference of numbers of size exp(2 t/R) at
        distance t. With a the difference along the centre, q the squared length across, s the centre's length and
        w = x_0 + c_0 (all for R = 1) it is ``y = a/w (1 + y_0) - s q/w``, which with ``y_0^2 = 1 + q + y^2`` is a
        quadratic equation for y_0 without cancellation.
        """
        start, axis, length = self._along(center)
        x = point[1:] / self.radius
        along = jnp.sum((x - start) * axis)
        across = (x - start) - along * axis
        square = jnp.sum(across**2)
        width = jnp.sqrt(1.0 + jnp.sum(x**2)) + jnp.sqrt(1.0 + length**2)
        ratio, offset = along / width, length * square / width
        lead = ratio - offset
        room = (1.0 - ratio) * (1.0 + ratio)
        cosh = (ratio * lead + jnp.sqrt((ratio * lead) ** 2 + room * (1.0 + square + lead**2))) / room
        return self.project(self.radius * jnp.concatenate([cosh[None], across + (ratio * cosh + lead) * axis]))

    @operation
    def from_home(self, center, point) -> jax.Array:
        """Apply the inverse boost."""
        _, axis, length = self._along(center)
        y = point[1:] / self.radius
        along = jnp.sum(y * axis)
        # c_0 y + s y_0 with sqrt(1 + |y|^2) for y_0.
        moved = jnp.sqrt(1.0 + length**2) * along + length * jnp.sqrt(1.0 + jnp.sum(y**2))
        return self.project(self.radius * jnp.concatenate([moved[None], y + (moved - along) * axis]))

    def _along(self, center):
        """Return the centre's spatial coordinates for R = 1, their direction (0 at the origin) and their length."""
        start = center[1:] / self.radius
        length = jnp.sqrt(jnp.sum(start**2))
        return start, start / jnp.where(length > 0, length, 1.0), length

    @operation
    def project(self, x) -> jax.Array:
        """Return ``(sqrt(R^2 + x_1^2 + ... + x_d^2), x_1, ..., x_d)``."""
        return x.at[0].set(jnp.sqrt(self.radius**2 + jnp.sum(x[1:] ** 2)))

    @operation
    def admissible(self, x) -> jax.Array:
        """Return whether x is finite, with a first coordinate within a thousandth of that on the hyperboloid."""
        expected = self.project(x)[0]
        return jnp.all(jnp.isfinite(x)) & (jnp.abs(x[0] - expected) <= _OFF * expected)

    @operation
    def belongs(self, x, atol: float = 1e-6) -> jax.Array:
        """Return whether ``k <x, x>`` is 1 to ``atol`` and the rounding of coordinates.

        Beyond 15 R from the origin (in double precision) rounding leaves nothing to tell, and no point belongs.
        """
        last = jnp.sum(x[1:] ** 2)
        size = x[0] ** 2 + last
        rounding = 64.0 * float(jnp.finfo(x.dtype).eps) * size / self.radius**2
        off = jnp.abs((x[0] ** 2 - last) / self.radius**2 - 1.0)
        return (x[0] > 0) & (off <= atol + rounding) & (rounding < 0.25)

    @operation
    def to_tangent(self, point, v) -> jax.Array:
        """Return ``v - k <p, v> p``."""
        return v - self.curvature * self.inner(point, point, v) * point

    @operation
    def frame(self, point) -> jax.Array:
        """Return the last ``dim`` axes at the origin, transported to the point."""
        axes = jnp.eye(self.dim + 1, dtype=point.dtype)[1:]
        return jax.vmap(lambda axis: self._from_origin(point, axis))(jax.lax.stop_gradient(axes))

    @operation
    def random_tangent(self, key, point) -> jax.Array:
        """Draw a standard normal vector at the origin and transport it."""
        normal = jax.random.normal(key, (self.dim,), real_dtype(point))
        return self._from_origin(point, jnp.concatenate([jnp.zeros(1, normal.dtype), normal]))

    @operation
    def log_det_exp(self, point, tangent) -> jax.Array:
        """Return ``(d-1) log(sinh(t/R)/(t/R))``."""
        return self._radial_log_det(-self.curvature * self.inner(point, tangent, tangent))

    def volume_envelope(self, lower, upper) -> tuple[jax.Array, jax.Array]:
        """Return the chord: the log-determinant is radial and convex; on infinite intervals its slope at infinity."""
        return chord(lambda t: self._radial_log_det(-self.curvature * t**2), lower, upper, self.volume_growth)

    def _radial_log_det(self, squared):
        return (self.dim - 1) * log_sinhc_sqrt(jnp.maximum(squared, 0.0))

    def _half_sinh_squared(self, p, q):
        """Return sinh(t/2R)^2; rounding may leave it slightly negative, which callers allow.

        Near points from their difference, far ones, whose difference is nearly light-like, from their product.
        """
        near = -0.25 * self.curvature * self.inner(p, q - p, q - p)
        far = 0.5 * (self.curvature * self.inner(p, p, q) - 1.0)
        return jnp.where(far > 1.0, far, near)

    def _from_origin(self, point, axis):
        return self.transport(jnp.asarray(self.origin, point.dtype), point, axis)


def _angle_over_sinh(half):
    """Return ``a/sinh(a)`` from ``sinh(a/2)^2``."""
    return arcsinhc_sqrt(half) / jnp.sqrt(1.0 + half)
