"""Statistics of manifold data and their derivatives."""

from jaxgeodp.statistics.convex_risk import ConvexRisk
from jaxgeodp.statistics.empirical_risk import EmpiricalRisk
from jaxgeodp.statistics.frechet_mean import certified_distance, frechet_mean
from jaxgeodp.statistics.minimize import Minimum, minimize
from jaxgeodp.statistics.power_mean import frechet_median, power_mean
from jaxgeodp.statistics.power_statistic import FrechetMedian, PowerMean
from jaxgeodp.statistics.smoothed_median import SmoothedMedian
from jaxgeodp.statistics.statistic import FrechetMean, Statistic

__all__ = [
    "ConvexRisk",
    "EmpiricalRisk",
    "FrechetMean",
    "FrechetMedian",
    "Minimum",
    "PowerMean",
    "SmoothedMedian",
    "Statistic",
    "certified_distance",
    "frechet_mean",
    "frechet_median",
    "minimize",
    "power_mean",
]
