"""Geodesic random-walk Metropolis: many chains in one program, for any log density on any manifold.

A chain's law is only approximately its target: a release made this way is not pure DP. The proposal is
y = exp_x(s z), z standard normal in an orthonormal frame of T_xM: symmetric, as the geodesic from y back to x has the
same length and exp the same Jacobian there. A rejected move repeats the state.
"""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.manifolds.manifold import Manifold, real_dtype

# Optimal for random walks in high dimension (Roberts, Gelman & Gilks 1997), and in one.
_TARGET = 0.234
_TARGET_IN_ONE_DIMENSION = 0.44
# Speed at which the step size forgets, in (0.5, 1].
_DECAY = 0.6


class Chains(NamedTuple):
    """Result of `metropolis`, for `samplers.diagnose`."""

    points: jax.Array  #: (num_chains, num_samples, \*shape)
    log_density: jax.Array  #: (num_chains, num_samples), of the points
    acceptance: jax.Array  #: (num_chains,), share of the moves after the warm-up that were accepted
    step_size: jax.Array  #: (num_chains,), as adapted in the warm-up


class WalkState(NamedTuple):
    """State of one chain between steps."""

    i: jax.Array  #: steps made
    z: jax.Array  #: the point
    potential_energy: jax.Array  #: minus the log density there
    accept_prob: jax.Array  #: of the last move
    mean_accept_prob: jax.Array  #: since the start of the warm-up, or since its end
    step_size: jax.Array
    rng_key: jax.Array


def start(potential: Callable, key, point, step_size) -> WalkState:
    """Return a chain at ``point``."""
    energy = potential(point)
    zero = jnp.zeros((), energy.dtype)
    return WalkState(jnp.int32(0), point, energy, zero, zero, jnp.asarray(step_size, energy.dtype), key)


def step(
    manifold: Manifold, potential: Callable, state: WalkState, num_warmup: int | jax.Array, target: float
) -> WalkState:
    """Make one move; the step size is adapted (Robbins-Monro) in the first ``num_warmup`` moves only."""
    key, move_key, accept_key = jax.random.split(state.rng_key, 3)
    tangent = manifold.random_tangent(move_key, state.z)
    point = manifold.project(manifold.exp(state.z, (state.step_size * tangent).astype(state.z.dtype)))
    energy: jax.Array = potential(point)
    energy = jnp.where(jnp.isnan(energy), jnp.inf, energy)
    # Between points of density zero there are no moves.
    accept_prob = jnp.where(energy == jnp.inf, 0.0, jnp.exp(jnp.minimum(state.potential_energy - energy, 0.0)))
    accept = jax.random.uniform(accept_key, (), energy.dtype) < accept_prob
    warm: jax.Array = state.i < num_warmup
    count = jnp.where(warm, state.i + 1, state.i + 1 - num_warmup)
    gain = (count.astype(energy.dtype)) ** -_DECAY
    # Where all of a compact manifold is near, no step size is long enough for the target.
    longest = 2.0 * manifold.injectivity_radius or math.inf
    adapted = jnp.minimum(state.step_size * jnp.exp(gain * (accept_prob - target)), longest)
    return WalkState(
        state.i + 1,
        jnp.where(accept, point, state.z),
        jnp.where(accept, energy, state.potential_energy),
        accept_prob,
        state.mean_accept_prob + (accept_prob - state.mean_accept_prob) / count,
        jnp.where(warm, adapted, state.step_size),
        key,
    )


def target_acceptance(manifold: Manifold) -> float:
    """Return the acceptance rate to which the step size is adapted."""
    return _TARGET_IN_ONE_DIMENSION if manifold.dim == 1 else _TARGET


def metropolis(
    key: jax.Array,
    manifold: Manifold,
    log_density: Callable,
    init: jax.Array,
    num_samples: int,
    num_burnin: int = 1000,
    thin: int = 1,
    step_size: float = 0.1,
    num_chains: int = 4,
) -> Chains:
    """Run random-walk chains with respect to the volume measure; not exact, see `rejection_sample`.

    Args:
        key: JAX random key.
        manifold: any; complete ones only keep the walk inside by themselves.
        log_density: unnormalised log density of one point; minus infinity (or NaN) is never entered.
        init: one point (\\*shape) for all chains, or (num_chains, \\*shape), where the density is positive.
        num_samples: points kept per chain.
        num_burnin: moves before the first; the step size is adapted during these and fixed afterwards.
        thin: moves per point kept; those between are not stored.
        step_size: length of a move per dimension, at the start.
        num_chains: chains, run side by side.

    Returns:
        `Chains`. Jit- and vmap-compatible; precision is that of ``init``.

    Raises:
        ValueError: a count is not a positive integer, or ``init`` has a wrong shape.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxgeodp import Sphere
        >>> from jaxgeodp.samplers import metropolis
        >>> pole = jnp.array([0.0, 0.0, 1.0])
        >>> chains = metropolis(jax.random.key(0), Sphere(2), lambda x: 5.0 * x @ pole, pole, 100)
        >>> chains.points.shape
        (4, 100, 3)
    """
    for label, count in (("num_samples", num_samples), ("thin", thin), ("num_chains", num_chains)):
        positive_integer("metropolis", label, count, 1)
    positive_integer("metropolis", "num_burnin", num_burnin, 0)
    init = jnp.asarray(init)
    if init.shape not in (manifold.shape, (num_chains, *manifold.shape)):
        raise InputError(
            f"metropolis: init must have the shape of a point, {manifold.shape}, or one point per chain, "
            f"got {init.shape}."
        )
    points = jnp.broadcast_to(init, (num_chains, *manifold.shape))
    dtype = real_dtype(init)
    return _run(key, manifold, log_density, points, jnp.asarray(step_size, dtype), num_samples, num_burnin, thin)


# Compiled once per log density: pass the same function object again.
@functools.partial(jax.jit, static_argnames=("manifold", "log_density", "num_samples", "num_burnin", "thin"))
def _run(key, manifold, log_density, points, step_size, num_samples, num_burnin, thin):
    def potential(x):
        return -jnp.asarray(log_density(x), step_size.dtype)

    move = functools.partial(step, manifold, potential, num_warmup=num_burnin, target=target_acceptance(manifold))

    def chain(chain_key, point):
        state = start(potential, chain_key, point, step_size)
        state = jax.lax.fori_loop(0, num_burnin, lambda _, s: move(s), state)

        def keep(s, _):
            s = jax.lax.fori_loop(0, thin, lambda _, t: move(t), s)
            return s, (s.z, -s.potential_energy)

        state, (kept, values) = jax.lax.scan(keep, state, length=num_samples)
        return Chains(kept, values, state.mean_accept_prob, state.step_size)

    return jax.vmap(chain)(jax.random.split(key, points.shape[0]), points)
