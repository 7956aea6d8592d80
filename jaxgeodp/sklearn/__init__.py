"""Private means as scikit-learn estimators: `get_params`, `clone`, pipelines, metadata routing."""

from jaxgeodp.sklearn.frechet_mean import PrivateCovarianceMean, PrivateFrechetMean
from jaxgeodp.sklearn.nearest_mean import PrivateNearestMean
from jaxgeodp.sklearn.repeated_fits import RepeatedFitWarning
from jaxgeodp.sklearn.tangent_space import PrivateTangentSpace

__all__ = [
    "PrivateCovarianceMean",
    "PrivateFrechetMean",
    "PrivateNearestMean",
    "PrivateTangentSpace",
    "RepeatedFitWarning",
]
