"""Manifolds, points, tangent vectors and planted mutants shared by the tests."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgeodp import (
    SPD,
    Axes,
    Circle,
    Correlations,
    Euclidean,
    GeodesicBall,
    Grassmann,
    Hyperbolic,
    PlanarShapes,
    Product,
    RigidMotions,
    Rotations,
    Shapes3D,
    Sphere,
    Torus,
)


def exhaustive(*values):
    """Parameters that repeat a test elsewhere: only with ``pytest --exhaustive``."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.exhaustive)
        for value in values
    ]


ONE_OF_EACH_KIND = [
    Euclidean(4),
    Sphere(2),
    SPD(2),
    SPD(3),
    PlanarShapes(4),
    Hyperbolic(2),
    Rotations(),
    Grassmann(5, 2),
    Product(Sphere(2), SPD(2)),
]
MORE = [
    Euclidean(1),
    Sphere(1),
    Sphere(5, 0.25),
    Sphere(3, 4.0),
    SPD(1),
    SPD(5),
    PlanarShapes(3),
    PlanarShapes(12),
    Hyperbolic(4, -0.5),
    Product(PlanarShapes(4), Euclidean(2)),
    Grassmann(3, 1),
    Circle(),
    Correlations(2),
    Correlations(4),
    RigidMotions(2.0),
    Torus(3),
    Axes(1),
    Axes(2),
    Axes(9),
    Shapes3D(5, 0.4),
    Shapes3D(4, 0.3),
    Shapes3D(12, 0.5),
]
MANIFOLDS = [*ONE_OF_EACH_KIND, *exhaustive(*MORE)]
DTYPES = ["float32", "float64"]


def name(value):
    return repr(value) if not isinstance(value, str) else value


def cast(manifold, x, dtype="float64"):
    if manifold.dtype_kind == "complex":
        dtype = {"float32": "complex64", "float64": "complex128"}[dtype]
    return jnp.asarray(np.asarray(x), dtype)


def a_point(manifold, seed, dtype="float64"):
    return cast(manifold, _random_point(manifold, seed), dtype)


def a_tangent(manifold, point, seed, length):
    """A random tangent vector of the given length."""
    return _random_tangent(manifold, jnp.asarray(point), 1000 + seed, length)


@functools.partial(jax.jit, static_argnums=0)
def _random_point(manifold, seed):
    return manifold.random_point(jax.random.key(seed))


@functools.partial(jax.jit, static_argnums=0)
def _random_tangent(manifold, point, seed, length):
    tangent = manifold.random_tangent(jax.random.key(seed), point)
    return (tangent / manifold.norm(point, tangent) * length).astype(point.dtype)


def cap(manifold, centre, radius, n, seed, dtype="float64"):
    """n points within ``radius`` of ``centre``, asymmetric (not centred)."""
    return cast(manifold, _cap(manifold, n, jnp.asarray(centre), radius, seed), dtype)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _cap(manifold, n, centre, radius, seed):
    bias = a_tangent(manifold, centre, seed, 0.3 * radius)

    def one(key):
        tangent = manifold.random_tangent(key, centre)
        length = radius * 0.7 * jax.random.uniform(jax.random.fold_in(key, 1)) ** 0.5
        return manifold.exp(centre, bias + tangent / manifold.norm(centre, tangent) * length)

    return jax.vmap(one)(jax.random.split(jax.random.key(seed), n))


def reach(manifold):
    """A tangent length well inside the injectivity radius."""
    return min(0.6 * manifold.injectivity_radius, 1.5)


def only_at_the_origin(error):
    """In place of `GeodesicBall`: a ball elsewhere cannot be made."""

    class OnlyAtTheOrigin:
        tree_unflatten = GeodesicBall.tree_unflatten

        def __new__(cls, manifold, center, radius):
            if not np.array_equal(center, manifold.origin):
                raise error("planted")
            return GeodesicBall(manifold, center, radius)

    return OnlyAtTheOrigin
