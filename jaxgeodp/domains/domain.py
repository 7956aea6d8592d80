"""What is public about where records lie; chosen without looking at them."""

import abc

import jax
import numpy as np


class Domain(abc.ABC):
    """The public set that a mechanism's records are brought into, each on its own."""

    @abc.abstractmethod
    def records(self, owner: str, data) -> jax.Array:
        """Raw data as an inexact array (n, \\*shape of a record); only shape and type are looked at.

        Args:
            owner: whom a refusal names.
            data: anything array-like.

        Raises:
            ValueError: another shape or kind of data, or fewer than two records.
        """

    @abc.abstractmethod
    def of_persons(self, owner: str, records: jax.Array, places: np.ndarray, count: int) -> jax.Array:
        """One record a person, which depends on that person's records alone: (count, \\*shape of a record).

        Args:
            owner: whom a refusal names.
            records: what `records` gives.
            places: (n,), the person of each record, from 0.
            count: how many persons there are.

        Raises:
            ValueError: no such summary is known for these records.
        """

    @abc.abstractmethod
    def described(self, shape: tuple[int, ...]) -> dict[str, dict]:
        """The entries "manifold" and "ball" of a release record, for records of this shape."""

    @abc.abstractmethod
    def fallback(self, shape: tuple[int, ...]) -> np.ndarray:
        """A public value, which is released where none could be computed, for records of this shape."""
