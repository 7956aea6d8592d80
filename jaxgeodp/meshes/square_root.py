"""The square-root normal field of a surface on the polar grid, unit area, and rotation (Jermyn, Kurtek, Laga,
Srivastava, "Elastic Shape Analysis of Three-Dimensional Objects", 2017).

    n = (f_r x f_t)/r,   q = n/sqrt|n|,   int |q|^2 dA = Area,   (q, g) = sqrt(J_g) q o g is an isometry,

with dA = r dr dt the area of the disk. Angular derivatives are spectral; radial ones are differences of fourth order
along whole diameters, by f(-r, t) = f(r, t + pi), so the centre is no special place. Radial integrals are exact for r
times a parabola through three nodes in each cell: of fourth order too, with positive weights.

Every function works on one surface (R, T, 3) and batches by vmap.
"""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError

# Nodes of a radial derivative, and of the integral over a cell.
_STENCIL, _WINDOW = 5, 3


class Similarity(NamedTuple):
    """The map x -> scale * rotation (x - center)."""

    center: jax.Array  #: (3,)
    scale: jax.Array  #: above 0, ()
    rotation: jax.Array  #: (3, 3)

    def __call__(self, points):
        """Apply the map to points (..., 3), such as curves or a grid of the same surface."""
        return self.scale * jnp.einsum("ij,...j->...i", self.rotation, points - self.center)


def normal_field(grid):
    """Return n = (f_r x f_t)/r = f_x x f_y on a polar grid (R, T, 3); |n| is surface area per disk area."""
    grid = _checked(grid)
    radius = jnp.asarray(_radii(len(grid)), grid.dtype)[:, None, None]
    return jnp.cross(radial_derivative(grid), angular_derivative(grid) / radius)


def square_root_field(grid):
    """Return q = n/sqrt|n| of a polar grid, (R, T, 3); see `normal_field` for n.

    The integral of |q|^2 over the disk is the area of the surface, and warps of the disk move q without changing
    distances (Jermyn, Kurtek, Laga & Srivastava 2017).

    Args:
        grid: one surface (R, T, 3), R at least 4 and T even; several go through `jax.vmap`.

    Raises:
        ValueError: the shape is another.
    """
    normal = normal_field(grid)
    square = jnp.sum(normal**2, axis=-1, keepdims=True)
    # A pinched surface has q = 0 there; the root has no derivative at 0.
    regular = square > 0
    return jnp.where(regular, normal / jnp.where(regular, square, 1.0) ** 0.25, 0.0)


def area(grid):
    """Return the area of the surface."""
    return disk_integral(jnp.linalg.norm(normal_field(grid), axis=-1))


def centroid(grid):
    """Return the area-weighted mean of the points of the surface, (3,)."""
    density = jnp.linalg.norm(normal_field(grid), axis=-1)
    return disk_integral(density[..., None] * grid) / disk_integral(density)


def normalize(grid):
    """Centre the surface at its centroid and scale it by 1/sqrt(area), so that its area is 1.

    Args:
        grid: one surface (R, T, 3), R at least 4 and T even; several go through `jax.vmap`.

    Raises:
        ValueError: the shape is another.
    """
    grid = jnp.asarray(grid)
    return (grid - centroid(grid)) / jnp.sqrt(area(grid))


def best_rotation(field, template_field):
    """Return the proper rotation O, (3, 3), with the least int |template - O field|^2 dA (Kabsch 1976)."""
    overlap = disk_integral(template_field[..., :, None] * field[..., None, :])
    left, _, right = jnp.linalg.svd(overlap)
    sign = jnp.where(jnp.linalg.det(left) * jnp.linalg.det(right) < 0, -1.0, 1.0)
    return (left * jnp.stack([jnp.ones_like(sign), jnp.ones_like(sign), sign])) @ right


def similarity(grid, template_grid) -> Similarity:
    """Return the map to centroid 0, unit area and the best rotation onto a template (R, T, 3).

    Args:
        grid: one surface (R, T, 3), R at least 4 and T even.
        template_grid: (R, T, 3).

    Returns:
        A function of points (..., 3), x -> scale * rotation (x - center), with these three as attributes.

    Raises:
        ValueError: a shape is another.
    """
    grid = jnp.asarray(grid)
    rotation = best_rotation(square_root_field(grid), square_root_field(template_grid))
    return Similarity(centroid(grid), 1.0 / jnp.sqrt(area(grid)), rotation)


def align(grid, template_grid):
    """Return the surface on a polar grid (R, T, 3), centred, of area 1, and turned onto a template; see `similarity`.

    Args:
        grid: one surface (R, T, 3), R at least 4 and T even.
        template_grid: (R, T, 3).

    Raises:
        ValueError: a shape is another.

    Example:
        >>> import jax.numpy as jnp
        >>> from jaxgeodp.meshes.grid import polar_points
        >>> from jaxgeodp.meshes.square_root import align, area
        >>> z = polar_points(24, 80)
        >>> bowl = jnp.stack([z.real, z.imag, abs(z) ** 2], axis=-1)
        >>> round(float(area(align(bowl, bowl))), 4)
        1.0
    """
    return similarity(grid, template_grid)(jnp.asarray(grid))


# Calculus on the polar grid -----------------------------------------------------------------------------------


def angular_derivative(grid):
    """Return the derivative in t of values (R, T, ...)."""
    grid = jnp.asarray(grid)
    count = grid.shape[1]
    frequency = np.fft.rfftfreq(count, 1.0 / count)
    # The alternating vector is a cosine whose sine the grid does not see.
    frequency[-1] = 0.0
    factor = jnp.asarray(1j * frequency, jnp.result_type(grid, 1j)).reshape((-1,) + (1,) * (grid.ndim - 2))
    return jnp.fft.irfft(factor * jnp.fft.rfft(grid, axis=1), count, axis=1)


def radial_derivative(grid):
    """Return the derivative in r of values (R, T, ...)."""
    grid = jnp.asarray(grid)
    diameters = jnp.concatenate([opposite(grid)[::-1], grid])
    return jnp.tensordot(jnp.asarray(_differences(len(grid)), grid.dtype), diameters, 1)


def opposite(grid):
    """Return f(r, t + pi), which is f(-r, t)."""
    return jnp.roll(grid, -(grid.shape[1] // 2), axis=1)


def disk_integral(values):
    """Return int values dA over the unit disk, for values (R, T, ...)."""
    weights = jnp.asarray(disk_weights(*values.shape[:2]), values.dtype)
    return jnp.tensordot(weights, values, 2)


@functools.lru_cache(maxsize=32)
def disk_weights(radii: int, angles: int) -> np.ndarray:
    """Return quadrature weights of the nodes, (R, T), which sum to pi."""
    window = min(_WINDOW, 2 * radii)
    powers = np.arange(window)
    # int s^p ds over a cell, in units of the spacing from its middle.
    moments = np.where(np.arange(window + 1) % 2 == 0, 0.5 ** np.arange(window + 1) / (np.arange(window + 1) + 1), 0.0)
    diameter = np.zeros(2 * radii)
    for row in range(radii):
        at = radii + row
        first = min(at - window // 2, 2 * radii - window)
        offsets = np.arange(first, first + window) - at
        # Exact for r times the polynomial through the window.
        target = ((row + 0.5) * moments[:-1] + moments[1:]) / radii**2
        diameter[first : first + window] += np.linalg.solve(offsets[None, :].astype(float) ** powers[:, None], target)
    radial = diameter[radii:] + diameter[radii - 1 :: -1]
    return np.repeat(radial[:, None] * (2.0 * math.pi / angles), angles, axis=1)


@functools.lru_cache(maxsize=32)
def _differences(radii) -> np.ndarray:
    """Return the matrix (R, 2 R) of first derivatives at positive nodes, from all 2 R nodes of a diameter."""
    nodes = (np.arange(-radii, radii) + 0.5) / radii
    matrix = np.zeros((radii, 2 * radii))
    for row in range(radii):
        at = radii + row
        first = min(at - _STENCIL // 2, 2 * radii - _STENCIL)
        near = slice(first, first + _STENCIL)
        # Exact for polynomials through the stencil, in units of the spacing.
        offsets = (nodes[near] - nodes[at]) * radii
        target = np.zeros(_STENCIL)
        target[1] = radii
        matrix[row, near] = np.linalg.solve(offsets[None, :] ** np.arange(_STENCIL)[:, None], target)
    return matrix


def _radii(count):
    return (np.arange(count) + 0.5) / count


def _checked(grid):
    grid = jnp.asarray(grid)
    if grid.ndim != 3 or grid.shape[2] != 3 or grid.shape[1] % 2 or grid.shape[0] < 4:
        raise InputError(
            f"a surface on a polar grid must have shape (R, T, 3), T even and R at least 4, got {grid.shape}; use "
            "jax.vmap for batches."
        )
    return grid
