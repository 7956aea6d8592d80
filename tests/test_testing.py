"""A user's own manifold gets everything from `inner` and `exp`; the public laws reject wrong manifolds."""

import dataclasses
import math
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from strategies import exhaustive

from jaxgeodp import (
    SPD,
    Euclidean,
    GeodesicBall,
    Grassmann,
    Hyperbolic,
    KNGMechanism,
    LaplaceMechanism,
    Manifold,
    Product,
    Sphere,
    frechet_mean,
    riemannian_gradient,
)
from jaxgeodp.testing import LAWS, check_manifold


@dataclasses.dataclass(frozen=True)
class Paraboloid(Manifold):
    """The surface z = (x^2 + y^2)/2 in the coordinates (x, y): no symmetry that would make a default exact."""

    dim = 2
    shape = (2,)

    def inner(self, point, u, v):
        return jnp.sum(u * v) + jnp.sum(point * u) * jnp.sum(point * v)

    def exp(self, point, tangent):
        step = 1.0 / 64

        def rate(state):
            x, v = state
            return v, -x * jnp.sum(v**2) / (1.0 + jnp.sum(x**2))

        def moved(state, slope, size):
            return tuple(s + size * r for s, r in zip(state, slope, strict=True))

        def runge_kutta(state, _):
            one = rate(state)
            two = rate(moved(state, one, 0.5 * step))
            three = rate(moved(state, two, 0.5 * step))
            four = rate(moved(state, three, step))
            total = [(a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(one, two, three, four, strict=True)]
            return moved(state, total, step), None

        return jax.lax.scan(runge_kutta, (point, tangent), length=64)[0][0]


# Derivatives have a test of their own below. Transport by the ladder is right to 1e-6 only, which has one, too.
AGAIN = ("gradient_of_distance", "hessian_of_distance", "shapes_and_dtypes")


@pytest.mark.parametrize(
    "law",
    [*(law for law in LAWS if law not in ("parallel_transport", "geodesics", *AGAIN)), *exhaustive(*AGAIN)],
)
def test_defaults_obey_the_laws(law):
    LAWS[law](Paraboloid(), "float64")  # raises AssertionError where it is broken


def test_default_transport_solves_its_differential_equation():
    surface = Paraboloid()
    p, along, v = jnp.array([0.3, -0.2]), jnp.array([0.8, 0.5]), jnp.array([-0.4, 1.0])

    def rate(_, state):
        x, direction, vector = state.reshape(3, 2)
        # Christoffel symbols of a graph with Hessian I: x^k <u, v> / (1 + |x|^2).
        bend = x / (1.0 + x @ x)
        return np.concatenate([direction, -bend * (direction @ direction), -bend * (direction @ vector)])

    solution = solve_ivp(rate, (0.0, 1.0), np.concatenate([p, along, v]), rtol=1e-11, atol=1e-12).y[:, -1]
    q = surface.exp(p, along)
    np.testing.assert_allclose(q, solution[:2], atol=1e-7)
    carried = jax.jit(surface.transport)(p, q, v)
    np.testing.assert_allclose(carried, solution[4:], atol=2e-6)
    np.testing.assert_allclose(surface.inner(q, carried, carried), surface.inner(p, v, v), atol=5e-6)


def test_derivatives_of_the_default_logarithm_match_finite_differences():
    surface = Paraboloid()
    p, q, e = jnp.array([0.3, -0.2]), jnp.array([1.0, 0.4]), jnp.array([0.6, -0.8])

    def length(t):
        return surface.squared_dist(p + 0.5 * t * e, q + t * e)

    length, first, second = jax.jit(length), jax.jit(jax.grad(length)), jax.jit(jax.grad(jax.grad(length)))
    np.testing.assert_allclose(first(0.0), (length(1e-5) - length(-1e-5)) / 2e-5, rtol=1e-7)
    np.testing.assert_allclose(second(0.0), (first(1e-5) - first(-1e-5)) / 2e-5, rtol=1e-6)


class BareSphere(Manifold):
    """The unit sphere with as little as possible."""

    dim = 2
    shape = (3,)
    origin = (0.0, 0.0, 1.0)

    def inner(self, point, u, v):
        return jnp.sum(u * v)

    def exp(self, point, tangent):
        return Sphere(2).exp(point, tangent)

    def project(self, x):
        return x / jnp.linalg.norm(x)

    def to_tangent(self, point, v):
        return v - jnp.sum(point * v) * point

    def __hash__(self):
        return 1

    def __eq__(self, other):
        return isinstance(other, BareSphere)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_default_logarithm_is_right_or_nan_near_the_cut_locus(dtype):
    gaps = jnp.asarray(10.0 ** -np.arange(0.0, 17.0, 0.5), dtype)
    p = jnp.asarray([0.0, 0.0, 1.0], dtype)
    angles = math.pi - gaps
    ends = jnp.stack([jnp.sin(angles), jnp.zeros_like(gaps), jnp.cos(angles)], axis=1)
    logs = jax.jit(jax.vmap(lambda q: BareSphere().log(p, q)))(ends)
    lengths = np.linalg.norm(logs, axis=1)
    found = np.isfinite(lengths)
    assert np.all(found[np.asarray(gaps) > (1e-2 if dtype == "float32" else 1e-6)])
    assert not np.any(found[np.asarray(gaps) < (1e-5 if dtype == "float32" else 1e-10)])
    error = np.linalg.norm(jax.vmap(Sphere(2).exp)(jnp.broadcast_to(p, ends.shape), logs) - ends, axis=1)
    assert np.max(error[found]) < (1e-3 if dtype == "float32" else 1e-8)


def test_a_manifold_of_two_functions_has_means_and_gradients():
    surface = Paraboloid()
    points = jnp.asarray(np.random.default_rng(0).normal(size=(8, 2)) * 0.4)
    mean = frechet_mean(surface, points)
    gradient = jax.jit(
        riemannian_gradient(surface, lambda x: jnp.mean(jax.vmap(lambda y: surface.squared_dist(x, y))(points)))
    )
    assert surface.norm(mean, gradient(mean)) < 1e-8


def test_what_a_manifold_leaves_unknown_is_refused():
    ball = GeodesicBall(Paraboloid(), [0.0, 0.0], 0.1)
    assert not ball.satisfies_assumption
    with pytest.raises(ValueError, match="must define its curvature_bounds, injectivity_radius and log"):
        LaplaceMechanism(ball, 1.0)

    class KnownButSlow(Paraboloid):
        curvature_bounds = (0.0, 1.0)
        injectivity_radius = 1.0

    with pytest.raises(ValueError, match="the default logarithm may fail"):
        KNGMechanism(GeodesicBall(KnownButSlow(), [0.0, 0.0], 0.1), 1.0)
    with pytest.raises(ValueError, match="must define"):
        KNGMechanism(GeodesicBall(Product(Euclidean(1), KnownButSlow()), [0.0, 0.0, 0.0], 0.1), 1.0)

    class Embedded(Paraboloid):
        shape = (3,)

    with pytest.raises(ValueError, match="define to_tangent"):
        Embedded().to_tangent(jnp.zeros(3), jnp.zeros(3))
    with pytest.raises(ValueError, match="define project"):
        Embedded().project(jnp.zeros(3))


class WrongLog(Sphere):
    def log(self, p, q):
        return 1.01 * super().log(p, q)


class WrongDistance(Sphere):
    def squared_dist(self, p, q):
        return jnp.sum((p - q) ** 2)


class WrongTransport(SPD):
    def transport(self, p, q, tangent):
        return tangent


class WrongVolume(Sphere):
    def log_det_exp(self, point, tangent):
        return 0.9 * super().log_det_exp(point, tangent)


class WrongEnvelope(SPD):
    def volume_envelope(self, lower, upper):
        value, slope = super().volume_envelope(lower, upper)
        return 0.5 * value, 0.5 * slope


class WrongUpperCurvature(Sphere):
    curvature_bounds = (0.0, 0.8)


class WrongLowerCurvature(Hyperbolic):
    curvature_bounds = (-0.1, 0.0)


class WrongInjectivity(Sphere):
    injectivity_radius = 4.0


class WrongDiameter(Sphere):
    diameter = 2.5


class WrongDomain(Grassmann):
    def log_det_exp(self, point, tangent):
        return jnp.maximum(super().log_det_exp(point, tangent), -10.0)


class WrongSum(Sphere):
    def log_moments(self, base, points, weights):
        return self.to_tangent(base, weights @ points), super().log_moments(base, points, weights)[1]


class WrongPrecision(Euclidean):
    def exp(self, point, tangent):
        return point + tangent * np.ones(self.dim)


class WrongHome(Sphere):
    def to_home(self, center, point):
        return -super().to_home(center, point)


class NoIsometry(SPD):
    def to_home(self, center, point):
        return self.to_tangent(center, point - center) + jnp.asarray(self.origin, point.dtype)


class WrongWayBack(Hyperbolic):
    def from_home(self, center, point):
        return super().to_home(center, point)


class WrongFrame(Euclidean):
    def frame(self, point):
        return 2.0 * jnp.eye(self.dim, dtype=point.dtype)


class WrongRetraction(Sphere):
    def retract(self, p, v):
        return self.project(p + 0.9 * v)


class WrongGeodesic(Sphere):
    def geodesic(self, p, v, t):
        return self.exp(p, v)


class WrongGradient(SPD):
    def riemannian_from_ambient(self, p, g):
        return 0.5 * (g + g.T)


class WrongCurvatureTensor(Sphere):
    def curvature_tensor(self, p, u, v, w):
        return -super().curvature_tensor(p, u, v, w)


@pytest.mark.parametrize(
    ("manifold", "law"),
    [
        (WrongRetraction(2), "exp_at_zero"),
        (WrongGeodesic(2), "geodesics"),
        (WrongGradient(2), "gradient_of_distance"),
        (WrongCurvatureTensor(2), "curvature"),
        (WrongLog(2), "round_trips"),
        (WrongDistance(2), "round_trips"),
        (WrongTransport(2), "geodesics"),
        (WrongVolume(2), "volume"),
        (WrongEnvelope(2), "volume"),
        (WrongUpperCurvature(2), "hessian_of_distance"),
        (WrongInjectivity(2), "minimal_geodesics"),
        (WrongDiameter(2), "minimal_geodesics"),
        (WrongSum(2), "sums_of_logarithms"),
        (WrongPrecision(2), "shapes_and_dtypes"),
        (WrongFrame(2), "inner_product"),
        (WrongHome(2), "going_home"),
        (WrongWayBack(2), "going_home"),
        *exhaustive(
            (WrongLowerCurvature(2), "hessian_of_distance"),
            (WrongDomain(4, 2), "minimal_geodesics"),
            (NoIsometry(2), "going_home"),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_wrong_manifolds_are_caught(manifold, law):
    with pytest.raises(AssertionError):
        LAWS[law](manifold, "float32" if law == "shapes_and_dtypes" else "float64")


def test_the_broken_law_is_named():
    with pytest.raises(AssertionError, match=r"WrongFrame.*float32.*breaks the law 'inner_product': the frame"):
        check_manifold(WrongFrame(2))


@pytest.mark.exhaustive  # all laws, one by one, are in test_manifolds.py
def test_a_right_manifold_passes():
    check_manifold(Euclidean(2), dtypes=["float32"])


def test_the_domain_of_minimal_geodesics_is_respected():
    for manifold in (Sphere(2), Sphere(3, 4.0)):
        p = jnp.asarray(manifold.origin)
        v = jnp.zeros(manifold.dim + 1).at[0].set(1.0)
        assert manifold.log_det_exp(p, 1.001 * manifold.diameter * v) == -math.inf


def test_double_precision_is_checked_where_it_is_not_turned_on(monkeypatch):
    monkeypatch.setattr("jaxgeodp.testing.manifolds.LAWS", {"shapes_and_dtypes": LAWS["shapes_and_dtypes"]})
    with jax.enable_x64(False):
        check_manifold(Euclidean(1))
        assert not jax.config.jax_enable_x64


TESTING = sys.modules[check_manifold.__module__]


def test_a_long_check_says_once_what_it_does_on_the_error_stream(monkeypatch, capsys):
    monkeypatch.setattr(TESTING, "LAWS", {"one": lambda *_: None, "two": lambda *_: None})
    check_manifold(Sphere(2), ["float32"])
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(TESTING, "PATIENCE", -1.0)
    check_manifold(Sphere(2), ["float32"])
    line = "check_manifold: compiling and checking one (float32); this may take a minute\n"
    assert capsys.readouterr() == ("", line)


def test_a_check_shows_its_laws_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(TESTING, "LAWS", {"one": lambda *_: None})
    check_manifold(Sphere(2), ["float32"])
    said = capsys.readouterr()
    assert said.out == "" and "checking one (float32)" in said.err
