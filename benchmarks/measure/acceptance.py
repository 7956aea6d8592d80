"""The share of proposals that exact sampling accepts for losses without a sharp bound; docs/mathematics.md, section 7.

    python -m benchmarks.measure.acceptance [--quick]

KNG for the median and for power means, about records within 0.3 of the ball's radius. Each share is that of so many
draws: it is known to about 1/sqrt(draws).
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.tools.timing import print_machine
from jaxgeodp import SPD, FrechetMedian, GeodesicBall, KNGMechanism, PlanarShapes, PowerMean, Sphere

BALLS = {
    "S², r = .5": (Sphere(2), 0.5, 400),
    "SPD(2), r = 1.5": (SPD(2), 1.5, 400),
    "SPD(3), r = 1.5": (SPD(3), 1.5, 400),
    "shapes, k = 10, r = .3": (PlanarShapes(10), 0.3, 10),
}  #: manifold, radius, number of draws
LOSSES = {"median": FrechetMedian(), "p = 3": PowerMean(3.0), "p = 1.5": PowerMean(1.5)}
BUDGETS = ((100, 1.0), (1000, 10.0))
WITHIN = 0.3  #: of the radius


def records_of(ball, n):
    """Records, uniform in a ball of the tangent space."""
    manifold, generator = ball.manifold, np.random.default_rng(0)
    vectors = generator.normal(size=(n, manifold.dim))
    lengths = WITHIN * ball.radius * generator.uniform(size=(n, 1)) ** (1.0 / manifold.dim)
    vectors *= lengths / np.linalg.norm(vectors, axis=1, keepdims=True)
    center = jnp.asarray(ball.center)
    frame = manifold.frame(center)
    return jax.vmap(lambda v: manifold.exp(center, manifold.combine(v, frame)))(jnp.asarray(vectors))


def accepted(ball, loss, n, epsilon, draws) -> str:
    """The share, to two digits."""
    drawn = KNGMechanism(ball, epsilon, loss).law(n).simulated(jax.random.key(0), records_of(ball, n), draws)
    if not bool(drawn.complete):
        raise RuntimeError(f"{ball.manifold}, {loss}: incomplete.")
    return f"{float(drawn.acceptance):.2g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one space and one loss")
    asked = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print_machine()
    most = 1 if asked.quick else None
    losses = list(LOSSES.items())[:most]
    head = [f"{name}, {n}, {epsilon:g}" for name, _ in losses for n, epsilon in BUDGETS]
    print("Share of accepted proposals: loss, n, ε\n")
    print("| | " + " | ".join(head) + " | seconds |\n" + "|---" * (len(head) + 2) + "|")
    for name, (manifold, radius, draws) in list(BALLS.items())[:most]:
        ball, begin = GeodesicBall(manifold, np.asarray(manifold.origin), radius), time.perf_counter()
        own = [accepted(ball, loss, n, epsilon, draws) for _, loss in losses for n, epsilon in BUDGETS]
        print(f"| {name} | {' | '.join(own)} | {time.perf_counter() - begin:.0f} |", flush=True)


if __name__ == "__main__":
    main()
