"""A geodesic through released points of times: what it says, its errors, and its file (section 18).

All of it is made of releases, by whoever reads them.
"""

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
from jaxgeodp.compiling import seen_anew
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.files import write_atomically
from jaxgeodp.inference.places import AlongGeodesic, frame_at
from jaxgeodp.inference.population import carried, points_along
from jaxgeodp.inference.residuals import (
    ResidualMatrix,
    ResidualMoments,
    Residuals,
    correction_of,
    jacobi_fields,
    moved,
)
from jaxgeodp.manifolds import Manifold
from jaxgeodp.manifolds.names import manifold_of
from jaxgeodp.nested_lists import from_lists
from jaxgeodp.privacy.release import Release
from jaxgeodp.privacy.silence import silent

#: What is released of residuals, by the privacy parameter.
STATISTICS: dict[str, Residuals] = {"epsilon": ResidualMoments(), "mu": ResidualMatrix()}
#: With fewer records errors are too uncertain to be stated.
LEAST = 10
# Of files: no fit has more.
_MOST, _MOST_RECORDS = 1e100, 2**62


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
        """Return gamma at times (m,), (m, \\*shape).

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
        """Return gamma(0)."""
        return self.predict(0.0)[0]

    @property
    def slope(self) -> np.ndarray:
        """Return the velocity of gamma at time 0, per unit of time, a tangent vector at the intercept."""
        with jax.enable_x64(True):
            ends = jnp.asarray(seen_anew(self.middle)), jnp.asarray(seen_anew(self.intercept))
            own = carried(self.manifold, *ends, jnp.asarray(seen_anew(self.velocity))[None])
        return 2.0 * np.asarray(own[0])

    @property
    def residual_sd(self) -> float:
        """Return the standard deviation of residuals, in each coordinate; see ``residuals``.

        No smaller than what the noise of its square hides: of few records, or a small budget, it is that.
        """
        return math.sqrt(float(np.trace(self.residuals)) / self.manifold.dim)

    @property
    def speed(self) -> float:
        """Return the distance per unit of time, without what noise and sampling alone add to a vector's length.

        Where that is all of it, 0. `no_motion` says whether there is a speed at all.
        """
        own, along = self._of_velocity()
        if not np.all(np.isfinite(own)):
            return 0.0
        return 2.0 * math.sqrt(max(float(along @ along - np.trace(own)), 0.0))

    @property
    def speed_error(self) -> float:
        """Return the standard error of a speed several times as large as it; infinite if times do not tell it.

        For a pure budget residuals are taken to be alike in all directions: it may be sqrt(dim) times as large.
        """
        own, along = self._of_velocity()
        if not np.all(np.isfinite(own)):
            return math.inf
        length = float(np.linalg.norm(along))
        unit = along / (length if length > 0.0 else 1.0)
        variance = unit @ own @ unit if length > 0.0 else np.max(np.linalg.eigvalsh(own))
        return 2.0 * math.sqrt(max(float(variance), 0.0))

    @property
    def no_motion(self) -> float:
        """Return the p-value of a constant geodesic, by Hotelling's test with what noise may hide in directions.

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
        """Return the covariance of the error of the velocity, and the velocity, in the frame."""
        with jax.enable_x64(True):
            arrays = (jnp.asarray(seen_anew(x)) for x in (self.middle, self.velocity, self.frame))
            along = np.asarray(_coordinates(self.manifold, *arrays))
        return self.covariance[self.manifold.dim :, self.manifold.dim :], along

    def standard_error(self, times: ArrayLike) -> np.ndarray:
        """Return the root mean square error of gamma at times (m,).

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
        """Return the fit that `save` wrote.

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
            return fit_of(releases, ball)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
            raise InputError(f"{path}: is not a geodesic regression; name its file.") from None


def standing(ball) -> AlongGeodesic:
    """Return the geodesic that stays at the centre."""
    center = np.asarray(ball.center)
    return AlongGeodesic(center, np.zeros_like(center), frame_at(ball.manifold, center), ball.radius)


def fit_of(releases, ball) -> GeodesicFit:
    """Return the fit; there is one whatever was released."""
    for last in range(len(releases), 0, -1):
        with contextlib.suppress(Exception), silent():  # all has been paid for
            fit = _fit(releases[:last], ball, releases)
            if np.all(np.isfinite(fit.middle)) and np.all(np.isfinite(fit.velocity)):
                return fit
    place, dim = standing(ball), ball.manifold.dim
    unknown, residuals = np.full((2 * dim, 2 * dim), math.inf), np.diag(np.full(dim, math.inf))
    numbers = place.middle, place.velocity, place.frame, unknown, unknown, residuals
    return GeodesicFit(ball.manifold.of_values, *numbers, tuple(releases))


def _fit(releases, ball, everything) -> GeodesicFit:
    """Return the fit by the last of the given rounds that could be computed."""
    last = next(own for own in reversed(releases) if own.record["scale"] is not None)
    record, manifold = last.record, ball.manifold
    kind = "complex128" if manifold.dtype_kind == "complex" else "float64"
    geodesic = record["geodesic"]
    middle, velocity, frame = _arrays(record, kind)
    scale = record["scale"] * (math.sqrt(2.0) if record["guarantee"]["kind"] == "pure" else 1.0)
    fields = jacobi_fields(manifold, middle, velocity, frame)
    statistic = next(own for own in STATISTICS.values() if own.description == record["statistic"])
    correction = correction_of(statistic, manifold.dim, last.value, scale, geodesic["reach"], record["n"], fields)
    there, turned = moved(middle, velocity, frame, correction, ball)
    with jax.enable_x64(True):
        basis = np.asarray(carried(manifold, jnp.asarray(middle), jnp.asarray(there), jnp.asarray(frame)))
    spread = correction.residuals
    both = correction.covariance, correction.widest
    return GeodesicFit(manifold.of_values, there, turned, basis, *both, spread, tuple(everything))


def _places(times) -> np.ndarray:
    """Return s = 2 t - 1 of times (m,), or of one."""
    try:
        own = np.asarray(times, float)
    except (TypeError, ValueError):
        raise InputError("GeodesicFit: times must be one number or an array (m,) of numbers.") from None
    if own.ndim > 1:
        raise InputError(f"GeodesicFit: times must be one number or an array (m,), got the shape {own.shape}.")
    return 2.0 * np.atleast_1d(own) - 1.0


def _arrays(record, kind):
    """Return middle and velocity of the geodesic of a round, and the frame there."""
    stored = record["geodesic"]
    return from_lists(stored["middle"], kind), from_lists(stored["velocity"], kind), from_lists(record["frame"], kind)


def _check_stored(record, first, ball, kind):
    """Refuse a record that no fit has written."""
    n, scale, dim = record["n"], record["scale"], ball.manifold.dim
    known = scale is None or (isinstance(scale, float) and 0.0 < scale < math.inf)
    same = all(record[name] == first[name] for name in ("manifold", "ball", "n"))
    value = from_lists(record["value"], "float64")
    sound = known and same and first["scale"] is not None and isinstance(n, int) and n >= LEAST
    parameter = {"pure": "epsilon", "zcdp": "mu"}[record["guarantee"]["kind"]]
    statistic = STATISTICS[parameter]
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
