"""What finding the ball costs: errors of `LocatedMechanism` over those of an oracle that is told the smallest ball.

    python benchmarks/locate.py            # table of docs/locate.md, about ten minutes
    python benchmarks/locate.py --quick    # to see that it runs

Both spend the same whole budget. The oracle's ball is the smallest around the true mean that holds all records (within
Assumption 1), by `LaplaceMechanism` for epsilon and `WrappedGaussian` for mu. Data are normal in the tangent space of a
point at the given distance from the origin, with spread .7, on compact manifolds .3 or .15.
"""

import sys

import jax
import numpy as np

import jaxgeodp as jgd
from jaxgeodp.domains.geodesic_ball import assumption_limit

FLAT = 30.0
CASES = [
    *[(jgd.SPD(2), away, 0.7, budget, n) for away in (2, 4, 8, 12) for budget, n in (("mu", 300), ("mu", 1000))],
    *[(jgd.SPD(2), away, 0.7, "epsilon", n) for away in (2, 4, 8, 12) for n in (1000, 10_000)],
    *[(jgd.SPD(3), away, 0.7, budget, n) for away in (4, 8) for budget, n in (("mu", 1000), ("epsilon", 3000))],
    *[(jgd.SPD(8), 4, 0.7, "mu", n) for n in (1000, 3000)],
    *[(jgd.Hyperbolic(2), away, 0.7, budget, 1000) for away in (4, 8) for budget in ("mu", "epsilon")],
    *[(jgd.Euclidean(10), 8, 0.7, budget, 1000) for budget in ("mu", "epsilon")],
    *[(jgd.Sphere(2), 0, 0.3, budget, 1000) for budget in ("mu", "epsilon")],
    *[(jgd.Sphere(50), 0, 0.3, budget, n) for budget, n in (("mu", 1000), ("epsilon", 10_000))],
    *[(jgd.Rotations(), 0, 0.3, budget, 1000) for budget in ("mu", "epsilon")],
    *[(jgd.PlanarShapes(10), 0, 0.15, budget, n) for budget, n in (("mu", 1000), ("epsilon", 10_000))],
    *[(jgd.Grassmann(4, 2), 0, 0.2, budget, n) for budget, n in (("mu", 1000), ("epsilon", 3000))],
]


def data_on(space, away, spread, n):
    """Records around a point away from the origin."""
    origin = jax.numpy.asarray(space.origin)
    direction = space.random_tangent(jax.random.key(9), origin)
    center = space.exp(origin, away / space.norm(origin, direction) * direction)

    def record(key):
        return space.project(space.exp(center, spread / np.sqrt(space.dim) * space.random_tangent(key, center)))

    return jax.jit(jax.vmap(record))(jax.random.split(jax.random.key(1), n))


def medians(space, away, spread, budget, n, draws):
    """Of errors: located, and the oracle's; and how many rounds there were."""
    data = data_on(space, away, spread, n)
    mean = jgd.frechet_mean(space, data)
    reach = float(jax.vmap(lambda x: space.dist(mean, x))(data).max())
    ball = jgd.GeodesicBall(space, mean, min(1.001 * reach, 0.9 * assumption_limit(space)))
    domain = FLAT if isinstance(space, jgd.Euclidean) else None
    located = jgd.LocatedMechanism(space, domain=domain, **{budget: 1.0})
    oracle = (jgd.LaplaceMechanism if budget == "epsilon" else jgd.WrappedGaussian)(ball, 1.0)
    distances = jax.jit(jax.vmap(lambda x: space.dist(mean, x)))
    errors = [np.median(distances(own.simulate(jax.random.key(0), data, draws))) for own in (located, oracle)]
    return *errors, located.law(n).schedule.rounds


def main(quick: bool):
    """Print the table."""
    jax.config.update("jax_enable_x64", True)
    print(
        "| space | distance from the origin | n | budget | rounds | located | oracle | ratio "
        "|\n|---|---|---|---|---|---|---|---|"
    )
    for space, away, spread, budget, n in CASES[:2] if quick else CASES:
        where = "" if away == 0 else f"{away}"
        try:
            own, oracle, rounds = medians(space, away, spread, budget, n, 20 if quick else 200)
            cells = f"{rounds} | {own:.4f} | {oracle:.4f} | {own / oracle:.2f}"
        except ValueError as refusal:
            cells = f" | {'too few records' if 'too few' in str(refusal) else refusal} | | "
        print(f"| {space} | {where} | {n} | {budget} = 1 | {cells} |", flush=True)


if __name__ == "__main__":
    main("--quick" in sys.argv)
