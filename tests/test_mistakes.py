"""The mistakes that people make with files of their own: refused for public reasons, or told by ``jaxgeodp check``.

A refusal charges nothing and writes nothing; it never depends on a record. What only the records show, the private
report of ``check`` tells, whose exit code and words on the error stream are always the same.
"""

import json
import stat

import numpy as np
import pytest
from typer.testing import CliRunner

from jaxgeodp import Ledger, PureDP, Sphere
from jaxgeodp.cli import app
from jaxgeodp.cli.layout import Layout
from jaxgeodp.cli.reading import read_records

N = 60
RNG = np.random.default_rng(0)
WINGS = np.array([0, 0, 3, 0.2, 3.2, 1, 1.5, 1.6, 0.2, 1.1]) + 0.1 * RNG.normal(size=(N, 10))
NAMES = ",".join(f"{axis}{k}" for k in range(1, 6) for axis in "xy")
PLACES = np.column_stack([45.0 + 4.0 * RNG.normal(size=N), 9.0 + 4.0 * RNG.normal(size=N)])
FACTORS = RNG.normal(size=(N, 4, 30)) * np.array([1.0, 2.0, 0.5, 1.0])[:, None]
MATRICES = FACTORS @ FACTORS.swapaxes(1, 2) / 30 + 0.5 * np.ones((4, 4))
# The upper triangle of some, read as the lower one, is not positive definite.
UPPER = MATRICES[:, *np.triu_indices(4)]


def rows(table, start="", mark=",", quote=""):
    return "\n".join(
        start.format(k) + mark.join(f"{quote}{value!r}{quote}" for value in row)
        for k, row in enumerate(table.tolist(), 1)
    )


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def said(result):
    return " ".join(result.output.split())


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("wing.npy", WINGS[0].reshape(5, 2))
    np.save("place.npy", [0.7, 0.1, 0.7])
    Ledger("book.db", PureDP(1.0))
    return tmp_path


SHAPES = ("--manifold", "shapes", "--center", "wing.npy", "--radius", 0.3)
NO_CENTER = ("--manifold", "shapes", "--center", "origin")
SPHERE = ("--manifold", "sphere", "--center", "place.npy", "--radius", 0.3)
SPD = ("--manifold", "spd", "--center", "origin", "--radius", 4)
TABLES = {
    "id and group before the coordinates": (
        f"id,group,{NAMES}\n" + rows(WINGS, "{},a,"), (*SHAPES, "--header"), "columns 'id', 'group' have names"
    ),
    "row names of R": (
        '"",' + NAMES + "\n" + rows(WINGS, '"{}",'), (*SHAPES, "--header"), "such as --columns 2-11"
    ),
    "an id without a header": (rows(WINGS, "{},"), SHAPES, "landmarks must have shape (n, k, 2)"),
    "semicolons": (rows(WINGS, mark=";"), ("--manifold", "euclidean", "--radius", 9), "say it with --delimiter"),
    "semicolons and a header": (
        NAMES.replace(",", ";") + "\n" + rows(WINGS, mark=";"), (*SHAPES, "--header"), "say --delimiter ';'"
    ),
    "latitude and longitude": (rows(PLACES), SPHERE, "angles, which need --degrees"),
    "latitude and longitude by name": ("lat,lon\n" + rows(PLACES), (*SPHERE, "--header"), "say --degrees lat,lon"),
    "no centre of shapes": (rows(WINGS), ("--manifold", "shapes", "--radius", 0.3), "--center is needed on shapes"),
    "no centre of directions": (
        rows(np.eye(3)), ("--manifold", "sphere", "--radius", 0.3), "--center is needed on sphere"
    ),
    "no centre of matrices": (rows(UPPER), ("--manifold", "spd", "--radius", 1), "--center is needed on spd"),
    "blank lines at the end": (rows(WINGS) + "\n\n\n", (*SHAPES, "--expect-n", N), "holds 62 records, not the 60"),
    "a header that is not said": (NAMES + "\n" + rows(WINGS), (*SHAPES, "--expect-n", N), "holds 61 records"),
    "angles of palaeomagnetism": (rows(PLACES), SPHERE, "--size 1"),
    "another size": (rows(WINGS), (*SHAPES, "--size", 4), "must be points of shapes(4)"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", TABLES)
def test_a_mistake_in_public_is_refused_and_charges_nothing(folder, mistake):
    text, options, words = TABLES[mistake]
    (folder / "data.csv").write_text(text)
    result = run("release", "data.csv", *options, "--epsilon", 1, "--ledger", "book.db", "--out", "out.json")
    assert result.exit_code == 2 and words in said(result), said(result)
    assert not (folder / "out.json").exists() and Ledger("book.db").account().releases == 0


RIGHT = {
    "columns by number": (f"id,group,{NAMES}\n" + rows(WINGS, "{},a,"), (*SHAPES, "--header", "--columns", "3-12")),
    "columns by name": (f"id,{NAMES}\n" + rows(WINGS, "{},"), (*SHAPES, "--header", "--columns", NAMES)),
    "quotes": ('"",' + NAMES + "\n" + rows(WINGS, '"{}",', quote='"'), (*SHAPES, "--header", "--columns", "2-11")),
    "semicolons": (rows(WINGS, mark=";"), (*SHAPES, "--delimiter", ";")),
    "tabs": (rows(WINGS, mark="\t"), (*SHAPES, "--delimiter", "tab")),
}


@pytest.mark.parametrize("way", RIGHT)
def test_what_the_sentences_advise_reads_the_records(folder, way):
    text, options = RIGHT[way]
    (folder / "data.csv").write_text(text)
    named = dict(zip(options[::2], options[1::2], strict=False)) if "--header" not in options else {}
    if "--header" in options:
        named = {"--columns": options[-1]}
    layout = Layout(
        header="--header" in options, columns=named.get("--columns"), delimiter=named.get("--delimiter", ",")
    )
    _, points = read_records(folder / "data.csv", "shapes", layout)
    np.testing.assert_array_equal(points, WINGS[:, ::2] + 1j * WINGS[:, 1::2])


def test_angles_become_directions(folder):
    (folder / "data.csv").write_text("lon,lat,depth\n10,50,3\n-80,-10,4\n0,95,5\n")
    layout = Layout(header=True, columns="1-2", degrees="lon,lat")
    manifold, points = read_records(folder / "data.csv", "sphere", layout)
    assert manifold == Sphere(2) and np.isnan(points[2]).all()
    around, up = np.radians([10, -80]), np.radians([50, -10])
    expected = np.stack([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)], axis=1)
    np.testing.assert_allclose(points[:2], expected, atol=1e-15)


def test_the_centre_has_the_layout_of_the_records_or_is_a_point(folder):
    (folder / "data.csv").write_text("lat,lon,id\n" + rows(np.column_stack([PLACES, np.arange(N)])))
    (folder / "center.csv").write_text("lat,lon,id\n45,9,7\n")
    (folder / "angles.csv").write_text("lat,lon\n45,9\n")
    own = ("--header", "--degrees", "lat,lon", "--columns", "1-2", "--mechanism", "tangent", "--epsilon", 1)
    centers = []
    for file in ("center.csv", "angles.csv", "place.npy"):
        result = run(
            "release", "data.csv", *SPHERE[:2], "--center", file, "--radius", 0.3, *own, "--out", f"{file}.json"
        )
        assert result.exit_code == 0, result.output
        centers.append(json.loads((folder / f"{file}.json").read_text())["ball"]["center"])
    np.testing.assert_allclose(centers[0], centers[1])
    assert np.linalg.norm(np.subtract(centers[0], centers[2])) < 0.1


def test_upper_triangles_and_sizes(folder):
    np.save("rows.npy", UPPER)
    _, points = read_records(folder / "rows.npy", "spd", Layout(triangle="upper", size=4, expect_n=N))
    np.testing.assert_array_equal(points, MATRICES)
    lower = read_records(folder / "rows.npy", "spd", Layout())[1]
    assert not np.array_equal(lower, MATRICES)


def test_landmark_files(folder):
    blocks = [
        f"LP=5\n{rows(wing.reshape(5, 2), mark=' ')}\nIMAGE=w{k}.png\nID={k}\nSCALE=0.1" for k, wing in enumerate(WINGS)
    ]
    blocks[3] = blocks[3].replace("LP=5", "LP=4")
    blocks[4] = blocks[4].replace(" ", " oops ", 1)
    (folder / "data.tps").write_text("\n".join(blocks))
    _, points = read_records(folder / "data.tps", "shapes", Layout())
    expected = WINGS[:, ::2] + 1j * WINGS[:, 1::2]
    assert np.isnan(points[3]).all() and np.isnan(points[4, 0])
    np.testing.assert_array_equal(np.delete(points, [3, 4], axis=0), np.delete(expected, [3, 4], axis=0))
    table = WINGS + 10.0
    table[2, 4] = -999
    labels = " ".join(f"w{k}" for k in range(N))
    (folder / "data.nts").write_text(f'"wings\n1 {N}L 10 1 -999 DIM=2\n{labels}\n{rows(table, mark=" ")}\n')
    _, points = read_records(folder / "data.nts", "shapes", Layout())
    assert np.isnan(points[2, 2]) and np.isfinite(np.delete(points, 2, axis=0)).all()
    for bad, words in (("LP3=5\n1 2 3", "landmarks in space"), ("x y", "has no line 'LP=...'")):
        (folder / "bad.tps").write_text(bad)
        with pytest.raises(ValueError, match=words):
            read_records(folder / "bad.tps", "shapes", Layout())


# What only the records show --------------------------------------------------------------------------------

VOLTS = MATRICES * 1e-10
MEANLESS = MATRICES - MATRICES.mean(axis=1, keepdims=True)
REFERENCED = MEANLESS - MEANLESS.mean(axis=2, keepdims=True)
TOLD = {
    "a header that is not said": (NAMES + "\n" + rows(WINGS), SHAPES, "Line 1 holds no number"),
    "an id column": (
        rows(np.column_stack([np.arange(N), WINGS, WINGS[:, :1]])), NO_CENTER, "Column 1 holds 60 distinct whole"
    ),
    "a column of words": (rows(WINGS[:, 1:], "patient{},"), SHAPES, "Column 1: 60 of 60 cells hold words"),
    "blank lines": (rows(WINGS) + "\n\n\n", SHAPES, "Lines 61, 62 are blank"),
    "lines of another width": (rows(WINGS) + "\n1,2\n", SHAPES, "Line 61 is not of 10 cells"),
    "latitude, longitude, radius": (
        rows(np.column_stack([PLACES, np.full(N, 6371.0)])), SPHERE, "look like latitude and longitude"
    ),
    "upper triangles": (rows(UPPER), SPD, "say --triangle upper"),
    "an average reference": (REFERENCED, SPD, "Their rows sum to zero"),
    "volts": (VOLTS, SPD, "units such as volts squared"),
    "a centre far away": (VOLTS, SPD, "the centre is not near these data"),
    "degrees for directions": (rows(np.column_stack([PLACES, PLACES[:, 0]])), SPHERE, "Lengths of the vectors"),
    "copies": (np.concatenate([MATRICES, MATRICES[:3]]), SPD, "3 records are copies"),
    "missing": (np.where(np.arange(N)[:, None, None] == 5, np.nan, MATRICES), SPD, "missing or no numbers: records 6."),
    "semicolons": (rows(WINGS, mark=";"), ("--manifold", "euclidean(1)", "--radius", 9), "say --delimiter ';'"),
    "decimal commas": (
        rows(WINGS, mark=";").replace(".", ","), (*SHAPES, "--delimiter", ";"), "decimal commas?"
    ),
    "a wide ball": (rows(WINGS), (*SHAPES[:-1], 0.39), "times what 95 % of the records need"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", TOLD)
def test_check_tells_a_mistake_to_the_custodian_alone(folder, mistake):
    content, options, words = TOLD[mistake]
    name = "data.csv" if isinstance(content, str) else "data.npy"
    (folder / name).write_text(content) if isinstance(content, str) else np.save(name, content)
    result = run("check", name, *options)
    assert result.exit_code == 0 and words in said(result), result.output
    report = folder / "data-private.txt"
    assert words in " ".join(report.read_text().split()) and report.read_text().startswith("PRIVATE")
    for path in folder.glob("data-private.*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_check_finds_nothing_in_good_data_and_draws_distances(folder):
    np.save("data.npy", MATRICES)
    result = run("check", "data.npy", *SPD)
    for words in ("copies", "id?", "triangle", "units", "rank", "no points"):
        assert words not in said(result)
    assert "Condition numbers" in said(result) and " 0 of 60 records lie outside" in said(result)
    assert (folder / "data-private.png").read_bytes().startswith(b"\x89PNG")
    assert run("check", "data.npy", *SPD).exit_code == 2  # the report is there
    assert run("check", "data.npy", *SPD, "--overwrite").exit_code == 0


@pytest.mark.parametrize("content", ["nan", "words", "inf", "0", "1e308", "-1e-320"])
def test_check_ends_alike_for_any_records(folder, content):
    for name, options, width in (("a.csv", SHAPES, 10), ("b.csv", SPHERE, 3), ("c.csv", SPD, 10)):
        (folder / name).write_text("\n".join([",".join([content] * width)] * 4))
        result = run("check", name, *options)
        assert result.exit_code == 0 and result.stderr == "", result.output
