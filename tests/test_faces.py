"""From meshes to a private mean face: processing, mechanisms, the command."""

import json
import stat

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure
from meshes import design_once, work_here
from scipy import stats
from scipy.spatial.transform import Rotation
from strategies import exhaustive
from typer.testing import CliRunner

from jaxgeodp.cli import app
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.meshes.square_root import area
from jaxgeodp.privacy import GaussianDP, Ledger
from jaxgeodp.surfaces import (
    FaceMeanMechanism,
    FaceTemplate,
    Mesh,
    PointwiseGaussian,
    SyntheticFaces,
    face_curves,
    mesh_files,
    process_faces,
    surface_from_curves,
)

GENERATOR = SyntheticFaces(rings=14)
TRIANGLES = GENERATOR.triangles
NOSE, UP = GENERATOR.nose_tip, GENERATOR.nasion
RUNNER = CliRunner()


@pytest.fixture(scope="module")
def people():
    return np.asarray(GENERATOR.records(jax.random.key(5), 4))


@pytest.fixture(scope="module")
def template():
    return FaceTemplate.from_mesh(Mesh(GENERATOR.template, TRIANGLES), NOSE, UP, 16, 40, 8, 32)


def random_curves(n, template, seed=0, size=0.02):
    """Smooth deviations from the template."""
    random = np.random.default_rng(seed)
    t = 2 * np.pi * np.arange(template.curves.shape[1]) / template.curves.shape[1]
    waves = np.stack([np.ones_like(t), np.cos(t), np.sin(t), np.cos(2 * t)])
    return template.curves + size * np.einsum("njcw,wm->njmc", random.normal(size=(n, 8, 3, 4)), waves)


# Processing ------------------------------------------------------------------------------------------------


def test_curves_do_not_depend_on_place_size_and_turn(people, template):
    one = face_curves(Mesh(people[0], TRIANGLES), NOSE, UP, template)
    turn = Rotation.from_rotvec([0.2, -0.3, 0.4]).as_matrix()
    moved = 3.0 * people[0] @ turn.T + np.array([5.0, -2.0, 11.0])
    other = face_curves(Mesh(moved, TRIANGLES), NOSE, UP, template)
    for a, b in zip(one[:4], other[:4], strict=True):
        chex.assert_trees_all_close(a, b, atol=2e-6)
    # Area and centroid are exact on the mesh, and right on the grid as far as that sees it.
    surface = Mesh(one.vertices, TRIANGLES)
    assert surface.area == pytest.approx(1.0, abs=1e-12)
    chex.assert_trees_all_close(surface.centroid, np.zeros(3), atol=1e-12)
    assert float(area(one.grid)) == pytest.approx(1.0, abs=0.03)
    # It is the person, not the template.
    assert np.max(np.abs(one.curves - template.curves)) > 5e-3


def test_the_template_is_its_own_face(template):
    again = face_curves(Mesh(GENERATOR.template, TRIANGLES), NOSE, UP, template)
    chex.assert_trees_all_close(again.curves, template.curves, atol=1e-9)
    chex.assert_trees_all_close(again.grid, template.grid, atol=1e-9)
    assert template.curves.shape == (8, 32, 3)


def test_the_tip_of_the_nose_is_where_it_is(people, template):
    def off(vertices, truth):
        return float(np.linalg.norm(vertices[0] - truth))

    again = face_curves(Mesh(GENERATOR.template, TRIANGLES), NOSE, UP, template)
    vertices, faces = surface_from_curves(template.curves, 2, template)
    assert off(vertices, again.vertices[NOSE]) < 1e-8
    assert faces.max() == len(vertices) - 1
    for person in people[:2]:
        found = face_curves(Mesh(person, TRIANGLES), NOSE, UP, template)
        by_spline, by_template = (surface_from_curves(found.curves, 2, t)[0] for t in (None, template))
        assert off(by_template, found.vertices[NOSE]) < 0.4 * off(by_spline, found.vertices[NOSE])
        # From the first curve on nothing changes.
        chex.assert_trees_all_close(by_template[-64 * 15 :], by_spline[-64 * 15 :], atol=1e-12)
    with pytest.raises(ValueError, match="as the template's"):
        surface_from_curves(template.curves[:4], 2, template)


def test_the_nose_is_in_the_middle_and_the_second_landmark_above(people, template):
    found = face_curves(Mesh(people[1], TRIANGLES), NOSE, UP, template)
    inner = found.curves[0]
    nose = found.vertices[NOSE]
    # The first circle goes around the tip, a quarter turn on it points to the root of the nose.
    distances = np.linalg.norm(found.curves - found.vertices[UP], axis=-1)
    assert abs(int(np.argmin(distances.min(axis=0))) - 8) <= 1
    assert np.linalg.norm((inner.mean(axis=0) - nose)[:2]) < 0.03  # seen from the front


def test_registration_lowers_the_distance_of_normals(people, template):
    from jaxgeodp.meshes.square_root import disk_integral, square_root_field

    def apart(grid):
        difference = square_root_field(grid) - square_root_field(template.grid)
        return float(disk_integral(jnp.sum(difference**2, axis=-1)))

    mesh = Mesh(people[2], TRIANGLES)
    turned, warped = (face_curves(mesh, NOSE, UP, template, ridge) for ridge in (None, 0.1))
    assert apart(warped.grid) < apart(turned.grid)
    assert np.max(np.abs(warped.curves - turned.curves)) > 1e-4


def test_many_faces_are_those_one_by_one_and_are_resumed(people, template, tmp_path):
    meshes = [Mesh(vertices, TRIANGLES) for vertices in people[:2]]
    seen = []
    faces = process_faces(meshes, NOSE, UP, template, keep=tmp_path / "work", workers=1, progress=seen.append)
    assert seen == [0, 1, 2]
    for curves, mesh in zip(faces.curves, meshes, strict=True):
        chex.assert_trees_all_close(curves, face_curves(mesh, NOSE, UP, template).curves, atol=1e-12)
    assert stat.S_IMODE((tmp_path / "work").stat().st_mode) == 0o700, "private"
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "work").glob("*.npz")}
    assert len(stamps) == 2
    again = process_faces([*meshes, Mesh(people[2], TRIANGLES)], NOSE, UP, template, keep=tmp_path / "work", workers=2)
    chex.assert_trees_all_close(again.curves[:2], faces.curves)
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items()), "no face twice"
    chex.assert_trees_all_close(
        again.curves[2], face_curves(Mesh(people[2], TRIANGLES), NOSE, UP, template).curves, atol=1e-12
    )


def write_mesh(path, vertices, faces):
    import trimesh

    trimesh.Trimesh(vertices, faces, process=False).export(path)


def test_a_face_that_cannot_be_processed_counts_as_the_template(people, template, tmp_path):
    write_mesh(tmp_path / "a.ply", people[0], TRIANGLES)
    write_mesh(tmp_path / "b.ply", people[1], TRIANGLES[:20])
    (tmp_path / "c.ply").write_text("nothing")
    (tmp_path / "notes.txt").write_text("no mesh")
    files = mesh_files(tmp_path)
    assert [path.name for path in files] == ["a.ply", "b.ply", "c.ply"]
    faces = process_faces(files, NOSE, UP, template, keep=tmp_path / "work", workers=1)
    assert [bool(np.all(np.isfinite(curves))) for curves in faces.curves] == [True, False, False]
    report = (tmp_path / "work" / "report.csv").read_text().splitlines()
    assert [line.split(",")[:2] for line in report] == [
        ["face", "used"],
        ["a.ply", "yes"],
        ["b.ply", "no"],
        ["c.ply", "no"],
    ]
    assert "not used" in report[2]
    assert "not used" in report[3]
    mechanism = FaceMeanMechanism(template.curves, 0.1)
    replaced = faces.curves.copy()
    replaced[1:] = template.curves
    chex.assert_trees_all_close(np.asarray(mechanism.mean(faces.curves)), np.asarray(mechanism.mean(replaced)))


# Mechanisms ------------------------------------------------------------------------------------------------


def test_the_face_is_released_like_its_coordinates(template):
    data = random_curves(6, template)
    bound, mu = np.array([0.05, 0.06, 0.07]), (0.2, 0.3, 0.4)
    mechanism = FaceMeanMechanism(template.curves, bound, mu, penalty=(0.01, 0.02, 0.03))
    assert mechanism.guarantee.mu == pytest.approx(np.sqrt(8 * (0.04 + 0.09 + 0.16)))
    draws = np.asarray(mechanism.simulate(jax.random.key(1), data, 50))
    assert draws.shape == (50, 8, 32, 3)
    for axis in range(3):
        one = FunctionalGaussianMechanism(
            PeriodicKernel(0.5), (0.01, 0.02, 0.03)[axis], bound[axis], [mu[axis]] * 8, template.curves[..., axis]
        )
        chex.assert_trees_all_close(mechanism.scale(6)[:, axis], one.scale(6))
        chex.assert_trees_all_close(
            np.asarray(mechanism.mean(data))[..., axis], np.asarray(one.mean(data[..., axis])), atol=1e-12
        )
    # The noise of every coordinate has its own scale.
    noise = (draws - np.asarray(mechanism.mean(data))) / mechanism.scale(6)[:, None, :]
    assert noise[:, :, 0].std(axis=(0, 1)) == pytest.approx(np.ones(3), rel=0.2)
    assert stats.kstest(noise[:, :, 5].reshape(-1), stats.norm.cdf).pvalue > 1e-6
    values = [mechanism.log_density(x, data) for x in draws[:2]]
    assert np.all(np.isfinite(values))


def test_budget_of_the_paper():
    curves = np.zeros((23, 80, 3))
    assert FaceMeanMechanism(curves, 1.0).guarantee.mu == pytest.approx(2.9661, abs=5e-5)


def test_records_of_faces_hold_no_data_but_the_value(template):
    mechanism = FaceMeanMechanism(template.curves, 0.1)
    records = []
    for seed in (0, 1):
        release = mechanism.release(random_curves(5, template, seed))
        record = json.loads(release.to_json())
        chex.assert_trees_all_close(np.array(record.pop("value")), release.value)
        record.pop("created")
        records.append(record)
    assert records[0] == records[1]
    assert records[0]["mechanism"] == "FaceMeanMechanism"
    assert records[0]["guarantee"]["kind"] == "gdp"


def test_pointwise_noise_is_gaussian_with_the_stated_scale(template):
    points = template.curves.reshape(-1, 3)
    data = points + 0.02 * np.random.default_rng(0).normal(size=(10, *points.shape))
    data[3, 5, 1], data[4, 6, 2] = np.nan, 1e9
    mechanism = PointwiseGaussian(points, [0.03, 0.04, 0.05], 2.0)
    kept = np.clip(np.where(np.isfinite(data), data - points, 0), -mechanism.half_range, mechanism.half_range)
    draws = np.asarray(mechanism.simulate(jax.random.key(0), data, 40))
    noise = (draws - points - kept.mean(axis=0)) / mechanism.scale(10)
    assert stats.kstest(noise.reshape(-1), stats.norm.cdf).pvalue > 1e-6
    assert stats.kstest(1.1 * noise.reshape(-1), stats.norm.cdf).pvalue < 1e-6
    # One record moves every coordinate by its range over n: mu in all.
    shift = 2 * np.broadcast_to(mechanism.half_range, points.shape) / 10
    assert np.linalg.norm(shift / mechanism.scale(10)) == pytest.approx(2.0)
    assert mechanism.release(data).record["guarantee"]["mu"] == 2.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: FaceMeanMechanism(t.curves[0], 0.1), "shape (J, m, 3)"),
        (lambda t: FaceMeanMechanism(t.curves, [0.1, 0.1]), "one per coordinate"),
        (lambda t: FaceMeanMechanism(t.curves, -1.0), "above 0"),
        (lambda t: FaceMeanMechanism(t.curves, 0.1).release(np.zeros((4, 8, 31, 3))), "shape (n, 8, 32, 3)"),
        (lambda t: FaceMeanMechanism(t.curves, 0.1).release(np.zeros((1, 8, 32, 3))), "n >= 2"),
        (lambda t: PointwiseGaussian(t.curves, 0.1, 1.0), "shape (N, 3)"),
        (lambda t: PointwiseGaussian(t.curves[0], 0.0, 1.0), "above 0"),
        (lambda t: PointwiseGaussian(t.curves[0], 0.1, 1.0).release(np.zeros((4, 5, 3))), "shape (n, 32, 3)"),
        (lambda t: PointwiseGaussian(t.curves[0], 1e308, 1.0).release(np.zeros((4, 32, 3))), "double precision"),
        (lambda t: PointwiseGaussian(t.curves[0], 1e-150, 1.0).release(np.zeros((4, 32, 3))), "double precision"),
        (lambda t: mesh_files("nowhere"), "is not a folder"),
    ],
)
def test_wrong_calls_are_told_in_one_sentence(template, make, message):
    with pytest.raises(ValueError) as refusal:
        make(template)
    assert message in str(refusal.value)


# The command -----------------------------------------------------------------------------------------------


def unpainted_picture(figure, file, **_):
    file.write(b"picture")


@pytest.mark.parametrize("painted", [False, *exhaustive(True)])
def test_a_folder_of_meshes_becomes_a_release(people, tmp_path, monkeypatch, painted):
    design_once(monkeypatch)
    work_here(monkeypatch)
    folder, public, out = tmp_path / "meshes", tmp_path / "public", tmp_path / "out"
    folder.mkdir()
    public.mkdir()
    for j, vertices in enumerate(people[:3]):
        if j < 2:
            write_mesh(folder / f"{j}.obj", vertices, TRIANGLES)
        write_mesh(public / f"{j}.ply", 0.5 * (vertices + people[3]), TRIANGLES)
    write_mesh(tmp_path / "template.ply", GENERATOR.template, TRIANGLES)
    arguments = ["face", str(folder), "--mu", "3", "--template", str(tmp_path / "template.ply"), "--nose", str(NOSE)]
    arguments += ["--up", str(UP), "--reference", str(public), "--force", "--out", str(out)]
    book = Ledger(tmp_path / "budget.db", GaussianDP(4.0))
    arguments[2:2] = ["--ledger", str(book.path)]
    with monkeypatch.context() as unpainted:  # the face is painted below, if at all: it takes longer than all the rest
        unpainted.setattr(Figure, "savefig", unpainted_picture)
        result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    record = json.loads((out / "release.json").read_text())
    assert book.account().releases == 1 and book.account().spent["mu"] == record["guarantee"]["mu"]
    assert record["guarantee"]["mu"] == pytest.approx(3.0)
    assert record["guarantee"]["mu"] <= 3.0
    assert np.array(record["value"]).shape == (23, 80, 3)
    assert sorted(path.name for path in out.iterdir()) == ["expected.png", "face.png", "release.json", "template.png"]
    assert (tmp_path / "meshes-private" / "report.csv").exists()
    assert record["unit"].startswith("one mesh file")
    assert record["preprocessing"]["landmarks"] == {"nose": NOSE, "up": UP, "own": False}
    assert len(record["preprocessing"]["template"]["sha256"]) == 64
    # The picture can be drawn again, and a crash before it costs nothing.
    pictures = []
    if not painted:
        monkeypatch.setattr(Figure, "savefig", unpainted_picture)
    for _ in range(2):
        (out / "face.png").unlink()
        assert RUNNER.invoke(app, ["face", str(out / "release.json")]).exit_code == 0
        pictures.append((out / "face.png").read_bytes())
    assert pictures[0] == pictures[1] and pictures[0].startswith(b"\x89PNG" if painted else b"picture")
    # A record of another name has its own picture, and no file of somebody else is replaced.
    (out / "other.json").write_text((out / "release.json").read_text())
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "face.png").write_text("mine")
    assert RUNNER.invoke(app, ["face", str(out / "other.json")]).exit_code == 0
    assert (out / "other.png").read_bytes() == (out / "face.png").read_bytes()
    for name, folder in (("other.json", out), ("release.json", tmp_path / "elsewhere")):
        result = RUNNER.invoke(app, ["face", str(out / name), "--out", str(folder)])
        assert result.exit_code == 2 and "exists; name another folder" in " ".join(result.output.split())
    assert (tmp_path / "elsewhere" / "face.png").read_text() == "mine"
    # A whole face is one vector, and its release is shrunk: the design that the demo has.
    assert record["mechanism"] == "SurfaceMeanMechanism" and record["directions"]["functions"] == 150
    assert len(record["directions"]["lengths"]) == len(record["post_processing"]["variances"])
    assert record["post_processing"]["name"] == "shrinkage towards the centre, expected over shifts"
    wrong = [
        *arguments[: arguments.index("--up") + 1],
        "99999",
        *arguments[arguments.index("--up") + 2 : -1],
        str(out) + "2",
    ]
    result = RUNNER.invoke(app, wrong)
    assert result.exit_code == 2
    assert "up 99999 is not a vertex of the mesh" in " ".join(result.output.split())
    # What does not fit into the budget is refused before the work.
    result = RUNNER.invoke(app, [*arguments[:-1], str(out) + "2"])
    assert result.exit_code == 2 and "left of its budget" in " ".join(result.output.split())
    assert not (tmp_path / "out2").exists() and not (tmp_path / "out2-private").exists()
    # An existing release is never replaced.
    assert RUNNER.invoke(app, arguments).exit_code == 2


PUBLIC = ["--template", "t.ply", "--nose", "0", "--up", "1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere", *PUBLIC, "--norm-bound", "1"], "is not a folder"),
        ([".", *PUBLIC, "--norm-bound", "1"], "holds no mesh"),
        ([".", *PUBLIC[2:], "--norm-bound", "1"], "needs --template"),
        ([".", *PUBLIC[:2], "--up", "1", "--norm-bound", "1"], "needs --nose"),
        ([".", *PUBLIC[:4], "--norm-bound", "1"], "needs --up"),
        ([".", *PUBLIC, "--reference", "."], "--reference is the folder"),
        ([".", *PUBLIC, "--norm-bound", "rows.csv"], "--norm-bound"),
        ([".", *PUBLIC, "--norm-bound", "0"], "--norm-bound must be"),
        ([".", *PUBLIC, "--norm-bound", "1", "--mu", "0"], "--mu must be"),
        (["demo", "--mu", "2"], "takes no --mu"),
        (["demo", "--norm-bound", "2"], "takes no --norm-bound"),
        (["demo", "--template", "t.ply"], "takes no --template"),
        (["none.json"], "there is no file none.json"),
    ],
)
def test_wrong_commands_are_told_in_one_sentence(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    result = RUNNER.invoke(app, ["face", *arguments])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert not list(tmp_path.iterdir())
