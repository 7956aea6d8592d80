"""What an audit concludes from counts of events: divergences of one bit, and bounds that are seldom wrong."""

import math

import numpy as np
import pytest
from scipy import stats

from jaxgeodp.privacy import ApproximateDP, GaussianDP, PureDP, ZeroConcentratedDP
from jaxgeodp.privacy.two_laws import _least, _least_rho, least_parameter


def test_the_divergences_of_one_bit():
    """By sums over its two values, for each order of the code."""
    for mine, theirs in ((0.9, 0.2), (0.5, 0.4), (0.3, 1e-2), (0.2, 0.3)):
        orders = (1.01, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 64.0)
        bits = ((mine, theirs), (1.0 - mine, 1.0 - theirs))
        known = [math.log(sum(p * (p / q) ** (a - 1.0) for p, q in bits)) / (a - 1.0) / a for a in orders]
        expected = max(known) if mine > theirs else 0.0
        assert float(_least_rho(mine, theirs)) == pytest.approx(expected, rel=1e-9)


def test_bounds_are_seldom_wrong():
    """Events of randomized response, whose epsilon is 1 exactly: at level 0.05 few of 400 bounds are above it."""
    rng = np.random.default_rng(0)
    truth = 1.0 / (1.0 + math.exp(-1.0))
    wrong = 0
    for _ in range(400):
        mine, theirs = (rng.random(2000) < p for p in (truth, 1.0 - truth))
        wrong += least_parameter(PureDP(1.0), mine.astype(float), theirs.astype(float), 0.05)[0] > 1.0
    assert stats.binom.sf(wrong - 1, 400, 0.05) > 1e-4
    # Planted: without confidence bounds half of them are wrong.
    plain = [np.log(rng.binomial(1000, truth) / rng.binomial(1000, 1 - truth)) > 1.0 for _ in range(400)]
    assert stats.binom.sf(np.sum(plain) - 1, 400, 0.05) < 1e-6


@pytest.mark.parametrize(("hits", "others"), [(300, 40), (999, 1), (1000, 17), (500, 0)])
def test_bounds_are_those_of_clopper_and_pearson(hits, others):
    """Each side at half the level, by another library."""
    level, ends = 0.03, []
    for count in (hits, others):
        ends.append(stats.binomtest(count, 1000).proportion_ci(1.0 - level, "exact"))
    low, high = ends[0].low, ends[1].high

    def least(guarantee):
        return float(_least(guarantee, np.asarray(hits), np.asarray(others), 1000, level))

    assert least(PureDP(1.0)) == pytest.approx(math.log(low / high), rel=1e-9)
    assert least(ApproximateDP(1.0, 0.01)) == pytest.approx(math.log((low - 0.01) / high), rel=1e-9)
    assert least(GaussianDP(1.0)) == pytest.approx(stats.norm.ppf(low) - stats.norm.ppf(high), rel=1e-9)
    assert least(ZeroConcentratedDP(1.0)) == pytest.approx(float(_least_rho(low, high)), rel=1e-9)


def test_counts_at_the_ends():
    assert _least(PureDP(1.0), np.asarray(0), np.asarray(0), 1000, 1e-6) == -math.inf
    assert _least(GaussianDP(1.0), np.asarray(0), np.asarray(10), 1000, 1e-6) == -math.inf
    assert _least(PureDP(1.0), np.asarray(1000), np.asarray(1000), 1000, 1e-6) < 0.0
    assert 3.0 < _least(PureDP(1.0), np.asarray(1000), np.asarray(0), 1000, 1e-6) < math.log(1000)


def test_the_least_rho_of_counts_is_that_of_renyi_divergences():
    """Two bits from normal laws at distance mu, whose divergence of order a is a mu^2/2 at most."""
    for mu in (0.3, 1.0, 3.0):
        cuts = np.linspace(-3.0, 3.0 + mu, 12)
        found = _least_rho(stats.norm.sf(cuts - mu), stats.norm.sf(cuts))
        assert np.all(found <= mu**2 / 2) and found.max() > 0.3 * mu**2
    assert _least_rho(np.array([0.2]), np.array([0.3]))[0] == 0.0
