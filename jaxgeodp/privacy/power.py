"""Upper bounds on the power of tests between neighbouring data sets, under a guarantee.

A guarantee bounds the share of true positives of every test by its share of false ones (docs/mathematics.md, section
8). The bound is concave, so that it holds for averages over records, and over what else is unknown, too.
"""

import math
from typing import Any

import numpy as np

from jaxgeodp.privacy.guarantee import ApproximateDP, GaussianDP, Guarantee, PureDP, ZeroConcentratedDP

# Orders of Renyi divergences, less 1.
_ORDERS = np.geomspace(1e-3, 1e4, 400)
# Shares of false positives between which areas are bounded from above.
_SHARES = np.unique(np.concatenate([[0.0], np.geomspace(1e-9, 1e-3, 200), np.linspace(1e-3, 1.0, 4000)]))


def most_power(guarantee: Guarantee, false: Any) -> np.ndarray:
    """Return the largest share of true positives of a test with these shares of false ones; 1 where none is proven.

    Args:
        guarantee: of a release.
        false: in [0, 1], of any shape.
    """
    from scipy.special import ndtr, ndtri

    q = np.asarray(false, float)
    match guarantee:
        case PureDP(epsilon):
            power = np.minimum(_times(q, epsilon), 1.0 - _times(1.0 - q, -epsilon))
        case ApproximateDP(epsilon, delta):
            power = np.minimum(delta + _times(q, epsilon), 1.0 - _times(1.0 - delta - q, -epsilon))
        case GaussianDP(mu):
            power = ndtr(mu + ndtri(q))
        case ZeroConcentratedDP(rho):
            power = _of_divergences(q, rho)
        case _:
            power = np.ones_like(q)
    return np.clip(power, q, 1.0)


def most_area(guarantee: Guarantee) -> float:
    """Return the largest area under the receiver operating characteristic of a test, from above.

    Args:
        guarantee: of a release.

    Example:
        >>> from jaxgeodp.privacy import GaussianDP, PureDP
        >>> round(most_area(PureDP(1.0)), 3), round(most_area(GaussianDP(1.0)), 3)
        (0.731, 0.76)
    """
    match guarantee:
        case PureDP(epsilon):
            return 1.0 / (1.0 + math.exp(-epsilon))
        case GaussianDP(mu):
            return 0.5 * math.erfc(-0.5 * mu)
        case _:  # the bound does not fall
            return float(np.sum(np.diff(_SHARES) * most_power(guarantee, _SHARES[1:])))


def _times(share, exponent):
    return share * math.exp(min(exponent, 700.0))


def _of_divergences(q, rho):
    """Return the bound of p^a q^(1-a) <= e^((a-1) a rho) for all orders a > 1, and for complements in both roles."""
    less, order = _ORDERS, _ORDERS + 1.0
    q = q[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        above = np.exp(np.minimum(less * rho + less / order * np.log(q), 0.0))
        missed = np.exp(order / less * (np.log1p(-q) - less * rho))
    return np.minimum(np.min(above, axis=-1), 1.0 - np.max(np.nan_to_num(missed), axis=-1))
