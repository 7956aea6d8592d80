"""The public domain of a release: a geodesic ball, chosen without looking at the data."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.blocks import map_in_blocks
from jaxgeodp.checks import InputError, positive_number
from jaxgeodp.manifolds.manifold import Manifold


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass(frozen=True, eq=False)
class GeodesicBall:
    """The closed ball of ``radius`` around ``center``; both are public.

    Assumption 1 of the sensitivity theorems (Reimherr, Bharath & Soto 2021) is
    ``radius < min(injectivity radius, pi / (2 sqrt(k_max))) / 2``, and any finite radius where k_max <= 0.

    Raises:
        ValueError: the centre is not a point of the manifold, or the radius not a finite number above 0.

    Example:
        >>> from jaxgeodp import GeodesicBall, Sphere
        >>> ball = GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.4)
        >>> ball.satisfies_assumption
        True
    """

    manifold: Manifold
    center: jax.Array
    radius: float

    def __post_init__(self):
        positive_number("GeodesicBall", "radius", self.radius)
        kind = complex if self.manifold.dtype_kind == "complex" else float
        # Kept as a host array in double precision, whatever JAX's default precision is.
        center = np.asarray(self.center, dtype=kind)
        if center.shape != self.manifold.shape:
            raise InputError(
                f"GeodesicBall: center must have shape {self.manifold.shape} on {self.manifold}, got {center.shape}."
            )
        with jax.ensure_compile_time_eval():  # a ball may be made while another function is traced
            on_manifold = bool(self.manifold.belongs(jnp.asarray(center), 1e-5))
        if not on_manifold:
            raise InputError(f"GeodesicBall: center is not a point of {self.manifold}; project it first.")
        object.__setattr__(self, "center", center)
        object.__setattr__(self, "radius", float(self.radius))

    @property
    def satisfies_assumption(self) -> bool:
        """Whether Assumption 1 holds."""
        return self.radius < assumption_limit(self.manifold)

    def contains(self, x):
        """Whether a point lies in the ball; boolean array of shape ()."""
        return self.manifold.dist(jnp.asarray(self.center, x.dtype), x) <= self.radius

    def clip(self, points):
        """Map raw records into the ball, each on its own (so that adjacent data stay adjacent).

        A record outside is moved along its geodesic to the boundary; a record that is no point at all
        (NaN, a matrix that is not positive definite, coinciding landmarks) becomes the centre. Nothing
        is reported: whether a record was changed is private.

        Args:
            points: (n, \\*shape) or one point of shape ``shape``.

        Raises:
            ValueError: the shape does not fit the manifold.
        """
        points = jnp.asarray(points)
        points = points.astype(jnp.result_type(points, complex if self.manifold.dtype_kind == "complex" else float))
        shape = self.manifold.shape
        if points.shape == shape:
            return self._clip_one(points)
        if points.shape[1:] != shape or points.ndim != len(shape) + 1:
            raise InputError(f"GeodesicBall: points must have shape (n, *{shape}), got {points.shape}.")
        return map_in_blocks(self._clip_one, points)

    def pull_inside(self, point):
        """A point of the manifold, moved along its geodesic to the boundary if it is outside the ball."""
        center = jnp.asarray(self.center, point.dtype)
        length = self.manifold.dist(center, point)
        outside = ~(length <= self.radius)
        factor = self.radius / jnp.where(outside, length, 1.0)
        return jnp.where(outside, self.manifold.exp(center, factor * self.manifold.log(center, point)), point)

    def _clip_one(self, record):
        manifold = self.manifold
        center = jnp.asarray(self.center, record.dtype)
        valid = manifold.admissible(record)
        point = jnp.where(valid, manifold.project(jnp.where(valid, record, center)), center)
        # A record so extreme that its logarithm loses its digits lands near the boundary, not on it: pull twice, and
        # let nothing pass that is not measured inside.
        clipped = self.pull_inside(self.pull_inside(point))
        slack = 1.0 + max(1e-9, 1e3 * float(jnp.finfo(record.dtype).eps))
        return jnp.where(manifold.dist(center, clipped) <= self.radius * slack, clipped, center)

    def tree_flatten(self):
        """Centre and radius are leaves, so that programs serve all balls; the manifold is static."""
        return (self.center, self.radius), self.manifold

    @classmethod
    def tree_unflatten(cls, manifold, leaves):
        """Rebuild without checks (the leaves may be tracers)."""
        ball = object.__new__(cls)
        for field, value in zip(("manifold", "center", "radius"), (manifold, *leaves), strict=True):
            object.__setattr__(ball, field, value)
        return ball


def assumption_limit(manifold: Manifold) -> float:
    """The supremum of radii that satisfy Assumption 1; infinite on Hadamard manifolds."""
    highest = manifold.curvature_bounds[1]
    quarter = math.pi / (2.0 * math.sqrt(highest)) if highest > 0 else math.inf
    return 0.5 * min(manifold.injectivity_radius, quarter)
