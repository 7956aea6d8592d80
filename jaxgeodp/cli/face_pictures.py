"""Pictures of faces and of their radial curves, as files."""

import io

import matplotlib.figure
import numpy as np

from jaxgeodp.faces.pictures import draw_curves
from jaxgeodp.files import write_atomically
from jaxgeodp.meshes.rendering import draw_surfaces
from jaxgeodp.privacy.clock import now


def draw_faces(path, faces, template=None):
    """Faces side by side, from two views: pairs of a title and radial curves (J, m, 3); see `surface_from_curves`."""
    figure = matplotlib.figure.Figure(figsize=(3 * len(faces), 6.6), layout="constrained")
    axes = figure.subplots(2, len(faces), squeeze=False)
    for column, (title, curves) in enumerate(faces):
        for axis, view in zip(axes[:, column], ("front", "three-quarter"), strict=True):
            draw_curves(axis, curves, view, template=template)
        axes[0, column].set_title(title, fontsize=10)
    _save(figure, path)


def draw_points(path, surfaces, triangles, mu):
    """Released surfaces side by side: vertices (V, 3) by name, and their triangles (F, 3)."""
    titles = [f"{name.replace(', ', ',' + chr(10))}, μ = {mu:g}" for name in surfaces]
    _save(draw_surfaces(list(surfaces.values()), triangles, titles=titles, size=3), path)


def draw_lines(path, faces):
    """Radial curves side by side, as lines: pairs of a title and curves (J, m, 3)."""
    figure = matplotlib.figure.Figure(figsize=(3 * len(faces), 3.6), layout="constrained")
    for axis, (title, curves) in zip(figure.subplots(1, len(faces)), faces, strict=True):
        for curve in np.concatenate([curves, curves[:, :1]], axis=1):
            axis.plot(curve[:, 0], curve[:, 1], color="C0", linewidth=0.6)
        axis.set_aspect("equal")
        axis.axis("off")
        axis.set_title(title, fontsize=10)
    _save(figure, path)


def _save(figure, path):
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110, metadata={"Software": None})
    write_atomically(path, picture.getvalue(), changed=now())
