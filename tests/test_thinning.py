"""Acceptance by a few records: its probability, and that a mean loss is the sum that it supposes."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from strategies import cap, exhaustive, name

from jaxgeodp import SPD, Euclidean, GeodesicBall, GibbsMechanism, Hyperbolic, Product, Sphere
from jaxgeodp.mechanisms import potential
from jaxgeodp.samplers.rejection import make_proposal
from jaxgeodp.samplers.thinning import Thinning, accepted

# Parts of five records, the last of which has no weight.
PARTS, WEIGHTS = np.array([0.1, 2.5, 0.0, 1.4, 9.0]), np.array([0.1, 0.2, 0.4, 0.3, 0.0])
LIMIT = 0.3


def a_thinning(most=2.5, weights=WEIGHTS, parts=PARTS):
    own = jnp.asarray(parts)
    return Thinning(
        lambda tangent, distance: -0.5 * distance,
        lambda index, point, tangent: own[index] * point,
        lambda distance: most * distance,
        jnp.asarray(weights),
    )


WRONG = {
    "rate": a_thinning(most=2.0),
    "weights": a_thinning(weights=np.append(np.full(4, 0.25), 0.0)),
    "padding": a_thinning(weights=np.append(WEIGHTS[:4], 0.05)),
    "part": a_thinning(parts=0.9 * PARTS),
}


@pytest.mark.parametrize("planted", [None, *WRONG])
@pytest.mark.parametrize("distance", [0.3, *exhaustive(1.0)])
def test_the_probability_is_that_of_all_records(planted, distance):
    """Each acceptance is as likely as exp(certain - limit - mean part); a wrong rate, weight or part is not."""
    count = 100_000
    thinning = WRONG[planted] if planted else a_thinning()
    distances = jnp.full(count, distance)

    @jax.jit
    def hits(key):
        return accepted(key, thinning, distances, distances, distances, jnp.full(count, LIMIT))

    exact = math.exp(-0.5 * distance - LIMIT - distance * float(WEIGHTS @ PARTS))
    p_value = stats.binomtest(int(hits(jax.random.key(1)).sum()), count, exact).pvalue
    assert p_value < 1e-6 if planted else p_value > 1e-6


def test_what_is_certainly_refused_asks_no_record():
    distances = jnp.full(50, 1.0)
    nothing = dataclasses.replace(a_thinning(), part=lambda *_: jnp.nan)
    assert not accepted(jax.random.key(0), nothing, distances, distances, distances, jnp.full(50, jnp.inf)).any()


SPACES = [SPD(2), *exhaustive(SPD(3), SPD(5), Hyperbolic(2), Euclidean(3), Product(SPD(2), Hyperbolic(2)))]


@pytest.mark.parametrize("space", SPACES, ids=name)
def test_a_mean_loss_is_such_a_sum(space):
    """Of proposals for records at opposite ends, near or far: the same exponent, parts in their bounds."""
    count, ball = 80, GeodesicBall(space, space.origin, 1.2)
    law = GibbsMechanism(ball, 1.0).law(count)
    origin = jnp.asarray(space.origin)
    ends = jax.vmap(lambda sign: space.exp(origin, sign * 1.19 * space.frame(origin)[0]))(jnp.asarray([1.0, -1.0]))
    clusters = jnp.concatenate([jnp.repeat(ends[:1], 60, axis=0), jnp.repeat(ends[1:], 20, axis=0)])

    @jax.jit
    def terms(law, records, key):
        home, points, _ = law.at_home(records)
        center = home.center(points)
        thinning = home.target.thinning(home.ball, center, points, home.scale, home.support)
        proposal = make_proposal(space, center, home.growth(center, points), home.scale, home.support)
        x, tangent, distance, log_envelope = proposal.draw(key)
        certain = thinning.certain(tangent, distance)
        parts = jax.vmap(lambda index: thinning.part(index, x, tangent))(jnp.arange(count))
        level = home.target.level(home.ball, center, points)
        exact = (level - home.potential(x, center, points)) / home.scale
        return certain, thinning.weights @ parts, exact, parts, thinning.most(distance), log_envelope

    keys = jax.random.split(jax.random.key(3), 300)
    for records in (cap(space, origin, 1.2, count, 1), clusters):
        for scale in (1e-4, 0.02, 0.3):
            own = dataclasses.replace(law, scale=scale)
            certain, total, exact, parts, most, limit = map(
                np.asarray, jax.vmap(terms, (None, None, 0))(own, records, keys)
            )
            rounding = 1e-9 / scale
            np.testing.assert_allclose(certain - total, exact, atol=rounding, rtol=1e-9)
            assert parts.min() >= -rounding
            assert np.max(parts - most[:, None]) <= rounding
            assert np.max(certain - limit) < 1e-7


def test_the_bound_of_a_part_is_needed():
    """Where records lie far across, a part is nearly as large as is allowed for."""
    space, count = Hyperbolic(2), 80
    ball = GeodesicBall(space, space.origin, 1.2)
    law = GibbsMechanism(ball, 1.0).law(count)
    origin = jnp.asarray(space.origin)
    frame = space.frame(origin)
    records = jnp.repeat(
        jax.vmap(lambda sign: space.exp(origin, sign * 1.19 * frame[0]))(jnp.asarray([1.0, -1.0])), 40, 0
    )
    home, points, _ = law.at_home(records)
    thinning = home.target.thinning(home.ball, origin, points, home.scale, home.support)
    tangent = 0.05 * frame[1]
    part = thinning.part(0, space.exp(origin, tangent), tangent)
    assert 0.9 < float(part / thinning.most(jnp.asarray(0.05))) < 1.0


def test_only_where_one_hessian_is_the_least_of_all_records():
    def spares(mechanism, n):
        return mechanism.law(n).target.spares(mechanism.ball, n)

    on_matrices = GibbsMechanism(GeodesicBall(SPD(2), np.eye(2), 1.0), 1.0)
    assert spares(on_matrices, potential._FEW_RECORDS) and not spares(on_matrices, potential._FEW_RECORDS - 1)
    behind_a_barrier = GibbsMechanism(on_matrices.ball, 1.0, support_radius=1.0, barrier_radius=0.5)
    on_a_sphere = GibbsMechanism(GeodesicBall(Sphere(2), Sphere(2).origin, 0.7), 1.0)
    assert not spares(behind_a_barrier, 100) and not spares(on_a_sphere, 100)
