"""What is summarised: the minimiser of a mean loss F(x; D) = (1/n) sum_i loss(x, d_i), with what mechanisms need."""

import abc
import dataclasses
import math
from typing import Any, ClassVar, final

import jax
import jax.numpy as jnp
from typing_extensions import override

from jaxgeodp.bounds.comparison import h_max, h_min
from jaxgeodp.bounds.growth import GradientGrowth, RadialGrowth, gradient_growth
from jaxgeodp.bounds.sensitivity import Sensitivity, gradient_sensitivity, mean_sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.manifolds.derivatives import riemannian_gradient
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.statistics.frechet_mean import mean_in_ball
from jaxgeodp.statistics.records import log_moments, points_and_weights

# Methods that are given all records together.
_OF_ALL = (
    *("minimizer", "gradient", "value", "gradient_norm", "center", "start", "hessian_growth", "gradient_growth"),
    *("clip", "clip_to_home", "at_home"),
)


class Statistic(abc.ABC):
    """A loss of a point and a datum, its mean's gradient, and public bounds of how much one datum can change it.

    A subclass is a frozen (hashable) dataclass. It must give `loss` and `gradient_sensitivity`, which is all that
    `KNGMechanism` relies on; the rest makes it fast, or fit for other mechanisms. Data need not be points of
    the manifold: `datum_shape` and `clip` say what they are.

    Below ``x`` is a point, of shape ``manifold.shape``; ``datum`` is one record, ``data`` are n of them, clipped, of
    shape (n, \\*datum_shape); ``ball`` is the public `GeodesicBall`.

    This library's own statistics are final: theorems are about their gradients, which a subclass could replace.

    Attributes:
        supposes: whether its constants are a user's word, which nothing checks; so it is for what a user writes.
    """

    supposes: bool = True

    def __init_subclass__(cls, **keywords):
        """Raise TypeError for a subclass of a class that `typing.final` marks."""
        super().__init_subclass__(**keywords)
        for base in cls.__mro__[1:]:
            if vars(base).get("__final__", False):
                raise TypeError(
                    f"{cls.__name__}: {base.__name__} is final: theorems are about its gradient. Derive from Statistic."
                )

    #: Whether methods of all records are known not to depend on their order; say it only with a proof.
    of_a_set: ClassVar[bool] = False

    @property
    def order_matters(self) -> bool:
        """Return whether the order of records may matter, as a method of all records is overridden without `of_a_set`.

        The records are then drawn from in a secret random order (docs/mathematics.md, Theorem O2).
        """
        own = ((getattr(type(self), name), name) for name in _OF_ALL)
        return not self.of_a_set and any(
            method not in (getattr(Statistic, name), getattr(Equivariant, name)) for method, name in own
        )

    @abc.abstractmethod
    def loss(self, manifold: Manifold, x, datum) -> jax.Array:
        """Return the loss of the point ``x`` for one datum; a real scalar, differentiable in ``x``."""

    @abc.abstractmethod
    def gradient_sensitivity(self, ball: GeodesicBall, n: int, support_radius: float, calibration: str) -> Sensitivity:
        """Bound of |grad F(x; D) - grad F(x; D')| for adjacent clipped data and x within ``support_radius``.

        Args:
            ball: public.
            n: number of records.
            support_radius: R; releases lie within R of the centre of the ball. It may be infinite.
            calibration: one of `jaxgeodp.bounds.CALIBRATIONS`, where the statistic has several bounds.
        """

    def minimizer_sensitivity(self, ball: GeodesicBall, n: int, calibration: str) -> Sensitivity:
        """Bound of the distance between the minimisers of adjacent data; `LaplaceMechanism` needs it.

        Raises:
            ValueError: none is known, as by default.
        """
        raise InputError(f"{self.description}: the sensitivity of its minimiser is not known; use KNGMechanism.")

    @property
    def description(self) -> str:
        """How a release record names the statistic."""
        return type(self).__name__

    def datum_shape(self, manifold: Manifold) -> tuple[int, ...]:
        """Shape of one datum; that of a point by default."""
        return manifold.shape

    def check(self, manifold: Manifold) -> None:  # noqa: B027 - most have nothing to refuse
        """Raise ValueError where the statistic cannot be released on a manifold; for when a mechanism is made."""

    def clip(self, ball: GeodesicBall, data):
        """Map raw data (n, \\*datum_shape) into the public domain, each datum on its own."""
        return ball.clip(data)

    def at_home(self, ball: GeodesicBall) -> "Statistic":
        """This statistic for points that are carried to where the centre of the ball is the origin.

        By default its loss there is that of the points carried back, so that a subclass need not know of it.
        """
        return _Carried(self, ball)

    def clip_to_home(self, ball: GeodesicBall, data):
        """Return what `at_home` takes for raw data: by default `clip`, as the data stay where they are."""
        return self.clip(ball, data)

    def minimizer(self, ball: GeodesicBall, data) -> jax.Array:
        """Return the minimiser over the ball by a public number of steps, for mechanisms that release points around it.

        Raises:
            ValueError: the statistic has none, as by default.
        """
        raise InputError(f"{self.description}: it has no minimizer, which LaplaceMechanism needs; use KNGMechanism.")

    def may_be_unbounded(self, manifold: Manifold) -> bool:
        """Tell whether the sensitivity holds on the whole manifold and the gradient norm outgrows the volume."""
        return False

    def gradient(self, manifold: Manifold, x, data) -> jax.Array:
        """grad F(x), a tangent vector; by automatic differentiation."""
        return riemannian_gradient(
            manifold, lambda y: jnp.mean(jax.vmap(lambda datum: self.loss(manifold, y, datum))(data))
        )(x)

    def value(self, manifold: Manifold, x, data) -> jax.Array:
        """F(x), a real number."""
        return jnp.mean(jax.vmap(lambda datum: self.loss(manifold, x, datum))(data))

    def convexity(self, ball: GeodesicBall, distance) -> Any:
        """Return a lower bound of the Hessian of F for clipped data, within ``distance`` of the ball's centre.

        It may be negative, and falls with the distance.

        Raises:
            ValueError: none is known.
        """
        raise InputError(
            f"{self.description}: GibbsMechanism needs a bound of its Hessian, which is not known; use another "
            "mechanism."
        )

    def largest_hessian(self, ball: GeodesicBall, reach: float) -> Any:
        """Return an upper bound of the Hessian of F for clipped data, within ``reach`` of that centre; None: unknown.

        By default what the statistic states as its ``smoothness``.
        """
        return getattr(self, "smoothness", None)

    def outward_pull(self, ball: GeodesicBall, reach: float) -> float:
        """Return a bound of how strongly F may fall away from the centre of the ball, at this distance of it."""
        return self.gradient_sensitivity(ball, 2, reach, "tight").value  # two records at most as long as each other

    def hessian_growth(self, manifold: Manifold, center, data, farthest, pull) -> GradientGrowth | RadialGrowth | None:
        """Return what is known of the Hessian of F on geodesics from ``center``, where its gradient is ``pull`` long.

        Within ``farthest`` of all data; None for nothing but `convexity`.
        """
        return None

    def gradient_norm(self, manifold: Manifold, x, data) -> jax.Array:
        """|grad F(x)|."""
        return manifold.norm(x, self.gradient(manifold, x, data))

    def center(self, ball: GeodesicBall, data) -> jax.Array:
        """Return where exact samplers put their envelope, a point of the ball; any will do, the minimiser is best."""
        precision = real_dtype(data) if jnp.issubdtype(data.dtype, jnp.inexact) else float
        return jnp.asarray(ball.center, jnp.result_type(precision, ball.center.dtype.type(0).item()))

    def start(self, ball: GeodesicBall, data) -> jax.Array:
        """Return where a search for the minimiser begins, a point of the ball; `center` by default."""
        return self.center(ball, data)

    def gradient_growth(self, manifold: Manifold, center, data, farthest: float) -> Any:
        """Return a certified concave lower bound of |grad F| by the distance from ``center``: 0 is one."""
        return 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class _Carried(Statistic):
    """A statistic of points that lie at home, by what another says of them where they come from."""

    inner: Statistic
    ball: GeodesicBall  # where the points come from

    @property
    def order_matters(self):
        return self.inner.order_matters

    def loss(self, manifold, x, datum):
        return self.inner.loss(manifold, self.ball.from_home(x), datum)

    def gradient_sensitivity(self, ball, n, support_radius, calibration):
        return self.inner.gradient_sensitivity(self.ball, n, support_radius, calibration)

    def gradient(self, manifold, x, data):
        if type(self.inner).gradient is Statistic.gradient:
            return super().gradient(manifold, x, data)
        point = self.ball.from_home(x)
        return jax.jvp(self.ball.to_home, (point,), (self.inner.gradient(manifold, point, data),))[1]

    def gradient_norm(self, manifold, x, data):
        if type(self.inner).gradient_norm is Statistic.gradient_norm:
            return super().gradient_norm(manifold, x, data)
        return self.inner.gradient_norm(manifold, self.ball.from_home(x), data)

    def center(self, ball, data):
        return self.ball.to_home(self.inner.center(self.ball, data))

    def minimizer(self, ball, data):
        return self.ball.to_home(self.inner.minimizer(self.ball, data))

    def convexity(self, ball, distance):
        return self.inner.convexity(self.ball, distance)

    def outward_pull(self, ball, reach):
        return self.inner.outward_pull(self.ball, reach)

    def gradient_growth(self, manifold, center, data, farthest):
        return self.inner.gradient_growth(manifold, self.ball.from_home(center), data, farthest)


class Equivariant(Statistic):
    """A statistic of points that isometries of the manifold carry along: ``loss(g x, g datum) = loss(x, datum)``."""

    def at_home(self, ball):
        """Return the statistic itself, which isometries leave unchanged."""
        return self

    def clip_to_home(self, ball, data):
        """`GeodesicBall.clip_to_home`."""
        return ball.clip_to_home(data)


@final
@dataclasses.dataclass(frozen=True)
class FrechetMean(Equivariant):
    """The Frechet mean: the minimiser of F(x) = (1/2n) sum dist(x, x_i)^2 over the public ball.

    The statistic of all mechanisms that get no other. It is unique in a ball that satisfies Assumption 1 (see
    `GeodesicBall`).
    """

    of_a_set = True
    supposes = False

    def loss(self, manifold: Manifold, x, datum):
        """Half the squared distance."""
        return 0.5 * manifold.squared_dist(x, datum)

    def may_be_unbounded(self, manifold: Manifold) -> bool:
        """On Hadamard manifolds: there |grad F| grows like the distance."""
        return manifold.curvature_bounds[1] <= 0 and math.isinf(manifold.injectivity_radius)

    def minimizer(self, ball: GeodesicBall, data) -> jax.Array:
        """Return the mean of points in the ball, by a public number of steps."""
        return mean_in_ball(ball, data)

    def center(self, ball: GeodesicBall, data) -> jax.Array:
        """Return the mean."""
        return mean_in_ball(ball, data)

    def start(self, ball: GeodesicBall, data) -> jax.Array:
        """`Manifold.mean_start`."""
        return ball.pull_inside(ball.manifold.project(ball.manifold.mean_start(*points_and_weights(data))))

    def gradient(self, manifold: Manifold, x, data) -> jax.Array:
        """-(1/n) sum_i log_x(x_i), n of them at a time as matrix products."""
        return -manifold.log_moments(x, *points_and_weights(data))[0]

    def gradient_norm(self, manifold: Manifold, x, data) -> jax.Array:
        """|grad F(x)|, with little memory beside the data."""
        return manifold.norm(x, log_moments(manifold, x, data)[0])

    @override
    def gradient_growth(self, manifold: Manifold, center, data, farthest):
        return gradient_growth(manifold, center, *points_and_weights(data), farthest)

    def value(self, manifold: Manifold, x, data) -> jax.Array:
        """Half the mean squared distance, as matrix products."""
        return 0.5 * log_moments(manifold, x, data)[1]

    def convexity(self, ball: GeodesicBall, distance):
        """h_max at the farthest that a record can be."""
        return h_max(distance + ball.radius, ball.manifold.curvature_bounds[1])

    def largest_hessian(self, ball: GeodesicBall, reach: float) -> Any:
        """h_min at the farthest that a record can be."""
        return h_min(reach + ball.radius, ball.manifold.curvature_bounds[0])

    def outward_pull(self, ball: GeodesicBall, reach: float) -> float:
        """Return max(radius - reach, 0), the pull of records at the rim of the ball."""
        return max(ball.radius - reach, 0.0)

    @override
    def hessian_growth(self, manifold: Manifold, center, data, farthest, pull):
        growth = gradient_growth(manifold, center, *points_and_weights(data), farthest, pull)
        return growth if isinstance(growth, GradientGrowth) else None

    def gradient_sensitivity(self, ball, n, support_radius, calibration) -> Sensitivity:
        """Return the bound of Theorems A and B, or that of the papers."""
        return gradient_sensitivity(ball, n, support_radius, calibration)

    def minimizer_sensitivity(self, ball, n, calibration) -> Sensitivity:
        """Return the bound of Theorem C, or that of the papers."""
        return mean_sensitivity(ball, n, calibration)
