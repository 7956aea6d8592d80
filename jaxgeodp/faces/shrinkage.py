"""Shrinkage of a release towards a public centre, and its expected error.

A mean m is supposed to be normal around 0 with t times public variances. Of t, the *shift*, only a prior is public:
log-normal. What is released, m and noise, tells more of it, much where there are many coordinates and little where
there are few; the value is the expectation of m (hierarchical Bayes; Efron & Morris 1973; docs/mathematics.md, section
19). Everything here is public, or made of a release.
"""

import numpy as np

#: Around which the shift is log-normal: so much of the variance between people the mean is expected to be away.
EXPECTED_SHIFT = 0.25
#: The standard deviation of the logarithm of the shift is that of this factor.
SHIFT_FACTOR = 4.0
# Shifts over which expectations are taken: equally spaced on the scale of logarithms.
_SHIFTS = np.logspace(-4.0, 4.0, 161)
LOG_PRIOR = -0.5 * (np.log(_SHIFTS / EXPECTED_SHIFT) / np.log(SHIFT_FACTOR)) ** 2
# Released coordinates beyond, in deviations of the noise, count as so large: squares must not overflow.
_LARGEST = 1e100
# Simulated releases: so many numbers in all, but no fewer and no more releases than these.
_NUMBERS, _LEAST_DRAWS, _MOST_DRAWS = 300_000, 1_000, 4_000
# Simulated people, half of them opposite to the others.
_PEOPLE = 256


def shrinkage_weights(coordinates, roots) -> np.ndarray:
    """Return E[t s^2/(t s^2 + 1)] given released coordinates x (..., r), normal with variances t s^2 + 1.

    Args:
        coordinates: in standard deviations of the noise.
        roots: s, standard deviations of the mean at a shift of 1, in those of the noise, (r,).

    Returns:
        What x is multiplied with, (..., r), 0 to 1; never NaN for finite x.
    """
    spreads = _SHIFTS[:, None] * np.minimum(roots, _LARGEST) ** 2 + 1.0
    squares = np.clip(coordinates, -_LARGEST, _LARGEST) ** 2
    logs = LOG_PRIOR - 0.5 * (squares @ (1.0 / spreads).T + np.sum(np.log(spreads), axis=1))
    likely = np.exp(logs - np.max(logs, axis=-1, keepdims=True))
    return (likely / np.sum(likely, axis=-1, keepdims=True)) @ (1.0 - 1.0 / spreads)


def simulated_errors(variances, lengths, bound, kept, scale, shift) -> np.ndarray:
    """Return mean squared errors of shrunk coordinates, (r,), simulated with fixed random numbers.

    Means are drawn with ``shift`` times the variances; people around them have the given lengths, in directions that
    are as likely as the variances say; they are clipped, and their mean gets noise and is shrunk.

    Args:
        variances: between people, (r,).
        lengths: of what tells people from their mean, (m,).
        bound: on the length of a person's coordinates.
        kept: which part of a shift the shrinkage supposes to be left by clipping.
        scale: standard deviation of the noise.
        shift: of the means that are drawn.
    """
    random, count = np.random.default_rng(0), len(variances)
    draws = int(np.clip(_NUMBERS // count, _LEAST_DRAWS, _MOST_DRAWS))
    means, noise = random.normal(size=(2, draws, count))
    # Of exactly the second moments that are meant: what is left to chance is how the shrinkage sees them.
    means *= np.sqrt(shift * variances / np.mean(means**2, axis=0))
    noise /= np.sqrt(np.mean(noise**2, axis=0))
    seen = _clipped(means, _people(random, variances, lengths), bound)
    weights = shrinkage_weights(seen / scale + noise, kept / scale * np.sqrt(variances))
    return np.mean((weights * (seen + scale * noise) - means) ** 2, axis=0)


def _people(random, variances, lengths):
    """Return simulated deviations of people from their mean 0, (people, r)."""
    ways = random.normal(size=(_PEOPLE // 2, len(variances))) * np.sqrt(variances)
    ways *= (np.resize(lengths, len(ways)) / np.linalg.norm(ways, axis=1))[:, None]
    return np.concatenate([ways, -ways])


def _clipped(means, people, bound):
    """Return means (draws, r) of people shifted by these means and clipped to the bound."""
    squares = np.sum(means**2, axis=1)[:, None] + 2.0 * means @ people.T + np.sum(people**2, axis=1)
    lengths = np.sqrt(np.maximum(squares, 0.0))
    factors = bound / np.maximum(lengths, bound)
    return (factors @ people + np.sum(factors, axis=1)[:, None] * means) / len(people)
