"""A search whose records stay where they are: each stage is prepared in blocks, added up, and finished, like any sum.

Each stage is a release of its own, with its own promise and its own charge; together they cost no more than the search
of `LocatedMechanism` with one budget (docs/mathematics.md, section 16). Between them, only what was released travels.
"""

import dataclasses
from collections.abc import Generator
from fractions import Fraction
from typing import final

import jax
import numpy as np

from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.locating.centers import Summed
from jaxgeodp.locating.law import LocatedLaw
from jaxgeodp.locating.mechanism import LocatedMechanism
from jaxgeodp.locating.parts import origin_of
from jaxgeodp.locating.schedule import Schedule
from jaxgeodp.locating.stages import CenterStage, RadiusStage, Stage, StageMechanism, is_of_stage
from jaxgeodp.locating.walk import Middle, Radius, walk
from jaxgeodp.mechanisms.names import mechanism_named
from jaxgeodp.privacy.decimals import float_below, written
from jaxgeodp.privacy.guarantee import PureDP, ZeroConcentratedDP
from jaxgeodp.privacy.release import Release
from jaxgeodp.releases.mechanism import Mechanism, summed

_NAME = "SearchInRounds"


@final
@dataclasses.dataclass(frozen=True, eq=False)
class SearchInRounds:
    """The search of a `LocatedMechanism` for n records that are not in one place.

    ``now`` is the mechanism of the next stage: whoever has records prepares them with it, the states are merged (or
    masked and combined), the sum is finished, and ``after`` is the search that knows what was released. The last stage
    is the release of the mean, by a mechanism whose sums add up: "tangent", where space is flat also "wrapped" and
    "wrapped-gaussian". Each stage is charged when it is finished. All together they promise what `LocatedMechanism`
    promises.

    Args:
        mechanism: with a mechanism whose sums add up.
        n: number of all records, which is public.
        releases: of the stages that are finished, in their order; loaded ones, too.

    Attributes:
        now: the mechanism of the next stage; None when all are finished.
        ball: that was found; None before that.

    Raises:
        ValueError: the last release is no sum, there are too few records, or a release is of another search.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp import LocatedMechanism, SPD
        >>> from jaxgeodp.locating import SearchInRounds
        >>> sites = [np.tile(np.eye(2) * scale, (1500, 1, 1)) for scale in (4.0, 5.0)]
        >>> search = SearchInRounds(LocatedMechanism(SPD(2), "tangent", epsilon=4.0), n=3000)
        >>> while search.now is not None:
        ...     state = sum((search.now.prepare(data) for data in sites[1:]), search.now.prepare(sites[0]))
        ...     search = search.after(search.now.finish(state))
        >>> len(search.releases), search.releases[-1].value.shape
        (8, (2, 2))
    """

    mechanism: LocatedMechanism
    n: int
    releases: tuple[Release, ...] = ()
    now: Mechanism | None = dataclasses.field(init=False, default=None)
    ball: GeodesicBall | None = dataclasses.field(init=False, default=None)

    def __post_init__(self):
        if not isinstance(self.mechanism, LocatedMechanism):
            raise InputError(f"{_NAME}: needs a LocatedMechanism, got {type(self.mechanism).__name__}.")
        positive_integer(_NAME, "n", self.n, 1)
        object.__setattr__(self, "releases", tuple(self.releases))
        with jax.enable_x64(True):
            self._replay()

    def after(self, release: Release) -> "SearchInRounds":
        """The search that knows one release more.

        Args:
            release: what ``now`` has finished, as it is or loaded.

        Raises:
            ValueError: it is of another stage, or of another search.
        """
        return dataclasses.replace(self, releases=(*self.releases, release))

    def _replay(self):
        """Ask the questions again, up to the first that is not answered."""
        mechanisms = self._mechanisms(self.mechanism.law(self.n))
        own = next(mechanisms)
        for number, release in enumerate(self.releases, 1):
            if own is None or not isinstance(release, Release) or not _is_of(release, own, self.n):
                raise InputError(f"{_NAME}: release {number} is not that of stage {number} of this search.")
            own = mechanisms.send(release)
        object.__setattr__(self, "now", own)

    def _mechanisms(self, law: LocatedLaw) -> Generator[Mechanism | None, Release, None]:
        """Those of all stages, of which each is sent its release; then None."""
        search, plan, radii = self.mechanism.search(), law.schedule, law.last.radii
        rest = _rest(law, search.guarantee)

        def last(center, radius):
            return mechanism_named(search.chosen, GeodesicBall(law.manifold, center, radius), rest)

        summed(last(law.manifold.origin, radii[0]))  # or refused, before anything is spent
        steps, number = walk(law.manifold, plan, radii, self.n), 1
        question = next(steps)
        while True:
            own = StageMechanism(search.domain, _stage(plan, question), self.n, number)
            answer = _answer(question, own, (yield own))
            try:
                question, number = steps.send(answer), number + 1
            except StopIteration as end:
                mean = last(*end.value)
                object.__setattr__(self, "ball", mean.ball)
                yield mean
                yield None


def _stage(plan: Schedule, question: Radius | Middle) -> Stage:
    if isinstance(question, Radius):
        return RadiusStage(question, isinstance(plan.spent, PureDP))
    place = question.place
    return CenterStage(Summed(plan.parts[place], plan.centers[place]), question.center, question.radius)


def _rest(law: LocatedLaw, whole: PureDP | ZeroConcentratedDP) -> float:
    """What the stages leave of a budget: epsilon, or mu. What each costs is rounded up, as each is charged."""
    plan, left = law.schedule, Fraction(written(_amount(whole)))
    steps = walk(law.manifold, plan, law.last.radii, law.n)
    question = next(steps)
    while True:
        left -= Fraction(written(_amount(_stage(plan, question).guarantee)))
        # What it costs does not depend on the answer.
        answer = question.radii[0] if isinstance(question, Radius) else origin_of(plan.parts[question.place])
        try:
            question = steps.send(answer)
        except StopIteration:
            return float_below(left) if isinstance(whole, PureDP) else float_below(2 * left, 2)


def _amount(promise: PureDP | ZeroConcentratedDP) -> float:
    return promise.epsilon if isinstance(promise, PureDP) else promise.rho


def _answer(question: Radius | Middle, own: StageMechanism, release: Release):
    """What was released, as the walk takes it."""
    value = np.asarray(release.value)
    fallback = np.asarray(own.stage.fallback)
    sound = value.shape == fallback.shape and bool(np.all(np.isfinite(value)))
    if not sound or (isinstance(question, Radius) and float(value) not in question.radii):
        raise InputError(f"{_NAME}: release {own.number} has no value that stage {own.number} could have.")
    return float(value) if isinstance(question, Radius) else value.astype(fallback.dtype)


def _is_of(release: Release, own: Mechanism, n: int) -> bool:
    """Whether a record is of this stage, or of the last mechanism."""
    record = release.record
    if isinstance(own, StageMechanism):
        return is_of_stage(record, own)
    same = (type(own).__name__, n, own.domain.described(())["ball"])
    return (record.get("mechanism"), record.get("n"), record.get("ball")) == same
