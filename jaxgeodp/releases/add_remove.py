"""Add/remove adjacency: releases with a private number of records.

A noisy count gives the number of places. Surplus records are left out at random, and empty places get the public
centre. One record more then changes one place, so that every theorem for a replaced record holds
(docs/mathematics.md, section 15).
"""

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import jax
import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.privacy.composition import compose
from jaxgeodp.privacy.decimals import add, float_above, float_below, square, written
from jaxgeodp.privacy.entropy import random_order
from jaxgeodp.privacy.grid import with_noise
from jaxgeodp.privacy.guarantee import GaussianDP, Guarantee, NotProven, PureDP, ZeroConcentratedDP
from jaxgeodp.privacy.release import Draft
from jaxgeodp.releases.drafts import Request, drafted, law_of
from jaxgeodp.releases.limits import check_numbers
from jaxgeodp.releases.ways import FixedTime, OnGrid
from jaxgeodp.releases.weights import weighs
from jaxgeodp.samplers.discrete import discrete_laplace

# Share of epsilon, or of mu^2, for the count.
_SHARE = Fraction(1, 10)
# Largest probability of more places than records.
BEYOND = 0.05
# Ratio of the numbers of places that are tried; least number of rows of a program.
_STEP, _FEWEST_ROWS = 1.25, 64
_MOST = 2**24
# In records of as many as the noise is wide: 40 times as much, which is never exceeded, is a gigabyte.
_MOST_NUMBERS = 2**22


@dataclasses.dataclass(frozen=True)
class Counting:
    """Public rule for the number of places, given the noisy count.

    Attributes:
        scale: of the discrete Laplace noise on the number of records.
        below: subtracted from the noisy count, so that places seldom outnumber records.
        least: least number of places.
        most: largest number of places; for more the release would be refused.
    """

    scale: int
    below: int
    least: int
    most: int

    @property
    def guarantee(self) -> PureDP:
        """Return the guarantee of the noisy count, which one record changes by one."""
        return PureDP(float_above(Fraction(1, self.scale)))

    def places(self, noisy: int) -> int:
        """Return the number of places for a noisy count."""
        return min(self.most, max(self.least, noisy - self.below))


@dataclasses.dataclass(frozen=True)
class HiddenCount:
    """Release of a mechanism with a private number of records.

    Attributes:
        request: of the mechanism, with what the count leaves of the privacy parameter.
        counting: see `Counting`.
        record: the shape and type of one.
        smallest: makes the draft for the least number of places.
        guarantee: of the counts and values of all such releases together.
        theorem: of docs/mathematics.md, that proves it.
        times: number of such releases.
    """

    request: Request
    counting: Counting
    record: jax.ShapeDtypeStruct
    smallest: Callable[[Callable[[], Any]], Draft]
    guarantee: Guarantee
    theorem: str
    times: int

    @property
    def mechanism(self) -> Any:
        """Return the mechanism, with what the count leaves of the privacy parameter."""
        return self.request.mechanism

    def draft(self, read: Callable[[], np.ndarray], more: dict | None = None) -> Draft:
        """Return the draft of a release of records (n, \\*shape), for any n.

        Args:
            read: returns the records.
            more: further entries of the record, all of them public.
        """

        def draw():
            records = read()
            noisy = int(with_noise(discrete_laplace, np.array([len(records)]), self.counting.scale)[0])
            places = self.counting.places(noisy)
            try:
                rows = self._rows(places)
                draft_of = drafted(self.request, places, self.record, rows)
                own = filled_up(self._placed(records, places), rows)
            except Exception:  # more places than double precision or the memory can do with
                places, draft_of = self.counting.least, self.smallest
                own = self._placed(records, places)
            drawn = draft_of(lambda: own)
            value, told = drawn.draw()
            return value, self._said(told, noisy, more or {})

        return dataclasses.replace(self._said(self.smallest(read), 0, more or {}), draw=draw)

    def _placed(self, records, places):
        return in_places(records, random_order(len(records)), random_order(places))

    def _rows(self, places):
        """Return the number of rows of the program, one of few numbers, as noisy counts all differ.

        None where rows beyond the places would count.
        """
        weighed = "weights" in self.mechanism.supports and not isinstance(self.request.way, FixedTime | OnGrid)
        if not weighed or not weighs(self.mechanism.law(self.counting.least, self.record.shape)):
            return None
        steps = math.ceil(math.log(max(places / _FEWEST_ROWS, 1.0), _STEP))
        return max(places, math.ceil(_FEWEST_ROWS * _STEP**steps))

    def _said(self, draft, noisy, more):
        counting = self.counting
        count = {
            "value": noisy,
            "scale": counting.scale,
            "places": f"min({counting.most}, max({counting.least}, value - {counting.below}))",
            "least": counting.least,
            "most": counting.most,
            "sampler": "discrete Laplace noise, exact, in integers (Canonne, Kamath & Steinke 2020)",
            # As the adjacency says, of all counts that neighbours change.
            "guarantee": compose([counting.guarantee] * self.times).record("one record more changes the count by 1")
            | {"adjacency": self.request.neighbours},
            "left": dataclasses.asdict(self.mechanism.budget),
        }
        return dataclasses.replace(
            draft,
            guarantee=self.guarantee,
            theorem=f"{draft.theorem}; for n places, with a private count: docs/mathematics.md, {self.theorem}",
            expected=None,  # records that are left out, and places without one, move the mean, too
            more=draft.more | {"count": count} | more,
            note=f"{draft.note}; the running time depends on the number of records",
        )


def in_places(records: np.ndarray, order: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Put records into places; leave out surplus records, and fill empty places with NaN.

    Both orders are random, secret and independent of each other and of the records: which records are kept, and which
    place each of them gets, empty ones included. Then one record more changes one place, whatever a law does with the
    order of the places (docs/mathematics.md, Theorem O). A record of NaN counts as the public centre.

    Args:
        records: (n, \\*shape).
        order: (n,), of the records, of which the first are kept.
        places: (m,), those of the kept records, then the empty ones.
    """
    kept = order[: len(places)]
    result = np.full((len(places), *records.shape[1:]), np.nan, records.dtype)
    result[places[: len(kept)]] = records[kept]
    return result


def filled_up(records: np.ndarray, rows: int | None) -> np.ndarray:
    """Return the records, padded with NaN to so many rows; unchanged for None."""
    if rows is None:
        return records
    more = np.full((rows - len(records), *records.shape[1:]), np.nan, records.dtype)
    return np.concatenate([records, more])


def hidden_count(
    request: Request, record: jax.ShapeDtypeStruct, times: int = 1, theorem: str = "Theorem O"
) -> HiddenCount:
    """Return a release with a private number of records and the guarantee of the mechanism.

    Args:
        request: of a mechanism that supports "add-remove".
        record: the shape and type of one.
        times: number of releases that together have this guarantee.
        theorem: of docs/mathematics.md, that proves it.

    Raises:
        ValueError: the mechanism refuses every number of records.
    """
    name, budget = type(request.mechanism).__name__, request.mechanism.budget
    scale, rest = _split(_part(budget, times))
    inner = dataclasses.replace(request.mechanism, **dataclasses.asdict(rest))
    request = dataclasses.replace(request, mechanism=inner)
    numbers = scale * max(1, math.prod(record.shape))
    if numbers > _MOST_NUMBERS:
        raise InputError(
            f"{name}: under {budget} the noise on the number of records would be as large as {scale:,} records, which "
            "may exceed the memory: raise the privacy parameter."
        )
    least, smallest = _smallest(request, record)
    counting = Counting(scale, math.ceil(-scale * math.log(2 * BEYOND)), least, most_places(request, record, least))
    of_value = smallest(lambda: None).guarantee
    if isinstance(of_value, NotProven):
        raise InputError(f"{name}: a private number of records needs a release with a proven guarantee.")
    one = _together(counting.guarantee, of_value, inner.guarantee)
    return HiddenCount(request, counting, record, smallest, compose([one] * times), theorem, times)


def _part(whole: PureDP | GaussianDP, times: int) -> PureDP | GaussianDP:
    """Return the budget of each of ``times`` releases that together spend ``whole``."""
    if isinstance(whole, PureDP):
        return PureDP(float_below(Fraction(written(whole.epsilon)) / times))
    return GaussianDP(float_below(Fraction(square(written(whole.mu))) / times, 2))


def _split(budget: PureDP | GaussianDP) -> tuple[int, PureDP | GaussianDP]:
    """Return the scale of the count's noise, and the rest of the budget."""
    if isinstance(budget, PureDP):
        scale = math.ceil(1 / (_SHARE * Fraction(written(budget.epsilon))))
        return scale, PureDP(float_below(add(written(budget.epsilon), written(float_above(Fraction(1, scale))), -1)))
    whole = square(written(budget.mu))
    scale = 1
    while Fraction(square(written(_mu(scale)))) > _SHARE * Fraction(whole):
        scale += max(1, scale // 100)
    return scale, GaussianDP(float_below(add(whole, square(written(_mu(scale))), -1), 2))


def _mu(scale):
    return PureDP(float_above(Fraction(1, scale))).to_gdp().mu


def _together(count: PureDP, value: Guarantee, idealized: Guarantee) -> Guarantee:
    """Return the joint guarantee of count and value, for any number of places."""
    if isinstance(value, ZeroConcentratedDP) and isinstance(idealized, GaussianDP):
        # Of integers, whose scales are rounded up: rho is that of exact arithmetic at most, for all numbers of records.
        # Only vectors whose parts add up to a little more, by rounding, have more, and the same for all numbers.
        return compose([count, max(idealized.to_zcdp(), value, key=lambda own: own.rho)])
    return compose([count.to_gdp() if isinstance(value, GaussianDP) else count, value])


def _check(request, number, record):
    """Refuse what a release of so many records would refuse, as far as that needs no compilation."""
    law = law_of(request.mechanism, number, record.shape)
    if isinstance(request.way, OnGrid):
        return
    law.check_ready(jax.ShapeDtypeStruct((number, *record.shape), record.dtype))
    check_numbers(law.terms, law.scale, law.size)


def _smallest(request, record):
    """Return a number of records near the least that is not refused, and a function that makes its drafts."""
    number = 2
    while True:
        try:
            _check(request, number, record)
            return number, drafted(request, number, record)
        except InputError:
            if number > _MOST:
                raise
        number = math.ceil(_STEP * number)


def most_places(request, record, least):
    """Return the largest number of records that is not refused: noise for more may be too small."""

    def holds(number):
        try:
            _check(request, number, record)
        except Exception:  # of a mechanism of one's own, too: nothing has been charged
            return False
        return True

    refused = _MOST
    if holds(refused):
        return refused
    while refused - least > max(1, least // 1000):
        middle = (least + refused) // 2
        least, refused = (middle, refused) if holds(middle) else (least, middle)
    return least
