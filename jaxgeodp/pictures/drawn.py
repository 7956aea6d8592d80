"""The picture of a released value, drawn with Matplotlib."""

import io
import math

import numpy as np

from jaxgeodp.checks import printable
from jaxgeodp.pictures.disc import draw_disc
from jaxgeodp.pictures.lines import MOST_LANDMARKS, caption_of, is_found, is_moment, lines_of, public_landmarks
from jaxgeodp.plotting import draw_matrix, draw_outline

_OF_MATRICES = ("SPD", "LogEuclidean", "LogCholesky", "Correlations")
_MOST_NUMBERS = 12
_INCHES = (5.0, 4.2)
# Of the part of the figure that is a number of a matrix, the height of its letters.
_OF_A_CELL = 0.25
# Half the side of the cube in which globes and frames are drawn.
_OF_UNIT_SIZE = 1.15
# From how far above frames are seen, in degrees.
_ELEVATION = 30.0
# Of two panels beside each other.
_WIDE = (7.2, 4.2)


def picture_of(record: dict, share: float = 1.0) -> bytes:
    """Return a cropped PNG of the value of a release record; see `draw_record`.

    Args:
        record: `Release.record`, or the same read from a file.
        share: the size of the drawing; letters have theirs, so that they can be read in a small picture.

    Returns:
        The bytes of the file.
    """
    from matplotlib.figure import Figure

    public = public_landmarks(record)
    inches = _INCHES if public is None or public.shape[1] == 2 else _WIDE
    figure = Figure(figsize=(share * inches[0], share * inches[1]), layout="constrained")
    draw_record(record, figure)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=150, bbox_inches="tight", pad_inches=0.08)
    return file.getvalue()


def draw_record(record: dict, figure) -> None:
    """Draw the value of a release record on an empty Matplotlib figure.

    An outline for shapes, a globe for directions in space, an ellipsoid for 3 x 3 covariances, axes for rotations,
    curves in space, landmarks in space from two sides, the Poincare disc, numbers for other matrices and vectors;
    anything else as an array of colours.

    Args:
        record: `Release.record`, or the same read from a file.
        figure: a `matplotlib.figure.Figure`, to which axes are added.
    """
    name, value = record["manifold"]["name"], np.asarray(record["value"], float)
    moment = is_moment(record)
    name = "" if moment else name
    public = None if moment else public_landmarks(record)
    lines, limit = lines_of(record), record.get("limit")
    if lines is not None:
        axes = figure.add_subplot(projection="3d")
        _draw_lines(axes, lines, _OF_UNIT_SIZE if value.ndim < 3 else 0.0)
        if name in ("Rotations", "RigidMotions"):
            axes.view_init(_ELEVATION, _azimuth(value[:, :3]))
        _write_above(axes, caption_of(record))
    elif name == "PlanarShapes" and public is not None:
        centre = "centre that was found" if is_found(record) else "public centre"
        caption = record.get("caption", f"black: released; grey: {centre}")
        _draw_landmarks(figure.add_subplot(), value, public, caption)
    elif public is not None:
        centre = "centre that was found" if is_found(record) else "public centre"
        other = centre if name == "Shapes3D" else "public template"
        caption = record.get("caption", f"black: released; grey: {other}")
        _draw_configuration(figure, value.reshape(public.shape), public, caption)
    elif name == "Hyperbolic" and value.shape == (3,) and record.get("ball"):
        _draw_in_disc(figure.add_subplot(), value, record)
    elif name in _OF_MATRICES and value.ndim == 2 and len(value) <= _MOST_NUMBERS:
        _draw_numbers(figure, value, record.get("limit"), record.get("caption", ""))
    elif moment and value.ndim == 2 and len(value) <= _MOST_NUMBERS:
        _draw_numbers(figure, value, None, f"{record['statistic']}, in the frame of the record")
    elif value.ndim <= 1:
        axes = figure.add_subplot()
        axes.bar(np.arange(1, value.size + 1), np.atleast_1d(value), color="0.5")
        axes.set(xlabel="coordinate", ylabel="released value")
        if limit is not None:
            axes.set_ylim(-1.05 * limit, 1.05 * limit)
        _write_above(axes, record.get("caption", ""))
    else:
        axes = figure.add_subplot()
        flat = value.reshape(len(value), -1)
        limit = limit or float(np.abs(flat).max()) or 1.0
        sides = (0.5, flat.shape[1] + 0.5, flat.shape[0] + 0.5, 0.5)  # the first row and column are 1
        image = axes.imshow(flat, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto", extent=sides)
        figure.colorbar(image, ax=axes)
        _write_above(axes, record.get("caption", ""))
        for axis in (axes.xaxis, axes.yaxis):
            axis.get_major_locator().set_params(integer=True, min_n_ticks=1)


def _write_above(axes, words):
    """Set a title literally: words of a record are not parsed as formulas by Matplotlib or TeX."""
    lines = "\n".join(map(printable, str(words).split("\n")))
    axes.set_title(lines, fontsize=9, parse_math=False, usetex=False)


def _draw_numbers(figure, matrix, limit, caption):
    """Draw a matrix divided by a power of ten, which the caption names, where its numbers are small or large."""
    axes, limit = figure.add_subplot(), limit or float(np.abs(matrix).max()) or 1.0
    exponent = math.floor(math.log10(limit)) if math.isfinite(limit) else 0
    power = exponent + 1 if exponent < -1 else exponent if exponent > 2 else 0
    # Not by 10^power, which can be beyond the range of floats.
    shown, limit = (x / 10.0 ** (power / 2) / 10.0 ** (power / 2) for x in (matrix, limit))
    names = [str(k) for k in range(1, len(matrix) + 1)]
    size = np.clip(_OF_A_CELL * min(figure.get_size_inches()) * 72.0 / len(matrix), 3.0, 11.0)
    figure.colorbar(draw_matrix(axes, shown, names, limit, size=size), ax=axes)
    _write_above(axes, "; ".join(filter(None, [caption, f"divided by 1e{power}" if power else ""])))


def _draw_in_disc(axes, value, record):
    ball, curvature = record["ball"], record["manifold"]["curvature"]
    region = record.get("region")
    draw_disc(axes, value, np.asarray(ball["center"], float), ball["radius"], (-curvature) ** -0.5, region)
    blue = "" if region is None else "\nblue: rim of the region"
    which = "ball that was found" if is_found(record) else "public ball"
    disc = f"Poincare disc; red: released; green: rim of the {which}"
    _write_above(axes, record.get("caption", f"{disc}{blue}"))


def _draw_landmarks(axes, value, center, caption):
    """Draw numbered landmarks over those of the public centre; outlines without numbers if many."""
    if len(value) > MOST_LANDMARKS:
        draw_outline(axes, center, color="0.75")
        draw_outline(axes, value, reference=center)
        _write_above(axes, caption)
        return
    released, public = (shape @ [1.0, 1j] for shape in (value, center))
    overlap = np.vdot(released, public)
    released = released * overlap / (abs(overlap) or 1.0)
    for points, color in ((public, "0.75"), (released, "black")):
        around = np.append(points, points[0])
        axes.plot(np.real(around), np.imag(around), "o-", color=color, markersize=4, linewidth=1.0)
    for number, point in enumerate(released, 1):
        axes.annotate(str(number), (point.real, point.imag), xytext=(4, 4), textcoords="offset points", fontsize=8)
    _write_above(axes, caption)
    axes.set_aspect("equal")
    axes.axis("off")


def _draw_configuration(figure, value, template, caption):
    """Draw landmarks in the plane, or in space from two sides, with lines from their template positions."""
    views = ((0, 1),)
    if template.shape[1] == 3:  # along its principal axes
        middle, views = template.mean(axis=0), ((0, 1), (0, 2))
        axes = np.linalg.svd(template - middle, full_matrices=False)[2].T
        template, value = (template - middle) @ axes, (value - middle) @ axes
    panels = figure.subplots(1, len(views), squeeze=False)[0]
    for panel, view in zip(panels, views, strict=True):
        for start, end in zip(template[:, view], value[:, view], strict=True):
            panel.plot(*np.transpose((start, end)), color="0.75", linewidth=1.0)
        panel.plot(*template[:, view].T, "o", color="0.6", markersize=8, markerfacecolor="none")
        panel.plot(*value[:, view].T, "o", color="black", markersize=3)
        if len(value) <= MOST_LANDMARKS:
            for number, point in enumerate(value[:, view], 1):
                panel.annotate(str(number), point, xytext=(5, 5), textcoords="offset points", fontsize=7)
        panel.margins(0.15)
        panel.set_aspect("equal", adjustable="box")
        panel.set(xticks=(), yticks=())
        if len(views) > 1:
            panel.set(xlabel=f"principal axis {view[0] + 1}", ylabel=f"principal axis {view[1] + 1}")
    _write_above(panels[0], caption)


def _azimuth(frame):
    """Return from where, in degrees, the axes of a frame (its columns) lie least upon each other."""
    up = math.radians(_ELEVATION)

    def least_area(degrees):
        turn = math.radians(degrees)
        right = np.array([-math.sin(turn), math.cos(turn), 0.0])
        above = np.array([-math.sin(up) * math.cos(turn), -math.sin(up) * math.sin(turn), math.cos(up)])
        x, y = right @ frame, above @ frame
        return min(abs(x[i] * y[j] - x[j] * y[i]) for i, j in ((0, 1), (0, 2), (1, 2)))

    return max(range(-60, 300, 15), key=least_area)


def _draw_lines(axes, lines, least):
    for line in lines:
        axes.plot(*line.points.T, color=line.color, linewidth=line.width)
    # Globes, ellipsoids and frames have one size beside each other, whatever way they point; curves have their own.
    corners = np.array([end(line.points, axis=0) for line in lines for end in (np.min, np.max)])
    middle = np.zeros(3) if least else 0.5 * (corners.min(axis=0) + corners.max(axis=0))
    reach = max(least, float(np.abs(corners - middle).max())) or 1.0
    axes.set(**{f"{axis}lim": (m - reach, m + reach) for axis, m in zip("xyz", middle, strict=True)})
    axes.set_box_aspect((1, 1, 1), zoom=1.3)
    axes.set_axis_off()
