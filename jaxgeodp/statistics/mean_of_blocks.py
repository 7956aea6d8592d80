"""The Frechet mean in passes over blocks of records: each pass a sum of integers, whatever the split is.

Descent by a public number of steps, as in `mean_in_ball`; a record's logarithm at the last iterate, an array of the
ambient space, is rounded to a public unit, 2^-36 radii, before it is added. What rounding moves the mean by is far
below the 1e-9 radii that are supposed of computed means.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from jaxgeodp.blocks import RecordBlocks
from jaxgeodp.compiling import compiled_ahead, compiled_in_blocks
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.statistics.frechet_mean import descent_schedule

# Steps of the grid in the radius of the ball, and beyond how many radii no number of a logarithm reaches: sums of a
# block fit 64 bits.
_STEPS, _FARTHEST = 2**36, 2**14


def mean_of_blocks(owner: str, ball: GeodesicBall, shape: jax.ShapeDtypeStruct) -> Callable[[Any], np.ndarray]:
    """Return the compiled function that gives the Frechet mean, at home and in the ball, of private records.

    Args:
        owner: whom a refusal names.
        ball: public.
        shape: of the records, (n, \\*shape of one).

    Returns:
        A function of records, an array or `RecordBlocks`, that are clipped one by one.
    """
    manifold, n = ball.manifold, shape.shape[0]
    number, size = descent_schedule(manifold, ball.radius)
    origin = np.asarray(ball.at_home.center)
    point = jax.ShapeDtypeStruct(manifold.shape, shape.dtype)
    clipped = compiled_in_blocks(owner, _clipped, ball, shape)
    logarithms = compiled_in_blocks(owner, _logarithms, ball, point, shape)
    moved = compiled_ahead(owner, _moved, ball, point, point)
    unit = ball.radius / _STEPS

    def mean_of(records):
        if isinstance(records, RecordBlocks):
            # Clipped anew in each pass.
            points = records.mapped(lambda own: np.concatenate(list(clipped(ball, own))), shape.shape[1:], shape.dtype)
        else:
            points = np.concatenate(list(clipped(ball, records)))
        x = origin.astype(shape.dtype)
        for _ in range(number):
            total: Any = sum(_whole(part, unit) for part in logarithms(ball, x, points))
            change = (size * (total * unit).astype(np.float64) / n).view(shape.dtype)
            x = np.asarray(moved(ball, x, change.reshape(manifold.shape)))
        return x

    return mean_of


def _whole(part, unit):
    """The sum of a block in units, as Python's integers."""
    with np.errstate(all="ignore"):
        numbers = np.ascontiguousarray(part).reshape(len(part), -1).view(np.float64)
        scaled = np.clip(np.nan_to_num(numbers / unit), -_FARTHEST * _STEPS, _FARTHEST * _STEPS)
    return np.sum(np.rint(scaled).astype(np.int64), axis=0).astype(object)


@jax.jit
def _clipped(ball, block):
    return ball.clip_to_home(block)


@jax.jit
def _logarithms(ball, x, points):
    """As arrays of the ambient space, which need no frame."""
    return jax.vmap(lambda y: ball.manifold.log(x, y))(points)


@jax.jit
def _moved(ball, x, change):
    manifold = ball.manifold
    return ball.at_home.pull_inside(manifold.project(manifold.exp(x, manifold.to_tangent(x, change))))
