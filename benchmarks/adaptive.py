"""How far off a release in steps is, over one release about the public centre; the table of docs/mathematics.md.

Normal records at an offset and of a spread (root mean square), in units of the radius, clipped to the ball. With
``--populations``, those of `plan_in_steps` in flat space, for many n and dimensions.

    python benchmarks/adaptive.py [--draws 300] [--records 500]
    python benchmarks/adaptive.py --populations
"""

import argparse
import itertools

import jax
import numpy as np

import jaxgeodp as jgd
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--records", type=int, default=500)
    parser.add_argument("--populations", action="store_true")
    asked = parser.parse_args()
    if asked.populations:
        print_populations()
        return
    jax.config.update("jax_enable_x64", True)
    names = [f"{'μ' if 'mu' in budget else 'ε'}{', symmetric' if symmetric else ''}" for budget, symmetric in KINDS]
    print("| space | offset, spread | " + " | ".join(names) + " |\n" + "|---" * (len(KINDS) + 2) + "|")
    for name, (manifold, radius) in SPACES.items():
        ball = jgd.GeodesicBall(manifold, manifold.origin, radius)
        for offset, spread in PLACES:
            records, row = population(ball, offset, spread, asked.records), []
            for budget, symmetric in KINDS:
                one = jgd.WrappedGaussian(ball, 1.0) if "mu" in budget else jgd.WrappedLaplace(ball, 1.0)
                steps = jgd.AdaptiveMechanism(ball, **budget, symmetric=symmetric)
                row.append(f"{error(steps, records, asked.draws) / error(one, records, asked.draws):.2f}")
            print(f"| {name} | {offset:g}, {spread:g} | " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
