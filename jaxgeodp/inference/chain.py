"""Releases that follow one another about the same records, charged together (docs/mathematics.md, section 18).

All programs are compiled, and the whole is charged, before anything is drawn; what a later mechanism is about follows
from what the earlier ones have drawn.
"""

import dataclasses
from collections.abc import Callable
from fractions import Fraction

import jax
import numpy as np

from jaxgeodp.checks import InputError, epsilon_or_mu
from jaxgeodp.inference.spread import SpreadMechanism
from jaxgeodp.privacy.composition import compose
from jaxgeodp.privacy.decimals import float_below, square, written
from jaxgeodp.privacy.guarantee import GaussianDP, Guarantee, PureDP
from jaxgeodp.privacy.release import Draft
from jaxgeodp.releases.drafts import Request, drafted
from jaxgeodp.releases.record import entries_without_noise
from jaxgeodp.releases.ways import OnGrid, Way

_GRID = OnGrid()
# Of a privacy parameter: no float that is computed from it leaves the range of double precision.
_SMALLEST, _LARGEST = 1e-30, 1e30
# Of the first part of a budget, for the last digits of guarantees that add up.
_ROUNDING = Fraction(1, 10**12)


def budget_of(owner: str, epsilon: float | None, mu: float | None) -> tuple[str, float]:
    """Return the name of the privacy parameter that is given, and itself.

    Raises:
        ValueError: none is given, or both, or it is out of range.
    """
    name, given = epsilon_or_mu(owner, epsilon, mu)
    whole = PureDP(given).epsilon if name == "epsilon" else GaussianDP(given).mu
    if not _SMALLEST < whole < _LARGEST:
        raise InputError(f"{owner}: {name} must be between {_SMALLEST:g} and {_LARGEST:g}, got {whole:g}.")
    return name, whole


def split(parameter: str, whole: float, shares) -> list[float]:
    """Return the privacy parameter of each part: together at most the whole, with room for rounding a rho up.

    Args:
        parameter: "epsilon", or "mu", of which mu^2 is split.
        whole: of all parts.
        shares: in hundredths; the first part has what the others leave.
    """
    exact = Fraction(written(whole) if parameter == "epsilon" else square(written(whole)))
    power = 1 if parameter == "epsilon" else 2
    later = [float_below(exact * Fraction(share, 100), power) for share in shares[1:]]
    taken = sum(Fraction(written(own)) ** power for own in later)
    return [float_below((exact - taken) * (1 - _ROUNDING), power), *later]


def following(
    mechanism: SpreadMechanism,
    records,
    made_again: Callable[[], SpreadMechanism],
    known: Callable[[], dict],
    way: Way = _GRID,
) -> Draft:
    """Return the draft of a mechanism that is made again when its turn has come.

    Args:
        mechanism: like the one that will be made, about anything.
        records: (n, \\*shape), as `raw_records` gives them.
        made_again: makes the mechanism, from what has been drawn before.
        known: entries of the record that follow from that, should it fail.
        way: of `releases.ways`.
    """
    n, shape = len(records), _of_one(records)
    draft = drafted(Request(mechanism, way), n, shape)(lambda: records)

    def draw():
        try:
            own = drafted(Request(made_again(), way), n, shape)(lambda: records)
            value, _ = own.draw()
            return value, dataclasses.replace(draft, entries=own.entries, more=own.more, expected=None)
        except Exception:  # it would tell of the records
            return np.asarray(draft.fallback, float), _none(draft, known())

    return dataclasses.replace(draft, draw=draw, expected=None)


def together(drafts) -> Guarantee:
    """Return the composed guarantee of all drafts."""
    promised = [draft.guarantee for draft in drafts if isinstance(draft.guarantee, Guarantee)]
    assert len(promised) == len(drafts)  # as of all mechanisms here
    return compose(promised)


def _of_one(records):
    return jax.ShapeDtypeStruct(records.shape[1:], records.dtype)


def _none(draft, known) -> Draft:
    """Return the draft of a value that could not be computed, as where double precision ends."""
    nothing = "none: it could not be computed, and the public value 0 is released"
    entries = draft.entries | known | entries_without_noise(nothing, "tight")
    return dataclasses.replace(draft, entries=entries, expected=None)
