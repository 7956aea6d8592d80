"""Releases that do not tell how many records there are: neighbours have one record more, or one less.

A count with noise says how many places there are; records that are more than the places are left out at random, and
places that are left get the public centre. One record more then changes what stands in one place, so that every
theorem for a replaced record holds (docs/mathematics.md, section 15).
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

# Of epsilon, or of mu^2, for the count.
_SHARE = Fraction(1, 10)
# How likely it may be that there are more places than records.
BEYOND = 0.05
# Places that there are at least are sought in steps of this ratio, and at most this many; rows of programs begin here.
_STEP, _FEWEST_ROWS = 1.25, 64
_MOST = 2**24
# In records of as many as the noise is wide: 40 times as much, which is never exceeded, is a gigabyte.
_MOST_NUMBERS = 2**22


@dataclasses.dataclass(frozen=True)
class Counting:
    """How the number of places is made; public.

    Attributes:
        scale: of the discrete Laplace noise on the number of records.
        below: how much is taken off, so that places are seldom more than records.
        least: number of places that there are at least.
        most: number of places that there are at most: for more the release would be refused.
    """

    scale: int
    below: int
    least: int
    most: int

    @property
    def guarantee(self) -> PureDP:
        """One record more changes the count by one."""
        return PureDP(float_above(Fraction(1, self.scale)))

    def places(self, noisy: int) -> int:
        """How many, for a count with noise."""
        return min(self.most, max(self.least, noisy - self.below))


@dataclasses.dataclass(frozen=True)
class HiddenCount:
    """A mechanism whose number of records is private.

    Attributes:
        request: of a mechanism with what the count leaves of the privacy parameter.
        counting: see `Counting`.
        record: the shape and type of one.
        smallest: its draft for the least number of places.
        guarantee: of the counts and values of all such releases together.
        theorem: of docs/mathematics.md, why it holds.
        times: how many such releases these are.
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
        """With what the count leaves of the privacy parameter."""
        return self.request.mechanism

    def draft(self, read: Callable[[], np.ndarray], more: dict | None = None) -> Draft:
        """The release of some records, (n, \\*shape) for any n.

        Args:
            read: gives the records.
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
        """How many records a program is compiled for: one of few numbers, as counts with noise are all different.

        None where what is beyond the places would count.
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
    """Put records into places; records that are too many are left out, places that are left get NaN.

    Both orders are random, secret and independent of each other and of the records: which records are kept, and which
    place each of them gets, empty ones included. Then one record more changes one place, whatever a law does with the
    order of the places (docs/mathematics.md, Theorem O). A record of NaN counts as the public centre.

    Args:
        records: (n, \\*shape).
        order: (n,), of which the first are kept.
        places: (m,), those of the records that are kept, and then those that are left.
    """
    kept = order[: len(places)]
    result = np.full((len(places), *records.shape[1:]), np.nan, records.dtype)
    result[places[: len(kept)]] = records[kept]
    return result


def filled_up(records: np.ndarray, rows: int | None) -> np.ndarray:
    """With records of NaN, to so many."""
    if rows is None:
        return records
    more = np.full((rows - len(records), *records.shape[1:]), np.nan, records.dtype)
    return np.concatenate([records, more])


def hidden_count(
    request: Request, record: jax.ShapeDtypeStruct, times: int = 1, theorem: str = "Theorem O"
) -> HiddenCount:
    """A release whose number of records is private, and which promises what the mechanism does.

    Args:
        request: of a mechanism that supports "add-remove".
        record: the shape and type of one.
        times: how many such releases together promise that.
        theorem: of docs/mathematics.md, why they do.

    Raises:
        ValueError: it refuses every number of records.
    """
    name, budget = type(request.mechanism).__name__, request.mechanism.budget
    scale, rest = _split(_part(budget, times))
    inner = dataclasses.replace(request.mechanism, **dataclasses.asdict(rest))
    request = dataclasses.replace(request, mechanism=inner)
    numbers = scale * max(1, math.prod(record.shape))
    if numbers > _MOST_NUMBERS:
        raise InputError(
            f"{name}: under {budget} the noise on the number of records would be as large as "
            f"{scale:,} records, for which there may be no memory: raise the privacy parameter."
        )
    least, smallest = _smallest(request, record)
    counting = Counting(scale, math.ceil(-scale * math.log(2 * BEYOND)), least, most_places(request, record, least))
    of_value = smallest(lambda: None).guarantee
    if isinstance(of_value, NotProven):
        raise InputError(f"{name}: a private number of records is for ways of releasing with a proven guarantee.")
    one = _together(counting.guarantee, of_value, inner.guarantee)
    return HiddenCount(request, counting, record, smallest, compose([one] * times), theorem, times)


def _part(whole: PureDP | GaussianDP, times: int) -> PureDP | GaussianDP:
    """The budget of each of several releases that together have this one."""
    if isinstance(whole, PureDP):
        return PureDP(float_below(Fraction(written(whole.epsilon)) / times))
    return GaussianDP(float_below(Fraction(square(written(whole.mu))) / times, 2))


def _split(budget: PureDP | GaussianDP) -> tuple[int, PureDP | GaussianDP]:
    """The scale of a count's noise, and what is left."""
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
    """What count and value promise, for any number of places."""
    if isinstance(value, ZeroConcentratedDP) and isinstance(idealized, GaussianDP):
        return compose([count, idealized.to_zcdp()])  # of integers, whose scales are rounded up
    return compose([count.to_gdp() if isinstance(value, GaussianDP) else count, value])


def _check(request, number, record):
    """Refuse what a release of so many records would, as far as nothing is compiled for it."""
    law = law_of(request.mechanism, number, record.shape)
    if isinstance(request.way, OnGrid):
        return
    law.check_ready(jax.ShapeDtypeStruct((number, *record.shape), record.dtype))
    check_numbers(law.terms, law.scale, law.size)


def _smallest(request, record):
    """A number of records for which nothing is refused, near the least one, and what makes drafts of so many."""
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
    """The largest number of records for which nothing is refused: more of them can ask for noise that is too small."""

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
