"""What would another radius, n or budget change? Expected errors around those of a plan, from public numbers alone."""

import dataclasses
import itertools
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall, assumption_limit
from jaxgeodp.mechanisms.names import MECHANISMS
from jaxgeodp.mechanisms.plan import Plan, plan_mechanisms

# In units of the given n and privacy parameters, which are among them.
_FACTORS = 2.0 ** np.arange(-3.0, 4.0)
# Of radii below the given one, and the largest, in its units.
_SMALLER = 2.0 ** np.array([-2.0, -1.5, -1.0, -0.5])
_LARGEST = 2.0
# The largest radius in units of Assumption 1's limit, near which sensitivities grow without bound.
_INSIDE = 0.95


@dataclasses.dataclass(frozen=True)
class Curves:
    """Expected errors against one public number, the others as given.

    Attributes:
        given: the number of the plan.
        values: (k,), ascending; ``given`` is one of them.
        errors: (m, k), as `Plan.error`, for `PlanCurves.mechanisms`; NaN where a mechanism refuses.
        standard_errors: (m, k), of ``errors``, from the number of draws.
    """

    given: float
    values: np.ndarray
    errors: np.ndarray
    standard_errors: np.ndarray


@dataclasses.dataclass(frozen=True)
class PlanCurves:
    """Expected errors of mechanisms around a plan.

    Attributes:
        ball: of the plan.
        mechanisms: m of them, as `Plan.mechanism`, in the order of `plan_mechanisms`.
        parameters: of each, "epsilon" or "mu".
        on_manifold: of each, whether distances are those of the manifold; else of the ambient space.
        epsilon: of the plan.
        mu: of the plan.
        radius: errors against the radius of the ball; reference records lie as far from its centre as the plan says,
            in units of the radius, so that none is clipped at any.
        n: errors against the number of records.
        strength: errors against epsilon, with mu in proportion; against mu where the plan has no epsilon.
    """

    ball: GeodesicBall
    mechanisms: tuple[str, ...]
    parameters: tuple[str, ...]
    on_manifold: tuple[bool, ...]
    epsilon: float | None
    mu: float | None
    radius: Curves
    n: Curves
    strength: Curves


class _Point(NamedTuple):
    radius: float
    n: int
    factor: float = 1.0


def plan_curves(
    ball: GeodesicBall,
    n: int,
    epsilon: float | None = None,
    mu: float | None = None,
    spread: float = 0.5,
    draws: int = 1000,
    report: Callable[[int, int], object] = lambda done, total: None,
) -> PlanCurves:
    """Return the expected errors of `plan_mechanisms` for other radii, n and budgets, one of them changed at a time.

    Radii are from a quarter of the given one to its double, or to 0.95 of Assumption 1's limit; n and privacy
    parameters from an eighth to eight times the given ones. All use the same random numbers, so that curves are
    smooth, and the programs of the plan, which serve all numbers; only a mechanism whose support is a ball at some of
    them and the whole manifold at others has two.

    Args:
        ball, n, epsilon, mu, spread, draws: see `plan_mechanisms`.
        report: told how many points are done, and of how many.

    Raises:
        ValueError: see `plan_mechanisms`, for the given numbers; elsewhere what is refused is missing.

    Example:
        >>> from jaxgeodp import Euclidean, GeodesicBall
        >>> from jaxgeodp.mechanisms import plan_curves
        >>> curves = plan_curves(GeodesicBall(Euclidean(1), [0.0], 1.0), n=80, epsilon=1.0, draws=20)
        >>> [int(n) for n in curves.n.values]
        [10, 20, 40, 80, 160, 320, 640]
    """
    given = _Point(ball.radius, n)

    def plans_at(point):
        own = dataclasses.replace(ball, radius=point.radius)
        own_epsilon, own_mu = (None if strength is None else point.factor * strength for strength in (epsilon, mu))
        return plan_mechanisms(own, point.n, own_epsilon, own_mu, spread, draws)

    def plans_or_none(point):
        try:
            return {plan.name: plan for plan in plans_at(point)}
        except InputError:  # every mechanism refuses
            return {}

    # The given point first: its programs are those of the others, too.
    found = {given: {plan.name: plan for plan in plans_at(given)}}
    panels = {
        "radius": [_Point(radius, n) for radius in _radii(ball)],
        "n": [_Point(ball.radius, other) for other in _numbers(n)],
        "strength": [_Point(ball.radius, n, float(factor)) for factor in _FACTORS],
    }
    others = [point for point in dict.fromkeys(itertools.chain(*panels.values())) if point != given]
    report(1, len(others) + 1)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done, point, plans in zip(itertools.count(2), others, pool.map(plans_or_none, others), strict=False):
            found[point] = plans
            report(done, len(others) + 1)
    named = _named(found, given)

    def of_plans(panel, number):
        rows = [[getattr(found[p][name], number) if found[p] else np.nan for p in panels[panel]] for name in named]
        return np.array(rows)

    def errors(panel):
        return of_plans(panel, "error"), of_plans(panel, "standard_error")

    strength = mu if epsilon is None else epsilon
    assert strength is not None  # one is given, or the plan would have refused
    return PlanCurves(
        ball,
        tuple(named.values()),
        tuple(MECHANISMS[name].parameter for name in named),
        tuple(MECHANISMS[name].on_manifold for name in named),
        epsilon,
        mu,
        Curves(ball.radius, np.array([point.radius for point in panels["radius"]]), *errors("radius")),
        Curves(n, np.array([point.n for point in panels["n"]]), *errors("n")),
        Curves(strength, strength * _FACTORS, *errors("strength")),
    )


def _radii(ball) -> list[float]:
    last = min(_LARGEST * ball.radius, _INSIDE * assumption_limit(ball.manifold.whole, ball.center))
    larger = [math.sqrt(ball.radius * last), last] if last > ball.radius else []
    return [*(ball.radius * _SMALLER).tolist(), ball.radius, *larger]


def _numbers(n) -> list[int]:
    return sorted({max(2, round(n * float(factor))) for factor in _FACTORS})


def _named(found: dict[_Point, dict[str, Plan]], given) -> dict[str, str]:
    """Return the registry names of mechanisms that can be used somewhere, each with its class name."""
    called = {name: plan.mechanism for plans in found.values() for name, plan in plans.items() if not plan.refusal}
    return {name: called[name] for name in found[given] if name in called}
