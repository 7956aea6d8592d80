"""What users import from ``jaxgeodp``; imported when a name of it is asked for."""

from typing import TYPE_CHECKING

from jaxgeodp._version import __version__
from jaxgeodp.blocks import RecordBlocks
from jaxgeodp.compiling import fast_compile
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.shape import Shape
from jaxgeodp.locating import LocatedMechanism
from jaxgeodp.manifolds import (
    SPD,
    Axes,
    Circle,
    Correlations,
    Euclidean,
    Grassmann,
    Hyperbolic,
    LogCholesky,
    LogEuclidean,
    Manifold,
    PlanarShapes,
    Product,
    RigidMotions,
    Rotations,
    Shapes3D,
    Sphere,
    Torus,
    riemannian_gradient,
    riemannian_hessian,
)
from jaxgeodp.mechanisms import (
    AdaptiveMechanism,
    EuclideanLaplace,
    GibbsMechanism,
    KNGMechanism,
    LandmarkLaplace,
    LaplaceMechanism,
    MetricLaplace,
    RiemannianGaussian,
    TangentGaussian,
    TangentLaplace,
    WrappedGaussian,
    WrappedLaplace,
)
from jaxgeodp.privacy import (
    ApproximateDP,
    GaussianDP,
    Guarantee,
    Ledger,
    PureDP,
    Release,
    ZeroConcentratedDP,
    compose,
    delta_of_epsilon,
)
from jaxgeodp.releases import State, release_groups
from jaxgeodp.statistics import (
    ConvexRisk,
    EmpiricalRisk,
    FrechetMean,
    FrechetMedian,
    PowerMean,
    SmoothedMedian,
    Statistic,
    certified_distance,
    frechet_mean,
    frechet_median,
    minimize,
    power_mean,
)

if TYPE_CHECKING:
    from jaxgeodp.inference import (
        Description,
        FrechetVariance,
        GeodesicFit,
        SpreadMechanism,
        TangentCovariance,
        confidence_ball,
        describe,
        geodesic_regression,
        principal_geodesics,
        synthesize,
        two_sample_test,
    )

__all__ = [
    "SPD",
    "AdaptiveMechanism",
    "ApproximateDP",
    "Axes",
    "Circle",
    "ConvexRisk",
    "Correlations",
    "Description",
    "EmpiricalRisk",
    "Euclidean",
    "EuclideanLaplace",
    "FrechetMean",
    "FrechetMedian",
    "FrechetVariance",
    "GaussianDP",
    "GeodesicBall",
    "GeodesicFit",
    "GibbsMechanism",
    "Grassmann",
    "Guarantee",
    "Hyperbolic",
    "KNGMechanism",
    "LandmarkLaplace",
    "LaplaceMechanism",
    "Ledger",
    "LocatedMechanism",
    "LogCholesky",
    "LogEuclidean",
    "Manifold",
    "MetricLaplace",
    "PlanarShapes",
    "PowerMean",
    "Product",
    "PureDP",
    "RecordBlocks",
    "Release",
    "RiemannianGaussian",
    "RigidMotions",
    "Rotations",
    "Shape",
    "Shapes3D",
    "SmoothedMedian",
    "Sphere",
    "SpreadMechanism",
    "State",
    "Statistic",
    "TangentCovariance",
    "TangentGaussian",
    "TangentLaplace",
    "Torus",
    "WrappedGaussian",
    "WrappedLaplace",
    "ZeroConcentratedDP",
    "__version__",
    "certified_distance",
    "compose",
    "confidence_ball",
    "delta_of_epsilon",
    "describe",
    "fast_compile",
    "frechet_mean",
    "frechet_median",
    "geodesic_regression",
    "minimize",
    "power_mean",
    "principal_geodesics",
    "release_groups",
    "riemannian_gradient",
    "riemannian_hessian",
    "synthesize",
    "two_sample_test",
]


def __getattr__(name):
    """Import names of `inference` on first use: most calls need none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import jaxgeodp.inference

    return getattr(jaxgeodp.inference, name)
