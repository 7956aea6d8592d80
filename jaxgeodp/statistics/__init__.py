"""Statistics of manifold data and their derivatives."""

from jaxgeodp.statistics.convex_risk import ConvexRisk
from jaxgeodp.statistics.empirical_risk import EmpiricalRisk
from jaxgeodp.statistics.frechet_mean import certified_distance, frechet_mean
from jaxgeodp.statistics.geodesic_regression import GeodesicLine, geodesic_regression
from jaxgeodp.statistics.k_means import Clusters, k_means
from jaxgeodp.statistics.minimize import Minimum, minimize
from jaxgeodp.statistics.power_mean import frechet_median, power_mean
from jaxgeodp.statistics.power_statistic import FrechetMedian, PowerMean
from jaxgeodp.statistics.smoothed_median import SmoothedMedian
from jaxgeodp.statistics.statistic import FrechetMean, Statistic
from jaxgeodp.statistics.tangent_pca import TangentPCA, tangent_pca

__all__ = [
    "Clusters",
    "ConvexRisk",
    "EmpiricalRisk",
    "FrechetMean",
    "FrechetMedian",
    "GeodesicLine",
    "Minimum",
    "PowerMean",
    "SmoothedMedian",
    "Statistic",
    "TangentPCA",
    "certified_distance",
    "frechet_mean",
    "frechet_median",
    "geodesic_regression",
    "k_means",
    "minimize",
    "power_mean",
    "tangent_pca",
]
