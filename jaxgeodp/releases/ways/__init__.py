"""The ways in which a law is released: what ``delta`` and ``numerics`` choose, and chains as in the papers."""

from jaxgeodp.checks import InputError
from jaxgeodp.releases.ways.chain import ByChain
from jaxgeodp.releases.ways.fixed_time import FixedTime
from jaxgeodp.releases.ways.idealized import Idealized
from jaxgeodp.releases.ways.on_grid import FromSums, OnGrid
from jaxgeodp.releases.ways.way import Way

__all__ = ["ByChain", "FixedTime", "FromSums", "Idealized", "OnGrid", "Way", "way_of"]

_NUMERICS = {"idealized": Idealized(), "grid": OnGrid()}


def way_of(owner: str, delta: float, numerics: str) -> Way:
    """The way that the keywords of `Mechanism.release` choose.

    Raises:
        ValueError: an unknown word, or two ways at once.
    """
    if not isinstance(numerics, str) or numerics not in _NUMERICS:
        raise InputError(f"{owner}: numerics must be 'idealized' or 'grid', got {numerics!r}.")
    if delta == 0.0:
        return _NUMERICS[numerics]
    if numerics != "idealized":
        raise InputError(f"{owner}: delta and numerics='{numerics}' are two ways of releasing; choose one.")
    return FixedTime(delta)
