"""Errors of private geodesic regression, and of the K-norm gradient mechanism for the same geodesics.

    python -m benchmarks.measure.regression [--replicates 60] [--n 100 1000 10000]

Points lie about a geodesic of known length, with normal residuals. Errors are root mean squared distances of the
predicted points at times 0 and 1 from the true ones; what fits say of theirs is a median. The K-norm gradient mechanism
(KNG; Kulkarni and Soto 2025 use it for geodesic regression) draws both ends of the geodesic with density
exp(-(epsilon/2) |gradient|/Delta), gradients being those of half the squared residuals, each cut at a public bound,
Delta = 2 bound sqrt(2)/n; it is drawn from by long chains, which prove nothing. The bound is one that hardly a residual
exceeds, which nobody knows beforehand: ours finds its own. Prints a table in Markdown.
"""

import argparse
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

import jaxgeodp as jgd
from jaxgeodp.inference import geodesic_regression
from jaxgeodp.manifolds.derivatives import riemannian_gradient
from jaxgeodp.samplers import metropolis

#: Manifold, length of the geodesic, standard deviation of residuals in each coordinate, radius of the public ball.
SPACES = {
    "S²": (jgd.Sphere(2), 0.6, 0.08, 0.6),
    "SPD(2)": (jgd.SPD(2), 0.8, 0.15, 1.0),
    "shapes k = 5": (jgd.PlanarShapes(5), 0.2, 0.03, 0.3),
}
BURN_IN, THIN = 3000, 50


@functools.partial(jax.jit, static_argnums=(0, 5))
def records_of(manifold, key, speed, spread, radius, n):
    """Times, points, and the ends of the true geodesic."""
    of_times, of_points = jax.random.split(key)
    times = jax.random.uniform(of_times, (n,))
    origin = jnp.asarray(manifold.origin)
    middle = manifold.exp(origin, 0.2 * radius * manifold.frame(origin)[0])
    velocity = 0.5 * speed * manifold.frame(middle)[-1]

    def at(s):
        return manifold.project(manifold.exp(middle, s.astype(velocity.dtype) * velocity))

    def one(key, s):
        there = at(s)
        return manifold.project(manifold.exp(there, spread * manifold.random_tangent(key, there)))

    points = jax.vmap(one)(jax.random.split(of_points, n), 2.0 * times - 1.0)
    return times, points, jax.vmap(at)(jnp.array([-1.0, 1.0]))


@functools.partial(jax.jit, static_argnums=0)
def by_gradients(manifold, key, times, points, ends, bound, epsilon):
    """One pair of ends by a chain for KNG."""
    pairs = jgd.Product(manifold, manifold)

    def residual(x, t, y):
        start, end = pairs.split(x)
        there = manifold.exp(start, t.astype(start.dtype) * manifold.log(start, end))
        return 0.5 * manifold.squared_dist(there, y)

    def log_density(x):
        gradients = jax.vmap(lambda t, y: riemannian_gradient(pairs, lambda z: residual(z, t, y))(x))(times, points)
        lengths = jax.vmap(lambda v: pairs.norm(x, v))(gradients)
        factors = jnp.minimum(1.0, bound * math.sqrt(2.0) / jnp.maximum(lengths, 1e-300))
        total = jnp.tensordot(factors.astype(gradients.dtype), gradients, axes=1)
        return -0.5 * epsilon * pairs.norm(x, total) / (2.0 * bound * math.sqrt(2.0))

    step = 0.5 * bound / (len(times) * epsilon)
    chain = metropolis(key, pairs, log_density, pairs.join(*ends), 1, BURN_IN, THIN, step, 1)
    start, end = pairs.split(chain.points[0, 0])
    return jnp.stack([start, end])


def error(manifold, found, ends):
    return float(np.mean([float(manifold.dist(jnp.asarray(a), b)) ** 2 for a, b in zip(found, ends, strict=True)]))


def row(manifold, speed, spread, radius, n, replicates):
    """Errors without noise, ours with mu = 1 and epsilon = 1, and of KNG."""
    ball = jgd.GeodesicBall(manifold, manifold.origin, radius)
    bound = spread * (math.sqrt(manifold.dim) + 3.1)
    squares, stated = [], []
    for key in jax.random.split(jax.random.key(n), replicates):
        of_data, of_chain = jax.random.split(key)
        times, points, ends = records_of(manifold, of_data, speed, spread, radius, n)
        fits = [
            geodesic_regression(times, points, ball, **budget)
            for budget in ({"mu": 1e6}, {"mu": 1.0}, {"epsilon": 1.0})
        ]
        own = [error(manifold, fit.predict([0.0, 1.0]), ends) for fit in fits]
        drawn = by_gradients(manifold, of_chain, times, points, ends, bound, 1.0) if n <= 1000 else None
        squares.append([*own, math.nan if drawn is None else error(manifold, drawn, ends)])
        stated.append(np.mean(fits[1].standard_error([0.0, 1.0]) ** 2))
    return np.sqrt(np.mean(squares, axis=0)), math.sqrt(np.median(stated))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--replicates", type=int, default=60)
    parser.add_argument("--n", nargs="*", type=int, default=[100, 1000, 10_000])
    parser.add_argument("--spaces", nargs="*", default=list(SPACES))
    arguments = parser.parse_args()
    print("| space | n | not private | mu = 1 | as it says | epsilon = 1 | KNG by chains, epsilon = 1 |")
    print("|---|---|---|---|---|---|---|")
    for name in arguments.spaces:
        for n in arguments.n:
            found, stated = row(*SPACES[name], n, arguments.replicates)
            told = [f"{x:.4f}" for x in (found[0], found[1], stated, found[2], found[3])]
            print(f"| {name} | {n} | {' | '.join(told)} |".replace("nan", ""), flush=True)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
