"""The sphere S^d of constant curvature k > 0: vectors of length R = 1/sqrt(k) in R^{d+1}.

With theta = dist(p, q)/R: ``exp_p(v) = cos(|v|/R) p + R sin(|v|/R) v/|v|`` and
``log_p(q) = theta/sin(theta) (q - cos(theta) p)``, defined for dist(p, q) < pi R.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import positive_integer, positive_number
from jaxgeodp.manifolds.analytic import (
    angle_over_sine,
    angle_over_sine_of_cosine,
    cos_sqrt,
    opposite,
    sinc_sqrt,
    squared_angle,
)
from jaxgeodp.manifolds.defaults import heaviest
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.manifolds.newton import NewtonMoments, solve
from jaxgeodp.manifolds.operations import fact, operation
from jaxgeodp.manifolds.radial import tangent_line

_LARGEST_DIM_WITH_HESSIAN = 8
# The mean curvature of the objective is bounded from below before it divides a step.
_SMALLEST_CURVATURE = 0.3


@dataclasses.dataclass(frozen=True)
class Sphere(Manifold):
    """The sphere of dimension ``dim`` and the given curvature; points have shape (dim + 1,).

    Data records are directions: any finite vector but zero is scaled to the sphere by ``project``.

    Args:
        dim: d, at least 1.
        curvature: k above 0; points have length R = 1/sqrt(k).

    Raises:
        ValueError: ``dim`` is not a positive integer, or ``curvature`` not a finite number above 0.
    """

    dim: int
    curvature: float = 1.0

    homogeneous = True

    def __post_init__(self):
        positive_integer("Sphere", "dim", self.dim, minimum=1)
        positive_number("Sphere", "curvature", self.curvature)

    @fact
    def curvature_trace(self) -> float:
        """Return the Ricci curvature, (dim - 1) k."""
        return (self.dim - 1) * self.curvature

    @fact
    def shape(self) -> tuple[int, ...]:
        """(dim + 1,)."""
        return (self.dim + 1,)

    @property
    def radius(self) -> float:
        """R = 1/sqrt(curvature)."""
        return 1.0 / math.sqrt(self.curvature)

    @fact
    def origin(self) -> np.ndarray:
        """Return the north pole (0, ..., 0, R)."""
        return np.append(np.zeros(self.dim), self.radius)

    @fact
    def curvature_bounds(self) -> tuple[float, float]:
        """(k, k); (0, 0) for a circle (dim = 1), which has no planes."""
        return (float(self.curvature), float(self.curvature)) if self.dim > 1 else (0.0, 0.0)

    @fact
    def injectivity_radius(self) -> float:
        """``pi R``."""
        return math.pi * self.radius

    @fact
    def diameter(self) -> float:
        """``pi R``."""
        return math.pi * self.radius

    @operation
    def inner(self, point, u, v) -> jax.Array:
        """Return ``u . v``."""
        return jnp.sum(u * v)

    @operation
    def exp(self, point, tangent) -> jax.Array:
        """Return ``cos(|v|/R) p + R sin(|v|/R) v/|v|``."""
        squared = self.curvature * jnp.sum(tangent**2)
        return cos_sqrt(squared) * point + sinc_sqrt(squared) * tangent

    @operation
    def log(self, p, q) -> jax.Array:
        """Return ``theta/sin(theta) (q - cos(theta) p)``; not unique at the antipode, at distance pi R."""
        perpendicular, _, cosine = self._angle(p, q)
        # Its own sine, made tangent first: near the antipode rounding is as large as it is.
        perpendicular = self.to_tangent(p, perpendicular)
        sine_squared = self.curvature * jnp.sum(perpendicular**2)
        across = (cosine < 0) & (sine_squared < jnp.finfo(sine_squared.dtype).eps ** 2)
        away = angle_over_sine(jnp.where(across, 1.0, sine_squared), cosine) * perpendicular
        direction: jax.Array = jnp.where(across, self.injectivity_radius * self._some_direction(p), away)
        return direction

    @operation
    def squared_dist(self, p, q) -> jax.Array:
        """Return ``R^2 theta^2`` with theta by atan2 of (sine, cosine)."""
        _, sine_squared, cosine = self._angle(p, q)
        return squared_angle(sine_squared, cosine) / self.curvature

    @operation
    def transport(self, p, q, tangent) -> jax.Array:
        """Return ``v - k <q, v> / (1 + k <p, q>) (p + q)``."""
        k = self.curvature
        return tangent - k * jnp.sum(q * tangent) / (1.0 + k * jnp.sum(p * q)) * (p + q)

    @operation
    def log_moments(self, base, points, weights) -> tuple[jax.Array, jax.Array]:
        """Return the moments by two matrix-vector products: ``points @ p``, then ``coefficients @ points``.

        An antipode, whose direction is not known, counts in the squares alone.
        """
        cosine = self.curvature * (points @ base)
        across = opposite(cosine)
        ratio = angle_over_sine_of_cosine(cosine) * ~across
        squares = (ratio**2 * (1.0 - cosine**2) + math.pi**2 * across) / self.curvature
        return self.to_tangent(base, (weights * ratio) @ points), weights @ squares

    @operation
    def newton_moments(self, base, points, weights) -> NewtonMoments:
        """Use the exact Hessian from second moments of the points up to dimension 8, only its trace above.

        Half the squared distance to x_i has the Hessian ``a I + (1 - a) u u'`` with u the direction of log_p(x_i)
        and a = theta cot(theta), ``(1 - a) u u' = (1 - a)/sin^2(theta) P x_i x_i' P`` with P = I - p p' (for R = 1).
        """
        cosine = self.curvature * (points @ base)
        across = opposite(cosine)
        ratio, slope = _ratio_and_slope(cosine)
        ratio, slope = ratio * ~across, slope * ~across
        total = self.to_tangent(base, (weights * ratio) @ points)
        square = weights @ (ratio**2 * (1.0 - cosine**2) + math.pi**2 * across) / self.curvature
        transverse = ratio * cosine
        mean_transverse = weights @ transverse
        if self.dim > _LARGEST_DIM_WITH_HESSIAN:
            trace = 1.0 + (self.dim - 1) * mean_transverse
            step = total * self.dim / jnp.maximum(trace, _SMALLEST_CURVATURE * self.dim)
            return NewtonMoments(total, square, step, None)
        excess = -self.curvature * weights * slope
        gram = (excess[:, None] * points).T @ points

        def hessian(v):
            return mean_transverse * v + self.to_tangent(base, gram @ v)

        step, residual = solve(hessian, total, self.dim)
        return NewtonMoments(total, square, step, residual)

    @operation
    def mean_hessian(self, base, points, weights) -> jax.Array:
        """Return the Hessian from second moments of the points; see `newton_moments`."""
        cosine = self.curvature * (points @ base)
        ratio, slope = _ratio_and_slope(cosine)
        transverse = ratio * cosine
        excess = -self.curvature * weights * slope
        seen = points @ self.frame(base).T
        return (weights @ transverse) * jnp.eye(self.dim, dtype=points.dtype) + (excess[:, None] * seen).T @ seen

    @operation
    def mean_start(self, points, weights) -> jax.Array:
        """Return the direction of the arithmetic mean; the heaviest point if that is nearly zero."""
        mean = weights @ points
        return self.project(jnp.where(self.curvature * jnp.sum(mean**2) > 0.01, mean, heaviest(points, weights)))

    @fact
    def extrinsic_radius(self) -> float:
        """Return the radius R."""
        return 1.0 / math.sqrt(self.curvature)

    def extrinsic(self, point):
        """Return the point itself."""
        return point

    def from_extrinsic(self, vector):
        """Return the nearest point of the sphere."""
        return self.project(vector)

    def ambient_radius(self, center, radius):
        """Return ``R sin(r/R)``: the cap lies in that ball about a point of its axis."""
        return math.sin(radius / self.radius) * self.radius

    def home(self, center) -> jax.Array:
        """Return the north pole."""
        return jnp.asarray(self.origin, center.dtype)

    @operation
    def to_home(self, center, point) -> jax.Array:
        """Rotate in the plane of centre and pole; reflect first if the centre is in the southern half."""
        sign = self._half(center)
        return self._turned(sign * center, self.home(center), sign * point)

    @operation
    def from_home(self, center, point) -> jax.Array:
        """Rotate back; see `to_home`."""
        sign = self._half(center)
        return sign * self._turned(self.home(center), sign * center, point)

    def _some_direction(self, point) -> jax.Array:
        """Return a unit tangent vector: the image of the first axis when p is reflected into the last."""
        unit = point / self.radius
        sign = self._half(unit)
        first, last = (jnp.zeros_like(unit).at[place].set(1.0) for place in (0, -1))
        return first - unit[0] / (1.0 + sign * unit[-1]) * (unit + sign * last)

    def _half(self, center):
        return jnp.where(center[-1] < 0, -1.0, 1.0).astype(center.dtype)

    def _turned(self, start, end, x):
        """Return ``x - k (p + q) k<p + q, x>/(k + k^2 <p, q>) + 2 k q <p, x>``: the rotation that takes p to q."""
        k = self.curvature
        middle = start + end
        along = k * jnp.sum(middle * x) / (1.0 + k * jnp.sum(start * end))
        return x - along * middle + 2.0 * k * jnp.sum(start * x) * end

    @operation
    def project(self, x) -> jax.Array:
        """Return ``R x/|x|``; NaN for the zero vector."""
        scaled = x / jnp.max(jnp.abs(x))  # no overflow or underflow in the norm
        return self.radius * scaled / jnp.sqrt(jnp.sum(scaled**2))

    @operation
    def to_tangent(self, point, v) -> jax.Array:
        """Return ``v - k <p, v> p``."""
        return v - self.curvature * jnp.sum(point * v) * point

    @operation
    def retract(self, p, v) -> jax.Array:
        """Return ``R (p + v)/|p + v|``."""
        return self.project(p + v)

    @operation
    def riemannian_from_ambient(self, p, g) -> jax.Array:
        """Return the tangential part of g."""
        return self.to_tangent(p, g)

    @operation
    def admissible(self, x) -> jax.Array:
        """Return whether x is finite and nonzero."""
        return jnp.all(jnp.isfinite(x)) & jnp.any(x != 0)

    @operation
    def random_tangent(self, key, point) -> jax.Array:
        """Draw a standard normal vector of R^{d+1}, projected onto the tangent space."""
        return self.to_tangent(point, jax.random.normal(key, self.shape, real_dtype(point)))

    @operation
    def random_point(self, key) -> jax.Array:
        """Draw a uniform point."""
        return self.project(jax.random.normal(key, self.shape))

    @operation
    def log_det_exp(self, point, tangent) -> jax.Array:
        """Return ``(d-1) log(sin(t/R)/(t/R))``, minus infinity from t = pi R on."""
        return self._radial_log_det(self.curvature * jnp.sum(tangent**2))

    def volume_envelope(self, lower, upper) -> tuple[jax.Array, jax.Array]:
        """Return the tangent line at the middle: the log-determinant is radial and concave."""
        return tangent_line(lambda t: self._radial_log_det(self.curvature * t**2), lower, upper)

    def _radial_log_det(self, squared_angle: jax.Array) -> jax.Array:
        inside = squared_angle < math.pi**2
        sinc = sinc_sqrt(jnp.where(inside, squared_angle, 1.0))
        if self.dim == 1:
            return jnp.where(inside, jnp.zeros_like(squared_angle), -jnp.inf)
        return jnp.where(inside, (self.dim - 1) * jnp.log(sinc), -jnp.inf)

    def _angle(self, p, q):
        cosine = self.curvature * jnp.sum(p * q)
        perpendicular = q - cosine * p
        return perpendicular, self.curvature * jnp.sum(perpendicular**2), cosine


def _ratio_and_slope(cosine):
    """Return theta/sin(theta) and its derivative in the cosine, -(1 - theta cot(theta))/sin^2(theta).

    No quotient of small numbers, which would be anything where rounding makes a cosine larger than 1.
    """
    return jax.jvp(angle_over_sine_of_cosine, (cosine,), (jnp.ones_like(cosine),))
