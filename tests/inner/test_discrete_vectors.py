"""Discrete noise by the array: bounds against many digits, laws by chi-square, short words that decide little."""

import functools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import stats

from jaxgeodp.samplers import discrete_vectors as vectors
from jaxgeodp.samplers.discrete import bernoulli_exp, discrete_gaussian, discrete_laplace

LAWS = pytest.mark.parametrize("law", [discrete_laplace, discrete_gaussian])
LEVEL = 1e-6 / 60
SCALES = [1, 2, 7, 31, 32, 1000, 2**30 + 7, 2**40, 2**56]


def seeded(seed):
    """Uniform words from a seed."""
    return np.random.Philox(seed).random_raw


def exponent(law, scale, size):
    return Decimal(size * size) / (2 * scale * scale) if law is discrete_gaussian else Decimal(size) / scale


def survivals(law, scale, width):
    """P(b >= j) 2^width, j = 1, ..., by the definition of bins."""
    start = 2 ** max(0, scale.bit_length() - 5)
    weights = []
    while not weights or weights[-1] > Decimal(2) ** (-width - 40):
        weights.append((-exponent(law, scale, len(weights) * start)).exp())
    total, sums, found = sum(weights), Decimal(0), []
    for weight in reversed(weights[1:]):
        sums += weight
        found.append(sums / total * 2**width)
    return found[::-1]


def floors_hold(law, scale, width):
    with localcontext() as context:
        context.prec = width // 3 + 40
        exact, floors = survivals(law, scale, width), vectors._floors(law, scale, width)[:0:-1]
        return all(0 <= p - f < 2 for p, f in zip(exact, floors, strict=False)) and exact[len(floors)] < 2


@LAWS
@pytest.mark.parametrize("width", [8, 64, 256])
@pytest.mark.parametrize("scale", [1, 7, 32, 63, 2**30 + 7])
def test_bounds_of_probabilities_of_bins_hold(law, width, scale, monkeypatch):
    assert floors_hold(law, scale, width)
    # Planted: one of them is 2 too large.
    right = vectors._floors(law, scale, width)
    monkeypatch.setattr(vectors, "_floors", lambda *_: (*right[:3], right[3] + 2, *right[4:]))
    assert not floors_hold(law, scale, width)


def exponentials_hold(law, scale):
    """f <= exp(-z) 2^64 < f + 32 at the ends of the first and last bins, and at random."""
    table, source = vectors._table(law, scale, 64), np.random.default_rng(0)
    size, last = 1 << table.shift, len(table.floors)
    bins = np.concatenate([[0, 0, last, last], source.integers(last + 1, size=400)])
    places = np.concatenate([[0, size - 1, 0, size - 1], source.integers(size, size=400)]).astype(np.uint64)
    found = vectors._exponential(table, bins, places << (64 - table.shift)).tolist()
    with localcontext() as context:
        context.prec = 60
        exact = [
            (exponent(law, scale, b * size) - exponent(law, scale, b * size + o)).exp() * 2**64
            for b, o in zip(bins.tolist(), places.tolist(), strict=True)
        ]
        return all(0 <= p - f < 32 for p, f in zip(exact, found, strict=True))


@LAWS
@pytest.mark.parametrize("scale", [s for s in SCALES if s > 31])
def test_bounds_of_exponentials_hold(law, scale):
    assert exponentials_hold(law, scale)


@LAWS
@pytest.mark.parametrize("planted", ["large", "small", "slopes", "curve"])
def test_bounds_of_exponentials_see_an_error_in_the_last_bits(law, planted, monkeypatch):
    """Planted: tables that are 2^-58 off."""
    error, right = np.uint64(64), vectors._table(law, 2**30 + 7, 64)
    if planted in ("large", "small"):
        large, small = vectors._exponentials()
        wrong = (large - error, small) if planted == "large" else (large, small + error)
        monkeypatch.setattr(vectors, "_exponentials", lambda: wrong)
    elif planted == "slopes" or law is discrete_laplace:
        monkeypatch.setattr(vectors, "_table", lambda *_: right._replace(slopes=right.slopes + error))
    else:
        monkeypatch.setattr(vectors, "_table", lambda *_: right._replace(curve=right.curve - 128))
    assert not exponentials_hold(law, 2**30 + 7)


def bins_are_right(table, words):
    """Decided bins: the word is below the bounds of all bins up to them, and above those of the next."""
    floors, top = table.floors.tolist(), 1 << table.width
    bins, undecided = vectors._bins(table, words)
    rows = zip(words.tolist(), bins.tolist(), undecided.tolist(), strict=True)
    return all(open_ or (word < [top, *floors][b] and word >= floors[b] + 2) for word, b, open_ in rows)


@LAWS
@pytest.mark.parametrize("width", [8, 64])
@pytest.mark.parametrize("scale", SCALES)
def test_bins_of_words_are_right_or_left_open(law, width, scale):
    table = vectors._table(law, scale, width)
    near = table.floors[:, None] + np.arange(-3, 4).astype(np.uint64)  # beside 0 lie the largest words
    words = np.concatenate([near.ravel(), seeded(0)(2000)]) & np.uint64((1 << width) - 1)
    assert bins_are_right(table, words)
    # Planted: the table of cells is off by one, cells are too large, words at the end are not left open.
    assert not bins_are_right(table._replace(before=np.maximum(table.before - 1, 0)), words)
    if width == 64:
        assert table.crowded <= 1 << 8
        assert len(table.floors) < 1500


def test_too_large_cells_are_seen():
    """Planted: cells of 3 bits for bins that need 5."""
    table = vectors._table(discrete_laplace, 31, 64)
    _, before, crowded = vectors._near(table.floors, 64, 3)
    assert table.bits == 5 and crowded > 1 << 60
    assert not bins_are_right(table._replace(bits=3, before=before, crowded=0), seeded(0)(2000))


def weights(law, scale):
    """Sizes from 0 to where nothing is left, and the probability of each integer x >= 0."""
    sizes = np.arange(60 * scale if law is discrete_laplace else 12 * scale)
    found = np.exp(-((sizes / scale) ** 2) / 2 if law is discrete_gaussian else -sizes / scale)
    return found / (2.0 * found.sum() - found[0])


def p_value(found, law, scale):
    """Chi-square of integers against their probabilities, those that are rare together."""
    half = weights(law, scale)
    edge = len(half) - 1
    expected = len(found) * np.concatenate([half[:0:-1], half])
    counts = np.bincount(np.clip(found, -edge, edge) + edge, minlength=2 * edge + 1)
    kept = expected > 20
    rows = [np.append(of[kept], of[~kept].sum()) for of in (counts, expected)]
    return stats.chisquare(rows[0], rows[1]).pvalue


def drawn(law, scale, count, width=64, seed=0):
    table = vectors._table(law, scale, width)
    return vectors._accepted(table, count, seeded([seed, scale, width]))


@LAWS
@pytest.mark.parametrize("scale", [1, 2, 7, 31, 32, 100, 1000])
def test_laws(law, scale):
    found = vectors.draws(law, scale, 400_000, seeded(scale))
    assert len(found) == 400_000 and found.dtype == np.int64
    assert p_value(found, law, scale) > LEVEL
    # Planted: the next scale where that is to be seen, zero half as often.
    if scale < 100:
        assert p_value(found, law, scale + 1) < LEVEL
    kept = (found != 0) | (np.arange(len(found)) % 2 == 0)
    assert p_value(found[kept], law, scale) < LEVEL or scale > 100


@LAWS
@pytest.mark.parametrize("scale", [3, 40])
def test_laws_with_short_words(law, scale):
    """Of 8 bits for bins and 3 for acceptances: a quarter and more of all proposals are finished by further bits."""
    assert p_value(drawn(law, scale, 40_000, 8), law, scale) > LEVEL


@LAWS
@pytest.mark.parametrize("planted", ["bins", "acceptance", "fresh bits"])
def test_short_words_without_further_bits_are_seen(law, planted, monkeypatch):
    """Planted: what words do not decide is taken as if they did; or further bits forget the first ones."""
    scale, settled = 40, vectors._settled

    def wrong(table, word, place, accepted, words):
        if planted == "fresh bits":
            return settled(table, int(words(1)[0]) >> (64 - table.width), place, accepted, words)
        if planted == "acceptance":
            size = settled(table, word, place, 0, words)
            return size if size is None or accepted & 1 else None
        floors = vectors._floors(law, scale, table.width)
        return (sum(floor > word for floor in floors) << table.shift) + place

    monkeypatch.setattr(vectors, "_settled", wrong)
    assert p_value(drawn(law, scale, 40_000, 8), law, scale) < LEVEL


@LAWS
@pytest.mark.parametrize("planted", ["before", "shift"])
def test_wrong_tables_are_seen_in_the_law(law, planted, monkeypatch):
    """Planted: bins one too low, bins twice as wide as their weights."""
    scale, right = 40, vectors._table(law, 40, 64)
    wrong = {
        "before": right._replace(before=np.maximum(right.before - 1, 0)),
        "shift": right._replace(shift=right.shift + 1),
    }[planted]
    monkeypatch.setattr(vectors, "_table", lambda *_: wrong)
    assert p_value(drawn(law, scale, 200_000), law, scale) < LEVEL


def upper_p_value(table, law, scale):
    """Of the share of the upper halves of bins."""
    found = np.abs(vectors._accepted(table, 400_000, seeded(scale)))
    half = weights(law, scale)
    half[1:] *= 2.0
    upper = (np.arange(len(half)) >> (table.shift - 1)) & 1
    return stats.binomtest(np.sum(found >> (table.shift - 1) & 1), len(found), np.sum(half * upper)).pvalue


@LAWS
def test_places_in_bins_have_their_law(law):
    """Planted: all places are kept."""
    table = vectors._table(law, 512, 64)
    assert upper_p_value(table, law, 512) > LEVEL
    assert upper_p_value(table._replace(slopes=0 * table.slopes, curve=0), law, 512) < LEVEL


def limit_of(law):
    return stats.norm if law is discrete_gaussian else stats.laplace


@LAWS
@pytest.mark.parametrize("scale", [2**30 + 7, 2**56])
def test_wide_laws_are_their_continuous_limits_with_uniform_last_bits(law, scale):
    found = vectors.draws(law, scale, 200_000, seeded(1))
    assert stats.kstest(found / scale, limit_of(law).cdf).pvalue > LEVEL
    assert stats.kstest(1.05 * found / scale, limit_of(law).cdf).pvalue < LEVEL
    for low in (0, 16):
        assert stats.chisquare(np.bincount((found >> low) & 255)).pvalue > LEVEL


@LAWS
def test_arrays_have_the_law_of_single_numbers(law):
    """Not by formulas, but against the sampler that draws one by one."""
    source = np.random.default_rng(0)
    single = [law(5, lambda n: int.from_bytes(source.bytes(40), "little") % n) for _ in range(5_000)]
    found = vectors.draws(law, 5, 20_000, seeded(2))
    edges = np.arange(-12.5, 13.5)
    table = np.array([np.histogram(np.clip(of, -12, 12), edges)[0] for of in (single, found)])
    assert stats.chi2_contingency(table).pvalue > LEVEL
    table[1] = np.roll(table[1], 1)
    assert stats.chi2_contingency(table).pvalue < LEVEL


class Script:
    """Words that are planned, and random ones after them."""

    def __init__(self, *planned):
        self.planned, self.random, self.asked = list(planned), seeded(3), []

    def __call__(self, count):
        self.asked.append(count)
        own, self.planned = self.planned[:count], self.planned[count:]
        return np.concatenate([np.array(own, np.uint64), self.random(count - len(own))])


@LAWS
def test_words_at_a_bound_are_decided_by_the_bits_behind(law):
    """The 64 bits are those of P(b >= 3); the next 64 are the exact ones, and a little less or more."""
    scale, table = 2**30 + 7, vectors._table(law, 2**30 + 7, 64)
    with localcontext() as context:
        context.prec = 80
        exact = int(survivals(law, scale, 128)[2])
    word, rest = exact >> 64, exact % (1 << 64)
    assert vectors._bins(table, np.array([word], np.uint64))[1]
    for error, bins in ((-5, 3), (5, 2)):
        # Place 0 is always kept.
        assert vectors._settled(table, word, 0, None, Script(rest + error)) == bins << table.shift


@LAWS
def test_acceptances_at_a_bound_are_decided_by_the_bits_behind(law):
    scale, table = 2**30 + 7, vectors._table(law, 2**30 + 7, 64)
    place, word = (1 << table.shift) - 1, (1 << 64) - 1000
    with localcontext() as context:
        context.prec = 80
        exact = int((-exponent(law, scale, place)).exp() * 2**118)
    for error, size in ((-5, place), (5, None)):
        further = (exact % (1 << 59)) + error
        assert vectors._settled(table, word, place, exact >> 59, Script(further)) == size


def test_what_has_more_than_64_bits_is_kept():
    """Three words of 0 for the bin: beyond 128 scales."""
    found = vectors._accepted(vectors._table(discrete_laplace, 2**56, 64), 1, Script(0, 1, 0, 0, 0, 0))
    while not len(found):  # rejected
        found = vectors._accepted(vectors._table(discrete_laplace, 2**56, 64), 1, Script(0, 1, 0, 0, 0, 0))
    assert found.dtype == object and -(2**64) < found[0] < -(2**63)


@LAWS
@pytest.mark.parametrize("scale", [1, 31, 32, 2**30])
def test_so_many_proposals_suffice(law, scale):
    """Fewer are accepted with a probability below 2^-100; the bound of the share that is rejected is one, and near."""
    rejected = vectors._table(law, scale, 64).rejected
    for count in (1, 64, 10_000, 10**6):
        total = vectors._proposals(count, rejected)
        assert stats.binom.logcdf(count - 1, total, 1.0 - rejected) < -100 * math.log(2.0)
    share = 1.0 - len(drawn(law, scale, 400_000)) / 400_000
    assert rejected - 0.002 < share < rejected + 6 * math.sqrt(rejected / 400_000)


@LAWS
def test_what_is_asked_for_does_not_depend_on_the_noise(law):
    asked = []
    for seed in range(20):
        source = Script()
        source.random = seeded(seed)
        vectors.draws(law, 2**30, 9000, source)
        asked.append(source.asked)
    assert all(own == asked[0] for own in asked)
    # A set that is too small is followed by another one.
    source = Script(*[(1 << 64) - 1] * 3 * 8192)  # -0, rejected, for one chunk
    assert len(vectors.draws(law, 2**30, 9000, source)) == 9000


@pytest.mark.parametrize(
    ("law", "scale", "count"),
    [(bernoulli_exp, 1, 1), (discrete_laplace, 0, 1), (discrete_laplace, 1, 0), (discrete_gaussian, 2**57, 1)],
)
def test_arguments_out_of_range_are_refused(law, scale, count):
    with pytest.raises(ValueError, match="draws:"):
        vectors.draws(law, scale, count, functools.partial(pytest.fail, "words were drawn"))
