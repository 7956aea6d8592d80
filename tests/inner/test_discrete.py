"""Exact discrete noise: its law, followed to the end with short words, and its cost, which must not tell its value."""

import math
import random
from collections import Counter
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import stats
from strategies import exhaustive

from benchmarks.audit.audited import laplace_by_coin_tosses
from jaxgeodp.samplers import discrete
from jaxgeodp.samplers.discrete import bernoulli_exp, discrete_gaussian, discrete_laplace

LEVEL = 1e-6 / 20


class AnotherTrialError(Exception):
    """A trial was rejected."""


class Paths:
    """All ways in which a program may run, with their probabilities, until they are too improbable.

    Where ``trial`` is given, a path ends when the program asks for such an integer again: its law is that of one trial.
    """

    def __init__(self, least, trial=None):
        self.least, self.trial = least, trial

    def __call__(self, n):
        if n == self.trial and self.position > 0:
            raise AnotherTrialError
        if self.weight < self.least:
            raise StopIteration
        if self.position == len(self.answers):
            self.answers.append([0, n])
        answer = self.answers[self.position][0]
        self.position += 1
        self.weight /= n
        return answer

    def law(self, program):
        """Probability of every result; of None: what was left out."""
        self.answers, law = [], Counter()
        while True:
            self.position, self.weight = 0, 1.0
            try:
                law[program(self)] += self.weight
            except StopIteration:
                law[None] += self.weight
            except AnotherTrialError:
                law["rejected"] += self.weight
            while self.answers and self.answers[-1][0] == self.answers[-1][1] - 1:
                self.answers.pop()
            if not self.answers:
                return law
            self.answers[-1][0] += 1


def agrees(law, exact):
    """Whether every probability is the exact one, but for what was left out."""
    most = 1.0 - law["rejected"]
    return all(
        law[x] <= p * most * (1 + 1e-9) and law[x] + law[None] >= p * (most - law[None]) * (1 - 1e-9)
        for x, p in exact.items()
    )


def laplace_weights(scale):
    return normalized({x: math.exp(-abs(x) / scale) for x in range(-60 * scale, 60 * scale + 1)})


def gaussian_weights(sigma):
    return normalized({x: math.exp(-0.5 * (x / sigma) ** 2) for x in range(-12 * sigma, 12 * sigma + 1)})


def normalized(weights):
    total = math.fsum(weights.values())
    return {x: weight / total for x, weight in weights.items()}


@pytest.mark.parametrize("width", [2, 4, 8])
@pytest.mark.parametrize("ratio", [(0, 1), (1, 3), (7, 8), (1, 1), (7, 4), (3, 1), (11, 2), (200, 1)])
def test_bernoulli_exp_has_one_law_with_words_of_any_length(ratio, width, monkeypatch):
    """Every path is followed: where a word does not decide, more bits do."""
    monkeypatch.setattr(discrete, "_WIDTH", width)
    numerator, denominator = ratio[0] * 10**25, ratio[1] * 10**25
    law = Paths(2.0**-14).law(lambda below: bernoulli_exp(numerator, denominator, below))
    truth = math.exp(-ratio[0] / ratio[1])
    assert law[None] < 3e-4
    assert agrees(law, {True: truth, False: 1.0 - truth})


@pytest.mark.parametrize("width", [2, 4, 8])
def test_quotients_have_one_law_with_words_of_any_length(width, monkeypatch):
    monkeypatch.setattr(discrete, "_WIDTH", width)
    law = Paths(2.0**-14).law(lambda below: discrete._quotient(below(1 << width), below))
    assert law[None] < 3e-3
    assert agrees(law, {k: math.exp(-k) * (1.0 - math.exp(-1.0)) for k in range(30)})


@pytest.mark.parametrize("scale", [1, 2, *exhaustive(3)])
def test_laplace_in_one_trial_with_short_words(scale, monkeypatch):
    monkeypatch.setattr(discrete, "_WIDTH", 4)
    law = Paths(2.0**-16, scale << 9).law(lambda below: discrete_laplace(scale, below))
    assert law[None] < 0.02
    assert agrees(law, laplace_weights(scale))
    # Planted: 0 counted twice, by mass that other numbers lack.
    law[0] *= 2.0
    assert not agrees(law, laplace_weights(scale))


class OneProposal:
    """Instead of Laplace noise: one number again and again, whose rejection ends the path."""

    def __init__(self, size, paths):
        self.size, self.paths = size, paths

    def __call__(self, scale, below):
        if self.paths.position > 0:
            raise AnotherTrialError
        return self.size + 64 * scale, 1


@pytest.mark.parametrize("sigma", [1, 2, 7])
def test_gaussian_accepts_with_the_probability_that_is_missing(sigma, monkeypatch):
    """Laplace weight times acceptance is the Gaussian weight, but for one constant."""
    monkeypatch.setattr(discrete, "_WIDTH", 8)
    scale = sigma + 1
    for size in range(0, 6 * sigma, math.ceil(sigma / 2)):
        paths = Paths(2.0**-14)
        monkeypatch.setattr(discrete, "_lifted_size_and_sign", OneProposal(size, paths))
        law = paths.law(lambda below: discrete_gaussian(sigma, below))
        constant = math.exp(-0.5 * (sigma / scale) ** 2)
        truth = math.exp(-0.5 * (size / sigma) ** 2 + size / scale) * constant
        assert law[None] < 2e-4
        assert law[-size] <= truth * (1 + 1e-9) and law[-size] + law[None] >= truth * (1 - 1e-9)


@pytest.mark.parametrize("planted", ["one per cent", "shifted", "the other way"])
def test_wrong_tables_are_seen_by_following_every_path(planted, monkeypatch):
    """Planted: e^-k with an error of 1 %, tables off by one entry, a word compared the other way round."""
    monkeypatch.setattr(discrete, "_WIDTH", 8)
    right, compared = discrete._exponentials, discrete._is_below_exp

    def wrong(width):
        tables = right(width)
        if planted == "shifted":
            return tables._replace(floors=(*tables.floors[:-1], 1 << width))
        return tables._replace(floors=tuple(x * 101 // 100 for x in tables.floors))

    def law():
        words = Paths(2.0**-14).law(lambda below: discrete._quotient(below(256), below))
        accepted = Paths(2.0**-14).law(lambda below: discrete.bernoulli_exp(1, 3, below))
        return agrees(words, {k: math.exp(-k) * (1.0 - math.exp(-1.0)) for k in range(30)}) and agrees(
            accepted, {True: math.exp(-1 / 3)}
        )

    assert law()
    if planted == "the other way":
        monkeypatch.setattr(discrete, "_is_below_exp", lambda *arguments: not compared(*arguments))
    else:
        monkeypatch.setattr(discrete, "_exponentials", wrong)
    assert not law()


def bounds_hold(width, ratios):
    """Whether computed exponentials are below the exact ones, by less than 2 in the last of ``width`` bits."""
    floors = discrete._exponentials(width).floors
    computed = [(p, q, discrete._exp_floor(p + 64 * q, q, width)) for p, q in ratios]
    computed += [(k, 1, floors[64 - k]) for k in range(1, 64)]
    with localcontext() as context:
        context.prec = width // 3 + 40
        step = Decimal(-1).exp()
        whole = [step**k for k in range(65)]  # an exponential of thousands of digits takes a fifth of a second
        exact = [whole[p // q] * (-Decimal(p % q) / Decimal(q)).exp() for p, q, _ in computed]
        return len(floors) == 64 and all(
            0 <= true * (1 << width) - found < 2 for true, (_, _, found) in zip(exact, computed, strict=True)
        )


def ratios(seed, count):
    """In [0, 64), most of them below 1, with numerators and denominators of all lengths; and the ends."""
    source = random.Random(seed)
    found = [(0, 1), (0, 3**50), (1, 1), (64 * 10**30 - 1, 10**30), (1, 10**60), (10**30 - 1, 10**30), (1, 64**3)]
    for _ in range(count):
        denominator = source.randrange(1, 2 ** source.randrange(1, 250))
        found.append((source.randrange(source.choice([1, 1, 64]) * denominator), denominator))
    return found


@pytest.mark.parametrize("width", [2, 4, 8, 64, 128, 256, 512, 2**13 + 64])
def test_bounds_of_exponentials_hold(width):
    """Against 40 digits more; with words of 128 bits they are 2^-127 apart. The widest are those of Proposition N."""
    assert bounds_hold(width, ratios(width, 100 if width < 1000 else 5))


@pytest.mark.parametrize("field", ["coefficients", "powers", "floors"])
def test_bounds_of_exponentials_see_an_error_in_the_last_bits(field, monkeypatch):
    """Planted: one entry is wrong by 2^-126."""
    right = discrete._exponentials(128)
    error = 1 << (discrete._GUARD + 2)
    wrong = {
        "coefficients": (*right.coefficients[:-1], right.coefficients[-1] + error),
        "powers": ((right.powers[0][0], tuple(x - error for x in right.powers[0][1])), *right.powers[1:]),
        "floors": (*right.floors[:9], right.floors[9] - 4, *right.floors[10:]),
    }[field]
    monkeypatch.setattr(discrete, "_exponentials", lambda width: right._replace(**{field: wrong}))
    assert not bounds_hold(128, ratios(1, 20))


class Script:
    """Uniform integers that are planned; what was asked is kept."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def __call__(self, n):
        self.asked.append(n)
        answer = self.answers.pop(0)
        assert 0 <= answer < n
        return answer


def exp_bits(ratio, bits):
    """floor(exp(-ratio) 2^bits)."""
    with localcontext() as context:
        context.prec = 250
        return int((-Decimal(ratio[0]) / Decimal(ratio[1])).exp() * (1 << bits))


@pytest.mark.parametrize("ratio", [(1, 3), (5, 2), (40, 1)])
def test_words_that_do_not_decide_are_made_longer(ratio):
    """The first 384 bits are those of exp(-ratio): bits after the first 128, then 256, then 512 decide."""
    exact = exp_bits(ratio, 512)
    first, second, rest = exact >> 384, (exact >> 256) % (1 << 128), exact % (1 << 256)
    for error, expected in ((-3, True), (3, False)):
        below = Script(first, second, rest + error)
        assert bernoulli_exp(*ratio, below) is expected
        assert below.asked == [1 << 128, 1 << 128, 1 << 256]
    assert bernoulli_exp(*ratio, Script(first - 2)) is True
    assert bernoulli_exp(*ratio, Script(first + 2)) is False


def test_quotients_are_decided_by_further_bits():
    for k in (1, 2, 40):
        exact = exp_bits((k, 1), 256)
        assert discrete._quotient(exact >> 128, Script(exact % (1 << 128) - 3)) == k
        assert discrete._quotient(exact >> 128, Script(exact % (1 << 128) + 3)) == k - 1


def test_what_is_improbable_goes_on():
    """Beyond e^-63 all begins anew, for quotients and for ratios."""
    half = 1 << 127  # between e^-1 and 1
    assert discrete._quotient(1, Script(half)) == 63
    assert discrete._quotient(1, Script(1, exp_bits((2, 1), 128) - 5)) == 128
    assert bernoulli_exp(200, 1, Script(1 << 40)) is False
    # 200 = 63 + 63 + 63 + 11
    assert bernoulli_exp(200, 1, Script(1, 1, 1, exp_bits((11, 1), 128) - 2)) is True
    assert bernoulli_exp(200, 1, Script(1, 1, 1, exp_bits((11, 1), 128) + 2)) is False


def p_value(draws, weights):
    """Chi-square of integers against their probabilities."""
    counts, expected = Counter(draws), {x: len(draws) * p for x, p in weights.items()}
    kept = [x for x in expected if expected[x] > 20]
    found, right = ([of[x] for x in kept] for of in (counts, expected))
    return stats.chisquare([*found, len(draws) - sum(found)], [*right, len(draws) - sum(right)]).pvalue


LAWS = {"Laplace": (discrete_laplace, laplace_weights), "Gaussian": (discrete_gaussian, gaussian_weights)}


def draws(sampler, scale, count=40_000):
    source = random.Random(scale)
    return [sampler(scale, source.randrange) for _ in range(count)]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [1, 2, 7])
def test_discrete_laws(law, scale):
    sampler, weights = LAWS[law]
    found = draws(sampler, scale)
    assert p_value(found, weights(scale)) > LEVEL
    # Planted: zero with two signs.
    planted = [1 if x == 0 and j % 4 == 0 else x for j, x in enumerate(found)]
    assert p_value(planted, weights(scale)) < LEVEL


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("planted", ["always accepted", "quotient one less", "bit of the sign counted"])
def test_wrong_samplers_are_rejected(law, planted, monkeypatch):
    quotient = discrete._quotient
    if planted == "always accepted":
        monkeypatch.setattr(discrete, "_is_below_exp", lambda *arguments: True)
    elif planted == "quotient one less":
        monkeypatch.setattr(discrete, "_quotient", lambda word, below: max(quotient(word, below) - 1, 0))
    else:
        monkeypatch.setattr(discrete, "_quotient", lambda word, below: quotient(word, below) ^ (word & 1))
    sampler, weights = LAWS[law]
    assert p_value(draws(sampler, 3, 20_000), weights(3)) < LEVEL


@pytest.mark.parametrize("law", LAWS)
def test_wide_laws_are_their_continuous_limits(law):
    sampler, scale = LAWS[law][0], 2**61 + 12345
    found = np.array(draws(sampler, scale, 20_000), float) / scale
    limit = stats.norm if law == "Gaussian" else stats.laplace
    assert stats.kstest(found, limit.cdf).pvalue > LEVEL
    assert stats.kstest(1.2 * found, limit.cdf).pvalue < LEVEL


@pytest.mark.parametrize("scale", [0, -1, 1.5, "1"])
def test_scales_are_integers_above_0(scale):
    for sampler in (discrete_laplace, discrete_gaussian):
        with pytest.raises(ValueError, match="integer"):
            sampler(scale, random.randrange)


def bits_of(remainder, quotient, negative):
    """The uniform integer with which a trial gives this noise, if its remainder is accepted."""
    word = exp_bits((2 * quotient + 1, 2), 128)
    return (remainder << 257) | (word << 1) | negative


@pytest.mark.parametrize("quotient", [0, 1, 2, 5, 20, 62])
@pytest.mark.parametrize("part", [0, 1, 500, 999])
@pytest.mark.parametrize("negative", [0, 1])
def test_every_value_costs_the_same_uniform_integers(quotient, part, negative):
    """The number of rejected trials aside, which come before and know nothing of the value."""
    scale = 2**40 + 12345
    remainder = scale * part // 1000 + 1
    size = remainder + scale * quotient
    below = Script(bits_of(remainder, quotient, negative))
    assert discrete_laplace(scale, below) == (-size if negative else size)
    assert below.asked == [scale << 257]
    if quotient <= 5:
        below = Script(bits_of(remainder, quotient, negative), 0)
        assert discrete_gaussian(scale - 1, below) == (-size if negative else size)
        assert below.asked == [scale << 257, 1 << 128]


def test_integers_that_exponentials_are_made_of_are_equally_long(monkeypatch):
    """From 64 to 128 units, whatever the noise: one more bit at most. Plain numerators lose 30 bits and more."""
    lengths, right = [], discrete._is_below_exp

    def kept(word, lifted, denominator, below):
        lengths.append(lifted.bit_length() - denominator.bit_length())
        return right(word, lifted, denominator, below)

    monkeypatch.setattr(discrete, "_is_below_exp", kept)
    scale = 2**40 + 12345
    for quotient in range(11):
        for remainder in (0, 1, 10**6, scale - 2, scale - 1):
            discrete_gaussian(scale - 1, Script(bits_of(remainder, quotient, 0), 0))
    assert len(lengths) == 2 * 11 * 5
    assert min(lengths) >= 6 and max(lengths) <= 7


class Compared(int):
    """A word that counts comparisons with it."""

    count = 0

    def __lt__(self, other):
        Compared.count += 1
        return int(self) < other


def test_every_quotient_costs_the_same_comparisons():
    for quotient in range(63):
        Compared.count = 0
        assert discrete._quotient(Compared(exp_bits((2 * quotient + 1, 2), 128)), None) == quotient
        assert Compared.count == 6


def cost_tells_size(sampler, count=20_000):
    """P-value of a test that the number of uniform integers and the quotient of the noise are independent."""
    source, scale, calls = random.Random(0), 2**30 + 7, 0

    def below(n):
        nonlocal calls
        calls += 1
        return source.randrange(n)

    found = []
    for _ in range(count):
        calls = 0
        found.append((min(abs(sampler(scale, below)) // scale, 3), calls))
    sizes, costs = np.array(found).T
    costs = np.minimum(costs, np.quantile(costs, 0.9))
    table = [[np.sum((sizes == size) & (costs == cost)) for cost in np.unique(costs)] for size in range(4)]
    return stats.chi2_contingency(np.array(table)).pvalue


@pytest.mark.parametrize("sampler", [discrete_laplace, discrete_gaussian])
def test_the_cost_does_not_tell_the_size(sampler):
    assert cost_tells_size(sampler) > LEVEL


def test_the_cost_of_coin_tosses_tells_the_size():
    """Planted: the sampler that was used before."""
    assert p_value(draws(laplace_by_coin_tosses, 2), laplace_weights(2)) > LEVEL
    assert cost_tells_size(laplace_by_coin_tosses) < LEVEL
