"""The short names of mechanisms, as the command line and sweep files write them."""

import functools

from jaxgeodp.checks import InputError
from jaxgeodp.domain import GeodesicBall
from jaxgeodp.mechanisms.additive import EuclideanLaplace, LandmarkLaplace
from jaxgeodp.mechanisms.gaussian import RiemannianGaussian
from jaxgeodp.mechanisms.in_tangent_space import TangentLaplace, WrappedGaussian, WrappedLaplace
from jaxgeodp.mechanisms.kng import KNGMechanism
from jaxgeodp.mechanisms.laplace import LaplaceMechanism
from jaxgeodp.mechanisms.mechanism import Mechanism

#: With a density and a choice of calibrations; parameter epsilon.
WITH_DENSITY = {"laplace": LaplaceMechanism, "kng": KNGMechanism}
#: Noise in the tangent space; parameter epsilon.
IN_TANGENT_SPACE = {"wrapped": WrappedLaplace, "tangent": TangentLaplace}
#: Parameter mu.
GAUSSIAN = {"wrapped-gaussian": WrappedGaussian, "gaussian": RiemannianGaussian}
#: Baselines whose values are not on the manifold, or only by projection; parameter epsilon.
BASELINES = {
    "euclidean": EuclideanLaplace,
    "euclidean-projected": functools.partial(EuclideanLaplace, project=True),
    "landmarks": LandmarkLaplace,
    "landmarks-unaligned": functools.partial(LandmarkLaplace, align=False),
}
MECHANISMS = WITH_DENSITY | IN_TANGENT_SPACE | GAUSSIAN | BASELINES


def mechanism_named(name: str, ball: GeodesicBall, strength: float, calibration: str = "tight") -> Mechanism:
    """The mechanism with a name of `MECHANISMS`; ``strength`` is its epsilon or mu.

    Raises:
        ValueError: unknown name, a calibration that it does not have, or see the mechanism.
    """
    if name not in MECHANISMS:
        raise InputError(f"mechanism must be one of {', '.join(MECHANISMS)}, got {name!r}.")
    if name in WITH_DENSITY:
        return WITH_DENSITY[name](ball, strength, calibration=calibration)
    if calibration != "tight":
        raise InputError(f"mechanism {name!r} has no calibration {calibration!r}; only kng and laplace have several.")
    return MECHANISMS[name](ball, strength)
