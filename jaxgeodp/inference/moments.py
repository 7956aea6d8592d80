"""Second moments of tangent vectors, as sums of integers (docs/mathematics.md, section 18).

The mean squared length of vectors is a number, their second moment in an orthonormal frame a matrix; both are sums over
the records, so that one record moves them by at most 1/n of what it can be.
"""

import abc
import dataclasses
import math
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.privacy import grid
from jaxgeodp.samplers.spectral_table import LARGEST

# Steps of the grid in the largest squared distance, and in the largest distance: sums of 2^20 products fit 64 bits.
_SQUARES, _LENGTHS = 2**40, 2**20
_MOST_AT_ONCE = 2**20
# Entries of a matrix off the diagonal count 7/5 times, nearly sqrt(2), so that the Euclidean norm of all that is
# released once is nearly, and at most, 5 times the Frobenius norm.
_DIAGONAL, _OFF = 5, 7
# How much smaller than a computed distance its true value might be, relative to the largest.
_ROUNDING = 1e-9


class Moment(abc.ABC):
    """Define what is released of tangent vectors of lengths a to b at a public point; subclasses have no fields.

    Attributes:
        description: for records.
        largest: no integer of a record is larger in absolute value.
    """

    description: str
    largest: int

    def vector_length(self, dim: int) -> int:
        """Return how many numbers a record's vector has."""
        return dim

    @abc.abstractmethod
    def numbers(self, dim: int) -> int:
        """Return how many numbers are released."""

    @abc.abstractmethod
    def of_vectors(self, vectors: jax.Array) -> jax.Array:
        """Return the numbers of vectors (n, d), as means over them."""

    @abc.abstractmethod
    def steps(self, parts, nearest: float, farthest: float) -> np.ndarray:
        """Return the integer sums of the statistic; each vector is first brought into the range on its own."""

    @abc.abstractmethod
    def sensitivity(self, dim: int, nearest: float, farthest: float) -> int:
        """Return the sensitivity of the integer sums in the Euclidean norm."""

    def l1_sensitivity(self, dim: int, nearest: float, farthest: float) -> int:
        """Return the L1 sensitivity of the integer sums; by default the bound implied by the Euclidean one."""
        return math.isqrt(self.numbers(dim) * self.sensitivity(dim, nearest, farthest) ** 2)

    def hull_sensitivity(self, dim: int, farthest: float) -> float | None:
        """Return the sensitivity of a matrix sum in the norm max(tr A+, tr A-) of `samplers.hull_noise`.

        None where there is no such noise.
        """
        return None

    @abc.abstractmethod
    def units(self, dim: int, farthest: float) -> np.ndarray:
        """Return the size of an integer step of each number, per record."""

    @abc.abstractmethod
    def to_value(self, numbers: Any, dim: int) -> Any:
        """Return the numbers as the released value: a number or a symmetric matrix."""

    @abc.abstractmethod
    def to_numbers(self, value: Any) -> jax.Array:
        """Return the released value as a vector of numbers."""

    @abc.abstractmethod
    def formula(self, dim: int) -> str:
        """Return the formula of the sensitivity for the release record."""


@final
@dataclasses.dataclass(frozen=True)
class FrechetVariance(Moment):
    """The mean squared distance of the records from a public point: sensitivity (b^2 - a^2)/n.

    A statistic of `SpreadMechanism`. Records are at distances from a to b: a is how far the point is from the ball of
    the records, 0 within it, and b its distance from the centre and the radius together.
    """

    description = "mean squared distance"
    largest = _SQUARES

    def numbers(self, dim):
        """Return 1."""
        return 1

    @override
    def of_vectors(self, vectors):
        return jnp.mean(jnp.sum(vectors**2, axis=-1))[None]

    def steps(self, parts, nearest, farthest):
        """Return the sum of squared lengths in integer steps; non-finite vectors count as the shortest."""
        least, total = self._least(nearest, farthest), 0
        for part in parts:
            with np.errstate(all="ignore"):
                squares = np.sum(np.square(part / farthest), axis=-1) * _SQUARES
                squares = np.rint(np.clip(np.where(np.isfinite(squares), squares, 0.0), least, _SQUARES))
            total += _exact_sum(squares.astype(np.int64))
        return np.array([total], object)

    def sensitivity(self, dim, nearest, farthest):
        """Return b^2 - a^2, in steps."""
        return _SQUARES - self._least(nearest, farthest)

    @override
    def units(self, dim, farthest):
        return np.array([farthest**2 / _SQUARES])

    def to_value(self, numbers, dim):
        """Return the number."""
        return numbers[0]

    def to_numbers(self, value):
        """Return the variance as a vector of one number."""
        return jnp.reshape(value, (1,))

    @override
    def formula(self, dim):
        return "(b^2 - a^2)/n, of distances from a to b"

    @staticmethod
    def _least(nearest, farthest):
        share = max(nearest / farthest - _ROUNDING, 0.0)
        return math.floor(share**2 * _SQUARES)


@final
@dataclasses.dataclass(frozen=True)
class TangentCovariance(Moment):
    """The second moment of the records' logarithms at a public point: sensitivity sqrt(2) b^2/n in Frobenius norm.

    A statistic of `SpreadMechanism`. Records are at distances up to b, the point's distance from the centre of the ball
    and its radius together; in one dimension the sensitivity is b^2/n. In the norm max(tr A+, tr A-), the larger one
    of the sum of positive and that of negative eigenvalues, it is b^2/n in all dimensions: with epsilon,
    ``numerics="idealized"`` and up to 12 dimensions noise falls with that norm, whose unit ball is the least.
    """

    description = "second moment of logarithms"
    largest = _OFF * _LENGTHS**2

    def numbers(self, dim):
        """Return the number of entries on and above the diagonal."""
        return dim * (dim + 1) // 2

    @override
    def of_vectors(self, vectors):
        return self.to_numbers(vectors.T @ vectors / vectors.shape[0])

    def steps(self, parts, nearest, farthest):
        """Return the sum of second moments in integer steps; non-finite vectors count as 0."""
        total: Any = 0
        for part in parts:
            vectors = grid.to_grid(part, farthest, _LENGTHS)
            for start in range(0, max(len(vectors), 1), _MOST_AT_ONCE):
                own = vectors[start : start + _MOST_AT_ONCE]
                total = total + (own.T @ own).astype(object)
        rows, columns = np.triu_indices(len(total))
        return np.where(rows == columns, _DIAGONAL, _OFF) * total[rows, columns]

    def sensitivity(self, dim, nearest, farthest):
        """Return 5 sqrt(2) b^2, in steps; in one dimension 5 b^2."""
        square = (_DIAGONAL * _LENGTHS**2) ** 2
        return math.isqrt(square if dim == 1 else 2 * square) + 1

    def hull_sensitivity(self, dim, farthest):
        """Return b^2, as vv' has no larger trace; None in more dimensions than noise is known for."""
        return farthest**2 if dim <= LARGEST else None

    @override
    def units(self, dim, farthest):
        rows, columns = np.triu_indices(dim)
        return (farthest / _LENGTHS) ** 2 / np.where(rows == columns, _DIAGONAL, _OFF)

    def to_value(self, numbers, dim):
        """Return the symmetric matrix with these entries on and above its diagonal."""
        places = np.zeros((dim, dim), np.int64)
        places[np.triu_indices(dim)] = np.arange(len(numbers))
        return numbers[np.maximum(places, places.T)]

    def to_numbers(self, value):
        """Return the entries on and above the diagonal."""
        return value[np.triu_indices(value.shape[0])]

    @override
    def formula(self, dim):
        return "b^2/n, of distances up to b" if dim == 1 else "sqrt(2) b^2/n in Frobenius norm, of distances up to b"


def _exact_sum(steps):
    """Return the sum of nonnegative integers below 2^41 as a Python integer, which cannot overflow."""
    return sum(int(np.sum(steps[start : start + _MOST_AT_ONCE])) for start in range(0, len(steps), _MOST_AT_ONCE))
