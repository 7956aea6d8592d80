"""Symmetric positive definite matrices with two flat metrics: log-Euclidean, and log-Cholesky.

Distances are others than the affine-invariant ones of `SPD`, and congruences are no isometries.
"""

import dataclasses
import math
from typing import final

import jax.numpy as jnp
import numpy as np

import jaxgeodp.manifolds.spd2 as spd2
import jaxgeodp.manifolds.spectral as spectral
from jaxgeodp.manifolds.flat_matrices import FlatMatrices
from jaxgeodp.manifolds.spd import cholesky_root, symmetric_basis


@final
@dataclasses.dataclass(frozen=True)
class LogEuclidean(FlatMatrices):
    """SPD matrices with the distance |Log p - Log q| (Arsigny, Fillard, Pennec & Ayache 2007).

    Matrices are a flat space then: the chart, Log, is an isometry to the symmetric matrices with the Frobenius norm.

    Args:
        size: of the matrices, at least 1; points have shape (size, size).

    Raises:
        ValueError: ``size`` is not a positive integer.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxgeodp import LogEuclidean
        >>> round(float(LogEuclidean(2).dist(jnp.eye(2), jnp.diag(jnp.array([jnp.e, jnp.e])))), 4)
        1.4142
    """

    usual_reach = 14.0
    coordinate_growth = math.sqrt(0.5)  # as of `SPD`

    def to_flat(self, point):
        """Return Log p, a symmetric matrix."""
        return self._functions.matrix_log(point)

    def from_flat(self, matrix):
        """Return the matrix exponential."""
        return self._functions.matrix_exp(matrix)

    def flat_basis(self):
        """Return an orthonormal basis (dim, size, size) of the symmetric matrices."""
        return symmetric_basis(self.size)

    @property
    def _functions(self):
        return spd2 if self.size == 2 else spectral


@final
@dataclasses.dataclass(frozen=True)
class LogCholesky(FlatMatrices):
    """SPD matrices with the log-Cholesky metric (Lin 2019).

    Matrices are a flat space then: the chart carries them to the lower triangular matrices with the Frobenius norm.

    Args:
        size: of the matrices, at least 1; points have shape (size, size).

    Raises:
        ValueError: ``size`` is not a positive integer.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxgeodp import LogCholesky
        >>> round(float(LogCholesky(2).dist(jnp.eye(2), jnp.diag(jnp.array([jnp.e, jnp.e])))), 4)
        0.7071
    """

    usual_reach = 7.0
    coordinate_growth = math.sqrt(2.0)  # matrices are squares of factors

    def to_flat(self, point):
        """Return the Cholesky factor, with its diagonal replaced by its logarithm."""
        root = cholesky_root(point)
        return jnp.tril(root, -1) + jnp.diag(jnp.log(jnp.diag(root)))

    def from_flat(self, matrix):
        """Return L L', with the diagonal of L exponentiated first."""
        root = jnp.tril(matrix, -1) + jnp.diag(jnp.exp(jnp.diag(matrix)))
        return root @ root.T

    def flat_basis(self):
        """Return an orthonormal basis (dim, size, size) of the lower triangular matrices."""
        rows, columns = np.tril_indices(self.size)
        basis = np.zeros((self.dim, self.size, self.size))
        basis[np.arange(self.dim), rows, columns] = 1.0
        return basis
