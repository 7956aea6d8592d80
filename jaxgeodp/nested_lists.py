"""Points and numbers as a release record writes them."""

import math

import numpy as np
from numpy.typing import ArrayLike


def to_lists(point: ArrayLike) -> list:
    """Return a point as nested lists; complex numbers become pairs (real, imaginary)."""
    array = np.asarray(point)
    if np.iscomplexobj(array):
        array = np.stack([np.real(array), np.imag(array)], axis=-1)
    return array.tolist()


def from_lists(lists: list, dtype: str) -> np.ndarray:
    """Return the array that `to_lists` wrote; ``dtype`` tells whether its numbers are complex.

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
    """Return a number, or an array of numbers as lists; "infinity", which JSON does not have, as a word."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    return "infinity" if value == math.inf else value
