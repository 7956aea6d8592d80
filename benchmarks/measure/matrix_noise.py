"""How far off a second moment under pure epsilon is: noise of integers, of the nuclear norm, of the hull norm.

    python -m benchmarks.measure.matrix_noise

Errors of the noise alone in units of b^2/(n epsilon), means of 4000 draws; and the affine-invariant distance, after
eigenvalues below a hundredth of the mean one are raised to that, of noisy second moments with eigenvalues spaced from
.6 to 1.4 of (b/3)^2/dim, medians for n epsilon = 1000 and 10000.
"""

import jax
import numpy as np

from jaxgeodp.inference import TangentCovariance
from jaxgeodp.privacy.grid import laplace_noise
from jaxgeodp.samplers import hull_noise, nuclear_noise

DRAWS = 4000


def integers(rng, dim):
    """Laplace noise of the scale that integers have, which are so fine that their steps do not matter."""
    moment, (rows, columns) = TangentCovariance(), np.triu_indices(dim)
    change = moment.l1_sensitivity(dim, 0.0, 1.0)
    scales = laplace_noise(1, change, 1.0, 1.0).scale * moment.units(dim, 1.0)
    matrix = np.zeros((DRAWS, dim, dim))
    matrix[:, rows, columns] = rng.laplace(size=(DRAWS, len(rows))) * scales
    matrix[:, columns, rows] = matrix[:, rows, columns]
    return matrix


def affine(truth, noise):
    """Median distance of noisy matrices from a diagonal one."""
    values, vectors = np.linalg.eigh(np.diag(truth) + noise)
    values = np.maximum(values, 0.01 * truth.mean())
    root = 1.0 / np.sqrt(truth)
    between = root[:, None] * ((vectors * values[:, None]) @ np.swapaxes(vectors, 1, 2)) * root
    return np.median(np.linalg.norm(np.log(np.linalg.eigvalsh(between)), axis=1))


def main():
    """Print the table."""
    print("| dim | noise | Frobenius | operator | trace | affine, 1000 | affine, 10000 |")
    print("|---|---|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    for dim in (2, 3, 6, 10):
        with jax.enable_x64(True):
            kinds = {
                "integers": integers(rng, dim),
                "nuclear": 2.0 * np.asarray(nuclear_noise(jax.random.key(0), DRAWS, dim)),
                "hull": np.asarray(hull_noise(jax.random.key(1), DRAWS, dim)),
            }
        truth = np.linspace(0.6, 1.4, dim) / 9.0 / dim
        for name, noise in kinds.items():
            values = np.linalg.eigvalsh(noise)
            numbers = [
                np.sqrt(np.mean(np.sum(values**2, axis=1))),
                np.mean(np.max(np.abs(values), axis=1)),
                np.mean(np.abs(np.sum(values, axis=1))),
            ]
            distances = [affine(truth, noise / count) for count in (1000, 10_000)]
            print(f"| {dim} | {name} | " + " | ".join(f"{x:.3g}" for x in [*numbers, *distances]) + " |", flush=True)


if __name__ == "__main__":
    main()
