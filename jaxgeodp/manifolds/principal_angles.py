"""Small p x p functions of principal angles, with derivatives that are right at equal and zero angles.

Two p-dimensional subspaces with orthonormal bases X and Y have the cosines C = X'Y = V cos(theta) Z', the
principal angles theta in [0, pi/2]. Their polar decomposition is C = M R with the *alignment* R = V Z' and
M = V cos(theta) V'. The angles enter through functions of M or of H'H that are analytic at theta = 0: they are
evaluated as matrix polynomials, which are exact to rounding and have no eigenvectors to differentiate. What
cannot be smooth, at a singular C (the cut locus), is R alone: its derivative solves a linear equation in M.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.manifolds.analytic import sinc_sqrt
from jaxgeodp.manifolds.derivatives import not_further


def _chebyshev_ratio(degree):
    """Return Chebyshev coefficients of theta/sin(theta) in T_k(2 cos(theta) - 1), for cosines in [0, 1].

    The nearest singularity, cosine -1, lies at -3: the terms fall as (3 + sqrt 8)^-k, to 1e-19 at degree 25.
    """

    def ratio(z):
        sine = np.sqrt(0.25 * (1.0 - z) * (3.0 + z))
        return np.arctan2(sine, 0.5 * (1.0 + z)) / sine

    return np.polynomial.chebyshev.chebinterpolate(ratio, degree).tolist()


_RATIO = _chebyshev_ratio(25)
# cos(sqrt x) - 1 = x * series and sin(sqrt x)/sqrt x, to rounding for x <= 1.
_COS = [(-1.0) ** j / math.factorial(2 * j) for j in range(1, 10)]
_SINC = [(-1.0) ** j / math.factorial(2 * j + 1) for j in range(9)]
# Angles are halved this often before the series: exact to rounding up to angles of 2^8.
_HALVINGS = 8
# Gauss-Legendre nodes: ten are exact to rounding for the entire function below, on all of (0, pi^2).
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


@jax.custom_jvp
def alignment(cosines: jax.Array) -> jax.Array:
    """Return the orthogonal factor R of the polar decomposition ``C = M R``; not unique if C is singular."""
    return _polar_factor(cosines)


@alignment.defjvp
def _alignment_jvp(primals, tangents):
    # dR = S R with antisymmetric S, and M S + S M = dC R' - R dC'.
    (cosines,), (direction,) = primals, tangents
    rotation = alignment(cosines)
    if cosines.shape[0] == 1:
        return rotation, jnp.zeros_like(rotation)
    symmetric = _symmetric_part(cosines @ rotation.T)
    half = direction @ rotation.T
    basis = jnp.asarray(_antisymmetric_basis(cosines.shape[0]), cosines.dtype)
    operator = 2.0 * jnp.einsum("aij,jk,bik->ab", basis, symmetric, basis)
    # Singular where two cosines vanish: the derivative stays finite there, without a meaning.
    operator = operator + jnp.finfo(cosines.dtype).eps ** 2 * jnp.eye(basis.shape[0], dtype=cosines.dtype)
    right = jnp.einsum("aij,ij->a", basis, half - half.T)
    coordinates = right / operator[0] if basis.shape[0] == 1 else jnp.linalg.solve(operator, right)
    return rotation, jnp.tensordot(coordinates, basis, axes=1) @ rotation


def angle_ratio(cosines: jax.Array) -> jax.Array:
    """Return ``V theta/sin(theta) Z'`` of ``C = V cos(theta) Z'``, by a Chebyshev series in M (Clenshaw)."""
    rotation = alignment(cosines)
    unit = jnp.eye(cosines.shape[0], dtype=cosines.dtype)
    argument = 2.0 * _symmetric_part(cosines @ rotation.T) - unit
    current = following = jnp.zeros_like(unit)
    for coefficient in reversed(_RATIO[1:]):
        current, following = 2.0 * argument @ current - following + coefficient * unit, current
    return (argument @ current - following + _RATIO[0] * unit) @ rotation


@jax.custom_jvp
def sum_of_squared_angles(cosines: jax.Array, perpendicular: jax.Array) -> jax.Array:
    """Return ``sum_i theta_i^2`` from C and the part ``Y - X C`` of Y orthogonal to X.

    The second argument keeps the digits of small angles; it is a function of the first as far as derivatives go.
    """
    return jnp.sum((perpendicular @ angle_ratio(cosines).T) ** 2)


@sum_of_squared_angles.defjvp
def _sum_of_squared_angles_jvp(primals, tangents):
    # d theta^2 / d cos(theta) = -2 theta/sin(theta).
    return sum_of_squared_angles(*primals), -2.0 * jnp.sum(angle_ratio(primals[0]) * tangents[0])


def cos_and_sinc(gram: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return ``cos(sqrt A)`` and ``sin(sqrt A)/sqrt A`` for positive semidefinite A, by series and doubling."""
    unit = jnp.eye(gram.shape[0], dtype=gram.dtype)
    scaled = gram / 4.0**_HALVINGS
    less_one, sinc = scaled @ _polynomial(_COS, scaled, unit), _polynomial(_SINC, scaled, unit)
    for _ in range(_HALVINGS):
        # Doubling cos - 1 instead of cos keeps the digits of small angles.
        sinc = sinc @ (unit + less_one)
        less_one = 2.0 * less_one @ (2.0 * unit + less_one)
    return unit + less_one, sinc


def log_jacobian(gram: jax.Array, single: int) -> jax.Array:
    """Return ``sum_{i<j} log[(sin^2 t_i - sin^2 t_j)/(t_i^2 - t_j^2)] + single * sum_i log(sin t_i/t_i)``.

    The t_i^2 are the eigenvalues of ``gram``; minus infinity unless all t_i < pi/2.
    """
    gram = _symmetric_part(gram)
    values, vectors = _eigenpairs(jax.lax.stop_gradient(gram))
    inside = jnp.max(values) < (math.pi / 2) ** 2
    total: jax.Array = _jacobian(single, jnp.where(inside, gram, 0.0), jnp.where(inside, values, 0.0), vectors)
    return jnp.where(inside, total, -jnp.inf)


# Symmetric functions of the eigenvalues: gradient V diag(grad) V', then its own derivative.


def _log_jacobian_of_squares(single, squares):
    # With F(a) = sin^2(sqrt a): F[a, b] is the mean of F'(x) = sin(2 sqrt x)/(2 sqrt x) > 0 between a and b, an
    # integral without cancellation and analytic in both.
    middle = 0.5 * (squares[:, None] + squares[None, :])
    half = 0.5 * (squares[:, None] - squares[None, :])
    nodes = jnp.asarray(_NODES, squares.dtype)
    slopes = sinc_sqrt(4.0 * (middle[..., None] + half[..., None] * nodes))
    differences = 0.5 * slopes @ jnp.asarray(_WEIGHTS, squares.dtype)
    pairs = jnp.triu(jnp.log(differences), 1)
    return jnp.sum(pairs) + single * jnp.sum(jnp.log(sinc_sqrt(squares)))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _jacobian(single, gram, values, vectors):
    return _log_jacobian_of_squares(single, values)


@_jacobian.defjvp
def _jacobian_jvp(single, primals, tangents):
    return _jacobian(single, *primals), jnp.sum(_jacobian_gradient(single, *primals) * tangents[0])


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _jacobian_gradient(single, gram, values, vectors):
    return (vectors * jax.grad(_log_jacobian_of_squares, 1)(single, values)) @ vectors.T


@_jacobian_gradient.defjvp
def _jacobian_gradient_jvp(single, primals, tangents):
    gram, values, vectors = primals
    slopes = jax.grad(_log_jacobian_of_squares, 1)(single, values)
    bend = jax.hessian(_log_jacobian_of_squares, 1)(single, values)
    differences = values[:, None] - values[None, :]
    near = jnp.abs(differences) < jnp.finfo(values.dtype).eps ** (1 / 3)
    # (slopes_i - slopes_j)/(a_i - a_j), with its limit at equal eigenvalues made symmetric (second-order error).
    limit = 0.5 * (jnp.diag(bend)[:, None] + jnp.diag(bend)[None, :]) - bend
    quotient = jnp.where(near, limit, (slopes[:, None] - slopes[None, :]) / jnp.where(near, 1.0, differences))
    known = "two derivatives of the volume density of Grassmann manifolds are known"
    bend, quotient = not_further(known, bend, gram), not_further(known, quotient, gram)
    rotated = vectors.T @ _symmetric_part(tangents[0]) @ vectors
    diagonal = jnp.diag(bend @ jnp.diag(rotated))
    off_diagonal = quotient * (rotated - jnp.diag(jnp.diag(rotated)))
    return _jacobian_gradient(single, *primals), vectors @ (diagonal + off_diagonal) @ vectors.T


def _polynomial(coefficients, x, unit):
    total = coefficients[-1] * unit
    for coefficient in reversed(coefficients[:-1]):
        total = x @ total + coefficient * unit
    return total


def _polar_factor(cosines):
    """Return R of ``C = M R``, undifferentiated."""
    size = cosines.shape[0]
    if size == 1:
        return jnp.where(cosines < 0, -1.0, 1.0).astype(cosines.dtype)
    if size > 2:
        left, _, right = jnp.linalg.svd(cosines)
        return left @ right
    # The rotation, or reflection, nearest to C: C plus or minus its cofactors, which have the same length.
    (a, b), (c, d) = cosines
    sign = jnp.where(a * d - b * c < 0, -1.0, 1.0)
    factor = jnp.array([[a + sign * d, b - sign * c], [c - sign * b, d + sign * a]])
    length = jnp.hypot(factor[0, 0], factor[0, 1])
    return jnp.where(length > 0, factor / jnp.where(length > 0, length, 1.0), jnp.eye(2, dtype=a.dtype))


def _eigenpairs(a):
    """Return eigenvalues, clipped at 0, and eigenvectors of a positive semidefinite matrix; closed up to size 2."""
    if a.shape[0] == 1:
        values, vectors = a[0], jnp.ones_like(a)
    elif a.shape[0] == 2:
        middle, half, side = 0.5 * (a[0, 0] + a[1, 1]), 0.5 * (a[0, 0] - a[1, 1]), a[0, 1]
        radius = jnp.hypot(half, side)
        turn = 0.5 * jnp.arctan2(side, half)
        cosine, sine = jnp.cos(turn), jnp.sin(turn)
        values = jnp.stack([middle + radius, middle - radius])
        vectors = jnp.array([[cosine, -sine], [sine, cosine]])
    else:
        values, vectors = jnp.linalg.eigh(a)
    return jnp.maximum(values, 0.0), vectors


def _symmetric_part(a):
    return 0.5 * (a + a.T)


def _antisymmetric_basis(size: int) -> np.ndarray:
    basis = np.zeros((size * (size - 1) // 2, size, size))
    for k, (i, j) in enumerate(zip(*np.triu_indices(size, 1), strict=True)):
        basis[k, i, j], basis[k, j, i] = math.sqrt(0.5), -math.sqrt(0.5)
    return basis
