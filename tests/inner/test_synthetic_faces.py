"""The generator of faces, and pictures of surfaces."""

import io

import jax
import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from jaxgeodp.checks import InputError
from jaxgeodp.faces.pictures import draw_curves
from jaxgeodp.faces.synthetic import SyntheticFaces, _disk, synthetic_face
from jaxgeodp.meshes.grid import DiskLocator, curve_points, polar_points
from jaxgeodp.meshes.rendering import draw_grid, draw_surface, draw_surfaces, vertex_normals


@pytest.fixture(scope="module")
def generator():
    return SyntheticFaces()


@pytest.fixture(scope="module")
def records(generator):
    return np.asarray(generator.records(jax.random.key(0), 12))


def normals(vertices, faces):
    a, b, c = vertices[faces.T]
    return np.cross(b - a, c - a)


def test_the_mesh_is_an_oriented_disk(generator):
    faces, vertices = generator.triangles, generator.template
    assert vertices.shape == (1 + 3 * 48 * 49, 3) and faces.shape == (6 * 48**2, 3)
    directed = faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2)
    # No directed edge occurs twice: manifold and oriented.
    assert len(np.unique(directed, axis=0)) == len(directed)
    edges, counts = np.unique(np.sort(directed, axis=1), axis=0, return_counts=True)
    assert len(vertices) - len(edges) + len(faces) == 1
    rim = edges[counts == 1]
    assert len(rim) == 6 * 48
    # One loop: every vertex of it has two neighbours, and it closes after all.
    following = {}
    for a, b in directed[np.isin(directed @ [10**6, 1], np.concatenate([rim @ [10**6, 1], rim[:, ::-1] @ [10**6, 1]]))]:
        following[a] = b
    start = at = rim[0, 0]
    for step in range(1, len(rim) + 1):
        at = following[at]
        assert (at == start) == (step == len(rim))


def test_faces_are_finite_different_and_never_folded(generator, records):
    assert records.shape == (12, *generator.template.shape) and np.all(np.isfinite(records))
    for record in records:
        # Height fields over the plane of the picture: all triangles are seen from the front.
        assert np.all(normals(record, generator.triangles)[:, 2] > 0)
    distances = np.sqrt(np.mean(np.sum((records[:, None] - records[None, :]) ** 2, axis=-1), axis=-1))
    others = distances[~np.eye(12, dtype=bool)]
    assert 1.5 < others.min() and others.max() < 25.0
    # They vary around the template.
    many = np.concatenate([generator.records(jax.random.key(seed), 12) for seed in range(1, 9)])  # by one program
    spread = np.sqrt(np.mean(np.sum((many - generator.template) ** 2, axis=-1)))
    assert np.max(np.abs(many.mean(axis=0) - generator.template)) < 0.7 * spread


def test_faces_are_registered(generator, records):
    # Named places stay at the same vertex: the tip stands out, the lips' line is between the lips.
    assert generator.nose_tip == 0
    for face in (generator.template, *records):
        tip, root = face[0], face[generator.nasion]
        assert tip[2] > face[:, 2].max() - 3.0
        assert abs(root[0] - tip[0]) < 6.0 and 30.0 < root[1] - tip[1] < 55.0 and 5.0 < tip[2] - root[2] < 35.0
    template = generator.template
    assert abs(template[generator.nasion, 0]) < 1e-9


def test_the_template_is_symmetric_and_has_the_features_of_a_face(generator):
    template = generator.template
    places = _disk(48)[0]
    locator = DiskLocator(generator.triangles, places)
    points = 0.95 * polar_points(10, 40)
    surface, mirrored = locator.sample(template, points), locator.sample(template, -points.conj())
    np.testing.assert_allclose(surface * [-1, 1, 1], mirrored, atol=0.25)

    def height(x, y):
        near = np.argmin((template[:, 0] - x) ** 2 + (template[:, 1] - y) ** 2)
        return template[near, 2]

    assert height(0, 0) > height(0, 20) > height(0, 40)  # the ridge of the nose
    assert height(0, 0) > height(22, 0) + 15
    assert height(31, 24) > height(16, 40) and height(31, 56) > height(16, 40)  # inner corners lie deep
    assert height(0, -25) < height(0, -30) and height(0, -25) < height(0, -20)  # the lips
    assert height(0, -40) < height(0, -54)  # the chin
    assert height(0, 78) > height(55, 78)


def test_records_depend_on_the_key_and_their_index_alone():
    small = SyntheticFaces(rings=10)
    few = np.asarray(small.records(jax.random.key(5), 3))
    many = np.asarray(small.records(jax.random.key(5), 7))
    np.testing.assert_allclose(few, many[:3], atol=1e-10)
    assert np.max(np.abs(few - np.asarray(small.records(jax.random.key(6), 3)))) > 1.0
    np.testing.assert_allclose(synthetic_face(jax.random.key(5), rings=10), few[0], atol=1e-10)
    np.testing.assert_allclose(small.face(np.zeros(small.size)), small.template)
    still = SyntheticFaces(rings=10, variation=0.0).records(jax.random.key(0), 2)
    np.testing.assert_allclose(still[1], small.template)


def test_the_template_cannot_be_changed_by_accident():
    small = SyntheticFaces(rings=10)
    small.template[:] = 0.0
    small.triangles[:] = 0
    assert np.any(small.template != 0.0) and np.any(small.triangles != 0)


def test_pictures():
    small = SyntheticFaces(rings=16)
    places = _disk(16)[0]
    template, faces = small.template, small.triangles
    locator = DiskLocator(faces, places)
    figure = draw_surfaces([template, 1.1 * template], faces, titles=["one", "two"])
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    assert len(figure.axes) == 4
    axes = Figure().subplots(1, 3)
    collection = draw_surface(axes[0], template, faces, values=template[:, 2])
    assert len(collection.get_paths()) == len(faces)
    draw_grid(axes[1], locator.sample(template, polar_points(8, 20)), "three-quarter")
    draw_curves(axes[2], locator.sample(template, curve_points(6, 20)), (10.0, 5.0))
    # The last drawn triangle is the one nearest to the viewer.
    nearest = template[faces].mean(axis=1)[:, 2].argmax()
    centred = template - template.mean(axis=0)
    np.testing.assert_allclose(collection.get_paths()[-1].vertices[:3], centred[faces[nearest], :2])
    with pytest.raises(InputError, match="view"):
        draw_surface(axes[0], template, faces, "behind")


def test_colours_of_values_can_be_read_off_their_scale():
    """They are hardly shaded; a surface without values is."""
    small, axis = SyntheticFaces(rings=10), Figure().subplots()
    values = np.full(len(small.template), 0.7)
    drawn = draw_surface(axis, small.template, small.triangles, "profile", values=values, limits=(0.0, 1.0))
    parts = drawn.get_facecolor()[:, :3] / matplotlib.colormaps["viridis"](0.7)[:3]
    assert 0.88 < parts.min() < 0.97 and parts.max() <= 1.0 + 1e-9
    shaded = draw_surface(axis, small.template, small.triangles, "profile").get_facecolor()[:, 0]
    assert shaded.min() < 0.7 * shaded.max()


def test_vertex_normals_of_a_plane():
    places, faces = _disk(6)
    flat = np.stack([places.real, places.imag, 0.5 * places.real], axis=1)
    expected = np.array([-0.5, 0.0, 1.0]) / np.sqrt(1.25)
    np.testing.assert_allclose(vertex_normals(flat, faces), np.broadcast_to(expected, flat.shape), atol=1e-12)


def test_wrong_calls_are_refused():
    with pytest.raises(InputError, match="rings"):
        SyntheticFaces(rings=2)
    with pytest.raises(InputError, match="variation"):
        SyntheticFaces(variation=-1.0)
    with pytest.raises(InputError, match="coefficients"):
        SyntheticFaces(rings=10).face(np.zeros(3))
