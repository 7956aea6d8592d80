"""The gradient of F near a point c, to second or third order, and a bound of what is left out.

Carried to c along the geodesic exp_c(s v), 0 <= s <= 1, the gradient of the Frechet function F at x = exp_c(v) is

    g + H v + D(v, v)/2 + rest,    g = grad F(c),  H = Hess F(c),  D(v, v) = (nabla_v Hess F) v at c.

On symmetric spaces the rest has a certified bound (docs/mathematics.md, Theorem Z; ours), so that |grad F(x)| is known
up to a small interval without a look at the records. Where a manifold does not know D, it is part of the rest.
"""

import functools
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from jaxgeodp.blocks import map_in_blocks, sum_in_blocks
from jaxgeodp.bounds.comparison import h_max, h_min
from jaxgeodp.manifolds.manifold import Manifold, real_dtype

# Units of rounding by which norms that are computed in two ways may differ.
_ROUNDINGS = 64.0
# How steep F may be at what is taken for its minimum, in units of the farthest distance.
_PRECISION = 1e-9
# Numbers in temporary arrays of third derivatives.
_NUMBERS = 2**22


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["columns", "slope", "hessian", "third", "bound", "rise", "reach", "rounding"],
    meta_fields=[],
)
@dataclass(frozen=True)
class GradientExpansion:
    """The numbers of the expansion, in an orthonormal frame at c."""

    columns: jax.Array  #: (dim, m): coordinates of a tangent vector from its m real numbers
    slope: jax.Array  #: g, (dim,)
    hessian: jax.Array  #: H, (dim, dim)
    third: jax.Array | None  #: D, (dim, dim, dim): what comes out first; None where it is part of the rest
    bound: jax.Array  #: of the first derivative that is left out, at c
    rise: jax.Array  #: of that bound, per unit of distance, up to ``reach``
    reach: jax.Array  #: distance beyond which nothing is known
    rounding: jax.Array  #: what rounding adds, at most

    def carried(self, tangent) -> jax.Array:
        """Return the expansion at exp_c(tangent), (dim,)."""
        coordinates = self.columns @ _real_numbers(tangent)
        value = self.slope + self.hessian @ coordinates
        if self.third is None:
            return value
        dim = self.slope.shape[0]
        return value + 0.5 * self.third.reshape(dim, dim**2) @ (coordinates[:, None] * coordinates).reshape(-1)

    def norm(self, tangent, distance) -> tuple[jax.Array, jax.Array]:
        """Return the length of the expansion at exp_c(tangent), and how far that of the gradient may be from it."""
        order = 2 if self.third is None else 3
        error = distance**order / math.factorial(order) * (self.bound + self.rise * distance / (order + 1.0))
        error = jnp.asarray(jnp.where(distance <= self.reach, error, jnp.inf))
        return jnp.sqrt(jnp.sum(self.carried(tangent) ** 2)), error + self.rounding


def gradient_expansion(manifold: Manifold, center, points, weights, scale) -> GradientExpansion | None:
    """Return the expansion of the gradient of F about a point, for x at distances of K-norm gradient draws.

    Args:
        center: c, shape ``shape``; best the mean.
        points, weights: the data (n, \\*shape) and weights (n,) that sum to 1.
        scale: sigma of the density exp(-|grad F|/sigma).

    Returns:
        None where the space is not known to be symmetric, or its curvature is not.
    """
    lowest, highest = manifold.curvature_bounds
    if not (math.isfinite(manifold.curvature_trace) and math.isfinite(lowest) and math.isfinite(highest)):
        return None
    dtype = real_dtype(center)
    scale, weights = jnp.asarray(scale, dtype), jnp.asarray(weights, dtype)
    frame = manifold.frame(center)
    logarithms: Any = map_in_blocks(lambda y: manifold.log(center, y), points)
    distances: Any = jax.vmap(lambda v: manifold.norm(center, v))(logarithms)
    slope = -manifold.coordinates(center, jnp.tensordot(weights.astype(logarithms.dtype), logarithms, axes=1), frame)
    hessian = sum_in_blocks(lambda x, w: manifold.mean_hessian(center, x, w), points, weights)
    third = None
    if manifold.knows_third_derivative and highest <= 0.0:
        rows = max(1, _NUMBERS // manifold.dim**2 // manifold.shape[0])
        third = sum_in_blocks(lambda x, w: manifold.mean_third_derivative(center, x, w), points, weights, rows)
    pull = jnp.sqrt(jnp.sum(slope**2))
    left_out = third_derivative_bound if third is None else fourth_derivative_bound
    # Nearly all proposals are as near; a bound of one more derivative by a chord, as it is convex.
    reach = _usual_reach(manifold.dim) * scale
    values: Any = [left_out(manifold, distances + own) for own in (0.0, reach)]
    near, far = [weights @ jnp.asarray(jnp.where(weights > 0, own, 0.0)) for own in values]
    rise = (far - near) / reach
    if third is None:
        # What was subtracted from the single third derivatives, at the gradient's length there.
        turning = _bend(manifold) / 3.0
        steepest = weights @ jnp.broadcast_to(h_min(distances + reach, lowest), weights.shape)
        near, rise = near + turning * pull, rise + turning * steepest
    farthest = jnp.max(distances) + reach
    magnified = jnp.exp(2.0 * jnp.minimum(farthest * manifold.coordinate_growth, 50.0))
    # Numbers of points are about 1 however near these are to each other, and so are their roundings.
    rounding = _ROUNDINGS * jnp.finfo(dtype).eps * (1.0 + farthest) * magnified
    # A Hessian by automatic differentiation is that of the minimum; elsewhere it would be off by about the gradient.
    reach = jnp.where(pull <= _PRECISION * farthest + rounding, reach, 0.0)
    columns = _columns(manifold, center, frame)
    return GradientExpansion(columns, slope, hessian, third, near, rise, reach, rounding + pull)


def third_derivative_bound(manifold: Manifold, distance):
    """Return a bound of |(nabla_z Hess) z - R(z, v)z/3| for half the squared distance to exp(v), |z| = 1.

    R is the curvature, |v| the distance. What is subtracted is linear in v, and its mean over the data about 0 at
    their mean. Convex in the distance; infinite from a quarter of a great circle, or the injectivity radius, on.
    """
    lowest, highest = manifold.curvature_bounds
    bend = _bend(manifold)
    angle = max(highest, 0.0) * distance**2 / math.pi**2
    first, second = (1.0 - angle) ** -2.0 / 3.0, 2.0 / 45.0 * (1.0 - angle) ** -3.0
    off = (h_min(distance, lowest) - 1.0) + (1.0 - h_max(distance, highest))
    limit = manifold.injectivity_radius
    if highest > 0.0:
        limit = min(limit, 0.5 * math.pi / math.sqrt(highest))
    value = 2.0 * bend * distance * (first * off + second * bend * distance**2)
    return jnp.where(distance < limit, value, jnp.inf)


def fourth_derivative_bound(manifold: Manifold, distance):
    """Return a bound of |(nabla_z nabla_z Hess) z| of the same, where no curvature is positive; convex, too."""
    bend, largest = _bend(manifold), h_min(distance, manifold.curvature_bounds[0])
    change = 2.0 * bend * distance * largest
    return 2.0 / 45.0 * change**2 + (2.0 * bend * largest**2 + 2.0 * bend * distance * change / 3.0) / 3.0


def _bend(manifold):
    """Return the largest absolute curvature."""
    lowest, highest = manifold.curvature_bounds
    return max(-lowest, highest)


def _usual_reach(dim):
    """Return a usual upper bound of draws' distances in units of sigma, about those of a Gamma law of shape dim."""
    return 1.5 * (dim + 4.0 * math.sqrt(dim) + 4.0)


def _columns(manifold, center, frame):
    """Return coordinates as a matrix; they are linear in the real and imaginary parts."""
    size = math.prod(manifold.shape)

    def of_numbers(numbers):
        parts = numbers.reshape(-1, *manifold.shape)
        tangent = parts[0] + 1j * parts[1] if manifold.dtype_kind == "complex" else parts[0]
        return manifold.coordinates(center, tangent.astype(center.dtype), frame)

    count = 2 * size if manifold.dtype_kind == "complex" else size
    return jax.vmap(of_numbers)(jnp.eye(count, dtype=real_dtype(center))).T


def _real_numbers(tangent):
    if jnp.iscomplexobj(tangent):
        return jnp.concatenate([jnp.real(tangent).reshape(-1), jnp.imag(tangent).reshape(-1)])
    return tangent.reshape(-1)
