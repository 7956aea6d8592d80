"""Choice of length scale, penalty and budget split from public curves, before any private data are touched."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxgeodp.checks import InputError, positive_integer, positive_number
from jaxgeodp.domains.records import record_count
from jaxgeodp.functional.gaussian_process import FunctionalGaussianMechanism
from jaxgeodp.functional.kernels import Kernel, positive_numbers
from jaxgeodp.functional.rkhs_mean import clipped


class ExpectedError(NamedTuple):
    """Expected squared L2 error of each curve, (J,), of a release against the mean of the raw curves."""

    bias: np.ndarray  #: of smoothing and clipping, (J,)
    noise: np.ndarray  #: of privacy, (J,)

    @property
    def total(self) -> float:
        """Return bias and noise summed over all curves."""
        return float(np.sum(self.bias) + np.sum(self.noise))


class Design(NamedTuple):
    """Result of `optimize_budget`."""

    mechanism: FunctionalGaussianMechanism  #: of the budget that was asked for, all curves together
    error: ExpectedError  #: expected on curves like the reference ones


def expected_error(mechanism: FunctionalGaussianMechanism, reference, n: int) -> ExpectedError:
    """Return bias and noise of a release for n records like public reference curves, in closed form.

    The bias is |f - K (K + penalty)^-1 g|^2 with f the mean of n curves and g that of the clipped ones, the noise
    scale^2 sum lambda = scale^2 (docs/mathematics.md, section 12).

    Args:
        mechanism: what is to be released.
        reference: public or synthetic curves (n_reference, J, m), at least 2.
        n: number of private records.

    Returns:
        Bias and noise of each curve, as mean squares over its samples.

    Raises:
        ValueError: shapes do not fit, a reference curve is not finite, or n is no number of records.
    """
    with jax.enable_x64(True):
        curves = _public(mechanism, "expected_error", reference)
        moments = _moments(mechanism, curves)
        bias = _bias(mechanism.kernel, jnp.asarray(mechanism.penalty), *moments, len(curves), record_count(n))
        noise = np.broadcast_to(np.square(mechanism.scale(n, curves.shape[2])), curves.shape[1])
        return ExpectedError(np.asarray(bias), np.array(noise))


def optimize_budget(
    kernel: Kernel,
    reference,
    n: int,
    norm_bound,
    mu: float,
    template=None,
    groups: Sequence[int] | np.ndarray | None = None,
    steps: int = 500,
    optimizer: Any = None,
) -> Design:
    """Return the mechanism of least expected error on curves like the reference ones, for a total budget mu.

    Length scale and penalty are found by an optimizer of optax, shared within groups of curves; the best split of the
    budget has a closed form, mu_j^2 proportional to the sensitivity of curve j (docs/mathematics.md, section 12).
    All arguments are public: nothing here may be private data.

    Args:
        kernel: where the search starts.
        reference: public or synthetic curves (n_reference, J, m), at least 2.
        n: number of private records.
        norm_bound: see `FunctionalGaussianMechanism`.
        mu: the guarantee of all curves together.
        template: see `FunctionalGaussianMechanism`.
        groups: a label for each curve; equal labels share length scale and penalty. One group by default.
        steps: of the optimizer.
        optimizer: of optax; ``optax.adam(0.05)`` by default.

    Returns:
        The mechanism, with one length scale, penalty and mu for each curve (one length scale for all, if there is one
        group), and its `expected_error`.

    Raises:
        ValueError: a parameter is out of range, shapes do not fit, or a reference curve is not finite.
    """
    positive_number("optimize_budget", "mu", mu)
    positive_integer("optimize_budget", "steps", steps, 1)
    with jax.enable_x64(True):
        norm_bound = positive_numbers("optimize_budget", "norm_bound", norm_bound)
        start = FunctionalGaussianMechanism(kernel, 1.0, norm_bound, 1.0, template)
        curves = _public(start, "optimize_budget", reference)
        count, samples = curves.shape[1:]
        labels = np.unique(_labels(groups, count), return_inverse=True)[1].reshape(-1)
        mean, spread = _moments(start, curves)
        problem = _Problem(
            mean,
            spread,
            jnp.asarray(np.broadcast_to(norm_bound, count)),
            jnp.asarray(kernel.extent / samples),
            jnp.asarray(float(mu)),
            jnp.asarray(float(len(curves))),
            jnp.asarray(float(record_count(n))),
        )
        first = _first_guess(kernel, problem, labels)
        optimizer = _adam() if optimizer is None else optimizer
        found = _search(optimizer, steps, problem, kernel, labels, first)
        length, penalty = (np.asarray(x) for x in _parameters(found, problem, labels))
        if labels.max() == 0:
            length = length[0]  # one decomposition serves all curves
        chosen = dataclasses.replace(kernel, length_scale=length)
        probe = FunctionalGaussianMechanism(chosen, penalty, norm_bound, 1.0, template)
        weights = np.broadcast_to(probe.sensitivity(n, samples), count)
        # A hair below the total, so that rounding never spends more.
        split = mu * np.sqrt(weights / weights.sum()) * (1.0 - 4.0 * np.finfo(float).eps)
        mechanism = FunctionalGaussianMechanism(chosen, penalty, norm_bound, split, template)
        return Design(mechanism, expected_error(mechanism, np.asarray(curves), n))


@functools.cache
def _adam():
    """Return the same cached optimizer each time: a new one would make each design compile its search anew."""
    return optax.adam(0.05)


class _Problem(NamedTuple):
    """Public arrays of the search."""

    mean: jax.Array  #: of the reference curves' deviations from the template, raw and clipped, (2, J, m)
    spread: jax.Array  #: a root of their covariance: (2, n_reference, J, m), over sqrt(n_reference - 1)
    norm_bound: jax.Array
    shortest: jax.Array  #: length scale that the samples resolve
    mu: jax.Array
    reference: jax.Array  #: how many reference records
    n: jax.Array


def _public(mechanism, owner, reference):
    """Return the reference curves; refuse non-finite ones, as they are public."""
    curves = mechanism.domain.records(owner, reference).astype(float)
    record_count(len(curves))
    if not bool(jnp.all(jnp.isfinite(curves))):
        raise InputError(f"{owner}: the reference curves must be finite; leave out those that are not.")
    return curves


def _labels(groups, count):
    labels = np.zeros(count, int) if groups is None else np.asarray(groups)
    if labels.shape != (count,):
        raise InputError(f"optimize_budget: groups needs a label for each of {count} curves, got {labels.shape}.")
    return labels


def _moments(mechanism, curves):
    """Return means of raw and clipped deviations, and deviations from these over sqrt(n - 1)."""
    template = 0.0 if mechanism.template is None else mechanism.template
    return _moments_about(template, mechanism.norm_bound, mechanism.kernel.weights(curves.shape[2]), curves)


@jax.jit
def _moments_about(template, norm_bound, weights, curves):
    both = jnp.stack([curves - template, clipped(curves, template, norm_bound, weights)])
    mean = jnp.mean(both, axis=1)
    return mean, (both - mean[:, None]) / jnp.sqrt(len(curves) - 1.0)


@jax.jit
def _bias(kernel, penalty, mean, spread, reference, n):
    """Return E |f - K (K + penalty)^-1 g|^2 for the mean f of n curves and that of the clipped ones g, (J,)."""
    weights = jnp.asarray(kernel.weights(mean.shape[-1]))

    def energy(both):
        rest = both[0] - kernel.smooth(both[1], penalty)
        return jnp.sum(weights * rest**2, axis=-1)

    variance = jnp.sum(energy(spread), axis=0)
    # The reference mean itself varies.
    return jnp.maximum(energy(mean) - variance / reference, 0.0) + variance / n


def _first_guess(kernel, problem, labels):
    """Return log starting values per group: the kernel's own length scale, and the penalty 0.01."""
    groups = labels.max() + 1
    length = np.broadcast_to(kernel.length_scale, len(labels))
    length = np.array([length[labels == g].mean() for g in range(groups)])
    excess = np.maximum(length - float(problem.shortest), 1e-3 * float(problem.shortest))
    return jnp.log(jnp.asarray(excess)), jnp.full(groups, np.log(0.01))


def _parameters(logs, problem, labels):
    length, penalty = (jnp.exp(x)[labels] for x in logs)
    return problem.shortest + length, penalty


@functools.partial(jax.jit, static_argnums=(0, 1))
def _search(optimizer, steps, problem, kernel, labels, first):
    """Return the best parameters that the optimizer visited."""

    def objective(logs):
        length, penalty = _parameters(logs, problem, labels)
        chosen = kernel.with_length(length)
        values = chosen.spectrum(problem.mean.shape[-1]).eigenvalues
        factor = jnp.max(jnp.sqrt(values) / (values + penalty[:, None]), axis=-1)
        # sum_j sensitivity_j^2/mu_j^2 with the best split of mu^2.
        noise = jnp.sum(2.0 * problem.norm_bound / problem.n * factor) ** 2 / problem.mu**2
        return jnp.sum(_bias(chosen, penalty, problem.mean, problem.spread, problem.reference, problem.n)) + noise

    def step(carry, _):
        logs, state, best, least = carry
        value, gradient = jax.value_and_grad(objective)(logs)
        better = value < least
        best = jax.tree.map(lambda new, old: jnp.where(better, new, old), logs, best)
        updates, state = optimizer.update(gradient, state, logs)
        return (optax.apply_updates(logs, updates), state, best, jnp.minimum(value, least)), None

    start = first, optimizer.init(first), first, jnp.asarray(jnp.inf)
    return jax.lax.scan(step, start, None, length=steps)[0][2]
