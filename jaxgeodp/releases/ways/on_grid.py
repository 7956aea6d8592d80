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

    option = "grid"

    @override
    def ready(self, law, shape):
        ready = law.grid(shape)
        if ready.order_matters:
            raise InputError(f"{law.terms.mechanism}: integers that depend on the order of records are not released.")
        return ready


@final
@dataclasses.dataclass(frozen=True)
class FromSums(Way):
    """The same, of integers that were added up elsewhere; what is private is they, not the records."""

    option = "prepare"

    @override
    def ready(self, law, shape):
        noisy = law.grid.noisy(shape.shape[1:])
        return Ready(noisy.terms, noisy.scale, noisy.note, noisy.value, False)
