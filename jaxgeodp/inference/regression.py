"""Private geodesic regression: where points are expected at a time, along a geodesic (section 18)."""

import contextlib
import dataclasses
import functools
import json
import math
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxgeodp.checks import InputError
from jaxgeodp.compiling import refused_in_words, seen_anew
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.records import host_array, kind_of_data, records_of_shape
from jaxgeodp.files import write_atomically
from jaxgeodp.inference.chain import budget_of, following, split, together
from jaxgeodp.inference.places import AlongGeodesic, frame_at
from jaxgeodp.inference.population import carried, points_along
from jaxgeodp.inference.residuals import (
    Correction,
    ResidualMatrix,
    ResidualMoments,
    Residuals,
    correction_of,
    jacobi_fields,
    moved,
)
from jaxgeodp.inference.spread import SpreadMechanism
from jaxgeodp.manifolds import Manifold
from jaxgeodp.manifolds.described import from_lists
from jaxgeodp.manifolds.names import manifold_of
from jaxgeodp.privacy.guarantee import ADJACENCY
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.privacy.release import Release, make_releases
from jaxgeodp.releases.drafts import Wanted, drafted, raw_records
from jaxgeodp.releases.mechanism import releasing
from jaxgeodp.releases.ways import OnGrid

# The first round's part of the budget, in hundredths, where there are two.
_FIRST = 30
# Residuals of the second round count in full up to this: standard deviations beyond the length that is usual, of
# records and of the first round's error.
_BEYOND = 2.5
# Where the first round's error is a larger part of the ball, its noise is all that a second one would see.
_LARGEST_ERROR = 0.1
# Of files: no fit has more.
_MOST, _MOST_RECORDS = 1e100, 2**62
_STATISTICS: dict[str, Residuals] = {"epsilon": ResidualMoments(), "mu": ResidualMatrix()}
# With fewer, errors are too uncertain to be stated.
_LEAST = 10


@dataclasses.dataclass(frozen=True, eq=False)
class GeodesicFit:
    """The geodesic gamma with released parameters: at time t, from 0 to 1, points are expected at gamma(t).

    Attributes:
        manifold: of the points.
        middle: gamma(1/2).
        velocity: half of the way from gamma(0) to gamma(1): a tangent vector at the middle.
        frame: orthonormal basis at the middle, (dim, \\*shape).
        covariance: of the errors of middle and velocity in that frame, (2 dim, 2 dim): those of the noise, and of n
            records of a population whose residuals have one covariance at all times; infinite for a velocity that
            times do not tell.
        widest: the same, no smaller in any direction than what noise may hide; for `no_motion`.
        residuals: covariance of the points' residuals, each cut at a length that few exceed, (dim, dim); a multiple of
            the identity for a pure budget, as directions would cost too much noise.
        releases: one for each round; all is made of them.
    """

    manifold: Manifold
    middle: np.ndarray
    velocity: np.ndarray
    frame: np.ndarray
    covariance: np.ndarray
    widest: np.ndarray
    residuals: np.ndarray
    releases: tuple[Release, ...]

    def predict(self, times: ArrayLike) -> np.ndarray:
        """gamma at times (m,), (m, \\*shape).

        Args:
            times: one number, or (m,); any, though data are from times 0 to 1.

        Raises:
            ValueError: no array of numbers.
        """
        with jax.enable_x64(True):
            s = jnp.asarray(_places(times))
            return np.asarray(
                points_along(
                    self.manifold, jnp.asarray(seen_anew(self.middle)), jnp.asarray(seen_anew(self.velocity)), s
                )
            )

    @property
    def intercept(self) -> np.ndarray:
        """gamma(0)."""
        return self.predict(0.0)[0]

    @property
    def slope(self) -> np.ndarray:
        """The velocity of gamma at time 0, per unit of time, a tangent vector at the intercept."""
        with jax.enable_x64(True):
            ends = jnp.asarray(seen_anew(self.middle)), jnp.asarray(seen_anew(self.intercept))
            own = carried(self.manifold, *ends, jnp.asarray(seen_anew(self.velocity))[None])
        return 2.0 * np.asarray(own[0])

    @property
    def residual_sd(self) -> float:
        """Standard deviation of residuals, in each coordinate; see ``residuals``.

        No smaller than what the noise of its square hides: of few records, or a small budget, it is that.
        """
        return math.sqrt(float(np.trace(self.residuals)) / self.manifold.dim)

    @property
    def speed(self) -> float:
        """Distance per unit of time, without what noise and sampling alone add to the length of a vector.

        Where that is all of it, 0. `no_motion` says whether there is a speed at all.
        """
        own, along = self._of_velocity()
        if not np.all(np.isfinite(own)):
            return 0.0
        return 2.0 * math.sqrt(max(float(along @ along - np.trace(own)), 0.0))

    @property
    def speed_error(self) -> float:
        """Standard error of the speed, of one that is several times as large; infinite where times do not tell it.

        For a pure budget residuals are taken to be alike in all directions: it may be sqrt(dim) times as large.
        """
        own, along = self._of_velocity()
        if not np.all(np.isfinite(own)):
            return math.inf
        length = float(np.linalg.norm(along))
        variance = along @ own @ along / length**2 if length > 0.0 else float(np.max(np.linalg.eigvalsh(own)))
        return 2.0 * math.sqrt(variance)

    @property
    def no_motion(self) -> float:
        """The p-value of a geodesic that stays where it is, by Hotelling's test with what noise may hide in directions.

        For normal residuals of one covariance at all times. 1 where times tell no velocity, or records are too few.
        """
        from scipy.stats import f

        dim, n = self.manifold.dim, int(self.releases[0].record["n"])
        own, along = self.widest[dim:, dim:], self._of_velocity()[1]
        if not np.all(np.isfinite(own)) or n - 1 <= dim:
            return 1.0
        square = along @ np.linalg.pinv(own, hermitian=True) @ along
        return float(f.sf(square * (n - 1 - dim) / (dim * (n - 2)), dim, n - 1 - dim))

    def _of_velocity(self):
        """Covariance of the error of the velocity, and the velocity, in the frame."""
        with jax.enable_x64(True):
            arrays = (jnp.asarray(seen_anew(x)) for x in (self.middle, self.velocity, self.frame))
            along = np.asarray(_coordinates(self.manifold, *arrays))
        return self.covariance[self.manifold.dim :, self.manifold.dim :], along

    def standard_error(self, times: ArrayLike) -> np.ndarray:
        """Root of the mean squared distance of gamma from where it would be without error, at times (m,).

        What clipping into the ball has moved, and, of a fit in one round, what curvature has, is not in it; nor is what
        residuals add that are wider at some times than at others or, for a pure budget, in some directions.

        Args:
            times: see `predict`.

        Returns:
            (m,); infinite where times do not tell a velocity.
        """
        s = _places(times)
        if not np.all(np.isfinite(self.covariance)):
            return np.full(s.shape, math.inf)
        fields = jacobi_fields(self.manifold, self.middle, self.velocity, self.frame, s)
        return np.sqrt(np.maximum(np.einsum("mik,kl,mil->m", fields, self.covariance, fields), 0.0))

    def save(self, path, overwrite: bool = False) -> None:
        """Write the releases as one JSON file, from which `load` makes the fit again.

        Args:
            path: of the file.
            overwrite: whether an existing file is replaced.

        Raises:
            OSError: the file exists and ``overwrite`` is false, or cannot be written.
        """
        records = [json.loads(release.to_json()) for release in self.releases]
        text = json.dumps({"rounds": records}, indent=2) + "\n"
        write_atomically(path, text, replace=overwrite, changed=records[0]["created"])

    @classmethod
    def load(cls, path) -> "GeodesicFit":
        """What `save` wrote.

        Args:
            path: of the file.

        Raises:
            OSError: the file cannot be read.
            ValueError: it holds something else.
        """
        text = pathlib.Path(path).read_bytes()
        try:
            records = json.loads(text)["rounds"]
            manifold = manifold_of(records[0]["manifold"])
            kind = "complex128" if manifold.dtype_kind == "complex" else "float64"
            ball = GeodesicBall(manifold, from_lists(records[0]["ball"]["center"], kind), records[0]["ball"]["radius"])
            for own in records:
                _check_stored(own, records[0], ball, kind)
            releases = [Release(from_lists(own["value"], "float64"), own) for own in records]
            return _fit_or_none(releases, ball)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
            raise InputError(f"{path}: holds no geodesic regression.") from None


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
        raise InputError(f"{name}: radius {ball.radius:g} violates Assumption 1; choose a smaller ball.")
    if not isinstance(ledger, Ledger | None):
        raise InputError(f"{name}: ledger must be a Ledger or None, got {type(ledger).__name__}.")
    with releasing():
        pairs = _pairs(name, times, data, ball.manifold)
        place = _standing(ball)
        strengths = _strengths(parameter, whole, len(pairs), ball)
        mechanisms = [SpreadMechanism(ball, place, _STATISTICS[parameter], **{parameter: own}) for own in strengths]
        records = raw_records(mechanisms[0], pairs)
        n, drawn = len(records), []
        shape = jax.ShapeDtypeStruct(records.shape[1:], records.dtype)
        first = drafted(mechanisms[0], n, shape, Wanted(OnGrid(), ADJACENCY))(lambda: records)

        def draw_first():
            value, told = first.draw()
            drawn.append(value)
            return value, told

        def second():
            correction = _correction(drawn[0], mechanisms[0], n)
            middle, velocity = moved(place.middle, place.velocity, place.frame, correction, ball)
            about = AlongGeodesic(middle, velocity, frame_at(ball.manifold, middle), _reach(correction, ball))
            return dataclasses.replace(mechanisms[1], about=about)

        with refused_in_words(name):
            jacobi_fields(ball.manifold, place.middle, place.velocity, place.frame)
            moved(place.middle, place.velocity, place.frame, Correction.none(ball.manifold.dim), ball)
            center = jnp.asarray(seen_anew(place.middle))
            carried(ball.manifold, center, center, jnp.asarray(seen_anew(place.frame)))
        drafts = [dataclasses.replace(first, draw=draw_first, expected=None)]
        drafts += [following(own, records, second, dict) for own in mechanisms[1:]]
        releases = make_releases(drafts, ledger, together(drafts))
        return _fit_or_none(releases, ball)


def _pairs(name, times, data, manifold) -> np.ndarray:
    """Times and points in one array, (n, 1 + numbers of a point); only shapes and types are looked at."""
    points = manifold.as_points(host_array(name, data))
    points = np.asarray(records_of_shape(name, points, manifold.shape, manifold.dtype_kind, f"on {manifold}"))
    own = np.asarray(host_array(name, times))
    if own.shape != (len(points),) or own.dtype.kind not in "fiu":
        raise InputError(
            f"{name}: times must be {len(points)} numbers, one a point, got {kind_of_data(own)} of shape {own.shape}."
        )
    if len(points) < _LEAST:
        raise InputError(f"{name}: needs {_LEAST} records or more, got {len(points)}.")
    double = np.complex128 if manifold.dtype_kind == "complex" else np.float64
    with np.errstate(all="ignore"):  # a warning would tell of a record
        return np.concatenate([own[:, None].astype(double), points.reshape(len(points), -1).astype(double)], axis=1)


def _standing(ball) -> AlongGeodesic:
    """The geodesic that stays at the centre."""
    center = np.asarray(ball.center)
    return AlongGeodesic(center, np.zeros_like(center), frame_at(ball.manifold, center), ball.radius)


def _strengths(parameter, whole, n, ball) -> list[float]:
    """Of the rounds: two, but where the first one's error would be too large a part of the ball."""
    second, first = split(parameter, whole, (100 - _FIRST, _FIRST))
    scale = SpreadMechanism(ball, _standing(ball), _STATISTICS[parameter], **{parameter: first}).scale(n)
    if scale * math.sqrt(ball.manifold.dim) * math.sqrt(1.0 + 3.0**2) > _LARGEST_ERROR:
        return [whole]
    return [first, second]


def _correction(value, mechanism, n) -> Correction:
    laplace = math.sqrt(2.0) if mechanism.epsilon is not None else 1.0
    statistic, dim = mechanism.statistic, mechanism.ball.manifold.dim
    return correction_of(statistic, dim, value, laplace * mechanism.scale(n), mechanism.about.reach, n)


def _reach(correction, ball) -> float:
    """A length that nearly all residuals from the corrected geodesic keep below."""
    return min(correction.usual_length(_BEYOND), 2.0 * ball.radius)


def _fit_or_none(releases, ball) -> GeodesicFit:
    """The fit; whatever was released, there is one."""
    for last in range(len(releases), 0, -1):
        with contextlib.suppress(Exception):  # it would tell of the records
            fit = _fit(releases[:last], ball, releases)
            if np.all(np.isfinite(fit.middle)) and np.all(np.isfinite(fit.velocity)):
                return fit
    place, dim = _standing(ball), ball.manifold.dim
    unknown, residuals = np.full((2 * dim, 2 * dim), math.inf), np.diag(np.full(dim, math.inf))
    numbers = place.middle, place.velocity, place.frame, unknown, unknown, residuals
    return GeodesicFit(ball.manifold, *numbers, tuple(releases))


def _fit(releases, ball, everything) -> GeodesicFit:
    """What the last round says that could be computed, of those that are given."""
    last = next(own for own in reversed(releases) if own.record["scale"] is not None)
    record, manifold = last.record, ball.manifold
    kind = "complex128" if manifold.dtype_kind == "complex" else "float64"
    geodesic = record["geodesic"]
    middle, velocity, frame = _arrays(record, kind)
    scale = record["scale"] * (math.sqrt(2.0) if record["guarantee"]["kind"] == "pure" else 1.0)
    fields = jacobi_fields(manifold, middle, velocity, frame)
    statistic = next(own for own in _STATISTICS.values() if own.description == record["statistic"])
    correction = correction_of(statistic, manifold.dim, last.value, scale, geodesic["reach"], record["n"], fields)
    there, turned = moved(middle, velocity, frame, correction, ball)
    with jax.enable_x64(True):
        basis = np.asarray(carried(manifold, jnp.asarray(middle), jnp.asarray(there), jnp.asarray(frame)))
    spread = correction.residuals
    both = correction.covariance, correction.widest
    return GeodesicFit(manifold, there, turned, basis, *both, spread, tuple(everything))


def _places(times) -> np.ndarray:
    """s of times (m,), or of one."""
    try:
        own = np.asarray(times, float)
    except (TypeError, ValueError):
        raise InputError("GeodesicFit: times must be one number or an array (m,) of numbers.") from None
    if own.ndim > 1:
        raise InputError(f"GeodesicFit: times must be one number or an array (m,), got the shape {own.shape}.")
    return 2.0 * np.atleast_1d(own) - 1.0


def _arrays(record, kind):
    """Middle and velocity of the geodesic of a round, and the frame there."""
    stored = record["geodesic"]
    return from_lists(stored["middle"], kind), from_lists(stored["velocity"], kind), from_lists(record["frame"], kind)


def _check_stored(record, first, ball, kind):
    """Refuse what no fit has written."""
    n, scale, dim = record["n"], record["scale"], ball.manifold.dim
    known = scale is None or (isinstance(scale, float) and 0.0 < scale < math.inf)
    same = all(record[name] == first[name] for name in ("manifold", "ball", "n"))
    value = from_lists(record["value"], "float64")
    sound = known and same and first["scale"] is not None and isinstance(n, int) and n >= _LEAST
    parameter = {"pure": "epsilon", "zcdp": "mu"}[record["guarantee"]["kind"]]
    statistic = _STATISTICS[parameter]
    sound &= record["statistic"] == statistic.description and n <= _MOST_RECORDS
    sound &= known and (scale is None or scale < _MOST)
    if not (sound and value.shape == (statistic.numbers(dim),) and np.all(np.abs(value) < _MOST)):
        raise ValueError("another document")
    if scale is not None:
        middle, velocity, frame = _arrays(record, kind)
        AlongGeodesic(middle, velocity, frame, record["geodesic"]["reach"]).checked(ball)


@functools.partial(jax.jit, static_argnums=0)
def _coordinates(manifold, point, vector, frame):
    return manifold.coordinates(point, vector, frame)
