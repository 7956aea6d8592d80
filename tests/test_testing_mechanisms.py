"""The public laws of mechanisms hold for the library's own, and reject wrong ones."""

import dataclasses
import functools
import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from strategies import exhaustive

from jaxgeodp import (
    SPD,
    EmpiricalRisk,
    Euclidean,
    EuclideanLaplace,
    FrechetMedian,
    GeodesicBall,
    Grassmann,
    Hyperbolic,
    KNGMechanism,
    LandmarkLaplace,
    LaplaceMechanism,
    PlanarShapes,
    PureDP,
    RiemannianGaussian,
    Rotations,
    Sphere,
    TangentLaplace,
    WrappedGaussian,
    WrappedLaplace,
)
from jaxgeodp.checks import InputError
from jaxgeodp.privacy import GaussianDP, Release
from jaxgeodp.testing import MECHANISM_LAWS, check_mechanism

LINE = GeodesicBall(Euclidean(1), [0.5], 2.0)
QUICK = "public_numbers", "reproducible_draws", "clipped_records", "two_outcomes"


def ball(manifold, radius):
    return GeodesicBall(manifold, manifold.origin, radius)


# Mechanisms that are right ------------------------------------------------------------------------------


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
        return jnp.mean(self.ball.clip(data), axis=0)

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
    pytest.param(LaplaceMechanism(LINE, 1.0), id="Laplace on a line"),
    pytest.param(KNGMechanism(ball(Sphere(2), 0.5), 1.0), id="KNG on a sphere"),
]
PRINCIPAL = EmpiricalRisk(lambda x, y: -0.5 * jnp.vdot(x, y) ** 2, gradient_bound=0.5, shape=(3,))
FAR = GeodesicBall(Hyperbolic(2), [np.cosh(9.0), 0.6 * np.sinh(9.0), 0.8 * np.sinh(9.0)], 0.5)
MORE = exhaustive(
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
    TangentLaplace(ball(Sphere(2), 0.5), 1.0),
    TangentLaplace(ball(SPD(2), 0.5), 1.0),
    WrappedLaplace(FAR, 1.0),
    WrappedGaussian(ball(Sphere(2), 0.5), 1.0),
    WrappedGaussian(ball(SPD(3), 0.5), 1.0),
    RiemannianGaussian(ball(Sphere(2), 0.5), 1.0),
    EuclideanLaplace(ball(Sphere(2), 0.5), 1.0),
    EuclideanLaplace(ball(Sphere(2), 0.5), 1.0, project=True),
    EuclideanLaplace(ball(SPD(2), 0.5), 1.0),
    LandmarkLaplace(ball(PlanarShapes(4), 0.3), 1.0),
    LandmarkLaplace(ball(PlanarShapes(4), 0.3), 1.0, align=False),
)


@pytest.mark.parametrize("mechanism", [*SOUND, *MORE], ids=lambda m: f"{type(m).__name__} on {m.ball.manifold}")
def test_mechanisms_obey_the_laws(mechanism):
    check_mechanism(mechanism)
