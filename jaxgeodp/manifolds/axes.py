"""Axes, directions without a sense: real projective space RP^d, whose points are unit vectors x that stand for -x, too.

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
        """The Ricci curvature, dim - 1."""
        return self.dim - 1.0

    @fact
    def shape(self) -> tuple[int, ...]:
        """(dim + 1,)."""
        return (self.dim + 1,)

    @fact
    def origin(self) -> np.ndarray:
        """The last coordinate axis."""
        return self._sphere.origin

    @fact
    def curvature_bounds(self) -> tuple[float, float]:
        """(1, 1); (0, 0) of lines in the plane, a circle of length pi."""
        return self._sphere.curvature_bounds

    @operation
    def inner(self, point, u, v) -> jax.Array:
        """``u . v``."""
        return jnp.sum(u * v)

    @operation
    def exp(self, point, tangent) -> jax.Array:
        """That of the sphere."""
        return self._sphere.exp(point, tangent)

    @operation
    def log(self, p, q) -> jax.Array:
        """That of the sphere to the nearer of q and -q; to q, where both are as near."""
        return self._sphere.log(p, _sign(p, q) * q)

    @operation
    def squared_dist(self, p, q) -> jax.Array:
        """The squared angle between lines."""
        return self._sphere.squared_dist(p, _sign(p, q) * q)

    @operation
    def transport(self, p, q, tangent) -> jax.Array:
        """That of the sphere to the nearer of q and -q, as a tangent vector at q."""
        sign = _sign(p, q)
        return sign * self._sphere.transport(p, sign * q, tangent)

    @operation
    def log_moments(self, base, points, weights) -> tuple[jax.Array, jax.Array]:
        """Those of the sphere for the nearer of x and -x."""
        return self._sphere.log_moments(base, _nearer(base, points), weights)

    @operation
    def newton_moments(self, base, points, weights) -> NewtonMoments:
        """Those of the sphere for the nearer of x and -x."""
        return self._sphere.newton_moments(base, _nearer(base, points), weights)

    @operation
    def mean_hessian(self, base, points, weights) -> jax.Array:
        """That of the sphere."""
        return self._sphere.mean_hessian(base, _nearer(base, points), weights)

    @operation
    def mean_start(self, points, weights) -> jax.Array:
        """Near the principal axis, the leading eigenvector of ``sum_i w_i x_i x_i'``: power steps, linear in dim."""
        return jax.lax.fori_loop(
            0, _POWER_STEPS, lambda _, x: self.project((weights * (points @ x)) @ points), heaviest(points, weights)
        )

    @operation
    def frame(self, point) -> jax.Array:
        """That of the sphere."""
        return self._sphere.frame(point)

    @fact
    def extrinsic_radius(self) -> float:
        """The length of a projector of rank 1, its trace taken off."""
        return math.sqrt(1.0 - 1.0 / (self.dim + 1.0))

    def extrinsic(self, point):
        """``x x' - 1/(d + 1)``, the projector."""
        return symmetric_vector(jnp.outer(point, point) - jnp.eye(self.dim + 1, dtype=point.dtype) / (self.dim + 1.0))

    def from_extrinsic(self, vector):
        """The eigenvector of the largest eigenvalue."""
        return jnp.linalg.eigh(symmetric_matrix(vector, self.dim + 1))[1][:, -1]

    def home(self, center) -> jax.Array:
        """The last coordinate axis."""
        return self._sphere.home(center)

    @operation
    def to_home(self, center, point) -> jax.Array:
        """The isometry of the sphere, which carries lines to lines."""
        return self._sphere.to_home(center, point)

    @operation
    def from_home(self, center, point) -> jax.Array:
        """That of the sphere."""
        return self._sphere.from_home(center, point)

    def aligned(self, point, x):
        """x or -x."""
        return _sign(point, x) * x

    @operation
    def project(self, x) -> jax.Array:
        """``x/|x|``; NaN for the zero vector."""
        return self._sphere.project(x)

    @operation
    def to_tangent(self, point, v) -> jax.Array:
        """``v - <p, v> p``."""
        return self._sphere.to_tangent(point, v)

    @operation
    def retract(self, p, v) -> jax.Array:
        """``(p + v)/|p + v|``."""
        return self._sphere.retract(p, v)

    @operation
    def riemannian_from_ambient(self, p, g) -> jax.Array:
        """The tangent part."""
        return self._sphere.to_tangent(p, g)

    @operation
    def admissible(self, x) -> jax.Array:
        """Finite and not zero."""
        return self._sphere.admissible(x)

    @operation
    def random_tangent(self, key, point) -> jax.Array:
        """A projected standard normal vector."""
        return self._sphere.random_tangent(key, point)

    @operation
    def random_point(self, key) -> jax.Array:
        """A uniform axis."""
        return self._sphere.random_point(key)

    @operation
    def log_det_exp(self, point, tangent) -> jax.Array:
        """``(d-1) log(sin(t)/t)``, minus infinity from t = pi/2 on."""
        squared = jnp.sum(tangent**2)
        return jnp.where(squared < self.diameter**2, self._log_det(jnp.minimum(squared, self.diameter**2)), -jnp.inf)

    def volume_envelope(self, lower, upper) -> tuple[jax.Array, jax.Array]:
        """The tangent at the middle: the log-determinant depends on the length alone and is concave."""
        if self.dim == 1:
            return jnp.zeros_like(lower), jnp.zeros_like(lower)
        # Beyond the diameter there is no volume; there the bound need not be followed.
        bounds = jnp.minimum(lower, self.diameter), jnp.minimum(upper, self.diameter)
        return tangent_line(lambda t: self._log_det(t**2), *bounds)

    def _log_det(self, squared):
        return (self.dim - 1) * jnp.log(sinc_sqrt(squared))


# Of means, whose steps go on from there.
_POWER_STEPS = 8


def _sign(p, q):
    """1 where q is as near to p as -q, or nearer; else -1."""
    cosine = jnp.sum(p * q)
    return jnp.where(cosine < 0, -1.0, 1.0).astype(cosine.dtype)


def _nearer(base, points):
    return jnp.where(points @ base < 0, -1.0, 1.0).astype(points.dtype)[:, None] * points
