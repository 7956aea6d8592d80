"""Guarantees and their composition, release records and the entropy of releases."""

from jaxgeodp.privacy.composition import compose
from jaxgeodp.privacy.guarantee import (
    ApproximateDP,
    GaussianDP,
    Guarantee,
    NotProven,
    PureDP,
    ZeroConcentratedDP,
    delta_of_epsilon,
    largest_mu,
    log_delta_of_epsilon,
)
from jaxgeodp.privacy.release import Release

__all__ = [
    "ApproximateDP",
    "GaussianDP",
    "Guarantee",
    "NotProven",
    "PureDP",
    "Release",
    "ZeroConcentratedDP",
    "compose",
    "delta_of_epsilon",
    "largest_mu",
    "log_delta_of_epsilon",
]
