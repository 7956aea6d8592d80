"""Preparation of records by public landmarks (``--template``, ``--missing``), each record on its own."""

import dataclasses
import pathlib

import numpy as np

from jaxgeodp.checks import InputError, many
from jaxgeodp.domains.landmarks import align_landmarks, checked_template, impute_landmarks
from jaxgeodp.io.layout import Layout
from jaxgeodp.io.tables import kind_of, read_template
from jaxgeodp.manifolds import Manifold


@dataclasses.dataclass(frozen=True)
class Preparation:
    """Public preparation options.

    Args:
        kind: "euclidean", "shapes" or "shapes3d".
        template: (k, m).
        impute: whether missing landmarks are taken from it.
    """

    kind: str
    template: np.ndarray
    impute: bool

    @property
    def center(self) -> np.ndarray:
        """Return the template as a record."""
        return self._as_records(self.template[None])[0]

    def __call__(self, table: np.ndarray) -> np.ndarray:
        """Return the prepared records of a table; only its shape can be refused.

        Raises:
            ValueError: records have other landmarks than the template.
        """
        landmarks = self.landmarks(table)
        if self.impute:
            landmarks = impute_landmarks(landmarks, self.template)
        if self.kind == "euclidean":
            landmarks = align_landmarks(landmarks, self.template)
        return self._as_records(landmarks)

    def landmarks(self, table: np.ndarray) -> np.ndarray:
        """Return a table as landmarks (n, k, m), as in the file; see `__call__`."""
        k, m = self.template.shape
        if table.dtype.kind == "c" and table.shape[1:] == (k,) and m == 2:
            table = np.ascontiguousarray(table).view(np.float64)
        if table.dtype.kind == "c" or table.shape[1:] not in ((k, m), (k * m,)):
            raise InputError(
                f"landmarks must match those of --template, of shape (n, {k}, {m}) or rows of {k * m} numbers, got "
                f"{many(table.shape)}."
            )
        return table.reshape(-1, k, m)

    @property
    def described(self) -> dict:
        """Return the entry "prepared" of a release record; empty if records are not prepared."""
        by = [
            *(["missing landmarks from a public template, laid over those that are there"] if self.impute else []),
            *(["Procrustes superimposition to a public template"] if self.kind == "euclidean" else []),
        ]
        size = {"size": "the template's centroid size"} if self.kind == "euclidean" else {}
        return {"prepared": {"by": ", then ".join(by), **size, "template": self.template.tolist()}} if by else {}

    def _as_records(self, landmarks):
        return landmarks.reshape(len(landmarks), -1) if self.kind == "euclidean" else landmarks


def preparation(
    template: pathlib.Path | None, missing: str, manifold: Manifold | str, layout: Layout
) -> Preparation | None:
    """Return the preparation that the options state; None without a template.

    Raises:
        ValueError: options that do not go together, or a file that holds no landmarks of use.
    """
    if missing not in ("center", "template"):
        raise InputError(f"--missing must be center or template, got '{missing}'.")
    if template is None:
        if missing == "template":
            raise InputError("--missing template needs --template, a file with public landmarks.")
        return None
    kind = kind_of(manifold)
    if kind not in ("euclidean", "shapes", "shapes3d"):
        raise InputError(f"--template is for --manifold euclidean, shapes or shapes3d, got {manifold}.")
    found = checked_template(f"--template {template}", read_template(template, layout))
    if kind == "shapes" and found.shape[1] != 2:
        raise InputError(f"--template {template}: holds landmarks in space, which need --manifold shapes3d.")
    if kind == "shapes3d" and found.shape[1] != 3:
        raise InputError(f"--template {template}: holds landmarks in the plane, which need --manifold shapes.")
    return Preparation(kind, found, missing == "template")
