"""Manifolds, points and numbers as a release record writes them."""

import dataclasses
import math

import numpy as np
from jax.typing import ArrayLike

from jaxgeodp.manifolds.manifold import Manifold


def describe(manifold: Manifold) -> dict:
    """Name and parameters of a manifold."""
    fields = dataclasses.fields(manifold) if dataclasses.is_dataclass(manifold) else ()
    parameters = {field.name: _plain(getattr(manifold, field.name)) for field in fields}
    return {"name": type(manifold).__name__, **parameters}


def _plain(value):
    if isinstance(value, Manifold):
        return describe(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def to_lists(point: ArrayLike) -> list:
    """Nested lists of a point; complex numbers become pairs (real, imaginary)."""
    array = np.asarray(point)
    if np.iscomplexobj(array):
        array = np.stack([np.real(array), np.imag(array)], axis=-1)
    return array.tolist()


def from_lists(lists: list, dtype: str) -> np.ndarray:
    """The array that `to_lists` wrote; ``dtype`` tells whether its numbers are complex.

    Raises:
        ValueError: no nested lists of numbers.
    """
    array = np.asarray(lists, float)
    if not dtype.startswith("complex"):
        return array
    if array.ndim == 0 or array.shape[-1] != 2:
        raise ValueError("complex numbers are pairs")
    return array[..., 0] + 1j * array[..., 1]


def plain_number(value):
    """A number, or an array of numbers as lists; "infinity", which JSON does not have, as a word."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return "infinity" if value == math.inf else value
