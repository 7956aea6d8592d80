"""Medians, power means, user losses, and minimisation."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from strategies import a_point, a_tangent, cap, exhaustive, name

from jaxgeodp import (
    SPD,
    EmpiricalRisk,
    Euclidean,
    FrechetMean,
    FrechetMedian,
    GeodesicBall,
    Grassmann,
    Hyperbolic,
    KNGMechanism,
    LaplaceMechanism,
    PlanarShapes,
    PowerMean,
    Product,
    Rotations,
    Sphere,
    Statistic,
    TangentLaplace,
    frechet_mean,
    frechet_median,
    minimize,
    power_mean,
    riemannian_gradient,
)
from jaxgeodp.bounds.power_growth import power_growth
from jaxgeodp.domains.geodesic_ball import assumption_limit

MANIFOLDS = [Euclidean(3), Sphere(2), SPD(2), PlanarShapes(4), Hyperbolic(2), Rotations()]
# Curved one way and the other.
CURVED = [Sphere(2), Hyperbolic(2)]
OTHERS = [manifold for manifold in MANIFOLDS if manifold not in CURVED]
each_manifold = pytest.mark.parametrize("manifold", [*CURVED, *exhaustive(*OTHERS)], ids=name)
each_power = pytest.mark.parametrize(
    ("manifold", "power"),
    [
        *[(m, 1.0) for m in CURVED],
        *[(Sphere(2), p) for p in (1.5, 3.0)],
        *exhaustive(
            *[(m, 1.0) for m in OTHERS],
            *[(m, p) for m in (SPD(2), PlanarShapes(4)) for p in (1.5, 3.0)],
        ),
    ],
    ids=name,
)


def radius_on(manifold):
    return min(1.0, 0.9 * assumption_limit(manifold))


def data_on(manifold, n=15, seed=2):
    center = jnp.asarray(manifold.origin)
    return cap(manifold, center, radius_on(manifold), n, seed)


def objective(manifold, points, power):
    return lambda x: jnp.mean(jax.vmap(lambda y: manifold.dist(x, y))(points) ** power) / power


@each_power
def test_power_means_are_stationary_and_minimal(manifold, power):
    points = data_on(manifold)
    mean = power_mean(manifold, points, power)
    fun = jax.jit(objective(manifold, points, power))
    assert manifold.norm(mean, riemannian_gradient(manifold, fun)(mean)) < 1e-9
    for seed in range(5):
        assert fun(manifold.exp(mean, a_tangent(manifold, mean, seed, 1e-3))) > fun(mean)


@each_manifold
def test_power_two_is_the_mean_and_weights_count_records(manifold):
    points = data_on(manifold)
    np.testing.assert_allclose(
        manifold.dist(power_mean(manifold, points, 2.0), frechet_mean(manifold, points)), 0, atol=1e-9
    )
    weights = jnp.asarray(np.random.default_rng(0).integers(1, 4, 15).astype(float))
    repeated = jnp.repeat(points, np.asarray(weights, int), axis=0)
    once, many = frechet_median(manifold, points, weights), frechet_median(manifold, repeated)
    np.testing.assert_allclose(manifold.dist(once, many), 0, atol=1e-8)


@pytest.mark.parametrize("manifold", [Sphere(2), *exhaustive(Euclidean(2))], ids=name)
def test_a_median_can_be_a_datum_and_moves_with_it(manifold):
    points = data_on(manifold, 5)
    weights = jnp.array([1.0, 1.0, 5.0, 1.0, 1.0])
    np.testing.assert_array_equal(frechet_median(manifold, points, weights), points[2])
    moved = a_tangent(manifold, points[2], 1, 1.0)
    tangents = jnp.zeros_like(points).at[2].set(moved).at[0].set(a_tangent(manifold, points[0], 2, 1.0))
    for power in (1.0, 1.5):

        def mean(x, power=power):
            return power_mean(manifold, x, power, weights)

        if power > 1:  # the others balance at that datum
            middle = points[2]
            mirrored = jax.vmap(lambda x, m=middle: manifold.exp(m, -manifold.log(m, x)))(points[:2])
            points = points.at[3:].set(mirrored)
            np.testing.assert_allclose(manifold.dist(mean(points), points[2]), 0.0, atol=1e-12)
            points = points.at[2].set(mean(points))
        derivative = jax.jit(lambda x, v: jax.jvp(mean, (x,), (v,))[1])(points, tangents)
        np.testing.assert_allclose(derivative, moved, atol=1e-12)
        (pulled,) = jax.jit(lambda x, v: jax.vjp(mean, x)[1](v))(points, moved)
        np.testing.assert_allclose(np.sum(pulled * tangents), np.sum(moved * moved), rtol=1e-9)


def test_a_median_stays_where_the_mean_goes():
    points = jnp.concatenate([data_on(Euclidean(3), 9), jnp.full((4, 3), 1e6)])
    assert jnp.linalg.norm(frechet_median(Euclidean(3), points)) < 3.0
    assert jnp.linalg.norm(frechet_mean(Euclidean(3), points)) > 1e5


@pytest.mark.parametrize(
    ("manifold", "power"),
    [(Euclidean(2), 1.0), *exhaustive((Sphere(2), 1.0), (SPD(2), 1.0), (PlanarShapes(4), 3.0))],
    ids=name,
)
def test_derivatives_of_power_means_match_finite_differences(manifold, power):
    points, weights = data_on(manifold, 6), jnp.linspace(0.5, 1.5, 6)
    base = points[0]
    probe = a_tangent(manifold, base, 9, 1.0)
    directions = jnp.stack([a_tangent(manifold, x, j, 1.0) for j, x in enumerate(points)])
    bend = jnp.linspace(-1.0, 1.0, 6)

    @jax.jit
    def along(t):
        moved = jax.vmap(lambda x, v: manifold.exp(x, t * v))(points, directions)
        mean = power_mean(manifold, moved, power, weights + t * bend)
        return manifold.inner(base, probe, manifold.log(base, mean))

    step = 1e-4
    expected = (along(step) - along(-step)) / (2 * step)
    np.testing.assert_allclose(jax.jacfwd(along)(0.0), expected, atol=1e-6)
    np.testing.assert_allclose(jax.jacrev(along)(0.0), expected, atol=1e-6)
    slope = jax.jit(jax.grad(along))
    bent = (slope(step) - slope(-step)) / (2 * step)
    np.testing.assert_allclose(jax.jit(jax.grad(jax.grad(along)))(0.0), bent, atol=1e-5)


@each_power
def test_no_neighbour_exceeds_the_sensitivity_of_the_gradient(manifold, power):
    radius, n = radius_on(manifold), 4
    ball = GeodesicBall(manifold, manifold.origin, radius)
    statistic = PowerMean(power)
    reach = 0.99 * radius
    bound = statistic.gradient_sensitivity(ball, n, reach, "tight").value
    center = jnp.asarray(ball.center)
    points = data_on(manifold, n)

    @jax.jit
    def change(x, a, b):
        before, after = (statistic.gradient(manifold, x, points.at[-1].set(y)) for y in (a, b))
        return manifold.norm(x, before - after)

    largest = 0.0
    for seed in range(40):
        u = a_tangent(manifold, center, seed, 1.0)
        # Opposite records at the rim, seen from the middle and from the rim.
        a, b = manifold.exp(center, radius * u), manifold.exp(center, -radius * u)
        v = u if seed % 2 else a_tangent(manifold, center, 100 + seed, 1.0)
        largest = max(largest, *(float(change(manifold.exp(center, t * v), a, b)) for t in (1e-3, 0.5 * reach, reach)))
    assert largest <= bound * (1 + 1e-9)
    assert largest >= (0.99 if power == 1.0 else 0.3) * bound


@each_power
def test_gradient_grows_at_least_as_certified(manifold, power):
    radius = radius_on(manifold)
    points = data_on(manifold)
    mean = power_mean(manifold, points, power)
    statistic = PowerMean(power)
    edges = jnp.linspace(0.0, radius, 30)
    shares = jnp.array([[0.001], [0.3], [0.7], [0.999]])
    lengths = (edges[:-1] + shares * jnp.diff(edges)).ravel()

    @jax.jit
    def certified(center):
        pull = statistic.gradient_norm(manifold, center, points)
        growth = power_growth(manifold, center, pull, points, 2 * radius, power)
        values, slopes = growth.lines(edges[:-1], edges[1:])
        return (values + slopes * shares * jnp.diff(edges)).ravel()

    @jax.jit
    def actual(center, u):
        at = jax.vmap(lambda t: manifold.exp(center, (t * u).astype(u.dtype)))(lengths)
        inside = jax.vmap(lambda x: manifold.dist(jnp.asarray(manifold.origin), x) <= radius)(at)
        norms = jax.vmap(lambda x: statistic.gradient_norm(manifold, x, points))(at)
        return jnp.where(inside, norms, jnp.inf)

    # From the minimiser, and from a centre that is none.
    for center in (mean, manifold.exp(mean, a_tangent(manifold, mean, 99, 0.1 * radius))):
        bound = np.asarray(certified(center))
        norms = np.min([actual(center, a_tangent(manifold, center, seed, 1.0)) for seed in range(40)], axis=0)
        assert np.all(norms >= bound - 1e-9)
        # A bound 10 % above would be false somewhere, or the bound is at least of use.
        useful = np.isfinite(norms) & (bound > 0)
        assert np.min(norms[useful] / bound[useful]) < (1.6 if power == 1.0 else 8.0)


@pytest.mark.parametrize(
    ("manifold", "radius", "power", "least"),
    [
        (Sphere(2), 0.5, 1.0, 0.1),
        *exhaustive((PlanarShapes(10), 0.3, 1.0, 0.2), (SPD(2), 1.5, 1.0, 0.1), (Sphere(2), 0.5, 3.0, 0.1)),
    ],
)
def test_medians_and_power_means_are_drawn_without_long_waits(manifold, radius, power, least):
    center = jnp.asarray(manifold.origin)
    ball = GeodesicBall(manifold, center, radius)
    points = jax.vmap(
        lambda key: manifold.exp(center, 0.3 * radius * manifold.dim**-0.5 * manifold.random_tangent(key, center))
    )(jax.random.split(jax.random.key(1), 100))
    mechanism = KNGMechanism(ball, 1.0, statistic=PowerMean(power))
    assert mechanism.law(100).simulated(jax.random.key(0), ball.clip(points), 200, 1024).acceptance > least


@pytest.mark.parametrize("dtype", [jnp.float64, *exhaustive(jnp.float32)])
@pytest.mark.parametrize(("share", "spread"), [(0.6, 0.15), (0.0, 1e-8), *exhaustive((1.0, 0.15), (0.4, 0.15))])
def test_medians_of_coinciding_data_are_drawn_without_long_waits(share, spread, dtype):
    """Records that are no points all become the centre."""
    sphere = Sphere(2)
    ball = GeodesicBall(sphere, sphere.origin, 0.5)
    center = jnp.asarray(ball.center)
    tangents = jax.vmap(lambda key: sphere.random_tangent(key, center))(jax.random.split(jax.random.key(1), 100))
    points = jax.vmap(lambda v: sphere.exp(center, spread * v))(tangents).at[: int(100 * share)].set(center)
    mechanism = KNGMechanism(ball, 1.0, statistic=FrechetMedian())
    draws = mechanism.law(100).simulated(jax.random.key(0), ball.clip(points).astype(dtype), 200, 1024)
    assert draws.acceptance > 0.02


def test_median_sensitivity_does_not_grow_with_the_ball():
    values = [
        KNGMechanism(GeodesicBall(SPD(2), np.eye(2), r), 1.0, statistic=FrechetMedian()).sensitivity(50)
        for r in (0.5, 3.0)
    ]
    np.testing.assert_allclose(values, 2 / 50)


def test_a_record_names_its_statistic():
    manifold = Euclidean(1)
    ball = GeodesicBall(manifold, manifold.origin, 1.0)
    data = np.linspace(-0.5, 0.5, 40)[:, None]
    assert PowerMean(3).description == "PowerMean(power=3)"
    record = KNGMechanism(ball, 4.0, statistic=FrechetMedian()).release(data).record
    assert record["statistic"] == "FrechetMedian"
    assert record["support"]["radius"] == 1.0
    assert record["guarantee"]["epsilon"] == 4.0
    product = Product(Sphere(1), Euclidean(1))
    record = (
        TangentLaplace(GeodesicBall(product, product.origin, 0.5), 4.0).release(np.tile(product.origin, (9, 1))).record
    )
    assert [part["name"] for part in record["manifold"]["manifolds"]] == ["Sphere", "Euclidean"]


def test_what_is_not_known_is_refused():
    ball = GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.4)
    with pytest.raises(ValueError, match=r"FrechetMedian: the sensitivity of its minimiser.* use KNGMechanism\.$"):
        LaplaceMechanism(ball, 1.0, statistic=FrechetMedian()).scale(10)
    for power in (0.5, 17, math.nan, math.inf, "two"):
        with pytest.raises(ValueError, match="at least 1"):
            PowerMean(power)
    with pytest.raises(ValueError, match="at least 1"):
        power_mean(Sphere(2), jnp.eye(3), 0.5)
    with pytest.raises(ValueError, match="gradient_bound above 0"):
        EmpiricalRisk(lambda x, y: 0.0, 0.0)


def test_a_subclass_with_another_gradient_gets_no_theorem():
    """KNG and `delta` go by the class of the statistic: Theorem J is about the Frechet mean's own gradient."""
    for base in (FrechetMean, FrechetMedian, PowerMean, EmpiricalRisk):
        with pytest.raises(TypeError, match=rf"Steeper: {base.__name__} is final.*Derive from Statistic\.$"):
            type("Steeper", (base,), {"gradient": lambda self, manifold, x, points: 100.0 * points[0]})
    assert not issubclass(FrechetMedian, PowerMean)
    assert issubclass(type("Own", (Statistic,), {}), Statistic)


# A user's loss ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("manifold", [Euclidean(2), *exhaustive(Sphere(2))], ids=name)
def test_a_loss_whose_gradients_are_short_is_left_alone(manifold):
    data = data_on(manifold, 30)
    own = EmpiricalRisk(lambda x, y: 0.5 * manifold.squared_dist(x, y), gradient_bound=1.0)
    gradients = jax.jit(lambda x: [statistic.gradient(manifold, x, data) for statistic in (own, FrechetMean())])
    np.testing.assert_allclose(*gradients(jnp.asarray(manifold.origin) + 0.0), atol=1e-12)


def test_no_loss_exceeds_its_gradient_bound():
    wild = EmpiricalRisk(lambda x, y: 1e9 * jnp.vdot(x, y) + jnp.log(y[0]), gradient_bound=0.25, shape=(3,))
    ball = GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.4)
    mechanism = KNGMechanism(ball, 1.0, statistic=wild)
    assert mechanism.sensitivity(10) == 0.05
    data = np.random.default_rng(0).normal(size=(10, 3)) * 1e6
    data[3], data[4, 0] = np.nan, np.inf
    point = a_point(Sphere(2), 1)
    gradient = jax.jit(lambda record: wild.gradient(Sphere(2), point, record))
    gradients = [gradient(jnp.asarray(data[j : j + 1])) for j in range(10)]
    lengths = np.linalg.norm(gradients, axis=-1)
    assert np.all(lengths <= 0.25 * (1 + 1e-12))
    assert np.max(lengths) > 0.249
    assert np.all(np.isfinite(mechanism.release(data).value))


@pytest.mark.exhaustive  # a loss of one's own is released above
def test_private_principal_direction():
    """Vectors in the unit ball, x -> -(x.y)^2/2: the leading eigenvector of the second moment."""
    rng = np.random.default_rng(3)
    data = rng.normal(size=(75, 3)) * [0.1, 0.2, 0.5] @ np.linalg.qr(rng.normal(size=(3, 3)) * 0.1 + np.eye(3))[0].T
    data = data / np.maximum(1.0, np.linalg.norm(data, axis=1, keepdims=True))
    statistic = EmpiricalRisk(lambda x, y: -0.5 * jnp.vdot(x, y) ** 2, gradient_bound=0.5, shape=(3,))
    mechanism = KNGMechanism(GeodesicBall(Sphere(2), [0, 0, 1.0], 0.7), 16.0, statistic=statistic, support_radius=1.0)
    draws = mechanism.simulate(jax.random.key(0), data, 6)  # one proposal of 6000 is accepted
    leading = np.linalg.eigh(data.T @ data)[1][:, -1]
    assert np.median(np.abs(draws @ leading)) > 0.97


@pytest.mark.exhaustive  # the principal direction is the same path on a cheaper space
def test_private_geodesic_regression():
    """y = exp_a(t log_a b) on the hyperbolic plane: the parameter (a, b) is a point of a product."""
    plane = Hyperbolic(2)
    pairs = Product(plane, plane)

    def predict(x, t):
        a, b = pairs.split(x)
        return plane.exp(a, t * plane.log(a, b))

    def loss(x, datum):
        return 0.5 * plane.squared_dist(predict(x, datum[0]), datum[1:])

    origin = jnp.asarray(plane.origin)
    a, b = (plane.exp(origin, jnp.asarray(v)) for v in ([0.0, 0.3, 0.0], [0.0, -0.1, 0.4]))
    truth = pairs.join(a, b)
    rng = np.random.default_rng(0)
    times = rng.uniform(size=40)
    noisy = [
        plane.exp(y, 0.1 * a_tangent(plane, y, j, 1.0))
        for j, y in enumerate(jax.vmap(lambda t: predict(truth, t))(times))
    ]
    data = np.column_stack([times, np.stack(noisy)])
    statistic = EmpiricalRisk(loss, gradient_bound=0.5, shape=(4,))
    mechanism = KNGMechanism(GeodesicBall(pairs, pairs.origin, 0.7), 3.0, statistic=statistic)
    draws = mechanism.simulate(jax.random.key(0), data, 8)
    errors = jax.vmap(lambda x: pairs.dist(truth, x))(draws)
    assert np.median(errors) < 0.6
    assert pairs.dist(truth, jnp.asarray(pairs.origin)) > 0.5


# minimize ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("manifold", [Sphere(2), *exhaustive(*(m for m in MANIFOLDS if m != Sphere(2)))], ids=name)
def test_minimize_finds_the_mean(manifold):
    points = data_on(manifold)
    found = minimize(manifold, objective(manifold, points, 2.0), manifold.origin)
    assert found.gradient_norm <= 1e-8
    np.testing.assert_allclose(manifold.dist(found.point, frechet_mean(manifold, points)), 0, atol=1e-7)
    np.testing.assert_allclose(found.value, objective(manifold, points, 2.0)(found.point), rtol=1e-12)


@pytest.mark.parametrize(
    "optimizer",
    [
        pytest.param(optax.adam(0.05), id="adam"),
        pytest.param(optax.sgd(0.2, momentum=0.5), id="sgd", marks=pytest.mark.exhaustive),
        pytest.param(None, id="usual", marks=pytest.mark.exhaustive),
    ],
)
def test_minimize_takes_any_optimizer_and_is_batched(optimizer):
    matrices = jax.vmap(lambda key: jnp.diag(jnp.array([1.0, 2.0, 5.0])) + 0.1 * jax.random.normal(key, (3, 3)))(
        jax.random.split(jax.random.key(0), 4)
    )
    matrices = 0.5 * (matrices + matrices.transpose(0, 2, 1))
    start = jnp.array([0.6, 0.0, 0.8])
    solve = jax.jit(
        jax.vmap(lambda a: minimize(Sphere(2), lambda x: -0.5 * x @ a @ x, start, optimizer, tolerance=1e-6))
    )
    found = solve(matrices)
    assert jnp.all(found.gradient_norm <= 1e-6)
    leading = np.linalg.eigh(matrices)[1][:, :, -1]
    np.testing.assert_allclose(np.abs(np.sum(found.point * leading, axis=1)), 1.0, atol=1e-9)


def test_minimize_says_what_is_wrong_and_stops_in_time():
    with pytest.raises(ValueError, match="x0 must have shape"):
        minimize(Sphere(2), lambda x: x[0], jnp.zeros(2))
    slow = minimize(Sphere(2), lambda x: -x[2], jnp.array([1.0, 0.0, 0.0]), optax.sgd(1e-6), max_steps=7)
    assert slow.steps == 7
    assert slow.gradient_norm > 0.9


def test_derivatives_at_coincident_data():
    @functools.cache
    def of(power):
        return jax.jit(jax.jacrev(lambda x: power_mean(Euclidean(1), x, power)[0]))

    np.testing.assert_allclose(of(2.0)(jnp.array([[-1.0], [0.0], [1.0]]))[:, 0], [1 / 3] * 3, atol=1e-12)
    np.testing.assert_allclose(of(1.0)(jnp.array([[-1.0], [0.0], [1.0]]))[:, 0], [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(of(1.5)(jnp.array([[-1.0], [0.0], [1.0]]))[:, 0], [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(of(3.0)(jnp.array([[-1.0], [0.0], [1.0]]))[:, 0], [0.5, 0, 0.5], atol=1e-12)
    for power in (1.0, 1.5, 2.0):
        np.testing.assert_allclose(of(power)(jnp.ones((3, 1)))[:, 0], [1 / 3] * 3, atol=1e-12)


def test_flat_manifolds_with_a_cut_locus_have_a_bounded_support():
    """A circle has curvature 0 and a cut locus: gradient norms there do not grow without end."""
    circle = Grassmann(2, 1)
    mechanism = KNGMechanism(GeodesicBall(circle, circle.origin, 0.1), 1.0)
    reach = mechanism.support(2).radius
    assert reach < math.pi / 4
    origin = jnp.asarray(circle.origin)
    unit = circle.frame(origin)[0]
    at = jax.vmap(lambda t: circle.exp(origin, t * unit))
    nodes = at(jnp.linspace(-reach, reach, 3001)[1:-1])
    logs = []
    for data in (at(jnp.array([0.1, -0.1])), at(jnp.array([0.1, 0.1]))):
        values = jax.vmap(lambda x, d=data: mechanism.log_density(x, d))(nodes)
        logs.append(values - jax.scipy.special.logsumexp(values))
    loss = float(jnp.max(jnp.abs(logs[0] - logs[1])))
    assert 0.1 < loss <= 1.0
    with pytest.raises(ValueError, match=r"below 0\.785398"):
        KNGMechanism(GeodesicBall(circle, circle.origin, 0.1), 1.0, statistic=FrechetMedian(), support_radius=50.0)


@pytest.mark.parametrize(
    "statistic",
    [
        FrechetMedian(),
        *exhaustive(FrechetMean(), EmpiricalRisk(lambda x, y: 0.5 * Sphere(2).squared_dist(x, y), gradient_bound=1.0)),
    ],
    ids=lambda statistic: type(statistic).__name__,
)
def test_precision_of_the_data_is_kept(statistic):
    data = data_on(Sphere(2), 30).astype(jnp.float32)
    mechanism = KNGMechanism(GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.4), 8.0, statistic=statistic)
    draws = jax.eval_shape(lambda key: mechanism.simulate(key, data, 3), jax.random.key(0))
    assert (draws.shape, draws.dtype) == ((3, 3), jnp.float32)
