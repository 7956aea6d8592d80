"""Folders of meshes: orientation, landmarks, what is kept, what custodians are told and others are not."""

import csv
import dataclasses
import datetime
import errno
import html
import json
import os
import pathlib
import re
import shutil
import stat
import time

import chex
import jax
import numpy as np
import pytest
import trimesh
import worker_jobs
from disks import Disk
from matplotlib.figure import Figure
from meshes import design_once, work_here
from strategies import exhaustive
from typer.testing import CliRunner

from jaxgeodp.checks import InputError
from jaxgeodp.cli import app, face_folder
from jaxgeodp.cli.room import PICTURE_ROOM
from jaxgeodp.faces import folder as folder_module
from jaxgeodp.faces.landmarks import Landmarks, read_landmarks
from jaxgeodp.meshes import boundary_newton
from jaxgeodp.privacy import GaussianDP, Ledger, clock
from jaxgeodp.privacy.ledger import add_budget
from jaxgeodp.surfaces import (
    FaceTemplate,
    JointGaussian,
    Mesh,
    SurfaceBasis,
    SurfaceMeanMechanism,
    SyntheticFaces,
    face_curves,
    process_faces,
)
from jaxgeodp.workers import Ended

GENERATOR = SyntheticFaces(rings=10)
TRIANGLES = GENERATOR.triangles
NOSE, UP = GENERATOR.nose_tip, GENERATOR.nasion
RUNNER = CliRunner()


@pytest.fixture(scope="module")
def people():
    return np.asarray(GENERATOR.records(jax.random.key(7), 2))


@pytest.fixture(scope="module")
def template():
    return FaceTemplate.from_mesh(Mesh(GENERATOR.template, TRIANGLES), NOSE, UP, 12, 24, 6, 24)


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    path = tmp_path_factory.mktemp("public") / "template.ply"
    write_mesh(path, GENERATOR.template, TRIANGLES)
    return path


def write_mesh(path, vertices, faces):
    trimesh.Trimesh(vertices, faces, process=False).export(path)


def shuffled(vertices, seed=1):
    """The same surface with other vertex numbers, and the new number of each vertex."""
    order = np.random.default_rng(seed).permutation(len(vertices))
    numbers = np.argsort(order)
    return vertices[order], numbers[TRIANGLES], numbers


def process(sources, template, **options):
    return process_faces(sources, NOSE, UP, template, workers=1, **options)


def report_of(folder):
    return {row["face"]: row for row in csv.DictReader((folder / "report.csv").read_text().splitlines())}


# Orientation and landmarks ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [None, *exhaustive(0.1)])
def test_a_mesh_turned_inside_out_is_the_same_face(people, template, ridge):
    right = face_curves(Mesh(people[0], TRIANGLES), NOSE, UP, template, ridge)
    wrong = face_curves(Mesh(people[0], TRIANGLES[:, ::-1]), NOSE, UP, template, ridge)
    assert (right.inverted, wrong.inverted) == (False, True)
    for a, b in zip(right[:4], wrong[:4], strict=True):
        chex.assert_trees_all_close(a, b, atol=1e-6)
    assert right.distance < 0.03


def test_a_person_seen_in_a_mirror_is_another_face(people, template):
    skewed = people[0] + 4.0 * np.outer(people[0][:, 1] > 0, [1, 0, 0])
    one = face_curves(Mesh(skewed, TRIANGLES), NOSE, UP, template)
    mirrored = face_curves(Mesh(skewed * [-1, 1, 1], TRIANGLES[:, ::-1]), NOSE, UP, template)
    assert not mirrored.inverted
    assert np.max(np.abs(one.curves - mirrored.curves)) > 5e-3


def test_other_numbering_needs_landmarks_of_its_own(people, template, tmp_path):
    vertices, faces, numbers = shuffled(people[0])
    write_mesh(tmp_path / "a.ply", people[0], TRIANGLES)
    write_mesh(tmp_path / "b.ply", vertices, faces)
    write_mesh(tmp_path / "c.stl", people[0], TRIANGLES)
    write_mesh(tmp_path / "d.ply", people[0], TRIANGLES[3:])
    other = SyntheticFaces(rings=9)
    write_mesh(tmp_path / "e.ply", np.asarray(other.template), other.triangles)
    files = sorted(tmp_path.glob("*.*"))
    bare = process(files, template)
    assert [report.used for report in bare.reports] == [True, False, False, False, False]
    for report, words in zip(
        bare.reports[1:], ("not numbered like", "no vertex numbers", "fans|loops", "numbered"), strict=True
    ):
        assert any(word in report.note for word in words.split("|")), report
    places = Landmarks(tuple(people[0][NOSE].tolist()), tuple(people[0][UP].tolist()))
    own = [None, Landmarks(int(numbers[NOSE]), int(numbers[UP])), places, None, None]
    found = process(files, template, landmarks=own)
    assert [report.used for report in found.reports] == [True, True, True, False, False]
    for curves in found.curves[1:3]:
        chex.assert_trees_all_close(curves, found.curves[0], atol=1e-5)
    # Numbers are refused for STL even if they are its own, and so are places off the surface.
    wrong = [None, Landmarks((1e3, 0.0, 0.0), 3), Landmarks(0, 5), None, None]
    notes = [report.note for report in process(files[:3], template, landmarks=wrong[:3]).reports]
    assert "the place of nose is not on the surface" in notes[1]
    assert "no vertex numbers" in notes[2]


def test_where_newton_finds_no_map_the_linear_one_is_taken(people, template, monkeypatch):
    mesh = Mesh(people[0], TRIANGLES)
    usual = face_curves(mesh, NOSE, UP, template)
    linear = face_curves(mesh, NOSE, UP, template, method="linear")
    monkeypatch.setattr(boundary_newton, "STEPS", 0)
    found = face_curves(mesh, NOSE, UP, template)
    assert (usual.map, found.map) == ("newton", "linear")
    chex.assert_trees_all_close(found.curves, linear.curves)
    with pytest.raises(InputError, match="use method='linear'"):
        face_curves(mesh, NOSE, UP, template, method="newton")


def test_landmarks_are_read_from_a_table(tmp_path):
    path = tmp_path / "marks.csv"
    path.write_text("file,nose,up\na.ply,12,13\nb.stl,1.5 -2 3e1,0 0 1\n\n")
    assert read_landmarks(path) == {"a.ply": (12, 13), "b.stl": ((1.5, -2.0, 30.0), (0.0, 0.0, 1.0))}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "first line"),
        ("name,nose,up\n", "first line"),
        ("file,nose,up\n,1,2\n", "line 2"),
        ("file,nose,up\n\xff.ply,1,2\n", "line 2"),
        ("file,nose,up\na.ply,1,2\na.ply,1,2\n", "line 3"),
    ],
)
def test_other_tables_of_landmarks_are_refused(tmp_path, text, message):
    path = tmp_path / "marks.csv"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=message):
        read_landmarks(path)


BAD_LINES = [
    "1",
    "1,secret",
    "1,-2",
    "1,1 2 nan",
    "1,1 2 inf",
    "1,1 2",
    "1,2,3",
    ",",
    '1,"2',
    "1,\xff",
    "1,2\x0b",
    "1,\0",
]


@pytest.mark.parametrize("line", [*BAD_LINES, "1," + "9" * 5000, "1," + "2" * 200_000])
def test_a_line_of_landmarks_spoils_its_own_mesh_only(tmp_path, line):
    path = tmp_path / "marks.csv"
    path.write_text(f"file,nose,up\na.ply,12,13\nb.ply,{line}\nc.ply,14,15\n", encoding="latin-1")
    found = read_landmarks(path)
    assert (found["a.ply"], found["c.ply"], list(found)) == ((12, 13), (14, 15), ["a.ply", "b.ply", "c.ply"])
    assert None in found["b.ply"] or line in ('1,"2', "1,2\x0b")


# What is kept ----------------------------------------------------------------------------------------------


def test_the_report_has_a_column_for_each_thing(people, template, tmp_path):
    files = [tmp_path / "a.ply", tmp_path / "b.ply", tmp_path / "c.ply"]
    write_mesh(files[0], people[0], TRIANGLES)
    write_mesh(files[1], people[1], TRIANGLES[:, ::-1])
    files[2].write_text("nothing")
    basis = SurfaceBasis.of_curves(template.curves, 20)
    mechanism = SurfaceMeanMechanism(template.curves, basis, np.eye(60), 0.005, 1.0)
    faces = process(files, template, keep=tmp_path / "work", mechanism=mechanism)
    rows = report_of(tmp_path / "work")
    assert list(rows["a.ply"])[:8] == "face used distance clipped inverted flips distortion map".split()
    assert {"filled_holes", "ears", "note"} <= rows["a.ply"].keys()
    assert [rows[name]["inverted"] for name in ("a.ply", "b.ply", "c.ply")] == ["no", "yes", ""]
    assert float(rows["a.ply"]["distance"]) == pytest.approx(faces.reports[0].distance, rel=1e-3)
    deviation = (faces.curves[0] - template.curves).reshape(-1, 3)
    length = np.linalg.norm((basis.functions * basis.weights[:, None]).T @ deviation)
    assert length > 0.005
    assert float(rows["a.ply"]["clipped"]) == pytest.approx(1.0 - 0.005 / length, rel=1e-3)
    assert rows["c.ply"]["clipped"] == ""
    assert (rows["c.ply"]["used"], rows["c.ply"]["flips"]) == ("no", "")
    for path in (tmp_path / "work").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_only_what_would_happen_again_is_kept(people, template, tmp_path, monkeypatch):
    path = tmp_path / "a.ply"
    write_mesh(path, people[0], TRIANGLES)

    def fail(*_, **__):
        raise MemoryError("for now")

    with monkeypatch.context() as patch:
        patch.setattr(folder_module, "face_curves", fail)
        first = process([path], template, keep=tmp_path / "work")
    assert "MemoryError: for now" in first.reports[0].note
    second = process([path], template, keep=tmp_path / "work")
    assert second.reports[0].used
    kept = next((tmp_path / "work").glob("*.npz"))
    kept.write_bytes(kept.read_bytes()[:100])
    third = process([path], template, keep=tmp_path / "work")
    chex.assert_trees_all_close(third.curves, second.curves)
    # Another version, template or ending of the name is another face; a kept one is not done again.
    monkeypatch.setattr(folder_module, "face_curves", fail)
    assert process([path], template, keep=tmp_path / "work").reports[0].used
    renamed = path.rename(tmp_path / "a.off")
    assert not process([renamed], template, keep=tmp_path / "work").reports[0].used
    renamed.rename(path)
    monkeypatch.setattr(folder_module, "__version__", "next")
    assert not process([path], template, keep=tmp_path / "work").reports[0].used


def test_what_a_mesh_lacks_is_kept(template, tmp_path):
    path = tmp_path / "a.ply"
    path.write_text("nothing")
    process([path], template, keep=tmp_path / "work")
    assert len(list((tmp_path / "work").glob("*.npz"))) == 1


def test_a_file_that_cannot_be_read_counts_as_the_template(people, template, tmp_path):
    write_mesh(tmp_path / "a.ply", people[0], TRIANGLES)
    missing = tmp_path / "b.ply"
    missing.symlink_to(tmp_path / "nowhere.ply")
    faces = process([tmp_path / "a.ply", missing, tmp_path], template, keep=tmp_path / "work")
    assert [report.used for report in faces.reports] == [True, False, False]


def giant(path):
    """A file of a terabyte that takes no room."""
    path.touch()
    os.truncate(path, 2**40)


def test_a_giant_file_spoils_its_own_mesh_only(people, template, tmp_path):
    write_mesh(tmp_path / "a.ply", people[0], TRIANGLES)
    giant(tmp_path / "z.obj")
    files, begun = sorted(tmp_path.glob("*.*")), time.monotonic()
    faces = process(files, template, keep=tmp_path / "work")
    assert [report.used for report in faces.reports] == [True, False]
    assert "not used" in faces.reports[1].note and "more than 512 MiB" in faces.reports[1].note
    assert time.monotonic() - begun < 60, "nothing of it is read: a terabyte takes at least ten minutes"


def test_a_name_that_no_file_can_have_spoils_its_own_mesh_only(people, template, tmp_path):
    write_mesh(tmp_path / "a.ply", people[0], TRIANGLES)
    faces = process([tmp_path / "a.ply", tmp_path / "b\0.ply"], template, keep=tmp_path / "work")
    assert [report.used for report in faces.reports] == [True, False]


def test_a_name_that_is_no_text_is_escaped_in_the_report(people, template, tmp_path):
    path = tmp_path / os.fsdecode(b"j\xff.ply")
    try:
        write_mesh(path, people[0], TRIANGLES)
    except (OSError, UnicodeError):
        pytest.skip("this file system has no such names")
    assert process([path], template, keep=tmp_path / "work").reports[0].used
    assert report_of(tmp_path / "work")["j\\udcff.ply"]["used"] == "yes"


def test_what_is_kept_is_found_without_reading_a_file_at_once(people, template, tmp_path, monkeypatch):
    path = tmp_path / "a.ply"
    write_mesh(path, people[0], TRIANGLES)
    process([path], template, keep=tmp_path / "work")
    monkeypatch.setattr(pathlib.Path, "read_bytes", lambda _: pytest.fail("all of a file in the memory of the caller"))
    monkeypatch.setattr(folder_module, "face_curves", lambda *_: pytest.fail("done twice"))
    assert process([path], template, keep=tmp_path / "work").reports[0].used


def test_which_vertices_there_are_depends_on_no_mesh(people, template, tmp_path, monkeypatch):
    """They are released: with those of a mesh that has others, and of one that is unusable, as NaN."""
    used, missing, size = Mesh(people[0], TRIANGLES), tmp_path / "none.ply", len(people[0])
    finer = _with_a_point_in_a_triangle(people[1], TRIANGLES)
    faces = process([used, missing, finer], template, landmarks=[None, None, (NOSE, UP)])
    assert [report.used for report in faces.reports] == [True, False, True]
    assert faces.vertices.shape == (3, size, 3)
    assert np.all(np.isfinite(faces.vertices[0])) and np.all(np.isnan(faces.vertices[1:]))
    released = JointGaussian(np.zeros((size, 3)), 1.0, 1.0).release(faces.vertices)
    assert released.record["n"] == 3 and np.all(np.isfinite(released.value))
    assert process([used], dataclasses.replace(template, numbering=None)).vertices is None
    monkeypatch.setattr(folder_module, "MOST_BYTES", 24 * size)
    assert process([used], template).vertices is not None
    assert process([used, missing], template).vertices is None


def _with_a_point_in_a_triangle(vertices, faces):
    a, b, c = faces[0]
    more = np.array([[a, b, len(vertices)], [b, c, len(vertices)], [c, a, len(vertices)]])
    return Mesh(np.concatenate([vertices, [vertices[faces[0]].mean(axis=0)]]), np.concatenate([faces[1:], more]))


def test_folders_of_others_are_left_alone(people, template, tmp_path):
    foreign = tmp_path / "shared"
    foreign.mkdir(mode=0o755)
    (foreign / "notes.txt").write_text("mine")
    before = stat.S_IMODE(foreign.stat().st_mode)
    with pytest.raises(InputError, match="nor a folder of processed faces"):
        process([Mesh(people[0], TRIANGLES)], template, keep=foreign)
    assert stat.S_IMODE(foreign.stat().st_mode) == before
    assert [path.name for path in foreign.iterdir()] == ["notes.txt"]


def test_calls_without_meshes_or_with_too_few_landmarks_are_refused(people, template):
    with pytest.raises(InputError, match="sources is empty"):
        process([], template)
    with pytest.raises(InputError, match="landmarks must have 1"):
        process([Mesh(people[0], TRIANGLES)], template, landmarks=[])


@pytest.mark.parametrize(
    ("grid", "curves", "message"),
    [
        (np.zeros((3, 3)), np.ones(2), r"grid must have shape"),
        (np.zeros((4, 7, 3)), np.ones((2, 8, 3)), r"grid must have shape"),
        (np.zeros((4, 8, 3)), np.ones((2, 8)), r"curves must have shape"),
        (np.full((4, 8, 3), np.nan), np.ones((2, 8, 3)), "must be finite"),
        (np.zeros((4, 8, 3)), np.ones((2, 8, 3)), "must have area 1"),
    ],
)
def test_other_templates_are_refused(grid, curves, message):
    with pytest.raises(InputError, match=message):
        FaceTemplate(grid, curves)


# The command -----------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def designed_once(monkeypatch):
    design_once(monkeypatch)


def call(folder, public, *more):
    arguments = ["face", str(folder), "--template", str(public), "--nose", str(NOSE), "--up", str(UP), *map(str, more)]
    result = RUNNER.invoke(app, arguments)
    return result.exit_code, " ".join(result.output.split())


@pytest.fixture
def here(monkeypatch):
    work_here(monkeypatch)


@pytest.fixture
def undrawn(monkeypatch):
    paint_nothing(monkeypatch)


def paint_nothing(monkeypatch):
    """Pictures are written without being painted, which takes longer than all the rest of a call."""
    monkeypatch.setattr(Figure, "savefig", lambda figure, file, **_: file.write(b"picture"))


@pytest.fixture
def meshes(people, tmp_path):
    return write_meshes(people, tmp_path)


def write_meshes(people, parent):
    folder = parent / "meshes"
    folder.mkdir()
    write_mesh(folder / "a.ply", people[0], TRIANGLES)
    write_mesh(folder / "b.stl", people[1], TRIANGLES)
    return folder


START = "2026-01-01T00:00+00:00"


def release_again(folder, public):
    """Release the faces of the folder's meshes: what is said. The clock stands still."""
    out = folder / "out"
    for path in out.iterdir() if out.exists() else ():
        path.unlink()
    with pytest.MonkeyPatch.context() as patch:
        design_once(patch)
        work_here(patch)
        paint_nothing(patch)
        patch.setattr(clock, "now", lambda: START)
        return call(folder / "meshes", public, "--norm-bound", 1e-4, "--force", "--out", out)


@pytest.fixture(scope="module")
def released(people, public, tmp_path_factory):
    """A folder of meshes and of their release, what was said, and the state of all files then."""
    folder = tmp_path_factory.mktemp("released")
    write_meshes(people, folder)
    said = release_again(folder, public)
    return folder, said, {path.relative_to(folder): path.stat() for path in folder.rglob("*")}


def test_public_parameters_that_make_garbage_are_refused_before_the_work(meshes, public, tmp_path):
    code, text = call(meshes, public, "--norm-bound", 1e-4, "--numerics", "exact")
    assert code == 2 and "numerics must be 'idealized' or 'grid'" in text
    code, text = call(meshes, public, "--norm-bound", 20, "--out", tmp_path / "out")
    assert code == 2 and "(n = 2): the release would hardly differ from the public centre" in text and "--force" in text
    inside = meshes / "template.ply"
    inside.write_bytes(public.read_bytes())
    code, text = call(meshes, inside, "--norm-bound", 1e-4)
    assert code == 2 and "--template lies in the folder of the private faces" in text
    link = tmp_path / "link.ply"
    link.symlink_to(inside)
    code, text = call(meshes, link, "--norm-bound", 1e-4)
    assert code == 2 and "--template lies in the folder of the private faces" in text
    marks = tmp_path / "marks.csv"
    marks.write_text("file,nose,up\nx.ply,1,2\n")
    code, text = call(meshes, public, "--norm-bound", 1e-4, "--landmarks", marks)
    assert code == 2 and "--landmarks names 'x.ply'" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.ply", "marks.csv", "meshes"]


def test_a_reference_of_private_faces_is_refused_by_its_paths(meshes, public, tmp_path, monkeypatch):
    """Their mean is published: a folder below, a link to it, a link among public ones, and a link the other way."""
    monkeypatch.setattr(folder_module, "processed", lambda *_: pytest.fail("work"))
    below = meshes / "below"
    below.mkdir()
    shutil.copy(public, below / "x.ply")
    (tmp_path / "link").symlink_to(below)
    mixed, open_faces = tmp_path / "mixed", tmp_path / "open"
    for folder in (mixed, open_faces):
        folder.mkdir()
        shutil.copy(public, folder / "x.ply")
    (mixed / "y.ply").symlink_to(meshes / "a.ply")
    for reference in (below, tmp_path / "link", mixed):
        code, text = call(meshes, public, "--reference", reference, "--force")
        assert code == 2 and "is one of the private faces" in text, reference
    hard = tmp_path / "hard"
    hard.mkdir()
    (hard / "x.ply").hardlink_to(meshes / "a.ply")
    code, text = call(meshes, public, "--reference", hard, "--force")
    assert code == 2 and "is one of the private faces" in text
    code, text = call(meshes, hard / "x.ply", "--force")
    assert code == 2 and "name a public mesh outside it" in text
    (meshes / "z.ply").symlink_to(open_faces / "x.ply")
    code, text = call(meshes, public, "--reference", open_faces, "--force")
    assert code == 2 and "is one of the private faces" in text
    assert not (tmp_path / "meshes-private").exists()


@pytest.mark.parametrize(("numerics", "option"), [("idealized", "--force"), *exhaustive(("grid", "--prepare"))])
def test_noise_that_cannot_be_drawn_is_refused_before_anything_is_written(meshes, public, tmp_path, numerics, option):
    options = ["--norm-bound", 1e-4, "--numerics", numerics, "--out", tmp_path / "out", option]
    code, text = call(meshes, public, "--mu", 1e15, *options)
    assert code == 2 and "below the rounding error" in " ".join(text.split())
    assert [path.name for path in tmp_path.iterdir()] == ["meshes"]


def write_points(path, vertices):
    path.write_text("".join(f"{x:.9g} {y:.9g} {z:.9g}\n" for x, y, z in vertices))


def test_a_reference_may_be_of_points_as_the_faces_may(people, meshes, public, tmp_path, monkeypatch, here):
    """They take the template's triangles."""
    reference = tmp_path / "reference"
    reference.mkdir()
    for number, vertices in enumerate(np.asarray(GENERATOR.records(jax.random.key(9), 3))):
        write_points(reference / f"{number}.xyz", vertices)
    code, text = call(meshes, public, "--reference", reference, "--prepare")
    assert code == 0 and "Nothing is released" in text, text
    other = reference.rename(tmp_path / "other")
    write_points(other / "0.xyz", people[0][:-1])
    code, text = call(meshes, public, "--reference", other, "--prepare")
    assert code == 2 and "0.xyz is not used" in text and "number its vertices like the template" in text
    assert "landmarks of its own" not in text and ".;" not in text


@pytest.mark.parametrize(
    ("out", "work", "message"),
    [
        ("full", "work", "is not an empty folder"),
        ("file/below", "work", "Not a directory"),
        ("out", "full", "nor a folder of processed faces"),
        ("out", "out/private", "must lie outside --out"),
        ("work/out", "work", "must lie outside --out"),
        ("out", "meshes", "differ from the folder of the faces"),
    ],
)
def test_folders_are_refused_before_the_work(meshes, public, tmp_path, out, work, message, monkeypatch):
    monkeypatch.setattr(folder_module, "processed", lambda *_: pytest.fail("work"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    (tmp_path / "file").touch()
    options = ["--norm-bound", 1e-4, "--force", "--out", tmp_path / out, "--work", tmp_path / work]
    code, text = call(meshes, public, *options)
    assert code in (1, 2) and message in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "full", "meshes"]


def test_prepare_then_mend_then_release_into_the_current_folder(people, meshes, public, tmp_path, monkeypatch, here):
    empty = tmp_path / "here"
    empty.mkdir()
    monkeypatch.chdir(empty)
    code, text = call(meshes, public, "--prepare", "--norm-bound", 1e-4)
    assert code == 0 and "Nothing is released" in text
    assert "Expect an error of" in text, "it is public, and says whether the work is worth it"
    assert not list(empty.iterdir())
    private = tmp_path / "meshes-private"
    rows = report_of(private)
    assert [rows[name]["used"] for name in ("a.ply", "b.stl")] == ["yes", "no"]
    kept = set(private.glob("*.npz"))
    marks = tmp_path / "marks.csv"
    places = [" ".join(map(repr, people[1][k].tolist())) for k in (NOSE, UP)]
    marks.write_text(f"file,nose,up\nb.stl,{places[0]},{places[1]}\n")
    ledger = add_budget(tmp_path / "budget.ledger", GaussianDP(5.0), "faces")
    options = ["--norm-bound", 1e-4, "--force", "--landmarks", marks, "--out", ".", "--numerics", "grid"]
    code, text = call(meshes, public, *options, "--ledger", ledger.path, "--dataset", "faces")
    assert code == 2 and "ZeroConcentratedDP" in text, "other conversions are refused before the work"
    assert set(private.glob("*.npz")) == kept
    code, text = call(meshes, public, *options)
    assert code == 0, text
    for name, views in (("face.png", (3, 1)), ("template.png", (3, 2))):
        header = (empty / name).read_bytes()[16:24]
        width, height = (int.from_bytes(header[k : k + 4], "big") for k in (0, 4))
        assert width / height == pytest.approx(views[0] / (1.1 * views[1]), rel=0.02), "views in a row, a row a face"
    assert (empty / "face.png").stat().st_size < PICTURE_ROOM
    promised = json.loads((empty / "release.json").read_text())["guarantee"]
    assert promised["kind"] == "zcdp" and 4.4 < promised["rho"] < 4.5 + 1e-9
    assert {row["used"] for row in report_of(private).values()} == {"yes"}
    assert len(set(private.glob("*.npz")) - kept) == 1, "only what was mended is done again"
    assert sorted(path.name for path in empty.iterdir()) == ["expected.png", "face.png", "release.json", "template.png"]


def test_a_full_disk_is_told_before_the_first_mesh(meshes, public, tmp_path, monkeypatch, undrawn):
    ledger = add_budget(tmp_path / "budget.ledger", GaussianDP(5.0), "faces")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    options = ["--norm-bound", 1e-4, "--force", "--out", tmp_path / "out"]
    code, text = call(meshes, public, *options, "--ledger", ledger.path, "--dataset", "faces")
    assert code == 1 and "No space left on device" in text
    assert ledger.account().releases == 0 and not list((tmp_path / "meshes-private").glob("*.npz"))
    assert [path.name for path in sorted((tmp_path / "out").iterdir())] == ["expected.png", "template.png"]
    monkeypatch.setattr(face_folder, "draw_faces", full)  # nothing at all can be written
    code, text = call(meshes, public, *options[:-1], tmp_path / "other", "--ledger", ledger.path, "--dataset", "faces")
    assert code == 1 and "No space left on device" in text and not (tmp_path / "other").exists()


def test_a_face_has_room_for_its_picture_before_its_charge(meshes, public, tmp_path, monkeypatch, here, undrawn):
    """Somebody else takes what is left of the disk, as soon as the release is charged."""
    ledger = add_budget(tmp_path / "budget.ledger", GaussianDP(5.0), "faces")
    disk, charge = Disk(monkeypatch, 2**30), Ledger.charge

    def charged(*arguments, **options):
        entry = charge(*arguments, **options)
        disk.left = 0
        return entry

    monkeypatch.setattr(Ledger, "charge", charged)
    options = ["--norm-bound", 1e-4, "--force", "--out", tmp_path / "out", "--ledger", ledger.path]
    code, text = call(meshes, public, *options, "--dataset", "faces")
    assert code == 0 and ledger.account().releases == 1, text
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["expected.png", "face.png", "release.json", "template.png"]


def test_programs_of_the_shapes_of_meshes_are_not_kept(meshes, public, monkeypatch):
    seconds = []

    def process(*_):
        seconds.append(jax.config.values["jax_persistent_cache_min_compile_time_secs"])
        raise InputError("enough")

    monkeypatch.setattr(face_folder, "process_faces", process)
    code, text = call(meshes, public, "--prepare", "--norm-bound", 1e-4)
    assert code == 2 and text.endswith("Error: enough")
    assert seconds == [float("inf")]


def test_nothing_said_depends_on_the_landmarks_of_one_person(people, meshes, public, tmp_path, here):
    marks, found = tmp_path / "marks.csv", []
    places = [" ".join(map(repr, people[1][k].tolist())) for k in (NOSE, UP)]
    for line, used in ((",".join(places), "yes"), (f"{places[0]},0 0 nan", "no")):
        marks.write_text(f"file,nose,up\nb.stl,{line}\n")
        found.append(call(meshes, public, "--prepare", "--norm-bound", 1e-4, "--landmarks", marks))
        row = report_of(tmp_path / "meshes-private")["b.stl"]
        assert row["used"] == used and (used == "yes") == (row["note"] == ""), row
    assert set(found) == {(0, found[0][1])} and "b.stl" not in found[0][1]


@pytest.mark.parametrize(
    "change", [lambda path: path.write_bytes(b"no mesh"), *exhaustive(giant)], ids=["no mesh", "giant"]
)
def test_nothing_said_depends_on_a_mesh(released, public, change):
    folder, said, _ = released
    change(folder / "meshes" / "a.ply")
    assert release_again(folder, public) == said and said[0] == 0


def test_what_is_published_states_the_time_of_the_start(released):
    """Copies carry the time of the last change along, of folders, too; it would tell how long the meshes took."""
    _, (code, text), states = released
    wanted = int(datetime.datetime.fromisoformat(START).timestamp()) * 10**9
    assert code == 0, text
    out = pathlib.Path("out")
    published = {path.name: state for path, state in states.items() if path.parent == out}
    assert {state.st_atime_ns for state in published.values()} == {wanted}, "archives may hold that, too"
    stated = {name: state.st_mtime_ns for name, state in {"out": states[out], **published}.items()}
    assert stated == dict.fromkeys(("out", "release.json", "face.png", "template.png", "expected.png"), wanted)
    assert states[pathlib.Path("meshes-private", "report.csv")].st_mtime_ns > wanted


def test_private_meshes_are_given_to_other_processes(meshes, public, tmp_path, monkeypatch):
    """Where there is one core, too."""

    def ended(owner, function, jobs, workers):
        return ((number, Ended(-9), None) for number, _ in enumerate(jobs))

    monkeypatch.setattr(folder_module.os, "cpu_count", lambda: 1)
    monkeypatch.setattr(folder_module, "processed_face", lambda *_: pytest.fail("the work is done by the caller"))
    monkeypatch.setattr(folder_module, "in_processes", ended)
    code, text = call(meshes, public, "--prepare", "--norm-bound", 1e-4)
    assert code == 0 and "Nothing is released" in text
    rows = report_of(tmp_path / "meshes-private").values()
    assert all("the system ended the process" in row["note"] for row in rows)


@pytest.mark.exhaustive  # the same with processes; test_workers.py has them
def test_private_meshes_are_not_processed_by_the_command_itself(meshes, public, tmp_path, monkeypatch):
    """Where there is one core, too: the system may end the process that works on a mesh."""
    monkeypatch.setattr(folder_module.os, "cpu_count", lambda: 1)
    monkeypatch.setattr(folder_module, "processed_face", worker_jobs.die_unless_in_the_parent)
    code, text = call(meshes, public, "--prepare", "--norm-bound", 1e-4)
    assert code == 0 and "Nothing is released" in text
    rows = report_of(tmp_path / "meshes-private").values()
    assert all("the system ended the process" in row["note"] for row in rows)


def test_a_page_tells_the_numbers_of_vertices(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    unused = np.concatenate([[[9.0, 9.0, 9.0]], GENERATOR.template])  # numbers of the file, not of the mended mesh
    trimesh.Trimesh(unused, np.asarray(TRIANGLES) + 1, process=False).export("t.ply")
    result = RUNNER.invoke(app, ["face", "pick", "--template", "t.ply"])
    assert result.exit_code == 0, result.output
    text = (tmp_path / "t-vertices.html").read_text()
    mesh = json.loads(html.unescape(re.search('data-mesh="([^"]*)"', text)[1]))
    assert len(mesh["v"]) == len(mesh["n"]) == len(GENERATOR.template) and len(mesh["t"]) == len(TRIANGLES)
    shown = np.array(mesh["v"])[mesh["n"].index(NOSE + 1)] - np.array(mesh["v"])[mesh["n"].index(UP + 1)]
    size = np.max(np.ptp(GENERATOR.template, axis=0))
    np.testing.assert_allclose(shown, (GENERATOR.template[NOSE] - GENERATOR.template[UP]) / size, atol=3e-5)
    assert RUNNER.invoke(app, ["face", "pick", "--template", "t.ply"]).exit_code == 2, "it exists"
    assert RUNNER.invoke(app, ["face", "pick"]).exit_code == 2
    for more, words in ((["t.ply", "--numerics", "grid"], "takes no --numerics"), (["t.stl"], "does not number")):
        result = RUNNER.invoke(app, ["face", "pick", "--template", *more])
        assert result.exit_code == 2 and words in " ".join(result.output.split())
