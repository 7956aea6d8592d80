"""Differentially private mechanisms on manifolds."""

from jaxgeodp.mechanisms.kng import KNGMechanism
from jaxgeodp.mechanisms.laplace import LaplaceMechanism
from jaxgeodp.mechanisms.mechanism import Calibration, Mechanism

__all__ = ["Calibration", "KNGMechanism", "LaplaceMechanism", "Mechanism"]
