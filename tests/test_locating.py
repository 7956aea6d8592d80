"""Means without a public ball: the stages, what they cost, what they find, and what no record may do."""

import dataclasses
import functools
import json
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import exhaustive, only_at_the_origin
from typer.testing import CliRunner

from jaxgeodp import (
    SPD,
    Axes,
    Euclidean,
    GeodesicBall,
    Grassmann,
    Hyperbolic,
    LaplaceMechanism,
    LocatedMechanism,
    PlanarShapes,
    Product,
    Rotations,
    Shapes3D,
    Sphere,
    WrappedGaussian,
    frechet_mean,
)
from jaxgeodp.bounds.rounding import SUPPOSED, supposed_mean_error
from jaxgeodp.checks import InputError
from jaxgeodp.cli.app import app
from jaxgeodp.domains.geodesic_ball import assumption_limit
from jaxgeodp.locating import centers as centers_module
from jaxgeodp.locating import law as law_module
from jaxgeodp.locating.centers import Noise
from jaxgeodp.locating.parts import Part, distances, joined, moved, parts_of, vectors, whole
from jaxgeodp.locating.tree_mean import joins_in_a_row, tree_mean
from jaxgeodp.manifolds import Manifold
from jaxgeodp.privacy import (
    GaussianDP,
    Ledger,
    PureDP,
    ZeroConcentratedDP,
    adversarial_neighbours,
    audit,
    grid,
)
from jaxgeodp.privacy.decimals import square, written

SPACES = [
    Euclidean(2),
    Hyperbolic(2),
    SPD(2),
    Sphere(2),
    Rotations(),
    PlanarShapes(4),
    Grassmann(4, 2),
    Product(Sphere(2), Euclidean(2)),
    Product(Sphere(1), Rotations()),
]
# One without end, a compact one, and a product of both.
ONE_OF_EACH_WAY = [Hyperbolic(2), Sphere(2), Product(Sphere(2), Euclidean(2))]
FURTHER = exhaustive(*(space for space in SPACES if space not in ONE_OF_EACH_WAY))
COMPACT = [space for space in SPACES if all(not part.open for part in parts_of(space))]
# Compact and not, real and complex; the others by --exhaustive.
FEW = [Sphere(2), Hyperbolic(2), PlanarShapes(4)]
# Each with a way of its own.
BETWEEN = [Sphere(2), Hyperbolic(2), SPD(2), Product(Sphere(2), Euclidean(2))]
EXTRINSIC = [Sphere(2), Rotations(), PlanarShapes(4)]


def few_of(spaces, few=FEW):
    """Some to run always, the rest with --exhaustive."""
    return [own for own in spaces if own in few] + exhaustive(*(own for own in spaces if own not in few))


DOMAIN = {Euclidean(2): 30.0, Product(Sphere(2), Euclidean(2)): 30.0}


def located(space, **budget):
    return LocatedMechanism(space, **budget, domain=DOMAIN.get(space))


def records_on(space, n, spread=0.3, away=2.0, seed=0):
    """Around a point away from the origin."""
    with jax.enable_x64(True):
        return np.asarray(_records(space, n, spread, min(away, 0.4 * _diameter(space)), seed))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _records(space, n, spread, away, seed):
    key = jax.random.key(seed)
    origin = jnp.asarray(space.origin)
    direction = space.random_tangent(key, origin)
    center = space.exp(origin, away / space.norm(origin, direction) * direction)

    def record(own):
        return space.project(space.exp(center, spread / math.sqrt(space.dim) * space.random_tangent(own, center)))

    return jax.vmap(record)(jax.random.split(jax.random.fold_in(key, 1), n))


def _diameter(space):
    return space.diameter if any(not part.open for part in parts_of(space)) else math.inf


# Geometry -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", few_of(COMPACT, EXTRINSIC), ids=str)
def test_extrinsic_vectors_are_isometric_nearby_and_come_back(space):
    with jax.enable_x64(True):
        points = jnp.asarray(records_on(space, 20, spread=1.0))

        def there_and_back(key, point):
            there = space.extrinsic(point)
            near = space.exp(point, 1e-5 * space.random_tangent(key, point))
            ratio = jnp.linalg.norm(there - space.extrinsic(near)) / space.dist(point, near)
            return there, space.dist(point, space.from_extrinsic(there)), ratio

        keys = jax.random.split(jax.random.key(1), 20)
        there, back, ratios = map(np.asarray, jax.jit(jax.vmap(there_and_back))(keys, points))
        np.testing.assert_allclose(np.linalg.norm(there, axis=1), space.extrinsic_radius, rtol=1e-12)
        assert back.max() < 1e-12
        assert ratios.min() > 0.99 and ratios.max() < 1.45


def test_vectors_do_not_depend_on_the_representative():
    shapes, planes = PlanarShapes(5), Grassmann(5, 2)
    with jax.enable_x64(True):
        shape = jnp.asarray(records_on(shapes, 1)[0])
        np.testing.assert_allclose(shapes.extrinsic(shape), shapes.extrinsic(shape * jnp.exp(0.7j)), atol=1e-14)
        plane = jnp.asarray(records_on(planes, 1)[0])
        turn = jnp.array([[0.6, 0.8], [-0.8, 0.6]])
        np.testing.assert_allclose(planes.extrinsic(plane), planes.extrinsic(plane @ turn), atol=1e-14)


def test_parts_of_products():
    mixed = Product(Sphere(2), Euclidean(1), Rotations(), SPD(2))
    first, second = parts_of(mixed)
    assert first.open and first.places == (1, 3) and not second.open and second.places == (0, 2)
    with jax.enable_x64(True):
        point = jnp.asarray(np.random.default_rng(0).normal(size=mixed.shape))
        np.testing.assert_array_equal(joined((first, second), [first.of(point), second.of(point)]), point)
    assert parts_of(Product(SPD(2), Euclidean(1)))[0].open and len(parts_of(Product(SPD(2), Euclidean(1)))) == 1


@pytest.mark.parametrize("space", few_of(SPACES), ids=str)
def test_what_is_seen_of_a_record_is_its_own(space):
    """Bit for bit: whatever the other records are; and integers in the ball that the theorem is about."""
    records = records_on(space, 8, spread=3.0)
    odd = records.copy()
    odd[1], odd[2], odd[3] = np.nan, 0.0, 1e300
    odd[4] = np.inf
    with jax.enable_x64(True):
        for part in parts_of(space):
            center = jnp.asarray(part.manifold.origin)
            for radius in (1e-3, 0.5, 5.0):
                steps = [grid.to_grid(np.asarray(vectors(part, center, radius, data)), 1.0) for data in (records, odd)]
                np.testing.assert_array_equal(*(own[[0, 5, 6, 7]] for own in steps))
                assert (np.sum(steps[1].astype(object) ** 2, axis=1) <= grid.STEPS**2).all()
            lengths = [np.asarray(distances(part, center, data)) for data in (records, odd)]
            np.testing.assert_array_equal(*(own[[0, 5, 6, 7]] for own in lengths))
            assert np.isinf(lengths[1][1]) and not np.isnan(lengths[1]).any()


@pytest.mark.parametrize("space", few_of([space for space in SPACES if len(parts_of(space)) == 1]), ids=str)
def test_a_centre_without_noise_is_the_mean(space):
    records = records_on(space, 200, spread=0.1, away=1.0)
    (part,) = parts_of(space)
    with jax.enable_x64(True):
        center = jnp.asarray(space.origin)
        mean = np.asarray(vectors(part, center, 3.0, records)).mean(axis=0)
        found = moved(part, center, 3.0, jnp.asarray(mean))
        assert float(space.dist(found, frechet_mean(space, records))) < 0.02
        assert float(space.dist(moved(part, center, 3.0, jnp.asarray(mean * math.nan)), center)) == 0.0
        far = moved(part, center, 1.0, 1e6 * jnp.ones(part.vector_length))
        assert np.isfinite(np.asarray(far)).all()


class Depths:
    """In place of a manifold: the longest way of a point to where it is, in joins."""

    def between(self, p, q, share):
        return jnp.maximum(p, q) + 1.0


@pytest.mark.parametrize("n", [1, 2, 255, 257, 700, 5000, 70_000])
def test_joins_in_a_row_are_counted(n):
    counted = float(tree_mean(Depths(), jnp.zeros((n, 1)))[0])
    assert counted <= joins_in_a_row(n) <= (9 if n < 256 else counted + 1)


@pytest.mark.parametrize("n", [1, 3, 257, *exhaustive(2, 255, 256, 700)])
@pytest.mark.parametrize("space", [Euclidean(2), Hyperbolic(2), *exhaustive(SPD(2), SPD(3))], ids=str)
def test_one_point_moves_a_tree_mean_by_its_share(space, n):
    """At most: less where space is curved."""
    points = records_on(space, n, spread=1.5, away=3.0)
    with jax.enable_x64(True):
        mean = jax.jit(tree_mean, static_argnums=0)
        before = mean(space, jnp.asarray(points))
        far = np.asarray(records_on(space, 1, spread=0.1, away=9.0, seed=3))[0]
        moves = []
        for place in {0, n // 2, n - 1}:
            other = points.copy()
            other[place] = far
            away = float(space.dist(jnp.asarray(points[place]), jnp.asarray(far)))
            moves.append(n * float(space.dist(before, mean(space, jnp.asarray(other)))) / away)
        assert max(moves) < 1.0 + 1e-6
        if isinstance(space, Euclidean):
            np.testing.assert_allclose(before, points.mean(axis=0), rtol=1e-12)
            assert min(moves) > 1.0 - 1e-6
        elif n > 1:
            assert float(space.dist(before, frechet_mean(space, points))) < 0.35


@pytest.mark.parametrize("space", [Hyperbolic(2), SPD(2), *exhaustive(SPD(3))], ids=str)
def test_joins_are_as_exact_as_supposed_at_the_rim_of_the_domain(space):
    """Between opposite points, twice the domain's radius apart; exp and log lose all digits there."""
    reach = space.usual_reach
    with jax.enable_x64(True):
        origin = jnp.asarray(space.origin)
        supposed = supposed_mean_error(GeodesicBall(space, origin, reach), 1)

        def errors(key):
            v = space.random_tangent(key, origin)
            v = reach / space.norm(origin, v) * v
            p, q = space.exp(origin, v), space.exp(origin, -v)
            naive = space.project(space.exp(p, 0.5 * space.log(p, q)))
            return space.dist(origin, space.between(p, q, 0.5)), space.dist(origin, naive)

        own, naive = jax.jit(jax.vmap(errors))(jax.random.split(jax.random.key(0), 300))
    assert float(own.max()) < supposed < float(jnp.nanmax(naive))


@pytest.mark.parametrize(
    ("space", "parameter"),
    [(SPD(2), "epsilon"), (Sphere(2), "epsilon"), *exhaustive((SPD(3), "mu"), (SPD(6), "epsilon"))],
    ids=str,
)
def test_a_search_costs_less_of_many_records(space, parameter):
    plans = [located(space, **{parameter: 1.0}).law(n).schedule for n in (10**4, 10**6, 10**9)]
    assert plans[0].rest <= plans[1].rest == plans[2].rest and plans[2].rest > 0.85


def test_a_search_is_possible_for_any_number():
    assert located(SPD(2), epsilon=1.0).law(1000).schedule.rest < 0.75
    with pytest.raises(ValueError, match=r"too few.*a smaller domain"):
        located(SPD(2), epsilon=1.0).law(300)
    assert LocatedMechanism(SPD(2), epsilon=1.0, domain=5.0).law(300).schedule.draws > 0


@pytest.mark.parametrize("space", few_of(SPACES, BETWEEN), ids=str)
def test_a_point_between_divides_the_geodesic(space):
    points = records_on(space, 40, spread=0.5)
    with jax.enable_x64(True):
        p, q = jnp.asarray(points[:20]), jnp.asarray(points[20:])

        def apart(x, y, t):
            """From the point by logarithms; and a derivative where both are one."""
            slope = jax.grad(lambda s: jnp.sum(space.between(x, x, s).real))(t)
            return space.dist(space.between(x, y, t), space.exp(x, t * space.log(x, y))), slope

        of_all = jax.jit(jax.vmap(apart, (0, 0, None)))
        for share in (0.0, 0.3, 1.0):
            distances, slopes = of_all(p, q, share)
            assert float(distances.max()) < 1e-7 and np.isfinite(np.asarray(slopes)).all()


def test_the_law_of_a_drawn_centre_is_that_of_its_theorem():
    """Distances from the tree mean, in releases and in simulations, against the gamma law of the plane."""
    from scipy.stats import gamma, kstest

    space, n, radius = Euclidean(2), 400, 3.0
    data = records_on(space, n)
    with jax.enable_x64(True):
        stage = centers_module.drawn_center(whole(space), PureDP(0.5), [radius], n)
        scale = 2 * radius / n / 0.5
        find = stage.finder("test", jax.ShapeDtypeStruct(data.shape, data.dtype))
        released = np.array([find(np.zeros(2), radius, data).center for _ in range(100)])
        keys = jax.random.split(jax.random.key(0), 3000)
        simulated = jax.jit(jax.vmap(lambda key: stage.simulated(key, jnp.zeros(2), jnp.asarray(radius), data)))(keys)
        mean = data.mean(axis=0)
        for values, times in ((released, 1.0), (np.asarray(simulated), 1.0), (np.asarray(simulated), 0.8)):
            p = kstest(np.linalg.norm(values - mean, axis=1) / scale, gamma(2, scale=times).cdf).pvalue
            assert p > 1e-6 if times == 1.0 else p < 1e-6


# Budget ---------------------------------------------------------------------------------------------------


def test_searches_share_a_program():
    """The region of a second description compiles nothing, whatever its budget is; one on another sphere does."""
    kinds = []
    for space, epsilon in ((Sphere(2), 1.0), (Sphere(2), 2.0), (Sphere(2, 0.5), 2.0)):
        leaves, structure = jax.tree.flatten(LocatedMechanism(space, "tangent", epsilon=epsilon).law(400).simulation)
        kinds.append((structure, [(np.shape(leaf), jnp.asarray(leaf).dtype) for leaf in leaves]))
    assert kinds[0] == kinds[1] != kinds[2]


@pytest.mark.parametrize("budget", [{"mu": 5.0}, {"epsilon": 0.5}], ids=str)
@pytest.mark.parametrize("space", ONE_OF_EACH_WAY, ids=str)
def test_the_stages_never_cost_more_than_the_whole(space, budget):
    check_costs(located(space, **budget), 10_000)


@pytest.mark.exhaustive  # of other spaces and numbers
@settings(max_examples=30, deadline=None)
@given(st.sampled_from(SPACES), st.floats(0.05, 20.0), st.booleans(), st.integers(10_000, 10**7))
def test_the_stages_never_cost_more_than_the_whole_whatever_the_numbers(space, strength, pure, n):
    try:
        own = located(space, epsilon=strength) if pure else located(space, mu=strength)
        own.law(n)
    except ValueError as refusal:
        assert "too few" in str(refusal) or "limit" in str(refusal) or "double precision" in str(refusal)
        return
    check_costs(own, n)


def check_costs(own, n):
    plan, pure, strength = own.law(n).schedule, own.epsilon is not None, own.epsilon or own.mu
    rounds = [plan.rounds if part.open else 0 for part in plan.parts]
    centers = [plan.rounds if part.open else 1 for part in plan.parts]
    moved_by = 2 * grid.STEPS
    if pure:
        cost = sum(rounds) * Fraction(2, plan.counts) + Fraction(2, plan.last_counts)
        for part, noise, times in zip(plan.parts, plan.centers, centers, strict=True):
            draw = plan.draws > 0 and part.open
            assert plan.draws in (0, plan.rounds)
            cost += times * (
                Fraction(written(plan.drawn.epsilon))
                if draw
                else Fraction(math.isqrt(part.vector_length * moved_by**2), noise.scale)
            )
        assert cost + Fraction(written(plan.rest)) <= Fraction(written(strength))
        assert plan.rest > 0.55 * strength  # of the shares that there are at most
    else:
        cost = sum(rounds) * Fraction(9, 8 * plan.counts**2) + Fraction(9, 8 * plan.last_counts**2)
        for part, noise, times in zip(plan.parts, plan.centers, centers, strict=True):
            draws = plan.draws if part.open else 0
            assert plan.draws in (0, plan.rounds)
            cost += draws * Fraction(square(written(plan.drawn.mu))) / 2
            cost += (times - draws) * Fraction(moved_by**2, 2 * noise.scale**2)
        assert cost + Fraction(square(written(plan.rest))) / 2 <= Fraction(square(written(strength))) / 2
        assert plan.rest**2 > 0.55 * strength**2
    assert own.guarantee == (PureDP(strength) if pure else GaussianDP(strength).to_zcdp())
    assert max(plan.left_out) <= 0.25 * n + 1


def test_calls_are_refused_in_words():
    for call, words in (
        (lambda: LocatedMechanism(SPD(2)), "epsilon or mu"),
        (lambda: LocatedMechanism(SPD(2), epsilon=1.0, mu=1.0), "epsilon or mu"),
        (lambda: LocatedMechanism(SPD(2), epsilon=-1.0), "epsilon"),
        (lambda: LocatedMechanism(Euclidean(2), epsilon=1.0), "give domain"),
        (lambda: LocatedMechanism(Sphere(2), epsilon=1.0, domain=1.0), "leave out domain"),
        (lambda: LocatedMechanism(SPD(2), epsilon=1.0, domain=-1.0), "domain"),
        (lambda: LocatedMechanism(SPD(2), "wrapped", mu=1.0), "does not release"),
        (lambda: LocatedMechanism(SPD(2), "best", mu=1.0), "must be one of"),
        (lambda: LocatedMechanism(SPD(2), epsilon=1.0, shares=(0.5, 0.4, 0.2)), "below 1"),
        (lambda: LocatedMechanism(SPD(2), epsilon=1.0, shares=(0.0, 0.1, 0.1)), "at least 1e-6"),
        (lambda: LocatedMechanism(Euclidean(2), mu=1e-200, domain=1.0), "between 1e-30"),
        (lambda: LocatedMechanism(Hyperbolic(2), mu=1.0, domain=40.0), "domain must be between"),
        (lambda: LocatedMechanism(Euclidean(2), mu=1.0, domain=1e-320), "domain must be between"),
        (lambda: LocatedMechanism(SPD(2), epsilon=1.0, shares=(1e-9,) * 3), "at least 1e-6"),
        (lambda: located(SPD(2), mu=1.0).release(np.zeros((9, 2, 2)), adjacency="add-remove"), "give epsilon"),
        (
            lambda: LocatedMechanism(SPD(3), epsilon=1.0).law(100),
            "n = 100 records are too few.*a smaller domain.*or [0-9]+ records",
        ),
        (lambda: LocatedMechanism(SPD(3), epsilon=1.0).law(2), "too few"),
        (lambda: LocatedMechanism(SPD(3), epsilon=1.0).law(1), "n >= 2"),
        (lambda: LocatedMechanism(_Odd(), epsilon=1.0), "cannot find a centre"),
        (lambda: LocatedMechanism(Sphere(2), epsilon=1.0).log_density(None, np.zeros((999, 3))), "not known"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


@dataclasses.dataclass(frozen=True)
class _Odd(Manifold):
    dim = 2
    shape = (2,)
    curvature_bounds = (0.0, 1.0)

    def inner(self, point, u, v):
        return jnp.sum(u * v)

    def exp(self, point, tangent):
        return point + tangent


# What is found --------------------------------------------------------------------------------------------


@pytest.mark.exhaustive  # that releases are near the mean is tried below
@pytest.mark.parametrize("space", [*ONE_OF_EACH_WAY, *FURTHER], ids=str)
def test_simulated_releases_are_nearly_those_about_the_true_ball(space):
    """Median error against that with the smallest ball given, for the same whole budget."""
    n, mu = 1000, 1.0
    data = records_on(space, n)
    with jax.enable_x64(True):
        mean = frechet_mean(space, data)
        radius = float(jax.vmap(lambda x: space.dist(mean, x))(data).max())
        oracle = WrappedGaussian(GeodesicBall(space, mean, min(1.001 * radius, 0.9 * assumption_limit(space))), mu)
        errors = [
            np.median(jax.jit(jax.vmap(lambda x: space.dist(mean, x)))(mechanism.simulate(jax.random.key(0), data, 60)))
            for mechanism in (located(space, mu=mu), oracle)
        ]
    assert errors[0] < 1.5 * errors[1]
    assert errors[0] > 0.3 * errors[1], "planted: no noise at all would be better than the oracle"


@pytest.mark.parametrize(
    ("space", "budget"),
    [
        (Hyperbolic(2), {"epsilon": 30.0}),
        (Product(Sphere(2), Euclidean(2)), {"mu": 8.0}),
        *exhaustive(
            (SPD(2), {"epsilon": 30.0}),
            (SPD(2), {"mu": 8.0}),
            (Sphere(2), {"mu": 8.0}),
            (Sphere(2), {"epsilon": 30.0}),
            (Product(Sphere(2), Euclidean(2)), {"epsilon": 30.0}),
        ),
    ],
    ids=str,
)
def test_releases_find_the_ball_and_say_so(space, budget, tmp_path):
    """With a budget so large that no search fails."""
    # As many as below: one program. Without end at the rim of the domain, where draws about a mean are needed.
    data = records_on(space, 700, away=9.0 if space == Hyperbolic(2) else 2.0)
    own = located(space, **budget)
    ledger = Ledger(tmp_path / "budget.db", own.guarantee)
    release = own.release(data, ledger)
    with jax.enable_x64(True):
        error = float(space.dist(jnp.asarray(release.value), frechet_mean(space, data)))
    assert error < 0.05
    record = release.record
    plan = own.law(700).schedule
    assert plan.draws == plan.rounds or space != Hyperbolic(2)
    stages = sum((2 * plan.rounds) if part.open else 1 for part in plan.parts) + 1
    assert len(record["stages"]) == stages and record["ball"]["radius"] == record["stages"][-1]["radius"]
    assert record["rounds"] == plan.rounds and record["guarantee"]["kind"] == (
        "pure" if "epsilon" in budget else "zcdp"
    )
    assert 0.2 < record["ball"]["radius"] < 4.0
    assert ledger.account().releases == 1 and not any(float(left) > 0 for left in ledger.account().left.values())
    assert json.loads(release.to_json()) == record


@pytest.mark.parametrize(
    ("space", "budget"),
    [
        (Hyperbolic(2), {"epsilon": 3.0}),
        (Product(Sphere(2), Euclidean(2)), {"mu": 1.0}),
        *exhaustive(
            (SPD(2), {"epsilon": 3.0}),
            (SPD(2), {"mu": 1.0}),
            (Sphere(2), {"mu": 1.0}),
            (Sphere(2), {"epsilon": 3.0}),
            (Product(Sphere(2), Euclidean(2)), {"epsilon": 3.0}),
        ),
    ],
    ids=str,
)
def test_the_noise_that_is_drawn_is_the_noise_that_is_paid_for(space, budget, monkeypatch):
    """Of every draw of one release: sampler and scale; what they cost, added anew, and the last stage's scale."""
    own, data = located(space, **budget), records_on(space, 700)
    drawn, real_noise, real_secret = [], grid.with_noise, grid.in_secret
    real_draw = centers_module.first_complete

    def with_noise(draw, steps, scale):
        drawn.append((draw.__name__, scale, len(steps)))
        assert np.abs(steps).max() <= 700 * grid.STEPS and all(isinstance(step, int) for step in steps)
        return real_noise(draw, steps, scale)

    def in_secret(draw, counts, threshold, scale):
        drawn.append((draw.__name__, scale, 0))
        assert counts == sorted(counts) and counts[-1] <= 700 and 700 - threshold in plan.left_out
        return real_secret(draw, counts, threshold, scale)

    def first_complete(draw):
        drawn.append(("a draw", None, 0))
        return real_draw(draw)

    monkeypatch.setattr(centers_module, "first_complete", first_complete)
    monkeypatch.setattr(grid, "with_noise", with_noise)
    monkeypatch.setattr(grid, "in_secret", in_secret)
    plan = own.law(700).schedule
    record = own.release(data).record
    cost, moved_by = Fraction(0), 2 * grid.STEPS
    for (name, scale, length), before, stage in zip(drawn, [{}, *record["stages"]], record["stages"], strict=False):
        if name == "a draw":
            pure = "epsilon" in budget
            strength = plan.drawn.epsilon if pure else plan.drawn.mu
            assert stage["noise"] == ("LaplaceMechanism" if pure else "RiemannianGaussian")
            least = 2.0 * before["radius"] / 700 / strength  # flat and homogeneous, or curved below
            assert least <= stage["scale"] < 1.2 * least and stage["epsilon" if pure else "mu"] == strength
            assert ("Reimherr" if pure else "Theorem P") in stage["theorem"]
            assert "2 r/n" in stage["sensitivity"]["formula"]
            cost += Fraction(written(strength)) if pure else Fraction(square(written(strength))) / 2
            continue
        assert stage["scale"] == scale
        if "epsilon" in budget:
            assert name == ("discrete_laplace" if length else "first_above")
            cost += Fraction(math.isqrt(length * moved_by**2), scale) if length else Fraction(2, scale)
        else:
            assert name == ("discrete_gaussian" if length else "first_above")
            cost += Fraction(moved_by**2, 2 * scale**2) if length else Fraction(9, 8 * scale**2)
    left = Fraction(written(plan.rest)) if "epsilon" in budget else Fraction(square(written(plan.rest))) / 2
    whole = Fraction(3) if "epsilon" in budget else Fraction(1, 2)
    assert 0.999 * whole <= cost + left <= whole
    kind = LaplaceMechanism if "epsilon" in budget else WrappedGaussian
    ball = GeodesicBall(space, space.origin, record["ball"]["radius"])
    assert record["scale"] == pytest.approx(kind(ball, plan.rest).scale(700), rel=1e-9)


def test_releases_have_the_law_of_simulations():
    """Of real releases, whose noise is of integers: the values about the mean, and the radii; by Kolmogorov & "
    "Smirnov."""
    from scipy.stats import ks_2samp

    space = Euclidean(1)
    own = LocatedMechanism(space, mu=3.0, domain=10.0)  # one program of simulations with the audits below
    data = records_on(space, 60)
    released = [own.release(data) for _ in range(60)]
    with jax.enable_x64(True):
        simulated = np.asarray(own.simulate(jax.random.key(3), data, 4000))[:, 0]
    values = np.array([float(release.value[0]) for release in released])
    assert ks_2samp(values, simulated).pvalue > 1e-6
    center = np.median(simulated)
    assert ks_2samp(center + 0.1 * (values - center), simulated).pvalue < 1e-6, "planted: a tenth of the noise"


def test_a_radius_that_no_count_reaches_is_at_most_twice_the_last():
    radii = (1.0, 2.0, 4.0, 8.0)
    found = [int(law_module.place_of(np, 3, radii, last)) for last in (math.inf, 4.0, 2.0, 1.0, 0.1)]
    assert found == [3, 3, 2, 1, 0] and int(law_module.place_of(np, 1, radii, math.inf)) == 1


@pytest.mark.exhaustive
def test_without_that_end_some_releases_have_noise_of_the_domain(monkeypatch):
    """Where the noise of a threshold is large; without that, a few releases in a thousand have noise of the domain."""
    space, data = Euclidean(1), records_on(Euclidean(1), 200)

    def errors(draws):  # another number of them is another program
        with jax.enable_x64(True):
            own = LocatedMechanism(space, mu=1.0, domain=30.0)
            return np.abs(np.asarray(own.simulate(jax.random.key(5), data, draws))[:, 0] - data.mean())

    found = errors(3000)
    assert found.max() < 12.0 * np.median(found)
    monkeypatch.setattr(law_module, "place_of", lambda module, fired, radii, _: module.clip(fired, 0, len(radii) - 1))
    assert errors(3001).max() > 12.0 * np.median(found), "planted: no such end"


@pytest.mark.exhaustive  # as simulations find them
@pytest.mark.parametrize("budget", [{"mu": 1.0}, {"epsilon": 1.0}], ids=str)
def test_data_at_the_rim_of_the_domain_are_found(budget):
    """By draws about a mean, whose noise does not grow; that of sums does, by sinh(9)/9."""
    space, n = Hyperbolic(2), 1000  # with mu, a program of simulations above
    data = records_on(space, n, away=9.0)
    with jax.enable_x64(True):
        own = located(space, **budget)
        assert own.law(n).schedule.draws == own.law(n).schedule.rounds
        mean = frechet_mean(space, data)
        values = own.simulate(jax.random.key(1), data, 60)
        errors = np.asarray(jax.jit(jax.vmap(lambda x: space.dist(mean, x)))(values))
    assert errors.max() < (0.06 if "mu" in budget else 0.2)


def test_the_whole_on_a_grid():
    release = located(SPD(2), mu=1.0).release(records_on(SPD(2), 700), numerics="grid")
    assert "integers" in release.record["numerics"]["note"]
    # The theorem of integers, and what is supposed of a mean that is computed in floating point.
    assert "release: docs/mathematics.md, Theorem N" in release.record["guarantee"]["theorem"]
    assert SUPPOSED in release.record["guarantee"]["theorem"] and SUPPOSED in release.record["numerics"]["note"]
    pure = LocatedMechanism(Sphere(2), "tangent", epsilon=5.0).release(records_on(Sphere(2), 700), numerics="grid")
    assert "Theorem N" in pure.record["guarantee"]["theorem"] and "Hardt" not in pure.record["guarantee"]["theorem"]
    assert isinstance(located(SPD(2), mu=1.0).guarantee, ZeroConcentratedDP)
    with pytest.raises(ValueError, match="grid"):
        located(SPD(2), epsilon=1.0).release(np.tile(np.eye(2), (2000, 1, 1)), numerics="grid")


def test_the_time_that_depends_on_the_data_is_told():
    """That of the release, whatever is true of the centres."""
    timing = LocatedMechanism(SPD(2), "gibbs", mu=1.0, domain=3.0).law(5000).terms.timing
    assert "of the release the running time depends on the data" in timing and timing.startswith("of centres")


def test_a_private_number_of_records():
    record = located(Sphere(2), epsilon=2.0).release(records_on(Sphere(2), 900), adjacency="add-remove").record
    assert abs(record["n"] - 900) < 150 and len(record["stages"]) == 2 and record["guarantee"]["epsilon"] == 2.0
    assert record["ball"]["radius"] == record["stages"][-1]["radius"]


def hostile(space, n):
    """Data that no search was made for."""
    usual, far = records_on(space, n), records_on(space, n, away=9.0, seed=5)
    origin = np.broadcast_to(np.asarray(space.origin), usual.shape)
    some = np.arange(n)
    where = (slice(None), *(None,) * len(space.shape))
    yield "two clusters", np.where((some % 2 == 0)[where], usual, far)
    yield "some far away", np.where((some % 20 == 0)[where], far, usual)
    yield "all equal", np.broadcast_to(usual[:1], usual.shape)
    yield "at the origin", origin
    yield "no points", np.full(usual.shape, np.nan)
    yield "huge", usual * 1e200
    yield "nothing", usual * 0.0


@pytest.mark.parametrize("space", [Sphere(2), *exhaustive(SPD(2), Euclidean(2), Rotations())], ids=str)
def test_any_records_end_in_a_point(space):
    own = located(space, mu=1.0)
    for name, data in hostile(space, 300):
        release = own.release(data)
        assert np.isfinite(release.value).all() and bool(space.belongs(jnp.asarray(release.value), 1e-5)), name
    data = dict(hostile(space, 300))["all equal"]
    with jax.enable_x64(True):
        assert float(space.dist(jnp.asarray(own.release(data).value), jnp.asarray(data[0]))) < 0.5


def test_a_ball_that_cannot_be_made_releases_the_centre(monkeypatch):
    """After the charge nothing is refused."""

    data = records_on(Sphere(2), 300)
    monkeypatch.setattr(law_module, "GeodesicBall", only_at_the_origin(OverflowError))
    release = located(Sphere(2), mu=1.0).release(data)
    record = release.record
    np.testing.assert_array_equal(release.value, record["stages"][0]["center"])
    assert record["scale"] is None and "no ball" in record["sampler"]["name"] and record["sensitivity"]["value"] is None


def test_the_page_says_that_the_ball_was_found(tmp_path):
    located(Sphere(2), mu=1.0).release(records_on(Sphere(2), 300)).save(tmp_path / "release.json")
    command = ["show", f"{tmp_path}/release.json", "--html", f"{tmp_path}/page.html"]
    assert CliRunner().invoke(app, command).exit_code == 0
    page = " ".join((tmp_path / "page.html").read_text().split())
    assert "Found with a part of the budget" in page and "around a public centre" not in page


# Command line ---------------------------------------------------------------------------------------------


def test_a_release_without_a_ball(tmp_path):
    np.save(tmp_path / "data.npy", records_on(SPD(2), 700))
    common = ["release", f"{tmp_path}/data.npy", "--manifold", "spd", "--out", f"{tmp_path}/release.json"]
    done = CliRunner().invoke(app, [*common, "--mu", "1", "--center", "auto", "--radius", "auto"])
    assert done.exit_code == 0, done.output
    record = json.loads((tmp_path / "release.json").read_text())
    assert len(record["stages"]) == 7 and record["guarantee"]["rho"] == 0.5
    assert "that was found" in done.output and "No expected error is stated" in " ".join(done.output.split())
    for more, words in (
        (["--epsilon", "1", "--center", "auto"], "must be given together"),
        (["--epsilon", "1", "--radius", "auto", "--center", "origin"], "must be given together"),
        (["--epsilon", "0.1", "--center", "auto", "--radius", "auto"], "too few"),
        (["--epsilon", "1", "--center", "origin", "--radius", "1", "--domain", "3"], "--domain is only for"),
        (["--epsilon", "1", "--center", "origin", "--radius", "wide"], "must be a number"),
        (
            ["--epsilon", "1", "--center", "auto", "--radius", "auto", "--delta", "0.1", "--mechanism", "kng"],
            "--delta 0",
        ),
    ):
        done = CliRunner().invoke(app, [*common, *more, "--overwrite"])
        assert done.exit_code == 2 and words in " ".join(done.output.split()), done.output


def test_the_part_of_a_record_is_hashable():
    assert hash(Part(SPD(2), (0,))) == hash(Part(SPD(2), (0,)))


def test_plans_and_audits_of_searches():
    runner = CliRunner()
    plan = ["plan", "--manifold", "sphere(2)", "--radius", "auto", "--n", "1000", "--epsilon", "1"]
    done = runner.invoke(app, [*plan, "--mu", "1"])
    assert done.exit_code == 0, done.output
    share = located(Sphere(2), epsilon=1.0).law(1000).schedule.rest
    words = " ".join(done.output.split())
    assert f"release: LaplaceMechanism, epsilon = {share:.4g}" in words and f"with {1.0 / share:.2f} times" in words
    assert "release: WrappedGaussian, mu = " in words
    done = runner.invoke(app, [*plan, "--mu", "0.01", "--json"])  # the one that cannot be is told, too
    found = json.loads(done.output)
    assert found["n"] == 1000 and [set(own) & {"epsilon", "mu"} for own in found["searches"]] == [{"epsilon"}, {"mu"}]
    pure, refused = found["searches"]
    assert pure["release"]["mechanism"] == "LaplaceMechanism" and pure["release"]["epsilon"] == share
    assert len(pure["release"]["errors"]) == 5 and "too few" in refused["refusal"]
    for more, said in (
        (["--center", "origin"], "must be given together"),
        (["--plot", "plan.png"], "--plot needs a public ball"),
        (["--n", "3"], "too few"),
        (["--domain", "2"], "leave out domain"),
    ):
        done = runner.invoke(app, [*plan, *more])
        assert done.exit_code == 2 and said in " ".join(done.output.split())
    audited = ["audit", "--manifold", "euclidean(1)", "--radius", "auto", "--domain", "10", "--mu", "3", "--n", "60"]
    done = runner.invoke(app, [*audited, "--draws", "4000"])
    assert done.exit_code == 0 and "rho >= " in done.output and "promised 4.5: not contradicted" in done.output
    done = runner.invoke(app, [*audited, "--draws", "4000", "--n", "5"])
    assert done.exit_code == 2 and "too few" in done.output


@dataclasses.dataclass
class _Claims:
    """A mechanism that promises less than it spends."""

    mechanism: LocatedMechanism
    guarantee: ZeroConcentratedDP

    @property
    def manifold(self):
        return self.mechanism.manifold

    def simulate(self, key, data, num):
        return self.mechanism.simulate(key, data, num)


def test_an_audit_finds_a_search_that_spends_more_than_it_promises():
    """Of the pairs that jump from one end of the domain to the other."""
    own = LocatedMechanism(Euclidean(1), mu=3.0, domain=10.0)
    data, neighbour = adversarial_neighbours(GeodesicBall(Euclidean(1), [0.0], 10.0), 60)["centre"]
    found = audit(own, data, neighbour, draws=4_000)
    assert 0.25 * own.guarantee.rho < found.lower_bound <= found.promised == own.guarantee.rho and not found.violated
    planted = audit(_Claims(own, ZeroConcentratedDP(0.25 * own.guarantee.rho)), data, neighbour, draws=4_000)
    assert planted.violated and planted.lower_bound == found.lower_bound


@pytest.mark.parametrize("space", [Sphere(2, 0.25), Sphere(2, 4.0), Rotations(), Axes(2)], ids=str)
def test_extrinsic_vectors_have_length_one_at_most(space):
    """Their sensitivity is that of vectors in the unit ball, whatever the size of the space."""
    (part,) = parts_of(space)
    keys = jax.random.split(jax.random.key(0), 20)
    records = jax.vmap(lambda key: space.exp(space.origin, space.random_tangent(key, space.origin)))(keys)
    lengths = jnp.linalg.norm(vectors(part, jnp.asarray(space.origin), jnp.asarray(1.0), records), axis=1)
    assert jnp.all(lengths <= 1.0 + 1e-9) and jnp.max(lengths) > 0.99


def test_what_a_search_cannot_do_is_refused():
    for strength in (1e-31, 1e31):
        with pytest.raises(InputError, match="must be between 1e-30 and 1e30"):
            LocatedMechanism(Sphere(2), epsilon=strength)
    with pytest.raises(InputError, match="cannot find a centre"):
        LocatedMechanism(Product(Hyperbolic(2), Shapes3D(5)), epsilon=1.0, domain=2.0)
    assert LocatedMechanism(Sphere(2), epsilon=1.0).reach == math.inf
    with pytest.raises(InputError, match="must be real numbers, got text"):
        LocatedMechanism(Sphere(2), epsilon=1.0).release([["a", "b", "c"]] * 900)


def test_so_many_records_suffice_that_centres_have_little_noise():
    """A sum has the noise of its integers; a draw for epsilon 2d/(n epsilon) in units of R, as a Laplace vector has."""
    summed = located(SPD(2), epsilon=1.0, shares=(0.1, 0.2, 0.1)).law(10**4).schedule
    summed = dataclasses.replace(summed, draws=0, centers=(Noise(10**10),), counts=1, last_counts=1)
    assert summed.enough == math.ceil(4.0 * 10**10 * math.sqrt(6.0) / grid.STEPS)
    drawn = dataclasses.replace(summed, draws=1, drawn=PureDP(0.01))
    assert drawn.enough == math.ceil(4.0 * 2.0 * 3.0 / 0.01)
    # The noise of a Gaussian draw is that of the sum for the same share.
    assert dataclasses.replace(drawn, drawn=GaussianDP(0.01)).enough == summed.enough


def test_points_between_which_nothing_can_be_computed_are_passed_over():
    """One coordinate that is not finite is enough for a point to be none."""
    points = jnp.array([[1e308, 0.0], [-1e308, 1.0], [0.5, 0.5]])
    assert jnp.all(jnp.isfinite(tree_mean(Euclidean(2), points)))
