"""How one budget is split among mean, variance and covariance: by public numbers, for the narrowest regions.

All is in units of a ball of radius r in which the mean squared distance of the records from their mean is supposed to
be (r/2)^2, and the mean a quarter of r away from the centre (docs/mathematics.md, section 18).
"""

import itertools
import math

from jaxgeodp.inference.matrix_noise import is_smaller
from jaxgeodp.samplers.spectral import hull_mean_square

_REACH = 1.25**2
_VARIANCE = 0.25
_TRIED = (2, 5, 10, 15, 20, 30, 40, 50, 60, 70, 80)


def shares_of(parameter: str, strength: float, n: int, dim: int) -> tuple[int, int, int]:
    """Return the shares of epsilon, or of mu^2, for mean, variance and covariance, in hundredths.

    Those with the smallest product of relative widths: of the region of the mean, compared with no noise at all, and of
    the errors of variance and covariance compared with themselves, plus 1.

    Args:
        parameter: "epsilon" or "mu".
        strength: of all.
        n: number of records.
        dim: of the manifold.
    """

    def width(shares):
        mean, variance, covariance = noises(parameter, strength, n, dim, shares)
        return 0.5 * math.log1p(mean) + math.log1p(variance) + math.log1p(covariance)

    pairs = itertools.product(_TRIED, _TRIED)
    tried = [(100 - v - c, v, c) for v, c in pairs if v + c < 95]
    return min(tried, key=width)


def noises(parameter, strength, n, dim, shares) -> tuple[float, float, float]:
    """Return squared noise of the mean over its sampling variance, and relative noise of variance and covariance.

    Args:
        parameter, strength, n, dim: see `shares_of`.
        shares: of the three, in hundredths.
    """
    shares = [share / 100.0 for share in shares]
    entries = 0.5 * dim * (dim + 1)
    if parameter == "mu":
        mean, variance, covariance = (strength * math.sqrt(share) for share in shares)
        of_mean, of_matrix = dim * (2.0 / (n * mean)) ** 2, math.sqrt(2.0 * entries) / covariance
    else:
        mean, variance, covariance = (strength * share for share in shares)
        of_mean = dim * (dim + 1) * (2.0 / (n * mean)) ** 2
        of_matrix = (math.sqrt(hull_mean_square(dim)) if is_smaller(dim) else 2.0 * entries) / covariance
        variance /= math.sqrt(2.0)
    relative = of_matrix * _REACH / n / (_VARIANCE / math.sqrt(dim))
    return of_mean * n / _VARIANCE, _REACH / (n * variance) / _VARIANCE, relative
