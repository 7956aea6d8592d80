"""Which mechanism a release takes: the one that the call names, or the one with the smallest expected error.

Only public numbers decide: the manifold, the ball, the number of records, the budget.
"""

import dataclasses

from jaxgeodp.checks import InputError
from jaxgeodp.cli.registries import with_several
from jaxgeodp.domains import GeodesicBall, Shape
from jaxgeodp.locating import LocatedMechanism
from jaxgeodp.manifolds import Manifold
from jaxgeodp.mechanisms import AdaptiveMechanism, plan_in_steps, plan_mechanisms
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.mechanisms.names import MECHANISMS, NamedMechanism, mechanism_named, names_with, unbiased_names
from jaxgeodp.mechanisms.steps_that_gain import steps_that_gain
from jaxgeodp.privacy.guarantee import GaussianDP, PureDP
from jaxgeodp.releases import Mechanism
from jaxgeodp.releases.drafts import OPTIONS
from jaxgeodp.releases.expected import REFERENCES, expected_error
from jaxgeodp.releases.ways import Way
from jaxgeodp.statistics import FrechetMean, FrechetMedian

AUTO, ADAPTIVE = "auto", "adaptive"
_STATISTICS = {"mean": FrechetMean, "median": FrechetMedian}


def released_mechanisms() -> dict[str, NamedMechanism]:
    """Return the entries of the registry whose values are points of the manifold, but for projected baselines."""
    return {name: entry for name, entry in MECHANISMS.items() if entry.on_manifold and "project" not in name}


@dataclasses.dataclass(frozen=True)
class Choice:
    """Values of the options of ``jaxgeodp release`` of these names.

    Raises:
        ValueError: options that do not go together.
    """

    mechanism: str
    epsilon: float | None
    mu: float | None
    statistic: str
    calibration: str
    delta: float
    numerics: str
    symmetric: bool = False

    def __post_init__(self):
        if self.symmetric and self.mechanism != ADAPTIVE:
            raise InputError(f"--symmetric is for --mechanism {ADAPTIVE}.")
        if self.mechanism not in (AUTO, ADAPTIVE, *released_mechanisms()):
            known = ", ".join((AUTO, ADAPTIVE, *released_mechanisms()))
            raise InputError(f"--mechanism must be one of {known}, got '{self.mechanism}'.")
        if (self.epsilon is None) == (self.mu is None):
            if self.epsilon is None and self.mechanism in (AUTO, ADAPTIVE):
                raise InputError("a privacy parameter is needed: give --epsilon, or --mu for a Gaussian mechanism.")
            if self.epsilon is not None:
                raise InputError("--epsilon and --mu are two different guarantees: give only one of them.")
            raise InputError(f"--mechanism {self.mechanism} needs {self._needed()} and no other privacy parameter.")
        if self.calibration == "paper":
            raise InputError("--calibration must be tight or theorem: 'paper' has no proven guarantee.")
        if self.numerics not in ("idealized", "grid"):
            raise InputError(f"--numerics must be idealized or grid, got '{self.numerics}'.")
        if self.statistic not in _STATISTICS:
            raise InputError(f"--statistic must be one of {', '.join(_STATISTICS)}, got '{self.statistic}'.")
        if self.mechanism == ADAPTIVE:
            if (self.statistic, self.calibration, self.delta) != ("mean", "tight", 0.0):
                raise InputError(f"--mechanism {ADAPTIVE} is for --statistic mean, --calibration tight and --delta 0.")
            if self.numerics == "grid" and self.mu is None:
                raise InputError(f"--mechanism {ADAPTIVE} with --numerics grid needs --mu.")
        elif self.mechanism != AUTO:
            self._check_named(MECHANISMS[self.mechanism])
        elif not self._candidates():
            raise InputError("no mechanism supports all of these options together; see 'jaxgeodp release --help'.")

    @property
    def parameter(self) -> str:
        """Return which privacy parameter is given, ``epsilon`` or ``mu``."""
        return "epsilon" if self.mu is None else "mu"

    @property
    def strength(self) -> float:
        """Return the privacy parameter."""
        given = self.epsilon if self.mu is None else self.mu
        assert given is not None  # as checked
        return given

    @property
    def promise(self) -> PureDP | GaussianDP | None:
        """Return what auto promises, whichever mechanism it takes; None of a named one, and with other options."""
        if self.mechanism != AUTO or self.delta or self.numerics != "idealized":
            return None
        return PureDP(self.strength) if self.mu is None else GaussianDP(self.strength)

    def made(
        self, ball: GeodesicBall, n: int, shape: Shape | None = None, in_steps: bool = True
    ) -> tuple[BallMechanism, dict]:
        """Return the mechanism, and what the record says of its choice.

        Args:
            ball: public.
            n: number of records.
            shape: public, which "auto" takes, if there is one.
            in_steps: whether "auto" may take steps: not with weights, nor for sums of workers.

        Raises:
            ValueError: the mechanism refuses this ball or n; or all do, or none suits the manifold.
        """
        if self.mechanism == ADAPTIVE:
            steps = AdaptiveMechanism(ball, epsilon=self.epsilon, mu=self.mu, symmetric=self.symmetric, shape=shape)
            return steps, {}
        if shape is not None:
            shaped = [name for name in self._candidates() if MECHANISMS[name].shaped]
            if not shaped or self.mechanism not in (AUTO, *shaped):
                raise InputError(
                    f"--ball: its file has a shape, which --mechanism {self.mechanism} does not support with these "
                    "options: choose tangent (--epsilon), tangent-gaussian (--mu) or adaptive, or name a file without "
                    "a shape."
                )
            by = {"chosen": {"by": "the shape in the file of the public ball, which only this one takes"}}
            made = mechanism_named(shaped[0], ball, self.strength, self.calibration, shape=shape)
            return made, by if self.mechanism == AUTO else {}
        if self.mechanism != AUTO:
            return self._named(self.mechanism, ball), {}
        if in_steps and (taken := self._steps(ball, n)) is not None:
            return taken
        names = [
            name
            for name in self._candidates()
            if MECHANISMS[name].suits(ball.manifold) and name in unbiased_names(ball.manifold)
        ]
        if not names:
            raise InputError(
                f"--mechanism auto: none that releases the statistic itself on {ball.manifold} supports all of these "
                f"options together; choose one of {', '.join(self._candidates())}."
            )
        if len(names) == 1:
            return self._named(names[0], ball), {}
        try:
            best, *others = plan_mechanisms(ball, n, self.epsilon, self.mu, names=names, calibration=self.calibration)
        except InputError as refusal:
            raise InputError(
                f"--mechanism auto: none of {', '.join(names)} is possible; the first is refused: {refusal}"
            ) from None
        among = {plan.mechanism: plan.error for plan in (best, *others) if not plan.refusal}
        return self._named(best.name, ball), {
            "chosen": {"by": "smallest expected error for public reference records", "expected_errors": among}
        }

    def _steps(self, ball, n) -> tuple[BallMechanism, dict] | None:
        """Return the mechanism in steps and its record entry, if allowed and expected to be better; else None."""
        if self.statistic != "mean" or self.calibration != "tight" or self.delta:
            return None
        taken = steps_that_gain(ball, n, self.epsilon, self.mu, grid=self.numerics == "grid")
        if taken is None:
            return None
        errors = {own.population.words: own.ratio for own in taken.expected}
        by = "least geometric mean of expected errors over reference populations, in none much more than of one release"
        return taken.mechanism, {"chosen": {"by": by, "over_one_release": errors}}

    def located(self, space: Manifold, domain: float | None) -> Mechanism:
        """Return the mechanism that finds its own ball.

        Raises:
            ValueError: an option that is for a public ball; see `LocatedMechanism`.
        """
        if self.statistic != "mean" or self.calibration != "tight" or self.delta != 0.0:
            raise InputError("--center auto --radius auto is for --statistic mean, --calibration tight and --delta 0.")
        if self.mechanism == ADAPTIVE:
            raise InputError(f"--mechanism {ADAPTIVE} needs a public ball: --center and --radius, or --ball.")
        name = "wrapped" if (self.mechanism, self.numerics, self.mu) == (AUTO, "grid", None) else self.mechanism
        return LocatedMechanism(space, name, epsilon=self.epsilon, mu=self.mu, domain=domain)

    def _named(self, name, ball):
        more = {"statistic": _STATISTICS[self.statistic]()} if len(MECHANISMS[name].statistics) > 1 else {}
        return mechanism_named(name, ball, self.strength, self.calibration, **more)

    def _needed(self):
        either = self.mechanism in (AUTO, ADAPTIVE)
        return "--epsilon or --mu" if either else f"--{MECHANISMS[self.mechanism].parameter}"

    def _candidates(self) -> list[str]:
        """Return the names of all mechanisms that support the options."""
        return [
            name
            for name, entry in released_mechanisms().items()
            if entry.parameter == self.parameter
            and self.statistic in entry.statistics
            and (self.calibration == "tight" or len(entry.calibrations) > 1)
            and (self.delta == 0.0 or name in names_with("delta"))
            and (self.numerics != "grid" or name in names_with("grid"))
        ]

    def _check_named(self, entry):
        name = self.mechanism
        if entry.parameter != self.parameter:
            raise InputError(f"--mechanism {name} needs --{entry.parameter} and no other privacy parameter.")
        if self.calibration != "tight" and len(entry.calibrations) == 1:
            raise InputError(f"--calibration is for {with_several('calibrations')}, got --mechanism {name}.")
        for option, is_asked in (("delta", self.delta != 0.0), ("grid", self.numerics == "grid")):
            if is_asked and name not in (taking := names_with(option)):
                raise InputError(f"--mechanism {name}: {OPTIONS[option]}; choose one of {', '.join(taking)}.")
        if self.statistic not in entry.statistics:
            raise InputError(
                f"--statistic {self.statistic} needs --mechanism {with_several('statistics')}, got --mechanism {name}."
            )


def stated_error(mechanism: Mechanism, n: int, way: Way) -> dict:
    """Return the record's entry on the expected error; empty if that is not known."""
    if isinstance(mechanism, AdaptiveMechanism) and mechanism.shape is None:
        found = plan_in_steps(mechanism.ball, n, mechanism.epsilon, mechanism.mu, mechanism.symmetric)
        return {"expected_errors": {own.population.words: own.steps for own in found}} if found else {}
    try:
        return {"expected_error": expected_error(mechanism, n, way)._asdict() | {"of": REFERENCES}}
    except InputError:
        return {}
