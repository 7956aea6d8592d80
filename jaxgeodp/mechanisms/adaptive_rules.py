"""The public numbers of an adaptive release: what each stage costs, where it clips, when it goes on.

All follow from n, the dimension and the privacy parameter; the constants are docs/mathematics.md, section 21. Lengths
are in units of the radius, costs are shares of epsilon or of mu^2.
"""

import functools
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

#: The least n mu for which anything was found out, and from which on the rule without symmetry is used.
FEW, MANY = 50.0, 200.0
#: The largest share of a budget that pairs and one count may cost; the n epsilon for each dimension from which on there
#: are questions, and up to which there are two means without; the least share of a pair count and of a count.
DEAR, FEW_PER_DIMENSION, LEAST_SHARE = 0.12, 25.0, 0.02
#: Up to this n mu for each dimension, and this n epsilon times a power of the dimension less one, the rules of symmetry
#: are used: from there on reference populations lose (docs/mathematics.md, section 21).
SYMMETRIC, SYMMETRIC_PURE = 250.0, 500.0
# Of a share of records that a noisy count must reach.
_MOST_KEPT, _SURELY = 0.9999, 1.0 - 1e-12
#: Middle rounds at most.
MIDDLES = 2
#: A middle round is made while the centre is less well known than this share of the radius, squared; and of the budget
#: of a pure one this much must be left.
KNOWN, LEFT = 0.02, Fraction(3, 5)
#: How far off, beside noise, a first and a further centre are supposed to be: half of it cannot be told.
FIRST_BIAS, BIAS = 0.05, 0.02
#: Of radii that are tried, one to the next; at least and at most this much, and this multiple of the centre's error.
STEP, LEAST, MOST, NOISE = 2.0**0.25, 0.005, 0.7, 0.7
#: Of pure releases: a radius is not tried that is less than this multiple of the centre's error.
TOO_NEAR = 1.2


class Rule(NamedTuple):
    """Hold the public numbers of an adaptive release: costs and clips of its stages, and when it goes on."""

    pure: bool
    first: Fraction  #: cost of the first mean
    first_clip: float
    middle: Fraction  #: of a middle one
    counting: Fraction  #: of a count
    kept: float  #: share of the records that a radius must hold
    reach: float  #: the last clip in units of the radius that holds them
    slope: float  #: J: how far a mean of clipped logarithms moves with its centre
    filled: float  #: from which radius on, or below which share of pairs, the ball counts as filled
    pairs: Fraction = Fraction(0)  #: cost of the pair count
    pair_radius: float = 0.0
    start: float = 1.0  #: radius before one was found
    ladder: tuple[float, ...] = ()
    fixed: bool = False  #: two means and no question between them, whose clips are ``first_clip`` and ``reach``


# Of few records that are supposed to lie symmetrically.
_FIXED = Rule(
    pure=True,
    first=Fraction(2, 5),
    first_clip=0.5,
    middle=Fraction(0),
    counting=Fraction(0),
    kept=0.0,
    reach=0.25,
    slope=0.5,
    filled=0.0,
    fixed=True,
)


def rule_for(n: int, dim: int, strength: float, pure: bool, symmetric: bool) -> Rule | None:
    """Return the rule; None if there are too few records for several stages, so that one release is made.

    Args:
        n: number of records.
        dim: of the manifold.
        strength: epsilon or mu.
        pure: whether it is epsilon.
        symmetric: whether records are supposed to lie symmetrically about their mean: used while noise is wide enough
            for it to pay to clip more of them, also if they are not normal.
    """
    limit = SYMMETRIC_PURE * (dim - 1) ** 0.35 if pure else SYMMETRIC * dim * (dim > 1)
    symmetric = symmetric and n * strength <= limit
    return (_pure if pure else _gaussian)(n, dim, strength, symmetric)


def _gaussian(n, dim, mu, symmetric) -> Rule | None:
    if n * mu < FEW:
        return None
    count = mu * min(0.15, max(0.05, 25.0 / (n * mu)))
    if symmetric or n * mu <= MANY:
        clipped = _best_kept(n, dim, mu, 0.05 if symmetric else 1.0)
        kept = min(clipped, 0.88)  # above, a noisy count cannot tell it from all
        reach, filled = _quantile(dim, clipped) / _quantile(dim, kept), 0.8
        slope = _slope(dim, _quantile(dim, clipped))
    else:
        kept = min(max(1.0 - 2.5 / (count * n), 0.75), 0.998)
        clipped = min(max(1.0 - min(0.3, 2.0 * math.sqrt(dim) / (n * mu)), kept), _SURELY)
        reach = _quantile(dim, clipped) / _quantile(dim, kept)
        slope, filled = max(0.9, _slope(dim, _quantile(dim, clipped))), min(0.8, 0.71 / reach)
    return Rule(
        pure=False,
        first=Fraction(3, 100),
        first_clip=1.0,
        middle=Fraction(8, 100),
        counting=_rounded((count / mu) ** 2),
        kept=kept,
        reach=reach,
        slope=slope,
        filled=filled,
    )


def _pure(n, dim, epsilon, symmetric) -> Rule | None:
    # With a share of epsilon at least, wrong turns become rare as n grows.
    pairs = max((8.0 if symmetric else 12.0) / (0.45 * n), LEAST_SHARE * epsilon)
    count = max((3.2 if symmetric else 6.0) / (0.33 * n), LEAST_SHARE * epsilon)
    if (pairs + count) / epsilon > DEAR or (not symmetric and n * epsilon < FEW_PER_DIMENSION * dim):
        return _FIXED if symmetric and n * epsilon <= FEW_PER_DIMENSION * dim else None
    first = (0.14 if symmetric else 0.1) * (100.0 * dim / (n * epsilon)) ** (1.0 / 3.0)
    rule = functools.partial(
        Rule,
        pure=True,
        first=_rounded(min(max(first, 0.03), 0.4)),
        middle=Fraction(16, 100),
        counting=_rounded(count / epsilon),
        pairs=_rounded(pairs / epsilon),
    )
    if symmetric:
        return rule(
            first_clip=0.6 if dim <= 6 else 0.5,
            kept=0.8,
            reach=0.85 if dim <= 3 else 0.72 if dim <= 6 else 0.7,
            slope=0.92,
            filled=0.85 if dim <= 2 else 0.62 if dim == 3 else 0.5,
            pair_radius=0.6 * math.sqrt(2.0),
            start=0.55,
            ladder=(0.25, 0.1, 0.04, 0.016),
        )
    told = min(max(0.85, 1.0 - 2.7 / (count * n)), _MOST_KEPT)
    kept = max(told, 0.95)
    clipped = min(max(1.0 - min(0.3, 2.0 * math.sqrt(dim * (dim + 1)) / (n * epsilon)), kept), _SURELY)
    return rule(
        first_clip=0.6,
        kept=told,
        reach=(0.9 if told < 0.95 else 1.0) * (_quantile(dim, clipped) / _quantile(dim, kept)) ** 1.5,
        slope=1.0,
        filled=0.9,
        pair_radius=0.5,
        start=1.0,
        ladder=(0.5, 0.25, 0.1, 0.04),
    )


def _rounded(share: float) -> Fraction:
    """Return a cost of few digits, so that sums are short."""
    return Fraction(math.ceil(share * 10**6), 10**6)


def _quantile(dim, share) -> float:
    """Return a quantile of the length of a standard normal vector."""
    from scipy import special

    return math.sqrt(2.0 * float(special.gammaincinv(dim / 2.0, share)))


def _slope(dim, clip) -> float:
    """Return J of clipped standard normal vectors: E[1; |v| < clip] + E[(1 - 1/d) clip/|v|; |v| >= clip]."""
    from scipy import special

    within = float(special.gammainc(dim / 2.0, clip**2 / 2.0))
    if dim == 1:
        return within
    beyond = float(special.gammaincc((dim - 1) / 2.0, clip**2 / 2.0))
    inverse = math.exp(special.gammaln((dim - 1) / 2.0) - special.gammaln(dim / 2.0)) / math.sqrt(2.0)
    return within + (1.0 - 1.0 / dim) * clip * inverse * beyond


@functools.lru_cache(maxsize=256)
def _best_kept(n, dim, mu, skew) -> float:
    """Return the share of normal records that the best clip leaves, with ``skew`` of the excess in one direction."""
    lengths = _quantiles(dim)
    shares = np.linspace(0.5, 0.985, 195)
    clips = np.array([_quantile(dim, share) for share in shares])
    excess = np.maximum(lengths[None] - clips[:, None], 0.0)
    slopes = np.array([_slope(dim, clip) for clip in clips])
    noise = 4.0 * dim * clips**2 / (n * mu) ** 2
    errors = (noise + np.mean(excess**2, axis=1) / n + (skew * np.mean(excess, axis=1)) ** 2) / slopes**2
    return float(shares[np.argmin(errors)])


def _quantiles(dim):
    from scipy import special

    middles = (np.arange(4000) + 0.5) / 4000
    return np.sqrt(2.0 * special.gammaincinv(dim / 2.0, middles))
