"""Matrices with a flat metric: the pullback of the Frobenius metric by a chart onto a vector space.

Everything about means, sensitivities and noise in flat space holds.
"""

import abc
import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import positive_integer
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.manifolds.newton import NewtonMoments
from jaxgeodp.manifolds.operations import fact, operation
from jaxgeodp.manifolds.spd import SPD


@dataclasses.dataclass(frozen=True)
class FlatMatrices(Manifold, abc.ABC):
    """Base of flat matrix manifolds; a subclass gives the chart onto matrices with the Frobenius norm."""

    size: int

    homogeneous = True
    curvature_bounds = (0.0, 0.0)
    curvature_trace = 0.0
    injectivity_radius = math.inf
    projects = False  # a matrix may have no nearest point

    def __post_init__(self):
        positive_integer(type(self).__name__, "size", self.size, minimum=1)

    @abc.abstractmethod
    def to_flat(self, point) -> jax.Array:
        """Return the chart's value at a point, a matrix (size, size)."""

    @abc.abstractmethod
    def from_flat(self, matrix) -> jax.Array:
        """Return the point with this chart value."""

    @abc.abstractmethod
    def flat_basis(self) -> np.ndarray:
        """Return an orthonormal basis (dim, size, size) of the vector space."""

    @fact
    def dim(self) -> int:
        """``size (size + 1) / 2``."""
        return self.size * (self.size + 1) // 2

    @fact
    def shape(self) -> tuple[int, ...]:
        """(size, size)."""
        return (self.size, self.size)

    @fact
    def origin(self) -> np.ndarray:
        """Return the identity matrix."""
        return np.eye(self.size)

    def _flat_tangent(self, point, tangent):
        return jax.jvp(self.to_flat, (point,), (tangent,))[1]

    def _tangent(self, flat, direction):
        return jax.jvp(self.from_flat, (flat,), (direction,))[1]

    @operation
    def inner(self, point, u, v) -> jax.Array:
        """Return the Frobenius inner product of the two vectors in the chart."""
        return jnp.sum(self._flat_tangent(point, u) * self._flat_tangent(point, v))

    @operation
    def exp(self, point, tangent) -> jax.Array:
        """Follow a straight line in the chart."""
        return self.from_flat(self.to_flat(point) + self._flat_tangent(point, tangent))

    @operation
    def log(self, p, q) -> jax.Array:
        """Return the difference in the chart."""
        start = self.to_flat(p)
        return self._tangent(start, self.to_flat(q) - start)

    @operation
    def squared_dist(self, p, q) -> jax.Array:
        """Return the squared Frobenius norm of the difference in the chart."""
        return jnp.sum((self.to_flat(q) - self.to_flat(p)) ** 2)

    @operation
    def transport(self, p, q, tangent) -> jax.Array:
        """Return the tangent vector with the same chart components at q."""
        return self._tangent(self.to_flat(q), self._flat_tangent(p, tangent))

    @operation
    def log_moments(self, base, points, weights) -> tuple[jax.Array, jax.Array]:
        """Return the moments, summed in the chart."""
        start = self.to_flat(base)
        differences = jax.vmap(self.to_flat)(points) - start
        total = jnp.tensordot(weights, differences, axes=1)
        return self._tangent(start, total), weights @ jnp.sum(differences**2, axis=(-2, -1))

    @operation
    def newton_moments(self, base, points, weights) -> NewtonMoments:
        """Use the Hessian of the squared distance, the identity."""
        total, square = self.log_moments(base, points, weights)
        return NewtonMoments(total, square, step=total, rate=0.0)

    def home(self, center) -> jax.Array:
        """Return the identity matrix."""
        return jnp.eye(self.size, dtype=center.dtype)

    @operation
    def to_home(self, center, point) -> jax.Array:
        """Translate in the chart."""
        return self.from_flat(self.to_flat(point) - self.to_flat(center))

    @operation
    def from_home(self, center, point) -> jax.Array:
        """Translate back in the chart."""
        return self.from_flat(self.to_flat(point) + self.to_flat(center))

    @operation
    @override
    def project(self, x) -> jax.Array:
        return SPD(self.size).project(x)

    @operation
    def to_tangent(self, point, v) -> jax.Array:
        """Return the symmetric part."""
        return 0.5 * (v + v.T)

    @operation
    @override
    def admissible(self, x) -> jax.Array:
        return SPD(self.size).admissible(x)

    def free_coordinates(self, x):
        """Return the lower triangle."""
        return x[jnp.tril_indices(self.size)]

    @operation
    def frame(self, point) -> jax.Array:
        """Return the basis of the vector space, pulled back to the point."""
        flat = self.to_flat(jax.lax.stop_gradient(point))
        basis = jnp.asarray(self.flat_basis(), flat.dtype)
        return jax.vmap(lambda direction: self._tangent(flat, direction))(basis)

    @operation
    def random_tangent(self, key, point) -> jax.Array:
        """Draw a vector that is standard normal in the chart."""
        normal = jax.random.normal(key, (self.dim,), real_dtype(point))
        direction = jnp.tensordot(normal, jnp.asarray(self.flat_basis(), normal.dtype), axes=1)
        return self._tangent(self.to_flat(point), direction)

    @operation
    def log_det_exp(self, point, tangent) -> jax.Array:
        """Return zero."""
        return jnp.zeros((), real_dtype(point))
