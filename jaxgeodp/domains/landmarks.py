"""Landmarks made ready by a public template: ordinary Procrustes superimposition, and landmarks that are missing.

A *configuration* is an array (k, m) of k landmarks in the plane or in space. A *similarity* is a rotation without
reflection, a translation and a scaling; superimposition finds those that bring one configuration nearest to another
(Kabsch 1976; Dryden & Mardia 2016, chapter 7). Each record is treated on its own, in the light of the template alone,
so that neighbouring data sets stay neighbours (docs/mathematics.md, section 14).
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxgeodp.blocks import blocks_of, map_in_blocks, padded, rows_at_once
from jaxgeodp.checks import InputError
from jaxgeodp.domains.lists import records_in_lists
from jaxgeodp.domains.records import host_array, is_numeric, kind_of_data

# A rotation is unique where the second largest singular value and the signed smallest one, of configurations of
# centroid size 1, do not cancel up to this; a template is degenerate below it, too.
_LEAST = 1e-9


def landmarks_from_r(array: ArrayLike) -> np.ndarray:
    """Return configurations (k, m, n), as packages of R hold them (shapes, geomorph, Morpho), as (n, k, m).

    ``rdata`` (`rdata.read_rda`) gives such arrays, as NumPy or xarray; a list of specimens is stacked as it is.

    Args:
        array: (k, m, n): k landmarks in m = 2 or 3 dimensions of n specimens; or a list of n arrays (k, m).

    Raises:
        ValueError: another shape.

    Example:
        >>> import numpy as np
        >>> landmarks_from_r(np.zeros((8, 2, 30))).shape
        (30, 8, 2)
    """
    try:
        found = np.asarray(records_in_lists(array, lambda own: own if own.ndim == 3 else None))
    except ValueError:
        found = np.empty(0)
    shape: tuple[int, ...] = found.shape
    if isinstance(array, list | tuple) and len(shape) == 3 and shape[2] in (2, 3):
        return found
    if len(shape) != 3 or shape[1] not in (2, 3):
        given = ", ".join([*map(str, shape[:-1]), "n"])
        raise InputError(f"landmarks_from_r: array must have shape (k, 2, n) or (k, 3, n), got ({given}).")
    return np.moveaxis(found, 2, 0)


def align_landmarks(records: ArrayLike, template: ArrayLike, scale: bool = True) -> np.ndarray:
    """Return every record superimposed on the template by translation, rotation and, with ``scale``, scaling.

    Centroids come to lie on each other, and the rotation (never a reflection) is that of the least sum of squared
    distances to the template. As coordinates of `Euclidean`, ``aligned.reshape(n, k * m)``, records can then be
    summarised in the ball around ``template.reshape(k * m)``. In double precision, whatever JAX's default is.

    Args:
        records: (n, k, m), landmarks in the plane (m = 2) or in space (m = 3); private.
        template: (k, m), k >= 3; public.
        scale: bring every record to the template's centroid size, the root of the sum of squared distances from the
            centroid; without, records keep their own.

    Returns:
        (n, k, m). A record is NaN, which a release takes for the centre, if a number of it is not finite or if several
        rotations bring it equally near: if its landmarks coincide, or lie on a line in space.

    Raises:
        ValueError: another shape or type, or a template that is not finite or degenerate.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp.domains import align_landmarks
        >>> template = np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 3.0]])
        >>> turned = 2.0 * template @ np.array([[0.0, 1.0], [-1.0, 0.0]]) + 7.0
        >>> bool(np.allclose(align_landmarks([turned], template), template))
        True
    """
    template, records = _configurations("align_landmarks", template, records)
    with jax.enable_x64(True):
        return _in_blocks(lambda block: all_aligned(block, template, bool(scale)), records)


def impute_landmarks(records: ArrayLike, template: ArrayLike) -> np.ndarray:
    """Return every record with its missing landmarks taken from the template.

    The template is laid over the record by the similarity that brings it nearest to the landmarks that are there (least
    squares), and its own landmarks stand for those that are missing. What is there is kept to the last bit.

    Args:
        records: (n, k, m), landmarks in the plane (m = 2) or in space (m = 3); private. A landmark with a NaN is
            missing.
        template: (k, m), k >= 3; public.

    Returns:
        (n, k, m). A record that misses landmarks is NaN if another number of it is not finite, or if what is there
        does not place the template: in the plane less than 2 distinct landmarks, in space less than 3 that are not on
        a line.

    Raises:
        ValueError: see `align_landmarks`.
    """
    template, records = _configurations("impute_landmarks", template, records)
    with jax.enable_x64(True):
        return _in_blocks(lambda block: _all_imputed(block, template), records)


def checked_template(owner: str, template: ArrayLike) -> np.ndarray:
    """Return the template as an array (k, m) in double precision.

    Raises:
        ValueError: another shape or type; a number that is not finite; or landmarks that coincide, or lie on a line in
            space, so that no rotation can be told by them.
    """
    found = host_array(owner, template)
    if not is_numeric(found.dtype, "fiu") or found.ndim != 2 or found.shape[0] < 3 or found.shape[1] not in (2, 3):
        raise InputError(
            f"{owner}: template must be real numbers of shape (k, 2) or (k, 3) with k >= 3, got {found.shape}."
        )
    found = found.astype(np.float64)
    if not np.all(np.isfinite(found)):
        raise InputError(f"{owner}: template must hold finite numbers.")
    in_units = found / (np.max(np.abs(found)) or 1.0)
    spreads = np.linalg.svd(in_units - in_units.mean(axis=0), compute_uv=False)
    if not spreads[found.shape[1] - 2] > max(_LEAST * spreads[0], 16.0 * np.finfo(float).eps):
        where = "coincide" if found.shape[1] == 2 else "coincide or lie on a line"
        raise InputError(f"{owner}: template is degenerate: its landmarks {where}.")
    return found


def _configurations(owner, template, records):
    """Return template and records as arrays in double precision; of records only shape and type are checked."""
    template = checked_template(owner, template)

    def converted(array):
        return array if array.shape[1:] == template.shape and array.dtype.kind == "f" else None

    records = host_array(owner, records_in_lists(records, converted))
    if not is_numeric(records.dtype, "fiu"):
        raise InputError(f"{owner}: records must be real numbers, got {kind_of_data(records)}.")
    if records.ndim != 3 or records.shape[1:] != template.shape or len(records) == 0:
        k, m = template.shape
        raise InputError(f"{owner}: records must have the template's shape, (n, {k}, {m}), got {records.shape}.")
    with np.errstate(all="ignore"):  # a warning would speak of the data
        return template, records.astype(np.float64)


def _in_blocks(function, records) -> np.ndarray:
    """Apply a function to blocks of one shape: program shapes could disclose a private number of records."""
    rows = rows_at_once(records.shape[1:])
    blocks = [np.asarray(function(padded(own, rows)))[: len(own)] for own in blocks_of(records, rows)]
    return np.concatenate(blocks)


@functools.partial(jax.jit, static_argnames="scale")
def all_aligned(records, template, scale):
    """Return records superimposed on a template, by a program for blocks of one shape."""
    return map_in_blocks(lambda record: _aligned(record, template, scale), records)


@jax.jit
def _all_imputed(records, template):
    return map_in_blocks(lambda record: _imputed(record, template), records)


def _aligned(record: jax.Array, template: jax.Array, scale: bool) -> jax.Array:
    finite = jnp.all(jnp.isfinite(record))
    everywhere = jnp.ones(len(record), bool)
    own, public = (_standard(x, everywhere) for x in (jnp.where(finite, record, template), template))
    rotation, _, unique = _nearest_rotation(own.landmarks, public.landmarks)
    aligned = public.centroid + (public.size if scale else own.size) * (own.landmarks @ rotation)
    return jnp.where(finite & unique & jnp.all(jnp.isfinite(aligned)), aligned, jnp.nan)


def _imputed(record: jax.Array, template: jax.Array) -> jax.Array:
    there = ~jnp.any(jnp.isnan(record), axis=1)
    usable = jnp.all(jnp.isfinite(record) | ~there[:, None])
    own, public = (_standard(x, there) for x in (jnp.where(there[:, None] & usable, record, 0.0), template))
    rotation, fit, unique = _nearest_rotation(*(jnp.where(there[:, None], x.landmarks, 0.0) for x in (public, own)))
    placed = own.centroid + own.size * fit * (public.landmarks @ rotation)
    whole = jnp.where(there[:, None], record, placed)
    made = jnp.where(unique & jnp.all(jnp.isfinite(whole)), whole, jnp.nan)
    return jnp.where(jnp.all(there), record, made)


class _Standard(NamedTuple):
    """A configuration moved and scaled, and from where."""

    landmarks: jax.Array  #: (k, m); those that are there have their centroid at 0 and centroid size 1, or coincide
    centroid: jax.Array  #: (m,), before
    size: jax.Array  #: the centroid size before


def _standard(landmarks: jax.Array, there: jax.Array) -> _Standard:
    """Return the configuration in standard position by the landmarks that are there; finite for finite ones."""
    quarters = 0.25 * landmarks  # whose differences are finite
    first = quarters[jnp.argmax(there)]
    moved = quarters - first  # before anything is rounded at the distance from the origin
    reach = _or_one(jnp.max(jnp.where(there[:, None], jnp.abs(moved), 0.0)))
    weights = there / jnp.maximum(jnp.sum(there), 1)
    middle = weights @ jnp.where(there[:, None], moved / reach, 0.0)
    centred = moved / reach - middle
    size = _or_one(jnp.sqrt(jnp.sum(jnp.where(there[:, None], centred, 0.0) ** 2)))
    return _Standard(centred / size, 4.0 * (first + reach * middle), 4.0 * reach * size)


def _or_one(size: jax.Array) -> jax.Array:
    return jnp.where(size > 0, size, 1.0)


def _nearest_rotation(source, target):
    """Return the rotation R for which ``source R`` is nearest to ``target``, their fit, and whether R is unique.

    Both are in standard position; the fit, tr(R' source' target), is the scale that brings them nearest.
    """
    left, values, right = jnp.linalg.svd(source.T @ target)
    signs = jnp.ones_like(values).at[-1].set(jnp.sign(jnp.linalg.det(left @ right)))
    return (left * signs) @ right, values @ signs, values[-2] + signs[-1] * values[-1] > _LEAST
