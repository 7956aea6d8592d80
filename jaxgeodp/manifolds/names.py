"""The short names of manifolds, as the command line and sweep files write them."""

from jaxgeodp.checks import InputError
from jaxgeodp.manifolds.euclidean import Euclidean
from jaxgeodp.manifolds.hyperbolic import Hyperbolic
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.manifolds.planar_shapes import PlanarShapes
from jaxgeodp.manifolds.rotations import Rotations
from jaxgeodp.manifolds.spd import SPD
from jaxgeodp.manifolds.sphere import Sphere

_WITH_SIZE = {"euclidean": Euclidean, "sphere": Sphere, "hyperbolic": Hyperbolic, "spd": SPD, "shapes": PlanarShapes}
# Frames have as many numbers as the square of the dimension.
_LARGEST_DIM = 10_000


def manifold_named(name: str, size: int | None) -> Manifold:
    """The manifold with a short name.

    Args:
        name: "euclidean", "sphere", "hyperbolic" (``size`` is the dimension), "spd" (of matrices), "shapes" (the number
            of landmarks) or "rotations" (no size).
        size: see ``name``.

    Raises:
        ValueError: unknown name, or a size that is missing or does not fit.
    """
    if name == "rotations":
        return Rotations()
    if name not in _WITH_SIZE:
        raise InputError(f"manifold must be one of {', '.join(_WITH_SIZE)}, rotations, got {name!r}.")
    if size is None:
        raise InputError(f"size is needed for {name}: its dimension, the size of matrices, or the number of landmarks.")
    manifold = _WITH_SIZE[name](size)
    if manifold.dim > _LARGEST_DIM:
        raise InputError(f"size must be smaller: {name} of size {size:,} has more than {_LARGEST_DIM:,} dimensions.")
    return manifold
