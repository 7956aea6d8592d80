"""Orders that names of columns state, which are public: entries of matrices, parts of quaternions."""

import re

import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.io.layout import Layout

#: Manifolds whose records are symmetric matrices, by their short names.
OF_MATRICES = ("spd", "logeuclidean", "logcholesky", "correlations")
# x12, r_1_2, cov[1,2], c10.11; xx, Dxy, s_xz: what stands before is the same for all entries.
_BY_DIGITS = re.compile(r"(.*?\D)??(\d)(\d)")
_BY_NUMBERS = re.compile(r"(.*?\D)??(\d+)[ _,.;:|x-](\d+)[\])]?")
_BY_LETTERS = re.compile(r"(.*?[ _.\[(-]?)([xyz])[ _,.-]?([xyz])[\])]?", re.IGNORECASE)
_QUATERNION = re.compile(r"(.*?)[ _.-]?([wxyz])", re.IGNORECASE)
_PLACE = re.compile(r"(t|p|pos|position|trans|translation|loc|location)?[ _.-]?([xyz123])", re.IGNORECASE)


def in_stated_order(table: np.ndarray, names: tuple[str, ...], kind: str, layout: Layout) -> tuple[np.ndarray, Layout]:
    """The columns of records (n, m) in the order that `manifolds.tables` takes, where their names say another.

    Full matrices become (n, k, k). What the layout says and the names say, too, is taken off it.

    Args:
        table: the columns that make a record.
        names: theirs; others than those of entries say nothing.
        kind: the manifold's short name.
        layout: of the call.

    Raises:
        ValueError: names that contradict the layout, or the manifold.
    """
    if table.ndim != 2 or len(names) != table.shape[1]:
        return table, layout
    if kind in OF_MATRICES:
        return _symmetric(table, names, kind, layout)
    if kind in ("rotations", "rigidmotions"):
        return _turned(table, names, layout)
    return table, layout


def entries_in(names: tuple[str, ...]) -> list[tuple[int, int]] | None:
    """Row and column, from 0, of each name; None where one says none, or two say the same."""
    if not names:
        return None
    for pattern in (_BY_DIGITS, _BY_NUMBERS, _BY_LETTERS):
        found = [pattern.fullmatch(name.strip()) for name in names]
        read = [own for own in found if own is not None]
        if len(read) < len(names) or len({(own[1] or "").lower() for own in read}) > 1:
            continue
        if pattern is _BY_LETTERS:
            entries = [("xyz".index(own[2].lower()), "xyz".index(own[3].lower())) for own in read]
        else:
            entries = [(int(own[2]), int(own[3])) for own in read]
            least = min(min(entry) for entry in entries)
            entries = [(row - least, column - least) for row, column in entries] if least in (0, 1) else []
        if len(set(entries)) == len(names):
            return entries
    return None


def _symmetric(table, names, kind, layout):
    entries = entries_in(names)
    if entries is None:
        return table, layout
    size = 1 + max(max(entry) for entry in entries)
    places = {entry: place for place, entry in enumerate(entries)}
    if len(entries) == size**2 > 1:
        order = [places[row, column] for row in range(size) for column in range(size)]
        return table[:, order].reshape(-1, size, size), _without_triangle(layout, names, None)
    pairs = {(max(entry), min(entry)): place for place, entry in enumerate(entries)}
    whole = kind != "correlations" or layout.chart == "covariance"
    lower = [(row, column) for row in range(size) for column in range(row + 1)]
    strict = [(row, column) for row, column in lower if row > column]
    if set(pairs) == set(strict) and len(entries) == len(strict):
        if whole:
            raise InputError(
                f"its columns {names[0]}, ... are what is off the diagonal of matrices by their names: say --manifold "
                "correlations, or add the diagonal."
            )
        return table[:, [pairs[entry] for entry in strict]], _without_triangle(layout, names, _triangle_of(entries))
    if set(pairs) != set(lower) or len(entries) != len(lower):
        return table, layout
    order = [pairs[entry] for entry in (lower if whole else strict)]
    return table[:, order], _without_triangle(layout, names, _triangle_of(entries))


def _triangle_of(entries):
    """The order in which rows hold a triangle; None where it is another one."""
    pairs = [(max(entry), min(entry)) for entry in entries]
    orders = {"lower": sorted(pairs), "upper": sorted(pairs, key=lambda pair: pair[::-1])}
    return next((name for name, order in orders.items() if pairs == order), None)


def _without_triangle(layout, names, stated):
    """The layout when the triangle is done; the two of 2 x 2 matrices are one."""
    if layout.triangle not in (None, stated) and len(names) > 3:
        raise _contradiction(f"--triangle {layout.triangle}", names)
    return layout.having(triangle=None)


def _turned(table, names, layout):
    """Of rotations and poses: entries of matrices, and quaternions, with or without a translation."""
    placed = [place for place, name in enumerate(names) if _PLACE.fullmatch(name.strip())]
    if layout.chart in (None, "matrix", "affine"):
        entries = entries_in(names)
        if entries is not None and len(entries) in (9, 12, 16):
            return table[:, np.argsort([4 * row + column for row, column in entries])], layout
        rest = [place for place in range(len(names)) if place not in placed]
        entries = entries_in(tuple(names[place] for place in rest)) if len(placed) == 3 and len(rest) == 9 else None
        if entries is not None:
            turned = [rest[place] for place in np.argsort([3 * row + column for row, column in entries])]
            return table[:, [x for k in range(3) for x in (*turned[3 * k : 3 * k + 3], placed[k])]], layout
    return _quaternions(table, names, layout)


def _quaternions(table, names, layout):
    if len(names) not in (4, 7) or layout.chart not in (None, "wxyz", "xyzw"):
        return table, layout
    found = [_QUATERNION.fullmatch(name.strip()) for name in names]
    prefixes = {own[1].lower() for own in found if own is not None and own[2].lower() == "w"}
    if len(prefixes) != 1:
        return table, layout
    own = {
        match[2].lower(): place
        for place, match in enumerate(found)
        if match is not None and match[1].lower() in prefixes
    }
    rest = [place for place in range(len(names)) if place not in own.values()]
    known = all(_PLACE.fullmatch(names[place].strip()) for place in rest)
    if sorted(own) != ["w", "x", "y", "z"] or not known:
        return table, layout
    order = "".join(sorted(own, key=lambda letter: own[letter]))
    if layout.chart not in (None, order):
        raise _contradiction(f"--as {layout.chart}", names)
    return table[:, [*rest, *(own[letter] for letter in "wxyz")]], layout.having(chart="wxyz")


def _contradiction(option, names):
    return InputError(
        f"{option} does not agree with the names of the columns, {', '.join(names[:7])}: leave it out, and they are "
        "read as their names say."
    )
