"""Calculus on the polar grid, areas, rotation, and registration of known warps."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jaxgeodp.checks import InputError
from jaxgeodp.meshes import disk_flow, registration, square_root
from jaxgeodp.meshes.grid import polar_points

POINTS = polar_points(24, 80)
NODES = polar_points(16, 48)  # for registration, which evaluates them a thousand times


def plane(z):
    return np.stack([z.real, z.imag, 0.0 * z.real], axis=-1)


def hemisphere(z):
    return np.stack([2.0 * z.real, 2.0 * z.imag, 1.0 - np.abs(z) ** 2], axis=-1) / (1.0 + np.abs(z) ** 2)[..., None]


def hills(z):
    """A smooth surface without symmetry."""
    x, y = z.real, z.imag

    def bump(a, b, width):
        return np.exp(-((x - a) ** 2 + (y - b) ** 2) / width)

    height = 0.7 * bump(0.1, 0.0, 0.12) - 0.4 * bump(0.45, 0.35, 0.08) + 0.35 * bump(-0.4, 0.3, 0.06)
    height = height + 0.4 * bump(-0.1, -0.5, 0.1) + 0.3 * bump(0.5, -0.35, 0.08)
    return np.stack([x + 0.1 * x * y, 1.2 * y, height - 0.4 * (x**2 + y**2)], axis=-1)


def some_flow(scale, seed=3):
    return scale * np.asarray(jax.random.normal(jax.random.key(seed), (disk_flow.flow_size(),)))


def complex_images(coefficients, z=POINTS):
    moved, _ = disk_flow.flow(jnp.asarray(coefficients), jnp.stack([jnp.asarray(z.real), jnp.asarray(z.imag)], -1))
    return np.asarray(moved) @ np.array([1.0, 1j])


def norm2(field):
    return float(square_root.disk_integral(jnp.sum(field**2, axis=-1)))


# Calculus -----------------------------------------------------------------------------------------------------


def test_derivatives_through_the_centre():
    x, y = POINTS.real, POINTS.imag
    values = jnp.asarray(x**3 * y - 2.0 * x**2 + y)[..., None]
    r, t = np.abs(POINTS), np.angle(POINTS)
    dx, dy = 3.0 * x**2 * y - 4.0 * x, x**3 + 1.0
    along, around = dx * np.cos(t) + dy * np.sin(t), r * (dy * np.cos(t) - dx * np.sin(t))
    np.testing.assert_allclose(square_root.radial_derivative(values)[..., 0], along, atol=1e-10)
    np.testing.assert_allclose(square_root.angular_derivative(values)[..., 0], around, atol=1e-10)


def test_integrals():
    r = np.abs(POINTS)
    for power in (0, 2):
        total = float(square_root.disk_integral(jnp.asarray(r**power)))
        assert total == pytest.approx(2.0 * np.pi / (power + 2), rel=1e-12)
    assert float(square_root.disk_integral(jnp.asarray(POINTS.real**2))) == pytest.approx(np.pi / 4, rel=1e-12)
    for radii in (4, 8, 24, 48):
        assert square_root.disk_weights(radii, 80).min() > 0
    errors = [
        abs(np.sum(square_root.disk_weights(n, 8)[:, 0] * 8 * ((np.arange(n) + 0.5) / n) ** 6) - np.pi / 4)
        for n in (12, 24, 48)
    ]
    # Fourth order.
    assert errors[2] < errors[1] / 12.0 < errors[0] / 144.0


def test_areas_of_known_surfaces():
    assert float(square_root.area(plane(POINTS))) == pytest.approx(np.pi, rel=1e-12)
    assert float(square_root.area(3.0 * plane(POINTS))) == pytest.approx(9.0 * np.pi, rel=1e-12)
    errors = []
    for radii in (12, 24, 48):
        errors.append(abs(float(square_root.area(hemisphere(polar_points(radii, 80)))) - 2.0 * np.pi))
    assert errors[1] < 1e-3
    # Fourth order.
    assert errors[2] < errors[1] / 10.0 < errors[0] / 100.0
    # A cap of the unit sphere of half the height has half the area.
    cap = hemisphere(np.sqrt(1.0 / 3.0) * POINTS)
    assert float(square_root.area(cap)) == pytest.approx(np.pi, rel=1e-4)


def test_the_field_integrates_to_the_area_and_points_outwards():
    field = square_root.square_root_field(hills(POINTS))
    assert norm2(field) == pytest.approx(float(square_root.area(hills(POINTS))), rel=1e-12)
    outwards = square_root.normal_field(hemisphere(POINTS))
    unit = outwards / jnp.linalg.norm(outwards, axis=-1, keepdims=True)
    np.testing.assert_allclose(unit, hemisphere(POINTS), atol=5e-3)


def test_normalized_surfaces_have_area_one_and_centroid_zero():
    surface = square_root.normalize(5.0 * hills(POINTS) + np.array([3.0, -2.0, 7.0]))
    assert float(square_root.area(surface)) == pytest.approx(1.0, rel=1e-12)
    np.testing.assert_allclose(square_root.centroid(surface), 0.0, atol=1e-12)
    # By area: Archimedes' centroid of a half-sphere.
    np.testing.assert_allclose(square_root.centroid(hemisphere(POINTS)), [0.0, 0.0, 0.5], atol=5e-4)


def test_a_pinched_surface_has_finite_fields_and_derivatives():
    flat = jnp.zeros((8, 16, 3))
    assert np.all(np.asarray(square_root.square_root_field(flat)) == 0.0)
    slope = jax.jit(jax.grad(lambda x: jnp.sum(square_root.square_root_field(x) ** 2)))(flat)
    assert np.all(np.isfinite(slope))


# Rotation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_alignment_undoes_a_similarity(seed):
    template = square_root.normalize(hills(POINTS))
    turn = Rotation.random(random_state=seed).as_matrix()
    moved = 4.0 * np.asarray(template) @ turn.T + np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(square_root.align(moved, template), template, atol=1e-10)
    found = square_root.similarity(moved, template)
    np.testing.assert_allclose(found.rotation, turn.T, atol=1e-10)
    np.testing.assert_allclose(found(jnp.asarray(moved)), template, atol=1e-10)


def test_the_best_rotation_is_proper():
    field = square_root.square_root_field(hills(POINTS))
    mirrored = field * jnp.array([-1.0, 1.0, 1.0])
    rotation = square_root.best_rotation(mirrored, field)
    assert float(jnp.linalg.det(rotation)) == pytest.approx(1.0)
    # No other rotation is better.
    least = norm2(field - mirrored @ rotation.T)
    for seed in range(10):
        other = Rotation.random(random_state=seed).as_matrix()
        assert norm2(field - mirrored @ other.T) >= least
    nearby = Rotation.from_rotvec([0.02, -0.01, 0.01]).as_matrix()
    assert norm2(field - mirrored @ (nearby @ np.asarray(rotation)).T) > least


def test_functions_batch():
    surfaces = jnp.stack([jnp.asarray(hills(POINTS)), jnp.asarray(hemisphere(POINTS))])
    template = square_root.normalize(hills(POINTS))
    together = jax.jit(jax.vmap(square_root.align, (0, None)))(surfaces, template)
    np.testing.assert_allclose(together[1], square_root.align(surfaces[1], template), atol=1e-10)
    single = square_root.align(surfaces[0].astype(jnp.float32), template.astype(jnp.float32))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, together[0], atol=2e-5)


# Flows --------------------------------------------------------------------------------------------------------


def test_fields_are_orthonormal_vanish_at_the_centre_and_are_tangent_to_the_circle():
    basis, _ = disk_flow._polynomials()
    powers = np.arange(disk_flow._POWERS)

    def values(z):
        x, y = z.real[..., None] ** powers, z.imag[..., None] ** powers
        return np.einsum("kapq,...p,...q->ka...", basis, x, y)

    nodes, weights = np.polynomial.legendre.leggauss(20)
    radii, weights = (nodes + 1.0) / 2.0, weights / 2.0
    fine = values(radii[:, None] * np.exp(2j * np.pi * np.arange(40) / 40))
    gram = np.einsum("kart,lart,r->kl", fine, fine, weights * radii * 2.0 * np.pi / 40)
    np.testing.assert_allclose(gram, np.eye(len(basis)), atol=1e-8)
    assert np.all(values(np.zeros(1, complex)) == 0.0)
    circle = np.exp(2j * np.pi * np.arange(50) / 50)
    rim = values(circle)
    np.testing.assert_allclose(rim[:, 0] * circle.real + rim[:, 1] * circle.imag, 0.0, atol=1e-9)


def test_flows_keep_centre_and_circle_and_know_their_jacobian():
    coefficients = some_flow(0.02)
    inside = np.array([0.0, 0.3 + 0.2j, -0.5j, -0.6 + 0.1j])
    images = complex_images(coefficients, np.append(inside, np.exp(1j * np.arange(5.0))))
    assert images[0] == 0.0
    np.testing.assert_allclose(np.abs(images[4:]), 1.0, atol=1e-4)
    assert np.max(np.abs(images - np.append(inside, np.exp(1j * np.arange(5.0))))) > 0.03

    def move(point):
        return disk_flow.flow(jnp.asarray(coefficients), point)

    for z in inside:
        point = jnp.array([z.real, z.imag])
        determinant = float(jnp.linalg.det(jax.jacfwd(lambda p: move(p)[0])(point)))
        assert determinant > 0
        assert float(jnp.exp(move(point)[1])) == pytest.approx(determinant, rel=1e-3)
    # The flow backwards in time is the inverse.
    np.testing.assert_allclose(complex_images(-coefficients, images[:4]), inside, atol=1e-4)


def test_a_flow_of_a_rotation_field_is_the_rotation():
    basis, _ = disk_flow._polynomials()
    turning = np.zeros(basis.shape[1:])
    turning[0, 0, 1], turning[1, 1, 0] = -0.5, 0.5
    coefficients = np.linalg.lstsq(basis.reshape(len(basis), -1).T, turning.reshape(-1), rcond=None)[0]
    np.testing.assert_allclose(complex_images(coefficients), POINTS * np.exp(0.5j), atol=1e-6)


def test_cubic_interpolation():
    grid = jnp.asarray(hills(POINTS))
    np.testing.assert_allclose(registration.interpolate(grid, _pairs(POINTS)), grid, atol=1e-10)
    anywhere = 0.9 * POINTS * np.exp(0.03j) + 0.01
    np.testing.assert_allclose(registration.interpolate(grid, _pairs(anywhere)), hills(anywhere), atol=2e-3)
    at_centre = registration.interpolate(grid, jnp.zeros(2))
    np.testing.assert_allclose(at_centre, hills(np.zeros(1, complex))[0], atol=2e-3)
    np.testing.assert_allclose(
        registration.interpolate(grid, _pairs(np.exp(0.3j * np.arange(9)))),
        hills(np.exp(0.3j * np.arange(9))),
        atol=2e-3,
    )
    slope = jax.jacfwd(lambda p: registration.interpolate(grid, p))(jnp.array([0.31, -0.22]))
    step = 1e-5
    for axis, direction in enumerate((1.0, 1j)):
        z = np.array([0.31 - 0.22j])
        exact = (hills(z + step * direction) - hills(z - step * direction))[0] / (2 * step)
        np.testing.assert_allclose(slope[:, axis], exact, atol=0.05)
    assert np.all(np.isfinite(jax.jacrev(lambda p: registration.interpolate(grid, p))(jnp.zeros(2))))


def _pairs(z):
    return jnp.stack([jnp.asarray(z.real), jnp.asarray(z.imag)], axis=-1)


# Registration -------------------------------------------------------------------------------------------------


def test_the_action_on_fields_is_an_isometry_and_that_of_the_surface():
    coefficients = some_flow(0.01)
    fields = [square_root.square_root_field(surface(POINTS)) for surface in (hills, hemisphere)]
    warped = [registration.warp_field(field, coefficients) for field in fields]
    assert norm2(warped[0] - fields[0]) > 0.05
    assert norm2(warped[0]) == pytest.approx(norm2(fields[0]), rel=3e-3)
    assert norm2(warped[0] - warped[1]) == pytest.approx(norm2(fields[0] - fields[1]), rel=5e-3)
    # (q, g) is the field of f o g.
    moved = square_root.square_root_field(hills(complex_images(coefficients)))
    assert norm2(warped[0] - moved) < 5e-3 * norm2(warped[0] - fields[0])


@pytest.fixture(scope="module")
def register():
    """One program for all: its thousand evaluations take longer than to optimize them."""
    options = {"xla_backend_optimization_level": 1}
    optimized = jax.jit(registration._register, static_argnums=(3, 4), compiler_options=options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registration, "_register", optimized)
        yield registration.register


def seen_through(coefficients):
    """The hills, and the hills seen through a warp."""
    return (square_root.normalize(hills(z)) for z in (NODES, complex_images(coefficients, NODES)))


def test_registration_recovers_a_known_warp(register):
    """The hills seen through a known warp and turned, found again."""
    coefficients = some_flow(0.02)
    surface, through = seen_through(coefficients)
    grids = (surface @ Rotation.from_rotvec([0.2, -0.1, 0.3]).as_matrix().T)[None]
    found = register(grids, through, ridge=1e-3)
    assert found.energy_before[0] > 0.04
    assert found.energy[0] < 0.05 * found.energy_before[0]
    assert np.linalg.norm(found.coefficients[0] - coefficients) < 0.3 * np.linalg.norm(coefficients)
    assert np.all(np.asarray(found.smallest_jacobian) > 0)
    # The points of the two surfaces correspond.
    straight = np.asarray(grids[0]) @ np.asarray(found.rotations[0]).T
    again = np.asarray(registration.warp(grids[0], found.coefficients[0])) @ np.asarray(found.rotations[0]).T
    assert np.sum((again - through) ** 2) < 0.05 * np.sum((straight - through) ** 2)
    centre = registration.warp_points(found.coefficients[0], np.array([0.0, 1.0, 1j]))
    assert centre[0] == 0.0
    np.testing.assert_allclose(np.abs(centre[1:]), 1.0, atol=1e-3)


def test_steps_are_cut_until_the_energy_falls(register):
    """With a stiff ridge a step of a tenth raises the energy; a line search that stops there ends at the start."""
    surface, through = seen_through(some_flow(0.02))
    found = register(surface[None], through, ridge=100.0)
    assert found.energy[0] < found.energy_before[0] - 1e-5
    assert 0.0 < np.linalg.norm(found.coefficients[0]) < 0.1


def test_a_registered_surface_stays(register):
    _, through = seen_through(some_flow(0.02))
    found = register(through[None], through, ridge=1e-3)
    assert found.energy[0] < 1e-6
    assert np.linalg.norm(found.coefficients[0]) < 1e-3


def test_wrong_calls_are_refused():
    grid = jnp.asarray(hills(POINTS))
    with pytest.raises(InputError, match="shape"):
        registration.register(grid, grid)
    with pytest.raises(InputError, match="ridge"):
        registration.register(grid[None], grid, ridge=0.0)
    with pytest.raises(InputError, match="steps"):
        registration.register(grid[None], grid, steps=0)
    with pytest.raises(InputError, match="even"):
        square_root.area(jnp.zeros((8, 15, 3)))
