"""A normal vector of a tangent space, carried to the manifold by its exponential map."""

import jax

from jaxgeodp.manifolds.manifold import Manifold


def wrapped_point(manifold: Manifold, mean, frame, root, z) -> jax.Array:
    """exp_mean of the vector with the coordinates ``root z`` in a frame.

    Args:
        manifold: of the point.
        mean: a point.
        frame: orthonormal basis there, (dim, \\*shape).
        root: B of the covariance B B', (dim, dim).
        z: standard normal, (dim,).
    """
    return manifold.project(manifold.exp(mean, manifold.combine(root @ z, frame)))
