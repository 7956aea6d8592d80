"""Automatic choice between a release in steps and a single one, from public numbers."""

from typing import NamedTuple

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.mechanisms.adaptive import AdaptiveMechanism
from jaxgeodp.mechanisms.populations import Expected, is_better, plan_in_steps, ratio_of_logarithms
from jaxgeodp.mechanisms.wrapped import WrappedGaussian


class ChosenSteps(NamedTuple):
    """A mechanism, and what was expected of it."""

    mechanism: AdaptiveMechanism
    expected: tuple[Expected, ...]


def steps_that_gain(
    ball: GeodesicBall, n: int, epsilon: float | None = None, mu: float | None = None, *, grid: bool = False
) -> ChosenSteps | None:
    """Return `AdaptiveMechanism` if it is expected to gain over the reference populations; else None.

    Args:
        ball: public.
        n: number of records.
        epsilon, mu: one of them; only mu has a release on the grid.
        grid: whether that is how it will be released.
    """
    if grid and mu is None:
        return None
    found = plan_in_steps(ball, n, epsilon, mu)
    if not is_better(found):
        return None
    try:
        steps = AdaptiveMechanism(ball, epsilon=epsilon, mu=mu)
        law = steps.law(n)
    except InputError:  # another mechanism may not refuse
        return None
    if grid:
        # All of a ball that is filled is then released as a mean of logarithms, whatever the curvature.
        assert mu is not None
        rival = WrappedGaussian(ball, mu).law(n).scale
        if not is_better(found, ratio_of_logarithms(ball, law.mean.scale, rival, pure=False)):
            return None
    return ChosenSteps(steps, found)
