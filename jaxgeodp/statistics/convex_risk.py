"""A loss of one's own for the Gibbs mechanism, with constants that the user vouches for."""

import dataclasses
import math
from typing import Any, final

import jax
import jax.numpy as jnp

from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.manifolds.derivatives import riemannian_gradient
from jaxgeodp.statistics.one_record import check_sees_one_record, of_one_record
from jaxgeodp.statistics.statistic import Statistic


@final
@dataclasses.dataclass(frozen=True)
class ConvexRisk(Statistic):
    """The minimiser of a user's mean loss, for `GibbsMechanism`.

    Where a mechanism clips gradients there is no loss that they are gradients of, so that here both constants are
    *supposed*, and the record says so: nothing checks them, and the guarantee hangs on them. A loss that is not convex
    enough becomes so by adding (m/2) dist(x, p0)^2 for a public point p0, which adds m h_max(R) to the constant.
    A record whose loss or gradient is not finite counts as one without loss.

    Args:
        function: ``(x, datum) -> real``, pure JAX, differentiable in ``x``. Arrays that it closes over are public.
        lipschitz: L, the largest length of the gradient of one datum's loss, within the support.
        convexity_bound: m, above 0: a lower bound of the Hessian of the mean loss of any data, within the support.
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
        >>> statistic = ConvexRisk(loss, lipschitz=1.1, convexity_bound=0.1)
        >>> round(GibbsMechanism(line, mu=1.0, statistic=statistic).sensitivity(100), 6)
        0.022
    """

    function: Any
    lipschitz: float
    convexity_bound: float
    shape: tuple[int, ...] | None = None

    def __post_init__(self):
        if not (callable(self.function) and 0 < self.lipschitz < math.inf and 0 < self.convexity_bound < math.inf):
            raise InputError(
                "ConvexRisk: needs a function (x, datum) -> loss, and finite lipschitz and convexity_bound above 0."
            )

    @property
    def description(self):
        """With the name of the loss, and what is supposed."""
        name = getattr(self.function, "__name__", "loss")
        return f"ConvexRisk({name}), supposed: lipschitz={self.lipschitz:g}, convexity_bound={self.convexity_bound:g}"

    def datum_shape(self, manifold):
        """As given, else that of a point."""
        return manifold.shape if self.shape is None else tuple(self.shape)

    def check(self, manifold):
        """See `check_sees_one_record`; in double precision, as a release."""
        with jax.enable_x64(True):
            dtype = jnp.dtype("complex128" if manifold.dtype_kind == "complex" else "float64")
            check_sees_one_record(self.function, manifold, self.datum_shape(manifold), (dtype, dtype))

    def clip(self, ball, data):
        """Points are clipped into the ball; other data are left as they are."""
        return ball.clip(data) if self.shape is None else data

    def loss(self, manifold, x, datum):
        """The user's function, where it and its gradient are finite; else 0."""
        return self._of_one(manifold, x, datum)[0]

    def value(self, manifold, x, data):
        """The mean loss."""
        return jnp.mean(self._of_each(manifold, 0, x, data))

    def gradient(self, manifold, x, data):
        """Of the mean loss."""
        return jnp.mean(self._of_each(manifold, 1, x, data), axis=0)

    def _of_one(self, manifold, x, datum):
        """Loss and gradient."""
        value = jnp.asarray(self.function(x, datum))
        gradient = riemannian_gradient(manifold, lambda y: self.function(y, datum))(x)
        known = jnp.isfinite(value) & jnp.isfinite(manifold.norm(x, gradient))
        return jnp.where(known, value, 0.0), jnp.where(known, gradient, 0.0)

    def _of_each(self, manifold, which, x, data):
        x, data = jnp.asarray(x), jnp.asarray(data)
        datum = jax.ShapeDtypeStruct(data.shape[1:], data.dtype)
        one = of_one_record("ConvexRisk: the loss", lambda *of: self._of_one(manifold, *of)[which], x, datum)
        return jax.vmap(lambda datum: one(x, datum))(data)

    def at_home(self, ball):
        """With the function of points carried back."""
        return dataclasses.replace(self, function=lambda y, datum: self.function(ball.from_home(y), datum))

    def gradient_sensitivity(self, ball, n, support_radius, calibration) -> Sensitivity:
        """2 L/n."""
        return Sensitivity(2.0 * self.lipschitz / n, "2L/n, supposed: no gradient of one record is longer than L")

    def convexity(self, ball, distance):
        """As supposed, whatever the distance is."""
        return self.convexity_bound
