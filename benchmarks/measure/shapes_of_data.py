"""How far off a private mean is on data that others published, with and without a shape (docs/your-file.md).

    python -m benchmarks.measure.shapes_of_data --folder FOLDER [--draws 100] [--splits 1] [--only wings tensors]

Four files are read from a folder. None is part of this project; a file that is missing is named and left out:

- ``morphospace_wings.npz``: ``x`` (263, 9, 2), landmarks of fly wings, and ``labels`` (263,), the species; the data
  ``wings`` of the R package morphospace, https://github.com/millacarmona/morphospace (MIT).
- ``dipy_dti_small_64D.npz``: ``x`` (783, 3, 3), diffusion tensors of voxels of a brain in 1e-3 mm^2/s, fitted by DIPY's
  ``TensorModel`` to the file ``small_64D`` that it ships, https://pypi.org/project/dipy (BSD-3), without voxels whose
  smallest eigenvalue is at most 1e-5 mm^2/s.
- ``riemann_passiflora_miersii.npz``: ``x`` (133, 15, 2), landmarks of leaves of Passiflora miersii; of the data
  ``passiflora`` of the R package Riemann, https://cran.r-project.org/package=Riemann (MIT).
- ``ict_face_patch.npz``: ``mean`` (m, 3), ``modes`` (100, m, 3) and ``landmarks68``, places among the m vertices of the
  68 usual landmarks of a face; identity model of ICT FaceKit, https://github.com/ICT-VGL/ICT-FaceKit (MIT). Faces are
  the mean plus modes times independent standard normal numbers.

Of each a part is taken for public, in a random order of a fixed seed, and its Frechet mean for the centre. The radius
is given for wings and tensors, and for leaves that of `suggest_ball` for epsilon = 1. A further data set is made of
scikit-learn's digits: region covariances of the digit 2, about that of a font's template, and the nine other digits
about theirs as public groups.

*Smooth* is `Shape.smooth`. *Groups* is `Shape.from_groups` with the other digits, *species* with the two species of
the public wings, *one group* with all public records as one, of which nothing is known of how far means lie off. *In
steps* is `AdaptiveMechanism`, where there are enough records for steps; *centre* the public centre itself. What is
printed is the mean distance from the Frechet mean of the private records, over all splits and draws.
"""

import argparse
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

import jaxgeodp as jgd
from jaxgeodp import datasets
from jaxgeodp.mechanisms import suggest_ball

BUDGETS = [{name: strength} for name in ("epsilon", "mu") for strength in (0.5, 1.0, 2.0)]
DIGIT = 2


class Data(NamedTuple):
    """Private records, and what is public."""

    ball: jgd.GeodesicBall
    records: np.ndarray
    groups: dict[str, tuple[list[np.ndarray], list[np.ndarray] | None]]  #: by name; with what was known of each


def parted(
    space: jgd.Manifold, records: np.ndarray, public: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The places of public and of private records, and the public mean."""
    order = np.random.default_rng(seed).permutation(len(records))
    center = np.asarray(jgd.frechet_mean(space, records[order[:public]]))
    return order[:public], order[public:], center


def wings(file, seed: int) -> Data:
    """60 public ones."""
    space = jgd.PlanarShapes(9)
    records, labels = np.asarray(space.from_landmarks(file["x"])), file["labels"]
    public, private, center = parted(space, records, 60, seed)
    species = [records[public[labels[public] == own]] for own in np.unique(labels)]
    groups = {"one group": ([records[public]], None), "species": (species, None)}
    return Data(jgd.GeodesicBall(space, center, 0.1), records[private], groups)


def tensors(file, seed: int) -> Data:
    """150 public ones."""
    space, records = jgd.SPD(3), file["x"]
    public, private, center = parted(space, records, 150, seed)
    return Data(jgd.GeodesicBall(space, center, 3.0), records[private], {"one group": ([records[public]], None)})


def leaves(file, seed: int) -> Data:
    """A third of them public."""
    space = jgd.PlanarShapes(15)
    records = np.asarray(space.from_landmarks(file["x"]))
    public, private, center = parted(space, records, len(records) // 3, seed)
    radius = suggest_ball(space, records[public], len(private), epsilon=1.0).ball.radius
    return Data(jgd.GeodesicBall(space, center, radius), records[private], {"one group": ([records[public]], None)})


def faces(file, seed: int) -> Data:
    """300 faces of people of the model, 60 of them public."""
    places = np.asarray(file["landmarks68"])
    mean, modes = file["mean"][places].astype(float), file["modes"][:, places].astype(float)
    weights = np.random.default_rng(100 + seed).normal(size=(300, len(modes)))
    space = jgd.Shapes3D(len(places))
    records = np.asarray(space.from_landmarks(mean + np.tensordot(weights, modes, 1)))
    public, private, center = parted(space, records, 60, seed)
    return Data(jgd.GeodesicBall(space, center, 0.1), records[private], {"one group": ([records[public]], None)})


def matrices(_, seed: int) -> Data:
    """The other digits are public."""
    others = [other for other in range(10) if other != DIGIT]
    groups = [datasets.digit_covariances(other) for other in others]
    centers = [datasets.template_covariance(other) for other in others]
    ball = jgd.GeodesicBall(jgd.SPD(5), datasets.template_covariance(DIGIT), 1.0)
    return Data(ball, datasets.digit_covariances(DIGIT), {"groups": (groups, centers)})


SETS: dict[str, tuple[str | None, Callable]] = {
    "wings": ("morphospace_wings.npz", wings),
    "tensors": ("dipy_dti_small_64D.npz", tensors),
    "leaves": ("riemann_passiflora_miersii.npz", leaves),
    "faces": ("ict_face_patch.npz", faces),
    "matrices": (None, matrices),
}


def shapes_of(data: Data, budget: dict) -> dict[str, jgd.Shape | None]:
    """By name."""
    space, center, n = data.ball.manifold, data.ball.center, len(data.records)
    found = {"ball": None, "smooth": jgd.Shape.smooth(space, center, n, radius=data.ball.radius, **budget)}
    for name, (groups, centers) in data.groups.items():
        found[name] = jgd.Shape.from_groups(space, center, groups, n, centers=centers, **budget)
    return found


def errors(data: Data, budget: dict, draws: int) -> dict[str, np.ndarray | None]:
    """By name of the release: distances of draws from the mean; None where steps are one release."""
    space, mean = data.ball.manifold, jgd.frechet_mean(data.ball.manifold, data.records)
    kind = jgd.TangentLaplace if "epsilon" in budget else jgd.TangentGaussian
    found: dict[str, np.ndarray | None] = {}
    for name, shape in shapes_of(data, budget).items():
        steps = jgd.AdaptiveMechanism(data.ball, **budget, shape=shape)
        for own, mechanism in ((name, kind(data.ball, *budget.values(), shape)), (f"{name}, in steps", steps)):
            found[own] = None
            if mechanism is not steps or steps.law(len(data.records)).rule is not None:
                values = mechanism.simulate(jax.random.key(0), data.records, draws)
                found[own] = np.asarray(jax.vmap(space.dist, (None, 0))(mean, values))
    return found | {"centre": np.asarray(space.dist(mean, data.ball.center))[None]}


def print_rows(name: str, given: list[Data], draws: int) -> None:
    """All of one data set, whose splits are given."""
    radii = sorted({f"{data.ball.radius:.3g}" for data in given})
    print(f"\n{name}: n = {len(given[0].records)}, radius {' and '.join(radii)}\n")
    heads = [f"{'ε' if 'epsilon' in own else 'μ'} = {next(iter(own.values())):g}" for own in BUDGETS]
    print("| | " + " | ".join(heads) + " |\n" + "|---" * (len(BUDGETS) + 1) + "|")
    rows: dict[str, list[str]] = {}
    for budget in BUDGETS:
        splits = [errors(data, budget, draws) for data in given]
        for own in splits[0]:
            found = [one for split in splits if (one := split[own]) is not None]
            rows.setdefault(own, []).append(f"{np.mean(np.concatenate(found)):.4f}".removeprefix("0") if found else "–")
    for own, row in rows.items():
        print(f"| {name}, {own} | " + " | ".join(row) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=SETS, default=list(SETS))
    asked = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    for name in asked.only:
        file, make = SETS[name]
        if file is not None and not (asked.folder / file).is_file():
            print(
                f"\n{name}: {asked.folder / file} is missing; the first lines of this program say where it comes from."
            )
            continue
        loaded = None if file is None else dict(np.load(asked.folder / file))
        seeds = range(1 if file is None else asked.splits)
        print_rows(name, [make(loaded, seed) for seed in seeds], asked.draws)


if __name__ == "__main__":
    main()
