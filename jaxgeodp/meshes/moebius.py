"""Moebius maps of the unit disk: w = exp(i alpha) (z - a)/(1 - conj(a) z), |a| < 1.

A disk conformal map is determined up to these three numbers. Two landmarks fix them all: the first goes to the centre,
the second to the positive imaginary axis.
"""

import operator

import numpy as np

from jaxgeodp.checks import InputError


def moebius_center(z, nose: int, up: int) -> np.ndarray:
    """Return z after the Moebius map that sends one vertex to 0 and another straight above it.

    Args:
        z: complex places of the vertices in the closed unit disk, (V,).
        nose: number of the vertex for the centre; inside the disk.
        up: number of the vertex for the positive imaginary axis.

    Returns:
        Complex places of the vertices after a Moebius map of the disk, (V,).

    Raises:
        ValueError: the numbers are out of range, name the same place, or the first lies on the boundary.
    """
    z = np.asarray(z, dtype=complex)
    if z.ndim != 1:
        raise InputError(f"moebius_center: z must have shape (V,), got {z.shape}.")
    a, above = z[_vertex("nose", nose, len(z))], z[_vertex("up", up, len(z))]
    if not np.abs(a) < 1.0 - 1e-12:
        raise InputError(f"moebius_center: vertex {nose} lies on the boundary; choose a nose inside the disk.")
    if a == above:
        raise InputError(f"moebius_center: nose {nose} and up {up} coincide; choose two different landmarks.")
    moved = (z - a) / (1.0 - np.conj(a) * z)
    direction = (above - a) / (1.0 - np.conj(a) * above)
    return 1j * np.conj(direction) / np.abs(direction) * moved


def _vertex(name, number, count):
    try:
        index = operator.index(number)
    except TypeError:
        index = -1
    if not 0 <= index < count:
        raise InputError(f"moebius_center: {name} must be a vertex number from 0 to {count - 1}, got {number!r}.")
    return index
