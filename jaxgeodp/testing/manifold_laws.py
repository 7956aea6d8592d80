"""Laws that every Riemannian manifold obeys: functions ``law(manifold, dtype)`` that raise AssertionError.

Points are drawn by ``random_point`` and tangent vectors within the injectivity radius, with fixed keys: a failure can
be repeated. What is compared is said.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.bounds.comparison import h_max, h_min
from jaxgeodp.manifolds import Manifold, riemannian_gradient, riemannian_hessian
from jaxgeodp.testing.drawn_points import BATCH, TOLERANCE, close, longest, random_points, random_tangents

_LENGTHS = (1e-7, 1e-3, 0.1, 0.5, 1.0)
_FAR = 4.0


def shapes_and_dtypes(manifold, dtype):
    """Check that all operations keep the precision and give arrays of the promised shapes."""
    p, q = random_points(manifold, dtype, 2)
    v = random_tangents(manifold, p[None])[0]
    arrays = {
        "exp": manifold.exp(p, v),
        "log": manifold.log(p, manifold.exp(p, 0.1 * v)),
        "transport": manifold.transport(p, manifold.exp(p, 0.1 * v), v),
        "to_tangent": manifold.to_tangent(p, q),
        "project": manifold.project(p),
    }
    for name, value in arrays.items():
        assert value.shape == manifold.shape, f"{name} has shape {value.shape}, not {manifold.shape}"
        assert value.dtype == p.dtype, f"{name} turned {p.dtype} into {value.dtype}"
    for name, value in {"inner": manifold.inner(p, v, v), "dist": manifold.dist(p, q)}.items():
        assert value.shape == () and value.dtype == jnp.dtype(dtype), f"{name} is no real number of type {dtype}"
    assert manifold.frame(p).shape == (manifold.dim, *manifold.shape), "frame has the wrong shape"


def points_belong(manifold, dtype):
    """Random points, exponentials and projections are points; tangent vectors are tangent."""
    points = random_points(manifold, dtype, BATCH)
    tangents = random_tangents(manifold, points)
    ends = jax.vmap(manifold.exp)(points, longest(manifold) * tangents)

    @jax.jit
    def points_that_are(x, slack):
        return jax.vmap(lambda y: manifold.belongs(y, slack))(x), jax.vmap(manifold.admissible)(x)

    for name, x in (("random points", points), ("exponentials", ends)):
        slack = TOLERANCE[dtype] * (1.0 + float(np.max(np.abs(x))))
        belong, admissible = points_that_are(x, slack)
        assert np.all(belong), f"{name} are off the manifold"
        assert np.all(admissible), f"{name} are not admissible"
    close(jax.vmap(manifold.to_tangent)(points, tangents), tangents, dtype, "to_tangent keeps tangent vectors")
    close(jax.vmap(manifold.project)(points), points, dtype, "project keeps points")
    belong, admissible = points_that_are(np.full_like(points, np.nan), TOLERANCE[dtype])
    assert not np.any(belong), "NaN belongs to the manifold"
    assert not np.any(admissible), "NaN is an admissible record"


def inner_product(manifold, dtype):
    """Symmetric, bilinear and positive; the frame is an orthonormal basis of the tangent space."""
    p = random_points(manifold, dtype, 1)[0]
    u, v = random_tangents(manifold, np.stack([p, p]))
    inner = jax.jit(manifold.inner)
    close(inner(p, u, v), inner(p, v, u), dtype, "inner is symmetric")
    expected = 2.0 * np.asarray(inner(p, u, v)) - 3.0 * np.asarray(inner(p, v, v))
    close(inner(p, 2.0 * u - 3.0 * v, v), expected, dtype, "inner is linear")
    frame = manifold.frame(jnp.asarray(p))
    gram = jax.vmap(lambda e: manifold.coordinates(p, e, frame))(frame)
    close(gram, np.eye(manifold.dim), dtype, "the frame is orthonormal")
    close(jax.vmap(lambda e: manifold.to_tangent(p, e))(frame), frame, dtype, "the frame is tangent")
    again = jax.jit(lambda v: manifold.combine(manifold.coordinates(p, v, frame), frame))(u)
    close(again, u, dtype, "the frame spans the tangent space")


def exp_at_zero(manifold, dtype):
    """exp(p, 0) = p, and the derivative of exp(p, .) at 0 is the identity: finite, where formulas divide by |v|.

    So are those of retract.
    """
    p = random_points(manifold, dtype, 1)[0]
    u = random_tangents(manifold, p[None])[0]

    @jax.jit
    def at_zero(v):
        def moved(w):
            return manifold.exp(p, w), manifold.retract(p, w)

        return jax.jvp(moved, (jnp.zeros_like(v),), (v,))

    (end, retracted), (slope, its_slope) = at_zero(u)
    assert np.all(np.isfinite(end)), "exp(p, 0) is not finite"
    assert np.all(np.isfinite(slope)), (
        "the derivative of exp(p, v) at v = 0 is not finite: write it with jaxgeodp.manifolds.analytic"
    )
    close(end, p, dtype, "exp(p, 0) = p")
    close(slope, u, dtype, "the derivative of exp(p, v) at v = 0 is the identity", p)
    close(retracted, p, dtype, "retract(p, 0) = p")
    close(its_slope, u, dtype, "the derivative of retract(p, v) at v = 0 is the identity", p)


def round_trips(manifold, dtype):
    """log inverts exp; the distance is the length of the logarithm, from 1e-7 to most of the injectivity radius."""
    points = random_points(manifold, dtype, BATCH)
    lengths = longest(manifold) * np.resize(np.asarray(_LENGTHS, dtype), (BATCH,))
    tangents = random_tangents(manifold, points)
    tangents = tangents * lengths.reshape(-1, *(1,) * len(manifold.shape)).astype(tangents.dtype)
    exp, dist = jax.vmap(manifold.exp), jax.vmap(manifold.dist)
    ends = exp(points, tangents)
    there = jax.vmap(manifold.log)(points, ends)
    close(there, tangents, dtype, "log(p, exp(p, v)) = v", points, ends)
    close(dist(points, ends), lengths, dtype, "dist(p, exp(p, v)) = |v|", points, ends)
    close(dist(ends, points), lengths, dtype, "dist is symmetric", points, ends)
    close(exp(points, there), ends, dtype, "exp(p, log(p, q)) = q", points, ends)


def minimal_geodesics(manifold, dtype):
    """Geodesics are minimal up to the injectivity radius, with a finite log_det_exp, and never beyond the diameter."""
    known = manifold.injectivity_radius
    if dtype == "float32" or not known > 0:
        return
    p = random_points(manifold, dtype, 1)[0]
    directions = random_tangents(manifold, np.stack([p] * BATCH))
    whole = math.isfinite(known) and type(manifold).diameter is not Manifold.diameter
    farthest = 1.02 * manifold.diameter if whole else 0.98 * known
    farthest = min(farthest, _FAR + (known if math.isfinite(known) else 0.0))
    lengths = np.linspace(0.05, 1.0, 20) * farthest

    def distance_and_volume(u, t):
        v = (t * u).astype(u.dtype)
        return manifold.dist(p, manifold.exp(p, v)), manifold.log_det_exp(p, v)

    both = jax.jit(jax.vmap(lambda u: jax.vmap(lambda t: distance_and_volume(u, t))(lengths)))
    distances, volumes = map(np.asarray, both(directions))
    slack = 1e-6 * (1.0 + lengths)
    minimal = np.abs(distances - lengths) <= slack
    assert np.all(minimal | (lengths > 0.98 * known)), "exp is not minimal within the injectivity radius"
    if not whole:
        return
    assert not np.any(minimal & (lengths > 1.01 * manifold.diameter)), "geodesics are minimal beyond the diameter"
    assert np.all(distances <= manifold.diameter * (1.0 + 1e-6)), "distances exceed the diameter"
    # Within a hair of the cut locus either is right.
    short = distances < lengths - 1e-3
    assert np.all(np.isneginf(volumes) | ~short), "log_det_exp is finite where geodesics are not minimal"
    assert not np.any(np.isneginf(volumes) & minimal & (distances < 0.98 * manifold.diameter)), (
        "log_det_exp is minus infinity where geodesics are minimal"
    )


def geodesics(manifold, dtype):
    """exp(p, (s + t) v) continues exp(p, s v) in the transported direction; geodesic(p, v, t) is exp(p, t v)."""
    p = random_points(manifold, dtype, 1)[0]
    v = 0.5 * longest(manifold) * random_tangents(manifold, p[None])[0]
    middle = manifold.exp(p, v)
    carried = manifold.transport(p, middle, v)
    back = -np.asarray(manifold.log(middle, p))
    close(carried, back, dtype, "transport keeps the direction of the geodesic", p, middle)
    end = manifold.exp(p, 2.0 * v)
    close(manifold.exp(middle, carried), end, dtype, "geodesics continue", p, middle)
    close(manifold.geodesic(p, v, 2.0), end, dtype, "geodesic(p, v, t) = exp(p, t v)", p, middle)


def parallel_transport(manifold, dtype):
    """Transport is an isometry, undone on the way back."""
    p = random_points(manifold, dtype, 1)[0]
    along, u, v = random_tangents(manifold, np.stack([p, p, p]))
    inner = jax.jit(manifold.inner)
    q = manifold.exp(p, longest(manifold) * along)
    moved_u, moved_v = manifold.transport(p, q, u), manifold.transport(p, q, v)
    close(inner(q, moved_u, moved_v), inner(p, u, v), dtype, "transport keeps inner products", p, q)
    close(jax.jit(manifold.to_tangent)(q, moved_v), moved_v, dtype, "transport gives tangent vectors", p, q)
    close(manifold.transport(q, p, moved_v), v, dtype, "transport back undoes transport", p, q)


def triangle_inequality(manifold, dtype):
    """dist(p, r) <= dist(p, q) + dist(q, r) for points within reach of each other."""
    p = random_points(manifold, dtype, 1)[0]
    directions = random_tangents(manifold, np.stack([p, p]))
    ends = [manifold.exp(p, 0.5 * longest(manifold) * v) for v in directions]
    excess = float(manifold.dist(*ends)) - float(manifold.dist(ends[0], p)) - float(manifold.dist(p, ends[1]))
    assert excess <= TOLERANCE[dtype], f"the triangle inequality fails by {excess:.3g}"


def gradient_of_distance(manifold, dtype):
    """Check that the gradient of half the squared distance is minus the logarithm; finite at coincident points."""
    p = random_points(manifold, dtype, 1)[0]
    q = np.asarray(manifold.exp(p, 0.8 * longest(manifold) * random_tangents(manifold, p[None])[0]))

    @jax.jit
    def gradients(x, y):
        half = riemannian_gradient(manifold, lambda z: 0.5 * manifold.squared_dist(z, y))(x)
        ambient = jax.grad(lambda z: 0.5 * manifold.squared_dist(z, y))(x)
        seen = manifold.riemannian_from_ambient(x, ambient)
        return half, seen, riemannian_gradient(manifold, lambda z: manifold.dist(z, y))(x)

    minus = -np.asarray(manifold.log(p, q))
    gradient, seen, _ = gradients(p, q)
    close(gradient, minus, dtype, "grad dist^2/2 = -log", p, q)
    close(seen, minus, dtype, "riemannian_from_ambient of jax.grad of dist^2/2 = -log", p, q)
    at_point, _, at_kink = gradients(q, q)
    close(at_point, np.zeros_like(q), dtype, "grad dist^2/2 = 0 at the point itself", p, q)
    assert np.all(np.isfinite(at_kink)), "the gradient of the distance is not finite at the point itself"


def hessian_of_distance(manifold, dtype):
    """Check that the Hessian of half the squared distance is the identity at the point and obeys curvature bounds."""
    if dtype == "float32":
        return
    p = random_points(manifold, dtype, 1)[0]
    distance = 0.8 * longest(manifold)
    q = manifold.exp(p, distance * random_tangents(manifold, p[None])[0])
    hessian = jax.jit(riemannian_hessian(manifold, lambda x: 0.5 * manifold.squared_dist(x, q)))
    here = np.asarray(hessian(q))
    assert np.allclose(here, np.eye(manifold.dim), atol=1e-5), f"Hess dist^2/2 at the point itself is {here}"
    low, high = manifold.curvature_bounds
    values = np.linalg.eigvalsh(np.asarray(hessian(p)))
    # Along the geodesic it is 1, whatever the curvature.
    values = np.delete(values, np.argmin(np.abs(values - 1.0)))
    if not len(values):
        return
    least = (
        h_max(distance, high) if math.isfinite(high) and distance * math.sqrt(max(high, 0.0)) < math.pi else -math.inf
    )
    most = h_min(distance, low) if math.isfinite(low) else math.inf
    assert values[0] >= least - 1e-5, (
        f"Hess dist^2/2 has eigenvalue {values[0]:.6g} below {least:.6g}: upper curvature bound"
    )
    assert values[-1] <= most + 1e-5, (
        f"Hess dist^2/2 has eigenvalue {values[-1]:.6g} above {most:.6g}: lower curvature bound"
    )


def volume(manifold, dtype):
    """log_det_exp is the Jacobian of exp; the growth constant and the envelope lines lie above it."""
    if dtype == "float32":
        return
    p = random_points(manifold, dtype, 1)[0]
    directions = random_tangents(manifold, np.stack([p] * 6))
    for direction, fraction in zip(directions[:4], (0.0, 1e-6, 0.3, 1.0), strict=True):
        v = fraction * longest(manifold) * direction
        close(manifold.log_det_exp(p, v), Manifold.log_det_exp(manifold, p, v), dtype, "log_det_exp is the Jacobian")
    if not math.isfinite(manifold.volume_growth):
        return
    knots = jnp.linspace(0.0, longest(manifold), 5)
    value, slope = manifold.volume_envelope(knots[:-1], knots[1:])
    value, slope, knots = map(np.asarray, (value, slope, knots))
    lengths = np.linspace(knots[:-1], knots[1:], 5, axis=1)
    log_det = jax.vmap(lambda t: jax.vmap(lambda u: manifold.log_det_exp(p, (t * u).astype(u.dtype)))(directions).max())
    actual = np.asarray(jax.jit(jax.vmap(log_det))(lengths))
    excess = np.max(actual - (value[:, None] + slope[:, None] * (lengths - knots[:-1, None])))
    assert excess <= 1e-8, f"log_det_exp exceeds volume_envelope by {excess:.3g}"
    assert np.all(actual <= manifold.volume_growth * lengths + 1e-8), "log_det_exp exceeds volume_growth"


def curvature(manifold, dtype):
    """Check that a curvature_tensor of one's own is that of exp, and its sectional curvatures obey their bounds."""
    if dtype == "float32" or type(manifold).curvature_tensor is Manifold.curvature_tensor:
        return
    p = random_points(manifold, dtype, 1)[0]
    u, v, w = random_tangents(manifold, np.stack([p] * 3))
    own, other = jax.jit(
        lambda u, v, w: (manifold.curvature_tensor(p, u, v, w), Manifold.curvature_tensor(manifold, p, u, v, w))
    )(u, v, w)
    assert np.allclose(own, other, atol=1e-6), "curvature_tensor is not that of exp"

    @jax.jit
    def sectional(u, v):
        inner = manifold.inner
        area = inner(p, u, u) * inner(p, v, v) - inner(p, u, v) ** 2
        return inner(p, manifold.curvature_tensor(p, u, v, v), u), area

    low, high = manifold.curvature_bounds
    for one, another in ((u, v), (v, w), (u, w)):
        value, area = map(float, sectional(one, another))
        assert low * area - 1e-6 <= value <= high * area + 1e-6, (
            f"the curvature of a plane is {value / area:.6g}, outside {low:g} to {high:g}"
        )


def sums_of_logarithms(manifold, dtype):
    """log_moments is the weighted sum of logarithms and of squared distances."""
    p = random_points(manifold, dtype, 1)[0]
    base = np.stack([p] * BATCH)
    points = np.array(jax.vmap(manifold.exp)(base, 0.5 * longest(manifold) * random_tangents(manifold, base)))
    points[0] = p  # a coincident point
    weights = (np.linspace(0.5, 2.0, BATCH) / BATCH).astype(dtype)
    total, square = manifold.log_moments(p, points, weights)
    expected, expected_square = Manifold.log_moments(manifold, p, points, weights)
    close(total, expected, dtype, "log_moments sums the logarithms")
    close(square, expected_square, dtype, "log_moments sums the squared distances")


def batching(manifold, dtype):
    """Check that values are the same one by one and under vmap of jit."""
    points = random_points(manifold, dtype, BATCH)
    ends = jax.vmap(manifold.exp)(points, 0.3 * longest(manifold) * random_tangents(manifold, points))
    batched = jax.jit(jax.vmap(lambda p, q: (manifold.log(p, q), manifold.dist(p, q))))(points, ends)
    ends, batched = np.asarray(ends), tuple(map(np.asarray, batched))
    for j in range(3):
        close(batched[0][j], manifold.log(points[j], ends[j]), dtype, "vmap of log")
        close(batched[1][j], manifold.dist(points[j], ends[j]), dtype, "vmap of dist")


def going_home(manifold, dtype):
    """`to_home` is an isometry that carries the centre to `home`, and `from_home` is its inverse."""
    center, p = random_points(manifold, dtype, 2)
    directions = random_tangents(manifold, np.stack([p, p]))
    project = jax.jit(manifold.project)
    p, q = (manifold.exp(p, 0.3 * longest(manifold) * v) for v in directions)

    def carried(x):
        return project(manifold.to_home(center, x))

    home, back = manifold.home(center), project(manifold.from_home(center, carried(p)))
    close(manifold.dist(home, carried(center)), 0.0, dtype, "to_home carries the centre home", center)
    close(manifold.dist(back, p), 0.0, dtype, "from_home undoes to_home", center, p)
    close(manifold.dist(carried(p), carried(q)), manifold.dist(p, q), dtype, "to_home keeps distances", center, p)
    close(manifold.dist(home, carried(p)), manifold.dist(center, p), dtype, "to_home keeps distances", center, p)


LAWS: dict[str, Callable[[Manifold, str], None]] = {
    law.__name__: law
    for law in (
        shapes_and_dtypes,
        points_belong,
        inner_product,
        exp_at_zero,
        round_trips,
        minimal_geodesics,
        geodesics,
        parallel_transport,
        triangle_inequality,
        gradient_of_distance,
        hessian_of_distance,
        volume,
        curvature,
        sums_of_logarithms,
        batching,
        going_home,
    )
}
