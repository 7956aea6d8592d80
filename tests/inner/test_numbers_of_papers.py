"""What the papers' claims are tested with: slopes, neighbours, and noise as printed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgeodp import GeodesicBall, PlanarShapes, Sphere, frechet_mean
from jaxgeodp.experiments import OutlineData
from jaxgeodp.experiments.reproduction.kng_2022 import _slope
from jaxgeodp.experiments.reproduction.laplace_2021 import _moved
from jaxgeodp.experiments.reproduction.run import Estimate
from jaxgeodp.experiments.reproduction.settings import sphere_data
from jaxgeodp.experiments.reproduction.shapes_2022 import _as_printed


def test_the_slope_of_a_power_law():
    points = [(x, Estimate(3.0 * x**-2.0, 0.01 * x**-2.0)) for x in (1.0, 2.0, 5.0)]
    assert _slope(points).mean == pytest.approx(-2.0)
    assert 0 < _slope(points).error < 0.01


def test_neighbours_differ_in_one_record():
    data, n = sphere_data(), 20
    keys = jax.random.split(jax.random.key(0), 5)
    with jax.enable_x64(True):
        moved = np.asarray(_moved(data, keys, n, 33))
        for key, distance in zip(keys, moved, strict=True):
            points = jax.jit(data.records, static_argnums=1)(key, n + 1)
            means = [frechet_mean(Sphere(2), jnp.concatenate([points[: n - 1], points[j : j + 1]])) for j in (n - 1, n)]
            assert float(Sphere(2).dist(*means)) == pytest.approx(distance, rel=1e-9)


def test_landmark_noise_as_printed_has_the_printed_scale():
    manifold = PlanarShapes(5)
    template = jax.jit(OutlineData.template, static_argnums=0)(manifold)
    data = OutlineData(GeodesicBall(manifold, template, 0.19))
    points = jax.jit(lambda key: data.records(key, 40))(jax.random.key(0))
    mean = frechet_mean(manifold, points)
    draws = np.asarray(_as_printed(jax.random.key(1), points, mean, 20_000))
    aligned = np.stack([x * np.exp(1j * np.angle(np.vdot(x, mean))) for x in np.asarray(points)])
    reach = np.abs((aligned - np.asarray(mean)).real).max(axis=0)
    noise = (draws - np.asarray(mean)).real
    np.testing.assert_allclose(np.abs(noise).mean(axis=0), 4 * 5 / 40 * reach, rtol=0.05)
