"""A loss of the user's, made private by clipping the gradients of single records."""

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
class EmpiricalRisk(Statistic):
    """The minimiser of a user's mean loss, for `KNGMechanism`.

    Its gradients are clipped: the gradient of a single datum's loss that is longer than ``gradient_bound`` is
    shortened to it. So one datum changes the mean of the gradients by at most 2 gradient_bound/n, and privacy does not
    hang on a bound that the caller might get wrong; where the bound is right, nothing is changed. That needs a loss
    that sees one datum: it runs from a trace on the shapes of one, and what may look at several (callbacks, foreign
    functions, ``custom_vmap``, collectives, side effects) is refused when a mechanism is made.

    Args:
        function: ``(x, datum) -> real``, pure JAX, differentiable in ``x``. Arrays that it closes over are public.
        gradient_bound: L, public; the largest length of the gradient of one datum's loss.
        shape: shape of one datum; by default that of a point of the manifold, clipped into the ball. Data of
            another shape are used as they are (NaN and infinities count as gradient 0).

    Raises:
        ValueError: ``function`` is no function, or ``gradient_bound`` not a finite number above 0.

    Example:
        The private first principal direction of vectors in the unit ball, |grad| <= 1/2:

        >>> import jax.numpy as jnp
        >>> from jaxgeodp import EmpiricalRisk, GeodesicBall, KNGMechanism, Sphere
        >>> statistic = EmpiricalRisk(lambda x, y: -0.5 * jnp.vdot(x, y) ** 2, gradient_bound=0.5, shape=(3,))
        >>> ball = GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.7)
        >>> mechanism = KNGMechanism(ball, epsilon=1.0, statistic=statistic, support_radius=1.5)
        >>> mechanism.sensitivity(100)
        0.01
    """

    function: Any
    gradient_bound: float
    shape: tuple[int, ...] | None = None
    of_a_set = True

    def __post_init__(self):
        if not (callable(self.function) and 0 < self.gradient_bound < math.inf):
            raise InputError("EmpiricalRisk: needs a function (x, datum) -> loss and a finite gradient_bound above 0.")

    @property
    def description(self):
        """With the name of the loss."""
        return f"EmpiricalRisk({getattr(self.function, '__name__', 'loss')}, gradient_bound={self.gradient_bound:g})"

    def datum_shape(self, manifold):
        """Return the shape that was given, else that of a point."""
        return manifold.shape if self.shape is None else tuple(self.shape)

    def check(self, manifold):
        """Raise ValueError if the loss may look at several records; traced in double precision, as in a release."""
        with jax.enable_x64(True):
            dtype = jnp.dtype("complex128" if manifold.dtype_kind == "complex" else "float64")
            check_sees_one_record(self.function, manifold, self.datum_shape(manifold), (dtype, dtype))

    def clip(self, ball, data):
        """Points are clipped into the ball; other data are left to the clipping of gradients."""
        return ball.clip(data) if self.shape is None else data

    def loss(self, manifold, x, datum):
        """Return the user's function of a point and a datum."""
        return self.function(x, datum)

    def at_home(self, ball):
        """With the function of points carried back, so that gradients are clipped at home."""
        return dataclasses.replace(self, function=lambda y, datum: self.function(ball.from_home(y), datum))

    def gradient(self, manifold, x, data):
        """Return the mean of the clipped gradients.

        Raises:
            ValueError: the loss may look at several records.
        """

        def clipped(x, datum):
            gradient = riemannian_gradient(manifold, lambda y: self.function(y, datum))(x)
            length = manifold.norm(x, gradient)
            factor = jnp.where(length > self.gradient_bound, self.gradient_bound / length, 1.0)
            known = jnp.isfinite(length)
            return jnp.where(known, gradient * jnp.where(known, factor, 0.0), 0.0)

        x, data = jnp.asarray(x), jnp.asarray(data)
        datum = jax.ShapeDtypeStruct(data.shape[1:], data.dtype)
        one = of_one_record("EmpiricalRisk: the loss", clipped, x, datum)
        return jnp.mean(jax.vmap(lambda datum: one(x, datum))(data), axis=0)

    def gradient_sensitivity(self, ball, n, support_radius, calibration) -> Sensitivity:
        """2 L/n."""
        return Sensitivity(2.0 * self.gradient_bound / n, "2L/n, gradients of single records clipped to length L")
