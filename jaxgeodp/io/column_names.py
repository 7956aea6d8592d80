"""What the names of columns say of a record, which is public: names that contradict the manifold are refused."""

import re
from typing import NamedTuple

from jaxgeodp.checks import InputError

# x1, y_2, "z 3", lm4.x, landmark_5_z: which coordinate of which landmark.
_COORDINATE = re.compile(r"((?:.*[^a-z])?)([xyz])([ _.\[(-]*\d*[\])]?)", re.IGNORECASE)
_TIME = ("t", "time", "x0", "x_0")
# Of names in a sentence.
_MOST = 30


class _Name(NamedTuple):
    axis: str  # x, y or z
    landmark: tuple[str, str]  # what is left of the name


def check_names(kind: str, names: tuple[str, ...], chosen: bool = False, chart: str | None = None) -> None:
    """Refuse names of the columns of a record that a manifold's records do not have.

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
    found = [_read(name) for name in names]
    read = [one for one in found if one is not None]
    axes = "".join(one.axis for one in read)
    if kind not in ("shapes", "shapes3d") or len(read) < len(found) or not {"x", "y"} <= set(axes):
        return
    third = axes.find("z")
    if kind == "shapes" and third >= 0:
        raise InputError(
            f"its column '{names[third]}' is the third coordinate of a landmark by its name: say --manifold shapes3d "
            "for landmarks in space, or choose those of the plane with --columns."
        )
    if kind == "shapes3d" and third < 0:
        raise InputError(
            "its columns are x and y of landmarks by their names, without z: say --manifold shapes for landmarks in "
            "the plane."
        )
    if not chosen:
        _check_order(names, read, "xy" if third < 0 else "xyz")


def order_of_axes(names: tuple[str, ...]) -> list[int] | slice:
    """The places of the columns of a table of landmarks, x before y before z; all where names say no more than that."""
    found = [_read(name) for name in names]
    known = [own for own in found if own is not None]
    alike = len({own.landmark for own in known}) == 1 and len({own.axis for own in known}) == len(names)
    if len(known) < len(names) or not alike:
        return slice(None)
    return sorted(range(len(names)), key=lambda place: known[place].axis)


def _check_first(names):
    """That time, or x0, stands first."""
    first = [place for place, name in enumerate(names) if name.strip().lower() in _TIME]
    if len(first) == 1 and first[0] != 0:
        right = [names[first[0]], *(name for place, name in enumerate(names) if place != first[0])]
        raise InputError(
            f"its column '{right[0]}' is the first coordinate of a hyperboloid by its name: say --columns "
            f"{','.join(right)}."
        )


def _check_order(names, read, order):
    """That all coordinates of one landmark stand side by side, in the order of the axes."""
    landmarks: dict[tuple[str, str], dict[str, str]] = {}
    for name, own in zip(names, read, strict=True):
        landmarks.setdefault(own.landmark, {})[own.axis] = name
    # Only where the rest of the names tells one landmark from the other.
    whole = len(names) == len(landmarks) * len(order) and all(len(own) == len(order) for own in landmarks.values())
    right = [own[axis] for own in landmarks.values() for axis in order] if whole else []
    sequence = "".join(own.axis for own in read)
    if list(names) == right or (not whole and sequence == order * (len(sequence) // len(order))):
        return
    short = 0 < len(right) <= _MOST
    shown = f"say --columns {','.join(right)}" if short else "choose them in that order with --columns"
    raise InputError(
        f"its columns are {', '.join(names[:4])}, ... by their names, but a record is {', '.join(order)} of one "
        f"landmark after the other: {shown}."
    )


def _read(name: str) -> _Name | None:
    """The coordinate that a name says; None where it says none."""
    found = _COORDINATE.fullmatch(name.strip())
    return None if found is None else _Name(found[2].lower(), (found[1], found[3]))
