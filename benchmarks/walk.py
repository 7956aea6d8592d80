"""The walk of one release through the code: what somebody has to read to know what happens.

`python benchmarks/walk.py` prints, for releases whose programs are compiled, the calls of functions of the package, how
many functions and files they are in, how often the walk changes the file, the frames between `release` and the
reading of entropy, and how often the law for n records is worked out. With another version of the package on PYTHONPATH
it prints that version's figures.
"""

import collections
import pathlib
import sys

import numpy as np

import jaxgeodp
from jaxgeodp import SPD, GeodesicBall, KNGMechanism, LaplaceMechanism, Sphere, WrappedLaplace
from jaxgeodp.privacy import entropy
from jaxgeodp.surfaces import FaceMeanMechanism

PACKAGE = pathlib.Path(jaxgeodp.__file__).parent
# What works out scale, support and theorem for n records.
LAWS = ("law", "calibrate")


class Walk:
    """Profiles the functions of the package that run in this thread."""

    def __init__(self):
        self.calls, self.functions, self.files = 0, set(), []
        self.laws, self.depth, self.frames = collections.Counter(), 0, None

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
        if code.co_name in LAWS and type(frame.f_locals.get("self")).__name__ == self.owner:
            self.laws[code.co_name] += 1
        if code.co_name == "system_key":
            self.frames = self.depth

    def of(self, mechanism, data):
        """The walk of a second release, whose programs are compiled."""
        self.owner = type(mechanism).__name__
        mechanism.release(data)
        sys.setprofile(self)
        try:
            mechanism.release(data)
        finally:
            sys.setprofile(None)
        switches = sum(a != b for a, b in zip(self.files, self.files[1:], strict=False))
        return self.calls, len(self.functions), len(set(self.files)), switches, self.frames, sum(self.laws.values())


def cases():
    """Mechanisms and records."""
    cap = GeodesicBall(Sphere(2), np.array([0.6, 0.0, -0.8]), 0.3)
    matrices = GeodesicBall(SPD(2), np.eye(2), 1.0)
    yield KNGMechanism(cap, 2.0), np.tile(cap.center, (60, 1))
    yield LaplaceMechanism(matrices, 5.0), np.tile(matrices.center, (60, 1, 1))
    yield WrappedLaplace(cap, 2.0), np.tile(cap.center, (60, 1))
    yield FaceMeanMechanism(np.zeros((2, 16, 3)), 1.0), np.zeros((60, 2, 16, 3))


def main():
    """Print the table."""
    assert hasattr(entropy, "system_key")
    print(f"jaxgeodp {jaxgeodp.__version__}\n")
    print("| release | calls | functions | files | changes of file | frames to the noise | laws for n |")
    print("|---|---|---|---|---|---|---|")
    for mechanism, data in cases():
        numbers = Walk().of(mechanism, data)
        print(f"| {type(mechanism).__name__} | {' | '.join(map(str, numbers))} |")


if __name__ == "__main__":
    main()
