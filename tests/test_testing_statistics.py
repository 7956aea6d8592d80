"""The public laws of statistics hold for the library's own, and reject wrong ones."""

import dataclasses

import jax.numpy as jnp
import pytest
from strategies import exhaustive

from jaxgeodp import (
    SPD,
    EmpiricalRisk,
    Euclidean,
    FrechetMean,
    FrechetMedian,
    GeodesicBall,
    Grassmann,
    Hyperbolic,
    PlanarShapes,
    PowerMean,
    Product,
    Rotations,
    Sphere,
    Statistic,
)
from jaxgeodp.bounds import Sensitivity
from jaxgeodp.testing import STATISTIC_LAWS, check_statistic


def ball(manifold, radius):
    return GeodesicBall(manifold, manifold.origin, radius)


PRINCIPAL = EmpiricalRisk(lambda x, y: -0.5 * jnp.vdot(x, y) ** 2, gradient_bound=0.5, shape=(3,))
CASES = [(FrechetMean(), ball(Euclidean(1), 0.5))]
CASES += exhaustive(
    (FrechetMean(), ball(Sphere(2), 0.5)),
    (PRINCIPAL, ball(Sphere(2), 0.7)),
    (FrechetMean(), ball(SPD(2), 1.0)),
    (FrechetMean(), ball(Hyperbolic(2), 0.8)),
    (FrechetMean(), ball(PlanarShapes(4), 0.3)),
    (FrechetMean(), ball(Grassmann(4, 2), 0.4)),
    (FrechetMean(), ball(Product(Sphere(2), Euclidean(1)), 0.5)),
    (FrechetMedian(), ball(Sphere(2), 0.5)),
    (FrechetMedian(), ball(Rotations(), 0.5)),
    (PowerMean(1.5), ball(Sphere(2), 0.5)),
    (PowerMean(3), ball(Hyperbolic(2), 0.8)),
    (EmpiricalRisk(lambda x, y: 0.5 * Sphere(2).squared_dist(x, y), gradient_bound=1.0), ball(Sphere(2), 0.5)),
)


@pytest.mark.parametrize(
    ("statistic", "domain"), CASES, ids=lambda value: getattr(value, "description", None) or repr(value.manifold)
)
def test_statistics_obey_the_laws(statistic, domain):
    check_statistic(statistic, domain)


# Planted mutants ----------------------------------------------------------------------------------------

PLANE = ball(Euclidean(2), 2.0)


@dataclasses.dataclass(frozen=True)
class PlaneMean(Statistic):
    """The mean of points of a plane, as a user writes it."""

    def loss(self, manifold, x, datum):
        return 0.5 * jnp.sum((x - datum) ** 2)

    def gradient_sensitivity(self, ball, n, support_radius, calibration):
        return Sensitivity(2.0 * ball.radius / n, "2r/n")

    def minimizer_sensitivity(self, ball, n, calibration):
        return Sensitivity(2.0 * ball.radius / n, "2r/n")

    def minimizer(self, ball, data):
        return jnp.mean(data, axis=0)

    def center(self, ball, data):
        return jnp.mean(data, axis=0)

    def gradient_growth(self, manifold, center, data, farthest):
        return 1.0


class ClipsTogether(PlaneMean):
    def clip(self, ball, data):
        data = super().clip(ball, data)
        return data / jnp.maximum(1.0, jnp.max(jnp.abs(data)))


class ClipsTooFar(PlaneMean):
    def clip(self, ball, data):
        return dataclasses.replace(ball, radius=1.5 * ball.radius).clip(data)


class WrongGradient(PlaneMean):
    def gradient(self, manifold, x, data):
        return x - jnp.mean(data, axis=0) * 0.9


class ShorterGradient(PlaneMean):
    def gradient(self, manifold, x, data):
        return 0.9 * super().gradient(manifold, x, data)

    def gradient_growth(self, manifold, center, data, farthest):
        return 0.9


class GradientOfAnotherRecord(PlaneMean):
    """The first record counts for the second, too."""

    def gradient(self, manifold, x, data):
        data = data.at[1:2].set(data[:1])
        return super().gradient(manifold, x, data)

    def gradient_growth(self, manifold, center, data, farthest):
        return 0.0


class WrongNorm(PlaneMean):
    def gradient_norm(self, manifold, x, data):
        return 2.0 * super().gradient_norm(manifold, x, data)


class NaNAtARecord(PlaneMean):
    """The gradient of a distance that divides by it."""

    def loss(self, manifold, x, datum):
        return 0.5 * jnp.sqrt(jnp.sum((x - datum) ** 2)) ** 2


class SmallSensitivity(PlaneMean):
    def gradient_sensitivity(self, ball, n, support_radius, calibration):
        return Sensitivity(0.9 * 2.0 * ball.radius / n, "2r/n")


class SensitivityFallsTooFast(PlaneMean):
    def gradient_sensitivity(self, ball, n, support_radius, calibration):
        return Sensitivity(4.0 * ball.radius / n**2, "2r/n")


class MoreConvexThanItIs(PlaneMean):
    def convexity(self, ball, distance):
        return 1.01


class AnotherValue(PlaneMean):
    def convexity(self, ball, distance):
        return 1.0

    def value(self, manifold, x, data):
        return 1.0 + super().value(manifold, x, data)


class GrowsTooFast(PlaneMean):
    def gradient_growth(self, manifold, center, data, farthest):
        return 1.01


class LinesGrowTooFast(PlaneMean):
    def gradient_growth(self, manifold, center, data, farthest):
        return Lines()


class Lines:
    def lines(self, lower, upper):
        return lower + 0.01, jnp.ones_like(lower)


class CenterOutside(PlaneMean):
    def center(self, ball, data):
        return super().center(ball, data) + ball.radius

    def gradient_growth(self, manifold, center, data, farthest):
        return 0.0


class MinimizerOff(PlaneMean):
    def minimizer(self, ball, data):
        return 0.99 * super().minimizer(ball, data)


class MinimizerOutside(PlaneMean):
    def minimizer(self, ball, data):
        return super().minimizer(ball, data) + ball.radius


class SmallMinimizerSensitivity(PlaneMean):
    def minimizer_sensitivity(self, ball, n, calibration):
        return Sensitivity(0.9 * 2.0 * ball.radius / n, "2r/n")


MUTANTS = {
    ClipsTogether: {"clipping"},
    ClipsTooFar: {"gradient_sensitivity", "minimizer_sensitivity"},
    WrongGradient: {"gradient_of_the_loss", "gradient_growth"},
    ShorterGradient: {"gradient_of_the_loss"},
    GradientOfAnotherRecord: {"mean_of_gradients"},
    WrongNorm: {"mean_of_gradients"},
    NaNAtARecord: {"finite_gradients"},
    SmallSensitivity: {"gradient_sensitivity"},
    SensitivityFallsTooFast: {"gradient_sensitivity"},
    MoreConvexThanItIs: {"convexity"},
    AnotherValue: {"convexity"},
    GrowsTooFast: {"gradient_growth"},
    LinesGrowTooFast: {"gradient_growth"},
    CenterOutside: {"center_in_the_ball"},
    MinimizerOff: {"minimizer_of_the_loss"},
    MinimizerOutside: {"minimizer_of_the_loss"},
    SmallMinimizerSensitivity: {"minimizer_sensitivity"},
}


def broken_laws(mutant, names):
    broken = set()
    for name in names:
        try:
            STATISTIC_LAWS[name](mutant, PLANE)
        except AssertionError:
            broken.add(name)
    return broken


def test_a_statistic_of_a_user_obeys_the_laws():
    check_statistic(PlaneMean(), PLANE)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_mutants_break_their_laws(mutant):
    assert broken_laws(mutant(), MUTANTS[mutant]) == MUTANTS[mutant]


@pytest.mark.exhaustive
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_mutants_break_no_other_law(mutant):
    assert broken_laws(mutant(), STATISTIC_LAWS) == MUTANTS[mutant]


def test_every_law_has_a_mutant_that_breaks_no_other():
    alone = {name for laws in MUTANTS.values() if len(laws) == 1 for name in laws}
    assert alone == set(STATISTIC_LAWS)


def test_the_broken_law_is_named():
    with pytest.raises(AssertionError, match=r"WrongNorm.*breaks the law 'mean_of_gradients': gradient_norm is"):
        check_statistic(WrongNorm(), PLANE)
