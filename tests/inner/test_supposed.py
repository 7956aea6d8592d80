"""What releases suppose of computed means (docs/mathematics.md, section 13) against means computed another way."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgeodp import SPD, Euclidean, GeodesicBall, Grassmann, Hyperbolic, PlanarShapes, Product, Rotations, Sphere
from jaxgeodp.bounds.rounding import supposed_mean_error
from jaxgeodp.privacy.supposed import usable_points
from jaxgeodp.statistics.frechet_mean import mean_in_ball

SPACES = [
    (Sphere(2), 0.7),
    (SPD(2), 9.0),
    (Hyperbolic(2), 4.0),
    (Euclidean(1), 1.0),
]
MORE = [
    (Sphere(2), 1e-9),
    (Sphere(5, 4.0), 0.2),
    (Hyperbolic(3), 0.5),
    (SPD(2), 0.5),
    (SPD(3), 5.0),
    (SPD(1), 5.0),
    (PlanarShapes(3), 0.3),
    (PlanarShapes(8), 1e-7),
    (Rotations(), 1.5),
    (Grassmann(4, 2), 0.4),
    (Product(SPD(2), Euclidean(2)), 3.0),
]
CASES = [pytest.param(*case, id=str(case)) for case in SPACES]
CASES += [pytest.param(*case, id=str(case), marks=pytest.mark.exhaustive) for case in MORE]


def clipped(manifold, radius, n):
    """A ball and n records in it, half of them at its rim."""
    ball = GeodesicBall(manifold, manifold.origin, radius)
    origin = jnp.asarray(ball.center)
    keys = jax.random.split(jax.random.key(n), n)

    def record(key):
        tangent = manifold.random_tangent(key, origin)
        length = radius * jax.random.uniform(key, maxval=2.0)
        return manifold.exp(origin, length / manifold.norm(origin, tangent) * tangent)

    return ball, jax.jit(lambda keys: ball.clip_to_home(jax.vmap(record)(keys)))(keys)


def seen_from_elsewhere(ball, points, center):
    """Their mean, computed where an isometry carries them."""
    manifold = ball.manifold
    there = jax.vmap(lambda x: manifold.project(manifold.from_home(center, x)))(points)
    moved = GeodesicBall.tree_unflatten(manifold, (manifold.from_home(center, jnp.asarray(ball.center)), ball.radius))
    return manifold.to_home(center, mean_in_ball(moved, there))


def error(manifold, radius, n, dtype=np.float64):
    """Half of how far two computed means of the same records are apart, and what is supposed of one."""
    ball, points = clipped(manifold, radius, n)
    origin = jnp.asarray(manifold.origin)
    center = manifold.exp(origin, 0.3 * manifold.frame(origin)[0])
    kind = jnp.result_type(dtype, jnp.complex64) if manifold.dtype_kind == "complex" else dtype

    def both(points):
        return mean_in_ball(ball, points.astype(kind)).astype(points.dtype), seen_from_elsewhere(ball, points, center)

    own, other = jax.jit(both)(points)
    return 0.5 * float(manifold.dist(own, other)), supposed_mean_error(ball, n)


@pytest.mark.parametrize(("manifold", "radius"), CASES)
def test_computed_means_are_as_near_as_is_supposed(manifold, radius):
    for n in (3, 4096):
        found, supposed = error(manifold, radius, n)
        assert found <= supposed


def test_records_with_one_number_that_is_none_are_no_public_points():
    """Also where what is left of them could be projected."""
    space = Grassmann(4, 2)
    point = np.asarray(space.origin)
    for place in np.ndindex(*space.shape):
        for wrong in (np.inf, -np.inf, np.nan):
            bad = point.copy()
            bad[place] = wrong
            assert usable_points("owner", "records", space, np.stack([point, bad, point]), 1)[1].tolist() == [0, 2]


def test_means_in_single_precision_are_not():
    """Planted: rounding a billion times as large."""
    found, supposed = error(Sphere(2), 0.7, 4096, np.float32)
    assert found > supposed


@pytest.mark.parametrize(("manifold", "radius"), CASES)
def test_what_is_supposed_is_small_beside_one_record(manifold, radius):
    ball = GeodesicBall(manifold, manifold.origin, radius)
    assert supposed_mean_error(ball, 1000) < 1e-3 * 2.0 * radius / 1000 or radius < 1e-6


@pytest.mark.parametrize(
    ("manifold", "radius", "size", "growth"),
    [(Euclidean(2), 3.0, 0.0, 0.0), (Sphere(2), 0.4, 1.0, 0.0), (SPD(2), 1.5, math.sqrt(2.0), math.sqrt(0.5))],
    ids=["flat", "sphere", "spd"],
)
def test_what_is_supposed_is_what_is_written(manifold, radius, size, growth):
    """eta of section 13, for so many records that both of its parts count."""
    ball = GeodesicBall(manifold, manifold.origin, radius)
    rounding = 64.0 * 1e7 * 2.0**-52 * (size + radius) * math.exp(2.0 * growth * radius)
    assert supposed_mean_error(ball, 10**14) == pytest.approx(1e-9 * radius + rounding, rel=1e-12)
