"""Kernels of functions on the circle and on an interval, and their integral operators on samples.

A curve is a vector of m samples. The discrete L2 norm is ``|f|^2 = sum_i w_i f_i^2`` with quadrature weights w that sum
to 1 (1/m on the circle). The integral operator of a kernel k, ``(K f)_i = sum_l k(t_i, t_l) w_l f_l``, is self-adjoint
there, and the sum of its eigenvalues is k(t, t) = 1. All that the mechanisms need are functions of this operator
(docs/mathematics.md, section 12).
"""

import abc
import dataclasses
import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from typing_extensions import override

from jaxgeodp.checks import InputError, positive_integer, positive_number
from jaxgeodp.functional.spectra import DenseSpectrum, FourierSpectrum, Spectrum, one_program
from jaxgeodp.pytrees import Pytree

_FEWEST_SAMPLES = 4
# Smallest eigenvalue, added where a kernel's own is smaller: noise must cover all directions into which rounding leaks.
FLOOR = 1e-12
_ORDERS = (0.5, 1.5, 2.5)

#: One number for all curves, or one for each, shape (J,).
PerCurve = float | np.ndarray | jax.Array


@dataclasses.dataclass(frozen=True, eq=False)
class Kernel(Pytree, abc.ABC, leaves=("length_scale", "smoothness")):
    """A positive definite kernel with k(t, t) = 1: the interface of all kernels.

    The L2 norm of a curve is that of its m samples with the `weights`, and K is the integral operator of the kernel on
    these samples.

    Args:
        length_scale: above 0; how far values hang together. One number, or one per curve, shape (J,).

    Raises:
        ValueError: a parameter is out of range.
    """

    length_scale: PerCurve

    def __post_init__(self):
        scale = positive_numbers(type(self).__name__, "length_scale", self.length_scale)
        object.__setattr__(self, "length_scale", scale)

    # What a kernel defines ---------------------------------------------------------------------------

    @abc.abstractmethod
    def nodes(self, m: int) -> np.ndarray:
        """Return the positions of the m samples of a curve, (m,)."""

    @abc.abstractmethod
    def weights(self, m: int) -> np.ndarray:
        """Return quadrature weights of the samples, (m,), which sum to 1."""

    @abc.abstractmethod
    def profile(self, distance: jax.Array) -> jax.Array:
        """Return the kernel as a function of distance (an array), for one length scale."""

    @abc.abstractmethod
    def covariance(self, m: int) -> jax.Array:
        """Return the kernel at all pairs of samples, (m, m), or (J, m, m) for J length scales."""

    @abc.abstractmethod
    def spectrum(self, m: int) -> Spectrum:
        """Return the operator's eigenvalues, at least 1e-12, and eigenfunctions on m samples.

        Returns:
            An object with ``eigenvalues`` (modes,), or (J, modes) for J length scales, ``multiplicity`` (modes,), how
            often each of them counts, and the methods ``apply`` and ``energies``.
        """

    @abc.abstractmethod
    def smooth(self, curves, penalty) -> jax.Array:
        """Apply K (K + penalty)^-1 to curves (..., m); differentiable in length scale and penalty.

        Args:
            curves: (..., m).
            penalty: above 0; a number or (J,), then curves are (..., J, m).

        Returns:
            Smooth curves of the same shape.
        """

    @property
    @abc.abstractmethod
    def extent(self) -> float:
        """Length of the domain, 2 pi for closed curves, 1 for open ones."""

    # What follows ------------------------------------------------------------------------------------

    def check_samples(self, m: int) -> None:
        """Refuse m samples that are too few for the kernel: their spacing must not exceed its length.

        Raises:
            ValueError: m is below 4, or below `extent`/length_scale.
        """
        positive_integer(type(self).__name__, "the number of samples m", m, _FEWEST_SAMPLES)
        if isinstance(self.length_scale, Tracer):
            return
        shortest = float(np.min(self.length_scale))
        needed = math.ceil(self.extent / shortest - 1e-9)
        if m < needed:
            raise InputError(
                f"{type(self).__name__}: m={m} samples are too few for length_scale={shortest:g}; sample the curves "
                f"at {needed} points or more, or raise the length scale."
            )

    def sample(self, key: jax.Array, shape: Sequence[int], m: int) -> jax.Array:
        """Return exact draws of the Gaussian process with this covariance.

        Args:
            key: JAX random key.
            shape: how many; with J length scales it ends in J.
            m: samples per curve.

        Returns:
            (\\*shape, m).
        """
        spectrum = self.spectrum(m)
        white = jax.random.normal(key, (*shape, m)) / jnp.sqrt(self.weights(m))
        return spectrum.apply(jnp.sqrt(spectrum.eigenvalues), white)

    def _profiles(self, distance) -> jax.Array:
        """Apply `profile` to an array of distances; an axis of J length scales comes first."""
        leaves, structure = jax.tree.flatten(self)

        def one(*leaves):
            return jax.tree.unflatten(structure, leaves).profile(distance)

        if jnp.ndim(self.length_scale) == 0:
            return one(*leaves)
        return jax.vmap(one, in_axes=(0, *(None for _ in leaves[1:])))(*map(jnp.asarray, leaves))

    def with_length(self, length_scale) -> "Kernel":
        """Return the same kernel with other length scales, which may be tracers."""
        leaves, structure = jax.tree.flatten(self)
        return jax.tree.unflatten(structure, (length_scale, *leaves[1:]))


# Closed curves ------------------------------------------------------------------------------------------------


class _Periodic(Kernel):
    """Kernels of the arc distance on the unit circle: m equispaced samples, the end not repeated.

    The operator is a circular convolution: its eigenfunctions are the Fourier modes, exactly.
    """

    @property
    @override
    def extent(self) -> float:
        return 2.0 * math.pi

    def nodes(self, m):
        """Return the angles of the m equispaced samples, from 0; the end point 2 pi is not repeated."""
        return 2.0 * math.pi * np.arange(m) / m

    @override
    def weights(self, m):
        return np.full(m, 1.0 / m)

    def _first_row(self, m) -> jax.Array:
        place = np.arange(m)
        return self._profiles(jnp.asarray(2.0 * math.pi / m * np.minimum(place, m - place)))

    @one_program
    @override
    def covariance(self, m):
        return self._first_row(m)[..., _steps_between(m) % m]

    @one_program
    @override
    def spectrum(self, m):
        return FourierSpectrum(jnp.maximum(jnp.fft.rfft(self._first_row(m)).real / m, FLOOR), m)

    @one_program
    @override
    def smooth(self, curves, penalty):
        spectrum = self.spectrum(curves.shape[-1])
        values = spectrum.eigenvalues
        return spectrum.apply(values / (values + jnp.asarray(penalty)[..., None]), curves)


@dataclasses.dataclass(frozen=True, eq=False)
class PeriodicKernel(_Periodic):
    """exp(-(d/length_scale)^smoothness) of the arc distance d in [0, pi] (Soto, "Gaussian Differentially Private Human
    Faces", 2024, section 4); positive definite for smoothness in (0, 1].

    Args:
        length_scale: in radians of the unit circle, above 0; one number or one per curve, shape (J,).
        smoothness: the exponent, in (0, 1].

    Raises:
        ValueError: a parameter is out of range.

    Example:
        >>> from jaxgeodp.functional import PeriodicKernel
        >>> PeriodicKernel(0.5).covariance(80).shape
        (80, 80)
    """

    smoothness: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        positive_number("PeriodicKernel", "smoothness", self.smoothness)
        if self.smoothness > 1:
            raise InputError(
                f"PeriodicKernel: smoothness must be at most 1, where the kernel is positive definite, got "
                f"{self.smoothness:g}; for smoother curves use PeriodicMatern or PeriodicRBF."
            )
        object.__setattr__(self, "smoothness", float(self.smoothness))

    @override
    def profile(self, distance: jax.Array) -> jax.Array:
        # The power has no derivative at 0.
        away = distance > 0
        safe = jnp.where(away, distance, 1.0)
        return jnp.where(away, jnp.exp(-((safe / self.length_scale) ** self.smoothness)), 1.0)


@dataclasses.dataclass(frozen=True, eq=False)
class PeriodicMatern(_Periodic):
    """The Matern kernel of order 1/2, 3/2 or 5/2, wrapped around the circle and scaled to k(t, t) = 1.

    Sum of the kernel on the line over all windings, in closed form, hence positive definite; its eigenvalues are
    proportional to (2 order/length_scale^2 + j^2)^(-order - 1/2) (Borovitskiy et al. 2020).

    Args:
        length_scale: in radians, above 0; one number or one per curve, shape (J,).
        order: 0.5, 1.5 or 2.5: curves of the process have 0, 1 or 2 derivatives.

    Raises:
        ValueError: a parameter is out of range.
    """

    order: float = 1.5

    def __post_init__(self):
        super().__post_init__()
        if self.order not in _ORDERS:
            raise InputError(f"PeriodicMatern: order must be 0.5, 1.5 or 2.5, got {self.order!r}.")
        object.__setattr__(self, "order", float(self.order))

    @override
    def profile(self, distance: jax.Array) -> jax.Array:
        rate = jnp.asarray(math.sqrt(2.0 * self.order) / self.length_scale, distance.dtype)
        return _wound(self.order, rate, distance) / _wound(self.order, rate, jnp.zeros((), distance.dtype))


@functools.partial(jax.jit, static_argnums=0)
def _wound(order, rate, distance):
    """Sum the Matern kernel on the line over all windings of the circle, by derivatives in the rate."""

    def value(a):
        return (jnp.exp(-a * distance) + jnp.exp(-a * (2.0 * math.pi - distance))) / -jnp.expm1(-2.0 * math.pi * a)

    def slope(a):
        return jax.jvp(value, (a,), (jnp.ones_like(a),))[1]

    def curvature(a):
        return jax.jvp(slope, (a,), (jnp.ones_like(a),))[1]

    if order == 0.5:
        return value(rate)
    if order == 1.5:
        return value(rate) - rate * slope(rate)
    return value(rate) - rate * slope(rate) + rate**2 / 3.0 * curvature(rate)


@dataclasses.dataclass(frozen=True, eq=False)
class PeriodicRBF(_Periodic):
    """exp(-2 sin^2(d/2)/length_scale^2) of the arc distance d in [0, pi]: infinitely smooth (MacKay 1998).

    Args:
        length_scale: in radians, above 0; one number or one per curve, shape (J,).

    Raises:
        ValueError: a parameter is out of range.
    """

    @override
    def profile(self, distance: jax.Array) -> jax.Array:
        return jnp.exp(-2.0 * (jnp.sin(distance / 2.0) / self.length_scale) ** 2)


# Open curves --------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class IntervalKernel(Kernel):
    """Matern kernels, and their limit exp(-d^2/(2 length_scale^2)), on [0, 1]: for curves that are not closed.

    Samples are equispaced with both ends; the operator is that of the trapezoidal rule (Nystrom), by one
    eigendecomposition.

    Args:
        length_scale: in units of the interval, above 0; one number or one per curve, shape (J,).
        order: 0.5, 1.5, 2.5, or infinity for the squared exponential.

    Raises:
        ValueError: a parameter is out of range.
    """

    order: float = 1.5

    def __post_init__(self):
        super().__post_init__()
        if self.order not in (*_ORDERS, math.inf):
            raise InputError(f"IntervalKernel: order must be 0.5, 1.5, 2.5 or infinity, got {self.order!r}.")
        object.__setattr__(self, "order", float(self.order))

    @property
    @override
    def extent(self) -> float:
        return 1.0

    @override
    def nodes(self, m):
        return np.linspace(0.0, 1.0, m)

    @override
    def weights(self, m):
        weights = np.full(m, 1.0 / (m - 1))
        weights[[0, -1]] /= 2.0
        return weights

    @override
    def profile(self, distance: jax.Array) -> jax.Array:
        if math.isinf(self.order):
            return jnp.exp(-0.5 * (distance / self.length_scale) ** 2)
        x = math.sqrt(2.0 * self.order) * distance / self.length_scale
        polynomial = {0.5: 1.0, 1.5: 1.0 + x, 2.5: 1.0 + x + x**2 / 3.0}[self.order]
        return polynomial * jnp.exp(-x)

    @one_program
    @override
    def covariance(self, m):
        return self._profiles(jnp.abs(_steps_between(m)) / (m - 1.0))

    def _operator(self, m):
        """Return a symmetric matrix similar to the operator."""
        roots = np.sqrt(self.weights(m))
        return self.covariance(m) * (roots[:, None] * roots[None, :])

    @one_program
    @override
    def spectrum(self, m):
        values, vectors = jnp.linalg.eigh(self._operator(m))
        return DenseSpectrum(jnp.maximum(values, FLOOR), vectors, jnp.sqrt(jnp.asarray(self.weights(m))))

    @one_program
    @override
    def smooth(self, curves, penalty):
        # By a linear system: eigenvectors of nearly equal eigenvalues have no useful derivative.
        m = curves.shape[-1]
        roots = jnp.sqrt(jnp.asarray(self.weights(m)))
        penalty = jnp.asarray(penalty)[..., None]
        matrix = self._operator(m) + penalty[..., None] * jnp.eye(m)
        # ([J,] m, N): all curves that share a matrix are columns of one system.
        flat = (curves * roots).reshape(-1, *curves.shape[curves.ndim + 1 - matrix.ndim :])
        rest = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(matrix), jnp.moveaxis(flat, 0, -1))
        return curves - penalty * jnp.moveaxis(rest, -1, 0).reshape(curves.shape) / roots


def _steps_between(m):
    """Return index differences of m samples, (m, m), traced so that they are no constant of the program."""
    place = jnp.arange(m)
    return place[:, None] - place[None, :]


def positive_numbers(owner: str, name: str, value) -> PerCurve:
    """Return a float or read-only array (J,), all finite and positive; tracers pass unchecked."""
    if isinstance(value, Tracer):
        return value
    if np.ndim(value) == 0:
        positive_number(owner, name, value)
        return float(value)
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"{owner}: {name} must be a number above 0, or one per curve.") from None
    if array.ndim != 1 or array.size == 0 or not np.all(np.isfinite(array) & (array > 0)):
        raise InputError(f"{owner}: {name} must be finite and above 0, one number or one per curve, shape (J,).")
    array.setflags(write=False)
    return array
