"""Put a new `Manifold` through the laws that every Riemannian manifold obeys."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import jax

from jaxgeodp.manifolds import Manifold
from jaxgeodp.testing.laws import of_law
from jaxgeodp.testing.manifold_laws import LAWS

# Seconds after which progress is shown.
PATIENCE = 2.0


def check_manifold(manifold: Manifold, dtypes: Sequence[str] = ("float32", "float64")) -> None:
    """Raise AssertionError with the first law that ``manifold`` breaks.

    Facts that the manifold leaves unknown (curvature, injectivity radius) are not checked; it is then tested
    at distances up to 1. Nearly all of its time is compilation; what it is at stands on the error stream.

    Args:
        manifold: the manifold, which must offer ``random_point``.
        dtypes: precisions, whichever ``jax_enable_x64`` says: double precision is turned on for its laws.

    Example:
        >>> from jaxgeodp import Sphere
        >>> from jaxgeodp.testing import check_manifold
        >>> check_manifold(Sphere(2), dtypes=["float32"])
    """
    with _told() as tell:
        for dtype in dtypes:
            for name, law in LAWS.items():
                tell(f"{name} ({dtype})")
                double = jax.enable_x64(True) if dtype == "float64" else contextlib.nullcontext()
                with of_law(name, f"{manifold} ({dtype})"), double:
                    law(manifold, dtype)


@contextlib.contextmanager
def _told() -> Iterator[Callable[[str], None]]:
    """Yield what is told of every law before its turn: shown on a terminal; elsewhere one line, if it takes long."""
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        with console.status("check_manifold") as status:
            yield lambda law: status.update(f"check_manifold: compiling and checking {law}")
        return
    begun, said = time.monotonic(), False

    def tell(law):
        nonlocal said
        if not said and time.monotonic() - begun > PATIENCE:
            said = True
            print(f"check_manifold: compiling and checking {law}; this may take a minute", file=sys.stderr)

    yield tell
