"""Wrapped normal law: normal tangent vectors carried to the manifold by the exponential map."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from numpyro.distributions import Distribution

from jaxgeodp.checks import InputError
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.samplers.tangent_coordinates import OnManifold, point_axes
from jaxgeodp.samplers.wrapped import wrapped_point


class WrappedNormal(Distribution):
    """The law of exp_mean(v), v normal with mean 0 and a covariance in the frame ``manifold.frame(mean)``.

    Its Frechet mean is ``mean`` on symmetric spaces, while hardly a vector is longer than the injectivity radius.
    `log_prob` is the density with respect to the volume measure of the vectors that are no longer than that: exact
    where it is infinite; elsewhere the rest, which is not counted, is `tail` at most.

    Args:
        manifold: of the points.
        mean: a point, shape ``manifold.shape``; may be traced.
        covariance: (dim, dim), positive definite; may be traced.
        frame: (dim, \\*shape), the orthonormal basis at the mean that the covariance refers to, if another.

    Raises:
        ValueError: a shape does not fit.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxgeodp import SPD
        >>> from jaxgeodp.samplers import WrappedNormal
        >>> law = WrappedNormal(SPD(2), jnp.eye(2), 0.01 * jnp.eye(3))
        >>> law.sample(jax.random.key(0), (5,)).shape
        (5, 2, 2)
    """

    arg_constraints: dict[str, Any] = {}  # noqa: RUF012 - as the base declares it
    pytree_data_fields = ("mean_point", "root", "frame")
    pytree_aux_fields = ("manifold",)

    def __init__(self, manifold: Manifold, mean, covariance, frame=None, *, validate_args=None):
        """Store the law with the Cholesky root of its covariance; refuse shapes that do not fit."""
        self.manifold, self.mean_point = manifold, jnp.asarray(mean)
        covariance = jnp.asarray(covariance, real_dtype(self.mean_point))
        if self.mean_point.shape != manifold.shape or covariance.shape != (manifold.dim, manifold.dim):
            raise InputError(
                f"WrappedNormal: on {manifold} the mean must have shape {manifold.shape} and the covariance "
                f"{(manifold.dim, manifold.dim)}, got {self.mean_point.shape} and {covariance.shape}."
            )
        self.root = jnp.linalg.cholesky(covariance)
        self.frame = manifold.frame(self.mean_point) if frame is None else jnp.asarray(frame)
        super().__init__(batch_shape=(), event_shape=manifold.shape, validate_args=validate_args)

    @property
    def support(self):
        """The manifold, with coordinates about the mean."""
        return OnManifold(self.manifold, self.mean_point)

    @property
    def tail(self) -> jax.Array:
        """Bound the probability of vectors longer than the injectivity radius (Chebyshev)."""
        return jnp.minimum(jnp.sum(self.root**2) / self.manifold.injectivity_radius**2, 1.0)

    def sample(self, key, sample_shape=()):
        """Return independent draws, (\\*sample_shape, \\*manifold.shape); differentiable in the parameters."""
        if key is None:
            raise InputError("WrappedNormal: sample needs a random key.")
        normal = jax.random.normal(key, (math.prod(sample_shape), self.manifold.dim), self.root.dtype)
        points = jax.vmap(self._point)(normal)
        return points.reshape(*sample_shape, *self.manifold.shape)

    def log_prob(self, value, intermediates=None):
        """Return the log density with respect to the volume measure; there are no ``intermediates``."""
        return jnp.vectorize(self._log_density, signature=f"({point_axes(self.manifold)})->()")(value)

    def _point(self, z):
        return wrapped_point(self.manifold, self.mean_point, self.frame, self.root, z)

    def _log_density(self, x):
        manifold = self.manifold
        vector = manifold.log(self.mean_point, x)
        z = jax.scipy.linalg.solve_triangular(
            self.root, manifold.coordinates(self.mean_point, vector, self.frame), lower=True
        )
        constant = 0.5 * manifold.dim * math.log(2.0 * math.pi) + jnp.sum(jnp.log(jnp.diagonal(self.root)))
        return -0.5 * jnp.sum(z**2) - constant - manifold.log_det_exp(self.mean_point, vector)
