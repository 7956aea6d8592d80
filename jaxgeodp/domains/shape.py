"""The shape in which records are expected to differ from a public point: an ellipsoid of its tangent space.

See docs/mathematics.md, section 20 (Theorem Y).
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxgeodp.checks import InputError, epsilon_or_mu, positive_integer, positive_number
from jaxgeodp.compiling import COMPILED_SOON
from jaxgeodp.domains.ellipsoid import Ellipsoid, Populations, least_error, supposed_populations
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.manifolds.smoothness import smoothness
from jaxgeodp.pytrees import Pytree

#: A larger ratio of the lengths of an ellipsoid's axes costs too many digits.
LARGEST_CONDITION = 1e3
# How far private means are supposed to be from the point, and records from their mean, in units of the radius.
_OFFSET, _SPREAD = 1.0 / 3.0, 0.5
# Of words for records, in characters; of numbers, beyond which squares leave double precision; of powers.
_LONGEST, _LARGEST, _STEEPEST = 200, 1e30, 20.0


@final
@dataclasses.dataclass(frozen=True, eq=False)
class Shape(Pytree, leaves=("point", "vectors", "clip", "gains")):
    """An ellipsoid about a public point: in which directions, and how far, records are expected to differ from it.

    The vectors are the columns of a matrix D. Of a record x the coordinates z of its logarithm at the point are taken,
    for which D z is nearest to it, and shortened to ``clip``. Their mean gets noise that is alike in all directions,
    each coordinate is multiplied by its gain, and D maps it back. Directions that no vector has stay as they are at
    the point. The radius of the ball then clips no record: ``clip`` does.

    All of it is public and must not be made of private records: that is supposed, and the record of a release says so.

    Args:
        point: array of the shape of a point: the centre of the ball that it is used with.
        vectors: (k, \\*shape of a point), k tangent vectors at the point, linearly independent, 1 <= k <= dimension.
        clip: how long z may be, above 0.
        gains: (k,) or one number, in (0, 1]: below 1 a released mean is drawn towards the point where noise is larger
            than what it is expected to differ from it.
        source: where it comes from, in words, for records.
        expected: how far a release is expected to be from the mean (root mean square), by what it was designed from.

    Raises:
        ValueError: shapes that do not fit, a number that is not finite, or a clip or a gain out of range. Whether the
            vectors are tangent and independent is seen where there is a manifold: by the mechanism.

    Example:
        >>> import jax, numpy as np
        >>> from jaxgeodp import Euclidean, GeodesicBall, Shape, TangentGaussian
        >>> ball = GeodesicBall(Euclidean(2), [0.0, 0.0], 1.0)
        >>> shape = Shape(ball.center, [[1.0, 0.0], [0.0, 0.1]], clip=1.0)
        >>> draws = TangentGaussian(ball, 1.0, shape).simulate(jax.random.key(0), np.zeros((100, 2)), 500)
        >>> [round(float(noise), 3) for noise in np.std(draws, axis=0)]
        [0.02, 0.002]
    """

    point: Any
    vectors: Any
    clip: float
    gains: Any = 1.0
    source: str = "given"
    expected: float | None = None

    def __post_init__(self):
        for field in ("point", "vectors", "gains"):
            try:
                given = np.asarray(getattr(self, field))
            except ValueError:  # of lists of several lengths
                given = np.asarray("")
            if given.dtype.kind not in "biufc":
                raise InputError(f"Shape: {field} must be an array of numbers.")
            kept = np.array(given, complex if given.dtype.kind == "c" else float)
            if not np.isfinite(kept).all():
                raise InputError(f"Shape: {field} must hold finite numbers.")
            kept.setflags(write=False)
            object.__setattr__(self, field, kept)
        shape = self.point.shape
        if self.vectors.ndim != self.point.ndim + 1 or self.vectors.shape[1:] != shape or len(self.vectors) == 0:
            raise InputError(
                f"Shape: vectors must have shape (k, {', '.join(map(str, shape))}), as the point has shape {shape}; "
                f"got {self.vectors.shape}."
            )
        if self.gains.shape not in ((), (len(self.vectors),)) or self.gains.dtype.kind == "c":
            raise InputError(f"Shape: gains must be one number, or one for each of {len(self.vectors)} vectors.")
        if not np.all((self.gains > 0.0) & (self.gains <= 1.0)):
            raise InputError("Shape: gains must be in (0, 1].")
        positive_number("Shape", "clip", self.clip)
        object.__setattr__(self, "clip", float(self.clip))
        if not isinstance(self.source, str) or len(self.source) > _LONGEST:
            raise InputError(f"Shape: source must be a text of at most {_LONGEST} characters.")
        if self.expected is not None:
            positive_number("Shape", "expected", self.expected)
            object.__setattr__(self, "expected", float(self.expected))

    @classmethod
    def smooth(
        cls,
        manifold: Manifold,
        point: ArrayLike,
        n: int,
        *,
        radius: float,
        offset: float | None = None,
        power: float = 1.5,
        epsilon: float | None = None,
        mu: float | None = None,
    ) -> "Shape":
        """Return the shape of smooth deformations, for which nobody's data are needed.

        On planar shapes whose landmarks follow each other at about equal distances, outlines, these are Fourier modes
        along the outline, with standard deviations (1 + frequency)^-power; on other landmarks the principal warps of
        the template, by their bending energy (Bookstein 1989); on SPD matrices the trace and all else have half of the
        variance each. Elsewhere all directions are alike, and clip and gains are what is gained: on a sphere nothing
        public tells one direction from another, but public groups may (`from_groups`). Records are supposed to differ
        from their mean by half of the radius, root mean square. Number of vectors, clip and gains have about the least
        expected error for that.

        Args:
            manifold: of the records.
            point: public, the centre of the ball.
            n: number of records, or a public guess of it.
            radius: of the ball.
            offset: how far the mean may be from the point, root mean square; a third of the radius by default.
            power: how much smoother; see above.
            epsilon: or
            mu: the privacy parameter of the release that it is for.

        Raises:
            ValueError: a number is out of range, not one privacy parameter, or the point is none of the manifold.
        """
        _in_range("Shape.smooth", "radius", radius, _LARGEST)
        _in_range("Shape.smooth", "power", power, _STEEPEST)
        offset = _OFFSET * radius if offset is None else offset
        _in_range("Shape.smooth", "offset", offset, _LARGEST)
        strength, pure = _strength("Shape.smooth", epsilon, mu)
        ball = GeodesicBall(manifold, point, radius)
        with jax.enable_x64(True):
            covariance, words = smoothness(manifold, np.asarray(ball.center), power)
        populations = supposed_populations(covariance, offset, _SPREAD * radius)
        found = least_error(populations, _count("Shape.smooth", n), strength, pure, LARGEST_CONDITION**4)
        return cls._of(ball, found, words)

    @classmethod
    def from_groups(
        cls,
        manifold: Manifold,
        point: ArrayLike,
        groups: Sequence[ArrayLike],
        n: int,
        *,
        centers: Sequence[ArrayLike] | None = None,
        epsilon: float | None = None,
        mu: float | None = None,
    ) -> "Shape":
        """Return the shape in which public groups of records, such as earlier studies, differ from their known centres.

        The ellipsoid has the fourth root of the second moment of their logarithms at their centres, carried to the
        point. Number of vectors, clip and gains have the least error for n records of groups like these, on average
        over the groups. Of one group alone nothing is known of how far means lie off: it has all its directions and no
        gains.

        Args:
            manifold: of the records.
            point: public, the centre of the ball.
            groups: each (m, \\*shape), public records.
            n: number of private records, or a public guess of it.
            centers: what was known of each group before, as the point is of the private one; the point by default.
            epsilon: or
            mu: the privacy parameter of the release that it is for.

        Raises:
            ValueError: no group, a group without two points of the manifold, another number of centres, or see
                `smooth`.
        """
        name = "Shape.from_groups"
        strength, pure = _strength(name, epsilon, mu)
        if not isinstance(groups, Sequence) or not groups:
            raise InputError(f"{name}: groups must be a list of arrays of public records, at least one.")
        if centers is not None and len(centers) != len(groups):
            raise InputError(f"{name}: needs a centre for each of {len(groups)} groups, or None.")
        manifold = manifold.whole
        ball = GeodesicBall(manifold, point, 1.0)
        abouts = [ball] * len(groups) if centers is None else [GeodesicBall(manifold, own, 1.0) for own in centers]
        with jax.enable_x64(True):
            vectors = [
                _about(name, manifold, own, np.asarray(about.center), np.asarray(ball.center))
                for own, about in zip(groups, abouts, strict=True)
            ]
        found = least_error(Populations.of(vectors), _count(name, n), strength, pure, LARGEST_CONDITION**4)
        many = "one public group" if len(groups) == 1 else f"{len(groups)} public groups"
        return cls._of(ball, found, f"{many} of {sum(map(len, vectors))} records")

    @classmethod
    def _of(cls, ball: GeodesicBall, found: Ellipsoid, source: str) -> "Shape":
        with jax.enable_x64(True):
            center = np.asarray(ball.center)
            vectors = np.asarray(_combined(ball.manifold, center, found.columns.T))
        return cls(center, vectors, found.clip, found.gains, source, found.expected)


def carried_vectors(ball: GeodesicBall, vectors) -> jax.Array:
    """Return tangent vectors at the ball's centre, carried with it to the origin."""
    center = jnp.asarray(ball.center)

    def one(vector):
        own = ball.manifold.to_tangent(center, vector.astype(center.dtype))
        return jax.jvp(ball.to_home, (center,), (own,))[1]

    return jax.vmap(one)(vectors)


def _strength(owner, epsilon, mu) -> tuple[float, bool]:
    parameter, strength = epsilon_or_mu(owner, epsilon, mu)
    _in_range(owner, parameter, strength, _LARGEST)
    return float(strength), parameter == "epsilon"


def _count(owner, n) -> int:
    positive_integer(owner, "n", n, 2)
    if n > _LARGEST:
        raise InputError(f"{owner}: n must be at most {_LARGEST:g}.")
    return int(n)


def _in_range(owner, name, number, most):
    positive_number(owner, name, number)
    if not 1.0 / most <= number <= most:
        raise InputError(f"{owner}: {name} must be between {1.0 / most:g} and {most:g}, got {number:g}.")


def _about(owner, manifold, records, center, point) -> np.ndarray:
    """Return coordinates (m, d) of public records about their centre, in the frame at the point."""
    try:
        records = np.asarray(manifold.as_points(np.asarray(records)))
    except (TypeError, ValueError):
        records = np.zeros(0)
    if records.shape[1:] != manifold.shape or records.ndim != len(manifold.shape) + 1:
        raise InputError(f"{owner}: a group must have shape (m, {', '.join(map(str, manifold.shape))}).")
    records = records[np.asarray(jax.vmap(manifold.admissible)(records))].astype(center.dtype)
    if len(records) < 2:
        raise InputError(f"{owner}: a group needs at least two points of {manifold}.")
    found = np.asarray(_coordinates(manifold, center, point, records))
    found = found[np.isfinite(found).all(axis=1)]
    if len(found) < 2 or not np.max(np.abs(found)) > 1.0 / _LARGEST:
        raise InputError(
            f"{owner}: the records of a group all equal its centre, or lie opposite to it; leave this group out."
        )
    return found


@functools.partial(jax.jit, static_argnums=0, compiler_options=COMPILED_SOON)
def _coordinates(manifold, center, point, records):
    frame = manifold.frame(point)

    def one(x):
        own = manifold.log(center, manifold.project(x))
        return manifold.coordinates(point, manifold.transport(center, point, own), frame)

    return jax.vmap(one)(records)


@functools.partial(jax.jit, static_argnums=0, compiler_options=COMPILED_SOON)
def _combined(manifold, point, coordinates):
    frame = manifold.frame(point)
    return jax.vmap(lambda own: manifold.combine(own, frame))(coordinates)
