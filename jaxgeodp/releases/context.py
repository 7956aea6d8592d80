"""In what context all releases are made."""

import contextlib

import jax

from jaxgeodp.checks import InputError
from jaxgeodp.privacy.clock import work_begins


@contextlib.contextmanager
def releasing():
    """Set up the context of all releases: double precision, compiled programs, the time of the start.

    Raises:
        ValueError: it is traced.
    """
    # Compiled ahead whatever the setting is: without, functions would be run step by step after the charge.
    with work_begins(), jax.enable_x64(True), jax.disable_jit(False):
        try:
            yield
        except jax.errors.TracerArrayConversionError:
            raise InputError(
                "release, prepare and finish draw from the system's entropy, outside jit, vmap and grad: call them "
                "there with arrays, and simulate in compiled functions."
            ) from None
