"""Releases in integers: a sum over the records, exact noise, and what follows from the noisy sum.

Only the sum sees records. Integers add up in any order, so that it may be made block by block, anywhere
(docs/mathematics.md, Theorem N).
"""

import abc
from collections.abc import Callable
from typing import Any, NamedTuple, final

import jax
import numpy as np

from jaxgeodp.releases.law import Ready, Terms

#: The integers of records, an array of Python's integers of any size.
SumsOf = Callable[[Any], np.ndarray]


class Sums(abc.ABC):
    """Map from records to integers that add up over blocks, whatever n is.

    Attributes:
        largest: no integer of a record is larger in absolute value.
    """

    largest: Any

    @abc.abstractmethod
    def shape(self, record: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the integers, for records of this shape."""

    @abc.abstractmethod
    def program(self, shape: jax.ShapeDtypeStruct) -> SumsOf:
        """Return a compiled function from private records (n, \\*shape of one), n at least 0, to their integers.

        Raises:
            ValueError: it cannot be computed for such records.
        """


class Noisy(NamedTuple):
    """Noise and post-processing of integers, checked: only the ledger can still refuse."""

    terms: Terms
    scale: Any
    note: str  #: on numerics, for the record
    value: Callable[[np.ndarray], Any]  #: noise and post-processing; compiled


class Integers(abc.ABC):
    """Release of a law in integers, which do not depend on the order of the records; see `Law.grid`."""

    @abc.abstractmethod
    def sums(self, shape: jax.ShapeDtypeStruct) -> SumsOf:
        """Return the function that maps private records to integers, which need not add up without `Sums`."""

    @abc.abstractmethod
    def noisy(self, shape: tuple[int, ...]) -> Noisy:
        """Return the noise and post-processing for n records of this shape each.

        Raises:
            ValueError: the law cannot be released in integers, or not for these numbers.
        """

    @final
    def __call__(self, shape: jax.ShapeDtypeStruct) -> Ready:
        """Return the release for records of this shape, (n, \\*shape of one)."""
        noisy, sums = self.noisy(shape.shape[1:]), self.sums(shape)
        return Ready(noisy.terms, noisy.scale, noisy.note, lambda records: noisy.value(sums(records)), False)
