"""Orders that public column names state: matrix entries, quaternion parts."""

import collections
import math
import re

import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.io.layout import Layout
from jaxgeodp.io.name_checks import check_scales, only_count
from jaxgeodp.io.pair_names import complete, in_pairs, moment, without_units

#: Manifolds whose records are symmetric matrices, by their short names.
OF_MATRICES = ("spd", "logeuclidean", "logcholesky", "correlations")
_NUMBER = re.compile(r"\d+")
# xx, Dxy, s_xz, "Dyz (mm2/s)": what stands before and behind is the same for all entries.
_BY_LETTERS = re.compile(r"(.*?[ _.\[(-]?)([xyz])[ _,.-]?([xyz])((?:[^a-z0-9].*)?)", re.IGNORECASE)
_PART = re.compile(r"[wxyzrijk]", re.IGNORECASE)
_UNIT = re.compile(r"\s*[\[(].*")
_REAL_FIRST = {"w": "w", "x": "x", "y": "y", "z": "z", "r": "w", "i": "x", "j": "y", "k": "z"}
# Parts of a translation; without a prefix only where no other columns could be meant.
_PLACE = re.compile(r"(.*?[ _.-])??(t|p|pos|position|trans|translation|loc|location)?[ _.-]?([xyz123])", re.IGNORECASE)
_TURN = {"roll": "x", "pitch": "y", "yaw": "z", "heading": "z"}


def in_stated_order(table: np.ndarray, names: tuple[str, ...], kind: str, layout: Layout) -> tuple[np.ndarray, Layout]:
    """Reorder the columns of records (n, m) as `manifolds.tables` expects, where their names state an order.

    Full matrices become (n, k, k). Options that the names already state are cleared from the layout.

    Args:
        table: the columns that make a record.
        names: of these columns; names that state no entries are ignored.
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
    entries = entries_in(names) if kind == "grassmann" else None
    if entries is not None:
        rows, columns = (1 + max(numbers) for numbers in zip(*entries, strict=True))
        if len(entries) == rows * columns:
            order = np.argsort([columns * row + column for row, column in entries])
            return table[:, order].reshape(-1, rows, columns), layout
    return table, layout


def entries_in(names: tuple[str, ...]) -> list[tuple[int, int]] | None:
    """Parse names such as x12, r_1_2, cov[1,2], D.1.2., s10.11, xx, Dxy as (row, column), from 0.

    None if a name states no entry, or two state the same.
    """
    entries = _by_numbers(names) or _by_letters(names)
    return entries if entries and len(set(entries)) == len(names) else None


def stated_entries(names: tuple[str, ...]) -> list[tuple[int, int]] | None:
    """Parse the entries of a symmetric matrix, as `entries_in` or `in_pairs`.

    None unless they are all entries, a triangle, or what is off the diagonal.
    """
    if not names:
        return None
    for own in (names, without_units(names)):
        if (entries := entries_in(own)) is not None:
            numbers = sorted({number for pair in entries for number in pair})  # x11, x13, x33 are a 2 x 2 matrix
            entries = [(numbers.index(row), numbers.index(column)) for row, column in entries]
            if complete(entries):
                return entries
    return in_pairs(names)


def _by_numbers(names):
    found = [_NUMBER.findall(name) for name in names]
    alike = len({_NUMBER.sub("#", name).strip().lower() for name in names}) == 1
    if not alike or not found[0]:
        return None
    while len(found[0]) > 1 and len({own[0] for own in found}) == 1 < len(names):
        found = [own[1:] for own in found]  # a number equal in all names is no index
    if len(found[0]) == 1:
        if any(len(own[0]) % 2 for own in found):
            return None
        pairs = [(own[0][: len(own[0]) // 2], own[0][len(own[0]) // 2 :]) for own in found]
    else:
        pairs = [(own[0], own[1]) for own in found if len(own) == 2]
    entries = [(int(row), int(column)) for row, column in pairs if len(row + column) < 10]
    least = min((min(entry) for entry in entries), default=0)
    right = len(entries) == len(names) and least in (0, 1)
    return [(row - least, column - least) for row, column in entries] if right else None


def _by_letters(names):
    found = [_BY_LETTERS.fullmatch(name.strip()) for name in names]
    read = [own for own in found if own is not None]
    if len(read) < len(names) or len({(own[1].lower(), own[4].lower()) for own in read}) != 1:
        return None
    return [("xyz".index(own[2].lower()), "xyz".index(own[3].lower())) for own in read]


def _check_others(names):
    """Refuse entries by names beside columns of something else."""
    patterns = [_NUMBER.sub("#", name).strip().lower() for name in names]
    usual = collections.Counter(pattern for pattern in patterns if "#" in pattern).most_common(1)
    for known in (
        [name for name in names if _BY_LETTERS.fullmatch(name.strip()) is not None],
        [name for name, pattern in zip(names, patterns, strict=True) if usual and pattern == usual[0][0]],
        *([name for name in names if moment(name, glued) is not None] for glued in (False, True)),
    ):
        if 2 < len(known) < len(names) and stated_entries(tuple(known)) is not None:
            raise InputError(
                f"its columns {', '.join([name for name in names if name not in known][:7])} are by their names not "
                f"entries of matrices, as {known[0]}, ... are: say --columns {','.join(known)}."
            )


def _symmetric(table, names, kind, layout):
    whole = kind != "correlations" or layout.chart == "covariance"
    if layout.triangle is None:
        check_scales(names, correlations=not whole)
    entries = stated_entries(names)
    if entries is None:
        if layout.triangle is None:
            _check_others(names)
        if layout.triangle is None and not _all_numbers(len(names), layout.size) and not only_count(names):
            side = math.isqrt(len(names))
            whole_rows = (
                f"--size {side} for whole matrices, or " if side**2 == len(names) and layout.size is None else ""
            )
            raise InputError(
                f"the names of its columns, {', '.join(names[:7])}, do not tell which entries of matrices they are: "
                f"say {whole_rows}--triangle lower (11, 21, 22, 31, ...) or upper (11, 12, 13, ..., 22, ...), by rows; "
                "columns in another order by --columns, too."
            )
        return table, layout
    size = 1 + max(max(entry) for entry in entries)
    places = {entry: place for place, entry in enumerate(entries)}
    if len(entries) == size**2 > 1:
        order = [places[row, column] for row in range(size) for column in range(size)]
        return table[:, order].reshape(-1, size, size), _without_triangle(layout, names, None)
    pairs = {(max(entry), min(entry)): place for place, entry in enumerate(entries)}
    lower = [(row, column) for row in range(size) for column in range(row + 1)]
    strict = [(row, column) for row, column in lower if row > column]
    if set(pairs) == set(strict) and len(entries) == len(strict):
        if whole:
            of_correlations = "say --manifold correlations" if kind != "correlations" else "leave out --as covariance"
            raise InputError(
                f"its columns {names[0]}, ... are what is off the diagonal of matrices by their names: "
                f"{of_correlations}, or add the diagonal."
            )
        return table[:, [pairs[entry] for entry in strict]], _without_triangle(layout, names, _triangle_of(entries))
    layout = _without_triangle(layout, names, _triangle_of(entries))
    if whole:
        return table[:, [pairs[entry] for entry in lower]], layout
    # With the diagonal, which must be 1.
    order = [pairs[max(row, column), min(row, column)] for row in range(size) for column in range(size)]
    return table[:, order].reshape(-1, size, size), layout


def _all_numbers(width, size) -> bool:
    """Return whether rows hold all numbers of matrices, which have one order, or of 1 x 1 or 2 x 2 correlations."""
    side = math.isqrt(width)
    triangular = math.isqrt(8 * width + 1) ** 2 == 8 * width + 1
    return side**2 == width and (width == 1 or size == side or not triangular)


def _triangle_of(entries):
    """Return "lower" or "upper" for a triangle in that order by rows, else None."""
    pairs = [(max(entry), min(entry)) for entry in entries]
    orders = {"lower": sorted(pairs), "upper": sorted(pairs, key=lambda pair: pair[::-1])}
    return next((name for name, order in orders.items() if pairs == order), None)


def _without_triangle(layout, names, stated):
    """Return the layout without its triangle; refuse one that the names contradict, except for 2 x 2 matrices."""
    if layout.triangle not in (None, stated) and len(names) > 3:
        raise _contradiction(f"--triangle {layout.triangle}", names)
    return layout.having(triangle=None)


def _turned(table, names, layout):
    """Reorder rotations or poses by named matrix entries, quaternion parts, rotation vectors or angles."""
    names = tuple(_UNIT.sub("", name) for name in names)
    moved = _translation(names)
    rest = [place for place in range(len(names)) if place not in moved]
    if layout.chart in (None, "matrix", "affine"):
        entries = entries_in(names)
        if entries is not None and len(entries) in (9, 12, 16):
            return table[:, np.argsort([4 * row + column for row, column in entries])], layout
        entries = entries_in(tuple(names[place] for place in rest)) if len(moved) == 3 and len(rest) == 9 else None
        if entries is not None:
            turned = [rest[place] for place in np.argsort([3 * row + column for row, column in entries])]
            return table[:, [x for k in range(3) for x in (*turned[3 * k : 3 * k + 3], moved[k])]], layout
    if len(names) in (4, 7) and len(rest) == 4 and layout.chart in (None, "wxyz", "xyzw"):
        return _quaternions(table, names, moved, rest, layout)
    if len(names) in (3, 6) and len(rest) == 3 and layout.chart is not None:
        return _three_numbers(table, names, moved, rest, layout)
    return table, layout


def _translation(names) -> list[int]:
    """Return the places of the translation's x, y and z; an empty list if they are ambiguous."""
    if len(names) < 6:
        return []
    found = {place: match for place, name in enumerate(names) if (match := _PLACE.fullmatch(name.strip())) is not None}
    explicit = {place: match for place, match in found.items() if match[2]}
    for own in (explicit, found):
        parts = {match[3].lower(): place for place, match in own.items()}
        if len(own) == 3 == len(parts) and sorted(parts) in (["x", "y", "z"], ["1", "2", "3"]):
            return [parts[part] for part in sorted(parts)]
    groups: dict[str, dict[str, int]] = {}
    for place, match in found.items():
        groups.setdefault(match[1] or "", {})[match[3].lower()] = place
    for own in groups.values():
        others = [place for place in range(len(names)) if place not in own.values()]
        if sorted(own) == ["x", "y", "z"] and len(others) == 4 and _parts([names[place] for place in others], others):
            return [own[axis] for axis in "xyz"]
    bare = {name.strip().lower(): place for place, name in enumerate(names)}
    return [bare[axis] for axis in "xyz"] if set("xyz") <= set(bare) else []


def _quaternions(table, names, moved, rest, layout):
    parts = _parts([names[place] for place in rest], rest)
    if "angle" in [names[place].strip().lower() for place in rest]:
        raise InputError(
            f"its columns {', '.join(names[place] for place in rest)} are an axis and an angle by their names, not a "
            "quaternion: multiply the axis by the angle in radians, and say --as rotvec."
        )
    if sorted(parts) != ["w", "x", "y", "z"]:
        if moved and moved != [0, 1, 2]:
            raise _contradiction(f"--as {layout.chart or 'wxyz'}, after the translation,", names)
        return table, layout
    order = "".join(sorted(parts, key=lambda letter: parts[letter]))
    if layout.chart not in (None, order):
        raise _contradiction(f"--as {layout.chart}", names)
    return table[:, [*moved, *(parts[letter] for letter in "wxyz")]], layout.having(chart="wxyz")


def _parts(names, places) -> dict[str, int]:
    """Return the places of w, x, y, z in names that differ in one letter; empty if there are none."""
    words = [_UNIT.sub("", name.strip().lower()) for name in names]
    for found in _PART.finditer(words[0]):
        before, after = words[0][: found.start()], words[0][found.end() :]
        letters = [word[len(before) : len(word) - len(after)] for word in words]
        alike = all(word == before + letter + after for word, letter in zip(words, letters, strict=True))
        read = [_REAL_FIRST.get(letter) for letter in letters]
        if alike and sorted(map(str, read)) == ["w", "x", "y", "z"]:
            return {str(letter): place for letter, place in zip(read, places, strict=True)}
    return {}


def _three_numbers(table, names, moved, rest, layout):
    """Reorder rotation vectors by named axes, check Euler angles against them; put the translation first."""
    words = [names[place].strip().lower() for place in rest]
    axes = [_TURN.get(word) or (word[-1] if word[-1:] in ("x", "y", "z") else None) for word in words]
    if sorted(axes, key=str) == ["x", "y", "z"]:
        if layout.chart == "rotvec":
            rest = [rest[axes.index(axis)] for axis in "xyz"]
        elif layout.chart.lower()[6:9] != "".join(map(str, axes)):
            raise _contradiction(f"--as {layout.chart}", names)
    return table[:, [*moved, *rest]], layout


def _contradiction(option, names):
    return InputError(
        f"{option} contradicts the names of the columns, {', '.join(names[:7])}; leave it out to follow the names, "
        "give another, or name the columns otherwise."
    )
