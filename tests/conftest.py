"""Shared settings: float64 is on (tests of float32 pass float32 arrays), caches go to a temporary folder."""

import os
import tempfile

import jax
import pytest

os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="jaxgeodp-tests-")
jax.config.update("jax_enable_x64", True)


@pytest.fixture(autouse=True, scope="module")
def _compiled_programs_are_forgotten():
    """Linux allows a process 65,530 memory maps; the programs of the whole suite, kept loaded, need more."""
    yield
    jax.clear_caches()
