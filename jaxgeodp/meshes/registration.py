"""Registration of surfaces by a diffeomorphism g of the disk (Jermyn, Kurtek, Laga, Srivastava 2017):

    E(g, O) = int |q_template - O (q, g)|^2 dA,   (q, g) = sqrt(J_g) q o g.

The flow's coefficients c minimise min_O E + ridge |c|^2 by L-BFGS with a fixed number of steps. The best rotation O is
a minimiser itself, so it counts as a constant in the derivative.

On faces with known correspondence (docs/faces.md) points correspond better by a third than by nose and nasion alone;
a weaker ridge lowers the energy further, but not that error. So the ridge is large by default.
"""

import functools
import math
from typing import NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxgeodp.checks import InputError, positive_integer, positive_number
from jaxgeodp.meshes.disk_flow import flow, flow_size
from jaxgeodp.meshes.grid import polar_points
from jaxgeodp.meshes.square_root import best_rotation, disk_integral, opposite, square_root_field

# Rows that a cubic needs beyond the grid.
_GHOSTS = 2
# A step that is too long must be cut until the objective falls: from 1, by halves, to 1e-6.
_LINE_SEARCH = optax.scale_by_backtracking_linesearch(
    max_backtracking_steps=20, decrease_factor=0.5, increase_factor=math.inf, store_grad=True
)


class Registration(NamedTuple):
    """Result of `register` for n surfaces."""

    coefficients: jax.Array  #: of the flows of the disk, (n, coefficients)
    rotations: jax.Array  #: (n, 3, 3)
    energy_before: jax.Array  #: squared distance of the fields with the best rotation and no warp, (n,)
    energy: jax.Array  #: squared distance of the fields that is left, (n,)
    smallest_jacobian: jax.Array  #: of the flow over the grid, (n,), above 0 as it is a diffeomorphism


def register(grids, template_grid, ridge: float = 0.1, steps: int = 30, batch: int = 1) -> Registration:
    """Warp and rotate surfaces onto a template.

    Of each surface are sought a flow of the disk and a rotation with the least distance of the square-root fields, plus
    ridge times the squared coefficients of the flow.

    Args:
        grids: (n, R, T, 3), each of area 1, as `normalize` gives them.
        template_grid: (R, T, 3), of area 1.
        ridge: penalty of the warp, above 0.
        steps: of L-BFGS.
        batch: how many surfaces are warped at a time; 1 is fastest on a CPU.

    Returns:
        Flows and rotations, with the distance before and after; see `Registration`.

    Raises:
        ValueError: a parameter is out of range, or shapes differ.
    """
    grids, template_grid = jnp.asarray(grids), jnp.asarray(template_grid)
    positive_number("register", "ridge", ridge)
    positive_integer("register", "steps", steps, 1)
    positive_integer("register", "batch", batch, 1)
    if grids.ndim != 4 or grids.shape[1:] != template_grid.shape:
        raise InputError(f"register: grids must have shape (n, *{template_grid.shape}), got {grids.shape}.")
    return _register(grids, template_grid, jnp.asarray(ridge, grids.dtype), steps, batch)


def warp(grid, coefficients):
    """Return f o g on the polar grid: the surface (R, T, 3) after the flow with these coefficients."""
    grid = jnp.asarray(grid)
    moved, _ = flow(coefficients, _nodes(grid.shape[0], grid.shape[1], grid.dtype))
    return interpolate(grid, moved)


def warp_points(coefficients, z):
    """Return g(z) for complex points of the disk, on the host: where to sample corresponding curves."""
    z = np.asarray(z)
    moved, _ = flow(
        coefficients, jnp.asarray(np.stack([np.real(z), np.imag(z)], axis=-1), jnp.asarray(coefficients).dtype)
    )
    moved = np.asarray(moved, float) @ np.array([1.0, 1j])
    # Rounding must not leave the disk.
    return moved / np.maximum(np.abs(moved), 1.0)


def warp_field(field, coefficients):
    """Return (q, g) = sqrt(J_g) q o g for a square-root field (R, T, 3)."""
    return _warped(field, coefficients)[0]


def energy(field, template_field, coefficients):
    """Return int |q_template - O (q, g)|^2 dA for the best rotation O, and O."""
    warped = warp_field(field, coefficients)
    rotation = jax.lax.stop_gradient(best_rotation(jax.lax.stop_gradient(warped), template_field))
    return disk_integral(jnp.sum((template_field - warped @ rotation.T) ** 2, axis=-1)), rotation


@jax.jit
def interpolate(grid: jax.Array, points: jax.Array) -> jax.Array:
    """Interpolate polar grid values (R, T, C) at points (..., 2) of the disk by cubics through the centre.

    Cubic convolution (Keys 1981) in radius and angle, continuous with its derivative; quadratic beyond the last row.
    """
    radii, angles = grid.shape[:2]
    outer = 3.0 * grid[-1] - 3.0 * grid[-2] + grid[-3]
    beyond = 3.0 * outer - 3.0 * grid[-1] + grid[-2]
    rows = jnp.concatenate([opposite(grid)[_GHOSTS - 1 :: -1], grid, outer[None], beyond[None]])
    x, y = points[..., 0], points[..., 1]
    square = x**2 + y**2
    # The angle at the centre itself does not matter, but its derivative must be finite.
    regular = square > 0
    radius = jnp.sqrt(jnp.where(regular, square, 1.0)) * regular
    angle = jnp.arctan2(y, jnp.where(regular, x, 1.0))
    row, row_weights = _cubic(jnp.clip(radius, 0.0, 1.0) * radii - 0.5)
    column, column_weights = _cubic(angle * (angles / (2.0 * math.pi)))
    four = np.arange(4)
    row = row[..., None, None] + (four[:, None] + _GHOSTS - 1)
    column = (column[..., None, None] + (four - 1)) % angles
    weights = row_weights[..., :, None] * column_weights[..., None, :]
    return jnp.sum(weights[..., None] * rows[row, column], axis=(-3, -2))


def _warped(field, coefficients):
    moved, log_jacobian = flow(coefficients, _nodes(field.shape[0], field.shape[1], field.dtype))
    return jnp.exp(0.5 * log_jacobian)[..., None] * interpolate(field, moved), log_jacobian


def _cubic(position):
    """Return the node below a position, and the weights of the four around it."""
    node = jnp.floor(jax.lax.stop_gradient(position))
    t = position - node
    weights = (
        ((-0.5 * t + 1.0) * t - 0.5) * t,
        (1.5 * t - 2.5) * t * t + 1.0,
        ((-1.5 * t + 2.0) * t + 0.5) * t,
        (0.5 * t - 0.5) * t * t,
    )
    return node.astype(int), jnp.stack(weights, axis=-1)


def _nodes(radii, angles, dtype):
    z = polar_points(radii, angles)
    return jnp.asarray(np.stack([z.real, z.imag], axis=-1), dtype)


@functools.partial(jax.jit, static_argnums=(3, 4))
def _register(grids, template_grid, ridge, steps, batch):
    template_field = square_root_field(template_grid)
    solver = optax.lbfgs(memory_size=10, linesearch=_LINE_SEARCH)

    def one(grid):
        field = square_root_field(grid)
        start = jnp.zeros(flow_size(), grid.dtype)

        def objective(coefficients):
            return energy(field, template_field, coefficients)[0] + ridge * jnp.sum(coefficients**2)

        def step(carry, _):
            coefficients, value, gradient, state = carry
            updates, state = solver.update(
                gradient, state, coefficients, value=value, grad=gradient, value_fn=objective
            )
            # The line search has evaluated its last point already.
            value, gradient = optax.tree_utils.tree_get(state, "value"), optax.tree_utils.tree_get(state, "grad")
            moved = cast(jax.Array, optax.apply_updates(coefficients, updates))
            return (moved, value, gradient, state), None

        before, gradient = jax.value_and_grad(objective)(start)
        carry = start, before, gradient, solver.init(start)
        (found, value, _, _), _ = jax.lax.scan(step, carry, None, length=steps)
        # Keep the start where a step went wrong.
        better = value <= before
        found = jnp.where(better, found, start)
        after = jnp.where(better, value, before) - ridge * jnp.sum(found**2)
        warped, log_jacobian = _warped(field, found)
        return Registration(found, best_rotation(warped, template_field), before, after, jnp.exp(jnp.min(log_jacobian)))

    return jax.lax.map(one, grids, batch_size=min(batch, len(grids)))
