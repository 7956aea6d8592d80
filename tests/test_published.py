"""What `membership` compares, in numbers: moments about a public place, scores of normal laws, powers of thresholds."""

import jax
import numpy as np
import pytest

from jaxgeodp import SPD, Euclidean, GeodesicBall
from jaxgeodp.inference import FrechetVariance, SpreadMechanism
from jaxgeodp.locating import LocatedMechanism
from jaxgeodp.privacy import membership
from jaxgeodp.privacy.normal_scores import NormalScores, learned_scores
from jaxgeodp.privacy.published import Base, released
from jaxgeodp.privacy.two_laws import told_apart

RNG = np.random.default_rng(0)
FLAT = Euclidean(3)
PLACE = np.array([0.3, -0.2, 0.1])
BALL = GeodesicBall(FLAT, np.zeros(3), 1.0)


def test_moments_are_about_their_place_and_of_clipped_records():
    mechanisms = [SpreadMechanism(BALL, PLACE, FrechetVariance(), mu=1.0), SpreadMechanism(BALL, PLACE, mu=1.0)]
    records, weights = RNG.normal(size=(9, 3)), RNG.dirichlet(np.ones(9))
    clipped = records / np.maximum(np.linalg.norm(records, axis=1, keepdims=True), 1.0)
    away = clipped - PLACE
    assert np.any(clipped != records)
    with jax.enable_x64(True):
        parts = released("test", mechanisms, 9, Base(FLAT, np.ones(3), np.eye(3))).parts
        variance, moment = (np.asarray(part.of(part.prepared(records), weights)) for part in parts)
    np.testing.assert_allclose(variance, [weights @ np.sum(away**2, axis=1)], rtol=1e-7)
    matrix = np.einsum("k,ki,kj->ij", weights, away, away)
    np.testing.assert_allclose(np.sort(moment), np.sort(matrix[np.triu_indices(3)]), rtol=1e-7)


def test_searches_on_another_manifold_are_refused():
    with pytest.raises(ValueError, match=r"LocatedMechanism is for SPD\(size=2\), the records are on Euclidean"):
        membership(RNG.normal(size=(300, 3)), FLAT, [LocatedMechanism(SPD(2), epsilon=8.0)], draws=500)


def test_each_level_of_a_threshold_counts_what_lies_on_it():
    found = told_apart(np.array([0.0, 1.0, 1.0, 2.0]), np.array([0.0, 0.0, 1.0]))
    np.testing.assert_allclose(found.curve, [[0.0, 0.0, 1 / 3, 1.0, 1.0], [0.0, 0.25, 0.75, 1.0, 1.0]])


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_lengths_and_scores_hang_on_no_unit(unit):
    covariance, shifts, numbers = np.diag([1.0, 4.0]), np.array([[3.0, 8.0]]), np.array([[1.0, 1.0]])
    scores = NormalScores(np.zeros(2), covariance * unit**2)
    np.testing.assert_allclose(scores.lengths(shifts * unit), [5.0])
    # The logarithm of the ratio of N(s, C) and N(0, C): x' C^-1 s - |s|^2/2.
    np.testing.assert_allclose(scores.scores(numbers * unit, shifts * unit), [3.0 + 2.0 - 12.5])


def test_moments_of_draws_are_learned():
    """Noise of nine times the variance of the records leaves a tenth of what a known record takes away."""
    draws = RNG.normal(size=(200_000, 2))
    found = learned_scores(draws, 0.1 * np.eye(2), 20)
    np.testing.assert_allclose(found.share, 0.1 / 20, rtol=0.02)
    np.testing.assert_allclose(found.covariance, np.eye(2), atol=0.02)
    assert learned_scores(draws, 3.0 * np.eye(2), 20).share == 1 / 20


def test_where_nothing_is_ever_published_nobody_is_told():
    found = learned_scores(np.full((50, 2), np.nan), np.eye(2), 20)
    assert found.share == 0.0 and np.all(found.covariance == 0.0)
    assert found.lengths(np.ones((1, 2))).tolist() == [0.0]


def test_so_many_data_sets_are_simulated_by_default():
    found = membership(RNG.normal(size=(1500, 2)), Euclidean(2), digits=None)
    assert found.draws == 1000
