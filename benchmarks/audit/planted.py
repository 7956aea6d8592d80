"""Mistakes planted in a private mean of points of the unit disk, which auditors are to find, and one that has none.

Each is a function ``(tools, records)``. It adds noise by ``tools.add(vector, sensitivity, scale)`` and says by
``tools.public(name=value)`` what should not depend on records, so that the same lines run as a program of JAX and under
a recorder that decorates functions.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp import Euclidean, GeodesicBall, PureDP
from jaxgeodp.privacy import adversarial_neighbours
from jaxgeodp.releases.noise import Norm

N, EPSILON = 5, 1.0
DISK = GeodesicBall(Euclidean(2), np.zeros(2), 1.0)
SENSITIVITY = 2.0 * DISK.radius / N
SCALE = SENSITIVITY / EPSILON


class Tools(NamedTuple):
    """What an algorithm may call."""

    add: Callable  #: ``add(vector, sensitivity, scale)``
    public: Callable  #: ``public(name=value)``


def _mean(records):
    return jnp.mean(DISK.clip(records), axis=0)


def right(tools, records):
    """No mistake."""
    return tools.add(_mean(records), SENSITIVITY, SCALE)


def half_the_noise(tools, records):
    """The scale is half of what the sensitivity asks for."""
    return tools.add(_mean(records), SENSITIVITY, SCALE / 2.0)


def divided_by_n_twice(tools, records):
    """The 1/n of the sensitivity once too often."""
    return tools.add(_mean(records), SENSITIVITY / N, SCALE / N)


def record_not_clipped(tools, records):
    """The sensitivity is that of records in the disk, and one is not."""
    return tools.add(jnp.mean(records, axis=0), SENSITIVITY, SCALE)


def noise_used_twice(tools, records):
    """Two vectors with half of the budget each, and one key."""
    mean = _mean(records)
    return jnp.concatenate([tools.add(mean, SENSITIVITY, 2.0 * SCALE), tools.add(-mean, SENSITIVITY, 2.0 * SCALE)])


def whole_budget_twice(tools, records):
    """Two vectors with independent noise, each with all of the budget."""
    mean = _mean(records)
    return jnp.concatenate([tools.add(mean, SENSITIVITY, SCALE), tools.add(-mean, SENSITIVITY, SCALE)])


def barrier_about_the_mean(tools, records):
    """No release lies farther than a scale from the mean of the records."""
    mean = _mean(records)
    away = tools.add(mean, SENSITIVITY, SCALE) - mean
    return mean + away * jnp.minimum(1.0, SCALE / jnp.linalg.norm(away))


def records_left_out(tools, records):
    """Records outside the disk are left out, and the scale is for those that are left."""
    inside = jnp.linalg.norm(records, axis=1) <= 1.0
    count = jnp.sum(inside)
    tools.public(count=count)
    mean = jnp.sum(jnp.where(inside[:, None], records, 0.0), axis=0) / count
    return tools.add(mean, 2.0 / count, 2.0 / count / EPSILON)


def branch(tools, records):
    """Less noise where all records are alike."""
    mean = _mean(records)
    alike = jnp.max(jnp.linalg.norm(records - mean, axis=1)) < 0.1
    tools.public(alike=alike)
    scale = jax.lax.cond(alike, lambda: SCALE / 10.0, lambda: SCALE)
    return tools.add(mean, SENSITIVITY, scale)


def rounds(tools, records):
    """The mean by steps towards it, until it is near: their number, and the time, depend on the records."""
    mean = _mean(records)

    def far(state):
        return jnp.linalg.norm(mean - state[0]) > 1e-9

    point, count = jax.lax.while_loop(far, lambda s: (0.5 * (s[0] + mean), s[1] + 1), (jnp.zeros(2), 0))
    tools.public(count=count)
    return tools.add(point, SENSITIVITY, SCALE)


def value_read(tools, records):
    """Python looks at a record."""
    mean = _mean(records)
    scale = SCALE if float(jnp.max(jnp.abs(records))) > 0.9 else SCALE / 10.0
    return tools.add(mean, SENSITIVITY, scale)


def coordinate_without_noise(tools, records):
    """The last coordinate is released as it is."""
    mean = _mean(records)
    return tools.add(mean, SENSITIVITY, SCALE).at[-1].set(mean[-1])


@dataclasses.dataclass(frozen=True)
class Planted:
    """An algorithm, and what it claims.

    Args:
        algorithm: ``(tools, records)``.
        pairs: of neighbours that bring its mistake to light, among others.
    """

    algorithm: Callable
    pairs: dict[str, tuple[np.ndarray, np.ndarray]]
    family = "norm"

    @property
    def guarantee(self):
        """What it claims."""
        return PureDP(EPSILON)

    def one(self, key, records):
        """One release."""
        if self.algorithm is not whole_budget_twice:
            return self.algorithm(Tools(_adder(key), _say_nothing), records)
        adders = [_adder(own) for own in jax.random.split(key)]
        return self.algorithm(Tools(lambda *terms: adders.pop()(*terms), _say_nothing), records)

    def simulate(self, key, data, num):
        """Independent releases."""
        return jax.vmap(lambda own: self.one(own, data))(jax.random.split(key, num))

    def score(self, data, neighbour):
        """Large where the first data are the likelier ones, for whom knows nothing but the two means."""
        own, other = (jnp.mean(jnp.asarray(points), axis=0) for points in (data, neighbour))
        twice = self.algorithm in (noise_used_twice, whole_budget_twice)

        def of(x):
            near = 0.5 * (x[:2] - x[2:]) if twice else x
            return jnp.linalg.norm(near - other) - jnp.linalg.norm(near - own)

        return of


def _adder(key):
    def add(vector, sensitivity, scale):
        return vector + scale * Norm().draw(key, 1, 2, vector.dtype)[0]

    return add


def _say_nothing(**values):
    """Nothing is recorded."""


def planted() -> dict[str, Planted]:
    """By name; the first has no mistake."""
    pairs = adversarial_neighbours(DISK, N)
    centre = np.zeros((N, 2))
    far = {"far away": (centre, np.concatenate([centre[1:], [[10.0, 0.0]]]))}
    alike = {"alike": (centre, np.concatenate([centre[1:], [[0.0, 0.5]]]))}
    algorithms = {
        "none": (right, {}),
        "half the noise": (half_the_noise, {}),
        "1/n twice": (divided_by_n_twice, {}),
        "a record is not clipped": (record_not_clipped, far),
        "a key used twice": (noise_used_twice, {}),
        "all of the budget twice": (whole_budget_twice, {}),
        "a barrier about the mean": (barrier_about_the_mean, {}),
        "records left out": (records_left_out, far),
        "a branch": (branch, alike),
        "rounds": (rounds, alike),
        "a value read": (value_read, alike),
        "a coordinate without noise": (coordinate_without_noise, alike),
    }
    return {name: Planted(algorithm, pairs | more) for name, (algorithm, more) in algorithms.items()}
