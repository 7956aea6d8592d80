"""Riemannian manifolds: metric facts, exp, log, transport, volume, and derivatives by autodiff."""

from jaxgeodp.manifolds.angles import Circle, Torus, UnrolledTorus
from jaxgeodp.manifolds.axes import Axes
from jaxgeodp.manifolds.correlations import Correlations
from jaxgeodp.manifolds.derivatives import riemannian_gradient, riemannian_hessian
from jaxgeodp.manifolds.euclidean import Euclidean
from jaxgeodp.manifolds.flat_spd import LogCholesky, LogEuclidean
from jaxgeodp.manifolds.grassmann import Grassmann
from jaxgeodp.manifolds.hyperbolic import Hyperbolic
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.manifolds.motions import RigidMotions
from jaxgeodp.manifolds.planar_shapes import PlanarShapes
from jaxgeodp.manifolds.product import Product
from jaxgeodp.manifolds.rotations import Rotations
from jaxgeodp.manifolds.shapes_3d import Shapes3D
from jaxgeodp.manifolds.spd import SPD
from jaxgeodp.manifolds.sphere import Sphere

__all__ = [
    "SPD",
    "Axes",
    "Circle",
    "Correlations",
    "Euclidean",
    "Grassmann",
    "Hyperbolic",
    "LogCholesky",
    "LogEuclidean",
    "Manifold",
    "PlanarShapes",
    "Product",
    "RigidMotions",
    "Rotations",
    "Shapes3D",
    "Sphere",
    "Torus",
    "UnrolledTorus",
    "riemannian_gradient",
    "riemannian_hessian",
]
