"""The cases of `hostile_cases`; ``python tests/hostile_table.py`` prints `docs/evidence/hostile-input.md` from them."""

import pickle
import zipfile

import numpy as np
import pyarrow as pa
from hostile_cases import (
    BIG,
    BOMB,
    GOOD,
    LIAR,
    MIXED,
    OBJECTS,
    ODD,
    POLE,
    ROWS,
    SECRET,
    SWEEP,
    TABLE,
    Case,
    cells_elsewhere,
    center,
    command,
    damaged_cell,
    dangling,
    file_case,
    frame_with_index,
    given,
    good,
    group_case,
    manifest,
    manifest_elsewhere,
    many_nulls,
    mesh_case,
    named,
    npy,
    npz,
    other_database,
    pipe,
    python_case,
    reader_case,
    release,
    saved,
    shape_case,
    sweep_case,
    text,
    with_ledger,
    with_linked_ledger,
)

from jaxgeodp import Euclidean, Hyperbolic, LaplaceMechanism

UNREADABLE = "check that the file is complete and of that type"
NUMBERS = "must hold numbers, but its type is"
TOO_LARGE = "which is more than 4 GiB in double precision"
RANGE = "must be between 1e-30 and 1e+30"

RECORDS = [
    file_case("two records", GOOD[:2]),
    file_case("denormal numbers", GOOD * 1e-310),
    file_case("minus zero", GOOD * -0.0),
    file_case("duplicate records", GOOD[[0, 0, 0, 1]]),
    file_case("all records at one point", GOOD[[0, 0, 0, 0]]),
    file_case("all records at the centre", np.tile(POLE, (4, 1))),
    file_case("all records opposite to the centre", np.tile(-POLE, (4, 1))),
    file_case("antipodal pairs", np.concatenate([GOOD[:2], -GOOD[:2]])),
    file_case("all records outside the ball", GOOD[:, [2, 0, 1]]),
    file_case("largest doubles", np.sign(GOOD) * BIG),
    file_case("infinities", np.copysign(np.inf, GOOD)),
    file_case("nothing but NaN", np.full((4, 3), np.nan)),
    file_case("float16", GOOD.astype(np.float16)),
    file_case("extended precision, overflowing", np.full((4, 3), np.finfo(np.longdouble).max)),
    file_case("big-endian", GOOD.astype(">f8")),
    file_case("Fortran order", np.asfortranarray(GOOD)),
    file_case("smallest 64-bit integers", np.full((4, 3), np.iinfo(np.int64).min)),
    file_case("truth values", GOOD > 0),
    file_case("largest doubles in a flat space", np.sign(GOOD) * BIG, manifold="euclidean", radius=1e30),
    file_case("radius just below the limit", GOOD, radius=np.nextafter(np.pi / 4, 0)),
    file_case(
        "words, long and short lines",
        text(ROWS[0], "secret 0.123456789", "1,2", "1,2,3,4", ROWS[1], ROWS[2]),
        file="data.csv",
    ),
    file_case("numbers of 400 digits", text(ROWS[0], "9" * 400 + ",-" + "9" * 400 + ",1e999"), file="data.csv"),
    file_case("UTF-16", text(*ROWS).decode().encode("utf-16"), file="data.csv", manifold="euclidean"),
    file_case("zero bytes", b"\0,\0,\0\n" * 4, file="data.csv"),
    file_case("nulls, halves, truth values, wide integers", MIXED, file="data.parquet", manifold="euclidean"),
    file_case("rows of a table", TABLE, file="data.parquet"),
    file_case("member of an archive named as a path", npz({"../../data.npy": saved(GOOD)}), file="data.npz"),
    python_case("nothing but zeros, by rejection", np.zeros((4, 3)), mechanism=LaplaceMechanism),
    python_case("antipodal pairs, by rejection", np.concatenate([GOOD[:2], -GOOD[:2]]), mechanism=LaplaceMechanism),
    python_case("None in lists", [[None, 0.0, 1.0], *GOOD[1:].tolist()]),
    python_case("integers of 400 digits in lists", [[10**400, -(10**400), 1], [0, 0, 1], [0, 1, 0], [1, 0, 0]]),
    python_case("truth values, None and numbers of NumPy in lists", [[np.float32(1), None, True], *GOOD[1:].tolist()]),
    python_case("masked entries", np.ma.masked_greater(GOOD, 0.5)),
    python_case("negative strides", GOOD[::-1, ::-1]),
    python_case("one record, broadcast", np.broadcast_to(GOOD[0], (4, 3))),
]

FILES = [
    file_case("pickled objects", OBJECTS, NUMBERS + " object"),
    file_case("pickle with another name", pickle.dumps(OBJECTS), UNREADABLE),
    file_case("pickled objects in an archive", npz({"x.npy": saved(OBJECTS)}), NUMBERS + " object", "data.npz"),
    file_case("text", GOOD.astype(str), NUMBERS),
    reader_case("structures", np.zeros(4, "f8,f8"), NUMBERS),
    reader_case("arrays as a type", npy("(2,3)f8", (2,)), NUMBERS),
    reader_case("dates", GOOD.astype("M8[s]"), NUMBERS),
    file_case("complex numbers on a sphere", GOOD.astype(complex), "data must be real numbers"),
    file_case("archive that decompresses to 1.5 TiB", npz({"x.npy": BOMB}), TOO_LARGE, "data.npz"),
    reader_case("array of 1.5 TiB, claimed", BOMB[:200], TOO_LARGE),
    reader_case("archive that lies about sizes", LIAR, UNREADABLE, "data.npz"),
    reader_case("archive, cut short", npz({"x.npy": saved(GOOD)})[:-20], UNREADABLE, "data.npz"),
    reader_case("archive, one bit changed", npz({"x.npy": saved(GOOD)}, zipfile.ZIP_STORED).replace(
        GOOD[:1].tobytes(), (GOOD[:1] + 1).tobytes()), UNREADABLE, "data.npz"),
    reader_case("archive by bzip2", npz({"x.npy": saved(GOOD)}, zipfile.ZIP_BZIP2), UNREADABLE, "data.npz"),
    reader_case("archive without arrays", npz({}), "choose one of its arrays", "data.npz"),
    reader_case("archive of a thousand arrays", npz({f"x{j}.npy": b"" for j in range(1000)}),
                "choose one of its arrays with array: x0, x1,", "data.npz"),
    reader_case("array, cut short", saved(GOOD)[:-1], UNREADABLE),
    reader_case("negative shape", npy("<f8", (-1, 2)), UNREADABLE),
    reader_case("shape beyond 64 bits", npy("<f8", (2**62, 8)), TOO_LARGE),
    reader_case("shape with a product of 0 modulo 2^64", npy("<f8", (2**32, 2**32)), TOO_LARGE),
    reader_case("shape of truth values", npy("<f8", (True, 3)), UNREADABLE),
    reader_case("shape that is code", npy("<f8", "__import__('os').getcwd()"), UNREADABLE),
    reader_case("shape of a thousand brackets", npy("<f8", "(" * 3000), UNREADABLE),
    reader_case("header of 4 GiB, claimed", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", UNREADABLE),
    reader_case("one record", GOOD[:1], "needs at least 2 records"),
    reader_case("no columns", np.zeros((4, 0)), "needs at least 2 records"),
    reader_case("nothing at all", b"", UNREADABLE, "data.npy"),
    file_case("header of 100,000 columns, 10,000 lines", b"," * 10**5 + b"\n" * 10**4, TOO_LARGE,
                            "data.csv", more=["--header"]),
    file_case("lists in a table", pa.table({"a": [[SECRET], [1.0]]}), "column 1 holds lists", "data.parquet"),
    file_case("text in a table", pa.table({"secret": [str(SECRET), "1"]}), "of type string", "data.parquet"),
    file_case("index of a data frame", frame_with_index, "write it with index=False",
              "data.parquet"),
    file_case("table of 4 GiB in a few hundred kB", many_nulls, TOO_LARGE, "data.parquet"),
    file_case("no table", text(*ROWS), UNREADABLE, "data.parquet"),
    mesh_case("PLY of 10^12 vertices, claimed", "a.ply", b"ply\nformat binary_little_endian 1.0\nelement vertex "
              b"1000000000000\nproperty float x\nproperty float y\nproperty float z\nend_header\n", "not a valid PLY"),
    # No valid file, or an empty mesh: trimesh reads it as text where it finds a library that guesses encodings.
    mesh_case("STL of 2^32 triangles, claimed", "a.stl", b"\0" * 80 + b"\xff" * 4 + b"\0" * 50,
              "export the mesh again"),
    mesh_case("OFF with negative counts", "a.off", b"OFF\n-3 -1 0\n0 0 0\n", "holds no triangles and only 0 points"),
    mesh_case("OBJ whose triangle has no vertices", "a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 99999999999\n",
              "is not a valid OBJ file"),
    mesh_case("OBJ of NaN", "a.obj", b"v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n",
              "vertex 0 is not finite; remove it with its triangles"),
]  # fmt: skip

CALLS = [
    file_case("radius at the limit", GOOD, "violates Assumption 1", radius=np.pi / 4),
    file_case("radius of 1e-320", GOOD, "radius " + RANGE, radius=1e-320),
    file_case("radius of 1e300 in a flat space", GOOD, "radius " + RANGE, radius=1e300, manifold="euclidean"),
    file_case("negative radius", GOOD, "radius must be a finite number above 0", radius=-0.5),
    file_case("epsilon of 1e-320", GOOD, "epsilon " + RANGE, epsilon=1e-320),
    file_case("epsilon of 1e308", GOOD, "epsilon " + RANGE, epsilon=1e308),
    file_case("epsilon of 1e400", GOOD, "epsilon must be a finite number above 0", epsilon="1e400"),
    python_case("radius of 10^400", GOOD, "radius must be a finite number above 0", radius=10**400),
    python_case("epsilon of 10^5000", GOOD, "epsilon must be a finite number above 0", epsilon=10**5000),
    python_case("a hyperbolic line that ends beyond doubles", np.ones((4, 2)), "is too large for double precision",
                manifold=Hyperbolic(1), radius=1e5),
    file_case("epsilon of 800 with delta", GOOD, more=("--mechanism", "laplace", "--delta", 1e-6), epsilon=800),
    file_case("delta of 5e-324", GOOD, more=("--mechanism", "laplace", "--delta", 5e-324)),
    given(lambda f: None, lambda f: command("audit", "--manifold", "sphere", "--size", 99999999, "--radius", 0.4,
          "--epsilon", 1), "an audit on a sphere of 10^8 dimensions", 2, "has more than 10,000 dimensions"),
    given(lambda f: None, lambda f: command("audit", "--manifold", "sphere", "--size", 2, "--radius", 0.4,
          "--epsilon", 1, "--seed", 10**20), "a seed of 10^20", 2, "seed must be below 2^32"),
    given(lambda f: None, lambda f: command("audit", "--manifold", "sphere", "--size", 2, "--radius", 0.4,
          "--epsilon", 1, "--draws", 10**14), "an audit of 10^14 draws", 2, "draws must be at most 1,000,000,000"),
    python_case("text in lists", [["0.123456789", "0", "1"]] * 2, "data must be real numbers, got text"),
    python_case("ragged lists", [[SECRET, 0.0], [SECRET]], "nested lists must have equal lengths"),
    python_case("objects", OBJECTS, "data must be real numbers", manifold=Euclidean(3)),
    given(center(np.full(3, np.nan)), lambda f: release(f, "data.npy", "--center", f / "center.npy"),
          "centre of NaN", 2, "is not a point of"),
    given(center(OBJECTS), lambda f: release(f, "data.npy", "--center", f / "center.npy"),
          "centre that is pickled", 2, NUMBERS),
    given(center(GOOD), lambda f: release(f, "data.npy", "--center", f / "center.npy"),
          "four centres", 2, "must hold one point"),
    given(pipe, lambda f: release(f, "pipe.npy"), "a pipe as data", 2, "there is no such file"),
    given(pipe, lambda f: release(f, "data.npy", "--overwrite", out="pipe.npy"), "a pipe as --out", 2,
          "is not a regular file"),
    given(dangling, lambda f: release(f), "a link to nowhere as --out", 2, "exists; name another file"),
    given(named(ODD), lambda f: release(f, ODD), "data named with markup, emoji, escapes"),
    given(lambda f: None, lambda f: release(f, ODD), "a name with markup, without a file", 2,
          r"[bold]né\u202e:smile:\x1b[31m.npy: there is no such file"),
    given(lambda f: None, lambda f: release(f, "two\nlines.npy"), "a name with a line end", 2, "lines.npy: there is"),
    given(named("data.npy"), lambda f: release(f, out="né[bold]:smile:.json"), "--out named with markup and emoji"),
    given(good, lambda f: release(f, out="x" * 300), "--out of 300 characters", 1, "File name too long"),
    given(with_ledger, lambda f: release(f, "data.npy", "--ledger", f / "budget.db", out="budget.db-wal"),
          "--out is a part of the ledger", 2, "is another file of this call"),
    given(with_linked_ledger, lambda f: release(f, "data.npy", "--ledger", f / "link.db", out="budget.db-wal"),
          "--out is a part of a ledger behind a link", 2, "is another file of this call"),
    given(with_ledger, lambda f: release(f, "data.npy", "--ledger", f / "budget.db", epsilon=2),
          "more than the ledger has", 2, "ask for at most what is left"),
    given(other_database, lambda f: release(f, "data.npy", "--ledger", f / "budget.db"),
          "another database as ledger", 2, "is not a ledger of jaxgeodp"),
    given(good, lambda f: release(f, "data.npy", "--ledger", f / "data.npy"), "data as ledger", 2,
          "is not a ledger of jaxgeodp"),
    given(with_ledger, lambda f: release(f, "data.npy", "--ledger", f / "budget.db", "--dataset", "[bold]\n\x1b[31m"),
          "data set named with markup and escapes", 2, "dataset must be an id"),
    given(with_ledger, lambda f: command("ledger", "export", f / "budget.db", "--out", f / "budget.db"),
          "ledger exported over itself", 2, "must end in .csv or .json"),
]  # fmt: skip

SWEEPS = [
    sweep_case("manifest that names files outside", "holds another sweep", build=manifest('{"cells": ["../../x"]}')),
    sweep_case("manifest of 100,000 brackets", "holds another sweep", build=manifest("[" * 100_000)),
    sweep_case("manifest that is a link", "is a link", build=manifest_elsewhere),
    sweep_case("cells in a folder elsewhere", "is a link", build=cells_elsewhere),
    sweep_case("cell of a finished sweep, damaged", "is damaged or belongs to another sweep", build=damaged_cell),
    sweep_case("sweep of 10,000 brackets", "not a TOML file", SWEEP + "mu = " + "[" * 10_000),
    sweep_case("sweep with a number of 5,000 digits", "not a TOML file", SWEEP + "seed = " + "1" * 5000),
    sweep_case("sweep of 2 MiB", "is larger than 1 MiB", SWEEP + "#" * 2**21),
    sweep_case("sweep that is no text", "not a TOML file", b"\xff\xfe\0"),
    sweep_case("sweep with 10^400 records", "n must be at most", SWEEP.replace("[4]", f"[{10**400}]")),
    sweep_case("sweep with epsilon of 10^400", "epsilon must be", SWEEP.replace("[1.0]", f"[{10**400}]")),
    sweep_case("sweep with a radius of NaN", "radius must be a finite", SWEEP.replace("0.39", "nan")),
]  # fmt: skip

FOREIGN = "its shape is not one made by 'jaxgeodp ball --shape'"
BOUNDED = "clip and vectors of the shape must be between 1e-30 and 1e+30"
OF = ("--epsilon", 1, "--shape", "--group")
SHAPES = [
    shape_case("a shape, as ball writes it"),
    shape_case("shape on another manifold", "is a ball on another manifold than",
               ball={"manifold": {"name": "Euclidean", "dim": 3}}),
    shape_case("shape about a centre of another dimension", "its centre has shape (2,)", ball={"center": [0.0, 1.0]}),
    shape_case("shape of another dimension", "vectors must have shape (k, 3)", {"vectors": [[0.3, 0.0], [0.0, 0.1]]}),
    *(shape_case(f"shape with a clip of {clip:g}", "clip must be a finite number above 0", {"clip": clip})
      for clip in (0.0, -1.0, np.nan, np.inf)),
    shape_case("shape with a clip of 1e300", BOUNDED, {"clip": 1e300}),
    shape_case("shape with a clip of 10^400", FOREIGN, {"clip": 10**400}),
    shape_case("shape whose clip is a word", FOREIGN, {"clip": "wide"}),
    shape_case("shape without a clip", FOREIGN, {"clip": "absent"}),
    shape_case("shape without vectors", FOREIGN, {"vectors": "absent"}),
    shape_case("shape with no vector", "vectors must have shape (k, 3)", {"vectors": []}),
    shape_case("shape with ragged vectors", FOREIGN, {"vectors": [[0.3, 0.0, 0.0], [0.1]]}),
    shape_case("shape with vectors of NaN", "vectors must hold finite numbers", {"vectors": [[np.nan] * 3] * 2}),
    shape_case("shape with vectors of 1e200", BOUNDED, {"vectors": [[1e200, 0.0, 0.0], [0.0, 1e200, 0.0]]}),
    shape_case("shape with vectors that are not tangent", "must be tangent to", {"vectors": [[0.0, 0.1, 0.1]] * 2}),
    shape_case("shape with a vector twice", "must be linearly independent", {"vectors": [[0.0, 0.1, 0.0]] * 2}),
    shape_case("shape with gains of 2", "gains must be in (0, 1]", {"gains": [2.0, 1.0]}),
    shape_case("shape with three gains for two vectors", "one for each of 2 vectors", {"gains": [1.0] * 3}),
    shape_case("shape without gains", FOREIGN, {"gains": "absent"}),
    shape_case("shape whose source is a number", "source must be a text", {"source": 1}),
    shape_case("shape that is a list", FOREIGN, [1.0]),
    shape_case("shape that a mechanism does not take", "has a shape, which --mechanism laplace",
               more=("--mechanism", "laplace")),
    group_case("--group without --shape", "--group is for --shape", "aabb", "--epsilon", 1, "--group", "study"),
    group_case("--group of a column that is not there", "no column of that name", "aabb", *OF, "hospital"),
    group_case("--group of column 0", "--group: 0 must lie within 1-3", "aabb", *OF, "0"),
    group_case("--group without a label", "--group study: no record has a label", [""] * 4, *OF, "study"),
    group_case("--group with one record of its own", "--group study: 'b' has only one record", "aaab", *OF, "study"),
    group_case("--shape with epsilon and mu", "either --epsilon or --mu", "aabb", "--epsilon", 1, "--mu", 1, "--shape"),
    group_case("--shape with epsilon of NaN", "epsilon must be a finite number above 0", "aabb", "--epsilon", "nan",
               "--shape"),
]  # fmt: skip

GROUPS = {
    "Records: private, so never refused": RECORDS,
    "Files": FILES,
    "Calls, names and places": CALLS,
}
CASES: list[Case] = [case for group in (*GROUPS.values(), SHAPES, SWEEPS) for case in group]

INTRODUCTION = """\
# Hostile input

What jaxgeodp does with broken, extreme or malicious files, data and calls. Every case in the tables is a test in
`tests/test_hostile_input.py`.

- **The content of a record is private**: no record is refused or reported. A record outside the public ball is moved
  to its rim. An invalid record (NaN, a missing value, a word in a cell) counts as the centre. An invalid mesh, or one
  whose row of the landmark table is invalid, counts as the template. No message holds a number of the data or depends
  on one. Lists, and folders, of which not one record is numbers of a shape that is taken are refused as a bad call;
  [what that supposes](../../SECURITY.md#what-is-not-promised).
- **The format of a file is public**: its type, shape and number type, the number of records, the names of arrays. An
  error in the format, the call or the system gives one sentence. The exit code is 2 for what the caller can change, 1
  for a failure of the system; Python raises an `InputError`, or the system's `OSError`. Nothing is written then, and
  existing files stay as they are.

Limits are checked before anything is decoded: 4 GiB of numbers in double precision per file, whatever the compression;
1 GiB for a `.csv` file; 1 MiB for the description of a sweep. Larger data go to the Python functions as arrays. Nothing
is ever unpickled, and nothing in a file can name another file to read or write. Radii, epsilon and mu of a mechanism
lie between 1e-30 and 1e30.

Hostile *programs* are not covered: a changed library, a debugger, a process that edits a file while it is read. Such a
file is read as it was found, or is unreadable.

The tables show the part of each message that its test expects. A case calls a command, a Python function or a reader of
files. Where neither "released" nor an exit code stands, it is refused: exit code 2, or `InputError` in Python. The
tests also check that no message holds a part of the data and that no partial or temporary file is left. They send
random bytes and changed files to all readers. `python tests/hostile_table.py` prints this page; files of balls with
shapes, and of sweeps, have more cases there.
"""

PROCESSES = [
    ("two processes, or twenty threads, write one file", "one wins, its file is complete, the others get an error"),
    (
        "another process writes --out while a release is made",
        "exit 1: was written meanwhile by another process; the record is kept beside it",
    ),
    ("the disk is full, or files may not grow", "exit 1 before the charge: File too large; no partial file"),
    ("the console knows ASCII only", "released; other characters are escaped"),
    ("the standard output is full", "exit 1: the standard output: No space left on device"),
    ("a processed face in the private folder is damaged", "it is made again"),
    ("a mesh of 1 TiB, all of it a hole, among others", "not used, as the private report says; nothing of it is read"),
]


def page() -> str:
    """`docs/evidence/hostile-input.md`."""
    parts = [INTRODUCTION]
    for title, cases in GROUPS.items():
        names: dict[str, list[str]] = {}
        for case in cases:
            words = case.outcome.removeprefix("exit 2: ").removeprefix("refused: ")
            names.setdefault(words, []).append(case.name)
        parts.append(table(title, [("; ".join(alike), outcome) for outcome, alike in names.items()]))
    return "\n".join([*parts, table("Processes and systems", PROCESSES)])


def table(title: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"| {name} | {outcome} |" for name, outcome in rows]
    return "\n".join([f"## {title}", "", "| case | message or outcome |", "|---|---|", *lines, ""])


if __name__ == "__main__":
    print(page(), end="")
