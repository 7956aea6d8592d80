"""Constants of the exact sampler and of the public number of proposals, by quadrature and where bounds are met."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import ks_2samp
from strategies import exhaustive, name

from jaxgeodp import (
    Euclidean,
    FrechetMean,
    GeodesicBall,
    GibbsMechanism,
    Hyperbolic,
    KNGMechanism,
    LaplaceMechanism,
    MetricLaplace,
    PlanarShapes,
    Product,
    Sphere,
)
from jaxgeodp.bounds.growth import GradientGrowth, gradient_growth
from jaxgeodp.mechanisms.kng import GradientNorm
from jaxgeodp.releases.density import DensityLaw
from jaxgeodp.releases.ways.fixed_time import (
    _log_envelope_mass,
    draw_in_fixed_time,
    log_least_mass,
    proposals_needed,
)
from jaxgeodp.samplers.direction import direction_law, exit_distance, propose_direction
from jaxgeodp.samplers.envelope import _inverse_partial_mass, radial_envelope

# The radial envelope ------------------------------------------------------------------------------------------------


def gaps(manifold, growth, scale, reach, volume):
    """Envelope less target, on a grid in every interval."""
    envelope = jax.jit(lambda scale: radial_envelope(manifold, growth, scale, reach))(scale)
    knots = np.asarray(envelope.knots)
    t = knots[:-1, None] + np.diff(knots)[:, None] * (np.arange(64) + 0.5) / 64
    bound = np.asarray(envelope.heights)[:, None] + np.asarray(envelope.slopes)[:, None] * (t - knots[:-1, None])
    steepness = growth(t) if callable(growth) else growth * t
    return bound - (-np.asarray(steepness) / scale + (manifold.dim - 1) * np.log(t) + volume(t))


def test_growth_is_the_integral_of_its_slope():
    """All that an envelope rests on: where it is too large, the law is another."""
    growth = GradientGrowth(jnp.asarray(0.05), jnp.asarray(0.02), 0.1, 0.3, twist=0.2)
    for t in (0.1, 0.7, 1.5):
        assert float(growth(t)) == pytest.approx(quad(growth.slope, 0.0, t)[0], rel=1e-6)
        expected = 1.0 - 0.05 - 0.2 * t - 0.1 * t**2 - 0.02 * math.exp(0.6 * t)
        assert float(growth.slope(t)) == pytest.approx(expected, rel=1e-6)


def test_every_line_of_the_envelope_touches_what_it_bounds():
    """One part at a time: chords of a concave growth on the line, tangents of log t in flat space, the density of
    volume on the sphere. None lies below, and in each interval there is nothing to spare somewhere."""
    concave = GradientGrowth(jnp.asarray(0.05), jnp.asarray(0.02), 0.1, 0.3)
    cases = [
        (Euclidean(1), concave, np.zeros_like),
        (Euclidean(1), 1.0, np.zeros_like),
        (Euclidean(6), 1.0, np.zeros_like),
        (Sphere(2), 0.9, lambda t: np.log(np.sin(t) / t)),
    ]
    for manifold, growth, volume in cases:
        gap = gaps(manifold, growth, 0.05, 1.2, volume)
        assert np.min(gap) >= -1e-12
        assert np.max(np.min(gap, axis=1)) < 2e-3


def test_the_mass_below_a_radius_is_that_of_the_density():
    t = np.array([0.03, 0.4, 1.19])

    @jax.jit
    def found(scale):
        envelope = radial_envelope(Sphere(3), 1.0, scale, 1.2)
        masses = jax.vmap(envelope.mass_below)(t)
        return envelope, masses, *jax.vmap(envelope.radius_at)(masses)

    envelope, masses, again, lines = jax.tree.map(np.asarray, found(0.1))
    heights, rates, knots = envelope.heights - np.max(envelope.heights), envelope.slopes, envelope.knots
    for x, mass in zip(t, masses, strict=True):
        widths = np.clip(x - knots[:-1], 0.0, np.diff(knots))
        parts = zip(heights, rates, widths, strict=True)
        assert mass == pytest.approx(
            sum(quad(lambda y, h, a: math.exp(h + a * y), 0, w, (h, a))[0] for h, a, w in parts)
        )
    np.testing.assert_allclose(again, t, rtol=1e-9)
    own = np.searchsorted(knots, t, side="right") - 1
    np.testing.assert_allclose(lines, envelope.heights[own] + rates[own] * (t - knots[own]), rtol=1e-9)


# Directions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("manifold", [Sphere(2), Euclidean(5)], ids=name)
def test_the_law_of_angles_bounds_sine_and_mass_and_meets_them(manifold):
    """Each cell's constant is at least sin^{d-2} times the mass up to the exit, and equal at a corner of the cell where
    both fall (beyond a right angle, and everywhere on a surface)."""
    center = jnp.asarray(manifold.origin, float)
    ball = GeodesicBall(manifold, manifold.origin, 0.6)
    inside = np.linspace(1e-9, 1 - 1e-9, 9)

    @jax.jit
    def found(scale):
        start = manifold.exp(center, 0.5 * manifold.frame(center)[0])
        envelope = radial_envelope(manifold, 1.0, scale, 1.1)
        law = direction_law(ball, start, envelope)
        angles = law.edges[:-1, None] + jnp.diff(law.edges)[:, None] * inside
        mass = jax.vmap(envelope.mass_below)(exit_distance(ball, law.offset, angles.ravel())).reshape(angles.shape)
        keys = jax.random.split(jax.random.key(0), 64)
        units, angle, weight, _ = jax.vmap(lambda key: propose_direction(key, manifold, start, law))(keys)
        frame = manifold.frame(start)
        coordinates = jax.vmap(lambda unit: manifold.coordinates(start, unit, frame))(units)
        return law, angles, mass, angle, weight, coordinates, manifold.coordinates(start, law.towards, frame)

    law, angles, mass, angle, weight, units, towards = jax.tree.map(np.asarray, found(0.3))
    edges = law.edges
    true = (manifold.dim - 2) * np.log(np.sin(angles)) + np.log(mass)
    gap = law.log_bounds[:, None] - true
    assert np.min(gap) >= -1e-12
    met = np.min(gap, axis=1)
    assert np.max(met[edges[:-1] >= math.pi / 2] if manifold.dim > 2 else met) < 1e-6
    # What a proposal is weighted by.
    cell = np.searchsorted(edges, angle, side="right") - 1
    np.testing.assert_allclose(weight, (manifold.dim - 2) * np.log(np.sin(angle)) - law.log_bounds[cell], atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(units, axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(units @ towards, np.cos(angle), atol=1e-12)
    # To all sides alike, whatever the angle: of 64 signs 14 to 50, but for 1 in 10^6.
    for side in np.linalg.svd(towards[None])[2][1:]:
        assert 14 <= np.sum(units @ side > 0) <= 50
    shares = np.exp(law.log_bounds) * np.diff(edges)
    np.testing.assert_allclose(np.diff(law.cumulative), shares / shares.sum(), rtol=1e-9, atol=1e-12)


# A fixed number of proposals ----------------------------------------------------------------------------------------


def test_the_number_of_proposals_is_that_of_the_exact_acceptance():
    """Laplace on all of S^2: the target's mass is known, that of the proposals is integrated; no bound is loose."""
    sphere = Sphere(2)
    mechanism = LaplaceMechanism(GeodesicBall(sphere, sphere.origin, 0.4), 0.2)
    scale = mechanism.scale(20)
    envelope = jax.jit(lambda scale: radial_envelope(sphere, 1.0, scale, math.pi))(scale)
    knots = np.asarray(envelope.knots)
    lines = zip(knots[:-1], knots[1:], np.asarray(envelope.heights), np.asarray(envelope.slopes), strict=True)
    proposed = sum(quad(lambda t, a, h, s: math.exp(h + s * (t - a)), a, b, (a, h, s))[0] for a, b, h, s in lines)
    accepted = quad(lambda t: math.exp(-t / scale) * math.sin(t), 0.0, math.pi, points=[scale], epsabs=0)[0] / proposed
    for log_eta in (-1e5, -20.0):
        needed = log_eta / math.log1p(-accepted)
        assert needed <= proposals_needed(mechanism.law(20), log_eta) <= needed * (1 + 1e-6) + 1


@pytest.mark.parametrize(
    ("law", "most"),
    [
        (MetricLaplace(Sphere(3), 100.0).law(1), 8),
        (GibbsMechanism(GeodesicBall(Euclidean(3), np.zeros(3), 30.0), 1.0).law(100), 100),
        (KNGMechanism(GeodesicBall(Sphere(2), [0.0, 0.0, 1.0], 0.3), 1.0).law(100), 100),
    ],
    ids=["metric", "gibbs", "kng"],
)
def test_narrow_laws_need_few_proposals(law, most):
    """A bound of the growth that is too small, or proposals from all of the space, ask for 10^7 and more."""
    assert 1 < proposals_needed(law, math.log(1e-9)) <= most


def law_on(manifold, radius, scale, reach):
    """KNG's for the mean, with another scale and support."""
    ball, support = (GeodesicBall(manifold, manifold.origin, r) for r in (radius, reach))
    return DensityLaw(GradientNorm(FrechetMean()), ball, scale, support, None)


@pytest.mark.parametrize("space", [Sphere(2), *exhaustive(Hyperbolic(2))], ids=name)
def test_a_fixed_number_of_proposals_reaches_all_of_the_support(space):
    """For records at the rim of the ball and wide noise: the law is that of proposals until one is accepted."""
    law = law_on(space, 0.3, 0.3, 0.8)
    origin = jnp.asarray(space.origin)
    rim = space.exp(origin, 0.3 * space.frame(origin)[0])
    records = jnp.stack([rim, rim])
    count = 1 + math.ceil(
        math.log(1e-4) / math.log1p(-float(law.simulated(jax.random.key(2), records, 500).acceptance))
    )
    keys = jax.random.split(jax.random.key(0), 300)
    found = jax.jit(jax.vmap(lambda key: draw_in_fixed_time(law, key, records, count)))(keys)
    other = law.simulate(jax.random.key(1), records, 1000)
    distances = [np.asarray(jax.vmap(lambda x: space.dist(rim, x))(points)) for points in (found, other)]
    assert min(map(np.max, distances)) > 0.9
    assert ks_2samp(*distances).pvalue > 1e-4
    assert ks_2samp(np.minimum(distances[0], 0.5), distances[1]).pvalue < 1e-6  # as it were without what is far


@pytest.mark.parametrize(
    ("manifold", "area", "lowest"),
    [
        (Sphere(3), lambda t: math.sin(t) ** 2, 0.0),
        (PlanarShapes(4), lambda t: math.sin(t) ** 3 * math.cos(t), 0.0),
        (Hyperbolic(2), math.sinh, -1.0),
        (Product(Sphere(2), Hyperbolic(2)), lambda t: math.sin(t) ** 3, -1.0),
    ],
    ids=["sphere", "shapes", "plane", "product"],
)
def test_the_least_mass_by_another_quadrature(manifold, area, lowest):
    """C of section 10, a bound that is not attained: |grad F| <= L(t) t within R - r of the mean; where there is no
    room, a ball of diameter tau that touches the mean."""
    radius = 0.2

    def pull(t):
        s = 2.0 * radius + t
        return t * (s / math.tanh(s) if lowest < 0 else 1.0)

    for scale, reach in ((0.03, 0.35), (0.2, 0.35)):
        mass = quad(lambda t, a=scale: math.exp(-pull(t) / a) * area(t), 0.0, reach - radius, epsabs=0)[0]
        assert log_least_mass(law_on(manifold, radius, scale, reach)) == pytest.approx(math.log(mass), abs=1e-6)
    for scale in (0.03, 1.0):
        full = manifold.dim * scale  # what the potential is at the far end of the ball, unless it is too large
        tau = brentq(lambda t, most=full: pull(t) - most, 0.0, radius) if pull(radius) > full else radius
        volume = quad(area, 0.0, 0.5 * tau, epsabs=0)[0]
        least = log_least_mass(law_on(manifold, radius, scale, radius))
        assert least == pytest.approx(math.log(volume) - pull(tau) / scale, abs=1e-6)


@pytest.mark.parametrize("manifold", [Sphere(3), PlanarShapes(4), Product(Sphere(2), Hyperbolic(2))], ids=name)
def test_the_public_growth_is_that_of_the_most_spread_data(manifold):
    """Two clusters at opposite ends of the ball have the largest variance, r^2, and all of it along one line."""
    radius, reach = 0.3, 0.4
    center = jnp.asarray(manifold.origin)
    end = radius * manifold.frame(center)[0]
    points = jnp.stack([manifold.exp(center, end), manifold.exp(center, -end)])
    exact = gradient_growth(manifold, center.astype(points.dtype), points, jnp.array([0.5, 0.5]), radius + reach)
    law = law_on(manifold, radius, 1.0, reach)
    public = law.target.public_bounds(law.ball, law.support, law.target.temperature(law.scale)).growth
    t = np.linspace(0.0, radius + reach, 9)
    np.testing.assert_allclose(public(t), exact(t), rtol=1e-6, atol=1e-15)


@pytest.mark.parametrize("slope", [1e-12, 3e-8, 0.999e-6, 1.001e-6, 1e-3, 5.0])
def test_draws_within_a_line_have_its_density_at_every_slope(slope):
    """Uniform draws for small slopes had a density that is off by half the slope."""
    for sign in (1.0, -1.0):
        for share in (0.1, 0.5, 0.8):
            found = float(_inverse_partial_mass(jnp.asarray(sign * slope), jnp.asarray(1.0), jnp.asarray(share)))
            exact = math.log1p(share * math.expm1(sign * slope)) / (sign * slope)
            assert abs(found - exact) < 1e-15 + 1e-12 * slope + slope**2 * (slope < 1e-6)


@pytest.mark.parametrize("mu", [0.05, 0.5, 50.0])
def test_the_envelope_of_a_gibbs_law_is_as_wide_as_its_noise(mu):
    """Noise 20 times as wide as the ball, and much less: the mass is that of a normal law."""
    law = GibbsMechanism(GeodesicBall(Euclidean(3), np.zeros(3), 1.0), mu).law(2)
    with jax.enable_x64(True):
        found = float(_log_envelope_mass(law))
    deviation = math.sqrt(law.target.temperature(law.scale))  # of curvature 1
    exact = math.log(math.sqrt(0.5 * math.pi) * deviation**3)
    assert exact <= found < exact + 0.6
