"""Noise that is added to a vector: its law, how far it reaches, what it promises, and its counterpart in integers."""

import abc
import dataclasses
import math
from collections.abc import Callable
from typing import ClassVar

import jax
import jax.numpy as jnp
from typing_extensions import override

from jaxgeodp.privacy import grid
from jaxgeodp.privacy.guarantee import GaussianDP, Guarantee, PureDP
from jaxgeodp.samplers.discrete import discrete_gaussian, discrete_laplace


class Noise(abc.ABC):
    """A law of vectors of scale 1; the scale that makes it private is sensitivity/strength.

    A subclass is a frozen dataclass without fields: programs are compiled for it.

    Attributes:
        name: for the record.
        theorem: why the scale is enough.
    """

    name: ClassVar[str]
    theorem: ClassVar[str]

    @abc.abstractmethod
    def guarantee(self, strength: float) -> Guarantee:
        """Return the guarantee of noise of scale sensitivity/strength."""

    @abc.abstractmethod
    def draw(self, key: jax.Array, num: int, dim: int, dtype) -> jax.Array:
        """Draw noise vectors (num, dim)."""

    @abc.abstractmethod
    def log_density(self, z: jax.Array) -> jax.Array:
        """Return the unnormalised log density of one vector."""


class RotationInvariant(Noise):
    """Noise that prefers no direction, so that it is the same in every orthonormal frame of a tangent space."""

    @abc.abstractmethod
    def reach(self, dim: int) -> float:
        """Return a length that hardly any noise vector exceeds."""

    @abc.abstractmethod
    def on_grid(self, dim: int, sensitivity: int, step: float, strength: float) -> tuple[grid.GridNoise, Guarantee]:
        """Return the integer noise for a change by ``sensitivity`` steps, and its guarantee."""

    @abc.abstractmethod
    def reach_on_grid(self, dim: int) -> float:
        """Return `reach` for the integer noise."""

    @property
    @abc.abstractmethod
    def continuous(self) -> Noise:
        """Return the real-valued noise that the integer noise approximates."""

    @property
    @abc.abstractmethod
    def discrete(self) -> Callable:
        """Return the sampler of one integer; see `samplers.discrete`."""


@dataclasses.dataclass(frozen=True)
class Norm(RotationInvariant):
    """Density exp(-|z|): epsilon-DP by the Euclidean sensitivity; in integers independent coordinates."""

    name = "norm"
    theorem = "K-norm mechanism of the Euclidean norm (Hardt & Talwar 2010): scale = sensitivity/epsilon"

    def guarantee(self, strength):
        """Return epsilon-DP."""
        return PureDP(strength)

    def draw(self, key, num, dim, dtype):
        """Return uniform directions times Gamma(dim, 1) lengths."""
        direction_key, length_key = jax.random.split(key)
        normal = jax.random.normal(direction_key, (num, dim), dtype)
        # Gamma as dim exponentials (jax.random.gamma compiles for seconds).
        lengths = jnp.sum(jax.random.exponential(length_key, (num, dim), dtype), axis=1)
        return normal / jnp.linalg.norm(normal, axis=1, keepdims=True) * lengths[:, None]

    @override
    def log_density(self, z):
        return -jnp.linalg.norm(z)

    def reach(self, dim):
        """Return the mean length plus six standard deviations."""
        return dim + 6.0 * math.sqrt(dim)

    def on_grid(self, dim, sensitivity, step, strength):
        """Return discrete Laplace noise in every coordinate."""
        return grid.laplace_noise(dim, sensitivity, step, strength), PureDP(strength)

    def reach_on_grid(self, dim):
        """Return twice `reach`: independent Laplace coordinates have norms of about sqrt(2) dim."""
        return 2.0 * self.reach(dim)

    @property
    def continuous(self):
        """Return independent Laplace coordinates."""
        return Coordinates()

    @property
    def discrete(self):
        """Return `discrete_laplace`."""
        return discrete_laplace


@dataclasses.dataclass(frozen=True)
class Normal(RotationInvariant):
    """Independent normal coordinates: mu-GDP."""

    name = "gaussian"
    theorem = "Gaussian mechanism (Dong, Roth & Su 2022, Theorem 1): scale = sensitivity/mu"

    def guarantee(self, strength):
        """Return mu-GDP."""
        return GaussianDP(strength)

    @override
    def draw(self, key, num, dim, dtype):
        return jax.random.normal(jax.random.split(key)[0], (num, dim), dtype)

    @override
    def log_density(self, z):
        return -0.5 * jnp.sum(z**2)

    def reach(self, dim):
        """Return sqrt(dim), about the mean length, plus six."""
        return math.sqrt(dim) + 6.0

    def on_grid(self, dim, sensitivity, step, strength):
        """Return discrete Gaussian noise: mu^2/2-zCDP."""
        noise = grid.gaussian_noise(sensitivity, step, strength)
        return noise, grid.zcdp([noise])

    def reach_on_grid(self, dim):
        """Return `reach`, as in floating point."""
        return self.reach(dim)

    @property
    def continuous(self):
        """Return the normal noise itself."""
        return self

    @property
    def discrete(self):
        """Return `discrete_gaussian`."""
        return discrete_gaussian


@dataclasses.dataclass(frozen=True)
class Coordinates(Noise):
    """Independent Laplace coordinates: epsilon-DP by the sum of the coordinates' changes."""

    name = "coordinates"
    theorem = "Laplace mechanism (Dwork, McSherry, Nissim & Smith 2006): scale = sensitivity/epsilon, in the L1 norm"

    def guarantee(self, strength):
        """Return epsilon-DP."""
        return PureDP(strength)

    @override
    def draw(self, key, num, dim, dtype):
        return jax.random.laplace(jax.random.split(key)[0], (num, dim), dtype)

    @override
    def log_density(self, z):
        return -jnp.sum(jnp.abs(z))
