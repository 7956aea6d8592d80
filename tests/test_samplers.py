"""Exact samplers against numerical quadrature and brute force, and planted wrong samplers that must be caught.

The geometry of this file (logarithms, volumes, means) is written anew in NumPy, so that a mistake in the
library's geometry cannot hide in both. All keys are fixed; the tests together claim a wrong law with
probability 1e-6 if every sampler is right.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2, kstwo, norm
from strategies import MORE, ONE_OF_EACH_KIND, a_tangent, cap, cast, exhaustive, name

from jaxgeodp import (
    SPD,
    Euclidean,
    FrechetMean,
    FrechetMedian,
    GeodesicBall,
    Grassmann,
    Hyperbolic,
    KNGMechanism,
    LaplaceMechanism,
    Manifold,
    PlanarShapes,
    Product,
    Rotations,
    Sphere,
    datasets,
)
from jaxgeodp.bounds import largest_support
from jaxgeodp.domains.geodesic_ball import assumption_limit
from jaxgeodp.mechanisms.laplace import Distance
from jaxgeodp.releases.density import DensityLaw
from jaxgeodp.samplers import rejection_sample
from jaxgeodp.samplers.direction import exit_distance
from jaxgeodp.samplers.envelope import radial_envelope
from jaxgeodp.samplers.rejection import make_proposal

FAMILY_LEVEL = 1e-6
STATISTICS = 100  # an upper bound of the number of p-values of right samplers, see `test_the_family_is_small_enough`
LEVEL = FAMILY_LEVEL / STATISTICS
DRAWS = 60_001  # odd, and no multiple of a block
FEWER_DRAWS = 30_001
SLOW_DRAWS = 15_001  # near the existence limit, of which few proposals are accepted
NODES = 120_000
CHI_SQUARE = "chi-square"


# Geometry in NumPy ------------------------------------------------------------------------------------
# Tangent vectors are arrays whose entrywise Euclidean norm is the Riemannian length.


def angle_over_sine(angle):
    return 1.0 / np.sinc(angle / np.pi)


class SphereGeometry:
    def __init__(self, curvature):
        self.curvature, self.root = curvature, math.sqrt(curvature)

    def exp(self, base, tangent):
        angle = self.root * np.linalg.norm(tangent, axis=-1, keepdims=True)
        return np.cos(angle) * base + np.sinc(angle / np.pi) * tangent

    def log(self, base, x):
        cosine = self.curvature * x @ base
        perpendicular = x - cosine[..., None] * base
        angle = np.arctan2(self.root * np.linalg.norm(perpendicular, axis=-1), cosine)
        return angle_over_sine(angle)[..., None] * perpendicular

    def minus_gradient(self, x, data):
        cosine = np.clip(self.curvature * x @ data.T, -1.0, 1.0)
        coefficients = angle_over_sine(np.arccos(cosine)) / len(data)
        return coefficients @ data - np.sum(coefficients * cosine, axis=-1)[..., None] * x

    def turn(self, base, tangent):
        return np.cross(self.root * base, tangent)

    def circumference(self, radius):
        return np.sin(self.root * radius) / self.root

    def log_volume(self, base, tangent):
        """In two dimensions."""
        return np.log(np.sinc(self.root * _length(tangent) / np.pi))


class ShapeGeometry:
    def exp(self, base, tangent):
        angle = np.linalg.norm(tangent, axis=-1, keepdims=True)
        return np.cos(angle) * base + np.sinc(angle / np.pi) * tangent

    def log(self, base, x):
        overlap = x @ base.conj()
        aligned = (overlap.conj() / np.abs(overlap))[..., None] * x
        perpendicular = aligned - np.abs(overlap)[..., None] * base
        angle = np.arctan2(np.linalg.norm(perpendicular, axis=-1), np.abs(overlap))
        return angle_over_sine(angle)[..., None] * perpendicular

    def minus_gradient(self, x, data):
        overlap = x.conj() @ data.T
        cosine = np.minimum(np.abs(overlap), 1.0)
        coefficients = angle_over_sine(np.arccos(cosine)) / len(data)
        phases = coefficients * overlap.conj() / np.abs(overlap)
        return phases @ data - np.sum(coefficients * cosine, axis=-1)[..., None] * x

    def turn(self, base, tangent):
        return 1j * tangent

    def circumference(self, radius):
        """For triangles, a sphere of radius 1/2."""
        return np.sin(2.0 * radius) / 2.0

    def random_unit(self, generator, base, count):
        normal = generator.normal(size=(count, len(base))) + 1j * generator.normal(size=(count, len(base)))
        normal = normal - normal.mean(axis=-1, keepdims=True)
        normal = normal - (normal @ base.conj())[:, None] * base
        return normal / np.linalg.norm(normal, axis=-1, keepdims=True)

    def log_volume(self, base, tangent):
        radius = np.linalg.norm(tangent, axis=-1)
        transverse = 2 * len(base) - 6
        return transverse * np.log(np.sinc(radius / np.pi)) + np.log(np.sinc(2.0 * radius / np.pi))


class EuclideanGeometry:
    def exp(self, base, tangent):
        return base + tangent

    def log(self, base, x):
        return x - base

    def minus_gradient(self, x, data):
        return data.mean(axis=0) - x

    def random_unit(self, generator, base, count):
        normal = generator.normal(size=(count, len(base)))
        return normal / np.linalg.norm(normal, axis=-1, keepdims=True)

    def log_volume(self, base, tangent):
        return np.zeros(len(tangent))


class MatrixGeometry:
    """Tangent vectors at p are whitened: L^-1 v L^-T with p = L L'."""

    def exp(self, base, tangent):
        root = np.linalg.cholesky(base)
        return root @ _spectral(np.exp, tangent) @ np.swapaxes(root, -1, -2)

    def log(self, base, x):
        whitener = np.linalg.inv(np.linalg.cholesky(base))
        return _spectral(np.log, whitener @ x @ np.swapaxes(whitener, -1, -2))

    def minus_gradient(self, x, data):
        return sum(self.log(x, datum) for datum in data) / len(data)

    def random_unit(self, generator, base, count):
        normal = generator.normal(size=(count, *base.shape))
        normal = normal + np.swapaxes(normal, -1, -2)
        return normal / _length(normal)[:, None, None]

    def log_volume(self, base, tangent):
        values = np.linalg.eigvalsh(tangent)
        rows, columns = np.triu_indices(values.shape[-1], 1)
        half_gap = 0.5 * np.abs(values[:, rows] - values[:, columns])
        return np.sum(np.log(np.sinh(half_gap) / half_gap), axis=-1)


def _spectral(function, symmetric):
    values, vectors = np.linalg.eigh(symmetric)
    return (vectors * function(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)


def _length(tangent):
    return np.sqrt(np.sum(np.abs(tangent.reshape(len(tangent), -1)) ** 2, axis=-1))


def mean_of(geometry, data):
    mean = data[0]
    for _ in range(100):
        mean = geometry.exp(mean, geometry.minus_gradient(mean[None], data)[0])
    return mean


# References: values of named statistics, with weights ---------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Reference:
    """A law as weighted values of statistics; ``count`` independent draws stand behind it (inf: quadrature)."""

    values: dict
    weights: np.ndarray
    count: float = math.inf
    grid: tuple = ()  # the two statistics whose plane is cut into cells for the chi-square test

    def p_values(self, values):
        result = {key: kolmogorov_smirnov(values[key], self.values[key], self.weights, self.count) for key in values}
        if self.grid:
            result[CHI_SQUARE] = self._chi_square(values)
        return result

    def _chi_square(self, values, cells=9):
        """Cells of about equal mass; those where fewer than 20 draws are expected are joined into one."""
        expected, observed = np.zeros(len(self.weights), int), np.zeros(len(values[self.grid[0]]), int)
        for key in self.grid:
            order = np.argsort(self.values[key])
            cumulative = np.cumsum(self.weights[order])
            inner = np.searchsorted(cumulative, np.arange(1, cells) / cells)
            edges = self.values[key][order][inner]
            expected = cells * expected + np.searchsorted(edges, self.values[key])
            observed = cells * observed + np.searchsorted(edges, values[key])
        expected = len(observed) * np.bincount(expected, self.weights, cells**2)
        observed = np.bincount(observed, minlength=cells**2)
        enough = expected >= 20.0
        expected = np.append(expected[enough], max(expected[~enough].sum(), 1e-3))
        observed = np.append(observed[enough], observed[~enough].sum())
        assert enough.sum() >= 30
        # The joined cell counts only if something is expected in it.
        used = expected >= 5.0
        statistic = np.sum((observed[used] - expected[used]) ** 2 / expected[used])
        return float(chi2.sf(statistic, used.sum() - 1))


def kolmogorov_smirnov(values, reference, weights, count=math.inf):
    """p-value of the largest distance between the empirical distribution of ``values`` and the reference."""
    values, order = np.sort(values), np.argsort(reference)
    cumulative = np.append(0.0, np.cumsum(weights[order]))
    reference = reference[order]
    size = len(values)
    at_draws = np.arange(1, size + 1) / size - cumulative[np.searchsorted(reference, values, side="right")]
    before_draws = cumulative[np.searchsorted(reference, values, side="left")] - np.arange(size) / size
    # A value that is not a number is a wrong draw.
    distance = max(at_draws.max(), before_draws.max()) if np.all(np.isfinite(values)) else 1.0
    effective = size if math.isinf(count) else size * count / (size + count)
    return float(kstwo.sf(distance, round(effective)))


def lattice(count):
    """A rank-one lattice in the unit square: far more even than random points, on every pair of coordinates."""
    plastic = 1.32471795724474602596
    return (0.5 + np.arange(1, count + 1)[:, None] / np.array([plastic, plastic**2])) % 1.0


def stretched(uniform, longest, rate):
    """Radii in [0, longest] from uniform numbers, denser near 0, and the density of that map's inverse."""
    share = -math.expm1(-longest * rate)
    radius = -np.log1p(-share * uniform) / rate
    return radius, np.log(share / rate) + rate * radius


def normalised(log_weights):
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


# Cases ------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    mechanism: object
    make: object  # () -> data
    reference: object  # case -> Reference
    statistics: object  # (case, points) -> {name: values}
    planted: tuple
    geometry: object
    count: int = DRAWS
    telling: int = FEWER_DRAWS  # draws that show each planted mistake

    @functools.cached_property
    def data(self):
        return self.make()

    @functools.cached_property
    def scale(self):
        return self.mechanism.scale(len(self.data))

    @functools.cached_property
    def support(self):
        return self.mechanism.support(len(self.data))

    @functools.cached_property
    def mean(self):
        return mean_of(self.geometry, self.data)

    @functools.cached_property
    def center(self):
        return np.asarray(self.mechanism.ball.center)

    @functools.cached_property
    def law(self):
        return self.reference(self)

    def potential(self, x):
        if isinstance(self.mechanism, LaplaceMechanism):
            return _length(self.geometry.log(self.mean, x))
        return _length(self.geometry.minus_gradient(x, self.data))

    @functools.cached_property
    def draws(self):
        data, key = jnp.asarray(self.data), jax.random.key(self.seed)
        return self.mechanism.law(len(data)).simulated(key, data, self.count)

    @property
    def seed(self):
        return list(CASES.values()).index(self)

    @functools.cached_property
    def points(self):
        assert bool(self.draws.complete)
        return np.asarray(self.draws.points)

    def p_values(self, points):
        return self.law.p_values(self.statistics(self, points))


def axes_at_the_mean(case):
    """Towards the public centre, and a quarter turn from there."""
    towards = case.geometry.log(case.mean, case.center[None])[0]
    towards = towards / np.linalg.norm(towards)
    return towards, case.geometry.turn(case.mean, towards)


def along(tangents, axis):
    return np.real(tangents.reshape(len(tangents), -1) @ axis.conj().reshape(-1))


def polar_statistics(case, x):
    tangents = case.geometry.log(case.mean, x)
    towards, across = (along(tangents, axis) for axis in axes_at_the_mean(case))
    return {
        "distance to the centre": _length(case.geometry.log(case.center, x)),
        "distance to the mean": np.hypot(towards, across),
        "angle at the mean": np.arctan2(across, towards),
        "component across": across,
    }


def surface_quadrature(case, nodes=NODES):
    """Polar coordinates about the mean on a surface: density times area, at the nodes of a lattice."""
    uniform = lattice(nodes)
    manifold = case.mechanism.ball.manifold
    longest = manifold.injectivity_radius
    if case.support is not None:
        longest = case.support.radius + np.linalg.norm(case.geometry.log(case.center, case.mean[None]))
    radius, log_stretch = stretched(uniform[:, 0], longest, 0.5 / case.scale)
    angle = 2.0 * np.pi * uniform[:, 1:]
    towards, across = axes_at_the_mean(case)
    x = case.geometry.exp(case.mean, radius[:, None] * (np.cos(angle) * towards + np.sin(angle) * across))
    log_weights = np.log(case.geometry.circumference(radius)) + log_stretch - case.potential(x) / case.scale
    if case.support is not None:
        inside = _length(case.geometry.log(case.center, x)) <= case.support.radius
        log_weights = np.where(inside, log_weights, -np.inf)
    grid = ("distance to the mean", "angle at the mean")
    return Reference(polar_statistics(case, x), normalised(log_weights), grid=grid)


# Matrices whose eigenvalues differ by more than this factor (logarithm) are not resolved in double precision.
_WIDEST_GAP = 25.0


def eigenvalue_statistics(case, x):
    """Of the logarithm at the mean: eigenvalues l1 >= l2, and the angle of the eigenvectors."""
    whitener = np.linalg.inv(np.linalg.cholesky(case.mean))
    values, vectors = np.linalg.eigh(whitener @ x @ whitener.T)
    # Rounding may leave a tiny eigenvalue negative: its logarithm is then as unresolved as if it were small.
    low, high = np.log(np.maximum(values, 1e-17 * values[:, 1:])).T
    double_angle = np.arctan2(2.0 * vectors[:, 0, 1] * vectors[:, 1, 1], vectors[:, 0, 1] ** 2 - vectors[:, 1, 1] ** 2)
    return _matrix_statistics(high, low, double_angle)


def _matrix_statistics(high, low, double_angle):
    resolved = high - low < _WIDEST_GAP
    return {
        "distance to the mean": np.where(resolved, np.hypot(high, low), 1e3),
        "shape": np.where(resolved, high - low, 1e3),
        "log determinant": np.where(resolved, high + low, 1e3),
        "angle of the eigenvectors": double_angle,
    }


def matrix_quadrature(case, nodes=NODES):
    """exp(-t/sigma) (l1 - l2) sinh(z)/z, z = (l1 - l2)/2, in polar coordinates of the eigenvalues."""
    uniform = lattice(nodes)
    rate = 1.0 / case.scale - math.sqrt(0.5)
    radius, log_stretch = stretched(uniform[:, 0], 60.0 / rate, 0.5 * rate)
    angle = np.pi * (uniform[:, 1] - 0.75)
    high, low = radius * np.cos(angle), radius * np.sin(angle)
    half_gap = 0.5 * (high - low)
    # (l1 - l2) sinh(z)/z = 2 sinh(z), without overflow.
    log_volume = half_gap + np.log1p(-np.exp(-2.0 * half_gap))
    log_weights = -radius / case.scale + log_volume + np.log(radius) + log_stretch
    double_angle = 2.0 * np.pi * ((np.arange(nodes) * math.sqrt(3.0)) % 1.0) - np.pi
    values = _matrix_statistics(high, low, double_angle)
    return Reference(values, normalised(log_weights), grid=("log determinant", "shape"))


def bulk_statistics(case, x):
    towards = case.geometry.log(case.mean, case.center[None])[0]
    tangents = case.geometry.log(case.mean, x)
    return {
        "distance to the centre": _length(case.geometry.log(case.center, x)),
        "distance to the mean": _length(tangents),
        "gradient norm": case.potential(x),
        "component towards the centre": along(tangents, towards / np.linalg.norm(towards)),
    }


def brute_force(case, proposals):
    """Rejection from exp(-0.95 t/sigma) t^{d-1} about the public centre: nothing of the library's envelope."""
    generator = np.random.default_rng(5)
    dim, radius = case.mechanism.ball.manifold.dim, case.support.radius
    slope = 0.95 / case.scale
    grid = np.linspace(0.0, radius, 20_001)
    middle = 0.5 * (grid[1:] + grid[:-1])
    cumulative = np.append(0.0, np.cumsum(middle ** (dim - 1) * np.exp(-slope * middle)))
    length = np.interp(generator.uniform(size=proposals), cumulative / cumulative[-1], grid)
    unit = case.geometry.random_unit(generator, case.center, proposals)
    tangents = length.reshape(-1, *[1] * (unit.ndim - 1)) * unit
    x = case.geometry.exp(case.center, tangents)
    log_ratio = slope * length - case.potential(x) / case.scale + case.geometry.log_volume(case.center, tangents)
    x = x[np.log(generator.uniform(size=proposals)) <= log_ratio - log_ratio.max()]
    assert len(x) >= 20_000
    return Reference(bulk_statistics(case, x), np.full(len(x), 1.0 / len(x)), len(x))


def lopsided(manifold, center, radius, count, seed):
    """Data on one side of the centre: two thirds well off it, one third at the rim a quarter turn further."""
    generator = np.random.default_rng(seed)
    turns = generator.uniform(-0.6, 0.6, count) + np.where(np.arange(count) % 3 == 0, 1.6, 0.0)
    lengths = radius * np.where(np.arange(count) % 3 == 0, generator.uniform(0.93, 1.0, count), 0.55)
    lengths = lengths * np.where(np.arange(count) % 3 == 1, generator.uniform(0.4, 1.2, count), 1.0)
    return np.asarray(_in_a_plane(manifold, cast(manifold, center), seed, lengths, turns))


def data_of(*arguments):
    """Made where they are asked for: nothing is compiled while tests are collected."""
    return functools.partial(lopsided, *arguments)


@functools.partial(jax.jit, static_argnums=0)  # one program a manifold
def _in_a_plane(manifold, center, seed, lengths, turns):
    first = a_tangent(manifold, center, seed, 1.0)
    second = a_tangent(manifold, center, seed + 1, 1.0)
    second = second - manifold.inner(center, first, second) * first
    second = second / manifold.norm(center, second)
    return jax.vmap(lambda t, a: manifold.exp(center, t * (jnp.cos(a) * first + jnp.sin(a) * second)))(lengths, turns)


def kng(manifold, radius, epsilon, support_radius=None, center=None, statistic=FrechetMean()):  # noqa: B008
    ball = GeodesicBall(manifold, manifold.origin if center is None else center, radius)
    return KNGMechanism(ball, epsilon, statistic=statistic, support_radius=support_radius)


def pull_of_the_median(x, data):
    """The mean of the unit vectors towards the data, on the unit sphere."""
    cosine = np.clip(x @ data.T, -1.0, 1.0)
    coefficients = 1.0 / np.sqrt(1.0 - cosine**2) / len(data)
    return coefficients @ data - np.sum(coefficients * cosine, axis=-1)[..., None] * x


def laplace(manifold, radius, epsilon, center=None):
    return LaplaceMechanism(GeodesicBall(manifold, manifold.origin if center is None else center, radius), epsilon)


SPHERE, SMALL_SPHERE, TRIANGLES, MATRICES = Sphere(2), Sphere(2, 4.0), PlanarShapes(3), SPD(2)
RADIUS = math.pi / 8
SPHERE_DATA = data_of(SPHERE, SPHERE.origin, RADIUS, 100, 1)
SMALL_SPHERE_DATA = data_of(SMALL_SPHERE, SMALL_SPHERE.origin, RADIUS / 2, 10, 2)
TRIANGLE_DATA = data_of(TRIANGLES, TRIANGLES.origin, 0.3, 12, 3)
MATRIX_CENTER = np.array([[2.0, 0.7], [0.7, 0.5]])
MATRIX_DATA = data_of(MATRICES, MATRIX_CENTER, 1.5, 6, 4)
PENTAGONS, SPACE, LARGE_MATRICES = PlanarShapes(5), Euclidean(6), SPD(3)
LARGE_CENTER = np.array([[1.5, 0.4, -0.2], [0.4, 0.8, 0.1], [-0.2, 0.1, 1.1]])

SCALE, VOLUME, JACOBIAN = "scale off by 10 %", "volume left out", "radial Jacobian left out"
RECIPROCAL, STEEP, BOUNDARY = "reciprocal acceptance", "slope above the certificate", "support too large"

_surface = {"reference": surface_quadrature, "statistics": polar_statistics}
_matrix = {"reference": matrix_quadrature, "statistics": eigenvalue_statistics, "geometry": MatrixGeometry()}
_unit, _small = {"geometry": SphereGeometry(1.0)}, {"geometry": SphereGeometry(4.0)}
_shapes = {"geometry": ShapeGeometry()}


def brute(proposals):
    return {"reference": functools.partial(brute_force, proposals=proposals), "statistics": bulk_statistics}


CASES = {
    "KNG on the sphere": Case(
        kng(SPHERE, RADIUS, 1.0), SPHERE_DATA, planted=(SCALE, JACOBIAN, STEEP), **_surface, **_unit
    ),
    # The boundary of the support cuts through the bulk of the law.
    "KNG on the sphere, mostly noise": Case(
        kng(SPHERE, RADIUS, 0.08),
        SPHERE_DATA,
        planted=(SCALE, JACOBIAN, STEEP, BOUNDARY),
        **_surface,
        **_unit,
        telling=DRAWS,
    ),
    "Laplace on the sphere": Case(
        laplace(SPHERE, RADIUS, 0.2), SPHERE_DATA, planted=(SCALE, JACOBIAN, STEEP), **_surface, **_unit
    ),
    "Laplace on the sphere, up to the antipode": Case(
        laplace(SPHERE, RADIUS, 0.01), SPHERE_DATA, planted=(SCALE, VOLUME, JACOBIAN, STEEP), **_surface, **_unit
    ),
    "Laplace at curvature 4": Case(
        laplace(SMALL_SPHERE, RADIUS / 2, 1.0), SMALL_SPHERE_DATA, planted=(SCALE, JACOBIAN), **_surface, **_small
    ),
    "Laplace at curvature 4, up to the antipode": Case(
        laplace(SMALL_SPHERE, RADIUS / 2, 0.1), SMALL_SPHERE_DATA, planted=(SCALE, VOLUME), **_surface, **_small
    ),
    "Laplace on matrices": Case(
        laplace(MATRICES, 1.5, 1.0, MATRIX_CENTER),
        MATRIX_DATA,
        planted=(SCALE, VOLUME, JACOBIAN, RECIPROCAL),
        **_matrix,
    ),
    "Laplace on matrices, near the existence limit": Case(
        laplace(MATRICES, 1.5, 0.4, MATRIX_CENTER), MATRIX_DATA, planted=(), **_matrix, count=SLOW_DRAWS
    ),
    "Laplace on triangles": Case(
        laplace(TRIANGLES, 0.3, 0.1), TRIANGLE_DATA, planted=(SCALE, VOLUME, JACOBIAN), **_surface, **_shapes
    ),
    "KNG on triangles": Case(
        kng(TRIANGLES, 0.3, 1.0), TRIANGLE_DATA, planted=(SCALE, JACOBIAN, STEEP), **_surface, **_shapes
    ),
    "KNG on pentagons": Case(
        kng(PENTAGONS, 0.3, 1.0, 0.4),
        data_of(PENTAGONS, PENTAGONS.origin, 0.3, 12, 5),
        planted=(SCALE, VOLUME, JACOBIAN, STEEP),
        **brute(200_000),
        **_shapes,
    ),
    "KNG in space": Case(
        kng(SPACE, 1.0, 1.0, 1.5),
        data_of(SPACE, SPACE.origin, 1.0, 12, 6),
        planted=(SCALE, JACOBIAN, STEEP),
        **brute(300_000),
        geometry=EuclideanGeometry(),
    ),
    "KNG on 3 x 3 matrices": Case(
        kng(LARGE_MATRICES, 1.0, 2.0, 1.2, LARGE_CENTER),
        data_of(LARGE_MATRICES, LARGE_CENTER, 1.0, 6, 7),
        planted=(SCALE, STEEP),
        **brute(120_000),
        geometry=MatrixGeometry(),
        count=FEWER_DRAWS,
    ),
}


# Proposals of the library, for the certificate and for wrong samplers -----------------------------------


# Compiled often and run briefly.
quickly_compiled = functools.partial(
    jax.jit, compiler_options={"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
)


@functools.partial(quickly_compiled, static_argnames="num")
def propose(law, key, minimizer, points, steepness, num):
    """What the sampler of a law proposes, with the growth of its envelope times ``steepness``."""
    certified = law.growth(minimizer, points)
    growth = (lambda t: steepness * certified(t)) if callable(certified) else steepness * certified
    proposal = make_proposal(law.ball.manifold, minimizer, growth, law.scale, law.support)
    x, _, _, log_envelope = jax.vmap(proposal.draw)(jax.random.split(key, num))

    psi = jax.vmap(lambda x: law.potential(x, minimizer, points))(x)
    inside = jnp.ones(num, bool) if law.support is None else jax.vmap(law.support.contains)(x)
    return x, log_envelope, psi, inside


@quickly_compiled
def minimizer_of(law, points):
    return law.center(points)


def draws_of(mechanism, key, data, num, block=None):
    """With what the sampler says of itself."""
    return mechanism.law(len(data)).simulated(key, data, num, block)


def proposals_at_a_time(manifold):
    return 2048 if isinstance(manifold, SPD) and manifold.size > 2 else 8192


def planted_draws(case, mistake):
    """Draws from the library's proposals, accepted with one mistake (None: without a mistake)."""
    manifold = case.mechanism.ball.manifold
    generator = np.random.default_rng(11)
    scale = case.scale * (1.1 if mistake == SCALE else 1.0)
    steepness = 1.3 if mistake == STEEP else 1.0
    support = (
        dataclasses.replace(case.support, radius=1.1 * case.support.radius) if mistake == BOUNDARY else case.support
    )
    law = dataclasses.replace(case.mechanism.law(len(case.data)), scale=scale, support=support)
    num = proposals_at_a_time(manifold)
    # Without the Jacobian few proposals are accepted, and few are needed.
    wanted = 20_000 if mistake == JACOBIAN else case.telling
    found, total, cap_ratio = [], 0, None
    for key in jax.random.split(jax.random.key(100 + case.seed), 1000):
        facts = propose(law, key, case.mean, case.data, steepness, num)
        x, log_envelope, psi, inside = map(np.asarray, facts)
        log_ratio = -psi / scale - log_envelope
        if mistake in (VOLUME, JACOBIAN):
            tangents = case.geometry.log(case.mean, x)
            log_ratio = log_ratio - case.geometry.log_volume(case.mean, tangents)
        if mistake == JACOBIAN:
            log_ratio = log_ratio - (manifold.dim - 1) * np.log(_length(tangents))
        if mistake == RECIPROCAL:
            log_ratio = -log_ratio
        if mistake in (VOLUME, JACOBIAN):
            # Without this nearly all would be accepted, not a draw of the density without the term.
            cap_ratio = np.quantile(log_ratio, 0.95) if cap_ratio is None else cap_ratio
            log_ratio = log_ratio - cap_ratio
        log_ratio = np.where(inside, log_ratio, -np.inf)
        found.append(x[np.log(generator.uniform(size=len(x))) <= log_ratio])
        total += len(found[-1])
        if total >= wanted:
            return np.concatenate(found)[:wanted]
    raise AssertionError("too few draws")


# Laws --------------------------------------------------------------------------------------------------

ENVELOPES = [Sphere(2), Hyperbolic(2)]
# Their kind is tested by another case.
REPETITIONS = (
    *("KNG on 3 x 3 matrices", "KNG on triangles", "KNG in space", "Laplace at curvature 4"),
    *("Laplace on matrices, near the existence limit", "Laplace on the sphere", "Laplace on triangles"),
    *("KNG on pentagons", "Laplace at curvature 4, up to the antipode"),
)
# Slow, and the mistake is found by other cases, too.
SLOW = (("Laplace on matrices", JACOBIAN),)


def case_of(key, *more):
    marks = [pytest.mark.exhaustive] if key in REPETITIONS or (key, *more) in SLOW else []
    return pytest.param(CASES[key], *more, id="-".join([key, *map(str, more)]), marks=marks)


@pytest.mark.parametrize("case", [case_of(key) for key in CASES])
def test_draws_follow_the_exact_law(case):
    p_values = case.p_values(case.points)
    print(p_values)
    assert min(p_values.values()) > LEVEL, p_values


@pytest.mark.parametrize(
    ("case", "mistake"),
    [case_of(key, mistake) for key in CASES for mistake in CASES[key].planted],
)
def test_planted_samplers_are_caught(case, mistake):
    p_values = case.p_values(planted_draws(case, mistake))
    print(p_values)
    assert min(p_values.values()) < LEVEL, p_values


@pytest.mark.parametrize("case", [case_of(key) for key in CASES if CASES[key].planted])
def test_planted_samplers_without_a_mistake_are_not_caught(case):
    """So that what is caught above is the mistake."""
    p_values = case.p_values(planted_draws(case, None))
    print(p_values)
    assert min(p_values.values()) > LEVEL, p_values


@pytest.mark.parametrize(
    "case",
    [case_of(key) for key, case in CASES.items() if case.reference in (surface_quadrature, matrix_quadrature)],
)
def test_quadrature_is_far_more_accurate_than_the_tests_can_resolve(case):
    coarse = case.reference(case, NODES // 3)
    for key, values in case.law.values.items():
        grid = np.quantile(values, np.linspace(0.01, 0.99, 60))
        fine_law, coarse_law = (
            np.array([np.sum(law.weights[law.values[key] <= x]) for x in grid]) for law in (case.law, coarse)
        )
        # The smallest distance that is significant at the level of one test is 3 / sqrt(DRAWS) = 0.012.
        assert np.max(np.abs(fine_law - coarse_law)) < 1e-3, key


@pytest.mark.exhaustive  # it needs the data of all cases
def test_the_family_is_small_enough():
    others = 12  # single precision, vmap, independence
    assert sum(len(case.statistics(case, case.data)) + 1 for case in CASES.values()) + others <= STATISTICS


def test_planted_proposals_are_those_of_the_library():
    """Without a mistake the acceptance probability is the one of the library."""
    case = CASES["KNG on the sphere, mostly noise"]
    law = case.mechanism.law(len(case.data))
    _, log_envelope, psi, inside = propose(law, jax.random.key(0), case.mean, case.data, 1.0, 8192)
    probability = np.mean(np.where(inside, np.exp(-psi / case.scale - log_envelope), 0.0))
    assert abs(probability - float(case.draws.acceptance)) < 0.02


# Certificates -----------------------------------------------------------------------------------------


def laplace_law_on(ball):
    """Whatever its scale would be."""
    return DensityLaw(Distance(FrechetMean()), ball, 1.0, None, None)


def certificate_mechanisms(manifold):
    """Where a law above has a compiled program for the manifold, the same one."""
    for key in ("KNG on the sphere", "KNG on triangles"):
        if CASES[key].mechanism.ball.manifold == manifold:
            return CASES[key].mechanism, CASES[key.replace("KNG", "Laplace")].mechanism, len(CASES[key].data)
    radius = min(0.8 * assumption_limit(manifold), 1.0)
    reach = min(1.3 * radius, 0.98 * largest_support(GeodesicBall(manifold, manifold.origin, radius)))
    return kng(manifold, radius, 1.0, reach), laplace(manifold, radius, 1.0), 8


def certificate_regimes(manifold, ball, count):
    """(data, scale): scattered off the centre, huddled at the rim, all the same at the rim, at opposite ends."""
    center, radius = cast(manifold, ball.center), ball.radius
    axis = a_tangent(manifold, center, 1, 1.0)
    rim = manifold.exp(center, radius * axis)
    opposite = manifold.exp(center, -radius * axis)
    huddled = cap(manifold, manifold.exp(center, 0.9 * radius * axis), 0.1 * radius, count, 2)
    same = jnp.broadcast_to(rim, (count, *manifold.shape))
    ends = jnp.stack([rim if j % 2 else opposite for j in range(count)])
    scattered = cap(manifold, center, radius, count, 3)
    for data, scale in [(scattered, 0.1), (huddled, 1e-3), (huddled, 3.0), (same, 0.3), (ends, 1e-3), (ends, 3.0)]:
        yield np.asarray(data), scale * radius


def log_ratios(law, minimizer, data, scale, steepness=1.0):
    manifold, law = law.ball.manifold, dataclasses.replace(law, scale=scale)
    num = proposals_at_a_time(manifold)
    num = num if manifold in (SPHERE, TRIANGLES) else min(num, 2048)  # a program for 8192 exists on these two
    x, log_envelope, psi, inside = propose(law, jax.random.key(3), minimizer, data, steepness, num)
    # Infinite where the target is 0: beyond minimal geodesics.
    assert np.all(np.isfinite(x)) and np.all(log_envelope > -np.inf)
    return np.where(inside, -psi / scale - log_envelope, -np.inf)


@pytest.mark.parametrize(
    "manifold",
    [*ENVELOPES, *exhaustive(*(m for m in ONE_OF_EACH_KIND + MORE if m not in ENVELOPES))],
    ids=name,
)
def test_the_envelope_lies_above_the_target(manifold):
    kng_mechanism, laplace_mechanism, count = certificate_mechanisms(manifold)
    violated, least = [], 0.02 if manifold.dim < 20 else 0.002
    for data, scale in certificate_regimes(manifold, kng_mechanism.ball, count):
        kng_law = kng_mechanism.law(count)
        minimizer = minimizer_of(kng_law, data)
        ratios = log_ratios(kng_law, minimizer, data, scale)
        assert ratios.max() <= 1e-9
        assert np.mean(np.exp(ratios)) > least
        violated.append(log_ratios(kng_law, minimizer, data, scale, 1.2).max())
    assert max(violated) > 1e-3  # a steeper envelope would have been noticed
    growth = max(manifold.volume_growth, manifold.coordinate_growth)
    laplace_law = laplace_law_on(laplace_mechanism.ball)
    for scale in (1e-3, 0.1, 3.0):
        # Farther out a matrix in double precision cannot tell its own distance.
        scale = min(scale, 0.5 / growth) if growth > 0 else scale
        if manifold.injectivity_radius < manifold.diameter == math.inf:
            scale = min(scale, 0.1)  # noise that is wide in an open factor is too wide for a compact one
        ratios = log_ratios(laplace_law, minimizer, data, scale)
        assert ratios.max() <= 1e-9
        assert np.mean(np.exp(ratios)) > least


# The radial envelope and the exit distance ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("manifold", "growth", "scale", "reach"),
    [
        (Euclidean(1), 1.0, 0.3, math.inf),
        (SPD(3), 1.0, 0.5, math.inf),
        (Sphere(2), 1.0, 0.5, math.pi),
        (Sphere(5), lambda t: t - 0.1 * t**3, 2e-3, 0.8),
        (PlanarShapes(12), lambda t: t - 0.1 * t**3, 3.0, 0.6),
    ],
    ids=lambda value: "curve" if callable(value) else str(value),
)
def test_masses_of_the_radial_envelope_are_its_integrals(manifold, growth, scale, reach):
    """By the midpoint rule between knots, and by its tail beyond the last one."""
    cells = 400

    @quickly_compiled
    def measured(scale):
        envelope = radial_envelope(manifold, growth, scale, reach)
        knots = envelope.knots
        finite = knots[:-1] if math.isinf(reach) else knots
        parts = (jnp.arange(cells) + 0.5) / cells
        nodes = finite[:-1, None] + jnp.diff(finite)[:, None] * parts
        lines = envelope.heights[: len(nodes), None], envelope.slopes[: len(nodes), None]
        values = lines[0] + lines[1] * (nodes - finite[:-1, None])
        shares = jnp.linspace(0.0, 1.0, 1001)[1:-1]
        radii, _ = jax.vmap(envelope.radius_at)(shares * jnp.sum(envelope.masses))
        returned = jax.vmap(envelope.mass_below)(radii) / jnp.sum(envelope.masses)
        inner = finite[1:-1] + 0.3 * jnp.diff(finite[1:])
        again = jax.vmap(lambda t: envelope.radius_at(envelope.mass_below(t))[0])(inner)
        below = jax.vmap(envelope.mass_below)(knots)
        return envelope, nodes, values, shares, radii, returned, inner, again, below

    envelope, nodes, values, shares, radii, returned, inner, again, below = jax.tree.map(
        np.asarray, measured(jnp.asarray(scale))
    )
    top = values.max()
    widths = np.diff(nodes[:, :2])[:, 0]
    # Second order: the rule is exact to x^2/24 for a slope of x per cell.
    integrals = np.exp(values - top).sum(axis=1) * widths
    masses = envelope.masses
    total = integrals.sum()
    if math.isinf(reach):
        assert envelope.slopes[-1] < 0
        start = envelope.knots[-2]
        # The tail by the midpoint rule as well, so far out that the rest does not count.
        grid = start + (np.arange(200_000) + 0.5) * (40.0 / -envelope.slopes[-1] / 200_000)
        tail = np.exp(envelope.heights[-1] + envelope.slopes[-1] * (grid - start) - top)
        integrals = np.append(integrals, tail.sum() * (grid[1] - grid[0]))
        total = integrals.sum()
    np.testing.assert_allclose(masses / masses.sum(), integrals / total, rtol=2e-4, atol=1e-9)
    np.testing.assert_allclose(returned, shares, atol=1e-12)
    assert np.all(np.diff(radii) > 0)
    probable = np.diff(below)[1 : 1 + len(inner)] > 1e-6 * masses.sum()
    np.testing.assert_allclose(again[probable], inner[probable], rtol=1e-8)
    np.testing.assert_allclose(below[-1], masses.sum(), rtol=1e-12)
    assert below[0] == 0.0


@pytest.mark.parametrize("fraction", [0.9, 0.99, 0.9999])
def test_the_radial_envelope_is_finite_up_to_the_existence_limit(fraction):
    scale = fraction / MATRICES.volume_growth
    masses = jax.jit(lambda scale: radial_envelope(MATRICES, 1.0, scale, math.inf).masses)(scale)
    assert np.all(np.isfinite(masses))


@pytest.mark.parametrize("manifold", [Euclidean(4), Sphere(3, 4.0), SPD(2), PlanarShapes(4)], ids=name)
def test_exit_distance_is_an_upper_bound(manifold):
    """The true exit by bisection along geodesics; at constant curvature the bound is the exit itself."""
    radius = min(0.9 * assumption_limit(manifold), 1.0)
    ball = GeodesicBall(manifold, manifold.origin, radius)
    center = cast(manifold, manifold.origin)

    def one(key):
        start_key, direction_key, length_key = jax.random.split(key, 3)
        start = manifold.random_tangent(start_key, center)
        offset = radius * jax.random.uniform(length_key) ** 0.3
        start = manifold.exp(center, start / manifold.norm(center, start) * offset)
        unit = manifold.random_tangent(direction_key, start)
        unit = unit / manifold.norm(start, unit)
        angle = jnp.arccos(manifold.inner(start, unit, manifold.log(start, center)) / offset)

        def halve(_, bounds):
            middle = 0.5 * (bounds[0] + bounds[1])
            inside = ball.contains(manifold.exp(start, middle * unit))
            return jnp.where(inside, middle, bounds[0]), jnp.where(inside, bounds[1], middle)

        low, _ = jax.lax.fori_loop(0, 50, halve, (jnp.zeros(()), offset + radius))
        return low, exit_distance(ball, offset, angle)

    true, bound = map(np.asarray, quickly_compiled(jax.vmap(one))(jax.random.split(jax.random.key(0), 4000)))
    assert np.all(true <= bound)
    assert np.all(bound <= 2.0 * radius)
    if isinstance(manifold, (Euclidean, Sphere)):
        np.testing.assert_allclose(bound, true, atol=1e-6)
    else:
        assert np.mean(bound - true > 1e-3) > 0.5  # curvature below the bound: strictly larger


# Acceptance -------------------------------------------------------------------------------------------


def test_acceptance_on_the_sphere():
    assert len(CASES["KNG on the sphere"].data) == 100
    assert float(CASES["KNG on the sphere"].draws.acceptance) >= 0.4


@pytest.mark.exhaustive
def test_acceptance_on_matrices():
    draws = draws_of(
        kng(MATRICES, 1.5, 1.0), jax.random.key(0), jnp.asarray(lopsided(MATRICES, MATRICES.origin, 1.5, 50, 1)), 2000
    )
    assert bool(draws.complete)
    assert float(draws.acceptance) >= 0.3


@pytest.mark.exhaustive
@pytest.mark.parametrize(("landmarks", "epsilon", "least"), [(50, 10.0, 0.2), (50, 1.0, 0.2), (100, 1.0, 0.05)])
def test_acceptance_on_outlines_of_digits(landmarks, epsilon, least):
    """96 and 196 dimensions; the support is what makes eps = 1 hard, the curvature what makes eps = 10 hard."""
    shapes = PlanarShapes(landmarks)
    data = shapes.from_landmarks(datasets.digit_outlines(2, landmarks))
    template = np.asarray(shapes.from_landmarks(datasets.template_outline(2, landmarks)))
    draws = draws_of(kng(shapes, 0.3, epsilon, center=template), jax.random.key(0), data, 200)
    assert bool(draws.complete)
    assert float(draws.acceptance) >= least


# Behaviour ---------------------------------------------------------------------------------------------


def test_draws_beyond_the_proposal_limit_are_not_numbers():
    plane = Euclidean(2)

    @jax.jit
    def draws(height):
        return rejection_sample(
            jax.random.key(0), plane, lambda x: height - jnp.linalg.norm(x), jnp.zeros(2), 1.0, 1.0, 51,
            block=16, proposal_limit=64,
        )  # fmt: skip

    nothing = draws(-jnp.inf)
    assert not bool(nothing.complete)
    assert np.all(np.isnan(nothing.points))
    assert int(nothing.proposals) == 64
    assert float(nothing.acceptance) == 0.0
    some = draws(-2.0)
    assert not bool(some.complete)
    assert int(some.proposals) == 64
    found = np.isfinite(some.points).all(axis=1)
    assert 0 < found.sum() == round(64 * float(some.acceptance)) < 51
    assert np.all(np.diff(found.astype(int)) <= 0)  # the found ones come first
    everything = draws(0.0)
    assert bool(everything.complete)
    assert np.all(np.isfinite(everything.points))


def test_the_same_key_gives_the_same_draws_and_another_key_others():
    mechanism, data = CASES["KNG on the sphere"].mechanism, jnp.asarray(CASES["KNG on the sphere"].data)
    first, again, other = (np.asarray(mechanism.simulate(jax.random.key(seed), data, DRAWS)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert not np.any(np.all(first == other, axis=1))
    assert len(np.unique(first, axis=0)) == DRAWS


def correlation_p_value(values):
    """Two-sided, of the correlation of neighbours."""
    ranks = np.argsort(np.argsort(values))
    correlation = np.corrcoef(ranks[1:], ranks[:-1])[0, 1]
    return 2.0 * norm.sf(abs(correlation) * math.sqrt(len(values)))


@pytest.mark.parametrize("key", ["KNG on the sphere, mostly noise", "Laplace on matrices"])
def test_neighbouring_draws_are_uncorrelated(key):
    case = CASES[key]
    values = case.statistics(case, case.points)["distance to the mean"]
    assert correlation_p_value(values) > LEVEL
    # Planted: every tenth draw repeats the one before it, as a chain does on rejection.
    values[10::10] = values[9:-1:10]
    assert correlation_p_value(values) < LEVEL


@pytest.mark.parametrize(
    ("key", "seed"), [("KNG on the sphere, mostly noise", 8), *exhaustive(("KNG on the sphere", 9))]
)
def test_single_precision_draws_follow_the_law(key, seed):
    case = CASES[key]
    draws = draws_of(case.mechanism, jax.random.key(seed), jnp.asarray(case.data, jnp.float32), DRAWS)
    assert draws.points.dtype == jnp.float32
    assert bool(draws.complete)
    p_values = case.p_values(np.asarray(draws.points, float))
    print(p_values)
    assert min(p_values.values()) > LEVEL, p_values


def test_vmap_over_keys_and_data_sets_gives_every_law():
    """Data sets turned about the public centre: turned back, all draws have one law."""
    case, lanes, count = CASES["Laplace on the sphere"], 4, DRAWS // 4
    angles = np.arange(lanes) * 0.7
    cosine, sine, zero = np.cos(angles), np.sin(angles), np.zeros(lanes)
    turns = np.array([[cosine, -sine, zero], [sine, cosine, zero], [zero, zero, zero + 1.0]]).transpose(2, 0, 1)
    data = jnp.asarray(np.einsum("bij,nj->bni", turns, case.data))
    keys = jax.random.split(jax.random.key(1), lanes)
    points = np.asarray(jax.vmap(lambda key, data: case.mechanism.simulate(key, data, count))(keys, data))
    assert points.shape == (lanes, count, 3)
    turned_back = np.einsum("bji,bnj->bni", turns, points)
    # One key for all would give the same distances from the means.
    assert len(np.unique(case.potential(turned_back[:, 0]).round(9))) == lanes
    p_values = case.p_values(turned_back.reshape(-1, 3))
    print(p_values)
    assert min(p_values.values()) > LEVEL, p_values
    single = np.asarray(case.mechanism.simulate(keys[-1], data[-1], count))
    np.testing.assert_allclose(points[-1], single, atol=1e-12)


# Whole manifolds, beyond the injectivity radius ------------------------------------------------------------


@pytest.mark.parametrize(
    "manifold",
    [Product(Sphere(2), Sphere(1)), *exhaustive(Grassmann(4, 2), Rotations(), Grassmann(5, 2))],
    ids=str,
)
def test_laplace_covers_the_whole_manifold_once(manifold):
    """Against uniform points weighted by the density; a sampler that stops at the injectivity radius is caught."""
    center, scale, count = jnp.asarray(manifold.origin), 1.0, 40_000
    draws = rejection_sample(jax.random.key(0), manifold, None, center, 1.0, scale, count)
    distances = np.asarray(jax.vmap(lambda x: manifold.dist(center, x))(draws.points))
    uniform = jax.vmap(manifold.random_point)(jax.random.split(jax.random.key(1), count))
    reference = np.asarray(jax.vmap(lambda x: manifold.dist(center, x))(uniform))
    weights = normalised(-reference / scale)

    def deviations(distances):
        found = []
        for edge in np.quantile(reference, [0.2, 0.5, 0.8]):
            share, expected = np.mean(distances > edge), np.sum(weights * (reference > edge))
            variance = expected * (1 - expected) * (1 / len(distances) + np.sum(weights**2))
            found.append(abs(share - expected) / math.sqrt(variance))
        return max(found)

    assert deviations(distances) < 5.0
    if manifold.diameter > 1.01 * manifold.injectivity_radius:
        assert np.mean(distances > manifold.injectivity_radius) > 0.01
        assert deviations(distances[distances < manifold.injectivity_radius]) > 10.0


def test_kng_for_the_median_follows_its_law():
    """Against uniform points of the support, weighted: quadrature stumbles over the kinks at the data."""
    data = lopsided(SPHERE, SPHERE.origin, RADIUS, 15, 8)
    mechanism = kng(SPHERE, RADIUS, 5.0, statistic=FrechetMedian())
    draws = np.asarray(mechanism.simulate(jax.random.key(0), data, FEWER_DRAWS))
    generator = np.random.default_rng(0)
    height = 1.0 - generator.uniform(size=400_000) * (1.0 - math.cos(RADIUS))
    turn = generator.uniform(0.0, 2.0 * math.pi, 400_000)
    flat = np.sqrt(1.0 - height**2)
    reference = np.column_stack([flat * np.cos(turn), flat * np.sin(turn), height])
    pull = _length(pull_of_the_median(reference, data))

    def deviations(scale):
        weights = normalised(-pull / scale)
        found = []
        for axis in np.eye(3):
            values, drawn = reference @ axis, draws @ axis
            for edge in np.quantile(drawn, [0.1, 0.3, 0.5, 0.7, 0.9]):
                share, expected = np.mean(drawn > edge), np.sum(weights * (values > edge))
                variance = share * (1 - share) / len(drawn) + np.sum(weights**2 * ((values > edge) - expected) ** 2)
                found.append(abs(share - expected) / math.sqrt(variance))
        return max(found)

    scale = mechanism.scale(len(data))
    assert deviations(scale) < 5.0
    assert deviations(1.1 * scale) > 5.5
    assert deviations(scale / 1.1) > 5.5


class HalfKnown(Sphere):
    curvature_bounds = (-math.inf, math.inf)


class NoVolume(Sphere):
    """Minimal geodesics end at pi; this one says they may go on, and leaves the volume to the default."""

    diameter = 2.0 * math.pi
    log_det_exp = Manifold.log_det_exp


def test_the_sampler_refuses_what_it_cannot_know():
    def sample(manifold, support=None):
        center = jnp.asarray(manifold.origin)
        return rejection_sample(jax.random.key(0), manifold, None, center, 1.0, 0.1, 10, support=support)

    with pytest.raises(ValueError, match="define its curvature_bounds"):
        sample(HalfKnown(2))
    with pytest.raises(ValueError, match="define log_det_exp"):
        sample(NoVolume(2))
    with pytest.raises(ValueError, match=r"support's radius 1\.6 must be below 1\.5708"):
        sample(SPHERE, GeodesicBall(SPHERE, SPHERE.origin, 1.6))
    allowed = jax.eval_shape(lambda: sample(SPHERE, GeodesicBall(SPHERE, SPHERE.origin, 1.5)).points)
    assert allowed.shape == (10, 3)
