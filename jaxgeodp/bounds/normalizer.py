"""How little one record moves the normalising constant of the K-norm gradient density (docs/mathematics.md, Theorem J).

On a ball B_R(p0) larger than that of the data, log C changes by at most (K + B)/n when one record is replaced:
K bounds a divergence inside, B the flux through the boundary. So Delta/sigma + (K + B)/n <= epsilon makes KNG private,
about half the noise of sigma = 2 Delta/epsilon. K is known on symmetric spaces (Theorem L), more sharply on spaces of
constant curvature and on planar shapes.
Public scalars only, on the host.
"""

import dataclasses
import functools
import math

import numpy as np

from jaxgeodp.bounds.comparison import h_max, h_min, log_area, rauch
from jaxgeodp.bounds.diameter import sampled_diameter
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.manifolds.manifold import Manifold

_CELLS = 4000
_NODES = 400
# Relative allowance for quadrature and rounding: far above both errors.
_MARGIN = 1e-6


@dataclasses.dataclass(frozen=True)
class NormalizerBound:
    """The constants of Theorem J for a ball of data of radius r and a support of radius R.

    Attributes:
        interior: K.
        convexity: m, the least eigenvalue of the Hessian of F on the support.
        flux: 2 r S/m, a bound of the vector field whose flux through the boundary counts; 0 if there is no boundary.
    """

    interior: float
    convexity: float
    flux: float
    manifold: Manifold
    radius: float
    support_radius: float

    def boundary(self, scale: float) -> float:
        """Return B(sigma)."""
        if self.flux == 0.0:
            return 0.0
        return self.flux * (1.0 + _MARGIN) * math.exp(min(_log_boundary_share(self, scale), 700.0))


def normalizer_bound(ball: "GeodesicBall | _PublicRadius", support_radius: float) -> NormalizerBound | None:
    """Return the constants for a support radius R > r, or infinite in Euclidean space; None if nothing is proven."""
    manifold, r = ball.manifold, ball.radius
    lowest, highest = manifold.curvature_bounds
    if math.isinf(support_radius):
        flat = lowest == highest == 0.0 and math.isinf(manifold.injectivity_radius)
        return NormalizerBound(0.0, 1.0, 0.0, manifold, r, support_radius) if flat else None
    farthest = support_radius + r
    root = math.sqrt(max(highest, 0.0))
    if not support_radius > r or farthest * root >= math.pi / 2 or farthest >= manifold.injectivity_radius:
        return None
    convexity, flux = h_max(farthest, highest), 2.0 * r * rauch(farthest, highest) / h_max(farthest, highest)
    interior = _symmetric(manifold, 2.0 * r, farthest)
    if lowest == highest != 0.0:
        unit = math.sqrt(abs(highest))
        interior = min(interior, _constant_curvature(manifold.dim, 2.0 * r * unit, farthest * unit, highest > 0))
    elif manifold.complex_space_form:
        interior = min(interior, _planar_shapes(manifold.dim, 2.0 * r, farthest))
    if not math.isfinite(interior):
        return None
    return NormalizerBound(interior * (1.0 + _MARGIN), convexity, flux, manifold, r, support_radius)


def _symmetric(manifold: Manifold, path: float, s: float) -> float:
    """Return K of Theorem L on a symmetric space, for data within s; ``path`` = 2r."""
    lowest, highest = manifold.curvature_bounds
    least, most = h_max(s, highest), h_min(s, lowest)
    change = 1.0 / 3.0
    if highest > 0:
        angle = s * math.sqrt(highest)
        # |d(x cot x)/d(x^2)| = (x/sin^2 x - cot x)/(2x), by its series near 0.
        change = 1.0 / 3.0 + 2.0 * angle**2 / 45.0
        if angle > 1e-2:
            change = (angle / math.sin(angle) ** 2 - 1.0 / math.tan(angle)) / (2.0 * angle)
    spread = path * rauch(s, highest) * manifold.curvature_trace * s / least
    return spread * (2.0 * change * (1.0 + math.sqrt(most / least)) + 1.0 / least)


@functools.lru_cache(maxsize=4096)
def _constant_curvature(dim: int, path: float, s: float, positive: bool) -> float:
    """Return K for curvature 1 or -1; ``path`` = 2r."""
    x = np.linspace(0.0, s, _CELLS + 1)[1:]
    if positive:
        bend = _bend(x, 1.0)
        slope = _sup((1.0 - bend) / np.sin(x))
        twist = _sup((1.0 - bend) / np.sin(x), np.cos(x))
        change = x[-1] / math.sin(s) ** 2 - 1.0 / math.tan(s)
        least, most, stretch = float(bend[-1]), 1.0, s / math.sin(s)
    else:
        bend = x / np.tanh(x)
        langevin = 1.0 / np.tanh(x) - 1.0 / x
        slope = _sup(langevin, x / np.sinh(np.minimum(x, 700.0)))
        twist = float(langevin[-1] * bend[-1])
        change = 1.0 / math.tanh(s) - s / math.sinh(min(s, 300.0)) ** 2  # whose square would leave the floats
        least, most, stretch = 1.0, float(bend[-1]), 1.0
    # Off-diagonal entries of the inverse Hessian.
    off = 0.5 * (1.0 / least - 1.0 / most)
    first = math.hypot((dim - 1) * change / least, 2.0 * slope * off)
    second = math.hypot((dim - 1) * twist / least, max(change, twist) * off)
    return path * (first + stretch / least * second)


@functools.lru_cache(maxsize=4096)
def _planar_shapes(dim: int, path: float, s: float) -> float:
    """Return K on complex projective space of real dimension ``dim``, curvature in [1, 4]; s < pi/4."""
    x = np.linspace(0.0, s, _CELLS + 1)[1:]
    bend, steep = _bend(x, 1.0), _bend(x, 2.0)
    slope, steep_slope = _sup((1.0 - bend) / np.sin(x)), 2.0 * _sup((1.0 - steep) / np.sin(2.0 * x))
    twist = _sup((1.0 - bend) / np.sin(x), np.cos(x))
    steep_twist = 2.0 * _sup((1.0 - steep) / np.sin(2.0 * x), np.cos(2.0 * x))
    change = s / math.sin(s) ** 2 - 1.0 / math.tan(s)
    steep_change = 4.0 * s / math.sin(2.0 * s) ** 2 - 2.0 / math.tan(2.0 * s)
    transverse, least = float(bend[-1]), float(steep[-1])
    stretch = 2.0 * s / math.sin(2.0 * s)
    off = 0.5 * (1.0 / least - 1.0)
    # Trace of the inverse Hessian off the complex line of a datum: curvature 4 is met in one direction's worth only.
    trace = min((dim - 2) / least, (dim - 1) / transverse + 1.0 / least - 2.0) if dim > 2 else 0.0
    turn = s / math.cos(s) if dim > 2 else 0.0
    first = _length(
        change * trace + steep_change / least, 2.0 * off * (slope + turn) if dim > 2 else 0.0, 2.0 * off * steep_slope
    )
    second = _length(
        twist * trace + steep_twist / least,
        off * (max(change, twist) + s) if dim > 2 else 0.0,
        off * max(steep_change, steep_twist),
    )
    return path * (first + stretch / least * second)


def _bend(x, root):
    """Return ``x root cot(x root)``."""
    return x * root / np.tan(x * root)


def _sup(increasing, decreasing=None):
    """Return an upper bound of the supremum of a product, from its factors at the right ends of cells from 0."""
    if decreasing is None:
        return float(increasing[-1])
    return float(np.max(increasing * np.concatenate([[1.0], decreasing[:-1]])))


def _length(*parts):
    return math.sqrt(sum(part**2 for part in parts))


def _log_boundary_share(bound: NormalizerBound, scale: float) -> float:
    """Return the log of an upper bound of (1/C) times the integral of the density over the boundary of the support.

    There |grad F| >= G(R - r), and C is at least the mass of exp(-L dist/sigma) within R - r of the mean.
    """
    manifold, gap = bound.manifold, bound.support_radius - bound.radius
    lowest, highest = manifold.curvature_bounds
    farthest = bound.support_radius + bound.radius
    smooth = 1.0
    if lowest < 0:
        angle = farthest * math.sqrt(-lowest)
        smooth = angle / math.tanh(angle)
    # Theorem F (1) with the largest possible variance r^2; ``smooth`` is h_min.
    growth = gap
    if highest > 0:
        growth -= (1.0 - bound.convexity) / farthest**2 * (bound.radius**2 * gap + smooth * gap**3 / 3.0)
        growth = max(growth, bound.convexity * gap)
    rim = _log_rim(manifold, bound.support_radius) - growth / scale
    degree = manifold.dim - 1
    end = min(gap, scale / smooth * (degree + 40.0 * math.sqrt(degree + 1.0) + 60.0))
    nodes, weights = _gauss_legendre()
    t = 0.5 * end * (nodes + 1.0)
    logs = log_area(manifold, t) - smooth * t / scale + np.log(0.5 * end * weights)
    top = float(np.max(logs))
    return float(rim - (top + math.log(float(np.sum(np.exp(logs - top))))))


@functools.cache
def _gauss_legendre():
    return np.polynomial.legendre.leggauss(_NODES)


def _log_rim(manifold: Manifold, radius: float) -> float:
    """Return the log of an upper bound of the area of a geodesic sphere (Bishop), over that of the unit sphere."""
    lowest, highest = manifold.curvature_bounds
    if lowest == highest or manifold.complex_space_form:
        return float(log_area(manifold, np.array([radius]))[0])
    volume = 0.0
    if lowest < 0:
        angle = radius * math.sqrt(-lowest)
        bishop = angle - math.log(2.0 * angle) + math.log(-math.expm1(-2.0 * angle))
        volume = min(manifold.volume_growth * radius, (manifold.dim - 1) * bishop)
    return volume + (manifold.dim - 1) * math.log(radius)


# The smallest scale, and the support that allows it -----------------------------------------------------------


def calibrated_scale(bound: NormalizerBound, gradient: float, n: int, epsilon: float) -> float:
    """Return the least sigma found with gradient/sigma + (K + B(sigma))/n <= epsilon; infinite if there is none.

    Args:
        gradient: the sensitivity of the gradient on the support.
    """
    budget = epsilon - bound.interior / n
    if budget <= 0:
        return math.inf
    scale = gradient / float(budget)
    if bound.flux == 0.0:
        return scale
    for _ in range(100):
        left = budget - bound.boundary(scale) / n
        if left <= 0:
            return math.inf
        following = gradient / left * (1.0 + 1e-9)
        if following <= scale:
            # What counts is that the inequality holds here, however this scale was found.
            return scale
        scale = following
    return math.inf


@functools.lru_cache(maxsize=1024)
def best_support_radius(manifold: Manifold, radius: float, limit: float, n: int, epsilon: float) -> float | None:
    """Return the support radius with the smallest scale, from a coarse search; None where no bound is known.

    Args:
        limit: the supremum of support radii.
    """
    ball = _PublicRadius(manifold, radius)
    if normalizer_bound(ball, math.inf) is not None:
        return math.inf
    highest = manifold.curvature_bounds[1]
    if highest > 0:
        limit = min(limit, 0.5 * math.pi / math.sqrt(highest) - radius)
    top = limit if math.isfinite(limit) else 6.0 * radius

    def scale(reach):
        bound = normalizer_bound(ball, reach)
        if bound is None:
            return math.inf
        return calibrated_scale(bound, _gradient_estimate(ball, n, reach), n, epsilon)

    found = top
    candidates = radius + (top - radius) * np.linspace(0.0, 1.0, 34)[1:-1]
    for _ in range(2):
        scales = [scale(reach) for reach in candidates]
        best = int(np.argmin(scales))
        if not math.isfinite(scales[best]):
            return None
        step = candidates[1] - candidates[0]
        around = candidates[best] + step * np.linspace(-1.0, 1.0, 11)
        found, candidates = candidates[best], around[(around > radius) & (around < top)]
    return float(found)


@dataclasses.dataclass(frozen=True)
class _PublicRadius:
    """Manifold and radius of a ball, which is what `normalizer_bound` needs."""

    manifold: Manifold
    radius: float


def _gradient_estimate(ball, n, reach):
    """Return an estimate of `gradient_sensitivity` in a millisecond, for the search only."""
    highest = ball.manifold.curvature_bounds[1]
    if highest <= 0:
        return 2.0 * ball.radius / n
    root = math.sqrt(highest)
    return sampled_diameter(reach * root, ball.radius * root, 128) / (n * root)
