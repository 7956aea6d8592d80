"""How often the 95 % ball of `confidence_ball` holds the mean of the population, and how wide it is.

    python -m benchmarks.measure.region_coverage [--n 50 200] [--mu 1 3] [--epsilon 2] [--test]
    python -m benchmarks.measure.region_coverage --located [the same options]
    python -m benchmarks.measure.region_coverage --steps --spaces "S², wide" "shapes k = 8, wide" "SO(3), wide" --n 200

Data sets are drawn from a known wrapped normal law, nearly all of it within the ball (but for the spaces that are
called clipped); its mean, clipped to the ball, is what regions are for. `describe` is simulated on each, noise
included, and its region made of what it releases, by replicates of its own (the regions of all readers have one seed,
and what is wrong with its B replicates is wrong with all of them: their coverage differs from the one measured here by
about sqrt(.05 (.95)/B), .005 for the 2000 that are the default). The oracle knows the law: the .95 quantile of the
distances of its releases. With --located no ball is given: `describe` itself finds one, with the system's entropy, and
the region is that of all its stages. With --steps the ball is given, and `describe` itself, too, makes each
description; where it releases the mean in steps, and the last column is the oracle's width over that of one
release. With --test, how often `two_sample_test` rejects at level .05: its size and
power. Prints a table in Markdown.
"""

import argparse
import math
import types
import zlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxgeodp as jgd
from jaxgeodp.inference import describe
from jaxgeodp.inference.known_noise import EntryNoise
from jaxgeodp.inference.matrix_noise import HullNoise, is_smaller
from jaxgeodp.inference.moments import FrechetVariance, TangentCovariance
from jaxgeodp.inference.population import Population, population_of
from jaxgeodp.inference.regions import Procedure, ball_of, compare
from jaxgeodp.inference.shares import shares_of
from jaxgeodp.inference.spread import SpreadMechanism
from jaxgeodp.inference.unclipped import unclipped
from jaxgeodp.nested_lists import to_lists

# Draws by which the mean of a clipped population is known.
TARGET = 2**20


class Law(NamedTuple):
    """Of the records."""

    manifold: jgd.Manifold
    spread: float  #: middle standard deviation
    radius: float  #: of the public ball
    even: bool = True  #: standard deviations from .6 to 1.4 of the middle one; else one has 2, all others .03


SPACES = {
    "S²": Law(jgd.Sphere(2), 0.12, 0.5),
    "H²": Law(jgd.Hyperbolic(2), 0.3, 1.2),
    "SO(3)": Law(jgd.Rotations(), 0.15, 0.7),
    "SPD(3)": Law(jgd.SPD(3), 0.25, 1.2),
    "shapes k = 8": Law(jgd.PlanarShapes(8), 0.045, 0.28),
    # One direction has nearly all of the spread.
    "SPD(3), 1": Law(jgd.SPD(3), 0.2, 1.2, even=False),
    "shapes k = 8, 1": Law(jgd.PlanarShapes(8), 0.04, 0.28, even=False),
    "R^12, 1": Law(jgd.Euclidean(12), 0.125, 1.0, even=False),
    # Two to three times as wide as the records need.
    "S², wide": Law(jgd.Sphere(2), 0.12, 0.75),
    "shapes k = 8, wide": Law(jgd.PlanarShapes(8), 0.045, 0.38),
    "SO(3), wide": Law(jgd.Rotations(), 0.15, 1.2),
    # The ball clips a third of the records, and more.
    "S², clipped": Law(jgd.Sphere(2), 0.22, 0.3),
    "SPD(3), clipped": Law(jgd.SPD(3), 0.25, 0.6),
}


def law_of(law, away=None):
    """The public ball, and mean, frame and root of the law of the records.

    Args:
        law: see there.
        away: the mean is moved so far in the last direction of the frame.
    """
    manifold, spread, radius, even = law
    origin = jnp.asarray(manifold.origin)
    ball = jgd.GeodesicBall(manifold, manifold.origin, radius)
    center = manifold.exp(origin, 0.2 * radius * manifold.frame(origin)[0])
    if away is not None:
        center = manifold.exp(center, away * manifold.frame(center)[-1])
    relative = np.linspace(0.6, 1.4, manifold.dim) if even else np.append(2.0, np.full(manifold.dim - 1, 0.03))
    return ball, (center, manifold.frame(center), jnp.diag(jnp.asarray(spread * relative)))


def first_of(ball, parameter, share):
    """The mechanism of the mean in `describe`."""
    return {"mu": jgd.WrappedGaussian, "epsilon": jgd.LaplaceMechanism}[parameter](ball, share)


def parts_of(budget, shares):
    """What mean, variance and covariance have of a budget, as `describe` splits it."""
    parameter, strength = budget
    power = 0.5 if parameter == "mu" else 1.0
    return [strength * (share / 100.0) ** power for share in shares]


def released(manifold, ball, budget, n, shares, key, data, reach=None):
    """The population that a reader of one simulated description of data fits, and the procedure of its mean.

    Spread is capped at what records within ``reach`` of the centre can have, by default the radius of the ball.
    """
    of_mean, of_variance, of_matrix = jax.random.split(key, 3)
    parameter, strengths = budget[0], parts_of(budget, shares)
    mechanism = first_of(ball, parameter, strengths[0])
    of_points = mechanism.law(n)
    mean = np.asarray(draw(of_points, of_mean, data))
    about = np.asarray(nearest(ball, mean))
    parts = [types.SimpleNamespace(value=mean, record={"n": n})]
    for statistic, strength, own in (
        (FrechetVariance(), strengths[1], of_variance),
        (TangentCovariance(), strengths[2], of_matrix),
    ):
        law = SpreadMechanism(ball, about, statistic, **{parameter: strength}).law(n)
        if not (isinstance(law.noise, HullNoise) and is_smaller(manifold.dim)):
            law = law.grid.continuous()
        kind = {"kind": "zcdp" if parameter == "mu" else "pure"}
        record = {"about": to_lists(about), "scale": float(np.ravel(law.scale)[0]), "guarantee": kind, "n": n}
        within = ball.radius if reach is None else reach
        record |= {"frame": law.terms.more["frame"], "sampler": law.terms.sampler, "ball": {"radius": within}}
        parts.append(types.SimpleNamespace(value=np.asarray(law.simulate(own, data, 1)[0]), record=record))
    dim = manifold.dim
    noise = float(of_points.scale) ** 2 * dim * (1.0 if parameter == "mu" else dim + 1.0)
    fitted = population_of(manifold, *parts, mean_noise=noise if np.array_equal(about, mean) else 0.0)
    population = unclipped(fitted, ball)
    return population, Procedure(mechanism, n)


def target_of(ball, truth):
    """The mean of the population, clipped to the ball: of a million draws."""
    return jgd.frechet_mean(ball.manifold, ball.clip(sample(ball.manifold, *truth, jax.random.key(0), TARGET)))


sample = jax.jit(
    lambda manifold, mean, frame, root, key, n: jax.vmap(
        lambda z: manifold.project(manifold.exp(mean, manifold.combine(root @ z, frame)))
    )(jax.random.normal(key, (n, manifold.dim))),
    static_argnums=(0, 5),
)
nearest = jax.jit(lambda ball, point: ball.pull_inside(point))


@jax.jit
def draw(law, key, records):
    home, points, back = law.at_home(records)
    center = jgd.frechet_mean(law.ball.manifold, points)
    return home.draws(key, points, center, 1, None).mapped(back).points[0]


def known_population(manifold, truth):
    """The law of the records, as somebody has fitted it who has seen a great many of them."""
    covariance = np.asarray(truth[2]) ** 2
    point, frame = map(np.asarray, truth[:2])
    return Population(manifold, point, frame, covariance, float(np.trace(covariance)), 0.0, EntryNoise(0.0), 10**12)


def cell(space, n, budget, outer, draws):
    """Coverage and its standard error, and the mean width over the oracle's."""
    manifold = space.manifold
    ball, truth = law_of(space)
    shares = shares_of(*budget, n, manifold.dim)
    known = known_population(manifold, truth)
    procedure = Procedure(first_of(ball, budget[0], parts_of(budget, shares)[0]), n)
    oracle = ball_of(known, procedure, 0.95, 4000).radius
    held, widths = [], []
    target = target_of(ball, truth)
    # Cells with the same draws would err alike.
    own = zlib.crc32(f"{manifold} {space.spread} {space.radius} {space.even} {n} {budget}".encode())
    for seed, key in enumerate(jax.random.split(jax.random.key(own), outer), 1):
        of_data, of_release = jax.random.split(key)
        data = sample(manifold, *truth, of_data, n)
        population, procedure = released(manifold, ball, budget, n, shares, of_release, data)
        region = ball_of(population, procedure, 0.95, draws, seed)
        held.append(region.contains(target))
        widths.append(region.radius)
    return *share_of(held), float(np.mean(widths)) / oracle


def located_cell(space, n, budget, outer, draws):
    """As `cell`, where the ball is found, too."""
    manifold = space.manifold
    _, truth = law_of(space)
    known = known_population(manifold, truth)
    oracle, held, widths = None, [], []
    own = zlib.crc32(f"{manifold} {n} {budget} located".encode())
    for seed, key in enumerate(jax.random.split(jax.random.key(own), outer), 1):
        data = np.asarray(sample(manifold, *truth, key, n))
        found = describe(data, manifold, **{budget[0]: budget[1]})
        oracle = oracle or ball_of(known, found.procedure, 0.95, 4000).radius
        region = ball_of(found.population, found.procedure, 0.95, draws, seed)
        held.append(region.contains(truth[0]))
        widths.append(region.radius)
    return *share_of(held), float(np.mean(widths)) / oracle


def described_cell(space, n, budget, outer, draws):
    """As `cell`, by `describe` itself; and the oracle's width over that of one release."""
    manifold = space.manifold
    ball, truth = law_of(space)
    known, target = known_population(manifold, truth), target_of(ball, truth)
    share = parts_of(budget, shares_of(*budget, n, manifold.dim))[0]
    once = ball_of(known, Procedure(first_of(ball, budget[0], share), n), 0.95, 4000).radius
    oracle, held, widths = None, [], []
    own = zlib.crc32(f"{manifold} {space.radius} {n} {budget} described".encode())
    for seed, key in enumerate(jax.random.split(jax.random.key(own), outer), 1):
        data = np.asarray(sample(manifold, *truth, key, n))
        found = describe(data, manifold, ball=ball, **{budget[0]: budget[1]})
        oracle = oracle or ball_of(known, found.procedure, 0.95, 4000).radius
        region = ball_of(found.population, found.procedure, 0.95, draws, seed)
        held.append(region.contains(target))
        widths.append(region.radius)
    return *share_of(held), float(np.mean(widths)) / oracle, oracle / once


def rejections(space, n, budget, distance, outer, draws):
    """How often two laws whose means are so far apart are told apart at level .05, and the standard error.

    The distance is in units of the standard deviation, in that direction, of the difference of two released means.
    """
    manifold, spread = space.manifold, space.spread
    shares = shares_of(*budget, n, manifold.dim)
    ball, _ = law_of(space)
    scale = float(first_of(ball, budget[0], parts_of(budget, shares)[0]).law(n).scale)
    noise = scale**2 * (1.0 if budget[0] == "mu" else manifold.dim + 1.0)
    away = distance * math.sqrt(2.0 * ((1.4 * spread) ** 2 / n + noise))
    truths = [law_of(space, own)[1] for own in (0.0, away)]
    rejected = []
    own = zlib.crc32(f"{manifold} {n} {budget} {distance}".encode())
    for seed, key in enumerate(jax.random.split(jax.random.key(own), outer), 1):
        pair = []
        for truth, one in zip(truths, jax.random.split(key), strict=True):
            of_data, of_release = jax.random.split(one)
            data = sample(manifold, *truth, of_data, n)
            pair.append(released(manifold, ball, budget, n, shares, of_release, data))
        rejected.append(compare(*pair, draws=draws, seed=seed).p_value <= 0.05)
    return share_of(rejected)


def share_of(outcomes):
    """A share and its standard error."""
    share = float(np.mean(outcomes))
    return share, math.sqrt(share * (1 - share) / len(outcomes))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--outer", type=int, default=400)
    parser.add_argument("--draws", type=int, default=39)
    parser.add_argument("--spaces", nargs="*", default=list(SPACES))
    parser.add_argument("--n", nargs="*", type=int, default=[50, 200, 1000])
    parser.add_argument("--mu", nargs="*", type=float, default=[])
    parser.add_argument("--epsilon", nargs="*", type=float, default=[])
    parser.add_argument("--test", action="store_true")
    parser.add_argument("--located", action="store_true")
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("--distances", nargs="*", type=float, default=[0.0, 1.0, 2.0, 3.0, 4.0])
    arguments = parser.parse_args()
    budgets = [(name, own) for name in ("mu", "epsilon") for own in getattr(arguments, name)] or [("mu", 1.0)]
    columns = [f"{x:g}" for x in arguments.distances] if arguments.test else ["coverage of 95 %", "width/oracle"]
    columns += ["oracle/one release"] if arguments.steps else []
    print(f"| space | n | budget | {' | '.join(columns)} |\n{'|---' * (3 + len(columns))}|")
    for name in arguments.spaces:
        for n in arguments.n:
            for budget in budgets:
                if arguments.test:
                    found = [
                        rejections(SPACES[name], n, budget, distance, arguments.outer, arguments.draws)
                        for distance in arguments.distances
                    ]
                    told = [f"{share:.3f} ± {error:.3f}" for share, error in found]
                else:
                    one = located_cell if arguments.located else described_cell if arguments.steps else cell
                    share, error, *widths = one(SPACES[name], n, budget, arguments.outer, arguments.draws)
                    told = [f"{share:.3f} ± {error:.3f}", *(f"{width:.2f}" for width in widths)]
                print(f"| {name} | {n} | {budget[0]} = {budget[1]:g} | {' | '.join(told)} |", flush=True)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
