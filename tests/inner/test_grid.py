"""Noise of integers and vectors on a grid."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxgeodp.privacy import grid
from jaxgeodp.samplers.discrete import discrete_gaussian, discrete_laplace

anything = st.floats(width=64, allow_nan=True, allow_infinity=True, allow_subnormal=True)


@settings(max_examples=200, deadline=None)
@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 4), st.sampled_from([1, 2, 7, 65, 200])), elements=anything),
    st.floats(1e-300, 1e300),
)
def test_nothing_leaves_the_ball_of_integers(vectors, radius):
    steps = grid.to_grid(vectors, radius)
    for row in steps.tolist():
        assert sum(x * x for x in row) <= grid.STEPS**2
    # Records do not see each other.
    np.testing.assert_array_equal(steps[:1], grid.to_grid(vectors[:1], radius))


@pytest.mark.parametrize("dim", [1, 3, 100])
def test_vectors_in_the_ball_are_rounded_and_others_shortened(dim):
    rng = np.random.default_rng(dim)
    vectors = rng.normal(size=(300, dim))
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    inside = vectors / lengths * rng.uniform(0.0, 0.999, (300, 1))
    error = grid.to_grid(3.0 * inside, 3.0) / grid.STEPS - inside
    assert np.max(np.abs(error)) <= 0.5001 / grid.STEPS
    outside = grid.to_grid(vectors / lengths * 5.0, 3.0) / grid.STEPS
    np.testing.assert_allclose(outside, vectors / lengths, atol=1e-8)
    edge = np.linalg.norm(grid.to_grid(vectors / lengths, 1.0), axis=1) / grid.STEPS
    several = np.stack([vectors / lengths * 5.0, inside], axis=1)  # as of a person's curves: each for itself
    several[0, 1] = math.nan
    for own in (0, 1):
        np.testing.assert_array_equal(grid.to_grid(several, 3.0)[:, own], grid.to_grid(several[:, own], 3.0))
    assert np.all((edge > 1.0 - 1e-8 * math.sqrt(dim)) & (edge <= 1.0))


def test_the_exact_check_sees_one_step_too_much():
    """Planted: vectors that are just outside, by one in the sum of squares or by overflow of 64 bits."""
    edge = np.zeros((4, 130), np.int64)
    edge[:, 0] = grid.STEPS
    edge[1, 129] = 1
    edge[2] = grid.STEPS // 11  # 130/121 of the square
    edge[3, 0] = grid.STEPS + 1
    np.testing.assert_array_equal(grid._inside(edge, grid.STEPS), [True, False, False, False])
    for dim, inside in ((64**2, True), (64**2 + 1, False), (64**3, False)):
        assert grid._inside(np.full((1, dim), grid.STEPS // 64), grid.STEPS)[0] == inside


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 300), st.integers(1, 2**40), st.floats(1e-6, 1e3))
def test_calibration_is_exact(dim, sensitivity, strength):
    laplace = grid.laplace_noise(dim, sensitivity, 1.0, strength)
    # No vector of integers of this length has coordinates that sum to more than floor(sqrt(dim) sensitivity).
    assert math.isqrt(dim * sensitivity**2) <= laplace.scale * Fraction(repr(strength))
    gaussian = grid.gaussian_noise(sensitivity, 1.0, strength)
    spent = Fraction(sensitivity**2, 2 * gaussian.scale**2)
    assert spent <= Fraction(repr(strength)) ** 2 / 2
    promised = grid.zcdp([gaussian, gaussian])
    assert 2 * spent <= Fraction(repr(promised.rho)) <= 2 * spent * (1 + Fraction(1, 2**50))


def test_parameters_of_the_grid_are_the_numbers_that_were_written():
    # 0.3 as a float is a little less than 3/10, which is what the record promises.
    assert grid.laplace_noise(1, 3, 1.0, 0.3).scale == grid.gaussian_noise(3, 1.0, 0.3).scale == 10


def test_sums_are_made_of_integers_of_any_size():
    steps = np.array([2**62, -(2**62)])
    np.testing.assert_array_equal(
        grid.with_noise(lambda scale, below: scale, steps, 2**70), [2.0**70 + 2.0**62, 2.0**70 - 2.0**62]
    )


@pytest.mark.parametrize("law", [discrete_laplace, discrete_gaussian])
def test_noise_by_the_array_is_added_to_integers_of_any_size(law):
    steps = np.array([10**30, *range(127)], object).reshape(2, 64)
    noisy = grid.with_noise(law, steps, 5)
    assert noisy.shape == (2, 64) and noisy.dtype == np.float64 and noisy[0, 0] == 1e30
    noise = noisy.ravel()[1:] - np.arange(127)
    assert np.max(np.abs(noise)) < 60 * 5 and len(np.unique(noise)) > 5


@pytest.mark.parametrize(("size", "scale", "by_the_array"), [(63, 5, False), (64, 5, True), (64, 2**56 + 1, False)])
def test_how_noise_is_drawn_follows_from_public_numbers(size, scale, by_the_array, monkeypatch):
    monkeypatch.setattr(grid, "draws", lambda law, scale, count, words: np.full(count, 2))
    noisy = grid.with_noise(lambda scale, below: 1, np.zeros(size, int), scale)
    np.testing.assert_array_equal(noisy, 2.0 if by_the_array else 1.0)
    given = grid.with_noise(lambda scale, below: below(scale), np.zeros(size, int), scale, lambda n: 3)
    np.testing.assert_array_equal(given, 3.0)


def test_a_record_names_the_sampler_that_draws():
    few, many = (grid.sampler(discrete_gaussian, [size], [100])["name"] for size in (grid.MANY - 1, grid.MANY))
    assert few == "discrete_gaussian (Canonne, Kamath & Steinke 2020)"
    assert many == "discrete_gaussian (by the array: docs/mathematics.md, Proposition N)"
    assert grid.sampler(discrete_gaussian, [grid.MANY], [2**60])["name"] == few, "too wide for tables"
    both = grid.sampler(discrete_gaussian, [1, 1000], [100, 200])["name"]
    assert "Canonne" in both and "Proposition N" in both
