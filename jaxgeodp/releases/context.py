"""In what context all releases are made."""

import contextlib
from collections.abc import Iterator

import jax

from jaxgeodp.checks import InputError
from jaxgeodp.privacy.clock import work_begins
from jaxgeodp.privacy.silence import silent


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
    """Give no warnings, and raise nothing for a NaN, an infinity, an underflow or a transfer to a device, whatever
    NumPy and JAX are set to.

    The former would tell of the records, the last would lose a release that has been charged.
    """
    with silent(), jax.debug_nans(False), jax.debug_infs(False), jax.transfer_guard("allow"):
        yield


@contextlib.contextmanager
def releasing() -> Iterator[None]:
    """Set up the context of all releases: double precision, compiled programs, silence, the time of the start.

    Raises:
        ValueError: it is traced.
    """
    # Compiled ahead whatever the setting is: without, functions would be run step by step after the charge.
    with work_begins(), unwatched(), jax.enable_x64(True), jax.disable_jit(False):
        try:
            yield
        except jax.errors.TracerArrayConversionError:
            raise InputError(
                "release, prepare and finish draw from the system's entropy, outside jit, vmap and grad: call them "
                "there with arrays, and simulate in compiled functions."
            ) from None
