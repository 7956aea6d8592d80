"""Global sensitivities under replace-one adjacency, for n records in a ball of radius r.

"theorem" are the bounds of the papers, "tight" our sharper ones (docs/mathematics.md, Theorems A-C). All
return a `Sensitivity`: an upper bound with the name of its formula.
"""

import dataclasses
import math

from jaxgeodp.bounds.comparison import h_max, h_min, rauch
from jaxgeodp.bounds.diameter import log_diameter
from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall, assumption_limit

CALIBRATIONS = ("tight", "theorem", "paper")


@dataclasses.dataclass(frozen=True)
class Sensitivity:
    """An upper bound of a global sensitivity and the name of the formula that gives it.

    Attributes:
        value: the bound, at least 0.
        formula: in words, with its theorem, as a release record names it.
    """

    value: float
    formula: str


def gradient_sensitivity(ball: GeodesicBall, n: int, support_radius: float, calibration: str) -> Sensitivity:
    """Return a bound of ``|grad F(x; D) - grad F(x; D')|_x`` over x within ``support_radius`` of the centre.

    F is half the mean squared distance. D and D' are data sets of n records in the ball that differ in one.

    Args:
        ball: that of the records, which satisfies Assumption 1.
        n: number of records.
        support_radius: R, above 0 and below `largest_support`; infinite only on a manifold without positive curvature.
        calibration: "theorem" for Theorem 2 of Soto et al. (2022), which supposes R <= r where curvature is positive;
            anything else for our sharper bounds (Theorems A and B).

    Returns:
        `Sensitivity`, in units of the manifold's distance.

    Raises:
        ValueError: the ball does not satisfy Assumption 1, or the support is too large for the curvature.
    """
    _check_assumption("gradient_sensitivity", ball)
    r, k_max = ball.radius, ball.manifold.curvature_bounds[1]
    _check_support(ball, support_radius)
    if k_max <= 0:
        return Sensitivity(2.0 * r / n, "2r/n (Rauch comparison, curvature <= 0)")
    if calibration == "theorem":
        if support_radius > r:
            raise InputError(
                "gradient_sensitivity: calibration 'theorem' bounds gradients within the ball of the records alone; "
                f"support_radius must be at most its radius {r:g}, got {support_radius:g}."
            )
        h = h_max(2.0 * r, k_max)
        return Sensitivity(2.0 * r * (2.0 - h) / n, "2r(2-h)/n (Soto et al. 2022, Theorem 2)")
    return min(_by_rauch(ball, n, support_radius), _by_diameter(ball, n, support_radius), key=lambda s: s.value)


def paper_gradient_sensitivity(ball: GeodesicBall, n: int) -> tuple[Sensitivity, float]:
    """Return the sensitivity, and the factor of sensitivity/epsilon in the scale, of Soto et al.'s simulation (2022).

    On spheres 2r(2-h)/n with h at r instead of 2r and the factor 1 (supplement 2.4.2); elsewhere their Theorem 2 and 2.
    """
    lowest, highest = ball.manifold.curvature_bounds
    if lowest == highest > 0:
        value = 2.0 * ball.radius * (2.0 - h_max(ball.radius, highest)) / n
        return Sensitivity(value, "2r(2-h(r))/n (Soto et al. 2022, supplement 2.4.2; h at r is not proven)"), 1.0
    value = 2.0 * ball.radius * (2.0 - h_max(2.0 * ball.radius, highest)) / n
    return Sensitivity(value, "2r(2-h)/n (Soto et al. 2022, Theorem 2)"), 2.0


def mean_sensitivity(ball: GeodesicBall, n: int, calibration: str) -> Sensitivity:
    """Return a bound of the distance between the Frechet means of two data sets of n records that differ in one.

    Args:
        ball: that of the records, which satisfies Assumption 1.
        n: number of records.
        calibration: "theorem" for Theorem 2 of Reimherr et al. (2021), anything else for our sharper bound (Theorem C).

    Returns:
        `Sensitivity`, in units of the manifold's distance.

    Raises:
        ValueError: the ball does not satisfy Assumption 1.
    """
    _check_assumption("mean_sensitivity", ball)
    r = ball.radius
    k_min, k_max = ball.manifold.curvature_bounds
    h = h_max(2.0 * r, k_max)
    paper = 2.0 * r * (2.0 - h) / (n * h)
    if calibration == "theorem":
        return Sensitivity(paper, "2r(2-h)/(nh) (Reimherr et al. 2021, Theorem 2)")
    gradient = 2.0 * r / n if k_max <= 0 else _by_diameter(ball, n, r).value
    # Iterated downwards, every value is a bound: an early stop costs sharpness, never privacy.
    bound = min(paper, 2.0 * r)
    for _ in range(200):
        spread = r**2 + h_min(2.0 * r, k_min) * bound**2
        convexity = 1.0 - (1.0 - h) * min(1.0, spread / (4.0 * r**2))
        refined = min(bound, gradient / convexity)
        if refined >= bound * (1.0 - 1e-12):
            break
        bound = refined
    return Sensitivity(bound, "fixed point of (2r/n) c/h_eff (docs/mathematics.md, Theorem C)")


def power_gradient_sensitivity(ball: GeodesicBall, n: int, support_radius: float, power: float) -> Sensitivity:
    """Return a bound of ``|grad F(x; D) - grad F(x; D')|_x`` for F the mean of dist^p/p, within ``support_radius``.

    Every datum contributes a vector of length at most s^{p-1}, s = R + r: 2 s^{p-1}/n, and 2/n for p = 1. For p >= 2
    also (2r/n) s^{p-2} max(p - 1, c(s)), c of Theorem A (docs/mathematics.md, Theorem G).

    Args:
        ball: that of the records, of radius r.
        n: number of records.
        support_radius: R, above 0 and below `largest_support`.
        power: p, at least 1.

    Returns:
        `Sensitivity`; its unit is that of dist^(p - 1).

    Raises:
        ValueError: the support is too large for the curvature.
    """
    _check_support(ball, support_radius)
    farthest = support_radius + ball.radius
    length = Sensitivity(2.0 * farthest ** (power - 1.0) / n, "2 s^(p-1)/n (docs/mathematics.md, Theorem G)")
    if power < 2.0 or not ball.satisfies_assumption:  # the path between two records leaves a ball that is not convex
        return length
    bend = max(power - 1.0, rauch(farthest, ball.manifold.curvature_bounds[1]))
    path = 2.0 * ball.radius * farthest ** (power - 2.0) * bend / n
    return min(length, Sensitivity(path, "(2r/n) s^(p-2) max(p-1, s/sin s) (Theorem G)"), key=lambda s: s.value)


def largest_support(ball: GeodesicBall) -> float:
    """Return the supremum of support radii for which the gradient bounds hold: balls below it are convex.

    Half of the smaller of the injectivity radius and pi/sqrt(k_max); infinite on Hadamard manifolds. No larger than
    where the manifold's facts hold.
    """
    manifold = ball.manifold
    k_max = manifold.curvature_bounds[1]
    conjugate = math.pi / math.sqrt(k_max) if k_max > 0 else math.inf
    limit = 0.5 * min(manifold.injectivity_radius, conjugate)
    return min(limit, manifold.radius_of_facts(ball.center))


def _check_assumption(name, ball):
    if not ball.satisfies_assumption:
        raise InputError(
            f"{name}: radius {ball.radius:g} violates Assumption 1; on {ball.manifold} it must be below "
            f"{assumption_limit(ball.manifold):.6g}."
        )


def _check_support(ball, support_radius):
    limit = largest_support(ball)
    if not (support_radius < limit or support_radius == limit == math.inf):
        raise InputError(
            f"support_radius must be below {limit:.6g}, where the gradient's sensitivity is known, got "
            f"{support_radius:g}."
        )


def _by_rauch(ball, n, support_radius):
    k_max = ball.manifold.curvature_bounds[1]
    factor = rauch(support_radius + ball.radius, k_max)
    return Sensitivity(2.0 * ball.radius * factor / n, "(2r/n) s/sin s (docs/mathematics.md, Theorem A)")


def _by_diameter(ball, n, support_radius):
    root = math.sqrt(ball.manifold.curvature_bounds[1])
    diameter = log_diameter(ball.radius * root, support_radius * root) / root
    return Sensitivity(diameter / n, "T_k(r,R)/n (docs/mathematics.md, Theorem B)")
