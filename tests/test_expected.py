"""How far off a release may be, as its record says it: public numbers, and those of simulated releases."""

import json

import jax
import numpy as np
import pytest
from strategies import exhaustive
from typer.testing import CliRunner

from jaxgeodp import (
    SPD,
    EmpiricalRisk,
    Euclidean,
    EuclideanLaplace,
    FrechetMedian,
    GeodesicBall,
    KNGMechanism,
    LaplaceMechanism,
    Release,
    Sphere,
    TangentLaplace,
    WrappedGaussian,
)
from jaxgeodp.cli.app import app
from jaxgeodp.mechanisms import plan_mechanisms
from jaxgeodp.releases.expected import expected_error, reference_records
from jaxgeodp.releases.ways import Idealized

N = 300
IDEALIZED = Idealized()
CAP = GeodesicBall(Sphere(2), Sphere(2).exp(Sphere(2).origin, np.array([0.3, 0.2, 0.0])), 0.5)


@pytest.mark.parametrize(
    "mechanism", [TangentLaplace(CAP, 1.0), WrappedGaussian(CAP, 1.0), *exhaustive(KNGMechanism(CAP, 1.0))]
)
def test_it_is_that_of_simulated_releases(mechanism):
    """Of n records that lie as the reference records do."""
    with jax.enable_x64(True):
        records, mean = reference_records(CAP, 0.5)
        many = np.tile(records, (8, 1))
        stated = expected_error(mechanism, len(many), IDEALIZED)
        draws = mechanism.simulate(jax.random.key(5), many, 4000)
        distances = np.asarray(jax.vmap(lambda x: CAP.manifold.dist(mean, x))(draws))
    assert stated.mean == pytest.approx(distances.mean(), rel=0.08)
    assert stated.level == 0.95
    assert 0.93 < np.mean(distances <= stated.radius) < 0.97
    assert np.mean(distances <= 0.8 * stated.radius) < 0.93, "planted: a smaller radius is told apart"


@pytest.mark.parametrize(("kind", "name"), [(LaplaceMechanism, "laplace"), *exhaustive((KNGMechanism, "kng"))])
def test_it_is_that_of_the_plan(kind, name):
    (planned,) = plan_mechanisms(CAP, N, 1.0, names=(name,))
    assert expected_error(kind(CAP, 1.0), N, IDEALIZED).mean == planned.error


def test_it_does_not_depend_on_the_records():
    mechanism = TangentLaplace(CAP, 1.0)
    center = np.tile(CAP.center, (N, 1))
    releases = [mechanism.release(data) for data in (center, -center, np.full((N, 3), np.nan))]
    assert len({release.expected_error for release in releases}) == 1
    fewer = mechanism.release(center[: N // 4]).expected_error
    assert fewer.mean == pytest.approx(4 * releases[0].expected_error.mean, rel=0.1)


def test_medians_are_compared_with_medians():
    line = GeodesicBall(Euclidean(1), [3.0], 1.0)
    found = expected_error(KNGMechanism(line, 1.0, statistic=FrechetMedian()), N, IDEALIZED)
    assert 0.0 < found.mean < found.radius < 1.0
    # Of two places alone every point between would be a median, and no budget would help.
    better = expected_error(KNGMechanism(line, 20.0, statistic=FrechetMedian()), N, IDEALIZED)
    assert better.mean < 0.3 * found.mean


def test_what_is_not_known_is_said():
    line = GeodesicBall(Euclidean(1), [0.0], 1.0)
    with pytest.raises(ValueError, match="known only for means"):
        expected_error(
            KNGMechanism(line, 1.0, statistic=EmpiricalRisk(lambda x, y: (x - y) @ (x - y), 4.0)), N, IDEALIZED
        )
    with pytest.raises(ValueError, match="need not be points"):
        expected_error(EuclideanLaplace(CAP, 1.0), N, IDEALIZED)
    # Of these some are points.
    with pytest.raises(ValueError, match="need not be points"):
        expected_error(EuclideanLaplace(GeodesicBall(SPD(2), np.eye(2), 1.0), 0.03), N, IDEALIZED)


def test_it_is_not_stated_where_the_number_of_records_is_private():
    release = TangentLaplace(CAP, 1.0).release(np.tile(CAP.center, (N, 1)), adjacency="add-remove")
    with pytest.raises(ValueError, match="not in the record"):
        _ = release.expected_error


@pytest.mark.parametrize("kind", [TangentLaplace, WrappedGaussian])
def test_noise_of_integers_is_counted(kind):
    """Laplace noise has independent coordinates then, which are wider together."""
    space = Euclidean(8)
    ball = GeodesicBall(space, np.zeros(8), 1.0)
    mechanism, data = kind(ball, 1.0), np.zeros((100, 8))
    stated = mechanism.release(data, numerics="grid").expected_error
    distances = [np.linalg.norm(mechanism.release(data, numerics="grid").value) for _ in range(60)]
    assert np.mean(distances) == pytest.approx(stated.mean, rel=0.2)
    idealized = expected_error(mechanism, 100, IDEALIZED).mean
    assert (
        stated.mean == pytest.approx(idealized, rel=0.02) if kind is WrappedGaussian else stated.mean > 1.2 * idealized
    )


def test_records_of_the_command_line_state_it(tmp_path):
    np.save(tmp_path / "data.npy", np.zeros((50, 2)))
    own = "--manifold euclidean --center origin --radius 1 --epsilon 1 --mechanism tangent"
    done = CliRunner().invoke(
        app, ["release", f"{tmp_path}/data.npy", *own.split(), "--out", f"{tmp_path}/release.json"]
    )
    assert done.exit_code == 0, done.output
    release = Release.load(tmp_path / "release.json")
    assert release.expected_error == expected_error(
        TangentLaplace(GeodesicBall(Euclidean(2), np.zeros(2), 1.0), 1.0), 50, IDEALIZED
    )
    shown = CliRunner().invoke(app, ["show", f"{tmp_path}/release.json", "--html", f"{tmp_path}/page.html"])
    assert f"95% below {release.expected_error.radius:.3g}" in " ".join(shown.output.split())
    assert (
        f"less than {release.expected_error.radius:.3g} with probability 0.95" in (tmp_path / "page.html").read_text()
    )
    record = json.loads((tmp_path / "release.json").read_text())
    del record["expected_error"]
    (tmp_path / "without.json").write_text(json.dumps(record))
    with pytest.raises(ValueError, match="not in the record"):
        _ = Release.load(tmp_path / "without.json").expected_error


def test_no_error_is_expected_of_a_law_that_no_release_has():
    large = KNGMechanism(GeodesicBall(SPD(2), np.eye(2), 15.0), 9.0)
    with pytest.raises(ValueError, match="too large for double precision"):
        expected_error(large, 9999, IDEALIZED)


def test_a_plan_refuses_what_a_release_refuses():
    """A law that exists, but reaches matrices beyond double precision."""
    ball = GeodesicBall(SPD(2), np.eye(2), 1.0)
    with pytest.raises(ValueError, match="too near the limit"):
        LaplaceMechanism(ball, 0.05).release(np.broadcast_to(np.eye(2), (50, 2, 2)))
    with pytest.raises(ValueError, match="too near the limit"):
        plan_mechanisms(ball, 50, epsilon=0.05, names=("laplace",))
