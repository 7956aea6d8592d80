"""The private mean face: radial curves under Gaussian DP."""

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np

from jaxgeodp.checks import InputError
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.functional.kernels import Kernel, positive_numbers
from jaxgeodp.mechanisms.mechanism import checked_again, host_array
from jaxgeodp.privacy.clock import work_begins
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.privacy.ledger import Ledger
from jaxgeodp.privacy.release import Release

#: One number for a whole face, one for each coordinate, (3,), or for each coordinate of each curve or point, (J, 3).
PerCoordinate = float | Sequence[float] | np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class FaceMeanMechanism:
    """The mean of faces given by their radial curves (n, J, m, 3): every coordinate of every curve with its own budget.

    `FunctionalGaussianMechanism` on 3 J closed curves, centred at a public template: the noise is proportional to how
    far faces may be from it, not to how large they are.

    Args:
        template: radial curves of a public face, (J, m, 3), never the mean of the data.
        norm_bound: public bound on the L2 norm of each curve's deviation from the template; a number, one per
            coordinate (3,), or one per curve and coordinate (J, 3).
        mu: privacy parameters in the same forms; the paper has (0.2, 0.2, 0.55) for 23 curves, 2.9661 in all.
        penalty: of the smoothing, in the same forms; the paper's by default.
        kernel: of smoothing and noise.
        calibration: "tight" or "theorem", see `FunctionalGaussianMechanism`.

    Raises:
        ValueError: a parameter is out of range.
    """

    template: np.ndarray
    norm_bound: PerCoordinate
    mu: PerCoordinate = (0.2, 0.2, 0.55)
    penalty: PerCoordinate = (0.01, 0.01, 0.005)
    kernel: Kernel = dataclasses.field(default_factory=lambda: PeriodicKernel(0.5))
    calibration: str = "tight"
    _curves: FunctionalGaussianMechanism = dataclasses.field(init=False, repr=False)

    def __post_init__(self):
        name = type(self).__name__
        template = host_array(name, self.template)
        if template.ndim != 3 or template.shape[2] != 3 or template.dtype.kind != "f":
            raise InputError(f"{name}: template must be radial curves of shape (J, m, 3), got {template.shape}.")
        object.__setattr__(self, "template", template)
        spread = {field: self._per_curve(field) for field in ("norm_bound", "mu", "penalty")}
        mechanism = FunctionalGaussianMechanism(
            self.kernel, template=flat_curves(template), calibration=self.calibration, **spread
        )
        object.__setattr__(self, "_curves", mechanism)

    def _per_curve(self, field):
        """(3 J,): all coordinates of the first curve, then those of the second."""
        value, count = getattr(self, field), len(self.template)
        try:
            array = np.asarray(value, float)
            array = np.broadcast_to(array, (count, 3))
        except (TypeError, ValueError):
            raise InputError(
                f"FaceMeanMechanism: {field} must be a number, one per coordinate (3,), or one per curve and "
                f"coordinate ({count}, 3)."
            ) from None
        return positive_numbers("FaceMeanMechanism", field, array.reshape(-1))

    @property
    def guarantee(self) -> GaussianDP:
        """Of the whole face."""
        return self._curves.guarantee

    def sensitivity(self, n: int):
        """See `FunctionalGaussianMechanism.sensitivity`; (J, 3)."""
        return np.reshape(self._curves.sensitivity(n), (-1, 3))

    def scale(self, n: int):
        """Standard deviation of the noise at each sample, (J, 3)."""
        return np.reshape(self._curves.scale(n), (-1, 3))

    def mean(self, data):
        """The curves around which releases are drawn, (J, m, 3): private."""
        return _face(self._curves.mean(self._records(data)))

    def log_density(self, x, data):
        """Unnormalised log density of a release at curves ``x`` (J, m, 3)."""
        return self._curves.log_density(flat_curves(x), self._records(data))

    def simulate(self, key, data, num: int):
        """``num`` draws for research, (num, J, m, 3): reproducible from ``key``, hence not private."""
        return _face(self._curves.simulate(key, self._records(data), num))

    def release(self, data, ledger: Ledger | None = None, *, numerics: str = "idealized") -> Release:
        """One private mean face, (J, m, 3), with randomness from the operating system.

        Args:
            data: radial curves (n, J, m, 3) of n faces, each processed by itself (`face_curves`).
            ledger: charged before anything is drawn.
            numerics: see `FunctionalGaussianMechanism.release`.

        Raises:
            ValueError: wrong shape, fewer than two faces, or the ledger has not enough left.
        """
        return self.release_finished(data, ledger, numerics)

    def release_finished(self, data, ledger, numerics, finish=np.ascontiguousarray, more=None) -> Release:
        """A release whose curves (J, m, 3) go through ``finish``, a post-processing; otherwise `release`.

        Args:
            data, ledger, numerics: see `release`.
            finish: of the released curves.
            more: further entries of the record, all of them public.
        """
        layout = "value[curve, sample, coordinate]; all other lists run over coordinates, then curves"
        with work_begins():
            checked_again(self)
            return self._curves.release_as(
                type(self).__name__,
                self._records(host_array(type(self).__name__, data)),
                ledger,
                numerics,
                lambda curves: finish(_face(curves)),
                {"layout": layout, **(more or {})},
            )

    def _records(self, data):
        data = data if isinstance(data, jax.Array) else host_array(type(self).__name__, data)
        if data.ndim != 4 or data.shape[1:] != self.template.shape:
            expected = ", ".join(map(str, self.template.shape))
            raise InputError(f"FaceMeanMechanism: data must have shape (n, {expected}), got {data.shape}.")
        return flat_curves(data)


def flat_curves(curves):
    """Curves as `FunctionalGaussianMechanism` takes them: (..., J, m, 3) to (..., 3 J, m)."""
    moved = curves.swapaxes(-1, -2)
    return moved.reshape(*moved.shape[:-3], -1, moved.shape[-1])


def _face(curves):
    """(..., 3 J, m) to (..., J, m, 3)."""
    return curves.reshape(*curves.shape[:-2], -1, 3, curves.shape[-1]).swapaxes(-1, -2)
