"""One draw in floating point, or integers on a public grid (docs/mathematics.md, Theorem N), as a call chooses."""

import dataclasses
from typing import final

from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.privacy.release import idealized
from jaxgeodp.releases.law import Ready
from jaxgeodp.releases.ways.fixed_time import FixedTime
from jaxgeodp.releases.ways.way import Way


@final
@dataclasses.dataclass(frozen=True)
class Idealized(Way):
    """The law itself, in floating point; its guarantee supposes exact arithmetic."""

    @override
    def ready(self, law, shape):
        terms = law.terms
        return Ready(terms, law.scale, idealized(terms.timing), law.ready(shape), law.order_matters)


@final
@dataclasses.dataclass(frozen=True)
class OnGrid(Way):
    """Release in integers, by `Law.grid`."""

    option = "grid"

    @override
    def ready(self, law, shape):
        ready = law.grid(shape)
        if ready.order_matters:
            raise InputError(
                f"{law.terms.mechanism}: numerics='grid' needs sums that do not depend on the order of records."
            )
        return ready


@final
@dataclasses.dataclass(frozen=True)
class FromSums(Way):
    """Release sums of integers that were added up elsewhere: the sums are private, and no record is seen."""

    option = "prepare"

    @override
    def ready(self, law, shape):
        noisy = law.grid.noisy(shape.shape[1:])
        return Ready(noisy.terms, noisy.scale, noisy.note, noisy.value, False)


_NUMERICS = {"idealized": Idealized(), "grid": OnGrid()}


def way_of(owner: str, delta: float, numerics: str) -> Way:
    """Return the way that the keywords of `Mechanism.release` choose.

    Raises:
        ValueError: an unknown word, or two ways at once.
    """
    if not isinstance(numerics, str) or numerics not in _NUMERICS:
        raise InputError(f"{owner}: numerics must be 'idealized' or 'grid', got {numerics!r}.")
    if delta == 0.0:
        return _NUMERICS[numerics]
    if numerics != "idealized":
        raise InputError(f"{owner}: delta and numerics='{numerics}' exclude each other; give only one of them.")
    return FixedTime(delta)
