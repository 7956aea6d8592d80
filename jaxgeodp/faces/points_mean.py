"""The mean of registered points with noise on every coordinate: the baselines of radial curves."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError, positive_number
from jaxgeodp.compiling import compiled_ahead
from jaxgeodp.domains.point_box import PointBox
from jaxgeodp.domains.records import host_array, record_count
from jaxgeodp.faces.mean import PerCoordinate
from jaxgeodp.privacy.entropy import public_key, system_key
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.releases.law import Law, Terms
from jaxgeodp.releases.mechanism import Mechanism
from jaxgeodp.releases.vector import TIMING

# Below, rounding of the mean is not small beside the noise; above, sums overflow.
_LEAST_SCALE, _LARGEST = 1e-9, 1e100


@final
@dataclasses.dataclass(frozen=True, eq=False)
class PointwiseGaussian(Mechanism):
    """Noise on every coordinate of the mean of registered points (n, N, 3): the baseline of Soto (2024), made private.

    Each coordinate of each point may deviate by a public half-range from a public template and gets mu/sqrt(3 N).
    (The paper reads the ranges off the data and leaves out the 1/n: not private, and not comparable.)

    Args:
        template: public points (N, 3).
        half_range: of the deviations, above 0; a number, one per coordinate (3,), or one per point too (N, 3).
        mu: of the whole release.

    Raises:
        ValueError: a parameter is out of range.
    """

    template: np.ndarray
    half_range: PerCoordinate
    mu: float

    def __post_init__(self):
        _check_template_and_mu(self)
        object.__setattr__(self, "half_range", self._ranges(host_array("PointwiseGaussian", self.half_range)))

    def _ranges(self, half_range):
        """Read-only, of the shape given."""
        shape = self.template.shape
        fits = half_range.dtype.kind in "fiu" and half_range.shape in ((), (3,), shape)
        if not (fits and np.all(np.isfinite(half_range) & (half_range > 0))):
            raise InputError(
                f"PointwiseGaussian: half_range must be finite and above 0, one number, (3,) or {shape}, got shape "
                f"{half_range.shape}."
            )
        half_range = half_range.astype(float)
        half_range.setflags(write=False)
        return half_range

    @property
    def guarantee(self) -> GaussianDP:
        """Of all points together."""
        return GaussianDP(self.mu)

    def sensitivity(self, n: int):
        """Of one coordinate of one point: the range over n."""
        return 2.0 * np.asarray(self.half_range) / record_count(n)

    def scale(self, n: int):
        """Standard deviation of the noise of each coordinate."""
        return self.sensitivity(n) * math.sqrt(self.template.size) / self.mu

    @property
    def domain(self) -> PointBox:
        """Records (n, N, 3); deviations are clipped, a point that is not finite counts as the template's."""
        return PointBox(self.template, {"half_range": np.asarray(self.half_range).tolist()})

    @override
    def law(self, n, shape=()):
        theorem = "Gaussian mechanism (Dong, Roth & Su 2022, Theorem 1) and composition"
        return _law(self, n, theorem, "2 half_range/n", _clipped_to_ranges, self.half_range)


@final
@dataclasses.dataclass(frozen=True, eq=False)
class JointGaussian(Mechanism):
    """Equal noise on all coordinates of the mean of registered points (n, N, 3): one Gaussian mechanism for all.

    A face's deviation from a public template is one vector of 3 N numbers, pulled to a norm bound. `PointwiseGaussian`
    bounds every coordinate by itself instead, as if each could be at its worst in the same face.

    Args:
        template: public points (N, 3).
        norm_bound: of the deviations, above 0: the root of the mean squared distance of a point.
        mu: of the whole release.

    Raises:
        ValueError: a parameter is out of range.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp.surfaces import JointGaussian
        >>> mechanism = JointGaussian(np.zeros((50, 3)), norm_bound=0.1, mu=2.0)
        >>> round(mechanism.sensitivity(100), 4), round(mechanism.scale(100), 4)
        (0.0141, 0.0071)
    """

    template: np.ndarray
    norm_bound: float
    mu: float

    def __post_init__(self):
        _check_template_and_mu(self)
        positive_number("JointGaussian", "norm_bound", self.norm_bound)
        object.__setattr__(self, "norm_bound", float(self.norm_bound))

    @property
    def guarantee(self) -> GaussianDP:
        """Of all points together."""
        return GaussianDP(self.mu)

    def sensitivity(self, n: int) -> float:
        """How far one face moves the mean, in the Euclidean norm of all coordinates."""
        return 2.0 * self.norm_bound * math.sqrt(len(self.template)) / record_count(n)

    def scale(self, n: int) -> float:
        """Standard deviation of the noise of each coordinate."""
        return self.sensitivity(n) / self.mu

    @property
    def domain(self) -> PointBox:
        """Records (n, N, 3); a face with a point that is not finite counts as the template."""
        return PointBox(self.template, {"radius": self.norm_bound, "note": "root mean squared distance of a point"})

    @override
    def law(self, n, shape=()):
        theorem = "Gaussian mechanism (Dong, Roth & Su 2022, Theorem 1)"
        return _law(self, n, theorem, "2 norm_bound sqrt(N)/n", _pulled_to_norm, self.norm_bound)


def _check_template_and_mu(mechanism):
    """Public points (N, 3) and a mu in range, as they are kept."""
    name = type(mechanism).__name__
    template = host_array(name, mechanism.template)
    if template.ndim != 2 or template.shape[1] != 3 or not np.all(np.isfinite(template)):
        raise InputError(f"{name}: template must be points of shape (N, 3), got {template.shape}.")
    template = template.astype(float)  # a copy
    template.setflags(write=False)
    object.__setattr__(mechanism, "template", template)
    object.__setattr__(mechanism, "mu", GaussianDP(mechanism.mu).mu)


@dataclasses.dataclass(frozen=True, eq=False)
class PointsLaw(Law):
    """Normal noise on every coordinate of the mean of bounded deviations.

    Attributes:
        bounded: ``(deviations, bound) -> deviations``, each record's on its own.
        template, bound: public.
        scale: of each coordinate, or of all.
    """

    bounded: Callable
    template: np.ndarray
    bound: PerCoordinate | jax.Array
    scale: float | np.ndarray
    terms: Terms
    support = None
    order_matters = False
    grid = None

    @override
    def ready(self, shape):
        name, bound, scale = self.terms.mechanism, self.bound, self.scale
        if not (_LEAST_SCALE < np.min(scale) and max(np.max(scale), np.max(bound)) < _LARGEST):
            raise InputError(
                f"{name}: bounds up to {np.max(bound):g} and scales from {np.min(scale):g} cannot be drawn in double "
                "precision; choose other parameters."
            )
        public = self._public(shape.dtype)
        program = compiled_ahead(name, _draw, self.bounded, public_key(), shape, *public, 1)
        return lambda records: np.asarray(program(system_key(), records, *public))[0]

    @override
    def simulate(self, key, records, num):
        return _draw(self.bounded, key, records, *self._public(records.dtype), num)

    @override
    def log_density(self, x, records):
        template, bound, scale = self._public(records.dtype)
        mean = jnp.mean(self.bounded(records - template, bound), axis=0)
        return -0.5 * jnp.sum(((x - template - mean) / scale) ** 2)

    def _public(self, dtype):
        return tuple(jnp.asarray(x, dtype) for x in (self.template, self.bound, self.scale))


def _law(mechanism, n, theorem, formula, bounded, bound):
    with np.errstate(over="ignore"):  # refused when it is made ready
        sensitivity, scale = mechanism.sensitivity(n), mechanism.scale(n)
    terms = Terms(
        mechanism=type(mechanism).__name__,
        statistic="mean",
        n=n,
        strength=mechanism.mu,
        guarantee=mechanism.guarantee,
        sensitivity=sensitivity,
        formula=formula,
        theorem=theorem,
        sampler={"name": "normal", "exactness": "exact up to floating point"},
        timing=TIMING,
    )
    return PointsLaw(bounded, mechanism.template, bound, scale, terms)


@functools.partial(jax.jit, static_argnums=(0, 6))
def _draw(bounded, key, data, template, bound, scale, num):
    mean = jnp.mean(bounded(data - template, bound), axis=0)
    # The template last: at its size, if it is large, rounding would tell records apart that the noise hides.
    return template + (mean + scale * jax.random.normal(key, (num, *mean.shape), data.dtype))


def _clipped_to_ranges(deviations: jax.Array, half_range: jax.Array) -> jax.Array:
    return jnp.where(jnp.isfinite(deviations), jnp.clip(deviations, -half_range, half_range), 0.0)


def _pulled_to_norm(deviations: jax.Array, bound: jax.Array) -> jax.Array:
    squares = jnp.mean(jnp.sum(deviations**2, axis=-1), axis=-1)
    usable = jnp.isfinite(squares)
    norms = jnp.sqrt(jnp.where(usable & (squares > 0), squares, 1.0))
    factors = jnp.where(norms > bound, bound / norms, 1.0)[:, None, None]
    return jnp.where(usable[:, None, None], factors * deviations, 0.0)
