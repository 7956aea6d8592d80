"""What all mechanisms share: public calibration, reproducible simulation, private release.

A mechanism is a public configuration; private data enter only as method arguments. It releases a draw from
the density exp(-psi(x; D)/sigma) with respect to the volume measure, on the whole manifold or on a ball
around the public centre. A subclass says what psi is, how it is calibrated, and how fast psi grows away
from the statistic, which is all that the exact sampler needs.
"""

import abc
import dataclasses
import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.bounds import CALIBRATIONS, Sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.domain import GeodesicBall, assumption_limit
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.privacy.entropy import system_key
from jaxgeodp.privacy.guarantee import PureDP
from jaxgeodp.privacy.release import Release, make_release
from jaxgeodp.samplers.rejection import Draws, default_block, rejection_sample
from jaxgeodp.statistics.statistic import FrechetMean, Statistic

# Largest scale in units of the existence limit for draws that double precision can hold: on SPD(2) no draw in 20,000
# was affected at 0.35 of it, 5 in 100,000 at 0.57.
_LARGEST_SCALE = 0.35
# Largest radius in units of 1/sqrt|k_min|: condition exp(2 * 10) of a matrix costs 9 of 16 digits.
_LARGEST_REACH = 10.0
# Proposals per round of a release: few enough to cost nothing, many enough where acceptance is low.
_RELEASE_BLOCK = 256


class Calibration(NamedTuple):
    """The public numbers of a mechanism for n records, and the theorem that makes it private."""

    sensitivity: Sensitivity
    scale: float
    support: GeodesicBall | None
    theorem: str


@dataclasses.dataclass(frozen=True, eq=False)
class Mechanism(abc.ABC):
    """A pure epsilon-DP mechanism for a statistic of n records in a public ball; see the module docstring.

    Raises:
        ValueError: the radius violates Assumption 1, epsilon is not in (0, inf), unknown calibration.
    """

    ball: GeodesicBall
    epsilon: float
    statistic: Statistic = dataclasses.field(default_factory=FrechetMean)
    calibration: str = "tight"

    # Whether psi is the distance from the statistic, so that a sampler in polar coordinates knows it exactly.
    _radial = False

    def __post_init__(self):
        name = type(self).__name__
        _check_facts(name, self.ball.manifold)
        if not self.ball.satisfies_assumption:
            limit = assumption_limit(self.ball.manifold)
            raise InputError(
                f"{name}: radius {self.ball.radius:g} violates Assumption 1; on {self.ball.manifold} it must be "
                f"below {limit:.6g}, so choose a smaller public ball."
            )
        object.__setattr__(self, "epsilon", PureDP(self.epsilon).epsilon)
        if self.calibration not in CALIBRATIONS:
            raise InputError(f"{name}: calibration must be one of {', '.join(CALIBRATIONS)}, got {self.calibration!r}.")

    # What a mechanism defines ------------------------------------------------------------------------

    @abc.abstractmethod
    def calibrate(self, n: int) -> Calibration:
        """Sensitivity, scale, support and theorem for n records; public quantities only."""

    @abc.abstractmethod
    def _center(self, points):
        """The point from which exact samplers measure distances."""

    @abc.abstractmethod
    def _potential(self, x, center, points):
        """psi(x) for clipped data and their ``center``."""

    @abc.abstractmethod
    def _growth(self, center, points, support):
        """A certified lower bound of psi as a function of the distance from ``center``."""

    # Public quantities -------------------------------------------------------------------------------

    @property
    def guarantee(self) -> PureDP:
        """What one release promises."""
        return PureDP(self.epsilon)

    def sensitivity(self, n: int) -> float:
        """The global sensitivity for n records (replace-one)."""
        return self.calibrate(_record_count(n)).sensitivity.value

    def scale(self, n: int) -> float:
        """sigma for n records, in units of psi."""
        return self.calibrate(_record_count(n)).scale

    def support(self, n: int) -> GeodesicBall | None:
        """The ball outside which nothing is released; None for the whole manifold."""
        return self.calibrate(_record_count(n)).support

    # Data meet the mechanism -------------------------------------------------------------------------

    def log_density(self, x, data):
        """Unnormalised log density of a release at ``x``, minus infinity outside the support.

        Args:
            x: a point, shape ``shape``. Batched by `jax.vmap`.
            data: (n, \\*shape); clipped into the ball.
        """
        data = self._records(data)
        calibration = self.calibrate(data.shape[0])
        return _log_density(self, x, data, calibration.scale, calibration.support)

    def simulate(self, key, data, num: int):
        """``num`` independent draws for research: reproducible from ``key``, hence not private.

        Jit- and vmap-compatible; runs in the precision of ``data``.

        Args:
            key: JAX random key.
            data: (n, \\*shape), n >= 2; clipped into the ball.

        Returns:
            (num, \\*shape). On SPD, draws of condition above 1e16 (scales near the existence limit) have
            lost their small eigenvalues to rounding.

        Raises:
            ValueError: wrong shape, fewer than two records, no such distribution exists, or (KNG on SPD) its
                scale is too near the existence limit for double precision.
        """
        return self._draws(key, self._records(data), num).points

    def release(self, data) -> Release:
        """One private release, in double precision, with randomness from the operating system.

        Args:
            data: (n, \\*shape), n >= 2. A record outside the ball is clipped, a record that is no point
                becomes the centre; neither is reported.

        Raises:
            ValueError: wrong shape, fewer than two records, or no such distribution exists (see `scale`).

        The sampler goes on until it has a draw: giving up would be one more output, which no theorem covers. How
        long that takes depends on the data; for data at opposite ends of a large ball in high dimension it may
        be hours.
        """
        with jax.enable_x64(True):
            data = self._records(_host_array(type(self).__name__, data))
            data = data.astype(jnp.promote_types(data.dtype, jnp.float64))
            calibration = self.calibrate(data.shape[0])
            self._check_representable(data.shape[0], calibration)  # also where the sampler could do without
            draws = self._draws(system_key(), data, 1, _RELEASE_BLOCK)
            while not bool(draws.complete):
                draws = self._draws(system_key(), data, 1, _RELEASE_BLOCK)
            value = np.asarray(draws.points[0])
        return make_release(
            value,
            guarantee=self.guarantee.record(calibration.theorem),
            mechanism=type(self).__name__,
            statistic=self.statistic.description,
            ball=self.ball,
            n=data.shape[0],
            sensitivity={**dataclasses.asdict(calibration.sensitivity), "calibration": self.calibration},
            scale=calibration.scale,
            support=calibration.support,
            sampler={
                "name": "rejection from a certified radial envelope",
                "exactness": "exact up to floating point",
            },
            numerics={
                "dtype": str(value.dtype),
                "note": "the guarantee is for exact arithmetic; 64 random bits seed the generator, from the "
                "operating system; the running time depends on the data",
            },
        )

    # Shared machinery --------------------------------------------------------------------------------

    def _records(self, data):
        """The data as an inexact array of shape (n, *datum shape); only shape and dtype are looked at."""
        manifold, name = self.ball.manifold, type(self).__name__
        shape = self.statistic.datum_shape(manifold)
        data = data if isinstance(data, jax.Array) else _host_array(name, data)
        allowed = (jnp.number,) if manifold.dtype_kind == "complex" else (jnp.floating, jnp.integer)
        if not any(jnp.issubdtype(data.dtype, kind) for kind in allowed):
            raise InputError(f"{name}: data must be {manifold.dtype_kind} numbers, got dtype {data.dtype}.")
        if data.ndim != len(shape) + 1 or data.shape[1:] != shape:
            expected = ", ".join(["n", *map(str, shape)])
            raise InputError(f"{name}: data must have shape ({expected}) on {manifold}, got {data.shape}.")
        _record_count(data.shape[0])
        return jnp.asarray(data, jnp.result_type(data.dtype, complex if manifold.dtype_kind == "complex" else float))

    def _draws(self, key, data, num: int, block: int | None = None) -> Draws:
        calibration = self.calibrate(data.shape[0])
        if not self._radial:
            self._check_representable(data.shape[0], calibration)
        block = default_block(num, data.size) if block is None else block
        return _sample(self, key, data, calibration.scale, calibration.support, num, block)

    def _check_existence(self, n: int, scale: float, support: GeodesicBall | None) -> None:
        """Without a bounded support the density must outweigh the growth of the volume."""
        growth = self.ball.manifold.volume_growth
        if support is not None or math.isfinite(self.ball.manifold.diameter) or scale * growth < 1.0:
            return
        needed = self.epsilon * scale * growth
        raise InputError(
            f"{type(self).__name__}: with n={n}, epsilon={self.epsilon:g}, radius={self.ball.radius:g} the scale is "
            f"{scale:.4g}, but on {self.ball.manifold} it must be below {1.0 / growth:.4g} for the distribution to "
            f"exist: raise epsilon above {needed:.4g}, or n above about {math.ceil(n * scale * growth)}, or lower "
            f"the radius below about {self.ball.radius / (scale * growth):.4g}."
        )

    def _check_representable(self, n: int, calibration: Calibration) -> None:
        """Near the existence limit the law reaches matrices whose distances double precision cannot tell."""
        manifold = self.ball.manifold
        reach = max(self.ball.radius, calibration.support.radius if calibration.support else 0.0)
        curvature = math.sqrt(max(0.0, -manifold.curvature_bounds[0]))
        if reach * curvature > _LARGEST_REACH:
            raise InputError(
                f"{type(self).__name__}: radius {reach:g} is too large for double precision on {manifold}; it must be "
                f"at most {_LARGEST_REACH / curvature:.4g}."
            )
        unbounded = calibration.support is None and not math.isfinite(manifold.diameter)
        if unbounded and calibration.scale * manifold.volume_growth > _LARGEST_SCALE:
            raise InputError(
                f"{type(self).__name__}: with n={n} and epsilon={self.epsilon:g} the scale {calibration.scale:.4g} is "
                f"too near the limit {1.0 / manifold.volume_growth:.4g} for double precision, which "
                f"needs at most {_LARGEST_SCALE / manifold.volume_growth:.4g}: raise epsilon or n, or lower radius."
            )

    def tree_flatten(self):
        """The ball and epsilon are leaves (no recompilation over epsilons); the rest is static."""
        static = tuple(
            (field.name, getattr(self, field.name))
            for field in dataclasses.fields(self)
            if field.name not in ("ball", "epsilon")
        )
        return (self.ball, self.epsilon), static

    @classmethod
    def tree_unflatten(cls, static, leaves):
        """Rebuild without checks (the leaves may be tracers)."""
        mechanism = object.__new__(cls)
        for name, value in (("ball", leaves[0]), ("epsilon", leaves[1]), *static):
            object.__setattr__(mechanism, name, value)
        return mechanism


@jax.jit
def _log_density(mechanism, x, data, scale, support):
    points = mechanism.statistic.clip(mechanism.ball, data)
    value = -mechanism._potential(x, mechanism._center(points), points) / scale
    return value if support is None else jnp.where(support.contains(x), value, -jnp.inf)


@functools.partial(jax.jit, static_argnames=("num", "block"))
def _sample(mechanism, key, data, scale, support, num, block) -> Draws:
    points = mechanism.statistic.clip(mechanism.ball, data)
    center = mechanism._center(points)
    scale = jnp.asarray(scale, real_dtype(center))
    growth = mechanism._growth(center, points, support)

    def log_density(x):
        return -mechanism._potential(x, center, points) / scale

    target = None if mechanism._radial else log_density
    return rejection_sample(
        key, mechanism.ball.manifold, target, center, growth, scale, num, support=support, block=block
    )


def _host_array(name: str, data) -> np.ndarray:
    """Data as a NumPy array that JAX can hold: in the byte order of this machine, at most double precision."""
    try:
        array = np.asarray(data)
    except ValueError:
        raise InputError(f"{name}: data must be one array of numbers; nested lists need equal lengths.") from None
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    double = {np.dtype(np.longdouble): np.float64, np.dtype(np.clongdouble): np.complex128}
    with np.errstate(all="ignore"):  # a warning about an overflow would speak of the data
        return array.astype(double.get(array.dtype, array.dtype), copy=False)


def _check_facts(name, manifold):
    """Refuse manifolds that leave unknown what the theorems need."""
    for factor in getattr(manifold, "manifolds", ()):
        _check_facts(name, factor)
    known = all(map(math.isfinite, manifold.curvature_bounds)) and manifold.injectivity_radius > 0
    if not known or type(manifold).log is Manifold.log:
        raise InputError(
            f"{name}: {manifold} must define its curvature_bounds, injectivity_radius and log for private releases "
            "(what is unknown is not assumed, and the default logarithm may fail far from its base)."
        )


def _record_count(n: int) -> int:
    if n < 2:
        raise InputError(f"a mechanism needs n >= 2 records, got {n}.")
    return int(n)
