"""Spectra of kernel operators on samples, and functions of these operators."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Protocol, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

_Method = TypeVar("_Method", bound=Callable)


def one_program(method: _Method) -> _Method:
    """Compile a method as one program; an argument ``m`` is static."""
    counts = [name for name in inspect.signature(method).parameters if name == "m"]
    return cast(_Method, jax.jit(method, static_argnames=counts))


class Spectrum(Protocol):
    """Interface of a spectrum; ``modes`` is the number of distinct stored eigenvalues."""

    eigenvalues: jax.Array  #: not negative, shape (modes,), or (J, modes) for J length scales

    @property
    def multiplicity(self) -> np.ndarray:
        """Multiplicity of each eigenvalue, (modes,)."""
        ...

    def apply(self, factors, curves) -> jax.Array:
        """Return curves (..., m) with each eigencomponent times its factor, (..., modes)."""
        ...

    def energies(self, curves) -> jax.Array:
        """Return squared norms of the eigencomponents of curves (..., m): (..., modes), with sum |f|^2."""
        ...


@functools.partial(jax.tree_util.register_dataclass, data_fields=["eigenvalues"], meta_fields=["samples"])
@dataclasses.dataclass(frozen=True, eq=False)
class FourierSpectrum(Spectrum):
    """Fourier modes on m equispaced samples of the circle, with the alternating vector for even m."""

    eigenvalues: jax.Array
    samples: int

    @property
    @override
    def multiplicity(self):
        counts = np.full(self.samples // 2 + 1, 2.0)
        counts[0] = 1.0
        if self.samples % 2 == 0:
            counts[-1] = 1.0
        return counts

    @one_program
    @override
    def apply(self, factors, curves):
        return jnp.fft.irfft(factors * jnp.fft.rfft(curves), self.samples)

    @one_program
    @override
    def energies(self, curves):
        coefficients = jnp.fft.rfft(curves) / self.samples
        return (coefficients.real**2 + coefficients.imag**2) * self.multiplicity


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class DenseSpectrum(Spectrum):
    """Orthonormal eigenvectors (columns) of the operator, symmetrised by the roots of the weights."""

    eigenvalues: jax.Array
    vectors: jax.Array
    roots: jax.Array

    @property
    @override
    def multiplicity(self):
        return np.ones(self.eigenvalues.shape[-1])

    @one_program
    @override
    def apply(self, factors, curves):
        coefficients = jnp.einsum("...ik,...i->...k", self.vectors, curves * self.roots)
        return jnp.einsum("...ik,...k->...i", self.vectors, factors * coefficients) / self.roots

    @one_program
    @override
    def energies(self, curves):
        return jnp.einsum("...ik,...i->...k", self.vectors, curves * self.roots) ** 2
