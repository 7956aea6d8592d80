"""How a mean, logarithms, exponentials and distances are asked for in each library of `peers`.

A function takes a case and returns its `Calls`, or None where the library has no such space. All are in float64, start
at the first point or the library's default, and stop at a gradient norm of `TOLERANCE`, or after `STEP_LIMIT` steps
(morphomatics has no such settings, and stops after 10 steps). geoopt and pymanopt have no mean of these spaces: theirs
is what a user would write, gradient steps of length 1 with geoopt's logarithm and exponential, and pymanopt's
conjugate gradients with the gradient in closed form, which are faster than its steepest descent.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

TOLERANCE, STEP_LIMIT = 1e-6, 100


class Calls(NamedTuple):
    """Of a library in one space; points are what `prepare` returns."""

    prepare: Callable[[np.ndarray], Any]
    mean: Callable[[Any], Any]
    log: Callable[[Any, Any], Any]  #: at a base point, of many points
    exp: Callable[[Any, Any], Any]
    dist: Callable[[Any, Any], Any]
    means: Callable[[Any], Any] | None = None  #: of many data sets at once; None for a loop


def size_of(case: str) -> int:
    """Of SPD(size)."""
    return int(case[len("SPD(") : -1])


def real(points):
    """Planar landmarks as real pairs: most libraries are for shapes in any dimension."""
    return np.stack([points.real, points.imag], axis=-1) if np.iscomplexobj(points) else points


def jaxgeodp(case: str) -> Calls:
    import jax
    import jax.numpy as jnp

    from jaxgeodp import SPD, PlanarShapes, Sphere, frechet_mean

    jax.config.update("jax_enable_x64", True)
    space = Sphere(2) if "S^2" in case else PlanarShapes(50) if "shapes" in case else SPD(size_of(case))
    one = jax.jit(lambda points: frechet_mean(space, points))
    log, exp, dist = (jax.jit(jax.vmap(own, (None, 0))) for own in (space.log, space.exp, space.dist))
    return Calls(jnp.asarray, one, log, exp, dist, jax.jit(jax.vmap(one)))


def morphomatics(case: str) -> Calls:
    import jax
    import jax.numpy as jnp
    from morphomatics.manifold import SPD, Kendall, Sphere
    from morphomatics.stats import ExponentialBarycenter

    jax.config.update("jax_enable_x64", True)
    if "SPD" in case:
        space = SPD(size_of(case), structure="AffineInvariant")
    else:
        space = Kendall((50, 2)) if "shapes" in case else Sphere((3,))
    one = jax.jit(lambda points: ExponentialBarycenter.compute(space, points))
    metric = space.metric
    log, exp, dist = (jax.jit(jax.vmap(own, (None, 0))) for own in (metric.log, metric.exp, metric.dist))
    return Calls(lambda points: jnp.asarray(real(points)), one, log, exp, dist, jax.jit(jax.vmap(one)))


def geomstats(case: str) -> Calls:
    os.environ["GEOMSTATS_BACKEND"] = "numpy"
    from geomstats.geometry.hypersphere import Hypersphere
    from geomstats.geometry.pre_shape import PreShapeSpace
    from geomstats.geometry.spd_matrices import SPDAffineMetric, SPDMatrices
    from geomstats.learning.frechet_mean import FrechetMean

    if "SPD" in case:
        space = SPDMatrices(size_of(case), equip=False)
        space.equip_with_metric(SPDAffineMetric)
    elif "shapes" in case:
        space = PreShapeSpace(50, ambient_dim=2)
        space.equip_with_group_action("rotations")
        space = space.equip_with_quotient() or space.quotient
    else:
        space = Hypersphere(2)
    metric = space.metric

    def mean(points):
        estimator = FrechetMean(space)
        # It stops at a squared gradient norm of epsilon times the dimension.
        estimator.set(init_step_size=1.0, max_iter=STEP_LIMIT, epsilon=TOLERANCE**2 / space.dim)
        return estimator.fit(points).estimate_

    return Calls(
        real,
        mean,
        lambda base, points: metric.log(points, base_point=base),
        lambda base, vectors: metric.exp(vectors, base_point=base),
        metric.dist,
    )


def pyriemann(case: str, prepare: Callable[[np.ndarray], Any] = np.asarray) -> Calls | None:
    from pyriemann.geometry.distance import distance_riemann
    from pyriemann.geometry.mean import mean_riemann
    from pyriemann.geometry.tangentspace import exp_map_riemann, log_map_riemann

    if "SPD" not in case:
        return None
    return Calls(
        prepare,
        lambda points: mean_riemann(points, tol=TOLERANCE, maxiter=STEP_LIMIT),
        lambda base, points: log_map_riemann(points, base, C12=True),
        lambda base, vectors: exp_map_riemann(vectors, base, Cm12=True),
        lambda base, points: distance_riemann(points, base),
    )


def pyriemann_torch(case: str) -> Calls | None:
    import torch

    return pyriemann(case, torch.from_numpy)


def geoopt(case: str) -> Calls | None:
    import geoopt
    import torch

    if "shapes" in case:
        return None
    space = geoopt.SymmetricPositiveDefinite() if "SPD" in case else geoopt.Sphere()

    def mean(points):
        base = points[0]
        for _ in range(STEP_LIMIT):
            step = space.logmap(base, points).mean(0)
            base = space.expmap(base, step)
            if space.norm(base, step) < TOLERANCE:
                break
        return base

    return Calls(torch.from_numpy, mean, space.logmap, space.expmap, space.dist)


def pymanopt(case: str) -> Calls | None:
    import pymanopt
    from pymanopt.manifolds import Oblique, Sphere, SymmetricPositiveDefinite
    from pymanopt.optimizers import ConjugateGradient

    if "shapes" in case:
        return None

    def many(count):
        """As many copies of the space, and how points of it stand in an array; alone they would need a loop."""
        if "SPD" in case:
            return SymmetricPositiveDefinite(size_of(case), k=count), lambda points: points
        return Oblique(3, count), np.transpose

    def repeated(base, points):
        return np.broadcast_to(base, points.shape).copy()

    def each(name):
        def call(base, points):
            space, turned = many(len(points))
            return turned(getattr(space, name)(turned(repeated(base, points)), turned(points)))

        return call

    log, exp = each("log"), each("exp")

    def dist(base, points):
        """It has the distance in the product alone, so that of each is the length of the logarithm."""
        logs = log(base, points)
        if "SPD" in case:
            whitened = np.linalg.solve(repeated(base, points), logs)
            return np.sqrt(np.einsum("nij,nji->n", whitened, whitened))
        return np.linalg.norm(logs, axis=1)

    def mean(points):
        space = SymmetricPositiveDefinite(size_of(case)) if "SPD" in case else Sphere(3)
        product, turned = many(len(points))
        turned_points = turned(points)

        @pymanopt.function.numpy(space)
        def cost(base):
            return 0.5 * product.dist(turned(repeated(base, points)), turned_points) ** 2 / len(points)

        @pymanopt.function.numpy(space)
        def gradient(base):
            return -log(base, points).mean(axis=0)

        problem = pymanopt.Problem(space, cost, riemannian_gradient=gradient)
        optimizer = ConjugateGradient(max_iterations=STEP_LIMIT, min_gradient_norm=TOLERANCE, verbosity=0)
        # Of directions half way to the second: its logarithm of a direction at itself is no number.
        start = points[0] if "SPD" in case else points[0] + points[1]
        return optimizer.run(problem, initial_point=start / (1.0 if "SPD" in case else np.linalg.norm(start))).point

    return Calls(np.asarray, mean, log, exp, dist)


#: In the order of the tables; ours first.
LIBRARIES: dict[str, Callable[[str], Calls | None]] = {
    "jaxgeodp": jaxgeodp,
    "pyriemann": pyriemann,
    "pyriemann, torch": pyriemann_torch,
    "geomstats": geomstats,
    "morphomatics": morphomatics,
    "geoopt": geoopt,
    "pymanopt": pymanopt,
}
