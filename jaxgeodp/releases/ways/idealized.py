"""One draw, whose guarantee supposes exact arithmetic."""

import dataclasses

from typing_extensions import override

from jaxgeodp.privacy.release import idealized
from jaxgeodp.releases.law import Ready
from jaxgeodp.releases.ways.way import Way


@dataclasses.dataclass(frozen=True)
class Idealized(Way):
    """The law itself, in floating point."""

    @override
    def ready(self, law, shape):
        terms = law.terms
        return Ready(terms, law.scale, idealized(terms.timing), law.ready(shape), law.order_matters)
