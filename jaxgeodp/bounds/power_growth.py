"""How fast the gradient of a power-mean objective grows away from a centre c, as a certified lower bound.

Along a unit-speed geodesic from c that stays where all data are within s (docs/mathematics.md, Theorem H), with
d_i the distances from c, h = h_max(s, k_max), and the data so near that h > 0,

    |grad F|(t) >= -pull + int_0^t m,    pull = |grad F(c)|,

    m(t) = s^{p-2} min(p-1, h)                                    1 < p <= 2,
    m(t) = min(1, h) (1/n) sum_i max(0, d_i - t)^{p-2}            p > 2,
    m(t) = h e^{-2qt} (tr - lambda_max)( (1/n) sum_i log_c x_i (x) log_c x_i / (d_i + t)^3 )   p = 1,

q = max(h_min(s, k_min) - 1, 1 - h)/s. All are decreasing, so that the integral is concave.
"""

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.bounds.comparison import h_max, h_min
from jaxgeodp.manifolds.manifold import Manifold

_CELLS = 24


def power_growth(manifold: Manifold, center, pull, points, farthest: float, power: float):
    """The certified growth of |grad F|; 0 where nothing is certified.

    Args:
        center: c, a point of the ball of the data.
        pull: |grad F(c)|, 0 if c is the minimiser.
        points: the data (n, \\*shape).
        farthest: s, a bound of the distance between any point of the support and any datum.
        power: p.
    """
    lowest, highest = manifold.curvature_bounds
    reach = farthest * np.sqrt(max(highest, 0.0))
    convexity = h_max(farthest, highest) if reach < np.pi / 2 else 0.0
    if convexity <= 0:
        return 0.0
    if 1.0 < power <= 2.0:
        slope = farthest ** (power - 2.0) * min(power - 1.0, convexity)
        return lambda t: slope * t - pull
    distances = jax.vmap(lambda y: manifold.dist(center, y))(points)
    if power > 2.0:
        slope = min(1.0, convexity) / (power - 1.0)

        def growth(t):
            left = jnp.maximum(distances - jnp.asarray(t)[..., None], 0.0)
            return slope * jnp.mean(distances ** (power - 1.0) - left ** (power - 1.0), axis=-1) - pull

        return growth
    rate = max(h_min(farthest, lowest) - 1.0, 1.0 - convexity) / farthest
    return _median_growth(manifold, center, pull, points, distances, farthest, convexity, rate)


def _median_growth(manifold, center, pull, points, distances, farthest, convexity, rate):
    """Piecewise linear: on each cell m is at least its value at the right end."""
    edges = farthest * (np.arange(_CELLS + 1) / _CELLS) ** 2
    frame = manifold.frame(center)
    logs = jax.vmap(lambda y: manifold.coordinates(center, manifold.log(center, y), frame))(points)

    def spread(t):
        scaled = logs / (distances + t)[:, None] ** 1.5
        second = scaled.T @ scaled / logs.shape[0]
        trace = jnp.trace(second)
        # Less a margin for rounding.
        return jnp.maximum(trace - jnp.linalg.eigvalsh(second)[-1] - 1e-6 * trace, 0.0)

    right = jnp.asarray(edges[1:], distances.dtype)
    slopes = convexity * jnp.exp(-2.0 * rate * right) * jax.lax.map(spread, right)
    values = jnp.concatenate([jnp.zeros(1, slopes.dtype), jnp.cumsum(slopes * np.diff(edges))])
    knots = jnp.asarray(edges, distances.dtype)
    return lambda t: jnp.interp(t, knots, values) - pull
