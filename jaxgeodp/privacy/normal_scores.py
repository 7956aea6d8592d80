"""Scores of a test of two normal laws, one of which a record has moved: Neyman and Pearson, docs/mathematics.md, 25."""

import dataclasses

import numpy as np

# Of the trace: no direction is known so well that it tells all; of the largest deviation: what varies by rounding.
_RIDGE, _ROUNDING = 1e-9, 1e-10


@dataclasses.dataclass(frozen=True)
class NormalScores:
    """Hold the moments of published numbers without a record; with it they are moved, and vary less.

    Attributes:
        mean, covariance: without it.
        share: of the covariance that is missing with it.
    """

    mean: np.ndarray
    covariance: np.ndarray
    share: float = 0.0

    def lengths(self, shifts) -> np.ndarray:
        """Return how far shifts (m, p) move the mean, in standard deviations."""
        return np.linalg.norm(_whitened(self.covariance, shifts), axis=-1)

    def scores(self, numbers, shifts) -> np.ndarray:
        """Return the log-ratio of the densities with and without a record, of numbers (m, p) and its shifts (m, p)."""
        left, away = 1.0 - self.share, numbers - self.mean
        with np.errstate(all="ignore"):
            without, with_one = (_whitened(self.covariance, own) for own in (away, away - shifts))
            scores = 0.5 * (
                np.sum(without**2, axis=-1) - np.sum(with_one**2, axis=-1) / left - without.shape[-1] * np.log(left)
            )
        return np.where(np.isfinite(scores), scores, np.inf)  # NaN is an event of its own


def _axes(covariance):
    """Return units and the eigenvalues and eigenvectors in them; 0 in place of what varies by rounding alone."""
    units = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    inverse = np.where(units > _ROUNDING * units.max(), 1.0 / units, 0.0)
    values, axes = np.linalg.eigh(covariance * np.outer(inverse, inverse))
    varying = values > _RIDGE * len(units)
    return inverse, values[varying], axes[:, varying]


def _whitened(covariance, vectors):
    inverse, values, axes = _axes(covariance)
    return (vectors * inverse) @ axes / np.sqrt(values)


def learned_scores(without, plain, n) -> NormalScores:
    """Return the moments of draws: one covariance, as two that are estimated apart would differ by their errors.

    Args:
        without: what is published of other records.
        plain: the covariance of the same without noise.
        n: number of records, one of which varies no longer when it is known.
    """
    own = without[np.isfinite(without).all(axis=1)]
    if len(own) < 2:  # nothing is ever published
        own = np.zeros((2, without.shape[1]))
    covariance = np.atleast_2d(np.cov(own, rowvar=False))
    inverse, values, axes = _axes(covariance)
    of_records = np.diag(axes.T @ (plain * np.outer(inverse, inverse)) @ axes) / values
    share = min(float(np.mean(of_records)), 1.0) / n if len(values) else 0.0
    return NormalScores(own.mean(axis=0), covariance, share)


def areas_in_theory(lengths, false: float) -> tuple[float, float]:
    """Return area, and power at a share of false positives, of scores N(d^2/2, d^2) against N(-d^2/2, d^2)."""
    from scipy.special import ndtr

    d = np.maximum(lengths[:500], 1e-12)
    area = float(np.mean(ndtr(0.5 * np.sqrt(d[:, None] ** 2 + d[None, :] ** 2))))
    low, high = -0.5 * d.max() ** 2 - 10.0 * d.max(), 0.5 * d.max() ** 2 + 10.0 * d.max()
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.mean(ndtr(-(middle + 0.5 * d**2) / d)) > false else (low, middle)
    return area, float(np.mean(ndtr((0.5 * d**2 - high) / d)))
