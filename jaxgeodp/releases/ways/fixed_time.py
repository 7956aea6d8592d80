"""Releases after a public number of proposals: neither the time nor anything else depends on how many were rejected.

The acceptance probability is bounded from below by public numbers, hence the probability eta that none of N proposals
is accepted; the public centre is released then. What was (epsilon, delta)-differentially private is then
(epsilon, delta + (1 + e^epsilon) eta)-differentially private (docs/mathematics.md, section 10).
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.bounds.comparison import log_area
from jaxgeodp.checks import InputError
from jaxgeodp.compiling import compiled_ahead
from jaxgeodp.manifolds.manifold import real_dtype
from jaxgeodp.privacy.entropy import public_key, system_key
from jaxgeodp.privacy.guarantee import ApproximateDP, GaussianDP, PureDP
from jaxgeodp.privacy.release import idealized
from jaxgeodp.releases.density import DensityLaw, PublicBounds
from jaxgeodp.releases.law import Ready
from jaxgeodp.releases.ways.way import Way
from jaxgeodp.samplers.envelope import radial_envelope
from jaxgeodp.samplers.rejection import first_of_fixed_number

_MOST_PROPOSALS = 10_000_000
_PROOF = "fixed number of proposals: docs/mathematics.md, section 10"


@dataclasses.dataclass(frozen=True)
class FixedTime(Way):
    """The first accepted of a public number of proposals: (epsilon, delta)-DP.

    Args:
        delta: in (0, 1).
    """

    delta: float
    option = "delta"

    @override
    def ready(self, law, shape):
        terms = law.terms
        assert isinstance(law, DensityLaw)  # as the mechanism says
        supposed = _bounds(law).supposed
        epsilon, spare = _promised(terms, self.delta)
        guarantee = ApproximateDP(epsilon, self.delta)
        log_eta = math.log(spare) - float(np.logaddexp(0.0, guarantee.epsilon))
        law.target.check(law)
        law.check_precision(shape)
        count = proposals_needed(law, log_eta)
        program = compiled_ahead(
            terms.mechanism, draw_in_fixed_time, law, public_key(), shape, passes=count, count=count
        )
        terms = dataclasses.replace(
            terms,
            guarantee=guarantee,
            theorem="; ".join(filter(None, [terms.theorem, _PROOF, supposed])),
            sampler={
                "name": "first accepted of a public number of proposals",
                "exactness": f"within total variation e^{math.ceil(1e3 * log_eta) / 1e3:.3f}",
            },
        )
        note = idealized("; ".join(filter(None, ["the number of proposals does not depend on the data", supposed])))
        return Ready(terms, law.scale, note, lambda records: program(law, system_key(), records), law.order_matters)


def _promised(terms, delta):
    """Epsilon of the exact law, and what is left of delta: half of it where the exact law has a delta, too."""
    ApproximateDP(1.0, delta)  # checks
    if isinstance(terms.guarantee, GaussianDP):
        return terms.guarantee.to_approximate(0.5 * delta).epsilon, 0.5 * delta
    if isinstance(terms.guarantee, PureDP):
        return terms.guarantee.epsilon, delta
    raise InputError(f"{terms.mechanism}: delta needs a proven guarantee in epsilon or mu.")


def proposals_needed(law: DensityLaw, log_eta: float) -> int:
    """N with (1 - p)^N <= eta, given by its logarithm, for the public lower bound p of the acceptance probability.

    Raises:
        ValueError: N would exceed ten million.
    """
    with jax.enable_x64(True):
        log_envelope = float(_log_envelope_mass(law))
    log_acceptance = min(log_least_mass(law) - log_envelope - 1e-9, -1e-300)
    needed = log_eta / math.log1p(-math.exp(log_acceptance)) if log_acceptance > -700 else math.inf
    if not needed <= _MOST_PROPOSALS:
        raise InputError(
            f"{law.terms.mechanism}: delta > 0 asks for a fixed number of proposals, which would be {needed:.3g} on "
            f"{law.ball.manifold} with n = {law.terms.n}; at most {_MOST_PROPOSALS:,} are made. Use delta = 0, "
            "WrappedLaplace or TangentLaplace."
        )
    return math.ceil(needed)


@functools.partial(jax.jit, static_argnames="count")
def draw_in_fixed_time(law: DensityLaw, key, records, count: int):
    """Return a draw, or the public centre if no proposal was accepted."""
    home, points, back = law.at_home(records)
    ball, center = home.ball, home.center(points)
    temperature = law.target.temperature(jnp.asarray(law.scale, real_dtype(center)))
    growth, level = _bounds(law).growth, law.target.level(ball, center, points)

    def log_target(x, distance):
        # A proposal is accepted by the distance it was proposed at, as in `rejection_sample`.
        psi = distance if law.target.radial else home.potential(x, center, points) - level
        inside = True if home.support is None else home.support.contains(x)
        return jnp.where(inside, -psi / temperature, -jnp.inf)

    value, found = first_of_fixed_number(
        key, ball.manifold, log_target, center, growth, temperature, _reach(law), count
    )
    return back(jnp.where(found, value, jnp.asarray(ball.center, value.dtype)))


@jax.jit
def _log_envelope_mass(law):
    """Log of the integral of what proposals are drawn from, over the area of the unit sphere."""
    growth = _bounds(law).growth
    envelope = radial_envelope(law.ball.manifold, growth, law.target.temperature(law.scale), _reach(law))
    return jnp.log(jnp.sum(envelope.masses)) + jnp.max(envelope.heights)


def _bounds(law) -> PublicBounds:
    bounds = law.target.public_bounds(law.ball, law.support, law.target.temperature(law.scale))
    assert bounds is not None  # as the mechanism says
    return bounds


def _reach(law):
    """The largest distance at which proposals are made."""
    return law.ball.manifold.diameter if law.support is None else law.support.radius + law.ball.radius


def log_least_mass(law: DensityLaw) -> float:
    """Log of a lower bound of the integral of the density, over the area of the unit sphere; for any data."""
    manifold, r, support = law.ball.manifold, law.ball.radius, law.support
    scale = float(law.target.temperature(law.scale))
    potential, degree = _bounds(law).upper, manifold.dim - 1

    def within(most, length):
        return _last(lambda t: float(np.max(potential(t))) <= most * scale, length)

    def mass(end):
        t, weights = 0.5 * end * (_gauss()[0] + 1.0), np.log(0.5 * end * _gauss()[1])
        return log_area(manifold, t) + weights, t

    room = support.radius - r if support is not None else min(manifold.injectivity_radius, manifold.diameter)
    found = [-math.inf]
    if room > 0.0:
        area, t = mass(within(degree + 40.0 * math.sqrt(degree + 1.0) + 60.0, room))
        found.append(float(np.logaddexp.reduce(area - potential(t) / scale)))
    if support is not None:
        # The mean may lie at the rim. A ball of diameter tau that touches it from inside lies in the support.
        tau = within(manifold.dim, min(r, support.radius))
        found.append(float(-np.max(potential(tau)) / scale + np.logaddexp.reduce(mass(0.5 * tau)[0])))
    return max(found)


def _last(holds, length):
    """The last distance up to ``length``, perhaps infinite, for which something holds that ends once, by bisection."""
    high = min(length, 1.0)
    while high < length and holds(high):
        high = min(2.0 * high, length)
    if holds(high):
        return high
    low = 0.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high


@functools.cache
def _gauss():
    """Nodes in [-1, 1] and weights."""
    return np.polynomial.legendre.leggauss(400)
