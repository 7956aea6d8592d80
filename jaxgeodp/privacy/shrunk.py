"""A released point drawn towards a public one: post-processing, for who has reason to expect the mean near there."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError, positive_number
from jaxgeodp.manifolds.described import to_lists
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.manifolds.names import manifold_of
from jaxgeodp.privacy.release import Release, record_digest

# How far a point may be from the manifold, relative to its largest number.
_TOLERANCE = 1e-6


def shrunk(release: Release, toward: Any, spread: float) -> Release:
    """See `Release.shrunk`."""
    positive_number("Release.shrunk", "spread", spread)
    record = release.record
    if "post_processing" in record:
        raise InputError("Release.shrunk: the value has been processed before; take the release as it was made.")
    try:
        stated = release.expected_error
        manifold = manifold_of(record["manifold"])
    except InputError:
        raise InputError(
            f"Release.shrunk: how wide the noise of this release of {record['mechanism']} is, is not known from its "
            "record (a private number of records, a shape, steps, or no point); a Shape has gains, which do the same."
        ) from None
    with jax.enable_x64(True):
        point, value = _point(manifold, toward), jnp.asarray(release.value)
        noise = _root_mean_square(stated.mean, manifold.dim, record["guarantee"]["kind"] == "pure")
        share = 1.0 / (1.0 + (noise / spread) ** 2)
        moved = np.asarray(_between(manifold, point, value, share))
    moved = moved if np.all(np.isfinite(moved)) else np.array(release.value)
    told = {
        "name": "drawn towards a public point",
        "toward": to_lists(np.asarray(point)),
        "spread": float(spread),
        "share": share,
        "released": record["value"],
        "expected_error": noise * math.sqrt(share),
        "of": record_digest(record),
    }
    kept = {name: entry for name, entry in record.items() if name != "expected_error"}
    return dataclasses.replace(
        release, value=moved, record=kept | {"value": to_lists(moved), "post_processing": told}, _expected=None
    )


def _root_mean_square(mean, dim, pure) -> float:
    """Of the length of noise with this mean length: density exp(-|z|), or normal."""
    if pure:
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
        raise InputError(f"Release.shrunk: toward is no point of {manifold} to {_TOLERANCE:g}; project it first.")
    return manifold.project(own)


def _between(manifold, point, value, share):
    return jax.jit(manifold.between)(point, value, share)
