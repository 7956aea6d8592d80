"""The isometries that carry a public centre home, on all manifolds, and what guards a release there."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from strategies import exhaustive

from jaxgeodp import (
    SPD,
    Euclidean,
    EuclideanLaplace,
    GeodesicBall,
    Grassmann,
    Hyperbolic,
    KNGMechanism,
    LaplaceMechanism,
    PlanarShapes,
    Product,
    RiemannianGaussian,
    Rotations,
    Sphere,
    Statistic,
    TangentLaplace,
    WrappedLaplace,
)
from jaxgeodp.bounds.rounding import supposed_mean_error
from jaxgeodp.bounds.sensitivity import Sensitivity, mean_sensitivity
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.mechanisms.laplace import Distance
from jaxgeodp.mechanisms.tangent_vectors import MeanOfLogarithms
from jaxgeodp.surfaces import JointGaussian


def far(length):
    return np.array([math.cosh(length), 0.6 * math.sinh(length), -0.8 * math.sinh(length)])


CENTRES = [
    (Euclidean(3), [1e3, -2.0, 0.0]),
    (Sphere(2), [0.6, 0.0, -0.8]),
    (Sphere(2), [0.0, 0.0, -1.0]),
    (Hyperbolic(2), far(2.0)),
    (SPD(3), np.diag([1e3, 1.0, 1e-3])),
    (PlanarShapes(5), None),
    (Rotations(), np.diag([-1.0, -1.0, 1.0])),
    (Grassmann(4, 2), None),
    (Product(Sphere(2), SPD(2), Euclidean(1)), [0.0, 0.6, -0.8, 2.0, 0.5, 0.5, 1.0, -7.0]),
    *exhaustive(
        (Sphere(2, 4.0), [0.3, 0.4, 0.0]),
        (Hyperbolic(1, -0.25), [2.0 * math.cosh(1.0), 2.0 * math.sinh(1.0)]),
        (SPD(1), [[1e4]]),
        (SPD(2), [[2.0, 0.5], [0.5, 1.0]]),
        (PlanarShapes(3), None),
    ),
]


@pytest.mark.parametrize(("manifold", "center"), CENTRES, ids=str)
def test_home_is_reached_by_an_isometry_and_left_by_its_inverse(manifold, center):
    keys = jax.random.split(jax.random.key(1), 3)
    center = manifold.random_point(keys[0]) if center is None else jnp.asarray(center)
    origin = jnp.asarray(manifold.origin)

    def laws(center):
        p, q = (manifold.exp(center, 0.2 * manifold.random_tangent(key, center)) for key in keys[1:])
        there, other = manifold.to_home(center, p), manifold.to_home(center, q)
        return (
            manifold.dist(manifold.to_home(center, center), origin),
            manifold.dist(manifold.home(center), origin),
            manifold.dist(there, other) - manifold.dist(p, q),
            manifold.dist(manifold.from_home(center, there), p),
            manifold.dist(manifold.from_home(center, manifold.home(center)), center),
            jnp.max(jnp.abs(manifold.project(there) - there)),
        )

    size = float(jnp.linalg.norm(center.reshape(-1)))
    assert max(map(abs, map(float, jax.jit(laws)(center)))) < 1e-12 * (1.0 + size)


@pytest.mark.parametrize("length", [5.0, 9.0, 13.0, 15.0])
def test_far_points_keep_the_digits_that_they_have(length):
    """A plain boost loses exp(2 length) roundings."""
    plane, center = Hyperbolic(2), jnp.asarray(far(length))
    for near in (jnp.array([0.3, 0.4]), jnp.array([-0.9, 0.1])):
        point = plane.project(jnp.array([1.0, *near]))
        there = plane.to_home(center, plane.from_home(center, point))
        assert float(jnp.max(jnp.abs(there - point))) < 4.0 * 2.0**-52 * math.exp(length)


# Guards that no record of the library's own mechanisms reaches --------------------------------------------

CAP = GeodesicBall(Sphere(2), [0.6, 0.0, -0.8], 0.4)
DATA = np.tile(CAP.center, (4, 1))


def test_what_is_not_finite_comes_back_as_the_centre():
    for value in (math.nan, math.inf):
        np.testing.assert_array_equal(CAP.from_home(jnp.full(3, value)), CAP.center)


def test_a_location_that_is_not_finite_is_released_with_noise_around_the_centre(monkeypatch):
    monkeypatch.setattr(MeanOfLogarithms, "location", lambda self, ball, points, center: jnp.full(2, jnp.nan))
    jax.clear_caches()
    values = [TangentLaplace(CAP, 40.0).release(DATA).value for _ in range(3)]
    assert np.all(np.isfinite(values)) and not any(np.array_equal(value, CAP.center) for value in values)
    jax.clear_caches()


def test_an_envelope_is_centred_where_something_is(monkeypatch):
    mechanism = LaplaceMechanism(CAP, 1.0)
    monkeypatch.setattr(Distance, "center", lambda self, ball, points: jnp.full(3, jnp.nan))
    home, points, _ = mechanism.law(4).at_home(jnp.asarray(DATA))
    np.testing.assert_array_equal(home.center(points), [0.0, 0.0, 1.0])


class Nothing(Statistic):
    """A user's statistic that cannot say its loss."""

    def loss(self, manifold, x, datum):
        return jnp.sum(x) * jnp.nan

    def gradient_sensitivity(self, ball, n, support_radius, calibration):
        return Sensitivity(1.0 / n, "supposed")


def test_a_potential_that_is_not_finite_counts_nothing():
    mechanism = KNGMechanism(CAP, 1.0, Nothing(), support_radius=0.5)
    assert float(mechanism.log_density(jnp.asarray(CAP.center), DATA)) == 0.0


@pytest.mark.parametrize("build", [LaplaceMechanism, RiemannianGaussian, WrappedLaplace])
def test_two_errors_of_computed_means_are_in_every_sensitivity_that_needs_them(build):
    for ball in (GeodesicBall(Hyperbolic(2), far(2.0), 0.5), GeodesicBall(Euclidean(2), [1e6, 0.0], 1.0)):
        n = 10**6
        exact, error = mean_sensitivity(ball, n, "tight").value, supposed_mean_error(ball, n)
        found = build(ball, 1.0).sensitivity(n)
        assert found == pytest.approx(exact + 2.0 * error, rel=1e-12) and error > 1e-4 * exact


def test_curves_that_were_rebuilt_without_checks_are_refused():
    curves = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.05, 1.0, 1.0)
    with pytest.raises(ValueError, match="must be a finite number above 0"):
        jax.tree.map(lambda leaf: -leaf, curves).release(np.zeros((4, 2, 16)))


def test_ambient_means_far_from_the_origin_move_by_the_sensitivity():
    ball = GeodesicBall(Euclidean(1), [1e12], 1e-3)
    mechanism = EuclideanLaplace(ball, 1.0)
    others = np.full((19, 1), 1e12)
    locations = []
    for record in (1e12 + 1e-3, 1e12 - 1e-3):
        home, points, _ = mechanism.law(20).at_home(jnp.asarray(np.append(others, [[record]], axis=0)))
        locations.append(float(home.location(points, None)[0]))
    assert abs(locations[0] - locations[1]) <= mechanism.sensitivity(20)


def test_templates_are_added_after_the_noise():
    """At the template's size one unit of rounding is larger than the noise: values are still noisy."""
    points = JointGaussian(np.full((1, 3), 1e10), 1e-5, 1.0)
    values = points.simulate(jax.random.key(0), np.full((500, 1, 3), 1e10), 4)
    moved = points.simulate(jax.random.key(0), np.full((500, 1, 3), 1e10 + 1e-5), 4)
    np.testing.assert_array_equal(np.isfinite(values), True)
    assert float(np.max(np.abs(values - moved))) <= 2e-5


def test_a_small_matrix_that_is_not_symmetric_is_no_centre():
    with pytest.raises(ValueError, match="project it first"):
        GeodesicBall(SPD(2), [[1e-6, 5e-7], [-5e-7, 1e-6]], 1.0)
