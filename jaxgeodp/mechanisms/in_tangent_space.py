"""Mechanisms that add noise in the tangent space at the public centre and map the sum back by exp."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.bounds.comparison import rauch
from jaxgeodp.bounds.sensitivity import Sensitivity, mean_sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.manifolds.manifold import real_dtype
from jaxgeodp.mechanisms.additive import AdditiveMechanism
from jaxgeodp.mechanisms.mechanism import Calibration, Procedure, coordinate_growth
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.guarantee import GaussianDP, PureDP
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.privacy.release import Release
from jaxgeodp.samplers.discrete import discrete_gaussian, discrete_laplace
from jaxgeodp.statistics.frechet_mean import mean_in_ball
from jaxgeodp.statistics.records import points_and_weights

# Largest distance of draws in units of 1/sqrt|k_min|: hyperboloid coordinates are right to e^(2 * 15) rounding errors.
_LARGEST_REACH = 15.0
_ROUNDING = 2.0**-52
# Points at which the rounding of coordinates is tried.
_PROBES = 32
_SUPPOSED = "the computed mean is as near to the Frechet mean as docs/mathematics.md, section 13, says"
# Records at a time on their way to a grid.
_BLOCK = 2**16


class _InTangentSpace:
    """The vector: coordinates in an orthonormal frame of the tangent space at the public centre."""

    def calibrate(self, n: int) -> Calibration:
        """See `Mechanism.calibrate`.

        Raises:
            ValueError: the noise would reach points that double precision cannot hold (negative curvature).
        """
        calibration = super().calibrate(n)
        dim = self.ball.manifold.dim
        lengths = math.sqrt(dim) + 6.0 if self._law == "gaussian" else dim + 6.0 * math.sqrt(dim)
        self._check_reach(n, calibration.scale, lengths)
        return calibration

    def _check_reach(self, n, scale, lengths):
        manifold = self.ball.manifold
        root = coordinate_growth(manifold)
        room = _LARGEST_REACH / root - self.ball.radius if root > 0 else math.inf
        if scale * lengths > room:
            raise InputError(
                f"{type(self).__name__}: with n={n}, radius={self.ball.radius:g} the scale {scale:.4g} is "
                f"too large for double precision on {manifold}, which needs at most {max(room, 0.0) / lengths:.4g}: "
                "raise the privacy parameter or n, or lower the radius."
            )

    def release(self, data, ledger: Ledger | None = None, *, numerics: str = "idealized") -> Release:
        """One private release, with randomness from the operating system; see `Mechanism.release`.

        Args:
            data: (n, \\*shape), n >= 2.
            ledger: charged before anything is drawn.
            numerics: "idealized", for which the guarantee supposes exact arithmetic, or "grid", where the vector has
                integer coordinates on a public grid, the noise is exact discrete noise, and the rest post-processing
                (docs/mathematics.md, Theorem N). Laplace noise then has independent coordinates, up to sqrt(2) times
                as wide; Gaussian noise gives mu^2/2-zCDP in place of mu-GDP.

        Raises:
            ValueError: see `Mechanism.release`, or another word for ``numerics``.
        """
        on_grid = grid.check_numerics(type(self).__name__, numerics)
        return self._release(data, self._grid_procedure() if on_grid else self._procedure(), ledger)

    def _grid_procedure(self):
        gaussian = self._law == "gaussian"
        law = discrete_gaussian if gaussian else discrete_laplace
        dim = self.ball.manifold.dim

        def noise(n):
            sensitivity, step = self._grid_step(n)
            if gaussian:
                return grid.gaussian_noise(sensitivity, step, self.mu)
            return grid.laplace_noise(dim, sensitivity, step, self.epsilon)

        def calibrate(n):
            sensitivity, scale, step = noise(n)
            # Independent Laplace coordinates have norms of about sqrt(2) dim.
            lengths = math.sqrt(dim) + 6.0 if gaussian else 2.0 * (dim + 6.0 * math.sqrt(dim))
            self._check_reach(n, scale * step, lengths)
            formula = f"{self._sensitivity(n).formula}; {sensitivity} steps of the grid"
            return Calibration(Sensitivity(sensitivity * step, formula), scale * step, None, self._grid_theorem)

        def ready(records, n):
            _, scale, step = noise(n)
            steps = self._grid_vector(records, step)
            return lambda: _value_of(self, step * grid.with_noise(law, steps, scale))

        return Procedure(
            ready,
            calibrate,
            lambda n: grid.zcdp([noise(n)]) if gaussian else PureDP(self.epsilon),
            {"name": f"{law.__name__} (Canonne, Kamath & Steinke 2020)", "exactness": "exact, in integers"},
            self._grid_note,
        )

    # The vector as a sum of integers over the records, each in a ball of the tangent space.
    _grid_theorem = "docs/mathematics.md, Theorem N"
    _grid_note = grid.NOTE

    def _grid_step(self, n):
        return 2 * grid.STEPS, self.ball.radius / grid.STEPS / n

    def _grid_vector(self, points, step):
        blocks = (points[j : j + _BLOCK] for j in range(0, points.shape[0], _BLOCK))
        return sum(np.sum(grid.to_grid(_coordinates(self, b), self.ball.radius), axis=0) for b in blocks)

    def _to_value(self, vector):
        manifold, center, frame = self._base(vector.dtype)
        return manifold.project(manifold.exp(center, manifold.combine(vector, frame)))

    def _to_vector(self, x):
        manifold, center, frame = self._base(real_dtype(x))
        if math.isfinite(manifold.injectivity_radius):
            raise InputError(
                f"{type(self).__name__}: no density on {manifold}: noise vectors of several lengths meet in a point."
            )
        tangent = manifold.log(center, x)
        return manifold.coordinates(center, tangent, frame), manifold.log_det_exp(center, tangent)

    def _base(self, dtype):
        manifold = self.ball.manifold
        kind = jnp.result_type(dtype, jnp.complex64) if manifold.dtype_kind == "complex" else dtype
        center = jnp.asarray(self.ball.center, kind)
        return manifold, center, manifold.frame(center)


class _Wrapped(_InTangentSpace):
    """Around the logarithm of the private mean."""

    def _sensitivity(self, n):
        ball = self.ball
        mean = mean_sensitivity(ball, n, "tight")
        # log_p0 stretches distances within the ball at most by Rauch's factor.
        factor = rauch(ball.radius, ball.manifold.curvature_bounds[1])
        formula = mean.formula if factor == 1.0 else f"({mean.formula}) r sqrt(k)/sin(r sqrt(k))"
        return Sensitivity(mean.value * factor, f"{formula} (docs/mathematics.md, section 9)")

    def _center(self, points):
        return mean_in_ball(self.ball, points)

    def _location(self, points, mean):
        manifold, center, frame = self._base(real_dtype(mean))
        return manifold.coordinates(center, manifold.log(center, mean), frame)

    @property
    def _flat(self):
        """Whether the logarithm of the mean is the mean of the logarithms."""
        return self.ball.manifold.curvature_bounds == (0.0, 0.0)

    @property
    def _grid_theorem(self):
        return super()._grid_theorem + ("" if self._flat else f", supposing that {_SUPPOSED}")

    @property
    def _grid_note(self):
        return super()._grid_note + ("" if self._flat else f"; supposed: {_SUPPOSED}")

    def _grid_step(self, n):
        if self._flat:
            return super()._grid_step(n)
        # Two means, each with its error, and two roundings by half a step in every coordinate.
        ball, sensitivity = self.ball, self._sensitivity(n).value
        error = rauch(ball.radius, ball.manifold.curvature_bounds[1]) * _mean_error(ball, n)
        moved = grid.STEPS * (1.0 + 2.0 * error / sensitivity) + math.sqrt(ball.manifold.dim)
        return math.ceil(moved * (1.0 + 1e-12)), sensitivity / grid.STEPS

    def _grid_vector(self, points, step):
        if self._flat:
            return super()._grid_vector(points, step)
        with np.errstate(all="ignore"):
            scaled = np.rint(np.asarray(_location_of_mean(self, points)) / step)
        limit = math.ceil(self.ball.radius / step)
        return np.clip(np.nan_to_num(scaled, posinf=limit, neginf=-limit), -limit, limit).astype(np.int64)


def _mean_error(ball, n):
    """What the computed mean may be away from the exact one: supposed, from public numbers.

    Iterations stop within 1e-9 r. Rounding, of which sums of n terms have sqrt(n) times as much, is that of
    coordinates, and what going to public points of the ball and back shows (ill-conditioned centres).
    """
    with jax.enable_x64(True):
        there_and_back = float(_there_and_back(ball))
    if not math.isfinite(there_and_back):
        raise InputError(
            f"numerics='grid': points of this ball on {ball.manifold} are beyond double precision; choose another "
            "centre or a smaller radius."
        )
    rounding = _ROUNDING * _unit(ball.manifold, ball.center, ball.radius) + there_and_back
    return 1e-9 * ball.radius + 4.0 * math.sqrt(n) * rounding


def _unit(manifold, center, radius):
    """The size of coordinates, in distances: the radius of curvature; where it is flat, how far the origin may be."""
    factors = getattr(manifold, "manifolds", ())
    if factors:
        parts = manifold.split(jnp.asarray(center))
        return math.hypot(*(_unit(factor, part, radius) for factor, part in zip(factors, parts, strict=True)))
    curvatures = [abs(bound) for bound in manifold.curvature_bounds if bound != 0]
    return 1.0 / math.sqrt(min(curvatures)) if curvatures else float(jnp.linalg.norm(center)) + radius


@jax.jit
def _there_and_back(ball):
    """The largest error of coordinates at fixed points of the ball."""
    manifold, center = ball.manifold, jnp.asarray(ball.center)
    frame = manifold.frame(center)
    numbers = jax.random.normal(jax.random.key(0), (_PROBES, manifold.dim), frame.real.dtype)
    lengths = jnp.linspace(0.1, 1.0, _PROBES)[:, None] * ball.radius
    vectors = lengths * numbers / jnp.linalg.norm(numbers, axis=1, keepdims=True)

    def back(vector):
        point = manifold.project(manifold.exp(center, manifold.combine(vector, frame)))
        return manifold.coordinates(center, manifold.log(center, point), frame)

    return jnp.max(jnp.linalg.norm(jax.vmap(back)(vectors) - vectors, axis=1))


@jax.jit
def _value_of(mechanism, vector):
    return mechanism._to_value(vector)


@jax.jit
def _location_of_mean(mechanism, points):
    points = mechanism._clipped(points)
    return mechanism._location(points, mechanism._center(points))


@jax.jit
def _coordinates(mechanism, points):
    """Of the logarithms of clipped records, (n, d)."""
    points = mechanism._clipped(points)
    manifold, center, frame = mechanism._base(real_dtype(points))
    return jax.vmap(lambda x: manifold.coordinates(center, manifold.log(center, x), frame))(points)


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass(frozen=True, eq=False)
class WrappedLaplace(_Wrapped, AdditiveMechanism):
    """exp_p0( log_p0(private mean) + noise ), noise with density exp(-|z|/sigma) in the tangent space at the centre.

    Its centre is the Frechet mean, its shape that of the tangent space: good where the ball is small.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        epsilon: privacy parameter, in (0, inf).

    Raises:
        ValueError: see `Mechanism`.
    """

    epsilon: float


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass(frozen=True, eq=False)
class WrappedGaussian(_Wrapped, AdditiveMechanism):
    """exp_p0( log_p0(private mean) + normal noise ): mu-Gaussian differential privacy.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        mu: privacy parameter, in (0, inf).

    Raises:
        ValueError: see `Mechanism`.
    """

    mu: float
    _law = "gaussian"
    _theorem = "Gaussian mechanism (Dong, Roth & Su 2022, Theorem 1): scale = sensitivity/mu"

    @property
    def guarantee(self):
        """mu-GDP."""
        return GaussianDP(self.mu)

    @property
    def _strength(self):
        return self.mu


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass(frozen=True, eq=False)
class TangentLaplace(_InTangentSpace, AdditiveMechanism):
    """exp_p0( mean of log_p0 x_i + noise ): sensitivity 2r/n whatever the curvature, but biased unless it is 0.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        epsilon: privacy parameter, in (0, inf).

    Raises:
        ValueError: see `Mechanism`.
    """

    epsilon: float
    _described = "mean of the logarithms at the public centre"

    def _sensitivity(self, n):
        return Sensitivity(2.0 * self.ball.radius / n, "2r/n, diameter of a ball of the tangent space")

    def _location(self, points, mean):
        points, weights = points_and_weights(points)
        manifold, center, frame = self._base(real_dtype(points))
        return manifold.coordinates(center, manifold.log_moments(center, points, weights)[0], frame)
