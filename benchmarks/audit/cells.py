"""What the auditors look at: every mechanism in every way of releasing it, and planted mistakes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.audit.audited import (
    DividedByNTwice,
    HalfTheScale,
    HalfTheSecondMoment,
    InFixedTime,
    OnTheGrid,
    Points,
    RadiusFromTheData,
    ReusedKey,
    TwiceTheBudget,
    about_a_cluster,
    at_right_angles,
    at_the_end,
)
from benchmarks.audit.audited_rounds import Described, Regressed
from benchmarks.audit.planted import planted
from jaxgeodp import (
    AdaptiveMechanism,
    Euclidean,
    FrechetMedian,
    GeodesicBall,
    Hyperbolic,
    KNGMechanism,
    LaplaceMechanism,
    LocatedMechanism,
    PlanarShapes,
    Shape,
    Sphere,
    TangentGaussian,
    TangentLaplace,
    frechet_mean,
)
from jaxgeodp.checks import InputError
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.inference import SpreadMechanism, TangentCovariance
from jaxgeodp.inference.geodesic_fit import STATISTICS, standing
from jaxgeodp.mechanisms.names import MECHANISMS
from jaxgeodp.privacy import adversarial_neighbours
from jaxgeodp.releases.vector import VectorLaw
from jaxgeodp.releases.ways.fixed_time import draw_in_fixed_time
from jaxgeodp.surfaces import JointGaussian, PointwiseGaussian

N, STRENGTH, DELTA = 20, 1.0, 1e-6
SPHERE = GeodesicBall(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.4)
HYPERBOLIC = GeodesicBall(Hyperbolic(2), np.array([1.0, 0.0, 0.0]), 0.8)
SHAPES = GeodesicBall(PlanarShapes(4), np.array([1.0, 1.0j, -1.0, -1.0j]) / 2.0, 0.3)
PLANE = GeodesicBall(Euclidean(2), np.zeros(2), 1.0)
# Draws that are recorded at once: the scale of the noise is known to 1 % from them.
RECORDED = 20_000
# Where only the flow of the program is looked at.
FEW = 16
LINE = GeodesicBall(Euclidean(1), np.zeros(1), 1.0)
# Records, where there must be many for steps.
MANY = 200
# Those for which regression has a second round.
FITTED = 400
# What planted mechanisms have of the strength that they claim.
STRONGER = 1.25


class Cell(NamedTuple):
    """A mechanism in one way of releasing it, or a planted mistake."""

    name: str
    way: str
    on: str
    audited: Any  #: with ``guarantee`` and ``simulate``
    pairs: dict[str, tuple[np.ndarray, np.ndarray]]
    score: Callable  #: of a pair, a function of a value
    program: Callable | None = None  #: of a key and records, for the recorder; makes ``RECORDED`` draws
    family: str | None = None  #: of the noise that is added; None for a density
    grid: Any = None  #: the mechanism, where real releases on a grid are recorded
    plain: Any = None  #: the mechanism, where dp-recorder takes its steps one after the other
    density: bool = False  #: whether log densities are compared at recorded draws
    mistake: bool = False


# What there is -------------------------------------------------------------------------------------------------


def cells():
    """Every mechanism of the registry in every way, and what the registry does not name."""
    for name, entry in MECHANISMS.items():
        for ball in _balls(name, entry):
            mechanism = entry.make(ball, STRENGTH)
            pairs = adversarial_neighbours(ball, N)
            yield _idealized(name, mechanism, pairs)
            if ball is HYPERBOLIC:
                continue  # the other ways have been tried on the sphere
            if "delta" in mechanism.supports:
                yield _in_fixed_time(name, mechanism, pairs)
            if "grid" in mechanism.supports:
                yield _on_grid(name, mechanism, pairs)
    pairs = adversarial_neighbours(SPHERE, N)
    for name, mechanism in {
        "kng of the median": KNGMechanism(SPHERE, STRENGTH, FrechetMedian()),
        "kng, papers' sensitivity": KNGMechanism(SPHERE, STRENGTH, calibration="theorem"),
        "laplace, papers' sensitivity": LaplaceMechanism(SPHERE, STRENGTH, calibration="theorem"),
    }.items():
        yield _idealized(name, mechanism, pairs)
    yield _curves()
    yield from unnamed()


def unnamed():
    """What the registry does not name: shapes, steps, searches, descriptions, regressions, moments and mean faces."""
    frame = np.asarray(HYPERBOLIC.manifold.frame(HYPERBOLIC.center))
    shape = Shape(HYPERBOLIC.center, [0.8 * frame[0], 0.2 * frame[1]], 1.0)
    pairs = adversarial_neighbours(HYPERBOLIC, N)
    for name, build in (("tangent", TangentLaplace), ("gaussian", TangentGaussian)):
        yield _idealized(f"{name}, with a shape", build(HYPERBOLIC, STRENGTH, shape), pairs)
    about = {"about a cluster": about_a_cluster(LINE, MANY)}
    flat = Shape(LINE.center, [[0.5]], 1.0)
    for name, steps in {
        "adaptive (mu)": AdaptiveMechanism(LINE, mu=STRENGTH),
        "adaptive (epsilon)": AdaptiveMechanism(LINE, epsilon=2.0 * STRENGTH),
        "adaptive (mu), with a shape": AdaptiveMechanism(LINE, mu=STRENGTH, shape=flat),
    }.items():
        yield _drawn(name, "all steps", "R", steps, about)
    for budget in ({"mu": STRENGTH}, {"epsilon": STRENGTH}):
        described = Described(LINE, 5, **budget)
        name = f"describe ({next(iter(budget))})"
        yield _drawn(name, "all parts", "R", described, adversarial_neighbours(LINE, 5), described.score)
    spread = SpreadMechanism(HYPERBOLIC, HYPERBOLIC.center, TangentCovariance(), epsilon=STRENGTH)
    around = {"at right angles": at_right_angles(HYPERBOLIC, 5)}
    yield _drawn("second moment, hull noise", "idealized", "H²", spread, around, _ratio(spread))
    ends = {"at the end": at_the_end(LINE, N)}
    for parameter, statistic in STATISTICS.items():
        fitted = SpreadMechanism(LINE, standing(LINE), statistic, **{parameter: STRENGTH})
        yield _drawn(f"regression, one round ({parameter})", "idealized", "R", fitted, ends, _ratio(fitted))
    ends = {"at the end": at_the_end(LINE, FITTED)}
    for budget in ({"mu": STRENGTH}, {"epsilon": 2.0 * STRENGTH}):
        fitted = Regressed(LINE, FITTED, **budget)
        yield _drawn(f"regression, two rounds ({next(iter(budget))})", "all rounds", "R", fitted, ends, fitted.score)
    for budget in ({"mu": 3.0}, {"epsilon": 8.0}):
        search = LocatedMechanism(LINE.manifold, "auto", domain=10.0, **budget)
        ends = GeodesicBall(LINE.manifold, LINE.center, search.reach)
        yield _drawn(f"search ({next(iter(budget))})", "all stages", "R", search, adversarial_neighbours(ends, 60))
    corners = {"corners": tuple(np.stack([np.ones((4, 3))] * 4 + [s * np.ones((4, 3))]) for s in (1.0, -1.0))}
    for face in (PointwiseGaussian(np.zeros((4, 3)), 1.0, STRENGTH), JointGaussian(np.zeros((4, 3)), 3.0**0.5, 1.0)):
        points = Points(face)
        yield _drawn(type(face).__name__, "idealized", "4 points", points, corners, _ratio(points))


def _drawn(name, way, on, mechanism, pairs, score=None):
    """A mechanism of which auditors see draws alone."""
    return Cell(name, way, on, mechanism, pairs, score or _along)


def _along(data, neighbour):
    """How far along the line on which two records differ, which is what a mean of neighbours on a line tells."""
    sign = float(np.sign(np.sum(np.asarray(data) - np.asarray(neighbour))))
    return lambda x: sign * jnp.ravel(x)[0]


def _ratio(mechanism):
    return lambda data, neighbour: (
        lambda x: mechanism.log_density(x, jnp.asarray(data)) - mechanism.log_density(x, jnp.asarray(neighbour))
    )


def _balls(name, entry):
    if not entry.suits(SPHERE.manifold):
        return (SHAPES,)
    return (SPHERE, HYPERBOLIC) if entry.suits(HYPERBOLIC.manifold) and not name.startswith("euclid") else (SPHERE,)


def _idealized(name, mechanism, pairs):
    law = mechanism.law(N)
    additive = isinstance(law, VectorLaw)
    return Cell(
        name,
        "idealized",
        _where(mechanism),
        mechanism,
        pairs,
        _score(mechanism),
        lambda key, data: mechanism.simulate(key, data, RECORDED if additive else FEW),
        law.noise.name if additive else None,
        plain=mechanism,
        density=not additive,
    )


def _in_fixed_time(name, mechanism, pairs):
    audited = InFixedTime(mechanism, DELTA)
    law = mechanism.law(N)
    count = audited.proposals(law)

    def program(key, data):
        return draw_in_fixed_time(law, key, data, count)

    return Cell(name, "fixed time", _where(mechanism), audited, pairs, _score(mechanism), program, density=True)


def _on_grid(name, mechanism, pairs):
    return Cell(name, "on grid", _where(mechanism), OnTheGrid(mechanism), pairs, _score(mechanism), grid=mechanism)


def _curves():
    t = np.arange(16) / 16
    waves = {j: np.sqrt(2.0) * np.cos(2 * np.pi * j * t) for j in range(1, 4)} | {0: np.ones(16)}
    pairs = {f"wave {j}": tuple(np.stack([w] * 4 + [s * w])[:, None] for s in (1, -1)) for j, w in waves.items()}
    mechanism = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.05, 1.0, np.ones(1))

    def program(key, data):
        # One by one: a loop over blocks is not an addition to the recorder.
        return jax.vmap(lambda own: mechanism.simulate(own, data, 1)[0])(jax.random.split(key, RECORDED))

    return Cell("curves", "idealized", "16 places", OneCurve(mechanism), pairs, _score(mechanism), program, "any")


class OneCurve:
    """Curves, whose number is known: then something is promised."""

    def __init__(self, mechanism):
        self.guarantee, self.simulate = mechanism.guarantee_for(1), mechanism.simulate


def mistakes():
    """What must be found."""
    for name, own in planted().items():

        def program(key, data, own=own):
            return own.simulate(key, data, RECORDED)

        yield Cell(name, "planted", "disk", own, own.pairs, own.score, program, own.family, plain=own, mistake=True)
    edge = {"edge": adversarial_neighbours(HYPERBOLIC, 5)["edge"]}
    for name, mechanism in {
        "half the scale of a density": HalfTheScale(HYPERBOLIC, 1.0),
        "1/n twice in a density": DividedByNTwice(HYPERBOLIC, 1.0),
        "the same key for all": ReusedKey(LaplaceMechanism(HYPERBOLIC, 1.0)),
    }.items():

        def program(key, data, own=mechanism):
            return own.simulate(key, data, FEW)

        density = not isinstance(mechanism, ReusedKey)
        yield Cell(name, "planted", "H²", mechanism, edge, _score(mechanism), program, density=density, mistake=True)
    alone = np.tile(SPHERE.center, (5, 1))
    other = np.concatenate([alone[1:], [[np.sin(0.4), 0.0, np.cos(0.4)]]])
    radius = RadiusFromTheData(SPHERE)

    def program(key, data):
        return radius.simulate(key, data, FEW)

    yield from too_strong()
    yield from unnamed_mistakes()
    pair = {"one outlier": (alone, other)}
    yield Cell("radius from the data", "planted", "S²", radius, pair, _own(radius.log_density), program, mistake=True)


def unnamed_mistakes():
    """Mistakes in what the registry does not name: budgets spent twice by parts, and half of a scale."""
    twice = TwiceTheBudget(AdaptiveMechanism(LINE, mu=STRENGTH))
    about = {"about a cluster": about_a_cluster(LINE, MANY)}
    yield _drawn("steps with twice the budget", "planted", "R", twice, about)._replace(mistake=True)
    parts = Described(LINE, 5, (1.0, 1.0, 1.0), mu=STRENGTH)
    ends = adversarial_neighbours(LINE, 5)
    yield _drawn("describe, each part with all of mu", "planted", "R", parts, ends, parts.score)._replace(mistake=True)
    rounds = Regressed(LINE, FITTED, (2.0 * STRENGTH, 2.0 * STRENGTH), epsilon=2.0 * STRENGTH)
    ends = {"at the end": at_the_end(LINE, FITTED)}
    cell = _drawn("regression, each round with all of epsilon", "planted", "R", rounds, ends, rounds.score)
    yield cell._replace(mistake=True)
    half = HalfTheSecondMoment(SpreadMechanism(HYPERBOLIC, HYPERBOLIC.center, TangentCovariance(), epsilon=STRENGTH))
    around = {"at right angles": at_right_angles(HYPERBOLIC, 5)}
    cell = _drawn("hull noise of half the scale", "planted", "H²", half, around, _ratio(half))
    yield cell._replace(mistake=True)


def too_strong():
    """Mechanisms of each kind of promise whose noise is a fifth too small."""

    def made(name, ball):
        return MECHANISMS[name].make(ball, STRONGER), adversarial_neighbours(ball, N)

    density, ratio, grid, fixed = (
        _idealized("laplace", *made("laplace", HYPERBOLIC)),
        _idealized("gaussian", *made("gaussian", HYPERBOLIC)),
        _on_grid("wrapped-gaussian", *made("wrapped-gaussian", SPHERE)),
        _in_fixed_time("laplace", *made("laplace", SPHERE)),
    )
    added = _idealized("wrapped", *made("wrapped", HYPERBOLIC))
    for cell in (density, ratio, added, grid, fixed):
        right = MECHANISMS[cell.name].make(cell.audited.ball, STRENGTH)
        promise = {"on grid": OnTheGrid, "fixed time": lambda own: InFixedTime(own, DELTA)}.get(cell.way)
        claim = Claims(cell.audited, (promise(right) if promise else right).guarantee)
        yield cell._replace(name=f"{cell.name}, {STRONGER:g} times too strong", audited=claim, plain=None, mistake=True)


class Claims:
    """Planted: a mechanism with the guarantee of another one."""

    def __init__(self, mechanism, guarantee):
        self.guarantee, self.simulate, self.ball = guarantee, mechanism.simulate, mechanism.ball


def _where(mechanism):
    names = {"Sphere": "S²", "Hyperbolic": "H²", "PlanarShapes": "shapes, k = 4", "Euclidean": "R²"}
    return names[type(mechanism.ball.manifold).__name__]


def _own(log_density):
    return lambda data, neighbour: lambda x: log_density(x, jnp.asarray(data))


def _score(mechanism):
    """The log-density ratio, or where there is none the difference of distances from the two means."""

    def of(data, neighbour):
        data, neighbour = jnp.asarray(data), jnp.asarray(neighbour)
        try:
            jax.eval_shape(mechanism.log_density, data[0], data)
        except (InputError, AttributeError):
            manifold = mechanism.ball.manifold
            own, other = (frechet_mean(manifold, points) for points in (data, neighbour))
            return lambda x: jnp.linalg.norm(_real(x - other)) - jnp.linalg.norm(_real(x - own))

        def score(x):
            own, other = mechanism.log_density(x, data), mechanism.log_density(x, neighbour)
            ratio = jnp.where(jnp.isneginf(own) & jnp.isneginf(other), 0.0, own - other)
            return jnp.clip(ratio, -50.0, 50.0)

        return score

    return of


def _real(x):
    x = jnp.ravel(x)
    return jnp.concatenate([x.real, x.imag]) if jnp.iscomplexobj(x) else x
