"""Randomness for releases: from the operating system, never from a seed."""

import os

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.privacy.chacha20 import CHACHA20

#: What a release record says about it.
NOTE = "256 random bits from the operating system, expanded by ChaCha20"


def public_key() -> jax.Array:
    """A key of the kind that `system_key` makes, known to all: to compile programs with, never to draw."""
    return jax.random.wrap_key_data(jnp.asarray(np.zeros(8, np.uint32)), impl=CHACHA20)


def system_key() -> jax.Array:
    """A fresh JAX random key: 256 bits from the operating system, expanded by ChaCha20."""
    words = np.frombuffer(os.urandom(32), dtype=np.uint32)
    return jax.random.wrap_key_data(jnp.asarray(np.array(words)), impl=CHACHA20)


def random_words(count: int) -> np.ndarray:
    """Independent uniform integers of 64 bits from the operating system, (count,)."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def random_order(count: int) -> np.ndarray:
    """Places 0 to ``count`` - 1 in a uniformly random order, exactly: drawn anew where two words are equal."""
    while True:
        words = random_words(count)
        order = np.argsort(words)
        if not np.any(words[order[1:]] == words[order[:-1]]):
            return order
