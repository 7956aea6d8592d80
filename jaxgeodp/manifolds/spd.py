"""Symmetric positive definite matrices with the affine-invariant metric <u, v>_p = tr(p^-1 u p^-1 v).

With p = L L' (Cholesky) and W = L^-1 q L^-T: ``exp_p(v) = L Exp(L^-1 v L^-T) L'``,
``log_p(q) = L Log(W) L'``, ``dist(p, q)^2 = sum log^2 eig(W)``; any square root of p may take the place of
L, because congruences are isometries. Size 2 is in closed form (`spd2`), larger sizes take exactly one
``eigh`` per point and nothing but Cholesky and triangular solves beside it (see pyproject on why).
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

import jaxgeodp.manifolds.spd2 as spd2
import jaxgeodp.manifolds.spd3 as spd3
import jaxgeodp.manifolds.spectral as spectral
import jaxgeodp.manifolds.spectral_third as spectral_third
from jaxgeodp.checks import positive_integer
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.manifolds.newton import NewtonMoments
from jaxgeodp.manifolds.operations import fact, operation

# A record whose asymmetry exceeds this fraction of its largest entry is not a covariance matrix.
_ASYMMETRY = 1e-6
# Sizes whose third derivatives are given.
_LEAST_WITH_THIRD, _MOST_WITH_THIRD = 3, 10


@dataclasses.dataclass(frozen=True)
class SPD(Manifold):
    """Symmetric positive definite ``size`` x ``size`` matrices with <u, v>_p = tr(p^-1 u p^-1 v); a Hadamard manifold.

    This metric is affine-invariant: dist(a p a', a q a') = dist(p, q) for every invertible matrix a. Below p = L L' is
    the Cholesky factorisation of a point and W = L^-1 q L^-T.

    Args:
        size: of the matrices, at least 1; points have shape (size, size).

    Raises:
        ValueError: ``size`` is not a positive integer.
    """

    size: int

    usual_reach = 14.0
    homogeneous = True
    injectivity_radius = math.inf

    def __post_init__(self):
        positive_integer("SPD", "size", self.size, minimum=1)

    @fact
    def dim(self) -> int:
        """``size (size + 1) / 2``."""
        return self.size * (self.size + 1) // 2

    @fact
    def curvature_trace(self) -> float:
        """``size/4``, as sum_{i<j} (l_i - l_j)^2/4 <= (size/4) sum l_i^2 for log-eigenvalues l; 0 for size 1."""
        return self.size / 4.0 if self.size > 1 else 0.0

    @fact
    def shape(self) -> tuple[int, ...]:
        """(size, size)."""
        return (self.size, self.size)

    @fact
    def origin(self) -> np.ndarray:
        """Return the identity matrix."""
        return np.eye(self.size)

    @fact
    def curvature_bounds(self) -> tuple[float, float]:
        """(-1/2, 0); flat for size 1."""
        return (-0.5 if self.size > 1 else 0.0, 0.0)

    @fact
    def volume_growth(self) -> float:
        """``sqrt(size (size^2 - 1) / 12)``."""
        return math.sqrt(self.size * (self.size**2 - 1) / 12.0)

    @fact
    def coordinate_growth(self) -> float:
        """``sqrt(1/2)``, as log-eigenvalues l and -l have the norm sqrt(2) l; 1 for size 1."""
        return math.sqrt(0.5) if self.size > 1 else 1.0

    @operation
    def inner(self, point, u, v) -> jax.Array:
        """Return ``tr(p^-1 u p^-1 v)``."""
        root = cholesky_root(point)
        return jnp.sum(_whiten(root, u) * _whiten(root, v))

    @operation
    def exp(self, point, tangent) -> jax.Array:
        """Return ``L Exp(L^-1 v L^-T) L'``."""
        root = cholesky_root(point)
        return _congruence(root, self._functions.matrix_exp(_whiten(root, tangent)))

    @operation
    def log(self, p, q) -> jax.Array:
        """Return ``L Log(L^-1 q L^-T) L'``."""
        root = cholesky_root(p)
        return _congruence(root, self._functions.matrix_log(_whiten(root, q)))

    @operation
    def between(self, p, q, share) -> jax.Array:
        """Return ``L P^{1-t} Q^t L'`` with p + q = L L', P = L^-1 p L^-T, Q = L^-1 q L^-T; they commute: P + Q = 1."""
        root = cholesky_root(p + q)
        matrix_log, matrix_exp = self._functions.matrix_log, self._functions.matrix_exp
        logarithm = (1.0 - share) * matrix_log(_whiten(root, p)) + share * matrix_log(_whiten(root, q))
        return self.project(_congruence(root, matrix_exp(logarithm)))

    @operation
    def squared_dist(self, p, q) -> jax.Array:
        """Return the squared Frobenius norm of ``Log(L^-1 q L^-T)``."""
        root = cholesky_root(p)
        if self.size == 2:
            return spd2.squared_log_norm(_whiten(root, q), _whiten(root, q - p))
        return jnp.sum(self._functions.matrix_log(_whiten(root, q)) ** 2)

    @operation
    def transport(self, p, q, tangent) -> jax.Array:
        """Return ``E v E'`` with ``E = (q p^-1)^{1/2} = L W^{1/2} L^-1``."""
        root = cholesky_root(p)
        half = self._functions.matrix_sqrt(_whiten(root, q))
        return _congruence(root, half @ _whiten(root, tangent) @ half)

    @operation
    def curvature_tensor(self, p, u, v, w) -> jax.Array:
        """Return R(u, v)w, which is ``-[[u, v], w]/4`` at the identity."""
        root = cholesky_root(p)
        u, v, w = (_whiten(root, x) for x in (u, v, w))
        turn = u @ v - v @ u
        return -0.25 * _congruence(root, turn @ w - w @ turn)

    @operation
    def log_moments(self, base, points, weights) -> tuple[jax.Array, jax.Array]:
        """Return the moments by two matrix-vector products for size 2, else by whitening and three matrix products."""
        if self.size == 2:
            return spd2.log_moments(base, points, weights)
        root = cholesky_root(base)
        total, square = spectral.log_moments(self._whitened(root, points), weights)
        return _congruence(root, total), square

    @operation
    def newton_moments(self, base, points, weights) -> NewtonMoments:
        """Use the exact Hessian for size 2; above, one from second moments of the logarithms (see `spectral`)."""
        if self.size == 2:
            return spd2.newton_moments(base, points, weights)
        root = cholesky_root(base)
        own = spectral.newton_moments(self._whitened(root, points), weights)
        return own._replace(total=_congruence(root, own.total), step=_congruence(root, own.step))

    @operation
    def mean_hessian(self, base, points, weights) -> jax.Array:
        """Return the Hessian, in closed form above size 2; see `spectral.mean_hessian`.

        ``frame(base)`` is the symmetric basis, once whitened at the base.
        """
        if self.size == 2:
            return super().mean_hessian(base, points, weights)
        basis = jnp.asarray(symmetric_basis(self.size), points.dtype)
        return spectral.mean_hessian(self._whitened(cholesky_root(base), points), weights, basis)

    @fact
    def knows_third_derivative(self) -> bool:
        """True for sizes 3 to 10: below there is little to gain, above it costs too much."""
        return _LEAST_WITH_THIRD <= self.size <= _MOST_WITH_THIRD

    @operation
    def mean_third_derivative(self, base, points, weights) -> jax.Array:
        """Return the third derivative in closed form; see `spectral_third`."""
        basis = jnp.asarray(symmetric_basis(self.size), points.dtype)
        return spectral_third.mean_third_derivative(self._whitened(cholesky_root(base), points), weights, basis)

    @operation
    def mean_start(self, points, weights) -> jax.Array:
        """Return the geometric mean A (A^-1 H)^{1/2} of the arithmetic mean A and the harmonic mean H.

        Third order in the spread of the data (the second order terms of A and H cancel), without any ``eigh`` of them.
        """
        arithmetic = jnp.tensordot(weights, points, axes=1)
        if self.size == 2:
            harmonic = spd2.harmonic_mean(points, weights)
        else:
            inverses = jax.vmap(_inverse_root)(points).reshape(-1, self.size)
            harmonic_root = _inverse_root((jnp.repeat(weights, self.size)[:, None] * inverses).T @ inverses)
            harmonic = harmonic_root.T @ harmonic_root
        root = cholesky_root(arithmetic)
        return _congruence(root, self._functions.matrix_sqrt(_whiten(root, harmonic)))

    projects = False  # a matrix may have no nearest point

    def ambient_radius(self, center, radius):
        """Return ``lambda_max(c) (e^r - 1)`` in the Frobenius norm."""
        return float(np.linalg.norm(center, 2)) * math.expm1(radius)

    def to_ambient(self, x):
        """Return the lower triangle, with off-diagonal entries times sqrt(2)."""
        rows, columns, weights = self._triangle(x.dtype)
        return x[rows, columns] * weights

    def from_ambient(self, vector):
        """Return the symmetric matrix of a `to_ambient` vector."""
        rows, columns, weights = self._triangle(vector.dtype)
        lower = jnp.zeros(self.shape, vector.dtype).at[rows, columns].set(vector / weights)
        return lower + jnp.tril(lower, -1).T

    def free_coordinates(self, x):
        """Return the lower triangle."""
        return x[jnp.tril_indices(self.size)]

    def _triangle(self, dtype):
        rows, columns = jnp.tril_indices(self.size)
        return rows, columns, jnp.where(rows == columns, 1.0, math.sqrt(2.0)).astype(dtype)

    def home(self, center) -> jax.Array:
        """Return the identity matrix."""
        return jnp.eye(self.size, dtype=center.dtype)

    @operation
    def to_home(self, center, point) -> jax.Array:
        """Return ``L^-1 x L^-T`` with c = L L'."""
        return _whiten(cholesky_root(center), point)

    @operation
    def from_home(self, center, point) -> jax.Array:
        """Return ``L y L'``."""
        return _congruence(cholesky_root(center), point)

    @operation
    def project(self, x: jax.Array | np.ndarray) -> jax.Array:
        """Return the symmetric part; NaN if it is not positive definite, as the cone is open."""
        symmetric = 0.5 * (x + x.T)
        return jnp.where(_positive_definite(symmetric), symmetric, jnp.nan)

    @operation
    def to_tangent(self, point, v) -> jax.Array:
        """Return the symmetric part."""
        return 0.5 * (v + v.T)

    @operation
    def retract(self, p, v) -> jax.Array:
        """Return ``p + v + v p^-1 v/2``: ``exp`` to second order, positive definite for all symmetric v."""
        root = cholesky_root(p)
        white = _whiten(root, v)
        return _congruence(root, jnp.eye(self.size, dtype=p.dtype) + white + 0.5 * white @ white)

    @operation
    def riemannian_from_ambient(self, p, g) -> jax.Array:
        """Return ``p g p`` for the symmetric part of g."""
        product = p @ (0.5 * (g + g.T)) @ p
        return 0.5 * (product + product.T)

    @operation
    def admissible(self, x) -> jax.Array:
        """Return whether x is finite, symmetric to rounding and positive definite."""
        scale = jnp.max(jnp.abs(x))
        symmetric = jnp.all(jnp.abs(x - x.T) <= _ASYMMETRY * scale)
        return jnp.all(jnp.isfinite(x)) & symmetric & _positive_definite(0.5 * (x + x.T))

    @operation
    def frame(self, point) -> jax.Array:
        """Return ``L e_ij L'`` for the orthonormal basis e_ij of symmetric matrices."""
        root = cholesky_root(jax.lax.stop_gradient(point))
        basis = jnp.asarray(symmetric_basis(self.size), dtype=root.dtype)
        return jax.vmap(lambda e: _congruence(root, e))(basis)

    @operation
    def random_tangent(self, key, point) -> jax.Array:
        """Return ``L S L'`` with S standard normal on the symmetric matrices."""
        noise = jax.random.normal(key, self.shape, real_dtype(point))
        # Diagonal variance 1, off-diagonal variance 1/2.
        symmetric = (noise + noise.T) / 2.0
        diagonal = jnp.diag(jnp.diag(noise))
        return _congruence(cholesky_root(point), symmetric - jnp.diag(jnp.diag(symmetric)) + diagonal)

    @operation
    def log_det_exp(self, point, tangent) -> jax.Array:
        """Return ``sum_{i<j} log(sinh(z_ij)/z_ij)``, ``z_ij = |l_i - l_j|/2``, l = eig(L^-1 v L^-T)."""
        whitened = _whiten(cholesky_root(point), tangent)
        if self.size == 2:
            return spd2.log_sinhc_gap(whitened)
        return spectral.sum_log_sinhc_gaps(whitened)

    def volume_envelope(self, lower: jax.Array, upper: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the better of the line ``g t`` and the chord of ``size t^2 / 24``.

        The second holds since log(sinh z/z) <= z^2/6 and sum_{i<j} (l_i - l_j)^2 <= size |v|^2.
        """
        growth = jnp.full_like(lower, self.volume_growth)
        quadratic = self.size / 24.0
        finite = jnp.isfinite(upper)
        safe_upper = jnp.where(finite, upper, lower)
        chord = finite & (quadratic * safe_upper <= growth)
        value = jnp.where(chord, quadratic * lower**2, growth * lower)
        return value, jnp.where(chord, quadratic * (lower + safe_upper), growth)

    def _whitened(self, root, points):
        """Return ``L^-1 x_i L^-T`` for all points, as two matrix products."""
        inverse = _inverse_of_lower(root)
        if self.size == 3:
            return (points.reshape(-1, 9) @ jnp.kron(inverse, inverse).T).reshape(points.shape)
        half = (points.reshape(-1, self.size) @ inverse.T).reshape(points.shape).swapaxes(-1, -2)
        return (half.reshape(-1, self.size) @ inverse.T).reshape(points.shape)

    @property
    def _functions(self):
        return spd2 if self.size == 2 else spectral


def cholesky_root(point):
    """Return lower triangular L with p = L L'; the matrix is symmetrised first."""
    if point.shape[-1] == 2:
        return spd2.cholesky(point)
    if point.shape[-1] == 3:
        return spd3.cholesky(point)
    return jnp.linalg.cholesky(point, symmetrize_input=True)


def _whiten(root, x):
    """Return ``L^-1 x L^-T``, symmetric."""
    if root.shape[-1] == 2:
        return spd2.whiten(root, x)
    if root.shape[-1] == 3:
        return spd3.whiten(root, x)
    half = solve_triangular(root, 0.5 * (x + x.T), lower=True)
    return solve_triangular(root, half.T, lower=True)


def _inverse_of_lower(root):
    if root.shape[-1] == 3:
        return spd3.inverse_of_lower(root)
    return solve_triangular(root, jnp.eye(root.shape[-1], dtype=root.dtype), lower=True)


def _inverse_root(point):
    """Return ``L^-1``, so that ``p^-1 = L^-T L^-1``."""
    return _inverse_of_lower(cholesky_root(point))


def _congruence(root, x):
    product = root @ x @ root.T
    return 0.5 * (product + product.T)


def _positive_definite(symmetric) -> jax.Array:
    # Cholesky answers NaN for an indefinite or infinite matrix, and a zero pivot for a singular one.
    root = cholesky_root(symmetric)
    return jnp.all(jnp.isfinite(root)) & jnp.all(jnp.diag(root) > 0)


def symmetric_basis(size: int) -> np.ndarray:
    """Return an orthonormal basis (dim, size, size) of the symmetric matrices."""
    basis = []
    for i in range(size):
        for j in range(i + 1):
            element = np.zeros((size, size))
            element[i, j] = element[j, i] = 1.0 if i == j else math.sqrt(0.5)
            basis.append(element)
    return np.array(basis)
