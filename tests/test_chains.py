"""Markov chains: started with exact draws they must keep the law; wrong kernels must be found out by the same test."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro.infer import MCMC
from numpyro.infer.util import log_density as model_log_density
from scipy import stats
from strategies import cap, exhaustive
from test_samplers import CASES

from jaxgeodp import (
    SPD,
    Euclidean,
    GeodesicBall,
    Hyperbolic,
    KNGMechanism,
    LaplaceMechanism,
    Rotations,
    Sphere,
    TangentLaplace,
)
from jaxgeodp.experiments import paper_chain
from jaxgeodp.mechanisms import release_by_chain
from jaxgeodp.samplers import KNG, GeodesicMetropolis, ManifoldLaplace, diagnose, metropolis, random_walk

LEVEL = 1e-6 / 60
STEPS = 25
CHAINS = 20_000
SHARP = ["KNG on the sphere, mostly noise", "Laplace on the sphere, up to the antipode", "Laplace on matrices"]


def right(manifold, potential, state, width):
    return random_walk.step(manifold, potential, state, 0, 0.234)


def accepts_only(manifold, potential, state, width):
    """Supplement 2.3.2, step 4, of Soto et al. 2022: a rejected move is not repeated but drawn again."""

    def again(loop):
        inner, tries = loop
        moved = random_walk.step(manifold, potential, inner, 0, 0.234)
        return moved, tries + 1

    def rejected(loop):
        inner, tries = loop
        return jnp.all(inner.z == state.z) & (tries < 12)

    return jax.lax.while_loop(rejected, again, (state, 0))[0]


def not_isotropic(manifold, potential, state, width):
    """Supplement 2.3.2: v = vech^-1(uniform), whatever the point."""
    key, move_key, accept_key = jax.random.split(state.rng_key, 3)
    a, b, c = width * 3.0 * jax.random.uniform(move_key, (3,), minval=-0.5, maxval=0.5)
    return accept(manifold, potential, state, manifold.exp(state.z, jnp.array([[a, b], [b, c]])), accept_key, key)


def wrong_jacobian(manifold, potential, state, width):
    """A walk in the tangent space at the centre, without the volume that exp gives to it."""
    key, move_key, accept_key = jax.random.split(state.rng_key, 3)
    base = jnp.asarray(manifold.origin)
    moved = manifold.log(base, state.z) + width * manifold.random_tangent(move_key, base)
    return accept(manifold, potential, state, manifold.exp(base, moved), accept_key, key)


def accept(manifold, potential, state, point, accept_key, key):
    energy = potential(point)
    taken = jax.random.uniform(accept_key) < jnp.exp(jnp.minimum(state.potential_energy - energy, 0.0))
    return state._replace(
        z=jnp.where(taken, point, state.z),
        potential_energy=jnp.where(taken, energy, state.potential_energy),
        rng_key=key,
    )


def moved_points(kernel, mechanism, data, points, width, steps):
    def potential(x):
        return -mechanism.log_density(x, data)

    def chain(key, point):
        state = random_walk.start(potential, key, point, width)
        move = functools.partial(kernel, mechanism.ball.manifold, potential, width=width)
        return jax.lax.fori_loop(0, steps, lambda _, s: move(state=s), state).z

    keys = jax.random.split(jax.random.key(3), points.shape[0])
    return jax.jit(lambda k, x: jax.lax.map(lambda pair: chain(*pair), (k, x), batch_size=4096))(keys, points)


def p_values_after(kernel, key, steps):
    case = CASES[key]
    width = jnp.asarray(1.5 * case.scale)
    start = case.points[:CHAINS]
    moved = moved_points(kernel, case.mechanism, jnp.asarray(case.data), jnp.asarray(start), width, steps)
    # Nothing is tested if nothing moves.
    assert np.mean(np.any(np.asarray(moved) != start, axis=tuple(range(1, moved.ndim)))) > 0.7
    return case.p_values(np.asarray(moved))


@pytest.mark.parametrize("key", [SHARP[2], *exhaustive(*SHARP[:2], "Laplace on triangles", "KNG on pentagons")])
def test_exact_draws_keep_their_law(key):
    p_values = p_values_after(right, key, 12 if key == SHARP[0] else STEPS)  # a wrong kernel is found there after 4
    assert min(p_values.values()) > LEVEL, p_values


@pytest.mark.parametrize(
    ("kernel", "key", "steps"),
    [
        (accepts_only, SHARP[2], STEPS),
        (not_isotropic, SHARP[2], STEPS),
        *exhaustive((accepts_only, SHARP[0], 4), (wrong_jacobian, SHARP[1], STEPS)),
    ],
)
def test_wrong_kernels_are_caught(kernel, key, steps):
    p_values = p_values_after(kernel, key, steps)
    assert min(p_values.values()) < LEVEL, p_values


@pytest.mark.exhaustive  # exact draws keep their law above, and chains have their mean below
@pytest.mark.parametrize(("manifold", "sigma"), [(Hyperbolic(2), 0.3), (Rotations(), 0.4)], ids=str)
def test_chains_reach_the_law_from_one_point(manifold, sigma):
    """Distances from the centre against quadrature of exp(-t/sigma) S(t)^{d-1}; ten per cent more is rejected."""
    center = jnp.asarray(manifold.origin)
    chains = metropolis(
        jax.random.key(1), manifold, ManifoldLaplace(manifold, center, sigma).log_prob, center, 1, 200, 1, sigma, 8000
    )
    distances = np.asarray(jax.vmap(lambda x: manifold.dist(center, x))(chains.points[:, -1]))
    t = np.linspace(0.0, min(manifold.diameter, 60 * sigma), 40_001)
    area = np.sinh(t) if isinstance(manifold, Hyperbolic) else np.sin(0.5 * t) ** 2
    for scale, right_one in ((sigma, True), (1.1 * sigma, False)):
        below = np.cumsum(np.exp(-t / scale) * area)
        p_value = stats.kstest(distances, lambda x, b=below: np.interp(x, t, b / b[-1])).pvalue
        assert (p_value > LEVEL) == right_one, p_value
    assert 0.15 < np.mean(chains.acceptance) < 0.5
    # On a compact manifold long moves are accepted, too: they must not grow for ever.
    assert np.max(chains.step_size) <= 2.0 * manifold.injectivity_radius


def test_the_step_size_is_adapted_in_the_warm_up_only():
    sphere = Sphere(2)
    pole = jnp.asarray(sphere.origin)

    def log_density(x):
        return 200.0 * x @ pole

    warm = metropolis(jax.random.key(0), sphere, log_density, pole, 400, 1500, 1, 5.0, 8)
    np.testing.assert_allclose(warm.acceptance, 0.234, atol=0.08)
    cold = metropolis(jax.random.key(0), sphere, log_density, pole, 400, 0, 1, 0.02, 8)
    np.testing.assert_array_equal(cold.step_size, np.full(8, 0.02))
    assert np.all(np.asarray(cold.acceptance) > 0.7)


def test_a_chain_that_starts_where_the_density_is_zero_stays_and_says_so():
    def log_density(x):
        return jnp.where(jnp.abs(x[0]) < 1.0, 0.0, -jnp.inf)

    chains = metropolis(jax.random.key(0), Euclidean(1), log_density, jnp.asarray([50.0]), 20, 50, num_chains=3)
    assert np.all(chains.points == 50.0) and np.all(chains.acceptance == 0.0)
    assert np.all(np.isfinite(chains.step_size))


def test_thinning_keeps_every_so_many_moves_of_the_same_chain():
    sphere = Sphere(2)
    pole = jnp.asarray(sphere.origin)

    def log_density(x):
        return 3.0 * x @ pole

    every = metropolis(jax.random.key(5), sphere, log_density, pole, 60, 0, 1, 0.5, 3)
    third = metropolis(jax.random.key(5), sphere, log_density, pole, 20, 0, 3, 0.5, 3)
    np.testing.assert_allclose(third.points, every.points[:, 2::3], atol=1e-12)
    np.testing.assert_allclose(every.log_density, 3.0 * every.points @ pole, atol=1e-12)
    # Rejected moves repeat the state.
    repeats = np.mean(np.all(np.asarray(every.points[:, 1:] == every.points[:, :-1]), axis=-1))
    assert abs(repeats - (1 - np.mean(every.acceptance))) < 0.15 and repeats > 0


def test_single_precision_chains_stay_on_the_manifold():
    spd = SPD(2)
    chains = metropolis(
        jax.random.key(0),
        spd,
        lambda x: -spd.dist(jnp.eye(2, dtype=x.dtype), x) / 0.2,
        jnp.eye(2, dtype=jnp.float32),
        50,
    )
    assert chains.points.dtype == jnp.float32
    assert jnp.all(jax.vmap(jax.vmap(lambda x: spd.belongs(x, 1e-4)))(chains.points))


def test_diagnostics_tell_good_chains_from_bad_ones():
    sphere = Sphere(2)
    pole = jnp.asarray(sphere.origin)

    def log_density(x):
        return 5.0 * x @ pole

    good = diagnose(sphere, metropolis(jax.random.key(2), sphere, log_density, pole, 500, 500, 10))
    assert good.r_hat < 1.02 and 300 < good.bulk_ess <= 4000 and good.tail_ess > 100
    assert 0.1 < good.acceptance < 0.5
    starts = jnp.stack([pole, pole, -pole, -pole])

    def two_modes(x):
        return 200.0 * jnp.abs(x @ pole)

    stuck = diagnose(sphere, metropolis(jax.random.key(2), sphere, two_modes, starts, 500, 500), base=pole + 0.0)
    assert stuck.r_hat > 1.5
    frozen = diagnose(
        sphere, metropolis(jax.random.key(2), sphere, lambda x: jnp.where(jnp.all(x == pole), 0.0, -jnp.inf), pole, 8)
    )
    assert frozen.bulk_ess == 0.0 and math.isinf(frozen.r_hat)
    for sizes in ((3, 0, 1, 0.1, 4), (8, 0, 1, 0.1, 1)):
        with pytest.raises(ValueError, match="at least 2 chains of at least 4 points"):
            diagnose(sphere, metropolis(jax.random.key(2), sphere, log_density, pole, *sizes))


@pytest.mark.parametrize(("num_chains", "thinning"), [(1, 1), (3, 2)])
def test_the_numpyro_kernel_runs_in_mcmc(num_chains, thinning):
    sphere = Sphere(2)
    pole = jnp.asarray(sphere.origin)
    kernel = GeodesicMetropolis(sphere, lambda x, tilt: -tilt * x @ pole, step_size=2.0)
    mcmc = MCMC(
        kernel,
        num_warmup=400,
        num_samples=600,
        num_chains=num_chains,
        thinning=thinning,
        chain_method="vectorized",
        progress_bar=True,
    )
    start = jnp.broadcast_to(pole, (num_chains, 3)) if num_chains > 1 else pole
    mcmc.run(jax.random.key(1), 5.0, init_params=start, extra_fields=("accept_prob", "step_size", "potential_energy"))
    grouped = mcmc.get_samples(group_by_chain=True)
    assert grouped.shape == (num_chains, 600 // thinning, 3)
    fields = mcmc.get_extra_fields()
    np.testing.assert_allclose(fields["potential_energy"], -5.0 * mcmc.get_samples() @ pole, atol=1e-10)
    # Adapted, then fixed.
    assert np.unique(np.asarray(fields["step_size"])).size == num_chains
    # E cos = coth(5) - 1/5.
    assert abs(float(jnp.mean(grouped @ pole)) - (1 / math.tanh(5) - 0.2)) < 0.05
    mcmc.print_summary()


@pytest.mark.parametrize("num_chains", [1, 2])
def test_a_site_of_the_numpyro_kernel_has_a_name(num_chains):
    """Draws are the same as without; NumPyro's summary and ArviZ call them by the name."""
    import arviz  # it replaces a file when imported: of two processes that collect tests at a time one may find none

    sphere = Sphere(2)
    pole = jnp.asarray(sphere.origin)
    start = jnp.broadcast_to(pole, (num_chains, 3)) if num_chains > 1 else pole
    draws = {}
    for name, potential, init in (
        (None, lambda x: -5.0 * x @ pole, start),
        ("mean", lambda sites: -5.0 * sites["mean"] @ pole, {"mean": start}),
    ):
        kernel = GeodesicMetropolis(sphere, potential)
        mcmc = MCMC(
            kernel,
            num_warmup=20,
            num_samples=30,
            num_chains=num_chains,
            chain_method="vectorized",
            progress_bar=False,
        )
        mcmc.run(jax.random.key(0), init_params=init, extra_fields=("potential_energy", "accept_prob"))
        draws[name] = mcmc.get_samples(group_by_chain=True)
        inference = arviz.from_numpyro(mcmc)
        assert set(inference.sample_stats) == {"lp", "acceptance_rate"}
    np.testing.assert_array_equal(draws["mean"]["mean"], draws[None])
    np.testing.assert_array_equal(inference.posterior["mean"].values, draws[None])
    with pytest.raises(ValueError, match="has 2 sites"):
        mcmc.run(jax.random.key(0), init_params={"mean": start, "other": start})


def test_the_kernel_needs_a_start():
    mcmc = MCMC(GeodesicMetropolis(Sphere(2), lambda x: 0.0 * x[0]), num_warmup=1, num_samples=1, progress_bar=False)
    with pytest.raises(ValueError, match="needs init_params"):
        mcmc.run(jax.random.key(0))


@pytest.mark.parametrize(
    ("manifold", "sigma"), [(Sphere(2, 4.0), 0.3), (Hyperbolic(2), 0.2), (Sphere(3), 2.0)], ids=str
)
def test_the_laplace_distribution_is_normalised(manifold, sigma):
    """Mean of 1/density over draws of a cap's uniform law: volume of the cap over its probability."""
    center = jnp.asarray(manifold.origin)
    law = ManifoldLaplace(manifold, center, sigma)
    assert law.normalized
    curvature = manifold.curvature_bounds[0]
    t = np.linspace(0.0, min(manifold.diameter, 80 * sigma), 400_001)
    root = math.sqrt(abs(curvature))
    radius = (np.sin(root * t) if curvature > 0 else np.sinh(root * t)) / root
    sphere = {2: 2 * math.pi, 3: 4 * math.pi}[manifold.dim]
    unit = manifold.random_tangent(jax.random.key(0), center)
    points = jax.vmap(lambda s: manifold.exp(center, s * unit / manifold.norm(center, unit)))(jnp.asarray(t[::100]))
    density = np.exp(np.interp(t, t[::100], np.asarray(law.log_prob(points))))
    assert np.trapezoid(sphere * density * radius ** (manifold.dim - 1), t) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("share", [0.1, 0.9, 0.999, 0.9999])
def test_the_laplace_distribution_is_normalised_up_to_its_largest_scale(share):
    """Of the hyperbolic plane 2 pi int exp(-t/s) sinh t dt = 2 pi/(1/s^2 - 1)."""
    plane = Hyperbolic(2)
    center = jnp.asarray(plane.origin)
    found = float(ManifoldLaplace(plane, center, share).log_prob(center))
    assert found == pytest.approx(-math.log(2 * math.pi / (1 / share**2 - 1)), abs=1e-8)


def test_distributions_sample_their_laws_in_any_shape():
    sphere = Sphere(2)
    pole = jnp.asarray(sphere.origin)
    law = ManifoldLaplace(sphere, pole, 0.2)
    draws = law.sample(jax.random.key(0), (2, 3))
    assert draws.shape == (2, 3, 3) and law.log_prob(draws).shape == (2, 3)
    assert law.sample(jax.random.key(0)).shape == (3,)
    assert bool(jnp.all(law.support(draws))) and not bool(law.support(2.0 * draws[0, 0]))
    mechanism = KNGMechanism(GeodesicBall(Euclidean(2), np.zeros(2), 1.0), 1.0)
    data = np.random.default_rng(0).uniform(-0.5, 0.5, size=(6, 2))
    kng = KNG(mechanism, data)
    draws = kng.sample(jax.random.key(1), (4,))
    np.testing.assert_allclose(
        kng.log_prob(draws), jax.vmap(lambda x: mechanism.log_density(x, jnp.asarray(data)))(draws)
    )
    assert not ManifoldLaplace(SPD(2), jnp.eye(2), 0.2).normalized
    with pytest.raises(ValueError, match=r"must be below 1\.414"):
        ManifoldLaplace(SPD(2), jnp.eye(2), 1.5)


def test_inference_from_a_release():
    """What a reader of the record may conclude: a posterior of the private mean, by a model of the mechanism."""
    sphere = Sphere(2)
    pole = jnp.asarray(sphere.origin)
    mechanism = LaplaceMechanism(GeodesicBall(sphere, pole, 0.4), 1.0)
    scale = mechanism.scale(100)
    released = sphere.exp(pole, 0.3 * jnp.array([1.0, 0.0, 0.0]))

    def model(value):
        mean = numpyro.sample("mean", ManifoldLaplace(sphere, pole, 0.4))
        numpyro.sample("release", ManifoldLaplace(sphere, mean, scale), obs=value)

    kernel = GeodesicMetropolis(sphere, lambda x: -model_log_density(model, (released,), {}, {"mean": x})[0])
    mcmc = MCMC(kernel, num_warmup=500, num_samples=2000, num_chains=4, chain_method="vectorized", progress_bar=False)
    mcmc.run(jax.random.key(0), init_params=jnp.broadcast_to(pole, (4, 3)))
    distances = jax.vmap(lambda x: sphere.dist(released, x))(mcmc.get_samples())
    # Nearly the law of the noise, pulled towards the prior's centre.
    assert float(jnp.mean(distances)) == pytest.approx(2.0 * scale, rel=0.15)
    trace = numpyro.handlers.trace(numpyro.handlers.seed(model, 0)).get_trace(released)
    assert trace["mean"]["value"].shape == (3,)


@pytest.mark.exhaustive  # its density is compared above
def test_kng_chains_and_exact_draws_agree():
    case = CASES["KNG on the sphere"]
    kng = KNG(case.mechanism, jnp.asarray(case.data))
    chains = metropolis(jax.random.key(0), Sphere(2), kng.log_prob, jnp.asarray(case.mean), 1, 200, 1, case.scale, 2000)
    p_values = case.p_values(np.asarray(chains.points[:, 0]))
    assert min(value for name, value in p_values.items() if "chi" not in name) > LEVEL, p_values
    assert isinstance(case.mechanism, KNGMechanism)


def test_bad_releases_by_chain_are_refused():
    mechanism = KNGMechanism(GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.4), 1.0)
    for number in (0, -1, 1.5):
        with pytest.raises(ValueError, match="release_by_chain: num_burnin"):
            release_by_chain(mechanism, np.tile([0.0, 0.0, 1.0], (3, 1)), num_burnin=number)
    large = KNGMechanism(GeodesicBall(SPD(2), np.eye(2), 15.0), 900.0)
    with pytest.raises(ValueError, match="too large for double precision"):
        release_by_chain(large, np.tile(np.eye(2), (3, 1, 1)), num_burnin=10)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"num_samples": 0}, "num_samples"),
        ({"thin": 0}, "thin"),
        ({"num_burnin": -1}, "num_burnin"),
        ({"num_chains": 0}, "num_chains"),
        ({"init": jnp.zeros(4)}, "init must have the shape"),
    ],
)
def test_bad_calls_are_refused(change, complaint):
    options = {"init": jnp.array([0.0, 0.0, 1.0]), "num_samples": 2, **change}
    with pytest.raises(ValueError, match=f"metropolis: {complaint}"):
        metropolis(jax.random.key(0), Sphere(2), lambda x: x[0], **options)


@pytest.mark.exhaustive
def test_the_papers_chain_has_the_wrong_law_as_printed_and_the_right_one_with_repeats():
    """On the sphere, with steps long enough for the mistake to show in 10,000 chains."""
    case = CASES["KNG on the sphere, mostly noise"]

    def p_value(as_printed):
        chains = paper_chain(
            jax.random.key(7), "sphere", case.mechanism, case.data, 1, 10_000, as_printed, burnin=60, thin=1, step=3.0
        )
        return case.p_values(np.asarray(chains.points[:, 0]))["distance to the mean"]

    assert p_value(False) > LEVEL
    assert p_value(True) < LEVEL


def test_paper_chains_are_for_their_manifolds():
    case = CASES["KNG on the sphere"]
    with pytest.raises(ValueError, match="name must be one of matrices, sphere, shapes"):
        paper_chain(jax.random.key(0), "cube", case.mechanism, case.data, 1)
    with pytest.raises(ValueError, match="'shapes' needs PlanarShapes"):
        paper_chain(jax.random.key(0), "shapes", case.mechanism, case.data, 1)
    for wrong in ({"step": 0.0}, {"thin": 0}, {"burnin": -1}, {"burnin": 1.5}):
        with pytest.raises(ValueError, match=f"paper_chain: {next(iter(wrong))} must be"):
            paper_chain(jax.random.key(0), "sphere", case.mechanism, case.data, 1, **wrong)


@pytest.mark.exhaustive
def test_paper_chains_of_matrices_are_of_matrices():
    spd = SPD(2)
    mechanism = KNGMechanism(GeodesicBall(spd, np.eye(2), 1.0), 1.0, calibration="theorem")
    data = np.stack([np.eye(2) * s for s in (0.7, 1.0, 1.4, 1.1)])
    chains = paper_chain(jax.random.key(0), "matrices", mechanism, data, 3, 2, burnin=10, thin=2)
    assert chains.points.shape == (2, 3, 2, 2)
    assert np.all(np.linalg.eigvalsh(np.asarray(chains.points)) > 0)


def test_a_release_by_a_chain_says_so_and_claims_nothing():
    ball = GeodesicBall(Sphere(2), Sphere(2).origin, 0.39)
    data = np.asarray(cap(Sphere(2), jnp.asarray(ball.center), 0.39, 50, 0))
    release = release_by_chain(KNGMechanism(ball, 1.0), data, num_burnin=500)
    assert release.record["guarantee"]["kind"] == "not proven"
    assert "MCMC: not pure DP" in release.record["guarantee"]["claim"]
    assert release.record["sampler"]["exactness"] == "MCMC: not pure DP"
    assert np.linalg.norm(release.value) == pytest.approx(1.0)
    assert bool(KNGMechanism(ball, 1.0).support(50).contains(jnp.asarray(release.value)))
    again = release_by_chain(KNGMechanism(ball, 1.0), data, num_burnin=500)
    assert np.any(again.value != release.value)
    with pytest.raises(ValueError, match="needs a mechanism with a density, got TangentLaplace"):
        release_by_chain(TangentLaplace(ball, 1.0), data)
