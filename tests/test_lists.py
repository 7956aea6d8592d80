"""Lists, arrays of objects and tables, of which some records are no numbers: they are none, and change no other."""

import dataclasses
import decimal
import functools
import io
import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from jaxgeodp import (
    SPD,
    Axes,
    Circle,
    Euclidean,
    GeodesicBall,
    PlanarShapes,
    Sphere,
    TangentGaussian,
    TangentLaplace,
    Torus,
    WrappedLaplace,
)
from jaxgeodp.domains import align_landmarks, impute_landmarks, landmarks_from_r
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.inference import geodesic_regression
from jaxgeodp.io import from_chart
from jaxgeodp.manifolds import RigidMotions
from jaxgeodp.releases.drafts import raw_records

CURVES = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, norm_bound=1.0, mu=[1.0, 1.0])


def objects(records):
    """An array of one object for each record."""
    array = np.empty(len(records), object)
    array[:] = records
    return array


@pytest.mark.parametrize(
    "record",
    [
        [["secret", 0.0], [0.0, 1.0]],
        [[np.timedelta64(1, "D"), 0.0], [0.0, 1.0]],
        [[1.0, 0.0]],
        [[1.0, 0.0], [1.0]],
        [[None, 0.0], [0.0, 1.0]],
        [[{}, 0.0], [0.0, 1.0]],
        [[10**400, 0], [0, 1]],
        [[decimal.Decimal("sNaN"), 0.0], [0.0, 1.0]],
        [[1.0, 1j], [0.0, 1.0]],
        [[np.complex128(1j), "secret"], [0.0, 1.0]],
        "secret",
        None,
        7,
    ],
    ids=str,
)
def test_a_record_of_another_kind_among_lists_is_none(record):
    """As where a file has it: the value is that of records of which one is NaN, hence the centre."""
    point = np.diag([2.0, 0.5])
    mechanism = TangentLaplace(GeodesicBall(SPD(2), np.eye(2), 1.5), 1e6)
    expected = np.diag(np.exp(0.9 * np.log([2.0, 0.5])))
    for place, kind in ((0, list), (9, list), (9, tuple), (4, objects)):
        data = kind([*[point.tolist()] * place, record, *[point.tolist()] * (9 - place)])
        np.testing.assert_allclose(mechanism.release(data).value, expected, atol=1e-4)


def test_a_word_in_a_table_is_none():
    mechanism = TangentLaplace(GeodesicBall(Euclidean(2), np.zeros(2), 1.0), 1e6)
    table = pd.DataFrame([[0.5, 0.5]] * 9 + [["a", 0.5]])
    np.testing.assert_allclose(mechanism.release(table).value, [0.45, 0.45], atol=1e-4)
    with pytest.raises(ValueError, match="got objects"):
        mechanism.release(table.assign(**{"1": "a"})[[0, "1"]])


def test_a_word_in_an_array_of_objects_is_none():
    mechanism = TangentLaplace(GeodesicBall(Euclidean(2), np.zeros(2), 1.0), 1e6)
    table = np.array([[0.5, 0.5]] * 9 + [["a", 0.5]], dtype=object)
    np.testing.assert_allclose(mechanism.release(table).value, [0.45, 0.45], atol=1e-4)


def test_complex_shapes_in_lists_stay_complex_where_few_are():
    """A real number in a list of complex ones, or the reverse, is one."""
    center = np.array([1.0 + 0.0j, -1.0, 0.0]) / math.sqrt(2.0)
    mechanism = TangentLaplace(GeodesicBall(PlanarShapes(3), center, 0.3), 1e6)
    records = [center.real.tolist()] * 8 + [[0.7, -0.7, 0.3j]]
    array = np.array(records)
    np.testing.assert_allclose(mechanism.release(records).value, mechanism.release(array).value, atol=1e-4)
    assert abs(mechanism.release(records).value - mechanism.release(array[:8]).value).max() > 1e-2


class Spiteful:
    """An object that raises what it likes."""

    def __array__(self, *given, **more):
        raise RuntimeError("secret")


G = [[0.5, 0.5]] * 9
ITSELF: list = []
ITSELF.append(ITSELF)
DEEP = functools.reduce(lambda inner, _: [inner], range(3000), 0.5)


@pytest.mark.parametrize(
    ("data", "value"),
    {
        "a mask": (np.ma.array(np.array([*G, [-0.5, -0.5]], object), mask=[[0, 0]] * 9 + [[1, 1]]), 0.45),
        "masks in a list": ([np.ma.array(own, mask=[place > 8] * 2) for place, own in enumerate([*G, G[0]])], 0.45),
        "a masked number": ([*G, [0.5, np.ma.masked]], 0.45),
        "a masked number and a word": ([*G[1:], ["a", 0.5], [0.5, np.ma.masked]], 0.4),
        "a duration among integers": ([[1, 0]] * 9 + [[np.timedelta64("NaT"), 0]], 0.9),
        "truth values": ([[True, False]] * 10, 1.0),
        "truth values and None": ([[True, False]] * 9 + [[None, False]], 0.9),
        "an object": ([*G, Spiteful()], 0.45),
        "an object in a record": ([*G, [Spiteful(), 0.5]], 0.45),
        "nothing": ([*G, []], 0.45),
        "an array of no numbers": ([*G, np.zeros((2, 0, 3))], 0.45),
        "two complex ones of another shape": ([*G[1:], [1j], [1j]], 0.4),
        "a long word": ([*G, ["x" * 10**7, 0.5]], 0.45),
        "depth": ([*G, DEEP], 0.45),
        "itself": ([*G, ITSELF], 0.45),
        "a key of JAX": ([*G, [jax.random.key(0), 0.5]], 0.45),
        "one record, a word": ([["a", 0.5]], 0.0),
        "one of two": ([["a", 0.5], [0.5, 0.5]], 0.25),
        "another shape, one of two": ([[0.5], [0.5, 0.5]], 0.25),
        "half of them": ([["a", 0.5]] * 5 + G[:5], 0.25),
        "nearly all": ([["a", 0.5]] * 9 + G[:1], 0.05),
        "objects, none of them": (np.empty((0, 2), object), 0.0),
    }.values(),
)
def test_what_one_record_is_refuses_nothing(data, value):
    """Not of few records, either: so it is in a block, or where their number is private."""
    mechanism = TangentLaplace(GeodesicBall(Euclidean(2), np.zeros(2), 1.0), 1e7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mechanism.prepare(data).n == len(data)
        if len(data) > 1:
            np.testing.assert_allclose(mechanism.release(data).value[0], value, atol=1e-4)


def test_records_of_several_layouts_are_converted_each_from_its_own():
    """If one layout counted, one record more of another could decide which half of the records is none."""
    center = np.asarray(PlanarShapes(3).project(jnp.array([1.0 + 0.0j, -1.0, 1j])))
    mechanism = TangentLaplace(GeodesicBall(PlanarShapes(3), center, 0.3), 1e7)
    first, second = (mechanism.ball.center + 0.1 * np.array([own, -own, 0.0]) for own in (1.0, 1j))
    for some, others in ((4, 5), (5, 5), (5, 4)):
        mixed = [first.tolist()] * some + [np.stack([second.real, second.imag], axis=1).tolist()] * others
        expected = mechanism.release(np.array([first] * some + [second] * others)).value
        np.testing.assert_allclose(mechanism.release(mixed).value, expected, atol=1e-4)
        mixed[0] = "word"
        expected = mechanism.release(np.array([np.full(3, np.nan)] + [first] * (some - 1) + [second] * others)).value
        np.testing.assert_allclose(mechanism.release(mixed).value, expected, atol=1e-4)


def test_what_is_complex_in_one_of_two_layouts_is_none():
    """Of rigid motions, which are matrices of three rows or of four."""
    rows = np.eye(4)[:3].tolist()
    mechanism = TangentLaplace(GeodesicBall(RigidMotions(1.0), np.eye(3, 4), 0.5), 1e7)
    odd = [[[1j, 0.0, 0.0, 0.0], *rows[1:]]] * 2
    for data in ([np.eye(4).tolist()] * 5 + odd, [rows] * 5 + odd, [np.eye(4).tolist()] * 4 + [rows] + odd):
        np.testing.assert_allclose(mechanism.release(data).value, np.eye(3, 4), atol=1e-4)


LISTED = {
    "circle": (Circle(), lambda n, rng: rng.normal(0.0, 0.3, n) + 2.0 * np.pi),
    "torus": (Torus(2), lambda n, rng: rng.normal(0.0, 0.3, (n, 2)) + 200.0 * np.pi),
    "sphere": (Sphere(2), lambda n, rng: rng.normal(size=(n, 3))),
    "shapes": (PlanarShapes(4), lambda n, rng: rng.normal(size=(n, 4, 2))),
    "rigid motions": (RigidMotions(1.0), lambda n, rng: np.tile(np.eye(4), (n, 1, 1))),
    "axes": (Axes(2), lambda n, rng: rng.normal(size=(n, 3))),
}


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble, np.int16])
@pytest.mark.parametrize("name", LISTED)
def test_a_record_of_longer_or_of_no_numbers_changes_no_other(name, kind):
    """To NumPy it makes all numbers of a list longer; what a domain does to them is done in double precision."""
    manifold, records_of = LISTED[name]
    mechanism = TangentGaussian(GeodesicBall(manifold, manifold.origin, 0.3), 1.0)
    given = records_of(9, np.random.default_rng(0)).astype(kind)
    expected = np.asarray(raw_records(mechanism, given))
    assert np.all(np.isfinite(expected))
    for other in (given[0], None, "x", [], given[0].astype(float).tolist(), [[1.0]]):
        found = np.asarray(raw_records(mechanism, [other, *given[1:]]))
        np.testing.assert_array_equal(found[1:], expected[1:])
    if given.ndim < 3:
        for cell in (given.flat[0], None):
            table = pd.DataFrame(given)
            table = table if cell is not None else table.astype(object)
            table.iloc[0, 0] = cell
            np.testing.assert_array_equal(np.asarray(raw_records(mechanism, table))[1:], expected[1:])


@pytest.mark.parametrize("manifold", [Circle(), Torus(1), Torus(2)], ids=str)
def test_one_angle_is_one_record(manifold):
    """A block can have one, and so can data whose number is private."""
    mechanism = TangentGaussian(GeodesicBall(manifold, manifold.origin, 0.3), 1.0)
    given = np.full((1,) if manifold.dim == 1 else (1, 2), 0.1)
    assert mechanism.prepare(given).n == 1 == mechanism.prepare(given.tolist()).n
    for number in range(3):
        release = mechanism.release(np.repeat(given, number, axis=0), adjacency="add-remove")
        assert release.value.shape == manifold.shape


@pytest.mark.parametrize("bad", [None, "x", [1.0], [[1.0, 1j]] * 5, [["x", 1.0]] * 5, [[10**400, 1.0]] * 5], ids=repr)
def test_one_record_stops_no_conversion(bad):
    template = np.random.default_rng(0).normal(size=(5, 2))
    good = [template + 0.1 * k for k in range(4)]
    for convert in (align_landmarks, impute_landmarks):
        found = convert([*good, bad], template)
        np.testing.assert_array_equal(found[:4], convert(good, template))
        assert not np.all(np.isfinite(found[4]))
    found = landmarks_from_r([*good, bad])
    np.testing.assert_array_equal(found[:4], good)
    rows = [[10.0, 20.0], [30.0, 40.0]]
    row = bad[0] if isinstance(bad, list) and len(bad) == 5 else bad
    found = from_chart(Sphere(2), [*rows, row], "lat,lon")
    np.testing.assert_array_equal(found[:2], from_chart(Sphere(2), rows, "lat,lon"))
    assert np.isnan(found[2]).any()


def test_where_the_shape_is_open_only_an_array_tells_it():
    """Whatever shapes the records have: of lists, one record could decide how many curves there are, and the budget."""
    short, long = np.zeros((2, 16)), np.zeros((2, 17))
    for lists in ([short.tolist()] * 5, [short] * 5, [short] * 3 + [long] * 2, objects([short] * 5), [short, None]):
        with pytest.raises(ValueError, match="give data as one array"):
            CURVES.release(lists)
    assert CURVES.release(np.stack([short] * 5)).value.shape == (2, 16)
    with_template = dataclasses.replace(CURVES, template=short)
    for lists in ([short.tolist()] * 5, [short] * 2 + [long] * 3):
        assert with_template.release(lists).value.shape == (2, 16)


@pytest.mark.parametrize("kind", [None, object, "string"])
def test_a_word_in_a_file_makes_text_of_a_column_and_no_other_record_changes(kind):
    """As pandas reads a column of numbers in which one cell is a word."""
    text = "x,y\n" + "0.5,0.25\n" * 9 + "n/a?,0.25\n"
    table = pd.read_csv(io.StringIO(text))
    assert table["x"].dtype != float
    table = table if kind is None else table.astype(kind)
    mechanism = TangentLaplace(GeodesicBall(Euclidean(2), np.zeros(2), 1.0), 1e6)
    np.testing.assert_allclose(mechanism.release(table).value, [0.45, 0.225], atol=1e-4)
    turns = TangentLaplace(GeodesicBall(Circle(), 0.0, 1.0), 1e6)
    np.testing.assert_allclose(turns.release(table["x"]).value, 0.45, atol=1e-4)
    for yes, no in (("True", "False"), ("TRUE", "FALSE"), ("true", "false")):
        asked = pd.read_csv(io.StringIO("smoker,x\n" + f"{yes},0\n" * 5 + f"{no},0\n" * 4 + "unknown,0\n"))
        np.testing.assert_allclose(mechanism.release(asked).value, [0.5, 0.0], atol=1e-4)
    for whole in (pd.DataFrame({"x": ["a"] * 9, "y": ["1"] * 9}), pd.DataFrame({"x": ["1_0"] * 9, "y": [1.0] * 9})):
        with pytest.raises(ValueError, match="got objects"):
            mechanism.release(whole)


def test_a_complex_number_in_a_table_is_none():
    mechanism = TangentLaplace(GeodesicBall(Euclidean(2), np.zeros(2), 1.0), 1e6)
    for last in ([0.5, 1j], ["a", 1j]):
        value = mechanism.release(pd.DataFrame([*G, last])).value
        np.testing.assert_allclose(value, [0.45, 0.45], atol=1e-4)


def test_a_word_in_a_regression_is_none(tmp_path):
    """As a record of which all is missing."""
    ball = GeodesicBall(Euclidean(2), np.zeros(2), 1.0)
    times, data = np.linspace(0.0, 1.0, 400).tolist(), [[0.5, 0.5]] * 399
    fits = [
        geodesic_regression(own, [*data, last], ball, mu=1e4)
        for own, last in ((times, [None, None]), (times, "a"), (times, [0.5]), (times, [1j, 0.5]))
    ]
    fits.append(geodesic_regression([*times[:-1], "a"], [*data, [0.5, 0.5]], ball, mu=1e4))
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.middle, fits[0].middle, atol=0.02)


def test_lists_of_which_none_is_of_numbers_are_refused():
    complexes = [[[1.0, 1j], [0.0, 1.0]]] * 6
    with pytest.raises(ValueError, match="must be real numbers, got complex"):
        WrappedLaplace(GeodesicBall(SPD(2), np.eye(2), 1.0), 1.0).release(complexes)
    mechanism = WrappedLaplace(GeodesicBall(SPD(2), np.eye(2), 1.0), 1.0)
    point = np.eye(2).tolist()
    for other, words in (("x", "got text"), ([[1.0]], "must have shape"), ([["a", "b"], ["c", "d"]], "got text")):
        with pytest.raises(ValueError, match=words):
            mechanism.release([other] * 8)
        mechanism.release([point] + [other] * 7)
