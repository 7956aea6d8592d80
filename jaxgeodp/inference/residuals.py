"""Moments of residuals along a public geodesic, and the geodesic that fits them (docs/mathematics.md, section 18)."""

import dataclasses
import math
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.inference.moments import Moment
from jaxgeodp.privacy import grid

# Weights of the moments of times and of squared residuals: small, as they lengthen the vector of a record.
_TIMES, _SQUARES = 0.5, 0.5
# |w|^2 (1 + s^2) + (s/2)^2 + ((s^2 - 1/2)/2)^2 + ((|w|^2 - 1/2)/2)^2 is largest for |w| = |s| = 1.
_LONGEST = math.sqrt(2.0 + _TIMES**2 * 1.25 + _SQUARES**2 * 0.25)
# The variance of s that is taken for certain: times that lie together tell no speed.
_LEAST_VARIANCE = 0.01


@final
@dataclasses.dataclass(frozen=True)
class ResidualMoments(Moment):
    """The means of w, s w, s/2, (s^2 - 1/2)/2 and (|w|^2 - 1/2)/2, for `AlongGeodesic`: sensitivity 3.1/n.

    s is from -1 to 1 and the residual w, a vector of d numbers, no longer than 1.
    """

    description = "moments of residuals along a geodesic"

    def numbers(self, dim):
        """2 d + 3."""
        return 2 * dim + 3

    def of_vectors(self, vectors):
        """See `Moment.of_vectors`."""
        return jnp.mean(_features(vectors, jnp), axis=0)

    def steps(self, parts, nearest, farthest):
        """See `Moment.steps`; a vector that is not finite counts as 0."""
        return grid.sum_on_grid((_features(part, np) for part in parts), _LONGEST)

    def sensitivity(self, dim, nearest, farthest):
        """Twice the longest vector, in steps."""
        return 2 * grid.STEPS

    def units(self, dim, farthest):
        """See `Moment.units`."""
        return np.full(self.numbers(dim), _LONGEST / grid.STEPS)

    def to_value(self, numbers, dim):
        """They."""
        return numbers

    def to_numbers(self, value):
        """They."""
        return jnp.asarray(value)

    def formula(self, dim):
        """See `Moment.formula`."""
        return "2 sqrt(2.375)/n"


def _features(vectors, xp) -> Any:
    """The numbers of each record: (n, 2 d + 3)."""
    s, w = vectors[:, :1], vectors[:, 1:]
    square = xp.sum(w**2, axis=1, keepdims=True)
    columns = [w, s * w, _TIMES * s, _TIMES * (s**2 - 0.5), _SQUARES * (square - 0.5)]
    return xp.concatenate(columns, axis=1)


@dataclasses.dataclass(frozen=True)
class Correction:
    """What moments say of a geodesic: by how much its middle and its velocity are off, in coordinates of the frame.

    Attributes:
        middle, velocity: (d,).
        covariance: of both, in each coordinate, (2, 2): of the noise, and of n records.
        variance: of residuals, in each coordinate.
        largest_variance: the same, with two standard deviations of its noise.
    """

    middle: np.ndarray
    velocity: np.ndarray
    covariance: np.ndarray
    variance: float
    largest_variance: float


def correction_of(numbers, scale: float, reach: float, n: int) -> Correction:
    """The least-squares line through residuals, of their released moments.

    Args:
        numbers: as `ResidualMoments` are released.
        scale: standard deviation of their noise.
        reach: see `AlongGeodesic`.
        n: number of records.
    """
    numbers = np.asarray(numbers, float)
    dim = (len(numbers) - 3) // 2
    sums = reach * numbers[: 2 * dim].reshape(2, dim)
    first, second, square = numbers[2 * dim :]
    first = float(np.clip(first / _TIMES, -1.0, 1.0))
    least = max(_LEAST_VARIANCE, 2.0 * scale / _TIMES)
    design = np.array([[1.0, first], [first, max(second / _TIMES + 0.5, first**2 + least)]])
    inverse = np.linalg.inv(design)
    fitted = inverse @ sums
    noise = (reach * scale) ** 2
    # The noise of the sums makes the line fit better than it does.
    left = reach**2 * (square / _SQUARES + 0.5) - float(np.sum(sums * fitted)) + noise * dim * float(np.trace(inverse))
    error = reach**2 * scale / _SQUARES
    variance, largest = max(left, error) / dim, (max(left, 0.0) + 2.0 * error) / dim
    # The noise of the design acts along the fitted vectors.
    middle, velocity = fitted
    along = np.array([[velocity @ velocity, middle @ velocity], [middle @ velocity, middle @ middle]])
    of_design = (scale / _TIMES) ** 2 / dim * along
    covariance = variance / n * inverse + inverse @ (noise * np.eye(2) + of_design) @ inverse
    return Correction(middle, velocity, covariance, variance, largest)


def moved(middle, velocity, frame, correction: Correction, ball) -> tuple[np.ndarray, np.ndarray]:
    """The corrected geodesic: its middle, within the ball, and its velocity there, no longer than its diameter."""
    with jax.enable_x64(True):
        arrays = [jnp.asarray(own) for own in (middle, velocity, frame, correction.middle, correction.velocity)]
        there, carried = _moved(ball, *arrays)
    return np.asarray(there), np.asarray(carried)


@jax.jit
def _moved(ball, middle, velocity, frame, step, turn):
    manifold = ball.manifold

    def within(coordinates, most):
        length = jnp.linalg.norm(coordinates)
        return coordinates * jnp.minimum(1.0, most / jnp.maximum(length, 1e-300))

    there = manifold.project(manifold.exp(middle, manifold.combine(within(step, 2.0 * ball.radius), frame)))
    there = ball.clip(there[None])[0]
    own = manifold.coordinates(middle, velocity, frame) + turn
    turned = manifold.combine(within(own, 2.0 * ball.radius), frame)
    return there, manifold.transport(middle, there, turned)
