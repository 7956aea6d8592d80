"""Regions and tests of released means, by a reader of their records."""

import numpy as np

from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.inference.description import Description, level_between
from jaxgeodp.inference.regions import DRAWS, HIGHEST, ConfidenceBall, TwoSampleTest, ball_of, compare
from jaxgeodp.manifolds.names import manifold_of
from jaxgeodp.privacy.release import Release
from jaxgeodp.units import several, unit_of

_STATISTICS = {"FrechetMean": "Frechet mean", "FrechetMedian": "Frechet median"}


def confidence_ball(released: Description | Release, level: float = 0.95) -> ConfidenceBall:
    """Return an approximate confidence ball about a released value; post-processing.

    For a description it covers the mean of the population, clipped to the ball: the noise of the release and that of
    the sample count (a parametric bootstrap; its coverage is measured, not proven: docs/inference.md). For a single
    release it covers that release's statistic of the clipped records, as its record names it: only the noise counts. A
    mean of logarithms can lie far from the Frechet mean where space is curved and records lie far from the centre.

    Args:
        released: what `describe` gave, or a release.
        level: in (0, 1), of a description at most .9995 (2000 replicates); of a single release .95, which its record
            states.

    Returns:
        The ball, whose ``target`` says what it covers.

    Raises:
        ValueError: the level is out of range, or the record does not state its expected error.
    """
    level = level_between("confidence_ball", level)
    if isinstance(released, Description):
        if level > HIGHEST:
            raise InputError(f"confidence_ball: level must be at most {HIGHEST:.4f}, as there are {DRAWS} replicates.")
        return ball_of(released.population, released.procedure, level)
    if not isinstance(released, Release):
        raise InputError(f"confidence_ball: needs a Description or a Release, got {type(released).__name__}.")
    try:
        stated = released.expected_error
    except InputError:
        raise InputError(
            f"confidence_ball: the error of this release of {released.record['mechanism']} is neither in its record "
            "nor can it be simulated: the release was loaded, or has a ball found privately, a private number of "
            "records, a shape, steps, a shrunk value or another statistic; give it as it was made, or all of a "
            "description."
        ) from None
    if level != stated.level:
        raise InputError(
            f"confidence_ball: a single release states its error at level {stated.level:g} only, got {level:g}; "
            "give that level."
        )
    manifold = manifold_of(released.record["manifold"])
    statistic = str(released.record["statistic"])
    whose = "records" if (unit := unit_of(released.record)) == "record" else f"{several(unit)} (one point each)"
    weighted = "weighted " if "weights" in released.record else ""
    target = f"the {weighted}{_STATISTICS.get(statistic, statistic)} of the clipped {whose}"
    return ConfidenceBall(manifold, np.asarray(released.value), stated.radius, level, target)


def two_sample_test(first: Description, second: Description, draws: int = DRAWS) -> TwoSampleTest:
    """Test whether two populations have the same mean; post-processing.

    Both fitted laws are carried to a common mean. Releases of data drawn from them show how far apart two releases
    are if the means are equal.

    Args:
        first, second: what `describe` gave for the two.
        draws: replicates, at least 1; the smallest p value is 1/(1 + draws).

    Raises:
        ValueError: they are one description, or on different manifolds, the spread of one could not be computed when
            it was released, or ``draws`` is out of range.
    """
    positive_integer("two_sample_test", "draws", draws, minimum=1)
    for own in (first, second):
        if not isinstance(own, Description):
            raise InputError(f"two_sample_test: needs two descriptions made by describe, got {type(own).__name__}.")
    if first.public["records"] == second.public["records"]:
        raise InputError("two_sample_test: both arguments are the same description; give two, of different people.")
    if first.manifold.whole != second.manifold.whole:
        raise InputError(
            f"two_sample_test: both descriptions must be on one manifold, got {first.manifold} and {second.manifold}."
        )
    return compare(*((own.population, own.procedure) for own in (first, second)), draws=int(draws))
