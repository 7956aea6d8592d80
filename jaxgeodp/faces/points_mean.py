"""The mean of registered points with noise on every coordinate: the baselines of radial curves."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError, positive_number
from jaxgeodp.compiling import compiled_ahead, like
from jaxgeodp.faces.mean import PerCoordinate
from jaxgeodp.mechanisms.mechanism import checked_again, host_array, is_numeric, kind_of_data, record_count
from jaxgeodp.privacy.clock import work_begins
from jaxgeodp.privacy.entropy import public_key, system_key
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.privacy.release import Release, idealized, make_release, to_lists

# Below, rounding of the mean is not small beside the noise; above, sums overflow.
_LEAST_SCALE, _LARGEST = 1e-9, 1e100


@dataclasses.dataclass(frozen=True, eq=False)
class PointwiseGaussian:
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

    def simulate(self, key, data, num: int):
        """``num`` draws for research, (num, N, 3): reproducible from ``key``, hence not private."""
        return _simulate(self, _clipped_to_ranges, self.half_range, key, data, num)

    def release(self, data, ledger: Ledger | None = None) -> Release:
        """One private mean, (N, 3), with randomness from the operating system.

        Args:
            data: (n, N, 3), n >= 2; deviations are clipped, a point that is not finite counts as the template's.
            ledger: charged before anything is drawn.

        Raises:
            ValueError: wrong shape, fewer than two records, noise that double precision cannot draw, or the ledger has
                not enough left.
        """
        return _release(
            self,
            _clipped_to_ranges,
            self.half_range,
            data,
            ledger,
            theorem="Gaussian mechanism (Dong, Roth & Su 2022, Theorem 1) and composition",
            formula="2 half_range/n",
            ball={"half_range": np.asarray(self.half_range).tolist()},
        )


@dataclasses.dataclass(frozen=True, eq=False)
class JointGaussian:
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

    def simulate(self, key, data, num: int):
        """``num`` draws for research, (num, N, 3): reproducible from ``key``, hence not private."""
        return _simulate(self, _pulled_to_norm, self.norm_bound, key, data, num)

    def release(self, data, ledger: Ledger | None = None) -> Release:
        """One private mean, (N, 3), with randomness from the operating system.

        Args:
            data: (n, N, 3), n >= 2; a face with a point that is not finite counts as the template.
            ledger: charged before anything is drawn.

        Raises:
            ValueError: wrong shape, fewer than two faces, noise that double precision cannot draw, or the ledger has
                not enough left.
        """
        return _release(
            self,
            _pulled_to_norm,
            self.norm_bound,
            data,
            ledger,
            theorem="Gaussian mechanism (Dong, Roth & Su 2022, Theorem 1)",
            formula="2 norm_bound sqrt(N)/n",
            ball={"radius": self.norm_bound, "note": "root mean squared distance of a point"},
        )


def _check_template_and_mu(mechanism):
    """Public points (N, 3) and a mu in range, as they are kept."""
    name = type(mechanism).__name__
    template = host_array(name, mechanism.template)
    if template.ndim != 2 or template.shape[1] != 3 or not np.all(np.isfinite(template)):
        raise InputError(f"{name}: template must be points of shape (N, 3), got {template.shape}.")
    object.__setattr__(mechanism, "template", template.astype(float))
    object.__setattr__(mechanism, "mu", GaussianDP(mechanism.mu).mu)


def _records(mechanism, data):
    """Data of the template's shape, (n, N, 3), as floating point numbers."""
    name = type(mechanism).__name__
    data = data if isinstance(data, jax.Array) else host_array(name, data)
    if data.ndim != 3 or data.shape[1:] != mechanism.template.shape or not is_numeric(data.dtype, "fiu"):
        raise InputError(
            f"{name}: data must be real numbers of shape (n, {len(mechanism.template)}, 3), got {kind_of_data(data)} "
            f"of shape {data.shape}."
        )
    record_count(len(data))
    return jnp.asarray(data, jnp.result_type(data.dtype, float))


def _simulate(mechanism, bounded, bound, key, data, num):
    data = _records(mechanism, data)
    public = (mechanism.template, bound, mechanism.scale(len(data)))
    return _draw(bounded, key, data, *(jnp.asarray(x, data.dtype) for x in public), num)


def _release(mechanism, bounded, bound, data, ledger, *, theorem, formula, ball) -> Release:
    name = type(mechanism).__name__
    with work_begins(), jax.enable_x64(True):
        checked_again(mechanism)
        data = _records(mechanism, host_array(name, data)).astype(float)
        n = len(data)
        with np.errstate(over="ignore"):
            scale = np.asarray(mechanism.scale(n))
        if not (_LEAST_SCALE < np.min(scale) and max(np.max(scale), np.max(bound)) < _LARGEST):
            raise InputError(
                f"{name}: bounds up to {np.max(bound):g} and scales from {np.min(scale):g} cannot be drawn in double "
                "precision; choose other parameters."
            )
        public = tuple(jnp.asarray(x, data.dtype) for x in (mechanism.template, bound, scale))
        program = compiled_ahead(name, _draw, bounded, public_key(), like(data), *public, 1)
        return make_release(
            lambda: np.asarray(program(system_key(), data, *public))[0],
            fallback=mechanism.template,
            ledger=ledger,
            guarantee=mechanism.guarantee,
            theorem=theorem,
            mechanism=name,
            statistic="mean",
            manifold={"name": "points", "count": len(mechanism.template)},
            ball={"center": to_lists(mechanism.template), **ball},
            n=n,
            sensitivity={
                "value": np.asarray(mechanism.sensitivity(n)).tolist(),
                "formula": formula,
                "calibration": "tight",
            },
            scale=scale.tolist(),
            support=None,
            sampler={"name": "normal", "exactness": "exact up to floating point"},
            note=idealized("the number of steps does not depend on the data"),
        )


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
