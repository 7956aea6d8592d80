"""What is released in parts that follow one another, as one vector each, for the audits."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp import GaussianDP, LaplaceMechanism, PureDP, WrappedGaussian
from jaxgeodp.inference import FrechetVariance, SpreadMechanism, TangentCovariance
from jaxgeodp.inference.chain import split
from jaxgeodp.inference.geodesic_fit import STATISTICS, standing
from jaxgeodp.inference.matrix_noise import is_smaller
from jaxgeodp.inference.places import AlongGeodesic, AtPoint
from jaxgeodp.inference.regression import reach_of
from jaxgeodp.inference.residuals import correction_of, moved
from jaxgeodp.inference.shares import shares_of

# Of regression's budget, in hundredths: of its second round, and of its first.
_ROUNDS = (70, 30)


class Described:
    """What `describe` releases with a ball: mean, variance and covariance, as one vector, with noise of real numbers.

    Args:
        ball, n: public.
        budget: epsilon or mu by name, of all three.
        parts: of the mean, the variance, the covariance; by default as `describe` splits the budget. Planted: more.
    """

    def __init__(self, ball, n, parts=None, **budget):
        ((parameter, strength),) = budget.items()
        mu = parameter == "mu"
        shares = shares_of(parameter, strength, n, ball.manifold.dim)
        parts = [strength * (share / 100.0) ** (0.5 if mu else 1.0) for share in shares] if parts is None else parts
        self.guarantee = GaussianDP(strength).to_zcdp() if mu else PureDP(strength)
        self.ball, self.mean = ball, (WrappedGaussian if mu else LaplaceMechanism)(ball, parts[0]).law(n)
        kinds = FrechetVariance(), TangentCovariance()
        spreads = [
            SpreadMechanism(ball, ball.center, kind, **{parameter: own})
            for kind, own in zip(kinds, parts[1:], strict=True)
        ]
        variance, covariance = (spread.law(n) for spread in spreads)
        hull = not mu and is_smaller(ball.manifold.dim)
        self.spreads = [variance.grid.continuous(), covariance if hull else covariance.grid.continuous()]
        self.size = math.prod(ball.manifold.shape)
        self.later = jax.jit(jax.vmap(self._later, (0, 0, None)))

    def simulate(self, key, data, num):
        """(num, size of a point + 1 + entries)."""
        of_mean, of_spread = jax.random.split(key)
        means = self.mean.simulate(of_mean, data, num)
        return self.later(jax.random.split(of_spread, num), means, data)

    def _later(self, key, mean, data):
        keys = jax.random.split(key, len(self.spreads))
        drawn = [law.simulate(own, data, 1)[0] for own, law in zip(keys, self._about(mean), strict=True)]
        numbers = [law.statistic.to_numbers(own) for law, own in zip(self.spreads, drawn, strict=True)]
        return jnp.concatenate([mean.reshape(-1), *numbers])

    def score(self, data, neighbour):
        """The log-density ratio of such a vector."""
        data, neighbour = jnp.asarray(data), jnp.asarray(neighbour)
        return lambda x: self._log_density(x, data) - self._log_density(x, neighbour)

    def _log_density(self, x, data):
        manifold = self.ball.manifold
        mean, numbers = x[: self.size].reshape(manifold.shape), x[self.size :]
        total = self.mean.log_density(mean, data)
        for law, own in zip(self._about(mean), (numbers[:1], numbers[1:]), strict=True):
            total = total + law.log_density(law.statistic.to_value(own, manifold.dim), data)
        return total

    def _about(self, mean):
        """The laws about the nearest point of the ball, with their noise there."""
        ball = self.ball
        about = ball.pull_inside(mean)
        place = AtPoint(about, ball.manifold.frame(about))
        farther = 1.0 + ball.manifold.dist(jnp.asarray(ball.center), about) / ball.radius
        return [
            dataclasses.replace(law, about=place, scale=law.scale * farther**2, reaches=(0.0, law.reaches[1] * farther))
            for law in self.spreads
        ]


class Regressed:
    """Both rounds of `geodesic_regression`, as one vector, with noise of real numbers.

    The second round's geodesic and reach are in the vector, too: they follow from the first round.

    Args:
        ball, n: public.
        budget: epsilon or mu by name, of both.
        parts: of the first and the second round; by default as `geodesic_regression` splits the budget. Planted: more.
    """

    def __init__(self, ball, n, parts=None, **budget):
        ((parameter, strength),) = budget.items()
        self.guarantee = GaussianDP(strength).to_zcdp() if parameter == "mu" else PureDP(strength)
        parts = reversed(split(parameter, strength, _ROUNDS)) if parts is None else parts
        self.ball, self.n, self.start = ball, n, standing(ball)
        self.statistic = STATISTICS[parameter]
        spreads = [SpreadMechanism(ball, self.start, self.statistic, **{parameter: own}) for own in parts]
        self.first, self.second = (spread.law(n).grid.continuous() for spread in spreads)
        laplace = math.sqrt(2.0) if parameter == "epsilon" else 1.0
        self.deviation = laplace * spreads[0].scale(n)
        self.size, self.numbers = math.prod(ball.manifold.shape), self.statistic.numbers(ball.manifold.dim)

    def simulate(self, key, data, num):
        """(num, numbers of a round, of a geodesic and its reach, of a round)."""
        of_first, of_second = jax.random.split(key)
        first = self.first.simulate(of_first, data, num)
        about = jnp.asarray(np.stack([self._after(own) for own in np.asarray(first)]))
        return jnp.concatenate([first, about, self._drawn(jax.random.split(of_second, num), about, data)], axis=1)

    def _after(self, first):
        """Middle, velocity and reach of the second round's geodesic."""
        dim, start = self.ball.manifold.dim, self.start
        correction = correction_of(self.statistic, dim, first, self.deviation, start.reach, self.n)
        middle, velocity = moved(start.middle, start.velocity, start.frame, correction, self.ball)
        return np.concatenate([np.ravel(middle), np.ravel(velocity), [reach_of(correction, self.ball)]])

    def _drawn(self, keys, about, data):
        def one(key, own):
            return self._about(own).simulate(key, data, 1)[0]

        return jax.jit(jax.vmap(one))(keys, about)

    def score(self, data, neighbour):
        """The log-density ratio of such a vector."""
        data, neighbour = jnp.asarray(data), jnp.asarray(neighbour)
        return lambda x: self._log_density(x, data) - self._log_density(x, neighbour)

    def _log_density(self, x, data):
        first, about, second = jnp.split(x, [self.numbers, len(x) - self.numbers])
        return self.first.log_density(first, data) + self._about(about).log_density(second, data)

    def _about(self, own):
        """The law of the second round along a geodesic."""
        manifold = self.ball.manifold
        middle, velocity = own[: self.size].reshape(manifold.shape), own[self.size : -1].reshape(manifold.shape)
        place = AlongGeodesic(middle, velocity, manifold.frame(middle), own[-1])
        return dataclasses.replace(self.second, about=place)
