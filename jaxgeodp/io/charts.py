"""Coordinates other than a manifold's own, as stated by ``--as``; never guessed.

All conversions are of single records: what is none becomes NaN, and the record later counts as the public centre.
"""

import itertools
import math
import re
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jaxgeodp.checks import InputError, many, short
from jaxgeodp.domains.lists import records_in_lists
from jaxgeodp.domains.records import host_array, is_numeric, kind_of_data
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.manifolds.names import name_of, points_on
from jaxgeodp.manifolds.tables import symmetric_matrices

#: How many of a unit of angles are a turn.
PERIODS = {"degrees": 360.0, "radians": 2.0 * math.pi, "hours": 24.0, "turns": 1.0}
#: Pairs of angles, in either order: of directions, and of lines and planes without a sense.
OF_DIRECTIONS = (("lat", "lon"), ("dec", "inc"), ("ra", "dec"))
OF_AXES = (("trend", "plunge"), ("strike", "dip"), ("dipdir", "dip"))
_EULER = re.compile(r"euler-([xyz]{3}|[XYZ]{3})-(degrees|radians)")
_OF_HYPERBOLIC = ("poincare", "klein", "half-space", "half-plane", "hyperboloid")
_TURNED = ("lon", "ra", "trend", "strike", "dipdir")  # or a declination, where no right ascension is beside it
#: Angles that go round.
TURNED = (*_TURNED, "dec")


class Chart(NamedTuple):
    """A way to write points as coordinates."""

    kinds: tuple[str, ...]  #: names of the manifolds that it is for; see `manifolds.names`
    points: Callable[[np.ndarray], np.ndarray]  #: from a table of numbers to one that `manifolds.tables` takes
    rows: Callable[[np.ndarray], np.ndarray]  #: from points (n, *shape) back, (n, m)


def from_chart(manifold: Manifold, rows, name: str) -> np.ndarray:
    """Convert coordinates stated by ``--as`` to points of the manifold.

    Args:
        manifold: of the points.
        rows: (n, m) numbers, or (n, k, k) of matrices.
        name: ``"lat,lon"``, ``"dec,inc"``, ``"ra,dec"``, and of axes ``"trend,plunge"``, ``"strike,dip"`` (by the
            right-hand rule) and ``"dipdir,dip"``, in either order, in degrees; ``"degrees"``, ``"radians"``,
            ``"hours"`` and ``"turns"`` of `Circle` and `Torus`; ``"wxyz"``, ``"xyzw"`` (quaternions of any length),
            ``"rotvec"`` (axis times angle) and ``"euler-XYZ-degrees"`` (capitals: about the axes as they turn; small
            letters: about fixed axes; any order; or ``-radians``) of `Rotations`, and of `RigidMotions` after the
            translation, ``"matrix"`` and ``"affine"`` their own; ``"poincare"``, ``"klein"``, ``"half-space"`` (height
            last; ``"half-plane"`` is the same) and ``"hyperboloid"`` of `Hyperbolic`, the first two in the unit ball;
            ``"covariance"`` of `Correlations`, which is scaled to correlations.

    Returns:
        (n, \\*shape), as float64; NaN where a row is no point.

    Raises:
        ValueError: no such way on this manifold, or rows of another shape.

    Example:
        >>> from jaxgeodp import Hyperbolic
        >>> from jaxgeodp.io import from_chart
        >>> from_chart(Hyperbolic(2), [[0.0, 0.5]], "poincare").round(3)
        array([[1.667, 0.   , 1.333]])
    """
    chart, table = _checked("from_chart", "rows", manifold, rows, name)
    with np.errstate(all="ignore"):
        return in_its_size(manifold, points_on(manifold, chart.points(table)), name)


def to_chart(manifold: Manifold, points, name: str) -> np.ndarray:
    """Convert points to coordinates stated by ``--as``: the inverse of `from_chart`.

    Angles of `Circle` and `Torus` are above minus half a turn and at most half, hours at least 0 and below 24;
    longitudes and declinations between -180 and 180 degrees, right ascensions, trends and strikes at least 0 and below
    360; of lines the end that points down; of quaternions that with w >= 0. Far from the origin numbers in the ball
    lose digits: at distance L about e^L/2 rounding errors of a distance, and e^(2L)/4 with ``"klein"``.

    Args:
        manifold: of the points.
        points: (n, \\*shape).
        name: see `from_chart`; ``"covariance"`` gives the correlation matrix, whose scale is lost.

    Returns:
        (n, m) float64, or (n, k, k) of correlation matrices; what `from_chart` takes.

    Raises:
        ValueError: no such way on this manifold, or points of another shape.

    Example:
        >>> from jaxgeodp import Sphere
        >>> from jaxgeodp.io import to_chart
        >>> to_chart(Sphere(2), [[0.0, 1.0, 0.0]], "lat,lon")
        array([[ 0., 90.]])
    """
    chart, points = _checked("to_chart", "points", manifold, points, name)
    if points.shape[1:] != manifold.shape:
        shape = ", ".join(["n", *map(str, manifold.shape)])
        raise InputError(f"to_chart: points must have shape ({shape}), got {many(points.shape)}.")
    scale = float(np.asarray(manifold.origin)[0]) if name in _SCALED else 1.0
    with np.errstate(all="ignore"):
        return chart.rows(points / scale)


def in_its_size(manifold: Manifold, points: np.ndarray, name: str | None) -> np.ndarray:
    """Scale a chart's points of curvature -1 to the hyperboloid of the manifold's curvature."""
    return points * float(np.asarray(manifold.origin)[0]) if name in _SCALED else points


def chart_named(name: str) -> Chart:
    """Return the chart of this name.

    Raises:
        ValueError: there is none.
    """
    if isinstance(name, str):
        if name in _CHARTS:
            return _CHARTS[name]
        euler = _EULER.fullmatch(name)
        if euler is not None and all(one != other for one, other in itertools.pairwise(euler[1])):
            return Chart(
                _OF_ROTATIONS,
                lambda table: _rotations(table, name, 3, _euler(euler[1], euler[2])),
                lambda points: _written(points, lambda own: own.as_euler(euler[1], euler[2] == "degrees")),
            )
    raise InputError(f"--as must be one of {', '.join(NAMES)}, got {short(name)}.")


def _checked(owner, what, manifold, numbers, name) -> tuple[Chart, np.ndarray]:
    chart = chart_named(name)
    if not isinstance(manifold, Manifold):
        raise InputError(f"{owner}: manifold must be a Manifold, got {short(manifold)}.")
    if name_of(manifold) not in chart.kinds:
        raise InputError(f"{owner}: {name} is not for {manifold}, but for {' and '.join(chart.kinds)}.")

    def converted(own):
        return own if own.ndim > 1 and own.dtype.kind == "f" else None

    array = host_array(owner, records_in_lists(numbers, converted))
    if not is_numeric(array.dtype, "fiu"):
        raise InputError(f"{owner}: {what} must be numbers, (n, m), got {kind_of_data(array)}.")
    with np.errstate(all="ignore"):
        array = array.astype(np.float64)
    if array.ndim < 2:
        raise InputError(f"{owner}: {what} must have shape (n, m), got {many(array.shape)}.")
    return chart, array


def angles_in(name: str | None) -> tuple[str, str] | None:
    """Return the angle in each of two columns; None unless the name states two. Ignores case and spaces."""
    words = [word.strip().lower() for word in name.split(",")] if isinstance(name, str) else []
    known = any(sorted(words) == sorted(pair) for pair in (*OF_DIRECTIONS, *OF_AXES))
    return (words[0], words[1]) if known else None


def _directions(table: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """Return unit vectors (n, 3) of angles (n, 2) in degrees; NaN for angles out of range.

    Latitude and longitude: x to the meridian of Greenwich on the equator, z to the pole; so declination and right
    ascension of the sky. Declination and inclination, as in palaeomagnetism, and trend and plunge of a line: x north,
    y east, z down. Planes are their poles: with the strike by the right-hand rule, which dips to its right, trend =
    strike - 90 and plunge = 90 - dip; with the direction of the dip trend = dipdir + 180.
    """
    _check_width(table, ",".join(names), 2)
    turned = names.index(_turned(names))
    turn, rise = table[:, turned], table[:, 1 - turned]
    right = (np.abs(rise) <= 90.0) & (np.abs(turn) <= 360.0)
    if "dip" in names:
        turn, rise = turn + (180.0 if "dipdir" in names else -90.0), 90.0 - rise
    around, up = np.radians(turn), np.radians(rise)
    vectors = np.stack([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)], axis=1)
    return np.where(right[:, None], vectors, np.nan)


def _angles_of(vectors: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """Invert `_directions`; of an axis, return the downward end."""
    of_axes = any(sorted(names) == sorted(pair) for pair in OF_AXES)
    vectors = np.where(of_axes & (vectors[:, 2:] < 0.0), -vectors, vectors)
    level = np.hypot(vectors[:, 0], vectors[:, 1])
    turn = np.degrees(np.arctan2(vectors[:, 1], vectors[:, 0]))
    rise = np.degrees(np.arctan2(vectors[:, 2], level))
    if "dip" in names:
        turn, rise = turn + (180.0 if "dipdir" in names else 90.0), 90.0 - rise
    if of_axes or "ra" in names:
        turn = _round(turn, 360.0)
    return np.stack([turn if name == _turned(names) else rise for name in names], axis=1)


def _turned(names: tuple[str, ...]) -> str:
    """Return the name of the azimuthal one of two angles."""
    return next((name for name in names if name in _TURNED), "dec")


def _in_unit(points: np.ndarray, unit: str) -> np.ndarray:
    """Return angles in a unit, modulo whole turns."""
    period = PERIODS[unit]
    angles = points * (period / (2.0 * math.pi))
    return _round(angles, period) if unit == "hours" else 0.5 * period - _round(0.5 * period - angles, period)


def _round(angles: np.ndarray, period: float) -> np.ndarray:
    """Reduce angles to [0, period); 0 where rounding makes the remainder the period."""
    left = np.remainder(angles, period)
    return np.where(left == period, 0.0, left)


def _radians(table: np.ndarray, unit: str) -> np.ndarray:
    """Return angles in radians, modulo whole turns taken off in the original unit."""
    return table if unit == "radians" else np.fmod(table, PERIODS[unit]) * (2.0 * math.pi / PERIODS[unit])


def _rotations(table: np.ndarray, name: str, width: int, quaternions_of: Callable) -> np.ndarray:
    """Return rotations (n, 3, 3); with a leading translation, (n, 3, 4)."""
    if table.ndim != 2 or table.shape[1] not in (width, width + 3):
        raise InputError(
            f"--as {name} needs {width} columns, or {width + 3} with a translation before, got shape "
            f"{many(table.shape)}; choose with --columns."
        )
    moved, quaternions = table[:, :-width], quaternions_of(table[:, -width:])
    w, vector = quaternions[:, 0, None, None], quaternions[:, 1:]
    cross = np.cross(np.eye(3)[None], vector[:, None, :])  # rows e_j x v: entries of -[v]
    matrices = np.eye(3) + 2.0 * (w * cross + cross @ cross)
    return np.concatenate([matrices, moved[:, :, None]], axis=2) if moved.shape[1] else matrices


def _written(points: np.ndarray, numbers_of: Callable) -> np.ndarray:
    """Return coordinates (n, m) of rotations, or of motions after their translations; NaN for invalid ones."""
    from scipy.spatial.transform import Rotation  # only here

    points = points.reshape(-1, 3, points.shape[-1])
    known = np.all(np.isfinite(points), axis=(1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Euler angles where two axes are one
        own = numbers_of(
            Rotation.from_matrix(np.where(known[:, None, None], points, np.eye(3, points.shape[2]))[..., :3])
        )
    return np.where(known[:, None], np.concatenate([points[:, :, 3:].reshape(len(points), -1), own], axis=1), np.nan)


def _quaternions(points: np.ndarray, first: str) -> np.ndarray:
    return _written(points, lambda own: np.roll(own.as_quat(canonical=True), 1 if first == "w" else 0, axis=1))


def _of_length_one(quaternions):
    scaled = quaternions / np.max(np.abs(quaternions), axis=1, keepdims=True)  # NaN for zero
    return scaled / np.linalg.norm(scaled, axis=1, keepdims=True)


def _of_rotation_vectors(vectors):
    half = 0.5 * np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.concatenate([np.cos(half), 0.5 * np.sinc(half / np.pi) * vectors], axis=1)


def _euler(axes: str, unit: str) -> Callable[[np.ndarray], np.ndarray]:
    """Return quaternions of three Euler angles: intrinsic for capital axes, else extrinsic."""

    def quaternions(table):
        half = 0.5 * _radians(table, unit)
        product = np.tile([1.0, 0.0, 0.0, 0.0], (len(table), 1))
        for place, axis in enumerate(axes.lower()):
            own = np.zeros((len(table), 4))
            own[:, 0], own[:, 1 + "xyz".index(axis)] = np.cos(half[:, place]), np.sin(half[:, place])
            product = _multiplied(product, own) if axes.isupper() else _multiplied(own, product)
        return product

    return quaternions


def _multiplied(one, other):
    real = one[:, :1] * other[:, :1] - np.sum(one[:, 1:] * other[:, 1:], axis=1, keepdims=True)
    vector = one[:, :1] * other[:, 1:] + other[:, :1] * one[:, 1:] + np.cross(one[:, 1:], other[:, 1:])
    return np.concatenate([real, vector], axis=1)


def _hyperboloid(table: np.ndarray, name: str) -> np.ndarray:
    """Return rows x0, x1, ..., of curvature -1; NaN outside the ball or half-space."""
    _check_width(table, name, None)
    if name in ("half-space", "half-plane"):
        beside, height = table[:, :-1], table[:, -1:]
        square = np.sum(beside**2, axis=1, keepdims=True)
        inside = height > 0.0
        rows = [1.0 + square + height**2, 2.0 * beside, square + (height - 1.0) * (height + 1.0)]
        points = np.concatenate(rows, axis=1) / (2.0 * height)
    else:
        length = np.linalg.norm(table, axis=1, keepdims=True)
        inside = length < 1.0
        room = (1.0 - length) * (1.0 + length)
        if name == "poincare":
            points = np.concatenate([1.0 + length**2, 2.0 * table], axis=1) / room
        else:
            points = np.concatenate([np.ones_like(length), table], axis=1) / np.sqrt(room)
    return np.where(inside, points, np.nan)


def _off_hyperboloid(points: np.ndarray, name: str) -> np.ndarray:
    """Invert `_hyperboloid`."""
    time, space = points[:, :1], points[:, 1:]
    if name == "poincare":
        return space / (1.0 + time)
    if name == "klein":
        return space / time
    # time minus the last coordinate, without a difference of nearly equal numbers
    beside, up = space[:, :-1], space[:, -1:]
    below = np.where(up > 0.0, (1.0 + np.sum(beside**2, axis=1, keepdims=True)) / (time + up), time - up)
    return np.concatenate([beside, np.ones_like(up)], axis=1) / below


def _scaled_to_correlations(table: np.ndarray) -> np.ndarray:
    """Scale covariances (n, k, k), or rows of triangles with diagonals, to unit diagonal."""
    matrices = symmetric_matrices(table)[1]
    roots = np.sqrt(np.diagonal(matrices, axis1=1, axis2=2))
    scaled = matrices / roots[:, :, None] / roots[:, None, :]
    own = np.eye(matrices.shape[1], dtype=bool)
    return np.where(own, np.where(np.isfinite(scaled), 1.0, np.nan), scaled)


def _check_width(table, name, width):
    if table.ndim != 2 or width not in (None, table.shape[1]):
        words = "a row a record" if width is None else "two columns"
        raise InputError(f"--as {name} needs {words}, got shape {many(table.shape)}; choose with --columns.")


def _as_it_is(table):
    return table


def _as_rows(points):
    return points.reshape(len(points), -1)


_OF_ROTATIONS = ("rotations", "rigidmotions")
_SCALED = tuple(name for name in _OF_HYPERBOLIC if name != "hyperboloid")  # of curvature -1
_PAIRS = tuple(
    (pair, kinds)
    for pairs, kinds in ((OF_DIRECTIONS, ("sphere", "axes")), (OF_AXES, ("axes",)))
    for one in pairs
    for pair in (one, one[::-1])
)


def _pair_of(pair, kinds):
    return Chart(kinds, lambda table: _directions(table, pair), lambda points: _angles_of(points, pair))


def _unit_of(unit):
    return Chart(("circle", "torus"), lambda table: _radians(table, unit), lambda points: _in_unit(points, unit))


def _model_of(name):
    return Chart(
        ("hyperbolic",), lambda table: _hyperboloid(table, name), lambda points: _off_hyperboloid(points, name)
    )


_CHARTS: dict[str, Chart] = {
    **{",".join(pair): _pair_of(pair, kinds) for pair, kinds in _PAIRS},
    **{unit: _unit_of(unit) for unit in PERIODS},
    "matrix": Chart(_OF_ROTATIONS, _as_it_is, _as_rows),
    "affine": Chart(("rigidmotions",), _as_it_is, _as_rows),
    "wxyz": Chart(
        _OF_ROTATIONS,
        lambda table: _rotations(table, "wxyz", 4, _of_length_one),
        lambda points: _quaternions(points, "w"),
    ),
    "xyzw": Chart(
        _OF_ROTATIONS,
        lambda table: _rotations(table, "xyzw", 4, lambda found: _of_length_one(np.roll(found, 1, axis=1))),
        lambda points: _quaternions(points, "x"),
    ),
    "rotvec": Chart(
        _OF_ROTATIONS,
        lambda table: _rotations(table, "rotvec", 3, _of_rotation_vectors),
        lambda points: _written(points, lambda own: own.as_rotvec()),
    ),
    **{name: _model_of(name) for name in _SCALED},
    "hyperboloid": Chart(("hyperbolic",), _as_it_is, _as_it_is),
    "covariance": Chart(("correlations",), _scaled_to_correlations, _as_it_is),
}
#: What `--as` may say; one stands for all orders of Euler angles.
NAMES = (*_CHARTS, "euler-xyz-degrees")
