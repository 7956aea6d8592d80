"""A mean in a public ball by steps: where the records are, how far they reach, and a last step that fits them."""

import dataclasses
from typing import Any, final

from typing_extensions import override

from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.domains.records import record_count
from jaxgeodp.mechanisms.adaptive_law import AdaptiveLaw
from jaxgeodp.mechanisms.adaptive_rules import rule_for
from jaxgeodp.mechanisms.ball_mechanism import BallMechanism
from jaxgeodp.mechanisms.tangent import TangentGaussian, TangentLaplace
from jaxgeodp.mechanisms.wrapped import WrappedGaussian, WrappedLaplace
from jaxgeodp.privacy.guarantee import GaussianDP, PureDP
from jaxgeodp.releases.law import Terms

_SAMPLER = {"name": "noise added to vectors and counts, in steps", "exactness": "exact up to floating point"}


@final
@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class AdaptiveMechanism(BallMechanism):
    """A private Frechet mean whose noise fits the records, where the ball is wider than they are.

    A part of the budget finds about where the records are and how far they reach; the rest pays for one step from
    there, with records shortened to what balances noise against clipping. Which stage comes next, and its cost, follow
    from what was released, and on every path the costs add up to the budget (docs/mathematics.md, Theorem V2): a
    release is epsilon-DP, or mu-GDP. Where the records fill the ball, or are too few to find anything out, one release
    about the public centre is made. The record holds every stage.

    What is released is the mean of records shortened about a released point: near the Frechet mean, and biased where
    many far records lie on one side.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        epsilon: the whole budget, in (0, inf); or
        mu: that of Gaussian mechanisms.
        symmetric: suppose that the records lie symmetrically about their mean, and shorten more of them: less error if
            they do, a bias if not.

    Raises:
        ValueError: see `BallMechanism`; not one privacy parameter.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp import AdaptiveMechanism, Euclidean, GeodesicBall
        >>> mechanism = AdaptiveMechanism(ball=GeodesicBall(Euclidean(2), [0.0, 0.0], 10.0), mu=1.0)
        >>> release = mechanism.release(np.random.default_rng(0).normal([3.0, 4.0], 0.3, (1000, 2)))
        >>> release.record["guarantee"]["mu"], release.record["steps"][-1]["clip"] < 2.0
        (1.0, True)
    """

    epsilon: float | None = None
    mu: float | None = None
    symmetric: bool = False

    def __post_init__(self):
        if (self.epsilon is None) == (self.mu is None):
            raise InputError("AdaptiveMechanism: needs epsilon or mu, and not both.")
        if not isinstance(self.symmetric, bool):
            raise InputError(f"AdaptiveMechanism: symmetric must be True or False, got {self.symmetric!r}.")
        super().__post_init__()

    @property
    def guarantee(self) -> PureDP | GaussianDP:
        """epsilon-DP, or mu-GDP."""
        promise = self.budget
        assert promise is not None  # one is given
        return promise

    @property
    @override
    def supports(self):
        return super().supports - {"weights"}

    @override
    def law(self, n, shape=()) -> AdaptiveLaw:  # pyright: ignore[reportIncompatibleMethodOverride]
        n, ball, pure = record_count(n), self.ball, self.epsilon is not None
        strength: Any = self.epsilon if pure else self.mu
        rule = rule_for(n, ball.manifold.dim, strength, pure, self.symmetric)
        hadamard = ball.manifold.curvature_bounds[1] <= 0.0
        tangent, wrapped = (TangentLaplace, WrappedLaplace) if pure else (TangentGaussian, WrappedGaussian)
        mean = tangent(ball, strength).law(n)
        # Where curvature is positive a logarithm stretches, and the mean of logarithms has less noise.
        whole = (wrapped if hadamard else tangent)(ball, strength).law(n)
        sensitivity = Sensitivity(2.0 * ball.radius / n, "2r/n, of a first mean; each step has its own scale")
        terms = Terms(
            mechanism=type(self).__name__,
            statistic="mean of records shortened about a released point",
            n=n,
            strength=strength,
            guarantee=self.guarantee,
            sensitivity=sensitivity.value,
            formula=sensitivity.formula,
            theorem="docs/mathematics.md, Theorem V2",
            sampler=_SAMPLER,
            timing="the number of stages follows from what is released",
            more={"symmetric": self.symmetric, "one release": rule is None},
        )
        return AdaptiveLaw(rule, n, strength, pure, _bare(mean), _bare(whole), terms)


def _bare(law):
    """Without what is no part of programs."""
    return dataclasses.replace(law, terms=None, on_grid=None)
