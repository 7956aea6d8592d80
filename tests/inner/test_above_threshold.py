"""The first noisy count above a noisy threshold: its law, and what Theorem Q1 says it tells, on all small cases."""

import decimal
import itertools
import math
import random
import secrets
from decimal import Decimal
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from decimal_tails import PI, normal_tail
from scipy import stats
from scipy.special import logsumexp, ndtri

from jaxgeodp.privacy import above_threshold as promised
from jaxgeodp.privacy import delta_of_epsilon
from jaxgeodp.privacy.decimals import written
from jaxgeodp.privacy.grid import in_secret
from jaxgeodp.samplers import above_threshold
from jaxgeodp.samplers.above_threshold import first_above, first_above_simulated

LEVEL = 1e-6 / 30
SCALES = (1, 2, 5)


def laws(counts, scale):
    """Probabilities (..., m + 1) of all outputs for threshold 0 and counts (..., m), by summing over the threshold's
    noise, of which less than e^-80 is left out. Only positive terms: every probability keeps its digits."""
    z = np.arange(-math.ceil(80 * scale), math.ceil(80 * scale) + 1)
    step = math.exp(-1 / scale)

    def tail(k):
        """P(Z >= k) where k > 0."""
        return step ** np.maximum(k, 1) / (1 + step)

    missing = z - np.asarray(counts)[..., None]
    reached = np.where(missing > 0, tail(missing), 1 - tail(1 - missing))
    below = np.where(missing > 0, 1 - tail(missing), tail(1 - missing))
    all_below = np.cumprod(below, axis=-2)
    one = np.ones_like(all_below[..., :1, :])
    products = np.concatenate([one, all_below], axis=-2) * np.concatenate([reached, one], axis=-2)
    return np.sum(products * step ** np.abs(z) * (1 - step) / (1 + step), axis=-1)


def test_the_law_by_summation_is_that_of_one_query():
    """N + Z_1 - Z >= 0 for a difference of two geometric variables each: summed in exact fractions, step 1/2."""
    step, reach = Fraction(1, 2), 60
    noise = {z: step ** abs(z) * (1 - step) / (1 + step) for z in range(-reach, reach + 1)}
    for count in (-3, 0, 2):
        exact = sum(p * q for z, p in noise.items() for y, q in noise.items() if count + y >= z)
        assert laws([count], 1 / math.log(2)) == pytest.approx([float(exact), float(1 - exact)], rel=1e-13)


# The law of the sampler.

CASES = [
    ([0, 1, 3, 3, 7], 4, 3),
    ([2], 2, 1),
    ([0, 0, 0, 0], 1, 2),
    ([-5, -3, 4], -2, 4),
    ([0, 1], 11, 2),
    ([0, 1, 1, 2, 2, 3], 3, 2),
]


def p_value(found, counts, threshold, scale):
    """Chi-square of outputs against their probabilities."""
    expected = len(found) * laws(np.array(counts) - threshold, scale)
    seen = np.bincount(found, minlength=len(expected))
    rare = expected < 20
    if np.any(rare):
        merged = np.append(expected[~rare], expected[rare].sum()), np.append(seen[~rare], seen[rare].sum())
        expected, seen = merged
    return stats.chisquare(seen, expected).pvalue


def draws(counts, threshold, scale, number=8_000):
    source = random.Random(7)
    return [first_above(counts, threshold, scale, source.randrange) for _ in range(number)]


@pytest.mark.parametrize("case", CASES)
def test_the_sampler_has_its_law(case):
    assert p_value(draws(*case), *case) > LEVEL


class Noises:
    """Discrete Laplace noise as `first_above` asks for it: once for the threshold, once for each of m counts."""

    def __init__(self, queries, change):
        self.queries, self.change, self.exact = queries, change, above_threshold.discrete_laplace
        self.asked, self.kept = 0, 0

    def __call__(self, scale, below):
        place = self.asked % (self.queries + 1)
        self.asked += 1
        if self.change == "none for the threshold" and place == 0:
            return 0
        if self.change == "half the scale":
            return self.exact(scale // 2, below)
        noise = self.exact(scale, below)
        if self.change == "one for all counts" and place > 1:
            return self.kept
        self.kept = noise
        return noise


@pytest.mark.parametrize("change", ["none for the threshold", "half the scale", "one for all counts", "nothing"])
def test_wrong_noise_is_seen(change, monkeypatch):
    counts, threshold, scale = CASES[-1]
    monkeypatch.setattr(above_threshold, "discrete_laplace", Noises(len(counts), change))
    assert (p_value(draws(counts, threshold, scale), counts, threshold, scale) < LEVEL) == (change != "nothing")


@pytest.mark.parametrize("case", CASES[:4])
def test_ties_are_above(case):
    """Planted: of integers, those that exceed a threshold reach the next one."""
    counts, threshold, scale = case
    assert p_value(draws(counts, threshold + 1, scale), *case) < LEVEL


class Counted:
    """A count that counts how often it is looked at."""

    looks = 0

    def __init__(self, value):
        self.value = value

    def __index__(self):
        Counted.looks += 1
        return self.value


@pytest.mark.parametrize(("counts", "index"), [([900, 901, 902], 0), ([0, 901, 902], 1), ([0, 1, 2], 3)])
def test_all_noise_is_drawn_and_all_counts_are_compared_whatever_comes_out(counts, index, monkeypatch):
    noises = Noises(3, "nothing")
    monkeypatch.setattr(above_threshold, "discrete_laplace", noises)
    Counted.looks = 0
    assert first_above([Counted(count) for count in counts], 450, 2, random.Random(1).randrange) == index
    assert noises.asked == 4 and Counted.looks == 3


def test_thresholds_and_counts_of_any_size_and_type():
    below = random.Random(2).randrange
    assert first_above([-(10**30), 10**30], -(10**20), 5, below) == 1
    assert first_above(np.array([-5000, -4000, -10]), np.int64(-100), np.int64(3), below) == 2
    assert first_above([10**30], 10**31, 10**6, below) == 1
    assert first_above([], 0, 1, below) == 0


@pytest.mark.parametrize("scale", [0, -1, 1.5, "1"])
def test_scales_are_integers_above_0(scale):
    for function in (promised.pure, promised.zcdp, promised.gdp):
        with pytest.raises(ValueError, match="above_threshold: scale must be an integer"):
            function(scale)
    with pytest.raises(ValueError, match="first_above: scale must be an integer"):
        first_above([1], 1, scale, random.randrange)


@pytest.mark.parametrize("threshold", [0.5, "1", None])
def test_thresholds_are_integers(threshold):
    with pytest.raises(ValueError, match="first_above: threshold must be an integer"):
        first_above([1], threshold, 1, random.randrange)


def test_releases_draw_with_the_generator_of_the_operating_system():
    assert in_secret(lambda *arguments: arguments, [1, 2], 3) == ([1, 2], 3, secrets.randbelow)
    assert in_secret(first_above, [0, 5000], 2500, 3) == 1


simulated = jax.jit(jax.vmap(first_above_simulated, in_axes=(0, None, None, None)))


@pytest.mark.parametrize("case", [([0, 1, 3, 3, 7], 4, 3), ([-5, -5, -3, -1, 4], -2, 4), ([0, 0, 0, 0, 1], 1, 0.5)])
def test_the_simulation_has_the_same_law(case):
    """One program for all of them: counts, threshold and scale are traced. Planted: ties below, half the scale."""
    counts, threshold, scale = case
    keys = jax.random.split(jax.random.key(3), 20_000)
    assert p_value(simulated(keys, jnp.array(counts), threshold, scale), *case) > LEVEL
    assert p_value(simulated(keys, jnp.array(counts), threshold + 1, scale), *case) < LEVEL
    assert p_value(simulated(keys, jnp.array(counts), threshold, scale / 2), *case) < LEVEL
    assert simulated._cache_size() <= 2  # scales that are integers, and those that are not


def test_one_count_and_many_counts_at_once():
    key = jax.random.key(0)
    assert first_above_simulated(key, jnp.array([5]), 500, 1) == 1
    many = jax.vmap(first_above_simulated, in_axes=(None, 0, None, None))
    assert many(key, jnp.array([[0, 900], [900, 901], [0, 1]]), 450, 2).tolist() == [1, 0, 2]


# What it tells.


def neighbours(size, reach):
    """All pairs of growing counts (k, m) within a reach of the threshold, the second ones larger by 0 or 1 each."""
    pairs = [
        (counts, larger)
        for counts in itertools.combinations_with_replacement(range(-reach, reach + 1), size)
        for moves in itertools.product((0, 1), repeat=size)
        if any(moves) and list(larger := tuple(map(sum, zip(counts, moves, strict=True)))) == sorted(larger)
    ]
    return np.array(pairs).swapaxes(0, 1)


def pairs_of_laws(scale):
    """Laws of neighbours, those of the smaller counts first: all small cases, and those that come near the bounds."""
    low, many = [-30 * scale], 30
    for smaller, larger in (
        neighbours(1, 4 * scale),
        neighbours(2, 2 * scale),
        neighbours(3, 3),
        # The last output loses most, and the first one gains most.
        (low + many * [0] + [1], [low[0] + 1] + many * [1] + [1]),
        # The farthest from equal that was found.
        ([-1, -1, -1, -1, 0], [0, 0, 0, 0, 0]),
    ):
        yield laws(np.atleast_2d(smaller), scale), laws(np.atleast_2d(larger), scale)


def largest_loss(pairs):
    return max(np.max(np.abs(np.log(p / q))) for p, q in pairs)


def needed_mu(pairs):
    """The least mu for which all pairs are mu-GDP, in both orders: trade-off functions are polygons, that of mu is
    convex, so that their corners decide; these are the tests that reject the outputs of the largest ratios."""
    most = 0.0
    for first, second in pairs:
        for p, q in ((first, second), (second, first)):
            order = np.argsort(q / p, axis=-1)
            p, q = (np.cumsum(np.take_along_axis(x, order, axis=-1), axis=-1)[..., :-1] for x in (p, q))
            # Sums of probabilities next to 1 have lost the digits of what they lack.
            known = (p > 1e-9) & (p < 1 - 1e-9) & (q > 1e-9) & (q < 1 - 1e-9)
            most = max(most, np.max(np.where(known, ndtri(p) - ndtri(q), 0.0)))
    return most


def needed_rho(pairs, orders=(1.0001, 1.1, 1.5, 2, 3, 5, 10, 30, 100)):
    """The least rho for which all Rényi divergences of these orders are at most rho times the order."""
    return max(
        np.max(logsumexp(np.log(p) + (order - 1) * np.log(p / q), axis=-1)) / ((order - 1) * order)
        for first, second in pairs
        for p, q in ((first, second), (second, first))
        for order in orders
    )


@pytest.mark.parametrize("scale", SCALES)
def test_pure_privacy_of_all_small_cases(scale):
    """Planted: 1 % less, noise of half the scale, and counts that move in both directions."""
    epsilon = promised.pure(scale).epsilon
    assert largest_loss(pairs_of_laws(scale)) <= epsilon * (1 + 1e-12)
    assert largest_loss(pairs_of_laws(scale)) > 0.99 * epsilon
    halved = (laws([0] * 30 + [1], scale / 2), laws([1] * 30 + [1], scale / 2))
    assert largest_loss([halved]) > 1.9 * epsilon
    both_directions = (laws([0] * 30 + [2], scale), laws([1] * 30 + [1], scale))
    assert largest_loss([both_directions]) > 1.4 * epsilon


@pytest.mark.parametrize("scale", SCALES)
def test_log_ratios_lie_in_an_interval_of_three_halves(scale):
    """From -1/t to 2/t for the smaller counts over the larger ones, and one pair nearly reaches both ends."""
    longest = 0.0
    for smaller, larger in pairs_of_laws(scale):
        ratios = scale * np.log(smaller / larger)
        assert np.all((ratios >= -1 - 1e-12) & (ratios <= 2 + 1e-12))
        longest = max(longest, np.max(np.ptp(ratios, axis=-1)))
    assert longest > 2.95


@pytest.mark.parametrize("scale", SCALES)
def test_gaussian_privacy_of_all_small_cases(scale):
    pairs, mu = list(pairs_of_laws(scale)), promised.gdp(scale).mu
    assert needed_mu(pairs) <= mu
    for epsilon in np.linspace(-3 / scale, 3 / scale, 13):
        delta = delta_of_epsilon(mu, epsilon)
        for p, q in pairs:
            assert np.all(np.sum(np.maximum(p - math.exp(epsilon) * q, 0), axis=-1) <= delta + 1e-14)
            assert np.all(np.sum(np.maximum(q - math.exp(epsilon) * p, 0), axis=-1) <= delta + 1e-14)


@pytest.mark.parametrize("scale", SCALES)
def test_concentrated_privacy_of_all_small_cases(scale):
    assert needed_rho(pairs_of_laws(scale)) <= promised.zcdp(scale).rho


def test_too_small_constants_are_refuted_by_small_cases():
    """Planted: what an interval of half the length would give."""
    pairs = list(pairs_of_laws(1))
    assert needed_mu(pairs) > 0.53 * promised.gdp(1).mu
    assert needed_rho(pairs) > 0.26 * promised.zcdp(1).rho


@pytest.mark.parametrize("scale", [1, 2, 7, 20])
def test_constants_are_those_of_the_interval(scale):
    """Of the two outputs that are the easiest to tell apart: 1 % less of mu, 5 % less of rho at 20 are refuted."""
    u = math.exp(1 / scale)
    pair = np.array([u**2, 1 + u]) / (1 + u + u**2), np.array([1, u + u**2]) / (1 + u + u**2)
    assert np.log(pair[0] / pair[1]) * scale == pytest.approx([2, -1])
    mu, rho = promised.gdp(scale).mu, promised.zcdp(scale).rho
    assert 0.99 * mu < needed_mu([pair]) <= mu
    ratio = needed_rho([pair], np.linspace(1.001, 15, 400)) / rho
    assert ratio <= 1
    assert ratio > 0.95 or scale < 20


def next_below(number):
    return Fraction(written(math.nextafter(number, 0.0)))


@pytest.mark.parametrize("scale", [1, 3, 20, 10**6 + 3, 2**61, np.int64(3 * 10**9)])
def test_pure_and_concentrated_constants_are_rounded_up(scale):
    exact = int(scale)
    epsilon, rho = promised.pure(scale).epsilon, promised.zcdp(scale).rho
    assert next_below(epsilon) < Fraction(2, exact) <= Fraction(written(epsilon))
    assert next_below(rho) < Fraction(9, 8 * exact**2) <= Fraction(written(rho))


def quantile(probability):
    """Phi^-1 in 80 digits, by Newton's method from double precision."""
    x = Decimal(float(ndtri(float(probability))))
    for _ in range(4):
        x -= (normal_tail(-x) - probability) * (2 * PI).sqrt() * (x * x / 2).exp()
    return x


@pytest.mark.parametrize("scale", [1, 2, 20, 10**6, 2**40])
def test_mu_is_rounded_up_and_right_to_twelve_digits(scale):
    with decimal.localcontext(prec=80):
        u = (Decimal(1) / scale).exp()
        exact = quantile(u * u / (1 + u + u * u)) - quantile(1 / (1 + u + u * u))
        assert 0 < Decimal(promised.gdp(scale).mu) / exact - 1 < Decimal("2e-12")
