"""A person is protected: each one's records become one, which depends on nobody else's."""

import decimal
import fractions
import functools
import json
import uuid

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from strategies import MORE, ONE_OF_EACH_KIND, exhaustive, name
from typer.testing import CliRunner

from jaxgeodp import (
    SPD,
    EmpiricalRisk,
    Euclidean,
    GeodesicBall,
    Hyperbolic,
    KNGMechanism,
    Ledger,
    PlanarShapes,
    PureDP,
    Rotations,
    Sphere,
    TangentLaplace,
    frechet_mean,
)
from jaxgeodp.cli import app
from jaxgeodp.compiling import like
from jaxgeodp.domains.persons import averages, frechet_means, person_places
from jaxgeodp.domains.points_in_ball import PointsInBall
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.pictures import page_of

LABELS = np.array([2, 0, 1, 2, 1, 1, 0, 2, 3, 1])
SPACES = [Sphere(2), SPD(2), PlanarShapes(4), Euclidean(2), Hyperbolic(2), Rotations()]


def ball_on(manifold, radius=0.3):
    return GeodesicBall(manifold, manifold.origin, radius)


def points_in(ball, n, seed=0):
    return _points_in(ball.manifold, n, jnp.asarray(ball.center), 0.9 * ball.radius, seed)


def means_of(ball, records, labels, count):
    """One record a person, by the program of releases."""
    return frechet_means("persons", ball, like(records))(records, np.asarray(labels), count)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _points_in(manifold, n, origin, reach, seed):
    keys = jax.random.split(jax.random.key(seed), n)
    tangents = jax.vmap(lambda key: manifold.random_tangent(key, origin))(keys)
    return jax.vmap(lambda v: manifold.exp(origin, reach * v / jnp.maximum(manifold.norm(origin, v), 1.0)))(tangents)


@pytest.mark.parametrize("manifold", [*SPACES[:1], *exhaustive(*SPACES[1:])], ids=name)
def test_a_person_becomes_the_mean_of_his_records_and_of_no_others(manifold):
    ball = ball_on(manifold)
    records = points_in(ball, len(LABELS))
    found = means_of(ball, records, LABELS, 4)
    for person in range(4):
        own = jnp.asarray(LABELS == person, float)  # weights: one program for any number of records
        np.testing.assert_allclose(manifold.dist(found[person], frechet_mean(manifold, records, own)), 0.0, atol=1e-9)
    # All of one person's records replaced, some by what is no record: the others' stay what they were, to the last bit.
    other = records.at[np.flatnonzero(LABELS == 1)].set(jnp.nan).at[2].set(1e300)
    again = means_of(ball, other, LABELS, 4)
    np.testing.assert_array_equal(np.delete(again, 1, axis=0), np.delete(found, 1, axis=0))
    assert bool(jnp.all(jnp.isfinite(again))) and float(jnp.max(jnp.abs(again[1] - found[1]))) > 0


def test_means_lie_in_large_balls_and_about_far_centres():
    manifold = Hyperbolic(2)
    center = manifold.exp(jnp.asarray(manifold.origin), jnp.array([0.0, 8.0, 0.0]))
    ball = GeodesicBall(manifold, center, 6.0)
    records = points_in(ball, len(LABELS), 3)
    means = means_of(ball, records, LABELS, 4)
    distances = jax.vmap(lambda x: manifold.dist(center, x))(means)
    assert bool(jnp.all(distances <= 6.0))


def test_the_release_is_of_persons():
    ball = ball_on(Sphere(2), 0.5)
    records = points_in(ball, len(LABELS))
    mechanism = TangentLaplace(ball, 1e9)
    release = mechanism.release(records, persons=LABELS)
    assert release.record["n"] == 4 and release.record["unit"] == "person"
    assert release.record["guarantee"]["adjacency"] == "replace-one (all of a person)"
    assert "when one person is replaced" in page_of(release.record, "0")
    assert release.record["scale"] == mechanism.scale(4) > mechanism.scale(10)
    means = means_of(ball, records, LABELS, 4)
    expected = mechanism.release(means)
    np.testing.assert_allclose(release.value, expected.value, atol=1e-7)
    assert "unit" not in expected.record
    # Persons count once: not the mean of records.
    assert float(jnp.max(jnp.abs(mechanism.release(records).value - release.value))) > 1e-3


def test_a_person_moves_the_release_by_the_sensitivity_for_persons_at_most():
    """Somebody with most of the records is replaced: a record-level scale would not cover it."""
    ball = ball_on(Sphere(2), 0.4)
    labels = np.array([0] * 30 + [1, 2, 3, 4, 5])
    mechanism = TangentLaplace(ball, 1e9)
    ends = [jnp.asarray(ball.manifold.exp(jnp.asarray(ball.center), sign * 0.4 * v)) for sign in (1, -1)
            for v in [ball.manifold.frame(jnp.asarray(ball.center))[0]]]  # fmt: skip
    rest = points_in(ball, 5)
    values = [mechanism.release(jnp.concatenate([jnp.stack([end] * 30), rest]), persons=labels).value for end in ends]
    moved = float(ball.manifold.dist(*map(jnp.asarray, values)))
    assert 0.9 * mechanism.sensitivity(6) < moved <= mechanism.sensitivity(6) * 1.01
    # A planted mistake, the scale for 35 records, would not: the person moves far more than that.
    assert moved > 3.0 * mechanism.sensitivity(35)


def test_records_are_summarised_after_the_charge_and_what_is_refused_is_refused_before(tmp_path, monkeypatch):
    order = []
    ball = ball_on(Sphere(2))
    mechanism, records = TangentLaplace(ball, 1.0), points_in(ball, 10)
    original, charge = PointsInBall.of_persons, Ledger.charge

    def watched(self, *arguments):
        summaries = original(self, *arguments)
        return lambda *given: (order.append("records"), summaries(*given))[1]

    monkeypatch.setattr(PointsInBall, "of_persons", watched)
    monkeypatch.setattr(Ledger, "charge", lambda *given: (order.append("charge"), charge(*given))[1])
    book = Ledger(tmp_path / "book.db", PureDP(1.5))
    mechanism.release(records, book, persons=LABELS)
    assert order == ["charge", "records"]
    with pytest.raises(ValueError, match="left"):
        mechanism.release(records, book, persons=LABELS)
    assert order == ["charge", "records", "charge"]


@pytest.mark.parametrize(
    "labels",
    [
        LABELS,
        LABELS.astype(float),
        [f"person {k}" for k in LABELS],
        np.array([f"person {k}" for k in LABELS], dtype=object),
        [None if k == 2 else k for k in LABELS],
        np.where(LABELS == 2, np.nan, LABELS),
        [[None, np.nan, np.float64("nan")][j % 3] if k == 2 else k for j, k in enumerate(LABELS)],
        np.ma.MaskedArray(LABELS * 1.0, mask=LABELS == 2),
        jnp.asarray(LABELS),
        [np.array(k) for k in LABELS],
        [np.ma.masked if k == 2 else k for k in LABELS],
        [10**5000 + int(k) for k in LABELS],
        ["x" * 10**6 if k == 2 else str(k) for k in LABELS],
        [b"\xff" * int(k) for k in LABELS],
        [[int(k)] if k == 2 else k for k in LABELS],
        [uuid.UUID(int=int(k)) for k in LABELS],
        [(str(k), 1) for k in LABELS],
    ],
    ids=[
        *("integers", "floats", "words", "objects", "with None", "with NaN", "missing in several ways", "masked"),
        *("of JAX", "arrays of one", "a masked one among them"),
        *("huge", "a long one", "bytes", "a list among them", "identifiers", "pairs"),
    ],
)
def test_labels_of_every_kind(labels):
    places, count = person_places("x", labels, len(LABELS))
    assert count == 4
    assert all((places[i] == places[j]) == (LABELS[i] == LABELS[j]) for i in range(10) for j in range(10))


@pytest.mark.parametrize(
    "labels",
    [
        ["7", "7 ", " 7"],
        [7, 7.0, "7"],
        [np.float32(7), np.int8(7), np.str_("7")],
        [decimal.Decimal(7), fractions.Fraction(7), "7.0"],
        ["", " ", None],
        ["p 1", " p 1", np.str_("p 1 ")],
    ],
    ids=str,
)
def test_a_person_is_one_whether_a_label_is_a_number_or_its_text(labels):
    places, count = person_places("x", [*labels, "07", "other"], 5)
    assert count == 3 and places.tolist() == [0, 0, 0, 1, 2]


def test_a_label_of_any_kind_has_an_answer():
    labels = [np.timedelta64(1, "D"), np.datetime64("2020-01-01"), np.void(b"x"), 10**5000, str(10**400), 1e300, (1, 2)]
    labels += [b"7", "7", "nan", "-0", "0", "1.1", "1.10", "1.100", "01.1"]
    assert person_places("x", labels, len(labels))[1] == len(labels)


class Quarrelsome:
    """A label that may be hashed, and fails where it is compared with another than itself."""

    def __init__(self, k):
        self.k = k

    def __hash__(self):
        return 7

    def __eq__(self, other):
        if other is not self:
            raise RuntimeError(f"{self.k} is not to be compared")
        return True


def test_labels_that_fail_where_they_are_compared_are_of_different_persons():
    one, other = Quarrelsome(1), Quarrelsome(2)
    places, count = person_places("x", [one, 7, other, one, 7, other], 6)
    assert count == 3
    assert places.tolist() == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("labels", "words"),
    [(LABELS[:-1], "one label for each"), ([[1, 2], [3]], "one label for each"), ([7] * 10, "at least 2 persons")],
)
def test_labels_that_are_none_are_refused(labels, words):
    ball = ball_on(Sphere(2))
    with pytest.raises(ValueError, match=words):
        TangentLaplace(ball, 1.0).release(points_in(ball, 10), persons=labels)


def test_a_curve_that_is_no_curve_counts_as_the_template():
    template = np.full((2, 16), 0.3)
    curves = template + np.random.default_rng(0).normal(size=(10, 2, 16)) * 0.01
    mechanism = FunctionalGaussianMechanism(PeriodicKernel(1.0), 1e-3, 1.0, 1e6, template=template)
    bad = curves.copy()
    bad[1, 0, 3], bad[6, 1, 1] = np.nan, np.inf  # both of person 0
    like_template = curves.copy()
    like_template[[1, 6]] = template
    found, expected = (mechanism.release(x, persons=LABELS).value for x in (bad, like_template))
    np.testing.assert_allclose(found, expected, atol=1e-4)
    bad[1], bad[6] = 1e308, 1e308  # their sum is not finite
    assert np.all(np.isfinite(mechanism.release(bad, persons=LABELS).value))


def moved_by_others(summaries, records, labels, far):
    """Which persons' records change a bit if person 0 has other records, more of them, and other places."""
    count, rest = labels.max() + 1, labels != 0
    plain = summaries(records, labels, count)
    own = np.concatenate([far, records[rest], far, far]), np.concatenate([[0], labels[rest], [0, 0]])
    alone = [summaries(records[labels == k], np.zeros(np.sum(labels == k), int), 1)[0] for k in range(1, count)]
    others = [summaries(*own, count)[1:], np.stack(alone)]
    return sum(not np.array_equal(found, plain[1:]) for found in others)


@pytest.mark.parametrize(
    "manifold", [*SPACES[:2], *exhaustive(*(m for m in ONE_OF_EACH_KIND + MORE if m not in SPACES[:2]))], ids=name
)
def test_the_number_of_anothers_records_moves_no_bit(manifold):
    """Programs of one shape, one record after the other: section 14 of the mathematics."""
    ball = ball_on(manifold)
    records = np.asarray(points_in(ball, 61))
    labels = np.random.default_rng(2).permutation(np.arange(61) % 7)
    found = frechet_means("persons", ball, like(records))
    assert moved_by_others(found, records, labels, records[:1] * np.nan) == 0


def test_no_program_meets_what_is_no_point(tmp_path):
    """Blocks that are not full hold nothing that could fail after the charge, as where a user looks for NaN."""
    book = Ledger(tmp_path / "book.db", PureDP(1.5))
    with jax.debug_nans(True):
        TangentLaplace(ball_on(SPD(2)), 1.0).release(np.stack([np.eye(2)] * 10), book, persons=LABELS)


def test_results_of_another_shape_are_refused_without_a_record():
    class Odd(Sphere):
        def project(self, x):
            return super().project(x)[None]

    with pytest.raises(ValueError, match=r"\(1, 3\)"):
        frechet_means("Odd", ball_on(Odd(2)), jax.ShapeDtypeStruct((10, 3), np.float64))


def test_sums_that_hang_on_others_are_found():
    records = np.random.default_rng(3).normal(size=(61, 3, 8))
    labels = np.random.default_rng(2).permutation(np.arange(61) % 7)
    far = np.full((1, 3, 8), 1e6)
    assert moved_by_others(averages(np.zeros((3, 8))), records, labels, far) == 0

    def planted(values, places, count):
        """Differences of sums over all."""
        order = np.argsort(places, kind="stable")
        ends, sizes = np.cumsum(np.bincount(places, minlength=count)), np.bincount(places, minlength=count)
        sums = np.concatenate([np.zeros((1, 3, 8)), np.cumsum(values[order], axis=0)])
        return (sums[ends] - sums[ends - sizes]) / sizes[:, None, None]

    assert moved_by_others(planted, records, labels, far) > 0


def test_many_records_are_worked_on_in_blocks():
    ball = ball_on(Sphere(2))
    records, labels = points_in(ball, 2500), np.arange(2500) % 7
    own = frechet_mean(Sphere(2), records[labels == 3])
    np.testing.assert_allclose(means_of(ball, records, labels, 7)[3], own, atol=1e-9)


def test_persons_are_for_points_and_curves():
    risk = EmpiricalRisk(lambda x, z: jnp.sum((x - z[0]) ** 2), 1.0, shape=(1, 3))
    ball = ball_on(Sphere(2))
    with pytest.raises(ValueError, match="persons= is not supported"):
        KNGMechanism(ball, 1.0, statistic=risk).release(np.zeros((10, 1, 3)), persons=LABELS)
    point_like = EmpiricalRisk(lambda x, z: jnp.sum((x - z) ** 2), 1.0, shape=(3,))
    with pytest.raises(ValueError, match="persons= is not supported"):
        KNGMechanism(ball, 1.0, statistic=point_like).release(np.zeros((10, 3)), persons=LABELS)
    curves = np.random.default_rng(0).normal(size=(10, 2, 16)) * 0.05
    mechanism = FunctionalGaussianMechanism(PeriodicKernel(1.0), 1e-3, 1.0, 1e6)
    found = mechanism.release(curves, persons=LABELS)
    means = np.stack([curves[LABELS == person].mean(axis=0) for person in range(4)])
    np.testing.assert_allclose(found.value, mechanism.release(means).value, atol=1e-4)
    assert found.record["n"] == 4


# The command -----------------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The same records and labels in every format that takes --person."""
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(10, 2)) * 0.1
    words = [f"p{label}" for label in LABELS]
    lines = [f"{word},{x!r},{y!r}" for word, (x, y) in zip(words, rows.tolist(), strict=True)]
    (tmp_path / "named.csv").write_text("patient,x,y\n" + "\n".join(lines))
    (tmp_path / "plain.csv").write_text("\n".join(lines))
    np.save("table.npy", np.column_stack([LABELS, rows]))
    np.savez("both.npz", x=rows, who=LABELS)
    pq.write_table(pa.table({"patient": words, "x": rows[:, 0], "y": rows[:, 1]}), "table.parquet")
    columns = [pa.array(range(10)), pa.array(words), pa.array(rows[:, 0]), pa.array(rows[:, 1])]
    pq.write_table(pa.table(columns, names=["id", "id", "x", "y"]), "twice.parquet")
    pq.write_table(
        pa.table([pa.array(range(10), pa.timestamp("ns")), *columns[2:]], names=["when", "x", "y"]), "when.parquet"
    )
    pq.write_table(
        pa.table([pa.array(words).dictionary_encode(), *columns[2:]], names=["patient", "x", "y"]), "coded.parquet"
    )
    means = np.stack([rows[LABELS == person].mean(axis=0) for person in range(4)])
    return tmp_path, means.mean(axis=0)


OWN = ("--manifold", "euclidean", "--radius", 1, "--epsilon", 1e9, "--mechanism", "tangent", "--out", "out.json")


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("named.csv", ("--header", "--person", "patient")),
        ("named.csv", ("--header", "--person", "1", "--columns", "x,y")),
        ("plain.csv", ("--person", "1")),
        ("table.npy", ("--person", "1")),
        ("both.npz", ("--array", "x", "--person", "who")),
        ("table.parquet", ("--person", "patient")),
        ("coded.parquet", ("--person", "patient")),
    ],
)
def test_the_command_protects_persons(files, file, options):
    folder, expected = files
    result = run("release", file, *OWN, *options)
    assert result.exit_code == 0 and "n = 4 persons" in " ".join(result.output.split()), result.output
    record = json.loads((folder / "out.json").read_text())
    assert record["n"] == 4 and record["unit"] == "person"
    np.testing.assert_allclose(record["value"], expected, atol=1e-7)


def test_a_line_that_is_no_record_changes_no_word(files):
    folder, _ = files
    lines = (folder / "plain.csv").read_text().splitlines()
    said = set()
    for first in (lines[0], "p2", "p2,,,,", "p2,secret,9e999"):
        (folder / "plain.csv").write_text("\n".join([first, *lines[1:]]))
        result = run("release", "plain.csv", *OWN, "--person", "1", "--overwrite")
        said.add((result.exit_code, result.output))
    assert len(said) == 1 and said.pop()[0] == 0


@pytest.mark.parametrize(
    ("file", "options", "words"),
    [
        ("named.csv", ("--header",), "names that coordinates rarely have"),
        ("named.csv", ("--header", "--person", "doctor"), "neither a number"),
        ("plain.csv", ("--person", "4"), "must lie within 1-3"),
        ("both.npz", ("--array", "x", "--person", "whom"), "choose one of its arrays with --person"),
        ("named.csv", ("--header", "--person", "patient", "--columns", "1-3"), "holds the column of --person"),
        ("twice.parquet", ("--person", "2", "--columns", "3-4"), "several of its columns have the name"),
        ("when.parquet", ("--person", "when"), "must hold whole numbers or words"),
    ],
)
def test_wrong_columns_of_persons_are_refused(files, file, options, words):
    result = run("release", file, *OWN, *options)
    assert result.exit_code == 2 and words in " ".join(result.output.split()), result.output


def test_check_tells_of_persons_and_not_of_their_labels(files):
    result = run("check", "named.csv", "--manifold", "euclidean", "--header", "--person", "patient")
    text = " ".join(result.output.split())
    assert result.exit_code == 0 and "4 persons, with 1 to 4 records each" in text
    assert "hold words" not in text
    assert run("check", "both.npz", "--manifold", "euclidean", "--array", "x", "--person", "whom").exit_code == 2
