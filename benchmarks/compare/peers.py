"""Frechet means: jaxgeodp against pyriemann, geomstats and morphomatics.

    python -m benchmarks.compare.peers [--quick]

The same float64 data for all, starting from each library's default. The peers stop at a gradient norm of 1e-6
(morphomatics has no other setting, and stops after 10 steps in any case; 100 are allowed to the others), jaxgeodp at
rounding level, so the comparison is to its disadvantage: the tables give the gradient norm that each result is left
with, computed in NumPy. JAX programs are jitted; replicates are vmapped where a peer can (morphomatics), and a loop
over data sets where it cannot.

Every library has a process of its own, since importing one changes the settings of others (morphomatics brings
pymanopt, which turns on float64 globally). The processes take turns and are idle while another is timed.

    pip install -e ".[peers]"
"""

import argparse
import importlib.metadata
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

from benchmarks.tools.timing import (
    TURN_SECONDS,
    Measurement,
    milliseconds,
    print_machine,
    print_table,
    ratio,
    restart_with_fair_environment,
)

TOLERANCE, STEP_LIMIT = 1e-6, 100
LIBRARIES = ["jaxgeodp", "pyriemann", "geomstats", "morphomatics"]
SIZES = (2, 3, 4, 5, 6, 8, 10, 16)
CASES = ["sphere S^2", *(f"SPD({size})" for size in SIZES), "planar shapes, k = 50"]
REPLICATED = ["sphere S^2", "SPD(2)", "planar shapes, k = 50"]


# One function per library: a case to (prepare data, mean of one data set, means of many or None).
# Data of shapes are complex (n, k); libraries for shapes in any dimension want real (n, k, 2).


def jaxgeodp_means(case):
    import jax
    import jax.numpy as jnp

    from jaxgeodp import SPD, PlanarShapes, Sphere, frechet_mean

    jax.config.update("jax_enable_x64", True)
    manifold = Sphere(2) if "S^2" in case else PlanarShapes(50) if "shapes" in case else SPD(_size(case))
    one = jax.jit(lambda points: frechet_mean(manifold, points))
    return jnp.asarray, one, jax.jit(jax.vmap(one))


def morphomatics_means(case):
    import jax
    import jax.numpy as jnp
    from morphomatics.manifold import SPD, Kendall, Sphere
    from morphomatics.stats import ExponentialBarycenter

    jax.config.update("jax_enable_x64", True)
    if "SPD" in case:
        manifold = SPD(_size(case), structure="AffineInvariant")
    else:
        manifold = Kendall((50, 2)) if "shapes" in case else Sphere((3,))
    one = jax.jit(lambda points: ExponentialBarycenter.compute(manifold, points))
    return lambda points: jnp.asarray(_real(points)), one, jax.jit(jax.vmap(one))


def geomstats_means(case):
    os.environ["GEOMSTATS_BACKEND"] = "numpy"
    from geomstats.geometry.hypersphere import Hypersphere
    from geomstats.geometry.pre_shape import PreShapeSpace
    from geomstats.geometry.spd_matrices import SPDAffineMetric, SPDMatrices
    from geomstats.learning.frechet_mean import FrechetMean

    if "SPD" in case:
        space = SPDMatrices(_size(case), equip=False)
        space.equip_with_metric(SPDAffineMetric)
    elif "shapes" in case:
        space = PreShapeSpace(50, ambient_dim=2)
        space.equip_with_group_action("rotations")
        space = space.equip_with_quotient() or space.quotient
    else:
        space = Hypersphere(2)

    def one(points):
        estimator = FrechetMean(space)
        # It stops at a squared gradient norm of epsilon times the dimension.
        estimator.set(init_step_size=1.0, max_iter=STEP_LIMIT, epsilon=TOLERANCE**2 / space.dim)
        return estimator.fit(points).estimate_

    return _real, one, None


def pyriemann_means(case):
    from pyriemann.utils.mean import mean_riemann

    if "SPD" not in case:
        return None
    return np.asarray, lambda points: mean_riemann(points, tol=TOLERANCE, maxiter=STEP_LIMIT), None


def _size(case):
    return int(case[len("SPD(") : -1])


def _real(points):
    return np.stack([points.real, points.imag], axis=-1) if np.iscomplexobj(points) else points


# The worker: reads orders from its standard input, answers on its standard output.


def work(library, path):
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print does not get among the answers
    with open(path, "rb") as file:
        data = pickle.load(file)
    tasks, results = {}, {}
    for line in sys.stdin:
        order = json.loads(line)
        name = tuple(order["task"])
        if order["do"] == "first":
            answer = None
            made = globals()[f"{library}_means"](name[0])
            if made is not None:
                prepare, one, many = made
                points = prepare(data[name])
                if name[1] == "one":
                    tasks[name] = lambda one=one, points=points: one(points)
                elif many is not None:
                    tasks[name] = lambda many=many, points=points: many(points)
                else:
                    tasks[name] = lambda one=one, points=points: [one(x) for x in points]
                answer, results[name] = _timed(tasks[name], 1)
                order["calls"] = max(1, round(TURN_SECONDS / _timed(tasks[name], 1)[0]))
                answer = [answer, order["calls"]]
        elif order["do"] == "turn":
            answer, _ = _timed(tasks[name], order["calls"])
        else:
            answer = _real(np.asarray(results[name])).tolist() if name[1] == "one" else None
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _timed(task, calls):
    start = time.perf_counter()
    for _ in range(calls):
        result = task()
        getattr(result, "block_until_ready", lambda: None)()
    return (time.perf_counter() - start) / calls, result


class Worker:
    """A library in a process of its own."""

    def __init__(self, library, path):
        command = [sys.executable, "-m", "benchmarks.compare.peers", "--worker", library, path]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, do, task, **more):
        self.process.stdin.write(json.dumps({"do": do, "task": task, **more}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def gradient_norm(case, mean, points):
    """The norm of the gradient at a mean, by the textbook formulas of means.py."""
    from benchmarks.compare.means import matrices_textbook, shapes_textbook, sphere_textbook

    mean = np.asarray(mean)
    if "shapes" in case:
        mean = mean[..., 0] + 1j * mean[..., 1]
        return float(shapes_textbook(mean, points)[1])
    return float((matrices_textbook if "SPD" in case else sphere_textbook)(mean, points)[1])


def compare(title, workers, data, tasks, repeats):
    rows = []
    for task in tasks:
        first = {library: worker.ask("first", task) for library, worker in workers.items()}
        able = [library for library in LIBRARIES if first[library] is not None]
        turns = {library: [] for library in able}
        for _ in range(repeats):
            for library in able:
                turns[library].append(workers[library].ask("turn", task, calls=first[library][1]))
        measured = {library: Measurement(first[library][0], turns[library]) for library in able}
        best = min(able[1:], key=lambda library: statistics.median(turns[library]))
        row = [task[0]]
        for library in LIBRARIES:
            row.append(milliseconds(measured[library].median) if library in able else "")
        row.append(f"{ratio(measured[best], measured['jaxgeodp'])} {best}")
        if task[1] == "one":
            norms = [gradient_norm(task[0], workers[k].ask("result", task), data[tuple(task)]) for k in able]
            row.append(", ".join(f"{norm:.0e}" for norm in norms))
        rows.append(row)
    header = ["", *LIBRARIES, "best peer / jaxgeodp"]
    print_table(title, header + (["gradient norms left"] if tasks[0][1] == "one" else []), rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return work(*arguments.worker)
    import jax

    from benchmarks.compare import means
    from jaxgeodp import SPD

    jax.config.update("jax_enable_x64", True)
    print_machine()
    print("peers      " + ", ".join(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES[1:]))
    count, sets, each, repeats = (50, 3, 20, 2) if arguments.quick else (1000, 500, 100, 7)
    cases = {case.title: case for case in means.CASES}
    for size in SIZES:
        own = means.Case(f"SPD({size})", SPD(size), 1.0, means.matrices_textbook, means.matrices_products)
        cases.setdefault(own.title, own)
    data = {(title, "one"): means.random_data(cases[title], 1, count)[0] for title in CASES}
    data |= {(title, "many"): means.random_data(cases[title], sets, each) for title in REPLICATED}
    with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
        pickle.dump(data, file)
        file.flush()
        workers = {library: Worker(library, file.name) for library in LIBRARIES}
        title = f"Mean of {count} points"
        compare(title, workers, data, [[title, "one"] for title in CASES], repeats)
        title = f"Means of {sets} data sets of {each} points"
        compare(title, workers, data, [[title, "many"] for title in REPLICATED], max(2, repeats // 2))
        for worker in workers.values():
            worker.close()


if __name__ == "__main__":
    restart_with_fair_environment()
    main()
