"""What double precision can hold: the one place where numbers of every release are checked, before it is charged.

XLA flushes numbers below 2.2e-308 to 0, and noise of such a scale would be none; sums of squares above 1.8e308 are
infinite, for some records and not for others.
"""

import math
from typing import Any

import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.releases.law import Ready

# Squares of numbers in this range, and sums of as many of them as there may be, are neither subnormal nor infinite.
_LEAST, _LARGEST = 1e-140, 1e140
# Of a scale, in roundings of a number as large as the ball: noise keeps two digits of what a value is rounded to.
_ROUNDINGS = 100.0


def check_numbers(ready: Ready, ball: Any = None) -> None:
    """Refuse a release whose noise or vectors double precision cannot hold, by public numbers alone.

    Args:
        ready: of the release.
        ball: the public ball of a release in floating point, against which noise must be seen; None for integers.

    Raises:
        ValueError: a scale or a sensitivity is out of range; says which.
    """
    name, terms = ready.terms.mechanism, ready.terms
    for what, numbers in (("scale", ready.scale), ("sensitivity", terms.sensitivity)):
        own = np.atleast_1d(np.asarray(numbers, np.float64))
        # A sensitivity is that of a mean; the sum is n times as large.
        most = _LARGEST / (terms.n if what == "sensitivity" else 1)
        if not np.all((own >= _LEAST) & (own <= most)):
            raise InputError(
                f"{name}: a {what} of {_range(own)} with n = {terms.n} is beyond double precision; choose other units, "
                "another radius or another privacy parameter."
            )
    if ball is not None:
        rounding = _ROUNDINGS * np.finfo(np.float64).eps * ball.radius
        if np.min(ready.scale) < rounding:
            raise InputError(
                f"{name}: with n = {terms.n} a scale of {np.min(ready.scale):.3g} is too small to be seen beside the "
                f"rounding of numbers as large as the radius {ball.radius:g}; lower the privacy parameter, or say "
                "numerics='grid' if the mechanism has it."
            )


def _range(numbers):
    least, most = float(np.min(numbers)), float(np.max(numbers))
    return f"{least:.3g}" if math.isclose(least, most) or math.isnan(least) else f"{least:.3g} to {most:.3g}"
