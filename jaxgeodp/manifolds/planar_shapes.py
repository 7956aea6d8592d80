"""Kendall's planar shapes: k landmarks in the plane modulo translation, scale and rotation.

A shape is represented by a complex vector of length k, centred and of unit norm, up to a common phase: a
point of complex projective space CP^{k-2} with the Fubini-Study metric. With <x, y> = y* x, the
representative e^{ia} y with x* e^{ia} y = |x* y| is *aligned* to x, theta = dist(x, y) is the angle between
them (at most pi/2), and ``log_x(y) = theta/sin(theta) (aligned y - cos(theta) x)``. Tangent vectors are
horizontal: centred and with x* v = 0. Multiplication by i is the complex structure J: planes spanned by
u and Ju have curvature 4, planes through u orthogonal to Ju have curvature 1.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.manifolds.analytic import (
    angle_over_sine,
    angle_over_sine_of_cosine,
    cos_sqrt,
    safe_sqrt,
    sinc_sqrt,
    squared_angle,
)
from jaxgeodp.manifolds.hermitian import hermitian_matrix, hermitian_vector
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.manifolds.newton import NewtonMoments
from jaxgeodp.manifolds.operations import fact, operation
from jaxgeodp.manifolds.radial import tangent_line

# Landmarks whose spread is below this fraction of their size coincide: they have no shape.
_COINCIDENT = 1e-9
# C^32: trace powers overestimate the largest of d eigenvalues by at most d^(1/32), 15 % at d = 96.
_SQUARINGS = 5
# The mean curvature of the objective is bounded from below before it divides a step.
_SMALLEST_CURVATURE = 0.3
# Below this square, (1 - t cot t)/t^2 is a polynomial in t^2 to rounding: its coefficients, the highest first.
_SMALL_SQUARE = 0.01
_ONE_LESS_COT = (2 / 93555, 1 / 4725, 2 / 945, 1 / 45, 1 / 3)


@dataclasses.dataclass(frozen=True)
class PlanarShapes(Manifold):
    """Kendall's shapes of landmarks in the plane; points are complex arrays of shape (landmarks,).

    A shape is a centred vector of norm 1, up to a common phase; the distance is the angle between two of them, at most
    pi/2 (complex projective space with the Fubini-Study metric). Real landmarks become shapes by `from_landmarks`.

    Args:
        landmarks: k, at least 3.

    Raises:
        ValueError: ``landmarks`` is not an integer of at least 3.
    """

    landmarks: int

    dtype_kind = "complex"
    landmark_dimension = 2
    homogeneous = True
    injectivity_radius = math.pi / 2
    diameter = math.pi / 2
    transverse_curvature = 1.0

    def __post_init__(self):
        positive_integer("PlanarShapes", "landmarks", self.landmarks, minimum=3)

    @fact
    def dim(self) -> int:
        """2 landmarks - 4."""
        return 2 * self.landmarks - 4

    @fact
    def curvature_trace(self) -> float:
        """Return the Ricci curvature dim + 2: dim - 2 planes of curvature 1 and one of curvature 4."""
        return self.dim + 2.0

    @fact
    def ricci_bound(self) -> float:
        """Return the Ricci curvature, dim + 2 in all directions."""
        return self.curvature_trace

    @fact
    def shape(self) -> tuple[int, ...]:
        """(landmarks,)."""
        return (self.landmarks,)

    @fact
    def origin(self) -> np.ndarray:
        """Return the regular polygon, counter-clockwise from the positive real axis."""
        return np.exp(2j * np.pi * np.arange(self.landmarks) / self.landmarks) / math.sqrt(self.landmarks)

    @fact
    def curvature_bounds(self) -> tuple[float, float]:
        """(1, 4); (4, 4) for triangles, whose shapes form a sphere of radius 1/2."""
        return (1.0 if self.landmarks > 3 else 4.0, 4.0)

    def as_points(self, array):
        """Return real landmarks (..., landmarks, 2) as complex (..., landmarks), unprojected; others unchanged.

        No array is both: a shape has at least 3 landmarks.
        """
        if array.shape[-2:] != (self.landmarks, 2) or array.dtype.kind not in "iuf":
            return array
        if isinstance(array, jax.Array):
            xy = array.astype(jnp.promote_types(jnp.result_type(array, float), jnp.float32))
            return jax.lax.complex(xy[..., 0], xy[..., 1])
        xy = np.ascontiguousarray(array, np.result_type(array.dtype, np.float32))
        return xy.view(np.result_type(xy.dtype, np.complex64))[..., 0]

    def from_landmarks(self, xy):
        """Return the shape of real landmarks of shape (..., landmarks, 2); NaN if all landmarks coincide.

        Raises:
            ValueError: another shape, or complex numbers.
        """
        return self._projected(jnp.asarray(xy))

    @operation
    def _projected(self, xy):
        configurations = self.as_points(xy)
        if configurations is xy:
            raise InputError(
                f"{self}.from_landmarks: xy must be real numbers of shape (..., {self.landmarks}, 2), got {xy.dtype} "
                f"numbers of shape {xy.shape}."
            )
        return jax.vmap(self.project)(configurations.reshape(-1, self.landmarks)).reshape(xy.shape[:-1])

    def to_landmarks(self, point):
        """Return real landmarks (..., landmarks, 2) of shapes (..., landmarks), without aligning them."""
        return jnp.stack([jnp.real(point), jnp.imag(point)], axis=-1)

    @fact
    def extrinsic_radius(self) -> float:
        """Frobenius norm of the traceless rank-1 projector on C^(landmarks - 1)."""
        return math.sqrt(1.0 - 1.0 / (self.landmarks - 1))

    def extrinsic(self, point):
        """Return ``w w* - 1/(landmarks - 1)``, with w the landmarks in a basis of centred configurations."""
        line = jnp.asarray(self._centred, point.dtype) @ point
        return hermitian_vector(jnp.outer(line, jnp.conj(line)) - jnp.eye(len(line)) / len(line))

    def from_extrinsic(self, vector):
        """Return the eigenvector of the largest eigenvalue (the extrinsic mean of Kent 1992)."""
        matrix = hermitian_matrix(vector, self.landmarks - 1)
        return self.project(jnp.asarray(self._centred.T, matrix.dtype) @ jnp.linalg.eigh(matrix)[1][:, -1])

    @functools.cached_property
    def _centred(self):
        """Orthonormal rows (landmarks - 1, landmarks), orthogonal to constant vectors."""
        return np.linalg.svd(np.ones((1, self.landmarks)))[2][1:]

    @operation
    def inner(self, point, u, v) -> jax.Array:
        """Return ``Re(u* v)``."""
        return jnp.real(jnp.vdot(u, v))

    @operation
    def exp(self, point, tangent) -> jax.Array:
        """Return ``cos|v| x + sin|v| v/|v|``."""
        squared = jnp.real(jnp.vdot(tangent, tangent))
        return cos_sqrt(squared) * point + sinc_sqrt(squared) * tangent

    @operation
    def log(self, p, q) -> jax.Array:
        """Return ``theta/sin(theta) (aligned q - cos(theta) p)``; q is not aligned where p* q = 0."""
        overlap, perpendicular, sine_squared, cosine = self._angle(p, q)
        phase = jnp.where(cosine > 0, jnp.conj(overlap), 1.0) / jnp.where(cosine > 0, cosine, 1.0)
        return self.to_tangent(p, angle_over_sine(sine_squared, cosine) * phase * perpendicular)

    @operation
    def squared_dist(self, p, q) -> jax.Array:
        """Return ``theta^2`` with theta by atan2 of (sine, cosine)."""
        _, _, sine_squared, cosine = self._angle(p, q)
        return squared_angle(sine_squared, cosine)

    @operation
    def transport(self, p, q, tangent) -> jax.Array:
        """Return ``v - (q* v)/(1 + cos theta) (p + q)`` for aligned q, turned back to the given q."""
        overlap = jnp.vdot(p, q)
        cosine = safe_sqrt(jnp.real(overlap * jnp.conj(overlap)))
        phase = overlap / jnp.where(cosine > 0, cosine, 1.0)
        aligned = jnp.conj(phase) * q
        return phase * (tangent - jnp.vdot(aligned, tangent) / (1.0 + cosine) * (p + aligned))

    @operation
    def log_moments(self, base, points, weights) -> tuple[jax.Array, jax.Array]:
        """Return the moments by two matrix products: ``points @ conj(x)``, then ``coefficients @ points``."""
        coefficients, squares, _ = self._log_coefficients(base, points)
        return self.to_tangent(base, (weights * coefficients) @ points), weights @ squares

    @operation
    def newton_moments(self, base, points, weights) -> NewtonMoments:
        """Return the moments and a step: the gradient over the Hessian's mean eigenvalue.

        The eigenvalues are ``1``, ``2t cot 2t`` and, dim - 2 times, ``t cot t``.
        """
        coefficients, squares, cosine = self._log_coefficients(base, points)
        ratio = jnp.sqrt(jnp.real(coefficients) ** 2 + jnp.imag(coefficients) ** 2)
        complex_direction = ratio * (2.0 * cosine - 1.0 / jnp.maximum(cosine, 0.5))
        trace = 1.0 + weights @ (complex_direction + (self.dim - 2) * ratio * cosine)
        total = self.to_tangent(base, (weights * coefficients) @ points)
        step = total * self.dim / jnp.maximum(trace, _SMALLEST_CURVATURE * self.dim)
        return NewtonMoments(total, weights @ squares, step, None)

    @operation
    def mean_hessian(self, base, points, weights) -> jax.Array:
        """Return the Hessian from two products of second moments.

        With t the distance, half its square has the Hessian ``t cot t`` but for the direction u of the logarithm,
        where it is 1, and the direction iu, where it is ``2t cot 2t = t cot t - t tan t``.
        """
        coefficients, squares, cosine = self._log_coefficients(base, points)
        transverse = jnp.sqrt(jnp.real(coefficients) ** 2 + jnp.imag(coefficients) ** 2) * cosine
        near = squares < _SMALL_SQUARE
        series = jnp.polyval(jnp.asarray(_ONE_LESS_COT, squares.dtype), squares)
        radial = weights * jnp.where(near, series, (1.0 - transverse) / jnp.where(near, 1.0, squares))
        turned = weights / jnp.maximum(transverse, jnp.finfo(squares.dtype).eps)  # t tan t over t^2
        logs = (coefficients[:, None] * points) @ jnp.conj(self.frame(base)).T
        along, across = jnp.real(logs), jnp.imag(logs)
        moments = (radial[:, None] * along).T @ along - (turned[:, None] * across).T @ across
        return (weights @ transverse) * jnp.eye(self.dim, dtype=along.dtype) + moments

    @operation
    def log_covariance_bound(self, base, points, weights) -> jax.Array:
        """Return ``tr(C^32)^(1/32)`` for the covariance C of the logarithms, by five squarings."""
        coefficients, _, _ = self._log_coefficients(base, points)
        logs = (jnp.sqrt(weights) * coefficients)[:, None] * points
        logs = logs - (logs @ jnp.conj(base))[:, None] * base
        stacked = jnp.concatenate([jnp.real(logs), jnp.imag(logs)], axis=1)
        power = stacked.T @ stacked
        tiny = jnp.finfo(power.dtype).tiny
        log_bound = jnp.zeros((), power.dtype)
        for j in range(_SQUARINGS + 1):
            trace = jnp.maximum(jnp.trace(power), tiny)
            log_bound = log_bound + jnp.log(trace) / 2.0**j
            power = power / trace
            power = power @ power
        return jnp.exp(log_bound)

    complex_space_form = True

    def aligned(self, point, x):
        """Return ``x`` times the phase that makes ``x* point`` real and nonnegative."""
        overlap = jnp.vdot(x, point)
        size = jnp.abs(overlap)
        return x * jnp.where(size > 0, overlap / jnp.where(size > 0, size, 1.0), 1.0)

    def home(self, center) -> jax.Array:
        """Return the regular polygon."""
        return jnp.asarray(self.origin, center.dtype)

    @operation
    def to_home(self, center, point) -> jax.Array:
        """Apply the unitary map that carries the aligned centre to the polygon, in the plane they span."""
        home, phase = self.home(center), self._phase(center)
        return self._turned(phase * center, home, phase * point)

    @operation
    def from_home(self, center, point) -> jax.Array:
        """Apply the inverse unitary map."""
        home, phase = self.home(center), self._phase(center)
        return jnp.conj(phase) * self._turned(home, phase * center, point)

    def _phase(self, center):
        """Return the phase that aligns the centre to the polygon."""
        overlap = jnp.vdot(center, self.home(center))
        size = jnp.sqrt(jnp.real(overlap * jnp.conj(overlap)))
        return jnp.where(size > 0, overlap / jnp.where(size > 0, size, 1.0), 1.0)

    def _turned(self, start, end, x):
        """Return ``x - (p + q) <p + q, x>/(1 + <p, q>) + 2 q <p, x>`` for aligned p and q."""
        middle = start + end
        along = jnp.vdot(middle, x) / (1.0 + jnp.real(jnp.vdot(start, end)))
        return x - along * middle + 2.0 * jnp.vdot(start, x) * end

    @operation
    def project(self, x) -> jax.Array:
        """Return ``x`` centred and scaled to unit norm; NaN if all landmarks coincide."""
        # Products with ones, in real numbers: many times as fast as sums and maxima over an axis.
        ones = jnp.ones(self.landmarks, real_dtype(x))
        real, imaginary = jnp.real(x), jnp.imag(x)
        size = (jnp.abs(real) + jnp.abs(imaginary)) @ ones
        real, imaginary = real - real @ ones / self.landmarks, imaginary - imaginary @ ones / self.landmarks
        spread = (jnp.abs(real) + jnp.abs(imaginary)) @ ones
        spread = jnp.where(spread > _coincidence(x) * size, spread, jnp.nan)
        real, imaginary = real / spread, imaginary / spread
        inverse = 1.0 / jnp.sqrt((real**2 + imaginary**2) @ ones)
        return jax.lax.complex(inverse * real, inverse * imaginary)

    @operation
    def to_tangent(self, point, v) -> jax.Array:
        """Return ``v`` centred, minus ``(x* v) x``."""
        centred = v - jnp.mean(v)
        return centred - jnp.vdot(point, centred) * point

    @operation
    def retract(self, p, v) -> jax.Array:
        """Return ``(p + v)/|p + v|``."""
        return self.project(p + v)

    @operation
    def riemannian_from_ambient(self, p, g) -> jax.Array:
        """Return the tangential part of the conjugate of g."""
        return self.to_tangent(p, jnp.conj(g))

    @operation
    def deviation(self, x) -> jax.Array:
        """Return the larger of the norm of the mean part and the error of ``|x|^2/2``."""
        total = x @ jnp.ones(self.landmarks, x.dtype)
        off_centre = jnp.sqrt((jnp.real(total) ** 2 + jnp.imag(total) ** 2) / self.landmarks)
        return jnp.maximum(off_centre, 0.5 * jnp.abs(jnp.sum(jnp.real(x) ** 2 + jnp.imag(x) ** 2) - 1.0))

    @operation
    def admissible(self, x) -> jax.Array:
        """Return whether the landmarks are finite and do not all coincide."""
        return jnp.all(jnp.isfinite(self.project(x)))

    @operation
    def random_tangent(self, key, point) -> jax.Array:
        """Draw a standard normal vector of C^k, projected onto the tangent space."""
        real, imaginary = jax.random.normal(key, (2, self.landmarks), real_dtype(point))
        return self.to_tangent(point, jax.lax.complex(real, imaginary))

    @operation
    def random_point(self, key) -> jax.Array:
        """Draw a uniform point."""
        real, imaginary = jax.random.normal(key, (2, self.landmarks))
        return self.project(jax.lax.complex(real, imaginary))

    @operation
    def log_det_exp(self, point, tangent) -> jax.Array:
        """Return ``(2k-6) log(sin t/t) + log(sin 2t/(2t))``, minus infinity from t = pi/2 on."""
        return self._radial_log_det(jnp.real(jnp.vdot(tangent, tangent)))

    def volume_envelope(self, lower, upper) -> tuple[jax.Array, jax.Array]:
        """Return the tangent line at the middle: the log-determinant is radial and concave."""
        return tangent_line(lambda t: self._radial_log_det(t**2), lower, upper)

    def _radial_log_det(self, squared: jax.Array) -> jax.Array:
        inside = squared < (math.pi / 2) ** 2
        safe = jnp.where(inside, squared, 1.0)
        transverse = (2 * self.landmarks - 6) * jnp.log(sinc_sqrt(safe))
        return jnp.where(inside, transverse + jnp.log(sinc_sqrt(4.0 * safe)), -jnp.inf)

    def _angle(self, p, q):
        overlap = jnp.vdot(p, q)
        perpendicular = q - overlap * p
        cosine = safe_sqrt(jnp.real(overlap * jnp.conj(overlap)))
        return overlap, perpendicular, jnp.real(jnp.vdot(perpendicular, perpendicular)), cosine

    def _log_coefficients(self, base, points):
        """Return c_i with log_x(x_i) the horizontal part of ``c_i x_i``, squared distances and cosines."""
        overlap = points @ jnp.conj(base)
        real, imaginary = jnp.real(overlap), jnp.imag(overlap)
        cosine_squared = real**2 + imaginary**2
        cosine = safe_sqrt(cosine_squared)
        ratio = angle_over_sine_of_cosine(cosine)
        scale = ratio / jnp.where(cosine > 0, cosine, 1.0)
        coefficients = jax.lax.complex(scale * real, -scale * imaginary)
        return coefficients, ratio**2 * (1.0 - cosine_squared), cosine


def _coincidence(x):
    return max(_COINCIDENT, 16.0 * float(jnp.finfo(x.dtype).eps))
