"""Third derivative of half the squared distance between positive definite matrices, in closed form.

At the identity, for a matrix exp(A) with A = V diag(l) V' and ``h_ab = z coth z``, z = (l_a - l_b)/2, the covariant
derivative of the Hessian H (see `spectral`) along Z, applied to Z, has in the eigenbasis V the entries

    sum_c f_acb Z_ac Z_cb,    f_acb = h_cb (h_ab - h_ac)/(l_c - l_b) + h_ac (h_ab - h_cb)/(l_c - l_a)

(docs/mathematics.md, Theorem Z). Both quotients are divided differences of ``x -> (x/2) coth(x/2)``.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.manifolds.analytic import cos_sqrt, sinc_sqrt
from jaxgeodp.manifolds.spectral import eigh_of_definite

# Nearer nodes than this are averaged over instead of subtracted, by Gauss' rule with three nodes.
_NEARBY = 0.1
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(3)


def mean_third_derivative(matrices: jax.Array, weights: jax.Array, basis: jax.Array) -> jax.Array:
    """Return ``sum_i w_i (nabla_z H_i) z``, (dim, dim, dim): the first axis is the result, the others z twice.

    Args:
        matrices: (n, k, k), as seen from where the derivative is taken.
        weights: (n,).
        basis: orthonormal, (dim, k, k).
    """
    size = matrices.shape[-1]
    values, vectors = eigh_of_definite(matrices)
    quotients: Any
    logs = jnp.log(values)
    differences = logs[:, :, None] - logs[:, None, :]
    factors = _coth_part(differences)
    quotients = _divided_differences(differences, factors)  # [n, a, b, c] of l_a - l_b and l_a - l_c
    both = factors[:, None, :, :] * quotients.swapaxes(2, 3)  # [n, a, c, b]
    both = both + both.transpose(0, 3, 2, 1)
    # Products of two entries of one eigenvector; (p, q) and (q, p) are the same.
    first, second = np.triu_indices(size)
    pairs = vectors[:, first, :] * vectors[:, second, :]
    inner = jnp.einsum("nacb,nyb->nacy", weights[:, None, None, None] * both, pairs)
    middle = jnp.einsum("nacy,nxc->naxy", inner, pairs).reshape(-1, len(first) ** 2)
    outer = pairs.swapaxes(1, 2).reshape(-1, len(first))
    total = (outer.T @ middle).reshape((len(first),) * 3)
    # Entries p m, q r, s n of Z_pq Z_rs in what comes out at m n.
    place = np.zeros((size, size), int)
    place[first, second] = place[second, first] = np.arange(len(first))
    entries = total[place][:, :, place][:, :, :, :, place]
    along = jnp.einsum("pmqrsn,ypq->mrsny", entries, basis)
    along = jnp.einsum("mrsny,zrs->mnyz", along, basis)
    result = jnp.einsum("mnyz,xmn->xyz", along, basis)
    return 0.5 * (result + result.swapaxes(1, 2))


def _coth_part(difference):
    """Return ``(x/2) coth(x/2)``."""
    return _coth_of_square(0.25 * difference**2)


def _coth_of_square(square):
    return cos_sqrt(-square) / sinc_sqrt(-square)


def _slope(x):
    """Return the derivative of ``(x/2) coth(x/2)``."""
    return jax.jvp(_coth_part, (x,), (jnp.ones_like(x),))[1]


def _divided_differences(differences, factors):
    """Return ``(h_ab - h_ac)/(l_c - l_b)``, (n, a, b, c)."""
    gap = differences[:, :, :, None] - differences[:, :, None, :]
    near = jnp.abs(gap) < _NEARBY
    middle = 0.5 * (differences[:, :, :, None] + differences[:, :, None, :])
    slopes = [0.5 * weight * _slope(middle + 0.5 * node * gap) for node, weight in zip(_NODES, _WEIGHTS, strict=True)]
    far = (factors[:, :, :, None] - factors[:, :, None, :]) / jnp.where(near, 1.0, gap)
    return jnp.where(near, sum(slopes), far)
