"""Mistakes that an audit must find, planted in mechanisms; the tests use them too."""

import dataclasses

import jax
import jax.numpy as jnp

from jaxgeodp import GeodesicBall, LaplaceMechanism, PureDP


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
