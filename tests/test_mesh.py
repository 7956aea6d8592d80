"""Meshes: what is accepted, how each defect is named, repair, and files."""

import numpy as np
import pytest
from meshes import bent_disk, flat_disk, same_triangles

from jaxgeodp.checks import InputError
from jaxgeodp.meshes.files import read_mesh
from jaxgeodp.meshes.mesh import Mesh
from jaxgeodp.meshes.repair import repair


def without(faces, *numbers):
    return np.delete(faces, numbers, axis=0)


def around(faces, vertex):
    """Numbers of the triangles of a vertex."""
    return np.flatnonzero(np.any(faces == vertex, axis=1))


# What a mesh knows ----------------------------------------------------------------------------------------------


def test_measures_of_a_flat_disk():
    vertices, faces = flat_disk(6, jitter=0.2)
    mesh = Mesh(vertices + np.array([1.0, 2.0, 3.0]), faces)
    corners = 36
    assert mesh.area == pytest.approx(corners / 2 * np.sin(2 * np.pi / corners), rel=1e-12)
    np.testing.assert_allclose(mesh.centroid, [1.0, 2.0, 3.0], atol=1e-12)
    np.testing.assert_allclose(mesh.boundary_lengths, 2 * np.sin(np.pi / corners), rtol=1e-12)
    np.testing.assert_allclose(mesh.angles.sum(axis=1), np.pi, rtol=1e-12)
    np.testing.assert_allclose(np.tan(mesh.angles) * mesh.cotangents, 1.0, rtol=1e-9)


def test_boundary_runs_counter_clockwise_and_interior_is_the_rest():
    vertices, faces = flat_disk(4)
    mesh = Mesh(vertices, faces)
    place = vertices[mesh.boundary, 0] + 1j * vertices[mesh.boundary, 1]
    np.testing.assert_allclose(np.roll(place, -1) / place, np.exp(2j * np.pi / 24), atol=1e-12)
    np.testing.assert_allclose(np.abs(place), 1.0)
    assert mesh.boundary[0] == mesh.boundary.min()
    assert sorted([*mesh.boundary, *mesh.interior]) == list(range(len(vertices)))


def test_mesh_is_a_private_copy():
    vertices, faces = flat_disk(3)
    mesh = Mesh(vertices, faces)
    vertices[:], faces[:] = np.nan, 0
    assert np.all(np.isfinite(mesh.vertices)) and mesh.faces.max() > 0
    for array in (mesh.vertices, mesh.faces, mesh.boundary, mesh.areas):
        with pytest.raises(ValueError):
            array[0] = 0


# How defects are named ------------------------------------------------------------------------------------------


def not_finite():
    vertices, faces = flat_disk(3)
    vertices[5, 1] = np.inf
    return vertices, faces


def out_of_range():
    vertices, faces = flat_disk(3)
    faces[4, 2] = len(vertices)
    return vertices, faces


def negative_index():
    vertices, faces = flat_disk(3)
    faces[7, 0] = -1
    return vertices, faces


def repeated_corner():
    vertices, faces = flat_disk(3)
    faces[9] = faces[9][[0, 1, 0]]
    return vertices, faces


def repeated_triangle():
    vertices, faces = flat_disk(3)
    return vertices, np.concatenate([faces, [faces[2][[2, 1, 0]]]])


def no_area():
    vertices, faces = flat_disk(3)
    a, b, c = faces[11]
    vertices[a] = (vertices[b] + vertices[c]) / 2
    return vertices, faces


def same_place():
    vertices, faces = flat_disk(3)
    extra = faces.copy()
    extra[around(faces, 0)[0]] = np.where(faces[around(faces, 0)[0]] == 0, len(vertices), faces[around(faces, 0)[0]])
    return np.concatenate([vertices, vertices[:1]]), extra


def unused_vertex():
    vertices, faces = flat_disk(3)
    return np.concatenate([vertices, [[0.0, 0.0, 9.0]]]), faces


def three_triangles_at_an_edge():
    """The edge of vertices 0 and 1."""
    vertices, faces = flat_disk(3)
    return np.concatenate([vertices, [[0.0, 0.0, 9.0]]]), np.concatenate([faces, [[1, 0, len(vertices)]]])


def two_fans(tip):
    """Two disks that touch at a vertex."""
    vertices, faces = flat_disk(3)
    numbers = np.concatenate([np.arange(tip), [-1], np.arange(tip, len(vertices) - 1)]) + len(vertices)
    numbers[tip] = tip
    lifted = np.delete(vertices + np.array([0.0, 0.0, 5.0]), tip, axis=0)
    return np.concatenate([vertices, lifted]), np.concatenate([faces, numbers[faces]])


def two_inner_fans():
    return two_fans(0)


def two_fans_on_the_boundary():
    return two_fans(36)


def turned_triangle():
    vertices, faces = flat_disk(3)
    faces[6] = faces[6][::-1]
    return vertices, faces


def two_parts():
    vertices, faces = flat_disk(3)
    return np.concatenate([vertices, vertices + 5.0]), np.concatenate([faces, faces + len(vertices)])


def closed_surface():
    vertices = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], float)
    return vertices, np.array([[0, 1, 2], [0, 3, 1], [0, 2, 3], [1, 3, 2]])


def annulus():
    vertices, faces = flat_disk(4)
    return vertices[1:], without(faces, *around(faces, 0)) - 1


def handle():
    """A torus without two triangles."""
    n = 5
    i, j = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    u, v = 2 * np.pi * i.ravel() / n, 2 * np.pi * j.ravel() / n
    vertices = np.stack([(2 + np.cos(v)) * np.cos(u), (2 + np.cos(v)) * np.sin(u), np.sin(v)], axis=1)

    def number(a, b):
        return (a % n) * n + b % n

    a, b = i.ravel(), j.ravel()
    lower = np.stack([number(a, b), number(a + 1, b), number(a + 1, b + 1)], axis=1)
    upper = np.stack([number(a, b), number(a + 1, b + 1), number(a, b + 1)], axis=1)
    return vertices, np.concatenate([lower, upper])[1:]


def strip_with_one_side():
    turns = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    width = np.array([-0.3, 0.0, 0.3])[:, None]
    x = (1 + width * np.cos(turns / 2)) * np.cos(turns)
    y = (1 + width * np.cos(turns / 2)) * np.sin(turns)
    z = width * np.sin(turns / 2)
    vertices = np.stack([x, y, z], axis=2).reshape(-1, 3)
    faces = []
    for row in range(2):
        for k in range(12):
            lower, upper = row * 12 + k, (row + 1) * 12 + k
            next_lower, next_upper = (lower + 1, upper + 1) if k < 11 else ((2 - row) * 12, (1 - row) * 12)
            faces += [[lower, next_lower, next_upper], [lower, next_upper, upper]]
    return vertices, np.array(faces)


DEFECTS = [
    (not_finite, r"vertex 5 is not finite"),
    (out_of_range, r"triangle 4 refers to vertex 37, .* 0 to 36"),
    (negative_index, r"triangle 7 refers to vertex -1"),
    (repeated_corner, r"triangle 9 uses a vertex twice"),
    (repeated_triangle, r"triangles 2 and 54 have the same corners"),
    (no_area, r"triangle 11 has no area"),
    (same_place, r"vertices 0 and 37 coincide"),
    (unused_vertex, r"vertex 37 belongs to no triangle"),
    (three_triangles_at_an_edge, r"edge of vertices 0 and 1 belongs to 3 triangles"),
    (two_inner_fans, r"triangles around vertex 0 form several fans"),
    (two_fans_on_the_boundary, r"triangles around vertex 36 form several fans"),
    (turned_triangle, r"triangles (6 and \d+|\d+ and 6) share an edge but have opposite orientations"),
    (two_parts, r"2 parts, with vertices 0 and 37 in different ones"),
    (closed_surface, r"closed and has no boundary"),
    (annulus, r"2 boundary loops instead of one, vertex 0 lies on the shortest"),
    (handle, r"1 handles \(Euler characteristic -1"),
    (strip_with_one_side, r"opposite orientations"),
]


@pytest.mark.parametrize(("build", "sentence"), DEFECTS, ids=[build.__name__ for build, _ in DEFECTS])
def test_each_defect_is_named_in_one_sentence(build, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        Mesh(*build())
    text = str(caught.value)
    assert text.startswith("Mesh: ") and text.endswith(".") and "\n" not in text and "; " in text


@pytest.mark.parametrize(
    ("vertices", "faces", "sentence"),
    [
        (np.zeros((3, 2)), [[0, 1, 2]], r"vertices must have shape \(V, 3\)"),
        ([["a", "b", "c"]], [[0, 0, 0]], "vertices must be numbers"),
        (np.eye(3), [[0, 1, 2, 0]], "faces must be integers of shape"),
        (np.eye(3), [[0.0, 1.0, 2.0]], "faces must be integers of shape"),
        (np.eye(3), np.zeros((0, 3), int), "at least one triangle"),
    ],
)
def test_arrays_of_another_kind_are_refused(vertices, faces, sentence):
    for accept in (Mesh, repair):
        with pytest.raises(InputError, match=sentence):
            accept(vertices, faces)


# Repair ---------------------------------------------------------------------------------------------------------


def test_a_good_mesh_stays_as_it_is():
    vertices, faces = bent_disk(5)
    mesh, report = repair(vertices, faces)
    np.testing.assert_array_equal(mesh.vertices, vertices)
    np.testing.assert_array_equal(mesh.faces, faces)
    assert report[:-1] == (0,) * 9
    np.testing.assert_array_equal(report.numbering, np.arange(len(vertices)))


@pytest.mark.parametrize(
    ("build", "counts"),
    [
        (repeated_triangle, {"dropped_triangles": 1}),
        (same_place, {"merged_vertices": 1}),
        (unused_vertex, {"dropped_vertices": 1}),
        (turned_triangle, {"turned_triangles": 1}),
    ],
)
def test_repair_of_one_defect_gives_the_disk_back(build, counts):
    mesh, report = repair(*build())
    vertices, faces = flat_disk(3)
    np.testing.assert_array_equal(mesh.vertices, vertices)
    assert same_triangles(mesh.faces, faces)
    assert {name: n for name, n in report._asdict().items() if name != "numbering" and n} == counts


def test_separate_triangles_are_merged_and_most_orientations_win():
    vertices, faces = bent_disk(5)
    soup = vertices[faces].reshape(-1, 3)
    loose = np.arange(len(soup)).reshape(-1, 3)
    loose[::3] = loose[::3, ::-1]
    mesh, report = repair(soup, loose)
    assert report.merged_vertices == len(soup) - len(vertices)
    assert report.turned_triangles == len(loose[::3])
    assert same_triangles(report.numbering[loose[1::3]], mesh.faces[1::3])
    np.testing.assert_array_equal(mesh.vertices[report.numbering], soup)


@pytest.mark.parametrize("inner", [True, False])
def test_flat_triangle_is_mended_without_a_slit(inner):
    vertices, faces = flat_disk(4)
    # Put a vertex into the middle of an edge of one triangle only.
    border = set(range(len(vertices) - 24, len(vertices)))
    edge = next((a, b) for a, b, _ in faces if ({a, b} <= border) != inner)
    number = next(k for k, face in enumerate(faces) if edge in {tuple(np.roll(face, -i)[:2]) for i in range(3)})
    tip = next(v for v in faces[number] if v not in edge)
    middle = len(vertices)
    points = np.concatenate([vertices, [(vertices[edge[0]] + vertices[edge[1]]) / 2]])
    cut = [[edge[0], middle, tip], [middle, edge[1], tip], [edge[0], edge[1], middle]]
    mesh, report = repair(points, np.concatenate([without(faces, number), cut]))
    assert len(mesh.vertices) == len(points)
    assert mesh.area == pytest.approx(Mesh(vertices, faces).area, rel=1e-12)
    assert (report.swapped_edges, report.dropped_triangles) == ((1, 0) if inner else (0, 1))


def test_minus_zero_is_zero():
    vertices, faces = flat_disk(3)
    points = np.concatenate([vertices, [[-0.0, -0.0, -0.0]]])
    with pytest.raises(InputError, match="vertices 0 and 37 coincide"):
        Mesh(points, faces)
    assert repair(points, faces)[1].merged_vertices == 1


def test_holes_are_filled_on_request_only():
    vertices, faces = bent_disk(6)
    ring = around(faces, 40)
    punched = without(faces, *around(faces, 0), *ring)
    with pytest.raises(InputError, match="3 boundary loops"):
        repair(vertices, punched)
    mesh, report = repair(vertices, punched, fill_holes=True)
    assert report.filled_holes == 2 and report.dropped_vertices == 2
    assert report.numbering[0] == -1 and report.numbering[40] == -1
    assert len(mesh.faces) == len(faces)
    assert mesh.area > 0.8 * Mesh(vertices, faces).area
    # The longest loop stays open.
    np.testing.assert_array_equal(mesh.vertices[mesh.boundary], vertices[Mesh(vertices, faces).boundary])


def test_missing_triangle_is_put_back():
    vertices, faces = flat_disk(4)
    mesh, report = repair(vertices, without(faces, around(faces, 0)[0]), fill_holes=True)
    assert report.filled_holes == 1 and same_triangles(mesh.faces, faces)


def test_ears_are_cut_off_one_after_the_other():
    vertices, faces = flat_disk(4)
    mesh = Mesh(vertices, faces)
    a, b = mesh.boundary[:2]
    first, second = len(vertices), len(vertices) + 1
    points = np.concatenate([vertices, [[1.3, 0.1, 0.0], [1.4, 0.3, 0.0]]])
    eared = np.concatenate([faces, [[b, a, first], [b, first, second]]])
    Mesh(points, eared)
    found, report = repair(points, eared)
    assert report.ears == 2 and report.dropped_vertices == 2
    assert same_triangles(found.faces, faces)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (two_parts, "repair: the mesh has 2 parts"),
        (three_triangles_at_an_edge, "repair: .* belongs to 3 triangles"),
        (two_inner_fans, "repair: .* form several fans"),
        (strip_with_one_side, "only one side"),
        (closed_surface, "no boundary"),
        (handle, "1 handles"),
        (lambda: (np.eye(3), [[0, 1, 2]]), "strip without inner vertices"),
        (lambda: (np.outer(np.arange(3), [1, 2, 3]), [[0, 1, 2]]), "every triangle lacks area"),
        (lambda: (np.eye(3), [[0, 1, 1]]), "every triangle lacks area"),
    ],
)
def test_what_cannot_be_mended_is_named(build, sentence):
    with pytest.raises(InputError, match=sentence):
        repair(*build())


# Files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["obj", "ply", "stl", "off", "PLY"])
def test_files_of_each_format(tmp_path, ending):
    trimesh = pytest.importorskip("trimesh")
    vertices, faces = bent_disk(6)
    path = tmp_path / f"surface.{ending}"
    trimesh.Trimesh(vertices, faces, process=False).export(path, file_type=ending.lower())
    mesh, report = read_mesh(path)
    original = Mesh(vertices, faces)
    assert len(mesh.vertices) == len(vertices) and len(mesh.faces) == len(faces)
    assert mesh.area == pytest.approx(original.area, rel=1e-6)
    np.testing.assert_allclose(mesh.vertices[mesh.faces], vertices[faces], atol=1e-6)
    if ending != "stl":
        # A landmark keeps its number.
        np.testing.assert_allclose(mesh.vertices, vertices, atol=1e-6)
        np.testing.assert_array_equal(report.numbering, np.arange(len(vertices)))


def test_texture_seams_of_an_obj_file_are_closed(tmp_path):
    vertices, faces = flat_disk(3)
    lines = [f"v {x} {y} {z}" for x, y, z in vertices]
    lines += [f"vt {k / 100} 0" for k in range(3 * len(faces))]
    lines += [" ".join(["f", *(f"{v + 1}/{3 * t + k + 1}" for k, v in enumerate(f))]) for t, f in enumerate(faces)]
    path = tmp_path / "seams.obj"
    path.write_text("\n".join(lines) + "\n")
    mesh, _ = read_mesh(path)
    assert len(mesh.vertices) == len(vertices) and len(mesh.faces) == len(faces)
    # A landmark keeps its number.
    np.testing.assert_array_equal(mesh.vertices, vertices)


def test_groups_and_materials_of_an_obj_file_do_not_renumber(tmp_path):
    vertices, faces = bent_disk(3)
    lines = [f"v {x:.17g} {y:.17g} {z:.17g}" for x, y, z in vertices]
    for name, part in (("left", faces[:20]), ("right", faces[20:])):
        lines += [f"o {name}", f"usemtl {name}", *("f {} {} {}".format(*(face + 1)) for face in part)]
    path = tmp_path / "parts.obj"
    path.write_text("\n".join(lines) + "\n")
    mesh, report = read_mesh(path)
    np.testing.assert_array_equal(mesh.vertices, vertices)
    np.testing.assert_array_equal(report.numbering[: len(vertices)], np.arange(len(vertices)))
    assert same_triangles(mesh.faces, faces)


def test_polygons_of_a_file_are_split(tmp_path):
    path = tmp_path / "roof.off"
    path.write_text("OFF\n6 4 0\n0 0 0\n2 0 0\n2 2 0\n0 2 0\n1 1 1\n1 2 1\n3 0 1 4\n4 1 2 5 4\n3 2 3 5\n4 3 0 4 5\n")
    mesh, _ = read_mesh(path)
    assert len(mesh.vertices) == 6 and len(mesh.faces) == 6


def test_holes_of_a_file_are_filled_on_request(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    vertices, faces = annulus()
    path = tmp_path / "hole.ply"
    trimesh.Trimesh(vertices, faces, process=False).export(path)
    with pytest.raises(InputError, match="fill_holes=True"):
        read_mesh(path)
    mesh, report = read_mesh(path, fill_holes=True)
    assert report.filled_holes == 1 and len(mesh.vertices) == len(vertices) + 1


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("face.abc", "0 0 0\n", "does not end in one of .obj, .ply, .stl, .off, .xyz"),
        ("face", "", "does not end in one of"),
        ("empty.obj", "", "is empty"),
        ("cloud.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\n", "(only 3 points|not a valid OBJ)"),
        ("cloud.off", "OFF\n3 0 0\n0 0 0\n1 0 0\n0 1 0\n", "(only 3 points|not a valid OFF)"),
        ("text.ply", "this is no mesh\n", "is not a valid PLY file"),
        ("text.off", "this is no mesh\n", "is not a valid OFF file"),
        ("text.stl", "this is no mesh\n", "(is not a valid STL file|holds no triangles)"),
    ],
)
def test_other_files_are_refused_in_one_sentence(tmp_path, name, content, sentence):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(InputError, match=sentence) as caught:
        read_mesh(path)
    assert str(caught.value).startswith("read_mesh: ") and "\n" not in str(caught.value)


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        read_mesh(tmp_path / "nothing.obj")
