"""How fast the gradient of the Frechet function grows away from its minimiser, as a certified lower bound.

Along a unit-speed geodesic from the mean that stays where all data are within s (docs/mathematics.md,
Theorem F), the Hessian of F in its direction is at least

    m(t) = 1 - a (V + h_min t^2) - b exp(2 q t),

with V the mean squared distance of the data from the mean, h_min = h_min(s, k_min) and, for the transverse
curvature k and the largest curvature K, h_k(s) = s sqrt(k) cot(s sqrt(k)):
``a = (1 - h_k(s))/s^2``, ``b = (h_k(s) - h_K(s))/s^2 * lambda``, ``q = (1 - h_K(s))/s``, lambda the largest
eigenvalue of the covariance of the logarithms. Hence |grad F| >= m(0..t) integrated, which is concave.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp

from jaxgeodp.blocks import sum_in_blocks
from jaxgeodp.bounds.comparison import h_max, h_min
from jaxgeodp.manifolds.manifold import Manifold


@functools.partial(jax.tree_util.register_dataclass, data_fields=["spread", "offset", "bend", "rate"], meta_fields=[])
@dataclasses.dataclass(frozen=True)
class GradientGrowth:
    """The concave function ``t -> int_0^t m``, m(t) = 1 - spread - bend t^2 - offset exp(2 rate t)."""

    spread: jax.Array
    offset: jax.Array
    bend: float
    rate: float

    def __call__(self, t):
        """Lower bound of the gradient norm at distance t from the minimiser."""
        twice = 2.0 * self.rate
        return (1.0 - self.spread) * t - self.bend * t**3 / 3.0 - self.offset * jnp.expm1(twice * t) / twice


def gradient_growth(manifold: Manifold, mean, points, weights, farthest) -> GradientGrowth | float:
    """The certified growth of |grad F| away from ``mean``.

    Args:
        mean: the minimiser, shape ``shape``.
        points, weights: the data (n, \\*shape) and weights (n,) that sum to 1.
        farthest: s, a bound of the distance between any point of the support and any datum.

    Returns:
        The slope 1.0 where the curvature is not positive, else a `GradientGrowth`.
    """
    lowest, highest = manifold.curvature_bounds
    if highest <= 0:
        return 1.0
    variance = sum_in_blocks(lambda x, w: manifold.log_moments(mean, x, w), points, weights)[1]
    transverse = h_max(farthest, manifold.transverse_curvature)
    steepest = h_max(farthest, highest)
    bend = (1.0 - transverse) / farthest**2
    if manifold.transverse_curvature == highest:
        offset = jnp.zeros_like(variance)
    else:
        offset = (transverse - steepest) / farthest**2 * manifold.log_covariance_bound(mean, points, weights)
    rate = (1.0 - steepest) / farthest
    return GradientGrowth(bend * variance, offset, bend * h_min(farthest, lowest), rate)
