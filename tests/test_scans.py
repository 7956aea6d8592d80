"""Repair of raw scans: seams, specks, fins, holes that touch, and what a spike shows."""

import numpy as np
import pytest
from meshes import bent_disk, same_triangles

from jaxgeodp.checks import InputError
from jaxgeodp.surfaces import FaceTemplate, Mesh, SyntheticFaces, face_curves, repair


def seam():
    """Both halves with vertices of their own, a hair's width apart."""
    vertices, faces = bent_disk(6)
    right = vertices[faces].mean(axis=1)[:, 0] > 0
    split = np.where(right[:, None], faces + len(vertices), faces)
    return np.concatenate([vertices, vertices + 1e-7]), split


def speck():
    vertices, faces = bent_disk(6)
    count = len(vertices)
    return np.concatenate([vertices, vertices[:3] + 9.0]), np.concatenate([faces, [[count, count + 1, count + 2]]])


def fin():
    """Two triangles that stand on an inner edge."""
    vertices, faces = bent_disk(6)
    a, b, _ = faces[0]
    c, d = len(vertices), len(vertices) + 1
    return np.concatenate([vertices, [[0.1, 0.1, 9.0], [0.3, 0.1, 9.0]]]), np.concatenate(
        [faces, [[a, b, c], [b, d, c]]]
    )


@pytest.mark.parametrize(
    ("build", "changed"), [(seam, "merged_vertices"), (speck, "cut_triangles"), (fin, "cut_triangles")]
)
def test_what_scans_have_is_mended_on_request(build, changed):
    with pytest.raises(InputError):
        repair(*build())
    mesh, report = repair(*build(), scan=True)
    vertices, faces = bent_disk(6)
    assert report.counts()[changed] > 0 and len(mesh.vertices) == len(vertices)
    assert same_triangles(mesh.faces, faces)


def test_holes_that_touch_become_one():
    vertices, faces = bent_disk(6)
    around = [k for k, face in enumerate(faces) if 0 in face]
    # Two opposite triangles of six at the middle.
    open_faces = np.delete(faces, [around[0], around[3]], axis=0)
    with pytest.raises(InputError, match="form several fans"):
        repair(vertices, open_faces, fill_holes=True)
    mesh, report = repair(vertices, open_faces, fill_holes=True, scan=True)
    assert report.filled_holes == 1 and report.cut_triangles in (1, 2)
    np.testing.assert_array_equal(mesh.vertices[mesh.boundary], vertices[Mesh(vertices, faces).boundary])


def test_random_triangles_end_in_a_mesh_or_in_words():
    """Edges of three triangles, fans that only these join, copies: a loop never ended on some."""
    rng = np.random.default_rng(0)
    faces = [(3, 0, 1), (0, 1, 2), (3, 1, 3), (3, 3, 0), (3, 0, 4), (0, 4, 1), (0, 2, 4)]
    for some in [np.array(faces), *(rng.integers(0, 6, (rng.integers(1, 12), 3)) for _ in range(400))]:
        vertices = rng.normal(size=(6, 3))
        try:
            mesh, _ = repair(vertices, some, fill_holes=True, scan=True)
        except InputError:
            continue
        assert len(mesh.faces)


def test_a_clean_mesh_needs_nothing():
    vertices, faces = bent_disk(6)
    mesh, report = repair(vertices, faces, scan=True)
    assert not any(report.counts().values())
    np.testing.assert_array_equal(mesh.vertices, vertices)


def test_a_spike_shows_in_the_distance_from_the_template():
    generator = SyntheticFaces(rings=8)
    places = generator.nose_tip, generator.nasion
    template = FaceTemplate.from_mesh(Mesh(generator.template, generator.triangles), *places, 12, 24, 6, 24)
    spiked = np.array(generator.template)
    spiked[50] += [0.0, 0.0, 1e4]
    found = face_curves(Mesh(spiked, generator.triangles), *places, template)
    assert found.distance > 0.2
