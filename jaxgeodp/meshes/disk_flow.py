"""Diffeomorphisms of the disk that keep its centre: flows of polynomial vector fields.

    v = sum_k c_k b_k,   d/ds g_s = v(g_s),   d/ds log J = div v (g_s),   g = g_1, by six Runge-Kutta steps.

The b_k span (1 - |x|^2) e_i m(x) and (-y, x) m(x) with monomials m to degree 5, are tangent to the circle, vanish at
the centre, and are orthonormal on the disk: the circle maps to itself and the centre to the centre.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

_DEGREE = 5
_STEPS = 6
# Of a field: (1 - |x|^2) raises the degree by two.
_POWERS = _DEGREE + 3
# The classical Runge-Kutta method: reach, weight, and whether the stage ends a step.
_STAGES = np.array([[0.0, 0.5, 0.5, 1.0], [1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0], [0.0, 0.0, 0.0, 1.0]])
_STAGES[:2] /= _STEPS


@jax.jit
def flow(coefficients, points):
    """Return images of points (..., 2) under the flow with coefficients (size,), and log J_g there, (...)."""
    points, coefficients = jnp.asarray(points), jnp.asarray(coefficients)
    basis, divergences = (jnp.asarray(x, coefficients.dtype) for x in _polynomials())
    field = jnp.tensordot(coefficients, basis, 1)
    divergence = jnp.tensordot(coefficients, divergences, 1)
    together = jnp.concatenate([field, divergence[None]]).transpose(1, 0, 2).reshape(_POWERS, -1)

    def velocity(state):
        x, y, _ = state
        rows = (_powers(x) @ together).reshape(-1, 3, _POWERS)
        change = jnp.einsum("nap,np->an", rows, _powers(y))
        return change[0], change[1], change[2]

    def stage(carry, numbers):
        state, rate, total = carry
        reach, weight, last = numbers
        rate = velocity(tuple(value + reach * r for value, r in zip(state, rate, strict=True)))
        total = tuple(t + weight * r for t, r in zip(total, rate, strict=True))
        # After the fourth stage the step is made.
        state = tuple(value + last * t for value, t in zip(state, total, strict=True))
        return (state, rate, tuple((1.0 - last) * t for t in total)), None

    flat = points.reshape(-1, 2)
    zero = jnp.zeros_like(flat[:, 0])
    start = (flat[:, 0], flat[:, 1], zero), (zero, zero, zero), (zero, zero, zero)
    # One body for all stages, which compiles four times as fast.
    numbers = jnp.asarray(np.tile(_STAGES, (1, _STEPS)), flat.dtype)
    ((x, y, log_jacobian), _, _), _ = jax.lax.scan(stage, start, tuple(numbers))
    return jnp.stack([x, y], axis=-1).reshape(points.shape), log_jacobian.reshape(points.shape[:-1])


def flow_size() -> int:
    """Return the number of coefficients of a flow."""
    return len(_polynomials()[0])


def _powers(x):
    columns = [jnp.ones_like(x)]
    for _ in range(_POWERS - 1):
        columns.append(columns[-1] * x)
    return jnp.stack(columns, axis=-1)


@functools.lru_cache(maxsize=1)
def _polynomials():
    """Return orthonormal fields (K, 2, powers, powers), by powers of x and y, and their divergences."""
    span = []
    for i in range(_DEGREE + 1):
        for j in range(_DEGREE + 1 - i):
            turning = np.zeros((2, _POWERS, _POWERS))
            turning[0, i, j + 1], turning[1, i + 1, j] = -1.0, 1.0
            span.append(turning)
            # Without the constants, which move the centre.
            for axis in range(2) if i + j > 0 else ():
                fading = np.zeros((2, _POWERS, _POWERS))
                fading[axis, i, j], fading[axis, i + 2, j], fading[axis, i, j + 2] = 1.0, -1.0, -1.0
                span.append(fading)
    span = np.stack(span).reshape(len(span), -1)
    power = np.arange(_POWERS)
    moments = np.array(
        [[[[_moment(a + c, b + d) for d in power] for c in power] for b in power] for a in power]
    ).reshape(_POWERS**2, _POWERS**2)
    gram = span.reshape(-1, _POWERS**2) @ moments @ span.reshape(-1, _POWERS**2).T
    count = len(span)
    gram = np.einsum("iaja->ij", gram.reshape(count, 2, count, 2))
    values, vectors = np.linalg.eigh(gram)
    # The two families share (1 - |x|^2) (-y, x) m.
    kept = values > 1e-10 * values[-1]
    basis = ((vectors[:, kept] / np.sqrt(values[kept])).T @ span).reshape(-1, 2, _POWERS, _POWERS)
    divergence = np.zeros((len(basis), _POWERS, _POWERS))
    divergence[:, :-1, :] += basis[:, 0, 1:, :] * power[1:, None]
    divergence[:, :, :-1] += basis[:, 1, :, 1:] * power[None, 1:]
    return basis, divergence


def _moment(i, j):
    """Return int x^i y^j over the unit disk."""
    if i % 2 or j % 2:
        return 0.0
    return 2.0 * math.gamma((i + 1) / 2) * math.gamma((j + 1) / 2) / math.gamma((i + j + 2) / 2) / (i + j + 2)
