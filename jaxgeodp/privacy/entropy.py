"""Randomness for releases: from the operating system, never from a seed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import jax

#: What a release record says about it.
NOTE = "256 random bits from the operating system, expanded by ChaCha20"


def public_key() -> jax.Array:
    """Return a publicly known key of `system_key`'s kind, for compiling programs, never for draws."""
    return _key(np.zeros(8, np.uint32))


def system_key() -> jax.Array:
    """Return a fresh JAX random key: 256 bits from the operating system, expanded by ChaCha20."""
    words = np.frombuffer(os.urandom(32), dtype=np.uint32)
    return _key(np.array(words))


def _key(words) -> jax.Array:
    """Return a key of eight words; JAX is imported here, as records are read without it."""
    import jax
    import jax.numpy as jnp

    from jaxgeodp.privacy.chacha20 import CHACHA20

    return jax.random.wrap_key_data(jnp.asarray(words), impl=CHACHA20)


def random_words(count: int) -> np.ndarray:
    """Return independent uniform integers of 64 bits from the operating system, (count,)."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def random_order(count: int) -> np.ndarray:
    """Return 0 to ``count`` - 1 in an exactly uniform random order: drawn anew if two words are equal."""
    while True:
        words = random_words(count)
        order = np.argsort(words)
        if not np.any(words[order[1:]] == words[order[:-1]]):
            return order
