"""Lower bounds on privacy loss, from draws of a mechanism: a check of programs, no substitute for a proof."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError, positive_integer, positive_number, short
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.privacy.guarantee import ApproximateDP, GaussianDP, PureDP, ZeroConcentratedDP
from jaxgeodp.privacy.two_laws import least_parameter
from jaxgeodp.statistics.frechet_mean import frechet_mean

# Draws at a time.
_BLOCK = 2**15
_MOST_DRAWS = 10**9


class Audit(NamedTuple):
    """Result of `audit`."""

    guarantee: PureDP | ApproximateDP | GaussianDP | ZeroConcentratedDP  #: what the mechanism promises
    lower_bound: float  #: on epsilon, mu or rho; wrong with probability ``level`` at most
    probabilities: tuple[float, float]  #: of the event with the data and with the neighbour, as counted
    draws: int  #: from each of the two laws

    @property
    def promised(self) -> float:
        """Return the epsilon, mu or rho of the guarantee."""
        if isinstance(self.guarantee, ZeroConcentratedDP):
            return self.guarantee.rho
        return self.guarantee.mu if isinstance(self.guarantee, GaussianDP) else self.guarantee.epsilon

    @property
    def violated(self) -> bool:
        """Return whether the draws contradict the guarantee."""
        return self.lower_bound > self.promised


def adversarial_neighbours(ball: GeodesicBall, n: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return neighbouring data sets that strain a mechanism: a record jumps between opposite edges of the ball.

    Args:
        ball: the public ball.
        n: records, at least 2.

    Returns:
        Name -> (data, neighbour), each (n, \\*shape): the others at the start of the jump ("edge"), at the centre
        ("centre"), or, from dimension 2, at two opposite edges across it ("across", where positive curvature moves the
        mean most).

    Raises:
        ValueError: n is below 2.
    """
    positive_integer("adversarial_neighbours", "n", n, 2)
    manifold = ball.manifold
    with jax.enable_x64(True):
        center = jnp.asarray(ball.center)
        frame = manifold.frame(center)

        def edge(axis, sign):
            # A hair inside: rounding must not have it clipped.
            length = sign * ball.radius * (1.0 - 1e-9)
            coordinates = jnp.zeros(manifold.dim).at[axis].set(length)
            return np.asarray(manifold.exp(center, manifold.combine(coordinates, frame)))

        start, end = edge(0, -1), edge(0, 1)
        others = {"edge": [start] * (n - 1), "centre": [np.asarray(center, start.dtype)] * (n - 1)}
        if manifold.dim > 1:
            others["across"] = [edge(1, 1 if j % 2 else -1) for j in range(n - 1)]
    return {name: (np.stack([*rest, start]), np.stack([*rest, end])) for name, rest in others.items()}


def audit(
    mechanism,
    data,
    neighbour,
    draws: int = 1_000_000,
    level: float = 1e-6,
    score: Callable | None = None,
    resolution: float = 1e-7,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Audit:
    """Return a lower bound on epsilon (or mu, or rho), from draws for two data sets that differ in one record.

    Events are half-spaces of a score. Half of the draws choose the
    event, the other half count it; Clopper-Pearson bounds of both probabilities make the result right with probability
    ``1 - level``, whatever the score and however badly it was chosen (Jagielski, Ullman & Oprea 2020).

    Args:
        mechanism: with ``guarantee`` and ``simulate``; and with ``log_density``, or, for the default score, ``ball`` or
            ``manifold``.
        data: (n, \\*shape); invented, not private: the draws are seeded.
        neighbour: the same with another record in one place.
        draws: from each of the two laws, from 1000 to 10^9.
        level: probability that the bound is wrong, in (0, .5).
        score: ``score(x)`` of one released point, large where ``data`` are the likelier ones. By default the
            log-density ratio, or, where a mechanism has no simple density, the difference of distances from the two
            Frechet means.
        resolution: scores are rounded to multiples of it, so that the audit is about the law. With 0 the last bits of
            the draws count, too, through rounding errors of the score: floating-point noise leaks there (Mironov 2012).
        seed: of the draws.
        progress: called with the number of draws done since the last call.

    Raises:
        ValueError: the data are no neighbours, a number is out of range, or nothing is promised that could be audited.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp import GeodesicBall, LaplaceMechanism, Sphere
        >>> from jaxgeodp.privacy import adversarial_neighbours, audit
        >>> ball = GeodesicBall(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.4)
        >>> data, neighbour = adversarial_neighbours(ball, 4)["across"]
        >>> found = audit(LaplaceMechanism(ball, 1.0), data, neighbour, draws=20_000)
        >>> bool(0.5 < found.lower_bound < 1.0)
        True
    """
    guarantee = mechanism.guarantee
    if not isinstance(guarantee, PureDP | ApproximateDP | GaussianDP | ZeroConcentratedDP):
        raise InputError(f"audit: {type(mechanism).__name__} has no guarantee that can be audited: {guarantee}.")
    positive_integer("audit", "draws", draws, 1000)
    if draws > _MOST_DRAWS:
        raise InputError(f"audit: draws must be at most {_MOST_DRAWS:,}, got {short(draws)}.")
    positive_integer("audit", "seed", seed, 0)
    if not seed < 2**32:
        raise InputError(f"audit: seed must be below 2^32, got {short(seed)}.")
    positive_number("audit", "level", level)
    if not level < 0.5:
        raise InputError(f"audit: level must be below 0.5, got {level:g}.")
    data, neighbour = np.asarray(data), np.asarray(neighbour)
    _check_neighbours(data, neighbour)
    with jax.enable_x64(True):
        points = [jnp.asarray(d, jnp.promote_types(d.dtype, jnp.float64)) for d in (data, neighbour)]
        keys = jax.random.split(jax.random.key(seed), 2)
        if score is None:
            # A value need not look like a record; as many draws as later, which need no other program.
            value = mechanism.simulate(keys[0], points[0], min(_BLOCK, draws))[0]
            score = _log_ratio(mechanism, value, *points)
        mine, theirs = (
            _scores(mechanism, score, key, records, draws, progress) for key, records in zip(keys, points, strict=True)
        )
    best = Audit(guarantee, -math.inf, (math.nan, math.nan), draws)
    # Either data set may be the one that the event tells of.
    if resolution > 0:
        mine, theirs = (np.round(scores / resolution) for scores in (mine, theirs))
    for first, second in ((mine, theirs), (-theirs, -mine)):
        bound, (one, other) = least_parameter(guarantee, first, second, level / 2.0)
        if bound > best.lower_bound:
            best = Audit(guarantee, bound, (one, other) if first is mine else (other, one), draws)
    return best


def _check_neighbours(data, neighbour):
    if data.shape != neighbour.shape or data.ndim < 2:
        raise InputError(
            f"audit: data and neighbour must have the same shape (n, *shape), got {data.shape}, {neighbour.shape}."
        )
    different = np.any((data != neighbour).reshape(len(data), -1), axis=1)
    if np.sum(different) != 1:
        raise InputError(
            f"audit: data and neighbour must differ in exactly one record, but differ in {np.sum(different)}."
        )


def _log_ratio(mechanism, value, data, neighbour):
    try:
        jax.eval_shape(mechanism.log_density, value, data)
    except (InputError, AttributeError):  # several noise vectors, or searches, give one value
        return _difference_of_distances(mechanism, data, neighbour)

    def score(x):
        own, other = mechanism.log_density(x, data), mechanism.log_density(x, neighbour)
        # Where neither law has mass nothing is told.
        return jnp.where(jnp.isneginf(own) & jnp.isneginf(other), 0.0, own - other)

    return score


def _difference_of_distances(mechanism, data, neighbour):
    match mechanism:
        case object(ball=GeodesicBall() as ball):
            manifold, pair = ball.manifold.of_values, (ball.clip(data), ball.clip(neighbour))
        case _:
            manifold, pair = mechanism.manifold, (data, neighbour)
    own, other = (frechet_mean(manifold, points) for points in pair)
    return lambda x: manifold.dist(other, x) - manifold.dist(own, x)


def _scores(mechanism, score, key, data, draws, progress):
    """Return scores of independent draws, (draws,)."""
    block = min(_BLOCK, draws)
    score_all = jax.jit(jax.vmap(score))
    parts = []
    for start in range(0, draws, block):
        points = mechanism.simulate(jax.random.fold_in(key, start), data, block)
        parts.append(np.asarray(score_all(points)))
        if progress is not None:
            progress(min(block, draws - start))
    scores = np.concatenate(parts)[:draws]
    # A draw that is no number is an event of its own.
    return np.where(np.isnan(scores), np.inf, scores)
