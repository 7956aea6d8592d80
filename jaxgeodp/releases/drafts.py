"""From a request and data to a draft: a release that only the ledger can still refuse."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.blocks import RecordBlocks
from jaxgeodp.checks import InputError
from jaxgeodp.domains.lists import records_in_lists
from jaxgeodp.domains.records import is_numeric
from jaxgeodp.privacy.entropy import random_order
from jaxgeodp.privacy.guarantee import ADD_REMOVE, ADJACENCY
from jaxgeodp.privacy.release import Draft
from jaxgeodp.releases.expected import expected_error
from jaxgeodp.releases.law import Law, PointLaw, Told
from jaxgeodp.releases.limits import check_numbers
from jaxgeodp.releases.record import entries_of, further_entries
from jaxgeodp.releases.ways import FromSums, OnGrid, Way

#: Post-processing of the value, which is released in its place; it never fails.
Finish = Callable[[np.ndarray], np.ndarray]

#: Options in `Mechanism.supports`, each with the message of its refusal.
OPTIONS = {
    "delta": "delta= is not supported: it needs a proven guarantee and a density (LaplaceMechanism, KNGMechanism, "
    "GibbsMechanism, MetricLaplace), of statistics that of the Frechet mean",
    "grid": "numerics='grid' is not supported: it is for noise in the tangent space (TangentLaplace, "
    "TangentGaussian, WrappedLaplace, WrappedGaussian, AdaptiveMechanism with mu), second moments, points "
    "and surfaces, and for curves and faces, which needs calibration='tight'",
    "persons": "persons= is not supported: persons needs a public ball whose points are the records, without a shape, "
    "or a public template; or let each record be one person's mean",
    "weights": "weights= is not supported: weights are for Frechet means of points in a ball",
    "add-remove": "a private number of records (adjacency='add-remove', release_groups) is not supported: it needs "
    "epsilon-DP or mu-GDP by one parameter; where mu promises zCDP give epsilon",
    "prepare": "prepare is not supported: it releases no sum of integers over the records, as TangentLaplace and "
    "TangentGaussian do and, where space is flat, WrappedGaussian; of a LocatedMechanism with one of these, "
    "and of an AdaptiveMechanism with mu, SearchInRounds prepares stages",
}


@dataclasses.dataclass(frozen=True)
class Request:
    """Requested release; all of it is public, and none of it is data.

    Attributes:
        mechanism: what is released.
        way: see `releases.ways`.
        adjacency: "replace-one" or "add-remove".
        unit: unit of privacy: "record", "person", or see `State`.
        together: other releases that share the guarantee, in words; their numbers of records are private.
        finish: see `Finish`.
        more: further entries of the record.
        weights: of the records, as they are given, or `Weights`.
    """

    mechanism: Any
    way: Way
    adjacency: str = ADJACENCY
    unit: str = "record"
    together: str = ""
    finish: Finish = np.asarray
    more: dict | None = None
    weights: Any = None

    @property
    def neighbours(self) -> str:
        """Return the adjacency as the record states it."""
        whose = "" if self.unit == "record" else f"all of a {self.unit}"
        parts = "; ".join(filter(None, [whose, self.together]))
        return f"{self.adjacency} ({parts})" if parts else self.adjacency

    def check(self) -> None:
        """Refuse options that the mechanism does not support, or that do not go together.

        To be called before anything is charged or a record is looked at.

        Raises:
            ValueError: with one sentence.
        """
        name = type(self.mechanism).__name__
        if self.adjacency not in (ADJACENCY, ADD_REMOVE):
            raise InputError(f"{name}: adjacency must be '{ADJACENCY}' or '{ADD_REMOVE}', got {self.adjacency!r}.")
        hidden, persons, weighted = self.adjacency == ADD_REMOVE, self.unit != "record", self.weights is not None
        if weighted and (persons or hidden or isinstance(self.way, OnGrid)):
            raise InputError(
                f"{name}: weights need a public number of records, and are not supported with persons or "
                "numerics='grid', where all count equally; leave them out."
            )
        asked = {
            self.way.option: self.way.option is not None,
            "persons": persons,
            "weights": weighted,
            "add-remove": hidden or bool(self.together),
        }
        for option in [word for word, own in asked.items() if own and word not in self.mechanism.supports]:
            taken = ", ".join(word for word in OPTIONS if word in self.mechanism.supports) or "none of these options"
            raise InputError(f"{name}: {OPTIONS[option]}; it supports {taken}.")


def raw_records(mechanism: Any, data) -> Any:
    """Return the data as an array in double precision; only shape and type are checked.

    Raises:
        ValueError: see `Domain.records`.
    """
    name = type(mechanism).__name__
    if isinstance(data, RecordBlocks):
        raise InputError(f"{name}: RecordBlocks are only for release with numerics='grid' and for prepare.")
    own = np.asarray(data) if isinstance(data, jax.Array) else data
    if hasattr(own, "iloc") or not hasattr(own, "dtype") or own.dtype == object:
        if not mechanism.domain.knows_shape:  # one record could decide which shape most have
            raise InputError(
                f"{name}: without a template the shape of a record is that of the array: give data as one array of "
                "numbers, such as np.asarray(data, float), or give a template."
            )
        own = records_in_lists(own, functools.partial(_converted, mechanism))
    elif is_numeric(own.dtype, "fiuc"):  # before what the domain does: whole turns are taken off an angle there
        with np.errstate(all="ignore"):
            own = own.astype(np.complex128 if own.dtype.kind == "c" else np.float64)
    records = mechanism.domain.records(name, own)
    return records.astype(jnp.promote_types(records.dtype, jnp.float64))


def _converted(mechanism, array):
    """Return records as the domain converts them; None where it refuses them."""
    try:
        return mechanism.domain.records(type(mechanism).__name__, array)
    except Exception:  # of what shape a record is, nothing may tell
        return None


def in_random_order(records: Any) -> Any:
    """Return the records in a uniformly random order from the system's entropy, which no record tells.

    A law that depends on the order of n records is then the same for every order in which they come, and one that
    differs for neighbours in one place only does so for neighbours as sets (docs/mathematics.md, Theorem O).
    """
    return np.asarray(records)[random_order(len(records))]


def raw_blocks(mechanism: Any, data: RecordBlocks) -> RecordBlocks:
    """Return records that are read in blocks, converted as by `raw_records`; read them once as a check.

    Raises:
        ValueError: see `Domain.records` and `RecordBlocks.check`.
    """
    one = raw_records(mechanism, np.zeros((1, *data.shape[1:]), data.dtype))
    data.check(type(mechanism).__name__)
    return data.mapped(lambda block: np.asarray(raw_records(mechanism, block)), one.shape[1:], one.dtype)


def law_of(mechanism: Any, n: int, shape: tuple[int, ...]) -> Law:
    """Return the law of n records.

    Raises:
        ValueError: see `Mechanism.law`; or its numbers are beyond double precision.
    """
    try:
        return mechanism.law(n, shape)
    except OverflowError:
        name = type(mechanism).__name__
        raise InputError(f"{name}: its numbers are beyond double precision; choose other parameters.") from None


def drafted(
    request: Request, n: int, record: jax.ShapeDtypeStruct, rows: int | None = None
) -> Callable[[Callable[[], Any]], Draft]:
    """Prepare a release of n records; return a function from a reader of the records to the draft.

    Args:
        request: see there.
        n: number of records.
        record: the shape and type of one.
        rows: number of records given, of which those beyond n do not count; for mechanisms and ways that take
            weights.

    Raises:
        ValueError: there is no such law, the way refuses it, or an entry of the record is given twice.
    """
    mechanism, way, weights = request.mechanism, request.way, request.weights
    name, domain, shape = type(mechanism).__name__, mechanism.domain, record.shape
    entries = (request.more or {}) | ({} if request.unit == "record" else {"unit": request.unit})
    number = n if weights is None else weights.count
    law, described = law_of(mechanism, number, shape), domain.described(shape)
    more = further_entries(name, law.terms.more, weights, entries, described)
    law = law if weights is None else weights.of(law)
    law = law if rows is None else law.padded(rows)
    taken = jax.ShapeDtypeStruct((n if rows is None else rows, *shape), record.dtype)
    if isinstance(law, PointLaw):
        law.check_rows(taken)
    ready = way.ready(law, taken)
    in_integers = isinstance(way, OnGrid | FromSums)
    check_numbers(ready.terms, ready.scale, None if in_integers else law.size)
    terms, entries = ready.terms, entries_of(ready, described, n, law.support)
    fallback = domain.fallback(shape) if (own := law.fallback) is None else own
    fallback = request.finish(np.asarray(fallback))

    def draft_of(read):
        def draw():
            drawn = ready.draw(in_random_order(read()) if ready.order_matters else read())
            if isinstance(drawn, Told):
                told = dataclasses.replace(draft, entries=draft.entries | drawn.entries, expected=None)
                return request.finish(law.released(np.asarray(drawn.value))), told
            return request.finish(law.released(np.asarray(drawn))), draft

        draft = Draft(
            draw,
            fallback=fallback,
            guarantee=terms.guarantee,
            theorem=terms.theorem,
            entries=entries,
            note=ready.note,
            promises=(terms.promises or {}) | {"adjacency": request.neighbours},
            more=more,
            expected=functools.partial(expected_error, mechanism, number, way),
        )
        return draft

    return draft_of
