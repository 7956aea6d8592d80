"""Means of records that an `Encoding` turns into vectors of bounded length: one law for all of them.

Noise is normal, in floating point or in integers on a grid (docs/mathematics.md, Theorem N).
"""

import abc
import collections
import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.compiling import compiled_ahead, compiled_in_blocks
from jaxgeodp.domains.records import record_count
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.entropy import public_key, system_key
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.pytrees import Pytree
from jaxgeodp.releases.integers import Integers, Noisy, Sums
from jaxgeodp.releases.law import Law, Terms
from jaxgeodp.releases.vector import TIMING
from jaxgeodp.samplers.discrete import discrete_gaussian

#: For records.
GAUSSIAN = "Gaussian mechanism (Dong, Roth & Su 2022, Theorem 1)"
# Numbers that a block of draws holds.
BLOCK = 2**18
# Records with at least so many numbers are added up one by one on a CPU.
_LARGE_RECORD = 1024


class Encoding(Pytree, abc.ABC):
    """Public map from records to vectors of bounded length, and from vectors to values.

    A vector is an array (m,), or (k, m): k vectors, each with its own bound, budget and scale. A subclass is a frozen
    dataclass of public numbers, all of which are leaves of a pytree: programs serve all their values.
    `jaxgeodp.testing.check_encoding` tries what is said here.

    Attributes:
        part: name of each of k vectors, for records; None if they are not distinguished.
    """

    part: ClassVar[str | None] = None

    @abc.abstractmethod
    def deviation(self, record: jax.Array) -> jax.Array:
        """Return the deviation of one raw record from the public centre, of any length; no other record is seen."""

    @abc.abstractmethod
    def value(self, vectors: jax.Array) -> jax.Array:
        """Return the released values of vectors (\\*any, \\*shape of a vector); finite for finite vectors."""

    @abc.abstractmethod
    def vector(self, x: jax.Array) -> jax.Array:
        """Return the vector of one value, for `Law.log_density` alone, which supposes one vector for each value.

        Raises:
            ValueError: several vectors have one value, so that there is no simple density.
        """

    @abc.abstractmethod
    def shape(self, record: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a vector, for records of this shape."""

    @abc.abstractmethod
    def bounds(self, record: tuple[int, ...]) -> Any:
        """Return the bound of the length of a vector, or of each of k: () or (k,)."""

    def bounded(self, data: jax.Array) -> jax.Array:
        """Return the deviations of raw records (n, \\*shape), each brought into the bounds by itself.

        By default they are vectors, and shortened. An override must bound those of any record.
        """
        return shortened(jax.vmap(self.deviation)(data), self.bounds(data.shape[1:]))

    def white(self, deviations: jax.Array) -> jax.Array:
        """Return the vectors of deviations (\\*any, \\*shape), by default the same; linear, as means go through it."""
        return deviations

    def each(self, scale: Any) -> Any:
        """Return a parameter as one number for all of k vectors or one for each: () or (k,)."""
        return scale


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedLaw(Law, Pytree, leaves=("encoding", "mu", "scale"), outside=("told",)):
    """Law of the mean vector plus normal noise, mapped to a value.

    Attributes:
        encoding: see there; its numbers may be traced, as ``scale`` may.
        record: shape of a record.
        n: number of records.
        mu: of each vector: () or (k,), as `Encoding.each` takes it.
        scale: of the noise, likewise; by its theorem 2 bound/(n mu).
        told: makes the terms.
        on_grid: the theorem of the release in integers, for records.
    """

    encoding: Encoding
    record: tuple[int, ...]
    n: int
    mu: Any
    scale: Any
    told: Callable[[], Terms]
    on_grid: str = "docs/mathematics.md, Theorem N"
    support = None
    order_matters = False

    @functools.cached_property
    @override
    def terms(self):
        return self.told()

    @property
    @override
    def size(self):
        return float(np.max(self.encoding.bounds(self.record)))

    @property
    @override
    def grid(self):
        return EncodedGrid(self)

    @override
    def ready(self, shape):
        encoding, name, width = self.encoding, self.terms.mechanism, jnp.asarray(self.encoding.each(self.scale))
        program = compiled_ahead(name, drawn_values, encoding, public_key(), shape, width, num=1)
        return lambda records: np.asarray(program(encoding, system_key(), records, width))[0]

    @override
    def simulate(self, key, records, num):
        positive_integer("simulate", "num", num, 1)
        return drawn_values(
            self.encoding, key, records, jnp.asarray(self.encoding.each(self.scale), records.dtype), num=num
        )

    def log_density(self, x, records):
        """Return the unnormalised log density at the value ``x``: the normal density of the vector that encodes it."""
        mean = self.encoding.white(mean_of_bounded(self.encoding, records))
        off = self.encoding.vector(jnp.asarray(x)) - mean
        return -0.5 * jnp.sum((off / _to_each(jnp.asarray(self.encoding.each(self.scale)))) ** 2)


def encoded_law(
    mechanism: Any,
    encoding: Encoding,
    record: tuple[int, ...],
    n: int,
    *,
    mu: Any = None,
    bound: Any = None,
    formula: str = "2 bound/n",
    statistic: str = "mean",
    theorem: str = GAUSSIAN,
    on_grid: str = "docs/mathematics.md, Theorem N",
    more: Callable[[], dict] | None = None,
) -> EncodedLaw:
    """Return the law of n records, with sensitivity 2 bound/n and scale 2 bound/(n mu).

    Args:
        mechanism: whose name, ``mu`` and guarantee the record has.
        encoding: see there.
        record: shape of a record.
        n: number of records.
        mu: of each vector, in a form that `Encoding.each` takes; by default the mechanism's.
        bound: the encoding's bounds in the form in which the record states them, if that is another.
        formula: of the sensitivity, for the record.
        statistic, theorem: see `Terms`.
        on_grid: see `EncodedLaw`.
        more: makes further entries of the record.

    Raises:
        ValueError: fewer than two records, or see `checked_bounds`; when terms are told, bounds that are not the
            encoding's, or a guarantee that is stronger than what the vectors spend together.
    """
    n, bounds = record_count(n), checked_bounds(type(mechanism).__name__, encoding, record)
    given, strength = bounds if bound is None else bound, mechanism.mu if mu is None else mu
    with np.errstate(over="ignore"):  # refused when it is made ready
        sensitivity = 2.0 * given / n
        scale = sensitivity / strength

    def told():
        name, guarantee = type(mechanism).__name__, mechanism.guarantee
        each, one = np.broadcast_arrays(encoding.each(strength), bounds)
        if not np.allclose(encoding.each(given), bounds, rtol=1e-9, atol=0.0):
            raise InputError(f"{name}: the bounds in its record differ from those of its encoding.")
        if not isinstance(guarantee, GaussianDP) or guarantee.mu < math.sqrt(np.sum(each**2)) * (1.0 - 1e-9):
            raise InputError(f"{name}: its {one.size} vectors spend more than its guarantee {guarantee} states.")
        return Terms(
            mechanism=name,
            statistic=statistic,
            n=n,
            strength=mechanism.mu,
            guarantee=guarantee,
            sensitivity=sensitivity,
            formula=formula,
            theorem=theorem,
            sampler={"name": "normal", "exactness": "exact up to floating point"},
            timing=TIMING,
            more=None if more is None else more(),
        )

    return EncodedLaw(encoding, record, n, strength, scale, told, on_grid)


def checked_bounds(owner: str, encoding: Encoding, record: tuple[int, ...]) -> Any:
    """Return the bounds of an encoding: one for each vector that it has.

    Args:
        owner: whom a refusal names.
        encoding: see there.
        record: shape of a record.

    Raises:
        ValueError: the number of bounds is wrong, or vectors may be made longer after they were shortened.
    """
    shape, bounds, kind = tuple(encoding.shape(record)), encoding.bounds(record), type(encoding)
    if len(shape) not in (1, 2) or np.shape(bounds) != shape[:-1]:
        raise InputError(
            f"{owner}: vectors of shape {shape} need bounds of shape {shape[:-1]}, got {np.shape(bounds)}: a vector is "
            "an array (m,) with one bound, or k vectors are one (k, m) with k bounds."
        )
    if kind.white is not Encoding.white and kind.bounded is Encoding.bounded:
        raise InputError(
            f"{owner}: {kind.__name__} must define bounded, as it defines white, which may lengthen vectors."
        )
    return bounds


def shortened(vectors: jax.Array, bound: Any) -> jax.Array:
    """Return vectors (..., m) shortened to the bound, or (..., k, m) to k bounds; those without finite length are 0."""
    squares = jnp.sum(vectors**2, axis=-1, keepdims=True)
    usable = jnp.isfinite(squares)
    lengths: jax.Array = jnp.sqrt(jnp.where(usable & (squares > 0), squares, 1.0))
    bound = _to_each(jnp.asarray(bound, vectors.dtype))
    factors = jnp.minimum(1.0, bound / lengths)
    return jnp.where(usable, factors * vectors, 0.0)


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedSums(Sums):
    """Sums of vectors, each in the ball of integers.

    Attributes:
        owner: whom a refusal names.
        encoding: see there.
    """

    owner: str
    encoding: Encoding
    largest = grid.STEPS

    @override
    def shape(self, record):
        return self.encoding.shape(record)

    @override
    def program(self, shape):
        encoding, bounds = self.encoding, checked_bounds(self.owner, self.encoding, shape.shape[1:])
        vectors_of = compiled_in_blocks(self.owner, _vectors, encoding, shape)
        return lambda data: grid.sum_on_grid(vectors_of(encoding, data), bounds)


@dataclasses.dataclass(frozen=True, eq=False)
class EncodedGrid(Integers):
    """Release of an `EncodedLaw` in integers."""

    law: EncodedLaw

    @override
    def sums(self, shape):
        return EncodedSums(self.law.terms.mechanism, self.law.encoding).program(shape)

    def noisy(self, shape):
        """Return the integer noise for n records of this shape, and the post-processing.

        Raises:
            ValueError: the scale is not that of the theorem.
        """
        law, encoding, name = self.law, self.law.encoding, self.law.terms.mechanism
        bounds, strengths = encoding.bounds(shape), encoding.each(law.mu)
        if not np.allclose(encoding.each(law.scale), 2.0 * bounds / law.n / strengths, rtol=1e-9, atol=0.0):
            raise InputError(f"{name}: numerics='grid' needs the scale of its theorem.")
        noises = [
            grid.gaussian_noise(2 * grid.STEPS, bound / grid.STEPS / law.n, mu)
            for bound, mu in zip(*(np.ravel(x).tolist() for x in np.broadcast_arrays(bounds, strengths)), strict=True)
        ]
        vector = encoding.shape(shape)
        value_of = compiled_ahead(name, _value, encoding, jax.ShapeDtypeStruct((1, *vector), jnp.float64))
        steps, length = np.array([noise.step for noise in noises]), math.prod(vector) // len(noises)
        counts = collections.Counter(noise.scale for noise in noises)
        promises = {f"rho_per_{encoding.part}": [grid.zcdp([noise]).rho for noise in noises]} if encoding.part else None
        terms = dataclasses.replace(
            law.terms,
            guarantee=grid.zcdp(noises),
            theorem=law.on_grid,
            sensitivity=_like(law.scale, steps * [noise.sensitivity for noise in noises]),
            formula=f"{law.terms.formula}: {2 * grid.STEPS} steps of the grid",
            sampler=grid.sampler(discrete_gaussian, [count * length for count in counts.values()], counts),
            promises=promises,
        )

        def value(total):
            noisy = np.empty((len(noises), length))
            rows = np.reshape(np.asarray(total, object), noisy.shape)
            scales = np.array([noise.scale for noise in noises], object)
            for scale in counts:  # vectors with one scale together
                noisy[scales == scale] = grid.with_noise(discrete_gaussian, rows[scales == scale], scale)
            return np.asarray(value_of(encoding, (steps[:, None] * noisy).reshape(1, *vector)))[0]

        return Noisy(terms, _like(law.scale, steps * [noise.scale for noise in noises]), grid.NOTE, value)


def _like(scale, numbers):
    """Return numbers in the form of the law's scale, if they fit into it."""
    if np.ndim(scale) == 0 and len(set(numbers.tolist())) == 1:
        return float(numbers[0])
    return numbers.reshape(np.shape(scale)) if np.size(scale) == len(numbers) else numbers


def _to_each(scale):
    """Return a scale that broadcasts over vectors: one for all, or one for each of k (..., k, m)."""
    return scale[..., None] if scale.ndim else scale


def mean_of_bounded(encoding: Encoding, data: jax.Array) -> jax.Array:
    """Return the mean of `Encoding.bounded` of records (n, \\*shape)."""

    def together(data):
        return jnp.mean(encoding.bounded(data), axis=0)

    # XLA's sum over the first axis takes a CPU several times as long as reading the records does.
    def one_by_one(data):
        def with_next(sums, record):
            total, lost = sums  # Kahan's sum: as right for many records as for few
            term = encoding.bounded(record[None])[0] - lost
            following = total + term
            return (following, (following - total) - term), None

        none = jnp.zeros_like(jax.eval_shape(together, data))
        return jax.lax.scan(with_next, (none, none), data)[0][0] / len(data)

    if math.prod(data.shape[1:]) < _LARGE_RECORD:
        return together(data)
    return jax.lax.platform_dependent(data, cpu=one_by_one, default=together)


@functools.partial(jax.jit, static_argnames="num")
def drawn_values(encoding, key, data, scale, num):
    """Return the values of ``num`` draws, in blocks."""
    mean = encoding.white(mean_of_bounded(encoding, data))
    width = _to_each(scale)

    def of_keys(keys):
        noise = jax.vmap(lambda own: jax.random.normal(own, mean.shape, data.dtype))(keys)
        return encoding.value(mean + width * noise).astype(data.dtype)

    # A key for each draw: it is the same in blocks of any size.
    block = min(num, max(1, BLOCK // mean.size))
    count = math.ceil(num / block)
    keys = jax.random.split(key, count * block)
    if count == 1:
        return of_keys(keys)
    values = jax.lax.map(of_keys, keys.reshape(count, block))
    return values.reshape(-1, *values.shape[2:])[:num]


@jax.jit
def _vectors(encoding, data):
    return encoding.white(encoding.bounded(data))


@jax.jit
def _value(encoding, vectors):
    return encoding.value(vectors)
