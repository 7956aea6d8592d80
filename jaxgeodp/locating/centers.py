"""How a centre follows from records in a ball: from their noisy mean in integers, or as an exact draw at their mean.

The first needs no number but integers to see the records, and is the only one on compact parts, where it has no centre
to begin with. Across the direction of a mean at distance z from the last centre its noise grows like sinh(z)/z where
curvature is -1. The second is a release of `LaplaceMechanism` or `RiemannianGaussian`, whose noise does not grow.
"""

import abc
import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.bounds.gibbs import hadamard_scale
from jaxgeodp.bounds.rounding import of_computed_mean
from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.compiling import compiled_ahead, compiled_in_blocks
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.locating.parts import Part, moved, origin_of, vectors
from jaxgeodp.locating.tree_mean import joins_in_a_row, tree_mean
from jaxgeodp.mechanisms.calibrated import terms_of
from jaxgeodp.mechanisms.gaussian import gaussian_law
from jaxgeodp.mechanisms.laplace import Distance, LaplaceMechanism
from jaxgeodp.nested_lists import plain_number, to_lists
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.entropy import public_key, system_key
from jaxgeodp.privacy.guarantee import GaussianDP, PureDP
from jaxgeodp.pytrees import Pytree
from jaxgeodp.releases.density import DensityLaw, check_existence
from jaxgeodp.samplers.discrete import discrete_gaussian, discrete_laplace
from jaxgeodp.samplers.rejection import first_complete

# Proposals at a time.
_BLOCK = 256
# Of refusals, and of records.
_DRAWN = "LocatedMechanism"
_LAPLACE = "Reimherr et al. 2021, Theorem 1, for a tree mean: docs/mathematics.md, section 16"
_GAUSSIAN = "docs/mathematics.md, Theorem P, for a tree mean: section 16"


class Noise(NamedTuple):
    """Discrete noise of one stage: Laplace scale, or Gaussian sigma, in integers."""

    scale: int
    gaussian: bool = False

    def length(self, dim: int) -> float:
        """Return the root mean square length of a vector of such noise."""
        return self.scale * math.sqrt(dim if self.gaussian else 2.0 * dim)


class Found(NamedTuple):
    """A centre that is released, and what the record says of the stage."""

    center: Any
    entry: dict


#: Of the last centre, the radius of the ball about it, and the records.
Finder = Callable[[Any, float, Any], Found]


class Center(abc.ABC):
    """A stage that finds a centre; public numbers only."""

    @abc.abstractmethod
    def finder(self, owner: str, shape: jax.ShapeDtypeStruct) -> Finder:
        """Return a compiled function that finds the centre in a release."""

    @abc.abstractmethod
    def simulated(self, key: jax.Array, center: jax.Array, radius: jax.Array, records: jax.Array) -> jax.Array:
        """Return what finds it in a simulation."""


@dataclasses.dataclass(frozen=True)
class Summed(Center, Pytree, leaves=("noise",)):
    """The mean of integer vectors, with exact noise of integers."""

    part: Part
    noise: Noise

    @override
    def finder(self, owner, shape):
        sums, noisy = self.sums(owner, shape), self.noisy(owner, shape.shape[0])
        return lambda center, radius, records: noisy(center, radius, sums(center, radius, records))

    def sums(self, owner, shape) -> Callable[[Any, float, Any], np.ndarray]:
        """Return a compiled function from centre, radius and records to the sum of integer vectors."""
        given = self.part, origin_of(self.part), jax.ShapeDtypeStruct((), np.float64), shape
        vectors_of = compiled_in_blocks(owner, vectors, *given)
        return lambda center, radius, records: grid.sum_on_grid(vectors_of(center, np.float64(radius), records), 1.0)

    def noisy(self, owner, n: int) -> Callable[[Any, float, np.ndarray], Found]:
        """Return a compiled function from centre, radius and the sum for n records to the centre released (`Found`)."""
        part, noise = self.part, self.noise
        mean = jax.ShapeDtypeStruct((part.vector_length,), np.float64)
        radius = jax.ShapeDtypeStruct((), np.float64)
        center_of = compiled_ahead(owner, moved, part, origin_of(part), radius, mean)
        discrete = discrete_gaussian if noise.gaussian else discrete_laplace

        def find(center, radius, steps):
            total = grid.with_noise(discrete, steps, noise.scale)
            found = center_of(center, np.float64(radius), total / (grid.STEPS * n))
            return Found(found, {"center": to_lists(found), "scale": noise.scale, "noise": discrete.__name__})

        return find

    @override
    def simulated(self, key, center, radius, records):
        draws = (draw(key, (self.part.vector_length,)) for draw in (jax.random.normal, jax.random.laplace))
        shift = self.noise.scale / grid.STEPS / records.shape[0] * jnp.where(self.noise.gaussian, *draws)
        mean = jnp.mean(vectors(self.part, center, radius, records), axis=0)
        return moved(self.part, center, radius, mean + shift)


@dataclasses.dataclass(frozen=True, eq=False)
class Drawn(Center, Pytree, leaves=("laws",)):
    """A draw about the tree mean of the clipped records, whose sensitivity is that of their Frechet mean."""

    part: Part
    radii: tuple[float, ...]
    laws: tuple[DensityLaw, ...]  #: of each radius

    @override
    def finder(self, owner, shape):
        program = compiled_ahead(owner, _drawn, self.part, self.laws[0], public_key(), shape)

        def find(center, radius, records):
            law = self.laws[self.radii.index(radius)]
            own = _about(law, center, radius, law.scale)
            point = first_complete(lambda: program(own, system_key(), records))
            found = point if np.all(np.isfinite(point)) else np.asarray(center)
            return Found(found, {"center": to_lists(found), "scale": plain_number(law.scale)} | _told(law))

        return find

    @override
    def simulated(self, key, center, radius, records):
        scale = jnp.asarray([law.scale for law in self.laws])[jnp.searchsorted(jnp.asarray(self.radii), radius)]
        point = _drawn(self.part, _about(self.laws[0], center, radius, scale), key, records).points[0]
        return jnp.asarray(jnp.where(jnp.all(jnp.isfinite(point)), point, center))


def _told(law: DensityLaw) -> dict:
    """Return the release-record entries of a drawn centre."""
    terms = law.terms
    return {
        "noise": terms.mechanism,
        "mu" if isinstance(terms.guarantee, GaussianDP) else "epsilon": terms.strength,
        "sensitivity": {"value": plain_number(terms.sensitivity), "formula": terms.formula},
        "theorem": terms.theorem,
        "sampler": terms.sampler,
    }


def _about(law: DensityLaw, center, radius, scale) -> DensityLaw:
    ball = GeodesicBall.tree_unflatten(law.ball.manifold, (center, radius))
    return dataclasses.replace(law, ball=ball, scale=scale)


@functools.partial(jax.jit, static_argnums=0)
def _drawn(part, law, key, records):
    home, points, back = law.at_home(jax.vmap(part.of)(records))
    return home.draws(key, points, tree_mean(part.manifold, points), 1, _BLOCK).mapped(back)


def drawn_law(part: Part, promise: PureDP | GaussianDP, radius: float, n: int) -> DensityLaw:
    """Return the law of a draw about the origin of a part without end: of Laplace's kind, or a Gaussian one.

    The sensitivity is that of the Frechet mean. Supposed is dim times the rounding of a mean of as many terms as are
    joined in a row, dim for what eigenvectors of large matrices lose (docs/mathematics.md, section 16).

    Raises:
        ValueError: it does not exist, or double precision cannot hold what is drawn.
    """
    ball = GeodesicBall(part.manifold, part.manifold.origin, radius)
    exact = Sensitivity(2.0 * radius / n, "2 r/n")
    sensitivity = of_computed_mean(exact, ball, joins_in_a_row(n) * part.manifold.dim**2)
    if isinstance(promise, GaussianDP):
        scale = hadamard_scale(promise.mu, sensitivity.value, part.manifold.ricci_bound)
        return gaussian_law(ball, promise, n, sensitivity, scale, _GAUSSIAN)
    scale = (1.0 if part.manifold.homogeneous else 2.0) * sensitivity.value / promise.epsilon
    check_existence(_DRAWN, ball, n, promise.epsilon, scale, None)
    mechanism = LaplaceMechanism(ball, promise.epsilon)
    law = DensityLaw(Distance(mechanism.statistic), ball, scale, None, terms_of(mechanism, n, sensitivity, _LAPLACE))
    law.check()
    law.target.check(law)
    return law


def drawn_center(part: Part, promise: PureDP | GaussianDP, radii: list[float], n: int) -> Drawn:
    """Return the stage for n records, and for balls of these radii, ascending.

    Raises:
        ValueError: see `drawn_law`.
    """
    return Drawn(part, tuple(radii), tuple(drawn_law(part, promise, radius, n) for radius in radii))
