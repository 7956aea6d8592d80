"""Additive mechanisms and baselines, and the normaliser-aware scale of KNG."""

import dataclasses
import math
import re
from typing import NamedTuple
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from strategies import cap, exhaustive, name

from jaxgeodp import (
    SPD,
    Euclidean,
    EuclideanLaplace,
    FrechetMedian,
    GaussianDP,
    GeodesicBall,
    GibbsMechanism,
    Grassmann,
    Hyperbolic,
    KNGMechanism,
    LandmarkLaplace,
    LaplaceMechanism,
    PlanarShapes,
    Product,
    PureDP,
    RiemannianGaussian,
    Rotations,
    Sphere,
    TangentLaplace,
    WrappedGaussian,
    WrappedLaplace,
    frechet_mean,
)
from jaxgeodp.bounds.normalizer import (
    calibrated_scale,
    normalizer_bound,
)
from jaxgeodp.bounds.sensitivity import Sensitivity
from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import assumption_limit
from jaxgeodp.mechanisms.names import unbiased_names
from jaxgeodp.privacy import NotProven
from jaxgeodp.releases.density import check_representable
from jaxgeodp.releases.noise import Coordinates, Norm, Normal
from jaxgeodp.releases.ways.fixed_time import draw_in_fixed_time, proposals_needed
from jaxgeodp.samplers.rejection import first_of_fixed_number
from jaxgeodp.statistics.statistic import Statistic

EIGHTH = math.pi / 8
# Noise about a mean where space is curved, a sum where it is flat: on the cheapest ones.
EACH = [
    (WrappedLaplace, Hyperbolic(2)),
    (WrappedGaussian, Sphere(2)),
    (TangentLaplace, Euclidean(2)),
    (EuclideanLaplace, Sphere(2)),
    (LandmarkLaplace, PlanarShapes(3)),
]
FURTHER = [
    *[(WrappedLaplace, m) for m in (SPD(2), Sphere(2), PlanarShapes(5), Product(Sphere(2), SPD(2)))],
    *[(WrappedGaussian, m) for m in (SPD(2), Rotations())],
    *[(TangentLaplace, m) for m in (Hyperbolic(2), Euclidean(3), Sphere(2))],
    *[(EuclideanLaplace, m) for m in (Sphere(3, 4.0), Rotations(), SPD(2))],
    (LandmarkLaplace, PlanarShapes(5)),
]
every_additive = pytest.mark.parametrize(("build", "manifold"), [*EACH, *exhaustive(*FURTHER)], ids=name)


def ball_on(manifold, radius=None):
    return GeodesicBall(manifold, manifold.origin, radius or min(1.0, 0.9 * assumption_limit(manifold)))


def data_on(manifold, n=12, seed=0):
    ball = ball_on(manifold)
    return cap(manifold, jnp.asarray(ball.center), ball.radius, n, seed)


def location_of(mechanism, points):
    law = mechanism.law(len(points))
    return law.location(points, law.center(points))


def clipped_by(mechanism, data):
    return mechanism.law(len(data)).clipped(jnp.asarray(data))


def noise_of(mechanism):
    return mechanism.law(2).noise


def length_of(mechanism, vector):
    return jnp.sum(jnp.abs(vector)) if noise_of(mechanism) == Coordinates() else jnp.linalg.norm(vector)


@pytest.mark.parametrize(
    ("noise", "known"),
    [
        (Coordinates(), lambda z: stats.laplace.logpdf(z).sum()),
        (Norm(), lambda z: -np.linalg.norm(z)),
        (Normal(), lambda z: stats.norm.logpdf(z).sum()),
    ],
    ids=lambda own: getattr(own, "name", ""),
)
def test_the_log_density_of_noise_is_that_of_its_law(noise, known):
    first, second = np.random.default_rng(0).normal(size=(2, 3))
    difference = float(noise.log_density(jnp.asarray(first)) - noise.log_density(jnp.asarray(second)))
    assert difference == pytest.approx(known(first) - known(second), rel=1e-5)


@every_additive
def test_one_record_moves_the_vector_at_most_by_the_sensitivity(build, manifold):
    """Gradient ascent over the replaced record and the others."""
    mechanism, n = build(ball_on(manifold, min(1.0, 0.5 * assumption_limit(manifold))), 1.0), 6
    bound = mechanism.sensitivity(n)
    center = jnp.asarray(mechanism.ball.center)
    frame = manifold.frame(center)

    def points_of(z):
        lengths = jnp.linalg.norm(z, axis=1, keepdims=True)
        # To the rim and hardly beyond.
        inside = z * jnp.minimum(1.0, (1.0 - 1e-9) / lengths) * mechanism.ball.radius
        return jax.vmap(lambda c: manifold.exp(center, manifold.combine(c, frame)))(inside)

    def moved(z):
        points = points_of(z)
        here, there = (location_of(mechanism, points[jnp.array([*range(n - 1), j])]) for j in (n - 1, n))
        return length_of(mechanism, here - there)

    @jax.jit
    def climb(z):
        def step(carry, _):
            z, best = carry
            value, gradient = jax.value_and_grad(moved)(z)
            return (z + 0.1 * gradient / (1e-12 + jnp.max(jnp.abs(gradient))), jnp.maximum(best, value)), None

        return jax.lax.scan(step, (z, 0.0), length=40)[0][1]

    starts = np.random.default_rng(0).normal(size=(2, n + 1, manifold.dim))
    starts[0, n - 1] = -starts[0, n]
    starts *= 0.999 / np.linalg.norm(starts, axis=2, keepdims=True)
    found = max(float(climb(jnp.asarray(z))) for z in starts)
    print(found / bound)
    assert found <= bound * (1 + 1e-9)
    # A sum over coordinates reaches its bound in no direction.
    assert found >= {TangentLaplace: 0.95, LandmarkLaplace: 0.2}.get(build, 0.5) * bound


@every_additive
def test_draws_have_the_right_law(build, manifold):
    """The noise of the vector: lengths and directions; and the law that a wrong scale would give is rejected."""
    mechanism, data = build(ball_on(manifold), 1.0), data_on(manifold, 40)
    read_back = math.isfinite(manifold.injectivity_radius) and build not in (EuclideanLaplace, LandmarkLaplace)
    if read_back:  # small noise only can be
        mechanism = build(mechanism.ball, 100.0)
    values = mechanism.simulate(jax.random.key(3), data, 4000)
    assert values.shape == (4000, *manifold.shape)
    location = location_of(mechanism, clipped_by(mechanism, data))
    if read_back:
        center = jnp.asarray(mechanism.ball.center)
        frame = manifold.frame(center)
        vectors = jax.vmap(lambda x: manifold.coordinates(center, manifold.log(center, x), frame))(values)
    else:
        vectors = jax.vmap(lambda x: mechanism.law(40).summary.to_vector(mechanism.ball, x)[0])(values)
    noise = np.asarray((vectors - location) / mechanism.scale(40))
    dim = noise.shape[1]
    if noise_of(mechanism) == Coordinates():
        sizes, law = np.abs(noise).ravel(), stats.expon()
    else:
        sizes = np.linalg.norm(noise, axis=1)
        law = stats.gamma(dim) if noise_of(mechanism) == Norm() else stats.chi(dim)
    assert stats.kstest(sizes, law.cdf).pvalue > 1e-4
    assert stats.kstest(1.1 * sizes, law.cdf).pvalue < 1e-6
    directions = noise / np.linalg.norm(noise, axis=1, keepdims=True)
    np.testing.assert_allclose(directions.mean(axis=0), 0, atol=5 / math.sqrt(4000))
    np.testing.assert_allclose(directions.T @ directions / 4000, np.eye(dim) / dim, atol=5 / math.sqrt(4000))


@pytest.mark.parametrize(
    ("build", "manifold"),
    [
        (WrappedLaplace, Hyperbolic(2)),
        (WrappedGaussian, Hyperbolic(2)),
        (TangentLaplace, Euclidean(2)),
        *exhaustive(
            *[(WrappedLaplace, m) for m in (Euclidean(3), SPD(2))],
            *[(WrappedGaussian, m) for m in (Euclidean(3), SPD(2))],
            *[(TangentLaplace, m) for m in (Euclidean(3), Hyperbolic(2), SPD(2))],
        ),
    ],
    ids=name,
)
def test_log_density_is_that_of_the_noise_pushed_forward(build, manifold):
    mechanism, data = build(ball_on(manifold), 2.0), data_on(manifold)
    center = jnp.asarray(mechanism.ball.center)
    frame, location, scale = manifold.frame(center), location_of(mechanism, data), mechanism.scale(12)

    @jax.jit
    def found_and_expected(z):
        x = manifold.exp(center, manifold.combine(z, frame))
        shift = jnp.linalg.norm((z - location) / scale)
        expected = -0.5 * shift**2 if build is WrappedGaussian else -shift
        jacobian = manifold.log_det_exp(center, manifold.combine(z, frame))
        return mechanism.log_density(x, data), expected - jacobian

    for seed in range(3):
        z = location + 0.3 * jnp.asarray(np.random.default_rng(seed).normal(size=manifold.dim))
        np.testing.assert_allclose(*found_and_expected(z), atol=1e-8)


@every_additive
def test_releases_are_fresh_and_say_what_they_promise(build, manifold):
    mechanism, data = build(ball_on(manifold), 1.5), np.asarray(data_on(manifold))
    first, second = mechanism.release(data), mechanism.release(data)
    assert not np.allclose(first.value, second.value)
    kind = first.record["guarantee"]
    assert (kind["kind"], kind.get("epsilon", kind.get("mu"))) == ("gdp" if build is WrappedGaussian else "pure", 1.5)
    assert kind["theorem"]
    assert "does not depend on the data" in first.record["numerics"]["note"]
    assert first.to_json()


def test_baselines_refuse_what_they_do_not_cover():
    for build, words in (
        (lambda: EuclideanLaplace(ball_on(PlanarShapes(5)), 1.0), "needs a sphere, Euclidean space, SPD or rotations"),
        (lambda: EuclideanLaplace(ball_on(SPD(2)), 1.0, project=True), "not possible on SPD"),
        (lambda: LandmarkLaplace(ball_on(Sphere(2)), 1.0), "needs planar shapes"),
        (lambda: WrappedGaussian(ball_on(Sphere(2)), 0.0), "mu must be a finite number above 0"),
        (lambda: WrappedLaplace(ball_on(Sphere(2), 1.5), 1.0), "Assumption 1"),
        (lambda: TangentLaplace(ball_on(Sphere(2)), 1.0).log_density(jnp.eye(3)[2], jnp.eye(3)), "no density"),
    ):
        with pytest.raises(ValueError, match=words):
            build()


def test_projected_noise_is_on_the_sphere_and_landmarks_may_be_unaligned():
    ball = ball_on(Sphere(2))
    draws = EuclideanLaplace(ball, 1.0, project=True).simulate(jax.random.key(0), data_on(Sphere(2)), 50)
    np.testing.assert_allclose(jnp.linalg.norm(draws, axis=1), 1.0)
    shapes = PlanarShapes(3)
    data = np.array(data_on(shapes))
    turned = data * np.exp(1j * np.random.default_rng(0).uniform(0, 6.28, (12, 1)))
    aligned, raw = LandmarkLaplace(ball_on(shapes), 1.0), LandmarkLaplace(ball_on(shapes), 1.0, align=False)
    np.testing.assert_allclose(location_of(aligned, clipped_by(aligned, turned)), location_of(aligned, data), atol=1e-9)
    np.testing.assert_allclose(clipped_by(raw, jnp.asarray(turned)), turned, atol=1e-9)
    assert raw.scale(12) > aligned.scale(12)
    turned[0] = np.nan
    assert np.all(np.isfinite(raw.release(turned).value))


def test_the_guarantees_of_the_mechanisms():
    ball = ball_on(Euclidean(1))
    assert WrappedGaussian(ball, 2.0).guarantee == GaussianDP(2.0)
    assert TangentLaplace(ball, 2.0).guarantee == PureDP(2.0)
    ours, theirs = KNGMechanism(ball, 1.0), KNGMechanism(ball, 1.0, calibration="paper")
    assert ours.release(data_on(Euclidean(1), 60)).record["guarantee"]["kind"] == "pure"
    record = theirs.release(data_on(Euclidean(1), 60)).record
    assert record["guarantee"]["kind"] == "not proven"
    assert "epsilon" not in record["guarantee"]
    assert isinstance(LaplaceMechanism(ball, 1.0, calibration="paper").guarantee, NotProven)


# Theorem J: the normalising constant ------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "most"), [(50, 1.10), (100, 1.06), (400, 1.04), (2000, 1.03)])
def test_kng_needs_no_factor_two_on_the_sphere(n, most):
    """Units of 2r/n; the bound by the doubled sensitivity is 2.05."""
    mechanism = KNGMechanism(ball_on(Sphere(2), EIGHTH), 1.0)
    assert 1.0 < mechanism.scale(n) / (2 * EIGHTH / n) <= most
    assert mechanism.support(n).radius > EIGHTH


@pytest.mark.parametrize(
    ("manifold", "radius", "n", "most"),
    [
        (PlanarShapes(50), 0.19, 1600, 1.08),
        (PlanarShapes(50), 0.19, 6000, 1.04),
        (PlanarShapes(10), 0.19, 400, 1.06),
        (Hyperbolic(2), 1.0, 400, 1.02),
        (Rotations(), 0.5, 100, 1.03),
        (Euclidean(3), 1.0, 5, 1.0),
        (Sphere(20), 0.4, 1000, 1.07),
        (SPD(2), 1.0, 100, 1.07),
        (SPD(3), 1.0, 100, 1.12),
        (SPD(10), 1.0, 400, 1.14),
        (Grassmann(5, 2), 0.3, 400, 1.07),
        (Product(Sphere(2), SPD(2)), 0.3, 100, 1.06),
    ],
    ids=name,
)
def test_and_elsewhere(manifold, radius, n, most):
    assert KNGMechanism(ball_on(manifold, radius), 1.0).scale(n) <= most * 2 * radius / n


def test_scales_do_not_depend_on_units():
    wide, narrow = Sphere(2, 0.25), Sphere(2)
    scales = [KNGMechanism(ball_on(m, r), 1.0).scale(80) / r for m, r in ((wide, 0.8), (narrow, 0.4))]
    np.testing.assert_allclose(*scales, rtol=1e-9)
    # The circle: no interior term matters, the boundary does.
    assert KNGMechanism(ball_on(Sphere(1), 0.5), 1.0).scale(100) < 1.2 * 2 * 0.5 / 100


def test_a_circle_is_flat_but_not_a_line():
    # The bound of the mean is that of the line, up to half a circle.
    for radius in (0.7, 1.5):
        assert LaplaceMechanism(ball_on(Sphere(1), radius), 1.0).sensitivity(100) <= 2 * radius / 100 * (1 + 1e-6)
    with pytest.raises(ValueError, match=r"must be below 1\.5708"):
        LaplaceMechanism(ball_on(Sphere(1), 1.6), 1.0)
    assert "gibbs" not in unbiased_names(Sphere(1)) and "gibbs" in unbiased_names(Hyperbolic(2))
    assert RiemannianGaussian(ball_on(Sphere(1), 0.5), 1.0).scale(100) <= 0.0102


def test_with_few_records_or_another_statistic_the_doubled_sensitivity_stays():
    mechanism = KNGMechanism(ball_on(PlanarShapes(50), 0.19), 1.0)
    assert mechanism.scale(100) == pytest.approx(2 * mechanism.sensitivity(100))
    assert mechanism.support(100).radius == 0.19
    median = KNGMechanism(ball_on(SPD(2)), 1.0, FrechetMedian())
    assert median.scale(100) == pytest.approx(2 * median.sensitivity(100))


def directions_of(dim, spokes):
    """Unit vectors and weights: even angles, and on the sphere Gauss-Legendre heights."""
    angle = 2 * math.pi * np.arange(spokes) / spokes
    circle = np.stack([np.cos(angle), np.sin(angle)], -1)
    if dim == 2:
        return circle, np.full(spokes, 2 * math.pi / spokes)
    heights, shares = np.polynomial.legendre.leggauss(spokes // 2)
    rim = np.sqrt(1 - heights**2)[:, None, None] * circle
    units = np.concatenate([rim, np.broadcast_to(heights[:, None, None], (*rim.shape[:2], 1))], -1)
    return units.reshape(-1, 3), np.repeat(shares * 2 * math.pi / spokes, spokes)


def log_normaliser(manifold, points, weights, scale, support, rings=400, spokes=600):
    """By quadrature in polar coordinates around the origin; in three dimensions around the peak, which is narrow."""
    center, reach = jnp.asarray(manifold.origin), support
    if manifold.dim == 3:
        center, reach = frechet_mean(manifold, points, weights), min(support, 30.0 * scale)
    frame = manifold.frame(center)
    nodes, quadrature = np.polynomial.legendre.leggauss(rings)
    t = 0.5 * reach * (nodes + 1)
    units, shares = directions_of(manifold.dim, spokes)

    def term(length, unit):
        v = length * manifold.combine(unit, frame)
        x = manifold.exp(center, v)
        norm = manifold.norm(x, manifold.log_moments(x, points, weights)[0])
        inside = manifold.dim < 3 or manifold.dist(jnp.asarray(manifold.origin), x) <= support
        volume = manifold.log_det_exp(center, v) + (manifold.dim - 1) * jnp.log(length)
        return jnp.where(inside, -norm / scale + volume, -jnp.inf)

    def ring(pair):
        length, weight = pair
        logs = jax.vmap(lambda unit: term(length, unit))(jnp.asarray(units)) + np.log(shares)
        return jax.scipy.special.logsumexp(logs) + weight

    return jax.scipy.special.logsumexp(jax.lax.map(ring, (jnp.asarray(t), jnp.log(0.5 * reach * quadrature))))


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_zcdp_of_kng_follows_from_its_scale(epsilon):
    """A flag once gave epsilon^2/8 whatever the scale was: less than the divergence of these two Laplace laws."""
    ball = GeodesicBall(Euclidean(1), [0.0], 1.0)
    half_noise = KNGMechanism(ball, epsilon)
    assert half_noise.scale(10) == pytest.approx(half_noise.sensitivity(10) / epsilon)
    # The gradient norm is |x - mean|; the means of neighbours are the sensitivity, epsilon scales, apart.
    rho = half_noise.zcdp(10).rho
    assert epsilon**2 / 8 < epsilon + math.exp(-epsilon) - 1 <= rho <= PureDP(epsilon).to_zcdp().rho
    for order in (1.5, 2.0, 10.0):
        share = order / (2 * order - 1)
        total = share * math.exp((order - 1) * epsilon) + (1 - share) * math.exp(-order * epsilon)
        assert math.log(total) / (order - 1) <= rho * order
    # With twice the scale, a quarter.
    doubled = KNGMechanism(ball, epsilon, calibration="theorem")
    assert doubled.zcdp(10).rho == pytest.approx(epsilon**2 / 8, rel=1e-12)
    with pytest.raises(TypeError):
        PureDP(epsilon).to_zcdp(bounded_range=True)
    with pytest.raises(ValueError, match="nothing is proven"):
        KNGMechanism(ball, epsilon, calibration="paper").zcdp(10)


@pytest.mark.parametrize(
    ("manifold", "radius", "n"),
    [
        (SPD(2), 1.0, 60),
        # The formula of constant curvature has measured terms in test_constants_normalizer.py; that of shapes is tied
        # to it below.
        *exhaustive(
            *((Sphere(2), EIGHTH, 50), (PlanarShapes(3), 0.25, 80), (Sphere(2), 0.6, 120), (Hyperbolic(2), 1.0, 50)),
        ),
    ],
    ids=name,
)
def test_the_normaliser_moves_no_more_than_certified(manifold, radius, n):
    """Adversarial neighbours by quadrature; the bound is of use, and half of it would be false somewhere."""
    ball = ball_on(manifold, radius)
    mechanism = KNGMechanism(ball, 1.0)
    support, scale = mechanism.support(n), mechanism.scale(n)
    bound = normalizer_bound(ball, support.radius)
    allowed = (bound.interior + bound.boundary(scale)) / n
    assert mechanism.sensitivity(n) / scale + allowed <= 1.0 + 1e-12
    center = jnp.asarray(ball.center)
    u, v = manifold.frame(center)[:2]
    size = (400, 600) if manifold.dim == 2 else (80, 20)
    rim = [manifold.exp(center, radius * d) for d in (u, -u, v, (u + v) / math.sqrt(2))]
    value = jax.jit(lambda points, weights: log_normaliser(manifold, points, weights, scale, support.radius, *size))
    weights = jnp.array([(n - 1) / n, 1 / n])
    largest = 0.0
    for others in (rim[0], rim[1], rim[2], center):
        values = [float(value(jnp.stack([others, one]), weights)) for one in (rim[0], rim[1], rim[3], center)]
        for old, new in ((0, 1), (0, 3), (2, 1)):
            largest = max(largest, abs(values[old] - values[new]))
    assert 0.02 * allowed < largest <= allowed
    # The quadrature has converged.
    fine = jax.jit(
        lambda p, w: log_normaliser(manifold, p, w, scale, support.radius, size[0] * 3 // 2, size[1] * 3 // 2)
    )
    pair = jnp.stack([rim[0], rim[1]])
    np.testing.assert_allclose(value(pair, weights), fine(pair, weights), atol=0.01 * allowed)


def test_no_scale_is_claimed_where_none_is_proven():
    class NotKnownToBeSymmetric(SPD):
        curvature_trace = math.inf

    for manifold in (NotKnownToBeSymmetric(2), Product(Sphere(2), NotKnownToBeSymmetric(2))):
        assert normalizer_bound(ball_on(manifold), 1.2) is None
        assert KNGMechanism(ball_on(manifold, 0.3), 1.0).scale(500) >= 2 * 2 * 0.3 / 500
    ball = ball_on(Sphere(2), EIGHTH)
    assert normalizer_bound(ball_on(Grassmann(2, 1), 0.3), math.inf) is None, "flat, but no line"
    assert normalizer_bound(ball, EIGHTH) is None
    assert normalizer_bound(ball, math.pi / 2) is None
    bound = normalizer_bound(ball, 0.5)
    assert calibrated_scale(bound, 1.0, 2, 0.1) == math.inf


# A fixed number of proposals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "manifold", "radius", "slack"),
    [
        (LaplaceMechanism, Sphere(2), EIGHTH, 30),
        (KNGMechanism, Hyperbolic(2), 1.0, 30),
        (GibbsMechanism, Hyperbolic(2), 1.0, 30),
        *exhaustive(
            *((KNGMechanism, Sphere(2), EIGHTH, 30), (KNGMechanism, SPD(2), 1.0, 30)),
            *((GibbsMechanism, Sphere(2), EIGHTH, 200), (GibbsMechanism, SPD(2), 1.0, 30)),
        ),
    ],
    ids=name,
)
def test_acceptance_is_no_less_than_the_public_bound(build, manifold, radius, slack):
    ball, n, eta = ball_on(manifold, radius), 60, 1e-9
    mechanism = build(ball, 1.0)
    law = mechanism.law(n)
    count = proposals_needed(law, math.log(eta))
    least = 1.0 - eta ** (1.0 / count)
    center = jnp.asarray(ball.center)
    direction = manifold.frame(center)[0]
    # Data in the middle, at one rim, at opposite rims; one proposal each time.
    shares = []

    @jax.jit
    def found_by(data):
        keys = jax.random.split(jax.random.key(0), 2000)
        return jax.vmap(lambda k: _fixed_draw(law, k, data, 1)[1])(keys)

    for ends in ((0.0, 0.0), (1.0, 1.0), (1.0, -1.0)):
        places = jnp.stack([manifold.exp(center, radius * (1 - 1e-9) * end * direction) for end in ends])
        data = jnp.repeat(places, n // 2, axis=0)
        shares.append(float(jnp.mean(found_by(data))))
    assert min(shares) >= least * (1 - 5 / math.sqrt(2000 * least))
    assert max(shares) < slack * least


def _fixed_draw(law, key, data, block):
    ball, support, scale = law.ball, law.support, law.target.temperature(law.scale)
    center = law.center(data)
    level = law.target.level(ball, center, data)

    def log_target(x, distance):
        value = -(distance if law.target.radial else law.potential(x, center, data) - level) / scale
        return value if support is None else jnp.where(support.contains(x), value, -jnp.inf)

    reach = ball.manifold.diameter if support is None else support.radius + ball.radius
    growth = law.target.public_bounds(ball, support, scale).growth
    return first_of_fixed_number(key, ball.manifold, log_target, center, growth, scale, reach, 1, block)


@jax.jit
def in_fixed_time(law, keys, data):
    """Draws of one program, for several tests."""
    return jax.lax.map(lambda key: draw_in_fixed_time(law, key, data, 64), keys)


@pytest.mark.parametrize(
    ("build", "manifold"),
    [
        (KNGMechanism, Sphere(2)),
        (GibbsMechanism, Euclidean(2)),
        *exhaustive((GibbsMechanism, Sphere(2))),
    ],
    ids=name,
)
def test_draws_of_both_samplers_have_one_law(build, manifold):
    ball = ball_on(manifold, EIGHTH)
    mechanism, data = build(ball, 1.0), data_on(manifold, 20)
    law = mechanism.law(20)
    keys = jax.random.split(jax.random.key(5), 800)
    fixed = in_fixed_time(law, keys, data)
    usual = mechanism.simulate(jax.random.key(6), data, 10_000)  # of which many cost little
    mean = law.center(ball.clip(data))
    distances = [np.asarray(jax.vmap(lambda x: manifold.dist(mean, x))(draws)) for draws in (fixed, usual)]
    assert stats.ks_2samp(*distances).pvalue > 1e-4
    assert stats.ks_2samp(1.25 * distances[0], distances[1]).pvalue < 1e-6


def test_draws_in_fixed_time_stay_in_their_support():
    """Where the noise is so large that most proposals are outside."""
    law = KNGMechanism(ball_on(Sphere(2), 0.3), 0.05).law(20)
    data, keys = data_on(Sphere(2), 20), jax.random.split(jax.random.key(5), 800)
    draws = in_fixed_time(law, keys, data)
    distances = jax.vmap(lambda x: Sphere(2).dist(law.support.center, x))(draws)
    assert law.support.radius * 0.8 < jnp.max(distances) <= law.support.radius * (1 + 1e-5)


def test_a_centre_that_cannot_be_computed_is_that_of_the_ball():
    """Of a coordinate that is no number, too: nothing else may tell that records were beyond computing."""
    law = LaplaceMechanism(ball_on(Euclidean(2), 1.0), 1.0).law(20)
    for center in ([0.3, 0.2], [jnp.nan, 0.2], [0.3, jnp.inf]):
        planted = dataclasses.replace(law, target=Mock(center=lambda ball, points, own=center: jnp.array(own)))
        expected = center if jnp.all(jnp.isfinite(jnp.array(center))) else [0.0, 0.0]
        np.testing.assert_allclose(planted.center(None), expected, rtol=1e-6)


def test_a_release_in_fixed_time_says_what_it_costs():
    ball, data = ball_on(Euclidean(1), 1.0), np.asarray(data_on(Euclidean(1), 60))
    record = KNGMechanism(ball, 1.0).release(data, delta=1e-9).record
    assert record["guarantee"]["kind"] == "approx"
    assert (record["guarantee"]["epsilon"], record["guarantee"]["delta"]) == (1.0, 1e-9)
    assert "does not depend on the data" in record["numerics"]["note"]
    assert "total variation" in record["sampler"]["exactness"]
    with pytest.raises(ValueError, match="asks for a fixed number of proposals, which would be"):
        KNGMechanism(ball_on(PlanarShapes(50), 0.19), 1.0).release(
            np.tile(PlanarShapes(50).origin, (40, 1)), delta=1e-6
        )
    with pytest.raises(ValueError, match="of statistics that of the Frechet mean"):
        KNGMechanism(ball, 1.0, statistic=FrechetMedian()).release(data, delta=1e-6)
    for wrong in (-1e-3, 1.0, math.nan):
        with pytest.raises(ValueError, match="ApproximateDP: delta"):
            KNGMechanism(ball, 1.0).release(data, delta=wrong)


@pytest.mark.parametrize("build", [WrappedLaplace, WrappedGaussian, TangentLaplace])
def test_noise_that_double_precision_cannot_hold_is_refused(build):
    mechanism = build(ball_on(Hyperbolic(2), 1.0), 0.02)
    with pytest.raises(ValueError, match=r"too large for double precision.*raise the privacy parameter or n"):
        mechanism.release(data_on(Hyperbolic(2), 3))
    assert mechanism.scale(5000) > 0
    # Spheres are bounded.
    assert build(ball_on(Sphere(2), 0.4), 0.02).scale(3) > 1.0


@pytest.mark.parametrize("manifold", [SPD(2), Hyperbolic(2, -4.0)], ids=name)
def test_the_largest_radius_follows_how_fast_coordinates_grow(manifold):
    """exp(10) in coordinates: 14.1 on matrices, 5 on this hyperbolic plane, and the refusal names it."""
    largest = {"SPD": 10.0 * math.sqrt(2.0), "Hyperbolic": 5.0}[type(manifold).__name__]
    check_representable(LaplaceMechanism(ball_on(manifold, 0.999 * largest), 9.0).law(10**6))
    with pytest.raises(ValueError, match=f"too large for double precision.*at most {largest:.4g}"):
        check_representable(LaplaceMechanism(ball_on(manifold, 1.001 * largest), 9.0).law(10**6))
    with pytest.raises(ValueError, match="too large for double precision"):
        KNGMechanism(ball_on(manifold, 1.001 * largest), 1e6).simulate(jax.random.key(0), data_on(manifold), 3)


def test_the_boundary_term_knows_negative_curvature():
    """On products of mixed signs Theorem F (1) has h_min in the bound of |grad F| at the rim."""
    ball = ball_on(Product(Sphere(2), Hyperbolic(2, -4.0)), 0.4)
    bound = normalizer_bound(ball, 0.7)
    gap, s = 0.3, 1.1
    h, steep = s / math.tan(s), 2.2 / math.tanh(2.2)
    growth = max(gap - (1 - h) * (0.16 * gap + steep * gap**3 / 3) / s**2, h * gap)
    small = 1e-3
    # The exponent of the boundary term, from two scales; what else depends on them are known powers.
    ratio = math.log(bound.boundary(small) / bound.boundary(0.5 * small))
    assert ratio == pytest.approx(growth / small - 4 * math.log(2.0), abs=0.05)


def test_single_precision_refuses_noise_below_its_rounding():
    """It would propose nearly for ever."""
    ball = GeodesicBall(Sphere(2), Sphere(2).origin, 0.39)
    data = np.broadcast_to(np.float32([0.0, 0.0, 1.0]), (200_000, 3))
    with pytest.raises(ValueError, match=r"too small for float32 data, .*: pass them in double precision\.$"):
        KNGMechanism(ball, 1.0).simulate(jax.random.key(0), data, 1)
    assert KNGMechanism(ball, 1.0).simulate(jax.random.key(0), data.astype(float), 1).shape == (1, 3)
    # In flat space nothing amplifies rounding, but numbers are rounded.
    flat = GibbsMechanism(GeodesicBall(Euclidean(2), np.zeros(2), 1.0), 100.0)
    with pytest.raises(ValueError, match=r"too small for float32 data, which need at least 6\.05e-06"):
        flat.simulate(jax.random.key(0), np.zeros((10, 2), np.float32), 1)


def test_log_density_has_derivatives_in_the_data():
    manifold = Hyperbolic(2)
    mechanism, data = LaplaceMechanism(ball_on(manifold), 1.0), data_on(manifold)
    x = manifold.exp(jnp.asarray(manifold.origin), jnp.array([0.0, 0.3, -0.2]))

    @jax.jit
    def density(points):
        return mechanism.log_density(x, points)

    direction = jax.vmap(lambda p: manifold.to_tangent(p, jnp.array([0.1, 0.3, -0.5])))(data)
    step = 1e-5
    moved = [density(jax.vmap(manifold.exp)(data, sign * step * direction)) for sign in (1.0, -1.0)]
    change = float(jnp.sum(jax.jit(jax.grad(density))(data) * direction))
    assert change == pytest.approx(float(moved[0] - moved[1]) / (2 * step), rel=1e-5)


@pytest.mark.parametrize(
    ("key", "num", "words"),
    [
        (0, 5, "key must be a random key such as jax.random.key(0)"),
        ("k", 5, "key must be a random key"),
        (np.random.default_rng(0), 5, "key must be a random key"),
        (jax.random.key(0), 2.5, "num must be an integer"),
        (jax.random.key(0), -1, "num must be an integer"),
    ],
)
def test_simulations_say_what_they_need(key, num, words):
    mechanism = LaplaceMechanism(GeodesicBall(Sphere(2), Sphere(2).origin, 0.3), 1.0)
    with pytest.raises(ValueError, match=re.escape(words)):
        mechanism.simulate(key, np.tile(Sphere(2).origin, (50, 1)), num)
    old = mechanism.simulate(jax.random.PRNGKey(0), np.tile(Sphere(2).origin, (50, 1)), 2)
    assert old.shape == (2, 3)


def test_a_mean_says_that_its_manifold_is_none():
    with pytest.raises(ValueError, match="manifold must be a Manifold, such as Sphere"):
        frechet_mean("sphere", np.eye(3))


def test_a_projected_value_has_a_density_where_nothing_is_projected():
    flat, sphere = (GeodesicBall(own, own.origin, 0.3) for own in (Euclidean(2), Sphere(2)))
    data = jnp.array([[0.1, 0.0], [0.0, 0.2]])
    x = jnp.array([0.3, -0.1])
    densities = [EuclideanLaplace(flat, 1.0, project=project).log_density(x, data) for project in (True, False)]
    assert densities[0] == densities[1]
    for own in (sphere, GeodesicBall(Sphere(1), Sphere(1).origin, 0.3)):
        with pytest.raises(InputError, match="density of a projected value is not known"):
            EuclideanLaplace(own, 1.0, project=True).log_density(own.center, jnp.stack([own.center] * 2))


@pytest.mark.parametrize("make", [LaplaceMechanism, TangentLaplace])
def test_what_is_no_ball_is_refused(make):
    with pytest.raises(InputError, match="ball must be a GeodesicBall, got PlainBall"):
        make(PlainBall(Sphere(2), Sphere(2).origin, 0.3), 1.0)


class PlainBall(NamedTuple):
    """Has all that a ball has, but for its checks."""

    manifold: object
    center: object
    radius: float


def test_an_ambient_density_falls_with_the_frobenius_distance_from_the_arithmetic_mean():
    ball = GeodesicBall(SPD(2), jnp.eye(2), 0.5)
    data = jnp.stack([jnp.array([[1.2, 0.1], [0.1, 0.9]]), jnp.array([[0.9, -0.2], [-0.2, 1.1]])])
    mechanism = EuclideanLaplace(ball, 1.0)
    points = [jnp.array([[1.3, 0.4], [0.4, 0.8]]), jnp.eye(2)]
    distances = [float(jnp.linalg.norm(x - data.mean(axis=0))) for x in points]
    logs = [float(mechanism.log_density(x, data)) for x in points]
    assert logs[0] - logs[1] == pytest.approx((distances[1] - distances[0]) / mechanism.scale(2), rel=1e-9)


def test_the_papers_laplace_has_the_sensitivity_of_their_theorem():
    ball = GeodesicBall(Sphere(2), Sphere(2).origin, 0.4)
    tight, theorem, paper = (
        LaplaceMechanism(ball, 1.0, calibration=own).sensitivity(20) for own in ("tight", "theorem", "paper")
    )
    assert paper == pytest.approx(theorem, rel=1e-6) and paper > 1.4 * tight


def test_unaligned_landmarks_are_averaged_as_they_lie():
    space = PlanarShapes(4)
    ball = GeodesicBall(space, space.origin, 0.3)
    turned = jnp.exp(0.7j) * jnp.asarray(space.origin)
    data = jnp.stack([turned] * 5)
    for align, nearest in ((False, turned), (True, jnp.asarray(space.origin))):
        mechanism = LandmarkLaplace(ball, 1.0, align=align)
        densities = [float(mechanism.log_density(x, data)) for x in (turned, jnp.asarray(space.origin))]
        assert (densities[0] > densities[1]) == (nearest is turned)


class OfPoints(Statistic):
    def loss(self, manifold, x, datum):
        return 0.5 * manifold.squared_dist(x, jnp.reshape(datum, (-1, 3))[0])

    def gradient_sensitivity(self, ball, n, support_radius, calibration):
        return Sensitivity(1.0 / n, "supposed")


class OfPairs(OfPoints):
    """Data are no points."""

    def datum_shape(self, manifold):
        return (2, *manifold.shape)


def test_other_data_than_points_are_not_averaged_for_a_person():
    ball = GeodesicBall(Sphere(2), Sphere(2).origin, 0.3)
    persons = ["persons" in KNGMechanism(ball, 1.0, own).supports for own in (OfPoints(), OfPairs())]
    assert persons == [True, False]
