"""Guarantees and their composition, the ledger of what is spent, release records and their entropy."""

from jaxgeodp.privacy.audit import Audit, adversarial_neighbours, audit
from jaxgeodp.privacy.composition import compose
from jaxgeodp.privacy.events import dp_event, loss_distribution
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
from jaxgeodp.privacy.ledger import Account, Ledger
from jaxgeodp.privacy.opendp import opendp_measurement
from jaxgeodp.privacy.release import Release, record_digest

__all__ = [
    "Account",
    "ApproximateDP",
    "Audit",
    "GaussianDP",
    "Guarantee",
    "Ledger",
    "NotProven",
    "PureDP",
    "Release",
    "ZeroConcentratedDP",
    "adversarial_neighbours",
    "audit",
    "compose",
    "delta_of_epsilon",
    "dp_event",
    "largest_mu",
    "log_delta_of_epsilon",
    "loss_distribution",
    "opendp_measurement",
    "record_digest",
]
