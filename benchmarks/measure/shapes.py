"""How far off a private mean outline is, with and without a shape for the noise (docs/your-file.md).

    python -m benchmarks.measure.shapes [--draws 200] [--digits 2 3 8]

Digits of scikit-learn as outlines of 16 landmarks, the template of a font as the public centre, radius .3. *Smooth* is
`Shape.smooth`, *groups* `Shape.from_groups` with the outlines of the nine other digits about their own templates; *in
steps* is `AdaptiveMechanism` with the same shape, where there are enough records for steps.
"""

import argparse
import functools

import jax
import numpy as np

import jaxgeodp as jgd
from jaxgeodp import datasets

LANDMARKS, RADIUS = 16, 0.3
BUDGETS = ({"epsilon": 0.5}, {"epsilon": 1.0}, {"epsilon": 2.0}, {"mu": 0.5}, {"mu": 1.0})


@functools.cache
def outlines(digit: int):
    """Template and shapes."""
    space = jgd.PlanarShapes(LANDMARKS)
    template, shapes = datasets.template_outline(digit, LANDMARKS), datasets.digit_outlines(digit, LANDMARKS)
    return np.asarray(space.from_landmarks(template)), np.asarray(space.from_landmarks(shapes))


def shapes_of(digit: int, budget: dict) -> dict[str, jgd.Shape | None]:
    """By name."""
    space, (center, records) = jgd.PlanarShapes(LANDMARKS), outlines(digit)
    others = [outlines(other) for other in range(10) if other != digit]
    groups, centers = [own for _, own in others], [own for own, _ in others]
    return {
        "ball": None,
        "smooth": jgd.Shape.smooth(space, center, len(records), radius=RADIUS, **budget),
        "groups": jgd.Shape.from_groups(space, center, groups, len(records), centers=centers, **budget),
    }


def error(digit: int, budget: dict, shape: jgd.Shape | None, draws: int, steps: bool) -> str:
    """Mean distance of a draw from the mean of the outlines."""
    center, records = outlines(digit)
    space = jgd.PlanarShapes(LANDMARKS)
    ball, mean = jgd.GeodesicBall(space, center, RADIUS), jgd.frechet_mean(space, records)
    kind = jgd.TangentLaplace if "epsilon" in budget else jgd.TangentGaussian
    mechanism = kind(ball, *budget.values(), shape)
    if steps:
        mechanism = jgd.AdaptiveMechanism(ball, **budget, shape=shape)
        if mechanism.law(len(records)).rule is None:
            return "–"
    values = mechanism.simulate(jax.random.key(0), records, draws)
    return f"{float(np.mean(jax.vmap(space.dist, (None, 0))(mean, values))):.4f}"[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--digits", type=int, nargs="+", default=[2, 3, 8])
    asked = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    heads = [f"{'ε' if 'epsilon' in own else 'μ'} = {next(iter(own.values())):g}" for own in BUDGETS]
    print("| | " + " | ".join(heads) + " |\n" + "|---" * (len(BUDGETS) + 1) + "|")
    for digit in asked.digits:
        rows = {}
        for budget in BUDGETS:
            for name, shape in shapes_of(digit, budget).items():
                for steps in (False, True):
                    found = error(digit, budget, shape, asked.draws, steps)
                    rows.setdefault(f"{name}, in steps" if steps else name, []).append(found)
        for name, row in rows.items():
            print(f"| {digit}, {name} | " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
