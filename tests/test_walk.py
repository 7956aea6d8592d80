"""No release takes a longer walk through the code than docs/architecture.md says."""

import pathlib

import pytest
import walk
from strategies import exhaustive

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "architecture.md"
#: Discrete noise is drawn by loops of random length, and other versions of JAX take records apart otherwise.
SLACK = 0.05


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
        assert own <= most * (1.0 + SLACK), f"{name}: {what} were {most}, and are {own}"
        assert own >= most * (1.0 - SLACK) - 1.0, f"{name}: {what} are {own} now; docs/architecture.md says {most}"


def test_a_longer_walk_is_noticed():
    def release():
        for _ in range(2):
            CASES["LaplaceMechanism"]()

    assert walk.Walk().of(release)[0] > ceilings()["LaplaceMechanism"][0] * (1.0 + SLACK)
