"""Released values drawn towards a public point: what is told, how near they come, and what is refused."""

import math

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

import jaxgeodp as jgd
from jaxgeodp.checks import InputError
from jaxgeodp.cli import app
from jaxgeodp.inference import confidence_ball
from jaxgeodp.privacy import Release
from jaxgeodp.privacy.drawn_towards import is_drawn_as_said
from jaxgeodp.privacy.release import record_digest

PLANE = jgd.GeodesicBall(jgd.Euclidean(3), np.zeros(3), 1.0)
CAP = jgd.GeodesicBall(jgd.Sphere(2), [0.0, 0.0, 1.0], 0.3)


def test_the_record_tells_what_was_done_and_keeps_what_was_released(tmp_path):
    release = jgd.LaplaceMechanism(CAP, 1.0).release(np.tile(CAP.center, (50, 1)))
    drawn = release.shrunk(CAP.center, 0.05)
    told, stated = drawn.record["post_processing"], release.expected_error
    noise = stated.mean * math.sqrt(1.5)
    assert told["share"] == pytest.approx(0.05**2 / (0.05**2 + noise**2)) and 0 < told["share"] < 1
    assert told["expected_error"] == pytest.approx(noise * math.sqrt(told["share"]))
    assert told["released"] == release.record["value"] and told["of"] == record_digest(release.record)
    space = CAP.manifold
    whole, part = (float(space.dist(CAP.center, own.value)) for own in (release, drawn))
    assert part == pytest.approx(told["share"] * whole) and bool(space.belongs(drawn.value, 1e-12))
    assert float(space.dist(drawn.value, release.value)) == pytest.approx(whole - part)
    undone = drawn.record | told["before"] | {"value": told["released"]}
    del undone["post_processing"]
    assert record_digest(undone) == told["of"] and set(told["before"]) <= {"expected_error"}
    kept = {name: entry for name, entry in release.record.items() if name not in ("value", "expected_error")}
    assert {name: drawn.record[name] for name in kept} == kept and "expected_error" not in drawn.record
    drawn.save(tmp_path / "drawn.json")
    assert np.array_equal(Release.load(tmp_path / "drawn.json").value, drawn.value)


@pytest.mark.parametrize("budget", [{"epsilon": 1.0}, {"mu": 1.0}], ids=["epsilon", "mu"])
def test_it_comes_as_near_as_it_says_and_a_share_of_another_spread_does_not(budget):
    """Over means that lie as far from the point as is said, each released once."""
    n, spread = 80 if "epsilon" in budget else 35, 0.1
    kind = jgd.LaplaceMechanism if "epsilon" in budget else jgd.WrappedGaussian
    mechanism = kind(PLANE, *budget.values())
    release = mechanism.release(np.zeros((n, 3)))
    means = spread / math.sqrt(3.0) * np.random.default_rng(0).normal(size=(4000, 3))
    draws = np.asarray(mechanism.simulate(jax.random.key(0), np.zeros((n, 3)), 4000)) + means

    def error(share):
        return math.sqrt(np.mean(np.sum((share * draws - means) ** 2, axis=1)))

    told = release.shrunk(np.zeros(3), spread).record["post_processing"]
    assert error(told["share"]) == pytest.approx(told["expected_error"], rel=0.04)
    for wrong in (0.3 * spread, 3.0 * spread, 1e6):
        assert error(release.shrunk(np.zeros(3), wrong).record["post_processing"]["share"]) > 1.1 * error(told["share"])


def test_what_has_no_known_noise_is_refused():
    data = np.random.default_rng(0).normal(0.0, 0.1, (300, 3))
    shape = jgd.Shape(PLANE.center, np.eye(3), 0.5)
    unknown = [
        jgd.AdaptiveMechanism(PLANE, mu=1.0).release(data),
        jgd.TangentGaussian(PLANE, 1.0, shape).release(data),
        jgd.LaplaceMechanism(PLANE, 1.0).release(data, adjacency="add-remove"),
        jgd.LaplaceMechanism(PLANE, 1.0).release(data, delta=1e-6),
    ]
    for release in unknown:
        with pytest.raises(InputError, match="does not state the width"):
            release.shrunk(PLANE.center, 0.1)
    release = jgd.LaplaceMechanism(PLANE, 1.0).release(data)
    drawn = release.shrunk(PLANE.center, 0.1)
    with pytest.raises(InputError, match="before"):
        drawn.shrunk(PLANE.center, 0.1)
    with pytest.raises(InputError, match="neither in its record"):
        confidence_ball(drawn)
    for toward, spread in (([0.0, 0.0], 0.1), ("here", 0.1), (1j * np.ones(3), 0.1), (PLANE.center, 0.0)):
        with pytest.raises(InputError, match=r"Release\.shrunk"):
            release.shrunk(toward, spread)
    spherical = jgd.LaplaceMechanism(CAP, 1.0).release(np.tile(CAP.center, (50, 1)))
    for toward in ([0.0, 0.0, 1.1], [0.0, 0.0, 0.0], [np.nan, 0.0, 1.0]):
        with pytest.raises(InputError, match="not a point"):
            spherical.shrunk(toward, 0.1)


def test_a_value_that_does_not_follow_is_noticed():
    drawn = jgd.LaplaceMechanism(CAP, 1.0).release(np.tile(CAP.center, (50, 1))).shrunk([0.6, 0.0, 0.8], 0.05).record
    told = drawn["post_processing"]
    assert is_drawn_as_said(drawn)
    first, half = np.array(told["released"]), np.array([0.3, 0.0, 0.4])
    moved = np.asarray(CAP.manifold.between(half, first, told["share"])).tolist()
    planted = {
        "a value of another share": {"value": np.asarray(drawn["value"])[::-1].tolist()},
        "one coordinate of the released": {"value": [told["released"][0], 0.6, 0.8]},
        "no point": {"value": moved, "post_processing": told | {"toward": half.tolist()}},
        "another error": {"post_processing": told | {"expected_error": 0.5 * told["expected_error"]}},
        "another entry": {"post_processing": told | {"more": 1}},
    }
    for name, change in planted.items():
        assert not is_drawn_as_said(drawn | change), name


def test_records_of_strangers_are_refused_in_words(tmp_path):
    made = jgd.LaplaceMechanism(PLANE, 1.0).release(np.zeros((50, 3)))
    stated = {"mean": 0.1, "radius": 0.2, "level": 0.95}
    drawn = Release(made.value, made.record | {"expected_error": stated}).shrunk(PLANE.center, 1e-300)
    assert np.allclose(drawn.value, 0.0)
    for wrong in (
        {"guarantee": {"epsilon": 1.0}},
        {"guarantee": {"kind": [1]}},
        {"expected_error": stated | {"mean": -1}},
        {"expected_error": stated | {"mean": 10**400}},
        {"expected_error": [1]},
        {"manifold": {"name": "nowhere"}},
    ):
        with pytest.raises(InputError):
            Release(made.value, made.record | {"expected_error": stated} | wrong).shrunk(PLANE.center, 0.1)
    with pytest.raises(InputError, match="no point"):
        Release(np.zeros(3, int), made.record | {"expected_error": stated}).shrunk(PLANE.center, 0.1)
    path = tmp_path / "drawn.json"
    made.shrunk(PLANE.center, 0.1).save(path)
    done = CliRunner().invoke(app, ["show", str(path), "--html", str(tmp_path / "page.html")])
    words = " ".join(done.output.split())
    assert done.exit_code == 0 and "drawn: towards a public point" in words and record_digest(made.record)[:20] in words
    assert record_digest(made.record) in (tmp_path / "page.html").read_text()
