"""Checks for misread landmarks; see `doubts`."""

from collections.abc import Iterator

import numpy as np

from jaxgeodp.io.column_names import are_coordinates
from jaxgeodp.io.seen import Seen

# A share of specimens that are mirrored by mistake, not by chance.
_MIRRORED = 0.02
# What programs write for missing coordinates.
_MARKS = (-1.0, -9.0, -99.0, -999.0, -9999.0, 999.0, 9999.0)
# Of the variance of distances between landmarks.
_MUCH_LESS = 0.1
# Specimens, and landmarks of each, that are compared.
_MOST, _MOST_LANDMARKS = 200, 40


def of_shapes(seen: Seen) -> Iterator[str]:
    """Yield doubts about missing-value marks, reflected specimens and the order of coordinates."""
    landmarks = seen.records
    if landmarks.dtype.kind == "c":
        landmarks = np.stack([np.real(landmarks), np.imag(landmarks)], axis=-1)
    for mark in _MARKS:
        marked = int(np.any(np.all(landmarks == mark, axis=2), axis=1).sum())
        if marked:
            at = ", ".join([f"{mark:g}"] * landmarks.shape[2])
            yield f"{marked} specimens have landmarks at {at}: missing ones? Write NA, or leave their cells empty."
    shapes = landmarks[seen.usable]
    if len(shapes) < 10:
        return
    if seen.table.ndim == 2 and seen.table.dtype.kind != "c" and not are_coordinates(seen.names):
        yield from _of_orders(seen, shapes)
    shapes = shapes - shapes.mean(axis=1, keepdims=True)
    shapes = shapes / np.linalg.norm(shapes, axis=(1, 2), keepdims=True)
    left, values, right = np.linalg.svd(np.einsum("ki,nkj->nij", shapes[0], shapes))
    signs = np.sign(np.linalg.det(left @ right))
    same = values[:, :-1].sum(axis=1) + signs * values[:, -1]
    other = values[:, :-1].sum(axis=1) - signs * values[:, -1]
    near, far = (np.arccos(np.clip(cosine, -1.0, 1.0)) for cosine in (same, other))
    mirrored = far < 0.5 * near
    clear = mirrored | (near < 0.5 * far)
    count = min(int(mirrored.sum()), len(shapes) - int(mirrored.sum()))
    if count >= max(1, _MIRRORED * len(shapes)) and clear.mean() > 0.8:
        yield (
            f"{count} of {len(shapes)} specimens look mirrored: reflected they are nearer to the others. Left and "
            "right,\n  or an axis that is counted from the other end? Reflect them before, in the file."
        )


def _of_orders(seen, shapes) -> Iterator[str]:
    """Yield orders of the numbers of a row that make specimens much more alike."""
    table = seen.table[seen.usable]
    width, now = table.shape[1], _unlike(shapes)
    ways = []
    for axes, manifold in ((2, "shapes"), (3, "shapes3d")):
        if width % axes == 0 and width > 3 * axes:
            ways.append((table.reshape(len(table), -1, axes), axes, manifold, False))
            ways.append((table.reshape(len(table), axes, -1).swapaxes(1, 2), axes, manifold, True))
    best = min(ways, key=lambda way: _unlike(way[0]), default=None)
    if best is None or not _unlike(best[0]) < _MUCH_LESS * now:
        return
    _, axes, manifold, one_axis_first = best
    order = "all x, then all y" + (", then all z" if axes == 3 else "") if one_axis_first else ", ".join("xyz"[:axes])
    columns = [1 + axis * (width // axes) + place for place in range(width // axes) for axis in range(axes)]
    places = [column if seen.places is None else 1 + seen.places[column - 1] for column in columns]
    way = f" --columns {','.join(map(str, places))}" if one_axis_first else ""
    yield (f"The specimens are much more alike if a row is {order} of landmarks: then say --manifold {manifold}{way}.")


def _unlike(landmarks) -> float:
    """Return how much inter-landmark distances of (n, k, m) vary between specimens.

    They do not depend on how specimens are turned and where they lie, if the order is right.
    """
    points = landmarks[:_MOST]
    if points.shape[1] > _MOST_LANDMARKS:
        points = points[:, :: -(-points.shape[1] // _MOST_LANDMARKS)]
    apart = np.linalg.norm(points[:, :, None] - points[:, None], axis=3)
    return float(np.mean(np.sum((apart - apart.mean(axis=0)) ** 2, axis=(1, 2))))
