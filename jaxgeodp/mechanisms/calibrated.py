"""Mechanisms with a density, a statistic and a choice of sensitivities."""

import dataclasses

from typing_extensions import override

from jaxgeodp.bounds import CALIBRATIONS
from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.compiling import refused_in_words
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.privacy.guarantee import NotProven, PureDP
from jaxgeodp.releases.density import SAMPLER
from jaxgeodp.releases.law import Terms
from jaxgeodp.statistics.statistic import FrechetMean, Statistic


@dataclasses.dataclass(frozen=True, eq=False)
class CalibratedMechanism(BallMechanism):
    """Pure epsilon-DP for a statistic, with a choice of sensitivities.

    Raises:
        ValueError: see `BallMechanism`; unknown calibration.
    """

    epsilon: float
    statistic: Statistic = dataclasses.field(default_factory=FrechetMean)
    calibration: str = "tight"

    def __post_init__(self):
        super().__post_init__()
        if self.calibration not in CALIBRATIONS:
            name = type(self).__name__
            raise InputError(f"{name}: calibration must be one of {', '.join(CALIBRATIONS)}, got {self.calibration!r}.")
        with refused_in_words(type(self).__name__):
            self.statistic.check(self.ball.manifold)

    @property
    def guarantee(self) -> PureDP | NotProven:
        """Return pure epsilon-DP, except under "paper"."""
        if self.calibration == "paper":
            return NotProven(f"{self.epsilon:g}-differential privacy, claimed by the paper for its simulation")
        return PureDP(self.epsilon)

    @property
    @override
    def supports(self):
        fixed = self.calibration != "paper" and isinstance(self.statistic, FrechetMean)
        return super().supports | ({"delta"} if fixed else set())


def terms_of(mechanism: CalibratedMechanism, n: int, sensitivity: Sensitivity, theorem: str) -> Terms:
    """Return the terms of a law of ``mechanism``."""
    return Terms(
        mechanism=type(mechanism).__name__,
        statistic=mechanism.statistic.description,
        n=n,
        strength=mechanism.epsilon,
        guarantee=mechanism.guarantee,
        sensitivity=sensitivity.value,
        formula=sensitivity.formula,
        theorem=theorem,
        sampler=SAMPLER,
        timing="the running time depends on the data",
        calibration=mechanism.calibration,
    )
