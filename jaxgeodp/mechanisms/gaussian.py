"""The Riemannian Gaussian mechanism (Jiang, Chang, Liu, Ding, Kong & Jiang, NeurIPS 2023) with a certified mu."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp

from jaxgeodp.bounds.gaussian import Space, gaussian_scale
from jaxgeodp.bounds.rounding import of_computed_mean
from jaxgeodp.bounds.sensitivity import mean_sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.compiling import compiled_ahead
from jaxgeodp.manifolds.manifold import real_dtype
from jaxgeodp.mechanisms.mechanism import Calibration, Mechanism
from jaxgeodp.privacy.entropy import public_key, system_key
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.samplers.rejection import first_complete, rejection_sample
from jaxgeodp.statistics.frechet_mean import mean_in_ball

# Largest dimension for which certificates take seconds.
_LARGEST_DIM = 60
# Above, delta at small epsilon is nearer to 1 than certificates can tell.
_LARGEST_MU = 10.0
# Largest distance in units of 1/sqrt|k_min|, as for densities: condition exp(2 * 10) costs 9 of 16 digits.
_LARGEST_REACH = 10.0


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass(frozen=True, eq=False)
class RiemannianGaussian(Mechanism):
    """Density exp(-dist(x, mean)^2/(2 sigma^2)) around the Frechet mean, on the whole manifold: mu-GDP.

    For spaces of constant curvature: spheres, rotations, hyperbolic and Euclidean spaces. sigma is the smallest scale
    whose mu is proven by quadrature with bounds on every cell (docs/mathematics.md, section 11), about 1 % above the
    least possible while it is small against the space. Draws are exact, and how many proposals they take has the same
    law for all data.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        mu: privacy parameter, in (0, 10].

    Raises:
        ValueError: see `Mechanism`; mu is above 10, the curvature is not constant, or the dimension is above 60.

    Example:
        >>> from jaxgeodp import GeodesicBall, RiemannianGaussian, Sphere
        >>> mechanism = RiemannianGaussian(GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.4), mu=1.0)
        >>> round(mechanism.scale(100) / mechanism.sensitivity(100), 2)
        1.01
    """

    mu: float

    def __post_init__(self):
        super().__post_init__()
        if self.mu > _LARGEST_MU:
            raise InputError(f"RiemannianGaussian: mu must be at most {_LARGEST_MU:g}, got {self.mu:g}.")
        if not has_gaussian_certificate(self.ball.manifold):
            raise InputError(
                "RiemannianGaussian: needs a sphere, rotations, hyperbolic or Euclidean space of dimension at most "
                f"{_LARGEST_DIM}, got {self.ball.manifold}; use WrappedGaussian."
            )

    @property
    def guarantee(self) -> GaussianDP:
        """mu-GDP."""
        return GaussianDP(self.mu)

    def calibrate(self, n: int) -> Calibration:
        """See `Mechanism.calibrate`.

        Raises:
            ValueError: mu is too small for double precision (hyperbolic space), or nothing could be proven.
        """
        ball, manifold = self.ball, self.ball.manifold
        sensitivity = of_computed_mean(mean_sensitivity(ball, n, "tight"), ball, n)
        root = math.sqrt(abs(manifold.curvature_bounds[0])) or 1.0
        scale = gaussian_scale(_space(manifold), sensitivity.value * root, self.mu) / root
        reach = max(ball.radius, _bulk(manifold, scale)) * manifold.coordinate_growth
        if not math.isfinite(scale) or reach > _LARGEST_REACH:
            raise InputError(
                f"RiemannianGaussian: with n={n}, mu={self.mu:g}, radius={ball.radius:g} the noise is too large for "
                f"double precision or for a proof on {manifold}: raise mu or n, or lower radius."
            )
        return Calibration(sensitivity, scale, None, "mu certified by quadrature: docs/mathematics.md, Theorem K")

    def log_density(self, x, data) -> jax.Array:
        """See `Mechanism.log_density`."""
        data = self._records(data)
        home, points, _ = self._home(data)
        distance = self.ball.manifold.dist(home._center(points), self.ball.to_home(x))
        return -0.5 * (distance / self.calibrate(data.shape[0]).scale) ** 2

    def simulate(self, key, data, num: int) -> jax.Array:
        """See `Mechanism.simulate`."""
        data = self._records(data)
        return _sample(self, key, data, self.calibrate(data.shape[0]).scale, num).points

    _timing = "the number of proposals has the same law for all data"

    @property
    def _sampler(self):
        return {"name": "rejection from a certified radial envelope", "exactness": "exact up to floating point"}

    def _center(self, points) -> jax.Array:
        return mean_in_ball(self.ball, points)

    def _draws_around(self, key, points, center, scale, support, num, block):
        manifold = self.ball.manifold
        scale = jnp.asarray(scale, real_dtype(center))
        growth = HalfSquare(_bulk(manifold, scale))
        return rejection_sample(key, manifold, None, center, growth, scale**2, num, block=block)

    def _ready_to_draw(self, shape):
        scale = self.calibrate(shape.shape[0]).scale
        program = compiled_ahead(type(self).__name__, _sample, self, public_key(), shape, scale, num=1)
        return lambda data: first_complete(lambda: program(self, system_key(), data, scale))


@dataclasses.dataclass(frozen=True)
class HalfSquare:
    """The growth t^2/2 of a Gaussian's exponent, for `rejection_sample`: its tangents lie below it."""

    bulk: jax.Array

    def __call__(self, t):
        """The growth at distance t."""
        return 0.5 * t**2

    def lines(self, lower, upper):
        """Values at ``lower`` and slopes of tangents, at the middle of narrow intervals and the start of wide ones."""
        touch = jnp.minimum(0.5 * (lower + upper), lower + self.bulk / 48.0)
        return touch * (lower - 0.5 * touch), touch


@functools.partial(jax.jit, static_argnames="num")
def _sample(mechanism, key, data, scale, num):
    home, points, back = mechanism._home(data)
    draws = home._draws_around(key, points, home._center(points), scale, None, num, None)
    return draws.mapped(back)


def _bulk(manifold, scale):
    """A distance beyond which there is hardly any mass."""
    return scale * (math.sqrt(manifold.dim) + 6.0 + manifold.volume_growth * scale)


def has_gaussian_certificate(manifold) -> bool:
    """Whether `RiemannianGaussian` is for this manifold."""
    space = _space(manifold) if manifold.homogeneous else None
    return space is not None and (space.sign == 0 or space.dim <= _LARGEST_DIM)


def _space(manifold) -> Space | None:
    """What the certificate knows of a manifold; None if its geodesics from a point are not known to be those."""
    lowest, highest = manifold.curvature_bounds
    if lowest != highest:
        return None
    sign = (highest > 0) - (highest < 0)
    if sign <= 0:
        return Space(manifold.dim, sign) if math.isinf(manifold.injectivity_radius) else None
    full = manifold.diameter * math.sqrt(highest)
    if manifold.injectivity_radius != manifold.diameter:
        return None
    if math.isclose(full, math.pi, rel_tol=1e-12):
        return Space(manifold.dim, 1)
    return Space(manifold.dim, 1, folded=True) if math.isclose(full, math.pi / 2.0, rel_tol=1e-12) else None
