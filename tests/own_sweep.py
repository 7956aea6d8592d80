"""A sweep with everything of one's own, to be run, killed and resumed: ``python tests/own_sweep.py FOLDER [SCALE]``."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
from recipes.scales import Scales

from jaxgeodp import SPD, GeodesicBall, LaplaceMechanism, Sphere, WrappedLaplace, frechet_mean
from jaxgeodp.experiments import PolarData, run_sweep

CAP = GeodesicBall(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.5)
MATRICES = GeodesicBall(SPD(2), np.eye(2), 1.5)
REPLICATES = 20


def numbers(key, n):
    return jnp.exp(jax.random.uniform(key, (n, 1), minval=-1.0, maxval=1.0))


def cells(scale=0.1):
    positive = Scales(1)
    ball = GeodesicBall(positive, positive.origin, 1.0)

    def noisy_mean(key, points):
        return frechet_mean(positive, points) * jnp.exp(scale * jax.random.normal(key, (1,)))

    data = PolarData(CAP)
    return [
        ("sphere", WrappedLaplace(CAP, epsilon=1.0), data, 20),
        ("sphere", WrappedLaplace(CAP, epsilon=1.0), lambda key, n: data.records(key, n), 40),
        ("own space", WrappedLaplace(ball, epsilon=0.5), numbers, 20),
        ("own noise", noisy_mean, numbers, 20, positive),
        ("too few", LaplaceMechanism(MATRICES, epsilon=0.1), PolarData(MATRICES), 3),
    ]


if __name__ == "__main__":
    run_sweep(cells(*map(float, sys.argv[2:])), sys.argv[1], REPLICATES, seed=5)
