"""Every constant of Theorems F, H and I: the growth of gradients from which draws are exact.

At the mean Theorem F is met by data at opposite ends of a line, H and I by single forces; further out they add worst
cases, which are put together again from measured parts. What a proof only bounds is said to be so.
"""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from strategies import name
from symmetric_spaces import ModelSpace

from jaxgeodp import GeodesicBall, Hyperbolic, KNGMechanism, PlanarShapes, Product, Sphere
from jaxgeodp.bounds.growth import RadialGrowth, gradient_growth
from jaxgeodp.bounds.power_growth import PowerGrowth
from jaxgeodp.samplers.envelope import radial_envelope

SPHERE, PLANE = (1.0, 1.0), (0.0, 0.0)
MIXED = Product(Sphere(2), Hyperbolic(2))


def growth_of_ends(manifold, spread, farthest):
    """Data at both ends of a geodesic through the mean, ``spread`` away from it."""
    mean = jnp.asarray(manifold.origin)
    along = manifold.frame(mean)[0]
    points = jnp.stack([manifold.exp(mean, spread * along), manifold.exp(mean, -spread * along)])
    return gradient_growth(manifold, mean.astype(points.dtype), points, jnp.array([0.5, 0.5]), farthest)


@pytest.mark.parametrize(("manifold", "kind"), [(Sphere(2), "sphere"), (PlanarShapes(4), "projective")], ids=name)
def test_growth_at_the_mean_is_the_hessian_across_the_data(manifold, kind):
    """Attained: across the line of data (along J times it on shapes) the Hessian is its lower bound."""
    for s in (0.3, 0.7):
        growth = growth_of_ends(manifold, s, s)
        assert float(growth(1e-6)) / 1e-6 == pytest.approx(ModelSpace(kind, 2).hessian(s, 1, 1), rel=1e-5)


@pytest.mark.parametrize(
    ("manifold", "kind"), [(Sphere(2), "sphere"), (PlanarShapes(4), "projective"), (MIXED, "mixed")], ids=name
)
def test_growth_further_out_is_the_integral_of_theorem_f(manifold, kind):
    """Not attained: the mean square grows as in the most negative curvature (measured), and the share of it along J
    at most at the rate (1 - h_4)/s, which a Hessian turns a direction by (measured)."""
    spread, s = 0.25, 0.6
    sphere, shapes, hyperbolic = (ModelSpace(k, 2) for k in ("sphere", "projective", "hyperbolic"))
    across = sphere.hessian(s, 1, 1)
    square = hyperbolic.hessian(s, 1, 1) if kind == "mixed" else 1.0
    steep, rate = 0.0, 0.0
    if kind == "projective":
        assert shapes.hessian(s, 2, 2) == pytest.approx(across, rel=1e-7)
        steep = (across - shapes.hessian(s, 1, 1)) / s**2 * spread**2
        # <H g, Jg>/(rho <Ju, g>) for g between u and Ju, as g nears u.
        angle = 1e-4
        g, turned = np.array([math.cos(angle), math.sin(angle)]), np.array([-math.sin(angle), math.cos(angle)])
        hessian = np.diag([shapes.hessian(s, 0, 0), shapes.hessian(s, 1, 1)])
        rate = abs(g @ hessian @ turned) / (s * math.sin(angle))

    def m(t):
        return 1.0 - (1.0 - across) / s**2 * (spread**2 + square * t**2) - steep * math.exp(2.0 * rate * t)

    growth = growth_of_ends(manifold, spread, s)
    for t in (0.1, 0.35, 0.6):
        assert float(growth(t)) == pytest.approx(quad(m, 0.0, t)[0], rel=1e-6)


def test_lines_of_a_mean_of_functions_of_distances():
    """Attained: records on a line in one direction, and a bound that is linear, whose mean is linear in t."""
    distances, knots = jnp.array([0.1, 0.3, 0.5]), jnp.array([0.0, 0.2, 0.5, 0.6])
    growth = RadialGrowth(distances, 2.0, lambda s: 1.0 - 0.25 * s, 0.03)
    values, slopes = growth.lines(knots[:-1], knots[1:])
    expected = 1.0 - 0.25 * (0.3 + np.array([0.2, 0.5, 0.6]))
    np.testing.assert_allclose(slopes, expected, rtol=1e-6)
    np.testing.assert_allclose(values, np.array([0.0, *np.cumsum(expected[:2] * [0.2, 0.3])]) - 0.03, rtol=1e-6)
    # Where a record may be as far as that, the bound says nothing.
    nothing = RadialGrowth(distances, 4.5, lambda s: 1.0 - 0.25 * s, 0.03).lines(knots[:-1], knots[1:])
    assert not np.any(nothing)


def power_growth_of(power, s, curvature, distances, units, pull=0.0):
    return PowerGrowth(power, s, curvature, jnp.asarray(pull), jnp.asarray(distances), jnp.asarray(units))


@pytest.mark.parametrize("power", [1.3, 1.9, 2.0])
def test_a_record_that_is_left_behind_pulls_as_much_more_as_said(power):
    """Attained in flat space: one record, from which the geodesic leads straight away; |grad F| = (d + t)^{p-1}."""
    d, edges = 0.2, np.linspace(0.0, 0.5, 400)
    growth = power_growth_of(power, 0.7, PLANE, [d], [[1.0, 0.0]], pull=0.01)
    values, slopes = (np.asarray(x) for x in growth.lines(jnp.asarray(edges[:-1]), jnp.asarray(edges[1:])))
    true = (d + edges[:-1]) ** (power - 1.0) - d ** (power - 1.0) - 0.01
    assert np.all(values <= true + 1e-12)
    np.testing.assert_allclose(values[1:] + 0.01, true[1:] + 0.01, rtol=2e-3)
    least = (power - 1.0) * (d + edges[1:]) ** (power - 2.0)
    assert np.all(slopes <= least * (1 + 1e-12))
    np.testing.assert_allclose(slopes, least, rtol=1e-6)


@pytest.mark.parametrize("power", [1.3, 1.9, 2.7, 4.0])
def test_slopes_of_power_means_on_the_sphere(power):
    """Not attained for p > 2, where a factor across and a distance along the geodesic are taken at their worst. The
    least of m on a narrow interval, with the Hessian measured."""
    distances, t, width = np.array([0.05, 0.3, 0.55]), 0.4, 1e-7
    growth = power_growth_of(power, 1.1, SPHERE, distances, np.eye(3))
    across = np.array([ModelSpace("sphere", 2).hessian(d + t, 1, 1) for d in distances])
    if power <= 2.0:
        expected = np.mean((distances + t) ** (power - 2.0) * np.minimum(power - 1.0, across))
    else:
        expected = np.mean(np.abs(distances - t) ** (power - 2.0) * np.minimum(1.0, across))
    assert float(growth._least_slope(t, t + width)) == pytest.approx(expected, rel=1e-5)
    # On a wide interval no more than anywhere in it.
    wide = float(growth._least_slope(0.2, 0.5))
    for start in np.linspace(0.2, 0.5, 31)[:-1]:
        assert wide <= float(growth._least_slope(start, start + 1e-9)) * (1 + 1e-9)


@pytest.mark.parametrize("curvature", [SPHERE, PLANE, (-1.0, 0.0)])
def test_slopes_of_the_median(curvature):
    """At the centre in flat space attained: the Hessian of the mean distance is (I - uu')/d, and its least eigenvalue
    tr - lambda_max. Elsewhere times h e^{-2qt}, q the fastest that a Hessian at s turns a direction."""
    rng, s = np.random.default_rng(0), 1.0
    distances, units = rng.uniform(0.2, 0.5, 9), rng.normal(size=(9, 3))
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    growth = power_growth_of(1.0, s, curvature, distances, units)
    least, most = 1.0, 1.0
    if curvature == SPHERE:
        least = ModelSpace("sphere", 2).hessian(s, 1, 1)
    elif curvature != PLANE:
        most = ModelSpace("hyperbolic", 2).hessian(s, 1, 1)
    rate = max(1.0 - least, most - 1.0) / s
    for t in (0.0, 0.25):
        logs = distances[:, None] * units
        hessians = [(v @ v * np.eye(3) - np.outer(v, v)) / (d + t) ** 3 for v, d in zip(logs, distances, strict=True)]
        expected = np.linalg.eigvalsh(np.mean(hessians, axis=0))[0] * least * math.exp(-2.0 * rate * t)
        assert float(growth._least_slope(t, t)) == pytest.approx(expected, rel=1e-6)


def test_rounding_makes_no_largest_eigenvalue_too_small():
    """In single precision, where weights differ much: about half would be, without the margin of the largest weight."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        units, weights = rng.normal(size=(9, 3)).astype(np.float32), np.geomspace(1.0, 1e-9, 9).astype(np.float32)
        growth = power_growth_of(1.0, 1.0, PLANE, np.full(9, np.float32(0.2)), units)
        exact = np.linalg.eigvalsh((units.T * weights.astype(float)) @ units / 9)[-1]
        assert float(growth._largest(jnp.asarray(weights))) >= exact


@pytest.mark.parametrize("curvature", [SPHERE, PLANE])
def test_theorem_i_is_below_every_direction_and_its_parabolas_touch(curvature):
    """The rate at which distances grow, by differences of the cosine law, against the bound: below it in every
    direction; and the bound rebuilt from parabolas that touch that rate at zeta_0 and meet it at 1."""

    def side(t, d, z):
        if curvature == PLANE:
            return math.sqrt(t * t + d * d - 2.0 * t * d * z)
        return math.acos(math.cos(t) * math.cos(d) + math.sin(t) * math.sin(d) * z)

    def rate(t, d, z, step=1e-5):
        return (side(t + step, d, z) - side(t - step, d, z)) / (2.0 * step)

    rng = np.random.default_rng(1)
    distances, units = rng.uniform(0.2, 0.6, 12), rng.normal(size=(12, 3))
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    growth = power_growth_of(1.0, 1.1, curvature, distances, units)
    at = -np.linalg.eigvalsh(units.T @ units / 12)[-1]
    sine = math.sin if curvature == SPHERE else float
    for t in (0.1, 0.35, 0.45):
        bound = float(growth._by_cosines(t, jnp.asarray(-at)))
        for v in rng.normal(size=(200, 3)):
            v = v / np.linalg.norm(v)
            assert np.mean([rate(t, d, float(u @ v)) for d, u in zip(distances, units, strict=True)]) >= bound - 1e-9
        parabolas = []
        for d in distances:
            near = min(t, d)
            value, slope = rate(near, d, at), (rate(near, d, at + 1e-4) - rate(near, d, at - 1e-4)) / 2e-4
            ahead = -1.0 if t < d else 0.0
            # a - b z - c z^2: its value and slope at zeta_0, its value at 1.
            system = [[1.0, -at, -(at**2)], [0.0, -1.0, -2.0 * at], [1.0, -1.0, -1.0]]
            a, b, c = np.linalg.solve(system, [value, slope, ahead])
            beyond = math.sqrt(1.0 - (sine(d) / sine(t)) ** 2) if t > d else -1.0
            parabolas.append((beyond, 0.0, 0.0) if beyond > a + c * at else (a, b, c))
        a, b, c = np.array(parabolas).T
        worst = np.linalg.eigvalsh((units * c[:, None]).T @ units / 12)[-1]
        expected = a.mean() - np.linalg.norm(np.mean(b[:, None] * units, axis=0)) - worst
        assert bound == pytest.approx(expected, abs=1e-5)


def test_the_growth_of_a_tiny_support_is_the_distance():
    """Where x cot x rounds to 1, rate and bend are 0: an envelope of NaN would accept nothing for ever."""
    growth = growth_of_ends(Sphere(2), 4e-9, 8e-9)
    t = np.array([0.0, 1e-9, 4e-9])
    np.testing.assert_allclose(growth(t), t, rtol=1e-12)


def test_an_envelope_knows_that_a_length_is_not_negative():
    """All data at one point of the rim: the bound of Theorem F falls below 0 far out, where the gradient is long."""
    sphere, sigma = Sphere(2), 1e-4
    growth = growth_of_ends(sphere, 1e-3, 2.34)
    far = float(growth(2.3))
    assert far < -0.1
    envelope = radial_envelope(sphere, growth, sigma, 2.34)
    assert np.all(np.isfinite(envelope.masses))
    low, high = envelope.knots[:-1], envelope.knots[1:]
    ends = envelope.heights + envelope.slopes * (high - low)
    for t, height in ((low[1:], envelope.heights[1:]), (high, ends)):
        least = jnp.maximum(growth(t), 0.0)
        assert np.all(np.asarray(height) >= np.asarray(jnp.log(jnp.sin(t)) - least / sigma) - 1e-9)
    ball = GeodesicBall(sphere, sphere.origin, 0.78)
    few, many = (KNGMechanism(ball, 1.0, support_radius=1.56).law(n) for n in (10, 10**5))
    few.target.check(few)
    with pytest.raises(ValueError, match="Theorem F says nothing of gradients as far out as the support ends"):
        many.target.check(many)
    paper = KNGMechanism(ball, 1.0, calibration="paper").law(10**5)
    paper.target.check(paper)  # which promises nothing
