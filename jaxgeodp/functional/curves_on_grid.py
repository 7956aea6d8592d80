"""Private mean curves as integers with exact discrete Gaussian noise (docs/mathematics.md, Theorem N)."""

import collections
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.compiling import compiled_ahead, compiled_in_blocks
from jaxgeodp.functional.rkhs_mean import clipped
from jaxgeodp.privacy import grid
from jaxgeodp.releases.integers import Integers, Noisy, Sums
from jaxgeodp.releases.law import Terms
from jaxgeodp.samplers.discrete import discrete_gaussian


@dataclasses.dataclass(frozen=True, eq=False)
class CurveSums(Sums):
    """Of smoothed, whitened deviations.

    Each curve is in a ball whose radius is the largest that such a curve can have, so that one record moves the sum of
    the integers of a curve by twice the radius at most.

    Args:
        mechanism: `FunctionalGaussianMechanism`.
    """

    mechanism: Any

    @property
    @override
    def largest(self):
        return grid.STEPS

    @override
    def shape(self, record):
        return record

    def program(self, shape):
        """See `Sums.program`; of shape (n, J, m)."""
        _, curves, samples = shape.shape
        radii = _radii(self.mechanism, curves, samples)
        whitened_of = compiled_in_blocks(type(self.mechanism).__name__, _whitened, self.mechanism, shape)
        return lambda data: grid.sum_on_grid(whitened_of(self.mechanism, data), radii)


@dataclasses.dataclass(frozen=True, eq=False)
class CurveGrid(Integers):
    """How curves are released in integers.

    Args:
        mechanism: `FunctionalGaussianMechanism`.
        terms: of its law.
    """

    mechanism: Any
    terms: Terms

    @override
    def sums(self, shape):
        return CurveSums(self.mechanism).program(shape)

    def noisy(self, shape):
        """See `Integers.noisy`.

        Raises:
            ValueError: another calibration than "tight".
        """
        return _noisy(self.mechanism, self.terms, *shape)


def _radii(mechanism, curves, samples):
    return np.broadcast_to(mechanism.norm_bound * mechanism.gain(samples), curves)


def _noisy(mechanism, terms, curves, samples):
    if mechanism.calibration != "tight":
        raise InputError(f"{terms.mechanism}: numerics='grid' needs calibration='tight'.")
    n, radii = terms.n, _radii(mechanism, curves, samples).tolist()
    strengths = np.broadcast_to(mechanism.mu, curves).tolist()
    noises = [
        grid.gaussian_noise(2 * grid.STEPS, radius / grid.STEPS / n, mu)
        for radius, mu in zip(radii, strengths, strict=True)
    ]
    steps = np.array([noise.step for noise in noises])
    groups = collections.Counter(noise.scale for noise in noises)
    white = jax.ShapeDtypeStruct((curves, samples), jnp.float64)
    curves_of = compiled_ahead(terms.mechanism, _curves_of, mechanism, white)
    formula = f"2 norm_bound/n max sqrt(lambda)/(lambda + penalty): {2 * grid.STEPS} steps of the grid"
    terms = dataclasses.replace(
        terms,
        guarantee=grid.zcdp(noises),
        theorem="docs/mathematics.md, Theorem N",
        sensitivity=steps * [noise.sensitivity for noise in noises],
        formula=formula,
        sampler=grid.sampler(discrete_gaussian, [count * samples for count in groups.values()], groups),
        promises={"rho_per_curve": [grid.zcdp([noise]).rho for noise in noises]},
    )
    scale = steps * [noise.scale for noise in noises]
    return Noisy(terms, scale, grid.NOTE, lambda total: curves_of(mechanism, _with_noise(total, noises)))


@jax.jit
def _whitened(mechanism, data):
    """Smoothed deviations (n, J, m) in coordinates whose Euclidean norm is that of the kernel."""
    template = 0.0 if mechanism.template is None else jnp.asarray(mechanism.template, data.dtype)
    weights = jnp.asarray(mechanism.kernel.weights(data.shape[2]), data.dtype)
    deviations = clipped(data, template, jnp.asarray(mechanism.norm_bound, data.dtype), weights)
    spectrum = mechanism.kernel.spectrum(data.shape[2])
    values = spectrum.eigenvalues
    factors = jnp.sqrt(values) / (values + jnp.asarray(mechanism.penalty)[..., None])
    return spectrum.apply(factors, deviations) * jnp.sqrt(weights)


def _with_noise(total, noises):
    """Whitened curves (J, m) from sums of integers and noise; after the noise all is post-processing."""
    total, noisy = np.asarray(total), np.empty(np.shape(total))
    scales = np.array([noise.scale for noise in noises], object)
    for scale in dict.fromkeys(scales):  # curves with one scale together
        noisy[scales == scale] = grid.with_noise(discrete_gaussian, total[scales == scale], scale)
    return np.array([noise.step for noise in noises])[:, None] * noisy


@jax.jit
def _curves_of(mechanism, white):
    samples = white.shape[1]
    spectrum = mechanism.kernel.spectrum(samples)
    curves = spectrum.apply(jnp.sqrt(spectrum.eigenvalues), white / jnp.sqrt(mechanism.kernel.weights(samples)))
    return curves + (0.0 if mechanism.template is None else jnp.asarray(mechanism.template, white.dtype))
