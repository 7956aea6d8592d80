"""Mistakes planted in noise that fits the data: it is fitted to private records, not to released numbers."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp import GaussianDP, GeodesicBall, Shape, TangentGaussian
from jaxgeodp.mechanisms import BallMechanism


class ClipOfTheRecords(BallMechanism):
    """Planted: records are shortened to the .9 quantile of their own lengths, and noise is for that clip."""

    def __init__(self, ball, mu):
        object.__setattr__(self, "ball", ball)
        object.__setattr__(self, "mu", mu)

    @property
    def guarantee(self):
        """What it claims."""
        return GaussianDP(self.mu)

    def law(self, n, shape=()):
        """For the ball."""
        return TangentGaussian(self.ball, self.mu).law(n)

    def simulate(self, key, data, num):
        """Independent releases."""
        ball = self.ball
        lengths = jax.vmap(lambda x: ball.manifold.dist(jnp.asarray(ball.center), x))(jnp.asarray(data))
        own = GeodesicBall(ball.manifold, ball.center, max(float(jnp.quantile(lengths, 0.9)), 1e-3))
        return TangentGaussian(own, self.mu).simulate(key, data, num)


class ShapeOfTheRecords(ClipOfTheRecords):
    """Planted: the shape of the noise is the fourth root of the records' own second moment."""

    def simulate(self, key, data, num):
        """Independent releases."""
        ball = self.ball
        frame = ball.manifold.frame(jnp.asarray(ball.center))
        logs = jax.vmap(lambda x: ball.manifold.log(jnp.asarray(ball.center), x))(jnp.asarray(data))
        seen = np.asarray(jnp.mean(jax.vmap(lambda v: jnp.tensordot(v, frame, v.ndim) ** 2)(logs), axis=0))
        wide = np.maximum(seen, 1e-6) ** 0.25
        vectors = [length * np.asarray(axis) for length, axis in zip(wide, frame, strict=True)]
        shape = Shape(ball.center, vectors, ball.radius / float(np.max(wide)))
        return TangentGaussian(ball, self.mu, shape).simulate(key, data, num)

    def score(self, data, neighbour):
        """How far a value is from the centre along the last axis, in which neither data set spreads."""
        center = jnp.asarray(self.ball.center)
        axis = self.ball.manifold.frame(center)[-1]
        return lambda x: jnp.abs(self.ball.manifold.inner(center, self.ball.manifold.log(center, x), axis))


def at_a_quantile(ball, n):
    """A record that jumps from the centre to the rim, as one in ten have: the .9 quantile of lengths jumps, too."""
    return tuple(_at_the_rim(ball, n, n // 10 - less) for less in (1, 0))


def one_alone(ball, n):
    """A record that jumps from the centre, where all others are, to the rim."""
    return tuple(_at_the_rim(ball, n, own) for own in (0, 1))


def _at_the_rim(ball, n, count):
    manifold, center = ball.manifold, np.asarray(ball.center)
    axis = np.asarray(manifold.frame(center))[0]
    end = np.asarray(manifold.exp(center, (1.0 - 1e-6) * ball.radius * axis))
    return np.stack([center] * (n - count) + [end] * count)
