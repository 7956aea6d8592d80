"""What a release takes from a budget, in exact decimal arithmetic: which guarantee counts as what (docs/ledger.md).

A parameter counts as the number that was written: the shortest decimal that reads back as the same float. Decimals,
their sums, squares and halves are finite decimals, so that nothing is ever rounded.
"""

import dataclasses
import decimal
import math
from collections.abc import Iterable
from decimal import Decimal

from jaxgeodp.checks import InputError
from jaxgeodp.privacy.guarantee import (
    KINDS,
    ApproximateDP,
    GaussianDP,
    Guarantee,
    NotProven,
    PureDP,
    ZeroConcentratedDP,
)

# Squares of the largest and of the smallest float are 1,300 digits apart.
_EXACT = decimal.Context(prec=4000, traps=[decimal.Inexact, decimal.InvalidOperation, decimal.Overflow])
# More than scipy's error in the conversion from epsilon to mu.
_ROUNDED_UP = 1.0 + 1e-12

Amounts = tuple[Decimal, ...]


def check_budget(budget) -> None:
    """Raise ValueError unless it is something that can be spent."""
    if type(budget) not in KINDS.values():
        raise InputError(f"Ledger: budget must be PureDP, ApproximateDP, GaussianDP or zCDP, got {budget!r}.")


def amounts(budget: Guarantee, guarantee: Guarantee | NotProven) -> Amounts:
    """What a release with this guarantee takes from this budget, in numbers that add up.

    (epsilon,) of pure budgets, (epsilon, delta) of approximate ones, (mu^2,) of Gaussian ones, (rho,) of zCDP ones.

    Raises:
        ValueError: nothing is promised, or no conversion into the budget's kind is declared.

    Example:
        >>> from jaxgeodp.privacy import PureDP, ZeroConcentratedDP
        >>> amounts(ZeroConcentratedDP(1.0), PureDP(0.1))
        (Decimal('0.005'),)
    """
    if type(guarantee) not in KINDS.values():
        raise InputError("Ledger: this release promises nothing that is proven, so nothing can be charged for it.")
    convert = _CONVERSIONS.get((type(budget), type(guarantee)))
    if convert is None:
        allowed = ", ".join(given.__name__ for kind, given in _CONVERSIONS if kind is type(budget))
        raise InputError(
            f"Ledger: {guarantee} cannot be charged to the budget {budget}, which takes {allowed}; other conversions "
            "are not declared."
        )
    return convert(guarantee)


def total(costs: Iterable[tuple[Amounts, int]], budget: Guarantee) -> Amounts:
    """The sum of amounts, each counted so many times."""
    result = (Decimal(0),) * len(amounts(budget, budget))
    for cost, count in costs:
        result = tuple(_EXACT.fma(part, Decimal(count), so_far) for part, so_far in zip(cost, result, strict=True))
    return result


def remainder(budget: Guarantee, spent: Amounts) -> Amounts:
    """What is left of a budget."""
    return tuple(max(Decimal(0), part) for part in map(_EXACT.subtract, amounts(budget, budget), spent))


def fits(cost: Amounts, left: Amounts) -> bool:
    """Whether so much is left, exactly."""
    return all(part <= room for part, room in zip(cost, left, strict=True))


def parameters(budget: Guarantee, parts: Amounts, up: bool) -> dict[str, float]:
    """Amounts as parameters of the budget's kind: the floats next to them, below or above."""
    names = [field.name for field in dataclasses.fields(budget)]
    power = 2 if isinstance(budget, GaussianDP) else 1
    return {name: _nearest(part, power, up) for name, part in zip(names, parts, strict=True)}


def describe_amounts(budget: Guarantee, parts: Amounts, up: bool) -> str:
    """For people: "epsilon = 0.3"."""
    return ", ".join(f"{name} = {number!r}" for name, number in parameters(budget, parts, up).items())


def written(number: float) -> Decimal:
    """The shortest decimal that reads back as this float."""
    return Decimal(repr(number))


def _nearest(part: Decimal, power: int, up: bool) -> float:
    """The smallest float whose power, as written, is at least ``part``; or the largest whose is at most that."""
    with decimal.localcontext(prec=40):
        number = float(part.sqrt() if power == 2 else part)

    def fit(x):
        return _power(written(x), power) >= part if up else _power(written(x), power) <= part

    outwards = math.inf if up else -math.inf
    while not fit(number):
        number = math.nextafter(number, outwards)
    while (closer := math.nextafter(number, -outwards)) >= 0 and fit(closer):
        number = closer
    return number


def _power(x: Decimal, power: int) -> Decimal:
    return _EXACT.multiply(x, x) if power == 2 else x


def _square(x: float) -> Decimal:
    return _power(written(x), 2)


def _half_square(x: float) -> Decimal:
    return _EXACT.multiply(_square(x), Decimal("0.5"))


def _mu_above(guarantee: PureDP) -> float:
    return math.nextafter(guarantee.to_gdp().mu * _ROUNDED_UP, math.inf)


_CONVERSIONS = {
    (PureDP, PureDP): lambda g: (written(g.epsilon),),
    (ApproximateDP, PureDP): lambda g: (written(g.epsilon), Decimal(0)),
    (ApproximateDP, ApproximateDP): lambda g: (written(g.epsilon), written(g.delta)),
    (GaussianDP, GaussianDP): lambda g: (_square(g.mu),),
    (GaussianDP, PureDP): lambda g: (_square(_mu_above(g)),),
    (ZeroConcentratedDP, ZeroConcentratedDP): lambda g: (written(g.rho),),
    (ZeroConcentratedDP, PureDP): lambda g: (_half_square(g.epsilon),),
    (ZeroConcentratedDP, GaussianDP): lambda g: (_half_square(g.mu),),
}
