"""Supposed error of computed Frechet means, from public numbers alone."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.domains.geodesic_ball import GeodesicBall

#: What a record says where a sensitivity relies on it.
SUPPOSED = "supposed: the computed mean is within eta of the exact one (docs/mathematics.md, section 13)"
_ROUNDING = 2.0**-52


def supposed_mean_error(ball: GeodesicBall, n: int) -> float:
    """Return eta = 1e-9 r + 64 sqrt(n) 2^-52 (|o| + r) exp(2 c r), in double precision (docs/mathematics.md, 13).

    Iterations stop within 1e-12 r; sums of n rounded terms have about sqrt(n) times the rounding of one. All is
    computed at home, so that coordinates have the size |o| + r, o being the point to which the centre is carried, and
    conditions of at most exp(2 c r), c being `Manifold.coordinate_growth`.
    """
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        size = float(np.linalg.norm(np.asarray(ball.manifold.home(jnp.asarray(ball.center)))))
    bend = math.exp(min(2.0 * ball.manifold.coordinate_growth * ball.radius, 100.0))
    return 1e-9 * ball.radius + 64.0 * math.sqrt(n) * _ROUNDING * (size + ball.radius) * bend


def of_computed_mean(exact: Sensitivity, ball: GeodesicBall, n: int) -> Sensitivity:
    """Return the sensitivity of the computed mean: that of the exact mean and twice the supposed error."""
    return Sensitivity(exact.value + 2.0 * supposed_mean_error(ball, n), f"{exact.formula} + 2 eta; {SUPPOSED}")
