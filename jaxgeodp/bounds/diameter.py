"""T_1(r, R): the largest diameter of log_x(B_r(p0)) over x in B_R(p0) on the unit 2-sphere, as an upper bound.

It is n times the sensitivity of the gradient of the Frechet function on every manifold of curvature at
most 1 (docs/mathematics.md, Theorem B). The boundary circle of the ball is sampled at equal angles and x
at a distance t from p0; three rigorous margins turn the maximum over samples into an upper bound:

- along the circle, the curve log_x(a(alpha)) stays within ``L2 step^2 / 8`` of its chords, with
  |d^2/d alpha^2 log_x(a)| <= L2;
- in t, the difference of two logarithms changes at most at the rate ``1 - h`` (their derivatives are two
  Hessians with eigenvalues in [h, 1], h = s cot s, s = r + R);
- an allowance for rounding.
"""

import functools
import math

import numpy as np

from jaxgeodp.checks import InputError

_SAMPLES = 1024
_ROUNDING = 1e-12
_INTERVALS = 8
_MOST_INTERVALS = 256


@functools.lru_cache(maxsize=256)
def log_diameter(ball_radius: float, reach: float, tolerance: float = 2e-5) -> float:
    """Return an upper bound of T_1(r, R), within a relative ``tolerance`` of it or of its sampling margin.

    Args:
        ball_radius: r, in (0, pi/4].
        reach: R, in (0, pi/2).

    Raises:
        ValueError: the radii are outside these ranges.
    """
    if not (0 < ball_radius <= math.pi / 4 and 0 < reach < math.pi / 2):
        raise InputError(f"log_diameter: needs 0 < r <= pi/4 and 0 < R < pi/2, got r={ball_radius}, R={reach}.")
    rate = 1.0 - (ball_radius + reach) / math.tan(ball_radius + reach)
    best = sampled_diameter(reach, ball_radius)
    intervals = [(0.0, reach)]
    # Branch and bound in t: keep the intervals whose upper bound could still exceed the best sample.
    while True:
        target = best * (1.0 + tolerance)
        survivors = []
        for low, high in intervals:
            for piece in np.linspace(low, high, _INTERVALS + 1)[:-1]:
                width = (high - low) / _INTERVALS
                value = sampled_diameter(piece + 0.5 * width, ball_radius)
                best = max(best, value)
                if value + 0.5 * rate * width > target:
                    survivors.append((piece, piece + width))
        intervals = survivors
        if not intervals:
            break
        if len(intervals) > _MOST_INTERVALS:  # tiny radii: what is known so far, which Rauch's theorem then betters
            width = intervals[0][1] - intervals[0][0]
            target = best + 0.5 * rate * width  # no sample in an interval exceeds the best
            break
    sagitta = _second_derivative_bound(ball_radius, reach) * (2.0 * math.pi / _SAMPLES) ** 2 / 8.0
    return max(target, best) + 2.0 * sagitta + _ROUNDING


def sampled_diameter(t: float, ball_radius: float, samples: int = _SAMPLES) -> float:
    """Return the largest distance between the logarithms, at distance t from the centre, of the sampled circle."""
    alpha = 2.0 * math.pi * np.arange(samples) / samples
    sin_r, cos_r = math.sin(ball_radius), math.cos(ball_radius)
    # x = (sin t, 0, cos t); the tangent plane at x is spanned by (cos t, 0, -sin t) and (0, 1, 0).
    along = math.cos(t) * sin_r * np.cos(alpha) - math.sin(t) * cos_r
    across = sin_r * np.sin(alpha)
    cosine = math.sin(t) * sin_r * np.cos(alpha) + math.cos(t) * cos_r
    sine = np.hypot(along, across)
    factor = np.where(sine > 1e-9, np.arctan2(sine, cosine) / np.where(sine > 1e-9, sine, 1.0), 1.0)
    curve = (factor * (along + 1j * across)).astype(complex)
    # By the mirror symmetry one of the two points may be taken in the upper half circle.
    half = curve[: samples // 2 + 1]
    return float(np.max(np.abs(half[:, None] - curve[None, :])))


def _second_derivative_bound(ball_radius: float, reach: float) -> float:
    """Return a bound of |d^2/d alpha^2 log_x(a(alpha))| for all t <= R.

    log_x(a) = g(c) P a with c = <x, a>, P the projection onto T_x and g(c) = arccos(c)/sqrt(1 - c^2), a power
    series in 1 - c with positive coefficients, so that |g|, |g'|, |g''| are largest at c = cos(r + R).
    |c'|, |c''| <= sin R sin r; |Pa'|, |Pa''| <= sin r; |Pa| <= 1.
    """
    s = ball_radius + reach
    c, complement = math.cos(s), math.sin(s) ** 2
    g = s / math.sin(s)
    slope = (c * g - 1.0) / complement
    bend = (g + c * slope + 2.0 * c * slope) / complement
    speed = math.sin(reach) * math.sin(ball_radius)
    rim = math.sin(ball_radius)
    return bend * speed**2 + abs(slope) * speed + 2.0 * abs(slope) * speed * rim + g * rim
