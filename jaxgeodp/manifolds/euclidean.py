"""Euclidean space R^d: the flat reference case, in which every formula must reduce to the textbook's."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import positive_integer
from jaxgeodp.manifolds.manifold import Manifold, operation, real_dtype


@dataclasses.dataclass(frozen=True)
class Euclidean(Manifold):
    """R^dim with the standard inner product; points have shape (dim,).

    Raises:
        ValueError: ``dim`` is not a positive integer.
    """

    dim: int

    homogeneous = True
    curvature_bounds = (0.0, 0.0)
    curvature_trace = 0.0
    injectivity_radius = math.inf

    def __post_init__(self):
        positive_integer("Euclidean", "dim", self.dim, minimum=1)

    @property
    def shape(self):
        """(dim,)."""
        return (self.dim,)

    @property
    def origin(self):
        """The zero vector."""
        return np.zeros(self.dim)

    @operation
    def inner(self, point, u, v):
        """``u . v``."""
        return jnp.sum(u * v)

    @operation
    def exp(self, point, tangent):
        """``p + v``."""
        return point + tangent

    @operation
    def log(self, p, q):
        """``q - p``."""
        return q - p

    @operation
    def transport(self, p, q, tangent):
        """The identity."""
        return tangent

    @operation
    def log_moments(self, base, points, weights):
        """``(sum w (x_i - p), sum w |x_i - p|^2)``."""
        logs = points - base
        return weights @ logs, weights @ jnp.sum(logs**2, axis=-1)

    @operation
    def newton_moments(self, base, points, weights):
        """The Hessian is the identity."""
        total, square = self.log_moments(base, points, weights)
        return total, square, total, 0.0

    def ambient_radius(self, center, radius):
        """r."""
        return radius

    def home(self, center):
        """The zero vector."""
        return jnp.zeros_like(center)

    @operation
    def to_home(self, center, point):
        """``x - c``."""
        return point - center

    @operation
    def from_home(self, center, point):
        """``y + c``."""
        return point + center

    @operation
    def project(self, x):
        """The identity."""
        return x

    @operation
    def to_tangent(self, point, v):
        """The identity."""
        return v

    @operation
    def frame(self, point):
        """The standard basis."""
        return jnp.eye(self.dim, dtype=real_dtype(point))

    @operation
    def log_det_exp(self, point, tangent):
        """Zero."""
        return jnp.zeros((), real_dtype(point))
