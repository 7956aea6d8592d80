"""The Grassmann manifold of p-dimensional subspaces of R^n.

A subspace is represented by an (n, p) matrix X with orthonormal columns, up to right multiplication by an
orthogonal p x p matrix; tangent vectors are horizontal, X'H = 0, with <u, v> = tr(u'v). With C = X'Y = M R
(polar, see `principal_angles`) the representative Y R' is *aligned* to X, and with the principal angles theta

    exp_X(H) = X cos(sqrt A) + H sin(sqrt A)/sqrt A,   A = H'H,
    log_X(Y) = (Y R' - X M) g(M),   g(cos theta) = theta/sin(theta),   dist(X, Y)^2 = sum_i theta_i^2.

The logarithm is defined where C is invertible. Edelman, Arias & Smith (1998), The geometry of algorithms with
orthogonality constraints; Wong (1968) for the curvature.
"""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve

from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.manifolds.analytic import sinc_sqrt
from jaxgeodp.manifolds.hermitian import symmetric_matrix, symmetric_vector
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.manifolds.operations import fact, operation
from jaxgeodp.manifolds.principal_angles import (
    alignment,
    angle_ratio,
    cos_and_sinc,
    log_jacobian,
    sum_of_squared_angles,
)
from jaxgeodp.manifolds.radial import tangent_line

# A column this near, relative to its length, to the span of those before it leaves the rank deficient.
_DEPENDENT = 1e-9


@dataclasses.dataclass(frozen=True)
class Grassmann(Manifold):
    """Subspaces of dimension ``p`` in R^``n``; points have shape (n, p) and orthonormal columns.

    Data records are bases: any finite matrix of full rank is orthonormalised by ``project``. For p = 1 this is
    real projective space. A subspace and its orthogonal complement are the same datum: prefer p <= n/2, which
    has the smaller arrays. The distance is the root of the sum of squared principal angles.

    Args:
        n: dimension of the space, at least 2.
        p: dimension of the subspaces, from 1 to n - 1.

    Raises:
        ValueError: ``n`` is not an integer of at least 2, or ``p`` not one between 1 and n - 1.
    """

    n: int
    p: int

    homogeneous = True
    injectivity_radius = math.pi / 2

    def __post_init__(self):
        positive_integer("Grassmann", "n", self.n, minimum=2)
        positive_integer("Grassmann", "p", self.p, minimum=1)
        if self.p >= self.n:
            raise InputError(f"Grassmann: p must be below n = {self.n}, got {self.p!r}.")

    @fact
    def dim(self) -> int:
        """``p (n - p)``."""
        return self.p * (self.n - self.p)

    @fact
    def curvature_trace(self) -> float:
        """Return the Ricci curvature, n - 2."""
        return self.n - 2.0

    @fact
    def ricci_bound(self) -> float:
        """Return the Ricci curvature, n - 2 in all directions."""
        return self.curvature_trace

    @fact
    def shape(self) -> tuple[int, ...]:
        """(n, p)."""
        return (self.n, self.p)

    @fact
    def origin(self) -> np.ndarray:
        """Return the span of the first p coordinate axes."""
        return np.eye(self.n, self.p)

    @fact
    def curvature_bounds(self) -> tuple[float, float]:
        """(0, 2); (1, 1) if p or n - p is 1, and flat in dimension 1."""
        if self.dim == 1:
            return (0.0, 0.0)
        return (1.0, 1.0) if self._angles == 1 else (0.0, 2.0)

    @fact
    def diameter(self) -> float:
        """``sqrt(min(p, n - p)) pi/2``, where all principal angles are pi/2."""
        return math.sqrt(self._angles) * math.pi / 2

    @fact
    def extrinsic_radius(self) -> float:
        """Frobenius norm of the traceless rank-p projector."""
        return math.sqrt(self.p * (1.0 - self.p / self.n))

    def extrinsic(self, point):
        """Return the traceless projector ``X X' - p/n`` as a vector."""
        return symmetric_vector(point @ point.T - self.p / self.n * jnp.eye(self.n, dtype=point.dtype))

    def from_extrinsic(self, vector):
        """Return the span of the eigenvectors of the p largest eigenvalues."""
        return self.project(jnp.linalg.eigh(symmetric_matrix(vector, self.n))[1][:, self.n - self.p :])

    @operation
    def inner(self, point, u, v) -> jax.Array:
        """Return ``tr(u'v)``."""
        return jnp.sum(u * v)

    @operation
    def exp(self, point, tangent) -> jax.Array:
        """Return ``X cos(sqrt A) + H sin(sqrt A)/sqrt A`` with A = H'H."""
        cosine, sinc = cos_and_sinc(tangent.T @ tangent)
        end = point @ cosine + tangent @ sinc
        # One Newton step towards the polar factor removes the rounding of many steps, and changes no derivative.
        return end @ (1.5 * jnp.eye(self.p, dtype=end.dtype) - 0.5 * (end.T @ end))

    @operation
    def log(self, p, q) -> jax.Array:
        """Return ``(Y R' - X M) g(M)``; finite but not unique where X'Y is singular."""
        cosines = p.T @ q
        return self.to_tangent(p, (q - p @ cosines) @ angle_ratio(cosines).T)

    @operation
    def squared_dist(self, p, q) -> jax.Array:
        """Return ``sum_i theta_i^2``, accurate for small angles."""
        cosines = p.T @ q
        return sum_of_squared_angles(cosines, q - p @ cosines)

    @operation
    def transport(self, p, q, tangent) -> jax.Array:
        """Return ``(H - (X + Y R') (I + M)^-1 (Y R')'H) R``: Theorem 2.4 of Edelman et al. without angles."""
        rotation = alignment(p.T @ q)
        aligned = q @ rotation.T
        cosines = p.T @ aligned
        factor = jnp.linalg.cholesky(jnp.eye(self.p, dtype=p.dtype) + 0.5 * (cosines + cosines.T))
        turned = cho_solve((factor, True), aligned.T @ tangent)
        return (tangent - (p + aligned) @ turned) @ rotation

    @operation
    def log_moments(self, base, points, weights) -> tuple[jax.Array, jax.Array]:
        """Return the moments from two products over the data, ``X'Y_i`` and ``sum_i Y_i K_i``, and p x p work."""
        cosines = jnp.einsum("np,inq->ipq", base, points)
        ratios = jax.vmap(angle_ratio)(cosines)
        total = jnp.einsum("inq,ipq->np", points, weights[:, None, None] * ratios)
        # g(M)^2 (1 - M^2) = theta^2.
        squares = jnp.sum(ratios**2, axis=(1, 2)) - jnp.sum((ratios.swapaxes(1, 2) @ cosines) ** 2, axis=(1, 2))
        return self.to_tangent(base, total), weights @ squares

    def home(self, center) -> jax.Array:
        """Return the span of the first p coordinate axes."""
        return jnp.eye(self.n, self.p, dtype=center.dtype)

    @operation
    def to_home(self, center, point) -> jax.Array:
        """Return ``Q'X``, where the columns of the orthogonal Q begin with the basis of the centre."""
        return self._completed(center).T @ point

    @operation
    def from_home(self, center, point) -> jax.Array:
        """Return ``Q Y``."""
        return self._completed(center) @ point

    def _completed(self, center):
        complete = jnp.linalg.qr(jax.lax.stop_gradient(center), mode="complete")[0]
        return jnp.concatenate([center, complete[:, self.p :]], axis=1)

    @operation
    def project(self, x) -> jax.Array:
        """Return the span of ``x`` as its Gram-Schmidt basis; NaN unless the rank is full.

        A point is returned as it is. The nearest point in R^{n x p}, the polar factor, spans the same subspace.
        """
        lengths = jnp.max(jnp.abs(x), axis=0)
        scaled = x / jnp.where(lengths > 0, lengths, jnp.nan)  # no overflow or underflow in the factors
        basis, triangle = jnp.linalg.qr(scaled)
        diagonal = jnp.diag(triangle)
        dependent = jnp.abs(diagonal) <= _dependence(x) * jnp.sqrt(jnp.sum(scaled**2, axis=0))
        signs = jnp.where(diagonal < 0, -1.0, 1.0).astype(x.dtype)
        return jnp.where(jnp.any(dependent), jnp.nan, basis * signs)

    @operation
    def to_tangent(self, point, v) -> jax.Array:
        """Return ``v - X X'v``."""
        return v - point @ (point.T @ v)

    @operation
    def deviation(self, x) -> jax.Array:
        """Return the largest absolute entry of ``X'X - 1``."""
        return jnp.max(jnp.abs(x.T @ x - jnp.eye(self.p, dtype=x.dtype)))

    @operation
    def admissible(self, x) -> jax.Array:
        """Return whether x is finite and of full rank."""
        return jnp.all(jnp.isfinite(x)) & jnp.all(jnp.isfinite(self.project(x)))

    @operation
    def frame(self, point) -> jax.Array:
        """Return ``X_perp e_ij``, with an orthonormal basis X_perp of the complement (not smooth in the point)."""
        complement = self._completed(point)[:, self.p :]
        units = jnp.eye(self.p, dtype=point.dtype)
        return jnp.einsum("ni,jk->ijnk", complement, units).reshape(self.dim, *self.shape)

    @operation
    def random_tangent(self, key, point) -> jax.Array:
        """Draw a standard normal matrix, projected onto the tangent space."""
        return self.to_tangent(point, jax.random.normal(key, self.shape, real_dtype(point)))

    @operation
    def random_point(self, key) -> jax.Array:
        """Draw a uniform point."""
        return self.project(jax.random.normal(key, self.shape))

    @operation
    def log_det_exp(self, point, tangent) -> jax.Array:
        """Return ``sum_{i<j} log[(sin^2 t_i - sin^2 t_j)/(t_i^2 - t_j^2)] + (n - 2p) sum_i log(sin t_i/t_i)``.

        The t_i are the p singular values of H, zeros included; minus infinity unless all are below pi/2.
        """
        return log_jacobian(tangent.T @ tangent, self.n - 2 * self.p)

    def volume_envelope(self, lower, upper) -> tuple[jax.Array, jax.Array]:
        """Return tangents of ``(d-1) log(sin(s t)/(s t))``, ``s^2 = (n-2)/(d-1)``: Bishop's bound.

        The Ricci curvature is n - 2 in every direction. The bound is exact where the curvature is constant.
        """
        if self.dim == 1:
            return jnp.zeros_like(lower), jnp.zeros_like(lower)
        ricci = (self.n - 2) / (self.dim - 1)

        def bound(t):
            return (self.dim - 1) * jnp.log(sinc_sqrt(ricci * t**2))

        # Beyond the diameter there is no volume; there the bound need not be followed.
        return tangent_line(bound, jnp.minimum(lower, self.diameter), jnp.minimum(upper, self.diameter))

    @property
    def _angles(self):
        """Number of principal angles that can be nonzero."""
        return min(self.p, self.n - self.p)


def _dependence(x):
    return max(_DEPENDENT, 16.0 * float(jnp.finfo(x.dtype).eps))
