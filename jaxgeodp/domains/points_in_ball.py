"""Records about points of a geodesic ball: by default such points themselves."""

import dataclasses

import jax
import numpy as np

from jaxgeodp.domains.domain import Domain
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.persons import frechet_means
from jaxgeodp.domains.records import host_array, points_in, records_of_shape
from jaxgeodp.manifolds.described import describe
from jaxgeodp.nested_lists import to_lists


@dataclasses.dataclass(frozen=True, eq=False)
class PointsInBall(Domain):
    """Records of one shape, and the ball of the points that they summarise to.

    Args:
        ball: public.
        shape: of one record; that of a point unless a statistic takes other data.
        has_summaries: whether records are points, not other data that may have their shape.
    """

    ball: GeodesicBall
    shape: tuple[int, ...]
    has_summaries: bool = True

    def records(self, owner, data):
        """Return the records as an array of points; landmarks (n, k, 2) become complex shapes."""
        manifold = self.ball.manifold
        data = data if isinstance(data, jax.Array) else host_array(owner, data)
        if data.shape == (0,):
            data = data.reshape(0, *self.shape)
        if self.shape == manifold.shape:
            data = points_in(manifold, data)
        return records_of_shape(owner, data, self.shape, manifold.dtype_kind, f"on {manifold}")

    def of_persons(self, owner, shape):
        """Return a function that gives each person's Frechet mean."""
        return frechet_means(owner, self.ball, shape)

    def described(self, shape):
        """Return manifold, centre and radius, for a record."""
        return {
            "manifold": describe(self.ball.manifold.of_values),
            "ball": {"center": to_lists(self.ball.center), "radius": self.ball.radius},
        }

    def fallback(self, shape):
        """Return the public centre."""
        return np.asarray(self.ball.center)
