"""The table of hostile inputs: what is built, how it is called, what must come of it.

A case builds its files in an empty folder and calls the command line, the Python API or a reader there. Its outcome is
None (a value: released or read) or an exit code with words of the one sentence; an `InputError` counts as code 2.
"""

import io
import json
import os
import sqlite3
import struct
import sys
import warnings
import zipfile
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from typer.testing import CliRunner

from jaxgeodp import GeodesicBall, Sphere, TangentLaplace
from jaxgeodp.checks import InputError
from jaxgeodp.cli import app
from jaxgeodp.io import read
from jaxgeodp.meshes.files import read_mesh

SECRET = 0.123456789
POLE = np.array([0.0, 0.0, 1.0])
GOOD = np.array([[SECRET, 0.0, 1.0], [0.0, SECRET, 1.0], [-SECRET, 0.1, 1.0], [0.1, -SECRET, 1.0]])


class Result(NamedTuple):
    code: int
    output: str
    value: np.ndarray | None = None


class Case(NamedTuple):
    name: str
    how: str  #: "command", "Python" or "reader"
    build: Callable
    call: Callable
    code: int = 0
    words: str = ""

    @property
    def outcome(self) -> str:
        if self.code == 0:
            return "read" if self.how == "reader" else "released"
        return f"exit {self.code}: {self.words}" if self.how == "command" else f"refused: {self.words}"


# Calls -----------------------------------------------------------------------------------------------------------


def command(*arguments) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return Result(result.exit_code, result.output)


def release(folder, file="data.npy", *more, manifold="sphere", radius=0.5, epsilon=1, out="out.json") -> Result:
    options = ["--manifold", manifold, "--radius", radius, "--epsilon", epsilon, "--mechanism", "tangent"]
    options += [] if "--center" in more else ["--center", "origin"]
    return command("release", folder / file, "--out", folder / out, *options, *more)


def guarded(call) -> Result:
    """A Python call as a result; any error but ours escapes and fails the test. Warnings count as output."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            code, output, value = 0, "", call()
        except InputError as error:
            code, output, value = 2, str(error), None
    return Result(code, output + "".join(str(warning.message) for warning in caught), value)


# Files -----------------------------------------------------------------------------------------------------------


def write(path, content):
    """Bytes as they are, arrays by the file's suffix, or whatever a function does."""
    if callable(content):
        content(path)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif path.suffix == ".parquet":
        table = content if isinstance(content, pa.Table) else pa.table({f"c{j}": c for j, c in enumerate(content.T)})
        pq.write_table(table, path)
    else:
        np.save(path, content, allow_pickle=True)


def npy(description, shape, content=b"\0" * 64, version=(1, 0), fortran=False) -> bytes:
    """A .npy file whose header claims anything."""
    text = f"{{'descr': {description!r}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text + content


def npz(members, method=zipfile.ZIP_DEFLATED) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return sink.getvalue()


def saved(array) -> bytes:
    sink = io.BytesIO()
    np.save(sink, array, allow_pickle=True)
    return sink.getvalue()


class _Bomb:
    def __reduce__(self):
        return os.system, ("touch executed",)


BOMB = npy("<f8", (2**36, 3), b"\0" * 2**24)
SHORT = npy("<f8", (10**7, 3), b"\0" * 2**12)
LIAR = npz({"x.npy": SHORT}).replace(struct.pack("<I", len(SHORT)), struct.pack("<I", 2**31 - 1))
OBJECTS = np.array([_Bomb(), _Bomb()], dtype=object)
TABLE = pa.table({"x": GOOD[:, 0], "y": GOOD[:, 1], "z": GOOD[:, 2]})
MIXED = pa.table(
    {
        "missing": pa.nulls(4),
        "half": pa.array([np.float16(SECRET), None, None, np.float16(1)], pa.float16()),
        "wide": pa.array([2**64 - 1, None, 0, 1], pa.uint64()),
        "truth": pa.array([True, None, False, True]),
    }
)


def many_nulls(path):
    column = pa.nulls(2**21)
    pq.write_table(pa.table({str(j): column for j in range(257)}), path)


def frame_with_index(path):
    import json

    marks = {b"pandas": json.dumps({"index_columns": ["id"], "columns": []}).encode()}
    pq.write_table(TABLE.replace_schema_metadata(marks), path)


def text(*lines) -> bytes:
    return "\n".join(lines).encode()


ROWS = [",".join(map(repr, row)) for row in GOOD.tolist()]

# Kinds of cases --------------------------------------------------------------------------------------------------


def file_case(name, content, words="", file="data.npy", code=2, more=(), **options):
    """A file through `jaxgeodp release`."""
    return Case(
        name,
        "command",
        lambda folder: write(folder / file, content),
        lambda folder: release(folder, file, *more, **options),
        code if words else 0,
        words,
    )


def reader_case(name, content, words="", file="data.npy", manifold="euclidean"):
    """A file through the reader of records."""
    return Case(
        name,
        "reader",
        lambda folder: write(folder / file, content),
        lambda folder: guarded(lambda: read(folder / file, manifold)),
        2 if words else 0,
        words,
    )


def python_case(name, data, words="", mechanism=TangentLaplace, manifold=None, radius=0.5, epsilon=1.0):
    """Data to a mechanism in Python."""
    space = manifold or Sphere(2)

    def call(_):
        return guarded(lambda: mechanism(GeodesicBall(space, space.origin, radius), epsilon).release(data).value)

    return Case(name, "Python", lambda folder: None, call, 2 if words else 0, words)


def mesh_case(name, file, content, words):
    return Case(
        name,
        "reader",
        lambda folder: write(folder / file, content),
        lambda folder: guarded(lambda: read_mesh(folder / file)[0].vertices),
        2,
        words,
    )


# A ball on the sphere with a shape, as `jaxgeodp ball --shape` writes it.
SHAPE = {"vectors": [[0.3, 0.0, 0.0], [0.0, 0.1, 0.0]], "clip": 1.0, "gains": [1.0, 1.0]}
BALL = {"manifold": {"name": "Sphere", "dim": 2, "curvature": 1.0}, "center": POLE.tolist(), "radius": 0.5}


def shape_case(name, words="", shape=None, ball=None, more=()):
    """A release in the ball of a file, with another shape or other entries than `SHAPE` and `BALL`.

    Args:
        shape: entries of the shape in place of its own, without those that are "absent"; or what stands in its place.
        ball: the same for the ball.
    """
    own = changed(SHAPE, shape or {}) if shape is None or isinstance(shape, dict) else shape

    def prepare(folder):
        good(folder)
        (folder / "ball.json").write_text(json.dumps(changed(BALL, ball or {}) | {"shape": own}))

    def call(folder):
        words = ("release", folder / "data.npy", "--manifold", "sphere", "--ball", folder / "ball.json")
        return command(*words, "--epsilon", 1, "--out", folder / "out.json", *more)

    return Case(name, "command", prepare, call, 2 if words else 0, words)


def changed(entries, others):
    return {key: own for key, own in (entries | others).items() if own != "absent"}


def group_case(name, words, labels, *more, points=None):
    """Public records with a column of groups through `jaxgeodp ball`."""
    points = np.random.default_rng(0).normal(size=(len(labels), 2)) if points is None else points
    lines = [f"{label},{x!r},{y!r}" for label, (x, y) in zip(labels, points.tolist(), strict=True)]

    def call(folder):
        words = ("ball", folder / "public.csv", "--manifold", "euclidean", "--header", "--columns", "x,y")
        return command(*words, "--n", 50, "--out", folder / "ball.json", *more)

    return Case(name, "command", lambda f: write(f / "public.csv", text("study,x,y", *lines)), call, 2, words)


SWEEP = """manifold = "sphere"
size = 2
radius = 0.39
mechanisms = ["tangent"]
n = [4]
epsilon = [1.0]
replicates = 4
"""


def sweep_case(name, words, config=SWEEP, build=lambda out: None):
    """A sweep whose file or folder is hostile."""

    def prepare(folder):
        write(folder / "sweep.toml", config if isinstance(config, bytes) else config.encode())
        (folder / "out").mkdir()
        build(folder / "out")

    def call(folder):
        return command("sweep", folder / "sweep.toml", "--out", folder / "out")

    return Case(name, "command", prepare, call, 2, words)


def manifest(content):
    return lambda out: (out / "manifest.json").write_text(content)


def cells_elsewhere(out):
    (out.parent / "elsewhere").mkdir()
    (out.parent / "elsewhere" / ".part-precious").write_text("mine")
    (out / "cells").symlink_to(out.parent / "elsewhere")


def manifest_elsewhere(out):
    (out.parent / "notes.json").write_text("{}")
    (out / "manifest.json").symlink_to("../notes.json")


def damaged_cell(out):
    """A sweep that ended, but for the file of its cell."""
    assert command("sweep", out.parent / "sweep.toml", "--out", out).code == 0
    (out / "cells" / "0000.parquet").write_bytes(b"PAR1 cut short")


def given(prepare, call, name, code=0, words=""):
    return Case(name, "command", prepare, call, code, words)


def good(folder):
    np.save(folder / "data.npy", GOOD)


def pipe(folder):
    good(folder)
    os.mkfifo(folder / "pipe.npy")


def dangling(folder):
    good(folder)
    (folder / "out.json").symlink_to(folder / "nowhere.json")


def with_ledger(folder):
    good(folder)
    assert command("ledger", "init", folder / "budget.db", "--epsilon", 1).code == 0


def with_linked_ledger(folder):
    with_ledger(folder)
    (folder / "link.db").symlink_to("budget.db")


def other_database(folder):
    good(folder)
    with sqlite3.connect(folder / "budget.db") as connection:
        connection.execute("CREATE TABLE t (x REAL)")
    connection.close()


def center(content, file="center.npy"):
    return lambda folder: (good(folder), write(folder / file, content))


def named(name):
    return lambda folder: np.save(folder / name, GOOD)


BIG, ODD = sys.float_info.max, "[bold]né\u202e:smile:\x1b[31m.npy"
