"""One record a person: what somebody's records become before anything is released, so that a person is protected.

Whatever function of one person's records is taken, the mechanism that follows sees one record a person, and its
theorem for neighbours in one record is one for neighbours in one person (docs/mathematics.md, section 14).
"""

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall

#: One for each record, numbers or words.
Labels = Sequence[Any] | np.ndarray
# Steps of steepest descent, for all persons at once: a public number.
_STEPS = 100


def person_places(owner: str, persons: Labels, n: int) -> tuple[np.ndarray, int]:
    """Which person each record is of, from 0, and how many persons there are.

    Args:
        owner: whom a refusal names.
        persons: (n,), a label for each record: numbers or words. All that are missing are one person.
        n: number of records.

    Raises:
        ValueError: not one label a record, or fewer than two persons.
    """
    try:
        labels = np.asarray(persons)
    except ValueError:  # lists of different lengths
        labels = np.empty((0, 0))
    if labels.shape != (n,):
        raise InputError(f"{owner}: persons must hold one label for each of the {n} records.")
    if labels.dtype.kind not in "iufbUS":
        labels = np.array([str(label) for label in labels])
    _, places = np.unique(labels, return_inverse=True)
    count = int(places.max()) + 1
    if count < 2:
        raise InputError(f"{owner}: needs at least 2 persons, got {count}.")
    return places.reshape(n), count


@functools.partial(jax.jit, static_argnames="count")
def averages(records: jax.Array, places: jax.Array, count: int) -> jax.Array:
    """The arithmetic mean of each person's records, (count, \\*shape of a record)."""
    sizes = jax.ops.segment_sum(jnp.ones(len(places)), places, count)
    sums = jax.ops.segment_sum(records, places, count)
    return sums / sizes.reshape(-1, *(1,) * (records.ndim - 1))


@functools.partial(jax.jit, static_argnames="count")
def frechet_means(ball: GeodesicBall, records: jax.Array, places: jax.Array, count: int) -> jax.Array:
    """A point near the Frechet mean of each person's records, clipped: (count, \\*shape of a point).

    Steepest descent from the public centre, in a public number of steps. Privacy does not depend on how near it comes.
    """
    home, points = ball.at_home, ball.clip_to_home(records)
    manifold = home.manifold
    origin = jnp.asarray(home.center, points.dtype)
    sizes = jax.ops.segment_sum(jnp.ones(len(places)), places, count).reshape(-1, *(1,) * len(manifold.shape))
    # Hessians of half squared distances within the ball are at most this: x coth x <= 1 + x.
    steepest = 1.0 + 2.0 * home.radius * math.sqrt(max(0.0, -manifold.curvature_bounds[0]))

    def step(_, means):
        logs = jax.vmap(manifold.log)(means[places], points)
        directions = jax.ops.segment_sum(logs, places, count) / (sizes * steepest)
        moved = jax.vmap(lambda p, v: manifold.project(manifold.exp(p, v)))(means, directions.astype(means.dtype))
        return jnp.where(jnp.isfinite(moved), moved, means)

    means = jax.lax.fori_loop(0, _STEPS, step, jnp.broadcast_to(origin, (count, *origin.shape)))
    return jax.vmap(ball.from_home)(means)
