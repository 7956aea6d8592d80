"""The Frechet mean, its derivative, its certificate, and the public ball it lives in."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm, logm
from strategies import MORE, ONE_OF_EACH_KIND, a_point, a_tangent, cap, cast, exhaustive, name

from jaxgeodp import (
    SPD,
    Euclidean,
    GeodesicBall,
    Hyperbolic,
    PlanarShapes,
    Product,
    Sphere,
    certified_distance,
    frechet_mean,
)
from jaxgeodp.domains.geodesic_ball import assumption_limit
from jaxgeodp.statistics.frechet_mean import descent_schedule, mean_in_ball

CURVED = [Sphere(2), SPD(2)]
curved_or_flat = pytest.mark.parametrize(
    "manifold",
    [Euclidean(4), *CURVED, *exhaustive(*(m for m in ONE_OF_EACH_KIND + MORE if m not in [Euclidean(4), *CURVED]))],
    ids=name,
)
# Those with Newton steps of their own, and one that has the default's.
OF_EACH_KIND = [Euclidean(4), Sphere(2), SPD(2), PlanarShapes(4), Hyperbolic(2)]

mean_of = jax.jit(frechet_mean, static_argnums=0)
certificate_of = jax.jit(certified_distance, static_argnums=0)


clip = jax.jit(lambda ball, points: ball.clip(points))


def safe_radius(manifold, fraction=0.6, unbounded=1.0):
    """A radius within Assumption 1."""
    return min(fraction * assumption_limit(manifold), unbounded)


def asymmetric_data(manifold, n=7, seed=3, dtype="float64"):
    return cap(manifold, jnp.asarray(manifold.origin), safe_radius(manifold), n, seed, dtype)


def some_weights(n, seed=0, dtype="float64"):
    return jnp.asarray(np.random.default_rng(seed).uniform(0.2, 2.0, n), dtype)


# What the derivative of the mean is made of ----------------------------------------------------------------


# Small matrices and shapes: by the derivatives of the mean below, against finite differences.
@pytest.mark.parametrize(
    "manifold",
    [
        Product(Sphere(2, curvature=2.0), Euclidean(1)),
        *exhaustive(Sphere(9, curvature=2.0), SPD(4), PlanarShapes(5), Product(Sphere(2), Hyperbolic(2))),
        *exhaustive(*ONE_OF_EACH_KIND, *MORE),
    ],
    ids=name,
)
def test_the_hessian_is_that_of_automatic_differentiation(manifold):
    points, weights = asymmetric_data(manifold), some_weights(7)  # which do not sum to 1
    mean = mean_of(manifold, points, weights)
    frame = manifold.frame(mean)

    def half_square(z):
        x = manifold.exp(mean, manifold.combine(z, frame))
        return 0.5 * weights @ jax.vmap(lambda q: manifold.squared_dist(x, q))(points)

    hessian = jax.jit(jax.hessian(half_square))(jnp.zeros(manifold.dim))
    np.testing.assert_allclose(manifold.mean_hessian(mean, points, weights), hessian, atol=1e-8)


@pytest.mark.parametrize("manifold", [Sphere(2), *exhaustive(SPD(3), PlanarShapes(4))], ids=name)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_hessian_of_coincident_points_is_the_identity(manifold, dtype):
    mean = a_point(manifold, 1).astype(asymmetric_data(manifold, dtype=dtype).dtype)
    weights = jnp.full(3, 1.0 / 3.0, dtype)
    hessian = manifold.mean_hessian(mean, jnp.stack([mean] * 3), weights)
    np.testing.assert_allclose(hessian, np.eye(manifold.dim), atol=100 * float(jnp.finfo(dtype).eps))


@pytest.mark.parametrize("kind", ["single", "too long"])
def test_the_hessian_of_near_points_that_are_unit_only_to_single_precision_is_the_identity(kind):
    sphere, directions = Sphere(2), np.array([0.3, 0.5, 0.81]) + 1e-4 * np.random.default_rng(0).normal(size=(20, 3))
    points = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    points = jnp.asarray(points.astype("float32").astype("float64") if kind == "single" else points * (1 + 1e-6))
    weights = jnp.full(20, 0.05)
    mean = mean_of(sphere, points, weights)
    np.testing.assert_allclose(sphere.mean_hessian(mean, points, weights), np.eye(2), atol=1e-5)


@pytest.mark.parametrize("kind", ["single", "too long"])
def test_a_step_between_near_points_that_are_unit_only_to_single_precision_is_the_mean_logarithm(kind):
    """The Hessian is the identity there; with a quotient of small numbers the step was 3 and 100 % off."""
    sphere, directions = Sphere(2), np.array([0.3, 0.5, 0.81]) + 1e-4 * np.random.default_rng(0).normal(size=(20, 3))
    points = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    base = jnp.asarray(points[0])
    points = jnp.asarray(points.astype("float32").astype("float64") if kind == "single" else points * (1 + 1e-6))
    total, _, step, _ = sphere.newton_moments(base, points, jnp.full(20, 0.05))
    np.testing.assert_allclose(step, total, rtol=1e-4)


def matrices_of_wide_spread(size, count):
    """Conditions up to 10^8 for size 16."""
    roots = np.eye(size) + 0.3 * np.random.default_rng(0).normal(size=(count, size, size))
    return jnp.asarray(roots @ roots.transpose(0, 2, 1))


def test_newton_steps_of_matrices_of_wide_spread_solve_the_equation():
    manifold, points, weights = SPD(4), matrices_of_wide_spread(4, 200), jnp.full(200, 1 / 200)
    base = mean_of(manifold, points, weights)
    base = manifold.exp(base, 0.1 * manifold.random_tangent(jax.random.key(0), base))
    total, _, step, rate = manifold.newton_moments(base, points, weights)
    hessian, frame = manifold.mean_hessian(base, points, weights), manifold.frame(base)
    expected = np.linalg.solve(hessian, manifold.coordinates(base, total, frame))
    np.testing.assert_allclose(manifold.coordinates(base, step, frame), expected, rtol=0, atol=1e-7)
    assert rate is not None and rate < 1e-7


@pytest.mark.exhaustive  # the steps are tried above
def test_means_of_matrices_of_wide_spread_take_few_steps(monkeypatch):
    """With steps that were a third of Newton's off, and rounding that never fell far enough, they took all 2000."""
    evaluated, own = [], SPD.newton_moments

    def counted(self, *arguments):
        jax.debug.callback(lambda: evaluated.append(1))
        return own(self, *arguments)

    monkeypatch.setattr(SPD, "newton_moments", counted)
    points = matrices_of_wide_spread(16, 100)
    mean = jax.block_until_ready(frechet_mean(SPD(16), points))
    jax.effects_barrier()
    assert 3 < len(evaluated) <= 30
    assert certified_distance(SPD(16), mean, points) < 1e-6


# The minimiser -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "manifold",
    [*OF_EACH_KIND, *exhaustive(*(m for m in ONE_OF_EACH_KIND + MORE if m not in OF_EACH_KIND))],
    ids=name,
)
def test_gradient_vanishes_to_machine_precision_and_the_mean_is_certified(manifold):
    assert_stationary(manifold, "float64")


@pytest.mark.parametrize("manifold", [Sphere(2), *exhaustive(SPD(2), PlanarShapes(4), SPD(3))], ids=name)
def test_means_in_single_precision_are_exact_to_single_precision(manifold):
    mean = assert_stationary(manifold, "float32")
    exact = mean_of(manifold, asymmetric_data(manifold), some_weights(7))
    assert manifold.dist(exact, cast(manifold, mean)) <= 1e-5


def assert_stationary(manifold, dtype):
    points, weights = asymmetric_data(manifold, dtype=dtype), some_weights(7, dtype=dtype)
    mean = mean_of(manifold, points, weights)
    assert mean.dtype == points.dtype and mean.shape == manifold.shape
    precision = float(jnp.finfo(dtype).eps)
    gradient = manifold.norm(mean, manifold.log_moments(mean, points, weights / weights.sum())[0])
    assert gradient <= 20 * precision
    assert certificate_of(manifold, mean, points, weights) <= 100 * precision
    return mean


@curved_or_flat
def test_certified_distance_is_an_upper_bound_and_not_a_wild_one(manifold):
    points, weights = asymmetric_data(manifold), some_weights(7)
    mean = mean_of(manifold, points, weights)
    for seed, length in itertools.product(range(4), (1e-6, 0.01, 0.2)):
        off = length * safe_radius(manifold)
        perturbed = manifold.exp(mean, a_tangent(manifold, mean, seed, off))
        bound = certificate_of(manifold, perturbed, points, weights)
        if np.isfinite(bound):
            assert off * (1 - 1e-6) <= bound <= 4.0 * off
        else:
            # Only where some record is too far for Assumption 1.
            farthest = max(float(manifold.dist(perturbed, x)) for x in points)
            assert farthest >= assumption_limit(manifold) * (1 - 1e-12)


@pytest.mark.parametrize("manifold", [Sphere(2), *exhaustive(Sphere(1), PlanarShapes(3), PlanarShapes(4))], ids=name)
def test_nothing_is_certified_where_the_data_spread_too_far(manifold):
    origin = jnp.asarray(manifold.origin)
    tangent = a_tangent(manifold, origin, 0, 1.0)
    for share, certified in ((0.99, True), (1.01, False), (1.9, False)):
        reach = share * assumption_limit(manifold)
        points = jnp.stack([manifold.exp(origin, reach * tangent), manifold.exp(origin, -reach * tangent)])
        assert bool(jnp.isfinite(certified_distance(manifold, origin, points))) is certified


@curved_or_flat
def test_integer_weights_are_repetitions_and_scale_does_not_matter(manifold):
    points = asymmetric_data(manifold)
    counts = np.array([3, 1, 0, 2, 0, 0, 1])
    weighted = mean_of(manifold, points, jnp.asarray(counts, float))
    repeated = mean_of(manifold, jnp.repeat(points, counts, axis=0), jnp.ones(7))
    assert manifold.dist(weighted, repeated) < 1e-13 * (1 + safe_radius(manifold)) + 1e-13
    assert manifold.dist(weighted, mean_of(manifold, points, jnp.asarray(17.0 * counts))) < 1e-13
    assert manifold.dist(weighted, mean_of(manifold, points, jnp.ones(7))) > 1e-3 * safe_radius(manifold)


@pytest.mark.parametrize("manifold", [Sphere(2), *exhaustive(SPD(2), PlanarShapes(4), SPD(3))], ids=name)
def test_vmap_gives_the_single_results(manifold):
    batch = jnp.stack([asymmetric_data(manifold, seed=seed) for seed in range(3)])
    means = jax.jit(jax.vmap(lambda points: frechet_mean(manifold, points)))(batch)
    for points, mean in zip(batch, means, strict=True):
        assert manifold.dist(mean_of(manifold, points, jnp.ones(7)), mean) < 1e-13


@curved_or_flat
def test_mean_of_two_points_is_the_weighted_midpoint(manifold):
    p = a_point(manifold, 2)
    v = a_tangent(manifold, p, 1, 1.5 * safe_radius(manifold))
    points = jnp.stack([p, manifold.exp(p, v)] + [p] * 5)
    for first, second in ((1.0, 1.0), (3.0, 1.0), (1.0, 0.0)):
        weights = jnp.array([first, second] + [0.0] * 5)
        expected = manifold.exp(p, second / (first + second) * v)
        assert manifold.dist(mean_of(manifold, points, weights), expected) < 1e-12


def test_closed_forms():
    """Of seven records, as elsewhere: by the same programs."""
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(size=(7, 4)), rng.uniform(size=7)
    np.testing.assert_allclose(mean_of(Euclidean(4), rows, weights), np.average(rows, axis=0, weights=weights))

    # A circle of latitude with its mirror images: the pole, by symmetry.
    azimuth = 2 * math.pi * np.arange(5) / 5
    circle = np.stack([0.4 * np.cos(azimuth), 0.4 * np.sin(azimuth), np.full(5, math.sqrt(1 - 0.16))], axis=1)
    points, weights = np.concatenate([circle, circle[:2]]), np.array([1.0] * 5 + [0.0] * 2)
    np.testing.assert_allclose(mean_of(Sphere(2), points, weights), [0, 0, 1], atol=1e-15)


@pytest.mark.parametrize("size", [2, *exhaustive(3)])
def test_closed_forms_of_matrices(size):
    rng, manifold, same = np.random.default_rng(0), SPD(size), np.ones(7)
    # Commuting matrices: the exponential of the mean logarithm.
    turn, _ = np.linalg.qr(rng.normal(size=(size, size)))
    matrices = np.stack([turn @ np.diag(np.exp(rng.normal(size=size))) @ turn.T for _ in range(7)])
    expected = expm(np.mean([logm(m) for m in matrices], axis=0))
    np.testing.assert_allclose(mean_of(manifold, matrices, same), expected, rtol=1e-12)

    # Isometries commute with the mean.
    points = asymmetric_data(manifold)
    a = rng.normal(size=(size, size))
    moved = mean_of(manifold, a @ points @ a.T, same)
    np.testing.assert_allclose(moved, a @ mean_of(manifold, points, same) @ a.T, rtol=1e-10)


def test_the_mean_does_not_depend_on_pose_of_shapes():
    manifold, rng = PlanarShapes(6), np.random.default_rng(0)
    points = asymmetric_data(manifold, 5)
    turned = points * np.exp(1j * rng.uniform(0, 2 * math.pi, (5, 1)))
    assert manifold.dist(mean_of(manifold, points), mean_of(manifold, turned)) < 1e-14


def test_bad_shapes_are_refused_in_one_sentence():
    for points, weights in [
        (jnp.ones((3, 4)), None),
        (jnp.ones(3), None),
        (jnp.ones((0, 3)), None),
        (jnp.eye(3), jnp.ones(2)),
    ]:
        with pytest.raises(ValueError, match=r"^frechet_mean: .* must have shape .*, got .*\.$"):
            frechet_mean(Sphere(2), points, weights)
    with pytest.raises(ValueError, match="must have shape"):
        certified_distance(Sphere(2), jnp.ones(3), jnp.ones((3, 4)))


# The derivative ----------------------------------------------------------------------------------------


@functools.partial(jax.jit, static_argnums=0)
def both_modes(manifold, points, weights, moves, weight_moves, covector):
    """Forward derivatives along the moves, and the reverse derivative of ``covector``, which is their transpose."""
    _, linear = jax.linearize(lambda x, w: frechet_mean(manifold, x, w), points, weights)
    forward = jax.vmap(linear)(moves, weight_moves)
    return forward, jax.linear_transpose(linear, points, weights)(covector)


def data_with_coincidences(manifold, kind):
    """Seven records: all apart, one of them exactly at the mean, or all in one place."""
    if kind == "apart":
        return asymmetric_data(manifold)
    origin = a_point(manifold, 3)
    if kind == "together":
        return jnp.stack([origin] * 7)
    tangents = [a_tangent(manifold, origin, seed, 0.5 * safe_radius(manifold)) for seed in (1, 2, 3)]
    return jnp.stack([origin, *(manifold.exp(origin, sign * v) for v in tangents for sign in (1, -1))])


@pytest.mark.parametrize(
    ("kind", "manifold"),
    [
        *[("apart", m) for m in (Euclidean(4), Sphere(2), SPD(2), PlanarShapes(4))],
        *[(kind, m) for kind in ("one at the mean", "together") for m in (Sphere(2), SPD(2), PlanarShapes(4))],
        *exhaustive(("apart", SPD(3))),
        *exhaustive(*[(kind, m) for kind in ("one at the mean", "together") for m in (Euclidean(4), SPD(3))]),
    ],
    ids=name,
)
def test_implicit_derivatives_match_finite_differences_in_both_modes(manifold, kind):
    points, weights = data_with_coincidences(manifold, kind), jnp.array([0.5, 1.0, 1.0, 2.0, 2.0, 1.5, 1.5])
    mean, rng, step = mean_of(manifold, points, weights), np.random.default_rng(1), 1e-4
    moves = jnp.stack(
        [jnp.stack([a_tangent(manifold, x, 7 * j + i, 1.0) for i, x in enumerate(points)]) for j in range(3)]
    )
    weight_moves = jnp.asarray(rng.normal(size=(3, 7)))
    covector = jnp.asarray(rng.normal(size=manifold.shape)).astype(points.dtype)
    forward, (points_gradient, weights_gradient) = both_modes(manifold, points, weights, moves, weight_moves, covector)
    for derivative, move, weight_move in zip(forward, moves, weight_moves, strict=True):
        assert np.all(np.isfinite(derivative))
        ahead, behind = (
            mean_of(manifold, jax.vmap(manifold.exp)(points, sign * step * move), weights + sign * step * weight_move)
            for sign in (1, -1)
        )
        difference = (manifold.log(mean, ahead) - manifold.log(mean, behind)) / (2 * step)
        # The derivative of a shape is horizontal.
        np.testing.assert_allclose(derivative, difference, atol=1e-6)
        transposed = jnp.sum(points_gradient * move) + jnp.sum(weights_gradient * weight_move)
        np.testing.assert_allclose(jnp.real(transposed), jnp.real(jnp.sum(covector * derivative)), atol=1e-10)


def test_gradient_through_the_mean_of_a_batch():
    """jax.grad under vmap: the closed form in Euclidean space."""
    rows = jnp.asarray(np.random.default_rng(0).normal(size=(2, 5, 1)))
    gradient = jax.jit(jax.vmap(jax.grad(lambda x: jnp.sum(frechet_mean(Euclidean(1), x) ** 2))))(rows)
    np.testing.assert_allclose(gradient, jnp.broadcast_to(2 * rows.mean(1, keepdims=True) / 5, rows.shape), atol=1e-14)


def test_second_derivatives_through_the_mean_of_two_points_on_a_circle():
    points = jnp.array([[1.0, 0.0], [math.cos(1.0), math.sin(1.0)]])

    def mean(weight):
        return frechet_mean(Sphere(1), points, jnp.stack([1.0, weight]))[0]

    def slope(weight):
        return jax.jvp(mean, (weight,), (1.0,))[1]

    # mean = cos(a) with the angle a = w/(1 + w), a' = 1/(1 + w)^2, a'' = -2/(1 + w)^3.
    angle, first, second = 3 / 4, 1 / 16, -2 / 64
    assert slope(3.0) == pytest.approx(-math.sin(angle) * first, abs=1e-12)
    bend = jax.jit(lambda weight: jax.jvp(slope, (weight,), (1.0,))[1])(3.0)
    assert bend == pytest.approx(-math.sin(angle) * second - math.cos(angle) * first**2, abs=1e-12)


@pytest.mark.parametrize(
    ("manifold", "kind"),
    [
        (PlanarShapes(3), "apart"),
        (SPD(3), "coincident"),
        *exhaustive((SPD(3), "apart"), *((m, "apart") for m in ONE_OF_EACH_KIND + MORE if m != SPD(3))),
        *exhaustive(*((m, "coincident") for m in ONE_OF_EACH_KIND + MORE if m != SPD(3))),
    ],
    ids=name,
)
def test_the_hessian_of_a_mean_in_points_and_weights_is_that_of_finite_differences(manifold, kind):
    """Quotients too, where tangent spaces turn with the mean; frames that were held fixed were up to .7 wrong."""
    n, rng, origin = 4, np.random.default_rng(0), jnp.asarray(manifold.origin)
    frame, spread = manifold.frame(origin), 0.0 if kind == "coincident" else 0.05
    weights, axis = jnp.asarray(rng.uniform(0.5, 1.0, n)), jnp.asarray(rng.normal(size=manifold.dim))
    moves = jnp.asarray(rng.normal(size=(n, manifold.dim + 1)))

    def seen(places):
        """A coordinate of the mean, about a point that it is not at."""
        points = jax.vmap(lambda z: manifold.exp(origin, manifold.combine(z, frame)))(places[:, :-1])
        mean = frechet_mean(manifold, points, weights + places[:, -1])
        target = jax.lax.stop_gradient(manifold.exp(origin, 0.1 * frame[0]))
        return axis @ manifold.coordinates(target, manifold.log(target, mean), manifold.frame(target))

    slope, step = jax.jit(jax.grad(seen)), 1e-5
    places = jnp.asarray(spread * rng.normal(size=moves.shape)).at[:, -1].set(0.0)
    difference = (slope(places + step * moves) - slope(places - step * moves)) / (2 * step)
    np.testing.assert_allclose(slope(places + step * moves), slope(places - step * moves), atol=1e-2)
    forward = jax.jit(lambda places: jax.jvp(slope, (places,), (moves,))[1])(places)
    np.testing.assert_allclose(forward, difference, atol=1e-6)
    reverse = jax.jit(jax.grad(lambda places: jnp.sum(slope(places) * moves)))(places)
    np.testing.assert_allclose(reverse, forward, atol=1e-9)


# The mean of a release ---------------------------------------------------------------------------------

release_mean = jax.jit(mean_in_ball)


def adversarial_data(ball, n, seed):
    """Records at the rim, most of them on one side: the slowest data for a descent from the centre."""
    manifold, rng = ball.manifold, np.random.default_rng(seed)
    center = jnp.asarray(ball.center)
    axis = a_tangent(manifold, center, seed, ball.radius)
    rows = [manifold.exp(center, axis * (1 if j % 3 else -rng.uniform(0, 1))) for j in range(n - 2)]
    others = [manifold.exp(center, a_tangent(manifold, center, seed + k, ball.radius)) for k in (1, 2)]
    return jnp.stack(rows + others)


@pytest.mark.parametrize("manifold", [Sphere(2), SPD(2), *exhaustive(PlanarShapes(4), SPD(3))], ids=name)
def test_the_public_schedule_contracts_as_promised_and_reaches_the_minimiser(manifold):
    radius = min(0.999 * assumption_limit(manifold), 3.0)
    ball = GeodesicBall(manifold, manifold.origin, radius)
    steps, step_size = descent_schedule(manifold, radius)
    assert isinstance(steps, int) and 2 <= steps <= 500 and 0 < step_size <= 1
    if manifold.curvature_bounds[1] > 0:
        assert descent_schedule(manifold, 0.1 * radius)[0] < steps
    # F - min F must fall by the factor that the number of steps was computed from.
    promised = 10 ** (-24.0 / steps)
    weights = jnp.full(7, 1 / 7)

    @jax.jit
    def values(points):
        def step(x, _):
            total, square = manifold.log_moments(x, points, weights)
            return ball.clip(manifold.exp(x, step_size * total)), 0.5 * square

        return jax.lax.scan(step, jnp.asarray(ball.center), length=8)[1]

    for seed in range(3):
        points = clip(ball, adversarial_data(ball, 7, 7 * seed))
        minimiser = mean_of(manifold, points, jnp.ones(7))
        mean = release_mean(ball, points)
        assert ball.contains(mean)
        assert manifold.dist(mean, minimiser) <= 1e-11 * radius
        excess = np.asarray(values(points) - 0.5 * manifold.log_moments(minimiser, points, weights)[1])
        above_rounding = excess[:-1] > 1e-9 * radius**2
        assert above_rounding[0]
        assert np.all(excess[1:][above_rounding] <= promised * excess[:-1][above_rounding])


def test_flat_space_needs_two_steps():
    assert descent_schedule(Euclidean(3), 5.0) == (2, 1.0)


def test_number_of_steps_is_written_into_the_program_not_read_off_the_data():
    ball = GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.5)
    program = str(jax.make_jaxpr(lambda points: mean_in_ball(ball, points))(jnp.ones((4, 3))))
    assert f"length={descent_schedule(ball.manifold, 0.5)[0]}" in program
    assert "while" not in program


# The public ball ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "manifold",
    [Euclidean(4), Sphere(2), *exhaustive(SPD(2), PlanarShapes(4), Sphere(1), SPD(3), Sphere(3, 4.0), SPD(1))],
    ids=name,
)
def test_clipping_keeps_the_inside_and_moves_the_outside_to_the_rim(manifold):
    center = manifold.project(a_point(manifold, 4))
    radius = safe_radius(manifold, 0.5)
    ball = GeodesicBall(manifold, center, radius)
    tangent = a_tangent(manifold, center, 2, 1.0)
    atol = 1e-11 * float(1 + jnp.max(jnp.abs(center)))
    longest = min(0.95 * manifold.injectivity_radius, 4.0)
    lengths = np.array([0.0, 0.3 * radius, 0.99 * radius, 1.01 * radius, 1.7 * radius, longest])
    points = jax.vmap(lambda t: manifold.exp(center, t * tangent))(lengths)
    clipped = clip(ball, points)
    inside = lengths < radius
    assert np.array_equal(jax.jit(jax.vmap(ball.contains))(points), inside)
    np.testing.assert_array_equal(clipped[inside], jax.jit(jax.vmap(manifold.project))(points)[inside])
    # The others land on the same geodesic, at the rim.
    np.testing.assert_allclose(clipped[~inside], jnp.stack([manifold.exp(center, radius * tangent)] * 3), atol=atol)
    np.testing.assert_allclose(jax.vmap(lambda x: manifold.dist(center, x))(clipped[~inside]), radius, atol=1e-12)
    np.testing.assert_allclose(clip(ball, clipped), clipped, atol=atol)
    # A single record is clipped like a row of many.
    np.testing.assert_allclose(ball.clip(points[4]), clipped[4], atol=atol)


@pytest.mark.parametrize("manifold", [Sphere(2), *exhaustive(SPD(2), PlanarShapes(4), SPD(3))], ids=name)
def test_clipping_in_single_precision_lands_at_the_rim_to_single_precision(manifold):
    ball = GeodesicBall(manifold, manifold.origin, safe_radius(manifold, 0.5))
    data = cast(manifold, jnp.stack([a_point(manifold, seed) for seed in range(6)]), "float32")
    clipped = clip(ball, data)
    assert clipped.dtype == data.dtype
    distances = jax.vmap(lambda x: manifold.dist(jnp.asarray(ball.center), x))(cast(manifold, clipped))
    assert np.all(distances <= ball.radius * (1 + 1e-5))
    np.testing.assert_allclose(clipped, clip(ball, cast(manifold, data)), atol=4e-5)  # the margin is of rounding


@pytest.mark.parametrize("manifold", [Euclidean(4), *CURVED, *exhaustive(PlanarShapes(4), SPD(3))], ids=name)
def test_clipping_keeps_adjacent_data_adjacent(manifold):
    ball = GeodesicBall(manifold, manifold.project(a_point(manifold, 4)), safe_radius(manifold, 0.5))
    data = jnp.stack([a_point(manifold, seed) for seed in range(6)])
    before = np.asarray(clip(ball, data))
    near = manifold.exp(jnp.asarray(ball.center), a_tangent(manifold, ball.center, 5, 0.5 * ball.radius))
    for replacement in (near, jnp.full(manifold.shape, jnp.nan, data.dtype)):
        after = np.asarray(clip(ball, data.at[3].set(replacement)))
        assert [j for j in range(6) if not np.array_equal(before[j], after[j])] == [3]
        assert np.all(np.isfinite(after))
    np.testing.assert_allclose(clip(ball, data[::-1]), before[::-1], atol=1e-14 * float(1 + jnp.max(jnp.abs(before))))


def test_integer_records_and_centres_are_numbers():
    ball = GeodesicBall(Sphere(2), [0.6, 0.0, 0.8], 0.3)
    records = np.array([[1, 0, 0], [3, 0, 4], [0, 1, 1]])
    np.testing.assert_array_equal(ball.clip(records), ball.clip(records.astype(float)))
    assert GeodesicBall(Sphere(2), [0, 0, 1], 0.3).contains(jnp.array([0.0, 0.0, 1.0]))


def test_assumption_limits():
    assert assumption_limit(Sphere(2)) == pytest.approx(math.pi / 4)
    assert assumption_limit(Sphere(5, 0.25)) == pytest.approx(math.pi / 2)
    assert assumption_limit(Sphere(3, 4.0)) == pytest.approx(math.pi / 8)
    for landmarks in (3, 4, 12):
        assert assumption_limit(PlanarShapes(landmarks)) == pytest.approx(math.pi / 8)
    for manifold in (SPD(1), SPD(5), Euclidean(4)):
        assert assumption_limit(manifold) == math.inf
    assert GeodesicBall(Euclidean(4), Euclidean(4).origin, 1e6).satisfies_assumption
    ball = functools.partial(GeodesicBall, Sphere(2), [0.0, 0.0, 1.0])
    assert ball(math.pi / 4 - 1e-9).satisfies_assumption
    assert not ball(math.pi / 4).satisfies_assumption


@pytest.mark.parametrize(
    ("center", "radius", "words"),
    [
        ([0.0, 0.0, 1.0], 0.0, "radius must be a finite number above 0"),
        ([0.0, 0.0, 1.0], -1.0, "radius must be a finite number above 0"),
        ([0.0, 0.0, 1.0], math.nan, "radius must be a finite number above 0"),
        ([0.0, 0.0, 1.0], math.inf, "radius must be a finite number above 0"),
        ([0.0, 0.0, 1.0], "wide", "radius must be a finite number above 0"),
        ([0.0, 1.0], 0.3, "center must have shape"),
        ([0.0, 0.0, 1.1], 0.3, "not a point of"),
        ([0.0, 0.0, 0.0], 0.3, "not a point of"),
        ([math.nan, 0.0, 1.0], 0.3, "not a point of"),
    ],
)
def test_bad_balls_are_refused_in_one_sentence(center, radius, words):
    with pytest.raises(ValueError, match=words) as caught:
        GeodesicBall(Sphere(2), center, radius)
    assert str(caught.value).endswith(".")


def test_clip_refuses_wrong_shapes():
    ball = GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.3)
    for shape in ((4,), (3, 4), (2, 2, 3), ()):
        with pytest.raises(ValueError, match=r"points must have shape .*, got .*\.$"):
            ball.clip(jnp.ones(shape))


def test_a_ball_is_a_pytree_that_jit_and_vmap_accept():
    ball = GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.3)
    leaves, structure = jax.tree_util.tree_flatten(ball)
    assert len(leaves) == 2
    rebuilt = jax.tree_util.tree_unflatten(structure, leaves)
    assert (rebuilt.manifold, rebuilt.radius) == (ball.manifold, ball.radius)
    x = jnp.array([1.0, 0.0, 0.0])
    np.testing.assert_allclose(
        jax.jit(lambda b, y: b.clip(y))(ball, x), [math.sin(0.3), 0.0, math.cos(0.3)], atol=1e-15
    )
    # Many centres at once.
    centers = jnp.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    balls = jax.tree_util.tree_unflatten(structure, [centers, jnp.full(3, 0.3)])
    inside = jax.vmap(lambda b: b.contains(x))(balls)
    assert inside.tolist() == [False, False, True]
    means = jax.jit(jax.vmap(lambda b: mean_in_ball(b, b.clip(jnp.stack([x, x])))))(balls)
    np.testing.assert_allclose(means, jax.vmap(lambda b: b.clip(x))(balls), atol=1e-12)
