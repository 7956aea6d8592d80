"""Logarithm and parallel transport computed from the exponential map alone, by shooting.

- ``log``: Newton's method for exp_p(v) = q, damped by halving; where it fails, the end point is moved to q along the
  projected chord, in steps as long as Newton's method bears. Its derivatives are those of the implicit function:
  at the solution, j steps with a constant Jacobian are right to order j.
- ``transport``: the pole ladder (Lorenzi & Pennec 2014). With a rung of the geodesic from x to y, m half way,
  v is carried to -log_y(exp_m(-log_m(exp_x(v)))): the reflection of a short geodesic at m, and at y. It is
  exact on symmetric spaces; else the error falls with the square of the number of rungs, and the difference of
  two numbers of rungs removes that term (Richardson).
"""

import jax
import jax.numpy as jnp

_NEWTON_STEPS = 30
_CHORD_STEPS = 64
_HALVINGS = 8
_EXACT_DERIVATIVES = 3
_RUNGS = 8


def log(manifold, p, q) -> jax.Array:
    """Return v with exp_p(v) = q; NaN where none was found."""
    frame = manifold.frame(p)

    def tangent(z, base) -> jax.Array:
        return manifold.to_tangent(base, manifold.combine(z, frame))

    def residual(z, base, target):
        return _real(manifold.exp(base, tangent(z, base)) - target)

    fixed_p, fixed_q = jax.lax.stop_gradient((p, q))
    jacobian = jax.jacfwd(residual)
    sizes = 0.5 ** jnp.arange(_HALVINGS + 1, dtype=_real(p).dtype)

    def newton(z, target):
        slope, value = jacobian(z, fixed_p, target), residual(z, fixed_p, target)
        return _least_squares(slope, value)

    def squared_error(z, target):
        length = jnp.sum(residual(z, fixed_p, target) ** 2)
        return jnp.where(jnp.isnan(length), jnp.inf, length)

    scale = 1.0 + jnp.max(jnp.abs(_real(fixed_q)))
    tolerance: jax.Array = (1e4 * jnp.finfo(scale.dtype).eps * scale) ** 2

    def solve(z, target) -> tuple[jax.Array, jax.Array]:
        """Return Newton's root starting from z, and its squared error."""

        def unfinished(state):
            _, length, previous, count = state
            return (length > 0) & (length < previous) & (count < _NEWTON_STEPS)

        def step(state):
            z, length, _, count = state
            trials = z - sizes[:, None] * newton(z, target)
            lengths = jax.vmap(lambda trial: squared_error(trial, target))(trials)
            best = jnp.argmin(lengths)
            better = lengths[best] < length
            return jnp.where(better, trials[best], z), jnp.minimum(lengths[best], length), length, count + 1

        length = squared_error(z, target)
        z, length, _, _ = jax.lax.while_loop(unfinished, step, (z, length, jnp.inf * jnp.ones_like(length), 0))
        return z, length

    def advance(state: tuple[jax.Array, jax.Array, jax.Array, int]):
        z, reached, stride, count = state
        share = jnp.minimum(1.0, reached + stride)
        target = manifold.project(fixed_p + share * (fixed_q - fixed_p))
        target = jnp.where(share < 1.0, target, fixed_q)
        first = manifold.coordinates(fixed_p, manifold.to_tangent(fixed_p, target - fixed_p), frame)
        guess = jnp.where(reached > 0, z * share / jnp.where(reached > 0, reached, 1.0), first)
        found, length = solve(guess, target)
        good = length <= tolerance
        return (
            jnp.where(good, found, z),
            jnp.where(good, share, reached),
            jnp.where(good, 2.0, 0.5) * stride,
            count + 1,
        )

    def on_the_way(state):
        return (state[1] < 1.0) & (state[3] < _CHORD_STEPS)

    one = jnp.ones_like(scale)
    origin = jnp.zeros(manifold.dim, one.dtype)
    z, reached, *_ = jax.lax.while_loop(on_the_way, advance, (origin, 0.0 * one, one, 0))
    root = jax.lax.stop_gradient(z)
    slope = jax.lax.stop_gradient(jacobian(root, fixed_p, fixed_q))
    z = root
    for _ in range(_EXACT_DERIVATIVES):
        z = z - _least_squares(slope, residual(z, p, q))
    # The steps bring derivatives; the value is the root that was found.
    z = root + (z - jax.lax.stop_gradient(z))
    # Near the cut locus, or past it, directions cannot be told apart.
    sizes = jnp.linalg.svd(slope, compute_uv=False)
    regular: jax.Array = sizes[-1] > jnp.sqrt(jnp.finfo(sizes.dtype).eps) * sizes[0]
    return jnp.where((reached >= 1.0) & regular, tangent(z, p), jnp.nan)


def _least_squares(slope, value):
    """Return the least-squares solution of slope x = value, for full column rank."""
    q, r = jnp.linalg.qr(slope)
    return jax.scipy.linalg.solve_triangular(r, q.T @ value)


def transport(manifold, p, q, tangent):
    """Return the parallel transport of ``tangent`` to q along the geodesic from p."""
    along = manifold.log(p, q)
    coarse = _ladder(manifold, p, along, tangent, _RUNGS)
    fine = _ladder(manifold, p, along, tangent, 2 * _RUNGS)
    return manifold.to_tangent(q, fine + (fine - coarse) / 3.0)


def _ladder(manifold, p, along, tangent, rungs):
    def climb(state, j):
        x, v = state
        middle = manifold.exp(p, along * ((j + 0.5) / rungs))
        following = manifold.exp(p, along * ((j + 1.0) / rungs))
        tip = manifold.exp(x, v)
        reflected = manifold.exp(middle, -manifold.log(middle, tip))
        return (following, -manifold.log(following, reflected)), None

    # The legs are as short as the rungs, whatever the length of the vector; the result does not depend on it.
    length = jax.lax.stop_gradient(manifold.norm(p, tangent))
    shrink = 1.0 / (rungs * jnp.where(length > 0, length, 1.0))
    steps = jnp.arange(rungs, dtype=_real(p).dtype)
    (_, carried), _ = jax.lax.scan(climb, (p, tangent * shrink), steps)
    return carried / shrink


def _real(x):
    """Return the real coordinates of an array, flattened."""
    flat = x.reshape(-1)
    return jnp.concatenate([flat.real, flat.imag]) if jnp.iscomplexobj(flat) else flat
