"""Defaults of `Manifold`, by automatic differentiation or by linear algebra in the ambient space."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError


def frame(manifold, point) -> jax.Array:
    """Return an orthonormal tangent basis, from the Gram matrix of the projected ambient directions."""
    point = jax.lax.stop_gradient(point)
    ambient = jnp.eye(point.size, dtype=point.dtype).reshape(-1, *manifold.shape)
    if manifold.dtype_kind == "complex":
        ambient = jnp.concatenate([ambient, 1j * ambient])
    gram_dtype = jnp.finfo(point.dtype).dtype
    weights = jnp.asarray(1.0 + np.sqrt(2.0) * np.arange(1, len(ambient) + 1) % 1.0, gram_dtype)
    vectors = jax.vmap(lambda w, v: w.astype(v.dtype) * manifold.to_tangent(point, v))(weights, ambient)
    gram = jax.vmap(lambda u: jax.vmap(lambda v: manifold.inner(point, u, v))(vectors))(vectors)
    values, coordinates = jnp.linalg.eigh(gram)
    largest = coordinates[:, -manifold.dim :] / jnp.sqrt(values[-manifold.dim :])
    largest = largest * jnp.where(weights @ largest < 0.0, -1.0, 1.0)
    return jnp.tensordot(largest.T.astype(point.dtype), vectors, axes=1)


def geodesic(manifold, p, v, t) -> jax.Array:
    """Return ``exp(p, t v)`` in the precision of ``v``, whatever the precision of ``t``."""
    if jnp.ndim(t) != 0:
        raise InputError(f"{manifold}.geodesic: t must be one number, got shape {jnp.shape(t)}; use jax.vmap for many.")
    return manifold.exp(p, jnp.asarray(t).astype(jnp.finfo(v.dtype).dtype) * v)


def riemannian_from_ambient(manifold, point, gradient) -> jax.Array:
    """Return the Riemannian gradient for an ambient gradient of `jax.grad`, from its slopes along ``frame(point)``."""
    frame = manifold.frame(point)
    return manifold.combine(ambient_slopes(gradient, frame), frame)


def ambient_slopes(gradient, vectors) -> jax.Array:
    """Return the derivatives (m,) along ``vectors`` (m, \\*shape), given the gradient by `jax.grad`.

    JAX's gradient in a complex array is the conjugate of the direction of steepest ascent.
    """
    return jax.vmap(lambda v: jnp.real(jnp.sum(gradient * v)))(vectors)


def curvature_tensor(manifold, p, u, v, w) -> jax.Array:
    """Return R(u, v)w: ``D exp(t v)[u]``, carried back, is ``u - (t^2/6) R(u, v)v`` to third order."""

    def bent(u, v):
        """Return ``R(u, v)v``."""

        def carried(t):
            end, field = jax.jvp(lambda x: manifold.exp(p, x), (t * v,), (u,))
            # Of a quotient, what is not tangent turns the representative alone.
            return manifold.transport(end, p, manifold.to_tangent(end, field))

        zero, one = jnp.zeros((), jnp.finfo(v.dtype).dtype), jnp.ones((), jnp.finfo(v.dtype).dtype)
        return -3.0 * jax.jvp(lambda t: jax.jvp(carried, (t,), (one,))[1], (zero,), (one,))[1]

    firsts, seconds = jnp.stack([u, u, u, v, v, v]), jnp.stack([v + w, v, w, u + w, u, w])
    both, own, other, both_turned, own_turned, other_turned = jax.vmap(bent)(firsts, seconds)
    # Polarised, and by Bianchi's identity.
    return ((both - own - other) - (both_turned - own_turned - other_turned)) / 3.0


def mean_hessian(manifold, base, points, weights) -> jax.Array:
    """Differentiate the mean's gradient in coordinates; where the gradient is 0, this is the covariant Hessian."""
    frame = manifold.frame(base)

    def slope(z):
        total, _ = manifold.log_moments(manifold.exp(base, manifold.combine(z, frame)), points, weights)
        return -manifold.coordinates(base, manifold.to_tangent(base, total), frame)

    hessian: jax.Array = jax.jacfwd(slope)(jnp.zeros(manifold.dim, weights.dtype))
    return 0.5 * (hessian + hessian.T)


def log_det_exp(manifold, point, tangent) -> jax.Array:
    """Return ``log|det d exp_point|`` at ``tangent``, from the Jacobian in orthonormal frames."""
    frame = manifold.frame(point)
    endpoint = manifold.exp(point, tangent)
    end_frame = manifold.frame(endpoint)
    columns = jax.jacfwd(lambda z: manifold.exp(point, manifold.combine(z, frame)))(
        manifold.coordinates(point, tangent, frame)
    )
    jacobian = jax.vmap(lambda column: manifold.coordinates(endpoint, column, end_frame), in_axes=-1)(columns)
    return jnp.linalg.slogdet(jacobian)[1]


def heaviest(points, weights):
    """Return the point of largest weight, as a sum: indexing would gather sharded points."""
    chosen = jnp.arange(points.shape[0]) == jnp.argmax(weights)
    return jnp.tensordot(chosen.astype(points.dtype), points, axes=1)
