"""Private mean curves: the penalised mean plus a Gaussian process with the same kernel, under Gaussian DP."""

import dataclasses
import functools
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from typing_extensions import override

from jaxgeodp.checks import InputError, positive_integer
from jaxgeodp.domains.curve_ball import CurveBall
from jaxgeodp.domains.records import host_array, record_count
from jaxgeodp.functional.kernels import Kernel, PerCurve, positive_numbers
from jaxgeodp.functional.rkhs_mean import clipped, curve_count, positive_penalty
from jaxgeodp.nested_lists import plain_number
from jaxgeodp.privacy.composition import compose
from jaxgeodp.privacy.guarantee import GaussianDP
from jaxgeodp.pytrees import Pytree
from jaxgeodp.releases.encoding import EncodedLaw, EncodedSums, Encoding, mean_of_bounded
from jaxgeodp.releases.law import Terms
from jaxgeodp.releases.mechanism import Mechanism
from jaxgeodp.releases.vector import TIMING

_CALIBRATIONS = ("tight", "theorem")
_THEOREMS = {
    "tight": "Gaussian process mechanism (Mirshani, Reimherr & Slavkovic 2019; Soto 2024, Theorem 4.3) with the "
    "sensitivity of docs/mathematics.md, Theorem M",
    "theorem": "Soto 2024, section 4: sensitivity 2 norm_bound/(n sqrt(penalty))",
}


_FORMULAS = {
    "tight": "2 norm_bound/n max sqrt(lambda)/(lambda + penalty)",
    "theorem": "2 norm_bound/(n sqrt(penalty))",
}


@final
@dataclasses.dataclass(frozen=True, eq=False)
class FunctionalGaussianMechanism(Mechanism, Pytree, leaves=("kernel", "penalty", "norm_bound", "mu", "template")):
    """J mean curves with Gaussian process noise, each mu_j-GDP, all released together.

    A record is J curves with m samples each. Its deviations from a public template are pulled to the norm bounds (in
    the discrete L2 norm), averaged and smoothed (`RKHSMean`); independent draws of the Gaussian process with the
    kernel's covariance times the scale squared are added, then the template. What is proven is about these J m
    numbers, hence about every curve that is computed from them.

    Args:
        kernel: of the smoothing and of the noise.
        penalty: of the smoothing, at least 1e-10.
        norm_bound: public bound on the L2 norm (root mean square over samples, in the units of the curves) of a
            record's deviation, above 0.
        mu: privacy parameter of each curve, above 0.
        template: public curves (J, m); the noise grows with the distance of the data from it. Zero by default.
        calibration: "tight" (Theorem M of docs/mathematics.md) or "theorem" (the paper's, up to twice the noise).

    kernel.length_scale, penalty, norm_bound and mu are one number for all curves, or arrays of shape (J,).

    Raises:
        ValueError: a parameter is out of range, or two disagree in J.

    Example:
        >>> import numpy as np
        >>> from jaxgeodp.functional import FunctionalGaussianMechanism, PeriodicKernel
        >>> mechanism = FunctionalGaussianMechanism(PeriodicKernel(0.5), 0.01, norm_bound=1.0, mu=[0.6, 0.8])
        >>> mechanism.guarantee
        GaussianDP(mu=1.0)
        >>> mechanism.release(np.zeros((100, 2, 80))).value.shape
        (2, 80)
    """

    kernel: Kernel
    penalty: PerCurve
    norm_bound: PerCurve
    mu: PerCurve
    template: np.ndarray | None = None
    calibration: str = "tight"
    _known_curves: int | None = dataclasses.field(init=False, repr=False)

    def __post_init__(self):
        name = type(self).__name__
        if not isinstance(self.kernel, Kernel):
            raise InputError(f"{name}: kernel must be a kernel of jaxgeodp.functional, got {self.kernel!r}.")
        if self.calibration not in _CALIBRATIONS:
            raise InputError(f"{name}: calibration must be 'tight' or 'theorem', got {self.calibration!r}.")
        object.__setattr__(self, "penalty", positive_penalty(name, self.penalty))
        for field in ("norm_bound", "mu"):
            object.__setattr__(self, field, positive_numbers(name, field, getattr(self, field)))
        if self.template is not None:
            template = host_array(name, self.template).astype(float)  # a copy
            template.setflags(write=False)
            if template.ndim != 2 or not np.all(np.isfinite(template)):
                raise InputError(f"{name}: template must be finite curves of shape (J, m), got {template.shape}.")
            self.kernel.check_samples(template.shape[1])
            object.__setattr__(self, "template", template)
        object.__setattr__(self, "_known_curves", self._count())

    def _count(self) -> int | None:
        return curve_count(self.kernel.length_scale, self.penalty, self.norm_bound, self.mu, self.template)

    # Public quantities -------------------------------------------------------------------------------

    @property
    def guarantee(self) -> GaussianDP:
        """The guarantee of all curves together, sqrt(sum mu_j^2)-GDP.

        Raises:
            ValueError: no parameter tells how many curves there are; see `guarantee_for`.
        """
        if self._known_curves is None:
            raise InputError(
                "FunctionalGaussianMechanism: the total budget depends on the number J of curves; give mu as an array "
                "(J,), or call guarantee_for(J)."
            )
        return self.guarantee_for(self._known_curves)

    def guarantee_for(self, curves: int) -> GaussianDP:
        """Return the sqrt(sum mu_j^2)-GDP guarantee for this number of curves.

        Raises:
            ValueError: the parameters are for another number.
        """
        positive_integer("FunctionalGaussianMechanism", "the number of curves", curves, 1)
        if self._known_curves not in (None, curves):
            raise InputError(f"FunctionalGaussianMechanism: is for J={self._known_curves} curves, not {curves}.")
        return compose([GaussianDP(mu) for mu in np.broadcast_to(self.mu, curves).tolist()])

    def sensitivity(self, n: int, samples: int | None = None):
        """Return the sensitivity of a curve in the kernel norm; a number, or (J,) if a parameter is.

        Args:
            n: number of records.
            samples: how many a curve has, m. By default the template's; without one, a bound for every m, which a
                release at m never exceeds.

        Raises:
            ValueError: n is no number of records, or samples are too few for the kernel or not the template's.
        """
        n, samples = record_count(n), self._samples(samples)
        if self.calibration == "theorem":
            factor = self.penalty**-0.5
        elif samples is None:
            factor = largest_gain(self.penalty)
        else:
            factor = self.gain(samples)
        return _number(2.0 * self.norm_bound / n * factor)

    def scale(self, n: int, samples: int | None = None):
        """Return the noise standard deviation at each sample for k(t, t) = 1: sensitivity/mu, a number or (J,).

        Args:
            n, samples: see `sensitivity`.
        """
        return _number(self.sensitivity(n, samples) / self.mu)

    def support(self, n: int) -> None:
        """Return None: a release may be any curve of the process."""
        record_count(n)

    def _samples(self, samples):
        known = None if self.template is None else self.template.shape[1]
        if samples is None:
            return known
        self.kernel.check_samples(samples)
        if known not in (None, samples):
            raise InputError(f"FunctionalGaussianMechanism: the template has m={known} samples, not {samples}.")
        return samples

    def gain(self, samples: int):
        """Return the operator norm of the smoothing from L2 to the kernel norm; a number, or (J,).

        The largest sqrt(lambda)/(lambda + penalty) of the spectrum on m samples.

        Raises:
            ValueError: the kernel is not positive definite with k(t, t) = 1 on so many samples.
        """
        return self.encoding.gain(samples)

    # Data meet the mechanism -------------------------------------------------------------------------

    @property
    def encoding(self) -> "CurveEncoding":
        """Encoding of curves as vectors."""
        return CurveEncoding(self.kernel, self.penalty, self.norm_bound, self.template)

    @property
    @override
    def budget(self):
        return super().budget if self._known_curves == 1 else None  # else each curve has one

    @property
    def sums(self) -> EncodedSums | None:
        """Encoding of curves as integers that add up; None unless the sensitivity is that of Theorem M ("tight")."""
        return EncodedSums(type(self).__name__, self.encoding) if self.calibration == "tight" else None

    @property
    def domain(self) -> CurveBall:
        """Records (n, J, m)."""
        return CurveBall(self.template, self.norm_bound, self._known_curves)

    def law(self, n, shape=()):
        """Return the law of n records of shape (J, m); by default the shape of the template.

        Raises:
            ValueError: m is too small for the kernel.
        """
        if not shape:
            if self.template is None:
                raise InputError("FunctionalGaussianMechanism: without a template, law needs the shape (J, m).")
            shape = self.template.shape
        n = record_count(n)
        self.kernel.check_samples(shape[1])
        sensitivity = self.sensitivity(n, shape[1])
        told = functools.partial(_terms, self, n, shape[0], sensitivity)
        return EncodedLaw(self.encoding, shape, n, self.mu, _number(sensitivity / self.mu), told)

    def mean(self, data):
        """Return the private curves around which releases are drawn, (J, m).

        Args:
            data: curves (n, J, m).

        Raises:
            ValueError: the shape is wrong, or m is too small for the kernel.
        """
        data = self.domain.records(type(self).__name__, data)
        self.kernel.check_samples(data.shape[2])
        return _center(self.encoding, data)


@dataclasses.dataclass(frozen=True, eq=False)
class CurveEncoding(Encoding):
    """Encoding of smooth curves by coordinates whose Euclidean norm is the kernel norm, so noise is white.

    Each curve's vector is as long as the largest that smoothing makes of a curve within the norm bound.

    Attributes:
        kernel, penalty, norm_bound, template: see `FunctionalGaussianMechanism`.
    """

    kernel: Kernel
    penalty: PerCurve
    norm_bound: PerCurve
    template: np.ndarray | None
    part = "curve"

    @override
    def deviation(self, record):
        return record - self._template(record.dtype)

    @override
    def bounded(self, data):
        weights = jnp.asarray(self.kernel.weights(data.shape[2]), data.dtype)
        return clipped(data, self._template(data.dtype), jnp.asarray(self.norm_bound, data.dtype), weights)

    @override
    def white(self, deviations):
        # The spectrum that the noise has: no direction may move that has none.
        spectrum, roots = self._spectrum(deviations)
        values = spectrum.eigenvalues
        factors = jnp.sqrt(values) / (values + jnp.asarray(self.penalty)[..., None])
        return spectrum.apply(factors, deviations) * roots

    @override
    def value(self, vectors):
        spectrum, roots = self._spectrum(vectors)
        # The template last: at its size rounding would tell records apart that the noise hides.
        return spectrum.apply(jnp.sqrt(spectrum.eigenvalues), vectors / roots) + self._template(vectors.dtype)

    @override
    def vector(self, x):
        spectrum, roots = self._spectrum(x)
        return spectrum.apply(1.0 / jnp.sqrt(spectrum.eigenvalues), x - self._template(x.dtype)) * roots

    @override
    def shape(self, record):
        return record

    @override
    def bounds(self, record):
        curves, samples = record
        with np.errstate(over="ignore"):  # refused when it is made ready
            return np.broadcast_to(self.norm_bound * self.gain(samples), curves)

    def gain(self, samples: int) -> Any:
        """Return the largest sqrt(lambda)/(lambda + penalty); refuse a kernel that is not positive definite."""
        if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((self.kernel, self.penalty))):
            values = self.kernel.spectrum(samples).eigenvalues
            return jnp.max(jnp.sqrt(values) / (values + jnp.asarray(self.penalty)[..., None]), axis=-1)
        with jax.enable_x64(True), jax.ensure_compile_time_eval():
            spectrum = self.kernel.spectrum(samples)
            values, start = (np.asarray(x) for x in (spectrum.eigenvalues, self.kernel.profile(jnp.zeros(()))))
        # Both must be 1; a negative eigenvalue, which has no noise, would make the sum larger.
        total = np.sum(values * spectrum.multiplicity, axis=-1)
        if not (np.all(np.abs(total - 1.0) < 1e-8) and np.all(np.abs(start - 1.0) < 1e-12)):
            raise InputError(
                f"{type(self.kernel).__name__} is not positive definite with k(t, t) = 1 on m={samples} samples, so "
                "no guarantee holds; use another kernel."
            )
        largest = np.max(np.sqrt(values) / (values + np.asarray(self.penalty)[..., None]), axis=-1)
        return np.minimum(largest * (1.0 + 1e-12), largest_gain(self.penalty))

    def _template(self, dtype) -> Any:
        return 0.0 if self.template is None else jnp.asarray(self.template, dtype)

    def _spectrum(self, curves):
        samples = curves.shape[-1]
        return self.kernel.spectrum(samples), jnp.asarray(np.sqrt(self.kernel.weights(samples)), curves.dtype)


def largest_gain(penalty) -> Any:
    """Bound `gain` over all spectra: sqrt(x)/(x + penalty) is largest at x = penalty, and x is at most 1."""
    largest = np.minimum(1.0, penalty)
    return np.sqrt(largest) / (largest + penalty) * (1.0 + 1e-9)  # the floor of the spectrum adds to 1


def _terms(mechanism, n, curves, sensitivity):
    kernel = {"name": type(mechanism.kernel).__name__}
    kernel |= {
        field.name: plain_number(getattr(mechanism.kernel, field.name))
        for field in dataclasses.fields(mechanism.kernel)
    }
    return Terms(
        mechanism=type(mechanism).__name__,
        statistic={"name": "RKHSMean", "penalty": plain_number(mechanism.penalty), "kernel": kernel},
        n=n,
        strength=0.0,
        guarantee=mechanism.guarantee_for(curves),
        sensitivity=sensitivity,
        formula=_FORMULAS[mechanism.calibration],
        theorem=_THEOREMS[mechanism.calibration],
        sampler={"name": "Gaussian process by its spectrum", "exactness": "exact up to floating point"},
        timing=TIMING,
        calibration=mechanism.calibration,
        promises={"mu_per_curve": np.broadcast_to(mechanism.mu, curves).tolist()},
    )


def _number(value):
    """Convert a scalar to float; return arrays and tracers unchanged."""
    return float(value) if np.ndim(value) == 0 and not isinstance(value, Tracer) else value


@jax.jit
def _center(encoding, data):
    mean = encoding.white(mean_of_bounded(encoding, data))
    return encoding.value(mean).astype(data.dtype)
