"""Wrapped normal point: a normal tangent vector carried to the manifold by the exponential map."""

import jax

from jaxgeodp.manifolds.manifold import Manifold


def wrapped_point(manifold: Manifold, mean, frame, root, z) -> jax.Array:
    """Return exp_mean of the vector with coordinates ``root z`` in a frame.

    Args:
        manifold: of the point.
        mean: a point.
        frame: orthonormal basis there, (dim, \\*shape).
        root: B of the covariance B B', (dim, dim).
        z: standard normal, (dim,).
    """
    return manifold.project(manifold.exp(mean, manifold.combine(root @ z, frame)))
