"""Mixture of simple laws for the random matrices of `samplers.spectral`, with exact rational weights.

Let x_1, ..., x_p be the positive eigenvalues of a symmetric matrix and -y_1, ..., -y_q the others. Then

    prod (x_i + y_j) = sum c(kappa, nu) P_kappa(x) P_nu(y),

over partitions, P zonal polynomials (Jack polynomials of parameter 2) and c >= 0 rational numbers; a law with the
density P_kappa(x) exp(-sum x) on positive matrices is a triangular one with independent entries (docs/mathematics.md,
Theorem X). The numbers follow from Jack polynomials of two parameters, as P^(2) and P^(1/2) are dual to each other:

    prod (x_i + y_j) = sum P^(2)_kappa(x) P^(1/2)_mu(y),    mu the conjugate of what kappa leaves of p rows of length q

(Macdonald 1995, VI, 5.4 and 10), so that c(kappa, nu) is the coefficient of P^(2)_nu in P^(1/2)_mu.
"""

import functools
import itertools
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from jaxgeodp.checks import InputError, positive_integer

#: Of the matrices: at 12 rows there are 27,000 laws, made in some seconds; at 14 ten times as many.
LARGEST = 12

_Partition = tuple[int, ...]


class SpectralTable(NamedTuple):
    """Mixture components L diag(1, ..., 1, -1, ..., -1) L' of a random matrix, up to sign and rotation.

    L is lower triangular with no entries below the diagonal where signs differ, those below it where they agree are
    normal of variance 1/2, and twice the square of one on it is a chi-square variable; all are independent.
    """

    positive: np.ndarray  #: (m,) int: how many signs are positive, at most half of them
    freedom: np.ndarray  #: (m, dim) int: degrees of freedom of the diagonal
    size: np.ndarray  #: (m,) int: the trace of the positive part has a Gamma law of this shape
    nuclear: np.ndarray  #: (m,) probabilities where the density is exp(-|A|_*)
    hull: np.ndarray  #: (m,) probabilities where it is exp(-max(tr A_+, tr A_-))


@functools.cache
def spectral_table(dim: int) -> SpectralTable:
    """Return the mixture for symmetric matrices of ``dim`` rows.

    Args:
        dim: from 1 to `LARGEST`.

    Raises:
        ValueError: it is out of range.
    """
    positive_integer("spectral_table", "dim", dim, 1)
    if dim > LARGEST:
        raise InputError(f"spectral_table: dim must be at most {LARGEST}, got {dim}.")
    whole, rows = dim * (dim + 1) // 2, []
    for p in range(dim // 2 + 1):
        q = dim - p
        for (kappa, nu), coefficient in product_in_zonal(p, q).items():
            size = sum(kappa) + p * (p + 1) // 2
            weight = coefficient * _mass(kappa) * _mass(nu) * (2 if p < q else 1)
            rows.append((p, _freedom(kappa) + _freedom(nu), size, weight, weight * math.comb(whole, size)))
    positive, freedom, size, nuclear, hull = zip(*rows, strict=True)
    return SpectralTable(
        *(np.array(own, np.int32) for own in (positive, freedom, size)), *(_normalized(own) for own in (nuclear, hull))
    )


def product_in_zonal(p: int, q: int) -> dict[tuple[_Partition, _Partition], Fraction]:
    """Return the nonzero c(kappa, nu), for kappa with p parts up to q and nu with q parts up to p.

    Args:
        p: number of x, at most q.
        q: number of y.
    """
    found = {}
    for degree in range(p * q + 1):
        parts = list(_partitions(degree, q, p))
        dual, zonal = (_in_monomials(parts, ratio) for ratio in (4, 1))
        for mu, row in zip(parts, dual, strict=True):
            kappa = tuple(q - sum(part > column for part in mu) for column in reversed(range(p)))
            for nu, coefficient in zip(parts, _solved(row, zonal), strict=True):
                if coefficient:
                    found[kappa, nu] = coefficient
    return found


def zonal_at_one(kappa: _Partition) -> Fraction:
    """Return P_kappa(1, ..., 1), with one argument per part (Macdonald 1995, VI, 10.20)."""
    value = Fraction(1)
    for row, length in enumerate(kappa):
        for column in range(length):
            legs = sum(other > column for other in kappa[row + 1 :])
            value *= Fraction(len(kappa) - row + 2 * column, 2 * (length - column - 1) + legs + 1)
    return value


@functools.cache
def _mass(kappa) -> Fraction:
    """Return int P_kappa(x) prod |x_i - x_j| exp(-sum x), without len(kappa)! and powers of sqrt(pi)."""
    p = len(kappa)
    factors = [_gamma(row + 1) * _gamma(freedom) for row, freedom in enumerate(_freedom(kappa))]
    return math.prod(factors, start=zonal_at_one(kappa)) if p else Fraction(1)


def _freedom(kappa) -> _Partition:
    """Return the chi-square degrees of freedom of the squared diagonal entries, twice their Gamma shape."""
    return tuple(2 * part + len(kappa) - row + 1 for row, part in enumerate(kappa))


def _gamma(twice: int) -> Fraction:
    """Return Gamma(twice/2), divided by sqrt(pi) where ``twice`` is odd."""
    steps = range(twice - 2, 0, -2)
    return math.prod((Fraction(step, 2) for step in steps), start=Fraction(1))


def _normalized(weights) -> np.ndarray:
    """Return probabilities, each rounded twice."""
    values = np.array([float(weight) for weight in weights])
    return values / math.fsum(values)


def _partitions(degree: int, rows: int, longest: int):
    """Yield partitions with so many parts, zeros included, by decreasing first part."""
    if rows == 0:
        if degree == 0:
            yield ()
        return
    for first in range(min(degree, longest), -1, -1):
        if first * rows < degree:
            return
        for rest in _partitions(degree - first, rows - 1, first):
            yield (first, *rest)


def _in_monomials(parts: list[_Partition], ratio: int) -> list[list[Fraction]]:
    """Return Jack polynomials of parameter 2/ratio in monomials: unitriangular rows.

    They are eigenfunctions of a differential operator, which gives a recursion from larger partitions to smaller ones
    (James 1968 for ratio = 1; Stanley 1989). All partitions of a number in a box are enough, as P_kappa has none in it
    that is larger than kappa, and those in between are in the box.
    """
    place = {part: index for index, part in enumerate(parts)}
    level = [sum(length * (length - 1 - ratio * row) for row, length in enumerate(part)) for part in parts]
    raised = [_raised(part, place) for part in parts]
    table = [[Fraction(0)] * len(parts) for _ in parts]
    for start, row in enumerate(table):
        row[start] = Fraction(1)
        for index in range(start + 1, len(parts)):
            total = sum(weight * row[above] for above, weight in raised[index].items())
            if total:
                row[index] = ratio * total / (level[start] - level[index])
    return table


def _raised(part, place) -> dict[int, int]:
    """Return the indices of partitions that arise by moving t boxes from a part to one above it, and their weights."""
    found: dict[int, int] = {}
    for upper, lower in itertools.combinations(range(len(part)), 2):
        for boxes in range(1, part[lower] + 1):
            moved = list(part)
            moved[upper] += boxes
            moved[lower] -= boxes
            above = place.get(tuple(sorted(moved, reverse=True)))
            if above is not None:
                found[above] = found.get(above, 0) + part[upper] - part[lower] + 2 * boxes
    return found


def _solved(row: list[Fraction], table: list[list[Fraction]]) -> list[Fraction]:
    """Return z with z @ table = row, for a unitriangular table."""
    left = list(row)
    for index, own in enumerate(table):
        if left[index]:
            for later in range(index + 1, len(left)):
                if own[later]:
                    left[later] -= left[index] * own[later]
    return left
