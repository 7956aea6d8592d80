"""The public domain of a release: a geodesic ball, chosen without looking at the data."""

import dataclasses
import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxgeodp.blocks import map_in_blocks
from jaxgeodp.checks import InputError, not_in_a_program, positive_number
from jaxgeodp.compiling import seen_anew
from jaxgeodp.manifolds.manifold import Manifold

# How far from the manifold a centre may be measured, as `Manifold.belongs` says.
_CENTER_TOLERANCE = 1e-5
# A radius that only balls in which facts hold at any radius have.
_ANY = 1e30
# Bisections for the largest radius, where what is known of the manifold depends on the ball.
_HALVINGS = 40
# Up to this, it is rounding; a centre further off is moved to the manifold, where isometries are isometries.
_ROUNDING = 1e-14


class _SeenAnew:
    """Field that gives a new array object each time, so that JAX cannot take it for one of a user's program."""

    def __get__(self, ball, kind=None):
        if ball is None:
            raise AttributeError  # a field without a default
        return seen_anew(vars(ball)["center"])

    def __set__(self, ball, value):
        vars(ball)["center"] = value


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass(frozen=True, eq=False, init=False)
class GeodesicBall:
    """The closed ball of ``radius`` around ``center``; both are public.

    Assumption 1 of the sensitivity theorems (Reimherr, Bharath & Soto 2021) is
    ``radius < min(injectivity radius, pi / (2 sqrt(k_max))) / 2``, and any finite radius where k_max <= 0.

    A centre that is off the manifold by less than 1e-5 of its size, as written numbers are, is moved to it.

    Args:
        manifold: of the records. The ball has it with the facts that hold in the ball; see `Manifold.within`.
        center: a point of it, array-like of shape ``shape``, chosen without looking at the data; kept in float64.
        radius: r above 0, in units of the manifold's distance (an angle on spheres, for instance).

    Raises:
        ValueError: the centre is not a point of the manifold, or the radius not a finite number above 0.

    Example:
        >>> from jaxgeodp import GeodesicBall, Sphere
        >>> ball = GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.4)
        >>> ball.satisfies_assumption
        True
    """

    manifold: Manifold
    center: np.ndarray | jax.Array = _SeenAnew()  # pyright: ignore[reportAssignmentType]
    radius: float  # pyright: ignore[reportGeneralTypeIssues]

    def __init__(self, manifold: Manifold, center: ArrayLike | Sequence, radius: float):
        """Store the ball in float64; project a centre that is slightly off the manifold, refuse one farther off."""
        positive_number("GeodesicBall", "radius", radius)
        kind = complex if manifold.dtype_kind == "complex" else float
        try:
            given = np.asarray(center)
        except jax.errors.TracerArrayConversionError:
            raise not_in_a_program("GeodesicBall: its centre") from None
        # In double precision, whatever JAX's default is; and a ball may be made while another function is traced.
        with jax.enable_x64(True), jax.ensure_compile_time_eval():
            if given.dtype.kind in "US":
                raise InputError("GeodesicBall: center must be a point, such as manifold.origin, not a word.")
            points = manifold.as_points(given)
            points = points if points is given else manifold.project(jnp.asarray(points, kind))
            point = np.array(points, dtype=kind)  # a copy
            if point.shape != manifold.shape:
                raise InputError(
                    f"GeodesicBall: center must have shape {manifold.shape} on {manifold}, got {point.shape}."
                )
            deviation, belongs, projected = _placed(manifold, jnp.asarray(point))
            on_manifold = bool(belongs) and float(deviation) <= _CENTER_TOLERANCE
            if on_manifold and float(deviation) > _ROUNDING:
                point = np.array(projected)
        if not on_manifold:
            raise InputError(
                f"GeodesicBall: center is not a point of {manifold} to {_CENTER_TOLERANCE:g}, or exceeds double "
                "precision; project it first."
            )
        point.setflags(write=False)
        object.__setattr__(self, "manifold", manifold.within(point, float(radius)))
        object.__setattr__(self, "center", point)
        object.__setattr__(self, "radius", float(radius))

    @property
    def satisfies_assumption(self) -> bool:
        """Return whether Assumption 1 holds, that is, the radius is below `jaxgeodp.domains.assumption_limit`."""
        return self.radius < assumption_limit(self.manifold)

    @property
    def at_home(self) -> "GeodesicBall":
        """Return the ball of the same radius to which `Manifold.to_home` carries this one."""
        return self._replaced(self.manifold.home(jnp.asarray(self.center)))

    def to_home(self, x) -> jax.Array:
        """Return a point carried to where `at_home` lies; see `Manifold.to_home`."""
        return self.manifold.to_home(jnp.asarray(self.center, x.dtype), x)

    def from_home(self, x) -> jax.Array:
        """Return a point carried back from where `at_home` lies; the centre if double precision cannot hold it."""
        center = jnp.asarray(self.center, x.dtype)
        point = self.manifold.from_home(center, x)
        return jnp.where(jnp.all(jnp.isfinite(point)), point, center)

    def nearby(self, x) -> jax.Array:
        """Return the representative of a point that lies nearest the centre; unchanged if there is one only."""
        manifold, center = self.manifold, jnp.asarray(self.center, x.dtype)
        if manifold.of_values == manifold:
            return x
        return manifold.from_home(center, manifold.of_values.to_home(center, x))

    def distance(self, x) -> jax.Array:
        """Return the distance of a point from the centre, for any representative; see `Manifold.of_values`."""
        manifold, center = self.manifold.of_values, jnp.asarray(self.center, x.dtype)
        return manifold.dist(manifold.home(center), manifold.to_home(center, x))

    def contains(self, x) -> jax.Array:
        """Return whether a point lies in the ball; boolean array of shape ()."""
        home = self.manifold.home(jnp.asarray(self.center, x.dtype))
        return self.manifold.dist(home, self.to_home(x)) <= self.radius

    def clip(self, points: ArrayLike) -> jax.Array:
        """Map raw records into the ball, each on its own (so that adjacent data stay adjacent).

        A record outside is moved along its geodesic to the boundary; a record that is no point at all
        (NaN, a matrix that is not positive definite, coinciding landmarks) becomes the centre. Nothing
        is reported: whether a record was changed is private.

        Args:
            points: (n, \\*shape) or one point of shape ``shape``.

        Returns:
            Points of the ball, of the same shape; a clipped record stays inside the rim by a margin for rounding.

        Raises:
            ValueError: the shape does not fit the manifold.
        """
        return self._map(_clipped, points)

    def clip_to_home(self, points: ArrayLike) -> jax.Array:
        """Return `clip` carried into the ball `at_home`, where precision does not depend on the centre."""
        return self._map(_clipped_to_home, points)

    def pull_inside(self, point) -> jax.Array:
        """Return a point of the manifold, moved along its geodesic to the boundary if it is outside the ball."""
        center = jnp.asarray(self.center, point.dtype)
        return _pulled(self.manifold, center, point, self.radius)[0]

    def _map(self, function, points) -> jax.Array:
        points = self.manifold.as_points(jnp.asarray(points))
        points = points.astype(jnp.result_type(points, complex if self.manifold.dtype_kind == "complex" else float))
        shape = self.manifold.shape
        if points.shape != shape and (points.shape[1:] != shape or points.ndim != len(shape) + 1):
            raise InputError(f"GeodesicBall: points must have shape (n, *{shape}), got {points.shape}.")
        return function(self, points)

    def clipped_one(self, record: jax.Array) -> jax.Array:
        """Return `clip` of one record."""
        point = self._point(record)
        kept, unchanged = self._kept(self.to_home(point))
        return jnp.where(unchanged, point, self.from_home(kept))

    def clipped_to_home(self, record: jax.Array) -> jax.Array:
        """Return `clip_to_home` of one record."""
        return self._kept(self.to_home(self._point(record)))[0]

    def _point(self, record: jax.Array) -> jax.Array:
        """Return a record as a point; the centre if the record is invalid."""
        manifold = self.manifold
        center = jnp.asarray(self.center, record.dtype)
        valid = manifold.admissible(record)
        point = manifold.project(jnp.where(valid, record, center))
        return jnp.where(valid, manifold.confined(center, point), center)

    def _kept(self, point: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return a point clipped into the ball `at_home`, and whether it is the same.

        The measured distance of a point may be wrong by half the margin: what is measured within the other half is
        inside, as the theorems suppose, and nothing else passes.
        """
        manifold, margin = self.manifold, self._margin(point.dtype)
        home = manifold.home(jnp.asarray(self.center, point.dtype))
        moved, outside = _pulled(manifold, home, point, self.radius * (1.0 - margin))
        inside = manifold.dist(home, moved) <= self.radius * (1.0 - 0.5 * margin)
        return jnp.where(inside, moved, home), ~outside

    def _margin(self, dtype) -> jax.Array:
        """Return the relative margin of clipped records inside the rim: twice the error that a distance may have.

        Distances have the rounding of coordinates, which are of the size of the origin's; at distance r of it they and
        eigenvalues grow like exp(r times the growth of coordinates), their conditions like the square.
        """
        eps, manifold = float(jnp.finfo(dtype).eps), self.manifold
        size = float(np.linalg.norm(manifold.origin))
        bend = jnp.exp(2.0 * jnp.minimum(self.radius * manifold.coordinate_growth, 50.0))
        return 2e-9 + jnp.minimum(16.0 * eps * bend, 0.01) + jnp.minimum(16.0 * eps * size / self.radius, 0.5)

    def _replaced(self, center):
        return type(self).tree_unflatten(self.manifold, (center, self.radius))

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


# Called outside of a program these would be dozens of small ones, each compiled.
@jax.jit
def _clipped(ball, points):
    return ball.clipped_one(points) if points.shape == ball.manifold.shape else map_in_blocks(ball.clipped_one, points)


@jax.jit
def _clipped_to_home(ball, points):
    own = ball.clipped_to_home
    return own(points) if points.shape == ball.manifold.shape else map_in_blocks(own, points)


@functools.partial(jax.jit, static_argnums=0)
def _placed(manifold, point):
    """Return a point's deviation from the manifold, relative to its size, whether it belongs, and the projection."""
    return manifold.deviation(point), manifold.belongs(point, _CENTER_TOLERANCE), manifold.project(point)


def _pulled(
    manifold: Manifold, center: jax.Array, point: jax.Array, radius: float | jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return a point moved towards the centre until it is within the radius, and whether it was outside."""
    length = manifold.dist(center, point)
    outside = ~(length <= radius)
    factor = radius / jnp.where(outside, length, 1.0)
    return jnp.where(outside, manifold.exp(center, factor * manifold.log(center, point)), point), outside


def assumption_limit(manifold: Manifold, center: np.ndarray | jax.Array | None = None) -> float:
    """Return the supremum of radii that satisfy Assumption 1 (see `GeodesicBall`); infinite on Hadamard manifolds.

    That is min(injectivity radius, pi/(2 sqrt(k_max)))/2, with k_max the upper curvature bound.

    Args:
        manifold: of the ball.
        center: where facts depend on the place, the ball's: of radii for which they then hold. Not needed elsewhere.
    """
    if center is None:
        return _limit(manifold)
    if math.isinf(_limit(manifold.within(center, _ANY))):
        return math.inf
    if manifold.within(center, 0.0) == manifold.whole:
        return _limit(manifold)
    least, most = 0.0, 0.5 * math.pi
    for _ in range(_HALVINGS):
        middle = 0.5 * (least + most)
        fits = middle < _limit(manifold.within(center, middle))
        least, most = (middle, most) if fits else (least, middle)
    return least


def _limit(manifold) -> float:
    highest = manifold.curvature_bounds[1]
    quarter = math.pi / (2.0 * math.sqrt(highest)) if highest > 0 else math.inf
    return 0.5 * min(manifold.injectivity_radius, quarter)
