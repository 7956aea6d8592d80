"""Dong, Liang & Yi (2022): eigenvalues and eigenvectors of a covariance apart, and a radius of clipping that is found.

Data are (replicates, n, d); a budget is ``rho`` or ``epsilon``, for which they have both (their Appendix I). Constants
are those of their public experiments, with failures of one in ten, but where a scale is larger than need be.
"""

import numpy as np

from benchmarks.compare.rivals import clipped, noisy, second_moment, share_of, whole

_FAILURE = 0.1
# Radii are halved down to this power: their experiments stop at 1e-24.
_HALVINGS = 79


def entries(rng, data, radius, *, epsilon):
    """The second moment with Laplace noise of each entry on and above the diagonal; the entries change by less."""
    count, n, dim = data.shape
    scale = (1.0 + dim / np.sqrt(2.0)) * radius**2 / n / epsilon
    noise = rng.laplace(scale=scale, size=(count, dim, dim))
    return second_moment(clipped(data, radius)) + np.triu(noise) + np.swapaxes(np.triu(noise, 1), 1, 2)


def matrix_alone(rng, data, radius, *, rho=None, epsilon=None):
    """Of the noisy matrix, for its eigenvectors."""
    return whole(rng, data, radius, rho=rho) if epsilon is None else entries(rng, data, radius, epsilon=epsilon)


def separate(rng, data, radius, *, rho=None, epsilon=None):
    """SeparateCov: half of the budget for eigenvalues, half for a matrix with the eigenvectors."""
    unit = radius**2 / data.shape[1]
    values = np.linalg.eigvalsh(second_moment(clipped(data, radius)))
    half = share_of(0.5, epsilon=epsilon, rho=rho)
    values = noisy(rng, values, (2.0 * unit, np.sqrt(2.0) * unit), **half)
    vectors = np.linalg.eigh(matrix_alone(rng, data, radius, **half))[1]
    values = np.sort(np.clip(values, 0.0, radius**2), axis=1)
    return (vectors * values[:, None, :]) @ np.swapaxes(vectors, 1, 2)


def adaptive(rng, data, radius, *, rho=None, epsilon=None):
    """AdaptiveCov: a radius of clipping, and `separate` or the noisy matrix, as the error of each is thought to be.

    An eighth of the budget finds a bound of the trace. Another eighth is for a sparse vector (epsilon^2/2 in zCDP): the
    first of the radii 1, 1/2, 1/4, ... at which clipping costs more than noise does. The rest is released within twice
    that radius. Where their code has 2^k and their paper 4^k for the noise of the matrix, it is 4^k here.
    """
    count, n, dim = data.shape
    data = clipped(data, radius) / radius
    trace = np.mean(np.sum(data**2, axis=-1), axis=1)
    trace = noisy(rng, trace, (1.0 / n, 1.0 / n), **share_of(0.125, epsilon=epsilon, rho=rho))
    rest = share_of(0.75, epsilon=epsilon, rho=rho)
    if epsilon is None:
        trace = trace + np.sqrt(8.0 / rho * np.log(8.0 / _FAILURE)) / n
        vector = 0.5 * np.sqrt(rho)
    else:
        trace = trace + 8.0 / epsilon / n * np.log(4.0 / _FAILURE)
        vector = epsilon / 8.0
    apart, alone = _costs(np.clip(trace, 1e-16, 1.0)[:, None], n, dim, **rest)
    radii = 0.5 ** np.arange(_HALVINGS + 1)
    # What clipping at a radius loses at most, with squares of lengths rounded up to the next power of 4.
    lengths = np.linalg.norm(data, axis=-1)
    levels = 1.0 + np.floor(-np.log2(np.maximum(lengths, radii[-1])) + 1e-12)
    counts = np.stack([np.sum(levels == level, axis=1) for level in range(_HALVINGS + 1)], axis=1)
    squares = 4.0 * radii**2
    lost = np.cumsum(counts * squares, axis=1) - np.cumsum(counts, axis=1) * radii**2
    noise = np.minimum(radii**2 * alone, radii * apart[0] + radii**2 * apart[1])
    threshold = rng.laplace(scale=2.0 / vector, size=(count, 1))
    queries = lost - n * noise + rng.laplace(scale=4.0 / vector, size=lost.shape)
    above = np.concatenate([queries >= threshold, np.ones((count, 1), bool)], axis=1)
    found = 0.5 ** np.argmax(above, axis=1)[:, None, None]
    wide = np.minimum(2.0 * found, 1.0)
    split = (found * apart[0][:, None] + found**2 * apart[1] < found**2 * alone)[:, 0, 0]
    within = clipped(data, wide) / wide
    released = np.where(
        split[:, None, None], separate(rng, within, 1.0, **rest), matrix_alone(rng, within, 1.0, **rest)
    )
    return released * (wide * radius) ** 2


def by_histogram(rng, data, radius, *, rho=None, epsilon=None):
    """After their AdaptiveCov, with another search for the radius: no paper's, but better where their bounds are wide.

    A quarter of the budget is for a noisy histogram of lengths between powers of 2; the radius has the least sum of
    what clipping cuts off and of the error of the matrix with noise of all entries, or of `separate`, which is
    released with the rest. A record changes two counts by 1. An eighth finds the trace, as in `adaptive`.
    """
    n, dim = data.shape[1:]
    data = clipped(data, radius) / radius
    lengths = np.linalg.norm(data, axis=-1)
    radii = 0.5 ** np.arange(21)
    counts = np.stack([np.sum((lengths <= r) & (lengths > 0.5 * r), axis=1) for r in radii], axis=1)
    counts = noisy(rng, counts, (2.0, np.sqrt(2.0)), **share_of(0.25, epsilon=epsilon, rho=rho))
    rest = share_of(0.625, epsilon=epsilon, rho=rho)
    if epsilon is None:
        sigma = 1.0 / n / np.sqrt(0.625 * rho)
    else:
        sigma = np.sqrt(2.0) * (1.0 + dim / np.sqrt(2.0)) / n / (0.625 * epsilon)
    lost = 0.5 * np.maximum(radii[None, :] ** 2 - radii[:, None] ** 2, 0.0)
    expected = np.maximum(counts, 0.0) @ lost.T / n + sigma * dim / np.sqrt(2.0) * radii**2
    best = radii[np.argmin(expected, axis=1)][:, None, None]
    within = clipped(data, best) / best
    trace = np.mean(np.sum(within**2, axis=-1), axis=1)
    trace = np.maximum(noisy(rng, trace, (1.0 / n, 1.0 / n), **share_of(0.125, epsilon=epsilon, rho=rho)), 0.0)
    # The halves of a budget: normal noise is sqrt(2) times as wide, Laplace noise twice.
    wide = sigma * (np.sqrt(2.0) if epsilon is None else 2.0)
    split = np.sqrt(2.0 * trace * wide * np.sqrt(dim)) + wide * np.sqrt(dim) < sigma * dim / np.sqrt(2.0)
    apart, alone = separate(rng, within, 1.0, **rest), matrix_alone(rng, within, 1.0, **rest)
    return np.where(split[:, None, None], apart, alone) * (best * radius) ** 2


def _costs(trace, n, dim, *, rho=None, epsilon=None):
    """Errors that they expect within radius 1: of `separate`, by the radius and by its square, and of the matrix."""
    failure = 0.75 * _FAILURE
    grown = min((np.log(dim) / dim) ** 0.3, 0.5)
    rows = 2.0 * np.sqrt(dim)
    if epsilon is None:
        tail = np.log(2.0 / failure)
        length = np.sqrt(dim + 2.0 * np.sqrt(dim * tail) + 2.0 * tail)
        edge = (1.0 + grown) * (rows + 6.0 * np.sqrt(np.log(dim) / np.log1p(grown)))
        edge = edge + np.sqrt(2.0 * np.log(4.0 / failure))
        size = np.sqrt(dim**2 + 2.0 * np.sqrt(dim * tail) * (1.0 + np.sqrt(2.0 * (dim - 1))) + 6.0 * tail)
        apart = 2.0**1.25 * np.sqrt(trace / n) / rho**0.25 * np.sqrt(edge) / 6.0
        return (apart, np.sqrt(2.0 / rho) * length / n), size / np.sqrt(rho) / n
    both = (np.sqrt(2.0) + 1.0) / (np.sqrt(2.0) - 1.0)
    pairs = 2.0 * np.log(0.5 * (dim**2 + dim)) / np.log(2.0)
    length = 1.5 * np.sqrt(dim) + np.log(4.0 / failure) * 2.0 * max(both, 2.0 * np.log(dim) / np.log(2.0))
    edge = (1.0 + grown) * (rows + 6.0 * np.log(dim) / np.sqrt(np.log1p(grown)))
    edge = edge + np.sqrt(2.0) * np.log(4.0 / failure) * 2.0 * max(both, pairs)
    size = 1.5 * dim + np.log(2.0 / failure) * 2.0 * max(both, pairs)
    apart = np.sqrt(8.0 * np.sqrt(2.0) * dim * trace / (epsilon * n)) * np.sqrt(edge) / 14.0
    return (apart, 4.0 * length / epsilon / n), (1.0 + dim / np.sqrt(2.0)) * size / epsilon / n
