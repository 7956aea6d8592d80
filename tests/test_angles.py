"""Angles on circles and tori, beyond the laws of every manifold (`test_manifolds`)."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from strategies import exhaustive
from typer.testing import CliRunner

from jaxgeodp import (
    SPD,
    AdaptiveMechanism,
    Circle,
    Euclidean,
    GeodesicBall,
    GibbsMechanism,
    KNGMechanism,
    LaplaceMechanism,
    LocatedMechanism,
    MetricLaplace,
    Product,
    Release,
    RiemannianGaussian,
    Shape,
    Sphere,
    TangentGaussian,
    TangentLaplace,
    Torus,
    WrappedGaussian,
    WrappedLaplace,
    frechet_mean,
    frechet_median,
)
from jaxgeodp.checks import InputError
from jaxgeodp.cli.app import app
from jaxgeodp.domains import assumption_limit
from jaxgeodp.inference import (
    ConfidenceBall,
    Description,
    FrechetVariance,
    SpreadMechanism,
    confidence_ball,
    describe,
    synthesize,
    two_sample_test,
)
from jaxgeodp.io import read
from jaxgeodp.manifolds import UnrolledTorus
from jaxgeodp.samplers import ManifoldLaplace
from jaxgeodp.testing import LAWS, check_mechanism


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


SHORT = ("points_belong", "round_trips", "minimal_geodesics", "parallel_transport", "volume", "going_home")


@pytest.mark.parametrize("law", SHORT)
def test_law(law):
    LAWS[law](Torus(2), "float64")
    LAWS[law](UnrolledTorus(2), "float64")


# Geometry -----------------------------------------------------------------------------------------------


def test_a_circle_is_that_of_unit_vectors():
    random = np.random.default_rng(0)
    p, q = random.uniform(-20.0, 20.0, (2, 50, 1))
    vectors = [np.concatenate([np.cos(x), np.sin(x)], axis=1) for x in (p, q)]
    expected = jax.vmap(Sphere(1).dist)(*map(jnp.asarray, vectors))
    np.testing.assert_allclose(jax.vmap(Circle().dist)(jnp.asarray(p), jnp.asarray(q)), expected, atol=1e-12)


def test_means_in_arcs_below_half_a_circle_are_those_of_unwrapped_angles():
    """Theorem T: the only global minimum, wherever the arc lies; compared with a grid."""
    random, grid = np.random.default_rng(0), np.linspace(-math.pi, math.pi, 20_001)
    for _ in range(50):
        middle, half = random.uniform(-math.pi, math.pi), random.uniform(0.1, 0.499 * math.pi)
        offsets = half * random.choice([-1.0, 1.0, 0.2], random.integers(2, 9)) * random.uniform(0.9, 1.0)
        angles = middle + offsets + 2.0 * math.pi * random.integers(-2, 3, len(offsets))
        mean = np.asarray(frechet_mean(Circle(), angles[:, None]))
        expected = middle + offsets.mean()
        assert abs(math.remainder(mean[0] - expected, 2.0 * math.pi)) < 1e-12
        turned = np.remainder(angles[:, None] - grid + math.pi, 2.0 * math.pi) - math.pi
        least = grid[np.argmin(np.sum(turned**2, axis=0))]
        assert abs(math.remainder(least - expected, 2.0 * math.pi)) < 1e-3


def test_a_torus_is_a_vector_space_near_a_point():
    random, center = np.random.default_rng(0), np.array([3.0, -3.1, 0.4])
    offsets = random.uniform(-0.4, 0.4, (30, 3))
    points = center + offsets
    for statistic in (frechet_mean, frechet_median):
        own = np.asarray(statistic(Torus(3), points))
        flat = center + np.asarray(statistic(Euclidean(3), offsets))
        np.testing.assert_allclose(np.remainder(own - flat + math.pi, 2.0 * math.pi), math.pi, atol=1e-7)


def test_a_list_of_angles_is_points_of_a_circle():
    angles = np.radians([350.0, 10.0, 20.0])
    assert np.degrees(frechet_mean(Circle(), angles)) == pytest.approx(20.0 / 3.0)


# Mechanisms ---------------------------------------------------------------------------------------------


def test_laplace_draws_have_the_law_of_the_whole_circle():
    mechanism = LaplaceMechanism(GeodesicBall(Circle(), [3.0], 1.0), 0.06)
    scale = mechanism.scale(40)
    draws = np.asarray(mechanism.simulate(jax.random.key(0), np.full((40, 1), 3.0), 20_000))[:, 0]
    arcs = np.abs(np.remainder(draws - 3.0 + math.pi, 2.0 * math.pi) - math.pi)

    def distribution(scale):
        return lambda t: -np.expm1(-np.asarray(t) / scale) / -math.expm1(-math.pi / scale)

    assert scale == pytest.approx(2.0 * 1.0 / (40 * 0.06), rel=1e-6)
    assert stats.kstest(arcs, distribution(scale)).pvalue > 1e-6
    assert stats.kstest(arcs, distribution(0.8 * scale)).pvalue < 1e-9
    assert stats.kstest(arcs, lambda t: -np.expm1(-np.asarray(t) / scale)).pvalue < 1e-9  # of the line


@pytest.mark.parametrize(
    "make",
    [
        lambda: LaplaceMechanism(GeodesicBall(Torus(2), [3.0, -3.0], 0.6), 1.0),
        *exhaustive(
            lambda: KNGMechanism(GeodesicBall(Torus(2), [3.0, -3.0], 0.6), 1.0),
            lambda: KNGMechanism(GeodesicBall(Circle(), [3.0], 1.2), 1.0),
            lambda: WrappedLaplace(GeodesicBall(Torus(2), [3.0, -3.0], 1.5), 1.0),
            lambda: GibbsMechanism(GeodesicBall(Torus(2), [3.0, -3.0], 0.6), 1.0),
            lambda: RiemannianGaussian(GeodesicBall(Circle(), [3.0], 0.6), 1.0),
            lambda: TangentGaussian(GeodesicBall(Torus(3), [3.0, -3.0, 0.0], 1.5), 1.0),
        ),
    ],
)
def test_mechanisms_keep_their_promises(make):
    check_mechanism(make())


def test_noise_on_a_torus_is_that_of_the_plane():
    ball, flat = GeodesicBall(Torus(2), [3.0, -3.0], 1.0), GeodesicBall(Euclidean(2), [3.0, -3.0], 1.0)
    for make in (LaplaceMechanism, WrappedLaplace, TangentGaussian):
        np.testing.assert_allclose(make(ball, 1.0).scale(50), make(flat, 1.0).scale(50), rtol=1e-12)


def test_arcs_of_half_a_circle_and_a_normal_law_on_small_balls_of_tori_are_refused():
    with pytest.raises(InputError, match=r"1\.57"):
        LaplaceMechanism(GeodesicBall(Circle(), [0.0], 1.6), 1.0)
    with pytest.raises(InputError, match="RiemannianGaussian"):
        RiemannianGaussian(GeodesicBall(Torus(2), [0.0, 0.0], 0.5), 1.0).law(100)


def test_a_center_is_found_without_a_ball_and_one_record_is_perturbed():
    records = np.array([3.0, -2.0]) + np.random.default_rng(0).uniform(-0.2, 0.2, (3000, 2))
    values = np.asarray(LocatedMechanism(Torus(2), epsilon=4.0).simulate(jax.random.key(0), records, 2))
    assert np.all(np.asarray(jax.vmap(lambda x: Torus(2).dist(x, jnp.array([3.0, -2.0])))(values)) < 0.2)
    assert MetricLaplace(Torus(2), 4.0).simulate(jax.random.key(0), records[:1], 3).shape == (3, 2)


def test_the_density_of_laplace_noise_says_where_its_integral_is_not_known():
    grid = jnp.linspace(-math.pi, math.pi, 4001)[:-1, None]
    law = ManifoldLaplace(Circle(), jnp.array([3.0]), 0.7)
    assert law.normalized and float(jnp.mean(jnp.exp(law.log_prob(grid)))) * 2.0 * math.pi == pytest.approx(
        1.0, abs=1e-3
    )
    assert not ManifoldLaplace(Torus(2), jnp.zeros(2), 0.7).normalized


def test_a_draw_that_might_never_be_found_is_refused_before():
    ball = GeodesicBall(Torus(30), np.zeros(30), 1.5)
    with pytest.raises(InputError, match="might never accept a draw of 30 angles"):
        LaplaceMechanism(ball, 0.1).law(10)
    assert LaplaceMechanism(ball, 1.0).law(300).scale < 0.1


def test_balls_have_centers_less_whole_turns_and_refuse_those_of_too_many():
    for center in (350.0, [350.0], [[350.0]][0]):
        assert abs(GeodesicBall(Circle(), center, 0.5).center[0]) <= math.pi
    with pytest.raises(InputError, match="center is not a point"):
        GeodesicBall(Circle(), [1e300], 0.5)
    region = ConfidenceBall(Torus(2), np.array([3.1, -3.1]), 0.2, 0.95, "mean")
    assert region.contains([3.1, 2.0 * math.pi - 3.1]) and not region.contains([0.0, 0.0])


# Many angles --------------------------------------------------------------------------------------------


def _arcs(angles):
    return np.remainder(angles + math.pi, 2.0 * math.pi) - math.pi


def test_means_of_records_in_a_cube_are_those_of_unrolled_angles():
    """Theorem T for any radius: of every angle the only global minimum, compared with a grid."""
    random, grid = np.random.default_rng(0), np.linspace(-math.pi, math.pi, 2001)
    for _ in range(200):
        dim = int(random.integers(2, 6))
        center = random.uniform(-math.pi, math.pi, dim)
        offsets = random.choice([-1.0, 1.0, 0.3], (random.integers(2, 9), dim)) * random.uniform(1.4, 1.57, dim)
        ball = GeodesicBall(Torus(dim), center, 1.6 * math.sqrt(dim))
        kept = np.asarray(ball.clip(center + offsets + 2.0 * math.pi * random.integers(-3, 4, offsets.shape)))
        np.testing.assert_allclose(kept, center + offsets, atol=1e-8)
        mean = np.asarray(frechet_mean(ball.manifold, kept))
        np.testing.assert_allclose(_arcs(mean - center), offsets.mean(axis=0), atol=1e-8)
        sums = np.sum(_arcs((center + offsets)[:, :, None] - grid) ** 2, axis=0)
        assert np.max(np.abs(_arcs(grid[np.argmin(sums, axis=1)] - mean))) < 4e-3


def test_a_record_in_a_wide_ball_is_a_quarter_turn_from_the_center_at_most_in_every_angle():
    center = np.array([3.0, -3.0, 0.0, 1.0])
    ball = GeodesicBall(Torus(4), center, 2.5)
    assert ball.manifold == UnrolledTorus(4) and ball.satisfies_assumption
    offsets = np.array([[2.0, 0.1, -3.1, 0.0], [1.5, 1.5, -1.5, 1.5], [0.1, 0.0, 0.2, -0.1]])
    kept = np.asarray(ball.clip(center + offsets)) - center
    np.testing.assert_allclose(kept[0], [math.pi / 2, 0.1, -math.pi / 2, 0.0], atol=1e-8)
    np.testing.assert_allclose(kept[1], offsets[1] * 2.5 / np.linalg.norm(offsets[1]), atol=1e-7)
    np.testing.assert_allclose(kept[2], offsets[2], atol=1e-12)
    assert GeodesicBall(ball.manifold, center, 1.0).manifold == Torus(4)
    assert assumption_limit(Torus(4), center) == assumption_limit(Product(Torus(4), SPD(2)), np.zeros(8)) == math.inf


WIDE = (LaplaceMechanism, TangentGaussian, WrappedLaplace, KNGMechanism, GibbsMechanism, RiemannianGaussian)


@pytest.mark.parametrize("make", WIDE)
def test_noise_in_a_wide_ball_of_a_torus_is_that_of_a_vector_space(make):
    random, center = np.random.default_rng(0), np.full(40, 3.0)
    ball, flat = GeodesicBall(Torus(40), center, 3.0), GeodesicBall(Euclidean(40), center, 3.0)
    records = center + random.uniform(-0.7, 0.7, (200, 40))
    turned = records - 2.0 * math.pi * (records > math.pi)
    own, plain = (make(each, 1.0) for each in (ball, flat))
    np.testing.assert_allclose(own.scale(200), plain.scale(200), rtol=1e-12)
    drawn, expected = (
        np.asarray(law.simulate(jax.random.key(0), data, 2)) for law, data in ((own, turned), (plain, records))
    )
    np.testing.assert_allclose(_arcs(drawn - expected), 0.0, atol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda ball: TangentGaussian(ball, 1.0),
        *exhaustive(lambda ball: KNGMechanism(ball, 1.0), lambda ball: LaplaceMechanism(ball, 1.0)),
    ],
)
def test_mechanisms_in_wide_balls_keep_their_promises(make):
    check_mechanism(make(GeodesicBall(Torus(3), [3.0, -3.0, 0.0], 2.2)))


def test_a_ball_is_found_for_many_angles(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random, run = np.random.default_rng(0), CliRunner().invoke
    middle = random.uniform(-180.0, 180.0, 30)
    for name, count in (("public.csv", 200), ("private.csv", 400)):
        np.savetxt(name, middle + random.normal(0.0, 25.0, (count, 30)), delimiter=",", fmt="%.2f")
    options = ["--manifold", "torus", "--as", "degrees"]
    said = run(app, ["ball", "public.csv", *options, "--n", "400", "--mu", "1", "--out", "ball.json"])
    assert said.exit_code == 0, said.output
    said = run(app, ["release", "private.csv", *options, "--ball", "ball.json", "--mu", "1", "--out", "mean.json"])
    assert said.exit_code == 0, said.output
    release = Release.load("mean.json")
    assert release.record["manifold"] == {"name": "Torus", "dim": 30}
    assert release.record["ball"]["radius"] > math.pi / 2
    error = _arcs(release.as_array() - np.radians(middle))
    assert np.linalg.norm(error) < 0.4
    said = run(app, ["check", "private.csv", *options, "--ball", "ball.json", "--out", "report.txt"])
    assert "records have angles over a quarter turn from the centre's" in said.output + open("report.txt").read()


# Where the centre lies, in whole turns, decides about nothing ----------------------------------------------


@pytest.fixture(scope="module")
def two_descriptions():
    """Of two samples of one law, about the same centre in two forms; on the torus they are .12 apart."""
    with jax.enable_x64(True):
        random, middle = np.random.default_rng(3), np.array([3.1, -3.1, 0.0])
        samples = random.normal(middle, 0.3, (2, 1500, 3))
        balls = [GeodesicBall(Torus(3), sign * middle, 2.0) for sign in (1.0, -1.0)]
        return middle, [describe(x, Torus(3), ball=b, epsilon=8.0) for x, b in zip(samples, balls, strict=True)]


def test_means_in_wide_balls_on_both_sides_of_half_a_turn_are_compared_as_they_are(two_descriptions):
    middle, (first, second) = two_descriptions
    for found in (first, second):
        assert found.manifold == Torus(3) and np.all(np.abs(found.mean.as_array()) <= math.pi)
        assert np.linalg.norm(_arcs(found.mean.as_array() - middle)) < 0.1
        region = confidence_ball(found)
        assert region.radius < 0.1 and region.contains(found.mean.as_array() + np.array([2.0 * math.pi, 0.0, 0.0]))
        np.testing.assert_allclose(found.population.covariance, 0.09 * np.eye(3), atol=0.03)
        drawn = np.asarray(synthesize(found, 50, jax.random.key(0)))
        assert np.all(np.linalg.norm(_arcs(drawn - middle), axis=1) < 2.0)
    test = two_sample_test(first, second, draws=200)
    assert test.distance < 0.1 and test.p_value > 0.01


def test_a_description_of_a_wide_ball_is_the_same_when_it_is_loaded(two_descriptions, tmp_path):
    _, (_, second) = two_descriptions
    second.save(tmp_path / "out")
    loaded = Description.load(tmp_path / "out")
    assert loaded.manifold == Torus(3)
    assert confidence_ball(loaded).radius == pytest.approx(confidence_ball(second).radius, rel=1e-6)


@pytest.mark.parametrize(
    "make", [LaplaceMechanism, TangentLaplace, KNGMechanism, WrappedLaplace], ids=lambda own: own.__name__
)
def test_released_values_are_angles_below_half_a_turn_and_are_drawn_the_short_way(make):
    middle = np.array([3.1, -3.1, 0.0])
    records = np.random.default_rng(1).normal(middle, 0.2, (400, 3))
    release = make(GeodesicBall(Torus(3), -middle, 2.0), 20.0).release(records)
    value = release.as_array()
    assert release.record["manifold"] == {"name": "Torus", "dim": 3}
    assert np.all(np.abs(value) <= math.pi) and np.linalg.norm(_arcs(value - middle)) < 0.3
    drawn = release.shrunk(middle, 0.01).as_array()
    assert np.linalg.norm(_arcs(drawn - middle)) < np.linalg.norm(_arcs(value - middle))


def test_products_with_many_angles_release_points_of_the_product():
    space, random = Product(Torus(3), Euclidean(2)), np.random.default_rng(2)
    middle = np.array([3.1, -3.1, 0.0, 5.0, -4.0])
    records = random.normal(middle, 0.2, (400, 5))
    center = [-3.1, 3.1, 0.0, 5.0, -4.0]
    release = TangentGaussian(GeodesicBall(space, center, 2.5), 5.0).release(records, numerics="grid")
    value = release.as_array()
    assert release.record["manifold"]["manifolds"][0] == {"name": "Torus", "dim": 3}
    assert np.all(np.abs(value[:3]) <= math.pi) and np.linalg.norm(_arcs(value[:3] - middle[:3])) < 0.2
    np.testing.assert_allclose(value[3:], middle[3:], atol=0.2)


def test_steps_and_integers_in_wide_balls_find_the_mean():
    middle = np.array([3.1, -3.1, 0.0, 1.0])
    records = np.random.default_rng(1).normal(middle, 0.2, (1000, 4))
    ball = GeodesicBall(Torus(4), [-3.1, 3.1, 0.5, 1.0], 2.5)
    for release in (
        AdaptiveMechanism(ball, mu=4.0).release(records),
        AdaptiveMechanism(ball, mu=4.0).release(records, numerics="grid"),
        WrappedGaussian(ball, 4.0).release(records, numerics="grid"),
    ):
        value = release.as_array()
        assert np.linalg.norm(_arcs(value - middle)) < 0.1 and np.all(np.abs(value) <= math.pi)


def test_metric_privacy_holds_across_half_a_turn():
    """Two records nearly one point, on both sides of the cut: densities differ by as little as they are apart."""
    mechanism, apart = MetricLaplace(Torus(2), 4.0), 0.02
    one, other = np.array([[math.pi - apart / 2.0, -2.0]]), np.array([[-math.pi + apart / 2.0, -2.0]])
    x = jnp.asarray(np.random.default_rng(0).uniform(-math.pi, math.pi, (2000, 2)))
    logs = [np.asarray(jax.vmap(lambda y, own=own: mechanism.log_density(y, own))(x)) for own in (one, other)]
    assert np.max(np.abs(logs[0] - logs[1])) <= 4.0 * apart * (1.0 + 1e-9)
    for record in (one, other, np.array([[3.0, -2.0]])):
        drawn = np.asarray(MetricLaplace(Torus(2), 200.0).simulate(jax.random.key(0), record, 200))
        assert np.max(np.abs(_arcs(drawn - record))) < 0.2


def test_moments_about_a_point_on_the_other_side_of_half_a_turn_are_those_of_the_arcs():
    random = np.random.default_rng(0)
    records = random.normal([3.0, 0.0, 0.0], 0.2, (4000, 3))
    ball = GeodesicBall(Torus(3), [3.0, 0.0, 0.0], 2.0)
    about = np.array([-3.1, 0.0, 0.0])
    release = SpreadMechanism(ball, about, FrechetVariance(), epsilon=50.0).release(records, numerics="grid")
    expected = np.mean(np.sum(_arcs(records - about) ** 2, axis=1))
    assert float(release.value) == pytest.approx(expected, rel=0.1)


def test_a_shape_on_a_small_ball_of_a_torus_has_no_other_limit_of_angles():
    ball, shape = GeodesicBall(Torus(2), [0.0, 0.0], 0.3), Shape(np.zeros(2), np.eye(2), 2.5)
    values = np.asarray(
        TangentGaussian(ball, 1e6, shape=shape).simulate(jax.random.key(0), np.full((50, 2), [2.0, 0.0]), 2)
    )
    np.testing.assert_allclose(values, [[2.0, 0.0]] * 2, atol=1e-3)


# Files and pictures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "turn"), [("degrees", 360.0), ("radians", 2.0 * math.pi), ("hours", 24.0), ("turns", 1.0)]
)
def test_angles_are_read_in_the_unit_that_is_said(tmp_path, unit, turn):
    shares = np.array([0.1, 0.25, 1.9, -3.2])
    np.savetxt(tmp_path / "angles.csv", shares * turn)
    records = read(tmp_path / "angles.csv", "circle", chart=unit)
    np.testing.assert_allclose(np.exp(1j * records[:, 0]), np.exp(2j * math.pi * shares), atol=1e-12)


def test_a_million_turns_in_degrees_lose_nothing(tmp_path):
    np.save(tmp_path / "angles.npy", np.array([[30.0 + 360.0 * 2**30, -30.0]] * 2))
    records = read(tmp_path / "angles.npy", "torus", chart="degrees")
    np.testing.assert_allclose(records, np.radians([[30.0, -30.0]] * 2), rtol=1e-15)


def test_angles_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run, random = CliRunner().invoke, np.random.default_rng(0)
    np.savetxt("dihedrals.csv", random.normal([170.0, -65.0], 12.0, (300, 2)), delimiter=",", fmt="%.1f")
    np.savetxt("center.csv", [[180.0, -60.0]], delimiter=",")
    said = run(app, ["check", "dihedrals.csv", "--manifold", "torus"])
    assert said.exit_code == 2 and "--as is needed for --manifold torus" in " ".join(said.output.split())
    said = run(app, ["check", "dihedrals.csv", "--manifold", "sphere", "--as", "degrees"])
    assert said.exit_code == 2 and "--as degrees is not for --manifold sphere" in " ".join(said.output.split())
    said = run(app, ["check", "dihedrals.csv", "--manifold", "torus", "--as", "grad"])
    assert said.exit_code == 2 and "--as must be one of " in " ".join(said.output.split())
    said = run(app, ["check", "dihedrals.csv", "--manifold", "torus", "--as", "radians"])
    assert said.exit_code == 0 and "say --as degrees" in " ".join(said.output.split())
    said = run(app, ["check", "dihedrals.csv", "--manifold", "circle * euclidean(1)", "--overwrite"])
    assert said.exit_code == 2 and "unit of angles in a product" in " ".join(said.output.split())
    options = ["--manifold", "torus", "--as", "degrees", "--center", "center.csv", "--radius", "0.9", "--epsilon", "2"]
    said = run(app, ["release", "dihedrals.csv", *options, "--out", "mean.json", "--plot", "mean.png"])
    assert said.exit_code == 0, said.output
    value = np.degrees(Release.load("mean.json").as_array())
    assert np.all(np.abs(np.remainder(value - [170.0, -65.0] + 180.0, 360.0) - 180.0) < 4.0)
    assert (tmp_path / "mean.png").stat().st_size > 5_000
    said = run(app, ["show", "mean.json", "--csv", "mean.csv"])
    assert said.exit_code == 0 and f"value:   {value[0]:.6g}, {value[1]:.6g} (degrees)" in said.output
    np.testing.assert_allclose(np.loadtxt("mean.csv", delimiter=","), value, rtol=1e-12)
    with pytest.raises(InputError, match=r"chart is needed for manifold torus"):
        read("dihedrals.csv", "torus")
