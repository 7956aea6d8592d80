"""Records with weights: how data sets of several sizes share one compiled program (weight 0 fills the rest)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxgeodp.blocks import sum_in_blocks
from jaxgeodp.manifolds.manifold import real_dtype


class WeightedRecords(NamedTuple):
    """Records and their weights, where functions of this package would take records alone."""

    points: jax.Array  #: (n, *shape)
    weights: jax.Array  #: (n,), sum 1


def points_and_weights(records):
    """Points and weights; 1/n for each of n points that come without."""
    if isinstance(records, WeightedRecords):
        return records
    return records, equal_weights(records)


def with_weights(points, weights):
    """Points with weights, if there are any."""
    return points if weights is None else WeightedRecords(points, jnp.asarray(weights, real_dtype(points)))


def equal_weights(points):
    """1/n for each of n points."""
    return jnp.full(points.shape[:1], 1.0 / points.shape[0], real_dtype(points))


def log_moments(manifold, base, records):
    """`Manifold.log_moments`, with little memory beside the records."""
    return sum_in_blocks(
        lambda points, weights: manifold.log_moments(base, points, weights), *points_and_weights(records)
    )


def average(records):
    """Return the weighted arithmetic mean."""
    points, weights = points_and_weights(records)
    return jnp.tensordot(weights.astype(points.dtype), points, axes=1)
