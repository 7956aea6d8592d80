"""Public centres and balls in files."""

import contextlib
import dataclasses
import json
import pathlib
import re

import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.domains.geodesic_ball import GeodesicBall
from jaxgeodp.domains.shape import Shape
from jaxgeodp.io.csv_files import TABLES
from jaxgeodp.io.layout import Layout
from jaxgeodp.io.tables import Numbers, arranged, kind_of, read_numbers
from jaxgeodp.io.text_files import suffix_of
from jaxgeodp.manifolds import Manifold
from jaxgeodp.manifolds.described import describe
from jaxgeodp.manifolds.names import manifold_of, points_on
from jaxgeodp.nested_lists import from_lists, to_lists

_LONGEST = 2**26


def read_center(center: str, manifold: Manifold, layout: Layout) -> np.ndarray:
    """Return the public centre: the manifold's origin, or one point from a file in the same formats."""
    if center == "origin":
        return manifold.origin
    if re.fullmatch(r"[-+\d.eE,;\s()\[\]]+", center) and not pathlib.Path(center).exists():
        raise InputError(
            f"--center {center}: must be origin or a file with one point; write these numbers as the only row of a "
            ".csv file, and name that."
        )
    try:
        numbers, layout = _public_numbers(pathlib.Path(center), layout)
    except InputError:  # without the column of persons, which a centre need not have
        layout = dataclasses.replace(layout, person=None, group=None)
        numbers, layout = _public_numbers(pathlib.Path(center), layout)
    point = _one_point(manifold, numbers, layout)
    if point is None and layout.delimiter is not None:  # of the records; a centre may have the usual one
        layout = dataclasses.replace(layout, delimiter=None)
        point = _one_point(manifold, *_public_numbers(pathlib.Path(center), layout))
    if point is None:
        raise InputError(f"--center {center}: must hold one point of {manifold}, but has shape {numbers.table.shape}.")
    projected = np.asarray(manifold.project(point))
    if not np.all(np.isfinite(projected)):
        raise InputError(f"--center {center}: is not a point of {manifold}.")
    return projected


def _public_numbers(path: pathlib.Path, layout: Layout) -> tuple[Numbers, Layout]:
    """Read the numbers of a public file, in which names may be omitted even with ``--header``."""
    if layout.header and path.is_file() and suffix_of(path) in TABLES:
        bare = dataclasses.replace(layout, header=False)
        numbers = read_numbers(path, bare)
        if len(numbers.table) and not np.isnan(numbers.table[0]).all():
            return numbers, bare
    return read_numbers(path, layout), layout


def manifold_in(path: pathlib.Path | None) -> Manifold:
    """Return the manifold of the ball in a file, for calls that do not name one.

    Raises:
        ValueError: there is no such file, or it holds no ball of a manifold of this library.
    """
    if path is None:
        raise InputError("--manifold is needed, or --ball with a file of 'jaxgeodp ball', which states the manifold.")
    found = _document(path)
    try:
        return manifold_of(found["manifold"])
    except Exception:
        raise InputError(f"--ball {path}: is not a file of 'jaxgeodp ball'.") from None


def read_ball(path: pathlib.Path, manifold: Manifold) -> GeodesicBall:
    """Read the ball in a file of ``jaxgeodp ball``.

    Raises:
        ValueError: there is no such file, it holds no ball, or one of another manifold.
    """
    found = _document(path)
    try:
        name, radius = found["manifold"], float(found["radius"])
        center = from_lists(found["center"], manifold.dtype_kind)  # "real" or "complex"
    except Exception:
        raise InputError(f"--ball {path}: is not a file of 'jaxgeodp ball'.") from None
    if name != json.loads(json.dumps(describe(manifold.whole))):
        raise InputError(f"--ball {path}: is a ball on another manifold than {manifold}.")
    if np.shape(center) != manifold.shape:
        raise InputError(f"--ball {path}: its centre has shape {np.shape(center)}, not that of points of {manifold}.")
    return GeodesicBall(manifold, center, radius)


def read_shape(path: pathlib.Path, manifold: Manifold) -> Shape | None:
    """Read the shape in a file of ``jaxgeodp ball --shape``; None if the file has none.

    Raises:
        ValueError: see `read_ball`; or what stands for a shape is none.
    """
    found = _document(path).get("shape")
    if found is None:
        return None
    try:
        center = read_ball(path, manifold).center
        vectors = from_lists(found["vectors"], manifold.dtype_kind)
        more = {key: found[key] for key in ("source", "expected") if found.get(key) is not None}
        return Shape(center, vectors, float(found["clip"]), np.asarray(found["gains"], float), **more)
    except InputError as refused:
        raise InputError(f"--ball {path}: {refused}") from None
    except Exception:
        raise InputError(
            f"--ball {path}: its shape is not one made by 'jaxgeodp ball --shape'; create the file anew."
        ) from None


def shape_document(shape: Shape) -> dict:
    """Return a shape as the document that `read_shape` reads."""
    return {
        "vectors": to_lists(shape.vectors),
        "clip": shape.clip,
        "gains": np.broadcast_to(shape.gains, len(shape.vectors)).tolist(),
        "source": shape.source,
        "expected": shape.expected,
    }


def _document(path) -> dict:
    if not path.is_file():
        raise InputError(f"--ball {path}: there is no such file; 'jaxgeodp ball' makes one from public records.")
    try:
        with open(path, encoding="utf-8") as stream:
            found = json.loads(stream.read(_LONGEST))
    except Exception:
        found = None
    if not isinstance(found, dict):
        raise InputError(f"--ball {path}: is not a file of 'jaxgeodp ball'.")
    return found


def _one_point(manifold, numbers, layout):
    """Return a file's single point: laid out as a record, as a record's columns alone, or unarranged."""
    bare = dataclasses.replace(layout, columns=None, person=None, group=None)
    names = numbers.names
    for own, known in ((layout, names), (bare, None), (bare.having(chart=None), None)):
        with contextlib.suppress(InputError):
            table = arranged(dataclasses.replace(numbers, names=known), own, kind_of(manifold))
            if own.columns is not None and known is None and table.shape == numbers.table.shape:
                continue  # only the columns of a record, in their order
            for candidate in (table[None], table):
                if candidate.ndim >= 2 and candidate.shape[0] == 1:
                    with contextlib.suppress(InputError):
                        return points_on(manifold, candidate)[0]
    return None
