"""Shrinkage of a released point towards a public one, near which the mean is expected: post-processing."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError, positive_number
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.manifolds.names import manifold_of
from jaxgeodp.nested_lists import from_lists, to_lists

# How far a point may be from the manifold, relative to its largest number.
_TOLERANCE = 1e-6
# What a record says of it.
_TOLD = {"name", "toward", "spread", "share", "released", "expected_error", "before", "of"}


class Drawn(NamedTuple):
    """Hold the value drawn towards a public point, and the entry of its record."""

    value: np.ndarray
    told: dict  #: for the record


def drawn_towards(toward: Any, spread: float, value: np.ndarray, record: dict, error: float, normal: bool) -> Drawn:
    """Move a released value towards a public point, by the share that has the least expected squared error.

    Args:
        toward, spread: see `Release.shrunk`.
        value, record: of a release.
        error: expected distance from the statistic.
        normal: True for normal noise; else its density is exp(-|z|).
    """
    positive_number("Release.shrunk", "spread", spread)
    manifold = manifold_of(record["manifold"])
    if np.shape(value) != manifold.shape or value.dtype.kind not in "fc":
        raise InputError(f"Release.shrunk: the record holds no point of {manifold}.")
    with jax.enable_x64(True):
        point = _point(manifold, toward)
        noise = _root_mean_square(error, manifold.dim, normal)
        share = (spread / math.hypot(spread, noise)) ** 2
        moved = np.asarray(jax.jit(manifold.between)(point, jnp.asarray(value), share))
    told = {
        "name": "drawn towards a public point",
        "toward": to_lists(np.asarray(point)),
        "spread": float(spread),
        "share": share,
        "released": record["value"],
        "expected_error": noise * math.sqrt(share),
    }
    return Drawn(moved if np.all(np.isfinite(moved)) else np.array(value), told)


def is_drawn_as_said(record: dict) -> bool:
    """Return True if a record's value follows from the original value in its entry "post_processing".

    Args:
        record: as `Release.shrunk` makes it.

    Raises:
        KeyError, TypeError, ValueError: it has no such entry, or another one.
    """
    told, manifold = record["post_processing"], manifold_of(record["manifold"])
    if set(told) != _TOLD:
        return False
    kind = "complex128" if manifold.dtype_kind == "complex" else "float64"
    share, spread, error = (float(told[name]) for name in ("share", "spread", "expected_error"))
    with jax.enable_x64(True):
        point, first, value = (from_lists(own, kind) for own in (told["toward"], told["released"], record["value"]))
        if not (point.shape == first.shape == value.shape == manifold.shape and 0.0 < share <= 1.0 and spread > 0.0):
            return False
        if not float(manifold.deviation(jnp.asarray(point))) <= _TOLERANCE:
            return False
        moved = np.asarray(jax.jit(manifold.between)(point, first, share))
    away = float(np.max(np.abs(moved - value)))
    # Noise N has the share spread^2/(spread^2 + N^2), of whose N^2 this is the root.
    is_error = math.isclose(error, spread * math.sqrt(1.0 - share), rel_tol=1e-6, abs_tol=1e-9 * spread)
    return is_error and (away <= _TOLERANCE * float(np.max(np.abs(value))) or bool(np.all(value == first)))


def _root_mean_square(mean, dim, normal) -> float:
    """Return the root mean square length of noise with this mean length."""
    if not normal:
        return mean * math.sqrt((dim + 1.0) / dim)
    return mean * math.sqrt(dim / 2.0) * math.exp(math.lgamma(dim / 2.0) - math.lgamma((dim + 1.0) / 2.0))


def _point(manifold: Manifold, given) -> jax.Array:
    try:
        point = np.asarray(given)
    except ValueError:  # of lists of several lengths
        point = np.asarray("")
    kind = complex if manifold.dtype_kind == "complex" else float
    if point.shape != manifold.shape or point.dtype.kind not in "biufc" or (kind is float and point.dtype.kind == "c"):
        raise InputError(f"Release.shrunk: toward must be a point of {manifold}, of shape {manifold.shape}.")
    own = jnp.asarray(point, kind)
    if not float(manifold.deviation(own)) <= _TOLERANCE:
        raise InputError(f"Release.shrunk: toward is not a point of {manifold} to {_TOLERANCE:g}; project it first.")
    return manifold.project(own)
