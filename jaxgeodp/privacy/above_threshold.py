"""What `samplers.above_threshold` promises: Theorem Q1 of docs/mathematics.md, section 16, in numbers.

One record moves all counts in one direction, each by at most 1, and noise has the integer scale t. The logarithm of the
ratio of two neighbours' probabilities, that for the smaller counts on top, lies between -1/t and 2/t for every output.
With u = e^(1/t), no two laws with such ratios are easier to tell apart than the two of one bit that is 1 with
probability u^2/(1 + u + u^2) or 1/(1 + u + u^2).
"""

import math
import operator
from fractions import Fraction

import numpy as np

from jaxgeodp.checks import positive_integer
from jaxgeodp.privacy.decimals import float_above
from jaxgeodp.privacy.guarantee import GaussianDP, PureDP, ZeroConcentratedDP

# Relative: hundreds of times the errors of what is computed in floating point.
_MARGIN = 1e-12
# Of the Gauss-Legendre rule on [q, p], which lies in [0.09, 0.67]; the integrand is analytic but at 0 and 1.
_NODES = 32


def pure(scale: int) -> PureDP:
    """Return epsilon-DP with epsilon = 2/scale, rounded up.

    Raises:
        ValueError: the scale is no integer above 0.

    Example:
        >>> pure(20)
        PureDP(epsilon=0.1)
    """
    return PureDP(float_above(Fraction(2, _checked(scale))))


def zcdp(scale: int) -> ZeroConcentratedDP:
    """Return rho-zCDP with rho = (3/scale)^2/8, rounded up: the log ratio lies in an interval of length 3/scale.

    Raises:
        ValueError: the scale is no integer above 0.
    """
    return ZeroConcentratedDP(float_above(Fraction(9, 8 * _checked(scale) ** 2)))


def gdp(scale: int) -> GaussianDP:
    """Return mu-GDP, mu = Phi^-1(u^2/(1 + u + u^2)) - Phi^-1(1/(1 + u + u^2)), u = e^(1/scale), rounded up.

    It is computed as the integral of 1/phi(Phi^-1(x)) between the two probabilities, in which no digits cancel.

    Raises:
        ValueError: the scale is no integer above 0.
    """
    from scipy.special import ndtri

    inverse = float(Fraction(1, _checked(scale)))
    least = 1.0 / (1.0 + math.exp(inverse) + math.exp(2.0 * inverse))
    width = math.expm1(2.0 * inverse) * least
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    normal = ndtri(least + 0.5 * width * (nodes + 1.0))
    mean = 0.5 * math.sqrt(2.0 * math.pi) * float(np.sum(weights * np.exp(0.5 * normal**2)))
    return GaussianDP(width * mean * (1.0 + _MARGIN))


def _checked(scale):
    positive_integer("above_threshold", "scale", scale, 1)
    return operator.index(scale)
