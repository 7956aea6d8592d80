"""Write release records, a description and a ledger of this version: ``python tests/archive/write.py``.

They are kept for ever, one folder a version, and every later version must read them: `tests/test_archive.py`.
"""

import pathlib

import jax
import numpy as np

from jaxgeodp import (
    SPD,
    AdaptiveMechanism,
    Euclidean,
    FrechetMedian,
    GeodesicBall,
    KNGMechanism,
    Ledger,
    LocatedMechanism,
    PlanarShapes,
    Sphere,
    TangentGaussian,
    TangentLaplace,
    ZeroConcentratedDP,
    __version__,
    describe,
    release_groups,
)
from jaxgeodp.mechanisms.names import MECHANISMS, mechanism_named

SPACES = (Euclidean(2), SPD(2), Sphere(2), PlanarShapes(5))


def records(space, n):
    """Records near a public centre, and the centre."""
    rng = np.random.default_rng(n)
    if isinstance(space, PlanarShapes):
        template = rng.normal(size=(5, 2))
        return space.from_landmarks(template + 0.05 * rng.normal(size=(n, 5, 2))), space.from_landmarks(template)
    center = np.asarray(space.origin)
    steps = 0.1 * rng.normal(size=(n, *space.shape))
    return jax.vmap(lambda step: space.exp(center, space.to_tangent(center, step)))(steps), center


def main() -> None:
    """Write all of them, into a folder that does not exist yet."""
    jax.config.update("jax_enable_x64", True)
    folder = pathlib.Path(__file__).parent / __version__
    folder.mkdir()
    ledger = Ledger(folder / "ledger.db", ZeroConcentratedDP(1e6), dataset="archive")
    for name, entry in MECHANISMS.items():
        space = next(own for own in reversed(SPACES) if entry.suits(own))
        data, center = records(space, 60)
        mechanism = mechanism_named(name, GeodesicBall(space, center, 0.35), 1.0, "tight")
        mechanism.release(data, ledger).save(folder / f"{name}.json")
        print(name, space)
    plane, center = records(Euclidean(2), 90)
    ball = GeodesicBall(Euclidean(2), center, 1.0)
    gaussian, laplace = TangentGaussian(ball, mu=1.0), TangentLaplace(ball, epsilon=1.0)
    for name, release in {
        "drawn": laplace.release(plane).shrunk(center, 0.5),
        "grid": gaussian.release(plane, ledger, numerics="grid"),
        "persons": laplace.release(plane, ledger, persons=np.arange(90) // 2),
        "weights": laplace.release(plane, ledger, weights=1.0 + np.arange(90) % 3),
        "median": KNGMechanism(ball, epsilon=1.0, statistic=FrechetMedian()).release(plane, ledger),
        "steps": AdaptiveMechanism(ball, mu=1.0).release(plane, ledger),
        "located": LocatedMechanism(Euclidean(2), mu=2.0, domain=10.0).release(plane, ledger),
        **{f"group-{group}": own for group, own in release_groups(laplace, plane, np.arange(90) % 2, [0, 1]).items()},
    }.items():
        release.save(folder / f"{name}.json")
        print(name)
    describe(plane, Euclidean(2), mu=1.0, ball=ball, ledger=ledger).save(folder / "described")


if __name__ == "__main__":
    main()
