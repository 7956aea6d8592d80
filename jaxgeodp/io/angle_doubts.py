"""Checks for misread directions, axes and angles; see `doubts`."""

import itertools
from collections.abc import Iterator

import numpy as np

from jaxgeodp.io.charts import PERIODS, chart_named
from jaxgeodp.io.column_names import are_coordinates
from jaxgeodp.io.seen import Seen, quantiles

# Of the cosine with the principal axis.
_NEAR_AN_AXIS = 0.5


def of_axes(seen: Seen) -> Iterator[str]:
    """Yield doubts about vector lengths, angle units and the order of angles."""
    if seen.layout.angles is not None:
        largest = np.max(np.abs(seen.table), initial=0.0, where=np.isfinite(seen.table))
        if 0.0 < largest <= 1.01 * PERIODS["radians"] and len(seen.table) > 9:
            yield f"Angles are at most {largest:.3g}: are they radians? Degrees are read; convert them."
        yield from _of_hours(seen)
        yield from _of_the_other_order(seen)
        return
    lengths = np.linalg.norm(seen.records, axis=1)
    lengths = lengths[np.isfinite(lengths)]
    if len(lengths) and np.max(np.abs(lengths - 1.0)) > 1e-3:
        yield f"Lengths of the vectors: {quantiles(lengths)}; every record is scaled to length 1."
    if not are_coordinates(seen.names):
        yield from _of_places(seen.table)


def _of_the_other_order(seen: Seen) -> Iterator[str]:
    """Yield a doubt if more records have angles in range in the other order."""
    other = ",".join(reversed(seen.layout.angles or ()))
    fits = int(np.isfinite(chart_named(other).points(seen.table)).all(axis=1).sum())
    if fits > seen.usable.sum():
        yield (
            f"As {seen.layout.chart} {seen.usable.sum()} of {len(seen.table)} records have angles in range, in the "
            f"other order {fits}: say --degrees {other}."
        )


def _of_places(table) -> Iterator[str]:
    """Yield a doubt if coordinates look like latitude and longitude."""
    if table.ndim != 2 or table.shape[1] not in (2, 3):
        return
    low, high = np.nanmin(table, axis=0), np.nanmax(table, axis=0)
    orders = []
    for one, other in itertools.permutations(range(2)):
        small = -90 <= low[one] and high[one] <= 90 and np.nanmax(np.abs(table[:, one])) > 1.5
        if small and -180 <= low[other] and high[other] <= 360 and np.nanmax(np.abs(table[:, other])) > 1.5:
            orders.append("lat,lon" if one == 0 else "lon,lat")
    if orders:
        both = ", whichever it is" if len(orders) == 2 else ""
        columns = " --columns 1-2" if table.shape[1] > 2 else ""
        yield (
            f"Columns 1 and 2 look like latitude and longitude in degrees: say --degrees {' or '.join(orders)}"
            f"{columns}{both}."
        )


def of_directions(seen: Seen) -> Iterator[str]:
    """Yield doubts about directions: lengths, and whether they are axes with both ends present."""
    yield from of_axes(seen)
    lengths = np.linalg.norm(seen.records, axis=1)
    usable = np.isfinite(lengths) & (lengths > 0)
    units = seen.records[usable] / lengths[usable, None]
    if len(units) < 10:
        return
    along = units @ np.linalg.eigh(units.T @ units)[1][:, -1]
    one, other = np.mean(along > _NEAR_AN_AXIS), np.mean(along < -_NEAR_AN_AXIS)
    if min(one, other) > 0.1 and one + other > 0.8:
        of_four = "; quaternions are --manifold rotations --as wxyz or xyzw" if units.shape[1] == 4 else ""
        yield (
            f"{100 * min(one, other):.0f} % of the directions are opposite to the others: if x and -x mean the "
            f"same,\n  they are axes, say --manifold axes{of_four}; else their mean says little."
        )


def of_angles(seen: Seen) -> Iterator[str]:
    """Yield doubts about the unit of angles."""
    if seen.table.ndim == 2 and seen.table.shape[1] == 2 and np.all(np.abs(np.hypot(*seen.table.T) - 1.0) < 1e-3):
        yield "The two columns are cosines and sines: of one angle? Then compute it, or say --manifold 'sphere(1)'."
    unit, table = seen.layout.chart or "radians", seen.table
    largest, turn = np.max(np.abs(table), initial=0.0, where=np.isfinite(table)), PERIODS[unit]
    others = [other for other, period in PERIODS.items() if period >= largest / 2.0 and other != unit]
    if largest > 2.0 * turn:
        way = f"say --as {others[0]}" if others else "and marks of missing ones, leave their cells empty"
        yield f"Angles are up to {largest:.3g} {unit}, several turns: if they are not, {way}."
    elif 0.0 < largest <= turn / 14.0 and len(table) > 9:
        others = [unit for unit, period in PERIODS.items() if largest <= 1.01 * period < turn]
        if others:
            yield (
                f"Angles are at most {largest:.3g} {unit}, a small part of a turn: if they are "
                f"{' or '.join(others)}, say so with --as."
            )
    yield from _of_missing_angles(table, turn)
    yield from _of_orientations(table, turn)


def _of_missing_angles(table, turn) -> Iterator[str]:
    """Yield a doubt if angles of 360 degrees seem to mark missing ones."""
    marks = int(np.sum(np.abs(table) == turn))
    if turn == PERIODS["degrees"] and marks > 1 and np.nanmin(table) < 0.0 and not np.any(table == 0.0):
        yield (
            f"{marks} angles are {turn:g} and none is 0: marks of missing ones, as DSSP writes them? Leave those cells "
            "empty."
        )


def _of_orientations(table, turn) -> Iterator[str]:
    """Yield a doubt if angles half a turn apart seem to be the same."""
    for place, column in enumerate(np.atleast_2d(table.T), 1):
        known = column[np.isfinite(column)] * (2.0 * np.pi / turn)
        if len(known) < 10 or known.min() < 0.0 or known.max() > 1.001 * np.pi:
            continue
        once, twice = (abs(np.mean(np.exp(1j * k * known))) for k in (1, 2))
        if twice > 0.5 and once < 0.5 * twice:
            yield (
                f"Angles of column {place} lie at both ends of half a turn: orientations, for which half a turn is "
                "nothing?\n  Then double them, and halve the value; or give axes of the plane, (cos, sin), to "
                "--manifold axes."
            )


def _of_hours(seen) -> Iterator[str]:
    """Yield a doubt if right ascensions seem to be in hours."""
    if "ra" not in (seen.layout.angles or ()) or len(seen.table) < 10:
        return
    column = seen.table[:, seen.layout.angles.index("ra")]
    if 0.0 <= np.nanmin(column) and np.nanmax(column) <= PERIODS["hours"]:
        yield f"Right ascensions are {np.nanmin(column):.3g} to {np.nanmax(column):.3g}: hours? Degrees are read."
