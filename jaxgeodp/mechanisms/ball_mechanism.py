"""Mechanisms whose records lie in a public geodesic ball."""

import abc
import dataclasses
import functools
import math
from typing import Any

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall, assumption_limit
from jaxgeodp.domains.points_in_ball import PointsInBall
from jaxgeodp.domains.records import record_count
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.privacy.guarantee import GaussianDP, PureDP
from jaxgeodp.pytrees import Pytree
from jaxgeodp.releases.law import PointLaw
from jaxgeodp.releases.mechanism import Mechanism
from jaxgeodp.statistics.convex_risk import ConvexRisk
from jaxgeodp.statistics.empirical_risk import EmpiricalRisk
from jaxgeodp.statistics.statistic import FrechetMean

_LARGEST = 1e30


@dataclasses.dataclass(frozen=True, eq=False)
class BallMechanism(Mechanism, Pytree, leaves=("ball", "epsilon", "mu")):
    """A private summary of n records in a public ball: data are (n, \\*shape of a point), n at least 2.

    As a pytree its numbers and the ball are leaves, the rest is static.

    Args:
        ball: public.

    Raises:
        ValueError: the radius violates Assumption 1, the manifold leaves facts unknown that theorems need, or the
            privacy parameter is not in (0, inf).
    """

    ball: GeodesicBall

    def __post_init__(self):
        name = type(self).__name__
        if not isinstance(self.ball, GeodesicBall):
            raise InputError(f"{name}: ball must be a GeodesicBall, got {type(self.ball).__name__}.")
        limit = assumption_limit(self.ball.manifold.whole, self.ball.center)
        if not self.ball.radius >= limit > 0.0:  # where facts depend on the ball, they are unknown in too large ones
            _check_facts(name, self.ball.manifold)
        if not self.ball.satisfies_assumption:
            raise InputError(
                f"{name}: radius {self.ball.radius:g} violates Assumption 1; on {self.ball.manifold.whole} it must be "
                f"below {limit:.6g}, so choose a smaller public ball."
            )
        _check_range(name, "radius", self.ball.radius)
        kinds = {"epsilon": PureDP, "mu": GaussianDP}
        own = kinds.keys() & {field.name for field in dataclasses.fields(self)}
        for parameter in own:
            if vars(self)[parameter] is None and len(own) > 1:  # it has the other one
                continue
            value = dataclasses.asdict(kinds[parameter](vars(self)[parameter]))[parameter]
            object.__setattr__(self, parameter, value)
            _check_range(name, parameter, value)

    @abc.abstractmethod
    def law(self, n: int, shape: tuple[int, ...] = ()) -> PointLaw:
        """Return the law of a release of n records. ``shape`` is not needed: the domain states it."""

    @functools.cached_property
    def domain(self) -> PointsInBall:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the domain of the statistic: of points, (n, \\*shape of a point), or of other data."""
        statistic, manifold = self.summarised, self.ball.manifold
        shape = manifold.shape if isinstance(statistic, FrechetMean) else statistic.datum_shape(manifold)
        others = isinstance(statistic, ConvexRisk | EmpiricalRisk) and statistic.shape is not None
        return PointsInBall(self.ball, shape, has_summaries=shape == manifold.shape and not others)

    @property
    def summarised(self) -> Any:
        """Return the field "statistic", or the Frechet mean if there is no such field."""
        return vars(self).get("statistic", FrechetMean())

    def sensitivity(self, n: int) -> float:
        """Return the global sensitivity for n records (replace-one) of what is hidden by noise.

        That is the statistic or a vector that stands for it; of `KNGMechanism` and `GibbsMechanism` the gradient.

        Args:
            n: at least 2.

        Raises:
            ValueError: see `Mechanism.law`.
        """
        return self.law(record_count(n)).terms.sensitivity

    def scale(self, n: int) -> float:
        """Return the scale of the noise for n records; the class says of which density.

        Args:
            n: at least 2.

        Raises:
            ValueError: see `Mechanism.law`.
        """
        return self.law(record_count(n)).scale

    def support(self, n: int) -> GeodesicBall | None:
        """Return the ball outside which nothing is released; None for the whole manifold.

        Args:
            n: at least 2.

        Raises:
            ValueError: see `Mechanism.law`.
        """
        return self.law(record_count(n)).support


def _check_range(owner, name, value):
    """Refuse privacy parameters beyond which squares of scales leave double precision."""
    if not 1.0 / _LARGEST <= value <= _LARGEST:
        raise InputError(f"{owner}: {name} must be between {1.0 / _LARGEST:g} and {_LARGEST:g}, got {value:g}.")


def _check_facts(name, manifold):
    """Refuse manifolds that leave unknown what the theorems need."""
    for factor in getattr(manifold, "manifolds", ()):
        _check_facts(name, factor)
    known = all(map(math.isfinite, manifold.curvature_bounds)) and manifold.injectivity_radius > 0
    if not known or type(manifold).log is Manifold.log:
        raise InputError(
            f"{name}: {manifold} must define its curvature_bounds, injectivity_radius and log for private releases "
            "(none is assumed, and the default logarithm may fail far from its base)."
        )
