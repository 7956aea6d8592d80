"""Integers on a public grid with exact discrete noise (docs/mathematics.md, Theorem N)."""

import dataclasses
from typing import final

from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.releases.law import Ready
from jaxgeodp.releases.ways.way import Way


@final
@dataclasses.dataclass(frozen=True)
class OnGrid(Way):
    """What `Law.grid` says."""

    @override
    def ready(self, law, shape):
        ready = _grid(law)(shape)
        if ready.order_matters:
            raise InputError(f"{law.terms.mechanism}: integers that depend on the order of records are not released.")
        return ready


@final
@dataclasses.dataclass(frozen=True)
class FromSums(Way):
    """The same, of integers that were added up elsewhere; what is private is they, not the records."""

    @override
    def ready(self, law, shape):
        noisy = _grid(law).noisy(shape.shape[1:])
        return Ready(noisy.terms, noisy.scale, noisy.note, noisy.value, False)


def _grid(law):
    if law.grid is None:
        raise InputError(
            f"{law.terms.mechanism}: numerics='grid' is for mechanisms in the tangent space (TangentLaplace, "
            "WrappedLaplace, WrappedGaussian) and for curves, points, faces and surfaces."
        )
    return law.grid
