"""The ways in which a law is released: what ``delta`` and ``numerics`` choose, and chains as in the papers."""

from jaxgeodp.releases.ways.chain import ByChain
from jaxgeodp.releases.ways.fixed_time import FixedTime
from jaxgeodp.releases.ways.numerics import FromSums, Idealized, OnGrid, way_of
from jaxgeodp.releases.ways.way import Way

__all__ = ["ByChain", "FixedTime", "FromSums", "Idealized", "OnGrid", "Way", "way_of"]
