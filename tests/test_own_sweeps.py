"""Sweeps of one's own: mechanisms or functions, data and manifolds that no list names."""

import csv
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import own_sweep
import pyarrow.parquet as pq
import pytest
from own_sweep import CAP, REPLICATES, cells, numbers
from recipes.scales import Scales

from jaxgeodp import Euclidean, FrechetMedian, KNGMechanism, PlanarShapes, Sphere, WrappedLaplace, frechet_mean
from jaxgeodp.experiments import PolarData, Sweep, run_replicates, run_sweep

DATA = PolarData(CAP)


def contents(folder):
    """All files but the lock, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of the whole sweep and its summary."""
    folder = tmp_path_factory.mktemp("own") / "out"
    told = []
    results = run_sweep(cells(), folder, REPLICATES, seed=5, progress=lambda *state: told.append(state))
    assert told[-1] == ("own noise, n=20", 4 * REPLICATES, 4 * REPLICATES)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    return folder, results.summary


def test_rows_say_what_they_are_of(finished):
    folder, summary = finished
    table = pq.read_table(folder / "results.parquet").to_pydict()
    first = [{name: column[place] for name, column in table.items()} for place in range(0, 4 * REPLICATES, REPLICATES)]
    assert [(row["label"], row["mechanism"], row["n"], row["epsilon"], row["mu"]) for row in first] == [
        ("sphere", "WrappedLaplace", 20, 1.0, None),
        ("sphere", "WrappedLaplace", 40, 1.0, None),
        ("own space", "WrappedLaplace", 20, 0.5, None),
        ("own noise", "own noise", 20, None, None),
    ]
    assert [row["calibration"] for row in first] == ["tight", "tight", "tight", None]
    assert table["replicate"] == 4 * list(range(REPLICATES)) and all(table["on_manifold"])
    assert np.all(np.asarray(table["distance"]) > 0)
    assert "raise" in summary[4]["refusal"] and "distance" not in summary[4]
    assert (folder / "errors.png").stat().st_size > 10_000
    lines = list(csv.DictReader((folder / "summary.csv").read_text().splitlines()))
    assert [line["label"] for line in lines] == [row["label"] for row in summary]
    # |0.1 z| has the mean 0.1 sqrt(2/pi).
    noise = summary[3]
    assert abs(noise["distance"] - 0.1 * np.sqrt(2 / np.pi)) < 5 * noise["distance_se"]


def test_a_mechanism_has_the_errors_that_replicates_have(finished):
    """Laws are alike, and data are the same for one seed; streams of noise have other names."""
    other = run_replicates(WrappedLaplace(CAP, epsilon=1.0), DATA, 20, 400, seed=5).distance
    own = finished[1][0]
    assert abs(own["distance"] - other.mean()) < 5 * own["distance_se"]
    # A fifth of the privacy parameter would be told.
    assert abs(5 * own["distance"] - other.mean()) > 5 * own["distance_se"]


def test_data_of_a_replicate_are_those_of_its_number(tmp_path):
    """As errors of a draw that has none: the distance of its first record, by hand."""
    cell = ("first record", lambda key, points: points[0], numbers, 5, Scales(1))
    run_sweep([cell], tmp_path / "out", 3, seed=1)
    found = pq.read_table(tmp_path / "out" / "results.parquet")["distance"].to_pylist()
    with jax.enable_x64(True):
        key, _ = jax.random.split(jax.random.key(1))
        for number, distance in enumerate(found):
            points = numbers(jax.random.fold_in(key, np.uint32(number)), 5)
            assert distance == pytest.approx(float(Scales(1).dist(frechet_mean(Scales(1), points), points[0])), 1e-12)


def test_another_number_of_devices_resumes(finished, tmp_path):
    folder, script = tmp_path / "out", pathlib.Path(own_sweep.__file__)
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    subprocess.run([sys.executable, str(script), str(folder)], check=True, env=environment)
    before = contents(folder)
    found = run_sweep(cells(), folder, REPLICATES, seed=5).summary
    assert contents(folder) == before
    # Blocks are of other sizes, sums in them of another order.
    numbers = [[row.get("distance", 0.0) for row in rows] for rows in (found, finished[1])]
    np.testing.assert_allclose(*numbers, rtol=1e-9)


@pytest.mark.parametrize("attempt", [0, *(pytest.param(k, marks=pytest.mark.exhaustive) for k in range(1, 10))])
def test_a_killed_sweep_resumes_to_the_same_bytes(finished, tmp_path, attempt):
    folder, script = tmp_path / "out", pathlib.Path(own_sweep.__file__)
    process = subprocess.Popen([sys.executable, str(script), str(folder)])
    if attempt:
        time.sleep(random.Random(attempt).uniform(1.0, 15.0))
    else:
        while process.poll() is None and not list(folder.glob("cells/*.parquet")):
            time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    stamps = {path: path.stat().st_mtime_ns for path in folder.glob("cells/*.parquet")}
    run_sweep(cells(), folder, REPLICATES, seed=5)
    assert contents(folder) == contents(finished[0])
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items()), "a cell was run twice"


def test_a_folder_is_of_what_is_computed_not_of_names_alone(finished):
    folder, _ = finished
    before = contents(folder)
    for own, replicates, seed in ((cells(0.2), REPLICATES, 5), (cells(), REPLICATES, 6), (cells()[:4], REPLICATES, 5)):
        with pytest.raises(ValueError, match="holds another sweep"):
            run_sweep(own, folder, replicates, seed=seed)
    changed = [*cells()[:3], *cells()[3:]]
    changed[0] = ("sphere", WrappedLaplace(CAP, epsilon=1.5), DATA, 20)
    with pytest.raises(ValueError, match="holds another sweep"):
        run_sweep(changed, folder, REPLICATES, seed=5)
    assert contents(folder) == before
    assert "fingerprint" not in json.loads(before["manifest.json"])["cells"][0]


TABLE = """
import sys
import jax, jax.numpy as jnp, numpy as np
from jaxgeodp import Euclidean
from jaxgeodp.experiments import run_sweep
mask = np.zeros(200, np.int64)
mask[: int(sys.argv[2])] = 1
helper = jax.jit(lambda points: (jnp.asarray(mask)[:, None] * points).sum(0))
data = lambda key, n: jax.random.normal(key, (n, 2))
run_sweep([("table", lambda key, points: helper(points), data, 200, Euclidean(2))], sys.argv[1], 2)
"""


def test_a_table_that_a_function_uses_is_noticed_in_another_process(tmp_path):
    def call(entries):
        return subprocess.run(
            [sys.executable, "-c", TABLE, str(tmp_path / "out"), entries], capture_output=True, text=True, check=False
        )

    assert call("100").returncode == 0 and call("100").returncode == 0
    changed = call("5")
    assert changed.returncode != 0 and "holds another sweep" in changed.stderr


def test_what_a_function_uses_may_change_between_calls(tmp_path):
    """JAX would run the program that it knows."""
    space, shift = Euclidean(2), np.zeros(2)

    def draw(key, points):
        return points.mean(0) + shift

    def data(key, n):
        return jax.random.normal(key, (n, 2))

    cell = [("a", draw, data, 5, space)]
    assert run_sweep(cell, tmp_path / "first", 3).summary[0]["distance"] < 1e-12
    shift[:] = 3.0
    with pytest.raises(ValueError, match="holds another sweep"):
        run_sweep(cell, tmp_path / "first", 3)
    found = run_sweep(cell, tmp_path / "second", 3).summary[0]["distance"]
    assert found == pytest.approx(3.0 * np.sqrt(2), rel=1e-12)


class Shifted:
    """A draw that does not hash, and states what it spends."""

    epsilon = 2.0
    __hash__ = None

    def __init__(self, shift):
        self.shift = np.asarray(shift)

    def __call__(self, key, points):
        return points.mean(0) + self.shift


def test_numpy_integers_odd_labels_and_callables_that_do_not_hash(tmp_path):
    space = Euclidean(2)

    def data(key, n):
        return jax.random.normal(key, (n, 2))

    cells = [("$x_{$ _", Shifted([1.0, 0.0]), data, n, space) for n in np.array([5, 9])]
    cells += [("_own, n=5", Shifted([2.0, 0.0]), data, 5, space)]
    rows = run_sweep((cell for cell in cells), tmp_path / "out", np.int64(3)).summary
    assert [row["epsilon"] for row in rows] == [2.0] * 3
    np.testing.assert_allclose([row["distance"] for row in rows], [1.0, 1.0, 2.0])


def test_landmarks_count_as_shapes(tmp_path):
    shapes = PlanarShapes(4)
    corners = jnp.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])

    def data(key, n):
        return corners + 0.1 * jax.random.normal(key, (n, 4, 2))

    cell = ("first", lambda key, points: points[0], data, 5, shapes)
    row = run_sweep([cell], tmp_path / "out", 3).summary[0]
    assert row["on_manifold"] == 1.0 and 0.0 < row["distance"] < 0.5


def _mean(key, points):
    return frechet_mean(Sphere(2), points)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([], "there are no cells"),
        ([("a", _mean, DATA)], "cell 1 must be a tuple"),
        ([("a\nb", _mean, DATA, 5)], "the label of cell 1 must be a line"),
        ([("a", _mean, DATA, 1)], "n of 'a' must be an integer of at least 2"),
        ([("a", 3.0, DATA, 5)], "needs a mechanism or draw"),
        ([("a", _mean, None, 5)], "needs generator"),
        ([("a", _mean, DATA, 5), ("a", _mean, DATA, 5)], "two cells are 'a, n=5'"),
        ([("a", _mean, lambda key, n: jnp.ones((n, 3)), 5)], "the manifold of 'a' is not known"),
        ([("a", _mean, lambda key, n: jnp.ones((n, 4)), 5, Sphere(2))], r"must make points of shape \(5, 3\)"),
        ([("a", lambda key, points: points, DATA, 5)], r"must return a point of shape \(3,\)"),
        ([("a", KNGMechanism(CAP, 1.0, statistic=FrechetMedian()), DATA, 5)], "distances from the Frechet mean"),
        ([("a", lambda key, points: points[0] / 0.0, DATA, 5)], "2 of 2 values of 'a, n=5', or means of their data"),
        ([("a", lambda key, points: CAP.center, lambda key, n: jnp.full((n, 3), jnp.nan), 5, Sphere(2))], "means of"),
        ([("a", lambda key, points: points[0] + 0j, DATA, 5)], "must return a point of shape"),
        ([("a", lambda key, points: points[0] > 0, DATA, 5)], "must return a point of shape"),
        ([("a", _mean, lambda key, n: 1j * DATA.records(key, n), 5, Sphere(2))], "must make points of shape"),
        ([("a", _mean, DATA, 5, Sphere(2, 4.0))], "the manifolds of 'a' differ"),
        ([("a", WrappedLaplace(CAP, 1.0), lambda key, n: 0, 5, Euclidean(3))], "the manifolds of 'a' differ"),
        ([("a", _mean, DATA, 5, "sphere")], "must be a manifold"),
        ([("a" * 61, _mean, DATA, 5)], "1 to 60 characters"),
    ],
)
def test_wrong_cells_are_told_in_one_sentence(tmp_path, wrong, words):
    with pytest.raises(ValueError, match=words) as caught:
        run_sweep(wrong, tmp_path / "out", 2)
    assert str(caught.value).count("\n") == 0


def test_replicates_and_seed_are_said_once(tmp_path):
    sweep = Sweep("euclidean", 1.0, ("tangent",), (50,), 2, epsilon=(1.0,), replicates=2)
    for call in (lambda: run_sweep(sweep, tmp_path, 5), lambda: run_sweep(sweep, tmp_path, seed=1)):
        with pytest.raises(ValueError, match="states its own replicates and seed"):
            call()
    with pytest.raises(ValueError, match="replicates is needed"):
        run_sweep([("a", _mean, DATA, 5)], tmp_path)
    with pytest.raises(ValueError, match="replicates must be an integer of at least 1"):
        run_sweep([("a", _mean, DATA, 5)], tmp_path, 0)
    with pytest.raises(ValueError, match="seed must be an integer from 0"):
        run_sweep([("a", _mean, DATA, 5)], tmp_path, 5, seed=-1)
    assert not list(tmp_path.iterdir())
