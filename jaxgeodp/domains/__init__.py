"""The public sets that records are brought into: geodesic balls, balls of curves, arrays near a template.

And what brings landmarks there, each record on its own: superimposition on a public template.
"""

from jaxgeodp.domains.domain import Domain
from jaxgeodp.domains.geodesic_ball import GeodesicBall, assumption_limit
from jaxgeodp.domains.landmarks import align_landmarks, impute_landmarks, landmarks_from_r
from jaxgeodp.domains.near_template import NearTemplate
from jaxgeodp.domains.shape import Shape

__all__ = [
    "Domain",
    "GeodesicBall",
    "NearTemplate",
    "Shape",
    "align_landmarks",
    "assumption_limit",
    "impute_landmarks",
    "landmarks_from_r",
]
