"""Symmetric and Hermitian matrices as real vectors of the same length, and back."""

import jax
import jax.numpy as jnp
import numpy as np


def symmetric_vector(matrix) -> jax.Array:
    """Return the diagonal and sqrt(2) times the entries above it, (n(n+1)/2,), with the Frobenius norm."""
    rows, columns = np.triu_indices(matrix.shape[0], 1)
    return jnp.concatenate([jnp.diagonal(matrix), np.sqrt(2.0) * matrix[rows, columns]])


def symmetric_matrix(vector, n: int) -> jax.Array:
    """Return the matrix (n, n) of `symmetric_vector`."""
    rows, columns = np.triu_indices(n, 1)
    above = jnp.zeros((n, n), vector.dtype).at[rows, columns].set(vector[n:] / np.sqrt(2.0))
    return jnp.diag(vector[:n]) + above + above.T


def hermitian_vector(matrix) -> jax.Array:
    """Return the diagonal, and sqrt(2) times real and imaginary parts above it, (n^2,)."""
    rows, columns = np.triu_indices(matrix.shape[0], 1)
    imaginary = np.sqrt(2.0) * jnp.imag(matrix)[rows, columns]
    return jnp.concatenate([symmetric_vector(jnp.real(matrix)), imaginary])


def hermitian_matrix(vector, n: int) -> jax.Array:
    """Return the complex matrix (n, n) of `hermitian_vector`."""
    rows, columns = np.triu_indices(n, 1)
    real = n * (n + 1) // 2
    above = jnp.zeros((n, n), vector.dtype).at[rows, columns].set(vector[real:] / np.sqrt(2.0))
    return jax.lax.complex(symmetric_matrix(vector[:real], n), above - above.T)
