"""Generators of synthetic data in a public ball: the papers', and hooked outlines.

Record i of a replicate depends on the replicate's key and i alone, not on how many there are: JAX's random bits at an
index of an array depend on the key and the index, and redrawn records come from a stream that does not know the count.
"""

import abc
import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.manifolds import SPD
from jaxgeodp.manifolds.manifold import Manifold, real_dtype
from jaxgeodp.pytrees import Pytree

_CURVE_NODES = 96
# Matrices drawn at a time, whatever the number of records is: record i is the i-th of the stream inside the ball.
_ATTEMPTS = 256


@dataclasses.dataclass(frozen=True, eq=False)
class Generator(Pytree, abc.ABC):
    """A law of independent records in a public ball.

    Args:
        ball: the public ball.
    """

    ball: GeodesicBall

    @abc.abstractmethod
    def records(self, key, count: int) -> jax.Array:
        """Return the first ``count`` records of the data set with this key, (count, \\*shape).

        Args:
            key: JAX random key; record i depends on the key and i alone.
            count: how many.
        """

    def _point(self):
        """Return the centre in the current precision."""
        kind = complex if self.ball.manifold.dtype_kind == "complex" else float
        return jnp.asarray(self.ball.center, jnp.result_type(kind))


@dataclasses.dataclass(frozen=True, eq=False)
class PolarData(Generator):
    """Uniform directions and uniform distances in [0, r] from the centre (Soto et al. 2022, supplement 2.4.1).

    Args:
        ball: the public ball, on any manifold.
    """

    @override
    def records(self, key, count):
        manifold, center = self.ball.manifold, self._point()
        direction_key, length_key = jax.random.split(key)
        dtype = real_dtype(center)
        lengths = self.ball.radius * jax.random.uniform(length_key, (count,), dtype)
        if manifold.dim == 2:
            angle = 2.0 * math.pi * jax.random.uniform(direction_key, (count,), dtype)
            units = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
        else:
            normals = jax.random.normal(direction_key, (count, manifold.dim), dtype)
            units = normals / jnp.linalg.norm(normals, axis=1, keepdims=True)
        frame = manifold.frame(center)
        return jax.vmap(lambda u: manifold.exp(center, manifold.combine(u, frame)))(lengths[:, None] * units)


@dataclasses.dataclass(frozen=True, eq=False)
class WishartData(Generator):
    """Wishart matrices W(I/k, k), conditioned on the ball around I (Soto et al. 2022, supplement 2.3.1).

    Args:
        ball: a ball of symmetric positive definite matrices.

    Raises:
        ValueError: the ball is not one of symmetric positive definite matrices.
    """

    def __post_init__(self):
        if self.ball.manifold != SPD(self.ball.manifold.shape[0]):
            raise InputError(f"data 'wishart' need an SPD manifold, got {self.ball.manifold}.")

    @override
    def records(self, key, count):
        size, dtype = self.ball.manifold.shape[0], self._point().dtype

        def attempt(state):
            number, filled, points = state
            normals = jax.random.normal(jax.random.fold_in(key, number), (_ATTEMPTS, size, size), dtype)
            candidates = normals @ jnp.swapaxes(normals, 1, 2) / size
            # A matrix too near to singular has no finite distance: not inside.
            inside = jax.vmap(self.ball.contains)(candidates)
            places = filled + jnp.cumsum(inside) - 1
            points = points.at[jnp.where(inside, places, count)].set(candidates, mode="drop")
            return number + 1, filled + jnp.sum(inside), points

        start = 0, 0, jnp.zeros((count, size, size), dtype)
        return jax.lax.while_loop(lambda state: state[1] < count, attempt, start)[2]


@dataclasses.dataclass(frozen=True, eq=False)
class OutlineData(Generator):
    """Bent outlines with a thick, hooked front and a thick back, resembling the corpus callosum.

    Landmarks are equispaced along the outline. Bend, hook, lengths and widths vary from record to record, and every
    outline is turned by an angle of its own, as pictures of different people are.

    Args:
        ball: a ball of planar shapes, best around `template`.

    Raises:
        ValueError: the ball is not one of planar shapes.
    """

    def __post_init__(self):
        if self.ball.manifold.landmark_dimension != 2:
            raise InputError(f"data 'outlines' need planar shapes, got {self.ball.manifold}.")

    @staticmethod
    def template(manifold: Manifold) -> jax.Array:
        """Return the outline without variation, a public centre."""
        return manifold.project(_outline(jnp.zeros(_OUTLINE_PARAMETERS), manifold.shape[0]))

    @override
    def records(self, key, count):
        manifold, center = self.ball.manifold, self._point()
        (landmarks,) = manifold.shape
        shape_key, angle_key = jax.random.split(key)
        normals = jax.random.normal(shape_key, (count, _OUTLINE_PARAMETERS), real_dtype(center))
        angles = jax.random.uniform(angle_key, (count,), real_dtype(center), -math.pi, math.pi)

        def record(normal, angle):
            # Tails are cut: no outline crosses itself.
            shape = manifold.project(_outline(2.0 * jnp.tanh(normal / 2.0), landmarks)).astype(center.dtype)
            return self.ball.pull_inside(shape) * jax.lax.complex(jnp.cos(angle), jnp.sin(angle))

        return jax.vmap(record)(normals, angles)


_OUTLINE_PARAMETERS = 8


def _outline(z, landmarks):
    """Return landmarks (k,), complex, of the outline with standardised parameters z."""
    bend, hook, back, front_width, waist, back_width, front_place, wave = z
    s = jnp.linspace(0.0, 1.0, _CURVE_NODES, dtype=z.dtype)

    def bump(place, width):
        return jnp.exp(-0.5 * ((s - place) / width) ** 2)

    # The medial line turns sharply in the hook, little along the body, and again at the back.
    genu = 0.15 + 0.02 * front_place
    turning = (
        (2.3 + 0.45 * hook) * bump(genu, 0.055) / (0.055 * math.sqrt(2.0 * math.pi))
        + 0.9
        + 0.55 * bend
        + (0.5 + 0.35 * back) * bump(0.9, 0.07) / (0.07 * math.sqrt(2.0 * math.pi))
        + 0.8 * wave * jnp.sin(4.0 * jnp.pi * s)
    )
    angle = 2.9 - jnp.cumsum(turning) / _CURVE_NODES
    direction = jax.lax.complex(jnp.cos(angle), jnp.sin(angle))
    medial = jnp.cumsum(direction) / _CURVE_NODES
    width = (
        0.022 * (1.0 + 0.3 * waist)
        + 0.032 * (1.0 + 0.35 * front_width) * bump(genu + 0.06, 0.07)
        + 0.03 * (1.0 + 0.35 * back_width) * bump(0.94, 0.07)
    )
    # Thinner towards the tip of the hook, and rounded ends.
    width = width * (0.35 + 0.65 * jax.nn.sigmoid((s - 0.08) / 0.03)) * jnp.sqrt(1.0 - (2.0 * s - 1.0) ** 16)
    side = 1j * direction * width
    closed = jnp.concatenate([medial + side, (medial - side)[::-1]])
    closed = jnp.concatenate([closed, closed[:1]])
    length = jnp.concatenate([jnp.zeros(1, z.dtype), jnp.cumsum(jnp.abs(jnp.diff(closed)))])
    at = length[-1] * jnp.arange(landmarks, dtype=z.dtype) / landmarks
    return jax.lax.complex(jnp.interp(at, length, closed.real), jnp.interp(at, length, closed.imag))


@dataclasses.dataclass(frozen=True, eq=False)
class ResampledData(Generator):
    """Records drawn with replacement from given ones, such as scikit-learn's digits.

    Args:
        ball: the public ball.
        points: (m, \\*shape); clipped into the ball.
    """

    points: jax.Array | np.ndarray

    def __post_init__(self):
        with jax.enable_x64(True):
            object.__setattr__(self, "points", jax.jit(self.ball.clip)(self.points))

    @override
    def records(self, key, count):
        return self.points[jax.random.randint(key, (count,), 0, self.points.shape[0])]


GENERATORS = {"polar": PolarData, "wishart": WishartData, "outlines": OutlineData}
