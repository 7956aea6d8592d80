"""The private mean face: radial curves under Gaussian DP."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import final

import jax
import jax.numpy as jnp
import numpy as np
from typing_extensions import override

from jaxgeodp.blocks import RecordBlocks
from jaxgeodp.checks import InputError
from jaxgeodp.domains.domain import Domain
from jaxgeodp.domains.persons import averages_ahead
from jaxgeodp.domains.records import host_array
from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
from jaxgeodp.functional.curves_on_grid import CurveSums
from jaxgeodp.functional.gaussian_process import CurveLaw
from jaxgeodp.functional.kernels import Kernel, positive_numbers
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.releases.integers import Integers, Sums
from jaxgeodp.releases.law import Law
from jaxgeodp.releases.mechanism import Mechanism

#: One number for a whole face, one for each coordinate, (3,), or for each coordinate of each curve or point, (J, 3).
PerCoordinate = float | Sequence[float] | np.ndarray


@final
@dataclasses.dataclass(frozen=True, eq=False)
class FaceMeanMechanism(Mechanism):
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
        """How far one face moves each coordinate of each curve in the norm of the kernel, (J, 3)."""
        return np.reshape(self._curves.sensitivity(n), (-1, 3))

    def scale(self, n: int):
        """Standard deviation of the noise at each sample, (J, 3)."""
        return np.reshape(self._curves.scale(n), (-1, 3))

    def mean(self, data):
        """The curves around which releases are drawn, (J, m, 3): private."""
        return _face(self._curves.mean(flat_curves(self.domain.records(type(self).__name__, data))))

    @property
    def domain(self):
        """Radial curves (n, J, m, 3) of n faces, each processed by itself (`face_curves`)."""
        return _FaceDomain(self.template.shape, self._curves.domain)

    @property
    @override
    def sums(self):
        return _FaceSums(self._curves.sums)

    @override
    def law(self, n, shape=()):
        count, samples, _ = self.template.shape
        return _FaceLaw(type(self).__name__, self._curves.law(n, (3 * count, samples)))


@dataclasses.dataclass(frozen=True, eq=False)
class _FaceDomain(Domain):
    """Curves in the order of faces."""

    shape: tuple[int, ...]
    flat: Domain

    def records(self, owner, data):
        data = data if isinstance(data, jax.Array) else host_array(owner, data)
        if data.ndim != 4 or data.shape[1:] != self.shape:
            expected = ", ".join(map(str, self.shape))
            raise InputError(f"{owner}: data must have shape (n, {expected}), got {data.shape}.")
        return _face(self.flat.records(owner, flat_curves(data)))

    def of_persons(self, owner, shape, count):
        """The mean curves; see `averages`."""
        return averages_ahead(owner, shape, self.fallback(self.shape), count)

    def described(self, shape):
        return self.flat.described((3 * shape[0], shape[1]))

    def fallback(self, shape):
        return np.ascontiguousarray(_face(self.flat.fallback((3 * shape[0], shape[1]))))


@dataclasses.dataclass(frozen=True, eq=False)
class _FaceLaw(Law):
    """The law of curves, in the order of faces."""

    name: str
    flat: CurveLaw
    support = None
    order_matters = False

    @functools.cached_property
    def terms(self):
        return self.named(self.flat.terms)

    @property
    def scale(self):
        return self.flat.scale

    @property
    def grid(self):
        return _FaceGrid(self)

    def named(self, terms):
        layout = "value[curve, sample, coordinate]; all other lists run over coordinates, then curves"
        return dataclasses.replace(terms, mechanism=self.name, more={"layout": layout})

    def ready(self, shape):
        draw = _arranged(self.flat.ready(_flat_shape(shape)))
        return lambda records: draw(_flattened(records))

    def simulate(self, key, records, num):
        return _face(self.flat.simulate(key, flat_curves(records), num))

    def log_density(self, x, records):
        return self.flat.log_density(flat_curves(jnp.asarray(x)), flat_curves(records))


@dataclasses.dataclass(frozen=True, eq=False)
class _FaceSums(Sums):
    """Of curves, in the order of faces."""

    flat: Sums

    @property
    def largest(self):
        return self.flat.largest

    def shape(self, record):
        return self.flat.shape(_flat_shape(jax.ShapeDtypeStruct((0, *record), np.float64)).shape[1:])

    def program(self, shape):
        steps_of = self.flat.program(_flat_shape(shape))
        return lambda records: steps_of(_flattened(records))


@dataclasses.dataclass(frozen=True, eq=False)
class _FaceGrid(Integers):
    law: _FaceLaw

    def sums(self, shape):
        return _FaceSums(CurveSums(self.law.flat.curves)).program(shape)

    def noisy(self, shape):
        noisy = self.law.flat.grid.noisy((3 * shape[0], shape[1]))
        return noisy._replace(terms=self.law.named(noisy.terms), value=_arranged(noisy.value))


def _flattened(records):
    if isinstance(records, RecordBlocks):
        _, count, samples, _ = records.shape
        return records.mapped(_flattened, (3 * count, samples), records.dtype)
    return flat_curves(np.asarray(records))


def _arranged(value):
    """Curves in the order of faces, in NumPy: after a charge nothing is compiled."""
    return lambda given: np.ascontiguousarray(_face(np.asarray(value(given))))


def _flat_shape(shape):
    n, count, samples, _ = shape.shape
    return jax.ShapeDtypeStruct((n, 3 * count, samples), shape.dtype)


def flat_curves(curves):
    """Curves as `FunctionalGaussianMechanism` takes them: (..., J, m, 3) to (..., 3 J, m)."""
    moved = curves.swapaxes(-1, -2)
    return moved.reshape(*moved.shape[:-3], moved.shape[-3] * moved.shape[-2], moved.shape[-1])


def _face(curves):
    """(..., 3 J, m) to (..., J, m, 3)."""
    return curves.reshape(*curves.shape[:-2], curves.shape[-2] // 3, 3, curves.shape[-1]).swapaxes(-1, -2)
