"""Constants of the grid and of conversions between guarantees: what only one check stops, and exact minima."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from jaxgeodp.privacy import grid
from jaxgeodp.privacy.guarantee import GaussianDP, PureDP, ZeroConcentratedDP


def test_the_check_in_integers_stops_what_floating_point_lets_pass(monkeypatch):
    """Planted: a floating-point stage that thinks lengths up to 1.2 STEPS safe. What is then too long becomes 0, even
    by one step, and what is not too long stays."""
    monkeypatch.setattr(grid, "_SURE", 1.2)
    n = grid.STEPS
    vectors = np.array([[n, 0.0], [n, 1.0], [n - 1.0, 0.0], [0.8 * n, 0.8 * n], [-n - 1.0, 0.0], [0.6 * n, -0.79 * n]])
    steps = grid.to_grid(vectors, float(n))
    kept = np.array([True, False, True, False, False, True])
    np.testing.assert_array_equal(steps, np.where(kept[:, None], np.rint(vectors).astype(np.int64), 0))
    long = np.full((1, 65), 0.149 * n)  # sum of 65 squares: 1.44 STEPS^2, in two parts of the exact sum
    assert not grid.to_grid(long, float(n)).any()


@pytest.mark.parametrize("dim", [1, 2, 64, 200])
def test_the_floating_point_stage_leaves_nothing_to_the_check(dim, monkeypatch):
    """The other way round: without the check nothing would be too long either, at the rim and beyond it."""
    monkeypatch.setattr(grid, "_inside", lambda vectors, steps: np.ones(vectors.shape[:-1], bool))
    rng = np.random.default_rng(dim)
    rows = rng.normal(size=(200, dim))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    lengths = np.concatenate([1.0 + 1e-9 * rng.normal(size=100), 10.0 ** rng.uniform(-1, 200, 100)])
    for row in grid.to_grid(rows * lengths[:, None], 1.0).tolist():
        assert sum(x * x for x in row) <= grid.STEPS**2


@pytest.mark.parametrize("rho", [1e-6, 0.02, 1.0, 30.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-100])
def test_zcdp_to_approximate_is_the_least_over_renyi_orders(rho, delta):
    """rho-zCDP bounds the Renyi divergence of order a = 1 + x by rho a; delta <= e^{x (rho a - epsilon)} (x/a)^x/a."""

    def epsilon(log_x):
        x = math.exp(log_x)
        return rho * (1.0 + x) - (math.log(delta) + math.log1p(x)) / x - math.log1p(1.0 / x)

    found = minimize_scalar(epsilon, bounds=(-20, 30), method="bounded", options={"xatol": 1e-12}).fun
    promised = ZeroConcentratedDP(rho).to_approximate(delta)
    assert promised.epsilon == pytest.approx(max(found, 5e-324), rel=1e-9)
    assert promised.delta == delta


def test_pure_and_gaussian_to_zcdp_are_met_by_renyi_divergences():
    """Randomised response, as epsilon goes to 0, and the normal law: KL is the divergence of order 1."""
    for epsilon in (1e-3, 0.01, 0.3, 3.0):
        loss = epsilon * math.tanh(epsilon / 2.0)
        assert loss <= PureDP(epsilon).to_zcdp().rho * (1 + 1e-12)
    assert 1e-3 * math.tanh(5e-4) == pytest.approx(PureDP(1e-3).to_zcdp().rho, rel=1e-6)
    for mu in (1e-3, 1.0, 7.0):
        assert norm.pdf(0) * mu**2 / (2.0 * norm.pdf(0)) == pytest.approx(GaussianDP(mu).to_zcdp().rho, rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-4, 0.3, 2.0, 20.0])
def test_pure_to_gdp_meets_the_trade_off_of_randomised_response(epsilon):
    """The normal trade-off function passes through the corner (1/(1 + e^epsilon), 1/(1 + e^epsilon))."""
    mu = PureDP(epsilon).to_gdp().mu
    # mu has a margin of 1e-12 above the exact one.
    assert norm.logcdf(-mu / 2.0) == pytest.approx(-np.logaddexp(0.0, epsilon), rel=5e-12)
