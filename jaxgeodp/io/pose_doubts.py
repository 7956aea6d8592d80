"""Checks for misread rotations, poses and bases; see `doubts`."""

from collections.abc import Iterator

import numpy as np

from jaxgeodp.io.charts import PERIODS
from jaxgeodp.io.seen import Seen, quantiles


def of_rotations(seen: Seen) -> Iterator[str]:
    """Yield doubts about angle units, quaternions, transposed 4 x 4 matrices and invalid rotations."""
    chart = seen.layout.chart or ""
    if seen.table.ndim == 2 and (chart.startswith("euler") or chart == "rotvec"):
        yield from _of_units(seen.table[:, -3:], chart)
    if seen.table.ndim == 2 and chart in ("wxyz", "xyzw"):
        yield from _of_quaternions(seen.table)
    if seen.table.ndim == 2 and seen.table.shape[1] == 16 and not chart and _is_last(seen.table):
        yield "Numbers 4, 8 and 12 are 0 and the translation stands last: 4 x 4 matrices by columns? Transpose them."
    blocks = seen.records[..., :3]
    finite = np.isfinite(blocks).all(axis=(1, 2))
    blocks, usable = blocks[finite], seen.usable[finite]
    if not len(blocks) or usable.mean() > 0.5:
        return
    gram = blocks.swapaxes(1, 2) @ blocks
    scales = np.trace(gram, axis1=1, axis2=2) / 3.0
    scaled = np.abs(gram - scales[:, None, None] * np.eye(3)).max(axis=(1, 2)) < 0.02 * scales
    if np.mean(scaled & (np.linalg.det(blocks) < 0.0)) > 0.5:
        yield "Most matrices are reflections: their determinant is negative. Is an axis counted the other way?"
    elif scaled.mean() > 0.5:
        scale = np.sqrt(np.median(scales))
        yield f"Most matrices are rotations times a scale, {scale:.4g} in the middle: divide by it."
    else:
        yield "Most matrices are no rotations: their columns are not orthonormal. Numbers of something else?"


def _of_units(angles, chart) -> Iterator[str]:
    largest = np.max(np.abs(angles), initial=0.0, where=np.isfinite(angles))
    if chart.endswith("degrees") and 0.0 < largest <= 1.01 * PERIODS["radians"]:
        yield f"Angles are at most {largest:.3g}: are they radians? Degrees are read, as --as says."
    elif not chart.endswith("degrees") and largest > 2.0 * PERIODS["radians"]:
        yield f"Angles are up to {largest:.3g}: are they degrees? Radians are read."


def _of_quaternions(table) -> Iterator[str]:
    """Yield a doubt if quaternions are not of length 1, or seem to precede the translation."""
    lengths, before = (np.linalg.norm(own, axis=1) for own in (table[:, -4:], table[:, :4]))
    off, off_before = (np.mean(np.abs(own - 1.0) > 0.05) for own in (lengths, before))
    if off < 0.5:
        return
    if table.shape[1] == 7 and off_before < 0.05:
        yield "The first four numbers have length 1, not the last four: quaternions first? Say --columns 5-7,1-4."
    else:
        yield f"Lengths of the quaternions: {quantiles(lengths[np.isfinite(lengths)])}; are they quaternions?"


def _is_last(table) -> bool:
    """Return whether rows are 4 x 4 matrices with the translation in the last row."""
    known = table[np.isfinite(table).all(axis=1)]
    return len(known) > 0 and bool(np.all(known[:, [3, 7, 11]] == 0.0)) and bool(np.all(known[:, 15] == 1.0))


def of_subspaces(seen: Seen) -> Iterator[str]:
    """Yield a doubt if bases are orthonormal only when rows are read column by column."""
    table, shape = seen.table, seen.records.shape[1:]
    if table.ndim != 2 or table.dtype.kind == "c":
        return
    known = table[np.isfinite(table).all(axis=1)]
    one, other = (
        np.mean(np.abs(own.swapaxes(1, 2) @ own - np.eye(shape[1])).max(axis=(1, 2), initial=0.0) < 1e-3)
        for own in (known.reshape(-1, *shape), known.reshape(-1, *shape[::-1]).swapaxes(1, 2))
    )
    if other > 0.5 > one:
        order = [j * shape[0] + i for i in range(shape[0]) for j in range(shape[1])]
        columns = ",".join(str(1 + (place if seen.places is None else seen.places[place])) for place in order)
        yield f"Bases are orthonormal if a row is one column after the other: then say --columns {columns}."
