"""Frechet means and operations: jaxgeodp against pyriemann, geomstats, morphomatics, geoopt and pymanopt.

    python -m benchmarks.compare.peers [--quick]

The same float64 data for all. The peers stop at a gradient norm of 1e-6, jaxgeodp at rounding level, so the comparison
is to its disadvantage: the tables give the gradient norm that each result is left with, computed in NumPy. JAX programs
are jitted; replicates are vmapped where a peer can (morphomatics), and a loop over data sets where it cannot.
`peers_libraries` has the calls. Operations are from one base point to all others. A library that is not installed is
left out.

Every library has a process of its own, since importing one changes the settings of others (morphomatics brings
pymanopt, which turns on float64 globally). The processes take turns and are idle while another is timed.

    pip install -e ".[peers]"
"""

import argparse
import importlib.metadata
import importlib.util
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

from benchmarks.compare.peers_libraries import LIBRARIES, real
from benchmarks.tools.timing import (
    TURN_SECONDS,
    Measurement,
    milliseconds,
    print_machine,
    print_table,
    ratio,
    restart_with_fair_environment,
)

SIZES = (2, 3, 4, 5, 6, 8, 10, 16)
CASES = ["sphere S^2", *(f"SPD({size})" for size in SIZES), "planar shapes, k = 50"]
REPLICATED = ["sphere S^2", "SPD(2)", "planar shapes, k = 50"]
OPERATED, OPERATIONS = ["sphere S^2", "SPD(3)", "SPD(10)", "planar shapes, k = 50"], ["exp", "log", "dist"]


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
            calls = LIBRARIES[library](name[0])
            if calls is not None:
                tasks[name] = task_of(calls, name[1], data[name])
                answer, results[name] = _timed(tasks[name], 1)
                order["calls"] = max(1, round(TURN_SECONDS / _timed(tasks[name], 1)[0]))
                answer = [answer, order["calls"]]
        elif order["do"] == "turn":
            answer, _ = _timed(tasks[name], order["calls"])
        else:
            answer = real(np.asarray(results[name])).tolist()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def task_of(calls, what, data):
    """What is timed: a call of no arguments."""
    points = calls.prepare(data)
    if what == "mean":
        return lambda: calls.mean(points)
    if what == "means" and calls.means is not None:
        return lambda: calls.means(points)
    if what == "means":
        return lambda: [calls.mean(own) for own in points]
    base, others = points[0], points[1:]
    others = calls.log(base, others) if what == "exp" else others
    return lambda: getattr(calls, what)(base, others)


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
    """Print a table of calls, and return the seconds of first ones."""
    rows, firsts = [], []
    for task in tasks:
        first = {library: worker.ask("first", task) for library, worker in workers.items()}
        able = [library for library in workers if first[library] is not None]
        turns = {library: [] for library in able}
        for _ in range(repeats):
            for library in able:
                turns[library].append(workers[library].ask("turn", task, calls=first[library][1]))
        measured = {library: Measurement(first[library][0], turns[library]) for library in able}
        best = min(able[1:], key=lambda library: statistics.median(turns[library]))
        name = task[0] if task[1].startswith("mean") else f"{task[0]}, {task[1]}"
        row = [name, *(milliseconds(measured[own].median) if own in able else "" for own in workers)]
        row.append(f"{ratio(measured[best], measured['jaxgeodp'])} {best}")
        if task[1] == "mean":
            norms = [gradient_norm(task[0], workers[k].ask("result", task), data[tuple(task)]) for k in able]
            row.append(", ".join(f"{norm:.0e}" for norm in norms))
        elif task[1] == "dist":
            ours, *others = (np.array(workers[k].ask("result", task)) for k in able)
            assert all(np.allclose(ours, other, rtol=1e-6) for other in others), task
        rows.append(row)
        firsts.append([name, *(f"{first[own][0]:.3g} s" if own in able else "" for own in workers)])
    header = ["", *workers, "best peer / jaxgeodp"]
    print_table(title, header + (["gradient norms left"] if tasks[0][1] == "mean" else []), rows)
    return firsts


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
    there = [name for name in LIBRARIES if all(map(importlib.util.find_spec, name.split(", ")))]
    named = dict.fromkeys(part for name in there[1:] for part in name.split(", "))
    print("peers      " + ", ".join(f"{name} {importlib.metadata.version(name)}" for name in named))
    count, sets, each, repeats = (50, 3, 20, 2) if arguments.quick else (1000, 500, 100, 7)
    cases = {case.title: case for case in means.CASES}
    for size in SIZES:
        own = means.Case(f"SPD({size})", SPD(size), 1.0, means.matrices_textbook, means.matrices_products)
        cases.setdefault(own.title, own)
    data = {(title, "mean"): means.random_data(cases[title], 1, count)[0] for title in CASES}
    data |= {(title, "means"): means.random_data(cases[title], sets, each) for title in REPLICATED}
    data |= {(title, own): data[title, "mean"] for title in OPERATED for own in OPERATIONS}
    with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
        pickle.dump(data, file)
        file.flush()
        workers = {library: Worker(library, file.name) for library in there}
        title = f"Mean of {count} points"
        firsts = compare(title, workers, data, [[title, "mean"] for title in CASES], repeats)
        print_table(f"First call of a mean of {count} points, with compiling", ["", *workers], firsts)
        title = f"Means of {sets} data sets of {each} points"
        compare(title, workers, data, [[title, "means"] for title in REPLICATED], max(2, repeats // 2))
        title = f"From one point to {count - 1} others"
        compare(title, workers, data, [[title, own] for title in OPERATED for own in OPERATIONS], repeats)
        for worker in workers.values():
            worker.close()


if __name__ == "__main__":
    restart_with_fair_environment()
    main()
