"""What plain means of public records tell of their members, beside releases: for docs/plain-mean.md.

    python -m benchmarks.measure.membership                     # handwritten digits, which scikit-learn ships
    python -m benchmarks.measure.membership --shapes wings.npz  # other landmarks, (m, k, 2) under the name x
    python -m benchmarks.measure.membership --spd tensors.npz   # other matrices, (m, k, k) under the name x

Of n records of a public set, who knows all of the set asks whether one is among them: the mean itself, the mean with
three digits, and a release of mu = 1 and of epsilon = 1 in a public ball that holds 95 % of the set.
"""

import argparse
import pathlib
import time

import jax
import matplotlib.pyplot as plt
import numpy as np

from jaxgeodp import SPD, GeodesicBall, PlanarShapes, Sphere, TangentGaussian, TangentLaplace, frechet_mean
from jaxgeodp.datasets import digit_covariances, digit_images, digit_outlines
from jaxgeodp.privacy import membership

PICTURE = pathlib.Path(__file__).parents[2] / "docs" / "plain-mean.png"
SIZES = (10, 20, 50)
INSIDE = 0.95


def sets(arguments) -> dict:
    """Name -> (manifold, all records)."""
    if arguments.shapes is None and arguments.spd is None:
        images = np.sqrt(digit_images(2).reshape(-1, 64))
        return {
            "outlines of a handwritten 2": (PlanarShapes(12), in_complex(digit_outlines(2, 12))),
            "covariances of its images": (SPD(5), digit_covariances(2)),
            "its images as directions": (Sphere(63), images / np.linalg.norm(images, axis=1, keepdims=True)),
        }
    found = {}
    for path in arguments.shapes or ():
        landmarks = np.load(path)["x"]
        found[path.stem] = PlanarShapes(landmarks.shape[1]), in_complex(landmarks)
    for path in arguments.spd or ():
        matrices = np.load(path)["x"]
        found[path.stem] = SPD(matrices.shape[1]), matrices
    return found


def in_complex(landmarks) -> np.ndarray:
    """Of planar landmarks (m, k, 2)."""
    return landmarks[..., 0] + 1j * landmarks[..., 1]


def public_ball(manifold, points) -> GeodesicBall:
    """About the mean of all, with most of them."""
    with jax.enable_x64(True):
        points = jax.vmap(manifold.project)(np.asarray(points))
        center = frechet_mean(manifold, points)
        distances = np.asarray(jax.vmap(lambda x: manifold.dist(center, x))(points))
        return GeodesicBall(manifold, np.asarray(center), float(np.quantile(distances, INSIDE)))


def main() -> None:
    """Print a row for each set and n; draw the first set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", type=pathlib.Path, nargs="*")
    parser.add_argument("--spd", type=pathlib.Path, nargs="*")
    parser.add_argument("--draws", type=int, default=4000)
    arguments = parser.parse_args()
    print("| records | d | n | mean | 3 digits | mu = 1 | epsilon = 1 | told best: mean | mu = 1 | seconds |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    drawn = []
    for name, (manifold, points) in sets(arguments).items():
        ball = public_ball(manifold, points)
        for n in SIZES:
            chosen = points[np.random.default_rng(0).permutation(len(points))[:n]]
            begin, rows = time.perf_counter(), []
            for mechanism in (TangentGaussian(ball, 1.0), TangentLaplace(ball, 1.0)):
                rows.append(membership(chosen, manifold, [mechanism], population=points, draws=arguments.draws))
            plain, rounded, gaussian = rows[0].tests
            areas = [test.told.area for test in (plain, rounded, gaussian, rows[1].tests[-1])]
            exposed = [test.exposed.area for test in (plain, gaussian)]
            seconds = time.perf_counter() - begin
            cells = [f"{area:.2f}" for area in (*areas, *exposed)]
            print(f"| {name} | {manifold.dim} | {n} | {' | '.join(cells)} | {seconds:.0f} |", flush=True)
            drawn.append((f"{name}, n = {n}", [plain.told, gaussian.told]))
    if arguments.shapes is None and arguments.spd is None:
        draw(drawn[: len(SIZES)])


def draw(rows) -> None:
    """Receiver operating characteristics of the plain mean and of a release."""
    figure, panels = plt.subplots(1, len(rows), figsize=(3.4 * len(rows), 3.6), sharey=True, layout="constrained")
    for axes, (title, (plain, release)) in zip(panels, rows, strict=True):
        axes.plot([0, 1], [0, 1], "--", color="0.6", linewidth=1.0, label="guessing")
        axes.plot(*plain.curve, color="C3", label=f"the plain mean: area {plain.area:.2f}")
        axes.plot(*release.curve, color="C0", label=f"a release, $\\mu = 1$: area {release.area:.2f}")
        axes.set(title=title.split(", ")[-1], xlabel="others taken for members", xlim=(0, 1), ylim=(0, 1))
        axes.set_aspect("equal")
        axes.legend(frameon=False, fontsize=8, loc="lower right")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("members found")
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    main()
