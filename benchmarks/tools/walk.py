"""The walk of one release through the code: what somebody has to read to know what happens.

    python -m benchmarks.tools.walk

Prints, for releases whose programs are compiled, the calls of functions of the package, how many functions and files
they are in, how often the walk changes the file, and the frames between `release` and the first reading of entropy for
a draw. Entropy is the same each time, as loops that draw integers are of random length.
With another version of the package on PYTHONPATH it prints that version's figures. docs/architecture.md has the table;
tests/test_walk.py lets no walk become longer than it says.
"""

import functools
import pathlib
import random
import sys
from unittest.mock import patch

import numpy as np

import jaxgeodp
from jaxgeodp import (
    SPD,
    Euclidean,
    GeodesicBall,
    KNGMechanism,
    LaplaceMechanism,
    LocatedMechanism,
    Sphere,
    TangentLaplace,
    WrappedLaplace,
)
from jaxgeodp.inference import describe
from jaxgeodp.surfaces import FaceMeanMechanism

PACKAGE = pathlib.Path(jaxgeodp.__file__).parent
#: What is counted; heads of the table.
COUNTED = ("calls", "functions", "files", "changes of file", "frames to the noise")
# What reads entropy for a draw: of a program, or of integers.
_NOISE = ("system_key", "with_noise", "in_secret")


class Walk:
    """Profiles the functions of the package that run in this thread."""

    def __init__(self):
        self.calls, self.functions, self.files = 0, set(), []
        self.depth, self.frames = 0, None

    def __call__(self, frame, event, argument):
        code = frame.f_code
        path = pathlib.Path(code.co_filename)
        if event not in ("call", "return") or PACKAGE not in path.parents or code.co_name.startswith("<"):
            return
        if event == "return":
            self.depth -= 1
            return
        self.depth += 1
        self.calls += 1
        self.functions.add((path, code.co_qualname if hasattr(code, "co_qualname") else code.co_name))
        self.files.append(path)
        if code.co_name in _NOISE and self.frames is None:
            self.frames = self.depth

    def of(self, release):
        """The walk of a second release, whose programs are compiled, with entropy that is the same each time."""
        release()
        words, integers = (random.Random(kind).randbytes for kind in ("words", "integers"))
        with patch("os.urandom", words), patch("random._urandom", integers):
            sys.setprofile(self)
            try:
                release()
            finally:
                sys.setprofile(None)
        switches = sum(a != b for a, b in zip(self.files, self.files[1:], strict=False))
        return self.calls, len(self.functions), len(set(self.files)), switches, self.frames


def cases():
    """Names and releases."""
    for mechanism, data in _mechanisms():
        yield type(mechanism).__name__, functools.partial(mechanism.release, data)
    ball = GeodesicBall(Euclidean(2), np.zeros(2), 1.0)
    yield "describe", functools.partial(describe, np.zeros((60, 2)), ball.manifold, mu=2.0, ball=ball)


def _mechanisms():
    cap = GeodesicBall(Sphere(2), np.array([0.6, 0.0, -0.8]), 0.3)
    matrices = GeodesicBall(SPD(2), np.eye(2), 1.0)
    yield KNGMechanism(cap, 2.0), np.tile(cap.center, (60, 1))
    yield LaplaceMechanism(matrices, 5.0), np.tile(matrices.center, (60, 1, 1))
    yield WrappedLaplace(cap, 2.0), np.tile(cap.center, (60, 1))
    yield TangentLaplace(cap, 2.0), np.tile(cap.center, (60, 1))
    # Integers alone: how many steps a search in real numbers has depends on what is drawn.
    yield LocatedMechanism(Sphere(2), "tangent", epsilon=8.0), np.tile(cap.center, (600, 1))
    yield FaceMeanMechanism(np.zeros((2, 16, 3)), 1.0), np.zeros((60, 2, 16, 3))


def main():
    """Print the table."""
    print(f"| release | {' | '.join(COUNTED)} |\n|---|---|---|---|---|---|")
    for name, release in cases():
        print(f"| {name} | {' | '.join(map(str, Walk().of(release)))} |")


if __name__ == "__main__":
    main()
