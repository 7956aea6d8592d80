"""Laws of means of bounded vectors: what holds for every encoding (`jaxgeodp.releases.encoding`)."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxgeodp import RecordBlocks
from jaxgeodp.domains.near_template import NearTemplate
from jaxgeodp.functional import FunctionalGaussianMechanism, IntervalKernel, PeriodicKernel
from jaxgeodp.privacy import GaussianDP, Ledger, ZeroConcentratedDP, grid
from jaxgeodp.releases.encoding import EncodedSums, Encoding, encoded_law, mean_of_bounded
from jaxgeodp.releases.groups import release_groups
from jaxgeodp.releases.mechanism import Mechanism
from jaxgeodp.surfaces import (
    FaceMeanMechanism,
    JointGaussian,
    PointwiseGaussian,
    SurfaceBasis,
    SurfaceMeanMechanism,
)
from jaxgeodp.testing import check_encoding

ALPHA = 1e-6
ANGLES = np.linspace(0.0, 2.0 * np.pi, 16, endpoint=False)
RING = np.stack([np.cos(ANGLES), np.sin(ANGLES), 0.2 * np.cos(2.0 * ANGLES)], axis=-1)


def surfaces():
    basis = SurfaceBasis.of_curves(np.stack([RING, 0.5 * RING]), 4)
    directions = np.linalg.qr(np.random.default_rng(0).normal(size=(12, 5)))[0] * np.arange(1.0, 6.0)
    return SurfaceMeanMechanism(np.stack([RING, 0.5 * RING]), basis, directions, 0.7, 1.2)


@dataclasses.dataclass(frozen=True, eq=False)
class InUnits(Encoding):
    """Numbers from a public centre, each in its own unit: one's own encoding is this long."""

    center: np.ndarray
    units: np.ndarray
    bound: float

    def deviation(self, record):
        return (record - self.center) / self.units

    def value(self, vectors):
        return self.center + self.units * vectors

    def vector(self, x):
        return self.deviation(x)

    def shape(self, record):
        return record

    def bounds(self, record):
        return self.bound


@dataclasses.dataclass(frozen=True, eq=False)
class MeanInUnits(Mechanism):
    """And one's own mechanism so."""

    encoding: InUnits
    mu: float

    @property
    def guarantee(self):
        return GaussianDP(self.mu)

    @property
    def domain(self):
        return NearTemplate(self.encoding.center, {"name": "measurements"}, {"radius": self.encoding.bound})

    @property
    def sums(self):
        return EncodedSums("MeanInUnits", self.encoding)

    def law(self, n, shape=()):
        return encoded_law(self, self.encoding, self.encoding.center.shape, n)


MECHANISMS = {
    "one's own": MeanInUnits(InUnits(np.array([1e3, 2.0, 0.0]), np.array([100.0, 0.1, 5.0]), 2.0), 1.5),
    "curves": FunctionalGaussianMechanism(PeriodicKernel([0.5, 0.9]), [0.01, 0.1], [1.0, 0.4], [0.6, 0.8], RING.T[:2]),
    "open curves": FunctionalGaussianMechanism(IntervalKernel(0.3, 1.5), 0.05, 0.8, [0.7], np.zeros((1, 16))),
    "face": FaceMeanMechanism(np.stack([RING, 0.5 * RING]), [0.5, 0.4, 0.3], (0.4, 0.5, 0.6)),
    "points": PointwiseGaussian(RING, [0.3, 0.2, 0.1], 1.5),
    "points together": JointGaussian(RING, 0.3, 1.5),
    "surfaces": surfaces(),
}
REPETITIONS = ("open curves",)  # another kernel of the same encoding
every_mechanism = pytest.mark.parametrize(
    "mechanism",
    [
        pytest.param(own, id=name, marks=[pytest.mark.exhaustive] if name in REPETITIONS else [])
        for name, own in MECHANISMS.items()
    ],
)


def records(mechanism, count=6, seed=1):
    """Some within the bounds and some far out; then none at all, and numbers whose squares overflow."""
    template = np.asarray(mechanism.domain.fallback(()))
    rng = np.random.default_rng(seed)
    data = template + rng.normal(size=(count, *template.shape)) * np.geomspace(0.01, 30.0, count).reshape(
        -1, *(1,) * template.ndim
    )
    data[-2].flat[2] = np.nan
    data[-1] = 1e200
    return data


def law_of(mechanism, n):
    return mechanism.law(n, np.shape(mechanism.domain.fallback(())))


@every_mechanism
def test_it_obeys_the_laws_of_encodings(mechanism):
    record = np.shape(mechanism.domain.fallback(()))
    check_encoding(mechanism.encoding, record)
    with jax.enable_x64(True):
        encoding, data = mechanism.encoding, jnp.asarray(records(mechanism))
        lengths = np.linalg.norm(encoding.white(encoding.bounded(data)), axis=-1)
    assert np.max(lengths / encoding.bounds(record)) > 0.2  # and the bound is no wider than it must be


class InRows(InUnits):
    """k vectors (k, m), each with a bound of its own."""

    def bounds(self, record):
        return np.asarray(self.bound)


ROWS = InRows(np.zeros((2, 2)), np.ones((2, 2)), np.array([1000.0, 1.0]))


@pytest.mark.parametrize(
    ("encoding", "record", "words"),
    [
        (InUnits(np.zeros((50, 3)), np.ones((50, 3)), 1.0), (50, 3), r"need bounds of shape \(50,\), got \(\)"),
        (InUnits(np.array(170.0), np.array(10.0), 3.0), (), "a vector is an array"),
        (InRows(np.zeros(3), np.ones(3), np.ones(3)), (3,), r"need bounds of shape \(\), got \(3,\)"),
    ],
)
def test_bounds_are_as_many_as_vectors(encoding, record, words):
    mechanism, data = MeanInUnits(encoding, 1.0), np.zeros((5, *record))
    for call in (
        lambda: mechanism.release(data),
        lambda: mechanism.release(data, numerics="grid"),
        lambda: mechanism.prepare(data),
        lambda: check_encoding(encoding, record),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_each_of_several_vectors_has_its_own_bound():
    """Also where there are as many as they are long."""
    check_encoding(ROWS, (2, 2))
    with jax.enable_x64(True):
        lengths = np.linalg.norm(ROWS.bounded(jnp.array([[[3e3, 4e3], [3.0, 4.0]]])), axis=-1)
    np.testing.assert_allclose(lengths, [[1000.0, 1.0]])
    law = MeanInUnits(ROWS, 1.0).law(10)
    np.testing.assert_allclose(law.scale, [200.0, 0.2])
    with pytest.raises(ValueError, match="2 vectors spend more than its guarantee"):
        assert law.terms


def test_vectors_that_white_makes_longer_are_refused():
    longer = Bent(np.zeros(3), np.ones(3), 1.0)
    with pytest.raises(ValueError, match="Bent must define bounded"):
        MeanInUnits(longer, 1.0).release(np.zeros((5, 3)))


def test_a_face_has_several_budgets():
    assert MECHANISMS["face"].budget is None and "add-remove" not in MECHANISMS["face"].supports
    assert MECHANISMS["points"].budget == GaussianDP(1.5)


class Unbounded(InUnits):
    def bounded(self, data):
        return jax.vmap(self.deviation)(data)


class OfAll(InUnits):
    def bounded(self, data):
        return super().bounded(data - jnp.nanmean(data[:5], axis=0))


class Fewer(InUnits):
    def bounded(self, data):
        return super().bounded(data)[::2]


class Bent(InUnits):
    """Not linear, and longer."""

    def white(self, deviations):
        return deviations * jnp.abs(deviations) / self.bound


class BentAndBounded(Bent):
    def bounded(self, data):
        return super().bounded(data)


class Nowhere(InUnits):
    def value(self, vectors):
        return super().value(vectors) + jnp.log(vectors)


class Folded(InUnits):
    def value(self, vectors):
        return super().value(jnp.abs(vectors))


@pytest.mark.parametrize(
    ("planted", "words"),
    [
        (Unbounded, "is not finite"),
        (OfAll, "depends on other records"),
        (Fewer, "9 records have 5 deviations"),
        (BentAndBounded, "white is not linear"),
        (Nowhere, "of the vector 0 is not finite"),
        (Folded, "not the inverse of value"),
    ],
)
def test_planted_encodings_are_found(planted, words):
    own = MECHANISMS["one's own"].encoding
    with pytest.raises(AssertionError, match=words):
        check_encoding(planted(own.center, own.units, own.bound), (3,))


@dataclasses.dataclass(frozen=True, eq=False)
class Promising(MeanInUnits):
    promised: float = 0.1
    stated: float | None = None

    @property
    def guarantee(self):
        return GaussianDP(self.promised)

    def law(self, n, shape=()):
        return encoded_law(self, self.encoding, self.encoding.center.shape, n, bound=self.stated)


def test_a_law_promises_what_it_spends_about_the_bounds_that_it_has():
    own, data = MECHANISMS["one's own"], np.zeros((5, 3))
    for wrong, words in (
        (Promising(own.encoding, 1.5), "spend more than its guarantee"),
        (Promising(own.encoding, 1.5, 1.5, 0.01), "differ from those of its encoding"),
    ):
        with pytest.raises(ValueError, match=words):
            wrong.release(data)
    assert Promising(own.encoding, 1.5, 1.5, 2.0).release(data).guarantee == GaussianDP(1.5)
    for n in (0, 1):
        with pytest.raises(ValueError, match="n >= 2"):
            own.release(data[:n])


@every_mechanism
def test_the_scale_is_that_of_the_theorem(mechanism):
    law = law_of(mechanism, 9)
    bounds = np.asarray(law.encoding.bounds(law.record))
    mu, scale = (np.asarray(law.encoding.each(number)) for number in (law.mu, law.scale))
    np.testing.assert_allclose(scale, 2.0 * bounds / (9 * mu), rtol=1e-12)
    spent = np.sum(np.broadcast_to(mu, bounds.shape) ** 2)
    assert np.sqrt(spent) == pytest.approx(mechanism.guarantee.mu, rel=1e-12)


@every_mechanism
@pytest.mark.parametrize("planted", [1.0, 1.15])
def test_draws_are_the_mean_and_white_noise(mechanism, planted):
    with jax.enable_x64(True):
        data = jnp.asarray(records(mechanism))
        law = law_of(mechanism, len(data))
        drawn = dataclasses.replace(law, scale=planted * np.asarray(law.scale))
        values = drawn.simulate(jax.random.key(3), data, 3000)
        encoding = law.encoding
        mean = encoding.white(jnp.mean(encoding.bounded(data), axis=0))
        scale = np.asarray(encoding.each(law.scale))
        noise = (jax.vmap(encoding.vector)(values) - mean) / (scale[..., None] if scale.ndim else scale)
        number = stats.kstest(np.ravel(noise)[:40_000], "norm").pvalue
        one, two = values[0], values[1]
        difference = law.log_density(one, data) - law.log_density(two, data)
    assert (number > ALPHA) == (planted == 1.0)
    expected = -0.5 * (np.sum(np.asarray(noise[0]) ** 2) - np.sum(np.asarray(noise[1]) ** 2))
    assert difference == pytest.approx(expected, rel=1e-6)


@every_mechanism
def test_integers_of_blocks_are_those_of_all_and_the_release_says_what_it_is(mechanism, monkeypatch):
    data = records(mechanism)
    parts = [mechanism.prepare(data[:2]), mechanism.prepare(data[2:3]), mechanism.prepare(data[3:])]
    state, whole = parts[2] + parts[0] + parts[1], mechanism.prepare(data)
    assert np.array_equal(state.sums, whole.sums) and state.sums.shape == mechanism.sums.shape(data.shape[1:])
    monkeypatch.setattr(grid, "with_noise", lambda draw, steps, scale: np.asarray(steps, float))
    release = mechanism.finish(state)
    exact = mechanism.release(data, numerics="grid").value
    assert np.array_equal(release.value, exact)
    with jax.enable_x64(True):
        encoding = mechanism.encoding
        mean = np.asarray(encoding.value(encoding.white(jnp.mean(encoding.bounded(jnp.asarray(data)), axis=0))))
    np.testing.assert_allclose(release.value, mean, atol=1e-6)
    assert release.guarantee.rho == pytest.approx(0.5 * mechanism.guarantee.mu**2, rel=1e-6)
    assert release.record["guarantee"]["theorem"].endswith(("Theorem N", "Theorems U and N"))


def test_ones_own_takes_every_option_of_sums(tmp_path):
    """None of which it says a word of."""
    mechanism, ledger = MECHANISMS["one's own"], Ledger(tmp_path / "budget.db", ZeroConcentratedDP(20.0))
    data = mechanism.encoding.center + np.random.default_rng(4).normal(size=(2000, 3)) * mechanism.encoding.units
    persons, labels = np.arange(2000) // 2, np.repeat(["a", "b"], 1000)
    releases = [
        mechanism.release(data, ledger),
        mechanism.release(data, ledger, persons=persons),
        mechanism.release(data, ledger, adjacency="add-remove"),
        mechanism.release(data, numerics="grid", adjacency="add-remove", persons=persons),
        mechanism.release(RecordBlocks(lambda: np.split(data, 4), data.shape), ledger, numerics="grid"),
        *release_groups(mechanism, data, labels, ["a", "b"]).values(),
    ]
    for release in releases:
        assert np.all(np.abs(mechanism.encoding.vector(release.value)) < 0.3), release.record
        assert release.record["mechanism"] == "MeanInUnits" and release.record["ball"]["radius"] == 2.0
    assert ledger.account().releases == 4
    with pytest.raises(ValueError, match="weights"):
        mechanism.release(data, ledger, weights=np.ones(2000))
    with pytest.raises(ValueError, match="delta= is not supported"):
        mechanism.release(data, ledger, delta=1e-6)


@every_mechanism
def test_another_scale_is_not_released_in_integers(mechanism):
    law = law_of(mechanism, 5)
    other = dataclasses.replace(law, scale=0.5 * np.asarray(law.scale))
    with pytest.raises(ValueError, match="needs the scale of its theorem"), jax.enable_x64(True):
        other.grid.noisy(law.record)


@pytest.mark.parametrize("curves", [2, 60])  # a record of 60 is long enough to be added up by itself
def test_the_mean_is_that_of_bounded_records_one_by_one_or_together(curves):
    records = np.random.default_rng(0).normal(size=(7, curves, 20))
    records[2, 1, 3] = np.nan
    encoding = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, np.linspace(0.5, 1.5, curves), 1.0).encoding
    expected = np.mean([np.asarray(encoding.bounded(jnp.asarray(record[None])))[0] for record in records], axis=0)
    assert np.all(np.isfinite(expected))
    program = jax.jit(mean_of_bounded)
    np.testing.assert_allclose(program(encoding, jnp.asarray(records)), expected, rtol=1e-6, atol=1e-7)
    sets = jnp.asarray(np.stack([records, 2 * records]))
    both = jax.vmap(program, (None, 0))(encoding, sets)
    np.testing.assert_allclose(both[0], expected, rtol=1e-6, atol=1e-7)
    assert float(jnp.max(jnp.abs(both[1] - both[0]))) > 1e-3


def test_a_mean_of_many_large_records_is_right_in_single_precision():
    """A plain sum of so many would be off by 1e-5."""
    rows = np.random.default_rng(1).uniform(0.5, 1.0, (20_000, 1, 1024)).astype(np.float32)
    encoding = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 10.0, 1.0).encoding
    found = jax.jit(mean_of_bounded)(encoding, jnp.asarray(rows))
    np.testing.assert_allclose(found, rows.mean(axis=0, dtype=np.float64), rtol=3e-7)
