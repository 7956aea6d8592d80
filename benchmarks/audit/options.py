"""Options together: how much of what is promised neighbours use in real releases on a grid, as the recorder sees it.

    python -m benchmarks.audit.options

A release has one option or several (docs/options.md); neighbours differ as its promise says: in a record, in all
records of a person, in a record more, in a record that leaves one group for another. Everything a real release does is
in it: clipping, means of persons, groups, counts with noise, integers, states of sites, steps. `recorded.on_grid`
replays the first release's noisy values for the neighbour and adds up what the integers differ by, in units of their
noise, in steps for `PATHS` draws of it. Persons have one to four records, equal ones and differing ones, and jump from
one edge of the ball to the other, from far outside to far outside, and from an edge to what is no point. Planted
releases, which protect less than they are asked for, must use more than is promised.
"""

import functools
import os
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxgeodp as jgd
from benchmarks.audit import recorded
from benchmarks.tools.timing import print_machine, print_table
from jaxgeodp.privacy import adversarial_neighbours
from jaxgeodp.releases import release_groups
from jaxgeodp.sites import SiteKey, combined, masked

PERSONS, GROUPS, STEPS = 60, ("a", "b", "c"), 400
PATHS = 3  #: draws of the noise of a pair in steps
OUTSIDE = 2.5  #: radii from the centre
BALL = jgd.GeodesicBall(jgd.Hyperbolic(2), np.array([1.0, 0.0, 0.0]), 0.8)
PLANE = jgd.GeodesicBall(jgd.Euclidean(2), np.zeros(2), 1.0)
LINE = jgd.GeodesicBall(jgd.Euclidean(1), np.zeros(1), 1.0)


class Records(NamedTuple):
    """Of persons, who are in groups."""

    points: np.ndarray
    persons: np.ndarray
    groups: np.ndarray

    def without(self, rows) -> "Records":
        """All but these rows."""
        return Records(*(np.delete(own, rows, axis=0) for own in self))


class Row(NamedTuple):
    """A release with options, and pairs of neighbours; ``planted``: it protects less than it is asked for."""

    mechanism: str
    options: str
    promised: float
    release: Callable[[Records], Any]
    pairs: list[tuple[Records, Records]]
    planted: bool = False


def neighbours(ball: jgd.GeodesicBall, differ: str, *, persons: bool) -> list[tuple[Records, Records]]:
    """Pairs that differ in one record or person.

    Args:
        ball: of the records, which jump from edge to edge.
        differ: "replaced"; "more": there or not; "moves": all are in the first group, and in the second; of persons
            also: replaced in all groups; "two more", "two move": of persons who may be in two groups.
        persons: whether each has one to four records, or one.
    """
    count, found = STEPS if ball is LINE else PERSONS, []
    for first, second in adversarial_neighbours(ball, count).values():
        (changed,) = np.flatnonzero(np.any(np.asarray(first) != np.asarray(second), axis=1))
        order = [*np.delete(np.arange(count), changed), changed]
        pair = tuple(_records(np.asarray(own)[order], persons) for own in (first, second))
        for one, other in _changed(ball, *pair, persons):
            found += _differing(one, other, differ, persons)
    return found


def _changed(ball, one, other, persons):
    """A pair, and the same with the changed record outside of the ball, invalid, or, of persons, all records apart."""
    rows = np.flatnonzero(one.persons == one.persons[-1])
    far = [own._replace(points=_scaled(ball, own.points, rows, OUTSIDE)) for own in (one, other)]
    invalid = other.points.copy()
    invalid[rows] = np.nan
    yield one, other
    yield tuple(far)
    yield one, other._replace(points=invalid)
    if persons:
        factors = np.array([1.0, 0.25, OUTSIDE])[np.arange(len(one.points)) % 3]
        yield tuple(own._replace(points=_scaled(ball, own.points, slice(None), factors)) for own in (one, other))


def _scaled(ball, points, rows, factors):
    """Some points so many times as far from the centre."""
    moved, whole = points.copy(), np.broadcast_to(factors, len(points[rows]))
    moved[rows] = jax.vmap(lambda x, by: ball.manifold.exp(ball.center, by * ball.manifold.log(ball.center, x)))(
        points[rows], whole
    )
    return moved


def _differing(one, other, differ, persons):
    """Of a pair what differs as the promise says."""
    rows = np.flatnonzero(one.persons == one.persons[-1])
    if differ == "more":
        return [(own, own.without(rows)) for own in (one, other)]
    if differ == "moves":
        moved = (_in_group(own, rows, group) for own, group in zip((one, other), GROUPS, strict=False))
        return [(one, other)] * persons + [tuple(moved)]
    a, b, c = GROUPS
    if differ == "two more":  # in two; in all three, of which one is too many
        there = [_in_group(own, rows, groups) for own in (one, other) for groups in ([a, b, b], [a, b, c])]
        return [(own, own.without(rows)) for own in there]
    if differ == "two move":  # to two others; to all three, of which one is too many
        first = _in_group(one, rows, [a, b, b])
        return [(first, _in_group(other, rows, groups)) for groups in ([c, c, c], [b, c, c], [a, b, c])]
    return [(one, other)]


def _in_group(data, rows, group):
    groups = data.groups.copy()
    groups[rows] = group
    return data._replace(groups=groups)


def _records(points, persons):
    """Of each point one record, or of each person one to four; the last one has three."""
    counts = 1 + (np.arange(len(points)) + 3) % 4 if persons else np.ones(len(points), int)
    counts[-1] = min(counts[-1], 3)
    who = np.repeat(np.arange(len(points)), counts)
    return Records(points[who], who, np.array(GROUPS)[np.arange(len(who)) % len(GROUPS)])


def releases() -> Iterator[Row]:
    """Yield rows: of each mechanism all combinations that it supports."""
    shape = jgd.Shape.from_groups(BALL.manifold, BALL.center, [_spread()], PERSONS, epsilon=1.0)
    mechanisms = {
        "WrappedLaplace": jgd.WrappedLaplace(BALL, 1.0),
        "WrappedGaussian": jgd.WrappedGaussian(BALL, 1.0),
        "WrappedGaussian, flat": jgd.WrappedGaussian(PLANE, 1.0),
        "TangentLaplace": jgd.TangentLaplace(BALL, 1.0),
        "TangentLaplace, flat": jgd.TangentLaplace(PLANE, 1.0),
        "TangentLaplace, shape": jgd.TangentLaplace(BALL, 1.0, shape),
        "AdaptiveMechanism, μ": jgd.AdaptiveMechanism(LINE, mu=1.0),
    }
    for name, own in mechanisms.items():
        promised = next(iter(own.budget.__dict__.values()))
        for persons in (False, True) if "persons" in own.supports else (False,):
            for options, release, differ in combinations(own, persons):
                words = ", ".join(word for word in ("persons" if persons else "", options) if word) or "records"
                yield Row(name, words, promised, release, neighbours(own.ball, differ, persons=persons))
    own, twice = mechanisms["WrappedLaplace"], jgd.WrappedLaplace(BALL, 2.0)
    grouped = in_groups(own, "add-remove", persons=False)
    for name, release, differ, who in (
        ("records protected, not persons", of_all(own, persons=False), "replaced", True),
        ("groups share persons", grouped, "more", True),
        ("groups hide who is there, not a move", grouped, "moves", False),
        ("half the noise", of_all(twice, persons=False), "replaced", False),
    ):
        yield Row("planted", name, 1.0, release, neighbours(BALL, differ, persons=who), True)


def combinations(mechanism, persons: bool) -> Iterator[tuple[str, Callable[[Records], Any], str]]:
    """Yield options, a release with them, and how its neighbours differ."""
    yield "", of_all(mechanism, persons=persons), "replaced"
    if not persons and "prepare" in mechanism.supports:
        yield "blocks", in_blocks(mechanism), "replaced"
    if "prepare" in mechanism.supports:
        yield "states", from_states(mechanism, persons=persons), "replaced"
        yield "sites", from_sites(mechanism, persons=persons), "replaced"
    if "add-remove" in mechanism.supports:
        yield "add-remove", of_all(mechanism, persons=persons, adjacency="add-remove"), "more"
        for adjacency, differ in (("add-remove", "more"), ("replace-one", "moves")):
            yield f"groups, {adjacency}", in_groups(mechanism, adjacency, persons=persons), differ
            if persons:
                release = in_groups(mechanism, adjacency, persons=True, groups_per_person=2)
                yield f"at most two groups, {adjacency}", release, {"more": "two more", "moves": "two move"}[differ]


def _spread():
    """Public records, which vary along one direction most."""
    widths = np.random.default_rng(0).normal(size=(40, 2)) * [0.1, 0.02]
    vectors = np.concatenate([np.zeros((40, 1)), widths], axis=1)
    return np.asarray(jax.vmap(lambda vector: BALL.manifold.exp(BALL.center, vector))(vectors))


def of_all(mechanism, *, persons: bool, **options):
    """Of all records, or of all persons' means."""

    def release(data):
        return mechanism.release(data.points, persons=data.persons if persons else None, numerics="grid", **options)

    return release


def in_blocks(mechanism):
    """Of records that are read in blocks."""

    def release(data):
        blocks = jgd.RecordBlocks(lambda: iter(np.array_split(data.points, 3)), data.points.shape)
        return mechanism.release(blocks, numerics="grid")

    return release


def from_states(mechanism, *, persons: bool):
    """Of two states, with whole persons in each."""
    return lambda data: mechanism.finish(functools.reduce(lambda a, b: a + b, _states(mechanism, data, persons)))


def from_sites(mechanism, *, persons: bool):
    """Of two sites' masked states."""

    def release(data):
        keys = [SiteKey.new(name) for name in ("east", "west")]
        public = [key.public for key in keys]
        states = _states(mechanism, data, persons)
        return mechanism.finish(combined([masked(own, key, public) for own, key in zip(states, keys, strict=True)]))

    return release


def _states(mechanism, data, persons):
    early = data.persons < PERSONS // 2
    return [
        mechanism.prepare(data.points[own], persons=data.persons[own] if persons else None) for own in (early, ~early)
    ]


def in_groups(mechanism, adjacency, *, persons: bool, **options):
    """Of each of three groups."""

    def release(data):
        who = data.persons if persons else None
        return release_groups(
            mechanism, data.points, data.groups, GROUPS, adjacency=adjacency, persons=who, numerics="grid", **options
        )

    return release


def measured(row: Row) -> float:
    """The most that a pair uses."""
    paths = PATHS if row.mechanism.startswith("Adaptive") else 1  # of one step's integers no noise decides
    return max(recorded.on_grid(row.release, *pair) for pair in row.pairs for _ in range(paths))


def main() -> None:
    """Print the table; ends with an error if a promise is broken or a planted mistake not found."""
    jax.config.update("jax_enable_x64", True)
    # The operating system's entropy, which releases draw from, is the same in each run.
    words, integers = random.Random("words"), random.Random("integers")
    os.urandom, random._urandom = words.randbytes, integers.randbytes
    print_machine()
    cells: dict[str, dict[str, str]] = {}
    wrong = []
    for row in releases():
        used = measured(row) / row.promised
        broken = used > 1.0 + 1e-9
        cells.setdefault(row.options, {})[row.mechanism] = f"**{used:.3f}**" if broken else f"{used:.3f}"
        wrong += [f"{row.mechanism}, {row.options}"] if broken != row.planted else []
    names = list(dict.fromkeys(name for own in cells.values() for name in own if name != "planted"))
    rows = [[options, *(own.get(name, "") for name in names)] for options, own in cells.items() if "planted" not in own]
    print_table("Used of what is promised", ["grid, and", *names], rows)
    mistakes = [[options, own["planted"]] for options, own in cells.items() if "planted" in own]
    print_table("Planted mistakes", ["what is asked for", "used"], mistakes)
    if wrong:
        raise SystemExit(f"Not as it should be: {', '.join(wrong)}.")


if __name__ == "__main__":
    main()
