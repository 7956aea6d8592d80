"""The Laplace mechanism on coordinates of the tangent space (Dwork, McSherry, Nissim & Smith 2006)."""

import dataclasses
import math
from typing import final

from typing_extensions import override

from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.domains.records import record_count
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.mechanisms.tangent_vectors import MeanOfLogarithms
from jaxgeodp.privacy.guarantee import PureDP
from jaxgeodp.releases.noise import Coordinates
from jaxgeodp.releases.vector import vector_law


@final
@dataclasses.dataclass(frozen=True, eq=False)
class CoordinateLaplace(BallMechanism):
    """The mean of the logarithms at the centre plus independent Laplace noise of every coordinate.

    One record moves the vector by 2r/n at most, and the sum of its d coordinates by sqrt(d) times that.

    Args:
        ball: the public ball that holds the data.
        epsilon: privacy parameter, in (0, inf).

    Example:
        >>> from jaxgeodp import Euclidean, GeodesicBall
        >>> from jaxgeodp.mechanisms.coordinates import CoordinateLaplace
        >>> CoordinateLaplace(GeodesicBall(Euclidean(4), [0.0] * 4, 1.0), epsilon=1.0).scale(50)
        0.08
    """

    epsilon: float

    @property
    def guarantee(self) -> PureDP:
        """epsilon-DP."""
        return PureDP(self.epsilon)

    @override
    def law(self, n, shape=()):
        n = record_count(n)
        moved = 2.0 * self.ball.radius / n * math.sqrt(self.ball.manifold.dim)
        statistic = "mean of the logarithms at the centre"
        noise, sensitivity = Coordinates(), Sensitivity(moved, "sqrt(d) 2r/n, the sum of the coordinates' ranges")
        return vector_law(self, n, MeanOfLogarithms(), noise, sensitivity, self.epsilon, statistic)
