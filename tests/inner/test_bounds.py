"""Every bound against an adversary: searches that try to exceed it, and must come close."""

import dataclasses
import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.optimize import minimize
from strategies import a_point, a_tangent, exhaustive, name

from jaxgeodp import SPD, Euclidean, GeodesicBall, PlanarShapes, Rotations, Sphere, frechet_mean, riemannian_hessian
from jaxgeodp.bounds import CALIBRATIONS, gradient_sensitivity, largest_support, mean_sensitivity
from jaxgeodp.bounds.comparison import h_max, h_min, rauch
from jaxgeodp.bounds.diameter import log_diameter
from jaxgeodp.bounds.growth import gradient_growth

EIGHTH = math.pi / 8


def ball_on(manifold, radius):
    return GeodesicBall(manifold, manifold.origin, radius)


# Comparison functions --------------------------------------------------------------------------------


def test_comparison_functions_have_the_right_limits():
    for function in (h_max, h_min, rauch):
        for curvature in (-2.0, 0.0, 2.0):
            assert function(0.0, curvature) == 1.0
            assert function(1e-6, curvature) == pytest.approx(1.0, abs=1e-11)
    assert [h_max(3.0, -1.0), h_min(3.0, 1.0), rauch(3.0, -1.0)] == [1.0, 1.0, 1.0]
    # To second order s cot s = 1 - s^2/3, s coth s = 1 + s^2/3, s/sin s = 1 + s^2/6; lengths scale by sqrt(k).
    assert h_max(1e-3, 4.0) == pytest.approx(1 - 4e-6 / 3, abs=1e-11)
    assert h_min(1e-3, -4.0) == pytest.approx(1 + 4e-6 / 3, abs=1e-11)
    assert rauch(1e-3, 4.0) == pytest.approx(1 + 4e-6 / 6, abs=1e-11)
    assert h_max(math.pi / 4, 4.0) == pytest.approx(0.0, abs=1e-15)
    assert rauch(math.pi / 4, 4.0) == pytest.approx(math.pi / 2)
    assert rauch(math.pi / 2, 4.0) == math.inf
    distances = np.linspace(0.01, 1.5, 40)
    assert np.all(np.diff([h_max(s, 1.0) for s in distances]) < 0)
    assert np.all(np.diff([h_min(s, -1.0) for s in distances]) > 0)
    assert np.all(np.diff([rauch(s, 1.0) for s in distances]) > 0)


@pytest.mark.parametrize("manifold", [Sphere(2), *exhaustive(SPD(2), PlanarShapes(5))], ids=name)
def test_hessian_of_half_squared_distance_lies_between_the_comparison_functions(manifold):
    """The worst direction attains both bounds, so neither is loose and neither can be exceeded."""
    lowest, highest = manifold.curvature_bounds
    point = a_point(manifold, 1)
    spectrum = jax.jit(
        lambda q: jnp.linalg.eigvalsh(riemannian_hessian(manifold, lambda x: 0.5 * manifold.squared_dist(x, q))(point))
    )
    tangents = [a_tangent(manifold, point, seed, 1.0) for seed in range(4)]
    if isinstance(manifold, SPD):
        # Curvature -1/2 is met along (1, -1) in two eigenvalues.
        root = jnp.linalg.cholesky(point)
        extremal = jnp.diag(jnp.array([1.0, -1.0, 0.0][: manifold.size])) / math.sqrt(2.0)
        tangents.append(root @ extremal @ root.T)
    attained = {"lowest": math.inf, "highest": math.inf}
    for tangent in tangents:
        for distance in (0.05, 0.4, 0.75):
            values = spectrum(manifold.exp(point, distance * tangent))
            lower, upper = h_max(distance, highest), h_min(distance, lowest)
            assert values[0] >= lower - 1e-7
            assert values[-1] <= upper + 1e-7
            attained["lowest"] = min(attained["lowest"], float(values[0]) - lower)
            attained["highest"] = min(attained["highest"], upper - float(values[-1]))
    assert max(attained.values()) < 1e-6


# The diameter of the logarithms of a ball ------------------------------------------------------------


def spread_of_logarithms(parameters, ball_radius, reach):
    """|log_x a - log_x b| on the unit sphere by spherical trigonometry, not by the library's formula."""
    t, first, second = np.clip(parameters[0], 0.0, reach), parameters[1], parameters[2]
    sides, angles = [], []
    for azimuth in (first, second):
        along = math.cos(t) * math.sin(ball_radius) * math.cos(azimuth) - math.sin(t) * math.cos(ball_radius)
        across = math.sin(ball_radius) * math.sin(azimuth)
        cosine = math.cos(t) * math.cos(ball_radius) + math.sin(t) * math.sin(ball_radius) * math.cos(azimuth)
        sides.append(math.acos(max(-1.0, min(1.0, cosine))))
        angles.append(math.atan2(across, along))
    squared = sides[0] ** 2 + sides[1] ** 2 - 2 * sides[0] * sides[1] * math.cos(angles[0] - angles[1])
    return math.sqrt(max(squared, 0.0))


def searched_diameter(ball_radius, reach):
    rng = np.random.default_rng(0)
    samples = np.column_stack([rng.uniform(0, reach, 4000), rng.uniform(-math.pi, math.pi, (4000, 2))])
    samples[::2, 0] = reach
    values = np.array([spread_of_logarithms(p, ball_radius, reach) for p in samples])
    starts = samples[np.argsort(-values)[:4]]
    local = [
        minimize(lambda p: -spread_of_logarithms(p, ball_radius, reach), start, method="Nelder-Mead", tol=1e-10)
        for start in starts
    ]
    return max(values.max(), *(-result.fun for result in local))


REFERENCE_DIAMETERS = [
    (1.0, EIGHTH, EIGHTH, 1.02645),
    (1.0, EIGHTH, 1.25 * EIGHTH, 1.04176),
    (1.0, EIGHTH, 1.5 * EIGHTH, 1.06092),
    (1.0, EIGHTH, 2.0 * EIGHTH, 1.11199),
    (1.0, EIGHTH / 2, EIGHTH / 2, 1.00647),
    (1.0, 0.3, 0.3, 1.01525),
    (1.0, 0.5, 0.5, 1.04368),
    (1.0, 0.7, 0.7, 1.08980),
    (4.0, 0.19, 0.19, 1.02472),
    (4.0, 0.30, 0.30, 1.06427),
    (4.0, 0.30, 0.45, 1.15316),
    (4.0, 0.37, 0.37, 1.10156),
    (1.0, 0.7, 0.35, 1.02140),
    (1.0, 0.76, 0.19, 1.00631),
]


SOME = [
    (1.0, EIGHTH, EIGHTH, 1.02645),
    (1.0, 0.7, 0.7, 1.08980),
    (4.0, 0.30, 0.45, 1.15316),
    (1.0, 0.76, 0.19, 1.00631),
]


@pytest.mark.parametrize(
    ("curvature", "ball_radius", "reach", "reference"),
    [*SOME, *exhaustive(*(case for case in REFERENCE_DIAMETERS if case not in SOME))],
)
def test_log_diameter_is_a_sharp_upper_bound(curvature, ball_radius, reach, reference):
    root = math.sqrt(curvature)
    bound = log_diameter(ball_radius * root, reach * root)
    assert bound / (2 * ball_radius * root) == pytest.approx(reference, abs=1e-4)
    found = searched_diameter(ball_radius * root, reach * root)
    assert found <= bound <= found * (1 + 1e-4)


@pytest.mark.parametrize(
    ("ball_radius", "reach"), [(1e-9, 1e-9), (1e-4, 1e-4), (math.pi / 4, 1.57), *exhaustive((0.01, 1.5))]
)
def test_log_diameter_at_the_ends_of_its_range(ball_radius, reach):
    bound = log_diameter(ball_radius, reach)
    assert max(2 * ball_radius, searched_diameter(ball_radius, reach)) <= bound
    assert bound <= 2 * ball_radius * rauch(ball_radius + reach, 1.0) * (1 + 1e-4) + 1e-11


@pytest.mark.parametrize(("ball_radius", "reach"), [(0.0, 0.1), (0.8, 0.8), (0.3, 0.0), (0.3, 1.6), (math.nan, 1.0)])
def test_log_diameter_refuses_radii_outside_the_theorem(ball_radius, reach):
    with pytest.raises(ValueError, match=r"needs 0 < r <= pi/4 .*\.$"):
        log_diameter(ball_radius, reach)


# Sensitivities: formulas ------------------------------------------------------------------------------


def test_sensitivities_equal_the_published_numbers():
    """In units of 2r/n on the unit sphere, n = 50."""
    for radius, gradient_theorem, gradient, mean_theorem, mean in [
        (EIGHTH, 1.21460, 1.02645, 1.5465, 1.0848),
        (0.7, 1.75853, 1.08980, 7.283, 1.3457),
    ]:
        ball, unit = ball_on(Sphere(2), radius), 2 * radius / 50
        assert gradient_sensitivity(ball, 50, radius, "theorem").value / unit == pytest.approx(
            gradient_theorem, abs=1e-5
        )
        assert gradient_sensitivity(ball, 50, radius, "tight").value / unit == pytest.approx(gradient, abs=1e-4)
        assert mean_sensitivity(ball, 50, "theorem").value / unit == pytest.approx(mean_theorem, rel=2e-4)
        assert mean_sensitivity(ball, 50, "tight").value / unit == pytest.approx(mean, rel=2e-4)


@pytest.mark.parametrize("manifold", [Euclidean(3), SPD(2), SPD(4)], ids=name)
@pytest.mark.parametrize("calibration", CALIBRATIONS)
def test_sensitivities_without_positive_curvature_are_those_of_euclidean_space(manifold, calibration):
    ball = ball_on(manifold, 1.5)
    assert largest_support(ball) == math.inf
    assert gradient_sensitivity(ball, 7, math.inf, calibration).value == pytest.approx(3.0 / 7, rel=1e-12)
    assert mean_sensitivity(ball, 7, calibration).value == pytest.approx(3.0 / 7, rel=1e-12)


@pytest.mark.parametrize("manifold", [Sphere(2), Sphere(3, 4.0), Sphere(2, 0.25), PlanarShapes(5)], ids=name)
def test_tight_sensitivities_are_below_the_theorems_and_scale_with_curvature(manifold):
    root = math.sqrt(manifold.curvature_bounds[1])
    assert largest_support(ball_on(manifold, 0.1)) == pytest.approx(math.pi / 2 / root)
    for fraction in (0.02, 0.3, 0.7, 0.999):
        radius = fraction * math.pi / 4 / root
        ball, unit_ball = ball_on(manifold, radius), ball_on(Sphere(2), radius * root)
        previous = 2 * radius
        for reach in (radius, 1.3 * radius, 1.8 * radius):
            tight = gradient_sensitivity(ball, 10, reach, "tight").value
            reference = gradient_sensitivity(unit_ball, 10, reach * root, "tight").value
            assert tight * root == pytest.approx(reference, rel=1e-6)
            assert previous <= 10 * tight
            previous = 10 * tight
        gradient = gradient_sensitivity(ball, 10, radius, "tight").value
        assert gradient <= gradient_sensitivity(ball, 10, radius, "theorem").value
        assert gradient <= mean_sensitivity(ball, 10, "tight").value <= mean_sensitivity(ball, 10, "theorem").value


# Sensitivities: adversarial search --------------------------------------------------------------------


def ascend(objective, coordinates, radii, rate, steps):
    """The largest value met by Adam ascent, with every row of ``coordinates`` kept in the ball of its radius."""
    optimizer = optax.adam(optax.cosine_decay_schedule(rate, steps))

    def into_balls(z):
        return z * jnp.minimum(1.0, radii / jnp.maximum(jnp.linalg.norm(z, axis=-1), 1e-12))[:, None]

    def step(state, _):
        z, momentum, best, where = state
        value, slope = jax.value_and_grad(objective)(z)
        better = value > best
        updates, momentum = optimizer.update(-slope, momentum)
        state = into_balls(z + updates), momentum, jnp.where(better, value, best), jnp.where(better, z, where)
        return state, None

    start = into_balls(coordinates)
    begin = (start, optimizer.init(start), jnp.zeros(()), start)
    (_, _, best, where), _ = jax.lax.scan(step, begin, length=steps)
    return best, where


def in_normal_coordinates(manifold, z):
    center = jnp.asarray(manifold.origin)
    frame = manifold.frame(center)
    return jax.vmap(lambda row: manifold.exp(center, manifold.combine(row, frame)))(z)


@functools.partial(jax.jit, static_argnums=0)
def largest_gradient_change(manifold, ball_radius, reach):
    """n times the largest change of the gradient found: |log_x a - log_x b| for x in B_R, a and b in B_r."""

    def change(z):
        x, old, new = in_normal_coordinates(manifold, z)
        return manifold.norm(x, manifold.log(x, old) - manifold.log(x, new))

    radii = jnp.array([reach, ball_radius, ball_radius])
    starts = jax.random.normal(jax.random.key(0), (48, 3, manifold.dim)) * radii[:, None]
    steps = 1000 if manifold.dim < 4 else 3000
    best, _ = jax.vmap(lambda z: ascend(change, z, radii, 0.1 * ball_radius, steps))(starts)
    return jnp.max(best)


@pytest.mark.parametrize(
    ("manifold", "ball_radius"),
    [
        (Sphere(2), 0.7),
        # Where no curvature is positive the bound is the distance of opposite records.
        *exhaustive(
            *((PlanarShapes(3), 0.3), (SPD(2), 1.0), (Sphere(2), EIGHTH), (Sphere(3), 0.7), (PlanarShapes(4), 0.3))
        ),
    ],
    ids=name,
)
@pytest.mark.parametrize("stretch", [1.0, 1.5])
def test_no_adversary_exceeds_the_gradient_sensitivity(manifold, ball_radius, stretch):
    ball, reach = ball_on(manifold, ball_radius), stretch * ball_radius
    found = float(largest_gradient_change(manifold, ball_radius, reach))
    bound = 10 * gradient_sensitivity(ball, 10, reach, "tight").value
    # At least 0.999 of the bound is met: a bound that were 2 % too small would be exceeded.
    assert 0.999 * bound <= found <= bound * (1 + 1e-9)
    if stretch == 1.0:
        assert found <= 10 * gradient_sensitivity(ball, 10, reach, "theorem").value * (1 + 1e-9)


# Multiplicities of the seven records that stay, for each n: few distinct points, any number of records.
STAYING = {
    2: [1, 0, 0, 0, 0, 0, 0],
    3: [1, 1, 0, 0, 0, 0, 0],
    5: [1, 1, 1, 1, 0, 0, 0],
    8: [1, 1, 1, 1, 1, 1, 1],
    10: [3, 1, 1, 1, 1, 1, 1],
    50: [7, 7, 7, 7, 7, 7, 7],
}


@functools.partial(jax.jit, static_argnums=0)
def largest_mean_change(manifold, ball_radius, multiplicities):
    """The largest distance found between the means of adjacent data, over whole data sets."""

    def change(z, weights):
        points = in_normal_coordinates(manifold, z)
        adjacent = jnp.stack([points[:8], points.at[7].set(points[8])[:8]])
        return manifold.dist(*jax.vmap(lambda data: frechet_mean(manifold, data, weights))(adjacent))

    radii = jnp.full(9, ball_radius)
    starts = jax.random.normal(jax.random.key(1), (8, 9, manifold.dim)) * ball_radius

    def search(weights):
        ascent = jax.vmap(lambda z: ascend(lambda y: change(y, weights), z, radii, 0.1 * ball_radius, 120))
        return jnp.max(ascent(starts)[0])

    return jax.vmap(search)(jnp.concatenate([multiplicities, jnp.ones((len(multiplicities), 1))], axis=1))


@pytest.mark.parametrize(
    ("manifold", "ball_radius", "share"),
    [(Sphere(2), EIGHTH, 0.96), (Sphere(2), 0.7, 0.87), *exhaustive((PlanarShapes(3), 0.3, 0.91))],
    ids=name,
)
def test_no_adversary_exceeds_the_mean_sensitivity(manifold, ball_radius, share):
    counts = list(STAYING)
    found = largest_mean_change(manifold, ball_radius, jnp.array([STAYING[n] for n in counts], float))
    for n, distance in zip(counts, np.asarray(found), strict=True):
        bound = mean_sensitivity(ball_on(manifold, ball_radius), n, "tight").value
        theorem = mean_sensitivity(ball_on(manifold, ball_radius), n, "theorem").value
        assert distance <= bound * (1 + 1e-9)
        assert distance <= theorem * (1 + 1e-9)
    # In positive curvature the bound is not attained; for large n the search must still come near it.
    assert distance >= share * bound


def test_mean_sensitivity_of_covariances_is_attained_by_opposite_records_and_never_exceeded():
    manifold, radius, rng = SPD(2), 1.0, np.random.default_rng(0)
    data = rng.normal(size=(300, 11, 3))
    data /= np.maximum(np.linalg.norm(data, axis=-1, keepdims=True), 1.0)
    # A third of them all on one geodesic, the replaced record jumping from rim to rim.
    line = data[:100, :1] / np.linalg.norm(data[:100, :1], axis=-1, keepdims=True)
    data[:100] = line * rng.uniform(-1, 1, (100, 11, 1))
    data[:100, 9:] = np.concatenate([line, -line], axis=1)
    # The others with both at the rim.
    data[100:, 9:] /= np.linalg.norm(data[100:, 9:], axis=-1, keepdims=True)

    @jax.jit
    @jax.vmap
    def distances(z):
        points = in_normal_coordinates(manifold, z * radius)

        def change(weights):
            adjacent = jnp.stack([points[:10], points.at[9].set(points[10])[:10]])
            return manifold.dist(*jax.vmap(lambda x: frechet_mean(manifold, x, weights))(adjacent))

        return jax.vmap(change)(jnp.concatenate([jnp.triu(jnp.ones((9, 9))), jnp.ones((9, 1))], axis=1))

    for n, found in zip(range(10, 1, -1), np.asarray(distances(data)).T, strict=True):
        bound = mean_sensitivity(ball_on(manifold, radius), n, "tight").value
        assert np.max(found[100:]) <= bound * (1 - 1e-3)
        np.testing.assert_allclose(found[:100], bound, rtol=1e-9)


# Growth of the gradient -------------------------------------------------------------------------------


def asymmetric_data(manifold, rng, radius, n, elongation):
    """Tangent coordinates at the centre: clouds off the centre; ``elongation`` 1 puts them near one line."""
    axis = rng.normal(size=manifold.dim)
    axis /= np.linalg.norm(axis)
    across = rng.normal(size=(n, manifold.dim))
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    # Two clusters at the rim, of unequal weight.
    along = np.where(rng.uniform(size=n) < rng.uniform(0.2, 0.8), 1.0, -rng.uniform(0.0, 1.0)) * rng.uniform(
        0.9, 1.0, n
    )
    z = elongation * along[:, None] * axis + (1 - elongation) * rng.uniform(size=(n, 1)) * across
    return z * (radius / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1.0))


@functools.partial(jax.jit, static_argnums=0)
def data_and_probes(manifold, data, probes, radius):
    """The data, their mean, and points to probe: the given ones and lines through the mean."""
    points = in_normal_coordinates(manifold, data)
    mean = frechet_mean(manifold, points)
    # Along, and across (times i), the direction of the farthest record the growth is nearly met.
    logs = jax.vmap(lambda x: manifold.log(mean, x))(points)
    lengths = jax.vmap(lambda v: manifold.norm(mean, v))(logs)
    main = logs[jnp.argmax(lengths)] / jnp.max(lengths)
    turned = 1j * main if manifold.dtype_kind == "complex" else main
    steps = jnp.linspace(-2.0, 2.0, 40)[:, None] * radius
    lines = jax.vmap(lambda v: manifold.exp(mean, v))(jnp.concatenate([steps * main, steps * turned]))
    return points, mean, jnp.concatenate([in_normal_coordinates(manifold, probes), lines])


@functools.partial(jax.jit, static_argnums=0)
def growth_against_gradient(manifold, points, mean, probes, growth):
    """Distances from the mean, gradient norms, growths at the probes, and their distances from the centre."""
    weights = jnp.full(len(points), 1.0 / len(points))

    def at(x):
        norm = manifold.norm(x, manifold.log_moments(x, points, weights)[0])
        distance = manifold.dist(mean, x)
        return distance, norm, growth(distance), manifold.dist(jnp.asarray(manifold.origin), x)

    return jax.vmap(at)(probes)


@pytest.mark.parametrize(
    "manifold", [Sphere(2), PlanarShapes(3), *exhaustive(PlanarShapes(12), Sphere(5), PlanarShapes(6))], ids=name
)
def test_gradient_grows_at_least_as_certified_and_a_steeper_growth_is_caught(manifold):
    rng = np.random.default_rng(0)
    limit = math.pi / 4 / math.sqrt(manifold.curvature_bounds[1])
    slack = {"certified": math.inf, "10 % steeper": math.inf, "without offset": math.inf}
    for fraction, stretch, elongation in itertools.product((0.1, 0.6, 0.99), (1.0, 1.4, 1.9), (0.0, 0.7, 1.0)):
        radius, reach = fraction * limit, stretch * fraction * limit
        data = asymmetric_data(manifold, rng, radius, 8, elongation)
        directions = rng.normal(size=(60, manifold.dim))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        directions *= reach * rng.uniform(size=(60, 1)) ** 0.3
        points, mean, probes = data_and_probes(manifold, data, directions, radius)
        growth = gradient_growth(manifold, mean, points, jnp.full(8, 1 / 8), radius + reach)
        uncorrected = dataclasses.replace(growth, offset=jnp.zeros_like(growth.offset))
        distance, norm, certified, offside = map(
            np.asarray, growth_against_gradient(manifold, points, mean, probes, growth)
        )
        without_offset = np.asarray(growth_against_gradient(manifold, points, mean, probes, uncorrected)[2])
        use = (offside <= reach) & (distance > 1e-3 * radius)
        for kind, bound in zip(slack, (certified, 1.1 * certified, without_offset), strict=True):
            slack[kind] = min(slack[kind], np.min((norm - bound)[use] / distance[use]))
        values = np.asarray(growth(jnp.linspace(0.0, radius + reach, 50)))
        assert values[0] == 0.0
        assert np.all(np.diff(values, 2) <= 1e-14)
    assert slack["certified"] >= -1e-9
    # The certificate is so sharp that these planted errors break it.
    assert slack["10 % steeper"] < -1e-3
    if isinstance(manifold, PlanarShapes):
        assert slack["without offset"] < -1e-3


@pytest.mark.parametrize("space", [SPD(2), *exhaustive(SPD(3))], ids=name)
def test_gradient_growth_without_positive_curvature_is_the_distance(space):
    weights = jnp.full(5, 0.2)
    points = jnp.stack([a_point(space, seed) for seed in range(5)])
    assert gradient_growth(space, points[0], points, weights, math.inf) == 1.0
    probes = jnp.stack([a_point(space, 100 + seed) for seed in range(20)])

    @jax.jit
    def norms_and_distances(mean):
        norms = jax.vmap(lambda x: space.norm(x, space.log_moments(x, points, weights)[0]))(probes)
        return norms, jax.vmap(lambda x: space.dist(mean, x))(probes)

    norms, distances = map(np.asarray, norms_and_distances(frechet_mean(space, points)))
    assert np.all(norms >= distances * (1 - 1e-9))


def test_balls_beyond_the_assumption_have_no_sensitivity():
    ball = GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.9)
    for calibration in ("theorem", "tight"):
        with pytest.raises(ValueError, match="violates Assumption 1"):
            mean_sensitivity(ball, 10, calibration)
        with pytest.raises(ValueError, match="violates Assumption 1"):
            gradient_sensitivity(ball, 10, 0.3, calibration)


@pytest.mark.parametrize("space", [Sphere(2), PlanarShapes(4), Rotations()], ids=name)
@pytest.mark.parametrize("calibration", ["theorem", "tight"])
def test_supports_beyond_the_largest_have_no_sensitivity(space, calibration):
    ball = GeodesicBall(space, space.origin, 0.1)
    limit = largest_support(ball)
    farthest = ball.radius if calibration == "theorem" else 0.999 * limit  # Theorem 2 is about the ball alone
    assert gradient_sensitivity(ball, 10, farthest, calibration).value > 0.0
    for radius in (limit, 1.5 * limit, math.inf, math.nan):
        with pytest.raises(ValueError, match="support_radius must be below"):
            gradient_sensitivity(ball, 10, radius, calibration)
