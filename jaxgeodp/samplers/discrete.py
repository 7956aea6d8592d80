"""Exact discrete noise, in integers alone (Canonne, Kamath & Steinke 2020, Algorithms 1 to 3).

No floating-point number occurs: the laws hold to the last bit if ``below(n)`` is uniform on 0, ..., n - 1. For releases
that is `secrets.randbelow`, the generator of the operating system. How long a draw takes depends on the noise only.
"""

import operator
from collections.abc import Callable

from jaxgeodp.checks import positive_integer

#: ``below(n)``: a uniform integer from 0 to n - 1.
Below = Callable[[int], int]


def bernoulli_exp(numerator: int, denominator: int, below: Below) -> bool:
    """True with probability exp(-numerator/denominator), for a ratio that is not negative."""
    while numerator > denominator:
        if not _bernoulli_exp_of_fraction(1, 1, below):
            return False
        numerator -= denominator
    return _bernoulli_exp_of_fraction(numerator, denominator, below)


def _bernoulli_exp_of_fraction(numerator, denominator, below):
    """The same for a ratio from 0 to 1: the length of a run of Bernoulli(ratio/k) is odd."""
    k = 1
    while below(k * denominator) < numerator:
        k += 1
    return k % 2 == 1


def discrete_laplace(scale: int, below: Below) -> int:
    """An integer x with probability proportional to exp(-|x|/scale).

    Args:
        scale: an integer, at least 1.
        below: source of uniform integers.

    Raises:
        ValueError: the scale is no integer above 0.
    """
    positive_integer("discrete_laplace", "scale", scale, 1)
    scale = operator.index(scale)
    while True:
        remainder = below(scale)
        if not _bernoulli_exp_of_fraction(remainder, scale, below):
            continue
        quotient = 0
        while _bernoulli_exp_of_fraction(1, 1, below):
            quotient += 1
        size = remainder + scale * quotient
        negative = below(2) == 1
        if not (negative and size == 0):  # 0 has one sign
            return -size if negative else size


def discrete_gaussian(sigma: int, below: Below) -> int:
    """An integer x with probability proportional to exp(-x^2/(2 sigma^2)).

    Args:
        sigma: an integer, at least 1.
        below: source of uniform integers.

    Raises:
        ValueError: sigma is no integer above 0.
    """
    positive_integer("discrete_gaussian", "sigma", sigma, 1)
    sigma = operator.index(sigma)
    scale = sigma + 1
    while True:
        proposal = discrete_laplace(scale, below)
        # Exponent (|y| - sigma^2/t)^2/(2 sigma^2), t the scale of the proposal.
        distance = abs(proposal) * scale - sigma**2
        if bernoulli_exp(distance**2, 2 * sigma**2 * scale**2, below):
            return proposal
