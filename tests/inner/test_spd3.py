"""Eigenvectors of 3 x 3 matrices by rotations, and the functions built on them, where eigenvalues meet."""

import functools
import math
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import cholesky, expm, logm, sqrtm
from strategies import DTYPES, a_point, a_tangent, exhaustive

from jaxgeodp import SPD
from jaxgeodp.manifolds import defaults, spd2, spd3, spectral
from jaxgeodp.statistics import frechet_mean

both_precisions = pytest.mark.parametrize("dtype", DTYPES)
GAPS = [0.0, 1e-15, 1e-12, 1e-9, 1e-7, 1e-4, 1e-2, 1.0]
FUNCTIONS = [(spectral.matrix_log, logm), (spectral.matrix_sqrt, sqrtm), (spectral.matrix_exp, expm)]
# Compiled once for all tests.
eigh = jax.jit(jax.vmap(spd3.eigh))
logarithms, square_roots, exponentials = (
    jax.jit(jax.vmap(function)) for function in (spectral.matrix_log, spectral.matrix_sqrt, spectral.matrix_exp)
)


def rotations(n, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(n, 3, 3)))[0]


def with_eigenvalues(values, n=50):
    """n matrices with the given eigenvalues, and their eigenvectors."""
    turns = rotations(n)
    matrices = (turns * np.asarray(values)) @ turns.swapaxes(-1, -2)
    return 0.5 * (matrices + matrices.swapaxes(-1, -2)), turns


@both_precisions
@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("third", [1.0, 3.0, 1e-8, 1e8])
def test_decomposition_at_nearly_equal_eigenvalues(dtype, gap, third):
    matrices = jnp.asarray(with_eigenvalues([1.0, 1.0 + gap, third])[0], dtype)
    assert_decomposed(matrices, dtype)


@both_precisions
def test_decomposition_of_all_sorts(dtype):
    rng = np.random.default_rng(1)
    plain = rng.normal(size=(20_000, 3, 3))
    graded = plain * 10.0 ** rng.uniform(-8, 8, size=plain.shape)
    sparse = plain * (rng.uniform(size=plain.shape) < 0.3)
    for matrices in (plain, graded, sparse, 1e-30 * plain, 1e30 * plain):
        assert_decomposed(jnp.asarray(matrices + matrices.swapaxes(-1, -2), dtype), dtype)
    for special in (np.zeros((3, 3)), np.eye(3), np.ones((3, 3)), np.diag([2.0, 1.0, 2.0])):
        assert_decomposed(jnp.asarray(special[None], dtype), dtype)


def assert_decomposed(matrices, dtype):
    values, vectors = eigh(matrices)
    assert values.dtype == vectors.dtype == dtype
    matrices, values, vectors = map(np.asarray, (matrices, values, vectors))
    precision = float(jnp.finfo(dtype).eps)
    scale = np.maximum(np.max(np.abs(matrices), axis=(1, 2), keepdims=True), jnp.finfo(dtype).tiny)
    rebuilt = (vectors * values[:, None, :]) @ vectors.swapaxes(-1, -2)
    assert float(np.max(np.abs(rebuilt - matrices) / scale)) <= 30 * precision
    gram = vectors.swapaxes(-1, -2) @ vectors
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(3), gram.shape), atol=20 * precision)


def test_four_sweeps_are_enough():
    """One more than needed runs: with one sweep fewer the result is at rounding level already."""
    rng = np.random.default_rng(2)
    a = rng.normal(size=(100_000, 3, 3))
    a = jnp.asarray(a + a.swapaxes(-1, -2))

    def off_diagonal(a):
        entries = tuple(a[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)))
        state = (entries, tuple(tuple(row) for row in jnp.eye(3)))
        for _ in range(spd3._SWEEPS - 1):
            state = spd3._sweep(0, state)
        return jnp.max(jnp.abs(jnp.stack(state[0][3:])))

    assert float(jnp.max(jax.jit(jax.vmap(off_diagonal))(a))) <= 1e-15


def test_small_eigenvalues_of_graded_matrices_keep_their_digits():
    """Rotations find them to their own precision where the matrix determines them (Demmel & Veselic 1992)."""
    scales = np.diag([1.0, 1e-4, 1e-8])
    correlation = np.array([[1.0, 0.3, -0.2], [0.3, 1.0, 0.4], [-0.2, 0.4, 1.0]])
    values = np.sort(np.asarray(spd3.eigh(jnp.asarray(scales @ correlation @ scales))[0]))
    # det, and the Schur complement series: the smallest is det / (product of the leading 2 x 2) to O(1e-8).
    smallest = 1e-16 * np.linalg.det(correlation) / np.linalg.det(correlation[:2, :2])
    assert values[0] == pytest.approx(smallest, rel=1e-7)


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("third", [0.3, 1.0, 1e4, 1e-8])
def test_functions_to_rounding_level(gap, third):
    """Against eigenvalues and eigenvectors known beforehand; an eigenvalue of 1e-8 is itself uncertain to 1e-8."""
    values = np.array([1.0, 1.0 + gap, third])
    matrices, turns = with_eigenvalues(values)
    uncertainty = 1e-14 * values.max() / values.min()

    def known(function):
        return (turns * function(values)) @ turns.swapaxes(-1, -2)

    for function, exact in ((logarithms, np.log), (square_roots, np.sqrt)):
        result = function(matrices)
        np.testing.assert_allclose(result, known(exact), atol=1e-14 * np.abs(exact(values)).max() + uncertainty)
    matrices, turns = with_eigenvalues(np.log(values))
    result = exponentials(matrices)
    np.testing.assert_allclose(result, known(lambda _: values), atol=1e-13 * values.max())


def test_functions_against_scipy_in_both_precisions():
    a = np.random.default_rng(3).normal(size=(3, 3))
    a = a @ a.T + 0.1 * np.eye(3)
    for dtype, rtol in (("float32", 2e-5), ("float64", 1e-12)):
        for function, exact in (
            (spectral.matrix_log, logm),
            (spectral.matrix_sqrt, sqrtm),
            (spectral.matrix_exp, expm),
        ):
            result = function(jnp.asarray(a, dtype))
            assert result.dtype == dtype
            np.testing.assert_allclose(result, exact(a), rtol=rtol, atol=rtol)
    root = spd3.cholesky(jnp.asarray(a))
    np.testing.assert_allclose(root, cholesky(a, lower=True), atol=1e-15)
    np.testing.assert_allclose(spd3.inverse_of_lower(root) @ root, np.eye(3), atol=1e-13)
    assert not np.all(np.isfinite(spd3.cholesky(jnp.diag(jnp.array([1.0, -1.0, 1.0])))))


@functools.partial(jax.jit, static_argnums=0)
def line_derivatives(function, a, e):
    first = jax.jacfwd(lambda t: function(a + t * e))
    zero = jnp.zeros((), a.dtype)
    return first(zero), jax.jacfwd(first)(zero)


@pytest.mark.parametrize(("function", "exact"), [FUNCTIONS[0], *exhaustive(*FUNCTIONS[1:])])  # by one rule
@pytest.mark.parametrize(("dtype", "gap"), [*product(["float64"], GAPS), *exhaustive(*product(["float32"], GAPS))])
def test_two_derivatives_against_the_block_identity(dtype, gap, function, exact):
    """log of the block matrix with a on the diagonal and e above it holds the derivatives /j! in its first row."""
    a = with_eigenvalues([1.0, 1.0 + gap, 2.0], 1)[0][0]
    e = np.random.default_rng(4).normal(size=(3, 3))
    e = 0.1 * (e + e.T)

    single = dtype == "float32"
    row = np.real(exact(np.kron(np.eye(3), a) + np.kron(np.eye(3, k=1), e)))[:3].reshape(3, 3, 3)
    derivatives = line_derivatives(function, jnp.asarray(a, dtype), jnp.asarray(e, dtype))
    for order, derivative in enumerate(derivatives, start=1):
        expected = row[:, order] * math.factorial(order)
        # scipy's own functions of defective matrices are good to about 1e-8.
        np.testing.assert_allclose(derivative, expected, atol=2e-3 if single else 3e-7)


@both_precisions
@pytest.mark.parametrize("gap", GAPS)
def test_derivatives_of_log_det_exp_near_equal_eigenvalues(dtype, gap):
    """Sum of log sinh(z)/z, about sum z^2/6: gradient and Hessian are finite, and right by finite differences."""
    tangent = jnp.asarray(with_eigenvalues([1.0, 1.0 + gap, 0.2], 1)[0][0], dtype)
    zero = np.zeros(6, dtype)
    _, gradient, hessian = volume_derivatives(tangent, zero)
    assert np.all(np.isfinite(gradient)) and np.all(np.isfinite(hessian))
    if dtype == "float64":
        step = 1e-4
        for i in range(6):
            (ahead, slope_ahead, _), (behind, slope_behind, _) = (
                volume_derivatives(tangent, sign * step * np.eye(6)[i]) for sign in (1, -1)
            )
            np.testing.assert_allclose(gradient[i], (ahead - behind) / (2 * step), atol=1e-7)
            np.testing.assert_allclose(hessian[i], (slope_ahead - slope_behind) / (2 * step), atol=1e-6)


@jax.jit
def volume_derivatives(tangent, z):
    manifold, p = SPD(3), jnp.eye(3, dtype=tangent.dtype)
    frame = manifold.frame(p)

    def volume(z):
        return manifold.log_det_exp(p, tangent + manifold.combine(z, frame))

    return volume(z), jax.grad(volume)(z), jax.hessian(volume)(z)


def test_the_derivative_of_a_reverse_derivative_sees_the_eigenvectors_turn():
    """Forward over reverse, where a rule that is transposed without its dependence on the matrix is wrong."""
    a = jnp.asarray(with_eigenvalues([0.5, 1.0, 3.0], 1)[0][0])
    probe, along = (jnp.asarray(x + x.T) for x in np.random.default_rng(2).normal(size=(2, 3, 3)))
    slope = jax.jit(jax.grad(lambda x: jnp.sum(probe * spectral.matrix_log(x))))
    found = jax.jit(lambda x: jax.jvp(slope, (x,), (along,))[1])(a)
    step = 1e-4
    np.testing.assert_allclose(found, (slope(a + step * along) - slope(a - step * along)) / (2 * step), atol=1e-6)


def test_what_is_not_known_of_a_third_derivative_is_refused():
    """It was 0: the second one is made of eigenvectors that do not turn."""
    x, along = jnp.diag(jnp.asarray([1.0, 2.5, -0.7])), jnp.diag(jnp.asarray([1.0, 0.0, 0.0]))

    def slope(t):
        return jax.grad(lambda t: spectral.sum_log_sinhc_gaps(x + t * along))(t)

    assert jax.grad(slope)(0.0) == pytest.approx(0.1472789, abs=1e-6)  # by differences
    with pytest.raises(TypeError, match="two derivatives"):
        jax.grad(jax.grad(slope))(0.0)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e-12, 1e6])
def test_logarithms_and_roots_have_derivatives_at_any_scale_in_single_precision(scale):
    a = jnp.asarray(with_eigenvalues([0.5, 1.0, 1.0], 1)[0][0])
    along = jnp.asarray(np.diag([1.0, -2.0, 0.5]) + 0.25)
    for function in (spectral.matrix_log, spectral.matrix_sqrt):
        expected = jax.jvp(function, (scale * a,), (scale * along,))[1]
        found = jax.jvp(function, ((scale * a).astype("float32"),), ((scale * along).astype("float32"),))[1]
        np.testing.assert_allclose(found, expected, atol=2e-5 * float(jnp.max(jnp.abs(expected))))


def test_small_matrices_of_size_2_have_means_in_single_precision():
    """Determinants of 1e-40."""
    manifold, scale = SPD(2), 1e-20
    x = np.stack([np.cov(np.random.default_rng(seed).normal(size=(2, 30))) for seed in range(8)])
    weights, small = jnp.full(8, 0.125), jnp.asarray(scale * x, "float32")
    mean = frechet_mean(manifold, jnp.asarray(x))
    np.testing.assert_allclose(frechet_mean(manifold, small) / scale, mean, rtol=1e-4, atol=1e-5)
    total, square = manifold.log_moments(small[0], small, weights.astype("float32"))
    expected, expected_square = manifold.log_moments(jnp.asarray(x[0]), jnp.asarray(x), weights)
    np.testing.assert_allclose(total / scale, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(square, expected_square, rtol=1e-4)
    found = spd2.harmonic_mean(small, weights.astype("float32")) / scale
    np.testing.assert_allclose(found, spd2.harmonic_mean(jnp.asarray(x), weights), rtol=1e-4)


def test_the_curvature_tensor_of_matrices_is_that_of_third_derivatives():
    manifold = SPD(3)
    point = a_point(manifold, 0)
    u, v, w = (a_tangent(manifold, point, seed, 1.0) for seed in range(3))
    expected = jax.jit(functools.partial(defaults.curvature_tensor, manifold))(point, u, v, w)
    np.testing.assert_allclose(manifold.curvature_tensor(point, u, v, w), expected, atol=1e-9)


@pytest.mark.parametrize(("size", "orders"), [(3, 3), (6, 2)])
def test_derivatives_that_are_not_known_are_refused(size, orders):
    matrix, move = jnp.diag(jnp.linspace(1.0, 2.0, size)), jnp.ones((size, size))

    def along(t):
        return spectral.matrix_log(matrix + t * move)[0, 1]

    for order in range(orders):
        along = jax.grad(along)
        assert np.isfinite(along(0.0)) and (order > 0 or along(0.0) != 0.0)
    with pytest.raises(TypeError, match="no more are known"):
        jax.grad(along)(0.0)
