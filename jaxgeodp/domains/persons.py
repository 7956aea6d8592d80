"""User-level privacy: one record per person, made of that person's records before anything is released.

Whatever function of one person's records is taken, the mechanism that follows sees one record a person, and its
theorem for neighbours in one record is one for neighbours in one person (docs/mathematics.md, section 14). A person's
record hangs on that person's records to the last bit: the same instructions are run for each one, whoever comes before
or after, and sums are made in the order of the person's records.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.blocks import padded, rows_at_once
from jaxgeodp.checks import InputError
from jaxgeodp.compiling import compiled_ahead, like, refused_in_words
from jaxgeodp.domains.domain import Domain, Summaries
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.labels import Labels, as_person, label_keys

# Steps of steepest descent at most, and how far from the mean they may end, in units of the first distance.
_MOST_STEPS, _NEAR = 100, 1e-13
# For `compiled_ahead`: these programs run in each step.
_OFTEN = 10**6


def person_places(owner: str, persons: Labels, n: int) -> tuple[np.ndarray, int]:
    """Return the index of each record's person, from 0, and the number of persons.

    Args:
        owner: whom a refusal names.
        persons: (n,), a label for each record: numbers or words without blanks around, a number in text being that
            number. All missing labels are one person.
        n: number of records.

    Raises:
        ValueError: not one label a record.
    """
    numbers: dict[Any, int] = {}
    keys = map(as_person, label_keys(owner, "persons", persons, n))
    places = np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), np.int64, n)
    return places, len(numbers)


def units(owner: str, domain: Domain, records: Any, persons: Labels, least: int) -> tuple[int, Callable]:
    """Return the number of persons, refusing fewer than ``least``, and a function that gives one record of each."""
    places, count = person_places(owner, persons, len(records))
    if count < least:
        raise InputError(
            f"{owner}: needs at least {least} persons, got {count}; all records without a label, or with one that is "
            "neither a number nor a word, are one person."
        )
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
            own = _sums([np.where(_finite(records), records, public)], places, count, records[:1].sum(axis=0))
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
    record = jax.ShapeDtypeStruct(shape.shape[1:], shape.dtype)
    with refused_in_words(owner):
        point = jax.eval_shape(_clipped, ball, record)
    start = np.asarray(ball.at_home.center, point.dtype)
    clipped = _one_by_one(owner, _clipped, ball, record)
    logs = _one_by_one(owner, _log, ball, point, point)
    moved = _one_by_one(owner, _moved, ball, point, point)
    back = _one_by_one(owner, _back, ball, point)
    length, steps = _descent(ball)

    def means(records, places, count):
        points = np.concatenate(list(clipped(np.asarray(records))))
        found = np.broadcast_to(start, (count, *start.shape))
        factors = length / _sizes(places, count, found.ndim)
        for _ in range(steps):
            sums = _sums(logs(found[places], points), places, count, point)
            with np.errstate(all="ignore"):  # a warning would speak of the data
                found = np.concatenate(list(moved(found, (factors * sums).astype(point.dtype))))
        return np.concatenate(list(back(found)))

    return means


def _one_by_one(owner, function, ball, *arguments):
    """Compile a function of the ball and of one of each argument; return one of arrays, which yields blocks of results.

    Blocks have one shape, and in them a loop runs the same instructions for one after the other, as often as there are:
    by arrays, the last bits of a result may hang on its place among the others.

    Args:
        owner: whom a refusal names.
        function: of the ball and one of each.
        ball: public.
        arguments: shapes and types of one of each.
    """
    rows = rows_at_once(arguments[0].shape)
    blocks = [jax.ShapeDtypeStruct((rows, *own.shape), own.dtype) for own in arguments]
    count = jax.ShapeDtypeStruct((), np.int32)
    program = compiled_ahead(owner, _in_turn, ball, blocks, count, passes=_OFTEN, of_one=function)

    def results(*arrays):
        for start in range(0, max(len(arrays[0]), 1), rows):
            given = [own[start : start + rows] for own in arrays]
            block = [padded(np.ascontiguousarray(own), rows) for own in given]
            yield np.asarray(program(ball, block, np.int32(len(given[0]))))[: len(given[0])]

    return results


@functools.partial(jax.jit, static_argnames="of_one")
def _in_turn(ball, blocks, count, of_one):
    first = (block[0] for block in blocks)
    result = jax.eval_shape(of_one, ball, *first)

    def one(j, found):
        given = (jax.lax.dynamic_index_in_dim(block, j, keepdims=False) for block in blocks)
        return jax.lax.dynamic_update_index_in_dim(found, of_one(ball, *given), j, 0)

    return jax.lax.fori_loop(0, count, one, jnp.zeros((len(blocks[0]), *result.shape), result.dtype))


def _clipped(ball, record):
    return ball.clip_to_home(record)


def _log(ball, mean, point):
    return _like(ball.manifold.log(mean, point), mean)


def _moved(ball, mean, direction):
    """Return a point moved along a tangent vector; unchanged where that is no point."""
    point = _like(ball.manifold.project(ball.manifold.exp(mean, direction)), mean)
    return jnp.where(jnp.all(jnp.isfinite(point)), point, mean)


def _back(ball, point):
    return ball.from_home(point)


def _like(array, other):
    """Return an array in another one's type; refuse another shape while the program is traced."""
    if array.shape != other.shape:
        raise ValueError(f"a result has shape {array.shape} in place of {other.shape}")
    return array.astype(other.dtype)


def _descent(ball) -> tuple[float, int]:
    """Return the length of a step in units of the mean of logarithms, and how many there are."""
    least_curvature, most_curvature = ball.manifold.curvature_bounds
    below = ball.radius * math.sqrt(max(0.0, -least_curvature))
    above = 2.0 * ball.radius * math.sqrt(max(0.0, most_curvature))
    # Eigenvalues of the Hessian are between these (docs/mathematics.md, Proposition 1).
    largest = below / math.tanh(below) if below > 0.0 else 1.0
    least = above / math.tan(above) if 0.0 < above < 0.5 * math.pi else float(above == 0.0)
    left = 1.0 - least / largest
    steps = _MOST_STEPS if left >= 1.0 else math.ceil(math.log(_NEAR) / math.log(max(left, _NEAR)))
    return 1.0 / largest, min(steps, _MOST_STEPS)


def _sums(blocks, places, count, one):
    """Return the sum of each person's values, one after the other, of all blocks."""
    total, start = np.zeros((count, *one.shape), one.dtype), 0
    for values in blocks:
        np.add.at(total, places[start : start + len(values)], values)
        start += len(values)
    return total


def _sizes(places, count, ndim):
    """Return how many records each person has, at least 1, with as many axes."""
    return np.maximum(np.bincount(places, minlength=count), 1).reshape(-1, *(1,) * (ndim - 1))


def _finite(records):
    """Return which records are finite, with as many axes."""
    return np.all(np.isfinite(records), axis=tuple(range(1, records.ndim)), keepdims=True)
