"""Mechanisms that add noise in the tangent space at the public centre and map the sum back by exp."""

import dataclasses
import math
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.bounds.comparison import rauch
from jaxgeodp.bounds.rounding import SUPPOSED, of_computed_mean
from jaxgeodp.bounds.sensitivity import Sensitivity, mean_sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.compiling import compiled_ahead
from jaxgeodp.manifolds.manifold import real_dtype
from jaxgeodp.mechanisms.additive import AdditiveMechanism
from jaxgeodp.mechanisms.mechanism import Calibration, Home, Procedure
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.samplers.discrete import discrete_gaussian, discrete_laplace
from jaxgeodp.statistics.frechet_mean import mean_in_ball
from jaxgeodp.statistics.records import points_and_weights

# Largest distance of draws in units of 1/sqrt|k_min|: hyperboloid coordinates are right to e^(2 * 15) rounding errors.
_LARGEST_REACH = 15.0
# Records at a time on their way to a grid.
_BLOCK = 2**16


@dataclasses.dataclass(frozen=True, eq=False)
class _InTangentSpace(AdditiveMechanism):
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
        root = manifold.coordinate_growth
        room = _LARGEST_REACH / root - self.ball.radius if root > 0 else math.inf
        if scale * lengths > room:
            raise InputError(
                f"{type(self).__name__}: with n={n}, radius={self.ball.radius:g} the scale {scale:.4g} is "
                f"too large for double precision on {manifold}, which needs at most {max(room, 0.0) / lengths:.4g}: "
                "raise the privacy parameter or n, or lower the radius."
            )

    def _grid_procedure(self):
        gaussian = self._law == "gaussian"
        law = discrete_gaussian if gaussian else discrete_laplace
        dim = self.ball.manifold.dim

        def noise(n):
            sensitivity, step = self._grid_step(n)
            if gaussian:
                return grid.gaussian_noise(sensitivity, step, self._strength)
            return grid.laplace_noise(dim, sensitivity, step, self._strength)

        def calibrate(n):
            sensitivity, scale, step = noise(n)
            # Independent Laplace coordinates have norms of about sqrt(2) dim.
            lengths = math.sqrt(dim) + 6.0 if gaussian else 2.0 * (dim + 6.0 * math.sqrt(dim))
            self._check_reach(n, scale * step, lengths)
            formula = f"{self._sensitivity(n).formula}; {sensitivity} steps of the grid"
            return Calibration(Sensitivity(sensitivity * step, formula), scale * step, None, self._grid_theorem)

        def ready(shape):
            _, scale, step = noise(shape.shape[0])
            steps_of = self._grid_program(shape, step)
            vector = jax.ShapeDtypeStruct((dim,), jnp.float64)
            value_of = compiled_ahead(type(self).__name__, _value_of, self, vector)
            return lambda records: value_of(self, step * grid.with_noise(law, steps_of(records), scale))

        return Procedure(
            ready,
            calibrate,
            lambda n: grid.zcdp([noise(n)]) if gaussian else self.guarantee,
            {"name": f"{law.__name__} (Canonne, Kamath & Steinke 2020)", "exactness": "exact, in integers"},
            self._grid_note,
        )

    # The vector as a sum of integers over the records, each in a ball of the tangent space.
    _grid_theorem = "docs/mathematics.md, Theorem N"
    _grid_note = grid.NOTE

    def _grid_step(self, n) -> tuple[int, float]:
        return 2 * grid.STEPS, self.ball.radius / grid.STEPS / n

    def _grid_program(self, shape, step):
        """What makes the vector of integers of records of this shape, compiled."""
        sizes = {min(_BLOCK, shape.shape[0]), shape.shape[0] % _BLOCK or _BLOCK}
        rows = {n: jax.ShapeDtypeStruct((n, *shape.shape[1:]), shape.dtype) for n in sizes if n <= shape.shape[0]}
        name = type(self).__name__
        programs = {n: compiled_ahead(name, _coordinates, self, block) for n, block in rows.items()}

        def steps_of(points):
            blocks = (np.asarray(points[j : j + _BLOCK]) for j in range(0, len(points), _BLOCK))
            vectors = (programs[len(block)](self, block) for block in blocks)
            return np.sum([np.sum(grid.to_grid(part, self.ball.radius), axis=0) for part in vectors], axis=0)

        return steps_of

    def _home(self, data) -> Home[Self]:
        return super(AdditiveMechanism, self)._home(data)

    def _carried(self, x):
        return self.ball.to_home(x)

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


@dataclasses.dataclass(frozen=True, eq=False)
class _Wrapped(_InTangentSpace):
    """Around the logarithm of the private mean."""

    def _sensitivity(self, n):
        ball = self.ball
        mean = of_computed_mean(mean_sensitivity(ball, n, "tight"), ball, n)
        # log_p0 stretches distances within the ball at most by Rauch's factor.
        factor = rauch(ball.radius, ball.manifold.curvature_bounds[1])
        exact, _, supposed = mean.formula.partition(";")
        formula = exact if factor == 1.0 else f"({exact}) r sqrt(k)/sin(r sqrt(k))"
        return Sensitivity(mean.value * factor, f"{formula} (docs/mathematics.md, section 9);{supposed}")

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
        return super()._grid_theorem + ("" if self._flat else f", {SUPPOSED}")

    @property
    def _grid_note(self):
        return super()._grid_note + ("" if self._flat else f"; {SUPPOSED}")

    def _grid_step(self, n):
        if self._flat:
            return super()._grid_step(n)
        # Two roundings by half a step in every coordinate.
        moved = grid.STEPS + math.sqrt(self.ball.manifold.dim)
        return math.ceil(moved * (1.0 + 1e-12)), self._sensitivity(n).value / grid.STEPS

    def _grid_program(self, shape, step):
        if self._flat:
            return super()._grid_program(shape, step)
        program = compiled_ahead(type(self).__name__, _location_of_mean, self, shape)
        limit = math.ceil(self.ball.radius / step)

        def steps_of(points):
            with np.errstate(all="ignore"):
                scaled = np.rint(np.asarray(program(self, points)) / step)
            return np.clip(np.nan_to_num(scaled, posinf=limit, neginf=-limit), -limit, limit).astype(np.int64)

        return steps_of


@jax.jit
def _value_of(mechanism, vector):
    home, _, back = mechanism._home(jnp.asarray(mechanism.ball.center)[None])
    return back(home._to_value(vector))


@jax.jit
def _location_of_mean(mechanism, points):
    home, points, _ = mechanism._home(points)
    return home._location(points, home._center(points))


@jax.jit
def _coordinates(mechanism, points):
    """Of the logarithms of clipped records, (n, d)."""
    home, points, _ = mechanism._home(points)
    manifold, center, frame = home._base(real_dtype(points))
    return jax.vmap(lambda x: manifold.coordinates(center, manifold.log(center, x), frame))(points)


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass(frozen=True, eq=False)
class WrappedLaplace(_Wrapped):
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
class WrappedGaussian(_Wrapped):
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
class TangentLaplace(_InTangentSpace):
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
