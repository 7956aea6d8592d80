"""Private mean curves as integers with exact discrete Gaussian noise (docs/mathematics.md, Theorem N)."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.compiling import compiled_ahead, compiled_in_blocks
from jaxgeodp.functional.rkhs_mean import clipped
from jaxgeodp.privacy import grid
from jaxgeodp.releases.law import Ready, Terms
from jaxgeodp.samplers.discrete import discrete_gaussian

# Numbers that a block of records holds.
_BLOCK = 2**22


def curves_on_grid(mechanism, terms: Terms, shape: jax.ShapeDtypeStruct) -> Ready:
    """The release for records of ``shape`` (n, J, m); none is looked at, nothing is drawn yet.

    Every record becomes integers: its smoothed, whitened deviations, each curve in a ball whose radius is the largest
    that such a curve can have, so that one record moves the sum of the integers of a curve by twice the radius at most.

    Raises:
        ValueError: another calibration than "tight".
    """
    if mechanism.calibration != "tight":
        raise InputError(f"{terms.mechanism}: numerics='grid' needs calibration='tight'.")
    n, curves, samples = shape.shape
    radii = np.broadcast_to(mechanism.norm_bound * mechanism.gain(samples), curves).tolist()
    strengths = np.broadcast_to(mechanism.mu, curves).tolist()
    noises = [
        grid.gaussian_noise(2 * grid.STEPS, radius / grid.STEPS / n, mu)
        for radius, mu in zip(radii, strengths, strict=True)
    ]
    steps = np.array([noise.step for noise in noises])
    steps_of = _sum_of_integers(mechanism, shape, np.array(radii))
    white = jax.ShapeDtypeStruct((curves, samples), jnp.float64)
    curves_of = compiled_ahead(terms.mechanism, _curves_of, mechanism, white)
    formula = f"2 norm_bound/n max sqrt(lambda)/(lambda + penalty): {2 * grid.STEPS} steps of the grid"
    terms = dataclasses.replace(
        terms,
        guarantee=grid.zcdp(noises),
        theorem="docs/mathematics.md, Theorem N",
        sensitivity=steps * [noise.sensitivity for noise in noises],
        formula=formula,
        sampler={"name": "discrete_gaussian (Canonne, Kamath & Steinke 2020)", "exactness": "exact, in integers"},
        promises={"rho_per_curve": [grid.zcdp([noise]).rho for noise in noises]},
    )
    scale = steps * [noise.scale for noise in noises]
    return Ready(terms, scale, grid.NOTE, lambda data: curves_of(mechanism, _with_noise(steps_of(data), noises)))


def _sum_of_integers(mechanism, shape, radii):
    """What makes the (J, m) integers, private, of records of this shape; compiled."""
    _, curves, samples = shape.shape
    rows = max(1, _BLOCK // (curves * samples))
    whitened_of = compiled_in_blocks(type(mechanism).__name__, _whitened, mechanism, shape, rows=rows)
    return lambda data: grid.sum_on_grid(whitened_of(mechanism, data), radii)


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
    return np.stack(
        [
            noise.step * grid.with_noise(discrete_gaussian, row, noise.scale)
            for row, noise in zip(total, noises, strict=True)
        ]
    )


@jax.jit
def _curves_of(mechanism, white):
    samples = white.shape[1]
    spectrum = mechanism.kernel.spectrum(samples)
    curves = spectrum.apply(jnp.sqrt(spectrum.eigenvalues), white / jnp.sqrt(mechanism.kernel.weights(samples)))
    return curves + (0.0 if mechanism.template is None else jnp.asarray(mechanism.template, white.dtype))
