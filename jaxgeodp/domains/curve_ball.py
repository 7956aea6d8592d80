"""Records that are curves, near a public template."""

import dataclasses

import jax
import numpy as np

from jaxgeodp.checks import InputError, many
from jaxgeodp.domains.domain import Domain
from jaxgeodp.domains.near_template import real_numbers
from jaxgeodp.domains.persons import averages
from jaxgeodp.domains.records import host_array, is_numeric, kind_of_data
from jaxgeodp.nested_lists import plain_number, to_lists


@dataclasses.dataclass(frozen=True, eq=False)
class CurveBall(Domain):
    """Records of J curves with m samples each, every curve within a norm bound of a template in the discrete L2 norm.

    Args:
        template: public curves (J, m), or None for zero.
        norm_bound: public; a number or (J,).
        curves: J, or None where any number will do.
    """

    template: np.ndarray | None
    norm_bound: float | np.ndarray | jax.Array
    curves: int | None
    has_summaries = True

    @property
    def knows_shape(self) -> bool:
        """Whether there is a template."""
        return self.template is not None

    def records(self, owner, data):
        """Return the records (n, J, m) as real numbers in single precision or better; refuse other shapes."""
        data = data if isinstance(data, jax.Array) else host_array(owner, data)
        if not is_numeric(data.dtype, "fiu"):
            raise InputError(f"{owner}: data must be real numbers, got {kind_of_data(data)}.")
        if data.ndim != 3:
            raise InputError(f"{owner}: data must have shape (n, J, m), got {many(data.shape)}.")
        if self.curves not in (None, data.shape[1]) or data.shape[1] == 0:
            raise InputError(f"{owner}: is for J={self.curves} curves, got data of shape {many(data.shape)}.")
        if self.template is not None and data.shape[2] != self.template.shape[1]:
            raise InputError(
                f"{owner}: data have m={data.shape[2]} samples, the template {self.template.shape[1]}; resample one "
                "of them."
            )
        return real_numbers(data)

    def of_persons(self, owner, shape):
        """Return a function that gives each person's mean curves; see `averages`."""
        return averages(self.fallback(shape.shape[1:]))

    def described(self, shape):
        """Return the numbers of curves and samples, template and norm bound, for a record."""
        curves, samples = shape
        return {
            "manifold": {"name": "L2", "curves": curves, "samples": samples},
            "ball": {
                "center": None if self.template is None else to_lists(self.template),
                "radius": plain_number(self.norm_bound),
                "note": "each curve in the discrete L2 norm",
            },
        }

    def fallback(self, shape):
        """Return the template."""
        return np.zeros(shape) if self.template is None else self.template
