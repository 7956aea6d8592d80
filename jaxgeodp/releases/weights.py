"""Public weights of records: every theorem for n records holds with the largest weight in place of 1/n."""

import dataclasses
import fractions
import math
from typing import Any

import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.releases.law import Law, PointLaw


@dataclasses.dataclass(frozen=True, eq=False)
class Weights:
    """Public weights of n records.

    Attributes:
        values: (n,), with sum 1.
        count: for how many records with equal weights the sensitivity is at least as large
            (docs/mathematics.md, section 14).
    """

    values: np.ndarray
    count: int

    @property
    def largest(self) -> float:
        """Return the largest weight."""
        return float(np.max(self.values))

    @property
    def described(self) -> dict:
        """Return the entry of a release record."""
        return {"weights": {"largest": self.largest, "sensitivity_of": self.count}}

    def of(self, law: Law) -> Law:
        """Return the law, with these weights.

        Raises:
            ValueError: it is not one of points, or depends on the order of records.
        """
        if not weighs(law):
            raise InputError(
                f"{law.terms.mechanism}: weights need a law of points that does not depend on their order."
            )
        assert dataclasses.is_dataclass(law)
        return dataclasses.replace(law, weights=self.values, rows=len(self.values))


def weighs(law: Law) -> bool:
    """Return whether a law can have weights: it is one of points, and does not depend on the order of records."""
    return isinstance(law, PointLaw) and dataclasses.is_dataclass(law) and not law.order_matters


def checked_weights(owner: str, weights: Any, n: int) -> Weights:
    """Return the weights of n records, checked before anything is charged.

    Args:
        owner: whom a refusal names.
        weights: (n,), positive.
        n: number of records.

    Raises:
        ValueError: not n positive numbers, or one of them is more than half of all.
    """
    try:
        values = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (n,) or not np.all(np.isfinite(values) & (values > 0.0)):
        found = f", {n} in all; got {len(values)}" if values.ndim == 1 and len(values) not in (0, n) else ""
        header = ", without a header" if owner.startswith("--") else ""
        raise InputError(f"{owner}: weights must be one finite number above zero for each record{header}{found}.")
    largest = np.max(values)
    shares = values / largest  # the sum of which is not too large
    count = _times(values, largest, math.floor(math.fsum(shares)) + 1)
    if count < 2:
        raise InputError(
            f"{owner}: one of the weights is more than half of their sum, so the mean would disclose that record; "
            "choose more equal weights."
        )
    return Weights(shares / math.fsum(shares), count)


def _times(values, largest, most: int) -> int:
    """Return how many times, at most ``most``, the largest goes into the sum of values: exactly, rounded down."""
    scaled = np.ldexp(values, -np.frexp(largest)[1]).tolist()  # the sum of which is not too large; `fsum` is exact
    one = max(scaled)

    def below(count):
        product = fractions.Fraction(one) * count  # a sum of two floats
        first = float(product)
        return math.fsum([*scaled, -first, -float(product - fractions.Fraction(first))]) < 0.0

    return next(count for count in range(most, 0, -1) if count == 1 or not below(count))
