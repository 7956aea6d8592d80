"""Frechet means: jaxgeodp against plain NumPy.

    python -m benchmarks.compare.means [--quick]

NumPy takes unit gradient steps from the first point, jaxgeodp the steps that it has found best (Newton's where it
knows the Hessian), both in float64 and until the gradient norm is at rounding level, about 1e-15; the results
are checked to agree to 1e-9 and to have gradients below 1e-12. Two NumPy baselines:

* *textbook*: one log map per point as an array operation, then their average; batched ``np.linalg.eigh``
  for matrices. What one writes without thinking about speed.
* *products*: what a careful author gets out of NumPy by hand, the formulas of the library itself: the
  average of the logs as two matrix products, closed forms for 2 x 2 matrices.

The first table is one data set of 1000 points. The second is many data sets of 100 points: ``jax.vmap``
against a Python loop over the data sets and against NumPy with a batch axis written by hand. The third is
what makes shapes of landmarks.
"""

import argparse
import dataclasses
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.tools.timing import (
    measure,
    milliseconds,
    print_machine,
    print_table,
    ratio,
    restart_with_fair_environment,
)
from jaxgeodp import SPD, Manifold, PlanarShapes, Sphere, frechet_mean

PRECISION = np.finfo(np.float64).eps
STEP_LIMIT = 2000


# NumPy: one step of the descent, (base, points) -> (next base, gradient norm, mean squared distance).
# Any leading axes are batch axes: base (..., *shape), points (..., n, *shape).


def sphere_textbook(base, points):
    cosine = np.clip((points @ base[..., None])[..., 0], -1.0, 1.0)
    angle = np.arccos(cosine)
    logs = angle_over_sine(angle, cosine)[..., None] * (points - cosine[..., None] * base[..., None, :])
    return *along_great_circle(base, logs.mean(axis=-2)), (angle**2).mean(axis=-1)


def sphere_products(base, points):
    cosine = np.clip((points @ base[..., None])[..., 0], -1.0, 1.0)
    angle = np.arccos(cosine)
    total = (angle_over_sine(angle, cosine)[..., None, :] @ points)[..., 0, :] / points.shape[-2]
    tangent = total - np.sum(base * total, axis=-1, keepdims=True) * base
    return *along_great_circle(base, tangent), (angle**2).mean(axis=-1)


def shapes_textbook(base, points):
    overlap = (points @ base.conj()[..., None])[..., 0]
    modulus = np.abs(overlap)
    aligned = points * (overlap.conj() / modulus)[..., None]
    cosine = np.minimum(modulus, 1.0)
    angle = np.arccos(cosine)
    logs = angle_over_sine(angle, cosine)[..., None] * (aligned - cosine[..., None] * base[..., None, :])
    return *along_great_circle(base, logs.mean(axis=-2)), (angle**2).mean(axis=-1)


def shapes_products(base, points):
    overlap = (points @ base.conj()[..., None])[..., 0]
    modulus = np.abs(overlap)
    cosine = np.minimum(modulus, 1.0)
    angle = np.arccos(cosine)
    coefficients = angle_over_sine(angle, cosine) * overlap.conj() / modulus
    total = (coefficients[..., None, :] @ points)[..., 0, :] / points.shape[-2]
    tangent = total - np.sum(base.conj() * total, axis=-1, keepdims=True) * base
    return *along_great_circle(base, tangent), (angle**2).mean(axis=-1)


def matrices_textbook(base, points):
    root = np.linalg.cholesky(base)
    inverse = np.linalg.inv(root)[..., None, :, :]
    values, vectors = np.linalg.eigh(inverse @ points @ transpose(inverse))
    logarithms = np.log(values)
    logs = (vectors * logarithms[..., None, :]) @ transpose(vectors)
    return *along_matrix_geodesic(root, logs.mean(axis=-3)), (logarithms**2).sum(axis=-1).mean(axis=-1)


def matrices_products(base, points):
    count, size = points.shape[-3], points.shape[-1]
    root = np.linalg.cholesky(base)
    inverse = np.linalg.inv(root)
    flat = points.reshape(*points.shape[:-3], count * size, size) @ transpose(inverse)
    values, vectors = np.linalg.eigh(inverse[..., None, :, :] @ flat.reshape(points.shape))
    logarithms = np.log(values)
    # All eigenvectors side by side: one product instead of one per point.
    columns = np.moveaxis(vectors, -3, -2).reshape(*points.shape[:-3], size, count * size)
    weighted = columns * logarithms.reshape(*points.shape[:-3], 1, count * size)
    tangent = weighted @ transpose(columns) / count
    return *along_matrix_geodesic(root, tangent), (logarithms**2).sum(axis=-1).mean(axis=-1)


def small_matrices_products(base, points):
    """Size 2: log_p(q) = s q + (log(det q/det p)/2 - s m) p with m = tr(p^-1 q)/2, s = artanh(gap/m)/gap."""
    count = points.shape[-3]
    root = np.linalg.cholesky(base)
    inverse = np.linalg.inv(base)
    flat = points.reshape(*points.shape[:-2], 4)
    middle = 0.5 * (flat @ inverse.reshape(*base.shape[:-2], 4, 1))[..., 0]
    determinant = flat[..., 0] * flat[..., 3] - flat[..., 1] ** 2
    determinant = determinant * np.linalg.det(inverse)[..., None]
    gap = np.sqrt(np.maximum(middle**2 - determinant, 0.0))
    share = gap / middle
    wide = share > 1e-4
    slope = np.where(wide, np.arctanh(share) / np.where(wide, gap, 1.0), (1.0 + share**2 / 3.0) / middle)
    half_log = 0.5 * np.log(determinant)
    along_points = (slope[..., None, :] @ flat)[..., 0, :].reshape(base.shape) / count
    along_base = (half_log - slope * middle).mean(axis=-1)[..., None, None]
    inverse_root = np.linalg.inv(root)
    tangent = inverse_root @ (along_points + along_base * base) @ transpose(inverse_root)
    return *along_matrix_geodesic(root, tangent), 2.0 * (half_log**2 + (slope * gap) ** 2).mean(axis=-1)


def angle_over_sine(angle, cosine):
    sine = np.sqrt(1.0 - cosine**2)
    away = sine > 1e-12
    return np.where(away, angle / np.where(away, sine, 1.0), 1.0)


def along_great_circle(base, tangent):
    """The end of a geodesic of a sphere, real or complex, and its length."""
    length = np.sqrt(np.sum(np.abs(tangent) ** 2, axis=-1, keepdims=True))
    end = np.cos(length) * base + np.sinc(length / np.pi) * tangent
    return end / np.sqrt(np.sum(np.abs(end) ** 2, axis=-1, keepdims=True)), length[..., 0]


def along_matrix_geodesic(root, tangent):
    """``L Exp(v) L'`` and the length of v, a tangent in the coordinates whitened by L."""
    values, vectors = np.linalg.eigh(tangent)
    half = root @ (vectors * np.exp(0.5 * values)[..., None, :])
    return half @ transpose(half), np.sqrt(np.sum(tangent**2, axis=(-1, -2)))


def transpose(matrix):
    return np.swapaxes(matrix, -1, -2)


def descend(step, points, rank):
    """Unit steps until the gradient norm of every data set is at rounding level: (means, steps)."""
    base = np.ascontiguousarray(points[(..., 0, *(slice(None),) * rank)])
    previous = np.inf
    steps, finished = 0, False
    while not np.all(finished) and steps < STEP_LIMIT:
        following, norm, square = step(base, points)
        scale = np.sqrt(square) + np.max(np.abs(base), axis=tuple(range(-rank, 0)))
        stalled = (norm >= previous) & (norm < 1e4 * PRECISION * scale)
        base, finished = following, finished | (norm <= 2.0 * PRECISION * scale) | stalled
        previous, steps = norm, steps + 1
    return base, steps


@dataclasses.dataclass(frozen=True)
class Case:
    """A manifold with the radius of its data and its NumPy baselines."""

    title: str
    manifold: Manifold
    radius: float
    textbook: Callable
    products: Callable

    @property
    def rank(self):
        return len(self.manifold.shape)


CASES = [
    Case("sphere S^2", Sphere(2), 0.4, sphere_textbook, sphere_products),
    Case("SPD(2)", SPD(2), 1.0, matrices_textbook, small_matrices_products),
    Case("SPD(10)", SPD(10), 1.0, matrices_textbook, matrices_products),
    Case("planar shapes, k = 50", PlanarShapes(50), 0.3, shapes_textbook, shapes_products),
]


def random_data(case, sets, count):
    """(sets, count, *shape): for each set, points about a random point near the origin of the manifold."""
    generator, manifold = np.random.default_rng(0), case.manifold
    spread = case.radius / math.sqrt(manifold.dim)

    def normal(*leading):
        noise = generator.normal(size=(*leading, *manifold.shape))
        if manifold.dtype_kind == "complex":
            noise = noise + 1j * generator.normal(size=noise.shape)
        return 0.5 * spread * noise

    noise = 0.5 * normal(sets, 1) + normal(sets, count)
    if isinstance(manifold, SPD):
        values, vectors = np.linalg.eigh(0.5 * (noise + transpose(noise)))
        return (vectors * np.exp(2.0 * values)[..., None, :]) @ transpose(vectors)
    points = manifold.origin + noise
    if isinstance(manifold, PlanarShapes):
        points = points - points.mean(axis=-1, keepdims=True)
    return points / np.sqrt(np.sum(np.abs(points) ** 2, axis=-1, keepdims=True))


def agreement(case, means, other, points):
    """The largest difference of two results; an error if they differ or are not stationary."""
    means, other = np.asarray(means), np.asarray(other)
    turned = other
    if case.manifold.dtype_kind == "complex":
        overlap = np.sum(means * other.conj(), axis=-1, keepdims=True)
        turned = overlap / np.abs(overlap) * other
    difference = np.max(np.abs(means - turned))
    gradient = max(np.max(case.textbook(result, points)[1]) for result in (means, other))
    if not (difference <= 1e-9 and gradient <= 1e-12):
        raise RuntimeError(f"{case.title}: results differ by {difference:.1e}, gradient norm {gradient:.1e}.")
    return f"{difference:.0e}"


def one_data_set(count, repeats):
    rows = []
    for case in CASES:
        points = random_data(case, 1, count)[0]
        data = jnp.asarray(points)
        program = jax.jit(lambda points, manifold=case.manifold: frechet_mean(manifold, points))
        measured = measure(
            {
                "jaxgeodp": lambda program=program, data=data: program(data),
                "textbook": lambda case=case, points=points: descend(case.textbook, points, case.rank)[0],
                "products": lambda case=case, points=points: descend(case.products, points, case.rank)[0],
            },
            repeats,
        )
        textbook, steps = descend(case.textbook, points, case.rank)
        products = descend(case.products, points, case.rank)[0]
        agreement(case, textbook[None], products[None], points[None])
        rows.append(
            [
                case.title,
                milliseconds(measured["jaxgeodp"].median),
                milliseconds(measured["textbook"].median),
                ratio(measured["textbook"], measured["jaxgeodp"]),
                milliseconds(measured["products"].median),
                ratio(measured["products"], measured["jaxgeodp"]),
                f"{measured['jaxgeodp'].first:.2f} s",
                str(steps),
                agreement(case, program(data)[None], textbook[None], points[None]),
            ]
        )
    header = ["one mean", "jaxgeodp", "NumPy textbook", "ratio", "NumPy products", "ratio", "first call"]
    print_table(f"Mean of {count} points", [*header, "NumPy steps", "difference"], rows)


def many_data_sets(cases, sets, count, repeats):
    rows = []
    for case in cases:
        points = random_data(case, sets, count)
        data = jnp.asarray(points)
        program = jax.jit(jax.vmap(lambda points, manifold=case.manifold: frechet_mean(manifold, points)))

        def loop(case=case, points=points):
            return np.stack([descend(case.textbook, one, case.rank)[0] for one in points])

        measured = measure(
            {
                "jaxgeodp": lambda program=program, data=data: program(data),
                "loop": loop,
                "batch": lambda case=case, points=points: descend(case.products, points, case.rank)[0],
            },
            repeats,
        )
        rows.append(
            [
                case.title,
                milliseconds(measured["jaxgeodp"].median),
                milliseconds(measured["loop"].median),
                ratio(measured["loop"], measured["jaxgeodp"]),
                milliseconds(measured["batch"].median),
                ratio(measured["batch"], measured["jaxgeodp"]),
                f"{measured['jaxgeodp'].first:.2f} s",
                agreement(case, program(data), loop(), points),
            ]
        )
    header = ["all means", "jaxgeodp", "NumPy loop, textbook", "ratio", "NumPy batch, products", "ratio"]
    print_table(f"Means of {sets} data sets of {count} points", [*header, "first call", "difference"], rows)


def shapes_of_landmarks(count, repeats):
    """Configurations of 50 landmarks, centred and scaled: real numbers in, complex ones out."""
    manifold, xy = PlanarShapes(50), np.random.default_rng(0).normal(size=(count, 50, 2))
    data = jnp.asarray(xy)

    def numpy():
        points = xy[..., 0] + 1j * xy[..., 1]
        points -= points.mean(axis=-1, keepdims=True)
        return points / np.linalg.norm(points, axis=-1, keepdims=True)

    measured = measure({"jaxgeodp": lambda: manifold.from_landmarks(data), "NumPy": numpy}, repeats)
    times = [milliseconds(measured[name].median) for name in ("jaxgeodp", "NumPy")]
    difference = f"{np.max(np.abs(manifold.from_landmarks(data) - numpy())):.0e}"
    row = [f"{count} shapes, k = 50", *times, ratio(measured["NumPy"], measured["jaxgeodp"]), difference]
    print_table("Shapes of landmarks", ["from_landmarks", "jaxgeodp", "NumPy", "ratio", "difference"], [row])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    quick = parser.parse_args().quick
    jax.config.update("jax_enable_x64", True)
    print_machine()
    one_data_set(*((100, 2) if quick else (1000, 21)))
    many_data_sets(*((CASES[:1], 4, 20, 2) if quick else (CASES, 500, 100, 7)))
    shapes_of_landmarks(*((100, 2) if quick else (1000, 21)))


if __name__ == "__main__":
    restart_with_fair_environment()
    main()
