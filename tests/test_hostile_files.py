"""Readers under random bytes and under valid files with changes: a value or an `InputError`, in bounded memory."""

import gzip
import io
import json
import pathlib
import resource
import struct
import sys

import h5py
import numpy as np
import openpyxl
import pyarrow.parquet as pq
import pytest
from hostile_cases import GOOD, MIXED, TABLE, command, npy, npz, saved
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import savemat

import jaxgeodp.io
from jaxgeodp import Ledger, PureDP, Release
from jaxgeodp.checks import InputError
from jaxgeodp.io.layout import Layout
from jaxgeodp.io.tables import read_numbers
from jaxgeodp.meshes.files import read_mesh
from jaxgeodp.privacy.ledger import contents
from jaxgeodp.releases.states import State
from jaxgeodp.sites import MaskedState, PublicSite, SiteKey

SQUARE = ([(0, 0, 0), (2, 0, 0), (2, 2, 0), (0, 2, 0), (1, 1, 1)], [(0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)])
GIB = 2**30


def parquet(table, **options) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def mesh(kind) -> bytes:
    points, triangles = SQUARE
    if kind == "obj":
        lines = ["mtllib ../secret.mtl", *(f"v {x} {y} {z}" for x, y, z in points)]
        return "\n".join([*lines, *(f"f {a + 1} {b + 1} {c + 1}" for a, b, c in triangles)]).encode()
    numbers = [" ".join(map(str, point)) for point in points] + ["3 " + " ".join(map(str, t)) for t in triangles]
    if kind == "off":
        return "\n".join(["OFF", "5 4 0", *numbers]).encode()
    if kind == "stl":
        corners = np.array(points, "<f4")[np.array(triangles)]
        return bytes(80) + struct.pack("<I", 4) + b"".join(bytes(12) + t.tobytes() + bytes(2) for t in corners)
    head = (
        "ply\nformat {} 1.0\ncomment TextureFile ../secret.png\nelement vertex 5\nproperty float x\nproperty float y\n"
    )
    head += "property float y\nproperty float z\nelement face 4\nproperty list uchar int vertex_indices\nend_header\n"
    if kind == "text":
        return (head.format("ascii") + "\n".join(numbers)).encode()
    body = np.array(points, "<f4").tobytes() + b"".join(b"\x03" + struct.pack("<3i", *t) for t in triangles)
    return head.format("binary_little_endian").encode() + body


def _written(write) -> bytes:
    sink = io.BytesIO()
    write(sink)
    return sink.getvalue()


def workbook():
    book = openpyxl.Workbook()
    book.active.append([1.5, 2])
    book.active.append([3, "x"])
    return book


def hdf5(sink):
    with h5py.File(sink, "w") as file:
        file["x"] = GOOD


# Of one specimen, which is not enough for records of euclidean, and landmarks, which are none.
LANDMARKS = (".tps", ".nts", ".fcsv", ".json", ".pp")
VALID = {
    ".npy": [saved(GOOD), saved(np.asfortranarray(GOOD.astype(">f2"))), npy("<f8", (4, 2), version=(2, 0))],
    ".npz": [npz({"x.npy": saved(GOOD)}), npz({"x.npy": saved(GOOD)}, 0)],
    ".csv": [b"x,y\n0.5,1\n1e5,-0\n,nan\n", b"\xef\xbb\xbf1,2\r\n3,4\r5,6"],
    ".parquet": [parquet(TABLE), parquet(MIXED, compression="zstd"), parquet(TABLE, use_dictionary=False)],
    ".tsv": [b"x11\tx21\tx22\n2\t.5\t1\n1\t0\t3\n"],
    ".csv.gz": [gzip.compress(b"1,2\n3,4\n")],
    ".tps": [b"LM=2\n1 2\n3 4\nID=a\nSCALE=0.5\nLM=2\n1 2\n3 5\n", b"LM=0\nCURVES=1\nPOINTS=2\n1,5 2\n3 4\n" * 2],
    ".nts": [b'"a comment\n1 2L 4 0 dim=2\na b\n1 2 3 4\n1 2 3 5\n', b"1 2 4 1 -9 DIM=2\n1 2\n3 4\n1 2\n3 -9\n\n"],
    ".fcsv": [b"# columns = id,x,y,z,ow\n0,1,2,3,0\n1,4,5,6.5,1\n"],
    ".json": [b'{"markups": [{"controlPoints": [{"position": [1, 2, 3]}, {"position": [4, 5, 6.5]}]}]}'],
    ".pp": [b'<PickedPoints>\n<point x="1" y="2" z="3" active="1"/><point x="4" y="5" z="6"/></PickedPoints>'],
    ".mat": [_written(lambda sink, c=c: savemat(sink, {"x": GOOD}, do_compression=c)) for c in (False, True)],
    ".xlsx": [_written(lambda sink: workbook().save(sink))],
    ".h5": [_written(hdf5)],
    ".obj": [mesh("obj")],
    ".off": [mesh("off")],
    ".stl": [mesh("stl")],
    ".ply": [mesh("text"), mesh("binary")],
}
NUMBERS = [0, 1, 255, 2**16 - 1, 2**31 - 1, 2**32 - 1, 2**63, 2**64 - 1]
PIECES = st.one_of(
    st.binary(max_size=12),
    st.sampled_from(NUMBERS).map(lambda number: struct.pack("<Q", number)[: 8 if number > 2**32 else 4]),
    st.sampled_from([b"-1", b"1e999", b"nan", b"99999999999999999999", b"(", b"\n" * 50, b"," * 50, b"\0" * 50]),
)


@st.composite
def changed(draw, valid):
    """A valid file with up to four changes, or random bytes behind the start of a valid file."""
    content = bytearray(draw(st.sampled_from(valid)))
    if draw(st.integers(0, 3)) == 0:
        return bytes(content[: draw(st.integers(0, 16))]) + draw(st.binary(max_size=300))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        piece = draw(PIECES)
        if draw(st.booleans()):
            content[start : start + len(piece)] = piece  # in place
        else:
            content[start : start + draw(st.integers(0, 40))] = piece
    return bytes(content)


def read(path):
    if path.suffix in (".obj", ".off", ".stl", ".ply"):
        return read_mesh(path)[0].vertices
    if path.suffix in LANDMARKS:
        return read_numbers(path, Layout()).table
    return jaxgeodp.io.read(path, "euclidean")


def memory() -> int:
    """The most this process ever used."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def test_a_column_that_contradicts_its_statistics_is_refused(tmp_path):
    """Words (6, written as 12) become whole numbers (2): PyArrow ended the process, asked for their bytes."""
    path, refused = tmp_path / "data.parquet", 0
    valid = parquet(TABLE.append_column("words", [["a", "b", "c", "d"]]))
    for place in (place for place, byte in enumerate(valid) if byte == 12):
        path.write_bytes(valid[:place] + b"\x04" + valid[place + 1 :])
        try:
            jaxgeodp.io.read(path, "euclidean", columns="x,y")
        except InputError:
            refused += 1
    assert refused > 0


@pytest.mark.parametrize("suffix", VALID)
def test_readers_give_a_value_or_one_sentence(suffix, tmp_path):
    path, found = tmp_path / f"data{suffix}", set()
    for content in VALID[suffix]:
        path.write_bytes(content)
        assert np.size(read(path)) >= 4
    before = memory()

    @settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(changed(VALID[suffix]))
    def fuzz(content):
        path.write_bytes(content)
        try:
            found.add(type(read(path)))
        except InputError as error:
            found.add(InputError)
            assert str(error).endswith(".") and "0.12345" not in str(error)

    fuzz()
    assert InputError in found or suffix in (".csv", ".tsv")
    assert memory() - before < GIB
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


# What fuzzing found in records (benchmarks/audit/fuzz.py): any document of JSON is read, or refused in one sentence.

RECORD = json.loads((pathlib.Path(__file__).parent / "recorded_releases.json").read_text())["tangent"]
RECORD |= {"created": "2026-11-25T00:00+00:00"}
NO_RECORDS = {
    "brackets": "[" * 100_000,
    "a number": "1e999",
    "nothing": "null",
    **{
        name: json.dumps(RECORD | changed)
        for name, changed in {
            "a number of 400 digits": {"value": [10**400]},
            "a value that is none": {"value": {"a": 1.0}},
            "not a number": {"value": [float("nan")] * 3},
            "infinity elsewhere": {"scale": float("inf")},
            "no type": {"numerics": {"dtype": "secret"}},
            "a number as type": {"numerics": {"dtype": 1}},
            "dates": {"numerics": {"dtype": "M8[s]"}},
            "objects": {"numerics": {"dtype": "O"}},
            "a comma as type": {"numerics": {"dtype": ","}},
            "no mechanism": {"mechanism": None},
        }.items()
    },
}


@pytest.mark.parametrize("name", NO_RECORDS)
def test_a_document_that_is_no_record_is_refused(name, tmp_path):
    path = tmp_path / "release.json"
    path.write_text(NO_RECORDS[name])
    with pytest.raises(InputError, match=r"release.json: is not a release record\.$"):
        Release.load(path)
    for words in (["show", path], ["face", path, "--out", tmp_path / "new"]):
        result = command(*words)
        assert result.code == 2 and "unexpected" not in result.output
    for kind in (State, MaskedState, PublicSite, SiteKey):
        with pytest.raises(InputError, match=r"is not a|holds no"):
            kind.load(path)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"guarantee": {"kind": ["pure"]}}, "states no guarantee that this version knows"),
        ({"guarantee": {"kind": "pure", "epsilon": None}}, "must have a number for epsilon"),
        ({"expected_error": 1}, "must have a number for mean, radius and level"),
        ({"expected_error": {"mean": 1.0, "radius": True, "level": 0.9}}, "must have a number for mean"),
    ],
)
def test_entries_of_a_record_that_are_none_are_refused(changed, words, tmp_path):
    path = tmp_path / "release.json"
    path.write_text(json.dumps(RECORD | changed))
    release = Release.load(path)
    with pytest.raises(InputError, match=words):
        release.guarantee, release.expected_error  # noqa: B018 - one of them refuses


@pytest.mark.parametrize("changed", [{"group": 1}, {"guarantee": RECORD["guarantee"] | {"epsilon": 10**400}}])
def test_what_show_cannot_print_is_no_whole_record(changed, tmp_path):
    path = tmp_path / "release.json"
    path.write_text(json.dumps(RECORD))
    assert command("show", path).code == 0
    path.write_text(json.dumps(RECORD | changed))
    result = command("show", path)
    assert result.code == 2 and result.output.split() == f"Error: {path}: is not a complete release record.".split()


def test_a_ledger_whose_tables_have_names_of_no_text_is_damaged(tmp_path):
    """SQLite's words about it hold the name, which Python cannot decode."""
    path = tmp_path / "b.db"
    Ledger(path, PureDP(1.0))
    content = path.read_bytes()
    assert content.count(b"releases") > 1
    path.write_bytes(
        content.replace(b"CREATE TABLE releases", b"CREATE XXXXX releases").replace(
            b"tablereleases", b"table\xaeeleases"
        )
    )
    for look in (lambda: contents(path), lambda: Ledger(path), lambda: Ledger(path, PureDP(1.0))):
        with pytest.raises(InputError, match="the ledger is damaged or cut short"):
            look()
