"""Functional data: kernels, penalised means, the Gaussian process mechanism and its design."""

import dataclasses
import json
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxgeodp.functional import (
    FunctionalGaussianMechanism,
    IntervalKernel,
    PeriodicKernel,
    PeriodicMatern,
    PeriodicRBF,
    RKHSMean,
    expected_error,
    optimize_budget,
)
from jaxgeodp.functional.kernels import FLOOR
from jaxgeodp.privacy import GaussianDP, compose, delta_of_epsilon, largest_mu
from jaxgeodp.releases import encoding

ALPHA = 1e-6
KERNELS = [
    PeriodicKernel(0.5),
    PeriodicKernel(1.3, smoothness=0.6),
    PeriodicKernel([0.4, 0.8]),
    PeriodicMatern(0.5, 0.5),
    PeriodicMatern(0.4, 1.5),
    PeriodicMatern([0.4, 0.6], 2.5),
    PeriodicRBF(0.4),
    IntervalKernel(0.2, 0.5),
    IntervalKernel([0.2, 0.3], 1.5),
    IntervalKernel(0.2, 2.5),
    IntervalKernel(0.15, math.inf),
]
NAMES = [
    f"{type(k).__name__}-{getattr(k, 'order', getattr(k, 'smoothness', ''))}-{np.ndim(k.length_scale)}" for k in KERNELS
]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
# One of each kind, with one length scale and with two.
OF_EACH_KIND = (2, 4, 6, 8, 10)
kernel_of_each_kind = pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(kernel, marks=[] if number in OF_EACH_KIND else pytest.mark.exhaustive)
        for number, kernel in enumerate(KERNELS)
    ],
    ids=NAMES,
)


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def curves(n=40, count=2, m=48, seed=0, size=0.5):
    """Rough closed curves."""
    return np.random.default_rng(seed).normal(size=(n, count, m)) * size


def operators(kernel, m, count=2):
    """Dense K W for each curve, and the covariance."""
    covariance = np.broadcast_to(np.asarray(kernel.covariance(m)), (count, m, m))
    return covariance * kernel.weights(m), covariance


# Kernels ---------------------------------------------------------------------------------------------------


@every_kernel
@pytest.mark.parametrize("m", [32, 41])
def test_spectra_are_those_of_the_dense_operator(kernel, m):
    kernel.check_samples(m)
    covariance = np.asarray(kernel.covariance(m))
    roots = np.sqrt(kernel.weights(m))
    dense = np.linalg.eigvalsh(covariance * np.outer(roots, roots))
    spectrum = kernel.spectrum(m)
    ours = np.repeat(np.asarray(spectrum.eigenvalues), spectrum.multiplicity.astype(int), axis=-1)
    chex.assert_trees_all_close(np.sort(ours, axis=-1), np.maximum(dense, FLOOR), atol=1e-13)
    assert dense.min() > -1e-13, "positive definite"
    chex.assert_trees_all_close(np.sum(ours, axis=-1), np.ones(covariance.shape[:-2]), atol=1e-10)
    chex.assert_trees_all_close(np.diagonal(covariance, axis1=-2, axis2=-1), np.ones(covariance.shape[:-1]), atol=1e-12)


@every_kernel
def test_functions_of_the_operator_are_those_of_the_dense_one(kernel):
    m, penalty = 33, np.array([0.01, 0.002])
    f = curves(5, 2, m)
    operator, _ = operators(kernel, m)
    dense = np.stack(
        [f[:, j] @ np.linalg.solve(operator[j] + penalty[j] * np.eye(m), operator[j]).T for j in range(2)], axis=1
    )
    chex.assert_trees_all_close(np.asarray(kernel.smooth(jnp.asarray(f), penalty)), dense, atol=1e-12)
    spectrum = kernel.spectrum(m)
    values = spectrum.eigenvalues
    chex.assert_trees_all_close(np.asarray(spectrum.apply(values / (values + penalty[:, None]), f)), dense, atol=1e-10)
    norms = np.sum(kernel.weights(m) * f**2, axis=-1)
    chex.assert_trees_all_close(np.sum(np.asarray(spectrum.energies(f)), axis=-1), norms, rtol=1e-12)
    mean = RKHSMean(kernel, penalty)(f)
    chex.assert_trees_all_close(np.asarray(mean), dense.mean(axis=0), atol=1e-12)


def test_periodic_matern_is_the_sum_over_windings():
    distance = np.linspace(0.0, math.pi, 9)
    for order, polynomial in ((0.5, lambda x: 1.0), (1.5, lambda x: 1 + x), (2.5, lambda x: 1 + x + x**2 / 3)):
        for length in (0.3, 4.0):
            x = math.sqrt(2 * order) / length * np.abs(distance + 2 * math.pi * np.arange(-400, 401)[:, None])
            summed = np.sum(polynomial(x) * np.exp(-x), axis=0)
            ours = PeriodicMatern(length, order).profile(jnp.asarray(distance))
            chex.assert_trees_all_close(np.asarray(ours), summed / summed[0], rtol=1e-9)


def test_periodic_matern_has_the_known_spectrum():
    order, length, m = 1.5, 0.5, 4096
    frequency = np.arange(40)
    shape = (2 * order / length**2 + frequency**2) ** (-order - 0.5)
    ours = np.asarray(PeriodicMatern(length, order).spectrum(m).eigenvalues)[:40]
    chex.assert_trees_all_close(ours / ours[0], shape / shape[0], rtol=1e-6)


@kernel_of_each_kind
def test_derivatives_are_those_of_finite_differences(kernel):
    f = jnp.asarray(curves(1, 2, 32)[0])

    @jax.jit
    def energy(length, penalty):
        smooth = kernel.with_length(length).smooth(f, penalty)
        return jnp.sum(smooth**2) + jnp.max(kernel.with_length(length).spectrum(32).eigenvalues)

    length, penalty, step = np.broadcast_to(kernel.length_scale, 2), np.array([0.01, 0.02]), 1e-6
    for argument in (0, 1):
        gradient = jax.jit(jax.grad(energy, argument))(jnp.asarray(length), jnp.asarray(penalty))
        for j in range(2):
            shift = [np.zeros(2), np.zeros(2)]
            shift[argument][j] = step
            high, low = (energy(length + s * shift[0], penalty + s * shift[1]) for s in (1, -1))
            assert float(gradient[j]) == pytest.approx(float(high - low) / (2 * step), rel=1e-5, abs=1e-6)


def covariance_is_right(draws, covariance):
    """The smaller p-value of two tests: size of whitened draws, and smooth functionals of them."""
    draws = draws - 0.0
    m = draws.shape[-1]
    values, vectors = np.linalg.eigh(covariance)
    kept = values > 1e-6
    white = draws @ vectors[:, kept] / np.sqrt(values[kept])
    size = stats.kstest((white**2).sum(axis=-1), stats.chi2(kept.sum()).cdf).pvalue
    t = np.linspace(0, 1, m)
    functionals = np.stack([np.ones(m), t, (t - 0.5) ** 2, np.eye(m)[0] - np.eye(m)[-1], np.eye(m)[m // 2]])
    deviations = np.sqrt(np.einsum("ki,ij,kj->k", functionals, covariance, functionals))
    single = [stats.kstest(draws @ a / s, stats.norm.cdf).pvalue for a, s in zip(functionals, deviations, strict=True)]
    return min(size, *single)


@kernel_of_each_kind
def test_draws_have_the_covariance_of_the_kernel(kernel):
    m = 32
    draws = np.asarray(kernel.sample(jax.random.key(1), (6000, 2), m))
    covariance = np.broadcast_to(np.asarray(kernel.covariance(m)), (2, m, m))
    for j in range(2):
        assert covariance_is_right(draws[:, j], covariance[j]) > ALPHA
        # Planted: 10 % off, and a process that is not closed (or closed, for the interval).
        assert covariance_is_right(1.1 * draws[:, j], covariance[j]) < ALPHA
        moved = np.concatenate([draws[:3000, j], np.roll(draws[3000:, j], m // 2, axis=-1)])
        periodic = not isinstance(kernel, IntervalKernel)
        assert (covariance_is_right(moved, covariance[j]) > ALPHA) == periodic


# Privacy ---------------------------------------------------------------------------------------------------


def whitened(kernel, m, vectors):
    """Norms in the space of the kernel, by dense linear algebra."""
    values, basis = np.linalg.eigh(np.asarray(kernel.covariance(m)))
    kept = values > 1e-10
    return (vectors @ basis[:, kept]) / np.sqrt(values[kept])


def worst_neighbours(mechanism, n, m):
    """Data whose one record goes from one end of the worst direction to the other."""
    spectrum = mechanism.kernel.spectrum(m)
    values = np.asarray(spectrum.eigenvalues)
    worst = np.argmax(np.sqrt(values) / (values + mechanism.penalty))
    factors = np.zeros(len(values))
    factors[worst] = 1.0
    direction = np.asarray(spectrum.apply(factors, np.eye(m)[1] + 0.3 * np.eye(m)[4]))
    direction = direction / np.sqrt(np.sum(mechanism.kernel.weights(m) * direction**2))
    data = np.random.default_rng(0).normal(size=(n, 1, m)) * 0.1
    plus, minus = data.copy(), data.copy()
    plus[0, 0], minus[0, 0] = 5.0 * mechanism.norm_bound * direction, -7.0 * mechanism.norm_bound * direction
    return plus, minus


@pytest.mark.parametrize("kernel", [k for k in KERNELS if np.ndim(k.length_scale) == 0], ids=lambda k: type(k).__name__)
@pytest.mark.parametrize("penalty", [3e-3, 0.9])
def test_the_pair_of_laws_along_the_worst_direction_is_that_of_mu(kernel, penalty):
    n, m, mu = 20, 33, 0.7
    mechanism = FunctionalGaussianMechanism(kernel, penalty, 1.5, mu)
    plus, minus = worst_neighbours(mechanism, n, m)
    shift = np.asarray(mechanism.mean(plus) - mechanism.mean(minus))[0]
    # Two Gaussians with one covariance are as hard to tell apart as N(0, 1) and N(distance, 1).
    distance = np.linalg.norm(whitened(kernel, m, shift)) / mechanism.scale(n, m)
    assert distance == pytest.approx(mu, rel=1e-6)
    assert distance <= mu * (1 + 1e-9)
    # A bound for every m.
    assert mechanism.sensitivity(n, m) <= mechanism.sensitivity(n) * (1 + 1e-9)
    theorem = dataclasses.replace(mechanism, calibration="theorem")
    assert theorem.sensitivity(n) >= 2.0 * mechanism.sensitivity(n) * (1 - 1e-9)
    assert theorem.sensitivity(n) == pytest.approx(2 * 1.5 / (n * math.sqrt(penalty)))


@kernel_of_each_kind
def test_no_neighbours_are_farther_than_the_sensitivity(kernel):
    n, m = 10, 32
    mechanism = FunctionalGaussianMechanism(kernel, 0.01, [1.0, 0.4], 0.5)
    random = np.random.default_rng(1)
    operator_norms = np.atleast_1d(mechanism.sensitivity(n, m))
    for trial in range(20):
        data = random.normal(size=(n, 2, m)) * 10.0 ** random.uniform(-2, 2)
        other = data.copy()
        other[3] = np.cumsum(random.normal(size=(2, m)), axis=1) if trial % 2 else 1e200 * random.normal(size=(2, m))
        shift = np.asarray(mechanism.mean(data) - mechanism.mean(other))
        for j in range(2):
            single = kernel if np.ndim(kernel.length_scale) == 0 else kernel.with_length(kernel.length_scale[j])
            assert np.linalg.norm(whitened(single, m, shift[j])) <= operator_norms[j] * (1 + 1e-6)


def test_the_empirical_trade_off_is_above_that_of_mu():
    n, m, mu, draws = 5, 24, 1.0, 100_000
    mechanism = FunctionalGaussianMechanism(PeriodicKernel(0.6), 0.05, 1.0, mu)
    plus, minus = worst_neighbours(mechanism, n, m)

    def drawn(data):
        center = np.asarray(mechanism.mean(data))
        return center, np.asarray(mechanism.simulate(jax.random.key(int(data[0, 0, 0] > 0)), data, draws)) - center

    both = [drawn(data) for data in (plus, minus)]

    # Neyman and Pearson: the log ratio is linear in the whitened value.
    direction = whitened(mechanism.kernel, m, np.asarray(mechanism.mean(plus) - mechanism.mean(minus))[0])

    def errors(scale):
        values = [(center + scale * noise)[:, 0] for center, noise in both]
        one, other = (whitened(mechanism.kernel, m, own) @ direction for own in values)
        for level in (0.02, 0.1, 0.3, 0.6):
            threshold = np.quantile(other, 1 - level)
            missed = np.mean(one <= threshold)
            allowed = stats.norm.cdf(stats.norm.ppf(1 - level) - mu)
            yield missed, allowed, 5.0 * math.sqrt(0.25 / draws) * 2

    for missed, allowed, slack in errors(1.0):
        assert abs(missed - allowed) < slack
    # Planted: noise 10 % too small.
    assert any(missed < allowed - slack for missed, allowed, slack in errors(0.9))


def test_laws_of_simulation_and_density():
    m, scale = 24, np.array([0.3, 0.7])
    mechanism = FunctionalGaussianMechanism(PeriodicKernel([0.5, 0.9]), [0.01, 0.05], 1.0, [0.6, 0.8])
    data = curves(8, 2, m)
    scale, center = mechanism.scale(8, m), np.asarray(mechanism.mean(data))
    draws = np.asarray(mechanism.simulate(jax.random.key(2), data, 8000))
    assert draws.shape == (8000, 2, m)
    covariance = np.asarray(mechanism.kernel.covariance(m))
    for j in range(2):
        assert covariance_is_right((draws[:, j] - center[j]) / scale[j], covariance[j]) > ALPHA
        assert covariance_is_right((draws[:, j] - center[j]) / (1.1 * scale[j]), covariance[j]) < ALPHA
    assert abs(stats.pearsonr(draws[:, 0, 0], draws[:, 1, 0]).statistic) < 5 / math.sqrt(8000), "independent curves"
    dense = [stats.multivariate_normal(center[j], scale[j] ** 2 * covariance[j]) for j in range(2)]
    ours = [float(mechanism.log_density(x, data)) for x in draws[:3]]
    theirs = [sum(law.logpdf(x[j]) for j, law in enumerate(dense)) for x in draws[:3]]
    chex.assert_trees_all_close(np.diff(ours), np.diff(theirs), rtol=1e-7)
    # Where the process hardly goes.
    smooth = FunctionalGaussianMechanism(PeriodicRBF(2.0), 0.01, 1.0, 1.0)
    inside = smooth.simulate(jax.random.key(0), data[:, :1], 1)[0]
    assert math.isfinite(float(smooth.log_density(inside, data[:, :1])))
    assert float(smooth.log_density(inside.at[0, ::2].add(1.0), data[:, :1])) < -1e6


@pytest.mark.parametrize(
    "kernel",
    [IntervalKernel(0.3, math.inf), PeriodicRBF(0.8), IntervalKernel([0.5], math.inf)],
    ids=["open", "closed", "per curve"],
)
@pytest.mark.parametrize("penalty", [1e-4, 1e-2])
def test_rounding_leaks_into_no_direction_without_noise(kernel, penalty):
    """The smoothest kernels have eigenvalues below rounding; there a classifier would see the data."""
    n, m, draws = 10, 64, 400
    mechanism = FunctionalGaussianMechanism(kernel, penalty, 1.0, [0.5], np.full((1, m), 100.0))
    data = 100.0 + curves(n, 1, m, seed=4)
    other = data.copy()
    other[0] = 200.0 - other[0]
    spectrum = kernel.spectrum(m)
    quiet = np.asarray(spectrum.eigenvalues).reshape(-1) <= FLOOR
    if isinstance(kernel, IntervalKernel):
        basis = np.asarray(spectrum.vectors).reshape(m, m) * np.asarray(spectrum.roots)[:, None]
    else:
        waves = np.exp(2j * np.pi * np.outer(np.arange(m), np.arange(m // 2 + 1)) / m)[:, 1:-1]
        basis, quiet = np.concatenate([waves.real, waves.imag], axis=1), np.tile(quiet[1:-1], 2)
    silent = basis[:, quiet]
    assert silent.shape[1] > 10
    one, two = (
        np.asarray(mechanism.simulate(jax.random.key(seed), records, draws))[:, 0] @ silent
        for seed, records in enumerate((data, other))
    )
    # Linear discriminant on one half, tried on the other: 0.5-GDP allows an accuracy of Phi(0.25) = 0.599.
    half = draws // 2
    size = np.concatenate([one[:half] - one[:half].mean(0), two[:half] - two[:half].mean(0)]).std(axis=0)
    one, two = one / size, two / size
    pooled = np.cov(np.concatenate([one[:half] - one[:half].mean(0), two[:half] - two[:half].mean(0)]).T)
    pooled += 0.1 * np.eye(len(pooled))
    weights = np.linalg.solve(pooled, one[:half].mean(0) - two[:half].mean(0))
    middle = 0.5 * (one[:half].mean(0) + two[:half].mean(0)) @ weights
    accuracy = 0.5 * (np.mean(one[half:] @ weights > middle) + np.mean(two[half:] @ weights <= middle))
    assert accuracy < stats.norm.cdf(0.25) + 4 * 0.5 / math.sqrt(2 * half)


class Box(IntervalKernel):
    """Not positive definite."""

    def profile(self, distance):
        return jnp.where(distance < self.length_scale, 1.0, 0.0)


class Double(PeriodicKernel):
    """k(t, t) = 2."""

    def profile(self, distance):
        return 2.0 * super().profile(distance)


@pytest.mark.parametrize("kernel", [Box(0.3), Double(0.5)], ids=["box", "double"])
def test_kernels_of_which_nothing_is_proven_are_refused(kernel):
    mechanism = FunctionalGaussianMechanism(kernel, 0.2, 1.0, [0.5])
    with pytest.raises(ValueError, match="no guarantee holds"):
        mechanism.release(curves(10, 1, 32))


@kernel_of_each_kind
def test_records_can_be_saved(kernel, tmp_path):
    release = FunctionalGaussianMechanism(kernel, 0.01, 1.0, [0.5, 0.5]).release(curves(4, 2, 32))
    release.save(tmp_path / "release.json")
    assert json.loads((tmp_path / "release.json").read_text())["statistic"]["kernel"]["name"] == type(kernel).__name__


def test_parameters_cannot_be_changed_from_outside():
    mu, template = np.array([0.5, 0.5]), np.zeros((2, 32))
    mechanism = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1.0, mu, template)
    mu[:], template[:] = 5.0, 7.0
    assert mechanism.guarantee.mu == pytest.approx(math.sqrt(0.5))
    assert not mechanism.template.any()
    for array in (mechanism.mu, mechanism.template):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_mechanisms_and_means_go_through_jit_and_grad():
    data = jnp.asarray(curves(6, 2, 32))
    mechanism = FunctionalGaussianMechanism(PeriodicKernel([0.5, 0.7]), 0.01, 1.0, [0.5, 0.6])
    for call in (lambda m, x: m.mean(x), lambda m, x: m.simulate(jax.random.key(0), x, 3)):
        chex.assert_trees_all_close(jax.jit(call)(mechanism, data), call(mechanism, data), rtol=1e-9)
    slope = jax.grad(lambda penalty: jnp.sum(RKHSMean(PeriodicKernel(0.5), penalty)(data) ** 2))(0.01)
    assert float(slope) < 0


def test_many_draws_are_those_of_any_block_size(monkeypatch):
    mechanism, data = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1.0, 1.0), curves()
    expected = np.asarray(mechanism.simulate(jax.random.key(0), data, 50))
    monkeypatch.setattr(encoding, "BLOCK", 7 * 2 * 48)
    encoding.drawn_values.clear_cache()
    chex.assert_trees_all_close(np.asarray(mechanism.simulate(jax.random.key(0), data, 50)), expected, atol=1e-14)
    assert len(np.unique(expected[:, 0, 0])) == 50


def test_composition_of_the_paper():
    mechanism = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1.0, np.tile([0.2, 0.2, 0.55], 23))
    assert mechanism.guarantee.mu == pytest.approx(2.9661, abs=5e-5)
    assert mechanism.guarantee == compose([GaussianDP(mu) for mu in mechanism.mu])
    assert mechanism.guarantee_for(69) == mechanism.guarantee


def test_a_budget_that_is_split_fits_into_it():
    """0.6 and 0.8 are 1 together, not the next float above: a ledger with this budget grants it."""
    split = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1.0, [0.6, 0.8])
    assert split.guarantee == GaussianDP(1.0)


def test_mu_for_an_epsilon_and_a_delta():
    for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-5), (4.0, 1e-12), (1e-3, 1e-3), (1.0, 0.3), (30.0, 1e-300)):
        mu = largest_mu(epsilon, delta)
        assert delta_of_epsilon(mu, epsilon) <= delta < delta_of_epsilon(mu * (1 + 1e-9), epsilon)
        if epsilon <= 1 and delta < 0.1:
            assert mu > epsilon / math.sqrt(2.0 * math.log(2.0 / delta)), "less noise than the classical formula"
    for bad in ((0.0, 1e-6), (1.0, 0.0), (1.0, 1.0)):
        with pytest.raises(ValueError):
            largest_mu(*bad)


# Data ------------------------------------------------------------------------------------------------------


def test_curves_are_pulled_to_the_bound_one_by_one():
    kernel, m = PeriodicKernel(0.5), 32
    template = curves(1, 2, m, seed=9)[0]
    mechanism = FunctionalGaussianMechanism(kernel, 0.01, [0.5, 2.0], 1.0, template)
    data = template + curves(6, 2, m, size=1.0)
    norms = np.sqrt(np.mean((data - template) ** 2, axis=-1))
    pulled = (data - template) * np.minimum(1.0, np.array([0.5, 2.0]) / norms)[..., None]
    expected = template + RKHSMean(kernel, 0.01)(pulled)
    chex.assert_trees_all_close(np.asarray(mechanism.mean(data)), np.asarray(expected), atol=1e-12)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
def test_a_record_that_is_no_curve_counts_as_the_template(value):
    template = curves(1, 2, 32, seed=9)[0]
    mechanism = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1.0, 1.0, template)
    data = template + curves(6, 2, 32)
    broken, replaced = data.copy(), data.copy()
    broken[2, 1, 5] = value
    replaced[2] = template
    chex.assert_trees_all_close(np.asarray(mechanism.mean(broken)), np.asarray(mechanism.mean(replaced)), atol=1e-14)
    assert mechanism.release(broken).value.shape == (2, 32)


def test_a_template_makes_the_bound_small_and_is_exact_post_processing():
    kernel, template = PeriodicKernel(0.5), 100.0 + curves(1, 2, 32, seed=9)[0]
    data = template + curves(6, 2, 32, size=0.1)
    with_template = FunctionalGaussianMechanism(kernel, 0.01, 0.5, 1.0, template)
    without = FunctionalGaussianMechanism(kernel, 0.01, 0.5, 1.0)
    one, other = (m.simulate(jax.random.key(0), x, 3) for m, x in ((with_template, data), (without, data - template)))
    chex.assert_trees_all_close(np.asarray(one), template + np.asarray(other), atol=1e-11)


def test_single_precision():
    with jax.enable_x64(False):
        mechanism = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1.0, 1.0)
        data = curves().astype(np.float32)
        draws = mechanism.simulate(jax.random.key(0), data, 4)
        assert draws.dtype == jnp.float32
        assert bool(jnp.all(jnp.isfinite(draws)))


def test_a_record_tells_nothing_but_the_value():
    template = curves(1, 2, 32, seed=9)[0]
    mechanism = FunctionalGaussianMechanism(
        PeriodicKernel(0.5), [0.01, 0.02], 1.0, [0.3, 0.4], template, calibration="tight"
    )
    records = []
    for seed in (0, 1):
        release = mechanism.release(curves(12, 2, 32, seed=seed))
        record = json.loads(release.to_json())
        chex.assert_trees_all_close(np.array(record.pop("value")), release.value)
        record.pop("created")
        records.append(record)
    assert records[0] == records[1]
    record = records[0]
    assert record["guarantee"]["kind"] == "gdp"
    assert record["guarantee"]["mu"] == pytest.approx(0.5)
    assert record["guarantee"]["mu_per_curve"] == [0.3, 0.4]
    assert "Theorem M" in record["guarantee"]["theorem"]
    assert record["n"] == 12
    assert record["manifold"] == {"name": "L2", "curves": 2, "samples": 32}
    chex.assert_trees_all_close(np.array(record["scale"]), mechanism.scale(12))
    assert not np.array_equal(*(mechanism.release(curves(12, 2, 32)).value for _ in range(2))), "fresh entropy"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PeriodicKernel(0.0), "length_scale must be a finite number above 0"),
        (lambda: PeriodicKernel([0.5, -1.0]), "one per curve"),
        (lambda: PeriodicKernel(0.5, 1.5), "smoothness must be at most 1"),
        (lambda: PeriodicMatern(0.5, 1.0), "order must be 0.5, 1.5 or 2.5"),
        (lambda: IntervalKernel(0.5, 3.0), "order must be"),
        (lambda: RKHSMean(PeriodicKernel(0.5), 0.0), "penalty must be a finite number above 0"),
        (lambda: RKHSMean(PeriodicKernel(0.5), 0.1)(np.zeros((4, 8))), "shape (n, J, m)"),
        (lambda: RKHSMean(PeriodicKernel(0.1), 0.1)(np.zeros((4, 1, 20))), "sample the curves at 63 points or more"),
        (lambda: FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 0.0, 1.0), "norm_bound must be"),
        (lambda: FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, -1.0, 1.0), "norm_bound must be"),
        (lambda: FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, np.nan, 1.0), "norm_bound must be"),
        (lambda: FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1.0, [0.1, np.inf]), "mu must be finite"),
        (
            lambda: FunctionalGaussianMechanism(PeriodicKernel(0.5), [1.0] * 3, 1.0, [0.1] * 2),
            "numbers of curves: 2, 3",
        ),
        (lambda: FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1.0, 1.0, calibration="paper"), "calibration"),
        (lambda: FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1.0, 1.0, np.zeros(20)), "template must be"),
        (lambda: FunctionalGaussianMechanism(PeriodicKernel(0.1), 0.01, 1.0, 1.0, np.zeros((1, 20))), "too few"),
        (lambda: FunctionalGaussianMechanism(0.5, 0.01, 1.0, 1.0), "kernel must be a kernel"),
        (lambda: FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1.0, 1.0).guarantee, "number J of curves"),
        (lambda: FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1.0, 1.0).scale(1), "n >= 2"),
        (lambda: FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1.0, 1.0).scale(2.5), "an integer >= 2"),
        (lambda: FunctionalGaussianMechanism(PeriodicKernel(0.5), 1e-12, 1.0, 1.0), "penalty must be at least 1e-10"),
        (lambda: FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1.0, [1.0, 1.0]).guarantee_for(1), "for J=2"),
        (
            lambda: FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1.0, 1.0, np.zeros((1, 32))).scale(9, 64),
            "m=32",
        ),
        (
            lambda: FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1e308, 1.0).release(curves()),
            "beyond double precision",
        ),
        (
            lambda: FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1.0, 1.0).simulate(
                jax.random.key(0), curves(), 0
            ),
            "num must be",
        ),
        (lambda: RKHSMean(0.5, 0.1), "kernel must be a kernel"),
        (lambda: RKHSMean(PeriodicKernel(0.5), [0.1] * 3)(np.zeros((4, 2, 20))), "for J=3 curves"),
        (lambda: RKHSMean(PeriodicKernel(0.5), 0.1)(np.zeros((0, 2, 20))), "shape (n, J, m)"),
    ],
)
def test_wrong_parameters_are_told_in_one_sentence(make, message):
    with pytest.raises(ValueError) as refusal:
        make()
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([[[1.0, 2.0], [1.0]], [[1.0, 2.0], [3.0, 4.0]]], "nested lists must have equal lengths"),
        (np.zeros((5, 32)), "shape (n, J, m)"),
        (np.zeros((1, 2, 32)), "n >= 2"),
        (np.zeros((5, 3, 32)), "for J=2 curves"),
        (np.zeros((5, 0, 32)), "got data of shape"),
        (np.zeros((5, 2, 33)), "the template 32"),
        (np.zeros((5, 2, 32), complex), "real numbers"),
        (np.zeros((5, 2, 32), bool), "real numbers"),
        (np.array([["a"]]), "real numbers"),
    ],
)
def test_wrong_data_are_told_in_one_sentence(data, message):
    mechanism = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 1.0, [0.1, 0.1], np.zeros((2, 32)))
    with pytest.raises(ValueError) as refusal:
        mechanism.release(data)
    assert message in str(refusal.value)
    assert len(str(refusal.value)) < 200


# Design ----------------------------------------------------------------------------------------------------


def reference(n=60, m=40, seed=3):
    """Three smooth closed curves of different size and roughness."""
    random = np.random.default_rng(seed)
    t = 2 * np.pi * np.arange(m) / m
    out = np.zeros((n, 3, m))
    for j, (size, last) in enumerate(((1.0, 2), (0.5, 3), (0.2, 8))):
        for k in range(1, last + 1):
            mean, spread = size / k**1.5, 0.3 * size / k
            out[:, j] += (mean + spread * random.normal(size=(n, 1))) * np.cos(k * t)
            out[:, j] += spread * random.normal(size=(n, 1)) * np.sin(k * t)
    return out


def test_expected_error_is_that_of_simulation():
    n, data = 200, reference(200)
    mechanism = FunctionalGaussianMechanism(PeriodicKernel([0.5, 0.7, 0.9]), 0.02, 3.0, [0.2, 0.3, 0.4])
    error = expected_error(mechanism, data, n)
    mean = data.mean(axis=0)
    draws = np.asarray(mechanism.simulate(jax.random.key(0), data, 4000))
    squares = np.mean((draws - mean) ** 2, axis=-1)
    deviation = squares.std(axis=0) / math.sqrt(len(draws))
    # With n records as many as in the reference, their mean is the reference's.
    assert mechanism.norm_bound == 3.0
    assert np.all(np.abs(squares.mean(axis=0) - error.bias - error.noise) < 5 * deviation)
    chex.assert_trees_all_close(error.noise, np.square(mechanism.scale(n, 40)), rtol=1e-12)


def test_clipping_counts_as_error():
    data = reference(100)
    errors = []
    for bound in (3.0, 0.05):
        mechanism = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, bound, [5.0] * 3)
        errors.append(expected_error(mechanism, data, 100))
        draws = np.asarray(mechanism.simulate(jax.random.key(0), data, 2000))
        true = np.mean((draws - data.mean(axis=0)) ** 2)
        assert true == pytest.approx(errors[-1].total / 3, rel=0.05)
    assert errors[1].noise.sum() < errors[0].noise.sum()
    assert errors[1].total > errors[0].total


def test_the_optimal_design_is_better_than_any_near_it():
    n, data, total = 500, reference(), 1.0
    design = optimize_budget(PeriodicKernel(0.5), data, n, 3.0, total, groups=[0, 0, 1])
    found = design.mechanism
    assert found.guarantee.mu <= total
    assert found.guarantee.mu == pytest.approx(total, rel=1e-12)
    assert found.penalty[0] == found.penalty[1] != found.penalty[2]
    by_hand = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, 3.0, total / math.sqrt(3))
    assert design.error.total < 0.7 * expected_error(by_hand, data, n).total
    random = np.random.default_rng(0)
    for _ in range(10):
        # Another split, another penalty, another length scale.
        split = found.mu * np.exp(0.2 * random.normal(size=3))
        split *= total / np.linalg.norm(split)
        other = dataclasses.replace(found, mu=split)
        assert expected_error(other, data, n).total > design.error.total
        factor = np.exp(0.3 * random.normal())
        for change in (
            dataclasses.replace(found, penalty=found.penalty * factor),
            dataclasses.replace(
                found,
                kernel=dataclasses.replace(
                    found.kernel, length_scale=found.kernel.length_scale * max(factor, 1 / factor)
                ),
            ),
        ):
            assert expected_error(change, data, n).total > design.error.total * (1 - 2e-3)


def test_a_design_for_an_interval():
    data = np.cumsum(reference(20, 24), axis=-1) * 0.1
    design = optimize_budget(IntervalKernel(0.3, 1.5), data, 300, 3.0, 1.0, template=data.mean(axis=0), steps=40)
    first = FunctionalGaussianMechanism(IntervalKernel(0.3, 1.5), 0.01, 3.0, 1 / math.sqrt(3), data.mean(axis=0))
    assert design.error.total < expected_error(first, data, 300).total


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mu": 0.0}, "mu must be"),
        ({"groups": [0, 1]}, "groups needs a label"),
        ({"steps": 0}, "steps must be"),
        ({"n": 1}, "n >= 2"),
        ({"reference": reference()[:1]}, "n >= 2"),
        ({"reference": np.full((4, 3, 40), np.nan)}, "must be finite"),
        ({"norm_bound": -1.0}, "norm_bound must be"),
    ],
)
def test_wrong_designs_are_told_in_one_sentence(change, message):
    arguments = {"kernel": PeriodicKernel(0.5), "reference": reference(), "n": 100, "norm_bound": 1.0, "mu": 1.0}
    with pytest.raises(ValueError) as refusal:
        optimize_budget(**{**arguments, **change})
    assert message in str(refusal.value)


@pytest.mark.parametrize("kernel", [PeriodicKernel(0.5), IntervalKernel(0.2)])
def test_a_program_holds_no_matrix_of_constants(kernel):
    """One of distances took seconds to compile for some thousand samples."""
    program = jax.jit(lambda length: kernel.with_length(length).covariance(100)).lower(0.3).as_text()
    assert len(program) < 20_000
