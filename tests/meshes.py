"""Small meshes for tests: disks of hexagonal rings, flat or bent."""

import functools
import pathlib

import numpy as np
from scipy.linalg import hadamard
from scipy.spatial import Delaunay

from jaxgeodp.meshes.grid import curve_points
from jaxgeodp.surfaces import FaceTemplate, SurfaceBasis, SurfaceDesign, SurfaceMeanMechanism


def disk_points(rings, jitter=0.0, seed=0):
    """Points of the unit disk in rings of 6, 12, 18, ..., complex; number 0 is the centre; inner points are moved."""
    random = np.random.default_rng(seed)
    points = [np.zeros(1, complex)]
    for ring in range(1, rings + 1):
        turn = np.exp(2j * np.pi * np.arange(6 * ring) / (6 * ring))
        noise = random.uniform(-1, 1, 6 * ring) + 1j * random.uniform(-1, 1, 6 * ring)
        points.append(ring / rings * turn + (jitter / rings * noise if ring < rings else 0.0))
    return np.concatenate(points)


def triangulated(points):
    """Delaunay triangles of complex points, counter-clockwise."""
    plane = np.stack([points.real, points.imag], axis=1)
    faces = Delaunay(plane).simplices.astype(int)
    a, b, c = plane[faces].transpose(1, 0, 2)
    cross = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]
    return np.where((cross > 0)[:, None], faces, faces[:, ::-1])


def flat_disk(rings, jitter=0.0, seed=0):
    points = disk_points(rings, jitter, seed)
    return np.stack([points.real, points.imag, 0.0 * points.real], axis=1), triangulated(points)


def bent_disk(rings, jitter=0.2, seed=0):
    """A hill with a dent: no symmetry, obtuse angles."""
    vertices, faces = flat_disk(rings, jitter, seed)
    x, y = vertices[:, 0], vertices[:, 1]
    vertices[:, 2] = 0.8 * np.exp(-3 * ((x - 0.2) ** 2 + y**2)) - 0.5 * np.exp(-6 * ((x + 0.4) ** 2 + (y - 0.3) ** 2))
    vertices[:, 0] *= 0.8
    return vertices, faces


def spherical_cap(rings, opening=1.9):
    """Vertices, triangles, and the stereographic projection of each vertex from the far pole onto the unit disk."""
    points = disk_points(rings, 0.15)
    polar = opening * np.abs(points)
    turn = np.exp(1j * np.angle(points))
    vertices = np.stack([np.sin(polar) * turn.real, np.sin(polar) * turn.imag, np.cos(polar)], axis=1)
    return vertices, triangulated(points), np.tan(polar / 2) / np.tan(opening / 2) * turn


def same_triangles(first, second):
    """Whether two lists hold the same triangles with the same orientation."""

    def normal(faces):
        return {tuple(np.roll(face, -int(np.argmin(face))).tolist()) for face in np.asarray(faces)}

    return normal(first) == normal(second)


def bowl(curves=2, samples=16):
    """Radial curves (J, m, 3) of a paraboloid."""
    z = curve_points(curves, samples)
    return np.stack([z.real, z.imag, 0.3 * np.abs(z) ** 2], axis=-1)


def surface_mechanism(norm_bound=1.0, mu=0.5):
    """Of deviations from a paraboloid in functions of 1 and -1, in directions of several lengths: exact numbers."""
    basis = SurfaceBasis(hadamard(32)[:, :4].astype(float), np.full(32, 1 / 32))
    return SurfaceMeanMechanism(bowl(), basis, np.eye(12)[:, :8] * 2.0 ** np.arange(-3, 5), norm_bound, mu)


def surface_design():
    """The same mechanism, and a shrinkage of its releases."""
    return SurfaceDesign(surface_mechanism(), np.ones(8), np.zeros(32), np.ones(3))


def design_once(monkeypatch):
    """The command designs a release once for the same public inputs: that takes seconds, and is always the same."""
    from jaxgeodp.cli import face_folder  # late: it imports what draws

    for name in ("synthetic_reference", "reference_folder", "design_surfaces"):
        monkeypatch.setattr(face_folder, name, _remembered(getattr(face_folder, name)))
    monkeypatch.setattr(SurfaceBasis, "of_curves", staticmethod(_remembered(SurfaceBasis.of_curves)))
    monkeypatch.setattr(FaceTemplate, "from_file", staticmethod(_remembered(FaceTemplate.from_file)))


def work_here(monkeypatch):
    """Workers' jobs are done by this process, without the seconds that another needs to begin."""
    from jaxgeodp.faces import folder

    def one_by_one(owner, function, jobs, workers):
        return ((number, function(*job), None) for number, job in enumerate(jobs))

    monkeypatch.setattr(folder, "in_processes", one_by_one)


_KNOWN = {}


def _remembered(function):
    @functools.wraps(function)
    def remembered(*arguments, **options):
        key = (
            function.__name__,
            *map(_hashable, arguments),
            *((name, _hashable(value)) for name, value in options.items()),
        )
        if key not in _KNOWN:
            _KNOWN[key] = function(*arguments, **options)
        return _KNOWN[key]

    return remembered


def _hashable(argument):
    if isinstance(argument, pathlib.Path) and argument.is_file():
        return argument.suffix, argument.read_bytes()
    if argument is None or isinstance(argument, (str, int, float, pathlib.Path)):
        return argument
    array = argument.functions if isinstance(argument, SurfaceBasis) else getattr(argument, "curves", argument)
    return np.asarray(array).tobytes()
