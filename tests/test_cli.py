"""The command line, through its entry point."""

import importlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest
from strategies import exhaustive
from typer.testing import CliRunner

from jaxgeodp import SPD, Euclidean, Hyperbolic, PlanarShapes, Rotations, Sphere
from jaxgeodp.cli import app
from jaxgeodp.io import read

# A folder of openly licensed files, none of which is part of the project.
PUBLIC_DATA = pathlib.Path(os.environ.get("JAXGEODP_PUBLIC_DATA", "no folder given"))


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def words(result):
    return " ".join(result.output.split())


def directions(n=30):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)) * 0.1 + np.array([0.0, 0.0, 1.0])


def matrices(n=30, size=3):
    factors = np.random.default_rng(1).normal(size=(n, size, 20))
    return factors @ factors.swapaxes(1, 2) / 20


def landmarks(n=30):
    square = np.array([[0, 0], [1, 0], [1, 1], [0, 1.0]])
    return square + 0.05 * np.random.default_rng(2).normal(size=(n, 4, 2))


def hyperboloid(n=30):
    space = np.random.default_rng(3).normal(size=(n, 2)) * 0.2
    return np.column_stack([np.sqrt(1.0 + np.sum(space**2, axis=1)), space])


def rotation_matrices(n=30):
    # Near the identity; the reader projects.
    return np.eye(3) + 0.1 * np.random.default_rng(4).normal(size=(n, 3, 3))


def save_csv(path, rows, header=None):
    np.savetxt(path, rows, delimiter=",", header=header or "", comments="")


def release_arguments(data, out, manifold, radius, *more):
    """At the origin and by the Laplace mechanism unless the call says otherwise."""
    for option, value in (("--center", "origin"), ("--mechanism", "laplace")):
        more = more if option in more or "--ball" in more else (*more, option, value)
    return ["release", data, "--manifold", manifold, "--radius", radius, "--epsilon", 2, "--out", out, *more]


def release(*arguments):
    return run(*release_arguments(*arguments))


def test_installed_entry_point_answers():
    command = shutil.which("jaxgeodp", path=str(pathlib.Path(sys.executable).parent))
    assert command is not None
    answer = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("jaxgeodp 0.")
    reports = [run(*words).output for words in (("info",), ("--version", "--verbose"), ("--verbose", "--version"))]
    assert reports[0] == reports[1] == reports[2]
    assert all(word in reports[0] for word in (answer.stdout, "jax ", "numpyro ", "devices: ", "compiled programs: "))
    for words, said in (
        (("--verbose",), "only goes with --version"),
        ((), "Usage"),
        (("nonsense",), "No such command"),
    ):
        answer = run(*words)
        assert answer.exit_code == 2 and said in answer.output
    completion = {"COMP_WORDS": "jaxgeodp release --ma", "COMP_CWORD": "2", "_JAXGEODP_COMPLETE": "complete_bash"}
    answer = subprocess.run([command], env=os.environ | completion, capture_output=True, text=True)
    assert answer.stdout.split() == ["--manifold"] and answer.stderr == ""
    values = completion | {"COMP_WORDS": "jaxgeodp release --mechanism wr", "COMP_CWORD": "3"}
    answer = subprocess.run([command], env=os.environ | values, capture_output=True, text=True)
    assert answer.stdout.split() == ["wrapped", "wrapped-gaussian"] and answer.stderr == ""
    wrong = subprocess.run(
        [
            command,
            "release",
            "nothing.npy",
            "--manifold",
            "spd",
            "--center",
            "origin",
            "--radius",
            "1",
            "--epsilon",
            "1",
            "--out",
            "o.json",
        ],
        capture_output=True,
        text=True,
    )
    assert wrong.returncode == 2 and wrong.stdout == ""
    assert wrong.stderr.strip() == "Error: nothing.npy: there is no such file."


# Of files that are read each in a way of their own; that of shapes by a program that other tests have.
RELEASED = ("sphere", "spd", "shapes", "hyperbolic", "rotations")
FEW = [("wrapped", "sphere"), ("laplace", "shapes")]
MORE = [(own, space) for own in ("wrapped", "laplace", "kng") for space in RELEASED if (own, space) not in FEW]


@pytest.mark.parametrize(("mechanism", "space"), [*FEW, *exhaustive(*MORE)])
def test_release_on_every_manifold(tmp_path, mechanism, space):
    np.save(tmp_path / "directions.npy", directions())
    np.savez(tmp_path / "matrices.npz", x=matrices(size=2), labels=np.arange(30))
    save_csv(tmp_path / "landmarks.csv", landmarks().reshape(30, -1), header="x1,y1,x2,y2,x3,y3,x4,y4")
    np.save(tmp_path / "square.npy", landmarks(1)[0])
    np.save(tmp_path / "hyperboloid.npy", hyperboloid())
    save_csv(tmp_path / "rotations.csv", rotation_matrices().reshape(30, 9))
    cases = [
        ("directions.npy", "sphere", 0.5, [], Sphere(2)),
        ("matrices.npz", "spd", 1.5, ["--array", "x"], SPD(2)),
        ("landmarks.csv", "shapes", 0.3, ["--header", "--center", tmp_path / "square.npy"], PlanarShapes(4)),
        ("hyperboloid.npy", "hyperbolic", 1.0, [], Hyperbolic(2)),
        ("rotations.csv", "rotations", 0.7, [], Rotations()),
    ]
    ((file, name, radius, more, manifold),) = [case for case in cases if case[1] == space]
    out = tmp_path / f"{name}.json"
    result = release(tmp_path / file, out, name, radius, "--mechanism", mechanism, *more)
    assert result.exit_code == 0, result.output
    record = json.loads(out.read_text())
    value = np.array(record["value"])
    point = value[..., 0] + 1j * value[..., 1] if name == "shapes" else value
    assert manifold.belongs(point, 1e-9)
    assert record["n"] == 30 and record["guarantee"]["epsilon"] == 2.0 and record["guarantee"]["kind"] == "pure"
    assert record["manifold"]["name"] == type(manifold).__name__ and record["statistic"] == "FrechetMean"
    assert "30" in words(result) and "sensitivity" in words(result)


@pytest.mark.parametrize(("name", "manifold"), [("euclidean", Euclidean(3)), *exhaustive(("sphere", Sphere(2)))])
def test_the_median_is_released_by_kng_alone(tmp_path, name, manifold):
    np.save(tmp_path / "data.npy", directions() - [0.0, 0.0, float(name == "euclidean")])  # around the origin
    more = ["--statistic", "median"]
    result = release(tmp_path / "data.npy", tmp_path / "out.json", name, 0.5, *more)
    assert result.exit_code == 2 and words(result).startswith("Error: --statistic median needs --mechanism kng")
    assert not (tmp_path / "out.json").exists()
    result = release(tmp_path / "data.npy", tmp_path / "out.json", name, 0.5, *more, "--mechanism", "kng")
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / "out.json").read_text())
    assert record["statistic"] == "FrechetMedian" and manifold.belongs(np.array(record["value"]), 1e-9)


def test_vech_rows_and_square_matrices_are_the_same_data(tmp_path):
    full = matrices(5)
    np.save(tmp_path / "full.npy", full)
    save_csv(tmp_path / "vech.csv", full[:, *np.tril_indices(3)])
    records = read(tmp_path / "vech.csv", "spd")
    np.testing.assert_allclose(records, read(tmp_path / "full.npy", SPD(3)))


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_is_a_record_whatever_it_says(tmp_path, end):
    path = tmp_path / "cells.csv"
    lines = [
        b"0,0,1",
        b"0,secret,1",
        b",0,1",
        b"",
        b'"0,0,1',
        b"0.1,0",
        b"0.1,0,1,2",
        b"0,caf\xe9,1",
        b"0.1,0,1",
        b"1,1,1",
    ]
    expected = np.full((10, 3), np.nan)
    expected[[0, 8, 9]] = [[0, 0, 1], [0.1, 0, 1], [1, 1, 1]]
    expected[[1, 2, 7]] = [[0, np.nan, 1], [np.nan, 0, 1], [0, np.nan, 1]]
    for last in (b"", end):
        path.write_bytes(b"\xef\xbb\xbf" + end.join(lines) + last)
        np.testing.assert_array_equal(read(path, "sphere"), expected)
        # With a header the first line is no record, and alone gives the width.
        np.testing.assert_array_equal(read(path, "sphere", header=True), expected[1:])


@pytest.mark.parametrize("manifold", ["sphere", *exhaustive("shapes")])
def test_the_content_of_a_record_changes_nothing_but_the_value(tmp_path, manifold):
    """Replace any line by any bytes: the same n, exit code and output; the compiled program is shared."""
    data, out, center = tmp_path / "data.csv", tmp_path / "out.json", tmp_path / "center.npy"
    rows, point, radius = {
        "sphere": (directions(), np.array([0.0, 0.0, 1.0]), 0.5),
        "shapes": (landmarks().reshape(30, 8), landmarks(1)[0], 0.3),
    }[manifold]
    np.save(center, point)
    save_csv(data, rows)
    lines = data.read_bytes().splitlines()

    def outcome():
        result = release(data, out, manifold, radius, "--center", center, "--overwrite")
        return result.exit_code, result.stdout, result.stderr, json.loads(out.read_text())["n"]

    expected = outcome()
    assert expected[0] == 0 and expected[2] == "" and expected[3] == 30
    rng = np.random.default_rng(5)
    noise = [bytes(rng.integers(0, 256, 30, dtype=np.uint8)).translate(None, b"\r\n") for _ in range(6)]
    special = [
        b"",
        b"x,y,z",
        b'"open',
        b"1,2",
        b"1,2,3,4",
        b"\xe9,\xff,\x00",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"nan,inf,-inf",
    ]
    special += [b",".join([number] * rows.shape[1]) for number in (b"inf", b"-1e308", b"0", b"1e-320", b"nan")]
    special += [b"1e999,1,1", "\u2028,\x0b,\x0c".encode(), b"0,0,0", b"9" * 5000 + b",1,1", b"1_0,0x1,1"]
    for position, content in enumerate(noise + special):
        line = (0, 29, position)[position % 3]
        changed = list(lines)
        changed[line] = content
        data.write_bytes(b"\n".join(changed) + b"\n")
        assert outcome() == expected, (line, content)
    assert "NaN" not in out.read_text()


def test_a_center_file_may_have_a_header_where_the_call_says_so(tmp_path):
    for name, rows in (("data", directions()), ("center", np.array([[0.0, 0.1, 1.0]]))):
        save_csv(tmp_path / f"{name}.csv", rows, header="x,y,z")
    arguments = [tmp_path / "data.csv", tmp_path / "out.json", "sphere", 0.5, "--center", tmp_path / "center.csv"]
    assert release(*arguments).exit_code == 2
    save_csv(tmp_path / "bare.csv", np.array([[0.0, 0.1, 1.0]]))
    for center in ("center.csv", "bare.csv"):
        (tmp_path / "out.json").unlink(missing_ok=True)
        assert release(*arguments[:-1], tmp_path / center, "--header").exit_code == 0
        record = json.loads((tmp_path / "out.json").read_text())
        assert record["n"] == 30
        np.testing.assert_allclose(record["ball"]["center"], np.array([0.0, 0.1, 1.0]) / np.sqrt(1.01), atol=1e-15)


@pytest.mark.parametrize("kind", ["longdouble", "float16", ">f8", ">i4", "uint8", "bool"])
def test_any_type_of_real_number_is_read(tmp_path, kind):
    rows = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0]])
    np.save(tmp_path / "data.npy", rows.astype(kind))
    records = read(tmp_path / "data.npy", "sphere")
    assert records.dtype == np.float64
    np.testing.assert_array_equal(records, rows)


def test_extended_precision_is_released(tmp_path):
    shapes = landmarks().astype(np.longdouble)
    np.save(tmp_path / "real.npy", shapes)
    np.save(tmp_path / "complex.npy", shapes[..., 0] + 1j * shapes[..., 1])
    np.save(tmp_path / "square.npy", landmarks(1)[0])
    for name in ("real", "complex"):
        more = ["--center", tmp_path / "square.npy"]
        result = release(tmp_path / f"{name}.npy", tmp_path / f"{name}.json", "shapes", 0.3, *more)
        assert result.exit_code == 0, result.output


def bad_calls(folder):
    np.save(folder / "good.npy", directions())
    np.save(folder / "one.npy", directions(1))
    np.save(folder / "cube.npy", np.ones((4, 2, 3)))
    np.save(folder / "text.npy", np.array([["a", "b"], ["c", "d"]]))
    np.savez(folder / "two.npz", a=directions(), b=directions())
    (folder / "broken.npy").write_bytes(b"not an array 12345")
    (folder / "vector.csv").write_text("1,2,3,4,5\n4,5,6,7,8\n")
    (folder / "old.json").write_text("precious")
    (folder / "empty.csv").write_text("")
    (folder / "data.docx").write_text("")
    base = {
        "data": "good.npy",
        "--manifold": "sphere",
        "--radius": 0.5,
        "--epsilon": 1.0,
        "--center": "origin",
    }
    return {
        "there is no such file": {**base, "data": "absent.npy"},
        "unknown file type": {**base, "data": "data.docx"},
        "cannot be read": {**base, "data": "broken.npy"},
        "exists; name another file, or replace it with --overwrite": {**base, "out": folder / "old.json"},
        "is another file of this call": {**base, "out": folder / "good.npy"},
        "points of the hyperboloid must have shape": {**base, "--manifold": "hyperbolic", "data": "cube.npy"},
        "rotations must have shape": {**base, "--manifold": "rotations", "data": "vector.csv"},
        "--statistic must be one of": {**base, "--statistic": "mode"},
        "needs at least 2 records, one per row, but": {**base, "data": "one.npy"},
        "needs at least 2 records": {**base, "data": "empty.csv"},
        "--manifold must be one of": {**base, "--manifold": "klein"},
        "directions must have shape": {**base, "data": "cube.npy"},
        "SPD records must have shape": {**base, "--manifold": "spd", "data": "cube.npy"},
        "landmarks must have shape": {**base, "--manifold": "shapes"},
        "must hold numbers": {**base, "data": "text.npy"},
        "--array": {**base, "data": "two.npz"},
        "Assumption 1": {**base, "--radius": 0.8},
        "radius must be a finite number above 0": {**base, "--radius": "nan"},
        "epsilon must be a finite number above 0": {**base, "--epsilon": 0},
        "epsilon must be a finite": {**base, "--epsilon": "inf"},
        "--mechanism must be one of": {**base, "--mechanism": "gauss"},
        "calibration must be one of": {**base, "--calibration": "loose"},
        "must hold one point of": {**base, "--center": folder / "good.npy"},
        "does not exist; create it first": {**base, "out": folder / "no" / "out.json"},
        "is a folder; name a file": {**base, "out": folder},
    }


def test_bad_calls_are_one_sentence_exit_2_and_write_nothing(tmp_path):
    for sentence, call in bad_calls(tmp_path).items():
        before = sorted(tmp_path.iterdir())
        call = dict(call)
        data, out = tmp_path / call.pop("data"), call.pop("out", tmp_path / "out.json")
        options = [part for pair in call.items() for part in pair]
        result = run("release", data, "--out", out, *options)
        assert result.exit_code == 2, (sentence, result.output)
        assert sentence in words(result), (sentence, result.output)
        assert words(result).startswith("Error: ") and words(result).endswith(".") and "Traceback" not in result.output
        assert sorted(tmp_path.iterdir()) == before


def test_spd_release_that_cannot_exist_says_what_to_change(tmp_path):
    np.save(tmp_path / "few.npy", matrices(3))
    result = release(tmp_path / "few.npy", tmp_path / "out.json", "spd", 5.0, "--mechanism", "kng")
    assert result.exit_code == 2 and "raise epsilon above" in words(result)
    assert not (tmp_path / "out.json").exists()


def test_existing_files_are_replaced_only_on_demand_and_inputs_never(tmp_path):
    data, center, out, link = (tmp_path / name for name in ("data.npy", "center.npy", "out.json", "link.npy"))
    np.save(data, directions())
    np.save(center, np.array([0.0, 0.0, 1.0]))
    link.symlink_to(data)
    out.write_text("precious")
    assert release(data, out, "sphere", 0.5).exit_code == 2
    assert release(tmp_path / "absent.npy", out, "sphere", 0.5, "--overwrite").exit_code == 2
    assert out.read_text() == "precious"
    before = data.read_bytes(), center.read_bytes()
    for target in (data, center, link):
        result = release(data, target, "sphere", 0.5, "--center", center, "--overwrite")
        assert result.exit_code == 2 and "is another file of this call" in words(result)
    assert (data.read_bytes(), center.read_bytes()) == before and link.is_symlink()
    assert release(data, out, "sphere", 0.5, "--overwrite").exit_code == 0
    assert json.loads(out.read_text())["n"] == 30


@pytest.mark.parametrize("kind", [ValueError, TypeError, RuntimeError, MemoryError, FloatingPointError, KeyError])
def test_only_our_own_words_are_printed(tmp_path, monkeypatch, kind):
    def fail(*_, **__):
        raise kind("secret 3.14")

    monkeypatch.setattr(importlib.import_module("jaxgeodp.cli.release"), "release_in", fail)
    np.save(tmp_path / "data.npy", directions())
    before = sorted(tmp_path.iterdir())
    result = release(tmp_path / "data.npy", tmp_path / "out.json", "sphere", 0.5)
    assert result.exit_code == 1 and "secret" not in result.output and "Traceback" not in result.output
    assert words(result) == (
        f"Error: stopped by an unexpected {kind.__name__}; its text is withheld, as it could quote data."
    )
    assert sorted(tmp_path.iterdir()) == before


ON_A_LINE = ("--manifold", "euclidean", "--size", 1, "--radius", 0.5, "--epsilon", 1, "--n", 5)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            release_arguments("data.npy", "out.json", "euclidean", 0.5, "--overwrite", "--mechanism", "tangent"),
            "Wrote ",
        ),
        *exhaustive(
            (
                release_arguments("data.npy", "out.json", "sphere", 0.5, "--overwrite", "--mechanism", "tangent"),
                "Wrote ",
            ),
            (release_arguments("data.npy", "out.json", "sphere", 0.5, "--overwrite"), "Wrote "),
            (("audit", *ON_A_LINE, "--mechanism", "tangent", "--draws", 1000), "TangentLaplace on "),
            (("simulate", *ON_A_LINE, "--mechanism", "tangent", "--replicates", 10), "mean "),
            (("plan", *ON_A_LINE, "--draws", 10), "mechanism "),
        ),
    ],
)
def test_a_second_run_is_as_quiet_as_the_first(tmp_path, arguments, said):
    """Programs from the compilation cache must not make XLA print warnings."""
    np.save(tmp_path / "data.npy", directions())
    ours = "TF_CPP_MIN_LOG_LEVEL", "JAX_COMPILATION_CACHE_DIR"
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    environment["XDG_CACHE_HOME"] = str(tmp_path / "cache")
    command = [sys.executable, "-c", "from jaxgeodp.cli import main; main()", *map(str, arguments)]
    for _ in range(2):
        answer = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert answer.stderr == "" and answer.stdout.strip().startswith(said)
        (folder,) = (tmp_path / "cache" / "jaxgeodp" / "compiled").iterdir()
        assert any(folder.glob("*-cache"))


@pytest.mark.exhaustive  # .ci/run runs the demo
def test_demo_writes_pictures_and_records(tmp_path):
    result = run("demo", "--out", tmp_path / "demo")
    assert result.exit_code == 0, result.output
    records = sorted((tmp_path / "demo").glob("*.json"))
    assert len(records) == 20
    for path in records:
        record = json.loads(path.read_text())
        assert record["guarantee"]["kind"] == "pure" and record["n"] == 177
    for picture in ("shapes.png", "covariances.png"):
        assert (tmp_path / "demo" / picture).read_bytes().startswith(b"\x89PNG")
    (tmp_path / "file").write_text("")
    assert run("demo", "--out", tmp_path / "file").exit_code == 2


@pytest.mark.skipif(not PUBLIC_DATA.is_dir(), reason="JAXGEODP_PUBLIC_DATA names no folder")
def test_public_data_from_the_wild(tmp_path):
    """Diffusion tensors of a brain, fly wings, leaves: real files through the whole path."""
    tensors = np.load(PUBLIC_DATA / "dipy_dti_small_64D.npz")["x"]
    np.save(tmp_path / "tensors.npy", tensors)
    np.save(tmp_path / "center.npy", np.eye(3) * 7e-4)
    cases = [
        (tmp_path / "tensors.npy", "spd", 1.5, ["--center", tmp_path / "center.npy", "--mechanism", "kng"]),
        (PUBLIC_DATA / "riemann_passiflora_miersii.npz", "shapes", 0.3, ["--array", "x"]),
        (PUBLIC_DATA / "morphospace_wings.npz", "shapes", 0.3, ["--array", "x"]),
    ]
    for data, manifold, radius, more in cases:
        out = tmp_path / "out.json"
        result = release(data, out, manifold, radius, *more, "--overwrite")
        assert result.exit_code == 0, result.output
        assert np.all(np.isfinite(np.array(json.loads(out.read_text())["value"])))


def test_x64_setting_of_the_process_is_left_alone(tmp_path):
    before = jax.config.jax_enable_x64
    np.save(tmp_path / "d.npy", directions())
    assert release(tmp_path / "d.npy", tmp_path / "o.json", "sphere", 0.5).exit_code == 0
    assert jax.config.jax_enable_x64 == before


@pytest.mark.parametrize("manifold", ["euclidean", *exhaustive("sphere")])
def test_plan_names_a_winner_without_data(manifold):
    options = {"manifold": manifold, "size": 2, "radius": 0.39, "n": 100, "epsilon": 1, "mu": 1, "draws": 200}
    result = run("plan", *(part for name, value in options.items() for part in (f"--{name}", value)))
    assert result.exit_code == 0, result.output
    for mechanism in ("KNGMechanism", "LaplaceMechanism", "WrappedLaplace", "TangentLaplace", "EuclideanLaplace"):
        assert mechanism in result.output
    assert "Smallest expected error at epsilon = 1: " in result.output
    assert "RiemannianGaussian" in result.output and "nan" not in result.output


def test_plan_names_what_a_release_takes(tmp_path):
    """Where that is another one than the first of its table."""
    np.save(tmp_path / "data.npy", directions(n=40))
    told = words(run("plan", "--manifold", "sphere", "--size", "2", "--radius", "0.3", "--n", "40", "--epsilon", "1"))
    assert "Smallest expected error at epsilon = 1: TangentLaplace" in told
    name = told.split("'jaxgeodp release' takes ")[1].split()[0]
    own = ("--manifold", "sphere", "--radius", 0.3, "--center", "origin", "--epsilon", 1)
    assert run("release", tmp_path / "data.npy", *own, "--out", tmp_path / "out.json").exit_code == 0
    assert json.loads((tmp_path / "out.json").read_text())["mechanism"] == name != "TangentLaplace"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--manifold", "klein", "--radius", "1"), "manifold must be one of"),
        (("--manifold", "spd", "--radius", "1"), "size is needed for spd"),
        (("--manifold", "sphere", "--size", "2", "--radius", "2"), "violates Assumption 1"),
        (("--manifold", "sphere", "--size", "0", "--radius", "0.3"), "dim must be an integer"),
    ],
)
def test_plan_says_what_is_wrong(options, complaint):
    result = run("plan", *options, "--n", "50", "--epsilon", "1")
    assert result.exit_code == 2
    assert complaint in words(result)


@pytest.mark.parametrize(
    ("mechanism", "parameter", "kind"),
    [("tangent", "epsilon", "pure"), ("gaussian", "mu", "gdp"), ("wrapped-gaussian", "mu", "gdp")],
)
def test_release_by_addition(tmp_path, mechanism, parameter, kind):
    np.save(tmp_path / "data.npy", directions())
    arguments = [
        "release",
        tmp_path / "data.npy",
        "--manifold",
        "sphere",
        "--center",
        "origin",
        "--radius",
        0.5,
        "--out",
        tmp_path / "out.json",
    ]
    result = run(*arguments, "--mechanism", mechanism, f"--{parameter}", 2)
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "out.json").read_text())["guarantee"][parameter] == 2.0
    assert json.loads((tmp_path / "out.json").read_text())["guarantee"]["kind"] == kind
    other = "epsilon" if parameter == "mu" else "mu"
    for wrong in (
        [f"--{other}", 2],
        ["--mu", 1, "--epsilon", 1],
        [],
        [f"--{parameter}", 1, "--calibration", "theorem"],
    ):
        refused = run(*arguments, "--overwrite", "--mechanism", mechanism, *wrong)
        assert refused.exit_code == 2
        assert "Traceback" not in refused.output


def test_a_value_that_cannot_be_drawn_is_released_all_the_same(tmp_path, monkeypatch):
    """It has been paid for: the picture is empty, and that is said."""
    save_csv(tmp_path / "data.csv", directions())

    def broken(record):
        raise OverflowError

    monkeypatch.setattr("jaxgeodp.pictures.picture_of", broken)
    options = ("--manifold", "sphere", "--center", "origin", "--radius", 0.5, "--epsilon", 2, "--mechanism", "laplace")
    result = run("release", tmp_path / "data.csv", *options, "--out", tmp_path / "a.json", "--plot", tmp_path / "a.png")
    assert result.exit_code == 0 and "cannot be drawn" in words(result), result.output
    assert (tmp_path / "a.json").exists() and (tmp_path / "a.png").read_bytes() == b""
