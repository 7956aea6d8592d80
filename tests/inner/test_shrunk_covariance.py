"""The covariance of the law that stands for a population, from few records."""

import numpy as np
import pytest

from jaxgeodp.privacy.supposed import _shrunk


@pytest.mark.parametrize(("n", "dim"), [(8, 5), (40, 5), (40, 2)])
def test_covariances_of_few_records_are_shrunk_as_by_chen_and_others(n, dim):
    """The formula by traces of products, and what it is for: it is nearer to the truth, here a multiple of the unit."""
    rng, errors = np.random.default_rng(0), []
    for _ in range(30):
        vectors = rng.normal(size=(n, dim))
        own = np.cov(vectors, rowvar=False)
        square, trace = np.trace(own @ own), np.trace(own)
        numerator = (1 - 2 / dim) * square + trace**2
        share = min(1.0, numerator / ((n + 1 - 2 / dim) * (square - trace**2 / dim)))
        expected = share * trace / dim * np.eye(dim) + (1.0 - share) * own
        shrunk = _shrunk(vectors)
        np.testing.assert_allclose(shrunk, expected, rtol=1e-12, atol=1e-12)
        errors.append([np.linalg.norm(found - np.eye(dim)) for found in (shrunk, own)])
    assert np.mean(errors, axis=0)[0] < 0.6 * np.mean(errors, axis=0)[1]
