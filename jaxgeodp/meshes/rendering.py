"""Pictures of surfaces on Matplotlib axes: shaded triangles, drawn from back to front (the painter's algorithm).

Shading is Lambert's law with a soft light from the whole upper half-space and a faint highlight, per triangle, from
averaged vertex normals. Colours that stand for values are hardly shaded, so that they can be read off a scale.
"""

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb

from jaxgeodp.checks import InputError
from jaxgeodp.meshes.grid import surface_from_grid

#: Turn around the vertical axis and nod, in degrees.
VIEWS = {"front": (0.0, 0.0), "three-quarter": (-38.0, 4.0), "profile": (-90.0, 0.0)}
_SKIN = "#d9b8a0"
_LIGHT = np.array([-0.30, 0.50, 0.80])
# By how much colours of values are darker where the surface is seen from the side.
_RIM = 0.1
_AMBIENT, _DIFFUSE, _HIGHLIGHT = 0.38, 0.62, 0.06


def draw_surface(axes, vertices, faces, view="front", color=_SKIN, values=None, limits=None, colors="viridis"):
    """Draw a triangulated surface (V, 3), (F, 3); y is up and z towards the viewer.

    Args:
        axes: of Matplotlib.
        vertices: (V, 3).
        faces: (F, 3), anticlockwise as seen from the front.
        view: a name of `VIEWS`, or turn and nod in degrees.
        color: of the surface.
        values: (V,), shown as colours instead.
        limits: (low, high) of the values.
        colors: the Matplotlib colour map of the values.

    Returns:
        the collection that was added.
    """
    vertices, faces = np.asarray(vertices, float), np.asarray(faces)
    seen = (vertices - vertices.mean(axis=0)) @ _rotation(view).T
    normals = vertex_normals(seen, faces)[faces].mean(axis=1)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    # A surface has no back: its inside is lit as if it faced the viewer.
    normals *= np.where(normals[:, 2:] < 0, -1.0, 1.0)
    if values is None:
        shades = _shade(np.array(to_rgb(color)), normals)
    else:
        shades = _mapped(values, faces, limits, colors) * (1.0 - _RIM * (1.0 - normals[:, 2:]))
    order = np.argsort(seen[faces, 2].mean(axis=1))
    shades = shades[order]
    triangles = seen[faces[order]][:, :, :2]
    collection = PolyCollection(triangles, facecolors=shades, edgecolors=shades, linewidths=0.3)
    axes.add_collection(collection)
    axes.set_aspect("equal")
    axes.axis("off")
    low, high = seen[:, :2].min(axis=0), seen[:, :2].max(axis=0)
    margin = 0.03 * np.max(high - low)
    axes.set_xlim(low[0] - margin, high[0] + margin)
    axes.set_ylim(low[1] - margin, high[1] + margin)
    return collection


def draw_grid(axes, grid, view="front", **style):
    """Draw a surface on a polar grid (R, T, 3), its centre filled; see `draw_surface`."""
    return draw_surface(axes, *surface_from_grid(grid), view=view, **style)


def draw_surfaces(surfaces, faces=None, views=("front", "three-quarter"), titles=None, size=2.4, **style):
    """Return a figure with one column per surface and one row per view.

    Args:
        surfaces: vertex arrays (V, 3) that share ``faces``; or polar grids (R, T, 3) without.
        faces: (F, 3), anticlockwise as seen from the front.
        views: "front", "three-quarter" or "profile"; or turn around the vertical axis and nod, in degrees.
        titles: one per surface.
        size: of a picture, in inches.
        style: ``color`` of the surfaces; or ``values`` (V,) of the vertices, ``limits`` (low, high) and ``colors``, a
            colour map of Matplotlib.

    Returns:
        The Matplotlib figure.

    Raises:
        ValueError: a view has another name, or a grid another shape.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size * len(surfaces), 1.2 * size * len(views)), layout="constrained")
    axes = figure.subplots(len(views), len(surfaces), squeeze=False)
    for column, surface in enumerate(surfaces):
        vertices, triangles = surface_from_grid(surface) if faces is None else (surface, faces)
        for row, view in enumerate(views):
            draw_surface(axes[row, column], vertices, triangles, view, **style)
        if titles is not None:
            axes[0, column].set_title(titles[column], fontsize=9)
    return figure


def vertex_normals(vertices, faces):
    """Return unit normals (V, 3), the area-weighted means over adjacent triangles."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    areas = np.cross(b - a, c - a)
    normals = np.zeros_like(vertices)
    for k in range(3):
        np.add.at(normals, faces[:, k], areas)
    return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)


def _rotation(view):
    if isinstance(view, str):
        if view not in VIEWS:
            raise InputError(f"view must be one of {', '.join(VIEWS)}, or two angles, got {view!r}.")
        view = VIEWS[view]
    turn, nod = np.deg2rad(view)
    around = np.array([[np.cos(turn), 0, np.sin(turn)], [0, 1, 0], [-np.sin(turn), 0, np.cos(turn)]])
    return np.array([[1, 0, 0], [0, np.cos(nod), -np.sin(nod)], [0, np.sin(nod), np.cos(nod)]]) @ around


def _shade(base, normals):
    light = _LIGHT / np.linalg.norm(_LIGHT)
    diffuse = np.maximum(normals @ light, 0.0)
    sky = 0.5 * (1.0 + normals[:, 1])
    halfway = light + np.array([0.0, 0.0, 1.0])
    glint = np.maximum(normals @ (halfway / np.linalg.norm(halfway)), 0.0) ** 24
    bright = _AMBIENT * (0.6 + 0.4 * sky) + _DIFFUSE * diffuse
    return np.clip(base * bright[:, None] * 1.15 + _HIGHLIGHT * glint[:, None], 0.0, 1.0)


def _mapped(values, faces, limits, colors):
    import matplotlib

    values = np.asarray(values, float)
    low, high = (values.min(), values.max()) if limits is None else limits
    scaled = (values[faces].mean(axis=1) - low) / max(high - low, 1e-12)
    return matplotlib.colormaps[colors](np.clip(scaled, 0.0, 1.0))[:, :3]
