"""Logarithm and parallel transport of a manifold that knows only its exponential map.

- ``log``: Newton's method for exp_p(v) = q, damped by halving. Its derivatives are those of the implicit
  function: at the solution, j steps with a constant Jacobian are right to order j.
- ``transport``: the pole ladder (Lorenzi & Pennec 2014). With a rung of the geodesic from x to y, m half way,
  v is carried to -log_y(exp_m(-log_m(exp_x(v)))): the reflection of a short geodesic at m, and at y. It is
  exact on symmetric spaces; else the error falls with the square of the number of rungs, and the difference of
  two numbers of rungs removes that term (Richardson).
"""

import jax
import jax.numpy as jnp

_NEWTON_STEPS = 60
_HALVINGS = 8
_EXACT_DERIVATIVES = 3
_RUNGS = 8


def log(manifold, p, q):
    """The tangent vector v at p with exp_p(v) = q; NaN where no such vector was found."""
    frame = manifold.frame(p)

    def tangent(z, base):
        return manifold.to_tangent(base, manifold.combine(z, frame))

    def residual(z, base, target):
        return _real(manifold.exp(base, tangent(z, base)) - target)

    fixed_p, fixed_q = jax.lax.stop_gradient((p, q))
    jacobian = jax.jacfwd(residual)
    sizes = 0.5 ** jnp.arange(_HALVINGS + 1, dtype=_real(p).dtype)

    def newton(z):
        slope, value = jacobian(z, fixed_p, fixed_q), residual(z, fixed_p, fixed_q)
        return jnp.linalg.solve(slope.T @ slope, slope.T @ value)

    def unfinished(state):
        _, length, previous, count = state
        return (length > 0) & (length < previous) & (count < _NEWTON_STEPS)

    def step(state):
        z, length, _, count = state
        direction = newton(z)
        trials = z - sizes[:, None] * direction
        lengths = jax.vmap(lambda trial: jnp.sum(residual(trial, fixed_p, fixed_q) ** 2))(trials)
        lengths = jnp.where(jnp.isnan(lengths), jnp.inf, lengths)
        best = jnp.argmin(lengths)
        better = lengths[best] < length
        return jnp.where(better, trials[best], z), jnp.minimum(lengths[best], length), length, count + 1

    start = manifold.coordinates(fixed_p, manifold.to_tangent(fixed_p, fixed_q - fixed_p), frame)
    length = jnp.sum(residual(start, fixed_p, fixed_q) ** 2)
    z, length, _, _ = jax.lax.while_loop(unfinished, step, (start, length, jnp.inf * jnp.ones_like(length), 0))
    z = jax.lax.stop_gradient(z)
    slope = jax.lax.stop_gradient(jacobian(z, fixed_p, fixed_q))
    gram = slope.T @ slope
    for _ in range(_EXACT_DERIVATIVES):
        z = z - jnp.linalg.solve(gram, slope.T @ residual(z, p, q))
    scale = 1.0 + jnp.max(jnp.abs(_real(fixed_q)))
    found = length <= (1e4 * jnp.finfo(length.dtype).eps * scale) ** 2
    return jnp.where(found, tangent(z, p), jnp.nan)


def transport(manifold, p, q, tangent):
    """The tangent vector at q that is parallel to ``tangent`` along the geodesic from p."""
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
    """The real coordinates of an array, flat."""
    flat = x.reshape(-1)
    return jnp.concatenate([flat.real, flat.imag]) if jnp.iscomplexobj(flat) else flat
