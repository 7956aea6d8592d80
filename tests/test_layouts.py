"""Files as they are out there: each layout gives the right records, or a sentence that says what to do.

Right values are from the arrays that were written, or from SciPy; none has a wrong value and exit code 0.
"""

import gzip
import json

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from jaxgeodp.checks import InputError
from jaxgeodp.cli import app
from jaxgeodp.io import read

N = 12
RNG = np.random.default_rng(0)
FACTORS = RNG.normal(size=(N, 3, 9))
MATRICES = FACTORS @ FACTORS.swapaxes(1, 2) / 9
FOUR = (lambda x: x @ x.swapaxes(1, 2) / 20)(RNG.normal(size=(N, 4, 20)))
DIRECTIONS = (lambda x: x / np.linalg.norm(x, axis=1, keepdims=True))(RNG.normal([1.0, 2.0, 3.0], 0.3, (N, 3)))
WINGS = RNG.normal(size=(5, 2)) * 9 + RNG.normal(size=(N, 5, 2)) * 0.3 + 50
SKULLS = RNG.normal(size=(6, 3)) * 9 + RNG.normal(size=(N, 6, 3)) * 0.3 + 50
TURNS = Rotation.from_rotvec(RNG.normal(size=(N, 3)))
MOVES = RNG.normal(size=(N, 3))
POSES = np.concatenate([TURNS.as_matrix(), MOVES[:, :, None]], axis=2)
DISC = RNG.uniform(-0.5, 0.5, (N, 2))
ANGLES = RNG.uniform(-170.0, 170.0, (N, 2))
PLACES = np.stack([RNG.uniform(-60.0, 60.0, N), RNG.uniform(-170.0, 170.0, N)], axis=1)  # lat, lon
CORRELATIONS = np.array([np.corrcoef(x) for x in RNG.normal(size=(N, 4, 30))])
LOWER, UPPER, OFF = np.tril_indices(3), np.triu_indices(3), np.triu_indices(4, 1)


def complex_of(landmarks):
    return landmarks[..., 0] + 1j * landmarks[..., 1]


def on_sphere(lat, lon):
    lat, lon = np.radians(lat), np.radians(lon)
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)


def hyperboloid(disc):
    square = np.sum(disc**2, axis=1, keepdims=True)
    return np.concatenate([1 + square, 2 * disc], axis=1) / (1 - square)


def text(table, names=None, mark=",", decimal=".", first=""):
    lines = [mark.join(repr(float(x)).replace(".", decimal) for x in row) for row in np.asarray(table)]
    return first + "\n".join([*([] if names is None else [mark.join(names)]), *lines]) + "\n"


def tps(landmarks, key="LM", after="ID={}\n", decimal=".", mark=" ", scale=None):
    dimension = "3" if landmarks.shape[2] == 3 else ""
    parts = []
    for k, one in enumerate(landmarks):
        rows = [mark.join(repr(float(x)).replace(".", decimal) for x in row) for row in one]
        parts.append("\n".join([f"{key}{dimension}={len(one)}", *rows]) + "\n" + after.format(k))
        if scale is not None:
            parts.append(f"SCALE={scale}\n")
    return "".join(parts)


def nts(landmarks, head, labels="", in_parts=False, of_rows=None):
    lines = [head, *([labels] if labels else [])]
    for k, one in enumerate(landmarks):
        rows = [" ".join(repr(float(x)) for x in row) for row in one]
        if of_rows:
            lines.append(f"{of_rows}{k} {' '.join(rows)}")
        else:
            lines += rows if in_parts else [" ".join(rows)]
    return "\n".join(lines) + "\n"


def slicer(one, **more):
    points = [{"label": f"F-{k}", "position": list(x), "positionStatus": "defined"} | more for k, x in enumerate(one)]
    return json.dumps({"markups": [{"type": "Fiducial", "coordinateSystem": "LPS", "controlPoints": points}]})


def fiducials(one):
    head = "# Markups fiducial file version = 4.11\n# CoordinateSystem = LPS\n"
    head += "# columns = id,x,y,z,ow,ox,oy,oz,vis,sel,lock,label,desc,associatedNodeID\n"
    return head + "".join(f"{k},{x},{y},{z},0,0,0,1,1,1,0,F-{k},,\n" for k, (x, y, z) in enumerate(one.tolist()))


def picked(one):
    points = "".join(f' <point x="{x}" y="{y}" z="{z}" active="1" name="{k}"/>\n' for k, (x, y, z) in enumerate(one))
    return f"<!DOCTYPE PickedPoints>\n<PickedPoints>\n{points}</PickedPoints>\n"


def save(array):
    return lambda path: np.save(path, array)


def folder(name, contents):
    """Write a file a record."""

    def write(path):
        path.mkdir()
        for k, content in enumerate(contents):
            target = path / name.format(k)
            content(target) if callable(content) else target.write_text(content)

    return write


HEADED = {"header": True}
NAMED = [f"{axis}{k}" for k in range(1, 6) for axis in "xy"]
SPACED = [f"{axis}{k}" for k in range(1, 7) for axis in "xyz"]
MATRIX = [f"x{i}{j}" for i in (1, 2, 3) for j in (1, 2, 3)]
DIAGONAL_FIRST = MATRICES[:, [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
TRACKED = [[*move, *turn] for move, turn in zip(MOVES, TURNS.as_quat(), strict=True)]  # x, y, z, then qx, qy, qz, qw
Z = "shapes3d"
# Name of the file, what it holds, the manifold, the options, and the records, or words of the sentence.
LAYOUTS = {
    "full matrices": ("a.npy", save(MATRICES), "spd", {}, MATRICES),
    "lower triangles": ("a.csv", text(MATRICES[:, *LOWER]), "spd", {}, MATRICES),
    "upper triangles": ("a.csv", text(MATRICES[:, *UPPER]), "spd", {"triangle": "upper"}, MATRICES),
    "upper triangles by name": (
        "a.csv", text(MATRICES[:, *UPPER], ["x11", "x12", "x13", "x22", "x23", "x33"]), "spd", HEADED, MATRICES
    ),
    "names against the option": (
        "a.csv", text(MATRICES[:, *UPPER], ["x11", "x12", "x13", "x22", "x23", "x33"]), "spd",
        HEADED | {"triangle": "lower"}, "does not agree with the names",
    ),
    "diagonal first by name": (
        "a.csv", text(DIAGONAL_FIRST, ["Dxx", "Dyy", "Dzz", "Dxy", "Dxz", "Dyz"]), "spd", HEADED, MATRICES
    ),
    "DIPY's names": (
        "a.csv", text(MATRICES[:, *LOWER], ["Dxx", "Dxy", "Dyy", "Dxz", "Dyz", "Dzz"]), "spd", HEADED, MATRICES
    ),
    "FSL's names": (
        "a.csv", text(MATRICES[:, *UPPER], ["Dxx", "Dxy", "Dxz", "Dyy", "Dyz", "Dzz"]), "spd", HEADED, MATRICES
    ),
    "all nine by name": ("a.csv", text(MATRICES.reshape(N, 9), MATRIX), "spd", HEADED, MATRICES),
    "all nine from 0": (
        "a.csv", text(MATRICES.reshape(N, 9), [f"c_{i}_{j}" for i in range(3) for j in range(3)]), "spd", HEADED,
        MATRICES,
    ),
    "all nine with the size": ("a.csv", text(MATRICES.reshape(N, 9)), "spd", {"size": 3}, MATRICES),
    "all nine, size unknown": ("a.csv", text(MATRICES.reshape(N, 9)), "spd", {}, "all k^2 numbers need"),
    "ten by ten with marks": (
        "a.csv",
        text(FOUR[:, *np.triu_indices(4)], [f"s[{i},{j}]" for i in range(1, 5) for j in range(i, 5)], mark=";"),
        "spd", HEADED | {"delimiter": ";"}, FOUR,
    ),
    "one matrix": ("a.csv", text(np.eye(6)), "spd", {}, "as one matrix has"),
    "one matrix, meant": ("a.csv", text(MATRICES[:6, *LOWER]), "spd", {"size": 3}, MATRICES[:6]),
    "a folder of matrices": (
        "all", folder("{:02}.csv", [text(x) for x in MATRICES]), "spd", {}, MATRICES
    ),
    "a folder of arrays": ("all", folder("s{:02}.npy", [save(x) for x in MATRICES]), "spd", {}, MATRICES),
    "a folder with blanks between numbers": (
        "all", folder("{:02}.txt", [text(x, mark=" ") for x in MATRICES]), "spd", {"delimiter": "space"}, MATRICES
    ),
    "off the diagonal, named": (
        "a.csv", text(MATRICES[:, [0, 0, 1], [1, 2, 2]], ["x12", "x13", "x23"]), "spd", HEADED, "off the diagonal"
    ),
    "correlations off the diagonal": (
        "a.csv", text(CORRELATIONS[:, *OFF]), "correlations", {"triangle": "upper"}, CORRELATIONS
    ),
    "correlations by name": (
        "a.csv", text(CORRELATIONS[:, *OFF], [f"r{i}{j}" for i in range(1, 5) for j in range(i + 1, 5)]),
        "correlations", HEADED, CORRELATIONS,
    ),
    "correlations with their diagonal, by name": (
        "a.csv", text(CORRELATIONS[:, *np.triu_indices(4)], [f"r{i}{j}" for i in range(1, 5) for j in range(i, 5)]),
        "correlations", HEADED, CORRELATIONS,
    ),
    "covariances as correlations": (
        "a.npy", save(CORRELATIONS * np.outer([1, 2, 3, 4], [1, 2, 3, 4])), "correlations", {"chart": "covariance"},
        CORRELATIONS,
    ),
    "directions": ("a.csv", text(DIRECTIONS, "xyz"), "sphere", HEADED, DIRECTIONS),
    "directions side by side": ("a.csv", text(RNG.normal(size=(3, 300))), "sphere", {}, "transpose it"),
    "latitude and longitude": (
        "a.csv", text(PLACES, ["lat", "lon"]), "sphere", HEADED | {"degrees": "lat,lon"}, on_sphere(*PLACES.T)
    ),
    "latitude and longitude, by the one option": (
        "a.csv", text(PLACES, ["lat", "lon"]), "sphere", HEADED | {"chart": "lat,lon"}, on_sphere(*PLACES.T)
    ),
    "the sky": (
        "a.csv", text(PLACES[:, ::-1], ["ra", "dec"]), "sphere", HEADED | {"chart": "ra,dec"}, on_sphere(*PLACES.T)
    ),
    "the sky, declination first": (
        "a.csv", text(PLACES, ["dec", "ra"]), "sphere", HEADED | {"chart": "dec,ra"}, on_sphere(*PLACES.T)
    ),
    "the sky as palaeomagnetism": (
        "a.csv", text(PLACES, ["dec", "ra"]), "sphere", HEADED | {"degrees": "dec,inc"}, "say --degrees dec,ra"
    ),
    "the sky, nothing said": ("a.csv", text(PLACES, ["dec", "ra"]), "sphere", HEADED, "say --degrees dec,ra"),
    "declination and inclination": (
        "a.csv", text(PLACES[:, ::-1], ["dec", "inc"]), "sphere", HEADED | {"chart": "dec,inc"}, on_sphere(*PLACES.T)
    ),
    "lines of geology": (
        "a.csv", text(np.abs(PLACES[:, ::-1]), ["trend", "plunge"]), "axes", HEADED | {"chart": "trend,plunge"},
        on_sphere(*np.abs(PLACES).T),
    ),
    "planes of geology": (
        "a.csv", text([[90.0, 30.0]] * N), "axes", {"chart": "strike,dip"}, on_sphere(*np.array([[60.0, 0.0]] * N).T)
    ),
    "one angle": ("a.csv", text(ANGLES[:, :1], ["direction"]), "sphere", HEADED, "say --manifold circle"),
    "one angle, as it is said": (
        "a.csv", text(ANGLES[:, :1], ["direction"]), "circle", HEADED | {"chart": "degrees"}, np.radians(ANGLES[:, :1])
    ),
    "angles without a unit": ("a.csv", text(ANGLES), "torus", {}, "--as is needed"),
    "angles in hours": ("a.csv", text(ANGLES / 15.0), "torus", {"chart": "hours"}, np.radians(ANGLES)),
    "the Poincare disc": (
        "a.csv", text(DISC, "xy"), "hyperbolic", HEADED | {"chart": "poincare"}, hyperboloid(DISC)
    ),
    "the Klein disc": (
        "a.csv", text(2 * DISC / (1 + np.sum(DISC**2, axis=1, keepdims=True))), "hyperbolic", {"chart": "klein"},
        hyperboloid(DISC),
    ),
    "the disc, nothing said": ("a.csv", text(DISC, "xy"), "hyperbolic", HEADED, "need --as poincare"),
    "the hyperboloid": ("a.csv", text(hyperboloid(DISC)), "hyperbolic", {}, hyperboloid(DISC)),
    "the hyperboloid, time last": (
        "a.csv", text(np.roll(hyperboloid(DISC), -1, axis=1), ["x1", "x2", "x0"]), "hyperbolic", HEADED,
        "say --columns x0,x1,x2",
    ),
    "the hyperboloid, time last, chosen": (
        "a.csv", text(np.roll(hyperboloid(DISC), -1, axis=1)), "hyperbolic", {"columns": "3,1,2"}, hyperboloid(DISC)
    ),
    "quaternions by name": (
        "a.csv", text(TURNS.as_quat(), ["qx", "qy", "qz", "qw"]), "rotations", HEADED, TURNS.as_matrix()
    ),
    "quaternions, real part first, by name": (
        "a.csv", text(np.roll(TURNS.as_quat(), 1, axis=1), "wxyz"), "rotations", HEADED, TURNS.as_matrix()
    ),
    "quaternions against their names": (
        "a.csv", text(TURNS.as_quat(), ["qx", "qy", "qz", "qw"]), "rotations", HEADED | {"chart": "wxyz"},
        "does not agree",
    ),
    "quaternions, nothing said": ("a.csv", text(TURNS.as_quat()), "rotations", {}, "need --as"),
    "quaternions": ("a.csv", text(TURNS.as_quat() * 3), "rotations", {"chart": "xyzw"}, TURNS.as_matrix()),
    "rotation vectors": ("a.csv", text(TURNS.as_rotvec()), "rotations", {"chart": "rotvec"}, TURNS.as_matrix()),
    "Euler angles about turning axes": (
        "a.csv", text(TURNS.as_euler("ZYX", degrees=True)), "rotations", {"chart": "euler-ZYX-degrees"},
        TURNS.as_matrix(),
    ),
    "Euler angles about fixed axes": (
        "a.csv", text(TURNS.as_euler("zxz")), "rotations", {"chart": "euler-zxz-radians"}, TURNS.as_matrix()
    ),
    "Euler angles without a unit": (
        "a.csv", text(TURNS.as_euler("xyz")), "rotations", {"chart": "euler-xyz"}, "--as must be one of"
    ),
    "columns of rotations": (
        "a.csv", text(TURNS.as_matrix().swapaxes(1, 2).reshape(N, 9), [f"r{i}{j}" for j in "123" for i in "123"]),
        "rotations", HEADED, TURNS.as_matrix(),
    ),
    "poses of a tracker": (
        "a.csv", text(TRACKED, ["tx", "ty", "tz", "qx", "qy", "qz", "qw"]), "rigidmotions(2)", HEADED, POSES
    ),
    "poses, four by four": (
        "a.npy", save(np.concatenate([POSES, np.tile([[[0.0, 0.0, 0.0, 1.0]]], (N, 1, 1))], axis=1)), "rigidmotions(2)",
        {}, POSES,
    ),
    "a basis a row": (
        "a.csv", text(np.linalg.qr(FACTORS[:, :, :2])[0].reshape(N, 6)), "grassmann(3, 2)", {},
        np.linalg.qr(FACTORS[:, :, :2])[0],
    ),
    "a basis a row, no sizes": (
        "a.csv", text(np.linalg.qr(FACTORS[:, :, :2])[0].reshape(N, 6)), "grassmann", {}, "need grassmann(N, p)"
    ),
    "landmarks": ("a.csv", text(WINGS.reshape(N, 10), NAMED), "shapes", HEADED, complex_of(WINGS)),
    "all x, then all y": (
        "a.csv", text(WINGS.swapaxes(1, 2).reshape(N, 10), [f"{a}{k}" for a in "xy" for k in range(1, 6)]), "shapes",
        HEADED, "say --columns x1,y1,x2,y2",
    ),
    "landmarks in space as planar ones": (
        "a.csv", text(SKULLS.reshape(N, 18), SPACED), "shapes", HEADED, "say --manifold shapes3d"
    ),
    "landmarks in space": ("a.csv", text(SKULLS.reshape(N, 18), SPACED), Z, HEADED, SKULLS),
    "tps": ("a.tps", tps(WINGS), "shapes", {}, complex_of(WINGS)),
    "tps in space": ("a.tps", tps(SKULLS), Z, {}, SKULLS),
    "tps with a scale": ("a.tps", tps(WINGS, scale="0.5"), "shapes", {}, complex_of(0.5 * WINGS)),
    "tps with decimal commas": ("a.tps", tps(WINGS, decimal=","), "shapes", {}, complex_of(WINGS)),
    "tps with tabs": ("a.tps", tps(WINGS, mark="\t"), "shapes", {}, complex_of(WINGS)),
    "tps with images and comments": (
        "a.tps", "# by hand\n" + tps(WINGS, after="IMAGE=a{0}.jpg\nID={0}\nCOMMENT=left, 3 = good\n\n"),
        "shapes", {}, complex_of(WINGS),
    ),
    "tps with curves": (
        "a.tps", "".join(
            tps(one[None, :3], after="CURVES=1\n") + f"POINTS={len(one) - 3}\n" + text(one[3:], mark=" ") + "ID=1\n"
            for one in WINGS
        ), "shapes", {}, complex_of(WINGS),
    ),
    "tps with outlines alone": (
        "a.tps", "".join(f"LM=0\nOUTLINES=1\nPOINTS=5\n{text(one, mark=' ')}ID={k}\n" for k, one in enumerate(WINGS)),
        "shapes", {}, complex_of(WINGS),
    ),
    "tps with outlines of all lengths": (
        "a.tps", "".join(
            f"LM=0\nOUTLINES=1\nPOINTS={5 + k}\n{text(RNG.normal(size=(5 + k, 2)), mark=' ')}ID=1\n" for k in range(N)
        ), "shapes", {}, "take as many on each outline",
    ),
    "nts": ("a.nts", nts(WINGS, f"1 {N} 10 0 DIM=2"), "shapes", {}, complex_of(WINGS)),
    "nts with an empty line": (
        "a.nts", nts(WINGS, f"1 {N}L 10 0 DIM=2", " ".join(f"s{k}" for k in range(N))) + "\n", "shapes", {},
        complex_of(WINGS),
    ),
    "nts, a landmark a line": (
        "a.nts", nts(SKULLS, f"1 {N}L 18 0 DIM=3", "\n".join(f"s{k}" for k in range(N)), in_parts=True), Z, {}, SKULLS
    ),
    "nts with a label in each row": (
        "a.nts", nts(WINGS, f"1 {N}B 10 0 DIM=2", of_rows="s"), "shapes", {}, complex_of(WINGS)
    ),
    "dta": (
        "a.dta", nts(SKULLS, f"1 {N}L 18 1 9999 DIM=3", " ".join(f"s{k}" for k in range(N)), in_parts=True), Z, {},
        SKULLS,
    ),
    "a folder of 3D Slicer": ("all", folder("{:02}.mrk.json", map(slicer, SKULLS)), Z, {}, SKULLS),
    "a folder of fiducials": ("all", folder("{:02}.fcsv", map(fiducials, SKULLS)), Z, {}, SKULLS),
    "a folder of picked points": ("all", folder("{:02}.pp", map(picked, SKULLS)), Z, {}, SKULLS),
    "a folder of tables of landmarks": (
        "all", folder("{:02}.csv", ["label,x,y,z\n" + text(np.column_stack([np.arange(6), x])) for x in SKULLS]), Z,
        HEADED | {"columns": "x,y,z"}, SKULLS,
    ),
    "a folder of tps": ("all", folder("{:02}.tps", [tps(x[None]) for x in WINGS]), "shapes", {}, complex_of(WINGS)),
    "a folder of lmk": (
        "all", folder("{:02}.lmk", ["".join(f"p{k} {x} {y} {z}\n" for k, (x, y, z) in enumerate(o)) for o in SKULLS]),
        Z, {}, SKULLS,
    ),
    "a folder of all sorts": (
        "all", folder("{}.csv", ["1,2\n", lambda path: np.save(path.with_suffix(".npy"), WINGS)]), "spd", {},
        "one type of",
    ),
    "tabs": ("a.tsv", text(DIRECTIONS, "xyz", mark="\t"), "sphere", HEADED, DIRECTIONS),
    "text": ("a.txt", text(DIRECTIONS, mark=" "), "sphere", {"delimiter": "space"}, DIRECTIONS),
    "text, nothing said": ("a.txt", text(DIRECTIONS, mark=" "), "sphere", {}, "say it with --delimiter"),
    "semicolons and decimal commas": (
        "a.csv", text(DIRECTIONS, "xyz", mark=";", decimal=","), "sphere", HEADED | {"decimal": ","}, DIRECTIONS
    ),
    "sep=": ("a.csv", text(DIRECTIONS, "xyz", mark=";", first="sep=;\n"), "sphere", HEADED, DIRECTIONS),
    "compressed": (
        "a.csv.gz", lambda path: path.write_bytes(gzip.compress(text(DIRECTIONS).encode())), "sphere", {}, DIRECTIONS
    ),
    "comments before": ("a.csv", "# made by us\n# x y z\n" + text(DIRECTIONS), "sphere", {}, DIRECTIONS),
    "MagIC": (
        "a.txt", "tab \tsites\n" + text(PLACES[:, ::-1], ["dir_dec", "dir_inc"], mark="\t"), "sphere",
        HEADED | {"columns": "dir_dec,dir_inc", "chart": "dec,inc"}, on_sphere(*PLACES.T),
    ),
    **{
        f"in {encoding}": (
            "a.csv", lambda path, encoding=encoding: path.write_text(text(DIRECTIONS, "xyz"), encoding=encoding),
            "sphere", HEADED, DIRECTIONS,
        )
        for encoding in ("utf-8-sig", "utf-16", "utf-32")
    },
    "a mat file": (
        "a.mat", lambda path: __import__("scipy.io").io.savemat(path, {"covs": MATRICES, "note": "x"}), "spd",
        {"array": "covs"}, MATRICES,
    ),
    "a mat file, records last": (
        "a.mat", lambda path: __import__("scipy.io").io.savemat(path, {"covs": MATRICES.transpose(1, 2, 0)}), "spd", {},
        "last axis",
    ),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_layout_is_read_right_or_refused(tmp_path, layout):
    name, content, manifold, options, expected = LAYOUTS[layout]
    path = tmp_path / name
    content(path) if callable(content) else path.write_text(content)
    arguments = [x for key, value in options.items() for x in _option(key, value)]
    result = CliRunner().invoke(
        app, ["check", str(path), "--manifold", manifold, *arguments, "--out", str(tmp_path / "r")]
    )
    if isinstance(expected, str):
        with pytest.raises(InputError):
            read(path, manifold, **options)
        assert result.exit_code == 2 and expected in " ".join(result.output.split()), result.output
        return
    assert result.exit_code == 0, result.output
    found = read(path, manifold, **options)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def _option(key, value):
    option = f"--{'as' if key == 'chart' else key}"
    return [option] if value is True else [option, str(value)]
