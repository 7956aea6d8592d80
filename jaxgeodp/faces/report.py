"""What each mesh needed during processing, for its custodian only: nothing of it may enter a release."""

import csv
import io
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxgeodp.meshes.repair import RepairReport

_REPAIRS = tuple(name for name in RepairReport._fields if name != "numbering")


class FaceReport(NamedTuple):
    """How one face was processed; private."""

    note: str = ""  #: why it is not used, or what else happened
    used: bool = True  #: else it counts as the centre of the release
    distance: float | None = None  #: root mean square distance from the template, faces of area 1
    inverted: bool | None = None  #: all triangles were clockwise seen from outside, and counted as turned
    flips: int | None = None  #: triangles that the map folded over, before it was mended
    distortion: float | None = None  #: mean change of angles by the map, degrees
    map: str = ""  #: method of the map
    repairs: dict[str, int] | None = None  #: counts of `RepairReport`, of a mesh from a file

    def __str__(self):
        parts = [f"{name}={value:.3g}" for name, value in self._measures().items() if value]
        return ", ".join([*parts, *([self.note] if self.note else [])]) or "nothing needed"

    def _measures(self):
        return {
            "distance": self.distance,
            "inverted": self.inverted,
            "flips": self.flips,
            "distortion": self.distortion,
            **(self.repairs or {}),
        }


def report_table(names: Sequence[str], reports: Sequence[FaceReport], clipped=None) -> str:
    """Return the report of a folder as CSV text, a line for each face.

    Args:
        names: of the faces.
        reports: as many.
        clipped: which part of each face's deviation a bound takes away, if it is known; NaN of a face without one.
    """
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(
        ["face", "used", "distance", "clipped", "inverted", "flips", "distortion", "map", *_REPAIRS, "note"]
    )
    for number, (name, report) in enumerate(zip(names, reports, strict=True)):
        share = None if clipped is None or np.isnan(clipped[number]) else clipped[number]
        repairs = report.repairs or {}
        cells = [report.distance, share, report.inverted, report.flips, report.distortion, report.map]
        cells += [repairs.get(column) for column in _REPAIRS]
        writer.writerow([name, "yes" if report.used else "no", *map(_cell, cells), report.note])
    return table.getvalue()


def _cell(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else value
