"""Costs of releases against a budget, in exact decimal arithmetic (docs/ledger.md).

A parameter counts as the number that was written (`privacy.decimals`), in ledgers and in `compose` alike.
"""

import dataclasses
from collections.abc import Iterable
from decimal import Decimal

from jaxgeodp.checks import InputError
from jaxgeodp.privacy.decimals import add, float_above, float_below, half, square, written
from jaxgeodp.privacy.guarantee import (
    KINDS,
    ApproximateDP,
    GaussianDP,
    Guarantee,
    NotProven,
    PureDP,
    ZeroConcentratedDP,
)

Amounts = tuple[Decimal, ...]
_TAKES_BOTH = " A budget in rho (ZeroConcentratedDP; 'jaxgeodp ledger init --rho') takes this, and mu and epsilon, too."
Kind = type[Guarantee]


def check_budget(budget) -> None:
    """Raise ValueError unless ``budget`` is a guarantee that can be spent."""
    if type(budget) not in KINDS.values():
        raise InputError(f"Ledger: budget must be PureDP, ApproximateDP, GaussianDP or zCDP, got {budget!r}.")


def charge_of(budget: Guarantee, guarantee: Guarantee | NotProven) -> Amounts:
    """Return the cost of a release with this guarantee against this budget; see `amounts`.

    Raises:
        ValueError: nothing is promised, or no conversion into the budget's kind is declared.
    """
    if isinstance(guarantee, NotProven) or type(guarantee) not in KINDS.values():
        raise InputError(
            "Ledger: this release has no proven guarantee, so it cannot be charged; use another calibration or "
            "mechanism."
        )
    if (type(budget), type(guarantee)) not in _CONVERSIONS:
        allowed = ", ".join(given.__name__ for kind, given in _CONVERSIONS if kind is type(budget))
        raise InputError(
            f"Ledger: {guarantee} cannot be charged to the budget {budget}, which takes {allowed}; no other "
            f"conversions are made.{_TAKES_BOTH if isinstance(guarantee, ZeroConcentratedDP) else ''}"
        )
    return amounts(type(budget), guarantee)


def amounts(kind: Kind, guarantee: Guarantee) -> Amounts:
    """Return a guarantee as numbers that add up: (epsilon,), (epsilon, delta), (mu^2,) or (rho,), by the budget.

    Args:
        kind: of the budget; a conversion into it must be declared.
        guarantee: of a release.

    Example:
        >>> from jaxgeodp.privacy import PureDP, ZeroConcentratedDP
        >>> amounts(ZeroConcentratedDP, PureDP(0.1))
        (Decimal('0.005'),)
    """
    return _CONVERSIONS[kind, type(guarantee)](guarantee)


def total(kind: Kind, costs: Iterable[tuple[Amounts, int]]) -> Amounts:
    """Return the sum of amounts, each times its count."""
    result = (Decimal(0),) * len(dataclasses.fields(kind))
    for cost, count in costs:
        result = tuple(add(so_far, part, count) for so_far, part in zip(result, cost, strict=True))
    return result


def remainder(budget: Guarantee, spent: Amounts) -> Amounts:
    """Return what is left of a budget."""
    whole = amounts(type(budget), budget)
    return tuple(max(Decimal(0), add(part, gone, -1)) for part, gone in zip(whole, spent, strict=True))


def fits(cost: Amounts, left: Amounts) -> bool:
    """Return whether a cost is at most what is left, exactly."""
    return all(part <= room for part, room in zip(cost, left, strict=True))


def parameters(kind: Kind, parts: Amounts, up: bool) -> dict[str, float]:
    """Return amounts as parameters of a kind, rounded to floats up or down."""
    names = [field.name for field in dataclasses.fields(kind)]
    towards, power = float_above if up else float_below, 2 if kind is GaussianDP else 1
    return {name: towards(part, power) for name, part in zip(names, parts, strict=True)}


def describe_amounts(kind: Kind, parts: Amounts, up: bool) -> str:
    """Return amounts in words, such as "epsilon = 0.3"."""
    return ", ".join(f"{name} = {number!r}" for name, number in parameters(kind, parts, up).items())


_CONVERSIONS = {
    (PureDP, PureDP): lambda g: (written(g.epsilon),),
    (ApproximateDP, PureDP): lambda g: (written(g.epsilon), Decimal(0)),
    (ApproximateDP, ApproximateDP): lambda g: (written(g.epsilon), written(g.delta)),
    (GaussianDP, GaussianDP): lambda g: (square(written(g.mu)),),
    (GaussianDP, PureDP): lambda g: (square(written(g.to_gdp().mu)),),
    (ZeroConcentratedDP, ZeroConcentratedDP): lambda g: (written(g.rho),),
    (ZeroConcentratedDP, PureDP): lambda g: (half(square(written(g.epsilon))),),
    (ZeroConcentratedDP, GaussianDP): lambda g: (half(square(written(g.mu))),),
}
