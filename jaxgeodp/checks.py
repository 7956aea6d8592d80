"""Checks of public parameters: one clear sentence each."""

import math
import numbers
import operator


def positive_integer(owner: str, name: str, value, minimum: int) -> None:
    """Raise ValueError unless ``value`` is an integer of at least ``minimum``."""
    try:
        valid = operator.index(value) >= minimum and not isinstance(value, bool)
    except TypeError:
        valid = False
    if not valid:
        raise ValueError(f"{owner}: {name} must be an integer of at least {minimum}, got {value!r}.")


def positive_number(owner: str, name: str, value) -> None:
    """Raise ValueError unless ``value`` is a finite number above 0."""
    scalar = isinstance(value, numbers.Real) or getattr(value, "shape", None) == ()
    number = float(value) if scalar and not isinstance(value, bool) else math.nan
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{owner}: {name} must be a finite number above 0, got {value!r}.")
