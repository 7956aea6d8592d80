"""Riemannian manifolds: metric facts, exp, log, transport, volume, and derivatives by autodiff."""

from jaxgeodp.manifolds.derivatives import riemannian_gradient, riemannian_hessian
from jaxgeodp.manifolds.euclidean import Euclidean
from jaxgeodp.manifolds.grassmann import Grassmann
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.manifolds.planar_shapes import PlanarShapes
from jaxgeodp.manifolds.spd import SPD
from jaxgeodp.manifolds.sphere import Sphere

__all__ = [
    "SPD",
    "Euclidean",
    "Grassmann",
    "Manifold",
    "PlanarShapes",
    "Sphere",
    "riemannian_gradient",
    "riemannian_hessian",
]
