"""`jaxgeodp.io` in Python: what the command line reads, refuses and finds, with keywords for options."""

import importlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from jaxgeodp import SPD, Euclidean, GeodesicBall, PlanarShapes, Product, RecordBlocks, Sphere
from jaxgeodp.checks import InputError
from jaxgeodp.cli import app
from jaxgeodp.io import check, read
from jaxgeodp.io.records import python_words

SHAPES = np.random.default_rng(0).normal([[0, 0], [4, 0], [4, 3], [0, 3]], 0.1, (6, 4, 2))
ROWS = SHAPES.reshape(6, 8)
HEADER = ",".join(["id", *(f"c{k}" for k in range(8))])


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    np.save(folder / "data.npy", SHAPES)
    np.save(folder / "template.npy", SHAPES[0])
    lines = [f"{k};{';'.join(map(repr, row))}" for k, row in enumerate(ROWS.tolist())]
    lines[3] = lines[3].replace(".", "x", 1)
    (folder / "data.csv").write_text("\n".join([HEADER.replace(",", ";"), *lines]))
    blocks = ["\n".join(["LM=4", *(f"{x!r} {y!r}" for x, y in shape)]) for shape in SHAPES.tolist()]
    (folder / "data.tps").write_text("\n".join(blocks))
    table = pa.table({"id": list("aabbcc"), **{f"c{k}": column for k, column in enumerate(ROWS.T)}})
    for part, name in ((table, "data"), (table[:4], "part-1"), (table[4:], "part-2")):
        pq.write_table(part, folder / f"{name}.parquet")
    return folder


LAYOUTS = {
    "data.npy": {},
    "data.csv": {"header": True, "delimiter": ";", "columns": "c0,c1,c2,c3,c4,c5,c6,c7"},
    "data.parquet": {"columns": "2-9", "expect_n": 6},
    "data.tps": {"size": 4},
}
KINDS = {
    "shapes": ("shapes", {}),
    "superimposed": ("euclidean", {"template": "template.npy"}),
    "imputed": ("shapes", {"template": "template.npy", "missing": "template"}),
}


def as_options(keywords):
    """Keywords as words of the command line."""
    words = [(f"--{name.replace('_', '-')}", value) for name, value in keywords.items()]
    return [word for name, value in words for word in ([name] if value is True else [name, value])]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file", LAYOUTS)
def test_read_gives_what_the_command_releases_from(folder, monkeypatch, file, kind):
    manifold, more = KINDS[kind]
    own = {name: value for name, value in LAYOUTS[file].items() if name != "size" or manifold == "shapes"} | more
    given, command = [], importlib.import_module("jaxgeodp.cli.release")
    monkeypatch.setattr(command, "release_in", lambda chosen, way, records, *_, **__: given.append(records))
    monkeypatch.setattr(command, "stated_error", lambda *_: {})
    monkeypatch.chdir(folder)
    public = ["--manifold", manifold, "--radius", 0.3, *([] if more else ["--center", "template.npy"])]
    run("release", file, *public, *as_options(own), "--mechanism", "tangent", "--epsilon", 1, "--out", "out.json")
    records = read(file, manifold, **own)
    assert records.dtype == given[0].dtype and records.tobytes() == given[0].tobytes()


@pytest.mark.parametrize(("name", "manifold"), [("shapes", PlanarShapes(4)), ("shapes(4)", PlanarShapes(4))])
def test_a_manifold_reads_what_its_name_does(folder, name, manifold):
    np.testing.assert_array_equal(read(folder / "data.npy", name), read(str(folder / "data.npy"), manifold))


def test_points_of_any_manifold_are_read_as_they_are(tmp_path):
    space = Product(Sphere(2, curvature=4.0), SPD(2))
    table = np.random.default_rng(0).normal(size=(3, *space.shape))
    np.save(tmp_path / "rows.npy", table)
    np.testing.assert_array_equal(read(tmp_path / "rows.npy", space), table)
    np.save(tmp_path / "rows.npy", table[:, :3])
    np.testing.assert_array_equal(read(tmp_path / "rows.npy", SPD(2))[:, [0, 1, 1], [0, 0, 1]], table[:, :3])


def test_several_files_are_read_in_blocks(folder):
    records = read(folder / "part-*.parquet", "euclidean", columns="2-9")
    assert isinstance(records, RecordBlocks)
    np.testing.assert_array_equal(np.concatenate(list(records.exactly())), ROWS)


REFUSED = {
    "no file": ("none.csv", "shapes", {}, "none.csv: there is no such file"),
    "no header": ("data.csv", "shapes", {"delimiter": ";", "expect_n": 6}, "holds 7 records, not the 6 of expect_n"),
    "an id": ("data.csv", "shapes", {"delimiter": ";", "header": True}, "say with columns which columns make a record"),
    "another name": ("data.npy", "forms", {}, "manifold must be one of euclidean"),
    "no manifold": ("data.npy", 3, {}, "manifold must be a Manifold, or a name such as 'sphere(2)', got 3"),
    "another size": ("data.npy", "shapes", {"size": 5}, "records must be points of shapes(5)"),
    "a size twice": ("data.npy", PlanarShapes(4), {"size": 4}, "size is for names of manifolds"),
    "another manifold": ("data.npy", SPD(3), {}, "data.npy: SPD records must have shape (n, k, k)"),
    "numbers of columns": ("data.npy", "shapes", {"columns": [1, 2]}, "columns must be text, got [1, 2]"),
    "a word for a header": ("data.csv", "shapes", {"header": "yes"}, "header must be True or False, got 'yes'"),
    "nothing between cells": ("data.csv", "shapes", {"delimiter": 5}, "delimiter must be text, got 5"),
    "an option of another name": ("data.npy", "shapes", {"as_": "xyzw"}, "there is no option 'as_'; the layout of"),
    "no template": ("data.npy", "shapes", {"missing": "template"}, "missing template needs template, a file with"),
    "a template of matrices": (
        "data.npy",
        "spd",
        {"template": "template.npy"},
        "template is for manifold euclidean, shapes or",
    ),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_what_is_refused_is_one_sentence_in_keywords(folder, monkeypatch, mistake):
    file, manifold, options, words = REFUSED[mistake]
    monkeypatch.chdir(folder)
    with pytest.raises(InputError) as refused:
        read(file, manifold, **options)
    said = str(refused.value)
    assert words in said and "--" not in said and said.endswith(".") and "\n" not in said, said
    with pytest.raises(InputError, match="^" + said[:4]):
        check(file, manifold, **options)


def test_names_of_files_and_columns_stay_as_they_are():
    assert (
        python_words("a--size/--x.csv: say --expect-n or --columns 3.") == "a--size/--x.csv: say expect_n or columns 3."
    )


def test_check_finds_what_the_command_prints(folder, monkeypatch):
    monkeypatch.chdir(folder)
    own = {"columns": "2-9", "delimiter": ";"}  # the header is forgotten
    result = run("check", "data.csv", "--manifold", "euclidean", "--radius", 2, *as_options(own), "--overwrite")
    seen = check("data.csv", Euclidean(8), GeodesicBall(Euclidean(8), np.zeros(8), 2.0), **own)
    printed = python_words(result.output)
    assert all(line in printed for finding in seen.found for line in finding.text.splitlines())
    body = printed.partition("records on ")[2].splitlines()[1:-1]
    assert [line for finding in seen.found for line in finding.text.splitlines()] == body
    assert {finding.about for finding in seen.found} == {"lines", "points", "distances"}
    assert "say header" in seen.found[0].text and seen.n == 7 and seen.manifold == Euclidean(8)
    np.testing.assert_array_equal(seen.usable, [False, True, True, True, False, True, True])
    np.testing.assert_allclose(seen.distances[1], np.linalg.norm(ROWS[0]), rtol=1e-12)
    np.testing.assert_array_equal(np.isnan(seen.distances), ~seen.usable)


def test_check_without_a_ball_has_no_distances_and_one_elsewhere_is_refused(folder):
    seen = check(folder / "data.npy", "shapes")
    assert seen.found == () and seen.distances is None and seen.radius is None and seen.usable.all()
    with pytest.raises(InputError, match="records on PlanarShapes"):
        check(folder / "data.npy", "shapes", GeodesicBall(Euclidean(2), [0.0, 0.0], 1.0))
