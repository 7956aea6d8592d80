"""Adaptive releases in one program: the walk of `adaptive_walk.py` as a state machine, with noise of real numbers."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

import jaxgeodp.mechanisms.adaptive_rules as rules
from jaxgeodp.mechanisms.adaptive_stages import lengths, mean_stage, pair_lengths, whole_stage
from jaxgeodp.mechanisms.adaptive_walk import first_variance, gain_of, moved_variance, tried_radii


class Numbers(NamedTuple):
    """Hold the numbers of a `Rule` for programs, with costs as floats; ``ladder`` is None for two fixed means."""

    first: Any
    first_clip: Any
    middle: Any
    counting: Any
    kept: Any
    reach: Any
    slope: Any
    filled: Any
    pairs: Any
    pair_radius: Any
    start: Any
    ladder: tuple[Any, ...] | None

    @classmethod
    def of(cls, rule: rules.Rule) -> "Numbers":
        """Return the numbers of a rule."""
        own = {name: float(getattr(rule, name)) for name in cls._fields if name != "ladder"}
        return cls(**own, ladder=None if rule.fixed else rule.ladder)


# Of scalars, whichever kind they are.
_where: Callable[..., Any] = jnp.where


@functools.partial(jax.jit, static_argnums=3)
def simulated(law, key, records, num):
    """Return ``num`` releases of an `AdaptiveLaw`."""
    keys = jax.random.split(key, num)
    points = law.ball.clip(records)
    zeros = jnp.zeros(law.length, jnp.finfo(points.dtype).dtype)
    if law.numbers is None:
        return jax.lax.map(lambda own: whole_stage(law.whole, own, points, zeros, 1.0), keys)
    one = _one_fixed if law.numbers.ladder is None else _one_pure if law.pure else _one_gaussian
    return jax.lax.map(lambda own: one(SimulatedStages(law, points), law.numbers, own), keys)


class SimulatedStages:
    """Simulate the stages within a program, each with the noise of its cost."""

    def __init__(self, law, records):
        """Store the law and clipped records."""
        self.law, self.records, self.ball = law, records, law.ball
        self.n, self.dim, self.real = law.n, law.length, jnp.finfo(records.dtype).dtype

    def strength(self, share):
        """Return the epsilon or mu of a share of the budget."""
        return self.law.strength * (share if self.law.pure else jnp.sqrt(share))

    def variance(self, clip, share):
        """Return the variance, in each coordinate, of the noise of a mean with this clip and share of the budget."""
        scale = 2.0 * clip / (self.n * self.strength(share))
        return scale**2 * (self.dim + 1 if self.law.pure else 1)

    def mean(self, key, center, clip, gain, share):
        """Simulate the stage `Mean`: a noisy mean of clipped logarithms at a centre."""
        scale = 2.0 * clip / (self.n * self.strength(share))
        return mean_stage(self.law.mean, key, self.records, center, clip, scale, gain)

    def count(self, key, center, radius, share):
        """Simulate the stage `Count`: a noisy number of records within a radius of a centre."""
        return self._noisy(key, self.n * jnp.mean(lengths(self.law.mean, center, self.records) <= radius), share)

    def pairs(self, key, radius, share):
        """Simulate the stage `Pairs`: a noisy number of close pairs of records, paired at random."""
        order, noise = jax.random.split(key)
        found = pair_lengths(self.law.mean, jax.random.permutation(order, self.records))
        return self._noisy(noise, (self.n // 2) * jnp.mean(found <= radius), share)

    def whole(self, key, first, new, share):
        """Simulate the stage `Whole`; ``first`` is the first vector times its share."""
        law = self.law.whole
        scale = law.scale * self.law.strength / self.strength(share)
        return whole_stage(dataclasses.replace(law, scale=scale), key, self.records, first, new)

    def _noisy(self, key, count, share):
        draw = jax.random.laplace if self.law.pure else jax.random.normal
        return count + draw(key, (), self.real) / self.strength(share)


class _State(NamedTuple):
    """State of a simulation between two stages."""

    key: Any
    center: Any
    variance: Any  #: of the centre, in each coordinate
    radius: Any  #: that was found
    spent: Any
    means: Any  #: that were made
    first: Any  #: vector
    place: Any  #: of mu: the lowest radius that is left to search; of epsilon: the rung
    end: Any  #: of mu: the highest one; of epsilon: whether the last mean is next
    fresh: Any  #: of epsilon: whether no middle round was made at this rung
    done: Any
    filled: Any


def _begin(told, key):
    public, number = jnp.asarray(told.ball.center, told.records.dtype), functools.partial(jnp.asarray, dtype=told.real)
    r, no, zero, zeros = number(told.law.reach), jnp.asarray(False), jnp.asarray(0), jnp.zeros(told.dim, told.real)
    return _State(
        key=key,
        center=public,
        variance=number(0.0),
        radius=r,
        spent=number(0.0),
        means=zero,
        first=zeros,
        place=zero,
        end=zero,
        fresh=~no,
        done=no,
        filled=no,
    )


def _stage(told, counts, count, mean, state):
    """Simulate a count or a mean; return the noisy number, the vector and the centre."""
    return jax.lax.cond(
        counts,
        lambda own: (told.count(own, state.center, *count).astype(told.real), state.first, state.center),
        lambda own: (jnp.zeros((), told.real), *told.mean(own, state.center, *mean)),
        state.key,
    )


def _one_gaussian(told, rule, key):
    dim, r, costs = told.dim, told.law.reach, (rule.first, rule.middle, rule.counting)
    key, of_whole = jax.random.split(key)

    def step(state):
        begins, searches = state.means == 0, state.place < state.end
        radii = tried_radii(jnp, r, jnp.sqrt(state.variance * dim))
        middle, radius = (state.place + state.end) // 2, _where(begins, r, radii[state.end])
        filled = ~begins & (state.means == 1) & ~searches & (radius >= rule.filled * r)
        known = state.variance * dim <= rules.KNOWN * radius**2
        last = ~begins & (known | (state.means == rules.MIDDLES + 1))
        cost = _where(begins, costs[0], _where(last, 1.0 - state.spent, costs[1]))
        clip = _where(last, jnp.minimum(rule.reach * radius / math.sqrt(rules.STEP), r), radius)
        noise = told.variance(clip, cost)
        gain = _where(begins, 1.0, gain_of(rule.slope, state.variance, noise))
        key, own = jax.random.split(state.key)
        count, vector, center = _stage(
            told, searches, (radii[middle], costs[2]), (clip, gain, cost), state._replace(key=own)
        )
        inside = count >= rule.kept * told.n
        low, high = _where(inside, state.place, middle + 1), _where(inside, middle, state.end)
        moved = _where(
            begins,
            first_variance(rule, noise, r, dim),
            moved_variance(rule, state.variance, gain, noise, radius, dim),
        )
        variance = _where(searches, state.variance, moved)
        whole = jnp.argmax(tried_radii(jnp, r, jnp.sqrt(variance * dim)) >= r)
        ends = filled | (last & ~searches)
        paid = _where(searches, costs[2], _where(filled, 0.0, cost))
        return _State(
            key=key,
            center=_where(filled, state.center, center),
            variance=variance,
            radius=radius,
            spent=state.spent + paid,
            means=state.means + _where(searches, 0, 1),
            first=_where(begins, vector, state.first),
            place=_where(searches, low, 0),
            end=_where(searches, high, whole),
            fresh=state.fresh,
            done=ends,
            filled=filled,
        )

    end = jax.lax.while_loop(lambda state: ~state.done, step, _begin(told, key))
    noise, own = told.variance(r, costs[0]), told.variance(r, 1.0 - end.spent)
    old, new = own / (noise + own), noise / (noise + own)
    return jax.lax.cond(
        end.filled,
        lambda: told.whole(of_whole, old * end.first, new, 1.0 - end.spent),
        lambda: end.center,
    )


def _one_fixed(told, rule, key):
    r, share, (key, last) = told.law.reach, rule.first, jax.random.split(key)
    first, clip = rule.first_clip * r, rule.reach * r
    _, center = told.mean(key, jnp.asarray(told.ball.center, told.records.dtype), first, 1.0, share)
    variance = first_variance(rule, told.variance(first, share), r, told.dim)
    gain = gain_of(rule.slope, variance, told.variance(clip, 1.0 - share))
    return told.mean(last, center, clip, gain, 1.0 - share)[1]


def _one_pure(told, rule, key):
    dim, n, r = told.dim, told.n, told.law.reach
    costs = (rule.pairs, rule.first, rule.middle, rule.counting)
    ladder, rungs = jnp.asarray([*rule.ladder, 0.0]), len(rule.ladder)
    of_pairs, of_whole, key = jax.random.split(key, 3)
    filled = told.pairs(of_pairs, rule.pair_radius * r, costs[0]) < rule.filled * (n // 2)

    def step(state):
        begins, share = state.means == 0, ladder[state.place]
        known = share * r >= rules.TOO_NEAR * jnp.sqrt(state.variance * dim)
        affordable = 1.0 - state.spent >= float(rules.LEFT) - 5e-7  # costs are multiples of 1e-6
        moves = ~begins & (state.end == 0) & ~known & state.fresh & (state.means <= rules.MIDDLES) & affordable
        last = ~begins & ~moves & ((state.end == 1) | ~known)
        counts = ~begins & ~moves & ~last
        cost = _where(begins, costs[1], _where(moves, costs[2], 1.0 - state.spent))
        clip = _where(begins, rule.first_clip * r, jnp.minimum(rule.reach * state.radius, r))
        noise = told.variance(clip, cost)
        gain = _where(begins, 1.0, gain_of(rule.slope, state.variance, noise))
        key, own = jax.random.split(state.key)
        count, _, center = _stage(told, counts, (share * r, costs[3]), (clip, gain, cost), state._replace(key=own))
        inside = counts & (count >= rule.kept * n)
        after = moved_variance(rule, state.variance, gain, noise, state.radius, dim)
        moved = _where(begins, first_variance(rule, noise, r, dim), after)
        place = state.place + inside
        return _State(
            key=key,
            center=center,
            variance=_where(counts, state.variance, moved),
            radius=_where(begins, rule.start * r, _where(inside, share * r, state.radius)),
            spent=state.spent + _where(counts, costs[3], cost),
            means=state.means + _where(counts, 0, 1),
            first=state.first,
            place=place,
            end=_where((counts & ~inside) | (place == rungs), 1, 0),
            fresh=_where(counts, True, state.fresh & ~moves),
            done=last,
            filled=state.filled,
        )

    begin = _begin(told, key)
    begin = begin._replace(spent=begin.spent + costs[0])
    return jax.lax.cond(
        filled,
        lambda: told.whole(of_whole, begin.first, 1.0, 1.0 - costs[0]),
        lambda: jax.lax.while_loop(lambda state: ~state.done, step, begin).center,
    )
