"""Exact discrete noise in integer arithmetic, at a cost independent of the noise.

No floating-point number occurs: the laws hold to the last bit if ``below(n)`` is uniform on 0, ..., n - 1. For releases
that is `secrets.randbelow`, the generator of the operating system.

The laws come from independent trials, repeated until one is accepted (Canonne, Kamath & Steinke 2020, Algorithms 2 and
3): how many trials that takes is independent of what is accepted at last. Their own trials count coin tosses and last
the longer, the larger the noise. Here every event of probability exp(-x) is one comparison: a uniform real number, of
which `_WIDTH` bits are drawn, is below exp(-x), of which bounds are computed that are 2^(1 - _WIDTH) apart. If the bits
do not decide, more are drawn and the bounds are made tighter until they do, so that the probability is exp(-x), not a
rounded one (Knuth & Yao 1976). One trial in 2^90 at most goes such a longer way; all others do the same number of
operations, on integers of the same length but for leading zeros.
"""

import functools
import math
import operator
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from jaxgeodp.checks import positive_integer

#: ``below(n)``: a uniform integer from 0 to n - 1.
Below = Callable[[int], int]

# Bits of a uniform number that are drawn at once.
_WIDTH = 128
# Exponents are taken apart into an integer of 6 bits, 3 digits of 6 bits behind the point, and a rest below 2^-18.
_DIGIT = 6
_BASE = 1 << _DIGIT
_DIGITS = 3
# Bits that computed values have more than the uniform number, and the units of their last bit by which they may be off.
_GUARD = 16
_ERROR = 16


def bernoulli_exp(numerator: int, denominator: int, below: Below) -> bool:
    """Return True with probability exp(-numerator/denominator), for a nonnegative ratio."""
    return _bernoulli_exp(numerator + _BASE * denominator, denominator, below)


def is_below_exp(word: int, width: int, numerator: int, denominator: int, below: Below) -> bool:
    """Return whether a uniform number is below exp(-numerator/denominator), for a ratio in [0, 64).

    Args:
        word: the first bits of the uniform number.
        width: how many these are.
        numerator: of the ratio.
        denominator: of the ratio.
        below: source of uniform integers, for further bits.
    """
    return _is_below_exp(word, numerator + _BASE * denominator, denominator, below, width)


def exp_floor(numerator: int, denominator: int, width: int) -> int:
    """Return an integer f with f <= exp(-numerator/denominator) 2^width < f + 2, for a ratio in [0, 64)."""
    return _exp_floor(numerator + _BASE * denominator, denominator, width)


def discrete_laplace(scale: int, below: Below) -> int:
    """Draw an integer x with probability proportional to exp(-|x|/scale).

    Args:
        scale: an integer, at least 1.
        below: source of uniform integers.

    Raises:
        ValueError: the scale is no integer above 0.
    """
    positive_integer("discrete_laplace", "scale", scale, 1)
    scale = operator.index(scale)
    lifted, negative = _lifted_size_and_sign(scale, below)
    return _signed(lifted - _BASE * scale, negative)


def discrete_gaussian(sigma: int, below: Below) -> int:
    """Draw an integer x with probability proportional to exp(-x^2/(2 sigma^2)).

    Args:
        sigma: an integer, at least 1.
        below: source of uniform integers.

    Raises:
        ValueError: sigma is no integer above 0.
    """
    positive_integer("discrete_gaussian", "sigma", sigma, 1)
    sigma = operator.index(sigma)
    scale, square = sigma + 1, sigma * sigma
    # Exponent (|y| - sigma^2/t)^2/(2 sigma^2), t the scale of the proposal: (m - c)^2 = c^2 - m (2c - m) over
    # 2 sigma^2 t^2, for m = (|y| + 64 t) t and c = 64 t^2 + sigma^2.
    center = _BASE * scale * scale + square
    denominator = 2 * square * scale * scale
    constant = center * center + _BASE * denominator
    while True:
        lifted, negative = _lifted_size_and_sign(scale, below)
        product = lifted * scale
        if _bernoulli_exp(constant - product * (2 * center - product), denominator, below):
            return _signed(lifted - _BASE * scale, negative)


# Numbers that depend on the noise are "lifted": 64 units of their scale are added, so that all of them are equally long
# integers, with which arithmetic takes equally long.


def _signed(size, negative):
    """Return the signed size; both signs are computed, so that time does not depend on it."""
    return (size, -size)[negative]


def _lifted_size_and_sign(scale, below):
    """Return |x| + 64 scale and whether x is negative, for discrete Laplace noise x.

    One uniform integer holds what a trial needs: the remainder of |x| by the scale, the bits that accept it with
    probability exp(-remainder/scale), those of the quotient, and the sign.
    """
    while True:
        bits = below(scale << (2 * _WIDTH + 1))
        remainder = bits >> (2 * _WIDTH + 1)
        if _is_below_exp((bits >> (_WIDTH + 1)) & _mask(_WIDTH), remainder + _BASE * scale, scale, below):
            lifted = remainder + scale * (_BASE + _quotient((bits >> 1) & _mask(_WIDTH), below))
            negative = bits & 1
            if 2 * lifted + negative != 2 * _BASE * scale + 1:  # 0 has one sign
                return lifted, negative


def _bernoulli_exp(lifted, denominator, below):
    """Return `bernoulli_exp` for the ratio lifted/denominator - 64."""
    while lifted >= 2 * _BASE * denominator:  # as good as lost: one factor of e^-63 after the other
        if not _is_below_exp(below(1 << _WIDTH), 2 * _BASE - 1, 1, below):
            return False
        lifted -= (_BASE - 1) * denominator
    return _is_below_exp(below(1 << _WIDTH), lifted, denominator, below)


def _quotient(word, below):
    """Draw an integer that is at least k with probability e^-k: the number of k >= 1 with e^-k above a uniform.

    Args:
        word: the first bits of the uniform number.
        below: source of uniform integers.
    """
    width, least = _WIDTH, 0
    while True:
        floors = _exponentials(width).floors
        # 63 entries behind the first: always 6 comparisons.
        after = bisect_right(floors, word, 1)
        if word - floors[after - 1] > 1:
            if after > 1:
                return least + len(floors) - after
            # Below e^-63: what is left over has the law of the whole.
            least += len(floors) - 1
            width, word = _WIDTH, below(1 << _WIDTH)
        else:
            width, word = 2 * width, word << width | below(1 << width)


def _is_below_exp(word, lifted, denominator, below, width=None):
    """Return whether a uniform number is below exp(64 - lifted/denominator), for a ratio in [64, 128).

    Args:
        word: the first bits of the uniform number.
        lifted: numerator of the ratio.
        denominator: of the ratio.
        below: source of uniform integers.
        width: how many bits these are; `_WIDTH` by default.
    """
    width = _WIDTH if width is None else width
    while True:
        above = word - _exp_floor(lifted, denominator, width)
        if above < 0:
            return True
        if above > 1:
            return False
        width, word = 2 * width, word << width | below(1 << width)


def _exp_floor(lifted, denominator, width):
    """Return an integer f with f <= exp(64 - lifted/denominator) 2^width < f + 2, for a ratio in [64, 128).

    Errors, in units of 2^-bits: 1 for the ratio; 3.1 for the series (its rest 1; its coefficients and products 1 each,
    of which only the last one is not made small by a factor below 2^-18); for each of 4 factors 1.01, and 1 for the
    product. They sum up to 12.2, less than `_ERROR`.
    """
    bits, coefficients, powers, _ = _exponentials(width)
    ratio = (lifted << bits) // denominator  # of which the digit 64 is not looked at
    rest = ratio & _mask(bits - _DIGITS * _DIGIT)
    value = 0
    for coefficient in coefficients:
        value = coefficient - (rest * value >> bits)
    for shift, table in powers:
        value = value * table[(ratio >> shift) & (_BASE - 1)] >> bits
    return (value - _ERROR) >> _GUARD


class _Exponentials(NamedTuple):
    """Integer constants of the exponential."""

    bits: int  #: behind the point
    coefficients: tuple[int, ...]  #: 1/k!, the last one first
    powers: tuple[tuple[int, tuple[int, ...]], ...]  #: for each digit its place in the ratio and exp(-digit)
    floors: tuple[int, ...]  #: f <= e^-k 2^width < f + 2 for k = 63, ..., 1, behind a number below all


@functools.cache
def _exponentials(width):
    """Return the constants for uniform numbers of ``width`` bits."""
    bits = width + _GUARD
    # An alternating series is off by less than its first term left out.
    count = next(k for k in range(bits) if math.factorial(k) << (_DIGITS * _DIGIT * k) >= 1 << bits)
    coefficients = tuple((1 << bits) // math.factorial(k) for k in reversed(range(count)))
    powers = tuple((bits - _DIGIT * place, _powers(_DIGIT * place, bits)) for place in reversed(range(_DIGITS + 1)))
    wholes = powers[-1][1]
    floors = (-2, *((whole - _ERROR) >> _GUARD for whole in reversed(wholes[1:])))
    return _Exponentials(bits, coefficients, powers, floors)


def _powers(place, bits):
    """Return exp(-d 2^-place) 2^bits for d = 0, ..., 63, each at most 1.01 too small.

    With 32 bits more: a series of fewer than ``bits`` + 32 terms, each 2 off at most, is off by 2 (bits + 33), and each
    of 63 products adds that and 1. Together that is less than 2^-11 of the last of ``bits`` for widths below 2^14:
    `discrete_vectors` wants more than 2^13 + 64 with a probability below 2^-8000.
    """
    precision = bits + 32
    one = 1 << precision
    base, term, k = 0, one, 0
    while term:
        base += -term if k % 2 else term
        k += 1
        term //= k << place
    powers = [one]
    for _ in range(_BASE - 1):
        powers.append(powers[-1] * base >> precision)
    return tuple(power >> 32 for power in powers)


@functools.cache
def _mask(bits):
    return (1 << bits) - 1
