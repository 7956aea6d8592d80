"""Mechanisms of a description, for attacks on its releases together."""

from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.inference.chain import split
from jaxgeodp.inference.mechanism_of_mean import mechanism_of_mean
from jaxgeodp.inference.moments import FrechetVariance, TangentCovariance
from jaxgeodp.inference.shares import shares_of
from jaxgeodp.inference.spread import SpreadMechanism


def mechanisms_of_description(ball: GeodesicBall, parameter: str, strength: float, n: int) -> list:
    """Return the mechanisms of a mean, a variance and a covariance with the shares of `describe`.

    Those of spread are about the centre of the ball, not about the released mean, which only a release knows.

    Args:
        ball: public.
        parameter: "epsilon" or "mu".
        strength: of all together.
        n: number of records.
    """
    shares = shares_of(parameter, strength, n, ball.manifold.dim)
    mean, *later = split(parameter, strength, shares)
    moments = zip((FrechetVariance(), TangentCovariance()), later, strict=True)
    return [
        mechanism_of_mean(ball.manifold, ball, None, parameter, mean),
        *(SpreadMechanism(ball, ball.center, own, **{parameter: part}) for own, part in moments),
    ]
