"""Closed forms for symmetric 2 x 2 matrices, smooth at equal eigenvalues.

With m = tr(A)/2 and s^2 = ((a11 - a22)/2)^2 + a12^2, the eigenvalues are m +- s and
``f(A) = (f(m+s) + f(m-s))/2 I + (f(m+s) - f(m-s))/(2s) (A - m I)``; both coefficients are even in s, hence
analytic in s^2. For the logarithm the first is log(det A)/2 and the second artanh(s/m)/s.
"""

import jax
import jax.numpy as jnp

from jaxgeodp.manifolds.analytic import cos_sqrt, log_sinhc_sqrt, log_slope, sinc_sqrt
from jaxgeodp.manifolds.newton import NewtonMoments


def matrix_log(a):
    """Return the logarithm of a symmetric positive definite 2 x 2 matrix."""
    middle, gap = _middle_and_gap(a)
    det = a[0, 0] * a[1, 1] - a[0, 1] ** 2
    slope = log_slope(middle, gap, det)
    return 0.5 * jnp.log(det) * _identity(a) + slope * (a - middle * _identity(a))


def matrix_exp(a):
    """Return the exponential of a symmetric 2 x 2 matrix."""
    middle, gap = _middle_and_gap(a)
    deviation = a - middle * _identity(a)
    return jnp.exp(middle) * (cos_sqrt(-gap) * _identity(a) + sinc_sqrt(-gap) * deviation)


def matrix_sqrt(a):
    """Return the square root of a positive definite 2 x 2 matrix, ``(A + sqrt(det) I)/sqrt(tr + 2 sqrt(det))``."""
    root = jnp.sqrt(a[0, 0] * a[1, 1] - a[0, 1] ** 2)
    return (a + root * _identity(a)) / jnp.sqrt(a[0, 0] + a[1, 1] + 2.0 * root)


def squared_log_norm(a: jax.Array, deviation: jax.Array) -> jax.Array:
    """Return ``|Log A|^2`` of A = I + E, from E where it is small (A has lost its digits), else from A."""
    half_trace, small_gap = _middle_and_gap(deviation)
    det_minus_one = 2.0 * half_trace + deviation[0, 0] * deviation[1, 1] - deviation[0, 1] ** 2
    middle, gap = _middle_and_gap(a)
    det = a[0, 0] * a[1, 1] - a[0, 1] ** 2
    near = jnp.sum(deviation**2) < 0.25
    log_det = jnp.where(near, jnp.log1p(jnp.where(near, det_minus_one, 0.0)), jnp.log(jnp.where(near, 1.0, det)))
    gap = jnp.where(near, small_gap, gap)
    middle, det = jnp.where(near, 1.0 + half_trace, middle), jnp.where(near, 1.0 + det_minus_one, det)
    return 0.5 * log_det**2 + 2.0 * gap * log_slope(middle, gap, det) ** 2


def log_sinhc_gap(a):
    """Return ``log(sinh(z)/z)``, with z half the difference of the eigenvalues."""
    return log_sinhc_sqrt(_middle_and_gap(a)[1])


def log_moments(base, points, weights):
    """Return the first two moments of the logarithms at ``base``, by two matrix-vector products.

    log_p(q) = slope(q) q + (log(det q/det p)/2 - slope(q) m(q)) p with m = tr(p^-1 q)/2, which is linear in q.
    """
    unit = _unit(base)
    base, points = base / unit, points / unit
    a, b, c = base[0, 0], 0.5 * (base[0, 1] + base[1, 0]), base[1, 1]
    det_base = a * c - b * b
    half_inverse = 0.5 / det_base * jnp.stack([c, -b, -b, a])
    flat = points.reshape(-1, 4)
    middle = flat @ half_inverse
    det = (flat[:, 0] * flat[:, 3] - (0.5 * (flat[:, 1] + flat[:, 2])) ** 2) / det_base
    gap = middle**2 - det  # may round below 0, which the series in log_slope does not mind
    slope = log_slope(middle, gap, det)
    half_log_det = 0.5 * jnp.log(det)
    along_points = ((weights * slope) @ flat).reshape(2, 2)
    along_base = weights @ (half_log_det - slope * middle)
    total = 0.5 * (along_points + along_points.T) + along_base * base
    return unit * total, weights @ (2.0 * half_log_det**2 + 2.0 * gap * slope**2)


def newton_moments(base, points, weights) -> NewtonMoments:
    """Return `log_moments` and the Newton step ``H^-1 sum_i w_i log_p(q_i)``, with the objective's exact Hessian.

    Whitened, q = m I + [[d1, d2], [d2, -d1]], linear in q. The Hessian of half the squared distance is 1 along I and
    along d, and z coth z across d, z = artanh(|d|/m) = slope |d|; so z coth z = slope m.
    """
    unit = _unit(base)
    base, points = base / unit, points / unit
    root = cholesky(base)
    one, below, two = 1.0 / root[0, 0], -root[1, 0] / (root[0, 0] * root[1, 1]), 1.0 / root[1, 1]
    # Rows: q11, q12, q21, q22; columns: m, d1, d2.
    zero = jnp.zeros_like(one)
    to_whitened = jnp.array(
        [
            [0.5 * (one**2 + below**2), 0.5 * (one**2 - below**2), one * below],
            [0.5 * below * two, -0.5 * below * two, 0.5 * one * two],
            [0.5 * below * two, -0.5 * below * two, 0.5 * one * two],
            [0.5 * two**2, -0.5 * two**2, zero],
        ]
    )
    flat = points.reshape(-1, 4)
    middle, first, second = (flat @ to_whitened).T
    det = (flat[:, 0] * flat[:, 3] - (0.5 * (flat[:, 1] + flat[:, 2])) ** 2) * (one * two) ** 2
    gap = first**2 + second**2
    slope = log_slope(middle, gap, det)
    half_log_det = 0.5 * jnp.log(det)
    across = (slope * middle - 1.0) / jnp.where(gap > 0, gap, 1.0)
    identity, along_first, along_second = weights @ half_log_det, weights @ (slope * first), weights @ (slope * second)
    square = weights @ (2.0 * half_log_det**2 + 2.0 * gap * slope**2)
    across = weights * across
    h11, h22, h12 = 1.0 + across @ second**2, 1.0 + across @ first**2, -(across @ (first * second))
    determinant = h11 * h22 - h12**2
    step_first = (h22 * along_first - h12 * along_second) / determinant
    step_second = (h11 * along_second - h12 * along_first) / determinant

    def tangent(m, d1, d2):
        return unit * (root @ jnp.array([[m + d1, d2], [d2, m - d1]]) @ root.T)

    total, step = tangent(identity, along_first, along_second), tangent(identity, step_first, step_second)
    return NewtonMoments(total, square, step, 0.0)


def harmonic_mean(points, weights):
    """Return ``(sum_i w_i q_i^-1)^-1``."""
    unit = _unit(points[0])
    flat = (points / unit).reshape(-1, 4)
    det = flat[:, 0] * flat[:, 3] - flat[:, 1] * flat[:, 2]
    adjugate = ((weights / det) @ flat).reshape(2, 2)  # of the mean inverse
    return unit * adjugate / (adjugate[0, 0] * adjugate[1, 1] - adjugate[0, 1] * adjugate[1, 0])


def cholesky(a):
    """Return the lower triangular Cholesky factor; NaN if the matrix is not positive definite."""
    off = 0.5 * (a[0, 1] + a[1, 0])
    first = jnp.sqrt(a[0, 0])
    below = off / first
    return jnp.array([[first, jnp.zeros_like(first)], [below, jnp.sqrt(a[1, 1] - below**2)]])


def whiten(root, x):
    """Return ``L^-1 x L^-T`` for lower triangular L."""
    one, off, two = 1.0 / root[0, 0], root[1, 0], 1.0 / root[1, 1]
    inverse = jnp.array([[one, jnp.zeros_like(one)], [-off * one * two, two]])
    product = inverse @ (0.5 * (x + x.T)) @ inverse.T
    return 0.5 * (product + product.T)


def _unit(a: jax.Array) -> jax.Array:
    """Return a power of two of the size of the entries: no determinant of what is divided by it underflows."""
    size = jax.lax.stop_gradient(a[0, 0] + a[1, 1])
    return jnp.ldexp(jnp.ones_like(size), jnp.frexp(size)[1])


def _identity(a):
    return jnp.eye(2, dtype=a.dtype)


def _middle_and_gap(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    return 0.5 * (a[0, 0] + a[1, 1]), (0.5 * (a[0, 0] - a[1, 1])) ** 2 + a[0, 1] ** 2
