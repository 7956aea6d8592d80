"""Differentially private mechanisms on manifolds."""

from jaxgeodp.mechanisms.adaptive import AdaptiveMechanism
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.mechanisms.chain import release_by_chain
from jaxgeodp.mechanisms.curves import Curves, PlanCurves, plan_curves
from jaxgeodp.mechanisms.euclidean import EuclideanLaplace
from jaxgeodp.mechanisms.gaussian import RiemannianGaussian
from jaxgeodp.mechanisms.gibbs import GibbsMechanism
from jaxgeodp.mechanisms.kng import KNGMechanism
from jaxgeodp.mechanisms.landmarks import LandmarkLaplace
from jaxgeodp.mechanisms.laplace import LaplaceMechanism
from jaxgeodp.mechanisms.metric import MetricLaplace
from jaxgeodp.mechanisms.plan import Plan, plan_mechanisms
from jaxgeodp.mechanisms.populations import plan_in_steps
from jaxgeodp.mechanisms.suggestion import Suggestion, suggest_ball
from jaxgeodp.mechanisms.tangent import TangentGaussian, TangentLaplace
from jaxgeodp.mechanisms.wrapped import WrappedGaussian, WrappedLaplace
from jaxgeodp.releases.mechanism import Mechanism

__all__ = [
    "AdaptiveMechanism",
    "BallMechanism",
    "Curves",
    "EuclideanLaplace",
    "GibbsMechanism",
    "KNGMechanism",
    "LandmarkLaplace",
    "LaplaceMechanism",
    "Mechanism",
    "MetricLaplace",
    "Plan",
    "PlanCurves",
    "RiemannianGaussian",
    "Suggestion",
    "TangentGaussian",
    "TangentLaplace",
    "WrappedGaussian",
    "WrappedLaplace",
    "plan_curves",
    "plan_in_steps",
    "plan_mechanisms",
    "release_by_chain",
    "suggest_ball",
]
