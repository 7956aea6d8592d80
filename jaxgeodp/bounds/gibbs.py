"""How private one draw from exp(-k F) is, and how fast F grows (docs/mathematics.md, section 17).

F is convex near the data, with Hessian at least m, and the gradients of neighbours differ by at most Delta. On a
convex set where the Ricci curvature is at least q, one draw is mu-GDP with mu = k Delta/sqrt(k m + q). A public
barrier W, which is 0 near the centre of the ball and convex beyond, makes up for the convexity that F loses there.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.bounds.comparison import h_max, h_min
from jaxgeodp.bounds.growth import GradientGrowth, RadialGrowth
from jaxgeodp.manifolds.manifold import Manifold

# Of the quadrature of the barrier: its integrand is smooth.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
# A rate is this much below the one that was calculated.
_ROUNDING = 1e-12
# In units of the support's radius.
_NEAR_RIM = 1e-6


def gibbs_rate(mu: float, gradient: float, convexity: float, ricci: float) -> float:
    """Return the largest k with ``k gradient/sqrt(k convexity + ricci) <= mu`` (Theorem P); NaN if there is none.

    Args:
        mu: privacy parameter, above 0.
        gradient: Delta, above 0.
        convexity: m, a lower bound of the Hessian of F.
        ricci: q, a lower bound of the Ricci curvature.
    """
    # In units of mu/gradient, so that no square overflows.
    slope, bend = convexity * mu / gradient, ricci
    root = slope**2 + 4.0 * bend
    if not root >= 0.0 or (slope <= 0.0 and bend <= 0.0):
        return math.nan
    return 0.5 * mu / gradient * (slope + math.sqrt(root)) * (1.0 - _ROUNDING)


def hadamard_scale(mu: float, sensitivity: float, ricci: float) -> float:
    """Return the least sigma with N(mean, sigma^2) mu-GDP where no curvature is positive (Theorem P); NaN if none.

    Args:
        mu: privacy parameter.
        sensitivity: of the mean.
        ricci: a lower bound of the Ricci curvature, at most 0.
    """
    ratio = sensitivity / mu
    # (1 - sqrt(1 - 4 q r^2))/(2 q) without cancellation.
    root = 1.0 + 4.0 * ricci * ratio**2
    if not root >= 0.0:
        return math.nan
    return ratio * math.sqrt(2.0 / (1.0 + math.sqrt(root))) * (1.0 + _ROUNDING)


@dataclasses.dataclass(frozen=True)
class Barrier:
    """W at distance t from the centre: 0 up to ``start``, then w'(t) = (m(start) - m(t)) tan(t sqrt k)/sqrt k.

    Args:
        start: r0.
        curvature: k, the largest curvature.
        bound: m, a lower bound of the Hessian of F that falls with the distance from the centre.
        wall: further rise of w' for each unit of length beyond ``start``; at least 0.
        ridge: W has the further term ridge t^2/2, from the centre on; at least 0.
    """

    start: Any
    curvature: float
    bound: Callable[[Any], Any]
    wall: float
    ridge: float

    def slope(self, t: jax.Array) -> jax.Array:
        """Return w'(t)."""
        return self._beyond(t) + self.ridge * t

    def _beyond(self, t):
        """Return the part of w'(t) that is 0 up to ``start``."""
        root = math.sqrt(max(self.curvature, 0.0))
        tangent = jnp.tan(root * t) / root if root > 0.0 else t
        beyond = jnp.maximum(t, self.start)
        lost = jnp.maximum(self.bound(jnp.asarray(self.start)) - self.bound(beyond), 0.0)
        return lost * tangent + self.wall * (beyond - self.start)

    def bend(self, t: jax.Array, reach) -> jax.Array:
        """Return a lower bound of the Hessian of W at distance t, and beyond it up to ``reach``; it grows with t."""
        beyond = jnp.maximum(t, self.start)
        lost = jnp.maximum(self.bound(jnp.asarray(self.start)) - self.bound(beyond), 0.0)
        share = 1.0 - self.start / jnp.where(beyond > 0.0, beyond, 1.0)
        return lost + (self.wall * share + self.ridge) * h_max(reach, self.curvature)

    def largest_bend(self, reach: Any, lowest: float) -> jax.Array:
        """Return an upper bound of the Hessian of W within ``reach``, where no curvature is below ``lowest``.

        w'' grows, as the slopes of h_max fall; w' is at most t w'', and h_min(t)/t times w' bends across.
        """
        along = jax.grad(self.slope)(jnp.asarray(reach))
        return along * jnp.maximum(1.0, h_min(jnp.asarray(reach), lowest))

    def value(self, t: jax.Array) -> jax.Array:
        """Return w(t), by quadrature."""
        half = 0.5 * jnp.maximum(t - self.start, 0.0)
        nodes, weights = (jnp.asarray(own, half.dtype) for own in (_NODES, _WEIGHTS))
        beyond = half * jnp.sum(weights * self._beyond(self.start + half * (1.0 + nodes)))
        return beyond + 0.5 * self.ridge * t**2

    def gradient(self, manifold: Manifold, origin: jax.Array, x: jax.Array) -> jax.Array:
        """Return the gradient of W at x, a tangent vector; ``origin`` is the centre of the ball."""
        back = -manifold.log(x, origin)
        length = manifold.norm(x, back)
        apart = length > 0.0
        factor = jnp.where(apart, self.slope(length) / jnp.where(apart, length, 1.0), 0.0)
        return factor.astype(back.dtype) * back


@dataclasses.dataclass(frozen=True)
class PotentialGrowth:
    """A lower bound of psi(x) - psi(c) by the distance t from a centre c, as lines on intervals.

    Along a geodesic from c the second derivative of psi is at least the larger of ``least`` and the slope of
    ``hessian`` with what the barrier adds; its first derivative is at least -``pull`` at c, which need not be the
    minimiser, but for a fall of at most ``offset`` altogether (`pull_within`).

    Args:
        hessian: None where only ``least`` is known.
        added: what the barrier adds at least at distances from c up to t, a decreasing function of t.
        least: above 0.
        pull: length of the gradient of psi at c, or of its part that does not point out of the support.
        offset: largest fall of psi by the rest of the gradient.
        scale: what psi is divided by.
        manifold: of the points.
    """

    hessian: GradientGrowth | RadialGrowth | None
    added: Callable[[jax.Array], jax.Array]
    least: jax.Array
    pull: jax.Array
    offset: jax.Array
    scale: jax.Array
    manifold: Manifold

    @property
    def bulk(self) -> jax.Array:
        """Return a distance beyond which there is little mass."""
        spread = jnp.sqrt(self.scale / self.least)
        wide = math.sqrt(self.manifold.dim) + 6.0 + self.manifold.volume_growth * spread
        return spread * wide + 2.0 * self.pull / self.least

    def lines(self, lower: jax.Array, upper: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return values at ``lower`` and slopes of lines below psi - psi(c), on consecutive intervals from 0."""
        width = upper - lower
        bend = jnp.broadcast_to(jnp.asarray(self.least, width.dtype), width.shape)
        if self.hessian is not None:
            bend = jnp.maximum(bend, self.hessian.slope(upper) + self.added(upper))
        steps = jnp.cumsum(bend * width)
        first = jnp.concatenate([jnp.zeros_like(steps[:1]), steps[:-1]]) - self.pull
        rises = jnp.cumsum(first * width + 0.5 * bend * width**2)
        values = jnp.concatenate([jnp.zeros_like(rises[:1]), rises[:-1]])
        # psi lies above the parabola, which lies above its tangents: of narrow intervals that in the middle, of wide
        # ones that near their start, where the mass is.
        touch = jnp.minimum(0.5 * width, self.bulk / 48.0)
        return values - 0.5 * bend * touch**2 - self.offset, first + bend * touch


def pull_within(manifold: Manifold, origin, reach, x, gradient) -> tuple[jax.Array, jax.Array]:
    """Return how steeply psi may fall from x into the ball of radius ``reach`` about ``origin``: slope and offset.

    With u the direction away from the origin, <u, log_x y> is at most what is left to the rim, for all y of the ball,
    as distances from its centre are convex there. So near the rim the part of -gradient along u costs that at most, and
    only the rest of the gradient counts as a slope (docs/mathematics.md, section 17).
    """
    length = manifold.norm(x, gradient)
    back = -manifold.log(x, origin)
    away = manifold.norm(x, back)
    apart = (away > 0.0) & jnp.isfinite(reach)
    unit = back / jnp.where(apart, away, 1.0).astype(back.dtype)
    outward = jnp.where(apart, jnp.maximum(-manifold.inner(x, gradient, unit), 0.0), 0.0)
    rest = manifold.norm(x, gradient + outward.astype(back.dtype) * unit)
    left = jnp.where(apart, jnp.maximum(reach - away, 0.0), 0.0)
    near = apart & (left < _NEAR_RIM * reach)
    return jnp.where(near, rest, length), jnp.where(near, outward * left, 0.0)
