"""What is audited beside mechanisms, by benchmarks/audit.py and the tests: modes of releases, and planted mistakes."""

import dataclasses
import random

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp import ApproximateDP, GeodesicBall, LaplaceMechanism, PureDP
from jaxgeodp.mechanisms.fixed_time import draw_in_fixed_time, proposals_needed
from jaxgeodp.privacy import grid
from jaxgeodp.samplers.discrete import discrete_laplace


class OnTheGrid:
    """What `TangentLaplace` and `WrappedLaplace` release with numerics="grid", from a seed."""

    def __init__(self, mechanism):
        self.mechanism, self.guarantee, self.ball = mechanism, mechanism.guarantee, mechanism.ball
        self.log_density = mechanism.log_density

    def simulate(self, key, data, num):
        mechanism, dim = self.mechanism, self.ball.manifold.dim
        sensitivity, step = mechanism._grid_step(len(data))
        scale = grid.laplace_noise(dim, sensitivity, step, mechanism.epsilon).scale
        steps = np.tile(mechanism._grid_vector(mechanism._clipped(data), step), num)
        source = random.Random(int(jax.random.bits(key)))
        draws = step * grid.with_noise(discrete_laplace, steps, scale, source.randrange).reshape(num, dim)
        return jax.vmap(mechanism._to_value)(jnp.asarray(draws))


class Points:
    """A mean of registered points; its score is the sum of all coordinates."""

    def __init__(self, mechanism):
        self.guarantee, self.simulate = mechanism.guarantee, mechanism.simulate

    def log_density(self, x, data):
        return jnp.sum(x) * jnp.sum(data[-1])


class InFixedTime:
    """What `LaplaceMechanism` and `KNGMechanism` release with delta > 0, from a seed."""

    def __init__(self, mechanism, delta):
        self.mechanism, self.ball = mechanism, mechanism.ball
        self.guarantee, self.log_density = ApproximateDP(mechanism.epsilon, delta), mechanism.log_density

    def simulate(self, key, data, num):
        calibration = self.mechanism.calibrate(len(data))
        log_eta = np.log(self.guarantee.delta) - np.logaddexp(0.0, self.guarantee.epsilon)
        count = proposals_needed(self.mechanism, len(data), log_eta)
        keys = jax.random.split(key, num)
        return jax.lax.map(
            lambda k: draw_in_fixed_time(self.mechanism, k, data, calibration.scale, calibration.support, count),
            keys,
            batch_size=4096,
        )


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass(frozen=True, eq=False)
class HalfTheScale(LaplaceMechanism):
    """Planted: sigma halved."""

    def calibrate(self, n):
        """Half of what is right."""
        calibration = super().calibrate(n)
        return calibration._replace(scale=calibration.scale / 2.0)


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass(frozen=True, eq=False)
class DividedByNTwice(LaplaceMechanism):
    """Planted: the 1/n of the sensitivity once too often."""

    def calibrate(self, n):
        """1/n of what is right."""
        calibration = super().calibrate(n)
        return calibration._replace(scale=calibration.scale / n)


class RadiusFromTheData:
    """Planted: the ball is the smallest that holds the data."""

    guarantee = PureDP(1.0)

    def __init__(self, ball):
        self.ball = ball

    def _mechanism(self, data):
        manifold, center = self.ball.manifold, self.ball.center
        largest = max(float(manifold.dist(jnp.asarray(center), x)) for x in jnp.asarray(data))
        return LaplaceMechanism(GeodesicBall(manifold, center, max(largest, 0.01)), 1.0)

    def simulate(self, key, data, num):
        """Draws with a scale from the data."""
        return self._mechanism(data).simulate(key, data, num)

    def log_density(self, x, data):
        """Large near the centre, where the smaller ball leaves the draws."""
        sign = jnp.where(jnp.all(data == data[0]), 1.0, -1.0)
        return -sign * self.ball.manifold.dist(jnp.asarray(self.ball.center), x)


class ReusedKey:
    """Planted: noise from a key that the program contains."""

    def __init__(self, mechanism):
        self.guarantee, self.log_density, self.mechanism = mechanism.guarantee, mechanism.log_density, mechanism

    def simulate(self, key, data, num):
        """The same draw again and again."""
        return jnp.repeat(self.mechanism.simulate(jax.random.key(1), data, 1), num, axis=0)


def laplace_by_coin_tosses(scale: int, below) -> int:
    """Planted: the law of `discrete_laplace`, in a time that tells the quotient of the noise by the scale.

    So Canonne, Kamath & Steinke (2020, Algorithms 1 and 2) print it, and so jaxgeodp 0.1 had it.
    """
    while True:
        remainder = below(scale)
        if not _run_is_odd(remainder, scale, below):
            continue
        quotient = 0
        while _run_is_odd(1, 1, below):
            quotient += 1
        size = remainder + scale * quotient
        negative = below(2) == 1
        if not (negative and size == 0):
            return -size if negative else size


def _run_is_odd(numerator, denominator, below):
    """With probability exp(-numerator/denominator), for a ratio from 0 to 1."""
    k = 1
    while below(k * denominator) < numerator:
        k += 1
    return k % 2 == 1
