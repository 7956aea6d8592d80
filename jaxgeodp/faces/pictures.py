"""Surfaces through the radial curves of faces, and pictures of them."""

import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.faces.curves import FaceTemplate
from jaxgeodp.meshes.grid import INNER_ROWS, inner_vertices, mesh_of_curves
from jaxgeodp.meshes.rendering import draw_surface


def surface_from_curves(curves, refine: int = 2, template: FaceTemplate | None = None):
    """Return vertices (V, 3) and faces (F, 3) through radial curves (J, m, 3), J >= 2; vertex 0 is the centre.

    Args:
        curves: as `radial_curves` gives them.
        refine: how many times finer the mesh is.
        template: a public face with such curves. Inside the first curve a spline fills the surface, which makes the
            nose too flat; of the template is known what that spline misses, and it is added.

    Raises:
        ValueError: shapes do not fit, or values are not finite.
    """
    curves = np.asarray(curves, float)
    if template is None:
        return mesh_of_curves(curves, refine)
    vertices, faces = mesh_of_curves(curves, refine, INNER_ROWS)
    if template.inner is None:
        raise InputError(
            "surface_from_curves: template lacks the surface inside its first curve; create it with "
            "FaceTemplate.from_mesh."
        )
    if template.curves.shape != curves.shape:
        raise InputError(f"surface_from_curves: curves must be {template.curves.shape} as the template's.")
    filled, _ = mesh_of_curves(template.curves, refine, INNER_ROWS)
    known = inner_vertices(template.inner, curves.shape[1], refine)
    vertices[: len(known)] += known - filled[: len(known)]
    return vertices, faces


def draw_curves(axes, curves, view="front", refine=2, template=None, values=None, **style):
    """Draw the surface through J radial curves (J, m, 3), its centre filled by a spline, or by a template's detail.

    Args:
        axes: of Matplotlib.
        curves: as `radial_curves` gives them.
        view: "front", "three-quarter" or "profile"; or turn around the vertical axis and nod, in degrees.
        refine, template: see `surface_from_curves`.
        values: of the points of the curves, (J, m), shown as colours instead.
        style: see `draw_surfaces`.

    Returns:
        The collection of triangles that was added.

    Raises:
        ValueError: see `surface_from_curves`; or the view has another name.
    """
    if values is not None:
        rows = None if template is None else INNER_ROWS
        filled, _ = mesh_of_curves(np.repeat(np.asarray(values, float)[..., None], 3, axis=-1), refine, rows)
        style["values"] = filled[:, 0]
    return draw_surface(axes, *surface_from_curves(curves, refine, template), view=view, **style)
