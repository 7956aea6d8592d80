"""Axes, lines without a sense, beyond the laws of every manifold (`test_manifolds`)."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from strategies import a_point, a_tangent, cap, exhaustive
from typer.testing import CliRunner

from jaxgeodp import (
    Axes,
    GeodesicBall,
    GibbsMechanism,
    Grassmann,
    KNGMechanism,
    LaplaceMechanism,
    LocatedMechanism,
    MetricLaplace,
    Release,
    RiemannianGaussian,
    Sphere,
    TangentGaussian,
    WrappedLaplace,
    frechet_mean,
)
from jaxgeodp.bounds.gaussian import Space, gaussian_scale
from jaxgeodp.cli.app import app
from jaxgeodp.io import read
from jaxgeodp.testing import LAWS, check_mechanism

LINES = Axes(2)
CENTER = np.array([0.36, 0.48, 0.8])


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def random_signs(points, seed=0):
    return points * np.random.default_rng(seed).choice([-1.0, 1.0], (len(points), 1))


SHORT = ("points_belong", "round_trips", "minimal_geodesics", "parallel_transport", "volume", "going_home")


@pytest.mark.parametrize("law", SHORT)
def test_law(law):
    LAWS[law](LINES, "float64")


# Geometry -----------------------------------------------------------------------------------------------


def test_the_space_is_that_of_lines_as_subspaces():
    subspaces, p = Grassmann(4, 1), a_point(Axes(3), 0)
    for seed in range(1, 9):
        q = a_point(Axes(3), seed)
        distance = Axes(3).dist(p, q)
        np.testing.assert_allclose(distance, subspaces.dist(p[:, None], q[:, None]), atol=1e-12)
        projectors = [jnp.outer(x, x) for x in (p, q)]
        np.testing.assert_allclose(jnp.linalg.norm(projectors[0] - projectors[1]), math.sqrt(2) * jnp.sin(distance))
        np.testing.assert_allclose(Axes(3).log(p, q), subspaces.log(p[:, None], q[:, None])[:, 0], atol=1e-12)


def test_nothing_depends_on_which_end_of_a_line_is_named():
    p, q = a_point(LINES, 0), a_point(LINES, 1)
    u = a_tangent(LINES, p, 2, 0.5)
    np.testing.assert_allclose(LINES.log(p, -q), LINES.log(p, q), atol=1e-15)
    np.testing.assert_allclose(LINES.log(-p, q), -LINES.log(p, q), atol=1e-15)
    np.testing.assert_allclose(LINES.exp(-p, -u), -LINES.exp(p, u), atol=1e-15)
    # The vector u at p is -u at -p.
    np.testing.assert_allclose(LINES.transport(p, -q, u), -LINES.transport(p, q, u), atol=1e-15)
    np.testing.assert_allclose(LINES.transport(-p, q, -u), LINES.transport(p, q, u), atol=1e-15)
    np.testing.assert_allclose(LINES.extrinsic(-p), LINES.extrinsic(p), atol=1e-15)


def test_a_mean_of_lines_is_that_of_directions_to_one_side():
    points = np.asarray(cap(LINES, jnp.asarray(CENTER), 0.5, 60, 0))
    mean = np.asarray(frechet_mean(LINES, random_signs(points)))
    expected = np.asarray(frechet_mean(Sphere(2), points))
    np.testing.assert_allclose(mean * np.sign(mean @ expected), expected, atol=1e-14)


def test_lines_in_the_plane_are_a_flat_circle_of_length_pi():
    circle = Axes(1)
    assert circle.curvature_bounds == (0.0, 0.0) and circle.injectivity_radius == circle.diameter == math.pi / 2
    angles = np.array([0.1, 0.4, -0.3, 0.5])
    points = random_signs(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    mean = np.asarray(frechet_mean(circle, points))
    assert math.atan(mean[1] / mean[0]) == pytest.approx(angles.mean(), abs=1e-14)


# Mechanisms ---------------------------------------------------------------------------------------------


def test_laplace_draws_have_the_law_of_the_whole_space():
    """The angle from the mean has the density sin(t) exp(-t/scale) up to the right angle; the sphere's goes on."""
    records = random_signs(np.repeat(CENTER[None], 40, axis=0))
    mechanism = LaplaceMechanism(GeodesicBall(LINES, CENTER, 0.5), 0.06)
    scale = mechanism.scale(40)
    draws = np.asarray(mechanism.simulate(jax.random.key(0), records, 20_000))
    angles = np.arccos(np.minimum(np.abs(draws @ CENTER), 1.0))
    grid = np.linspace(0.0, math.pi / 2, 4001)

    def distribution(scale, end):
        density = np.sin(np.minimum(grid, end)) * np.exp(-grid / scale)
        total = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
        return lambda t: np.interp(t, grid, total / total[-1])

    assert scale > 0.3  # much of the mass lies near the cut locus
    assert stats.kstest(angles, distribution(scale, math.pi)).pvalue > 1e-6
    assert stats.kstest(angles, distribution(0.5 * scale, math.pi)).pvalue < 1e-9
    of_sphere = np.asarray(
        LaplaceMechanism(GeodesicBall(Sphere(2), CENTER, 0.5), 0.06).simulate(
            jax.random.key(0), np.abs(records), 20_000
        )
    )
    planted = np.arccos(np.clip(of_sphere @ CENTER, -1.0, 1.0))
    assert stats.kstest(planted, distribution(scale, math.pi)).pvalue < 1e-9


@pytest.mark.parametrize(
    "make",
    [
        lambda ball: LaplaceMechanism(ball, 1.0),
        *exhaustive(
            lambda ball: KNGMechanism(ball, 1.0),
            lambda ball: WrappedLaplace(ball, 1.0),
            lambda ball: GibbsMechanism(ball, 1.0),
            lambda ball: RiemannianGaussian(ball, 1.0),
            lambda ball: TangentGaussian(ball, 1.0),
        ),
    ],
)
def test_mechanisms_keep_their_promises(make):
    check_mechanism(make(GeodesicBall(LINES, CENTER, 0.3)))


def test_a_center_is_found_without_a_ball_and_one_record_is_perturbed():
    records = random_signs(np.asarray(cap(LINES, jnp.asarray(CENTER), 0.3, 3000, 0)))
    values = np.asarray(LocatedMechanism(LINES, epsilon=4.0).simulate(jax.random.key(0), records, 2))
    assert np.all(np.abs(values @ CENTER) > math.cos(0.3))
    one = MetricLaplace(LINES, 4.0).simulate(jax.random.key(0), records[:1], 3)
    assert one.shape == (3, 3)


# Files and pictures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("degrees", "angles", "vector"),
    [
        ("trend,plunge", (30.0, 20.0), None),
        ("plunge,trend", (20.0, 30.0), None),
        # A plane that dips 70 degrees to 210: its pole is that line.
        ("strike,dip", (120.0, 70.0), None),
        ("dipdir,dip", (210.0, 70.0), None),
        ("dip,dipdir", (70.0, 210.0), None),
        ("dipdir,dip", (90.0, 0.0), (0.0, 0.0, 1.0)),
        ("strike,dip", (0.0, 90.0), (0.0, 1.0, 0.0)),
    ],
)
def test_lines_and_planes_are_read_as_geologists_write_them(tmp_path, degrees, angles, vector):
    (tmp_path / "lines.csv").write_text("\n".join(["{},{}".format(*angles)] * 2))
    expected = vector or (
        math.cos(math.radians(20)) * math.cos(math.radians(30)),
        math.cos(math.radians(20)) * math.sin(math.radians(30)),
        math.sin(math.radians(20)),
    )
    records = read(tmp_path / "lines.csv", "axes", degrees=degrees)
    np.testing.assert_allclose(np.abs(records @ np.array(expected)), 1.0, atol=1e-14)


def test_axes_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run, random = CliRunner().invoke, np.random.default_rng(0)
    strike, dip = random.normal(120.0, 10.0, 400), np.clip(random.normal(60.0, 8.0, 400), 0.0, 90.0)
    rows = "\n".join(f"{a:.1f},{b:.1f}" for a, b in zip(strike, dip, strict=True))
    (tmp_path / "planes.csv").write_text(f"Strike,Dip\n{rows}\n")
    said = run(app, ["check", "planes.csv", "--header", "--manifold", "axes"])
    assert said.exit_code == 2 and "say --degrees strike,dip for axes" in " ".join(said.output.split())
    for known, said_order in (("Bearing,Plunge", "trend,plunge"), ("Dip,other", "dip,strike")):
        (tmp_path / "lines.csv").write_text(f"{known}\n30,20\n31,21\n")
        said = run(app, ["check", "lines.csv", "--header", "--manifold", "axes"])
        assert said.exit_code == 2 and f"say --degrees {said_order} for axes" in " ".join(said.output.split())
        wrong = ",".join(reversed(said_order.split(",")))
        said = run(app, ["check", "lines.csv", "--header", "--manifold", "axes", "--degrees", wrong])
        assert said.exit_code == 2 and "contradicts" in " ".join(said.output.split())
    said = run(app, ["check", "planes.csv", "--header", "--manifold", "sphere", "--degrees", "strike,dip"])
    assert said.exit_code == 2 and "say --manifold axes" in " ".join(said.output.split())
    (tmp_path / "center.csv").write_text("x,y,z\n0.75,0.43,0.5\n")
    space = ["--header", "--manifold", "axes", "--degrees", "strike,dip"]
    options = [*space, "--center", "center.csv", "--radius", "0.6"]
    said = run(app, ["release", "planes.csv", *options, "--epsilon", "2", "--out", "mean.json", "--plot", "mean.png"])
    assert said.exit_code == 0, said.output
    value = Release.load("mean.json").as_array()
    records = read("planes.csv", "axes", header=True, degrees="strike,dip")
    mean = np.asarray(frechet_mean(LINES, records))
    assert abs(value @ mean) > math.cos(0.1) and (tmp_path / "mean.png").stat().st_size > 10_000


def test_directions_with_both_ends_of_an_axis_are_doubted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    points = np.asarray(cap(LINES, jnp.asarray(CENTER), 0.4, 60, 0))
    for name, records in (("both", random_signs(points)), ("one", points)):
        np.savetxt(f"{name}.csv", records, delimiter=",")
        said = CliRunner().invoke(app, ["check", f"{name}.csv", "--manifold", "sphere"])
        assert said.exit_code == 0 and ("they are axes" in " ".join(said.output.split())) == (name == "both")


@pytest.mark.parametrize("mu", [0.5, 3.0])
def test_normal_noise_has_the_scale_of_a_sphere_with_antipodes_identified(mu):
    mechanism = RiemannianGaussian(GeodesicBall(LINES, CENTER, 0.3), mu)
    space = Space(LINES.dim, 1, folded=True)
    assert mechanism.scale(50) == pytest.approx(gaussian_scale(space, mechanism.sensitivity(50), mu), rel=1e-12)
