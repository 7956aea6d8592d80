"""A loss of one's own for the Gibbs mechanism, with constants that the user vouches for."""

import dataclasses
import operator
from typing import Any, final

import jax
import jax.numpy as jnp

from jaxgeodp.bounds.comparison import h_max
from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.checks import InputError, number_between, short
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.manifolds.analytic import safe_sqrt
from jaxgeodp.manifolds.derivatives import riemannian_gradient
from jaxgeodp.statistics.one_record import check_sees_one_record, of_one_record
from jaxgeodp.statistics.statistic import Statistic

# Of constants.
_SMALLEST, _MOST = 1e-30, 1e30
# Of a loss at the centre, in units of how much it can change: 10 of 16 digits are left for the change.
_LARGEST = 1e6
# Room for the last digits of a loss that changes as fast as it may.
_ROUNDING = 1e-9


@final
@dataclasses.dataclass(frozen=True)
class ConvexRisk(Statistic):
    """The minimiser of a user's mean loss, for `GibbsMechanism`.

    Where a mechanism clips gradients there is no loss that they are gradients of, so that here both constants are
    *supposed*, and the record says so: nothing checks them, and the guarantee hangs on them. So it does on each loss
    being finite and differentiable in the whole support. A loss that is not convex
    enough gets (lambda/2) dist(x, p0)^2 from `GibbsMechanism`, with a lambda that follows from public numbers.
    A record whose loss or gradient is not finite at the centre of the ball counts with a multiple of dist^2 from there,
    which is as convex; so does one whose loss at the centre exceeds 10^6 L times the ball's diameter, as double
    precision could not tell how it changes. No loss changes from the centre to a point at distance t by more than L t:
    what would is cut there, which does not make up for a loss that is infinite somewhere.

    Args:
        function: ``(x, datum) -> real``, pure JAX, differentiable in ``x``. Arrays that it closes over are public.
        lipschitz: L, the largest length of the gradient of one datum's loss, within the support.
        convexity_bound: m, at least 0: a lower bound of the Hessian of the mean loss of any data, within the support.
        smoothness: an upper bound of the Hessian of the mean loss, at least m. No guarantee hangs on it, but whether a
            draw ends: one that is too small may make it endless for some data.
        shape: shape of one datum; by default that of a point of the manifold, clipped into the ball. Data of
            another shape are used as they are.

    Raises:
        ValueError: a constant is out of range.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxgeodp import ConvexRisk, Euclidean, GeodesicBall, GibbsMechanism
        >>> line = GeodesicBall(Euclidean(1), [0.0], 1.0)
        >>> def loss(x, y):
        ...     return jnp.logaddexp(0.0, -y[0] * x[0]) + 0.05 * x[0] ** 2
        >>> statistic = ConvexRisk(loss, lipschitz=1.1, convexity_bound=0.1, smoothness=0.35)
        >>> round(GibbsMechanism(line, mu=1.0, statistic=statistic).sensitivity(100), 6)
        0.022
    """

    function: Any
    lipschitz: float
    convexity_bound: float
    smoothness: float
    shape: tuple[int, ...] | None = None
    of_a_set = True

    def __post_init__(self):
        if not callable(self.function):
            raise InputError(f"ConvexRisk: needs a function (x, datum) -> loss, got {type(self.function).__name__}.")
        for name, least in (("lipschitz", _SMALLEST), ("convexity_bound", 0.0), ("smoothness", _SMALLEST)):
            object.__setattr__(self, name, number_between("ConvexRisk", name, getattr(self, name), least, _MOST))
        if self.smoothness < self.convexity_bound:
            raise InputError("ConvexRisk: smoothness must be at least convexity_bound.")
        if self.shape is not None:
            try:
                shape = tuple(operator.index(m) for m in self.shape)
            except TypeError:
                shape = (-1,)
            if min(shape, default=0) < 0:
                raise InputError(f"ConvexRisk: shape must be that of one datum, such as (3,), got {short(self.shape)}.")
            object.__setattr__(self, "shape", shape)

    @property
    def description(self):
        """Return the name of the loss and the supposed constants."""
        name = getattr(self.function, "__name__", "loss")
        constants = f"lipschitz={self.lipschitz:g}, convexity_bound={self.convexity_bound:g}"
        ends = f"and, for draws to end, smoothness={self.smoothness:g}"
        return f"ConvexRisk({name}), supposed: {constants}, losses that are finite in the support; {ends}"

    def datum_shape(self, manifold):
        """Return the shape that was given, else that of a point."""
        return manifold.shape if self.shape is None else tuple(self.shape)

    def check(self, manifold):
        """Raise ValueError if the loss may look at several records; traced in double precision, as in a release."""
        with jax.enable_x64(True):
            dtype = jnp.dtype("complex128" if manifold.dtype_kind == "complex" else "float64")
            check_sees_one_record(self.function, manifold, self.datum_shape(manifold), (dtype, dtype))

    def clip(self, ball, data):
        """Points are clipped into the ball; other data are left as they are."""
        return ball.clip(data) if self.shape is None else data

    def loss(self, manifold, x, datum):
        """Return the user's function of a point and a datum."""
        return self.function(x, datum)

    def at_home(self, ball):
        """With the function of points carried back, and a loss for records that have none; see the class."""
        return _AtHome(self, ball)

    def gradient_sensitivity(self, ball, n, support_radius, calibration) -> Sensitivity:
        """2 L/n; L is not below the longest gradient of what stands for a record that has no loss."""
        if support_radius > 2.0 * ball.radius:
            raise InputError(
                f"{self.description}: the support's radius must be at most twice the ball's, {2.0 * ball.radius:g}, "
                f"got {support_radius:g}."
            )
        longest = max(self.lipschitz, self.steepness(ball) * support_radius)
        return Sensitivity(2.0 * longest / n, "2L/n, supposed: no gradient of one record is longer than L")

    def convexity(self, ball, distance):
        """Return the convexity that is supposed, whatever the distance is."""
        return self.convexity_bound

    def steepness(self, ball) -> Any:
        """Return the factor of dist^2/2 from the centre that makes it as convex as the others, in twice the ball."""
        return self.convexity_bound / h_max(2.0 * ball.radius, ball.manifold.curvature_bounds[1])


@dataclasses.dataclass(frozen=True, eq=False)
class _AtHome(Statistic):
    """A risk of points that lie at home, where a record without a loss has one: a multiple of dist^2 from the centre.

    It is as convex as the others must be, so that a record that is not finite changes no constant.
    """

    risk: ConvexRisk
    ball: GeodesicBall  # where the points come from
    of_a_set = True

    def loss(self, manifold, x, datum) -> jax.Array:
        return self._of_one(manifold, x, datum)[0]

    def value(self, manifold, x, data):
        return jnp.mean(self._of_each(manifold, 0, x, data))

    def gradient(self, manifold, x, data):
        return jnp.mean(self._of_each(manifold, 1, x, data), axis=0)

    @property
    def smoothness(self):
        return self.risk.smoothness

    def gradient_sensitivity(self, ball, n, support_radius, calibration):
        return self.risk.gradient_sensitivity(self.ball, n, support_radius, calibration)

    def convexity(self, ball, distance):
        return self.risk.convexity(self.ball, distance)

    def _of_one(self, manifold, x, datum) -> Any:
        """Loss and gradient; those of no record where they are not finite at the centre.

        Where they are not finite elsewhere, against what is supposed, they are cut to what the constants allow.
        """

        def function(y):
            return self.risk.function(self.ball.from_home(y), datum)

        home = manifold.home(jnp.asarray(self.ball.center, x.dtype))
        there = jnp.asarray(function(home))
        # What is constant would take digits from what is not.
        value: jax.Array = jnp.asarray(function(x)) - there
        gradient = riemannian_gradient(manifold, function)(x)
        at_home = riemannian_gradient(manifold, function)(home)
        known = jnp.abs(there) <= _LARGEST * self.risk.lipschitz * 2.0 * self.ball.radius
        known &= jnp.isfinite(manifold.norm(home, at_home))
        factor, back, squared = self.risk.steepness(self.ball), -manifold.log(x, home), manifold.squared_dist(home, x)
        most = self.risk.lipschitz * (1.0 + _ROUNDING) * safe_sqrt(squared)
        value = jnp.clip(jnp.where(jnp.isnan(value), most, value), -most, most)
        gradient = jnp.where(jnp.isfinite(manifold.norm(x, gradient)), gradient, factor * back)
        return jnp.where(known, value, 0.5 * factor * squared), jnp.where(known, gradient, factor * back)

    def _of_each(self, manifold, which, x, data):
        x, data = jnp.asarray(x), jnp.asarray(data)
        datum = jax.ShapeDtypeStruct(data.shape[1:], data.dtype)
        one = of_one_record("ConvexRisk: the loss", lambda *of: self._of_one(manifold, *of)[which], x, datum)
        return jax.vmap(lambda datum: one(x, datum))(data)
