"""Pictures of faces and of their radial curves, as files."""

import io

import matplotlib.cm
import matplotlib.colors
import matplotlib.figure
import numpy as np

from jaxgeodp.faces.pictures import draw_curves
from jaxgeodp.files import write_atomically
from jaxgeodp.meshes.rendering import VIEWS, draw_surfaces
from jaxgeodp.privacy.clock import now


def draw_faces(path, faces, template=None):
    """Draw `picture_of_faces` as a file."""
    write_atomically(path, picture_of_faces(faces, template), changed=now())


def picture_of_faces(faces, template=None) -> bytes:
    """Draw faces from three sides: pairs of a title and radial curves (J, m, 3); see `surface_from_curves`.

    One or two lie above each other, more stand side by side.

    Returns:
        A PNG.
    """
    across = len(faces) <= 2
    rows, columns = (len(faces), len(VIEWS)) if across else (len(VIEWS), len(faces))
    figure = matplotlib.figure.Figure(figsize=(3 * columns, 3.3 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for views, (title, curves) in zip(axes if across else axes.T, faces, strict=True):
        _draw(views, curves, template)
        views[0].set_title(title, fontsize=10)
    return _png(figure)


def draw_errors(path, design, n, template=None):
    """Draw the public centre from three sides, coloured by the expected error of a release.

    Args:
        path: of the picture.
        design: a `SurfaceDesign` for radial curves of faces of area 1.
        n: number of records of the release.
        template: see `draw_faces`.
    """
    curves, lengths = design.mechanism.center, design.expected_error(n)
    figure = matplotlib.figure.Figure(figsize=(3.4 * len(VIEWS), 3.6), layout="constrained")
    axes, limits = figure.subplots(1, len(VIEWS)), (0.0, float(np.max(lengths)))
    _draw(axes, curves, template, values=np.reshape(lengths, curves.shape[:2]), limits=limits)
    scale = matplotlib.cm.ScalarMappable(matplotlib.colors.Normalize(*limits), "viridis")
    figure.colorbar(scale, ax=list(axes), label="root mean square (area of the face: 1)")
    title = f"expected error of a release, μ = {design.guarantee.mu:g}, n = {n}, on the public centre"
    figure.suptitle(title, fontsize=10)
    _save(figure, path)


def draw_points(path, surfaces, triangles, mu):
    """Draw released surfaces side by side: vertices (V, 3) by name, and their triangles (F, 3)."""
    titles = [f"{name.replace(', ', ',' + chr(10))}, μ = {mu:g}" for name in surfaces]
    _save(draw_surfaces(list(surfaces.values()), triangles, titles=titles, size=3), path)


def draw_lines(path, faces):
    """Draw radial curves side by side, as lines: pairs of a title and curves (J, m, 3)."""
    figure = matplotlib.figure.Figure(figsize=(3 * len(faces), 3.6), layout="constrained")
    for axis, (title, curves) in zip(figure.subplots(1, len(faces)), faces, strict=True):
        for curve in np.concatenate([curves, curves[:, :1]], axis=1):
            axis.plot(curve[:, 0], curve[:, 1], color="C0", linewidth=0.6)
        axis.set_aspect("equal")
        axis.axis("off")
        axis.set_title(title, fontsize=10)
    _save(figure, path)


def _draw(axes, curves, template, **style):
    for axis, view in zip(axes, VIEWS, strict=True):
        draw_curves(axis, curves, view, template=template, **style)


def _save(figure, path):
    write_atomically(path, _png(figure), changed=now())


def _png(figure) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110, metadata={"Software": None})
    return picture.getvalue()
