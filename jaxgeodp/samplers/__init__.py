"""Samplers: exact rejection from certified envelopes, matrix noise, Markov chains, NumPyro support."""

from typing import TYPE_CHECKING

from jaxgeodp.samplers.random_walk import Chains, metropolis
from jaxgeodp.samplers.rejection import Draws, rejection_sample
from jaxgeodp.samplers.spectral import hull_noise, hull_norm, nuclear_noise

if TYPE_CHECKING:
    from jaxgeodp.samplers.diagnostics import Diagnostics, diagnose
    from jaxgeodp.samplers.distributions import KNG, ManifoldLaplace
    from jaxgeodp.samplers.numpyro_kernel import GeodesicMetropolis
    from jaxgeodp.samplers.wrapped_normal import WrappedNormal

__all__ = [
    "KNG",
    "Chains",
    "Diagnostics",
    "Draws",
    "GeodesicMetropolis",
    "ManifoldLaplace",
    "WrappedNormal",
    "diagnose",
    "hull_noise",
    "hull_norm",
    "metropolis",
    "nuclear_noise",
    "rejection_sample",
]

# Importing NumPyro takes longer than a release: only for those who ask.
_WITH_NUMPYRO = {
    "Diagnostics": "diagnostics",
    "diagnose": "diagnostics",
    "KNG": "distributions",
    "ManifoldLaplace": "distributions",
    "GeodesicMetropolis": "numpyro_kernel",
    "WrappedNormal": "wrapped_normal",
}


def __getattr__(name):
    if name not in _WITH_NUMPYRO:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_WITH_NUMPYRO[name]}"), name)
