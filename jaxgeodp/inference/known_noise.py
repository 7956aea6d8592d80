"""The noise of a released number or matrix, as a reader knows it from the record."""

import abc
import dataclasses
import math
from typing import final

import jax
import numpy as np
from typing_extensions import override

from jaxgeodp.inference.matrix_noise import has_hull_noise
from jaxgeodp.samplers.spectral import hull_mean_square, hull_noise

# Off the diagonal the noise of integers is 5/7 of that on it (`TangentCovariance`).
_OFF = 5.0 / 7.0


class KnownNoise(abc.ABC):
    """Noise that has been added to a number, or to a symmetric matrix."""

    @abc.abstractmethod
    def mean_square(self, dim: int) -> float:
        """Return the expected squared Frobenius norm of the noise of a matrix (dim, dim); for a number dim is 1."""

    @abc.abstractmethod
    def matrices(self, num: int, dim: int) -> np.ndarray:
        """Return draws of the noise of a matrix, (num, dim, dim); the same ones each time."""


@final
@dataclasses.dataclass(frozen=True)
class EntryNoise(KnownNoise):
    """Independent noise of each entry, that of integers in effect.

    Attributes:
        deviation: standard deviation on the diagonal.
        laplace: whether its law is Laplace's; else it is normal.
    """

    deviation: float
    laplace: bool = False

    @override
    def mean_square(self, dim):
        return self.deviation**2 * (dim + _OFF**2 * dim * (dim - 1))

    @override
    def matrices(self, num, dim):
        rng, shape = np.random.default_rng(0), (num, dim, dim)
        noise = rng.laplace(scale=math.sqrt(0.5), size=shape) if self.laplace else rng.standard_normal(shape)
        off = _OFF * np.triu(noise, 1)
        return self.deviation * (noise * np.eye(dim) + off + np.swapaxes(off, 1, 2))


@final
@dataclasses.dataclass(frozen=True)
class MatrixNoise(KnownNoise):
    """Represent the noise of `hull_noise` on a symmetric matrix.

    Attributes:
        scale: of its norm.
    """

    scale: float

    @override
    def mean_square(self, dim):
        return self.scale**2 * hull_mean_square(dim)

    @override
    def matrices(self, num, dim):
        with jax.enable_x64(True):
            return self.scale * np.asarray(hull_noise(jax.random.key(0), num, dim))


def noise_of(record: dict) -> KnownNoise:
    """Return the noise that the record of a variance or a covariance states."""
    scale = float(record["scale"])
    if has_hull_noise(record):
        return MatrixNoise(scale)
    if record["guarantee"]["kind"] == "pure":
        return EntryNoise(math.sqrt(2.0) * scale, laplace=True)
    return EntryNoise(scale)
