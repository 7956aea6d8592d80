"""Steps and gradients for optimisation on all manifolds, and optax on them."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from strategies import MANIFOLDS, a_point, a_tangent, cap, exhaustive, name, reach

from jaxgeodp import SPD, Euclidean, Grassmann, Hyperbolic, PlanarShapes, Product, Sphere, frechet_mean
from jaxgeodp.optimize import on_manifold

TRAINED = [SPD(2), Grassmann(4, 2), Product(Sphere(2), SPD(2)), *exhaustive(Sphere(2), PlanarShapes(4), Hyperbolic(2))]


@pytest.mark.parametrize("manifold", [*MANIFOLDS, Product(PlanarShapes(3), Euclidean(1))], ids=name)
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
    np.testing.assert_allclose(manifold.retract(p, v), manifold.exp(p, v), atol=1e-5 * float(jnp.max(p)))


@pytest.mark.parametrize("manifold", MANIFOLDS, ids=name)
def test_a_geodesic_has_constant_speed(manifold):
    p = a_point(manifold, 7)
    v = a_tangent(manifold, p, 8, 1.0)
    for time in (-0.5, 0.0, 0.3):
        assert manifold.dist(p, manifold.geodesic(p, v, time)) == pytest.approx(abs(time), abs=1e-7)
    np.testing.assert_allclose(manifold.geodesic(p, v, 1), manifold.exp(p, v), atol=1e-12 * float(jnp.max(jnp.abs(p))))


@pytest.mark.parametrize("manifold", MANIFOLDS, ids=name)
def test_momentum_goes_on_along_the_geodesic(manifold):
    """A step by a gradient, and one by what is left of it, stay on one geodesic: momenta are transported."""
    optimizer = on_manifold(optax.sgd(1.0, momentum=0.5), manifold)
    p = a_point(manifold, 9)
    v = a_tangent(manifold, p, 10, 0.4 * reach(manifold))
    q = manifold.exp(p, v)
    x, state = p, optimizer.init(p)
    for gradient in (jax.grad(lambda x: 0.5 * manifold.squared_dist(x, q))(p), jnp.zeros_like(p)):
        updates, state = optimizer.update(gradient, state, x)
        x = optax.apply_updates(x, updates)
    assert manifold.dist(x, manifold.geodesic(p, v, 1.5)) < 1e-6
    moved = jax.vmap(lambda e: manifold.coordinates(x, e, state.frame))(state.frame)
    np.testing.assert_allclose(moved, np.eye(manifold.dim), atol=1e-9)


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
        (lambda o: o.update(jnp.ones(3), o.init(jnp.ones(3)), None), "needs the point"),
        (lambda o: o.update(jnp.ones(3), o.init(jnp.ones(3)), jnp.ones(3), value_fn=jnp.sum), "minimize"),
        (lambda o: o.update(jnp.ones(2), o.init(jnp.ones(3)), jnp.ones(3)), "a gradient must have shape"),
    ],
)
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call(on_manifold(optax.sgd(0.1), Sphere(2)))
