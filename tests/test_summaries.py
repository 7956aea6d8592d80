"""Principal components, clusters and regression without privacy: against flat spaces, and by what defines them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.cluster import KMeans
from strategies import exhaustive

from jaxgeodp import SPD, Euclidean, Hyperbolic, PlanarShapes, Rotations, Sphere, frechet_mean
from jaxgeodp.manifolds import Grassmann
from jaxgeodp.statistics import geodesic_regression, k_means, tangent_pca

SPACES = [Sphere(2), PlanarShapes(4), *exhaustive(SPD(3), Rotations(), Hyperbolic(3), Grassmann(5, 2), Sphere(2, 4.0))]
WEIGHTS = np.linspace(0.5, 2.0, 30)
TIMES = np.linspace(1990.0, 2020.0, 30)
every_space = pytest.mark.parametrize("manifold", SPACES, ids=str)


def about(manifold, spread, seed=0, count=30, centers=None):
    """Points at normal tangent vectors from the origin, or from a centre each."""
    base = jnp.broadcast_to(jnp.asarray(manifold.origin), (count, *manifold.shape)) if centers is None else centers
    z = spread * np.random.default_rng(seed).normal(size=(count, manifold.dim))
    return _about(manifold, base, jnp.asarray(z))


def _about(manifold, base, z):
    def point(x, own):
        return manifold.project(manifold.exp(x, manifold.combine(own, manifold.frame(x))))

    return jax.jit(jax.vmap(point))(base, z)


def mean_square(manifold, center, points, weights):
    squares = jax.jit(jax.vmap(manifold.squared_dist, (None, 0)))(center, points)
    return float(np.average(squares, weights=weights))


# Principal components ----------------------------------------------------------------------------------


@every_space
def test_variances_add_up_and_scores_give_the_points_back(manifold):
    points = about(manifold, 0.2)
    found = tangent_pca(manifold, points, WEIGHTS)
    assert np.all(np.diff(found.variances) <= 0)
    total = mean_square(manifold, found.mean, points, WEIGHTS)
    assert float(jnp.sum(found.variances)) == pytest.approx(total, rel=1e-10)
    gram = [[manifold.inner(found.mean, u, v) for u in found.directions] for v in found.directions]
    np.testing.assert_allclose(gram, np.eye(manifold.dim), atol=1e-12)
    moments = found.scores.T @ (WEIGHTS[:, None] / WEIGHTS.sum() * found.scores)
    np.testing.assert_allclose(moments, np.diag(found.variances), atol=1e-12)
    tangents = jnp.tensordot(found.scores, found.directions, axes=1)
    back = jax.jit(jax.vmap(lambda v: manifold.exp(found.mean, v)))(tangents)
    assert float(jnp.max(jax.jit(jax.vmap(manifold.dist))(back, points))) < 1e-7


def test_components_of_a_flat_space_are_those_of_numpy():
    rows = np.random.default_rng(3).normal(size=(20, 4)) @ np.diag([3.0, 2.0, 1.0, 0.1])
    found = tangent_pca(Euclidean(4), rows, components=2)
    _, lengths, directions = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(found.variances, lengths[:2] ** 2 / 20, rtol=1e-12)
    np.testing.assert_allclose(np.abs(found.directions @ directions.T), np.eye(2, 4), atol=1e-12)
    assert found.scores.shape == (20, 2)
    few = tangent_pca(Euclidean(4), rows[:3])
    assert few.directions.shape == (3, 4) and few.variances[2] < 1e-25  # three points span two directions
    batch = jax.jit(jax.vmap(lambda x: tangent_pca(Euclidean(4), x, components=2).variances))(
        jnp.stack([rows, 2 * rows])
    )
    np.testing.assert_allclose(batch[1], 4 * batch[0], rtol=1e-12)


# Clusters ----------------------------------------------------------------------------------------------


@every_space
def test_clusters_that_lie_apart_are_found(manifold):
    truth = np.repeat([0, 1, 2], 10)
    places = 0.6 * np.eye(3, manifold.dim)
    if manifold.dim == 2:
        places[2] = -0.6
    centers = _about(manifold, jnp.stack([jnp.asarray(manifold.origin)] * 3), jnp.asarray(places))
    points = about(manifold, 0.03, centers=centers[truth])
    found = k_means(manifold, points, 3, jax.random.key(1), WEIGHTS)
    assert len(set(zip(truth.tolist(), np.asarray(found.labels).tolist(), strict=True))) == 3
    for own in range(3):
        inside = np.asarray(found.labels) == own
        mean = frechet_mean(manifold, points, WEIGHTS * inside)
        assert float(manifold.dist(found.centers[own], mean)) < 1e-10
    nearest = np.min([jax.vmap(manifold.squared_dist, (None, 0))(c, points) for c in found.centers], axis=0)
    assert float(found.loss) == pytest.approx(np.average(nearest, weights=WEIGHTS), rel=1e-10)


def test_the_best_of_several_starts_is_that_of_another_library():
    rows = np.random.default_rng(5).normal(size=(200, 2))
    starts = jax.random.split(jax.random.key(0), 20)
    found = jax.jit(jax.vmap(lambda key: k_means(Euclidean(2), jnp.asarray(rows), 4, key)))(starts)
    theirs = KMeans(4, n_init=20, random_state=0).fit(rows).inertia_ / 200
    assert float(jnp.min(found.loss)) == pytest.approx(theirs, rel=1e-3)
    assert np.all(found.loss >= theirs * (1 - 1e-6)) and np.all(found.steps < 100)
    assert len(np.unique(np.round(found.loss, 6))) > 1  # starts differ


def test_no_cluster_is_left_empty():
    """Two of three distinct points many times: k-means++ has to find the third, or a step has to."""
    rows = jnp.asarray([[0.0], [0.0], [0.0], [1.0], [1.0], [100.0]])
    for seed in range(5):
        found = k_means(Euclidean(1), rows, 3, jax.random.key(seed))
        assert sorted(found.centers[:, 0].tolist()) == [0.0, 1.0, 100.0] and float(found.loss) == 0.0
    same = k_means(Euclidean(1), jnp.ones((4, 1)), 3, jax.random.key(0), max_steps=5)
    np.testing.assert_array_equal(same.centers, np.ones((3, 1)))


# Regression --------------------------------------------------------------------------------------------


@every_space
def test_a_geodesic_is_found_and_no_near_one_is_better(manifold):
    velocity = np.random.default_rng(2).normal(size=manifold.dim)
    velocity *= 0.8 / np.linalg.norm(velocity)
    shares = (TIMES - 2005.0) / 30.0
    exact = _about(manifold, jnp.stack([jnp.asarray(manifold.origin)] * 30), jnp.asarray(shares[:, None] * velocity))
    found = geodesic_regression(manifold, TIMES, exact)
    assert float(found.explained) == pytest.approx(1.0, abs=1e-12) and float(found.time) == 1990.0
    assert float(manifold.norm(found.start, found.velocity)) == pytest.approx(0.8 / 30.0, rel=1e-9)
    noisy = about(manifold, 0.15, seed=4, centers=exact)
    found = geodesic_regression(manifold, TIMES, noisy, WEIGHTS)
    assert 0.0 < float(found.explained) < 1.0 and int(found.steps) < 200

    @jax.jit
    def loss(moves):
        base = manifold.exp(found.start, manifold.combine(moves[0], manifold.frame(found.start)))
        turned = manifold.transport(found.start, base, found.velocity)
        turned = turned + manifold.combine(moves[1], manifold.frame(base))
        places = jax.vmap(lambda t: manifold.geodesic(base, turned, t - found.time))(jnp.asarray(TIMES))
        return jnp.average(jax.vmap(manifold.squared_dist)(places, noisy), weights=jnp.asarray(WEIGHTS))

    own = loss(jnp.zeros((2, manifold.dim)))
    assert float(own) == pytest.approx(float(found.loss), rel=1e-10)
    rng = np.random.default_rng(6)
    for _ in range(10):
        move = rng.normal(size=(2, manifold.dim)) * np.array([[1e-2], [1e-2 / 30]])
        assert float(loss(jnp.asarray(move))) > float(own)
    # Its derivative along any move is that of rounding: first order would be 1e-5.
    move = jnp.asarray(rng.normal(size=(2, manifold.dim)) * np.array([[1e-5], [1e-5 / 30]]))
    assert abs(float(loss(move) - loss(-move))) < 1e-12


def test_a_line_of_a_flat_space_is_that_of_least_squares():
    rows = np.random.default_rng(7).normal(size=(30, 3)) + np.outer(TIMES - 2000, [0.1, 0.0, -0.2])
    found = geodesic_regression(Euclidean(3), TIMES, rows, WEIGHTS)
    design = np.stack([np.ones(30), TIMES - 1990.0], axis=1)
    root = np.sqrt(WEIGHTS)[:, None]
    expected = np.linalg.lstsq(root * design, root * rows, rcond=None)[0]
    np.testing.assert_allclose([found.start, found.velocity], expected, atol=1e-12)
    assert int(found.steps) <= 2
    sets = jnp.stack([rows, 2.0 * rows])
    both = jax.jit(jax.vmap(lambda x: geodesic_regression(Euclidean(3), TIMES, x, WEIGHTS).velocity))(sets)
    np.testing.assert_allclose(both, np.stack([expected[1], 2 * expected[1]]), atol=1e-12)


def test_single_precision():
    points = np.asarray(about(Sphere(2), 0.2), np.float32)
    assert tangent_pca(Sphere(2), points).variances.dtype == np.float32
    assert k_means(Sphere(2), points, 3, jax.random.key(0)).centers.dtype == np.float32
    line = geodesic_regression(Sphere(2), TIMES.astype(np.float32), points)
    double = geodesic_regression(Sphere(2), TIMES, points.astype(float) / np.linalg.norm(points, axis=1, keepdims=True))
    np.testing.assert_allclose(line.velocity, double.velocity, atol=1e-6)
    assert int(line.steps) < 100


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: tangent_pca(Euclidean(2), x, components=3), "components must be an integer from 1 to 2, got 3"),
        (lambda x: tangent_pca(Euclidean(2), x, components=True), "components must be an integer"),
        (lambda x: tangent_pca(Euclidean(3), x), r"points must have shape \(n, \*\(3,\)\)"),
        (
            lambda x: k_means(Euclidean(2), x, 31, jax.random.key(0)),
            "k must be at most the number of points, 30, got 31",
        ),
        (lambda x: k_means(Euclidean(2), x, 0, jax.random.key(0)), "k must be an integer of at least 1"),
        (lambda x: geodesic_regression(Euclidean(2), TIMES[:5], x), "times must be 30 real numbers"),
        (lambda x: geodesic_regression(Euclidean(2), TIMES + 0j, x), "times must be 30 real numbers"),
        (lambda x: geodesic_regression(Euclidean(2), np.ones(30), x), "at least two of them different"),
        (lambda x: geodesic_regression(Euclidean(2), np.full(30, np.nan), x), "times must be finite"),
        (lambda x: geodesic_regression(Sphere(1), TIMES, 3.0 * x), "points"),
    ],
)
def test_wrong_calls_are_told_in_one_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call(np.random.default_rng(0).normal(size=(30, 2)))
