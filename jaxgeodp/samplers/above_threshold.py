"""Noisy threshold test: the first of several nested counts to reach a threshold, all with noise.

N_1 <= ... <= N_m are integers, for instance the numbers of records within growing distances of a point. Z, Z_1, ...,
Z_m are independent discrete Laplace noise, P(z) proportional to exp(-|z|/scale). What comes out is the first j with
N_j + Z_j >= threshold + Z (AboveThreshold: Dwork & Roth 2014, section 3.6), counted from 0, or m if there is none.
`privacy.above_threshold` says what that tells about one record (Theorem Q1: docs/mathematics.md, section 16).
"""

import operator
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from jaxgeodp.checks import InputError, positive_integer, short
from jaxgeodp.samplers.discrete import Below, discrete_laplace


def first_above(counts: Sequence[int], threshold: int, scale: int, below: Below) -> int:
    """Return the index of the first noisy count that reaches the noisy threshold, or the number of counts; exact.

    The counts are private: none of their values is refused, and the proof does not ask that they grow. All noises are
    drawn and all comparisons made, whatever comes out; the number of rejected trials inside `discrete_laplace` is
    independent of the noise.

    Args:
        counts: integers (m,), of which one record moves all in one direction, each by at most 1.
        threshold: a public integer, of either sign.
        scale: of the noise, an integer of at least 1.
        below: source of uniform integers.

    Raises:
        ValueError: the threshold is no integer, or the scale is no integer above 0.
    """
    positive_integer("first_above", "scale", scale, 1)
    limit = _integer(threshold) + discrete_laplace(scale, below)
    noises = [discrete_laplace(scale, below) for _ in counts]
    reached = [operator.index(count) + noise >= limit for count, noise in zip(counts, noises, strict=True)]
    return [*reached, True].index(True)


def first_above_simulated(key: jax.Array, counts: jax.Array, threshold, scale) -> jax.Array:
    """Simulate `first_above` in floating point, not for releases; works under jit and vmap.

    Noise is the difference of two geometric variables, each the integer part of an exponential one times the scale.

    Args:
        key: a random key.
        counts: integers (m,); may be traced.
        threshold: an integer; may be traced.
        scale: of the noise, a number above 0; may be traced.

    Returns:
        An integer from 0 to m.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> int(first_above_simulated(jax.random.key(0), jnp.array([0, 10, 900, 1000]), 500, 2))
        2
    """
    counts = jnp.asarray(counts)
    geometric = jnp.floor(scale * jax.random.exponential(key, (2, counts.shape[0] + 1))).astype(int)
    noises = geometric[0] - geometric[1]
    reached = counts + noises[1:] >= threshold + noises[0]
    return jnp.argmax(jnp.append(reached, True))


def _integer(threshold):
    try:
        return operator.index(threshold)
    except TypeError as error:
        raise InputError(f"first_above: threshold must be an integer, got {short(threshold)}.") from error
