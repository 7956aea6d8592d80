"""Randomness for releases: from the operating system, never from a seed."""

import os

import jax
import numpy as np


def system_key() -> jax.Array:
    """A fresh JAX random key whose 64 bits of state come from the operating system."""
    words = np.frombuffer(os.urandom(8), dtype=np.uint32)
    return jax.random.wrap_key_data(np.array(words), impl="threefry2x32")
