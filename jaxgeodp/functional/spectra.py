"""Spectra of kernel operators on samples, and functions of the operators."""

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
    """The method as one program, where each of its steps would be one otherwise; ``m``, if it has it, is static."""
    counts = [name for name in inspect.signature(method).parameters if name == "m"]
    return cast(_Method, jax.jit(method, static_argnames=counts))


class Spectrum(Protocol):
    """What a spectrum offers; ``modes`` is the number of eigenvalues that are told apart."""

    eigenvalues: jax.Array  #: not negative, shape (modes,), or (J, modes) for J length scales

    @property
    def multiplicity(self) -> np.ndarray:
        """How often each eigenvalue counts, shape (modes,)."""
        ...

    def apply(self, factors, curves) -> jax.Array:
        """Curves (..., m) with each eigencomponent times its factor, shape (..., modes)."""
        ...

    def energies(self, curves) -> jax.Array:
        """Squared norms of the eigencomponents of curves (..., m): (..., modes), with sum |f|^2."""
        ...


@functools.partial(jax.tree_util.register_dataclass, data_fields=["eigenvalues"], meta_fields=["samples"])
@dataclasses.dataclass(frozen=True, eq=False)
class FourierSpectrum(Spectrum):
    """On m equispaced samples of the circle: constants, cosines and sines, and by even m the alternating vector."""

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
    """Orthonormal eigenvectors, as columns, of the operator made symmetric by the roots of the weights."""

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
