"""The parts of a manifold whose centres are sought in one way, and what is computed of each record for that.

Where curvature is nowhere positive, a centre is the point of a mean of logarithms about an earlier centre. On compact
manifolds it is the point whose extrinsic vector is nearest to the mean of those of the records. A product of both has
two parts.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.manifolds import Manifold
from jaxgeodp.manifolds.manifold import real_dtype
from jaxgeodp.manifolds.product import assembled, coordinates_of, factors_of, with_factors


@dataclasses.dataclass(frozen=True)
class Part:
    """A manifold, or some factors of a product; hashable: programs are compiled for it.

    Attributes:
        whole: the manifold that it is a part of.
        places: of its factors.
    """

    whole: Manifold
    places: tuple[int, ...]

    @property
    def manifold(self) -> Manifold:
        """Return the manifold of the part."""
        return with_factors(self.whole, self.places) if len(self.places) < len(factors_of(self.whole)) else self.whole

    @property
    def open(self) -> bool:
        """Whether its curvature is nowhere positive, so that it has no end; else it is compact."""
        return _is_open(self.manifold)

    @property
    def vector_length(self) -> int:
        """Return the length of the vectors whose mean gives the centre."""
        if self.open:
            return self.manifold.dim
        origin = jnp.asarray(self.manifold.origin)
        return jax.eval_shape(self.manifold.extrinsic, origin).shape[0]

    def of(self, record):
        """Return the part's share of a record, or of a point, of the whole."""
        return record if self.manifold is self.whole else coordinates_of(self.whole, self.places, record)


def whole(manifold: Manifold) -> Part:
    """Return all of a manifold."""
    return Part(manifold, tuple(range(len(factors_of(manifold)))))


def parts_of(manifold: Manifold) -> tuple[Part, ...]:
    """Return the parts, those without end first.

    Raises:
        ValueError: a manifold with no way of finding a centre.
    """
    if _is_open(manifold) or manifold.extrinsic_radius is not None:
        return (whole(manifold),)
    factors = factors_of(manifold)
    if len(factors) < 2 or not all(_is_open(factor) or factor.extrinsic_radius is not None for factor in factors):
        raise InputError(
            f"LocatedMechanism: cannot find a centre on {manifold}, which is bounded and has no extrinsic vectors "
            "(Manifold.extrinsic); give a public ball."
        )
    kinds = [tuple(place for place, own in enumerate(factors) if _is_open(own) is kind) for kind in (True, False)]
    return tuple(Part(manifold, places) for places in kinds)


def joined(parts: tuple[Part, ...], centers) -> jax.Array:
    """Return the point of the whole with these parts."""
    if len(parts) == 1:
        return centers[0]
    return assembled(parts[0].whole, [(part.places, center) for part, center in zip(parts, centers, strict=True)])


def _is_open(manifold):
    return manifold.curvature_bounds[1] <= 0.0 and math.isinf(manifold.injectivity_radius)


# Of each record on its own --------------------------------------------------------------------------------


@functools.partial(jax.jit, static_argnums=0)
def distances(part: Part, center: jax.Array, records: jax.Array) -> jax.Array:
    """Distances (n,) of records from a centre; infinite for one that is no point."""
    manifold = part.manifold
    home = manifold.home(center)

    def distance(record):
        own = part.of(record)
        valid = manifold.admissible(own)
        point = manifold.project(jnp.where(valid, own, center))
        length = manifold.dist(home, manifold.to_home(center, point))
        return jnp.where(valid & jnp.isfinite(length), length, jnp.inf)

    return jax.vmap(distance)(records)


@functools.partial(jax.jit, static_argnums=0)
def vectors(part: Part, center: jax.Array, radius: jax.Array, records: jax.Array) -> jax.Array:
    """Return the vectors (n, m) whose mean gives the centre, in units of the radius of their ball (length at most 1).

    Coordinates of logarithms at the centre, in the ball of this radius; extrinsic vectors where the part is compact.
    """
    manifold = part.manifold
    if not part.open:
        length = manifold.extrinsic_radius
        assert length is not None

        def extrinsic(record):
            own = part.of(record)
            valid = manifold.admissible(own)
            vector = manifold.extrinsic(manifold.project(jnp.where(valid, own, center)))
            return jnp.where(valid, vector / length, 0.0)

        return jax.vmap(extrinsic)(records)
    ball = GeodesicBall.tree_unflatten(manifold, (center, radius))
    home = manifold.home(center)
    frame = manifold.frame(home)
    points = ball.clip_to_home(jax.vmap(part.of)(records))
    return jax.vmap(lambda x: manifold.coordinates(home, manifold.log(home, x), frame) / radius)(points)


@functools.partial(jax.jit, static_argnums=0)
def moved(part: Part, center: jax.Array, radius: jax.Array, mean: jax.Array) -> jax.Array:
    """Return the centre that follows from a mean of `vectors` with noise; it is shortened to their ball.

    The old centre, where none follows.
    """
    manifold = part.manifold
    mean = mean / jnp.maximum(1.0, jnp.linalg.norm(mean))
    if part.open:
        home = manifold.home(center)
        tangent = manifold.combine(radius * mean, manifold.frame(home))
        point = manifold.from_home(center, manifold.project(manifold.exp(home, tangent.astype(center.dtype))))
    else:
        point = manifold.from_extrinsic(mean)
    point = manifold.project(point)
    return jnp.where(jnp.all(jnp.isfinite(point)), point, center)


def origin_of(part: Part) -> jax.Array:
    """Return where the search begins, in double precision."""
    return jnp.asarray(part.manifold.origin, jnp.result_type(part.manifold.origin, real_dtype(part.manifold.origin)))
