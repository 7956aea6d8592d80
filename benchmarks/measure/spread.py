"""How near principal geodesics and synthetic records come to the truth, over n; and spread in a small ball.

    python -m benchmarks.measure.spread [--replicates 100] [--mu 1]
    python -m benchmarks.measure.spread --small [--replicates 400]

Data sets are drawn from the wrapped normal laws of `region_coverage`; `describe` is simulated on each, noise included.
 The angle is that between the first principal direction and the law's; that of the records, which is not
private, stands beside it. Then as many synthetic records as there are real ones are drawn: the distance of their mean
from that of the law, and of their covariance (Frobenius norm, in units of the law's). Prints a table in Markdown.

With --small, what a reader of 150 records in a small ball is told of their spread, with and without the cap at what
records in the ball can have: how often the root mean square distance that is told is more than the radius, the mean of
that distance and of the end of the first interval, and how often bounds of the variance, all intervals together and
regions hold the truth, that of a million draws, clipped.
"""

import argparse
import math

import jax
import jax.numpy as jnp
import numpy as np

import jaxgeodp as jgd
from benchmarks.measure.region_coverage import SPACES, TARGET, Law, law_of, released, sample, target_of
from jaxgeodp.inference.population import carried, draw_points, geodesics_of, reference
from jaxgeodp.inference.regions import ball_of
from jaxgeodp.inference.shares import shares_of

# The ball clips a third of the records.
SMALL = {"S²": Law(jgd.Sphere(2), 0.03, 0.048), "SPD(2)": Law(jgd.SPD(2), 0.03, 0.055)}
BUDGETS = (("epsilon", 0.1), ("epsilon", 0.5), ("mu", 0.1))


def moments(manifold, truth, points):
    """The mean of points, and their covariance in the frame of the truth, carried to the mean."""
    center, frame, _ = truth
    mean = jgd.frechet_mean(manifold, points)
    there = carried(manifold, center, mean, frame)
    vectors = coordinates(manifold, mean, points, there)
    return mean, np.asarray(vectors.T @ vectors / (len(points) - 1))


coordinates = jax.jit(
    lambda manifold, mean, points, frame: jax.vmap(lambda x: manifold.coordinates(mean, manifold.log(mean, x), frame))(
        points
    ),
    static_argnums=0,
)


def figures(manifold, truth, mean, covariance):
    """Angle of the first direction in degrees, distance of the mean, relative error of the covariance."""
    center, _, root = truth
    right = np.asarray(root) @ np.asarray(root).T
    first = [np.linalg.eigh(own)[1][:, -1] for own in (right, covariance)]
    angle = np.degrees(np.arccos(min(abs(float(first[0] @ first[1])), 1.0)))
    error = np.linalg.norm(covariance - right) / np.linalg.norm(right)
    return angle, float(manifold.dist(jnp.asarray(center), jnp.asarray(mean))), error


def cell(law, n, mu, replicates):
    """Averages of the figures of records, and of synthetic ones."""
    manifold, (ball, truth) = law.manifold, law_of(law)
    shares = shares_of("mu", mu, n, manifold.dim)
    found = []
    for key in jax.random.split(jax.random.key(n), replicates):
        of_data, of_release, of_synthetic = jax.random.split(key, 3)
        data = sample(manifold, *truth, of_data, n)
        population, _ = released(manifold, ball, ("mu", mu), n, shares, of_release, data)
        synthetic = draw_points(manifold, *reference(population), of_synthetic, n)
        own = figures(manifold, truth, *moments(manifold, truth, data))
        theirs = figures(manifold, truth, *moments(manifold, truth, synthetic))
        # The direction is that of the fitted law, not of draws from it.
        there = carried(manifold, jnp.asarray(truth[0]), jnp.asarray(population.mean), jnp.asarray(truth[1]))
        turn = coordinates_of_frame(manifold, jnp.asarray(population.mean), jnp.asarray(population.frame), there)
        fitted = figures(
            manifold, truth, population.mean, np.asarray(turn) @ population.covariance @ np.asarray(turn).T
        )
        found.append((own[0], fitted[0], own[1], theirs[1], own[2], theirs[2]))
    return np.mean(found, axis=0)


coordinates_of_frame = jax.jit(
    lambda manifold, mean, frame, other: jax.vmap(lambda v: manifold.coordinates(mean, v, other))(frame).T,
    static_argnums=0,
)


def clipped_truth(law):
    """The mean of the clipped population, and its variances along principal directions, the largest first."""
    manifold, (ball, truth) = law.manifold, law_of(law)
    target = target_of(ball, truth)
    clipped = ball.clip(sample(manifold, *truth, jax.random.key(0), TARGET))
    vectors = np.asarray(coordinates(manifold, target, clipped, manifold.frame(target)))
    return target, np.sort(np.linalg.eigvalsh(vectors.T @ vectors / TARGET))[::-1]


def small_cell(law, target, right, n, budget, replicates):
    """Figures of `small`: of capped spread, and of what was told without a cap."""
    manifold, (ball, truth) = law.manifold, law_of(law)
    shares = shares_of(*budget, n, manifold.dim)
    told = {reach: [] for reach in (ball.radius, math.inf)}
    for seed, key in enumerate(jax.random.split(jax.random.key(n), replicates), 1):
        of_data, of_release = jax.random.split(key)
        data = sample(manifold, *truth, of_data, n)
        for reach, found in told.items():
            own, procedure = released(manifold, ball, budget, n, shares, of_release, data, reach)
            intervals = geodesics_of(own, 0.95, 300).intervals
            held = bool(np.all((intervals[:, 0] <= right) & (right <= intervals[:, 1])))
            region = ball_of(own, procedure, 0.95, 39, seed)
            found.append(
                (
                    math.sqrt(own.variance) > ball.radius * (1.0 + 1e-9),
                    math.sqrt(own.variance) / ball.radius,
                    math.sqrt(intervals[0, 1]) / ball.radius,
                    float(np.sum(right)) <= own.most_variance,
                    held,
                    region.contains(target),
                    region.radius / ball.radius,
                )
            )
    return {"capped" if reach < math.inf else "not": np.mean(found, axis=0) for reach, found in told.items()}


def small(replicates):
    """Print the table of a small ball."""
    print(
        "| space | budget | true spread/r | cap | told more than r | told/r | first interval ends at, /r | bound holds "
        "| intervals hold | region holds | its radius/r |\n" + "|---" * 11 + "|"
    )
    for name, law in SMALL.items():
        target, right = clipped_truth(law)
        truth = math.sqrt(float(np.sum(right))) / law.radius
        for budget in BUDGETS:
            for cap, own in small_cell(law, target, right, 150, budget, replicates).items():
                words = " | ".join(f"{x:.3f}" for x in own)
                print(f"| {name} | {budget[0]} = {budget[1]:g} | {truth:.3f} | {cap} | {words} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--mu", type=float, default=1.0)
    parser.add_argument("--spaces", nargs="*", default=list(SPACES))
    parser.add_argument("--n", nargs="*", type=int, default=[200, 1000, 10_000, 100_000])
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    if arguments.small:
        small(arguments.replicates)
        return
    print("| space | n | angle, °: records | released | mean: records | synthetic | covariance: records | synthetic |")
    print("|---|---|---|---|---|---|---|---|")
    for name in arguments.spaces:
        for n in arguments.n:
            own = cell(SPACES[name], n, arguments.mu, arguments.replicates)
            angles, rest = " | ".join(f"{x:.1f}" for x in own[:2]), " | ".join(f"{x:.2g}" for x in own[2:])
            print(f"| {name} | {n} | {angles} | {rest} |", flush=True)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
