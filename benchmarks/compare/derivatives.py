"""The gradient through a Frechet mean: implicit function theorem against unrolled differentiation.

    python -m benchmarks.compare.derivatives [--quick]

The function is x -> <c, mean(x)> for a fixed array c, its gradient that in all n points, in reverse mode.

* *implicit*: ``jax.grad`` of ``frechet_mean``: one linear system in the tangent space at the mean, whatever the
  number of steps that found it;
* *unrolled*: ``jax.grad`` through steps of the plain iteration x <- exp_x(sum_i log_x(x_i)/n), as many as it takes to
  reach a gradient norm of 1e-10, with the library's own `log_moments`. Every step's intermediates are kept.

Time is the median of turns; memory the temporary buffers of the compiled program (``memory_analysis``), which for
LAPACK calls leaves out the work space of the calls.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.compare.means import Case, random_data
from benchmarks.tools.timing import (
    measure,
    milliseconds,
    print_machine,
    print_table,
    ratio,
    restart_with_fair_environment,
)
from jaxgeodp import SPD, PlanarShapes, Sphere, frechet_mean

CASES = [
    Case("sphere S^2", Sphere(2), 0.4, None, None),
    Case("SPD(2)", SPD(2), 1.0, None, None),
    Case("SPD(3)", SPD(3), 1.0, None, None),
    Case("planar shapes, k = 10", PlanarShapes(10), 0.3, None, None),
]


def plain_step(manifold, points, x):
    weights = jnp.full(points.shape[0], 1.0 / points.shape[0])
    total, _ = manifold.log_moments(x, points, weights)
    return manifold.project(manifold.exp(x, total)), manifold.norm(x, total)


def unrolled_mean(manifold, points, steps):
    # The start is held fixed, as the mean does not depend on it.
    start = jax.lax.stop_gradient(points[0])
    return jax.lax.fori_loop(0, steps, lambda _, x: plain_step(manifold, points, x)[0], start)


def steps_needed(manifold, points):
    step = jax.jit(lambda x: plain_step(manifold, points, x))
    x, norm, steps = points[0], 1.0, 0
    while norm > 1e-10:
        x, norm = step(x)
        steps += 1
    return steps


def gradient(mean, manifold, points):
    covector = jnp.asarray(np.random.default_rng(1).normal(size=manifold.shape)).astype(points.dtype)
    anchor = points[0]

    def value(points):
        result = mean(points)
        if manifold.dtype_kind == "complex":  # the representative of a shape is free up to a phase: align it
            overlap = jnp.vdot(result, anchor)
            result = overlap / jnp.abs(overlap) * result
        return jnp.sum(jnp.real(jnp.conj(covector) * result))

    return jax.jit(jax.grad(value)).lower(points).compile()


def tangent_parts(manifold, points, derivative):
    """A gradient as tangent vectors: the ambient part that leaves the manifold is arbitrary."""
    derivative = jnp.conj(derivative)
    if isinstance(manifold, SPD):
        return 0.5 * (derivative + derivative.swapaxes(-1, -2))
    return jax.vmap(manifold.to_tangent)(points, derivative)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    quick = parser.parse_args().quick
    jax.config.update("jax_enable_x64", True)
    print_machine()
    count, repeats = (30, 2) if quick else (1000, 9)
    rows = []
    for case in CASES[:2] if quick else CASES:
        manifold = case.manifold
        points = jnp.asarray(random_data(case, 1, count)[0])
        steps = steps_needed(manifold, points)
        implicit = gradient(lambda x, m=manifold: frechet_mean(m, x), manifold, points)
        unrolled = gradient(lambda x, m=manifold, s=steps: unrolled_mean(m, x, s), manifold, points)
        parts = [tangent_parts(manifold, points, program(points)) for program in (implicit, unrolled)]
        difference = float(jnp.max(jnp.abs(parts[0] - parts[1])) / jnp.max(jnp.abs(parts[0])))
        if not difference <= 1e-6:
            raise RuntimeError(f"{case.title}: the gradients differ by {difference:.1e}.")
        measured = measure(
            {"implicit": lambda p=implicit, x=points: p(x), "unrolled": lambda p=unrolled, x=points: p(x)}, repeats
        )
        memory = [program.memory_analysis().temp_size_in_bytes for program in (implicit, unrolled)]
        rows.append(
            [
                case.title,
                milliseconds(measured["implicit"].median),
                milliseconds(measured["unrolled"].median),
                ratio(measured["unrolled"], measured["implicit"]),
                *(f"{size / 1e6:.2f} MB" for size in memory),
                f"{memory[1] / memory[0]:.1f}x",
                str(steps),
                f"{difference:.0e}",
            ]
        )
    header = ["gradient of a mean", "implicit", "unrolled", "ratio", "memory implicit", "memory unrolled", "ratio"]
    print_table(f"Gradient in {count} points", [*header, "steps unrolled", "difference"], rows)


if __name__ == "__main__":
    restart_with_fair_environment()
    main()
