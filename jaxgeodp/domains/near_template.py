"""Records that are arrays of numbers, near a public one."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError, many
from jaxgeodp.domains.domain import Domain
from jaxgeodp.domains.persons import averages
from jaxgeodp.domains.records import host_array, is_numeric, kind_of_data
from jaxgeodp.nested_lists import to_lists


@dataclasses.dataclass(frozen=True, eq=False)
class NearTemplate(Domain):
    """Arrays of the shape of a template, whose deviations from it are bounded.

    Args:
        template: public.
        manifold: the record's entry of this name.
        bounds: what the record's entry "ball" says beside the template: how deviations are bounded.
    """

    template: np.ndarray
    manifold: dict
    bounds: dict
    has_summaries = True

    def records(self, owner, data):
        """Return the records as real numbers in single precision or better; refuse other shapes than the template's."""
        data = data if isinstance(data, jax.Array) else host_array(owner, data)
        if data.shape[1:] != self.template.shape or not is_numeric(data.dtype, "fiu"):
            expected = ", ".join(map(str, self.template.shape))
            raise InputError(
                f"{owner}: data must be real numbers of shape (n, {expected}), got {kind_of_data(data)} of shape "
                f"{many(data.shape)}."
            )
        return real_numbers(data)

    def of_persons(self, owner, shape):
        """Return a function that gives the mean of each person's records, before anything bounds them."""
        return averages(self.template)

    @override
    def described(self, shape):
        return {"manifold": self.manifold, "ball": {"center": to_lists(self.template), **self.bounds}}

    def fallback(self, shape):
        """Return the template."""
        return self.template


def real_numbers(data) -> jax.Array:
    """Return numbers in single precision or better."""
    data = jnp.asarray(data)
    return data.astype(jnp.promote_types(jnp.result_type(data.dtype, float), jnp.float32))
