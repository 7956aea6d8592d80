"""Records that are registered points, near a public template."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError, many
from jaxgeodp.domains.domain import Domain
from jaxgeodp.domains.persons import averages_ahead
from jaxgeodp.domains.records import host_array, is_numeric, kind_of_data
from jaxgeodp.manifolds.described import to_lists


@dataclasses.dataclass(frozen=True, eq=False)
class PointBox(Domain):
    """Records of N points in space whose deviations from a template are bounded.

    Args:
        template: public points (N, 3).
        bounds: the entries of a record's "ball" that say how.
    """

    template: np.ndarray
    bounds: dict

    @override
    def records(self, owner, data):
        data = data if isinstance(data, jax.Array) else host_array(owner, data)
        if data.ndim != 3 or data.shape[1:] != self.template.shape or not is_numeric(data.dtype, "fiu"):
            raise InputError(
                f"{owner}: data must be real numbers of shape (n, {len(self.template)}, 3), got {kind_of_data(data)} "
                f"of shape {many(data.shape)}."
            )
        return jnp.asarray(data, jnp.result_type(data.dtype, float))

    def of_persons(self, owner, shape, count):
        """The mean points; see `averages`."""
        return averages_ahead(owner, shape, self.fallback(shape.shape[1:]), count)

    def described(self, shape):
        """How many points, template and bounds."""
        return {
            "manifold": {"name": "points", "count": len(self.template)},
            "ball": {"center": to_lists(self.template), **self.bounds},
        }

    def fallback(self, shape):
        """The template."""
        return self.template
