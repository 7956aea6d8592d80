"""What a mechanism says that its release takes, it takes; all else is refused by one sentence before the charge."""

import dataclasses
import functools
import pathlib

import numpy as np
import pytest

from jaxgeodp import (
    AdaptiveMechanism,
    Euclidean,
    GeodesicBall,
    GibbsMechanism,
    KNGMechanism,
    LocatedMechanism,
    MetricLaplace,
    PlanarShapes,
    Shape,
    Sphere,
    TangentLaplace,
    WrappedGaussian,
)
from jaxgeodp.checks import InputError
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.inference import FrechetVariance, SpreadMechanism
from jaxgeodp.mechanisms import BallMechanism
from jaxgeodp.mechanisms.names import MECHANISMS, mechanism_named, names_with
from jaxgeodp.meshes.spectrum import SurfaceBasis
from jaxgeodp.privacy import ApproximateDP, Ledger, PureDP
from jaxgeodp.releases import release_groups
from jaxgeodp.releases.drafts import OPTIONS
from jaxgeodp.statistics import FrechetMean, FrechetMedian, SmoothedMedian, Statistic
from jaxgeodp.surfaces import FaceMeanMechanism, JointGaussian, PointwiseGaussian, SurfaceMeanMechanism

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "reference" / "mechanisms.md"
N = 60
PLANE, CAP = (GeodesicBall(own, own.origin, 0.3) for own in (Euclidean(2), Sphere(2)))
SHAPES = GeodesicBall(PlanarShapes(3), PlanarShapes(3).origin, 0.3)
POINTS = np.random.default_rng(0).normal(size=(8, 3))
CURVES = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.05, 1.0, [0.6, 0.8], np.zeros((2, 16)))
FACES = FaceMeanMechanism(np.zeros((1, 16, 3)), 1.0, 0.5)


def of_name(name):
    entry = MECHANISMS[name]
    ball = next(own for own in (PLANE, CAP, SHAPES) if entry.suits(own.manifold))
    return mechanism_named(name, ball, 1.0), np.stack([np.asarray(ball.center)] * N)


def surfaces():
    basis = SurfaceBasis(np.linalg.qr(POINTS)[0] * np.sqrt(8.0), np.full(8, 0.125))
    return SurfaceMeanMechanism(POINTS, basis, np.eye(9), 1.0, 1.0)


def at(ball, mechanism):
    return mechanism, np.stack([np.asarray(ball.center)] * N)


CASES = {
    **{name: functools.partial(of_name, name) for name in MECHANISMS},
    "kng, paper": lambda: at(PLANE, KNGMechanism(PLANE, 1.0, calibration="paper")),
    "kng of a median": lambda: at(PLANE, KNGMechanism(PLANE, 1.0, statistic=FrechetMedian())),
    "gibbs of a median": lambda: at(PLANE, GibbsMechanism(PLANE, 1.0, SmoothedMedian(0.2))),
    "wrapped-gaussian, curved": lambda: at(CAP, WrappedGaussian(CAP, 1.0)),
    "tangent with a shape": lambda: at(PLANE, TangentLaplace(PLANE, 1.0, Shape(PLANE.center, [[1.0, 0.0]], 0.3))),
    "AdaptiveMechanism, epsilon": lambda: at(PLANE, AdaptiveMechanism(PLANE, epsilon=8.0)),
    "AdaptiveMechanism, mu": lambda: at(PLANE, AdaptiveMechanism(PLANE, mu=4.0)),
    "AdaptiveMechanism with a shape": lambda: at(
        PLANE, AdaptiveMechanism(PLANE, mu=4.0, shape=Shape(PLANE.center, [[1.0, 0.0]], 0.3))
    ),
    "MetricLaplace": lambda: (MetricLaplace(Sphere(2), 1.0), np.asarray(CAP.center)[None]),
    "SpreadMechanism, epsilon": lambda: at(PLANE, SpreadMechanism(PLANE, PLANE.center, FrechetVariance(), epsilon=1.0)),
    "SpreadMechanism, mu": lambda: at(PLANE, SpreadMechanism(PLANE, PLANE.center, FrechetVariance(), mu=1.0)),
    "LocatedMechanism, laplace": lambda: (LocatedMechanism(Sphere(2), epsilon=8.0), np.tile(CAP.center, (900, 1))),
    "LocatedMechanism, tangent": lambda: (
        LocatedMechanism(Sphere(2), "tangent", epsilon=8.0),
        np.tile(CAP.center, (900, 1)),
    ),
    "LocatedMechanism, mu": lambda: (LocatedMechanism(Sphere(2), mu=8.0), np.tile(CAP.center, (900, 1))),
    "curves": lambda: (CURVES, np.zeros((N, 2, 16))),
    "one curve": lambda: (
        FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.05, 1.0, 1.0, np.zeros((1, 16))),
        np.zeros((N, 1, 16)),
    ),
    "curves, theorem": lambda: (
        FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.05, 1.0, 1.0, calibration="theorem"),
        np.zeros((N, 2, 16)),
    ),
    "faces": lambda: (FACES, np.zeros((N, 1, 16, 3))),
    "PointwiseGaussian": lambda: (PointwiseGaussian(POINTS, 1.0, 1.0), np.stack([POINTS] * N)),
    "JointGaussian": lambda: (JointGaussian(POINTS, 1.0, 1.0), np.stack([POINTS] * N)),
    "SurfaceMeanMechanism": lambda: (surfaces(), np.stack([POINTS] * N)),
}
#: One mechanism of each way to release in each word; the others compile as much again.
ALWAYS = {
    *(("laplace", word) for word in ("delta", "persons", "weights", "add-remove")),
    *(("tangent", word) for word in ("grid", "persons", "weights", "add-remove", "prepare")),
    *(("JointGaussian", word) for word in ("grid", "persons", "add-remove", "prepare")),
    *((name, "prepare") for name in ("curves", "faces", "SpreadMechanism, mu")),
    ("MetricLaplace", "delta"),
    *(("one curve", "add-remove"), ("AdaptiveMechanism, epsilon", "add-remove"), ("AdaptiveMechanism, mu", "persons")),
    ("SpreadMechanism, epsilon", "add-remove"),
}


@functools.cache
def case(name):
    return CASES[name]()


def table():
    """Of the page: name -> the words of a row."""
    _, second = PAGE.read_text().split("## Options", 1)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in second.splitlines() if line[:1] == "|"]
    (_, *words), _, *body = rows
    assert words == list(OPTIONS)
    return {name: {word: cell for word, cell in zip(words, cells, strict=True)} for name, *cells in body}


def test_the_page_says_what_each_mechanism_supports():
    """A row that is missing is printed as the page should have it."""
    rows = {name: {word: "yes" if word in case(name)[0].supports else "–" for word in OPTIONS} for name in CASES}
    lines = [f"| {name} | {' | '.join(row.values())} |" for name, row in rows.items()]
    assert table() == rows, "\n".join(lines)


def asked(mechanism, data, word, ledger):
    """A release with an option."""
    half = np.arange(len(data)) // 2
    if word == "prepare":
        return mechanism.finish(mechanism.prepare(data), ledger)
    keywords = {
        "delta": {"delta": 1e-6},
        "grid": {"numerics": "grid"},
        "persons": {"persons": half},
        "weights": {"weights": np.ones(len(data))},
        "add-remove": {"adjacency": "add-remove"},
    }
    # Second moments have integers only, but for few matrices.
    more = {"numerics": "grid"} if isinstance(mechanism, SpreadMechanism) and word != "delta" else {}
    return mechanism.release(data, ledger, **keywords[word] | ({} if word == "weights" else more))


def ledger_of(mechanism, path, word):
    return Ledger(path, ApproximateDP(1e3, 0.1) if word == "delta" else type(mechanism.guarantee)(1e3))


GIVEN = [
    pytest.param(name, word, marks=[] if (name, word) in ALWAYS else [pytest.mark.exhaustive])
    for name in CASES
    for word in OPTIONS
]


@pytest.mark.parametrize(("name", "word"), GIVEN)
def test_what_it_supports_is_released(name, word, tmp_path):
    mechanism, data = case(name)
    if word not in mechanism.supports:
        pytest.skip("it is refused: see the next test")
    ledger = None
    if not isinstance(mechanism, KNGMechanism) or mechanism.calibration != "paper":
        ledger = ledger_of(mechanism, tmp_path / "budget.db", word) if word in ("delta", "weights") else None
    release = asked(mechanism, data, word, ledger)
    assert np.all(np.isfinite(release.value))
    assert ledger is None or ledger.account().releases == 1


@pytest.mark.parametrize("name", CASES)
def test_what_it_does_not_support_is_refused_by_one_sentence(name, tmp_path):
    """Before records are looked at: they are none."""
    mechanism, _ = case(name)
    ledger = Ledger(tmp_path / "budget.db", ApproximateDP(1e3, 0.1))
    own = mechanism.supports
    for word in OPTIONS.keys() - own:
        with pytest.raises(InputError) as refusal:
            asked(mechanism, "no records", word, ledger)
        message, kind = str(refusal.value), type(mechanism).__name__
        assert message.startswith(f"{kind}: {OPTIONS[word]}; it supports ") and len(message) < 400
        taken = message.rsplit("; it supports ", 1)[1].rstrip(".")
        assert taken == (", ".join(known for known in OPTIONS if known in own) or "none of these options")
        if word == "add-remove":
            with pytest.raises(InputError, match="a private number of records"):
                release_groups(mechanism, "no records", ["a"], ["a"], ledger)
        if word == "prepare":
            with pytest.raises(InputError, match="prepare is not supported"):
                mechanism.finish("no state", ledger)
    assert ledger.account().releases == 0


def test_the_command_line_knows_the_names_that_support_an_option():
    for option in OPTIONS:
        assert names_with(option) == [name for name in MECHANISMS if table()[name][option] == "yes"]
    assert {"kng", "laplace"} <= set(names_with("delta")) < set(MECHANISMS)


def test_names_that_support_an_option_are_known_without_compiling(monkeypatch):
    """The help of commands has them: no ball is made in the way that checks its centre."""
    monkeypatch.setattr(GeodesicBall, "__init__", None)
    for option in OPTIONS:
        assert names_with(option)


class Plain(BallMechanism):
    """Says nothing of what its release takes."""

    guarantee = PureDP(1.0)

    def law(self, n, shape=()):
        return mechanism_named("laplace", self.ball, 1.0).law(n)


def test_a_mechanism_that_says_nothing_takes_what_follows_from_a_ball_alone():
    """Integers, a fixed number of proposals and a private number of records are for those that say so."""
    assert Plain(PLANE).supports == {"persons", "weights"}


@dataclasses.dataclass(frozen=True, eq=False)
class Median(BallMechanism):
    """One of somebody's own, which says nothing of what it supports."""

    epsilon: float
    statistic: Statistic = dataclasses.field(default_factory=FrechetMedian)

    @property
    def guarantee(self):
        return PureDP(self.epsilon)

    def law(self, n, shape=()):
        return KNGMechanism(self.ball, self.epsilon, self.statistic).law(n)


def test_what_ones_own_does_not_state_is_refused(tmp_path):
    mechanism, ledger = Median(PLANE, 1.0), Ledger(tmp_path / "budget.db", PureDP(9.0))
    assert mechanism.summarised == FrechetMedian() and mechanism.supports == {"persons", "add-remove"}
    assert TangentLaplace(PLANE, 1.0).summarised == FrechetMean()
    with pytest.raises(ValueError, match="weights= is not supported"):
        mechanism.release(np.zeros((4, 2)), ledger, weights=np.ones(4))
    assert ledger.account().releases == 0
