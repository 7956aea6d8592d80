"""A release: the private value and the record of how it was made. Nothing else may leave the building."""

import dataclasses
import datetime
import json
import re

import numpy as np

from jaxgeodp._version import __version__
from jaxgeodp.files import write_atomically
from jaxgeodp.manifolds.manifold import Manifold
from jaxgeodp.privacy.entropy import NOTE


@dataclasses.dataclass(frozen=True, eq=False)
class Release:
    """A private value with its record.

    ``value`` is the released point (NumPy array). ``record`` is a JSON-ready dictionary; nothing in it
    depends on the data except ``record["value"]``.
    """

    value: np.ndarray
    record: dict

    def to_json(self) -> str:
        """The record as JSON text."""
        text = json.dumps(self.record, indent=2, allow_nan=False)
        # Rows of numbers on one line each.
        return re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda row: f"[{' '.join(row[1].split())}]", text) + "\n"

    def save(self, path) -> None:
        """Write the record to ``path`` in one step: the file is complete or not there at all."""
        write_atomically(path, self.to_json())


def make_release(
    value: np.ndarray,
    *,
    guarantee: dict,
    mechanism: str,
    statistic: str,
    manifold: dict,
    ball: dict,
    n: int,
    sensitivity: dict,
    scale,
    support: dict | None,
    sampler: dict,
    numerics: dict,
) -> Release:
    """Assemble a release; every argument but ``value`` is public."""
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    record = {
        "value": to_lists(value),
        "guarantee": guarantee,
        "mechanism": mechanism,
        "statistic": statistic,
        "manifold": manifold,
        "ball": ball,
        "n": n,
        "sensitivity": sensitivity,
        "scale": scale,
        "support": support,
        "sampler": sampler,
        "numerics": numerics,
        "library": {"name": "jaxgeodp", "version": __version__},
        "created": created,
    }
    return Release(value, record)


def describe_numerics(value: np.ndarray, timing: str) -> dict:
    """What double precision and entropy of a release are, and what its running time tells."""
    return {"dtype": str(value.dtype), "note": f"the guarantee is for exact arithmetic; {NOTE}; {timing}"}


def describe(manifold: Manifold) -> dict:
    """Name and parameters of a manifold."""
    fields = dataclasses.fields(manifold) if dataclasses.is_dataclass(manifold) else ()
    parameters = {field.name: _plain(getattr(manifold, field.name)) for field in fields}
    return {"name": type(manifold).__name__, **parameters}


def _plain(value):
    if isinstance(value, Manifold):
        return describe(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def to_lists(point) -> list:
    """Nested lists of a point; complex numbers become pairs (real, imaginary)."""
    array = np.asarray(point)
    if np.iscomplexobj(array):
        array = np.stack([array.real, array.imag], axis=-1)
    return array.tolist()
