"""Checks of public column names: names that contradict the manifold are refused."""

import re
from typing import NamedTuple

from jaxgeodp.checks import InputError

# x1, y_2, "z 3", lm4.x, landmark_5_z: which coordinate of which landmark.
_COORDINATE = re.compile(r"((?:.*[^a-z])?)([xyz])([ _.\[(-]*\d*[\])]?)", re.IGNORECASE)
_TIME = ("t", "time", "x0", "x_0")
# Most names listed in a message.
_MOST = 150
_NUMBER = re.compile(r"\d+")
_POLAR, _SIZES = ("theta", "phi", "colatitude", "colat"), ("r", "rho", "radius")


class _Name(NamedTuple):
    axis: str  # x, y or z
    landmark: tuple[str, str]  # what is left of the name


def check_names(kind: str, names: tuple[str, ...], chosen: bool = False, chart: str | None = None) -> None:
    """Refuse column names that do not fit the manifold's records.

    Args:
        kind: the manifold's short name; see `manifolds.names`.
        names: those of a record's columns, in their order.
        chosen: whether ``--columns`` says this order by names, which is then taken.
        chart: what ``--as`` says.

    Raises:
        ValueError: landmarks with a third coordinate as planar ones, landmarks in space that have none, or coordinates
            in another order.
    """
    if kind == "hyperbolic" and not chosen:
        _check_first(names)
        if chart is not None and [name.strip().lower() for name in names] == ["y", "x"]:
            raise InputError("its columns are y, x by their names: say --columns x,y.")
    if kind in ("sphere", "axes", "hyperbolic") and not chosen and chart is None:
        _check_vector(kind, names)
    found = _read_all(names)
    read = [one for one in found if one is not None]
    axes = "".join(one.axis for one in read)
    if kind not in ("shapes", "shapes3d") or not {"x", "y"} <= set(axes) or len(read) < 4:
        return
    third = axes.find("z")
    if kind == "shapes" and third >= 0:
        name = next(name for name, own in zip(names, found, strict=True) if own is not None and own.axis == "z")
        raise InputError(
            f"its column '{name}' is by its name the third coordinate of a landmark: say --manifold shapes3d for "
            "landmarks in space, or choose those of the plane with --columns."
        )
    if kind == "shapes3d" and third < 0:
        raise InputError(
            "its columns are x and y of landmarks by their names, without z: say --manifold shapes for landmarks in "
            "the plane."
        )
    others = [name for name, own in zip(names, found, strict=True) if own is None]
    if others and not chosen:
        good = [name for name, own in zip(names, found, strict=True) if own is not None]
        shown = f"say --columns {','.join(good)}" if len(good) <= _MOST else "choose the others with --columns"
        raise InputError(
            f"its columns {', '.join(others[:4])}{', ...' if len(others) > 4 else ''} are by their names not "
            f"coordinates of landmarks, as the others are: {shown}."
        )
    if not chosen:
        _check_order(names, read, "xy" if third < 0 else "xyz")


def are_coordinates(names: tuple[str, ...]) -> bool:
    """Return whether every name denotes a landmark coordinate."""
    found = _read_all(names)
    return bool(found) and all(own is not None for own in found)


def order_of_axes(names: tuple[str, ...]) -> list[int] | slice:
    """Return the places of a landmark table's columns in the order x, y, z; all columns if names do not tell."""
    found = [_read(name) for name in names]
    known = [own for own in found if own is not None]
    alike = len({own.landmark for own in known}) == 1 and len({own.axis for own in known}) == len(names)
    if len(known) < len(names) or not alike:
        return slice(None)
    return sorted(range(len(names)), key=lambda place: known[place].axis)


def _check_first(names):
    """Refuse time, or x0, in any place but the first."""
    first = [place for place, name in enumerate(names) if name.strip().lower() in _TIME]
    if len(first) == 1 and first[0] != 0:
        right = [names[first[0]], *(name for place, name in enumerate(names) if place != first[0])]
        raise InputError(
            f"its column '{right[0]}' is the first coordinate of a hyperboloid by its name: say --columns "
            f"{','.join(right)}."
        )


def _check_vector(kind, names):
    """Refuse x, y, z, or x0, x1, ..., in another order, or polar angles."""
    words = [name.strip().lower() for name in names]
    if kind != "hyperbolic" and set(words) & set(_POLAR) and set(words) <= {*_POLAR, *_SIZES}:
        raise InputError(
            f"its columns {', '.join(names)} are angles by their names: write degrees, 90 - theta and phi, and say "
            f"--degrees lat,lon; if they are coordinates, name all with --columns {','.join(names)}."
        )
    numbers = [_NUMBER.findall(word) for word in words]
    counted = len({_NUMBER.sub("#", word) for word in words}) == 1 and all(len(own) == 1 for own in numbers)
    if counted:
        order = sorted(range(len(names)), key=lambda place: int(numbers[place][0]))
    else:
        found = [_read(name) for name in names]
        known = [place for place, own in enumerate(found) if own is not None]
        labels = {own.landmark for own in found if own is not None}
        order = sorted(known, key=lambda place: str(found[place]))
        axes = "".join(own.axis for place in order if (own := found[place]) is not None)
        others = [word for place, word in enumerate(words) if place not in known]
        four = len(others) == 1 and len(known) == 3 and _is_beside(others[0], words[known[0]])
        if len(labels) != 1 or axes not in ("xyz", "xy") or (axes == "xy" and others) or four or kind == "hyperbolic":
            return
    if order != list(range(len(names))):
        raise InputError(
            f"its columns {', '.join(names[:6])} are not the coordinates in their order by their names: say --columns "
            f"{','.join(names[place] for place in order)}, or name all in another order."
        )


def _is_beside(word, other) -> bool:
    """Return whether a name is the w beside an x, y or z: q_w, orientation.w."""
    differing = [one for one, two in zip(word, other, strict=False) if one != two]
    return len(word) == len(other) and differing == ["w"]


def _check_order(names, read, order):
    """Refuse landmarks whose coordinates are not adjacent, in the order of the axes."""
    landmarks: dict[tuple[str, str], dict[str, str]] = {}
    for name, own in zip(names, read, strict=True):
        landmarks.setdefault(own.landmark, {})[own.axis] = name
    # Only where the rest of the names tells one landmark from the other.
    whole = len(names) == len(landmarks) * len(order) and all(len(own) == len(order) for own in landmarks.values())
    counted = [_NUMBER.findall("".join(label)) for label in landmarks]
    texts = {_NUMBER.sub("#", "|".join(label)) for label in landmarks}
    ordered = list(landmarks.values())
    if len(texts) == 1 and all(len(own) == 1 for own in counted):
        ordered = [own for _, own in sorted(zip(counted, ordered, strict=True), key=lambda pair: int(pair[0][0]))]
    right = [own[axis] for own in ordered for axis in order] if whole else []
    sequence = "".join(own.axis for own in read)
    if list(names) == right or (not whole and sequence == order * (len(sequence) // len(order))):
        return
    short = 0 < len(right) <= _MOST
    shown = f"say --columns {','.join(right)}" if short else "choose them in that order with --columns"
    raise InputError(
        f"its columns are {', '.join(names[:4])}, ... by their names, but a record is {', '.join(order)} of one "
        f"landmark after the other: {shown}."
    )


def _read_all(names: tuple[str, ...]) -> list[_Name | None]:
    """Parse each name as a coordinate, alone or from names that differ from it in x, y or z only."""
    found = [_read(name) for name in names]
    if len([own for own in found if own is not None]) > len(names) / 2:
        return found
    beside = [_beside(name, {name.lower() for name in names}) for name in names]
    return beside if all(own is not None for own in beside) else found


def _beside(name, names):
    """Parse a name as a coordinate if its x and y counterparts are also present; else None."""
    word = name.lower()
    for place, letter in enumerate(word):
        others = [word[:place] + axis + word[place + 1 :] for axis in "xy"]
        if letter in "xyz" and all(other in names for other in others):
            return _Name(letter, (word[:place], word[place + 1 :]))
    return None


def _read(name: str) -> _Name | None:
    """Parse a name as a coordinate; None if it is not one."""
    found = _COORDINATE.fullmatch(name.strip())
    return None if found is None else _Name(found[2].lower(), (found[1], found[3]))
