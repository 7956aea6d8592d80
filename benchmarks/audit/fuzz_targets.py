"""What benchmarks/audit/fuzz.py reads and calls: every reader of files, names, and commands; with valid files as seeds.

A target gets a file of any bytes. It may return, refuse with `InputError`, or say that the system failed (OSError);
commands end with 0, 2, or 1 and a sentence about the system. Everything else is a finding.
"""

import contextlib
import gzip
import json
import os
import pathlib
import tempfile
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.io
import trimesh.exchange.load
from typer.testing import CliRunner

from jaxgeodp import Euclidean, GeodesicBall, Ledger, PureDP, Release, Sphere, TangentLaplace, WrappedGaussian
from jaxgeodp.checks import InputError
from jaxgeodp.cli import app
from jaxgeodp.experiments.sweep import read_sweep
from jaxgeodp.faces.landmarks import read_landmarks
from jaxgeodp.inference import Description, GeodesicFit, describe, geodesic_regression
from jaxgeodp.io import check, read
from jaxgeodp.io.balls import read_ball, read_center
from jaxgeodp.io.layout import Layout, chosen_columns
from jaxgeodp.io.tables import read_labels, read_template, read_weights
from jaxgeodp.manifolds.names import manifold_named, manifold_of
from jaxgeodp.meshes.files import read_mesh
from jaxgeodp.privacy import dp_event, opendp_measurement
from jaxgeodp.privacy.ledger import contents
from jaxgeodp.releases.states import State
from jaxgeodp.sites import MaskedState, PublicSite, SiteKey, masked

#: Between the parts of an input that is several files or words.
BREAK = b"\n=-=\n"
_KINDS = (
    *("euclidean", "sphere", "spd", "shapes", "shapes3d", "rotations", "rigidmotions(2)", "grassmann", "correlations"),
    "hyperbolic",
)
_PARTS = ("mean.json", "variance.json", "covariance.json", "description.json")
_COMMANDS = {
    *("ledger", "show", "check", "release", "describe", "site", "info", "face", "plan", "ball", "sweep", "--version"),
    *("--help", "--verbose", "init", "export", "key", "combine", "prepare"),
}


class Target(NamedTuple):
    """A reader or a command.

    Args:
        call: given the path of a file.
        seeds: contents of valid files.
        suffix: of the file.
    """

    call: Callable[[pathlib.Path], object]
    seeds: Callable[[], list[bytes]]
    suffix: str = ".json"


class WrongEnd(Exception):  # noqa: N818 - no error of ours, but that of a command
    """A command has ended as none should."""


def all_of(*calls: Callable[[], object]) -> None:
    """Each of them, whatever the others refuse."""
    for call in calls:
        with contextlib.suppress(InputError, OSError):
            call()


def command(*words) -> str:
    """What a command says; raises where it ends otherwise than commands may."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    told = " ".join(result.output.split())
    known = result.exit_code in (0, 2) or (result.exit_code == 1 and "Error: " in told and "unexpected" not in told)
    if not known or "Traceback" in told:
        raise WrongEnd(f"{result.exit_code}: {told[-120:]}")
    return told


# Calls -------------------------------------------------------------------------------------------------------


def _records(path):
    calls = [lambda kind=kind: read(path, kind) for kind in (*_KINDS, "sphere(1) * spd(2)")]
    calls += [
        lambda kind=kind, chart=chart: read(path, kind, chart=chart)
        for kind, chart in (
            *(("hyperbolic", "poincare"), ("hyperbolic", "klein"), ("hyperbolic", "half-space"), ("torus", "hours")),
            *(("rotations", "xyzw"), ("rotations", "euler-zyx-degrees"), ("rigidmotions(2)", "rotvec")),
            ("correlations", "covariance"),
        )
    ]
    calls += [lambda: check(path, "spd"), lambda: check(path, "shapes"), lambda: check(path, "hyperbolic")]
    if path.suffix in (".csv", ".tsv", ".gz"):
        calls += [lambda: read(path, "spd", header=True), lambda: read(path, "rotations", header=True)]
        calls += [lambda: read(path, "euclidean", decimal=",")]
        calls += [lambda: read(path, "euclidean", header=True), lambda: read(path, "sphere", degrees="lat,lon")]
    calls += [
        lambda: read(path, "euclidean", columns="1-2", delimiter=";"),
        lambda: read(path, Sphere(2), columns="1-3"),
    ]
    labels = Layout(person="1", group="x")
    calls += [lambda: read_labels(path, labels, "person", 2), lambda: read_labels(path, labels, "group", 2)]
    calls += [lambda: read_center(str(path), Sphere(2), Layout()), lambda: read_weights(path)]
    all_of(*calls, lambda: read_template(path, Layout()))


def _record(path):
    found = Release.load(path)
    looks = [lambda: found.guarantee, lambda: found.expected_error, lambda: opendp_measurement(found), found.as_array]
    all_of(*looks, found.to_json, lambda: dp_event(found.guarantee))


def _ledger(path):
    all_of(lambda: contents(path), lambda: Ledger(path), lambda: Ledger(path, PureDP(1.0)))


def _description(path):
    for name, content in zip(_PARTS, path.read_bytes().split(BREAK), strict=False):
        (path.parent / name).write_bytes(content)
    found = Description.load(path.parent)
    all_of(lambda: found.guarantee, lambda: found.has_spread)


def _words(path):
    text = path.read_bytes().decode("utf-8", "replace")
    words = text.split("\n")
    all_of(
        lambda: manifold_named(text),
        lambda: manifold_named(words[0], len(words)),
        lambda: chosen_columns(Layout(columns=words[0], person=words[-1]), ("x", "y", "z", "id"), 4),
        lambda: Layout(delimiter=words[0], degrees=words[-1]),
        lambda: Ledger(path.with_name("l.db"), PureDP(1.0), dataset=text),
        lambda: SiteKey.new(text),
        lambda: PublicSite(words[0], words[-1]),
    )


def _described(path):
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(path.read_bytes())
        if isinstance(found, dict):
            manifold_of(found)


def _command(path):
    """Words of a command line and the content of a file. Names hold no slash: all is read and written in one folder."""
    *words, content = path.read_bytes().split(BREAK)
    texts = [word.decode("utf-8", "replace").replace("\0", "") for word in words]
    if not texts or texts[0] not in _COMMANDS or any("/" in text or ".." in text for text in texts):
        return
    (path.parent / "data").write_bytes(content)
    for suffix in (".npy", ".csv", ".json", ".db", ".toml", ".key"):
        (path.parent / f"data{suffix}").write_bytes(content)
    with contextlib.chdir(path.parent):
        command(*texts)


# Seeds -------------------------------------------------------------------------------------------------------


def _made(*writers: Callable[[pathlib.Path], object], suffix: str = ".json") -> list[bytes]:
    """What functions write to a path."""
    contents_of_files = []
    for write in writers:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / f"seed{suffix}"
            write(path)
            contents_of_files.append(path.read_bytes())
    return contents_of_files


GOOD = np.array([[0.1, 0.0, 1.0], [0.0, 0.2, 1.0], [-0.3, 0.1, 1.0], [0.1, -0.2, 1.0]])
SPREAD = np.linspace(-0.5, 0.5, 40)[:, None]


def _line():
    """Not made before it is asked for: it starts JAX, and a process in which JAX has started must not be forked."""
    return GeodesicBall(Euclidean(1), np.zeros(1), 1.0)


def _arrays(suffix):
    if suffix == ".npy":
        arrays = GOOD, GOOD.astype(">f4"), np.asfortranarray(GOOD), GOOD[:2, :2] + 0j, np.tile(np.eye(2), (2, 1, 1))
        return _made(*(lambda path, a=array: np.save(path, a) for array in arrays), suffix=suffix)
    if suffix == ".npz":
        return _made(lambda p: np.savez(p, x=GOOD), lambda p: np.savez_compressed(p, x=GOOD, id=[1, 2]), suffix=suffix)
    table = pa.table({"x": GOOD[:, 0], "y": GOOD[:, 1], "id": ["a", "b", "a", None]})
    return _made(
        lambda p: pq.write_table(table, p), lambda p: pq.write_table(table[:1], p, compression="zstd"), suffix=suffix
    )


def _meshes(suffix):
    points = np.array([(0, 0, 0), (2, 0, 0), (2, 2, 0), (0, 2, 0), (1, 1, 1)], float)
    mesh = trimesh.Trimesh(points, [(0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4)], process=False)
    if suffix == ".xyz":
        return ["\n".join(" ".join(map(str, point)) for point in mesh.vertices).encode()]
    seeds = [mesh.export(file_type=suffix[1:])]
    if suffix == ".ply":
        seeds.append(mesh.export(file_type="ply", encoding="ascii"))
    if suffix == ".stl":
        seeds.append(mesh.export(file_type="stl_ascii"))
    return [seed.encode() if isinstance(seed, str) else seed for seed in seeds]


def _releases():
    ball = GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.5)
    made = [TangentLaplace(ball, 1.0).release(GOOD), WrappedGaussian(ball, 1.0).release(GOOD)]
    return [release.to_json().encode() for release in made]


def _ledgers():
    def write(path):
        ledger = Ledger(path, PureDP(1.0))
        ledger.settle(ledger.charge(PureDP(0.1), "fuzz"), "0" * 64)
        Ledger(path, PureDP(2.0), dataset="other").charge(PureDP(0.1), "fuzz")

    return _made(write, suffix=".db")


def _descriptions():
    with tempfile.TemporaryDirectory() as folder:
        describe(SPREAD, Euclidean(1), mu=2.0, ball=_line()).save(folder)
        return [BREAK.join((pathlib.Path(folder) / name).read_bytes() for name in _PARTS)]


def _masked():
    key, other = SiteKey.new("north"), SiteKey.new("east")
    state = TangentLaplace(_line(), 1.0).prepare(SPREAD)
    return _made(lambda path: masked(state, key, [key.public, other.public]).save(path))


def _described_seeds():
    words = '{"name": "Sphere", "n": 2}', '{"name": "Product", "manifolds": [{"name": "SPD", "n": 2}]}'
    return [word.encode() for word in words]


def _ball_file(path):
    np.save(path.with_name("public.npy"), SPREAD)
    public = path.with_name("public.npy")
    command("ball", public, "--manifold", "euclidean", "--n", 100, "--epsilon", 1, "--out", path)


def _command_lines():
    release = _releases()[0]
    table = b"0.1,0.2\n0.3,0.1\n0,0.5\n"
    common = "--manifold euclidean --center origin --radius 1"
    lines = {
        "ledger init new.db --epsilon 1 --delta 1e-6 --dataset a": b"",
        "ledger show data.db": _ledgers()[0],
        "ledger export data.db --out new.csv": _ledgers()[0],
        "ledger export data.db --out new.json --overwrite": _ledgers()[0],
        "show data.json": release,
        "show data.json --html new.html": release,
        "face data.json --out new": release,
        f"release data.csv {common} --epsilon 1 --mechanism tangent --out new.json": table,
        f"release data.csv {common} --epsilon 1 --mechanism tangent --out new.json --ledger data.db": table,
        f"release data.csv {common} --epsilon 1 --mechanism tangent --out new.json --header --columns 1-2": table,
        "release data.npy --manifold sphere --ball data.json --epsilon 1 --out new.json": _arrays(".npy")[0],
        f"check data.csv {common} --out new.txt --person 1 --expect-n 3": table,
        "site key north --out .": b"",
        f"site prepare data.csv {common} --epsilon 1 --key data.key --sites data.json,data.json --out new.json": table,
        "site combine data.json data.json --out new.json": _masked()[0],
        "plan --manifold sphere --size 2 --radius 0.5 --n 100 --epsilon 0": b"",
        "sweep data.toml --out data": b"manifold = 1",
        "describe data.csv --manifold euclidean --epsilon 1 --mu 1 --out new": table,
        "info": b"",
        "--version --verbose": b"",
    }
    return [BREAK.join([*(word.encode() for word in line.split()), content]) for line, content in lines.items()]


def _others(suffix):
    if suffix == ".mat":
        return _made(lambda path: scipy.io.savemat(path, {"x": GOOD, "y": "words"}), suffix=suffix)
    if suffix == ".gz":
        return [gzip.compress(seed) for seed in CSV]
    return [SPECIMENS[suffix]]


SPECIMENS = {
    ".json": b'{"markups": [{"controlPoints": [{"position": [1, 2, 3]}, {"position": [4, 5, 6.5]}]}]}',
    ".fcsv": b"# columns = id,x,y,z,ow\n0,1,2,3,0\n1,4,5,6.5,1\n",
    ".pp": b'<PickedPoints>\n<point x="1" y="2" z="3" active="1"/><point x="4" y="5" z="6"/></PickedPoints>',
    ".lmk": b"a 1 2 3\nb 4 5 6.5\n",
    ".dta": b"1 2L 6 1 9999 DIM=3\na b\n1 2 3\n4 5 6\n1 2 3\n4 9999 6\n",
    ".tsv": b"x11\tx21\tx22\n2\t.5\t1\n1\t0\t3\n",
    ".txt": b"sep=;\n#c\n1;2\n3;4\n",
}
CSV = [b"x,y\n0.5,1\n1e5,-0\n,nan\n", b"\xef\xbb\xbf1,2\r\n3,4\r5,6", b'id;"a b"\n1;2\n', b"10,20\n30,-40\n"]
SWEEP = b"""manifold = "sphere"
size = 2
radius = 0.4
mechanisms = ["laplace", "wrapped-gaussian"]
n = [10, 20]
epsilon = [1.0]
mu = 0.5
replicates = 10
"""
TPS = b"LM=3\n1 2\n3 4\n5 6\nID=a\nSCALE=0.5\nLM=3\n1 2\n3 5\n5 6\nIMAGE=b.png\n"
CURVES = b"LM=1\n1,5 2\nCURVES=1\nPOINTS=2\n3 4\n5 6\nID=a\nLM=1\n1 2\nCURVES=1\nPOINTS=2\n3 5\n5 6\nSCALE=x\n"
NTS = b'"a comment\n1 2L 6 0 dim=2\na b\n1 2 3 4 5 6\n1 2 3 5 5 6\n'

TARGETS = {
    **{suffix[1:]: Target(_records, lambda s=suffix: _arrays(s), suffix) for suffix in (".npy", ".npz", ".parquet")},
    "csv": Target(_records, lambda: CSV, ".csv"),
    "tps": Target(_records, lambda: [TPS, CURVES], ".tps"),
    "nts": Target(_records, lambda: [NTS], ".nts"),
    **{f"file {suffix[1:]}": Target(_records, lambda s=suffix: _others(s), suffix) for suffix in SPECIMENS},
    "file mat": Target(_records, lambda: _others(".mat"), ".mat"),
    "file gz": Target(_records, lambda: _others(".gz"), ".csv.gz"),
    **{
        suffix[1:]: Target(
            lambda path: all_of(lambda: read_mesh(path), lambda: read_mesh(path, fill_holes=True, scan=True)),
            lambda s=suffix: _meshes(s),
            suffix,
        )
        for suffix in (".obj", ".ply", ".stl", ".off", ".xyz")
    },
    "landmarks": Target(read_landmarks, lambda: [b"file,nose,up\na.obj,3,4\nb.obj,1 2 3,\n"], ".csv"),
    "record": Target(_record, _releases),
    "show": Target(lambda path: command("show", path), _releases),
    "ledger": Target(_ledger, _ledgers, ".db"),
    "state": Target(State.load, lambda: _made(TangentLaplace(_line(), 1.0).prepare(SPREAD).save)),
    "masked": Target(MaskedState.load, _masked),
    "public site": Target(PublicSite.load, lambda: _made(SiteKey("north", "1" * 64).public.save)),
    "site key": Target(SiteKey.load, lambda: _made(SiteKey("north", "1" * 64).save)),
    "ball": Target(
        lambda path: all_of(lambda: read_ball(path, Euclidean(1)), lambda: read_ball(path, Sphere(2))),
        lambda: _made(_ball_file),
    ),
    "description": Target(_description, _descriptions),
    "regression": Target(
        GeodesicFit.load,
        lambda: _made(geodesic_regression(np.linspace(0.0, 1.0, 40), SPREAD, _line(), epsilon=2.0).save),
    ),
    "sweep": Target(lambda path: read_sweep(path).fingerprint(), lambda: [SWEEP], ".toml"),
    "names": Target(_words, lambda: [b"sphere(2) * spd(3)", b"grassmann(5, 2)", b"1-3\nid", b"north\nlat,lon"], ".txt"),
    "described": Target(_described, _described_seeds),
    "commands": Target(_command, _command_lines, ".bin"),
}


def _planted(path):
    content = path.read_bytes()
    if content[:1] == b"b":
        if content[1:2] == b"u":
            raise KeyError("planted")


def _planted_death(path):
    content = path.read_bytes()
    if content[:1] == b"b":
        if content[1:2] == b"y":
            os.abort()


#: Readers with mistakes that random bytes do not find and coverage does.
PLANTED = {
    "planted": Target(_planted, lambda: [b"a=1"], ".txt"),
    "planted-death": Target(_planted_death, lambda: [b"a=1"], ".txt"),
}
