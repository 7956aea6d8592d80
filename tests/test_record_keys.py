"""docs/record.md names every entry of a record, where it comes from, and whether it is public."""

import fnmatch
import json
import pathlib

import numpy as np
import pytest
import test_recorded
from test_recorded import CURVES, PERSONS

from jaxgeodp import Euclidean, GeodesicBall, LaplaceMechanism, LocatedMechanism, TangentLaplace
from jaxgeodp.releases.groups import release_groups

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "record.md"
ROWS = {
    cells[0].strip().strip("`"): cells[3].strip()
    for line in PAGE.read_text().splitlines()
    if line.startswith("| `") and len(cells := line.strip("| ").split(" | ")) == 4
}

GIVEN = "public, given what was released before"
PLANE = GeodesicBall(Euclidean(2), np.zeros(2), 1.0)


def entries(part, name=""):
    """Names of entries as the page writes them, with what they hold."""
    if isinstance(part, dict) and part:
        for key, own in part.items():
            yield from entries(own, f"{name}.{key}" if name else key)
    elif isinstance(part, list) and part and isinstance(part[0], dict):
        for own in part:
            yield from entries(own, f"{name}[]")
    else:
        yield name, part


def row_of(entry):
    """The row that names it, else the longest that its beginning fits."""
    literal = {row: row.replace("[]", "[[][]]") for row in ROWS}
    fitting = [row for row, pattern in literal.items() if fnmatch.fnmatchcase(entry, pattern)]
    return entry if entry in ROWS else max(fitting, key=len, default=None)


def all_records():
    kept = json.loads(test_recorded.PLACE.read_text())
    for name, found in kept.items():
        if name != "here":
            yield from found if isinstance(found, list) else [found]


def test_every_entry_of_every_record_is_on_the_page_and_every_row_is_of_some_record():
    found = {entry for record in all_records() for entry, _ in entries(record)}
    assert {entry for entry in found if row_of(entry) is None} == set()
    unused = ROWS.keys() - {row_of(entry) for entry in found}
    assert unused == {"library.*", "created"}, "which recorded releases leave out"
    assert row_of("created") and row_of("planted") is None and row_of("stages[].planted") == "stages[].*"


def _pair(make, n, seed=0):
    return [make(np.random.default_rng(own).uniform(-0.2, 0.2, (n, 2))) for own in (seed, seed + 1)]


def _groups(data):
    names = np.arange(len(data)) // 150
    return list(release_groups(TangentLaplace(PLANE, 2.0), data, names, [0, 1], persons=PERSONS).values())


RELEASES = {
    "persons": lambda data: TangentLaplace(PLANE, 2.0).release(data, persons=PERSONS),
    "weights": lambda data: LaplaceMechanism(PLANE, 2.0).release(data, weights=1.0 + np.arange(400) % 5),
    "integers": lambda data: TangentLaplace(PLANE, 2.0).release(data, numerics="grid"),
    "search": lambda data: LocatedMechanism(Euclidean(2), "tangent", epsilon=8.0, domain=3.0).release(data),
    "private count": lambda data: TangentLaplace(PLANE, 2.0).release(data, adjacency="add-remove"),
    "groups": _groups,
    "curves": lambda data: CURVES.release(np.repeat(data[:, :, None], 16, axis=2), numerics="grid"),
}


@pytest.mark.parametrize("release", RELEASES.values(), ids=list(RELEASES))
def test_what_is_public_is_the_same_for_other_records(release):
    one, other = ([own.record for own in (r if isinstance(r, list) else [r])] for r in _pair(release, 400))
    for first, second in zip(one, other, strict=True):
        differ = {entry for (entry, a), (_, b) in zip(entries(first), entries(second), strict=True) if a != b}
        before = {"released", GIVEN} if {"count", "stages"} & first.keys() else {"released"}
        assert {entry for entry in differ - {"created"} if ROWS[row_of(entry)] not in before} == set()
        assert "value" in differ
