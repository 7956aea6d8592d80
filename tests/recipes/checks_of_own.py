"""Noise of every coordinate obeys the laws of all mechanisms."""

import pytest
from jaxgeodp.mechanisms.coordinates import CoordinateLaplace

from jaxgeodp import Euclidean, GeodesicBall
from jaxgeodp.testing import MECHANISM_LAWS

QUICK = ("public_numbers", "charges", "release_record")


@pytest.mark.parametrize(
    "law", [pytest.param(law, marks=[] if law in QUICK else [pytest.mark.exhaustive]) for law in MECHANISM_LAWS]
)
def test_law(law):
    MECHANISM_LAWS[law](CoordinateLaplace(GeodesicBall(Euclidean(1), [0.5], 2.0), 1.0))
