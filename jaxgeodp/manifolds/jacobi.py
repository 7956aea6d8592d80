"""Batched eigendecomposition of positive definite matrices of sizes 4 to 8, by one-sided Jacobi rotations.

One-sided Jacobi rotations (Golub & Van Loan, Matrix Computations, 8.6) on a factor: with ``A = G G'`` turning pairs
of columns makes the columns of G orthogonal; then their squared lengths are the eigenvalues of A, their directions the
eigenvectors. Disjoint pairs are rotated at once, in the order of a round robin, and the matrices stand side by side on
the last axis, so that each step is one operation on long arrays, where LAPACK takes one matrix after the other.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

#: Sizes for which means are faster than by LAPACK (benchmarks/README.md).
SIZES = range(4, 9)
# Sweeps converge quadratically: five to eight reach rounding.
_MOST_SWEEPS = 15
# Matrices that are treated at once: what fits into a cache.
_CHUNK = 128


class Eigen(NamedTuple):
    """Eigenvalues and eigenvectors of n matrices, in no particular order."""

    values: jax.Array  #: (k, n)
    vectors: jax.Array  #: (k, k, n): which, then its entries


class _Sweep(NamedTuple):
    idle: jax.Array  # the column that has no partner, if k is odd: (1, k, n), else (0, k, n)
    top: jax.Array  # partners of
    bottom: jax.Array  # these
    worst: jax.Array  # (n,): the largest squared cosine of two columns met


def eigen_of_many(matrices: jax.Array) -> Eigen:
    """Return eigenvalues and eigenvectors of positive definite matrices (n, k, k); NaN where not positive definite."""
    count, size = matrices.shape[:2]
    if count <= 2 * _CHUNK:
        return _eigen(matrices)
    lacking = -count % _CHUNK
    unit = jnp.broadcast_to(jnp.eye(size, dtype=matrices.dtype), (lacking, size, size))
    chunks = jnp.concatenate([matrices, unit]).reshape(-1, _CHUNK, size, size)
    values, vectors = jax.lax.map(_eigen, chunks)
    values, vectors = jnp.moveaxis(values, 0, 1), jnp.moveaxis(vectors, 0, 2)
    return Eigen(values.reshape(size, -1)[:, :count], vectors.reshape(size, size, -1)[:, :, :count])


def _eigen(matrices) -> Eigen:
    columns = _factor(jnp.moveaxis(matrices, 0, -1))
    size, count = columns.shape[0], columns.shape[-1]
    odd, half = size % 2, size // 2
    start = _Sweep(columns[:odd], columns[odd : odd + half], columns[odd + half :], jnp.ones(count, columns.dtype))
    enough = (45.0 * float(jnp.finfo(columns.dtype).eps)) ** 2

    def unfinished(state):
        sweeps, own = state
        return (sweeps < _MOST_SWEEPS) & jnp.any(own.worst > enough)  # not for NaN

    def sweep(state):
        sweeps, own = state
        own = own._replace(worst=jnp.zeros_like(own.worst))
        return sweeps + 1, jax.lax.fori_loop(0, size - 1 + odd, _round, own)

    own = jax.lax.while_loop(unfinished, sweep, (0, start))[1]
    columns = jnp.concatenate([own.idle, own.top, own.bottom])
    squares = jnp.sum(columns**2, axis=1)
    return Eigen(squares, columns / jnp.sqrt(squares)[:, None])


def _round(_, own: _Sweep) -> _Sweep:
    """Rotate all pairs of columns, then move the columns on to their next partners."""
    top, bottom, cosines = _rotated(own.top, own.bottom)
    worst = jnp.maximum(own.worst, cosines)
    if own.idle.shape[0]:
        idle, first, second = bottom[:1], [own.idle, top[:-1]], [bottom[1:], top[-1:]]
    else:
        idle, first, second = own.idle, [bottom[1:2], top[:-1]], [bottom[:1], bottom[2:], top[-1:]]
    return _Sweep(idle, jnp.concatenate(first), jnp.concatenate(second), worst)


def _rotated(x, y):
    """Return columns x and y (p, k, n) rotated to orthogonality, and the largest squared cosine before."""
    of_x, of_y, of_both = jnp.sum(x * x, axis=1), jnp.sum(y * y, axis=1), jnp.sum(x * y, axis=1)
    difference = of_y - of_x
    denominator = jnp.abs(difference) + jnp.sqrt(difference**2 + 4.0 * of_both**2)
    signed = jnp.where(difference < 0, -2.0, 2.0) * of_both
    tangent = signed / jnp.where(denominator > 0, denominator, 1.0)
    cosine = 1.0 / jnp.sqrt(1.0 + tangent**2)
    sine = (tangent * cosine)[:, None]
    cosine = cosine[:, None]
    worst = jnp.max(of_both / of_x * (of_both / of_y), axis=0)
    return cosine * x - sine * y, sine * x + cosine * y, worst


def _factor(matrices):
    """Return the columns (k, k, n) of the Cholesky factors of matrices (k, k, n)."""
    size, rest, columns = matrices.shape[0], matrices, []
    lower = jnp.tril(jnp.ones((size, size), matrices.dtype))
    for j in range(size):
        column = lower[:, j, None] * rest[:, j] / jnp.sqrt(rest[j, j])
        columns.append(column)
        rest = rest - column[:, None] * column[None, :]
    return jnp.stack(columns)
