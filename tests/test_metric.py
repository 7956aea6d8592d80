"""One record, perturbed for itself: its law, its privacy by quadrature, its record, the refusals."""

import math
from decimal import Decimal

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from strategies import exhaustive, name

from jaxgeodp import SPD, Euclidean, Grassmann, MetricLaplace, PlanarShapes, Product, Rotations, Sphere
from jaxgeodp.mechanisms import release_by_chain

SOUTH = np.array([[0.0, 0.0, -1.0]])  # as far from the origin as can be


def cdf(epsilon, t):
    """Of the distance from the record on the sphere."""

    def mass(end):
        return quad(lambda s: math.exp(-epsilon * s) * math.sin(s), 0.0, end)[0]

    return mass(t) / mass(math.pi)


def test_epsilon_is_no_less_than_that_of_the_exact_diameter():
    """Which is no float: pi to 40 digits."""
    pi = Decimal("3.141592653589793238462643383279502884197")
    for epsilon in (1.0, 0.1, 3.0, 7.7):
        stated = Decimal(MetricLaplace(Sphere(2), epsilon).guarantee.epsilon)
        assert Decimal(epsilon) * pi < stated < Decimal(epsilon) * pi * (1 + Decimal("1e-15"))


@pytest.mark.parametrize("record", [SOUTH, np.array([[0.6, 0.0, 0.8]])], ids=["far end", "elsewhere"])
def test_draws_follow_the_law_and_a_wrong_scale_is_seen(record):
    draws = np.asarray(MetricLaplace(Sphere(2), 3.0).simulate(jax.random.key(0), record, 4000))
    angles = np.asarray(jax.vmap(lambda x: Sphere(2).dist(jnp.asarray(record[0]), x))(draws))
    grid = np.linspace(0.0, math.pi, 400)
    for epsilon, right in ((3.0, True), (3.3, False)):
        table = [cdf(epsilon, t) for t in grid]
        assert (stats.kstest(angles, lambda t, known=table: np.interp(t, grid, known)).pvalue > 1e-6) == right


def test_the_log_ratio_is_epsilon_times_the_distance_at_most():
    """On a grid of the sphere, normalised there; a normaliser that depended on the record would add to it."""
    rings, spokes = 200, 400
    t = (np.arange(rings) + 0.5) * math.pi / rings
    angles = (np.arange(spokes) + 0.5) * 2.0 * math.pi / spokes
    points = np.stack(
        [np.outer(np.sin(t), np.cos(angles)), np.outer(np.sin(t), np.sin(angles)), np.outer(np.cos(t), np.ones(spokes))]
    )
    points, area = points.reshape(3, -1).T, np.repeat(np.sin(t), spokes)
    mechanism = MetricLaplace(Sphere(2), 2.0)
    density = jax.jit(jax.vmap(mechanism.log_density, (0, None)))

    def normalised(record):
        log = np.asarray(density(points, record))
        return log - math.log(np.sum(np.exp(log) * area))

    one = np.array([[0.0, 0.6, 0.8]])
    for other in (np.array([[0.0, 0.8, 0.6]]), -one, np.array([[1.0, 0.0, 0.0]])):
        distance = float(Sphere(2).dist(jnp.asarray(one[0]), jnp.asarray(other[0])))
        largest = float(np.max(np.abs(normalised(one) - normalised(other))))
        assert 0.97 * 2.0 * distance < largest < 2.0 * distance + 1e-3
    assert largest < mechanism.guarantee.epsilon


@pytest.mark.parametrize(
    "space",
    [Sphere(2), *exhaustive(Sphere(3), Rotations(), PlanarShapes(5), Grassmann(4, 2), Product(Sphere(2), Rotations()))],
    ids=name,
)
def test_a_release_says_both_epsilons_and_nothing_of_the_record(space):
    mechanism = MetricLaplace(space, 4.0)
    origin = np.asarray(space.origin)
    good, bad = mechanism.release(origin[None]), mechanism.release(np.full_like(origin, np.nan)[None])
    for release in (good, bad):
        assert release.value.shape == space.shape and bool(space.belongs(jnp.asarray(release.value), 1e-9))
        guarantee = release.record["guarantee"]
        assert guarantee["kind"] == "pure" and guarantee["metric"]["epsilon"] == 4.0
        assert guarantee["epsilon"] == pytest.approx(4.0 * space.diameter) and release.record["n"] == 1
    assert {key: value for key, value in good.record.items() if key not in ("value", "created")} == {
        key: value for key, value in bad.record.items() if key not in ("value", "created")
    }


def test_a_chain_promises_nothing_in_units_of_distance():
    """Its record must not hold the epsilon per unit of distance that an exact draw has."""
    record = release_by_chain(MetricLaplace(Sphere(2), 4.0), [[0.0, 0.0, 1.0]], num_burnin=50).record
    assert record["guarantee"]["kind"] == "not proven"
    assert "metric" not in record["guarantee"] and "4.0" not in str(record["guarantee"])
    assert "moves" in record["numerics"]["note"]


def test_calls_are_refused_in_words():
    mechanism = MetricLaplace(Sphere(2), 1.0)
    for call, words in (
        (lambda: MetricLaplace("S2", 1.0), "must be a Manifold"),
        (lambda: MetricLaplace(SPD(2), 1.0), "bounded diameter"),
        (lambda: MetricLaplace(Euclidean(2), 1.0), "bounded diameter"),
        (lambda: MetricLaplace(Sphere(2), 0.0), "epsilon"),
        (lambda: MetricLaplace(Sphere(2), 1e13), "epsilon"),
        (lambda: mechanism.release(np.concatenate([SOUTH, SOUTH])), "one record, of shape"),
        (lambda: mechanism.release(SOUTH[0]), "shape"),
        (lambda: mechanism.release(SOUTH, adjacency="add-remove"), "private number of records"),
        (lambda: mechanism.release(SOUTH, numerics="grid"), "MetricLaplace"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
