"""Small p x p functions of principal angles, with derivatives that are right at equal and zero angles.

Two p-dimensional subspaces with orthonormal bases X and Y have the cosines C = X'Y = V cos(theta) Z', the
principal angles theta in [0, pi/2]. Their polar decomposition is C = M R with the *alignment* R = V Z' and
M = V cos(theta) V'. The angles enter through functions of M or of H'H that are analytic at theta = 0, as
functions of symmetric matrices (`spectral`); what cannot be smooth, the alignment at a singular C (the cut
locus), is R alone, and its derivative solves a linear equation in M.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.manifolds.analytic import angle_over_sine_of_cosine, cos_sqrt, sinc_sqrt
from jaxgeodp.manifolds.spectral import ScalarFunction, matrix_function

# Terms of the power series behind Taylor coefficients; enough for double precision at the tenth coefficient.
_COSINE_TERMS = 25
_ANGLE_TERMS = 72
_HIGHEST_COEFFICIENT = 10
# Gauss-Legendre nodes on [0, 1]: eight are exact to rounding for an entire function on (0, pi^2).
_NODES, _WEIGHTS = (np.array(x) for x in np.polynomial.legendre.leggauss(10))


@jax.custom_jvp
def alignment(cosines: jax.Array) -> jax.Array:
    """The orthogonal factor R of the polar decomposition ``C = M R``; some orthogonal matrix if C is singular."""
    return _polar_parts(cosines)[0]


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
    """``V theta/sin(theta) Z'`` from ``C = V cos(theta) Z'``."""
    _, values, vectors = _polar_parts(jax.lax.stop_gradient(cosines))
    rotation = alignment(cosines)
    return matrix_function(_RATIO, _symmetric_part(cosines @ rotation.T), values, vectors) @ rotation


@jax.custom_jvp
def sum_of_squared_angles(cosines: jax.Array, perpendicular: jax.Array) -> jax.Array:
    """``sum_i theta_i^2`` from C and the part ``Y - X C`` of Y perpendicular to X.

    The second argument keeps the digits of small angles; it is a function of the first as far as derivatives go.
    """
    return jnp.sum((perpendicular @ angle_ratio(cosines).T) ** 2)


@sum_of_squared_angles.defjvp
def _sum_of_squared_angles_jvp(primals, tangents):
    # d theta^2 / d cos(theta) = -2 theta/sin(theta).
    return sum_of_squared_angles(*primals), -2.0 * jnp.sum(angle_ratio(primals[0]) * tangents[0])


def cos_and_sinc(gram: jax.Array) -> tuple[jax.Array, jax.Array]:
    """``cos(sqrt A)`` and ``sin(sqrt A)/sqrt A`` of a positive semidefinite A, from one eigendecomposition."""
    gram = _symmetric_part(gram)
    values, vectors = _eigenpairs(jax.lax.stop_gradient(gram))
    return matrix_function(_COS, gram, values, vectors), matrix_function(_SINC, gram, values, vectors)


def log_jacobian(gram: jax.Array, single: int) -> jax.Array:
    """``sum_{i<j} log[(sin^2 t_i - sin^2 t_j)/(t_i^2 - t_j^2)] + single * sum_i log(sin t_i/t_i)``.

    The t_i^2 are the eigenvalues of ``gram``; minus infinity unless all t_i < pi/2.
    """
    gram = _symmetric_part(gram)
    values, vectors = _eigenpairs(jax.lax.stop_gradient(gram))
    inside = jnp.max(values) < (math.pi / 2) ** 2
    total = _jacobian(single, jnp.where(inside, gram, 0.0), jnp.where(inside, values, 0.0), vectors)
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
    _, values, vectors = primals
    slopes = jax.grad(_log_jacobian_of_squares, 1)(single, values)
    bend = jax.hessian(_log_jacobian_of_squares, 1)(single, values)
    differences = values[:, None] - values[None, :]
    near = jnp.abs(differences) < jnp.finfo(values.dtype).eps ** (1 / 3)
    # (slopes_i - slopes_j)/(a_i - a_j), with its limit at equal eigenvalues made symmetric (second-order error).
    limit = 0.5 * (jnp.diag(bend)[:, None] + jnp.diag(bend)[None, :]) - bend
    quotient = jnp.where(near, limit, (slopes[:, None] - slopes[None, :]) / jnp.where(near, 1.0, differences))
    rotated = vectors.T @ _symmetric_part(tangents[0]) @ vectors
    diagonal = jnp.diag(bend @ jnp.diag(rotated))
    off_diagonal = quotient * (rotated - jnp.diag(jnp.diag(rotated)))
    return _jacobian_gradient(single, *primals), vectors @ (diagonal + off_diagonal) @ vectors.T


# Scalar functions and their Taylor coefficients.


def _series(coefficients, x, order):
    """``f^(order)(x)/order!`` of the power series f with the given coefficients."""
    terms = len(coefficients) - order
    shifted = [coefficients[order + j] * math.comb(order + j, order) for j in range(terms)]
    return (x[..., None] ** jnp.arange(terms)) @ jnp.asarray(shifted, x.dtype)


_COSINE_SERIES = [(-1.0) ** j / math.factorial(2 * j) for j in range(_COSINE_TERMS + _HIGHEST_COEFFICIENT)]
# theta/sin(theta) = sum_k k!/(2k+1)!! (1 - cos theta)^k, of radius of convergence 2.
_RATIO_SERIES = np.cumprod([1.0] + [k / (2 * k + 1) for k in range(1, _ANGLE_TERMS + _HIGHEST_COEFFICIENT)]).tolist()


def _cos_taylor(x, order):
    """Taylor coefficients of cos(sqrt x): its series for small x, else ``4 x f'' + 2 f' + f = 0``."""
    small = x < 4.0
    safe = jnp.where(small, 4.0, x)
    previous, current = cos_sqrt(safe), -0.5 * sinc_sqrt(safe)
    for m in range(order):
        following = -(previous + (m + 1) * (4 * m + 2) * current) / (4.0 * safe * (m + 1) * (m + 2))
        previous, current = current, following
    return jnp.where(small, _series(_COSINE_SERIES, jnp.where(small, x, 0.0), order), previous)


def _ratio_taylor(x, order):
    return (-1.0) ** order * _series(_RATIO_SERIES, 1.0 - x, order)


# cos(sqrt x)' = -sinc(sqrt x)/2. Both are entire: eigenvalues count as near up to a fixed gap.
_COS = ScalarFunction(cos_sqrt, _cos_taylor, lambda x: jnp.full_like(x, 10.0))
_SINC = ScalarFunction(
    sinc_sqrt, lambda x, order: -2.0 * (order + 1) * _cos_taylor(x, order + 1), lambda x: jnp.full_like(x, 10.0)
)
_RATIO = ScalarFunction(angle_over_sine_of_cosine, _ratio_taylor, lambda x: 1.0 + x)


# Decompositions, as constants: derivatives never pass through them.


def _polar_parts(cosines):
    """R, the eigenvalues and the eigenvectors of M, for ``C = M R``."""
    size = cosines.shape[0]
    if size == 1:
        return jnp.where(cosines < 0, -1.0, 1.0).astype(cosines.dtype), jnp.abs(cosines[0]), jnp.ones_like(cosines)
    if size == 2:
        # The rotation, or reflection, nearest to C: C plus or minus its cofactors, which have the same length.
        (a, b), (c, d) = cosines
        sign = jnp.where(a * d - b * c < 0, -1.0, 1.0)
        rotation = jnp.array([[a + sign * d, b - sign * c], [c - sign * b, d + sign * a]])
        length = jnp.hypot(rotation[0, 0], rotation[0, 1])
        rotation = jnp.where(length > 0, rotation / jnp.where(length > 0, length, 1.0), jnp.eye(2, dtype=a.dtype))
        values, vectors = _eigenpairs(_symmetric_part(cosines @ rotation.T))
        return rotation, values, vectors
    left, values, right = jnp.linalg.svd(cosines)
    return left @ right, values, left


def _eigenpairs(a):
    """Eigenvalues, not below 0, and eigenvectors of a positive semidefinite matrix; in closed form up to size 2."""
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
