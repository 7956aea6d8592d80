"""Public and private synthetic people for the demo and the reproduction of the faces paper.

Everything public has a seed of its own. The private people are of another population than the public ones: all of them
are moved by half of what tells one more person from the average. So neither the template, which is one public person,
nor the mean of all public people is their mean, as it is in life.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from jaxgeodp.faces.curves import FaceTemplate
from jaxgeodp.faces.design import MARGIN
from jaxgeodp.faces.folder import process_faces
from jaxgeodp.faces.points_mean import JointGaussian, PointwiseGaussian
from jaxgeodp.faces.synthetic import SyntheticFaces
from jaxgeodp.meshes.mesh import Mesh

_PUBLIC_SEED, _SHIFT = 2024, 0.5
_STREAMS = {"template": 0, "population": 1, "reference": 2, "private": 3}


class People(NamedTuple):
    """Faces in point-by-point correspondence."""

    curves: np.ndarray  #: radial curves, (n, J, m, 3)
    points: np.ndarray  #: vertices of the meshes, of area 1 and turned onto the template, (n, V, 3)


class FaceStudy(NamedTuple):
    """Public and private participants; only ``private`` is private."""

    generator: SyntheticFaces
    template: FaceTemplate
    template_points: np.ndarray  #: (V, 3)
    reference: People
    private: People


def synthetic_meshes(count: int, reference: int, seed: int, generator: SyntheticFaces) -> list[Mesh]:
    """Return the template, ``reference`` public people and ``count`` private ones, in this order.

    Args:
        count: number of private people.
        reference: number of public people besides the template.
        seed: of the private people.
        generator: of the faces.
    """

    def people(stream, number, root):
        key = jax.random.fold_in(jax.random.key(root), _STREAMS[stream])
        return np.asarray(generator.records(key, number))

    with jax.enable_x64(True):
        template, other = (people(stream, 1, _PUBLIC_SEED) for stream in ("template", "population"))
        public = people("reference", reference, _PUBLIC_SEED)
        private = people("private", count, seed) + _SHIFT * (other - generator.template)
    return [Mesh(vertices, generator.triangles) for vertices in (*template, *public, *private)]


def face_study(
    count: int,
    reference: int = 24,
    seed: int = 0,
    generator: SyntheticFaces | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> FaceStudy:
    """Return public and private people, processed relative to the template; see `process_faces`."""
    generator = SyntheticFaces() if generator is None else generator
    meshes = synthetic_meshes(count, reference, seed, generator)
    nose, up = generator.nose_tip, generator.nasion
    template = FaceTemplate.from_mesh(meshes[0], nose, up)
    faces = process_faces(meshes, nose, up, template, workers=workers, progress=progress)
    vertices = np.asarray(faces.vertices)  # all meshes have the generator's triangles
    parts = slice(1, 1 + reference), slice(1 + reference, None)
    public, private = (People(faces.curves[part], vertices[part]) for part in parts)
    return FaceStudy(generator, template, vertices[0], public, private)


def points_alone(study: FaceStudy, mu: float) -> PointwiseGaussian:
    """Return the baseline of Soto (2024) with public ranges, one per coordinate for all points."""
    deviations = study.reference.points - study.template_points
    return PointwiseGaussian(study.template_points, MARGIN * np.abs(deviations).max(axis=(0, 1)), mu)


def points_together(study: FaceStudy, mu: float) -> JointGaussian:
    """Return the fair baseline: one public bound on a whole face."""
    deviations = study.reference.points - study.template_points
    bound = np.sqrt(np.mean(np.sum(deviations**2, axis=-1), axis=-1)).max()
    return JointGaussian(study.template_points, MARGIN * float(bound), mu)


def squared_error(value, truth) -> float:
    """Return the mean squared distance of points (..., 3)."""
    return float(np.mean(np.sum((np.asarray(value) - truth) ** 2, axis=-1)))
