"""The Riemannian Gaussian mechanism (Jiang, Chang, Liu, Ding, Kong & Jiang, NeurIPS 2023) with a proven mu."""

import dataclasses
import math
from typing import final

import jax
import jax.numpy as jnp
from typing_extensions import override

from jaxgeodp.bounds.gaussian import Space, gaussian_scale
from jaxgeodp.bounds.gibbs import hadamard_scale
from jaxgeodp.bounds.rounding import of_computed_mean
from jaxgeodp.bounds.sensitivity import Sensitivity, mean_sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.records import record_count
from jaxgeodp.manifolds.manifold import real_dtype
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.releases.density import SAMPLER, DensityLaw, Target
from jaxgeodp.releases.law import Terms
from jaxgeodp.statistics.statistic import FrechetMean, Statistic

# Largest dimension for which certificates take seconds.
_LARGEST_DIM = 60
# Above, delta at small epsilon is nearer to 1 than certificates can tell.
_LARGEST_MU = 10.0
# Largest distance in units of 1/sqrt|k_min|, as for densities: condition exp(2 * 10) costs 9 of 16 digits.
_LARGEST_REACH = 10.0


@final
@dataclasses.dataclass(frozen=True, eq=False)
class RiemannianGaussian(BallMechanism):
    """Density exp(-dist(x, mean)^2/(2 sigma^2)) around the Frechet mean, on the whole manifold: mu-GDP.

    On spaces of constant curvature (spheres, rotations, hyperbolic and Euclidean spaces) sigma is the smallest scale
    whose mu is proven by quadrature with bounds on every cell (docs/mathematics.md, section 11), about 1 % above the
    least possible while it is small against the space. Where no curvature is positive (SPD matrices, hyperbolic spaces
    of any dimension, their products with each other and with Euclidean spaces) a formula is proven, too (Theorem P);
    the smaller sigma is taken. Draws are exact; how many proposals they take has the same law for all data on a
    homogeneous manifold.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        mu: privacy parameter, in (0, 10].

    Raises:
        ValueError: see `BallMechanism`; mu is above 10, or the curvature is positive somewhere and not constant, or the
            dimension of such a space is above 60.

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
                f"RiemannianGaussian: needs a sphere or rotations of dimension at most {_LARGEST_DIM}, or a space "
                f"without positive curvature, got {self.ball.manifold}; use GibbsMechanism."
            )

    @property
    def guarantee(self) -> GaussianDP:
        """Return mu-GDP."""
        return GaussianDP(self.mu)

    def law(self, n, shape=()):
        """Return the law for n records. Refused if mu is too small for double precision (in H^d) or for a proof."""
        n, ball, manifold = record_count(n), self.ball, self.ball.manifold
        sensitivity = of_computed_mean(mean_sensitivity(ball, n, "tight"), ball, n)
        scale, theorem = _least_scale(manifold, sensitivity.value, self.mu)
        return gaussian_law(ball, self.guarantee, n, sensitivity, scale, theorem)


def gaussian_law(
    ball: GeodesicBall, promise: GaussianDP, n: int, sensitivity: Sensitivity, scale: float, theorem: str
) -> DensityLaw:
    """Return N(location, scale^2), where the location has this sensitivity, and the theorem gives the promise.

    Raises:
        ValueError: the scale is not finite, or so large that double precision cannot hold the draws.
    """
    manifold = ball.manifold
    reach = max(ball.radius, _bulk(manifold, scale)) * manifold.coordinate_growth
    if not math.isfinite(scale) or reach > _LARGEST_REACH:
        raise InputError(
            f"RiemannianGaussian: with n={n}, mu={promise.mu:g}, radius={ball.radius:g} the noise is too large for "
            f"double precision or for a proof on {manifold}: raise mu or n, or lower radius."
        )
    terms = Terms(
        mechanism="RiemannianGaussian",
        statistic="FrechetMean",
        n=n,
        strength=promise.mu,
        guarantee=promise,
        sensitivity=sensitivity.value,
        formula=sensitivity.formula,
        theorem=theorem,
        sampler=SAMPLER,
        timing="the number of proposals has the same law for all data",
    )
    return DensityLaw(HalfSquaredDistance(), ball, scale, None, terms, n)


@dataclasses.dataclass(frozen=True)
class HalfSquaredDistance(Target):
    """Half the squared distance from the Frechet mean."""

    statistic: Statistic = dataclasses.field(default_factory=FrechetMean)
    radial = True
    proposals = 8

    @override
    def at_home(self, ball):
        return HalfSquaredDistance(self.statistic.at_home(ball))

    def center(self, ball, points):
        """Return the mean."""
        return self.statistic.center(ball, points)

    @override
    def potential(self, ball, x, center, points):
        return 0.5 * ball.manifold.squared_dist(center, x)

    @override
    def growth(self, ball, center, points, scale, support):
        return HalfSquare(_bulk(ball.manifold, jnp.asarray(scale, real_dtype(center))))

    def public_bounds(self, ball, support, temperature):
        """Return None: the number of proposals has the same law for all data."""
        return None

    def temperature(self, scale):
        """Return the variance."""
        return scale**2

    def check(self, law):
        """Accept all laws: `RiemannianGaussian.law` has refused others."""


@dataclasses.dataclass(frozen=True)
class HalfSquare:
    """The growth t^2/2 of a Gaussian's exponent, for `rejection_sample`: its tangents lie below it."""

    bulk: jax.Array

    def __call__(self, t):
        """Return the growth at distance t."""
        return 0.5 * t**2

    def lines(self, lower, upper):
        """Return values at ``lower`` and slopes of tangents, which touch at or before the middle of intervals."""
        touch = jnp.minimum(0.5 * (lower + upper), lower + self.bulk / 48.0)
        return touch * (lower - 0.5 * touch), touch


def _bulk(manifold, scale):
    """Return a distance beyond which there is hardly any mass."""
    return scale * (math.sqrt(manifold.dim) + 6.0 + manifold.volume_growth * scale)


def has_gaussian_certificate(manifold) -> bool:
    """Return whether `RiemannianGaussian` supports this manifold."""
    return manifold.homogeneous and (_is_hadamard(manifold) or _certified_space(manifold) is not None)


def _is_hadamard(manifold):
    return manifold.curvature_bounds[1] <= 0.0 and math.isinf(manifold.injectivity_radius)


def _certified_space(manifold) -> Space | None:
    """Return the space of a certificate that takes seconds at most; None if there is none."""
    space = _space(manifold)
    return space if space is not None and (space.sign == 0 or space.dim <= _LARGEST_DIM) else None


def _least_scale(manifold, sensitivity, mu) -> tuple[float, str]:
    """Return the smallest sigma that is proven, and by which theorem; infinite or NaN if none is."""
    by_formula, space = math.nan, _certified_space(manifold)
    if _is_hadamard(manifold):
        by_formula = hadamard_scale(mu, sensitivity, manifold.ricci_bound)
    if space is not None:
        root = _root_of(manifold, space)
        certified = gaussian_scale(space, sensitivity * root, mu) / root
        if not by_formula <= certified:
            return certified, "mu certified by quadrature: docs/mathematics.md, Theorem K"
    return by_formula, "mu by a formula: docs/mathematics.md, Theorem P"


def _root_of(manifold, space: Space) -> float:
    """Return one over the manifold's length that is 1 in the space."""
    if space.sign > 0:
        return (math.pi / 2.0 if space.folded else math.pi) / manifold.diameter
    return math.sqrt(abs(manifold.curvature_bounds[0])) or 1.0


def _space(manifold) -> Space | None:
    """Return the space of constant curvature that a manifold is; None if its geodesics are not known to be the same."""
    lowest, highest = manifold.curvature_bounds
    if lowest != highest:
        return None
    sign = (highest > 0) - (highest < 0)
    if math.isinf(manifold.injectivity_radius):
        return Space(manifold.dim, sign)
    if sign < 0 or (sign == 0 and manifold.dim > 1):
        return None
    full = math.pi if sign == 0 else manifold.diameter * math.sqrt(highest)  # flat: a circle
    if manifold.injectivity_radius != manifold.diameter:
        return None
    if math.isclose(full, math.pi, rel_tol=1e-12):
        return Space(manifold.dim, 1)
    return Space(manifold.dim, 1, folded=True) if math.isclose(full, math.pi / 2.0, rel_tol=1e-12) else None
