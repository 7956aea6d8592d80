"""Programs that dead-lock under jax 0.10 on two cores must finish: run apart, with a time-out."""

import subprocess
import sys

import jax
import pytest
from strategies import exhaustive

PREAMBLE = """
import jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
from jaxgeodp import SPD, GeodesicBall, KNGMechanism, frechet_mean
def records(size, shape, seed):
    manifold, origin = SPD(size), jnp.eye(size)
    keys = jax.random.split(jax.random.key(seed), shape).reshape(-1)
    points = jax.vmap(lambda key: manifold.exp(origin, 0.1 * manifold.random_tangent(key, origin)))(keys)
    return points.reshape(*shape, size, size)
"""
PROGRAMS = {
    "means of 500 data sets of 100 matrices of size 10": """
means = jax.jit(jax.vmap(lambda points: frechet_mean(SPD(10), points)))(records(10, (500, 100), 0))
assert bool(jnp.all(jnp.isfinite(means)))
""",
    "20,000 KNG draws on SPD(3), five times": """
mechanism = KNGMechanism(GeodesicBall(SPD(3), jnp.eye(3), 1.0), 1.0, support_radius=1.2)
for seed in range(5):
    draws = mechanism.simulate(jax.random.key(seed), records(3, (20,), 1), 20_000)
    assert bool(jnp.all(jnp.isfinite(draws)))
""",
}

means, draws = PROGRAMS
# Versions that have been seen to finish; a new one is tried by every run.
KNOWN = jax.__version__.startswith(("0.8.", "0.9.", "0.11."))


@pytest.mark.parametrize("name", exhaustive(means, draws) if KNOWN else [means, *exhaustive(draws)])
def test_program_finishes(name):
    finished = subprocess.run([sys.executable, "-c", PREAMBLE + PROGRAMS[name]], timeout=240, capture_output=True)
    assert finished.returncode == 0, finished.stderr.decode()[-2000:]
