"""The mean of records in a public ellipsoid of the tangent space (docs/mathematics.md, Theorem Y)."""

import dataclasses
import functools
import math
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.blocks import sum_in_blocks
from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.shape import LARGEST_CONDITION, Shape, carried_vectors
from jaxgeodp.manifolds.manifold import real_dtype
from jaxgeodp.mechanisms.tangent_vectors import LARGEST_REACH, MeanOfVectors, framed
from jaxgeodp.pytrees import Pytree
from jaxgeodp.releases.encoding import shortened
from jaxgeodp.releases.states import digest_of_public
from jaxgeodp.statistics.records import points_and_weights

# How far the point may lie from the ball's centre, relative to the radius.
_TOLERANCE = 1e-9
# How far vectors may be from tangent ones, relative to the largest number: as written numbers are.
_WRITTEN = 1e-6
# Records are clipped where logarithms end, and no nearer than so many radii where they do not.
_INSIDE, _FAR = 0.999, 1e6
# Beyond these, squares leave double precision.
_LARGEST = 1e30


@final
@dataclasses.dataclass(frozen=True, eq=False)
class ShapedMean(MeanOfVectors, Pytree, leaves=("columns", "rows", "clip"), outside=("stretch",)):
    """The mean of shortened coordinates in an ellipsoid.

    Attributes:
        columns: (d, k), what coordinates are mapped back by: D in the frame at the origin, times the gains.
        rows: (k, d), the pseudo-inverse of D.
        clip: how long coordinates may be.
        stretch: the largest singular value of ``columns``; no part of programs.
    """

    columns: Any
    rows: Any
    clip: Any
    stretch: Any

    @property
    def rank(self):
        """Return the number of columns."""
        return self.columns.shape[1]

    def size(self, ball):
        """Return the clip."""
        return self.clip

    @override
    def spread(self, vector):
        return jnp.asarray(self.columns, vector.dtype) @ vector

    @override
    def gathered(self, coordinates):
        dimension, rank = self.columns.shape
        if rank < dimension:
            raise InputError(
                f"log_density: there is no density, as the {rank} vectors of the shape do not span all {dimension} "
                "dimensions."
            )
        columns = jnp.asarray(self.columns, coordinates.dtype)
        return jnp.linalg.solve(columns, coordinates), jnp.linalg.slogdet(columns)[1]

    @override
    def vector(self, ball, x):
        return shortened(self._coordinates(ball, x), self.clip)

    @override
    def about(self, ball, point, bound):
        turn: jax.Array = _turn(ball, point)
        columns, rows = turn @ jnp.asarray(self.columns, turn.dtype), jnp.asarray(self.rows, turn.dtype) @ turn.T
        there = GeodesicBall.tree_unflatten(ball.manifold, (point, ball.radius))
        return dataclasses.replace(self, columns=columns, rows=rows, clip=bound), there

    @override
    def apart(self, ball, x, y=None):
        home = ball.at_home
        own = self._coordinates(home, ball.to_home(x))
        return jnp.linalg.norm(own if y is None else own - self._coordinates(home, ball.to_home(y)))

    def without_gains(self, clip: float) -> "ShapedMean":
        """Return the summary for adaptive steps: without gains, so that values are not drawn towards the centre.

        Args:
            clip: in place of this one.
        """
        columns = np.linalg.pinv(self.rows)
        return dataclasses.replace(self, columns=columns, clip=clip, stretch=float(np.linalg.norm(columns, 2)))

    def _coordinates(self, ball, x):
        manifold, center, frame = framed(ball, real_dtype(x))
        logarithm = manifold.coordinates(center, manifold.log(center, x), frame)
        return jnp.asarray(self.rows, logarithm.dtype) @ logarithm

    @override
    def location(self, ball, points, center):
        def weighed(some, weights):
            return weights @ jax.vmap(functools.partial(self.vector, ball))(some)

        return sum_in_blocks(weighed, *points_and_weights(points))


def shaped_mean(owner: str, shape: Shape, ball: GeodesicBall) -> ShapedMean:
    """Return the summary about the ball's centre.

    Args:
        owner: whom a refusal names.
        shape: see there.
        ball: of the mechanism.

    Raises:
        ValueError: the shape is none, or not one about the centre of this ball.
    """
    if not isinstance(shape, Shape):
        raise InputError(f"{owner}: shape must be a Shape, got {type(shape).__name__}.")
    manifold, center = ball.manifold, np.asarray(ball.center)
    if shape.point.shape != manifold.shape:
        raise InputError(f"{owner}: the base point of the shape does not have the array shape of points of {manifold}.")
    own = np.asarray(GeodesicBall(manifold, shape.point, ball.radius).center)  # as the ball's, if it is written
    if np.max(np.abs(own - center)) > _TOLERANCE * (ball.radius + float(np.max(np.abs(center)))):
        raise InputError(f"{owner}: the base point of the shape must be the centre of the ball.")
    longest = float(np.max(np.abs(shape.vectors)))
    if not 1.0 / _LARGEST <= longest <= _LARGEST or not 1.0 / _LARGEST <= shape.clip <= _LARGEST:
        raise InputError(f"{owner}: clip and vectors of the shape must be between {1.0 / _LARGEST:g} and {_LARGEST:g}.")
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        columns, off = map(np.asarray, _placed(ball, shape.vectors))
    if not np.all(np.isfinite(columns)) or not off <= _WRITTEN:
        raise InputError(f"{owner}: the vectors of the shape must be tangent to {manifold} at its point.")
    lengths = np.linalg.svd(columns, compute_uv=False)
    if len(lengths) < columns.shape[1] or not lengths[-1] * LARGEST_CONDITION >= lengths[0] > 0:
        raise InputError(
            f"{owner}: the vectors of the shape must be linearly independent, and the longest axis of their ellipsoid "
            f"at most {LARGEST_CONDITION:g} times the shortest; leave out directions that hardly matter."
        )
    back = columns * shape.gains
    return ShapedMean(back, np.linalg.pinv(columns), shape.clip, float(np.linalg.norm(back, 2)))


def unclipped(ball: GeodesicBall, mean: ShapedMean) -> GeodesicBall:
    """Return the ball about the same centre in which logarithms are right: records with a shape are clipped to it."""
    manifold = ball.manifold
    root = manifold.coordinate_growth
    ends = LARGEST_REACH / root if root > 0 else math.inf
    reach = max(1.0, ball.radius, mean.clip * np.linalg.norm(np.linalg.pinv(mean.rows), 2))
    radius = min(_INSIDE * manifold.injectivity_radius, ends, reach * _FAR)
    wide = GeodesicBall(manifold.whole, ball.center, max(radius, ball.radius))
    # Of a small ball on a torus logarithms are right up to half a turn, and no angle needs another limit.
    return GeodesicBall.tree_unflatten(manifold, (ball.center, wide.radius)) if _is_cut(wide) > _is_cut(ball) else wide


def _is_cut(ball) -> bool:
    return ball.manifold.of_values != ball.manifold


def told_of(shape: Shape) -> dict:
    """Return the shape's entry of a release record."""
    return {
        "shape": {
            "rank": len(shape.vectors),
            "clip": shape.clip,
            "source": shape.source,
            "expected": shape.expected,
            "digest": digest_of_public(shape),
            "supposed": "no private record is behind it",
        }
    }


@jax.jit
def _placed(ball, vectors):
    """Return D in the frame at the origin, (d, k), and how far vectors are from tangent ones, relatively."""
    center = jnp.asarray(ball.center)
    manifold, origin, frame = framed(ball.at_home, real_dtype(center))
    columns = jax.vmap(lambda v: manifold.coordinates(origin, v, frame))(carried_vectors(ball, vectors)).T
    tangent = jax.vmap(lambda v: manifold.to_tangent(center, v.astype(center.dtype)))(vectors)
    return columns, jnp.max(jnp.abs(tangent - vectors)) / jnp.max(jnp.abs(vectors))


def _turn(ball, point) -> jax.Array:
    """Return the parallel transport from the ball's centre to a point, in the frames where both are carried home."""
    manifold, center = ball.manifold, jnp.asarray(ball.center).astype(point.dtype)
    there = GeodesicBall.tree_unflatten(manifold, (point, ball.radius))
    _, home, frame = framed(ball.at_home, real_dtype(point))
    _, other_home, other_frame = framed(there.at_home, real_dtype(point))

    def moved(vector):
        own = jax.jvp(ball.from_home, (home,), (vector.astype(home.dtype),))[1]
        tangent = manifold.transport(center, point, manifold.to_tangent(center, own))
        return manifold.coordinates(other_home, carried_vectors(there, tangent[None])[0], other_frame)

    turn: jax.Array = jax.vmap(moved)(frame).T
    return jnp.where(jnp.all(jnp.isfinite(turn)), turn, jnp.eye(len(turn), dtype=turn.dtype))
