"""Mean surfaces as one vector: the basis, the guarantee, the design, shrinkage, hostile records."""

import dataclasses
import math
import random

import chex
import jax
import numpy as np
import pytest
from meshes import bowl, flat_disk, surface_mechanism
from meshes import surface_design as two_curves
from scipy import special, stats
from scipy.linalg import hadamard

from jaxgeodp.experiments.face_study import face_study, squared_error
from jaxgeodp.faces import shrinkage, surface_design
from jaxgeodp.meshes.laplacian import cotangent_laplacian
from jaxgeodp.privacy import entropy, grid
from jaxgeodp.privacy.auditing import audit
from jaxgeodp.surfaces import (
    Mesh,
    SurfaceBasis,
    SurfaceDesign,
    SurfaceMeanMechanism,
    SyntheticFaces,
    design_faces,
    design_surfaces,
    synthetic_reference,
)

GENERATOR = SyntheticFaces(rings=10)
N = 20


@pytest.fixture(scope="module")
def study():
    return face_study(40, 8, generator=GENERATOR, workers=1)


@pytest.fixture(scope="module")
def basis(study):
    return SurfaceBasis.of_curves(study.template.curves, 80)  # half as many as users have: designs are soon made


@pytest.fixture(scope="module")
def few_functions(study):
    return SurfaceBasis.of_curves(study.template.curves, 20)


@pytest.fixture(scope="module")
def design(study, basis):
    return design_surfaces(basis, study.reference.curves, len(study.private.curves), 1.0)


@pytest.fixture(scope="module")
def by_curves(study):
    return design_faces(study.template.curves, study.reference.curves, len(study.private.curves), 1.0, steps=40)


def neighbours(mechanism, n=N):
    """Data whose one record goes from one end of a direction to the other, far beyond the bound."""
    direction = np.zeros(mechanism.directions.shape[1])
    direction[[0, -1]] = 0.6, 0.8
    noise = 0.1 * mechanism.norm_bound * np.random.default_rng(0).normal(size=(n, len(direction)))
    plus, minus = (mechanism.surface(noise) for _ in range(2))
    plus[0], minus[0] = (mechanism.surface(factor * mechanism.norm_bound * direction) for factor in (5.0, -7.0))
    return plus, minus


def means(mechanism, data):
    """The coordinates around which releases are drawn: of draws, without noise."""
    return mechanism.coordinates(dataclasses.replace(mechanism, mu=1e6).simulate(jax.random.key(0), data, 1))[0]


# Functions on a surface ---------------------------------------------------------------------------------------


def test_functions_on_a_flat_disk_are_bessel_functions():
    """Free membranes: eigenvalues are squares of zeros of the derivatives of J_m, each twice for m > 0."""
    vertices, faces = flat_disk(30)
    mesh = Mesh(vertices, faces)
    basis = SurfaceBasis.of_mesh(mesh, 9)
    energies = np.sum(basis.functions * (cotangent_laplacian(mesh) @ basis.functions), axis=0) / np.pi
    roots = sorted([0.0, special.jnp_zeros(0, 1)[0], *(z for m in (1, 2, 3) for z in 2 * [special.jnp_zeros(m, 1)[0]])])
    roots = sorted([*roots, *2 * [special.jnp_zeros(4, 1)[0]]])[:9]
    chex.assert_trees_all_close(energies, np.square(roots), rtol=0.02, atol=1e-8)


def test_functions_are_orthonormal_and_few_triangles_give_the_same_as_many(study):
    """Dense for a small mesh, by Lanczos for a large one."""
    mesh = Mesh(GENERATOR.template, GENERATOR.triangles)
    some, more = SurfaceBasis.of_mesh(mesh, 12), SurfaceBasis.of_mesh(mesh, 10**6)
    assert more.functions.shape[1] == len(mesh.vertices) // 2
    for found in (some, more, SurfaceBasis.of_curves(study.template.curves, 40)):
        products = found.functions.T @ (found.weights[:, None] * found.functions)
        chex.assert_trees_all_close(products, np.eye(len(products)), atol=1e-9)
    large = SyntheticFaces(rings=16)
    mesh = Mesh(large.template, large.triangles)
    assert len(mesh.vertices) > 600
    few, all_of_them = SurfaceBasis.of_mesh(mesh, 20), SurfaceBasis.of_mesh(mesh, 300)
    spanned = all_of_them.functions[:, :20].T @ (few.weights[:, None] * few.functions)
    chex.assert_trees_all_close(np.linalg.norm(spanned, axis=0), np.ones(20), atol=1e-6)


# The guarantee ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.5, 3.0])
def test_the_worst_pair_of_laws_is_that_of_mu(mu):
    mechanism = surface_mechanism(0.3, mu)
    plus, minus = neighbours(mechanism)
    # Two Gaussians with one covariance are as hard to tell apart as N(0, 1) and N(distance, 1).
    distance = np.linalg.norm(means(mechanism, plus) - means(mechanism, minus)) / mechanism.scale(N)
    assert distance == pytest.approx(mu, rel=1e-6)


def test_the_worst_pair_of_a_design_is_that_of_mu(study, design):
    plus, minus = neighbours(design.mechanism, 40)
    distance = np.linalg.norm(means(design.mechanism, plus) - means(design.mechanism, minus))
    assert distance / design.mechanism.scale(40) == pytest.approx(1.0, rel=1e-6)


def test_no_neighbours_are_farther_than_the_sensitivity():
    mechanism, rng = surface_mechanism(0.3), np.random.default_rng(1)
    for trial in range(30):
        data = bowl() + rng.normal(size=(N, 2, 16, 3)) * 10.0 ** rng.uniform(-3, 3)
        other = data.copy()
        other[3] = (1e200, np.nan, np.inf, 1e300, -5.0)[trial % 5] * rng.normal(size=(2, 16, 3))
        distance = np.linalg.norm(means(mechanism, data) - means(mechanism, other))
        assert distance <= mechanism.sensitivity(N) * (1 + 1e-9)


def test_draws_have_the_stated_law_and_ten_per_cent_less_noise_is_caught():
    mechanism, draws = surface_mechanism(0.3, 1.0), 100_000
    plus, minus = neighbours(mechanism, 5)
    center = means(mechanism, plus)

    def noise(scale):
        values = mechanism.coordinates(mechanism.simulate(jax.random.key(1), plus, draws))
        return scale * (values - center) / mechanism.scale(5)

    found = noise(1.0)
    limit = stats.norm.isf(1e-6 / 64 / 2)
    assert np.abs(found.mean(axis=0)).max() * math.sqrt(draws) < limit
    deviation = (found.T @ found / draws - np.eye(8)) * math.sqrt(draws)
    assert np.abs(deviation / np.where(np.eye(8) > 0, math.sqrt(2), 1.0)).max() < limit
    for column in found.T:
        assert stats.kstest(column, "norm").pvalue > 1e-6 / 8
    assert stats.kstest(noise(0.9)[:, 0], "norm").pvalue < 1e-6
    # Neyman and Pearson's test between the neighbours: at mu, and beyond it when noise is 10 % too small.
    shift = (means(mechanism, minus) - center) / mechanism.scale(5)
    along = found @ (shift / np.linalg.norm(shift))
    for level in (0.02, 0.1, 0.3, 0.6):
        slack = 5.0 * math.sqrt(0.25 / draws) * 2
        allowed = stats.norm.cdf(stats.norm.ppf(1 - level) - 1.0)
        for scale, sound in ((1.0, True), (0.9, False)):
            missed = np.mean(scale * along + 1.0 <= np.quantile(scale * along, 1 - level))
            assert abs(missed - allowed) < slack if sound else missed < allowed - slack or level == 0.02


TINY = SurfaceMeanMechanism(bowl(), SurfaceBasis(np.ones((32, 1)), np.full(32, 1 / 32)), np.eye(3), 0.5, 1.0)


def released_noise(numerics, count):
    """Coordinates of releases with the system's entropy, in standard deviations of the noise that is promised."""
    data = np.stack([bowl()] * 4)
    values = [TINY.release(data, numerics=numerics).value for _ in range(count)]
    return TINY.coordinates(np.array(values)).reshape(-1) / TINY.scale(4)


@pytest.mark.parametrize("numerics", ["idealized", "grid"])
def test_releases_have_the_stated_noise_and_half_of_it_is_caught(numerics):
    """Releases and not simulations, which draw elsewhere."""
    noise = released_noise(numerics, 250)
    assert stats.kstest(noise, "norm").pvalue > 1e-7
    assert stats.kstest(0.5 * noise, "norm").pvalue < 1e-7, "planted"


@dataclasses.dataclass
class _Weaker:
    """A mechanism that promises what needs more noise than it has."""

    mechanism: SurfaceMeanMechanism
    factor: float

    def __post_init__(self):
        stronger = dataclasses.replace(self.mechanism, mu=self.mechanism.mu / self.factor)
        self.guarantee, self.simulate, self.log_density = (
            self.mechanism.guarantee,
            stronger.simulate,
            stronger.log_density,
        )


def test_the_audit_does_not_contradict_it_and_catches_less_noise():
    mechanism = surface_mechanism(0.3, 1.0)
    pair = neighbours(mechanism, 5)
    found = audit(mechanism, *pair, draws=40_000)
    assert not found.violated and found.lower_bound > 0.85
    assert audit(_Weaker(mechanism, 0.5), *pair, draws=40_000).violated


def test_density_and_draws_are_of_one_law():
    """The density at draws falls with their distance from the mean as that of a normal law does."""
    mechanism = surface_mechanism(0.3, 1.0)
    data, _ = neighbours(mechanism, 5)
    draws = mechanism.simulate(jax.random.key(2), data, 50)
    heights = np.array([mechanism.log_density(draw, data) for draw in draws])
    apart = np.sum((mechanism.coordinates(draws) - means(mechanism, data)) ** 2, axis=1) / mechanism.scale(5) ** 2
    chex.assert_trees_all_close(heights, -0.5 * apart, rtol=1e-3)


# On the grid --------------------------------------------------------------------------------------------------


def test_the_grid_promises_nearly_the_same_and_adds_the_same_noise():
    mechanism = surface_mechanism(0.3, 1.0)
    data, _ = neighbours(mechanism, 5)
    values = []
    for _ in range(60):
        release = mechanism.release(data, numerics="grid")
        values.append(mechanism.coordinates(release.value))
    assert 0.5 * (1 - 1e-5) < release.record["guarantee"]["rho"] <= 0.5 * (1 + 1e-9)
    noise = (np.array(values) - means(mechanism, data)) / mechanism.scale(5)
    assert stats.kstest(noise.reshape(-1), "norm").pvalue > 1e-6
    assert stats.kstest(0.5 * noise.reshape(-1), "norm").pvalue < 1e-6, "half the noise"


def test_states_are_the_same_for_any_blocks():
    mechanism = surface_mechanism(0.3, 1.0)
    data = bowl() + 0.2 * np.random.default_rng(3).normal(size=(23, 2, 16, 3))
    whole = mechanism.prepare(data)
    for cuts in ([1, 2, 20], [11], range(1, 23)):
        parts = [mechanism.prepare(part) for part in np.split(data, list(cuts))]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        np.testing.assert_array_equal(total.sums, whole.sums)


@pytest.mark.parametrize("numerics", ["idealized", "grid"])
def test_a_bad_record_counts_as_the_centre(numerics, monkeypatch):
    monkeypatch.setattr(entropy.os, "urandom", lambda count: bytes(range(count)))
    mechanism, found = surface_mechanism(0.3, 1.0), []
    for bad in (bowl(), np.full((2, 16, 3), np.nan), np.full((2, 16, 3), -np.inf), np.full((2, 16, 3), 1e300)):
        monkeypatch.setattr(grid.secrets, "randbelow", random.Random(0).randrange)
        data, _ = neighbours(mechanism, 6)
        data[2] = bad
        found.append(mechanism.release(data, numerics=numerics).value)
    for value in found[1:]:
        chex.assert_trees_all_equal(value, found[0])
    assert np.all(np.isfinite(found[0]))


def test_persons_with_several_surfaces_count_once():
    mechanism = surface_mechanism(0.3, 1e6)
    data = bowl() + 0.02 * np.random.default_rng(3).normal(size=(6, 2, 16, 3))
    persons = np.array([0, 0, 0, 1, 1, 2])
    value = mechanism.release(data, persons=persons).value
    means_of = np.stack([data[persons == person].mean(axis=0) for person in range(3)])
    chex.assert_trees_all_close(value, mechanism.surface(means(mechanism, means_of)), atol=1e-4)


# The design ---------------------------------------------------------------------------------------------------


def assert_better(study, design, by_curves):
    truth = study.private.curves.mean(axis=0)

    def error(design):
        draws = np.asarray(design.simulate(jax.random.key(0), study.private.curves, 10))
        return np.mean([squared_error(draw, truth) for draw in draws])

    surface, curves = error(design), error(by_curves)
    assert surface < 0.4 * curves, (surface, curves)
    assert surface < squared_error(study.reference.curves.mean(axis=0), truth)


def test_a_surface_is_better_than_curves_and_than_public_people(study, design, by_curves):
    assert_better(study, design, by_curves)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mu", [1.0, 3.0])
def test_a_surface_in_all_functions_is_better_than_curves_and_than_public_people(study, mu):
    n, reference = len(study.private.curves), study.reference.curves
    curves = design_faces(study.template.curves, reference, n, mu, steps=40)
    basis = SurfaceBasis.of_curves(study.template.curves)
    assert_better(study, design_surfaces(basis, reference, n, mu), curves)


def test_nothing_is_compiled_to_shrink_a_release(design, caplog):
    """It follows the charge, after which a program that cannot be compiled would lose the release."""
    with jax.log_compiles():
        design.shrunk(design.mechanism.center, 40)
        assert not caplog.records
        jax.jit(lambda x: x + 40.0)(design.mechanism.center)
        assert caplog.records, "planted"


def test_expected_error_is_that_of_people_like_the_public_ones(study, basis):
    """Private people whose mean is half a standard deviation off; noise alone, as nobody is clipped."""
    n, rng = 30, np.random.default_rng(4)
    design = design_surfaces(basis, study.reference.curves, n, 1.0)
    mechanism, errors = design.mechanism, []
    for _ in range(60):
        mean = rng.normal(size=len(design.variances)) * np.sqrt(
            (surface_design.EXPECTED_SHIFT + 1 / n) * design.variances
        )
        noisy = mechanism.surface(mean + mechanism.scale(n) * rng.normal(size=len(mean)))
        errors.append(np.sum((design.shrunk(noisy, n) - mechanism.surface(mean)) ** 2, axis=-1).reshape(-1))
    rest = (surface_design.EXPECTED_SHIFT + 1 / n) * design.left_out
    found = np.mean(errors, axis=0) + rest
    assert 0.85 < np.mean(found) / np.mean(design.expected_error(n) ** 2) < 1.15
    assert np.mean(design.error_without_data(n) ** 2) > 2.0 * np.mean(found)
    assert np.corrcoef(found, design.expected_error(n) ** 2)[0, 1] > 0.9


def coordinate_design(variances, noise, n, bound=10.0):
    """A design whose coordinates are single functions of one axis, and whose noise has this standard deviation."""
    basis = SurfaceBasis(hadamard(32)[:, :24].astype(float), np.full(32, 1 / 32))
    directions = np.eye(72)[:, : len(variances)]
    mechanism = SurfaceMeanMechanism(bowl(), basis, directions, bound, 2.0 * bound / (n * noise))
    return SurfaceDesign(mechanism, np.asarray(variances), np.zeros(32), np.ones(3))


def actual_error(design, n, shift, rng, draws, clipped_mean=lambda means: means):
    """Mean squared errors of the coordinates of shrunk releases, for means with shift times the variances."""
    mechanism = design.mechanism
    means = rng.normal(size=(draws, len(design.variances))) * np.sqrt(shift * design.variances)
    released = clipped_mean(means) + mechanism.scale(n) * rng.normal(size=means.shape)
    shrunk = mechanism.coordinates(design.shrunk(mechanism.surface(released), n))
    return np.mean(np.sum((shrunk - means) ** 2, axis=1))


@pytest.mark.parametrize("count", [1, 2, 3, 60])
@pytest.mark.parametrize("ratio", [0.1, 0.3, 3.0])
def test_the_expected_error_counts_that_the_shift_is_not_known(count, ratio):
    """Of few directions a release tells little of it: the likeliest shift erred by up to twice what was expected."""
    n, variances = 1000, np.full(count, 1.0 / count)
    shift = surface_design.EXPECTED_SHIFT + 1.0 / n
    design = coordinate_design(variances, math.sqrt(shift / count / ratio), n)
    actual = actual_error(design, n, shift, np.random.default_rng(8), 4_000)
    expected = np.mean(design.expected_error(n) ** 2)
    assert actual / expected == pytest.approx(1.0, abs=0.08)
    known = np.mean(design.error_without_data(n) ** 2)
    least = known / (1.0 + ratio)  # with a shift that is known
    assert least < expected < 1.2 * least
    # Of a mean that is farther away more is seen, too.
    found = actual_error(design, n, 4.0 * shift, np.random.default_rng(9), 4_000)
    assert found < 1.25 * 4.0 * known / (1.0 + 4.0 * ratio)


def test_without_a_prior_of_the_shift_few_directions_err_more_than_expected(monkeypatch):
    n, shift = 1000, surface_design.EXPECTED_SHIFT + 1e-3
    design = coordinate_design([1.0], math.sqrt(shift / 0.3), n)
    expected = np.mean(design.expected_error(n) ** 2)
    monkeypatch.setattr(shrinkage, "LOG_PRIOR", np.zeros_like(shrinkage.LOG_PRIOR))
    assert actual_error(design, n, shift, np.random.default_rng(8), 4_000) > 1.2 * expected


def test_the_expected_error_counts_clipping_and_few_directions_alike():
    """People around their mean, pulled to half of their length each, by a loop over means."""
    n, variances, rng = 500, np.geomspace(1.0, 0.01, 40) / np.geomspace(1.0, 0.01, 40).sum(), np.random.default_rng(3)
    design = coordinate_design(variances, 0.02, n, bound=0.5)
    people = rng.normal(size=(1_000, 40)) * np.sqrt(variances)
    people /= np.linalg.norm(people, axis=1, keepdims=True)

    def clipped_mean(means):
        found = []
        for mean in means:
            moved = np.concatenate([mean + people, mean - people])
            lengths = np.linalg.norm(moved, axis=1, keepdims=True)
            found.append(np.mean(moved * np.minimum(1.0, 0.5 / lengths), axis=0))
        return np.array(found)

    shift = surface_design.EXPECTED_SHIFT + 1.0 / n
    actual = actual_error(design, n, shift, rng, 300, clipped_mean)
    expected, known = (np.mean(errors(n) ** 2) for errors in (design.expected_error, design.error_without_data))
    assert actual / expected == pytest.approx(1.0, abs=0.1)
    assert (1.0 - design.kept) ** 2 * known < expected < 0.8 * known


def test_what_clipping_takes_away_is_expected(study, few_functions):
    """A small bound has little noise, and leaves little of a shift; of a large one nothing is missing."""
    reference, n, basis = study.reference.curves, 30, few_functions
    found = design_surfaces(basis, reference, n, 1.0)
    assert found.kept == 1.0 and len(found.lengths) == len(reference)
    for rho, most in ((1e-3, 0.2), (1e-6, 1e-3), (1e-300, 1e-12), (1e300, 1.0)):
        small = design_surfaces(basis, reference, n, 1.0, norm_bound=rho)
        assert small.kept == 1.0 if rho > 1 else small.kept < most
        known = np.mean(small.error_without_data(n) ** 2)
        assert (1 - most) ** 2 * known < np.mean(small.expected_error(n) ** 2) <= known * (1 + 1e-3)
    # Half of the bound that clips nobody: the mean of people whose coordinates have the lengths of the public ones.
    small = dataclasses.replace(found.mechanism, norm_bound=0.5 * np.median(found.lengths))
    small = found._replace(mechanism=small)
    rng, count = np.random.default_rng(6), 1_500  # a standard error of about a quarter of what is let through
    shift = 0.05 * np.sqrt(found.variances)
    ways = rng.normal(size=(count, len(shift))) * np.sqrt(found.variances)
    people = rng.choice(found.lengths, count)[:, None] * ways / np.linalg.norm(ways, axis=1, keepdims=True)
    both = small.mechanism.surface(np.concatenate([people + shift, people - shift]))
    clipped = means(small.mechanism, both[:count]) - means(small.mechanism, both[count:])
    kept = clipped @ shift / (2 * shift @ shift)
    assert kept == pytest.approx(small.kept, abs=0.05) and 0.3 < small.kept < 0.7


def test_what_has_no_coordinate_is_what_new_surfaces_have(study, basis):
    """Not that of the faces whose directions they are: three public faces have hardly any outside of their own."""
    people, few = study.private.curves, study.reference.curves[:3]
    design = design_surfaces(basis, few, 40, 100.0, spectrum_counts=0.0)
    deviations = people - design.mechanism.center
    seen = design.mechanism.surface(design.mechanism.coordinates(people)) - design.mechanism.center
    found = np.mean(np.sum((deviations - seen) ** 2, axis=-1))
    assert 0.4 < np.mean(design.left_out) / found < 2.5
    seen = design.mechanism.surface(design.mechanism.coordinates(few))
    assert np.mean(np.sum((few - seen) ** 2, axis=-1)) < 0.1 * found, "its own"


def test_many_public_surfaces_are_left_out_by_groups(study, few_functions):
    basis = few_functions
    people = np.concatenate([study.private.curves, study.reference.curves])
    assert len(people) > surface_design.MOST_DESIGNS
    grouped = design_surfaces(basis, people, 200, 1.0)
    alone = [
        design_surfaces(basis, np.roll(people, j, axis=0)[: surface_design.MOST_DESIGNS], 200, 1.0).lengths
        for j in (0, 8)
    ]
    assert len(grouped.lengths) == len(people)
    assert np.mean(grouped.lengths) == pytest.approx(np.mean(alone), rel=0.1)


def test_shrinkage_lies_between_the_centre_and_the_release_and_never_fails(design):
    mechanism, rng = design.mechanism, np.random.default_rng(5)
    center = np.zeros(len(design.variances))
    chex.assert_trees_all_close(design.shrunk(mechanism.surface(center), 40), mechanism.center, atol=1e-12)
    for size in (1e-9, 1.0, 1e3, 1e100, 1e160):
        coordinates = size * rng.normal(size=(3, len(center)))
        back = mechanism.coordinates(design.shrunk(mechanism.surface(coordinates), 40))
        assert np.all(np.isfinite(back))
        assert np.all(np.abs(back) <= np.abs(coordinates) * (1 + 1e-6) + 1e-9)
    far = mechanism.coordinates(design.shrunk(mechanism.surface(100.0 * np.sqrt(design.variances)), 40))
    assert np.all(far > 99.0 * np.sqrt(design.variances) * (design.variances > mechanism.scale(40) ** 2))


def test_no_ring_is_seen(study, design, by_curves):
    """Second differences from curve to curve of errors: curves have rings, surfaces none."""
    curves, truth = study.private.curves, study.private.curves.mean(axis=0)

    def roughness(design):
        draws = np.asarray(design.simulate(jax.random.key(0), curves, 10)) - truth
        return np.sqrt(np.mean(np.diff(draws, 2, axis=1) ** 2))

    assert roughness(design) < 0.5 * roughness(by_curves)


def test_stand_ins_tell_a_spectrum_only(study, basis):
    """No direction of theirs counts: directions are single functions of single coordinates."""
    people = synthetic_reference(study.template, count=5)
    chex.assert_trees_all_close(people.mean(axis=0), study.template.curves, atol=1e-12)
    design = design_surfaces(basis, people, 40, 1.0, spectrum_counts=math.inf)
    assert np.all(np.sum(design.mechanism.directions != 0.0, axis=0) == 1)


def test_a_bound_by_hand_is_a_distance(study, basis):
    by_hand = design_surfaces(basis, study.reference.curves, 40, 1.0, norm_bound=0.05)
    # A face that differs from the centre as public ones do, in their root mean square.
    people = np.random.default_rng(0).normal(size=(1000, len(by_hand.variances))) * np.sqrt(by_hand.variances)
    faces = by_hand.mechanism.surface(people) - by_hand.mechanism.center
    distance = np.sqrt(np.mean(np.sum(faces**2, axis=-1)) + np.mean(by_hand.left_out))
    length = np.sqrt(np.mean(np.sum(people**2, axis=-1)))
    assert by_hand.mechanism.norm_bound * distance / length == pytest.approx(0.05, rel=0.1)


def test_a_disk_that_is_no_face():
    """Leaves: functions on the mesh itself, and records as vertices (n, V, 3)."""
    vertices, faces = flat_disk(12)
    rng = np.random.default_rng(0)

    def leaves(count):
        x, y = vertices[:, 0], vertices[:, 1]
        bends = np.stack([x**2, x * y, y**2 - x, x**3])
        heights = np.einsum("nk,kv->nv", rng.normal(size=(count, 4)) * [0.2, 0.1, 0.1, 0.05], bends)
        return np.stack([np.tile(x, (count, 1)), np.tile(y, (count, 1)), heights], axis=-1)

    public, private = leaves(12), leaves(300)
    basis = SurfaceBasis.of_mesh(Mesh(vertices, faces), 60)
    release = design_surfaces(basis, public, 300, 1.0).release(private, numerics="grid")
    truth = private.mean(axis=0)
    assert release.value.shape == truth.shape
    assert squared_error(release.value, truth) < 0.3 * squared_error(public.mean(axis=0), truth)


# Calls --------------------------------------------------------------------------------------------------------


MECHANISM = surface_mechanism()


def changed(**changes):
    return lambda: dataclasses.replace(MECHANISM, **changes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (changed(center=np.zeros((2, 15, 3))), "must hold the 32 points"),
        (changed(center=np.full((2, 16, 3), np.nan)), "must be finite"),
        (changed(directions=np.eye(9)), r"must have shape \(12, r\)"),
        (changed(directions=np.ones((12, 2))), "orthogonal"),
        (changed(directions=np.zeros((12, 1))), "is zero"),
        (changed(norm_bound=0.0), "norm_bound must be"),
        (changed(mu=-1.0), "mu must be"),
        (changed(basis=SurfaceBasis(np.ones((31, 1)), np.full(31, 1 / 31))), "must hold the 31 points"),
        (lambda: MECHANISM.release(np.zeros((4, 2, 15, 3))), r"shape \(n, 2, 16, 3\)"),
        (lambda: MECHANISM.release(np.zeros((4, 2, 16, 3), complex)), "must be real"),
        (lambda: MECHANISM.release(np.zeros((1, 2, 16, 3))), "n >= 2"),
        (lambda: surface_mechanism(1e150).release(np.zeros((4, 2, 16, 3))), "beyond double precision"),
        (lambda: SurfaceBasis(np.ones((4, 2)), np.full(4, 0.25)), "not orthonormal"),
        (lambda: SurfaceBasis(np.ones((4, 1)), np.full(3, 1 / 3)), "a weight above 0"),
        (lambda: SurfaceBasis(np.ones(4), np.full(4, 0.25)), "2 dimensions"),
        (lambda: SurfaceBasis.of_curves(np.zeros((4, 3))), r"shape \(J, m, 3\)"),
        (lambda: SurfaceBasis.of_mesh(Mesh(*flat_disk(2)), 0), "count must be"),
        (lambda: design_surfaces(MECHANISM.basis, np.zeros((2, 32, 3)), 10, 1.0), "at least 3 public surfaces"),
        (lambda: design_surfaces(MECHANISM.basis, np.zeros((5, 31, 3)), 10, 1.0), "the 32 points"),
        (lambda: design_surfaces(MECHANISM.basis, np.full((5, 32, 3), np.inf), 10, 1.0), "finite"),
        (lambda: design_surfaces(MECHANISM.basis, np.zeros((5, 32, 3)), 10, 1.0), "all reference surfaces are equal"),
        (lambda: design_surfaces(MECHANISM.basis, np.full((5, 32, 3), 0.1), 10, 1.0), "surfaces are equal"),
        (
            lambda: design_surfaces(MECHANISM.basis, np.stack([np.zeros((32, 3))] * 2 + [np.ones((32, 3))]), 10, 1.0),
            "all reference surfaces but one are equal",
        ),
        (lambda: design_surfaces(MECHANISM.basis, np.zeros((5, 32, 3)), 10, 0.0), "mu must be"),
        (
            lambda: design_surfaces(MECHANISM.basis, np.zeros((5, 32, 3)), 10, 1.0, spectrum_counts=-1),
            "spectrum_counts",
        ),
        (
            lambda: design_surfaces(MECHANISM.basis, np.zeros((5, 32, 3)), 10, 1.0, spectrum_counts="x"),
            "spectrum_counts",
        ),
        (lambda: design_surfaces(MECHANISM.basis, np.ones((5, 32, 3), complex), 10, 1.0), "real numbers, got complex"),
        (lambda: design_surfaces(MECHANISM.basis, np.full((5, 32, 3), "a"), 10, 1.0), "real numbers, got text"),
        (lambda: design_surfaces(None, np.zeros((5, 32, 3)), 10, 1.0), "basis must be a SurfaceBasis"),
        (changed(basis=None), "basis must be a SurfaceBasis"),
        (changed(directions="x"), "directions must be finite real"),
        (changed(center=bowl().astype(complex)), "center must be finite real"),
        (lambda: SurfaceBasis.of_curves("a"), "curves must be real"),
        (lambda: SurfaceBasis.of_curves([[[0.0]], [[1.0], [2.0]]]), "nested lists"),
        (lambda: SurfaceBasis.of_mesh(np.zeros((5, 3))), "mesh must be a Mesh"),
        (lambda: SurfaceBasis([["a"]], [1.0]), "functions must be real"),
        (lambda: two_curves().release(5), "data must be surfaces"),
        (lambda: two_curves().release(None), "data must be surfaces"),
        (lambda: two_curves().release(row for row in bowl()), "data must be surfaces"),
        (lambda: two_curves().simulate(jax.random.key(0), 5, 2), "data must be surfaces"),
        (lambda: two_curves().expected_error(0), "n >= 2"),
        (lambda: two_curves().error_without_data(0), "n >= 2"),
        (lambda: two_curves().error_without_data("a"), "integer >= 2"),
        (lambda: synthetic_reference(None, count=1), "at least 2"),
    ],
)
def test_wrong_calls_are_told_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=message) as refusal:
        make()
    assert str(refusal.value).count("\n") == 0
