"""Differentially private mechanisms on manifolds."""

from jaxgeodp.mechanisms.additive import EuclideanLaplace, LandmarkLaplace
from jaxgeodp.mechanisms.chain_release import release_by_chain
from jaxgeodp.mechanisms.gaussian import RiemannianGaussian
from jaxgeodp.mechanisms.in_tangent_space import TangentLaplace, WrappedGaussian, WrappedLaplace
from jaxgeodp.mechanisms.kng import KNGMechanism
from jaxgeodp.mechanisms.laplace import LaplaceMechanism
from jaxgeodp.mechanisms.mechanism import Calibration, Mechanism
from jaxgeodp.mechanisms.plan import Plan, plan_mechanisms

__all__ = [
    "Calibration",
    "EuclideanLaplace",
    "KNGMechanism",
    "LandmarkLaplace",
    "LaplaceMechanism",
    "Mechanism",
    "Plan",
    "RiemannianGaussian",
    "TangentLaplace",
    "WrappedGaussian",
    "WrappedLaplace",
    "plan_mechanisms",
    "release_by_chain",
]
