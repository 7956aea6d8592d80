"""Private geodesic regression: where points are expected at a time, along a geodesic (section 18)."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxgeodp.checks import InputError
from jaxgeodp.compiling import refused_in_words, seen_anew
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.lists import records_in_lists
from jaxgeodp.domains.records import host_array, kind_of_data, points_in, records_of_shape
from jaxgeodp.inference.chain import budget_of, following, split, together
from jaxgeodp.inference.geodesic_fit import LEAST, STATISTICS, GeodesicFit, fit_of, standing
from jaxgeodp.inference.places import AlongGeodesic, frame_at
from jaxgeodp.inference.population import carried
from jaxgeodp.inference.residuals import Correction, correction_of, jacobi_fields, moved
from jaxgeodp.inference.spread import SpreadMechanism
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.privacy.release import make_releases
from jaxgeodp.releases.context import releasing
from jaxgeodp.releases.drafts import Request, drafted, raw_records
from jaxgeodp.releases.ways import OnGrid

# The first round's part of the budget, in hundredths, where there are two.
_FIRST = 30
# Residuals of the second round count in full up to this: standard deviations beyond the length that is usual, of
# records and of the first round's error.
_BEYOND = 2.5
# Where the first round's error is a larger part of the ball, its noise is all that a second one would see.
_LARGEST_ERROR = 0.1


def geodesic_regression(
    times: ArrayLike,
    data: ArrayLike,
    ball: GeodesicBall,
    *,
    epsilon: float | None = None,
    mu: float | None = None,
    ledger: Ledger | None = None,
) -> GeodesicFit:
    """Fit a geodesic to points at times, privately: a record is a time and a point, and both are protected.

    The first round is linear regression of logarithms at the public centre. The second takes residuals along the
    geodesic that the first has found, cut at the length that nearly all have, and corrects it: about the true geodesic
    residuals are 0 on average at every time, if points lie symmetrically about it, so that the correction has no bias
    from curvature. Where noise would be all that a second round sees, by public numbers, there is one.

    Stated errors suppose residuals of one covariance at all times; for a pure budget alike in all directions, too (else
    they are up to sqrt(dim) times too small).

    Args:
        times: (n,), from 0 to 1; others count as the nearer of these, one that is no number as 1/2.
        data: (n, \\*shape of a point), n >= 10.
        ball: public; points are clipped into it, so that it should hold what lies about the geodesic, too.
        epsilon: the whole budget, pure; or
        mu: that of Gaussian noise: all rounds together promise mu^2/2-zCDP.
        ledger: charged once, before anything is drawn.

    Returns:
        The geodesic, its errors and the releases that it is made of.

    Raises:
        ValueError: wrong shapes, not one privacy parameter, a ball that violates Assumption 1, or the ledger has not
            enough left.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp import GeodesicBall, Sphere
        >>> from jaxgeodp.inference import geodesic_regression
        >>> times = np.linspace(0.0, 1.0, 500)
        >>> angles = 0.5 * times - 0.25
        >>> data = np.stack([np.sin(angles), np.zeros(500), np.cos(angles)], axis=1)
        >>> fit = geodesic_regression(times, data, GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.5), mu=2.0)
        >>> bool(abs(fit.speed - 0.5) < 0.1)
        True
    """
    name = "geodesic_regression"
    parameter, whole = budget_of(name, epsilon, mu)
    if not isinstance(ball, GeodesicBall):
        raise InputError(f"{name}: ball must be a GeodesicBall, got {type(ball).__name__}.")
    if not ball.satisfies_assumption:
        raise InputError(f"{name}: radius {ball.radius:g} violates Assumption 1; choose a smaller radius.")
    if not isinstance(ledger, Ledger | None):
        raise InputError(f"{name}: ledger must be a Ledger or None, got {type(ledger).__name__}.")
    with releasing():
        pairs = _pairs(name, times, data, ball.manifold)
        place = standing(ball)
        strengths = _strengths(parameter, whole, len(pairs), ball)
        mechanisms = [SpreadMechanism(ball, place, STATISTICS[parameter], **{parameter: own}) for own in strengths]
        records = raw_records(mechanisms[0], pairs)
        n, drawn = len(records), []
        shape = jax.ShapeDtypeStruct(records.shape[1:], records.dtype)
        first = drafted(Request(mechanisms[0], OnGrid()), n, shape)(lambda: records)

        def draw_first():
            value, told = first.draw()
            drawn.append(value)
            return value, told

        def second():
            correction = _correction(drawn[0], mechanisms[0], n)
            middle, velocity = moved(place.middle, place.velocity, place.frame, correction, ball)
            about = AlongGeodesic(middle, velocity, frame_at(ball.manifold, middle), reach_of(correction, ball))
            return dataclasses.replace(mechanisms[1], about=about)

        with refused_in_words(name):
            jacobi_fields(ball.manifold, place.middle, place.velocity, place.frame)
            moved(place.middle, place.velocity, place.frame, Correction.none(ball.manifold.dim), ball)
            center = jnp.asarray(seen_anew(place.middle))
            carried(ball.manifold, center, center, jnp.asarray(seen_anew(place.frame)))
        drafts = [dataclasses.replace(first, draw=draw_first, expected=None)]
        drafts += [following(own, records, second, dict) for own in mechanisms[1:]]
        releases = make_releases(drafts, ledger, together(drafts))
        return fit_of(releases, ball)


def _pairs(name, times, data, manifold) -> np.ndarray:
    """Return times and points in one array, (n, 1 + numbers of a point); only shapes and types are checked."""

    def points_of(array):
        return records_of_shape(name, points_in(manifold, array), manifold.shape, manifold.dtype_kind, f"on {manifold}")

    def converted(array):
        try:
            return points_of(array)
        except Exception:  # of what shape a record is, nothing may tell
            return None

    points = np.asarray(points_of(host_array(name, records_in_lists(data, converted))))
    own = records_in_lists(times, lambda array: array if array.ndim == 1 and array.dtype.kind == "f" else None)
    own = np.asarray(host_array(name, own))
    if own.shape != (len(points),) or own.dtype.kind not in "fiu":
        raise InputError(
            f"{name}: times must be {len(points)} numbers, one per point, got {kind_of_data(own)} of shape {own.shape}."
        )
    if len(points) < LEAST:
        raise InputError(f"{name}: needs at least {LEAST} records, got {len(points)}.")
    double = np.complex128 if manifold.dtype_kind == "complex" else np.float64
    with np.errstate(all="ignore"):  # a warning would tell of a record
        return np.concatenate([own[:, None].astype(double), points.reshape(len(points), -1).astype(double)], axis=1)


def _strengths(parameter, whole, n, ball) -> list[float]:
    """Return the privacy parameter of each round: two rounds, or one where the first would be too noisy."""
    second, first = split(parameter, whole, (100 - _FIRST, _FIRST))
    scale = SpreadMechanism(ball, standing(ball), STATISTICS[parameter], **{parameter: first}).scale(n)
    if scale * math.sqrt(ball.manifold.dim) * math.sqrt(1.0 + 3.0**2) > _LARGEST_ERROR:
        return [whole]
    return [first, second]


def _correction(value, mechanism, n) -> Correction:
    laplace = math.sqrt(2.0) if mechanism.epsilon is not None else 1.0
    statistic, dim = mechanism.statistic, mechanism.ball.manifold.dim
    return correction_of(statistic, dim, value, laplace * mechanism.scale(n), mechanism.about.reach, n)


def reach_of(correction, ball) -> float:
    """Return a length that nearly all residuals from the corrected geodesic keep below."""
    return min(correction.usual_length(_BEYOND), 2.0 * ball.radius)
