"""Releases after a public number of proposals: neither the time nor anything else depends on how many were rejected.

The acceptance probability is bounded from below by public numbers, hence the probability eta that none of N proposals
is accepted; the public centre is released then. The result is (epsilon, (1 + e^epsilon) eta)-differentially private
(docs/mathematics.md, section 10).
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.bounds.comparison import h_max, h_min, log_area
from jaxgeodp.bounds.growth import GradientGrowth
from jaxgeodp.checks import InputError
from jaxgeodp.manifolds.manifold import real_dtype
from jaxgeodp.samplers.envelope import radial_envelope
from jaxgeodp.samplers.rejection import first_of_fixed_number
from jaxgeodp.statistics.statistic import FrechetMean

_MOST_PROPOSALS = 10_000_000


def proposals_needed(mechanism, n: int, log_eta: float) -> int:
    """N with (1 - p)^N <= eta, given by its logarithm, for the public lower bound p of the acceptance probability.

    Raises:
        ValueError: no bound is known, or N would exceed ten million.
    """
    name = type(mechanism).__name__
    if not isinstance(mechanism.statistic, FrechetMean):
        raise InputError(f"{name}: a fixed number of proposals is known to suffice for the Frechet mean only.")
    calibration = mechanism.calibrate(n)
    with jax.enable_x64(True):
        log_envelope = float(_log_envelope_mass(mechanism, calibration.scale, calibration.support))
    log_acceptance = min(_log_least_mass(mechanism, calibration) - log_envelope - 1e-9, -1e-300)
    needed = log_eta / math.log1p(-math.exp(log_acceptance)) if log_acceptance > -700 else math.inf
    if not needed <= _MOST_PROPOSALS:
        raise InputError(
            f"{name}: delta > 0 asks for a fixed number of proposals, which would be {needed:.3g} on "
            f"{mechanism.ball.manifold} with n = {n}; at most {_MOST_PROPOSALS:,} are made. Use delta = 0, "
            "WrappedLaplace or TangentLaplace."
        )
    return math.ceil(needed)


@functools.partial(jax.jit, static_argnames="count")
def draw_in_fixed_time(mechanism, key, data, scale, support, count):
    """A draw, or the public centre if no proposal was accepted."""
    home, records, back = mechanism._home(data)
    ball = home.ball
    center = home._center(records)
    center = jnp.where(jnp.all(jnp.isfinite(center)), center, jnp.asarray(ball.center, center.dtype))
    scale = jnp.asarray(scale, real_dtype(center))
    growth = _public_growth(mechanism, support)
    reach = _reach(mechanism, support)
    region = None if support is None else support.at_home

    def log_target(x, distance):
        # A proposal is accepted by the distance it was proposed at, as in `rejection_sample`.
        value = -(distance if mechanism._radial else home._finite_potential(x, center, records)) / scale
        return value if region is None else jnp.where(region.contains(x), value, -jnp.inf)

    value, found = first_of_fixed_number(key, ball.manifold, log_target, center, growth, scale, reach, count)
    return back(jnp.where(found, value, jnp.asarray(ball.center, value.dtype)))


@jax.jit
def _log_envelope_mass(mechanism, scale, support):
    """Log of the integral of what proposals are drawn from, over the area of the unit sphere."""
    envelope = radial_envelope(
        mechanism.ball.manifold, _public_growth(mechanism, support), scale, _reach(mechanism, support)
    )
    return jnp.log(jnp.sum(envelope.masses)) + jnp.max(envelope.heights)


def _reach(mechanism, support):
    """The largest distance at which proposals are made."""
    return mechanism.ball.manifold.diameter if support is None else support.radius + mechanism.ball.radius


def _public_growth(mechanism, support):
    """Theorem F with the largest variance that data in the ball can have, r^2."""
    manifold, r = mechanism.ball.manifold, mechanism.ball.radius
    lowest, highest = manifold.curvature_bounds
    if mechanism._radial or highest <= 0:
        return 1.0
    farthest = support.radius + r
    transverse, steepest = h_max(farthest, manifold.transverse_curvature), h_max(farthest, highest)
    bend = (1.0 - transverse) / farthest**2
    offset = (transverse - steepest) / farthest**2 * r**2
    rate = (1.0 - steepest) / farthest
    return GradientGrowth(jnp.asarray(bend * r**2), jnp.asarray(offset), bend * h_min(farthest, lowest), rate)


def _log_least_mass(mechanism, calibration) -> float:
    """Log of a lower bound of the integral of the density, over the area of the unit sphere; for any data."""
    manifold, r, scale = mechanism.ball.manifold, mechanism.ball.radius, float(calibration.scale)
    lowest = manifold.curvature_bounds[0]
    support, degree = calibration.support, manifold.dim - 1
    room = support.radius - r if support is not None else min(manifold.injectivity_radius, manifold.diameter)
    half = support is not None and room < 0.1 * scale

    def potential(t):
        """An upper bound of psi at distance t from its centre."""
        if mechanism._radial:
            return t
        smooth = np.array([h_min(2.0 * r + x, lowest) for x in np.atleast_1d(t)])
        return smooth * t

    if half:
        # The mean may lie at the rim. A ball of diameter tau that touches it from inside lies in the support.
        tau = min(manifold.dim * scale, r)
        nodes, weights = 0.25 * tau * (_gauss()[0] + 1.0), np.log(0.25 * tau * _gauss()[1])
        return float(-potential(tau).max() / scale + np.logaddexp.reduce(log_area(manifold, nodes) + weights))
    end = min(room, scale * (degree + 40.0 * math.sqrt(degree + 1.0) + 60.0))
    t, weights = 0.5 * end * (_gauss()[0] + 1.0), np.log(0.5 * end * _gauss()[1])
    return float(np.logaddexp.reduce(log_area(manifold, t) - potential(t) / scale + weights))


@functools.cache
def _gauss():
    """Nodes in [-1, 1] and weights."""
    return np.polynomial.legendre.leggauss(400)
