"""Baselines of radial curves: the mean of registered points with noise on every coordinate."""

import dataclasses
import math
from typing import Any, final

import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError, positive_number
from jaxgeodp.domains.near_template import NearTemplate
from jaxgeodp.domains.records import host_array, record_count
from jaxgeodp.faces.mean import PerCoordinate
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.releases.encoding import GAUSSIAN, EncodedSums, Encoding, encoded_law
from jaxgeodp.releases.mechanism import Mechanism


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
        """Return the ranges as a read-only array of the given shape."""
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
        """Return the guarantee of all points together."""
        return GaussianDP(self.mu)

    def sensitivity(self, n: int):
        """Return the sensitivity of one coordinate of one point: its range over n."""
        return 2.0 * np.asarray(self.half_range) / record_count(n)

    def scale(self, n: int):
        """Return the standard deviation of the noise of each coordinate."""
        return self.sensitivity(n) * math.sqrt(self.template.size) / self.mu

    @property
    def domain(self) -> NearTemplate:
        """Records (n, N, 3); deviations are clipped, and a non-finite point counts as the template's."""
        return _domain(self.template, {"half_range": np.asarray(self.half_range).tolist()})

    @property
    def encoding(self) -> "EachCoordinate":
        """Encoding of points as vectors."""
        return EachCoordinate(self.template, self.half_range)

    @property
    @override
    def sums(self) -> EncodedSums:
        return EncodedSums(type(self).__name__, self.encoding)

    @override
    def law(self, n, shape=()):
        return encoded_law(
            self,
            self.encoding,
            self.template.shape,
            n,
            mu=self.mu / math.sqrt(self.template.size),
            bound=np.asarray(self.half_range),
            formula="2 half_range/n",
            theorem=f"{GAUSSIAN} and composition",
        )


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
        """Return the guarantee of all points together."""
        return GaussianDP(self.mu)

    def sensitivity(self, n: int) -> float:
        """Return the sensitivity of the mean in the Euclidean norm of all coordinates."""
        return 2.0 * self.norm_bound * math.sqrt(len(self.template)) / record_count(n)

    def scale(self, n: int) -> float:
        """Return the standard deviation of the noise of each coordinate."""
        return self.sensitivity(n) / self.mu

    @property
    def domain(self) -> NearTemplate:
        """Records (n, N, 3); a face with a non-finite point counts as the template."""
        return _domain(self.template, {"radius": self.norm_bound, "note": "root mean squared distance of a point"})

    @property
    def encoding(self) -> "AllCoordinates":
        """Encoding of points as vectors."""
        return AllCoordinates(self.template, self.norm_bound)

    @property
    @override
    def sums(self) -> EncodedSums:
        return EncodedSums(type(self).__name__, self.encoding)

    @override
    def law(self, n, shape=()):
        return encoded_law(self, self.encoding, self.template.shape, n, formula="2 norm_bound sqrt(N)/n")


def _domain(template, bounds):
    return NearTemplate(template, {"name": "points", "count": len(template)}, bounds)


def _check_template_and_mu(mechanism):
    """Store a copy of the public points (N, 3) and a mu in range."""
    name = type(mechanism).__name__
    template = host_array(name, mechanism.template)
    if template.ndim != 2 or template.shape[1] != 3 or not np.all(np.isfinite(template)):
        raise InputError(f"{name}: template must be points of shape (N, 3), got {template.shape}.")
    template = template.astype(float)  # a copy
    template.setflags(write=False)
    object.__setattr__(mechanism, "template", template)
    object.__setattr__(mechanism, "mu", GaussianDP(mechanism.mu).mu)


@dataclasses.dataclass(frozen=True, eq=False)
class EachCoordinate(Encoding):
    """Encoding of points as 3 N numbers, each bounded by a range of its own.

    Attributes:
        template, half_range: see `PointwiseGaussian`.
    """

    template: np.ndarray
    half_range: Any

    @override
    def deviation(self, record):
        return record - jnp.asarray(self.template, record.dtype)

    @override
    def bounded(self, data):
        deviations, half_range = data - jnp.asarray(self.template, data.dtype), jnp.asarray(self.half_range, data.dtype)
        return jnp.where(jnp.isfinite(deviations), jnp.clip(deviations, -half_range, half_range), 0.0)

    @override
    def white(self, deviations):
        return deviations.reshape(*deviations.shape[:-2], -1, 1)

    @override
    def value(self, vectors):
        return _near(self.template, vectors, 2)

    @override
    def vector(self, x):
        return self.white(x - jnp.asarray(self.template, x.dtype))

    @override
    def shape(self, record):
        return (math.prod(record), 1)

    @override
    def bounds(self, record):
        return self.each(self.half_range)

    @override
    def each(self, scale):
        return np.broadcast_to(scale, self.template.shape).reshape(-1)


@dataclasses.dataclass(frozen=True, eq=False)
class AllCoordinates(Encoding):
    """Encoding of points as one vector of 3 N numbers.

    Attributes:
        template, norm_bound: see `JointGaussian`.
    """

    template: np.ndarray
    norm_bound: Any

    @override
    def deviation(self, record):
        return (record - jnp.asarray(self.template, record.dtype)).reshape(-1)

    @override
    def value(self, vectors):
        return _near(self.template, vectors, 1)

    @override
    def vector(self, x):
        return self.deviation(x)

    @override
    def shape(self, record):
        return (math.prod(record),)

    @override
    def bounds(self, record):
        return self.norm_bound * math.sqrt(len(self.template))


def _near(template, vectors, axes):
    # The template last: at its size, if it is large, rounding would tell records apart that the noise hides.
    return jnp.asarray(template, vectors.dtype) + vectors.reshape(*vectors.shape[:-axes], *template.shape)
