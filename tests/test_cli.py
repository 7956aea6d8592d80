"""The command line, through its entry point."""

import json
import pathlib
import shutil
import subprocess
import sys

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

from jaxgeodp import SPD, PlanarShapes, Sphere
from jaxgeodp.cli import app

PUBLIC_DATA = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"


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


def save_csv(path, rows, header=None):
    np.savetxt(path, rows, delimiter=",", header=header or "", comments="")


def release(data, out, manifold, radius, *more):
    return run("release", data, "--manifold", manifold, "--radius", radius, "--epsilon", 2, "--out", out, *more)


def test_installed_entry_point_answers():
    command = shutil.which("jaxgeodp", path=str(pathlib.Path(sys.executable).parent))
    assert command is not None
    answer = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("jaxgeodp 0.")
    assert "jax " in subprocess.run([command, "info"], capture_output=True, text=True, check=True).stdout
    wrong = subprocess.run(
        [
            command,
            "release",
            "nothing.npy",
            "--manifold",
            "spd",
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


@pytest.mark.parametrize("mechanism", ["laplace", "kng"])
def test_release_of_directions_matrices_and_shapes(tmp_path, mechanism):
    np.save(tmp_path / "directions.npy", directions())
    np.savez(tmp_path / "matrices.npz", x=matrices(), labels=np.arange(30))
    save_csv(tmp_path / "landmarks.csv", landmarks().reshape(30, -1), header="x1,y1,x2,y2,x3,y3,x4,y4")
    np.save(tmp_path / "square.npy", landmarks(1)[0])
    cases = [
        ("directions.npy", "sphere", 0.5, [], Sphere(2)),
        ("matrices.npz", "spd", 1.5, ["--array", "x"], SPD(3)),
        ("landmarks.csv", "shapes", 0.3, ["--center", tmp_path / "square.npy"], PlanarShapes(4)),
    ]
    for file, name, radius, more, manifold in cases:
        out = tmp_path / f"{name}.json"
        result = release(tmp_path / file, out, name, radius, "--mechanism", mechanism, *more)
        assert result.exit_code == 0, result.output
        record = json.loads(out.read_text())
        value = np.array(record["value"])
        point = value[..., 0] + 1j * value[..., 1] if name == "shapes" else value
        assert manifold.belongs(point, 1e-9)
        assert record["n"] == 30 and record["guarantee"]["epsilon"] == 2.0 and record["guarantee"]["kind"] == "pure"
        assert record["manifold"]["name"] == type(manifold).__name__
        assert "30" in words(result) and "sensitivity" in words(result)


def test_vech_rows_and_square_matrices_are_the_same_data(tmp_path):
    from jaxgeodp.cli.reading import read_records

    full = matrices(5)
    np.save(tmp_path / "full.npy", full)
    save_csv(tmp_path / "vech.csv", full[:, *np.tril_indices(3)])
    manifold, records = read_records(tmp_path / "vech.csv", "spd")
    assert manifold == SPD(3)
    np.testing.assert_allclose(records, read_records(tmp_path / "full.npy", "spd")[1])


def test_cells_that_are_no_numbers_become_missing_and_are_not_reported(tmp_path):
    from jaxgeodp.cli.reading import read_records

    path = tmp_path / "cells.csv"
    path.write_text("0,0,1\n0,secret,1\n,0,1\n0.1,0,1\n")
    _, records = read_records(path, "sphere")
    assert records.shape == (4, 3) and np.isnan(records[1, 1]) and np.isnan(records[2, 0])
    result = release(path, tmp_path / "out.json", "sphere", 0.5)
    assert result.exit_code == 0 and "secret" not in result.output
    assert "NaN" not in (tmp_path / "out.json").read_text()


def bad_calls(folder):
    np.save(folder / "good.npy", directions())
    np.save(folder / "one.npy", directions(1))
    np.save(folder / "cube.npy", np.ones((4, 2, 3)))
    np.save(folder / "text.npy", np.array([["a", "b"], ["c", "d"]]))
    np.savez(folder / "two.npz", a=directions(), b=directions())
    (folder / "broken.npy").write_bytes(b"not an array 12345")
    (folder / "ragged.csv").write_text("1,2,3\n4,5\n")
    (folder / "empty.csv").write_text("")
    (folder / "data.parquet").write_text("")
    base = {
        "data": "good.npy",
        "--manifold": "sphere",
        "--radius": 0.5,
        "--epsilon": 1.0,
        "--center": "origin",
    }
    return {
        "there is no such file": {**base, "data": "absent.npy"},
        "unknown file type": {**base, "data": "data.parquet"},
        "cannot be read": {**base, "data": "broken.npy"},
        "same number of columns": {**base, "data": "ragged.csv"},
        "needs at least 2 records, one per row, but": {**base, "data": "one.npy"},
        "needs at least 2 records": {**base, "data": "empty.csv"},
        "--manifold must be one of": {**base, "--manifold": "torus"},
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


def test_an_existing_release_survives_a_failed_one(tmp_path):
    out = tmp_path / "out.json"
    out.write_text("precious")
    assert release(tmp_path / "absent.npy", out, "sphere", 0.5).exit_code == 2
    assert out.read_text() == "precious"


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


@pytest.mark.skipif(not PUBLIC_DATA.is_dir(), reason="the folder of public evaluation data is not beside the project")
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
        result = release(data, out, manifold, radius, *more)
        assert result.exit_code == 0, result.output
        assert np.all(np.isfinite(np.array(json.loads(out.read_text())["value"])))


def test_x64_setting_of_the_process_is_left_alone(tmp_path):
    before = jax.config.jax_enable_x64
    np.save(tmp_path / "d.npy", directions())
    assert release(tmp_path / "d.npy", tmp_path / "o.json", "sphere", 0.5).exit_code == 0
    assert jax.config.jax_enable_x64 == before
