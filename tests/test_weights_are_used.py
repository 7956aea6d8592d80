"""Weights count in releases of every mechanism, in every way that takes them; so do those that leave places out."""

import numpy as np
import pytest
from strategies import exhaustive

from jaxgeodp import Euclidean, GeodesicBall, PlanarShapes, Sphere
from jaxgeodp.mechanisms.names import MECHANISMS, mechanism_named, names_with


def few_of(cases, few):
    """Some to run always, the rest with --exhaustive: each compiles a program."""
    return [own for own in cases if own in few] + exhaustive(*(own for own in cases if own not in few))


RADIUS = 0.35
#: On each the weighted mean of points of one geodesic through the origin is known; a mechanism's is the first that it
#: suits.
SPACES = [Euclidean(1), Sphere(1), PlanarShapes(3)]


# Five kinds of records, by their places on the geodesic in units of the radius, and what each of them counts. Noise is
# as wide as a record of 160: with equal weights a mean would be .24 of the radius away.
PLACES, WEIGHTS, TIMES = np.array([-0.8, 0.3, 0.5, 0.6, 0.7]), np.array([4.0, 1.0, 1.0, 2.0, 2.0]), 80
STRENGTH = {"epsilon": 1e3, "mu": 10.0}
DELTA = {"delta": 1e-6}
NAMES = list(MECHANISMS)
IN_FIXED_TIME = names_with("delta")
CASES = [
    *((name, {}) for name in NAMES),
    *few_of([(name, DELTA) for name in IN_FIXED_TIME], [("laplace", DELTA)]),
]


def made(name):
    """A mechanism about the origin, and what makes points at places of a geodesic through it."""
    entry = MECHANISMS[name]
    space = next(own for own in SPACES if entry.suits(own))
    origin = np.asarray(space.origin)
    along = np.asarray(space.frame(origin))[0]
    ball = GeodesicBall(space, origin, RADIUS)

    def points(places):
        angles = RADIUS * np.asarray(places).reshape(-1, *(1,) * origin.ndim)
        return origin + angles * along if space == Euclidean(1) else np.cos(angles) * origin + np.sin(angles) * along

    return mechanism_named(name, ball, STRENGTH[entry.parameter]), points


def mean_of(name, points, weights):
    """Of points: on the manifold, or of them as arrays, which may then be projected."""
    flat = np.average(points(PLACES), axis=0, weights=weights)
    if MECHANISMS[name].on_manifold and name != "euclidean-projected":
        return points(np.average(PLACES, weights=weights))[0]
    return flat / np.linalg.norm(flat) if MECHANISMS[name].on_manifold else flat


@pytest.mark.parametrize(("name", "arguments"), CASES, ids=str)
def test_a_release_is_near_the_weighted_mean(name, arguments):
    """And not near that with equal weights."""
    mechanism, points = made(name)
    value = mechanism.release(points(np.tile(PLACES, TIMES)), weights=np.tile(WEIGHTS, TIMES), **arguments).value
    weighted, equal = (mean_of(name, points, weights) for weights in (WEIGHTS, None))
    assert np.linalg.norm(value - weighted) < 0.1 * np.linalg.norm(weighted - equal)


@pytest.mark.parametrize("name", few_of(NAMES, ["laplace", "tangent"]))
def test_places_that_are_none_do_not_count(name):
    """Where the number of records is private, a program has more rows than there are places: they count 0."""
    mechanism, points = made(name)
    value = mechanism.release(points(np.full(5 * TIMES, 0.7)), adjacency="add-remove").value
    right, without = (points([place])[0] for place in (0.7, 0.7 * 5 * TIMES / (5 * TIMES + 20)))
    assert np.linalg.norm(value - right) < 0.5 * np.linalg.norm(without - right)


def test_every_mechanism_of_every_name_is_tried():
    """With weights in each way that takes them: a new name joins by itself."""
    tried = {(own[0], bool(own[1])) for own in (getattr(case, "values", case) for case in CASES)}
    for name in MECHANISMS:
        supports = made(name)[0].supports
        assert ((name, False) in tried) == ("weights" in supports)
        assert ((name, True) in tried) == ({"weights", "delta"} <= supports)
