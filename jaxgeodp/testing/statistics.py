"""Laws that every statistic obeys, to put a new one through: its gradient, and its bounds of what one record can do.

`check_statistic` runs them all; each law alone is a function ``law(statistic, ball)`` in `STATISTIC_LAWS` that raises
AssertionError with what was compared. Records and points are invented with fixed seeds: a failure can be repeated.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.bounds import largest_support
from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.manifolds import riemannian_gradient, riemannian_hessian
from jaxgeodp.statistics import Statistic
from jaxgeodp.testing.laws import of_law
from jaxgeodp.testing.records import has_points, hostile_records, neighbours, ordinary_records, points_at, unit_vectors

_TOLERANCE = 1e-6
_N = 6
_POINTS = 24
# Of the search for the neighbours that move the gradient most.
_STEPS = 40
_STARTS = 48
# Steps around a minimiser, in units of the radius.
_NEAR = 1e-4
_KNOTS = 17


def check_statistic(statistic: Statistic, ball: GeodesicBall) -> None:
    """Raise AssertionError with the first law that ``statistic`` breaks on a public ball.

    The laws run in double precision. Bounds are tried on records that strain them, which is no proof of them.

    Args:
        statistic: the statistic.
        ball: the public ball of the data. What a statistic does not offer (a minimiser) is not checked.

    Example:
        >>> from jaxgeodp import Euclidean, FrechetMean, GeodesicBall
        >>> from jaxgeodp.testing import check_statistic
        >>> check_statistic(FrechetMean(), GeodesicBall(Euclidean(2), [0.0, 0.0], 1.0))
    """
    for name, law in STATISTIC_LAWS.items():
        with of_law(name, f"{statistic} on {ball.manifold}"):
            law(statistic, ball)


# Laws ---------------------------------------------------------------------------------------------------


def clipping(statistic, ball):
    """clip keeps the shape, treats each record on its own, and changes nothing twice."""
    with jax.enable_x64(True):
        shape = tuple(statistic.datum_shape(ball.manifold))
        raw = jnp.concatenate([_hostile(statistic, ball), jnp.asarray(ordinary_records(statistic, ball, _N))])
        assert raw.shape[1:] == shape, f"datum_shape says {shape}, clip takes {raw.shape[1:]}"
        data = statistic.clip(ball, raw)
        assert data.shape == raw.shape, f"clip turns records of shape {raw.shape} into {data.shape}"
        alone = np.concatenate([statistic.clip(ball, record) for record in _one_by_one(raw)])
        assert _close(alone, data), "clip treats a record in the light of others"
        assert _close(statistic.clip(ball, data), data), "clip changes records that it has clipped"


def gradient_of_the_loss(statistic, ball):
    """Check that a record's gradient is that of its loss by automatic differentiation, or that cut to one length."""
    with jax.enable_x64(True):
        manifold = ball.manifold
        data, points = _clipped(statistic, ball, _POINTS), _points(ball, _POINTS)
        value = jax.eval_shape(lambda x, d: statistic.loss(manifold, x, d), points[0], data[0])
        assert value.shape == () and jnp.issubdtype(value.dtype, jnp.floating), "the loss is no real number"

        def both(x, datum):
            own = statistic.gradient(manifold, x, datum[None])
            by_autodiff = riemannian_gradient(manifold, lambda y: statistic.loss(manifold, y, datum))(x)
            return own, by_autodiff, manifold.norm(x, own), manifold.norm(x, by_autodiff)

        own, by_autodiff, own_lengths, lengths = jax.jit(jax.vmap(both))(points, data)
        assert bool(jnp.all(jnp.isfinite(by_autodiff))), "the loss has no finite gradient"
        assert _close(jax.vmap(manifold.to_tangent)(points, own), own), "the gradient is no tangent vector"
        longest = jnp.max(own_lengths)
        factors = jnp.minimum(1.0, longest / jnp.maximum(lengths, 1e-300))
        expected = by_autodiff * factors.reshape(-1, *(1,) * len(manifold.shape))
        assert _close(own, expected), "the gradient is not that of the loss, nor one that is cut to a common length"


def mean_of_gradients(statistic, ball):
    """Check that the gradient of n records is the mean of what each alone has, and gradient_norm is its length."""
    with jax.enable_x64(True):
        manifold, data = ball.manifold, _clipped(statistic, ball, _N)
        gradient = jax.jit(lambda x, d: statistic.gradient(manifold, x, d))
        norm = jax.jit(lambda x, d: (statistic.gradient_norm(manifold, x, d), manifold.norm(x, gradient(x, d))))
        for x in map(jnp.asarray, np.asarray(_points(ball, 3))):
            together = gradient(x, data)
            alone = np.stack([gradient(x, record) for record in _one_by_one(data)])
            assert _close(together, np.mean(alone, axis=0)), "the gradient is not the mean of those of single records"
            given, length = norm(x, data)
            assert _close(given, length), f"gradient_norm is {given:.6g}, the gradient's length {length:.6g}"


def finite_gradients(statistic, ball):
    """Check that the gradient is finite for whatever has been clipped, also at the records themselves."""
    with jax.enable_x64(True):
        manifold = ball.manifold
        records = hostile_records(statistic, ball)
        data = statistic.clip(ball, _hostile(statistic, ball))
        own = data if has_points(statistic, ball) else _points(ball, len(data))
        gradient = jax.jit(jax.vmap(lambda x, d: statistic.gradient(manifold, x, d[None])))
        for where, points in (("at it", own), ("elsewhere", _points(ball, len(data)))):
            values = np.asarray(gradient(points, data)).reshape(len(data), -1)
            bad = [name for name, value in zip(records, values, strict=True) if not np.all(np.isfinite(value))]
            assert not bad, f"the gradient of a record {bad[0]} is not finite {where}"


def gradient_sensitivity(statistic, ball):
    """No neighbour changes the gradient by more than is declared: hostile records, and those that an ascent finds."""
    with jax.enable_x64(True):
        hostile = statistic.clip(ball, _hostile(statistic, ball))
        largest_change = _largest_change(statistic, ball)
        for radius in _support_radii(statistic, ball):
            found = float(largest_change(radius / ball.radius, hostile))
            for n in (2, 10, 1000):
                declared = statistic.gradient_sensitivity(ball, n, radius, "tight").value
                assert declared > 0 and math.isfinite(declared), f"the sensitivity is no number above 0: {declared!r}"
                assert found / n <= declared * (1.0 + _TOLERANCE), (
                    f"one of {n} records changes the gradient by {found / n:.6g} within {radius:.4g} of the centre, "
                    f"declared {declared:.6g}"
                )


def gradient_growth(statistic, ball):
    """gradient_growth lies below |grad F| at that distance from ``center``, within the support."""
    with jax.enable_x64(True):
        manifold, radius = ball.manifold, _support_radii(statistic, ball)[-1]
        knots = jnp.linspace(0.0, radius + ball.radius, _KNOTS)
        steps = jnp.linspace(0.0, 1.0, 5)[:-1] + 0.01
        lengths = (knots[:-1, None] + steps * jnp.diff(knots)[:, None]).ravel()
        directions = jnp.asarray(unit_vectors(manifold.dim, 32, 1))
        support = GeodesicBall(manifold, ball.center, radius)

        @jax.jit
        def excess(data):
            center = statistic.center(ball, data)
            growth = statistic.gradient_growth(manifold, center, data, radius + ball.radius)
            frame = manifold.frame(center)

            def at(direction, length):
                x = manifold.project(manifold.exp(center, length * manifold.combine(direction, frame)))
                norm = statistic.gradient_norm(manifold, x, data)
                return jax.lax.select(support.contains(x), norm, jnp.full_like(norm, jnp.inf))

            norms = jax.vmap(lambda u: jax.vmap(lambda t: at(u, t))(lengths))(directions)
            claimed = _values(growth, knots, lengths)
            return jnp.max(claimed - norms), jnp.max(jnp.where(jnp.isfinite(norms), norms, 0.0))

        for name, data in _data_sets(statistic, ball).items():
            above, size = excess(data)
            assert not float(above) > _TOLERANCE * float(size), (
                f"gradient_growth lies above |grad F| by {float(above):.4g} of {float(size):.4g} (records: {name})"
            )


def center_in_the_ball(statistic, ball):
    """center is a point of the ball for any clipped records."""
    with jax.enable_x64(True):
        wide = GeodesicBall(ball.manifold, ball.center, ball.radius * (1.0 + _TOLERANCE))
        for name, data in _data_sets(statistic, ball).items():
            center = statistic.center(ball, data)
            assert center.shape == ball.manifold.shape, f"center has the shape {center.shape}"
            assert bool(wide.contains(center)), f"center is no point of the ball (records: {name})"


def minimizer_of_the_loss(statistic, ball):
    """minimizer is a point of the ball, and no point of the ball, near or far, has a lower mean loss."""
    with jax.enable_x64(True):
        manifold = ball.manifold
        wide = GeodesicBall(manifold, ball.center, ball.radius * (1.0 + _TOLERANCE))
        directions, others = unit_vectors(manifold.dim, 2 * manifold.dim + 8, 2), _points(ball, _POINTS)

        @jax.jit
        def losses(x, data):
            frame = manifold.frame(x)

            def loss(y):
                return jnp.mean(jax.vmap(lambda datum: statistic.loss(manifold, y, datum))(data))

            def near(direction):
                step = _NEAR * ball.radius * manifold.combine(direction, frame)
                y = ball.pull_inside(manifold.project(manifold.exp(x, step)))
                return loss(y)

            beside = jax.vmap(near)(jnp.asarray(directions))
            return loss(x), jnp.min(beside), jnp.min(jax.vmap(loss)(others))

        for name, data in _data_sets(statistic, ball).items():
            x = _minimizer(statistic, ball, data)
            if x is None:
                return
            assert bool(wide.contains(x)), f"minimizer is no point of the ball (records: {name})"
            own, near, far = map(float, losses(x, data))
            rounding = 1e-13 * (1.0 + abs(own))
            assert own <= near + rounding, f"the mean loss falls by {own - near:.3g} beside minimizer (records: {name})"
            assert own <= far + rounding, f"the mean loss is lower by {own - far:.3g} elsewhere (records: {name})"


def minimizer_sensitivity(statistic, ball):
    """No neighbour, of those that strain means and others at the rim, moves the minimiser by more than is declared."""
    with jax.enable_x64(True):
        manifold = ball.manifold
        if _minimizer(statistic, ball, _clipped(statistic, ball, _N)) is None:
            return
        declared = statistic.minimizer_sensitivity(ball, _N, "tight").value
        pairs = dict(neighbours(statistic, ball, _N))
        if has_points(statistic, ball):
            rims = [points_at(ball, unit_vectors(manifold.dim, _N + 1, seed)[::-1]) for seed in range(8)]
            pairs |= {f"rim {j}": (rim[:_N], jnp.append(rim[: _N - 1], rim[_N:], axis=0)) for j, rim in enumerate(rims)}
        distance = jax.jit(lambda a, b: manifold.dist(*(statistic.minimizer(ball, data) for data in (a, b))))
        for name, pair in pairs.items():
            moved = float(distance(*(statistic.clip(ball, jnp.asarray(data)) for data in pair)))
            assert moved <= declared * (1.0 + _TOLERANCE), (
                f"one of {_N} records moves the minimiser by {moved:.6g}, declared {declared:.6g} (records: {name})"
            )


def convexity(statistic, ball):
    """value is the mean loss, and its Hessian is at least convexity, where that is known."""
    with jax.enable_x64(True):
        manifold = ball.manifold
        try:
            statistic.convexity(ball, ball.radius)
        except InputError:
            return

        def least(x, data):
            hessian = riemannian_hessian(manifold, lambda y: statistic.value(manifold, y, data))(x)
            return jnp.linalg.eigvalsh(0.5 * (hessian + hessian.T))[0]

        least = jax.jit(jax.vmap(least, (0, None)))
        value = jax.jit(lambda x, d: statistic.value(manifold, x, d))
        for name, data in _data_sets(statistic, ball).items():
            x = jnp.asarray(ball.center)
            losses = np.mean([statistic.loss(manifold, x, datum[0]) for datum in _one_by_one(data)])
            assert _close(value(x, data), losses), f"value is not the mean of the losses (records: {name})"
            for share in (0.3, 1.0):
                inside = dataclasses.replace(ball, radius=share * ball.radius)
                found = float(jnp.min(least(_points(inside, _POINTS), data)))
                declared = float(statistic.convexity(ball, inside.radius))
                assert found >= declared - _TOLERANCE * max(1.0, abs(declared)), (
                    f"the Hessian has an eigenvalue {found:.6g} within {inside.radius:.4g} of the centre, declared are "
                    f"{declared:.6g} (records: {name})"
                )


STATISTIC_LAWS: dict[str, Callable[[Statistic, GeodesicBall], None]] = {
    law.__name__: law
    for law in (
        clipping,
        gradient_of_the_loss,
        mean_of_gradients,
        finite_gradients,
        gradient_sensitivity,
        gradient_growth,
        center_in_the_ball,
        convexity,
        minimizer_of_the_loss,
        minimizer_sensitivity,
    )
}


# What laws use ------------------------------------------------------------------------------------------


def _points(ball, num):
    """Return points of the ball."""
    return jnp.asarray(ordinary_records(None, ball, num, seed=3))


def _clipped(statistic, ball, num, seed=0):
    return statistic.clip(ball, jnp.asarray(ordinary_records(statistic, ball, num, seed)))


def _one_by_one(data):
    """Return arrays of one record each, cut without a program for every place."""
    return [jnp.asarray(record[None]) for record in np.asarray(data)]


def _hostile(statistic, ball):
    return jnp.asarray(np.stack(list(hostile_records(statistic, ball).values())))


def _data_sets(statistic, ball):
    """Return name -> clipped records: ordinary ones, and those that strain means."""
    strained = {
        name: statistic.clip(ball, jnp.asarray(end)) for name, (_, end) in neighbours(statistic, ball, _N).items()
    }
    return {"ordinary": _clipped(statistic, ball, _N)} | strained


def _support_radii(statistic, ball):
    """Return the ball's radius, and a larger one if the sensitivity is known there."""
    larger = 0.5 * (ball.radius + min(largest_support(ball), 2.0 * ball.radius))
    try:
        statistic.gradient_sensitivity(ball, 2, larger, "tight")
    except InputError:
        return [ball.radius]
    return [ball.radius, larger]


def _largest_change(statistic, ball):
    """The largest |grad F(x; d) - grad F(x; d')| of single records that ascents from many starts find, or hostile ones.

    A function of the support's radius, in units of the ball's, and of the hostile records.
    """
    manifold, dim = ball.manifold, ball.manifold.dim
    points = has_points(statistic, ball)

    def in_unit_ball(z):
        return z / jnp.maximum(1.0, jnp.linalg.norm(z))

    def record(z):
        return points_at(ball, in_unit_ball(z)[None]) if points else statistic.clip(ball, z[None])

    def change(parameters, factor):
        x = points_at(ball, factor * in_unit_ball(parameters[0])[None])[0]
        first, second = (statistic.gradient(manifold, x, record(z)) for z in parameters[1:])
        return manifold.norm(x, first - second)

    def climb(start, factor):
        def step(state, size):
            parameters, best = state
            value, slopes = jax.value_and_grad(change)(parameters, factor)
            best = jnp.fmax(best, value)

            def moved(z, slope):
                length = jnp.linalg.norm(slope)
                usable = jnp.isfinite(length) & (length > 0)
                z = z + jnp.where(usable, size * slope / jnp.where(usable, length, 1.0), 0.0)
                return z if z.shape != (dim,) else in_unit_ball(z)

            return (jax.tree.map(moved, parameters, slopes), best), None

        sizes = 0.3 * 0.9 ** jnp.arange(_STEPS)
        (parameters, best), _ = jax.lax.scan(step, (start, -jnp.inf), sizes)
        return jnp.fmax(best, change(parameters, factor))

    units = jnp.asarray(unit_vectors(dim, _STARTS, 4))
    turned = jnp.roll(units, 1, axis=1)
    # Seen along the jump, across it, and from the middle (a hair aside).
    views = jnp.stack([units, turned, 1e-3 * turned])
    jumps = jnp.stack([units] * 3)
    if not points:
        shape = statistic.datum_shape(manifold)
        jumps = jnp.asarray(np.random.default_rng(5).normal(size=(*views.shape[:2], *shape)))
    starts = [part.reshape(-1, *part.shape[2:]) for part in (views, jumps, -jumps)]

    def among(records, z, factor):
        x = points_at(ball, factor * z[None])[0]
        gradients = jax.vmap(lambda d: statistic.gradient(manifold, x, d[None]))(records)
        return jax.vmap(lambda a: jax.vmap(lambda b: manifold.norm(x, a - b))(gradients))(gradients)

    @jax.jit
    def largest(factor, hostile):
        climbed = jax.vmap(lambda start: climb(start, factor))(tuple(starts))
        return jnp.fmax(jnp.nanmax(climbed), jnp.nanmax(jax.vmap(lambda z: among(hostile, z, factor))(units)))

    return largest


def _values(growth: Any, knots, lengths) -> jax.Array:
    """Return a growth bound at ``lengths``, in whichever form it comes."""
    if hasattr(growth, "lines"):
        values, slopes = growth.lines(knots[:-1], knots[1:])
        cell = jnp.clip(jnp.searchsorted(knots, lengths, side="right") - 1, 0, len(knots) - 2)
        return values[cell] + slopes[cell] * (lengths - knots[cell])
    values: Any = jax.vmap(growth)(lengths) if callable(growth) else growth * lengths
    return values


def _minimizer(statistic, ball, data):
    """Return the minimiser; None where a statistic says that it has none."""
    try:
        return statistic.minimizer(ball, data)
    except InputError:
        return None


def _close(actual, expected):
    """Return whether arrays agree up to rounding at the size of the largest number; non-finite ones agree."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    known = np.isfinite(expected)
    if not np.array_equal(known, np.isfinite(actual)):
        return False
    size = float(np.max(np.abs(expected[known]), initial=0.0))
    return bool(np.all(np.abs(actual[known] - expected[known]) <= _TOLERANCE * max(size, 1e-30)))
