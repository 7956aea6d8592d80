"""Public domains of records, chosen without looking at them."""

import abc
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxgeodp.checks import InputError

#: Of the records (n, \\*shape), the person of each, from 0, (n,), and their number: one record a person, NumPy's.
Summaries = Callable[[Any, np.ndarray, int], np.ndarray]


class Domain(abc.ABC):
    """The public set that a mechanism's records are brought into, each on its own."""

    has_summaries: Any = False  #: whether `of_persons` is known
    knows_shape: Any = True  #: whether it says of what shape a record is; else an array must

    @abc.abstractmethod
    def records(self, owner: str, data) -> jax.Array:
        """Return raw data as an inexact array (n, \\*shape of a record); only shape and type are checked.

        Args:
            owner: whom a refusal names.
            data: anything array-like.

        Raises:
            ValueError: another shape or kind of data.
        """

    def of_persons(self, owner: str, shape: jax.ShapeDtypeStruct) -> Summaries:
        """Return a function that makes one record per person, of that person's records alone; it never fails.

        All that can be refused is refused here, and all is compiled; no record is seen. What a person's record is
        depends on no other person's records, not even in its last bits.

        Args:
            owner: whom a refusal names.
            shape: of the records; their number does not matter.

        Raises:
            ValueError: no such summary is known for these records.
        """
        raise InputError(
            f"{owner}: cannot combine the records of one person into one, so persons= is not supported; leave it out."
        )

    @abc.abstractmethod
    def described(self, shape: tuple[int, ...]) -> dict[str, dict]:
        """Return the entries "manifold" and "ball" of a release record, for records of this shape."""

    @abc.abstractmethod
    def fallback(self, shape: tuple[int, ...]) -> np.ndarray:
        """Return a public record of this shape, released in place of no value unless there is a `Law.fallback`."""
