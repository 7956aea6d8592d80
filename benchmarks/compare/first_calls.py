"""What a first call costs: tracing, lowering and compiling, in CPU seconds of a new process each.

    python -m benchmarks.compare.first_calls [--quick]

The first table has operations and means against what a JAX user would write in ten lines (eigh, and ten steps of the
Karcher flow), both as they are and with the options of `jaxgeodp.fast_compile()`; the second a program that takes the
law as an argument and makes 2,000 replicates with it, for laws of two n, epsilons, radii and centres.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

import jaxgeodp as jgd
from benchmarks.tools.timing import print_machine, print_table

N, REPLICATES = 100, 2000
ROWS = 128
SPACES = {
    "S^2": (jgd.Sphere(2), 0.4),
    "SPD(3)": (jgd.SPD(3), 0.5),
    "shapes, k = 20": (jgd.PlanarShapes(20), 0.2),
    "H^3": (jgd.Hyperbolic(3), 0.5),
    "SO(3)": (jgd.Rotations(), 0.5),
    "Gr(4, 2)": (jgd.Grassmann(4, 2), 0.3),
    "S^2 x SPD(2)": (jgd.Product(jgd.Sphere(2), jgd.SPD(2)), 0.4),
}


def matrices(*shape):
    roots = np.eye(3) + 0.2 * np.random.default_rng(0).normal(size=(*shape, 3, 3))
    return jnp.asarray(roots @ roots.swapaxes(-1, -2))


def of_eigenvalues(function, values, vectors):
    return (vectors * function(values)) @ vectors.T


def own_dist(p, q):
    values, vectors = jnp.linalg.eigh(p)
    inverse = of_eigenvalues(lambda x: 1.0 / jnp.sqrt(x), values, vectors)
    return jnp.sqrt(jnp.sum(jnp.log(jnp.linalg.eigh(inverse @ q @ inverse)[0]) ** 2))


def own_mean(points):
    def step(_, mean):
        values, vectors = jnp.linalg.eigh(mean)
        root, inverse = (of_eigenvalues(own, values, vectors) for own in (jnp.sqrt, lambda x: 1.0 / jnp.sqrt(x)))
        logs = jax.vmap(lambda x: of_eigenvalues(jnp.log, *jnp.linalg.eigh(inverse @ x @ inverse)))(points)
        return root @ of_eigenvalues(jnp.exp, *jnp.linalg.eigh(jnp.mean(logs, 0))) @ root

    return jax.lax.fori_loop(0, 10, step, jnp.mean(points, 0))


def own_direction(points):
    def step(_, mean):
        cosines = points @ mean
        angles = jnp.arccos(jnp.clip(cosines, -1.0, 1.0))
        move = (angles / jnp.sin(angles)) @ (points - cosines[:, None] * mean) / len(points)
        length = jnp.linalg.norm(move)
        return jnp.cos(length) * mean + jnp.sinc(length / jnp.pi) * move

    return jax.lax.fori_loop(0, 10, step, points[0])


def operations():
    """Name -> (ours, ten lines, arguments)."""
    p, q = matrices(2)
    directions = np.random.default_rng(0).normal([0.0, 0.0, 3.0], 1.0, (200, 3))
    directions = jnp.asarray(directions / np.linalg.norm(directions, axis=1, keepdims=True))
    spd, sphere = jgd.SPD(3), jgd.Sphere(2)

    def squared(dist):
        return lambda p, q: dist(p, q) ** 2

    return {
        "SPD(3), dist": (spd.dist, own_dist, (p, q)),
        "SPD(3), gradient of dist^2": (jax.grad(squared(spd.dist)), jax.grad(squared(own_dist)), (p, q)),
        "SPD(3), Hessian of dist^2": (jax.hessian(squared(spd.dist)), jax.hessian(squared(own_dist)), (p, q)),
        "SPD(3), 200 means of 50": (
            jax.vmap(lambda x: jgd.frechet_mean(spd, x)),
            jax.vmap(own_mean),
            (matrices(200, 50),),
        ),
        "S^2, mean of 200": (lambda x: jgd.frechet_mean(sphere, x), own_direction, (directions,)),
    }


def first_call(name, whose, soon):
    """CPU seconds of the first call, lines of StableHLO, and seconds of a later call."""
    ours, own, arguments = operations()[name]
    jax.block_until_ready(arguments)
    program = jax.jit(ours if whose == "ours" else own, compiler_options=jgd.fast_compile() if soon else None)
    begin = time.process_time()
    jax.block_until_ready(program(*arguments))
    spent, later = time.process_time() - begin, []
    for _ in range(20):
        begin = time.perf_counter()
        jax.block_until_ready(program(*arguments))
        later.append(time.perf_counter() - begin)
    return [spent, len(program.lower(*arguments).as_text().splitlines()), min(later)]


def replicates(space):
    """Traces, CPU seconds of the first call, seconds of the second, with another law, and the peak of memory in GiB."""
    manifold, radius = SPACES[space]
    origin, traces = jnp.asarray(manifold.origin), []
    frame = manifold.frame(origin)
    place = np.asarray(manifold.exp(origin, 0.1 * frame[0]))
    small, large = jgd.GeodesicBall(manifold, manifold.origin, radius), jgd.GeodesicBall(manifold, place, 0.8 * radius)
    laws = [jgd.LaplaceMechanism(small, 2.0).law(N), jgd.LaplaceMechanism(large, 1.5).law(N - 20)]

    @jax.jit
    def simulated(law, keys):
        traces.append(1)

        def one(key):
            moves = 0.5 * radius / manifold.dim**0.5 * jax.random.normal(key, (ROWS, manifold.dim))
            data = jax.vmap(lambda z: manifold.exp(origin, manifold.combine(z, frame)))(moves)
            return law.simulate(jax.random.fold_in(key, 1), data, 1)[0]

        return jax.vmap(one)(keys)

    keys, spent = jax.random.split(jax.random.key(0), REPLICATES), []
    for law in laws:
        padded, begin = law.padded(ROWS), (time.process_time(), time.perf_counter())
        values = jax.block_until_ready(simulated(padded, keys))
        spent.append((time.process_time() - begin[0], time.perf_counter() - begin[1]))
        if not np.all(np.isfinite(values)):
            raise SystemExit(f"{space}: a draw is not finite.")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)
    return [len(traces), spent[0][0], spent[1][1], peak]


def cell(*words):
    """In a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.compare.first_calls", "cell", *words],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main():
    jax.config.update("jax_enable_x64", True)
    if sys.argv[1:2] == ["cell"]:
        kind, *words = sys.argv[2:]
        print(
            json.dumps(replicates(*words) if kind == "replicates" else first_call(words[0], words[1], kind == "soon"))
        )
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one row of each table")
    quick = parser.parse_args().quick
    print_machine()
    rows = []
    for name in list(operations())[: 1 if quick else None]:
        found = {(kind, whose): cell(kind, name, whose) for kind in ("full", "soon") for whose in ("ours", "own")}
        times = [f"{found[kind, whose][0]:.2f} s" for kind in ("full", "soon") for whose in ("ours", "own")]
        lines = [f"{found['full', whose][1]:,}" for whose in ("ours", "own")]
        later = [f"{1e3 * found[key][2]:.2f} ms" for key in (("full", "ours"), ("soon", "ours"), ("full", "own"))]
        rows.append([name, *times, *lines, *later])
    columns = ["ours", "ten lines", "ours, fast_compile", "ten lines, fast_compile", "lines of ours", "of ten lines"]
    later = ["later call, ours", "ours, fast_compile", "ten lines"]
    print_table("First calls, CPU seconds", ["", *columns, *later], rows)
    rows = []
    for space in list(SPACES)[: 1 if quick else None]:
        traces, first, second, peak = cell("replicates", space)
        rows.append([space, str(traces), f"{first:.1f} s", f"{second:.2f} s", f"{peak:.2f} GiB"])
    print_table(
        f"{REPLICATES:,} replicates of Laplace releases, law as argument, n = {N} and {N - 20} padded to {ROWS}",
        ["", "traces", "first call, CPU", "second law", "peak memory"],
        rows,
    )


if __name__ == "__main__":
    main()
