"""Whether a released mean is worth more than the centre of its ball: from public and released numbers alone."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.compiling import seen_anew
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.manifolds import Manifold
from jaxgeodp.nested_lists import from_lists
from jaxgeodp.privacy.release import Release

# Of the radius: how much farther than it a point at the rim may be measured.
_ROUNDING = 1e-9


class AgainstCenter(NamedTuple):
    """A released mean and the centre of its ball, beside the mean of the records, clipped to the ball."""

    outside: bool  #: whether the released mean lies outside the ball, in which that of the clipped records lies
    center_is_nearer: bool  #: whether the centre is expected to be nearer to the mean of the clipped records


def against_center(manifold: Manifold, mean: Release, parameter: str) -> AgainstCenter:
    """Compare a released mean with the centre of the ball that the records were clipped to.

    At distance s from the centre, with noise of the expected squared length v, the squared distance of the centre from
    the mean of the clipped records is estimated by s^2 - v, which is unbiased in flat space, and brought into [0, r^2],
    where it is; that of the released mean by v, or by (s - r)^2 if that is more, as it cannot be nearer. The smaller
    one is expected to be nearer. Beyond twice the radius, or where v is more than r^2, that is always the centre.

    Args:
        manifold: of the records.
        mean: released.
        parameter: "epsilon" or "mu", by which it was.

    Returns:
        Both false where no ball could be made about a centre that was found, which is then what was released.
    """
    if mean.record["scale"] is None:
        return AgainstCenter(False, False)
    ball, noise = ball_of_record(manifold, mean.record["ball"]), expected_square(mean, manifold.dim, parameter)
    with jax.enable_x64(True):
        distance = float(_distance(ball, jnp.asarray(seen_anew(np.asarray(mean.value)))))
    beyond = distance - ball.radius
    of_mean = max(noise, max(beyond, 0.0) ** 2)
    of_center = min(max(distance**2 - noise, 0.0), ball.radius**2)
    return AgainstCenter(beyond > _ROUNDING * ball.radius, of_center < of_mean)


def expected_square(mean: Release, dim: int, parameter: str) -> float:
    """Return a released mean's expected squared distance from that of clipped records in flat space; 0 without noise.

    Args:
        mean, parameter: see `against_center`.
        dim: of the manifold.
    """
    scale, steps = mean.record["scale"], mean.record.get("steps")
    if scale is None:
        return 0.0
    square = scale**2 if steps is None else _square_of_steps(steps)
    return square * dim * (1.0 if parameter == "mu" else dim + 1.0)


def _square_of_steps(steps) -> float:
    """Return the squared scale of one release with the noise of a release in steps.

    A last step of gain g and scale s leaves about g s^2 (docs/mathematics.md, section 21: a little more); a mean of all
    records is averaged with a first one, if there was one in the same ball, by their precisions.
    """
    last, first = steps[-1], steps[0]
    square = last["scale"] ** 2
    if "gain" in last:
        return last["gain"] * square
    return 1.0 / (1.0 / square + 1.0 / first["scale"] ** 2) if first["asked"] == "mean" else square


def ball_of_record(manifold: Manifold, entry: dict) -> GeodesicBall:
    """Return the ball that a release record states."""
    kind = "complex128" if manifold.dtype_kind == "complex" else "float64"
    return GeodesicBall(manifold, from_lists(entry["center"], kind), entry["radius"])


@jax.jit
def _distance(ball, point):
    return ball.distance(point)
