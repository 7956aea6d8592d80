"""The stages of an `AdaptiveMechanism` at mu as releases of their own, for records that are in several places."""

import dataclasses
import functools
from collections.abc import Generator
from fractions import Fraction
from typing import Any, final

import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.locating.stages import Stage, StageMechanism, no_value, point_of
from jaxgeodp.mechanisms.adaptive import AdaptiveMechanism
from jaxgeodp.mechanisms.adaptive_grid import STEPS_OF_COUNTS, Question, answer_of, integers_of, noise_of
from jaxgeodp.mechanisms.adaptive_walk import Count, Mean, Moved, Spending, Whole, refine, strength_of
from jaxgeodp.privacy import grid
from jaxgeodp.privacy.decimals import float_above, float_below, half, square, written
from jaxgeodp.privacy.guarantee import GaussianDP, ZeroConcentratedDP
from jaxgeodp.privacy.release import Release
from jaxgeodp.releases.law import Told
from jaxgeodp.samplers.discrete import discrete_gaussian

_STATISTICS = {
    Count: "number of records within a radius of a released centre",
    Mean: "mean of records shortened about a released centre, which it moves",
    Whole: "mean of the logarithms of all records at the public centre",
}
# Of the radius: a centre that is measured farther off is not one of a stage. At the rim of a wide ball of matrices,
# whose eigenvalues have a ratio of e^30, distances are right to 1e-4.
_FAR = 2.0
# Of the record: a released vector, which a mean of all takes a share of.
_VECTOR = "vector"
_DIAMETER = "2 R, the diameter of the ball of integers"


@final
@dataclasses.dataclass(frozen=True, eq=False)
class StepStage(Stage):
    """A question of an adaptive release.

    Args:
        mechanism: whose.
        n: number of records.
        question: see `adaptive_walk`.
        mu: what it may cost.
    """

    mechanism: AdaptiveMechanism
    n: int
    question: Question
    mu: float
    theorem = "docs/mathematics.md, Theorems V2 and N"

    @property
    def statistic(self):
        """Return the statistic of the question in words."""
        return _STATISTICS[type(self.question)]

    @property
    def formula(self):
        """Return the formula of the sensitivity."""
        return f"{STEPS_OF_COUNTS}, the steps of one record" if isinstance(self.question, Count) else _DIAMETER

    @property
    def sensitivity(self):
        """How far one record moves the integers."""
        return STEPS_OF_COUNTS if isinstance(self.question, Count) else 2 * grid.STEPS

    @property
    def largest(self):
        """Return an upper bound of the absolute value of a record's integers."""
        return STEPS_OF_COUNTS if isinstance(self.question, Count) else grid.STEPS

    @property
    @override
    def guarantee(self):
        return ZeroConcentratedDP(float_above(half(square(written(self.mu)))))

    @property
    @override
    def scale(self):
        return noise_of(self._law, self.question, self.mu).scale

    @property
    @override
    def sampler(self):
        return grid.sampler(discrete_gaussian, list(self.shape(())), [self.scale])

    @property
    def fallback(self):
        """No records, or the centre that was released before."""
        if isinstance(self.question, Count):
            return np.zeros(())
        own = self.question.center if isinstance(self.question, Mean) else self.mechanism.ball.center
        return np.asarray(own)

    @property
    def ball(self):
        """Return the ball in which centres lie: with a shape, the wide one in which logarithms are right."""
        return self._law.ball

    @property
    @override
    def asked(self):
        own = self.question
        if isinstance(own, Count):
            return {"radius": own.radius}
        return {"clip": own.clip, "gain": own.gain} if isinstance(own, Mean) else {"shares": list(own.shares)}

    @override
    def shape(self, record):
        return (1,) if isinstance(self.question, Count) else (self._law.length,)

    @override
    def program(self, shape):
        integers = integers_of(self._law, type(self.question), shape)
        return lambda records: integers(self.question, records)

    @override
    def answer(self, n):
        answers = answer_of(self._law, type(self.question))

        def told(total):
            answer = answers(self.question, self.mu, total).value
            if isinstance(answer, Moved):
                return Told(answer.center, {_VECTOR: answer.vector.tolist()})
            return np.asarray(answer)

        return told

    @functools.cached_property
    def _law(self):
        return self.mechanism.law(self.n)


def stages_in_steps(
    owner: str, mechanism: AdaptiveMechanism, n: int
) -> Generator[StageMechanism | None, Release, None]:
    """Yield each stage's mechanism; receive its release; yield None at the end.

    What a stage costs is rounded up to a float, as it is charged; the last one has what is left of the whole.

    Raises:
        ValueError: for epsilon; or a release has no value of its stage.
    """
    if not isinstance(mechanism.guarantee, GaussianDP):
        raise InputError(
            f"{owner}: steps with epsilon count pairs of records, which are not sums over records; give mu."
        )
    law, number, spent = mechanism.law(n), 0, Fraction(0)
    left = Fraction(written(mechanism.guarantee.to_zcdp().rho))
    steps = refine(law.rule, law.ball.center, law.reach, Spending(n, law.length, law.strength, pure=False))
    question: Any = next(steps)
    while True:
        number, spent = number + 1, spent + question.cost
        last = float_below(2 * Fraction(written(float_below(left))), 2)
        mu = last if spent == 1 else strength_of(law.strength, False, question.cost)
        stage = StepStage(mechanism, n, question, mu)
        left -= Fraction(written(stage.guarantee.rho))
        release = yield StageMechanism(mechanism.domain, stage, n, number)
        try:
            question = steps.send(_answer(stage, number, release))
        except StopIteration:
            yield None


def _answer(stage: StepStage, number: int, release: Release):
    """Return the value released by a stage, in the form that the walk expects.

    Raises:
        ValueError: the stage releases no such values.
    """
    if isinstance(stage.question, Count):
        value = np.asarray(release.value)
        if value.shape != () or value.dtype.kind != "f" or not np.isfinite(value):
            raise no_value(number)
        return float(value)
    ball, length = stage.ball, stage.shape(())[0]
    value = point_of(ball.manifold, number, release)
    if isinstance(stage.question, Whole):
        return value
    vector = release.record.get(_VECTOR, [0.0] * length)  # none where no value could be computed
    if not isinstance(vector, list) or len(vector) != length or not all(isinstance(own, float) for own in vector):
        raise no_value(number)
    away = float(ball.distance(jnp.asarray(value)))
    if not (np.all(np.isfinite(vector)) and away <= _FAR * ball.radius):
        raise no_value(number)
    return Moved(np.array(vector), value)
