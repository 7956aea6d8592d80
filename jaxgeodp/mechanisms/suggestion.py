"""A public ball from public data: its centre, and the radius with the smallest expected error.

A large radius costs noise, which grows like 2 r/n; a small one moves far records to its rim and the mean with them.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxgeodp.checks import InputError, epsilon_or_mu
from jaxgeodp.compiling import COMPILED_SOON
from jaxgeodp.domains.geodesic_ball import GeodesicBall, assumption_limit
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.mechanisms.names import unbiased_names
from jaxgeodp.mechanisms.plan import plan_mechanisms
from jaxgeodp.statistics import frechet_mean, frechet_median

# Radii that are tried, evenly on a logarithmic scale from this share of the public records inside to this multiple of
# the farthest.
_RADII = 12
_LEAST_INSIDE = 0.5
_BEYOND = 1.5
# Private people are not the public ones: their mean is supposed to lie this far from that of the public records, in
# units of the root mean square distance of these, in this many directions.
_SHIFT = 0.5
_DIRECTIONS = 8
_INSIDE = 0.999
_FAR = 3.0


@dataclasses.dataclass(frozen=True)
class Suggestion:
    """A ball and why; all of it follows from public records and public numbers.

    Attributes:
        ball: with the suggested radius.
        records: how many public records were points, of which the centre is the Frechet median.
        inside: share of these in the ball.
        radii: that were tried, ascending.
        noise: expected distance of a release from the mean, by the best mechanism, at each radius.
        bias: how far clipping moves the mean, at each radius; infinite where all mechanisms refuse, as the noise is.
        without: how far the mean of private people is supposed to lie from the centre: the error of taking the public
            centre for it and releasing nothing.
        outliers: how many public records lie so far away, beyond three times the distance that holds nine in ten, that
            radius and bias leave them out.
        mechanism: the best one at the suggested radius.
    """

    ball: GeodesicBall
    records: int
    inside: float
    radii: np.ndarray
    noise: np.ndarray
    bias: np.ndarray
    without: float
    outliers: int
    mechanism: str

    @property
    def error(self) -> np.ndarray:
        """Return the root of the sum of squares of noise and bias, at each radius."""
        return np.hypot(self.noise, self.bias)


def suggest_ball(
    manifold: Manifold,
    public: ArrayLike,
    n: int,
    epsilon: float | None = None,
    mu: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Suggestion:
    """Return the ball around the median of public records whose expected error is least for n private ones.

    The noise is that of `plan_mechanisms`. The bias is that of the public records themselves, moved so that their mean
    lies half their root mean square distance away from the centre, as private people may differ from public ones:
    clipped to the ball, how far does their mean move? The error is the root of the sum of squares.

    Args:
        manifold: of the records.
        public: (m, \\*shape), public records, m >= 2: from another study, or simulated. Those that are no points are
            left out.
        n: number of private records, at least 2.
        epsilon: or
        mu: the privacy parameter.
        progress: called with the number of steps that are done, and of all.

    Returns:
        The ball, and what each radius that was tried would cost.

    Raises:
        ValueError: fewer than two public records are points; all of them are one point; not one privacy parameter; or
            at every radius every mechanism refuses: the reason of the last.
    """
    epsilon_or_mu("suggest_ball", epsilon, mu)
    with jax.enable_x64(True):
        points = manifold.as_points(jnp.asarray(public))
        points = points.astype(jnp.result_type(points, complex if manifold.dtype_kind == "complex" else float))
        if points.shape[1:] != manifold.shape or points.ndim != len(manifold.shape) + 1:
            shape = ", ".join(["m", *map(str, manifold.shape)])
            raise InputError(f"suggest_ball: records must have shape ({shape}) on {manifold}, got {points.shape}.")
        points = points[np.asarray(jax.vmap(manifold.admissible)(points))]
        if len(points) < 2:
            raise InputError("suggest_ball: at least two of the public records must be points of the manifold.")
        points = jax.vmap(manifold.project)(points)
        center = np.asarray(frechet_median(manifold, points))
        distances = np.sort(jax.vmap(lambda x: manifold.dist(jnp.asarray(center), x))(points))
        if not (np.all(np.isfinite(distances)) and distances[-1] > 1e-12):
            raise InputError(
                "suggest_ball: the public records are all equal, or their median could not be computed; give others."
            )
        # A few far away would decide over all: the radius is for the others.
        far = _FAR * np.quantile(distances, 0.9)
        outliers = int((distances > far).sum()) if far > 0 else 0
        near = distances[: len(distances) - outliers]
        kept = jax.vmap(lambda x: manifold.dist(jnp.asarray(center), x))(points) <= near[-1]
        limit = _INSIDE * assumption_limit(manifold, center)
        ends = [np.quantile(distances, _LEAST_INSIDE), _BEYOND * near[-1]]
        first, last = (min(max(end, 1e-3 * near[-1]), limit) for end in ends)
        radii = np.unique(np.geomspace(first, last, _RADII))
        without = _SHIFT * float(np.sqrt(np.mean(near**2)))
        steps = itertools.count(1)

        def done():
            if progress is not None:
                progress(next(steps), 2 * len(radii))

        noise, bias, best = np.full(len(radii), np.inf), np.full(len(radii), np.inf), [""] * len(radii)
        balls = [GeodesicBall(manifold, center, float(radius)) for radius in radii]
        refusal = None
        for k, ball in enumerate(balls):  # first, as a refusal follows from public numbers
            try:
                plan = plan_mechanisms(ball, n, epsilon, mu, names=unbiased_names(manifold))[0]
                noise[k], best[k] = plan.error, plan.mechanism
            except InputError as refused:
                refusal = refused
            done()
        if not np.any(np.isfinite(noise)) and refusal is not None:
            raise refusal
        moved = _moved(manifold, jnp.asarray(center), points[np.asarray(kept)], without)
        for k, ball in enumerate(balls):
            if np.isfinite(noise[k]):
                geometry = GeodesicBall.tree_unflatten(ball.manifold.geometry, (ball.center, ball.radius))
                bias[k] = float(np.nan_to_num(_bias(geometry, *moved), nan=np.inf))
            done()
        chosen = int(np.argmin(np.hypot(noise, bias)))
        if not np.isfinite(noise[chosen] + bias[chosen]):
            raise InputError(
                "suggest_ball: the effect of clipping cannot be computed in double precision at any radius; choose "
                "other units."
            )
        return Suggestion(
            GeodesicBall(manifold, center, float(radii[chosen])),
            len(points),
            float(np.mean(distances <= radii[chosen])),
            radii,
            noise,
            bias,
            without,
            outliers,
            best[chosen],
        )


@functools.partial(jax.jit, static_argnums=0, compiler_options=COMPILED_SOON)
def _moved(manifold, center, points, length):
    """Return the records carried along geodesics from the centre, a set for each direction, and their means."""

    def along(key):
        direction = manifold.random_tangent(key, center)
        place = manifold.exp(center, length / manifold.norm(center, direction) * direction)

        def carried(x):
            return manifold.exp(place, manifold.transport(center, place, manifold.log(center, x)))

        records = jax.vmap(carried)(points)
        return records, frechet_mean(manifold, records)

    return jax.lax.map(along, jax.random.split(jax.random.key(0), _DIRECTIONS))


@functools.partial(jax.jit, compiler_options=COMPILED_SOON)
def _bias(ball, records, means):
    """Return how far clipping moves the mean, on average over the directions."""

    def moved_by(pair):
        points, mean = pair
        return ball.manifold.whole.dist(mean, frechet_mean(ball.manifold, ball.clip(points)))

    return jnp.mean(jax.lax.map(moved_by, (records, means)))
