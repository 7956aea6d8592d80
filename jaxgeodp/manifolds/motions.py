"""Rigid motions of space, poses: a rotation and a translation, SO(3) x R^3 with the product metric.

The distance is ``sqrt(angle^2 + |t - t'|^2 / L^2)``, L a public length that counts as much as a radian. All is that of
`Product(Rotations(), Euclidean(3))` with translations divided by L.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import positive_number
from jaxgeodp.manifolds.euclidean import Euclidean
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.manifolds.operations import check_shape, fact, operation
from jaxgeodp.manifolds.product import Product
from jaxgeodp.manifolds.rotations import Rotations

# A block whose columns are further from orthonormal holds a scale or a reflection, and is no rounded rotation.
_LARGEST_DEVIATION = 2e-3
_LAST_ROW = np.array([0.0, 0.0, 0.0, 1.0])


@dataclasses.dataclass(frozen=True)
class RigidMotions(Manifold):
    """Rotations with translations; points are matrices [R | t] of shape (3, 4), t in the unit of the data.

    The mean is the mean rotation beside the mean position. It is not the mean of screw motions, and it depends on which
    point of the body t is the position of: that point is public, and part of what a record means. Matrices (4, 4) with
    the last row (0, 0, 0, 1) stand for points, too.

    Args:
        length: L above 0, public: noise of one unit is a radian and L. About the spread of positions over that of
            angles, from public data.

    Raises:
        ValueError: ``length`` is not a finite number above 0.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxgeodp import RigidMotions
        >>> here = jnp.eye(3, 4)
        >>> float(RigidMotions(2.0).dist(here, here.at[:, 3].set(jnp.array([0.0, 3.0, 4.0]))))
        2.5
    """

    length: float

    dim = 6
    shape = (3, 4)
    homogeneous = True
    curvature_bounds = (0.0, 0.25)
    curvature_trace = 0.5
    ricci_bound = 0.0
    injectivity_radius = math.pi
    diameter = math.inf

    def __post_init__(self):
        positive_number("RigidMotions", "length", self.length)

    @functools.cached_property
    def _product(self) -> Product:
        return Product(Rotations(), Euclidean(3))

    def _flat(self, x):
        """Return a point or tangent vector as a vector of the product."""
        return jnp.concatenate([x[:, :3].reshape(9), x[:, 3] / self.length])

    def _matrix(self, vector):
        return jnp.concatenate([vector[:9].reshape(3, 3), self.length * vector[9:, None]], axis=1)

    def _of(self, name, *matrices):
        """Apply an operation of the product whose value is a point or a tangent vector."""
        return self._matrix(getattr(self._product, name)(*map(self._flat, matrices)))

    @fact
    def origin(self) -> np.ndarray:
        """Return the identity motion."""
        return np.eye(3, 4)

    def as_points(self, array):
        """Return matrices (4, 4) as [R | t]; NaN unless the last row is (0, 0, 0, 1)."""
        if array.shape[-2:] != (4, 4):
            return array
        usual = jnp.all(jnp.abs(array[..., 3, :] - _LAST_ROW) <= 1e-6, axis=-1)
        return jnp.where(usual[..., None, None], array[..., :3, :], jnp.nan)

    @operation
    def inner(self, point, u, v) -> jax.Array:
        """Return ``tr(u_R' v_R)/2 + u_t . v_t / L^2``."""
        return self._product.inner(*map(self._flat, (point, u, v)))

    @operation
    @override
    def exp(self, point, tangent):
        return self._of("exp", point, tangent)

    @operation
    @override
    def log(self, p, q):
        return self._of("log", p, q)

    @operation
    @override
    def squared_dist(self, p, q):
        return self._product.squared_dist(self._flat(p), self._flat(q))

    @operation
    @override
    def transport(self, p, q, tangent):
        return self._of("transport", p, q, tangent)

    @operation
    @override
    def log_moments(self, base, points, weights):
        total, square = self._product.log_moments(self._flat(base), jax.vmap(self._flat)(points), weights)
        return self._matrix(total), square

    @operation
    @override
    def mean_hessian(self, base, points, weights):
        return self._product.mean_hessian(self._flat(base), jax.vmap(self._flat)(points), weights)

    @operation
    @override
    def frame(self, point):
        return jax.vmap(self._matrix)(self._product.frame(self._flat(point)))

    def home(self, center) -> jax.Array:
        """Return the identity motion."""
        return jnp.eye(3, 4, dtype=center.dtype)

    @operation
    def to_home(self, center, point) -> jax.Array:
        """Return ``[R0'R | t - t0]``."""
        return self._of("to_home", center, point)

    @operation
    def from_home(self, center, point) -> jax.Array:
        """Return ``[R0 R | t + t0]``."""
        return self._of("from_home", center, point)

    @operation
    def project(self, x) -> jax.Array:
        """Project the rotation and keep the translation; NaN where the nearest rotation is not unique."""
        return self._of("project", x)

    @operation
    @override
    def deviation(self, x):
        return self._product.deviation(self._flat(x))

    def belongs(self, x, atol: float = 1e-6) -> jax.Array:
        """Return whether the 3 x 3 block is a rotation and the translation finite."""
        check_shape(self, "belongs: x", x)
        return self._product.belongs(self._flat(x), atol)

    @operation
    def admissible(self, x) -> jax.Array:
        """Return whether x is finite and its block a rotation up to rounding, without scale or reflection."""
        turns = Rotations().deviation(x[:, :3]) <= _LARGEST_DEVIATION
        return turns & self._product.admissible(self._flat(x))

    @operation
    @override
    def to_tangent(self, point, v):
        return self._of("to_tangent", point, v)

    @operation
    @override
    def random_tangent(self, key, point):
        return self._matrix(self._product.random_tangent(key, self._flat(point)))

    @operation
    @override
    def random_point(self, key):
        return self._matrix(self._product.random_point(key))

    @operation
    @override
    def log_det_exp(self, point, tangent):
        return self._product.log_det_exp(self._flat(point), self._flat(tangent))
