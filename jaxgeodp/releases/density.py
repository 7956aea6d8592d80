"""Laws with a density exp(-psi(x; D)/temperature) with respect to the volume measure, drawn by exact rejection.

On the whole manifold or on a ball around the public centre. A `Target` says what psi is and how fast it grows away from
a centre, which is all that the sampler needs.
"""

import abc
import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.compiling import called, compiled_ahead, options_for
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.manifolds.manifold import real_dtype
from jaxgeodp.privacy.entropy import public_key, system_key
from jaxgeodp.pytrees import Pytree
from jaxgeodp.releases.law import Home, PointLaw, Terms, without_derivatives
from jaxgeodp.samplers.rejection import Draws, check_facts, default_block, first_complete, rejection_sample
from jaxgeodp.samplers.squeeze import Squeeze
from jaxgeodp.samplers.thinning import Thinning
from jaxgeodp.statistics.records import points_and_weights, with_weights
from jaxgeodp.statistics.statistic import FrechetMean, Statistic

#: For `Terms`.
SAMPLER = {"name": "rejection from a certified radial envelope", "exactness": "exact up to floating point"}
# Largest scale in units of the existence limit for draws that double precision can hold: on SPD(2) no draw in 20,000
# was affected at 0.35 of it, 5 in 100,000 at 0.57.
_LARGEST_SCALE = 0.35
# Largest radius in units of 1/sqrt|k_min|: condition exp(2 * 10) of a matrix costs 9 of 16 digits.
_LARGEST_REACH = 10.0
# Least scale in units of rounding.
_ROUNDINGS = 100.0
# Of so many angles proposals are rarely within half a turn in each, where the scale times the root of their number is
# larger.
_MANY_ANGLES, _WIDE = 8, 1.0
# Draws from one data set from which on bounds pay; below, as in a release, every proposal takes the same time.
_MANY = 1000
# Numbers of records that are looked at together where bounds have not decided.
_NUMBERS = 2**14


class PublicBounds(NamedTuple):
    """Bounds of psi for all data in a ball, as functions of the distance from the centre."""

    growth: Any  #: from below; see `Target.growth`
    upper: Callable[[ArrayLike], np.ndarray]  #: from above, within the support's room around the ball
    supposed: str = ""  #: what is supposed, for records; empty where nothing is


class Target(abc.ABC):
    """Exponent psi of a density. A subclass is a frozen dataclass: hashable, or a `Pytree` whose leaves may be traced.

    psi is a function of the records as a set, with their weights, if the statistic is.

    Attributes:
        statistic: how raw data are clipped, and what is measured.
        radial: whether psi is a function of the distance from `center` alone, so that a sampler in polar coordinates
            knows it exactly.
        proposals: in one round of a release: few where nearly all are accepted, else many.
    """

    statistic: Statistic
    radial: bool
    proposals: int

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if not issubclass(cls, Pytree):
            jax.tree_util.register_static(cls)

    @property
    def takes_weights(self) -> bool:
        """Return whether records may have weights, which only the Frechet mean supports."""
        return isinstance(self.statistic, FrechetMean)

    @abc.abstractmethod
    def at_home(self, ball: GeodesicBall) -> "Target":
        """Return the target for points that are carried to where the centre of the ball is the origin."""

    @abc.abstractmethod
    def center(self, ball: GeodesicBall, points) -> jax.Array:
        """Return the point from which the sampler measures distances."""

    @abc.abstractmethod
    def potential(self, ball: GeodesicBall, x, center, points) -> jax.Array:
        """Return psi(x) for clipped data and their ``center``."""

    def level(self, ball: GeodesicBall, center, points) -> Any:
        """Return what is subtracted from psi, so that it is 0 at the centre; 0 for a psi that is nearly 0 there."""
        return 0.0

    @abc.abstractmethod
    def growth(self, ball: GeodesicBall, center, points, scale, support) -> Any:
        """Return a certified lower bound of psi less its level, as a function of the distance from ``center``."""

    @abc.abstractmethod
    def public_bounds(self, ball: GeodesicBall, support: GeodesicBall | None, temperature: Any) -> PublicBounds | None:
        """Return bounds of psi for all data in the ball, for draws at a temperature; None where none are known."""

    def spares(self, ball: GeodesicBall, n: int) -> bool:
        """Return whether a few of n records suffice to decide on a proposal; see `thinning`."""
        return False

    def thinning(self, ball: GeodesicBall, center, points, scale, support) -> Thinning | None:
        """Return -(psi less its level)/temperature as a sum over records; None if proposals need all records."""
        return None

    def bounds(self, ball: GeodesicBall, center, points, scale) -> Callable | None:
        """Return ``(v, t) -> (lower, upper)``, bounds of psi less its level at exp_center(v), |v| = t; None if unknown.

        For many draws from one data set: it may cost as much as some dozens of proposals, after which most proposals
        need no record.
        """
        return None

    def magnitude(self, law: "DensityLaw") -> float:
        """Return the size of the numbers in psi that are rounded, in the units of the scale."""
        return 1.0

    @abc.abstractmethod
    def temperature(self, scale) -> Any:
        """Return what psi is divided by."""

    @abc.abstractmethod
    def check(self, law: "DensityLaw") -> None:
        """Raise ValueError where double precision cannot hold what a release may be."""


@dataclasses.dataclass(frozen=True, eq=False)
class DensityLaw(PointLaw, Pytree, leaves=("target", "ball", "scale", "support", "weights"), outside=("terms",)):
    """Represent a law with density exp(-psi(x; D)/temperature) on the manifold or a ball, drawn by exact rejection."""

    target: Target
    ball: GeodesicBall
    scale: float
    support: GeodesicBall | None
    terms: Terms
    rows: int | None = None
    weights: Any = None
    grid = None

    @property
    @override
    def order_matters(self):
        return self.target.statistic.order_matters

    @property
    @override
    def takes_weights(self):
        return self.target.takes_weights and not self.order_matters

    @property
    def size(self):
        """Return the ball's radius if the scale is a length; else None, as `check_precision` knows better."""
        return self.ball.radius if self.target.radial else None

    def check(self):
        """Refuse draws that double precision cannot hold. Radial targets skip `Target.check`, which releases need."""
        if not self.target.radial:
            self.target.check(self)
        check_facts(self.ball.manifold, self.support)  # in the program the radius is traced

    @override
    def ready(self, shape):
        self.check_ready(shape)
        block = min(self.target.proposals, self._block(self.target.proposals, shape))
        program = compiled_ahead(self.terms.mechanism, sample, self, public_key(), shape, num=1, block=block)
        return lambda records: first_complete(lambda: program(self, system_key(), records))

    @override
    def check_ready(self, shape):
        self.target.check(self)
        self.check()
        self.check_precision(shape)

    @override
    def simulate(self, key, records, num):
        return without_derivatives(self._name, self.simulated(key, records, num).points)

    @property
    def _name(self):
        return "law" if self.terms is None else self.terms.mechanism

    def simulated(self, key, records, num: int, block: int | None = None) -> Draws:
        """Return draws as `simulate` does, with the sampler's diagnostics.

        Args:
            key, records, num: see `Law.simulate`.
            block: proposals at a time.
        """
        self.check_rows(records)
        # In a program numbers are not known; a release is checked by `ready`.
        if not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(self)):
            self.check()
            self.check_precision(records)
        block = self._block(num, records) if block is None else block
        return called(sample, self, key, records, options=options_for(records, num), num=num, block=block)

    def _block(self, num, records):
        """Return the number of proposals at a time."""
        spares = self.target.spares(self.ball, records.shape[0])
        return default_block(num, 1 if spares else math.prod(records.shape))

    @override
    def log_density(self, x, records):
        self.check_rows(records)
        return _log_density(self, x, records)

    @override
    def clipped(self, data):
        return self.target.statistic.clip(self.ball, data)

    @override
    def at_home(self, data):
        law = dataclasses.replace(
            self,
            target=self.target.at_home(self.ball),
            ball=self.ball.at_home,
            support=None if self.support is None else self.support.at_home,
        )
        points = with_weights(self.target.statistic.clip_to_home(self.ball, data), self.weights)
        return Home(law, points, self.ball.from_home)

    def center(self, points):
        """Return the point from which the sampler measures distances; the centre of the ball if that is not finite."""
        center = self.target.center(self.ball, points)
        origin = jnp.asarray(self.ball.center, center.dtype)
        return jnp.where(jnp.all(jnp.isfinite(center)), center, origin)

    def growth(self, center, points) -> Callable[[jax.Array], jax.Array] | float:
        """Return the certified lower bound of psi less its level, as a function of the distance from ``center``."""
        return self.target.growth(self.ball, center, points, self.scale, self.support)

    def potential(self, x, center, points) -> jax.Array:
        """Return psi, with non-finite values replaced by 0: a record that made it NaN would stop the sampler."""
        value = self.target.potential(self.ball, x, center, points)
        return jnp.where(jnp.isfinite(value), value, 0.0)

    def log_value(self, x, center, points) -> jax.Array:
        """Return the unnormalised log density for clipped records, minus infinity outside the support."""
        value: jax.Array = -self.potential(x, center, points) / self.target.temperature(self.scale)
        return value if self.support is None else jnp.where(self.support.contains(x), value, -jnp.inf)

    @override
    def draws(self, key, points, center, num, block):
        temperature = self.target.temperature(jnp.asarray(self.scale, real_dtype(center)))

        growth = self.growth(center, points)
        thinning = self.target.thinning(self.ball, center, points, self.scale, self.support)
        level = 0.0 if self.target.radial or thinning else self.target.level(self.ball, center, points)

        def log_density(x):
            return (level - self.potential(x, center, points)) / temperature

        target = thinning or (None if self.target.radial else log_density)
        if num >= _MANY and (bounds := self.target.bounds(self.ball, center, points, self.scale)) is not None:
            row = math.prod(points_and_weights(points)[0].shape)
            target = _squeezed(log_density, bounds, temperature, min(block or _NUMBERS, max(1, _NUMBERS // row)))
        return rejection_sample(
            key, self.ball.manifold, target, center, growth, temperature, num, support=self.support, block=block
        )

    def as_point(self, value):
        """Return the value itself, and True."""
        return value, jnp.asarray(True)

    def check_precision(self, records) -> None:
        """Refuse a scale at which rounding moves the log density by much: hardly a proposal would be accepted.

        Args:
            records: only their shape and type are used.
        """
        if self.target.radial or isinstance(self.scale, Tracer):
            return
        least = _ROUNDINGS * float(jnp.finfo(records.dtype).eps) * self.target.magnitude(self)
        if self.scale < least:
            double = records.dtype in (jnp.float64, jnp.complex128)
            remedy = (
                "lower the privacy parameter or the number of records" if double else "pass them in double precision"
            )
            raise InputError(
                f"{self.terms.mechanism}: with n={records.shape[0]} the scale {self.scale:.3g} is too small for "
                f"{records.dtype} data, which need at least {least:.3g}: {remedy}."
            )


def _squeezed(log_density, bounds, temperature, lanes):
    def log_bounds(tangent, distance):
        lower, upper = bounds(tangent, distance)
        return -upper / temperature, -lower / temperature

    return Squeeze(log_density, log_bounds, lanes)


@functools.partial(jax.jit, static_argnames=("num", "block"))
def sample(law: DensityLaw, key, records, num: int, block: int) -> Draws:
    """Return draws for raw records, computed where the public centre is the origin."""
    home, points, back = law.at_home(records)
    return home.draws(key, points, home.center(points), num, block).mapped(back)


@jax.jit
def _log_density(law, x, records):
    home, points, _ = law.at_home(records)
    return home.log_value(law.ball.to_home(x), home.center(points), points)


def check_existence(owner: str, ball: GeodesicBall, n: int, epsilon: float, scale: float, support) -> None:
    """Refuse a density exp(-psi/scale), psi growing like the distance, that does not outweigh the growth of the volume.

    Args:
        owner: whom a refusal names.
        ball, n, epsilon: of the mechanism, for the refusal.
        scale: of the density.
        support: a ball, or None for the whole manifold.

    Raises:
        ValueError: the distribution does not exist; says what would have to change.
    """
    growth, dim = ball.manifold.volume_growth, ball.manifold.dim
    cube = ball.manifold.curvature_bounds == (0.0, 0.0) and math.isfinite(ball.manifold.diameter)
    if support is None and cube and dim > _MANY_ANGLES and scale * math.sqrt(dim) > _WIDE:
        raise InputError(
            f"{owner}: with n={n}, epsilon={epsilon:g}, radius={ball.radius:g} the scale is {scale:.4g}, with which "
            f"rejection might never accept a draw of {dim} angles: raise epsilon or n, lower the radius, or use "
            "WrappedLaplace."
        )
    if support is not None or math.isfinite(ball.manifold.diameter) or scale * growth < 1.0:
        return
    needed = epsilon * scale * growth
    raise InputError(
        f"{owner}: with n={n}, epsilon={epsilon:g}, radius={ball.radius:g} the scale is {scale:.4g}, but on "
        f"{ball.manifold} it must be below {1.0 / growth:.4g} for the distribution to exist: raise epsilon above "
        f"{needed:.4g}, or n above about {math.ceil(n * scale * growth)}, or lower the radius below about "
        f"{ball.radius / (scale * growth):.4g}."
    )


def check_representable(law: DensityLaw) -> None:
    """Refuse a law near the existence limit, which reaches matrices beyond double precision."""
    manifold, terms = law.ball.manifold, law.terms
    reach = max(law.ball.radius, law.support.radius if law.support else 0.0)
    growth = manifold.coordinate_growth
    if reach * growth > _LARGEST_REACH:
        raise InputError(
            f"{terms.mechanism}: radius {reach:g} is too large for double precision on {manifold}; it must be at most "
            f"{_LARGEST_REACH / growth:.4g}."
        )
    unbounded = law.support is None and not math.isfinite(manifold.diameter)
    if unbounded and law.scale * manifold.volume_growth > _LARGEST_SCALE:
        raise InputError(
            f"{terms.mechanism}: with n={terms.n} and epsilon={terms.strength:g} the scale {law.scale:.4g} is too near "
            f"the limit {1.0 / manifold.volume_growth:.4g} for double precision, which needs at most "
            f"{_LARGEST_SCALE / manifold.volume_growth:.4g}: raise epsilon or n, or lower radius."
        )
