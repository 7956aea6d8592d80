"""Ways of releasing and planted mistakes that audit.py and the tests audit, beside the mechanisms."""

import dataclasses
import random

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp import ApproximateDP, GaussianDP, GeodesicBall, LaplaceMechanism, PureDP
from jaxgeodp.compiling import like
from jaxgeodp.mechanisms import BallMechanism
from jaxgeodp.privacy import audit, grid
from jaxgeodp.releases.ways.fixed_time import draw_in_fixed_time, proposals_needed


def integers_of(mechanism, data):
    """The vector of integers of a release on the grid, before the noise."""
    data = jnp.asarray(data)
    return mechanism.law(len(data)).grid.steps.program(like(data))(data)


class OnTheGrid:
    """What mechanisms in the tangent space release with numerics="grid", from a seed."""

    def __init__(self, mechanism, n=2):
        self.mechanism, self.ball = mechanism, mechanism.ball
        self.log_density = mechanism.log_density
        _, self.guarantee = self._noise(mechanism.law(n))

    def simulate(self, key, data, num):
        dim = self.ball.manifold.dim
        law = self.mechanism.law(len(data))
        noise, _ = self._noise(law)
        steps = np.tile(integers_of(self.mechanism, data), num)
        source = random.Random(int(jax.random.bits(key)))
        noisy = grid.with_noise(law.noise.discrete, steps, noise.scale, source.randrange)
        draws = law.grid.steps.step * noisy.reshape(num, dim)
        return jax.vmap(lambda vector: law.summary.to_value(self.ball, vector))(jnp.asarray(draws))

    def _noise(self, law):
        steps = law.grid.steps
        return law.noise.on_grid(self.ball.manifold.dim, steps.sensitivity, steps.step, law.terms.strength)


class WithCost:
    """Releases of a number for two data sets, each with what drawing it cost: the pairs (value, cost), for `audit`.

    All are drawn before, the two data sets in turns, so that what slows the machine down slows both down; `simulate`
    serves them. A third is kept for `score`, which learns the log-density ratio of the pairs by counting them in cells:
    whatever value and cost tell together, it finds in the end.

    Args:
        guarantee: of the value alone.
        pair: the two data sets.
        draw: ``draw(which)`` releases a number for one of them, 0 or 1.
        clock: a number that grows with what has been spent.
        count: pairs for each data set.
    """

    def __init__(self, guarantee, pair, draw, clock, count):
        self.guarantee, self.pair, self.start = guarantee, pair, [0, 0]
        drawn = np.empty((2, count, 2))
        for j, first in enumerate(np.random.default_rng(0).integers(2, size=count)):
            for which in (first, 1 - first):
                before = clock()
                value = draw(which)
                drawn[which, j] = value, clock() - before
        self.learnt, self.served = np.split(drawn, [count // 3], axis=1)

    def simulate(self, key, data, num):
        which = 0 if np.array_equal(data, self.pair[0]) else 1
        rows = np.arange(self.start[which], self.start[which] + num)
        self.start[which] += num
        return np.take(self.served[which], rows, axis=0, mode="wrap")

    def score(self, values=48, costs=24):
        """Of a pair, learnt in so many cells of values and of costs."""
        both = np.concatenate(self.learnt)
        edges = [np.unique(np.quantile(both[:, j], np.arange(1, n) / n)) for j, n in enumerate((values, costs))]
        places = [[np.searchsorted(e, of[:, j]) for j, e in enumerate(edges)] for of in self.learnt]
        counts = np.ones((2, len(edges[0]) + 1, len(edges[1]) + 1))
        for count, (first, second) in zip(counts, places, strict=True):
            np.add.at(count, (first, second), 1)
        table = jnp.asarray(np.log(counts[0] / counts[1]))
        return lambda x: table[jnp.searchsorted(edges[0], x[0]), jnp.searchsorted(edges[1], x[1])]

    def audit(self, **cells):
        """What `audit` finds in the pairs."""
        self.start = [0, 0]
        return audit(self, *self.pair, draws=self.served.shape[1], score=self.score(**cells))


def noise_on_a_line(mechanism, pair, law, clock, count, below=None):
    """`WithCost` of the noise of a grid release on a line alone: what a perfect observer of the machine could time."""
    planned = mechanism.law(len(pair[0])).grid.steps
    step = planned.step
    scale = grid.laplace_noise(1, planned.sensitivity, step, mechanism.epsilon).scale
    steps = [integers_of(mechanism, data) for data in pair]

    def draw(which):
        return step * grid.with_noise(law, steps[which], scale, below)[0]

    return WithCost(mechanism.guarantee, pair, draw, clock, count)


class Counted:
    """Uniform integers from a seed, and how many there have been."""

    def __init__(self, seed):
        self.source, self.count = random.Random(seed), 0

    def below(self, n):
        self.count += 1
        return self.source.randrange(n)


class Points:
    """A mean of registered points; its score is the sum of all coordinates."""

    def __init__(self, mechanism):
        self.guarantee, self.simulate = mechanism.guarantee, mechanism.simulate

    def log_density(self, x, data):
        return jnp.sum(x) * jnp.sum(data[-1])


class InFixedTime:
    """What mechanisms with a density release with delta > 0, from a seed."""

    def __init__(self, mechanism, delta):
        self.mechanism, self.ball, self.log_density = mechanism, mechanism.ball, mechanism.log_density
        exact = mechanism.guarantee
        gaussian = isinstance(exact, GaussianDP)
        self.spare = 0.5 * delta if gaussian else delta
        epsilon = exact.to_approximate(0.5 * delta).epsilon if gaussian else exact.epsilon
        self.guarantee = ApproximateDP(epsilon, delta)

    def proposals(self, law):
        """How many there are."""
        return proposals_needed(law, np.log(self.spare) - np.logaddexp(0.0, self.guarantee.epsilon))

    def simulate(self, key, data, num):
        law = self.mechanism.law(len(data))
        count = self.proposals(law)
        keys = jax.random.split(key, num)
        return jax.lax.map(
            lambda k: draw_in_fixed_time(law, k, data, count),
            keys,
            batch_size=4096,
        )


@dataclasses.dataclass(frozen=True, eq=False)
class HalfTheScale(BallMechanism):
    """Planted: sigma halved."""

    epsilon: float

    @property
    def guarantee(self):
        """What it claims."""
        return PureDP(self.epsilon)

    def law(self, n, shape=()):
        """Half of what is right."""
        law = LaplaceMechanism(self.ball, self.epsilon).law(n)
        return dataclasses.replace(law, scale=law.scale / 2.0)


class TwiceTheBudget(BallMechanism):
    """Planted: releases in steps each of which spends as if there were twice the budget."""

    def __init__(self, steps):
        object.__setattr__(self, "ball", steps.ball)
        object.__setattr__(self, "steps", steps)

    @property
    def guarantee(self):
        """What it claims."""
        return self.steps.guarantee

    def law(self, n, shape=()):
        """With half of the noise."""
        law = self.steps.law(n)
        return dataclasses.replace(law, strength=2.0 * law.strength)


def about_a_cluster(ball, n):
    """A record that jumps from one end of the ball to the other, the others at a point between: steps fit them."""
    manifold, center = ball.manifold, np.asarray(ball.center)
    axis, reach = np.asarray(manifold.frame(center))[0], (1.0 - 1e-6) * ball.radius
    cluster, *ends = (np.asarray(manifold.exp(center, far * reach * axis)) for far in (0.45, 1.0, -1.0))
    return tuple(np.stack([cluster] * (n - 1) + [end]) for end in ends)


def at_right_angles(ball, n):
    """A record at the rim that jumps a quarter round: a second moment sees no jump to the other end."""
    manifold, center = ball.manifold, np.asarray(ball.center)
    frame, reach = np.asarray(manifold.frame(center)), (1.0 - 1e-6) * ball.radius
    ends = [np.asarray(manifold.exp(center, reach * frame[j])) for j in (0, -1)]
    return tuple(np.stack([center] * (n - 1) + [end]) for end in ends)


def at_the_end(ball, n):
    """Times and points for regression; at the last time a record jumps from one end of the ball to the other."""
    manifold, center = ball.manifold, np.asarray(ball.center)
    axis, reach = np.asarray(manifold.frame(center))[0], (1.0 - 1e-6) * ball.radius
    times, ends = (
        np.linspace(0.0, 1.0, n)[:, None],
        (np.asarray(manifold.exp(center, s * reach * axis)) for s in (1, -1)),
    )
    points = (np.stack([center] * (n - 1) + [end]).reshape(n, -1) for end in ends)
    return tuple(np.concatenate([times, own], axis=1) for own in points)


class HalfTheSecondMoment:
    """Planted: hull noise of half the scale."""

    def __init__(self, spread):
        self.guarantee, self.ball, self.spread = spread.guarantee, spread.ball, spread

    def law(self, n):
        """Half of what is right."""
        law = self.spread.law(n)
        return dataclasses.replace(law, scale=0.5 * law.scale)

    def simulate(self, key, data, num):
        """(num, dim, dim)."""
        return self.law(len(data)).simulate(key, jnp.asarray(data), num)

    def log_density(self, x, data):
        """Of what is drawn."""
        return self.law(len(data)).log_density(x, jnp.asarray(data))


@dataclasses.dataclass(frozen=True, eq=False)
class DividedByNTwice(BallMechanism):
    """Planted: the 1/n of the sensitivity once too often."""

    epsilon: float

    @property
    def guarantee(self):
        """What it claims."""
        return PureDP(self.epsilon)

    def law(self, n, shape=()):
        """1/n of what is right."""
        law = LaplaceMechanism(self.ball, self.epsilon).law(n)
        return dataclasses.replace(law, scale=law.scale / n)


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
