"""Checks of public parameters: one clear sentence each."""

import math
import numbers
import operator


class InputError(ValueError):
    """A wrong call: one sentence that says what, where and what to do, and holds no private value.

    The command line prints the text of these errors and of no others.
    """


def positive_integer(owner: str, name: str, value, minimum: int) -> None:
    """Raise ValueError unless ``value`` is an integer of at least ``minimum``."""
    try:
        valid = operator.index(value) >= minimum and not isinstance(value, bool)
    except TypeError:
        valid = False
    if not valid:
        raise InputError(f"{owner}: {name} must be an integer of at least {minimum}, got {short(value)}.")


def random_key(owner: str, key) -> None:
    """Raise ValueError unless ``key`` is a random key of JAX, of either kind."""
    kind = str(getattr(key, "dtype", ""))
    if not (kind.startswith("key<") or (kind == "uint32" and getattr(key, "ndim", 0) == 1)):
        raise InputError(f"{owner}: key must be a random key such as jax.random.key(0), got {short(key)}.")


def positive_number(owner: str, name: str, value) -> None:
    """Raise ValueError unless ``value`` is a finite number above 0."""
    if not _as_float(value) > 0:
        raise InputError(f"{owner}: {name} must be a finite number above 0, got {short(value)}.")


def number_between(owner: str, name: str, value, least: float, most: float) -> float:
    """Return a real number from ``least`` to ``most`` as a Python float, whatever kind of number is given.

    Raises:
        ValueError: it is none.
    """
    number = _as_float(value)
    if not least <= number <= most:
        raise InputError(f"{owner}: {name} must be a number from {least:g} to {most:g}, got {short(value)}.")
    return number


def negative_number(owner: str, name: str, value) -> None:
    """Raise ValueError unless ``value`` is a finite number below 0."""
    if not _as_float(value) < 0:
        raise InputError(f"{owner}: {name} must be a finite number below 0, got {short(value)}.")


def epsilon_or_mu(owner: str, epsilon: float | None, mu: float | None) -> tuple[str, float]:
    """Return the name of the privacy parameter that is given, and what was given, which is not checked.

    Raises:
        ValueError: none is given, or both.
    """
    given = [(name, value) for name, value in (("epsilon", epsilon), ("mu", mu)) if value is not None]
    if len(given) != 1:
        raise InputError(f"{owner}: give {'either epsilon or mu, not both' if given else 'epsilon or mu'}.")
    return given[0]


def not_in_a_program(what: str) -> InputError:
    """Return the error for numbers that are not known while a program is traced."""
    return InputError(
        f"{what} is not known inside jit, vmap or grad: create the ball and the mechanism outside, and pass "
        "`mechanism.law(n)` to the compiled function."
    )


def short(value) -> str:
    """Return a public value for a message; Python refuses to write integers of thousands of digits."""
    try:
        text = repr(value)
    except ValueError:
        return "an integer of thousands of digits"
    return text if len(text) <= 60 else f"{text[:60]}..."


def printable(text) -> str:
    """Return text as one line that is seen as it is: characters that are not printed are written as their codes.

    Those of control could steer a terminal, and others turn the order of letters around. Files may hold any of them.
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def _as_float(value) -> float:
    """Return the value as a float; NaN for what is not one finite number."""
    if isinstance(value, bool) or not (isinstance(value, numbers.Real) or _is_numeric_scalar(value)):
        return math.nan
    try:
        number = float(value)
    except OverflowError:  # an integer of hundreds of digits
        return math.nan
    except TypeError:  # JAX's, of a number that is traced
        raise not_in_a_program("a number that is checked in Python") from None
    return number if math.isfinite(number) else math.nan


def _is_numeric_scalar(value) -> bool:
    return getattr(value, "shape", None) == () and getattr(value.dtype, "kind", "") in "fiu"


def many(shape: tuple[int, ...]) -> str:
    """Return the shape of records, for messages: how many there are may be private."""
    return f"({', '.join(['n', *map(str, shape[1:])])}{',' if len(shape) == 1 else ''})" if shape else "()"
