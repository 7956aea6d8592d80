"""Correlation matrices with the off-log metric (Archakov & Hansen 2021; Thanwerdas & Pennec 2022).

The chart is what is off the diagonal of the logarithm, ``S = off(Log C)``: every symmetric S with zeros on its diagonal
is that of exactly one correlation matrix, ``C = Exp(S + diag(d))``. d is found by Newton steps, and its derivatives by
the implicit function theorem (docs/mathematics.md, section 24).
"""

import dataclasses
import math
from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

import jaxgeodp.manifolds.spectral as spectral
from jaxgeodp.checks import positive_integer
from jaxgeodp.manifolds.flat_matrices import FlatMatrices
from jaxgeodp.manifolds.operations import fact, operation
from jaxgeodp.manifolds.spd import SPD

# Up to |S| = 10, conditions up to e^20, 5 to 9 reach rounding (measured, tests/test_correlations.py).
_STEPS = 12
# A record is no correlation matrix where its diagonal is further from 1, or the ratio of its eigenvalues smaller.
_OF_DIAGONAL, _SINGULAR = 1e-6, 1e-10


@final
@dataclasses.dataclass(frozen=True)
class Correlations(FlatMatrices):
    """Correlation matrices, of full rank, with the distance ``|off(Log p) - off(Log q)|``.

    They are a flat space then: ``off(Log p)``, the logarithm without its diagonal, takes all values. For size 2 it is
    Fisher's z, atanh of the correlation. Permutations and changes of sign of variables are isometries.

    A record of lower rank, as that of fewer time points than variables, is no point: shrink every record towards the
    identity by a public amount.

    Args:
        size: of the matrices, at least 2; points have shape (size, size).

    Raises:
        ValueError: ``size`` is not an integer above 1.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxgeodp import Correlations, frechet_mean
        >>> pair = jnp.array([[[1.0, 0.9], [0.9, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
        >>> round(float(frechet_mean(Correlations(2), pair)[0, 1]), 3)  # tanh(atanh(.9)/2)
        0.627
    """

    usual_reach = 10.0

    def __post_init__(self):
        positive_integer("Correlations", "size", self.size, minimum=2)

    @fact
    @override
    def dim(self) -> int:
        """``size (size - 1) / 2``."""
        return self.size * (self.size - 1) // 2

    @fact
    def coordinate_growth(self) -> float:
        """``sqrt(1/2) + sqrt((size - 1)/8)``; see docs/mathematics.md, section 24."""
        return math.sqrt(0.5) + math.sqrt((self.size - 1) / 8.0)

    def to_flat(self, point):
        """Return Log C with its diagonal set to zero."""
        if self.size == 2:
            return _of_one_number(jnp.arctanh(0.5 * (point[0, 1] + point[1, 0])), jnp.zeros_like(point[0, 0]))
        return _off(spectral.matrix_log(point))

    def from_flat(self, matrix):
        """Return the correlation matrix with this off-diagonal logarithm."""
        if self.size == 2:
            value = 0.5 * (matrix[0, 1] + matrix[1, 0])
            return _of_one_number(jnp.tanh(value), jnp.ones_like(value))
        flat = _off(0.5 * (matrix + matrix.T))
        return _normalized(spectral.matrix_exp(flat + jnp.diag(diagonal_of_log(flat))))

    def flat_basis(self):
        """Return an orthonormal basis (dim, size, size) of the symmetric matrices with zeros on the diagonal."""
        rows, columns = np.tril_indices(self.size, -1)
        basis = np.zeros((self.dim, self.size, self.size))
        basis[np.arange(self.dim), rows, columns] = math.sqrt(0.5)
        return basis + basis.swapaxes(1, 2)

    @operation
    @override
    def project(self, x) -> jax.Array:
        """Scale the symmetric part to unit diagonal; NaN if it is not positive definite."""
        return _normalized(SPD(self.size).project(x))

    @operation
    @override
    def to_tangent(self, point, v) -> jax.Array:
        """Return the symmetric part with zero diagonal."""
        return _off(0.5 * (v + v.T))

    @operation
    @override
    def admissible(self, x) -> jax.Array:
        """Return whether x is finite, symmetric to rounding, of unit diagonal to 1e-6, eigenvalue ratio >= 1e-10."""
        usual = SPD(self.size).admissible(x) & jnp.all(jnp.abs(jnp.diag(x) - 1.0) <= _OF_DIAGONAL)
        values = jnp.linalg.eigvalsh(jnp.where(usual, 0.5 * (x + x.T), jnp.eye(self.size, dtype=x.dtype)))
        return usual & (values[0] >= max(_SINGULAR, float(jnp.finfo(x.dtype).eps)) * values[-1])

    @override
    def free_coordinates(self, x):
        """Return the entries below the diagonal."""
        return x[jnp.tril_indices(self.size, -1)]


@jax.custom_jvp
def diagonal_of_log(flat: jax.Array) -> jax.Array:
    """Return d (k,) with ``diag Exp(S + diag(d)) = 1``, for symmetric S (k, k) with zero diagonal.

    Newton steps for ``log diag Exp(S + diag(d)) = 0``, after one by the logarithms alone; where a step does not bring
    them nearer to 0, one more by them. Their number does not depend on S.
    """
    start = jnp.zeros(flat.shape[-1], flat.dtype)
    logs = _logs_and_slopes(flat, start)[0]

    def step(_, state):
        best, best_logs, tried, plain = state
        logs, slopes = _logs_and_slopes(flat, tried)
        better = plain | (jnp.max(jnp.abs(logs)) < jnp.max(jnp.abs(best_logs)))
        newton = jnp.minimum(tried - jnp.linalg.solve(slopes, logs), 0.0)  # d <= 0
        going = better & jnp.all(jnp.isfinite(newton))
        best, best_logs = jnp.where(better, tried, best), jnp.where(better, logs, best_logs)
        return best, best_logs, jnp.where(going, newton, best - best_logs), ~going

    return jax.lax.fori_loop(0, _STEPS, step, (start, logs, -logs, jnp.ones((), bool)))[0]


@diagonal_of_log.defjvp
def _diagonal_of_log_jvp(primals, tangents):
    (flat,) = primals
    diagonal = diagonal_of_log(flat)

    def ones(matrix):
        return jnp.diag(spectral.matrix_exp(matrix))

    whole = flat + jnp.diag(diagonal)
    change = jax.jvp(ones, (whole,), (tangents[0],))[1]
    units = jax.vmap(jnp.diag)(jnp.eye(len(diagonal), dtype=flat.dtype))
    hessian = jax.vmap(lambda unit: jax.jvp(ones, (whole,), (unit,))[1])(units)
    return diagonal, -jnp.linalg.solve(hessian, change)


def _logs_and_slopes(flat, diagonal):
    """Return ``log diag Exp(S + diag(d))`` (k,) and its Jacobian in d (k, k)."""
    values, vectors = spectral.eigh(flat + jnp.diag(diagonal))
    largest = jnp.max(values)
    powers = jnp.exp(values - largest)  # no overflow
    own = jnp.maximum(vectors**2 @ powers, jnp.finfo(flat.dtype).tiny)
    half = 0.5 * (values[:, None] - values[None, :])
    safe = jnp.where(jnp.abs(half) > 1e-3, half, 1.0)
    ratio = jnp.where(jnp.abs(half) > 1e-3, jnp.sinh(safe) / safe, 1.0 + half**2 / 6.0)
    # (e^a - e^b)/(a - b): of numbers far apart the difference itself, where sinh would overflow.
    apart = jnp.abs(half) > 20.0
    near = jnp.exp(0.5 * (values[:, None] + values[None, :]) - largest) * jnp.where(apart, 1.0, ratio)
    far = (powers[:, None] - powers[None, :]) / jnp.where(apart, 2.0 * half, 1.0)
    divided = jnp.where(apart, far, near)
    hessian = jnp.einsum("ia,ja,ab,ib,jb->ij", vectors, vectors, divided, vectors, vectors)
    return jnp.log(own) + largest, hessian / own[:, None]


def _off(matrix):
    return matrix * (1.0 - jnp.eye(matrix.shape[-1], dtype=matrix.dtype))


def _normalized(matrix):
    """Divide by the square roots of the diagonal, which becomes 1."""
    roots = jnp.sqrt(jnp.diag(matrix))
    scaled = matrix / roots / roots[:, None]
    diagonal = jnp.diag(scaled)
    return _off(scaled) + jnp.diag(diagonal / jnp.where(jnp.isnan(diagonal), 1.0, diagonal))  # NaN stays


def _of_one_number(off, diagonal):
    return jnp.stack([jnp.stack([diagonal, off]), jnp.stack([off, diagonal])])
