"""Values as lines (k, 3) in space, for any renderer: globes, ellipsoids, frames, sets of curves."""

from typing import NamedTuple

import numpy as np

_POINTS = 73
# Angles beyond these are not drawn.
_DIALS = 6
#: What a stage of a search is released by.
SEARCH = "SearchInRounds"
# The plane of the picture, seen from where drawings look from: 60 degrees to the side, 30 above.
_TO_THE_RIGHT = np.array([np.sin(np.pi / 3), np.cos(np.pi / 3), 0.0])
_UP = np.array([-0.5 * np.cos(np.pi / 3), 0.5 * np.sin(np.pi / 3), np.cos(np.pi / 6)])

_UPRIGHT = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])


class Line(NamedTuple):
    """A line in space and its style."""

    points: np.ndarray  #: (k, 3)
    color: str
    width: float = 1.0
    label: str | None = None  #: of a line of one point, which is a dot; a ring without


GREY, RED, BLUE, GREEN, BLACK = "#b5b5b5", "#c33b2f", "#2f6bb3", "#3a8f4d", "#111111"
#: With numbers beside them.
MOST_LANDMARKS = 24


def is_found(record: dict) -> bool:
    """Return whether the ball of a record was found by earlier stages."""
    return "stages" in record or ("search" in record and record["mechanism"] != SEARCH)


def is_moment(record: dict) -> bool:
    """Return whether the value is a moment in a frame of tangent vectors, not a point of the manifold."""
    return "frame" in record


def lines_of(record: dict) -> list[Line] | None:
    """Return lines that show the value of a release record; None if it has no picture in space."""
    value = np.asarray(record["value"], float)
    if is_moment(record):
        return None
    draw = {
        "Sphere": _direction,
        "Axes": _axis,
        "Circle": _dials,
        "Torus": _dials,
        "SPD": _ellipsoid,
        "Rotations": _frame,
        "RigidMotions": _pose,
    }.get(record["manifold"]["name"])
    if draw is not None:
        return draw(value, record)
    if value.ndim == 3 and value.shape[2] == 3:
        # Of a face y points up, which is z of a picture.
        curves = value @ _UPRIGHT if record["mechanism"].startswith("Face") else value
        closed = np.concatenate([curves, curves[:, :1]], axis=1)
        return [Line(curve, BLUE) for curve in (curves if _are_open(record) else closed)]
    return None


def _are_open(record) -> bool:
    """Return whether curves are of an interval; all others are closed."""
    statistic = record["statistic"]
    kernel = statistic.get("kernel", {}) if isinstance(statistic, dict) else {}
    return kernel.get("name") == "IntervalKernel"


def landmarks_to_turn(record: dict) -> list[Line] | None:
    """Return landmarks in space over those of the public centre or template; None if there are none."""
    public = public_landmarks(record)
    if public is None or public.shape[1] != 3 or is_moment(record):
        return None
    value = np.asarray(record["value"], float).reshape(public.shape) - public.mean(axis=0)
    public = public - public.mean(axis=0)
    # Its principal axes are those of the picture.
    axes = np.linalg.svd(public, full_matrices=False)[2].T
    public, value = public @ axes, value @ axes
    lines = [Line(np.stack(pair), GREY) for pair in zip(public, value, strict=True)]
    lines += [Line(point[None], GREY, 1.5) for point in public]
    names = range(1, len(value) + 1)
    some = len(value) <= MOST_LANDMARKS
    return lines + [
        Line(point[None], BLACK, 1.0, str(name) if some else "") for name, point in zip(names, value, strict=True)
    ]


def public_landmarks(record: dict) -> np.ndarray | None:
    """Return the corresponding landmarks (k, m) of the centre or template; None if there are none."""
    value, name = np.asarray(record["value"], float), record["manifold"]["name"]
    if name in ("PlanarShapes", "Shapes3D") and value.ndim == 2:
        return np.asarray(record["ball"]["center"], float)
    template = np.asarray(record.get("prepared", {}).get("template", ()), float)
    return template if name == "Euclidean" and template.ndim == 2 and template.size == value.size else None


def caption_of(record: dict) -> str:
    """Return a caption for the lines of `lines_of`."""
    if "caption" in record:
        return record["caption"]
    value, name = np.asarray(record["value"], float), record["manifold"]["name"]
    ball = "ball that was found" if is_found(record) else "public ball"
    if name in ("Sphere", "Axes"):
        region = "\nblue: rim of the region" if "region" in record else ""
        return f"red: the released {'direction' if name == 'Sphere' else 'axis'}; green: rim of the {ball}{region}"
    if name in ("Circle", "Torus"):
        degrees = ", ".join(f"{angle:z.1f}" for angle in np.degrees(value[:_DIALS]))
        some = f"; the first {_DIALS} of {len(value)}" if len(value) > _DIALS else ""
        region = "\nblue: the region" if "region" in record else ""
        return f"red: released angles, {degrees} degrees from the mark{some}\ngreen: arcs of the {ball}{region}"
    if name == "SPD":
        lengths = np.sqrt(np.maximum(np.linalg.eigvalsh(value)[::-1], 0.0))
        return f"red: half axes, {', '.join(f'{length:.3g}' for length in lengths)} long (roots of the eigenvalues)"
    if name in ("Shapes3D", "Euclidean"):
        centre = "centre that was found" if is_found(record) else "public centre"
        return f"black: released landmarks; grey: those of the {centre if name == 'Shapes3D' else 'public template'}"
    if name == "Rotations":
        return "grey: fixed axes; red, green, blue: where x, y, z are turned"
    if name == "RigidMotions":
        place = ", ".join(f"{number:.4g}" for number in value[:, 3])
        return f"grey: fixed axes; red, green, blue: where x, y, z are turned; translation {place}"
    return "released curves"


def _direction(value, record):
    """Return a globe with the public ball, the region of the mean, and the direction."""
    if value.shape != (3,):
        return None
    value = value / np.linalg.norm(value)
    lines, ball = _globe(np.eye(3), GREY), record.get("ball") or {}
    center, radius = np.asarray(ball.get("center", ()), float), ball.get("radius")
    if center.shape == (3,) and isinstance(radius, float | int):
        lines.append(Line(_circle_about(center, radius), GREEN, 1.5))
    if "region" in record:
        lines.append(Line(_circle_about(value, record["region"]), BLUE, 1.5))
    arrow = np.stack([np.zeros(3), value])  # which ends on the globe
    return [*lines, Line(arrow, RED, 3.0), Line(_circle_about(value, 0.04), RED, 3.0)]


def _axis(value, record):
    """Return the lines of a direction, drawn to both sides."""
    lines = _direction(value, record)
    globe = len(_globe(np.eye(3), GREY))
    return None if lines is None else [*lines, *(Line(-own.points, own.color, own.width) for own in lines[globe:])]


def _dials(value, record):
    """Return a circle for each angle, with the public ball's arc and the released angle."""
    ball = record.get("ball") or {}
    center, radius = np.asarray(ball.get("center", ()), float), ball.get("radius")
    lines = []
    for place, angle in enumerate(value[:_DIALS]):
        at = 2.5 * (place - 0.5 * (min(len(value), _DIALS) - 1)) * _TO_THE_RIGHT
        lines.append(Line(at + _arc(0.0, np.pi, 1.0), GREY))
        lines.append(Line(at + np.outer([0.9, 1.1], _TO_THE_RIGHT), GREY, 2.0))
        if center.shape == value.shape and isinstance(radius, float | int):
            lines.append(Line(at + _arc(center[place], min(radius, np.pi), 1.05), GREEN, 2.0))
        if "region" in record:
            lines.append(Line(at + _arc(angle, min(record["region"], np.pi), 1.1), BLUE, 2.0))
        lines.append(Line(at + np.outer([0.0, 1.0], np.cos(angle) * _TO_THE_RIGHT + np.sin(angle) * _UP), RED, 3.0))
    return lines


def _arc(middle, half, size):
    """Return part of a circle in the plane of the picture."""
    angles = middle + np.linspace(-half, half, _POINTS)
    return size * (np.outer(np.cos(angles), _TO_THE_RIGHT) + np.outer(np.sin(angles), _UP))


def _ellipsoid(value, record):
    """Return the ellipsoid x' value^-1 x = 1 and its axes, scaled to the window; neighbours share one scale."""
    if value.shape != (3, 3):
        return None
    sizes, axes = np.linalg.eigh(value)
    root = axes * np.sqrt(np.maximum(sizes, 0.0) / max(record.get("limit", sizes[-1]), 1e-300))
    return [*_globe(root.T, BLUE), *(Line(np.stack([-axis, axis]), RED, 2.0) for axis in root.T)]


def _frame(value, _):
    """Return the rotated axes over the fixed ones, which are grey."""
    if value.shape != (3, 3):
        return None
    fixed = [Line(np.stack([np.zeros(3), axis]), GREY, 1.5) for axis in np.eye(3)]
    turned = [
        Line(np.stack([np.zeros(3), axis]), color, 3.0) for axis, color in zip(value.T, (RED, GREEN, BLUE), strict=True)
    ]
    return [*fixed, *turned]


def _pose(value, _):
    """Return the frame of the rotation alone; the caption has the translation."""
    return _frame(value[:, :3], _) if value.shape == (3, 4) else None


def _globe(axes, color):
    """Return circles of latitude and longitude, mapped linearly by the rows of ``axes``."""
    around = np.linspace(0.0, 2 * np.pi, _POINTS)
    lines = []
    for height in np.radians([-60, -30, 0, 30, 60]):
        circle = np.stack([np.cos(around), np.sin(around), np.full_like(around, np.tan(height))], axis=1)
        lines.append(Line(np.cos(height) * circle @ axes, color))
    for turn in np.radians(range(0, 180, 30)):
        circle = np.stack([np.cos(turn) * np.cos(around), np.sin(turn) * np.cos(around), np.sin(around)], axis=1)
        lines.append(Line(circle @ axes, color))
    return lines


def _circle_about(center, radius):
    center = center / np.linalg.norm(center)
    first = np.cross(center, np.eye(3)[np.argmin(np.abs(center))])
    first = first / np.linalg.norm(first)
    around = np.linspace(0.0, 2 * np.pi, _POINTS)[:, None]
    side = np.cos(around) * first + np.sin(around) * np.cross(center, first)
    return np.cos(radius) * center + np.sin(radius) * side
