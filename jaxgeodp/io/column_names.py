"""What the names of columns say of a record, which is public: names that contradict the manifold are refused."""

import re

from jaxgeodp.checks import InputError

# x1, y_2, "z 3", lm4.x, landmark_5_z: which coordinate of which landmark.
_COORDINATE = re.compile(r"(?:.*[^a-z])?([xyz])[ _.\[(-]*\d*[\])]?", re.IGNORECASE)
# Of names in a sentence.
_MOST = 30


def check_names(kind: str, names: tuple[str, ...]) -> None:
    """Refuse names of the columns of a record that a manifold's records do not have.

    Args:
        kind: the manifold's short name; see `manifolds.names`.
        names: those of a record's columns, in their order.

    Raises:
        ValueError: landmarks with a third coordinate as planar ones, landmarks in space that have none, or coordinates
            in another order.
    """
    axes = [axis_of(name) for name in names]
    if None in axes or not {"x", "y"} <= set(axes):
        return
    order = axes[: 3 if "z" in axes else 2]
    if len(axes) % len(order) == 0 and axes == list("xyz"[: len(order)]) * (len(axes) // len(order)):
        order = []
    third = [name for name, axis in zip(names, axes, strict=True) if axis == "z"]
    if kind == "shapes" and third:
        raise InputError(
            f"its column '{third[0]}' is the third coordinate of a landmark by its name: say --manifold shapes3d for "
            "landmarks in space, or choose those of the plane with --columns."
        )
    if kind == "shapes3d" and not third:
        raise InputError(
            "its columns are x and y of landmarks by their names, without z: say --manifold shapes for landmarks in "
            "the plane."
        )
    if kind in ("shapes", "shapes3d") and order:
        columns = [
            [name for name, axis in zip(names, axes, strict=True) if axis == own] for own in "xyz" if own in axes
        ]
        right = [name for landmark in zip(*columns, strict=False) for name in landmark]
        shown = ",".join(right) if len(right) <= _MOST else f"{','.join(right[: len(columns) * 2])},..."
        raise InputError(
            f"its columns are {', '.join(names[:4])}, ... by their names, but a record is all coordinates of one "
            f"landmark after the other: say --columns {shown}."
        )


def axis_of(name: str) -> str | None:
    """The coordinate, x, y or z, that a name says; None where it says none."""
    found = _COORDINATE.fullmatch(name.strip())
    return None if found is None else found[1].lower()
