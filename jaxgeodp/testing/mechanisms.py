"""Laws that every mechanism obeys, to put a new one through: its numbers, its draws, its density and its promise.

`check_mechanism` runs them all, and those of `jaxgeodp.testing.releases`; each law alone is a function
``law(mechanism)`` in `MECHANISM_LAWS` that raises AssertionError with what was compared. What rests on draws uses fixed
keys and thresholds of six standard errors or more: a failure can be repeated, and a right mechanism hardly ever fails.
Nothing but public names of a mechanism is used.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import root_scalar
from scipy.special import expit

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.privacy import ApproximateDP, GaussianDP, NotProven, PureDP, ZeroConcentratedDP, audit
from jaxgeodp.testing.laws import of_law
from jaxgeodp.testing.records import clipped, hostile_records, neighbours, ordinary_records, points_at, unit_vectors
from jaxgeodp.testing.releases import RELEASE_LAWS, enough, statistic_of

# Draws of each law, the same everywhere: fewer programs to compile.
_DRAWS = 20_000
_STANDARD_ERRORS = 6.0
# For comparisons of numbers that rounding alone may part.
_TOLERANCE = 1e-6
_HUGE = 1e100
# Draws whose density is evaluated at a time.
_BLOCK = 1000


def check_mechanism(mechanism) -> None:
    """Raise AssertionError with the first law that ``mechanism`` breaks.

    The laws run in double precision, with the fewest records for which the mechanism exists. They find errors of
    programs; that a guarantee holds for all data is for a proof to say.

    Args:
        mechanism: with a public ``ball`` and the methods that the library's own have. Where its records are no points
            of the manifold, its statistic ``summarised`` says what they are.

    Raises:
        ValueError: it has no ball, or it refuses up to 4096 records.

    Example:
        >>> from jaxgeodp import Euclidean, GeodesicBall, LaplaceMechanism
        >>> from jaxgeodp.testing import check_mechanism
        >>> check_mechanism(LaplaceMechanism(GeodesicBall(Euclidean(1), [0.0], 1.0), epsilon=1.0))
    """
    match mechanism:
        case object(ball=GeodesicBall()):
            pass
        case _:
            raise InputError("check_mechanism: needs a mechanism with a public ball, a GeodesicBall.")
    for name, law in MECHANISM_LAWS.items():
        with of_law(name, type(mechanism).__name__):
            law(mechanism)


# Laws ---------------------------------------------------------------------------------------------------


def public_numbers(mechanism):
    """Sensitivity and scale are floats above 0 that fall like 1/n; the support is a ball around the public centre."""
    n = enough(mechanism)
    counts = [n, 2 * n, 16 * n]
    for name, of in (("sensitivity", mechanism.sensitivity), ("scale", mechanism.scale)):
        values = [of(count) for count in counts]
        for value in values:
            assert type(value) is float and 0.0 < value < math.inf, f"{name} is no finite float above 0: {value!r}"
        assert values == [of(count) for count in counts], f"{name} changes from call to call"
        # Larger supports and certified quadratures leave it some room.
        for first, second in ((0, 1), (1, 2)):
            most = values[first] * counts[first] / counts[second] * (1.5 if name == "sensitivity" else 1.05)
            assert values[second] <= most, (
                f"{name} does not fall like 1/n: {values[first]:.4g} at {counts[first]}, {values[second]:.4g} at "
                f"{counts[second]} records"
            )
    # n records moved one after the other go all the way, in steps of the sensitivity.
    first, last = (mechanism.sensitivity(count) * count for count in (n, 64 * n))
    assert last >= 0.25 * first, f"the sensitivity falls faster than 1/n: by {first / last * 64:.4g} for 64 n"
    support = mechanism.support(n)
    if support is not None:
        assert isinstance(support, GeodesicBall), f"the support is no GeodesicBall: {support!r}"
        assert np.array_equal(support.center, mechanism.ball.center), "the support has another centre than the ball"
        assert mechanism.ball.radius <= support.radius < math.inf, "the support does not hold the ball"


def reproducible_draws(mechanism):
    """simulate gives (num, *shape) finite draws, the same for the same key and under jit, others for another key."""
    with jax.enable_x64(True):
        n = enough(mechanism)
        data = jnp.asarray(ordinary_records(statistic_of(mechanism), mechanism.ball, n))
        draws = [np.asarray(mechanism.simulate(jax.random.key(seed), data, _DRAWS)) for seed in (0, 0, 1)]
        jitted = jax.jit(lambda key, data: mechanism.simulate(key, data, _DRAWS))(jax.random.key(0), data)
        assert draws[0].shape == (_DRAWS, *mechanism.ball.manifold.shape), f"simulate gives the shape {draws[0].shape}"
        assert bool(np.all(np.isfinite(draws))), "simulate gives draws that are not finite"
        assert np.array_equal(draws[0], draws[1]), "simulate gives other draws for the same key"
        rows = np.concatenate([draws[0], draws[2]]).reshape(2 * _DRAWS, -1)
        repeated = len(rows) - len(np.unique(rows, axis=0))
        assert repeated <= 0.01 * _DRAWS, f"simulate repeats {repeated} draws of {len(rows)}, from two keys"
        size = 1.0 + np.max(np.abs(draws[0]))
        assert np.max(np.abs(jitted - draws[0])) <= _TOLERANCE * size, "simulate gives other draws under jit"


def support_of_the_density(mechanism):
    """log_density is a real number at draws, which lie in the support, and minus infinity outside."""
    with jax.enable_x64(True):
        n = enough(mechanism)
        density = _log_density(mechanism, n)
        if density is None:
            return
        statistic, ball = statistic_of(mechanism), mechanism.ball
        data = jnp.asarray(ordinary_records(statistic, ball, n))
        draws = mechanism.simulate(jax.random.key(2), data, _DRAWS)
        values = density(draws, data)
        assert values.shape == (_DRAWS,) and np.isrealobj(values), "log_density is no real number"
        support = mechanism.support(n)
        if support is not None:
            inside = jax.vmap(dataclasses.replace(support, radius=support.radius * (1.0 + 1e-9)).contains)(draws)
            assert bool(jnp.all(inside)), "simulate leaves the support"
            outside = points_at(support, 1.01 * unit_vectors(ball.manifold.dim, 16, 0))
            assert bool(np.all(np.isneginf(density(outside, data)))), "log_density is finite outside the support"
            inner = points_at(support, 0.99 * unit_vectors(ball.manifold.dim, 16, 0))
            assert bool(np.all(np.isfinite(density(inner, data)))), "log_density is not finite within the support"
        assert bool(np.all(np.isfinite(values))), "log_density is not finite at draws"


def clipped_records(mechanism):
    """Check that a record outside the ball counts as the one that it is clipped to, and one with NaN as well.

    Infinities may count as any record: what they come to in floating point need not be what `clip` makes of them.
    """
    with jax.enable_x64(True):
        n = enough(mechanism)
        statistic, ball = statistic_of(mechanism), mechanism.ball
        rest, points = ordinary_records(statistic, ball, n), ordinary_records(None, ball, 16)
        density = _log_density(mechanism, n)
        for name, record in hostile_records(statistic, ball).items():
            if np.any(np.abs(record) > _HUGE):
                continue
            raw = jnp.asarray(np.append(rest[:-1], record[None], axis=0))
            pair = raw, clipped(statistic, ball, raw)
            if density is None:
                values = [mechanism.simulate(jax.random.key(3), data, _DRAWS) for data in pair]
            else:
                values = [density(points, data) for data in pair]
            same = np.allclose(values[0], values[1], rtol=1e-5, atol=1e-5)
            assert same, f"a record {name} counts otherwise than the one that it is clipped to"


def order_of_records(mechanism):
    """Check that the density, or else the draws of a key, is the same for the same records in another order."""
    with jax.enable_x64(True):
        n = enough(mechanism)
        data = ordinary_records(statistic_of(mechanism), mechanism.ball, n)
        density = _log_density(mechanism, n)
        if density is None:
            values = [mechanism.simulate(jax.random.key(5), jnp.asarray(own), _DRAWS) for own in (data, data[::-1])]
        else:
            points = ordinary_records(None, mechanism.ball, 16)
            values = [density(points, jnp.asarray(own)) for own in (data, data[::-1])]
        assert np.allclose(*values, rtol=1e-5, atol=1e-5), "the law depends on the order of the records"


def draws_follow_the_density(mechanism):
    """Check that the draws of simulate have the density that log_density says, up to its normalising constant.

    For any bijection T of coordinates z with the Jacobian J, and q the density of z, the mean of min(1, J q(Tz)/q(z))
    under q is the mass that q and its image have in common, and so is that of T^-1 with 1/J: the means must agree.
    Shifts and dilations are tried. The density need not be smooth, nor its constant known.
    """
    with jax.enable_x64(True):
        n = enough(mechanism)
        density = _log_density(mechanism, n)
        if density is None:
            return
        data = jnp.asarray(ordinary_records(statistic_of(mechanism), mechanism.ball, n))
        draws = mechanism.simulate(jax.random.key(4), data, _DRAWS)
        for name, mean, error in common_masses(mechanism, density, draws, data):
            assert abs(mean) <= _STANDARD_ERRORS * error, (
                f"draws do not follow the density: under {name} it loses {mean:.4f} more mass to one side than to the "
                f"other, with a standard error of {error:.4f}"
            )


def privacy_loss(mechanism):
    """Check that the densities of neighbours keep the promise, as far as draws tell.

    With log_density, the ratio of the normalising constants is estimated from draws of both laws (Bennett 1976): for
    `PureDP` no log ratio of densities at a draw exceeds epsilon, else the hockey-stick divergences stay below their
    deltas. Without it, `jaxgeodp.privacy.audit` looks for an event that contradicts the promise.
    """
    guarantee = mechanism.guarantee
    if isinstance(guarantee, NotProven):
        return
    n = enough(mechanism)
    for name, (data, neighbour) in neighbours(statistic_of(mechanism), mechanism.ball, n).items():
        with jax.enable_x64(True):
            density = _log_density(mechanism, n)
            if density is not None:
                losses, margin = _losses(mechanism, density, jnp.asarray(data), jnp.asarray(neighbour))
                for one, other in (losses, [-loss for loss in reversed(losses)]):
                    _check_losses(guarantee, name, one, other, margin)
                continue
        if isinstance(guarantee, PureDP | ApproximateDP | GaussianDP | ZeroConcentratedDP):
            found = audit(mechanism, data, neighbour, draws=_DRAWS, level=1e-8)
            assert not found.violated, (
                f"neighbours ({name}) are told apart: at least {found.lower_bound:.4g}, promised {found.promised:.4g}"
            )


# What laws use ------------------------------------------------------------------------------------------


def common_masses(mechanism, density, draws, data) -> list[tuple[str, float, float]]:
    """Return names of transformations, means and standard errors of what vanishes in expectation; see the law."""
    to_coordinates, to_value, log_volume, limit = _chart(mechanism, draws)
    z = np.asarray(jax.vmap(to_coordinates)(draws))
    pilot, z = z[:_BLOCK], z[_BLOCK:]
    dim = z.shape[1]
    middle = np.median(pilot, axis=0)
    spread = np.median(np.linalg.norm(pilot - middle, axis=1)) / math.sqrt(dim)
    at_coordinates = jax.jit(jax.vmap(lambda y: jnp.where(jnp.linalg.norm(y) < limit, log_volume(y), -jnp.inf)))
    values_at = jax.jit(jax.vmap(to_value))

    def log_mass(y):
        return density(values_at(y), data) + np.asarray(at_coordinates(y))

    own = log_mass(z)
    inside = np.isfinite(own)
    maps: list[tuple[str, Callable, Callable, float]] = []
    for step, direction in zip(np.resize([1.0, 2.0], 3), unit_vectors(dim, 2 * dim + 3, 5)[-3:], strict=True):
        shift = step * spread * direction
        maps.append(("a shift", lambda y, s=shift: y + s, lambda y, s=shift: y - s, 0.0))
    for power in (0.5, 1.5):
        factor = math.exp(power / math.sqrt(dim))
        maps.append(
            (
                f"a dilation by {factor:.2f}",
                lambda y, f=factor: middle + f * (y - middle),
                lambda y, f=factor: middle + (y - middle) / f,
                dim * math.log(factor),
            )
        )
    found = []
    with np.errstate(invalid="ignore"):
        for name, forth, back, log_jacobian in maps:
            there = np.minimum(log_mass(forth(z)) + log_jacobian - own, 0.0)
            here = np.minimum(log_mass(back(z)) - log_jacobian - own, 0.0)
            difference = np.where(inside, np.exp(there) - np.exp(here), 0.0)
            found.append((name, float(np.mean(difference)), float(np.std(difference)) / math.sqrt(len(difference))))
    assert all(math.isfinite(mean) for _, mean, _ in found), "log_density is NaN somewhere near the draws"
    return found


def _log_density(mechanism, n) -> Callable | None:
    """Return ``(points (m, *shape), data) -> (m,)``; None where the mechanism says that it has no simple density."""
    manifold = mechanism.ball.manifold
    data = jnp.asarray(ordinary_records(statistic_of(mechanism), mechanism.ball, n))
    point = points_at(mechanism.ball, np.zeros((1, manifold.dim)))[0]
    try:
        jax.eval_shape(mechanism.log_density, point, data)
    except InputError:
        return None

    def density(points, data):
        num = len(points)
        blocks = np.resize(np.asarray(points), (-(-num // _BLOCK), _BLOCK, *manifold.shape))
        return np.concatenate([_densities(_Itself(mechanism), block, data) for block in blocks])[:num]

    return density


class _Itself:
    """A mechanism as a static argument: equal to nothing but itself."""

    def __init__(self, mechanism):
        self.mechanism = mechanism

    def __hash__(self):
        return id(self.mechanism)

    def __eq__(self, other):
        return isinstance(other, _Itself) and self.mechanism is other.mechanism


@functools.partial(jax.jit, static_argnums=0)
def _densities(itself, points, data):
    return jax.vmap(lambda x: itself.mechanism.log_density(x, data))(points)


def _chart(mechanism, draws) -> tuple[Callable, Callable, Callable, float]:
    """Return coordinates of a value, their inverse, its log volume, and the length up to which they are right.

    Of the tangent space at the public centre; of the linear span of the draws where these are off the manifold.
    """
    ball, manifold = mechanism.ball, mechanism.ball.manifold
    slack = 1e-6 * (1.0 + float(jnp.max(jnp.abs(draws))))
    if bool(jnp.all(jax.vmap(lambda x: manifold.belongs(x, slack))(draws[:_BLOCK]))):
        home = manifold.home(jnp.asarray(ball.center))
        frame = manifold.frame(home)
        limit = manifold.injectivity_radius
        return (
            lambda x: manifold.coordinates(home, manifold.log(home, manifold.project(ball.to_home(x))), frame),
            lambda z: manifold.project(ball.from_home(manifold.exp(home, manifold.combine(z, frame)))),
            lambda z: manifold.log_det_exp(home, manifold.combine(z, frame)),
            limit if limit > 0 else math.inf,
        )
    start = draws[0]
    rows = jax.vmap(_flat)(draws - start)
    _, sizes, axes = np.linalg.svd(np.asarray(rows[:_BLOCK]), full_matrices=False)
    basis = jnp.asarray(axes[sizes > 1e-9 * sizes[0]])
    return (
        lambda x: basis @ _flat(x - start),
        lambda z: start + _unflat(z @ basis, start),
        lambda z: 0.0 * z[0],
        math.inf,
    )


def _flat(x):
    return jnp.concatenate([x.real.ravel(), x.imag.ravel()]) if jnp.iscomplexobj(x) else x.ravel()


def _unflat(row, like):
    if jnp.iscomplexobj(like):
        row = jax.lax.complex(*jnp.split(row, 2))
    return row.reshape(like.shape)


def _losses(mechanism, density, data, neighbour):
    """Return log p(x; D) - log p(x; D') at draws from D and from D', and by how much all of them may be wrong."""
    pair, ratios = (data, neighbour), []
    for seed, drawn in enumerate(pair):
        draws = mechanism.simulate(jax.random.key(10 + seed), drawn, _DRAWS)
        own, other = density(draws, data), density(draws, neighbour)
        assert not np.any(np.isnan(own) | np.isnan(other)), "log_density is NaN at draws"
        with np.errstate(invalid="ignore"):
            ratios.append(own - other)
        assert np.all(np.isfinite((own, other)[seed])), "log_density is minus infinity at draws"
    first, second = ratios

    def excess(constant):
        return float(np.mean(expit(constant - first)) - np.mean(expit(second - constant)))

    # log Z - log Z' is where the two means agree.
    constant = float(root_scalar(excess, bracket=(-700.0, 700.0), xtol=1e-12).root)
    there, here = expit(constant - first), expit(second - constant)
    slope = np.mean(there * (1.0 - there)) + np.mean(here * (1.0 - here))
    spread = math.sqrt((np.var(there) + np.var(here)) / _DRAWS)
    return [first - constant, second - constant], _STANDARD_ERRORS * spread / max(slope, 1e-12) + _TOLERANCE


def _check_losses(guarantee, name, own, other, margin):
    """Check the losses at draws of the law that they favour, and at draws of the other."""
    if isinstance(guarantee, PureDP):
        largest = max(float(np.max(own)), float(np.max(other)))
        assert largest <= guarantee.epsilon + margin, (
            f"neighbours ({name}) have log densities {largest:.4g} apart (known to {margin:.2g}), promised "
            f"{guarantee.epsilon:.4g}"
        )
        return
    for epsilon, delta in _pairs(guarantee):
        excess = np.maximum(-np.expm1(epsilon + margin - own), 0.0)
        least = float(np.mean(excess) - _STANDARD_ERRORS * np.std(excess) / math.sqrt(_DRAWS))
        assert least <= delta, (
            f"neighbours ({name}) need delta >= {least:.4g} at epsilon {epsilon:.4g}, not {delta:.4g}"
        )


def _pairs(guarantee) -> Sequence[tuple[float, float]]:
    """Return pairs (epsilon, delta) that a guarantee implies."""
    if isinstance(guarantee, ApproximateDP):
        return [(guarantee.epsilon, guarantee.delta)]
    if isinstance(guarantee, GaussianDP):
        middle = 0.5 * guarantee.mu**2
        return [(epsilon, guarantee.delta(epsilon)) for epsilon in (0.0, middle, middle + guarantee.mu)]
    return [(guarantee.to_approximate(delta).epsilon, delta) for delta in (0.1, 0.01)]


MECHANISM_LAWS: dict[str, Callable] = {
    law.__name__: law
    for law in (
        public_numbers,
        reproducible_draws,
        support_of_the_density,
        clipped_records,
        order_of_records,
        draws_follow_the_density,
        privacy_loss,
    )
} | RELEASE_LAWS
