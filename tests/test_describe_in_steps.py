"""A description whose mean is released in steps: what it promises, and that its regions are of its own law."""

import jax
import numpy as np
import pytest

from jaxgeodp import AdaptiveMechanism, Euclidean, GeodesicBall, Sphere, ZeroConcentratedDP, describe
from jaxgeodp.inference import Description, description
from jaxgeodp.inference.regions import ball_of

PLANE = GeodesicBall(Euclidean(2), [0.0, 0.0], 2.0)
N, DRAWS = 300, 100


def records(seed, skew=False):
    """A narrow cluster away from the centre."""
    draws = np.random.default_rng(seed)
    z = draws.exponential(size=(N, 2)) - 1.0 if skew else draws.normal(size=(N, 2))
    return np.array([0.7, 0.3]) + 0.15 * z


def region(found):
    return ball_of(found.population, found.procedure, 0.95, DRAWS)


def test_a_mean_in_a_wide_ball_is_released_in_steps_and_its_region_is_narrower(monkeypatch, tmp_path):
    found = describe(records(0), PLANE.manifold, mu=1.0, ball=PLANE)
    assert found.mean.record["mechanism"] == "AdaptiveMechanism" and found.mean.record["steps"]
    own = ZeroConcentratedDP(0.5)
    assert 0.999 * own.rho < found.guarantee["rho"] <= own.rho
    assert isinstance(found.procedure.mechanism, AdaptiveMechanism)
    assert found.procedure.mechanism.mu == found.public["strengths"]["mean"]
    found.save(tmp_path / "found")
    assert region(Description.load(tmp_path / "found")).radius == pytest.approx(region(found).radius, rel=1e-9)
    assert not found.against_center.center_is_nearer
    monkeypatch.setattr(description, "steps_that_gain", lambda *terms, **more: None)
    once = describe(records(0), PLANE.manifold, mu=1.0, ball=PLANE)
    assert once.mean.record["mechanism"] == "WrappedGaussian"
    assert region(found).radius < 0.85 * region(once).radius


def test_one_release_is_made_where_steps_are_not_expected_to_gain():
    """With epsilon, whose steps are not in integers, and of few records."""
    for data, budget in ((records(0), {"epsilon": 4.0}), (records(0)[:45], {"mu": 1.0})):
        found = describe(data, PLANE.manifold, ball=PLANE, **budget)
        assert "steps" not in found.mean.record


@pytest.mark.exhaustive
@pytest.mark.parametrize("skew", [False, True])
def test_regions_of_means_in_steps_cover(skew):
    truth, held = np.array([0.7, 0.3]), []
    for seed in range(200):
        found = describe(records(seed, skew), PLANE.manifold, mu=1.0, ball=PLANE)
        held.append(region(found).contains(truth))
    assert np.mean(held) > 0.9


@pytest.mark.exhaustive
def test_on_a_cap_the_noise_of_the_last_step_is_what_the_mean_is_off_by():
    cap = GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.7)
    z = 0.05 * np.random.default_rng(0).normal(size=(N, 2)) + [0.3, 0.0]
    data = np.concatenate([z, np.ones((N, 1))], axis=1)
    data /= np.linalg.norm(data, axis=1, keepdims=True)
    found = describe(data, cap.manifold, mu=1.0, ball=cap)
    mechanism = found.procedure.mechanism
    with jax.enable_x64(True):
        mean = cap.manifold.project(np.mean(data, axis=0))
        values = mechanism.simulate(jax.random.key(0), data, 400)
        squares = np.mean(np.asarray(jax.vmap(cap.manifold.dist, (None, 0))(mean, values)) ** 2)
    stated = description.expected_square(found.mean, 2, "mu")
    assert 0.7 * squares < stated < 2.5 * squares
