"""Decorators for manifolds: facts as attributes, and jitted operations on single points."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

import jax

from jaxgeodp.checks import InputError

# Parameters of operations that hold one point or one tangent vector.
_OF_ONE_POINT = frozenset(("point", "tangent", "base", "p", "q", "u", "v", "x", "g"))

_Method = TypeVar("_Method", bound=Callable)
_Value = TypeVar("_Value")


def fact(method: Callable[[Any], _Value]) -> _Value:
    """Define a property of a manifold that type checkers treat as an attribute.

    A subclass may then give the fact in the way that is shortest: as a class attribute, as a field of a dataclass, or
    computed, by a method marked with `fact` in its turn.
    """
    return cast(_Value, property(method))


def operation(method: _Method) -> _Method:
    """Define a jitted method of a hashable manifold, with the method's signature; inlined in jitted code.

    Shapes are looked at while it is traced: arrays of many points, which broadcasting would mix up, are refused.
    """
    names = tuple(inspect.signature(method).parameters)[1:]

    @functools.wraps(method)
    def checked(self, *arrays, **named):
        for name, array in (*zip(names, arrays, strict=False), *named.items()):
            if name in _OF_ONE_POINT:
                check_shape(self, f"{method.__name__}: {name}", array)
        return method(self, *arrays, **named)

    return cast(_Method, jax.jit(checked, static_argnums=0, inline=True))


def check_shape(manifold, what: str, array) -> None:
    """Raise ValueError unless the array has the shape of one point."""
    shape = getattr(array, "shape", None)
    if shape != manifold.shape:
        got = type(array).__name__ if shape is None else shape
        raise InputError(
            f"{manifold}.{what} must be one array of shape {manifold.shape}, got {got}; use jax.vmap for many."
        )
