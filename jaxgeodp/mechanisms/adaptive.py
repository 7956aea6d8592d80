"""A mean in a public ball by steps: where the records are, how far they reach, and a last step that fits them."""

import dataclasses
import math
from typing import Any, final

from typing_extensions import override

from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.checks import InputError, epsilon_or_mu
from jaxgeodp.domains.records import record_count
from jaxgeodp.domains.shape import Shape
from jaxgeodp.mechanisms.adaptive_law import AdaptiveLaw
from jaxgeodp.mechanisms.adaptive_rules import rule_for
from jaxgeodp.mechanisms.adaptive_simulation import Numbers
from jaxgeodp.mechanisms.populations import ratio_of_logarithms
from jaxgeodp.mechanisms.shaped_mean import told_of, unclipped
from jaxgeodp.mechanisms.shaped_mechanism import ShapedMechanism
from jaxgeodp.mechanisms.tangent import TangentGaussian, TangentLaplace
from jaxgeodp.mechanisms.tangent_vectors import LARGEST_REACH, MEAN_OF_LOGARITHMS, MeanOfVectors, vector_length
from jaxgeodp.mechanisms.wrapped import WrappedGaussian, WrappedLaplace
from jaxgeodp.nested_lists import plain_number
from jaxgeodp.privacy.guarantee import GaussianDP, PureDP
from jaxgeodp.releases.law import Terms
from jaxgeodp.releases.vector import VectorLaw

_SAMPLER = {"name": "noise added to vectors and counts, in steps", "exactness": "exact up to floating point"}
# A shape's clip is for the noise of one release. Of the first mean, where finding out costs little, this many times it.
_FIRST_CLIP = {"epsilon": 1.0, "mu": 2.0}


@final
@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class AdaptiveMechanism(ShapedMechanism):
    """A private Frechet mean whose noise fits the records, where the ball is wider than they are.

    A part of the budget finds about where the records are and how far they reach; the rest pays for one step from
    there, with records shortened to what balances noise against clipping. Which stage comes next, and its cost, follow
    from what was released, and on every path the costs add up to the budget (docs/mathematics.md, Theorem V2): a
    release is epsilon-DP, or mu-GDP. Where the records fill the ball, or are too few to find anything out, one release
    about the public centre is made. The record holds every stage. With ``mu`` and ``numerics="grid"`` all stages are
    sums of integers with exact noise, data may be `RecordBlocks`, and mu^2/2-zCDP is promised.

    What is released is the mean of records shortened about a released point: near the Frechet mean, and biased where
    many far records lie on one side.

    Args:
        ball: the public ball that holds the data (Assumption 1).
        epsilon: the whole budget, in (0, inf); or
        mu: that of Gaussian mechanisms.
        symmetric: suppose that the records lie symmetrically about their mean, and shorten more of them: mostly less
            error if they do (docs/mathematics.md, section 21, says where not), a bias if not.
        shape: a public ellipsoid about the centre (Theorem Y): lengths are then those of a record's coordinates in it,
            its clip (at mu twice that) takes the place of the radius, and noise has its shape, carried to new centres.

    Raises:
        ValueError: see `BallMechanism`; not one privacy parameter; a shape that `TangentLaplace` would refuse.

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
    shape: Shape | None = None

    def __post_init__(self):
        epsilon_or_mu("AdaptiveMechanism", self.epsilon, self.mu)
        if not isinstance(self.symmetric, bool):
            raise InputError(f"AdaptiveMechanism: symmetric must be True or False, got {self.symmetric!r}.")
        super().__post_init__()

    @property
    def guarantee(self) -> PureDP | GaussianDP:
        """Return epsilon-DP, or mu-GDP."""
        promise = self.budget
        assert promise is not None  # one is given
        return promise

    @property
    @override
    def supports(self):
        return super().supports - {"weights"} | (set() if self.mu is None else {"grid"})

    @override
    def law(self, n, shape=()) -> AdaptiveLaw:  # pyright: ignore[reportIncompatibleMethodOverride]
        n, pure = record_count(n), self.epsilon is not None
        strength: Any = self.epsilon if pure else self.mu
        mean, whole, reach = self._laws(n, strength, TangentLaplace if pure else TangentGaussian)
        rule = rule_for(n, vector_length(mean), strength, pure, self.symmetric)
        of = "2r/n" if self.shape is None else f"{2.0 * reach / self.shape.clip:g} clip/n"
        sensitivity = Sensitivity(2.0 * reach / n, f"{of}, of a first mean; each step has its own scale")
        # Of all records in one release, about a computed mean perhaps, of which something is supposed then.
        own = whole.terms
        filled: dict = {"statistic": own.statistic, "value": plain_number(own.sensitivity), "formula": own.formula}
        if not isinstance(whole.summary, MeanOfVectors):
            filled["grid"] = {"statistic": MEAN_OF_LOGARITHMS, "value": 2.0 * reach / n, "formula": "2r/n"}
        if rule is None:
            sensitivity = Sensitivity(own.sensitivity, own.formula)
        told = {"filled": filled}
        if self.shape is not None:
            told["shape"] = told_of(self.shape)["shape"] | {"expected": None}  # that is of one release
            # Its clip is for one release, and would cut off what counts have found.
            rule = rule if rule is None or pure else rule._replace(filled=math.inf)
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
            more={"symmetric": self.symmetric, "one release": rule is None, **told},
        )
        numbers = None if rule is None else Numbers.of(rule)
        return AdaptiveLaw(rule, numbers, n, strength, pure, _bare(mean), _bare(whole), reach, terms)

    def _laws(self, n, strength, tangent) -> tuple[VectorLaw, VectorLaw, float]:
        """Return the law of mean vectors, that of one release with all of the budget, and the vectors' bound."""
        ball = self.ball
        mean = tangent(ball, strength).law(n)
        if self.shape is not None:
            reach = _FIRST_CLIP["epsilon" if self.mu is None else "mu"] * self.shape.clip
            summary = self.shaped.without_gains(reach)
            root = ball.manifold.coordinate_growth
            if root > 0 and not reach * summary.stretch * root <= LARGEST_REACH:
                raise InputError(
                    f"AdaptiveMechanism: the first mean can reach {reach * summary.stretch:.4g} on {ball.manifold}, "
                    "too "
                    f"far for double precision, which needs at most {LARGEST_REACH / root:.4g}: lower the shape's clip."
                )
            law = dataclasses.replace(
                mean, summary=summary, ball=unclipped(ball, summary), scale=2.0 * reach / n / strength
            )
            return law, tangent(ball, strength, self.shape).law(n), reach
        whole = (WrappedLaplace if tangent is TangentLaplace else WrappedGaussian)(ball, strength).law(n)
        # Where curvature is positive a logarithm stretches: the mean of logarithms has less noise, but a bias.
        if ball.manifold.curvature_bounds[1] > 0.0:
            ratio = ratio_of_logarithms(ball, mean.scale, whole.scale, self.mu is None)
            whole = mean if ratio < 1.0 else whole
        return mean, whole, ball.radius


def _bare(law):
    """Return the law without the fields that are no part of programs."""
    return dataclasses.replace(law, terms=None, on_grid=None, rows=None)
