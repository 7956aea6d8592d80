"""How far off a release in steps is, over one release about the public centre; the table of docs/mathematics.md.

    python -m benchmarks.measure.adaptive [--draws 300] [--records 500]
    python -m benchmarks.measure.adaptive --populations
    python -m benchmarks.measure.adaptive --times [--draws 1000]

Normal records at an offset and of a spread (root mean square), in units of the radius, clipped to the ball. With
``--populations``, those of `plan_in_steps` in flat space, for many n and dimensions. With ``--times``, how long a draw
takes in place of how far off it is: the second of two calls of `simulate`, 1,000 draws each, with all that it compiles
behind it; on planar shapes with `Shape.smooth`.
"""

import argparse
import itertools
import time

import jax
import numpy as np

import jaxgeodp as jgd
from jaxgeodp import datasets
from jaxgeodp.mechanisms import plan_in_steps
from jaxgeodp.mechanisms.populations import POPULATIONS, geometric_mean

SPACES = {
    "R², r = 1": (jgd.Euclidean(2), 1.0),
    "R¹⁰, r = 1": (jgd.Euclidean(10), 1.0),
    "S², r = .5": (jgd.Sphere(2), 0.5),
    "SPD(2), r = 1.5": (jgd.SPD(2), 1.5),
}
PLACES = ((0.0, 1.0), (0.3, 0.5), (0.5, 0.35), (0.5, 0.15), (0.6, 0.05))
KINDS = [({"mu": 1.0}, False), ({"mu": 1.0}, True), ({"epsilon": 1.0}, False), ({"epsilon": 1.0}, True)]


def population(ball: jgd.GeodesicBall, offset: float, spread: float, n: int) -> np.ndarray:
    """Records, (n, *shape)."""
    manifold, center = ball.manifold, np.asarray(ball.center)
    z = np.random.default_rng(0).normal(size=(n, manifold.dim)) * spread / np.sqrt(manifold.dim)
    z[:, 0] += offset
    frame = manifold.frame(center)
    return np.asarray(jax.vmap(lambda v: manifold.exp(center, manifold.combine(ball.radius * v, frame)))(z))


def error(mechanism, records: np.ndarray, draws: int) -> float:
    """Mean distance from the mean of the clipped records."""
    manifold = mechanism.ball.manifold
    mean = jgd.frechet_mean(manifold, mechanism.ball.clip(records))
    values = mechanism.simulate(jax.random.key(0), records, draws)
    return float(np.mean(jax.vmap(manifold.dist, (None, 0))(mean, values)))


def print_populations() -> None:
    """Ratios of errors, and their geometric mean."""
    heads = ["", *(f"{own.law} {own.offset:g}, {own.spread:g}" for own in POPULATIONS), "geometric mean"]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for parameter, dim, n in itertools.product(("mu", "epsilon"), (2, 3, 6, 10, 30), (50, 200, 500, 2000, 10_000)):
        ball = jgd.GeodesicBall(jgd.Euclidean(dim), np.zeros(dim), 1.0)
        found = plan_in_steps(ball, n, 1.0) if parameter == "epsilon" else plan_in_steps(ball, n, mu=1.0)
        if found:
            row = [f"{'μ' if parameter == 'mu' else 'ε'}, d = {dim}, n = {n}", *(f"{own.ratio:.2f}" for own in found)]
            print("| " + " | ".join([*row, f"{geometric_mean(found):.2f}"]) + " |", flush=True)


def milliseconds(mechanism, records: np.ndarray, draws: int) -> str:
    """Of a draw among so many."""
    for seed in range(2):
        begin = time.perf_counter()
        jax.block_until_ready(mechanism.simulate(jax.random.key(seed), records, draws))
        taken = time.perf_counter() - begin
    return f"{1e3 * taken / draws:.3f}"


def print_times(n: int, draws: int) -> None:
    """For one release and for steps, by budget."""
    outline = np.asarray(jgd.PlanarShapes(16).from_landmarks(datasets.template_outline(2, 16)))
    balls = {
        "S², r = .5": (jgd.GeodesicBall(jgd.Sphere(2), jgd.Sphere(2).origin, 0.5), False),
        "SPD(3), r = 1.5": (jgd.GeodesicBall(jgd.SPD(3), np.eye(3), 1.5), False),
        "16 landmarks, r = .3, with a shape": (jgd.GeodesicBall(jgd.PlanarShapes(16), outline, 0.3), True),
    }
    print("| ms a draw | one release, μ | in steps, μ | one release, ε | in steps, ε |\n" + "|---" * 5 + "|")
    for name, (ball, is_shaped) in balls.items():
        records, row = population(ball, 0.5, 0.15, n), []
        for budget in ({"mu": 1.0}, {"epsilon": 1.0}):
            shape = jgd.Shape.smooth(ball.manifold, ball.center, n, radius=ball.radius, **budget) if is_shaped else None
            one = (jgd.TangentGaussian if "mu" in budget else jgd.TangentLaplace)(ball, 1.0, shape)
            for mechanism in (one, jgd.AdaptiveMechanism(ball, **budget, shape=shape)):
                row.append(milliseconds(mechanism, records, draws))
        print(f"| {name} | " + " | ".join(row) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, help="300 by default, 1,000 of --times")
    parser.add_argument("--records", type=int, default=500)
    parser.add_argument("--populations", action="store_true")
    parser.add_argument("--times", action="store_true")
    asked = parser.parse_args()
    if asked.populations:
        print_populations()
        return
    jax.config.update("jax_enable_x64", True)
    if asked.times:
        print_times(asked.records, asked.draws or 1000)
        return
    draws = asked.draws or 300
    names = [f"{'μ' if 'mu' in budget else 'ε'}{', symmetric' if symmetric else ''}" for budget, symmetric in KINDS]
    print("| space | offset, spread | " + " | ".join(names) + " |\n" + "|---" * (len(KINDS) + 2) + "|")
    for name, (manifold, radius) in SPACES.items():
        ball = jgd.GeodesicBall(manifold, manifold.origin, radius)
        for offset, spread in PLACES:
            records, row = population(ball, offset, spread, asked.records), []
            for budget, symmetric in KINDS:
                one = jgd.WrappedGaussian(ball, 1.0) if "mu" in budget else jgd.WrappedLaplace(ball, 1.0)
                steps = jgd.AdaptiveMechanism(ball, **budget, symmetric=symmetric)
                row.append(f"{error(steps, records, draws) / error(one, records, draws):.2f}")
            print(f"| {name} | {offset:g}, {spread:g} | " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
