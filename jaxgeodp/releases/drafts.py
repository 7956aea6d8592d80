"""From a mechanism and data to a release that only the ledger can still refuse."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.blocks import RecordBlocks
from jaxgeodp.checks import InputError
from jaxgeodp.privacy.entropy import random_order
from jaxgeodp.privacy.guarantee import ADJACENCY
from jaxgeodp.privacy.release import Draft
from jaxgeodp.releases.expected import expected_error
from jaxgeodp.releases.law import Law, Told
from jaxgeodp.releases.limits import check_numbers
from jaxgeodp.releases.record import entries_of, further_entries
from jaxgeodp.releases.ways import FromSums, OnGrid, Way
from jaxgeodp.releases.weights import Weights, padded_weights

#: A post-processing of the value, which then is the value; it fails for no value.
Finish = Callable[[np.ndarray], np.ndarray]


#: The options that `Mechanism.supports` tells of, and what is said where they are refused.
OPTIONS = {
    "delta": "delta= is not for it: it needs a proven guarantee and a density (LaplaceMechanism, KNGMechanism, "
    "GibbsMechanism, MetricLaplace), of statistics that of the Frechet mean",
    "grid": "numerics='grid' is not for it: it is for noise in the tangent space (TangentLaplace, WrappedLaplace, "
    "WrappedGaussian), second moments, points and surfaces, and for curves and faces, which needs calibration='tight'",
    "persons": "persons= is not for it: persons needs a public ball whose points are the records, or a public "
    "template; or let each record be one person's mean",
    "weights": "weights= is not for it: weights are for Frechet means of points in a ball",
    "add-remove": "adjacency='add-remove' is not for it: a private number of records needs epsilon-DP or mu-GDP by one "
    "parameter; where mu promises zCDP give epsilon",
    "prepare": "prepare is not for it: it releases no sum of integers over the records, as TangentLaplace does and, "
    "where space is flat, WrappedGaussian; of a LocatedMechanism with one of these SearchInRounds prepares stages",
}


@dataclasses.dataclass(frozen=True)
class Wanted:
    """What a call asks for, beside mechanism and data.

    Attributes:
        way: see `releases.ways`.
        finish: see `Finish`.
        more: further entries of the record, all of them public.
        adjacency: of the record's guarantee, in words.
        weights: of the records.
    """

    way: Way
    adjacency: str
    finish: Finish = np.asarray
    more: dict = dataclasses.field(default_factory=dict)
    weights: Weights | None = None


def check_options(mechanism: Any, option: str | None, persons=None, weights=None, adjacency: str = ADJACENCY) -> None:
    """Refuse what is not in a mechanism's `supports`: an option, and what a call asks for beside it.

    To be called before anything is charged or a record is looked at.

    Raises:
        ValueError: with the one sentence of this option.
    """
    given = {option: option, "persons": persons, "weights": weights, adjacency: adjacency != ADJACENCY or None}
    for word in [word for word, own in given.items() if own is not None and word not in mechanism.supports]:
        taken = ", ".join(own for own in OPTIONS if own in mechanism.supports) or "none of these options"
        raise InputError(f"{type(mechanism).__name__}: {OPTIONS[word]}; it takes {taken}.")


def raw_records(mechanism: Any, data) -> Any:
    """The data as an array in double precision, of which only shape and type are looked at.

    Raises:
        ValueError: see `Domain.records`.
    """
    name = type(mechanism).__name__
    if isinstance(data, RecordBlocks):
        raise InputError(f"{name}: RecordBlocks are for release with numerics='grid', and for prepare.")
    own = np.asarray(data) if isinstance(data, jax.Array) else data
    records = mechanism.domain.records(name, own)
    return records.astype(jnp.promote_types(records.dtype, jnp.float64))


def in_random_order(records: Any) -> Any:
    """Records in a uniformly random order from the system's entropy, which no record tells.

    A law that depends on the order of n records is then the same for every order in which they come, and one that
    differs for neighbours in one place only does so for neighbours as sets (docs/mathematics.md, Theorem O).
    """
    return np.asarray(records)[random_order(len(records))]


def raw_blocks(mechanism: Any, data: RecordBlocks) -> RecordBlocks:
    """The same for records that are read in blocks: they are read once, to see whether they can be.

    Raises:
        ValueError: see `Domain.records` and `RecordBlocks.check`.
    """
    one = raw_records(mechanism, np.zeros((1, *data.shape[1:]), data.dtype))
    data.check(type(mechanism).__name__)
    return data.mapped(lambda block: np.asarray(raw_records(mechanism, block)), one.shape[1:], one.dtype)


def law_of(mechanism: Any, n: int, shape: tuple[int, ...]) -> Law:
    """The law of n records.

    Raises:
        ValueError: see `Mechanism.law`; or its numbers are beyond double precision.
    """
    try:
        return mechanism.law(n, shape)
    except OverflowError:
        name = type(mechanism).__name__
        raise InputError(f"{name}: its numbers are beyond double precision; choose other parameters.") from None


def drafted(
    mechanism: Any, n: int, record: jax.ShapeDtypeStruct, wanted: Wanted, rows: int | None = None
) -> Callable[[Callable[[], Any]], Draft]:
    """Make a release of n records ready: of what gives them, when they are drawn from, its draft.

    Args:
        mechanism: what is released.
        n: number of records.
        record: the shape and type of one.
        wanted: by the call.
        rows: as many records are given, of which those beyond n count nothing; for mechanisms and ways that take
            weights.

    Raises:
        ValueError: there is no such law, the way refuses it, or an entry of the record is given twice.
    """
    name, domain, shape = type(mechanism).__name__, mechanism.domain, record.shape
    weights = wanted.weights
    number = n if weights is None else weights.count
    law, described = law_of(mechanism, number, shape), domain.described(shape)
    more = further_entries(name, law.terms.more, weights, wanted.more, described)
    law = law if weights is None else weights.of(law)
    law = law if rows is None else padded_weights(n, rows).of(law)
    ready = wanted.way.ready(law, jax.ShapeDtypeStruct((n if rows is None else rows, *shape), record.dtype))
    check_numbers(ready.terms, ready.scale, None if isinstance(wanted.way, OnGrid | FromSums) else law.size)
    terms, entries = ready.terms, entries_of(ready, described, n, law.support)
    fallback = wanted.finish(np.asarray(domain.fallback(shape)))

    def draft_of(read):
        def draw():
            drawn = ready.draw(in_random_order(read()) if ready.order_matters else read())
            if isinstance(drawn, Told):
                told = dataclasses.replace(draft, entries=draft.entries | drawn.entries, expected=None)
                return wanted.finish(np.asarray(drawn.value)), told
            return wanted.finish(np.asarray(drawn)), draft

        draft = Draft(
            draw,
            fallback=fallback,
            guarantee=terms.guarantee,
            theorem=terms.theorem,
            entries=entries,
            note=ready.note,
            promises=(terms.promises or {}) | {"adjacency": wanted.adjacency},
            more=more,
            expected=functools.partial(expected_error, mechanism, number, wanted.way),
        )
        return draft

    return draft_of
