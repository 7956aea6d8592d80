"""NumPyro's gradient-based samplers on manifolds: the map, its volume, and the law that NUTS draws from."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro.distributions.transforms import biject_to
from numpyro.infer import MCMC, NUTS, init_to_value
from scipy import stats
from strategies import exhaustive, name

from jaxgeodp import SPD, Euclidean, Hyperbolic, Product, Rotations, Sphere
from jaxgeodp.samplers import ManifoldLaplace, WrappedNormal
from jaxgeodp.samplers.tangent_coordinates import OnManifold, TangentCoordinates

SPACES = [Sphere(2), *exhaustive(SPD(2), Hyperbolic(2), Rotations(), SPD(3), Product(Sphere(2), Euclidean(1)))]


@pytest.mark.parametrize("space", SPACES, ids=name)
def test_coordinates_go_there_and_back(space):
    base = space.exp(jnp.asarray(space.origin), 0.3 * space.frame(jnp.asarray(space.origin))[0])
    transform = biject_to(OnManifold(space, base))
    z = 0.5 * jax.random.normal(jax.random.key(0), (7, space.dim))
    points = transform(z)
    assert points.shape == (7, *space.shape) == transform.forward_shape(z.shape)
    assert transform.codomain(points).all() and transform.inverse_shape(points.shape) == z.shape
    np.testing.assert_allclose(transform.inv(points), z, atol=1e-9)

    def near(z, z0):
        """Coordinates of the point of z about that of z0."""
        x0 = transform(z0)
        return space.coordinates(x0, space.log(x0, transform(z)), space.frame(x0))

    exact = [np.linalg.slogdet(np.asarray(jax.jacfwd(near)(own, own)))[1] for own in z]
    np.testing.assert_allclose(transform.log_abs_det_jacobian(z, points), exact, atol=1e-6)


def nuts(law, num=4500):
    mcmc = MCMC(NUTS(lambda: numpyro.sample("x", law)), num_warmup=300, num_samples=num, thinning=3, progress_bar=False)
    mcmc.run(jax.random.key(0))
    return mcmc.get_samples()["x"]


@pytest.mark.parametrize("space", [Sphere(2), *exhaustive(SPD(2), Rotations())], ids=name)
def test_nuts_draws_from_the_law(space, monkeypatch):
    """Distances from the centre, against exact draws; without the volume of the map they are another law's."""
    mean = jnp.asarray(space.origin)
    law = ManifoldLaplace(space, mean, 0.8)
    lengths = jax.vmap(lambda x: space.dist(mean, x))
    exact = np.asarray(lengths(law.sample(jax.random.key(1), (20_000,))))
    kept = exact[np.isfinite(exact)]  # one in 20,000 has a condition above 1e16 at this scale
    assert len(kept) >= 19_995
    exact = kept
    assert stats.ks_2samp(np.asarray(lengths(nuts(law))), exact).pvalue > 1e-6
    monkeypatch.setattr(TangentCoordinates, "log_abs_det_jacobian", lambda self, x, y, intermediates=None: 0.0)
    assert stats.ks_2samp(np.asarray(lengths(nuts(law))), exact).pvalue < 1e-6


@pytest.mark.parametrize("space", [Euclidean(2), *exhaustive(Hyperbolic(2), SPD(2), Sphere(2))], ids=name)
def test_a_site_about_another_site_comes_back_about_it(space, monkeypatch):
    """Lengths about the first site, against exact draws; NumPyro maps them about one place unless it is told not to."""
    origin, variance = jnp.asarray(space.origin), 0.1**2
    start = init_to_value(values={"middle": origin, "near": origin})

    def model():
        middle = numpyro.sample("middle", WrappedNormal(space, origin, 0.3**2 * jnp.eye(space.dim)))
        numpyro.sample("near", WrappedNormal(space, middle, variance * jnp.eye(space.dim)))

    def squares():
        mcmc = MCMC(NUTS(model, init_strategy=start), num_warmup=300, num_samples=1000, progress_bar=False)
        mcmc.run(jax.random.key(0))
        draws = mcmc.get_samples()
        return np.asarray(jax.vmap(space.dist)(draws["middle"], draws["near"])) ** 2 / variance

    assert abs(squares().mean() / space.dim - 1.0) < 0.25
    monkeypatch.setattr(OnManifold, "lower_bound", 0.0)
    assert squares().mean() > 4.0 * space.dim


def test_the_likelihood_of_a_released_value_has_its_slope_in_the_mean():
    """Of exp(-d/0.02), d being 0.3 less what the mean has moved towards it."""
    sphere, pole, along = Sphere(2), jnp.array([0.0, 0.0, 1.0]), jnp.array([1.0, 0.0, 0.0])
    released = sphere.exp(pole, 0.3 * along)
    slope = jax.jit(jax.grad(lambda t: ManifoldLaplace(sphere, sphere.exp(pole, t * along), 0.02).log_prob(released)))
    np.testing.assert_allclose([slope(t) for t in (0.0, 0.1, 0.5)], [50.0, 50.0, -50.0], rtol=1e-6)


@pytest.mark.exhaustive  # NUTS draws from laws above
def test_a_mean_is_inferred_from_a_release_by_nuts():
    sphere, pole = Sphere(2), jnp.array([0.0, 0.0, 1.0])
    released = sphere.exp(pole, jnp.array([0.3, 0.0, 0.0]))

    def model():
        mean = numpyro.sample("mean", ManifoldLaplace(sphere, pole, 0.4))
        numpyro.sample("release", ManifoldLaplace(sphere, mean, 0.02), obs=released)

    mcmc = MCMC(NUTS(model), num_warmup=300, num_samples=500, progress_bar=False)
    mcmc.run(jax.random.key(2))
    distances = jax.vmap(lambda x: sphere.dist(released, x))(mcmc.get_samples()["mean"])
    assert 0.02 < float(distances.mean()) < 0.08
