"""Moments of residuals along a public geodesic, and the geodesic that fits them (docs/mathematics.md, section 18)."""

import abc
import dataclasses
import functools
import math
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.inference.known_noise import EntryNoise
from jaxgeodp.inference.moments import Moment
from jaxgeodp.inference.population import shape_of
from jaxgeodp.privacy import grid

# Weights of the powers of s, and of the squared residual: small, as they lengthen the vector of a record.
_POWERS = (0.5, 0.5, 0.25, 0.25)
_SQUARES = 0.5
# Of entries off the diagonal: below sqrt(2).
_TWICE = 1.4
# Points at which a maximum is looked for.
_GRID = 10**5
# The variance of s must be as many standard deviations of its noise, and as large, or times tell no velocity.
_CERTAIN, _LEAST_VARIANCE = 3.0, 1e-4
# Where Jacobi fields are computed, which are polynomials of this degree in s, nearly.
_DEGREE = 3
_NODES = np.cos(np.pi * (np.arange(9) + 0.5) / 9)


class Residuals(Moment):
    """The means of w, s w, s/2, s^2/2, s^3/4, s^4/4 and squares of w, for `AlongGeodesic`: sensitivity sqrt(8)/n.

    s is from -1 to 1 and the residual w, a vector of d numbers, no longer than 1. A subclass says which squares.
    """

    largest = grid.STEPS

    @abc.abstractmethod
    def squares(self, w, xp) -> Any:
        """Return the squares of residuals (n, d) as vectors (n, k), each no longer than |w|^2/2."""

    @abc.abstractmethod
    def second_moment(self, numbers: np.ndarray, dim: int) -> np.ndarray:
        """Return the second moment (d, d) of which these are the means of `squares`, (k,)."""

    def vector_length(self, dim):
        """Return how many numbers s and the residual have."""
        return dim + 1

    @override
    def of_vectors(self, vectors):
        return jnp.mean(self._features(vectors, jnp), axis=0)

    def _features(self, vectors, xp) -> Any:
        """Return the numbers of each record, (n, numbers)."""
        s, w = vectors[:, :1], vectors[:, 1:]
        powers = [weight * s**power for power, weight in enumerate(_POWERS, start=1)]
        return xp.concatenate([w, s * w, *powers, self.squares(w, xp)], axis=1)

    def steps(self, parts, nearest, farthest):
        """Return the sums of the residual moments in integer steps; non-finite vectors count as 0."""
        total: Any = 0
        for part in parts:
            s = grid.to_grid(part[:, :1], 1.0) / grid.STEPS
            w = grid.to_grid(part[:, 1:], 1.0) / grid.STEPS
            whole = np.rint(self._features(np.concatenate([s, w], axis=1), np) * grid.STEPS)
            total = total + np.sum(whole.astype(np.int64), axis=0).astype(object)
        return total

    def sensitivity(self, dim, nearest, farthest):
        """Return sqrt(8) in steps, and half a step for each number that is rounded, of either record."""
        return math.isqrt(8 * grid.STEPS**2) + 1 + math.isqrt(self.numbers(dim)) + 2

    @override
    def units(self, dim, farthest):
        return np.full(self.numbers(dim), 1.0 / grid.STEPS)

    def to_value(self, numbers, dim):
        """Return the numbers unchanged."""
        return numbers

    def to_numbers(self, value):
        """Return the numbers as a JAX array."""
        return jnp.asarray(value)

    @override
    def formula(self, dim):
        return "sqrt(8)/n"


@final
@dataclasses.dataclass(frozen=True)
class ResidualMoments(Residuals):
    """Residual moments with the mean of |w|^2/2: 2 d + 5 numbers, for noise that grows with their number."""

    description = "moments of residuals along a geodesic"

    def numbers(self, dim):
        """Return 2 d + 5."""
        return 2 * dim + 5

    def l1_sensitivity(self, dim, nearest, farthest):
        """Return the L1 sensitivity in steps: `_largest_change`, plus one step for each number and 2 for rounding."""
        return math.ceil(grid.STEPS * _largest_change(dim)) + self.numbers(dim) + 2

    @override
    def squares(self, w, xp):
        return _SQUARES * xp.sum(w**2, axis=1, keepdims=True)

    def second_moment(self, numbers, dim):
        """Return a multiple of the identity, as the trace alone is released."""
        return numbers[0] / _SQUARES / dim * np.eye(dim)


@final
@dataclasses.dataclass(frozen=True)
class ResidualMatrix(Residuals):
    """Residual moments with the mean of w w'/2, on and above the diagonal."""

    description = "moments of residuals along a geodesic, with their covariance"

    def numbers(self, dim):
        """Return 2 d + 4 plus d (d + 1)/2."""
        return 2 * dim + 4 + dim * (dim + 1) // 2

    def squares(self, w, xp):
        """Return entries, off the diagonal 1.4 times: the vector is no longer than the matrix in Frobenius norm."""
        rows, columns = np.triu_indices(w.shape[1])
        return _SQUARES * np.where(rows == columns, 1.0, _TWICE) * w[:, rows] * w[:, columns]

    def second_moment(self, numbers, dim):
        """Return the symmetric matrix with these entries."""
        rows, columns = np.triu_indices(dim)
        upper = np.zeros((dim, dim))
        upper[rows, columns] = numbers / _SQUARES / np.where(rows == columns, 1.0, _TWICE)
        return upper + np.triu(upper, 1).T


def _largest_change(dim: int) -> float:
    """Return the largest L1 distance between two records' numbers, for `ResidualMoments` (section 18).

    Of w and s w by sqrt(2 d (4 + p^2)), p = s + s', which with |p| + |s - s'| = 2 is worst; the maximum over p of that
    and of what powers of s add, from a grid, and what may lie between its points.
    """
    p = np.linspace(0.0, 2.0, _GRID + 1)
    q = 2.0 - p
    powers = q / 2 + p * q / 2 + q * (3 * p**2 + q**2) / 16 + p * q * (p**2 + q**2) / 8
    steepest = math.sqrt(2.0 * dim) + 8.0
    return float(np.max(np.sqrt(2.0 * dim * (4.0 + p**2)) + powers)) + steepest / _GRID


@dataclasses.dataclass(frozen=True)
class Correction:
    """Estimated correction of a geodesic's middle and velocity, in coordinates of the frame.

    Attributes:
        change: of the middle and the velocity, (2 d,).
        covariance: of its error, (2 d, 2 d): of the noise, and of n records; infinite where times tell no velocity.
        widest: the same, no smaller in any direction than noise may hide; for tests.
        residuals: their covariance, (d, d).
        trace: of that, with two standard deviations of its noise.
    """

    change: np.ndarray
    covariance: np.ndarray
    widest: np.ndarray
    residuals: np.ndarray
    trace: float

    @classmethod
    def none(cls, dim: int) -> "Correction":
        """Return the correction of a geodesic that needs none."""
        nothing = np.zeros((2 * dim, 2 * dim))
        return cls(np.zeros(2 * dim), nothing, nothing, np.zeros((dim, dim)), 0.0)

    def usual_length(self, beyond: float) -> float:
        """Return the usual length of corrected residuals: that of an average one, and so many standard deviations.

        They are those of the direction in which residuals spread most; its share of the trace is that of ``residuals``.
        """
        dim, known = len(self.residuals), float(np.trace(self.residuals))
        of_fit = float(np.trace(self.covariance))
        share = float(np.max(np.linalg.eigvalsh(self.residuals))) / known if known > 0.0 else 1.0 / dim
        widest = share * self.trace + of_fit / dim
        return math.sqrt(self.trace + of_fit) + beyond * math.sqrt(widest)


def correction_of(
    statistic: Residuals, dim: int, numbers, scale: float, reach: float, n: int, fields=None
) -> Correction:
    """Return the Jacobi field that fits residuals, from their released moments.

    Args:
        statistic: what was released.
        dim: d.
        numbers: as they are released.
        scale: standard deviation of their noise.
        reach: see `AlongGeodesic`.
        n: number of records, above 2.
        fields: of the geodesic, as `jacobi_fields` gives them; None for one that stays where it is.
    """
    numbers = np.asarray(numbers, float)
    sums, squares = reach * numbers[: 2 * dim], numbers[2 * dim + len(_POWERS) :]
    moments = numbers[2 * dim : 2 * dim + len(_POWERS)] / _POWERS
    powers = np.clip([1.0, *moments], [0, -1, 0, -1, 0], 1.0)
    mean, spread = powers[1], powers[2] - powers[1] ** 2
    noise, of_times = reach * scale, scale / _POWERS[0]
    known = spread > max(_CERTAIN * of_times * math.sqrt(1.0 + 4.0 * mean**2), _LEAST_VARIANCE)
    flat = np.array([[1.0, mean], [mean, powers[2]]])
    inverse = np.linalg.inv(flat) if known else np.diag([1.0, 0.0])
    two = sums.reshape(2, dim)
    # The noise of the sums makes the field fit better than it does.
    matrix = reach**2 * statistic.second_moment(squares, dim) - two.T @ inverse @ two
    matrix = (matrix + noise**2 * float(np.trace(inverse)) * np.eye(dim)) * n / (n - 2)
    if isinstance(statistic, ResidualMatrix):
        entry, error = reach**2 * scale / _SQUARES, reach**2 * scale / _SQUARES * math.sqrt(dim)
    else:  # the trace alone is seen
        matrix, entry, error = float(np.trace(matrix)) / dim * np.eye(dim), 0.0, reach**2 * scale / _SQUARES
    seen = float(np.trace(matrix))
    level = max(seen, error) / dim
    residuals = dim * level * shape_of(matrix, EntryNoise(entry).mean_square(dim), level)[0]
    trace = max(seen, 0.0) + 2.0 * error
    if not known:
        unknown = np.full(2 * dim, math.inf)
        unknown[:dim] = np.diag(residuals) / n + noise**2
        both = np.diag(unknown), np.diag(unknown)
        return Correction(np.append(sums[:dim], np.zeros(dim)), *both, residuals, trace)
    solved = np.linalg.pinv(_design(powers, fields, dim))
    change = solved @ sums
    middle, velocity = change[:dim], change[dim:]
    # The noise of the moments of s, of the first in both rows.
    of_design = [np.append(velocity, middle), np.append(np.zeros(dim), velocity)]
    drawn = noise**2 * np.eye(2 * dim) + of_times**2 * sum(np.outer(own, own) for own in of_design)
    # What the noise of a matrix hides in a direction: its operator norm; all, where the trace alone is seen.
    hidden = entry * (math.sqrt(2.0 * dim) + 2.0) if isinstance(statistic, ResidualMatrix) else trace
    covariance, widest = (
        solved @ (np.kron(flat / n, own) + drawn) @ solved.T for own in (residuals, residuals + hidden * np.eye(dim))
    )
    return Correction(change, covariance, widest, residuals, trace)


def _design(powers, fields, dim):
    """Return the means of J and s J, (2 d, 2 d): J(s) is how middle and velocity move the geodesic."""
    if fields is None:
        return np.kron(np.array([[1.0, powers[1]], [powers[1], powers[2]]]), np.eye(dim))
    table = np.linalg.pinv(np.vander(_NODES, _DEGREE + 1, increasing=True))
    polynomial = np.tensordot(table, fields, axes=1)  # (degree + 1, d, 2 d)
    first, second = (np.tensordot(powers[k : k + _DEGREE + 1], polynomial, axes=1) for k in (0, 1))
    return np.concatenate([first, second])


def jacobi_fields(manifold, middle, velocity, frame, s=_NODES) -> np.ndarray:
    """Return Jacobi fields of a geodesic at s, carried to the middle, for changes of middle and velocity: (m, d, 2 d).

    Where they are not finite those of flat space take their place.
    """
    with jax.enable_x64(True):
        arrays = [jnp.asarray(own) for own in (middle, velocity, frame)]
        found = np.asarray(_jacobi_fields(manifold, *arrays, jnp.asarray(s)))
    identity = np.eye(manifold.dim)
    flat = np.stack([np.concatenate([identity, own * identity], axis=1) for own in np.atleast_1d(s)])
    return np.where(np.all(np.isfinite(found)), found, flat)


@functools.partial(jax.jit, static_argnums=0)
def _jacobi_fields(manifold, middle, velocity, frame, s):
    dim = manifold.dim

    def at(change, s):
        there = manifold.exp(middle, manifold.combine(change[:dim], frame))
        turned = velocity + manifold.combine(change[dim:], frame)
        moved = manifold.exp(there, s.astype(turned.dtype) * manifold.transport(middle, there, turned))
        return manifold.project(moved)

    def one(s):
        nothing = jnp.zeros(2 * dim, s.dtype)
        end = at(nothing, s)
        fields = jax.vmap(lambda e: jax.jvp(lambda own: at(own, s), (nothing,), (e,))[1])(
            jnp.eye(2 * dim, dtype=s.dtype)
        )
        back = jax.vmap(lambda v: manifold.transport(end, middle, manifold.to_tangent(end, v)))(fields)
        return jax.vmap(lambda v: manifold.coordinates(middle, v, frame))(back).T

    return jax.vmap(one)(s)


def moved(middle, velocity, frame, correction: Correction, ball) -> tuple[np.ndarray, np.ndarray]:
    """Return the corrected geodesic: middle, within the ball, and velocity there, no longer than its diameter."""
    with jax.enable_x64(True):
        there, carried = _moved(ball, *(jnp.asarray(own) for own in (middle, velocity, frame, correction.change)))
    return np.asarray(there), np.asarray(carried)


@jax.jit
def _moved(ball, middle, velocity, frame, change):
    manifold = ball.manifold

    def within(coordinates, most):
        length = jnp.linalg.norm(coordinates)
        return coordinates * jnp.minimum(1.0, most / jnp.maximum(length, 1e-300))

    step, turn = change[: manifold.dim], change[manifold.dim :]
    there = manifold.project(manifold.exp(middle, manifold.combine(within(step, 2.0 * ball.radius), frame)))
    there = ball.clip(there[None])[0]
    own = manifold.coordinates(middle, velocity, frame) + turn
    turned = manifold.combine(within(own, 2.0 * ball.radius), frame)
    return there, manifold.transport(middle, there, turned)
