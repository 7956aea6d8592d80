"""Statistics of manifold data and their derivatives."""

from jaxgeodp.statistics.frechet_mean import certified_distance, frechet_mean
from jaxgeodp.statistics.statistic import FrechetMean

__all__ = ["FrechetMean", "certified_distance", "frechet_mean"]
