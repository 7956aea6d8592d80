"""Radial curves of one face mesh, relative to a public template only.

conformal map -> nose to the centre, second landmark up -> polar grid -> unit area, centred, turned onto the template
-> radial curves (Soto 2024, sections 2 and 3). Every face is processed by itself: no step looks at another face, which
is what the privacy of `FaceMeanMechanism` needs.

A mesh whose triangles are all clockwise seen from outside has a mirrored map, which no rotation undoes. Both
orientations are tried, and the one nearer to the template counts.
"""

import dataclasses
import pathlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.faces.landmarks import Landmarks, Numbering, check_numbers, place_landmark
from jaxgeodp.meshes.conformal import folded_conformal_map
from jaxgeodp.meshes.distortion import angle_distortion, flips
from jaxgeodp.meshes.files import read_mesh
from jaxgeodp.meshes.grid import DiskLocator, curve_points, inner_points, polar_points
from jaxgeodp.meshes.mesh import Mesh
from jaxgeodp.meshes.moebius import moebius_center
from jaxgeodp.meshes.registration import register, warp, warp_points
from jaxgeodp.meshes.square_root import Similarity, area, best_rotation, disk_integral, square_root_field
from jaxgeodp.meshes.unfolding import unfold

# How far the area of a template may be from 1: grids coarser than the mesh miss some of it.
_AREA = 0.25


@dataclasses.dataclass(frozen=True, eq=False)
class FaceTemplate:
    """A public reference face for alignment; its mesh has area 1 and centroid 0.

    Args:
        grid: on the polar grid, (R, T, 3).
        curves: its radial curves, (J, m, 3).
        numbering: of its mesh, which meshes must share if landmarks are given as vertex numbers for all of them; None
            checks nothing.
        inner: the surface inside the first curve, (K, m, 3), at k/K of its radius for k = 0..K-1, K = 6: for pictures
            of released curves.

    Raises:
        ValueError: shapes are others, values are not finite, or the area of the grid is not about 1.
    """

    grid: np.ndarray
    curves: np.ndarray
    numbering: Numbering | None = None
    inner: np.ndarray | None = None

    def __post_init__(self):
        for name, shape in (("grid", "(R, T, 3), R at least 4 and T even"), ("curves", "(J, m, 3)")):
            array = np.array(getattr(self, name))
            fits = array.ndim == 3 and array.shape[2] == 3 and array.size and array.dtype.kind in "fiu"
            if not fits or (name == "grid" and (array.shape[0] < 4 or array.shape[1] % 2)):
                raise InputError(f"FaceTemplate: {name} must have shape {shape}, got {array.shape}.")
            if not np.all(np.isfinite(array)):
                raise InputError(f"FaceTemplate: {name} must be finite; create it with FaceTemplate.from_mesh.")
            array = array.astype(float)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        with jax.enable_x64(True):
            found = float(area(self.grid))
        if not abs(found - 1.0) <= _AREA:
            raise InputError(
                f"FaceTemplate: the surface on the grid must have area 1, got {found:.3g}; create it with "
                "FaceTemplate.from_mesh."
            )

    @classmethod
    def from_mesh(
        cls,
        mesh: Mesh,
        nose: int,
        up: int,
        radii: int = 24,
        angles: int = 80,
        curves: int = 23,
        samples: int = 80,
    ) -> "FaceTemplate":
        """Return the template of a public mesh.

        Args:
            mesh: of one face.
            nose: number of the vertex that goes to the centre of the disk.
            up: number of the vertex that fixes the direction of the angle pi/2, such as the nasion.
            radii, angles: R and T of the polar grid.
            curves, samples: J and m of the radial curves.

        Raises:
            ValueError: a parameter is out of range, or the mesh cannot be mapped.
        """
        with jax.enable_x64(True):
            locator = DiskLocator(mesh.faces, moebius_center(unfold(mesh, _plane(mesh)[0]), nose, up))
            grid = jnp.asarray(locator.sample(mesh.vertices, polar_points(radii, angles)))
            move = _unit_area(mesh, jnp.eye(3))
            places = curve_points(curves, samples), inner_points(curves, samples)
            lines, inner = (np.asarray(move(jnp.asarray(locator.sample(mesh.vertices, x)))) for x in places)
            return cls(np.asarray(move(grid)), lines, Numbering.of(mesh), inner)

    @classmethod
    def from_file(
        cls, path, nose: int, up: int, fill_holes: bool = False, scan: bool = False, **sizes: int
    ) -> "FaceTemplate":
        """Return the template of a public mesh file, with that file's vertex numbers.

        Args:
            path: see `read_mesh`.
            nose, up: see `from_mesh`, but vertex numbers of the file.
            fill_holes, scan: see `read_mesh`.
            sizes: ``radii``, ``angles``, ``curves``, ``samples`` of `from_mesh`.

        Raises:
            ValueError: the file is no face, or a landmark is no vertex of it.
        """
        mesh, report = read_mesh(path, fill_holes, scan)
        check_numbers(Landmarks(nose, up), pathlib.Path(path).suffix)
        own = [place_landmark(*pair, mesh, report.numbering) for pair in (("nose", nose), ("up", up))]
        found = cls.from_mesh(mesh, *own, **sizes)
        return dataclasses.replace(found, numbering=Numbering.of(mesh, report.numbering))


class FaceCurves(NamedTuple):
    """One face relative to a template: private."""

    curves: np.ndarray  #: radial curves, (J, m, 3)
    grid: np.ndarray  #: on the polar grid, (R, T, 3)
    vertices: np.ndarray  #: of the mesh, (V, 3), moved alike
    distance: float  #: root mean square of the grid's distance from the template's, over the disk
    inverted: bool  #: the triangles are clockwise seen from outside
    flips: int  #: triangles that the map folded over, before it was mended
    distortion: float  #: mean change of the angles by the map, in degrees
    map: str  #: method of the map


def face_curves(
    mesh: Mesh, nose: int, up: int, template: FaceTemplate, ridge: float | None = None, method: str | None = None
) -> FaceCurves:
    """Return radial curves of one face, scaled to area 1 and centroid 0, and rotated onto a template.

    Args:
        mesh: of the face.
        nose, up: numbers of its landmarks' vertices; see `FaceTemplate.from_mesh`.
        template: public.
        ridge: also warp the face onto the template by its square-root normals (`register`), with this penalty. By
            default it is only turned.
        method: of `disk_conformal_map`; by default "newton", and "linear" where that finds no map.

    Raises:
        ValueError: a landmark is no vertex of the mesh, or the mesh cannot be mapped.
    """
    with jax.enable_x64(True):
        folded, method = _plane(mesh, method)
        plane = unfold(mesh, folded)
        locator = DiskLocator(mesh.faces, moebius_center(plane, nose, up))
        grid, move, inverted = _nearer_orientation(mesh, locator, template)
        places = curve_points(*template.curves.shape[:2])
        rotation = None
        if ridge is not None:
            found = register(grid[None], jnp.asarray(template.grid), ridge)
            coefficients, rotation = found.coefficients[0], found.rotations[0]
            places = np.asarray(warp_points(coefficients, jnp.asarray(places)))
            grid = jnp.einsum("ij,...j->...i", rotation, warp(grid, coefficients))
        sampled = locator.sample(mesh.vertices, _seen(places, inverted))
        lines, vertices = (move(jnp.asarray(x)) for x in (sampled, mesh.vertices))
        if rotation is not None:
            lines, vertices = (jnp.einsum("ij,...j->...i", rotation, x) for x in (lines, vertices))
        return FaceCurves(
            np.asarray(lines),
            np.asarray(grid),
            np.asarray(vertices),
            _distance(grid, template),
            inverted,
            len(flips(mesh, folded)),
            angle_distortion(mesh, plane),
            method,
        )


def _plane(mesh, method=None):
    """Return the map before unfolding, and its method: "linear" if "newton" fails."""
    if method is not None:
        return folded_conformal_map(mesh, method), method
    try:
        return folded_conformal_map(mesh, "newton"), "newton"
    except InputError:  # a very rough boundary
        return folded_conformal_map(mesh, "linear"), "linear"


def _nearer_orientation(mesh, locator, template):
    """Return grid on the template, similarity, and whether the mesh was inverted, for the nearer orientation."""
    found = []
    for inverted in (False, True):
        points = _seen(polar_points(*template.grid.shape[:2]), inverted)
        grid = jnp.asarray(locator.sample(mesh.vertices, points))
        rotation = best_rotation(square_root_field(grid), square_root_field(jnp.asarray(template.grid)))
        move = _unit_area(mesh, rotation)
        found.append((_distance(move(grid), template), move(grid), move, inverted))
    # Energies of normals do not tell: a face inside out fits nearly as well.
    return min(found, key=lambda candidate: candidate[0])[1:]


def _seen(points, inverted):
    """Return points in the map of a mesh, mirrored at the landmarks' axis if the mesh is inverted."""
    return -np.conj(points) if inverted else points


def _distance(grid, template):
    return float(jnp.sqrt(disk_integral(jnp.sum((grid - template.grid) ** 2, axis=-1)) / jnp.pi))


def _unit_area(mesh, rotation):
    """Return the similarity by area and centroid of the triangles, exact unlike those of a coarse grid."""
    return Similarity(jnp.asarray(mesh.centroid), jnp.asarray(mesh.area**-0.5), rotation)
