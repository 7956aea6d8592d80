"""Euclidean space R^d: the flat reference case, in which every formula must reduce to the textbook's."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import positive_integer
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.manifolds.newton import NewtonMoments
from jaxgeodp.manifolds.operations import fact, operation


class VectorSpace(Manifold):
    """R^dim with the standard inner product, whatever its vectors stand for; points have shape (dim,)."""

    homogeneous = True
    curvature_bounds = (0.0, 0.0)
    curvature_trace = 0.0
    injectivity_radius = math.inf

    @fact
    def shape(self) -> tuple[int, ...]:
        """(dim,)."""
        return (self.dim,)

    @fact
    def origin(self) -> np.ndarray:
        """Return the zero vector."""
        return np.zeros(self.dim)

    @operation
    def inner(self, point, u, v) -> jax.Array:
        """Return ``u . v``."""
        return jnp.sum(u * v)

    @operation
    def exp(self, point, tangent) -> jax.Array:
        """Return ``p + v``."""
        return point + tangent

    @operation
    def log(self, p, q) -> jax.Array:
        """Return ``q - p``."""
        return q - p

    @operation
    def transport(self, p, q, tangent) -> jax.Array:
        """Return the tangent vector unchanged (flat)."""
        return tangent

    @operation
    def log_moments(self, base, points, weights) -> tuple[jax.Array, jax.Array]:
        """Return ``(sum w (x_i - p), sum w |x_i - p|^2)``."""
        logs = points - base
        return weights @ logs, weights @ jnp.sum(logs**2, axis=-1)

    @operation
    def newton_moments(self, base, points, weights) -> NewtonMoments:
        """Use the Hessian of the squared distance, the identity."""
        total, square = self.log_moments(base, points, weights)
        return NewtonMoments(total, square, step=total, rate=0.0)

    def ambient_radius(self, center, radius):
        """Return r."""
        return radius

    def home(self, center) -> jax.Array:
        """Return the zero vector."""
        return jnp.zeros_like(center)

    @operation
    def to_home(self, center, point) -> jax.Array:
        """Return ``x - c``."""
        return point - center

    @operation
    def from_home(self, center, point) -> jax.Array:
        """Return ``y + c``."""
        return point + center

    @operation
    def project(self, x) -> jax.Array:
        """Return the array unchanged."""
        return x

    @operation
    def to_tangent(self, point, v) -> jax.Array:
        """Return the array unchanged."""
        return v

    @operation
    def frame(self, point) -> jax.Array:
        """Return the standard basis."""
        return jnp.eye(self.dim, dtype=real_dtype(point))

    @operation
    def log_det_exp(self, point, tangent) -> jax.Array:
        """Return zero."""
        return jnp.zeros((), real_dtype(point))


@dataclasses.dataclass(frozen=True)
class Euclidean(VectorSpace):
    """R^dim with the standard inner product; points have shape (dim,).

    Args:
        dim: d, at least 1.

    Raises:
        ValueError: ``dim`` is not a positive integer.
    """

    dim: int

    def __post_init__(self):
        positive_integer("Euclidean", "dim", self.dim, minimum=1)
