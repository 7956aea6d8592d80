"""Noise of integers and vectors on a grid."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from jaxgeodp.privacy import grid
from jaxgeodp.samplers.discrete import bernoulli_exp, discrete_gaussian, discrete_laplace

LEVEL = 1e-6 / 20


class Uncertain:
    """A uniform integer below n of which only comparisons are asked; every answer has its probability."""

    def __init__(self, paths, n):
        self.paths, self.n = paths, n

    def __lt__(self, bound):
        return self.paths.decide(Fraction(min(bound, self.n), self.n))


class Paths:
    """All ways in which a program may run, with their exact probabilities, until they are too improbable."""

    def __init__(self, tolerance):
        self.tolerance, self.prefix = tolerance, []

    def decide(self, probability):
        if self.position < len(self.prefix):
            answer = self.prefix[self.position]
        else:
            answer = probability > 0
            self.prefix.append(answer)
        self.position += 1
        self.weight *= probability if answer else 1 - probability
        if self.weight < self.tolerance:
            raise StopIteration
        return answer

    def __call__(self, n):
        return Uncertain(self, n)

    def probability(self, program):
        """Of True, and of the paths left out."""
        true = left_out = Fraction(0)
        while True:
            self.position, self.weight = 0, Fraction(1)
            try:
                if program(self):
                    true += self.weight
            except StopIteration:
                left_out += self.weight
            del self.prefix[self.position :]
            while self.prefix and not self.prefix[-1]:
                self.prefix.pop()
            if not self.prefix:
                return true, left_out
            self.prefix[-1] = False


@pytest.mark.parametrize(
    "ratio", [Fraction(0), Fraction(1, 3), Fraction(7, 8), Fraction(1), Fraction(7, 4), Fraction(3)]
)
def test_bernoulli_exp_in_exact_arithmetic(ratio):
    """Every path of the program is followed: its probabilities are fractions, their sum is exp(-ratio)."""
    scale = 10**25  # beyond double precision
    true, left_out = Paths(Fraction(1, 10**15)).probability(
        lambda below: bernoulli_exp(ratio.numerator * scale, ratio.denominator * scale, below)
    )
    assert left_out < Fraction(1, 10**12)
    assert float(true) <= math.exp(-ratio) * (1 + 1e-14)
    assert float(true + left_out) >= math.exp(-ratio) * (1 - 1e-14)


def test_a_wrong_bernoulli_is_seen_in_exact_arithmetic():
    """Planted: the parity of the run is the other one."""
    true, left_out = Paths(Fraction(1, 10**12)).probability(lambda below: not bernoulli_exp(1, 3, below))
    assert abs(float(true) - math.exp(-1 / 3)) > 0.1 > float(left_out)


def p_value(draws, log_weight):
    """Chi-square of integers against weights exp(log_weight(x))."""
    values = np.arange(-400, 401)
    weights = np.exp([log_weight(x) for x in values])
    expected = len(draws) * weights / weights.sum()
    keep = expected > 20
    observed = np.array([np.sum(draws == x) for x in values[keep]])
    rest = len(draws) - observed.sum()
    f_obs, f_exp = np.append(observed, rest), np.append(expected[keep], expected[~keep].sum())
    return stats.chisquare(f_obs, f_exp * (f_obs.sum() / f_exp.sum())).pvalue


LAWS = {
    "Laplace": (discrete_laplace, lambda scale: lambda x: -abs(x) / scale),
    "Gaussian": (discrete_gaussian, lambda scale: lambda x: -0.5 * (x / scale) ** 2),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [1, 2, 7])
def test_discrete_laws(law, scale):
    sampler, log_weight = LAWS[law]
    source = random.Random(scale)
    draws = np.array([sampler(scale, source.randrange) for _ in range(40_000)])
    assert p_value(draws, log_weight(scale)) > LEVEL
    assert p_value(draws, log_weight(1.1 * scale)) < LEVEL
    # Planted: zero with two signs.
    planted = np.where((draws == 0) & (np.arange(len(draws)) % 4 == 0), 1, draws)
    assert p_value(planted, log_weight(scale)) < LEVEL


@pytest.mark.parametrize("law", LAWS)
def test_wide_laws_are_their_continuous_limits(law):
    sampler, _ = LAWS[law]
    scale, source = 2**61 + 12345, random.Random(1)
    draws = np.array([sampler(scale, source.randrange) / scale for _ in range(20_000)])
    limit = stats.norm if law == "Gaussian" else stats.laplace
    assert stats.kstest(draws, limit.cdf).pvalue > LEVEL
    assert stats.kstest(1.1 * draws, limit.cdf).pvalue < LEVEL


@pytest.mark.parametrize("scale", [0, -1, 1.5, "1"])
def test_scales_are_integers_above_0(scale):
    for sampler in (discrete_laplace, discrete_gaussian):
        with pytest.raises(ValueError, match="integer"):
            sampler(scale, random.randrange)


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
    assert np.all((edge > 1.0 - 1e-8 * math.sqrt(dim)) & (edge <= 1.0))


def test_the_exact_check_sees_one_step_too_much():
    """Planted: vectors that are just outside, by one in the sum of squares or by overflow of 64 bits."""
    edge = np.zeros((4, 130), np.int64)
    edge[:, 0] = grid.STEPS
    edge[1, 129] = 1
    edge[2] = grid.STEPS // 11  # 130/121 of the square
    edge[3, 0] = grid.STEPS + 1
    np.testing.assert_array_equal(grid._inside(edge), [True, False, False, False])
    for dim, inside in ((64**2, True), (64**2 + 1, False), (64**3, False)):
        assert grid._inside(np.full((1, dim), grid.STEPS // 64))[0] == inside


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
