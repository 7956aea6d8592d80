"""The public sets that records are brought into: geodesic balls, balls of curves, boxes of points."""

from jaxgeodp.domains.domain import Domain
from jaxgeodp.domains.geodesic_ball import GeodesicBall, assumption_limit

__all__ = ["Domain", "GeodesicBall", "assumption_limit"]
