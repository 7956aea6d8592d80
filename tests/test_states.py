"""States of blocks: the same integers for every split, one release of them, and refusals; records in blocks."""

import dataclasses
import functools
import json
import os
import random

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from meshes import surface_mechanism
from strategies import exhaustive
from typer.testing import CliRunner

from jaxgeodp import (
    SPD,
    Euclidean,
    GeodesicBall,
    Hyperbolic,
    LocatedMechanism,
    PlanarShapes,
    PureDP,
    RecordBlocks,
    Rotations,
    Sphere,
    SpreadMechanism,
    State,
    TangentLaplace,
    WrappedGaussian,
    WrappedLaplace,
)
from jaxgeodp.blocks import rows_at_once
from jaxgeodp.checks import InputError
from jaxgeodp.cli import app
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.inference import FrechetVariance, TangentCovariance
from jaxgeodp.mechanisms.tangent_vectors import MeanOfLogarithms, vectors_of
from jaxgeodp.privacy import Ledger, ZeroConcentratedDP, grid
from jaxgeodp.releases import merged, release_groups
from jaxgeodp.releases.states import digest_of_public
from jaxgeodp.surfaces import FaceMeanMechanism

N = 150
CAP = GeodesicBall(Sphere(2), np.array([0.0, 0.6, 0.8]), 0.4)
MATRICES = GeodesicBall(SPD(3), np.diag([1.0, 2.0, 0.5]), 1.0)
PLANE = GeodesicBall(Euclidean(2), np.array([1e6, 0.0]), 1.0)
UNIT = GeodesicBall(Hyperbolic(2), Hyperbolic(2).origin, 1.0)
SHAPES = GeodesicBall(PlanarShapes(4), np.array([1.0, 1.0j, -1.0, -1.0j]) / 2.0, 0.3)
CURVES = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.05, [1.0, 0.5], [0.6, 0.8])
FACES = FaceMeanMechanism(np.tile(np.cos(np.arange(16))[None, :, None], (2, 1, 3)), 1.0, 0.5)


def points(ball, count=N, seed=0):
    """In the ball and beyond it, and one that is no point."""
    found = np.array(_points(ball.manifold, count, jnp.asarray(ball.center), ball.radius, seed))
    found[3] = np.nan
    return found


@functools.partial(jax.jit, static_argnums=(0, 1))
def _points(manifold, count, center, radius, seed):
    def one(key):
        return manifold.exp(center, 0.7 * radius / jnp.sqrt(manifold.dim) * manifold.random_tangent(key, center))

    return jax.vmap(one)(jax.random.split(jax.random.key(seed), count))


def curves(*shape):
    return np.random.default_rng(0).normal(size=(N, *shape))


CASES = {
    "sphere": (lambda: TangentLaplace(CAP, 1.0), lambda: points(CAP)),
    "plane": (lambda: WrappedGaussian(PLANE, 1.0), lambda: points(PLANE)),
    "covariance": (lambda: SpreadMechanism(CAP, CAP.center, TangentCovariance(), mu=1.0), lambda: points(CAP)),
    "curves": (lambda: CURVES, lambda: curves(2, 16)),
}
MORE = {
    "matrices": (lambda: TangentLaplace(MATRICES, 1.0), lambda: points(MATRICES)),
    "shapes": (lambda: TangentLaplace(SHAPES, 1.0), lambda: points(SHAPES)),
    "line": (lambda: WrappedLaplace(PLANE, 1.0), lambda: points(PLANE)),
    "variance": (lambda: SpreadMechanism(CAP, CAP.center, FrechetVariance(), epsilon=1.0), lambda: points(CAP)),
    "faces": (lambda: FACES, lambda: curves(2, 16, 3)),
    "surfaces": (surface_mechanism, lambda: curves(2, 16, 3)),
}
ALL = CASES | MORE


@pytest.mark.parametrize("name", [*CASES, *exhaustive(*MORE)])
def test_every_split_has_the_same_bits_and_is_released_as_a_whole(name, monkeypatch):
    """1, 7 and 64 blocks, some of them empty, forwards and backwards; with the same noise the same value."""
    mechanism, data = (make() for make in ALL[name])
    whole = mechanism.prepare(data)
    for blocks in (7, 64):
        cuts = np.sort(np.random.default_rng(blocks).integers(0, N, blocks - 1))
        parts = [mechanism.prepare(part) for part in np.split(data, cuts)]
        state, backwards = merged(parts), merged(parts[::-1])
        for own in (state, backwards):
            np.testing.assert_array_equal(own.sums, whole.sums)
            assert own.n == N
        assert state.id == backwards.id != whole.id
    records = []
    for make in (lambda: mechanism.release(data, numerics="grid"), lambda: mechanism.finish(state)):
        # Few integers are drawn one by one, many as words.
        monkeypatch.setattr(random, "_urandom", random.Random(7).randbytes)
        monkeypatch.setattr(os, "urandom", random.Random(7).randbytes)
        records.append(make().record)
        del records[-1]["created"]
    assert records[0] == records[1]


@pytest.mark.parametrize("ball", [CAP, *exhaustive(MATRICES)], ids=lambda ball: str(ball.manifold))
def test_a_record_may_stand_anywhere_in_a_block(ball):
    """Rows of a block of one shape: the first, the last, and those that stand where vector instructions end."""
    data, mechanism = points(ball, 5), TangentLaplace(ball, 1.0)
    alone = [mechanism.prepare(own[None]).sums for own in data]
    for place in (0, 1, 2, 3, 5, 1000, 2046, 2047, 2048):
        for own, sums in zip(data, alone, strict=True):
            padded = np.full((place + 1, *own.shape), np.nan)
            padded[-1] = own
            np.testing.assert_array_equal(mechanism.prepare(padded).sums, sums)


def test_sums_have_no_largest_number():
    """2^90 times as much as a block of 64-bit integers holds."""
    mechanism, data = WrappedGaussian(PLANE, 1.0), points(PLANE)
    state = mechanism.prepare(data)
    many = dataclasses.replace(state, n=state.n * 2**40, sums=state.sums * 2**40)
    value = mechanism.finish(many).value
    np.testing.assert_allclose(value, PLANE.center + state.sums.astype(float) / grid.STEPS / N, atol=1e-6)
    assert max(abs(int(own)) for own in many.sums) > 2**63


def test_a_state_is_saved_for_its_owner_alone_and_finished_once(tmp_path):
    mechanism = TangentLaplace(CAP, 1.0)
    state = mechanism.prepare(points(CAP)[:70]) + mechanism.prepare(points(CAP)[70:])
    state.save(tmp_path / "state.json")
    assert (tmp_path / "state.json").stat().st_mode & 0o777 == 0o600
    again = State.load(tmp_path / "state.json")
    assert again.id == state.id and again.n == N
    np.testing.assert_array_equal(again.sums, state.sums)
    ledger = Ledger(tmp_path / "budget.db", PureDP(3.0))
    release = mechanism.finish(again, ledger)
    with pytest.raises(ValueError, match="was finished before"):
        mechanism.finish(state, ledger)
    with pytest.raises(ValueError, match="was finished before"):
        mechanism.finish(state, Ledger(tmp_path / "budget.db", PureDP(3.0), "another"))
    assert ledger.account().releases == 1 and ledger.account().spent == {"epsilon": 1.0}
    mechanism.finish(mechanism.prepare(points(CAP)), ledger)
    assert ledger.account().spent == {"epsilon": 2.0} and release.expected_error.mean > 0.0
    with pytest.raises(ValueError, match="left of its budget"):
        TangentLaplace(CAP, 1.5).finish(TangentLaplace(CAP, 1.5).prepare(points(CAP)), ledger)


def test_files_that_hold_no_state_are_refused(tmp_path):
    document = TangentLaplace(CAP, 1.0).prepare(points(CAP)).to_json()
    path = tmp_path / "state.json"
    changes = [
        {"title": "x"},
        {"version": 2},
        {"n": -1},
        {"n": 1.5},
        {"shape": [3]},
        {"shape": [-1, -2]},
        {"sums": ["1", "x"]},
        {"unit": "family"},
        {"parts": 3},
    ]
    for change in changes:
        path.write_text(json.dumps(document | change))
        with pytest.raises(ValueError, match="is not a state"):
            State.load(path)
    for text in ("", "[" * 100_000, "\0"):
        path.write_text(text)
        with pytest.raises(ValueError, match="is not a state"):
            State.load(path)


def test_states_that_do_not_belong_together_are_refused():
    mechanism, data = TangentLaplace(CAP, 1.0), points(CAP)
    state = mechanism.prepare(data)
    wider = TangentLaplace(dataclasses.replace(CAP, radius=0.41), 1.0)
    for call, words in (
        (lambda: state + state, "several states contain"),
        (lambda: state + wider.prepare(data), "differ in mechanism"),
        (lambda: state + TangentLaplace(CAP, 2.0).prepare(data), "differ in mechanism"),
        (lambda: state + mechanism.prepare(data, persons=np.arange(N)), "differ in mechanism"),
        (lambda: wider.finish(state), "prepared by this mechanism"),
        (lambda: mechanism.finish("state"), "prepared by this mechanism"),
        (lambda: mechanism.finish(mechanism.prepare(data[:1])), "n >= 2"),
        (lambda: WrappedGaussian(CAP, 1.0).prepare(data), "no sum of integers"),
        (lambda: mechanism.prepare(data[:, :2]), "shape"),
        (lambda: merged([]), "no states to merge"),
        (lambda: merged([state, "state"]), "no states to merge"),
        (lambda: RecordBlocks(data, data.shape), "function that returns"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError):
        state + 1


def test_what_is_prepared_tells_nothing_but_sums():
    """Whatever the records are, a state is made, without a warning, that differs in its sums alone."""
    mechanism, data = TangentLaplace(CAP, 1.0), points(CAP)
    seen = set()
    for record in (np.full(3, np.nan), np.full(3, 1e300), np.zeros(3), np.full(3, -np.inf)):
        other = data.copy()
        other[0] = record
        with np.errstate(all="raise"):
            state = mechanism.prepare(other)
        seen.add((state.mechanism, state.record, state.n, state.unit, state.sums.shape))
    assert len(seen) == 1


def test_persons_are_added_up_block_by_block():
    mechanism, data = TangentLaplace(CAP, 1.0), points(CAP)
    who = np.arange(N) // 3
    whole = mechanism.prepare(data, persons=who)
    parts = [mechanism.prepare(data[who % 2 == own], persons=who[who % 2 == own]) for own in (0, 1)]
    np.testing.assert_array_equal(merged(parts).sums, whole.sums)
    record = mechanism.finish(merged(parts)).record
    assert record["n"] == N // 3 and record["unit"] == "person" and "person" in record["guarantee"]["adjacency"]
    one, none = mechanism.prepare(data[:3], persons=[1, 1, 1]), mechanism.prepare(data[:0], persons=[])
    assert (one + none).n == 1


BLOCKED = {
    "sphere": (lambda: WrappedGaussian(CAP, 1.0), lambda: points(CAP)),
    "search": (lambda: LocatedMechanism(Hyperbolic(2), "wrapped-gaussian", mu=5.0), lambda: points(UNIT, 400)),
}


@pytest.mark.parametrize("name", BLOCKED)
def test_records_in_blocks_are_released_as_an_array_is(name, monkeypatch):
    """Of a Frechet mean in several passes, and of a search: with the same noise the same value."""
    mechanism, data = (make() for make in BLOCKED[name])
    records = []
    for given in (data, RecordBlocks(lambda: np.array_split(data, 5), data.shape)):
        monkeypatch.setattr(grid.secrets, "randbelow", random.Random(7).randrange)
        records.append(mechanism.release(given, numerics="grid").record)
        del records[-1]["created"]
    assert records[0] == records[1]


class Reader:
    """Another number of records, or another shape, in a later pass: what the first one has shown is not all."""

    def __init__(self, *passes):
        self.passes, self.turn = passes, 0

    def __call__(self):
        self.turn += 1
        return self.passes[min(self.turn, len(self.passes)) - 1]


def test_a_pass_has_n_records_whatever_is_read(monkeypatch):
    """More are left out; missing ones, and blocks of another shape, count as the centre."""
    mechanism, data = WrappedGaussian(CAP, 1.0), points(CAP)
    values = []
    for later in ([data], [np.concatenate([data] * 3)], [data, data]):
        monkeypatch.setattr(grid.secrets, "randbelow", random.Random(7).randrange)
        blocks = RecordBlocks(Reader([data], later), data.shape)
        values.append(mechanism.release(blocks, numerics="grid").value)
    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_array_equal(values[0], values[2])
    centre = np.concatenate([data[:100], np.tile(CAP.center, (N - 100, 1))])
    values = []
    for first, later in (
        ([centre], [centre]),
        ([data], [data[:100]]),
        ([data], [data[:100], np.zeros((50, 4), complex)]),
    ):
        monkeypatch.setattr(grid.secrets, "randbelow", random.Random(7).randrange)
        blocks = RecordBlocks(Reader(first, later), data.shape)
        values.append(mechanism.release(blocks, numerics="grid").value)
    np.testing.assert_allclose(values[0], values[1], atol=1e-12)
    np.testing.assert_allclose(values[0], values[2], atol=1e-12)


def test_what_cannot_be_read_is_refused_before_the_charge(tmp_path):
    mechanism, data = WrappedGaussian(CAP, 1.0), points(CAP)
    ledger = Ledger(tmp_path / "budget.db", ZeroConcentratedDP(3.0))
    used_up, begun = iter([data]), iter([data])
    for read, words in (
        (lambda: [data, data], "yields 300 records, not the 150"),
        (lambda: [data[:-1]], "yields 149"),
        (lambda: [np.zeros((N, 4))], "not an array of numbers of shape"),
        (lambda: [np.full((N, 3), "a")], "not an array of numbers of shape"),
        (lambda: [data + 0.0j], "not an array of numbers of shape"),
        (lambda: [1 / 0], "reading has ended with ZeroDivisionError"),
        (lambda: used_up, "yields nothing on a second pass"),
        (lambda: used_up, "yields 0 records"),
        (lambda: map(np.asarray, begun), "yields nothing on a second pass"),
    ):
        blocks = RecordBlocks(read, data.shape)
        with pytest.raises((ValueError, OSError), match=words):
            mechanism.release(blocks, ledger, numerics="grid")
    assert ledger.account().releases == 0
    nobody = RecordBlocks(lambda: iter(()), (0, *data.shape[1:]))  # an empty part of a file
    assert TangentLaplace(CAP, 1.0).prepare(nobody).n == 0
    table = pd.DataFrame(data)  # as readers of files give it, one by one
    mechanism.release(RecordBlocks(lambda: [table[:100], table[100:]], data.shape), ledger, numerics="grid")
    assert ledger.account().releases == 1
    with pytest.raises(ValueError, match="must hold one label for each record"):
        mechanism.release(data, ledger, persons=RecordBlocks(lambda: [np.zeros(N)], (N,)))
    state = TangentLaplace(CAP, 1.0).prepare(data)
    for damage in (2**40, -(2**40) * (np.arange(state.sums.size) == 1).reshape(state.sums.shape)):
        with pytest.raises(ValueError, match="which must be damaged"):
            TangentLaplace(CAP, 1.0).finish(dataclasses.replace(state, sums=state.sums + damage))
    blocks = RecordBlocks(lambda: [data], data.shape)
    with pytest.raises(ValueError, match="numerics='grid', where all count equally; leave them out"):
        TangentLaplace(CAP, 1.0).release(blocks, numerics="grid", weights=np.ones(len(data)))
    with pytest.raises(ValueError, match="RecordBlocks are only for release with numerics='grid' and for prepare"):
        release_groups(TangentLaplace(CAP, 1.0), blocks, np.zeros(len(data)), [0])


@pytest.mark.parametrize(
    "ball",
    [
        MATRICES,
        CAP,
        *exhaustive(SHAPES, GeodesicBall(SPD(5), np.eye(5), 1.0), GeodesicBall(Rotations(), np.eye(3), 0.5)),
    ],
)
def test_a_logarithm_has_the_same_bits_anywhere_in_a_block(ball):
    """Of floating-point numbers, before rounding hides what is lost."""
    rows = rows_at_once(ball.manifold.shape)
    data = np.nan_to_num(points(ball, rows), nan=1.0)
    coordinates = jax.jit(functools.partial(vectors_of, MeanOfLogarithms()))
    whole = np.asarray(coordinates(ball, data))
    for places in (1, 3, 7, rows - 1):
        np.testing.assert_array_equal(
            np.asarray(coordinates(ball, np.roll(data, places, axis=0))), np.roll(whole, places, axis=0)
        )


def test_blocks_that_a_release_cannot_read_are_refused():
    mechanism, data = WrappedGaussian(CAP, 1.0), points(CAP)
    blocks = RecordBlocks(lambda: [data], data.shape)
    for call in (
        lambda: mechanism.release(blocks),
        lambda: mechanism.release(blocks, numerics="grid", persons=np.arange(N)),
        lambda: mechanism.release(blocks, numerics="grid", adjacency="add-remove"),
        lambda: TangentLaplace(CAP, 1.0).prepare(blocks, persons=np.arange(N)),
    ):
        with pytest.raises(ValueError, match="RecordBlocks"):
            call()
    with pytest.raises(ValueError, match="shape"):
        mechanism.release(RecordBlocks(lambda: [data], (N, 4)), numerics="grid")
    with pytest.raises(ValueError, match="dtype must be"):
        RecordBlocks(lambda: [data], (N, 3), int)


def test_files_of_a_pattern_are_one_data_set(tmp_path, monkeypatch):
    """Through the command, in a public ball and in one that is found; and what is refused."""
    monkeypatch.chdir(tmp_path)
    table = points(UNIT, 400)  # as many as in the search above: one set of programs
    for place, part in enumerate(np.array_split(table, 3)):
        pq.write_table(pa.table({f"x{k}": part[:, k] for k in range(3)}), f"part-{place}.parquet")
    np.save("all.npy", table)
    usual = ["--manifold", "hyperbolic", "--numerics", "grid", "--mechanism"]
    values = []
    for data in ("part-*.parquet", "all.npy"):
        monkeypatch.setattr(grid.secrets, "randbelow", random.Random(7).randrange)
        options = ["tangent", "--epsilon", "1", "--center", "origin", "--radius", "1.5", "--out", "out.json"]
        result = CliRunner().invoke(app, ["release", data, *usual, *options, "--overwrite"])
        assert result.exit_code == 0, result.output
        values.append(json.loads((tmp_path / "out.json").read_text())["value"])
    assert values[0] == values[1]
    found = ["wrapped-gaussian", "--mu", "5", "--center", "auto", "--radius", "auto", "--out", "found.json"]
    result = CliRunner().invoke(app, ["release", "part-*.parquet", *usual, *found])
    assert result.exit_code == 0 and len(json.loads((tmp_path / "found.json").read_text())["stages"]) > 2
    pq.write_table(pa.table({"y": [1.0]}), "part-9.parquet")
    for data, more, words in (
        ("part-*.parquet", [], "has other columns"),
        ("nothing-*.parquet", [], "no file matches"),
        ("part-[01].parquet", ["--person", "x0"], "for one file"),
        ("part-[01].parquet", ["--adjacency", "add-remove"], "cannot be combined with --group, --adjacency"),
        ("part-[01].parquet", ["--expect-n", "7"], "267 records"),
        ("part-[01].parquet", ["--numerics", "idealized"], "need --numerics grid"),
        ("all.npy", ["--dask", "local"], "--dask needs several files"),
    ):
        options = ["tangent", "--epsilon", "1", "--center", "origin", "--radius", "1.5", "--out", "o.json", *more]
        result = CliRunner().invoke(app, ["release", data, *usual, *options])
        assert result.exit_code == 2 and words in " ".join(result.output.split()), result.output
        assert not (tmp_path / "o.json").exists()


def test_a_mechanism_that_was_rebuilt_without_checks_prepares_nothing():
    rebuilt = jax.tree.map(lambda leaf: -leaf, TangentLaplace(GeodesicBall(Euclidean(1), [0.0], 1.0), 1.0))
    with pytest.raises(InputError):
        rebuilt.prepare(np.zeros((4, 1)))


def test_what_is_equal_has_one_digest_and_what_is_not_has_another():
    def of(*center, radius=1.0):
        return digest_of_public(GeodesicBall(Euclidean(2), np.array(center), radius))

    @dataclasses.dataclass(frozen=True)
    class Number:
        value: object

    large = [2**53 + 1, np.int64(2**53 + 1), np.uint64(2**63 + 1), np.int64(2**53)]
    one, same, larger, even = (digest_of_public(Number(value)) for value in large)
    assert one == same and len({one, larger, even, digest_of_public(Number(2.0**63))}) == 4
    assert digest_of_public(Number(2)) == digest_of_public(Number(2.0)) == digest_of_public(Number(np.int8(2)))
    assert of(0.0, 1.0) == of(-0.0, 1.0) != of(1e-300, 1.0)
    assert of(0.0, 1.0) != of(0.0, 1.0, radius=2.0)
