"""Correlation matrices: a flat space by what is off the diagonal of the logarithm."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from scipy import stats
from strategies import cap, exhaustive
from typer.testing import CliRunner

from jaxgeodp import (
    Correlations,
    GeodesicBall,
    KNGMechanism,
    LaplaceMechanism,
    MetricLaplace,
    Release,
    TangentLaplace,
    datasets,
    frechet_mean,
)
from jaxgeodp.cli.app import app
from jaxgeodp.io import read
from jaxgeodp.manifolds.correlations import diagonal_of_log
from jaxgeodp.manifolds.names import manifold_named
from jaxgeodp.testing import LAWS, check_manifold

SIZES = [2, 3, *exhaustive(5, 10)]


def off(matrix):
    return matrix - np.diag(np.diag(matrix))


def by_fixed_points(flat):
    """The correlation matrix of a symmetric matrix with zeros on its diagonal, by the logarithms alone."""
    diagonal = np.zeros(len(flat))
    for _ in range(2000):
        change = np.log(np.diag(scipy.linalg.expm(flat + np.diag(diagonal))))
        diagonal -= change
        if np.max(np.abs(change)) < 1e-14:
            break
    return scipy.linalg.expm(flat + np.diag(diagonal)), diagonal


def flats(size, n, length, seed=0):
    found = np.random.default_rng(seed).normal(size=(n, size, size))
    found = np.array([off(x + x.T) for x in found])
    return length * found / np.linalg.norm(found, axis=(1, 2), keepdims=True)


def of_time_points(size, n, points=40, seed=0):
    """Correlations of so many time points."""
    draws = np.random.default_rng(seed).normal(size=(n, points, size)) + np.linspace(0, 1, points)[None, :, None]
    return np.array([np.corrcoef(x.T) for x in draws])


@pytest.mark.parametrize("law", ["inner_product", "round_trips", "volume"])
def test_own_laws(law):
    LAWS[law](Correlations(2), "float64")


@pytest.mark.exhaustive
@pytest.mark.parametrize("size", [2, 3, 5])
def test_the_laws_of_manifolds(size):
    check_manifold(Correlations(size), ("float64",))


def test_two_variables_are_fishers_z():
    space, values = Correlations(2), np.array([0.95, -0.3, 0.2])
    data = np.array([[[1.0, r], [r, 1.0]] for r in values])
    mean = np.asarray(frechet_mean(space, data))
    assert mean[0, 1] == pytest.approx(math.tanh(np.arctanh(values).mean()), abs=1e-14)
    expected = math.sqrt(2.0) * (math.atanh(0.95) + math.atanh(0.3))
    assert float(space.dist(data[0], data[1])) == pytest.approx(expected)


@pytest.mark.parametrize("size", SIZES)
def test_means_are_those_of_independent_code(size):
    data = of_time_points(size, 12)
    logs = np.array([off(scipy.linalg.logm(x)) for x in data])
    mean = np.asarray(frechet_mean(Correlations(size), data))
    np.testing.assert_allclose(mean, by_fixed_points(logs.mean(axis=0))[0], atol=1e-12)
    assert np.all(np.diag(mean) == 1.0) and np.linalg.eigvalsh(mean)[0] > 0
    signs = np.diag((-1.0) ** np.arange(size))[np.random.default_rng(1).permutation(size)]
    turned = np.asarray(frechet_mean(Correlations(size), signs @ data @ signs.T))
    np.testing.assert_allclose(turned, signs @ mean @ signs.T, atol=1e-12)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("length", [0.5, 4.0, 10.0])
def test_the_diagonal_is_found(size, length):
    for flat in flats(size, 5, length):
        found = np.asarray(diagonal_of_log(jnp.asarray(flat)))
        residual = np.log(np.diag(scipy.linalg.expm(flat + np.diag(found))))
        assert np.max(np.abs(residual)) < 1e-10 and np.all(found <= 0.0)
        # What `coordinate_growth` relies on: docs/mathematics.md, section 24.
        assert np.all(-found <= math.sqrt(size - 1) * np.linalg.norm(flat, axis=1) + 1e-12)
        if length < 10.0:
            np.testing.assert_allclose(found, by_fixed_points(flat)[1], atol=1e-9)


def test_far_away_values_are_correlation_matrices_all_the_same():
    space = Correlations(4)
    for flat in flats(4, 5, 60.0):
        value = np.asarray(space.from_flat(jnp.asarray(flat)))
        assert np.all(np.isfinite(value)) and np.all(np.diag(value) == 1.0) and np.max(np.abs(value)) <= 1.0 + 1e-9


@pytest.mark.parametrize("size", [3, *exhaustive(5)])
def test_conditions_grow_no_faster_than_is_stated(size):
    """Ascent from random starts: never above the bound, and above half of it."""
    space, rate = Correlations(size), 0.02
    basis = jnp.asarray(space.flat_basis())

    @jax.jit
    def log_condition(z):
        flat = 3.0 * jnp.tensordot(z / jnp.linalg.norm(z), basis, axes=1)
        values = jnp.linalg.eigvalsh(flat + jnp.diag(diagonal_of_log(flat)))
        return (values[-1] - values[0]) / 3.0

    slope, largest = jax.jit(jax.grad(log_condition)), 0.0
    for seed in range(3):
        z = np.random.default_rng(seed).normal(size=space.dim)
        for _ in range(150):
            z = z / np.linalg.norm(z) + rate * np.asarray(slope(z))
        largest = max(largest, float(log_condition(z)))
    assert 0.5 < largest / (2.0 * space.coordinate_growth) < 1.0


@pytest.mark.parametrize("order", [1, *exhaustive(2)])
def test_derivatives_match_finite_differences(order):
    space, step = Correlations(3), 1e-5
    data = jnp.asarray(of_time_points(3, 6))
    rows = jnp.asarray(flats(3, 1, 1.0)[0])

    def value(t):
        moved = jax.vmap(lambda x: space.exp(x, t * rows * 0.3))(data[:3])
        return frechet_mean(space, jnp.concatenate([moved, data[3:]]))[0, 1] + space.squared_dist(moved[0], data[4])

    for _ in range(order - 1):
        value = jax.grad(value)
    value, slope = jax.jit(value), jax.jit(jax.grad(value))
    for t in (0.0, 0.4):
        assert float(slope(t)) == pytest.approx(float(value(t + step) - value(t - step)) / (2 * step), rel=1e-6)


@pytest.mark.parametrize("kind", ["the identity", "an uncorrelated variable"])
def test_derivatives_are_finite_at_special_means(kind):
    space, step = Correlations(3), 1e-5
    base = np.eye(3)
    if kind != "the identity":
        base[0, 1] = base[1, 0] = 0.5
    other = of_time_points(3, 1)[0]

    def value(t):
        moved = (1.0 - t) * base + t * other
        return frechet_mean(space, jnp.stack([moved, jnp.asarray(base)]))[0, 2] + space.dist(moved, other)

    value, slope = jax.jit(value), jax.jit(jax.grad(value))
    assert float(slope(0.0)) == pytest.approx(float(value(step) - value(-step)) / (2 * step), rel=1e-6)
    for jacobian in (jax.jacfwd(lambda v: space.exp(base, v))(np.zeros((3, 3))), jax.jacfwd(space.log)(base, other)):
        assert np.all(np.isfinite(jacobian))


def test_what_is_no_correlation_matrix_is_no_point():
    space = Correlations(3)
    right = of_time_points(3, 1)[0]
    few = np.corrcoef(np.random.default_rng(0).normal(size=(3, 2)))  # two time points: rank 1
    for record in (
        2.0 * right,
        right + np.diag([0.0, 0.0, 1e-3]),
        few,
        -right,
        np.full((3, 3), np.nan),
        np.ones((3, 3)),
    ):
        assert not bool(space.admissible(jnp.asarray(record)))
    assert bool(space.admissible(jnp.asarray(right.round(4) + np.diag(np.full(3, 1e-8)))))
    with pytest.raises(ValueError, match="size"):
        Correlations(1)
    assert manifold_named("correlations(4)") == Correlations(4) and Correlations(4).dim == 6


def test_noise_is_that_of_flat_space():
    space, n = Correlations(3), 100
    center = np.asarray(cap(space, jnp.asarray(space.origin), 1.0, 1, 7)[0])
    ball = GeodesicBall(space, center, 1.0)
    data = cap(space, jnp.asarray(center), 0.9, n, 0)
    mechanism = LaplaceMechanism(ball, 1.0)
    assert mechanism.scale(n) == pytest.approx(0.02, rel=1e-6)
    mean, draws = frechet_mean(space, data), mechanism.simulate(jax.random.key(0), data, 2000)
    lengths = np.asarray(jax.jit(jax.vmap(lambda x: space.dist(mean, x)))(draws)) / 0.02
    law = stats.gamma(space.dim)
    assert stats.kstest(lengths, law.cdf).pvalue > 1e-6 > stats.kstest(1.2 * lengths, law.cdf).pvalue


@pytest.mark.exhaustive
def test_gradients_release_too():
    data = of_time_points(3, 100)
    ball = GeodesicBall(Correlations(3), np.eye(3), 1.0)
    release = KNGMechanism(ball, 2.0).release(data)
    assert float(ball.manifold.dist(release.as_array(), frechet_mean(ball.manifold, ball.clip(data)))) < 0.5


def test_what_needs_a_bounded_space_is_refused():
    with pytest.raises(ValueError, match="MetricLaplace"):
        MetricLaplace(Correlations(3), 1.0)


# Files --------------------------------------------------------------------------------------------------


def test_rows_hold_what_is_off_the_diagonal(tmp_path):
    data = of_time_points(4, 5)
    rows, columns = np.tril_indices(4, -1)
    np.savetxt(tmp_path / "lower.csv", data[:, rows, columns], delimiter=",")
    rows, columns = np.triu_indices(4, 1)
    np.savetxt(tmp_path / "upper.csv", data[:, rows, columns], delimiter=",")
    np.testing.assert_allclose(read(tmp_path / "lower.csv", "correlations"), data, atol=1e-15)
    np.testing.assert_allclose(read(tmp_path / "upper.csv", Correlations(4), triangle="upper"), data, atol=1e-15)
    scales = np.random.default_rng(0).uniform(0.1, 9.0, (5, 4))
    covariances = data * scales[:, :, None] * scales[:, None, :]
    np.save(tmp_path / "covariances.npy", covariances)
    found = read(tmp_path / "covariances.npy", "correlations", chart="covariance")
    np.testing.assert_allclose(found, data, rtol=1e-14, atol=1e-15)
    rows, columns = np.triu_indices(4)
    np.savetxt(tmp_path / "all.csv", covariances[:, rows, columns], delimiter=",")
    found = read(tmp_path / "all.csv", "correlations", chart="covariance", triangle="upper")
    np.testing.assert_allclose(found, data, rtol=1e-12, atol=1e-15)


def test_covariances_of_images_on_the_command_line(tmp_path, monkeypatch):
    """Region covariances of handwritten digits, scaled to correlations, record by record."""
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    np.save("covariances.npy", np.asarray(datasets.digit_covariances(3)))
    said = run(app, ["check", "covariances.npy", "--manifold", "correlations"])
    assert said.exit_code == 0 and "--as covariance" in " ".join(said.output.split())
    space = ["--manifold", "correlations", "--as", "covariance"]
    said = run(app, ["check", "covariances.npy", *space, "--overwrite"])
    assert said.exit_code == 0, said.output
    records = read("covariances.npy", "correlations", chart="covariance")
    size = records.shape[1]
    np.save("center.npy", np.eye(size))
    given = ["--center", "center.npy", "--radius", "3", "--epsilon", "500", "--mechanism", "laplace"]
    said = run(app, ["release", "covariances.npy", *space, *given, "--out", "mean.json", "--plot", "mean.png"])
    assert said.exit_code == 0, said.output
    ball = GeodesicBall(Correlations(size), np.eye(size), 3.0)
    mean = frechet_mean(ball.manifold, ball.clip(records))
    assert float(ball.manifold.dist(Release.load("mean.json").as_array(), mean)) < 0.02
    assert (tmp_path / "mean.png").stat().st_size > 3_000


def test_a_record_names_the_space():
    ball = GeodesicBall(Correlations(2), np.eye(2), 1.0)
    record = TangentLaplace(ball, 1.0).release([np.eye(2)] * 50).record
    assert record["manifold"] == {"name": "Correlations", "size": 2}
