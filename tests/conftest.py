"""Shared settings: float64 is on (tests of float32 pass float32 arrays), caches go to a temporary folder."""

import os
import tempfile

import jax

os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="jaxgeodp-tests-")
jax.config.update("jax_enable_x64", True)
