"""Points and tangent vectors with fixed keys for the laws of manifolds, and how numbers are compared."""

import functools

import jax
import numpy as np

from jaxgeodp.manifolds import Manifold

TOLERANCE = {"float32": 3e-4, "float64": 1e-9}
_LONGEST = 1.5
#: One size for all batches: fewer programs to compile.
BATCH = 24


def random_points(manifold: Manifold, dtype: str, num: int, seed: int = 0):
    """Return (num, *shape) random points in the given precision, as NumPy arrays, whose parts compile nothing."""
    return np.asarray(_random_points(manifold, _dtype(manifold, dtype), max(num, BATCH), seed))[:num]


def random_tangents(manifold: Manifold, points, seed: int = 1):
    """Return random tangent vectors of length 1 at ``points`` (num, *shape), as NumPy arrays."""
    num = points.shape[0]
    points = np.concatenate([points, np.broadcast_to(points[:1], (max(BATCH - num, 0), *manifold.shape))])
    return np.asarray(_random_tangents(manifold, points, seed))[:num]


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _random_points(manifold, dtype, num, seed):
    points = jax.vmap(manifold.random_point)(jax.random.split(jax.random.key(seed), num))
    return jax.vmap(manifold.project)(points.astype(dtype))


@functools.partial(jax.jit, static_argnums=0)
def _random_tangents(manifold, points, seed):
    tangents = jax.vmap(manifold.random_tangent)(jax.random.split(jax.random.key(seed), len(points)), points)
    lengths = jax.vmap(manifold.norm)(points, tangents)
    return tangents / lengths.reshape(-1, *(1,) * len(manifold.shape)).astype(tangents.dtype)


def longest(manifold: Manifold) -> float:
    """Return the tangent length up to which the laws are tried: well inside the injectivity radius."""
    known = manifold.injectivity_radius
    return min(0.6 * known, _LONGEST) if known > 0 else 1.0


def _dtype(manifold, dtype):
    return {"float32": "complex64", "float64": "complex128"}[dtype] if manifold.dtype_kind == "complex" else dtype


def close(actual, expected, dtype, law, *context):
    """Compare up to rounding at the size of the numbers involved."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    size = max(1.0, *(float(np.max(np.abs(x))) for x in (expected, *map(np.asarray, context))))
    deviation = float(np.max(np.abs(actual - expected))) if actual.size else 0.0
    assert deviation <= TOLERANCE[dtype] * size**2, f"{law}: off by {deviation:.3g} (numbers of size {size:.3g})"
