"""Scalar functions that are analytic in a *squared* length.

Geodesic formulas are full of ``sin(t)/t`` and ``arctan2``. As functions of ``t`` they are awkward at
``t = 0``; as functions of ``t**2`` they are analytic there. Each function below takes the square and
switches to its power series for small arguments, so that values, gradients and Hessians are finite and
accurate at coincident points in float32 and float64 (``jnp.where`` is fed a safe argument in the branch
that is not taken, because JAX differentiates both).
"""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp

_COS = [(-1.0) ** j / math.factorial(2 * j) for j in range(10)]
_SINC = [(-1.0) ** j / math.factorial(2 * j + 1) for j in range(10)]
_ARCSINC = [math.comb(2 * j, j) / 4.0**j / (2 * j + 1) for j in range(18)]
_ARCTANHC = [1.0 / (2 * j + 1) for j in range(18)]


def cos_sqrt(x: jax.Array) -> jax.Array:
    """Return ``cos(sqrt(x))``, continued to ``cosh(sqrt(-x))`` for negative ``x``."""
    root = jnp.sqrt(_away_from_zero(jnp.abs(x), 1.0))
    closed = jnp.where(x > 0, jnp.cos(root), jnp.cosh(jnp.where(x > 0, 1.0, root)))
    return _series_below(jnp.abs(x), 1.0, _COS, x, closed)


def sinc_sqrt(x: jax.Array) -> jax.Array:
    """Return ``sin(sqrt(x)) / sqrt(x)``, continued to ``sinh(sqrt(-x)) / sqrt(-x)`` for negative ``x``."""
    root = jnp.sqrt(_away_from_zero(jnp.abs(x), 1.0))
    closed = jnp.where(x > 0, jnp.sin(root), jnp.sinh(jnp.where(x > 0, 1.0, root))) / root
    return _series_below(jnp.abs(x), 1.0, _SINC, x, closed)


def log_sinhc_sqrt(x: jax.Array) -> jax.Array:
    """Return ``log(sinh(sqrt(x)) / sqrt(x))`` for ``x >= 0``; does not overflow for large ``x``."""
    root = jnp.sqrt(_away_from_zero(x, 1.0))
    closed = root + jnp.log1p(-jnp.exp(-2.0 * root)) - jnp.log(2.0 * root)
    small = x < 1.0
    return jnp.where(small, jnp.log(sinc_sqrt(-jnp.where(small, x, 0.0))), closed)


def arcsinhc_sqrt(x: jax.Array) -> jax.Array:
    """Return ``arsinh(sqrt(x)) / sqrt(x)``, continued analytically to small negative ``x``."""
    small = x < 0.1
    root = jnp.sqrt(jnp.where(small, 1.0, x))
    series = _polynomial(_ARCSINC, jnp.where(small, -x, 0.0))
    return jnp.where(small, series, jnp.arcsinh(root) / root)


def log_slope(middle: jax.Array, gap: jax.Array, product: jax.Array) -> jax.Array:
    """Return ``(log(m + s) - log(m - s)) / (2 s)`` from m, ``s**2`` and ``m**2 - s**2``, for ``0 <= s < m``."""
    ratio = gap / middle**2
    small = ratio < 0.1
    series = _polynomial(_ARCTANHC, jnp.where(small, ratio, 0.0)) / middle
    s = jnp.sqrt(jnp.where(small, 1.0, gap))
    return jnp.where(small, series, jnp.log((middle + s) / jnp.sqrt(product)) / s)


def angle_over_sine(sine_squared: jax.Array, cosine: jax.Array) -> jax.Array:
    """Return ``theta / sin(theta)`` from ``sin(theta)**2`` and ``cos(theta)``, for ``0 <= theta < pi``.

    At ``theta = pi`` (the cut locus of a sphere) the value is large but finite.
    """
    sine = jnp.sqrt(_positive(_away_from_zero_if(sine_squared, _is_small(sine_squared, cosine))))
    closed = jnp.arctan2(sine, cosine) / sine
    return _near_zero_angle(sine_squared, cosine, closed, power=1)


def angle_over_sine_of_cosine(cosine: jax.Array) -> jax.Array:
    """Return ``theta / sin(theta)`` from ``cos(theta)`` by three half-angle steps, without branch or arctan.

    For data-sized work. The ratio is analytic in the cosine at 1, so the cosine's rounding error is harmless here
    (a *distance* from the cosine would lose half its digits; use `squared_angle`).
    """
    half = jnp.sqrt(_positive(0.5 + 0.5 * cosine))
    quarter = jnp.sqrt(0.5 + 0.5 * half)
    eighth = jnp.sqrt(0.5 + 0.5 * quarter)
    # Of theta / 8; not clipped at 0, where a maximum would halve the derivative at coincident points.
    sine_squared = (1.0 - cosine) / (8.0 * (1.0 + half) * (1.0 + quarter))
    return _polynomial(_ARCSINC, sine_squared) / (half * quarter * eighth)


def opposite(cosine: jax.Array) -> jax.Array:
    """Return whether an angle is pi up to rounding of its cosine, so that its direction is only rounding."""
    return cosine < -1.0 + 8.0 * jnp.finfo(cosine.dtype).eps


def squared_angle(sine_squared: jax.Array, cosine: jax.Array) -> jax.Array:
    """Return ``theta**2`` from ``sin(theta)**2`` and ``cos(theta)``; smooth at ``theta = 0``, never by arccos."""
    sine = jnp.sqrt(_positive(_away_from_zero_if(sine_squared, _is_small(sine_squared, cosine))))
    closed = jnp.arctan2(sine, cosine) ** 2
    return _near_zero_angle(sine_squared, cosine, closed, power=2)


def safe_sqrt(x: jax.Array) -> jax.Array:
    """Return ``sqrt(x)`` with the subgradient 0 instead of infinity at ``x <= 0``; NaN stays NaN."""
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1.0)), 0.0 * x)


def _is_small(sine_squared: jax.Array, cosine: jax.Array) -> jax.Array:
    return (sine_squared < 0.1) & (cosine > 0)


def _near_zero_angle(sine_squared: jax.Array, cosine: jax.Array, closed: jax.Array, power: int) -> jax.Array:
    small = _is_small(sine_squared, cosine)
    argument = jnp.where(small, sine_squared, 0.0)
    arcsinc = _polynomial(_ARCSINC, argument)
    return jnp.where(small, arcsinc if power == 1 else argument * arcsinc**2, closed)


def _away_from_zero(x: jax.Array, threshold: float) -> jax.Array:
    return jnp.where(x < threshold, jnp.ones_like(x), x)


def _away_from_zero_if(x: jax.Array, small: jax.Array) -> jax.Array:
    return jnp.where(small, jnp.ones_like(x), x)


def _positive(x: jax.Array) -> jax.Array:
    # At the cut locus the sine vanishes while the angle does not: keep 1/sine and its derivative finite.
    return jnp.maximum(x, jnp.finfo(x.dtype).eps ** 2)


def _series_below(
    size: jax.Array, threshold: float, coefficients: Sequence[float], x: jax.Array, closed: jax.Array
) -> jax.Array:
    small = size < threshold
    return jnp.where(small, _polynomial(coefficients, jnp.where(small, x, 0.0)), closed)


def _polynomial(coefficients: Sequence[float], x: jax.Array) -> jax.Array:
    total = jnp.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total
