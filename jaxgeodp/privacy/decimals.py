"""Parameters of guarantees as the numbers that were written, in exact arithmetic (docs/ledger.md, "0.1 is one tenth").

A float stands for d(x), the shortest decimal that reads back as it: what people type, what records and ledgers hold.
Decimals, their sums, squares and halves are finite decimals, computed with all their digits. A result becomes a float
only at the end, the next one on the safe side.
"""

import decimal
import math
from decimal import Decimal
from fractions import Fraction

# Squares of the largest and of the smallest float are 1,300 digits apart.
_EXACT = decimal.Context(prec=4000, traps=[decimal.Inexact, decimal.InvalidOperation, decimal.Overflow])


def written(number: float) -> Decimal:
    """Return the shortest decimal that reads back as this float."""
    return Decimal(repr(float(number)))


def add(first: Decimal, second: Decimal, times: int = 1) -> Decimal:
    """Return first + times * second, exactly."""
    return _EXACT.fma(second, Decimal(times), first)


def product(first: Decimal, second: Decimal) -> Decimal:
    """Return first * second, exactly."""
    return _EXACT.multiply(first, second)


def square(number: Decimal) -> Decimal:
    """Return the square, exactly."""
    return product(number, number)


def half(number: Decimal) -> Decimal:
    """Return the half, exactly."""
    return product(number, Decimal("0.5"))


def float_above(exact: Decimal | Fraction, power: int = 1) -> float:
    """Return the smallest float whose power (1 or 2), as written, is at least this; infinite beyond the largest.

    Example:
        >>> float_above(add(written(0.1), written(0.2)))
        0.3
    """
    return _next(exact, power, math.inf)


def float_below(exact: Decimal | Fraction, power: int = 1) -> float:
    """Return the largest float whose power (1 or 2), as written, is at most this."""
    return _next(exact, power, -math.inf)


def _next(exact, power, outwards):
    def fits(x):
        value = written(x) if power == 1 else square(written(x))
        return value >= exact if outwards > 0 else value <= exact

    with decimal.localcontext(prec=40):
        number = float(exact)
        if power == 2:
            number = math.sqrt(number) if isinstance(exact, Fraction) else float(exact.sqrt())
    while not fits(number):
        number = math.nextafter(number, outwards)
    while (closer := math.nextafter(number, -outwards)) >= 0 and fits(closer):
        number = closer
    return number
