"""Choice of the mechanism that releases a description's mean, from public numbers alone."""

from typing import Any

from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.locating.mechanism import LocatedMechanism
from jaxgeodp.manifolds import Manifold
from jaxgeodp.mechanisms.adaptive import AdaptiveMechanism
from jaxgeodp.mechanisms.names import DEFAULTS, mechanism_named
from jaxgeodp.mechanisms.steps_that_gain import steps_that_gain
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.releases.ways import Idealized, OnGrid

# The squared noise of a mean released at once, over its sampling variance, from which on steps are asked for.
_WORTH_STEPS = 0.1


def mechanism_of_mean(
    manifold: Manifold, ball: GeodesicBall | None, domain: float | None, parameter: str, strength: float
) -> Any:
    """Return the mechanism that releases the mean at once, or finds the ball, too, where there is none.

    Args:
        manifold: of the records.
        ball: public, or None.
        domain: see `LocatedMechanism`.
        parameter: "epsilon" or "mu".
        strength: its value.
    """
    if ball is not None:
        return mechanism_named(DEFAULTS[parameter], ball, strength)
    strengths: dict[str, Any] = {parameter: strength}
    return LocatedMechanism(manifold, domain=domain, **strengths)


def in_steps(mechanism) -> AdaptiveMechanism:
    """Return the mechanism in steps with the same ball and budget."""
    if isinstance(mechanism.budget, GaussianDP):
        return AdaptiveMechanism(mechanism.ball, mu=mechanism.mu)
    return AdaptiveMechanism(mechanism.ball, epsilon=mechanism.epsilon)


def in_steps_if_they_gain(mechanism, n: int, noise: float) -> Any:
    """Return `in_steps` where public numbers say that it is worth it, else the mechanism.

    Args:
        mechanism: of a mean in a ball.
        n: number of records.
        noise: squared, of a mean that is released at once, over its supposed sampling variance.
    """
    if noise < _WORTH_STEPS:
        return mechanism
    on_grid = isinstance(mechanism.budget, GaussianDP)
    strength = {"mu": mechanism.mu} if on_grid else {"epsilon": mechanism.epsilon}
    steps = steps_that_gain(mechanism.ball, n, **strength, grid=on_grid)
    return mechanism if steps is None else steps.mechanism


def way_of_mean(mechanism) -> OnGrid | Idealized:
    """Return how it is released: on a grid where the noise is Gaussian."""
    return OnGrid() if isinstance(mechanism.budget, GaussianDP) else Idealized()
