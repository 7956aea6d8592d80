"""Programs of a user in single precision leave releases alone, which run in double precision."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from strategies import exhaustive

import jaxgeodp as jgd
from jaxgeodp.compiling import seen_anew
from jaxgeodp.inference import confidence_ball, describe

CENTER = np.array([0.3, 0.2, 1.0]) / np.linalg.norm([0.3, 0.2, 1.0])
MECHANISMS = [
    jgd.LaplaceMechanism,
    jgd.TangentLaplace,
    *exhaustive(jgd.KNGMechanism, jgd.WrappedLaplace, jgd.WrappedGaussian, jgd.GibbsMechanism, jgd.RiemannianGaussian),
]


@pytest.fixture(autouse=True)
def single_precision():
    with jax.enable_x64(False):
        yield


def records(n=80):
    points = np.random.default_rng(0).normal(size=(n, 3)) * 0.1 + CENTER
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def constants_of(program, *arrays):
    """Have JAX meet arrays of NumPy as constants in a loop of a program that stays alive, in single precision."""

    @jax.jit
    def looped(start):
        return jax.lax.scan(
            lambda total, _: (total + sum(jnp.sum(jnp.asarray(a)) for a in arrays), None), start, None, 3
        )

    looped(0.0)
    return program, looped


def test_what_is_seen_anew_is_right_where_the_array_itself_is_not():
    """The hazard, as it is in jax 0.9 and 0.11."""
    array = np.array([0.1, 0.05, 1.0])
    alive = constants_of(None, array)
    with jax.enable_x64(True):
        assert np.asarray(jax.device_put(seen_anew(array))).dtype == np.float64
        np.testing.assert_array_equal(jax.jit(lambda x: 2.0 * x)(seen_anew(array)), 2.0 * array)
    assert alive and seen_anew(jnp.ones(2)).dtype == np.float32


@pytest.mark.parametrize("kind", MECHANISMS, ids=lambda kind: kind.__name__)
def test_a_release_after_a_simulation_in_a_program_of_the_user(kind, tmp_path):
    """Ball and data are constants of the user's program. The release then failed after the charge."""
    mechanism, data = kind(jgd.GeodesicBall(jgd.Sphere(2), CENTER, 0.4), 1.0), records()
    simulated = jax.jit(jax.vmap(lambda key: mechanism.simulate(key, jnp.asarray(data), 2)))
    assert simulated(jax.random.split(jax.random.key(0), 3)).dtype == np.float32
    alive = constants_of(simulated, data, mechanism.ball.center)
    budget = jgd.PureDP(1.0) if hasattr(mechanism, "epsilon") else jgd.GaussianDP(1.0)
    ledger = jgd.Ledger(tmp_path / "budget.db", budget, dataset="study")
    release = mechanism.release(data, ledger=ledger)
    assert release.value.dtype == np.float64
    assert jgd.Sphere(2).dist(jnp.asarray(release.value), jnp.asarray(CENTER)) < 1.0
    assert alive


def test_a_region_after_a_model_of_the_released_values():
    ball = jgd.GeodesicBall(jgd.Sphere(2), CENTER, 0.4)
    found = describe(records(), jgd.Sphere(2), mu=4.0, ball=ball)
    before = confidence_ball(found).radius
    alive = constants_of(None, found.mean.value, found.population.mean, found.population.frame)
    assert confidence_ball(found).radius == before
    assert alive
