"""Laws and ways of one's own: what is promised is what is drawn, and the two outcomes hold for them, too."""

import dataclasses
import math

import jax
import numpy as np
import pytest

from jaxgeodp import (
    Euclidean,
    EuclideanLaplace,
    GaussianDP,
    GeodesicBall,
    KNGMechanism,
    LandmarkLaplace,
    LaplaceMechanism,
    Ledger,
    PlanarShapes,
    PureDP,
    RiemannianGaussian,
    Sphere,
    TangentLaplace,
    WrappedGaussian,
    WrappedLaplace,
)
from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.mechanisms import BallMechanism, release_by_chain
from jaxgeodp.mechanisms.laplace import Distance
from jaxgeodp.mechanisms.tangent_vectors import MeanOfLogarithms
from jaxgeodp.privacy import NotProven
from jaxgeodp.releases import release_in
from jaxgeodp.releases.noise import Norm
from jaxgeodp.releases.vector import at_home, vector_law
from jaxgeodp.releases.ways import FixedTime, Idealized, OnGrid, way_of
from jaxgeodp.releases.ways.fixed_time import proposals_needed

CAP = GeodesicBall(Sphere(2), [0.6, 0.0, -0.8], 0.3)
DATA = np.tile(CAP.center, (4, 1))
CURVES = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.05, [1.0, 0.5], [0.6, 0.8], np.zeros((2, 16)))


@dataclasses.dataclass(frozen=True, eq=False)
class OfLaplace(BallMechanism):
    """A mechanism of one's own, with the law of `LaplaceMechanism` under other terms."""

    guaranteed: object = PureDP(1.0)
    strength: float = 1.0
    supports = frozenset({"delta"})

    @property
    def guarantee(self):
        return self.guaranteed

    def law(self, n, shape=()):
        law = LaplaceMechanism(self.ball, 1.0).law(n)
        terms = dataclasses.replace(law.terms, guarantee=self.guarantee, strength=self.strength)
        return dataclasses.replace(law, terms=terms)


def test_a_fixed_number_of_proposals_is_for_what_is_proven(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", budget=PureDP(10.0))
    with pytest.raises(ValueError, match="delta needs a proven guarantee"):
        OfLaplace(CAP, NotProven("nothing")).release(DATA, ledger, delta=1e-6)
    assert ledger.account().releases == 0


def test_half_of_delta_is_that_of_the_gaussian_guarantee():
    record = OfLaplace(CAP, GaussianDP(1.0)).release(DATA, delta=1e-6).record
    assert record["guarantee"]["epsilon"] == GaussianDP(1.0).to_approximate(5e-7).epsilon
    eta = float(record["sampler"]["exactness"].rsplit("e^", 1)[1])
    assert eta <= math.log(5e-7) - record["guarantee"]["epsilon"] + 1e-3
    assert record["guarantee"]["delta"] == 1e-6


def test_a_fixed_number_of_proposals_keeps_the_epsilon_of_the_guarantee():
    record = OfLaplace(CAP, PureDP(1.0), strength=1e-3).release(DATA, delta=1e-6).record
    assert record["guarantee"]["epsilon"] == 1.0


class Cooled(Distance):
    """Divided by the square of the scale."""

    def temperature(self, scale):
        return scale**2


def test_proposals_are_counted_at_the_temperature_of_the_draws():
    law = LaplaceMechanism(CAP, 1.0).law(4)
    square = dataclasses.replace(law, scale=law.scale**2)
    cooled = dataclasses.replace(law, target=Cooled(law.target.statistic))
    assert proposals_needed(cooled, -20.0) == proposals_needed(square, -20.0) != proposals_needed(law, -20.0)


# Replaced laws ---------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Quieter(BallMechanism):
    """A law with a hundredth of the noise, which claims nothing."""

    claims: bool
    epsilon: float = 1.0
    supports = frozenset({"grid"})

    @property
    def guarantee(self):
        return PureDP(1.0) if self.claims else NotProven("a hundredth of the noise")

    def law(self, n, shape=()):
        law = TangentLaplace(self.ball, 1.0).law(n)
        if self.claims:
            return dataclasses.replace(law, scale=law.scale / 100)
        return dataclasses.replace(law, terms=dataclasses.replace(law.terms, guarantee=self.guarantee))


@pytest.mark.parametrize("claims", [True, False])
def test_a_replaced_law_is_not_released_on_a_grid_as_it_was(claims):
    with pytest.raises(ValueError, match="needs the scale and the guarantee of its theorem"):
        Quieter(CAP, claims).release(DATA, numerics="grid")


def test_replaced_curves_are_not_released_on_a_grid_as_they_were():
    law = dataclasses.replace(CURVES.law(5), scale=np.array([1e-3, 1e-3]))
    with pytest.raises(ValueError, match="needs the scale of its theorem"), jax.enable_x64(True):
        law.grid.noisy(law.record)


@dataclasses.dataclass(frozen=True)
class TwoNumbers(MeanOfLogarithms):
    """Values of another shape than points."""

    def carried(self, ball, data):
        return at_home(ball, data)._replace(back=lambda value: value)

    def to_value(self, ball, vector):
        return vector


@dataclasses.dataclass(frozen=True, eq=False)
class Coordinates(BallMechanism):
    """Releases coordinates of the tangent space."""

    epsilon: float

    @property
    def guarantee(self):
        return PureDP(self.epsilon)

    def law(self, n, shape=()):
        return vector_law(self, n, TwoNumbers(), Norm(), Sensitivity(0.6 / n, "2r/n"), self.epsilon, "coordinates")


def test_values_of_another_shape_are_refused_before_the_charge(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", budget=PureDP(10.0))
    with pytest.raises(ValueError, match=r"its values have shape \(2,\), but the public centre"):
        Coordinates(CAP, 1.0).release(DATA, ledger)
    assert ledger.account().releases == 0


# Mechanisms that are not what they say ---------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Doubling(BallMechanism):
    """Doubles its epsilon whenever it is made."""

    epsilon: float

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "epsilon", 2.0 * self.epsilon)

    @property
    def guarantee(self):
        return PureDP(self.epsilon)

    def law(self, n, shape=()):
        return LaplaceMechanism(self.ball, self.epsilon).law(n)


class Thawed:
    """A dataclass that may change would be checked once and released as another."""


def test_what_is_made_again_must_be_the_same():
    with pytest.raises(ValueError, match="was rebuilt from other values"):
        Doubling(CAP, 1.0).release(DATA)
    shifted = jax.tree.map(lambda leaf: leaf * (1.0 + 9e-6), LaplaceMechanism(CAP, 1.0))
    with pytest.raises(ValueError, match="was rebuilt from other values"):
        shifted.release(DATA)
    jax.tree.map(lambda leaf: leaf, LaplaceMechanism(CAP, 1.0)).release(DATA)


@pytest.mark.parametrize("chosen", ["kng", None, Thawed()], ids=["word", "nothing", "object"])
def test_what_is_no_mechanism_is_refused_in_a_sentence(chosen):
    for call in (lambda: release_by_chain(chosen, DATA), lambda: release_in(chosen, Idealized(), DATA)):
        with pytest.raises(ValueError, match="a mechanism that releases must be a frozen dataclass"):
            call()


SHAPES = GeodesicBall(PlanarShapes(4), np.array([1.0, 1.0j, -1.0, -1.0j]) / 2.0, 0.2)


@pytest.mark.parametrize(
    "mechanism",
    [
        *(build(CAP, 1.0) for build in (LaplaceMechanism, KNGMechanism, WrappedLaplace, WrappedGaussian)),
        *(build(CAP, 1.0) for build in (TangentLaplace, RiemannianGaussian, EuclideanLaplace)),
        LandmarkLaplace(SHAPES, 1.0),
        CURVES,
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
@pytest.mark.parametrize("n", [0, 1, 2.5, "a"])
def test_a_law_is_for_two_records_or_more(mechanism, n):
    with pytest.raises(ValueError, match=r"n >= 2|integer >= 2"):
        mechanism.law(n)


def test_ways_are_refused_in_a_sentence():
    for numerics in (["grid"], None, 3):
        with pytest.raises(ValueError, match="numerics must be 'idealized' or 'grid'"):
            TangentLaplace(CAP, 1.0).release(DATA, numerics=numerics)
    for way in (OnGrid(), FixedTime(1e-6)):
        with pytest.raises(ValueError, match=r"^\w+: "):
            release_in(EuclideanLaplace(CAP, 1.0), way, DATA)


def test_further_entries_replace_nothing(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", budget=PureDP(10.0))
    with pytest.raises(ValueError, match="more must not replace guarantee, value"):
        release_in(TangentLaplace(CAP, 1.0), Idealized(), DATA, ledger, more={"value": [1], "guarantee": {}})
    assert ledger.account().releases == 0
    kept = release_in(TangentLaplace(CAP, 1.0), Idealized(), DATA, more={"place": "here"}).record
    assert kept["place"] == "here"


def test_the_sensitivity_of_curves_is_found_once_a_release(monkeypatch):
    found, gain = [], FunctionalGaussianMechanism.gain
    monkeypatch.setattr(FunctionalGaussianMechanism, "gain", lambda self, m: found.append(m) or gain(self, m))
    CURVES.release(np.zeros((5, 2, 16)))
    assert found == [16]


def test_curves_without_a_template_need_the_shape_of_a_record():
    free = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.05, 1.0, 1.0)
    with pytest.raises(ValueError, match=r"law needs the shape \(J, m\)"):
        free.law(5)
    assert free.law(5, (2, 16)).terms.n == 5
    with pytest.raises(ValueError, match="samples"):
        free.mean(np.zeros((5, 2, 1)))


def test_a_line_goes_through_all_ways():
    """And what they say: the same law, three guarantees."""
    ball = GeodesicBall(Euclidean(1), [0.0], 1.0)
    data = np.linspace(-0.5, 0.5, 10)[:, None]
    kinds = [
        TangentLaplace(ball, 1.0).release(data).record["guarantee"]["kind"],
        TangentLaplace(ball, 1.0).release(data, numerics="grid").record["guarantee"]["kind"],
        LaplaceMechanism(ball, 1.0).release(data, delta=1e-6).record["guarantee"]["kind"],
        release_by_chain(LaplaceMechanism(ball, 1.0), data, num_burnin=5).record["guarantee"]["kind"],
    ]
    assert kinds == ["pure", "pure", "approx", "not proven"]


@pytest.mark.parametrize("numerics", ["exact", "", None, 1])
def test_a_way_that_does_not_exist_is_refused(numerics):
    with pytest.raises(InputError, match="Mean: numerics must be 'idealized' or 'grid', got"):
        way_of("Mean", 0.0, numerics)


def test_a_release_after_a_fixed_number_of_proposals_is_carried_back_to_its_ball():
    """All is drawn where the ball's centre is the origin; a value that stays there is one of another place."""
    ball, data = GeodesicBall(Euclidean(1), np.array([5.0]), 1.0), np.full((20, 1), 5.5)
    value = LaplaceMechanism(ball, 50.0).release(data, delta=1e-6).value
    assert abs(float(value[0]) - 5.5) < 0.1  # scale 0.002, mean 5.5
