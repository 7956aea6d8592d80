"""Laws that add noise to a vector and map the sum back: exact, loop-free, in time that data cannot change.

A `Summary` says which vector summarises the data, and how a vector becomes a value.
"""

import abc
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.compiling import called, compiled_ahead, options_for
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.privacy.entropy import public_key, system_key
from jaxgeodp.pytrees import Pytree
from jaxgeodp.releases.law import Home, PointLaw, Ready, Terms
from jaxgeodp.releases.noise import Noise
from jaxgeodp.samplers.rejection import Draws
from jaxgeodp.statistics.records import with_weights

#: For `Terms`.
TIMING = "the number of steps does not depend on the data"


class Carried(NamedTuple):
    """Ball and records where a vector is computed, and the ways there and back."""

    ball: GeodesicBall
    records: jax.Array  #: clipped
    there: Callable[[Any], Any]  #: the way there, for a value
    back: Callable[[Any], Any]


class Summary(abc.ABC):
    """A vector of data and the way back to values. A subclass is a frozen dataclass: hashable, or a `Pytree`.

    The vector is a function of the records as a set, with their weights: their order must not matter.
    """

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if not issubclass(cls, Pytree):
            jax.tree_util.register_static(cls)

    def size(self, ball: GeodesicBall) -> Any:
        """Return the largest length of a record's vector, in the units of the scale."""
        return ball.radius

    @abc.abstractmethod
    def clipped(self, ball: GeodesicBall, data) -> jax.Array:
        """Return raw records, each brought into the ball."""

    @abc.abstractmethod
    def carried(self, ball: GeodesicBall, data) -> Carried:
        """Return ball and records where the vector is computed."""

    @abc.abstractmethod
    def center(self, ball: GeodesicBall, points) -> jax.Array | None:
        """Return the Frechet mean; None if the vector is not computed from it."""

    @abc.abstractmethod
    def location(self, ball: GeodesicBall, points, center) -> jax.Array:
        """Return the vector of clipped records, which may be `WeightedRecords`, and their ``center``."""

    @abc.abstractmethod
    def to_value(self, ball: GeodesicBall, vector) -> jax.Array:
        """Return the released value of a vector."""

    @abc.abstractmethod
    def to_vector(self, ball: GeodesicBall, x) -> tuple[jax.Array, jax.Array | float]:
        """Return the vector of a value, and the log of the volume that `to_value` gives to a unit of vectors there."""

    @abc.abstractmethod
    def as_point(self, ball: GeodesicBall, value) -> tuple[Any, jax.Array]:
        """Return the point that a value stands for, and whether there is one."""


def at_home(ball: GeodesicBall, data) -> Carried:
    """Return `Summary.carried` for an isometry that carries the centre to the origin."""
    return Carried(ball.at_home, ball.clip_to_home(data), ball.to_home, ball.from_home)


@dataclasses.dataclass(frozen=True, eq=False)
class VectorLaw(PointLaw, Pytree, leaves=("summary", "ball", "scale", "weights"), outside=("terms", "on_grid")):
    """Represent the law of a vector of the records plus noise, mapped back to a value.

    Attributes:
        summary, noise: see their classes.
        ball: public.
        scale, terms: see `Law`.
        weights: see `PointLaw`.
        on_grid: of this law, how it is released in integers; None where it is not.
    """

    summary: Summary
    noise: Noise
    ball: GeodesicBall
    scale: float
    terms: Terms
    rows: int | None = None
    on_grid: Callable[["VectorLaw"], Callable[[jax.ShapeDtypeStruct], Ready]] | None = None
    weights: Any = None
    support = None
    order_matters = False  # of a summary, see there

    @property
    @override
    def takes_weights(self):
        return True

    @property
    @override
    def size(self):
        return self.summary.size(self.ball)

    @property
    @override
    def grid(self):
        return None if self.on_grid is None or self.weights is not None else self.on_grid(self)

    def check(self):
        """Accept all laws: there is nothing to refuse."""

    @override
    def ready(self, shape):
        program = compiled_ahead(self.terms.mechanism, _simulate, self, public_key(), shape, num=1)
        value, center = program.out_info.shape[1:], np.shape(self.ball.center)
        if value != center:
            raise InputError(
                f"{self.terms.mechanism}: its values have shape {value}, but the public centre, which replaces values "
                f"that cannot be computed, has {center}; they must agree."
            )
        return lambda records: np.asarray(program(self, system_key(), records))[0]

    @override
    def simulate(self, key, records, num):
        self.check_rows(records)
        return called(_simulate, self, key, records, options=options_for(records, num), num=num)

    def log_density(self, x, records):
        """Return the unnormalised log density; where the noise is on a manifold, with respect to the volume measure.

        Raises:
            ValueError: several noise vectors give the same value (positive curvature), or the value is projected.
        """
        self.check_rows(records)
        ball, points, there, _ = self.summary.carried(self.ball, records)
        law = dataclasses.replace(self, ball=ball)
        points = with_weights(points, self.weights)
        vector, log_volume = self.summary.to_vector(ball, there(x))
        return self.noise.log_density((vector - law.location(points, law.center(points))) / self.scale) - log_volume

    @override
    def clipped(self, data):
        return self.summary.clipped(self.ball, data)

    @override
    def at_home(self, data):
        ball, points, _, back = self.summary.carried(self.ball, data)
        return Home(dataclasses.replace(self, ball=ball), with_weights(points, self.weights), back)

    @override
    def center(self, points):
        return self.summary.center(self.ball, points)

    def location(self, points, center) -> jax.Array:
        """Return the vector of clipped records, to which noise is added."""
        return self.summary.location(self.ball, points, center)

    @override
    def draws(self, key, points, center, num, block):
        location = self.location(points, center)
        location = jnp.where(jnp.isfinite(location), location, 0.0)  # before the noise, whose law must be that around 0
        noise = self.noise.draw(key, num, location.shape[0], location.dtype)
        scale = jnp.asarray(self.scale, location.dtype)
        values = jax.vmap(lambda z: self.summary.to_value(self.ball, location + scale * z))(noise)
        return Draws(values, jnp.ones(()), jnp.int32(num), jnp.asarray(True))

    @override
    def as_point(self, value):
        return self.summary.as_point(self.ball, value)


@functools.partial(jax.jit, static_argnames="num")
def _simulate(law, key, records, num):
    home, points, back = law.at_home(records)
    return home.draws(key, points, home.center(points), num, None).mapped(back).points


def vector_law(
    mechanism: Any,
    n: int,
    summary: Summary,
    noise: Noise,
    sensitivity: Sensitivity,
    strength: float,
    statistic: str,
    *,
    ball: GeodesicBall | None = None,
    more: dict | None = None,
) -> VectorLaw:
    """Return the law with the scale that the noise's theorem requires.

    Args:
        mechanism: with a ball; its name is for records and messages.
        n: number of records.
        summary, noise: see their classes.
        sensitivity: how far one record can move the vector, in the norm that the noise's theorem speaks of.
        strength: epsilon or mu.
        statistic: for records.
        ball: that clips the records, if it is not the mechanism's.
        more: further entries of the record.
    """
    terms = Terms(
        mechanism=type(mechanism).__name__,
        statistic=statistic,
        n=n,
        strength=strength,
        guarantee=mechanism.guarantee,
        sensitivity=sensitivity.value,
        formula=sensitivity.formula,
        theorem=noise.theorem,
        sampler={"name": f"{noise.name} noise added to a vector", "exactness": "exact up to floating point"},
        timing=TIMING,
        more=more,
    )
    return VectorLaw(summary, noise, ball or mechanism.ball, sensitivity.value / strength, terms, n)
