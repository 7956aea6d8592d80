"""Eigenvalues of many positive definite matrices by Jacobi rotations, against LAPACK."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgeodp.manifolds.spectral as spectral
from jaxgeodp import SPD, frechet_mean
from jaxgeodp.manifolds.jacobi import SIZES, eigen_of_many


def matrices(size, n, spread, seed=0):
    """With log-eigenvalues in (-spread, spread), some of them equal."""
    random = np.random.default_rng(seed)
    logs = random.uniform(-spread, spread, (n, size))
    logs[::3, 1] = logs[::3, 0]
    logs[::5] = logs[::5, :1]  # multiples of the identity
    turns = np.linalg.qr(random.normal(size=(n, size, size)))[0]
    return np.exp(logs), (turns * np.exp(logs)[:, None]) @ turns.swapaxes(1, 2)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("dtype", "spread", "n"), [("float64", 2.0, 40), ("float64", 13.0, 300), ("float32", 1.0, 9)])
def test_values_and_vectors_are_those_of_the_matrices(size, dtype, spread, n):
    expected, records = matrices(size, n, spread)
    values, vectors = map(np.asarray, jax.jit(eigen_of_many)(jnp.asarray(records, dtype)))
    assert values.dtype == vectors.dtype == dtype and vectors.shape == (size, size, n)
    eps = float(np.finfo(dtype).eps)
    scale = expected.max(axis=1)
    assert np.max(np.abs(np.sort(values, axis=0).T - np.sort(expected, axis=1)) / scale[:, None]) < 100 * eps
    gram = np.einsum("ain,bin->nab", vectors, vectors)
    assert np.max(np.abs(gram - np.eye(size))) < (1e-13 if dtype == "float64" else 1e-5)
    again = np.einsum("an,ain,ajn->nij", values, vectors, vectors)
    assert np.max(np.abs(again - records) / scale[:, None, None]) < 200 * eps


def test_a_matrix_that_is_none_changes_no_other():
    _, records = matrices(5, 400, 2.0)
    broken = records.copy()
    broken[3] = np.nan
    broken[301] = -np.eye(5)
    right, found = (jax.jit(eigen_of_many)(jnp.asarray(x)).values for x in (records, broken))
    assert np.isnan(found[:, [3, 301]]).any(axis=0).all()
    others = np.delete(np.arange(400), [3, 301])
    np.testing.assert_allclose(found[:, others], right[:, others], rtol=1e-12)


def test_batches_of_batches_are_the_same():
    _, records = matrices(4, 12, 2.0)
    nested = jax.jit(jax.vmap(eigen_of_many))(jnp.asarray(records.reshape(3, 4, 4, 4))).values
    alone = eigen_of_many(jnp.asarray(records)).values
    np.testing.assert_allclose(np.asarray(nested).transpose(1, 0, 2).reshape(4, 12), alone, rtol=1e-13)


@pytest.mark.parametrize("size", SIZES)
def test_newton_moments_are_those_of_lapack(size, monkeypatch):
    _, records = matrices(size, 30, 1.0)
    records = jnp.asarray(records)
    weights = jnp.asarray(np.random.default_rng(1).dirichlet(np.ones(30)))
    found = jax.jit(lambda x: spectral.newton_moments(x, weights))(records)
    monkeypatch.setattr(spectral, "SIZES", ())
    monkeypatch.setattr(spectral, "_SIDE_BY_SIDE", ())
    expected = jax.jit(lambda x: spectral.newton_moments(x, weights))(records)
    for one, other in zip(found[:3], expected[:3], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert float(found.rate) < 1e-7


@pytest.mark.parametrize("size", [4, 7])
def test_means_of_spread_records_are_exact(size):
    _, records = matrices(size, 20, 3.0)
    manifold = SPD(size)
    mean = frechet_mean(manifold, records)
    total, _ = manifold.log_moments(mean, jnp.asarray(records), jnp.full(20, 1 / 20))
    assert float(manifold.norm(mean, total)) < 1e-12
