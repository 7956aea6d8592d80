"""What double precision can hold: the one place where numbers of every release are checked, before it is charged.

XLA flushes numbers below 2.2e-308 to 0, and noise of such a scale would be none; sums of squares above 1.8e308 are
infinite, for some records and not for others.
"""

import math
from typing import Any

import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.releases.law import Terms

# Squares of numbers in this range, and sums of as many of them as there may be, are neither subnormal nor infinite.
_LEAST, _LARGEST = 1e-140, 1e140
# Of a scale, in roundings of the largest number beside it: noise keeps two digits of what a value is rounded to.
_ROUNDINGS = 100.0


def check_numbers(terms: Terms, scale: Any, size: float | None = None) -> None:
    """Refuse a release whose noise or vectors double precision cannot hold, by public numbers alone.

    Args:
        terms: of the law.
        scale: of the noise.
        size: of the numbers that noise of floating point is added to, in the units of the scale: noise must be seen
            beside them. None for integers, or where it is not known.

    Raises:
        ValueError: a scale or a sensitivity is out of range; says which.
    """
    for what, numbers in (("scale", scale), ("sensitivity", terms.sensitivity)):
        own = np.atleast_1d(np.asarray(numbers, np.float64))
        # A sensitivity is that of a mean; the sum is n times as large.
        most = _LARGEST / (terms.n if what == "sensitivity" else 1)
        if not np.all((own >= _LEAST) & (own <= most)):
            raise InputError(
                f"{terms.mechanism}: a {what} of {_range(own)} with n = {terms.n} is beyond double precision; choose "
                "other units, another radius or another privacy parameter."
            )
    if size is not None and np.min(scale) < _ROUNDINGS * np.finfo(np.float64).eps * size:
        raise InputError(
            f"{terms.mechanism}: with n = {terms.n} a scale of {np.min(scale):.3g} is too small, below the rounding "
            f"error of numbers as large as {size:.3g}; lower the privacy parameter."
        )


def _range(numbers):
    least, most = float(np.min(numbers)), float(np.max(numbers))
    return f"{least:.3g}" if math.isclose(least, most) or math.isnan(least) else f"{least:.3g} to {most:.3g}"
