"""Exact sampling on a manifold by rejection from a radial envelope (docs/mathematics.md, section 6).

The target has density exp(-psi(x)/sigma), restricted to a ball or not, where psi(x) >= G(dist(c, x)) for a
centre c and a certified growth G. A proposal is x = exp_c(T v): v a direction, T from the radial envelope;
it is accepted with probability target/envelope <= 1. Accepted proposals are independent and have exactly
the target law: no burn-in, no approximation beyond floating point.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxgeodp.bounds import largest_support
from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.samplers.direction import DirectionLaw, direction_law, exit_distance, propose_direction
from jaxgeodp.samplers.envelope import RadialEnvelope, as_function, radial_envelope
from jaxgeodp.samplers.squeeze import Squeeze
from jaxgeodp.samplers.squeeze import accepted as accepted_by_bounds
from jaxgeodp.samplers.thinning import Thinning
from jaxgeodp.samplers.thinning import accepted as accepted_by_few

# Proposals after which a draw is given up (the result is NaN and `complete` False, never a wrong law).
_PROPOSAL_LIMIT = 20_000_000
_LARGEST_BLOCK = 16_384


class Draws(NamedTuple):
    """Result of `rejection_sample`."""

    points: jax.Array  #: (num, \*shape); NaN where ``complete`` is False
    acceptance: jax.Array  #: share of the proposals that were accepted
    proposals: jax.Array  #: number of proposals made
    complete: jax.Array  #: whether all draws were found within the proposal limit

    def mapped(self, function) -> "Draws":
        """Return the draws under a function of points; missing ones stay NaN."""
        values = jax.vmap(function)(self.points)
        found = jnp.all(jnp.isfinite(self.points), axis=tuple(range(1, self.points.ndim)))
        return self._replace(points=jnp.where(found.reshape(-1, *(1,) * (values.ndim - 1)), values, jnp.nan))


def first_complete(draw: Callable[[], Draws]):
    """Return the first point of the first complete draws: giving up would be an uncovered extra output.

    How often ``draw`` is called depends on the data: for data at opposite ends of a large ball in high dimension it may
    take hours.
    """
    draws = draw()
    while not bool(draws.complete):
        draws = draw()
    # In NumPy: after a charge nothing is compiled.
    return np.asarray(draws.points)[0]


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["center", "radial", "direction", "support"],
    meta_fields=["manifold"],
)
@dataclasses.dataclass(frozen=True)
class Proposal:
    """Proposal law: a radial envelope about a centre, and directions if the support is a ball."""

    manifold: Manifold
    center: jax.Array
    radial: RadialEnvelope
    direction: DirectionLaw | None
    support: GeodesicBall | None

    def draw(self, key) -> "Proposed":
        """Draw one proposal."""
        manifold, center = self.manifold, self.center
        if self.direction is None or self.support is None:
            direction_key, radius_key = jax.random.split(key)
            uniform = jax.random.uniform(radius_key, (), self.radial.knots.dtype)
            normal = manifold.random_tangent(direction_key, center)
            unit = normal / manifold.norm(center, normal)
            radius, log_envelope = self.radial.radius_at(uniform * jnp.sum(self.radial.masses))
            log_weight = 0.0
        else:
            unit, angle, log_weight, uniform = propose_direction(key, manifold, center, self.direction)
            mass = self.radial.mass_below(exit_distance(self.support, self.direction.offset, angle))
            radius, log_envelope = self.radial.radius_at(uniform * mass)
            log_weight = log_weight + jnp.log(mass)
        tangent = radius * unit
        # Density of the proposal in polar coordinates, against the target's t^{d-1} |det d exp|.
        log_volume = manifold.log_det_exp(center, tangent) + (manifold.dim - 1) * jnp.log(radius)
        return Proposed(manifold.exp(center, tangent), tangent, radius, log_envelope - log_volume - log_weight)


class Proposed(NamedTuple):
    """A point x = exp_c(v)."""

    point: jax.Array
    tangent: jax.Array  #: v
    distance: jax.Array  #: the length of v
    log_envelope: jax.Array  #: log density of the envelope


def make_proposal(manifold: Manifold, center, growth, scale, support: GeodesicBall | None) -> Proposal:
    """Return the proposal for exp(-psi/scale) with psi >= growth(distance from ``center``)."""
    check_facts(manifold, support)
    if support is None:
        radial = radial_envelope(manifold, growth, scale, manifold.diameter)
        return Proposal(manifold, center, radial, None, None)
    tangent = manifold.log(center, jnp.asarray(support.center, center.dtype))
    offset = manifold.norm(center, tangent)
    radial = radial_envelope(manifold, growth, scale, offset + support.radius)
    # A line has two directions only; there is no law of angles to draw from.
    direction = None if manifold.dim == 1 else direction_law(support, center, radial)
    return Proposal(manifold, center, radial, direction, support)


def check_facts(manifold, support):
    """Refuse manifolds that lack the facts needed for valid proposals, and balls that are not convex."""
    if not (math.isfinite(manifold.volume_growth) and manifold.injectivity_radius > 0):
        raise InputError(f"{manifold}: define its curvature_bounds and injectivity_radius to sample it.")
    if support is not None:
        limit = largest_support(support)
        # Inside a compiled program the radius is not known: see `rejection_sample`.
        if not isinstance(support.radius, Tracer) and not support.radius < limit:
            raise InputError(f"the support's radius {support.radius:g} must be below {limit:.6g} on {manifold}.")
    elif manifold.diameter > manifold.injectivity_radius and type(manifold).log_det_exp is Manifold.log_det_exp:
        raise InputError(
            f"{manifold}: its diameter exceeds its injectivity radius, so define log_det_exp, minus infinity where "
            "geodesics are not minimal, to sample all of it."
        )


def rejection_sample(
    key: jax.Array,
    manifold: Manifold,
    log_density: Callable | Thinning | Squeeze | None,
    center: jax.Array,
    slope,
    scale,
    num: int,
    *,
    support: GeodesicBall | None = None,
    block: int | None = None,
    proposal_limit: int = _PROPOSAL_LIMIT,
) -> Draws:
    """Return independent exact draws from ``exp(log_density)`` with respect to the volume measure.

    By rejection from a radial envelope (docs/mathematics.md, section 6). The caller certifies
    ``log_density(x) <= -G(dist(center, x)) / scale`` on the support, where G is ``slope * t`` or, if ``slope`` is a
    function, ``slope(t)``, which is concave. The certificate is what makes the law exact; a slope that is too steep
    gives a wrong law, one that is too flat only costs proposals.

    Args:
        key: JAX random key.
        manifold: that of the points, with known ``curvature_bounds`` and ``injectivity_radius``.
        log_density: unnormalised log density of one point; minus infinity outside the support. None for
            ``-G(dist(center, x)) / scale`` itself: the distance is then the one that was proposed, which is
            right even where it could not be computed back from x (matrices of condition above 1e16). A
            `jaxgeodp.samplers.thinning.Thinning` where a few records are to decide on each proposal, a
            `jaxgeodp.samplers.squeeze.Squeeze` where bounds are to decide on most of them.
        center: centre of the envelope, shape ``manifold.shape``; inside the support if there is one.
        slope: m > 0, or a concave function of the distance (needs a bounded manifold or a support).
        scale: sigma > 0.
        num: number of draws.
        support: the ball outside which the density vanishes, or None for the whole manifold.
        block: proposals made at a time (default: about twice ``num``, between 8 and 4096; of more than 8000 draws half
            of ``num``, up to 16,384).
        proposal_limit: proposals after which the remaining draws are given up, as NaN.

    Raises:
        ValueError: the manifold leaves facts unknown that exactness needs, or the support is no convex ball.

    Returns:
        `Draws`. Under `jax.vmap` over data sets every lane waits for the slowest; use small blocks there.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jaxgeodp import Sphere
        >>> from jaxgeodp.samplers import rejection_sample
        >>> sphere, pole = Sphere(2), jnp.array([0.0, 0.0, 1.0])
        >>> draws = rejection_sample(
        ...     jax.random.key(0), sphere, lambda x: -sphere.dist(pole, x) / 0.1, pole, 1.0, 0.1, 1000)
        >>> draws.points.shape
        (1000, 3)
    """
    block = default_block(num) if block is None else block
    limit: int | jax.Array = proposal_limit
    if support is not None and isinstance(support.radius, Tracer):
        # A radius that only the compiled program knows: outside the theorem nothing is drawn.
        limit = jnp.where(support.radius < largest_support(support), proposal_limit, 0)
    proposal = make_proposal(manifold, center, slope, scale, support)
    growth = as_function(slope)

    def inside(points):
        return True if support is None else jax.vmap(support.contains)(points)

    def accepts(key, points, tangents, distances, log_envelope):
        if isinstance(log_density, Thinning):
            log_limit = jnp.where(inside(points), log_envelope, jnp.inf)
            return accepted_by_few(key, log_density, points, tangents, distances, log_limit)
        log_uniforms = _log_uniforms(key, log_envelope)
        if isinstance(log_density, Squeeze):
            log_limit = jnp.where(inside(points), log_envelope, jnp.inf)
            return accepted_by_bounds(log_density, log_uniforms, points, tangents, distances, log_limit)
        if log_density is None:
            log_values = jax.vmap(lambda t: -growth(t) / scale)(distances)
        else:
            log_values = jax.vmap(log_density)(points)
        return log_uniforms <= jnp.where(inside(points), log_values, -jnp.inf) - log_envelope

    return _collect(key, proposal, accepts, num, block, limit)


def first_of_fixed_number(key, manifold, log_target, center, growth, scale, reach, count, block=1024):
    """Return the first accepted of a fixed number of proposals, and whether one exists; no data change the work.

    Directions are uniform and distances at most ``reach``, so that the proposal law depends on data by ``center`` only.

    Args:
        log_target: ``(point, distance from the centre) -> log density``, minus infinity outside the support.
        growth, scale: as for `rejection_sample`, public.
        count: number of proposals, rounded up to whole blocks.
    """
    check_facts(manifold, None)
    proposal = Proposal(manifold, center, radial_envelope(manifold, growth, scale, reach), None, None)

    def one_block(index, state):
        chosen, found = state
        keys = jax.random.split(jax.random.fold_in(key, index), block + 1)
        candidates, _, distances, log_envelope = jax.vmap(proposal.draw)(keys[1:])
        log_ratio = jax.vmap(log_target)(candidates, distances) - log_envelope
        accept = _log_uniforms(keys[0], log_ratio) <= log_ratio
        first = candidates[jnp.argmax(accept)].astype(center.dtype)
        return jnp.where(found, chosen, first), found | jnp.any(accept)

    blocks = math.ceil(count / block)
    return jax.lax.fori_loop(0, blocks, one_block, (center, jnp.asarray(False)))


def default_block(num: int, row_cost: int = 1) -> int:
    """Return proposals per round for ``num`` draws, with ``row_cost`` numbers per target evaluation.

    Of many draws a little more than half, as two rounds are enough where nearly all are accepted; larger blocks keep
    more cores busy.
    """
    few = min(max(8, 2 * num), max(4096, math.ceil(0.55 * num)), _LARGEST_BLOCK)
    return min(few, max(1, 4_000_000 // max(row_cost, 1)))


def _log_uniforms(key, like):
    """Return logs of uniforms, below a log ratio with the ratio's probability."""
    # 1 - uniform lies in (0, 1]: a zero density is never accepted.
    return jnp.log1p(-jax.random.uniform(key, like.shape, like.dtype))


def _collect(key, proposal, accepts, num, block, proposal_limit):
    """Run rounds of proposals; write accepted ones to the next free places, in order."""
    dtype = proposal.center.dtype
    shape = proposal.manifold.shape
    columns = (1,) * len(shape)

    def unfinished(state):
        _, accepted, rounds = state
        return (accepted < num) & (rounds * block < proposal_limit)

    def one_block(state):
        points, accepted, rounds = state
        keys = jax.random.split(jax.random.fold_in(key, rounds), block + 1)
        candidates, tangents, distances, log_envelope = jax.vmap(proposal.draw)(keys[1:])
        accept = accepts(keys[0], candidates, tangents, distances, log_envelope)
        place = jnp.where(accept, accepted + jnp.cumsum(accept, dtype=jnp.int32) - 1, num)
        points = points.at[place].set(candidates.astype(dtype), mode="drop")
        return points, accepted + jnp.sum(accept, dtype=jnp.int32), rounds + 1

    start = (jnp.zeros((num, *shape), dtype), jnp.int32(0), jnp.int32(0))
    points, accepted, rounds = jax.lax.while_loop(unfinished, one_block, start)
    proposals = rounds * block
    found = (jnp.arange(num) < accepted).reshape(-1, *columns)
    points = jnp.where(found, points, jnp.nan)
    return Draws(points, accepted / proposals, proposals, accepted >= num)
