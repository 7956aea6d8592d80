"""Guarantees and their composition, the ledger of what is spent, release records and their entropy."""

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from jaxgeodp.privacy.auditing import Audit, adversarial_neighbours, audit
    from jaxgeodp.privacy.members import Membership, membership

__all__ = [
    "Account",
    "ApproximateDP",
    "Audit",
    "GaussianDP",
    "Guarantee",
    "Ledger",
    "Membership",
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
    "membership",
    "opendp_measurement",
    "record_digest",
]


def __getattr__(name):
    """Import exports that need JAX and all manifolds on first use: ledgers are read without them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    where = "members" if name.lower() == "membership" else "auditing"
    return getattr(import_module(f"jaxgeodp.privacy.{where}"), name)
