"""User-level privacy: one record per person, made of that person's records before anything is released.

Whatever function of one person's records is taken, the mechanism that follows sees one record a person, and its
theorem for neighbours in one record is one for neighbours in one person (docs/mathematics.md, section 14). A person's
record hangs on that person's records to the last bit: the same instructions are run for each one, whoever comes before
or after, and sums are made in the order of the person's records.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.compiling import compiled_in_blocks, like
from jaxgeodp.domains.domain import Domain, Summaries
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.labels import Labels, label_keys

# Steps of steepest descent at most, and how far from the mean they may end, in units of the first distance.
_MOST_STEPS, _NEAR = 100, 1e-13


def person_places(owner: str, persons: Labels, n: int) -> tuple[np.ndarray, int]:
    """Return the index of each record's person, from 0, and the number of persons.

    Args:
        owner: whom a refusal names.
        persons: (n,), a label for each record: numbers or words. All missing labels are one person.
        n: number of records.

    Raises:
        ValueError: not one label a record.
    """
    numbers: dict[Any, int] = {}
    keys = label_keys(owner, "persons", persons, n)
    places = np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), np.int64, n)
    return places, len(numbers)


def units(owner: str, domain: Domain, records: Any, persons: Labels, least: int) -> tuple[int, Callable]:
    """Return the number of persons, refusing fewer than ``least``, and a function that gives one record of each."""
    places, count = person_places(owner, persons, len(records))
    if count < least:
        raise InputError(f"{owner}: needs at least {least} persons, got {count}.")
    summaries = domain.of_persons(owner, like(records))
    return count, lambda: summaries(records, places, count)


def any_units(owner: str, domain: Domain, records: Any, persons: Labels | None) -> Callable[[], np.ndarray]:
    """Return a function that gives the records, or one of each person, however many there are."""
    records = np.asarray(records)
    if persons is None:
        return lambda: records
    places, count = person_places(owner, persons, len(records))
    summaries = domain.of_persons(owner, like(records))
    return lambda: summaries(records, places, count)


def averages(fallback: np.ndarray) -> Summaries:
    """Return a function that gives the arithmetic mean of each person's records.

    The public ``fallback`` stands for a record with a number that is not finite, and for a mean that is too large.
    """

    def means(records, places, count):
        records = np.asarray(records)
        public = np.asarray(fallback, records.dtype)
        with np.errstate(all="ignore"):
            own = _sums(np.where(_finite(records), records, public), places, count)
            found = own / _sizes(places, count, records.ndim)
            return np.where(_finite(found), found, public)

    return means


def frechet_means(owner: str, ball: GeodesicBall, shape: jax.ShapeDtypeStruct) -> Summaries:
    """Return a function that gives a point near the Frechet mean of each person's records, clipped.

    Steepest descent from the public centre, in a public number of steps. Privacy does not depend on how near it comes.

    Args:
        owner: whom a refusal names.
        ball: public.
        shape: of the records.

    Raises:
        ValueError: it cannot be computed for such records.
    """
    record = jax.ShapeDtypeStruct((1, *shape.shape[1:]), shape.dtype)
    point = jax.eval_shape(_clipped, ball, record)
    pair = jax.ShapeDtypeStruct((1, 2, *point.shape[1:]), point.dtype)
    clipped = compiled_in_blocks(owner, _clipped, ball, record)
    logs = compiled_in_blocks(owner, _logs, ball, pair)
    moved = compiled_in_blocks(owner, _moved, ball, pair)
    back = compiled_in_blocks(owner, _back, ball, point)
    start = np.asarray(ball.at_home.center, point.dtype)
    rate, steps = _descent(ball)

    def of_all(program, data):
        return np.concatenate(list(program(ball, data)))

    def means(records, places, count):
        points = of_all(clipped, np.asarray(records))
        found = np.broadcast_to(start, (count, *start.shape))
        factors = rate / _sizes(places, count, found.ndim)
        for _ in range(steps):
            sums = _sums(of_all(logs, np.stack([found[places], points], axis=1)), places, count)
            found = of_all(moved, np.stack([found, (factors * sums).astype(point.dtype)], axis=1))
        return of_all(back, found)

    return means


# One record after the other: by arrays, the last bits of a result may hang on its place among the others.


@jax.jit
def _clipped(ball, records):
    return jax.lax.map(ball.clip_to_home, records)


@jax.jit
def _logs(ball, pairs):
    """Return logarithms of second points at first ones."""
    return jax.lax.map(lambda pair: ball.manifold.log(*pair), pairs)


@jax.jit
def _moved(ball, pairs):
    """Return first points moved by second ones, which are tangent vectors; unchanged where that is no point."""
    manifold = ball.manifold

    def one(pair):
        point = manifold.project(manifold.exp(*pair))
        return jnp.where(jnp.all(jnp.isfinite(point)), point, pair[0])

    return jax.lax.map(one, pairs)


@jax.jit
def _back(ball, points):
    return jax.lax.map(ball.from_home, points)


def _descent(ball) -> tuple[float, int]:
    """Return the length of a step in units of the mean of logarithms, and how many there are."""
    least_curvature, most_curvature = ball.manifold.curvature_bounds
    below, above = (2.0 * ball.radius * math.sqrt(max(0.0, own)) for own in (-least_curvature, most_curvature))
    # Eigenvalues of the Hessian are between these (docs/mathematics.md, section 1).
    largest = below / math.tanh(below) if below > 0.0 else 1.0
    least = above / math.tan(above) if 0.0 < above < 0.5 * math.pi else float(above == 0.0)
    left = 1.0 - least / largest
    steps = _MOST_STEPS if left >= 1.0 else math.ceil(math.log(_NEAR) / math.log(max(left, _NEAR)))
    return 1.0 / largest, min(steps, _MOST_STEPS)


def _sums(values, places, count):
    """Return the sum of each person's values, one after the other."""
    total = np.zeros((count, *values.shape[1:]), values.dtype)
    np.add.at(total, places, values)
    return total


def _sizes(places, count, ndim):
    """Return how many records each person has, at least 1, with as many axes."""
    return np.maximum(np.bincount(places, minlength=count), 1).reshape(-1, *(1,) * (ndim - 1))


def _finite(records):
    """Return which records are finite, with as many axes."""
    return np.all(np.isfinite(records), axis=tuple(range(1, records.ndim)), keepdims=True)
