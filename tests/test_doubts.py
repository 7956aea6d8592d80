"""What ``check`` says that records of a manifold may be in truth, and that it says nothing where they are right."""

import json

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from test_layouts import (
    CORRELATIONS,
    DISC,
    FOUR,
    MATRICES,
    PLACES,
    TURNS,
    fiducials,
    folder,
    hyperboloid,
    picked,
    slicer,
)
from typer.testing import CliRunner

from jaxgeodp.cli import app
from jaxgeodp.io import check
from jaxgeodp.io.specimen_files import labels_of_specimen

RNG = np.random.default_rng(1)
N = 40
SHAPES = RNG.normal(size=(5, 2)) * 9 + RNG.normal(size=(N, 5, 2)) * 0.3
SKULLS = RNG.normal(size=(6, 3)) * 9 + RNG.normal(size=(N, 6, 3)) * 0.3
SHAPES_TURNED = SHAPES @ Rotation.from_euler("z", 1.0).as_matrix()[:2, :2]
EACH_TURNED = Rotation.from_rotvec(np.outer(RNG.uniform(0.0, 6.0, N), [0, 0, 1])).as_matrix()
HALF = np.where(np.arange(N)[:, None, None] % 3 == 0, [1.0, -1.0], 1.0)
SKEWED = np.where(np.arange(N)[:, None, None] % 4 == 0, [1.0, 1.0, -1.0], 1.0)
ONES = np.arange(12) % 4
DEFINITE = MATRICES + np.eye(3)
LOWER_OF_3 = np.tril_indices(3)
CLOSE = (
    0.2 * np.eye(3)
    + 0.8
    + 0.01 * np.array([np.diag(x) @ np.ones((3, 3)) @ np.diag(x) for x in RNG.normal(size=(9, 3))])
)
CLOSE = CLOSE / np.sqrt(np.einsum("nii,njj->nij", CLOSE, CLOSE))
ROWS_OF_NORM = (CLOSE / (1.0 + (np.sqrt(2.0) - 1.0) * np.eye(3)))[:, *LOWER_OF_3]
LOWER = np.tril_indices(4)
DIAGONAL_FIRST = FOUR[:, [0, 1, 2, 3, 0, 0, 0, 1, 1, 2], [0, 1, 2, 3, 1, 2, 3, 2, 3, 3]]
NEGATIVE = np.einsum("nij,j->nij", np.tile(np.eye(3), (9, 1, 1)), [1.0, 1.0, -1.0])
DOUBTS = {
    "Cholesky factors": (np.linalg.cholesky(DEFINITE), "spd", {}, "Cholesky factors?"),
    "upper factors": (np.linalg.cholesky(DEFINITE).swapaxes(1, 2), "spd", {}, "Cholesky factors?"),
    "the diagonal first": (DIAGONAL_FIRST, "spd", {}, "say --columns 1,5,2,6,8,3,7,9,10,4"),
    "the upper triangle": (FOUR[:, *np.triu_indices(4)], "spd", {}, "say --triangle upper"),
    "what is off a diagonal": (CORRELATIONS[:, *np.tril_indices(4, -1)], "spd", {}, "say --manifold correlations"),
    "negative eigenvalues": (NEGATIVE, "spd", {}, "9 matrices have negative eigenvalues"),
    "nilearn's rows": (ROWS_OF_NORM, "spd", {}, "with ones on the diagonal: rows as nilearn writes them"),
    "nilearn's rows of covariances": (
        (ROWS_OF_NORM * np.array([1.0, 2.0, 4.0])[LOWER_OF_3[0]]) * np.array([1.0, 2.0, 4.0])[LOWER_OF_3[1]], "spd", {},
        "9 matrices are positive definite: rows as nilearn writes them",
    ),
    "covariances": (MATRICES, "correlations", {}, "say --as covariance"),
    "few time points": (
        np.array([np.corrcoef(x) for x in RNG.normal(size=(9, 6, 4))]), "correlations", {}, "less than full rank"
    ),
    "a disc": (np.column_stack([DISC, 0.1 * DISC[:, :1]]), "hyperbolic", {}, "say --as poincare or --as klein"),
    "time last": (np.roll(hyperboloid(DISC), -1, axis=1), "hyperbolic", {}, "say --columns 3,1,2"),
    "another curvature": (3.0 * hyperboloid(DISC), "hyperbolic", {}, "curvature -0.1111: divide all numbers by 3"),
    "heights": (np.column_stack([RNG.normal(size=(N, 2)), np.full(N, 3.0)]), "hyperbolic", {}, "half-space"),
    "nine sensors": (RNG.normal(size=(N, 9)), "rotations", {}, "Numbers of something else?"),
    "reflections": (-TURNS.as_matrix(), "rotations", {}, "are reflections"),
    "scaled rotations": (2.0 * TURNS.as_matrix(), "rotations", {}, "rotations times a scale, 2 in the middle"),
    "mirrored specimens": (SHAPES * HALF, "shapes", {}, "14 of 40 specimens look mirrored"),
    "mirrored specimens in space": (SKULLS * SKEWED, "shapes3d", {}, "10 of 40 specimens look mirrored"),
    "radians": (np.radians(PLACES), "sphere", {"degrees": "lat,lon"}, "are they radians?"),
    "angles in the other order": (PLACES[:, ::-1], "sphere", {"degrees": "lat,lon"}, "say --degrees lon,lat"),
    "planes in the other order": (
        np.column_stack([np.arange(40.0), np.arange(100.0, 140.0)]), "axes", {"as": "strike,dip"},
        "40 of angles out of range",
    ),
    "planes in the other order, told": (
        np.column_stack([np.arange(40.0), np.arange(100.0, 140.0)]), "axes", {"as": "strike,dip"},
        "in the other order 40: say --degrees dip,strike",
    ),
    "out of the ball": (2.0 * DISC / np.abs(DISC).max(), "hyperbolic", {"as": "klein"}, "no point as klein"),
    "rows of all x, then all y": (
        (SHAPES @ EACH_TURNED[:, :2, :2]).swapaxes(1, 2).reshape(N, -1), "shapes", {},
        "if a row is all x, then all y of landmarks: then say",
    ),
    "rows of landmarks in space as planar ones": (
        (SKULLS @ EACH_TURNED).reshape(N, -1), "shapes", {}, "say --manifold shapes3d"
    ),
    "marks of missing landmarks": (
        np.where((np.arange(N) % 4 == 1)[:, None, None] & (np.arange(5) == 2)[:, None], -999.0, SHAPES).reshape(N, -1),
        "shapes", {}, "landmarks at -999, -999: missing ones?",
    ),
    "the diagonal of two first": (
        np.array([4.0, 1.0, 1.2]) + 0.1 * RNG.uniform(size=(N, 3)), "spd", {}, "the numbers do not tell"
    ),
    "triangles that tell nothing": (
        np.array([10.0, 1.0, 5.0, 1.0, 0.6, 10.0]) + 0.1 * RNG.uniform(size=(N, 6)), "spd", {},
        "as well as the upper triangle by rows: the numbers do not tell",
    ),
    "correlations that tell nothing": (
        (0.05 * CORRELATIONS)[:, *np.tril_indices(4, -1)], "correlations", {}, "R's lower.tri"
    ),
    "upper factors of R": (np.linalg.cholesky(DEFINITE).swapaxes(1, 2), "spd", {}, "R'R, with R upper"),
    "bases by columns": (
        np.linalg.qr(RNG.normal(size=(N, 5, 2)))[0].swapaxes(1, 2).reshape(N, -1), "grassmann(5, 2)", {},
        "say --columns 1,6,2,7",
    ),
    "quaternions before translations": (
        np.column_stack([TURNS.as_quat(), 3.0 + PLACES, ONES]), "rigidmotions(1)", {"as": "xyzw"}, "--columns 5-7,1-4"
    ),
    "no quaternions": (RNG.normal(size=(N, 4)) * 9, "rotations", {"as": "wxyz"}, "are they quaternions?"),
    "degrees as radians": (
        100.0 * RNG.normal(size=(N, 3)), "rotations", {"as": "euler-xyz-radians"}, "are they degrees?"
    ),
    "degrees as vectors": (100.0 * RNG.normal(size=(N, 3)), "rotations", {"as": "rotvec"}, "are they degrees?"),
    "poses by columns": (
        np.array([np.block([[turn, np.ones((3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]]).T.ravel() for turn in
        TURNS.as_matrix()]), "rigidmotions(1)", {}, "by columns? Transpose them",
    ),
    "hours": (np.column_stack([np.linspace(1, 23, 12), PLACES[:, 0]]), "sphere", {"degrees": "ra,dec"}, "hours?"),
    "places in either order": (
        np.column_stack([RNG.uniform(40, 60, 12), RNG.uniform(2, 20, 12), ONES]), "sphere", {}, "lat,lon or lon,lat"
    ),
    "missing dihedrals": (
        np.where(ONES[:, None] == 0, 360.0, PLACES), "torus", {"as": "degrees"}, "as DSSP writes"
    ),
    "orientations": (
        np.where(np.arange(N) % 2, 3.0, 177.0)[:, None] + RNG.uniform(-2, 2, (N, 1)), "circle", {"as": "degrees"},
        "Then double them",
    ),
    "both signs of quaternions": (
        (TURNS.as_quat() + np.array([0.0, 0.0, 0.0, 9.0])) * np.where(ONES[:, None] > 1, 1.0, -1.0), "sphere", {},
        "--manifold rotations --as wxyz",
    ),
}  # fmt: skip
FAR = 100.0 * (SHAPES[:1] / 9 + 0.15 * (SHAPES - SHAPES[:1]) / 9) + [2000.0, 800.0]
RIGHT = {
    "landmarks far from the origin": (FAR.reshape(N, -1), "shapes", {}),
    "landmarks about the first": ((SHAPES - SHAPES[:, :1]).reshape(N, -1), "shapes", {}),
    "rows whose order is said": (
        np.array([10.0, 1.0, 5.0, 1.0, 0.6, 10.0]) + 0.1 * RNG.uniform(size=(N, 6)),
        "spd",
        {"triangle": "upper"},
    ),
    "winds in tens of degrees": (10.0 * np.arange(1, 37)[:, None], "circle", {"chart": "degrees"}),
    "matrices": (DEFINITE, "spd", {}),
    "lower triangles": (FOUR[:, *LOWER], "spd", {}),
    "correlations": (CORRELATIONS, "correlations", {}),
    "the hyperboloid": (hyperboloid(DISC), "hyperbolic", {}),
    "rotations": (TURNS.as_matrix(), "rotations", {}),
    "shapes": (SHAPES_TURNED, "shapes", {}),
    "skulls": (SKULLS @ Rotation.from_rotvec([1.0, 2.0, 0.3]).as_matrix(), "shapes3d", {}),
    "places": (PLACES, "sphere", {"degrees": "lat,lon"}),
}


@pytest.mark.parametrize("doubt", DOUBTS)
def test_what_records_are_in_truth_is_said(tmp_path, doubt):
    table, manifold, options, words = DOUBTS[doubt]
    np.save(tmp_path / "data.npy", table)
    arguments = [x for key, value in options.items() for x in (f"--{key}", value)]
    said = CliRunner().invoke(app, ["check", str(tmp_path / "data.npy"), "--manifold", manifold, *arguments])
    assert said.exit_code == 0 and words in " ".join(said.output.split()), said.output


@pytest.mark.parametrize("records", RIGHT)
def test_of_right_records_nothing_is_said(tmp_path, records):
    table, manifold, options = RIGHT[records]
    np.save(tmp_path / "data.npy", table)
    found = [one.text for one in check(tmp_path / "data.npy", manifold, **options).found]
    assert [text for text in found if not text.startswith("Condition numbers")] == []


def test_a_radius_without_a_centre_is_not_checked(tmp_path):
    np.save(tmp_path / "data.npy", SHAPES)
    said = CliRunner().invoke(app, ["check", str(tmp_path / "data.npy"), "--manifold", "shapes", "--radius", "0.1"])
    assert said.exit_code == 0 and "The radius is not checked" in said.output


def test_landmarks_in_another_order_in_one_file_are_said(tmp_path):
    contents = []
    for k, points in enumerate(SKULLS[:9]):
        order = [1, 0, 2, 3, 4, 5] if k == 4 else range(6)
        found = json.loads(slicer(points[list(order)].tolist()))
        for place, one in zip(order, found["markups"][0]["controlPoints"], strict=True):
            one["label"] = ["nasion", "bregma", "lambda", "opisthion", "left porion", "right porion"][place]
        contents.append(json.dumps(found))
    folder("{:02}.mrk.json", contents)(tmp_path / "all")
    said = [one.text for one in check(tmp_path / "all", "shapes3d").found]
    assert any("1 file (04.mrk.json) names the landmarks in another order than most files" in text for text in said)
    contents[4] = contents[3].replace("lambda", "inion")
    folder("{:02}.mrk.json", contents)(tmp_path / "other")
    said = [one.text for one in check(tmp_path / "other", "shapes3d").found]
    assert any("1 file (04.mrk.json) names landmarks by other names than most files" in text for text in said)


@pytest.mark.parametrize("write", [slicer, fiducials, picked])
def test_landmarks_that_are_only_counted_have_no_order(tmp_path, write):
    suffix = {slicer: "mrk.json", fiducials: "fcsv", picked: "pp"}[write]
    contents = [write(one if write is fiducials else one.tolist()) for one in SKULLS[:9]]
    folder("{:02}." + suffix, contents)(tmp_path / "all")
    assert [one.text for one in check(tmp_path / "all", "shapes3d").found if one.about == "files"] == []
    labels = labels_of_specimen(tmp_path / "all" / f"00.{suffix}", f".{suffix.rpartition('.')[2]}")
    assert len(labels) == 6 == len(set(labels))
