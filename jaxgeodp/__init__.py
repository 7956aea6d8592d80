"""jaxgeodp: differential privacy on Riemannian manifolds, in JAX.

The parts, in the order in which data meet them: a `Manifold`, a public `GeodesicBall`, a statistic
(`FrechetMean`, `FrechetMedian`, any loss), a mechanism (`LaplaceMechanism`, `KNGMechanism`, `WrappedLaplace`, ...), an
exact sampler (`samplers`), a guarantee (`PureDP`, `GaussianDP`), the `Release` with its record, and the `Ledger` of
what has been spent.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING

from jaxgeodp._version import __version__ as __version__

if TYPE_CHECKING:
    from jaxgeodp.public import *  # noqa: F403


def __getattr__(name):
    """Import names of `public`, and folders, on first use: JAX takes a second, and ledgers are read without it."""
    if name.startswith("__") and name != "__all__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if (part := sys.modules.get(f"jaxgeodp.{name}")) is not None:  # also while it is being imported
        return part
    public = import_module("jaxgeodp.public")
    if name in public.__all__ or name == "__all__":
        value = getattr(public, name)
        globals()[name] = value
        return value
    if (part := sys.modules.get(f"jaxgeodp.{name}")) is not None:
        return part
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return [*globals(), *import_module("jaxgeodp.public").__all__]
