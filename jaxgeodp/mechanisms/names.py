"""The registry of mechanisms: the short names that the command line, sweep files and plans write.

A mechanism of one's own joins by an entry in `MECHANISMS`; release, plan, sweep and audit then know it.
"""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.manifolds import Euclidean, Manifold, PlanarShapes, Sphere
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.mechanisms.euclidean import EuclideanLaplace
from jaxgeodp.mechanisms.gaussian import RiemannianGaussian, has_gaussian_certificate
from jaxgeodp.mechanisms.gibbs import GibbsMechanism
from jaxgeodp.mechanisms.kng import KNGMechanism
from jaxgeodp.mechanisms.landmarks import LandmarkLaplace
from jaxgeodp.mechanisms.laplace import LaplaceMechanism
from jaxgeodp.mechanisms.tangent import TangentGaussian, TangentLaplace
from jaxgeodp.mechanisms.wrapped import WrappedGaussian, WrappedLaplace


class NamedMechanism(NamedTuple):
    """Registry entry: how to make a mechanism, and what is known of it without making one."""

    make: Callable[..., BallMechanism]  #: of a ball and the strength
    parameter: str = "epsilon"  #: or "mu": what the strength is
    statistics: tuple[str, ...] = ("mean",)  #: that it can release; with several, ``make`` takes ``statistic``
    calibrations: tuple[str, ...] = ("tight",)  #: with several, ``make`` takes ``calibration``
    suits: Callable[[Manifold], bool] = lambda manifold: True  #: whether it is for a manifold
    on_manifold: bool = True  #: whether its values are points of the manifold
    unbiased: Callable[[Manifold], bool] = lambda manifold: True  #: whether it releases the statistic, not one near it
    shaped: bool = False  #: whether ``make`` takes ``shape``


# On these mechanisms are asked what they support; of balls that satisfy any assumption.
_SPACES = (Euclidean(2), Sphere(2), PlanarShapes(3))
_SMALL = 1e-2
_ALL = ("tight", "theorem", "paper")


def _has_ambient_means(manifold):
    return manifold.ambient_radius(manifold.origin, 1e-3) is not None


def _projects(manifold):
    return _has_ambient_means(manifold) and manifold.projects and math.isfinite(manifold.injectivity_radius)


def _is_flat(manifold):
    return manifold.curvature_bounds == (0.0, 0.0)


def _is_hadamard(manifold):
    """Return whether no barrier is needed, which would pull towards the centre."""
    return manifold.curvature_bounds[1] <= 0.0 and math.isinf(manifold.injectivity_radius)


def _has_landmarks(manifold):
    return manifold.landmark_dimension == 2


MECHANISMS: dict[str, NamedMechanism] = {
    "kng": NamedMechanism(KNGMechanism, statistics=("mean", "median"), calibrations=_ALL),
    "laplace": NamedMechanism(LaplaceMechanism, calibrations=_ALL),
    "wrapped": NamedMechanism(WrappedLaplace),
    "tangent": NamedMechanism(TangentLaplace, unbiased=_is_flat, shaped=True),
    "wrapped-gaussian": NamedMechanism(WrappedGaussian, "mu"),
    "tangent-gaussian": NamedMechanism(TangentGaussian, "mu", unbiased=_is_flat, shaped=True),
    "gaussian": NamedMechanism(RiemannianGaussian, "mu", suits=has_gaussian_certificate),
    "gibbs": NamedMechanism(GibbsMechanism, "mu", unbiased=_is_hadamard),
    "landmarks": NamedMechanism(LandmarkLaplace, suits=_has_landmarks, on_manifold=False),
    "landmarks-unaligned": NamedMechanism(
        functools.partial(LandmarkLaplace, align=False), suits=_has_landmarks, on_manifold=False
    ),
    "euclidean": NamedMechanism(EuclideanLaplace, suits=_has_ambient_means, on_manifold=False),
    "euclidean-projected": NamedMechanism(
        functools.partial(EuclideanLaplace, project=True), suits=_projects, unbiased=lambda manifold: False
    ),
}


#: The mechanism for each privacy parameter that suits every manifold, where none is named.
DEFAULTS = {"epsilon": "laplace", "mu": "wrapped-gaussian"}


def mechanism_named(
    name: str, ball: GeodesicBall, strength: float, calibration: str = "tight", **more
) -> BallMechanism:
    """Return the mechanism with a name of `MECHANISMS`; ``strength`` is its epsilon or mu.

    Args:
        more: ``statistic`` or ``shape``, of those that take one.

    Raises:
        ValueError: unknown name, a calibration that it does not have, or see the mechanism.
    """
    if name not in MECHANISMS:
        raise InputError(f"mechanism must be one of {', '.join(MECHANISMS)}, got {name!r}.")
    entry = MECHANISMS[name]
    if len(entry.calibrations) > 1:
        return entry.make(ball, strength, calibration=calibration, **more)
    if calibration != "tight":
        several = [other for other, named in MECHANISMS.items() if len(named.calibrations) > 1]
        raise InputError(
            f"mechanism {name!r} has no calibration {calibration!r}; only {' and '.join(several)} have several."
        )
    return entry.make(ball, strength, **more)


def unbiased_names(manifold: Manifold) -> list[str]:
    """Return the names of the mechanisms that release the statistic itself, a point of the manifold, for any
    records."""
    return [name for name, entry in MECHANISMS.items() if entry.on_manifold and entry.unbiased(manifold)]


def supported_on(manifold: Manifold, name: str) -> frozenset[str]:
    """Return the options that the named mechanism supports on a manifold, with default arguments."""
    # The origin is a point: to check that compiles for longer than the help of a command may take.
    ball = GeodesicBall.tree_unflatten(manifold, (manifold.origin, _SMALL))
    return MECHANISMS[name].make(ball, 1.0).supports


def names_with(option: str) -> list[str]:
    """Return the names of the mechanisms that support an option on the first suitable manifold of `_SPACES`; those
    that suit none of them are listed, too."""
    spaces = {name: next(filter(entry.suits, _SPACES), None) for name, entry in MECHANISMS.items()}
    return [name for name, space in spaces.items() if space is None or option in supported_on(space, name)]
