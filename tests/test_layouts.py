"""Files as they are out there: each layout gives the right records, or a sentence that says what to do.

Right values are from the arrays that were written, or from SciPy; none has a wrong value and exit code 0.
"""

import datetime
import gzip
import itertools
import json
import math
import time
import warnings
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.io import loadmat, savemat
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from jaxgeodp import Axes, Hyperbolic, Rotations
from jaxgeodp.checks import InputError
from jaxgeodp.cli import app
from jaxgeodp.domains.records import host_array
from jaxgeodp.io import folders, from_chart, read
from jaxgeodp.io.foreign_files import read_mat
from jaxgeodp.io.layout import Layout
from jaxgeodp.io.records import Source
from jaxgeodp.io.tables import read_labels

N = 12
WHO = ["a", " b ", 7, "b", "7", "c", 7, "d", "e", "f", "g", "h"]
RNG = np.random.default_rng(0)
FACTORS = RNG.normal(size=(N, 3, 9))
MATRICES = FACTORS @ FACTORS.swapaxes(1, 2) / 9
FOUR = (lambda x: x @ x.swapaxes(1, 2) / 20)(RNG.normal(size=(N, 4, 20)))
TEN = (lambda x: x @ x.swapaxes(1, 2) / 40)(np.random.default_rng(10).normal(size=(N, 10, 40)))
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
        HEADED | {"triangle": "lower"}, "contradicts the names",
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
        "contradicts",
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
        ), "shapes", {}, "the same number on each outline",
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
    "a folder of lmk with a missing landmark": (
        "all", folder("{:02}.lmk", ["".join(f"p{k} {x} {y} {z}\n" for k, (x, y, z) in enumerate(o)).replace(
            f"p2 {SKULLS[0, 2, 0]} {SKULLS[0, 2, 1]} {SKULLS[0, 2, 2]}", "p2 NA NA NA") for o in SKULLS]), Z, {},
        np.where((np.arange(N)[:, None, None] == 0) & (np.arange(6)[:, None] == 2), np.nan, SKULLS),
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
    "comments before": ("a.csv", "# made by us\n# 1, 2\n" + text(DIRECTIONS, "xyz"), "sphere", HEADED, DIRECTIONS),
    "names behind a mark": ("a.csv", "# x,y,z\n" + text(DIRECTIONS), "sphere", HEADED, "take the '#' away"),
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
    **{
        f"landmarks with {what}": ("a.csv", text(table, names), manifold, HEADED, words)
        for what, table, names, manifold, words in (
            (
                "confidences", np.concatenate([WINGS, np.ones((N, 5, 1))], axis=2).reshape(N, -1),
                [f"{c}{k}" for k in range(5) for c in "xyc"], Z, "without z",
            ),
            (
                "likelihoods", np.concatenate([WINGS, np.ones((N, 5, 1))], axis=2).reshape(N, -1),
                [f"p{k}_{c}" for k in range(5) for c in ("x", "y", "likelihood")], "shapes",
                "say --columns p0_x,p0_y,p1_x",
            ),
            (
                "sizes", np.column_stack([WINGS.reshape(N, -1), np.ones((N, 2))]),
                [*(f"{c}{k}" for k in range(5) for c in "xy"), "csize", "area"], "shapes",
                "columns csize, area are by their names not coordinates",
            ),
            (
                "all x by other names", WINGS.swapaxes(1, 2).reshape(N, -1),
                [f"p{c}{k}" for c in "xy" for k in range(5)], "shapes", "say --columns px0,py0,px1",
            ),
            (
                "all x by names of places", WINGS.swapaxes(1, 2).reshape(N, -1),
                [f"{k}{c}" for c in "xy" for k in ("nose", "eye", "ear", "chin", "brow")], "shapes",
                "say --columns nosex,nosey,eyex",
            ),
            (
                "numbers in another order", WINGS[:, [0, 2, 3, 4, 1]].reshape(N, -1),
                [f"{c}{k}" for k in (1, 3, 4, 5, 2) for c in "xy"], "shapes", "say --columns x1,y1,x2,y2,x3",
            ),
        )
    },
    "directions as y, x, z": ("a.csv", text(DIRECTIONS[:, [1, 0, 2]], "yxz"), "sphere", HEADED, "say --columns x,y,z"),
    "directions and a field": (
        "a.csv", text(np.column_stack([DIRECTIONS, np.ones(N)]), "xyzb"), "sphere", HEADED, "say --columns x,y,z"
    ),
    "spherical coordinates": (
        "a.csv", text(np.ones((N, 3)), ["r", "theta", "phi"]), "sphere", HEADED, "say --degrees lat,lon"
    ),
    "a hyperboloid in another order": (
        "a.csv", text(hyperboloid(DISC)[:, [0, 2, 1]], ["x0", "x2", "x1"]), "hyperbolic", HEADED,
        "say --columns x0,x1,x2",
    ),
    "correlations by letters, from below": (
        "a.csv", text(CORRELATIONS[:, *np.tril_indices(4, -1)], ["ba", "ca", "cb", "da", "db", "dc"]), "correlations",
        HEADED, CORRELATIONS,
    ),
    "moments of r, t, p": (
        "a.csv", text(MATRICES[:, *UPPER], ["rr", "rt", "rp", "tt", "tp", "pp"]), "spd", HEADED, MATRICES
    ),
    "moments with the covariance first": (
        "a.csv", text(MATRICES[:, [1, 0, 1], [0, 0, 1]], ["cov_yx", "var_x", "var_y"]), "spd", HEADED,
        MATRICES[:, :2, :2],
    ),
    **{
        f"covariances by {own[1]}": ("a.csv", text(MATRICES[:, *UPPER], own), "spd", HEADED, MATRICES)
        for own in (
            ["var_1", "cov_1_2", "cov_1_3", "var_2", "cov_2_3", "var_3"],
            ["v1", "c12", "c13", "v2", "c23", "v3"],
            ["var1", "cov12", "cov13", "var2", "cov23", "var3"],
            ["varx", "covxy", "covxz", "vary", "covyz", "varz"],
            ["sigma_x2", "sigma_xy", "sigma_xz", "sigma_y2", "sigma_yz", "sigma_z2"],
            ["var(a)", "cov(a;b)", "cov(a;c)", "var(b)", "cov(b;c)", "var(c)"],
            ["Fz-Fz", "Fz-Cz", "Fz-Pz", "Cz-Cz", "Cz-Pz", "Pz-Pz"],
            ["cov.F3.F3", "cov.F3.C4", "cov.F3.O1", "cov.C4.C4", "cov.C4.O1", "cov.O1.O1"],
            ["V1-V1", "V1-V2", "V1-V4", "V2-V2", "V2-V4", "V4-V4"],
            ["x11", "x12", "x14", "x22", "x24", "x44"],
            ["var_a_mm2", "cov_ab_mm2", "cov_ac_mm2", "var_b_mm2", "cov_bc_mm2", "var_c_mm2"],
            ["D11 (mm2/s)", "D12 (mm2/s)", "D13 (mm2/s)", "D22 (mm2/s)", "D23 (mm2/s)", "D33 (mm2/s)"],
            ["r_r", "r_t", "r_p", "t_t", "t_p", "p_p"],
            ["R1-R1", "R1-L1", "R1-L2", "L1-L1", "L1-L2", "L2-L2"],
            ["SD_SD", "SD_LV", "SD_RV", "LV_LV", "LV_RV", "RV_RV"],
            ["lh_V1:lh_V1", "lh_V1:rh_V1", "lh_V1:rh_V2", "rh_V1:rh_V1", "rh_V1:rh_V2", "rh_V2:rh_V2"],
            [f"cov_{a}_{b}" for a, b in itertools.combinations_with_replacement(("lh_V1", "rh_V1", "rh_V2"), 2)],
            ["PCC-PCC", "PCC-L_IPL", "PCC-V1", "L_IPL-L_IPL", "L_IPL-V1", "V1-V1"],
            ["BRK.A_BRK.A", "BRK.A_MSFT", "BRK.A_KO", "MSFT_MSFT", "MSFT_KO", "KO_KO"],
            ["sigma^2_x", "sigma_xy", "sigma_xz", "sigma^2_y", "sigma_yz", "sigma^2_z"],
            ["sigma_x\u00b2", "sigma_xy", "sigma_xz", "sigma_y\u00b2", "sigma_yz", "sigma_z\u00b2"],
            ["s2_x", "s_xy", "s_xz", "s2_y", "s_yz", "s2_z"],
            ["var_x1", "cov_x1_x2", "cov_x1_x3", "var_x2", "cov_x2_x3", "var_x3"],
            ["var_1", "cov_1_10", "cov_1_11", "var_10", "cov_10_11", "var_11"],
            ["AAPL_var", "AAPL_MSFT_cov", "AAPL_KO_cov", "MSFT_var", "MSFT_KO_cov", "KO_var"],
            ["a_var", "a_c_cov", "a_v_cov", "c_var", "c_v_cov", "v_var"],
            ["var_x", "covar_xy", "covar_xz", "var_y", "covar_yz", "var_z"],
            ["D11_b0", "D12_b0", "D13_b0", "D22_b0", "D23_b0", "D33_b0"],
            ["CR_R", "CT_R", "CN_R", "CT_T", "CN_T", "CN_N"],
            ["Mrr", "Mrt", "Mrp", "Mtt", "Mtp", "Mpp"],
            ["s_s", "s_t", "s_v", "t_t", "t_v", "v_v"],
            ["C[sd;sd]", "C[sd;lv]", "C[sd;rv]", "C[lv;lv]", "C[lv;rv]", "C[rv;rv]"],
        )
    },
    **{
        f"no entries: {own[0]}, {own[1]}": (
            "a.csv", text(MATRICES[:, *UPPER][:, : len(own)], own), "spd", HEADED, "by their names"
        )
        for own in (
            ["sigma_x", "sigma_x_y", "sigma_y"],
            ["s_1", "s_1_2", "s_2"],
            ["sigma_AAPL", "sigma_AAPL_MSFT", "sigma_MSFT"],
            ["sd_1_1", "sd_1_2", "sd_2_2"],
            ["sd_e", "sd_n", "sd_u", "sd_e_n", "sd_n_u", "sd_e_u"],
            ["x_sd", "y_sd", "x_y_cov"],
            ["E_std", "N_std", "U_std", "EN_std", "EU_std", "NU_std"],
            ["Dxx_sd", "Dxy_sd", "Dyy_sd"],
            ["log_Dxx", "log_Dxy", "log_Dyy"],
            ["logDxx", "logDxy", "logDyy"],
            ["ln(xx)", "ln(xy)", "ln(yy)"],
            ["chol_11", "chol_21", "chol_22"],
            ["sd1", "sd2", "sd3"],
            ["L_Omega.1.1", "L_Omega.2.1", "L_Omega.2.2"],
            ["L1", "L2", "L3"],
            ["L[1]", "L[2]", "L[3]"],
            *(
                [f"{stem}{entry}" for entry in ("11", "12", "22")]
                for stem in ("L", "U", "L_cov", "Lcov", "lncov", "sqrtcov", "covlog", "r2_")
            ),
        )
    },
    **{
        f"what tells nothing: {own[0]}, {own[1]}": (
            "a.csv", text(MATRICES[:, *UPPER][:, : len(own)], own), "spd", HEADED, "say --triangle lower"
        )
        for own in (
            ["cov_1_2", "cov_1_3", "cov_1_4"],
            [f"Sigma[1.{k}]" for k in range(1, 7)],
            ["var_1", "var_2", "var_3"],
            ["Var1", "Var2", "Var3"],
            [f"s{k}" for k in range(1, 7)],
            [f"anisotropy_s{k}" for k in range(1, 7)],
            ["lambda_1", "lambda_2", "lambda_3"],
            *(
                [f"{stem}{k}" for k in range(1, 4)]
                for stem in ("run1_var", "sub1_eig", "dti_L", "sess1_cor", "lambda.", "r")
            ),
            *([f"{stem}[{k}]" for k in range(1, 4)] for stem in ("lambda", "var", "dti")),
            *([f"{stem}{k}" for k in range(1, 7)] for stem in ("upper_", "vech_", "voigt_", "sigma", "AMS_s")),
            ["x1_var", "x2_var", "x3_var"],
            ["PC1", "PC2", "PC3"],
            ["x", "y", "z"],
            ["f10", "f11", "f12"],
        )
    },
    **{
        f"beside entries: {own[-1]}": (
            "a.csv", text(np.ones((N, len(own))), own), "spd", HEADED | {"size": math.isqrt(len(own))}, "say --columns"
        )
        for own in (
            ["var_x", "var_y", "cov_xy", "n"],
            ["D11", "D22", "D33", "D12", "D13", "D23", "FA", "MD", "mode"],
            ["Dxx", "Dyy", "Dzz", "Dxy", "Dxz", "Dyz", "FA", "MD", "VR"],
            ["c11", "c12", "c21", "c22", "m1", "m2", "m3", "m4", "m5"],
        )
    },
    **{
        f"no correlations: {own[0]}": (
            "a.csv", text(CORRELATIONS[:, *OFF][:, :3], own), "correlations", HEADED, words
        )
        for own, words in (
            (["var_x", "cov_xy", "var_y"], "say --as covariance"),
            (["cov_12", "cov_13", "cov_23"], "say --as covariance"),
            (["A_B_cov", "A_C_cov", "B_C_cov"], "say --as covariance"),
            (["fisher_z_12", "fisher_z_13", "fisher_z_23"], "by their names (fisher)"),
            (["pval_a_b", "pval_a_c", "pval_b_c"], "by their names (pval)"),
            (["r12", "r13", "r14"], "say --triangle lower"),
            (["cov.1", "cov.2", "cov.3"], "say --as covariance"),
            (["CovP1", "CovP2", "CovP3"], "say --as covariance"),
            (["VarCov_1", "VarCov_2", "VarCov_3"], "say --as covariance"),
            (["cov_corr_1", "cov_corr_2", "cov_corr_3"], "say --as covariance"),
            (["r_cov12", "r_cov13", "r_cov23"], "say --as covariance"),
            (["p_value_12", "p_value_13", "p_value_23"], "by their names (p)"),
            (["PValue_12", "PValue_13", "PValue_23"], "by their names (p)"),
            (["r12_p", "r13_p", "r23_p"], "by their names (p)"),
            (["RSquared_12", "RSquared_13", "RSquared_23"], "by their names (squared)"),
            (["r12^2", "r13^2", "r23^2"], "by their names (r^2)"),
            (["r_to_z_12", "r_to_z_13", "r_to_z_23"], "by their names (z)"),
            (["z12", "z13", "z23"], "by their names (z)"),
            (["zr12", "zr13", "zr23"], "by their names (zr)"),
            (["fz12", "fz13", "fz23"], "by their names (fz)"),
            (["arctanh_12", "arctanh_13", "arctanh_23"], "by their names (arctanh)"),
            (["r2_12", "r2_13", "r2_23"], "by their names (r^2)"),
        )
    },
    **{
        f"counted: {own[0]}, {own[-1]}": ("a.csv", text(FOUR[:, *np.tril_indices(4)], own), "spd", HEADED, FOUR)
        for own in (
            [f"S[{k}]" for k in range(1, 11)],
            [f"V{k}" for k in range(2, 12)],
            [f"run1_f{k}" for k in range(10)],
        )
    },
    **{
        f"all nine: {own[1]}": ("a.csv", text(MATRICES.reshape(N, 9), own), "spd", HEADED | {"size": 3}, MATRICES)
        for own in (
            [f"{a}_vs_{b}" for a in ("Fp1", "Fp2", "O1") for b in ("Fp1", "Fp2", "O1")],
            [f"{a}{b}" for a in ("Fp1", "Fp2", "O1") for b in ("Fp1", "Fp2", "O1")],
        )
    },
    **{
        f"ten by ten, {how}": (
            "a.csv", text(TEN[:, *order], [f"cov{i + 1}{j + 1}" for i, j in zip(*order, strict=True)]), "spd", HEADED,
            TEN,
        )
        for how, order in (
            ("whole", tuple(np.indices((10, 10)).reshape(2, -1))),
            ("lower", np.tril_indices(10)),
            ("upper", np.triu_indices(10)),
        )
    },
    "correlations of variables": (
        "a.csv", text(CORRELATIONS[:, *OFF], [f"cor_var{a}_var{b}" for a, b in itertools.combinations(range(1, 5), 2)]),
        "correlations", HEADED, CORRELATIONS,
    ),
    "a diagonal that is not 1": (
        "a.csv", text(MATRICES[:, [0, 0, 1], [0, 1, 1]], ["xx", "xy", "yy"]), "correlations", HEADED,
        MATRICES[:, :2, :2],
    ),
    "variances with units": (
        "a.csv", text(MATRICES[:, [0, 1, 0], [0, 1, 1]], ["var_a (mm2)", "var_b (mm2)", "cov_ab (mm2)"]), "spd", HEADED,
        MATRICES[:, :2, :2],
    ),
    "deviations": (
        "a.csv", text(MATRICES[:, *UPPER], ["sde", "sdn", "sdu", "sden", "sdnu", "sdeu"]), "spd", HEADED,
        "are standard deviations or correlations by their names",
    ),
    "variances and correlations": (
        "a.csv", text(MATRICES[:, [0, 1, 0], [0, 1, 1]], ["s1", "s2", "r12"]), "spd", HEADED,
        "its columns s1, s2, r12 are",
    ),
    **{
        f"{own[0]}, {own[2]}": (
            "a.csv", text(MATRICES[:, [0, 1, 0], [0, 1, 1]], own), "spd", HEADED,
            "standard deviations or correlations by their names",
        )
        for own in (
            ["varx", "vary", "corrxy"],
            ["sx", "sy", "rxy"],
            ["sigma_x", "sigma_y", "cov_xy"],
            ["sdn(m)", "sde(m)", "sdne(m)"],
        )
    },
    "deviations, and the triangle": (
        "a.csv", text(MATRICES[:, [0, 0, 1], [0, 1, 1]], ["sd1", "sd2", "sd3"]), "spd", HEADED | {"triangle": "upper"},
        MATRICES[:, :2, :2],
    ),
    "rows of 36, of 8 channels": (
        "a.csv", text(np.ones((N, 36)), [*[f"{a}{b}" for a in "ABCDEFGH" for b in "ABCDEFGH" if a <= b][:-1], "last"]),
        "spd", HEADED | {"size": 8}, "say --triangle lower",
    ),
    "letters in no order": (
        "a.csv", text(MATRICES[:, [0, 1, 0], [0, 1, 1]], ["E", "N", "U"]), "spd", HEADED, "say --triangle lower",
    ),
    "a number and a mark": (
        "a.csv", text(MATRICES[:, [0, 1, 0], [0, 1, 1]], ["ch1", "ch2", "ch#"]), "spd", HEADED, "say --triangle lower",
    ),
    "two rows of three": (
        "a.csv", text(MATRICES[:, *UPPER], ["x11", "x12", "x13", "x21", "x22", "x23"]), "spd", HEADED,
        "say --triangle lower",
    ),
    "three words that are no entries": (
        "a.csv", text(MATRICES[:, [0, 1, 0], [0, 1, 1]], ["alpha", "beta", "gamma"]), "spd", HEADED,
        "say --triangle lower",
    ),
    "correlations by columns": (
        "a.csv",
        text(CORRELATIONS[:, [0, 0, 1, 0, 1, 2], [1, 2, 2, 3, 3, 3]], ["a-b", "a-c", "b-c", "a-d", "b-d", "c-d"]),
        "correlations", HEADED, CORRELATIONS,
    ),
    "counted in brackets": (
        "a.csv", text(MATRICES[:, *np.tril_indices(3)], ["S[1]", "S[2]", "S[3]", "S[4]", "S[5]", "S[6]"]), "spd",
        HEADED, MATRICES,
    ),
    "correlations by pairs of words": (
        "a.csv", text(CORRELATIONS[:, *np.triu_indices(4, 1)], ["a.b", "a.c", "a.d", "b.c", "b.d", "c.d"]),
        "correlations", HEADED, CORRELATIONS,
    ),
    "columns that are only counted": (
        "a.csv", text(MATRICES[:, *np.tril_indices(3)], ["f_1", "f_2", "f_3", "f_4", "f_5", "f_6"]), "spd", HEADED,
        MATRICES,
    ),
    "words that are no entries": (
        "a.csv", text(MATRICES[:, *UPPER], ["power", "theta", "Cz", "alpha", "Pz", "beta"]), "spd", HEADED,
        "say --triangle lower",
    ),
    "pairs of words in no order": (
        "a.csv", text(CORRELATIONS[:, [0, 1, 0], [1, 2, 2]], ["alpha_beta", "beta_gamma", "alpha_gamma"]),
        "correlations", HEADED, "say --triangle lower",
    ),
    "words that are no entries, and the triangle": (
        "a.csv", text(MATRICES[:, *UPPER], ["power", "theta", "Cz", "alpha", "Pz", "beta"]), "spd",
        HEADED | {"triangle": "upper"}, MATRICES,
    ),
    "quaternions as points": (
        "a.csv", text(TURNS.as_quat(), ["q_x", "q_y", "q_z", "q_w"]), "sphere", HEADED, TURNS.as_quat()
    ),
    "a hyperboloid whose time is z": (
        "a.csv", text(hyperboloid(DISC), "zxy"), "hyperbolic", HEADED, hyperboloid(DISC)
    ),
    "a hyperboloid whose time is the last": (
        "a.csv", text(np.roll(hyperboloid(DISC), -1, axis=1), "xyz"), "hyperbolic", HEADED | {"columns": "3,1,2"},
        hyperboloid(DISC),
    ),
    "bands on a sphere": (
        "a.csv", text(np.column_stack([DIRECTIONS, DIRECTIONS[:, :1]]), ["delta", "theta", "alpha", "beta"]), "sphere",
        HEADED, np.column_stack([DIRECTIONS, DIRECTIONS[:, :1]]),
    ),
    "colatitudes that were written as latitudes": (
        "a.csv", text(PLACES, ["theta", "phi"]), "sphere", HEADED | {"degrees": "lat,lon"}, on_sphere(*PLACES.T)
    ),
    "angles of a torus by other names": (
        "a.csv", text(ANGLES, ["wind_direction", "wave_heading"]), "torus", HEADED | {"chart": "degrees"},
        np.radians(ANGLES),
    ),
    "poses of EuRoC": (
        "a.csv", text(np.concatenate([MOVES, TURNS.as_quat()[:, [3, 0, 1, 2]]], axis=1),
        [*(f"p_RS_R_{c} [m]" for c in "xyz"), *(f"q_RS_{c} []" for c in "wxyz")]), "rigidmotions(1)", HEADED, POSES,
    ),
    "tps with a line of text": (
        "a.tps", tps(WINGS, after="made 2020\nID={}\n"), "shapes", {}, complex_of(WINGS)
    ),
    "moments by letters": (
        "a.csv", text(MATRICES[:, [0, 1, 0], [0, 1, 1]], ["var_a", "var_b", "cov_ab"]), "spd", HEADED,
        MATRICES[:, :2, :2],
    ),
    "correlations by letters": (
        "a.csv", text(CORRELATIONS[:, *OFF], ["ab", "ac", "ad", "bc", "bd", "cd"]), "correlations", HEADED,
        CORRELATIONS,
    ),
    "tensors beside their scalars": (
        "a.csv", text(np.ones((N, 8)), ["Dxx", "Dxy", "Dxz", "Dyy", "Dyz", "Dzz", "FA", "MD"]), "spd", HEADED,
        "say --columns Dxx,Dxy,Dxz",
    ),
    "quaternions with units": (
        "a.csv", text(TURNS.as_quat(), [f"q_RS_{c} []" for c in "xyzw"]), "rotations", HEADED, TURNS.as_matrix()
    ),
    "quaternions of a sensor against their names": (
        "a.csv", text(TURNS.as_quat(), [f"sensor_{c}" for c in "xyzw"]), "rotations", HEADED | {"chart": "wxyz"},
        "contradicts",
    ),
    "axes and angles": (
        "a.csv", text(np.ones((N, 4)), ["ax", "ay", "az", "angle"]), "rotations", HEADED | {"chart": "xyzw"},
        "say --as rotvec",
    ),
    "azimuths of dips": (
        "a.csv", text(PLACES, ["Dip", "Dip_Azimuth"]), "axes", HEADED | {"degrees": "dip,dipdir"},
        from_chart(Axes(2), PLACES, "dip,dipdir"),
    ),
    "azimuths and plunges": (
        "a.csv", text(PLACES, ["Azimuth", "Plunge"]), "axes", HEADED, "say --degrees trend,plunge"
    ),
    "angles by --as against their names": (
        "a.csv", text(PLACES, ["lon", "lat"]), "sphere", HEADED | {"chart": "dec,inc"}, "--as dec,inc contradicts"
    ),
    "an index of pandas": (
        "a.csv", text(np.column_stack([DIRECTIONS, np.arange(N)]), [*"xyz", "__index_level_0__"]), "sphere", HEADED,
        "__index_level_0__",
    ),
    "decimal commas in quotes": (
        "a.csv", "\n".join(",".join(f'"{repr(float(x)).replace(".", ",")}"' for x in row) for row in DIRECTIONS) + "\n",
        "sphere", {"decimal": ",", "delimiter": ","}, DIRECTIONS,
    ),
    "a minus that is none": (
        "a.csv", text(-DIRECTIONS).replace("-", "\u2212"), "sphere", {}, -DIRECTIONS,
    ),
    "tps with lines too many": (
        "a.tps", tps(WINGS).replace("ID=3", "9 9\nID=3"), "shapes", {},
        np.where(np.arange(N)[:, None] == 3, np.nan, complex_of(WINGS)),
    ),
    "tps with an empty line for a landmark": (
        "a.tps", tps(WINGS).replace(" ".join(map(repr, map(float, WINGS[3, 1]))), ""), "shapes", {},
        np.where((np.arange(N)[:, None] == 3) & (np.arange(5) == 1), np.nan, complex_of(WINGS)),
    ),
    "tps with missing landmarks and a scale": (
        "a.tps", tps(WINGS, scale=0.5).replace(" ".join(map(repr, map(float, WINGS[3, 1]))), "-1 -1"), "shapes", {},
        np.where((np.arange(N)[:, None] == 3) & (np.arange(5) == 1), np.nan, 0.5 * complex_of(WINGS)),
    ),
    "nts with more lines than it says": (
        "a.nts", nts(WINGS, f"1 {N - 2}L 10 0 DIM=2", " ".join(f"s{k}" for k in range(N - 2))), "shapes", {},
        "must hold",
    ),
    "nts with empty lines between": (
        "a.nts", nts(WINGS, f"1 {N}L 10 0 DIM=2", " ".join(f"s{k}" for k in range(N))).replace("\n", "\n\n"), "shapes",
        {}, complex_of(WINGS),
    ),
    "a table of text by another name": ("a.dat", text(DIRECTIONS), "sphere", {}, "call it .txt"),
    "an array of R": (
        "a.npy", lambda path: np.save(path, WINGS.transpose(1, 2, 0)), "shapes", {}, "jaxgeodp.landmarks_from_r"
    ),
    "an array of R in space": (
        "a.npy", lambda path: np.save(path, SKULLS.transpose(1, 2, 0)), Z, {}, "aperm(x, c(3, 1, 2))"
    ),
    "a mat file": (
        "a.mat", lambda path: savemat(path, {"covs": MATRICES, "note": "x"}), "spd",
        {"array": "covs"}, MATRICES,
    ),
    "a mat file, records last": (
        "a.mat", lambda path: savemat(path, {"covs": MATRICES.transpose(1, 2, 0)}), "spd", {},
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


# Any data in any layout ---------------------------------------------------------------------------------

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 6))
STYLES = ("x{}{}", "x_{}_{}", "cov[{},{}]", "D.{}-{}", "r{}{}")
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(st.data())
@QUICK
def test_matrices_with_names_are_read_in_any_order(tmp_path, data):
    size, first = data.draw(st.integers(2, 5)), data.draw(st.sampled_from([0, 1]))
    factors = np.random.default_rng(data.draw(st.integers(0, 99))).normal(size=(4, size, 9))
    matrices = factors @ factors.swapaxes(1, 2)
    kind = data.draw(st.sampled_from(["lower", "upper", "full", "mixed"]))
    pairs = [(i, j) for i in range(size) for j in range(size)]
    pairs = [(i, j) for i, j in pairs if kind == "full" or (i <= j if kind != "lower" else i >= j)]
    if kind == "mixed":
        pairs = [pair if data.draw(st.booleans()) else pair[::-1] for pair in pairs]
    pairs = data.draw(st.permutations(pairs))
    style = data.draw(st.sampled_from(STYLES))
    if {min(pair) for pair in pairs} and len(pairs) < size * (size + 1) // 2:
        return
    names = [f'"{style.format(i + first, j + first)}"' for i, j in pairs]
    (tmp_path / "a.csv").write_text(text(matrices[:, *np.transpose(pairs)], names))
    np.testing.assert_allclose(read(tmp_path / "a.csv", "spd", header=True), matrices, rtol=1e-15)


@given(st.data())
@QUICK
def test_tables_are_read_in_any_dress(tmp_path, data):
    table = np.array(data.draw(st.lists(st.lists(NUMBERS, min_size=4, max_size=4), min_size=2, max_size=6)))
    decimal, mark = data.draw(
        st.sampled_from([(".", ","), (".", ";"), (".", "\t"), (",", ";"), (",", "\t"), (".", "|")])
    )
    end, encoding = (
        data.draw(st.sampled_from(["\n", "\r\n", "\r"])),
        data.draw(st.sampled_from(["utf-8-sig", "utf-16"])),
    )
    names = data.draw(st.sampled_from([None, "abcd"]))
    before = data.draw(st.sampled_from(["", "# a comment, 1\n", "\n".join(["#", "#x", ""])])) if names else ""
    if names and data.draw(st.booleans()):
        before, said = f"sep={mark}\n{before}", {}
    else:
        said = {"delimiter": mark}
    content = text(table, names, mark, decimal, before).replace("\n", end).encode(encoding)
    suffix = data.draw(st.sampled_from([".csv", ".txt", ".csv.gz"]))
    path = tmp_path / f"a{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    found = read(path, "euclidean(4)", header=names is not None, decimal=decimal, **said)
    np.testing.assert_array_equal(found, table)


WRITERS = {
    "a.tps": lambda x: tps(x),
    "b.tps": lambda x: tps(x, decimal=",", mark="\t"),
    "a.nts": lambda x: nts(x, f"1 {len(x)} {x[0].size} 0 DIM={x.shape[2]}"),
    "b.nts": lambda x: nts(x, f"1 {len(x)}L {x[0].size} 0 DIM={x.shape[2]}", "a b", in_parts=True) + "\n\n",
    "a.npy": save,
    "a.csv": lambda x: text(x.reshape(len(x), -1)),
    "all": lambda x: folder("{:03}.csv", [text(one) for one in x]),
    "txt": lambda x: folder("{:03}.npy", [save(one) for one in x]),
    "slicer": lambda x: folder("{:03}.mrk.json", map(slicer, x.tolist())),
    "fcsv": lambda x: folder("{:03}.fcsv", map(fiducials, x)),
    "pp": lambda x: folder("{:03}.pp", map(picked, x.tolist())),
}


@pytest.mark.parametrize("name", WRITERS)
@given(st.data())
@settings(QUICK, max_examples=8)
def test_landmarks_are_read_from_any_file(tmp_path_factory, name, data):
    folder_of_one = tmp_path_factory.mktemp("any")
    dimension = 3 if name in ("slicer", "fcsv", "pp") else data.draw(st.sampled_from([2, 3]))
    n, k = data.draw(st.integers(2, 5)), data.draw(st.integers(4, 7))
    numbers = data.draw(st.lists(NUMBERS, min_size=n * k * dimension, max_size=n * k * dimension))
    landmarks = np.array(numbers).reshape(n, k, dimension)
    content = WRITERS[name](landmarks)
    content(folder_of_one / name) if callable(content) else (folder_of_one / name).write_text(content)
    found = read(folder_of_one / name, "shapes" if dimension == 2 else Z)
    np.testing.assert_array_equal(found, complex_of(landmarks) if dimension == 2 else landmarks)


def pose_columns(names):
    """Columns of poses by what they are."""
    quaternion = TURNS.as_quat()
    known = dict(zip(["tx", "ty", "tz"], MOVES.T, strict=True)) | dict(zip("xyzw", quaternion.T, strict=True))
    known |= dict(zip(["vx", "vy", "vz"], TURNS.as_rotvec().T, strict=True))
    known |= dict(zip(["ez", "ey", "ex"], TURNS.as_euler("ZYX", degrees=True).T, strict=True))
    return np.column_stack([known[name] for name in names])


POSED = {
    "tz,ty,tx,qw,qx,qy,qz": ("tz ty tx w x y z", {}),
    "qx,qy,qz,qw,pos_x,pos_y,pos_z": ("x y z w tx ty tz", {}),
    "field.pose.position.x,field.pose.position.y,field.pose.position.z,field.pose.orientation.x,"
    "field.pose.orientation.y,field.pose.orientation.z,field.pose.orientation.w": ("tx ty tz x y z w", {}),
    "x,y,z,qr,qi,qj,qk": ("tx ty tz w x y z", {}),
    "rx,ry,rz,tx,ty,tz": ("vx vy vz tx ty tz", {"chart": "rotvec"}),
    "tx,ty,tz,rz,ry,rx": ("tx ty tz vz vy vx", {"chart": "rotvec"}),
    "t1,t2,t3,yaw,pitch,roll": ("tx ty tz ez ey ex", {"chart": "euler-ZYX-degrees"}),
}


@pytest.mark.parametrize("names", POSED)
def test_poses_are_read_as_names_say(tmp_path, names):
    columns, options = POSED[names]
    (tmp_path / "a.csv").write_text(text(pose_columns(columns.split()), names.split(",")))
    found = read(tmp_path / "a.csv", "rigidmotions(2)", header=True, **options)
    np.testing.assert_allclose(found, POSES, atol=1e-12)


@pytest.mark.parametrize(
    ("names", "options"),
    [
        ("x,y,z,X rot,Y rot,Z rot,W rot", {"chart": "wxyz"}),
        ("t1,t2,t3,roll,pitch,yaw", {"chart": "euler-ZYX-degrees"}),
        ("qx,qy,qz,qw,tx,ty,tz", {"chart": "wxyz"}),
    ],
)
def test_poses_against_their_names_are_refused(tmp_path, names, options):
    width = len(names.split(","))
    (tmp_path / "a.csv").write_text(text(np.ones((3, width)), names.split(",")))
    with pytest.raises(InputError):
        read(tmp_path / "a.csv", "rigidmotions(2)", header=True, **options)


LONG = {
    "D.1.1.": [f"D.{i}.{j}." for i in "123" for j in "123"],
    "D[0][0]": [f"D[{i}][{j}]" for i in "012" for j in "012"],
    "Dxx (mm2/s)": [f"D{i}{j} (mm2/s)" for i in "xyz" for j in "xyz"],
    "D_11_t": [f"D_{i}{j}_t" for i in "123" for j in "123"],
    "ch1-ch1": [f"ch{i}-ch{j}" for i in "123" for j in "123"],
    "s2_x11": [f"s2_x{i}{j}" for i in "123" for j in "123"],
}


@pytest.mark.parametrize("names", LONG)
def test_names_of_entries_in_many_forms(tmp_path, names):
    order = np.random.default_rng(3).permutation(9)
    table, shuffled = MATRICES.reshape(N, 9)[:, order], [LONG[names][place] for place in order]
    (tmp_path / "a.csv").write_text(text(table, shuffled, mark=";"))
    found = read(tmp_path / "a.csv", "spd", header=True, delimiter=";")
    np.testing.assert_array_equal(found, MATRICES)


def test_bases_are_read_as_names_say(tmp_path):
    bases = np.linalg.qr(FACTORS[:, :, :2])[0]
    names = [f"x{i}{j}" for j in "12" for i in "123"]
    (tmp_path / "a.csv").write_text(text(bases.swapaxes(1, 2).reshape(N, 6), names))
    np.testing.assert_array_equal(read(tmp_path / "a.csv", "grassmann", header=True), bases)


def test_columns_by_number_state_no_order(tmp_path):
    names = ["id", *(f"{axis}{k}" for axis in "xy" for k in range(1, 6))]
    (tmp_path / "a.csv").write_text(text(np.column_stack([np.arange(N), WINGS.swapaxes(1, 2).reshape(N, 10)]), names))
    with pytest.raises(InputError, match="say columns x1,y1,x2,y2"):
        read(tmp_path / "a.csv", "shapes", header=True, columns="2-11")
    found = read(tmp_path / "a.csv", "shapes", header=True, columns=",".join(NAMED))
    np.testing.assert_array_equal(found, complex_of(WINGS))


@pytest.mark.parametrize(
    ("names", "said", "right"),
    [
        ("vgp_lat,vgp_lon", "lon,lat", "lat,lon"),
        ("Latitude (°),Longitude (°)", "lon,lat", "lat,lon"),
        ("dir_dec,dir_inc", "inc,dec", "dec,inc"),
        ("azimuth,elevation", "lat,lon", "lon,lat"),
    ],
)
def test_angles_by_longer_names(tmp_path, names, said, right):
    table = PLACES if right.startswith("lat") else PLACES[:, ::-1]
    (tmp_path / "a.csv").write_text(text(table, names.split(",")))
    for options in ({}, {"degrees": said}):
        with pytest.raises(InputError, match=f"say degrees {right}"):
            read(tmp_path / "a.csv", "sphere", header=True, **options)
    found = read(tmp_path / "a.csv", "sphere", header=True, degrees=right)
    np.testing.assert_allclose(found, on_sphere(*PLACES.T), atol=1e-15)
    (tmp_path / "b.csv").write_text(text(PLACES, ["RA_h", "dec"]))
    with pytest.raises(InputError, match="is in hours by its name"):
        read(tmp_path / "b.csv", "sphere", header=True, degrees="ra,dec")


def test_a_folder_of_tables_with_axes_in_another_order(tmp_path):
    contents = ["x,y,z\n" + text(one) if k % 2 else "z,x,y\n" + text(one[:, [2, 0, 1]]) for k, one in enumerate(SKULLS)]
    folder("{:02}.csv", contents)(tmp_path / "all")
    np.testing.assert_array_equal(read(tmp_path / "all", Z, header=True), SKULLS)
    folder("{:02}.csv", [",a,b,c\n" + text(np.column_stack([one[0] * 0, one])) for one in MATRICES])(
        tmp_path / "pandas"
    )
    with pytest.raises(InputError, match="such as columns 2-4"):
        read(tmp_path / "pandas", "spd", header=True)
    np.testing.assert_array_equal(read(tmp_path / "pandas", "spd", header=True, columns="2-4"), MATRICES)


def test_columns_of_a_square_table_keep_their_order(tmp_path):
    """Rows of a matrix have the order of its columns: to turn the columns alone would break it."""
    folder("{:02}.csv", ["z,x,y\n" + text(one) for one in MATRICES])(tmp_path / "all")
    np.testing.assert_array_equal(read(tmp_path / "all", "spd", header=True), MATRICES)


def test_widths_of_two_sizes_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((5, 36)))
    with pytest.raises(InputError, match="of size 8, or all numbers of matrices of size 6"):
        read(tmp_path / "a.npy", "spd")
    assert read(tmp_path / "a.npy", "spd", size=6).shape == (5, 6, 6)


# What one record says decides nothing of the others ---------------------------------------------------------


@pytest.mark.parametrize("line", ["#5,0,1", "sep=;", "tab\t1,2", "# a, b, c"])
def test_without_a_header_each_line_is_a_record(tmp_path, line):
    lines = text(DIRECTIONS).splitlines()
    (tmp_path / "a.csv").write_text("\n".join([line, *lines[1:]]) + "\n")
    found = read(tmp_path / "a.csv", "sphere", expect_n=N)
    assert np.isnan(found[0]).any()
    np.testing.assert_array_equal(found[1:], DIRECTIONS[1:])


def test_a_long_row_of_a_sheet_is_one_record(tmp_path):
    book = pytest.importorskip("openpyxl").Workbook()
    for k, row in enumerate(DIRECTIONS.tolist()):
        book.active.append([*row, None, "note"] if k == 5 else row)
    book.save(tmp_path / "a.xlsx")
    found = read(tmp_path / "a.xlsx", "sphere", expect_n=N)
    assert np.isnan(found[5]).all()
    np.testing.assert_allclose(np.delete(found, 5, axis=0), np.delete(DIRECTIONS, 5, axis=0), rtol=1e-15)


def test_labels_of_a_sheet(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["x", "y", "z", "who"], *([*own, name] for own, name in zip(DIRECTIONS.tolist(), WHO, strict=True))):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    command = ["release", tmp_path / "a.xlsx", "--manifold", "sphere", "--header", "--person", "who", "--radius", ".7"]
    command += ["--center", "origin", "--epsilon", "5", "--mechanism", "laplace", "--out", tmp_path / "a.json"]
    done = CliRunner().invoke(app, list(map(str, command)))
    assert done.exit_code == 0, done.output
    record = json.loads((tmp_path / "a.json").read_text())
    # 7 and "7", "b" and " b " are one.
    kinds = [True, False, datetime.datetime(2020, 1, 2), datetime.datetime(2020, 1, 2, 3), 7.5, 7, None, "  "]
    book = openpyxl.Workbook()
    for cell in ["arm", *kinds]:
        book.active.append([1.0, cell])
    book.save(tmp_path / "b.xlsx")
    layout = Layout(header=True, group="2")
    labels = read_labels(tmp_path / "b.xlsx", layout, "group", len(kinds))
    assert labels == ["TRUE", "FALSE", "2020-01-02", "2020-01-02 03:00:00", 7.5, 7, None, None]
    assert record["unit"] == "person" and record["n"] == len(set(map(str.strip, map(str, WHO))))


def test_numbers_of_a_sheet_that_are_too_large_or_no_dates_are_records(tmp_path):
    book = pytest.importorskip("openpyxl").Workbook()
    for row in DIRECTIONS.tolist():
        book.active.append(row)
    book.active["A3"], book.active["B4"] = 314159, 1e12
    book.active["B4"].number_format = "yyyy-mm-dd"
    book.save(tmp_path / "written.xlsx")
    with zipfile.ZipFile(tmp_path / "written.xlsx") as written, zipfile.ZipFile(tmp_path / "a.xlsx", "w") as file:
        for name in written.namelist():
            file.writestr(name, written.read(name).replace(b"314159", b"1" + b"0" * 400))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = read(tmp_path / "a.xlsx", "sphere", expect_n=N)
    assert not told
    assert found[2, 0] == np.inf and np.isnan(found[3, 1])
    np.testing.assert_allclose(np.delete(found, [2, 3], axis=0), np.delete(DIRECTIONS, [2, 3], axis=0), rtol=1e-15)


@pytest.mark.parametrize("kind", ["spd", "correlations", "sphere", "axes"])
def test_a_private_number_of_records_decides_nothing(tmp_path, kind):
    """As many as there are columns; and none."""
    for n in (*range(9), 60):
        np.save(tmp_path / "a.npy", np.zeros((n, 6)))
        _, found = Source.of(tmp_path / "a.npy", kind, Layout(), None, "center").array(least=0)
        assert len(found) == n
    with pytest.raises(InputError, match="rows"):
        np.save(tmp_path / "a.npy", np.zeros((4 if kind in ("sphere", "axes") else 6, 6)))
        Source.of(tmp_path / "a.npy", kind, Layout(), None, "center").array()


@pytest.mark.parametrize("suffix", [".tps", ".pp"])
def test_long_lines_take_no_longer_than_they_are(tmp_path, suffix):
    content = {".tps": "LM=3\nCOMMENT=x" + " " * 10**6 + "x\n", ".pp": f"<point {'a' * 10**6}>"}[suffix]
    (tmp_path / f"a{suffix}").write_text(content)
    begin = time.process_time()
    with pytest.raises(InputError):
        read(tmp_path / f"a{suffix}", Z)
    assert time.process_time() - begin < 20.0  # quadratic time would be hours


@pytest.mark.parametrize("suffix", [".tps", ".nts"])
def test_empty_lines_take_no_longer_than_they_are(tmp_path, suffix):
    content = tps(WINGS, after="\n" * 10**5 + "ID={}\n")
    if suffix == ".nts":
        content = nts(WINGS, f"1 {N}L 10 0 DIM=2", "one label\n" * N) + "\n" * 10**6
    (tmp_path / f"a{suffix}").write_text(content)
    begin = time.process_time()
    np.testing.assert_allclose(read(tmp_path / f"a{suffix}", "shapes"), complex_of(WINGS))
    assert time.process_time() - begin < 20.0  # quadratic time would be minutes


# One record of a folder changes no other, and nothing but itself ---------------------------------------------


@pytest.mark.parametrize("broken", ["", "{", "not a landmark", "[1, 2]", '{"markups": []}', slicer(SKULLS[0][:4])])
def test_a_broken_file_of_a_folder_is_a_record_of_nothing(tmp_path, broken):
    contents = list(map(slicer, SKULLS))
    contents[4] = broken
    folder("{:02}.mrk.json", contents)(tmp_path / "all")
    found = read(tmp_path / "all", Z, expect_n=N)
    assert np.isnan(found[4]).all()
    np.testing.assert_array_equal(np.delete(found, 4, axis=0), np.delete(SKULLS, 4, axis=0))


def test_a_large_file_of_a_folder_is_one_record(tmp_path, monkeypatch):
    (tmp_path / "all").mkdir()
    for k in range(N):
        np.save(tmp_path / "all" / f"{k:02}.npy", MATRICES[k])
    expected = read(tmp_path / "all", "spd")
    np.save(tmp_path / "all" / "03.npy", np.zeros(100))
    for most in (N * 72, 872, 10**6):  # all of the right ones, one beside the large one, all
        monkeypatch.setattr(folders, "MOST_BYTES", most)
        found = read(tmp_path / "all", "spd")
        assert np.isnan(found[3]).all()
        np.testing.assert_array_equal(np.delete(found, 3, axis=0), np.delete(expected, 3, axis=0))


def test_landmarks_that_are_not_placed_are_missing(tmp_path):
    folder("{:02}.mrk.json", [slicer(one) for one in SKULLS[:3]])(tmp_path / "all")
    (tmp_path / "all" / "01.mrk.json").write_text(slicer(SKULLS[1], positionStatus="undefined"))
    found = read(tmp_path / "all", Z)
    assert np.isnan(found[1]).all() and not np.isnan(found[[0, 2]]).any()


@pytest.mark.parametrize(
    ("contents", "words"),
    [([], "holds 0 files"), (["1,2\n", "1,2,3\n4,5,6\n", ""], "arrays of one shape"), ([""] * 3, "at least 2 records")],
)
def test_a_folder_of_no_records_is_refused(tmp_path, contents, words):
    folder("{}.csv", contents)(tmp_path / "all")
    with pytest.raises(InputError, match=words):
        read(tmp_path / "all", "spd")


def test_files_of_others(tmp_path):
    openpyxl, h5py = pytest.importorskip("openpyxl"), pytest.importorskip("h5py")
    book = openpyxl.Workbook()
    book.active.title = "places"
    for row in [["lat", "lon"], *PLACES.tolist()]:
        book.active.append(row)
    book.create_sheet("other").append(["x"])
    book.save(tmp_path / "a.xlsx")
    found = read(tmp_path / "a.xlsx", "sphere", header=True, degrees="lat,lon", array="places")
    np.testing.assert_allclose(found, on_sphere(*PLACES.T), atol=1e-15)
    with pytest.raises(InputError, match="choose one of its arrays with array: places, other"):
        read(tmp_path / "a.xlsx", "sphere", header=True)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["study/tensors"] = MATRICES
        file["study/names"] = np.array([b"a"])
    np.testing.assert_array_equal(read(tmp_path / "a.h5", "spd", array="study/tensors"), MATRICES)
    for name, array in (("a.h5", "study/names"), ("a.h5", "nothing"), ("b.h5", None)):
        (tmp_path / "b.h5").write_bytes(b"no HDF5")
        with pytest.raises(InputError):
            read(tmp_path / name, "spd", array=array)


@pytest.mark.parametrize("compressed", [False, True])
def test_matlab_files_are_read_as_scipy_reads_them(tmp_path, compressed):
    arrays = {
        "doubles": RNG.normal(size=(3, 4, 5)), "integers": np.arange(12, dtype=np.int16).reshape(3, 4) - 5,
        "small": np.array([[1.0]]), "complex": RNG.normal(size=(4, 2)) + 1j, "singles": np.float32([[0.5, 2.0]]),
        "bytes": np.uint8([[1, 2, 255]]), "long": np.int64([[-(2**40)]]), "words": "some words",
        "none": np.zeros((0, 3)),
    }  # fmt: skip
    savemat(tmp_path / "a.mat", arrays, do_compression=compressed)
    for name, expected in loadmat(tmp_path / "a.mat").items():
        if name.startswith("_"):
            continue
        if name == "words":
            with pytest.raises(InputError, match="must hold numbers, but its array is a text"):
                read_mat(tmp_path / "a.mat", lambda names: "words")
        else:
            found = read_mat(tmp_path / "a.mat", lambda names, own=name: own)
            np.testing.assert_array_equal(found, expected)


def test_a_column_of_arrays_is_one_array():
    column = np.empty(3, object)
    column[:] = list(MATRICES[:3])
    np.testing.assert_array_equal(host_array("release", column), MATRICES[:3])
    column[1] = np.eye(2)
    with pytest.raises(InputError, match="arrays in it must have equal shapes"):
        host_array("release", column)


@pytest.mark.parametrize("axes", ["XYZ", "zyx", "ZXZ", "yxz"])
def test_euler_angles_are_those_of_scipy(axes):
    angles = RNG.uniform(-170.0, 170.0, (5, 3))
    expected = Rotation.from_euler(axes, angles, degrees=True).as_matrix()
    np.testing.assert_allclose(from_chart(Rotations(), angles, f"euler-{axes}-degrees"), expected, atol=1e-15)


def test_points_of_the_ball_have_the_distances_of_the_ball():
    def distance(one, other, curvature):
        gap = np.sum((one - other) ** 2) / ((1 - np.sum(one**2)) * (1 - np.sum(other**2)))
        return np.arccosh(1 + 2 * gap) / np.sqrt(-curvature)

    for curvature in (-1.0, -0.25):
        space = Hyperbolic(2, curvature)
        points = from_chart(space, DISC, "poincare")
        assert float(space.dist(points[0], points[1])) == pytest.approx(distance(DISC[0], DISC[1], curvature))
        klein = 2 * DISC / (1 + np.sum(DISC**2, axis=1, keepdims=True))
        np.testing.assert_allclose(from_chart(space, klein, "klein"), points, rtol=1e-12)
    heights = from_chart(Hyperbolic(2), [[0.0, 1.0], [0.0, np.e], [3.0, 1.0]], "half-plane")
    assert float(Hyperbolic(2).dist(heights[0], heights[1])) == pytest.approx(1.0)
    assert float(Hyperbolic(2).dist(heights[0], heights[2])) == pytest.approx(2 * np.arcsinh(1.5))
    for name, row in (("poincare", [1.0, 0.0]), ("klein", [2.0, 0.0]), ("half-space", [1.0, -1.0])):
        assert np.isnan(from_chart(Hyperbolic(2), [row], name)).all()


def test_charts_that_do_not_fit_are_refused():
    for manifold, rows, name, words in (
        (Rotations(), np.ones((2, 4)), "poincare", "poincare is not for Rotations"),
        (Rotations(), np.ones((2, 5)), "wxyz", "needs 4 columns, or 7"),
        (Hyperbolic(2), np.ones((2, 4)), "poincare", "must hold points of"),
        (Hyperbolic(2), [["a"]] * 2, "poincare", "rows must be numbers"),
        (Hyperbolic(2), [1.0], "poincare", "must have shape"),
        ("hyperbolic", [[1.0]], "poincare", "must be a Manifold"),
        (Rotations(), np.ones((2, 3)), "euler-xxz-degrees", "must be one of"),
    ):
        with pytest.raises(InputError, match=words):
            from_chart(manifold, rows, name)
