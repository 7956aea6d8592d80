"""jaxgeodp: differential privacy on Riemannian manifolds, in JAX.

The parts, in the order in which data meet them: a `Manifold`, a public `GeodesicBall`, a statistic
(`FrechetMean`), a mechanism (`LaplaceMechanism`, `KNGMechanism`), an exact sampler (`samplers`), a guarantee
(`PureDP`), and the `Release` with its record.
"""

from jaxgeodp._version import __version__
from jaxgeodp.domain import GeodesicBall
from jaxgeodp.manifolds import (
    SPD,
    Euclidean,
    Grassmann,
    Manifold,
    PlanarShapes,
    Sphere,
    riemannian_gradient,
    riemannian_hessian,
)
from jaxgeodp.mechanisms import KNGMechanism, LaplaceMechanism
from jaxgeodp.privacy import PureDP, Release
from jaxgeodp.statistics import FrechetMean, certified_distance, frechet_mean

__all__ = [
    "SPD",
    "Euclidean",
    "FrechetMean",
    "GeodesicBall",
    "Grassmann",
    "KNGMechanism",
    "LaplaceMechanism",
    "Manifold",
    "PlanarShapes",
    "PureDP",
    "Release",
    "Sphere",
    "__version__",
    "certified_distance",
    "frechet_mean",
    "riemannian_gradient",
    "riemannian_hessian",
]
