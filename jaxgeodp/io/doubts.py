"""Checks for misread records of each kind of manifold, for their custodian alone; see `findings`."""

from collections.abc import Callable, Iterator

import numpy as np

from jaxgeodp.io.angle_doubts import of_angles, of_axes, of_directions
from jaxgeodp.io.landmark_doubts import of_shapes
from jaxgeodp.io.matrix_doubts import of_correlations, of_matrices
from jaxgeodp.io.pose_doubts import of_rotations, of_subspaces
from jaxgeodp.io.seen import Seen


def _of_hyperboloids(seen: Seen) -> Iterator[str]:
    """Yield which chart the rows may be in, if most are not on the hyperboloid."""
    table = seen.table[np.isfinite(seen.table).all(axis=1)] if seen.table.ndim == 2 else np.empty((0, 2))
    if not len(table) or seen.usable.mean() > 0.5:
        return
    last = table[:, -1] ** 2 - np.sum(table[:, :-1] ** 2, axis=1)
    first = table[:, 0] ** 2 - np.sum(table[:, 1:] ** 2, axis=1)
    text = "Most rows are not on the hyperboloid x0 = sqrt(1 + x1^2 + ...): "
    if _all_alike(last):
        width = table.shape[1]
        yield f"{text}the last column is x0: say --columns {','.join(map(str, [width, *range(1, width)]))}."
    elif _all_alike(first):
        size = float(np.sqrt(np.median(first)))
        yield f"{text}they are on one of curvature {-1 / size**2:.4g}: divide all numbers by {size:.6g}."
    elif np.all(np.sum(table**2, axis=1) < 1.0):
        yield (
            f"{text}they lie in the unit ball, as points of the Poincare or the Klein ball do: say --as poincare or "
            "--as\n  klein, whichever they are; distances differ by a factor of up to 2, and the numbers do not tell."
        )
    elif np.all(table[:, -1] > 0.0):
        yield f"{text}the last column is positive: heights of the half-space? Then say --as half-space."
    else:
        yield f"{text}see --as."


def _all_alike(squares) -> bool:
    """Return whether the numbers are positive and equal up to rounding."""
    middle = float(np.median(squares))
    return middle > 0.0 and bool(np.all(np.abs(squares - middle) < 1e-3 * np.maximum(middle, 1.0)))


#: By the names of `manifolds.names`.
OF_KIND: dict[str, Callable[[Seen], Iterator[str]]] = {
    "spd": of_matrices,
    "logeuclidean": of_matrices,
    "logcholesky": of_matrices,
    "correlations": of_correlations,
    "sphere": of_directions,
    "axes": of_axes,
    "circle": of_angles,
    "torus": of_angles,
    "hyperbolic": _of_hyperboloids,
    "rotations": of_rotations,
    "rigidmotions": of_rotations,
    "grassmann": of_subspaces,
    "shapes": of_shapes,
    "shapes3d": of_shapes,
}
