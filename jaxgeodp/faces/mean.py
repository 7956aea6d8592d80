"""The private mean face: radial curves under Gaussian DP."""

import dataclasses
from collections.abc import Sequence
from typing import final

import numpy as np
from typing_extensions import override

from jaxgeodp.checks import InputError
from jaxgeodp.domains.near_template import NearTemplate
from jaxgeodp.domains.records import host_array
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.functional.gaussian_process import CurveEncoding
from jaxgeodp.functional.kernels import Kernel, positive_numbers
from jaxgeodp.nested_lists import plain_number
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.releases.encoding import EncodedSums, Encoding
from jaxgeodp.releases.mechanism import Mechanism

#: One number for a whole face, one for each coordinate, (3,), or for each coordinate of each curve or point, (J, 3).
PerCoordinate = float | Sequence[float] | np.ndarray


@final
@dataclasses.dataclass(frozen=True, eq=False)
class FaceMeanMechanism(Mechanism):
    """Mean of faces given by radial curves (n, J, m, 3), with a budget for each coordinate of each curve.

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
        """Return a parameter as (3 J,): the coordinates of the first curve, then of the second, ..."""
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
        """Return the guarantee of the whole face."""
        return self._curves.guarantee

    def sensitivity(self, n: int):
        """Return the sensitivity of each coordinate of each curve in the kernel norm, (J, 3)."""
        return np.reshape(self._curves.sensitivity(n), (-1, 3))

    def scale(self, n: int):
        """Return the standard deviation of the noise at each sample, (J, 3)."""
        return np.reshape(self._curves.scale(n), (-1, 3))

    def mean(self, data):
        """Return the private curves around which releases are drawn, (J, m, 3)."""
        return _face(self._curves.mean(flat_curves(self.domain.records(type(self).__name__, data))))

    @property
    @override
    def budget(self):
        return self._curves.budget

    @property
    def domain(self) -> NearTemplate:
        """Radial curves (n, J, m, 3) of n faces, each processed by itself (`face_curves`)."""
        curves, samples = self._flat_shape
        manifold = {"name": "L2", "curves": curves, "samples": samples}
        bounds = {"radius": plain_number(self._curves.norm_bound), "note": "each curve in the discrete L2 norm"}
        return NearTemplate(self.template.astype(float), manifold, bounds)

    @property
    def encoding(self) -> "OfFaces":
        """Encoding of faces as vectors."""
        return OfFaces(self._curves.encoding)

    @property
    @override
    def sums(self) -> EncodedSums | None:
        return EncodedSums(type(self).__name__, self.encoding) if self.calibration == "tight" else None

    @property
    def _flat_shape(self):
        count, samples, _ = self.template.shape
        return 3 * count, samples

    @override
    def law(self, n, shape=()):
        law, name = self._curves.law(n, self._flat_shape), type(self).__name__

        def told():
            layout = "value and centre[curve, sample, coordinate]; all other lists run over coordinates, then curves"
            return dataclasses.replace(law.told(), mechanism=name, more={"layout": layout})

        return dataclasses.replace(law, encoding=self.encoding, record=self.template.shape, told=told)


@dataclasses.dataclass(frozen=True, eq=False)
class OfFaces(Encoding):
    """Encoding of a face's curves (J, m, 3) as 3 J curves.

    Attributes:
        curves: their encoding.
    """

    curves: CurveEncoding
    part = CurveEncoding.part

    @override
    def deviation(self, record):
        return self.curves.deviation(flat_curves(record))

    @override
    def bounded(self, data):
        return self.curves.bounded(flat_curves(data))

    @override
    def white(self, deviations):
        return self.curves.white(deviations)

    @override
    def value(self, vectors):
        return _face(self.curves.value(vectors))

    @override
    def vector(self, x):
        return self.curves.vector(flat_curves(x))

    @override
    def shape(self, record):
        count, samples, _ = record
        return 3 * count, samples

    @override
    def bounds(self, record):
        return self.curves.bounds(self.shape(record))


def flat_curves(curves):
    """Reshape curves (..., J, m, 3) to (..., 3 J, m), as `FunctionalGaussianMechanism` takes them."""
    moved = curves.swapaxes(-1, -2)
    return moved.reshape(*moved.shape[:-3], moved.shape[-3] * moved.shape[-2], moved.shape[-1])


def _face(curves):
    """Reshape curves (..., 3 J, m) to (..., J, m, 3)."""
    return curves.reshape(*curves.shape[:-2], curves.shape[-2] // 3, 3, curves.shape[-1]).swapaxes(-1, -2)
