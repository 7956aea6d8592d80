"""One draw, whose guarantee supposes exact arithmetic."""

import dataclasses

from jaxgeodp.privacy.release import idealized
from jaxgeodp.releases.law import Ready
from jaxgeodp.releases.ways.way import Way


@dataclasses.dataclass(frozen=True)
class Idealized(Way):
    """The law itself, in floating point."""

    def ready(self, law, shape):
        """See `Way.ready`."""
        terms = law.terms
        return Ready(terms, law.scale, idealized(terms.timing), law.ready(shape), law.order_matters)
