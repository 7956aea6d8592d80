"""A search whose records stay where they are: each stage is prepared in blocks, added up, and finished, like any sum.

Each stage is a release of its own, with its own promise and its own charge; together they cost no more than the search
of `LocatedMechanism` with one budget (docs/mathematics.md, section 16). Between them, only what was released travels.
"""

import dataclasses
import operator
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
from jaxgeodp.locating.stages import (
    CenterStage,
    LastStage,
    RadiusStage,
    Stage,
    StageMechanism,
    is_of_stage,
    no_value,
    point_of,
)
from jaxgeodp.locating.steps import stages_in_steps
from jaxgeodp.locating.walk import Middle, Radius, walk
from jaxgeodp.mechanisms.adaptive import AdaptiveMechanism
from jaxgeodp.mechanisms.names import mechanism_named
from jaxgeodp.privacy.decimals import float_below, written
from jaxgeodp.privacy.guarantee import GaussianDP, PureDP, ZeroConcentratedDP
from jaxgeodp.privacy.release import Release
from jaxgeodp.releases.drafts import Request
from jaxgeodp.releases.mechanism import check_finish
from jaxgeodp.releases.ways import FromSums

_NAME = "SearchInRounds"
# Records; what follows is for numbers that floats hold.
_MOST = 10**18


@final
@dataclasses.dataclass(frozen=True, eq=False)
class SearchInRounds:
    """The stages of a `LocatedMechanism`, or of an `AdaptiveMechanism`, for n records that are not in one place.

    ``now`` is the mechanism of the next stage: whoever has records prepares them with it, the states are merged (or
    masked and combined), the sum is finished, and ``after`` is the search that knows what was released. The last stage
    is the release of the mean, by one whose sums add up: "tangent", "tangent-gaussian", where space is flat "wrapped"
    and "wrapped-gaussian". Each stage is charged when it is finished. All together they promise what `LocatedMechanism`
    promises: ask ``ledger.check(search.mechanism.guarantee)`` first. Of `AdaptiveMechanism` that is for ``mu``, in zCDP
    (``search.mechanism.guarantee.to_zcdp()``); how many stages there are follows from what they release.

    Args:
        mechanism: with a mechanism whose sums add up.
        n: number of all records, which is public.
        releases: of the stages that are finished, in their order; loaded ones, too.

    Attributes:
        now: the mechanism of the next stage; None when all are finished.
        guarantees: what each stage promises, in their order; of an `AdaptiveMechanism` those that are known so far.
        center: point about which the last ball was sought; None before that.
        ball: that was found; None before that, and if none can be made about the centre, as far out double precision
            ends: then nothing more is released, and the centre, which has been, is all there is. The public one of an
            `AdaptiveMechanism`.

    Raises:
        ValueError: the last release is no sum, a mechanism in steps has ``epsilon`` (pairs are no sums), there are too
            few records, or a release is of another search.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp import LocatedMechanism, SPD
        >>> from jaxgeodp.locating import SearchInRounds
        >>> sites = [np.tile(np.eye(2) * scale, (1500, 1, 1)) for scale in (4.0, 5.0)]
        >>> search = SearchInRounds(LocatedMechanism(SPD(2), "tangent", epsilon=4.0), n=3000)
        >>> while search.now is not None:
        ...     state = search.now.prepare(sites[0]) + search.now.prepare(sites[1])
        ...     search = search.after(search.now.finish(state))
        >>> len(search.releases), search.releases[-1].value.shape
        (8, (2, 2))
    """

    mechanism: LocatedMechanism | AdaptiveMechanism
    n: int
    releases: tuple[Release, ...] = ()
    now: StageMechanism | LastStage | None = dataclasses.field(init=False, default=None)
    guarantees: tuple[PureDP | ZeroConcentratedDP, ...] = dataclasses.field(init=False, default=())
    center: np.ndarray | None = dataclasses.field(init=False, default=None)
    ball: GeodesicBall | None = dataclasses.field(init=False, default=None)

    def __post_init__(self):
        if not isinstance(self.mechanism, LocatedMechanism | AdaptiveMechanism):
            raise InputError(
                f"{_NAME}: needs a LocatedMechanism or an AdaptiveMechanism, got {type(self.mechanism).__name__}."
            )
        positive_integer(_NAME, "n", self.n, 1)
        if self.n > _MOST:
            raise InputError(f"{_NAME}: n must be at most {_MOST:.0e}.")
        self._set(n=operator.index(self.n), releases=tuple(self.releases))
        with jax.enable_x64(True):
            self._replay()

    def after(self, release: Release) -> "SearchInRounds":
        """Return the search that knows one release more.

        Args:
            release: what ``now`` has finished, as it is or loaded.

        Raises:
            ValueError: it is of another stage, or of another search.
        """
        return SearchInRounds(self.mechanism, self.n, (*self.releases, release))

    def _set(self, **fields):
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _replay(self):
        """Ask the questions again, up to the first that is not answered."""
        if isinstance(self.mechanism, AdaptiveMechanism):
            mechanisms = self._steps(self.mechanism)
        else:
            mechanisms = self._mechanisms(self.mechanism, self.mechanism.law(self.n))
        own = next(mechanisms)
        for number, release in enumerate(self.releases, 1):
            if own is None or not isinstance(release, Release) or not is_of_stage(release.record, own):
                raise InputError(f"{_NAME}: release {number} is not that of stage {number} of this search.")
            own = mechanisms.send(release)
        self._set(now=own)

    def _steps(self, mechanism: AdaptiveMechanism) -> Generator[StageMechanism | None, Release, None]:
        """Yield the mechanism of each adaptive stage; receive its release; yield None at the end."""
        self._set(ball=mechanism.ball)
        stages = stages_in_steps(_NAME, mechanism, self.n)
        own = next(stages)
        while own is not None:
            self._set(guarantees=(*self.guarantees, own.guarantee))
            own = stages.send((yield own))
        yield None

    def _mechanisms(
        self, search: LocatedMechanism, law: LocatedLaw
    ) -> Generator[StageMechanism | LastStage | None, Release, None]:
        """Yield each stage's mechanism; receive its release; yield None at the end."""
        plan, manifold = law.schedule, law.manifold
        costs, rest = _budget(law, search.guarantee)
        pure = isinstance(search.guarantee, PureDP)
        self._set(guarantees=(*costs, PureDP(rest) if pure else GaussianDP(rest).to_zcdp()))
        number = len(costs) + 1

        def last(center, radius):
            return LastStage(
                mechanism_named(search.chosen, GeodesicBall(manifold, center, radius), rest), self.n, number
            )

        # As in one place: what can be refused is refused before anything is spent.
        final = last(manifold.origin, law.last.radii[-1])
        Request(final.mechanism, FromSums()).check()
        check_finish(final, self.n, manifold.shape)
        steps = walk(manifold, plan, law.last.radii, self.n)
        question = next(steps)
        for place in range(1, number):
            own = StageMechanism(search.domain, _stage(plan, question), self.n, place)
            answer = _answer(plan, question, place, (yield own))
            try:
                question = steps.send(answer)
            except StopIteration as end:
                found = end.value
                self._set(center=np.asarray(found.center))
                try:
                    final = last(found.center, found.radius)
                except InputError:
                    break
                self._set(ball=final.mechanism.ball)
                point_of(manifold, number, (yield final))
        yield None


def _stage(plan: Schedule, question: Radius | Middle) -> Stage:
    if isinstance(question, Radius):
        return RadiusStage(question, isinstance(plan.spent, PureDP))
    place = question.place
    return CenterStage(Summed(plan.parts[place], plan.centers[place]), question.center, question.radius)


def _budget(law: LocatedLaw, whole: PureDP | ZeroConcentratedDP) -> tuple[list, float]:
    """What each stage before the last costs, and what they leave of a budget: epsilon, or mu.

    What each costs is rounded up to a float, as it is charged; and so is rho of the last one, so that mu^2/2 is at most
    a float that is left.
    """
    plan, left, costs = law.schedule, Fraction(written(_amount(whole))), []
    steps = walk(law.manifold, plan, law.last.radii, law.n)
    question = next(steps)
    while True:
        costs.append(_stage(plan, question).guarantee)
        left -= Fraction(written(_amount(costs[-1])))
        # What it costs does not depend on the answer.
        answer = question.radii[0] if isinstance(question, Radius) else origin_of(plan.parts[question.place])
        try:
            question = steps.send(answer)
        except StopIteration:
            most = float_below(left)
            return costs, most if isinstance(whole, PureDP) else float_below(2 * Fraction(written(most)), 2)


def _amount(promise: PureDP | ZeroConcentratedDP) -> float:
    return promise.epsilon if isinstance(promise, PureDP) else promise.rho


def _answer(plan: Schedule, question: Radius | Middle, number: int, release: Release):
    """Return the value released by a stage, in the form that the walk expects.

    Raises:
        ValueError: the stage releases no such values.
    """
    value = np.asarray(release.value)
    if isinstance(question, Radius):
        if value.shape == () and value.dtype.kind == "f" and float(value) in question.radii:
            return float(value)
        raise no_value(number)
    return point_of(plan.parts[question.place].manifold, number, release)
