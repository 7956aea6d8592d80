"""Manifolds as written in release records."""

import dataclasses

import numpy as np

from jaxgeodp.manifolds.manifold import Manifold


def describe(manifold: Manifold) -> dict:
    """Return the name and parameters of a manifold."""
    fields = dataclasses.fields(manifold) if dataclasses.is_dataclass(manifold) else ()
    parameters = {field.name: _plain(getattr(manifold, field.name)) for field in fields}
    return {"name": type(manifold).__name__, **parameters}


def _plain(value):
    if isinstance(value, Manifold):
        return describe(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value
