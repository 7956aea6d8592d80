"""No release takes a longer walk through the code than docs/architecture.md says."""

import pathlib

import pytest
from strategies import exhaustive

from benchmarks.tools import walk
from jaxgeodp.checks import many

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "architecture.md"


def ceilings():
    lines = PAGE.read_text().splitlines()
    start = lines.index(f"| release | {' | '.join(walk.COUNTED)} |") + 2
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start : start + len(CASES)]]
    return {row[0]: [int(cell) for cell in row[1:]] for row in rows}


CASES = dict(walk.cases())
# What compiles for long, and walks as others do.
LONG = ("KNGMechanism", "LocatedMechanism")


@pytest.mark.parametrize("name", [*(name for name in CASES if name not in LONG), *exhaustive(*LONG)])
def test_a_walk_is_as_long_as_the_page_says(name):
    found, said = walk.Walk().of(CASES[name]), ceilings()[name]
    for what, own, most in zip(walk.COUNTED, found, said, strict=True):
        assert own <= most, f"{name}: {what} were {most}, and are {own}"
        assert own == most, f"{name}: {what} are {own} now; docs/architecture.md says {most}"


def test_a_walk_that_is_longer_by_a_call_is_noticed():
    def release():
        CASES["LaplaceMechanism"]()
        many((2, 3))

    assert walk.Walk().of(release)[0] == ceilings()["LaplaceMechanism"][0] + 1
