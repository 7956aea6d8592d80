"""Guarantees: conversions against the trade-off functions that define them, and composition."""

import decimal
import itertools
import math
import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from decimal_tails import PI, log_delta, normal_tail
from scipy.stats import norm
from strategies import exhaustive

from jaxgeodp.pictures.plain_words import in_plain_words, most_right
from jaxgeodp.privacy import (
    ApproximateDP,
    GaussianDP,
    NotProven,
    PureDP,
    ZeroConcentratedDP,
    compose,
    delta_of_epsilon,
    largest_mu,
    log_delta_of_epsilon,
    loss_distribution,
)
from jaxgeodp.privacy.decimals import float_above, float_below, square, written


@pytest.mark.parametrize(
    ("mu", "epsilon", "logarithm"),
    # Of Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), in 400 digits (mpmath).
    [
        (1.0, 0.1, -1.0432007466234303),
        (1.0, 5.0, -14.361320786606816),
        (1.0, 36.0, -638.2130931195018),
        (0.3, 20.0, -2222.756463130178),
        (0.01, 0.0, -5.524112885852486),
        (0.0001, -1.0, -0.4586751453870819),
        (3.0, 1e-9, math.log(2 * norm.cdf(1.5) - 1)),
        (30.0, 20.0, math.log(norm.cdf(15 - 2 / 3))),
    ],
)
def test_delta_of_epsilon_keeps_its_digits(mu, epsilon, logarithm):
    assert log_delta_of_epsilon(mu, epsilon) == pytest.approx(
        logarithm, rel=1e-13, abs=1e-9 if epsilon == 1e-9 else 1e-13
    )
    assert delta_of_epsilon(mu, epsilon) == pytest.approx(math.exp(logarithm), rel=1e-8)


@pytest.mark.parametrize(
    ("mu", "epsilon", "delta"),
    # From 420 digits, as above.
    [
        (1.0, 37.4, 6.0877977459159916e-300),
        (0.3, 11.1, 1.1791291878877407e-299),
        (2.0, 76.0, 2.9322386989392204e-301),
        (50.0, 1250.0, 0.49202434210800699),
        (100.0, 5000.0, 0.49601097601864319),
    ],
)
def test_delta_is_right_to_the_smallest_numbers(mu, epsilon, delta):
    assert delta_of_epsilon(mu, epsilon) == pytest.approx(delta, rel=1e-12, abs=0.0)


def test_delta_falls_with_epsilon_and_grows_with_mu():
    deltas = [delta_of_epsilon(1.3, e) for e in np.linspace(-3, 30, 200)]
    assert np.all(np.diff(deltas) < 0)
    assert np.all(np.diff([delta_of_epsilon(m, 1.0) for m in np.linspace(0.05, 8, 200)]) > 0)


def gaussian_trade_off(mu, alpha):
    return norm.cdf(norm.isf(alpha) - mu)


def pure_trade_off(epsilon, alpha):
    return np.maximum(0, np.maximum(1 - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - alpha)))


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 50.0])
def test_pure_implies_gaussian_and_no_smaller_mu_would_do(epsilon):
    mu = PureDP(epsilon).to_gdp().mu
    alpha = np.concatenate([np.logspace(-25, -1, 200), np.linspace(0.1, 1, 200), [1 / (1 + math.exp(epsilon))]])
    assert np.all(pure_trade_off(epsilon, alpha) >= gaussian_trade_off(mu, alpha) * (1 - 1e-9) - 1e-16)
    if epsilon < 20:
        assert np.any(pure_trade_off(epsilon, alpha) < gaussian_trade_off(0.9 * mu, alpha) * (1 - 1e-9))


def test_gaussian_to_approximate_is_the_smallest_epsilon():
    for mu, delta in ((0.5, 1e-6), (3.0, 1e-12), (1.0, 1e-200)):
        result = GaussianDP(mu).to_approximate(delta)
        assert delta_of_epsilon(mu, result.epsilon) <= delta
        assert delta_of_epsilon(mu, result.epsilon * (1 - 1e-9)) > delta
    assert GaussianDP(2.0).delta(1.0) == pytest.approx(delta_of_epsilon(2.0, 1.0), rel=2e-12)


def renyi(log_p, log_q, order, weights):
    """Renyi divergence on a grid."""
    return np.log(np.sum(weights * np.exp(order * log_p + (1 - order) * log_q))) / (order - 1)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_zcdp_bounds_renyi_divergence_of_the_worst_pairs(epsilon):
    flip = math.exp(epsilon) / (1 + math.exp(epsilon))
    for order in (1.01, 1.5, 2, 5, 30):
        # Randomised response.
        value = renyi(np.log([flip, 1 - flip]), np.log([1 - flip, flip]), order, 1.0)
        assert value <= PureDP(epsilon).to_zcdp().rho * order
    rho = GaussianDP(epsilon).to_zcdp().rho
    assert rho == pytest.approx(epsilon**2 / 2, rel=1e-15)
    result = ZeroConcentratedDP(rho).to_approximate(1e-6)
    assert result.epsilon >= GaussianDP(epsilon).to_approximate(1e-6).epsilon
    assert result.delta == 1e-6


# Rounding: no conversion promises more than is true, judged in exact or 400-digit arithmetic. ----------------


def number(x):
    """What a float stands for: the decimal that was written."""
    return Fraction(repr(x))


NUMBERS = [5e-324, 1.5e-322, 1e-160, 1e-7, 0.1, 0.3, 1.0, 1.1, 7.7, 1e3, 1e150]


@pytest.mark.parametrize("given", NUMBERS + np.random.default_rng(1).uniform(0.01, 3.0, 40).tolist())
def test_zcdp_is_the_next_float_above_half_the_square(given):
    for guarantee in (PureDP(given), GaussianDP(given)):
        rho = guarantee.to_zcdp().rho
        assert number(math.nextafter(rho, 0.0)) < number(given) ** 2 / 2 <= number(rho)


@pytest.mark.parametrize("epsilon", [1e-15, 9.9e-7, 1e-6, 0.1, 0.7, 1.0, 1.3, 3.0, 40.0, 1e8])
def test_gaussian_of_pure_is_enough_and_hardly_more(epsilon):
    mu = PureDP(epsilon).to_gdp().mu
    with decimal.localcontext(prec=100, Emax=10**17, Emin=-(10**17)):
        bound = 1 / (1 + Decimal(repr(epsilon)).exp())
        assert normal_tail(Decimal(repr(mu)) / 2) <= bound < normal_tail(Decimal(repr(mu * (1 - 1.1e-12))) / 2)


@pytest.mark.parametrize("epsilon", [5e-324, 1e-322, 3.3e-321, 1e-300, 1e-12])
def test_gaussian_of_tiny_epsilons_is_enough(epsilon):
    """mu = sqrt(pi/2) epsilon, less a relative epsilon^2/56."""
    mu = PureDP(epsilon).to_gdp().mu
    with decimal.localcontext(prec=100):
        exact = (PI / 2).sqrt() * Decimal(repr(epsilon))
        assert Decimal(repr(math.nextafter(mu, 0.0))) < exact <= Decimal(repr(mu))


DELTAS = [5e-324, 4.4e-323, 1e-6, 0.3, 1.0 - 2.0**-53]


@pytest.mark.parametrize(
    ("rho", "delta"),
    [  # the extremes of each with all of the other, and all with the delta that people take
        pytest.param(
            rho,
            delta,
            marks=() if delta == 1e-6 or {rho, delta} & {5e-324, 1e150} else pytest.mark.exhaustive,
        )
        for rho in NUMBERS
        for delta in DELTAS
    ],
)
def test_approximate_of_zcdp_is_the_least_over_all_orders(rho, delta):
    """Never below what some order gives, and hardly above; the best order found in 420 digits, by its equation."""
    epsilon = ZeroConcentratedDP(rho).to_approximate(delta).epsilon
    with decimal.localcontext(prec=420):
        exact_rho, loss = Decimal(repr(rho)), -Decimal(repr(delta)).ln()
        low, high = Decimal("1e-330"), (loss / exact_rho).sqrt()
        for _ in range(60):
            order = (low * high).sqrt()
            above = exact_rho * order**2 + (1 + order).ln() > loss
            low, high = (low, order) if above else (order, high)
        exact = exact_rho * (1 + order) + (loss - (1 + order).ln()) / order + (order / (1 + order)).ln()
        # Of the smallest numbers a float has no more digits than that to seek the order with.
        margin = Decimal("1e-12" if rho > 1e-300 else "1e-4") * exact_rho * (1 + order)
        former = exact_rho + 2 * (exact_rho * loss).sqrt()
        if exact <= 0:
            assert epsilon == 5e-324
        else:
            assert (
                exact - Decimal("1e-18") * exact_rho * (1 + order)
                <= Decimal(repr(epsilon))
                <= exact + margin + Decimal("5e-324")
            )
        assert Decimal(repr(epsilon)) <= former * (1 + Decimal("1e-15")) + Decimal("5e-324")


@pytest.mark.parametrize(
    ("mu", "delta"), [(0.3, 1e-300), (1.0, 1e-6), (0.01, 1e-9), (3.0, 0.7), (30.0, 4.4e-323), (1e8, 1e-6), (1e8, 0.99)]
)
def test_gaussian_deltas_are_never_exceeded(mu, delta):
    epsilon = GaussianDP(mu).to_approximate(delta).epsilon
    bound = Decimal(repr(delta)).ln()
    assert log_delta(mu, epsilon) <= bound < log_delta(mu, epsilon * (1 - 1e-9))
    assert log_delta(mu, epsilon) <= Decimal(repr(GaussianDP(mu).delta(epsilon))).ln()
    if epsilon < 1e6:
        largest = largest_mu(epsilon, delta)
        assert log_delta(largest, epsilon) <= bound < log_delta(largest * (1 + 1e-9), epsilon)


def test_delta_is_right_to_a_fraction_of_the_margin():
    """The margin is a relative 1e-12 of 1 + |log delta|."""
    rng = np.random.default_rng(2)
    for mu, c in zip(10.0 ** rng.uniform(-4, 4, 60), rng.uniform(-12, 38, 60), strict=True):
        mu, epsilon = float(mu), float(mu * (c + mu / 2))
        exact = log_delta(mu, epsilon)
        assert abs(Decimal(log_delta_of_epsilon(mu, epsilon)) - exact) <= Decimal("1e-14") * (1 + abs(exact))


def test_conversions_of_extreme_numbers_end_in_a_guarantee_or_in_a_sentence():
    assert GaussianDP(1e-200).to_approximate(1e-6).epsilon == 5e-324
    assert GaussianDP(1e10).to_approximate(1e-6).epsilon == pytest.approx(5e19, rel=1e-8)
    assert delta_of_epsilon(1e10, 4e19) == 1.0 and delta_of_epsilon(1e-200, 1.0) == 0.0
    assert GaussianDP(1e-3).delta(5.0) == 5e-324 and GaussianDP(1e3).delta(-1e3) == 1.0
    assert delta_of_epsilon(1e-100, -1e-99) == pytest.approx(1e-99, rel=1e-12)
    for call in (GaussianDP(1e200).to_approximate, ZeroConcentratedDP(1.7976931348623157e308).to_approximate):
        with pytest.raises(ValueError, match="epsilon must be a finite number"):
            call(1e-320)


# Composition -------------------------------------------------------------------------------------------------


def test_composition_is_exact_or_rounded_up():
    assert compose([PureDP(0.1)] * 3) == PureDP(0.3) and compose([PureDP(0.1)] * 10) == PureDP(1.0)
    assert compose([GaussianDP(0.3), GaussianDP(0.4)]) == GaussianDP(0.5)
    assert compose([GaussianDP(0.2), GaussianDP(0.2), GaussianDP(0.55)] * 23).mu == pytest.approx(2.9661, abs=5e-5)
    assert compose([ApproximateDP(1.0, 1e-6), PureDP(0.5)]) == ApproximateDP(1.5, 1e-6)
    assert compose([PureDP(1.0), ZeroConcentratedDP(0.25)]) == ZeroConcentratedDP(0.75)
    assert all(type(own) is float for own in (PureDP(1).epsilon, GaussianDP(np.float32(2.0)).mu))
    assert compose([PureDP(1.0), GaussianDP(1.0)]) == ZeroConcentratedDP(1.0)
    assert compose([GaussianDP(3.0), GaussianDP(4.0)]).mu == 5.0
    for given in ([PureDP(1e200), GaussianDP(1.0)], [PureDP(1.7e308)] * 2, [GaussianDP(1.7e308)] * 2):
        with pytest.raises(ValueError, match="must be a finite number"):
            compose(given)
    assert PureDP(5e-324).to_zcdp().rho > 0 and GaussianDP(5e-324).to_zcdp().rho > 0
    for pair in np.random.default_rng(0).uniform(0.01, 3.0, (200, 2)).tolist():
        mu, exact = compose([GaussianDP(x) for x in pair]).mu, sum(number(x) ** 2 for x in pair)
        assert number(math.nextafter(mu, 0.0)) ** 2 < exact <= number(mu) ** 2
        rho = compose([GaussianDP(pair[0]), PureDP(pair[1])]).rho
        assert number(math.nextafter(rho, 0.0)) < exact / 2 <= number(rho)


def test_gaussian_releases_together_are_exact_at_any_delta():
    """At 1e-18 there was a refusal, which spoke of a sum of deltas."""
    assert compose([GaussianDP(1.0)], delta=1e-6) == GaussianDP(1.0).to_approximate(1e-6)
    for delta in (1e-18, 1e-300, 0.1):
        assert compose([GaussianDP(1.0)] * 4, delta=delta) == GaussianDP(2.0).to_approximate(delta)


def test_mixtures_have_an_answer_at_any_delta_above_the_sum():
    pytest.importorskip("dp_accounting")
    mixed = [PureDP(0.1), ApproximateDP(0.2, 1e-19), GaussianDP(0.6), GaussianDP(0.8)]
    tiny = compose(mixed, delta=1e-18)
    assert tiny.epsilon == pytest.approx(0.3 + GaussianDP(1.0).to_approximate(9e-19).epsilon, rel=1e-12)
    assert compose(mixed, delta=1e-9).epsilon < 0.3 + GaussianDP(1.0).to_approximate(1e-9).epsilon
    assert compose([PureDP(0.1), PureDP(0.2)], delta=1e-18) == ApproximateDP(0.3, 1e-18)
    assert compose([ApproximateDP(0.1, 1e-20)] * 3, delta=3e-20) == ApproximateDP(0.3, 3e-20)
    # Where the tail of what is left is all in one part, 1 - (1 - delta)^2 < 2 delta, only numbers tell.
    assert compose([ApproximateDP(0.5, 1e-2)] * 2, delta=0.01995).epsilon < 1.1
    for few in (2e-20, 1e-25):
        with pytest.raises(ValueError, match=r"is below the sum of the deltas, 3e-20, or too close to it"):
            compose([ApproximateDP(0.1, 1e-20)] * 3, delta=few)


@pytest.mark.parametrize(("count", "epsilon", "mu"), [(1, 0.5, 1.0), *exhaustive((10, 2.0, 4.0))])
def test_numerical_composition_is_not_below_the_truth(count, epsilon, mu):
    """Of randomised responses and one Gaussian release, whose delta is a finite sum."""
    pytest.importorskip("dp_accounting")
    chance = 1 / (1 + math.exp(-epsilon))

    def exact(total):
        weights = (math.comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(count + 1))
        shifts = (total - (2 * k - count) * epsilon for k in range(count + 1))
        return math.fsum(w * delta_of_epsilon(mu, shift) for w, shift in zip(weights, shifts, strict=True))

    for delta in (1e-8, 3e-14):
        together = compose([PureDP(epsilon)] * count + [GaussianDP(mu)], delta=delta)
        assert exact(together.epsilon) <= delta


def test_the_largest_mu_of_a_loss_distribution_is_taken(monkeypatch):
    pytest.importorskip("dp_accounting")
    monkeypatch.setattr("jaxgeodp.privacy.events.LARGEST_MU", 0.5)
    assert 0.5 < loss_distribution(GaussianDP(0.5)).get_epsilon_for_delta(1e-6) < 3.0
    with pytest.raises(ValueError, match=r"mu must be at most 0\.5"):
        loss_distribution(GaussianDP(0.5000001))


def test_mixed_composition_through_loss_distributions():
    pytest.importorskip("dp_accounting")
    # Alone, a guarantee comes back: sensitivities are replace-one already and must not be doubled.
    alone = compose([GaussianDP(1.0)], delta=1e-6).epsilon
    assert compose([PureDP(1e-9), GaussianDP(1.0)], delta=1e-6).epsilon == pytest.approx(alone, rel=2e-3)
    for epsilon in (0.7, 0.01):
        assert compose([PureDP(epsilon)], delta=1e-6).epsilon == pytest.approx(epsilon, rel=1e-3)
    small = compose([PureDP(0.01), GaussianDP(0.01)], delta=1e-6).epsilon
    assert 0.01 < small < 0.01 + GaussianDP(0.01).to_approximate(1e-6).epsilon
    mixed = compose([PureDP(0.5), GaussianDP(1.0)], delta=1e-6).epsilon
    assert alone < mixed < 0.5 + alone
    assert compose([ApproximateDP(0.5, 1e-7), GaussianDP(1.0)], delta=1e-6).epsilon > mixed
    with pytest.raises(ValueError, match="below the sum"):
        compose([ApproximateDP(0.5, 1e-3)], delta=1e-6)


def test_bad_guarantees_are_named_in_one_sentence():
    for build, words in (
        (lambda: GaussianDP(0), "GaussianDP: mu must be a finite number above 0"),
        (lambda: ApproximateDP(1.0, 1.0), "delta must be below 1"),
        (lambda: ApproximateDP(1.0, 0.0), "delta must be a finite number above 0"),
        (lambda: ZeroConcentratedDP(-1), "rho"),
        (lambda: compose([]), "at least one"),
        (lambda: compose([PureDP(1.0), NotProven("x")]), "not a proven guarantee"),
        (lambda: compose([ApproximateDP(1.0, 1e-6), GaussianDP(1.0)]), "give delta"),
        (lambda: compose([ZeroConcentratedDP(1.0)], delta=1e-6), "zCDP"),
        (lambda: compose([PureDP(1.0), ZeroConcentratedDP(1.0)], delta=1e-6), "zCDP"),
        (lambda: largest_mu(1.1e6, 1e-6), "epsilon must be at most 1e6"),
        (lambda: GaussianDP(1.0).to_approximate(0.0), "between 0 and 1"),
        (lambda: delta_of_epsilon(1.0, math.nan), "epsilon must be a finite number"),
        (lambda: log_delta_of_epsilon(-1.0, 1.0), "mu must be a finite number above 0"),
    ):
        with pytest.raises(ValueError, match=words):
            build()


def test_records_name_their_theorem():
    assert GaussianDP(1.5).record("a theorem") == {
        "kind": "gdp",
        "mu": 1.5,
        "adjacency": "replace-one",
        "theorem": "a theorem",
    }
    assert NotProven("1-DP").record("why")["kind"] == "not proven"


def test_a_float_on_the_safe_side_is_the_nearest_one():
    """Of sums and of squares, whatever a square root in floating point is off by."""
    source = random.Random(0)
    for _ in range(300):
        digits = Decimal(source.randrange(1, 10**20)).scaleb(source.randrange(-25, -5))
        for exact, power in itertools.product((digits, Fraction(digits) / 3, square(written(float(digits)))), (1, 2)):
            above, below = float_above(exact, power), float_below(exact, power)
            inner = math.nextafter(above, 0.0), math.nextafter(below, math.inf)
            powers = [written(x) if power == 1 else square(written(x)) for x in (above, below, *inner)]
            assert powers[0] >= exact > powers[2] and powers[1] <= exact < powers[3]


def best_test(p, q):
    """How often the best test of two laws on finitely many points is right, each half the time."""
    return 0.5 + 0.25 * np.abs(np.subtract(p, q)).sum()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 40.0])
def test_what_tests_reach_is_attained_and_not_exceeded(epsilon):
    """By randomised response, with and without a leak of probability delta, and by a normal shift."""
    response = np.array([math.exp(epsilon), 1.0]) / (1.0 + math.exp(epsilon))
    assert most_right(PureDP(epsilon).record("")) == pytest.approx(best_test(response, response[::-1]), rel=1e-12)
    for delta in (1e-6, 0.1):
        leaking = np.append((1.0 - delta) * response, [delta, 0.0])
        right = best_test(leaking, [leaking[1], leaking[0], 0.0, delta])
        assert most_right(ApproximateDP(epsilon, delta).record("")) == pytest.approx(right, rel=1e-12)
    assert most_right(GaussianDP(epsilon).record("")) == pytest.approx(norm.cdf(epsilon / 2), rel=1e-9)
    rho = epsilon**2 / 2.0  # of a normal shift
    assert norm.cdf(epsilon / 2) <= most_right(ZeroConcentratedDP(rho).record("")) <= 1.0
    # Of randomised response, whose divergences are known.
    divergence = epsilon * math.tanh(epsilon / 2)
    assert most_right(PureDP(epsilon).record("")) <= most_right(ZeroConcentratedDP(divergence).record(""))


def test_a_promise_in_plain_words():
    words = in_plain_words(PureDP(1.0).record("a theorem"))
    assert "one of two that are equally likely" in words and "at most 73.2 %" in words, "rounded up"
    assert "at most 99.97 %" in in_plain_words(PureDP(8.0).record("a theorem")), "more digits where few would be all"
    words = in_plain_words(GaussianDP(1.0).record("a theorem") | {"adjacency": "add-remove"}, "person")
    assert "one more person is as likely there as not" in words and "at most 69.2 %" in words
    assert in_plain_words(NotProven("nothing").record("none")) == ""
