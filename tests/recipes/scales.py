"""Vectors of positive numbers, compared by their ratios."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import positive_integer
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.manifolds.operations import fact


@dataclasses.dataclass(frozen=True)
class Scales(Manifold):
    """Points (dim,) above 0; the distance is that of their logarithms.

    Args:
        dim: at least 1.
    """

    dim: int

    homogeneous = True
    curvature_bounds = (0.0, 0.0)
    injectivity_radius = math.inf

    def __post_init__(self):
        positive_integer("Scales", "dim", self.dim, minimum=1)

    @fact
    def shape(self):
        return (self.dim,)

    @fact
    def origin(self):
        return np.ones(self.dim)

    def inner(self, point, u, v):
        return jnp.sum(u * v / point**2)

    def exp(self, point, tangent):
        return point * jnp.exp(tangent / point)

    def log(self, p, q):
        return p * jnp.log(q / p)

    def log_det_exp(self, point, tangent):
        return jnp.zeros((), point.dtype)

    def project(self, x):
        return jnp.where(x > 0, x, jnp.nan)

    def to_tangent(self, point, v):
        return v

    def home(self, center):
        return jnp.ones_like(center)

    def to_home(self, center, point):
        return point / center

    def from_home(self, center, point):
        return point * center
