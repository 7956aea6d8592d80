"""Piecewise log-linear envelope of the radial law of an exact sampler.

In polar coordinates x = exp_c(t v) about the centre c, |v| = 1, the density exp(-psi(x)/sigma) becomes

    exp(-psi(x)/sigma) t^{d-1} |det d exp_c(t v)|   with respect to dt dv.

With a growth function G(t) <= psi and a bound of the log-determinant this is at most a function of t alone,
which is replaced by its tangents (log t^{d-1}), lines from `Manifold.volume_envelope` and chords (G is
concave) on intervals. The result is a mixture of truncated exponentials: it is sampled by inversion, also
after truncation at any t, and its total mass is known.
"""

import dataclasses
import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxgeodp.manifolds.manifold import Manifold

_SMALL_KNOTS = 30


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["knots", "heights", "slopes", "masses", "cumulative"],
    meta_fields=[],
)
@dataclasses.dataclass(frozen=True)
class RadialEnvelope:
    """Bound ``heights[j] + slopes[j] (t - knots[j])`` of the log radial law on interval j.

    ``masses`` are the integrals of its exponential over the intervals, up to one common factor.
    """

    knots: jax.Array  # (K + 1,), the last possibly infinite
    heights: jax.Array  # (K,)
    slopes: jax.Array  # (K,)
    masses: jax.Array  # (K,)
    cumulative: jax.Array  # (K + 1,): sums of the first masses

    def mass_below(self, t):
        """Return the mass of the envelope on [0, t]."""
        j = cell_of(self.knots, t)
        width = jnp.clip(t - self.knots[j], 0.0, self.knots[j + 1] - self.knots[j])
        top = jnp.max(self.heights)
        return self.cumulative[j] + jnp.minimum(self.masses[j], _integral(self.heights[j] - top, self.slopes[j], width))

    def radius_at(self, mass):
        """Return t with ``mass_below(t) == mass``: inversion sampling for a uniform mass.

        Returns:
            t, and the envelope there (unnormalised log density).
        """
        j = cell_of(self.cumulative, mass)
        fraction = jnp.clip((mass - self.cumulative[j]) / self.masses[j], 0.0, 1.0)
        beyond = _inverse_partial_mass(self.slopes[j], self.knots[j + 1] - self.knots[j], fraction)
        return self.knots[j] + beyond, self.heights[j] + self.slopes[j] * beyond


def cell_of(edges, x):
    """Return j with edges[j] <= x < edges[j + 1], clamped to the first and last cell; by comparisons."""
    return jnp.clip(jnp.sum(edges <= jnp.expand_dims(x, -1), axis=-1) - 1, 0, edges.shape[0] - 2)


def radial_envelope(manifold: Manifold, growth, scale, reach) -> RadialEnvelope:
    """Return the envelope for psi >= growth(distance), density exp(-psi/scale), truncated at ``reach``.

    Args:
        growth: a slope m (psi >= m t), a concave function of the distance, or an object whose ``lines(lower, upper)``
            gives the values at ``lower`` and the slopes of lines below psi on intervals that follow each other from 0;
            it may say with ``bulk`` up to which distance the mass lies, and with ``of_a_length`` that psi >= 0.
        scale: sigma, in units of psi.
        reach: the largest distance from the centre, array or float; infinite only for a slope with
            ``slope/scale > manifold.volume_growth`` (else the density has no finite mass).
    """
    dtype = jnp.result_type(scale, float)
    scale, reach = jnp.asarray(scale, dtype), jnp.asarray(reach, dtype)
    lines = growth.lines if hasattr(growth, "lines") else functools.partial(_chords, growth)
    bulk = growth.bulk if hasattr(growth, "bulk") else _bulk(manifold, lines, scale, reach)
    knots = _knots(bulk, reach, 24 + 4 * math.ceil(math.sqrt(manifold.dim)))
    if hasattr(growth, "lines"):
        # It may have a kink at any scale, as where data nearly coincide.
        small = knots[1] * jnp.logspace(-14.0, 0.0, _SMALL_KNOTS, endpoint=False, dtype=dtype)
        knots = jnp.concatenate([knots[:1], small, knots[1:]])
    lower, upper = knots[:-1], knots[1:]
    finite_upper = jnp.where(jnp.isfinite(upper), upper, 2.0 * lower)
    degree = manifold.dim - 1
    volume, volume_slope = manifold.volume_envelope(lower, upper)
    growth_lower, growth_slope = lines(lower, finite_upper)
    # Where log t^{d-1} is touched. Intervals of the tail may be thousands of times as long as the bulk: where the law
    # falls from the beginning on, a tangent there is the nearest, and one in the middle would hold more than the bulk.
    beginning = jnp.maximum(lower, finite_upper * jnp.finfo(dtype).tiny)
    falls = (lower >= 0.999 * bulk) & (degree / beginning + volume_slope - growth_slope / scale < 0.0)
    touched = jnp.where(falls, beginning, 0.5 * (lower + finite_upper))
    heights = degree * (jnp.log(touched) + (lower - touched) / touched) + volume - growth_lower / scale
    slopes = degree / touched + volume_slope - growth_slope / scale
    masses = _integral(heights - jnp.max(heights), slopes, upper - lower)
    cumulative = jnp.concatenate([jnp.zeros_like(masses[:1]), jnp.cumsum(masses)])
    return RadialEnvelope(knots, heights, slopes, masses, cumulative)


def as_function(growth) -> Callable:
    """Return a growth as a function of distance; a number is a linear slope."""
    return growth if callable(growth) else (lambda t: growth * t)


def _chords(growth, lower, upper):
    """Return lines below a linear or concave function."""
    function = as_function(growth)
    value, end = function(lower), function(upper)
    slope = (end - value) / (upper - lower)
    if not getattr(growth, "of_a_length", False):
        return value, slope
    below = end < 0.0  # from there on, as it is concave and 0 at 0
    return jnp.asarray(jnp.where(below, 0.0, value)), jnp.asarray(jnp.where(below, 0.0, slope))


def _bulk(manifold, lines, scale, reach):
    """Return a distance beyond which there is little mass."""
    unit = jnp.reshape(scale * 1e-3, 1)
    rate = lines(jnp.zeros_like(unit), unit)[1][0] / scale - manifold.volume_growth
    # On a bounded range any spacing is valid; on an unbounded one the tail starts where the law falls.
    rate = jnp.where(jnp.isfinite(reach), jnp.maximum(rate, 0.05 / scale), rate)
    return (manifold.dim + 6.0 * math.sqrt(manifold.dim) + 20.0) / rate


def _knots(bulk, reach, count):
    """Return knots of ``count`` even intervals over the bulk of the law, then a few up to the reach."""
    even = jnp.minimum(reach, bulk)
    knots = even * jnp.arange(count + 1) / count
    ratio = jnp.where(jnp.isfinite(reach), reach / even, 2.0)
    # At least a hair apart, so that no interval is empty when the bulk fills the whole support.
    ratio = jnp.maximum(ratio, 1.0 + 64.0 * jnp.finfo(even.dtype).eps)
    tail = even * ratio ** (jnp.arange(1, count // 8 + 1) / (count // 8))
    tail = tail.at[-1].set(jnp.where(jnp.isfinite(reach), tail[-1], jnp.inf))
    return jnp.concatenate([knots, tail])


def _integral(height: jax.Array, slope: jax.Array, width: jax.Array) -> jax.Array:
    """Return ``int_0^width exp(height + slope t) dt``; infinite width needs a negative slope."""
    finite = jnp.isfinite(width)
    safe_width = jnp.where(finite, width, 1.0)
    x = slope * safe_width
    size = jnp.abs(x)
    tiny = size < 1e-6
    ratio = jnp.where(tiny, 1.0 - 0.5 * size, -jnp.expm1(-size) / jnp.where(tiny, 1.0, size))
    bounded = jnp.exp(height + jnp.maximum(x, 0.0)) * safe_width * ratio
    return jnp.where(finite, bounded, jnp.exp(height) / jnp.where(finite, 1.0, -slope))


def _inverse_partial_mass(slope: jax.Array, width: jax.Array, fraction: jax.Array) -> jax.Array:
    """Return the t below which the given share of the mass lies."""
    finite = jnp.isfinite(width)
    safe_width = jnp.where(finite, width, 1.0)
    size = jnp.abs(slope) * safe_width
    tiny = size < 1e-6
    safe_size = jnp.where(tiny, 1.0, size)
    # A decreasing exponential measured from its high end.
    share = jnp.where(slope > 0, 1.0 - fraction, fraction)
    from_high_end = -jnp.log1p(share * jnp.expm1(-safe_size)) / safe_size
    position = jnp.where(tiny, share * (1.0 - 0.5 * size * (1.0 - share)), from_high_end)
    position = jnp.where(slope > 0, 1.0 - position, position)
    unbounded = jnp.log1p(-fraction) / jnp.where(finite, -1.0, slope)
    return jnp.where(finite, jnp.clip(position, 0.0, 1.0) * safe_width, unbounded)
