"""Markov chains of Soto et al. 2022 (supplement 2.3.2, 2.4.2, 2.5.1), to reproduce figures; their laws are wrong.

As printed a rejected move is not counted but drawn again: the chain keeps accepted moves only, and its law is not the
target. On covariance matrices and shapes the proposal is not symmetric either. Repeating the state on rejection
(``as_printed=False``) mends the first mistake, not the second; `metropolis` has neither.
"""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxgeodp.checks import InputError, positive_integer, positive_number
from jaxgeodp.manifolds import SPD, PlanarShapes, Sphere
from jaxgeodp.manifolds.manifold import real_dtype
from jaxgeodp.samplers.random_walk import Chains

# Proposals per accepted move after which a chain that keeps accepted moves only stands still.
_TRIES = 1000


@dataclasses.dataclass(frozen=True)
class PaperChain:
    """Settings of one simulation of the paper.

    Attributes:
        source: where they are printed.
        manifold: the class of the manifold.
        propose: ``(manifold, key, point, scale) -> tangent vector`` before the factor ``step``.
        step: t; a guess where the paper says that it was tuned.
        burnin, thin: moves; kept moves only, as printed.
        law: what is wrong with it.
    """

    source: str
    manifold: type
    propose: Callable
    step: float
    burnin: int
    thin: int
    law: str


def _on_matrices(manifold, key, point, scale):
    """Return vech^-1 of uniform numbers in [-1/2, 1/2], times sigma, whatever the point."""
    rows, columns = jnp.tril_indices(manifold.size)
    entries = jax.random.uniform(key, rows.shape, point.dtype, -0.5, 0.5)
    lower = jnp.zeros_like(point).at[rows, columns].set(entries)
    return scale * (lower + jnp.tril(lower, -1).T)


def _on_spheres(manifold, key, point, scale):
    """Return a normal vector of the ambient space, scaled to length sigma, then projected."""
    normal = jax.random.normal(key, point.shape, point.dtype)
    return manifold.to_tangent(point, scale * normal / jnp.linalg.norm(normal))


def _on_shapes(manifold, key, point, scale):
    """Return uniform numbers in [0, 1], centred, then projected."""
    parts = jax.random.uniform(key, (2, *point.shape), real_dtype(point))
    vector = jax.lax.complex(parts[0], parts[1])
    return manifold.to_tangent(point, vector - jnp.mean(vector))


_ASYMMETRIC = "wrong law: accepted moves only, and the proposal is not symmetric"
PAPER_CHAINS = {
    "matrices": PaperChain("supplement 2.3.2", SPD, _on_matrices, 1.0, 5000, 5000, _ASYMMETRIC),
    "sphere": PaperChain("supplement 2.4.2", Sphere, _on_spheres, 0.5, 20000, 600, "wrong law: accepted moves only"),
    "shapes": PaperChain("supplement 2.5.1", PlanarShapes, _on_shapes, 0.01, 7500, 100, _ASYMMETRIC),
}


def paper_chain(
    key: jax.Array,
    name: str,
    mechanism,
    data,
    num_samples: int,
    num_chains: int = 1,
    as_printed: bool = True,
    burnin: int | None = None,
    thin: int | None = None,
    step: float | None = None,
) -> Chains:
    """Run a chain of the paper for the law of ``mechanism`` given ``data``, started at the statistic.

    Args:
        key: JAX random key.
        name: "matrices", "sphere" or "shapes", a key of `PAPER_CHAINS`.
        mechanism: a `KNGMechanism`, usually with ``calibration="paper"``.
        data: (n, \\*shape), in the ball of the mechanism.
        num_samples: points kept per chain.
        num_chains: chains, side by side.
        as_printed: keep accepted moves only; False repeats the state when a move is rejected.
        burnin, thin, step: other settings than the paper's, which are in `PAPER_CHAINS`.

    Returns:
        `jaxgeodp.samplers.Chains`, with points (num_chains, num_samples, \\*shape); its acceptance counts all
        proposals.

    Raises:
        ValueError: unknown name, or another manifold.
    """
    if name not in PAPER_CHAINS:
        raise InputError(f"paper_chain: name must be one of {', '.join(PAPER_CHAINS)}, got {name!r}.")
    preset = PAPER_CHAINS[name]
    if type(mechanism.ball.manifold) is not preset.manifold:
        raise InputError(f"paper_chain: {name!r} needs {preset.manifold.__name__}, got {mechanism.ball.manifold}.")
    burnin, thin = preset.burnin if burnin is None else burnin, preset.thin if thin is None else thin
    step = preset.step if step is None else step
    for label, count, least in (
        *(("num_samples", num_samples, 1), ("num_chains", num_chains, 1)),
        *(("burnin", burnin, 0), ("thin", thin, 1)),
    ):
        positive_integer("paper_chain", label, count, least)
    positive_number("paper_chain", "step", step)
    counts = num_samples, burnin, thin
    keys = jax.random.split(key, num_chains)
    law = mechanism.law(jnp.shape(data)[0])
    return _run(name, law, keys, jnp.asarray(data), step, as_printed, counts)


@functools.partial(jax.jit, static_argnames=("name", "as_printed", "counts"))
def _run(name, law, keys, data, step, as_printed, counts):
    manifold, preset = law.ball.manifold, PAPER_CHAINS[name]
    num_samples, burnin, thin = counts
    center = law.center(law.clipped(data))

    def log_density(x):
        return law.log_density(x, data)

    def proposal(state):
        key, x, value, made, accepted = state
        key, move_key, accept_key = jax.random.split(key, 3)
        y = manifold.project(manifold.exp(x, step * preset.propose(manifold, move_key, x, law.scale)))
        candidate = log_density(y)
        accept = jnp.log(jax.random.uniform(accept_key, (), candidate.dtype)) < candidate - value
        return key, jnp.where(accept, y, x), jnp.where(accept, candidate, value), made + 1, accepted + accept

    def advance(state, count):
        """Return ``count`` moves: accepted ones, or all."""
        if not as_printed:
            return jax.lax.fori_loop(0, count, lambda _, s: proposal(s), state)
        made, goal = state[3] + count * _TRIES, state[4] + count
        return jax.lax.while_loop(lambda s: (s[4] < goal) & (s[3] < made), proposal, state)

    def chain(key):
        state = advance((key, center, log_density(center), jnp.int32(0), jnp.int32(0)), burnin)

        def keep(s, _):
            s = advance(s, thin)
            return s, (s[1], s[2])

        state, (points, values) = jax.lax.scan(keep, state, length=num_samples)
        return Chains(points, values, state[4] / state[3], jnp.asarray(step, values.dtype))

    return jax.vmap(chain)(keys)
