"""Symmetric 3 x 3 matrices without LAPACK: Jacobi rotations, unrolled Cholesky factors and whitening.

One rotation in the plane (p, q) by the angle with ``tan = sgn(d) 2 a_pq/(|d| + sqrt(d^2 + 4 a_pq^2))``,
d = a_qq - a_pp, makes a_pq zero; cycling through the three planes converges quadratically, equal eigenvalues or not
(Golub & Van Loan, Matrix Computations, 8.5). The textbook cosine formula for the roots of the characteristic
polynomial would be shorter, but loses half the digits of nearly equal eigenvalues, and all of a small one's. A fixed
number of sweeps has no branch, so that a batch runs as arithmetic on arrays of its length.
"""

import jax
import jax.numpy as jnp

# Four sweeps reach rounding level in both precisions (measured, tests/inner/test_spd3.py); one to spare.
_SWEEPS = 5


def eigh(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return eigenvalues (3,), unordered, and eigenvectors (columns of a 3 x 3 array) of a symmetric matrix."""
    size = jnp.max(jnp.abs(a))
    scale = jnp.where(size > 0, size, 1.0)  # no overflow or underflow of squares
    one, zero = jnp.ones_like(scale), jnp.zeros_like(scale)
    entries = tuple(a[i, j] / scale for i, j in ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)))
    columns = ((one, zero, zero), (zero, one, zero), (zero, zero, one))
    (first, second, third, *_), columns = jax.lax.fori_loop(0, _SWEEPS, _sweep, (entries, columns))
    return scale * jnp.stack([first, second, third]), jnp.stack([jnp.stack(column) for column in columns], axis=1)


def cholesky(a: jax.Array) -> jax.Array:
    """Return the lower triangular Cholesky factor; NaN if the matrix is not positive definite."""
    zero = jnp.zeros_like(a[0, 0])
    first = jnp.sqrt(a[0, 0])
    second_first, third_first = 0.5 * (a[0, 1] + a[1, 0]) / first, 0.5 * (a[0, 2] + a[2, 0]) / first
    second = jnp.sqrt(a[1, 1] - second_first**2)
    third_second = (0.5 * (a[1, 2] + a[2, 1]) - third_first * second_first) / second
    third = jnp.sqrt(a[2, 2] - third_first**2 - third_second**2)
    return jnp.array([[first, zero, zero], [second_first, second, zero], [third_first, third_second, third]])


def inverse_of_lower(root: jax.Array) -> jax.Array:
    """Return ``L^-1`` for lower triangular L."""
    zero = jnp.zeros_like(root[0, 0])
    first, second, third = 1.0 / root[0, 0], 1.0 / root[1, 1], 1.0 / root[2, 2]
    second_first = -root[1, 0] * first * second
    third_second = -root[2, 1] * second * third
    third_first = -(root[2, 0] * first + root[2, 1] * second_first) * third
    return jnp.array([[first, zero, zero], [second_first, second, zero], [third_first, third_second, third]])


def whiten(root: jax.Array, x: jax.Array) -> jax.Array:
    """Return ``L^-1 x L^-T`` for lower triangular L, symmetric."""
    inverse = inverse_of_lower(root)
    product = inverse @ (0.5 * (x + x.T)) @ inverse.T
    return 0.5 * (product + product.T)


def _sweep(_, state):
    """Rotate once in each plane, permuting the axes cyclically so that one rule serves all."""
    entries, columns = state
    for _ in range(3):
        entries, columns = _rotate(entries, columns)
        (a11, a22, a33, a23, a13, a12), (first, second, third) = entries, columns
        entries, columns = (a22, a33, a11, a13, a12, a23), (second, third, first)
    return entries, columns


def _rotate(entries, columns):
    """Make the entry of the first two axes zero."""
    a11, a22, a33, a23, a13, a12 = entries
    difference = a22 - a11
    denominator = jnp.abs(difference) + jnp.sqrt(difference**2 + 4.0 * a12**2)
    signed = jnp.where(difference < 0, -2.0, 2.0) * a12
    tangent = signed / jnp.where(denominator > 0, denominator, 1.0)
    cosine = 1.0 / jnp.sqrt(1.0 + tangent**2)
    sine = tangent * cosine
    first, second, third = columns
    turned = (
        tuple(cosine * x - sine * y for x, y in zip(first, second, strict=True)),
        tuple(sine * x + cosine * y for x, y in zip(first, second, strict=True)),
        third,
    )
    shift = tangent * a12
    rotated_13, rotated_23 = cosine * a13 - sine * a23, sine * a13 + cosine * a23
    return (a11 - shift, a22 + shift, a33, rotated_23, rotated_13, jnp.zeros_like(a12)), turned
