"""Prior covariances of smooth variation of records, from public structure alone."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.compiling import COMPILED_SOON
from jaxgeodp.manifolds.flat_spd import LogCholesky, LogEuclidean
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.manifolds.planar_shapes import PlanarShapes
from jaxgeodp.manifolds.shapes_3d import Shapes3D
from jaxgeodp.manifolds.spd import SPD

# Landmarks are an outline where no two that follow each other are so many times farther apart than two others.
_EVEN = 2.0
# An eigenvalue of the bending energy that is smaller, relative to the largest, is that of an affine map.
_AFFINE = 1e-9


def smoothness(manifold: Manifold, point: np.ndarray, power: float) -> tuple[np.ndarray, str]:
    """Return the covariance (d, d) of smooth deviations from a point, in its frame, with trace 1, and its name.

    Args:
        manifold: of the point.
        point: public.
        power: see `Shape.smooth`.
    """
    dim = manifold.dim
    if isinstance(manifold, PlanarShapes):
        places = np.stack([np.real(point), np.imag(point)], axis=1)
        modes, words = _outline(point, power) if _is_even(point) else _warps(places, power)
        parts = np.asarray(_coordinates(manifold, point, np.concatenate([modes, 1j * modes])))
    elif isinstance(manifold, Shapes3D):
        modes, words = _warps(point, power)
        parts = np.asarray(_coordinates(manifold, point, np.concatenate([modes[:, :, None] * e for e in np.eye(3)])))
    elif isinstance(manifold, SPD | LogEuclidean | LogCholesky) and dim > 1:
        size = point.shape[0]
        trace = np.asarray(_coordinates(manifold, point, point[None]))[0]  # of multiples of the matrix
        trace = trace / np.linalg.norm(trace)
        others = (np.eye(dim) - np.outer(trace, trace)) / np.sqrt(dim - 1)
        parts, words = np.vstack([trace, others]), f"trace and traceless part of {size} x {size} matrices"
    else:
        parts, words = np.eye(dim), "all directions alike"
    covariance = parts.T @ parts
    return covariance / np.trace(covariance), f"smoothness: {words}"


def _is_even(point) -> bool:
    """Return whether landmarks are about equally spaced around a closed curve."""
    steps = np.abs(np.diff(np.append(point, point[:1])))
    return bool(steps.max() <= _EVEN * steps.min())


def _outline(point, power) -> tuple[np.ndarray, str]:
    """Return Fourier modes along a closed complex outline, (modes, k), each scaled by its standard deviation."""
    count = len(point)
    frequencies = np.arange(-((count - 1) // 2), count // 2 + 1)
    frequencies = frequencies[frequencies != 0]
    waves = np.exp(2j * np.pi * np.outer(frequencies, np.arange(count)) / count)
    return waves * (1.0 + np.abs(frequencies))[:, None] ** -power, "Fourier modes along the outline"


def _warps(places, power) -> tuple[np.ndarray, str]:
    """Return affine and principal-warp modes of planar or spatial landmarks (k, m), (modes, k).

    The bending energy of a wave grows like the fourth power of its frequency: that of affine maps is taken as 1.
    """
    count, dimension = places.shape
    square = np.sum((places[:, None] - places[None]) ** 2, axis=-1)
    in_plane = 0.5 * square * np.log(np.where(square > 0.0, square, 1.0))  # r^2 log r
    kernel = in_plane if dimension == 2 else -np.sqrt(square)
    ones = np.column_stack([np.ones(count), places])
    affine = np.linalg.qr(ones)[0][:, 1:]
    whole = np.block([[kernel, ones], [ones.T, np.zeros((dimension + 1,) * 2)]])
    energy = np.linalg.pinv(whole)[:count, :count]
    values, warps = np.linalg.eigh(0.5 * (energy + energy.T))
    bent = values > _AFFINE * values[-1]
    frequencies = 1.0 + (values[bent] / values[bent].min()) ** 0.25 if np.any(bent) else np.zeros(0)
    modes = np.vstack([affine.T, warps[:, bent].T])
    deviations = (1.0 + np.concatenate([np.ones(dimension), frequencies])) ** -power
    return modes * deviations[:, None], "bending energy of the landmarks"


@functools.partial(jax.jit, static_argnums=0, compiler_options=COMPILED_SOON)
def _coordinates(manifold, point, vectors):
    frame = manifold.frame(point)
    return jax.vmap(lambda v: manifold.coordinates(point, manifold.to_tangent(point, v), frame))(jnp.asarray(vectors))
