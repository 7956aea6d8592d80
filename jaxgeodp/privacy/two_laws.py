"""Threshold tests between two laws, from drawn scores: their power, and the guarantees that they contradict.

The statistic of a test may be anything; what is said holds for it alone, and no other test is known to do worse.
"""

from typing import NamedTuple

import numpy as np

from jaxgeodp.privacy.guarantee import ApproximateDP, GaussianDP, Guarantee, ZeroConcentratedDP

# Points of a curve that are kept.
_KEPT = 400


class Told(NamedTuple):
    """Power of threshold tests between draws of two laws."""

    area: float  #: under the receiver operating characteristic
    area_sd: float  #: its standard error
    curve: np.ndarray  #: shares of false and of true positives, (2, m), both rising from 0 to 1

    def power(self, false: float) -> float:
        """Return the true positive rate at a false positive rate."""
        return float(np.interp(false, *self.curve))


def told_apart(mine, theirs) -> Told:
    """Return how well scores tell two laws apart, where large ones speak for the first.

    Args:
        mine: scores of draws from the first law, (m,).
        theirs: of draws from the second, (k,).
    """
    both = np.concatenate([mine, theirs])
    _, places, counts = np.unique(both, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - 0.5 * (counts - 1)
    m, k = len(mine), len(theirs)
    ranks = ranks[places]
    area = (np.sum(ranks[:m]) - 0.5 * m * (m + 1)) / (m * k)
    # Of DeLong: the share of the other law that each draw lies above.
    own = (ranks[:m] - _ranks_within(mine)) / k
    other = 1.0 - (ranks[m:] - _ranks_within(theirs)) / m
    variance = np.var(own, ddof=1) / m + np.var(other, ddof=1) / k
    levels = np.unique(np.quantile(both, np.linspace(0.0, 1.0, _KEPT), method="nearest"))[::-1]
    sides = [[np.mean(scores >= level) for level in levels] for scores in (theirs, mine)]
    curve = np.concatenate([np.zeros((2, 1)), np.array(sides), np.ones((2, 1))], axis=1)
    return Told(float(area), float(np.sqrt(variance)), curve)


def _ranks_within(scores):
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - 0.5 * (counts - 1))[places]


def least_parameter(guarantee: Guarantee, mine, theirs, level: float) -> tuple[float, tuple[float, float]]:
    """Return the least epsilon, mu or rho consistent with draws, and the probabilities of the event used.

    The event {score >= threshold} that looks best on the first half of the draws is counted on the second.

    Args:
        guarantee: whose parameter; the delta of an `ApproximateDP` is kept.
        mine, theirs: see `told_apart`; equally many.
        level: probability that the bound is wrong.
    """
    half = len(mine) // 2
    candidates = np.unique(np.quantile(mine[:half], np.linspace(0.0, 1.0, 400), method="higher"))
    counts = [[np.sum(scores >= t) for t in candidates] for scores in (mine[:half], theirs[:half])]
    threshold = candidates[np.argmax(_least(guarantee, np.array(counts[0]), np.array(counts[1]), half, level))]
    rest = len(mine) - half
    hits, others = (np.sum(scores[half:] >= threshold) for scores in (mine, theirs))
    bound = float(_least(guarantee, np.asarray(hits), np.asarray(others), rest, level))
    return bound, (float(hits / rest), float(others / rest))


def _least(guarantee, hits, others, count, level):
    """Return the least epsilon, mu or rho consistent with these counts."""
    from scipy import special

    # Clopper-Pearson, each side at half the level.
    low = np.where(hits > 0, special.betaincinv(np.maximum(hits, 1), count - hits + 1, level / 2.0), 0.0)
    high = np.where(others < count, special.betaincinv(others + 1, np.maximum(count - others, 1), 1 - level / 2.0), 1.0)
    if isinstance(guarantee, GaussianDP):
        return special.ndtri(low) - special.ndtri(high)
    if isinstance(guarantee, ZeroConcentratedDP):
        return _least_rho(low, high)
    delta = guarantee.delta if isinstance(guarantee, ApproximateDP) else 0.0
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - delta, 0.0)) - np.log(high)


def _least_rho(low, high):
    """Return the largest of D_a/a over orders a, D_a being the Renyi divergence of one bit with these probabilities."""
    order = np.array([1.01, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0])[:, None]
    mine, theirs = (np.clip(np.atleast_1d(p), 1e-300, 1.0 - 1e-16) for p in (low, high))
    both = np.logaddexp(
        order * np.log(mine) + (1.0 - order) * np.log(theirs),
        order * np.log1p(-mine) + (1.0 - order) * np.log1p(-theirs),
    )
    least = np.where(mine > theirs, np.max(both / (order * (order - 1.0)), axis=0), 0.0)
    return least.reshape(np.shape(low))
