"""Private estimators: scikit-learn's own suite, its habits, pyriemann's; what they spend, and what they refuse."""

import contextlib
import warnings
from unittest import mock

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from pyriemann.classification import MDM
from pyriemann.geometry.mean import gmean
from sklearn import set_config
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted
from strategies import exhaustive

import jaxgeodp as jgd
from jaxgeodp.privacy import GaussianDP, Ledger
from jaxgeodp.sklearn import (
    PrivateCovarianceMean,
    PrivateFrechetMean,
    PrivateNearestMean,
    PrivateTangentSpace,
    RepeatedFitWarning,
)
from jaxgeodp.sklearn.repeated_fits import WARNED

# So little noise that equal data give equal results, as the suite asks.
QUIET = {"mu": 1e8, "radius": 10.0}
# A private number of records leaves some out at random, however little noise there is.
CELLS = {"check_dtype_object": "a cell that is no number is replaced, and not told of"}
WEIGHTED = CELLS | {
    "check_sample_weight_equivalence_on_dense_data": "a weight of 0 is refused: how many count is public"
}
LEFT_OUT = CELLS | dict.fromkeys(
    ("check_fit_idempotent", "check_supervised_y_2d", "check_classifier_data_not_an_array"),
    "records are left out at random",
)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")  # scikit-learn's own
@pytest.mark.parametrize(
    ("estimator", "reasons"),
    [
        (PrivateNearestMean("euclidean", **QUIET), LEFT_OUT),
        *exhaustive(
            (PrivateTangentSpace("euclidean", **QUIET), CELLS), (PrivateFrechetMean("euclidean", **QUIET), WEIGHTED)
        ),
    ],
    ids=lambda own: type(own).__name__,
)
def test_the_suite_of_scikit_learn_passes(estimator, reasons):
    found = check_estimator(estimator, expected_failed_checks=reasons, on_fail=None, on_skip=None)
    failed = [one["check_name"] for one in found if one["status"] == "failed"]
    assert not failed and sum(one["status"] == "passed" for one in found) > 30


def signals(n, classes, seed=0, size=2):
    """Covariances of n signals whose channels have another power in each class."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, n)
    powers = np.exp(0.8 * np.eye(size)[:classes])[labels]
    series = np.sqrt(powers)[:, :, None] * generator.normal(size=(n, size, 100))
    return series @ series.swapaxes(1, 2) / 100, labels


def test_a_mean_is_a_release():
    matrices = signals(500, 2)[0]
    model = PrivateFrechetMean(jgd.SPD(2), mu=2.0, radius=2.0).fit(matrices)
    assert model.release_.record["guarantee"] == model.budget_ and model.budget_["mu"] == 2.0
    assert jgd.SPD(2).belongs(jnp.asarray(model.mean_), 1e-6) and model.manifold_ == jgd.SPD(2)
    exact = jgd.frechet_mean(jgd.SPD(2), matrices)
    assert 0 < float(jgd.SPD(2).dist(exact, jnp.asarray(model.mean_))) < 0.2
    again = clone(model)
    assert again.get_params() == model.get_params() and not hasattr(again, "mean_")


def test_every_fit_of_a_cross_validation_is_charged(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", GaussianDP(1.9))
    matrices, labels = signals(400, 2)
    model = PrivateNearestMean("spd", mu=1.0, radius=2.0, ledger=ledger, classes=[0, 1])
    scores = cross_val_score(model, matrices, labels, cv=KFold(3), error_score="raise")
    assert scores.mean() > 0.8 and ledger.account().releases == 3
    with pytest.raises(ValueError, match="left"):
        clone(model).fit(matrices, labels)
    assert ledger.account().releases == 3


def test_coordinates_are_logarithms_at_the_released_mean():
    matrices = signals(300, 2)[0]
    space = PrivateTangentSpace("spd", mu=2.0, radius=2.0)
    flat = space.fit_transform(matrices)
    assert flat.shape == (300, 3) and list(space.get_feature_names_out())[:1] == ["privatetangentspace0"]
    lengths = [float(jgd.SPD(2).dist(jnp.asarray(space.mean_), own)) for own in jnp.asarray(matrices[:5])]
    np.testing.assert_allclose(np.linalg.norm(flat[:5], axis=1), lengths, rtol=1e-8)
    np.testing.assert_allclose(space.inverse_transform(flat[:5]), matrices[:5], rtol=1e-8)
    bad = matrices[:3].copy()
    bad[1] = np.nan
    assert np.isnan(space.transform(bad)).all(axis=1).tolist() == [False, True, False]
    reduced = make_pipeline(clone(space), PCA(2)).fit_transform(matrices)
    assert reduced.shape == (300, 2)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_one_budget_pays_for_all_classes(adjacency, tmp_path):
    ledger = Ledger(tmp_path / "budget.db", GaussianDP(2.0))
    matrices, labels = signals(900, 3, size=3)
    words = np.array(["left", "right", "rest"])[labels]
    model = PrivateNearestMean(
        "spd", mu=2.0, radius=2.5, ledger=ledger, classes=["left", "right", "rest", "foot"], adjacency=adjacency
    ).fit(matrices, words)
    account = ledger.account()
    assert account.releases == 1 and account.spent["mu"] <= 2.0 * (1 + 1e-9)
    assert adjacency in model.budget_["adjacency"] and "classes" not in model.releases_[0].record
    counts = dict(zip(model.classes_, model.counts_, strict=True))
    assert model.means_.shape == (4, 3, 3) and counts.pop("foot") < 60 < 200 < min(counts.values())
    assert model.score(matrices, words) > 0.8
    np.testing.assert_allclose(model.predict_proba(matrices).sum(axis=1), 1.0)


def test_labels_that_are_read_are_said_to_be_supposed_public():
    matrices, labels = signals(200, 2)
    model = PrivateNearestMean("spd", mu=2.0, radius=2.0).fit(matrices, labels)
    assert "supposed" in model.releases_[0].record["classes"]


def test_a_label_that_is_no_class_leaves_its_record_out():
    """Whatever it is: nothing is raised that would tell of it."""
    matrices, labels = signals(400, 2)
    odd = labels.astype(object)
    odd[0], odd[1], odd[2] = None, "x", float("nan")
    model = PrivateNearestMean("spd", mu=5.0, radius=2.0, classes=[0, 1]).fit(matrices, odd)
    assert set(model.predict(matrices)) == {0, 1}


def test_bad_records_are_replaced_not_reported():
    matrices, labels = signals(300, 2)
    matrices[0], matrices[1], matrices[2] = np.nan, -np.eye(2), np.inf
    for model in (
        PrivateFrechetMean("spd", mu=1.0, radius=2.0),
        PrivateCovarianceMean(mu=1.0, radius=2.0),
        PrivateNearestMean("spd", mu=1.0, radius=2.0, classes=[0, 1]),
    ):
        with np.errstate(all="raise"):
            assert np.isfinite(model.fit(matrices, labels).__dict__.get("mean_", 0.0)).all()


class Odd:
    """It hashes like a class, and cannot be compared."""

    def __hash__(self):
        return hash(0)

    def __eq__(self, other):
        raise RuntimeError("secret")


def with_words(table):
    table[3, 1, 0] = "HIV+"
    return table


def masked(table):
    return np.ma.masked_array(np.full(table.shape, 2.0), mask=True)


def in_lists(table):
    """Lists with a record of another length, a complex number, and none at all."""
    rows = table.tolist()
    rows[0], rows[1], rows[2] = rows[0][:1], [1j, *rows[1][1:]], None
    return rows


@pytest.mark.parametrize(
    "spoil", [with_words, masked, in_lists, lambda own: own.tolist(), lambda own: np.where(own, None, own)]
)
def test_no_cell_is_told_of(spoil):
    """Words, masked cells, None: the fit is made, without a warning."""
    table = spoil(signals(60, 2)[0].astype(object))
    mean = PrivateFrechetMean("spd", mu=1.0, radius=2.0).fit(table).mean_
    assert np.isfinite(mean).all()


def test_no_label_is_told_of():
    matrices, labels = signals(100, 2)
    odd = labels.astype(object)
    odd[0] = Odd()
    model = PrivateNearestMean("spd", mu=1.0, radius=2.0, classes=[0, 1]).fit(matrices, odd)
    assert model.means_.shape == (2, 2, 2) and np.isfinite(model.means_).all()


@pytest.mark.parametrize(
    "kind", [list, lambda rows: np.array(rows, object), pd.DataFrame], ids=["lists", "objects", "table"]
)
def test_how_a_record_is_read_depends_on_no_other(kind):
    """Words of which each is a number, and one record that is no word."""
    words = [["0.5", "0.25"]] * 99
    means = [
        PrivateFrechetMean("euclidean", mu=1e8, radius=1.0).fit(kind([*words, last])).mean_
        for last in (["0", "0"], [0.0, 0.0], [0.0, "x"])
    ]
    np.testing.assert_allclose(means, [[0.495, 0.2475]] * 3, atol=1e-6)


def test_a_cell_that_raises_is_not_told_of():
    class Spiteful:
        def __getattr__(self, name):
            raise RuntimeError("secret")

    rows = [[0.5, 0.25]] * 99
    mean = PrivateFrechetMean("euclidean", mu=1e8, radius=1.0).fit([*rows, [Spiteful(), 0.25]]).mean_
    np.testing.assert_allclose(mean, [0.495, 0.2475], atol=1e-6)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("shape", [(137, 9), (137, 2, 3, 4), (137, 0)], ids=str)
def test_refusals_hold_no_private_number(adjacency, shape):
    with pytest.raises(ValueError, match=r"PrivateFrechetMean|spd|sphere") as refused:
        PrivateFrechetMean("sphere(2) * spd(2)", mu=1.0, adjacency=adjacency).fit(np.zeros(shape))
    assert "137" not in str(refused.value) or adjacency == "replace-one"


@pytest.mark.parametrize(
    "table",
    [np.array([7.125, 1.0]), np.full((30, 4), 7.125 + 1j), np.full((1, 3), 7.125)],
    ids=["one dimension", "complex", "one record"],
)
def test_refusals_hold_no_record(table):
    with pytest.raises(ValueError, match="PrivateFrechetMean") as refused:
        PrivateFrechetMean("euclidean", mu=1.0, radius=1.0).fit(table)
    assert "7.1" not in str(refused.value)


def test_classes_are_sorted_as_scores_suppose():
    matrices, labels = signals(400, 2)
    model = PrivateNearestMean("spd", mu=3.0, radius=2.0, classes=[1, 0]).fit(matrices, labels)
    assert model.classes_.tolist() == [0, 1]
    assert roc_auc_score(labels, model.predict_proba(matrices)[:, 1]) > 0.9


def test_a_refused_fit_is_no_fit():
    model = PrivateFrechetMean("spd", radius=1.0)
    with pytest.raises(ValueError, match="epsilon or mu"):
        model.fit(signals(50, 2)[0])
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_shapes_come_back_as_landmarks():
    landmarks = np.random.default_rng(0).normal(size=(200, 5, 2)) + 3.0 * np.arange(5)[:, None]
    center = jgd.PlanarShapes(5).from_landmarks(landmarks[0])
    space = PrivateTangentSpace("shapes", mu=5.0, center=center, radius=0.3)
    again = space.inverse_transform(space.fit_transform(landmarks))
    assert again.shape == landmarks.shape
    np.testing.assert_allclose(space.transform(again), space.transform(landmarks), atol=1e-8)


def test_a_ball_is_found_without_a_radius():
    matrices = signals(2000, 2)[0]
    model = PrivateFrechetMean("spd", mu=2.0).fit(matrices)
    assert model.release_.record["mechanism"] == "LocatedMechanism"


def test_persons_are_routed():
    matrices = signals(300, 2)[0]
    whose = np.repeat(np.arange(100), 3)
    set_config(enable_metadata_routing=True)
    try:
        model = make_pipeline(PrivateTangentSpace("spd", mu=2.0, radius=2.0).set_fit_request(persons=True))
        model.fit(matrices, persons=whose)
    finally:
        set_config(enable_metadata_routing=False)
    assert model[0].release_.record["unit"] == "person" and model[0].release_.record["n"] == 100


def test_persons_of_a_classifier_are_routed_and_share_the_budget_of_its_classes(tmp_path):
    """Ten records a person, of both classes."""
    labels = np.arange(600) % 2
    table = labels[:, None] - 0.5 + 0.1 * np.random.default_rng(0).normal(size=(600, 2))
    whose = np.repeat(np.arange(60), 10)
    ledger = Ledger(tmp_path / "budget.db", GaussianDP(5.3))
    model = PrivateNearestMean("euclidean", mu=3.0, radius=2.0, classes=[0, 1], ledger=ledger)
    set_config(enable_metadata_routing=True)
    try:
        routed = make_pipeline(clone(model).set_fit_request(persons=True)).fit(table, labels, persons=whose)[0]
        asking = clone(model).set_fit_request(persons=True)
        cross_val_score(asking, table, labels, cv=GroupKFold(2), params={"persons": whose, "groups": whose})
    finally:
        set_config(enable_metadata_routing=False)
    for release in routed.releases_:
        record = release.record
        assert record["unit"] == "person" and record["group"]["of_one_person_at_most"] == 2
        assert record["count"]["left"]["mu"] < 3.0 / np.sqrt(2.0) and 30 < record["count"]["value"] < 90
    assert routed.score(table, labels) > 0.8 and ledger.account().releases == 3


def test_who_has_records_of_more_classes_than_one_is_left_out_where_one_is_said():
    matrices, labels = signals(600, 2)
    whose = np.where(labels == 0, np.arange(600) // 6, 1000 + np.arange(600) // 6)
    whose[:300] = np.arange(300) // 6  # half of all persons have records of both classes
    model = PrivateNearestMean("spd", mu=20.0, radius=2.0, classes=[0, 1], classes_per_person=1)
    model.fit(matrices, labels, persons=whose)
    counts = [release.record["count"]["value"] for release in model.releases_]
    expected = [len(set(whose[(labels == own) & (np.arange(600) >= 300)])) for own in (0, 1)]
    np.testing.assert_allclose(counts, expected, atol=5)
    assert model.releases_[0].record["count"]["left"]["mu"] > 0.9 * 20.0


@pytest.mark.parametrize(
    "model",
    [
        PrivateFrechetMean("spd", mu=2.0, radius=2.0),
        PrivateCovarianceMean(epsilon=4.0, radius=2.0, mechanism="tangent"),
        PrivateTangentSpace("spd", mu=2.0, radius=2.0),
    ],
    ids=lambda own: type(own).__name__,
)
def test_means_hide_how_many_records_there_are(model, tmp_path):
    matrices = signals(300, 2)[0]
    ledger = Ledger(tmp_path / "budget.db", GaussianDP(100.0))
    own = clone(model).set_params(adjacency="add-remove", ledger=ledger)
    record = own.fit(matrices).release_.record
    assert record["guarantee"]["adjacency"] == "add-remove" and "count" in record
    few = clone(own).fit(matrices[:0]).release_.record  # nobody is refused for a private number
    below = int(few["count"]["places"].rpartition(" - ")[2].rstrip(")"))  # as the record says; noise may make it more
    assert few["n"] == max(few["count"]["least"], few["count"]["value"] - below)
    assert ledger.account().adjacency == "either"
    public = clone(own).set_params(adjacency="replace-one").fit(matrices).release_.record
    assert public["n"] == 300 and public["guarantee"]["adjacency"] == "replace-one"


def test_matrices_of_less_than_full_rank_are_made_regular_by_themselves():
    matrices = signals(800, 2)[0]
    average = np.eye(2) - 0.5  # the average reference of an EEG takes one dimension away
    singular = average @ matrices @ average
    regular = PrivateCovarianceMean(
        mu=5.0, center=np.mean(np.trace(matrices, axis1=1, axis2=2)) / 2 * np.eye(2), radius=6.0
    )
    found = regular.fit(singular)
    share = found.release_.record["shrinkage"]
    level = np.trace(singular, axis1=1, axis2=2)[:, None, None] / 2
    exact = jgd.frechet_mean(jgd.SPD(2), (1 - share) * singular + share * level * np.eye(2))
    assert float(jgd.SPD(2).dist(exact, jnp.asarray(found.mean_))) < 0.2
    as_they_are = clone(regular).set_params(shrinkage=0.0).fit(singular)
    assert float(jgd.SPD(2).dist(exact, jnp.asarray(as_they_are.mean_))) > 1.0


def test_pyriemann_takes_private_means():
    matrices, labels = signals(600, 2)
    private = PrivateCovarianceMean(mu=3.0, radius=2.0)
    np.testing.assert_allclose(gmean(matrices, metric=private.mean_of), private.mean_)
    model = MDM(metric={"mean": private.mean_of, "distance": "riemann"}).fit(matrices, labels)
    assert model.score(matrices, labels) > MDM().fit(matrices, labels).score(matrices, labels) - 0.05
    weighted = private.mean_of(matrices, sample_weight=1.0 + (labels == 0))
    assert private.release_.record["n"] == 600 and weighted.shape == (2, 2)


def test_a_matrix_of_another_size_is_replaced_where_there_are_weights(monkeypatch):
    monkeypatch.setattr("jaxgeodp.sklearn.frechet_mean.counted_fit", lambda *_: contextlib.nullcontext())
    matrices, weights = np.tile(np.eye(2), (200, 1, 1)).tolist(), np.linspace(1.0, 2.0, 200)
    for row in (matrices[7], [[1.0]], None, "a"):
        private = PrivateCovarianceMean(mu=3.0, radius=2.0)
        assert private.mean_of([*matrices[:7], row, *matrices[8:]], sample_weight=weights).shape == (2, 2)
        assert private.release_.record["n"] == 200
    # Where the number of records is private equal weights, which pyriemann may give, are none, and others are refused.
    hidden = PrivateCovarianceMean(mu=3.0, radius=2.0, adjacency="add-remove")
    assert hidden.mean_of(matrices, sample_weight=np.ones(200)).shape == (2, 2)
    for wrong in (weights, ["a"] * 200):
        with pytest.raises(ValueError, match="weights"):
            hidden.mean_of(matrices, sample_weight=wrong)
    for wrong in (weights[1:], weights[:, None], 1.0, -np.ones(200), ["a"] * 200):
        with pytest.raises(ValueError, match="one finite number above zero for each record"):
            PrivateCovarianceMean(mu=3.0, radius=2.0).mean_of(matrices, sample_weight=wrong)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (PrivateFrechetMean("spd", radius=1.0), "epsilon or mu"),
        (PrivateFrechetMean("spd", epsilon=1.0, mu=1.0, radius=1.0), "epsilon or mu"),
        (PrivateFrechetMean("spd", mu=1.0, center=np.eye(2)), "center needs radius"),
        (PrivateFrechetMean("spdd", mu=1.0, radius=1.0), "manifold must be one of"),
        (PrivateFrechetMean(3, mu=1.0, radius=1.0), "a manifold or a name"),
        (PrivateFrechetMean(jgd.SPD(3), mu=1.0, radius=1.0), "must hold points of SPD"),
        (PrivateFrechetMean("spd", epsilon=1.0, radius=1.0, mechanism="gibbs"), "'gibbs' needs mu, not epsilon"),
        (PrivateFrechetMean("spd", mu=1.0, radius=1.0, mechanism="laplace"), "'laplace' needs epsilon, not mu"),
        (PrivateFrechetMean("spd", mu=1.0, mechanism="laplace"), "does not release points"),
        (PrivateNearestMean("spd", mu=1.0, radius=1.0, classes=["a", "b"]), "use one type for both"),
        (PrivateNearestMean("spd", mu=1.0, radius=1.0, classes=[0, "b"]), "distinct words or distinct numbers"),
        (PrivateNearestMean("spd", mu=1.0), "needs the radius"),
        (PrivateNearestMean("spd", mu=1.0, radius=1.0, classes=[]), "classes must be a list"),
        (PrivateNearestMean("spd", mu=1.0, radius=1.0, classes=[1, 1]), "classes must be a list"),
        (PrivateNearestMean("spd", mu=1.0, radius=1.0, classes=[0, 1], adjacency="any"), "adjacency must be"),
        (PrivateNearestMean("spd", mu=1.0, radius=1.0, classes=[0, 1], classes_per_person=1), "needs persons"),
        (PrivateFrechetMean("spd", mu=1.0, radius=1.0, adjacency="any"), "adjacency must be"),
        (PrivateFrechetMean("spd", mu=1.0, adjacency="add-remove"), "give epsilon"),
        (PrivateCovarianceMean(mu=1.0, radius=1.0, shrinkage=2.0), "shrinkage must be from 0 to 1"),
    ],
    ids=str,
)
def test_calls_are_refused_in_words(model, words):
    matrices, labels = signals(50, 2)
    with pytest.raises(ValueError, match=words):
        model.fit(matrices, labels)


LARGE = 2**53 + 1  # the least whole number that is no float64


def pairs(n=60):
    """Points of a plane, in two classes: (n, 2), and 0 or 1."""
    labels = np.arange(n) % 2
    return labels[:, None] + 0.1 * np.random.default_rng(0).normal(size=(n, 2)), labels


def plane(**parameters):
    return PrivateNearestMean("euclidean", **{"mu": 50.0, "center": [0.5, 0.5], "radius": 2.0} | parameters)


@pytest.mark.parametrize(
    "classes",
    [
        [LARGE, 0.5],
        [LARGE - 1, LARGE, 0.5],
        np.array([LARGE, 0.5], object),
        [np.int64(LARGE), np.float64(0.5)],
        [2**63 + 1, -1],
        ["a", "b\0"],
        ["a", "a\0"],
    ],
    ids=repr,
)
def test_classes_that_no_array_holds_are_refused(classes, tmp_path):
    ledger = Ledger(tmp_path / "budget.db", GaussianDP(100.0))
    table, places = pairs()
    with pytest.raises(ValueError, match="PrivateNearestMean: no array holds all of these classes exactly"):
        plane(classes=classes, ledger=ledger).fit(table, [classes[place] for place in places])
    assert ledger.account().releases == 0


@pytest.mark.parametrize(
    "classes", ["ab", 5, [1j, 1], [None, 1], [(1,), (2,)], [b"a", b"b"], [1.0, float("nan")]], ids=repr
)
def test_what_is_no_list_of_words_or_numbers_is_refused(classes):
    table, labels = pairs()
    with pytest.raises(ValueError, match="PrivateNearestMean: classes must be a list of distinct words"):
        plane(classes=classes).fit(table, labels)


@pytest.mark.parametrize(
    "classes",
    [
        [LARGE - 1, LARGE],
        np.array([LARGE - 1, LARGE]),
        [0, 0.5],
        [np.float32(0.1), 0.5],
        [False, True],
        ["left", "right"],
        np.array(["left", "right"]),
        [2**64, 2**64 + 1],
    ],
    ids=repr,
)
def test_labels_are_kept_and_compared_exactly(classes):
    """Each record is counted in its class, and each class is found again: in predictions and in records."""
    table, places = pairs()
    names = [own.item() if isinstance(own, np.generic) else own for own in classes]
    labels = [names[place] for place in places]
    model = plane(classes=classes).fit(table, labels)
    assert model.classes_.tolist() == names and min(model.counts_) > 20
    assert set(model.predict(table).tolist()) == set(names)
    assert [own.record["group"]["name"] for own in model.releases_] == names


@pytest.mark.parametrize("labels", [[LARGE, 2.0], ["a", 1], ["a", "a\0"]], ids=repr)
def test_labels_that_occur_are_not_changed_into_others(labels):
    table, _ = pairs()
    with pytest.raises(ValueError, match="no array holds all labels of y exactly"):
        plane().fit(table, labels * 30)


@pytest.mark.parametrize(
    "kind", [jnp.asarray, lambda own: list(jnp.asarray(own)), lambda own: list(map(np.array, own))]
)
def test_labels_in_arrays_of_jax_are_labels(kind):
    """They have no hash: each was taken for a missing label."""
    table, labels = pairs()
    assert min(plane(classes=[0, 1]).fit(table, kind(labels)).counts_) > 20


def test_a_masked_label_is_a_missing_one_in_a_column_too():
    table, labels = pairs()
    hidden = np.ma.masked_array(labels[:, None], mask=labels[:, None] == 1)
    first, second = plane(classes=[0, 1]).fit(table, hidden).counts_
    assert second < 10 < 20 < first


@pytest.fixture
def new_process():
    """As if nothing had been fitted before."""
    with mock.patch.dict(WARNED, clear=True):
        yield


@contextlib.contextmanager
def repeated():
    """Collect what is said of repeated fits."""
    found = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    found += [str(own.message) for own in caught if issubclass(own.category, RepeatedFitWarning)]


def mean(**parameters):
    return PrivateFrechetMean("euclidean", **{"mu": 1.0, "center": [0.5, 0.5], "radius": 2.0} | parameters)


@pytest.mark.parametrize(
    "again",
    [
        lambda model, table: cross_validate(model, table, cv=3, scoring=lambda *_: 0.0),
        lambda model, table: GridSearchCV(model, {"mu": [1.0, 2.0]}, cv=2, scoring=lambda *_: 0.0).fit(table),
        lambda model, table: [clone(model).fit(table) for _ in range(3)],
        lambda model, table: [model.fit(table) for _ in range(3)],
        lambda model, table: (model.fit(table), PrivateTangentSpace(**model.get_params()).fit(table), model.fit(table)),
    ],
    ids=["cross_validate", "GridSearchCV", "clone", "fit", "another estimator"],
)
def test_a_second_fit_without_a_ledger_is_warned_of_once(again, new_process):
    with repeated() as found:
        again(mean(), pairs()[0])
    assert len(found) == 1 and "second fit without a ledger" in found[0]


def test_a_first_fit_is_not_warned_of_nor_are_those_with_a_ledger(new_process, tmp_path):
    table, _ = pairs()
    ledger = Ledger(tmp_path / "budget.db", GaussianDP(5.0))
    with repeated() as found:
        with pytest.raises(ValueError, match="adjacency must be"):
            mean(adjacency="any").fit(table)
        mean().fit(table)
        for _ in range(3):
            mean(ledger=ledger).fit(table)
    assert not found


def test_the_warning_knows_nothing_of_the_data(new_process):
    """Whether two data sets share a record is private: other records, the same ones and none are warned of alike."""
    table, _ = pairs()
    said = []
    for second in (table, table + 1.0, np.full_like(table, np.nan)):
        WARNED.clear()
        with repeated() as found:
            mean().fit(table)
            mean().fit(second)
        said.append(found)
    assert said[0] and said[0] == said[1] == said[2]


@pytest.mark.parametrize("model", [plane(classes=[0, 1]), mean(adjacency="add-remove")], ids=["labels", "add-remove"])
def test_folds_that_may_depend_on_records_are_warned_of_despite_a_ledger(model, new_process, tmp_path):
    table, labels = pairs()
    model.set_params(ledger=Ledger(tmp_path / "budget.db", GaussianDP(1000.0)))
    with repeated() as found:
        cross_validate(model, table, labels, cv=3, scoring=lambda *_: 0.0)
    assert len(found) == 1 and "stratified" in found[0] and "KFold(5)" in found[0]


def test_a_warning_that_is_an_error_refuses_before_the_charge(new_process, tmp_path):
    table, labels = pairs()
    ledger = Ledger(tmp_path / "budget.db", GaussianDP(1000.0))
    model = plane(classes=[0, 1], ledger=ledger).fit(table, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RepeatedFitWarning)
        for _ in range(2):
            with pytest.raises(RepeatedFitWarning):
                model.fit(table, labels)
    assert ledger.account().releases == 1


def test_a_ledger_that_is_exhausted_says_so_in_a_cross_validation(tmp_path):
    table, _ = pairs()
    ledger = Ledger(tmp_path / "budget.db", GaussianDP(1.5))
    model, folds = mean(ledger=ledger), {"cv": KFold(3), "scoring": lambda *_: 0.0}
    with pytest.warns(FitFailedWarning, match="the ledger's budget is exhausted for this release: data set 'default'"):
        scores = cross_validate(model, table, **folds)["test_score"]
    assert np.isnan(scores).tolist() == [False, False, True] and ledger.account().releases == 2
    with pytest.raises(ValueError, match=r"(?s)All the 3 fits failed.*the ledger's budget is exhausted"):
        cross_validate(model, table, **folds)
    assert ledger.account().releases == 2


def test_a_mean_has_public_weights():
    records = np.concatenate([np.tile([0.0, 0.0], (50, 1)), np.tile([1.0, 0.0], (50, 1))])
    weights = np.repeat([3.0, 1.0], 50)
    model = PrivateFrechetMean("euclidean", epsilon=1e6, radius=2.0, center=[0.0, 0.0])
    assert model.fit(records, sample_weight=weights).mean_[0] == pytest.approx(0.25, abs=1e-3)
    assert model.release_.record["weights"]["largest"] == pytest.approx(3 / 200)
    with pytest.raises(ValueError, match="one finite number above zero for each record"):
        model.fit(records, sample_weight=weights[1:])
