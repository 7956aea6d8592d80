"""Frozen dataclasses as pytrees that are rebuilt without their checks, so that JAX may rebuild them around tracers.

Those without checks need no base: `jax.tree_util.register_dataclass` rebuilds them by their constructor.
"""

import dataclasses
import functools
from typing import Any, ClassVar

import jax


class Pytree:
    """Every subclass, a frozen dataclass, is a pytree: programs serve all values of its leaves, the rest is static.

    ``class Circle(Pytree, leaves=("center",))`` names the fields that are leaves, for its subclasses, too; where
    nothing is named all fields are. Leaves are in the order of the fields. Fields named by ``outside`` are no part of
    programs, and cause no compilation: what is rebuilt has None in their place.

    Example:
        >>> import dataclasses, jax
        >>> from jaxgeodp.pytrees import Pytree
        >>> @dataclasses.dataclass(frozen=True)
        ... class Circle(Pytree, leaves=("center",)):
        ...     name: str
        ...     center: float
        >>> jax.tree.map(lambda leaf: leaf + 1.0, Circle("a", 2.0))
        Circle(name='a', center=3.0)
    """

    _leaves: ClassVar[tuple[str, ...] | None] = None
    _outside: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, leaves: tuple[str, ...] | None = None, outside: tuple[str, ...] = (), **options: Any):
        super().__init_subclass__(**options)
        if leaves is not None:
            cls._leaves = leaves
        if outside:
            cls._outside = outside
        jax.tree_util.register_pytree_node(cls, _flattened, functools.partial(_rebuilt, cls))


@functools.cache
def _names(kind) -> tuple[list[str], list[str]]:
    """Return the names of the leaves, and of the rest."""
    names = [field.name for field in dataclasses.fields(kind) if field.name not in kind._outside]
    leaves = names if kind._leaves is None else [name for name in names if name in kind._leaves]
    return leaves, [name for name in names if name not in leaves]


def _flattened(node):
    leaves, static = _names(type(node))
    return tuple([getattr(node, name) for name in leaves]), tuple([getattr(node, name) for name in static])


def _rebuilt(kind, static, leaves):
    node = object.__new__(kind)
    for names, values in zip(_names(kind), (leaves, static), strict=True):
        for name, value in zip(names, values, strict=True):
            object.__setattr__(node, name, value)
    for name in kind._outside:
        object.__setattr__(node, name, None)
    return node
