"""Kendall's shapes of k landmarks in space modulo translation, size and rotation.

A shape is represented by a centred (k, 3) matrix X of Frobenius norm 1, up to X -> XR with a rotation R. With R the
rotation that brings YR nearest to X, M = X'YR is symmetric with eigenvalues l1 >= l2 >= |l3|, the distance is the angle
between X and YR, and the rotation is the only one if l2 + l3 > 0. Tangent vectors are horizontal: centred, orthogonal
to X, and with X'V symmetric.

Shapes whose landmarks lie on one line are singular. phi(X) = arccos s1, s1 the largest singular value of X, is how far
they are; curvature is at most 1 + 3/sin(phi)^2 and geodesics are minimal up to phi(X) (docs/mathematics.md, section 22;
Le & Kendall 1993). What theorems need is thus known in a ball only, of which `Shapes3D.within` tells the clearance.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from typing_extensions import override

from jaxgeodp.checks import InputError, number_between, positive_integer
from jaxgeodp.manifolds.analytic import angle_over_sine, cos_sqrt, sinc_sqrt, squared_angle
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.manifolds.operations import fact, operation
from jaxgeodp.manifolds.radial import tangent_line
from jaxgeodp.manifolds.rotations import nearest_rotation

# Of configurations of norm 1: a spread about a point, or about a line, below this is none.
_COINCIDENT = 1e-9
# Runge-Kutta steps of parallel transport along a geodesic.
_STEPS = 16
# A clearance is rounded down to a multiple of this.
_GRID = 1e-6
# Candidates of `random_point`, which takes the one farthest from collinear.
_CANDIDATES = 8


@dataclasses.dataclass(frozen=True)
class Shapes3D(Manifold):
    """Kendall's shapes of landmarks in space; points are arrays of shape (landmarks, 3).

    A shape is a centred configuration of norm 1, up to rotation; mirror images differ. The distance is the angle
    between two of them, at most pi/2. Near configurations on a line curvature is unbounded: theorems hold in a public
    ball that keeps a *clearance* from them, which `GeodesicBall` finds by itself, and has the manifold with it.

    Args:
        landmarks: k, at least 4. (Three are always in a plane; use `PlanarShapes`.)
        clearance: c, a lower bound of phi(x) = arccos(largest singular value) over the points for which facts are
            needed, in (0, pi/2); None where it is not known, and then curvature and injectivity radius are not. A ball
            that comes nearer has its own.

    Raises:
        ValueError: ``landmarks`` is not an integer of at least 4, or the clearance is out of range.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp import GeodesicBall, Shapes3D
        >>> template = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0]])
        >>> ball = GeodesicBall(Shapes3D(5), Shapes3D(5).from_landmarks(template), 0.1)
        >>> ball.manifold
        Shapes3D(5, clearance=...)
    """

    landmarks: int
    clearance: float | None = None

    landmark_dimension = 3
    diameter = math.pi / 2

    def __post_init__(self):
        positive_integer("Shapes3D", "landmarks", self.landmarks, minimum=4)
        if self.clearance is not None:
            given = number_between("Shapes3D", "clearance", self.clearance, 0.0, math.pi / 2)
            if not given > 0.0:
                raise InputError(f"Shapes3D: clearance must be above 0, got {self.clearance!r}.")
            object.__setattr__(self, "clearance", given)

    def __repr__(self):
        known = "" if self.clearance is None else f", clearance={self.clearance:g}"
        return f"Shapes3D({self.landmarks}{known})"

    @fact
    def dim(self) -> int:
        """3 landmarks - 7."""
        return 3 * self.landmarks - 7

    @fact
    def shape(self) -> tuple[int, ...]:
        """(landmarks, 3)."""
        return (self.landmarks, 3)

    @fact
    def origin(self) -> np.ndarray:
        """Landmarks spread over a sphere (Fibonacci), stretched so that all singular values are equal."""
        steps = np.arange(self.landmarks) + 0.5
        height, turn = 1.0 - 2.0 * steps / self.landmarks, np.pi * (1.0 + math.sqrt(5.0)) * steps
        around = np.sqrt(1.0 - height**2)
        places = np.stack([around * np.cos(turn), around * np.sin(turn), height], axis=1)
        left, _, right = np.linalg.svd(places - places.mean(axis=0), full_matrices=False)
        return (left @ right) / math.sqrt(3.0)

    @fact
    def curvature_bounds(self) -> tuple[float, float]:
        """(1, 1 + 3/sin(clearance)^2)."""
        return (1.0, math.inf if self.clearance is None else 1.0 + 3.0 / math.sin(self.clearance) ** 2)

    @fact
    def injectivity_radius(self) -> float:
        """Return the clearance; 0 if unknown."""
        return self.clearance or 0.0

    @property
    @override
    def whole(self):
        return Shapes3D(self.landmarks)

    @override
    def within(self, center, radius):
        found = self._phi(np.asarray(center)) - radius
        known = round(math.floor(found / _GRID - 0.5) * _GRID, 6)
        if self.clearance is not None:
            known = min(known, self.clearance)
        return Shapes3D(self.landmarks, known) if known > 0.0 else self.whole

    @override
    def radius_of_facts(self, center):
        if self.clearance is None:
            return 0.0
        # Within a program nothing is known of the centre: what makes the law looks there before.
        return math.inf if isinstance(center, Tracer) else self._phi(np.asarray(center)) - self.clearance

    @staticmethod
    def _phi(point) -> float:
        """Return the distance to the collinear configurations."""
        values = np.linalg.svd(point, compute_uv=False)
        return math.atan2(math.hypot(*values[1:]), values[0])

    def from_landmarks(self, xyz):
        """Return the shape of real landmarks of shape (..., landmarks, 3); NaN if all of them coincide.

        Raises:
            ValueError: another shape, or complex numbers.
        """
        given = jnp.asarray(xyz)
        if given.shape[-2:] != self.shape or jnp.iscomplexobj(given):
            raise InputError(
                f"{self}.from_landmarks: xyz must be real numbers of shape (..., {self.landmarks}, 3), got "
                f"{given.dtype} numbers of shape {given.shape}."
            )
        given = given.astype(jnp.promote_types(jnp.result_type(given, float), jnp.float32))
        return jax.vmap(self.project)(given.reshape(-1, *self.shape)).reshape(given.shape)

    # Metric and maps --------------------------------------------------------------------------------

    @operation
    def inner(self, point, u, v) -> jax.Array:
        """Return ``tr(u'v)``."""
        return jnp.sum(u * v)

    @operation
    def exp(self, point, tangent) -> jax.Array:
        """Return ``cos|v| x + sin|v| v/|v|``."""
        squared = jnp.sum(tangent**2)
        return cos_sqrt(squared) * point + sinc_sqrt(squared) * tangent

    @operation
    def log(self, p, q) -> jax.Array:
        """Return ``theta/sin(theta) (qR - cos(theta) p)``; not unique where the aligning rotation R is not."""
        perpendicular, cosine = self._split(p, q)
        return self.to_tangent(p, angle_over_sine(jnp.sum(perpendicular**2), cosine) * perpendicular)

    @operation
    def squared_dist(self, p, q) -> jax.Array:
        """Return ``theta^2`` with theta by atan2 of (sine, cosine)."""
        perpendicular, cosine = self._split(p, q)
        return squared_angle(jnp.sum(perpendicular**2), cosine)

    @operation
    def transport(self, p, q, tangent) -> jax.Array:
        """Solve ``V' = G a - <V, g> G`` along the geodesic G of velocity g, with a skew and V horizontal.

        By the Runge-Kutta method: right to about 1e-9 within the injectivity radius.
        """
        turn = self._turn(p, q)
        along = self.log(p, q)

        def change(time, carried):
            here = self.exp(p, time * along)
            squared = time**2 * jnp.sum(along**2)
            velocity = cos_sqrt(squared) * along - time * jnp.sum(along**2) * sinc_sqrt(squared) * p
            turned = here @ _spin(here.T @ here, carried.T @ velocity - velocity.T @ carried)
            return turned - jnp.sum(carried * velocity) * here

        size = 1.0 / _STEPS

        def step(carried, start):
            one = change(start, carried)
            two = change(start + 0.5 * size, carried + 0.5 * size * one)
            three = change(start + 0.5 * size, carried + 0.5 * size * two)
            four = change(start + size, carried + size * three)
            return carried + size / 6.0 * (one + 2.0 * two + 2.0 * three + four), None

        starts = size * jnp.arange(_STEPS, dtype=tangent.dtype)
        return self.to_tangent(q, jax.lax.scan(step, tangent, starts)[0] @ turn.T)

    @operation
    def _turn(self, p, q) -> jax.Array:
        """Return a rotation R for which ``qR`` is nearest to p."""
        return nearest_rotation(q.T @ p)[0]

    def _split(self, p, q) -> tuple[jax.Array, jax.Array]:
        """Return the part of ``qR`` orthogonal to p, and the cosine."""
        aligned = q @ self._turn(p, q)
        cosine = jnp.sum(p * aligned)
        return aligned - cosine * p, cosine

    def aligned(self, point, x):
        """Return ``x`` rotated to be nearest to ``point``."""
        return x @ self._turn(point, x)

    # Points and vectors -----------------------------------------------------------------------------

    @operation
    def project(self, x) -> jax.Array:
        """Return ``x`` centred and scaled to norm 1; NaN if all landmarks coincide."""
        scaled = x / jnp.maximum(jnp.max(jnp.abs(x)), jnp.finfo(x.dtype).tiny)
        centred = scaled - jnp.mean(scaled, axis=0)
        size = jnp.sqrt(jnp.sum(centred**2))
        centred = centred / jnp.where(size > _coincidence(x), size, jnp.nan)
        centred = centred - jnp.mean(centred, axis=0)  # of a configuration far from the origin
        return centred / jnp.sqrt(jnp.sum(centred**2))

    @operation
    def to_tangent(self, point, v) -> jax.Array:
        """Return ``v`` centred, minus its parts along x and along ``x a``, a skew."""
        centred = v - jnp.mean(v, axis=0)
        centred = centred - jnp.sum(point * centred) * point
        turned = point.T @ centred
        return centred - point @ _spin(point.T @ point, turned - turned.T)

    @operation
    def retract(self, p, v) -> jax.Array:
        """Return ``(p + v)/|p + v|``."""
        return self.project(p + v)

    @operation
    def riemannian_from_ambient(self, p, g) -> jax.Array:
        """Return the tangential part of g."""
        return self.to_tangent(p, g)

    @operation
    def deviation(self, x) -> jax.Array:
        """Return the larger of the norm of the mean and the error of ``|x|^2/2``."""
        off_centre = jnp.sqrt(jnp.sum(jnp.sum(x, axis=0) ** 2) / self.landmarks)
        return jnp.maximum(off_centre, 0.5 * jnp.abs(jnp.sum(x**2) - 1.0))

    @operation
    def admissible(self, x) -> jax.Array:
        """Return whether the landmarks are finite and not collinear."""
        point = self.project(x)
        lengths = jnp.sum(point**2, axis=1)
        along = point[jnp.argmax(lengths)] / jnp.sqrt(jnp.max(lengths))
        across = point - jnp.outer(point @ along, along)
        return jnp.all(jnp.isfinite(point)) & (jnp.sum(across**2) > _coincidence(x) ** 2)

    @operation
    def frame(self, point) -> jax.Array:
        """Return the complement of translations, x and its rotations, by Householder reflections."""
        point = jax.lax.stop_gradient(point)
        ones, x = jnp.ones((self.landmarks, 1), point.dtype), point
        zero = jnp.zeros_like(x[:, 0])
        spins = [(zero, -x[:, 2], x[:, 1]), (x[:, 2], zero, -x[:, 0]), (-x[:, 1], x[:, 0], zero)]
        across = [*(ones * axis for axis in jnp.eye(3, dtype=x.dtype)), x, *(jnp.stack(spin, axis=1) for spin in spins)]
        columns = jnp.stack([own.reshape(-1) for own in across], axis=1)
        whole = jnp.linalg.qr(columns, mode="complete")[0]
        return whole[:, len(across) :].T.reshape(self.dim, *self.shape)

    def coordinates(self, point, tangent, frame) -> jax.Array:
        """Return one matrix product, as the inner product does not depend on the point."""
        return frame.reshape(self.dim, -1) @ tangent.reshape(-1)

    @operation
    def random_tangent(self, key, point) -> jax.Array:
        """Draw a standard normal array, projected onto the tangent space."""
        return self.to_tangent(point, jax.random.normal(key, self.shape, real_dtype(point)))

    @operation
    def random_point(self, key) -> jax.Array:
        """Draw normal landmarks: of eight configurations, the one farthest from collinear."""
        points = jax.vmap(self.project)(jax.random.normal(key, (_CANDIDATES, *self.shape)))
        spreads = jax.vmap(lambda x: jnp.sum((x.T @ x) ** 2))(points)
        return points[jnp.argmin(spreads)]

    # Volume -----------------------------------------------------------------------------------------

    @operation
    def log_det_exp(self, point, tangent) -> jax.Array:
        """Return the log-determinant of the sphere and of the quotient (docs/mathematics.md, section 22).

        ``(d-1) log(sin t/t) + log det(cos t - X'Y) - (log det(1 - X'X) + log det(1 - Y'Y))/2`` with Y = exp(v); minus
        infinity from t = pi/2 on, and where another rotation brings Y nearer to X.
        """
        squared = jnp.sum(tangent**2)
        end = self.exp(point, tangent)
        between = cos_sqrt(squared) * jnp.eye(3, dtype=point.dtype) - point.T @ end
        determinant = _determinant(between)
        minors = jnp.trace(between) ** 2 - jnp.sum(between * between.T)
        minimal = (squared < (math.pi / 2) ** 2) & (determinant > 0) & (minors > 0) & (jnp.trace(between) > 0)
        spins = jnp.log(jnp.where(minimal, determinant, 1.0))
        ends = jnp.log(_determinant(_inertia(point.T @ point))) + jnp.log(_determinant(_inertia(end.T @ end)))
        radial = self._radial_log_det(jnp.where(minimal, squared, 0.0))
        return jnp.where(minimal, radial + spins - 0.5 * jnp.where(minimal, ends, 0.0), -jnp.inf)

    def volume_envelope(self, lower, upper) -> tuple[jax.Array, jax.Array]:
        """Return the tangent at the middle of the sphere's log-determinant, a concave upper bound."""
        return tangent_line(lambda t: self._radial_log_det(t**2), lower, upper)

    def _radial_log_det(self, squared: jax.Array) -> jax.Array:
        inside = squared < (math.pi / 2) ** 2
        return jnp.where(inside, (self.dim - 1) * jnp.log(sinc_sqrt(jnp.where(inside, squared, 1.0))), -jnp.inf)


def _coincidence(x) -> float:
    return max(_COINCIDENT, 16.0 * float(jnp.finfo(x.dtype).eps))


def _inertia(second):
    """Return ``tr(S) 1 - S``, which maps the rotation vector of skew a to that of ``a S + S a``."""
    return jnp.trace(second) * jnp.eye(3, dtype=second.dtype) - second


def _spin(second, skew) -> jax.Array:
    """Return the skew matrix a with ``a S + S a = skew``, by Cramer's rule, which batches well."""
    x, y, z = _inertia(second)
    cofactors = jnp.stack([jnp.cross(y, z), jnp.cross(z, x), jnp.cross(x, y)])
    vector = jnp.stack([skew[2, 1], skew[0, 2], skew[1, 0]])
    a, b, c = cofactors @ vector / jnp.sum(x * cofactors[0])
    zero = jnp.zeros_like(a)
    return jnp.array([[zero, -c, b], [c, zero, -a], [-b, a, zero]])


def _determinant(matrix):
    return jnp.sum(matrix[0] * jnp.cross(matrix[1], matrix[2]))
