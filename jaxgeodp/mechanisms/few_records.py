"""The mean loss of a Frechet mean as a sum of which a few records decide (docs/mathematics.md, Theorem V)."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from jaxgeodp.blocks import map_in_blocks
from jaxgeodp.bounds.comparison import h_min
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.samplers.thinning import Thinning

# A proposal is about as far away as this many standard deviations beyond the root of the dimension, or nearer.
_BEYOND = 2.0


def of_few_records(manifold: Manifold, center, points, weights, temperature) -> Thinning:
    """Return the thinning of -(F less F(c))/temperature as a sum over records, for spaces without positive curvature.

    Each loss lies above its tangent at c by at least t^2/2, and by h_min(s + t) t^2/2 at most, s the distance of its
    record from c. What that is more than the least is at most max(1, t/u)^2 times what it is at t = u, as
    (h_min(s) - 1)/s^2 falls: so all records have bounds of one shape in t.

    Args:
        center: c, the centre of the envelope.
        points, weights: the records (n, \\*shape), and weights (n,) that sum to 1.
        temperature: what F is divided by.
    """
    lowest = manifold.curvature_bounds[0]
    logarithms: Any = map_in_blocks(lambda y: manifold.log(center, y), points)
    squares = jax.vmap(lambda v: manifold.inner(center, v, v))(logarithms)
    slope = -jnp.tensordot(weights.astype(logarithms.dtype), logarithms, axes=1)
    usual = jnp.sqrt(temperature) * (math.sqrt(manifold.dim) + _BEYOND)
    excess: Any = jax.vmap(lambda square: h_min(jnp.sqrt(square) + usual, lowest) - 1.0)(squares)
    total = jnp.sum(weights * excess)

    def certain(tangent, distance):
        return -(manifold.inner(center, slope, tangent) + 0.5 * distance**2) / temperature

    def most(distance):
        return 0.5 * distance**2 * jnp.maximum(1.0, distance / usual) ** 2 / temperature

    def share(index, x, tangent, distance):
        pull = manifold.inner(center, logarithms[index], tangent)
        rise = 0.5 * (manifold.squared_dist(x, points[index]) - squares[index] - distance**2) + pull
        bound = most(distance) * excess[index]
        # Where nothing is bent, rounding alone would count.
        return jnp.where(bound > 0.0, rise / temperature / jnp.where(bound > 0.0, bound, 1.0), 0.0)

    return Thinning(certain, share, lambda distance: most(distance) * total, weights * excess)
