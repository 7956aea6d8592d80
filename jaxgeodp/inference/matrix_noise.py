"""Noise of a released second moment: the norm whose unit ball is all that one record can change (section 18)."""

import dataclasses
import math
from typing import final

import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.privacy.guarantee import PureDP
from jaxgeodp.releases.noise import Noise
from jaxgeodp.samplers.spectral import hull_noise, hull_norm
from jaxgeodp.samplers.spectral_table import LARGEST

#: The sampler in a release record; readers of records know the noise by its name.
SAMPLER = {
    "name": "hull_noise: a mixture of squares of triangular matrices, without rejection (Theorem X)",
    "exactness": "exact up to floating point",
}


@final
@dataclasses.dataclass(frozen=True)
class HullNoise(Noise):
    """Density exp(-max(tr A+, tr A-)) of a symmetric matrix A, whose entries on and above the diagonal are drawn.

    The unit ball of this norm is the convex hull of all vv' - ww' with v and w in the unit ball: no smaller one holds
    all that replacing a record does to a second moment.
    """

    name = "hull"
    theorem = (
        "K-norm mechanism of the convex hull of all changes (Hardt & Talwar 2010; docs/mathematics.md, Theorem X): "
        "scale = sensitivity/epsilon"
    )

    def guarantee(self, strength):
        """epsilon-DP."""
        return PureDP(strength)

    def draw(self, key, num, dim, dtype):
        """Return draws (num, dim) of the entries on and above the diagonal of k x k matrices; dim = k(k + 1)/2."""
        rows = _rows(dim)
        return hull_noise(key, num, rows, dtype)[:, *np.triu_indices(rows)]

    @override
    def log_density(self, z):
        rows = _rows(z.shape[0])
        upper = jnp.zeros((rows, rows), z.dtype).at[np.triu_indices(rows)].set(z)
        return -hull_norm(upper + jnp.triu(upper, 1).T)


def has_hull_noise(record: dict) -> bool:
    """Return whether a release record names `HullNoise` as its sampler."""
    return str(record["sampler"]["name"]).startswith("hull_noise")


def is_smaller(dim: int) -> bool:
    """Return whether `HullNoise` is known for (dim, dim), and smaller than integer noise, its equal for one number."""
    return 2 <= dim <= LARGEST


def _rows(numbers: int) -> int:
    """Return the number of rows of a symmetric matrix with this many entries on and above its diagonal."""
    return (math.isqrt(8 * numbers + 1) - 1) // 2
