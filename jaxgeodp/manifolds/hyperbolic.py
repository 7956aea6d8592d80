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
from jaxgeodp.manifolds.manifold import Manifold, operation, real_dtype
from jaxgeodp.manifolds.radial import chord


@dataclasses.dataclass(frozen=True)
class Hyperbolic(Manifold):
    """Hyperbolic space of dimension ``dim``; points have shape (dim + 1,), the first coordinate positive.

    ``project`` keeps the last ``dim`` coordinates and computes the first: any finite record gives a point.

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

    @property
    def curvature_trace(self):
        """The Ricci curvature, (dim - 1) times the absolute curvature."""
        return (self.dim - 1) * -self.curvature

    @property
    def shape(self):
        """(dim + 1,)."""
        return (self.dim + 1,)

    @property
    def radius(self) -> float:
        """R = 1/sqrt|curvature|."""
        return 1.0 / math.sqrt(-self.curvature)

    @property
    def origin(self):
        """(R, 0, ..., 0)."""
        return np.append(self.radius, np.zeros(self.dim))

    @property
    def curvature_bounds(self):
        """(k, k); (0, 0) for dimension 1, a line."""
        k = float(self.curvature) if self.dim > 1 else 0.0
        return (k, k)

    @operation
    def inner(self, point, u, v):
        """``-u_0 v_0 + u_1 v_1 + ... + u_d v_d``."""
        return jnp.sum(u * v) - 2.0 * u[0] * v[0]

    @operation
    def exp(self, point, tangent):
        """``cosh(|v|/R) p + R sinh(|v|/R) v/|v|``."""
        squared = self.curvature * self.inner(point, tangent, tangent)
        return cos_sqrt(squared) * point + sinc_sqrt(squared) * tangent

    @operation
    def log(self, p, q):
        """``(t/R)/sinh(t/R) (q - cosh(t/R) p)``."""
        half = self._half_sinh_squared(p, q)
        return self.to_tangent(p, _angle_over_sinh(half) * ((q - p) - 2.0 * half * p))

    @operation
    def squared_dist(self, p, q):
        """``4 R^2 arsinh(|q - p|/2R)^2``."""
        half = self._half_sinh_squared(p, q)
        return -4.0 / self.curvature * half * arcsinhc_sqrt(half) ** 2

    @operation
    def transport(self, p, q, tangent):
        """``v - k <q, v> / (1 + k <p, q>) (p + q)``."""
        k = self.curvature
        return tangent - k * self.inner(p, q, tangent) / (1.0 + k * self.inner(p, p, q)) * (p + q)

    @operation
    def log_moments(self, base, points, weights):
        """Two matrix-vector products: ``points @ (G p)`` for the cosh, then ``coefficients @ points``."""
        cosh = self.curvature * (points @ base.at[0].multiply(-1.0))
        half = 0.5 * (cosh - 1.0)
        ratio = _angle_over_sinh(half)
        squares = -4.0 / self.curvature * half * arcsinhc_sqrt(half) ** 2
        return self.to_tangent(base, (weights * ratio) @ points), weights @ squares

    @operation
    def project(self, x):
        """``(sqrt(R^2 + x_1^2 + ... + x_d^2), x_1, ..., x_d)``."""
        return x.at[0].set(jnp.sqrt(self.radius**2 + jnp.sum(x[1:] ** 2)))

    @operation
    def to_tangent(self, point, v):
        """``v - k <p, v> p``."""
        return v - self.curvature * self.inner(point, point, v) * point

    @operation
    def frame(self, point):
        """The last ``dim`` axes at the origin, transported."""
        axes = jnp.eye(self.dim + 1, dtype=point.dtype)[1:]
        return jax.vmap(lambda axis: self._from_origin(point, axis))(jax.lax.stop_gradient(axes))

    @operation
    def random_tangent(self, key, point):
        """A standard normal vector at the origin, transported."""
        normal = jax.random.normal(key, (self.dim,), real_dtype(point))
        return self._from_origin(point, jnp.concatenate([jnp.zeros(1, normal.dtype), normal]))

    @operation
    def log_det_exp(self, point, tangent):
        """``(d-1) log(sinh(t/R)/(t/R))``."""
        return self._radial_log_det(-self.curvature * self.inner(point, tangent, tangent))

    def volume_envelope(self, lower, upper):
        """The chord, as the log-determinant depends on the length alone and is convex; the slope at infinity."""
        return chord(lambda t: self._radial_log_det(-self.curvature * t**2), lower, upper, self.volume_growth)

    def _radial_log_det(self, squared):
        return (self.dim - 1) * log_sinhc_sqrt(jnp.maximum(squared, 0.0))

    def _half_sinh_squared(self, p, q):
        """sinh(t/2R)^2; rounding may leave it slightly negative, which its functions do not mind."""
        return -0.25 * self.curvature * self.inner(p, q - p, q - p)

    def _from_origin(self, point, axis):
        return self.transport(jnp.asarray(self.origin, point.dtype), point, axis)


def _angle_over_sinh(half):
    """``a/sinh(a)`` from ``sinh(a/2)^2``."""
    return arcsinhc_sqrt(half) / jnp.sqrt(1.0 + half)
