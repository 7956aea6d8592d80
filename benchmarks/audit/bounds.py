"""How sharp are the sensitivities? Largest change found by gradient ascent over data sets, in units of the bound.

    python -m benchmarks.audit.bounds [--quick]

One record of n = 6 is replaced. The search moves all records (and the point where gradients are compared) within their
balls, from 32 random starts and from records at opposite ends. A ratio above 1 would refute a theorem; far below 1 says
that noise is wasted or that the search is weak.
"""

import argparse
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks.tools.timing import print_machine, print_table
from jaxgeodp import (
    SPD,
    EuclideanLaplace,
    GeodesicBall,
    Hyperbolic,
    PlanarShapes,
    Rotations,
    Sphere,
    TangentLaplace,
    WrappedLaplace,
    frechet_mean,
)
from jaxgeodp.bounds import gradient_sensitivity, mean_sensitivity

RECORDS = 6
CASES = [
    (Sphere(2), 0.3927),
    (Sphere(2), 0.7),
    (Sphere(5), 0.3927),
    (PlanarShapes(5), 0.19),
    (PlanarShapes(5), 0.37),
    (Rotations(), 0.7),
    (SPD(2), 1.0),
    (Hyperbolic(2), 1.0),
]


def largest(change, starts, steps):
    """The largest value of ``change`` that Adam finds from any of the starts."""
    optimizer = optax.adam(0.05)

    def climb(z):
        def step(carry, _):
            z, state, best = carry
            value, slope = jax.value_and_grad(change)(z)
            slope = jnp.where(jnp.isfinite(slope), slope, 0.0)
            updates, state = optimizer.update(-slope, state)
            return (z + updates, state, jnp.maximum(best, value)), None

        start = (z, optimizer.init(z), jnp.zeros(()))
        return jax.lax.scan(step, start, length=steps)[0][2]

    return float(jnp.max(jax.jit(jax.vmap(climb))(starts)))


def search(ball, change, count, reach, steps):
    """Over ``count`` points: ``change(points)``; the points stay within ``reach`` (one radius each) of the centre."""
    manifold, center = ball.manifold, jnp.asarray(ball.center)
    frame = manifold.frame(center)

    def value(z):
        lengths = jnp.linalg.norm(z, axis=1, keepdims=True)
        inside = z * jnp.minimum(1.0, 1.0 / lengths) * jnp.asarray(reach)[:, None]
        return change(jax.vmap(lambda c: manifold.exp(center, manifold.combine(c, frame)))(inside))

    starts = np.random.default_rng(0).normal(size=(32, count, manifold.dim))
    starts[:16, 1] = -starts[:16, 0]
    starts[:8, 2:] = starts[:8, :1]
    # Just inside the rim, where slopes in all directions are seen.
    starts *= 0.999 / np.linalg.norm(starts, axis=2, keepdims=True)
    return largest(value, jnp.asarray(starts), steps)


def gradient_ratio(manifold, radius, factor, steps):
    """Of two records' pulls at a point of the support."""
    ball = GeodesicBall(manifold, manifold.origin, radius)

    def change(points):
        a, b, x = points
        return manifold.norm(x, manifold.log(x, a) - manifold.log(x, b)) / RECORDS

    bound = gradient_sensitivity(ball, RECORDS, factor * radius, "tight").value
    return search(ball, change, 3, [radius, radius, factor * radius], steps) / bound


def mean_ratio(manifold, radius, steps):
    """Of the Frechet mean."""
    ball = GeodesicBall(manifold, manifold.origin, radius)

    def change(points):
        means = [frechet_mean(manifold, jnp.concatenate([points[2:], points[j : j + 1]])) for j in (0, 1)]
        return manifold.dist(*means)

    return (
        search(ball, change, RECORDS + 1, [radius] * (RECORDS + 1), steps)
        / mean_sensitivity(ball, RECORDS, "tight").value
    )


def additive_ratio(build, manifold, radius, steps):
    """Of the vector that noise is added to."""
    mechanism = build(GeodesicBall(manifold, manifold.origin, radius), 1.0)

    def change(points):
        neighbours = [jnp.concatenate([points[2:], points[j : j + 1]]) for j in (0, 1)]
        laws = [mechanism.law(len(data)) for data in neighbours]
        vectors = [law.location(data, law.center(data)) for law, data in zip(laws, neighbours, strict=True)]
        return jnp.linalg.norm(vectors[0] - vectors[1])

    count = RECORDS + 1
    return search(mechanism.ball, change, count, [radius] * count, steps) / mechanism.sensitivity(RECORDS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one case, few steps: a test of the script")
    arguments = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print_machine()
    steps = 5 if arguments.quick else 150
    columns = {
        "gradient, R = r": functools.partial(gradient_ratio, factor=1.0, steps=steps),
        "gradient, R = 1.2 r": functools.partial(gradient_ratio, factor=1.2, steps=steps),
        "Frechet mean": functools.partial(mean_ratio, steps=steps),
        "WrappedLaplace": functools.partial(additive_ratio, WrappedLaplace, steps=steps),
        "TangentLaplace": functools.partial(additive_ratio, TangentLaplace, steps=steps),
        "EuclideanLaplace": functools.partial(additive_ratio, EuclideanLaplace, steps=steps),
    }
    rows = []
    for manifold, radius in CASES[: 1 if arguments.quick else None]:
        cells = []
        for name, ratio in columns.items():
            off = name == "EuclideanLaplace" and isinstance(manifold, PlanarShapes | Hyperbolic)
            cells.append("" if off else f"{ratio(manifold, radius):.3f}")
        rows.append([f"{manifold}, r = {radius:g}", *cells])
        print(rows[-1], flush=True)
        jax.clear_caches()
    print_table(f"found / bound, n = {RECORDS}", ["", *columns], rows)


if __name__ == "__main__":
    main()
