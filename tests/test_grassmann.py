"""Grassmann manifolds beyond the laws of every manifold (`test_manifolds`)."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import expm, subspace_angles
from strategies import DTYPES, a_point, a_tangent, cast, exhaustive, name

from jaxgeodp import Grassmann, Manifold, riemannian_gradient
from jaxgeodp.domains.geodesic_ball import assumption_limit

SEVERAL = pytest.mark.parametrize(
    "manifold", [Grassmann(3, 2), Grassmann(5, 2), *exhaustive(Grassmann(2, 1), Grassmann(7, 3))], ids=name
)


def orthogonal(size, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]


def with_angles(manifold, angles):
    """A pair of points with the given principal angles, in random representatives and position."""
    n, p = manifold.shape
    turn = orthogonal(n, 1)
    sines = np.zeros((n, p))
    sines[p : 2 * p] = np.diag(np.sin(angles))
    first = np.eye(n, p)
    second = np.vstack([np.diag(np.cos(angles)), np.zeros((n - p, p))]) + sines
    left, right = orthogonal(p, 2), orthogonal(p, 3)
    return jnp.asarray(turn @ first @ left), jnp.asarray(turn @ second @ right)


@SEVERAL
def test_distances_are_principal_angles_and_isometries_keep_them(manifold):
    x, y = a_point(manifold, 1), a_point(manifold, 2)
    turn = jnp.asarray(orthogonal(manifold.n, 0))
    left, right = (jnp.asarray(orthogonal(manifold.p, seed)) for seed in (1, 2))
    expected = np.linalg.norm(subspace_angles(np.asarray(x), np.asarray(y)))
    np.testing.assert_allclose(manifold.dist(x, y), expected, rtol=1e-12)
    np.testing.assert_allclose(manifold.dist(turn @ x @ left, turn @ y @ right), expected, rtol=1e-12)
    np.testing.assert_allclose(manifold.log(x, y @ right), manifold.log(x, y), atol=1e-13)
    np.testing.assert_allclose(manifold.log(turn @ x @ left, turn @ y), turn @ manifold.log(x, y) @ left, atol=1e-13)
    assert manifold.dist(x, x @ left) < 1e-14


def test_one_dimensional_subspaces_are_real_projective_space():
    manifold = Grassmann(6, 1)
    x, y = a_point(manifold, 1), a_point(manifold, 2)
    np.testing.assert_allclose(manifold.dist(x, y), math.acos(abs(float(x[:, 0] @ y[:, 0]))), rtol=1e-12)
    assert manifold.dist(x, -x) < 1e-15
    v = a_tangent(manifold, x, 1, 0.8)
    np.testing.assert_allclose(manifold.log_det_exp(x, v), 4 * math.log(math.sin(0.8) / 0.8), rtol=1e-12)
    np.testing.assert_allclose(
        manifold.volume_envelope(jnp.array([0.7]), jnp.array([0.9]))[1], 4 * (1 / math.tan(0.8) - 1 / 0.8)
    )


@SEVERAL
def test_transport_is_the_rotation_along_the_geodesic(manifold):
    """In R^n the geodesic is the one-parameter group of rotations expm(t (H X' - X H'))."""
    x, y = a_point(manifold, 3), a_point(manifold, 4)
    h, v = manifold.log(x, y), a_tangent(manifold, x, 5, 1.0)
    rotation = expm(np.asarray(h @ x.T - x @ h.T))
    moved = rotation @ np.asarray(x)
    np.testing.assert_allclose(manifold.exp(x, h), moved, atol=1e-12)
    change = moved.T @ np.asarray(y)  # from the representative on the horizontal geodesic to the given one
    np.testing.assert_allclose(change.T @ change, np.eye(manifold.p), atol=1e-12)
    np.testing.assert_allclose(manifold.transport(x, y, v), rotation @ np.asarray(v) @ change, atol=1e-12)


@pytest.mark.parametrize("manifold", [Grassmann(3, 2), Grassmann(7, 3), *exhaustive(Grassmann(5, 3))], ids=name)
def test_log_det_exp_is_the_jacobian_for_three_angles_and_more_than_half_the_space(manifold):
    x = a_point(manifold, 6)
    v = a_tangent(manifold, x, 7, 1.0)
    v = v / jnp.linalg.norm(v, 2)
    np.testing.assert_allclose(manifold.log_det_exp(x, 1.4 * v), Manifold.log_det_exp(manifold, x, 1.4 * v), atol=1e-11)
    assert np.isfinite(manifold.log_det_exp(x, 1.5707 * v))
    assert manifold.log_det_exp(x, 1.5709 * v) == -np.inf


EQUAL = [(0.0, 0.0), (0.4, 0.4), (0.4, 0.4 + 1e-7), (0.0, 0.9), (1.5, 1.5)]


@pytest.mark.parametrize("angles", EQUAL[:2], ids=str)
def test_derivatives_of_distances_at_equal_and_zero_angles_match_finite_differences(angles):
    assert_second_derivatives(Grassmann(4, 2), angles, *DISTANCES)


@pytest.mark.exhaustive
@pytest.mark.parametrize("angles", EQUAL, ids=str)
def test_derivatives_at_equal_and_zero_angles_match_finite_differences(angles):
    assert_second_derivatives(Grassmann(4, 2), angles, *PROGRAMS)


@pytest.mark.exhaustive
def test_derivatives_at_three_equal_angles_match_finite_differences():
    manifold = Grassmann(6, 3)
    assert_second_derivatives(manifold, (0.4, 0.4, 0.4), *_programs(_through_maps(manifold)))


def _through_maps(manifold):
    def through(z, x, y, frame, probe):
        """One number that depends on exp, log, transport, distance and volume."""
        tangent = manifold.combine(z, frame)
        end = manifold.exp(x, tangent)
        back = manifold.log(end, y)
        return (
            jnp.sum(probe * back)
            + jnp.sum(probe * manifold.transport(end, y, probe - end @ (end.T @ probe)))
            + manifold.squared_dist(end, y)
            + manifold.log_det_exp(x, manifold.log(x, y) + tangent)
        )

    return through


def _distance(z, x, y, frame, probe):
    return Grassmann(4, 2).squared_dist(Grassmann(4, 2).exp(x, Grassmann(4, 2).combine(z, frame)), y)


def _programs(through):
    return jax.jit(through), jax.jit(jax.grad(through)), jax.jit(jax.hessian(through))


PROGRAMS, DISTANCES = _programs(_through_maps(Grassmann(4, 2))), _programs(_distance)


def assert_second_derivatives(manifold, angles, value, gradient, hessian):
    x, y = with_angles(manifold, angles)
    arguments = (x, y, manifold.frame(x), jnp.asarray(np.random.default_rng(4).normal(size=manifold.shape)))
    origin = jnp.zeros(manifold.dim)
    slopes, bends = gradient(origin, *arguments), hessian(origin, *arguments)
    chex.assert_tree_all_finite((slopes, bends))
    step = 1e-5
    for i in range(manifold.dim):
        e = origin.at[i].set(step)
        np.testing.assert_allclose(
            slopes[i], (value(e, *arguments) - value(-e, *arguments)) / (2 * step), atol=2e-7, rtol=2e-7
        )
        column = (gradient(e, *arguments) - gradient(-e, *arguments)) / (2 * step)
        # The volume's second derivative is a quotient of rounded slopes at nearly equal angles.
        np.testing.assert_allclose(bends[i], column, atol=2e-5, rtol=2e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_angles_keep_their_digits_at_both_ends(dtype):
    """Small angles, and angles within 1e-5 of the cut locus, one of each at a time."""
    manifold = Grassmann(5, 2)
    epsilon = float(jnp.finfo(dtype).eps)
    for angles in ((1e-4, 0.0), (1e-6, 2e-6), (math.pi / 2 - 1e-5, 1e-3), (math.pi / 2 - 1e-5, math.pi / 2 - 3e-5)):
        x, y = (cast(manifold, z, dtype) for z in with_angles(manifold, angles))
        length = np.linalg.norm(angles)
        np.testing.assert_allclose(manifold.dist(x, y), length, atol=8 * epsilon)
        np.testing.assert_allclose(manifold.norm(x, manifold.log(x, y)), length, atol=8 * epsilon)


@pytest.mark.parametrize("manifold", [Grassmann(5, 2), *exhaustive(Grassmann(3, 1), Grassmann(6, 3))], ids=name)
def test_beyond_the_cut_locus_values_and_gradients_are_finite(manifold):
    jacobian = jax.jit(jax.jacrev(manifold.log))
    gradient = jax.jit(lambda x, y: riemannian_gradient(manifold, lambda z: manifold.dist(z, y))(x))
    for angles in (np.full(manifold.p, math.pi / 2), np.array([math.pi / 2, 0.3, 0.0])[: manifold.p]):
        x, y = with_angles(manifold, angles)
        np.testing.assert_allclose(manifold.dist(x, y), np.linalg.norm(angles), rtol=1e-12)
        assert manifold.dist(x, y) <= manifold.diameter + 1e-12
        v = a_tangent(manifold, x, 1, 1.0)
        chex.assert_tree_all_finite((manifold.log(x, y), manifold.transport(x, y, v)))
        chex.assert_tree_all_finite((jacobian(x, y), gradient(x, y)))


def test_long_tangents_wind_around():
    manifold = Grassmann(5, 2)
    x = a_point(manifold, 1)
    h = np.asarray(a_tangent(manifold, x, 2, 150.0))
    left, lengths, right = np.linalg.svd(h, full_matrices=False)
    expected = np.asarray(x) @ right.T * np.cos(lengths) @ right + left * np.sin(lengths) @ right
    np.testing.assert_allclose(manifold.exp(x, jnp.asarray(h)), expected, atol=1e-11)


def test_facts():
    assert [Grassmann(n, p).dim for n, p in ((4, 2), (5, 2), (3, 1))] == [4, 6, 2]
    assert Grassmann(2, 1).curvature_bounds == (0.0, 0.0)
    assert Grassmann(5, 4).curvature_bounds == (1.0, 1.0)
    assert Grassmann(4, 2).curvature_bounds == (0.0, 2.0)
    assert assumption_limit(Grassmann(4, 2)) == pytest.approx(math.pi / (4 * math.sqrt(2)))
    assert assumption_limit(Grassmann(4, 1)) == pytest.approx(math.pi / 4)
    assert Grassmann(7, 5).diameter == pytest.approx(math.pi / math.sqrt(2))


def test_sectional_curvature_attains_its_bounds():
    """From the spread of short geodesics: |d exp_v(w)|^2 = 1 - K t^2/3 + ..."""
    manifold = Grassmann(4, 2)
    x = jnp.asarray(manifold.origin)
    units = [jnp.zeros((4, 2)).at[2 + i, j].set(1.0) for i in range(2) for j in range(2)]
    r = math.sqrt(0.5)
    planes = {
        2.0: (r * (units[0] + units[3]), r * (units[1] - units[2])),
        0.0: (r * (units[0] + units[3]), r * (units[0] - units[3])),
        1.0: (units[0], units[1]),
    }
    for curvature, (u, v) in planes.items():
        t = 1e-2
        spread = jax.jvp(lambda h: manifold.exp(x, h), (t * u,), (v,))[1]
        end = manifold.exp(x, t * u)
        squared = jnp.sum(manifold.to_tangent(end, spread) ** 2)
        np.testing.assert_allclose(3 * (1 - squared) / t**2, curvature, atol=1e-3)


def test_records_and_parameters():
    manifold = Grassmann(4, 2)
    assert not manifold.admissible(jnp.ones((4, 2)))
    assert not manifold.admissible(jnp.zeros((4, 2)))
    basis = jnp.asarray(np.random.default_rng(0).normal(size=(4, 2)))
    point = manifold.project(basis * jnp.array([1e-200, 1e200]))
    np.testing.assert_allclose(point.T @ point, np.eye(2), atol=1e-14)
    np.testing.assert_allclose(subspace_angles(np.asarray(point), np.asarray(basis)), 0.0, atol=1e-7)
    np.testing.assert_allclose(manifold.project(point), point, atol=1e-15)
    for bad in ((1, 1), (3, 3), (3, 0), (3.5, 1)):
        with pytest.raises(ValueError, match=r"must be .*, got .*\.$"):
            Grassmann(*bad)


def test_random_points_are_uniform():
    manifold = Grassmann(4, 2)
    points = jax.vmap(manifold.random_point)(jax.random.split(jax.random.key(0), 4000))
    projectors = np.asarray(points @ points.swapaxes(1, 2))
    np.testing.assert_allclose(projectors.mean(0), 0.5 * np.eye(4), atol=6 * 0.35 / 4000**0.5)
