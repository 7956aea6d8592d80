"""Steps and gradients for optimisation on all manifolds, and optax on them."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from strategies import MANIFOLDS, a_point, a_tangent, cap, exhaustive, name, reach

from jaxgeodp import (
    SPD,
    Euclidean,
    Grassmann,
    Hyperbolic,
    LogCholesky,
    LogEuclidean,
    PlanarShapes,
    Product,
    Rotations,
    Sphere,
    frechet_mean,
    minimize,
)
from jaxgeodp.optimize import on_manifold

FURTHER = [Product(PlanarShapes(3), Euclidean(1)), Sphere(2, 4.0), LogEuclidean(2), LogCholesky(2)]
TRAINED = [SPD(2), Grassmann(4, 2), Product(Sphere(2), SPD(2)), *exhaustive(Sphere(2), PlanarShapes(4), Hyperbolic(2))]


@pytest.mark.parametrize("manifold", [*MANIFOLDS, *FURTHER], ids=name)
@pytest.mark.parametrize("dtype", ["float64", *exhaustive("float32")])
def test_gradients_of_arrays_become_riemannian_ones(manifold, dtype):
    p = a_point(manifold, 3, dtype)
    q = manifold.exp(p, a_tangent(manifold, p, 4, 0.5 * reach(manifold)))
    found = manifold.riemannian_from_ambient(p, jax.grad(lambda x: manifold.squared_dist(x, q))(p))
    atol = 2e-3 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(found, -2.0 * manifold.log(p, q), atol=atol * float(jnp.max(jnp.abs(found))))
    assert found.dtype == p.dtype


@pytest.mark.parametrize("manifold", MANIFOLDS, ids=name)
def test_a_retraction_is_the_exponential_map_to_first_order(manifold):
    p = a_point(manifold, 5)
    v = a_tangent(manifold, p, 6, 1.0)
    derivative = jax.jvp(lambda t: manifold.retract(p, t * v), (0.0,), (1.0,))[1]
    np.testing.assert_allclose(derivative, v, atol=1e-9 * float(jnp.max(jnp.abs(v))))
    for length in (0.0, 0.5, 3.0, 20.0):
        assert manifold.deviation(manifold.retract(p, length * v)) < 1e-9


def test_the_retraction_of_matrices_is_right_to_second_order():
    manifold = SPD(3)
    p = a_point(manifold, 5)
    v = a_tangent(manifold, p, 6, 1e-2)
    np.testing.assert_allclose(manifold.retract(p, v), manifold.exp(p, v), atol=1e-6 * float(jnp.max(p)))


@pytest.mark.parametrize("manifold", MANIFOLDS, ids=name)
def test_a_geodesic_has_constant_speed(manifold):
    p = a_point(manifold, 7)
    v = a_tangent(manifold, p, 8, 1.0)
    for time in (-0.5, 0.0, 0.3):
        assert manifold.dist(p, manifold.geodesic(p, v, time)) == pytest.approx(abs(time), abs=1e-7)
    np.testing.assert_allclose(manifold.geodesic(p, v, 1), manifold.exp(p, v), atol=1e-12 * float(jnp.max(jnp.abs(p))))


def test_a_geodesic_keeps_the_precision_of_its_vector_and_has_one_time():
    p, v = a_point(Sphere(2), 7, "float32"), jnp.zeros(3, "float32")
    assert Sphere(2).geodesic(p, v, np.float64(0.5)).dtype == jnp.float32
    with pytest.raises(ValueError, match="t must be one number, got shape \\(3,\\)"):
        Sphere(2).geodesic(p, v, jnp.linspace(0.0, 1.0, 3))


@pytest.mark.parametrize("manifold", MANIFOLDS, ids=name)
def test_momenta_are_transported(manifold):
    """Nesterov's steps, which do not go along the momentum, against the same by vectors."""
    optimizer = on_manifold(optax.sgd(0.3, momentum=0.8, nesterov=True), manifold)
    p = a_point(manifold, 9)
    goals = [manifold.exp(p, a_tangent(manifold, p, seed, 0.4 * reach(manifold))) for seed in (10, 11, 12)]
    slope = jax.jit(jax.grad(lambda x, goal: 0.5 * manifold.squared_dist(x, goal)))
    x, state, y, momentum = p, optimizer.init(p), p, jnp.zeros_like(p)
    for goal in goals:
        updates, state = optimizer.update(slope(x, goal), state, x)
        x = optax.apply_updates(x, updates)
        gradient = -manifold.log(y, goal)
        momentum = gradient + 0.8 * momentum
        following = manifold.project(manifold.exp(y, -0.3 * (gradient + 0.8 * momentum)))
        momentum, y = manifold.transport(y, following, momentum), following
    assert manifold.dist(x, y) < 1e-8


@pytest.mark.parametrize(
    "manifold", [Hyperbolic(2), SPD(3), *exhaustive(Sphere(2), Rotations(), PlanarShapes(4))], ids=name
)
def test_many_starts_in_single_precision(manifold):
    """The frame stays orthonormal in a long run, and points points."""
    goal = a_point(manifold, 14, "float32")
    tangents = jnp.stack([a_tangent(manifold, goal, seed, 0.8 * reach(manifold)) for seed in range(3)])
    optimizer = on_manifold(optax.adam(0.02), manifold)

    def train(start):
        def step(carry, _):
            x, state = carry
            slope = jax.grad(lambda x: manifold.squared_dist(x, goal))(x)
            updates, state = optimizer.update(slope, state, x)
            return (optax.apply_updates(x, updates), state), None

        return jax.lax.scan(step, (start, optimizer.init(start)), length=2000)[0]

    points, states = jax.jit(jax.vmap(train))(jax.vmap(lambda v: manifold.exp(goal, v))(tangents))
    assert points.dtype == goal.dtype
    for x, frame in zip(points, states.frame, strict=True):
        assert manifold.dist(x, goal) < 5e-3 and manifold.deviation(x) < 1e-5
        gram = jax.vmap(lambda e, x=x, frame=frame: manifold.coordinates(x, e, frame))(frame)
        np.testing.assert_allclose(gram, np.eye(manifold.dim), atol=2e-3)


@pytest.mark.parametrize("manifold", TRAINED, ids=name)
def test_mini_batches_find_the_mean(manifold):
    points = cap(manifold, a_point(manifold, 11), 0.5 * reach(manifold), 64, 12)
    optimizer = on_manifold(optax.adam(optax.exponential_decay(0.1, 300, 0.02)), manifold)

    def loss(x, batch):
        return jnp.mean(jax.vmap(lambda y: manifold.squared_dist(x, y))(batch))

    def step(carry, key):
        x, state = carry
        batch = points[jax.random.choice(key, 64, (16,), replace=False)]
        updates, state = optimizer.update(jax.grad(loss)(x, batch), state, x)
        return (optax.apply_updates(x, updates), state), None

    keys = jax.random.split(jax.random.key(0), 600)
    mean = frechet_mean(manifold, points)
    start = manifold.exp(mean, a_tangent(manifold, mean, 13, 0.8 * reach(manifold)))
    (x, _), _ = jax.jit(lambda first: jax.lax.scan(step, first, keys))((start, optimizer.init(start)))
    assert manifold.dist(x, mean) < 0.03 * manifold.dist(start, mean)


def test_a_transformation_that_compares_parameters_sees_the_path():
    """L-BFGS without a line search: its second step is Newton's in one dimension, which ends at the minimum."""
    manifold = Sphere(1)
    target = jnp.array([0.0, 1.0])
    x = jnp.array([np.sin(0.8), np.cos(0.8)])
    optimizer = on_manifold(optax.lbfgs(0.3, linesearch=None, scale_init_precond=False), manifold)
    state = optimizer.init(x)
    for _ in range(2):
        gradient = jax.grad(lambda x: manifold.squared_dist(x, target))(x)
        updates, state = optimizer.update(gradient, state, x)
        x = optax.apply_updates(x, updates)
    # From .8 by .3 times the gradient 1.6 to .32, and from there by .3 of Newton's step to .7 of it.
    assert manifold.dist(x, target) == pytest.approx(0.7 * 0.32, abs=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda o: o.init(jnp.ones(2)), "a point must have shape"),
        (lambda o: o.init(jnp.ones(3, int)), "floating numbers, got int"),
        (lambda _: on_manifold(optax.sgd(0.1), PlanarShapes(3)).init(jnp.ones(3)), "complexfloating numbers"),
        (lambda o: o.update(jnp.ones(3), o.init(jnp.ones(3)), None), "needs the point"),
        (lambda o: o.update(jnp.ones(3), o.init(jnp.ones(3)), jnp.ones(3), value_fn=jnp.sum), "minimize"),
        (lambda o: o.update(jnp.ones(2), o.init(jnp.ones(3)), jnp.ones(3)), "a gradient must have shape"),
    ],
)
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call(on_manifold(optax.sgd(0.1), Sphere(2)))


# Minimisers -------------------------------------------------------------------------------------------


def leading(matrix):
    """The minimum of a quadratic form on the sphere."""
    start = jnp.array([0.6, 0.1, 0.8])
    return minimize(Sphere(2), lambda x: -x @ (0.5 * (matrix + matrix.T)) @ x, start, tolerance=1e-12)


def test_a_minimum_has_derivatives_in_what_its_function_closes_over():
    matrix = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3))) + jnp.diag(jnp.array([0.0, 1.0, 4.0]))

    def projector(matrix):
        point = leading(matrix).point
        return jnp.outer(point, point)

    def expected(matrix):
        vector = jnp.linalg.eigh(0.5 * (matrix + matrix.T))[1][:, -1]
        return jnp.outer(vector, vector)

    for derivative in (jax.jacrev, lambda f: jax.jacfwd(jax.jacrev(f))):
        found = jax.jit(derivative(projector))(matrix)
        np.testing.assert_allclose(found, derivative(expected)(matrix), atol=1e-10)
    slope = jax.jit(jax.vmap(jax.grad(lambda own: leading(own).value)))(jnp.stack([matrix, 2.0 * matrix]))
    np.testing.assert_allclose(slope, jnp.stack([-expected(matrix)] * 2), atol=1e-10)


def test_what_a_function_closes_over_may_be_no_numbers_and_traced():
    """Labels, a key and an empty array, within programs."""
    rows, labels = jnp.asarray(np.random.default_rng(0).normal(size=(9, 3))), jnp.arange(9) % 3
    start, empty = jnp.array([0.6, 0.0, 0.8]), jnp.zeros((0, 3))

    @jax.jit
    def fitted(weights, rows, labels, key, empty):
        def loss(x):
            noise = 0.0 * jax.random.normal(key, (3,)) @ x
            return -jnp.sum(weights[labels] * (rows @ x)) + noise + jnp.sum(empty)

        return minimize(Sphere(2), loss, start, tolerance=1e-10).point

    def expected(weights):
        total = weights[labels] @ rows
        return total / jnp.linalg.norm(total)

    weights, others = jnp.array([1.0, 2.0, 0.5]), (rows, labels, jax.random.key(0), empty)
    found = jax.jacobian(fitted)(weights, *others)
    np.testing.assert_allclose(found, jax.jacobian(expected)(weights), atol=1e-8)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(fitted))(weights, *others), found, atol=1e-8)


def test_a_minimum_has_no_derivative_in_its_start():
    def found(start):
        return minimize(Sphere(2), lambda x: x[2], start, tolerance=1e-6).point[0]

    assert not np.any(jax.jit(jax.grad(found))(jnp.array([0.6, 0.1, 0.8])))
