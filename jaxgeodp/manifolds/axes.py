"""Axes: real projective space RP^d, whose points are unit vectors x with x and -x identified.

Near a point it is the sphere: with s the sign of ``p . q``, formulas of the sphere for p and s q hold up to the cut
locus, the axes at right angles to p.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import positive_integer
from jaxgeodp.manifolds.analytic import sinc_sqrt
from jaxgeodp.manifolds.defaults import heaviest
from jaxgeodp.manifolds.hermitian import symmetric_matrix, symmetric_vector
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.manifolds.newton import NewtonMoments
from jaxgeodp.manifolds.operations import fact, operation
from jaxgeodp.manifolds.radial import tangent_line
from jaxgeodp.manifolds.sphere import Sphere


@dataclasses.dataclass(frozen=True)
class Axes(Manifold):
    """Lines through the origin of R^(dim + 1); points are unit vectors (dim + 1,), and x and -x are one point.

    The distance is the angle between lines, at most pi/2. Data records are vectors: any finite one but zero is scaled
    to length 1 by ``project``. A tangent vector v at p is -v at -p. The same space as ``Grassmann(dim + 1, 1)``.

    Args:
        dim: d, at least 1: 2 for lines in space, 1 for lines in the plane.

    Raises:
        ValueError: ``dim`` is not a positive integer.
    """

    dim: int

    homogeneous = True
    injectivity_radius = math.pi / 2
    diameter = math.pi / 2

    def __post_init__(self):
        positive_integer("Axes", "dim", self.dim, minimum=1)

    @functools.cached_property
    def _sphere(self) -> Sphere:
        return Sphere(self.dim)

    @fact
    def curvature_trace(self) -> float:
        """Return the Ricci curvature, dim - 1."""
        return self.dim - 1.0

    @fact
    def shape(self) -> tuple[int, ...]:
        """(dim + 1,)."""
        return (self.dim + 1,)

    @fact
    def origin(self) -> np.ndarray:
        """Return the last coordinate axis."""
        return self._sphere.origin

    @fact
    def curvature_bounds(self) -> tuple[float, float]:
        """(1, 1); (0, 0) in dimension 1, a circle of length pi."""
        return self._sphere.curvature_bounds

    @operation
    def inner(self, point, u, v) -> jax.Array:
        """Return ``u . v``."""
        return jnp.sum(u * v)

    @operation
    def exp(self, point, tangent) -> jax.Array:
        """Return the exponential of the sphere."""
        return self._sphere.exp(point, tangent)

    @operation
    def log(self, p, q) -> jax.Array:
        """Return the sphere's logarithm of the nearer of q and -q; of q in a tie."""
        return self._sphere.log(p, _sign(p, q) * q)

    @operation
    def squared_dist(self, p, q) -> jax.Array:
        """Return the squared angle between the lines."""
        return self._sphere.squared_dist(p, _sign(p, q) * q)

    @operation
    def transport(self, p, q, tangent) -> jax.Array:
        """Return the sphere's transport to the nearer of q and -q, as a tangent vector at q."""
        sign = _sign(p, q)
        return sign * self._sphere.transport(p, sign * q, tangent)

    @operation
    def log_moments(self, base, points, weights) -> tuple[jax.Array, jax.Array]:
        """Return the sphere's moments, with x or -x for each point, whichever is nearer."""
        return self._sphere.log_moments(base, _nearer(base, points), weights)

    @operation
    def newton_moments(self, base, points, weights) -> NewtonMoments:
        """Return the sphere's Newton moments, with x or -x for each point, whichever is nearer."""
        return self._sphere.newton_moments(base, _nearer(base, points), weights)

    @operation
    def mean_hessian(self, base, points, weights) -> jax.Array:
        """Return the sphere's Hessian, with x or -x for each point, whichever is nearer."""
        return self._sphere.mean_hessian(base, _nearer(base, points), weights)

    @operation
    def mean_start(self, points, weights) -> jax.Array:
        """Approximate the leading eigenvector of ``sum_i w_i x_i x_i'`` by power steps, of cost linear in dim."""
        return jax.lax.fori_loop(
            0, _POWER_STEPS, lambda _, x: self.project((weights * (points @ x)) @ points), heaviest(points, weights)
        )

    @operation
    def frame(self, point) -> jax.Array:
        """Return the tangent basis of the sphere."""
        return self._sphere.frame(point)

    @fact
    def extrinsic_radius(self) -> float:
        """Frobenius norm of the traceless rank-1 projector."""
        return math.sqrt(1.0 - 1.0 / (self.dim + 1.0))

    def extrinsic(self, point):
        """Return the traceless projector ``x x' - 1/(d + 1)`` as a vector."""
        return symmetric_vector(jnp.outer(point, point) - jnp.eye(self.dim + 1, dtype=point.dtype) / (self.dim + 1.0))

    def from_extrinsic(self, vector):
        """Return the eigenvector of the largest eigenvalue."""
        return jnp.linalg.eigh(symmetric_matrix(vector, self.dim + 1))[1][:, -1]

    def home(self, center) -> jax.Array:
        """Return the last coordinate axis."""
        return self._sphere.home(center)

    @operation
    def to_home(self, center, point) -> jax.Array:
        """Apply the sphere's isometry, which carries lines to lines."""
        return self._sphere.to_home(center, point)

    @operation
    def from_home(self, center, point) -> jax.Array:
        """Apply the inverse of `to_home`."""
        return self._sphere.from_home(center, point)

    def aligned(self, point, x):
        """Return x or -x, whichever is nearer to ``point``."""
        return _sign(point, x) * x

    @operation
    def project(self, x) -> jax.Array:
        """Return ``x/|x|``; NaN for the zero vector."""
        return self._sphere.project(x)

    @operation
    def to_tangent(self, point, v) -> jax.Array:
        """Return ``v - <p, v> p``."""
        return self._sphere.to_tangent(point, v)

    @operation
    def retract(self, p, v) -> jax.Array:
        """Return ``(p + v)/|p + v|``."""
        return self._sphere.retract(p, v)

    @operation
    def riemannian_from_ambient(self, p, g) -> jax.Array:
        """Return the tangential part of g."""
        return self._sphere.to_tangent(p, g)

    @operation
    def admissible(self, x) -> jax.Array:
        """Return whether x is finite and nonzero."""
        return self._sphere.admissible(x)

    @operation
    def random_tangent(self, key, point) -> jax.Array:
        """Draw a standard normal vector, projected onto the tangent space."""
        return self._sphere.random_tangent(key, point)

    @operation
    def random_point(self, key) -> jax.Array:
        """Draw a uniform axis."""
        return self._sphere.random_point(key)

    @operation
    def log_det_exp(self, point, tangent) -> jax.Array:
        """Return ``(d-1) log(sin(t)/t)``, minus infinity from t = pi/2 on."""
        squared = jnp.sum(tangent**2)
        return jnp.where(squared < self.diameter**2, self._log_det(jnp.minimum(squared, self.diameter**2)), -jnp.inf)

    def volume_envelope(self, lower, upper) -> tuple[jax.Array, jax.Array]:
        """Return the tangent line at the middle: the log-determinant is radial and concave."""
        if self.dim == 1:
            return jnp.zeros_like(lower), jnp.zeros_like(lower)
        # Beyond the diameter there is no volume; there the bound need not be followed.
        bounds = jnp.minimum(lower, self.diameter), jnp.minimum(upper, self.diameter)
        return tangent_line(lambda t: self._log_det(t**2), *bounds)

    def _log_det(self, squared):
        return (self.dim - 1) * jnp.log(sinc_sqrt(squared))


# Power steps for the start of a mean, which is refined later.
_POWER_STEPS = 8


def _sign(p, q):
    """Return 1 where q is at least as near to p as -q, else -1."""
    cosine = jnp.sum(p * q)
    return jnp.where(cosine < 0, -1.0, 1.0).astype(cosine.dtype)


def _nearer(base, points):
    return jnp.where(points @ base < 0, -1.0, 1.0).astype(points.dtype)[:, None] * points
