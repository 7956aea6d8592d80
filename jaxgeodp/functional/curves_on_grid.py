"""Private mean curves as integers with exact discrete Gaussian noise (docs/mathematics.md, Theorem N)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.functional.rkhs_mean import clipped
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.guarantee import Guarantee
from jaxgeodp.samplers.discrete import discrete_gaussian

# Numbers that a block of records holds.
_BLOCK = 2**22


class Procedure(NamedTuple):
    """How curves are released."""

    draw: Callable[[], np.ndarray]
    guarantee: Guarantee
    theorem: str
    sensitivity: Any
    formula: str
    scale: Any
    sampler: dict[str, str]
    note: str
    promises: dict[str, list[float]]


def curves_on_grid(mechanism, data) -> Procedure:
    """The procedure for records (n, J, m); nothing is drawn yet.

    Every record becomes integers: its smoothed, whitened deviations, each curve in a ball whose radius is the largest
    that such a curve can have, so that one record moves the sum of the integers of a curve by twice the radius at most.
    """
    if mechanism.calibration != "tight":
        raise InputError(f"{type(mechanism).__name__}: numerics='grid' needs calibration='tight'.")
    n, curves, samples = data.shape
    radii = np.broadcast_to(mechanism.norm_bound * mechanism._factor(samples), curves).tolist()
    strengths = np.broadcast_to(mechanism.mu, curves).tolist()
    noises = [
        grid.gaussian_noise(2 * grid.STEPS, radius / grid.STEPS / n, mu)
        for radius, mu in zip(radii, strengths, strict=True)
    ]
    steps = np.array([noise.step for noise in noises])
    total = _sum_of_integers(mechanism, data, np.array(radii))
    return Procedure(
        lambda: _around(mechanism, total, noises),
        grid.zcdp(noises),
        "docs/mathematics.md, Theorem N",
        steps * [noise.sensitivity for noise in noises],
        f"2 norm_bound/n max sqrt(lambda)/(lambda + penalty): {2 * grid.STEPS} steps of the grid",
        steps * [noise.scale for noise in noises],
        {"name": "discrete_gaussian (Canonne, Kamath & Steinke 2020)", "exactness": "exact, in integers"},
        grid.NOTE,
        {"rho_per_curve": [grid.zcdp([noise]).rho for noise in noises]},
    )


def _sum_of_integers(mechanism, data, radii):
    """(J, m) integers: private."""
    block = max(1, _BLOCK // (data.shape[1] * data.shape[2]))
    parts = (_whitened(mechanism, data[j : j + block]) for j in range(0, data.shape[0], block))
    return sum(np.sum(grid.to_grid(part, radii), axis=0) for part in parts)


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


def _around(mechanism, total, noises):
    """Curves (J, m) from the sums of integers and noise; after the noise all is post-processing."""
    white = np.stack(
        [
            noise.step * grid.with_noise(discrete_gaussian, row, noise.scale)
            for row, noise in zip(total, noises, strict=True)
        ]
    )
    return np.asarray(_curves_of(mechanism, white))


@jax.jit
def _curves_of(mechanism, white):
    samples = white.shape[1]
    spectrum = mechanism.kernel.spectrum(samples)
    curves = spectrum.apply(jnp.sqrt(spectrum.eigenvalues), white / jnp.sqrt(mechanism.kernel.weights(samples)))
    return curves + (0.0 if mechanism.template is None else jnp.asarray(mechanism.template, white.dtype))
