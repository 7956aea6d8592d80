"""What a private mean is worth: spread, regions, tests, principal geodesics, synthetic records.

Private are `describe`, `geodesic_regression` and `SpreadMechanism`; all else is made of their releases alone.
"""

from jaxgeodp.inference.confidence import confidence_ball, two_sample_test
from jaxgeodp.inference.description import Description, describe, principal_geodesics, synthesize
from jaxgeodp.inference.geodesic_fit import GeodesicFit
from jaxgeodp.inference.moments import FrechetVariance, TangentCovariance
from jaxgeodp.inference.population import Population, PrincipalGeodesics
from jaxgeodp.inference.regions import ConfidenceBall, TwoSampleTest
from jaxgeodp.inference.regression import geodesic_regression
from jaxgeodp.inference.spread import SpreadMechanism

__all__ = [
    "ConfidenceBall",
    "Description",
    "FrechetVariance",
    "GeodesicFit",
    "Population",
    "PrincipalGeodesics",
    "SpreadMechanism",
    "TangentCovariance",
    "TwoSampleTest",
    "confidence_ball",
    "describe",
    "geodesic_regression",
    "principal_geodesics",
    "synthesize",
    "two_sample_test",
]
