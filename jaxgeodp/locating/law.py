"""The law of a mechanism that finds its own ball: all stages, from the domain to the value.

Radii see a record through integers only: whether it is within some radii of a released centre. Centres see it through
integers, too, a vector in steps of a public grid, or are draws about a mean (`centers`). What follows from the outcome
of a stage is post-processing.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.locating.centers import Center, Drawn, Summed
from jaxgeodp.locating.parts import Part, distances, joined, origin_of, whole
from jaxgeodp.locating.schedule import Schedule, last_radii
from jaxgeodp.locating.walk import Radius, counts_of, place_of, walk
from jaxgeodp.manifolds import Manifold
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.nested_lists import to_lists
from jaxgeodp.pytrees import Pytree
from jaxgeodp.releases.density import DensityLaw
from jaxgeodp.releases.law import Law, PointLaw, Ready, Terms, Told, without_derivatives
from jaxgeodp.releases.limits import check_numbers
from jaxgeodp.releases.record import entries_of_noise, entries_without_noise
from jaxgeodp.releases.ways import Idealized, OnGrid, Way
from jaxgeodp.samplers.above_threshold import first_above_simulated

#: Of the search, for records.
THEOREM = "docs/mathematics.md, section 16"


class Last(NamedTuple):
    """Hold the last release about a centre: its mechanism, and its law for each radius that has one."""

    radii: list[float]
    laws: list[PointLaw]
    mechanism: Callable[[GeodesicBall], BallMechanism]


@dataclasses.dataclass(frozen=True, eq=False)
class LocatedLaw(Law):
    """Represent the law of a release whose ball is searched for: the stages of the search and the last release.

    Attributes:
        manifold: of the records.
        schedule: public numbers of the stages.
        drawn: of each part, the stage whose centre is a draw; None if none is.
        last: of the release.
        n: number of records.
        terms, scale: see `Law`; the scale is that of the largest ball.
    """

    manifold: Manifold
    schedule: Schedule
    drawn: tuple[Drawn | None, ...]
    last: Last
    n: int
    terms: Terms
    scale: Any
    support = None

    @property
    @override
    def rows(self):
        return self.n

    @property
    def order_matters(self):
        """Whether a centre is a draw about a tree mean, which depends on the order of the records."""
        return self.schedule.draws > 0

    @property
    def grid(self):
        """Return how the search and its release are made in integers; None if the last mechanism has no grid."""
        if self.last.laws[-1].grid is None:
            return None

        def ready(shape):
            draw, last = self._draws(shape, OnGrid(), self._centers(0))
            terms = dataclasses.replace(self.terms, theorem=f"{THEOREM}; release: {last.terms.theorem}")
            return Ready(terms, self.scale, last.note, draw, False)

        return ready

    @override
    def ready(self, shape):
        return self._draws(shape, Idealized(), self._centers(self.schedule.draws))[0]

    @override
    def log_density(self, x, records):
        raise InputError(
            f"{self.terms.mechanism}: the density of a value is not known if the ball is found privately; give a "
            "public ball."
        )

    def simulate(self, key, records, num):
        """Return ``num`` independent draws, with floating-point noise in every stage."""
        return self.simulation.simulate(key, records, num)

    @property
    def simulation(self) -> "Simulation":
        """Return the search as a `Simulation`, which can be an argument of a compiled program."""
        first = self.last.laws[0]
        supports = [0.0 if law.support is None else law.support.radius for law in self.last.laws]
        table = first, jnp.asarray([law.scale for law in self.last.laws]), jnp.asarray(supports)
        plan = self.schedule
        tried = tuple(tuple(plan.radii(place)) if part.open else () for place, part in enumerate(plan.parts))
        numbers = _Numbers(tuple(self.last.radii), tried, plan.left_out, plan.counts, plan.last_counts)
        stages = tuple(tuple(map(_in_floats, own)) for own in self._centers(plan.draws))
        return Simulation(self.manifold, plan.parts, plan.rounds, jax.tree.map(float, numbers), stages, table)

    def _centers(self, draws: int) -> tuple[tuple[Center, ...], ...]:
        """Return the stages that find the centre of each part, one per round; ``draws`` of them are draws."""
        plan, stages = self.schedule, []
        for part, noise, drawn in zip(plan.parts, plan.centers, self.drawn, strict=True):
            own: list[Center] = [] if drawn is None else [drawn] * draws
            stages.append((*own, *[Summed(part, noise)] * ((plan.rounds if part.open else 1) - len(own))))
        return tuple(stages)

    def _draws(self, shape, last_way: Way, centers_of: tuple[tuple[Center, ...], ...]):
        """Return what draws a value, and the last release as it is made ready for the largest ball."""
        name, schedule, manifold = self.terms.mechanism, self.schedule, self.manifold
        asked = {part for part in schedule.parts if part.open} | {whole(manifold)}
        counts = {part: counts_of(name, part, shape) for part in asked}
        finders = [_finders(name, shape, own) for own in centers_of]
        radii = self.last.radii
        largest = self.last.mechanism(GeodesicBall(manifold, manifold.origin, radii[-1]))
        law = largest.law(self.n)
        ready = last_way.ready(law, shape)  # whatever can be refused is refused now
        check_numbers(ready.terms, ready.scale, law.size if isinstance(last_way, Idealized) else None)

        def told(question, records):
            if isinstance(question, Radius):
                radius = question.answer(counts[question.part](question.center, records, question.radii))
                return radius, question.entry(radius)
            return finders[question.place][question.round](question.center, question.radius, records)

        def draw(records):
            steps, stages = walk(manifold, schedule, radii, self.n), []
            question = next(steps)
            while True:
                answer, entry = told(question, records)
                stages.append(entry)
                try:
                    question = steps.send(answer)
                except StopIteration as end:
                    return self._released(end.value.center, end.value.radius, records, last_way, shape, stages)

        return draw, ready

    def _released(self, center, radius, records, last_way, shape, stages):
        """The last stage; the centre itself where a ball about it cannot be made, as far out double precision ends."""
        entries = {"stages": stages, "ball": {"center": to_lists(center), "radius": radius}}
        try:
            law = self.last.mechanism(GeodesicBall(self.manifold, center, radius)).law(self.n)
            ready = last_way.ready(law, shape)
        except OSError:  # of a file
            raise
        except Exception:  # of what was released alone; the budget is spent
            nothing = "none: no ball about the centre that was found, which is released"
            return Told(np.asarray(center), entries | entries_without_noise(nothing, self.terms.calibration))
        return Told(np.asarray(ready.draw(records)), entries | entries_of_noise(ready, law.support))


def last_laws(manifold, domains, n, mechanism: Callable[[GeodesicBall], BallMechanism]) -> Last:
    """Return the laws of a release for all radii that have one: from the smallest up to the first that is refused.

    Raises:
        ValueError: the smallest radius is refused.
    """
    radii, laws = [], []
    for radius in last_radii(manifold, domains):
        try:
            law = mechanism(GeodesicBall(manifold, manifold.origin, radius)).law(n)
            law.check()
            if isinstance(law, DensityLaw):
                law.target.check(law)
        except InputError:
            if not laws:
                raise
            break
        if laws and (law.support is None) != (laws[0].support is None):
            break  # another program
        radii.append(radius)
        laws.append(law)
    return Last(radii, laws, mechanism)


def _in_floats(center: Center) -> Center:
    """Return the stage with its noise scale as a float: single-precision integers cannot hold these scales."""
    if isinstance(center, Summed):
        return dataclasses.replace(center, noise=center.noise._replace(scale=float(center.noise.scale)))
    return center


def _finders(name, shape, centers):
    """What finds the centre in each round; a stage of several rounds is compiled once."""
    compiled = {id(center): center.finder(name, shape) for center in centers}
    return [compiled[id(center)] for center in centers]


# In simulations -------------------------------------------------------------------------------------------


class _Numbers(NamedTuple):
    """Of a simulation: radii of the last ball and of each part, and the numbers of a `Schedule`."""

    last_radii: tuple[Any, ...]
    radii: tuple[tuple[Any, ...], ...]
    left_out: tuple[Any, Any]
    counts: Any
    last_counts: Any


@dataclasses.dataclass(frozen=True, eq=False)
class Simulation(Pytree, leaves=("numbers", "stages", "table")):
    """A search and the release that follows, for programs: one serves all that have as many rounds and radii.

    Attributes:
        manifold, parts, rounds: see `Schedule`.
        numbers: see there.
        stages: of each part, those that find its centre, one in each round.
        table: the last law, with all scales, and radii of supports.
    """

    manifold: Manifold
    parts: tuple[Part, ...]
    rounds: int
    numbers: _Numbers
    stages: tuple[tuple[Center, ...], ...]
    table: tuple[PointLaw, jax.Array, jax.Array]

    def simulate(self, key, records, num):
        """Return ``num`` independent draws of the search and its release. Derivatives are refused."""
        self.table[0].check_rows(records)
        return without_derivatives("LocatedMechanism", _simulated(self, key, records, num))

    def released(self, value):
        """Return the value unchanged."""
        return value


@functools.partial(jax.jit, static_argnums=3)
def _simulated(simulation, key, records, num):
    return jax.lax.map(lambda own: _one(simulation, own, records), jax.random.split(key, num))


def _one(simulation, key, records):
    numbers, n = simulation.numbers, records.shape[0]
    keys = iter(jax.random.split(key, 2 * (simulation.rounds + 1) * len(simulation.parts) + 2))
    if any(isinstance(stage, Drawn) for own in simulation.stages for stage in own):
        records = jax.random.permutation(next(keys), records)  # as in a release: these depend on the order

    def radius_of(lengths, radii, left_out, scale, last):
        counts = jnp.sum(lengths[:, None] <= jnp.asarray(radii), axis=0)
        place = place_of(jnp, first_above_simulated(next(keys), counts, n - left_out, scale), radii, last)
        return jnp.asarray(radii)[place], place

    centers, reaches = [], []
    for place, part in enumerate(simulation.parts):
        center, radius = origin_of(part).astype(records.dtype), jnp.asarray(math.inf)
        for stage in simulation.stages[place]:
            if part.open:
                own = distances(part, center, records)
                radius, _ = radius_of(own, numbers.radii[place], numbers.left_out[0], numbers.counts, radius)
            center = stage.simulated(next(keys), center, radius, records)
        centers.append(center)
        reaches.append(radius)
    center = joined(simulation.parts, centers)
    away = distances(whole(simulation.manifold), center, records)
    last = jnp.linalg.norm(jnp.stack(reaches))
    radius, place = radius_of(away, numbers.last_radii, numbers.left_out[1], numbers.last_counts, last)
    law, scales, supports = simulation.table
    ball, support = (
        GeodesicBall.tree_unflatten(simulation.manifold, (center, own)) for own in (radius, supports[place])
    )
    own = _replaced(law, ball, scales[place], None if law.support is None else support)
    home, points, back = own.at_home(records)
    return home.draws(next(keys), points, home.center(points), 1, None).mapped(back).points[0]


def _rebuilt(_: None, leaves: Any) -> Any:
    return leaves[0]


# Programs know a search by what simulates it.
jax.tree_util.register_pytree_node(LocatedLaw, lambda law: ((law.simulation,), None), _rebuilt)


def _replaced(law, ball, scale, support):
    own = dataclasses.replace(law, ball=ball, scale=scale)
    return own if support is None else dataclasses.replace(own, support=support)
