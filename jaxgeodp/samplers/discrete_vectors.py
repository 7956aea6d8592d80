"""Exact discrete noise in arrays, with the laws of `samplers.discrete`, at ten million integers a second and more.

An integer is drawn in three steps, from three words of 64 bits. Its size lies in one of the *bins* of 2^shift integers
each, b 2^shift, ..., (b + 1) 2^shift - 1: which one is found by inversion, with the weight of a bin's least integer.
Its place in the bin is uniform, and kept with the probability that is missing; a sign comes last, and -0 is rejected
(docs/mathematics.md, section 13, Noise by the array). Bins are so narrow that nearly all proposals are accepted.

Both decisions compare a uniform real number, of which the first bits are drawn, with a number of which bounds are
computed in integers. Where the bits do not decide, the one proposal in question is finished in integers of any
length, with more bits, until they do: the laws hold to the last bit.

How many proposals are made follows from public numbers, and all of them are treated alike. Both exceptions come from
the noise alone: a decision takes more than the first bits once in 2^52 proposals at most, and a second set of
proposals is needed with a probability below 2^-100.
"""

import functools
import math
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.samplers.discrete import bernoulli_exp, discrete_gaussian, discrete_laplace, exp_floor, is_below_exp

#: ``words(count)``: independent uniform integers of 64 bits, a uint64 array (count,).
Words = Callable[[int], np.ndarray]

#: Largest scale whose sizes fit 64 bits but with probability 2^-180.
MAX_SCALE = 1 << 56
# Bits of a uniform number that are looked at first for the bin, and by how many fewer they are for the acceptance.
_WIDTH = 64
_FEWER = 5
# A scale is from 16 to 32 bins, unless bins have one integer each.
_BINS = 5
# Bits that computed weights have more than words, and the error of a sum, in units of their last bit.
_GUARD = 64
_ERROR = 1 << 56
# Proposals that are made together: arrays that stay in the processor's cache.
_CHUNK = 1 << 13
# -log of the probability that a set of proposals is too small.
_SHORTAGE = 100 * math.log(2.0)
_LOW = (1 << 32) - 1
_DIGIT = 10


def draws(law, scale: int, count: int, words: Words) -> np.ndarray:
    """Return independent integers from the law of `discrete_laplace` or `discrete_gaussian`.

    Args:
        law: one of these two functions.
        scale: of the law, an integer from 1 to `MAX_SCALE`.
        count: how many integers, at least 1.
        words: source of uniform integers.

    Returns:
        Integers (count,) of 64 bits; where one has more, Python's integers.

    Raises:
        ValueError: it is another law, or scale or count are no integers in their range.
    """
    if law not in (discrete_laplace, discrete_gaussian):
        raise InputError("draws: law must be discrete_laplace or discrete_gaussian.")
    positive_integer("draws", "scale", scale, 1)
    if scale > MAX_SCALE:
        raise InputError(f"draws: scale must be at most 2^56, got {scale}; draw larger noise one by one.")
    positive_integer("draws", "count", count, 1)
    table = _table(law, int(scale), _WIDTH)
    found, missing = [], count
    while missing > 0:  # once, but for a probability below 2^-100
        proposals = _proposals(missing, table.rejected)
        for start in range(0, proposals, _CHUNK):
            found.append(_accepted(table, min(_CHUNK, proposals - start), words))
        missing = count - sum(map(len, found))
    return np.concatenate(found)[:count]


class _Table(NamedTuple):
    """Public constants of a law."""

    law: Callable
    scale: int
    width: int  #: bits of a word that are looked at first
    shift: int  #: bins have 2^shift integers
    floors: np.ndarray  #: (k,) uint64: f with f <= P(b >= j) 2^width < f + 2 for j = 1, ..., k; the last one is 0
    bits: int  #: of the mantissa of the cells
    before: np.ndarray  #: for each cell of words how many floors are surely above them
    crowded: int  #: words below this one may be near more than one floor
    slopes: np.ndarray  #: (k + 1,) uint64: the linear part of the exponent in each bin, in units of 2^-64
    curve: int  #: the quadratic part
    rejected: float  #: an upper bound of the share of proposals that are rejected


def _proposals(count, rejected):
    """Return a number of proposals of which fewer than ``count`` pass with probability < 2^-100 (Bernstein)."""
    total = count
    while True:
        mean = rejected * total
        enough = count + math.ceil(mean + _SHORTAGE / 3 + math.sqrt(_SHORTAGE**2 / 9 + 2 * _SHORTAGE * mean))
        if enough <= total:
            return total
        total = enough


# All proposals ------------------------------------------------------------------------------------------


def _accepted(table: _Table, count: int, words: Words) -> np.ndarray:
    """Return the accepted ones of so many proposals, int64 or Python integers."""
    first, second = words(count), words(count)
    word = first >> (64 - table.width)
    bins, undecided = _bins(table, word)
    keep = np.ones(count, bool)
    sizes, place, accepted = bins, np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    if table.shift:
        place = words(count) >> (64 - table.shift)
        short = 64 - table.width + _FEWER
        accepted = second >> short
        floor = _exponential(table, bins, place << (64 - table.shift)) >> short
        keep = accepted < floor
        undecided |= accepted - floor <= 1  # differences below 0 are large
        sizes = (bins << table.shift) | place.view(np.int64)
    negative = (second & 1).view(np.int64)
    keep &= sizes >= negative  # 0 has one sign
    values = (sizes ^ -negative) + negative
    for j in np.flatnonzero(undecided):
        size = _settled(table, int(word[j]), int(place[j]), int(accepted[j]), words)
        keep[j] = size is not None and size >= negative[j]
        if size is not None:
            values = values if size < 1 << 63 else values.astype(object)
            values[j] = -size if negative[j] else size
    return values[keep]


def _cells(words, bits):
    """Return the cell of each word, non-decreasing in the word: its exponent and leading bits."""
    rounded = ((words >> 1) | 1).view(np.int64).astype(np.float64)
    return (rounded.view(np.int64) >> (52 - bits)) - (1023 << bits)


def _bins(table, word):
    """Return the bins of words, int64, and which words do not decide.

    In each cell there is at most one floor near by; all others are on known sides.
    """
    bins = np.take(table.before, _cells(word, table.bits))
    floor = np.take(table.floors, bins)
    return bins + (word < floor), (word - floor <= 1) | (word < table.crowded)


def _exponential(table, bins, place):
    """Return integers f with f <= exp(-z) 2^64 < f + 32, z the exponent of a place.

    Args:
        table: of the law.
        bins: of the proposals.
        place: in the bin, in units of 2^-64 of it.

    Errors, in units of 2^-64: the exponent is at most 8 too small (a slope 1, the curve 1, its product 3, the last one
    3), so that its exponential is at most 8 too large. Of that the two digits of 10 bits are looked up, each 1 off, and
    the rest below 2^-20 is that of the series 1 - x + x^2/2 (its next term 2.7, what is cut off 1.01). The product of
    the two small ones is 9 off, that with the large one 3. Sum: from 11.1 too small to 15.8 too large.
    """
    slope = np.take(table.slopes, bins)
    exponent = _high(place, slope + _high(place, table.curve) if table.curve else slope)
    large, small = _exponentials()
    rest = exponent & ((1 << (64 - 2 * _DIGIT)) - 1)
    leading = rest >> 12
    lost = rest - (leading * leading >> 41)
    other = np.take(small, (exponent >> (64 - 2 * _DIGIT)).view(np.int64) & ((1 << _DIGIT) - 1))
    lost += other - ((other >> 22) * (lost >> 12) >> 30)
    value = np.take(large, (exponent >> (64 - _DIGIT)).view(np.int64))
    return value - _high(lost, value) - 16


def _high(x, y):
    """Return the upper 64 of 128 bits of products, at most 3 too small."""
    x1, x0, y1, y0 = x >> 32, x & _LOW, y >> 32, y & _LOW
    return x1 * y1 + (x1 * y0 >> 32) + (x0 * y1 >> 32)


# One proposal that its first bits do not decide ---------------------------------------------------------


def _settled(table, word, place, accepted, words):
    """Return the size of a proposal, by more bits of its uniforms; None if it is rejected."""
    below = functools.partial(_below, words)
    width = table.width
    while True:
        floors = _floors(table.law, table.scale, width)
        # From the last one, 0, upwards.
        after = bisect_right(floors, word)
        if word - floors[after - 1] > 1:
            break
        width, word = 2 * width, word << width | below(1 << width)
    size = (len(floors) - after << table.shift) + place
    if not table.shift:
        return size
    ratio = _missing(table.law, table.scale, size - place, place)
    if width > table.width:  # to come here took no look at the bits for the acceptance: others do
        kept = bernoulli_exp(*ratio, below)
    else:
        kept = is_below_exp(accepted, width - _FEWER, *ratio, below)
    return size if kept else None


def _below(words, power):
    """Return a uniform integer below a power of 2."""
    return int.from_bytes(words((power.bit_length() + 62) // 64).tobytes(), "little") % power


def _missing(law, scale, start, place):
    """Return, as a ratio, the exponent by which a place in a bin is less probable than its start."""
    if law is discrete_gaussian:
        return place * (2 * start + place), 2 * scale * scale
    return place, scale


# Tables -------------------------------------------------------------------------------------------------


def _shift(scale):
    return max(0, scale.bit_length() - _BINS)


@functools.lru_cache(64)
def _floors(law, scale, width):
    """Return Python integers f with f <= P(b >= j) 2^width < f + 2, ascending from 0 to that of j = 1.

    Weights are products, of at most k factors. All numbers are rounded down. In units of the last of width + 64 bits,
    a ratio of neighbours is 2 + 6 k off at most, a weight 3 k^2; what is left out, in which weights fall by a factor of
    exp(-1/32) and more, is 64 times the last one: sums of k weights are k^3 + 64 (3 k^2 + 1) off at most, which is
    below 2^55 for k < 2^18, that is for words below 2^13 bits.
    """
    bits, start = width + _GUARD, 1 << _shift(scale)
    numerator, denominator = _missing(law, scale, 0, start)
    ratio = exp_floor(numerator, denominator, bits)
    change = ratio * ratio >> bits if law is discrete_gaussian else 1 << bits
    weights = [1 << bits]
    while weights[-1]:
        weights.append(weights[-1] * ratio >> bits)
        ratio = ratio * change >> bits
    total, beyond, floors = sum(weights), 0, [0]
    for weight in reversed(weights[1:]):
        beyond += weight
        floor = ((beyond << bits) // total - _ERROR) >> _GUARD
        if floor > 0:
            floors.append(floor)
    return tuple(floors)


@functools.lru_cache(64)
def _table(law, scale, width):
    """Build the table with cells so small that nearly all hold at most one floor."""
    shift, upwards = _shift(scale), _floors(law, scale, width)
    floors = np.array(upwards[::-1], np.uint64)
    # Bits of the mantissa; short words, of which the tests draw many, have no cells that are small enough.
    tried = (_near(floors, width, bits) for bits in range(3, 9))
    bits, before, crowded = next((cells for cells in tried if cells[2] << 56 <= 1 << width), _near(floors, width, 8))
    numerator, denominator = _missing(law, scale, 0, 1 << shift)
    unit = (numerator << 64) // denominator
    gaussian = law is discrete_gaussian
    numbers = range(len(floors) + 1)
    slopes = [(2 * j * numerator << 64) // denominator if gaussian else unit for j in numbers] if shift else [0]
    edges = np.array([1 << width, *upwards[::-1]], np.float64) / 2.0**width
    # At most the mean exponent in each bin; by Jensen's inequality at least so many are kept.
    mean = unit / 2.0**64 * (1.0 - 2.0**-shift) * (np.arange(len(floors)) + 1 / 3 if gaussian else 0.5)
    kept = np.sum(-np.diff(edges) * np.exp(-mean))
    return _Table(
        *(law, scale, width, shift, floors, bits, before, crowded, np.array(slopes, np.uint64)),
        curve=unit if gaussian else 0,
        rejected=float(1.0 - kept + 0.5 * (1.0 - edges[1]) / 2.0**shift),
    )


def _near(floors, width, bits):
    """Return the bits, the floors above each cell, and the first word above all cells near several floors."""
    cells = np.arange(_cells(np.array([(1 << width) - 1], np.uint64), bits)[0] + 1)
    low, high = (_cells(ends, bits)[::-1] for ends in (floors, floors + 1))
    after = np.searchsorted(low, cells, "right")
    many = np.flatnonzero(after - np.searchsorted(high, cells, "left") > 1)
    if not len(many):
        return bits, len(floors) - after, 0
    power, mantissa = divmod(int(many[-1]) + 1, 1 << bits)
    return bits, len(floors) - after, 2 * -((-((1 << bits) + mantissa) << power) >> bits)


@functools.cache
def _exponentials():
    """Return exp(-d 2^-10) and 1 - exp(-d 2^-20) for d < 1024, in units of 2^-64, each at most 1 off."""

    def floors(place):
        return np.array([exp_floor(d, 1 << place, 128) >> 64 for d in range(1 << _DIGIT)], np.uint64)

    return floors(_DIGIT), ((1 << 64) - 1) - floors(2 * _DIGIT)
