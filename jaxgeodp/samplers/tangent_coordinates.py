"""Tangent-space coordinates in which NumPyro's gradient-based samplers move on a manifold."""

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import constraints
from numpyro.distributions.transforms import Transform, biject_to

from jaxgeodp.manifolds.manifold import Manifold, real_dtype


class OnManifold(constraints._GreaterThan):
    """Constraint: points of a manifold, to within 1e-6.

    NumPyro asks of half-lines and intervals alone whether their bounds depend on other sites, and only then maps draws
    with the bounds of their own trace. A base may be another site's value, too, and it is asked in those words: without
    them draws came back about the base of the first trace.

    Args:
        manifold: of the points.
        base: a point, about which NUTS and HMC have their coordinates (`TangentCoordinates`); the origin by default.
    """

    def __init__(self, manifold: Manifold, base=None):
        """Store the manifold and the base; by default the base is the origin."""
        self.manifold = manifold
        self.base = jnp.asarray(manifold.origin if base is None else base)
        self.event_dim = len(manifold.shape)

    def __call__(self, x):
        """Return whether points belong."""
        belongs = jnp.vectorize(
            lambda point: self.manifold.belongs(point, 1e-6), signature=f"({point_axes(self.manifold)})->()"
        )
        return belongs(x)

    def __repr__(self):
        return f"OnManifold({self.manifold})"

    def eq(self, other, static=False):
        """Return whether another constraint has the same manifold and base."""
        if not isinstance(other, OnManifold) or self.manifold != other.manifold:
            return False
        return np.array_equal(self.base, other.base) if static else jnp.array_equal(self.base, other.base)

    @property
    def lower_bound(self):
        """The base, as NumPyro reads it; not a number, so it may depend on other sites."""
        return self.base

    def feasible_like(self, prototype):
        """Return the base."""
        return jnp.broadcast_to(self.base, jnp.shape(prototype))

    def tree_flatten(self):
        """Return the base as the only leaf, and the rest as static data."""
        return (self.base,), (("base",), {"manifold": self.manifold, "event_dim": self.event_dim})


class TangentCoordinates(Transform):
    """Transform ``x = exp_base(sum_i z_i e_i)`` of z in R^dim, with e_i an orthonormal frame at the base.

    A bijection where the injectivity radius is infinite; elsewhere of the vectors shorter than it, beyond which the
    density in z is 0 (`Manifold.log_det_exp` is minus infinity): points near the cut locus of the base, as the antipode
    on a sphere, cannot be reached from its other side. Choose a base near which the mass lies.
    NumPyro takes it for every site whose support is `OnManifold`.

    Args:
        manifold: of the points.
        base: a point; may be traced.
    """

    def __init__(self, manifold: Manifold, base):
        """Store the manifold and the base of the coordinates."""
        self.manifold, self.base = manifold, base

    @property
    def domain(self):
        """Real vectors."""
        return constraints.real_vector

    @property
    def codomain(self):
        """Points of the manifold."""
        return OnManifold(self.manifold, self.base)

    def __call__(self, x):
        """Return points (\\*batch, \\*manifold.shape) of coordinates (\\*batch, dim)."""
        manifold, frame = self.manifold, self.manifold.frame(self.base)
        points = jnp.vectorize(
            lambda z: manifold.project(manifold.exp(self.base, manifold.combine(z, frame))),
            signature=f"(z)->({point_axes(manifold)})",
        )
        return points(x)

    def _inverse(self, y):
        manifold, frame = self.manifold, self.manifold.frame(self.base)
        coordinates = jnp.vectorize(
            lambda point: manifold.coordinates(self.base, manifold.log(self.base, point), frame),
            signature=f"({point_axes(manifold)})->(z)",
        )
        return coordinates(y)

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        """Return ``log|det|`` with respect to the manifold's volume measure; ``intermediates`` is ignored."""
        manifold, frame = self.manifold, self.manifold.frame(self.base)
        volume = jnp.vectorize(
            lambda z: manifold.log_det_exp(self.base, manifold.combine(z.astype(real_dtype(self.base)), frame)),
            signature="(z)->()",
        )
        return volume(x)

    def forward_shape(self, shape):
        """Return the shape of points for the shape of coordinates."""
        return (*shape[:-1], *self.manifold.shape)

    def inverse_shape(self, shape):
        """Return the shape of coordinates for the shape of points."""
        return (*shape[: len(shape) - len(self.manifold.shape)], self.manifold.dim)

    def tree_flatten(self):
        """Return the base as the only leaf, and the manifold as static data."""
        return (self.base,), (("base",), {"manifold": self.manifold})


def point_axes(manifold: Manifold) -> str:
    """Return letters for the axes of a point, for `jnp.vectorize`."""
    return ",".join("abc"[: len(manifold.shape)])


@biject_to.register(OnManifold)
def _tangent_coordinates(constraint: OnManifold) -> jax.Array | Transform:
    return TangentCoordinates(constraint.manifold, constraint.base)
