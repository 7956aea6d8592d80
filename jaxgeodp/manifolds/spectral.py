"""Functions of symmetric matrices with derivatives that are right at equal eigenvalues.

For symmetric A = V diag(l) V', f(A) = V diag(f(l)) V', and the m-th derivative in the directions
E_1..E_m has, in the eigenbasis, the entries

    sum over permutations p and indices i_1..i_{m-1} of
        f[l_i, l_{i_1}, ..., l_{i_{m-1}}, l_j] (E_p1)_{i i_1} (E_p2)_{i_1 i_2} ... (E_pm)_{i_{m-1} j}

with the divided differences f[...] (Daleckii-Krein for m = 1). Divided differences are smooth functions of
the eigenvalues, equal or not, where the derivatives of the eigenvectors are not. The derivative rule writes
the first derivative at A as a Taylor polynomial about the eigendecomposed (constant) matrix, so that
forward and reverse mode agree in every nesting: exact to third order up to size 5, to second order above.
"""

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import jaxgeodp.manifolds.spd3 as spd3
from jaxgeodp.manifolds.analytic import log_sinhc_sqrt
from jaxgeodp.manifolds.derivatives import as_if_of, not_further
from jaxgeodp.manifolds.jacobi import SIZES, eigen_of_many
from jaxgeodp.manifolds.newton import NewtonMoments, solve, solve_preconditioned

# Taylor terms used for divided differences of nearby nodes, and how near (relative to the scale of f).
_TAYLOR_TERMS = 7
_NEARBY = 0.02
_SIZE_WITH_THIRD_DERIVATIVES = 5
# Above, a few more products with the Hessian cost less than P does.
_LARGEST_PRECONDITIONED = 12
# Sizes whose products of matrices are faster written out than by BLAS (benchmarks/README.md).
_SIDE_BY_SIDE = range(4, 7)


def matrix_log(a: jax.Array) -> jax.Array:
    """Return the logarithm of a symmetric positive definite matrix (k, k)."""
    return _spectral(_LOG, a)


def matrix_exp(a: jax.Array) -> jax.Array:
    """Return the exponential of a symmetric matrix (k, k)."""
    return _spectral(_EXP, a)


def matrix_sqrt(a: jax.Array) -> jax.Array:
    """Return the square root of a symmetric positive definite matrix (k, k)."""
    return _spectral(_SQRT, a)


@jax.custom_jvp
def log_moments(matrices: jax.Array, weights: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return ``(sum_i w_i log(A_i), sum_i w_i |log(A_i)|^2)`` for positive definite ``matrices`` (n, k, k).

    All n k eigenvectors enter one matrix product; no single logarithm is formed.
    """
    values, vectors = eigh_of_definite(matrices)
    logs = jnp.log(values)
    rows = vectors.swapaxes(-1, -2).reshape(-1, matrices.shape[-1])
    coefficients = (weights[:, None] * logs).reshape(-1, 1)
    return (coefficients * rows).T @ rows, weights @ jnp.sum(logs**2, axis=-1)


@log_moments.defjvp
def _log_moments_jvp(primals, tangents):
    def one_by_one(matrices, weights):
        logs = jax.vmap(matrix_log)(matrices)
        return jnp.tensordot(weights, logs, axes=1), weights @ jnp.sum(logs**2, axis=(-1, -2))

    return log_moments(*primals), jax.jvp(one_by_one, primals, tangents)[1]


def newton_moments(matrices: jax.Array, weights: jax.Array) -> NewtonMoments:
    """Return `log_moments`, a step ``d`` near ``H^-1 sum_i w_i log(A_i)`` and its relative residual.

    H is the Hessian of (1/2) sum_i w_i dist(x, A_i)^2 at the identity: the average over i of the factors z coth z on
    the entries of the eigenbasis of A_i, z = (l_a - l_b)/2 with the eigenvalues l of L = log(A_i). From above,
    z coth z <= 1 + z^2/3 gives ``P E = E + (1/12) sum_i w_i (L^2 E + E L^2 - 2 L E L)``, which needs the second
    moments of L alone: one matrix product. P preconditions conjugate gradients with H itself.
    """
    size = matrices.shape[-1]
    if size in _SIDE_BY_SIDE:
        return _newton_moments_side_by_side(matrices, weights)
    values, vectors = eigh_of_definite(matrices)
    logs = jnp.log(values)
    differences = jnp.abs(logs[:, :, None] - logs[:, None, :])
    half = jnp.maximum(0.5 * differences, jnp.finfo(logs.dtype).tiny)
    factors = half / jnp.tanh(half)
    square = weights @ jnp.sum(logs**2, axis=-1)
    if size == 3:
        total = jnp.einsum("na,nia,nja->ij", weights[:, None] * logs, vectors, vectors)
        step, residual = solve(_hessian_of_size_3(factors, vectors, weights), total, 6)
        return NewtonMoments(total, square, step, residual)
    transposed = vectors.swapaxes(-1, -2)
    flat = ((vectors * logs[:, None, :]) @ transposed).reshape(-1, size**2)
    total = (weights @ flat).reshape(size, size)

    def hessian(e):
        rotated = (transposed.reshape(-1, size) @ e).reshape(-1, size, size) @ vectors
        back = (weights[:, None, None] * factors * rotated) @ transposed
        return transposed.reshape(-1, size).T @ back.reshape(-1, size)

    step, residual = solve_preconditioned(hessian, _preconditioner(flat, weights, size), total)
    return NewtonMoments(total, square, step, residual)


def _preconditioner(flat, weights, size):
    """Return an approximate inverse Hessian; the identity for large matrices, as P has size^4 numbers."""
    if size > _LARGEST_PRECONDITIONED:
        return lambda left: left
    preconditioner = _upper_hessian((weights[:, None] * flat).T @ flat, size)
    return lambda left: solve(preconditioner, left)[0]


def _newton_moments_side_by_side(matrices, weights):
    """Return `newton_moments`, with the matrices on the last axis so that products run over long arrays."""
    size, count = matrices.shape[-1], matrices.shape[0]
    values, vectors = eigen_of_many(matrices)
    logs = jnp.log(values)
    half = jnp.maximum(0.5 * jnp.abs(logs[:, None] - logs), jnp.finfo(logs.dtype).tiny)
    factors = weights * (half / jnp.tanh(half))  # not the product first, which is flushed to 0
    square = weights @ jnp.sum(logs**2, axis=0)
    rows = vectors.swapaxes(0, 1)
    flat = _products(rows * logs, vectors).reshape(size**2, count)
    total = (flat @ weights).reshape(size, size)
    rows = rows.reshape(size, -1)

    def hessian(e):
        rotated = _products(vectors, (e @ rows).reshape(size, size, count))
        back = _products(factors * rotated, vectors)
        return rows @ back.swapaxes(0, 1).reshape(size, -1).T

    preconditioner = _upper_hessian((weights * flat) @ flat.T, size)
    step, residual = solve_preconditioned(hessian, lambda left: solve(preconditioner, left)[0], total)
    return NewtonMoments(total, square, step, residual)


def _products(x, y) -> jax.Array:
    """Return ``x y`` for matrices on the first two axes, batched on the last, as a sum of arrays."""
    return functools.reduce(jnp.add, (x[:, j, None] * y[j] for j in range(x.shape[1])))


def _upper_hessian(second, size):
    """Return P of `newton_moments` as an operator, from second moments ``sum_i w_i L_ik L_lj`` (k^2, k^2)."""
    second = second.reshape(size, size, size, size)
    outer = jnp.einsum("ikkj->ij", second)
    inner = second.transpose(0, 3, 1, 2).reshape(size**2, size**2)

    def apply(e):
        sandwich = (inner @ e.reshape(-1)).reshape(size, size)
        return e + (outer @ e + e @ outer - 2.0 * sandwich) / 12.0

    return apply


def mean_hessian(matrices: jax.Array, weights: jax.Array, basis: jax.Array) -> jax.Array:
    """Return the Hessian H of `newton_moments` as a matrix (dim, dim) in an orthonormal ``basis`` (dim, k, k).

    ``H = sum_i w_i (1 + 2 sum_{a<b} (z coth z - 1) m m')``, m the coordinates of the symmetric part of v_a v_b'.
    """
    values, vectors = eigh_of_definite(matrices)
    logs = jnp.log(values)
    first, second = np.triu_indices(matrices.shape[-1], 1)
    half = jnp.maximum(0.5 * jnp.abs(logs[:, first] - logs[:, second]), jnp.finfo(logs.dtype).tiny)
    excess = 2.0 * weights[:, None] * (half / jnp.tanh(half) - 1.0)
    seen = jnp.einsum("eij,njp->enip", basis, vectors[:, :, second])
    rows = jnp.einsum("nip,enip->enp", vectors[:, :, first], seen).reshape(len(basis), -1)
    return jnp.sum(weights) * jnp.eye(len(basis), dtype=rows.dtype) + (rows * excess.reshape(-1)) @ rows.T


def _hessian_of_size_3(factors, vectors, weights):
    """Return ``E + 2 sum_i w_i sum_{a<b} (z coth z - 1) <m, E> m`` (9, 9), m the symmetric part of v_a v_b'."""
    pairs = ((0, 1), (0, 2), (1, 2))
    products = jnp.stack([vectors[:, :, None, a] * vectors[:, None, :, b] for a, b in pairs], axis=1)
    rows = (0.5 * (products + products.swapaxes(-1, -2))).reshape(-1, 9)
    excess = jnp.stack([2.0 * weights * (factors[:, a, b] - 1.0) for a, b in pairs], axis=1).reshape(-1, 1)
    gram = (excess * rows).T @ rows
    return lambda e: e + (gram @ e.reshape(-1)).reshape(3, 3)


def sum_log_sinhc_gaps(a: jax.Array) -> jax.Array:
    """Return ``sum_{i<j} log(sinh(z_ij)/z_ij)``, ``z_ij = |l_i - l_j|/2``, over the eigenvalues l of symmetric a."""
    values, vectors = eigh(jax.lax.stop_gradient(a))
    return _gap_sum(a, values, vectors)


def eigh(a):
    """Return eigenvalues and eigenvectors of a symmetric matrix (k, k), unordered."""
    return spd3.eigh(a) if a.shape[-1] == 3 else jnp.linalg.eigh(a)


def eigh_of_definite(matrices):
    """Return eigenvalues (n, k) and eigenvectors (n, k, k) of positive definite matrices (n, k, k)."""
    if matrices.shape[-1] not in SIZES:
        return jax.vmap(eigh)(matrices)
    values, vectors = eigen_of_many(matrices)
    return values.T, vectors.transpose(2, 1, 0)


class _ScalarFunction:
    """A scalar function, the scale s of its variation, and its derivatives ``f^(m)(x)/m! s(x)^j`` of order m >= 1."""

    def __init__(self, value: Callable, taylor: Callable, scale: Callable):
        self.value, self.taylor, self.scale = value, taylor, scale


def _log_taylor(x, order, j):
    return (-1.0) ** (order + 1) / order * x ** (j - order)


def _sqrt_taylor(x, order, j):
    coefficient = math.prod((0.5 - i) / (i + 1) for i in range(order))
    return coefficient * jnp.sqrt(x) * x ** (j - order)


_LOG = _ScalarFunction(jnp.log, _log_taylor, lambda x: x)
_SQRT = _ScalarFunction(jnp.sqrt, _sqrt_taylor, lambda x: x)
_EXP = _ScalarFunction(jnp.exp, lambda x, order, j: jnp.exp(x) / math.factorial(order), jnp.ones_like)


def _spectral(function: _ScalarFunction, a: jax.Array) -> jax.Array:
    a = 0.5 * (a + a.T)
    values, vectors = eigh(jax.lax.stop_gradient(a))
    return _matrix_function(function, a, values, vectors)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _matrix_function(function, a, values, vectors):
    return (vectors * function.value(values)) @ vectors.T


@_matrix_function.defjvp
def _matrix_function_jvp(function, primals, tangents):
    a, values, vectors = primals
    direction = vectors.T @ (0.5 * (tangents[0] + tangents[0].T)) @ vectors
    # Zero in value; carries the dependence of this derivative on a to the next ones.
    deviation = vectors.T @ (a - jax.lax.stop_gradient(a)) @ vectors
    sides, middle = _higher_terms(function, values, deviation)
    one_side = jnp.sum(sides * direction, axis=1)
    total = _differences(function, values, 1) * direction + one_side + one_side.T
    if middle is not None:
        total = total + jnp.sum(middle * direction[:, :, None], axis=(1, 2))
    return _matrix_function(function, a, values, vectors), vectors @ total @ vectors.T


_KNOWN = "three derivatives of matrix functions are known up to size 5, two above"


# Coefficients of the second and third term of the Taylor polynomial. All are 0 in value, as the deviation is: they are
# computed where their derivatives are asked for alone, so that a first derivative costs what it costs without them.


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _higher_terms(function, values, deviation):
    """Return zeros whose derivatives are the second and third Taylor terms in the deviation N.

    They are ``f[l_a, l_b, l_c] N_ab + sum_d f[l_a, l_d, l_b, l_c] N_ad N_db`` and ``f[...] N_ab N_cd``.
    """
    third = _zeros(4, values, deviation) if len(values) <= _SIZE_WITH_THIRD_DERIVATIVES else None
    return _zeros(3, values, deviation), third


@_higher_terms.defjvp
def _higher_terms_jvp(function, primals, tangents):
    values, deviation = primals
    change = tangents[1]
    if len(values) > _SIZE_WITH_THIRD_DERIVATIVES:
        sides, middle = not_further(_KNOWN, _differences(function, values, 2), deviation) * change[:, :, None], None
    else:
        sides = _differences(function, values, 2) * change[:, :, None]
        first, second, last = _third_terms(function, values, deviation)
        sides += jnp.einsum("abcd,bc->acd", first, change) + jnp.einsum("abcd,ab->acd", second, change)
        middle = first * change[None, None, :, :] + last * change[:, :, None, None]
    return _higher_terms(function, *primals), (sides, middle)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _third_terms(function, values, deviation):
    """Return zeros with the derivatives of ``f[l_a, l_b, l_c, l_d]`` times N_ab, N_bc and N_cd."""
    return (_zeros(4, values, deviation),) * 3


@_third_terms.defjvp
def _third_terms_jvp(function, primals, tangents):
    third, change = not_further(_KNOWN, _differences(function, primals[0], 3), primals[1]), tangents[1]
    changes = change[:, :, None, None], change[None, :, :, None], change[None, None, :, :]
    return _third_terms(function, *primals), tuple(third * own for own in changes)


def _zeros(order, values, deviation):
    return as_if_of(jnp.zeros((len(values),) * order, values.dtype), values, deviation)


def _differences(function, values, order):
    """Return the divided differences ``f[l_i, ..., l_j]`` of all ``order`` + 1 eigenvalues."""
    nodes = [values.reshape((1,) * j + (-1,) + (1,) * (order - j)) for j in range(order + 1)]
    return _divided_difference(function, jnp.broadcast_arrays(*nodes))


def _divided_difference(function, nodes):
    """Return ``f[x_0, ..., x_m]`` elementwise: recursion on the extreme nodes, Taylor series if all are near."""
    if len(nodes) == 1:
        return function.value(nodes[0])
    ordered = list(nodes)
    for last in range(len(nodes) - 1, 0, -1):  # XLA's sort of a few numbers is far slower
        for j in range(last):
            ordered[j : j + 2] = jnp.minimum(*ordered[j : j + 2]), jnp.maximum(*ordered[j : j + 2])
    spread = ordered[-1] - ordered[0]
    centre = 0.5 * (ordered[0] + ordered[-1])
    scale = function.scale(centre)
    near = spread < _NEARBY * scale
    upper = _divided_difference(function, ordered[1:])
    lower = _divided_difference(function, ordered[:-1])
    far = (upper - lower) / jnp.where(near, 1.0, spread)
    # f[x_0..x_m] = sum_j f^(m+j)(c)/(m+j)! s^j h_j((x_0 - c)/s, ..., (x_m - c)/s), h_j complete homogeneous. Without
    # the scale s high derivatives would overflow at small eigenvalues.
    homogeneous = [jnp.ones_like(centre)] + [jnp.zeros_like(centre)] * (_TAYLOR_TERMS - 1)
    for node in ordered:
        shift = (node - centre) / scale
        for j in range(1, _TAYLOR_TERMS):
            homogeneous[j] = homogeneous[j] + shift * homogeneous[j - 1]
    order = len(nodes) - 1
    series = sum(function.taylor(centre, order + j, j) * h for j, h in enumerate(homogeneous))
    return jnp.where(near, series, far)


# The sum over eigenvalue gaps: its gradient is V diag(g) V' with g_i = sum_j l'(l_i - l_j).


def _gap(difference: jax.Array) -> jax.Array:
    return log_sinhc_sqrt(0.25 * difference**2)


def _gap_slope(difference: jax.Array) -> jax.Array:
    return jax.grad(lambda x: jnp.sum(_gap(x)))(difference)


@jax.custom_jvp
def _gap_sum(a, values, vectors):
    return 0.5 * jnp.sum(_gap(values[:, None] - values[None, :]))


@_gap_sum.defjvp
def _gap_sum_jvp(primals, tangents):
    a, values, vectors = primals
    return _gap_sum(a, values, vectors), jnp.sum(_gap_gradient(a, values, vectors) * tangents[0])


@jax.custom_jvp
def _gap_gradient(a, values, vectors):
    slopes = jnp.sum(_gap_slope(values[:, None] - values[None, :]), axis=1)
    return (vectors * slopes) @ vectors.T


@_gap_gradient.defjvp
def _gap_gradient_jvp(primals: tuple[jax.Array, jax.Array, jax.Array], tangents):
    a, values, vectors = primals
    differences = values[:, None] - values[None, :]
    slopes = jnp.sum(_gap_slope(differences), axis=1)
    bend = jax.grad(lambda x: jnp.sum(_gap_slope(x)))(differences)
    # d slopes_i / d l_j, and (slopes_i - slopes_j)/(l_i - l_j) with its limit at equal eigenvalues.
    jacobian = jnp.diag(jnp.sum(bend, axis=1)) - bend
    near: jax.Array = jnp.abs(differences) < jnp.finfo(values.dtype).eps ** (1 / 3)
    limit = jnp.diag(jacobian)[:, None] - jacobian
    quotient = jnp.where(near, limit, (slopes[:, None] - slopes[None, :]) / jnp.where(near, 1.0, differences))
    known = "two derivatives of log(sinh(z)/z), summed over the gaps of eigenvalues, are known"
    jacobian, quotient = not_further(known, jacobian, a), not_further(known, quotient, a)
    rotated = vectors.T @ tangents[0] @ vectors
    diagonal = jnp.diag(jacobian @ jnp.diag(rotated))
    off_diagonal = quotient * (rotated - jnp.diag(jnp.diag(rotated)))
    return _gap_gradient(a, values, vectors), vectors @ (diagonal + off_diagonal) @ vectors.T
