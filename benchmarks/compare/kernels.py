"""Operations of manifolds on many points: float32 against float64, and rotations against jaxlie where it is installed.

    python -m benchmarks.compare.kernels [--quick]

One base point, all points in the ball of radius .7 about it (less on shapes); each program is compiled once for all
points. jaxlie's logarithm of rotations is that of its `SO3.from_matrix`, for the same matrices.
"""

import argparse
import functools
import importlib.util

import jax
import jax.numpy as jnp

from benchmarks.tools.timing import (
    measure,
    milliseconds,
    print_machine,
    print_table,
    ratio,
    restart_with_fair_environment,
)
from jaxgeodp import SPD, Hyperbolic, PlanarShapes, Rotations, Sphere

SPACES = {Sphere(2): 0.7, Rotations(): 0.7, Hyperbolic(3): 0.7, SPD(3): 0.7, SPD(10): 0.7, PlanarShapes(50): 0.3}
PRECISIONS = {"float64": jnp.float64, "float32": jnp.float32}


def problem(manifold, radius, count, dtype):
    """The base point, tangent vectors at it, and their ends, all in one precision."""
    dtype = jnp.result_type(dtype, jnp.complex64) if manifold.dtype_kind == "complex" else dtype
    base = jnp.asarray(manifold.origin).astype(dtype)
    keys = jax.random.split(jax.random.key(0), count)
    tangents = jax.vmap(lambda key: manifold.random_tangent(key, base))(keys)
    lengths = jax.vmap(functools.partial(manifold.norm, base))(tangents)
    share = radius * jax.random.uniform(jax.random.key(1), (count,), lengths.dtype)
    vectors = (tangents.T * (share / lengths)).T.astype(dtype)
    return base, vectors, jax.vmap(functools.partial(manifold.exp, base))(vectors)


def operations(manifold, base, vectors, points):
    """Name -> a compiled call of no arguments."""
    programs = {name: jax.jit(jax.vmap(getattr(manifold, name), (None, 0))) for name in ("exp", "log", "dist")}
    return {
        name: functools.partial(call, base, vectors if name == "exp" else points) for name, call in programs.items()
    }


def precisions(count, repeats):
    rows = []
    for manifold, radius in SPACES.items():
        share = count // 20 if manifold.dim > 50 else count
        tasks = {}
        for precision, dtype in PRECISIONS.items():
            own = operations(manifold, *problem(manifold, radius, share, dtype))
            tasks |= {(name, precision): task for name, task in own.items()}
        measured = measure(tasks, repeats)
        for name in ("exp", "log", "dist"):
            double, single = (measured[name, precision] for precision in PRECISIONS)
            times = [milliseconds(one.median) for one in (double, single)]
            rows.append([f"{manifold}, {name}", f"{share:,}", *times, ratio(double, single)])
    print_table("Operations from one base point", ["", "points", *PRECISIONS, "float64 / float32"], rows)


def rotations(count, repeats):
    import jaxlie

    base, vectors, points = problem(Rotations(), 0.7, count, jnp.float64)
    own = operations(Rotations(), base, vectors, points)
    spins = jnp.stack([vectors[:, 2, 1], vectors[:, 0, 2], vectors[:, 1, 0]], axis=1)
    exp = jax.jit(jax.vmap(lambda spin: jaxlie.SO3.exp(spin).as_matrix()))
    log = jax.jit(jax.vmap(lambda matrix: jaxlie.SO3.from_matrix(matrix).log()))
    theirs = {"exp": lambda: exp(spins), "log": lambda: log(points)}
    rows = []
    for name, call in theirs.items():
        measured = measure({"ours": own[name], "theirs": call}, repeats)
        times = [milliseconds(measured[whose].median) for whose in ("ours", "theirs")]
        rows.append([f"{name} of {count:,} rotations", *times, ratio(measured["theirs"], measured["ours"])])
    apart = float(jnp.max(jnp.abs(exp(spins) - own["exp"]())))
    print_table(
        f"Rotations, float64 (exp differs by {apart:.0e})", ["", "jaxgeodp", "jaxlie", "jaxlie / jaxgeodp"], rows
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few points: a test of the script")
    count, repeats = (200, 2) if parser.parse_args().quick else (20_000, 15)
    jax.config.update("jax_enable_x64", True)
    print_machine()
    precisions(count, repeats)
    if importlib.util.find_spec("jaxlie"):
        rotations(count, repeats)


if __name__ == "__main__":
    restart_with_fair_environment()
    main()
