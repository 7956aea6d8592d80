"""The sweep engine: right laws, the same numbers whatever is killed, split or shared, and clear errors."""

import csv
import functools
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image
from scipy import stats
from strategies import exhaustive
from typer.testing import CliRunner

from jaxgeodp import (
    SPD,
    EuclideanLaplace,
    FrechetMedian,
    GeodesicBall,
    KNGMechanism,
    LandmarkLaplace,
    LaplaceMechanism,
    PlanarShapes,
    Sphere,
    WrappedLaplace,
    frechet_mean,
)
from jaxgeodp.cli import app
from jaxgeodp.experiments import (
    OutlineData,
    PolarData,
    ResampledData,
    Sweep,
    WishartData,
    read_sweep,
    run_replicates,
    run_sweep,
)
from jaxgeodp.experiments.replicates import padded_size, records_of, released
from jaxgeodp.experiments.shapes import crossings
from jaxgeodp.files import only_writer

ALPHA = 1e-6
# Replicates of a block where 65 to 128 are asked for: tests that ask for so many share programs.
BLOCK = 128
S2 = GeodesicBall(Sphere(2), Sphere(2).origin, np.pi / 8)
P2 = GeodesicBall(SPD(2), SPD(2).origin, 1.5)
SMALL = """
manifold = "sphere"
size = 2
radius = 0.39
mechanisms = ["laplace", "tangent", "euclidean"]
calibrations = ["tight", "theorem"]
n = [20, 30]
epsilon = [0.5, 1.0]
replicates = 100
"""
# As many cells, of programs without rejection.
ADDED_NOISE = SMALL.replace('"laplace", "tangent"', '"tangent"').replace("[20, 30]", "[20, 30, 40, 50]")
ADDED_NOISE = ADDED_NOISE.replace('calibrations = ["tight", "theorem"]\n', "")


@functools.cache
def outlines(radius=0.19, landmarks=20):
    manifold = PlanarShapes(landmarks)
    template = jax.jit(OutlineData.template, static_argnums=0)(manifold)
    return OutlineData(GeodesicBall(manifold, template, radius))


def drawn(data, seed, count):
    return _drawn(data, jax.random.key(seed), count)


@functools.partial(jax.jit, static_argnums=2)
def _drawn(data, key, count):
    return data.records(key, count)


@functools.partial(jax.jit, static_argnums=0)
def distances(manifold, center, points):
    return jax.vmap(lambda x: manifold.dist(center, x))(points)


# Data ------------------------------------------------------------------------------------------------------


def test_polar_data_have_uniform_lengths_and_angles():
    points = np.asarray(drawn(PolarData(S2), 0, 20_000))
    length = np.arctan2(np.linalg.norm(points[:, :2], axis=1), points[:, 2])
    angle = np.arctan2(points[:, 1], points[:, 0])
    assert stats.kstest(length / S2.radius, "uniform").pvalue > ALPHA
    assert stats.kstest(angle / (2 * np.pi) + 0.5, "uniform").pvalue > ALPHA
    # The uniform law of the cap is another one.
    assert stats.kstest((1 - np.cos(length)) / (1 - np.cos(S2.radius)), "uniform").pvalue < ALPHA


def test_polar_directions_are_uniform_in_three_dimensions():
    ball = GeodesicBall(Sphere(3), Sphere(3).origin, 0.3)
    points = np.asarray(drawn(PolarData(ball), 0, 20_000))
    tangent = np.asarray(jax.vmap(lambda x: Sphere(3).log(jnp.asarray(ball.center), x))(jnp.asarray(points)))
    height = tangent[:, 0] / np.linalg.norm(tangent, axis=1)  # uniform on the sphere of directions (Archimedes)
    assert stats.kstest(height / 2 + 0.5, "uniform").pvalue > ALPHA


def test_wishart_data_have_the_law_of_scipy():
    ours = np.asarray(drawn(WishartData(P2), 0, 10_000))
    raw = stats.wishart(2, np.eye(2) / 2).rvs(20_000, random_state=1)
    inside = np.sqrt((np.log(np.linalg.eigvalsh(raw)) ** 2).sum(axis=1)) <= P2.radius
    theirs = raw[inside]
    for statistic in (np.linalg.det, lambda x: np.trace(x, axis1=1, axis2=2), lambda x: x[:, 0, 1]):
        assert stats.ks_2samp(statistic(ours), statistic(theirs)).pvalue > ALPHA
        assert stats.ks_2samp(statistic(ours), statistic(raw)).pvalue < ALPHA  # what lies outside matters


def test_outlines_do_not_cross_themselves_and_fill_the_ball():
    data = outlines()
    points = drawn(data, 0, 300)
    distance = np.asarray(distances(data.ball.manifold, jnp.asarray(data.ball.center), points))
    assert 0.05 < np.median(distance) < data.ball.radius
    assert distance.max() <= data.ball.radius * (1 + 1e-9)
    assert max(crossings(np.asarray(x)) for x in points) == 0


@pytest.mark.parametrize(
    "build",
    [lambda: PolarData(S2), lambda: WishartData(P2), *exhaustive(outlines)],
    ids=["PolarData", "WishartData", "OutlineData"],
)
def test_records_lie_in_the_ball_and_do_not_depend_on_how_many_follow(build):
    data = build()
    few, many = (drawn(data, 3, count) for count in (7, 300))
    np.testing.assert_allclose(few, many[:7], atol=1e-12)
    distance = np.asarray(distances(data.ball.manifold, jnp.asarray(data.ball.center), many))
    assert distance.max() <= data.ball.radius * (1 + 1e-9)
    again = drawn(data, 4, 7)
    assert np.max(np.abs(np.asarray(again) - np.asarray(few))) > 1e-3


def test_resampled_data_are_the_clipped_records():
    points = drawn(PolarData(GeodesicBall(Sphere(2), S2.center, 0.7)), 0, 300)[:50]  # the program of the test above
    data = ResampledData(S2, points)
    taken = np.asarray(drawn(data, 1, 500))
    clipped = np.asarray(S2.clip(points))
    nearest = np.linalg.norm(taken[:, None] - clipped[None], axis=2)
    assert nearest.min(axis=1).max() < 1e-12
    assert len(set(nearest.argmin(axis=1))) > 45


# Replicates ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mechanism_on", "build", "n"),
    [
        (lambda ball, epsilon: WrappedLaplace(ball, epsilon), lambda: PolarData(S2), 40),
        *exhaustive(
            (lambda ball, epsilon: KNGMechanism(ball, epsilon), lambda: PolarData(S2), 40),
            (lambda ball, epsilon: WrappedLaplace(ball, epsilon), lambda: WishartData(P2), 40),
            (lambda ball, epsilon: LaplaceMechanism(ball, epsilon), lambda: WishartData(P2), 40),
            (lambda ball, epsilon: LandmarkLaplace(ball, epsilon, align=False), lambda: outlines(landmarks=6), 30),
        ),
    ],
    ids=["wrapped on the sphere", "KNG on the sphere", "wrapped on matrices", "Laplace on matrices", "landmarks"],
)
def test_replicates_have_the_law_of_simulate(mechanism_on, build, n):
    """Padded, weighted and batched, against one data set after the other."""
    data = build()
    mechanism = mechanism_on(data.ball, 1.0)
    manifold = data.ball.manifold
    ours = run_replicates(mechanism, data, n, 600, seed=1, block=BLOCK)

    def alone(key):
        points = data.records(key, n)
        value = mechanism.simulate(jax.random.fold_in(key, 1), points, 1)[0]
        return manifold.dist(frechet_mean(manifold, points), manifold.project(value))

    theirs = jax.jit(jax.vmap(alone))(jax.random.split(jax.random.key(2), 600))
    assert stats.ks_2samp(ours.distance, np.asarray(theirs)).pvalue > ALPHA
    # A scale that is off by a third is seen.
    wrong = run_replicates(mechanism_on(data.ball, 1.5), data, n, 600, seed=1, block=BLOCK)
    if not isinstance(mechanism, LandmarkLaplace):
        assert stats.ks_2samp(wrong.distance, np.asarray(theirs)).pvalue < ALPHA


@pytest.mark.parametrize("kind", [WrappedLaplace, *exhaustive(LaplaceMechanism)])
def test_replicates_depend_on_seed_label_and_number_only(kind):
    mechanism, data = kind(S2, 1.0), PolarData(S2)
    whole = run_replicates(mechanism, data, 20, 100)
    for replicates in (100, 31):  # 15 and 5 blocks
        split = run_replicates(mechanism, data, 20, replicates, block=7)
        # The last bits are those of the block's program.
        np.testing.assert_allclose(split.distance, whole.distance[:replicates], rtol=1e-13)
    assert np.all(run_replicates(mechanism, data, 20, 100, label="b").distance != whole.distance)
    assert np.all(run_replicates(mechanism, data, 20, 100, seed=1).distance != whole.distance)


def test_mechanisms_meet_the_same_data():
    """The noise of two streams differs, the data do not: with hardly any noise the errors of the bias agree."""
    data = PolarData(S2)
    errors = [run_replicates(EuclideanLaplace(S2, 1e9), data, 20, BLOCK, label=label).euclidean for label in "ab"]
    np.testing.assert_allclose(*errors, atol=1e-9)
    assert errors[0].min() > 1e-4


def test_values_off_the_manifold_are_told():
    vectors = run_replicates(EuclideanLaplace(S2, 1.0), PolarData(S2), 20, BLOCK)
    assert not vectors.on_manifold.any()
    assert np.isnan(vectors.distance).all()
    assert np.isfinite(vectors.euclidean).all()


@pytest.mark.exhaustive  # the data and their means are an expensive program; the rest is as on the sphere
def test_values_that_are_points_now_and_then_have_a_distance_then():
    matrices = run_replicates(EuclideanLaplace(P2, 1.0), WishartData(P2), 20, 200, block=32)
    assert 0.05 < matrices.on_manifold.mean() < 0.95
    np.testing.assert_array_equal(np.isfinite(matrices.distance), matrices.on_manifold)


def test_draws_that_double_precision_cannot_hold_are_refused():
    near_the_limit = KNGMechanism(P2, 1.0, calibration="paper")
    with pytest.raises(ValueError, match="double precision"):
        run_replicates(near_the_limit, WishartData(P2), 7, 5)


def test_calibrations_share_programs():
    """Their laws are told apart by numbers alone."""
    kinds = []
    for mechanism, n in (
        (KNGMechanism(S2, 1.0), 30),
        (KNGMechanism(S2, 1.0, calibration="theorem"), 30),
        (KNGMechanism(S2, 0.5), 40),
        (LaplaceMechanism(S2, 1.0), 30),
    ):
        leaves, structure = jax.tree.flatten(mechanism.law(n).unsized)
        kinds.append((structure, [(np.shape(leaf), jnp.asarray(leaf).dtype) for leaf in leaves]))
    assert kinds[0] == kinds[1] == kinds[2] != kinds[3]


@pytest.mark.exhaustive  # by running them
def test_calibrations_compile_nothing_anew():
    data = PolarData(S2)
    for calibration in ("tight", "theorem"):
        run_replicates(KNGMechanism(S2, 1.0, calibration=calibration), data, 30, BLOCK)
        if calibration == "tight":
            known = records_of._cache_size(), released._cache_size()
    run_replicates(KNGMechanism(S2, 0.5), data, 40, 100)
    assert (records_of._cache_size(), released._cache_size()) == known


def test_sizes_of_programs():
    assert [padded_size(n) for n in (2, 128, 129, 512, 513, 10_000)] == [128, 128, 512, 512, 2048, 32_768]


def test_replicates_refuse_other_statistics():
    with pytest.raises(ValueError, match=r"needs the Frechet mean, got FrechetMedian\.$"):
        run_replicates(KNGMechanism(S2, 1.0, FrechetMedian()), PolarData(S2), 20, 5)


DEVICES = """
import sys, jax, numpy as np
from jaxgeodp import *
from jaxgeodp.experiments import PolarData, run_replicates
ball = GeodesicBall(Sphere(2), Sphere(2).origin, 0.39)
errors = run_replicates(LaplaceMechanism(ball, 1.0), PolarData(ball), 20, 101)
np.save(sys.argv[1], np.stack([errors.distance, errors.proposals]))
print(jax.device_count())
"""


@pytest.mark.exhaustive  # two processes below have two devices
def test_four_devices_give_the_numbers_of_one(tmp_path):
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    command = [sys.executable, "-c", DEVICES, str(tmp_path / "4.npy")]
    done = subprocess.run(command, env={**os.environ, "XLA_FLAGS": flags}, capture_output=True, text=True)
    assert done.stdout.strip() == "4", done.stderr
    ball = GeodesicBall(Sphere(2), Sphere(2).origin, 0.39)
    here = run_replicates(LaplaceMechanism(ball, 1.0), PolarData(ball), 20, 101)
    assert jax.device_count() == 1
    np.testing.assert_array_equal(np.load(tmp_path / "4.npy"), np.stack([here.distance, here.proposals]))


# Sweeps ----------------------------------------------------------------------------------------------------


def command(config, out, *more):
    return [sys.executable, "-m", "jaxgeodp", "sweep", str(config), "--out", str(out), *more]


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module", params=["added noise", *exhaustive("rejection")])
def finished(request, tmp_path_factory):
    """A configuration and the folder of its sweep, by the command."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "sweep.toml").write_text(SMALL if request.param == "rejection" else ADDED_NOISE)
    done = subprocess.run(command(folder / "sweep.toml", folder / "out"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "sweep.toml", folder / "out", done.stdout


def test_calibrations_are_cells_of_the_mechanisms_that_have_them(tmp_path):
    (tmp_path / "sweep.toml").write_text(SMALL)
    labels = [cell.label for cell in read_sweep(tmp_path / "sweep.toml").cells()]
    # Laplace has two calibrations, the others one; two epsilons, two n.
    assert len(labels) == 2 * 2 * (2 + 1 + 1) and "laplace, theorem, n=20, epsilon=0.5" in labels


def test_a_sweep_writes_rows_summary_and_manifest(finished):
    config, out, printed = finished
    manifest = json.loads((out / "manifest.json").read_text())
    assert len(manifest["cells"]) == len(read_sweep(config).cells())
    table = pq.read_table(out / "results.parquet").to_pydict()
    assert len(table["label"]) == 100 * len(manifest["cells"])
    for name in ("label", "mechanism", "calibration", "n", "epsilon"):
        assert table[name][::100] == [cell[name] for cell in manifest["cells"]]
    assert set(table["mu"]) == {None}
    assert table["replicate"][:100] == list(range(100))
    lines = (out / "summary.csv").read_text().splitlines()
    assert len(lines) == 1 + len(manifest["cells"])
    for cell in read_sweep(config).cells():
        assert any(line.startswith(f'"{cell.label}"') for line in lines)
    with Image.open(out / "errors.png") as picture:
        assert picture.width > 1000 and len(picture.convert("RGB").getcolors(10**6)) > 20
    assert "peak memory" in printed and "GiB" in printed


def test_halving_epsilon_doubles_the_error(finished):
    """On average over the pairs of cells whose values are points: the ratio of two has an error of a tenth."""
    config, out, _ = finished
    rows = csv.DictReader((out / "summary.csv").read_text().splitlines())
    table = {row["label"]: float(row["distance"]) for row in rows}
    ones = [label for label in table if label.endswith("epsilon=1.0") and not label.startswith("euclidean")]
    ratios = [table[label.replace("epsilon=1.0", "epsilon=0.5")] / table[label] for label in ones]
    assert len(ratios) == (6 if "laplace" in config.read_text() else 4)
    assert np.mean(ratios) == pytest.approx(2.0, rel=0.2)


@pytest.mark.parametrize("when", ["in the middle", *exhaustive("at any time")])
def test_a_killed_sweep_resumes_to_the_same_bytes(finished, tmp_path, when):
    config, out, _ = finished
    folder = tmp_path / "out"
    process = subprocess.Popen(command(config, folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if when == "in the middle":
        # For certain: when the first cells are there.
        while process.poll() is None and len(list(folder.glob("cells/*.parquet"))) < 3:
            time.sleep(0.02)
    else:
        time.sleep(random.uniform(2.0, 12.0))
    process.send_signal(signal.SIGKILL)
    process.wait()
    stamps = {path: path.stat().st_mtime_ns for path in folder.glob("cells/*.parquet")}
    # What a kill in the middle of writing leaves.
    folder.mkdir(exist_ok=True)
    (folder / "cells" if (folder / "cells").exists() else folder).joinpath(".part-torn").write_bytes(b"half")
    result = CliRunner().invoke(app, ["sweep", str(config), "--out", str(folder)])
    assert result.exit_code == 0, result.output
    assert contents(folder) == contents(out)
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items()), "a cell was run twice"


def test_two_sweeps_do_not_write_into_one_folder(finished):
    config, out, _ = finished
    before = contents(out)
    with only_writer(out):
        result = CliRunner().invoke(app, ["sweep", str(config), "--out", str(out)])
    assert result.exit_code == 2
    assert "another process is writing into" in " ".join(result.output.split())
    assert contents(out) == before
    # The lock is gone with its holder.
    result = CliRunner().invoke(app, ["sweep", str(config), "--out", str(out)])
    assert result.exit_code == 0
    # Where no value is on the manifold there is no distance.
    assert "nan" not in result.output and "+-: two standard errors" in result.output


def test_two_processes_give_the_numbers_of_one(finished, tmp_path):
    config, out, _ = finished
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path / "out"
    shared = ("--coordinator", f"127.0.0.1:{port}", "--processes", "2")
    workers = [
        subprocess.Popen(command(config, folder, *shared, "--process", str(k)), stderr=subprocess.PIPE, text=True)
        for k in (0, 1)
    ]
    for worker in workers:
        assert worker.wait(timeout=280) == 0, worker.stderr.read()
    assert contents(folder) == contents(out)


def test_processes_with_different_sweeps_refuse_each_other(finished, tmp_path):
    config, _, _ = finished
    other = tmp_path / "other.toml"
    other.write_text(SMALL + "seed = 1\n")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = ("--coordinator", f"127.0.0.1:{port}", "--processes", "2")
    folder = tmp_path / "out"
    workers = [
        subprocess.Popen(command(path, folder, *shared, "--process", str(k)), stderr=subprocess.PIPE, text=True)
        for k, path in enumerate((config, other))
    ]
    for worker in workers:
        errors = worker.communicate(timeout=240)[1]
        assert worker.returncode == 2, errors
        assert "the processes have different sweeps" in " ".join(errors.split())
    assert not folder.exists()


def test_a_folder_is_never_mixed(finished, tmp_path):
    config, out, _ = finished
    other = tmp_path / "other.toml"
    other.write_text(SMALL.replace("replicates = 100", "replicates = 101"))
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    for arguments, message in (
        (["sweep", str(other), "--out", str(out)], "holds another sweep"),
        (["sweep", str(config), "--out", str(full)], "is not empty and holds no sweep"),
        (["sweep", str(config), "--out", str(config)], "is a file; name a folder"),
        (["sweep", str(tmp_path / "none.toml"), "--out", str(full)], "is not a file"),
    ):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 2
        assert message in " ".join(result.output.split())
    assert [path.name for path in full.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("mechanisms = [", 'mechanisms = ["kgn", '), "mechanisms must be of"),
        (("manifold = ", "manifolds = "), "unknown field 'manifolds'"),
        (("radius = 0.39\n", ""), "radius is missing"),
        (("radius = 0.39\n", "radius = 0.39\nmu = [1.0]\n"), "none of these mechanisms takes mu; leave it out"),
        (("radius = 0.39\n", "radius = 0.39\ndomain = 1.0\n"), "domain is for located and located-gaussian"),
        (('mechanisms = ["laplace"', 'mechanisms = ["wrapped", "tangent"] # ["laplace"'), "calibration than tight"),
        (("n = [20", "n = [1"), "n must be an integer of at least 2, got 1"),
        (("epsilon = [0.5", "epsilon = [-0.5"), "epsilon must be a number above 0"),
        (("epsilon = [0.5, 1.0]", ""), "needs epsilon, a list"),
        (('mechanisms = ["laplace"', 'mechanisms = ["gaussian"'), "gaussian needs mu"),
        (("size = 2", "size = [2]"), "size must be a single value"),
        (("replicates = 100", "replicates = 0"), "replicates must be an integer of at least 1"),
        (("replicates = 100", f"seed = {10**20}"), "seed must be at most"),
        (("replicates = 100", "digit = 10"), "digit must be at most 9"),
        (('calibrations = ["tight", "theorem"]', "calibrations = []"), "must each have at least one entry"),
        (('mechanisms = ["laplace"', 'mechanisms = [["laplace"]'), "mechanisms must be of"),
        (("radius = 0.39", "radius = 2.0"), "no cell can run"),
        (("radius = 0.39", 'radius = 0.39\ndata = "wishart"'), "need an SPD manifold"),
        (('"sphere"', '"klein"'), "manifold must be one of"),
        (("n = [20", "n = [20"[:3]), "not a TOML file"),
    ],
)
def test_a_wrong_configuration_is_one_sentence_and_writes_nothing(tmp_path, change, message):
    path = tmp_path / "sweep.toml"
    path.write_text(SMALL.replace(*change))
    result = CliRunner().invoke(app, ["sweep", str(path), "--out", str(tmp_path / "out")])
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.exhaustive  # one that finds no ball refuses below
def test_a_mechanism_that_refuses_is_a_row_with_its_reason(tmp_path):
    sweep = Sweep("spd", 1.5, ("laplace", "tangent"), (3, 60), 2, epsilon=(0.1,), data="wishart", replicates=20)
    results = run_sweep(sweep, tmp_path / "out")
    refused = [row for row in results.summary if "refusal" in row]
    assert [row["n"] for row in refused if row["mechanism"] == "laplace"] == [3]
    assert "raise epsilon" in refused[0]["refusal"]
    assert pathlib.Path(tmp_path / "out" / "results.parquet").exists()


def test_mechanisms_that_find_their_ball_are_cells(tmp_path):
    """Told nothing, they come near to one that is told the ball; far from the origin, too."""
    sweep = Sweep(
        "sphere", 0.5, ("wrapped-gaussian", "located-gaussian", "located"), (60,), 2, (0.1,), (2.0,), replicates=100,
        distance=2.0,
    )  # fmt: skip
    ball = sweep.generator().ball
    assert float(Sphere(2).dist(jnp.asarray(ball.center), jnp.asarray(ball.manifold.origin))) == pytest.approx(2.0)
    rows = {row["mechanism"]: row for row in run_sweep(sweep, tmp_path / "out").summary}
    told, located = rows["wrapped-gaussian"], rows["located-gaussian"]
    assert told["distance"] < 1.3 * located["distance"] < 2.6 * told["distance"]
    assert located["guarantee"] == "zcdp" and located["scale"] is None and located["on_manifold"] == 1.0
    assert "too few" in rows["located"]["refusal"]
    for wrong, words in ((dict(distance=-1.0), "distance"), (dict(distance=1.0, data="wishart"), "polar")):
        with pytest.raises(ValueError, match=words):
            Sweep("spd", 1.0, ("laplace",), (30,), 2, epsilon=(1.0,), **wrong)


def test_simulate_prints_errors_and_memory():
    arguments = "simulate --manifold sphere --size 2 --radius 0.39 --n 50 --epsilon 1 --mechanism wrapped".split()
    first, second = (CliRunner().invoke(app, [*arguments, "--replicates", "100"]) for _ in range(2))
    assert first.exit_code == 0, first.output
    lines = first.output.splitlines()
    assert lines[0].startswith("mean distance")
    assert lines[:2] == second.output.splitlines()[:2]
    assert float(lines[0].split(": ")[1].split(" +-")[0]) == pytest.approx(
        2 * WrappedLaplace(S2, 1.0).scale(50), rel=0.5
    )
    assert "100.0% of values" in first.output and "(two standard errors)" in lines[0]
    result = CliRunner().invoke(app, [*arguments, "--mu", "1"])
    assert result.exit_code == 2
    assert "either --epsilon or --mu" in result.output
