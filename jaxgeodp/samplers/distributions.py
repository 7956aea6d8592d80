"""NumPyro distributions of the mechanisms' laws, for models that include a private release."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from numpyro.distributions import Distribution, constraints

from jaxgeodp.checks import InputError
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.samplers.rejection import rejection_sample
from jaxgeodp.samplers.tangent_coordinates import OnManifold, point_axes

_NODES = 400


class ManifoldLaplace(Distribution):
    """Density exp(-dist(x, center)/scale) with respect to the volume measure.

    `log_prob` is normalised on spaces of constant curvature and on planar shapes (`normalized` is True); elsewhere a
    term is missing that depends on the scale alone, so that the centre can be inferred, but not the scale. Draws are
    exact.

    Args:
        manifold: a homogeneous one, where the density exists at this scale (below 1/volume_growth).
        center: a point, shape ``manifold.shape``; may be traced.
        scale: above 0; may be traced.

    Raises:
        ValueError: the manifold is not homogeneous, or a known scale is too large.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxgeodp import Sphere
        >>> from jaxgeodp.samplers import ManifoldLaplace
        >>> law = ManifoldLaplace(Sphere(2), jnp.array([0.0, 0.0, 1.0]), 0.1)
        >>> law.sample(jax.random.key(0), (5,)).shape
        (5, 3)
    """

    arg_constraints: dict[str, Any] = {"scale": constraints.positive}  # noqa: RUF012 - as the base declares it
    pytree_data_fields = ("center", "scale")
    pytree_aux_fields = ("manifold",)

    def __init__(self, manifold: Manifold, center, scale, *, validate_args=None):
        """Store the law; refuse manifolds that are not homogeneous, and scales without a distribution."""
        if not manifold.homogeneous:
            raise InputError(f"ManifoldLaplace: needs a homogeneous manifold, got {manifold}.")
        self.manifold, self.center = manifold, jnp.asarray(center)
        self.scale = jnp.asarray(scale, real_dtype(self.center))
        known = not isinstance(self.scale, Tracer)
        if known and not 0 < float(self.scale) * manifold.volume_growth < 1 and manifold.volume_growth > 0:
            raise InputError(
                f"ManifoldLaplace: on {manifold} the scale must be below {1.0 / manifold.volume_growth:.6g} for the "
                f"distribution to exist, got {float(self.scale):g}."
            )
        super().__init__(batch_shape=(), event_shape=manifold.shape, validate_args=validate_args)

    @property
    def support(self):
        """The manifold, with coordinates about the centre."""
        return OnManifold(self.manifold, self.center)

    @property
    def normalized(self) -> bool:
        """True if `log_prob` integrates to 1."""
        manifold = self.manifold
        lowest, highest = manifold.curvature_bounds
        # A cut locus that is no sphere, such as that of a torus, has no integral along one direction.
        round_ = manifold.injectivity_radius == manifold.diameter or math.isinf(manifold.injectivity_radius)
        return (lowest == highest and round_) or manifold.complex_space_form

    def sample(self, key, sample_shape=()):
        """Return independent exact draws, (\\*sample_shape, \\*manifold.shape)."""
        if key is None:
            raise InputError("ManifoldLaplace: sample needs a random key.")
        num = math.prod(sample_shape)
        draws = rejection_sample(key, self.manifold, None, self.center, 1.0, self.scale, num)
        return draws.points.reshape(*sample_shape, *self.manifold.shape)

    def log_prob(self, value, intermediates=None):
        """Return the log density with respect to the volume measure; there are no ``intermediates``."""
        distance = jnp.vectorize(
            lambda x: self.manifold.dist(self.center, x), signature=f"({point_axes(self.manifold)})->()"
        )(value)
        return -distance / self.scale - (self._log_normalizer() if self.normalized else 0.0)

    def _log_normalizer(self):
        """Return log of area(S^{d-1}) int exp(-t/scale) t^{d-1} |det d exp(t u)| dt, by Gauss-Legendre panels."""
        manifold, dim = self.manifold, self.manifold.dim
        reach = jnp.asarray(manifold.diameter, self.scale.dtype)
        rate = 1.0 / self.scale - manifold.volume_growth
        end = jnp.minimum(reach, (dim + 8.0 * math.sqrt(dim) + 40.0) / rate)
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        # Near 0, where the volume bends, nodes are dense: near the largest scale the end is far.
        share = 0.5 * (jnp.asarray(nodes, self.scale.dtype) + 1.0)
        t = end * share**2
        base = jnp.asarray(manifold.origin, self.center.dtype)
        tangent = manifold.random_tangent(jax.random.key(0), base)
        unit = tangent / manifold.norm(base, tangent)
        volume = jax.vmap(lambda s: manifold.log_det_exp(base, s * unit))(t)
        logs = -t / self.scale + (dim - 1) * jnp.log(t) + volume + jnp.log(end * share * jnp.asarray(weights))
        area = math.log(2.0) + 0.5 * dim * math.log(math.pi) - math.lgamma(0.5 * dim)
        return jax.scipy.special.logsumexp(logs) + area


class KNG(Distribution):
    """Law of a `KNGMechanism` (or any mechanism) for given data: exact draws, `log_prob` up to a constant.

    Args:
        mechanism: the public configuration.
        data: (n, \\*shape), private; may be traced.

    What it draws is for research: its randomness is JAX's, and nothing is charged.
    """

    arg_constraints: dict[str, Any] = {}  # noqa: RUF012 - as the base declares it
    pytree_data_fields = ("mechanism", "data")

    def __init__(self, mechanism, data, *, validate_args=None):
        """Store the mechanism and the private data."""
        self.mechanism, self.data = mechanism, jnp.asarray(data)
        super().__init__(batch_shape=(), event_shape=mechanism.ball.manifold.shape, validate_args=validate_args)

    @property
    def support(self):
        """The manifold, with coordinates about the centre of the ball."""
        ball = self.mechanism.ball
        return OnManifold(ball.manifold, jnp.asarray(ball.center))

    def sample(self, key, sample_shape=()):
        """Return independent exact draws, (\\*sample_shape, \\*shape)."""
        draws = self.mechanism.simulate(key, self.data, math.prod(sample_shape))
        return draws.reshape(*sample_shape, *self.event_shape)

    def log_prob(self, value, intermediates=None):
        """Return the log density up to a constant; minus infinity outside the support. No intermediates."""
        density = jnp.vectorize(
            lambda x: self.mechanism.log_density(x, self.data),
            signature=f"({point_axes(self.mechanism.ball.manifold)})->()",
        )
        return density(value)
