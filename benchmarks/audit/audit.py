"""Lower bounds on epsilon or mu of every mechanism, and of mistakes planted in them, by drawing from them.

    python -m benchmarks.audit.audit [--draws 2000000]

Prints a table in Markdown: for each mechanism the worst pair of neighbours. A bound errs with probability 1e-6 at most.
"""

import argparse
import itertools
import math
import time

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
from benchmarks.audit.planted_fits import ClipOfTheRecords, ShapeOfTheRecords, at_a_quantile, one_alone
from benchmarks.tools.timing import print_machine
from jaxgeodp import (
    SPD,
    AdaptiveMechanism,
    Euclidean,
    EuclideanLaplace,
    FrechetMedian,
    GeodesicBall,
    GibbsMechanism,
    Hyperbolic,
    KNGMechanism,
    LandmarkLaplace,
    LaplaceMechanism,
    PlanarShapes,
    RiemannianGaussian,
    Rotations,
    Shape,
    Sphere,
    TangentGaussian,
    TangentLaplace,
    WrappedGaussian,
    WrappedLaplace,
)
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.inference import SpreadMechanism, TangentCovariance
from jaxgeodp.privacy import adversarial_neighbours, audit
from jaxgeodp.surfaces import JointGaussian, PointwiseGaussian

N = 5
# Records for which there are steps.
MANY = 200
# Those for which regression has a second round.
FITTED = 400
SPHERE = GeodesicBall(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.4)
HYPERBOLIC = GeodesicBall(Hyperbolic(2), np.array([1.0, 0.0, 0.0]), 0.8)
MATRICES = GeodesicBall(SPD(2), np.eye(2), 1.0)
LINE = GeodesicBall(Euclidean(1), np.zeros(1), 1.0)
PLANE = GeodesicBall(Euclidean(2), np.zeros(2), 1.0)
ROTATIONS = GeodesicBall(Rotations(), np.eye(3), 0.4)
SHAPES = GeodesicBall(PlanarShapes(4), np.array([1.0, 1.0j, -1.0, -1.0j]) / 2.0, 0.3)
FLAT = {"curves": "curves, m = 16", "PointwiseGaussian": "4 points", "JointGaussian": "4 points"}


def rows():
    """Name, mechanism, pairs of neighbours."""
    for ball in (SPHERE, HYPERBOLIC, MATRICES, LINE):
        for mechanism in (LaplaceMechanism(ball, 1.0), LaplaceMechanism(ball, 1.0, calibration="theorem")):
            yield f"Laplace, {mechanism.calibration}", mechanism, adversarial_neighbours(ball, N)
    for ball, count in (
        (SPHERE, N),
        (HYPERBOLIC, 20),
        (MATRICES, 20),
    ):  # needs more records where curvature is negative
        for mechanism in (KNGMechanism(ball, 1.0), KNGMechanism(ball, 1.0, calibration="theorem")):
            yield f"KNG, {mechanism.calibration}, n = {count}", mechanism, adversarial_neighbours(ball, count)
    for ball in (SPHERE, HYPERBOLIC):
        for build in (WrappedLaplace, TangentLaplace, EuclideanLaplace, WrappedGaussian, RiemannianGaussian):
            if build is not EuclideanLaplace or ball is SPHERE:
                yield build.__name__, build(ball, 1.0), adversarial_neighbours(ball, N)
    yield "TangentLaplace on the grid", OnTheGrid(TangentLaplace(LINE, 1.0)), adversarial_neighbours(LINE, N)
    edge = {"edge": adversarial_neighbours(HYPERBOLIC, N)["edge"]}
    yield "TangentLaplace on the grid", OnTheGrid(TangentLaplace(HYPERBOLIC, 1.0)), edge
    yield "WrappedLaplace on the grid", OnTheGrid(WrappedLaplace(HYPERBOLIC, 1.0)), edge
    yield "Laplace, δ = 1e-6", InFixedTime(LaplaceMechanism(HYPERBOLIC, 1.0), 1e-6), edge
    yield "KNG, δ = 1e-6", InFixedTime(KNGMechanism(SPHERE, 1.0), 1e-6), adversarial_neighbours(SPHERE, N)
    yield "RiemannianGaussian", RiemannianGaussian(MATRICES, 1.0), adversarial_neighbours(MATRICES, N)
    for ball in (SPHERE, HYPERBOLIC, MATRICES):
        yield "GibbsMechanism", GibbsMechanism(ball, 1.0), adversarial_neighbours(ball, N)
    yield "LandmarkLaplace", LandmarkLaplace(SHAPES, 1.0), adversarial_neighbours(SHAPES, N)
    t = np.arange(16) / 16
    waves = {j: math.sqrt(2.0) * np.cos(2 * np.pi * j * t) for j in range(1, 4)} | {0: np.ones(16)}
    pairs = {f"wave {j}": tuple(np.stack([w] * (N - 1) + [s * w])[:, None] for s in (1, -1)) for j, w in waves.items()}
    yield "curves", FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.05, 1.0, np.ones(1)), pairs
    yield "Laplace, tight", LaplaceMechanism(ROTATIONS, 1.0), adversarial_neighbours(ROTATIONS, N)
    yield "KNG for the median", KNGMechanism(SPHERE, 1.0, FrechetMedian()), adversarial_neighbours(SPHERE, N)
    corners = {"corners": tuple(np.stack([np.ones((4, 3))] * (N - 1) + [s * np.ones((4, 3))]) for s in (1.0, -1.0))}
    for mechanism in (PointwiseGaussian(np.zeros((4, 3)), 1.0, 1.0), JointGaussian(np.zeros((4, 3)), 3.0**0.5, 1.0)):
        yield type(mechanism).__name__, Points(mechanism), corners
    for ball in (LINE, HYPERBOLIC):
        for budget in ({"mu": 1.0}, {"epsilon": 1.0}):
            described = Described(ball, N, **budget)
            yield f"describe, {next(iter(budget))} = 1", described, adversarial_neighbours(ball, N)
    for ball in (HYPERBOLIC, MATRICES):
        spread = SpreadMechanism(ball, ball.center, TangentCovariance(), epsilon=1.0)
        yield "second moment, hull noise", spread, {"at right angles": at_right_angles(ball, N)}
    for budget in ({"mu": 1.0}, {"epsilon": 2.0}):
        fitted, pairs = Regressed(LINE, FITTED, **budget), {"at the end": at_the_end(LINE, FITTED)}
        yield f"regression, two rounds, {next(iter(budget))}, n = {FITTED}", fitted, pairs
    spread = SpreadMechanism(MATRICES, MATRICES.center, TangentCovariance(), epsilon=1.0)
    shape = Shape(LINE.center, [[0.5]], 1.0)
    for budget in ({"mu": 1.0}, {"epsilon": 2.0}, {"mu": 1.0, "shape": shape}):
        steps, pairs = AdaptiveMechanism(LINE, **budget), {"about a cluster": about_a_cluster(LINE, MANY)}
        yield f"AdaptiveMechanism, {', '.join(budget)}, n = {MANY}", steps, pairs
    for build in (TangentLaplace, TangentGaussian):
        yield f"{build.__name__} with a shape", build(LINE, 1.0, shape), adversarial_neighbours(LINE, N)
    planted = TwiceTheBudget(AdaptiveMechanism(LINE, mu=1.0))
    yield "PLANTED: steps with twice the budget", planted, {"about a cluster": about_a_cluster(LINE, MANY)}
    jumps, leaves = {"at a quantile": at_a_quantile(LINE, MANY)}, {"one alone": one_alone(PLANE, MANY)}
    yield "PLANTED: a clip of the records' own", ClipOfTheRecords(LINE, 1.0), jumps
    yield "PLANTED: a shape of the records' own", ShapeOfTheRecords(PLANE, 1.0), leaves
    yield (
        "PLANTED: hull noise of half the scale",
        HalfTheSecondMoment(spread),
        {"at right angles": at_right_angles(MATRICES, N)},
    )
    yield (
        "PLANTED: describe, each with all of mu",
        Described(LINE, N, (1.0, 1.0, 1.0), mu=1.0),
        adversarial_neighbours(LINE, N),
    )
    rounds = Regressed(LINE, FITTED, (2.0, 2.0), epsilon=2.0)
    yield "PLANTED: regression, each round with all of epsilon", rounds, {"at the end": at_the_end(LINE, FITTED)}
    yield "PLANTED: sigma halved", HalfTheScale(HYPERBOLIC, 1.0), edge
    yield "PLANTED: 1/n twice", DividedByNTwice(HYPERBOLIC, 1.0), edge
    alone = np.tile(SPHERE.center, (N, 1))
    other = np.concatenate([alone[1:], [[math.sin(0.4), 0.0, math.cos(0.4)]]])
    yield "PLANTED: radius from the data", RadiusFromTheData(SPHERE), {"one outlier": (alone, other)}
    yield "PLANTED: reused key", ReusedKey(LaplaceMechanism(HYPERBOLIC, 1.0)), edge


def score_of(mechanism, pair):
    """Its own, if it has one."""
    return mechanism.score(*pair) if isinstance(mechanism, Described | Regressed | ShapeOfTheRecords) else None


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--draws", type=int, default=2_000_000, help="from each law")
    parser.add_argument("--skip", type=int, default=0, help="rows that are known already")
    parser.add_argument("--only", default="", help="of a name: rows that have it alone")
    arguments = parser.parse_args()
    draws = arguments.draws
    print_machine()
    print(f"n = {N}, {draws:,} draws from each law of each pair, level 1e-6; lower bounds of epsilon, mu or rho")
    print("| mechanism | on | worst pair | lower bound | verdict | seconds |")
    print("|---|---|---|---|---|---|")
    for name, mechanism, pairs in itertools.islice(rows(), arguments.skip, None):
        if arguments.only not in name:
            continue
        start = time.perf_counter()
        found = {
            pair: audit(mechanism, *data, draws=draws, score=score_of(mechanism, data)) for pair, data in pairs.items()
        }
        worst = max(found, key=lambda pair: found[pair].lower_bound)
        manifold = getattr(mechanism, "ball", HYPERBOLIC).manifold
        where = FLAT.get(name, manifold)
        verdict = "broken" if found[worst].violated else "not contradicted"
        seconds = time.perf_counter() - start
        print(
            f"| {name} | {where} | {worst} | {found[worst].lower_bound:.3f} of {found[worst].promised:g} | {verdict} "
            f"| {seconds:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
