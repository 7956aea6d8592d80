"""Control flow of a search: which question follows from the earlier answers, whoever answers them.

A question is public: it follows from the schedule and from what was released. What is asked of the records are
integers that add up, or a draw; the answer is what is released of them.
"""

import math
from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np

from jaxgeodp.compiling import compiled_in_blocks
from jaxgeodp.locating.parts import Part, distances, joined, origin_of, whole
from jaxgeodp.locating.schedule import Schedule
from jaxgeodp.manifolds import Manifold
from jaxgeodp.privacy import grid
from jaxgeodp.samplers.above_threshold import first_above

# Of a stage in the record.
_NOISE = "discrete_laplace, on counts"


class Radius(NamedTuple):
    """Question how far the records reach about a centre; the answer is a radius.

    Attributes:
        part, center: where.
        radii: ascending, one of which is the answer.
        threshold: approximate number of records that the radius should hold.
        scale: of the noise of counts and threshold.
        last: radius of the ball that the centre was found in.
    """

    part: Part
    center: Any
    radii: list[float]
    threshold: int
    scale: int
    last: float

    def answer(self, counts) -> float:
        """Return the released radius, given the number of records within each radius."""
        fired = grid.in_secret(first_above, list(counts), self.threshold, self.scale)
        return self.radii[int(place_of(np, fired, self.radii, self.last))]

    def entry(self, radius: float) -> dict:
        """Return the release-record entry of this stage."""
        return {"radius": radius, "scale": self.scale, "noise": _NOISE}


class Middle(NamedTuple):
    """Question where the middle of the records in a ball is; the answer is a point of the part.

    Attributes:
        place, round: index of the part and of the round, from 0.
        center, radius: the ball.
    """

    place: int
    round: int
    center: Any
    radius: float


class Ball(NamedTuple):
    """Ball that a search has found."""

    center: np.ndarray
    radius: float


Walk = Generator[Radius | Middle, Any, Ball]


def walk(manifold: Manifold, schedule: Schedule, last_radii: list[float], n: int) -> Walk:
    """Yield the questions of a search; receive the answer to each; return the ball.

    Args:
        manifold: of the records.
        schedule: public numbers.
        last_radii: candidate radii of the ball, ascending.
        n: number of records.
    """
    centers, reaches = [], []
    for place, part in enumerate(schedule.parts):
        center, radius = np.asarray(origin_of(part)), math.inf
        for turn in range(schedule.rounds if part.open else 1):
            if part.open:
                threshold, radii = n - schedule.left_out[0], schedule.radii(place)
                radius = yield Radius(part, center, radii, threshold, schedule.counts, radius)
            center = yield Middle(place, turn, center, radius)
        centers.append(center)
        reaches.append(radius)
    center = np.asarray(joined(schedule.parts, centers))
    threshold, last = n - schedule.left_out[1], math.hypot(*reaches)
    radius = yield Radius(whole(manifold), center, last_radii, threshold, schedule.last_counts, last)
    return Ball(center, radius)


def counts_of(name: str, part: Part, shape):
    """Return a compiled function that counts the records within each radius; invalid records count in none."""
    lengths_of = compiled_in_blocks(name, distances, part, origin_of(part), shape)

    def counts(center, records, radii) -> list[int]:
        found = np.zeros(len(radii) + 1, np.int64)
        for lengths in lengths_of(center, records):
            buckets = np.searchsorted(np.asarray(radii), lengths, side="left")
            found += np.bincount(np.minimum(buckets, len(radii)), minlength=len(radii) + 1)
        return np.cumsum(found)[: len(radii)].tolist()

    return counts


def place_of(module, fired, radii, last):
    """Return the index of the released radius, given the index of the first noisy count above the noisy threshold.

    It is at most twice the last radius: a centre found in the last ball is no farther from the records in it.

    Args:
        module: NumPy, or JAX's.
        fired: index of the first.
        radii: ascending.
        last: see `Radius`.
    """
    most = module.searchsorted(module.asarray(radii), 2.0 * last * (1.0 + 1e-9), side="right") - 1
    return module.clip(fired, 0, module.clip(most, 0, len(radii) - 1))
