"""From the mesh of one face to its radial curves, relative to a public template only.

conformal map -> nose to the centre, second landmark up -> polar grid -> unit area, centred, turned onto the template
-> radial curves (Soto 2024, sections 2 and 3). Every face is processed by itself: no step looks at another face, which
is what the privacy of `FaceMeanMechanism` needs.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.surfaces.conformal import disk_conformal_map
from jaxgeodp.surfaces.grid import DiskLocator, curve_points, inner_points, polar_points
from jaxgeodp.surfaces.mesh import Mesh
from jaxgeodp.surfaces.moebius import moebius_center
from jaxgeodp.surfaces.registration import register, warp, warp_points
from jaxgeodp.surfaces.square_root import normalize, similarity


@dataclasses.dataclass(frozen=True, eq=False)
class FaceTemplate:
    """A public face that others are turned onto, of area 1 with its centroid at 0.

    Args:
        grid: on the polar grid, (R, T, 3).
        curves: its radial curves, (J, m, 3).
        inner: the surface inside the first of them, (K, m, 3), at `inner_points`: for pictures of released curves.
    """

    grid: np.ndarray
    curves: np.ndarray
    inner: np.ndarray

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
        """The template of a public mesh.

        Args:
            mesh: of one face.
            nose: number of the vertex that goes to the centre of the disk.
            up: number of the vertex that fixes the direction of the angle pi/2, such as the nasion.
            radii, angles: of the polar grid.
            curves, samples: J and m of the radial curves.
        """
        with jax.enable_x64(True):
            locator = DiskLocator(mesh.faces, moebius_center(disk_conformal_map(mesh), nose, up))
            grid = jnp.asarray(locator.sample(mesh.vertices, polar_points(radii, angles)))
            move = similarity(grid, normalize(grid))
            places = curve_points(curves, samples), inner_points(curves, samples)
            lines, inner = (np.asarray(move(jnp.asarray(locator.sample(mesh.vertices, x)))) for x in places)
            return cls(np.asarray(move(grid)), lines, inner)


class FaceCurves(NamedTuple):
    """One face relative to a template: private."""

    curves: np.ndarray  #: radial curves, (J, m, 3)
    grid: np.ndarray  #: on the polar grid, (R, T, 3)
    vertices: np.ndarray  #: of the mesh, (V, 3), moved alike


def face_curves(mesh: Mesh, nose: int, up: int, template: FaceTemplate, ridge: float | None = None) -> FaceCurves:
    """Radial curves of one face, of area 1, centred and turned onto a template.

    Args:
        mesh: of the face.
        nose, up: numbers of its landmarks' vertices; see `FaceTemplate.from_mesh`.
        template: public.
        ridge: also warp the face onto the template by its square-root normals (`register`), with this penalty. By
            default it is only turned.

    Raises:
        ValueError: a landmark is no vertex of the mesh.
    """
    with jax.enable_x64(True):
        locator = DiskLocator(mesh.faces, moebius_center(disk_conformal_map(mesh), nose, up))
        grid = jnp.asarray(locator.sample(mesh.vertices, polar_points(*template.grid.shape[:2])))
        places = curve_points(*template.curves.shape[:2])
        move = similarity(grid, template.grid)
        grid = move(grid)
        if ridge is not None:
            found = register(grid[None], jnp.asarray(template.grid), ridge)
            coefficients, rotation = found.coefficients[0], found.rotations[0]
            places = np.asarray(warp_points(coefficients, jnp.asarray(places)))
            grid = jnp.einsum("ij,...j->...i", rotation, warp(grid, coefficients))
        lines, vertices = (move(jnp.asarray(x)) for x in (locator.sample(mesh.vertices, places), mesh.vertices))
        if ridge is not None:
            lines, vertices = (jnp.einsum("ij,...j->...i", rotation, x) for x in (lines, vertices))
        return FaceCurves(np.asarray(lines), np.asarray(grid), np.asarray(vertices))
