"""Room on the disk for all files of a command that charges a ledger, before the charge.

What has been charged and cannot be written is lost, so `files.all_reserved` takes all of the room first. How much that
is follows from public numbers.
"""

import json
import math
from collections.abc import Iterable

from jaxgeodp.manifolds import Manifold

#: Bytes that no picture exceeds: `pictures.picture_of` draws 750 x 630 pixels, of a face 990 x 363, of 4 bytes each.
PICTURE_ROOM = 2**21
# Pictures of the page of a description, each in base 64: the mean, and three along each of three lines.
_PICTURES, _WORDS = 10, 2**18


def record_room(numbers: int, names: Iterable[str] = ()) -> int:
    """Return bytes that no release record of so many real numbers exceeds, of groups with these names.

    A number and its part of the brackets take at most 32; the value, the centre, four centres that stages find at most,
    and whatever else has a number for each of the value's, as much each; all the rest is a few kilobytes.
    """
    return 2**16 + 256 * numbers + sum(len(json.dumps(name)) + 16 for name in names)


def numbers_of(space: Manifold) -> int:
    """Return how many real numbers a point has."""
    return math.prod(space.shape) * (2 if space.dtype_kind == "complex" else 1)


def description_room(space: Manifold) -> dict[str, int]:
    """Return bytes that the files of `jaxgeodp describe` do not exceed, by name.

    A covariance has a matrix, its frame, and the point that it is about.
    """
    point, dim = numbers_of(space), space.dim
    return {
        "mean.json": record_room(point),
        "variance.json": record_room(2 * point),
        "covariance.json": record_room(dim * dim + dim * point + 2 * point),
        "description.json": record_room(0),
        "report.html": _WORDS + _PICTURES * (4 * PICTURE_ROOM // 3 + 4),
    }
