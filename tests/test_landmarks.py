"""Landmarks and a public template: superimposition, and landmarks that are missing; each record on its own."""

import json
import warnings

import numpy as np
import pytest
from PIL import Image
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from jaxgeodp import Ledger, PlanarShapes, PureDP
from jaxgeodp.cli import app
from jaxgeodp.domains import align_landmarks, impute_landmarks, landmarks_from_r
from jaxgeodp.domains.landmarks import all_aligned
from jaxgeodp.pictures import page_of
from jaxgeodp.privacy.release import Release

RNG = np.random.default_rng(0)
TEMPLATES = {2: RNG.normal(size=(5, 2)), 3: RNG.normal(size=(6, 3))}
DIMENSIONS = pytest.mark.parametrize("dimension", [2, 3])
# No records: what one of them is decides nothing but that it is the centre.
BAD = {
    "missing": lambda x: np.where(np.arange(x.size).reshape(x.shape) == 3, np.nan, x),
    "infinite": lambda x: np.where(np.arange(x.size).reshape(x.shape) == 3, -np.inf, x),
    "coincident": lambda x: np.full_like(x, 3.7),
    "zero": np.zeros_like,
    "all missing": lambda x: np.full_like(x, np.nan),
}
HUGE = {
    "huge": lambda x: 1e308 * np.sign(x - x.mean(axis=0)),
    "one huge": lambda x: np.where(np.arange(x.size).reshape(x.shape) == 3, 1e308, x),
    "denormal": lambda x: 5e-324 * np.sign(x),
    "of all sizes": lambda x: x * 10.0 ** np.linspace(-300, 300, x.size).reshape(x.shape),
}


def rotations(dimension, count, rng=RNG):
    """Random ones, without reflection."""
    turns = np.linalg.qr(rng.normal(size=(count, dimension, dimension)))[0]
    turns[:, :, 0] *= np.linalg.det(turns)[:, None]
    return turns


def records_like(template, count, noise=0.1):
    """Copies with noise, each turned, scaled and moved by itself."""
    copies = template + noise * RNG.normal(size=(count, *template.shape))
    turned = copies @ rotations(template.shape[1], count)
    return RNG.uniform(0.5, 2.0, (count, 1, 1)) * turned + 10.0 * RNG.normal(size=(count, 1, template.shape[1]))


def size_of(configuration):
    return np.linalg.norm(configuration - configuration.mean(axis=0))


@DIMENSIONS
def test_the_pose_of_a_record_is_of_no_account_and_with_scale_its_size(dimension):
    template = TEMPLATES[dimension]
    records = records_like(template, 7)
    aligned = align_landmarks(records, template)
    moved = 3.0 * records @ rotations(dimension, 7) - 5.0
    np.testing.assert_allclose(align_landmarks(moved, template), aligned, rtol=0, atol=1e-12)
    np.testing.assert_allclose(aligned.mean(axis=1), np.tile(template.mean(axis=0), (7, 1)), rtol=0, atol=1e-12)
    np.testing.assert_allclose([size_of(one) for one in aligned], size_of(template))
    programs = all_aligned._cache_size()
    np.testing.assert_array_equal(align_landmarks(records[1:], template), aligned[1:])
    assert all_aligned._cache_size() == programs, "a program would tell how many records there are"
    own = align_landmarks(records, template, scale=False)
    np.testing.assert_allclose([size_of(one) for one in own], [size_of(one) for one in records])
    np.testing.assert_allclose(align_landmarks(moved, template, scale=False) - template.mean(axis=0),
                               3.0 * (own - template.mean(axis=0)), rtol=0, atol=1e-11)  # fmt: skip
    exact = align_landmarks(2.0 * template[None] @ rotations(dimension, 1) + 1.0, template)
    np.testing.assert_allclose(exact[0], template, rtol=0, atol=1e-12)


@DIMENSIONS
def test_no_other_rotation_brings_a_record_nearer_and_none_is_a_reflection(dimension):
    template = TEMPLATES[dimension] - TEMPLATES[dimension].mean(axis=0)
    mirror = np.diag([-1.0, *[1.0] * (dimension - 1)])
    records = np.concatenate([RNG.normal(size=(10, *template.shape)), template[None] @ mirror])
    aligned = align_landmarks(records, template)
    turns = rotations(dimension, 500)
    for record, one in zip(records, aligned, strict=True):
        others = np.linalg.norm(one @ turns - template, axis=(1, 2))
        assert np.linalg.norm(one - template) <= others.min() + 1e-12
        # A rotation takes the record to its image, so that the handedness is the same.
        turn = np.linalg.lstsq(record - record.mean(axis=0), one, rcond=None)[0]
        assert np.linalg.det(turn) > 0
    assert np.linalg.norm(aligned[-1] - template) > 0.5


@DIMENSIONS
def test_where_template_and_records_lie_costs_no_digits(dimension):
    template = np.round(TEMPLATES[dimension] * 2**20) / 2**20  # so that moving it is exact
    records = np.round(records_like(template, 5) * 2**20) / 2**20
    near = align_landmarks(records, template)
    np.testing.assert_allclose(align_landmarks(records + 2.0**20, template), near, rtol=0, atol=1e-13)
    far = align_landmarks(records, template + 2.0**20) - 2.0**20
    np.testing.assert_allclose(far, near, rtol=0, atol=1e-9)  # the numbers themselves end there
    lacking = records.copy()
    lacking[:, 1] = np.nan
    placed = impute_landmarks(lacking, template)
    np.testing.assert_allclose(impute_landmarks(lacking, template + 2.0**20), placed, rtol=0, atol=1e-13)
    np.testing.assert_allclose(impute_landmarks(lacking + 2.0**20, template) - 2.0**20, placed, rtol=0, atol=1e-9)


@DIMENSIONS
@pytest.mark.parametrize("function", [align_landmarks, impute_landmarks])
@pytest.mark.parametrize("kind", [*BAD, *HUGE])
def test_a_bad_record_changes_no_other_and_is_not_told(dimension, function, kind, capfd):
    template = TEMPLATES[dimension]
    records = records_like(template, 6)
    records[4, 1] = np.nan
    expected = function(records, template)
    records[2] = (BAD | HUGE)[kind](records[2])
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        found = function(records, template)
    np.testing.assert_array_equal(np.delete(found, 2, axis=0), np.delete(expected, 2, axis=0))
    assert np.isfinite(np.delete(found, [2, 4], axis=0)).all()
    assert capfd.readouterr() == ("", "")
    if function is impute_landmarks and not np.isnan(records[2]).any():
        np.testing.assert_array_equal(found[2], records[2])  # nothing is missing
    if function is align_landmarks:
        assert np.isnan(found[2]).all() or (np.isfinite(found[2]).all() and kind in HUGE)
    if function is align_landmarks and kind == "huge":
        np.testing.assert_allclose(found[2], function([np.sign(records[2])], template)[0], rtol=0, atol=1e-12)


def test_what_lies_on_a_line_in_space_has_no_pose():
    records = records_like(TEMPLATES[3], 3)
    records[1] = np.arange(6.0)[:, None] * [1.0, 2.0, -1.0] + 4.0
    found = align_landmarks(records, TEMPLATES[3])
    assert np.isnan(found[1]).all() and np.isfinite(found[[0, 2]]).all()
    flat = align_landmarks(TEMPLATES[3] * [1.0, 1.0, 0.0] * np.ones((1, 1, 1)), TEMPLATES[3])
    assert np.isfinite(flat).all()  # what lies in a plane has one


@DIMENSIONS
def test_missing_landmarks_of_a_similar_record_are_recovered(dimension):
    template = TEMPLATES[dimension]
    whole = 2.5 * template[None] @ rotations(dimension, 5) + 4.0 * RNG.normal(size=(5, 1, dimension))
    records = whole.copy()
    records[0, 2, 0] = np.nan  # a landmark that misses a coordinate is missing
    records[1, 3:] = np.nan
    records[2, [0, 4]] = np.nan
    found = impute_landmarks(records, template)
    np.testing.assert_allclose(found, whole, rtol=0, atol=1e-12)
    there = ~np.isnan(records).any(axis=2)
    np.testing.assert_array_equal(found[there], records[there])
    np.testing.assert_array_equal(found[3:], records[3:])


@DIMENSIONS
def test_the_template_is_laid_over_what_is_there_by_least_squares(dimension):
    template = TEMPLATES[dimension]
    record = records_like(template, 1, noise=0.3)
    record[0, 1] = np.nan
    found = impute_landmarks(record, template)[0]
    there = np.arange(len(template)) != 1
    centre, own = template[there].mean(axis=0), found[there].mean(axis=0)
    source, target = template[there] - centre, found[there] - own
    if dimension == 2:  # a similarity of the plane is a complex factor
        factor = np.vdot(source @ [1.0, 1j], target @ [1.0, 1j]) / np.linalg.norm(source) ** 2
        turned = np.array([[factor.real, factor.imag], [-factor.imag, factor.real]])
    else:
        turn = Rotation.align_vectors(target, source)[0]
        turned = np.sum(target * turn.apply(source)) / np.sum(source**2) * turn.as_matrix().T
    np.testing.assert_allclose(found[1], own + (template[1] - centre) @ turned, rtol=0, atol=1e-10)


@DIMENSIONS
def test_too_few_landmarks_place_nothing(dimension):
    template = TEMPLATES[dimension]
    records = np.tile(template, (4, 1, 1))
    records[0, dimension - 1 :] = np.nan  # one in the plane, two in space
    records[1, dimension:] = np.nan
    records[2, dimension:] = np.nan
    records[2, :dimension] = np.arange(dimension)[:, None] * (dimension - 2.0)  # coincident; on a line in space
    records[3, 0] = np.nan
    records[3, 1, 0] = np.inf
    found = impute_landmarks(records, template)
    np.testing.assert_array_equal(np.isnan(found).all(axis=(1, 2)), [True, False, True, True])
    np.testing.assert_allclose(found[1], template, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("template", "records", "words"),
    [
        (np.zeros((4, 3)), np.zeros((2, 4, 3)), "degenerate: its landmarks coincide or lie on a line"),
        (np.full((4, 2), 1e6 + 0.1), np.zeros((2, 4, 2)), "degenerate: its landmarks coincide"),
        (np.arange(4.0)[:, None] * [1.0, 2.0, 3.0] + 1e6, np.zeros((2, 4, 3)), "lie on a line"),
        ([[0.0, 1.0], [np.nan, 2.0], [3.0, 4.0]], np.zeros((2, 3, 2)), "must hold finite numbers"),
        (np.eye(4), np.zeros((2, 4, 4)), "of shape (k, 2) or (k, 3) with k >= 3"),
        (np.eye(2), np.zeros((2, 2, 2)), "with k >= 3"),
        (np.eye(3), np.zeros((2, 4, 3)), r"must have the template's shape, (n, 3, 3), got (2, 4, 3)"),
        (np.eye(3), np.zeros((2, 3, 3), complex), "must be real numbers, got complex numbers"),
    ],
)
@pytest.mark.parametrize("function", [align_landmarks, impute_landmarks])
def test_what_is_wrong_in_public_is_refused(function, template, records, words):
    with pytest.raises(ValueError) as refused:
        function(records, template)
    assert words in str(refused.value)


# The command line ------------------------------------------------------------------------------------------

SKULLS = records_like(TEMPLATES[3], 40, noise=0.02)
WINGS = records_like(TEMPLATES[2], 40, noise=0.02)
SPACE = ("--manifold", "euclidean", "--template", "skull.npy", "--radius", 1.0)
PLANE = ("--manifold", "shapes", "--template", "wing.npy", "--radius", 0.3)
SHARP = ("--mechanism", "tangent", "--epsilon", 1e9, "--overwrite", "--out", "out.json")


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def released(*arguments):
    result = run("release", *arguments, *SHARP)
    assert result.exit_code == 0, result.output
    return Release.load("out.json"), result


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("skull.npy", TEMPLATES[3])
    np.save("wing.npy", TEMPLATES[2])
    np.save("skulls.npy", SKULLS)
    np.save("wings.npy", WINGS)
    Ledger("book.db", PureDP(1e12))
    return tmp_path


def rows(table, mark=","):
    return "\n".join(mark.join(map(repr, row)) for row in np.asarray(table).tolist())


def written(name, records):
    """The records in the format of a name."""
    if name.endswith("npy"):
        np.save(name, records if name == "data.npy" else records.reshape(len(records), -1))
        return
    flat = records.reshape(len(records), -1)
    texts = {
        "data.csv": rows(flat),
        "data.nts": f"1 {len(flat)} {flat.shape[1]} 0 DIM=3\n{rows(flat, ' ')}",
        "data.tps": "\n".join(f"LM3={len(one)}\n{rows(one, ' ')}" for one in records),
    }
    with open(name, "w") as stream:
        stream.write(texts[name])


@pytest.mark.parametrize("name", ["data.npy", "rows.npy", "data.csv", "data.tps", "data.nts"])
def test_skulls_are_superimposed_and_the_template_is_the_centre(folder, name):
    written(name, SKULLS)
    release, _ = released(name, *SPACE)
    expected = align_landmarks(SKULLS, TEMPLATES[3]).mean(axis=0)
    np.testing.assert_allclose(release.as_array().reshape(6, 3), expected, rtol=0, atol=1e-6)
    record = release.record
    assert record["manifold"] == {"name": "Euclidean", "dim": 18} and record["n"] == 40
    np.testing.assert_array_equal(record["ball"]["center"], TEMPLATES[3].ravel())
    assert record["prepared"] == {
        "by": "Procrustes superimposition to a public template",
        "size": "the template's centroid size",
        "template": TEMPLATES[3].tolist(),
    }
    assert "Procrustes superimposition" in page_of(record, "0")
    release.plot("value.png")
    with Image.open("value.png") as picture:
        assert len(picture.convert("L").getcolors(256)) > 5


def test_a_centre_or_a_ball_may_be_another_than_the_template(folder):
    np.save("center.npy", TEMPLATES[3].ravel() + 0.25)
    release, _ = released("skulls.npy", *SPACE, "--center", "center.npy")
    np.testing.assert_array_equal(release.record["ball"]["center"], TEMPLATES[3].ravel() + 0.25)
    result = run("ball", "skulls.npy", *SPACE[:4], "--n", 500, "--epsilon", 9, "--out", "ball.json")
    assert result.exit_code == 0, result.output
    ball = json.loads((folder / "ball.json").read_text())
    np.testing.assert_allclose(np.reshape(ball["center"], (6, 3)), TEMPLATES[3], rtol=0, atol=0.05)
    assert ball["made"]["prepared"]["template"] == TEMPLATES[3].tolist() and ball["radius"] < 0.5
    release, _ = released("skulls.npy", *SPACE[:4], "--ball", "ball.json")
    assert release.record["ball"]["radius"] == ball["radius"]


@pytest.mark.parametrize("missing", ["center", "template"])
def test_missing_landmarks_of_wings_make_the_centre_or_come_from_the_template(folder, missing):
    lacking = WINGS.copy()
    lacking[::2, 1] = np.nan
    np.save("wings.npy", lacking)
    release, _ = released("wings.npy", *PLANE, "--missing", missing)
    center = np.asarray(PlanarShapes(5).from_landmarks(TEMPLATES[2]))
    np.testing.assert_allclose(np.array(release.record["ball"]["center"]) @ [1.0, 1j], center, rtol=0, atol=1e-6)
    meant = impute_landmarks(lacking, TEMPLATES[2]) if missing == "template" else np.where(
        np.isnan(lacking).any(axis=(1, 2), keepdims=True), TEMPLATES[2], WINGS
    )  # fmt: skip
    np.save("wings.npy", meant)
    np.testing.assert_allclose(released("wings.npy", *PLANE)[0].value, release.value, rtol=0, atol=1e-6)
    prepared = release.record.get("prepared", {})
    assert prepared.get("template") == (TEMPLATES[2].tolist() if missing == "template" else None)
    assert ("missing landmarks from a public template" in prepared.get("by", "")) == (missing == "template")


def test_complex_wings_may_miss_landmarks_too(folder):
    lacking = WINGS.copy()
    lacking[3, 1] = np.nan
    value = []
    for data in (lacking, lacking @ [1.0, 1j]):
        np.save("wings.npy", data)
        value.append(released("wings.npy", *PLANE, "--missing", "template")[0].value)
    np.testing.assert_allclose(*value, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["nothing", *BAD, *HUGE])
def test_one_record_changes_no_word(folder, kind):
    data = SKULLS.copy()
    data[2] = (BAD | HUGE | {"nothing": np.copy})[kind](data[2])
    np.save("skulls.npy", data)
    release, result = released("skulls.npy", *SPACE, "--missing", "template")
    assert np.isfinite(release.value).all() and result.stderr == ""
    np.save("skulls.npy", SKULLS)
    good, other = released("skulls.npy", *SPACE, "--missing", "template")
    assert other.output == result.output
    assert {**good.record, "value": 0, "created": 0} == {**release.record, "value": 0, "created": 0}


def test_check_tells_the_custodian_which_records_miss_landmarks(folder):
    data = SKULLS.copy()
    data[[1, 4], 2] = np.nan
    np.save("skulls.npy", data)
    result = run("check", "skulls.npy", *SPACE, "--missing", "template")
    assert result.exit_code == 0 and "2 records miss landmarks" in result.output and "2, 5" in result.output
    assert "0 of 40 records lie outside" in result.output and "no points" not in result.output
    result = run("check", "skulls.npy", *SPACE, "--overwrite")
    assert "2 of 40 records are no points" in result.output and "from the centre" in result.output


REFUSED = {
    "another number of landmarks": ("wings.npy", ("--manifold", "shapes", "--template", "skull2.npy"), "(n, 6, 2)"),
    "rows of another length": ("rows.npy", SPACE[:4], "rows of 18 numbers"),
    "not finite": ("skulls.npy", ("--manifold", "euclidean", "--template", "nan.npy"), "must hold finite numbers"),
    "degenerate": ("skulls.npy", ("--manifold", "euclidean", "--template", "line.npy"), "degenerate"),
    "many templates": ("skulls.npy", ("--manifold", "euclidean", "--template", "skulls.npy"), "of shape (k, 2) or"),
    "no file": ("skulls.npy", ("--manifold", "euclidean", "--template", "no.npy"), "no.npy: there is no such file"),
    "no template": ("wings.npy", ("--manifold", "shapes", "--center", "wing.npy", "--missing", "template"),
                    "--missing template needs --template"),
    "mean the same": ("skulls.npy", (*SPACE[:4], "--missing", "mean"), "--missing must be center or template"),
    "another manifold": ("skulls.npy", ("--manifold", "rotations", "--template", "skull.npy"),
                         "--template is for --manifold euclidean, shapes or shapes3d"),
    "space for planar shapes": ("wings.npy", ("--manifold", "shapes", "--template", "skull.npy"),
                                "landmarks in space, which need --manifold shapes3d"),
    "landmarks without a template": ("skulls.npy", ("--manifold", "euclidean"), "landmarks need --template"),
    "an unknown manifold": ("skulls.npy", ("--manifold", "skulls", "--template", "skull.npy"), "--manifold must be"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_about_the_template_is_refused_and_charges_nothing(folder, mistake):
    np.save("skull2.npy", TEMPLATES[3][:, :2])
    np.save("nan.npy", np.where(TEMPLATES[3] > 0, np.nan, TEMPLATES[3]))
    np.save("line.npy", TEMPLATES[3][:, :1] * [1.0, 2.0, 3.0])
    np.save("rows.npy", SKULLS[:, 1:].reshape(40, -1))
    file, options, words = REFUSED[mistake]
    result = run("release", file, *options, "--radius", 0.3, *SHARP, "--ledger", "book.db")
    said = " ".join(result.output.split())
    assert result.exit_code == 2 and words in said and said.count("Error") == 1, said
    assert not (folder / "out.json").exists() and Ledger("book.db").account().releases == 0


def test_configurations_of_r_are_turned():
    specimens = np.random.default_rng(0).normal(size=(7, 5, 2))
    np.testing.assert_array_equal(landmarks_from_r(np.moveaxis(specimens, 0, 2)), specimens)
    np.testing.assert_array_equal(landmarks_from_r(list(specimens)), specimens)
    for other in (np.zeros((5, 2)), np.zeros((5, 4, 9)), [np.zeros((5, 2)), np.zeros((4, 2))]):
        with pytest.raises(ValueError, match=r"\(k, 2, n\)"):
            landmarks_from_r(other)
