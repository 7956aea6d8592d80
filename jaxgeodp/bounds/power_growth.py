"""How fast the gradient of a power-mean objective grows away from a centre c, as a certified lower bound.

Along any unit-speed geodesic from c that stays where all data are within s (docs/mathematics.md, Theorem H), with
d_i the distances from c and h_max, h_min the comparison functions, |grad F|(t) >= -|grad F(c)| + int_0^t m with

    m(t) = (1/n) sum_i (d_i + t)^{p-2} min(p-1, h_max(d_i + t))                              1 < p <= 2,
    m(t) = (1/n) sum_i |d_i - t|^{p-2} min(1, h_max(d_i + t))                                p > 2,
    m(t) = h e^{-2qt} (tr - lambda_max)( (1/n) sum_i log_c x_i (x) log_c x_i / (d_i + t)^3 )   p = 1,

h = h_max(s), q = max(h_min(s) - 1, 1 - h)/s. For the median p = 1 the cosine law in constant curvature k_max also
bounds |grad F|(t) from below at each t, and more sharply (Theorem I): both are used.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp

from jaxgeodp.bounds.comparison import h_max, h_min
from jaxgeodp.manifolds.manifold import Manifold

_SUBCELLS = 4
_TINY = 1e-30


@dataclasses.dataclass(frozen=True)
class PowerGrowth:
    """A lower bound of |grad F| by the distance from c, as lines on intervals; see the module docstring."""

    power: float
    farthest: float | jax.Array  # s
    curvature: tuple[float, float]
    pull: jax.Array
    distances: jax.Array  # (n,)
    units: jax.Array  # (n, dim): directions of the data from c, 0 for a datum at c

    def lines(self, lower, upper):
        """Return values at ``lower`` and slopes of lines below |grad F|, on consecutive intervals from 0."""
        width = upper - lower
        # The median's bound comes from Theorem I: its slopes only carry it from knot to knot.
        subcells = 1 if self.power == 1.0 else _SUBCELLS
        cells = lower[:, None] + width[:, None] * (jnp.arange(subcells + 1) / subcells)
        slopes = jax.lax.map(lambda ends: self._least_slope(*ends), (cells[:, :-1].ravel(), cells[:, 1:].ravel()))
        slopes = slopes.reshape(-1, subcells)
        rise = jnp.cumsum(jnp.sum(slopes, axis=1) * width / subcells)
        rise = jnp.concatenate([jnp.zeros(1, rise.dtype), rise[:-1]])
        values = rise - self.pull
        if self.power == 1.0:
            # F is convex, so that a bound at one distance, and the slopes from there, hold beyond it.
            aspect = self._largest(jnp.ones_like(self.distances))
            by_cosines = jax.lax.map(lambda t: self._by_cosines(t, aspect), lower)
            values = jnp.maximum(values, rise + jax.lax.cummax(by_cosines - rise))
        # Theorems H and I need all data within a quarter of a great circle; else nothing is known.
        known = self.farthest * math.sqrt(max(self.curvature[1], 0.0)) < math.pi / 2
        # On an interval the lines of its cells lie above the line with the least of their slopes.
        return jnp.where(known, values, 0.0), jnp.where(known, jnp.min(slopes, axis=1), 0.0)

    def _least_slope(self, lower, upper):
        """Return the least value of m on an interval."""
        low, high = self.curvature
        if self.power == 1.0:
            convexity = h_max(self.farthest, high)
            rate = jnp.maximum(h_min(self.farthest, low) - 1.0, 1.0 - convexity) / self.farthest
            shares = self.distances**2 / (self.distances + upper) ** 3
            across = jnp.maximum(jnp.mean(shares * jnp.sum(self.units**2, axis=1)) - self._largest(shares), 0.0)
            return convexity * jnp.exp(-2.0 * rate * upper) * across
        farthest = jnp.minimum(self.distances + upper, self.farthest)
        convexity = h_max(farthest, high)
        if self.power <= 2.0:
            return jnp.mean(farthest ** (self.power - 2.0) * jnp.minimum(self.power - 1.0, convexity))
        nearest = jnp.maximum(jnp.maximum(self.distances - upper, lower - self.distances), 0.0)
        return jnp.mean(nearest ** (self.power - 2.0) * jnp.minimum(1.0, convexity))

    def _largest(self, weights):
        """Return lambda_max of (1/n) sum_i w_i u_i u_i', and a margin for rounding."""
        second = (self.units * weights[:, None]).T @ self.units / self.units.shape[0]
        scale = jnp.max(jnp.abs(weights))
        return jnp.linalg.eigvalsh(second)[-1] + 1e3 * jnp.finfo(second.dtype).eps * scale

    def _by_cosines(self, t, aspect):
        """Return Theorem I's bound: mean_i of a - b z - c z^2 below the cosine law, z = <u_i, v>, at the worst v."""
        root = math.sqrt(max(self.curvature[1], 0.0))
        near = jnp.minimum(t, self.distances)
        at = -jnp.clip(aspect, 0.0, 1.0)
        value, slope = _cosine_law(near, self.distances, at, root)
        # For t < d the datum straight ahead pulls with -1; for t = d with nothing.
        ahead = jnp.where(t < self.distances, -1.0, 0.0)
        c = (value + slope * (1.0 - at) - ahead) / (1.0 - at) ** 2
        b = -slope - 2.0 * c * at
        a = value + b * at + c * at**2
        # Beyond d the angle at x is below a right one whatever the direction.
        beyond = jnp.sqrt(jnp.maximum(1.0 - (_sin(self.distances, root) / _sin(jnp.maximum(t, _TINY), root)) ** 2, 0.0))
        better = (t > self.distances) & (beyond > a + c * at)
        # A datum at c pushes away with force 1 as soon as t > 0.
        at_center = self.distances == 0
        better, beyond = better | at_center, jnp.where(at_center, 1.0, beyond)
        a, b, c = (jnp.where(better, x, y) for x, y in ((beyond, a), (0.0, b), (0.0, c)))
        centred = jnp.linalg.norm(jnp.mean(b[:, None] * self.units, axis=0))
        return jnp.mean(a) - centred - self._largest(c)


def power_growth(manifold: Manifold, center, pull, points, farthest, power: float) -> PowerGrowth:
    """Return the certified growth of |grad F|; 0 where nothing is certified.

    Args:
        center: c, a point of the ball of the data.
        pull: |grad F(c)|, 0 if c is the minimiser.
        points: the data (n, \\*shape).
        farthest: s, a bound of the distance between any point of the support and any datum.
        power: p.
    """
    frame = manifold.frame(center)
    logs = jax.vmap(lambda y: manifold.coordinates(center, manifold.log(center, y), frame))(points)
    distances: jax.Array = jnp.linalg.norm(logs, axis=1)
    # Closer than rounding tells: at c. What is then claimed of shorter distances concerns no floating-point draw.
    apart: jax.Array = distances > 64.0 * jnp.finfo(distances.dtype).eps
    distances = jnp.where(apart, distances, 0.0)
    units = jnp.where(distances[:, None] > 0, logs / jnp.where(distances > 0, distances, 1.0)[:, None], 0.0)
    return PowerGrowth(power, farthest, manifold.curvature_bounds, pull, distances, units)


def _sin(length, root):
    return jnp.sin(root * length) if root > 0 else length


def _cosine_law(t, d, z, root):
    """Return the rate at which the distance to a datum grows at t, in constant curvature, and its derivative in z.

    The datum is at distance d in a direction whose cosine with the geodesic is z <= 0.
    """
    if root == 0:
        side = jnp.sqrt(t**2 + d**2 - 2.0 * t * d * z)
        safe = jnp.where(side > 0, side, 1.0)
        return (t - d * z) / safe, -((d / safe) ** 2) * (d - t * z) / safe
    sin_t, cos_t, sin_d, cos_d = jnp.sin(root * t), jnp.cos(root * t), jnp.sin(root * d), jnp.cos(root * d)
    across = sin_t * cos_d - cos_t * sin_d * z
    # The sine of the side, without cancellation where it is short.
    side = jnp.sqrt(across**2 + sin_d**2 * (1.0 - z**2))
    safe = jnp.where(side > 0, side, 1.0)
    return across / safe, -((sin_d / safe) ** 2) * (cos_t * sin_d - sin_t * cos_d * z) / safe
