"""Random symmetric matrices with norm-based densities, exact without rejection (docs/mathematics.md, Theorem X).

Two densities on symmetric matrices of k rows, with respect to Lebesgue's measure of the entries on and above the
diagonal, for noise on second moments:

- `nuclear_noise`: exp(-|A|_*), the *nuclear norm* being the sum of the absolute values of eigenvalues;
- `hull_noise`: exp(-|A|_h), the *hull norm* max(tr A+, tr A-) being the larger one of the sum of the positive and
  that of the negative eigenvalues, (|A|_* + |tr A|)/2. Its unit ball is the convex hull of all vv' - ww' with v and w
  in the unit ball, whose nuclear norm is up to 2: for equal privacy it
  has the smaller noise in all dimensions that were measured (docs/inference.md).

A draw chooses a law from `spectral_table`, makes a triangular matrix with independent entries, and rotates its square
with signs. The number of operations is the same for all draws.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.samplers.spectral_table import SpectralTable, spectral_table


def nuclear_noise(key: jax.Array, num: int, dim: int, dtype: Any = float) -> jax.Array:
    """Return independent symmetric matrices of density exp(-|A|_*), the nuclear norm (d'Orsi & Novikov 2026).

    Args:
        key: JAX random key.
        num: how many.
        dim: rows of a matrix, from 1 to `spectral_table.LARGEST`.
        dtype: of floating point.

    Returns:
        (num, dim, dim); the norms are Gamma variables of shape dim (dim + 1)/2.

    Raises:
        ValueError: ``dim`` is out of range.

    Example:
        >>> import jax
        >>> from jaxgeodp.samplers import nuclear_noise
        >>> nuclear_noise(jax.random.key(0), 10, 3).shape
        (10, 3, 3)
    """
    return _nuclear(key, num, spectral_table(dim).freedom.shape[1], dtype)


def hull_noise(key: jax.Array, num: int, dim: int, dtype: Any = float) -> jax.Array:
    """Return independent symmetric matrices of density exp(-max(tr A+, tr A-)), A+ and A- the signed parts of A.

    Args:
        key: JAX random key.
        num: how many.
        dim: rows of a matrix, from 1 to `spectral_table.LARGEST`.
        dtype: of floating point.

    Returns:
        (num, dim, dim); the norms are Gamma variables of shape dim (dim + 1)/2.

    Raises:
        ValueError: ``dim`` is out of range.

    Example:
        >>> import jax
        >>> from jaxgeodp.samplers import hull_norm, hull_noise
        >>> draws = hull_noise(jax.random.key(0), 1000, 3)
        >>> 5.5 < float(jax.vmap(hull_norm)(draws).mean()) < 6.5
        True
    """
    return _hull(key, num, spectral_table(dim).freedom.shape[1], dtype)


def hull_norm(matrix) -> jax.Array:
    """Return max(tr A+, tr A-): the larger of the sums of positive and of absolute negative eigenvalues.

    Args:
        matrix: symmetric, (dim, dim).

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxgeodp.samplers import hull_norm
        >>> float(hull_norm(jnp.diag(jnp.array([2.0, 1.0, -4.0]))))
        4.0
    """
    values = jnp.linalg.eigvalsh(matrix)
    return jnp.maximum(jnp.sum(jnp.maximum(values, 0.0)), -jnp.sum(jnp.minimum(values, 0.0)))


def hull_mean_square(dim: int) -> float:
    """Return the expected squared Frobenius norm of `hull_noise`.

    Args:
        dim: rows of a matrix, from 1 to `spectral_table.LARGEST`.

    Raises:
        ValueError: ``dim`` is out of range.

    Example:
        >>> from jaxgeodp.samplers.spectral import hull_mean_square
        >>> round(hull_mean_square(1), 12)  # of a Laplace variable
        2.0
    """
    table, whole = spectral_table(dim), dim * (dim + 1) // 2
    total = 0.0
    for size, first in ((table.size, True), (whole - table.size, False)):
        # A part has the whole norm with probability size/whole, else that times U^(1/size).
        square = (whole + 1.0) * size * (1.0 + (whole - size) / (size + 2.0))
        own = (np.arange(dim) < table.positive[:, None]) == first
        total += float(table.hull @ (square * _square_per_trace(table.freedom / 2.0, own, size)))
    return total


def _square_per_trace(shape, own, size):
    """Return E tr X^2/(tr X)^2 for X = L L', the part with rows ``own``; 0 if it is empty."""
    diagonal = np.where(own, shape, 0.0)
    before = np.cumsum(own, axis=1) - own  # rows of the part above
    squares = np.where(own, (shape + 0.5 * before) ** 2 + shape + 0.5 * before, 0.0)
    below = np.sum(own, axis=1, keepdims=True) - before - 1
    # Entries of X below the diagonal are sums of products of entries of L, whose squares have the mean 1/2 or shape.
    products = 2.0 * np.where(own, below * (0.25 * before + 0.5 * diagonal), 0.0)
    return np.sum(squares + products, axis=1) / np.maximum(size * (size + 1.0), 1.0)


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _nuclear(key, num, dim, dtype):
    table = spectral_table(dim)
    uniform, normal = _random(key, num, 2, table, dtype)
    first, squares = _squares(normal, table, _chosen(uniform[:, 0], table.nuclear))
    return _rotated(normal, uniform[:, 1], first, squares)


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _hull(key, num, dim, dtype):
    table = spectral_table(dim)
    uniform, normal = _random(key, num, 4 + dim * (dim + 1) // 2, table, dtype)
    chosen = _chosen(uniform[:, 0], table.hull)
    first, squares = _squares(normal, table, chosen)
    diagonal, factors = jnp.diagonal(squares, axis1=1, axis2=2), jnp.zeros(first.shape, dtype)
    for own, trace in zip((first, ~first), _traces(uniform[:, 2:], table, chosen), strict=True):
        drawn = jnp.sum(own * diagonal, axis=1)
        drawn = jnp.asarray(jnp.where(drawn > 0.0, drawn, 1.0))  # there may be no first part
        factors += own * (trace / drawn)[:, None]
    return _rotated(normal, uniform[:, 1], first, factors[:, :, None] * squares)


def _random(key, num, count, table: SpectralTable, dtype):
    """Return uniforms in [0, 1), (num, count), and the normal numbers of `_squares` and `_rotated`.

    In two calls, as each takes a third of a second to compile.
    """
    dim, most = table.freedom.shape[1], int(table.freedom.max())
    of_uniform, of_normal = jax.random.split(key)
    normal = jax.random.normal(of_normal, (num, dim, 2 * dim + most), dtype)
    return jax.random.uniform(of_uniform, (num, count), dtype), normal


def _chosen(uniform, probabilities):
    """Draw places (num,) in the table with these probabilities, given uniform numbers."""
    below = jnp.asarray(np.cumsum(probabilities), uniform.dtype)
    return jnp.minimum(jnp.searchsorted(below, uniform * below[-1], side="right"), len(probabilities) - 1)


def _squares(normal, table: SpectralTable, chosen):
    """Return the rows of the first part, (num, dim), and L L' with L of `SpectralTable`, (num, dim, dim)."""
    dim = table.freedom.shape[1]
    first = jnp.arange(dim) < jnp.asarray(table.positive)[chosen][:, None]
    together = (first[:, :, None] == first[:, None, :]) & jnp.tri(dim, k=-1, dtype=bool)
    lower = jnp.asarray(jnp.where(together, normal[:, :, :dim], 0.0))
    # Chi-square variables as sums of squares, of which there are few (jax.random.gamma compiles for seconds).
    freedom = jnp.asarray(table.freedom)[chosen][:, :, None]
    counted = jnp.where(jnp.arange(normal.shape[2] - 2 * dim) < freedom, 1.0, 0.0).astype(normal.dtype)
    chi_square = jnp.sum(counted * normal[:, :, 2 * dim :] ** 2, axis=2)
    lower += jnp.sqrt(chi_square)[:, :, None] * jnp.eye(dim, dtype=normal.dtype)
    return first, 0.5 * lower @ jnp.swapaxes(lower, 1, 2)


def _traces(uniform, table: SpectralTable, chosen):
    """Return the traces of both parts of hull noise; the larger is the norm, a sum of exponentials."""
    exponential = -jnp.log1p(-uniform)
    whole, norm = uniform.shape[1] - 2, jnp.sum(exponential[:, 2:], axis=1)
    size = jnp.asarray(table.size, uniform.dtype)[chosen]
    first_is_larger = whole * uniform[:, 0] < size
    # U^(1/size) = exp(-E/size); where there is no first part, nothing has this trace.
    smaller_size = jnp.asarray(jnp.where(first_is_larger, whole - size, jnp.maximum(size, 1.0)))
    smaller = norm * jnp.exp(-exponential[:, 1] / smaller_size)
    return jnp.where(first_is_larger, norm, smaller), jnp.where(first_is_larger, smaller, norm)


def _rotated(normal, uniform, first, squares):
    """Return H S H' with random orthogonal H, S = L diag(1, ..., 1, -1, ..., -1) L' of random sign."""
    dim = first.shape[1]
    orthogonal, triangular = jnp.linalg.qr(normal[:, :, dim : 2 * dim])
    turns = jnp.where(jnp.diagonal(triangular, axis1=1, axis2=2) < 0.0, -1.0, 1.0)
    rotation = orthogonal * turns.astype(normal.dtype)[:, None, :]
    signs = jnp.where(first == (uniform < 0.5)[:, None], 1.0, -1.0).astype(normal.dtype)
    matrices = rotation @ (signs[:, :, None] * squares) @ jnp.swapaxes(rotation, 1, 2)
    return 0.5 * (matrices + jnp.swapaxes(matrices, 1, 2))
