"""Laws that every manifold obeys, in both precisions."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import logm
from strategies import DTYPES, MANIFOLDS, a_point, a_tangent, cap, cast, name, reach

from jaxgeodp import SPD, Euclidean, Manifold, PlanarShapes, Sphere, riemannian_gradient, riemannian_hessian
from jaxgeodp.manifolds.spectral import matrix_log

every_manifold = pytest.mark.parametrize("manifold", MANIFOLDS, ids=name)
both_precisions = pytest.mark.parametrize("dtype", DTYPES)


def gradient_of(manifold, fun):
    return jax.jit(riemannian_gradient(manifold, fun))


def hessian_of(manifold, fun):
    return jax.jit(riemannian_hessian(manifold, fun))


def tolerance(dtype, single=2e-4, double=1e-10):
    return single if dtype == "float32" else double


@every_manifold
@both_precisions
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), fraction=st.sampled_from([1e-7, 1e-3, 0.1, 0.5, 1.0]))
def test_round_trip_and_lengths(manifold, dtype, seed, fraction):
    p = a_point(manifold, seed, dtype)
    v = a_tangent(manifold, p, seed, fraction * reach(manifold))
    q = manifold.exp(p, v)
    atol = tolerance(dtype) * float(1 + jnp.max(jnp.abs(p)))
    assert q.dtype == p.dtype
    assert bool(manifold.belongs(q, atol))
    np.testing.assert_allclose(manifold.log(p, q), v, atol=atol)
    length = float(manifold.norm(p, v))
    np.testing.assert_allclose(manifold.dist(p, q), length, atol=tolerance(dtype), rtol=1e-3)
    np.testing.assert_allclose(manifold.dist(q, p), manifold.dist(p, q), atol=tolerance(dtype))
    np.testing.assert_allclose(manifold.exp(p, manifold.log(p, q)), q, atol=atol)


@every_manifold
@both_precisions
def test_transport_is_an_isometry_and_keeps_the_geodesic(manifold, dtype):
    p = a_point(manifold, 3, dtype)
    u, v = (a_tangent(manifold, p, seed, 0.7 * reach(manifold)) for seed in (1, 2))
    q = manifold.exp(p, u)
    moved_u, moved_v = manifold.transport(p, q, u), manifold.transport(p, q, v)
    atol = tolerance(dtype) * float(1 + jnp.max(jnp.abs(p)) + jnp.max(jnp.abs(q)))
    np.testing.assert_allclose(manifold.inner(q, moved_u, moved_v), manifold.inner(p, u, v), atol=atol)
    np.testing.assert_allclose(moved_u, -manifold.log(q, p), atol=atol)
    np.testing.assert_allclose(manifold.to_tangent(q, moved_v), moved_v, atol=atol)


@every_manifold
def test_transport_solves_its_differential_equation(manifold):
    """Parallel along the geodesic: compare with Schild's ladder of many rungs."""
    p = a_point(manifold, 5)
    u, v = a_tangent(manifold, p, 1, 0.5 * reach(manifold)), a_tangent(manifold, p, 2, 1.0)
    rungs = 400
    point, vector = p, v
    for j in range(rungs):
        following = manifold.exp(p, u * ((j + 1) / rungs))
        step = vector / rungs
        # Pole ladder: second order in the rung, so 400 rungs are exact to about 1e-5.
        middle = manifold.exp(p, u * ((j + 0.5) / rungs))
        tip = manifold.exp(point, step)
        mirrored = manifold.exp(middle, -manifold.log(middle, tip))
        vector = -manifold.log(following, mirrored) * rungs
        point = following
        if isinstance(manifold, PlanarShapes):
            # Keep to the representative on the horizontal geodesic.
            vector = manifold.to_tangent(following, vector)
    np.testing.assert_allclose(manifold.transport(p, manifold.exp(p, u), v), vector, atol=2e-4)


@every_manifold
@both_precisions
def test_frame_is_orthonormal_and_normal_tangents_are_isotropic(manifold, dtype):
    p = a_point(manifold, 7, dtype)
    frame = manifold.frame(p)
    chex.assert_shape(frame, (manifold.dim, *manifold.shape))
    gram = jax.vmap(lambda e: manifold.coordinates(p, e, frame))(frame)
    np.testing.assert_allclose(gram, np.eye(manifold.dim), atol=tolerance(dtype))
    np.testing.assert_allclose(jax.vmap(lambda e: manifold.to_tangent(p, e))(frame), frame, atol=tolerance(dtype))
    draws = jax.vmap(lambda key: manifold.coordinates(p, manifold.random_tangent(key, p), frame))(
        jax.random.split(jax.random.key(0), 4000)
    )
    # The covariance of 4000 draws is the identity within 6 standard errors.
    np.testing.assert_allclose(
        np.cov(draws.T).reshape(manifold.dim, -1), np.eye(manifold.dim), atol=6 * 1.5 / 4000**0.5
    )


@every_manifold
def test_log_det_exp_is_the_jacobian(manifold):
    p = a_point(manifold, 9)
    for seed, fraction in enumerate([0.0, 1e-6, 0.3, 1.0]):
        v = a_tangent(manifold, p, seed, 1.0) * fraction * reach(manifold)
        generic = Manifold.log_det_exp(manifold, p, v)
        np.testing.assert_allclose(manifold.log_det_exp(p, v), generic, atol=1e-8)
        length = jnp.asarray(float(manifold.norm(p, v)))
        assert manifold.log_det_exp(p, v) <= manifold.volume_growth * length + 1e-12


@every_manifold
def test_volume_envelope_lies_above_log_det_exp(manifold):
    p = a_point(manifold, 11)
    longest = min(manifold.injectivity_radius * 0.999, 12.0)
    knots = jnp.linspace(0.0, longest, 9)
    value, slope = manifold.volume_envelope(knots[:-1], knots[1:])
    for seed in range(20):
        direction = a_tangent(manifold, p, seed, 1.0)
        for j in range(8):
            for t in np.linspace(knots[j], knots[j + 1], 5):
                actual = manifold.log_det_exp(p, direction * t)
                assert actual <= value[j] + slope[j] * (t - knots[j]) + 1e-9


@every_manifold
@both_precisions
def test_log_moments_equal_the_sums_of_logs(manifold, dtype):
    p = a_point(manifold, 13, dtype)
    points = cap(manifold, p, 0.5 * reach(manifold), 40, 1, dtype)
    weights = cast(Euclidean(1), np.random.default_rng(0).dirichlet(np.ones(40)), dtype)
    total, square = manifold.log_moments(p, points, weights)
    expected, expected_square = Manifold.log_moments(manifold, p, points, weights)
    np.testing.assert_allclose(total, expected, atol=tolerance(dtype))
    np.testing.assert_allclose(square, expected_square, atol=tolerance(dtype))
    bound = manifold.log_covariance_bound(p, points, weights)
    frame = manifold.frame(p)
    logs = jax.vmap(lambda x: manifold.coordinates(p, manifold.log(p, x), frame))(points)
    largest = np.linalg.eigvalsh(np.asarray((logs * weights[:, None]).T @ logs, np.float64))[-1]
    assert largest <= bound * (1 + 1e-4)


@every_manifold
def test_gradient_of_half_squared_distance_is_minus_log(manifold):
    p = a_point(manifold, 15)
    q = manifold.exp(p, a_tangent(manifold, p, 0, 0.8 * reach(manifold)))
    gradient = gradient_of(manifold, lambda x: 0.5 * manifold.squared_dist(x, q))(p)
    np.testing.assert_allclose(gradient, -manifold.log(p, q), atol=1e-9)
    frame, step = manifold.frame(p), 1e-5
    for j in range(min(manifold.dim, 4)):
        e = frame[j] * step
        difference = manifold.squared_dist(manifold.exp(p, e), q) - manifold.squared_dist(manifold.exp(p, -e), q)
        np.testing.assert_allclose(difference / (4 * step), manifold.inner(p, frame[j], gradient), atol=1e-6)


@every_manifold
@both_precisions
def test_gradients_and_hessians_are_right_at_coincident_points(manifold, dtype):
    p = a_point(manifold, 17, dtype)

    def half_squared(x):
        return 0.5 * manifold.squared_dist(x, p)

    gradient = gradient_of(manifold, half_squared)(p)
    hessian = hessian_of(manifold, half_squared)(p)
    chex.assert_tree_all_finite((gradient, hessian))
    np.testing.assert_allclose(gradient, jnp.zeros_like(p), atol=tolerance(dtype))
    np.testing.assert_allclose(hessian, np.eye(manifold.dim), atol=tolerance(dtype, 2e-3, 1e-8))
    chex.assert_tree_all_finite(gradient_of(manifold, lambda x: manifold.dist(x, p))(p))
    volume = jax.jit(jax.hessian(lambda z: manifold.log_det_exp(p, manifold.combine(z, manifold.frame(p)))))
    chex.assert_tree_all_finite(volume(jnp.zeros(manifold.dim, dtype)))


@pytest.mark.parametrize("manifold", [Sphere(2), Sphere(4, 0.25), PlanarShapes(3), PlanarShapes(6)], ids=name)
def test_hessian_spectrum_of_half_squared_distance(manifold):
    """Constant curvature: 1 and t sqrt(k) cot; projective space: also 2t cot 2t along J u."""
    p = a_point(manifold, 19)
    for t in (1e-4, 0.3, 0.7):
        q = manifold.exp(p, a_tangent(manifold, p, 1, t))
        values = np.linalg.eigvalsh(hessian_of(manifold, lambda x, q=q: 0.5 * manifold.squared_dist(x, q))(p))
        angle = t * np.sqrt(manifold.transverse_curvature)
        expected = np.full(manifold.dim, angle / np.tan(angle))
        expected[-1] = 1.0
        if isinstance(manifold, PlanarShapes):
            expected[0] = 2 * t / np.tan(2 * t)
        np.testing.assert_allclose(values, np.sort(expected), atol=2e-7)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_spd_derivatives_at_equal_eigenvalues_match_finite_differences(size):
    """Second derivatives of log, exp, sqrt-based maps where eigh's own rule gives NaN."""
    manifold = SPD(size)
    p = jnp.eye(size) * 1.3
    frame = manifold.frame(p)
    target = jnp.diag(jnp.array([2.0, 2.0, 0.5, 0.5, 2.0][:size]))  # repeated eigenvalues
    probe = a_tangent(manifold, p, 3, 1.0)

    def through_log(z):
        return jnp.sum(probe * manifold.log(manifold.exp(p, manifold.combine(z, frame)), target))

    def through_transport(z):
        return jnp.sum(probe * manifold.transport(p, manifold.exp(p, manifold.combine(z, frame)), probe))

    def through_volume(z):
        return manifold.log_det_exp(p, target + manifold.combine(z, frame))

    for function in (through_log, through_transport, through_volume):
        hessian = jax.jit(jax.hessian(function))(jnp.zeros(manifold.dim))
        gradient = jax.jit(jax.grad(function))
        chex.assert_tree_all_finite(hessian)
        step = 1e-4
        for i in range(manifold.dim):
            e = jnp.zeros(manifold.dim).at[i].set(step)
            column = (gradient(e) - gradient(-e)) / (2 * step)
            np.testing.assert_allclose(hessian[i], column, atol=2e-6)
            slope = (function(e) - function(-e)) / (2 * step)
            np.testing.assert_allclose(gradient(0 * e)[i], slope, atol=1e-6)


def _line_derivatives(a, e):
    def line(t):
        return matrix_log(a + t * e)

    first = jax.jacfwd(line)
    return first(0.0), jax.jacfwd(first)(0.0), jax.jacfwd(jax.jacfwd(first))(0.0)


@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-8, 1e-5, 1e-3, 1e-2, 0.019, 0.021, 0.1, 0.5])
def test_matrix_function_derivatives_near_equal_eigenvalues(gap):
    """To third order, against the block-triangular identity, for eigenvalues ``gap`` apart."""
    rng = np.random.default_rng(0)
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    a = jnp.asarray(q @ np.diag([1.0, 1.0 + gap, 1.0 - 2 * gap * (gap < 0.4)]) @ q.T)
    e = rng.normal(size=(3, 3))
    e = jnp.asarray(e + e.T) * 0.1
    derivatives = _LINE_DERIVATIVES(a, e)
    # log of the block matrix with a on the diagonal and e above it holds the derivatives /j! in its first row.
    blocks = np.kron(np.eye(4), a) + np.kron(np.eye(4, k=1), e)
    row = np.real(logm(blocks))[:3].reshape(3, 4, 3)
    for order, derivative in enumerate(derivatives, start=1):
        np.testing.assert_allclose(derivative, row[:, order] * math.factorial(order), atol=2e-6, rtol=1e-5)


_LINE_DERIVATIVES = jax.jit(_line_derivatives)


def test_spd_isometries():
    rng = np.random.default_rng(0)
    for size in (2, 3, 5):
        manifold = SPD(size)
        p, q = a_point(manifold, 1), a_point(manifold, 2)
        a = jnp.asarray(rng.normal(size=(size, size)))
        np.testing.assert_allclose(manifold.dist(a @ p @ a.T, a @ q @ a.T), manifold.dist(p, q), rtol=1e-8)
        np.testing.assert_allclose(manifold.dist(jnp.linalg.inv(p), jnp.linalg.inv(q)), manifold.dist(p, q), rtol=1e-8)
        direct = np.sqrt(np.sum(np.log(np.linalg.eigvals(np.linalg.solve(p, q)).real) ** 2))
        np.testing.assert_allclose(manifold.dist(p, q), direct, rtol=1e-8)


def test_sphere_and_shape_isometries():
    rng = np.random.default_rng(0)
    sphere = Sphere(3, 2.0)
    rotation, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    p, q = a_point(sphere, 1), a_point(sphere, 2)
    np.testing.assert_allclose(sphere.dist(rotation @ p, rotation @ q), sphere.dist(p, q), rtol=1e-12)
    shapes = PlanarShapes(7)
    xy = rng.normal(size=(2, 7, 2))
    turn = np.array([[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]])
    p, q = shapes.from_landmarks(xy)
    moved = shapes.from_landmarks(3.0 * xy[1] @ turn.T + np.array([5.0, -2.0]))
    assert shapes.dist(q, moved) < 1e-12
    np.testing.assert_allclose(shapes.dist(p, moved), shapes.dist(p, q), rtol=1e-12)
    np.testing.assert_allclose(shapes.dist(p, q), np.arccos(abs(np.vdot(p, q))), rtol=1e-9)
    np.testing.assert_allclose(shapes.from_landmarks(shapes.to_landmarks(p)), p, atol=1e-14)


@both_precisions
def test_small_distances_keep_their_digits(dtype):
    """arccos would lose all digits here."""
    for manifold in (Sphere(2), PlanarShapes(5), SPD(2)):
        p = cast(manifold, manifold.origin, dtype)
        for length in (1e-3, 1e-4):
            q = manifold.exp(p, a_tangent(manifold, p, 2, length))
            relative = 5e-3 if dtype == "float32" else 1e-10
            np.testing.assert_allclose(manifold.dist(p, q), length, rtol=relative)


@every_manifold
def test_edge_of_the_cut_locus_is_finite(manifold):
    if not np.isfinite(manifold.injectivity_radius):
        pytest.skip("no cut locus")
    p = a_point(manifold, 21)
    for fraction in (0.999, 1.0 - 1e-9, 1.0):
        q = manifold.exp(p, a_tangent(manifold, p, 0, fraction * manifold.injectivity_radius))
        np.testing.assert_allclose(manifold.dist(p, q), fraction * manifold.injectivity_radius, rtol=1e-7)
        chex.assert_tree_all_finite(
            (manifold.log(p, q), riemannian_gradient(manifold, lambda x, q=q: manifold.dist(x, q))(p))
        )


@every_manifold
def test_operations_agree_with_and_without_jit_and_under_vmap(manifold):
    p = a_point(manifold, 23)
    points = cap(manifold, p, 0.4 * reach(manifold), 6, 2)
    with jax.disable_jit():
        plain = [manifold.log(p, x) for x in points]
    np.testing.assert_allclose(jax.vmap(lambda x: manifold.log(p, x))(points), jnp.stack(plain), atol=1e-12)
    np.testing.assert_allclose(
        jax.jit(jax.vmap(lambda x: manifold.dist(p, x)))(points),
        [manifold.dist(p, x) for x in points],
        atol=1e-12,
    )


@pytest.mark.parametrize(
    "build",
    [
        lambda: Sphere(0),
        lambda: Sphere(2, -1.0),
        lambda: Sphere(2, float("nan")),
        lambda: SPD(1.5),
        lambda: PlanarShapes(2),
        lambda: Euclidean(True),
    ],
)
def test_bad_parameters_are_named_in_one_sentence(build):
    with pytest.raises(ValueError, match=r"must be .*, got .*\.$"):
        build()


def test_records_that_are_no_points():
    assert not Sphere(2).admissible(jnp.zeros(3))
    assert Sphere(2).admissible(jnp.array([0.0, 3.0, 4.0]))
    assert not SPD(2).admissible(jnp.array([[1.0, 2.0], [2.0, 1.0]]))
    assert not SPD(3).admissible(jnp.diag(jnp.array([1.0, -1.0, 2.0])))
    assert not SPD(2).admissible(jnp.array([[1.0, 0.1], [0.0, 1.0]]))
    assert not PlanarShapes(4).admissible(jnp.full(4, 0.1 + 0.7j))
    assert PlanarShapes(4).admissible(jnp.array([1e-9, 2e-9, 1e-9j, 0.0]))
    for manifold in MANIFOLDS:
        assert not manifold.admissible(cast(manifold, np.full(manifold.shape, np.nan)))
        assert manifold.admissible(a_point(manifold, 1))
        assert not manifold.belongs(cast(manifold, np.full(manifold.shape, np.nan)))
