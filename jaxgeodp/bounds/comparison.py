"""Comparison functions of Riemannian geometry, of numbers (in double precision) or arrays.

For half the squared distance to a point at distance s, the eigenvalues of the Hessian lie between
``h_max(s, k_max)`` and ``h_min(s, k_min)`` (Reimherr, Bharath & Soto 2021, (1)-(2)).
"""

import math
from typing import overload

import jax
import jax.numpy as jnp
import numpy as np

# Angles below this are replaced by it: the functions differ from 1 by less than rounding there.
_LEAST_ANGLE = 1e-9


@overload
def h_max(distance: float, curvature: float) -> float: ...
@overload
def h_max(distance: jax.Array, curvature: float) -> jax.Array | float: ...
def h_max(distance, curvature: float):
    """Return ``s sqrt(k) cot(s sqrt(k))`` for k > 0, else 1: lower bound of the Hessian, decreasing in s."""
    return _over(distance * math.sqrt(curvature), math.tan, jnp.tan) if curvature > 0 else 1.0


@overload
def h_min(distance: float, curvature: float) -> float: ...
@overload
def h_min(distance: jax.Array, curvature: float) -> jax.Array | float: ...
def h_min(distance, curvature: float):
    """Return ``s sqrt|k| coth(s sqrt|k|)`` for k < 0, else 1: upper bound of the Hessian, increasing in s."""
    return _over(distance * math.sqrt(-curvature), math.tanh, jnp.tanh) if curvature < 0 else 1.0


def _over(angle, of_number, of_array):
    """Return ``angle / function(angle)``."""
    if isinstance(angle, jax.Array):
        angle = jnp.maximum(angle, _LEAST_ANGLE)
        return angle / of_array(angle)
    angle = max(angle, _LEAST_ANGLE)
    return angle / of_number(angle)


def rauch(distance: float, curvature: float) -> float:
    """Return ``s sqrt(k) / sin(s sqrt(k))`` for k > 0, else 1: bound of |(d exp_x)^-1| at distance s (Rauch)."""
    if curvature <= 0 or distance == 0:
        return 1.0
    angle = distance * math.sqrt(curvature)
    return angle / math.sin(angle) if angle < math.pi else math.inf


def log_area(manifold, t):
    """Return the log of a lower bound of the area of geodesic spheres of radii t (array), over that of the unit sphere.

    Guenther's comparison with constant curvature k_max; exact there and on planar shapes.
    """
    curvature, transverse = manifold.curvature_bounds[1], manifold.transverse_curvature
    if transverse != curvature:  # complex projective space
        return (manifold.dim - 2) * np.log(np.sin(t)) + np.log(0.5 * np.sin(2.0 * t))
    root = math.sqrt(abs(curvature))
    length = t if curvature == 0 else (np.sin(root * t) if curvature > 0 else np.sinh(root * t)) / root
    return (manifold.dim - 1) * np.log(length)
