"""Releases with ``numerics="grid"``: what is proven is checked in integers."""

import dataclasses
import math
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from strategies import exhaustive

from benchmarks.audit.audited import integers_of
from jaxgeodp import (
    SPD,
    Euclidean,
    GaussianDP,
    GeodesicBall,
    Hyperbolic,
    PlanarShapes,
    Product,
    PureDP,
    Sphere,
    TangentLaplace,
    WrappedGaussian,
    WrappedLaplace,
)
from jaxgeodp.compiling import like
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.mechanisms import wrapped
from jaxgeodp.privacy import grid
from jaxgeodp.surfaces import FaceMeanMechanism

LEVEL = 1e-6 / 20
BALLS = {
    "sphere": GeodesicBall(Sphere(2), np.array([0.0, 0.0, 1.0]), 0.4),
    "matrices": GeodesicBall(SPD(2), np.eye(2), 1.0),
    "hyperbolic": GeodesicBall(Hyperbolic(2), np.array([1.0, 0.0, 0.0]), 0.5),
    "shapes": GeodesicBall(PlanarShapes(4), np.array([1.0, 1.0j, -1.0, -1.0j]) / 2.0, 0.3),
    "plane": GeodesicBall(Euclidean(2), np.zeros(2), 1.0),
}
CURVES = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.05, [1.0, 0.5], [0.6, 0.8])


def records(ball, seed, count):
    """Points in and outside the ball, one of them no point."""
    manifold, center = ball.manifold, jnp.asarray(ball.center)
    keys = jax.random.split(jax.random.key(seed), count)

    def one(key):
        tangent = manifold.random_tangent(key, center)
        return manifold.exp(
            center, tangent * (1.2 * ball.radius / manifold.norm(center, tangent)) * jax.random.uniform(key)
        )

    points = np.array(jax.vmap(one)(keys))
    points[0] = np.nan
    return points


def without_noise(monkeypatch):
    monkeypatch.setattr(grid, "with_noise", lambda law, steps, scale, below=None: np.asarray(steps, float))


def every_pair_of(builds, chosen):
    """Each mechanism on a curved space, and some spaces; the other pairs exhaustively."""
    others = [(name, build) for name in BALLS for build in builds if (name, build) not in chosen]
    return pytest.mark.parametrize(("name", "build"), [*chosen, *exhaustive(*others)])


@every_pair_of(
    [TangentLaplace, WrappedLaplace, WrappedGaussian],
    [
        ("hyperbolic", TangentLaplace),
        ("plane", TangentLaplace),
        ("hyperbolic", WrappedLaplace),
        ("sphere", WrappedGaussian),
        ("plane", WrappedGaussian),
    ],
)
def test_without_noise_it_is_the_idealized_vector(name, build, monkeypatch):
    ball = BALLS[name]
    mechanism, data = build(ball, 2.0), records(ball, 1, 12)
    without_noise(monkeypatch)
    value = jnp.asarray(mechanism.release(data, numerics="grid").value)
    law = mechanism.law(12)
    points = law.clipped(jnp.asarray(data))
    expected = law.summary.to_value(ball, law.location(points, law.center(points)))
    assert float(ball.manifold.dist(value, expected)) < 1e-7


@every_pair_of(
    [TangentLaplace, WrappedGaussian],
    [
        ("sphere", TangentLaplace),
        ("matrices", TangentLaplace),
        ("plane", TangentLaplace),
        ("sphere", WrappedGaussian),
        ("hyperbolic", WrappedGaussian),
        ("plane", WrappedGaussian),
    ],
)
def test_one_record_moves_the_integers_by_the_sensitivity_at_most(name, build):
    """Also to the opposite edge, far outside, and to what is no point."""
    ball = BALLS[name]
    mechanism, n = build(ball, 2.0), 5
    data = records(ball, 2, n)
    sensitivity = mechanism.law(n).grid.steps.sensitivity
    manifold, center = ball.manifold, jnp.asarray(ball.center)
    tangent = manifold.random_tangent(jax.random.key(7), center)
    tangent = tangent * (ball.radius / manifold.norm(center, tangent))
    opposite = [np.asarray(manifold.exp(center, sign * tangent)) for sign in (1.0, -1.0)]
    largest = 0
    for first in (opposite[0], np.full_like(data[0], np.nan), data[1]):
        for second in (opposite[1], 1e9 * opposite[1], data[2]):
            sums = []
            for record in (first, second):
                data[-1] = record
                sums.append(integers_of(mechanism, data))
            moved = [int(a) - int(b) for a, b in zip(*sums, strict=True)]
            largest = max(largest, math.isqrt(sum(x * x for x in moved)))
            assert sum(x * x for x in moved) <= sensitivity**2
    # The bound is used: by opposite records all of it, or what the curvature leaves of it.
    assert largest > (0.999 if build is TangentLaplace else 0.5) * sensitivity


TILTED = np.array([0.48, -0.6, 0.64])


def product_ball(manifold, place, radius):
    """Around a far point of a line, beside the origin of another manifold."""
    space = Product(manifold, Euclidean(1))
    return GeodesicBall(space, np.asarray(space.join(manifold.origin, np.array([place]))), radius)


FAR_OR_SMALL = {
    "line at 1e8": (GeodesicBall(Euclidean(1), np.array([1e8]), 1.0), 1000),
    "line at 1e12": (GeodesicBall(Euclidean(1), np.array([1e12]), 1.0), 1000),
    "sphere, r = 1e-6": (GeodesicBall(Sphere(2), TILTED, 1e-6), 5),
    "sphere, r = 1e-13": (GeodesicBall(Sphere(2), np.array([0.0, 0.0, 1.0]), 1e-13), 5),
    "line beside a hyperbolic plane": (product_ball(Hyperbolic(2), 1e10, 0.5), 1000),
    "line beside many dimensions": (product_ball(Hyperbolic(8), 1e9, 0.3), 1000),
    "SPD of condition 1e12": (GeodesicBall(SPD(2), np.diag([1e-12, 1.0]), 1e-3), 5),
}


def largest_move(ball, n):
    """By which the integers of the wrapped mean move between two edges, and what is claimed; the others at random."""
    mechanism = WrappedGaussian(ball, 1.0)
    sensitivity = mechanism.law(n).grid.steps.sensitivity
    last = np.zeros(ball.manifold.dim)
    last[-1] = ball.radius * (1.0 - 1e-9)
    frame, center = ball.manifold.frame(jnp.asarray(ball.center)), jnp.asarray(ball.center)
    start, end = (
        np.asarray(ball.manifold.exp(center, ball.manifold.combine(jnp.asarray(sign * last), frame)))[None]
        for sign in (-1.0, 1.0)
    )
    largest = 0
    for seed in range(20):
        others = records(ball, seed, n)[1:]
        sums = [integers_of(mechanism, np.concatenate([others, record])) for record in (start, end)]
        largest = max(largest, math.isqrt(sum((int(a) - int(b)) ** 2 for a, b in zip(*sums, strict=True))))
    return largest, sensitivity


# The same space nearer by, and of more dimensions.
NEARER_OR_WIDER = ("line at 1e8", "line beside many dimensions")


@pytest.mark.parametrize(
    "name", [*(name for name in FAR_OR_SMALL if name not in NEARER_OR_WIDER), *exhaustive(*NEARER_OR_WIDER)]
)
def test_rounding_of_the_mean_is_within_the_sensitivity(name):
    largest, sensitivity = largest_move(*FAR_OR_SMALL[name])
    assert 0.1 * sensitivity < largest <= sensitivity


@pytest.mark.exhaustive  # tests/inner/test_grid.py has the sums of squares, in three rounds
def test_releases_of_many_dimensions_keep_the_data():
    ball = GeodesicBall(Euclidean(4200), np.zeros(4200), 1.0)
    data = np.zeros((2, 4200))
    data[:, 0], data[:, -1] = 0.9, 0.1
    value = TangentLaplace(ball, 1e6).release(data, numerics="grid").value
    assert abs(value[0] - 0.9) < 1e-2 and abs(value[-1] - 0.1) < 1e-2


def curve_integers(data, radii):
    data = jnp.asarray(data)
    return CURVES.sums.program(like(data))(data)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from([0.1, 1.0, 1e3, 1e200, np.nan, np.inf]))
def test_one_record_moves_curves_by_the_sensitivity_at_most(seed, size):
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(4, 2, 16)) * 0.3
    other = data.copy()
    other[2] = size * rng.normal(size=(2, 16))
    radii = np.array([1.0, 0.5]) * CURVES.gain(16)
    sums = [curve_integers(x, radii) for x in (data, other)]
    for first, second in zip(*sums, strict=True):
        moved = [int(a) - int(b) for a, b in zip(first, second, strict=True)]
        assert sum(x * x for x in moved) <= (2 * grid.STEPS) ** 2


def test_the_most_sensitive_curve_uses_the_sensitivity():
    t = np.arange(16) / 16
    waves = [np.ones(16), *(math.sqrt(2.0) * np.cos(2 * np.pi * j * t) for j in range(1, 8))]
    radii = np.array([1.0, 0.5]) * CURVES.gain(16)
    largest = 0
    for wave in waves:
        sums = [curve_integers(np.tile(sign * wave, (2, 2, 1)), radii)[0] // 2 for sign in (1, -1)]
        largest = max(largest, math.isqrt(int(sum((int(a) - int(b)) ** 2 for a, b in zip(*sums, strict=True)))))
    assert largest > 0.999 * 2 * grid.STEPS


def test_curves_without_noise_are_the_mean(monkeypatch):
    without_noise(monkeypatch)
    template = np.tile(np.sin(np.arange(16)), (2, 1))
    mechanism = dataclasses.replace(CURVES, template=template)
    data = np.random.default_rng(0).normal(size=(50, 2, 16))
    value = mechanism.release(data, numerics="grid").value
    np.testing.assert_allclose(value, mechanism.mean(data), atol=1e-7)


def test_curves_have_the_law_of_the_process(monkeypatch):
    """Whitened draws against standard normals; a fifth more is rejected."""
    source = random.Random(0)
    monkeypatch.setattr(grid.secrets, "randbelow", source.randrange)
    data = np.zeros((10, 2, 16))
    how = CURVES.law(10, (2, 16)).grid(like(jnp.asarray(data)))
    draws = np.stack([how.draw(data) for _ in range(300)])
    scale = np.asarray(CURVES.scale(10, 16))[:, None]
    spectrum = CURVES.kernel.spectrum(16)
    white = np.asarray(spectrum.apply(1.0 / jnp.sqrt(spectrum.eigenvalues), draws)) / scale / 4.0
    assert stats.kstest(white.reshape(-1), "norm").pvalue > LEVEL
    assert stats.kstest(1.2 * white.reshape(-1), "norm").pvalue < LEVEL


def test_vectors_have_the_law_of_laplace(monkeypatch):
    source = random.Random(0)
    monkeypatch.setattr(grid.secrets, "randbelow", source.randrange)
    mechanism, data = TangentLaplace(BALLS["plane"], 1.0), np.full((10, 2), 0.1)
    draws = np.stack([mechanism.release(data, numerics="grid").value for _ in range(300)])
    scale = math.sqrt(2.0) * 2.0 / 10
    assert stats.kstest(((draws - 0.1) / scale).reshape(-1), "laplace").pvalue > LEVEL
    assert stats.kstest((1.8 * (draws - 0.1) / scale).reshape(-1), "laplace").pvalue < LEVEL


def test_records_say_what_is_promised():
    data = np.tile(BALLS["sphere"].center, (4, 1))
    pure = TangentLaplace(BALLS["sphere"], 0.7).release(data, numerics="grid").record
    assert (pure["guarantee"]["kind"], pure["guarantee"]["epsilon"]) == ("pure", 0.7)
    assert pure["guarantee"]["theorem"] == "docs/mathematics.md, Theorem N"
    assert pure["sampler"]["exactness"] == "exact, in integers"
    gaussian = WrappedGaussian(BALLS["sphere"], 0.6).release(data, numerics="grid").record
    assert gaussian["guarantee"]["kind"] == "zcdp"
    assert gaussian["guarantee"]["rho"] == pytest.approx(0.18, rel=1e-6)
    assert gaussian["guarantee"]["rho"] <= 0.18 * (1 + 1e-15)
    assert "supposed: the computed mean is within eta" in gaussian["guarantee"]["theorem"]
    curves = CURVES.release(np.zeros((4, 2, 16)), numerics="grid").record
    assert curves["guarantee"]["rho"] == pytest.approx(GaussianDP(1.0).to_zcdp().rho, rel=1e-6)
    face = FaceMeanMechanism(np.zeros((2, 16, 3)), 1.0).release(np.zeros((4, 2, 16, 3)), numerics="grid")
    assert face.value.shape == (2, 16, 3)
    assert face.record["mechanism"] == "FaceMeanMechanism"
    assert PureDP(0.7).epsilon == pure["guarantee"]["epsilon"]


def test_the_grid_reads_the_operating_systems_generator(monkeypatch):
    """Every uniform integer comes from `secrets`; without it nothing is drawn."""

    def broken(_):
        raise RuntimeError("asked")

    monkeypatch.setattr(grid.secrets, "randbelow", broken)
    with pytest.raises(RuntimeError, match="asked"):
        TangentLaplace(BALLS["plane"], 1.0).release(np.zeros((4, 2)), numerics="grid")


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="'idealized' or 'grid', got 'exact'"):
        TangentLaplace(BALLS["plane"], 1.0).release(np.zeros((4, 2)), numerics="exact")
    with pytest.raises(ValueError, match="needs calibration='tight'"):
        dataclasses.replace(CURVES, calibration="theorem").release(np.zeros((4, 2, 16)), numerics="grid")
    with pytest.raises(ValueError, match="too large for double precision"):
        TangentLaplace(BALLS["hyperbolic"], 0.1).release(np.tile([1.0, 0.0, 0.0], (2, 1)), numerics="grid")


def test_curves_with_one_scale_get_their_noise_together(monkeypatch):
    """And each its own: the rows are where they were."""
    asked = []

    def with_noise(draw, steps, scale):
        asked.append((len(steps), scale))
        return steps.astype(float) + scale

    monkeypatch.setattr(grid, "with_noise", with_noise)
    mechanism = dataclasses.replace(CURVES, mu=np.array([1.0, 0.5, 1.0]), norm_bound=1.0, penalty=0.01)
    with jax.enable_x64(True):
        law = mechanism.law(5, (3, 16))
        noisy = law.grid.noisy((3, 16))
        total = np.arange(48).reshape(3, 16).astype(object)
        found = np.asarray(law.encoding.vector(noisy.value(total)))
    few, many = (scale for _, scale in asked)
    assert [rows for rows, _ in asked] == [2, 1] and abs(many - 2 * few) <= 1
    step = np.asarray(noisy.scale)[0] / few
    np.testing.assert_allclose(found, step * (total.astype(float) + np.array([[few], [many], [few]])), rtol=1e-9)


@pytest.mark.parametrize("name", ["line at 1e12", *exhaustive("line beside a hyperbolic plane")])
def test_away_from_home_the_sensitivity_is_exceeded(name, monkeypatch):
    """Planted: computing where the centre lies, and flat spaces are no exception. The last, as programs go with it."""
    monkeypatch.setattr(GeodesicBall, "clip_to_home", GeodesicBall.clip)
    monkeypatch.setattr(GeodesicBall, "at_home", property(lambda ball: ball))
    monkeypatch.setattr(wrapped, "sum_on_grid", lambda law, formula: wrapped.mean_on_grid(law))
    jax.clear_caches()  # of programs that go home
    largest, sensitivity = largest_move(*FAR_OR_SMALL[name])
    assert largest > sensitivity
    jax.clear_caches()
