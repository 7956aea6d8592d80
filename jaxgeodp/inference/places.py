"""What records are compared with: a public point, or a public geodesic (docs/mathematics.md, section 18)."""

import abc
import dataclasses
import functools
import math
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.points_in_ball import PointsInBall
from jaxgeodp.nested_lists import to_lists
from jaxgeodp.pytrees import Pytree


class Place(Pytree, abc.ABC):
    """Map each record to a vector of numbers; public. A subclass is a frozen dataclass of arrays."""

    @abc.abstractmethod
    def checked(self, ball: GeodesicBall) -> "Place":
        """Return the place with its arrays in the manifold's dtype.

        Raises:
            ValueError: it is of another manifold, or not in the ball where it must be.
        """

    @abc.abstractmethod
    def vector_length(self, dim: int) -> int:
        """Return how many numbers a record's vector has."""

    @abc.abstractmethod
    def domain(self, ball: GeodesicBall) -> PointsInBall:
        """Return the domain of the records."""

    @abc.abstractmethod
    def vectors(self, ball: GeodesicBall, records) -> jax.Array:
        """Return one vector for each record, (n, m); it is traced."""

    @abc.abstractmethod
    def reaches(self, ball: GeodesicBall) -> tuple[float, float]:
        """Return the least and the largest length of a vector."""

    @abc.abstractmethod
    def within(self, vectors: jax.Array, farthest: Any) -> jax.Array:
        """Return the vectors, made finite and no longer than `reaches`, whatever records and rounding are."""

    @abc.abstractmethod
    def described(self, ball: GeodesicBall) -> dict:
        """Return the entries of a release record."""


@final
@dataclasses.dataclass(frozen=True, eq=False)
class AtPoint(Place):
    """The vector of a record is its logarithm, in an orthonormal frame.

    Attributes:
        point: of the ball.
        frame: there, (dim, \\*shape): a part of the place, as two programs may find two frames.
    """

    point: Any
    frame: Any

    @override
    def checked(self, ball):
        point = _near(ball, GeodesicBall(ball.manifold, self.point, ball.radius).center)
        place = AtPoint(point, _frame_of(ball.manifold, point, self.frame))
        if not place._away(ball) <= ball.radius * (1.0 + 5e-7):
            raise InputError("SpreadMechanism: about must lie in the ball.")
        return place

    def vector_length(self, dim):
        """Return one number for each dimension."""
        return dim

    def domain(self, ball):
        """Return the domain of points in the ball."""
        return PointsInBall(ball, ball.manifold.shape)

    def vectors(self, ball, records):
        """Return the coordinates of the logarithms of records, clipped into the ball: (n, d)."""
        manifold = ball.manifold
        points = ball.clip(records)
        about, frame = (jnp.asarray(own, points.dtype) for own in (self.point, self.frame))
        return jax.vmap(lambda x: manifold.coordinates(about, manifold.log(about, x), frame))(points)

    def reaches(self, ball):
        """Return the least and largest possible distance of a record from the point."""
        away = self._away(ball)
        return max(away - ball.radius, 0.0), away + ball.radius

    def within(self, vectors, farthest):
        """Return the vectors shortened to ``farthest``; non-finite ones become 0, as in integers."""
        lengths = jnp.linalg.norm(vectors, axis=1, keepdims=True)
        factors = jnp.minimum(1.0, farthest / jnp.maximum(lengths, farthest))
        return jnp.asarray(jnp.where(jnp.isfinite(lengths), factors * vectors, 0.0))

    def described(self, ball):
        """Return the point and its frame."""
        return {"about": to_lists(self.point), "frame": to_lists(self.frame)}

    def _away(self, ball):
        # Public, also where a density is traced.
        with jax.enable_x64(True), jax.ensure_compile_time_eval():
            away = float(_away(ball, jnp.asarray(self.point)))
        return away if math.isnan(away) else min(away, ball.radius * (1.0 + 1e-6))


@final
@dataclasses.dataclass(frozen=True, eq=False)
class AlongGeodesic(Place):
    """Map a time and a point to s = 2 time - 1 and the residual, transported to the geodesic's middle.

    At time t the geodesic is at exp_middle((2t - 1) velocity), for t from 0 to 1. The residual is the logarithm of the
    point there, in units of ``reach``; a longer one is shortened to 1.

    Attributes:
        middle: where the geodesic is at t = 1/2.
        velocity: tangent vector there: half of the way from t = 0 to t = 1.
        frame: at the middle, (dim, \\*shape); see `AtPoint`.
        reach: length of residuals that count in full.
    """

    middle: Any
    velocity: Any
    frame: Any
    reach: Any

    @override
    def checked(self, ball):
        middle = _near(ball, GeodesicBall(ball.manifold, self.middle, ball.radius).center)
        velocity = np.asarray(self.velocity, middle.dtype)
        if velocity.shape != middle.shape or not np.all(np.isfinite(velocity)):
            raise InputError(f"AlongGeodesic: velocity must be a tangent vector of shape {middle.shape}.")
        if not 0.0 < self.reach < np.inf:
            raise InputError(f"AlongGeodesic: reach must be finite and above 0, got {self.reach!r}.")
        return AlongGeodesic(middle, velocity, _frame_of(ball.manifold, middle, self.frame), float(self.reach))

    def vector_length(self, dim):
        """Return ``dim + 1``: s and the residual's coordinates."""
        return dim + 1

    def domain(self, ball):
        """Return the domain of records that hold a time and a point's numbers."""
        return PointsInBall(ball, (1 + int(np.prod(ball.manifold.shape)),), has_summaries=False)

    def vectors(self, ball, records):
        """Return s and the coordinates of the residual, (n, 1 + d)."""
        manifold = ball.manifold
        times = jnp.nan_to_num(jnp.real(records[:, 0]), nan=0.5)
        s = 2.0 * jnp.clip(times, 0.0, 1.0) - 1.0
        points = ball.clip(records[:, 1:].reshape(-1, *manifold.shape))
        middle, velocity, frame = (jnp.asarray(x, points.dtype) for x in (self.middle, self.velocity, self.frame))

        def one(s, x):
            there = manifold.project(manifold.exp(middle, s.astype(velocity.dtype) * velocity))
            carried = manifold.transport(there, middle, manifold.log(there, x))
            return manifold.coordinates(middle, carried, frame) / self.reach

        residuals = jax.vmap(one)(s, points)
        lengths = jnp.linalg.norm(residuals, axis=1, keepdims=True)
        shortened = jnp.asarray(jnp.where(jnp.isfinite(lengths), residuals / jnp.maximum(lengths, 1.0), 0.0))
        return jnp.concatenate([s[:, None], shortened], axis=1)

    def reaches(self, ball):
        """Return 0 and 1, in units of ``reach``."""
        return 0.0, 1.0

    def within(self, vectors, farthest):
        """Return the vectors unchanged: `vectors` has already brought times and residuals into their ranges."""
        return vectors

    def described(self, ball):
        """Return the geodesic, the frame at its middle, and the reach."""
        geodesic = {"middle": to_lists(self.middle), "velocity": to_lists(self.velocity), "reach": self.reach}
        return {"geodesic": geodesic, "frame": to_lists(self.frame)}


def frame_at(manifold, point) -> np.ndarray:
    """Return an orthonormal frame of the tangent space at a point, in double precision."""
    with jax.enable_x64(True):
        return np.asarray(_framed(manifold, jnp.asarray(point)))


def _frame_of(manifold, point, frame) -> np.ndarray:
    """Return a frame as an array of the point's kind; its shape alone is checked."""
    own = np.asarray(frame, np.asarray(point).dtype)
    if own.shape != (manifold.dim, *manifold.shape):
        raise InputError(f"SpreadMechanism: frame must have shape {(manifold.dim, *manifold.shape)}, got {own.shape}.")
    return own


def _near(ball, point) -> np.ndarray:
    """Return the representative of a point that lies nearest the ball's centre."""
    if ball.manifold.of_values == ball.manifold:
        return point
    with jax.enable_x64(True):
        return np.asarray(ball.nearby(jnp.asarray(np.asarray(point))))


@jax.jit
def _away(ball, point):
    """Return the distance of a point from the centre."""
    return ball.distance(point)


@functools.partial(jax.jit, static_argnums=0)
def _framed(manifold, about):
    return manifold.frame(about)
