"""What a search spends, added up again in exact fractions from the noise that its stages draw.

On every way there is: in one place and in rounds, idealized and on a grid, for epsilon, mu and rho. What a stage costs
is written here anew, from the theorems; the guarantees that the package states are what is tested.
"""

import dataclasses
import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from strategies import exhaustive

from jaxgeodp import (
    SPD,
    Euclidean,
    Grassmann,
    Hyperbolic,
    LocatedMechanism,
    PlanarShapes,
    Product,
    PureDP,
    Rotations,
    Sphere,
    ZeroConcentratedDP,
)
from jaxgeodp.bounds.comparison import rauch
from jaxgeodp.bounds.sensitivity import mean_sensitivity
from jaxgeodp.locating import SearchInRounds, centers, walk
from jaxgeodp.locating.parts import parts_of, vectors
from jaxgeodp.mechanisms import tangent_vectors, wrapped
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.decimals import written
from jaxgeodp.releases import add_remove
from jaxgeodp.releases.density import DensityLaw
from jaxgeodp.releases.vector import VectorLaw

# By which the integer vector of one record moves their sum, in Euclidean length: a diameter of their ball.
MOVED = 2 * grid.STEPS
# Of the whole, what stages must spend at least: scales are integers (measured: all but 6e-9 is spent), and what is
# drawn in floating point is supposed to be rounded (measured: .9971 of the whole, with 90,000 records).
LEAST_IN_INTEGERS, LEAST = 1 - Fraction(1, 10**7), Fraction(996, 1000)
# Of scales in floating point: a quotient and a product.
ROUNDED = Fraction(1, 2**51)

EPSILON, MU = {"epsilon": 4.1}, {"mu": 1.03}
SHARES = (0.11, 0.17, 0.07)
#: Without end, compact, and products of both, with a domain where one must be given.
SPACES = [
    (SPD(2), None),
    (Euclidean(3), 30.0),
    (Sphere(2), None),
    (PlanarShapes(4), None),
    (Product(Sphere(2), Euclidean(2)), 30.0),
]
FURTHER = [
    (Hyperbolic(2), None),
    (Rotations(), None),
    (Grassmann(4, 2), None),
    (Product(SPD(2), Euclidean(1)), 14.0),
    (Product(Sphere(1), Rotations()), None),
    (Product(Rotations(), Hyperbolic(2), Sphere(1)), None),
]
# With --exhaustive also for many records.
NUMBERS, MANY = [({}, 3_000), ({"shares": SHARES}, 3_000)], ({}, 90_000)
# Mechanism, budget and numerics; centres are draws in the first, and in the fourth where space is curved.
WAYS = [
    ("auto", EPSILON, "idealized"),
    ("tangent", EPSILON, "idealized"),
    ("tangent", EPSILON, "grid"),
    ("auto", MU, "idealized"),
    ("auto", MU, "grid"),
]


def searches(ways, spaces=SPACES, further=FURTHER):
    """What makes mechanisms; the budget, numerics, and n: some always, the rest with --exhaustive."""
    cases = []
    for (space, domain), (name, budget, numerics), (shares, n) in itertools.product(
        [*spaces, *further], ways, [*NUMBERS, MANY]
    ):
        make = functools.partial(LocatedMechanism, space, name, **budget, domain=domain, **shares)
        words = f"{space}, {name}, {numerics}, {budget}, n = {n}{', shares' if shares else ''}"
        always = n < MANY[1] and (space, domain) in spaces
        marks = () if always else pytest.mark.exhaustive
        cases.append(pytest.param(make, budget, numerics, n, id=words, marks=marks))
    return cases


# What is drawn --------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Drawn:
    """Noise of integers that was added; or a draw by a law in a ball, of so many records."""

    sampler: str
    scale: float
    length: int = 0
    law: DensityLaw | VectorLaw | None = None
    n: int = 0


@pytest.fixture
def drawn(monkeypatch):
    """All noise of a release, in its order; none is added. Nothing is computed of records, so that nothing compiles."""
    found = []

    def with_noise(draw, steps, scale, below=None):
        found.append(Drawn(draw.__name__, scale, len(steps)))
        return np.asarray(steps, float)

    def in_secret(draw, counts, threshold, scale):
        found.append(Drawn(draw.__name__, scale))
        return len(found) * len(counts) // 7 % len(counts)  # radii of several sizes

    def in_blocks(owner, function, *arguments):
        shape = () if function is not vectors else (arguments[0].vector_length,)
        return lambda *given: iter([np.zeros((len(given[-1]), *shape))])

    def ahead(owner, function, *arguments, **static):
        def moved(center, radius, mean):
            return np.asarray(center)

        def about(law, key, records):
            found.append(Drawn("a centre", law.scale, law=law, n=len(records)))
            return np.asarray(law.ball.center)

        return about if isinstance(arguments[1], DensityLaw) else moved

    def ready(law, shape):
        def draw(records):
            found.append(Drawn("a value", law.scale, law=law, n=len(records)))
            return np.asarray(law.ball.center)

        return draw

    monkeypatch.setattr(grid, "with_noise", with_noise)
    monkeypatch.setattr(grid, "in_secret", in_secret)
    for module in (centers, walk):
        monkeypatch.setattr(module, "compiled_in_blocks", in_blocks)
    monkeypatch.setattr(centers, "compiled_ahead", ahead)
    monkeypatch.setattr(centers, "first_complete", lambda draw: draw())
    monkeypatch.setattr(DensityLaw, "ready", ready)
    monkeypatch.setattr(VectorLaw, "ready", ready)
    # The value on a grid.

    def logarithms(owner, function, summary, ball, shape):
        return lambda summary, own, points: iter([np.zeros((len(points), ball.manifold.dim))])

    monkeypatch.setattr(tangent_vectors, "compiled_in_blocks", logarithms)
    monkeypatch.setattr(
        tangent_vectors, "compiled_ahead", lambda *given: lambda law, vector: np.asarray(law.ball.center)
    )
    monkeypatch.setattr(wrapped, "compiled_ahead", lambda *given: lambda ball, mean: np.zeros(ball.manifold.dim))
    monkeypatch.setattr(wrapped, "mean_of_blocks", lambda name, ball, shape: lambda records: ball.center)
    return found


# What it costs --------------------------------------------------------------------------------------------


def cost_of(draw: Drawn, pure: bool, moved: Fraction | int = MOVED) -> Fraction:
    """Epsilon, or rho, of one draw, exactly.

    By Theorem Q1 for a radius; for integers that a record moves by ``moved`` in Euclidean length, their L1 length is at
    most sqrt(length) times that, or Theorem 14 of Canonne, Kamath & Steinke 2020; for a centre that is drawn, with the
    sensitivity 2R/n of a tree mean, Theorem 1 of Reimherr et al. 2021, or Theorem P; for the value, the theorem of its
    mechanism.
    """
    scale = Fraction(draw.scale)
    if draw.sampler == "first_above":
        return 2 / scale if pure else Fraction(9, 8) / scale**2
    if draw.sampler == "discrete_laplace":
        assert pure, "Laplace noise of integers is not paid for with rho here"
        return math.isqrt(draw.length * moved**2) / scale
    if draw.sampler == "discrete_gaussian":
        assert not pure
        return Fraction(moved) ** 2 / (2 * scale**2)
    assert draw.sampler in ("a centre", "a value")
    ball, n = draw.law.ball, draw.n
    if draw.sampler == "a centre":
        sensitivity = 2 * Fraction(ball.radius) / n
        if not pure:  # k Delta/sqrt(k + ricci), k = 1/sigma^2
            return sensitivity**2 / (2 * scale**2 * (1 + Fraction(ball.manifold.ricci_bound) * scale**2))
    else:
        sensitivity = Fraction(_sensitivity(draw.law, n))
    assert ball.manifold.homogeneous  # where it is not, epsilon is twice as large
    return sensitivity / scale if pure else (sensitivity / scale) ** 2 / 2


def _sensitivity(law, n):
    """Of what the value is drawn about: the mean; in the tangent space its logarithm, or the mean of logarithms."""
    if type(law) is VectorLaw and type(law.summary).__name__ == "MeanOfLogarithms":
        return 2.0 * law.ball.radius / n
    stretch = 1.0 if type(law) is DensityLaw else rauch(law.ball.radius, law.ball.manifold.curvature_bounds[1])
    return mean_sensitivity(law.ball, n, "tight").value * stretch


def cost_of_value_on_grid(draw: Drawn, mechanism: LocatedMechanism, pure: bool) -> Fraction:
    """Of the last draw: a sum of vectors; or a mean with rounded coordinates, in units of its sensitivity."""
    space = mechanism.manifold
    if mechanism.mechanism == "tangent" or space.curvature_bounds == (0.0, 0.0):
        return cost_of(draw, pure)
    return cost_of(draw, pure, grid.STEPS + math.isqrt(space.dim) + 1)


def whole(budget) -> Fraction:
    """Epsilon, or rho."""
    return Fraction(written(budget["epsilon"])) if "epsilon" in budget else Fraction(written(budget["mu"])) ** 2 / 2


def amount(promise) -> float:
    assert isinstance(promise, PureDP | ZeroConcentratedDP)
    return promise.epsilon if isinstance(promise, PureDP) else promise.rho


def is_the_float_above(stated: float, exact: Fraction) -> bool:
    """Whether it is the smallest float that, as written, is not below."""
    return Fraction(written(math.nextafter(stated, 0.0))) < exact <= Fraction(written(stated))


def records_of(space, n):
    return np.broadcast_to(np.asarray(space.origin), (n, *space.shape))


# What is promised -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "budget", "numerics", "n"), searches(WAYS))
def test_a_search_in_one_place_spends_what_it_promises(make, budget, numerics, n, drawn):
    mechanism = make()
    release = mechanism.release(records_of(mechanism.manifold, n), numerics=numerics)
    pure, limit = "epsilon" in budget, whole(budget)
    *searched, last = drawn
    # Draws about a mean where centres may be: not where what is released is for the machine, or all is flat.
    space, draws = mechanism.manifold, [own for own in searched if own.sampler == "a centre"]
    opened = any(part.open for part in parts_of(space))
    may = opened and numerics != "grid" and (mechanism.mechanism == "auto" if pure else space.curvature_bounds[0] < 0)
    assert bool(draws) == may
    costs = [cost_of(own, pure) for own in searched]
    value = cost_of_value_on_grid(last, mechanism, pure) if numerics == "grid" else cost_of(last, pure)
    total = sum(costs) + value
    in_integers = all(own.law is None for own in drawn)
    assert numerics != "grid" or in_integers
    assert (LEAST_IN_INTEGERS if in_integers else LEAST) * limit < total
    assert total <= limit * (1 if in_integers else 1 + ROUNDED)
    # Of each kind what the shares say, and of all what is charged.
    kinds = [own.sampler == "first_above" for own in searched]
    first = sum(cost for cost, radius in zip(costs[:-1], kinds[:-1], strict=True) if radius)
    middle = sum(cost for cost, radius in zip(costs, kinds, strict=True) if not radius)
    if mechanism.shares is not None:
        for cost, share in zip((first, middle, costs[-1]), SHARES, strict=True):
            assert cost <= Fraction(written(share)) * limit * (1 if in_integers else 1 + ROUNDED)
    assert kinds[-1] and [stage["scale"] for stage in release.record["stages"]] == [own.scale for own in searched]
    assert is_the_float_above(amount(release.guarantee), limit) and release.guarantee == mechanism.guarantee


@pytest.mark.parametrize(
    ("make", "budget", "numerics", "n"),
    [
        *searches([("tangent", EPSILON, "grid")]),
        *searches([("wrapped", EPSILON, "grid"), ("auto", MU, "grid")], [(Euclidean(3), 30.0)], []),
    ],
)
def test_each_stage_of_rounds_states_what_it_costs(make, budget, numerics, n, drawn):
    """And all together what a search in one place promises, as they are charged, each rounded up to a float."""
    mechanism = make()
    search, pure, costs, charged = SearchInRounds(mechanism, n), "epsilon" in budget, [], []
    limit = Fraction(written(amount(mechanism.guarantee)))
    planned = search.guarantees
    while search.now is not None:
        own, place = search.now, len(costs)
        drawn.clear()
        release = own.finish(own.prepare(records_of(mechanism.manifold, n)))
        search = search.after(release)
        (draw,) = drawn
        costs.append(cost_of(draw, pure))
        charged.append(amount(release.guarantee))
        assert search.guarantees == planned
        if search.now is not None:
            assert own.guarantee == release.guarantee == planned[place] == own.law(n).terms.guarantee
        if not pure or search.now is not None:
            assert is_the_float_above(charged[-1], costs[-1])
    assert costs[-1] <= Fraction(written(charged[-1])) <= Fraction(written(amount(planned[-1])))
    total = sum(Fraction(written(own)) for own in charged)
    assert LEAST_IN_INTEGERS * limit < sum(costs) <= total <= limit


@pytest.mark.parametrize("space", [SPD(2), *exhaustive(Sphere(2))], ids=str)
def test_a_private_number_of_records_is_paid_for(space, drawn, monkeypatch):
    """From the same budget: a count with Laplace noise, which one record moves by 1."""
    counts = []

    def with_noise(draw, steps, scale, below=None):
        counts.append((draw.__name__, scale))
        return np.asarray(steps, float)

    monkeypatch.setattr(add_remove, "with_noise", with_noise)
    LocatedMechanism(space, **EPSILON).release(records_of(space, 3_000), adjacency="add-remove")
    ((sampler, scale),) = counts
    assert sampler == "discrete_laplace"
    total = Fraction(1, scale) + sum(cost_of(own, True) for own in drawn)
    assert LEAST * whole(EPSILON) < total <= whole(EPSILON) * (1 + ROUNDED)
