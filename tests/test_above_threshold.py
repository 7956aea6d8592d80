"""The first noisy count above a noisy threshold: its law."""

import math
import random
import secrets
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxgeodp.privacy.grid import in_secret
from jaxgeodp.samplers import above_threshold
from jaxgeodp.samplers.above_threshold import first_above, first_above_simulated

LEVEL = 1e-6 / 30


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
