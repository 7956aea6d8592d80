"""User-level privacy: one record per person, made of that person's records before anything is released.

Whatever function of one person's records is taken, the mechanism that follows sees one record a person, and its
theorem for neighbours in one record is one for neighbours in one person (docs/mathematics.md, section 14).
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.compiling import compiled_ahead, like
from jaxgeodp.domains.domain import Domain
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.labels import Labels, label_keys
from jaxgeodp.traced_programs import keeping_none

# Steps of steepest descent, for all persons at once: a public number.
_STEPS = 100
# Numbers that a block of records holds.
BLOCK = 2**20


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


def units(owner: str, domain: Domain, records: Any, persons: Labels, least: int = 2) -> tuple[int, Callable]:
    """Return the number of persons, refusing fewer than ``least``, and a function that gives one record of each."""
    places, count = person_places(owner, persons, len(records))
    if count < least:
        raise InputError(f"{owner}: needs at least {least} persons, got {count}.")
    if count == 0:
        return 0, lambda: records
    summaries = domain.of_persons(owner, like(records), count)
    return count, lambda: summaries(records, places)


def any_units(owner: str, domain: Domain, records: Any, persons: Labels | None) -> Callable[[], np.ndarray]:
    """Return a function that gives the records, or one of each person, however many there are."""
    records = np.asarray(records)
    if persons is None:
        return lambda: records
    places, count = person_places(owner, persons, len(records))
    # One more, of nobody, as there may be none.
    padded = np.concatenate([records, np.full((1, *records.shape[1:]), np.nan, records.dtype)])
    with keeping_none():  # both numbers are private
        summaries: Callable = domain.of_persons(owner, like(padded), count + 1)
    return lambda: np.asarray(summaries(padded, np.append(places, count)))[:-1]


@functools.partial(jax.jit, static_argnames="count")
def averages(records: jax.Array, places: jax.Array, fallback: jax.Array, count: int) -> jax.Array:
    """Return the arithmetic mean of each person's records, (count, \\*shape of a record).

    The public ``fallback`` stands for a record with a number that is not finite, and for a mean that is too large.
    """
    axes = tuple(range(1, records.ndim))
    finite = jnp.all(jnp.isfinite(records), axis=axes, keepdims=True)
    sizes = jax.ops.segment_sum(jnp.ones(len(places)), places, count).reshape(-1, *(1,) * len(axes))
    means = jax.ops.segment_sum(jnp.where(finite, records, fallback), places, count) / sizes
    return jnp.where(jnp.all(jnp.isfinite(means), axis=axes, keepdims=True), means, fallback)


def averages_ahead(owner: str, shape: jax.ShapeDtypeStruct, fallback, count: int):
    """Return `averages` compiled for records of this shape, as a function of records and places."""
    public = jnp.asarray(fallback, shape.dtype)
    program = compiled_ahead(owner, averages, shape, places_like(shape), public, count=count)
    return lambda records, places: program(records, places, public)


def places_like(shape: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    """Return the type of the places of records of this shape."""
    return jax.ShapeDtypeStruct(shape.shape[:1], np.int64)


@functools.partial(jax.jit, static_argnames="count")
def frechet_means(ball: GeodesicBall, records: jax.Array, places: jax.Array, count: int) -> jax.Array:
    """Return a point near the Frechet mean of each person's records, clipped: (count, \\*shape of a point).

    Steepest descent from the public centre, in a public number of steps. Privacy does not depend on how near it comes.
    """
    home, points = ball.at_home, ball.clip_to_home(records)
    size = min(len(points), max(1024, BLOCK // math.prod(points.shape[1:])))
    manifold = home.manifold
    origin = jnp.asarray(home.center, points.dtype)
    sizes = jax.ops.segment_sum(jnp.ones(len(places)), places, count).reshape(-1, *(1,) * len(manifold.shape))
    # Hessians of half squared distances within the ball are at most this: x coth x <= 1 + x.
    steepest = 1.0 + 2.0 * home.radius * math.sqrt(max(0.0, -manifold.curvature_bounds[0]))

    def sums(means):
        """Return sums of the logarithms of each person's records, by blocks; the last block overlaps the one before."""

        def part(j, total):
            start = jnp.minimum(j * size, len(points) - size)
            own = jax.lax.dynamic_slice_in_dim(places, start, size)
            logs = jax.vmap(manifold.log)(means[own], jax.lax.dynamic_slice_in_dim(points, start, size))
            new = (start + jnp.arange(size) >= j * size).reshape(-1, *(1,) * len(manifold.shape))
            return total + jax.ops.segment_sum(jnp.where(new, logs, 0.0), own, count)

        return jax.lax.fori_loop(0, math.ceil(len(points) / size), part, jnp.zeros_like(means))

    def step(_, means):
        directions = sums(means) / (sizes * steepest)
        moved = jax.vmap(lambda p, v: manifold.project(manifold.exp(p, v)))(means, directions.astype(means.dtype))
        return jnp.where(jnp.isfinite(moved), moved, means)

    means = jax.lax.fori_loop(0, _STEPS, step, jnp.broadcast_to(origin, (count, *origin.shape)))
    return jax.vmap(ball.from_home)(means)
