"""Releases in steps in integers: what every path costs, how near they come, and that blocks change nothing."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgeodp as jgd
from jaxgeodp.checks import InputError
from jaxgeodp.mechanisms.adaptive_grid import terms_on_grid
from jaxgeodp.mechanisms.adaptive_stages import clipped_lengths, clipped_vectors, lengths
from jaxgeodp.mechanisms.adaptive_walk import Spending

CAP = jgd.GeodesicBall(jgd.Sphere(2), [0.0, 0.0, 1.0], 0.5)
PLANE = jgd.GeodesicBall(jgd.Euclidean(2), [1.0, -1.0], 1.0)
SHAPE = jgd.Shape(CAP.center, [[0.3, 0.0, 0.0], [0.0, 0.1, 0.0]], 1.0)


def records(ball, spread, n=500):
    draws, manifold = np.random.default_rng(0), ball.manifold
    z = draws.normal(size=(n, 2)) * spread / np.sqrt(2.0)
    z[:, 0] += 0.4
    frame = manifold.frame(jnp.asarray(ball.center))
    return np.array(jax.vmap(lambda v: manifold.exp(ball.center, manifold.combine(ball.radius * v, frame)))(z))


def spent(record, n, bounds):
    """rho of all stages, from the scales that the record states and what one record moves."""
    total = 0.0
    for step in record["steps"]:
        moved = 1.0 if step["asked"] == "records" else 2.0 * step.get("clip", bounds) / n
        total += 0.5 * (moved / step["scale"]) ** 2
    return total


@pytest.mark.parametrize("spread", [0.05, 0.35, 1.0])
@pytest.mark.parametrize("shape", [None, SHAPE], ids=["ball", "shape"])
def test_all_stages_cost_the_budget_and_an_unpaid_one_is_seen(monkeypatch, spread, shape):
    mechanism, data = jgd.AdaptiveMechanism(CAP, mu=1.0, shape=shape), records(CAP, spread)
    whole = CAP.radius if shape is None else shape.clip
    record = mechanism.release(data, numerics="grid").record
    assert record["guarantee"]["kind"] == "zcdp" and record["guarantee"]["rho"] == 0.5
    assert len(record["steps"]) > 1 and 0.45 < spent(record, 500, whole) <= 0.5
    pay = Spending.pay
    monkeypatch.setattr(Spending, "pay", lambda self, cost: pay(self, cost) if cost > 0.05 else cost)
    assert spent(mechanism.release(data, numerics="grid").record, 500, whole) > 0.5


def test_releases_come_as_near_as_simulations():
    for ball in (PLANE, CAP):
        data, mechanism = records(ball, 0.15), jgd.AdaptiveMechanism(ball, mu=1.0)
        mean = jgd.frechet_mean(ball.manifold, data)
        with jax.enable_x64(True):
            on_grid: Any = mechanism.law(500).grid
            ready = on_grid(jax.ShapeDtypeStruct(data.shape, np.float64))
            near = [float(ball.manifold.dist(mean, ready.draw(data).value)) for _ in range(40)]
        simulated = jax.vmap(lambda x, mean=mean, ball=ball: ball.manifold.dist(mean, x))(
            mechanism.simulate(jax.random.key(0), data, 400)
        )
        assert np.mean(near) == pytest.approx(float(np.mean(simulated)), rel=0.4)
        once = jgd.TangentGaussian(ball, 1.0).simulate(jax.random.key(0), data, 400)
        assert np.mean(near) < 0.6 * float(np.mean(jax.vmap(ball.manifold.dist, (None, 0))(mean, once)))


def test_what_is_added_up_is_of_single_records_and_bounded():
    data = np.concatenate([records(CAP, 0.5, 30), [[np.nan] * 3, [0.0, 0.0, -1.0], [1e300, 0.0, 0.0]]])
    center = jnp.asarray(records(CAP, 0.1, 1)[0])
    for shape in (None, SHAPE):
        law = jgd.AdaptiveMechanism(CAP, mu=1.0, shape=shape).law(33).mean
        with jax.enable_x64(True):
            vectors = np.asarray(clipped_vectors(law, center, 0.1, data))
            own = np.asarray(clipped_lengths(law, center, data))
            again = np.asarray(clipped_vectors(law, center, 0.1, data[::-1]))[::-1]
            assert np.allclose(lengths(law, center, law.ball.clip(data)), own, rtol=1e-12)
        assert np.all(np.isfinite(vectors)) and np.all(np.linalg.norm(vectors, axis=1) <= 0.1 * (1 + 1e-9))
        assert np.allclose(vectors, again, rtol=1e-12, atol=1e-15)
        assert np.allclose(np.linalg.norm(vectors, axis=1), np.minimum(own, 0.1), rtol=1e-6)


def test_blocks_are_released_as_arrays_are():
    data = records(PLANE, 0.1, 4000)
    mechanism = jgd.AdaptiveMechanism(PLANE, mu=1.0)
    blocks = jgd.RecordBlocks(lambda: iter(np.array_split(data, 7)), (4000, 2))
    for given in (data, blocks):
        value = mechanism.release(given, numerics="grid").value
        assert np.linalg.norm(value - data.mean(axis=0)) < 0.01
    with pytest.raises(InputError, match="grid"):
        jgd.AdaptiveMechanism(PLANE, epsilon=1.0).release(blocks, numerics="grid")
    with pytest.raises(InputError, match="RecordBlocks"):
        mechanism.release(blocks)


def test_in_integers_one_release_has_the_sensitivity_of_a_sum_and_steps_have_their_own():
    ball = jgd.GeodesicBall(jgd.SPD(2), np.eye(2), 1.0)
    few, many = (jgd.AdaptiveMechanism(ball, mu=1.0).law(n) for n in (20, 500))
    assert few.rule is None and terms_on_grid(few).formula == few.terms.more["filled"]["grid"]["formula"]
    assert many.rule is not None and terms_on_grid(many).formula == many.terms.formula
    assert many.terms.formula != many.terms.more["filled"]["grid"]["formula"]
