"""The penalised mean of curves, argmin_h (1/n) sum_i |f_i - h|^2 + penalty |h|_kernel^2."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from jaxgeodp.checks import InputError
from jaxgeodp.domains.records import host_array
from jaxgeodp.functional.kernels import Kernel, PerCurve, positive_numbers
from jaxgeodp.pytrees import Pytree

_LEAST_PENALTY = 1e-10


@dataclasses.dataclass(frozen=True, eq=False)
class RKHSMean(Pytree):
    """The mean curve, each eigencomponent times lambda/(lambda + penalty) (Soto 2024, section 4).

    Args:
        kernel: whose norm penalises roughness.
        penalty: at least 1e-10; one number or one per curve, shape (J,).

    Raises:
        ValueError: the penalty is out of range, or for another number of curves than the kernel's length scale.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp.functional import PeriodicKernel, RKHSMean
        >>> curves = np.random.default_rng(0).normal(size=(100, 3, 80))
        >>> RKHSMean(PeriodicKernel(0.5), 0.01)(curves).shape
        (3, 80)
    """

    kernel: Kernel
    penalty: PerCurve

    def __post_init__(self):
        if not isinstance(self.kernel, Kernel):
            raise InputError(f"RKHSMean: kernel must be a kernel of jaxgeodp.functional, got {self.kernel!r}.")
        object.__setattr__(self, "penalty", positive_penalty("RKHSMean", self.penalty))
        curve_count(self.kernel.length_scale, self.penalty)

    def __call__(self, curves: ArrayLike) -> jax.Array:
        """Return the smooth mean (J, m) of curves (n, J, m).

        Raises:
            ValueError: the shape is wrong, or m is too small for the kernel.
        """
        curves = jnp.asarray(curves if isinstance(curves, jax.Array) else host_array("RKHSMean", curves))
        if curves.ndim != 3 or 0 in curves.shape:
            raise InputError(f"RKHSMean: curves must have shape (n, J, m), got {curves.shape}.")
        count = curve_count(self.kernel.length_scale, self.penalty)
        if count not in (None, curves.shape[1]):
            raise InputError(f"RKHSMean: is for J={count} curves, got curves of shape {curves.shape}.")
        self.kernel.check_samples(curves.shape[-1])
        return self.kernel.smooth(jnp.mean(curves, axis=0), self.penalty)


def positive_penalty(owner: str, penalty) -> PerCurve:
    """Return the penalty; refuse one too small for double precision."""
    penalty = positive_numbers(owner, "penalty", penalty)
    if not isinstance(penalty, Tracer) and np.min(penalty) < _LEAST_PENALTY:
        raise InputError(f"{owner}: penalty must be at least {_LEAST_PENALTY:g}, got {np.min(penalty):g}.")
    return penalty


def clipped(curves: jax.Array, template, norm_bound: jax.Array, weights: jax.Array | np.ndarray) -> jax.Array:
    """Return deviations from a template, each curve clipped to the norm bound.

    A record with a value that is not finite, or too large to be squared, counts as the template.

    Args:
        curves: (n, J, m).
        template: (J, m), or 0.
        norm_bound: a number or (J,).
        weights: of the samples, (m,).
    """
    deviations: jax.Array = curves - template
    squares = jnp.matmul(deviations**2, weights, precision="highest")  # several times as fast on a CPU as a sum
    usable = jnp.all(jnp.isfinite(squares), axis=-1)
    norms = jnp.sqrt(jnp.where(squares > 0, squares, 1.0))
    factors = jnp.where(norms > norm_bound, norm_bound / norms, 1.0)
    return jnp.where(usable[:, None, None], factors[..., None] * deviations, 0.0)


def curve_count(*parameters) -> int | None:
    """Return J from parameters of shape () or (J, ...); None if none has such an axis.

    Raises:
        ValueError: they disagree.
    """
    counts = {np.shape(parameter)[0] for parameter in parameters if np.ndim(parameter) > 0}
    if len(counts) > 1:
        raise InputError(
            "length_scale, penalty, norm_bound, mu and template are for different numbers of curves: "
            f"{', '.join(map(str, sorted(counts)))}; give each as one number or one per curve."
        )
    return counts.pop() if counts else None
