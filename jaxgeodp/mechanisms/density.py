"""Mechanisms that release a draw from the density exp(-psi(x; D)/sigma) with respect to the volume measure.

On the whole manifold or on a ball around the public centre. A subclass says what psi is, how it is calibrated, and how
fast psi grows away from the statistic, which is all that the exact sampler needs.
"""

import abc
import copy
import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxgeodp.bounds import CALIBRATIONS
from jaxgeodp.checks import InputError
from jaxgeodp.compiling import compiled_ahead, refused_in_words
from jaxgeodp.domain import GeodesicBall
from jaxgeodp.manifolds.manifold import real_dtype
from jaxgeodp.mechanisms.fixed_time import draw_in_fixed_time, proposals_needed
from jaxgeodp.mechanisms.mechanism import Calibration, Home, Mechanism, Procedure
from jaxgeodp.privacy.entropy import public_key, system_key
from jaxgeodp.privacy.guarantee import ApproximateDP, NotProven, PureDP
from jaxgeodp.privacy.release import idealized
from jaxgeodp.samplers.rejection import Draws, check_facts, default_block, first_complete, rejection_sample
from jaxgeodp.statistics.statistic import FrechetMean, Statistic

# Largest scale in units of the existence limit for draws that double precision can hold: on SPD(2) no draw in 20,000
# was affected at 0.35 of it, 5 in 100,000 at 0.57.
_LARGEST_SCALE = 0.35
# Largest radius in units of 1/sqrt|k_min|: condition exp(2 * 10) of a matrix costs 9 of 16 digits.
_LARGEST_REACH = 10.0
# Least scale in units of rounding.
_ROUNDINGS = 100.0
# Proposals per round of a release: few enough to cost nothing, many enough where acceptance is low.
_RELEASE_BLOCK = 256


@dataclasses.dataclass(frozen=True, eq=False)
class DensityMechanism(Mechanism):
    """A pure epsilon-DP mechanism with a density; see the module docstring.

    Raises:
        ValueError: see `Mechanism`; unknown calibration.
    """

    epsilon: float
    statistic: Statistic = dataclasses.field(default_factory=FrechetMean)
    calibration: str = "tight"

    # Whether psi is the distance from the statistic, so that a sampler in polar coordinates knows it exactly.
    _radial = False

    def __post_init__(self):
        super().__post_init__()
        if self.calibration not in CALIBRATIONS:
            name = type(self).__name__
            raise InputError(f"{name}: calibration must be one of {', '.join(CALIBRATIONS)}, got {self.calibration!r}.")
        with refused_in_words(type(self).__name__):
            self.statistic.check(self.ball.manifold)

    # What a mechanism defines ------------------------------------------------------------------------

    @abc.abstractmethod
    def _center(self, points) -> jax.Array:
        """The point from which exact samplers measure distances."""

    @abc.abstractmethod
    def _potential(self, x, center, points) -> jax.Array:
        """psi(x) for clipped data and their ``center``."""

    @abc.abstractmethod
    def _growth(self, center, points, support) -> Callable[[jax.Array], jax.Array] | float:
        """A certified lower bound of psi as a function of the distance from ``center``."""

    # Public ------------------------------------------------------------------------------------------

    @property
    def guarantee(self) -> PureDP | NotProven:
        """Pure epsilon-DP, except under "paper"."""
        if self.calibration == "paper":
            return NotProven(f"{self.epsilon:g}-differential privacy, claimed by the paper for its simulation")
        return PureDP(self.epsilon)

    def log_density(self, x, data) -> jax.Array:
        """See `Mechanism.log_density`."""
        data = self._records(data)
        calibration = self.calibrate(data.shape[0])
        return log_density_of(self._program(), x, data, calibration.scale, calibration.support)

    def simulate(self, key, data, num: int) -> jax.Array:
        """See `Mechanism.simulate`.

        Returns:
            (num, \\*shape). On SPD, draws of condition above 1e16 (scales near the existence limit) have
            lost their small eigenvalues to rounding.

        Raises:
            ValueError: wrong shape, fewer than two records, no such distribution exists, or (KNG on SPD) its
                scale is too near the existence limit for double precision.
        """
        return self._draws(key, self._records(data), num).points

    def _fixed_time_procedure(self, delta):
        guarantee = ApproximateDP(self.epsilon, delta)
        if self.calibration == "paper":
            raise InputError("delta > 0 needs calibration 'tight' or 'theorem'.")
        log_eta = math.log(guarantee.delta) - float(np.logaddexp(0.0, self.epsilon))

        def ready(shape):
            n = shape.shape[0]
            calibration = self.calibrate(n)
            self._check_representable(n, calibration)
            law = calibration.scale, calibration.support
            count = proposals_needed(self, n, log_eta)
            name, key = type(self).__name__, public_key()
            program = compiled_ahead(name, draw_in_fixed_time, self, key, shape, *law, count=count)
            return lambda records: program(self, system_key(), records, *law)

        sampler = {
            "name": "first accepted of a public number of proposals",
            "exactness": f"within total variation e^{math.ceil(1e3 * log_eta) / 1e3:.3f}",
        }
        addition = "; fixed number of proposals: docs/mathematics.md, section 10"
        timing = "the number of proposals does not depend on the data"

        def calibrate(n):
            calibration = self.calibrate(n)
            return calibration._replace(theorem=calibration.theorem + addition)

        return Procedure(ready, calibrate, lambda _: guarantee, sampler, idealized(timing))

    # Machinery ---------------------------------------------------------------------------------------

    @property
    def _sampler(self):
        return {"name": "rejection from a certified radial envelope", "exactness": "exact up to floating point"}

    @property
    def _described(self):
        return self.statistic.description

    def _record_shape(self):
        return self.statistic.datum_shape(self.ball.manifold)

    def _ready_to_draw(self, shape):
        n, size = shape.shape[0], math.prod(shape.shape)
        self._check_representable(n, self.calibrate(n))  # also where the sampler could do without
        calibration = self._checked_calibration(shape)
        law = calibration.scale, calibration.support
        block = min(_RELEASE_BLOCK, default_block(_RELEASE_BLOCK, size))
        mechanism, name = self._program(), type(self).__name__
        program = compiled_ahead(name, _sample, mechanism, public_key(), shape, *law, num=1, block=block)
        return lambda data: first_complete(lambda: program(mechanism, system_key(), data, *law))

    def _draws(self, key, data, num: int, block: int | None = None) -> Draws:
        return self._draws_from(self._checked_calibration(data), key, data, num, block)

    def _checked_calibration(self, data) -> Calibration:
        """The calibration for these data, if the sampler can do it."""
        calibration = self.calibrate(data.shape[0])
        self._check_draws(data.shape[0], calibration)
        if not self._radial:
            _check_precision(type(self).__name__, data, calibration.scale)
        # The radius is traced in the program.
        check_facts(self.ball.manifold, calibration.support)
        return calibration

    def _draws_from(self, calibration, key, data, num, block):
        block = default_block(num, data.size) if block is None else block
        return _sample(self._program(), key, data, calibration.scale, calibration.support, num, block)

    def _program(self) -> Self:
        program = copy.copy(self)  # unchecked: epsilon may be traced
        object.__setattr__(program, "calibration", "tight")
        return program

    def _clipped(self, data):
        return self.statistic.clip(self.ball, data)

    def _home(self, data) -> Home[Self]:
        ball, statistic = self.ball, self.statistic
        there = self._with(ball=ball.at_home, statistic=statistic.at_home(ball))
        return Home(there, statistic.clip_to_home(ball, data), ball.from_home)

    def _draws_around(self, key, points, center, scale, support, num, block) -> Draws:
        scale = jnp.asarray(scale, real_dtype(center))
        growth = self._growth(center, points, support)

        def log_density(x):
            return -self._finite_potential(x, center, points) / scale

        target = None if self._radial else log_density
        return rejection_sample(
            key, self.ball.manifold, target, center, growth, scale, num, support=support, block=block
        )

    def _finite_potential(self, x, center, points) -> jax.Array:
        """psi, 0 in place of what a user's statistic cannot say: a record that made it NaN would stop the sampler."""
        value = self._potential(x, center, points)
        return jnp.where(jnp.isfinite(value), value, 0.0)

    def _check_draws(self, n, calibration):
        if not self._radial:
            self._check_representable(n, calibration)

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
        growth = manifold.coordinate_growth
        if reach * growth > _LARGEST_REACH:
            raise InputError(
                f"{type(self).__name__}: radius {reach:g} is too large for double precision on {manifold}; it must be "
                f"at most {_LARGEST_REACH / growth:.4g}."
            )
        unbounded = calibration.support is None and not math.isfinite(manifold.diameter)
        if unbounded and calibration.scale * manifold.volume_growth > _LARGEST_SCALE:
            raise InputError(
                f"{type(self).__name__}: with n={n} and epsilon={self.epsilon:g} the scale {calibration.scale:.4g} is "
                f"too near the limit {1.0 / manifold.volume_growth:.4g} for double precision, which "
                f"needs at most {_LARGEST_SCALE / manifold.volume_growth:.4g}: raise epsilon or n, or lower radius."
            )


def _check_precision(name, data, scale):
    """Where rounding of a gradient moves the log density by much, hardly a proposal would be accepted."""
    least = _ROUNDINGS * float(jnp.finfo(data.dtype).eps)
    if not isinstance(scale, Tracer) and scale < least:
        raise InputError(
            f"{name}: with n={data.shape[0]} the scale {scale:.3g} is too small for {data.dtype} data, which need at "
            f"least {least:.3g}: pass them in double precision."
        )


@jax.jit
def log_density_of(mechanism: DensityMechanism, x, data, scale, support: GeodesicBall | None) -> jax.Array:
    """`DensityMechanism.log_density` for a known scale and support, with a mechanism that may be traced."""
    return density_at_home(mechanism, mechanism._home(data), scale, support)(mechanism.ball.to_home(x))


def density_at_home(mechanism: DensityMechanism, home: Home[DensityMechanism], scale, support: GeodesicBall | None):
    """`log_density_of` as a function of points at home."""
    center = _centered(home)
    ball = None if support is None else support.at_home

    def log_density(x: jax.Array) -> jax.Array:
        value: jax.Array = -home.mechanism._finite_potential(x, center, home.records) / scale
        return value if ball is None else jnp.where(ball.contains(x), value, -jnp.inf)

    return log_density


def _centered(home: Home[DensityMechanism]) -> jax.Array:
    """Where envelopes are centred: whatever the records are, a point of the ball."""
    center = home.mechanism._center(home.records)
    origin = jnp.asarray(home.mechanism.ball.center, center.dtype)
    return jnp.where(jnp.all(jnp.isfinite(center)), center, origin)


@functools.partial(jax.jit, static_argnames=("num", "block"))
def _sample(mechanism, key, data, scale, support, num, block) -> Draws:
    home = mechanism._home(data)
    ball = None if support is None else support.at_home
    draws = home.mechanism._draws_around(key, home.records, _centered(home), scale, ball, num, block)
    return draws.mapped(home.back)
