"""Constants of rules for releases in steps, against draws of normal records and against the page."""

import numpy as np
import pytest
from scipy import stats

from jaxgeodp.mechanisms import adaptive_rules as rules


@pytest.mark.parametrize("dim", [1, 2, 3, 10])
def test_how_far_a_clipped_mean_follows_its_centre(dim):
    draws = np.random.default_rng(dim).normal(size=(400_000, dim))
    clip, step = 1.2, 0.02
    moved = draws + step * np.eye(dim)[0]
    factors = [np.minimum(1.0, clip / np.linalg.norm(own, axis=1)) for own in (draws, moved)]
    means = [np.mean(factor * own[:, 0]) for factor, own in zip(factors, (draws, moved), strict=True)]
    assert rules._slope(dim, clip) == pytest.approx((means[1] - means[0]) / step, abs=0.01)
    assert rules._quantile(dim, 0.8) == pytest.approx(stats.chi(dim).ppf(0.8))


def test_the_share_that_is_left_is_that_of_the_page():
    """Of normal records, mu = 1: docs/mathematics.md, section 21."""
    found = [rules._best_kept(n, dim, 1.0, 0.05) for n in (500, 2000) for dim in (2, 3, 6, 10)]
    assert np.allclose(found, [0.93, 0.90, 0.82, 0.74, 0.975, 0.96, 0.93, 0.89], atol=0.012)
