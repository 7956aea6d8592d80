"""How often the 95 % ball of `confidence_ball` holds the mean of the population, and how wide it is.

    python benchmarks/coverage.py [--outer 400] [--draws 400]

Data sets are drawn from a known wrapped normal law, nearly all of it within the ball; `describe` is simulated on each,
noise included, and its region made of what it releases. The oracle knows the law: the .95 quantile of the distances of
its releases. Prints a table in Markdown.
"""

import argparse
import math
import types
import zlib

import jax
import jax.numpy as jnp
import numpy as np

import jaxgeodp as jgd
from jaxgeodp.inference.moments import FrechetVariance, TangentCovariance
from jaxgeodp.inference.population import Population, population_of
from jaxgeodp.inference.regions import Procedure, ball_of
from jaxgeodp.inference.shares import shares_of
from jaxgeodp.inference.spread import SpreadMechanism
from jaxgeodp.manifolds.described import to_lists

SPACES = {
    "S²": (jgd.Sphere(2), 0.12, 0.5),
    "H²": (jgd.Hyperbolic(2), 0.3, 1.2),
    "SO(3)": (jgd.Rotations(), 0.15, 0.7),
    "SPD(3)": (jgd.SPD(3), 0.25, 1.2),
    "shapes k = 8": (jgd.PlanarShapes(8), 0.045, 0.28),
}


def released(manifold, ball, mu, n, shares, key, truth):
    """The population that a reader of one simulated description fits, and the procedure of its mean."""
    of_data, of_mean, of_variance, of_matrix = jax.random.split(key, 4)
    strengths = [mu * math.sqrt(share) for share in shares]
    data = sample(manifold, *truth, of_data, n)
    mechanism = jgd.WrappedGaussian(ball, strengths[0])
    law = mechanism.law(n)
    mean = np.asarray(draw(law, of_mean, data))
    about = np.asarray(nearest(ball, mean))
    parts = [types.SimpleNamespace(value=mean, record={"n": n})]
    for statistic, strength, own in (
        (FrechetVariance(), strengths[1], of_variance),
        (TangentCovariance(), strengths[2], of_matrix),
    ):
        spread = SpreadMechanism(ball, about, statistic, mu=strength)
        terms = spread.law(n)
        record = {"about": to_lists(about), "scale": float(terms.scale[0]), "guarantee": {"kind": "zcdp"}, "n": n}
        record["frame"] = terms.terms.more["frame"]
        parts.append(types.SimpleNamespace(value=np.asarray(terms.simulate(own, data, 1)[0]), record=record))
    population = population_of(manifold, *parts, mean_noise=law.scale**2 * manifold.dim)
    return population, Procedure(mechanism, n)


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


def cell(manifold, spread, radius, n, mu, outer, draws):
    """Coverage and its standard error, and the mean width over the oracle's."""
    origin = jnp.asarray(manifold.origin)
    ball = jgd.GeodesicBall(manifold, manifold.origin, radius)
    center = manifold.exp(origin, 0.2 * radius * manifold.frame(origin)[0])
    scales = spread * np.linspace(0.6, 1.4, manifold.dim)
    truth = center, manifold.frame(center), jnp.diag(jnp.asarray(scales))
    shares = shares_of("mu", mu, n, manifold.dim)
    total, certain = float(np.sum(scales**2)), 10**12  # as many records: the law is known
    known = Population(manifold, np.asarray(center), np.asarray(truth[1]), np.diag(scales**2), total, 0.0, 0.0, certain)
    oracle = ball_of(known, Procedure(jgd.WrappedGaussian(ball, mu * math.sqrt(shares[0])), n), 0.95, 4000).radius
    held, widths = [], []
    own = zlib.crc32(f"{manifold} {n} {mu}".encode())  # cells with the same draws would err alike
    for key in jax.random.split(jax.random.key(own), outer):
        population, procedure = released(manifold, ball, mu, n, shares, key, truth)
        region = ball_of(population, procedure, 0.95, draws)
        held.append(region.contains(center))
        widths.append(region.radius)
    share = float(np.mean(held))
    return share, math.sqrt(share * (1 - share) / outer), float(np.mean(widths)) / oracle


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--outer", type=int, default=400)
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--spaces", nargs="*", default=list(SPACES))
    parser.add_argument("--n", nargs="*", type=int, default=[50, 200, 1000])
    parser.add_argument("--mu", nargs="*", type=float, default=[1.0, 3.0])
    arguments = parser.parse_args()
    print("| space | n | mu | coverage of 95 % | width/oracle |\n|---|---|---|---|---|")
    for name in arguments.spaces:
        manifold, spread, radius = SPACES[name]
        for n in arguments.n:
            for mu in arguments.mu:
                share, error, width = cell(manifold, spread, radius, n, mu, arguments.outer, arguments.draws)
                print(f"| {name} | {n} | {mu:g} | {share:.3f} ± {error:.3f} | {width:.2f} |", flush=True)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
