"""The margin of clipped records, and where extreme ones go, against distances in many digits."""

import decimal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgeodp import SPD, Euclidean, GeodesicBall, Hyperbolic, PlanarShapes, Sphere
from jaxgeodp.manifolds import spd2

decimal.getcontext().prec = 60
D = decimal.Decimal


def hyperbolic_distance(point):
    """Of a point to the origin, asinh |(x_1, ..., x_d)|; what the first coordinate has lost does not count."""
    length = sum(D(float(x)) ** 2 for x in point[1:]).sqrt()
    return (length + (1 + length**2).sqrt()).ln()


def matrix_distance(point):
    """Of a 2 x 2 matrix to the identity, by its exact eigenvalues."""
    (a, b), (_, c) = [[D(float(x)) for x in row] for row in point]
    middle, half = (a + c) / 2, (((a - c) / 2) ** 2 + b**2).sqrt()
    return ((middle + half).ln() ** 2 + ((a * c - b**2) / (middle + half)).ln() ** 2).sqrt()


def line_distance(point):
    return abs(D(float(point[0])))


def sphere_sine(point):
    """The sine of the distance to the pole, which grows with it."""
    squares = [D(float(x)) ** 2 for x in point]
    return (sum(squares[:2]) / sum(squares)).sqrt()


def sine(x):
    x, total, term = D(x), D(0), D(x)
    for k in range(1, 60):
        total, term = total + term, -term * x * x / (2 * k * (2 * k + 1))
    return total


EXACT = [
    (Hyperbolic(2), hyperbolic_distance, D, (1e-9, 1e-3, 0.5, 9.9)),
    (SPD(2), matrix_distance, D, (1e-9, 1e-3, 0.5, 9.0, 14.0)),
    (Euclidean(1), line_distance, D, (1e-9, 0.5, 5.0)),
    (Sphere(2), sphere_sine, sine, (1e-9, 1e-3, 0.5, 0.78)),
]


@jax.jit
def clipped(ball, records):
    return ball.clip_to_home(records)


def records(manifold, radius, count=200):
    """At and around the rim of the ball about the origin."""
    origin = jnp.asarray(manifold.origin)
    lengths = radius * jnp.exp(jnp.linspace(-1e-9, 2.0, count) ** 3)

    def one(key, length):
        tangent = manifold.random_tangent(key, origin)
        return manifold.exp(origin, jnp.minimum(length, 15.0) / manifold.norm(origin, tangent) * tangent)

    return jax.vmap(one)(jax.random.split(jax.random.key(0), count), lengths)


def farthest(manifold, distance, radius):
    ball = GeodesicBall(manifold, manifold.origin, radius)
    return max(distance(point) for point in np.asarray(clipped(ball, records(manifold, radius))))


NAMES = ["plane", "matrices", "line", "sphere"]


@pytest.mark.parametrize(("manifold", "distance", "of_radius", "radii"), EXACT, ids=NAMES)
def test_clipped_records_lie_within_the_radius_in_exact_arithmetic(manifold, distance, of_radius, radii):
    for radius in radii:
        limit = of_radius(radius)
        largest = farthest(manifold, distance, radius)
        assert (1 - D("3e-5")) * limit < largest <= limit


def test_records_beyond_the_margin_are_caught(monkeypatch):
    """Planted: a record that is measured a hundredth outside passes; and no margin, where rounding decides."""
    for margin in (-1e-2, 0.0):
        monkeypatch.setattr(GeodesicBall, "_margin", lambda self, dtype, margin=margin: margin)
        jax.clear_caches()
        assert any(farthest(m, d, r) > of(r) for m, d, of, radii in EXACT for r in radii)
    jax.clear_caches()


EXTREME = [SPD(2), SPD(3), Hyperbolic(2), PlanarShapes(4)]


def share_near_the_rim(manifold, radius):
    """Of records as extreme as files hold: matrices of condition 1e15, points 20 away."""
    rng = np.random.default_rng(0)
    extreme = []
    for _ in range(200):
        point = rng.normal(size=manifold.shape)
        if isinstance(manifold, SPD):
            turn = np.linalg.qr(point)[0]
            point = (turn * 10.0 ** rng.uniform(-14.5, 0.0, manifold.size)) @ turn.T
            point = 0.5 * (point + point.T)
        if isinstance(manifold, Hyperbolic):
            point = np.asarray(manifold.project(jnp.asarray(point * 10.0 ** rng.uniform(3, 8))))
        if manifold.dtype_kind == "complex":
            point = point + 1j * rng.normal(size=manifold.shape)
        extreme.append(point)
    ball = GeodesicBall(manifold, manifold.origin, radius)
    found = clipped(ball, jnp.asarray(np.array(extreme)))
    origin = jnp.asarray(ball.center)
    distances = jax.vmap(lambda x: manifold.dist(origin, x))(found)
    return float(jnp.mean(distances > 0.9 * radius))


@pytest.mark.parametrize("manifold", EXTREME, ids=str)
def test_extreme_records_go_to_the_rim_and_not_to_the_centre(manifold):
    assert share_near_the_rim(manifold, 0.05) > 0.95


def test_a_distance_that_loses_its_digits_is_caught(monkeypatch):
    """Planted: the distance from the difference of two matrices alone, which loses the digits of small eigenvalues."""
    told = spd2.squared_log_norm
    monkeypatch.setattr(
        spd2, "squared_log_norm", lambda a, deviation: told(jnp.eye(2) + 1e-3 * deviation, 1e-3 * deviation) * 1e6
    )
    jax.clear_caches()
    assert share_near_the_rim(SPD(2), 0.05) < 0.9
    jax.clear_caches()
