"""Releases on a public grid with integer noise: proofs hold for the program, not only in exact arithmetic.

A summary is a vector of integers, its sensitivity is an integer, the noise is exact discrete
noise (`samplers.discrete`, `samplers.discrete_vectors`), and all that follows, in floating point, is post-processing
(docs/mathematics.md, section 13).
"""

import math
import secrets
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.privacy.decimals import float_above, written
from jaxgeodp.privacy.entropy import random_words
from jaxgeodp.privacy.guarantee import ZeroConcentratedDP
from jaxgeodp.samplers.discrete_vectors import MAX_SCALE, draws

#: Steps of the grid in the radius of a ball of vectors: sums of 64 squares fit 64 bits.
STEPS = 2**28
#: From so many numbers on, noise is drawn by the array: fewer are drawn faster than its tables are made.
MANY = 64
# Least privacy parameter, and the inverse of the largest.
_WEAKEST = 1e-30
# A vector of this length, in units of the radius, is surely inside, whatever a floating-point sum of squares has lost.
_SURE = 1.0 - 1e-9
#: What a release record says.
NOTE = (
    "noise of integers on a public grid, from the operating system's generator: the guarantee is for the program's "
    "numbers; the running time depends on the number of records, and on the noise only by nanoseconds of arithmetic, "
    "but for one number in 2^52 at most"
)


class GridNoise(NamedTuple):
    """Public numbers of a release on a grid."""

    sensitivity: int  #: of the vector of integers, in the norm that the noise's theorem is about
    scale: int  #: of the discrete noise
    step: float  #: length of a step, in the units of the vector


def to_grid(vectors: np.ndarray, radius, steps: int = STEPS) -> np.ndarray:
    """Return each vector as integers in the ball of radius ``steps`` about 0, whatever the other vectors are.

    Args:
        vectors: (..., d) floating point; one that is not finite counts as 0, one that is too long is shortened.
        radius: of the ball of vectors that becomes the ball of integers; a number or an array (...,).
        steps: radius of that, at most `STEPS`.

    Returns:
        Integers (..., d), sums of squares at most steps^2: checked in integers.
    """
    sure = steps * _SURE
    with np.errstate(all="ignore"):
        scaled = np.asarray(vectors, np.float64) * np.asarray(steps / np.asarray(radius, np.float64))[..., None]
        scaled = np.where(np.all(np.isfinite(scaled), axis=-1, keepdims=True), scaled, 0.0)
        scaled = np.clip(scaled, -4.0 * steps, 4.0 * steps)
        rounded = np.rint(scaled)
        lengths = np.linalg.norm(scaled, axis=-1, keepdims=True)
        shortened = np.trunc(scaled * (sure / np.maximum(lengths, 1.0)))
        whole = np.where(np.linalg.norm(rounded, axis=-1, keepdims=True) <= sure, rounded, shortened).astype(np.int64)
    return np.where(_inside(whole, steps)[..., None], whole, 0)


def sum_on_grid(parts: Iterable[np.ndarray], radius) -> np.ndarray:
    """Return the sum of vectors on the grid as Python integers, which cannot overflow.

    Args:
        parts: arrays of at most 2^32 vectors, as `to_grid` takes them.
        radius: see there.
    """
    total: Any = 0
    for part in parts:
        total = total + np.sum(to_grid(part, radius), axis=0).astype(object)
    return np.asarray(total, object)


def _inside(vectors, steps):
    """Return whether sums of squares are at most steps^2, exactly."""
    sums = np.clip(vectors, -steps, steps) ** 2
    while sums.shape[-1] > 1:  # sums of 64, which fit; cut above steps^2, which fit again
        parts = [np.sum(sums[..., j : j + 64], axis=-1) for j in range(0, sums.shape[-1], 64)]
        sums = np.minimum(np.stack(parts, axis=-1), steps**2 + 1)
    return (np.max(np.abs(vectors), axis=-1) <= steps) & (sums[..., 0] <= steps**2)


def laplace_noise(dim: int, sensitivity: int, step: float, epsilon: float) -> GridNoise:
    """Return discrete Laplace noise in every coordinate: epsilon-DP.

    The sum of the coordinates' changes is at most sqrt(dim) times the Euclidean sensitivity.
    """
    change = math.isqrt(dim * sensitivity**2)
    _check_strength("epsilon", epsilon)
    return GridNoise(sensitivity, math.ceil(change / Fraction(written(epsilon))), step)


def gaussian_noise(sensitivity: int, step: float, mu: float) -> GridNoise:
    """Return discrete Gaussian noise: mu^2/2-zCDP (Canonne, Kamath & Steinke 2020, Theorem 14)."""
    _check_strength("mu", mu)
    return GridNoise(sensitivity, math.ceil(sensitivity / Fraction(written(mu))), step)


def _check_strength(name, strength):
    """Refuse parameters for which noisy sums would not fit a float, or noise would vanish."""
    if not _WEAKEST <= strength <= 1.0 / _WEAKEST:
        raise InputError(f"{name} for integer noise must be from {_WEAKEST:g} to {1.0 / _WEAKEST:g}, got {strength:g}.")


def zcdp(noises) -> ZeroConcentratedDP:
    """Return the joint guarantee of vectors with Gaussian noise: the exact sum of their rho, rounded up."""
    total = sum((Fraction(noise.sensitivity**2, 2 * noise.scale**2) for noise in noises), Fraction(0))
    return ZeroConcentratedDP(float_above(total))


def sampler(draw, sizes: Iterable[int], scales: Iterable[int]) -> dict[str, str]:
    """Return the record's entry on `with_noise`, for so many numbers of each scale."""
    ways = {_by_array(size, scale) for size, scale in zip(sizes, scales, strict=True)}
    sources = {False: "Canonne, Kamath & Steinke 2020", True: "by the array: docs/mathematics.md, Proposition N"}
    text = "; ".join(sources[way] for way in sorted(ways))
    return {"name": f"{draw.__name__} ({text})", "exactness": "exact, in integers"}


def _by_array(size, scale):
    return size >= MANY and scale <= MAX_SCALE


def with_noise(draw, steps: np.ndarray, scale: int, below=None) -> np.ndarray:
    """Return integers plus independent noise as floats; the sums are made in integers of any size.

    It takes as long for large noise as for small (docs/evidence/audit.md, Running time). Whether noise is drawn by the
    array or number by number follows from the length and the scale, which are public.

    Args:
        draw: `discrete_laplace` or `discrete_gaussian`.
        steps: integers, an array of any shape.
        scale: of the noise.
        below: source of uniform integers, for numbers one by one; the operating system's generator by default.

    Returns:
        float64, of that shape.
    """
    steps = np.asarray(steps)
    if below is None and _by_array(steps.size, scale):
        noise = draws(draw, scale, steps.size, random_words).tolist()
    else:
        below = secrets.randbelow if below is None else below
        noise = [draw(scale, below) for _ in range(steps.size)]
    sums = [float(int(step) + own) for step, own in zip(steps.flat, noise, strict=True)]
    return np.array(sums, np.float64).reshape(steps.shape)


def in_secret(draw, *arguments):
    """Return a sampler's draw, with the operating system's uniform integers as its last argument.

    Example:
        >>> from jaxgeodp.samplers.above_threshold import first_above
        >>> in_secret(first_above, [0, 10, 900, 1000], 500, 2)
        2
    """
    return draw(*arguments, secrets.randbelow)
