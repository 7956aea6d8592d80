"""Surfaces to be turned by hand, by plotly: ``pip install 'jaxgeodp[interactive]'``."""

import html

import numpy as np

from jaxgeodp.checks import InputError

_SKIN = "#d9b8a0"
_LIGHTING = {"ambient": 0.45, "diffuse": 0.7, "specular": 0.08, "roughness": 0.7, "fresnel": 0.05}


def interactive_surfaces(surfaces, titles=None, color=_SKIN):
    """Return a plotly figure of rotatable surfaces side by side; y is up and z towards the viewer.

    Args:
        surfaces: pairs of vertices (V, 3) and triangles (F, 3), such as `surface_from_curves` gives.
        titles: one per surface, shown as they are: plotly takes no tags from them.
        color: of all of them.

    Returns:
        The figure, with ``show`` and ``write_html``.

    Raises:
        ImportError: plotly is not installed.
        ValueError: there is no surface, titles do not fit, or shapes are wrong.
    """
    surfaces = [(np.asarray(vertices, float), np.asarray(faces)) for vertices, faces in surfaces]
    if not surfaces or not all(v.ndim == f.ndim == 2 and v.shape[1] == f.shape[1] == 3 for v, f in surfaces):
        raise InputError("interactive_surfaces: needs pairs of vertices (V, 3) and triangles (F, 3), at least one.")
    if titles is not None and len(titles) != len(surfaces):
        raise InputError(
            f"interactive_surfaces: needs a title for each of {len(surfaces)} surfaces, got {len(titles)}."
        )
    try:
        from plotly import graph_objects
        from plotly.subplots import make_subplots
    except ImportError:
        raise ImportError(
            "interactive_surfaces: plotly is not installed; pip install 'jaxgeodp[interactive]', or use draw_surfaces."
        ) from None
    count = len(surfaces)
    words = None if titles is None else [html.escape(str(title), quote=False) for title in titles]
    figure = make_subplots(1, count, specs=[[{"type": "scene"}] * count], subplot_titles=words)
    for column, (vertices, faces) in enumerate(surfaces, 1):
        corners = dict(zip("ijk", faces.T, strict=True))
        x, y, z = vertices.T
        mesh = graph_objects.Mesh3d(x=x, y=y, z=z, **corners, color=color, lighting=_LIGHTING, hoverinfo="skip")
        figure.add_trace(mesh, 1, column)
    hidden = {"visible": False}
    camera = {"eye": {"x": 0.5, "y": 0.2, "z": 1.7}, "up": {"x": 0, "y": 1, "z": 0}}
    figure.update_scenes(aspectmode="data", camera=camera, xaxis=hidden, yaxis=hidden, zaxis=hidden)
    return figure.update_layout(margin={"l": 0, "r": 0, "t": 30, "b": 0}, height=420)
