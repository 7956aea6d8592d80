"""Integers on a public grid with exact discrete noise (docs/mathematics.md, Theorem N)."""

import dataclasses

from jaxgeodp.checks import InputError
from jaxgeodp.releases.ways.way import Way


@dataclasses.dataclass(frozen=True)
class OnGrid(Way):
    """What `Law.grid` says."""

    def ready(self, law, shape):
        """See `Way.ready`."""
        if law.grid is None:
            raise InputError(
                f"{law.terms.mechanism}: numerics='grid' is for mechanisms in the tangent space (TangentLaplace, "
                "WrappedLaplace, WrappedGaussian) and for curves."
            )
        return law.grid(shape)
