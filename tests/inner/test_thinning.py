"""Acceptance by a few records: its probability, that a mean loss is the sum that it supposes, and the law of draws."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from strategies import cap, exhaustive, name

from jaxgeodp import SPD, Euclidean, GeodesicBall, GibbsMechanism, Hyperbolic, Product, Sphere
from jaxgeodp.mechanisms import potential
from jaxgeodp.mechanisms.potential import Potential
from jaxgeodp.samplers.rejection import make_proposal, rejection_sample
from jaxgeodp.samplers.thinning import Thinning, accepted

# Parts of five records at distance 1, and what each may be at most; the last has no weight.
PARTS, LARGEST = np.array([0.1, 2.5, 0.0, 1.4, 9.0]), np.array([0.5, 2.5, 1.0, 1.5, 9.0])
WEIGHTS = np.array([0.1, 0.2, 0.4, 0.3, 0.0])
LIMIT = 0.3
DISTANCES = (0.05, 0.3, 1.0, 2.0)


RIGHT = {"total": LARGEST @ WEIGHTS, "weights": WEIGHTS * LARGEST, "parts": PARTS}
WRONG = {
    "rate": {"total": 0.8 * LARGEST @ WEIGHTS},
    "weights": {"weights": WEIGHTS},
    "padding": {"weights": np.append(WEIGHTS[:4] * LARGEST[:4], 0.4)},
    "share": {"parts": 0.85 * PARTS},
}


def a_thinning(total=RIGHT["total"], weights=RIGHT["weights"], parts=PARTS):
    """Points are twice as far as they should be, tangents thrice, so that none stands for another."""
    own = jnp.asarray(parts / LARGEST)
    return Thinning(
        lambda tangent, distance: -0.5 * tangent / 3.0,
        lambda index, point, tangent, distance: own[index] * (0.5 * point) * (tangent / 3.0) / distance**2,
        lambda distance: total * distance,
        jnp.asarray(weights),
    )


@functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 1})
def hits(key, distances, numbers):
    """One program for right and wrong numbers; its many rounds take longer than to optimize them."""
    limits = jnp.full(len(distances), LIMIT)
    return accepted(key, a_thinning(**numbers), 2.0 * distances, 3.0 * distances, distances, limits)


@pytest.mark.parametrize("planted", [None, *WRONG])
def test_the_probability_is_that_of_all_records(planted):
    """At each distance, of proposals of a block that are mixed, as exp(certain - limit - mean part) says."""
    count = 100_000  # the least mistake moves a share by seven standard errors
    numbers = RIGHT | (WRONG[planted] if planted else {})
    distances = jnp.tile(jnp.asarray(DISTANCES), count // len(DISTANCES))

    found = np.asarray(hits(jax.random.key(1), distances, numbers)).reshape(-1, len(DISTANCES)).sum(axis=0)
    p_values = [
        stats.binomtest(int(own), count // len(DISTANCES), math.exp(-LIMIT - t * (0.5 + WEIGHTS @ PARTS))).pvalue
        for t, own in zip(DISTANCES, found, strict=True)
    ]
    assert min(p_values) < 1e-6 if planted else min(p_values) > 1e-6


def test_rounds_of_a_small_block_are_independent():
    """Proposals that ask a dozen records each, one after another: the same numbers in each round would show."""
    shares = jnp.asarray([0.05, 0.15])
    thinning = Thinning(lambda *_: 0.0, lambda index, *_: shares[index], lambda t: 12.0 * t, jnp.ones(2))
    ones, limits = jnp.ones(8), jnp.zeros(8)
    found = jax.jit(jax.vmap(lambda key: accepted(key, thinning, ones, ones, ones, limits)))(
        jax.random.split(jax.random.key(4), 5000)
    )
    assert stats.binomtest(int(found.sum()), found.size, math.exp(-1.2)).pvalue > 1e-6


def test_what_is_certainly_refused_asks_no_record():
    distances = jnp.full(50, 1.0)
    nothing = dataclasses.replace(a_thinning(), share=lambda *_: jnp.nan)
    assert not accepted(jax.random.key(0), nothing, distances, distances, distances, jnp.full(50, jnp.inf)).any()


@pytest.mark.parametrize("field", ["share", "rate"])
def test_what_is_not_finite_is_refused(field):
    distances = jnp.full(5000, 1.0)
    broken = dataclasses.replace(a_thinning(), **{field: lambda *_: jnp.nan})
    found = accepted(jax.random.key(0), broken, 2.0 * distances, 3.0 * distances, distances, jnp.full(5000, 0.0))
    # Only proposals that ask no record are accepted where shares are NaN.
    most = 0.0 if field == "rate" else math.exp(-0.5 - LARGEST @ WEIGHTS)
    assert float(found.mean()) <= most + 4.0 * math.sqrt(most / 5000)


def on_a_line(key, num, block, support=None, center=0.3):
    """Draws of exp(-2 x^2) on the line, half of it certain, half by two records."""
    line = Euclidean(1)

    def share(index, x, tangent, distance):
        return jnp.where(index == 0, 1.0, 1.0 / 3.0) * jnp.sum((x - center) ** 2) / distance**2

    thinning = Thinning(
        lambda tangent, distance: -((center + tangent[0]) ** 2) + center**2,
        share,
        lambda distance: 1.5 * distance**2,
        jnp.asarray([0.5, 0.5]),
    )
    where = jnp.asarray([center])
    # About the centre: x^2 = (c + v)^2 is certain, and (x - c)^2 by records, of which 1.5 (.5 + .5/3) = 1.
    return rejection_sample(key, line, thinning, where, Parabola(-(center**2)), 1.0, num, block=block, support=support)


@dataclasses.dataclass(frozen=True)
class Parabola:
    """Lines below x^2 + offset."""

    offset: float
    bulk = jnp.asarray(8.0)

    def lines(self, lower, upper):
        values = jnp.full_like(lower, self.offset)
        return values, jnp.zeros_like(values)


@pytest.mark.parametrize("support", [None, GeodesicBall(Euclidean(1), np.zeros(1), 0.4)])
def test_draws_have_their_law_in_every_round(support):
    """Rounds of few proposals each, within a ball or not; a law of twice the variance is rejected."""
    reach = GeodesicBall(Euclidean(1), np.zeros(1), 4.0)
    draws = np.asarray(on_a_line(jax.random.key(2), 4000, 16, support or reach).points[:, 0])
    # exp(-x^2 - (x - .3)^2) is normal about .15 with variance 1/4.
    law = stats.norm(0.15, 0.5)
    ends = (-math.inf, math.inf) if support is None else (-0.4, 0.4)
    below, within = law.cdf(ends[0]), law.cdf(ends[1]) - law.cdf(ends[0])
    assert ends[0] <= draws.min() and draws.max() <= ends[1]
    assert len(np.unique(draws)) == len(draws)
    assert stats.kstest(draws, lambda x: np.clip((law.cdf(x) - below) / within, 0, 1)).pvalue > 1e-6
    if support is None:
        assert stats.kstest(draws, stats.norm(0.15, math.sqrt(0.5)).cdf).pvalue < 1e-6


SPACES = [Hyperbolic(2), *exhaustive(SPD(2), SPD(3), SPD(5), Euclidean(3), Product(SPD(2), Hyperbolic(2)))]


def two_ends(space, radius, count):
    """Three quarters of the records at one end of a diameter, the others at the other."""
    origin = jnp.asarray(space.origin)
    ends = jax.vmap(lambda sign: space.exp(origin, sign * 0.99 * radius * space.frame(origin)[0]))(
        jnp.asarray([1.0, -1.0])
    )
    few = count // 4
    return jnp.concatenate([jnp.repeat(ends[:1], count - few, axis=0), jnp.repeat(ends[1:], few, axis=0)])


@pytest.mark.parametrize("space", SPACES, ids=name)
def test_a_mean_loss_is_such_a_sum(space):
    """Of proposals for records at opposite ends, near or far: the same exponent, shares from 0 to 1."""
    count, ball = 80, GeodesicBall(space, space.origin, 1.2)
    law = GibbsMechanism(ball, 1.0).law(count)

    @jax.jit
    def terms(law, records, key):
        home, points, _ = law.at_home(records)
        center = home.center(points)
        thinning = home.target.thinning(home.ball, center, points, home.scale, home.support)
        proposal = make_proposal(space, center, home.growth(center, points), home.scale, home.support)
        x, tangent, distance, log_envelope = proposal.draw(key)
        certain, rate = thinning.certain(tangent, distance), thinning.rate(distance)
        shares = jax.vmap(lambda index: thinning.share(index, x, tangent, distance))(jnp.arange(count))
        total = jnp.sum(thinning.weights)
        mean = jnp.where(total > 0.0, thinning.weights @ shares / jnp.where(total > 0.0, total, 1.0), 0.0)
        level = home.target.level(home.ball, center, points)
        exact = (level - home.potential(x, center, points)) / home.scale
        return certain, rate * mean, exact, shares, log_envelope

    keys = jax.random.split(jax.random.key(3), 300)
    for records in (cap(space, jnp.asarray(space.origin), 1.2, count, 1), two_ends(space, 1.2, count)):
        for scale in (1e-4, 0.02, 0.3):
            own = dataclasses.replace(law, scale=scale)
            certain, lost, exact, shares, limit = map(np.asarray, jax.vmap(terms, (None, None, 0))(own, records, keys))
            np.testing.assert_allclose(certain - lost, exact, atol=1e-9 / scale, rtol=1e-9)
            assert shares.min() >= -1e-7 and shares.max() <= 1.0 + 1e-7
            assert np.max(certain - limit) < 1e-7


def test_the_bound_of_a_part_is_needed():
    """Across the way to a record, a part is nearly as large as is allowed for."""
    space, count = Hyperbolic(2), 80
    ball = GeodesicBall(space, space.origin, 1.2)
    law = GibbsMechanism(ball, 1.0).law(count)
    law = dataclasses.replace(law, scale=1e-4)
    origin = jnp.asarray(space.origin)
    records = two_ends(space, 1.2, count)
    home, points, _ = law.at_home(records)
    thinning = home.target.thinning(home.ball, origin, points, home.scale, home.support)
    tangent = 0.03 * space.frame(origin)[1]
    share = thinning.share(0, space.exp(origin, tangent), tangent, jnp.asarray(0.03))
    assert 0.9 < float(share) <= 1.0


class OfAllRecords(Potential):
    """The same exponent, for which all records are looked at."""

    def spares(self, ball, n):
        return False


@pytest.mark.parametrize("data", ["two ends", *exhaustive("spread")])
def test_few_records_and_all_draw_from_one_law(data):
    """Where half the proposals and more are rejected: acceptance and distances; a sixth less noise is rejected."""
    space, count = Hyperbolic(2), 66
    ball = GeodesicBall(space, space.origin, 6.0)
    law = GibbsMechanism(ball, 2.0).law(count)
    records = two_ends(space, 6.0, count)
    if data == "spread":
        records = cap(space, jnp.asarray(space.origin), 5.9, count, 1)
    target = OfAllRecords(**{own.name: getattr(law.target, own.name) for own in dataclasses.fields(law.target)})
    few, every, less = (
        own.simulated(jax.random.key(place), records, 6000)
        for place, own in enumerate(
            (law, dataclasses.replace(law, target=target), dataclasses.replace(law, scale=0.7 * law.scale))
        )
    )
    center = law.center(law.clipped(records))
    lengths, others, shorter = (
        np.asarray(jax.vmap(lambda x: space.dist(center, x))(own.points)) for own in (few, every, less)
    )
    assert stats.ks_2samp(lengths, others).pvalue > 1e-6 > stats.ks_2samp(shorter, others).pvalue
    shares = [float(own.acceptance) for own in (few, every)]
    assert max(shares) < 0.6
    errors = [share * (1 - share) / int(own.proposals) for share, own in zip(shares, (few, every), strict=True)]
    assert abs(shares[0] - shares[1]) < 5.0 * math.sqrt(sum(errors))


def test_only_where_one_hessian_is_the_least_of_all_records():
    def spares(mechanism, n):
        return mechanism.law(n).target.spares(mechanism.ball, n)

    on_matrices = GibbsMechanism(GeodesicBall(SPD(2), np.eye(2), 1.0), 1.0)
    assert spares(on_matrices, potential._FEW_RECORDS) and not spares(on_matrices, potential._FEW_RECORDS - 1)
    behind_a_barrier = GibbsMechanism(on_matrices.ball, 1.0, support_radius=1.0, barrier_radius=0.5)
    on_a_sphere = GibbsMechanism(GeodesicBall(Sphere(2), Sphere(2).origin, 0.7), 1.0)
    assert not spares(behind_a_barrier, 100) and not spares(on_a_sphere, 100)
