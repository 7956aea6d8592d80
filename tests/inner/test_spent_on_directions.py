"""What a mean surface spends on each direction: no other split of the budget errs less, and all of it is spent."""

import chex
import numpy as np
import pytest

from jaxgeodp.faces import surface_design


def test_no_other_split_of_the_budget_errs_less():
    """Against parts moved between directions: the expected error of the shrunk release is least."""
    rng = np.random.default_rng(2)
    root = rng.normal(size=(12, 12)) * np.geomspace(1.0, 0.01, 12)
    covariance, strength = root.T @ root, 4.0 / (50 * 0.7) ** 2
    variances, directions = surface_design._spent(covariance, strength)
    lengths = np.sum(directions**2, axis=0)
    spent = variances / lengths
    assert spent.sum() == pytest.approx(1.0) and len(spent) < 12, "some directions get nothing"
    eigenvalues = np.linalg.eigvalsh(covariance)[::-1]

    def error(parts):
        signal = surface_design.EXPECTED_SHIFT * eigenvalues
        with np.errstate(divide="ignore"):
            noise = strength * eigenvalues / parts
        return np.sum(1.0 / (1.0 / signal + 1.0 / noise))

    parts = np.zeros(12)
    parts[: len(spent)] = spent
    least = error(parts)
    for _ in range(500):
        other = np.maximum(parts + 10.0 ** rng.uniform(-5, -1) * rng.normal(size=12), 0.0)
        assert error(other / other.sum()) >= least * (1 - 1e-12)
    assert error(np.full(12, 1 / 12)) > 1.05 * least


@pytest.mark.parametrize("strength", [1e-30, 1e-6, 1.0, 1e20])
@pytest.mark.parametrize("rank", [1, 12])
def test_a_budget_is_spent_whole_whatever_it_is(strength, rank):
    root = np.random.default_rng(2).normal(size=(rank, 12)) * np.geomspace(1.0, 0.01, 12)
    variances, directions = surface_design._spent(root.T @ root, strength)
    assert np.sum(variances / np.sum(directions**2, axis=0)) == pytest.approx(1.0)
    if strength == 1e20:
        assert len(variances) == 1, "one direction, where noise drowns all"
    if strength == 1e-30:
        parts = np.sqrt(variances)  # nothing drowns: the square root of the covariance
        chex.assert_trees_all_close(variances / np.sum(directions**2, axis=0), parts / parts.sum(), rtol=1e-6)
