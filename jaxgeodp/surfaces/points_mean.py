"""The mean of registered points with noise on every coordinate, for one bound on a whole face: the fair baseline."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxgeodp.checks import InputError, positive_number
from jaxgeodp.mechanisms.mechanism import host_array, record_count
from jaxgeodp.privacy.entropy import system_key
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.privacy.release import Release, idealized, make_release, to_lists

# Below, rounding of the mean is not small beside the noise.
_LEAST_SCALE = 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class JointGaussian:
    """Equal noise on all coordinates of the mean of registered points (n, N, 3): one Gaussian mechanism for all.

    A face's deviation from a public template is one vector of 3 N numbers, pulled to a norm bound. `PointwiseGaussian`
    bounds every coordinate by itself instead, as if each could be at its worst in the same face.

    Args:
        template: public points (N, 3).
        norm_bound: of the deviations, above 0: the root of the mean squared distance of a point.
        mu: of the whole release.

    Raises:
        ValueError: a parameter is out of range.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp.surfaces import JointGaussian
        >>> mechanism = JointGaussian(np.zeros((50, 3)), norm_bound=0.1, mu=2.0)
        >>> round(mechanism.sensitivity(100), 4), round(mechanism.scale(100), 4)
        (0.0141, 0.0071)
    """

    template: np.ndarray
    norm_bound: float
    mu: float

    def __post_init__(self):
        template = host_array("JointGaussian", self.template)
        if template.ndim != 2 or template.shape[1] != 3 or not np.all(np.isfinite(template)):
            raise InputError(f"JointGaussian: template must be points of shape (N, 3), got {template.shape}.")
        object.__setattr__(self, "template", template.astype(float))
        positive_number("JointGaussian", "norm_bound", self.norm_bound)
        object.__setattr__(self, "norm_bound", float(self.norm_bound))
        object.__setattr__(self, "mu", GaussianDP(self.mu).mu)

    @property
    def guarantee(self) -> GaussianDP:
        """Of all points together."""
        return GaussianDP(self.mu)

    def sensitivity(self, n: int) -> float:
        """How far one face moves the mean, in the Euclidean norm of all coordinates."""
        return 2.0 * self.norm_bound * math.sqrt(len(self.template)) / record_count(n)

    def scale(self, n: int) -> float:
        """Standard deviation of the noise of each coordinate."""
        return self.sensitivity(n) / self.mu

    def simulate(self, key, data, num: int):
        """``num`` draws for research, (num, N, 3): reproducible from ``key``, hence not private."""
        data = self._records(data)
        template, bound, scale = (
            jnp.asarray(x, data.dtype) for x in (self.template, self.norm_bound, self.scale(len(data)))
        )
        return _joint(key, data, template, bound, scale, num)

    def release(self, data, ledger: Ledger | None = None) -> Release:
        """One private mean, (N, 3), with randomness from the operating system.

        Args:
            data: (n, N, 3), n >= 2; a face with a point that is not finite counts as the template.
            ledger: charged before anything is drawn.

        Raises:
            ValueError: wrong shape, fewer than two faces, noise that double precision cannot draw, or the ledger has
                not enough left.
        """
        with jax.enable_x64(True):
            data = self._records(host_array("JointGaussian", data)).astype(float)
            n = len(data)
            if not _LEAST_SCALE < self.scale(n) < math.inf:
                raise InputError(
                    f"JointGaussian: a scale of {self.scale(n):g} cannot be drawn in double precision; choose "
                    "other parameters."
                )
            return make_release(
                lambda: np.asarray(self.simulate(system_key(), data, 1))[0],
                ledger=ledger,
                guarantee=self.guarantee,
                theorem="Gaussian mechanism (Dong, Roth & Su 2022, Theorem 1)",
                mechanism="JointGaussian",
                statistic="mean",
                manifold={"name": "points", "count": len(self.template)},
                ball={
                    "center": to_lists(self.template),
                    "radius": self.norm_bound,
                    "note": "root mean squared distance of a point",
                },
                n=n,
                sensitivity={"value": self.sensitivity(n), "formula": "2 norm_bound sqrt(N)/n", "calibration": "tight"},
                scale=self.scale(n),
                support=None,
                sampler={"name": "normal", "exactness": "exact up to floating point"},
                note=idealized("the number of steps does not depend on the data"),
            )

    def _records(self, data):
        data = data if isinstance(data, jax.Array) else host_array("JointGaussian", data)
        if data.ndim != 3 or data.shape[1:] != self.template.shape or data.dtype.kind not in "fiu":
            raise InputError(
                f"JointGaussian: data must be real numbers of shape (n, {len(self.template)}, 3), got {data.dtype} of "
                f"shape {data.shape}."
            )
        record_count(len(data))
        return jnp.asarray(data, jnp.result_type(data.dtype, float))


@functools.partial(jax.jit, static_argnums=5)
def _joint(key, data, template, bound, scale, num):
    deviations = data - template
    squares = jnp.mean(jnp.sum(deviations**2, axis=-1), axis=-1)
    usable = jnp.isfinite(squares)
    norms = jnp.sqrt(jnp.where(usable & (squares > 0), squares, 1.0))
    factors = jnp.where(norms > bound, bound / norms, 1.0)[:, None, None]
    mean = template + jnp.mean(jnp.where(usable[:, None, None], factors * deviations, 0.0), axis=0)
    return mean + scale * jax.random.normal(key, (num, *mean.shape), data.dtype)
