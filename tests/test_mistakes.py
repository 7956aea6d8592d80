"""The mistakes that people make with files of their own: refused for public reasons, or told by ``jaxgeodp check``.

A refusal charges nothing and writes nothing; it never depends on a record. What only the records show, the private
report of ``check`` tells, whose exit code and words on the error stream are always the same.
"""

import json
import stat

import numpy as np
import pytest
from strategies import exhaustive
from typer.testing import CliRunner

from jaxgeodp import Ledger, PureDP, Sphere
from jaxgeodp.cli import app
from jaxgeodp.cli import check as command
from jaxgeodp.io import findings, read

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
    "a header without the row names": (
        NAMES + "\n" + rows(WINGS, "{},"), (*SHAPES, "--header"), "header has 10 cells, but most lines have 11"
    ),
    "a header without records": (NAMES, (*SHAPES, "--header"), "has only one line"),
    "angles in the other order": (
        "lon,lat\n" + rows(PLACES), (*SPHERE, "--header", "--degrees", "lat,lon"), "say --degrees lon,lat"
    ),
    "longitude by another name": ("lng,lat\n" + rows(PLACES), (*SPHERE, "--header"), "say --degrees lon,lat"),
    "numbers for names": (
        "0,1,2,3\n" + rows(WINGS[:, :4]), ("--manifold", "euclidean", "--radius", 9, "--header", "--columns", "1,2"),
        "'1' is the name of one column and the number of another",
    ),
    "an option of one factor": (
        rows(UPPER), ("--manifold", "spd(3) * sphere(3)", "--center", "origin", "--radius", 0.3, "--triangle", "upper"),
        "--triangle is for --manifold spd",
    ),
    "another size": (rows(WINGS), (*SHAPES, "--size", 4), "must be points of shapes(4)"),
    "residues beside angles": (
        "chain,residue,number,phi,psi\n" + rows(PLACES, "A,ALA,{},"),
        ("--manifold", "torus", "--as", "degrees", "--center", "origin", "--radius", 0.3, "--header"),
        "such as --columns phi,psi",
    ),
    "numbers beside angles": (
        "shift,phi_1,psi_1\n" + rows(PLACES, "{},"),
        ("--manifold", "torus", "--as", "degrees", "--center", "origin", "--radius", 0.3, "--header"),
        "such as --columns phi_1,psi_1",
    ),
    "an id beside lines": (
        "id,trend,plunge\n" + rows(PLACES, "{},"),
        ("--manifold", "axes", "--as", "trend,plunge", "--center", "origin", "--radius", 0.3, "--header"),
        "say --columns trend,plunge",
    ),
    "poses between spaces": (
        "# timestamp tx ty tz qx qy qz qw\n" + rows(np.ones((N, 8)), mark=" "),
        ("--manifold", "rigidmotions(1)", "--as", "xyzw", "--center", "origin", "--radius", 0.3),
        "--delimiter, such as 'space'",
    ),
    "poses between spaces, with columns": (
        rows(np.ones((N, 8)), mark=" "),
        ("--manifold", "rigidmotions(1)", "--as", "xyzw", "--center", "origin", "--columns", "2-8", "--radius", 0.3),
        "--delimiter, such as 'space'",
    ),
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
    named = {options[-2].lstrip("-"): options[-1]}
    points = read(folder / "data.csv", "shapes", header="--header" in options, **named)
    np.testing.assert_array_equal(points, WINGS[:, ::2] + 1j * WINGS[:, 1::2])


def test_angles_become_directions(folder):
    (folder / "data.csv").write_text("lon,lat,depth\n10,50,3\n-80,-10,4\n0,95,5\n")
    points = read(folder / "data.csv", Sphere(2), header=True, columns="1-2", degrees="lon,lat")
    assert np.isnan(points[2]).all()
    around, up = np.radians([10, -80]), np.radians([50, -10])
    expected = np.stack([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)], axis=1)
    np.testing.assert_allclose(points[:2], expected, atol=1e-15)


def test_the_centre_has_the_layout_of_the_records_or_is_a_point(folder):
    (folder / "data.csv").write_text("lat,lon,id\n" + rows(np.column_stack([PLACES, np.arange(N)])))
    (folder / "center.csv").write_text("lat,lon,id\n45,9,7\n")
    (folder / "angles.csv").write_text("lat,lon\n45,9\n")
    (folder / "bare.csv").write_text("45,9\n")
    own = ("--header", "--degrees", "lat,lon", "--columns", "1-2", "--mechanism", "tangent", "--epsilon", 1)
    centers = []
    for file in ("center.csv", "angles.csv", "place.npy", "bare.csv"):
        result = run(
            "release", "data.csv", *SPHERE[:2], "--center", file, "--radius", 0.3, *own, "--out", f"{file}.json"
        )
        assert result.exit_code == 0, result.output
        centers.append(json.loads((folder / f"{file}.json").read_text())["ball"]["center"])
    np.testing.assert_allclose(centers[0], centers[1])
    np.testing.assert_allclose(centers[0], centers[3])
    assert np.linalg.norm(np.subtract(centers[0], centers[2])) < 0.1


def test_the_centre_may_have_another_delimiter(folder):
    (folder / "data.txt").write_text(rows(PLACES, mark=" "))
    (folder / "center.csv").write_text("45,9\n")
    own = ("--degrees", "lat,lon", "--delimiter", "space", "--mechanism", "tangent", "--epsilon", 1)
    result = run("release", "data.txt", *SPHERE[:2], "--center", "center.csv", "--radius", 0.3, *own, "--out", "o.json")
    assert result.exit_code == 0, result.output


def test_upper_triangles_and_sizes(folder):
    np.save("rows.npy", UPPER)
    points = read(folder / "rows.npy", "spd", triangle="upper", size=4, expect_n=N)
    np.testing.assert_array_equal(points, MATRICES)
    lower = read(folder / "rows.npy", "spd")
    assert not np.array_equal(lower, MATRICES)


BLOCKS = [
    f"LM=5\n{rows(wing.reshape(5, 2), mark=' ')}\nIMAGE=w{k}.png\nID={k}\nSCALE=0.1" for k, wing in enumerate(WINGS)
]


@pytest.mark.parametrize(
    "other",
    [
        BLOCKS[3].replace("LM=5", "LM=4"),
        BLOCKS[3].replace("LM=5", "LM=x"),
        BLOCKS[3].replace("LM=5", "LM3=5"),
        BLOCKS[3].replace(" ", " oops ", 1),
        BLOCKS[3].replace(" ", "\x0cLM=5\u2028 ", 1),
        "LM=5\n1 2\n3 4",
        "LM=5",
    ],
)
def test_one_specimen_of_a_tps_file_changes_no_other(folder, other):
    (folder / "data.tps").write_text("\n".join([*BLOCKS[:3], other, *BLOCKS[4:]]))
    points = read(folder / "data.tps", "shapes")
    expected = WINGS[:, ::2] + 1j * WINGS[:, 1::2]
    assert np.isnan(points[3]).any()
    np.testing.assert_allclose(np.delete(points, 3, axis=0), 0.1 * np.delete(expected, 3, axis=0), rtol=1e-15)


@pytest.mark.parametrize("mark", ["", "L", "B", "E"])
@pytest.mark.parametrize("other", [None, "1 2 3", "", "words and words", "9 " * 13])
def test_one_line_of_an_nts_file_changes_no_other(folder, mark, other):
    lines = rows(WINGS - 1.0, mark=" ").splitlines()
    lines = [{"B": f"w{k} {line}", "E": f"{line} w{k}"}.get(mark, line) for k, line in enumerate(lines)]
    if other is not None:
        lines[3] = other
    labels = [" ".join(f"w{k}" for k in range(N))] if mark == "L" else []
    (folder / "data.nts").write_text("\n".join(['"wings', f"1 {N}{mark} 10 0 DIM=2", *labels, *lines]) + "\n")
    points = read(folder / "data.nts", "shapes")
    expected = (WINGS - 1.0)[:, ::2] + 1j * (WINGS - 1.0)[:, 1::2]
    assert len(points) == N and np.isnan(points[3]).all() == (other is not None)
    np.testing.assert_array_equal(np.delete(points, 3, axis=0), np.delete(expected, 3, axis=0))


@pytest.mark.parametrize(("code", "missing"), [("1 -999", [-999.0]), ("1", [-999.0, -1.0]), ("0", [])])
def test_missing_landmarks_of_an_nts_file_are_those_that_it_says(folder, code, missing):
    table = WINGS + 10.0
    table[2, 4], table[5, 5] = -999, -1
    (folder / "data.nts").write_text(f"1 {N} 10 {code} DIM=2\n{rows(table, mark=' ')}")
    points = read(folder / "data.nts", "shapes")
    assert [bool(np.isnan(points[2, 2])), bool(np.isnan(points[5, 2]))] == [-999.0 in missing, -1.0 in missing]


def test_landmark_files_of_another_form_are_refused(folder):
    for name, text, words in (
        ("bad.tps", "LM3=5\n1 2 3\nLM3=5", "for landmarks in space use shapes3d"),
        ("bad.tps", "x y", "has no line 'LM=...'"),
        ("bad.nts", "2 60 10 0 DIM=2", "must begin with a line such as"),
        ("bad.nts", "1 60 10 0 DIM=4\n", "in 4 dimensions"),
        ("bad.nts", "1 2 9 0 DIM=3\n1 2\n3", "for landmarks in space use shapes3d"),
        ("bad.nts", "1 3 10 0 DIM=2\n1 2\n", "must hold 3 lines of 10 numbers"),
    ):
        (folder / name).write_text(text)
        with pytest.raises(ValueError, match=words):
            read(folder / name, "shapes")


# What only the records show --------------------------------------------------------------------------------

VOLTS = MATRICES * 1e-10
MEANLESS = MATRICES - MATRICES.mean(axis=1, keepdims=True)
REFERENCED = MEANLESS - MEANLESS.mean(axis=2, keepdims=True)
TOLD = {
    "a header that is not said": (NAMES + "\n" + rows(WINGS), SHAPES, "Line 1 holds no number"),
    "an id column": (
        rows(np.column_stack([np.arange(N), WINGS, WINGS[:, :1]])), NO_CENTER, "has whole numbers, all of them distinct"
    ),
    "a column of words": (rows(WINGS[:, 1:], "patient{},"), SHAPES, "Column 1 has words in 60 of 60 cells"),
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
        rows(WINGS, mark=";").replace(".", ","), (*SHAPES, "--delimiter", ";"), "say --decimal ','"
    ),
    "an indefinite matrix": (np.concatenate([MATRICES[1:], -MATRICES[:1]]), SPD, "1 matrix has negative eigenvalues"),
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
    # Notes may have been added to the report, and the picture may be another: neither is replaced unasked.
    (folder / "data-private.txt").write_text("my notes")
    assert run("check", "data.npy", *SPD).exit_code == 2
    (folder / "data-private.txt").unlink()
    (folder / "data-private.png").write_text("my own picture")
    assert run("check", "data.npy", *SPD).exit_code == 2
    assert (folder / "data-private.png").read_text() == "my own picture"
    assert run("check", "data.npy", *SPD, "--overwrite").exit_code == 0


ODD = [
    0.0,
    -0.0,
    1.0,
    np.nan,
    np.inf,
    -np.inf,
    1e308,
    -1e308,
    1e17,
    5e-324,
    1e-320,
    1e-160,
    90.0,
    6371.0,
    0.1 + 0.2,
    0.3,
]
KINDS = {
    "euclidean": (3,),
    "sphere": (3,),
    "hyperbolic": (3,),
    "spd": (2, 2),
    "rotations": (3, 3),
    "shapes": (4, 2),
    "grassmann": (4, 2),
    "spd(2) * sphere(2)": (7,),
}
AGAIN = ("hyperbolic", "grassmann", "rotations", "euclidean", "shapes", "spd(2) * sphere(2)")


@pytest.mark.parametrize(
    "kind",
    [*(kind for kind in KINDS if kind not in AGAIN), *exhaustive(*AGAIN)],
)
def test_check_ends_alike_for_any_records(folder, kind):
    rng = np.random.default_rng(0)
    permuted = np.array([[0.1, 0.2, 0.3], [0.3, 0.1, 0.2], [0.2, 0.3, 0.1], [0.1, 0.3, 0.2]])
    for trial in range(12):
        # Few numbers of records: few programs.
        data = rng.choice(ODD, size=((2, 4)[trial % 2], *KINDS[kind]))
        if trial == 0 and KINDS[kind] == (3,):
            data = permuted
        if trial == 1:
            data = np.broadcast_to(np.resize(np.eye(3), KINDS[kind]), (4, *KINDS[kind]))
        if trial == 2:
            data = rng.normal(size=(4, *KINDS[kind])) * 1e17
        np.save("data.npy", data)
        result = run("check", "data.npy", "--manifold", kind, "--center", "origin", "--radius", 0.3, "--overwrite")
        assert result.exit_code == 0 and result.stderr == "", result.output
        assert "could not be computed" not in result.output


def test_check_ends_whatever_a_finder_does(folder, monkeypatch):
    def broken(*_):
        yield "one"
        raise ZeroDivisionError

    monkeypatch.setattr(findings, "of_copies", broken)
    monkeypatch.setattr(command, "picture_of", broken_picture)
    np.save("data.npy", MATRICES)
    result = run("check", "data.npy", *SPD)
    assert result.exit_code == 0 and result.stderr == "" and "look at them yourself" in said(result)


def broken_picture(*_):
    raise ValueError


@pytest.mark.parametrize("content", ["nan", "words", "inf", "0", "1e308", "-1e-320", '"', "1_0", "\u0661"])
def test_check_ends_alike_for_any_cells(folder, content):
    for name, options, width in (("a.csv", SHAPES, 10), ("b.csv", SPHERE, 3), ("c.csv", SPD, 10)):
        (folder / name).write_text("\n".join([",".join([content] * width)] * 4))
        result = run("check", name, *options)
        # A quote that nothing closes makes a cell of a line: the number of columns is public.
        assert result.exit_code == (2 if content == '"' else 0), result.output
        assert result.stderr == "" or content == '"'


def test_a_picture_has_another_name_than_the_report(folder):
    np.save("data.npy", MATRICES)
    result = run("check", "data.npy", *SPD, "--out", "report.png")
    assert result.exit_code == 2 and "must not end in .png" in said(result)
    own = ("--manifold", "spd", "--n", 60, "--epsilon", 1, "--out", "ball.png")
    assert run("ball", "data.npy", *own).exit_code == 2
    assert not list(folder.glob("*.png"))


@pytest.mark.parametrize("out", [".", "..", "/"])
def test_an_output_needs_a_name(folder, out):
    np.save("data.npy", MATRICES)
    for words in (
        ("check", "data.npy", *SPD),
        ("attack", "data.npy", *SPD),
        ("ball", "data.npy", "--manifold", "spd", "--n", 60, "--epsilon", 1),
    ):
        result = run(*words, "--out", out)
        assert result.exit_code == 2 and "names no file" in said(result), said(result)
