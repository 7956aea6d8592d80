"""Comparison functions of Riemannian geometry, for public scalars (plain floats, double precision).

For half the squared distance to a point at distance s, the eigenvalues of the Hessian lie between
``h_max(s, k_max)`` and ``h_min(s, k_min)`` (Reimherr, Bharath & Soto 2021, (1)-(2)).
"""

import math

import numpy as np


def h_max(distance: float, curvature: float) -> float:
    """``s sqrt(k) cot(s sqrt(k))`` for k > 0, else 1: lower bound of the Hessian, decreasing in s."""
    if curvature <= 0 or distance == 0:
        return 1.0
    angle = distance * math.sqrt(curvature)
    return angle / math.tan(angle)


def h_min(distance: float, curvature: float) -> float:
    """``s sqrt|k| coth(s sqrt|k|)`` for k < 0, else 1: upper bound of the Hessian, increasing in s."""
    if curvature >= 0 or distance == 0:
        return 1.0
    angle = distance * math.sqrt(-curvature)
    return angle / math.tanh(angle)


def rauch(distance: float, curvature: float) -> float:
    """``s sqrt(k) / sin(s sqrt(k))`` for k > 0, else 1: bound of |(d exp_x)^-1| at distance s (Rauch)."""
    if curvature <= 0 or distance == 0:
        return 1.0
    angle = distance * math.sqrt(curvature)
    return angle / math.sin(angle) if angle < math.pi else math.inf


def log_area(manifold, t):
    """Log of a lower bound of the area of geodesic spheres of radii t (array), over that of the unit sphere.

    Guenther's comparison with constant curvature k_max; exact there and on planar shapes.
    """
    curvature, transverse = manifold.curvature_bounds[1], manifold.transverse_curvature
    if transverse != curvature:  # complex projective space
        return (manifold.dim - 2) * np.log(np.sin(t)) + np.log(0.5 * np.sin(2.0 * t))
    root = math.sqrt(abs(curvature))
    length = t if curvature == 0 else (np.sin(root * t) if curvature > 0 else np.sinh(root * t)) / root
    return (manifold.dim - 1) * np.log(length)
