"""Flat metrics on SPD matrices: the laws of manifolds, closed forms, and mechanisms that are exact in flat space."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from scipy import stats
from strategies import cap, exhaustive, name

from jaxgeodp import (
    SPD,
    GeodesicBall,
    LaplaceMechanism,
    LocatedMechanism,
    LogCholesky,
    LogEuclidean,
    RiemannianGaussian,
    TangentLaplace,
    frechet_mean,
)
from jaxgeodp.manifolds.names import manifold_named
from jaxgeodp.testing import LAWS, check_manifold

BOTH = [LogCholesky(2), *exhaustive(LogCholesky(3), LogEuclidean(3), LogEuclidean(2), LogEuclidean(5), LogCholesky(1))]


def matrices(size, n, seed=0):
    draws = np.random.default_rng(seed).normal(size=(n, size, 3 * size))
    return draws @ draws.swapaxes(1, 2) / (3 * size)


# Both in closed form below; derivatives of flat distances need no second look.
OWN = ("points_belong", "inner_product", "round_trips", "geodesics", "parallel_transport", "volume", "going_home")


@pytest.mark.parametrize("law", OWN)
def test_own_laws(law):
    LAWS[law](LogCholesky(2), "float64")


@pytest.mark.exhaustive
@pytest.mark.parametrize("manifold", [LogCholesky(2), LogEuclidean(2), LogEuclidean(3)], ids=name)
def test_the_laws_of_manifolds(manifold):
    check_manifold(manifold, ("float64",))


@pytest.mark.parametrize("size", [2, *exhaustive(3)])
def test_means_and_distances_have_closed_forms(size):
    data = matrices(size, 9)
    logs = np.array([scipy.linalg.logm(x) for x in data])
    roots = np.linalg.cholesky(data)
    factors = np.array([np.tril(x, -1) + np.diag(np.log(np.diag(x))) for x in roots])
    for manifold, flat in ((LogEuclidean(size), logs), (LogCholesky(size), factors)):
        distance = float(manifold.dist(jnp.asarray(data[0]), jnp.asarray(data[1])))
        assert distance == pytest.approx(np.linalg.norm(flat[0] - flat[1]), rel=1e-10)
        mean = flat.mean(axis=0)
        root = np.tril(mean, -1) + np.diag(np.exp(np.diag(mean)))
        expected = scipy.linalg.expm(mean) if isinstance(manifold, LogEuclidean) else root @ root.T
        np.testing.assert_allclose(frechet_mean(manifold, data), expected, rtol=1e-10)
    commuting = [jnp.diag(jnp.asarray(values)) for values in np.exp(np.random.default_rng(1).normal(size=(2, size)))]
    assert float(LogEuclidean(size).dist(*commuting)) == pytest.approx(float(SPD(size).dist(*commuting)))


@pytest.mark.parametrize("build", [LaplaceMechanism, *exhaustive(RiemannianGaussian)])
@pytest.mark.parametrize("manifold", BOTH, ids=name)
def test_noise_is_that_of_flat_space_wherever_the_centre_lies(manifold, build):
    center = np.asarray(cap(manifold, jnp.asarray(manifold.origin), 3.0, 1, 7)[0])
    ball, n = GeodesicBall(manifold, center, 1.0), 100
    data = cap(manifold, jnp.asarray(center), 0.9, n, 0)
    mean = frechet_mean(manifold, data)
    mechanism = build(ball, 1.0)
    law = {LaplaceMechanism: stats.gamma, RiemannianGaussian: stats.chi}[build](manifold.dim)
    assert mechanism.scale(n) == pytest.approx(0.02, rel=1e-6)
    draws = mechanism.simulate(jax.random.key(0), data, 2000)
    lengths = np.asarray(jax.jit(jax.vmap(lambda x: manifold.dist(mean, x)))(draws)) / mechanism.scale(n)
    assert stats.kstest(lengths, law.cdf).pvalue > 1e-6 > stats.kstest(1.2 * lengths, law.cdf).pvalue


@pytest.mark.parametrize("manifold", BOTH, ids=name)
def test_a_record_names_the_metric(manifold):
    ball = GeodesicBall(manifold, manifold.origin, 1.0)
    record = TangentLaplace(ball, 1.0).release(np.stack([manifold.origin] * 100)).record
    assert record["manifold"]["name"] == type(manifold).__name__


def test_names():
    assert manifold_named("logeuclidean(3)") == LogEuclidean(3) and manifold_named("logcholesky", 2) == LogCholesky(2)
    with pytest.raises(ValueError, match="size"):
        LogCholesky(0)


@pytest.mark.exhaustive
def test_searches():
    data = 7.0 * matrices(2, 800)
    value = LocatedMechanism(LogEuclidean(2), mu=1.0).release(data).value
    assert float(LogEuclidean(2).dist(jnp.asarray(value), frechet_mean(LogEuclidean(2), data))) < 0.1
