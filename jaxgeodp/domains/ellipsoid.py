"""Which ellipsoid: number of axes, clip and gains with the least expected error on public populations.

With z = D^+ v shortened to tau, noise of z of standard deviation sigma sqrt(u) in each of k coordinates (u = 1 for
normal noise, k + 1 for the density exp(-|z|)), D = S^(1/4) for the second moment S of records, the error is
|W D mean z - mean v|^2 + tr(W N W'), N = sigma^2 u D D'; W is diagonal in the axes of S, Wiener's gain
(docs/mathematics.md, section 20).
"""

from typing import NamedTuple

import numpy as np

# Populations that are supposed, and records of each.
_POPULATIONS, _RECORDS = 40, 200
# Shares of records that the clip leaves as they are.
_KEPT = (0.6, 0.7, 0.8, 0.9, 0.97, 0.99, 0.997, 1.0)
# More axes are taken as long as the expected error is within this of the least: what is left out is lost if the
# populations were not as supposed; noise is as large as it is stated to be.
_NEARLY = 1.03
# Least gain of a coordinate, however little is expected there.
_LEAST_GAIN = 1e-3


class Populations(NamedTuple):
    """Public populations of tangent vectors."""

    vectors: list[np.ndarray]  #: of each, (records, d)
    means: np.ndarray  #: (populations, d), of those that vectors are samples of
    alike: bool  #: whether all are samples of one law; else each is judged by axes of the others

    @staticmethod
    def of(vectors: list[np.ndarray]) -> "Populations":
        """Return the populations that these records are samples of, with the means of their records."""
        return Populations(vectors, np.stack([own.mean(axis=0) for own in vectors]), False)


class Ellipsoid(NamedTuple):
    """Hold the ellipsoid found, with its clipping length, gains and expected error."""

    columns: np.ndarray  #: (d, k), D
    clip: float
    gains: np.ndarray  #: (k,)
    expected: float  #: root mean square error


def supposed_populations(covariance: np.ndarray, offset: float, spread: float) -> Populations:
    """Return normal populations, always the same for the same numbers.

    Args:
        covariance: (d, d), of trace 1, of means and of records about them alike.
        offset: root mean square of means.
        spread: root mean square of records about their mean.
    """
    draws = np.random.default_rng(0)
    values, axes = np.linalg.eigh(covariance)
    root = axes * np.sqrt(np.maximum(values, 0.0))
    dim = len(covariance)
    means = offset * draws.normal(size=(_POPULATIONS, dim)) @ root.T
    records = spread * draws.normal(size=(_POPULATIONS, _RECORDS // 2, dim)) @ root.T
    return Populations([own + np.vstack([some, -some]) for own, some in zip(means, records, strict=True)], means, True)


def least_error(populations: Populations, n: int, strength: float, pure: bool, condition: float) -> Ellipsoid:
    """Return the ellipsoid for n records of a population like these.

    Of groups each is judged by the axes of the others, as its own would fit it too well; of one group nothing is known
    of how far means lie off, and it has all its axes and no gains.

    Args:
        populations: see there.
        n: number of records.
        strength: epsilon or mu.
        pure: whether it is epsilon.
        condition: largest ratio of eigenvalues of the second moment of directions that are kept.
    """
    seconds = np.stack([own.T @ own / len(own) for own in populations.vectors])
    every, known = _Axes.of(np.mean(seconds, axis=0), condition), len(seconds) > 1
    if populations.alike or not known:
        judges = [every] * len(seconds)
    else:
        judges = [_Axes.of(np.mean(np.delete(seconds, own, axis=0), axis=0), condition) for own in range(len(seconds))]
    usable = min(own.usable for own in (every, *judges))
    share = float(np.mean(np.sum(populations.means**2, axis=1)) / np.sum(every.values))
    found = []
    for rank in _ranks(usable) if known else [usable]:
        pairs = zip(populations.vectors, judges, strict=True)
        coordinates = [own @ judge.columns(rank) / judge.lengths(rank) for own, judge in pairs]
        norms = [np.linalg.norm(own, axis=1) for own in coordinates]
        for kept in _KEPT:
            lengths = [np.quantile(own, kept) for own in norms]
            clip = float(np.mean(lengths) if kept < 1.0 else np.max(lengths))
            scale = 2.0 * clip / (n * strength)
            noise = scale**2 * (rank + 1 if pure else 1) * every.lengths(rank) ** 2
            signal = share * every.values[:rank]
            gains = np.maximum(signal / (signal + noise), _LEAST_GAIN) if known else np.ones(rank)
            off = [
                _missed(judge, rank, gains, z * np.minimum(1.0, clip / np.maximum(norm, 1e-300))[:, None], mean)
                for judge, z, norm, mean in zip(judges, coordinates, norms, populations.means, strict=True)
            ]
            error = float(np.sqrt(np.mean(off) + np.sum(gains**2 * noise)))
            ellipsoid = Ellipsoid(every.columns(rank) * every.lengths(rank), clip, gains, error)
            found.append((error, rank, ellipsoid))
    least = min(error for error, _, _ in found)
    near = [own for own in found if own[0] <= _NEARLY * least]
    most = max(rank for _, rank, _ in near)
    return min((own for own in near if own[1] == most), key=lambda own: own[0])[2]


class _Axes(NamedTuple):
    """Hold the eigenvalues and eigenvectors of a second moment, largest first."""

    values: np.ndarray
    axes: np.ndarray
    usable: int

    @staticmethod
    def of(second: np.ndarray, condition: float) -> "_Axes":
        values, axes = np.linalg.eigh(second)
        values, axes = values[::-1], axes[:, ::-1]
        return _Axes(values, axes, max(1, int(np.sum(values * condition > values[0]))))

    def columns(self, rank: int) -> np.ndarray:
        """Return the directions, (d, rank)."""
        return self.axes[:, :rank]

    def lengths(self, rank: int) -> np.ndarray:
        """Return the lengths of the first ``rank`` columns of D."""
        return self.values[:rank] ** 0.25


def _missed(judge, rank, gains, shortened, mean) -> float:
    """Return the squared distance from a population's mean to what a release without noise would be."""
    columns = judge.columns(rank)
    value = gains * judge.lengths(rank) * np.mean(shortened, axis=0)
    target = mean @ columns
    return float(np.sum((target - value) ** 2) + max(mean @ mean - target @ target, 0.0))


def _ranks(usable: int) -> list[int]:
    """Return the numbers of axes to try: all up to eight, then in steps of about a fifth."""
    ranks = [rank for rank in range(1, usable + 1) if rank <= 8]
    while ranks[-1] < usable:
        ranks.append(min(usable, ranks[-1] + max(1, ranks[-1] // 5)))
    return ranks
