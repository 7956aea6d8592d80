"""Points without triangles: by a template, by their frontal projection, from files, in a folder of faces."""

import chex
import jax
import numpy as np
import pytest

from jaxgeodp.checks import InputError
from jaxgeodp.meshes.files import file_triangles
from jaxgeodp.surfaces import FaceTemplate, Mesh, SyntheticFaces, mesh_from_points, process_faces, read_mesh

GENERATOR = SyntheticFaces(rings=14)
TRIANGLES = GENERATOR.triangles
NOSE, UP = GENERATOR.nose_tip, GENERATOR.nasion


@pytest.fixture(scope="module")
def person():
    return np.asarray(GENERATOR.records(jax.random.key(5), 1)[0], float)


def grid_points(count=20):
    x, y = np.meshgrid(np.linspace(-1, 1, count), np.linspace(-1, 1, count))
    rough = 0.2 / count * np.random.default_rng(0).normal(size=(2, count, count))
    return np.stack([x + rough[0], y + rough[1], 0.3 * x * y], axis=-1).reshape(-1, 3)


def test_points_of_a_face_become_that_face(person):
    shuffled = np.random.default_rng(1).permutation(len(person))
    mesh, report = mesh_from_points(person[shuffled])
    truth = Mesh(person, TRIANGLES)
    assert len(mesh.vertices) > 0.99 * len(person)
    assert mesh.area == pytest.approx(truth.area, rel=0.01)
    assert report.made_triangles == len(mesh.faces) + report.ears
    kept = report.numbering >= 0
    chex.assert_trees_all_equal(mesh.vertices[report.numbering[kept]], person[shuffled][kept])
    # The outside faces the viewer.
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    assert np.all(np.cross(b - a, c - a)[:, 2] > 0)


def test_a_template_gives_its_own_triangles(person):
    mesh, report = mesh_from_points(person, TRIANGLES)
    chex.assert_trees_all_equal(mesh.faces, Mesh(person, TRIANGLES).faces)
    assert report.made_triangles == len(TRIANGLES)


def test_long_edges_are_cut_off_where_the_outline_is_hollow():
    points = grid_points()
    points = points[(points[:, 0] < 0) | (np.abs(points[:, 1]) > 0.4)]  # a bay of 0.8 times 1
    mesh, _ = mesh_from_points(points)
    assert len(mesh.vertices) == len(points)
    bay = 0.8 * 1.0
    flat = points[:, :2][mesh.faces]
    first, second = flat[:, 1] - flat[:, 0], flat[:, 2] - flat[:, 0]
    area = 0.5 * np.sum(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0])
    assert 4.0 - 1.3 * bay < area < 4.0 - 0.7 * bay


def test_an_outlier_is_left_out():
    points = np.concatenate([grid_points(), [[4.0, 0.3, 0.0]]])
    mesh, report = mesh_from_points(points)
    assert report.numbering[-1] == -1
    assert mesh.vertices[:, 0].max() < 1.2


def test_hidden_points_are_left_out():
    front = grid_points()
    hidden = front[np.abs(front[:, :2]).max(axis=1) < 0.3] + [0.02, 0.01, -1.5]
    mesh, report = mesh_from_points(np.concatenate([front, hidden]))
    assert np.all(report.numbering[: len(front)] >= 0)
    assert np.all(report.numbering[len(front) :] == -1)
    assert report.dropped_vertices == len(hidden)
    assert mesh.vertices[:, 2].min() > -0.5


@pytest.mark.parametrize(
    ("points", "template", "sentence"),
    [
        (np.zeros((3, 3)), None, "at least 4 points"),
        (np.zeros((5, 2)), None, r"shape \(V, 3\)"),
        (np.where(np.arange(12).reshape(4, 3) == 7, np.nan, 1.0), None, "vertex 2 is not finite"),
        (np.outer(np.arange(6.0), [1, 2, 3]), None, "lie on a line as seen from the front"),
        (grid_points(), np.array([[0, 1, 400]]), "vertices are numbered from 0 to 399"),
        (
            np.random.default_rng(0).permutation(grid_points(40)),
            np.stack([np.arange(1598), np.arange(1, 1599), np.arange(2, 1600)], axis=1),
            "in the order of the template's vertices",
        ),
    ],
)
def test_wrong_points_are_refused_in_one_sentence(points, template, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        mesh_from_points(points, template)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["cloud.xyz", "cloud.ply", "cloud.obj"])
def test_files_of_points_are_triangulated(person, tmp_path, name):
    import trimesh

    path = tmp_path / name
    if name == "cloud.ply":
        trimesh.PointCloud(person).export(path)
    else:
        start = "v " if name == "cloud.obj" else ""
        path.write_text("".join(f"{start}{x:.9g} {y:.9g} {z:.9g}\n" for x, y, z in person))
    assert file_triangles(path) is None
    seen, _ = read_mesh(path)
    known, report = read_mesh(path, template=TRIANGLES)
    assert seen.area == pytest.approx(Mesh(person, TRIANGLES).area, rel=0.01)
    chex.assert_trees_all_equal(known.faces, Mesh(person, TRIANGLES).faces)
    assert report.made_triangles == len(TRIANGLES)
    # A template of another size is not used.
    other, _ = read_mesh(path, template=SyntheticFaces(rings=12).triangles)
    chex.assert_trees_all_equal(other.faces, seen.faces)


def test_a_folder_may_mix_meshes_and_points(person, tmp_path):
    import trimesh

    template = FaceTemplate.from_mesh(Mesh(GENERATOR.template, TRIANGLES), NOSE, UP, 16, 40, 8, 32)
    trimesh.Trimesh(person, TRIANGLES, process=False).export(tmp_path / "a.ply")
    trimesh.PointCloud(person).export(tmp_path / "b.ply")
    trimesh.PointCloud(person[:-1]).export(tmp_path / "c.ply")
    files = [tmp_path / f"{name}.ply" for name in "abc"]
    assert np.array_equal(file_triangles(files[0]), TRIANGLES)
    own = [None, None, (NOSE, UP)]  # numbered otherwise
    faces = process_faces(files, NOSE, UP, template, workers=1, landmarks=own, triangles=TRIANGLES)
    chex.assert_trees_all_close(faces.curves[1], faces.curves[0], atol=1e-5)
    # Without one point the template does not fit; seen from the front it is nearly the same face.
    assert np.sqrt(np.mean((faces.curves[2] - faces.curves[0]) ** 2)) < 0.01
    assert faces.reports[0].repairs["made_triangles"] == 0
    assert faces.reports[1].repairs["made_triangles"] == len(TRIANGLES)
