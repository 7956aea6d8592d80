"""jaxgeodp: differential privacy on Riemannian manifolds, in JAX.

The parts, in the order in which data meet them: a `Manifold`, a public `GeodesicBall`, a statistic
(`FrechetMean`, `FrechetMedian`, any loss), a mechanism (`LaplaceMechanism`, `KNGMechanism`), an exact sampler
(`samplers`), a guarantee (`PureDP`), and the `Release` with its record.
"""

from jaxgeodp._version import __version__
from jaxgeodp.domain import GeodesicBall
from jaxgeodp.manifolds import (
    SPD,
    Euclidean,
    Grassmann,
    Hyperbolic,
    Manifold,
    PlanarShapes,
    Product,
    Rotations,
    Sphere,
    riemannian_gradient,
    riemannian_hessian,
)
from jaxgeodp.mechanisms import KNGMechanism, LaplaceMechanism
from jaxgeodp.privacy import PureDP, Release
from jaxgeodp.statistics import (
    EmpiricalRisk,
    FrechetMean,
    FrechetMedian,
    PowerMean,
    Statistic,
    certified_distance,
    frechet_mean,
    frechet_median,
    minimize,
    power_mean,
)

__all__ = [
    "SPD",
    "EmpiricalRisk",
    "Euclidean",
    "FrechetMean",
    "FrechetMedian",
    "GeodesicBall",
    "Grassmann",
    "Hyperbolic",
    "KNGMechanism",
    "LaplaceMechanism",
    "Manifold",
    "PlanarShapes",
    "PowerMean",
    "Product",
    "PureDP",
    "Release",
    "Rotations",
    "Sphere",
    "Statistic",
    "__version__",
    "certified_distance",
    "frechet_mean",
    "frechet_median",
    "minimize",
    "power_mean",
    "riemannian_gradient",
    "riemannian_hessian",
]
