"""The public laws of mechanisms hold for the library's own, and reject wrong ones."""

import dataclasses
import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from strategies import exhaustive

from jaxgeodp import (
    SPD,
    AdaptiveMechanism,
    EmpiricalRisk,
    Euclidean,
    EuclideanLaplace,
    FrechetMedian,
    GeodesicBall,
    GibbsMechanism,
    Grassmann,
    Hyperbolic,
    KNGMechanism,
    LandmarkLaplace,
    LaplaceMechanism,
    PlanarShapes,
    PureDP,
    RiemannianGaussian,
    Rotations,
    Shape,
    Sphere,
    TangentGaussian,
    TangentLaplace,
    WrappedGaussian,
    WrappedLaplace,
)
from jaxgeodp.checks import InputError
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.privacy import GaussianDP, Release
from jaxgeodp.testing import MECHANISM_LAWS, check_mechanism

LINE = GeodesicBall(Euclidean(1), [0.5], 2.0)


def ball(manifold, radius):
    return GeodesicBall(manifold, manifold.origin, radius)


# Mechanisms that are right ------------------------------------------------------------------------------


@jax.jit
def mean_of(ball, data):
    return jnp.mean(ball.clip(data), axis=0)


@functools.partial(jax.jit, static_argnums=(0, 4))
def draws_around(law, key, mean, scale, num):
    noise = {"laplace": jax.random.laplace, "normal": jax.random.normal}[law]
    return mean + scale * noise(key, (num, 1))


@dataclasses.dataclass(frozen=True)
class LineMean:
    """The mean of records of a line plus Laplace noise, by public names alone: no class of the library is its base."""

    ball: GeodesicBall = LINE
    epsilon: float = 1.0
    law = "laplace"

    @property
    def guarantee(self):
        return PureDP(self.epsilon)

    def sensitivity(self, n):
        return 2.0 * self.ball.radius / n

    def scale(self, n):
        return self.sensitivity(n) / self.epsilon

    def support(self, n):
        return None

    def mean(self, data):
        return mean_of(self.ball, data)

    def log_density(self, x, data):
        return -jnp.abs(x - self.mean(data))[0] / self.scale(len(data))

    def simulate(self, key, data, num):
        return draws_around(self.law, key, self.mean(data), self.scale(len(data)), num)

    def noise_scale(self, n):
        return self.scale(n)

    def release(self, data, ledger=None):
        data = np.asarray(data)
        if data.dtype.kind != "f" or data.ndim != 2 or data.shape[1] != 1 or len(data) < 2:
            raise InputError("LineMean: data must be numbers of shape (n, 1), n >= 2.")
        self.charge(ledger)
        random = np.random.default_rng()
        noise = random.laplace(size=1) if self.law == "laplace" else random.normal(size=1)
        value = np.asarray(self.mean(data)) + self.noise_scale(len(data)) * noise
        return Release(value, self.record(value, data))

    def charge(self, ledger):
        if ledger is not None:
            ledger.settle(ledger.charge(self.guarantee, "LineMean"), "0" * 64)

    def record(self, value, data):
        n, ball = len(data), {"center": self.ball.center.tolist(), "radius": self.ball.radius}
        sampler, numerics, library = {"name": "numpy"}, {"dtype": "float64", "note": "none"}, {"name": "test"}
        return {
            **{"value": value.tolist(), "guarantee": self.guarantee.record("none"), "mechanism": "LineMean"},
            **{"statistic": "mean", "manifold": {"name": "Euclidean"}, "ball": ball, "n": n, "support": None},
            **{"sensitivity": {"value": self.sensitivity(n)}, "scale": self.scale(n), "sampler": sampler},
            **{"numerics": numerics, "library": library, "created": "now"},
        }


@dataclasses.dataclass(frozen=True)
class LineGaussian(LineMean):
    """Normal noise, mu = epsilon."""

    law = "normal"

    @property
    def guarantee(self):
        return GaussianDP(self.epsilon)

    def log_density(self, x, data):
        return -0.5 * jnp.sum((x - self.mean(data)) ** 2) / self.scale(len(data)) ** 2


class Opaque(LineMean):
    """One that has no simple density."""

    def log_density(self, x, data):
        raise InputError("Opaque: no density.")


SOUND = [
    pytest.param(LineMean(), id="a line, by hand"),
    pytest.param(LineGaussian(), id="a line with normal noise, by hand"),
    pytest.param(Opaque(), id="a line without a density, by hand"),
]
PRINCIPAL = EmpiricalRisk(lambda x, y: -0.5 * jnp.vdot(x, y) ** 2, gradient_bound=0.5, shape=(3,))
SHAPE = Shape([0.0, 0.0, 1.0], [[0.0, 1.0, 0.0], [0.3, 0.0, 0.0]], 0.4, [0.9, 0.5])
FAR = GeodesicBall(Hyperbolic(2), [np.cosh(9.0), 0.6 * np.sinh(9.0), 0.8 * np.sinh(9.0)], 0.5)
MORE = exhaustive(
    LaplaceMechanism(LINE, 1.0),
    LaplaceMechanism(ball(Sphere(2), 0.5), 1.0),
    LaplaceMechanism(ball(SPD(2), 1.0), 1.0),
    LaplaceMechanism(ball(Grassmann(4, 2), 0.3), 2.0),
    KNGMechanism(ball(Hyperbolic(2), 0.8), 0.5),
    KNGMechanism(ball(PlanarShapes(4), 0.3), 1.0),
    KNGMechanism(ball(Rotations(), 0.5), 1.0, calibration="theorem"),
    KNGMechanism(ball(Rotations(), 0.5), 1.0, calibration="paper"),
    KNGMechanism(LINE, 1.0, FrechetMedian()),
    KNGMechanism(ball(Sphere(2), 0.5), 1.0, FrechetMedian()),
    KNGMechanism(ball(Sphere(2), 0.7), 1.0, PRINCIPAL, support_radius=1.0),
    KNGMechanism(ball(Sphere(2), 0.5), 1.0),
    TangentLaplace(ball(SPD(2), 0.5), 1.0),
    TangentLaplace(ball(Sphere(2), 0.5), 1.0),
    WrappedLaplace(FAR, 1.0),
    WrappedGaussian(ball(Sphere(2), 0.5), 1.0),
    WrappedGaussian(ball(SPD(3), 0.5), 1.0),
    RiemannianGaussian(ball(Sphere(2), 0.5), 1.0),
    GibbsMechanism(ball(Sphere(2), 0.5), 1.0),
    GibbsMechanism(ball(SPD(2), 0.5), 1.0),
    EuclideanLaplace(ball(Sphere(2), 0.5), 1.0),
    EuclideanLaplace(ball(Sphere(2), 0.5), 1.0, project=True),
    EuclideanLaplace(ball(SPD(2), 0.5), 1.0),
    LandmarkLaplace(ball(PlanarShapes(4), 0.3), 1.0),
    LandmarkLaplace(ball(PlanarShapes(4), 0.3), 1.0, align=False),
    AdaptiveMechanism(ball(Sphere(2), 0.5), mu=10.0),
    AdaptiveMechanism(ball(SPD(2), 0.5), epsilon=10.0, symmetric=True),
    AdaptiveMechanism(LINE, mu=10.0),
    TangentGaussian(ball(Sphere(2), 0.5), 1.0, SHAPE),
)


def test_laws_hold_where_double_precision_is_off():
    """As it is by default: programs of both precisions meet."""
    with jax.enable_x64(False):
        for law in ("clipped_records", "two_outcomes"):
            MECHANISM_LAWS[law](LaplaceMechanism(ball(Euclidean(1), 1.0), 1.0))


@pytest.mark.parametrize("mechanism", [*SOUND, *MORE], ids=lambda m: f"{type(m).__name__} on {m.ball.manifold}")
def test_mechanisms_obey_the_laws(mechanism):
    check_mechanism(mechanism)


def test_a_mechanism_that_refuses_few_records_is_tried_with_more():
    class Careful(LineMean):
        def scale(self, n):
            if n < 100:
                raise InputError("Careful: needs 100 records.")
            return super().scale(n)

    MECHANISM_LAWS["charges"](Careful())

    class Never(LineMean):
        def scale(self, n):
            raise InputError("Never: needs more records.")

    with pytest.raises(ValueError, match="Never: needs more"):
        check_mechanism(Never())
    with pytest.raises(ValueError, match="needs a mechanism with a public ball"):
        check_mechanism(FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, norm_bound=1.0, mu=1.0))


# Planted mutants ----------------------------------------------------------------------------------------


class HalfTheScale(LineMean):
    def scale(self, n):
        return 0.5 * super().scale(n)


class ScaleFallsTooSlowly(LineMean):
    def scale(self, n):
        return super().scale(4) * (4 / n) ** 0.5


class SensitivityTooSmall(LineMean):
    def sensitivity(self, n):
        return 0.9 * super().sensitivity(n)


class SensitivityFallsTooFast(LineMean):
    def sensitivity(self, n):
        return super().sensitivity(n) * (5 / n) ** 0.6


class ScaleIsAnArray(LineMean):
    def scale(self, n):
        return jnp.asarray(super().scale(n))


class SupportWithoutTheBall(LineMean):
    def support(self, n):
        return dataclasses.replace(self.ball, radius=0.5 * self.ball.radius)


class WrongDraws(LineMean):
    def simulate(self, key, data, num):
        mean = self.mean(data)
        return mean + 1.1 * (super().simulate(key, data, num) - mean)


class DrawsOfAnotherLaw(LineMean):
    """Normal noise of the same mean size."""

    def simulate(self, key, data, num):
        return draws_around("normal", key, self.mean(data), self.scale(len(data)) * np.sqrt(np.pi / 2), num)


class DrawsInTheWrongPlace(LineMean):
    def simulate(self, key, data, num):
        return super().simulate(key, data, num) + 0.1 * self.scale(len(data))


class RepeatedDraws(LineMean):
    def simulate(self, key, data, num):
        return super().simulate(jax.random.key(0), data, num)


class DrawsOfANumpySeed(LineMean):
    def simulate(self, key, data, num):
        noise = np.random.default_rng().laplace(size=(num, 1))
        return self.mean(data) + self.scale(len(data)) * jnp.asarray(noise)


class DrawsWithoutAnAxis(LineMean):
    def simulate(self, key, data, num):
        return super().simulate(key, data, num)[:, 0]


class DensityWithoutSupport(LineMean):
    def support(self, n):
        return dataclasses.replace(self.ball, radius=1e3)


class NoFiniteDensity(LineMean):
    def log_density(self, x, data):
        return jnp.where(self.ball.contains(x), super().log_density(x, data), -jnp.inf)


class WrongDensity(LineMean):
    """A quarter of the noise is in the tails."""

    def log_density(self, x, data):
        return 0.9 * super().log_density(x, data)


class DensityOfRawRecords(LineMean):
    def log_density(self, x, data):
        return -jnp.abs(x - jnp.mean(jnp.nan_to_num(data), axis=0))[0] / self.scale(len(data))


class WeighsTheLast(LineMean):
    """The last record counts twice, and there is noise enough for that: the law of a list, not of a set."""

    def mean(self, data):
        return mean_of(self.ball, jnp.concatenate([data, data[-1:]]))

    def sensitivity(self, n):
        return 2.0 * super().sensitivity(n)


class DrawsOfRawRecords(Opaque):
    def simulate(self, key, data, num):
        mean = jnp.mean(jnp.nan_to_num(data), axis=0)
        return draws_around(self.law, key, mean, self.scale(len(data)), num)


class NormalNoiseWithHalfTheScale(LineGaussian):
    def scale(self, n):
        return 0.5 * super().scale(n)


class OpaqueWithAThirdOfTheScale(Opaque):
    def scale(self, n):
        return super().scale(n) / 3.0


class RaisesOnNaN(LineMean):
    def release(self, data, ledger=None):
        result = super().release(data, ledger)
        if np.any(np.isnan(np.asarray(data, float))):
            raise FloatingPointError("a record is NaN")
        return result


class WarnsOfLargeRecords(LineMean):
    def release(self, data, ledger=None):
        result = super().release(data, ledger)
        if np.any(np.abs(data) > 1e6):
            warnings.warn("a record was clipped", stacklevel=1)
        return result


class CountsWhatWasClipped(LineMean):
    def record(self, value, data):
        outside = int(np.sum(~(np.abs(data - self.ball.center) <= self.ball.radius)))
        return super().record(value, data) | {"sampler": {"clipped": outside}}


class ReleasesNaN(LineMean):
    def mean(self, data):
        return jnp.mean(jnp.clip(data, -1.5, 2.5), axis=0)

    def record(self, value, data):
        return super().record(np.nan_to_num(value), data)


class RecordOfTheMean(LineMean):
    def record(self, value, data):
        return super().record(value, data) | {"library": {"mean": float(np.mean(data))}}


class RecordWithoutNumerics(LineMean):
    def record(self, value, data):
        return {key: entry for key, entry in super().record(value, data).items() if key != "numerics"}


class RecordOfAnotherGuarantee(LineMean):
    def record(self, value, data):
        return super().record(value, data) | {"guarantee": PureDP(0.5 * self.epsilon).record("none")}


class ChargesBeforeItLooks(LineMean):
    def release(self, data, ledger=None):
        self.charge(ledger)
        return super().release(data)


class ChargesHalf(LineMean):
    def charge(self, ledger):
        if ledger is not None:
            ledger.settle(ledger.charge(PureDP(0.5 * self.epsilon), "LineMean"), "0" * 64)


class NeverCharges(LineMean):
    def charge(self, ledger):
        pass


class ReleasesWithHalfTheNoise(LineMean):
    def noise_scale(self, n):
        return 0.5 * self.scale(n)


MUTANTS = {
    ScaleFallsTooSlowly: {"public_numbers"},
    SensitivityFallsTooFast: {"public_numbers"},
    ScaleIsAnArray: {"public_numbers", "release_record"},
    SupportWithoutTheBall: {"public_numbers", "support_of_the_density"},
    HalfTheScale: {"privacy_loss"},
    SensitivityTooSmall: {"privacy_loss"},
    NormalNoiseWithHalfTheScale: {"privacy_loss"},
    OpaqueWithAThirdOfTheScale: {"privacy_loss"},
    WrongDraws: {"draws_follow_the_density"},
    DrawsOfAnotherLaw: {"draws_follow_the_density"},
    DrawsInTheWrongPlace: {"draws_follow_the_density", "privacy_loss"},
    WrongDensity: {"draws_follow_the_density"},
    RepeatedDraws: {"reproducible_draws"},
    DrawsOfANumpySeed: {"reproducible_draws"},
    DensityWithoutSupport: {"support_of_the_density"},
    NoFiniteDensity: {"support_of_the_density", "privacy_loss"},
    DensityOfRawRecords: {"clipped_records"},
    WeighsTheLast: {"order_of_records"},
    DrawsOfRawRecords: {"clipped_records"},
    RaisesOnNaN: {"two_outcomes"},
    WarnsOfLargeRecords: {"two_outcomes"},
    ReleasesNaN: {"two_outcomes", "clipped_records"},
    CountsWhatWasClipped: {"two_outcomes"},
    RecordOfTheMean: {"release_record", "two_outcomes"},
    RecordWithoutNumerics: {"release_record"},
    RecordOfAnotherGuarantee: {"release_record"},
    ChargesBeforeItLooks: {"charges"},
    ChargesHalf: {"charges"},
    NeverCharges: {"charges"},
    ReleasesWithHalfTheNoise: {"releases_follow_simulation"},
}


def broken_laws(mutant, names):
    broken = set()
    for name in names:
        try:
            MECHANISM_LAWS[name](mutant)
        except AssertionError:
            broken.add(name)
    return broken


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_mutants_break_their_laws(mutant):
    assert broken_laws(mutant(), MUTANTS[mutant]) == MUTANTS[mutant]


@pytest.mark.exhaustive
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_mutants_break_no_other_law(mutant):
    assert broken_laws(mutant(), MECHANISM_LAWS) == MUTANTS[mutant]


def test_the_broken_law_is_named():
    with pytest.raises(
        AssertionError, match=r"WithoutAnAxis breaks the law 'reproducible_draws': simulate gives the sh"
    ):
        check_mechanism(DrawsWithoutAnAxis())


def test_every_law_has_a_mutant_that_breaks_no_other():
    alone = {name for laws in MUTANTS.values() if len(laws) == 1 for name in laws}
    assert alone == set(MECHANISM_LAWS)
