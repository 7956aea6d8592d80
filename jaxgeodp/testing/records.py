"""Invented records that strain a statistic or a mechanism: within the ball, at its rim, outside, and no records at all.

Records of most statistics are points of the manifold; others say their own shape with ``datum_shape``.
"""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.privacy import adversarial_neighbours


def points_at(ball: GeodesicBall, coordinates) -> jax.Array:
    """Return points at tangent coordinates (num, dim) of the centre, in units of the radius; in double precision."""
    with jax.enable_x64(True):
        return _points_at(ball, jnp.asarray(coordinates))


@jax.jit
def _points_at(ball, coordinates):
    manifold = ball.manifold
    home = manifold.home(jnp.asarray(ball.center))
    frame = manifold.frame(home)

    def point(z):
        return manifold.project(ball.from_home(manifold.exp(home, manifold.combine(ball.radius * z, frame))))

    return jax.vmap(point)(coordinates)


def unit_vectors(dim: int, num: int, seed: int) -> np.ndarray:
    """Return (num, dim) directions: the axes to both sides first, then random ones."""
    axes = np.concatenate([np.eye(dim), -np.eye(dim)])[:num]
    normal = np.random.default_rng(seed).normal(size=(num - len(axes), dim))
    return np.concatenate([axes, normal / np.linalg.norm(normal, axis=1, keepdims=True)])


def has_points(statistic, ball: GeodesicBall) -> bool:
    """Return whether records are points that are clipped into the ball: where nothing else is said, they are."""
    if statistic is None:
        return True
    if tuple(statistic.datum_shape(ball.manifold)) != tuple(ball.manifold.shape):
        return False
    with jax.enable_x64(True):
        outside = points_at(ball, 1.5 * np.eye(ball.manifold.dim)[:1])
        return bool(ball.contains(clipped(statistic, ball, outside)[0]))


def clipped(statistic, ball: GeodesicBall, data) -> jax.Array:
    """Return the records clipped as the theorems suppose."""
    return ball.clip(data) if statistic is None else statistic.clip(ball, jnp.asarray(data))


def ordinary_records(statistic, ball: GeodesicBall, num: int, seed: int = 0) -> np.ndarray:
    """Return (num, \\*datum_shape) records within the ball, more to one side; normal numbers in another shape."""
    random = np.random.default_rng(seed)
    if not has_points(statistic, ball):
        return random.normal(size=(num, *statistic.datum_shape(ball.manifold)))
    directions = random.normal(size=(num, ball.manifold.dim))
    directions[:, 0] = np.abs(directions[:, 0])
    lengths = random.uniform(0.1, 0.9, size=(num, 1))
    return np.asarray(points_at(ball, lengths * directions / np.linalg.norm(directions, axis=1, keepdims=True)))


def neighbours(statistic, ball: GeodesicBall, n: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return name -> pair of data sets that differ in the last record, which jumps as far as it can."""
    if has_points(statistic, ball):
        return adversarial_neighbours(ball, n)
    data = ordinary_records(statistic, ball, n + 1)
    pairs = {"random": (data[:n], np.append(data[: n - 1], data[n:], axis=0))}
    for size in (1.0, 10.0):
        start, end = data[:n].copy(), data[:n].copy()
        start[-1], end[-1] = size * np.abs(data[-1]), -size * np.abs(data[-1])
        pairs[f"opposite signs, {size:g}"] = start, end
    return pairs


def hostile_records(statistic, ball: GeodesicBall) -> dict[str, np.ndarray]:
    """Return name -> one record, of those that a file can hold: at the rim, outside, extreme, and none at all."""
    if has_points(statistic, ball):
        quiet = np.asarray(ball.center)
        ends = points_at(ball, np.eye(ball.manifold.dim)[0] * np.array([[1.0], [-1.0], [1.5]]))
        records = dict(zip(("at the rim", "at the opposite rim", "outside"), np.asarray(ends), strict=True))
    else:
        quiet, records = np.ones(statistic.datum_shape(ball.manifold)), {}
    records |= {"at the centre": quiet, "opposite": -quiet}
    for value, part in itertools.product((math.nan, math.inf, -math.inf), (slice(None), slice(-1, None))):
        name = f"all {value}" if part == slice(None) else f"{value} at the end"
        records[name] = quiet.copy()
        records[name].flat[part] = value
    for value in (1e300, -1e300, 5e-324, 0.0):
        records[f"all {value:g}"] = np.full_like(quiet, value)
    records["1e300 times as large"] = quiet * 1e300
    return records
