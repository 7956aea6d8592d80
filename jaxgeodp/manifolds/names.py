"""Registry of manifolds: the short names used by the command line and by sweep files.

A name may carry its sizes, ``spd(3)`` or ``grassmann(5, 2)``, and factors of a product are joined by ``*``:
``sphere(2) * spd(3)``. A manifold of one's own joins by an entry in `MANIFOLDS`.
"""

import math
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import jaxgeodp.manifolds.tables as tables
from jaxgeodp.checks import InputError, many
from jaxgeodp.manifolds.angles import Circle, Torus
from jaxgeodp.manifolds.axes import Axes
from jaxgeodp.manifolds.correlations import Correlations
from jaxgeodp.manifolds.euclidean import Euclidean
from jaxgeodp.manifolds.flat_spd import LogCholesky, LogEuclidean
from jaxgeodp.manifolds.grassmann import Grassmann
from jaxgeodp.manifolds.hyperbolic import Hyperbolic
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.manifolds.motions import RigidMotions
from jaxgeodp.manifolds.planar_shapes import PlanarShapes
from jaxgeodp.manifolds.product import Product
from jaxgeodp.manifolds.rotations import Rotations
from jaxgeodp.manifolds.shapes_3d import Shapes3D
from jaxgeodp.manifolds.spd import SPD
from jaxgeodp.manifolds.sphere import Sphere


class NamedManifold(NamedTuple):
    """A named manifold: its constructor, and how a table of numbers becomes points."""

    make: Callable[..., Manifold]  #: of the sizes
    sizes: tuple[str, ...]  #: what each size is
    arrange: Callable[[np.ndarray], tuple[tuple[int, ...], np.ndarray]]  #: see `tables`
    doubtful: tuple[int, str] | None = None  #: a size that a table has by mistake more often than not, and why
    in_tables: bool = True  #: whether a table tells the sizes
    natural_origin: bool = True  #: whether the origin is a centre that nobody who names none would regret


_TWO_COLUMNS = "two columns are points of a circle, or angles, which need --degrees"
_TWO_COLUMNS_OF_AXES = "two columns are lines in the plane, or angles, which need --degrees"
_TWO_COLUMNS_OF_HYPERBOLIC = (
    "two columns are points of a hyperbola, or of a plane, which need --as poincare, klein or half-plane"
)
MANIFOLDS: dict[str, NamedManifold] = {
    "euclidean": NamedManifold(Euclidean, ("its dimension",), tables.vectors),
    "sphere": NamedManifold(Sphere, ("its dimension",), tables.directions, (1, _TWO_COLUMNS), natural_origin=False),
    "axes": NamedManifold(Axes, ("its dimension",), tables.directions, (1, _TWO_COLUMNS_OF_AXES), natural_origin=False),
    "circle": NamedManifold(Circle, (), tables.one_angle, natural_origin=False),
    "torus": NamedManifold(Torus, ("the number of angles",), tables.angles, natural_origin=False),
    "hyperbolic": NamedManifold(Hyperbolic, ("its dimension",), tables.hyperboloid, (1, _TWO_COLUMNS_OF_HYPERBOLIC)),
    "spd": NamedManifold(SPD, ("the size of matrices",), tables.symmetric_matrices, natural_origin=False),
    "logeuclidean": NamedManifold(
        LogEuclidean, ("the size of matrices",), tables.symmetric_matrices, natural_origin=False
    ),
    "logcholesky": NamedManifold(
        LogCholesky, ("the size of matrices",), tables.symmetric_matrices, natural_origin=False
    ),
    "correlations": NamedManifold(Correlations, ("the size of matrices",), tables.correlations, natural_origin=False),
    "shapes": NamedManifold(PlanarShapes, ("the number of landmarks",), tables.landmarks, natural_origin=False),
    "shapes3d": NamedManifold(Shapes3D, ("the number of landmarks",), tables.landmarks_in_space, natural_origin=False),
    "rotations": NamedManifold(Rotations, (), tables.rotations),
    "rigidmotions": NamedManifold(
        RigidMotions, ("the length that counts as a radian",), tables.motions, in_tables=False, natural_origin=False
    ),
    "grassmann": NamedManifold(
        Grassmann, ("the dimension of the space", "that of subspaces"), tables.bases, natural_origin=False
    ),
}
# Frames have as many numbers as the square of the dimension.
_LARGEST_DIM = 10_000
_NUMBER = r"\d+(?:\.\d+)?"
_FACTOR = re.compile(rf"\s*(\w+)\s*(?:\(((?:\s*(?:{_NUMBER}\s*)?,)*\s*(?:{_NUMBER}\s*)?)\))?\s*")


def manifold_named(name: str, size: int | None = None) -> Manifold:
    """Return the manifold or product with this name; sizes stand in parentheses or in ``size``.

    Raises:
        ValueError: unknown name, or a size that is missing or does not fit.
    """
    factors = [_factor(part) for part in name.split("*")]
    manifolds = [_made(*factor, size if len(factors) == 1 else None) for factor in factors]
    manifold = manifolds[0] if len(manifolds) == 1 else Product(*manifolds)
    if manifold.dim > _LARGEST_DIM:
        of_size = name if size is None else f"{name} of size {size:,}"
        raise InputError(f"size must be smaller: {of_size} has more than {_LARGEST_DIM:,} dimensions.")
    return manifold


def manifold_of(described: dict) -> Manifold:
    """Return the manifold that a release record describes.

    Raises:
        ValueError: no manifold of this library.
    """
    kinds: dict[str, Callable[..., Manifold]] = {
        entry.make.__name__: entry.make for entry in MANIFOLDS.values() if isinstance(entry.make, type)
    }
    try:
        fields = {name: value for name, value in described.items() if name != "name"}
        if described["name"] == "Product":
            return Product(*(manifold_of(part) for part in fields["manifolds"]))
        return kinds[described["name"]](**fields)
    except (KeyError, TypeError, AttributeError):
        raise InputError("the release record is on a manifold that this library does not have.") from None


def name_of(manifold: Manifold) -> str:
    """Return the name in `MANIFOLDS`, without sizes; an empty string for a product or unnamed manifold."""
    return next((name for name, entry in MANIFOLDS.items() if entry.make is type(manifold.whole)), "")


def check_name(name: str) -> None:
    """Raise ValueError unless the name, or each factor's, is in `MANIFOLDS`."""
    for part in name.split("*"):
        _factor(part)


def has_natural_origin(name: str) -> bool:
    """Return whether the origin of each named factor may serve as the default centre."""
    return all(MANIFOLDS[_factor(part)[0]].natural_origin for part in name.split("*"))


def records_in(name: str, table: np.ndarray, size: int | None = None) -> tuple[Manifold, np.ndarray]:
    """Return the named manifold and the points (n, \\*shape) in a table, which also gives omitted sizes.

    Args:
        name: of `MANIFOLDS`, with sizes or without, or a product.
        table: see `tables`.
        size: what the name leaves out, if it is known.

    Raises:
        ValueError: unknown name, a table that does not fit, or a doubtful size that nobody named.
    """
    factors = [_factor(part) for part in name.split("*")]
    if len(factors) > 1:
        manifold = manifold_named(name)
        if size is not None:
            raise InputError(f"size is for one factor; write the sizes of {name} in its name.")
        if table.shape[1:] != manifold.shape:
            raise InputError(f"records of {name} must have shape (n, {manifold.shape[0]}), got {many(table.shape)}.")
        return manifold, table
    ((kind, sizes),) = factors
    wanted = (size,) if sizes is None and size is not None else sizes
    if wanted is not None and len(wanted) == len(MANIFOLDS[kind].sizes):
        table = _unrolled(_made(kind, wanted, None), table)
    found, points = MANIFOLDS[kind].arrange(table)
    if not MANIFOLDS[kind].in_tables:
        return _made(kind, wanted, None), points
    if wanted is not None and wanted != found:
        raise InputError(
            f"records must be points of {kind}({', '.join(map(str, wanted))}), but the table has shape "
            f"{many(table.shape)}."
        )
    doubtful = MANIFOLDS[kind].doubtful
    if wanted is None and doubtful is not None and found == doubtful[:1]:
        raise InputError(f"{doubtful[1]}; if this is meant, say {kind}({found[0]}) or --size {found[0]}.")
    return MANIFOLDS[kind].make(*found), points


def _unrolled(manifold, table):
    """Reshape rows that hold all entries of a matrix into matrices."""
    unrolled = table.ndim == 2 and len(manifold.shape) == 2 and table.shape[1] == math.prod(manifold.shape)
    return table.reshape(-1, *manifold.shape) if unrolled else table


def points_on(manifold: Manifold, table: np.ndarray) -> np.ndarray:
    """Return the rows of a table as points (n, \\*shape) of a known manifold.

    Raises:
        ValueError: the table does not fit.
    """
    table = _unrolled(manifold, table)
    if table.shape[1:] == manifold.shape and (table.dtype.kind == "c") == (manifold.dtype_kind == "complex"):
        return table
    for entry in MANIFOLDS.values():
        if type(manifold.whole) is entry.make:
            sizes, points = entry.arrange(table)
            if not entry.in_tables or entry.make(*sizes).shape == manifold.shape:
                return points
    raise InputError(f"must hold points of {manifold}, but has shape {many(table.shape)}.")


def _factor(text):
    """Parse a name in `MANIFOLDS` and its sizes; None for omitted sizes."""
    match = _FACTOR.fullmatch(text)
    if match is None or match[1] not in MANIFOLDS:
        raise InputError(
            f"manifold must be one of {', '.join(MANIFOLDS)}, or a product such as 'sphere(2) * spd(3)', got {text!r}."
        )
    if match[2] is None:
        return match[1], None
    cells = [cell.strip() for cell in match[2].split(",") if cell.strip()]
    return match[1], tuple(float(cell) if "." in cell else int(cell) if len(cell) < 10 else 10**9 for cell in cells)


def _made(kind, sizes, size):
    entry = MANIFOLDS[kind]
    sizes = () if not entry.sizes else sizes if sizes is not None else None if size is None else (size,)
    if sizes is None or len(sizes) != len(entry.sizes):
        raise InputError(f"size is needed for {kind}: {' and '.join(entry.sizes)}; write {kind}(...).")
    return entry.make(*sizes)
