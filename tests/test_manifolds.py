"""Laws that every manifold obeys, in both precisions."""

import functools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import logm
from scipy.spatial.transform import Rotation
from strategies import DTYPES, MORE, ONE_OF_EACH_KIND, a_point, a_tangent, cap, cast, exhaustive, name, reach

from jaxgeodp import (
    SPD,
    Euclidean,
    Grassmann,
    Hyperbolic,
    LogEuclidean,
    Manifold,
    PlanarShapes,
    Product,
    Rotations,
    Shapes3D,
    Sphere,
    riemannian_gradient,
    riemannian_hessian,
)
from jaxgeodp.manifolds.spectral import matrix_log
from jaxgeodp.testing import LAWS

# One of each class, with parts that compile soon; matrices of size 3 have tests/inner/test_spd3.py besides.
KINDS = [
    *(m for m in ONE_OF_EACH_KIND if m not in (SPD(3), Product(Sphere(2), SPD(2)))),
    Product(Sphere(2), Euclidean(1)),
]
FURTHER = [m for m in ONE_OF_EACH_KIND + MORE if m not in KINDS]
every_manifold = pytest.mark.parametrize("manifold", [*KINDS, *exhaustive(*FURTHER)], ids=name)
QUICK = [Sphere(2), SPD(2), PlanarShapes(4)]
# Each way to a volume envelope: curvature of one value, of two, of eigenvalues, and of principal angles.
ENVELOPES = [m for m in ONE_OF_EACH_KIND if m in (Sphere(2), SPD(2), PlanarShapes(4), Grassmann(5, 2))]
envelopes = pytest.mark.parametrize(
    "manifold", [*ENVELOPES, *exhaustive(*(m for m in ONE_OF_EACH_KIND + MORE if m not in ENVELOPES))], ids=name
)
quick = pytest.mark.parametrize(
    "manifold", [*QUICK, *exhaustive(*(m for m in ONE_OF_EACH_KIND + MORE if m not in QUICK))], ids=name
)
one_of_each_kind = pytest.mark.parametrize(
    "manifold", [*KINDS, *exhaustive(*(m for m in ONE_OF_EACH_KIND if m not in KINDS))], ids=name
)
both_precisions = pytest.mark.parametrize("dtype", DTYPES)


def gradient_of(manifold, fun):
    return jax.jit(riemannian_gradient(manifold, fun))


def hessian_of(manifold, fun):
    return jax.jit(riemannian_hessian(manifold, fun))


# Derivatives of distances compile for long: on further manifolds they are repetitions.
LONG = [("gradient_of_distance", KINDS[-1])]  # of a product, it consists of those of the parts
LONG += [("hessian_of_distance", m) for m in (KINDS[-1], Rotations())]  # its gradient is tried
# What tests/test_grassmann.py does not try.
OWN = ("points_belong", "inner_product", "round_trips", "sums_of_logarithms", "going_home")
LONG += [(law, Grassmann(5, 2)) for law in LAWS if law not in OWN]
LAWS_ON_MANIFOLDS = [(law, m) for law in LAWS for m in KINDS if (law, m) not in LONG]


@pytest.mark.parametrize(
    ("law", "manifold"),
    [*LAWS_ON_MANIFOLDS, *exhaustive(*LONG, *[(law, m) for law in LAWS for m in FURTHER])],
    ids=name,
)
def test_law(manifold, law):
    LAWS[law](manifold, "float64")  # raises AssertionError where it is broken


@pytest.mark.parametrize(
    "manifold",
    [Sphere(2), *exhaustive(*(m for m in ONE_OF_EACH_KIND if m != Sphere(2)))],
    ids=name,
)
@pytest.mark.parametrize("law", sorted(LAWS.keys() - {"hessian_of_distance", "volume", "minimal_geodesics"}))
def test_law_in_single_precision(manifold, law):
    LAWS[law](manifold, "float32")


def _third_derivative(function, step=1e-3):
    """By JAX, and by differences of the second; None for the first where it is refused."""
    second = jax.jit(jax.grad(jax.grad(function)))
    wide, narrow = ((second(h) - second(-h)) / (2.0 * h) for h in (step, 0.5 * step))
    try:
        found = jax.jit(jax.grad(jax.grad(jax.grad(function))))(0.0)
    except TypeError:
        found = None
    return found, (4.0 * narrow - wide) / 3.0


@pytest.mark.parametrize("manifold", exhaustive(*ONE_OF_EACH_KIND, LogEuclidean(3), *MORE), ids=name)
def test_third_derivatives_are_right_or_refused(manifold):
    length = 0.5 * reach(manifold)
    p = a_point(manifold, 1)
    v, w, u = (a_tangent(manifold, p, seed, share * length) for seed, share in ((2, 0.4), (3, 0.3), (4, 0.2)))
    q = manifold.exp(p, v)
    for function in (
        lambda t: manifold.squared_dist(q, manifold.exp(p, w + t * u)),
        lambda t: manifold.log_det_exp(p, v + t * u),
    ):
        found, expected = _third_derivative(function)
        if found is not None:
            np.testing.assert_allclose(found, expected, atol=1e-6, rtol=1e-5)


# In two dimensions the laws leave no other transport: an isometry that keeps the direction of the geodesic.
LADDERS = [m for m in ONE_OF_EACH_KIND if m in (SPD(2), PlanarShapes(4), Rotations(), Grassmann(5, 2))]


@pytest.mark.parametrize(
    "manifold",
    [
        *LADDERS,
        *exhaustive(*(m for m in ONE_OF_EACH_KIND + MORE if m not in LADDERS)),
    ],
    ids=name,
)
def test_transport_agrees_with_the_pole_ladder(manifold):
    p = a_point(manifold, 5)
    q = manifold.exp(p, a_tangent(manifold, p, 1, 0.5 * reach(manifold)))
    v = a_tangent(manifold, p, 2, 1.0)
    accuracy = 5e-6 if isinstance(manifold, Shapes3D) else 1e-8  # the ladder's, where space is not symmetric
    np.testing.assert_allclose(manifold.transport(p, q, v), Manifold.transport(manifold, p, q, v), atol=accuracy)


@one_of_each_kind
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31 - 1), exponent=st.floats(-8.0, 0.0))
def test_round_trips_at_any_place_and_length(manifold, seed, exponent):
    deviation = float(_round_trip(manifold, seed, 10.0**exponent * reach(manifold)))
    assert deviation < 1e-8


@functools.partial(jax.jit, static_argnums=0)
def _round_trip(manifold, seed, length):
    p = manifold.random_point(jax.random.key(seed))
    v = manifold.random_tangent(jax.random.key(seed + 1), p)
    v = (v / manifold.norm(p, v) * length).astype(p.dtype)
    q = manifold.exp(p, v)
    there, back = manifold.log(p, q), manifold.exp(p, manifold.log(p, q))
    return jnp.maximum(jnp.max(jnp.abs(there - v)), jnp.max(jnp.abs(back - q))) / (1.0 + jnp.max(jnp.abs(q))) ** 2


class TestWithAndWithoutJit(chex.TestCase):
    @chex.variants(with_jit=True, without_jit=True)
    def test_distance_to_a_geodesic_walk(self):
        for manifold in (Sphere(2), Hyperbolic(2), SPD(2), Rotations()):
            p = a_point(manifold, 31)
            v = a_tangent(manifold, p, 1, 0.7)

            def walk(t, manifold=manifold, p=p, v=v):
                return manifold.dist(p, manifold.exp(p, t * v))

            np.testing.assert_allclose(self.variant(walk)(0.5), 0.35, rtol=1e-9)


def tolerance(dtype, single=2e-4, double=1e-10):
    return single if dtype == "float32" else double


@every_manifold
def test_random_tangents_are_isotropic(manifold):
    p = a_point(manifold, 7)
    frame = manifold.frame(p)
    draws = jax.vmap(lambda key: manifold.coordinates(p, manifold.random_tangent(key, p), frame))(
        jax.random.split(jax.random.key(0), 4000)
    )
    # The covariance of 4000 draws is the identity within 6 standard errors.
    np.testing.assert_allclose(
        np.cov(draws.T).reshape(manifold.dim, -1), np.eye(manifold.dim), atol=6 * 1.5 / 4000**0.5
    )


@envelopes
def test_volume_envelope_lies_above_log_det_exp(manifold):
    p = a_point(manifold, 11)
    longest = min(manifold.injectivity_radius * 0.999, 12.0)
    knots = jnp.linspace(0.0, longest, 9)
    value, slope = manifold.volume_envelope(knots[:-1], knots[1:])
    lengths = jnp.linspace(knots[:-1], knots[1:], 5, axis=1)
    directions = jnp.stack([a_tangent(manifold, p, seed, 1.0) for seed in range(20)])
    every = jax.vmap(lambda u: jax.vmap(jax.vmap(lambda t: manifold.log_det_exp(p, t * u)))(lengths))
    actual = jax.jit(every)(directions)
    value, slope, knots, lengths = map(np.asarray, (value, slope, knots, lengths))
    assert np.all(actual <= value[:, None] + slope[:, None] * (lengths - knots[:-1, None]) + 1e-9)
    # The last line of an unbounded range is one for all lengths to infinity.
    if not np.isfinite(manifold.injectivity_radius):
        value, slope = map(np.asarray, manifold.volume_envelope(jnp.asarray(knots[-1:]), jnp.array([jnp.inf])))
        far = knots[-1] + np.linspace(0.0, 20.0, 9)
        actual = jax.vmap(lambda u: jax.vmap(lambda t: manifold.log_det_exp(p, t * u))(far))(directions)
        assert np.all(actual <= value + slope * (far - knots[-1]) + 1e-9)


@quick  # shapes have a bound of their own, the others have one in common
def test_log_covariance_bound_lies_above_the_largest_eigenvalue(manifold):
    p = a_point(manifold, 13)
    points = cap(manifold, p, 0.5 * reach(manifold), 40, 1)
    weights = jnp.asarray(np.random.default_rng(0).dirichlet(np.ones(40)))
    bound = manifold.log_covariance_bound(p, points, weights)
    frame = manifold.frame(p)
    logs = jax.vmap(lambda x: manifold.coordinates(p, manifold.log(p, x), frame))(points)
    largest = np.linalg.eigvalsh(np.asarray((logs * weights[:, None]).T @ logs, np.float64))[-1]
    assert largest <= bound * (1 + 1e-4)


@pytest.mark.parametrize(
    ("dtype", "manifold"),
    [
        # In double precision laws try it, and second derivatives of matrices have a test below.
        ("float32", Sphere(2)),
        *exhaustive(*[("float64", m) for m in (*QUICK, Hyperbolic(2), SPD(3), Rotations())]),
        *exhaustive(*[("float32", m) for m in (*QUICK[1:], Hyperbolic(2), SPD(3), Rotations())]),
    ],
    ids=name,
)
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


@pytest.mark.parametrize(  # of constant curvature it is what the law of Hessians says
    "manifold", [PlanarShapes(4), *exhaustive(Sphere(2), PlanarShapes(3), Sphere(4, 0.25), PlanarShapes(6))], ids=name
)
def test_hessian_spectrum_of_half_squared_distance(manifold):
    """Constant curvature: 1 and t sqrt(k) cot; projective space: also 2t cot 2t along J u."""
    p = a_point(manifold, 19)
    hessian = jax.jit(lambda q: riemannian_hessian(manifold, lambda x: 0.5 * manifold.squared_dist(x, q))(p))
    for t in (1e-4, 0.3, 0.7):
        values = np.linalg.eigvalsh(hessian(manifold.exp(p, a_tangent(manifold, p, 1, t))))
        angle = t * np.sqrt(manifold.transverse_curvature)
        expected = np.full(manifold.dim, angle / np.tan(angle))
        expected[-1] = 1.0
        if isinstance(manifold, PlanarShapes):
            expected[0] = 2 * t / np.tan(2 * t)
        np.testing.assert_allclose(values, np.sort(expected), atol=2e-7)


THROUGH = ("log", "transport", "volume")


@pytest.mark.parametrize(
    ("size", "through"),
    [(2, "log"), (2, "volume"), *exhaustive((2, "transport"), *[(k, m) for k in (3, 5) for m in THROUGH])],
)
def test_spd_derivatives_at_equal_eigenvalues_match_finite_differences(size, through):
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

    function = {"log": through_log, "transport": through_transport, "volume": through_volume}[through]
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


@pytest.mark.parametrize("size", [2, *exhaustive(3)])
@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-8, 1e-5, 1e-3, 1e-2, 0.019, 0.021, 0.1, 0.5])
def test_matrix_function_derivatives_near_equal_eigenvalues(gap, size):
    """To third order, against the block-triangular identity, for eigenvalues ``gap`` apart."""
    rng = np.random.default_rng(0)
    q, _ = np.linalg.qr(rng.normal(size=(size, size)))
    a = jnp.asarray(q @ np.diag([1.0, 1.0 + gap, 1.0 - 2 * gap * (gap < 0.4)][:size]) @ q.T)
    e = rng.normal(size=(size, size))
    e = jnp.asarray(e + e.T) * 0.1
    derivatives = _LINE_DERIVATIVES(a, e)
    # log of the block matrix with a on the diagonal and e above it holds the derivatives /j! in its first row.
    blocks = np.kron(np.eye(4), a) + np.kron(np.eye(4, k=1), e)
    row = np.real(logm(blocks))[:size].reshape(size, 4, size)
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
    gradient = jax.jit(lambda q: riemannian_gradient(manifold, lambda x: manifold.dist(x, q))(p))
    for fraction in (0.999, 1.0 - 1e-9, 1.0):
        q = manifold.exp(p, a_tangent(manifold, p, 0, fraction * manifold.injectivity_radius))
        np.testing.assert_allclose(manifold.dist(p, q), fraction * manifold.injectivity_radius, rtol=1e-7)
        chex.assert_tree_all_finite((manifold.log(p, q), gradient(q)))
        np.testing.assert_allclose(manifold.norm(p, manifold.log(p, q)), manifold.dist(p, q), rtol=1e-7)


@pytest.mark.parametrize("manifold", [Sphere(1), Sphere(2, 4.0), Sphere(7), PlanarShapes(4)], ids=str)
@both_precisions
def test_a_point_of_the_cut_locus_is_a_diameter_away(manifold, dtype):
    """Where the logarithm would be 0 it would look like a minimum of the distance."""
    planar = isinstance(manifold, PlanarShapes)
    signs = np.array([1, -1, 1, -1]) if planar else -1  # another square is orthogonal to the origin, which is one
    for start in (manifold.origin, -manifold.origin, *(() if planar else (a_point(manifold, 3),))):
        p = cast(manifold, start, dtype)
        q = signs * p
        direction = jax.jit(manifold.log)(p, q)
        accuracy = 2e-6 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(manifold.norm(p, direction), manifold.diameter, rtol=accuracy)
        np.testing.assert_allclose(manifold.to_tangent(p, direction), direction, atol=10 * accuracy)
        assert float(manifold.dist(manifold.exp(p, direction), q)) < (2e-3 if dtype == "float32" else 1e-7)
        chex.assert_tree_all_finite(jax.jacobian(manifold.log, (0, 1), holomorphic=planar)(p, q))
        total, square = manifold.log_moments(p, q[None], jnp.ones(1, direction.real.dtype))
        np.testing.assert_allclose(square, manifold.diameter**2, rtol=accuracy)
        np.testing.assert_allclose(manifold.to_tangent(p, total), total, atol=10 * accuracy)


@quick
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
        lambda: Hyperbolic(2, 1.0),
        lambda: Hyperbolic(2, "flat"),
        lambda: Product(),
        lambda: Product(Sphere(2), "SPD"),
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
    for manifold in KINDS:
        assert not manifold.admissible(cast(manifold, np.full(manifold.shape, np.nan)))
        assert manifold.admissible(a_point(manifold, 1))
        assert not manifold.belongs(cast(manifold, np.full(manifold.shape, np.nan)))


@every_manifold
def test_a_record_with_one_number_that_is_none_is_no_point(manifold):
    """Also where a projection would make a point of the rest."""
    records = []
    for place in np.ndindex(*manifold.shape):
        for wrong in (np.inf, -np.inf, np.nan, *([1j * np.inf] if manifold.dtype_kind == "complex" else [])):
            record = np.array(a_point(manifold, 1))
            record[place] = wrong
            records.append(record)
    assert not np.any(jax.jit(jax.vmap(manifold.admissible))(np.stack(records)))


# Manifolds against what is known from elsewhere -------------------------------------------------------


def test_hyperbolic_plane_is_that_of_matrices_of_determinant_one():
    """SPD(2) is the product of a line and a hyperbolic plane of curvature -1/2."""
    plane, matrices = Hyperbolic(2, -0.5), SPD(2)

    def matrix(x):
        x = x / plane.radius
        return jnp.array([[x[0] + x[1], x[2]], [x[2], x[0] - x[1]]])

    p, q = a_point(plane, 1), a_point(plane, 2)
    np.testing.assert_allclose(plane.dist(p, q), matrices.dist(matrix(p), matrix(q)), rtol=1e-10)
    v = a_tangent(plane, p, 3, 1.0)
    along, moved = (jax.jvp(matrix, (x,), (u,))[1] for x, u in ((p, v), (q, plane.transport(p, q, v))))
    np.testing.assert_allclose(moved, matrices.transport(matrix(p), matrix(q), along), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", *exhaustive("float32")])
def test_small_distances_keep_their_digits_on_other_manifolds(dtype):
    for manifold in (Hyperbolic(2), Rotations(), KINDS[-1]):
        p = cast(manifold, manifold.origin, dtype)
        for length in (1e-3, 1e-4):
            q = manifold.exp(p, a_tangent(manifold, p, 2, length))
            np.testing.assert_allclose(manifold.dist(p, q), length, rtol=5e-3 if dtype == "float32" else 1e-10)


def test_rotations_against_scipy_up_to_the_cut_locus():
    manifold, rng = Rotations(), np.random.default_rng(0)
    for angle in (1e-8, 0.3, 2.0, 3.0, math.pi - 1e-6, math.pi - 1e-12):
        base, axis = Rotation.from_rotvec(rng.normal(size=3)), rng.normal(size=3)
        vector = angle * axis / np.linalg.norm(axis)
        p, q = base.as_matrix(), (base * Rotation.from_rotvec(vector)).as_matrix()
        np.testing.assert_allclose(manifold.dist(p, q), angle, rtol=1e-7, atol=1e-14)
        expected = np.array([[0, -vector[2], vector[1]], [vector[2], 0, -vector[0]], [-vector[1], vector[0], 0]])
        found = np.asarray(p.T @ manifold.log(p, q))
        if angle > 3.1:  # either way round
            expected = expected * np.sign(np.sum(found * expected))
        np.testing.assert_allclose(found, expected, atol=2e-7)


def test_nearest_rotation_is_that_of_the_singular_value_decomposition():
    rng = np.random.default_rng(1)
    for _ in range(20):
        x = rng.normal(size=(3, 3))
        left, _, right = np.linalg.svd(x)
        nearest = left @ np.diag([1.0, 1.0, np.linalg.det(left @ right)]) @ right
        np.testing.assert_allclose(Rotations().project(jnp.asarray(x)), nearest, atol=1e-8)
    derivative = jax.jit(jax.jacobian(Rotations().project))(jnp.eye(3))
    np.testing.assert_allclose(np.reshape(derivative, (9, 9)).trace(), 3.0, atol=1e-9)
    assert not Rotations().admissible(-jnp.eye(3))
    assert not Rotations().admissible(jnp.zeros((3, 3)))


def test_geodesics_of_a_product_are_minimal_only_where_all_parts_are():
    product = Product(Sphere(2), Euclidean(1))
    p = jnp.asarray(product.origin)
    assert product.injectivity_radius == pytest.approx(math.pi)
    assert product.diameter == math.inf
    flat_and_long = product.join(jnp.zeros(3), [100.0])
    around = product.join([3.5, 0.0, 0.0], [0.1])
    assert product.log_det_exp(p, flat_and_long) == 0.0
    assert product.log_det_exp(p, around) == -jnp.inf
    assert Product(Sphere(2), Sphere(3)).diameter == pytest.approx(math.sqrt(2) * math.pi)


def test_parts_of_a_product_survive_joining():
    product = Product(PlanarShapes(4), SPD(2), Euclidean(1))
    parts = [a_point(factor, 3) for factor in product.manifolds]
    for part, again in zip(parts, product.split(product.join(*parts)), strict=True):
        np.testing.assert_array_equal(part, again)
    with pytest.raises(ValueError, match="must have shape"):
        product.join(parts[1], parts[0], parts[2])
    with pytest.raises(ValueError, match="needs 3 parts"):
        product.join(*parts[:2])


CURVED = [m for m in ONE_OF_EACH_KIND if m in (SPD(2), PlanarShapes(4), Hyperbolic(2), Rotations())]


@pytest.mark.parametrize(
    "manifold",
    [*CURVED, *exhaustive(*(m for m in ONE_OF_EACH_KIND if m not in CURVED))],
    ids=name,
)
def test_the_trace_of_the_curvature_is_bounded_and_attained(manifold):
    """log|det d exp(tv)| = -Ric(v, v) t^2/6 + O(t^4)."""
    p = jnp.asarray(manifold.origin)
    t = 0.02
    units = jnp.stack([a_tangent(manifold, p, seed, t) for seed in range(60)])
    ricci = 6.0 * np.abs(jax.vmap(lambda v: manifold.log_det_exp(p, v))(units)) / t**2
    assert np.all(ricci <= manifold.curvature_trace * (1 + 1e-3) + 1e-9)
    if not isinstance(manifold, Product):  # there signs cancel
        assert np.max(ricci) >= 0.75 * manifold.curvature_trace


# Curvature --------------------------------------------------------------------------------------------

OF_CURVATURE = [Sphere(2, 4.0), Grassmann(4, 2), SPD(3)]


@pytest.mark.parametrize(
    "manifold", [*OF_CURVATURE, *exhaustive(*(m for m in ONE_OF_EACH_KIND + MORE if m not in OF_CURVATURE))], ids=name
)
def test_the_curvature_tensor_has_its_symmetries_and_lies_within_the_stated_bounds(manifold):
    point = a_point(manifold, 0)
    if manifold.dim == 1:
        return
    inner, tensor = (
        functools.partial(manifold.inner, point),
        jax.jit(functools.partial(manifold.curvature_tensor, point)),
    )
    lowest, highest = manifold.curvature_bounds
    if isinstance(manifold, Shapes3D):
        lowest, highest = manifold.within(point, 0.0).curvature_bounds
    for seed in range(6):
        u, v, w = (a_tangent(manifold, point, 3 * seed + place, 1.0) for place in range(3))
        v = v - inner(u, v) * u
        v = v / manifold.norm(point, v)
        np.testing.assert_allclose(tensor(u, v, w), -tensor(v, u, w), atol=1e-5)
        np.testing.assert_allclose(tensor(u, v, w) + tensor(v, w, u) + tensor(w, u, v), 0.0 * u, atol=1e-5)
        np.testing.assert_allclose(inner(tensor(u, v, w), w), 0.0, atol=1e-5)
        assert lowest - 1e-5 <= inner(tensor(u, v, v), u) <= highest + 1e-5


@pytest.mark.parametrize("manifold", [Sphere(2, 4.0), *exhaustive(Hyperbolic(3, -0.5), Rotations())], ids=name)
def test_the_curvature_tensor_of_constant_curvature(manifold):
    point, (lowest, highest) = a_point(manifold, 0), manifold.curvature_bounds
    assert lowest == highest
    u, v, w = (a_tangent(manifold, point, seed, 1.0) for seed in range(3))
    expected = highest * (manifold.inner(point, v, w) * u - manifold.inner(point, u, w) * v)
    np.testing.assert_allclose(jax.jit(manifold.curvature_tensor)(point, u, v, w), expected, atol=1e-9)
