"""How fast the gradient of the Frechet function grows away from its minimiser, as a certified lower bound.

Along a unit-speed geodesic from the mean that stays where all data are within s (docs/mathematics.md,
Theorem F), the Hessian of F in its direction is at least

    m(t) = 1 - a (V + 2 p t + h_min t^2) - b exp(2 q t),

with V the mean squared distance of the data from the mean, h_min = h_min(s, k_min) and, for the transverse
curvature k and the largest curvature K, h_k(s) = s sqrt(k) cot(s sqrt(k)):
``a = (1 - h_k(s))/s^2``, ``b = (h_k(s) - h_K(s))/s^2 * lambda``, ``q = (1 - h_K(s))/s``, lambda the largest
eigenvalue of the covariance of the logarithms. p is 0; from a point that is not the mean it is the length of the
gradient there. Hence |grad F| >= m(0..t) integrated - p, which is concave.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import ClassVar

import jax
import jax.numpy as jnp

from jaxgeodp.blocks import sum_in_blocks
from jaxgeodp.bounds.comparison import h_max, h_min
from jaxgeodp.manifolds.manifold import Manifold


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["spread", "offset", "bend", "rate", "twist"], meta_fields=[]
)
@dataclasses.dataclass(frozen=True)
class GradientGrowth:
    """The concave function ``t -> int_0^t m``, m(t) = 1 - spread - twist t - bend t^2 - offset exp(2 rate t)."""

    spread: jax.Array
    offset: jax.Array
    bend: float
    rate: float
    twist: jax.Array | float = 0.0
    of_a_length: ClassVar[bool] = True  #: see `radial_envelope`

    def slope(self, t):
        """Return m(t), which decreases."""
        return 1.0 - self.spread - (self.twist + self.bend * t) * t - self.offset * jnp.exp(2.0 * self.rate * t)

    def __call__(self, t):
        """Return a lower bound of the gradient norm at distance t from the minimiser."""
        # The rate of small supports rounds to 0.
        twice = jnp.maximum(2.0 * self.rate, 1e-30)
        even = (1.0 - self.spread - 0.5 * self.twist * t) * t - self.bend * t**3 / 3.0
        return even - self.offset * jnp.expm1(twice * t) / twice


@dataclasses.dataclass(frozen=True)
class RadialGrowth:
    """Growth of a mean of functions of the distances from records, each with a Hessian of at least ``bound``.

    Args:
        distances: (n,), of the records from the centre.
        farthest: no distance is larger.
        bound: falls with the distance; may be negative.
        pull: length of the mean's gradient at the centre.
    """

    distances: jax.Array
    farthest: jax.Array | float
    bound: Callable[[jax.Array], jax.Array]
    pull: jax.Array | float

    def slope(self, t):
        """Return a lower bound of the mean's Hessian at distances t from the centre, (K,); it falls."""
        return jax.lax.map(lambda own: jnp.mean(self.bound(jnp.minimum(self.distances + own, self.farthest))), t)

    def lines(self, lower, upper):
        """Return values at ``lower`` and slopes of lines below |grad F|, on consecutive intervals from 0.

        All are 0 unless the bound is positive at the farthest distance: it is a bound only then.
        """
        known = self.bound(jnp.asarray(self.farthest)) > 0.0
        slopes = jnp.where(known, self.slope(upper), 0.0)
        rises = jnp.cumsum(slopes * (upper - lower))
        values = jnp.concatenate([jnp.zeros_like(rises[:1]), rises[:-1]]) - self.pull
        return jnp.where(known, values, 0.0), slopes


def gradient_growth(manifold: Manifold, mean, points, weights, farthest, pull=0.0) -> GradientGrowth | float:
    """Return the certified growth of |grad F| away from ``mean``.

    Args:
        mean: the minimiser, shape ``shape``; or another point, with ``pull``.
        points, weights: the data (n, \\*shape) and weights (n,) that sum to 1.
        farthest: s, a bound of the distance between any point of the support and any datum.
        pull: length of the gradient at ``mean``.

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
    return GradientGrowth(bend * variance, offset, bend * h_min(farthest, lowest), rate, 2.0 * bend * pull)
